//! `while` and its kin.

use super::Arity;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Runs the body as long as the condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct While {
    /// From the loop state to a `pred` scalar.
    pub condition: CompId,
    /// From the loop state to the next.
    pub body: CompId,
}

impl OpDef for While {
    const OPCODE: &'static str = "while";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer while"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.condition, self.body]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.condition, &mut self.body]
    }
}

/// Runs one of several computations, chosen by a `pred` (true first) or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional {
    /// The computations; for a `pred` first the one for true, then for false.
    pub branches: Vec<CompId>,
}

impl OpDef for Conditional {
    const OPCODE: &'static str = "conditional";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer conditional"))
    }

    fn callees(&self) -> Vec<CompId> {
        self.branches.clone()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.branches.iter_mut().collect()
    }
}

/// The operands themselves, not to be moved across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimizationBarrier;

impl OpDef for OptimizationBarrier {
    const OPCODE: &'static str = "opt-barrier";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer opt-barrier"))
    }
}

/// A token that comes after all operand tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterAll;

impl OpDef for AfterAll {
    const OPCODE: &'static str = "after-all";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer after-all"))
    }
}

/// The first operand, after the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddDependency;

impl OpDef for AddDependency {
    const OPCODE: &'static str = "add-dependency";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer add-dependency"))
    }
}

/// The operand itself, at the border of two domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The domain's metadata, as written.
    pub domain: String,
}

impl OpDef for Domain {
    const OPCODE: &'static str = "domain";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer domain"))
    }
}
