//! Sizes at run time: what results of element-wise operations inherit from their operands.

use helio_ir::{Array, ArrayData, ArrayShape, DimKind, Error, Literal, Result};

/// The array of `shape` and `data` whose bounded dimensions have the sizes that the same dimensions
/// of the operands have. Those that are static there, or not there (in a scalar), say nothing.
///
/// Errors: `InvalidArgument` if two operands have different sizes; `Internal` if `data` does not fit.
pub(crate) fn like(shape: &ArrayShape, data: ArrayData, operands: &[&Array]) -> Result<Literal> {
    let array = Array::from_data(shape.clone(), data)?;
    if shape.is_static() {
        return Ok(Literal::Array(array));
    }
    let mut sizes = shape.dims().to_vec();
    for (d, size) in sizes.iter_mut().enumerate() {
        if shape.kinds()[d] == DimKind::Static {
            continue;
        }
        let bounded = operands.iter().filter(|operand| {
            operand.shape().kinds().get(d).is_some_and(|&kind| kind != DimKind::Static)
        });
        let mut found = bounded.map(|operand| operand.sizes()[d]);
        if let Some(first) = found.next() {
            if let Some(other) = found.find(|&other| other != first) {
                return Err(Error::invalid(format!(
                    "dimension {d} has size {first} in one operand and {other} in another"
                )));
            }
            *size = first;
        }
    }
    array.with_sizes(sizes).map(Literal::Array)
}

/// Gives bounded dimensions these sizes at run time (their bound, if that is smaller).
pub(crate) fn with_bounded_sizes(array: Array, sizes: &[usize]) -> Result<Array> {
    if array.shape().is_static() {
        return Ok(array);
    }
    let sizes = (0..array.shape().rank()).map(|d| match array.shape().dim(d) {
        (bound, DimKind::Bounded) => sizes.get(d).map_or(bound, |&size| size.min(bound)),
        (dim, _) => dim,
    });
    let sizes = sizes.collect();
    array.with_sizes(sizes)
}
