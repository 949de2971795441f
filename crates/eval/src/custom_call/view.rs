//! Arrays of others, looked at where they lie.

use helio_ir::types::Plain;
use helio_ir::{ArrayShape, Error, Result};

/// An array of a caller: its shape and its bytes, which are not copied.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    pub(super) shape: &'a ArrayShape,
    pub(super) bytes: &'a [u8],
}

impl<'a> ArrayView<'a> {
    /// Its shape. Elements lie in the order of its layout; without one, in row-major order.
    pub fn shape(&self) -> &'a ArrayShape {
        self.shape
    }

    /// Its elements, little-endian, one after the other; types narrower than a byte take one each.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its elements. Errors: they are of another type.
    pub fn as_slice<T: Plain>(&self) -> Result<&'a [T]> {
        ensure_type::<T>(self.shape)?;
        T::from_bytes(self.bytes).ok_or_else(|| not_plain(self.shape))
    }
}

/// An array of a caller that is to be written: its shape and its bytes.
#[derive(Debug)]
pub struct ArrayViewMut<'a> {
    pub(super) shape: &'a ArrayShape,
    pub(super) bytes: &'a mut [u8],
}

impl<'a> ArrayViewMut<'a> {
    /// Its shape. Elements lie in the order of its layout; without one, in row-major order.
    pub fn shape(&self) -> &'a ArrayShape {
        self.shape
    }

    /// Its elements, as [`ArrayView::bytes`] has them.
    pub fn bytes_mut(self) -> &'a mut [u8] {
        self.bytes
    }

    /// Its elements. Errors: they are of another type.
    pub fn as_mut_slice<T: Plain>(self) -> Result<&'a mut [T]> {
        ensure_type::<T>(self.shape)?;
        T::from_bytes_mut(self.bytes).ok_or_else(|| not_plain(self.shape))
    }
}

fn ensure_type<T: Plain>(shape: &ArrayShape) -> Result<()> {
    if shape.element() == T::TYPE {
        return Ok(());
    }
    Err(Error::invalid(format!("an array of {shape} has no elements of {}", T::TYPE)))
}

fn not_plain(shape: &ArrayShape) -> Error {
    Error::unimplemented(format!("the memory of {shape} cannot be looked at as a slice"))
}
