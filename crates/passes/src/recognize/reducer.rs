//! Reducers that are one operation, such as an addition.

use helio_ir::{Array, BinaryOp, CompId, ElementType, InstrId, Module, Number, Op};

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
    if commutes(op, element) {
        params.sort_unstable();
    }
    (params == [0, 1]).then_some(op)
}

/// Whether the operands of an operation on elements of this type may change places. Of two complex numbers
/// with a NaN in them, the first is the greater, and the lesser.
pub(crate) fn commutes(op: BinaryOp, element: ElementType) -> bool {
    let chooses = matches!(op, BinaryOp::Maximum | BinaryOp::Minimum);
    op.is_commutative() && !(chooses && element.is_complex())
}

/// Whether combining a value with itself gives the value.
pub(crate) fn is_idempotent(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::And | BinaryOp::Or)
}

/// Whether it makes no difference, but for the sign of zero, how often an initial value is combined, of which this is known.
pub(crate) fn may_repeat(op: BinaryOp, init: Option<&Array>) -> bool {
    is_idempotent(op)
        || init.is_some_and(|init| {
            let element = init.element();
            op.neutral(element).is_some_and(|neutral| init.bits(0) == neutral)
                || op == BinaryOp::Add
                    && element.is_float()
                    && matches!(init.number(0), Number::Float(zero) if zero == 0.0)
        })
}

/// Whether a reducer gives something else if elements are folded with each other first, as a difference
/// does: whether any of its results is one operation of parameters, but not an associative and
/// commutative one of its accumulator and its element. (Of longer reducers nothing is known.)
pub fn is_ordered(module: &Module, id: CompId) -> bool {
    let computation = module.computation(id);
    let root = computation.root();
    let results = match computation.instr(root).op {
        Op::Tuple(_) => &computation.instr(root).operands[..],
        _ => std::slice::from_ref(&root),
    };
    let param = |id: &InstrId| match computation.instr(*id).op {
        Op::Parameter(ref param) => Some(param.number),
        _ => None,
    };
    let is_ordered = |(leaf, &id): (usize, &InstrId)| {
        let result = computation.instr(id);
        let params: Option<Vec<usize>> = result.operands.iter().map(param).collect();
        match (&result.op, params.as_deref()) {
            (Op::Binary(op), Some(&[a, b])) => {
                let own = [leaf, leaf + results.len()];
                [a.min(b), a.max(b)] != own || !op.is_commutative() || !op.is_associative()
            }
            _ => false,
        }
    };
    results.iter().enumerate().any(is_ordered)
}
