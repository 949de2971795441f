//! Reducers that are one operation, such as an addition.

use helio_ir::{BinaryOp, CompId, ElementType, InstrId, Module, Op};

/// The operation that a reducer of two scalars is, if it is one operation of its two parameters and
/// parameters and result have this element type. (A reducer of floats may have another type than what
/// it folds, to which that is then converted, and which rounds its result.)
pub fn reducer(module: &Module, id: CompId, element: ElementType) -> Option<BinaryOp> {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let Op::Binary(op) = root.op else { return None };
    let is_typed = |id: InstrId| {
        computation.instr(id).shape.as_array().is_some_and(|array| array.element() == element)
    };
    let param = |id: InstrId| match computation.instr(id).op {
        Op::Parameter(ref param) if is_typed(id) => Some(param.number),
        _ => None,
    };
    if !is_typed(computation.root()) {
        return None;
    }
    let mut params = [param(root.operands[0])?, param(root.operands[1])?];
    if op.is_commutative() {
        params.sort_unstable();
    }
    (params == [0, 1]).then_some(op)
}

/// Whether a reducer is one operation of its parameters that gives something else if elements are
/// folded with each other first, such as a difference. (Of longer reducers nothing is known.)
pub fn is_ordered(module: &Module, id: CompId) -> bool {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let param = |id: &InstrId| match computation.instr(*id).op {
        Op::Parameter(ref param) => Some(param.number),
        _ => None,
    };
    let params: Option<Vec<usize>> = root.operands.iter().map(param).collect();
    match (&root.op, params.as_deref()) {
        (Op::Binary(op), Some(&[a, b])) => a == b || !op.is_commutative() || !op.is_associative(),
        _ => false,
    }
}
