//! `reshape` and its kin.

use super::Arity;
use crate::text::attrs::AttrReader;
use crate::{ArrayShape, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// The same elements in row-major order under other dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl OpDef for Reshape {
    const OPCODE: &'static str = "reshape";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("reshape.C1", 0)?;
        ensure_reshape(["reshape.C2", "reshape.C3", "reshape.C4"], operand, &self.shape)?;
        Ok(Shape::Array(self.shape.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // The attribute only helps to infer which dimension is bounded; the result's shape says it.
        attrs.int("inferred_dimension")?;
        Ok(Reshape { shape: attrs.result_array()? })
    }
}

/// Reshape to sizes given at run time, one scalar operand for each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicReshape {
    /// The shape of the result, with bounds.
    pub shape: ArrayShape,
}

impl OpDef for DynamicReshape {
    const OPCODE: &'static str = "dynamic-reshape";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("dynamic-reshape.C1", 0)?;
        let rules = ["dynamic-reshape.C2", "dynamic-reshape.C3", "dynamic-reshape.C4"];
        ensure_reshape(rules, operand, &self.shape)?;
        let (sizes, rank) = (cx.operands.len() - 1, self.shape.rank());
        ensure!(
            sizes == rank,
            "dynamic-reshape.C5",
            "{sizes} sizes for the {rank} dimensions of {}",
            self.shape
        );
        for i in 1..cx.operands.len() {
            let size = cx.scalar("dynamic-reshape.C6", i)?;
            ensure!(
                size == ElementType::S32,
                "dynamic-reshape.C6",
                "operand {i} must be s32[], is {size}[]"
            );
        }
        Ok(Shape::Array(self.shape.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(DynamicReshape { shape: attrs.result_array()? })
    }
}

/// Checks a reshape. The rules: one element type; no unbounded result, of which nothing would be
/// known; one number of elements, unless that of the operand is not known.
fn ensure_reshape(
    [element, bounded, count]: [&'static str; 3],
    operand: &ArrayShape,
    result: &ArrayShape,
) -> Result<()> {
    ensure!(
        operand.element() == result.element(),
        element,
        "operand and result must have the same element type, found {operand} and {result}"
    );
    ensure!(!result.is_unbounded(), bounded, "a dimension of the result {result} is unbounded");
    let (from, to) = (operand.element_count(), result.element_count());
    ensure!(
        operand.is_unbounded() || from == to,
        count,
        "operand and result must have as many elements, found {operand} of {from} and {result} of \
         {to}"
    );
    Ok(())
}

/// The same bytes under another shape and layout; what XLA's layout passes leave behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitcast {
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl OpDef for Bitcast {
    const OPCODE: &'static str = "bitcast";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("bitcast.C1", 0)?;
        let bits =
            |shape: &ArrayShape| shape.element_count() as u128 * shape.element().bits() as u128;
        ensure!(
            bits(operand) == bits(&self.shape),
            "bitcast.C2",
            "operand and result must have as many bits, found {operand} and {}",
            self.shape
        );
        Ok(Shape::Array(self.shape.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Bitcast { shape: attrs.result_array()? })
    }
}

/// The operand itself, possibly in another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy;

impl OpDef for Copy {
    const OPCODE: &'static str = "copy";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.operand(0).map(Shape::without_layout)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{array, infer};

    #[test]
    fn reshape() {
        let to = |operand, shape| infer(Reshape { shape: array(shape) }, &[operand]);
        assert_eq!(to("f32[2,3]", "f32[3,2]"), "f32[3,2]");
        assert_eq!(to("f32[1,1]", "f32[]"), "f32[]");
        assert_eq!(to("f32[0,3]", "f32[0]"), "f32[0]");
        assert_eq!(to("f32[<=2,3]", "f32[<=6]"), "f32[<=6]");
        assert_eq!(to("f32[?]", "f32[6]"), "f32[6]");
        assert_eq!(to("()", "f32[]"), "reshape.C1");
        assert_eq!(to("f32[2]", "s32[2]"), "reshape.C2");
        assert_eq!(to("f32[2]", "f32[?]"), "reshape.C3");
        assert_eq!(to("f32[2]", "f32[3]"), "reshape.C4");
    }

    #[test]
    fn dynamic_reshape() {
        let to = |operands: &[&str], shape| infer(DynamicReshape { shape: array(shape) }, operands);
        assert_eq!(to(&["f32[<=6]", "s32[]", "s32[]"], "f32[2,<=3]"), "f32[2,<=3]");
        assert_eq!(to(&["f32[1]"], "f32[]"), "f32[]");
        assert_eq!(to(&["token[]", "s32[]"], "f32[1]"), "dynamic-reshape.C1");
        assert_eq!(to(&["f32[2]", "s32[]"], "s32[2]"), "dynamic-reshape.C2");
        assert_eq!(to(&["f32[2]", "s32[]"], "f32[?]"), "dynamic-reshape.C3");
        assert_eq!(to(&["f32[2]", "s32[]"], "f32[<=3]"), "dynamic-reshape.C4");
        assert_eq!(to(&["f32[2]", "s32[]"], "f32[2,1]"), "dynamic-reshape.C5");
        assert_eq!(to(&["f32[2]", "s32[1]"], "f32[<=2]"), "dynamic-reshape.C6");
        assert_eq!(to(&["f32[2]", "s64[]"], "f32[<=2]"), "dynamic-reshape.C6");
    }

    #[test]
    fn bitcast_and_copy() {
        let to = |operand, shape| infer(Bitcast { shape: array(shape) }, &[operand]);
        assert_eq!(to("f32[2,3]", "f32[3,2]"), "f32[3,2]");
        assert_eq!(to("f32[2]", "s4[16]"), "s4[16]");
        assert_eq!(to("token[]", "f32[]"), "bitcast.C1");
        assert_eq!(to("f32[2]", "f64[2]"), "bitcast.C2");
        assert_eq!(infer(Copy, &["(f32[<=2], token[])"]), "(f32[<=2], token[])");
    }
}
