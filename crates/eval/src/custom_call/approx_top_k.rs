//! `ApproxTopK`: what comes first by a comparison, along a dimension.

use helio_ir::{CompId, Error, InferCx, InstrAt, Literal, OpDef, Result, Shape, ops};

use super::info::CallInfo;
use crate::{Evaluator, slice, sort};

/// The target.
pub(super) const APPROX_TOP_K: &str = "ApproxTopK";

/// The exact result, as XLA gives it on CPUs: operands sorted along `reduction_dim` by the computation, and
/// as many of the first as the result has. After the arrays come their initial values, which do not matter
/// then.
///
/// Errors: operands, computation or attributes are none that the target takes.
pub(super) fn approx_top_k(
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
    (computation, instr): InstrAt,
) -> Result<Literal> {
    let context = |error: Error| error.context(format!("custom call `{APPROX_TOP_K}`"));
    let info = CallInfo::of(evaluator.module, computation, instr)?;
    let instr = evaluator.module.computation(computation).instr(instr);
    let callees = match &instr.op {
        helio_ir::Op::CustomCall(op) => op.called_computations.as_slice(),
        _ => &[],
    };
    let sort = sort_of(&info, callees, args.len()).map_err(context)?;
    let arrays = &args[..args.len() / 2];
    let shapes: Vec<Shape> = arrays.iter().map(Literal::shape).collect();
    let operands: Vec<&Shape> = shapes.iter().collect();
    let cx = InferCx { operands: &operands, module: evaluator.module };
    let sorted_shape = sort.infer(&cx).map_err(context)?;
    let sorted = sort::sort(&sort, evaluator, arrays, &sorted_shape)?;
    let (sorted, results) = match (&sorted, shape) {
        (Literal::Tuple(sorted), Shape::Tuple(results)) => (&sorted[..], &results[..]),
        (sorted, result) => (std::slice::from_ref(sorted), std::slice::from_ref(result)),
    };
    if sorted.len() != results.len() {
        let detail = format!("there must be {} results, are {}", sorted.len(), results.len());
        return Err(context(Error::invalid(detail)));
    }
    let parts = sorted.iter().zip(results).map(|(sorted, result)| {
        let limits = result.as_array().map(|array| array.dims().to_vec()).unwrap_or_default();
        let first = ops::Slice::dense(vec![0; limits.len()], limits);
        let from = sorted.shape();
        let found = first.infer(&InferCx { operands: &[&from], module: evaluator.module });
        if !found.is_ok_and(|found| found.same(result)) {
            let detail = format!("a result must be the first elements of {from}, is {result}");
            return Err(context(Error::invalid(detail)));
        }
        slice::slice(&first, evaluator, std::slice::from_ref(sorted), result)
    });
    let parts = parts.collect::<Result<Vec<Literal>>>()?;
    Ok(match shape {
        Shape::Tuple(_) => Literal::Tuple(parts),
        _ => crate::frame::only(&parts)?,
    })
}

/// The sort that a call asks for.
fn sort_of(info: &CallInfo, callees: &[CompId], operands: usize) -> Result<ops::Sort> {
    let &[to_apply] = callees else {
        let detail = format!("there must be 1 called computation, are {}", callees.len());
        return Err(Error::invalid(detail));
    };
    if operands < 2 || !operands.is_multiple_of(2) {
        let detail =
            format!("there must be arrays and as many initial values, are {operands} operands");
        return Err(Error::invalid(detail));
    }
    let dimension = info.attributes()?.integer("reduction_dim")?;
    let dimension = usize::try_from(dimension).map_err(|_| {
        Error::invalid(format!("attribute `reduction_dim` must be a dimension, is {dimension}"))
    })?;
    Ok(ops::Sort { dimension, is_stable: true, to_apply })
}
