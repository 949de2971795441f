//! `transpose`: an array with its dimensions in another order.

use super::Arity;
use super::check::ensure_permutation;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ArrayShape, InferCx, OpDef, Result, Shape};

/// Reorders dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// For each dimension of the result, the operand's dimension it is.
    pub permutation: Vec<usize>,
}

impl OpDef for Transpose {
    const OPCODE: &'static str = "transpose";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("transpose.C1", 0)?;
        ensure_permutation("transpose.C2", "dimensions", &self.permutation, operand)?;
        let dims = self.permutation.iter().map(|&d| operand.dim(d));
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Transpose { permutation: attrs.needed("dimensions", AttrReader::sizes)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dimensions", &self.permutation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn transpose() {
        let by = |permutation: &[usize], operand| {
            infer(Transpose { permutation: permutation.to_vec() }, &[operand])
        };
        assert_eq!(by(&[2, 0, 1], "f32[2,<=3,4]"), "f32[4,2,<=3]");
        assert_eq!(by(&[], "f32[]"), "f32[]");
        assert_eq!(by(&[], "()"), "transpose.C1");
        assert_eq!(by(&[0, 0], "f32[2,2]"), "transpose.C2");
        assert_eq!(by(&[0, 2], "f32[2,2]"), "transpose.C2");
        assert_eq!(by(&[0], "f32[2,2]"), "transpose.C2");
    }
}
