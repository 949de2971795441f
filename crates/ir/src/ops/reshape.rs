//! The same elements under another shape or elsewhere in memory: `reshape`, `dynamic-reshape`,
//! `bitcast`, `copy`.

use super::Arity;
use crate::text::attrs::AttrReader;
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// The same elements in row-major order under other dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl Reshape {
    /// To these sizes, bounded where dimensions of `operand` that are bounded end up.
    ///
    /// Errors: `InvalidArgument` if that can be more than one place (`[<=6]` as `[2,3]`), or none;
    /// [`Reshape::shape`] then has to say it.
    pub fn to_sizes(operand: &ArrayShape, sizes: &[usize]) -> Result<Self> {
        let mut kinds = vec![DimKind::Static; sizes.len()];
        let dims = operand.dims();
        let (mut from, mut to) = (0, 0);
        while from < dims.len() || to < sizes.len() {
            // The fewest dimensions of either that have the same number of elements.
            let (from_start, to_start) = (from, to);
            let (mut from_count, mut to_count) = (1_usize, 1_usize);
            loop {
                if from < dims.len() && (from_count <= to_count || to == sizes.len()) {
                    from_count = from_count.saturating_mul(dims[from]);
                    from += 1;
                } else if to < sizes.len() {
                    to_count = to_count.saturating_mul(sizes[to]);
                    to += 1;
                } else {
                    break;
                }
                if from_count == to_count {
                    break;
                }
            }
            if !operand.kinds()[from_start..from].contains(&DimKind::Bounded) {
                continue;
            }
            let mut places = (to_start..to).filter(|&d| to - to_start == 1 || sizes[d] != 1);
            match (places.next(), places.next()) {
                (Some(d), None) => kinds[d] = DimKind::Bounded,
                _ => {
                    return Err(Error::invalid(format!(
                        "which dimension of {sizes:?} is bounded does not follow from {operand}"
                    )));
                }
            }
        }
        let shape = ArrayShape::with_kinds(operand.element(), sizes.to_vec(), kinds)?;
        Ok(Reshape { shape })
    }
}

impl OpDef for Reshape {
    const OPCODE: &'static str = "reshape";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

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
    const NEEDS_SHAPE: bool = true;

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
    const NEEDS_SHAPE: bool = true;

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
    fn bounded_dimensions_are_followed() {
        let to = |operand, sizes: &[usize]| {
            let reshape = Reshape::to_sizes(&array(operand), sizes);
            reshape.map_or_else(|e| e.to_string(), |op| infer(op, &[operand]))
        };
        assert_eq!(to("f32[2,3]", &[6]), "f32[6]");
        assert_eq!(to("f32[<=2,3]", &[2, 3]), "f32[<=2,3]");
        assert_eq!(to("f32[<=2,3,4]", &[2, 12]), "f32[<=2,12]");
        assert_eq!(to("f32[2,<=3,4]", &[6, 4]), "f32[<=6,4]");
        assert_eq!(to("f32[<=5]", &[1, 5, 1]), "f32[1,<=5,1]");
        assert_eq!(to("f32[1,<=5]", &[5]), "f32[<=5]");
        assert_eq!(to("f32[<=5,0]", &[0]), "f32[<=0]");
        assert_eq!(to("f32[?]", &[6]), "f32[6]");
        let unknown = "which dimension of";
        assert!(to("f32[<=6]", &[2, 3]).contains(unknown));
        assert!(to("f32[<=4,3]", &[3, 4]).contains(unknown));
        assert!(to("f32[2,<=1]", &[2]).contains(unknown));
        assert_eq!(to("f32[<=4]", &[5]), "reshape.C4");
        assert_eq!(
            to("f32[4]", &[usize::MAX, 4]),
            "invalid argument[shape.C2]: f32[18446744073709551615,4] takes more bytes than memory has addresses, counting sizes of 0 as 1"
        );
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
