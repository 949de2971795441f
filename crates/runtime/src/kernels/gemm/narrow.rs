//! Numbers of 8 and 16 bits, several of which are a word: one instruction multiplies them all and
//! adds the products.

use std::ops::Range;

use super::axis::Axis;
use super::number::Bf16;
use super::operand::Operand;
use super::pack::{MAX_WIDTH, Source, check_bounds, each_block_row};
use super::transpose::Rows;
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;

/// A number that shares a word with those of the next steps.
pub(super) trait Narrow: Plain + Default {
    /// How many numbers are a word of 4 bytes.
    const PER_WORD: usize = 4 / size_of::<Self>();

    /// The bits of the number, from the lowest on.
    fn bits(self) -> u32;
}

impl Narrow for Bf16 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0.into()
    }
}

impl Narrow for u8 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.into()
    }
}

/// Numbers in memory that become words of several.
pub(super) struct Joined<'a, T> {
    pub data: &'a [T],
    /// What to change in each number: its highest bit, if the instruction takes it with the other
    /// sign.
    pub flip: T,
}

impl<T: Narrow> Operand<u32> for Joined<'_, T> {
    fn with_source(
        &self,
        isa: Isa,
        start: usize,
        items: &Axis,
        steps: &Axis,
        body: &mut dyn FnMut(&dyn Source<u32>),
    ) {
        check_bounds(self.data.len(), start, items, steps);
        let flip = self.flip.bits();
        body(&JoinedSource { isa, data: self.data, flip, start, items, steps });
    }

    fn steps(&self, steps: usize) -> usize {
        steps.div_ceil(T::PER_WORD)
    }
}

struct JoinedSource<'a, T> {
    isa: Isa,
    data: &'a [T],
    flip: u32,
    start: usize,
    items: &'a Axis,
    steps: &'a Axis,
}

impl<T: Narrow> Source<u32> for JoinedSource<'_, T> {
    fn pack(&self, items: Range<usize>, words: Range<usize>, width: usize, panel: &mut [u32]) {
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        let bits = 8 * size_of::<T>();
        // The change for whole words, and for the numbers of a last word that is not full.
        let flip = (0..T::PER_WORD).fold(0, |flip, i| flip | self.flip << (i * bits));
        let steps = words.start * T::PER_WORD..self.steps.len().min(words.end * T::PER_WORD);
        if steps.is_empty() {
            return;
        }
        let (offset, len, stride) = self.steps.run(steps.start, steps.len());
        let whole = len / T::PER_WORD;
        if stride == 1 && len == steps.len() && whole > 0 {
            let (data, start, padding) = (self.data, self.start + offset, width - offsets.len());
            let rows =
                Rows { data, offsets: &*offsets, start, steps: whole, padding, pitch: width };
            let (full, rest) = panel.split_at_mut(whole * width);
            if rows.transpose(self.isa, full) {
                if flip != 0 {
                    for row in full.chunks_exact_mut(width) {
                        row[..offsets.len()].iter_mut().for_each(|word| *word ^= flip);
                    }
                }
                self.join(offsets, steps.start + whole * T::PER_WORD..steps.end, width, rest);
                return;
            }
        }
        self.join(offsets, steps, width, panel);
    }

    fn pack_blocks(&self, items: Range<usize>, words: Range<usize>, panel: &mut [u32]) {
        let bits = 8 * size_of::<T>();
        let flip = (0..T::PER_WORD).fold(0, |flip, i| flip | self.flip << (i * bits));
        each_block_row(items, words, panel, |item, word, row| {
            let start = self.start + self.items.offset(item);
            let first = word * T::PER_WORD;
            let count = self.steps.len().min(first + row.len() * T::PER_WORD) - first;
            let (offset, len, stride) = self.steps.run(first, count);
            if stride == 1 && len == count && count == row.len() * T::PER_WORD {
                let numbers = &self.data[start + offset..][..count];
                for (word, numbers) in row.iter_mut().zip(numbers.chunks_exact(T::PER_WORD)) {
                    let joined = numbers.iter().rev().fold(0, |word, n| word << bits | n.bits());
                    *word = joined ^ flip;
                }
                return;
            }
            row.fill(0);
            for i in 0..count {
                let number = self.data[start + self.steps.offset(first + i)];
                row[i / T::PER_WORD] |= (number.bits() ^ self.flip) << (i % T::PER_WORD * bits);
            }
        });
    }
}

impl<T: Narrow> JoinedSource<'_, T> {
    /// Packs steps, of which the first begins a word.
    fn join(&self, offsets: &[usize], steps: Range<usize>, width: usize, panel: &mut [u32]) {
        let bits = 8 * size_of::<T>();
        let side_by_side = offsets.iter().zip(offsets[0]..).all(|(&offset, next)| offset == next);
        panel.fill(0);
        for (i, step) in steps.enumerate() {
            let (word, shift) = (i / T::PER_WORD, i % T::PER_WORD * bits);
            let start = self.start + self.steps.offset(step);
            let row = &mut panel[word * width..][..offsets.len()];
            let join = |word: &mut u32, number: T| *word |= (number.bits() ^ self.flip) << shift;
            if side_by_side {
                let from = &self.data[start + offsets[0]..][..row.len()];
                self.isa.run(
                    #[inline(always)]
                    || row.iter_mut().zip(from).for_each(|(word, &number)| join(word, number)),
                );
            } else {
                let from = offsets.iter().map(|offset| self.data[start + offset]);
                row.iter_mut().zip(from).for_each(|(word, number)| join(word, number));
            }
        }
    }
}
