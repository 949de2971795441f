//! Singular values and vectors of real matrices: QR factors of those that are not square, bidiagonal form of the
//! rest, whose halves are solved one by one and joined by a secular equation.

use helio_linalg::{Rotation, Vectors};

use super::super::bytes::{Scratch, bytes_of, bytes_of_mut, cast, cast_mut, scratch_for};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::FieldType;
use super::back::{self, Reversed};
use super::bidiagonal::{Form, reduce};
use super::deflate::{
    Halves, Support, clear_least, divide, largest, length, normalise, rotate_all, sorted_by,
};
use super::eigh::{NOT_FINITE, task_matrices};
use super::panel::{Row, WIDTH};
use super::qr::Qr;
use super::real::{LANES, Lanes, Real};
use super::secular::{Equation, Kind, Roots};
use crate::Threads;

/// Matrices of this order and less are not halved.
const LEAF: usize = 16;

/// Which singular vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvdVectors {
    /// None.
    Omitted,
    /// As many as there are singular values.
    Thin,
    /// Whole bases.
    Full,
}

/// Singular values, in descending order, and vectors of batches of real matrices.
#[derive(Clone, Debug)]
pub struct Svd {
    ty: FieldType,
    batch: usize,
    m: usize,
    n: usize,
    vectors: SvdVectors,
}

/// Where results go; `k` is the smaller size of a matrix.
#[derive(Debug)]
pub struct SvdResults<'r> {
    /// `k` values of each matrix.
    pub values: &'r mut [u8],
    /// Left vectors as columns: `m`×`k`, or `m`×`m` if they are full. Not touched if they are not wanted.
    pub left: &'r mut [u8],
    /// Right vectors as rows: `k`×`n`, or `n`×`n` if they are full. Not touched if they are not wanted.
    pub right: &'r mut [u8],
    /// For each matrix, as `i32`, 0, or how many values were not found, or −4 if an element is not finite: then
    /// all of its results are NaN.
    pub info: &'r mut [u8],
}

impl Svd {
    /// A plan for `batch` matrices `m`×`n`. `None` if numbers are complex, or sizes overflow.
    pub fn new(
        ty: FieldType,
        batch: usize,
        [m, n]: [usize; 2],
        vectors: SvdVectors,
    ) -> Option<Self> {
        let row = m.max(n).checked_add(4 * WIDTH)?.checked_mul(16 * size_of::<f64>())?;
        isize::try_from(row.checked_mul(m.max(n).max(1))?.checked_mul(batch.max(1))?).ok()?;
        let is_real = matches!(ty, FieldType::F32 | FieldType::F64);
        is_real.then_some(Svd { ty, batch, m, n, vectors })
    }

    /// Computes them.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn run(&self, a: &[u8], results: SvdResults<'_>, threads: Threads<'_>) {
        match self.ty {
            FieldType::F64 => self.typed::<f64>(cast(a), results, threads),
            _ => self.typed::<f32>(cast(a), results, threads),
        }
    }

    fn typed<T: Real>(&self, a: &[T], results: SvdResults<'_>, threads: Threads<'_>) {
        let Svd { batch, m, n, vectors, .. } = *self;
        let k = m.min(n);
        let [left_size, right_size] = match vectors {
            SvdVectors::Omitted => [0, 0],
            SvdVectors::Thin => [m * k, k * n],
            SvdVectors::Full => [m * m, n * n],
        };
        let info = cast_mut::<i32>(results.info);
        let [values, left, right] = [results.values, results.left, results.right]
            .map(|bytes| Disjoint::new(cast_mut::<T>(bytes)));
        // Several matrices are shared out; of one, products are.
        let own = if batch > 1 { Threads::single() } else { threads };
        let group = task_matrices(m.max(n));
        threads.for_chunks(&mut info[..batch], group, &|task, info| {
            scratch::with(self.scratch_bytes::<T>(), |memory: &mut [u8]| {
                for (number, info) in info.iter_mut().enumerate() {
                    let number = task * group + number;
                    // SAFETY: each matrix has a number of its own.
                    let [values, left, right] = unsafe {
                        [
                            values.part(number * k, k),
                            left.part(number * left_size, left_size),
                            right.part(number * right_size, right_size),
                        ]
                    };
                    let a = &a[number * m * n..][..m * n];
                    *info = self.one(a, values, [left, right], &mut Scratch::new(memory), own);
                }
            });
        });
    }

    /// Rows and columns of a matrix, or of its transpose if that is higher than wide.
    fn tall(&self) -> [usize; 2] {
        [self.m.max(self.n), self.m.min(self.n)]
    }

    fn scratch_bytes<T>(&self) -> usize {
        let [m, n] = self.tall();
        let sizes = self.sizes();
        let qr = if m > n { 2 * scratch_for::<T>(m * n) } else { 0 };
        let stride = n.div_ceil(LANES);
        qr + scratch_for::<Lanes<T>>(stride * (2 * n + 5))
            + scratch_for::<T>(5 * n)
            + 2 * scratch_for::<T>(sizes.z)
            + scratch_for::<T>(sizes.join)
    }

    fn sizes(&self) -> Sizes {
        let [m, n] = self.tall();
        match self.vectors {
            SvdVectors::Omitted => Sizes { z: 2 * n, join: 2 * n + n * n, columns: 0 },
            vectors => {
                let columns = if vectors == SvdVectors::Full { m } else { n };
                let panels = columns.div_ceil(WIDTH) * m;
                let join = (2 * n * n).max((panels + m + WIDTH) * WIDTH);
                Sizes { z: n * n, join, columns }
            }
        }
    }

    fn one<T: Real>(
        &self,
        a: &[T],
        values: &mut [T],
        [left, right]: [&mut [T]; 2],
        scratch: &mut Scratch<'_>,
        threads: Threads<'_>,
    ) -> i32 {
        let is_wide = self.m < self.n;
        let [m, n] = self.tall();
        let has_vectors = self.vectors != SvdVectors::Omitted;
        let mut is_finite = true;
        let mut most = T::ZERO;
        for &x in a {
            is_finite &= x.is_finite();
            most = most.larger(x.size());
        }
        if !is_finite {
            values.fill(T::NAN);
            left.fill(T::NAN);
            right.fill(T::NAN);
            return NOT_FINITE;
        }
        if n == 0 {
            // Bases of what there is, if they are wanted whole.
            for (basis, size) in [(left, self.m), (right, self.n)] {
                basis.fill(T::ZERO);
                basis.iter_mut().step_by(size + 1).for_each(|x| *x = T::ONE);
            }
            return 0;
        }
        let (up, down) = if most == T::ZERO { (T::ONE, T::ONE) } else { most.scaling() };
        let stride = n.div_ceil(LANES);
        let (groups, _) = scratch.take::<T>(stride * (2 * n + 5) * LANES).as_chunks_mut::<LANES>();
        let (rows, rest) = groups.split_at_mut(stride * n);
        let (column_reflectors, five) = rest.split_at_mut(stride * n);
        let (d, rest) = scratch.take::<T>(5 * n).split_at_mut(n);
        let (e, rest) = rest.split_at_mut(n);
        let (tau_left, rest) = rest.split_at_mut(n);
        let (tau_right, tau_qr) = rest.split_at_mut(n);
        let sizes = self.sizes();
        let (left_rows, right_rows) = (scratch.take::<T>(sizes.z), scratch.take::<T>(sizes.z));
        let join = scratch.take::<T>(sizes.join);

        // The matrix, or its `R`, backwards.
        let backwards = rows.as_flattened_mut();
        let (width, flat) = (stride * LANES, n * n);
        let mut qr: &[T] = &[];
        if m > n {
            let (matrix, packed) = (scratch.take::<T>(m * n), scratch.take::<T>(m * n));
            if is_wide {
                transpose(a, [n, m], matrix);
            } else {
                matrix.copy_from_slice(a);
            }
            matrix.iter_mut().for_each(|x| *x = *x * up);
            let Some(plan) = Qr::new(self.ty, 1, [m, n], n) else { return 0 };
            plan.factor(bytes_of(matrix), bytes_of_mut(packed), bytes_of_mut(tau_qr), threads);
            for (i, to) in backwards.chunks_exact_mut(width).rev().enumerate() {
                to.fill(T::ZERO);
                let row = packed[i * n..][i..n].iter().rev();
                to.iter_mut().zip(row).for_each(|(to, &x)| *to = x);
            }
            qr = packed;
        } else {
            // (The transpose of a square matrix is not needed.)
            let all = a[..flat].chunks_exact(n);
            for (to, row) in backwards.chunks_exact_mut(width).rev().zip(all) {
                to[n..].fill(T::ZERO);
                to.iter_mut().zip(row.iter().rev()).for_each(|(to, &x)| *to = x * up);
            }
        }
        let mut form = Form { d: &mut *d, e: &mut *e, tau: [&mut *tau_left, &mut *tau_right] };
        if !reduce(rows, column_reflectors, (n, stride), &mut form, five, &|| threads.is_stopped())
        {
            return 0;
        }
        clear_least(d);
        clear_least(e);
        let row_width = if has_vectors { n } else { 2 };
        let info = {
            let (packed, factors) = join.split_at_mut(n * row_width);
            let (left, right) = (&mut *left_rows, &mut *right_rows);
            let vectors = has_vectors;
            let mut joint =
                Divided { d, e, left, right, width: row_width, vectors, packed, factors, threads };
            joint.solve(0, n, false)
        };
        values.iter_mut().zip(d.iter().rev()).for_each(|(value, &d)| *value = d * down);
        if !has_vectors || threads.is_stopped() {
            return info;
        }
        // Those of the higher side, and of the other.
        let (high, low) = if is_wide { (right, left) } else { (left, right) };
        let (panels, work) = join.as_chunks_mut().0.split_at_mut(sizes.columns.div_ceil(WIDTH) * m);
        load_panels(left_rows, n, panels, m);
        let last = n - 1;
        // The reflectors of the rest are rows of an identity elsewhere.
        let own = n.div_ceil(WIDTH) * m;
        let reflectors = Reversed {
            rows: column_reflectors.as_flattened(),
            stride: width,
            last,
            size: n,
            tau: &tau_left[..n],
        };
        back::apply_all(reflectors, &mut panels[..own], (m, 0), work, threads);
        if m > n {
            let load = |first: usize, width: usize, v: &mut [Row<T>]| {
                for (v, row) in v.iter_mut().zip(qr.chunks_exact(n).skip(first)) {
                    v[..width].copy_from_slice(&row[first..first + width]);
                }
            };
            back::apply_loaded(&load, (m, &tau_qr[..n]), panels, (m, 0), work, threads);
        }
        store(panels, m, sizes.columns, high, is_wide);
        let (panels, work) = join.as_chunks_mut().0.split_at_mut(n.div_ceil(WIDTH) * n);
        load_panels(right_rows, n, panels, n);
        let reflectors = Reversed {
            rows: rows.as_flattened(),
            stride: width,
            last,
            size: n - 1,
            tau: &tau_right[..n - 1],
        };
        back::apply_all(reflectors, panels, (n, 1), work, threads);
        store(panels, n, n, low, !is_wide);
        info
    }
}

/// The elements of arrays.
struct Sizes {
    /// Of the vectors of one side of the bidiagonal matrix.
    z: usize,
    /// Of what joining needs, whose place panels take.
    join: usize,
    /// How many vectors of the higher side are wanted.
    columns: usize,
}

fn transpose<T: Real>(a: &[T], [rows, columns]: [usize; 2], to: &mut [T]) {
    const BLOCK: usize = 16;
    for i0 in (0..rows).step_by(BLOCK) {
        for j0 in (0..columns).step_by(BLOCK) {
            for i in i0..rows.min(i0 + BLOCK) {
                for j in j0..columns.min(j0 + BLOCK) {
                    to[j * rows + i] = a[i * columns + j];
                }
            }
        }
    }
}

/// Copies vectors that are rows of `n` elements, the last one first, to panels of `m` rows, in which they are
/// columns; those that follow are columns of an identity.
fn load_panels<T: Real>(z: &[T], n: usize, panels: &mut [Row<T>], m: usize) {
    for (number, panel) in panels.chunks_exact_mut(m).enumerate() {
        panel.as_flattened_mut().fill(T::ZERO);
        for c in 0..WIDTH {
            let column = number * WIDTH + c;
            if column < n {
                let z = &z[(n - 1 - column) * n..][..n];
                panel.iter_mut().zip(z).for_each(|(row, &x)| row[c] = x);
            } else if column < m {
                panel[column][c] = T::ONE;
            }
        }
    }
}

/// Copies the first columns of panels to the columns of a matrix, or to its rows.
fn store<T: Real>(panels: &[Row<T>], m: usize, columns: usize, to: &mut [T], to_rows: bool) {
    for (number, panel) in panels.chunks_exact(m).enumerate() {
        let all = number * WIDTH..columns.min((number + 1) * WIDTH);
        if to_rows {
            for (c, row) in to.chunks_exact_mut(m).skip(all.start).take(all.len()).enumerate() {
                row.iter_mut().zip(panel).for_each(|(to, row)| *to = row[c]);
            }
        } else {
            for (row, to) in panel.iter().zip(to.chunks_exact_mut(columns)) {
                to[all.clone()].copy_from_slice(&row[..all.len()]);
            }
        }
    }
}

/// An upper bidiagonal matrix on its way to singular values.
struct Divided<'w, T> {
    d: &'w mut [T],
    e: &'w mut [T],
    /// Left vectors as rows of `width` elements, of which those of a part have only columns of that part; not used
    /// if vectors are not wanted.
    left: &'w mut [T],
    /// Right vectors as rows, or their first and last elements.
    right: &'w mut [T],
    width: usize,
    vectors: bool,
    packed: &'w mut [T],
    factors: &'w mut [T],
    threads: Threads<'w>,
}

impl<T: Real> Divided<'_, T> {
    /// Solves a part, whose values are in ascending order then; it may have one more column than rows, and then the
    /// last right vector is that of no value. Gives how many values were not found.
    fn solve(&mut self, start: usize, end: usize, is_wide: bool) -> i32 {
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
        d.iter_mut().for_each(|d| *d = *d * up);
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

        let mut order: Vec<usize> = (0..n).filter(|&row| row != half).collect();
        let order = sorted_by(d, &mut order);
        let mut kept = vec![(half, own)];
        let mut done = Vec::new();
        let mut last: Option<(usize, Support)> = None;
        for &row in order {
            if z[row].size() <= tolerance {
                done.push(row);
                continue;
            }
            let mut support = Support::of(row, half);
            if let Some((before, of_before)) = last {
                if (d[row] - d[before]).size() <= tolerance {
                    let whole = length(z[row], z[before]);
                    let (c, s) = (z[row] / whole, -z[before] / whole);
                    (z[row], z[before]) = (whole, T::ZERO);
                    support = support.with(of_before);
                    right.rotate([before, row], c, s);
                    if let Some(left) = &mut left {
                        left.rotate([before, row], c, s);
                    }
                    done.push(before);
                } else {
                    kept.push((before, of_before));
                }
            }
            last = Some((row, support));
        }
        kept.extend(last);

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
                    factors[place * count..][..count].iter_mut().for_each(|x| *x = *x * pole);
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
