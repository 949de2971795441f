//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn unary(
    op: ops::UnaryOp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate unary"))
}

/// Stub.
pub(crate) fn binary(
    op: ops::BinaryOp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate binary"))
}

/// Stub.
pub(crate) fn compare(
    op: &ops::Compare,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate compare"))
}

/// Stub.
pub(crate) fn select(
    op: &ops::Select,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate select"))
}

/// Stub.
pub(crate) fn clamp(
    op: &ops::Clamp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate clamp"))
}
