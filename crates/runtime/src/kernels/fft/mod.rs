//! Discrete Fourier transforms over the last one to three dimensions.
//!
//! Many short lines are transformed side by side (`side.rs`), the more so along dimensions before the
//! last, where they lie like that. Others are led through `rustfft`; those that are not contiguous are
//! copied to and fro several at a time, so that whole cache lines are used. Real lines are complex
//! ones of half the length there (`real.rs`).

mod convolved;
mod lanes;
mod odd;
mod real;
mod side;
mod spectrum;
mod stages;

use std::sync::{Arc, OnceLock};

use helio_fft::num_complex::Complex;
use helio_fft::{Fft as Lines, FftDirection, Planned};
use helio_limits::Reservation;

use super::bytes::{
    Plain, Scratch, bytes_of, bytes_of_mut, cast, cast_mut, element_count, scratch_for,
};
use super::disjoint::Disjoint;
use super::isa::vectorised;
use super::scratch;
use crate::{Threads, bounds};
use real::RealLines;
use side::Side;

/// Which transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftKind {
    /// Complex to complex, unscaled.
    Forward,
    /// Complex to complex, divided by the number of points.
    Inverse,
    /// Real to the first half of its spectrum, unscaled.
    RealForward,
    /// Half a spectrum to real, divided by the number of points.
    RealInverse,
}

/// A transform of arrays of some sizes. What `rustfft` plans is planned at the first run, since it
/// takes longer than a compilation should.
#[derive(Clone)]
pub struct Fft {
    kind: FftKind,
    /// The product of the sizes of dimensions that are not transformed.
    batch: usize,
    /// The sizes of transformed dimensions, in the time domain.
    lengths: Vec<usize>,
    single: OnceLock<Arc<Plans<f32>>>,
    double: OnceLock<Arc<Plans<f64>>>,
}

/// Plans for lines.
struct Plans<T: Real>
where
    Complex<T>: Plain,
{
    /// For each transformed dimension; the last one's is not used for real lines.
    complex: Vec<Arc<dyn Lines<T>>>,
    /// For real lines.
    real: Option<RealLines<T>>,
    /// For many lines along the last dimension, if it is short.
    side: Option<Side<T>>,
    /// For lines along each of the others, which lie side by side as they are.
    columns: Vec<Option<Side<T>>>,
    /// The memory of all of it.
    _counted: Reservation,
}

/// Points that a task transforms, about: some ten microseconds.
const TASK_POINTS: usize = 1 << 15;

/// The fewest lines that are transformed side by side.
const MIN_LINES: usize = 4;
/// Lines that are not contiguous are copied together, this many neighbours, …
const COLUMNS: usize = 16;
/// … to lines with this many unused elements between them, so that they do not lie in the same sets
/// of the caches.
const PADDING: usize = 8;
/// The most bytes of lines that are transformed side by side.
const MAX_SIDE_BYTES: usize = 1 << 20;

/// The type of the real and the imaginary part of complex numbers: f32 or f64.
trait Real: Planned + Plain + Default {
    /// The nearest to a number.
    fn rounded(value: f64) -> Self;

    /// Does `work` with the widest vectors that the machine has.
    fn with_lanes<W: lanes::LaneWork<Self>>(work: W) -> W::Result;
}

impl Real for f32 {
    #[inline(always)]
    fn rounded(value: f64) -> f32 {
        value as f32
    }

    fn with_lanes<W: lanes::LaneWork<f32>>(work: W) -> W::Result {
        lanes::with_f32(work)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn rounded(value: f64) -> f64 {
        value
    }

    fn with_lanes<W: lanes::LaneWork<f64>>(work: W) -> W::Result {
        lanes::with_f64(work)
    }
}

impl Fft {
    /// A transform of `batch` arrays with these lengths in the time domain, one to three.
    ///
    /// # Panics
    /// If there are more elements than memory has bytes.
    pub fn new(kind: FftKind, batch: usize, lengths: Vec<usize>) -> Self {
        let sizes = [&[batch], &lengths[..]].concat();
        assert!(element_count(&sizes).is_some(), "{sizes:?} elements fit memory");
        Fft { kind, batch, lengths, single: OnceLock::new(), double: OnceLock::new() }
    }

    /// Bytes of working memory for a transform of complex numbers whose parts have `part_size` bytes.
    pub fn scratch_bytes(&self, part_size: usize) -> usize {
        if self.kind != FftKind::RealInverse || self.outer_points() == 1 {
            return 0;
        }
        let lines = self.batch.saturating_mul(self.outer_points());
        let bytes = lines.saturating_mul(self.spectrum()).saturating_mul(2 * part_size);
        scratch_for::<u8>(bytes)
    }

    /// Transforms bytes of (pairs of) `f32`.
    ///
    /// # Panics
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn f32(&self, from: &[u8], to: &mut [u8], scratch: &mut [u8], threads: Threads<'_>) {
        let Some(plans) = self.planned(&self.single) else { return };
        self.run::<f32>(plans, from, to, scratch, threads);
    }

    /// Transforms bytes of (pairs of) `f64`; see [`Fft::f32`].
    ///
    /// # Panics
    /// As [`Fft::f32`].
    pub fn f64(&self, from: &[u8], to: &mut [u8], scratch: &mut [u8], threads: Threads<'_>) {
        let Some(plans) = self.planned(&self.double) else { return };
        self.run::<f64>(plans, from, to, scratch, threads);
    }

    /// The most bytes of the tables that the first run computes and all later ones use, for complex
    /// numbers whose parts have `part_size` bytes.
    pub fn table_bytes(&self, part_size: usize) -> usize {
        let of = |&length: &usize| table_points(length).saturating_mul(2 * part_size);
        let least = 64 << 10;
        self.lengths.iter().map(of).fold(least, usize::saturating_add)
    }

    /// The most bytes that a thread works in during a run, for complex numbers whose parts have
    /// `part_size` bytes.
    pub fn thread_bytes(&self, part_size: usize) -> usize {
        let (last, outer) = match self.lengths.split_last() {
            Some((&last, outer)) => (last, outer),
            None => return 0,
        };
        let columns = |&n: &usize| n.saturating_add(PADDING).saturating_mul(COLUMNS);
        let most = outer.iter().map(columns).max().unwrap_or(0);
        let spare = self.lengths.iter().map(|&n| spare_points(n)).max().unwrap_or(0);
        most.max(last).saturating_add(spare).saturating_mul(2 * part_size).max(MAX_SIDE_BYTES)
    }

    /// The plans, made if they are not there yet. If there is no memory for them the run stops.
    fn planned<'p, T: Real>(&self, plans: &'p OnceLock<Arc<Plans<T>>>) -> Option<&'p Plans<T>>
    where
        Complex<T>: Plain,
    {
        if let Some(plans) = plans.get() {
            return Some(plans);
        }
        let counted = bounds::reserve(self.table_bytes(size_of::<T>()))?;
        Some(plans.get_or_init(|| Arc::new(self.plan(counted))))
    }

    fn plan<T: Real>(&self, counted: Reservation) -> Plans<T>
    where
        Complex<T>: Plain,
    {
        let mut planner = T::Planner::default();
        let (direction, is_real) = match self.kind {
            FftKind::Forward => (FftDirection::Forward, false),
            FftKind::RealForward => (FftDirection::Forward, true),
            FftKind::Inverse => (FftDirection::Inverse, false),
            FftKind::RealInverse => (FftDirection::Inverse, true),
        };
        let last = self.lengths.last().copied().unwrap_or(1);
        let along = match direction {
            FftDirection::Forward => FftKind::Forward,
            FftDirection::Inverse => FftKind::Inverse,
        };
        let side = self.is_many().then(|| Side::new(self.kind, last)).flatten();
        let side = side.filter(Side::is_better);
        let outer = self.lengths.iter().rev().skip(1).rev();
        Plans {
            side,
            columns: outer.map(|&n| Side::new(along, n)).collect(),
            complex: self.lengths.iter().map(|&n| T::plan(&mut planner, n, direction)).collect(),
            real: is_real.then(|| RealLines::new(last, direction, &mut planner)),
            _counted: counted,
        }
    }

    /// Whether there are enough lines to transform them side by side.
    fn is_many(&self) -> bool {
        self.batch.saturating_mul(self.outer_points()) >= MIN_LINES
    }

    /// The product of transformed dimensions but the last.
    fn outer_points(&self) -> usize {
        self.lengths.iter().rev().skip(1).product()
    }

    /// Elements of a line in the frequency domain.
    fn spectrum(&self) -> usize {
        let last = self.lengths.last().copied().unwrap_or(1);
        match self.kind {
            FftKind::Forward | FftKind::Inverse => last,
            FftKind::RealForward | FftKind::RealInverse => last / 2 + 1,
        }
    }

    fn run<T: Real>(
        &self,
        plans: &Plans<T>,
        from: &[u8],
        to: &mut [u8],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let Some(&last) = self.lengths.last() else { return };
        let lines = self.batch * self.outer_points();
        if lines * last == 0 {
            return;
        }
        let points: f64 = self.lengths.iter().map(|&n| n as f64).product();
        let scale = T::rounded(1.0 / points);
        match (self.kind, &plans.real) {
            (FftKind::RealForward, Some(plan)) => {
                let to = &mut cast_mut::<Complex<T>>(to)[..lines * self.spectrum()];
                self.real_forward((plans, plan), cast(from), to, scale, threads);
            }
            (FftKind::RealInverse, Some(plan)) => {
                let from = &cast::<Complex<T>>(from)[..lines * self.spectrum()];
                let to = &mut cast_mut::<T>(to)[..lines * last];
                self.real_inverse((plans, plan), from, to, scratch, scale, threads);
            }
            _ => {
                let to = &mut cast_mut::<Complex<T>>(to)[..lines * last];
                self.complex(plans, cast(from), to, scale, threads);
            }
        }
    }

    /// How many lines a task transforms.
    fn lines_per_task(&self) -> usize {
        let last = self.lengths.last().copied().unwrap_or(1);
        (TASK_POINTS / last).max(1)
    }

    /// From real numbers to spectra.
    fn real_forward<T: Real>(
        &self,
        (plans, plan): (&Plans<T>, &RealLines<T>),
        from: &[T],
        to: &mut [Complex<T>],
        scale: T,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let (last, spectrum) = (self.lengths.last().copied().unwrap_or(1), self.spectrum());
        if let Some(side) = &plans.side {
            side.lines(from, cast_mut(bytes_of_mut(to)), scale, threads);
            return self.outer(plans, to, spectrum, threads);
        }
        let per_task = self.lines_per_task();
        threads.for_chunks(to, per_task * spectrum, &|task, to| {
            let from = &from[task * per_task * last..];
            scratch::with(plan.spare(), |spare: &mut [Complex<T>]| {
                let lines = from.chunks_exact(last).zip(to.chunks_exact_mut(spectrum));
                lines.for_each(|(from, to)| plan.forward(from, to, spare));
            });
        });
        self.outer(plans, to, spectrum, threads);
    }

    /// From spectra, which are copied to `scratch` if there are several dimensions, to real numbers.
    fn real_inverse<T: Real>(
        &self,
        (plans, plan): (&Plans<T>, &RealLines<T>),
        from: &[Complex<T>],
        to: &mut [T],
        scratch: &mut [u8],
        scale: T,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let (last, spectrum) = (self.lengths.last().copied().unwrap_or(1), self.spectrum());
        let mut from = from;
        if self.outer_points() > 1 {
            let copy = Scratch::new(scratch).take::<Complex<T>>(from.len());
            threads.for_chunks(copy, TASK_POINTS, &|task, to| {
                to.copy_from_slice(&from[task * TASK_POINTS..][..to.len()]);
            });
            self.outer(plans, copy, spectrum, threads);
            from = copy;
        }
        if let Some(side) = &plans.side {
            return side.lines(cast(bytes_of(from)), to, scale, threads);
        }
        let per_task = self.lines_per_task();
        threads.for_chunks(to, per_task * last, &|task, to| {
            let from = &from[task * per_task * spectrum..];
            scratch::with(plan.spare(), |spare: &mut [Complex<T>]| {
                let lines = from.chunks_exact(spectrum).zip(to.chunks_exact_mut(last));
                lines.for_each(|(from, to)| plan.inverse(from, to, scale, spare));
            });
        });
    }

    /// From complex numbers to complex numbers.
    fn complex<T: Real>(
        &self,
        plans: &Plans<T>,
        from: &[Complex<T>],
        to: &mut [Complex<T>],
        scale: T,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let last = self.lengths.last().copied().unwrap_or(1);
        if let Some(side) = &plans.side {
            side.lines(cast(bytes_of(from)), cast_mut(bytes_of_mut(to)), scale, threads);
            return self.outer(plans, to, last, threads);
        }
        let scale = (self.kind == FftKind::Inverse).then_some(scale);
        self.lines(plans, from, to, scale, threads);
        self.outer(plans, to, last, threads);
    }

    /// Transforms contiguous lines, and multiplies them by `scale`.
    fn lines<T: Real>(
        &self,
        plans: &Plans<T>,
        from: &[Complex<T>],
        to: &mut [Complex<T>],
        scale: Option<T>,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let Some(plan) = plans.complex.last() else { return };
        let per_task = (TASK_POINTS / plan.len()).max(1) * plan.len();
        let spare = plan.get_immutable_scratch_len();
        threads.for_chunks(to, per_task, &|task, to| {
            let from = &from[task * per_task..][..to.len()];
            scratch::with(spare, |spare: &mut [Complex<T>]| {
                plan.process_immutable_with_scratch(from, to, spare);
            });
            let Some(scale) = scale else { return };
            vectorised(
                #[inline(always)]
                || to.iter_mut().for_each(|v| *v = *v * scale),
            );
        });
    }

    /// Transforms along the dimensions before the last in place; lines have `last` elements.
    fn outer<T: Real>(
        &self,
        plans: &Plans<T>,
        data: &mut [Complex<T>],
        last: usize,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let outer = self.lengths.len() - 1;
        for d in (0..outer).rev() {
            let (plan, length) = (&plans.complex[d], self.lengths[d]);
            let inner = self.lengths[d + 1..outer].iter().product::<usize>() * last;
            if length == 1 || inner == 0 {
                continue;
            }
            let blocks = data.len() / (length * inner);
            let data = Disjoint::new(data);
            let side = plans.columns[d].as_ref();
            // The last columns of several blocks are transformed together where those of one would leave most of a vector
            // empty.
            let lanes = 64 / size_of::<T>();
            let few = side.filter(|_| blocks > 1 && inner % lanes <= lanes / 2);
            let rest = if few.is_some() { inner % lanes } else { 0 };
            if let Some(side) = few.filter(|_| rest > 0) {
                let all = Rest { length, inner, rest, count: blocks * rest };
                all.transform(side, data, threads);
            }
            let groups = (inner - rest).div_ceil(COLUMNS);
            threads.for_each(blocks * groups, &|task| {
                let (block, first) = (task / groups, task % groups * COLUMNS);
                let columns = COLUMNS.min(inner - rest - first);
                let at = |i: usize| (block * length + i) * inner + first;
                if let Some(side) = side {
                    // SAFETY: tasks have different blocks or columns, and a task one reference at
                    // a time.
                    let row = |i: usize, first: usize, count: usize| unsafe {
                        data.part(at(i) + first, count)
                    };
                    return side.columns(columns, row);
                }
                let spare = plan.get_inplace_scratch_len();
                // A bit apart: lines whose distance is a power of two have one place in the cache.
                let stride = length + PADDING;
                scratch::with(columns * stride, |lines: &mut [Complex<T>]| {
                    for i in 0..length {
                        // SAFETY: tasks have different blocks or columns, and a task one reference
                        // at a time.
                        let row = unsafe { data.part(at(i), columns) };
                        for (line, v) in lines.chunks_exact_mut(stride).zip(row) {
                            line[i] = *v;
                        }
                    }
                    scratch::with(spare, |spare: &mut [Complex<T>]| {
                        for line in lines.chunks_exact_mut(stride) {
                            plan.process_with_scratch(&mut line[..length], spare);
                        }
                    });
                    for i in 0..length {
                        // SAFETY: the columns are still this task's, whose first reference has ended.
                        let row = unsafe { data.part(at(i), columns) };
                        for (line, v) in lines.chunks_exact(stride).zip(row) {
                            *v = line[i];
                        }
                    }
                });
            });
        }
    }
}

/// The last columns of blocks of `length` rows of `inner` numbers.
#[derive(Clone, Copy)]
struct Rest {
    length: usize,
    inner: usize,
    /// How many there are in each block, …
    rest: usize,
    /// … and in all.
    count: usize,
}

impl Rest {
    /// Transforms them in place, some at a time, by way of rows that have as many.
    fn transform<T: Real>(
        self,
        side: &Side<T>,
        data: Disjoint<'_, Complex<T>>,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let Rest { length, inner, rest, count } = self;
        threads.for_each(count.div_ceil(COLUMNS), &|task| {
            let first = task * COLUMNS;
            let columns = COLUMNS.min(count - first);
            let at = |i: usize, column: usize| {
                let (block, column) = ((first + column) / rest, (first + column) % rest);
                (block * length + i) * inner + inner - rest + column
            };
            scratch::with(length * columns, |together: &mut [Complex<T>]| {
                for (i, row) in together.chunks_exact_mut(columns).enumerate() {
                    for (column, v) in row.iter_mut().enumerate() {
                        // SAFETY: tasks have different columns, and a task one reference at a time.
                        *v = unsafe { data.part(at(i, column), 1) }[0];
                    }
                }
                let rows = Disjoint::new(together);
                // SAFETY: they are this task's alone, which has one reference at a time.
                let row = |i: usize, first: usize, count: usize| unsafe {
                    rows.part(i * columns + first, count)
                };
                side.columns(columns, row);
                for i in 0..length {
                    // SAFETY: these rows are this task's alone, and the references that the transform had have ended.
                    let row = unsafe { rows.part(i * columns, columns) };
                    for (column, v) in row.iter().enumerate() {
                        // SAFETY: tasks have different columns, and a task one reference at a time.
                        let to = unsafe { data.part(at(i, column), 1) };
                        to[0] = *v;
                    }
                }
            });
        });
    }
}

/// Whether a length has small factors only, so that a line is transformed by them.
fn is_smooth(mut length: usize) -> bool {
    for factor in [2, 3, 5, 7, 11] {
        while length > 1 && length.is_multiple_of(factor) {
            length /= factor;
        }
    }
    length <= 1
}

/// The most points of tables for lines of a length. (Of other lengths, lines are convolved, which
/// takes transforms of up to four times as many points; measured by `tests/fft_tables.rs`.)
fn table_points(length: usize) -> usize {
    length.saturating_mul(if is_smooth(length) { 5 } else { 20 })
}

/// The most points of working memory for a line of a length besides the line.
fn spare_points(length: usize) -> usize {
    length.saturating_mul(if is_smooth(length) { 2 } else { 9 })
}

impl std::fmt::Debug for Fft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fft { kind, batch, lengths, .. } = self;
        write!(f, "Fft({kind:?}, {batch} of {lengths:?})")
    }
}

#[cfg(test)]
mod tests;
