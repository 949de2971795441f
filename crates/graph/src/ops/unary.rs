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
    exp: Exp;
    /// `e` to the power of `x`, less 1, accurate near 0. Source: NumPy's `expm1`.
    expm1: Expm1;
    /// The natural logarithm. Source: the elementwise module's "log".
    log: Log;
    /// The natural logarithm of `1 + x`, accurate near 0. Source: the elementwise module's "log1p".
    log1p: Log1p;
    /// The error function. Source: the elementwise module's "erf".
    erf: Erf;
    /// The square root; -0 for -0. Source: the elementwise module's "sqrt".
    sqrt: Sqrt;
    /// The inverse of the square root; infinite for zeros, with their sign. Source: the elementwise
    /// module's "rsqrt".
    rsqrt: Rsqrt;
    /// The cube root. Source: NumPy's `cbrt`.
    cbrt: Cbrt;
    /// The sine, of radians. Source: the elementwise module's "sin".
    sin: Sin;
    /// The cosine, of radians. Source: the elementwise module's "cos".
    cos: Cos;
    /// The tangent, of radians. Source: NumPy's `tan`.
    tan: Tan;
    /// The inverse sine. Source: NumPy's `arcsin`.
    asin: Asin;
    /// The inverse cosine; NaN outside of [-1, 1]. Source: MAX's `acos`, which clamps.
    acos: Acos;
    /// The inverse tangent. Source: NumPy's `arctan`.
    atan: Atan;
    /// The hyperbolic sine. Source: NumPy's `sinh`.
    sinh: Sinh;
    /// The hyperbolic cosine. Source: NumPy's `cosh`.
    cosh: Cosh;
    /// The hyperbolic tangent. Source: the elementwise module's "tanh"; MAX loses NaN, and falls
    /// for large `f16`.
    tanh: Tanh;
    /// The inverse hyperbolic sine. Source: NumPy's `arcsinh`.
    asinh: Asinh;
    /// The inverse hyperbolic cosine. Source: NumPy's `arccosh`.
    acosh: Acosh;
    /// The inverse hyperbolic tangent. Source: MAX's `atanh`.
    atanh: Atanh;
    /// The greatest integer not above. Source: the elementwise module's "floor".
    floor: Floor;
    /// The least integer not below. Source: MAX's `ceil`.
    ceil: Ceil;
    /// The nearest integer, halves away from zero. Source: the elementwise module's "round".
    round: RoundNearestAfz;
    /// The nearest integer, halves to even. Source: the elementwise module's "roundeven"; MAX's and
    /// NumPy's `round`.
    roundeven: RoundNearestEven;
    /// -1, 0 or 1; of a complex number, the number of its direction. Source: NumPy's `sign`.
    sign: Sign;
    /// Leading zero bits of integers.
    count_leading_zeros: Clz;
    /// Set bits of integers.
    population_count: Popcnt;
}

impl Tensor {
    /// The magnitude; the least integer stays as it is, unsigned integers and bools too. Of a
    /// complex number, a real one. Errors: none. Source: the elementwise module's "abs".
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
    #[track_caller]
    pub fn is_nan(&self) -> Tensor {
        self.call("is_nan", |ty| self.any_part(ty, |x| x.ne(x)))
    }

    /// Whether it is infinite, as `pred`; false for integers. Source: the elementwise module's
    /// "is_inf".
    #[track_caller]
    pub fn is_inf(&self) -> Tensor {
        self.call("is_inf", |ty| self.any_part(ty, |x| x.is_finite().not().and(x.eq(x))))
    }

    /// Whether it is neither infinite nor NaN, as `pred`; true for integers. Source: NumPy's
    /// `isfinite`.
    #[track_caller]
    pub fn is_finite(&self) -> Tensor {
        self.call("is_finite", |ty| Ok(!self.any_part(ty, |x| x.is_finite().not())?))
    }

    /// Whether it is false; `pred` only. Errors: `elementwise.C1`. Source: MAX's `logical_not`.
    #[track_caller]
    pub fn logical_not(&self) -> Tensor {
        self.call("logical_not", |ty| {
            ensure_type(ty.dtype, ty.dtype.is_pred(), "bool (pred)")?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].not()))
        })
    }

    /// Every bit flipped, of integers or bools; also as `!x`. Errors: `elementwise.C1`. Source:
    /// NumPy's `bitwise_not`.
    #[track_caller]
    pub fn bitwise_not(&self) -> Tensor {
        self.call("bitwise_not", |ty| {
            let accepted = ty.dtype.is_integer() || ty.dtype.is_pred();
            ensure_type(ty.dtype, accepted, "integers and bool (pred)")?;
            self.graph().emit(&[self], ty.clone(), |_, x| Ok(x[0].not()))
        })
    }

    /// The real part; real numbers as they are. Source: NumPy's `real`.
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
