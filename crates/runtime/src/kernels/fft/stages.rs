//! Complex transforms of several lines side by side.
//!
//! A line's length is taken apart into radices, with a pass over all points for each (Stockham's
//! form, which goes from one array to another and needs no reordering). Radices up to
//! [`MAX_RADIX`] are done by their definition, using its symmetry. Larger primes become convolutions
//! (`convolved.rs`).
//!
//! Transforms are forward; with real and imaginary parts exchanged at both ends they are inverse.

use super::Real;
use super::lanes::{Lanes, Vector};

/// The greatest prime factor of a length that is taken apart.
pub(super) const MAX_RADIX: usize = 127;
const MAX_HALF: usize = MAX_RADIX / 2;

/// A complex number of each line.
#[derive(Clone, Copy)]
pub(super) struct Point<V> {
    pub(super) re: V,
    pub(super) im: V,
}

type Points<L> = [Point<<L as Lanes>::Vector>];

impl<V: Vector> Point<V> {
    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        Point { re: self.re + other.re, im: self.im + other.im }
    }

    #[inline(always)]
    pub(super) fn minus(self, other: Self) -> Self {
        Point { re: self.re - other.re, im: self.im - other.im }
    }

    /// Times a complex number.
    #[inline(always)]
    pub(super) fn times(self, [re, im]: [V; 2]) -> Self {
        let (ac, bc) = (self.re * re, self.im * re);
        Point { re: self.im.neg_mul_add(im, ac), im: self.re.mul_add(im, bc) }
    }

    /// The sum with, and the difference from, `-i` times a number.
    #[inline(always)]
    fn turn(self, other: Self) -> [Self; 2] {
        let sum = Point { re: self.re + other.im, im: self.im - other.re };
        [sum, Point { re: self.re - other.im, im: self.im + other.re }]
    }
}

/// How points lie in memory: for each the parts of one kind of all lines, and then the others.
#[derive(Clone, Copy)]
pub(super) struct View<L> {
    pub(super) lanes: L,
    /// Whether imaginary parts come first.
    pub(super) is_swapped: bool,
}

impl<L: Lanes> View<L> {
    /// Numbers to a point.
    pub(super) const POINT: usize = 2 * L::COUNT;

    /// With the parts exchanged.
    pub(super) fn swapped(self) -> Self {
        View { is_swapped: !self.is_swapped, ..self }
    }

    #[inline(always)]
    pub(super) fn get(self, data: &[L::Real], i: usize) -> Point<L::Vector> {
        let (a, b) = data[i * Self::POINT..][..Self::POINT].split_at(L::COUNT);
        let (re, im) = if self.is_swapped { (b, a) } else { (a, b) };
        Point { re: self.lanes.load(re), im: self.lanes.load(im) }
    }

    #[inline(always)]
    pub(super) fn set(self, data: &mut [L::Real], i: usize, point: Point<L::Vector>) {
        let (a, b) = data[i * Self::POINT..][..Self::POINT].split_at_mut(L::COUNT);
        let (re, im) = if self.is_swapped { (b, a) } else { (a, b) };
        self.lanes.store(point.re, re);
        self.lanes.store(point.im, im);
    }

    /// A complex number for all lines.
    #[inline(always)]
    pub(super) fn splat(self, [re, im]: [L::Real; 2]) -> [L::Vector; 2] {
        [self.lanes.splat(re), self.lanes.splat(im)]
    }
}

/// `e^(-2πi·k/n)`
pub(super) fn root<T: Real>(k: usize, n: usize) -> [T; 2] {
    let (sin, cos) = (std::f64::consts::TAU * (k % n) as f64 / n as f64).sin_cos();
    [T::rounded(cos), T::rounded(-sin)]
}

/// The cosines and sines of the angles of an odd radix: `2π·j·k/radix`, for `k` and then `j` from 1
/// to half of it.
pub(super) fn angles<T: Real>(radix: usize) -> Vec<[T; 2]> {
    let half = radix / 2;
    let all = (1..=half).flat_map(|k| (1..=half).map(move |j| (j * k) % radix));
    all.map(|i| root::<T>(i, radix)).map(|[cos, sin]| [cos, T::zero() - sin]).collect()
}

/// A transform whose length has small factors only.
pub(super) struct Stages<T> {
    pub(super) len: usize,
    stages: Vec<Stage<T>>,
}

/// A pass over all points.
struct Stage<T> {
    radix: usize,
    /// The points of the line, or of what it has become a sum of, divided by the radix.
    groups: usize,
    /// The distance of neighbouring points of one of the interleaved lines that the passes before have
    /// made.
    apart: usize,
    /// For each group, for all but the first of the radix's results.
    twiddles: Vec<[T; 2]>,
    /// Of an odd radix.
    angles: Vec<[T; 2]>,
}

impl<T: Real> Stages<T> {
    /// A transform of `len` points; `None` if a prime factor is too large.
    pub(super) fn new(len: usize) -> Option<Self> {
        let (mut stages, mut rest, mut apart) = (Vec::new(), len, 1);
        for radix in radices(len)? {
            let groups = rest / radix;
            let twiddles = (0..groups).flat_map(|p| (1..radix).map(move |k| root(p * k, rest)));
            let twiddles = twiddles.collect();
            let angles = if radix % 2 == 1 { angles(radix) } else { Vec::new() };
            stages.push(Stage { radix, groups, apart, twiddles, angles });
            (rest, apart) = (groups, apart * radix);
        }
        Some(Stages { len, stages })
    }

    /// Whether the result lies in the second array.
    pub(super) fn ends_in_second(&self) -> bool {
        self.stages.len() % 2 == 1
    }

    /// Transforms `a`; both arrays hold a line's points at least. Gives the array with the result,
    /// and the other.
    pub(super) fn run<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        a: &'s mut [T],
        b: &'s mut [T],
    ) -> (&'s mut [T], &'s mut [T]) {
        let (mut from, mut to) = (a, b);
        for stage in &self.stages {
            view.lanes.vectorise(
                #[inline(always)]
                || match stage.radix {
                    2 => stage.pass(view, from, to, |[a, b]| [a.plus(b), a.minus(b)]),
                    4 => stage.pass(view, from, to, four),
                    3 => stage.pass::<L, 3>(view, from, to, |x| odd(view, &stage.angles, x)),
                    5 => stage.pass::<L, 5>(view, from, to, |x| odd(view, &stage.angles, x)),
                    7 => stage.pass::<L, 7>(view, from, to, |x| odd(view, &stage.angles, x)),
                    _ => stage.general(view, from, to),
                },
            );
            (from, to) = (to, from);
        }
        (from, to)
    }
}

/// The radices of a length, the larger primes first, where twiddle factors are read once for many
/// points; `None` if one is too large.
pub(super) fn radices(len: usize) -> Option<Vec<usize>> {
    let mut rest = len.max(1);
    let mut radices = Vec::new();
    for radix in [4, 2].into_iter().chain((3..=MAX_RADIX).step_by(2)) {
        while rest.is_multiple_of(radix) {
            radices.push(radix);
            rest /= radix;
        }
    }
    radices.reverse();
    (rest == 1).then_some(radices)
}

impl<T: Real> Stage<T> {
    /// The pass for radix `R`: butterflies of `R` points.
    #[inline(always)]
    fn pass<L: Lanes<Real = T>, const R: usize>(
        &self,
        view: View<L>,
        from: &[T],
        to: &mut [T],
        butterfly: impl Fn([Point<L::Vector>; R]) -> [Point<L::Vector>; R],
    ) {
        let Stage { groups, apart, .. } = *self;
        for p in 0..groups {
            let twiddles = &self.twiddles[p * (R - 1)..][..R - 1];
            for q in 0..apart {
                let mut points = [view.get(from, q + apart * p); R];
                for (j, point) in points.iter_mut().enumerate().skip(1) {
                    *point = view.get(from, q + apart * (p + groups * j));
                }
                let points = butterfly(points);
                view.set(to, q + apart * R * p, points[0]);
                for k in 1..R {
                    // All twiddle factors of the last pass are one.
                    let point = match groups {
                        1 => points[k],
                        _ => points[k].times(view.splat(twiddles[k - 1])),
                    };
                    view.set(to, q + apart * (R * p + k), point);
                }
            }
        }
    }

    /// A pass with any odd radix.
    #[inline(always)]
    fn general<L: Lanes<Real = T>>(&self, view: View<L>, from: &[T], to: &mut [T]) {
        let Stage { radix, groups, apart, .. } = *self;
        let half = radix / 2;
        let zero = view.lanes.splat(T::zero());
        let mut sums = [Point { re: zero, im: zero }; MAX_HALF];
        let mut diffs = sums;
        for p in 0..groups {
            let twiddles = &self.twiddles[p * (radix - 1)..][..radix - 1];
            for q in 0..apart {
                let at = q + apart * p;
                let first = view.get(from, at);
                let mut total = first;
                for j in 0..half {
                    let a = view.get(from, at + apart * groups * (j + 1));
                    let b = view.get(from, at + apart * groups * (radix - 1 - j));
                    (sums[j], diffs[j]) = (a.plus(b), a.minus(b));
                    total = total.plus(sums[j]);
                }
                let at = q + apart * radix * p;
                view.set(to, at, total);
                let parts = (&sums[..half], &diffs[..half]);
                // Two at a time, since one alone would wait for its own sums.
                for k in (1..=half).step_by(2) {
                    let angles = &self.angles[(k - 1) * half..];
                    if k < half {
                        let pairs = turned::<L, 2>(view, first, parts, angles);
                        self.put(view, to, at, twiddles, k, pairs[0]);
                        self.put(view, to, at, twiddles, k + 1, pairs[1]);
                    } else {
                        let pairs = turned::<L, 1>(view, first, parts, angles);
                        self.put(view, to, at, twiddles, k, pairs[0]);
                    }
                }
            }
        }
    }

    /// Writes results `k` and `radix - k` of an odd radix.
    #[inline(always)]
    fn put<L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        to: &mut [T],
        at: usize,
        twiddles: &[[T; 2]],
        k: usize,
        [low, high]: [Point<L::Vector>; 2],
    ) {
        let mirror = self.radix - k;
        view.set(to, at + self.apart * k, low.times(view.splat(twiddles[k - 1])));
        view.set(to, at + self.apart * mirror, high.times(view.splat(twiddles[mirror - 1])));
    }
}

/// Results `k` and `radix - k` of an odd radix for `N` successive `k`, whose angles come first.
#[inline(always)]
fn turned<L: Lanes, const N: usize>(
    view: View<L>,
    first: Point<L::Vector>,
    (sums, diffs): (&Points<L>, &Points<L>),
    angles: &[[L::Real; 2]],
) -> [[Point<L::Vector>; 2]; N] {
    let zero = view.lanes.splat(num_zero::<L>());
    let mut even = [first; N];
    let mut uneven = [Point { re: zero, im: zero }; N];
    let half = sums.len();
    for (j, (sum, diff)) in sums.iter().zip(diffs).enumerate() {
        for i in 0..N {
            let [cos, sin] = view.splat(angles[i * half + j]);
            even[i].re = sum.re.mul_add(cos, even[i].re);
            even[i].im = sum.im.mul_add(cos, even[i].im);
            uneven[i].re = diff.re.mul_add(sin, uneven[i].re);
            uneven[i].im = diff.im.mul_add(sin, uneven[i].im);
        }
    }
    let mut pairs = [[first; 2]; N];
    for i in 0..N {
        pairs[i] = even[i].turn(uneven[i]);
    }
    pairs
}

fn num_zero<L: Lanes>() -> L::Real {
    <L::Real as Real>::rounded(0.0)
}

/// The transform of four points.
#[inline(always)]
fn four<V: Vector>([a, b, c, d]: [Point<V>; 4]) -> [Point<V>; 4] {
    let (sum, diff) = (a.plus(c), a.minus(c));
    let other = b.plus(d);
    let [low, high] = diff.turn(b.minus(d));
    [sum.plus(other), low, sum.minus(other), high]
}

/// The transform of an odd number of points.
#[inline(always)]
fn odd<L: Lanes, const R: usize>(
    view: View<L>,
    angles: &[[L::Real; 2]],
    points: [Point<L::Vector>; R],
) -> [Point<L::Vector>; R] {
    let half = R / 2;
    let (mut sums, mut diffs) = (points, points);
    let mut results = points;
    for j in 1..=half {
        sums[j - 1] = points[j].plus(points[R - j]);
        diffs[j - 1] = points[j].minus(points[R - j]);
        results[0] = results[0].plus(sums[j - 1]);
    }
    for k in 1..=half {
        let angles = &angles[(k - 1) * half..][..half];
        let parts = (&sums[..half], &diffs[..half]);
        let [[low, high]] = turned::<L, 1>(view, points[0], parts, angles);
        (results[k], results[R - k]) = (low, high);
    }
    results
}
