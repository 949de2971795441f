//! Singular values and vectors of real matrices: QR factors of those that are not square, bidiagonal form of the
//! rest, whose halves are solved one by one and joined by a secular equation.

use super::super::bytes::{Scratch, bytes_of, bytes_of_mut, cast, cast_mut, scratch_for};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::FieldType;
use super::back::{self, Reversed};
use super::bidiagonal::{Form, reduce};
use super::eigh::{NOT_FINITE, task_matrices};
use super::halves::{clear_least, sorted_by};
use super::many;
use super::panel::{Row, WIDTH};
use super::qr::Qr;
use super::real::{LANES, Lanes, Real, row_groups};
use super::svd_halves::Divided;
use crate::Threads;

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
        let is_many = batch >= many::MIN_BATCH
            && k > 0
            && k <= many::MAX_ORDER
            && m.max(n) <= many::MAX_ROWS
            && (vectors != SvdVectors::Full || m == n);
        let group = match is_many {
            true => task_matrices(m.max(n)).div_ceil(many::GROUP) * many::GROUP,
            false => task_matrices(m.max(n)),
        };
        threads.for_chunks(&mut info[..batch], group, &|task, info| {
            scratch::with(self.scratch_bytes::<T>(), |memory: &mut [u8]| {
                if is_many {
                    for (number, info) in info.chunks_mut(many::GROUP).enumerate() {
                        let first = task * group + number * many::GROUP;
                        let count = info.len();
                        // SAFETY: each matrix has a number of its own.
                        let [values, left, right] = unsafe {
                            [
                                values.part(first * k, count * k),
                                left.part(first * left_size, count * left_size),
                                right.part(first * right_size, count * right_size),
                            ]
                        };
                        let a = &a[first * m * n..][..count * m * n];
                        self.many(a, info, values, [left, right]);
                    }
                }
                for (number, info) in info.iter_mut().enumerate() {
                    if is_many && *info != OPEN {
                        continue;
                    }
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
        let stride = row_groups(n);
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

    /// A group of small matrices, side by side. Those of which some value is so small beside another that its
    /// vectors are not accurate are left, with `info` [`OPEN`].
    fn many<T: Real>(
        &self,
        a: &[T],
        info: &mut [i32],
        values: &mut [T],
        [left, right]: [&mut [T]; 2],
    ) {
        let is_wide = self.m < self.n;
        let [m, n] = self.tall();
        let vectors = self.vectors != SvdVectors::Omitted;
        let square = if vectors { n * n } else { 0 };
        scratch::with((m * n + square) * LANES, |memory: &mut [T]| {
            let (w, v) = memory.as_chunks_mut::<LANES>().0.split_at_mut(m * n);
            w.fill([T::ZERO; LANES]);
            many::identity(v, n);
            let mut down = [T::ONE; LANES];
            for (l, (a, info)) in a.chunks_exact(m * n).zip(&mut *info).enumerate() {
                let (is_finite, most) = largest_finite(a);
                *info = if is_finite && most > T::ZERO { 0 } else { OPEN };
                if *info == 0 {
                    let up;
                    (up, down[l]) = most.scaling();
                    // Rows of `w` are rows of a wide matrix, and columns of another.
                    let (size, row, element) = if is_wide { (m, m, 1) } else { (n, 1, m) };
                    for (i, numbers) in a.chunks_exact(size).enumerate() {
                        for (j, &x) in numbers.iter().enumerate() {
                            w[i * row + j * element][l] = x * up;
                        }
                    }
                }
            }
            let is_open = many::orthogonal(w, v, [m, n]);
            let mut lengths = [[T::ZERO; LANES]; many::MAX_ORDER];
            vectorised(
                #[inline(always)]
                || {
                    for (lengths, w) in lengths.iter_mut().zip(w.chunks_exact(m)) {
                        for x in w {
                            for l in 0..LANES {
                                lengths[l] += x[l] * x[l];
                            }
                        }
                        for length in lengths {
                            *length = length.sqrt();
                        }
                    }
                },
            );
            let (high, low) = if is_wide { (right, left) } else { (left, right) };
            for (l, (values, info)) in values.chunks_exact_mut(n).zip(info).enumerate() {
                let lengths: [T; many::MAX_ORDER] = std::array::from_fn(|j| lengths[j][l]);
                let mut order: [usize; many::MAX_ORDER] = std::array::from_fn(|i| i);
                let order = sorted_by(&lengths, &mut order[..n]);
                let [least, most] = [order[0], order[n - 1]].map(|at| lengths[at]);
                if *info != 0 || is_open[l] || least <= most * (T::EPSILON * T::EPSILON) {
                    *info = OPEN;
                    continue;
                }
                for (j, (value, &from)) in values.iter_mut().zip(order.iter().rev()).enumerate() {
                    *value = lengths[from] * down[l];
                    if !vectors {
                        continue;
                    }
                    let by = T::ONE / lengths[from];
                    let (high, low) =
                        (&mut high[l * m * n..][..m * n], &mut low[l * n * n..][..n * n]);
                    let (w, v) = (&w[from * m..][..m], &v[from * n..][..n]);
                    if is_wide {
                        high[j * m..].iter_mut().zip(w).for_each(|(to, x)| *to = x[l] * by);
                        low[j..].iter_mut().step_by(n).zip(v).for_each(|(to, x)| *to = x[l]);
                    } else {
                        high[j..].iter_mut().step_by(n).zip(w).for_each(|(to, x)| *to = x[l] * by);
                        low[j * n..].iter_mut().zip(v).for_each(|(to, x)| *to = x[l]);
                    }
                }
            }
        });
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
        let (is_finite, most) = largest_finite(a);
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
        let stride = row_groups(n);
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
            matrix.iter_mut().for_each(|x| *x *= up);
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
            back::apply_loaded(&load, (m, &tau_qr[..n]), false, panels, (m, 0), work, threads);
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

/// `info` of a matrix whose values are yet to be found.
const OPEN: i32 = i32::MIN;

/// Whether all are finite, and the largest magnitude.
fn largest_finite<T: Real>(a: &[T]) -> (bool, T) {
    let (mut is_finite, mut most) = (true, T::ZERO);
    for &x in a {
        is_finite &= x.is_finite();
        most = most.larger(x.size());
    }
    (is_finite, most)
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
