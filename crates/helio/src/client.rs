//! Clients: memory, threads and devices, shared by the programs and buffers that are made with them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use helio_ir::memory::{Account, Entered};
use helio_ir::{Array, ArrayShape, Error, Errors, Module, Result};
use helio_runtime::kernels::gemm::RightLayout;
use helio_runtime::program::{Argument, LENT_ALIGN};
use helio_runtime::{Block, Memory, Pool, View};

use crate::buffer::{Buffer, Promise, Value};
use crate::constant::Constants;
use crate::device::{Device, Line};
use crate::packed::PackedConstant;
use crate::{CompileOptions, CustomCallRegistry, Executable};

/// What a client is made of.
///
/// ```
/// let options = helio::ClientOptions::default().with_threads(1).with_memory_limit(1 << 20);
/// let client = helio::Client::new(&options);
/// assert_eq!(client.threads(), 1);
/// let large = helio::Array::from(vec![0f32; 1 << 20]);
/// assert!(client.buffer(&large).is_err());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// How many devices it has, at least 1. They are virtual: all compute with the same threads in
    /// the same memory, but each executes what is asked of it in its own order.
    pub devices: usize,
    /// How many threads may compute at once; `None` for as many as the process may use.
    pub threads: Option<usize>,
    /// How many bytes its buffers, programs' constants, and all that its runs make together may take:
    /// arrays, what kernels work in, and literals of the interpreter. Whatever it is, all clients
    /// and literals of the process together take no more than
    /// [`memory::limit_bytes`](crate::memory::limit_bytes); `None` for no other limit.
    pub memory_limit: Option<usize>,
    /// How many bytes of memory no longer in use are kept for what comes.
    pub cached_bytes: usize,
    /// The functions that custom calls name.
    pub custom_calls: Arc<CustomCallRegistry>,
}

helio_ir::with_methods! { ClientOptions {
    with_devices(devices: usize);
    with_threads(threads: impl Into<Option<usize>>);
    with_memory_limit(memory_limit: impl Into<Option<usize>>);
    with_cached_bytes(cached_bytes: usize);
    with_custom_calls(custom_calls: impl Into<Arc<CustomCallRegistry>>);
} }

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            devices: 1,
            threads: None,
            memory_limit: None,
            cached_bytes: Memory::DEFAULT_CACHE_BYTES,
            custom_calls: Arc::default(),
        }
    }
}

/// Memory, threads and devices. Cloning gives another handle to the same client; it ends when
/// the last handle, program and buffer are gone.
///
/// ```
/// # fn main() -> Result<(), helio::Errors> {
/// let client = helio::Client::default();
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let program = client.compile(module, &helio::CompileOptions::default())?;
/// let x = helio::Array::new([2], vec![1f32, 2.0])?;
/// let x = client.buffer_from_array(&x, client.default_device())?;
/// let y = program.execute(&[&x], &helio::ExecuteOptions::default())?;
/// assert_eq!(y[0].to_array()?.as_slice::<f32>(), Some(&[2.0, 4.0][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    memory: Memory,
    constants: Constants,
    pool: Pool,
    custom_calls: Arc<CustomCallRegistry>,
    /// For each device, what it has yet to do.
    lines: Vec<Line>,
    /// Held while the participants of an execution are put into the lines of their devices: two
    /// programs come in the same order on all devices, so that neither waits for the other.
    launching: Mutex<()>,
}

/// How much memory a client uses, literals that its runs have made included.
///
/// ```
/// let client = helio::Client::default();
/// let x = client.buffer(&vec![0f32; 1000].into())?;
/// assert!(client.memory_stats().live_bytes >= x.size_bytes());
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The bytes in use.
    pub live_bytes: usize,
    /// The most bytes in use at once, since the last [`Client::reset_peak`].
    pub peak_bytes: usize,
    /// The bytes kept for what comes.
    pub cached_bytes: usize,
    /// The bytes that may be in use.
    pub limit_bytes: usize,
}

impl Client {
    /// A client of its own.
    pub fn new(options: &ClientOptions) -> Self {
        let account = Account::within_process(options.memory_limit.unwrap_or(usize::MAX));
        let shared = Shared {
            memory: Memory::of(account, options.cached_bytes),
            constants: Constants::default(),
            pool: options.threads.map_or_else(Pool::for_this_process, Pool::new),
            custom_calls: options.custom_calls.clone(),
            lines: (0..options.devices.max(1)).map(|_| Line::default()).collect(),
            launching: Mutex::new(()),
        };
        Client { shared: Arc::new(shared) }
    }

    /// The client of this process, which [`compile`](crate::compile) uses.
    pub fn shared() -> &'static Client {
        static SHARED: OnceLock<Client> = OnceLock::new();
        SHARED.get_or_init(Client::default)
    }

    /// The devices, in order of their ids.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = Device> + use<'_> {
        (0..self.shared.lines.len()).map(|id| Device::new(self.clone(), id))
    }

    /// The device with this id.
    pub fn device(&self, id: usize) -> Option<Device> {
        (id < self.shared.lines.len()).then(|| Device::new(self.clone(), id))
    }

    /// The first device.
    pub fn default_device(&self) -> Device {
        Device::new(self.clone(), 0)
    }

    /// The functions that custom calls of its programs name; they may be registered at any time before
    /// a run comes to the call, but those that replace functions of linear algebra before the program is
    /// compiled.
    pub fn custom_calls(&self) -> &Arc<CustomCallRegistry> {
        &self.shared.custom_calls
    }

    /// Checks a program and makes it ready to run on the devices. Errors: everything that is wrong
    /// with it.
    pub fn compile(&self, module: Module, options: &CompileOptions) -> Result<Executable, Errors> {
        Executable::new(self.clone(), module, options)
    }

    /// Whether both are handles of one client.
    pub(crate) fn is(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Errors: a device of another client, whose memory is not this one's.
    pub(crate) fn ensure_own(&self, device: &Device) -> Result<()> {
        if self.is(device.client()) {
            return Ok(());
        }
        let detail = format!("a buffer of this client on device {} of another client", device.id());
        Err(Error::invalid(detail))
    }

    /// A buffer with a copy of an array. Errors: a device of another client; `ResourceExhausted`.
    pub fn buffer_from_array(&self, array: &Array, device: Device) -> Result<Buffer> {
        self.ensure_own(&device)?;
        array.ensure_whole()?;
        Ok(Buffer::new(array.shape().clone(), device, self.value_of(array)?))
    }

    /// A buffer with a copy of an array on the default device. Errors: `ResourceExhausted`.
    pub fn buffer(&self, array: &Array) -> Result<Buffer> {
        self.buffer_from_array(array, self.default_device())
    }

    /// A copy of an array in a block. Errors: `ResourceExhausted`.
    pub(crate) fn value_of(&self, array: &Array) -> Result<Value> {
        let sizes = (!array.shape().is_static()).then(|| array.sizes().to_vec());
        Ok(Value { bytes: self.block_of(array)?.into(), sizes })
    }

    /// The bytes of an array as a program takes them: lent, or a copy where literals keep them
    /// otherwise. Tokens have none. Errors: `ResourceExhausted`.
    pub(crate) fn argument<'a>(&self, array: Option<&'a Array>) -> Result<Argument<'a>> {
        let Some(array) = array else { return Ok(Argument::Lent(&[])) };
        match array.as_bytes() {
            Some(bytes) => Ok(Argument::Lent(bytes)),
            None => self.block_of(array).map(Argument::Given),
        }
    }

    fn block_of(&self, array: &Array) -> Result<Block> {
        let mut block = self.memory().allocate(array.shape().size_bytes())?;
        array.write_to(block.as_mut_slice())?;
        Ok(block)
    }

    /// Has what this thread makes counted as this client's, until the guard is dropped.
    pub(crate) fn enter_account(&self) -> Entered {
        self.memory().account().enter()
    }

    /// A buffer with a copy of the bytes of an array, in row-major order, as
    /// [`Array::to_bytes`] gives them. Errors: `literal.C1` if their number is not the shape's; a
    /// device of another client; `ResourceExhausted`.
    pub fn buffer_from_bytes(
        &self,
        shape: &ArrayShape,
        bytes: &[u8],
        device: Device,
    ) -> Result<Buffer> {
        self.ensure_own(&device)?;
        ensure_size(shape, bytes.len())?;
        let mut block = self.memory().copy_of(bytes)?;
        normalize(shape, block.as_mut_slice());
        Ok(Buffer::new(shape.clone(), device, Value { bytes: block.into(), sizes: None }))
    }

    /// A buffer in the host's own memory, which is kept as long as the buffer is used and must
    /// always refer to the same bytes. It is copied only if its address does not suit, or bytes
    /// stand for no value of the type. Errors: as for [`Client::buffer_from_bytes`].
    pub fn buffer_from_host(
        &self,
        shape: &ArrayShape,
        bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
        device: Device,
    ) -> Result<Buffer> {
        self.ensure_own(&device)?;
        let view = View::of_host(bytes);
        let aligned = view.as_slice().as_ptr().align_offset(LENT_ALIGN) == 0;
        if !aligned || narrow_mask(shape).is_some() {
            return self.buffer_from_bytes(shape, view.as_slice(), device);
        }
        ensure_size(shape, view.len())?;
        Ok(Buffer::new(shape.clone(), device, Value { bytes: view, sizes: None }))
    }

    /// A buffer whose contents are yet to come, and what fills it. Errors: a device of another
    /// client.
    pub fn promised_buffer(&self, shape: &ArrayShape, device: Device) -> Result<(Buffer, Promise)> {
        self.ensure_own(&device)?;
        Ok(Buffer::promised(shape.clone(), device))
    }

    /// Where blocks for promised buffers come from.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// How much memory it uses.
    pub fn memory_stats(&self) -> MemoryStats {
        let memory = self.memory();
        MemoryStats {
            live_bytes: memory.live_bytes(),
            peak_bytes: memory.peak_bytes(),
            cached_bytes: memory.cached_bytes(),
            limit_bytes: memory.limit_bytes(),
        }
    }

    /// Makes the bytes in use now the peak.
    pub fn reset_peak(&self) {
        self.memory().reset_peak();
    }

    /// How many threads may compute at once.
    pub fn threads(&self) -> usize {
        self.shared.pool.size()
    }

    /// What products pack of a constant.
    pub(crate) fn packed(
        &self,
        constant: &View,
        layout: RightLayout,
        bytes: usize,
    ) -> Arc<PackedConstant> {
        self.shared.constants.packed(constant, layout, bytes, self.memory())
    }

    /// What programs have as constants.
    pub(crate) fn constants(&self) -> &Constants {
        &self.shared.constants
    }

    /// The bytes of a program's constant. Errors: `ResourceExhausted`.
    pub(crate) fn constant(&self, array: &Array) -> Result<View> {
        Ok(self.shared.constants.view(array, self.memory())?)
    }

    pub(crate) fn line(&self, device: usize) -> &Line {
        &self.shared.lines[device]
    }

    /// Lets one execution alone take its places in the lines of devices.
    pub(crate) fn launching(&self) -> MutexGuard<'_, ()> {
        self.shared.launching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.shared.pool
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new(&ClientOptions::default())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("devices", &self.shared.lines.len())
            .field("threads", &self.shared.pool.size())
            .field("memory", &self.shared.memory)
            .finish()
    }
}

/// The bits of a byte that mean something, for types that use fewer than all; `pred` is 0 or 1.
fn narrow_mask(shape: &ArrayShape) -> Option<u8> {
    match shape.element() {
        element if element.is_pred() => Some(1),
        element if element.bits() < 8 => Some((1 << element.bits()) - 1),
        _ => None,
    }
}

/// Makes values of all bytes: anything but 0 is true, and types narrower than a byte have their bits
/// at its lower end.
pub(crate) fn normalize(shape: &ArrayShape, bytes: &mut [u8]) {
    let Some(mask) = narrow_mask(shape) else { return };
    let is_pred = shape.element().is_pred();
    for byte in bytes {
        *byte = if is_pred { (*byte != 0).into() } else { *byte & mask };
    }
}

fn ensure_size(shape: &ArrayShape, bytes: usize) -> Result<()> {
    if bytes == shape.size_bytes() {
        return Ok(());
    }
    let want = shape.size_bytes();
    Err(Error::rule("literal.C1", format!("{bytes} bytes for {shape}, which has {want}")))
}
