//! One form for what can be said in several ways: no layouts, and none of the operations that are
//! about layouts, memory spaces or order only.

use helio_ir::ops::{Bitcast, BitcastConvert, Call, Effect, Phase, Reshape, Transpose, Yield};
use helio_ir::{ArrayShape, Instr, InstrId, Layout, Module, Op, Result, Shape};

use crate::draft::{Draft, Original};
use crate::pass::PassCx;
use crate::rebuild::rebuild;

/// Takes layouts away, and what is only about them: arrays are row-major in logical order from here
/// on. A `bitcast`, which follows layouts, becomes reshapes and transposes. `copy`, `domain`,
/// `add-dependency` and `opt-barrier` become their operands; asynchronous calls become calls.
pub(crate) fn canonicalize(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    rebuild(module, cx.watch, |new, computation| {
        if !computation.instrs().iter().any(|instr| is_replaced(&instr.op)) {
            let (mut draft, root) = Draft::of(new, computation);
            draft.instrs_mut().iter_mut().for_each(strip);
            return draft.finish(root);
        }
        let (mut draft, old) = Draft::replacing(new, computation);
        let begun = asynchronous_calls(&old);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        // The layouts that matter: those other than row-major.
        let mut layouts: Vec<Option<Layout>> = Vec::with_capacity(old.instrs.len());
        for (i, mut instr) in old.instrs.into_iter().enumerate() {
            layouts.push(layout(&instr.shape));
            draft.stand_for(&instr);
            let operand = instr.operands.first().copied();
            let value = operand.map(|id| map[id.index()]);
            let id = match (&instr.op, operand, value) {
                (Op::Bitcast(_), Some(operand), Some(value)) => {
                    let (from, to) = (layouts[operand.index()].as_ref(), layouts[i].as_ref());
                    bitcast(&mut draft, value, from, &instr.shape, to)?
                }
                (op, _, Some(value)) if op.gives() == Yield::Itself => value,
                (Op::CopyStart(_), _, Some(value)) if begun[i] => value,
                (Op::AsyncStart(op), ..) if begun[i] => {
                    let args: Vec<_> = instr.operands.iter().map(|id| map[id.index()]).collect();
                    draft.add(Call::new(op.calls), &args)?
                }
                // What was begun stands for its result.
                (op, Some(operand), Some(value))
                    if matches!(op.phase(), Phase::GoesOn | Phase::Ends)
                        && begun[operand.index()] =>
                {
                    value
                }
                _ => {
                    strip(&mut instr);
                    draft.carry(instr, &map)
                }
            };
            map.push(id);
        }
        draft.finish(map[old.root.index()])
    })
}

/// Whether an operation may be replaced by another one, or by its operand.
fn is_replaced(op: &Op) -> bool {
    matches!(op, Op::Bitcast(_)) || op.gives() == Yield::Itself || op.phase() != Phase::Once
}

/// For each instruction, whether it begins (or goes on with) something that is done in the same
/// computation and looked at by nothing else.
fn asynchronous_calls(old: &Original) -> Vec<bool> {
    let is_under_way = |instr: &Instr| match instr.op.phase() {
        Phase::Begins | Phase::GoesOn => instr.op.effect() == Effect::None,
        Phase::Once | Phase::Ends => false,
    };
    let mut begun: Vec<bool> = old.instrs.iter().map(is_under_way).collect();
    begun[old.root.index()] = false;
    for (i, instr) in old.instrs.iter().enumerate().rev() {
        for operand in &instr.operands {
            let follows = match instr.op.phase() {
                Phase::GoesOn => begun[i],
                Phase::Ends => true,
                Phase::Once | Phase::Begins => false,
            };
            begun[operand.index()] &= follows;
        }
    }
    // An update goes on with what has begun.
    for (i, instr) in old.instrs.iter().enumerate() {
        if instr.op.phase() == Phase::GoesOn {
            begun[i] &= instr.operands.iter().all(|operand| begun[operand.index()]);
        }
    }
    begun
}

/// The layout of an array, unless it is row-major.
fn layout(shape: &Shape) -> Option<Layout> {
    let array = shape.as_array()?;
    let layout = array.layout()?;
    (!layout.minor_to_major.iter().rev().copied().eq(0..array.rank())).then(|| layout.clone())
}

/// Takes the layouts of an instruction away.
fn strip(instr: &mut Instr) {
    fn has_layout(shape: &Shape) -> bool {
        match shape {
            Shape::Array(array) => array.layout().is_some(),
            Shape::Tuple(elements) => elements.iter().any(has_layout),
            Shape::Token | Shape::Opaque => false,
        }
    }
    fn strip_array(array: &mut ArrayShape) {
        if array.layout().is_some() {
            *array = array.clone().without_layout();
        }
    }
    if has_layout(&instr.shape) {
        instr.shape = instr.shape.without_layout();
    }
    match &mut instr.op {
        Op::Broadcast(op) => strip_array(&mut op.shape),
        Op::Reshape(op) => strip_array(&mut op.shape),
        Op::DynamicReshape(op) => strip_array(&mut op.shape),
        Op::Iota(op) => strip_array(&mut op.shape),
        Op::Parameter(op) if has_layout(&op.shape) => op.shape = op.shape.without_layout(),
        _ => {}
    }
}

/// The same bytes under another shape: from the operand's order in memory to the result's.
fn bitcast(
    draft: &mut Draft<'_>,
    operand: InstrId,
    from: Option<&Layout>,
    shape: &Shape,
    to: Option<&Layout>,
) -> Result<InstrId> {
    let (Some(source), Some(result)) = (draft.array(operand), shape.as_array()) else {
        return Ok(operand);
    };
    let (element, result) = (source.element(), result.clone().without_layout());
    let order = |layout: Option<&Layout>| -> Option<Vec<usize>> {
        layout.map(|layout| layout.minor_to_major.iter().rev().copied().collect())
    };
    let in_memory = match order(from) {
        Some(permutation) => draft.add(Transpose { permutation }, &[operand])?,
        None => operand,
    };
    let order = order(to);
    let dims = match &order {
        Some(order) => order.iter().map(|&d| result.dim(d)).collect(),
        None => result.dims_and_kinds().collect::<Vec<_>>(),
    };
    let recast = ArrayShape::from_dims(result.element(), dims)?;
    let is_static = result.is_static() && draft.array(in_memory).is_some_and(ArrayShape::is_static);
    let same_width = element.bits() == result.element().bits();
    let recast = if is_static && element == result.element() {
        draft.add(Reshape { shape: recast }, &[in_memory])?
    } else if is_static && same_width && !element.is_pred() && !result.element().is_pred() {
        let typed = draft.add(BitcastConvert { element: result.element() }, &[in_memory])?;
        draft.add(Reshape { shape: recast }, &[typed])?
    } else {
        draft.add(Bitcast { shape: recast }, &[in_memory])?
    };
    match order {
        Some(order) => {
            let mut permutation = vec![0; order.len()];
            for (i, &d) in order.iter().enumerate() {
                permutation[d] = i;
            }
            draft.add(Transpose { permutation }, &[recast])
        }
        None => Ok(recast),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn bitcasts() {
        check(
            "canonicalize",
            "ENTRY e {
              x = f32[2,3]{1,0} parameter(0)
              columns = f32[2,3]{0,1} copy(x)
              flat = f32[6]{0} bitcast(columns)
              bits = s32[6]{0} bitcast(flat)
              turned = s32[2,3]{0,1} bitcast(bits)
              ROOT halves = u16[2,3,2] bitcast(turned)
            }",
            "ENTRY e {
              x = f32[2,3] parameter(0)
              transpose = f32[3,2] transpose(x), dimensions={1,0}
              reshape = f32[6] reshape(transpose)
              bitcast-convert = s32[6] bitcast-convert(reshape)
              reshape.1 = s32[6] reshape(bitcast-convert)
              reshape.2 = s32[3,2] reshape(reshape.1)
              transpose.1 = s32[2,3] transpose(reshape.2), dimensions={1,0}
              transpose.2 = s32[3,2] transpose(transpose.1), dimensions={1,0}
              ROOT bitcast = u16[2,3,2] bitcast(transpose.2)
            }",
        );
    }

    #[test]
    fn asynchronous_calls_become_calls() {
        check(
            "canonicalize",
            "
            f { x = f32[2]{0} parameter(0)  ROOT y = f32[2]{0} negate(x) }
            ENTRY e {
              x = f32[2]{0} parameter(0)
              begun = ((f32[2]{0}), f32[2]{0}, s32[]) async-start(x), calls=f
              under-way = ((f32[2]{0}), f32[2]{0}, s32[]) async-update(begun)
              done = f32[2]{0} async-done(under-way)
              copying = (f32[2]{0}, f32[2]{0}, u32[]) copy-start(done)
              ROOT copied = f32[2]{0} copy-done(copying)
            }",
            "
            f { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }
            ENTRY e {
              x = f32[2] parameter(0)
              ROOT call = f32[2] call(x), to_apply=f
            }",
        );
    }
}
