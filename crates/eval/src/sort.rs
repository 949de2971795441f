//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn sort(
    op: &ops::Sort,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate sort"))
}

/// Stub.
pub(crate) fn top_k(
    op: &ops::TopK,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate top_k"))
}
