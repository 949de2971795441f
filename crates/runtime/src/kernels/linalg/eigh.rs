//! Eigenvalues and vectors of real symmetric matrices: tridiagonal form, whose halves are solved one by one and
//! joined by a secular equation.

use helio_linalg::Vectors;

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::FieldType;
use super::back::{self, Reversed};
use super::deflate::{
    Halves, Support, clear_least, divide, largest, length, normalise, rotate_all, sorted_by,
};
use super::panel::{Row, WIDTH};
use super::real::{LANES, Lanes, Real};
use super::secular::{Equation, Kind, Roots};
use super::tridiagonal::{Form, reduce};
use crate::Threads;

/// Matrices of this order and less are not halved.
const LEAF: usize = 16;

/// Eigenvalues, in ascending order, and vectors of batches of real symmetric matrices.
#[derive(Clone, Debug)]
pub struct Eigh {
    ty: FieldType,
    batch: usize,
    n: usize,
    is_lower: bool,
    vectors: bool,
}

impl Eigh {
    /// A plan for `batch` matrices of order `n`, of which one triangle is looked at; vectors may be wanted besides
    /// values. `None` if numbers are complex, or sizes overflow.
    pub fn new(
        ty: FieldType,
        batch: usize,
        n: usize,
        is_lower: bool,
        vectors: bool,
    ) -> Option<Self> {
        let row = n.checked_add(4 * WIDTH)?.checked_mul(8 * size_of::<f64>())?;
        isize::try_from(row.checked_mul(n.max(1))?.checked_mul(batch.max(1))?).ok()?;
        let is_real = matches!(ty, FieldType::F32 | FieldType::F64);
        is_real.then_some(Eigh { ty, batch, n, is_lower, vectors })
    }

    /// Writes to `to` the vectors as columns, or zeros if they are not wanted; to `values` the
    /// values; and to `info`, of `i32`, for each matrix 0, or how many values were not found, or −4 if an element
    /// is not finite: then all of its results are NaN.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn run(
        &self,
        a: &[u8],
        to: &mut [u8],
        (values, info): (&mut [u8], &mut [u8]),
        threads: Threads<'_>,
    ) {
        let info = cast_mut(info);
        match self.ty {
            FieldType::F64 => {
                self.typed::<f64>(cast(a), cast_mut(to), (cast_mut(values), info), threads);
            }
            _ => self.typed::<f32>(cast(a), cast_mut(to), (cast_mut(values), info), threads),
        }
    }

    fn typed<T: Real>(
        &self,
        a: &[T],
        to: &mut [T],
        (values, info): (&mut [T], &mut [i32]),
        threads: Threads<'_>,
    ) {
        let Eigh { batch, n, .. } = *self;
        if n == 0 {
            return info.fill(0);
        }
        let (values, info) = (Disjoint::new(values), Disjoint::new(info));
        // Several matrices are shared out; of one, products are.
        let own = if batch > 1 { Threads::single() } else { threads };
        let group = task_matrices(n);
        threads.for_chunks(&mut to[..batch * n * n], group * n * n, &|task, to| {
            scratch::with(self.scratch_bytes::<T>(), |memory: &mut [u8]| {
                for (number, to) in to.chunks_exact_mut(n * n).enumerate() {
                    let number = task * group + number;
                    // SAFETY: each matrix has a number of its own.
                    let (values, info) =
                        unsafe { (values.part(number * n, n), info.part(number, 1)) };
                    let work = Work::take(&mut Scratch::new(memory), n, self.vectors);
                    info[0] = self.one(&a[number * n * n..][..n * n], to, values, work, own);
                }
            });
        });
    }

    fn scratch_bytes<T>(&self) -> usize {
        let (n, stride) = (self.n, self.n.div_ceil(LANES));
        let z = if self.vectors { n * n } else { 2 * n };
        let packed = if self.vectors { n * n } else { 2 * n };
        let panels = if self.vectors { n.div_ceil(WIDTH) * n } else { 0 };
        // The panels take the place of what joining needs.
        let join = (packed + n * n).max((panels + n + WIDTH) * WIDTH);
        scratch_for::<Lanes<T>>(stride * (n + 3))
            + scratch_for::<T>(3 * n)
            + scratch_for::<T>(z)
            + scratch_for::<T>(join)
    }

    fn one<T: Real>(
        &self,
        a: &[T],
        to: &mut [T],
        values: &mut [T],
        work: Work<'_, T>,
        threads: Threads<'_>,
    ) -> i32 {
        let Eigh { n, vectors, .. } = *self;
        let Work { a: rows, three, e, tau, z, join } = work;
        let stride = n.div_ceil(LANES);
        let Some(largest) = self.load(a, rows.as_flattened_mut(), values, stride * LANES) else {
            to.fill(T::NAN);
            values.fill(T::NAN);
            return NOT_FINITE;
        };
        let down = match largest == T::ZERO {
            true => T::ONE,
            false => {
                let (up, down) = largest.scaling();
                vectorised(
                    #[inline(always)]
                    || {
                        rows.as_flattened_mut().iter_mut().for_each(|x| *x = *x * up);
                        values.iter_mut().for_each(|x| *x = *x * up);
                    },
                );
                down
            }
        };
        let mut form = Form { d: values, e, tau };
        if !reduce(rows, (n, stride), &mut form, three, &|| threads.is_stopped()) {
            return 0;
        }
        clear_least(values);
        clear_least(e);
        let width = if vectors { n } else { 2 };
        let info = {
            let (packed, factors) = join.split_at_mut(n * width);
            let mut joint = Divided { d: values, e, z, width, vectors, packed, factors, threads };
            joint.solve(0, n)
        };
        if !vectors {
            to.fill(T::ZERO);
        } else if !threads.is_stopped() {
            let (panels, rest) = join.as_chunks_mut().0.split_at_mut(n.div_ceil(WIDTH) * n);
            let of = Reversed {
                rows: rows.as_flattened(),
                stride: stride * LANES,
                last: n - 1,
                size: n - 1,
                tau: &tau[..n.saturating_sub(2)],
            };
            load_panels(z, n, panels);
            back::apply_all(of, panels, (n, 0), rest, threads);
            store_panels(panels, n, to);
        }
        values.iter_mut().for_each(|x| *x = *x * down);
        info
    }

    /// Copies what is below the diagonal, and the diagonal; gives the largest magnitude, or `None` if an element is
    /// not finite.
    fn load<T: Real>(&self, a: &[T], rows: &mut [T], d: &mut [T], stride: usize) -> Option<T> {
        let Eigh { n, is_lower, .. } = *self;
        let mut largest = T::ZERO;
        let mut is_finite = true;
        for (i, row) in rows.chunks_exact_mut(stride).enumerate() {
            let (below, rest) = row.split_at_mut(i);
            if is_lower {
                below.copy_from_slice(&a[i * n..][..i]);
            } else {
                below.iter_mut().zip(a[i..].iter().step_by(n)).for_each(|(to, &from)| *to = from);
            }
            rest.fill(T::ZERO);
            d[i] = a[i * n + i];
            let all = below.iter().chain(&d[i..=i]);
            for &x in all {
                is_finite &= x.is_finite();
                largest = largest.larger(x.size());
            }
        }
        is_finite.then_some(largest)
    }
}

/// How many matrices of this order a task is.
pub(super) fn task_matrices(n: usize) -> usize {
    /// Fewer multiplications are not worth a task.
    const TASK: usize = 1 << 16;
    (TASK / (n * n * n).max(1)).max(1)
}

/// What LAPACK's caller is told of a matrix with an element that is not finite.
pub(super) const NOT_FINITE: i32 = -4;

/// Working memory for a matrix of order `n`.
struct Work<'w, T> {
    a: &'w mut [Lanes<T>],
    /// Three rows.
    three: &'w mut [Lanes<T>],
    e: &'w mut [T],
    tau: &'w mut [T],
    /// Vectors of the tridiagonal matrix, as rows; or their first and last elements.
    z: &'w mut [T],
    join: &'w mut [T],
}

impl<'w, T: Real> Work<'w, T> {
    fn take(scratch: &mut Scratch<'w>, n: usize, vectors: bool) -> Self {
        let stride = n.div_ceil(LANES);
        let (rows, _) = scratch.take::<T>(stride * (n + 3) * LANES).as_chunks_mut();
        let (a, three) = rows.split_at_mut(stride * n);
        let (e, tau) = scratch.take(2 * n).split_at_mut(n);
        let width = if vectors { n } else { 2 };
        let panels = if vectors { n.div_ceil(WIDTH) * n } else { 0 };
        let z = scratch.take(width * n);
        let join = scratch.take((n * width + n * n).max((panels + n + WIDTH) * WIDTH));
        Work { a, three, e, tau, z, join }
    }
}

/// Copies vectors that are rows to panels, in which they are columns, with their elements in reverse; the last
/// element stays last.
fn load_panels<T: Real>(z: &[T], n: usize, panels: &mut [Row<T>]) {
    for (panel, z) in panels.chunks_exact_mut(n).zip(z.chunks(WIDTH * n)) {
        panel.as_flattened_mut().fill(T::ZERO);
        for (c, z) in z.chunks_exact(n).enumerate() {
            let (last, z) = (z[n - 1], &z[..n - 1]);
            panel.iter_mut().zip(z.iter().rev().chain([&last])).for_each(|(row, &x)| row[c] = x);
        }
    }
}

/// The reverse of [`load_panels`], to a matrix whose columns they are.
fn store_panels<T: Real>(panels: &[Row<T>], n: usize, to: &mut [T]) {
    for (number, panel) in panels.chunks_exact(n).enumerate() {
        let columns = number * WIDTH..n.min((number + 1) * WIDTH);
        let (last, panel) = (&panel[n - 1], &panel[..n - 1]);
        for (to, row) in to.chunks_exact_mut(n).zip(panel.iter().rev().chain([last])) {
            to[columns.clone()].copy_from_slice(&row[..columns.len()]);
        }
    }
}

/// A tridiagonal matrix on its way to eigenvalues.
struct Divided<'w, T> {
    d: &'w mut [T],
    e: &'w mut [T],
    /// Rows of `width` elements: vectors, of which those of a part have only columns of that part; or their first
    /// and last elements.
    z: &'w mut [T],
    width: usize,
    vectors: bool,
    packed: &'w mut [T],
    factors: &'w mut [T],
    threads: Threads<'w>,
}

impl<T: Real> Divided<'_, T> {
    /// Solves a part, whose values are in ascending order then; gives how many were not found.
    fn solve(&mut self, start: usize, end: usize) -> i32 {
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

/// What becomes of the rows of two halves: those whose values change, by ascending values, and the others.
struct Deflated {
    kept: Vec<(usize, Support)>,
    done: Vec<usize>,
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
