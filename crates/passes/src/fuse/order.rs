//! The order of what a computation consists of after fusion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use helio_ir::{Computation, InstrId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::grow::Groups;
use crate::rebuild::NewModule;

/// What a computation consists of after fusion.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// An instruction by itself.
    Single(InstrId),
    /// A fusion, by its place in [`Groups::groups`].
    Group(usize),
}

/// What has to stay in the order of the program although it does not use each other's values:
/// instructions with effects, and those with control predecessors.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// For each instruction, those that have to come after it.
    after: FxHashMap<InstrId, Vec<InstrId>>,
    members: FxHashSet<InstrId>,
}

impl Sequence {
    /// The sequence of a computation; what it calls is in `module`.
    pub fn of(computation: &Computation, module: &NewModule) -> Self {
        let mut sequence = Sequence::default();
        let mut last = None;
        for id in computation.ids() {
            let instr = computation.instr(id);
            for &before in instr.extra.iter().flat_map(|extra| &extra.control_predecessors) {
                sequence.put(before, id);
            }
            if module.has_effect(&instr.op) {
                sequence.members.insert(id);
                if let Some(before) = last.replace(id) {
                    sequence.put(before, id);
                }
            }
        }
        sequence
    }

    fn put(&mut self, before: InstrId, after: InstrId) {
        self.after.entry(before).or_default().push(after);
        self.members.extend([before, after]);
    }

    /// Whether the instruction has a place in the sequence.
    pub fn contains(&self, id: InstrId) -> bool {
        self.members.contains(&id)
    }

    /// What has to come after an instruction.
    pub fn after(&self, id: InstrId) -> &[InstrId] {
        self.after.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Each instruction and one that has to come after it.
    fn pairs(&self) -> impl Iterator<Item = (InstrId, InstrId)> {
        self.after.iter().flat_map(|(&before, after)| after.iter().map(move |&id| (before, id)))
    }
}

impl Groups {
    /// The instructions and fusions that remain, operands before users; `None` if fusions would
    /// wait for each other.
    pub fn order(&self, computation: &Computation) -> Option<Vec<Unit>> {
        // A unit is placed once all that it reads is.
        let Units { units, of: unit_of, reads } = self.units(computation);
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
        let mut missing = vec![0_usize; units.len()];
        for (unit, reads) in reads.iter().enumerate() {
            let mut from: Vec<usize> = reads.iter().filter_map(|id| unit_of[id.index()]).collect();
            from.sort_unstable();
            from.dedup();
            for from in from.into_iter().filter(|&from| from != unit) {
                users[from].push(unit);
                missing[unit] += 1;
            }
        }
        for (before, after) in self.sequence.pairs() {
            if let (Some(before), Some(after)) = (unit_of[before.index()], unit_of[after.index()]) {
                users[before].push(after);
                missing[after] += 1;
            }
        }
        // Among those that are ready, in the order of the program.
        let first = |unit: &Unit| match unit {
            Unit::Single(id) => id.0,
            Unit::Group(number) => self.groups[*number].root.0,
        };
        let mut ready: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for (unit, &missing) in missing.iter().enumerate() {
            if missing == 0 {
                ready.push(Reverse((first(&units[unit]), unit)));
            }
        }
        let mut order = Vec::with_capacity(units.len());
        while let Some(Reverse((_, unit))) = ready.pop() {
            order.push(units[unit]);
            for &user in &users[unit] {
                missing[user] -= 1;
                if missing[user] == 0 {
                    ready.push(Reverse((first(&units[user]), user)));
                }
            }
        }
        (order.len() == units.len()).then_some(order)
    }

    /// The instructions and fusions that remain.
    fn units(&self, computation: &Computation) -> Units {
        let of = vec![None; computation.instrs().len()];
        let mut all = Units { units: Vec::new(), of, reads: Vec::new() };
        for (number, group) in self.groups.iter().enumerate() {
            if group.outputs.is_empty() {
                continue;
            }
            let operands = group.members.iter().flat_map(|id| &computation.instr(*id).operands);
            let outside = operands.filter(|id| !self.has_member(number, **id));
            all.reads.push(outside.copied().collect());
            for id in &group.owned {
                if self.owner[id.index()] == Some(number) {
                    all.of[id.index()] = Some(all.units.len());
                }
            }
            all.units.push(Unit::Group(number));
        }
        for id in computation.ids().filter(|id| self.single[id.index()]) {
            all.of[id.index()] = Some(all.units.len());
            all.reads.push(computation.instr(id).operands.to_vec());
            all.units.push(Unit::Single(id));
        }
        all
    }
}

/// What remains of a computation, not yet in order.
struct Units {
    units: Vec<Unit>,
    /// For each instruction, the unit that makes its value, if any does.
    of: Vec<Option<usize>>,
    /// For each unit, the instructions whose values it reads.
    reads: Vec<Vec<InstrId>>,
}
