//! Copies of operands in the order in which tiles read them.
//!
//! A panel holds some items (rows of lhs, columns of rhs) side by side: number `i` of step `k` is at
//! `k * width + i`. What an operand is in memory, and of what type, matters here alone.

use std::ops::Range;

use super::axis::Axis;
use super::engine::Shared;
use super::number::Element;
use super::tile::BLOCK;
use super::transpose::Rows;
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;
use crate::kernels::isa::prefetch_far;
use crate::kernels::scratch;

/// No tile has more items of an operand.
pub(super) const MAX_WIDTH: usize = 64;

/// An operand of a product.
pub(super) trait Source<W>: Sync {
    /// Packs `steps` of `items` (at most `width`, itself at most `MAX_WIDTH`) into a panel, whose width
    /// beyond the items is filled with zeros.
    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [W]);

    /// Packs `steps` of `items` into panels of `width` items, one after the other and `panel` words long, of
    /// which those beyond the steps are not written.
    fn pack_panels(
        &self,
        items: Range<usize>,
        steps: Range<usize>,
        (width, panel): (usize, usize),
        packed: &mut [W],
    ) {
        each_panel(self, items, steps, (width, panel), packed);
    }

    /// Whether [`pack_panels`](Source::pack_panels) is faster for many panels, since it reads whole rows.
    fn packs_rows(&self) -> bool {
        false
    }

    /// Packs `steps` of `items` for tiles that take [`BLOCK`] steps at once, and have `height` rows: step `k` of
    /// item `i` is at `(k / BLOCK * height + i) * BLOCK + k % BLOCK`. Steps that the last block lacks are zeros;
    /// rows without items are not written.
    fn pack_blocks(&self, items: Range<usize>, steps: Range<usize>, height: usize, panel: &mut [W])
    where
        W: Plain + Default,
    {
        each_block(height, steps, panel, |steps, block| {
            turn_block(self, Isa::best(), items.clone(), steps, block);
        });
    }

    /// Where the operand lies, if its words can be read as they are.
    fn in_place(&self) -> Option<InPlace<'_, W>> {
        None
    }

    /// Whether a few steps of a panel are packed as fast as all of them, each.
    fn packs_in_parts(&self) -> bool {
        true
    }
}

/// [`Source::pack_panels`], a panel after the other.
pub(super) fn each_panel<W>(
    source: &(impl Source<W> + ?Sized),
    items: Range<usize>,
    steps: Range<usize>,
    (width, panel): (usize, usize),
    packed: &mut [W],
) {
    for (panel, first) in packed.chunks_exact_mut(panel).zip(items.clone().step_by(width)) {
        let panel = &mut panel[..width * steps.len()];
        source.pack(first..items.end.min(first + width), steps.clone(), width, panel);
    }
}

/// Calls `fill` with the steps and the place of each block of a panel ([`Source::pack_blocks`]).
pub(super) fn each_block<W>(
    height: usize,
    steps: Range<usize>,
    panel: &mut [W],
    mut fill: impl FnMut(Range<usize>, &mut [W]),
) {
    let blocks = panel.chunks_exact_mut((height * BLOCK).max(1));
    for (block, first) in blocks.zip((steps.start..).step_by(BLOCK)) {
        fill(first.min(steps.end)..steps.end.min(first + BLOCK), block);
    }
}

/// Packs a block of a panel ([`Source::pack_blocks`]), of which there are these steps, as a panel of a right
/// operand, whose rows are its columns.
pub(super) fn turn_block<W: Plain + Default>(
    source: &(impl Source<W> + ?Sized),
    isa: Isa,
    items: Range<usize>,
    steps: Range<usize>,
    block: &mut [W],
) {
    let (width, count) = (items.len(), steps.len());
    let mut panel = [W::default(); BLOCK * MAX_WIDTH];
    let panel = &mut panel[..BLOCK * width];
    source.pack(items, steps, width, &mut panel[..count * width]);
    let offsets: [usize; BLOCK] = std::array::from_fn(|k| k * width);
    let (data, offsets) = (&*panel, &offsets[..]);
    let columns = Rows { data, offsets, start: 0, steps: width, padding: 0, pitch: BLOCK };
    if !columns.transpose(isa, block) {
        for (i, row) in block.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate().take(width) {
            row.iter_mut().zip(offsets).for_each(|(word, at)| *word = data[at + i]);
        }
    }
}

/// An operand in memory: a word is at the offsets of its item and its step from the start.
#[derive(Clone, Copy)]
pub(super) struct InPlace<'a, W> {
    pub start: Shared<W>,
    pub items: &'a Axis,
    pub steps: &'a Axis,
}

/// Elements of any type that become words.
pub(super) trait Elements<W>: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The same elements, if they are words.
    fn words(&self) -> Option<&[W]>;

    /// The word that an element becomes.
    fn word(&self, at: usize) -> W;

    /// What counts as zero, where a convolution reaches beyond its input.
    fn hole(&self) -> W;

    /// Copies a block. Panics if it is not in memory, or does not fit `to`.
    fn copy(&self, isa: Isa, block: &Block<'_>, to: &mut [W]);
}

/// Elements in memory and where they are to go: that of step `k` and item `i` is at
/// `start + items[i] + k * stride`, and goes to `k * pitch + i`.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub start: usize,
    pub items: Items<'a>,
    pub steps: usize,
    pub stride: usize,
    pub pitch: usize,
    /// Zeros to write after the items of each step.
    pub padding: usize,
}

/// Where items are.
#[derive(Clone, Copy)]
pub(super) enum Items<'a> {
    /// This many neighbours.
    Row(usize),
    /// At these offsets.
    Scattered(&'a [usize]),
}

impl<'a> Items<'a> {
    /// Items at these offsets, and the offset of the first if they are side by side.
    pub(super) fn at(offsets: &'a [usize]) -> (usize, Items<'a>) {
        match offsets.first() {
            Some(&first) if offsets.iter().zip(first..).all(|(&offset, next)| offset == next) => {
                (first, Items::Row(offsets.len()))
            }
            _ => (0, Items::Scattered(offsets)),
        }
    }
}

/// Words of a block that are copied one by one. To turn a block of vectors takes some 28 ns, however few of its words count (three
/// rows of three numbers, a step of a product in each of 24,336 lines: 1120 µs, one by one 497; Zen 5).
const FEW_WORDS: usize = 48;

impl<W: Plain + Default, T: Element<W>> Elements<W> for &[T] {
    fn count(&self) -> usize {
        self.len()
    }

    fn words(&self) -> Option<&[W]> {
        // SAFETY: element and word are the same type.
        T::SAME.then(|| unsafe { &*(std::ptr::from_ref(*self) as *const [W]) })
    }

    fn word(&self, at: usize) -> W {
        self[at].word()
    }

    fn hole(&self) -> W {
        W::default()
    }

    fn copy(&self, isa: Isa, block: &Block<'_>, to: &mut [W]) {
        let Block { start, items, steps, stride, pitch, padding } = *block;
        match items {
            _ if steps == 0 => {}
            Items::Row(1) if pitch == 1 && stride > 1 => copy_item(&self[start..], block, to),
            Items::Row(count) if T::TUNED => isa.run(
                #[inline(always)]
                || copy_rows(&self[start..], count, block, to),
            ),
            Items::Row(count) => copy_rows(&self[start..], count, block, to),
            Items::Scattered(offsets) if stride == 1 && offsets.len() * steps > FEW_WORDS => {
                let rows = Rows { data: self, offsets, start, steps, padding, pitch };
                let done = if T::SAME {
                    rows.transpose(isa, to)
                } else {
                    T::TUNED && convert_and_transpose(&rows, isa, to)
                };
                if !done {
                    transpose(self, offsets, block, to);
                }
            }
            Items::Scattered(offsets) => {
                for (k, row) in to.chunks_mut(pitch).enumerate().take(steps) {
                    let (row, rest) = row.split_at_mut(offsets.len());
                    for (word, offset) in row.iter_mut().zip(offsets) {
                        *word = self[start + offset + k * stride].word();
                    }
                    rest[..padding].fill_with(W::default);
                }
            }
        }
    }
}

/// Copies a single item. (Of rows of one element, the compiler would call what copies any number of bytes.)
#[inline(never)]
fn copy_item<W, T: Element<W>>(data: &[T], block: &Block<'_>, to: &mut [W]) {
    let Block { steps, stride, .. } = *block;
    let from = data[..(steps - 1) * stride + 1].iter().step_by(stride);
    to[..steps].iter_mut().zip(from).for_each(|(word, element)| *word = element.word());
}

/// Copies items that lie side by side.
#[inline(always)]
fn copy_rows<W: Default, T: Element<W>>(data: &[T], items: usize, block: &Block<'_>, to: &mut [W]) {
    let Block { steps, stride, pitch, padding, .. } = *block;
    match items {
        _ if stride == items && pitch == items => convert(&data[..steps * items], to),
        // The widths of rhs panels are few; knowing them spares the compiler's loops their tails.
        32 if pitch == 32 => copy_rows_of::<32, W, T>(data, stride, steps, to),
        16 if pitch == 16 => copy_rows_of::<16, W, T>(data, stride, steps, to),
        _ => {
            for (k, row) in to.chunks_mut(pitch).enumerate().take(steps) {
                let (row, rest) = row.split_at_mut(items);
                convert(&data[k * stride..][..items], row);
                rest[..padding].fill_with(W::default);
            }
        }
    }
}

#[inline(always)]
fn copy_rows_of<const WIDTH: usize, W, T: Element<W>>(
    data: &[T],
    stride: usize,
    steps: usize,
    to: &mut [W],
) {
    // Rows are far apart; the processor sees no pattern in their addresses. They may all belong to one set
    // of the first-level cache, so they are asked for in the second. What lies beyond the block has perhaps
    // been asked for already. (Of rows that are one line, nothing else asks for the line next to it.)
    let ahead_rows = const { if size_of::<[T; WIDTH]>() > 64 { 8 } else { 32 } };
    for (k, row) in to.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate().take(steps) {
        if k + ahead_rows < steps {
            let ahead = data.as_ptr().wrapping_add((k + ahead_rows) * stride);
            for offset in (0..size_of::<[T; WIDTH]>()).step_by(64) {
                prefetch_far(ahead.cast::<u8>().wrapping_add(offset));
            }
        }
        let from: &[T; WIDTH] = data[k * stride..].first_chunk().expect("the row lies in memory");
        convert(from, row);
    }
}

#[inline(always)]
fn convert<W, T: Element<W>>(from: &[T], to: &mut [W]) {
    if T::SAME {
        assert_eq!(from.len(), to.len(), "a word for each element");
        // SAFETY: element and word are the same type, and there are as many of either. (Of a few
        // elements the compiler would copy one by one.)
        unsafe { to.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(from.as_ptr(), to.len()) };
        return;
    }
    for (word, &element) in to.iter_mut().zip(from) {
        *word = element.word();
    }
}

/// Copies items whose steps are neighbours by way of a small block of words, if there are
/// instructions to transpose these; otherwise returns false.
fn convert_and_transpose<W: Plain + Default, T: Element<W>>(
    rows: &Rows<'_, T>,
    isa: Isa,
    to: &mut [W],
) -> bool {
    const STEPS: usize = 64;
    let offsets: [usize; MAX_WIDTH] = std::array::from_fn(|i| i * STEPS);
    let offsets = &offsets[..rows.offsets.len()];
    let mut is_done = true;
    scratch::with(rows.offsets.len() * STEPS, |words: &mut [W]| {
        for first in (0..rows.steps).step_by(STEPS) {
            let steps = STEPS.min(rows.steps - first);
            isa.run(
                #[inline(always)]
                || {
                    for (offset, words) in rows.offsets.iter().zip(words.as_chunks_mut::<STEPS>().0)
                    {
                        convert(&rows.data[offset + rows.start + first..][..steps], words);
                    }
                },
            );
            let (data, padding, pitch) = (&*words, rows.padding, rows.pitch);
            let block = Rows { data, offsets, start: 0, steps, padding, pitch };
            if !block.transpose(isa, &mut to[first * pitch..]) {
                is_done = false;
                return;
            }
        }
    });
    is_done
}

/// Copies items whose steps are neighbours: some steps at a time, so that an item's cache line is
/// used up before it goes.
fn transpose<W: Default, T: Element<W>>(
    data: &[T],
    offsets: &[usize],
    block: &Block<'_>,
    to: &mut [W],
) {
    const STEPS: usize = 16;
    let Block { start, steps, pitch, padding, .. } = *block;
    for first in (0..steps).step_by(STEPS) {
        let to = &mut to[first * pitch..];
        let len = STEPS.min(steps - first);
        for (i, offset) in offsets.iter().enumerate() {
            let from = &data[offset + start + first..][..len];
            let column = to[i..].iter_mut().step_by(pitch);
            column.zip(from).for_each(|(word, &element)| *word = element.word());
        }
        for row in to.chunks_mut(pitch).take(len) {
            row[offsets.len()..][..padding].fill_with(W::default);
        }
    }
}

/// An operand whose items and steps are dimensions in memory.
pub(super) struct Strided<'a, W> {
    isa: Isa,
    data: &'a dyn Elements<W>,
    start: usize,
    items: &'a Axis,
    steps: &'a Axis,
}

impl<'a, W> Strided<'a, W> {
    /// The operand that begins at `start`. Panics if it does not lie within `data`.
    pub(super) fn new(
        isa: Isa,
        data: &'a dyn Elements<W>,
        start: usize,
        items: &'a Axis,
        steps: &'a Axis,
    ) -> Self {
        check_bounds(data.count(), start, items, steps);
        Strided { isa, data, start, items, steps }
    }
}

/// Panics if not all items and steps from `start` on are among `count` elements.
pub(super) fn check_bounds(count: usize, start: usize, items: &Axis, steps: &Axis) {
    if items.len() > 0 && steps.len() > 0 {
        let last = start.checked_add(items.last()).and_then(|last| last.checked_add(steps.last()));
        assert!(last.is_some_and(|last| last < count), "the operand lies in its memory");
    }
}

impl<W: Plain + Default> Strided<'_, W> {
    /// Packs a block of items at these offsets, whose steps are runs of neighbours.
    #[inline(always)]
    fn copy_block(&self, words: &[W], offsets: &[usize], steps: Range<usize>, block: &mut [W]) {
        let rows = &mut block.as_chunks_mut::<BLOCK>().0[..offsets.len()];
        let mut step = steps.start;
        while step < steps.end {
            let (offset, len, _) = self.steps.run(step, steps.end - step);
            let (at, from) = (step - steps.start, self.start + offset);
            for (row, item) in rows.iter_mut().zip(offsets) {
                let words = &words[item + from..][..len];
                match words.first_chunk::<BLOCK>() {
                    Some(words) => *row = *words,
                    None => {
                        row[at..][..len].iter_mut().zip(words).for_each(|(to, &word)| *to = word)
                    }
                }
            }
            step += len;
        }
        if steps.len() < BLOCK {
            rows.iter_mut().for_each(|row| row[steps.len()..].fill(W::default()));
        }
    }
}

impl<W: Plain + Default> Source<W> for Strided<'_, W> {
    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [W]) {
        let padding = width - items.len();
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        let (first, items) = Items::at(offsets);
        let (mut step, mut rest) = (steps.start, panel);
        while step < steps.end {
            let (offset, steps, stride) = self.steps.run(step, steps.end - step);
            let (now, later) = rest.split_at_mut(steps * width);
            let start = self.start + first + offset;
            let block = Block { start, items, steps, stride, pitch: width, padding };
            self.data.copy(self.isa, &block, now);
            (step, rest) = (step + steps, later);
        }
    }

    fn pack_blocks(
        &self,
        items: Range<usize>,
        steps: Range<usize>,
        height: usize,
        panel: &mut [W],
    ) {
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        let words = self.data.words().filter(|_| self.steps.run(steps.start, 1).2 == 1);
        each_block(height, steps, panel, |steps, block| match words {
            Some(words) => self.isa.run(
                #[inline(always)]
                || self.copy_block(words, offsets, steps, block),
            ),
            None => turn_block(self, self.isa, items.clone(), steps, block),
        });
    }

    fn in_place(&self) -> Option<InPlace<'_, W>> {
        let start = Shared(self.data.words()?.as_ptr().wrapping_add(self.start).cast_mut());
        Some(InPlace { start, items: self.items, steps: self.steps })
    }
}
