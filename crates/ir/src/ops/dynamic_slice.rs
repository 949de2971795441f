//! `dynamic-slice` and `dynamic-update-slice`: a box of an array, at a place known at run time,
//! read or overwritten.

use super::Arity;
use super::check::{ensure_array, ensure_one_per_dim};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// A box of fixed sizes at a place given at run time, clamped to stay inside.
///
/// The place is a scalar for each dimension, or, in an older form, one vector of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicSlice {
    /// The sizes of the box.
    pub sizes: Vec<usize>,
}

impl OpDef for DynamicSlice {
    const OPCODE: &'static str = "dynamic-slice";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("dynamic-slice.C1", 0)?;
        let rules = ["dynamic-slice.C2", "dynamic-slice.C3", "dynamic-slice.C4"];
        ensure_indices(rules, operand, cx.operands.get(1..).unwrap_or_default())?;
        ensure_one_per_dim("dynamic-slice.C5", "dynamic_slice_sizes", self.sizes.len(), operand)?;
        let mut dims = Vec::with_capacity(operand.rank());
        for (d, ((bound, kind), &size)) in operand.dims_and_kinds().zip(&self.sizes).enumerate() {
            ensure!(
                kind == DimKind::Unbounded || size <= bound,
                "dynamic-slice.C6",
                "dimension {d}: {size} elements of the operand {operand}"
            );
            // Only the whole of a bounded dimension is again of unknown size.
            let is_bounded = kind == DimKind::Bounded && size == bound && size > 1;
            dims.push((size, if is_bounded { DimKind::Bounded } else { DimKind::Static }));
        }
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(DynamicSlice { sizes: attrs.needed("dynamic_slice_sizes", AttrReader::sizes)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dynamic_slice_sizes", &self.sizes);
    }
}

/// The operand with a box of it replaced, at a place given at run time, clamped to stay inside.
///
/// The place is as for [`DynamicSlice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicUpdateSlice;

impl OpDef for DynamicUpdateSlice {
    const OPCODE: &'static str = "dynamic-update-slice";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("dynamic-update-slice.C1", 0)?;
        let update = cx.array("dynamic-update-slice.C1", 1)?;
        let rules =
            ["dynamic-update-slice.C2", "dynamic-update-slice.C3", "dynamic-update-slice.C4"];
        ensure_indices(rules, operand, cx.operands.get(2..).unwrap_or_default())?;
        ensure!(
            operand.element() == update.element(),
            "dynamic-update-slice.C5",
            "operand and update must have the same element type, found {operand} and {update}"
        );
        ensure!(
            operand.rank() == update.rank(),
            "dynamic-update-slice.C6",
            "operand and update must have as many dimensions, found {operand} and {update}"
        );
        let mut dims: Vec<_> = operand.dims_and_kinds().collect();
        for (d, ((bound, kind), (size, update_kind))) in
            dims.iter_mut().zip(update.dims_and_kinds()).enumerate()
        {
            let is_known = *kind != DimKind::Unbounded && update_kind != DimKind::Unbounded;
            ensure!(
                !is_known || size <= *bound,
                "dynamic-update-slice.C7",
                "dimension {d}: the update {update} is larger than the operand {operand}"
            );
            if is_known && update_kind == DimKind::Bounded && size == *bound {
                *kind = DimKind::Bounded;
            }
        }
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(DynamicUpdateSlice)
    }
}

/// Checks the place of a box in `operand`. The rules: one index for each dimension, all scalars, or
/// all in one vector; integers; of one type.
fn ensure_indices(
    rules: [&'static str; 3],
    operand: &ArrayShape,
    indices: &[&Shape],
) -> Result<()> {
    let [form, integers, one_type] = rules;
    let rank = operand.rank();
    let indices = indices.iter().map(|index| ensure_array(form, "an index", index));
    let indices: Vec<&ArrayShape> = indices.collect::<Result<_>>()?;
    let is_vector = indices.len() == 1 && indices[0].dims() == [rank];
    ensure!(
        is_vector || indices.len() == rank && indices.iter().all(|index| index.is_scalar()),
        form,
        "the operand {operand} takes {rank} scalar indices or a vector of them, found ({})",
        indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    for index in &indices {
        ensure!(index.element().is_integer(), integers, "an index must be an integer, is {index}");
        ensure!(
            index.element() == indices[0].element(),
            one_type,
            "all indices must have the same type, found {} and {index}",
            indices[0]
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn slice(sizes: &[usize], operands: &[&str]) -> String {
        infer(DynamicSlice { sizes: sizes.to_vec() }, operands)
    }

    fn update(operands: &[&str]) -> String {
        infer(DynamicUpdateSlice, operands)
    }

    #[test]
    fn both_forms_of_indices() {
        assert_eq!(slice(&[2, 3], &["f32[5,5]", "s32[]", "s32[]"]), "f32[2,3]");
        assert_eq!(slice(&[2, 3], &["f32[5,5]", "s64[2]"]), "f32[2,3]");
        assert_eq!(slice(&[1], &["f32[5]", "u32[1]"]), "f32[1]");
        assert_eq!(slice(&[], &["f32[]"]), "f32[]");
        assert_eq!(update(&["f32[5,5]", "f32[2,5]", "s32[]", "s32[]"]), "f32[5,5]");
        assert_eq!(update(&["f32[5,5]", "f32[2,5]", "s32[2]"]), "f32[5,5]");
    }

    #[test]
    fn kinds() {
        assert_eq!(slice(&[5], &["f32[<=5]", "s32[]"]), "f32[<=5]");
        assert_eq!(slice(&[4], &["f32[<=5]", "s32[]"]), "f32[4]");
        assert_eq!(slice(&[9], &["f32[?]", "s32[]"]), "f32[9]");
        assert_eq!(update(&["f32[5]", "f32[<=5]", "s32[]"]), "f32[<=5]");
        assert_eq!(update(&["f32[5]", "f32[<=4]", "s32[]"]), "f32[5]");
        assert_eq!(update(&["f32[<=5]", "f32[4]", "s32[]"]), "f32[<=5]");
    }

    #[test]
    fn rules_of_slice() {
        assert_eq!(slice(&[], &["()"]), "dynamic-slice.C1");
        assert_eq!(slice(&[1], &["f32[5]"]), "dynamic-slice.C2");
        assert_eq!(slice(&[1], &["f32[5]", "s32[2]"]), "dynamic-slice.C2");
        assert_eq!(slice(&[1, 1], &["f32[5,5]", "s32[]", "token[]"]), "dynamic-slice.C2");
        assert_eq!(slice(&[1], &["f32[5]", "f32[]"]), "dynamic-slice.C3");
        assert_eq!(slice(&[1, 1], &["f32[5,5]", "s32[]", "s64[]"]), "dynamic-slice.C4");
        assert_eq!(slice(&[1], &["f32[5,5]", "s32[]", "s32[]"]), "dynamic-slice.C5");
        assert_eq!(slice(&[6], &["f32[5]", "s32[]"]), "dynamic-slice.C6");
    }

    #[test]
    fn rules_of_update() {
        assert_eq!(update(&["f32[5]", "()", "s32[]"]), "dynamic-update-slice.C1");
        assert_eq!(update(&["f32[5]", "f32[1]"]), "dynamic-update-slice.C2");
        assert_eq!(update(&["f32[5]", "f32[1]", "pred[]"]), "dynamic-update-slice.C3");
        assert_eq!(update(&["f32[5,5]", "f32[1,1]", "s32[]", "u32[]"]), "dynamic-update-slice.C4");
        assert_eq!(update(&["f32[5]", "s32[1]", "s32[]"]), "dynamic-update-slice.C5");
        assert_eq!(update(&["f32[5]", "f32[]", "s32[]"]), "dynamic-update-slice.C6");
        assert_eq!(update(&["f32[5]", "f32[6]", "s32[]"]), "dynamic-update-slice.C7");
    }
}
