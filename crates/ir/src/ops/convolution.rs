//! `convolution`.

use super::Arity;
use super::shared::{ConvDims, Precision, Window};
use crate::{ElementType, Error, InferCx, OpDef, Result, Shape};

/// Slides a kernel (rhs) over an input (lhs) and sums products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Size, stride, padding, dilation and reversal of each spatial dimension.
    pub window: Window,
    /// Which dimension of input, kernel and output means what.
    pub dims: ConvDims,
    /// Into how many groups the features fall.
    pub feature_group_count: usize,
    /// Into how many groups the batch falls.
    pub batch_group_count: usize,
    /// The type of the result.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

impl OpDef for Convolution {
    const OPCODE: &'static str = "convolution";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer convolution"))
    }
}
