//! `broadcast`: an array repeated along new dimensions.

use super::Arity;
use super::check::{ensure_dims, ensure_one_per_dim, ensure_unique};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::{DimKind, MAX_RANK};
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// Repeats the operand along new dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: ArrayShape,
    /// For each dimension of the operand, the dimension of the result it becomes.
    pub dimensions: Vec<usize>,
}

impl OpDef for Broadcast {
    const OPCODE: &'static str = "broadcast";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("broadcast.C1", 0)?;
        let (result, dimensions) = (&self.shape, &self.dimensions);
        ensure!(
            operand.element() == result.element(),
            "broadcast.C2",
            "operand and result must have the same element type, found {operand} and {result}"
        );
        ensure_one_per_dim("broadcast.C3", "dimensions", dimensions.len(), operand)?;
        ensure_dims("broadcast.C4", "dimensions", dimensions, result)?;
        ensure_unique("broadcast.C5", "dimensions", dimensions)?;
        let mut is_new = [true; MAX_RANK];
        for (d, (dim, &to)) in operand.dims_and_kinds().zip(dimensions).enumerate() {
            is_new[to] = false;
            ensure!(
                dim == result.dim(to),
                "broadcast.C6",
                "dimension {d} of the operand {operand} becomes dimension {to} of the result \
                 {result}, which must be the same"
            );
        }
        let dynamic = (0..result.rank()).find(|&d| is_new[d] && result.dim(d).1 != DimKind::Static);
        ensure!(
            dynamic.is_none(),
            "broadcast.C7",
            "new dimension {} of the result {result} must be static",
            dynamic.unwrap_or_default()
        );
        Ok(Shape::Array(result.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // The empty list of a scalar's dimensions may be left out of the text.
        let scalar = attrs.operands.first().and_then(|shape| shape.as_array());
        let dimensions = match attrs.sizes("dimensions")? {
            None if scalar.is_some_and(ArrayShape::is_scalar) => Vec::new(),
            dimensions => attrs.require("dimensions", dimensions)?,
        };
        Ok(Broadcast { shape: attrs.result_array()?, dimensions })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dimensions", &self.dimensions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{array, infer};

    #[test]
    fn broadcast() {
        let to = |operand, shape, dimensions: &[usize]| {
            infer(Broadcast { shape: array(shape), dimensions: dimensions.to_vec() }, &[operand])
        };
        assert_eq!(to("f32[]", "f32[2,3]", &[]), "f32[2,3]");
        assert_eq!(to("f32[<=3]", "f32[2,<=3]", &[1]), "f32[2,<=3]");
        assert_eq!(to("f32[2,3]", "f32[3,2,4]", &[1, 0]), "f32[3,2,4]");
        assert_eq!(to("token[]", "f32[2]", &[]), "broadcast.C1");
        assert_eq!(to("f32[]", "bf16[2]", &[]), "broadcast.C2");
        assert_eq!(to("f32[2]", "f32[2]", &[]), "broadcast.C3");
        assert_eq!(to("f32[2]", "f32[2]", &[1]), "broadcast.C4");
        assert_eq!(to("f32[2,2]", "f32[2]", &[0, 0]), "broadcast.C5");
        assert_eq!(to("f32[1]", "f32[2]", &[0]), "broadcast.C6");
        assert_eq!(to("f32[<=2]", "f32[2]", &[0]), "broadcast.C6");
        assert_eq!(to("f32[2]", "f32[<=3,2]", &[1]), "broadcast.C7");
    }
}
