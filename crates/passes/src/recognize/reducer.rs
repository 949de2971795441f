//! Reducers that are one operation, such as an addition.

use helio_ir::{BinaryOp, CompId, InstrId, Module, Op};

/// The operation that a reducer of two scalars is, if it is one operation of its two parameters.
pub fn reducer(module: &Module, id: CompId) -> Option<BinaryOp> {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let Op::Binary(op) = root.op else { return None };
    let param = |id: InstrId| match computation.instr(id).op {
        Op::Parameter(ref param) => Some(param.number),
        _ => None,
    };
    let mut params = [param(root.operands[0])?, param(root.operands[1])?];
    if op.is_commutative() {
        params.sort_unstable();
    }
    (params == [0, 1]).then_some(op)
}
