//! The kernel of `cholesky`: blocks of columns, each followed by an update of what is right of it.

use super::super::bytes::{Scratch, bytes_of, bytes_of_mut, cast, cast_mut, scratch_for};
use super::super::copy::Copy;
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::panel::{self, ROWS, Row, WIDTH};
use super::{Field, FieldType, side_by_side, with_field};
use crate::Threads;

/// Factors batches of Hermitian positive definite matrices: `l * adjoint(l)` is the matrix, of
/// which one triangle is read, without imaginary parts on the diagonal.
///
/// Columns are eliminated in blocks: the block on the diagonal by plain loops, the rows below by
/// forward substitution, and then their products are subtracted from what is left.
#[derive(Clone, Debug)]
pub struct Cholesky {
    ty: FieldType,
    batch: usize,
    n: usize,
    /// Transposes, if the upper triangle is read and written.
    transpose: Option<Copy>,
}

/// Smaller remainders are not worth several threads.
const MIN_SHARED: usize = 256;

impl Cholesky {
    /// A plan for `batch` matrices `n`×`n`, whose lower or upper triangle is read and written.
    /// `None` if sizes overflow.
    pub fn new(ty: FieldType, batch: usize, n: usize, lower: bool) -> Option<Self> {
        let size = ty.size();
        isize::try_from(batch.checked_mul(n.checked_mul(n)?)?.checked_mul(size)?).ok()?;
        let transpose = match lower {
            true => None,
            false => Some(Copy::transpose(&[batch, n, n], &[0, 2, 1], size)?),
        };
        Some(Cholesky { ty, batch, n, transpose })
    }

    /// How much working memory [`Cholesky::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        let count = if self.transpose.is_some() { self.batch * self.n * self.n } else { 0 };
        with_field!(self.ty, T => scratch_for::<T>(count))
    }

    /// Writes the factors to `to`, and zeros to the other triangle. A matrix that is not positive
    /// definite gives NaN everywhere.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(&self, a: &[u8], to: &mut [u8], scratch: &mut [u8], threads: Threads<'_>) {
        if self.batch * self.n == 0 {
            return;
        }
        with_field!(self.ty, T => {
            self.typed::<T>(cast(a), cast_mut(to), scratch, threads, &|_, matrix, info| {
                if info != 0 {
                    return matrix.fill(T::NAN);
                }
                for (i, row) in matrix.chunks_exact_mut(self.n).enumerate() {
                    row[i + 1..].fill(T::ZERO);
                }
            });
        });
    }

    /// LAPACK's `potrf`: writes the factors to one triangle of `to`, what `a` has to the other, and to
    /// `info` (of `i32`), for each matrix, 0 or the order of the first leading minor that is not positive;
    /// the factor then has all columns before.
    ///
    /// # Panics
    ///
    /// As [`Cholesky::run`].
    pub fn run_with_info(
        &self,
        a: &[u8],
        (to, info): (&mut [u8], &mut [u8]),
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        let info = cast_mut::<i32>(info);
        if self.n == 0 {
            return info.fill(0);
        }
        let infos = Disjoint::new(info);
        with_field!(self.ty, T => {
            let (a, to) = (cast::<T>(a), cast_mut::<T>(to));
            self.typed::<T>(a, to, scratch, threads, &|number, _, info| {
                // SAFETY: each matrix has a number of its own.
                let place = unsafe { infos.part(number, 1) };
                place[0] = i32::try_from(info).unwrap_or(i32::MAX);
            });
            // What is right of the diagonal was room for whole vectors.
            let (n, lower) = (self.n, self.transpose.is_none());
            threads.for_chunks(to, n * n, &|number, matrix| {
                let given = a[number * n * n..][..n * n].chunks_exact(n);
                for (i, (row, given)) in matrix.chunks_exact_mut(n).zip(given).enumerate() {
                    let other = if lower { i + 1..n } else { 0..i };
                    row[other.clone()].copy_from_slice(&given[other]);
                }
            });
        });
    }

    /// Writes factors, of each of which `finish` gets the number, the matrix with the factor in its lower
    /// triangle, and what [`factor`] says of it.
    fn typed<T: Field>(
        &self,
        a: &[T],
        to: &mut [T],
        scratch: &mut [u8],
        threads: Threads<'_>,
        finish: &(dyn Fn(usize, &mut [T], usize) + Sync),
    ) {
        let len = self.batch * self.n * self.n;
        let (a, to) = (&a[..len], &mut to[..len]);
        let Some(transpose) = &self.transpose else {
            to.copy_from_slice(a);
            return self.factor_all(to, threads, finish);
        };
        // The upper factor of a matrix is the transposed lower one of the transposed matrix.
        let work = Scratch::new(scratch).take::<T>(len);
        transpose.run((bytes_of(a), 0), (bytes_of_mut(work), 0), threads);
        self.factor_all(work, threads, finish);
        transpose.run((bytes_of(work), 0), (bytes_of_mut(to), 0), threads);
    }

    fn factor_all<T: Field>(
        &self,
        matrices: &mut [T],
        threads: Threads<'_>,
        finish: &(dyn Fn(usize, &mut [T], usize) + Sync),
    ) {
        let (n, size) = (self.n, self.n * self.n);
        if side_by_side::are_worth(self.batch, [n, n]) {
            return side_by_side::for_groups(
                matrices,
                size,
                size,
                threads,
                &|first, to, work: &mut [T::Side]| {
                    side_by_side::load(to, work);
                    let info = side_by_side::cholesky::<T>(work, n);
                    side_by_side::store(work, to);
                    for (lane, (matrix, info)) in to.chunks_exact_mut(size).zip(info).enumerate() {
                        finish(first + lane, matrix, info as usize);
                    }
                },
            );
        }
        threads.for_chunks(matrices, self.n * self.n, &|number, matrix| {
            // Several matrices are shared out; of one, the remainders are.
            let threads = if self.batch > 1 { Threads::single() } else { threads };
            scratch::with(self.n.next_multiple_of(WIDTH) * WIDTH, |panels| {
                let info = factor(matrix, self.n, panels.as_chunks_mut().0, threads);
                finish(number, matrix, info);
            });
        });
    }
}

/// Replaces the lower triangle of a matrix by its factor, and what is right of it by anything. Gives 0, or the
/// order of the first leading minor that is not positive, where it ends.
fn factor<T: Field>(
    matrix: &mut [T],
    n: usize,
    panels: &mut [Row<T>],
    threads: Threads<'_>,
) -> usize {
    for first in (0..n).step_by(WIDTH) {
        let width = WIDTH.min(n - first);
        let (above, below) = matrix.split_at_mut((first + width) * n);
        let rows = &mut above[first * n..];
        let mut block = [[T::ZERO; WIDTH]; WIDTH];
        let block = &mut block[..width];
        for (i, (to, row)) in block.iter_mut().zip(rows.chunks_exact(n)).enumerate() {
            to[..=i].copy_from_slice(&row[first..=first + i]);
        }
        let info = vectorised(
            #[inline(always)]
            || factor_block(block),
        );
        for (i, (from, row)) in block.iter().zip(rows.chunks_exact_mut(n)).enumerate() {
            row[first..=first + i].copy_from_slice(&from[..=i]);
        }
        if info != 0 {
            return first + info;
        }
        let diagonal = block.as_flattened();
        let panels = &mut panels[..(below.len() / n).div_ceil(WIDTH) * width];
        threads.for_chunks(panels, width, &|i, panel| {
            let rows = &below[i * WIDTH * n..];
            vectorised(
                #[inline(always)]
                || {
                    gather(&rows[..rows.len().min(WIDTH * n)], n, first, panel);
                    panel::solve(diagonal, WIDTH, false, panel);
                },
            );
        });
        let threads = if below.len() / n < MIN_SHARED { Threads::single() } else { threads };
        threads.for_chunks(below, WIDTH * n, &|i, rows| {
            vectorised(
                #[inline(always)]
                || {
                    put_back(&panels[i * width..][..width], n, first, rows);
                    for (group, rows) in rows.chunks_mut(ROWS * n).enumerate() {
                        update(panels, (i, group * ROWS), width, rows, (n, first + width));
                    }
                },
            );
        });
    }
    0
}

/// Replaces the lower triangle of a block by its factor, and what is right of it by anything; gives what
/// [`factor`] does.
#[inline(always)]
fn factor_block<T: Field>(block: &mut [Row<T>]) -> usize {
    let mut column = [T::ZERO; WIDTH];
    for (v, row) in column.iter_mut().zip(&*block) {
        *v = row[0];
    }
    for j in 0..block.len() {
        let Some(root) = column[j].root_of_pivot() else { return j + 1 };
        block[j][j] = root;
        for v in &mut column[j + 1..] {
            *v = *v / root;
        }
        let conjugate = column.map(T::conj);
        panel::subtract_outer(&mut block[j + 1..], &mut column[j + 1..], &conjugate, j);
    }
    0
}

/// Lays columns of some rows out as rows of a panel, conjugate: those from `first` on, one for each row.
#[inline(always)]
fn gather<T: Field>(rows: &[T], n: usize, first: usize, panel: &mut [Row<T>]) {
    let width = panel.len();
    for (i, row) in rows.chunks_exact(n).enumerate() {
        for (panel, &v) in panel.iter_mut().zip(&row[first..first + width]) {
            panel[i] = v.conj();
        }
    }
    for panel in panel {
        panel[rows.len() / n..].fill(T::ZERO);
    }
}

/// The reverse of [`gather`].
#[inline(always)]
fn put_back<T: Field>(panel: &[Row<T>], n: usize, first: usize, rows: &mut [T]) {
    for (i, row) in rows.chunks_exact_mut(n).enumerate() {
        for (v, panel) in row[first..].iter_mut().zip(panel) {
            *v = panel[i].conj();
        }
    }
}

/// Subtracts from up to [`ROWS`] rows of `n` elements, from column `start` on, their products with the
/// conjugates of all rows up to their own, the first of which belongs to that column. `own` and `place` are the panel that the rows have become, and where in it they
/// are.
#[inline(always)]
fn update<T: Field>(
    panels: &[Row<T>],
    (own, place): (usize, usize),
    width: usize,
    rows: &mut [T],
    (n, start): (usize, usize),
) {
    let factors = &panels[own * width..][..width];
    for (j, panel) in panels.chunks_exact(width).enumerate().take(own + 1) {
        let mut sums = [[T::ZERO; WIDTH]; ROWS];
        let part = start + j * WIDTH..n.min(start + (j + 1) * WIDTH);
        for (sums, row) in sums.iter_mut().zip(rows.chunks_exact(n)) {
            sums[..part.len()].copy_from_slice(&row[part.clone()]);
        }
        panel::subtract_product(&mut sums, panel, |i, p| factors[p][place + i].conj());
        for (sums, row) in sums.iter().zip(rows.chunks_exact_mut(n)) {
            row[part.clone()].copy_from_slice(&sums[..part.len()]);
        }
    }
}
