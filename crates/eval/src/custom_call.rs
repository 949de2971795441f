//! Calls of the user's functions.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;

/// What the registered function gives. Errors: `InvalidArgument` if there is no such function or
/// its result has another shape.
pub(crate) fn custom_call(
    op: &ops::CustomCall,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let target = &op.target;
    let value = evaluator.cx.custom_calls.call(target, args, shape).unwrap_or_else(|| {
        Err(Error::invalid(format!("no custom call is registered as `{target}`")))
    })?;
    if !value.shape().same(shape) {
        let found = value.shape();
        return Err(Error::invalid(format!(
            "custom call `{target}` returned {found}; the program says {shape}"
        )));
    }
    Ok(value)
}
