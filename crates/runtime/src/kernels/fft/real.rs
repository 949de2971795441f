//! Lines of real numbers.
//!
//! An even number of reals is taken for half as many complex numbers, whose spectrum `z` of `m`
//! points gives that of the reals: with `s = z[k] + z[m-k]`, `d = z[k] - z[m-k]` and the twiddle
//! factor `w = e^(-2πik/2m) / 2`, points `k` and `m - k` follow from each other ([`forward_pair`]).
//! (Sorensen, Jones, Heideman, Burrus 1987, "Real-valued fast Fourier transform algorithms".) The
//! way back is the same in reverse. Lines of odd length are transformed as complex ones.

use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use helio_fft::num_complex::Complex;
use helio_fft::{Fft as Lines, FftDirection, FftNum};

use super::super::bytes::{Plain, bytes_of, bytes_of_mut, cast, cast_mut};
use super::super::isa::vectorised;
use super::Real;

/// A plan for lines of one length in one direction.
pub(super) struct RealLines<T: FftNum> {
    /// The transform of half the length, or of all of it if that is odd.
    lines: Arc<dyn Lines<T>>,
    is_odd: bool,
    /// For all `k` below `m - k`, from 1.
    twiddles: Vec<Complex<T>>,
}

/// Pairs of points, `k` and `m - k`, that are combined together, in the lanes of vectors.
const WIDTH: usize = 8;

impl<T: Real> RealLines<T>
where
    Complex<T>: Plain,
{
    /// A plan for lines of `length` reals.
    pub(super) fn new(length: usize, direction: FftDirection, planner: &mut T::Planner) -> Self {
        let is_odd = length % 2 == 1;
        let points = if is_odd { length } else { length / 2 };
        let pairs = if is_odd { 0 } else { points.saturating_sub(1) / 2 };
        let (sign, size) = match direction {
            FftDirection::Forward => (-1.0, 0.5),
            FftDirection::Inverse => (1.0, 1.0),
        };
        let twiddle = |k: usize| {
            let (sin, cos) = (std::f64::consts::TAU * k as f64 / length as f64).sin_cos();
            Complex::new(T::rounded(size * cos), T::rounded(sign * size * sin))
        };
        let twiddles = (1..=pairs).map(twiddle).collect();
        RealLines { lines: T::plan(planner, points, direction), is_odd, twiddles }
    }

    /// Where a line's spectrum is transformed before it becomes a line.
    fn split<'s>(
        &self,
        spare: &'s mut [Complex<T>],
    ) -> (&'s mut [Complex<T>], &'s mut [Complex<T>]) {
        spare.split_at_mut(self.lines.len())
    }

    /// How many elements of working memory a line needs.
    pub(super) fn spare(&self) -> usize {
        let lines = &self.lines;
        let most = lines.get_immutable_scratch_len().max(lines.get_inplace_scratch_len());
        lines.len() + most.max(lines.get_outofplace_scratch_len())
    }

    /// The first half of the spectrum of a line.
    pub(super) fn forward(&self, from: &[T], to: &mut [Complex<T>], spare: &mut [Complex<T>]) {
        let m = self.lines.len();
        if self.is_odd {
            let (line, spare) = self.split(spare);
            for (to, &v) in line.iter_mut().zip(from) {
                *to = Complex::new(v, T::zero());
            }
            self.lines.process_with_scratch(line, spare);
            to.copy_from_slice(&line[..to.len()]);
            to[0].im = T::zero();
            return;
        }
        let from = cast::<Complex<T>>(bytes_of(from));
        self.lines.process_immutable_with_scratch(from, &mut to[..m], spare);
        let first = to[0];
        to[0] = Complex::new(first.re + first.im, T::zero());
        to[m] = Complex::new(first.re - first.im, T::zero());
        if m.is_multiple_of(2) {
            to[m / 2] = to[m / 2].conj();
        }
        self.pairs(to, forward_pair);
    }

    /// The line that has this spectrum, times `scale` times its length.
    pub(super) fn inverse(
        &self,
        from: &[Complex<T>],
        to: &mut [T],
        scale: T,
        spare: &mut [Complex<T>],
    ) {
        let m = self.lines.len();
        let (line, spare) = self.split(spare);
        // A real line's spectrum has real ends; what else they hold is left out.
        line[0] = Complex::new(from[0].re * scale, T::zero());
        let points = line[1..].iter_mut().zip(&from[1..]);
        vectorised(
            #[inline(always)]
            || points.for_each(|(to, v)| *to = Complex::new(v.re * scale, v.im * scale)),
        );
        if self.is_odd {
            let (low, high) = line.split_at_mut(from.len());
            for (to, v) in high.iter_mut().rev().zip(&low[1..]) {
                *to = v.conj();
            }
            self.lines.process_with_scratch(line, spare);
            for (to, v) in to.iter_mut().zip(line) {
                *to = v.re;
            }
            return;
        }
        let (first, last) = (line[0].re, from[m].re * scale);
        line[0] = Complex::new(first + last, first - last);
        if m.is_multiple_of(2) {
            line[m / 2] = (line[m / 2] + line[m / 2]).conj();
        }
        self.pairs(line, inverse_pair);
        let to = cast_mut::<Complex<T>>(bytes_of_mut(to));
        self.lines.process_immutable_with_scratch(line, to, spare);
    }

    /// Replaces points `k` and `m - k` of a spectrum by what `f` makes of them.
    fn pairs(&self, spectrum: &mut [Complex<T>], f: impl Fn(Pair<T>, [T; 2]) -> Pair<T>) {
        let (m, pairs) = (self.lines.len(), self.twiddles.len());
        let (low, high) = spectrum[1..].split_at_mut(pairs);
        let high = &mut high[m - 1 - 2 * pairs..][..pairs];
        vectorised(
            #[inline(always)]
            || {
                let (low, low_rest) = low.as_chunks_mut::<WIDTH>();
                let (high_rest, high) = high.as_rchunks_mut::<WIDTH>();
                let (twiddles, twiddles_rest) = self.twiddles.as_chunks::<WIDTH>();
                let chunks = low.iter_mut().zip(high.iter_mut().rev()).zip(twiddles);
                // A chunk is a few vectors of each part.
                for ((low, high), twiddles) in chunks {
                    // Without it the compiler makes vectors across chunks, whose elements it gathers
                    // one by one: five times slower.
                    compiler_fence(Ordering::SeqCst);
                    let mut a = parts(*low);
                    let mut b = parts(*high);
                    b[0].reverse();
                    b[1].reverse();
                    let t = parts(*twiddles);
                    for i in 0..WIDTH {
                        let pair = [[a[0][i], a[1][i]], [b[0][i], b[1][i]]];
                        let [low, high] = f(pair, [t[0][i], t[1][i]]);
                        a[0][i] = low[0];
                        a[1][i] = low[1];
                        b[0][i] = high[0];
                        b[1][i] = high[1];
                    }
                    for i in 0..WIDTH {
                        low[i] = Complex::new(a[0][i], a[1][i]);
                    }
                    for i in 0..WIDTH {
                        high[WIDTH - 1 - i] = Complex::new(b[0][i], b[1][i]);
                    }
                }
                let rest = low_rest.iter_mut().zip(high_rest.iter_mut().rev()).zip(twiddles_rest);
                for ((low, high), t) in rest {
                    let [a, b] = f([[low.re, low.im], [high.re, high.im]], [t.re, t.im]);
                    (*low, *high) = (Complex::new(a[0], a[1]), Complex::new(b[0], b[1]));
                }
            },
        );
    }
}

/// Points `k` and `m - k`.
type Pair<T> = [[T; 2]; 2];

/// The real and the imaginary parts of numbers.
#[inline(always)]
fn parts<T: Copy>([a, b, c, d, e, f, g, h]: [Complex<T>; WIDTH]) -> [[T; WIDTH]; 2] {
    [
        [a.re, b.re, c.re, d.re, e.re, f.re, g.re, h.re],
        [a.im, b.im, c.im, d.im, e.im, f.im, g.im, h.im],
    ]
}

/// The sum's real part and the difference's imaginary part, and what is added to and taken from
/// them on either side.
#[inline(always)]
fn turned<T: FftNum>([a, b]: Pair<T>, twiddle: [T; 2]) -> [T; 4] {
    let (sum, diff) = ([a[0] + b[0], a[1] + b[1]], [a[0] - b[0], a[1] - b[1]]);
    let re = sum[1] * twiddle[0] + diff[0] * twiddle[1];
    let im = sum[1] * twiddle[1] - diff[0] * twiddle[0];
    [sum[0], diff[1], re, im]
}

/// Points of the reals' spectrum.
#[inline(always)]
fn forward_pair<T: Real>(pair: Pair<T>, twiddle: [T; 2]) -> Pair<T> {
    let half = T::rounded(0.5);
    let [sum, diff, re, im] = turned(pair, twiddle);
    let (sum, diff) = (half * sum, half * diff);
    [[sum + re, diff + im], [sum - re, im - diff]]
}

/// Points of the spectrum that [`forward_pair`] is made of, doubled.
#[inline(always)]
fn inverse_pair<T: Real>(pair: Pair<T>, twiddle: [T; 2]) -> Pair<T> {
    let [sum, diff, re, im] = turned(pair, twiddle);
    [[sum - re, diff - im], [sum + re, -im - diff]]
}
