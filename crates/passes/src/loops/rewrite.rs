//! Bodies and conditions for a state of other elements.

use helio_ir::ops::{Compare, Constant, Convert, GetTupleElement, Parameter, Tuple, While};
use helio_ir::{Array, BinaryOp, CompId, Computation, Error, Instr, InstrId, Op, Result, Shape};

use super::plan::{Fate, LoopAnalysis};
use super::ranges::Count;
use crate::draft::{Draft, parameter_number};
use crate::recognize::{Counter, counted_loop};

/// The state that takes the place of another.
pub(super) struct NewState<'a> {
    /// What becomes of the old elements.
    pub plan: &'a LoopAnalysis,
    /// For each old element that is a constant, the instructions that make it, each the operand of
    /// the next.
    pub constants: Vec<Option<Vec<Instr>>>,
    /// For each instruction of the body, what it gives if it is a comparison that always gives the same.
    pub known: Vec<Option<bool>>,
    /// For each old element, by how much it counts if it is an `s32` in the new state.
    pub narrowed: Vec<Option<Count>>,
    /// The shape of the new state: what is kept, then what is computed before the loop.
    pub shape: Shape,
}

impl NewState<'_> {
    /// The condition, of the new state.
    pub(super) fn condition(&self, draft: &mut Draft<'_>, op: While) -> Result<CompId> {
        let counter = counted_loop(draft.module(), op.condition, op.body);
        let old = draft.module().computation(op.condition).clone();
        if let Some(counter) = counter
            && let Some(index) = counter.index.filter(|&index| self.narrowed[index].is_some())
        {
            return self.narrow_condition(draft, &old, counter, index);
        }
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

    /// The condition of a counter that has become an `s32`.
    fn narrow_condition(
        &self,
        draft: &mut Draft<'_>,
        old: &Computation,
        counter: Counter,
        index: usize,
    ) -> Result<CompId> {
        let mut new = Draft::new(draft.module(), old.name.clone());
        new.stand_for(old.instr(old.root()));
        let state = self.parameter(&mut new)?;
        let Fate::Kept(index) = self.plan.fates[index] else {
            return Err(Error::internal("a counter that is not kept"));
        };
        let element = new.add(GetTupleElement { index }, &[state])?;
        let limit = new.add(Constant::new(Array::scalar(counter.limit() as i32)), &[])?;
        let root = new.add(Compare::new(counter.direction()), &[element, limit])?;
        let new = new.finish(root)?;
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
        new.stand_for(old.instr(old.root()));
        let mut next: Vec<InstrId> = Vec::with_capacity(self.plan.kept() + passed.len());
        let old_next = old.instr(old.root()).operands.iter();
        for ((id, fate), count) in old_next.zip(&self.plan.fates).zip(&self.narrowed) {
            let &Fate::Kept(index) = fate else { continue };
            next.push(match count {
                Some(count) => {
                    let element = new.add(GetTupleElement { index }, &[state])?;
                    let step = new.add(Constant::new(Array::scalar(count.step as i32)), &[])?;
                    new.add(BinaryOp::Add, &[element, step])?
                }
                None => map[id.index()],
            });
        }
        next.extend(passed);
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
        let old_index = match instr.op {
            Op::GetTupleElement(op) if is_state(old.instr(instr.operands[0])) => op.index,
            _ => return Ok(None),
        };
        match (&self.plan.fates[old_index], &self.constants[old_index]) {
            (Fate::Kept(index), _) => {
                let mut element = new.add(GetTupleElement { index: *index }, &[state])?;
                if let Some(array) =
                    instr.shape.as_array().filter(|_| self.narrowed[old_index].is_some())
                {
                    element = new.add(Convert { element: array.element() }, &[element])?;
                }
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
