//! Bodies and conditions for a state of other elements.

use helio_ir::ops::{Constant, GetTupleElement, Parameter, Tuple};
use helio_ir::{Array, CompId, Computation, Instr, InstrId, Op, Result, Shape};

use super::plan::{Fate, LoopAnalysis};
use crate::draft::{Draft, parameter_number};

/// The state that takes the place of another.
pub(super) struct NewState<'a> {
    /// What becomes of the old elements.
    pub plan: &'a LoopAnalysis,
    /// For each old element that is a constant, the instructions that make it, each the operand of
    /// the next.
    pub constants: Vec<Option<Vec<Instr>>>,
    /// For each instruction of the body, what it gives if it is a comparison that always gives the same.
    pub known: Vec<Option<bool>>,
    /// The shape of the new state: what is kept, then what is computed before the loop.
    pub shape: Shape,
}

impl NewState<'_> {
    /// The condition, of the new state.
    pub(super) fn condition(&self, draft: &mut Draft<'_>, id: CompId) -> Result<CompId> {
        let old = draft.module().computation(id).clone();
        let mut new = Draft::new(draft.module(), old.name.clone());
        let state = self.parameter(&mut new)?;
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs().len());
        for instr in old.instrs() {
            new.stand_for(instr);
            map.push(match self.element(&mut new, &old, instr, state)? {
                Some(id) => id,
                None => new.carry(instr.clone(), &map),
            });
        }
        let new = new.finish(map[old.root().index()])?;
        draft.module().push(new)
    }

    /// The body, from the new state to the next.
    pub(super) fn body(&self, draft: &mut Draft<'_>, id: CompId) -> Result<CompId> {
        let old = draft.module().computation(id).clone();
        let mut new = Draft::new(draft.module(), old.name.clone());
        let state = self.parameter(&mut new)?;
        let mut map = vec![state; old.instrs().len()];
        // What is computed before the loop is passed on as it is.
        let mut passed = Vec::with_capacity(self.plan.hoisted.len());
        for (i, hoisted) in self.plan.hoisted.iter().enumerate() {
            let index = self.plan.kept() + i;
            let element = new.add(GetTupleElement { index }, &[state])?;
            map[hoisted.index()] = element;
            passed.push(element);
        }
        for id in old.ids().filter(|&id| self.plan.is_computed(id)) {
            let instr = old.instr(id);
            new.stand_for(instr);
            map[id.index()] =
                match (self.known[id.index()], self.element(&mut new, &old, instr, state)?) {
                    (Some(known), _) => new.add(Constant::new(Array::scalar(known)), &[])?,
                    (None, Some(id)) => id,
                    (None, None) => new.carry(instr.clone(), &map),
                };
        }
        let kept = old.instr(old.root()).operands.iter().zip(&self.plan.fates);
        let kept = kept.filter(|(_, fate)| matches!(fate, Fate::Kept(_)));
        let mut next: Vec<InstrId> = kept.map(|(id, _)| map[id.index()]).collect();
        next.extend(passed);
        new.stand_for(old.instr(old.root()));
        let root = new.add(Tuple, &next)?;
        let new = new.finish(root)?;
        draft.module().push(new)
    }

    fn parameter(&self, new: &mut Draft<'_>) -> Result<InstrId> {
        new.add(Parameter { number: 0, shape: self.shape.clone() }, &[])
    }

    /// What stands for an instruction of the old computation that is the state or takes an element
    /// of it.
    fn element(
        &self,
        new: &mut Draft<'_>,
        old: &Computation,
        instr: &Instr,
        state: InstrId,
    ) -> Result<Option<InstrId>> {
        let is_state = |instr: &Instr| parameter_number(&instr.op).is_some();
        if is_state(instr) {
            return Ok(Some(state));
        }
        let index = match instr.op {
            Op::GetTupleElement(op) if is_state(old.instr(instr.operands[0])) => op.index,
            _ => return Ok(None),
        };
        match (&self.plan.fates[index], &self.constants[index]) {
            (Fate::Kept(index), _) => {
                let element = new.add(GetTupleElement { index: *index }, &[state])?;
                new.rename(element, instr.name.clone());
                Ok(Some(element))
            }
            (_, Some(chain)) => {
                let mut last = state;
                for instr in chain {
                    let mut next = instr.clone();
                    next.operands.fill(last);
                    last = new.push(next);
                }
                Ok(Some(last))
            }
            // Nobody reads it: what would is dead as well.
            (Fate::Dead | Fate::Constant, None) => Ok(Some(state)),
        }
    }
}

/// The instructions that make a constant, each the operand of the next.
pub(super) fn constant_chain(draft: &Draft<'_>, id: InstrId) -> Vec<Instr> {
    let operands = draft.operands(id).iter();
    let mut chain: Vec<Instr> = operands.map(|&id| draft.instr(id).clone()).collect();
    chain.push(draft.instr(id).clone());
    chain
}
