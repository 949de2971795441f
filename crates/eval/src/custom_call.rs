//! Calls of the user's functions.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::frame::{first, only};
use crate::{Evaluator, guarded, sort};

/// Targets that XLA's front ends emit as mere annotations of their operand.
const ANNOTATIONS: &[&str] = &[
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
];

/// The target of XLA's older form of the operation `topk`.
const TOP_K: &str = "TopK";

/// Whether a custom call of this target means something without a function of that name.
pub fn is_defined(target: &str) -> bool {
    target == TOP_K || ANNOTATIONS.contains(&target)
}

/// What the registered function gives; without one, what a target means that XLA itself defines
/// (`TopK`, and annotations, which are their operand). Errors: `InvalidArgument` if there is no such function or
/// its result has another shape.
pub(crate) fn custom_call(
    op: &ops::CustomCall,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let target = &op.target;
    let custom_calls = &evaluator.cx.custom_calls;
    let registered =
        guarded(|| format!("custom call `{target}`"), || custom_calls.call(target, args, shape))?;
    let value = registered.unwrap_or_else(|| match target.as_str() {
        TOP_K => top_k(evaluator, args, shape),
        target if ANNOTATIONS.contains(&target) => only(args),
        _ => Err(Error::invalid(format!("no custom call is registered as `{target}`"))),
    })?;
    if !value.shape().same(shape) {
        let found = value.shape();
        return Err(Error::invalid(format!(
            "custom call `{target}` returned {found}; the program says {shape}"
        )));
    }
    value.ensure_whole().map_err(|e| e.context(format_args!("custom call `{target}`")))?;
    Ok(value)
}

/// XLA's older form of the operation `topk`: `k` stands in the result's shape.
fn top_k(evaluator: &Evaluator<'_>, args: &[Literal], shape: &Shape) -> Result<Literal> {
    let operand = first(args)?;
    let last = |shape: &Shape| shape.as_array().and_then(|array| array.dims().last().copied());
    let k = shape.as_tuple().and_then(|parts| last(parts.first()?));
    match (k, last(&operand.shape())) {
        (Some(k), Some(n)) if k <= n => {
            sort::top_k(&ops::TopK { k, largest: true }, evaluator, &[operand], shape)
        }
        _ => {
            Err(Error::invalid(format!("custom call `TopK` of {} gives {shape}", operand.shape())))
        }
    }
}
