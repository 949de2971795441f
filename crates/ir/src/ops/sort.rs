//! `sort` by a comparator, and `topk`, the largest elements of each row.

use super::Arity;
use super::check::{ensure_dim, ensure_result};
use super::reducer::{fits, same_sizes};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, CompId, ElementType, InferCx, OpDef, Result, Shape, ensure};

/// Sorts arrays together along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The dimension.
    pub dimension: usize,
    /// Whether equal elements keep their order; here they always do.
    pub is_stable: bool,
    /// Whether the left of (left 0, right 0, left 1, …) comes first.
    pub to_apply: CompId,
}

impl OpDef for Sort {
    const OPCODE: &'static str = "sort";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let arrays = cx.arrays("sort.C1")?;
        for (i, array) in arrays.iter().enumerate() {
            ensure!(
                same_sizes(array, arrays[0]),
                "sort.C2",
                "operand {i} must have the sizes of operand 0, {}; is {array}",
                arrays[0]
            );
        }
        ensure_dim("sort.C3", "dimensions", self.dimension, arrays[0])?;
        let comparator = cx.callee(self.to_apply);
        let params = comparator.params();
        ensure!(
            params.len() == arrays.len().saturating_mul(2),
            "sort.C4",
            "{} must take 2 parameters for each of the {} arrays sorted, takes {}",
            comparator.name,
            arrays.len(),
            params.len()
        );
        for (number, &id) in &params {
            let expected = arrays.get(number / 2).map(|array| array.element());
            let found = &comparator.instr(id).shape;
            let scalar = found.as_array().filter(|array| array.is_scalar());
            ensure!(
                scalar.zip(expected).is_some_and(|(found, e)| fits(found.element(), e)),
                "sort.C5",
                "{}: parameter {number} must be an element of operand {}, {}[]; is {found}",
                comparator.name,
                number / 2,
                expected.map_or("", ElementType::name)
            );
        }
        ensure_result("sort.C6", "comparator", comparator, &Shape::scalar(ElementType::Pred))?;
        let mut results: Vec<Shape> =
            arrays.iter().map(|&array| Shape::Array(array.clone().without_layout())).collect();
        Ok(if results.len() == 1 { results.remove(0) } else { Shape::Tuple(results) })
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Sort {
            dimension: attrs.needed("dimensions", AttrReader::one_size)?,
            is_stable: attrs.flag("is_stable")?.unwrap_or(false),
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.one_size("dimensions", self.dimension);
        attrs.flag("is_stable", self.is_stable);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

/// The largest (or smallest) elements of the last dimension and their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    /// How many.
    pub k: usize,
    /// Whether the largest.
    pub largest: bool,
}

impl OpDef for TopK {
    const OPCODE: &'static str = "topk";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("topk.C1", 0)?;
        let element = operand.element();
        ensure!(
            element.is_integer() || element.is_float(),
            "topk.C2",
            "the operand must hold integers or floats, which have an order; is {operand}"
        );
        let Some(last) = operand.rank().checked_sub(1) else {
            return Err(crate::Error::rule(
                "topk.C1",
                format!("the operand must have a dimension, is {operand}"),
            ));
        };
        let (size, kind) = operand.dim(last);
        ensure!(
            kind == DimKind::Unbounded || self.k <= size,
            "topk.C3",
            "k={} must be at most {size}, the size of the last dimension of {operand}",
            self.k
        );
        let mut dims: Vec<_> = (0..last).map(|d| operand.dim(d)).collect();
        dims.push((self.k, DimKind::Static));
        let (sizes, kinds) = dims.into_iter().unzip();
        let values = ArrayShape::with_kinds(element, sizes, kinds)?;
        let indices = values.with_element(ElementType::S32)?;
        Ok(Shape::Tuple(vec![Shape::Array(values), Shape::Array(indices)]))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // Equal elements always keep their order here, so that nothing is lost with this attribute.
        attrs.flag("is_stable")?;
        Ok(TopK {
            k: attrs.needed("k", AttrReader::size)?,
            largest: attrs.flag("largest")?.unwrap_or(true),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("k", self.k);
        attrs.put("largest", self.largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{C0, infer, infer_in, module};

    #[test]
    fn sort_results() {
        let sort = Sort { dimension: 1, is_stable: true, to_apply: C0 };
        let one = module(&[(&["f32[]", "f32[]"], "pred[]")]);
        assert_eq!(infer_in(&one, sort, &["f32[2,<=3]"]), "f32[2,<=3]");
        assert_eq!(infer_in(&one, sort, &["bf16[2,3]"]), "bf16[2,3]");
        assert_eq!(infer_in(&one, sort, &["f32[2]"]), "sort.C3");
        assert_eq!(infer_in(&one, sort, &["s32[2,3]"]), "sort.C5");
        let two = module(&[(&["f32[]", "f32[]", "s32[]", "s32[]"], "pred[]")]);
        assert_eq!(infer_in(&two, sort, &["f32[2,3]", "s32[2,3]"]), "(f32[2,3], s32[2,3])");
        // Not the arrays' order of parameters but pairs.
        assert_eq!(infer_in(&two, sort, &["s32[2,3]", "f32[2,3]"]), "sort.C5");
    }

    #[test]
    fn topk_results() {
        let topk = |k| TopK { k, largest: true };
        assert_eq!(infer(topk(2), &["f32[4,<=3]"]), "(f32[4,2], s32[4,2])");
        assert_eq!(infer(topk(0), &["u8[<=4,3]"]), "(u8[<=4,0], s32[<=4,0])");
        assert_eq!(infer(topk(4), &["f32[3]"]), "topk.C3");
        assert_eq!(infer(topk(usize::MAX), &["f32[?]"]), "shape.C2");
    }
}
