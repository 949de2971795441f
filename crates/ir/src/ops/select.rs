//! Element-wise choices: `select` between two arrays, `clamp` between two bounds.

use super::Arity;
use super::check::{ensure_same_element, merge_arrays};
use crate::text::attrs::AttrReader;
use crate::{InferCx, OpDef, Result, Shape, ensure};

/// For each element, the second operand where the first is true, else the third; a scalar first
/// operand chooses for all elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select;

impl OpDef for Select {
    const OPCODE: &'static str = "select";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.arrays("select.C1")?;
        let [pred, on_true, on_false] = operands[..] else { return Err(cx.wrong_arity()) };
        ensure!(pred.element().is_pred(), "select.C2", "operand 0 must be pred, is {pred}");
        ensure!(
            on_true.element() == on_false.element(),
            "select.C3",
            "operands 1 and 2 must have the same element type, are {on_true} and {on_false}"
        );
        let result = merge_arrays("select.C4", &[on_true, on_false])?;
        if pred.is_scalar() {
            return Ok(Shape::Array(result));
        }
        merge_arrays("select.C5", &[pred, &result])?
            .with_element(result.element())
            .map(Shape::Array)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Select)
    }
}

/// `min(max(x, lo), hi)` for operands `lo, x, hi`; scalar bounds broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp;

impl OpDef for Clamp {
    const OPCODE: &'static str = "clamp";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.arrays("clamp.C1")?;
        ensure_same_element("clamp.C2", &operands)?;
        let [lo, x, hi] = operands[..] else { return Err(cx.wrong_arity()) };
        for (name, bound) in [("lower", lo), ("upper", hi)] {
            ensure!(
                bound.is_scalar() || merge_arrays("clamp.C3", &[bound, x]).is_ok(),
                "clamp.C3",
                "the {name} bound must be a scalar or have the dimensions of operand 1, {x}; is {bound}"
            );
        }
        Ok(Shape::Array(x.clone().without_layout()))
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Clamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn select() {
        let of = |operands: &[&str]| infer(Select, operands);
        assert_eq!(of(&["pred[2]", "f32[2]", "f32[2]"]), "f32[2]");
        assert_eq!(of(&["pred[]", "f32[2]", "f32[<=2]"]), "f32[<=2]");
        assert_eq!(of(&["pred[<=2]", "f32[2]", "f32[2]"]), "f32[<=2]");
        assert_eq!(of(&["pred[]", "()", "()"]), "select.C1");
        assert_eq!(of(&["s32[2]", "f32[2]", "f32[2]"]), "select.C2");
        assert_eq!(of(&["pred[2]", "f32[2]", "s32[2]"]), "select.C3");
        assert_eq!(of(&["pred[]", "f32[2]", "f32[]"]), "select.C4");
        assert_eq!(of(&["pred[2]", "f32[3]", "f32[3]"]), "select.C5");
        assert_eq!(of(&["pred[2]", "f32[]", "f32[]"]), "select.C5");
    }

    #[test]
    fn clamp() {
        let of = |operands: &[&str]| infer(Clamp, operands);
        assert_eq!(of(&["f32[]", "f32[2]", "f32[2]"]), "f32[2]");
        assert_eq!(of(&["f32[<=2]", "f32[2]", "f32[]"]), "f32[2]");
        assert_eq!(of(&["f32[]", "f32[2]", "()"]), "clamp.C1");
        assert_eq!(of(&["f32[]", "f32[2]", "s32[]"]), "clamp.C2");
        assert_eq!(of(&["f32[3]", "f32[2]", "f32[]"]), "clamp.C3");
        assert_eq!(of(&["f32[2]", "f32[]", "f32[]"]), "clamp.C3");
    }
}
