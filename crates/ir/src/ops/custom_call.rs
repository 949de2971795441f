//! `custom-call`.

use super::Arity;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Calls a function that the user has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCall {
    /// The name it was registered under.
    pub target: String,
    /// The shape of the result.
    pub shape: Shape,
    /// Whether it must not be removed, repeated or reordered.
    pub has_side_effect: bool,
    /// The calling convention, as XLA names it.
    pub api_version: Option<String>,
    /// Computations that the function may run.
    pub called_computations: Vec<CompId>,
    /// Attributes without effect on the value, name and value as written.
    pub attributes: Vec<(String, String)>,
}

impl OpDef for CustomCall {
    const OPCODE: &'static str = "custom-call";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer custom-call"))
    }

    fn callees(&self) -> Vec<CompId> {
        self.called_computations.clone()
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        self.called_computations.iter_mut().collect()
    }
}
