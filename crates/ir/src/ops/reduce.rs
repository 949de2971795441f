//! `reduce` and its kin.

use super::Arity;
use super::shared::Window;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Folds dimensions away with a computation; operands: arrays, then initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// The dimensions to fold.
    pub dimensions: Vec<usize>,
    /// From accumulators, then elements, to accumulators.
    pub to_apply: CompId,
}

impl OpDef for Reduce {
    const OPCODE: &'static str = "reduce";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reduce"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Folds each position of a window with a computation; operands: arrays, then initial values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceWindow {
    /// The window.
    pub window: Window,
    /// From accumulators, then elements, to accumulators.
    pub to_apply: CompId,
}

impl OpDef for ReduceWindow {
    const OPCODE: &'static str = "reduce-window";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reduce-window"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Picks an element in each window of the first operand and adds to it the second's element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectAndScatter {
    /// The window.
    pub window: Window,
    /// Whether its first argument is picked rather than its second.
    pub select: CompId,
    /// From current value and new value to the combined one.
    pub scatter: CompId,
}

impl OpDef for SelectAndScatter {
    const OPCODE: &'static str = "select-and-scatter";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer select-and-scatter"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.select, self.scatter]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.select, &mut self.scatter]
    }
}
