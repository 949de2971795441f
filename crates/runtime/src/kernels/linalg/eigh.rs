//! Eigenvalues and vectors of real symmetric matrices: tridiagonal form, whose halves are solved one by one and
//! joined by a secular equation.

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::FieldType;
use super::back::{self, Reversed};
use super::eigh_halves::Divided;
use super::halves::{clear_least, sorted_by};
use super::many;
use super::panel::{Row, WIDTH};
use super::real::{LANES, Lanes, Real, row_groups};
use super::tridiagonal::{Form, reduce};
use crate::Threads;

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
        if n <= many::MAX_ORDER && batch >= many::MIN_BATCH {
            let group = task_matrices(n).div_ceil(many::GROUP) * many::GROUP;
            return threads.for_chunks(&mut to[..batch * n * n], group * n * n, &|task, to| {
                for (number, to) in to.chunks_mut(many::GROUP * n * n).enumerate() {
                    let first = task * group + number * many::GROUP;
                    let count = to.len() / (n * n);
                    // SAFETY: each matrix has a number of its own.
                    let (values, info) =
                        unsafe { (values.part(first * n, count * n), info.part(first, count)) };
                    self.many(&a[first * n * n..][..count * n * n], to, values, info);
                }
            });
        }
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
        let (n, stride) = (self.n, row_groups(self.n));
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

    /// A group of small matrices, side by side.
    fn many<T: Real>(&self, a: &[T], to: &mut [T], values: &mut [T], info: &mut [i32]) {
        let Eigh { n, is_lower, vectors, .. } = *self;
        let (triangle, square) = (n * (n + 1) / 2, if vectors { n * n } else { 0 });
        scratch::with((triangle + square) * LANES, |memory: &mut [T]| {
            let (rows, v) = memory.as_chunks_mut::<LANES>().0.split_at_mut(triangle);
            rows.fill([T::ZERO; LANES]);
            many::identity(v, n);
            let mut largest = [T::ZERO; LANES];
            let mut down = [T::ONE; LANES];
            for (l, (a, info)) in a.chunks_exact(n * n).zip(&mut *info).enumerate() {
                let element =
                    |i: usize, j: usize| if is_lower { a[i * n + j] } else { a[j * n + i] };
                let all = || (0..n).flat_map(|i| (0..=i).map(move |j| element(i, j)));
                let mut is_finite = true;
                for x in all() {
                    is_finite &= x.is_finite();
                    largest[l] = largest[l].larger(x.size());
                }
                *info = if is_finite { 0 } else { NOT_FINITE };
                if !is_finite || largest[l] == T::ZERO {
                    largest[l] = T::ZERO;
                    continue;
                }
                let up;
                (up, down[l]) = largest[l].scaling();
                largest[l] *= up;
                rows.iter_mut().zip(all()).for_each(|(row, x)| row[l] = x * up);
            }
            let is_open = many::eigen(rows, v, n, &largest);
            let results = to.chunks_exact_mut(n * n).zip(values.chunks_exact_mut(n)).zip(info);
            for (l, ((to, values), info)) in results.enumerate() {
                if *info != 0 {
                    to.fill(T::NAN);
                    values.fill(T::NAN);
                    continue;
                }
                *info = i32::from(is_open[l]);
                let diagonal: [T; many::MAX_ORDER] =
                    std::array::from_fn(|i| rows.get(i * (i + 3) / 2).map_or(T::ZERO, |x| x[l]));
                let mut order: [usize; many::MAX_ORDER] = std::array::from_fn(|i| i);
                let order = sorted_by(&diagonal, &mut order[..n]);
                for (j, (value, &from)) in values.iter_mut().zip(order).enumerate() {
                    *value = diagonal[from] * down[l];
                    if vectors {
                        let column = to[j..].iter_mut().step_by(n);
                        column.zip(&v[from * n..][..n]).for_each(|(to, x)| *to = x[l]);
                    }
                }
                if !vectors {
                    to.fill(T::ZERO);
                }
            }
        });
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
        let stride = row_groups(n);
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
                        rows.as_flattened_mut().iter_mut().for_each(|x| *x *= up);
                        values.iter_mut().for_each(|x| *x *= up);
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
        values.iter_mut().for_each(|x| *x *= down);
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
        let stride = row_groups(n);
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
