//! Arrays between the host's memory and buffers: with strides, without copies, of Rust types.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use helio_ir::{Array, ArrayShape, Error, Native, Result};
use helio_runtime::View;

use crate::buffer::{Buffer, Value};
use crate::client::Client;
use crate::device::Device;
use crate::event::{Completer, Event};

/// Memory of the host that a buffer may lie in.
///
/// ```
/// use std::sync::Arc;
/// let bytes: helio::HostBytes = Arc::new(vec![1u8, 2, 3, 4]);
/// assert_eq!((*bytes).as_ref(), [1, 2, 3, 4]);
/// ```
pub type HostBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where the elements of an array lie in bytes of the host.
///
/// ```
/// let shape = helio::ir::ArrayShape::new(helio::ElementType::F32, [2, 3])?;
/// let columns_first = helio::HostLayout::new(0, vec![4, 8]);
/// assert_eq!(helio::HostLayout::row_major(&shape), helio::HostLayout::new(0, vec![12, 4]));
/// assert_eq!(columns_first.range(&shape)?, 0..24);
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLayout {
    first: usize,
    byte_strides: Vec<isize>,
}

/// A run of bytes that lie side by side in both places.
struct Run {
    host: usize,
    dense: usize,
    len: usize,
}

impl HostLayout {
    /// The first element lies at byte `first`; the next one along a dimension, that dimension's stride
    /// in bytes further on. Strides may be negative, and 0 for elements that are all the same.
    pub fn new(first: usize, byte_strides: Vec<isize>) -> Self {
        HostLayout { first, byte_strides }
    }

    /// Rows side by side from byte 0 on.
    pub fn row_major(shape: &ArrayShape) -> Self {
        let mut byte_strides = vec![0; shape.dims().len()];
        let mut stride = element_bytes(shape);
        for (to, &size) in byte_strides.iter_mut().zip(shape.dims()).rev() {
            *to = stride as isize;
            stride = stride.saturating_mul(size);
        }
        HostLayout { first: 0, byte_strides }
    }

    /// The bytes among which the elements of an array lie. Errors: `InvalidArgument` if there is
    /// another number of strides than dimensions, or an element would lie before byte 0 or beyond
    /// what memory has.
    pub fn range(&self, shape: &ArrayShape) -> Result<std::ops::Range<usize>> {
        let (dims, strides) = (shape.dims(), &self.byte_strides);
        if dims.len() != strides.len() {
            let found = strides.len();
            return Err(Error::invalid(format!("{found} strides for the dimensions of {shape}")));
        }
        if dims.contains(&0) {
            return Ok(self.first..self.first);
        }
        let (mut low, mut high) = (self.first as i128, self.first as i128);
        for (&size, &stride) in dims.iter().zip(strides) {
            let reach = (size as i128 - 1) * stride as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
        high += element_bytes(shape) as i128;
        match (usize::try_from(low), usize::try_from(high)) {
            (Ok(low), Ok(high)) => Ok(low..high),
            _ => Err(Error::invalid(format!(
                "elements of {shape} would lie in bytes {low} to {high} of the host's memory"
            ))),
        }
    }

    /// Errors: as for [`HostLayout::range`]; `OutOfRange` if the memory has fewer bytes.
    fn ensure_within(&self, shape: &ArrayShape, bytes: usize) -> Result<()> {
        let range = self.range(shape)?;
        if range.end <= bytes {
            return Ok(());
        }
        let detail = format!(
            "{shape} with strides {:?} ends at byte {}, the host's memory has {bytes}",
            self.byte_strides, range.end
        );
        Err(Error::new(helio_ir::Code::OutOfRange, detail))
    }

    /// Calls `copy` for each run of an array that lies within the host's memory.
    fn for_each_run(&self, shape: &ArrayShape, mut copy: impl FnMut(Run)) {
        let dims = shape.dims();
        if dims.contains(&0) {
            return;
        }
        let (mut len, mut outer) = (element_bytes(shape), dims.len());
        while outer > 0 {
            let (size, stride) = (dims[outer - 1], self.byte_strides[outer - 1]);
            if size != 1 && stride != len as isize {
                break;
            }
            len *= size;
            outer -= 1;
        }
        let mut index = vec![0; outer];
        let (mut host, mut dense) = (self.first as isize, 0);
        loop {
            copy(Run { host: host as usize, dense, len });
            dense += len;
            // The next index, row by row.
            let mut dim = outer;
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                index[dim] += 1;
                host = host.wrapping_add(self.byte_strides[dim]);
                if index[dim] < dims[dim] {
                    break;
                }
                // A dimension of size 1 may have any stride.
                let back = self.byte_strides[dim].wrapping_mul(dims[dim] as isize);
                host = host.wrapping_sub(back);
                index[dim] = 0;
            }
        }
    }
}

/// Types narrower than a byte take one for each element.
fn element_bytes(shape: &ArrayShape) -> usize {
    shape.element().size_bytes()
}

impl Client {
    /// A buffer with a copy of an array that lies in the host's memory with strides; the memory is not
    /// used any more when this returns. Errors: as for [`HostLayout::range`]; `OutOfRange` if the
    /// memory has too few bytes; a device of another client; `ResourceExhausted`.
    pub fn buffer_from_strided(
        &self,
        shape: &ArrayShape,
        bytes: &[u8],
        layout: &HostLayout,
        device: Device,
    ) -> Result<Buffer> {
        self.ensure_own(&device)?;
        layout.ensure_within(shape, bytes.len())?;
        let mut block = self.memory().allocate(shape.size_bytes())?;
        let dense = block.as_mut_slice();
        layout.for_each_run(shape, |Run { host, dense: at, len }| {
            dense[at..at + len].copy_from_slice(&bytes[host..host + len]);
        });
        crate::client::normalize(shape, dense);
        Ok(Buffer::new(shape.clone(), device, Value { bytes: block.into(), sizes: None }))
    }

    /// As [`Client::buffer_from_host`], with an event that completes once the host's memory is not used
    /// any more: at once if it was copied, else when the buffer, all views of it, and all executions
    /// that read it are gone.
    pub fn buffer_from_host_until(
        &self,
        shape: &ArrayShape,
        bytes: HostBytes,
        device: Device,
    ) -> Result<(Buffer, Event)> {
        let (event, done) = Event::new();
        let lent = Lent { bytes: Some(bytes), done: Some(done) };
        Ok((self.buffer_from_host(shape, Arc::new(lent), device)?, event))
    }

    /// A buffer that is the array, without a copy: that of a `Vec`, say, which
    /// [`Array::new`] takes over. (What literals keep in another way than buffers, such as 4-bit
    /// integers, is copied.) Errors: a device of another client; `ResourceExhausted`.
    ///
    /// ```
    /// # fn main() -> helio::Result<()> {
    /// let client = helio::Client::default();
    /// let numbers = vec![1.5f32; 1 << 20];
    /// let array = helio::Array::new([1 << 10, 1 << 10], numbers)?;
    /// let buffer = client.buffer_from_owned(array, client.default_device())?;
    /// assert_eq!(buffer.view_as::<f32>()?[7], 1.5);
    /// # Ok(()) }
    /// ```
    pub fn buffer_from_owned(&self, array: Array, device: Device) -> Result<Buffer> {
        array.ensure_whole()?;
        let shape = array.shape().clone();
        if array.as_bytes().is_none() || !shape.is_static() {
            return self.buffer_from_array(&array, device);
        }
        self.buffer_from_host(&shape, Arc::new(Owned(array)), device)
    }
}

/// An array whose bytes are those of a buffer.
struct Owned(Array);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes().unwrap_or_default()
    }
}

/// The host's memory, and who is told when it is not used any more.
struct Lent {
    bytes: Option<HostBytes>,
    done: Option<Completer>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_deref().map_or(&[], |bytes| bytes.as_ref())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.bytes = None;
        if let Some(done) = self.done.take() {
            done.complete(Ok(()));
        }
    }
}

impl Buffer {
    /// Copies the array into the host's memory, where it lies with strides; waits for its value.
    /// Errors: as for [`HostLayout::range`] and [`Buffer::view`]; `OutOfRange` if the memory has too
    /// few bytes.
    pub fn copy_to_host(&self, bytes: &mut [u8], layout: &HostLayout) -> Result<()> {
        layout.ensure_within(self.shape(), bytes.len())?;
        let view = self.view()?;
        let dense = view.as_slice();
        layout.for_each_run(self.shape(), |Run { host, dense: at, len }| {
            bytes[host..host + len].copy_from_slice(&dense[at..at + len]);
        });
        Ok(())
    }

    /// The elements, once they are there: the buffer's own memory as a slice of a Rust type, without a
    /// copy. Errors: `InvalidArgument` if the elements are of another type; as for [`Buffer::view`].
    pub fn view_as<T: Native + Pod>(&self) -> Result<TypedView<T>> {
        let shape = self.shape();
        if shape.element() != T::TYPE {
            let found = T::TYPE;
            return Err(Error::invalid(format!("a view of {found} of a buffer of {shape}")));
        }
        let view = self.view()?;
        let is_whole = bytemuck::try_cast_slice::<u8, T>(view.as_slice()).is_ok();
        if !is_whole {
            return Err(Error::internal("a buffer whose memory is not aligned"));
        }
        Ok(TypedView { view, element: PhantomData })
    }
}

/// The elements of a buffer as a slice; they stay as long as it lives.
///
/// ```
/// let client = helio::Client::default();
/// let x = client.buffer(&[1f32, 2.0].into())?;
/// let view: helio::TypedView<f32> = x.view_as()?; // the buffer's own memory
/// assert_eq!(&view[..], [1.0, 2.0]);
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone)]
pub struct TypedView<T> {
    view: View,
    element: PhantomData<T>,
}

impl<T: Pod> Deref for TypedView<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // The host's own memory might have moved: then there is nothing to be seen.
        bytemuck::try_cast_slice(self.view.as_slice()).unwrap_or_default()
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for TypedView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
