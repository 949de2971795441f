//! The kernel of `cholesky`: blocks of columns, each followed by an update of what is right of it.

use super::super::bytes::{Scratch, bytes_of, bytes_of_mut, cast, cast_mut, scratch_for};
use super::super::copy::Copy;
use super::super::isa::vectorised;
use super::super::scratch;
use super::panel::{self, ROWS, Row, WIDTH};
use super::{Field, FieldType, with_field};
use crate::Threads;

/// Factors batches of Hermitian positive definite matrices: `l * adjoint(l)` is the matrix, of
/// which one triangle is read, without imaginary parts on the diagonal; the other one of the result
/// is zero. A matrix that is not positive definite gives NaN everywhere.
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

/// The columns of a block; a multiple of [`WIDTH`].
const BLOCK: usize = 64;
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

    /// Writes the factors to `to`.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(&self, a: &[u8], to: &mut [u8], scratch: &mut [u8], threads: Threads<'_>) {
        if self.batch * self.n == 0 {
            return;
        }
        with_field!(self.ty, T => self.typed::<T>(cast(a), cast_mut(to), scratch, threads));
    }

    fn typed<T: Field>(&self, a: &[T], to: &mut [T], scratch: &mut [u8], threads: Threads<'_>) {
        let len = self.batch * self.n * self.n;
        let (a, to) = (&a[..len], &mut to[..len]);
        let Some(transpose) = &self.transpose else {
            to.copy_from_slice(a);
            return self.factor_all(to, threads);
        };
        // The upper factor of a matrix is the transposed lower one of the transposed matrix.
        let work = Scratch::new(scratch).take::<T>(len);
        transpose.run((bytes_of(a), 0), (bytes_of_mut(work), 0), threads);
        self.factor_all(work, threads);
        transpose.run((bytes_of(work), 0), (bytes_of_mut(to), 0), threads);
    }

    fn factor_all<T: Field>(&self, matrices: &mut [T], threads: Threads<'_>) {
        threads.for_chunks(matrices, self.n * self.n, &|_, matrix| {
            // Several matrices are shared out; of one, the remainders are.
            let threads = if self.batch > 1 { Threads::single() } else { threads };
            scratch::with(self.n.next_multiple_of(WIDTH) * BLOCK, |panels| {
                factor(matrix, self.n, panels.as_chunks_mut().0, threads);
            });
        });
    }
}

/// Replaces a matrix, of which the lower triangle is read, by its factor.
fn factor<T: Field>(matrix: &mut [T], n: usize, panels: &mut [Row<T>], threads: Threads<'_>) {
    for first in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - first);
        let (above, below) = matrix.split_at_mut((first + width) * n);
        let diagonal = &mut above[first * n + first..];
        if !vectorised(
            #[inline(always)]
            || factor_block(diagonal, n, width),
        ) {
            matrix.fill(T::NAN);
            return;
        }
        let panels = &mut panels[..(below.len() / n).div_ceil(WIDTH) * width];
        threads.for_chunks(panels, width, &|i, panel| {
            let rows = &below[i * WIDTH * n..];
            vectorised(
                #[inline(always)]
                || {
                    gather(&rows[..rows.len().min(WIDTH * n)], n, first, panel);
                    panel::solve(diagonal, n, false, panel);
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
                        let mut rows: Vec<&mut [T]> =
                            rows.chunks_mut(n).map(|row| &mut row[first + width..]).collect();
                        update(panels, (i, group * ROWS), width, &mut rows);
                    }
                },
            );
        });
    }
    for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
        row[i + 1..].fill(T::ZERO);
    }
}

/// Factors the first `width` columns of a matrix whose rows are `n` apart; whether it is positive
/// definite.
#[inline(always)]
fn factor_block<T: Field>(matrix: &mut [T], n: usize, width: usize) -> bool {
    let mut column = [T::ZERO; BLOCK];
    for j in 0..width {
        let pivot = matrix[j * n + j];
        let Some(root) = pivot.root_of_pivot() else { return false };
        matrix[j * n + j] = root;
        for i in j + 1..width {
            let v = matrix[i * n + j] / root;
            matrix[i * n + j] = v;
            column[i] = v;
        }
        for i in j + 1..width {
            let factor = column[i];
            let row = &mut matrix[i * n + j + 1..=i * n + i];
            for (v, &other) in row.iter_mut().zip(&column[j + 1..]) {
                *v = *v - factor * other.conj();
            }
        }
    }
    true
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

/// Subtracts from up to [`ROWS`] rows their products with the conjugates of all rows up to their own. The
/// rows begin at the column that belongs to the first of these; `own` and `place` are the panel that the
/// rows have become and where in it they are.
#[inline(always)]
fn update<T: Field>(
    panels: &[Row<T>],
    (own, place): (usize, usize),
    width: usize,
    rows: &mut [&mut [T]],
) {
    let factors = &panels[own * width..][..width];
    for (j, panel) in panels.chunks_exact(width).enumerate().take(own + 1) {
        let mut sums = [[T::ZERO; WIDTH]; ROWS];
        let part = |row: &[T]| j * WIDTH..row.len().min((j + 1) * WIDTH);
        for (sums, row) in sums.iter_mut().zip(&*rows) {
            let row = &row[part(row)];
            sums[..row.len()].copy_from_slice(row);
        }
        panel::subtract_product(&mut sums, panel, |i, p| factors[p][place + i].conj());
        for (sums, row) in sums.iter().zip(&mut *rows) {
            let part = part(row);
            row[part.clone()].copy_from_slice(&sums[..part.len()]);
        }
    }
}
