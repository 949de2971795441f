//! Reductions by computations of other float types than what they fold, as reductions of what has
//! been converted to these types.

use helio_ir::ops::{Convert, Reduce};
use helio_ir::{ArrayShape, CompId, Computation, ElementType, Instr, InstrId, Module, Op, Result};

use crate::draft::Draft;

/// Whether an instruction is such a reduction.
pub(super) fn is_mixed(module: &Module, computation: &Computation, instr: &Instr) -> bool {
    let Op::Reduce(op) = &instr.op else { return false };
    let element = |id: &InstrId| computation.instr(*id).shape.as_array().map(ArrayShape::element);
    let wanted = types(module, op.to_apply);
    wanted.len() != instr.operands.len() || !instr.operands.iter().map(element).eq(wanted)
}

/// The types that a reducer wants of the operands of a reduction, in their order: arrays, then
/// initial values. (Its parameters are accumulators, then elements.)
fn types(module: &Module, reducer: CompId) -> Vec<Option<ElementType>> {
    let params = module.computation(reducer).program_shape().params;
    let mut types: Vec<_> =
        params.iter().map(|param| param.as_array().map(ArrayShape::element)).collect();
    let accumulators = types.len() / 2;
    types.rotate_left(accumulators);
    types
}

/// A reduction with its operands converted; `None` if they have the types of the reducer.
pub(super) fn reduce(
    draft: &mut Draft<'_>,
    op: &Reduce,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let wanted = types(draft.callees(), op.to_apply);
    let mut converted = Vec::with_capacity(operands.len());
    for (&id, wanted) in operands.iter().zip(wanted) {
        let found = draft.array(id).map(ArrayShape::element);
        converted.push(match wanted.filter(|_| wanted != found) {
            Some(element) => draft.add(Convert { element }, &[id])?,
            None => id,
        });
    }
    if converted == operands {
        return Ok(None);
    }
    draft.add(op.clone(), &converted).map(Some)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn reductions_in_other_types() {
        let add = |ty: &str| {
            format!(
                "add {{ a = {ty}[] parameter(0)  b = {ty}[] parameter(1)
                 ROOT s = {ty}[] add(a, b) }}"
            )
        };
        check(
            "expand",
            &format!(
                "{} ENTRY e {{
                  x = bf16[2,3] parameter(0)
                  z = f32[] parameter(1)
                  ROOT r = f32[2] reduce(x, z), dimensions={{1}}, to_apply=add
                }}",
                add("f32")
            ),
            &format!(
                "{} ENTRY e {{
                  x = bf16[2,3] parameter(0)
                  z = f32[] parameter(1)
                  convert = f32[2,3] convert(x)
                  ROOT reduce = f32[2] reduce(convert, z), dimensions={{1}}, to_apply=add
                }}",
                add("f32")
            ),
        );
        let uniform = format!(
            "{} ENTRY e {{
              x = f64[2,3] parameter(0)
              z = f64[] parameter(1)
              ROOT r = f64[2] reduce(x, z), dimensions={{1}}, to_apply=add
            }}",
            add("f64")
        );
        check("expand", &uniform, &uniform);
    }
}
