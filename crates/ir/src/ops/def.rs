//! What every operation tells of itself: names, family, number of operands, and by [`OpDef`] its
//! constraints, shape and text.

use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, Computation, Module, Result, Shape};

/// How many operands an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// This number of operands.
    Exactly(usize),
    /// This number of operands or more.
    AtLeast(usize),
}

impl Arity {
    pub(super) fn includes(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

/// What running an operation does besides computing its value. Passes drop, repeat and reorder
/// operations without an effect alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    None,
    /// Data goes to or comes from the host or other participants, in the order of the program.
    Exchange,
    /// Hidden state advances: what is drawn depends on how often was drawn before.
    Draw,
    /// A function of the user runs, which may do anything.
    Foreign,
}

/// Where the elements of a result come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Yield {
    /// They are computed, or picked at places known only at run time.
    New,
    /// Each is an element of an operand, or of a padding value, at a place that attributes tell.
    Moved,
    /// They are those of the first operand, in their order, under other dimensions.
    Same,
    /// They are the first operand itself, perhaps in another layout, memory or order of steps.
    Itself,
    /// They are the first operand's bits, in an order and of a type that layouts and shapes tell.
    Recast,
    /// They are values of operands, or of what is called, as a whole.
    Passed,
}

/// Which elements of its operands an operation needs for an element of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reads {
    /// None: it has no operands, or asks for their sizes.
    Nothing,
    /// Those at the same place; of a scalar, the only one.
    Aligned,
    /// One, at a place that attributes and indices tell.
    Placed,
    /// Those of whole dimensions, each once.
    Folded,
    /// Many, of which other elements of the result need some as well: the operands have to lie in memory.
    Memory,
    /// It takes operands as a whole: to pass them on, exchange them, or call something with them.
    Whole,
}

/// Which part of an operation an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// All of it.
    Once,
    /// Its beginning: the result stands for an operation that is under way.
    Begins,
    /// It lets what was begun go on; the operand and the result stand for it.
    GoesOn,
    /// Its end: the operand stands for the operation, and the result is the operation's.
    Ends,
}

/// Operations that belong together; one file of `docs/spec` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Each element of the result depends on the same element of the operands.
    Elementwise,
    /// Elements are moved, not computed.
    Movement,
    /// Tuples, calls, loops, branches, order.
    Control,
    /// Exchange with the host.
    Host,
    /// Products, factorisations, transforms.
    LinearAlgebra,
    /// Folds, windows, sorting, normalisation.
    Reduction,
    /// Gather and scatter.
    Indexing,
    /// Random numbers.
    Random,
    /// Exchange with other replicas.
    Collective,
    /// Operations begun here and done there.
    Asynchronous,
}

/// What is known of an operation without its attributes.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// HLO's name for it.
    pub name: &'static str,
    /// The operations of StableHLO, CHLO and `func` that mean it, the one that it is written as first;
    /// empty if there is none.
    pub stablehlo_names: &'static [&'static str],
    /// What it belongs to.
    pub family: Family,
    /// What running it does besides computing its value.
    pub effect: Effect,
    /// Where the elements of its result come from.
    pub gives: Yield,
    /// Which elements of its operands an element of its result needs.
    pub reads: Reads,
    /// Which part of an operation it is that is begun at one place and done at another.
    pub phase: Phase,
    /// How many operands it takes.
    pub arity: Arity,
    /// Whether text has to say the shape of the result.
    pub needs_shape: bool,
    /// What it does, in a sentence.
    pub summary: &'static str,
}

/// What shape inference sees.
pub struct InferCx<'a> {
    /// The shapes of the operands; as many as the operation's arity allows.
    pub operands: &'a [&'a Shape],
    /// The module, for the shapes of called computations.
    pub module: &'a Module,
}

impl<'a> InferCx<'a> {
    /// A called computation.
    pub fn callee(&self, id: CompId) -> &'a Computation {
        self.module.computation(id)
    }
}

/// An operation with attributes.
pub trait OpDef: Sized {
    /// HLO's name for it.
    const OPCODE: &'static str;

    /// How many operands it takes.
    const ARITY: Arity;

    /// Whether text has to say the shape of the result: operands and attributes do not determine it.
    const NEEDS_SHAPE: bool = false;

    /// The shape of the result, without layout. This one function serves parser, builder and
    /// verifier. The number of operands has been checked. Errors: the operation's rules (C1, C2 …).
    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape>;

    /// The operation that the attributes in text describe.
    fn read(attrs: &mut AttrReader<'_>) -> Result<Self>;

    /// Writes the attributes so that [`OpDef::read`] gives the same operation.
    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let _ = attrs;
    }

    /// The computations it calls.
    fn callees(&self) -> Vec<CompId> {
        Vec::new()
    }

    /// The computations it calls, to renumber them.
    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        Vec::new()
    }
}
