//! Eigenvalues of tridiagonal matrices: halves are solved one by one, and joined by a secular equation.

use helio_linalg::Vectors;

use super::super::isa::vectorised;
use super::halves::{
    Deflated, Halves, LEAF, Support, divide, largest, length, normalise, rotate_all, sorted_by,
};
use super::real::{LANES, Real};
use super::secular::{Equation, Kind, Roots};
use crate::Threads;

/// A tridiagonal matrix on its way to eigenvalues.
pub(super) struct Divided<'w, T> {
    pub(super) d: &'w mut [T],
    pub(super) e: &'w mut [T],
    /// Rows of `width` elements: vectors, of which those of a part have only columns of that part; or their first
    /// and last elements.
    pub(super) z: &'w mut [T],
    pub(super) width: usize,
    pub(super) vectors: bool,
    pub(super) packed: &'w mut [T],
    pub(super) factors: &'w mut [T],
    pub(super) threads: Threads<'w>,
}

impl<T: Real> Divided<'_, T> {
    /// Solves a part, whose values are in ascending order then; gives how many were not found.
    pub(super) fn solve(&mut self, start: usize, end: usize) -> i32 {
        if self.threads.is_stopped() {
            return 0;
        }
        if end - start <= LEAF {
            return self.leaf(start, end);
        }
        let middle = start.midpoint(end);
        let tie = self.e[middle - 1];
        self.d[middle - 1] -= tie.size();
        self.d[middle] -= tie.size();
        let infos = [self.solve(start, middle), self.solve(middle, end)];
        self.join([start, middle, end], tie);
        infos[0] + infos[1]
    }

    fn leaf(&mut self, start: usize, end: usize) -> i32 {
        let n = end - start;
        let (d, e) = (&mut self.d[start..end], &mut self.e[start..end - 1]);
        let (rotations, info) = T::steqr(Vectors::Wanted, d, e);
        let mut order = [0; LEAF];
        let order = sorted(d, &mut order);
        let mut old = [T::ZERO; LEAF];
        old[..n].copy_from_slice(d);
        order.iter().zip(d).for_each(|(&from, d)| *d = old[from]);
        let mut identity = [[T::ZERO; LEAF]; LEAF];
        identity.iter_mut().enumerate().take(n).for_each(|(i, row)| row[i] = T::ONE);
        vectorised(
            #[inline(always)]
            || rotate_all(&mut identity, &rotations),
        );
        for (number, &from) in order.iter().enumerate() {
            let row = &identity[from];
            let z = &mut self.z[(start + number) * self.width..][..self.width];
            match self.vectors {
                true => z[start..end].copy_from_slice(&row[..n]),
                false => z.copy_from_slice(&[row[0], row[n - 1]]),
            }
        }
        info
    }

    /// Joins two parts, whose last and first rows are tied by an element beside the diagonal.
    fn join(&mut self, [start, middle, end]: [usize; 3], tie: T) {
        let n = end - start;
        let half = middle - start;
        let width = self.width;
        // The part's own columns, or both elements of a row.
        let (columns, size) = match self.vectors {
            true => (start, [n, half]),
            false => (0, [2, 1]),
        };
        let at = start * width + columns;
        let d = &mut self.d[start..end];
        let end_of_rows = (end - 1) * width + columns + size[0];
        let mut halves = Halves { rows: &mut self.z[at..end_of_rows], stride: width, size };
        let root_half = T::of(0.5).sqrt();
        let sign = if tie.is_negative() { -root_half } else { root_half };
        let mut z = vec![T::ZERO; n];
        for (i, z) in z.iter_mut().enumerate() {
            let row = &mut halves.rows[i * width..][..size[0]];
            // The last element of the first part's rows, the first of the others'.
            let [of_first, of_second] = if self.vectors { [half - 1, half] } else { [1, 0] };
            *z = if i < half { root_half * row[of_first] } else { sign * row[of_second] };
            match (self.vectors, i < half) {
                (true, true) => row[half..].fill(T::ZERO),
                (true, false) => row[..half].fill(T::ZERO),
                // Of the whole only the first and the last element are kept.
                (false, true) => row[1] = T::ZERO,
                (false, false) => row[0] = T::ZERO,
            }
        }
        let rho = tie.size() + tie.size();
        let Deflated { kept, done } = deflate(d, &mut z, rho, half, &mut halves);

        let count = kept.len();
        let mut values: Vec<T> = Vec::with_capacity(n);
        let mut places = vec![0; count];
        let parts = halves.pack(&kept, &done, self.packed, &mut places);
        if let [(row, _)] = kept[..] {
            values.push(d[row] + rho * z[row] * z[row]);
            halves.unpack(0, 1, self.packed);
        } else if count > 1 {
            let poles: Vec<T> = kept.iter().map(|&(row, _)| d[row]).collect();
            let weights: Vec<T> = kept.iter().map(|&(row, _)| z[row] * z[row]).collect();
            let mut z: Vec<T> = kept.iter().map(|&(row, _)| z[row]).collect();
            let equation = Equation {
                poles: &poles,
                weights: &weights,
                inverse: T::ONE / rho,
                kind: Kind::Plain,
            };
            let mut roots = vec![Roots::NONE; count.div_ceil(LANES)];
            equation.solve(&mut roots, self.threads);
            values.extend((0..count).map(|i| roots[i / LANES].value(i % LANES, Kind::Plain)));
            let factors = &mut self.factors[..count * count];
            equation.distances(&roots, &mut z, (factors, &places), self.threads);
            for (&place, &z) in places.iter().zip(&z) {
                divide(z, &mut factors[place * count..][..count]);
            }
            let mut sums = poles;
            normalise(factors, count, count, &mut sums);
            halves.combine((factors, count), self.packed, count, parts, self.threads);
        }
        values.extend(done.iter().map(|&row| d[row]));
        halves.unpack(count, n, self.packed);
        let mut order: Vec<usize> = (0..n).collect();
        let order = sorted_by(&values, &mut order);
        order.iter().zip(d).for_each(|(&from, d)| *d = values[from]);
        halves.reorder(order, self.packed);
    }
}

/// Finds which values of `d`, two ascending sequences of which the first has `half` elements, are eigenvalues of
/// `d + ρ z zᵀ`, after rotations that make elements of `z` vanish.
fn deflate<T: Real>(
    d: &mut [T],
    z: &mut [T],
    rho: T,
    half: usize,
    halves: &mut Halves<'_, T>,
) -> Deflated {
    let n = d.len();
    let mut order: Vec<usize> = (0..n).collect();
    let order = sorted_by(d, &mut order);
    let tolerance = T::of(8.0) * T::EPSILON * largest(d).larger(largest(z));
    let mut kept = Vec::with_capacity(n);
    let mut done = Vec::new();
    // The last one that is to be kept unless the next one is like it.
    let mut last: Option<(usize, Support)> = None;
    for &row in order {
        if rho * z[row].size() <= tolerance {
            done.push(row);
            continue;
        }
        let mut support = Support::of(row, half);
        if let Some((before, of_before)) = last {
            let (s, c) = (z[before], z[row]);
            let tau = length(c, s);
            let (c, s) = (c / tau, -s / tau);
            let apart = d[row] - d[before];
            if (apart * c * s).size() <= tolerance {
                (z[row], z[before]) = (tau, T::ZERO);
                support = support.with(of_before);
                halves.rotate([before, row], c, s);
                let (low, high) = (d[before], d[row]);
                d[before] = low * (c * c) + high * (s * s);
                d[row] = low * (s * s) + high * (c * c);
                done.push(before);
            } else {
                kept.push((before, of_before));
            }
        }
        last = Some((row, support));
    }
    kept.extend(last);
    Deflated { kept, done }
}

/// The order of values.
fn sorted<'o, T: Real>(values: &[T], order: &'o mut [usize; LEAF]) -> &'o [usize] {
    let order = &mut order[..values.len()];
    order.iter_mut().enumerate().for_each(|(i, number)| *number = i);
    sorted_by(values, order)
}
