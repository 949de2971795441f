//! Operands of products, as what their elements become.

use std::ops::Range;

use super::axis::Axis;
use super::pack::{Elements, MAX_WIDTH, Source, Strided, check_bounds};
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;

/// An operand whose dimensions are not yet said.
pub(super) trait Operand<W>: Sync {
    /// Calls `body` with the operand that begins at `start` and has these items and steps. Panics
    /// if that is not in memory.
    fn with_source(
        &self,
        isa: Isa,
        start: usize,
        items: &Axis,
        steps: &Axis,
        body: &mut dyn FnMut(&dyn Source<W>),
    );

    /// The number of words that hold `steps` numbers of an item, side by side.
    fn steps(&self, steps: usize) -> usize {
        steps
    }

    /// The elements, and where the operand begins among them, if each becomes a word.
    fn elements(&self) -> Option<(&dyn Elements<W>, usize)> {
        None
    }
}

/// Elements each of which becomes a word.
pub(super) struct Each<'a, W> {
    pub elements: &'a dyn Elements<W>,
    /// Where the operand begins.
    pub start: usize,
}

impl<'a, W> Each<'a, W> {
    /// An operand that begins with the first element.
    pub(super) fn all(elements: &'a dyn Elements<W>) -> Self {
        Each { elements, start: 0 }
    }
}

impl<W: Plain + Default> Operand<W> for Each<'_, W> {
    fn with_source(
        &self,
        isa: Isa,
        start: usize,
        items: &Axis,
        steps: &Axis,
        body: &mut dyn FnMut(&dyn Source<W>),
    ) {
        body(&Strided::new(isa, self.elements, self.start + start, items, steps));
    }

    fn elements(&self) -> Option<(&dyn Elements<W>, usize)> {
        Some((self.elements, self.start))
    }
}

/// The right operand of a product of complex numbers that is computed as one of real numbers: step
/// `2 * s` has real and imaginary parts of the numbers of step `s`, as they are in memory, and step
/// `2 * s + 1` has them multiplied by the imaginary unit. The items and steps that it is given must
/// have twice the indices of the complex ones, with the parts as innermost dimension.
pub(super) struct Complex<'a, T>(pub &'a [T]);

impl<T: Plain + Default + std::ops::Neg<Output = T>> Operand<T> for Complex<'_, T> {
    fn with_source(
        &self,
        isa: Isa,
        start: usize,
        items: &Axis,
        steps: &Axis,
        body: &mut dyn FnMut(&dyn Source<T>),
    ) {
        check_bounds(self.0.len(), start, items, steps);
        body(&ComplexSource { isa, data: self.0, start, items, steps });
    }
}

struct ComplexSource<'a, T> {
    isa: Isa,
    data: &'a [T],
    start: usize,
    items: &'a Axis,
    steps: &'a Axis,
}

impl<T: Plain + Default + std::ops::Neg<Output = T>> Source<T> for ComplexSource<'_, T> {
    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [T]) {
        // The parts of a number are neighbours; those of a step's two rows are the same.
        let numbers = items.start / 2..items.end.div_ceil(2);
        let mut offsets = [0; MAX_WIDTH + 1];
        let offsets = &mut offsets[..numbers.len()];
        for (offset, number) in offsets.iter_mut().zip(numbers) {
            *offset = self.items.offset(2 * number);
        }
        let is_row = offsets.iter().zip((offsets[0]..).step_by(2)).all(|(&at, next)| at == next);
        let is_even = items.start.is_multiple_of(2) && items.end.is_multiple_of(2);
        for (row, step) in panel.chunks_exact_mut(width).zip(steps) {
            let data = &self.data[self.start + self.steps.offset(step & !1)..];
            let (row, beyond) = row.split_at_mut(items.len());
            beyond.fill_with(T::default);
            let turn = |[real, imaginary]: [T; 2]| match step & 1 {
                0 => [real, imaginary],
                _ => [-imaginary, real],
            };
            let number = |offset: usize| turn([data[offset], data[offset + 1]]);
            let pairs = row.as_chunks_mut::<2>().0.iter_mut();
            if !is_even {
                for (word, item) in row.iter_mut().zip(items.clone()) {
                    *word = number(offsets[item / 2 - items.start / 2])[item & 1];
                }
            } else if is_row {
                let from = data[offsets[0]..].as_chunks::<2>().0;
                self.isa.run(
                    #[inline(always)]
                    || pairs.zip(from).for_each(|(pair, &number)| *pair = turn(number)),
                );
            } else {
                pairs.zip(&*offsets).for_each(|(pair, &offset)| *pair = number(offset));
            }
        }
    }
}
