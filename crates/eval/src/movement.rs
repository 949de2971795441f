//! TODO family doc.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// Stub.
pub(crate) fn iota(
    op: &ops::Iota,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate iota"))
}

/// Stub.
pub(crate) fn broadcast(
    op: &ops::Broadcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate broadcast"))
}

/// Stub.
pub(crate) fn reshape(
    op: &ops::Reshape,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate reshape"))
}

/// Stub.
pub(crate) fn dynamic_reshape(
    op: &ops::DynamicReshape,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate dynamic_reshape"))
}

/// Stub.
pub(crate) fn bitcast(
    op: &ops::Bitcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate bitcast"))
}

/// Stub.
pub(crate) fn transpose(
    op: &ops::Transpose,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate transpose"))
}

/// Stub.
pub(crate) fn reverse(
    op: &ops::Reverse,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate reverse"))
}

/// Stub.
pub(crate) fn concatenate(
    op: &ops::Concatenate,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate concatenate"))
}

/// Stub.
pub(crate) fn slice(
    op: &ops::Slice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate slice"))
}

/// Stub.
pub(crate) fn dynamic_slice(
    op: &ops::DynamicSlice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate dynamic_slice"))
}

/// Stub.
pub(crate) fn dynamic_update_slice(
    op: &ops::DynamicUpdateSlice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate dynamic_update_slice"))
}

/// Stub.
pub(crate) fn pad(
    op: &ops::Pad,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate pad"))
}

/// Stub.
pub(crate) fn get_dimension_size(
    op: &ops::GetDimensionSize,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate get_dimension_size"))
}

/// Stub.
pub(crate) fn set_dimension_size(
    op: &ops::SetDimensionSize,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, evaluator, args, shape);
    Err(Error::unimplemented("evaluate set_dimension_size"))
}
