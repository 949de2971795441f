//! The functions of neural networks: activations and softmax.
//!
//! Types narrower than `f32` are computed in `f32` and rounded once.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use helio::ir::Number;
use helio::{ElementType, Result};

use crate::graph::TensorType;
use crate::operand::constant;
use crate::ops::binary::ensure_type;
use crate::ops::erfc::erfc;
use crate::{Axis, Graph, Tensor};

/// How [`Tensor::gelu_with`] computes the normal distribution. Source: MAX's `approximate`.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::Gelu;
/// let x = g.constant([0f32, 100.0]);
/// assert_eq!(x.gelu_with(Gelu::Quick).eval()?, [0f32, 100.0].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gelu {
    /// By the error function.
    #[default]
    None,
    /// `x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) / 2`
    Tanh,
    /// `x * sigmoid(1.702 * x)`
    Quick,
}

impl Tensor {
    /// The greater of `x` and 0; NaN for NaN. Integers, too. Errors: `elementwise.C1` for bools and
    /// complex numbers. Source: the elementwise module's "relu"; MAX loses NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(x.relu().eval()?, [0f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.call("relu", |ty| {
            let real = ty.dtype.is_integer() || ty.dtype.is_float();
            ensure_type(ty.dtype, real, "numbers that have an order")?;
            // -0 is less than +0, so it becomes +0.
            Ok(self.maximum(constant(self.graph(), Number::Float(0.0), ty.dtype)?))
        })
    }

    /// `1 / (1 + exp(-x))`. Errors: `elementwise.C1`. Source: the elementwise module's "sigmoid";
    /// MAX loses NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.sigmoid().eval()?), "[0.269 0.881]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        self.call("sigmoid", |ty| {
            ensure_float(ty)?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].logistic()))
        })
    }

    /// `x * sigmoid(x)`; 0 for negative infinity. Errors: `elementwise.C1`. Source: the elementwise
    /// module's "silu".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.silu().eval()?), "[-0.269  1.762]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self.call("silu", |ty| self.in_f32(ty, |x| Ok(x.max_lowest()? * x.sigmoid())))
    }

    /// The Gaussian error linear unit, by the error function. Errors: `elementwise.C1`. Source: the
    /// elementwise module's "gelu".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.gelu().eval()?), "[-0.159  0.841]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        self.gelu_with(Gelu::None)
    }

    /// The Gaussian error linear unit: `x` times the normal distribution at `x`, exactly or in one
    /// of two approximations; 0 for negative infinity. Errors: `elementwise.C1`. Source: MAX's
    /// `gelu`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// use helio_graph::Gelu;
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.gelu_with(Gelu::Tanh).eval()?), "[-0.159  1.955]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_with(&self, approximate: Gelu) -> Tensor {
        self.call("gelu", |ty| {
            self.in_f32(ty, |x: &Tensor| {
                let normal = match approximate {
                    Gelu::None => 0.5 * (-FRAC_1_SQRT_2 * x).erfc(),
                    // (1 + tanh(u)) / 2 is sigmoid(2u), which keeps its digits where tanh nears -1.
                    Gelu::Tanh => {
                        let scale = 2.0 * SQRT_2 / PI.sqrt();
                        (x * (scale + (scale * 0.044715) * x.square())).sigmoid()
                    }
                    Gelu::Quick => (1.702 * x).sigmoid(),
                };
                Ok(x.max_lowest()? * normal)
            })
        })
    }

    /// `1 - erf(x)`, with all its digits for large `x`. Errors: `elementwise.C1`. Source: SciPy's
    /// `erfc`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.erfc().eval()?), "[1.    0.157]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn erfc(&self) -> Tensor {
        self.call("erfc", |ty| {
            self.in_f32(ty, |x| {
                let ty = x.ty()?;
                let dtype = ty.dtype;
                self.graph().emit(&[x], ty, move |_, x| Ok(erfc(&x[0], dtype)))
            })
        })
    }

    /// `log(1 + exp(x))`. Errors: `elementwise.C1`. Source: JAX's `softplus`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.softplus().eval()?), "[0.313 2.127]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        self.call("softplus", |ty| {
            self.in_f32(ty, |x| Ok(x.maximum(0.0) + (-x.abs()).exp().log1p()))
        })
    }

    /// `x` if it is not negative, else `slope * x`. Errors: `elementwise.C1`. Source: JAX's
    /// `leaky_relu`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.leaky_relu(0.1).eval()?), "[-0.1  2. ]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, slope: f64) -> Tensor {
        self.call("leaky_relu", |ty| {
            ensure_float(ty)?;
            Ok(self.where_(self.greater_equal(0.0), self * slope))
        })
    }

    /// `x` if it is positive, else `alpha * (exp(x) - 1)`. Errors: `elementwise.C1`. Source: JAX's
    /// `elu`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.elu(1.0).eval()?), "[-0.632  2.   ]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Tensor {
        self.call("elu", |ty| {
            ensure_float(ty)?;
            Ok(self.where_(self.greater(0.0), alpha * self.minimum(0.0).expm1()))
        })
    }

    /// `x * x`. Errors: `elementwise.C1`. Source: NumPy's `square`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(x.square().eval()?, [1f32, 4.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self.call("square", |_| Ok(self.mul(self)))
    }

    /// `1 / x`. Errors: `elementwise.C1` unless they are floats. Source: NumPy's `reciprocal`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(x.reciprocal().eval()?, [-1f32, 0.5].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn reciprocal(&self) -> Tensor {
        self.call("reciprocal", |ty| {
            let float = ty.dtype.is_float() || ty.dtype.is_complex();
            ensure_type(ty.dtype, float, "floats")?;
            Ok(1.0 / self)
        })
    }

    /// `x` if it is between the limits, else the nearer one. Errors: as for [`Tensor::max`]. Source:
    /// NumPy's `clip`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(x.clamp(0, 1).eval()?, [0f32, 1.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn clamp(&self, low: impl crate::Operand, high: impl crate::Operand) -> Tensor {
        self.call("clamp", |_| Ok(self.maximum(low).minimum(high)))
    }

    /// `exp(x)` divided by its sum along an axis, -1 for the last one. Computed from differences to
    /// the greatest element; NaN everywhere along an axis that has a NaN or positive infinity.
    /// Errors: `elementwise.C1`, `shape.C1`. Source: the elementwise module's "softmax", and MAX's
    /// for the axis.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.softmax(0).eval()?), "[0.047 0.953]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, axis: impl Into<Axis>) -> Tensor {
        self.call("softmax", |ty| {
            let axis = ty.shape.axis(axis)?;
            self.in_f32(ty, |x| {
                let exp = x.less_greatest(axis).exp();
                Ok(&exp / exp.sum(crate::keep(axis)))
            })
        })
    }

    /// The logarithm of [`Tensor::softmax`]. Errors: `elementwise.C1`, `shape.C1`. Source: the
    /// elementwise module's "logsoftmax", and MAX's for the axis.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([-1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.logsoftmax(0).eval()?), "[-3.049 -0.049]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logsoftmax(&self, axis: impl Into<Axis>) -> Tensor {
        self.call("logsoftmax", |ty| {
            let axis = ty.shape.axis(axis)?;
            self.in_f32(ty, |x| {
                let shifted = x.less_greatest(axis);
                Ok(&shifted - shifted.exp().sum(crate::keep(axis)).log())
            })
        })
    }

    /// The differences to the greatest element along an axis.
    fn less_greatest(&self, axis: usize) -> Tensor {
        self - self.max(crate::keep(axis))
    }

    /// `x`, but the lowest finite number for negative infinity, so that the product with 0 is 0.
    fn max_lowest(&self) -> Result<Tensor> {
        Ok(self.maximum(lowest(self.graph(), self.dtype()?)?))
    }

    /// A function of floats, computed in `f32` for types narrower than that.
    pub(crate) fn in_f32(
        &self,
        ty: &TensorType,
        function: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        ensure_float(ty)?;
        match ty.dtype.bits() < 32 {
            true => Ok(function(&self.cast(ElementType::F32))?.cast(ty.dtype)),
            false => function(self),
        }
    }
}

pub(crate) fn ensure_float(ty: &TensorType) -> Result<()> {
    ensure_type(ty.dtype, ty.dtype.is_float(), "floats")
}

/// The lowest finite number of a type.
pub(crate) fn lowest(graph: &Graph, dtype: ElementType) -> Result<Tensor> {
    graph.emit(&[], TensorType::new(dtype, ()), move |emit, _| {
        Ok(emit.builder.min_finite_value(dtype))
    })
}
