//! Buffers: arrays on a device, there already or promised by an execution, and the claims of
//! executions on them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helio_ir::{Array, ArrayShape, Code, Error, Literal, Result};
use helio_runtime::{Block, View};

use crate::device::{Device, MemoryKind};
use crate::event::{Completer, Event};

/// An array on a device: there already, or promised by an execution that is under way. Cloning
/// gives another handle to the same buffer.
///
/// A buffer never changes. It ends when it is deleted or given away to an execution ("donated");
/// whoever uses it after that gets an error. If what was to fill it fails, all that use it fail with
/// the same error.
///
/// ```
/// let client = helio::Client::default();
/// let x = client.buffer(&[[1f32, 2.0], [3.0, 4.0]].into())?;
/// assert_eq!((x.shape().dims(), x.size_bytes()), (&[2, 2][..], 16));
/// assert_eq!(x.to_array()?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// x.delete();
/// assert!(x.to_array().is_err());
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone)]
pub struct Buffer {
    shared: Arc<Shared>,
}

struct Shared {
    shape: ArrayShape,
    device: Device,
    memory_kind: MemoryKind,
    ready: Event,
    state: Mutex<State>,
}

struct State {
    /// What it holds; `None` before that is known, and when it is gone.
    value: Option<Value>,
    /// Why it may be used no more, if so. Executions that were asked for before still do.
    ended: Option<End>,
    /// How many executions have yet to take the value.
    claims: usize,
}

/// How a buffer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Deleted,
    GivenAway,
}

/// The bytes of an array.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) bytes: View,
    /// The size of each dimension at run time, where the shape does not say it.
    pub(crate) sizes: Option<Vec<usize>>,
}

/// Fills a buffer. Dropping it without a word makes the buffer fail, so that nobody waits for ever.
///
/// ```
/// let client = helio::Client::default();
/// let shape = helio::ir::ArrayShape::new(helio::ElementType::U8, [4])?;
/// let (x, promise) = client.promised_buffer(&shape, client.default_device())?;
/// assert!(!x.ready().is_ready());
/// promise.fill(client.memory().copy_of(&[1, 2, 3, 4]).map_err(Into::into))?;
/// assert_eq!(x.to_array()?, [1u8, 2, 3, 4].into());
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Debug)]
pub struct Promise {
    buffer: Buffer,
    completer: Completer,
}

/// The right of an execution to a buffer's value.
pub(crate) struct Claim {
    buffer: Buffer,
    donated: bool,
}

impl Buffer {
    pub(crate) fn new(shape: ArrayShape, device: Device, value: Value) -> Self {
        Self::with(shape, device, MemoryKind::default(), Event::completed(), Some(value))
    }

    pub(crate) fn promised(shape: ArrayShape, device: Device) -> (Self, Promise) {
        Self::promised_in(shape, device, MemoryKind::default())
    }

    fn promised_in(shape: ArrayShape, device: Device, kind: MemoryKind) -> (Self, Promise) {
        let (ready, completer) = Event::new();
        let buffer = Self::with(shape, device, kind, ready, None);
        (buffer.clone(), Promise { buffer, completer })
    }

    fn with(
        shape: ArrayShape,
        device: Device,
        memory_kind: MemoryKind,
        ready: Event,
        value: Option<Value>,
    ) -> Self {
        let state = Mutex::new(State { value, ended: None, claims: 0 });
        Buffer { shared: Arc::new(Shared { shape, device, memory_kind, ready, state }) }
    }

    /// The shape; its layout means nothing, elements are in row-major order.
    pub fn shape(&self) -> &ArrayShape {
        &self.shared.shape
    }

    /// Where it is.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Which of the device's memories it is in.
    pub fn memory_kind(&self) -> MemoryKind {
        self.shared.memory_kind
    }

    /// The bytes that it takes.
    pub fn size_bytes(&self) -> usize {
        self.shared.shape.size_bytes()
    }

    /// Completes when the buffer has its value, or with the error that left it without one.
    pub fn ready(&self) -> &Event {
        &self.shared.ready
    }

    /// The bytes, once they are there: the buffer's own memory, without a copy, which lives as long
    /// as the view. Errors: `FailedPrecondition` if the buffer has been deleted or given away; whatever
    /// has gone wrong in what was to fill it.
    pub fn view(&self) -> Result<View> {
        self.value().map(|value| value.bytes)
    }

    /// A copy of the array. Errors: as for [`Buffer::view`], and `ResourceExhausted`.
    pub fn to_array(&self) -> Result<Array> {
        let Value { bytes, sizes } = self.value()?;
        let array = Array::from_bytes(self.shape().clone(), bytes.as_slice())?;
        match sizes {
            Some(sizes) => array.with_sizes(sizes),
            None => Ok(array),
        }
    }

    /// A copy of the array as a literal. Errors: as for [`Buffer::to_array`].
    pub fn to_literal(&self) -> Result<Literal> {
        self.to_array().map(Literal::Array)
    }

    /// The same array on another device, perhaps of another client. All devices of a client share
    /// its memory, so nothing is copied between these. Errors: the buffer has been deleted or given
    /// away; `ResourceExhausted`.
    pub fn copy_to(&self, device: &Device) -> Result<Buffer> {
        self.copy_to_memory(device, self.memory_kind())
    }

    /// The same array in a memory of a device. Memories of one client are one, so nothing is copied
    /// between these. Errors: as for [`Buffer::copy_to`].
    pub fn copy_to_memory(&self, device: &Device, kind: MemoryKind) -> Result<Buffer> {
        let claim = self.claim(false)?;
        let is_shared = self.device().client().is(device.client());
        let client = device.client().clone();
        let value = move || {
            let (value, _) = claim.value()?;
            let Value { bytes, sizes } = value;
            let bytes = match is_shared {
                true => bytes,
                false => client.memory().copy_of(bytes.as_slice())?.into(),
            };
            Ok(Value { bytes, sizes })
        };
        let (shape, device) = (self.shape().clone(), device.clone());
        if let Some(Ok(())) = self.ready().outcome() {
            return Ok(Buffer::with(shape, device, kind, Event::completed(), Some(value()?)));
        }
        let (copy, promise) = Buffer::promised_in(shape, device, kind);
        self.ready().on_ready(move |_| promise.keep(value()));
        Ok(copy)
    }

    /// The same for all handles of one buffer, and while it lives for no other.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Ends the buffer. Its memory is free as soon as nobody uses it any more: executions that were
    /// asked for before, and views.
    pub fn delete(&self) {
        let mut state = self.lock();
        state.ended.get_or_insert(End::Deleted);
        state.release();
    }

    /// Whether the buffer has been deleted or given away.
    pub fn is_deleted(&self) -> bool {
        self.lock().ended.is_some()
    }

    fn value(&self) -> Result<Value> {
        self.claim(false)?.value().map(|(value, _)| value)
    }

    /// The right to its value; a donated buffer may not be used any more from now on.
    fn claim(&self, donated: bool) -> Result<Claim> {
        let mut state = self.lock();
        self.ensure_not_ended(&state)?;
        Ok(self.claim_in(&mut state, donated))
    }

    /// Errors: `FailedPrecondition` if it has ended.
    fn ensure_not_ended(&self, state: &State) -> Result<()> {
        let Some(end) = state.ended else { return Ok(()) };
        let how = match end {
            End::Deleted => "deleted",
            End::GivenAway => "given away to an execution, which may have written it",
        };
        let detail = format!("the buffer of {} has been {how}", self.shape());
        Err(Error::new(Code::FailedPrecondition, detail))
    }

    fn claim_in(&self, state: &mut State, donated: bool) -> Claim {
        state.claims += 1;
        if donated {
            state.ended = Some(End::GivenAway);
        }
        Claim { buffer: self.clone(), donated }
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that an execution asks for, and whether it is given away.
pub(crate) type Wanted<'a> = (&'a Buffer, bool);

/// The right to each of these buffers, or to none: nothing is taken until all are known to be there.
/// Errors: for the first that has ended, its position and `FailedPrecondition`; for one that is given
/// away and wanted besides, its position and that of the other.
pub(crate) fn claim_all(wanted: &[Wanted<'_>]) -> Result<Vec<Claim>, NoClaim> {
    // In one order, so that two executions that want the same never wait for each other.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_unstable_by_key(|&i| (wanted[i].0.address(), i));
    let is_same = |a: usize, b: usize| wanted[a].0.address() == wanted[b].0.address();
    for group in order.chunk_by(|&a, &b| is_same(a, b)).filter(|group| group.len() > 1) {
        if let Some(&given) = group.iter().find(|&&i| wanted[i].1) {
            return Err(NoClaim::Twice { positions: [group[0], group[1]], given });
        }
    }
    let mut states: Vec<MutexGuard<'_, State>> = Vec::with_capacity(wanted.len());
    // Of each position, whose lock guards it.
    let mut guard = vec![0; wanted.len()];
    for (n, &i) in order.iter().enumerate() {
        if n == 0 || !is_same(order[n - 1], i) {
            states.push(wanted[i].0.lock());
        }
        guard[i] = states.len() - 1;
    }
    for (i, (buffer, _)) in wanted.iter().enumerate() {
        buffer.ensure_not_ended(&states[guard[i]]).map_err(|error| NoClaim::Ended(i, error))?;
    }
    let each = wanted.iter().zip(&guard);
    Ok(each.map(|((buffer, donated), &n)| buffer.claim_in(&mut states[n], *donated)).collect())
}

/// Why buffers cannot be had.
pub(crate) enum NoClaim {
    /// The one at this position has ended.
    Ended(usize, Error),
    /// Two positions have one buffer, which is given away at `given`.
    Twice { positions: [usize; 2], given: usize },
}

impl State {
    /// Gives up the value if nobody is to use it.
    fn release(&mut self) {
        if self.ended.is_some() && self.claims == 0 {
            self.value = None;
        }
    }
}

impl Promise {
    /// Fills the buffer with a block of its size, or says why it stays without a value.
    /// Errors: the block has another size.
    pub fn fill(self, contents: Result<Block>) -> Result<()> {
        let want = self.buffer.size_bytes();
        match contents {
            Ok(block) if block.len() != want => {
                let found = block.len();
                let error = Error::invalid(format!("{found} bytes for a buffer of {want}"));
                self.keep(Err(error.clone()));
                Err(error)
            }
            contents => {
                self.keep(contents.map(|block| Value { bytes: block.into(), sizes: None }));
                Ok(())
            }
        }
    }

    pub(crate) fn keep(self, value: Result<Value>) {
        let outcome = value.map(|value| {
            let mut state = self.buffer.lock();
            state.value = Some(value);
            state.release();
        });
        self.completer.complete(outcome);
    }
}

impl Claim {
    /// Waits for the value. It comes with whether it was given away. Errors: what was to fill the
    /// buffer failed.
    pub(crate) fn value(&self) -> Result<(Value, bool)> {
        self.buffer.ready().wait()?;
        let mut state = self.buffer.lock();
        let last = self.donated && state.claims == 1;
        let value = if last { state.value.take() } else { state.value.clone() };
        let value = value.ok_or_else(|| Error::internal("a buffer's value is gone too early"))?;
        Ok((value, self.donated))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        state.claims -= 1;
        state.release();
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("shape", &self.shape().to_string())
            .field("device", &self.device().id())
            .field("ready", self.ready())
            .field("deleted", &self.is_deleted())
            .finish()
    }
}
