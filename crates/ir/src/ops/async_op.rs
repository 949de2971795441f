//! `all-reduce-start` and its kin.

use super::Arity;
use super::collective::{AllGather, AllReduce, CollectivePermute};
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Begins an all-reduce; the result stands for the operands until it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllReduceStart {
    /// What is begun.
    pub op: AllReduce,
}

impl OpDef for AllReduceStart {
    const OPCODE: &'static str = "all-reduce-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-reduce-start"))
    }

    fn callees(&self) -> Vec<CompId> {
        self.op.callees()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.op.callees_mut()
    }
}

/// The result of an all-reduce that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllReduceDone;

impl OpDef for AllReduceDone {
    const OPCODE: &'static str = "all-reduce-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-reduce-done"))
    }
}

/// Begins an all-gather; the result is (operands, results).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllGatherStart {
    /// What is begun.
    pub op: AllGather,
}

impl OpDef for AllGatherStart {
    const OPCODE: &'static str = "all-gather-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-gather-start"))
    }
}

/// The result of an all-gather that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllGatherDone;

impl OpDef for AllGatherDone {
    const OPCODE: &'static str = "all-gather-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-gather-done"))
    }
}

/// Begins a collective-permute; the result is (operand, result) and maybe contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectivePermuteStart {
    /// What is begun.
    pub op: CollectivePermute,
}

impl OpDef for CollectivePermuteStart {
    const OPCODE: &'static str = "collective-permute-start";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer collective-permute-start"))
    }
}

/// The result of a collective-permute that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectivePermuteDone;

impl OpDef for CollectivePermuteDone {
    const OPCODE: &'static str = "collective-permute-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer collective-permute-done"))
    }
}

/// Begins a copy; the result is (destination, source, context).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStart {
    /// Kept for the back ends that prefetch across programs; without effect on the value.
    pub cross_program_prefetch_index: Option<i64>,
}

impl OpDef for CopyStart {
    const OPCODE: &'static str = "copy-start";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer copy-start"))
    }
}

/// The result of a copy that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyDone;

impl OpDef for CopyDone {
    const OPCODE: &'static str = "copy-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer copy-done"))
    }
}

/// Begins a computation; the result is ((operands), result, context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncStart {
    /// The computation.
    pub calls: CompId,
    /// Where it runs.
    pub execution_thread: Option<String>,
    /// The shape of the result.
    pub shape: Shape,
    /// Which outputs share the buffers of operands, as written; without effect on the value.
    pub output_to_operand_aliasing: Option<String>,
}

impl OpDef for AsyncStart {
    const OPCODE: &'static str = "async-start";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer async-start"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.calls]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.calls]
    }
}

/// Lets a computation that was begun go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncUpdate;

impl OpDef for AsyncUpdate {
    const OPCODE: &'static str = "async-update";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer async-update"))
    }
}

/// The result of a computation that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncDone;

impl OpDef for AsyncDone {
    const OPCODE: &'static str = "async-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer async-done"))
    }
}
