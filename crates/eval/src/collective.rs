//! Collectives.

use helio_ir::{CompId, Error, InstrId, Literal, Result, Shape, ops};

use crate::Evaluator;

type Place = (CompId, InstrId);

/// Stub.
pub(crate) fn all_reduce(
    op: &ops::AllReduce,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate all_reduce"))
}

/// Stub.
pub(crate) fn all_gather(
    op: &ops::AllGather,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate all_gather"))
}

/// Stub.
pub(crate) fn all_to_all(
    op: &ops::AllToAll,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate all_to_all"))
}

/// Stub.
pub(crate) fn collective_permute(
    op: &ops::CollectivePermute,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate collective_permute"))
}

/// Stub.
pub(crate) fn reduce_scatter(
    op: &ops::ReduceScatter,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate reduce_scatter"))
}

/// Stub.
pub(crate) fn collective_broadcast(
    op: &ops::CollectiveBroadcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate collective_broadcast"))
}

/// Stub.
pub(crate) fn ragged_all_to_all(
    op: &ops::RaggedAllToAll,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate ragged_all_to_all"))
}

/// Stub.
pub(crate) fn all_gather_start(
    op: &ops::AllGatherStart,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, at);
    Err(Error::unimplemented("evaluate all_gather_start"))
}

/// Stub.
pub(crate) fn collective_permute_start(
    op: &ops::CollectivePermuteStart,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
    at: Place,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape, at);
    Err(Error::unimplemented("evaluate collective_permute_start"))
}
