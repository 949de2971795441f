//! `get-dimension-size` and `set-dimension-size`: sizes of dimensions as numbers of the program.

use super::Arity;
use super::check::ensure_dim;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// The size of a dimension at run time, as `s32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetDimensionSize {
    /// Which dimension.
    pub dimension: usize,
}

impl OpDef for GetDimensionSize {
    const OPCODE: &'static str = "get-dimension-size";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("get-dimension-size.C1", 0)?;
        ensure_dim("get-dimension-size.C2", "dimensions", self.dimension, operand)?;
        ensure_fits_s32("get-dimension-size.C3", self.dimension, operand)?;
        Ok(Shape::scalar(ElementType::S32))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(GetDimensionSize { dimension: attrs.needed("dimensions", AttrReader::one_size)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.one_size("dimensions", self.dimension);
    }
}

/// The operand with a dimension's size at run time set to the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetDimensionSize {
    /// Which dimension.
    pub dimension: usize,
}

impl OpDef for SetDimensionSize {
    const OPCODE: &'static str = "set-dimension-size";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("set-dimension-size.C1", 0)?;
        let size = cx.scalar("set-dimension-size.C2", 1)?;
        ensure!(
            size == ElementType::S32,
            "set-dimension-size.C2",
            "operand 1 must be s32[], is {size}[]"
        );
        ensure_dim("set-dimension-size.C3", "dimensions", self.dimension, operand)?;
        ensure_fits_s32("set-dimension-size.C4", self.dimension, operand)?;
        let dims = operand.dims_and_kinds().enumerate().map(|(d, (size, kind))| match kind {
            DimKind::Static if d == self.dimension => (size, DimKind::Bounded),
            kind => (size, kind),
        });
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(SetDimensionSize { dimension: attrs.needed("dimensions", AttrReader::one_size)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.one_size("dimensions", self.dimension);
    }
}

/// Errors: the dimension's size does not fit the type that sizes have at run time.
fn ensure_fits_s32(rule: &'static str, dim: usize, operand: &ArrayShape) -> Result<()> {
    let (size, most) = (operand.dim(dim).0, i32::MAX);
    ensure!(
        i32::try_from(size).is_ok(),
        rule,
        "dimension {dim} of {operand} is larger than {most}, the largest s32"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn sizes() {
        let get = |dimension, operand| infer(GetDimensionSize { dimension }, &[operand]);
        let set = |dimension, operands: &[&str]| infer(SetDimensionSize { dimension }, operands);
        assert_eq!(get(1, "f32[2,<=3]"), "s32[]");
        assert_eq!(get(0, "()"), "get-dimension-size.C1");
        assert_eq!(get(2, "f32[2,3]"), "get-dimension-size.C2");
        assert_eq!(get(0, "s8[2147483648]"), "get-dimension-size.C3");
        assert_eq!(set(1, &["f32[2,3]", "s32[]"]), "f32[2,<=3]");
        assert_eq!(set(0, &["f32[?]", "s32[]"]), "f32[?]");
        assert_eq!(set(0, &["token[]", "s32[]"]), "set-dimension-size.C1");
        assert_eq!(set(0, &["f32[2]", "s64[]"]), "set-dimension-size.C2");
        assert_eq!(set(0, &["f32[2]", "s32[1]"]), "set-dimension-size.C2");
        assert_eq!(set(1, &["f32[2]", "s32[]"]), "set-dimension-size.C3");
        assert_eq!(set(0, &["s8[2147483648]", "s32[]"]), "set-dimension-size.C4");
    }
}
