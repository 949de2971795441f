//! Updates of factors.

use num_traits::Float;

use crate::run::Run;
use crate::scalar::{Real, Scalar};

/// By rotations of `w` into the rows of `U`.
pub(crate) fn cholesky_update<T: Scalar>(run: &dyn Run, n: usize, u: &mut [T], w: &mut [T]) {
    for k in 0..n {
        if run.is_stopped() {
            return;
        }
        let (x, y) = (u[k + k * n], w[k]);
        let length = x.magnitude().hypot(y.magnitude());
        if length == T::Real::default() {
            continue;
        }
        let down = T::Real::of(1.0) / length;
        let (c, s) = (x.conj().scale(down), y.conj().scale(down));
        for j in k..n {
            let (above, below) = (u[k + j * n], w[j]);
            u[k + j * n] = c * above + s * below;
            w[j] = x.scale(down) * below - y.scale(down) * above;
        }
    }
}
