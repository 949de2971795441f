//! Element-wise operations of two operands: arithmetic, comparisons, logic, and what all of them do
//! first, promotion and broadcasting.

use helio::builder::XlaOp;
use helio::ir::BinaryOp;
use helio::ir::ops::{Accepts, Direction, Order};
use helio::{ElementType, Error, Result};

use crate::graph::TensorType;
use crate::lower::Emit;
use crate::operand::resolve;
use crate::{Operand, Tensor, promote};

macro_rules! binary {
    ($($(#[doc = $doc:literal])+ $name:ident: $($part:ident)+;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// The operands are promoted and broadcast. Errors: `promotion.C1`, `promotion.C2`,
            /// `broadcast.C1`, `elementwise.C1`.
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> Tensor {
                self.call(stringify!($name), |_| {
                    let (lhs, rhs, ty) = self.meet(rhs)?;
                    binary!(@emit $($part)+; lhs, rhs, ty)
                })
            }
        )*}
    };
    (@emit $op:ident; $lhs:ident, $rhs:ident, $ty:ident) => {
        $lhs.combine(BinaryOp::$op, &$rhs, $ty)
    };
    (@emit compare $direction:ident; $lhs:ident, $rhs:ident, $ty:ident) => {
        $lhs.compare(Direction::$direction, &$rhs, $ty)
    };
    (@emit logical $op:ident; $lhs:ident, $rhs:ident, $ty:ident) => {{
        ensure_type($ty.dtype, $ty.dtype.is_pred(), "bool (pred)")?;
        $lhs.combine(BinaryOp::$op, &$rhs, $ty)
    }};
    (@emit bitwise $op:ident; $lhs:ident, $rhs:ident, $ty:ident) => {{
        let accepted = $ty.dtype.is_integer() || $ty.dtype.is_pred();
        ensure_type($ty.dtype, accepted, "integers and bool (pred)")?;
        $lhs.combine(BinaryOp::$op, &$rhs, $ty)
    }};
}
binary! {
    /// The sum; integers wrap. Source: the elementwise module's "add".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.add(1).eval()?, [2f32, 5.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    add: Add;
    /// The difference; integers wrap. Source: the elementwise module's "sub".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.sub(1).eval()?, [0f32, 3.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    sub: Subtract;
    /// The product; integers wrap. Source: the elementwise module's "mul".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.mul(2).eval()?, [2f32, 8.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    mul: Multiply;
    /// The greater; if one is NaN, NaN. Source: the elementwise module's "max"; MAX ignores a NaN,
    /// NumPy's `maximum` does not. For the greatest element of a tensor see [`Tensor::max`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.maximum(2).eval()?, [2f32, 4.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    maximum: Maximum;
    /// The lesser; if one is NaN, NaN. Source: the elementwise module's "min"; NumPy's `minimum`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.minimum(2).eval()?, [1f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    minimum: Minimum;
    /// The power. Floats as C's `pow`: NaN for negative bases unless the exponent is an integer.
    /// Integers wrap; for negative exponents only bases 1 and -1 give anything but 0. Source: the
    /// elementwise module's "pow"; MAX errs for infinite and huge exponents.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(format!("{:.3}", x.pow(2).eval()?), "[ 1. 16.]");
    /// # Ok::<(), Error>(())
    /// ```
    pow: Power;
    /// The angle of the point (`rhs`, `self`), in radians. Source: NumPy's `arctan2`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([0f32, 1.0]);
    /// assert_eq!(format!("{:.3}", x.atan2(1.0).eval()?), "[0.    0.785]");
    /// # Ok::<(), Error>(())
    /// ```
    atan2: Atan2;
    /// Whether they are equal, as `pred`; NaN equals nothing. Source: the elementwise module's
    /// "equal".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.equal(4).eval()?, [false, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    equal: compare Eq;
    /// Whether they differ, as `pred`; NaN differs from everything. Source: the elementwise module's
    /// "not_equal"; MAX denies it for NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.not_equal(4).eval()?, [true, false].into());
    /// # Ok::<(), Error>(())
    /// ```
    not_equal: compare Ne;
    /// Whether `self` is greater, as `pred`. Source: the elementwise module's "greater".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.greater(1).eval()?, [false, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    greater: compare Gt;
    /// Whether `self` is greater or equal, as `pred`. Source: the elementwise module's
    /// "greater_equal".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.greater_equal(1).eval()?, [true, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    greater_equal: compare Ge;
    /// Whether `self` is less, as `pred`. Source: MAX's `<`, which is wrong for NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.less(4).eval()?, [true, false].into());
    /// # Ok::<(), Error>(())
    /// ```
    less: compare Lt;
    /// Whether `self` is less or equal, as `pred`. Source: MAX's `<=`, which is wrong for NaN.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.less_equal(4).eval()?, [true, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    less_equal: compare Le;
    /// Whether both are true; `pred` only. Source: MAX's `logical_and`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.logical_and(true).eval()?, [true, false].into());
    /// # Ok::<(), Error>(())
    /// ```
    logical_and: logical And;
    /// Whether one is true; `pred` only. Source: MAX's `logical_or`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.logical_or(true).eval()?, [true, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    logical_or: logical Or;
    /// Whether just one is true; `pred` only. Source: MAX's `logical_xor`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.logical_xor(true).eval()?, [false, true].into());
    /// # Ok::<(), Error>(())
    /// ```
    logical_xor: logical Xor;
    /// The bits that both have, of integers or bools; also as `&`. Source: NumPy's `bitwise_and`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([6, 3]);
    /// assert_eq!(x.bitwise_and(5).eval()?, [4, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_and: bitwise And;
    /// The bits that one has, of integers or bools; also as `|`. Source: NumPy's `bitwise_or`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([6, 3]);
    /// assert_eq!(x.bitwise_or(5).eval()?, [7, 7].into());
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_or: bitwise Or;
    /// The bits that just one has, of integers or bools; also as `^`. Source: NumPy's `bitwise_xor`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([6, 3]);
    /// assert_eq!(x.bitwise_xor(5).eval()?, [3, 6].into());
    /// # Ok::<(), Error>(())
    /// ```
    bitwise_xor: bitwise Xor;
    /// The bits moved up by `rhs`, zeros in; 0 if `rhs` is not less than the width. Source: NumPy's
    /// `left_shift`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([6, 3]);
    /// assert_eq!(x.shift_left(2).eval()?, [24, 12].into());
    /// # Ok::<(), Error>(())
    /// ```
    shift_left: ShiftLeft;
}

impl Tensor {
    /// The quotient, also as `/`. Two integer operands are converted to `f64` first, so that
    /// `1 / 2` is 0.5. Errors: as for [`Tensor::add`]. Source: the elementwise module's "div", and
    /// MAX for integers; see [`Tensor::floor_div`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1f32, 4.0]);
    /// assert_eq!(x.div(2).eval()?, [0.5f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn div(&self, rhs: impl Operand) -> Tensor {
        self.call("div", |ty| {
            let rhs = resolve(rhs, self.graph(), ty.dtype)?;
            let integers = ty.dtype.is_integer() && rhs.ty()?.dtype.is_integer();
            let (lhs, rhs) = match integers {
                true => (self.cast(ElementType::F64), rhs.cast(ElementType::F64)),
                false => (self.clone(), rhs),
            };
            let (lhs, rhs, ty) = lhs.meet(rhs)?;
            lhs.combine(BinaryOp::Divide, &rhs, ty)
        })
    }

    /// The floor of the quotient. Integers: 0 for divisor 0; the least integer divided by -1 wraps.
    /// Floats: of the exact quotient, so that `-1 // inf` is -1. Errors: as for [`Tensor::add`].
    /// Source: MAX's `floor_div`, which crashes on those integers; NumPy's `floor_divide`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([7, -3]);
    /// assert_eq!(x.floor_div(2).eval()?, [3, -2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn floor_div(&self, rhs: impl Operand) -> Tensor {
        self.call("floor_div", |_| {
            let (lhs, rhs, ty) = self.meet(rhs)?;
            ensure_real(ty.dtype)?;
            lhs.emit_binary(&rhs, ty.clone(), move |emit, x, y| {
                let truncated = x.div(y);
                if !ty.dtype.is_float() {
                    let nonzero = y.ne(emit.builder.zero(ty.dtype));
                    let down = x.rem(y).ne(emit.builder.zero(ty.dtype));
                    let floor = match ty.dtype.is_signed_integer() {
                        true => down
                            .and(signs_differ(emit, x, y, ty.dtype))
                            .select(truncated.sub(emit.builder.one(ty.dtype)), &truncated),
                        false => truncated,
                    };
                    return nonzero.select(&floor, emit.builder.zero(ty.dtype));
                }
                // From the remainder, which is exact; the quotient alone may round up to an integer.
                let zero = emit.builder.zero(ty.dtype);
                let remainder = x.rem(y);
                let down = remainder.ne(&zero).and(signs_differ(emit, &remainder, y, ty.dtype));
                let toward_zero = x.sub(&remainder).div(y).round_nearest_even();
                let floor = down.select(toward_zero.sub(emit.builder.one(ty.dtype)), &toward_zero);
                let special = y.eq(&zero).or(x.is_finite().not());
                special.select(&truncated, &floor)
            })
        })
    }

    /// The remainder of [`Tensor::floor_div`], which has the divisor's sign, also as `%`. For
    /// divisor 0: 0 for integers, NaN for floats. Errors: as for [`Tensor::add`]. Source: the
    /// elementwise module's "mod"; NumPy's `mod`, from which MAX differs for infinite divisors and
    /// quotients beyond a float's digits.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([7, -3]);
    /// assert_eq!(x.modulo(2).eval()?, [1, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn modulo(&self, rhs: impl Operand) -> Tensor {
        self.call("modulo", |_| {
            let (lhs, rhs, ty) = self.meet(rhs)?;
            ensure_real(ty.dtype)?;
            lhs.emit_binary(&rhs, ty.clone(), move |emit, x, y| floor_mod(emit, x, y, ty.dtype))
        })
    }

    /// The bits moved down by `rhs`: copies of the sign in for signed integers, else zeros. Errors:
    /// as for [`Tensor::add`]. Source: NumPy's `right_shift`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([6, -3]);
    /// assert_eq!(x.shift_right(1).eval()?, [3, -2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn shift_right(&self, rhs: impl Operand) -> Tensor {
        self.call("shift_right", |_| {
            let (lhs, rhs, ty) = self.meet(rhs)?;
            let op = match ty.dtype.is_signed_integer() {
                true => BinaryOp::ShiftRightArithmetic,
                false => BinaryOp::ShiftRightLogical,
            };
            lhs.combine(op, &rhs, ty)
        })
    }

    /// Converts the elements. Floats to integers truncate and saturate, NaN becomes 0; integers to
    /// narrower ones wrap; all else rounds to nearest even; not zero becomes true. Source: HLO's
    /// `convert`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1.9f32, -2.9]);
    /// assert_eq!(x.cast(S32).eval()?, [1, -2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cast(&self, dtype: ElementType) -> Tensor {
        self.call("cast", |ty| {
            if ty.dtype == dtype {
                return Ok(self.clone());
            }
            let ty = TensorType::new(dtype, &ty.shape);
            let graph = self.graph();
            graph.emit(&[self], ty, move |_, x| Ok(x[0].convert_element_type(dtype)))
        })
    }

    /// `self` where the elements of `condition`, a `pred`, are true, else `otherwise`. All three are
    /// broadcast, the two values promoted. Errors: as for [`Tensor::add`]. Source: NumPy's `where`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("clip");
    /// let x = g.input("x", ElementType::F32, ("n",));
    /// let without_nan = x.where_(x.is_finite(), 0.0);
    /// # assert!(g.compile(without_nan).is_ok());
    /// ```
    #[track_caller]
    pub fn where_(&self, condition: impl Operand, otherwise: impl Operand) -> Tensor {
        self.call("where", |_| {
            let condition = resolve(condition, self.graph(), ElementType::Pred)?;
            let found = condition.ty()?;
            ensure_type(found.dtype, found.dtype.is_pred(), "a condition of bool (pred)")?;
            let (on_true, on_false, ty) = self.meet(otherwise)?;
            let shape = ty.shape.broadcast(&found.shape)?;
            let ty = TensorType::new(ty.dtype, shape);
            let operands = [condition, on_true, on_false].map(|x| x.broadcast_to(&ty.shape));
            self.graph().emit(&operands.each_ref(), ty, |_, x| Ok(x[0].select(&x[1], &x[2])))
        })
    }

    /// Both operands in their common type and shape. Errors: `promotion.C1`, `promotion.C2`,
    /// `broadcast.C1`.
    pub(crate) fn meet(&self, rhs: impl Operand) -> Result<(Tensor, Tensor, TensorType)> {
        let (lhs, rhs, dtype) = self.meet_types(rhs)?;
        let shape = lhs.shape()?.broadcast(&rhs.shape()?)?;
        let [lhs, rhs] = [lhs, rhs].map(|x| x.broadcast_to(&shape));
        Ok((lhs, rhs, TensorType::new(dtype, shape)))
    }

    /// Both operands in their common type. Errors: `promotion.C1`, `promotion.C2`.
    pub(crate) fn meet_types(&self, rhs: impl Operand) -> Result<(Tensor, Tensor, ElementType)> {
        let lhs = self.dtype()?;
        let rhs = resolve(rhs, self.graph(), lhs)?;
        let dtype = promote(lhs, rhs.dtype()?)?;
        Ok((self.cast(dtype), rhs.cast(dtype), dtype))
    }

    fn combine(&self, op: BinaryOp, rhs: &Tensor, ty: TensorType) -> Result<Tensor> {
        let bits = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
        let order = matches!(op, BinaryOp::Maximum | BinaryOp::Minimum);
        let accepted = match op.accepts() {
            Accepts::Float | Accepts::FloatOrComplex => {
                ty.dtype.is_float() || ty.dtype.is_complex()
            }
            Accepts::Integer => ty.dtype.is_integer(),
            _ => (bits || order || !ty.dtype.is_pred()) && !(order && ty.dtype.is_complex()),
        };
        let wanted = match op.accepts() {
            Accepts::Float | Accepts::FloatOrComplex => "floats",
            Accepts::Integer => "integers",
            _ if order => "numbers that have an order",
            _ => "numbers",
        };
        ensure_type(ty.dtype, accepted, wanted)?;
        self.emit_binary(rhs, ty, move |_, x, y| x.binary(op, y))
    }

    fn compare(&self, direction: Direction, rhs: &Tensor, ty: TensorType) -> Result<Tensor> {
        let equality = matches!(direction, Direction::Eq | Direction::Ne);
        ensure_type(ty.dtype, equality || !ty.dtype.is_complex(), "numbers that have an order")?;
        let ty = TensorType::new(ElementType::Pred, ty.shape);
        self.emit_binary(rhs, ty, move |_, x, y| x.compare(direction, Order::Default, y, &[]))
    }

    fn emit_binary(
        &self,
        rhs: &Tensor,
        ty: TensorType,
        lower: impl Fn(&Emit<'_>, &XlaOp, &XlaOp) -> XlaOp + Send + Sync + 'static,
    ) -> Result<Tensor> {
        self.graph().emit(&[self, rhs], ty, move |emit, x| Ok(lower(emit, &x[0], &x[1])))
    }
}

/// Tensors in their common type, whatever their order. Errors: `promotion.C1`.
pub(crate) fn meet_all(tensors: &[&Tensor]) -> Result<(Vec<Tensor>, ElementType)> {
    let types = tensors.iter().map(|x| x.dtype()).collect::<Result<Vec<_>>>()?;
    let holds_all = |&of: &ElementType| types.iter().all(|&t| promote(t, of).ok() == Some(of));
    let common = match types.iter().copied().find(|of| holds_all(of)) {
        Some(common) => common,
        // The first pair without a common type is the error.
        None => types[1..].iter().try_fold(types[0], |common, &t| promote(common, t))?,
    };
    Ok((tensors.iter().map(|x| x.cast(common)).collect(), common))
}

/// The remainder with the divisor's sign.
fn floor_mod(emit: &Emit<'_>, x: &XlaOp, y: &XlaOp, dtype: ElementType) -> XlaOp {
    let zero = emit.builder.zero(dtype);
    let remainder = x.rem(y);
    let is_zero = remainder.eq(&zero);
    let shifted = match dtype.is_unsigned_integer() {
        true => remainder.clone(),
        false => {
            let adjust = is_zero.not().and(signs_differ(emit, &remainder, y, dtype));
            adjust.select(remainder.add(y), &remainder)
        }
    };
    if dtype.is_float() {
        // A remainder of 0 has the divisor's sign as well.
        let signed_zero = y.lt(&zero).select(zero.neg(), &zero);
        return is_zero.select(&signed_zero, &shifted);
    }
    y.eq(&zero).select(&zero, &shifted)
}

fn signs_differ(emit: &Emit<'_>, x: &XlaOp, y: &XlaOp, dtype: ElementType) -> XlaOp {
    let zero = emit.builder.zero(dtype);
    x.lt(&zero).ne(y.lt(&zero))
}

/// Errors: `elementwise.C1` unless the type is accepted; `wanted` says which are.
pub(crate) fn ensure_type(dtype: ElementType, accepted: bool, wanted: &str) -> Result<()> {
    if accepted {
        return Ok(());
    }
    let help = if dtype.is_pred() && wanted.contains("number") {
        "\n  help: convert it first, as in .cast(ElementType::S32), or use logical_and, logical_or, \
         logical_xor"
    } else if dtype.is_integer() && wanted.contains("floats") {
        "\n  help: convert it first, as in .cast(ElementType::F32)"
    } else {
        ""
    };
    let detail = format!("needs {wanted}, found {dtype}{help}");
    Err(Error::rule("elementwise.C1", detail))
}

/// Whether sums of many such numbers would stop growing: they are summed in `f32`.
pub(crate) fn is_narrow(dtype: ElementType) -> bool {
    dtype.is_float() && dtype.bits() < 32
}

/// The type in which factors of sums of products are passed on: floats of 8 bits and less are exact
/// in `bf16`, for which processors have instructions.
pub(crate) fn factor_type(dtype: ElementType) -> ElementType {
    let tiny = dtype.is_float() && dtype.bits() < 16;
    if tiny { ElementType::BF16 } else { dtype }
}

/// Errors: `elementwise.C1` unless it is an integer or a float.
pub(crate) fn ensure_real(dtype: ElementType) -> Result<()> {
    let real = dtype.is_integer() || dtype.is_float();
    ensure_type(dtype, real, "integers and floats, numbers that have an order")
}
