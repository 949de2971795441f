//! Arrays of bounded dimensions as arrays of static ones.
//!
//! A program whose arrays have sizes that are known only at run time becomes one in which each of them is
//! a tuple: an array as large as the bounds, and the size of each bounded dimension as `s32[]`. Elements
//! beyond the sizes are padding, and may hold anything; operations that would let it be seen put in its
//! place what changes nothing (a fold's identity, the value of a `pad`), or sort it to the end. What a size
//! must be is checked where it does not follow from the program: by a custom call of
//! [`ASSERT`](helio_eval::ASSERT).

mod assertion;
mod fold;
mod indexed;
mod movement;
mod reshape;
mod writer;

use helio_ir::ops::{Parameter, Tuple};
use helio_ir::{
    ArrayShape, Computation, DimKind, Error, Instr, InstrId, Module, ModuleConfig, Op, Result,
    Shape,
};

use crate::draft::Draft;
use crate::inline::inline;
use crate::pass::PassCx;
use crate::rebuild::rebuild;
use writer::Writer;

/// Whether any array of a module has a bounded dimension.
fn has_bounds(module: &Module) -> bool {
    let of = |computation: &Computation| {
        computation.instrs().iter().any(|instr| has_bounded_array(&instr.shape))
    };
    module.computations().iter().any(of)
}

/// Makes bounded dimensions as large as their bounds, and carries sizes beside the arrays: parameters and
/// result of the module have the shapes that [`at_bounds`] gives. The module is left as it is if some
/// operation has no such form (collectives, custom calls, batch normalisation, transforms along bounded
/// dimensions and some others), or a dimension is unbounded.
pub(crate) fn carry_sizes(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !has_bounds(&module) {
        return Ok(module);
    }
    let inlined = inline(module.clone(), cx)?;
    let (params, result) = {
        let program = inlined.entry().program_shape();
        (program.params, program.result)
    };
    let mut is_whole = true;
    let rewritten = rebuild(inlined, cx.watch, |new, computation| {
        let rewritten = rewrite(Draft::new(new, computation.name.clone()), computation)?;
        rewritten.ok_or_else(|| {
            is_whole = false;
            Error::unimplemented("an operation that has no form at the bounds of its arrays")
        })
    });
    match rewritten {
        Err(_) if !is_whole => Ok(module),
        Err(error) => Err(error),
        Ok(mut module) => {
            adjust(&mut module.config, &params, &result);
            Ok(module)
        }
    }
}

/// The shape of a value in a module that carries sizes: each array of bounded dimensions becomes a tuple of the array at
/// its bounds and an `s32[]` for each bounded dimension, in order.
///
/// Errors: a dimension is unbounded.
pub fn at_bounds(shape: &Shape) -> Result<Shape> {
    match shape {
        Shape::Array(array) if !array.is_static() => {
            let mut parts = vec![Shape::Array(static_shape(array)?)];
            parts.extend(bounded_dims(array).map(|_| Shape::scalar(helio_ir::ElementType::S32)));
            Ok(Shape::Tuple(parts))
        }
        Shape::Tuple(parts) => {
            Ok(Shape::Tuple(parts.iter().map(at_bounds).collect::<Result<_>>()?))
        }
        other => Ok(other.clone()),
    }
}

/// The bounded dimensions of an array.
pub fn bounded_dims(array: &ArrayShape) -> impl Iterator<Item = usize> + '_ {
    let kinds = array.kinds().iter().enumerate();
    kinds.filter(|&(_, &kind)| kind == DimKind::Bounded).map(|(d, _)| d)
}

/// The array at its bounds. Errors: a dimension is unbounded.
fn static_shape(array: &ArrayShape) -> Result<ArrayShape> {
    if array.is_unbounded() {
        return Err(Error::unimplemented("an unbounded dimension"));
    }
    ArrayShape::of_sizes(array.element(), array.dims())
}

/// Whether an array of a shape, tuples taken apart, has dimensions that are not static.
fn has_bounded_array(shape: &Shape) -> bool {
    match shape {
        Shape::Tuple(parts) => parts.iter().any(has_bounded_array),
        leaf => is_bounded(leaf),
    }
}

fn is_bounded(shape: &Shape) -> bool {
    shape.as_array().is_some_and(|array| !array.is_static())
}

/// Has the module say of the new parameters and results what it says of the old ones.
fn adjust(config: &mut ModuleConfig, params: &[Shape], result: &Shape) {
    config.entry_layout = None;
    for alias in &mut config.input_output_alias {
        to_data(&mut alias.output, Some(result));
        to_data(&mut alias.parameter_index, params.get(alias.parameter));
    }
    for (parameter, index) in &mut config.buffer_donors {
        to_data(index, params.get(*parameter));
    }
}

/// The path to an array, as one to its data where its sizes are beside it.
fn to_data(path: &mut Vec<usize>, shape: Option<&Shape>) {
    let element = |at: &'_ Shape, &index: &usize| at.as_tuple()?.get(index).cloned();
    let found = path.iter().try_fold(shape.cloned(), |at, index| Some(element(&at?, index)));
    if found.flatten().as_ref().is_some_and(is_bounded) {
        path.push(0);
    }
}

/// The computation at the bounds; `None` if one of its operations has no form there.
fn rewrite(draft: Draft<'_>, old: Computation) -> Result<Option<Computation>> {
    let shapes: Vec<Shape> = old.instrs().iter().map(|instr| instr.shape.clone()).collect();
    if shapes.iter().any(has_other_kinds) {
        return Ok(None);
    }
    let root = old.root();
    let mut writer = Writer::new(draft, &shapes);
    for instr in old.into_instrs() {
        writer.next(&instr);
        let Some(new) = instruction(&mut writer, &instr)? else { return Ok(None) };
        writer.draft.name(new, instr);
        writer.map.push(new);
    }
    let root = writer.map[root.index()];
    writer.draft.finish(root).map(Some)
}

/// Whether an array has an unbounded dimension, or one of more elements than its size as `s32` can say.
fn has_other_kinds(shape: &Shape) -> bool {
    shape.leaves().into_iter().filter_map(Shape::as_array).any(|array| {
        let is_large = |d: usize| i32::try_from(array.dims()[d]).is_err();
        array.is_unbounded() || bounded_dims(array).any(is_large)
    })
}

/// What an instruction becomes; `None` if it has no form at the bounds.
fn instruction(w: &mut Writer<'_, '_>, old: &Instr) -> Result<Option<InstrId>> {
    let has_bounds = |id: InstrId| w.has_bounds[id.index()];
    let here = InstrId(w.map.len() as u32);
    if !has_bounds(here) && !old.operands.iter().any(|&id| has_bounds(id)) {
        return Ok(Some(w.draft.carry(old.clone(), &w.map)));
    }
    match &old.op {
        Op::Parameter(op) => {
            let shape = at_bounds(&op.shape)?;
            w.draft.add(Parameter { number: op.number, shape }, &[]).map(Some)
        }
        Op::Constant(op) => w.constant(op).map(Some),
        Op::Tuple(_)
        | Op::GetTupleElement(_)
        | Op::Call(_)
        | Op::While(_)
        | Op::Conditional(_)
        | Op::OptimizationBarrier(_) => {
            let operands: Vec<InstrId> = old.operands.iter().map(|id| w.map[id.index()]).collect();
            match old.op {
                Op::GetTupleElement(ref op) => w.element(operands[0], op.index).map(Some),
                Op::Tuple(_) => w.draft.add(Tuple, &operands).map(Some),
                _ => w.draft.add(old.op.clone(), &operands).map(Some),
            }
        }
        Op::GetDimensionSize(op) => {
            let x = w.operand(old, 0)?;
            w.size(&x, op.dimension).map(Some)
        }
        Op::SetDimensionSize(op) => movement::set_dimension_size(w, op, old).map(Some),
        Op::Map(_) => w.elementwise(old),
        op if op.family() == helio_ir::ops::Family::Elementwise => w.elementwise(old),
        Op::Iota(op) => movement::iota(w, op, old).map(Some),
        Op::Broadcast(op) => movement::broadcast(w, op, old).map(Some),
        Op::Transpose(op) => movement::transpose(w, op, old).map(Some),
        Op::Reverse(op) => movement::reverse(w, op, old).map(Some),
        Op::Concatenate(op) => movement::concatenate(w, op, old).map(Some),
        Op::Slice(op) => movement::slice(w, op, old).map(Some),
        Op::Pad(op) => movement::pad(w, op, old),
        Op::DynamicSlice(op) => movement::dynamic_slice(w, op, old),
        Op::DynamicUpdateSlice(op) => movement::dynamic_update_slice(w, op, old),
        Op::Reshape(op) => reshape::reshape(w, &op.shape, old),
        Op::DynamicReshape(op) => reshape::dynamic_reshape(w, &op.shape, old),
        Op::Reduce(op) => fold::reduce(w, op, old),
        Op::ReduceWindow(op) => fold::reduce_window(w, op, old),
        Op::Dot(op) => fold::dot(w, op, old),
        Op::Convolution(op) => fold::convolution(w, op, old),
        Op::Sort(op) => indexed::sort(w, op, old).map(Some),
        Op::TopK(op) => indexed::top_k(w, op, old),
        Op::Gather(op) => indexed::gather(w, op, old),
        Op::Scatter(op) => indexed::scatter(w, op, old),
        Op::Cholesky(_) | Op::TriangularSolve(_) | Op::Fft(_) => fold::of_last_dims(w, old),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{after, check};

    const ADD: &str =
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";

    #[test]
    fn sizes_stand_beside_arrays_and_padding_folds_to_nothing() {
        check(
            "carry-sizes",
            &format!(
                "HloModule m, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }} {ADD}
                 ENTRY e {{
                   x = f32[<=5,2] parameter(0)
                   z = f32[<=5,2] multiply(x, x)
                   zero = f32[] constant(0)
                   r = f32[2] reduce(z, zero), dimensions={{0}}, to_apply=add
                   ROOT t = (f32[<=5,2], f32[2]) tuple(z, r)
                 }}"
            ),
            &format!(
                "HloModule m, input_output_alias={{ {{0,0}}: (0, {{0}}, may-alias) }} {ADD}
                 ENTRY e {{
                   x = (f32[5,2], s32[]) parameter(0)
                   get-tuple-element = s32[] get-tuple-element(x), index=1
                   get-tuple-element.1 = f32[5,2] get-tuple-element(x), index=0
                   multiply = f32[5,2] multiply(get-tuple-element.1, get-tuple-element.1)
                   z = (f32[5,2], s32[]) tuple(multiply, get-tuple-element)
                   zero = f32[] constant(0)
                   iota = s32[5,2] iota(), iota_dimension=0
                   broadcast = s32[5,2] broadcast(get-tuple-element), dimensions={{}}
                   compare = pred[5,2] compare(iota, broadcast), direction=LT
                   constant = f32[] constant(-0)
                   broadcast.1 = f32[5,2] broadcast(constant), dimensions={{}}
                   select = f32[5,2] select(compare, multiply, broadcast.1)
                   r = f32[2] reduce(select, zero), dimensions={{0}}, to_apply=add
                   ROOT t = ((f32[5,2], s32[]), f32[2]) tuple(z, r)
                 }}"
            ),
        );
    }

    #[test]
    fn what_follows_from_no_shape_is_asserted_once() {
        let text = "ENTRY e {
            x = f32[<=5] parameter(0)
            y = f32[<=5] parameter(1)
            a = f32[<=5] add(x, y)
            b = f32[<=5] subtract(y, x)
            c = f32[<=5] multiply(a, x)
            ROOT t = (f32[<=5], f32[<=5], f32[<=5]) tuple(a, b, c)
        }";
        let found = after("carry-sizes", text);
        assert_eq!(found.matches("helio.assert").count(), 1, "{found}");
        // A size that is a constant within its bound, and the size of another array that is no larger.
        let text = "ENTRY e {
            x = f32[9] parameter(0)
            two = s32[] constant(2)
            y = f32[<=9] set-dimension-size(x, two), dimensions={0}
            s = s32[] get-dimension-size(y), dimensions={0}
            ROOT z = f32[<=9] set-dimension-size(x, s), dimensions={0}
        }";
        assert!(!after("carry-sizes", text).contains("helio.assert"));
    }

    #[test]
    fn what_has_no_form_at_the_bounds_stays() {
        for text in [
            "ENTRY e { x = f8e8m0fnu[<=9] parameter(0)
             ROOT y = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
            "ENTRY e { x = f32[<=9] parameter(0)
             ROOT y = f32[<=9] custom-call(x), custom_call_target=\"f\" }",
            "ENTRY e { x = c64[<=8] parameter(0)
             ROOT y = c64[<=8] fft(x), fft_type=FFT, fft_length={8} }",
        ] {
            assert!(after("carry-sizes", text).contains("[<="), "{text}");
        }
    }
}
