//! Numbers of 8 and 16 bits, several of which are a word: one instruction multiplies them all and
//! adds the products.

use std::ops::Range;

use super::axis::Axis;
use super::number::Bf16;
use super::operand::Operand;
use super::pack::{Items, MAX_WIDTH, Source, check_bounds, each_block, each_panel, turn_block};
use super::tile::BLOCK;
use super::transpose::Rows;
use crate::kernels::bytes::{Plain, bytes_of, bytes_of_mut};
use crate::kernels::isa::{Isa, prefetch_far};

/// A number that shares a word with those of the next steps.
pub(super) trait Narrow: Plain + Default {
    /// How many numbers are a word of 4 bytes.
    const PER_WORD: usize = 4 / size_of::<Self>();

    /// The bits of the number, from the lowest on.
    fn bits(self) -> u32;

    /// Writes the words of neighbours, made of numbers in [`PER_WORD`](Narrow::PER_WORD) rows of `data`
    /// that are `stride` apart, with the bits of `flip` changed.
    fn join_row(data: &[Self], stride: usize, words: &mut [u32], flip: u32);
}

impl Narrow for Bf16 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0.into()
    }

    #[inline(always)]
    fn join_row(data: &[Self], stride: usize, words: &mut [u32], flip: u32) {
        join_row_of::<2, _>(data, stride, words, flip);
    }
}

impl Narrow for u8 {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.into()
    }

    #[inline(always)]
    fn join_row(data: &[Self], stride: usize, words: &mut [u32], flip: u32) {
        join_row_of::<4, _>(data, stride, words, flip);
    }
}

/// [`Narrow::join_row`] for a number of numbers in a word.
#[inline(always)]
fn join_row_of<const PER_WORD: usize, T: Narrow>(
    data: &[T],
    stride: usize,
    words: &mut [u32],
    flip: u32,
) {
    let join = |numbers: [T; PER_WORD]| {
        let bits = 32 / PER_WORD as u32;
        numbers.iter().rev().fold(0, |word, number| word << bits | number.bits()) ^ flip
    };
    // Nearly all rows are those of a whole panel; knowing it spares the compiler's loop its tail.
    if let Ok(words) = <&mut [u32; 32]>::try_from(&mut *words) {
        let row = |i: usize| -> &[T; 32] {
            data[i * stride..].first_chunk().expect("the row lies in memory")
        };
        let rows: [_; PER_WORD] = std::array::from_fn(row);
        // (Into an array of its own: what is written to may overlap nothing that is read.)
        let mut joined = [0; 32];
        for (at, word) in joined.iter_mut().enumerate() {
            *word = join(rows.map(|row| row[at]));
        }
        *words = joined;
        return;
    }
    let rows: [_; PER_WORD] = std::array::from_fn(|i| &data[i * stride..][..words.len()]);
    for (at, word) in words.iter_mut().enumerate() {
        *word = join(rows.map(|row| row[at]));
    }
}

/// Rows of words from the one that is packed to the one whose numbers are asked for. (The processor sees no
/// pattern in their addresses.)
const ROWS_AHEAD: usize = 16;

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
        let steps = words.start * T::PER_WORD..self.steps.len().min(words.end * T::PER_WORD);
        if steps.is_empty() {
            return;
        }
        let (offset, len, stride) = self.steps.run(steps.start, steps.len());
        let whole = if len == steps.len() { len / T::PER_WORD } else { 0 };
        let (full, rest) = panel.split_at_mut(whole * width);
        let start = self.start + offset;
        let is_done = if stride == 1 {
            self.turn(offsets, start, width, full)
        } else {
            self.join_rows(offsets, (start, stride), width, full)
        };
        if is_done {
            self.join(offsets, steps.start + whole * T::PER_WORD..steps.end, width, rest);
        } else {
            self.join(offsets, steps, width, panel);
        }
    }

    fn packs_rows(&self) -> bool {
        self.items.stride() == Some(1) && self.steps.stride().is_some()
    }

    fn pack_panels(
        &self,
        items: Range<usize>,
        words: Range<usize>,
        (width, panel): (usize, usize),
        packed: &mut [u32],
    ) {
        let steps = words.start * T::PER_WORD..self.steps.len().min(words.end * T::PER_WORD);
        let (true, Some(stride)) = (self.packs_rows(), self.steps.stride()) else {
            return each_panel(self, items, words, (width, panel), packed);
        };
        let flip = self.flip_all();
        let whole = steps.len() / T::PER_WORD;
        let cols = || items.clone().step_by(width).enumerate();
        self.isa.run(
            #[inline(always)]
            || {
                for row in 0..whole {
                    let from = self.start + (steps.start + row * T::PER_WORD) * stride;
                    for (i, first) in cols() {
                        let words = &mut packed[i * panel + row * width..][..width];
                        let data = &self.data[from + first..];
                        if items.end - first >= width {
                            T::join_row(data, stride, words, flip);
                        } else {
                            let (words, beyond) = words.split_at_mut(items.end - first);
                            T::join_row(data, stride, words, flip);
                            beyond.fill(0);
                        }
                    }
                }
            },
        );
        let last = words.start + whole..words.end;
        if !last.is_empty() {
            for (i, first) in cols() {
                let row = &mut packed[i * panel + whole * width..][..last.len() * width];
                self.pack(first..items.end.min(first + width), last.clone(), width, row);
            }
        }
    }

    fn pack_blocks(
        &self,
        items: Range<usize>,
        words: Range<usize>,
        height: usize,
        panel: &mut [u32],
    ) {
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        each_block(height, words, panel, |words, block| {
            let numbers = BLOCK * T::PER_WORD;
            let (offset, len, stride) = self.steps.run(words.start * T::PER_WORD, numbers);
            if stride == 1 && len == numbers {
                self.copy_block(offsets, self.start + offset, block);
            } else {
                turn_block(self, self.isa, items.clone(), words, block);
            }
        });
    }
}

impl<T: Narrow> JoinedSource<'_, T> {
    /// The change for all numbers of a word.
    fn flip_all(&self) -> u32 {
        let bits = 8 * size_of::<T>();
        (0..T::PER_WORD).fold(0, |flip, i| flip | self.flip << (i * bits))
    }

    /// Packs whole words of steps that are neighbours, the first of them at `start`, if there are
    /// instructions to turn rows into columns; otherwise returns false.
    fn turn(&self, offsets: &[usize], start: usize, width: usize, panel: &mut [u32]) -> bool {
        let steps = panel.len() / width;
        let padding = width - offsets.len();
        let rows = Rows { data: self.data, offsets, start, steps, padding, pitch: width };
        let is_done = rows.transpose(self.isa, panel);
        let flip = self.flip_all();
        if is_done && flip != 0 {
            for row in panel.chunks_exact_mut(width) {
                row[..offsets.len()].iter_mut().for_each(|word| *word ^= flip);
            }
        }
        is_done
    }

    /// Packs whole words of steps that are `stride` apart, the first of them at `start`, if items are
    /// neighbours; otherwise returns false.
    fn join_rows(
        &self,
        offsets: &[usize],
        (start, stride): (usize, usize),
        width: usize,
        panel: &mut [u32],
    ) -> bool {
        let (first, Items::Row(items)) = Items::at(offsets) else { return false };
        let data = &self.data[start + first..];
        let flip = self.flip_all();
        self.isa.run(
            #[inline(always)]
            || {
                for (row, words) in panel.chunks_exact_mut(width).enumerate() {
                    let at = row * T::PER_WORD * stride;
                    for i in 0..T::PER_WORD {
                        let ahead = at + (ROWS_AHEAD * T::PER_WORD + i) * stride;
                        prefetch_far(data.as_ptr().wrapping_add(ahead).cast());
                    }
                    let (words, beyond) = words.split_at_mut(items);
                    T::join_row(&data[at..], stride, words, flip);
                    beyond.fill(0);
                }
            },
        );
        true
    }

    /// Writes a block of rows whose words lie as they are to be, the first of them at `start`.
    fn copy_block(&self, offsets: &[usize], start: usize, block: &mut [u32]) {
        let flip = self.flip_all();
        for (row, offset) in block.as_chunks_mut::<BLOCK>().0.iter_mut().zip(offsets) {
            let numbers = &self.data[start + offset..][..BLOCK * T::PER_WORD];
            let words: &mut [u8; 4 * BLOCK] =
                bytes_of_mut(row).try_into().expect("a word has four bytes");
            *words = *bytes_of(numbers).first_chunk().expect("as many bytes as words have");
            if flip != 0 {
                row.iter_mut().for_each(|word| *word ^= flip);
            }
        }
    }

    /// Packs steps, of which the first begins a word.
    fn join(&self, offsets: &[usize], steps: Range<usize>, width: usize, panel: &mut [u32]) {
        let bits = 8 * size_of::<T>();
        let (first, items) = Items::at(offsets);
        panel.fill(0);
        for (i, step) in steps.enumerate() {
            let (word, shift) = (i / T::PER_WORD, i % T::PER_WORD * bits);
            let start = self.start + self.steps.offset(step);
            let row = &mut panel[word * width..][..offsets.len()];
            let join = |word: &mut u32, number: T| *word |= (number.bits() ^ self.flip) << shift;
            if let Items::Row(count) = items {
                let from = &self.data[start + first..][..count];
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
