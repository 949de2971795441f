//! Singular values of bidiagonal matrices: what is above a row and what is below it are solved one by one, and joined
//! by a secular equation in squares.

use helio_linalg::{Rotation, Vectors};

use super::super::isa::vectorised;
use super::halves::{
    Deflated, Halves, LEAF, Support, divide, largest, length, normalise, rotate_all, sorted_by,
};
use super::real::{LANES, Real};
use super::secular::{Equation, Kind, Roots};
use crate::Threads;

/// An upper bidiagonal matrix on its way to singular values.
pub(super) struct Divided<'w, T> {
    pub(super) d: &'w mut [T],
    pub(super) e: &'w mut [T],
    /// Left vectors as rows of `width` elements, of which those of a part have only columns of that part; not used
    /// if vectors are not wanted.
    pub(super) left: &'w mut [T],
    /// Right vectors as rows, or their first and last elements.
    pub(super) right: &'w mut [T],
    pub(super) width: usize,
    pub(super) vectors: bool,
    pub(super) packed: &'w mut [T],
    pub(super) factors: &'w mut [T],
    pub(super) threads: Threads<'w>,
}

impl<T: Real> Divided<'_, T> {
    /// Solves a part, whose values are in ascending order then; it may have one more column than rows, and then the
    /// last right vector is that of no value. Gives how many values were not found.
    pub(super) fn solve(&mut self, start: usize, end: usize, is_wide: bool) -> i32 {
        if self.threads.is_stopped() {
            return 0;
        }
        if end - start <= LEAF {
            return self.leaf(start, end, is_wide);
        }
        let middle = start.midpoint(end);
        let infos = [self.solve(start, middle, true), self.solve(middle + 1, end, is_wide)];
        self.join([start, middle, end], is_wide);
        infos[0] + infos[1]
    }

    fn leaf(&mut self, start: usize, end: usize, is_wide: bool) -> i32 {
        let n = end - start;
        let columns = n + usize::from(is_wide);
        let (d, e) = (&mut self.d[start..end], &mut self.e[start..start + columns - 1]);
        // One more than a leaf: right vectors may be one more.
        let [mut left, mut right] = [[[T::ZERO; LEAF + 8]; LEAF + 1]; 2];
        for vectors in [&mut left, &mut right] {
            vectors.iter_mut().enumerate().take(columns).for_each(|(i, row)| row[i] = T::ONE);
        }
        let mut squaring = [Vec::new(), Vec::new()];
        if is_wide {
            squaring = make_square(d, e);
        }
        let (rotations, info) = T::bdsqr(Vectors::Wanted, d, &mut e[..n - 1]);
        vectorised(
            #[inline(always)]
            || {
                for [of_left, of_right] in [&squaring, &rotations] {
                    if self.vectors {
                        rotate_all(&mut left, of_left);
                    }
                    rotate_all(&mut right, of_right);
                }
            },
        );
        for (d, right) in d.iter_mut().zip(&mut right) {
            if d.is_negative() {
                *d = -*d;
                right.iter_mut().for_each(|x| *x = -*x);
            }
        }
        let mut order: [usize; LEAF] = std::array::from_fn(|i| i);
        let order = sorted_by(d, &mut order[..n]);
        let mut old = [T::ZERO; LEAF];
        old[..n].copy_from_slice(d);
        order.iter().zip(d).for_each(|(&from, d)| *d = old[from]);
        for (number, &from) in order.iter().chain(is_wide.then_some(&n)).enumerate() {
            let row = &right[from];
            let to = &mut self.right[(start + number) * self.width..][..self.width];
            match self.vectors {
                true => to[start..start + columns].copy_from_slice(&row[..columns]),
                false => to.copy_from_slice(&[row[0], row[columns - 1]]),
            }
            if self.vectors && number < n {
                let to = &mut self.left[(start + number) * self.width..][..self.width];
                to[start..end].copy_from_slice(&left[from][..n]);
            }
        }
        info
    }

    /// Joins two parts, between which is a row.
    fn join(&mut self, [start, middle, end]: [usize; 3], is_wide: bool) {
        let (n, half) = (end - start, middle - start);
        let (width, vectors) = (self.width, self.vectors);
        let columns = n + usize::from(is_wide);
        // The part's own columns, or both elements of a row.
        let (offset, size) = if vectors { (start, [columns, half + 1]) } else { (0, [2, 1]) };
        let at = start * width + offset;
        let d = &mut self.d[start..end];
        let (alpha, beta) = (d[half], self.e[middle]);
        d[half] = T::ZERO;
        let most = largest(d).larger(alpha.size()).larger(beta.size());
        let (up, down) = if most == T::ZERO { (T::ONE, T::ONE) } else { most.scaling() };
        d.iter_mut().for_each(|d| *d *= up);
        let (alpha, beta) = (alpha * up, beta * up);
        let tolerance = T::of(8.0) * T::EPSILON * (most * up);

        let end_of_right = (start + columns - 1) * width + offset + size[0];
        let mut right = Halves { rows: &mut self.right[at..end_of_right], stride: width, size };
        let mut left = vectors.then(|| {
            let size = [n, half + 1];
            let end_of_left = (end - 1) * width + offset + size[0];
            Halves { rows: &mut self.left[at..end_of_left], stride: width, size }
        });
        let mut z = vec![T::ZERO; columns];
        for (i, z) in z.iter_mut().enumerate() {
            let row = &mut right.rows[i * width..][..size[0]];
            // The last element of the first part's rows, the first of the others'.
            let [of_first, of_second] = if vectors { [half, half + 1] } else { [1, 0] };
            *z = if i <= half { alpha * row[of_first] } else { beta * row[of_second] };
            let zeros = if i <= half { size[1]..size[0] } else { 0..size[1] };
            row[zeros].fill(T::ZERO);
        }
        if let Some(left) = &mut left {
            for i in 0..n {
                let row = &mut left.rows[i * width..][..n];
                match i.cmp(&half) {
                    std::cmp::Ordering::Less => row[half..].fill(T::ZERO),
                    std::cmp::Ordering::Equal => row.fill(T::ZERO),
                    std::cmp::Ordering::Greater => row[..=half].fill(T::ZERO),
                }
            }
            left.rows[half * width + half] = T::ONE;
        }
        let mut own = Support::First;
        if is_wide {
            let whole = length(z[half], z[n]);
            if whole > tolerance {
                right.rotate([half, n], z[half] / whole, z[n] / whole);
                own = Support::Both;
            }
            z[half] = whole;
        }
        if z[half].size() <= tolerance {
            z[half] = tolerance;
        }

        let sides = [Some(&mut right), left.as_mut()];
        let Deflated { kept, done } = deflate(d, &mut z, tolerance, (half, own), sides);

        let count = kept.len();
        let mut places = vec![0; count];
        let mut values: Vec<T> = Vec::with_capacity(n);
        let mut parts = right.pack(&kept, &done, self.packed, &mut places);
        if let [(row, _)] = kept[..] {
            values.push(z[row].size());
            right.unpack(0, 1, self.packed);
            if z[row].is_negative() {
                right.rows[..size[0]].iter_mut().for_each(|x| *x = -*x);
            }
            right.unpack(1, n, self.packed);
            if let Some(left) = &mut left {
                left.pack(&kept, &done, self.packed, &mut places);
                left.unpack(0, n, self.packed);
            }
        } else {
            let mut poles: Vec<T> = kept.iter().map(|&(row, _)| d[row]).collect();
            // Apart from 0.
            poles[1] = poles[1].larger(tolerance * T::of(0.5));
            let mut z: Vec<T> = kept.iter().map(|&(row, _)| z[row]).collect();
            let weights: Vec<T> = z.iter().map(|&z| z * z).collect();
            let equation =
                Equation { poles: &poles, weights: &weights, inverse: T::ONE, kind: Kind::Squares };
            let mut roots = vec![Roots::NONE; count.div_ceil(LANES)];
            equation.solve(&mut roots, self.threads);
            values.extend((0..count).map(|i| roots[i / LANES].value(i % LANES, Kind::Squares)));
            let factors = &mut self.factors[..count * count];
            equation.distances(&roots, &mut z, (factors, &places), self.threads);
            for (&place, &z) in places.iter().zip(&z) {
                divide(z, &mut factors[place * count..][..count]);
            }
            let mut lengths = vec![T::ZERO; count];
            normalise(factors, count, count, &mut lengths);
            right.combine((factors, count), self.packed, count, parts, self.threads);
            right.unpack(count, n, self.packed);
            if let Some(left) = &mut left {
                parts = left.pack(&kept, &done, self.packed, &mut places);
                for (&place, &pole) in places.iter().zip(&poles).skip(1) {
                    factors[place * count..][..count].iter_mut().for_each(|x| *x *= pole);
                }
                let own = &mut factors[places[0] * count..][..count];
                own.iter_mut().zip(&lengths).for_each(|(to, &length)| *to = -length);
                normalise(factors, count, count, &mut lengths);
                left.combine((factors, count), self.packed, count, parts, self.threads);
                left.unpack(count, n, self.packed);
            }
        }
        values.extend(done.iter().map(|&row| d[row]));
        let mut order: Vec<usize> = (0..n).collect();
        let order = sorted_by(&values, &mut order);
        order.iter().zip(d).for_each(|(&from, d)| *d = values[from] * down);
        right.reorder(order, self.packed);
        if let Some(left) = &mut left {
            left.reorder(order, self.packed);
        }
    }
}

/// Finds which values of `d`, those of two halves with a row between whose `z` is not zero, are singular values of the
/// whole, after rotations that make elements of `z` vanish. Values are alike, and elements zero, up to `tolerance`.
fn deflate<T: Real>(
    d: &[T],
    z: &mut [T],
    tolerance: T,
    (middle, support_of_middle): (usize, Support),
    mut sides: [Option<&mut Halves<'_, T>>; 2],
) -> Deflated {
    let mut order: Vec<usize> = (0..d.len()).filter(|&row| row != middle).collect();
    let order = sorted_by(d, &mut order);
    let mut kept = vec![(middle, support_of_middle)];
    let mut done = Vec::new();
    let mut last: Option<(usize, Support)> = None;
    for &row in order {
        if z[row].size() <= tolerance {
            done.push(row);
            continue;
        }
        let mut support = Support::of(row, middle);
        if let Some((before, of_before)) = last {
            if (d[row] - d[before]).size() <= tolerance {
                let whole = length(z[row], z[before]);
                let (c, s) = (z[row] / whole, -z[before] / whole);
                (z[row], z[before]) = (whole, T::ZERO);
                support = support.with(of_before);
                sides.iter_mut().flatten().for_each(|side| side.rotate([before, row], c, s));
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

/// Makes an upper bidiagonal matrix that has a column more than rows, of `e`, one of which the last column is
/// zero; gives the rotations of left and of right vectors.
fn make_square<T: Real>(d: &mut [T], e: &mut [T]) -> [Vec<Rotation<T>>; 2] {
    let n = d.len();
    let rotation = |first: usize, x: T, y: T| {
        let most = x.size().larger(y.size());
        if most == T::ZERO {
            return (Rotation { first, cosine: T::ONE, sine: T::ZERO }, T::ZERO);
        }
        // The least numbers have few digits.
        let (up, down) = most.scaling();
        let (x, y) = (x * up, y * up);
        let length = length(x, y);
        (Rotation { first, cosine: x / length, sine: y / length }, length * down)
    };
    let [mut left, mut right] = [Vec::with_capacity(n), Vec::with_capacity(n)];
    for i in 0..n {
        // Lower bidiagonal by columns.
        let (by, length) = rotation(i, d[i], e[i]);
        (d[i], e[i]) = (length, T::ZERO);
        if i + 1 < n {
            (e[i], d[i + 1]) = (by.sine * d[i + 1], by.cosine * d[i + 1]);
        }
        right.push(by);
    }
    for i in 0..n - 1 {
        // Upper again by rows.
        let (by, length) = rotation(i, d[i], e[i]);
        d[i] = length;
        (e[i], d[i + 1]) = (by.sine * d[i + 1], by.cosine * d[i + 1]);
        left.push(by);
    }
    [left, right]
}
