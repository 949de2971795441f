//! Rotations of neighbouring columns, collected and applied to blocks of rows that fit into the cache.

use std::sync::{Mutex, PoisonError};

use crate::run::Run;
use crate::scalar::{Real, Scalar};

/// How many bytes a block of rows should have.
const BLOCK_BYTES: usize = 1 << 18;

/// For how many rotations of each column they are collected.
const SWEEPS: usize = 64;

/// A rotation of two neighbours: `x` and `y` become `c x + s y` and `c y − s x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation<R> {
    /// The number of `x`; that of `y` is the next.
    pub first: usize,
    /// `c`.
    pub cosine: R,
    /// `s`.
    pub sine: R,
}

/// Rotations that a matrix is yet to have, in order.
pub(crate) struct Rotations<'m, T: Scalar> {
    matrix: Option<&'m mut [T]>,
    rows: usize,
    /// Of columns.
    list: Vec<Rotation<T::Real>>,
    is_kept: bool,
}

impl<'m, T: Scalar> Rotations<'m, T> {
    /// Of the columns of a matrix; where there is none, nothing is collected.
    pub(crate) fn new(matrix: Option<&'m mut [T]>, rows: usize) -> Self {
        let is_kept = matrix.is_some();
        Rotations { matrix, rows, list: Vec::new(), is_kept }
    }

    /// Of a matrix that others have: all are kept for them, if they want them.
    pub(crate) fn kept(is_kept: bool) -> Self {
        Rotations { matrix: None, rows: 0, list: Vec::new(), is_kept }
    }

    /// What has been collected.
    pub(crate) fn into_list(self) -> Vec<Rotation<T::Real>> {
        self.list
    }

    /// Columns `j` and `j + 1`, `x` and `y`, become `c x + s y` and `c y − s x`.
    pub(crate) fn push(&mut self, j: usize, c: T::Real, s: T::Real) {
        if self.is_kept {
            self.list.push(Rotation { first: j, cosine: c, sine: s });
        }
    }

    /// Applies what there is, if it is much.
    pub(crate) fn settle(&mut self, run: &dyn Run) {
        let columns = self.matrix.as_ref().map_or(0, |m| m.len() / self.rows.max(1));
        if self.list.len() >= SWEEPS * columns {
            self.finish(run);
        }
    }

    /// Applies what there is.
    pub(crate) fn finish(&mut self, run: &dyn Run) {
        let Some(matrix) = self.matrix.as_deref_mut() else { return };
        if self.rows == 0 || self.list.is_empty() {
            return;
        }
        let columns = matrix.len() / self.rows;
        let block = (BLOCK_BYTES / (columns * size_of::<T>())).clamp(16, 512);
        let mut blocks: Vec<Vec<&mut [T]>> = Vec::new();
        blocks.resize_with(self.rows.div_ceil(block), || Vec::with_capacity(columns));
        for column in matrix.chunks_mut(self.rows) {
            column.chunks_mut(block).zip(&mut blocks).for_each(|(part, block)| block.push(part));
        }
        let blocks: Vec<_> = blocks.into_iter().map(Mutex::new).collect();
        let list = &self.list;
        run.for_each(blocks.len(), &|task| {
            let mut block = blocks[task].lock().unwrap_or_else(PoisonError::into_inner);
            for &Rotation { first, cosine, sine } in list {
                let (left, right) = block.split_at_mut(first + 1);
                rotate(left[first], right[0], cosine, sine);
            }
        });
        self.list.clear();
    }
}

/// `x` and `y` become `c x + s y` and `c y − s x`.
pub(crate) fn rotate<T: Scalar>(x: &mut [T], y: &mut [T], c: T::Real, s: T::Real) {
    for (x, y) in x.iter_mut().zip(y) {
        let (left, right) = (*x, *y);
        *x = left.scale(c) + right.scale(s);
        *y = right.scale(c) - left.scale(s);
    }
}

/// The rotation that takes `(f, g)` to `(r, 0)`: `(c, s, r)`.
pub(crate) fn rotation<R: Real>(f: R, g: R) -> (R, R, R) {
    let (zero, one) = (R::default(), R::of(1.0));
    if g == zero {
        return (one, zero, f);
    }
    if f == zero {
        return (zero, g.signum(), g.abs());
    }
    let (least, greatest) = (R::SAFE_MIN.sqrt(), (one / R::SAFE_MIN).sqrt() * R::of(0.5));
    let (f_abs, g_abs) = (f.abs(), g.abs());
    let is_safe = |x: R| x > least && x < greatest;
    if is_safe(f_abs) && is_safe(g_abs) {
        let length = (f * f + g * g).sqrt();
        let r = length.copysign(f);
        return (f_abs / length, g / r, r);
    }
    let unit = f_abs.max(g_abs).max(R::SAFE_MIN).min(one / R::SAFE_MIN);
    let (f, g) = (f / unit, g / unit);
    let length = (f * f + g * g).sqrt();
    let r = length.copysign(f);
    (f.abs() / length, g / r, r * unit)
}
