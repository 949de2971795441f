//! Indices that programs compute: read whatever their type, brought inside their array.

use helio_ir::{Array, Error, Literal, Number, Result};

use crate::frame::array;
use crate::walk::steps;

/// The element at a place in row-major order, as an integer wide enough for every type.
/// Errors: `Internal` if the elements are not integers.
pub(crate) fn integer(array: &Array, place: usize) -> Result<i128> {
    match array.number(place) {
        Number::Int(value) => Ok(value),
        Number::Pred(value) => Ok(value.into()),
        _ => Err(Error::internal(format!("{} taken for indices", array.shape()))),
    }
}

/// The number that a scalar operand is. Errors: as for [`integer`].
pub(crate) fn scalar_integer(args: &[Literal], i: usize) -> Result<i128> {
    let scalar = array(args, i)?;
    if scalar.data().is_empty() {
        return Err(Error::internal(format!("operand {i} is not a scalar")));
    }
    integer(scalar, 0)
}

/// The start indices of a dynamic slice: one scalar for each dimension or (the older form) one
/// vector of them all. Errors: as for [`integer`], or if there are not `rank` of them.
pub(crate) fn start_indices(args: &[Literal], rank: usize) -> Result<Vec<i128>> {
    let starts: Vec<i128> = match args {
        [Literal::Array(vector)] if vector.dims().len() == 1 => {
            (0..vector.data().len()).map(|i| integer(vector, i)).collect::<Result<_>>()?
        }
        scalars => (0..scalars.len()).map(|i| scalar_integer(scalars, i)).collect::<Result<_>>()?,
    };
    if starts.len() != rank {
        return Err(Error::internal(format!("{} start indices for rank {rank}", starts.len())));
    }
    Ok(starts)
}

/// The start nearest to `start` at which `size` elements fit into `dim`.
pub(crate) fn clamp_start(start: i128, dim: usize, size: usize) -> usize {
    start.clamp(0, dim.saturating_sub(size) as i128) as usize
}

/// The dimensions below `rank` that none of the lists names, in order.
pub(crate) fn without(rank: usize, lists: &[&[usize]]) -> Vec<usize> {
    (0..rank).filter(|d| !lists.iter().any(|list| list.contains(d))).collect()
}

/// The index vectors that lie along one dimension of an array (or are its scalars).
pub(crate) struct IndexVectors<'a> {
    indices: &'a Array,
    /// The distance of a vector's components.
    component_step: usize,
    /// The other dimensions.
    pub(crate) dims: Vec<usize>,
    /// The distance of neighbours, for each dimension of the array.
    pub(crate) steps: Vec<isize>,
}

impl<'a> IndexVectors<'a> {
    /// `vector_dim` is the rank if the vectors are scalars.
    pub(crate) fn new(indices: &'a Array, vector_dim: usize) -> Self {
        let steps = steps(indices.dims());
        let component_step = steps.get(vector_dim).map_or(0, |&step| step as usize);
        let dims = without(indices.dims().len(), &[&[vector_dim]]);
        IndexVectors { indices, component_step, dims, steps }
    }

    /// Component `i` of the vector that begins at this place. Errors: as for [`integer`].
    pub(crate) fn component(&self, vector: usize, i: usize) -> Result<i128> {
        integer(self.indices, vector + i * self.component_step)
    }
}
