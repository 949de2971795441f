//! Copies of operands in the order in which tiles read them.
//!
//! A panel holds some items (rows of lhs, columns of rhs) side by side: number `i` of step `k` is at
//! `k * width + i`. What an operand is in memory, and of what type, matters here alone.

use std::ops::Range;

use super::axis::Axis;
use super::isa::Isa;
use super::transpose::Rows;
use crate::kernels::scratch::Pod;

/// No tile has more items of an operand.
pub(super) const MAX_WIDTH: usize = 64;

/// The place of an item that has no element for a step: its number is zero.
pub(super) const NOWHERE: usize = usize::MAX;

/// An operand of a product.
pub(super) trait Source<W>: Sync {
    /// Packs `steps` of `items` (at most `width`, itself at most `MAX_WIDTH`) into a panel; the rest
    /// of its width is zeros.
    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [W]);

    /// Where the operand lies, if its words can be read as they are.
    fn plain(&self) -> Option<Plain<'_, W>> {
        None
    }
}

/// An operand in memory: a word is at the offsets of its item and its step from the start.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a, W> {
    pub start: *const W,
    pub items: &'a Axis,
    pub steps: &'a Axis,
}

/// An element of an operand that becomes a word by itself.
pub(super) trait Element<W>: Pod {
    /// The word.
    fn word(self) -> W;
    /// Whether element and word are the same bits.
    const SAME: bool;
}

/// An element of a result, made of a sum.
pub(super) trait Output<A>: Pod {
    /// The element.
    fn from_sum(sum: A) -> Self;
    /// Whether sum and element are the same bits.
    const SAME: bool;
}

macro_rules! outputs {
    ($($from:ty => $to:ty, $same:literal: |$x:ident| $element:expr;)*) => { $(
        impl Output<$from> for $to {
            #[inline(always)]
            fn from_sum($x: $from) -> $to {
                $element
            }
            const SAME: bool = $same;
        }
    )* };
}
outputs! {
    f32 => f32, true: |x| x;
    f64 => f64, true: |x| x;
}

macro_rules! elements {
    ($($from:ty => $to:ty, $same:literal: |$x:ident| $word:expr;)*) => { $(
        impl Element<$to> for $from {
            #[inline(always)]
            fn word(self) -> $to {
                let $x = self;
                $word
            }
            const SAME: bool = $same;
        }
    )* };
}
elements! {
    f32 => f32, true: |x| x;
    f64 => f64, true: |x| x;
    i32 => i32, true: |x| x;
    i64 => i64, true: |x| x;
}

/// An operand whose items and steps are dimensions in memory.
pub(super) struct Strided<'a, T> {
    isa: Isa,
    data: &'a [T],
    items: &'a Axis,
    steps: &'a Axis,
}

impl<'a, T: Pod> Strided<'a, T> {
    /// The operand that begins where `data` does. Panics if it does not end there, too.
    pub(super) fn new(isa: Isa, data: &'a [T], items: &'a Axis, steps: &'a Axis) -> Self {
        if items.len() > 0 && steps.len() > 0 {
            assert!(items.last() + steps.last() < data.len(), "the operand lies in its memory");
        }
        Strided { isa, data, items, steps }
    }
}

impl<W: Pod + Default, T: Element<W>> Source<W> for Strided<'_, T> {
    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [W]) {
        let mut offsets = [0; MAX_WIDTH];
        let offsets = &mut offsets[..items.len()];
        self.items.offsets(items.start, offsets);
        let packer = Packer::new(self.isa, self.data, offsets, width);
        let (mut step, mut rest) = (steps.start, panel);
        while step < steps.end {
            let (start, len, stride) = self.steps.run(step, steps.end - step);
            let (now, later) = rest.split_at_mut(len * width);
            packer.pack(start, stride, now);
            (step, rest) = (step + len, later);
        }
    }

    fn plain(&self) -> Option<Plain<'_, W>> {
        let start = self.data.as_ptr().cast();
        T::SAME.then_some(Plain { start, items: self.items, steps: self.steps })
    }
}

/// Packs items at given places.
pub(super) struct Packer<'a, T> {
    isa: Isa,
    data: &'a [T],
    offsets: &'a [usize],
    width: usize,
    layout: Layout,
}

/// How the items lie.
#[derive(Clone, Copy)]
enum Layout {
    /// Side by side.
    Row,
    /// Anywhere.
    Scattered,
}

impl<'a, T: Pod> Packer<'a, T> {
    /// For items at these offsets in `data`, before those of steps are added.
    pub(super) fn new(isa: Isa, data: &'a [T], offsets: &'a [usize], width: usize) -> Self {
        let row = offsets[0] != NOWHERE
            && offsets.iter().enumerate().all(|(i, &offset)| offset == offsets[0].wrapping_add(i));
        let layout = if row { Layout::Row } else { Layout::Scattered };
        Packer { isa, data, offsets, width, layout }
    }

    /// Fills a panel with steps of which the first is at `start` and each next `stride` further.
    pub(super) fn pack<W: Pod + Default>(&self, start: usize, stride: usize, panel: &mut [W])
    where
        T: Element<W>,
    {
        let Packer { isa, data, offsets, width, layout } = *self;
        match layout {
            Layout::Row => isa.run(
                #[inline(always)]
                || copy_rows(&data[start + offsets[0]..], offsets.len(), stride, width, panel),
            ),
            Layout::Scattered if stride == 1 => {
                let (len, padding) = (panel.len() / width, width - offsets.len());
                let rows = Rows { data, offsets, start, len, padding, pitch: width };
                if !(T::SAME && rows.transpose(isa, panel)) {
                    transpose_any(data, offsets, start, width, panel);
                }
            }
            Layout::Scattered => gather(data, offsets, start, stride, width, panel),
        }
    }
}

/// Packs items that lie side by side.
#[inline(always)]
fn copy_rows<W: Default, T: Element<W>>(
    data: &[T],
    items: usize,
    stride: usize,
    width: usize,
    panel: &mut [W],
) {
    // The widths of rhs panels are few; knowing them spares the compiler's loops their tails.
    match (items, width) {
        (32, 32) => copy_rows_of::<32, W, T>(data, stride, panel),
        (16, 16) => copy_rows_of::<16, W, T>(data, stride, panel),
        _ => {
            for (k, row) in panel.chunks_exact_mut(width).enumerate() {
                let (row, padding) = row.split_at_mut(items);
                for (word, &x) in row.iter_mut().zip(&data[k * stride..][..items]) {
                    *word = x.word();
                }
                padding.fill_with(W::default);
            }
        }
    }
}

#[inline(always)]
fn copy_rows_of<const WIDTH: usize, W, T: Element<W>>(data: &[T], stride: usize, panel: &mut [W]) {
    for (k, row) in panel.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        let from: &[T; WIDTH] = data[k * stride..].first_chunk().expect("the row lies in memory");
        for i in 0..WIDTH {
            row[i] = from[i].word();
        }
    }
}

/// Packs items whose steps are neighbours: in blocks of steps, so that an item's cache line is used
/// up before it goes.
fn transpose_any<W: Default, T: Element<W>>(
    data: &[T],
    offsets: &[usize],
    start: usize,
    width: usize,
    panel: &mut [W],
) {
    const BLOCK: usize = 16;
    for (block, panel) in panel.chunks_mut(BLOCK * width).enumerate() {
        let (start, len) = (start + block * BLOCK, panel.len() / width);
        for i in 0..width {
            let column = panel.iter_mut().skip(i).step_by(width);
            match offsets.get(i) {
                Some(&offset) if offset != NOWHERE => {
                    let from = &data[offset + start..][..len];
                    column.zip(from).for_each(|(word, &x)| *word = x.word());
                }
                _ => column.for_each(|word| *word = W::default()),
            }
        }
    }
}

/// Packs items anywhere.
fn gather<W: Default, T: Element<W>>(
    data: &[T],
    offsets: &[usize],
    start: usize,
    stride: usize,
    width: usize,
    panel: &mut [W],
) {
    for (k, row) in panel.chunks_exact_mut(width).enumerate() {
        let start = start + k * stride;
        for (i, word) in row.iter_mut().enumerate() {
            *word = match offsets.get(i) {
                Some(&offset) if offset != NOWHERE => data[offset + start].word(),
                _ => W::default(),
            };
        }
    }
}
