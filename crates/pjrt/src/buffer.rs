//! Buffers: arrays of the client, from the host and back.
#![allow(non_camel_case_types)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helio::ir::ArrayShape;
use helio::{Buffer, Code, Error, Event, HostBytes, HostLayout, Result, View};

use crate::abi::*;
use crate::client::Shared;
use crate::element;
use crate::error;
use crate::event::PJRT_Event;
use crate::extensions::layouts::row_major;
use crate::raw::{Address, Call, In, Layout, Out};

/// The most bytes that are copied rather than used where the host has them: copying them takes less
/// time than telling the host when they are not used any more.
const COPIED_BYTES: usize = 2048;

/// An array.
pub struct PJRT_Buffer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffer: Buffer,
    /// The number of its memory among those of the client.
    memory: usize,
    dims: Arc<[i64]>,
    /// PJRT's number for the type of its elements; for a token, that of tokens.
    element: u32,
    /// What the caller reads without a copy: once for each count.
    lent: Mutex<Vec<View>>,
}

impl PJRT_Buffer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        buffer: Buffer,
        memory: usize,
        dims: Arc<[i64]>,
    ) -> Self {
        let element = element::number(buffer.shape().element());
        PJRT_Buffer { shared, buffer, memory, dims, element, lent: Mutex::new(Vec::new()) }
    }

    /// The same, for a caller who takes it for a token: it is one, of which nothing is read.
    pub(crate) fn token(shared: Arc<Shared>, buffer: Buffer, memory: usize) -> Self {
        let token = PJRT_Buffer::new(shared, buffer, memory, Arc::new([]));
        PJRT_Buffer { element: PJRT_Buffer_Type_TOKEN, ..token }
    }

    /// A buffer of the client's, in this memory.
    fn give(shared: &Arc<Shared>, buffer: Buffer, memory: usize) -> Out<PJRT_Buffer> {
        let dims = element::dims(buffer.shape()).into();
        Out::give(PJRT_Buffer::new(shared.clone(), buffer, memory, dims))
    }

    fn lent(&self) -> MutexGuard<'_, Vec<View>> {
        // The list is whole whenever the lock is free.
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of its bytes, which stay while the caller has a count on them, or if there is none,
    /// while the buffer lives.
    fn address(&self) -> Result<*mut std::ffi::c_void> {
        let lent = self.lent().first().cloned();
        let view = match lent {
            Some(view) => view,
            None => self.buffer.view()?,
        };
        Ok(view.as_slice().as_ptr().cast_mut().cast())
    }
}

/// Bytes of the host that are read where they are.
struct HostMemory {
    address: Address,
    len: usize,
}

impl AsRef<[u8]> for HostMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: whoever has made this states that the bytes are there until it is dropped, and that
        // nobody changes them.
        unsafe { std::slice::from_raw_parts(self.address.get().cast(), self.len) }
    }
}

/// Where the elements of an array lie around an address of the host.
struct Placement {
    /// How many bytes before the address the first one lies.
    before: usize,
    /// How many bytes there are from the first to the end of the last.
    len: usize,
    layout: HostLayout,
    is_dense: bool,
}

impl Placement {
    /// Of an array with these byte strides; row by row if there are none.
    fn of(shape: &ArrayShape, strides: &[i64]) -> Result<Self> {
        let row_major = HostLayout::row_major(shape);
        if strides.is_empty() {
            let len = shape.size_bytes();
            return Ok(Placement { before: 0, len, layout: row_major, is_dense: true });
        }
        let strides: Vec<isize> = strides.iter().map(|&stride| stride as isize).collect();
        let is_empty = shape.dims().contains(&0);
        let reach = |(&size, &stride): (&usize, &isize)| match stride < 0 && !is_empty {
            true => (size as isize - 1).checked_mul(stride).map(isize::unsigned_abs),
            false => Some(0),
        };
        let back = shape.dims().iter().zip(&strides).map(reach);
        let before = back.sum::<Option<usize>>().ok_or_else(|| {
            Error::invalid(format!("{shape} with byte strides {strides:?}: beyond all memory"))
        })?;
        let is_dense = is_row_major(shape, &strides);
        let layout = HostLayout::new(before, strides);
        let len = layout.range(shape)?.end;
        Ok(Placement { before, len, layout, is_dense })
    }
}

/// Whether an array with these byte strides lies row by row; those of dimensions of size 1 do not matter.
fn is_row_major(shape: &ArrayShape, strides: &[isize]) -> bool {
    let mut next = shape.element().size_bytes() as isize;
    shape.dims().iter().zip(strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == next;
        next = next.saturating_mul(size as isize);
        fits
    })
}

impl Call for PJRT_Client_BufferFromHostBuffer_Args {
    fn call(&mut self) -> Result<()> {
        let (client, device, memory) = (self.client, self.device, self.memory);
        let shared = &client.get("a client")?.shared;
        let memory = shared.destination(device, memory)?;
        // SAFETY: the header says that there are so many dimensions.
        let shape = unsafe { element::shape(self.type_, self.dims, self.num_dims)? };
        let strides = self.byte_strides;
        // SAFETY: the header says that there are so many strides.
        let strides = unsafe { strides.slice(self.num_byte_strides, "byte strides")? };
        let placement = Placement::of(&shape, strides)?;
        if self.data.is_null() && placement.len > 0 {
            return Err(Error::invalid(format!("data of {shape} is needed, found null")));
        }
        let device = shared.computing(memory)?;
        let stays = self.host_buffer_semantics >= PJRT_HostBufferSemantics_kImmutableZeroCopy;
        // An array without elements may have no address.
        let (address, len) = match placement.len {
            0 => (std::ptr::NonNull::dangling().as_ptr(), 0),
            len => (self.data.cast::<u8>().wrapping_sub(placement.before), len),
        };
        let (buffer, done) = if stays && placement.is_dense && len > COPIED_BYTES {
            // SAFETY (of `HostMemory`): the caller keeps the bytes as they are until the event says that
            // they are not used any more; it completes when this is dropped.
            let bytes: HostBytes = Arc::new(HostMemory { address: Address(address.cast()), len });
            shared.client.buffer_from_host_until(&shape, bytes, device)?
        } else {
            // SAFETY: the header says that the array lies there, and it stays during the call.
            let bytes = unsafe { std::slice::from_raw_parts(address, len) };
            let layout = &placement.layout;
            (shared.client.buffer_from_strided(&shape, bytes, layout, device)?, Event::completed())
        };
        self.buffer = PJRT_Buffer::give(shared, buffer, memory);
        self.done_with_host_buffer = PJRT_Event::give(done);
        Ok(())
    }
}

impl Call for PJRT_Client_CreateViewOfDeviceBuffer_Args {
    fn call(&mut self) -> Result<()> {
        let (client, device, memory) = (self.client, self.device, self.memory);
        let shared = &client.get("a client")?.shared;
        let memory = shared.destination(device, memory)?;
        // SAFETY: the header says that there are so many dimensions.
        let shape = unsafe { element::shape(self.element_type, self.dims, self.num_dims)? };
        let len = shape.size_bytes();
        if self.device_buffer_ptr.is_null() && len > 0 {
            return Err(Error::invalid(format!("memory of {shape} is needed, found null")));
        }
        let address = match len {
            0 => std::ptr::NonNull::<u8>::dangling().as_ptr().cast(),
            _ => self.device_buffer_ptr,
        };
        // SAFETY (of `HostMemory`): the caller keeps the memory until its callback is called, which is
        // when this is dropped.
        let bytes: HostBytes = Arc::new(HostMemory { address: Address(address), len });
        let device = shared.computing(memory)?;
        let (buffer, done) = shared.client.buffer_from_host_until(&shape, bytes, device)?;
        let (memory_address, user) =
            (Address(self.device_buffer_ptr), Address(self.on_delete_callback_arg));
        if let Some(callback) = self.on_delete_callback {
            done.on_ready(move |_| {
                // SAFETY: the caller has asked for this call, with these arguments, once the memory is
                // not used any more.
                unsafe { callback(memory_address.get(), user.get()) };
            });
        }
        self.buffer = PJRT_Buffer::give(shared, buffer, memory);
        Ok(())
    }
}

impl Call for PJRT_Client_CreateErrorBuffer_Args {
    fn call(&mut self) -> Result<()> {
        let (client, memory, text) = (self.client, self.memory, self.error_message);
        let shared = &client.get("a client")?.shared;
        let memory = memory.get("a memory")?.index;
        // SAFETY: the header says that there are so many dimensions.
        let shape = unsafe {
            element::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?
        };
        // SAFETY: the header says that the message has this size.
        let text = unsafe { text.text(self.error_message_size, "an error's message")? };
        let device = shared.computing(memory)?;
        let (buffer, promise) = shared.client.promised_buffer(&shape, device)?;
        promise.fill(Err(Error::new(error::code(self.error_code), text)))?;
        self.buffer = PJRT_Buffer::give(shared, buffer, memory);
        Ok(())
    }
}

impl Call for PJRT_Client_CreateUninitializedBuffer_Args {
    fn call(&mut self) -> Result<()> {
        let (client, device, memory) = (self.client, self.device, self.memory);
        let shared = &client.get("a client")?.shared;
        let memory = shared.destination(device, memory)?;
        // SAFETY: the header says that there are so many dimensions.
        let shape = unsafe {
            element::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?
        };
        let device = shared.computing(memory)?;
        let (buffer, promise) = shared.client.promised_buffer(&shape, device)?;
        let block = shared.client.memory().allocate(shape.size_bytes()).map_err(Error::from);
        promise.fill(block)?;
        self.buffer = PJRT_Buffer::give(shared, buffer, memory);
        Ok(())
    }
}

impl Call for PJRT_Buffer_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: buffers are given as boxes, and the caller gives this one up.
        drop(unsafe { self.buffer.take() });
        Ok(())
    }
}

impl Call for PJRT_Buffer_ElementType_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.type_ = buffer.get("a buffer")?.element;
        Ok(())
    }
}

impl Call for PJRT_Buffer_Dimensions_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let dims = &buffer.get("a buffer")?.dims;
        (self.dims, self.num_dims) = (Out::list(dims), dims.len());
        Ok(())
    }
}

impl Call for PJRT_Buffer_UnpaddedDimensions_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let dims = &buffer.get("a buffer")?.dims;
        (self.unpadded_dims, self.num_dims) = (Out::list(dims), dims.len());
        Ok(())
    }
}

impl Call for PJRT_Buffer_DynamicDimensionIndices_Args {
    fn call(&mut self) -> Result<()> {
        // Programs whose results have sizes known only at run time are refused.
        (self.dynamic_dim_indices, self.num_dynamic_dims) = (Out::null(), 0);
        Ok(())
    }
}

impl Call for PJRT_Buffer_OnDeviceSizeInBytes_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.on_device_size_in_bytes = buffer.get("a buffer")?.buffer.size_bytes();
        Ok(())
    }
}

impl Call for PJRT_Buffer_Device_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let buffer = buffer.get("a buffer")?;
        self.device = Out::of(buffer.shared.device_of(buffer.memory));
        Ok(())
    }
}

impl Call for PJRT_Buffer_Memory_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let buffer = buffer.get("a buffer")?;
        self.memory = Out::of(&buffer.shared.memories[buffer.memory]);
        Ok(())
    }
}

impl Call for PJRT_Buffer_Delete_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        buffer.get("a buffer")?.buffer.delete();
        Ok(())
    }
}

impl Call for PJRT_Buffer_IsDeleted_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.is_deleted = buffer.get("a buffer")?.buffer.is_deleted().into();
        Ok(())
    }
}

impl Call for PJRT_Buffer_IsOnCpu_Args {
    fn call(&mut self) -> Result<()> {
        self.is_on_cpu = 1;
        Ok(())
    }
}

impl Call for PJRT_Buffer_ReadyEvent_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.event = PJRT_Event::give(buffer.get("a buffer")?.buffer.ready().clone());
        Ok(())
    }
}

impl Call for PJRT_Buffer_CopyToDevice_Args {
    fn call(&mut self) -> Result<()> {
        let (buffer, device) = (self.buffer, self.dst_device);
        let (buffer, device) = (buffer.get("a buffer")?, device.get("a device")?);
        let memory = buffer.shared.memory_of(device.own()?.id(), helio::MemoryKind::default());
        self.dst_buffer = buffer.copy_to(memory)?;
        Ok(())
    }
}

impl Call for PJRT_Buffer_CopyToMemory_Args {
    fn call(&mut self) -> Result<()> {
        let (buffer, memory) = (self.buffer, self.dst_memory);
        self.dst_buffer = buffer.get("a buffer")?.copy_to(memory.get("a memory")?.index)?;
        Ok(())
    }
}

impl PJRT_Buffer {
    fn copy_to(&self, memory: usize) -> Result<Out<PJRT_Buffer>> {
        let (device, kind) = (self.shared.computing(memory)?, self.shared.memories[memory].kind);
        let copy = self.buffer.copy_to_memory(&device, kind)?;
        Ok(PJRT_Buffer::give(&self.shared, copy, memory))
    }
}

impl Call for PJRT_Buffer_IncreaseExternalReferenceCount_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let buffer = buffer.get("a buffer")?;
        let view = buffer.buffer.view()?;
        buffer.lent().push(view);
        Ok(())
    }
}

impl Call for PJRT_Buffer_DecreaseExternalReferenceCount_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let popped = buffer.get("a buffer")?.lent().pop();
        popped.map(drop).ok_or_else(|| Error::invalid("the buffer has no external references"))
    }
}

impl Call for PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.device_memory_ptr = buffer.get("a buffer")?.address()?;
        Ok(())
    }
}

impl Call for PJRT_Buffer_UnsafePointer_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        self.buffer_pointer = buffer.get("a buffer")?.address()?.addr() as u64;
        Ok(())
    }
}

impl Call for PJRT_Buffer_GetMemoryLayout_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let buffer = buffer.get("a buffer")?;
        // Kept with the process: there is one list for each rank.
        let order = row_major(buffer.dims.len())?;
        // SAFETY: the list lives as long as the process.
        let minor_to_major = unsafe { In::new(order.as_ptr()) };
        let tiled = PJRT_Buffer_MemoryLayout_Tiled {
            struct_size: PJRT_Buffer_MemoryLayout_Tiled::SIZE,
            extension_start: std::ptr::null_mut(),
            minor_to_major,
            minor_to_major_size: buffer.dims.len(),
            tile_dims: std::ptr::null_mut(),
            tile_dim_sizes: std::ptr::null_mut(),
            num_tiles: 0,
        };
        self.layout = PJRT_Buffer_MemoryLayout {
            struct_size: PJRT_Buffer_MemoryLayout::SIZE,
            extension_start: std::ptr::null_mut(),
            value: PJRT_Buffer_MemoryLayout_Value { tiled },
            type_: PJRT_Buffer_MemoryLayout_Type_Tiled,
        };
        Ok(())
    }
}

/// Byte strides of an array in the host's memory; none if it lies row by row. Errors: tiles, lists of
/// another length than the array's rank, orders that are none.
fn strides(shape: &ArrayShape, layout: In<PJRT_Buffer_MemoryLayout>) -> Result<Vec<i64>> {
    let Some(layout) = layout.optional() else { return Ok(Vec::new()) };
    let rank = shape.dims().len();
    if layout.type_ == PJRT_Buffer_MemoryLayout_Type_Strides {
        // SAFETY: the type says which member of the union is there.
        let layout = unsafe { layout.value.strides };
        let list = layout.byte_strides;
        // SAFETY: the header says that there are so many strides.
        return Ok(unsafe { list.slice(layout.num_byte_strides, "byte strides")? }.to_vec());
    }
    // SAFETY: as for strides.
    let layout = unsafe { layout.value.tiled };
    if layout.num_tiles != 0 {
        return Err(Error::unimplemented("tiles in the host's memory"));
    }
    let list = layout.minor_to_major;
    // SAFETY: the header says that the list has this size.
    let order = unsafe { list.slice(layout.minor_to_major_size, "dimensions")? };
    let mut stride = shape.element().size_bytes() as i64;
    let mut strides = vec![None; rank];
    for &dim in order {
        let place = usize::try_from(dim).ok().and_then(|dim| strides.get_mut(dim));
        let place = place.filter(|place| place.is_none()).ok_or_else(|| {
            Error::invalid(format!("minor_to_major {order:?} for an array of rank {rank}"))
        })?;
        *place = Some(stride);
        stride = stride.saturating_mul(shape.dims()[dim as usize] as i64);
    }
    strides.into_iter().collect::<Option<Vec<i64>>>().ok_or_else(|| {
        Error::invalid(format!("minor_to_major {order:?} for an array of rank {rank}"))
    })
}

impl Call for PJRT_Buffer_ToHostBuffer_Args {
    fn call(&mut self) -> Result<()> {
        let (buffer, layout) = (self.src, self.host_layout);
        let buffer = buffer.get("a buffer")?.buffer.clone();
        let strides = strides(buffer.shape(), layout)?;
        let placement = Placement::of(buffer.shape(), &strides)?;
        let needed = placement.len;
        if self.dst.is_null() {
            self.dst_size = needed;
            return Ok(());
        }
        if self.dst_size < needed {
            let found = self.dst_size;
            let detail = format!("{found} bytes for {}, which takes {needed}", buffer.shape());
            return Err(Error::invalid(detail));
        }
        let to = Address(self.dst.cast::<u8>().wrapping_sub(placement.before).cast());
        let copy = move |buffer: &Buffer| {
            // SAFETY: the caller says that there are so many bytes, which are its own to be written
            // until the event completes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(to.get().cast(), needed) };
            buffer.copy_to_host(bytes, &placement.layout)
        };
        self.event = PJRT_Event::give(when_ready(buffer, copy)?);
        Ok(())
    }
}

/// Does something with a buffer once it is there: at once if it is. The event says that it is done, or
/// what went wrong.
fn when_ready(
    buffer: Buffer,
    work: impl FnOnce(&Buffer) -> Result<()> + Send + 'static,
) -> Result<Event> {
    if let Some(Ok(())) = buffer.ready().outcome() {
        work(&buffer)?;
        return Ok(Event::completed());
    }
    let (event, completer) = Event::new();
    // The caller may delete the buffer before it is there; another handle of the same bytes stays.
    let kept = buffer.copy_to(buffer.device())?;
    let ready = kept.ready().clone();
    ready.on_ready(move |outcome| {
        completer.complete(outcome.clone().and_then(|()| work(&kept)));
    });
    Ok(event)
}

impl Call for PJRT_Buffer_CopyRawToHost_Args {
    fn call(&mut self) -> Result<()> {
        let buffer = self.buffer;
        let buffer = buffer.get("a buffer")?.buffer.clone();
        let range = (usize::try_from(self.offset), usize::try_from(self.transfer_size));
        let (offset, len) = match range {
            (Ok(offset), Ok(len))
                if offset.checked_add(len).is_some_and(|end| end <= buffer.size_bytes()) =>
            {
                (offset, len)
            }
            _ => {
                let (offset, len, size) = (self.offset, self.transfer_size, buffer.size_bytes());
                let detail = format!("{len} bytes from byte {offset} on of a buffer of {size}");
                return Err(Error::new(Code::OutOfRange, detail));
            }
        };
        if self.dst.is_null() && len > 0 {
            return Err(Error::invalid("a destination is needed, found null"));
        }
        let to = Address(self.dst);
        let copy = move |buffer: &Buffer| {
            let view = buffer.view()?;
            let bytes = &view.as_slice()[offset..offset + len];
            if len > 0 {
                // SAFETY: the caller has these bytes written, and the buffer's own are elsewhere.
                unsafe { to.get().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), len) };
            }
            Ok(())
        };
        self.event = PJRT_Event::give(when_ready(buffer, copy)?);
        Ok(())
    }
}
