//! `call`, `fusion` and `map`: a computation run on the operands, or on each of their elements.

use super::Arity;
use super::check::{ensure_params, merge_arrays};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, InferCx, OpDef, Result, Shape, ensure};

/// Runs a computation on the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The computation, whose parameters are the operands.
    pub to_apply: CompId,
    /// Whether it stands for a named composite (`frontend_attributes` has the name).
    pub is_composite: bool,
}

impl Call {
    /// A plain call.
    pub fn new(to_apply: CompId) -> Self {
        Call { to_apply, is_composite: false }
    }
}

impl OpDef for Call {
    const OPCODE: &'static str = "call";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        infer_call("call.C1", self.to_apply, cx)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Call {
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
            is_composite: attrs.flag("is_composite")?.unwrap_or(false),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.computation("to_apply", self.to_apply);
        attrs.flag("is_composite", self.is_composite);
    }

    calls!(to_apply);
}

/// Applies a computation of scalars to the operands' elements, one of each operand at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The numbers of all dimensions, in ascending order: HLO has no other maps.
    pub dimensions: Vec<usize>,
    /// The computation, with a scalar parameter for each operand.
    pub to_apply: CompId,
}

impl OpDef for Map {
    const OPCODE: &'static str = "map";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operands = cx.arrays("map.C1")?;
        let merged = merge_arrays("map.C2", &operands)?;
        ensure!(
            self.dimensions.iter().copied().eq(0..merged.rank()),
            "map.C3",
            "dimensions: must be all {} dimensions in order, are {:?}",
            merged.rank(),
            self.dimensions
        );
        let callee = cx.callee(self.to_apply);
        let params: Vec<_> = operands.iter().map(|array| Shape::scalar(array.element())).collect();
        ensure_params("map.C4", "to_apply", callee, params.iter())?;
        let result = callee.result_shape();
        let scalar = result.as_array().filter(|array| array.is_scalar());
        ensure!(
            scalar.is_some(),
            "map.C5",
            "to_apply {} must give a scalar, gives {result}",
            callee.name
        );
        let element = scalar.map_or(merged.element(), |array| array.element());
        merged.with_element(element).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let to_apply = attrs.needed("to_apply", AttrReader::computation)?;
        let dimensions = match attrs.sizes("dimensions")? {
            Some(dimensions) => dimensions,
            None => {
                let operand = attrs.operands.first().and_then(|shape| shape.as_array());
                (0..operand.map_or(0, |array| array.rank())).collect()
            }
        };
        Ok(Map { dimensions, to_apply })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list("dimensions", &self.dimensions);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

/// Runs a computation that a compiler has made of instructions to be one kernel; its value is that
/// of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fusion {
    /// XLA's fusion kind (`kLoop`); without effect on the value.
    pub kind: String,
    /// The computation, whose parameters are the operands.
    pub calls: CompId,
    /// Buffers shared by result and operands, as written.
    pub output_to_operand_aliasing: Option<String>,
}

impl OpDef for Fusion {
    const OPCODE: &'static str = "fusion";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        infer_call("fusion.C1", self.calls, cx)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Fusion {
            kind: attrs.needed("kind", AttrReader::word)?.to_owned(),
            calls: attrs.needed("calls", AttrReader::computation)?,
            output_to_operand_aliasing: attrs.take("output_to_operand_aliasing").map(str::to_owned),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("kind", &self.kind);
        if let Some(aliasing) = &self.output_to_operand_aliasing {
            attrs.put("output_to_operand_aliasing", aliasing);
        }
        attrs.computation("calls", self.calls);
    }

    calls!(calls);
}

/// The shape that a computation gives. Errors: `rule`, unless it takes the operands.
fn infer_call(rule: &'static str, callee: CompId, cx: &InferCx<'_>) -> Result<Shape> {
    let callee = cx.callee(callee);
    ensure_params(rule, "computation", callee, cx.operands.iter().copied())?;
    Ok(callee.result_shape().without_layout())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{C0, infer_in, module};

    #[test]
    fn call_and_fusion() {
        let module = module(&[(&["f32[2]", "s32[]"], "(f32[2], token[])")]);
        let fusion =
            Fusion { kind: "kLoop".to_owned(), calls: C0, output_to_operand_aliasing: None };
        let call = |operands: &[&str]| infer_in(&module, Call::new(C0), operands);
        let fusion = |operands: &[&str]| infer_in(&module, fusion.clone(), operands);
        assert_eq!(call(&["f32[2]", "s32[]"]), "(f32[2], token[])");
        assert_eq!(fusion(&["f32[2]", "s32[]"]), "(f32[2], token[])");
        assert_eq!(call(&["f32[2]"]), "call.C1");
        assert_eq!(call(&["f32[2]", "s64[]"]), "call.C1");
        assert_eq!(call(&["f32[<=2]", "s32[]"]), "call.C1");
        assert_eq!(fusion(&["f32[3]", "s32[]"]), "fusion.C1");
    }

    #[test]
    fn map() {
        let module = module(&[(&["f32[]", "s32[]"], "pred[]"), (&["f32[]"], "f32[1]")]);
        let by = |dimensions: &[usize], comp, operands: &[&str]| {
            let map = Map { dimensions: dimensions.to_vec(), to_apply: CompId(comp) };
            infer_in(&module, map, operands)
        };
        assert_eq!(by(&[0, 1], 0, &["f32[2,3]", "s32[2,<=3]"]), "pred[2,<=3]");
        assert_eq!(by(&[0], 0, &["f32[2]", "()"]), "map.C1");
        assert_eq!(by(&[0], 0, &["f32[2]", "s32[]"]), "map.C2");
        assert_eq!(by(&[1, 0], 0, &["f32[2,3]", "s32[2,3]"]), "map.C3");
        assert_eq!(by(&[0], 0, &["f32[2]", "f32[2]"]), "map.C4");
        assert_eq!(by(&[0], 0, &["f32[2]"]), "map.C4");
        assert_eq!(by(&[0], 1, &["f32[2]"]), "map.C5");
    }
}
