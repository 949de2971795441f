//! Reductions that are made of others.

use helio::ElementType;

use crate::ops::binary::{ensure_real, ensure_type, is_narrow};
use crate::ops::nonlinear::ensure_float;
use crate::{Axes, Dim, Shape, Tensor, keep};

impl Tensor {
    /// The standard deviation along axes, the square root of [`Tensor::var`]; types narrower than
    /// `f32` are computed in `f32`. Errors: as there. Source: NumPy's `std`, with its `ddof`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(format!("{:.3}", x.std(0, 0).eval()?), "[1. 1.]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn std(&self, axes: impl Into<Axes>, correction: i32) -> Tensor {
        self.call("std", |ty| match is_narrow(ty.dtype) {
            true => {
                let wide = self.cast(ElementType::F32);
                Ok(wide.var(axes, correction).sqrt().cast(ty.dtype))
            }
            false => Ok(self.var(axes, correction).sqrt()),
        })
    }

    /// The logarithm of the sum of `exp(x)` along axes, computed from differences to the greatest
    /// element; negative infinity of none. Errors: `elementwise.C1`, `shape.C1`. Source: SciPy's and
    /// JAX's `logsumexp`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.logsumexp(0).eval()?), "1.313");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logsumexp(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("logsumexp", |ty| {
            let axes = axes.into();
            self.in_f32(ty, |x| {
                let greatest = x.max(keep(axes.clone()));
                // The difference of infinities is NaN.
                let greatest = greatest.where_(greatest.is_finite(), 0.0);
                let sum = (x - &greatest).exp().sum(axes);
                let greatest = greatest.reshape(sum.shape()?);
                Ok(sum.log() + greatest)
            })
        })
    }

    /// The square root of the sum of squared magnitudes along axes; types narrower than `f32` are
    /// computed in `f32`. Errors: `elementwise.C1` unless they are floats or complex, `shape.C1`.
    /// Source: NumPy's `linalg.norm`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3f32, 4.0]);
    /// assert_eq!(x.norm(..).eval()?, 5f32.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn norm(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("norm", |ty| {
            let accepted = ty.dtype.is_float() || ty.dtype.is_complex();
            ensure_type(ty.dtype, accepted, "floats")?;
            let wide = if is_narrow(ty.dtype) { ElementType::F32 } else { ty.dtype };
            let norm = self.cast(wide).abs().square().sum(axes).sqrt();
            Ok(if wide == ty.dtype { norm } else { norm.cast(ty.dtype) })
        })
    }

    /// How many elements along axes are not 0, or true, as `s64`. Errors: `shape.C1`,
    /// `promotion.C2` for a type without zero. Source: NumPy's `count_nonzero`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0, 5, 7]);
    /// assert_eq!(x.count_nonzero(0).eval()?, 2i64.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn count_nonzero(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("count_nonzero", |_| Ok(self.not_equal(0).cast(ElementType::S64).sum(axes)))
    }

    /// The middle element along axes, or the mean of the two in the middle; NaN if there is one.
    /// Integers are converted to `f64` first.
    ///
    /// Errors: `elementwise.C1`, `shape.C1`; `slice.C2` for no elements, also in a call (NumPy's is
    /// NaN then). Source: NumPy's `median`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([4f32, 1.0, 2.0, 3.0]);
    /// assert_eq!(x.median(0).eval()?, 2.5f32.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("median", |ty| {
            ensure_real(ty.dtype)?;
            let axes = axes.into();
            let (folded, left) = axes.of(&ty.shape)?;
            let kept: Vec<usize> =
                (0..ty.shape.rank()).filter(|axis| !folded.contains(axis)).collect();
            let x = match ty.dtype.is_integer() {
                true => self.cast(ElementType::F64),
                false => self.clone(),
            };
            let (dtype, ty) = (x.dtype()?, x.ty()?);
            ensure_float(&ty)?;
            let count = folded.iter().fold(Dim::from(1), |count, &axis| count * &ty.shape[axis]);
            let lanes = kept.iter().map(|&axis| ty.shape[axis].clone()).chain([count.clone()]);
            let lanes: Shape = lanes.collect();
            let order = [kept, folded].concat();
            let sorted = x.permuted(&ty, order)?.reshape(lanes).sort(-1);
            let wide = if is_narrow(dtype) { ElementType::F32 } else { dtype };
            let at = |place: Dim| sorted.slice(-1, place).cast(wide);
            let middle = at((&count - 1) / 2) * 0.5 + at(&count / 2) * 0.5;
            let last = at(&count - 1);
            let median = last.where_(last.is_nan(), middle);
            Ok(median.cast(dtype).reshape(left))
        })
    }
}
