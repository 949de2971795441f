//! Lines of one length, transformed side by side.
//!
//! As many lines as a vector has lanes are transposed, so that each vector has a point of all of
//! them; then no line's arithmetic needs anything of another's, whatever the length.
//!
//! Lines of an even number of reals are complex ones of half the length, as in `real.rs`; those of an
//! odd number have a way of their own (`odd.rs`).

use helio_fft::num_complex::Complex;

use super::super::bytes::{Plain, bytes_of, bytes_of_mut, cast, cast_mut};
use super::super::copy::{Axis, Copy};
use super::super::scratch;
use super::convolved::Line;
use super::lanes::{LaneWork, Lanes, row};
use super::odd::OddTransform;
use super::spectrum::{half_spectrum, reals_spectrum, spectrum_point};
use super::stages::{Point, View, radices, root};
use super::{FftKind, Real};
use crate::Threads;

/// A transform of lines of one length.
pub(super) struct Side<T> {
    kind: FftKind,
    /// In the time domain.
    len: usize,
    how: LineTransform<T>,
}

/// By which transform of complex numbers a line is transformed.
enum LineTransform<T> {
    /// Its own: its numbers are complex.
    Complex(Line<T>),
    /// Half as many complex points, and factors for the way from their spectrum to that of reals.
    Even(Line<T>, Vec<[T; 2]>),
    /// One whose first radix is odd, and done on reals.
    Odd(OddTransform<T>),
    /// An odd number of reals as as many complex points.
    Padded(Line<T>),
}

/// The fewest complex points of a line of reals that is faster transformed by itself, if its length
/// has no prime factor above 3; complex lines of those lengths always are.
const ALONG_REALS: usize = 32;
/// The fewest points of any line that is faster transformed by itself, if its length has no prime
/// factor above 5.
const ALONG_FIVES: usize = 64;
/// The most bytes of lines side by side: more would not stay in the second-level cache.
const MAX_BYTES: usize = 1 << 19;

impl<T: Real> Side<T>
where
    Complex<T>: Plain,
{
    /// A plan; `None` if lines are too long for it.
    pub(super) fn new(kind: FftKind, len: usize) -> Option<Self> {
        // No line takes less room than half of its points.
        if (len / 2).checked_mul(2 * 2 * 64)? > MAX_BYTES {
            return None;
        }
        let is_real = matches!(kind, FftKind::RealForward | FftKind::RealInverse);
        let how = match len {
            0 => return None,
            _ if !is_real => LineTransform::Complex(Line::new(len)?),
            1 => return None,
            _ if len.is_multiple_of(2) => {
                let half = len / 2;
                let twiddles = (1..=half / 2).map(|k| root(k, len)).collect();
                LineTransform::Even(Line::new(half)?, twiddles)
            }
            _ => match radices(len) {
                Some(radices) => LineTransform::Odd(OddTransform::new(len, radices[0])?),
                None => LineTransform::Padded(Line::new(len)?),
            },
        };
        let side = Side { kind, len, how };
        // Both arrays, with a point for each lane of the widest vectors.
        (side.room().checked_mul(2 * 2 * 64)? <= MAX_BYTES).then_some(side)
    }

    /// Whether lines one after the other are better transformed so than one by one, for which there
    /// is code with vectors along a line of lengths with small factors.
    pub(super) fn is_better(&self) -> bool {
        let (points, along) = match &self.how {
            LineTransform::Complex(_) => (self.len, 1),
            LineTransform::Even(..) => (self.len / 2, ALONG_REALS),
            LineTransform::Odd(_) | LineTransform::Padded(_) => return true,
        };
        let factors = |most: usize| {
            radices(points).is_some_and(|radices| radices.iter().all(|&radix| radix <= most))
        };
        let is_along = points >= along && factors(4);
        let is_long = points >= ALONG_FIVES && points.is_multiple_of(8) && factors(5);
        !(is_along || is_long)
    }

    /// How many points each array has room for.
    fn room(&self) -> usize {
        let spectrum = self.len / 2 + 1;
        match &self.how {
            LineTransform::Complex(line) => line.room(),
            LineTransform::Even(line, _) => line.room().max(spectrum),
            LineTransform::Odd(odd) => odd.room(),
            LineTransform::Padded(line) => line.room().max(spectrum),
        }
    }

    /// The numbers of a line in the time domain and in the frequency domain.
    fn numbers(&self) -> [usize; 2] {
        match self.kind {
            FftKind::Forward | FftKind::Inverse => [2 * self.len; 2],
            FftKind::RealForward | FftKind::RealInverse => [self.len, 2 * (self.len / 2 + 1)],
        }
    }

    fn is_inverse(&self) -> bool {
        matches!(self.kind, FftKind::Inverse | FftKind::RealInverse)
    }

    /// Transforms lines one after the other in memory, and multiplies those of an inverse
    /// transform by `scale`.
    pub(super) fn lines(&self, from: &[T], to: &mut [T], scale: T, threads: Threads<'_>) {
        T::with_lanes(Contiguous { side: self, from, to, scale, threads });
    }

    /// Transforms complex columns in place: `rows` gives each row of some of them. No scaling.
    pub(super) fn columns<'d>(
        &self,
        count: usize,
        row: impl Fn(usize, usize, usize) -> &'d mut [Complex<T>],
    ) where
        T: 'd,
    {
        T::with_lanes(Columns { side: self, count, row });
    }

    /// As [`Side::columns`], with these vectors.
    pub(super) fn columns_by<'d, L: Lanes<Real = T>>(
        &self,
        lanes: L,
        count: usize,
        row: impl Fn(usize, usize, usize) -> &'d mut [Complex<T>],
    ) where
        T: 'd,
    {
        let room = self.room() * View::<L>::POINT;
        scratch::with(2 * room, |arrays: &mut [T]| {
            for first in (0..count).step_by(L::COUNT) {
                let columns = L::COUNT.min(count - first);
                let (a, b) = arrays.split_at_mut(room);
                if columns < L::COUNT {
                    a.fill(T::zero());
                }
                lanes.vectorise(
                    #[inline(always)]
                    || {
                        let points = a.chunks_exact_mut(View::<L>::POINT);
                        for (i, point) in points.take(self.len).enumerate() {
                            let (re, im) = point.split_at_mut(L::COUNT);
                            let row = row(i, first, columns);
                            if columns == L::COUNT {
                                let [a, b] = lanes.load_pairs(cast(bytes_of(row)));
                                lanes.store(a, re);
                                lanes.store(b, im);
                                continue;
                            }
                            for ((re, im), v) in re.iter_mut().zip(im).zip(&*row) {
                                (*re, *im) = (v.re, v.im);
                            }
                        }
                    },
                );
                let transformed = self.transform(lanes, (a, b), T::zero());
                lanes.vectorise(
                    #[inline(always)]
                    || {
                        let points = transformed.chunks_exact(View::<L>::POINT);
                        for (i, point) in points.take(self.len).enumerate() {
                            let (re, im) = point.split_at(L::COUNT);
                            let row = row(i, first, columns);
                            if columns == L::COUNT {
                                let pairs = [lanes.load(re), lanes.load(im)];
                                lanes.store_pairs(pairs, cast_mut(bytes_of_mut(row)));
                                continue;
                            }
                            for ((&re, &im), v) in re.iter().zip(im).zip(row) {
                                *v = Complex::new(re, im);
                            }
                        }
                    },
                );
            }
        });
    }

    /// Transforms what lies in the first array; gives the one with the result.
    fn transform<'s, L: Lanes<Real = T>>(
        &self,
        lanes: L,
        (a, b): (&'s mut [T], &'s mut [T]),
        scale: T,
    ) -> &'s mut [T] {
        let view = View { lanes, is_swapped: self.is_inverse() };
        match (&self.how, self.kind) {
            (LineTransform::Complex(line), _) => line.run(view, a, b).0,
            (LineTransform::Even(line, twiddles), FftKind::RealForward) => {
                let (transformed, to) = line.run(view, a, b);
                lanes.vectorise(
                    #[inline(always)]
                    || reals_spectrum(view, self.len / 2, twiddles, transformed, to),
                );
                to
            }
            (LineTransform::Even(line, twiddles), _) => {
                let plain = view.swapped();
                lanes.vectorise(
                    #[inline(always)]
                    || half_spectrum(plain, self.len / 2, twiddles, scale, a, b),
                );
                line.run(view, b, a).0
            }
            (LineTransform::Odd(odd), FftKind::RealForward) => odd.forward(view, self.len, a, b),
            (LineTransform::Odd(odd), _) => odd.inverse(view, self.len, scale, a, b),
            (LineTransform::Padded(line), FftKind::RealForward) => {
                lanes.vectorise(
                    #[inline(always)]
                    || {
                        let zero = lanes.splat(T::zero());
                        for i in 0..self.len {
                            let re = row(lanes, a, i);
                            view.set(b, i, Point { re, im: zero });
                        }
                    },
                );
                line.run(view, b, a).0
            }
            (LineTransform::Padded(line), _) => {
                let plain = view.swapped();
                lanes.vectorise(
                    #[inline(always)]
                    || {
                        let scale = lanes.splat(scale);
                        for q in 0..self.len {
                            let point = spectrum_point(plain, a, q, self.len, scale);
                            plain.set(b, q, point);
                        }
                    },
                );
                let (transformed, to) = line.run(view, b, a);
                lanes.vectorise(
                    #[inline(always)]
                    || {
                        for i in 0..self.len {
                            lanes.store(plain.get(transformed, i).re, &mut to[i * L::COUNT..]);
                        }
                    },
                );
                to
            }
        }
    }
}

/// Lines one after the other.
struct Contiguous<'s, T> {
    side: &'s Side<T>,
    from: &'s [T],
    to: &'s mut [T],
    scale: T,
    threads: Threads<'s>,
}

impl<T: Real> LaneWork<T> for Contiguous<'_, T>
where
    Complex<T>: Plain,
{
    type Result = ();

    fn run<L: Lanes<Real = T>>(self, lanes: L) {
        let Contiguous { side, from, to, scale, threads } = self;
        let [time, frequency] = side.numbers();
        let (old, new) = if side.is_inverse() { (frequency, time) } else { (time, frequency) };
        let room = side.room() * View::<L>::POINT;
        let transposed = |lines: usize, numbers: usize, is_back: bool| {
            let (line, lane) = ((numbers as isize, 1), (1, L::COUNT as isize));
            let axis = |size: usize, (memory, vector): (isize, isize)| match is_back {
                false => Axis { size, from: memory, to: vector },
                true => Axis { size, from: vector, to: memory },
            };
            Copy::new(&[axis(lines, line), axis(numbers, lane)], size_of::<T>())
        };
        let (Some(there), Some(back)) =
            (transposed(L::COUNT, old, false), transposed(L::COUNT, new, true))
        else {
            unreachable!("the steps of an array in memory")
        };
        let one = Threads::single();
        let is_scaled = side.kind == FftKind::Inverse;
        let groups = (super::TASK_POINTS / (side.len * L::COUNT)).max(1);
        threads.for_chunks(to, groups * L::COUNT * new, &|task, to| {
            let from = &from[task * groups * L::COUNT * old..];
            scratch::with(2 * room, |arrays: &mut [T]| {
                for (group, to) in to.chunks_mut(L::COUNT * new).enumerate() {
                    let lines = to.len() / new;
                    let from = &from[group * L::COUNT * old..][..lines * old];
                    let (a, b) = arrays.split_at_mut(room);
                    let fewer = (lines < L::COUNT).then(|| {
                        // The other lanes hold anything; what comes of it is not looked at.
                        a.fill(T::zero());
                        (transposed(lines, old, false), transposed(lines, new, true))
                    });
                    let (there, back) = match &fewer {
                        Some((Some(there), Some(back))) => (there, back),
                        _ => (&there, &back),
                    };
                    there.run((bytes_of(from), 0), (bytes_of_mut(a), 0), one);
                    let transformed = side.transform(lanes, (a, b), scale);
                    if is_scaled {
                        lanes.vectorise(
                            #[inline(always)]
                            || {
                                let scale = lanes.splat(scale);
                                let numbers = &mut transformed[..new * L::COUNT];
                                for v in numbers.chunks_exact_mut(L::COUNT) {
                                    lanes.store(lanes.load(v) * scale, v);
                                }
                            },
                        );
                    }
                    back.run((bytes_of(transformed), 0), (bytes_of_mut(to), 0), one);
                }
            });
        });
    }
}

/// Columns of an array, in place.
struct Columns<'s, T, F> {
    side: &'s Side<T>,
    count: usize,
    row: F,
}

impl<'d, T: Real, F: Fn(usize, usize, usize) -> &'d mut [Complex<T>]> LaneWork<T>
    for Columns<'_, T, F>
where
    Complex<T>: Plain,
{
    type Result = ();

    fn run<L: Lanes<Real = T>>(self, lanes: L) {
        self.side.columns_by(lanes, self.count, self.row);
    }
}
