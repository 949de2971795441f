//! Instructions that read and write at places given at run time.

use helio::ElementType;
use helio::ir::ops::BinaryOp;

use super::block::{Value, list};
use super::bound::{Bound, Precision};
use super::{Fill, Generator};

impl Generator {
    pub(super) fn indexing(&mut self) {
        match self.below(11) {
            0..=1 => drop(self.dynamic_slice()),
            2..=3 => drop(self.dynamic_update_slice()),
            4..=5 => drop(self.gather()),
            6 => drop(self.gather_batched()),
            7..=8 => drop(self.scatter_somewhere()),
            _ => drop(self.scatter()),
        }
    }

    /// A scalar for each dimension, within the array or beyond.
    fn starts(&mut self, value: &Value) -> Vec<Value> {
        let start = |generator: &mut Self, size: usize| {
            let found = generator
                .choose(|value| value.dims.is_empty() && value.element == ElementType::S32);
            match found {
                Some(found) if generator.chance(1, 2) => found,
                _ => {
                    let number = generator.between(-1, size as i64);
                    generator.scalar(ElementType::S32, number)
                }
            }
        };
        value.dims.iter().map(|&size| start(self, size)).collect()
    }

    fn dynamic_slice(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let starts = self.starts(&value);
        let mut dims: Vec<usize> = value.dims.iter().map(|&size| self.below(size + 1)).collect();
        if self.chance(1, 6) {
            let d = self.below(dims.len());
            dims[d] = 0;
        }
        let operands: Vec<&Value> = std::iter::once(&value).chain(&starts).collect();
        let attributes = format!(", dynamic_slice_sizes={{{}}}", list(&dims));
        Some(self.block.push(
            value.element,
            &dims,
            "dynamic-slice",
            &operands,
            &attributes,
            value.bound,
        ))
    }

    fn dynamic_update_slice(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let update = self.choose(|update| {
            update.element == value.element
                && update.rank() == value.rank()
                && update.dims.iter().zip(&value.dims).all(|(small, large)| small <= large)
        })?;
        let starts = self.starts(&value);
        let operands: Vec<&Value> = [&value, &update].into_iter().chain(&starts).collect();
        let bound = value.bound.or(update.bound);
        Some(self.block.push(
            value.element,
            &value.dims,
            "dynamic-update-slice",
            &operands,
            "",
            bound,
        ))
    }

    /// Indices into a dimension of this size, some of them beyond it.
    fn indices(&mut self, count: usize, size: usize) -> Value {
        let bound = Bound::exact(-1.0, size as f64, true);
        self.parameter_with(ElementType::S32, &[count], bound, Fill::Whole)
    }

    /// How many slices there are, and their size in a dimension that is left out: both may be 0.
    fn slices(&mut self, size: usize) -> (usize, usize) {
        let count = if self.chance(1, 8) { 0 } else { 1 + self.below(9) };
        let taken = if size == 0 || self.chance(1, 8) { 0 } else { 1 };
        (count, taken)
    }

    /// Slices across one dimension, at places that a vector lists.
    fn gather(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() >= 1)?;
        let along = self.below(value.rank());
        let (count, taken) = self.slices(value.dims[along]);
        let mut dims = value.dims.clone();
        dims.remove(along);
        dims.insert(0, count);
        if dims.iter().product::<usize>() > self.most {
            return None;
        }
        let indices = self.indices(count, value.dims[along]);
        let mut sizes = value.dims.clone();
        sizes[along] = taken;
        if self.chance(1, 10) {
            // Less than there is of another dimension, or nothing.
            let other = self.below(value.rank());
            if other != along {
                sizes[other] = self.below(sizes[other] + 1);
                dims[other + usize::from(other < along)] = sizes[other];
            }
        }
        let offsets: Vec<usize> = (1..value.rank()).collect();
        let attributes = format!(
            ", offset_dims={{{}}}, collapsed_slice_dims={{{along}}}, start_index_map={{{along}}}, \
             index_vector_dim=1, slice_sizes={{{}}}",
            list(&offsets),
            list(&sizes)
        );
        // Where a slice has no element, the result has zeros.
        let bound = value.bound.or(Bound::exact(0.0, 0.0, true));
        let operands = [&value, &indices];
        Some(self.block.push(value.element, &dims, "gather", &operands, &attributes, bound))
    }

    /// An element along the last dimension for each index along the first, which both have.
    fn gather_batched(&mut self) -> Option<Value> {
        let value = self.choose(|value| value.rank() == 2)?;
        let (count, taken) = self.slices(value.count());
        let last = value.dims[1] as f64;
        let bound = Bound::exact(-1.0, last, true);
        let dims = [value.dims[0], count];
        let indices = self.parameter_with(ElementType::S32, &dims, bound, Fill::Whole);
        let batch = if value.dims[0] == 0 || self.chance(1, 8) { 0 } else { 1 };
        let attributes = format!(
            ", offset_dims={{}}, collapsed_slice_dims={{1}}, operand_batching_dims={{0}}, \
             start_indices_batching_dims={{0}}, start_index_map={{1}}, index_vector_dim=2, \
             slice_sizes={{{batch},{taken}}}"
        );
        let bound = value.bound.or(Bound::exact(0.0, 0.0, true));
        let operands = [&value, &indices];
        Some(self.block.push(value.element, &dims, "gather", &operands, &attributes, bound))
    }

    /// Slices folded into an array at places that a vector lists; what is folded may come in any
    /// order.
    fn scatter(&mut self) -> Option<Value> {
        let value = self.choose(|value| {
            let whole = value.bound.whole && value.bound.is_exact();
            let computed = value.element.is_integer() || Precision::of(value.element).is_some();
            value.rank() >= 1 && whole && computed && !value.element.is_complex()
        })?;
        let along = self.below(value.rank());
        let (count, _) = self.slices(value.dims[along]);
        let indices = self.indices(count, value.dims[along]);
        let mut dims = value.dims.clone();
        dims.remove(along);
        dims.insert(0, count);
        let unsigned = value.element.is_unsigned_integer();
        let range = Bound::exact(if unsigned { 0.0 } else { -1.0 }, 1.0, true);
        let updates = self.parameter_with(value.element, &dims, range, Fill::Whole);
        let op = *self.pick(&[BinaryOp::Add, BinaryOp::Maximum, BinaryOp::Minimum]);
        let x = value.bound;
        let bound = match op {
            _ if value.element.is_integer() => Bound::any(value.element),
            BinaryOp::Add => {
                let most = count as f64;
                let range = [x.low - most, x.high + most];
                Bound::arithmetic(value.element, range, &[x, range_bound(range)], 0.0, 0.0, 1.0)
                    .filter(Bound::is_exact)?
            }
            _ => x.or(range),
        };
        let callee = self.reducer(op, value.element);
        let windows: Vec<usize> = (1..value.rank()).collect();
        let attributes = format!(
            ", update_window_dims={{{}}}, inserted_window_dims={{{along}}}, \
             scatter_dims_to_operand_dims={{{along}}}, index_vector_dim=1, to_apply={callee}",
            list(&windows)
        );
        let operands = [&value, &indices, &updates];
        Some(self.block.push(value.element, &value.dims, "scatter", &operands, &attributes, bound))
    }
}

fn range_bound([low, high]: [f64; 2]) -> Bound {
    Bound::exact(low, high, true)
}
