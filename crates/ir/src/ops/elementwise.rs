//! The table of element-wise operations without attributes.

use std::fmt;

use super::check::{ensure_same_element, merge_arrays};
use super::{Arity, Effect, Family, OpInfo, Phase, Reads, Yield};
use crate::{ArrayShape, ElementType, Error, InferCx, Result, Shape, ensure};

/// Which element types an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Everything.
    Any,
    /// Integers, floats, complex numbers.
    Numeric,
    /// Integers, floats, complex numbers and `pred`.
    NumericOrPred,
    /// Signed integers, floats, complex numbers.
    SignedFloatOrComplex,
    /// Integers and floats.
    Real,
    /// Integers, floats and `pred`.
    RealOrPred,
    /// Floats.
    Float,
    /// Floats and complex numbers.
    FloatOrComplex,
    /// `f32` and `f64`, the parts of complex numbers.
    ComplexPart,
    /// Integers.
    Integer,
    /// Integers and `pred`.
    IntegerOrPred,
}

/// The type of an operation's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRule {
    /// The operands' type.
    Same,
    /// For complex operands the type of their parts, else the operands' type.
    RealPart,
    /// `pred`.
    Pred,
    /// The complex type whose parts have the operands' type.
    Complex,
}

/// How much work an element takes, for the cost models of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// A machine instruction or few.
    Cheap,
    /// A division or a root.
    Division,
    /// A polynomial or worse.
    Transcendental,
}

macro_rules! elementwise {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+
        $variant:ident: $hlo:literal, $stablehlo:literal, $accepts:ident, $rule:ident, $cost:ident;)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// HLO's name for it.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $hlo,)* }
            }

            /// StableHLO's or CHLO's name for it, as a list of one.
            pub const fn stablehlo_names(self) -> &'static [&'static str] {
                match self { $($name::$variant => &[$stablehlo],)* }
            }

            /// What it computes, in a sentence or two.
            pub const fn doc(self) -> &'static str {
                match self { $($name::$variant => concat!($($doc),+),)* }
            }

            /// The element types of its operands.
            pub const fn accepts(self) -> Accepts {
                match self { $($name::$variant => Accepts::$accepts,)* }
            }

            /// The element type of its result.
            pub const fn result_rule(self) -> ResultRule {
                match self { $($name::$variant => ResultRule::$rule,)* }
            }

            /// The work it takes for each element.
            pub const fn cost(self) -> Cost {
                match self { $($name::$variant => Cost::$cost,)* }
            }

            /// The one with this HLO name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($hlo => Some($name::$variant),)* _ => None }
            }
        }
    };
}

elementwise! {
    /// An element-wise operation of one operand.
    UnaryOp {
        /// `|x|`; the magnitude of a complex number. The least integer stays as it is.
        Abs: "abs", "stablehlo.abs", SignedFloatOrComplex, RealPart, Cheap;
        /// Inverse cosine.
        Acos: "acos", "chlo.acos", FloatOrComplex, Same, Transcendental;
        /// Inverse hyperbolic cosine.
        Acosh: "acosh", "chlo.acosh", FloatOrComplex, Same, Transcendental;
        /// Inverse sine.
        Asin: "asin", "chlo.asin", FloatOrComplex, Same, Transcendental;
        /// Inverse hyperbolic sine.
        Asinh: "asinh", "chlo.asinh", FloatOrComplex, Same, Transcendental;
        /// Inverse tangent.
        Atan: "atan", "chlo.atan", FloatOrComplex, Same, Transcendental;
        /// Inverse hyperbolic tangent.
        Atanh: "atanh", "chlo.atanh", FloatOrComplex, Same, Transcendental;
        /// Cube root.
        Cbrt: "cbrt", "stablehlo.cbrt", Float, Same, Transcendental;
        /// The least integer not below.
        Ceil: "ceil", "stablehlo.ceil", Float, Same, Cheap;
        /// The number of leading zero bits; of 0, the width.
        Clz: "count-leading-zeros", "stablehlo.count_leading_zeros", Integer, Same, Cheap;
        /// Cosine.
        Cos: "cosine", "stablehlo.cosine", FloatOrComplex, Same, Transcendental;
        /// Hyperbolic cosine.
        Cosh: "cosh", "chlo.cosh", FloatOrComplex, Same, Transcendental;
        /// The error function.
        Erf: "erf", "chlo.erf", Float, Same, Transcendental;
        /// `e` to the power of `x`.
        Exp: "exponential", "stablehlo.exponential", FloatOrComplex, Same, Transcendental;
        /// `e` to the power of `x`, less 1, accurate for small `x`.
        Expm1: "exponential-minus-one", "stablehlo.exponential_minus_one", FloatOrComplex, Same, Transcendental;
        /// The greatest integer not above.
        Floor: "floor", "stablehlo.floor", Float, Same, Cheap;
        /// The imaginary part; 0 for reals.
        Imag: "imag", "stablehlo.imag", FloatOrComplex, RealPart, Cheap;
        /// Whether the number is neither infinite nor NaN.
        IsFinite: "is-finite", "stablehlo.is_finite", Float, Pred, Cheap;
        /// Natural logarithm.
        Log: "log", "stablehlo.log", FloatOrComplex, Same, Transcendental;
        /// Natural logarithm of `1 + x`, accurate for small `x`.
        Log1p: "log-plus-one", "stablehlo.log_plus_one", FloatOrComplex, Same, Transcendental;
        /// `1 / (1 + exp(-x))`.
        Logistic: "logistic", "stablehlo.logistic", FloatOrComplex, Same, Transcendental;
        /// `-x`; integers wrap.
        Negate: "negate", "stablehlo.negate", Numeric, Same, Cheap;
        /// Every bit flipped; logical for `pred`.
        Not: "not", "stablehlo.not", IntegerOrPred, Same, Cheap;
        /// The number of bits set.
        Popcnt: "popcnt", "stablehlo.popcnt", Integer, Same, Cheap;
        /// The real part; a real is its own.
        Real: "real", "stablehlo.real", FloatOrComplex, RealPart, Cheap;
        /// The nearest integer, halves away from zero.
        RoundNearestAfz: "round-nearest-afz", "stablehlo.round_nearest_afz", Float, Same, Cheap;
        /// The nearest integer, halves to even.
        RoundNearestEven: "round-nearest-even", "stablehlo.round_nearest_even", Float, Same, Cheap;
        /// `1 / sqrt(x)`.
        Rsqrt: "rsqrt", "stablehlo.rsqrt", FloatOrComplex, Same, Division;
        /// -1, 0 or 1; keeps NaN and the sign of zero; `x / |x|` for complex numbers.
        Sign: "sign", "stablehlo.sign", SignedFloatOrComplex, Same, Cheap;
        /// Sine.
        Sin: "sine", "stablehlo.sine", FloatOrComplex, Same, Transcendental;
        /// Hyperbolic sine.
        Sinh: "sinh", "chlo.sinh", FloatOrComplex, Same, Transcendental;
        /// Square root.
        Sqrt: "sqrt", "stablehlo.sqrt", FloatOrComplex, Same, Division;
        /// Tangent.
        Tan: "tan", "stablehlo.tan", FloatOrComplex, Same, Transcendental;
        /// Hyperbolic tangent.
        Tanh: "tanh", "stablehlo.tanh", FloatOrComplex, Same, Transcendental;
    }
}

elementwise! {
    /// An element-wise operation of two operands of one shape.
    BinaryOp {
        /// Sum; integers wrap, `pred` takes "or".
        Add: "add", "stablehlo.add", NumericOrPred, Same, Cheap;
        /// Bitwise and; logical for `pred`.
        And: "and", "stablehlo.and", IntegerOrPred, Same, Cheap;
        /// The angle of the point (`rhs`, `lhs`).
        Atan2: "atan2", "stablehlo.atan2", FloatOrComplex, Same, Transcendental;
        /// The complex number with real part `lhs` and imaginary part `rhs`.
        Complex: "complex", "stablehlo.complex", ComplexPart, Complex, Cheap;
        /// Quotient; of integers truncated toward zero, all bits set for divisor 0.
        Divide: "divide", "stablehlo.divide", Numeric, Same, Division;
        /// The greater; any NaN gives NaN, +0 is greater than -0; `pred` takes "or".
        Maximum: "maximum", "stablehlo.maximum", NumericOrPred, Same, Cheap;
        /// The lesser; any NaN gives NaN, -0 is less than +0; `pred` takes "and".
        Minimum: "minimum", "stablehlo.minimum", NumericOrPred, Same, Cheap;
        /// The high half of the double-width product.
        Mulhi: "mulhi", "chlo.mulhi", Integer, Same, Cheap;
        /// Product; integers wrap, `pred` takes "and".
        Multiply: "multiply", "stablehlo.multiply", NumericOrPred, Same, Cheap;
        /// Bitwise or; logical for `pred`.
        Or: "or", "stablehlo.or", IntegerOrPred, Same, Cheap;
        /// `lhs` to the power of `rhs`.
        Power: "power", "stablehlo.power", Numeric, Same, Transcendental;
        /// Remainder with the sign of the dividend; the dividend for divisor 0 of integers.
        Remainder: "remainder", "stablehlo.remainder", Real, Same, Division;
        /// Bits moved up, zeros in; amounts outside the width give 0.
        ShiftLeft: "shift-left", "stablehlo.shift_left", Integer, Same, Cheap;
        /// Bits moved down, copies of the sign in; amounts outside the width give all signs.
        ShiftRightArithmetic: "shift-right-arithmetic", "stablehlo.shift_right_arithmetic", Integer, Same, Cheap;
        /// Bits moved down, zeros in; amounts outside the width give 0.
        ShiftRightLogical: "shift-right-logical", "stablehlo.shift_right_logical", Integer, Same, Cheap;
        /// Difference; integers wrap.
        Subtract: "subtract", "stablehlo.subtract", Numeric, Same, Cheap;
        /// Bitwise exclusive or; logical for `pred`.
        Xor: "xor", "stablehlo.xor", IntegerOrPred, Same, Cheap;
    }
}

/// The rows of both tables.
pub(super) fn table() -> Vec<OpInfo> {
    let row = |name, stablehlo_names, arity, doc: &'static str| OpInfo {
        name,
        stablehlo_names,
        family: Family::Elementwise,
        effect: Effect::None,
        gives: Yield::New,
        reads: Reads::Aligned,
        phase: Phase::Once,
        arity: Arity::Exactly(arity),
        needs_shape: false,
        summary: doc.trim(),
    };
    let unary = UnaryOp::ALL.iter().map(|op| row(op.name(), op.stablehlo_names(), 1, op.doc()));
    let binary = BinaryOp::ALL.iter().map(|op| row(op.name(), op.stablehlo_names(), 2, op.doc()));
    unary.chain(binary).collect()
}

impl Accepts {
    /// Whether it includes this type.
    pub fn includes(self, ty: ElementType) -> bool {
        match self {
            Accepts::Any => true,
            Accepts::Numeric => !ty.is_pred(),
            Accepts::NumericOrPred => true,
            Accepts::SignedFloatOrComplex => !ty.is_pred() && !ty.is_unsigned_integer(),
            Accepts::Real => ty.is_integer() || ty.is_float(),
            Accepts::RealOrPred => !ty.is_complex(),
            Accepts::Float => ty.is_float(),
            Accepts::FloatOrComplex => ty.is_float() || ty.is_complex(),
            Accepts::ComplexPart => ty.to_complex().is_some(),
            Accepts::Integer => ty.is_integer(),
            Accepts::IntegerOrPred => ty.is_integer() || ty.is_pred(),
        }
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accepts::Any => "any type",
            Accepts::Numeric => "integers, floats and complex numbers",
            Accepts::NumericOrPred => "integers, floats, complex numbers and pred",
            Accepts::SignedFloatOrComplex => "signed integers, floats and complex numbers",
            Accepts::Real => "integers and floats",
            Accepts::RealOrPred => "integers, floats and pred",
            Accepts::Float => "floats",
            Accepts::FloatOrComplex => "floats and complex numbers",
            Accepts::ComplexPart => "f32 and f64",
            Accepts::Integer => "integers",
            Accepts::IntegerOrPred => "integers and pred",
        })
    }
}

impl ResultRule {
    /// The element type of the result for this element type of the operands.
    pub fn apply(self, operand: ElementType) -> Option<ElementType> {
        match self {
            ResultRule::Same => Some(operand),
            ResultRule::RealPart => Some(operand.real_part()),
            ResultRule::Pred => Some(ElementType::Pred),
            ResultRule::Complex => operand.to_complex(),
        }
    }

    fn result(self, operand: &ArrayShape) -> Result<Shape> {
        let element = self.apply(operand.element());
        let element = element.ok_or_else(|| Error::internal("an accepted type has no result"))?;
        if element == operand.element() {
            return Ok(Shape::Array(operand.clone().without_layout()));
        }
        operand.clone().without_layout().with_element(element).map(Shape::Array)
    }
}

impl BinaryOp {
    /// Whether the operands may change places. (Of two NaNs, one or the other is the result; all NaNs
    /// are equal here.)
    pub const fn is_commutative(self) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::And
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Mulhi
            | BinaryOp::Multiply
            | BinaryOp::Or
            | BinaryOp::Xor => true,
            BinaryOp::Atan2
            | BinaryOp::Complex
            | BinaryOp::Divide
            | BinaryOp::Power
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRightArithmetic
            | BinaryOp::ShiftRightLogical
            | BinaryOp::Subtract => false,
        }
    }

    /// Whether `(a op b) op c` is `a op (b op c)`, but for rounding.
    pub const fn is_associative(self) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::And
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Multiply
            | BinaryOp::Or
            | BinaryOp::Xor => true,
            BinaryOp::Atan2
            | BinaryOp::Complex
            | BinaryOp::Divide
            | BinaryOp::Mulhi
            | BinaryOp::Power
            | BinaryOp::Remainder
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRightArithmetic
            | BinaryOp::ShiftRightLogical
            | BinaryOp::Subtract => false,
        }
    }
}

impl UnaryOp {
    /// The shape of the result. Errors: `unary.C1` (an array), `unary.C2` (its element type).
    pub fn infer(self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("unary.C1", 0)?;
        let (name, accepts) = (self.name(), self.accepts());
        let ok = accepts.includes(operand.element());
        ensure!(ok, "unary.C2", "{name} takes {accepts}, operand 0 is {operand}");
        self.result_rule().result(operand)
    }
}

impl BinaryOp {
    /// The shape of the result. Errors: `binary.C1` (arrays), `binary.C2` (their element type),
    /// `binary.C3` (which is the same), `binary.C4` (as are their dimensions).
    pub fn infer(self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = [cx.array("binary.C1", 0)?, cx.array("binary.C1", 1)?];
        let (name, accepts) = (self.name(), self.accepts());
        for (i, operand) in operands.iter().enumerate() {
            let ok = accepts.includes(operand.element());
            ensure!(ok, "binary.C2", "{name} takes {accepts}, operand {i} is {operand}");
        }
        ensure_same_element("binary.C3", &operands)?;
        self.result_rule().result(&merge_arrays("binary.C4", &operands)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn results() {
        assert_eq!(infer(UnaryOp::Exp, &["f32[2,3]"]), "f32[2,3]");
        assert_eq!(infer(UnaryOp::Abs, &["c64[2]"]), "f32[2]");
        assert_eq!(infer(UnaryOp::Abs, &["s8[<=2]"]), "s8[<=2]");
        assert_eq!(infer(UnaryOp::IsFinite, &["bf16[]"]), "pred[]");
        assert_eq!(infer(UnaryOp::Imag, &["f32[2]"]), "f32[2]");
        assert_eq!(infer(BinaryOp::Complex, &["f64[2]", "f64[2]"]), "c128[2]");
        assert_eq!(infer(BinaryOp::Add, &["pred[2]", "pred[2]"]), "pred[2]");
    }

    #[test]
    fn dimensions_known_of_either_operand_are_known_of_the_result() {
        assert_eq!(infer(BinaryOp::Add, &["f32[<=2]", "f32[2]"]), "f32[<=2]");
        assert_eq!(infer(BinaryOp::Add, &["f32[?]", "f32[2]"]), "f32[2]");
        assert_eq!(infer(BinaryOp::Add, &["f32[?]", "f32[<=2]"]), "f32[<=2]");
        assert_eq!(infer(BinaryOp::Add, &["f32[?]", "f32[?]"]), "f32[?]");
    }

    #[test]
    fn rules() {
        assert_eq!(infer(UnaryOp::Exp, &["token[]"]), "unary.C1");
        assert_eq!(infer(UnaryOp::Floor, &["s32[2]"]), "unary.C2");
        assert_eq!(infer(UnaryOp::Cbrt, &["c64[2]"]), "unary.C2");
        assert_eq!(infer(UnaryOp::Abs, &["u32[2]"]), "unary.C2");
        assert_eq!(infer(UnaryOp::Not, &["f32[2]"]), "unary.C2");
        assert_eq!(infer(UnaryOp::Popcnt, &["pred[2]"]), "unary.C2");
        assert_eq!(infer(BinaryOp::Add, &["f32[]", "()"]), "binary.C1");
        assert_eq!(infer(BinaryOp::Subtract, &["pred[2]", "pred[2]"]), "binary.C2");
        assert_eq!(infer(BinaryOp::Complex, &["f16[2]", "f16[2]"]), "binary.C2");
        assert_eq!(infer(BinaryOp::Add, &["f32[2]", "bf16[2]"]), "binary.C3");
        assert_eq!(infer(BinaryOp::Add, &["f32[2]", "f32[]"]), "binary.C4");
        assert_eq!(infer(BinaryOp::Add, &["f32[2]", "f32[<=3]"]), "binary.C4");
        assert_eq!(infer(BinaryOp::Add, &["f32[2]"]), "operands.C1");
    }

    #[test]
    fn every_accepted_type_has_a_result() {
        for &ty in ElementType::ALL {
            for op in BinaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
                assert!(op.result_rule().apply(ty).is_some(), "{} of {ty}", op.name());
            }
        }
    }
}
