//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn cholesky(
    op: &ops::Cholesky,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate cholesky"))
}

/// Stub.
pub(crate) fn triangular_solve(
    op: &ops::TriangularSolve,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate triangular_solve"))
}
