//! Arrays from Rust's numbers, and back.

use std::mem;
use std::sync::Arc;

use super::super::IndexIter;
use super::{Array, CountedData, Literal};
use crate::{ArrayShape, Error, Native, Number, Result};

impl Array {
    /// The element at an index, one number for each dimension; `None` if there is none.
    ///
    /// ```
    /// use helio_ir::{Array, Number};
    /// let x = Array::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.get([1, 2]), Some(Number::Int(6)));
    /// assert_eq!(x.get([2, 0]), None);
    /// ```
    pub fn get(&self, index: impl AsRef<[usize]>) -> Option<Number> {
        let index = index.as_ref();
        let inside = index.len() == self.sizes.len()
            && index.iter().zip(&self.sizes).all(|(&i, &size)| i < size);
        inside.then(|| self.number(self.place(index)))
    }

    /// The place in row-major order of an index that is inside.
    fn place(&self, index: &[usize]) -> usize {
        index.iter().zip(self.dims()).fold(0, |at, (&i, &dim)| at * dim + i)
    }

    /// A copy of the elements in row-major order; of dimensions with a size at run time, as many.
    /// Errors: `InvalidArgument` if they have another type than `T`.
    ///
    /// ```
    /// use helio_ir::Array;
    /// let x = Array::from([[1f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// assert!(x.to_vec::<f64>().is_err());
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    pub fn to_vec<T: Native>(&self) -> Result<Vec<T>> {
        let values = self.as_slice::<T>().ok_or_else(|| self.not_of::<T>())?;
        if self.sizes == self.dims() {
            return Ok(values.to_vec());
        }
        let (mut points, mut found) = (IndexIter::new(&self.sizes), Vec::new());
        while let Some(point) = points.next_point() {
            found.push(values[self.place(point)]);
        }
        Ok(found)
    }

    /// The elements in row-major order, without a copy unless another array shares them. Errors: as
    /// for [`Array::to_vec`].
    pub fn into_vec<T: Native>(mut self) -> Result<Vec<T>> {
        let is_whole = self.sizes == self.dims();
        match Arc::get_mut(&mut self.data).filter(|_| is_whole) {
            Some(data) => match T::slice_mut(&mut data.data) {
                Some(values) => Ok(mem::take(values)),
                None => Err(self.not_of::<T>()),
            },
            None => self.to_vec(),
        }
    }

    /// The only element. Errors: `InvalidArgument` if there are several or none, or it has another type
    /// than `T`.
    ///
    /// ```
    /// use helio_ir::Array;
    /// assert_eq!(Array::from(2.5f32).item::<f32>()?, 2.5);
    /// assert!(Array::from([1, 2]).item::<i32>().is_err());
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    pub fn item<T: Native>(&self) -> Result<T> {
        let values = self.as_slice::<T>().ok_or_else(|| self.not_of::<T>())?;
        match values {
            [value] if self.sizes.iter().all(|&size| size == 1) => Ok(*value),
            _ => {
                let shape = self.shape.clone().without_layout();
                Err(Error::invalid(format!("one element is asked for, the array is {shape}")))
            }
        }
    }

    pub(super) fn not_of<T: Native>(&self) -> Error {
        let (shape, asked) = (self.shape.clone().without_layout(), T::TYPE);
        Error::invalid(format!("elements of {shape} are asked for as {asked}"))
    }
}

/// Whether types and sizes are the same, and all elements equal as numbers are: NaN equals nothing,
/// -0 equals 0. (For bits see [`Array::same_bits`].)
impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        if self.element() != other.element() || self.sizes != other.sizes {
            return false;
        }
        if self.sizes == self.dims() && other.sizes == other.dims() {
            return dispatch!(self.data(), values => other.as_slice() == Some(&values[..]));
        }
        let mut points = IndexIter::new(&self.sizes);
        while let Some(point) = points.next_point() {
            if self.number(self.place(point)) != other.number(other.place(point)) {
                return false;
            }
        }
        true
    }
}

/// A scalar.
impl<T: Native> From<T> for Array {
    fn from(value: T) -> Self {
        Array::scalar(value)
    }
}

/// An array of one dimension.
impl<T: Native> From<Vec<T>> for Array {
    fn from(values: Vec<T>) -> Self {
        of_dims(vec![values.len()], values)
    }
}

/// An array of one dimension.
impl<T: Native> From<&[T]> for Array {
    fn from(values: &[T]) -> Self {
        values.to_vec().into()
    }
}

/// An array of one dimension.
impl<T: Native, const N: usize> From<[T; N]> for Array {
    fn from(values: [T; N]) -> Self {
        values.to_vec().into()
    }
}

/// An array of two dimensions.
impl<T: Native, const N: usize, const M: usize> From<[[T; N]; M]> for Array {
    fn from(rows: [[T; N]; M]) -> Self {
        of_dims(vec![M, N], rows.as_flattened().to_vec())
    }
}

/// An array of three dimensions.
impl<T: Native, const N: usize, const M: usize, const L: usize> From<[[[T; N]; M]; L]> for Array {
    fn from(planes: [[[T; N]; M]; L]) -> Self {
        of_dims(vec![L, M, N], planes.as_flattened().as_flattened().to_vec())
    }
}

/// An array of four dimensions.
impl<T: Native, const N: usize, const M: usize, const L: usize, const K: usize>
    From<[[[[T; N]; M]; L]; K]> for Array
{
    fn from(cubes: [[[[T; N]; M]; L]; K]) -> Self {
        let values = cubes.as_flattened().as_flattened().as_flattened();
        of_dims(vec![K, L, M, N], values.to_vec())
    }
}

/// As for [`Array`].
impl<T: Native> From<T> for Literal {
    fn from(value: T) -> Self {
        Literal::Array(value.into())
    }
}

/// As for [`Array`].
impl<T: Native> From<Vec<T>> for Literal {
    fn from(values: Vec<T>) -> Self {
        Literal::Array(values.into())
    }
}

/// An array of these sizes, which call for as many values. (Its bytes fit memory, as the values do.)
fn of_dims<T: Native>(dims: Vec<usize>, values: Vec<T>) -> Array {
    let shape = match ArrayShape::new(T::TYPE, dims.clone()) {
        Ok(shape) => shape,
        // Sizes beyond memory beside one that is 0.
        Err(_) => unreachable!("{dims:?} of values that are in memory"),
    };
    Array { shape, sizes: dims, data: Arc::new(CountedData::new(T::wrap(values))) }
}
