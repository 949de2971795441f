//! The secular equation `1/ρ + Σ zᵢ² / (pᵢ − λ) = 0`, whose roots are the eigenvalues of a diagonal matrix
//! `p` to which `ρ z zᵀ` is added, after Cuppen, Gu and Eisenstat, and Li ("Solving secular equations stably
//! and efficiently", 1993): each pole is followed by a root.
//!
//! A root is kept as its distance from the nearer pole, so that those from all poles are accurate. Roots are
//! looked for side by side, each with its own iteration.

use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::real::{LANES, Lanes, Real};
use crate::Threads;

/// Beyond these many steps a root is as good as it gets: brackets are halved, at least.
const MAX_STEPS: usize = 80;
/// The groups of roots or rows of a task.
const TASK_GROUPS: usize = 4;

/// The poles and weights of an equation.
#[derive(Clone, Copy)]
pub(super) struct Equation<'e, T> {
    /// Ascending, apart from each other; of [`Kind::Squares`] the roots of the poles, not negative.
    pub(super) poles: &'e [T],
    /// The squares of `z`.
    pub(super) weights: &'e [T],
    /// `1/ρ`, positive.
    pub(super) inverse: T,
    pub(super) kind: Kind,
}

/// What poles are given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Themselves.
    Plain,
    /// Their square roots.
    Squares,
}

/// Roots side by side: the poles from which they are measured, and their distances from these.
#[derive(Clone, Copy)]
pub(super) struct Roots<T> {
    origin: Lanes<T>,
    distance: Lanes<T>,
}

impl<T: Real> Roots<T> {
    pub(super) const NONE: Self = Roots { origin: [T::ZERO; LANES], distance: [T::ZERO; LANES] };

    /// A root; of squares its square root.
    pub(super) fn value(&self, lane: usize, kind: Kind) -> T {
        let (origin, distance) = (self.origin[lane], self.distance[lane]);
        match kind {
            Kind::Plain => origin + distance,
            Kind::Squares => {
                let square = origin * origin + distance;
                let root = if square > T::ZERO { square.sqrt() } else { T::ZERO };
                let sum = origin + root;
                if sum > T::ZERO { origin + distance / sum } else { T::ZERO }
            }
        }
    }
}

/// The sums of the equation's left side up to some pole and beyond it, and their derivatives.
#[derive(Clone, Copy)]
struct Sums<T> {
    low: Lanes<T>,
    low_slope: Lanes<T>,
    high: Lanes<T>,
    high_slope: Lanes<T>,
}

/// The state of one root's iteration.
#[derive(Clone, Copy)]
struct Search<T> {
    /// The poles around the root, measured from its origin; of the last root the two before it.
    around: [T; 2],
    /// The root is between these.
    bracket: [T; 2],
    is_last: bool,
    is_found: bool,
}

impl<T: Real> Equation<'_, T> {
    /// The difference of a pole and one that is given as poles are.
    #[inline(always)]
    fn difference(kind: Kind, pole: T, other: T) -> T {
        match kind {
            Kind::Plain => pole - other,
            Kind::Squares => (pole - other) * (pole + other),
        }
    }

    /// Finds all roots, of which there are as many as poles, more than one.
    pub(super) fn solve(&self, roots: &mut [Roots<T>], threads: Threads<'_>) {
        let groups = self.poles.len().div_ceil(LANES);
        threads.for_chunks(&mut roots[..groups], TASK_GROUPS, &|task, roots| {
            for (number, roots) in roots.iter_mut().enumerate() {
                let first = (task * TASK_GROUPS + number) * LANES;
                match self.kind {
                    Kind::Plain => vectorised(
                        #[inline(always)]
                        || *roots = self.solve_group(first, Kind::Plain),
                    ),
                    Kind::Squares => vectorised(
                        #[inline(always)]
                        || *roots = self.solve_group(first, Kind::Squares),
                    ),
                }
            }
        });
    }

    /// Finds the roots from number `first` on.
    #[inline(always)]
    fn solve_group(&self, first: usize, kind: Kind) -> Roots<T> {
        let Equation { poles, weights, inverse, .. } = *self;
        let count = poles.len();
        // Where there are fewer roots, the last is looked for several times.
        let number = |lane: usize| (first + lane).min(count - 1);
        let half = T::of(0.5);
        let mut roots = Roots::NONE;
        let total = weights.iter().fold(T::ZERO, |sum, &weight| sum + weight) / inverse;
        let mut gaps = [T::ZERO; LANES];
        for (lane, gap) in gaps.iter_mut().enumerate() {
            let k = number(lane);
            roots.origin[lane] = poles[k];
            *gap = match k + 1 == count {
                true => total,
                false => Self::difference(kind, poles[k + 1], poles[k]),
            };
            roots.distance[lane] = *gap * half;
        }
        let sums = self.sums(first, &roots, kind);
        let mut searches = [(); LANES].map(|()| Search {
            around: [T::ZERO; 2],
            bracket: [T::ZERO; 2],
            is_last: false,
            is_found: false,
        });
        for lane in 0..LANES {
            let (k, gap, middle) = (number(lane), gaps[lane], roots.distance[lane]);
            let value = inverse + (sums.low[lane] + sums.high[lane]);
            let is_last = k + 1 == count;
            let split = k.min(count - 2);
            let weights = [weights[split], weights[split + 1]];
            let is_low = value > T::ZERO;
            let (around, bracket) = match (is_last, is_low) {
                (true, _) => {
                    let before = Self::difference(kind, poles[split], poles[k]);
                    let bracket = if is_low { [T::ZERO, middle] } else { [middle, gap] };
                    ([before, T::ZERO], bracket)
                }
                (false, true) => ([T::ZERO, gap], [T::ZERO, middle]),
                (false, false) => ([-gap, T::ZERO], [-middle, T::ZERO]),
            };
            if !is_last && !is_low {
                roots.origin[lane] = poles[k + 1];
            }
            // The poles around it taken as they are, the others as they are in the middle.
            let at_middle = match (is_last, is_low) {
                (false, false) => -middle,
                _ => middle,
            };
            let near = weights[0] / (around[0] - at_middle) + weights[1] / (around[1] - at_middle);
            let c = value - near;
            let [p, q] = around;
            let a = c * (p + q) + weights[0] + weights[1];
            let b = c * (p * q) + weights[0] * q + weights[1] * p;
            let guess = quadratic(a, b, c, is_last);
            let search = &mut searches[lane];
            *search = Search { around, bracket, is_last, is_found: false };
            roots.distance[lane] = search.inside(guess);
        }
        for _ in 0..MAX_STEPS {
            let sums = self.sums(first, &roots, kind);
            let mut is_done = true;
            for (lane, search) in searches.iter_mut().enumerate() {
                if !search.is_found {
                    search.step(&mut roots.distance[lane], inverse, &sums, lane);
                    is_done &= search.is_found;
                }
            }
            if is_done {
                break;
            }
        }
        roots
    }

    #[inline(always)]
    fn sums(&self, first: usize, roots: &Roots<T>, kind: Kind) -> Sums<T> {
        let Equation { poles, weights, .. } = *self;
        let count = poles.len();
        let Roots { origin, distance } = *roots;
        let [mut low, mut low_slope, mut high, mut high_slope] = [[T::ZERO; LANES]; 4];
        // Which poles are low differs among lanes only here.
        let (start, end) = (first.min(count - 2) + 1, (first + LANES).min(count));
        for (&pole, &weight) in poles[..start].iter().zip(weights) {
            for l in 0..LANES {
                let from = Self::difference(kind, pole, origin[l]) - distance[l];
                let (inverse, weight) = (T::ONE / from, weight);
                let quotient = weight * inverse;
                low[l] += quotient;
                low_slope[l] += quotient * inverse;
            }
        }
        for (&pole, &weight) in poles[end..].iter().zip(&weights[end..]).rev() {
            for l in 0..LANES {
                let from = Self::difference(kind, pole, origin[l]) - distance[l];
                let inverse = T::ONE / from;
                let quotient = weight * inverse;
                high[l] += quotient;
                high_slope[l] += quotient * inverse;
            }
        }
        for i in start..end {
            let (pole, weight) = (poles[i], weights[i]);
            for l in 0..LANES {
                let from = Self::difference(kind, pole, origin[l]) - distance[l];
                let inverse = T::ONE / from;
                let quotient = weight * inverse;
                let slope = quotient * inverse;
                let is_low = i <= (first + l).min(count - 2);
                low[l] += if is_low { quotient } else { T::ZERO };
                low_slope[l] += if is_low { slope } else { T::ZERO };
                high[l] += if is_low { T::ZERO } else { quotient };
                high_slope[l] += if is_low { T::ZERO } else { slope };
            }
        }
        Sums { low, low_slope, high, high_slope }
    }

    /// Writes for each pole its distances from all roots to a row of its own, whose number is in `places`; and to
    /// `z`, with the signs that it has, what has these roots exactly.
    pub(super) fn distances(
        &self,
        roots: &[Roots<T>],
        z: &mut [T],
        (rows, places): (&mut [T], &[usize]),
        threads: Threads<'_>,
    ) {
        let count = self.poles.len();
        let rows = Disjoint::new(rows);
        threads.for_chunks(&mut z[..count], TASK_GROUPS * LANES, &|task, z| {
            for (number, z) in z.iter_mut().enumerate() {
                let pole = task * TASK_GROUPS * LANES + number;
                // SAFETY: each pole has a place of its own.
                let row = unsafe { rows.part(places[pole] * count, count) };
                vectorised(
                    #[inline(always)]
                    || {
                        let square = match self.kind {
                            Kind::Plain => self.distances_of(pole, roots, row, Kind::Plain),
                            Kind::Squares => self.distances_of(pole, roots, row, Kind::Squares),
                        };
                        *z = square.sqrt().with_sign(*z);
                    },
                );
            }
        });
    }

    /// Of one pole; gives the square of its `z`.
    #[inline(always)]
    fn distances_of(&self, pole: usize, roots: &[Roots<T>], row: &mut [T], kind: Kind) -> T {
        let (poles, at) = (self.poles, self.poles[pole]);
        let row = &mut row[..poles.len()];
        let mut products = [T::ONE; LANES];
        for ((row, roots), poles) in
            row.chunks_exact_mut(LANES).zip(roots).zip(poles.chunks_exact(LANES))
        {
            for l in 0..LANES {
                let from = Self::difference(kind, at, roots.origin[l]) - roots.distance[l];
                row[l] = from;
                let apart = Self::difference(kind, at, poles[l]);
                // Of the pole itself there is only the distance from its root.
                products[l] *= from / if apart == T::ZERO { T::ONE } else { apart };
            }
        }
        let whole = poles.len() / LANES * LANES;
        if let Some(roots) = roots.get(whole / LANES) {
            for (l, (row, &other)) in row[whole..].iter_mut().zip(&poles[whole..]).enumerate() {
                let from = Self::difference(kind, at, roots.origin[l]) - roots.distance[l];
                *row = from;
                let apart = Self::difference(kind, at, other);
                products[l] *= from / if apart == T::ZERO { T::ONE } else { apart };
            }
        }
        products.into_iter().fold(T::ONE, |product, lane| product * lane).size()
    }
}

impl<T: Real> Search<T> {
    /// The guess, if it is in the bracket, or else what is in its middle.
    #[inline(always)]
    fn inside(&self, guess: T) -> T {
        let [low, high] = self.bracket;
        if guess > low && guess < high { guess } else { (low + high) * T::of(0.5) }
    }

    /// A step of the iteration, from the sums at `distance`.
    #[inline(always)]
    fn step(&mut self, distance: &mut T, inverse: T, sums: &Sums<T>, lane: usize) {
        let (low, high) = (sums.low[lane], sums.high[lane]);
        let (low_slope, high_slope) = (sums.low_slope[lane], sums.high_slope[lane]);
        let (value, slope) = (inverse + (low + high), low_slope + high_slope);
        let at = *distance;
        let error = T::of(8.0) * (high.size() + low.size()) + inverse + at.size() * slope;
        if value.size() <= T::EPSILON * error {
            self.is_found = true;
            return;
        }
        self.bracket[if value < T::ZERO { 0 } else { 1 }] = at;
        let [p, q] = self.around.map(|pole| pole - at);
        let mut c = value - p * low_slope - q * high_slope;
        if self.is_last {
            c = c.size();
        }
        let a = (p + q) * value - p * q * slope;
        let b = p * q * value;
        let mut by = quadratic(a, b, c, self.is_last);
        let is_towards = value * by < T::ZERO;
        if !is_towards {
            by = -(value / slope);
        }
        let next = self.inside(at + by);
        let [from, to] = self.bracket;
        let most = from.size().larger(to.size());
        let is_stuck = next == at || to - from <= T::EPSILON * most;
        self.is_found = is_stuck;
        *distance = next;
    }
}

/// The root of `c x² − a x + b` between the poles, or after both.
#[inline(always)]
fn quadratic<T: Real>(a: T, b: T, c: T, is_last: bool) -> T {
    let two = T::of(2.0);
    let root = (a * a - T::of(4.0) * b * c).size().sqrt();
    match (is_last, a > T::ZERO || (is_last && a == T::ZERO)) {
        (true, true) => (a + root) / (two * c),
        (true, false) => two * b / (a - root),
        (false, true) => two * b / (a + root),
        (false, false) => (a - root) / (two * c),
    }
}
