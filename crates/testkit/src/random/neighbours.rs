//! Programs whose instructions read what their neighbours may overwrite: several results of one
//! fusion, vectors that are computed, spread over an array and joined with what they were computed
//! from, sorts and products beside them, arguments that are given away, and state that loops change.

use helio::{ElementType, Literal};
use oorandom::Rand64;

use super::block::{Block, Value, list};
use super::bound::Bound;
use super::{Fill, Generator};

/// The most elements of an array: enough for its work to be cut up among threads.
const MAX_ELEMENTS: usize = 1 << 17;

impl Generator {
    /// The state of growing a program of neighbours: an array or two, and vectors along some of its
    /// dimensions.
    pub(super) fn for_neighbours(seed: u64) -> Self {
        let mut generator = Generator {
            rng: Rand64::new(seed.into()),
            block: Block::default(),
            computations: Vec::new(),
            known: std::collections::BTreeMap::new(),
            sizes: Vec::new(),
            most: MAX_ELEMENTS,
            donates: true,
        };
        let columns = *generator.pick(&[3, 10, 16, 33, 64, 64, 100, 128]);
        let middle = *generator.pick(&[1, 1, 2, 14, 32]);
        let most = MAX_ELEMENTS / columns / middle;
        let rows = if generator.chance(2, 3) { most } else { generator.between(2, 64) as usize };
        generator.sizes = vec![rows.min(most), middle, columns];
        generator.sizes.retain(|&size| size > 1);
        let element = *generator.pick(&[
            ElementType::F32,
            ElementType::F32,
            ElementType::F32,
            ElementType::S32,
            ElementType::F64,
            ElementType::BF16,
        ]);
        let dims = generator.sizes.clone();
        for _ in 0..=generator.below(2) {
            generator.whole(element, &dims);
        }
        for _ in 0..=generator.below(4) {
            let kept = generator.some_of(dims.len());
            let dims: Vec<usize> = kept.iter().map(|&d| dims[d]).collect();
            generator.whole(element, &dims);
        }
        generator
    }

    /// A parameter of small whole numbers.
    fn whole(&mut self, element: ElementType, dims: &[usize]) -> Value {
        self.parameter_with(element, dims, Bound::exact(-2.0, 3.0, true), Fill::Whole)
    }

    /// Some of the first numbers, but not all.
    fn some_of(&mut self, count: usize) -> Vec<usize> {
        let out = self.below(count);
        (0..count).filter(|&d| d != out && self.chance(2, 3)).collect()
    }

    /// Adds an instruction or a few.
    pub(super) fn neighbour(&mut self) {
        match self.below(16) {
            0..=3 => drop(self.spread()),
            4..=6 => drop(self.binary()),
            7 => drop(self.unary()),
            8..=10 => drop(self.reduce()),
            11 => drop(self.sort()),
            12 => drop(self.sort_pairs()),
            13 => match self.below(5) {
                0 => drop(self.transpose()),
                1 => drop(self.reverse()),
                2 => drop(self.slice()),
                3 => drop(self.pad()),
                _ => drop(self.concatenate()),
            },
            14 => drop(self.replaced()),
            _ => self.control(),
        }
    }

    /// A value spread over the dimensions that another has besides, and joined with that.
    pub(super) fn spread(&mut self) -> Option<Value> {
        let all = self.choose(|value| value.rank() >= 1 && value.count() > 1)?;
        let kept = |small: &Value| {
            // Where its dimensions are among the other's, in order.
            let mut places = Vec::new();
            let mut from = 0;
            for &size in &small.dims {
                let at = from + all.dims[from..].iter().position(|&other| other == size)?;
                places.push(at);
                from = at + 1;
            }
            Some(places)
        };
        let fits = |value: &Value| {
            value.element == all.element && value.rank() < all.rank() && kept(value).is_some()
        };
        let small = self.choose(fits)?;
        let attributes = format!(", dimensions={{{}}}", list(&kept(&small)?));
        self.block.push(small.element, &all.dims, "broadcast", &[&small], &attributes, small.bound);
        // The broadcast is the latest of the values, and so the likeliest operand.
        self.binary()
    }

    /// A part of an array replaced by another's.
    fn replaced(&mut self) -> Option<Value> {
        let whole = self.choose(|value| value.rank() >= 1 && value.count() > 1)?;
        let part = self.choose(|value| {
            let smaller = |(&part, &all): (&usize, &usize)| 0 < part && part <= all;
            value.element == whole.element
                && value.rank() == whole.rank()
                && value.dims.iter().zip(&whole.dims).all(smaller)
        })?;
        let start = self.between(0, 3);
        let start = self.scalar(ElementType::S32, start);
        let operands: Vec<&Value> =
            [&whole, &part].into_iter().chain(whole.dims.iter().map(|_| &start)).collect();
        let bound = whole.bound.or(part.bound);
        Some(self.block.push(
            whole.element,
            &whole.dims,
            "dynamic-update-slice",
            &operands,
            "",
            bound,
        ))
    }

    /// What the header says of arguments given away for results: each for the first of its shape.
    pub(super) fn donations(&self, results: &[&Value], arguments: &[Literal]) -> String {
        let mut left: Vec<(usize, String)> = arguments
            .iter()
            .enumerate()
            .filter_map(|(n, argument)| Some((n, argument.as_array()?.shape().to_string())))
            .collect();
        let mut pairs = Vec::new();
        for (i, result) in results.iter().enumerate().filter(|_| self.donates) {
            if let Some(at) = left.iter().position(|(_, shape)| *shape == result.shape()) {
                pairs.push(format!("{{{i}}}: ({}, {{}}, may-alias)", left.remove(at).0));
            }
        }
        match pairs.is_empty() {
            true => String::new(),
            false => format!(", input_output_alias={{ {} }}", pairs.join(", ")),
        }
    }
}
