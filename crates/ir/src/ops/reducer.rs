//! The computations that fold values together: from N accumulators and N elements, all scalars, to
//! N accumulators.

use super::check::merge_dim;
use crate::{ArrayShape, CompId, ElementType, InferCx, Result, Shape, ensure};

/// What a computation that folds gives.
pub(crate) struct Reducer {
    /// The types of its accumulators.
    pub accumulators: Vec<ElementType>,
    /// Whether it gives a tuple; it always does with more than one accumulator.
    pub is_tuple: bool,
}

/// Whether a value of one type may be given where the other is expected: floats of different
/// precision may, all else must be the same. (The value is converted.)
pub(crate) fn fits(a: ElementType, b: ElementType) -> bool {
    a == b || (a.is_float() && b.is_float())
}

/// Whether both have the same sizes; a bound counts as a size.
pub(crate) fn same_sizes(a: &ArrayShape, b: &ArrayShape) -> bool {
    a.rank() == b.rank() && (0..a.rank()).all(|d| merge_dim(a.dim(d), b.dim(d)).is_some())
}

/// Checks that `callee` can fold elements of these types, beginning with values of types
/// `inits`. Errors: `reducer.C1` to `reducer.C5`.
pub(crate) fn ensure_reducer(
    cx: &InferCx<'_>,
    callee: CompId,
    inits: &[ElementType],
    elements: &[ElementType],
) -> Result<Reducer> {
    let callee = cx.callee(callee);
    let (name, count) = (&callee.name, elements.len());
    let params = callee.params();
    ensure!(
        params.len() == count.saturating_mul(2),
        "reducer.C1",
        "{name} must take 2 parameters for each of the {count} arrays folded, takes {}",
        params.len()
    );

    let result = callee.result_shape();
    let results = match result {
        Shape::Tuple(elements) => elements.as_slice(),
        other => std::slice::from_ref(other),
    };
    let scalar =
        |shape: &Shape| shape.as_array().filter(|array| array.is_scalar()).map(ArrayShape::element);
    let accumulators: Option<Vec<_>> = results.iter().map(scalar).collect();
    let accumulators = accumulators.filter(|scalars| scalars.len() == count);
    ensure!(
        accumulators.is_some(),
        "reducer.C2",
        "{name} must give a scalar for each of the {count} arrays folded, gives {result}"
    );
    let accumulators = accumulators.unwrap_or_default();

    for i in 0..count {
        let param = |number: usize| params.get(&number).map(|&id| &callee.instr(id).shape);
        let shown = |number: usize| param(number).map_or_else(String::new, Shape::to_string);
        let accumulator = accumulators[i];
        ensure!(
            param(i).and_then(scalar) == Some(accumulator),
            "reducer.C3",
            "{name}: parameter {i} must be {accumulator}[] as result {i} is, is {}",
            shown(i)
        );
        ensure!(
            fits(inits[i], accumulator),
            "reducer.C4",
            "{name}: result {i} is {accumulator}[], but begins with a value of type {}",
            inits[i]
        );
        // A float may come as another float, but not as anything else, and it must be possible to
        // accumulate it.
        let number = count + i;
        let element = param(number).and_then(scalar);
        ensure!(
            element.is_some_and(|e| fits(e, elements[i]) && fits(e, accumulator)),
            "reducer.C5",
            "{name}: parameter {number} must fit the elements folded, {}, and result {i}, \
             {accumulator}; is {}",
            elements[i],
            shown(number)
        );
    }
    Ok(Reducer { accumulators, is_tuple: result.as_tuple().is_some() })
}
