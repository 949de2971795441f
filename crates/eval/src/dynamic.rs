//! Sizes at run time: what results of element-wise operations inherit from their operands.

use std::iter::zip;

use helio_ir::{Array, ArrayData, ArrayShape, DimKind, Error, Literal, Result};

/// The array of `shape` and `data` whose bounded dimensions have the sizes that the same dimensions
/// of the operands have. Those that are static there, or not there (in a scalar), say nothing.
///
/// Errors: `InvalidArgument` if two operands have different sizes; `Internal` if `data` does not fit.
pub(crate) fn like(shape: &ArrayShape, data: ArrayData, operands: &[&Array]) -> Result<Literal> {
    let array = Array::from_data(shape.clone(), data)?;
    match shape.is_static() {
        true => Ok(Literal::Array(array)),
        false => array.with_sizes(shared_sizes(shape, operands)?).map(Literal::Array),
    }
}

/// The sizes at run time of what [`like`] gives. Errors: `InvalidArgument` if two operands have different
/// sizes.
pub(crate) fn shared_sizes(shape: &ArrayShape, operands: &[&Array]) -> Result<Vec<usize>> {
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
    Ok(sizes)
}

/// The least size of each dimension of arrays that are gone through together: what one of them does not
/// have at run time is left out of all.
pub(crate) fn least_sizes(operands: &[&Array]) -> Vec<usize> {
    let Some((first, others)) = operands.split_first() else { return Vec::new() };
    let mut sizes = first.sizes().to_vec();
    for other in others {
        zip(&mut sizes, other.sizes()).for_each(|(size, &other)| *size = other.min(*size));
    }
    sizes
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
