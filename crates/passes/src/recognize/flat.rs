//! Computations after fusion, read as they were before it.

use helio_ir::{CompId, Computation, Instr, InstrId, Module, Op};

/// A computation as if the instructions of its fusions stood in the fusions' place.
pub(super) struct FlatComputation<'m> {
    module: &'m Module,
    computation: &'m Computation,
}

/// An instruction of a [`FlatComputation`].
#[derive(Clone, Copy)]
pub(super) struct FlatInstr {
    /// The fusion whose computation has the instruction; `None` if the computation itself has it.
    fusion: Option<InstrId>,
    id: InstrId,
}

impl<'m> FlatComputation<'m> {
    pub(super) fn new(module: &'m Module, id: CompId) -> Self {
        FlatComputation { module, computation: module.computation(id) }
    }

    /// The computation that has an instruction.
    fn home(&self, at: FlatInstr) -> &'m Computation {
        match at.fusion.map(|fusion| &self.computation.instr(fusion).op) {
            Some(Op::Fusion(op)) => self.module.computation(op.calls),
            _ => self.computation,
        }
    }

    pub(super) fn instr(&self, at: FlatInstr) -> &'m Instr {
        self.home(at).instr(at.id)
    }

    pub(super) fn root(&self) -> FlatInstr {
        self.settle(FlatInstr { fusion: None, id: self.computation.root() })
    }

    /// What operand `i` of an instruction is; `None` if it has fewer operands.
    pub(super) fn operand(&self, at: FlatInstr, i: usize) -> Option<FlatInstr> {
        let id = *self.instr(at).operands.get(i)?;
        Some(self.settle(FlatInstr { id, ..at }))
    }

    /// The instruction that computes the value of another: the root behind a fusion or an element of
    /// its result, the fusion's operand behind a parameter. The search ends because operands precede
    /// their users.
    fn settle(&self, mut at: FlatInstr) -> FlatInstr {
        loop {
            let instr = self.instr(at);
            let first = instr.operands.first().copied();
            let fused = |id: InstrId| match &self.computation.instr(id).op {
                Op::Fusion(op) => Some(self.module.computation(op.calls)),
                _ => None,
            };
            at = match (&instr.op, at.fusion, first) {
                (Op::Fusion(_), None, _) => {
                    let Some(inner) = fused(at.id) else { return at };
                    FlatInstr { fusion: Some(at.id), id: inner.root() }
                }
                (Op::GetTupleElement(op), None, Some(from)) => {
                    let Some(inner) = fused(from) else { return at };
                    let root = inner.instr(inner.root());
                    let element = root.operands.get(op.index);
                    match (&root.op, element) {
                        (Op::Tuple(_), Some(&id)) => FlatInstr { fusion: Some(from), id },
                        _ => return at,
                    }
                }
                (Op::Parameter(param), Some(fusion), _) => {
                    let operands = &self.computation.instr(fusion).operands;
                    match operands.get(param.number) {
                        Some(&id) => FlatInstr { fusion: None, id },
                        None => return at,
                    }
                }
                _ => return at,
            };
        }
    }
}
