//! Lines of an odd number of reals, side by side.
//!
//! The first radix is done on reals: what it makes of a line are as many complex ones as it has
//! results, half of which are the conjugates of the other half and left out.

use super::Real;
use super::lanes::{Lanes, Vector, row};
use super::spectrum::spectrum_point;
use super::stages::{MAX_RADIX, Point, Stages, View, angles, root};

const MAX_HALF: usize = MAX_RADIX / 2;

/// A transform of lines of an odd number of reals: the first radix on reals, then complex stages.
pub(super) struct OddTransform<T> {
    radix: usize,
    /// Cosines and sines of the multiples of a circle's part that the radix cuts it into.
    angles: Vec<[T; 2]>,
    /// The transform of the complex lines that the first radix makes.
    stages: Stages<T>,
    /// The twiddle factors for each point of those lines, for results 1 to half of the radix.
    twiddles: Vec<[T; 2]>,
}

impl<T: Real> OddTransform<T> {
    pub(super) fn new(len: usize, radix: usize) -> Option<Self> {
        let count = len / radix;
        let twiddles = (0..count).flat_map(|t| (1..=radix / 2).map(move |k| root(t * k, len)));
        Some(OddTransform {
            radix,
            angles: angles(radix),
            stages: Stages::new(count)?,
            twiddles: twiddles.collect(),
        })
    }

    /// How many points an array has room for.
    pub(super) fn room(&self) -> usize {
        (self.radix / 2 + 1) * self.stages.len
    }

    /// Transforms all that the radix makes, from the first array; gives the array with the results,
    /// and the other.
    fn inner<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        (a, b): (&'s mut [T], &'s mut [T]),
    ) -> (&'s mut [T], &'s mut [T]) {
        let line = self.stages.len * View::<L>::POINT;
        let lines = (self.radix / 2 + 1) * line;
        for (a, b) in a[..lines].chunks_exact_mut(line).zip(b[..lines].chunks_exact_mut(line)) {
            self.stages.run(view, a, b);
        }
        if self.stages.ends_in_second() { (b, a) } else { (a, b) }
    }

    pub(super) fn forward<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        len: usize,
        a: &'s mut [T],
        b: &'s mut [T],
    ) -> &'s mut [T] {
        let (lanes, radix, half, count) = (view.lanes, self.radix, self.radix / 2, self.stages.len);
        let zero = lanes.splat(T::zero());
        lanes.vectorise(
            #[inline(always)]
            || {
                let mut sums = [zero; MAX_HALF];
                let mut diffs = sums;
                for t in 0..count {
                    let first = row(lanes, a, t);
                    let mut total = first;
                    for j in 0..half {
                        let x = row(lanes, a, t + count * (j + 1));
                        let y = row(lanes, a, t + count * (radix - 1 - j));
                        (sums[j], diffs[j]) = (x + y, x - y);
                        total = total + sums[j];
                    }
                    view.set(b, t, Point { re: total, im: zero });
                    let twiddles = &self.twiddles[t * half..][..half];
                    for (k, &twiddle) in twiddles.iter().enumerate() {
                        let (mut re, mut im) = (first, zero);
                        let angles = &self.angles[k * half..][..half];
                        for (j, &angle) in angles.iter().enumerate() {
                            let [cos, sin] = view.splat(angle);
                            re = sums[j].mul_add(cos, re);
                            im = diffs[j].neg_mul_add(sin, im);
                        }
                        let point = Point { re, im }.times(view.splat(twiddle));
                        view.set(b, (k + 1) * count + t, point);
                    }
                }
            },
        );
        let (made, to) = self.inner(view, (b, a));
        lanes.vectorise(
            #[inline(always)]
            || {
                for q in 0..=len / 2 {
                    let (k, j) = (q % radix, q / radix);
                    let point = if k <= half {
                        view.get(made, k * count + j)
                    } else {
                        let mirror = len - q;
                        let point = view.get(made, mirror % radix * count + mirror / radix);
                        Point { re: point.re, im: zero - point.im }
                    };
                    view.set(to, q, point);
                }
            },
        );
        to
    }

    pub(super) fn inverse<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        len: usize,
        scale: T,
        a: &'s mut [T],
        b: &'s mut [T],
    ) -> &'s mut [T] {
        let (lanes, radix, half, count) = (view.lanes, self.radix, self.radix / 2, self.stages.len);
        let plain = view.swapped();
        lanes.vectorise(
            #[inline(always)]
            || {
                let scale = lanes.splat(scale);
                for k in 0..=half {
                    for j in 0..count {
                        let point = spectrum_point(plain, a, k + radix * j, len, scale);
                        plain.set(b, k * count + j, point);
                    }
                }
            },
        );
        let (made, to) = self.inner(view, (b, a));
        lanes.vectorise(
            #[inline(always)]
            || {
                let zero = lanes.splat(T::zero());
                let mut points = [Point { re: zero, im: zero }; MAX_HALF];
                for t in 0..count {
                    let first = plain.get(made, t).re;
                    let mut total = first;
                    let twiddles = &self.twiddles[t * half..][..half];
                    for (k, &twiddle) in twiddles.iter().enumerate() {
                        let [cos, sin] = plain.splat(twiddle);
                        let v = plain.get(made, (k + 1) * count + t);
                        // By the factor's conjugate, and twice, for its mirror.
                        let re = v.re.mul_add(cos, v.im * sin);
                        let im = v.re.neg_mul_add(sin, v.im * cos);
                        points[k] = Point { re: re + re, im: im + im };
                        total = total + points[k].re;
                    }
                    lanes.store(total, &mut to[t * L::COUNT..]);
                    for s in 1..=half {
                        let (mut even, mut uneven) = (first, zero);
                        let angles = &self.angles[(s - 1) * half..][..half];
                        for (k, &angle) in angles.iter().enumerate() {
                            let [cos, sin] = plain.splat(angle);
                            even = points[k].re.mul_add(cos, even);
                            uneven = points[k].im.mul_add(sin, uneven);
                        }
                        let (low, high) = (t + count * s, t + count * (radix - s));
                        lanes.store(even - uneven, &mut to[low * L::COUNT..]);
                        lanes.store(even + uneven, &mut to[high * L::COUNT..]);
                    }
                }
            },
        );
        to
    }
}
