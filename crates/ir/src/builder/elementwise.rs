//! Element-wise operations, comparison, selection and conversion.

use super::{Operand, XlaOp, check};
use crate::ops::{
    BitcastConvert, Clamp, Compare, Convert, Direction, Order, ReducePrecision, Select,
    StochasticConvert,
};
use crate::{ArrayShape, BinaryOp, ElementType, Error, Result, Shape, UnaryOp};

macro_rules! unary {
    ($($name:ident $op:ident, $source:literal, $doc:literal;)*) => {
        impl XlaOp {$(
            #[doc = concat!($doc, "\n\nShapes: the operand's. Errors: the element type is none that ",
                "[`UnaryOp::", stringify!($op), "`] accepts. Source: ", $source, ".")]
            #[track_caller]
            pub fn $name(&self) -> XlaOp {
                self.unary(UnaryOp::$op)
            }
        )*}
    };
}
unary! {
    abs Abs, "E1–E4 \"Abs\"", "`|x|`; the magnitude of complex numbers.";
    acos Acos, "XLA's `Acos`", "Inverse cosine.";
    acosh Acosh, "XLA's `Acosh`", "Inverse hyperbolic cosine.";
    asin Asin, "XLA's `Asin`", "Inverse sine.";
    asinh Asinh, "XLA's `Asinh`", "Inverse hyperbolic sine.";
    atan Atan, "XLA's `Atan`", "Inverse tangent.";
    atanh Atanh, "XLA's `Atanh`", "Inverse hyperbolic tangent.";
    cbrt Cbrt, "E4 \"Cbrt\"", "Cube root.";
    ceil Ceil, "E1–E4 \"Ceil\"", "The least integer not below.";
    clz Clz, "E4 \"Clz\"", "The number of leading zero bits.";
    cos Cos, "E3–E4 \"Cos\"", "Cosine.";
    cosh Cosh, "XLA's `Cosh`", "Hyperbolic cosine.";
    erf Erf, "E4 \"Erf\"", "The error function.";
    exp Exp, "E1–E4 \"Exp\"", "`e` to the power of `x`.";
    expm1 Expm1, "E4 \"Expm1\"", "`e` to the power of `x`, less 1.";
    floor Floor, "E1–E4 \"Floor\"", "The greatest integer not above.";
    imag Imag, "E4 \"Imag\"", "The imaginary part; 0 of floats.";
    is_finite IsFinite, "E2–E4 \"IsFinite\"", "Whether the number is neither infinite nor NaN; `pred`.";
    log Log, "E1–E4 \"Log\"", "Natural logarithm.";
    log1p Log1p, "E4 \"Log1p\"", "Natural logarithm of `1 + x`.";
    logistic Logistic, "E4 \"Logistic\"", "`1 / (1 + exp(-x))`.";
    neg Negate, "E1–E4 \"Neg\"", "`-x`, also as `-x`.";
    not Not, "E4 \"Not\"", "Every bit flipped; logical for `pred`; also as `!x`.";
    population_count Popcnt, "E4 \"PopulationCount\"", "The number of bits set.";
    real Real, "E4 \"Real\"", "The real part; floats as they are.";
    round RoundNearestAfz, "E4 \"Round\"", "The nearest integer, halves away from zero.";
    round_nearest_even RoundNearestEven, "E4 \"RoundNearestEven\"", "The nearest integer, halves to even.";
    rsqrt Rsqrt, "E4 \"Rsqrt\"", "`1 / sqrt(x)`.";
    sign Sign, "E1–E4 \"Sign\"", "-1, 0 or 1; NaN and the sign of zero stay (E4).";
    sin Sin, "E4 \"Sin\"", "Sine.";
    sinh Sinh, "XLA's `Sinh`", "Hyperbolic sine.";
    sqrt Sqrt, "E4 \"Sqrt\"", "Square root.";
    tan Tan, "E4 \"Tan\"", "Tangent.";
    tanh Tanh, "E1–E4 \"Tanh\"", "Hyperbolic tangent.";
}

macro_rules! binary {
    ($($name:ident $broadcast:ident $op:ident, $source:literal, $doc:literal;)*) => {
        impl XlaOp {$(
            #[doc = concat!($doc, "\n\nShapes: see [`XlaOp::binary`]. Errors: as there. Source: ",
                $source, ".")]
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> XlaOp {
                self.binary(BinaryOp::$op, rhs)
            }

            #[doc = concat!("[`XlaOp::", stringify!($name), "`] of operands of different rank; see ",
                "[`XlaOp::binary_broadcast`].")]
            #[track_caller]
            pub fn $broadcast(&self, rhs: impl Operand, broadcast_dimensions: &[usize]) -> XlaOp {
                self.binary_broadcast(BinaryOp::$op, rhs, broadcast_dimensions)
            }
        )*}
    };
}
binary! {
    add add_broadcast Add, "E1–E4 \"Add\"", "Sum, also as `x + y`.";
    and and_broadcast And, "E4 \"And\"", "Bitwise and, logical for `pred`; also as `x & y`.";
    atan2 atan2_broadcast Atan2, "E4 \"Atan2\"", "The angle of the point (`rhs`, `self`).";
    complex complex_broadcast Complex, "E4 \"Complex\"", "The complex number `self + i rhs`.";
    div div_broadcast Divide, "E1–E4 \"Div\"", "Quotient, also as `x / y`.";
    max max_broadcast Maximum, "E1–E4 \"Max\"", "The greater; NaN if either is.";
    min min_broadcast Minimum, "E1–E4 \"Min\"", "The lesser; NaN if either is.";
    mul mul_broadcast Multiply, "E1–E4 \"Mul\"", "Product, also as `x * y`.";
    mulhi mulhi_broadcast Mulhi, "XLA's `Mulhi`", "The high half of the product of integers.";
    or or_broadcast Or, "E4 \"Or\"", "Bitwise or, logical for `pred`; also as `x | y`.";
    pow pow_broadcast Power, "E4 \"Pow\"", "`self` to the power of `rhs`.";
    rem rem_broadcast Remainder, "E1–E4 \"Rem\"", "Remainder with the sign of the dividend, also as `x % y`.";
    shift_left shift_left_broadcast ShiftLeft, "E4 \"ShiftLeft\"", "Bits moved up, also as `x << y`.";
    shift_right_arithmetic shift_right_arithmetic_broadcast ShiftRightArithmetic, "E4 \"ShiftRightArithmetic\"", "Bits moved down, the sign copied.";
    shift_right_logical shift_right_logical_broadcast ShiftRightLogical, "E4 \"ShiftRightLogical\"", "Bits moved down, zeros in.";
    sub sub_broadcast Subtract, "E1–E4 \"Sub\"", "Difference, also as `x - y`.";
    xor xor_broadcast Xor, "E4 \"Xor\"", "Bitwise exclusive or, logical for `pred`; also as `x ^ y`.";
}

macro_rules! compare {
    ($($name:ident $broadcast:ident $total:ident $direction:ident, $sources:literal, $doc:literal;)*) => {
        impl XlaOp {$(
            #[doc = concat!("Whether ", $doc, "; `pred`. Floats compare as IEEE says.\n\nShapes: ",
                "as for [`XlaOp::binary`]. Source: ", $sources, ".")]
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> XlaOp {
                self.compare(Direction::$direction, Order::Default, rhs, &[])
            }

            #[doc = concat!("[`XlaOp::", stringify!($name), "`] of operands of different rank; see ",
                "[`XlaOp::binary_broadcast`].")]
            #[track_caller]
            pub fn $broadcast(&self, rhs: impl Operand, broadcast_dimensions: &[usize]) -> XlaOp {
                self.compare(Direction::$direction, Order::Default, rhs, broadcast_dimensions)
            }

            #[doc = concat!("Whether ", $doc, " in the total order of floats; `pred`. See ",
                "[`XlaOp::compare_total_order`].")]
            #[track_caller]
            pub fn $total(&self, rhs: impl Operand) -> XlaOp {
                self.compare_total_order(Direction::$direction, rhs)
            }
        )*}
    };
}
compare! {
    eq eq_broadcast eq_total_order Eq, "E1–E4 \"Eq\"", "both are equal";
    ne ne_broadcast ne_total_order Ne, "E1–E4 \"Ne\"", "both differ";
    ge ge_broadcast ge_total_order Ge, "E1–E4 \"Ge\"", "`self` is not less than `rhs`";
    gt gt_broadcast gt_total_order Gt, "E1–E4 \"Gt\"", "`self` is greater than `rhs`";
    le le_broadcast le_total_order Le, "E1–E4 \"Le\"", "`self` is not greater than `rhs`";
    lt lt_broadcast lt_total_order Lt, "E1–E4 \"Lt\" (printed \"Le\" in E1, E2)", "`self` is less than `rhs`";
}

impl XlaOp {
    /// Any element-wise operation of one operand.
    #[track_caller]
    pub fn unary(&self, op: UnaryOp) -> XlaOp {
        self.builder.apply(op, &[self])
    }

    /// Any element-wise operation of two operands.
    ///
    /// Shapes: the same on both sides, where a scalar, and dimensions of size 1, repeat to match the
    /// other side. Errors: `builder.C3`, `builder.C6`, the operation's own rules. Source: E1–E4
    /// "Element-wise binary arithmetic operations".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::XlaBuilder};
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::array(F32, [2, 1])?, "x");
    /// let y = b.parameter(1, Shape::array(F32, [2, 3])?, "y");
    /// let z = 2.0 * (&x + &y) - 1;
    /// assert_eq!(z.shape()?.to_string(), "f32[2,3]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn binary(&self, op: BinaryOp, rhs: impl Operand) -> XlaOp {
        self.binary_broadcast(op, rhs, &[])
    }

    /// Any element-wise operation of two operands of different rank: dimension `i` of the one of
    /// lower rank is dimension `broadcast_dimensions[i]` of the other.
    ///
    /// Shapes: `x: T[2,3], y: T[3]`, dimensions `[1]`, result `T[2,3]`: `y` repeats in each row. An
    /// empty list is for scalars and operands of the same rank; dimensions of size 1 repeat.
    /// Errors: `builder.C3`, `builder.C4`, `builder.C6`, the operation's own rules. Source: E1–E4
    /// "Element-wise binary arithmetic operations", the form with `broadcast_dimensions`.
    #[track_caller]
    pub fn binary_broadcast(
        &self,
        op: BinaryOp,
        rhs: impl Operand,
        broadcast_dimensions: &[usize],
    ) -> XlaOp {
        let rhs = rhs.into_op(self);
        let (lhs, rhs) = check!(self.builder, self.broadcast_with(&rhs, broadcast_dimensions));
        self.builder.apply(op, &[&lhs, &rhs])
    }

    /// Any comparison. Shapes and errors: as for [`XlaOp::binary_broadcast`]; the result is `pred`.
    /// Source: E1–E4 "Element-wise comparison operations".
    #[track_caller]
    pub fn compare(
        &self,
        direction: Direction,
        order: Order,
        rhs: impl Operand,
        broadcast_dimensions: &[usize],
    ) -> XlaOp {
        let rhs = rhs.into_op(self);
        let (lhs, rhs) = check!(self.builder, self.broadcast_with(&rhs, broadcast_dimensions));
        self.builder.apply(Compare { direction, order }, &[&lhs, &rhs])
    }

    /// A comparison in the total order of floats: -NaN < -Inf < finite < -0 < +0 < finite < +Inf <
    /// +NaN. Other types have only one order. Source: E4 "EqTotalOrder" and kin.
    #[track_caller]
    pub fn compare_total_order(&self, direction: Direction, rhs: impl Operand) -> XlaOp {
        let element = check!(self.builder, self.array_shape()).element();
        let order = if element.is_float() { Order::Total } else { Order::Default };
        self.compare(direction, order, rhs, &[])
    }

    /// Bits moved down: copies of the sign in for signed integers, else zeros; also as `x >> y`.
    /// Source: XLA's `operator>>`.
    #[track_caller]
    pub fn shift_right(&self, amount: impl Operand) -> XlaOp {
        let element = check!(self.builder, self.array_shape()).element();
        match element.is_signed_integer() {
            true => self.shift_right_arithmetic(amount),
            false => self.shift_right_logical(amount),
        }
    }

    /// The complex conjugate. Source: XLA's `Conj`.
    #[track_caller]
    pub fn conj(&self) -> XlaOp {
        self.real().complex(self.imag().neg())
    }

    /// For each element, `on_true` where this is true, else `on_false`.
    ///
    /// Shapes: `self: pred[D]`, `on_true, on_false: T[D]`, result `T[D]`; any may be a scalar
    /// instead, and repeats. Two tuples of one shape are chosen between as a whole by a scalar: a
    /// select for each leaf. Errors: the rules of `select`, `builder.C3`, `builder.C5`. Source:
    /// E1–E4 "Select".
    #[track_caller]
    pub fn select(&self, on_true: impl AsRef<XlaOp>, on_false: impl Operand) -> XlaOp {
        let on_true = on_true.as_ref();
        match check!(self.builder, self.builder.shape(on_true)) {
            Shape::Tuple(elements) => {
                let on_false = on_false.into_op(on_true);
                self.select_tuple(on_true, &on_false, &elements)
            }
            _ => {
                let on_false = on_false.into_op(on_true);
                let operands = [self, on_true, &on_false];
                let [pred, on_true, on_false] = check!(self.builder, same_dims(operands));
                self.builder.apply(Select, &[&pred, &on_true, &on_false])
            }
        }
    }

    /// HLO selects arrays only, so a selection between tuples goes leaf by leaf.
    #[track_caller]
    fn select_tuple(&self, on_true: &XlaOp, on_false: &XlaOp, elements: &[Shape]) -> XlaOp {
        let builder = &self.builder;
        let pred = check!(builder, self.array_shape());
        let other = check!(builder, builder.shape(on_false));
        let whole = Shape::Tuple(elements.to_vec());
        if !pred.is_scalar() || !whole.same(&other) {
            let detail = format!(
                "selection by {pred} between {whole} and {other}; a scalar and equal shapes are needed"
            );
            return builder.report_error(Error::rule("builder.C5", detail));
        }
        let mut selected = Vec::with_capacity(elements.len());
        for index in 0..elements.len() {
            let (a, b) = (on_true.get_tuple_element(index), on_false.get_tuple_element(index));
            selected.push(self.select(&a, &b));
        }
        builder.tuple(&selected)
    }

    /// `min(max(self, low), high)`.
    ///
    /// Shapes: all three `T[D]`; any may be a scalar instead, and repeats. Errors: the rules of
    /// `clamp`, `builder.C3`, `builder.C6`. Source: E3–E4 "Clamp" (`Clamp(min, operand, max)`).
    #[track_caller]
    pub fn clamp(&self, low: impl Operand, high: impl Operand) -> XlaOp {
        let (low, high) = (low.into_op(self), high.into_op(self));
        let [low, operand, high] = check!(self.builder, same_dims([&low, self, &high]));
        self.builder.apply(Clamp, &[&low, &operand, &high])
    }

    /// Each element as a value of another type.
    ///
    /// Shapes: `T[D]` to `element[D]`. Rounding, saturation and the like: `semantics.md` §3.
    /// Errors: the rules of `convert`. Source: E1–E4 "ConvertElementType".
    #[track_caller]
    pub fn convert_element_type(&self, element: ElementType) -> XlaOp {
        self.builder.apply(Convert { element }, &[self])
    }

    /// The bits of the elements read as another type.
    ///
    /// Shapes: of equal widths `T[D]` to `element[D]`; a narrower type gets a new last dimension of
    /// the ratio of widths, a wider one takes the last dimension away. Errors: the rules of
    /// `bitcast-convert`. Source: E3–E4 "BitcastConvertType".
    #[track_caller]
    pub fn bitcast_convert_type(&self, element: ElementType) -> XlaOp {
        self.builder.apply(BitcastConvert { element }, &[self])
    }

    /// Each element as a value of a narrower type, rounded up with the probability that `random`
    /// bits give.
    ///
    /// Shapes: `T[D]` and unsigned integers `[D]` of T's width, to `element[D]`. Errors: the rules
    /// of `stochastic-convert`. Source: XLA's `StochasticConvertType`.
    #[track_caller]
    pub fn stochastic_convert_type(
        &self,
        random: impl AsRef<XlaOp>,
        element: ElementType,
    ) -> XlaOp {
        self.builder.apply(StochasticConvert { element }, &[self, random.as_ref()])
    }

    /// Each element rounded to a format with exponents of `exponent_bits` bits and mantissas of
    /// `mantissa_bits` bits, its type kept.
    ///
    /// Shapes: the operand's. Errors: the rules of `reduce-precision`. Source: E3–E4
    /// "ReducePrecision", in the order of arguments of their tables and of XLA.
    #[track_caller]
    pub fn reduce_precision(&self, exponent_bits: u32, mantissa_bits: u32) -> XlaOp {
        self.builder.apply(ReducePrecision { exponent_bits, mantissa_bits }, &[self])
    }
}

/// Scalars among the operands in the dimensions of the others. Errors: `builder.C3` if those
/// differ.
#[track_caller]
fn same_dims(operands: [&XlaOp; 3]) -> Result<[XlaOp; 3]> {
    let mut shapes = Vec::new();
    for operand in operands {
        shapes.push(operand.array_shape()?);
    }
    let arrays: Vec<&ArrayShape> = shapes.iter().filter(|shape| !shape.is_scalar()).collect();
    let Some(&first) = arrays.first() else { return Ok(operands.map(XlaOp::clone)) };
    if let Some(other) = arrays.iter().find(|other| other.dims() != first.dims()) {
        let detail = format!("{first} and {other} differ in dimensions");
        return Err(Error::rule("builder.C3", detail));
    }
    let [a, b, c] = operands;
    Ok([a.scalar_to(first), b.scalar_to(first), c.scalar_to(first)])
}
