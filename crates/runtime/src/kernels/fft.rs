//! Discrete Fourier transforms over the last one to three dimensions.
//!
//! `rustfft` and `realfft` transform lines; here they are led through arrays. Lines that are not
//! contiguous are copied to and fro several at a time, so that whole cache lines are used.

use std::sync::{Arc, OnceLock};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft as Lines, FftDirection, FftNum, FftPlanner};

use super::bytes::{Plain, cast, cast_mut};
use super::disjoint::Disjoint;
use super::scratch;
use crate::Threads;

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
struct Plans<T: FftNum> {
    /// For each transformed dimension; the last one's is not used for real lines.
    complex: Vec<Arc<dyn Lines<T>>>,
    forward: Option<Arc<dyn RealToComplex<T>>>,
    inverse: Option<Arc<dyn ComplexToReal<T>>>,
}

/// Tasks transform about so many points.
const TASK_POINTS: usize = 1 << 14;

/// Lines that are not contiguous are copied so many at a time.
const COLUMNS: usize = 16;

/// A part of complex numbers.
pub trait Part: FftNum + Plain + Default {
    #[doc(hidden)]
    fn rounded(value: f64) -> Self;
}

impl Part for f32 {
    fn rounded(value: f64) -> f32 {
        value as f32
    }
}

impl Part for f64 {
    fn rounded(value: f64) -> f64 {
        value
    }
}

impl Fft {
    /// A transform of `batch` arrays with these lengths in the time domain, one to three.
    pub fn new(kind: FftKind, batch: usize, lengths: Vec<usize>) -> Self {
        Fft { kind, batch, lengths, single: OnceLock::new(), double: OnceLock::new() }
    }

    /// Transforms bytes of (pairs of) `f32`.
    ///
    /// # Panics
    /// If an array is too short or not aligned for its elements.
    pub fn f32(&self, from: &[u8], to: &mut [u8], threads: Threads<'_>) {
        let plans = self.single.get_or_init(|| Arc::new(self.plan()));
        self.run::<f32>(plans, from, to, threads);
    }

    /// Transforms bytes of (pairs of) `f64`; see [`Fft::f32`].
    ///
    /// # Panics
    /// As [`Fft::f32`].
    pub fn f64(&self, from: &[u8], to: &mut [u8], threads: Threads<'_>) {
        let plans = self.double.get_or_init(|| Arc::new(self.plan()));
        self.run::<f64>(plans, from, to, threads);
    }

    fn plan<T: FftNum>(&self) -> Plans<T> {
        let (mut complex, mut real) = (FftPlanner::new(), RealFftPlanner::new());
        let direction = match self.kind {
            FftKind::Forward | FftKind::RealForward => FftDirection::Forward,
            FftKind::Inverse | FftKind::RealInverse => FftDirection::Inverse,
        };
        let last = self.lengths.last().copied().unwrap_or(1);
        let is = |kind| self.kind == kind;
        Plans {
            complex: self.lengths.iter().map(|&n| complex.plan_fft(n, direction)).collect(),
            forward: is(FftKind::RealForward).then(|| real.plan_fft_forward(last)),
            inverse: is(FftKind::RealInverse).then(|| real.plan_fft_inverse(last)),
        }
    }

    /// Elements of a line in the frequency domain.
    fn spectrum(&self) -> usize {
        let last = self.lengths.last().copied().unwrap_or(1);
        match self.kind {
            FftKind::Forward | FftKind::Inverse => last,
            FftKind::RealForward | FftKind::RealInverse => last / 2 + 1,
        }
    }

    fn run<T: Part>(&self, plans: &Plans<T>, from: &[u8], to: &mut [u8], threads: Threads<'_>)
    where
        Complex<T>: Plain,
    {
        let Some((&last, outer)) = self.lengths.split_last() else { return };
        let lines = self.batch * outer.iter().product::<usize>();
        if lines * last == 0 {
            return;
        }
        let points: f64 = self.lengths.iter().map(|&n| n as f64).product();
        let scale = T::rounded(1.0 / points);
        let spectrum = self.spectrum();
        let per_task = (TASK_POINTS / last).max(1);
        match self.kind {
            FftKind::Forward | FftKind::Inverse => {
                let (from, to) = (cast::<Complex<T>>(from), cast_mut::<Complex<T>>(to));
                let to = &mut to[..lines * last];
                self.lines(plans, from, to, last, threads);
                self.outer(plans, to, last, threads);
                if self.kind == FftKind::Inverse {
                    scaled(to, scale, threads);
                }
            }
            FftKind::RealForward => {
                let (from, to) = (cast::<T>(from), cast_mut::<Complex<T>>(to));
                let Some(plan) = &plans.forward else { return };
                let to = &mut to[..lines * spectrum];
                threads.for_chunks(to, per_task * spectrum, &|task, to| {
                    scratch::with(last, |line: &mut [T]| {
                        scratch::with(plan.get_scratch_len(), |spare: &mut [Complex<T>]| {
                            for (i, to) in to.chunks_exact_mut(spectrum).enumerate() {
                                let first = (task * per_task + i) * last;
                                line.copy_from_slice(&from[first..first + last]);
                                // The lengths are the plan's, so that it cannot fail.
                                let _ = plan.process_with_scratch(line, to, spare);
                            }
                        });
                    });
                });
                self.outer(plans, to, spectrum, threads);
            }
            FftKind::RealInverse => {
                let (from, to) = (cast::<Complex<T>>(from), cast_mut::<T>(to));
                let Some(plan) = &plans.inverse else { return };
                let to = &mut to[..lines * last];
                let whole;
                let mut copy = Vec::new();
                let from = if outer.iter().all(|&n| n == 1) {
                    whole = &from[..lines * spectrum];
                    whole
                } else {
                    copy.extend_from_slice(&from[..lines * spectrum]);
                    self.outer(plans, &mut copy, spectrum, threads);
                    &copy
                };
                threads.for_chunks(to, per_task * last, &|task, to| {
                    scratch::with(spectrum, |line: &mut [Complex<T>]| {
                        scratch::with(plan.get_scratch_len(), |spare: &mut [Complex<T>]| {
                            for (i, to) in to.chunks_exact_mut(last).enumerate() {
                                let first = (task * per_task + i) * spectrum;
                                line.copy_from_slice(&from[first..first + spectrum]);
                                // It takes offence at an imaginary part where a real signal has
                                // none, after it has left it out, as it should.
                                let _ = plan.process_with_scratch(line, to, spare);
                                to.iter_mut().for_each(|v| *v = *v * scale);
                            }
                        });
                    });
                });
            }
        }
    }

    /// Transforms contiguous lines.
    fn lines<T: Part>(
        &self,
        plans: &Plans<T>,
        from: &[Complex<T>],
        to: &mut [Complex<T>],
        last: usize,
        threads: Threads<'_>,
    ) where
        Complex<T>: Plain,
    {
        let Some(plan) = plans.complex.last() else { return };
        let per_task = (TASK_POINTS / last).max(1) * last;
        let spare = plan.get_immutable_scratch_len();
        threads.for_chunks(to, per_task, &|task, to| {
            let from = &from[task * per_task..][..to.len()];
            scratch::with(spare, |spare: &mut [Complex<T>]| {
                plan.process_immutable_with_scratch(from, to, spare);
            });
        });
    }

    /// Transforms along the dimensions before the last in place; lines have `last` elements.
    fn outer<T: Part>(
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
            let groups = inner.div_ceil(COLUMNS);
            let blocks = data.len() / (length * inner);
            let data = Disjoint::new(data);
            threads.for_each(blocks * groups, &|task| {
                let (block, first) = (task / groups, task % groups * COLUMNS);
                let columns = COLUMNS.min(inner - first);
                let at = |i: usize| (block * length + i) * inner + first;
                let (size, spare) = (columns * length, plan.get_inplace_scratch_len());
                scratch::with(size, |lines: &mut [Complex<T>]| {
                    for i in 0..length {
                        // SAFETY: tasks have different blocks or columns, and a task one reference
                        // at a time.
                        let row = unsafe { data.part(at(i), columns) };
                        for (c, v) in row.iter().enumerate() {
                            lines[c * length + i] = *v;
                        }
                    }
                    scratch::with(spare, |spare: &mut [Complex<T>]| {
                        plan.process_with_scratch(lines, spare);
                    });
                    for i in 0..length {
                        // SAFETY: as above.
                        let row = unsafe { data.part(at(i), columns) };
                        for (c, v) in row.iter_mut().enumerate() {
                            *v = lines[c * length + i];
                        }
                    }
                });
            });
        }
    }
}

fn scaled<T: Part>(data: &mut [Complex<T>], scale: T, threads: Threads<'_>) {
    threads.for_chunks(data, TASK_POINTS, &|_, chunk| {
        chunk.iter_mut().for_each(|v| *v = *v * scale);
    });
}

impl std::fmt::Debug for Fft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fft { kind, batch, lengths, .. } = self;
        write!(f, "Fft({kind:?}, {batch} of {lengths:?})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::bytes::{bytes_of, bytes_of_mut};

    /// The transform of a line by its definition.
    fn plain(line: &[Complex<f64>], sign: f64) -> Vec<Complex<f64>> {
        let n = line.len();
        let sum = |k: usize| {
            let term = |(i, v): (usize, &Complex<f64>)| {
                let angle = sign * std::f64::consts::TAU * ((i * k) % n) as f64 / n as f64;
                v * Complex::from_polar(1.0, angle)
            };
            line.iter().enumerate().map(term).sum()
        };
        (0..n).map(sum).collect()
    }

    /// The same in two dimensions.
    fn plain_2d(data: &[Complex<f64>], cols: usize, sign: f64) -> Vec<Complex<f64>> {
        let mut data: Vec<_> = data.chunks(cols).flat_map(|row| plain(row, sign)).collect();
        for c in 0..cols {
            let column: Vec<_> = data[c..].iter().step_by(cols).copied().collect();
            for (r, v) in plain(&column, sign).into_iter().enumerate() {
                data[r * cols + c] = v;
            }
        }
        data
    }

    fn signal(len: usize) -> Vec<Complex<f64>> {
        (0..len).map(|i| Complex::new((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos())).collect()
    }

    fn close(a: &[Complex<f64>], b: &[Complex<f64>]) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).norm() < 1e-9, "{a} and {b}");
        }
    }

    #[test]
    fn two_dimensions_of_odd_sizes() {
        for (rows, cols) in [(1, 1), (3, 5), (8, 17), (19, 4)] {
            let data = signal(rows * cols);
            for (kind, sign, scale) in
                [(FftKind::Forward, -1.0, 1.0), (FftKind::Inverse, 1.0, (rows * cols) as f64)]
            {
                let mut found = vec![Complex::new(0.0, 0.0); data.len()];
                let fft = Fft::new(kind, 1, vec![rows, cols]);
                fft.f64(bytes_of(&data), bytes_of_mut(&mut found), Threads::single());
                let expected: Vec<_> =
                    plain_2d(&data, cols, sign).into_iter().map(|v| v / scale).collect();
                close(&found, &expected);
            }
        }
    }

    #[test]
    fn real_lines_there_and_back() {
        for (rows, cols) in [(1, 1), (1, 8), (3, 7), (4, 6)] {
            let data: Vec<f64> = signal(2 * rows * cols).iter().map(|v| v.re).collect();
            let half = cols / 2 + 1;
            let mut spectrum = vec![Complex::new(0.0, 0.0); 2 * rows * half];
            let forward = Fft::new(FftKind::RealForward, 2, vec![rows, cols]);
            forward.f64(bytes_of(&data), bytes_of_mut(&mut spectrum), Threads::single());
            for (data, found) in data.chunks(rows * cols).zip(spectrum.chunks(rows * half)) {
                let data: Vec<_> = data.iter().map(|&v| Complex::new(v, 0.0)).collect();
                let all = plain_2d(&data, cols, -1.0);
                let expected: Vec<_> =
                    all.chunks(cols).flat_map(|row| &row[..half]).copied().collect();
                close(found, &expected);
            }
            let mut back = vec![0.0; data.len()];
            let inverse = Fft::new(FftKind::RealInverse, 2, vec![rows, cols]);
            inverse.f64(bytes_of(&spectrum), bytes_of_mut(&mut back), Threads::single());
            assert!(back.iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
