//! Random instructions that move elements.

use helio::ElementType;

use super::Generator;
use super::block::{Value, list};
use super::bound::Bound;

impl Generator {
    pub(super) fn movement(&mut self) {
        match self.below(12) {
            0..=2 => drop(self.broadcast()),
            3 => drop(self.reshape()),
            4..=5 => drop(self.transpose()),
            6 => drop(self.reverse()),
            7..=8 => drop(self.slice()),
            9 => drop(self.pad()),
            10 => drop(self.concatenate()),
            _ => drop(self.iota()),
        }
    }

    pub(super) fn broadcast(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() < 4)?;
        let sizes = self.sizes.clone();
        let mut dims = value.dims.clone();
        let mut places: Vec<usize> = (0..value.rank()).collect();
        for _ in 0..=self.below(2) {
            let at = self.below(dims.len() + 1);
            dims.insert(at, *self.pick(&sizes));
            places.iter_mut().filter(|place| **place >= at).for_each(|place| *place += 1);
        }
        if dims.iter().product::<usize>() > self.most {
            return None;
        }
        let attributes = format!(", dimensions={{{}}}", list(&places));
        Some(self.block.push(
            value.element,
            &dims,
            "broadcast",
            &[&value],
            &attributes,
            value.bound,
        ))
    }

    fn reshape(&mut self) -> Option<Value> {
        let value = self.choose(|_| true)?;
        let mut dims = value.dims.clone();
        // Two dimensions become one, one falls into two, or one of size 1 comes in.
        let at = self.below(dims.len() + 1);
        match self.below(3) {
            0 if at + 1 < dims.len() => dims[at] *= dims.remove(at + 1),
            1 if at < dims.len() => {
                let divides = |&d: &usize| dims[at] % d == 0;
                let divisors: Vec<usize> = (1..=dims[at].max(1)).filter(divides).collect();
                let divisor = *self.pick(&divisors);
                dims[at] /= divisor;
                dims.insert(at, divisor);
            }
            _ => dims.insert(at, 1),
        }
        Some(self.reshaped(&value, &dims))
    }

    pub(super) fn reshaped(&mut self, value: &Value, dims: &[usize]) -> Value {
        self.block.push(value.element, dims, "reshape", &[value], "", value.bound)
    }

    pub(super) fn transpose(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 2)?;
        let mut order: Vec<usize> = (0..value.rank()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i + 1));
        }
        let dims: Vec<usize> = order.iter().map(|&d| value.dims[d]).collect();
        let attributes = format!(", dimensions={{{}}}", list(&order));
        Some(self.block.push(
            value.element,
            &dims,
            "transpose",
            &[&value],
            &attributes,
            value.bound,
        ))
    }

    pub(super) fn reverse(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let reversed: Vec<usize> = (0..value.rank()).filter(|_| self.chance(1, 2)).collect();
        let attributes = format!(", dimensions={{{}}}", list(&reversed));
        Some(self.block.push(
            value.element,
            &value.dims,
            "reverse",
            &[&value],
            &attributes,
            value.bound,
        ))
    }

    pub(super) fn slice(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let (mut dims, mut ranges) = (Vec::new(), Vec::new());
        for &size in &value.dims {
            let start = if self.chance(1, 2) { 0 } else { self.below(size + 1) };
            let limit = if self.chance(1, 2) { size } else { start + self.below(size - start + 1) };
            let stride = *self.pick(&[1, 1, 1, 2, 3]);
            dims.push((limit - start).div_ceil(stride));
            ranges.push(format!("[{start}:{limit}:{stride}]"));
        }
        let attributes = format!(", slice={{{}}}", ranges.join(", "));
        Some(self.block.push(value.element, &dims, "slice", &[&value], &attributes, value.bound))
    }

    pub(super) fn pad(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let number = self.between(0, 2);
        let fill = self.scalar(value.element, number);
        let (mut dims, mut padding) = (Vec::new(), Vec::new());
        for &size in &value.dims {
            let (low, high) = (self.between(-1, 2), self.between(-1, 2));
            let interior = *self.pick(&[0, 0, 0, 1, 2]);
            let inner = size as i64 + size.saturating_sub(1) as i64 * interior;
            dims.push(usize::try_from(inner + low + high).ok()?);
            padding.push(format!("{low}_{high}_{interior}"));
        }
        if dims.iter().product::<usize>() > self.most {
            return None;
        }
        let attributes = format!(", padding={}", padding.join("x"));
        let bound = value.bound.or(fill.bound);
        Some(self.block.push(value.element, &dims, "pad", &[&value, &fill], &attributes, bound))
    }

    pub(super) fn concatenate(&mut self) -> Option<Value> {
        let first = self.choose(|value| value.rank() >= 1)?;
        let along = self.below(first.rank());
        let mut parts = vec![first.clone()];
        for _ in 0..=self.below(2) {
            let part = self.choose(|value| {
                let fits = |d: usize| d == along || value.dims[d] == first.dims[d];
                value.element == first.element
                    && value.rank() == first.rank()
                    && (0..first.rank()).all(fits)
            });
            parts.push(part?);
        }
        let mut dims = first.dims.clone();
        dims[along] = parts.iter().map(|part| part.dims[along]).sum();
        if dims.iter().product::<usize>() > self.most {
            return None;
        }
        let bound = parts.iter().map(|part| part.bound).reduce(Bound::or)?;
        let attributes = format!(", dimensions={{{along}}}");
        let parts: Vec<&Value> = parts.iter().collect();
        Some(self.block.push(first.element, &dims, "concatenate", &parts, &attributes, bound))
    }

    fn iota(&mut self) -> Option<Value> {
        let element =
            *self.pick(&[ElementType::S32, ElementType::F32, ElementType::S64, ElementType::U8]);
        let mut dims = self.dims();
        if dims.is_empty() {
            dims.push(self.sizes[0]);
        }
        let along = self.below(dims.len());
        let bound = match element {
            ElementType::U8 => Bound::any(element),
            _ => Bound::exact(0.0, dims[along] as f64, true),
        };
        let attributes = format!("iota_dimension={along}");
        Some(self.block.push(element, &dims, "iota", &[], &format!(", {attributes}"), bound))
    }
}
