//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn convolution(
    op: &ops::Convolution,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate convolution"))
}
