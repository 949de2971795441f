//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn rng(
    op: &ops::Rng,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate rng"))
}

/// Stub.
pub(crate) fn rng_bit_generator(
    op: &ops::RngBitGenerator,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate rng_bit_generator"))
}

/// Stub.
pub(crate) fn get_and_update_state(
    op: &ops::RngGetAndUpdateState,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate get_and_update_state"))
}
