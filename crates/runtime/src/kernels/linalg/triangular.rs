//! The kernel of `triangular-solve`.

use super::super::bytes::{Scratch, bytes_of, bytes_of_mut, cast, cast_mut, scratch_for};
use super::super::copy::{Axis, Copy};
use super::super::isa::vectorised;
use super::super::scratch;
use super::few::{Equations, FEW};
use super::panel::{self, Row, WIDTH};
use super::side_by_side::{self, System};
use super::{Field, FieldType, with_field};
use crate::Threads;

/// What is solved: `op(a) x = b`, or `x op(a) = b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriangularFlags {
    /// Whether `a` stands on the left side of `x`.
    pub left_side: bool,
    /// Whether the lower triangle of `a` is read; the other one is not.
    pub lower: bool,
    /// Whether the diagonal is taken for ones, and not read.
    pub unit_diagonal: bool,
    /// Whether `op` transposes.
    pub transpose_a: bool,
    /// Whether `op` takes conjugates.
    pub conjugate_a: bool,
}

/// Solves batches of triangular systems.
///
/// Unless there are few right sides, matrix and right sides are first copied: the matrix to a lower
/// triangle, the right sides to panels of columns. Each column's sums are formed in the same order, whatever
/// panel it is in.
#[derive(Clone, Debug)]
pub struct TriangularSolve {
    ty: FieldType,
    batch: usize,
    n: usize,
    /// How many right sides there are.
    columns: usize,
    left_side: bool,
    equations: Equations,
    matrix: BlockCopy,
    /// Full panels, and the last one, if it has fewer columns.
    panels: BlockCopy,
    panels_back: BlockCopy,
    rest: Option<(BlockCopy, BlockCopy)>,
}

/// A copy, and where it begins, in elements.
#[derive(Clone, Debug)]
struct BlockCopy {
    copy: Copy,
    from: usize,
    to: usize,
}

/// The right sides, of which panels are made.
struct RightSides {
    /// The bytes of an element.
    size: usize,
    batch: usize,
    n: usize,
    columns: usize,
    left_side: bool,
    /// Whether their rows come in panels from the last to the first.
    is_reversed: bool,
}

impl RightSides {
    /// Copies of some panels of this width, which come after `before` full ones: there, and back.
    fn copies(&self, before: usize, panels: usize, width: usize) -> Option<[BlockCopy; 2]> {
        let RightSides { size, batch, n, columns, left_side, is_reversed } = *self;
        let (n_step, m) = (n as isize, columns as isize);
        let (row, column) = if left_side { (m, 1) } else { (1, n_step) };
        let direction = if is_reversed { -1 } else { 1 };
        let last = n.saturating_sub(1);
        let first = if is_reversed { last * row as usize } else { 0 };
        let panel = n_step * WIDTH as isize;
        let of_batch = columns.div_ceil(WIDTH) as isize;
        let axis = |size, from, to| Axis { size, from, to };
        let axes = [
            axis(batch, n_step * m, of_batch * panel),
            axis(panels, WIDTH as isize * column, panel),
            axis(n, direction * row, WIDTH as isize),
            axis(width, column, 1),
        ];
        let back = axes.map(|a| axis(a.size, a.to, a.from));
        let moved =
            |axes: [Axis; 4], from, to| Some(BlockCopy { copy: Copy::new(&axes, size)?, from, to });
        let from = first + before * WIDTH * column as usize;
        let to = before * n * WIDTH;
        Some([moved(axes, from, to)?, moved(back, to, from)?])
    }
}

impl TriangularSolve {
    /// A plan for `batch` matrices `n`×`n` and their right sides: `n`×`columns`, or `columns`×`n` if
    /// `a` is on the right. `None` if sizes overflow.
    pub fn new(
        ty: FieldType,
        batch: usize,
        n: usize,
        columns: usize,
        flags: TriangularFlags,
    ) -> Option<Self> {
        let size = ty.size();
        isize::try_from(batch.checked_mul(n.checked_mul(n.max(columns.checked_add(WIDTH)?))?)?)
            .ok()?;
        // `x op(a) = b` is `transpose(op(a)) transpose(x) = transpose(b)`.
        let transposed = flags.transpose_a == flags.left_side;
        // An upper triangle is a lower one from its end.
        let is_reversed = flags.lower == transposed;
        let n_step = n as isize;
        let axis = |size, from, to| Axis { size, from, to };
        let direction = if is_reversed { -1 } else { 1 };
        let (down, across) = if transposed { (1, n_step) } else { (n_step, 1) };
        let last = n.saturating_sub(1);
        let matrix = BlockCopy {
            copy: Copy::new(
                &[
                    axis(batch, n_step * n_step, n_step * n_step),
                    axis(n, direction * down, n_step),
                    axis(n, direction * across, 1),
                ],
                size,
            )?,
            from: if is_reversed { last * n + last } else { 0 },
            to: 0,
        };

        let sides = RightSides { size, batch, n, columns, left_side: flags.left_side, is_reversed };
        let (full, width) = (columns / WIDTH, columns % WIDTH);
        let [panels, panels_back] = sides.copies(0, full, WIDTH)?;
        let rest = match width {
            0 => None,
            _ => Some(sides.copies(full, 1, width)?.into()),
        };
        Some(TriangularSolve {
            ty,
            batch,
            n,
            columns,
            left_side: flags.left_side,
            equations: Equations {
                transposed,
                is_reversed,
                unit_diagonal: flags.unit_diagonal,
                conjugate: flags.conjugate_a,
            },
            matrix,
            panels,
            panels_back,
            rest,
        })
    }

    /// How much working memory [`TriangularSolve::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        with_field!(self.ty, T => self.scratch_of::<T>())
    }

    fn scratch_of<T>(&self) -> usize {
        if self.columns <= FEW || self.is_side_by_side() {
            return 0;
        }
        let matrix = scratch_for::<T>(self.batch * self.n * self.n);
        matrix.saturating_add(scratch_for::<T>(self.panel_count() * self.n * WIDTH))
    }

    fn panel_count(&self) -> usize {
        self.batch * self.columns.div_ceil(WIDTH)
    }

    /// Solves for `x`. A zero on the diagonal gives infinities and NaN.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(&self, a: &[u8], b: &[u8], x: &mut [u8], scratch: &mut [u8], threads: Threads<'_>) {
        if self.n == 0 || self.panel_count() == 0 {
            return;
        }
        with_field!(self.ty, T => {
            let (a, b, x) = (cast::<T>(a), cast::<T>(b), cast_mut::<T>(x));
            if self.is_side_by_side() {
                self.side_by_side(a, b, x, threads);
            } else if self.columns <= FEW {
                self.few(a, b, x, threads);
            } else {
                self.panels(a, b, x, scratch, threads);
            }
        });
    }

    /// Whether systems are small and many enough to be solved side by side.
    fn is_side_by_side(&self) -> bool {
        self.columns <= WIDTH && side_by_side::are_worth(self.batch, [self.n, self.n])
    }

    fn side_by_side<T: Field>(&self, a: &[T], b: &[T], x: &mut [T], threads: Threads<'_>) {
        let (n, columns) = (self.n, self.columns);
        let (of_matrix, size) = (n * n, n * columns);
        let system = System {
            n,
            columns,
            by_equations: self.left_side,
            transposed: self.equations.transposed,
            is_reversed: self.equations.is_reversed,
            unit_diagonal: self.equations.unit_diagonal,
            conjugate: self.equations.conjugate,
        };
        let x = &mut x[..self.batch * size];
        side_by_side::for_groups(
            x,
            size,
            of_matrix + size,
            threads,
            &|first, x, work: &mut [T::Side]| {
                let (matrices, sides) = work.split_at_mut(of_matrix);
                let count = x.len() / size;
                side_by_side::load(&a[first * of_matrix..][..count * of_matrix], matrices);
                side_by_side::load(&b[first * size..][..count * size], sides);
                system.solve::<T>(matrices, sides);
                side_by_side::store(sides, x);
            },
        );
    }

    fn few<T: Field>(&self, a: &[T], b: &[T], x: &mut [T], threads: Threads<'_>) {
        let (n, columns, equations) = (self.n, self.columns, self.equations);
        let size = n * columns;
        threads.for_chunks(x, size, &|i, x| {
            let (a, b) = (&a[i * n * n..][..n * n], &b[i * size..][..size]);
            if !self.left_side || columns == 1 {
                x.copy_from_slice(b);
                vectorised(
                    #[inline(always)]
                    || {
                        for x in x.chunks_exact_mut(n) {
                            equations.solve(a, x);
                        }
                    },
                );
                return;
            }
            scratch::with(n, |column| {
                for j in 0..columns {
                    for (v, row) in column.iter_mut().zip(b.chunks_exact(columns)) {
                        *v = row[j];
                    }
                    vectorised(
                        #[inline(always)]
                        || equations.solve(a, column),
                    );
                    for (row, &v) in x.chunks_exact_mut(columns).zip(&*column) {
                        row[j] = v;
                    }
                }
            });
        });
    }

    fn panels<T: Field>(
        &self,
        a: &[T],
        b: &[T],
        x: &mut [T],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        let mut scratch = Scratch::new(scratch);
        let matrices = scratch.take::<T>(self.batch * self.n * self.n);
        let panels = scratch.take::<T>(self.panel_count() * self.n * WIDTH);
        let of_batch = self.panel_count() / self.batch;
        self.matrix.run(a, matrices, threads);
        if self.equations.conjugate {
            threads.for_chunks(matrices, self.n * self.n, &|_, matrix| {
                matrix.iter_mut().for_each(|v| *v = v.conj());
            });
        }
        self.panels.run(b, panels, threads);
        if let Some((rest, _)) = &self.rest {
            // The columns that are missing are solved for zero.
            for batch in panels.chunks_exact_mut(of_batch * self.n * WIDTH) {
                batch[(of_batch - 1) * self.n * WIDTH..].fill(T::ZERO);
            }
            rest.run(b, panels, threads);
        }
        let size = self.n * self.n;
        threads.for_chunks(panels, self.n * WIDTH, &|i, panel| {
            let matrix = &matrices[i / of_batch * size..][..size];
            let rows: &mut [Row<T>] = panel.as_chunks_mut().0;
            vectorised(
                #[inline(always)]
                || panel::solve(matrix, self.n, self.equations.unit_diagonal, rows),
            );
        });
        self.panels_back.run(panels, x, threads);
        if let Some((_, back)) = &self.rest {
            back.run(panels, x, threads);
        }
    }
}

impl BlockCopy {
    fn run<T: Field>(&self, from: &[T], to: &mut [T], threads: Threads<'_>) {
        let (first, target) = (self.from * size_of::<T>(), self.to * size_of::<T>());
        self.copy.run((bytes_of(from), first), (bytes_of_mut(to), target), threads);
    }
}
