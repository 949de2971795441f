//! Reflectors of many rows applied to panels, as many as a panel has columns at a time.

use super::super::isa::vectorised;
use super::panel::{Row, WIDTH};
use super::qr::{Block, MIN_SHARED, Reflecting, apply, clear, triangle};
use super::real::Real;
use crate::Threads;

/// Reflectors that were made from the last row of a matrix on: number `j` is in row `last − j`, and its element
/// number `size − 1 − i` is in row `i` of what it is applied to.
#[derive(Clone, Copy)]
pub(super) struct Reversed<'r, T> {
    pub(super) rows: &'r [T],
    pub(super) stride: usize,
    pub(super) last: usize,
    /// The elements of the first one.
    pub(super) size: usize,
    pub(super) tau: &'r [T],
}

impl<T: Real> Reversed<'_, T> {
    fn load(&self, first: usize, width: usize, v: &mut [Row<T>]) {
        for c in 0..width {
            let row = &self.rows[(self.last - first - c) * self.stride..][..self.size - first - c];
            for (v, &x) in v[c..].iter_mut().zip(row.iter().rev()) {
                v[c] = x;
            }
        }
    }
}

/// Replaces panels of `m` rows by the product of all reflectors with their rows from `offset` on. `work` is for
/// as many rows as the first reflector has elements, and those of a block.
pub(super) fn apply_all<T: Real>(
    of: Reversed<'_, T>,
    panels: &mut [Row<T>],
    (m, offset): (usize, usize),
    work: &mut [Row<T>],
    threads: Threads<'_>,
) {
    let load = |first: usize, width: usize, v: &mut [Row<T>]| of.load(first, width, v);
    apply_loaded(&load, (of.size, of.tau), false, panels, (m, offset), work, threads);
}

/// Writes so many reflectors from some number on, as columns.
type Load<'l, T> = dyn Fn(usize, usize, &mut [Row<T>]) + 'l;

/// As [`apply_all`], of reflectors that are written to rows from that of the first one's one on, or of the
/// adjoint of their product.
pub(super) fn apply_loaded<T: Reflecting>(
    load: &Load<'_, T>,
    (size, tau): (usize, &[T]),
    is_adjoint: bool,
    panels: &mut [Row<T>],
    (m, offset): (usize, usize),
    work: &mut [Row<T>],
    threads: Threads<'_>,
) {
    let (v, t) = work.split_at_mut(size);
    let Some(t) = t.first_chunk_mut::<WIDTH>() else { return };
    let t: &mut Block<T> = t;
    let blocks = tau.len().div_ceil(WIDTH);
    for step in 0..blocks {
        let number = if is_adjoint { step } else { blocks - 1 - step };
        let tau = &tau[number * WIDTH..tau.len().min((number + 1) * WIDTH)];
        if threads.is_stopped() {
            return;
        }
        let (first, width) = (number * WIDTH, tau.len());
        let v = &mut v[..size - first];
        load(first, width, v);
        vectorised(
            #[inline(always)]
            || {
                clear(v, width);
                triangle(v, tau, t);
            },
        );
        let (v, t) = (&*v, &*t);
        let threads = if v.len() < MIN_SHARED { Threads::single() } else { threads };
        threads.for_chunks(panels, m, &|_, panel| {
            vectorised(
                #[inline(always)]
                || apply(v, t, is_adjoint, width, &mut panel[offset + first..][..v.len()]),
            );
        });
    }
}
