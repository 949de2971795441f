//! Simplification: one walk over each computation, operands before users, in which every
//! instruction is replaced by the simplest one that the rules find, and by an equal one that is
//! already there.
//!
//! A rule sees operands that are simplified themselves, and what it adds is simplified in turn, so
//! one walk does what a fixpoint of passes would. Data moves downward (a reshape of an operand
//! becomes a reshape of the result), and never back, so rules cannot undo each other.

mod arithmetic;
mod bits;
mod broadcast;
mod convert;
mod convolution;
mod dot;
mod dot_sums;
mod floor;
pub(crate) mod fold;
mod indexed;
mod interleaved;
mod logic;
mod movement;
mod numbering;
mod power;
mod progression;
mod reduce;
mod reshape;
mod scan;
mod scatter;
mod separable;
mod shared;
mod sink;
mod slice;
mod sum_products;
mod transpose;
mod tuple;
mod value;

use helio_eval::Subnormals;
use helio_ir::{Instr, InstrId, Module, Op, Result, Shape};

use crate::draft::{Draft, renumber, unnamed};
use crate::pass::PassCx;
use crate::rebuild::{drop_unused, rebuild};
pub(crate) use bits::range as integer_range;
use numbering::Numbering;
pub(crate) use numbering::hash;

/// Which rules apply.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// Elements of tuples that are known.
    tuples: bool,
    /// Operations on constants.
    fold: bool,
    /// What follows from the laws of arithmetic and logic.
    algebra: bool,
    /// What follows from where elements come from.
    movement: bool,
    /// Equal instructions become one.
    merge: bool,
}

const NONE: Rules =
    Rules { tuples: false, fold: false, algebra: false, movement: false, merge: false };

/// Takes elements out of tuples that are put together in the same computation.
pub(crate) fn forward_tuples(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    run(module, cx, Rules { tuples: true, ..NONE })
}

/// Computes what depends on small constants alone.
pub(crate) fn fold_constants(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    run(module, cx, Rules { fold: true, ..NONE })
}

/// Applies the laws of arithmetic and logic.
pub(crate) fn simplify_algebra(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    run(module, cx, Rules { algebra: true, ..NONE })
}

/// Simplifies what moves elements.
pub(crate) fn simplify_movement(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    run(module, cx, Rules { movement: true, ..NONE })
}

/// Makes one of equal instructions.
pub(crate) fn merge_equal(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    run(module, cx, Rules { merge: true, ..NONE })
}

/// All of the above at once.
pub(crate) fn simplify(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let all = Rules { tuples: true, fold: true, algebra: true, movement: true, merge: true };
    run(module, cx, all)
}

fn run(module: Module, cx: &PassCx<'_>, rules: Rules) -> Result<Module> {
    let module = rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut simplifier = Simplifier::new(&mut draft, rules, cx.subnormals);
        simplifier.numbering = Numbering::for_so_many(old.instrs.len() / 2);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for mut instr in old.instrs {
            renumber(&mut instr, &map);
            simplifier.draft.stand_for(&instr);
            map.push(simplifier.place(instr)?);
        }
        draft.finish(map[old.root.index()])
    })?;
    // Branches never taken are called no more.
    drop_unused(module, cx.watch)
}

/// What rules work with: a draft in which everything is simplified.
struct Simplifier<'d, 'm> {
    draft: &'d mut Draft<'m>,
    rules: Rules,
    /// What constants that are subnormal become in arithmetic.
    subnormals: Subnormals,
    numbering: Numbering,
    /// How many rules are at work within each other.
    depth: usize,
}

/// Rules add instructions that rules apply to; deeper than this they are added as they are.
const MAX_DEPTH: usize = 24;

impl<'d, 'm> Simplifier<'d, 'm> {
    fn new(draft: &'d mut Draft<'m>, rules: Rules, subnormals: Subnormals) -> Self {
        Simplifier { draft, rules, subnormals, numbering: Numbering::default(), depth: 0 }
    }

    /// Adds an instruction, or what is simpler, and gives what has its value.
    fn place(&mut self, mut instr: Instr) -> Result<InstrId> {
        self.draft.callees().count_steps(1)?;
        let before = self.draft.len();
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            let simpler = self.simpler(&instr.op, &instr.operands, &instr.shape);
            self.depth -= 1;
            if let Some(id) = simpler? {
                // What has the old one's value takes its place in the user's program.
                self.draft.join(id, &instr);
                if id.index() >= before {
                    self.draft.name(id, instr);
                }
                return Ok(id);
            }
        }
        if !self.rules.merge || !numbering::may_merge(&instr.op) {
            return Ok(self.draft.push(instr));
        }
        if self.draft.module().has_effect(&instr.op) {
            return Ok(self.draft.push(instr));
        }
        let (slot, equal) = self.numbering.find(self.draft, &instr);
        if let Some(id) = equal {
            self.draft.join(id, &instr);
            return Ok(id);
        }
        if let Some(extra) = &mut instr.extra {
            // What is shared stands in no order of its own.
            extra.control_predecessors.clear();
        }
        let id = self.draft.push(instr);
        self.numbering.insert(slot, id);
        Ok(id)
    }

    /// Adds an operation, or what is simpler. Errors: as for [`Op::infer`].
    fn add(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Result<InstrId> {
        let op = op.into();
        let shape = self.draft.infer(&op, operands)?;
        self.place(unnamed(op, operands, shape))
    }

    /// What has the value of an operation, if a rule finds something simpler.
    fn simpler(&mut self, op: &Op, operands: &[InstrId], shape: &Shape) -> Result<Option<InstrId>> {
        if self.rules.tuples
            && let Some(id) = tuple::simpler(self, op, operands)?
        {
            return Ok(Some(id));
        }
        // No other rule is about elements of tuples, whose shapes take long to look at: a loop may have
        // as many of them as its state has elements.
        if matches!(op, Op::GetTupleElement(_)) || !self.is_static(operands, shape) {
            return Ok(None);
        }
        if self.rules.fold
            && let Some(id) = fold::simpler(self, op, operands, shape)?
        {
            return Ok(Some(id));
        }
        if self.rules.movement
            && let Some(id) = movement::simpler(self, op, operands, shape)?
        {
            return Ok(Some(id));
        }
        if self.rules.algebra
            && let Some(id) = arithmetic::simpler(self, op, operands, shape)?
        {
            return Ok(Some(id));
        }
        Ok(None)
    }

    /// Whether all sizes are known.
    fn is_static(&self, operands: &[InstrId], shape: &Shape) -> bool {
        fn is_static(shape: &Shape) -> bool {
            match shape {
                Shape::Array(array) => array.is_static(),
                Shape::Tuple(elements) => elements.iter().all(is_static),
                Shape::Token => true,
                Shape::Opaque => false,
            }
        }
        is_static(shape) && operands.iter().all(|&id| is_static(self.draft.shape(id)))
    }
}
