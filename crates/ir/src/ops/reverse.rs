//! `reverse`: an array with the elements of some dimensions in reverse.

use super::Arity;
use super::check::{ensure_dims, ensure_unique};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{InferCx, OpDef, Result, Shape};

/// Reverses the order of elements along dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// The dimensions to reverse.
    pub dimensions: Vec<usize>,
}

impl OpDef for Reverse {
    const OPCODE: &'static str = "reverse";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("reverse.C1", 0)?;
        ensure_dims("reverse.C2", "dimensions", &self.dimensions, operand)?;
        ensure_unique("reverse.C3", "dimensions", &self.dimensions)?;
        Ok(Shape::Array(operand.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Reverse { dimensions: attrs.needed("dimensions", AttrReader::sizes)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dimensions", &self.dimensions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn reverse() {
        let along = |dimensions: &[usize], operand| {
            infer(Reverse { dimensions: dimensions.to_vec() }, &[operand])
        };
        assert_eq!(along(&[1, 0], "f32[2,<=3]"), "f32[2,<=3]");
        assert_eq!(along(&[], "f32[]"), "f32[]");
        assert_eq!(along(&[], "token[]"), "reverse.C1");
        assert_eq!(along(&[2], "f32[2,3]"), "reverse.C2");
        assert_eq!(along(&[1, 1], "f32[2,3]"), "reverse.C3");
    }
}
