//! Products with the orthogonal or unitary matrices of QR factors.

use super::super::bytes::{cast, cast_mut};
use super::super::scratch;
use super::back;
use super::panel::{Row, WIDTH};
use super::qr::Reflecting;
use super::{FieldType, with_field};
use crate::Threads;

/// Products of matrices with products of reflectors, as LAPACK's `ormqr` has them: `q c`, `c q`, or these with the
/// adjoint of `q`.
#[derive(Clone, Debug)]
pub struct QrMultiply {
    ty: FieldType,
    batch: usize,
    packed: [usize; 2],
    reflectors: usize,
    c: [usize; 2],
    flags: MultiplyFlags,
}

/// Which product is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplyFlags {
    /// Whether `q` is the left factor.
    pub left_side: bool,
    /// Whether it is the adjoint of `q`.
    pub adjoint: bool,
}

impl QrMultiply {
    /// A plan for `batch` packed matrices with so many reflectors each, below their diagonals, and as many matrices
    /// `c`. `None` if sizes do not match, or overflow.
    pub fn new(
        ty: FieldType,
        batch: usize,
        packed: [usize; 2],
        reflectors: usize,
        c: [usize; 2],
        flags: MultiplyFlags,
    ) -> Option<Self> {
        let [m, n] = c;
        let order = if flags.left_side { m } else { n };
        let most = m.checked_add(2 * WIDTH)?.checked_mul(n.checked_add(2 * WIDTH)?)?;
        isize::try_from(batch.checked_mul(most)?.checked_mul(ty.size())?).ok()?;
        let fits = packed[0] == order && reflectors <= packed[0].min(packed[1]);
        fits.then_some(QrMultiply { ty, batch, packed, reflectors, c, flags })
    }

    /// Writes the products to `to`.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn run(&self, packed: &[u8], tau: &[u8], c: &[u8], to: &mut [u8], threads: Threads<'_>) {
        with_field!(self.ty, T => {
            self.typed::<T>([cast(packed), cast(tau), cast(c)], cast_mut(to), threads);
        });
    }

    fn typed<T: Reflecting>(
        &self,
        [packed, tau, c]: [&[T]; 3],
        to: &mut [T],
        threads: Threads<'_>,
    ) {
        let [m, n] = self.c;
        let [order, columns] = self.packed;
        let MultiplyFlags { left_side, adjoint } = self.flags;
        let others = if left_side { n } else { m };
        threads.for_chunks(&mut to[..self.batch * m * n], m * n, &|number, to| {
            // Several matrices are shared out; of one, panels are.
            let threads = if self.batch > 1 { Threads::single() } else { threads };
            let packed = &packed[number * order * columns..][..order * columns];
            let tau = &tau[number * self.reflectors..][..self.reflectors];
            let c = &c[number * m * n..][..m * n];
            let load = |first: usize, width: usize, v: &mut [Row<T>]| {
                for (v, row) in v.iter_mut().zip(packed.chunks_exact(columns).skip(first)) {
                    v[..width].copy_from_slice(&row[first..first + width]);
                }
            };
            let panels = others.div_ceil(WIDTH) * order;
            scratch::with((panels + order + WIDTH) * WIDTH, |memory: &mut [T]| {
                let (panels, work) = memory.as_chunks_mut().0.split_at_mut(panels);
                for (number, panel) in panels.chunks_exact_mut(order).enumerate() {
                    let range = number * WIDTH..others.min((number + 1) * WIDTH);
                    for (i, row) in panel.iter_mut().enumerate() {
                        *row = [T::ZERO; WIDTH];
                        match left_side {
                            true => row[..range.len()].copy_from_slice(&c[i * n..][range.clone()]),
                            false => {
                                let column = c[range.start * n + i..].iter().step_by(n);
                                let column = column.take(range.len());
                                row.iter_mut().zip(column).for_each(|(to, x)| *to = x.conj());
                            }
                        }
                    }
                }
                // From the right, the adjoint of the product is computed.
                let is_adjoint = adjoint == left_side;
                let of = (order, tau);
                back::apply_loaded(&load, of, is_adjoint, panels, (order, 0), work, threads);
                for (number, panel) in panels.chunks_exact(order).enumerate() {
                    let range = number * WIDTH..others.min((number + 1) * WIDTH);
                    for (i, row) in panel.iter().enumerate() {
                        match left_side {
                            true => to[i * n..][range.clone()].copy_from_slice(&row[..range.len()]),
                            false => {
                                let column = to[range.start * n + i..].iter_mut().step_by(n);
                                column.zip(&row[..range.len()]).for_each(|(to, x)| *to = x.conj());
                            }
                        }
                    }
                }
            });
        });
    }
}
