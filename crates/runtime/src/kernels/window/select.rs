//! The gradient of pooling: each window sends a number to the element that it selects.

use std::array;
use std::ops::Range;

use half::{bf16, f16};

use super::super::bytes::{cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::isa::Isa;
use super::super::number::{Fold, Number, NumberType};
use super::{Positions, WindowDim, Windows};
use crate::Threads;
use crate::bounds::Lookout;

/// When the element that is selected so far stays selected beside another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// While it is at least as large.
    Ge,
    /// While it is larger.
    Gt,
    /// While it is at most as large.
    Le,
    /// While it is smaller.
    Lt,
}

/// For each position of a window over `operand`, adds an element of `source` to the result, at
/// the place of the window's element that is selected.
#[derive(Clone, Debug)]
pub struct SelectAndScatter {
    /// The outer part of the array that windows do not leave.
    batches: usize,
    /// The sizes of one batch: elements of the operand, and of the source.
    operand_size: usize,
    source_size: usize,
    windows: Windows,
    ty: Float,
    select: Select,
}

/// The types that have gradients; code for all others, which nobody runs, takes minutes to compile.
#[derive(Clone, Copy, Debug)]
enum Float {
    F16,
    BF16,
    F32,
    F64,
}

/// Neighbours that are compared together.
const WIDTH: usize = 32;
/// The most places of a window for which all of them are written for [`WIDTH`] neighbours, each that is selected being changed:
/// of more, it takes longer than to write what is selected alone.
const MOST_WRITTEN: usize = 9;

impl SelectAndScatter {
    /// A plan for a window over the operand, whose positions are the source's elements. `None` if
    /// there is none but the general way: windows of very many points, numbers that are not floats,
    /// or anything but sums.
    pub fn new(window: &[WindowDim], ty: NumberType, select: Select, fold: Fold) -> Option<Self> {
        let ty = match (ty, fold) {
            (NumberType::F16, Fold::Add) => Float::F16,
            (NumberType::BF16, Fold::Add) => Float::BF16,
            (NumberType::F32, Fold::Add) => Float::F32,
            (NumberType::F64, Fold::Add) => Float::F64,
            _ => return None,
        };
        let outer = window.iter().take_while(|dim| dim.is_trivial()).count();
        let product =
            |dims: &[WindowDim], size: fn(&WindowDim) -> usize| dims.iter().map(size).product();
        // Without a window, dimensions are all lanes; without positions, sizes mean nothing.
        let is_whole = outer == window.len() || window.iter().any(|dim| dim.positions == 0);
        let outer = if is_whole { 0 } else { outer };
        let (batch, inner) = window.split_at(outer);
        Some(SelectAndScatter {
            batches: product(batch, |dim| dim.base),
            operand_size: product(inner, |dim| dim.base),
            source_size: product(inner, |dim| dim.positions),
            windows: Windows::new(inner)?,
            ty,
            select,
        })
    }

    /// Adds `source` to `to`, which is `init` everywhere at first. All are bytes of elements of
    /// the type.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(
        &self,
        operand: &[u8],
        source: &[u8],
        init: &[u8],
        to: &mut [u8],
        threads: Threads<'_>,
    ) {
        match self.ty {
            Float::F16 => self.selected::<f16>(operand, source, init, to, threads),
            Float::BF16 => self.selected::<bf16>(operand, source, init, to, threads),
            Float::F32 => self.selected::<f32>(operand, source, init, to, threads),
            Float::F64 => self.selected::<f64>(operand, source, init, to, threads),
        }
    }

    fn selected<T: Number>(
        &self,
        operand: &[u8],
        source: &[u8],
        init: &[u8],
        to: &mut [u8],
        threads: Threads<'_>,
    ) {
        let (operand, source, to) = (cast::<T>(operand), cast::<T>(source), cast_mut::<T>(to));
        to.fill(cast(init)[0]);
        match self.select {
            Select::Ge => self.typed(operand, source, to, |a, b| a >= b, threads),
            Select::Gt => self.typed(operand, source, to, |a, b| a > b, threads),
            Select::Le => self.typed(operand, source, to, |a, b| a <= b, threads),
            Select::Lt => self.typed(operand, source, to, |a, b| a < b, threads),
        }
    }

    fn typed<T: Number>(
        &self,
        operand: &[T],
        source: &[T],
        to: &mut [T],
        stays: impl Fn(T, T) -> bool + Sync,
        threads: Threads<'_>,
    ) {
        // Windows overlap, but not from batch to batch, nor from lane to lane.
        let (to, isa, lanes) = (Disjoint::new(to), Isa::best(), self.windows.lanes);
        let bands = lanes.div_ceil(WIDTH).max(1);
        threads.for_each(self.batches * bands, &|task| {
            let (batch, first) = (task / bands, task % bands * WIDTH);
            let operand = &operand[batch * self.operand_size..][..self.operand_size];
            let source = &source[batch * self.source_size..][..self.source_size];
            let to = BatchResult { to: &to, start: batch * self.operand_size };
            self.band(isa, (operand, source), &to, first..lanes.min(first + WIDTH), &stays);
        });
    }

    /// Treats some neighbouring lanes.
    fn band<T: Number>(
        &self,
        isa: Isa,
        (operand, source): (&[T], &[T]),
        to: &BatchResult<'_, T>,
        band: Range<usize>,
        stays: &impl Fn(T, T) -> bool,
    ) {
        let (lanes, width) = (self.windows.lanes, band.len());
        let mut lookout = Lookout::default();
        self.windows.each(0..self.windows.rows(), &mut |positions, places| {
            let Positions { number, count, start, apart } = positions;
            let source = &source[number * lanes..][..count * lanes];
            // What windows move by one element of, or have single numbers, is as neighbours are.
            let is_line = width == lanes && (apart == lanes || lanes == 1 && apart > 0);
            let (rows, row) = if is_line { (1, count * lanes) } else { (count, width) };
            let step = if lanes == 1 && is_line { apart } else { 1 };
            isa.run(
                #[inline(always)]
                || {
                    for i in 0..rows {
                        let first = start + i * apart + band.start;
                        let values = &source[i * lanes + band.start..][..row];
                        for (i, values) in values.chunks(WIDTH).enumerate() {
                            if !lookout.goes_on(places.len() * values.len()) {
                                return;
                            }
                            let from = Neighbours { start: first + i * WIDTH * step, step };
                            from.scatter(operand, values, places, to, stays);
                        }
                    }
                },
            );
        });
    }
}

/// Where the windows of some neighbours, up to [`WIDTH`], have their first elements.
#[derive(Clone, Copy)]
struct Neighbours {
    /// The first one's.
    start: usize,
    /// From each to the next.
    step: usize,
}

impl Neighbours {
    /// Adds `values` to the elements that are selected, for each neighbour, of those at `places` behind its first.
    #[inline(always)]
    fn scatter<T: Number>(
        self,
        operand: &[T],
        values: &[T],
        places: &[usize],
        to: &BatchResult<'_, T>,
        stays: &impl Fn(T, T) -> bool,
    ) {
        let Neighbours { start, step } = self;
        let Some(&last) = places.last() else { return };
        // (What is beside the elements of the last windows is compared in vain, if it is there.)
        let is_room = |elements: usize| operand.len() - start - last >= elements;
        let selected = match step {
            1 if is_room(WIDTH) => {
                let selected = select(places, stays, |place| {
                    *operand[start + place..].first_chunk().expect("room for vectors")
                });
                if let Some(values) = values.first_chunk()
                    && places.len() <= MOST_WRITTEN
                {
                    return to.add(values, &selected, (start, places));
                }
                selected
            }
            2 if is_room(2 * WIDTH) => select(places, stays, |place| {
                let from: &[T; 2 * WIDTH] =
                    operand[start + place..].first_chunk().expect("room for vectors");
                array::from_fn(|lane| from[2 * lane])
            }),
            _ => {
                let most = (values.len() - 1) * step;
                let at: [usize; WIDTH] = array::from_fn(|lane| (lane * step).min(most));
                select(places, stays, |place| {
                    let from = &operand[start + place..][..most + 1];
                    // SAFETY: none is further than the last.
                    at.map(|at| unsafe { *from.get_unchecked(at) })
                })
            }
        };
        for (lane, (value, &selected)) in values.iter().zip(&selected).enumerate() {
            let place = to.start + start + lane * step + places[selected as usize];
            // SAFETY: these elements of this batch belong to one task.
            let to = unsafe { to.to.part(place, 1) };
            to[0] = to[0].add(*value);
        }
    }
}

/// Which of the elements at `places` each of some neighbours selects, by number. `at` gives those at a place.
#[inline(always)]
fn select<T: Number>(
    places: &[usize],
    stays: &impl Fn(T, T) -> bool,
    at: impl Fn(usize) -> [T; WIDTH],
) -> [u32; WIDTH] {
    let (mut best, mut selected) = (at(places[0]), [0; WIDTH]);
    for (i, &place) in (1..).zip(&places[1..]) {
        let new = at(place);
        for lane in 0..WIDTH {
            let keeps = stays(best[lane], new[lane]);
            best[lane] = if keeps { best[lane] } else { new[lane] };
            selected[lane] = if keeps { selected[lane] } else { i };
        }
    }
    selected
}

/// The result of a batch, and where it begins.
struct BatchResult<'a, T> {
    to: &'a Disjoint<'a, T>,
    start: usize,
}

impl<T: Number> BatchResult<'_, T> {
    /// Adds values to the elements that neighbours select, by writing all of them.
    #[inline(always)]
    fn add(
        &self,
        values: &[T; WIDTH],
        selected: &[u32; WIDTH],
        (start, places): (usize, &[usize]),
    ) {
        for (i, place) in (0..).zip(places) {
            // SAFETY: these elements of this batch belong to one task.
            let to = unsafe { self.to.part(self.start + start + place, WIDTH) };
            for lane in 0..WIDTH {
                let sum = to[lane].add(values[lane]);
                to[lane] = if selected[lane] == i { sum } else { to[lane] };
            }
        }
    }
}
