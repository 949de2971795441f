//! Moving elements between arrays: transposes, slices, reversals, broadcasts, concatenation.
//!
//! All of these are one loop nest: a box of elements, whose neighbours along each axis are some
//! distance apart in the source and in the target. `Copy` takes the nest apart once, when a
//! program is compiled, and picks the inner loops: whole rows, one element to a row, square tiles
//! transposed in registers, or single elements.

mod line;
mod nest;
mod rows;
#[cfg(test)]
mod tests;
mod tile;

use std::cmp::Reverse;

use crate::Threads;
use nest::Nest;
pub use rows::Rows;
pub(super) use tile::transpose;

/// One axis of a box of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// How many elements.
    pub size: usize,
    /// The distance of neighbours in the source, in elements: zero repeats, less than it reverses.
    pub from: isize,
    /// The distance of neighbours in the target, in elements.
    pub to: isize,
}

/// A plan to move a box of elements.
#[derive(Clone, Debug)]
pub struct Copy {
    nest: Nest,
    /// The bytes read and written, relative to the first element.
    from: Reach,
    to: Reach,
    /// Nothing at all is moved.
    is_empty: bool,
}

/// An axis in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    size: usize,
    from: isize,
    to: isize,
}

/// How far a box reaches before and behind its first byte.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    before: usize,
    behind: usize,
}

impl Reach {
    fn of(steps: &[Step], step: impl Fn(&Step) -> isize, element_size: usize) -> Option<Self> {
        let mut reach = Reach { before: 0, behind: element_size };
        for axis in steps {
            let bytes = (axis.size - 1).checked_mul(step(axis).unsigned_abs())?;
            let side = if step(axis) < 0 { &mut reach.before } else { &mut reach.behind };
            *side = side.checked_add(bytes)?;
        }
        Some(reach)
    }

    fn fits(&self, len: usize, first: usize) -> bool {
        first <= len && self.before <= first && self.behind <= len - first
    }
}

impl Copy {
    /// A plan for elements of this many bytes. `None` if elements have no size that
    /// types have, or those of the target could overlap: sorted by distance, each axis must step
    /// over all of the next.
    pub fn new(axes: &[Axis], element_size: usize) -> Option<Self> {
        if ![1, 2, 4, 8, 16].contains(&element_size) {
            return None;
        }
        let is_empty = axes.iter().any(|axis| axis.size == 0);
        let axes = if is_empty { &[] } else { axes };
        let bytes = |elements: isize| elements.checked_mul(isize::try_from(element_size).ok()?);
        let mut steps = Vec::with_capacity(axes.len());
        for axis in axes.iter().filter(|axis| axis.size > 1) {
            steps.push(Step { size: axis.size, from: bytes(axis.from)?, to: bytes(axis.to)? });
        }
        let from = Reach::of(&steps, |step| step.from, element_size)?;
        let to = Reach::of(&steps, |step| step.to, element_size)?;
        steps.sort_by_key(|step| Reverse(step.to.unsigned_abs()));
        // From the innermost axis outwards: what lies within one step of this one.
        let mut within = element_size;
        for step in steps.iter().rev() {
            if step.to.unsigned_abs() < within {
                return None;
            }
            within = step.to.unsigned_abs().checked_mul(step.size - 1)?.checked_add(within)?;
        }
        Some(Copy { nest: Nest::new(merged(steps), element_size), from, to, is_empty })
    }

    /// How to make a dense array of these sizes by transposing one: dimension `i` of the result is
    /// dimension `permutation[i]` of the operand.
    pub fn transpose(sizes: &[usize], permutation: &[usize], element_size: usize) -> Option<Self> {
        let from = dense_steps(sizes);
        let result: Vec<usize> = permutation.iter().map(|&d| sizes[d]).collect();
        let to = dense_steps(&result);
        let axes =
            permutation.iter().zip(to).map(|(&d, to)| Axis { size: sizes[d], from: from[d], to });
        Copy::new(&axes.collect::<Vec<_>>(), element_size)
    }

    /// Moves the box whose first element (with all indices zero) is at byte `from_first` of `from`
    /// and at byte `to_first` of `to`.
    ///
    /// # Panics
    ///
    /// If the box reaches out of an array.
    pub fn run(
        &self,
        (from, from_first): (&[u8], usize),
        (to, to_first): (&mut [u8], usize),
        threads: Threads<'_>,
    ) {
        if self.is_empty {
            return;
        }
        assert!(self.from.fits(from.len(), from_first), "a copy reads outside of its source");
        assert!(self.to.fits(to.len(), to_first), "a copy writes outside of its target");
        // (Pointers to all of the arrays, since boxes reach before their first element, too.)
        let from = from.as_ptr().wrapping_add(from_first);
        let to = to.as_mut_ptr().wrapping_add(to_first);
        // SAFETY: both boxes lie inside their arrays, as just checked, and `new` has seen to it
        // that no two elements of the target overlap.
        unsafe { self.nest.run(from, to, threads) }
    }
}

/// Axes with as few loops as possible, the innermost of the target last.
fn merged(steps: Vec<Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        match merged.last_mut() {
            Some(outer) if outer.continues(&step) => {
                *outer = Step { size: outer.size * step.size, ..step };
            }
            _ => merged.push(step),
        }
    }
    merged
}

impl Step {
    /// Whether one step of this axis is where all steps of an inner one lead.
    fn continues(&self, inner: &Step) -> bool {
        let size = inner.size as isize;
        inner.from.checked_mul(size) == Some(self.from)
            && inner.to.checked_mul(size) == Some(self.to)
    }
}

/// The steps of a dense array of these sizes, in elements.
pub fn dense_steps(sizes: &[usize]) -> Vec<isize> {
    let mut steps = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        steps[d - 1] = steps[d] * sizes[d] as isize;
    }
    steps
}
