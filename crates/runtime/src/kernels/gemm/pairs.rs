//! Products of integers of 8 and 16 bits, two of which are a word of two `i16`.
//!
//! One instruction (AVX2) multiplies both numbers of a word with those of another and adds the products. All
//! is exact modulo 2³².

use std::ops::Range;

use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::number::ProductType;
use super::operand::Operand;
use super::pack::{Items, MAX_WIDTH, Source, check_bounds};
use super::types::Call;
use super::{Contraction, Isa};
use crate::kernels::bytes::{Plain, cast};

/// Rows and columns of a product that is computed in pairs: of fewer, less is computed than packed.
const FEWEST: usize = 6;

/// A number that is an `i16`.
trait Half: Plain {
    /// Its bits.
    fn bits(self) -> u16;
}

impl Half for i8 {
    #[inline(always)]
    fn bits(self) -> u16 {
        i16::from(self).cast_unsigned()
    }
}

impl Half for u8 {
    #[inline(always)]
    fn bits(self) -> u16 {
        self.into()
    }
}

impl Half for i16 {
    #[inline(always)]
    fn bits(self) -> u16 {
        self.cast_unsigned()
    }
}

/// The word of two numbers, the first of which is the lower half.
#[inline(always)]
fn pair<T: Half>(low: T, high: T) -> u32 {
    u32::from(low.bits()) | u32::from(high.bits()) << 16
}

impl Contraction {
    /// Computes the product if the machine has the instruction, operands are such integers and the product
    /// is large enough; otherwise returns false.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn compute_pairs(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, epilogue, threads, .. } = call;
        let Some(simd) = super::simd::Avx2Pairs::get(isa) else { return false };
        let sizes = [self.lhs_rows.len(), self.rhs_cols.len(), self.lhs_steps.len()];
        if sizes.into_iter().any(|size| size < FEWEST) {
            return false;
        }
        with_pairs(types.lhs, call.lhs, &mut |lhs| {
            with_pairs(types.rhs, call.rhs, &mut |rhs| {
                i32::with_places(types.out, out, &mut |out| {
                    // SAFETY: the result is borrowed mutably.
                    unsafe { self.run(simd, isa, [lhs, rhs], out, epilogue, threads) };
                });
                true
            })
        })
    }

    /// There is no such instruction.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn compute_pairs(&self, _: &Call<'_>, _: &mut [u8]) -> bool {
        false
    }
}

/// Calls `body` with numbers as pairs, if they are of a type that is taken, and gives what it gives.
fn with_pairs(
    number: ProductType,
    bytes: &[u8],
    body: &mut dyn FnMut(&dyn Operand<u32>) -> bool,
) -> bool {
    match number {
        ProductType::S8 => body(&Pairs(cast::<i8>(bytes))),
        ProductType::U8 => body(&Pairs(bytes)),
        ProductType::S16 => body(&Pairs(cast::<i16>(bytes))),
        _ => false,
    }
}

/// Numbers in memory.
struct Pairs<'a, T>(&'a [T]);

impl<T: Half> Operand<u32> for Pairs<'_, T> {
    fn with_source(
        &self,
        isa: Isa,
        start: usize,
        items: &Axis,
        steps: &Axis,
        body: &mut dyn FnMut(&dyn Source<u32>),
    ) {
        check_bounds(self.0.len(), start, items, steps);
        body(&PairSource { isa, data: self.0, start, items, steps });
    }

    fn steps(&self, steps: usize) -> usize {
        steps.div_ceil(2)
    }
}

struct PairSource<'a, T> {
    isa: Isa,
    data: &'a [T],
    start: usize,
    items: &'a Axis,
    steps: &'a Axis,
}

impl<T: Half> Source<u32> for PairSource<'_, T> {
    fn pack(&self, items: Range<usize>, words: Range<usize>, width: usize, panel: &mut [u32]) {
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        let steps = 2 * words.start..self.steps.len().min(2 * words.end);
        panel.fill(0);
        if steps.is_empty() || offsets.is_empty() {
            return;
        }
        if let (first, Items::Row(count)) = Items::at(offsets) {
            return self.pack_rows(first, count, steps, width, panel);
        }
        let (offset, len, stride) = self.steps.run(steps.start, steps.len());
        let is_one_run = len == steps.len() && stride == 1;
        for (i, item) in offsets.iter().enumerate() {
            let words = panel[i..].iter_mut().step_by(width);
            if is_one_run {
                let numbers = &self.data[self.start + item + offset..][..len];
                for (word, numbers) in words.zip(numbers.chunks(2)) {
                    *word = match *numbers {
                        [low, high] => pair(low, high),
                        [low] => low.bits().into(),
                        _ => 0,
                    };
                }
                continue;
            }
            let bits = |step: usize| match step < steps.end {
                true => self.data[self.start + item + self.steps.offset(step)].bits(),
                false => 0,
            };
            for (word, step) in words.zip(steps.clone().step_by(2)) {
                *word = u32::from(bits(step)) | u32::from(bits(step + 1)) << 16;
            }
        }
    }
}

impl<T: Half> PairSource<'_, T> {
    /// Packs items that are side by side.
    fn pack_rows(
        &self,
        first: usize,
        count: usize,
        steps: Range<usize>,
        width: usize,
        panel: &mut [u32],
    ) {
        let row = |step: usize| &self.data[self.start + first + self.steps.offset(step)..][..count];
        self.isa.run(
            #[inline(always)]
            || {
                for (words, step) in panel.chunks_mut(width).zip(steps.clone().step_by(2)) {
                    let (words, low) = (&mut words[..count], row(step));
                    if step + 1 < steps.end {
                        for ((word, &low), &high) in words.iter_mut().zip(low).zip(row(step + 1)) {
                            *word = pair(low, high);
                        }
                    } else {
                        words.iter_mut().zip(low).for_each(|(word, low)| *word = low.bits().into());
                    }
                }
            },
        );
    }
}
