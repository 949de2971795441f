//! Calls of the user's functions.
//!
//! [`perform`] is what both engines do: it gives the function views of the operands' memory and of the
//! memory where the results go. The interpreter looks at its literals in this way.

mod approx_top_k;
mod assertion;
mod call;
mod info;
mod order;
mod view;

use helio_ir::{Array, ElementType, Error, InstrAt, Literal, Result, Shape, memory, ops};

pub use assertion::{ASSERT, Assertion};
pub use call::{Call, OperandBytes, Work};
pub use info::CallInfo;
pub use view::{ArrayView, ArrayViewMut};

use crate::frame::{first, only};
use crate::services::{Context, CustomFunction, NoWorkers};
use crate::{Evaluator, guarded, sort};
use approx_top_k::{APPROX_TOP_K, approx_top_k};
use order::Reordered;

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
    [TOP_K, APPROX_TOP_K, ASSERT].contains(&target) || ANNOTATIONS.contains(&target)
}

/// Calls a function on the bytes of its operands, and of its results, which it writes; tuples are taken
/// apart, tokens have no bytes, and all arrays are row-major. An operand that shares memory with a
/// result ([`CallInfo::aliases`]) is what that result holds; its own bytes do not matter. `work` is
/// what the function may compute with.
///
/// Errors: what the function returns, with its name, or the message of its panic; the limits of the
/// run.
pub fn perform(
    function: &CustomFunction,
    info: &CallInfo,
    cx: &Context,
    work: Work<'_>,
    operands: &[&[u8]],
    results: &mut [&mut [u8]],
) -> Result<()> {
    let (operand_shapes, result_shapes) = (info.operand_arrays(), info.result_arrays());
    if operand_shapes.len() != operands.len() || result_shapes.len() != results.len() {
        return Err(Error::internal("a custom call with other operands than its instruction"));
    }
    for (number, (shape, bytes)) in result_shapes.iter().zip(&mut *results).enumerate() {
        // A `bool` is 0 or 1, whatever was there.
        let is_new = !info.aliases.iter().any(|&(result, _)| result == number);
        if is_new && shape.is_some_and(|shape| shape.element().is_pred()) {
            bytes.fill(0);
        }
    }
    let (mut own_shapes, mut own) = (operand_shapes.clone(), operands.to_vec());
    for &(_, operand) in &info.aliases {
        (own_shapes[operand], own[operand]) = (None, &[]);
    }
    let read = Reordered::operands(&own_shapes, &own)?;
    let mut written = Reordered::results(&result_shapes, results)?;
    let mut call = Call {
        info,
        participant: cx.me,
        device: cx.device,
        work,
        operand_shapes: &operand_shapes,
        result_shapes: &result_shapes,
        operands: &read.operand_slices(&own),
        results: written.result_slices(results),
    };
    let name = || format!("custom call `{}`", info.target);
    guarded(name, || function(&mut call))?.map_err(|error| error.context(name()))?;
    drop(call);
    written.put_back(&result_shapes, results);
    for (shape, bytes) in result_shapes.iter().zip(results) {
        let Some(shape) = shape else { continue };
        keep_elements(shape.element(), bytes);
    }
    Ok(())
}

/// Makes elements of whatever bytes a function has written.
fn keep_elements(element: ElementType, bytes: &mut [u8]) {
    if element.is_pred() {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    } else if element.bits() < 8 {
        let mask = (1 << element.bits()) - 1;
        bytes.iter_mut().for_each(|byte| *byte &= mask);
    }
}

/// What the registered function gives; without one, what a target means that XLA itself defines
/// (`TopK`, `ApproxTopK`, and annotations, which are their operand), or helio itself ([`ASSERT`]). Errors: `InvalidArgument` if there is no such
/// function; those of [`perform`].
pub(crate) fn custom_call(
    op: &ops::CustomCall,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
    (computation, instr): InstrAt,
) -> Result<Literal> {
    let target = op.target.as_str();
    let Some(function) = evaluator.cx.custom_calls.find(target) else {
        return match target {
            TOP_K => top_k(evaluator, args, shape),
            APPROX_TOP_K => approx_top_k(evaluator, args, shape, (computation, instr)),
            ASSERT => assertion::assert(evaluator.module.computation(computation), instr, args),
            target if ANNOTATIONS.contains(&target) => only(args),
            _ => Err(Error::invalid(format!("no custom call is registered as `{target}`"))),
        };
    };
    let info = CallInfo::of(evaluator.module, computation, instr)?;
    let leaves: Vec<&Literal> = args.iter().flat_map(Literal::leaves).collect();
    let bytes: Vec<_> = leaves
        .iter()
        .map(|leaf| leaf.as_array().map(Array::to_bytes).unwrap_or_default())
        .collect();
    let operands: Vec<&[u8]> = bytes.iter().map(|bytes| &**bytes).collect();
    let mut results = shape.leaves().into_iter().map(Written::new).collect::<Result<Vec<_>>>()?;
    let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Written::bytes).collect();
    for &(result, operand) in &info.aliases {
        slices[result].copy_from_slice(operands[operand]);
    }
    let work = Work::new(&NoWorkers, &evaluator.meter);
    perform(&*function, &info, evaluator.cx, work, &operands, &mut slices)?;
    assemble(shape, &mut results.into_iter().map(Written::literal))
}

/// A part of a result that is being written: in place, where literals are kept as their bytes.
enum Written {
    Array(Array),
    Bytes(helio_ir::ArrayShape, Vec<u8>),
    Token,
}

impl Written {
    fn new(shape: &Shape) -> Result<Self> {
        match shape {
            Shape::Array(shape) => {
                let shape = shape.clone();
                memory::ensure_available(shape.size_bytes())?;
                let mut array = Array::zeros(shape.clone())?;
                Ok(match array.as_bytes_mut() {
                    Some(_) => Written::Array(array),
                    None => {
                        let bytes = vec![0; shape.size_bytes()];
                        Written::Bytes(shape, bytes)
                    }
                })
            }
            Shape::Token => Ok(Written::Token),
            Shape::Tuple(_) | Shape::Opaque => {
                Err(Error::unimplemented(format!("a custom call with a result of {shape}")))
            }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Written::Array(array) => array.as_bytes_mut().unwrap_or_default(),
            Written::Bytes(_, bytes) => bytes,
            Written::Token => &mut [],
        }
    }

    fn literal(self) -> Result<Literal> {
        match self {
            Written::Array(array) => Ok(Literal::Array(array)),
            Written::Bytes(shape, bytes) => Array::from_bytes(shape, &bytes).map(Literal::Array),
            Written::Token => Ok(Literal::Token),
        }
    }
}

/// A value of this shape from its parts.
fn assemble(shape: &Shape, parts: &mut impl Iterator<Item = Result<Literal>>) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| assemble(element, parts));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        _ => parts.next().ok_or_else(|| Error::internal("a part of a result is missing"))?,
    }
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
