//! Arrays put together from parts and taken apart, by blocks of memory.

use std::ops::Range;

use helio_ir::{Array, ArrayShape, Error, Native, Result, dispatch, memory};

use crate::walk::outside;

/// The shape with another size of a dimension.
fn resized(shape: &ArrayShape, dim: usize, size: usize) -> Result<ArrayShape> {
    let mut dims = shape.dims().to_vec();
    dims[dim] = size;
    ArrayShape::new(shape.element(), dims)
}

/// Arrays joined along a dimension.
pub(super) fn join(parts: &[&Array], dim: usize) -> Result<Array> {
    let first = parts.first().ok_or_else(outside)?;
    let size = first.dims()[dim].checked_mul(parts.len()).ok_or_else(outside)?;
    let shape = resized(first.shape(), dim, size)?;
    if shape.element_count() == 0 {
        return Array::zeros(shape); // however many empty rows there are
    }
    memory::ensure_available(shape.size_bytes())?;
    fn gather<T: Native>(_: &[T], parts: &[&Array], outer: usize) -> Result<helio_ir::ArrayData> {
        let parts = parts.iter().map(|part| part.values::<T>()).collect::<Result<Vec<_>>>()?;
        let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for i in 0..outer {
            for part in &parts {
                let size = part.len() / outer;
                joined.extend_from_slice(&part[i * size..][..size]);
            }
        }
        Ok(T::wrap(joined))
    }
    let outer: usize = first.dims()[..dim].iter().product();
    let data = dispatch!(first.data(), values => gather(values, parts, outer))?;
    Array::from_data(shape, data)
}

/// Part `index` of `count` equal parts along a dimension.
pub(super) fn part(array: &Array, dim: usize, index: usize, count: usize) -> Result<Array> {
    let size = array.dims()[dim];
    if count == 0 || !size.is_multiple_of(count) {
        let shape = array.shape();
        return Err(Error::invalid(format!("dimension {dim} of {shape} in {count} equal parts")));
    }
    let shape = resized(array.shape(), dim, size / count)?;
    memory::ensure_available(shape.size_bytes())?;
    let block: usize = array.dims()[dim..].iter().product();
    let (length, first) = (block / count, block / count * index);
    let data = dispatch!(array.data(), values => {
        let blocks = values.chunks_exact(block.max(1));
        Native::wrap(blocks.flat_map(|block| &block[first..][..length]).copied().collect())
    });
    Array::from_data(shape, data)
}

/// `size` rows from `start` on. Errors: `InvalidArgument` unless the array has them.
pub(super) fn rows(array: &Array, start: i128, size: i128) -> Result<Range<usize>> {
    let count = array.sizes().first().copied().unwrap_or(0) as i128;
    if start < 0 || size < 0 || size > count || start > count - size {
        return Err(Error::invalid(format!(
            "{size} rows from row {start} on, in {}",
            array.shape()
        )));
    }
    Ok(start as usize..(start + size) as usize)
}

/// Copies elements from one place to another; both ranges have the same length.
pub(super) fn copy_range(
    input: &Array,
    from: Range<usize>,
    output: &mut Array,
    to: Range<usize>,
) -> Result<()> {
    fn copy<T: Native>(from: &[T], to: Option<&mut Vec<T>>, at: usize) -> Result<()> {
        let to = to.and_then(|to| to.get_mut(at..)?.get_mut(..from.len()));
        to.ok_or_else(outside)?.copy_from_slice(from);
        Ok(())
    }
    dispatch!(input.data(), values => {
        copy(values.get(from).ok_or_else(outside)?, Native::slice_mut(output.data_mut()), to.start)
    })
}
