//! `concatenate`: arrays joined along a dimension.

use super::Arity;
use super::check::{ensure_dim, ensure_same_element, merge_dim};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, Error, InferCx, OpDef, Result, Shape, ensure};

/// Joins arrays along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concatenate {
    /// The dimension along which they are joined.
    pub dimension: usize,
}

impl OpDef for Concatenate {
    const OPCODE: &'static str = "concatenate";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.arrays("concatenate.C1")?;
        let Some((first, rest)) = operands.split_first() else { return Err(cx.wrong_arity()) };
        ensure_dim("concatenate.C2", "dimensions", self.dimension, first)?;
        ensure_same_element("concatenate.C3", &operands)?;
        let mut dims: Vec<_> = first.dims_and_kinds().collect();
        for array in rest {
            let (found, rank) = (array.rank(), first.rank());
            ensure!(found == rank, "concatenate.C4", "operands of {rank} and {found} dimensions");
            for (d, dim) in dims.iter_mut().enumerate() {
                *dim = if d == self.dimension {
                    join(*dim, array.dim(d))
                } else {
                    merge_dim(*dim, array.dim(d)).ok_or_else(|| {
                        let detail = format!(
                            "dimension {d} is the same in all operands, not {first} and {array}"
                        );
                        Error::rule("concatenate.C5", detail)
                    })?
                };
            }
        }
        ArrayShape::from_dims(first.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Concatenate { dimension: attrs.needed("dimensions", AttrReader::one_size)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.one_size("dimensions", self.dimension);
    }
}

/// One dimension after the other. A sum too large for memory is an error of the resulting shape.
fn join((a, a_kind): (usize, DimKind), (b, b_kind): (usize, DimKind)) -> (usize, DimKind) {
    match (a_kind, b_kind) {
        (DimKind::Unbounded, _) | (_, DimKind::Unbounded) => (0, DimKind::Unbounded),
        (DimKind::Static, DimKind::Static) => (a.saturating_add(b), DimKind::Static),
        _ => (a.saturating_add(b), DimKind::Bounded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn concatenate() {
        let along = |dimension, operands: &[&str]| infer(Concatenate { dimension }, operands);
        assert_eq!(along(0, &["f32[2,3]"]), "f32[2,3]");
        assert_eq!(along(0, &["f32[2,3]", "f32[0,3]", "f32[5,3]"]), "f32[7,3]");
        assert_eq!(along(0, &["f32[2,3]", "f32[<=1,<=3]"]), "f32[<=3,<=3]");
        assert_eq!(along(0, &["f32[2,3]", "f32[?,?]"]), "f32[?,3]");
        assert_eq!(along(0, &["f32[2]", "()"]), "concatenate.C1");
        assert_eq!(along(1, &["f32[2]"]), "concatenate.C2");
        assert_eq!(along(0, &["f32[2]", "s32[2]"]), "concatenate.C3");
        assert_eq!(along(0, &["f32[2]", "f32[2,1]"]), "concatenate.C4");
        assert_eq!(along(0, &["f32[2,3]", "f32[2,4]"]), "concatenate.C5");
        assert_eq!(along(0, &[]), "operands.C1");
    }

    #[test]
    fn a_sum_too_large_is_an_error() {
        let most = format!("u8[{}]", isize::MAX);
        let operands = [most.as_str(); 5];
        assert_eq!(infer(Concatenate { dimension: 0 }, &operands), "shape.C2");
    }
}
