//! Arrays of the crate `ndarray`, in and out.

use ndarray::{ArrayBase, ArrayD, ArrayView, ArrayViewD, Data, Dimension, OwnedRepr, Slice};

use super::Array;
use crate::{Error, Native, Result};

impl Array {
    /// The elements where they lie, as an array of the crate `ndarray` (feature `ndarray`); of dimensions
    /// with a size at run time, as many. Errors: `InvalidArgument` if they have another type than `T`.
    ///
    /// ```
    /// use helio_ir::Array;
    /// let x = Array::from([[1f32, 2.0], [3.0, 4.0]]);
    /// let view = x.as_ndarray::<f32>()?;
    /// assert_eq!(view[[1, 0]], 3.0);
    /// assert!(x.as_ndarray::<f64>().is_err());
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    pub fn as_ndarray<T: Native>(&self) -> Result<ArrayViewD<'_, T>> {
        let values = self.as_slice::<T>().ok_or_else(|| self.not_of::<T>())?;
        let mut view = ArrayView::from_shape(self.dims(), values).map_err(refused)?;
        view.slice_each_axis_inplace(|axis| Slice::from(..self.sizes[axis.axis.index()]));
        Ok(view)
    }

    /// As [`Array::as_ndarray`], without a copy unless another array shares the elements. Errors: as for
    /// it.
    ///
    /// ```
    /// use helio_ir::Array;
    /// use ndarray::{Ix2, array};
    /// let x = Array::try_from(array![[1, 2], [3, 4]])?;
    /// let y = x.into_ndarray::<i32>()?.into_dimensionality::<Ix2>()?;
    /// assert_eq!(y.t(), array![[1, 3], [2, 4]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_ndarray<T: Native>(self) -> Result<ArrayD<T>> {
        let sizes = self.sizes.clone();
        ArrayD::from_shape_vec(sizes, self.into_vec()?).map_err(refused)
    }
}

/// Without a copy if the elements lie in row-major order. Errors: `shape.C1` (too many dimensions),
/// `shape.C2` (sizes too large, beside one that is 0).
impl<T: Native, D: Dimension> TryFrom<ArrayBase<OwnedRepr<T>, D>> for Array {
    type Error = Error;

    fn try_from(array: ArrayBase<OwnedRepr<T>, D>) -> Result<Self> {
        if !array.is_standard_layout() {
            return Array::try_from(&array);
        }
        let dims = array.shape().to_vec();
        let (mut values, first) = array.into_raw_vec_and_offset();
        // What a slice has left out stays before and behind its elements.
        values.drain(..first.unwrap_or(0).min(values.len()));
        values.truncate(dims.iter().product());
        Array::new(dims, values)
    }
}

/// A copy, also of a view. Errors: as for arrays that are given away.
impl<T: Native, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Array {
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Self> {
        Array::new(array.shape(), array.iter().copied().collect())
    }
}

fn refused(error: ndarray::ShapeError) -> Error {
    Error::invalid(format!("ndarray: {error}"))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array3, Axis, IxDyn, Slice, array};

    use crate::{Array, ArrayShape, DimKind, ElementType};

    #[test]
    fn arrays_come_and_go() {
        let plane = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i32);
        let ours = Array::try_from(&plane).unwrap();
        assert_eq!(
            (ours.dims(), ours.get([1, 2, 3])),
            (&[2, 3, 4][..], Some(crate::Number::Int(123)))
        );
        assert_eq!(ours.as_ndarray::<i32>().unwrap(), plane.view().into_dyn());
        assert_eq!(ours.into_ndarray::<i32>().unwrap(), plane.into_dyn());
        let scalar = Array::from(true);
        assert!(scalar.as_ndarray::<bool>().unwrap()[IxDyn(&[])]);
        assert_eq!(scalar.as_ndarray::<u8>().unwrap_err().code(), crate::Code::InvalidArgument);
    }

    #[test]
    fn any_order_and_any_part_is_read() {
        let square = array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let transposed = Array::from([[1f32, 4.0], [2.0, 5.0], [3.0, 6.0]]);
        assert_eq!(Array::try_from(square.clone().reversed_axes()).unwrap(), transposed);
        assert_eq!(Array::try_from(&square.t()).unwrap(), transposed);
        let part = |axis, indices: Slice| {
            let mut part = square.clone();
            part.slice_axis_inplace(Axis(axis), indices);
            Array::try_from(part).unwrap()
        };
        assert_eq!(part(0, (1..).into()), Array::from([[4f32, 5.0, 6.0]]));
        assert_eq!(part(0, (..1).into()), Array::from([[1f32, 2.0, 3.0]]));
        assert_eq!(part(1, (1..).into()), Array::from([[2f32, 3.0], [5.0, 6.0]]));
    }

    #[test]
    fn nothing_is_copied_that_need_not_be() {
        let row = Array2::<f32>::zeros((1, 1000));
        let at = row.as_ptr();
        let ours = Array::try_from(row).unwrap();
        assert_eq!(ours.as_ndarray::<f32>().unwrap().as_ptr(), at);
        assert_eq!(ours.into_ndarray::<f32>().unwrap().as_ptr(), at);
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        let deep = ndarray::ArrayD::<u8>::zeros(vec![1; 65]);
        assert_eq!(Array::try_from(deep).unwrap_err().rule_id(), Some("shape.C1"));
        let wide = Array2::<f64>::zeros((0, isize::MAX as usize));
        assert_eq!(Array::try_from(wide).unwrap_err().rule_id(), Some("shape.C2"));
        let none = Array2::<f64>::zeros((0, 3));
        assert_eq!(Array::try_from(none).unwrap().into_ndarray::<f64>().unwrap().shape(), [0, 3]);
    }

    #[test]
    fn sizes_at_run_time_are_those_of_the_view() {
        let kinds = vec![DimKind::Static, DimKind::Bounded];
        let shape = ArrayShape::with_kinds(ElementType::S8, vec![2, 3], kinds).unwrap();
        let array = Array::from_bytes(shape, &[1, 2, 3, 4, 5, 6]).unwrap();
        let array = array.with_sizes(vec![2, 2]).unwrap();
        let expected = array![[1i8, 2], [4, 5]].into_dyn();
        assert_eq!(array.as_ndarray::<i8>().unwrap(), expected);
        assert_eq!(array.into_ndarray::<i8>().unwrap(), expected);
    }
}
