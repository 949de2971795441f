//! Calls, loops, branches, and operations that only pass values on.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::frame::{array, first, only};

/// The value. Errors: `InvalidArgument` if the text has left it out.
pub(crate) fn constant(op: &ops::Constant) -> Result<Literal> {
    if op.elided {
        return Err(Error::invalid(
            "the value of this constant was left out (`{...}`) when the program was printed; \
             print it with large constants",
        ));
    }
    Ok(op.literal.clone())
}

/// The computation's value for the operands.
pub(crate) fn call(
    op: &ops::Call,
    evaluator: &Evaluator<'_>,
    args: Vec<Literal>,
) -> Result<Literal> {
    evaluator.call(op.to_apply, args)
}

/// The computation's value for the operands.
pub(crate) fn fusion(
    op: &ops::Fusion,
    evaluator: &Evaluator<'_>,
    args: Vec<Literal>,
) -> Result<Literal> {
    evaluator.call(op.calls, args)
}

/// `state = body(state)` as long as `condition(state)`.
pub(crate) fn while_loop(
    op: &ops::While,
    evaluator: &Evaluator<'_>,
    args: Vec<Literal>,
) -> Result<Literal> {
    let mut state = args.into_iter().next().ok_or_else(|| Error::internal("no first value"))?;
    loop {
        let condition = evaluator.call(op.condition, vec![state.clone()])?;
        if !array(&[condition], 0)?.values::<bool>()?[0] {
            return Ok(state);
        }
        state = evaluator.call(op.body, vec![state])?;
    }
}

/// Runs one branch: for a `pred` the first if true, else the second; for an index the one it names,
/// the last if there is none.
pub(crate) fn conditional(
    op: &ops::Conditional,
    evaluator: &Evaluator<'_>,
    mut args: Vec<Literal>,
) -> Result<Literal> {
    let selector = array(&args, 0)?;
    let branch = match selector.as_slice::<bool>() {
        Some(pred) => usize::from(!pred[0]),
        None => usize::try_from(selector.values::<i32>()?[0])
            .ok()
            .filter(|&index| index < op.branches.len())
            .unwrap_or(op.branches.len() - 1),
    };
    if 1 + branch >= args.len() {
        return Err(Error::internal("a branch has no operand"));
    }
    let operand = args.swap_remove(1 + branch);
    drop(args); // What the other branches would have needed.
    evaluator.call(op.branches[branch], vec![operand])
}

/// The operands themselves.
pub(crate) fn optimization_barrier(
    _: &ops::OptimizationBarrier,
    _: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    only(args)
}

/// (destination, source, context)
pub(crate) fn copy_start(
    _: &ops::CopyStart,
    _: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let value = first(args)?;
    Ok(Literal::Tuple(vec![value.clone(), value, Literal::scalar(0u32)]))
}

/// The destination.
pub(crate) fn copy_done(args: &[Literal]) -> Result<Literal> {
    match args {
        [Literal::Tuple(parts)] => first(parts),
        _ => Err(Error::internal("not the result of a copy-start")),
    }
}

/// ((operands), result, contexts…): the computation runs here and now.
pub(crate) fn async_start(
    op: &ops::AsyncStart,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let result = evaluator.call(op.calls, args.to_vec())?;
    let mut parts = vec![Literal::Tuple(args.to_vec()), result];
    // Contexts are opaque numbers or tokens that only the matching update and done see.
    for context in shape.as_tuple().unwrap_or_default().iter().skip(2) {
        parts.push(zero(context)?);
    }
    Ok(Literal::Tuple(parts))
}

/// The second part of what a start returned.
pub(crate) fn done(args: &[Literal]) -> Result<Literal> {
    match args {
        [Literal::Tuple(parts)] if parts.len() >= 2 => Ok(parts[1].clone()),
        _ => Err(Error::internal("not the result of a start")),
    }
}

/// Zeros in any shape.
pub(crate) fn zero(shape: &Shape) -> Result<Literal> {
    match shape {
        Shape::Array(array) => helio_ir::Array::zeros(array.clone()).map(Literal::Array),
        Shape::Tuple(elements) => {
            elements.iter().map(zero).collect::<Result<_>>().map(Literal::Tuple)
        }
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(Error::unimplemented("a value of opaque shape")),
    }
}
