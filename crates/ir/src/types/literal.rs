//! Literals: values of any shape in the host's memory, arrays row-major.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use super::{ArrayShape, DimKind, ElementType, Native, Number, Shape};
use crate::memory::{self, Account};
use crate::{Error, Result};

macro_rules! define_data {
    ($($variant:ident, $native:ty, $name:literal, $bits:literal, $class:ident;)*) => {
        /// The elements of an array, in row-major order, one vector variant for each type.
        ///
        /// [`dispatch!`](crate::dispatch) writes code for whichever it is.
        #[derive(Clone, Debug)]
        pub enum ArrayData {
            $(#[doc = concat!("Elements of `", $name, "`.")] $variant(Vec<$native>),)*
        }
    };
}
crate::for_each_element_type!(define_data);

/// Evaluates an expression with the vector inside an [`ArrayData`], for whichever type it is.
///
/// ```
/// use helio_ir::{ArrayData, dispatch};
/// let data = ArrayData::S32(vec![1, 2, 3]);
/// assert_eq!(dispatch!(&data, values => values.len()), 3);
/// ```
#[macro_export]
macro_rules! dispatch {
    ($data:expr, $values:ident => $body:expr) => {
        $crate::for_each_element_type!($crate::dispatch_rows, $data, $values => $body)
    };
}

/// Evaluates an expression with `$T` standing for the Rust type of an [`ElementType`].
///
/// ```
/// use helio_ir::{ElementType, Native, dispatch_type};
/// let bits = dispatch_type!(ElementType::F32, T => std::mem::size_of::<T>() * 8);
/// assert_eq!(bits, 32);
/// ```
#[macro_export]
macro_rules! dispatch_type {
    ($element:expr, $T:ident => $body:expr) => {
        $crate::for_each_element_type!($crate::dispatch_type_rows, $element, $T => $body)
    };
}

/// The `match` of [`dispatch!`].
#[doc(hidden)]
#[macro_export]
macro_rules! dispatch_rows {
    (
        [$data:expr, $values:ident => $body:expr]
        $($variant:ident, $native:ty, $name:literal, $bits:literal, $class:ident;)*
    ) => {
        match $data {
            $($crate::ArrayData::$variant($values) => $body,)*
        }
    };
}

/// The `match` of [`dispatch_type!`].
#[doc(hidden)]
#[macro_export]
macro_rules! dispatch_type_rows {
    (
        [$element:expr, $T:ident => $body:expr]
        $($variant:ident, $native:ty, $name:literal, $bits:literal, $class:ident;)*
    ) => {
        match $element {
            $($crate::ElementType::$variant => {
                type $T = $native;
                $body
            })*
        }
    };
}

impl ArrayData {
    /// The number of elements.
    pub fn len(&self) -> usize {
        dispatch!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        fn of<T: Native>(_: &[T]) -> ElementType {
            T::TYPE
        }
        dispatch!(self, values => of(values))
    }

    fn size_bytes(&self) -> usize {
        self.len() * self.element().size_bytes()
    }

    /// The elements as little-endian bytes, if they are kept like this: those of types narrower than
    /// a byte and of 8-bit floats are not.
    fn as_bytes(&self) -> Option<&[u8]> {
        use ArrayData::{
            BF16, C64, C128, F16, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64,
        };
        if cfg!(target_endian = "big") {
            return None;
        }
        Some(match self {
            Pred(v) => bytemuck::cast_slice(v),
            S8(v) => bytemuck::cast_slice(v),
            S16(v) => bytemuck::cast_slice(v),
            S32(v) => bytemuck::cast_slice(v),
            S64(v) => bytemuck::cast_slice(v),
            U8(v) => v,
            U16(v) => bytemuck::cast_slice(v),
            U32(v) => bytemuck::cast_slice(v),
            U64(v) => bytemuck::cast_slice(v),
            F16(v) => bytemuck::cast_slice(v),
            BF16(v) => bytemuck::cast_slice(v),
            F32(v) => bytemuck::cast_slice(v),
            F64(v) => bytemuck::cast_slice(v),
            C64(v) => bytemuck::cast_slice(v),
            C128(v) => bytemuck::cast_slice(v),
            _ => return None,
        })
    }
}

/// The elements, counted in [`memory`] while they live.
#[derive(Debug)]
struct CountedData {
    data: ArrayData,
    counted_bytes: usize,
    account: Account,
}

impl CountedData {
    fn new(data: ArrayData) -> Self {
        let counted_bytes = data.size_bytes();
        let account = Account::current();
        account.add(counted_bytes);
        CountedData { data, counted_bytes, account }
    }
}

impl Clone for CountedData {
    fn clone(&self) -> Self {
        CountedData::new(self.data.clone())
    }
}

impl Drop for CountedData {
    fn drop(&mut self) {
        self.account.release(self.counted_bytes);
    }
}

/// An array and its elements in row-major order, whatever the layout says; cloning is cheap.
///
/// A dimension of kind [`DimKind::Bounded`] has a size at run time, at most the bound. The elements
/// beyond it are there, but mean nothing.
#[derive(Clone)]
pub struct Array {
    shape: ArrayShape,
    /// The size of each dimension at run time: equal to the shape's for static ones.
    sizes: Vec<usize>,
    data: Arc<CountedData>,
}

/// What an array leaves behind: the array, as long as something else has its elements.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WeakArray {
    shape: ArrayShape,
    sizes: Vec<usize>,
    data: Weak<CountedData>,
}

impl WeakArray {
    /// The array, if something has its elements.
    pub fn upgrade(&self) -> Option<Array> {
        let (shape, sizes) = (self.shape.clone(), self.sizes.clone());
        Some(Array { shape, sizes, data: self.data.upgrade()? })
    }

    /// Whether it is an array: the same elements in memory in the same shape, not equal ones.
    pub fn is(&self, array: &Array) -> bool {
        let is_same = std::ptr::eq(self.data.as_ptr(), Arc::as_ptr(&array.data));
        is_same && (&self.shape, &self.sizes) == (&array.shape, &array.sizes)
    }
}

impl Array {
    /// What remains of it for those who do not keep it.
    #[doc(hidden)]
    pub fn downgrade(&self) -> WeakArray {
        let (shape, sizes) = (self.shape.clone(), self.sizes.clone());
        WeakArray { shape, sizes, data: Arc::downgrade(&self.data) }
    }

    /// An array of static size. Errors: as for [`ArrayShape::new`], and `literal.C1` unless there
    /// are as many values as the sizes call for.
    pub fn new<T: Native>(dims: impl Into<Vec<usize>>, values: Vec<T>) -> Result<Self> {
        Self::from_data(ArrayShape::new(T::TYPE, dims)?, T::wrap(values))
    }

    /// A scalar.
    pub fn scalar<T: Native>(value: T) -> Self {
        let shape = ArrayShape::scalar(T::TYPE);
        Array { shape, sizes: Vec::new(), data: Arc::new(CountedData::new(T::wrap(vec![value]))) }
    }

    /// An array of this shape; bounded dimensions have the bound as their size, unless
    /// [`Array::with_sizes`] changes it. Errors: `literal.C1` unless type and number of the
    /// elements are the shape's.
    pub fn from_data(shape: ArrayShape, data: ArrayData) -> Result<Self> {
        crate::ensure!(
            data.element() == shape.element() && data.len() == shape.element_count(),
            "literal.C1",
            "{} values of {} for {shape}, which has {}",
            data.len(),
            data.element(),
            shape.element_count()
        );
        let sizes = shape.dims().to_vec();
        Ok(Array { shape, sizes, data: Arc::new(CountedData::new(data)) })
    }

    /// An array of zeros. Errors: `ResourceExhausted` if there is no memory for it.
    pub fn zeros(shape: ArrayShape) -> Result<Self> {
        memory::ensure_available(shape.size_bytes())?;
        let count = shape.element_count();
        let data = dispatch_type!(shape.element(), T => T::wrap(vec![T::from_bits(0); count]));
        Self::from_data(shape, data)
    }

    /// The same elements with these sizes at run time. Errors: `literal.C2` if one is beyond the
    /// bound, or differs from it where the dimension is not bounded.
    pub fn with_sizes(mut self, sizes: Vec<usize>) -> Result<Self> {
        let fits = sizes.len() == self.shape.rank()
            && sizes.iter().enumerate().all(|(d, &size)| match self.shape.dim(d) {
                (bound, DimKind::Bounded) => size <= bound,
                (dim, _) => size == dim,
            });
        crate::ensure!(fits, "literal.C2", "sizes {sizes:?} at run time for {}", self.shape);
        self.sizes = sizes;
        Ok(self)
    }

    /// The same elements under another shape with as many of the same type. Errors: `literal.C1`.
    pub fn with_shape(&self, shape: ArrayShape) -> Result<Self> {
        crate::ensure!(
            self.element() == shape.element() && self.data.data.len() == shape.element_count(),
            "literal.C1",
            "the elements of {} for {shape}",
            self.shape
        );
        let sizes = shape.dims().to_vec();
        Ok(Array { shape, sizes, data: self.data.clone() })
    }

    /// The shape.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.shape.element()
    }

    /// The size of each dimension; of a bounded one, the bound.
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// The size of each dimension at run time.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The elements.
    pub fn data(&self) -> &ArrayData {
        &self.data.data
    }

    /// The elements, to change them in place; copied first if another array shares them. The
    /// vector's length must stay as it is.
    pub fn data_mut(&mut self) -> &mut ArrayData {
        &mut Arc::make_mut(&mut self.data).data
    }

    /// The elements, if they have this type.
    pub fn as_slice<T: Native>(&self) -> Option<&[T]> {
        T::slice(self.data())
    }

    /// The elements. Errors: `InvalidArgument` if they have another type.
    pub fn values<T: Native>(&self) -> Result<&[T]> {
        self.as_slice().ok_or_else(|| self.not_of::<T>())
    }

    /// The element at this place in row-major order, which must be less than the element count.
    pub fn number(&self, index: usize) -> Number {
        dispatch!(self.data(), values => values[index].to_number())
    }

    /// The bits of the element at this place in row-major order.
    pub fn bits(&self, index: usize) -> u128 {
        dispatch!(self.data(), values => Native::to_bits(values[index]))
    }

    /// The elements as bytes, little-endian, one after the other; types narrower than a byte take
    /// one byte each. Lent, where elements are kept like this.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        if let Some(bytes) = self.as_bytes() {
            return bytes.into();
        }
        let mut bytes = vec![0; self.data().size_bytes()];
        dispatch!(self.data(), values => write_bytes(values, &mut bytes));
        bytes.into()
    }

    /// As [`Array::to_bytes`], where elements are kept like this: those of types narrower than a byte
    /// and of 8-bit floats are not.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.data().as_bytes()
    }

    /// As [`Array::to_bytes`], into a slice. Errors: `literal.C1` if the slice is not as long.
    pub fn write_to(&self, bytes: &mut [u8]) -> Result<()> {
        ensure_len(&self.shape, bytes.len(), self.data().size_bytes())?;
        dispatch!(self.data(), values => write_bytes(values, bytes));
        Ok(())
    }

    /// The inverse of [`Array::to_bytes`]. Errors: `literal.C1` if the number of bytes is not the
    /// shape's; `ResourceExhausted`.
    pub fn from_bytes(shape: ArrayShape, bytes: &[u8]) -> Result<Self> {
        ensure_len(&shape, bytes.len(), shape.size_bytes())?;
        memory::ensure_available(bytes.len())?;
        let data = dispatch_type!(shape.element(), T => T::wrap(read_bytes(bytes)));
        Self::from_data(shape, data)
    }

    /// As [`Array::from_bytes`] for this array's shape, in the memory of its elements unless another array
    /// shares them. Errors: as for [`Array::from_bytes`].
    pub fn overwrite(&mut self, bytes: &[u8]) -> Result<()> {
        ensure_len(&self.shape, bytes.len(), self.shape.size_bytes())?;
        match Arc::get_mut(&mut self.data) {
            Some(own) if own.data.size_bytes() == bytes.len() => {
                dispatch!(&mut own.data, values => read_into(bytes, values));
                self.sizes.copy_from_slice(self.shape.dims());
            }
            _ => *self = Self::from_bytes(self.shape.clone(), bytes)?,
        }
        Ok(())
    }

    /// Errors: `literal.C1` unless type and number of the elements are still the shape's.
    pub fn ensure_whole(&self) -> Result<()> {
        let (data, shape) = (self.data(), self.shape());
        crate::ensure!(
            data.element() == shape.element() && data.len() == shape.element_count(),
            "literal.C1",
            "an array of {shape} was left with {} values of {}",
            data.len(),
            data.element()
        );
        Ok(())
    }

    /// Whether shape (apart from the layout), sizes at run time and all bits agree.
    pub fn same_bits(&self, other: &Array) -> bool {
        if !self.shape.same(&other.shape) || self.sizes != other.sizes {
            return false;
        }
        if Arc::ptr_eq(&self.data, &other.data) {
            return true;
        }
        match (self.as_bytes(), other.as_bytes()) {
            (Some(bytes), Some(others)) => bytes == others,
            _ => (0..self.data().len()).all(|i| self.bits(i) == other.bits(i)),
        }
    }

    /// Whether all elements have the same bits.
    pub fn is_uniform(&self) -> bool {
        let count = self.data().len();
        match self.as_bytes() {
            // Each element is the one before it.
            Some(bytes) if count > 1 => {
                let size = self.element().size_bytes();
                bytes[size..] == bytes[..bytes.len() - size]
            }
            _ => (1..count).all(|i| self.bits(i) == self.bits(0)),
        }
    }
}

fn ensure_len(shape: &ArrayShape, found: usize, needed: usize) -> Result<()> {
    crate::ensure!(found == needed, "literal.C1", "{found} bytes for {shape}, which has {needed}");
    Ok(())
}

/// Writes elements one after the other. (The size of one is a constant here, so that this is a
/// copy once compiled. In memory, as in bytes, a type narrower than a byte takes one.)
fn write_bytes<T: Native>(values: &[T], bytes: &mut [u8]) {
    for (to, &value) in bytes.chunks_exact_mut(size_of::<T>()).zip(values) {
        to.copy_from_slice(&value.to_bits().to_le_bytes()[..size_of::<T>()]);
    }
}

/// The inverse of [`write_bytes`].
fn read_bytes<T: Native>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(read_element).collect()
}

/// As [`read_bytes`], into elements that are there.
fn read_into<T: Native>(bytes: &[u8], values: &mut [T]) {
    for (value, chunk) in values.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
        *value = read_element(chunk);
    }
}

fn read_element<T: Native>(chunk: &[u8]) -> T {
    let mut word = [0; 16];
    word[..size_of::<T>()].copy_from_slice(chunk);
    T::from_bits(u128::from_le_bytes(word))
}

/// A value of any shape; cloning is cheap. Arrays are compared as [`Array`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// An array.
    Array(Array),
    /// A tuple.
    Tuple(Vec<Literal>),
    /// The token: it has no content.
    Token,
}

impl Literal {
    /// A scalar.
    pub fn scalar<T: Native>(value: T) -> Self {
        Literal::Array(Array::scalar(value))
    }

    /// An array of static size. Errors: as for [`Array::new`].
    pub fn array<T: Native>(dims: impl Into<Vec<usize>>, values: Vec<T>) -> Result<Self> {
        Array::new(dims, values).map(Literal::Array)
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        match self {
            Literal::Array(array) => Shape::Array(array.shape.clone()),
            Literal::Tuple(elements) => Shape::Tuple(elements.iter().map(Literal::shape).collect()),
            Literal::Token => Shape::Token,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Literal::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The elements, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Literal]> {
        match self {
            Literal::Tuple(elements) => Some(elements),
            _ => None,
        }
    }

    /// The arrays and tokens in it, in order, tuples opened up.
    pub fn leaves(&self) -> Vec<&Literal> {
        match self {
            Literal::Tuple(elements) => elements.iter().flat_map(Literal::leaves).collect(),
            leaf => vec![leaf],
        }
    }

    /// A value of a shape from the bytes of its arrays, tuples taken apart, as [`Array::to_bytes`] gives them;
    /// those of tokens do not matter. Errors: those of [`Array::from_bytes`]; `Internal` if there are too few.
    pub fn from_leaves<'b>(
        shape: &Shape,
        leaves: &mut impl Iterator<Item = &'b [u8]>,
    ) -> Result<Literal> {
        if let Shape::Tuple(elements) = shape {
            let elements = elements.iter().map(|shape| Literal::from_leaves(shape, leaves));
            return elements.collect::<Result<_>>().map(Literal::Tuple);
        }
        let bytes = leaves.next().ok_or_else(|| Error::internal("an array is missing"))?;
        match shape {
            Shape::Array(array) => Array::from_bytes(array.clone(), bytes).map(Literal::Array),
            _ => Ok(Literal::Token),
        }
    }

    /// Calls `visit` with the arrays and tokens in it, in order, tuples opened up, until one is an error.
    pub fn each_leaf_mut(
        &mut self,
        visit: &mut impl FnMut(&mut Literal) -> Result<()>,
    ) -> Result<()> {
        match self {
            Literal::Tuple(elements) => {
                elements.iter_mut().try_for_each(|element| element.each_leaf_mut(visit))
            }
            leaf => visit(leaf),
        }
    }

    /// Whether it is of a shape, layouts aside.
    pub fn has_shape(&self, shape: &Shape) -> bool {
        match (self, shape) {
            (Literal::Array(array), Shape::Array(shape)) => array.shape.same(shape),
            (Literal::Tuple(elements), Shape::Tuple(shapes)) => {
                elements.len() == shapes.len()
                    && elements.iter().zip(shapes).all(|(element, shape)| element.has_shape(shape))
            }
            (Literal::Token, Shape::Token) => true,
            _ => false,
        }
    }

    /// Errors: `literal.C1` unless type and number of the elements are still the shape's; those who
    /// use [`Array::data_mut`] may have left others.
    pub fn ensure_whole(&self) -> Result<()> {
        match self {
            Literal::Array(array) => array.ensure_whole(),
            Literal::Tuple(elements) => elements.iter().try_for_each(Literal::ensure_whole),
            _ => Ok(()),
        }
    }

    /// Whether shapes (apart from layouts) and all bits agree.
    pub fn same_bits(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Array(a), Literal::Array(b)) => a.same_bits(b),
            (Literal::Tuple(a), Literal::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_bits(b))
            }
            (Literal::Token, Literal::Token) => true,
            _ => false,
        }
    }
}

impl From<Array> for Literal {
    fn from(array: Array) -> Self {
        Literal::Array(array)
    }
}

mod convert;
#[cfg(feature = "ndarray")]
mod nd;
#[cfg(feature = "serde")]
mod serial;
#[cfg(test)]
mod tests;
