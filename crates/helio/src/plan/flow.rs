//! The steps of `while` and `conditional`, and where their state and results lie.

use std::collections::{HashMap, HashSet};

use helio_codegen::state_loop::state_loop;
use helio_ir::{Array, ArrayShape, CompId, ElementType, InstrId, Literal, Number, Op, ops};
use helio_passes::recognize;
use helio_runtime::program::{Branch, Selector, While};

use super::arrays::{self, ArrayId};
use super::native::{LoopCode, Steps};
use super::{Action, Frame, Loop, Owner, Planned, Planner, Source, Step, StorageId};

/// The steps of a loop.
struct LoopSteps {
    cond: Vec<Step>,
    /// What the condition computes.
    go: StorageId,
    body: Vec<Step>,
    /// Where an iteration leaves each array of the next state.
    next: Vec<StorageId>,
}

impl<'m> Planner<'m> {
    /// A loop. Its state has storages of its own, into which the initial values are copied unless
    /// nothing else needs these; what the body passes on unchanged is not copied at all. After each
    /// iteration storages of the state and of the body's results change places.
    ///
    /// A loop with little to do in an iteration is code that runs many iterations in a call: in
    /// registers, if it is made for that, or all its steps put together ([`super::native`]). If the
    /// number of iterations is known and not too large, a call is the whole loop.
    pub(super) fn while_loop(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        op: &ops::While,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let trips = self.trips(frame, op, &origins);
        let invariant = self.invariant(op, origins.len());
        let state = self.loop_state(frame, id, &invariant, steps);
        let outer = self.compact;
        let before = self.mark();
        let mut code = self.in_registers(op, &invariant, trips, &state)?;
        if outer.is_some() && code.as_ref().is_some_and(|code| !code.is_whole) {
            // The outer loop can be one kernel only if this one's steps are known.
            self.forget_code(before);
            code = None;
        }
        if let Some(LoopCode { actions, slots, is_whole: true, .. }) = code {
            actions.into_iter().for_each(|action| self.push(steps, action, &slots));
            self.give_state(frame, id, &state, &invariant);
            return Ok(state);
        }
        if code.is_none() && outer.is_none() {
            self.compact = self.compact_vectors(op);
        }

        self.position += 1;
        let begin = self.position;
        self.loops.push(Loop { touched: Vec::new() });
        let of = (&state[..], &invariant[..]);
        let planned = self.loop_steps(op, trips, of, outer.is_some(), &mut code)?;
        let LoopSteps { mut cond, go, mut body, mut next } = planned;
        self.compact = outer;
        if outer.is_none() {
            self.written.clear();
            self.inner.clear();
            self.in_scratch.clear();
        }
        let trips = trips.filter(|_| code.is_none());
        let (mut zero, mut prelude) = (Vec::new(), 0);
        if let Some(LoopCode { actions, slots, is_whole, suspended }) = code {
            // The state stays where it is.
            next.clone_from(&state);
            if is_whole {
                self.end_loop(begin, &state, &next);
                actions.into_iter().for_each(|action| self.push(steps, action, &slots));
                self.give_state(frame, id, &state, &invariant);
                return Ok(state);
            }
            body.clear();
            actions.into_iter().for_each(|action| self.push(&mut body, action, &slots));
            if let Some(kept) = suspended {
                // The code computes the condition after each iteration.
                prelude = cond.len();
                steps.append(&mut cond);
                zero = kept;
                zero.retain(|&id| self.find(id) != self.find(go));
            }
        }
        let rotate = self.cycles(&state, &next);
        self.touch(go);
        self.end_loop(begin, &state, &next);
        for &storage in rotate.iter().flatten() {
            let storage = self.find(storage);
            self.storages[storage.index()].block = true;
        }
        self.give_state(frame, id, &state, &invariant);
        self.note_prelude(&body, prelude + zero.len());
        for id in zero {
            self.clear(id, steps)?;
        }
        let action = Action::While(Box::new(While { cond, go, trips, body, rotate }));
        steps.push(self.steps.step(action));
        Ok(state)
    }

    /// Plans a loop's condition and, unless there is code for the iterations already, its body; the
    /// code that these steps become, if they can be one kernel, goes to `code`.
    fn loop_steps(
        &mut self,
        op: &ops::While,
        trips: Option<u64>,
        (state, invariant): (&[StorageId], &[bool]),
        is_inner: bool,
        code: &mut Option<LoopCode>,
    ) -> Planned<LoopSteps> {
        let before = self.mark();
        let mut cond = Vec::new();
        let params = || vec![state.to_vec()];
        let outcome = self.computation(op.condition, params(), &mut cond)?;
        let mut go = outcome.values[0];
        if self.has_loops(op.body) {
            // Such a loop may stop in the middle of an iteration, when a part of the next state may be there
            // already: the condition is not to be one.
            go = self.storage(1, Owner::Nobody);
            self.copy(outcome.values[0], go, &mut cond);
        }
        let before_body = self.mark();
        // What the loop's own frame may write is the state it does not keep.
        let owner = Owner::Frame(self.frames);
        for (i, &storage) in state.iter().enumerate() {
            if !invariant[i] {
                let storage = self.find(storage);
                self.storages[storage.index()].owner = owner;
                self.storages[storage.index()].loops = self.loops.len();
            }
        }
        let (mut body, mut next) = (Vec::new(), state.to_vec());
        if code.is_none() {
            let outcome = self.computation(op.body, params(), &mut body)?;
            next = self.next_state(state, invariant, outcome.owner, outcome.values, &mut body);
            let (cond, body, next) = (&cond, &body, &next);
            let all = Steps { is_inner, cond, go, trips, body, state, next, before, before_body };
            *code = self.put_together(&all)?;
        }
        Ok(LoopSteps { cond, go, body, next })
    }

    /// Whether a computation has loops, be it in branches.
    fn has_loops(&self, computation: CompId) -> bool {
        let (mut pending, mut seen) = (vec![computation], HashSet::from([computation]));
        while let Some(id) = pending.pop() {
            for instr in self.module.computation(id).instrs() {
                match &instr.op {
                    Op::While(_) => return true,
                    Op::Conditional(op) => {
                        pending.extend(op.branches.iter().filter(|&&branch| seen.insert(branch)));
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// The storages of a loop's state, with the initial values.
    fn loop_state(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        invariant: &[bool],
        steps: &mut Vec<Step>,
    ) -> Vec<StorageId> {
        let init = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let mut uses: HashMap<ArrayId, usize> = HashMap::with_capacity(origins.len());
        for &origin in &origins {
            *uses.entry(origin).or_default() += 1;
        }
        let mut state = Vec::with_capacity(init.len());
        for (i, &value) in init.iter().enumerate() {
            let value = self.find(value);
            if invariant[i] {
                state.push(value);
                continue;
            }
            let bytes = self.storages[value.index()].bytes;
            let storage = self.storage(bytes, Owner::Nobody);
            let alone = uses[&origins[i]] == 1;
            if alone && frame.leaves.dies_at(origins[i], id) && self.is_free(value, frame.owner) {
                self.merge(storage, value);
            } else {
                self.copy(value, storage, steps);
            }
            state.push(storage);
        }
        state
    }

    /// Code that runs iterations of a loop in registers, if they can be.
    fn in_registers(
        &mut self,
        op: &ops::While,
        invariant: &[bool],
        trips: Option<u64>,
        state: &[StorageId],
    ) -> Planned<Option<LoopCode>> {
        let target = self.target.lowering(self.vectors());
        let Some(found) = state_loop(self.module, op, invariant, target) else { return Ok(None) };
        let most = found.most as u64;
        let cost = found.cost.saturating_mul(trips.map_or(most, |trips| trips.min(most)));
        let mut actions = Vec::with_capacity(found.kernels.len());
        for kernel in found.kernels {
            actions.push(self.kernel_step(&kernel, cost, state.to_vec())?);
        }
        let is_whole = trips.is_some_and(|trips| trips <= most);
        Ok(Some(LoopCode { actions, slots: state.to_vec(), is_whole, suspended: None }))
    }

    /// Fills a storage with zeros.
    fn clear(&mut self, id: StorageId, steps: &mut Vec<Step>) -> Planned<()> {
        let bytes = self.storages[self.find(id).index()].bytes;
        let zeros = ArrayShape::new(ElementType::U8, [bytes])?;
        let zeros = self.constant(&Literal::Array(Array::zeros(zeros)?))?;
        self.copy(zeros, id, steps);
        Ok(())
    }

    /// After a loop its state is the caller's, except for what the loop passed on unchanged.
    fn give_state(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        state: &[StorageId],
        invariant: &[bool],
    ) {
        let loops = self.loops.len();
        for (leaf, (&storage, &invariant)) in state.iter().zip(invariant).enumerate() {
            let storage = self.find(storage);
            let storage = &mut self.storages[storage.index()];
            if !invariant {
                storage.owner = frame.owner;
                storage.loops = loops;
                storage.taken = false;
            } else if frame.leaves.is_leaf_used((id, leaf)) {
                // It is both what went into the loop and what came out of it: neither's last use is
                // the other's, so nobody may write it any more.
                storage.owner = Owner::Nobody;
            }
        }
    }

    /// How often a loop runs, if it counts from a constant to a constant.
    fn trips(&self, frame: &Frame<'m>, op: &ops::While, init: &[ArrayId]) -> Option<u64> {
        let counter = recognize::counted_loop(self.module, op.condition, op.body)?;
        let body = self.module.computation(op.body);
        let state = &body.instr(*body.params().get(&0)?).shape;
        let leaf = counter.index.map_or(Some(0), |index| arrays::leaf_at(state, &[index]))?;
        let &(start, _) = init.get(leaf)?;
        match &frame.computation.instr(start).op {
            Op::Constant(constant) => match constant.literal.as_array()?.number(0) {
                Number::Int(start) => counter.trips(start),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a frame may write a storage that is neither an argument nor a constant.
    fn is_free(&self, value: StorageId, owner: Owner) -> bool {
        let storage = &self.storages[value.index()];
        storage.owner == owner && storage.source == Source::Nothing
    }

    /// Which arrays of the state the body passes on unchanged.
    fn invariant(&self, op: &ops::While, count: usize) -> Vec<bool> {
        let body = self.module.computation(op.body);
        let leaves = super::Leaves::of(body, &self.effects, false);
        let param = body.params().get(&0).copied();
        let root = leaves.origins(body.root());
        (0..count).map(|i| param.is_some_and(|param| root[i] == (param, i))).collect()
    }

    /// The storages that hold the next state after the body: each the body's own, or the state's,
    /// and none twice.
    fn next_state(
        &mut self,
        state: &[StorageId],
        invariant: &[bool],
        owner: Owner,
        values: Vec<StorageId>,
        body: &mut Vec<Step>,
    ) -> Vec<StorageId> {
        let mut next: Vec<StorageId> = Vec::with_capacity(values.len());
        let mut taken = HashSet::with_capacity(values.len());
        for (i, value) in values.into_iter().enumerate() {
            let value = self.find(value);
            if invariant[i] {
                next.push(state[i]);
                continue;
            }
            let bytes = self.storages[value.index()].bytes;
            if self.is_free(value, owner) && taken.insert(value) {
                next.push(value);
            } else {
                let copy = self.storage(bytes, owner);
                self.copy(value, copy, body);
                next.push(copy);
            }
        }
        next
    }

    /// The cycles of storages to rotate so that each of `state` gets what `next` says.
    fn cycles(&self, state: &[StorageId], next: &[StorageId]) -> Vec<Vec<StorageId>> {
        let state: Vec<StorageId> = state.iter().map(|&id| self.find(id)).collect();
        let next: Vec<StorageId> = next.iter().map(|&id| self.find(id)).collect();
        // The first place of each storage: what the body passes on may stand in several.
        let mut places = HashMap::with_capacity(state.len());
        for (i, &id) in state.iter().enumerate() {
            places.entry(id).or_insert(i);
        }
        let is_next: HashSet<StorageId> = next.iter().copied().collect();
        let mut done = vec![false; state.len()];
        let mut cycles = Vec::new();
        // Chains begin at a storage that is nobody's next; what is left are closed cycles.
        let starts = (0..state.len()).filter(|&i| !is_next.contains(&state[i]));
        for start in starts.chain(0..state.len()) {
            let mut cycle = vec![state[start]];
            let mut at = state[start];
            while let Some(&i) = places.get(&at).filter(|&&i| !done[i]) {
                done[i] = true;
                at = next[i];
                if at == state[start] {
                    break;
                }
                cycle.push(at);
            }
            if cycle.len() > 1 {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// What a loop touches is needed from its beginning to its end.
    fn end_loop(&mut self, begin: usize, state: &[StorageId], next: &[StorageId]) {
        self.position += 1;
        let end = self.position;
        let touched = self.loops.pop().map(|l| l.touched).unwrap_or_default();
        let depth = self.loops.len();
        for id in touched.into_iter().chain(state.iter().copied()).chain(next.iter().copied()) {
            let id = self.find(id);
            let storage = &mut self.storages[id.index()];
            storage.first = storage.first.min(begin);
            storage.last = storage.last.max(end);
            if storage.loops < depth
                && let Some(outer) = self.loops.last_mut()
            {
                outer.touched.push(id);
            }
        }
    }

    /// A branch: each computation leaves its results in the same storages.
    pub(super) fn conditional(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        op: &ops::Conditional,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let instr = frame.computation.instr(id);
        let selector = frame.values[instr.operands[0].index()][0];
        self.position += 1;
        self.touch(selector);
        let results = self.fresh(frame.owner, &instr.shape)?;
        let mut branches = Vec::with_capacity(op.branches.len());
        for (i, &branch) in op.branches.iter().enumerate() {
            let argument = frame.values[instr.operands[i + 1].index()].clone();
            let mut branch_steps = Vec::new();
            let outcome = self.computation(branch, vec![argument], &mut branch_steps)?;
            for (&result, value) in results.iter().zip(outcome.values) {
                let value = self.find(value);
                let free = self.is_free(value, outcome.owner);
                if free && !self.storages[value.index()].taken {
                    self.merge(value, result);
                    let result = self.find(result);
                    self.storages[result.index()].taken = true;
                } else {
                    self.copy(value, result, &mut branch_steps);
                }
            }
            for &result in &results {
                let result = self.find(result);
                self.storages[result.index()].taken = false;
            }
            branches.push(branch_steps);
        }
        let selector = match frame.computation.instr(instr.operands[0]).shape.as_array() {
            Some(shape) if shape.element().is_pred() => Selector::Pred(selector),
            _ => Selector::Index(selector),
        };
        let action = Action::Branch(Box::new(Branch { selector, branches }));
        steps.push(self.steps.step(action));
        Ok(results)
    }
}
