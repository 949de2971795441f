//! Changes of element type (`convert`, `stochastic-convert`, `bitcast-convert`), and
//! `reduce-precision`, which rounds within a type.

use super::Arity;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// Converts each element to another type, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for Convert {
    const OPCODE: &'static str = "convert";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        with_element(cx.array("convert.C1", 0)?, self.element)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Convert { element: attrs.result_array()?.element() })
    }
}

/// Reads the bits of the elements as another type.
///
/// For a narrower type the result gets a minor dimension, whose element 0 has the low bits; for a
/// wider type the operand's minor dimension goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitcastConvert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for BitcastConvert {
    const OPCODE: &'static str = "bitcast-convert";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("bitcast-convert.C1", 0)?;
        let (from, to) = (operand.element(), self.element);
        ensure!(
            from.is_complex() == to.is_complex(),
            "bitcast-convert.C2",
            "{from} to {to}; either both types are complex or neither is"
        );
        // All widths are powers of two: the wider is a multiple of the narrower.
        let (narrow, wide) = (from.bits().min(to.bits()), from.bits().max(to.bits()));
        let ratio = (wide / narrow, DimKind::Static);
        let mut dims: Vec<_> = operand.dims_and_kinds().collect();
        if from.bits() > to.bits() {
            dims.push(ratio);
        } else if from.bits() < to.bits() {
            ensure!(
                dims.pop() == Some(ratio),
                "bitcast-convert.C3",
                "{from} to {to}; the last dimension of the operand must be {}, it is {operand}",
                ratio.0
            );
        }
        ArrayShape::from_dims(to, dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(BitcastConvert { element: attrs.result_array()?.element() })
    }
}

/// Converts to a narrower type, rounding up with the probability that random bits give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StochasticConvert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for StochasticConvert {
    const OPCODE: &'static str = "stochastic-convert";
    const ARITY: Arity = Arity::Exactly(2);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("stochastic-convert.C1", 0)?;
        let random = cx.array("stochastic-convert.C1", 1)?;
        let (from, bits) = (operand.element(), random.element());
        ensure!(
            from.is_float(),
            "stochastic-convert.C2",
            "operand 0 must be of a float type, is {operand}"
        );
        ensure!(
            bits.is_unsigned_integer() && bits.bits() == from.bits(),
            "stochastic-convert.C3",
            "operand 1 must be unsigned and as wide as operand 0, {operand}; is {random}"
        );
        ensure!(
            operand.same_dims(random),
            "stochastic-convert.C4",
            "the operands must have the same dimensions, found {operand} and {random}"
        );
        with_element(operand, self.element)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(StochasticConvert { element: attrs.result_array()?.element() })
    }
}

/// Rounds each element to a format of fewer bits, keeping its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducePrecision {
    /// Exponent bits of the narrower format, at least 1.
    pub exponent_bits: u32,
    /// Explicit mantissa bits of the narrower format.
    pub mantissa_bits: u32,
}

impl OpDef for ReducePrecision {
    const OPCODE: &'static str = "reduce-precision";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("reduce-precision.C1", 0)?;
        ensure!(
            operand.element().is_float(),
            "reduce-precision.C2",
            "the operand must be of a float type, is {operand}"
        );
        ensure!(
            self.exponent_bits >= 1,
            "reduce-precision.C3",
            "exponent_bits={}; must be at least 1, to tell 0 from infinity",
            self.exponent_bits
        );
        Ok(Shape::Array(operand.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(ReducePrecision {
            exponent_bits: bits(attrs, "exponent_bits")?,
            mantissa_bits: bits(attrs, "mantissa_bits")?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("exponent_bits", self.exponent_bits);
        attrs.put("mantissa_bits", self.mantissa_bits);
    }
}

/// A number of bits. More than 32 bits can count is as good as that many.
fn bits(attrs: &mut AttrReader<'_>, name: &str) -> Result<u32> {
    let bits = attrs.needed(name, AttrReader::size)?;
    Ok(u32::try_from(bits).unwrap_or(u32::MAX))
}

fn with_element(operand: &ArrayShape, element: ElementType) -> Result<Shape> {
    operand.clone().without_layout().with_element(element).map(Shape::Array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn bitcast_convert_moves_bits_into_and_out_of_the_last_dimension() {
        let to = |element: &str| BitcastConvert { element: element.parse().expect("a type") };
        assert_eq!(infer(to("s32"), &["f32[2,<=3]"]), "s32[2,<=3]");
        assert_eq!(infer(to("u8"), &["f32[2]"]), "u8[2,4]");
        assert_eq!(infer(to("s4"), &["s16[]"]), "s4[4]");
        assert_eq!(infer(to("f64"), &["u8[3,8]"]), "f64[3]");
        assert_eq!(infer(to("c128"), &["c64[2]"]), "c128[]");
        assert_eq!(infer(to("u8"), &["token[]"]), "bitcast-convert.C1");
        assert_eq!(infer(to("f64"), &["c64[2]"]), "bitcast-convert.C2");
        assert_eq!(infer(to("f64"), &["u8[3,4]"]), "bitcast-convert.C3");
        assert_eq!(infer(to("f64"), &["u8[3,<=8]"]), "bitcast-convert.C3");
        assert_eq!(infer(to("f64"), &["u8[]"]), "bitcast-convert.C3");
    }

    #[test]
    fn bitcast_convert_does_not_overflow() {
        let most = format!("f64[{}]", isize::MAX as usize / 8);
        let to = BitcastConvert { element: ElementType::S4 };
        assert_eq!(infer(to, &[&most]), "shape.C2");
    }

    #[test]
    fn precision() {
        let to = |exponent_bits| ReducePrecision { exponent_bits, mantissa_bits: 0 };
        assert_eq!(infer(to(1), &["f32[2]"]), "f32[2]");
        assert_eq!(infer(to(0), &["f32[2]"]), "reduce-precision.C3");
        assert_eq!(infer(to(5), &["s32[2]"]), "reduce-precision.C2");
    }

    #[test]
    fn stochastic() {
        let to = StochasticConvert { element: ElementType::BF16 };
        assert_eq!(infer(to, &["f32[2]", "u32[2]"]), "bf16[2]");
        assert_eq!(infer(to, &["f32[2]", "()"]), "stochastic-convert.C1");
        assert_eq!(infer(to, &["s32[2]", "u32[2]"]), "stochastic-convert.C2");
        assert_eq!(infer(to, &["f32[2]", "u16[2]"]), "stochastic-convert.C3");
        assert_eq!(infer(to, &["f32[2]", "s32[2]"]), "stochastic-convert.C3");
        assert_eq!(infer(to, &["f32[2]", "u32[3]"]), "stochastic-convert.C4");
    }
}
