//! `batch-norm-training` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Normalises over all dimensions but one; result (output, mean, variance).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormTraining {
    /// Added to the variance.
    pub epsilon: f32,
    /// The dimension not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormTraining {
    const OPCODE: &'static str = "batch-norm-training";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer batch-norm-training"))
    }
}

/// Normalises with given mean and variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormInference {
    /// Added to the variance.
    pub epsilon: f32,
    /// The dimension not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormInference {
    const OPCODE: &'static str = "batch-norm-inference";
    const ARITY: Arity = Arity::Exactly(5);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer batch-norm-inference"))
    }
}

/// The gradients of batch-norm-training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormGrad {
    /// Added to the variance.
    pub epsilon: f32,
    /// The dimension not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormGrad {
    const OPCODE: &'static str = "batch-norm-grad";
    const ARITY: Arity = Arity::Exactly(5);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer batch-norm-grad"))
    }
}
