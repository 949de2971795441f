//! A computation that a pass is writing, in the place of one of the module that it reads.

use std::collections::HashSet;

use smallvec::SmallVec;

use helio_ir::ops::{Family, Parameter};
use helio_ir::{
    ArrayShape, BinaryOp, Computation, ElementType, InferCx, Instr, InstrId, Name, Op, Result,
    Shape,
};

use crate::rebuild::NewModule;

/// A computation in the making: instructions are only ever added; those that turn out to be dead
/// are dropped in the end.
#[derive(Debug)]
pub struct Draft<'m> {
    module: &'m mut NewModule,
    /// What the computation is called, and what stands after its closing brace.
    outline: Computation,
    instrs: Vec<Instr>,
}

/// The computation that a draft replaces: its instructions, to be taken over.
#[derive(Debug)]
pub struct Original {
    /// The instructions, operands before users.
    pub instrs: Vec<Instr>,
    /// The one whose value is the result.
    pub root: InstrId,
}

impl<'m> Draft<'m> {
    /// A draft that takes the place of a computation, and that computation's instructions.
    pub fn replacing(module: &'m mut NewModule, old: Computation) -> (Self, Original) {
        let (mut draft, root) = Draft::of(module, old);
        let instrs = std::mem::take(&mut draft.instrs);
        draft.instrs.reserve(instrs.len());
        (draft, Original { instrs, root })
    }

    /// A draft that has all instructions of a computation already, and the one whose value is the result.
    pub(crate) fn of(module: &'m mut NewModule, computation: Computation) -> (Self, InstrId) {
        let mut draft = Draft::new(module, computation.name.clone());
        draft.outline.attributes.clone_from(&computation.attributes);
        draft.outline.at.clone_from(&computation.at);
        let root = computation.root();
        draft.instrs = computation.into_instrs();
        (draft, root)
    }

    /// A draft without instructions.
    pub fn new(module: &'m mut NewModule, name: impl Into<String>) -> Self {
        let outline = Computation::new(name);
        Draft { module, outline, instrs: Vec::new() }
    }

    /// Makes room for more instructions.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.instrs.reserve(additional);
    }

    /// The module as far as it is made; what the draft calls is in it.
    pub fn module(&mut self) -> &mut NewModule {
        self.module
    }

    /// How many instructions there are.
    pub fn len(&self) -> usize {
        self.instrs.len()
    }

    /// Whether there is no instruction yet.
    pub fn is_empty(&self) -> bool {
        self.instrs.is_empty()
    }

    /// The instructions, to change what neither names nor numbers them.
    pub(crate) fn instrs_mut(&mut self) -> &mut [Instr] {
        &mut self.instrs
    }

    /// An instruction.
    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.instrs[id.index()]
    }

    /// The operation of an instruction.
    pub fn op(&self, id: InstrId) -> &Op {
        &self.instr(id).op
    }

    /// The operands of an instruction.
    pub fn operands(&self, id: InstrId) -> &[InstrId] {
        &self.instr(id).operands
    }

    /// The shape of an instruction.
    pub fn shape(&self, id: InstrId) -> &Shape {
        &self.instr(id).shape
    }

    /// The shape of an instruction, if it is an array.
    pub fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.shape(id).as_array()
    }

    /// What instructions call, to look at.
    pub fn callees(&self) -> &NewModule {
        self.module
    }

    /// Gives an instruction that was just added a name.
    pub(crate) fn rename(&mut self, id: InstrId, name: impl Into<Name>) {
        self.instrs[id.index()].name = name.into();
    }

    /// Gives an instruction without a name the name, and what else is written there, of the one
    /// that it replaces.
    pub(crate) fn name(&mut self, id: InstrId, old: Instr) {
        let instr = &mut self.instrs[id.index()];
        if instr.name.is_empty() {
            instr.name = old.name;
            instr.at = old.at;
            instr.extra = old.extra;
            if let Some(extra) = &mut instr.extra {
                // The new instruction may stand before what the old one waited for.
                extra.control_predecessors.clear();
            }
        }
    }

    /// From here on, instructions that are made take the place of this one, or of a part of it:
    /// they have its origins unless they have some of their own.
    pub fn stand_for(&mut self, old: &Instr) {
        if !old.origins.is_empty() {
            self.module.origins.clone_from(&old.origins);
        }
    }

    /// Notes that an instruction has the value of an old one as well.
    pub(crate) fn join(&mut self, id: InstrId, old: &Instr) {
        let origins = match old.origins.is_empty() {
            true => &self.module.origins,
            false => &old.origins,
        };
        self.instrs[id.index()].origins.join(origins);
    }

    /// Takes over an instruction whose operands (and control predecessors) are this draft's.
    #[inline]
    pub fn push(&mut self, mut instr: Instr) -> InstrId {
        self.module.give_origins(&mut instr);
        // The old computations had fewer than 2^32 instructions, and so have all that are finished.
        let id = InstrId(self.instrs.len() as u32);
        debug_assert!(instr.operands.iter().all(|&operand| operand < id));
        self.instrs.push(instr);
        id
    }

    /// Takes over an instruction of the old computation, or of another one, `map` telling for each of
    /// its instructions what stands for it here.
    #[inline]
    pub fn carry(&mut self, mut instr: Instr, map: &[InstrId]) -> InstrId {
        renumber(&mut instr, map);
        self.push(instr)
    }

    /// The shape that an operation gives for these operands. Errors: as for [`Op::infer`].
    pub fn infer(&self, op: &Op, operands: &[InstrId]) -> Result<Shape> {
        let shapes: SmallVec<[&Shape; 4]> = operands.iter().map(|&id| self.shape(id)).collect();
        op.infer(&InferCx { operands: &shapes, module: self.module })
    }

    /// Adds an operation. Errors: as for [`Op::infer`].
    pub fn add(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Result<InstrId> {
        let op = op.into();
        let shape = self.infer(&op, operands)?;
        Ok(self.push(unnamed(op, operands, shape)))
    }

    /// The computation: what `root` and effects need; parameters stay. Several instructions may have
    /// one name, or none. Errors: as for [`Computation::push`].
    pub fn finish(self, root: InstrId) -> Result<Computation> {
        let Draft { module, outline, mut instrs } = self;
        let live = live(&instrs, root, module);
        let root = drop_dead(&mut instrs, &live, root);
        let mut computation = outline.with_instrs(instrs)?;
        computation.set_root(root);
        Ok(computation)
    }
}

/// Drops instructions that are not live, and gives the root's new number.
fn drop_dead(instrs: &mut Vec<Instr>, live: &[bool], root: InstrId) -> InstrId {
    if live.iter().all(|&live| live) {
        return root;
    }
    let mut new_ids = vec![InstrId(0); live.len()];
    let (mut old, mut new) = (0, 0);
    instrs.retain_mut(|instr| {
        let is_live = live[old];
        if is_live {
            for operand in &mut instr.operands {
                *operand = new_ids[operand.index()];
            }
            if let Some(extra) = &mut instr.extra {
                extra.control_predecessors.retain(|before| live[before.index()]);
                for before in &mut extra.control_predecessors {
                    *before = new_ids[before.index()];
                }
            }
            new_ids[old] = InstrId(new);
            new += 1;
        }
        old += 1;
        is_live
    });
    new_ids[root.index()]
}

/// For each instruction, whether the root or an effect needs it, or it is a parameter.
fn live(instrs: &[Instr], root: InstrId, module: &NewModule) -> Vec<bool> {
    let mut live = vec![false; instrs.len()];
    live[root.index()] = true;
    for (i, instr) in instrs.iter().enumerate().rev() {
        live[i] = live[i] || matches!(instr.op, Op::Parameter(_)) || module.has_effect(&instr.op);
        if live[i] {
            for operand in &instr.operands {
                live[operand.index()] = true;
            }
        }
    }
    live
}

/// The computation that adds two scalars.
pub(crate) fn addition(element: ElementType) -> Result<Computation> {
    let mut sum = Computation::new("sum");
    let shape = Shape::scalar(element);
    let mut params = Vec::with_capacity(2);
    for number in 0..2 {
        let parameter = Parameter { number, shape: shape.clone() };
        let mut instr = unnamed(parameter.into(), &[], shape.clone());
        instr.name = ["a", "b"][number].into();
        params.push(sum.push(instr)?);
    }
    let mut instr = unnamed(BinaryOp::Add.into(), &params, shape);
    instr.name = "c".into();
    sum.push(instr)?;
    Ok(sum)
}

/// An instruction that gets its name when the draft is finished.
pub(crate) fn unnamed(op: Op, operands: &[InstrId], shape: Shape) -> Instr {
    Instr::new(op, operands, shape)
}

/// Renames what an instruction refers to.
pub(crate) fn renumber(instr: &mut Instr, map: &[InstrId]) {
    for operand in &mut instr.operands {
        *operand = map[operand.index()];
    }
    if let Some(extra) = &mut instr.extra {
        if extra.control_predecessors.is_empty() {
            return;
        }
        for before in &mut extra.control_predecessors {
            *before = map[before.index()];
        }
        // Two that became one come before just as well as one does.
        let mut seen = HashSet::new();
        extra.control_predecessors.retain(|before| seen.insert(*before));
    }
}

/// Whether an element of the result depends on one element of each operand alone (and, of a select or
/// a clamp, on scalars).
pub(crate) fn is_elementwise(op: &Op) -> bool {
    op.family() == Family::Elementwise
}

/// The number of a parameter.
pub(crate) fn parameter_number(op: &Op) -> Option<usize> {
    match op {
        Op::Parameter(op) => Some(op.number),
        _ => None,
    }
}
