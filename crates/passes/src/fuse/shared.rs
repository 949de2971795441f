//! Fused computations that are equal, as those of the steps of a loop that is written out: they become
//! one, which is compiled once.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::iter::zip;

use helio_ir::ops::{Parameter, Tuple};
use helio_ir::{CompId, Computation, Instr, InstrId, Name, Op, OriginUnions, Result, Shape};
use rustc_hash::{FxHashMap, FxHasher};

use super::grow::Group;
use crate::draft::{Draft, unnamed};
use crate::rebuild::NewModule;
use crate::simplify;

/// The fused computations of a module.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The last one with a hash.
    known: FxHashMap<u64, CompId>,
    /// Puts together where their instructions come from.
    pub(super) origins: OriginUnions,
    /// The names of parameters, by number.
    params: Vec<Name>,
}

impl Shared {
    /// The computation of a group, which is added unless there is one that computes the same. Errors:
    /// as for [`NewModule::push`].
    pub fn push(&mut self, module: &mut NewModule, outline: &Outline<'_>) -> Result<CompId> {
        let hash = outline.hash();
        let known = self.known.get(&hash).copied();
        if let Some(known) = known.filter(|&known| outline.is(module.computation(known))) {
            return Ok(known);
        }
        for number in self.params.len()..outline.operands.len() {
            self.params.push(format!("p{number}").into());
        }
        let computation = outline.write(module, &self.params)?;
        // What nobody needs has been left out of both.
        let is_equal = |&known: &CompId| are_equal(module.computation(known), &computation);
        if let Some(known) = known.filter(is_equal) {
            return Ok(known);
        }
        let id = module.push(computation)?;
        self.known.insert(hash, id);
        Ok(id)
    }
}

/// Whether computations are the same but for names.
fn are_equal(a: &Computation, b: &Computation) -> bool {
    a.root() == b.root()
        && a.instrs().len() == b.instrs().len()
        && zip(a.instrs(), b.instrs())
            .all(|(a, b)| a.operands == b.operands && a.shape.same(&b.shape) && a.op == b.op)
}

/// What a group's computation consists of: parameters, members, and a tuple if there are several
/// results.
pub(super) struct Outline<'g> {
    instrs: &'g [Instr],
    group: &'g Group,
    /// What the parameters stand for.
    pub operands: Vec<InstrId>,
    /// What stands for operands and members.
    inner: FxHashMap<InstrId, InstrId>,
}

impl<'g> Outline<'g> {
    /// The outline of a group of instructions.
    pub fn new(instrs: &'g [Instr], group: &'g Group) -> Self {
        let mut inner = FxHashMap::default();
        inner.reserve(2 * group.members.len());
        // Members come after operands, so their numbers are known last.
        inner.extend(group.members.iter().map(|&id| (id, InstrId(0))));
        let mut operands = Vec::new();
        for &id in &group.members {
            for &operand in &instrs[id.index()].operands {
                if let Entry::Vacant(new) = inner.entry(operand) {
                    new.insert(InstrId(operands.len() as u32));
                    operands.push(operand);
                }
            }
        }
        let members = zip(&group.members, operands.len() as u32..);
        inner.extend(members.map(|(&id, number)| (id, InstrId(number))));
        Outline { instrs, group, operands, inner }
    }

    fn instr(&self, id: InstrId) -> &'g Instr {
        &self.instrs[id.index()]
    }

    fn members(&self) -> impl Iterator<Item = &'g Instr> {
        self.group.members.iter().map(|&id| self.instr(id))
    }

    /// The operands of a member, in the computation.
    fn inner(&self, instr: &Instr) -> impl Iterator<Item = InstrId> {
        instr.operands.iter().map(|operand| self.inner[operand])
    }

    fn results(&self) -> impl Iterator<Item = InstrId> {
        self.group.outputs.iter().map(|output| self.inner[output])
    }

    /// The result, and whether it is a tuple of several.
    fn root(&self) -> (InstrId, bool) {
        match self.group.outputs[..] {
            [only] => (self.inner[&only], false),
            _ => (InstrId(self.inner.len() as u32), true),
        }
    }

    /// A number that equal computations share.
    fn hash(&self) -> u64 {
        let mut state = FxHasher::default();
        for &operand in &self.operands {
            if let Shape::Array(array) = &self.instr(operand).shape {
                (array.element(), array.dims()).hash(&mut state);
            }
        }
        let mut operands = Vec::new();
        for instr in self.members() {
            operands.clear();
            operands.extend(self.inner(instr));
            simplify::hash(&instr.op, &operands, &instr.shape).hash(&mut state);
        }
        self.results().for_each(|result| result.hash(&mut state));
        state.finish()
    }

    /// Whether a computation is the group's but for names.
    fn is(&self, computation: &Computation) -> bool {
        let instrs = computation.instrs();
        let (root, is_tuple) = self.root();
        let count = self.inner.len() + usize::from(is_tuple);
        if instrs.len() != count || computation.root() != root {
            return false;
        }
        let (params, others) = instrs.split_at(self.operands.len());
        let is_param = |(number, (param, &operand)): (usize, (&Instr, &InstrId))| {
            let shape = &self.instr(operand).shape;
            matches!(&param.op, Op::Parameter(p) if p.number == number && p.shape == *shape)
        };
        let is_member = |(known, instr): (&Instr, &Instr)| {
            known.operands.iter().copied().eq(self.inner(instr))
                && known.shape.same(&instr.shape)
                && known.op == instr.op
        };
        zip(params, &self.operands).enumerate().all(is_param)
            && zip(others, self.members()).all(is_member)
            && (!is_tuple || instrs[root.index()].operands.iter().copied().eq(self.results()))
    }

    /// The computation. Errors: as for [`Draft::finish`].
    fn write(&self, module: &mut NewModule, params: &[Name]) -> Result<Computation> {
        let root = self.instr(self.group.root);
        let name = if root.name.is_empty() { root.op.opcode() } else { &root.name };
        let mut fused = Draft::new(module, format!("fused_{name}"));
        fused.reserve(self.inner.len() + 1);
        for (number, &operand) in self.operands.iter().enumerate() {
            let shape = self.instr(operand).shape.clone();
            let parameter = Parameter { number, shape: shape.clone() };
            let mut param = unnamed(Op::from(parameter), &[], shape.without_layout());
            param.name.clone_from(&params[number]);
            fused.push(param);
        }
        for instr in self.members() {
            let mut instr = instr.clone();
            for operand in &mut instr.operands {
                *operand = self.inner[operand];
            }
            fused.push(instr);
        }
        let (root, is_tuple) = self.root();
        if is_tuple {
            let outputs = self.group.outputs.iter();
            let shapes = outputs.map(|&id| self.instr(id).shape.without_layout());
            let results: Vec<InstrId> = self.results().collect();
            fused.push(unnamed(Op::Tuple(Tuple), &results, Shape::Tuple(shapes.collect())));
        }
        fused.finish(root)
    }
}
