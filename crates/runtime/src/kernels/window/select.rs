//! The gradient of pooling: each window sends a number to the element that it selects.

use half::{bf16, f16};

use super::super::bytes::{cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::isa::Isa;
use super::super::number::{Fold, Number, NumberType};
use super::{WindowDim, Windows};
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

/// Neighbouring lanes that are compared together.
const WIDTH: usize = 32;

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
        let (to, isa) = (Disjoint::new(to), Isa::best());
        let bands = self.windows.lanes.div_ceil(WIDTH).max(1);
        threads.for_each(self.batches * bands, &|task| {
            let (batch, first) = (task / bands, task % bands * WIDTH);
            let operand = &operand[batch * self.operand_size..][..self.operand_size];
            let source = &source[batch * self.source_size..][..self.source_size];
            let to = BatchResult { to: &to, start: batch * self.operand_size };
            match (self.windows.lanes - first).min(WIDTH) {
                WIDTH => self.band::<T, WIDTH>(isa, operand, source, &to, first, &stays),
                width => (first..first + width).for_each(|lane| {
                    self.band::<T, 1>(isa, operand, source, &to, lane, &stays);
                }),
            }
        });
    }

    /// Treats `N` neighbouring lanes.
    fn band<T: Number, const N: usize>(
        &self,
        isa: Isa,
        operand: &[T],
        source: &[T],
        to: &BatchResult<'_, T>,
        first: usize,
        stays: &impl Fn(T, T) -> bool,
    ) {
        let lanes = self.windows.lanes;
        let mut lookout = Lookout::default();
        self.windows.each(0..self.windows.rows(), &mut |positions, places| {
            let source = &source[positions.number * lanes + first..];
            isa.run(
                #[inline(always)]
                || {
                    for (i, start) in positions.starts().enumerate() {
                        let values = source[i * lanes..].first_chunk().expect("whole lanes");
                        if !lookout.goes_on(places.len() * N) {
                            return;
                        }
                        scatter::<T, N>(operand, values, (start + first, places), to, stays);
                    }
                },
            );
        });
    }
}

/// Adds `values` to the elements that are selected, in each lane, of those at `places` from `start`
/// on.
#[inline(always)]
fn scatter<T: Number, const N: usize>(
    operand: &[T],
    values: &[T; N],
    (start, places): (usize, &[usize]),
    to: &BatchResult<'_, T>,
    stays: &impl Fn(T, T) -> bool,
) {
    let Some((place, others)) = places.split_first() else { return };
    let at = |place: &usize| start + place;
    let mut best: [T; N] = *operand[at(place)..].first_chunk().expect("whole lanes");
    let mut selected = [0u32; N];
    for (i, place) in (1..).zip(others) {
        let new: &[T; N] = operand[at(place)..].first_chunk().expect("whole lanes");
        for lane in 0..N {
            let keeps = stays(best[lane], new[lane]);
            best[lane] = if keeps { best[lane] } else { new[lane] };
            selected[lane] = if keeps { selected[lane] } else { i };
        }
    }
    for (i, place) in (0..).zip(places) {
        // SAFETY: these lanes of this batch belong to one task.
        let to = unsafe { to.to.part(to.start + at(place), N) };
        for lane in 0..N {
            let sum = to[lane].add(values[lane]);
            to[lane] = if selected[lane] == i { sum } else { to[lane] };
        }
    }
}

/// Where the result of one batch begins.
struct BatchResult<'a, T> {
    to: &'a Disjoint<'a, T>,
    start: usize,
}
