//! Element-wise operations of one operand that HLO has, or that are a few instructions.

use helio::ir::UnaryOp;
use helio::ir::ops::Accepts;
use helio::{ElementType, Result, XlaOp};

use crate::Tensor;
use crate::graph::TensorType;
use crate::ops::binary::ensure_type;

macro_rules! unary {
    ($($(#[doc = $doc:literal])+ $name:ident: $op:ident;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// Type and shape are the operand's. Errors: `elementwise.C1`.
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                self.call(stringify!($name), |ty| {
                    self.apply(UnaryOp::$op, ty)
                })
            }
        )*}
    };
}
unary! {
    /// `e` to the power of `x`. Source: the elementwise module's "exp"; MAX saturates and loses NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.exp().eval()?), "[1.    2.718]");
    /// # Ok::<(), Error>(())
    /// ```
    exp: Exp;
    /// `e` to the power of `x`, less 1, accurate near 0. Source: NumPy's `expm1`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.expm1().eval()?), "[0.    1.718]");
    /// # Ok::<(), Error>(())
    /// ```
    expm1: Expm1;
    /// The natural logarithm. Source: the elementwise module's "log".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.log().eval()?), "[0.    0.693]");
    /// # Ok::<(), Error>(())
    /// ```
    log: Log;
    /// The natural logarithm of `1 + x`, accurate near 0. Source: the elementwise module's "log1p".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.log1p().eval()?), "[0.    0.693]");
    /// # Ok::<(), Error>(())
    /// ```
    log1p: Log1p;
    /// The error function. Source: the elementwise module's "erf".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.erf().eval()?), "[0.    0.843]");
    /// # Ok::<(), Error>(())
    /// ```
    erf: Erf;
    /// The square root; -0 for -0. Source: the elementwise module's "sqrt".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.sqrt().eval()?, [1f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    sqrt: Sqrt;
    /// The inverse of the square root; infinite for zeros, with their sign. Source: the elementwise
    /// module's "rsqrt".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(format!("{:.3}", x.rsqrt().eval()?), "[1.  0.5]");
    /// # Ok::<(), Error>(())
    /// ```
    rsqrt: Rsqrt;
    /// The cube root. Source: NumPy's `cbrt`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([8f32, 27.0]);
    /// assert_eq!(format!("{:.3}", x.cbrt().eval()?), "[2. 3.]");
    /// # Ok::<(), Error>(())
    /// ```
    cbrt: Cbrt;
    /// The sine, of radians. Source: the elementwise module's "sin".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.sin().eval()?), "[0.    0.841]");
    /// # Ok::<(), Error>(())
    /// ```
    sin: Sin;
    /// The cosine, of radians. Source: the elementwise module's "cos".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.cos().eval()?), "[1.   0.54]");
    /// # Ok::<(), Error>(())
    /// ```
    cos: Cos;
    /// The tangent, of radians. Source: NumPy's `tan`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.tan().eval()?), "[0.    1.557]");
    /// # Ok::<(), Error>(())
    /// ```
    tan: Tan;
    /// The inverse sine. Source: NumPy's `arcsin`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.asin().eval()?), "[0.    1.571]");
    /// # Ok::<(), Error>(())
    /// ```
    asin: Asin;
    /// The inverse cosine; NaN outside of [-1, 1]. Source: MAX's `acos`, which clamps.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.acos().eval()?), "[1.571 0.   ]");
    /// # Ok::<(), Error>(())
    /// ```
    acos: Acos;
    /// The inverse tangent. Source: NumPy's `arctan`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.atan().eval()?), "[0.    0.785]");
    /// # Ok::<(), Error>(())
    /// ```
    atan: Atan;
    /// The hyperbolic sine. Source: NumPy's `sinh`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.sinh().eval()?), "[0.    1.175]");
    /// # Ok::<(), Error>(())
    /// ```
    sinh: Sinh;
    /// The hyperbolic cosine. Source: NumPy's `cosh`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.cosh().eval()?), "[1.    1.543]");
    /// # Ok::<(), Error>(())
    /// ```
    cosh: Cosh;
    /// The hyperbolic tangent. Source: the elementwise module's "tanh"; MAX loses NaN, and falls
    /// for large `f16`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.tanh().eval()?), "[0.    0.762]");
    /// # Ok::<(), Error>(())
    /// ```
    tanh: Tanh;
    /// The inverse hyperbolic sine. Source: NumPy's `arcsinh`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.asinh().eval()?), "[0.    0.881]");
    /// # Ok::<(), Error>(())
    /// ```
    asinh: Asinh;
    /// The inverse hyperbolic cosine. Source: NumPy's `arccosh`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 2.0]);
    /// assert_eq!(format!("{:.3}", x.acosh().eval()?), "[0.    1.317]");
    /// # Ok::<(), Error>(())
    /// ```
    acosh: Acosh;
    /// The inverse hyperbolic tangent. Source: MAX's `atanh`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 0.5]);
    /// assert_eq!(format!("{:.3}", x.atanh().eval()?), "[0.    0.549]");
    /// # Ok::<(), Error>(())
    /// ```
    atanh: Atanh;
    /// The greatest integer not above. Source: the elementwise module's "floor".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.5f32, -1.5]);
    /// assert_eq!(x.floor().eval()?, [1f32, -2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    floor: Floor;
    /// The least integer not below. Source: MAX's `ceil`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.5f32, -1.5]);
    /// assert_eq!(x.ceil().eval()?, [2f32, -1.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    ceil: Ceil;
    /// The nearest integer, halves away from zero. Source: the elementwise module's "round".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([2.5f32, -2.5]);
    /// assert_eq!(x.round().eval()?, [3f32, -3.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    round: RoundNearestAfz;
    /// The nearest integer, halves to even. Source: the elementwise module's "roundeven"; MAX's and
    /// NumPy's `round`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([2.5f32, -2.5]);
    /// assert_eq!(x.roundeven().eval()?, [2f32, -2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    roundeven: RoundNearestEven;
    /// -1, 0 or 1; of a complex number, the number of its direction. Source: NumPy's `sign`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([7, 0, -7]);
    /// assert_eq!(x.sign().eval()?, [1, 0, -1].into());
    /// # Ok::<(), Error>(())
    /// ```
    sign: Sign;
    /// Leading zero bits of integers.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1u8, 255]);
    /// assert_eq!(x.count_leading_zeros().eval()?, [7u8, 0].into());
    /// # Ok::<(), Error>(())
    /// ```
    count_leading_zeros: Clz;
    /// Set bits of integers.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1u8, 255]);
    /// assert_eq!(x.population_count().eval()?, [1u8, 8].into());
    /// # Ok::<(), Error>(())
    /// ```
    population_count: Popcnt;
}

impl Tensor {
    /// The magnitude; the least integer stays as it is, unsigned integers and bools too. Of a
    /// complex number, a real one. Errors: none. Source: the elementwise module's "abs".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([7, 0, -7]);
    /// assert_eq!(x.abs().eval()?, [7, 0, 7].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn abs(&self) -> Tensor {
        self.call("abs", |ty| match ty.dtype {
            dtype if dtype.is_unsigned_integer() || dtype.is_pred() => Ok(self.clone()),
            dtype => {
                let ty = TensorType::new(dtype.real_part(), &ty.shape);
                self.graph().emit(&[self], ty, |_, x| Ok(x[0].abs()))
            }
        })
    }

    /// The number with the other sign, also as `-x`. Errors: `elementwise.C1` for unsigned integers
    /// and bools. Source: MAX's `negate`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([7, -7]);
    /// assert_eq!(x.negate().eval()?, [-7, 7].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn negate(&self) -> Tensor {
        self.call("negate", |ty| {
            let signed = !ty.dtype.is_unsigned_integer() && !ty.dtype.is_pred();
            ensure_type(ty.dtype, signed, "signed numbers")?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].neg()))
        })
    }

    /// The integer in the direction of zero. Errors: `elementwise.C1`. Source: the elementwise
    /// module's "trunc".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([2.7f32, -2.7]);
    /// assert_eq!(x.trunc().eval()?, [2f32, -2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn trunc(&self) -> Tensor {
        self.call("trunc", |ty| {
            ensure_type(ty.dtype, ty.dtype.is_float(), "floats")?;
            let dtype = ty.dtype;
            self.graph().emit(&[self], ty.clone(), move |emit, x| {
                let negative = x[0].lt(emit.builder.zero(dtype));
                Ok(negative.select(x[0].ceil(), x[0].floor()))
            })
        })
    }

    /// Whether it is NaN, as `pred`; false for integers. Source: the elementwise module's "is_nan".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.0, f64::NAN, f64::INFINITY]);
    /// assert_eq!(x.is_nan().eval()?, [false, true, false].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn is_nan(&self) -> Tensor {
        self.call("is_nan", |ty| self.any_part(ty, |x| x.ne(x)))
    }

    /// Whether it is infinite, as `pred`; false for integers. Source: the elementwise module's
    /// "is_inf".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.0, f64::NAN, f64::INFINITY]);
    /// assert_eq!(x.is_inf().eval()?, [false, false, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn is_inf(&self) -> Tensor {
        self.call("is_inf", |ty| self.any_part(ty, |x| x.is_finite().not().and(x.eq(x))))
    }

    /// Whether it is neither infinite nor NaN, as `pred`; true for integers. Source: NumPy's
    /// `isfinite`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.0, f64::NAN, f64::INFINITY]);
    /// assert_eq!(x.is_finite().eval()?, [true, false, false].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn is_finite(&self) -> Tensor {
        self.call("is_finite", |ty| Ok(!self.any_part(ty, |x| x.is_finite().not())?))
    }

    /// Whether it is false; `pred` only. Errors: `elementwise.C1`. Source: MAX's `logical_not`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.logical_not().eval()?, [false, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logical_not(&self) -> Tensor {
        self.call("logical_not", |ty| {
            ensure_type(ty.dtype, ty.dtype.is_pred(), "bool (pred)")?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].not()))
        })
    }

    /// Every bit flipped, of integers or bools; also as `!x`. Errors: `elementwise.C1`. Source:
    /// NumPy's `bitwise_not`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0, 1]);
    /// assert_eq!(x.bitwise_not().eval()?, [-1, -2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bitwise_not(&self) -> Tensor {
        self.call("bitwise_not", |ty| {
            let accepted = ty.dtype.is_integer() || ty.dtype.is_pred();
            ensure_type(ty.dtype, accepted, "integers and bool (pred)")?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].not()))
        })
    }

    /// The real part; real numbers as they are. Source: NumPy's `real`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!((2.0 * x.cast(C64)).real().eval()?, [2f32, 8.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn real(&self) -> Tensor {
        self.call("real", |ty| match ty.dtype.is_complex() {
            false => Ok(self.clone()),
            true => {
                let ty = TensorType::new(ty.dtype.real_part(), &ty.shape);
                self.graph().emit(&[self], ty, |_, x| Ok(x[0].real()))
            }
        })
    }

    /// The imaginary part of complex numbers. Errors: `elementwise.C1`. Source: NumPy's `imag`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.cast(C64).imag().eval()?, [0f32, 0.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn imag(&self) -> Tensor {
        self.call("imag", |ty| {
            ensure_type(ty.dtype, ty.dtype.is_complex(), "complex numbers")?;
            let ty = TensorType::new(ty.dtype.real_part(), &ty.shape);
            self.graph().emit(&[self], ty, |_, x| Ok(x[0].imag()))
        })
    }

    fn apply(&self, op: UnaryOp, ty: &TensorType) -> Result<Tensor> {
        let TensorType { dtype, .. } = *ty;
        let (accepted, wanted) = match op.accepts() {
            Accepts::Float => (dtype.is_float(), "floats"),
            Accepts::FloatOrComplex => (dtype.is_float() || dtype.is_complex(), "floats"),
            Accepts::Integer => (dtype.is_integer(), "integers"),
            Accepts::SignedFloatOrComplex => {
                (!dtype.is_unsigned_integer() && !dtype.is_pred(), "signed numbers")
            }
            _ => (!dtype.is_pred(), "numbers"),
        };
        ensure_type(dtype, accepted, wanted)?;
        self.graph().emit(&[self], ty.clone(), move |_, x| Ok(x[0].unary(op)))
    }

    /// Whether something holds for a float, or for a part of a complex number; it never holds for
    /// integers and bools.
    fn any_part(
        &self,
        ty: &TensorType,
        holds: impl Fn(&XlaOp) -> XlaOp + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let (dtype, ty) = (ty.dtype, TensorType::new(ElementType::Pred, &ty.shape));
        self.graph().emit(&[self], ty.clone(), move |emit, x| {
            Ok(if dtype.is_complex() {
                holds(&x[0].real()).or(holds(&x[0].imag()))
            } else if dtype.is_float() {
                holds(&x[0])
            } else {
                emit.builder.constant_r0(false).broadcast(&emit.sizes(&ty.shape)?)
            })
        })
    }
}
