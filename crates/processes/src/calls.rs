//! The calls of MPI, and the memory that it reads and writes meanwhile: the only unsafe code here.
//!
//! MPI reads and writes memory until it says that a request is complete, and nothing makes it say so
//! when another process is gone. So a request owns a share of its memory, and keeps it for ever if it is
//! dropped before it is complete.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use helio::ir::BinaryOp;
use helio::services::Fold;
use helio::{Block, Code, ElementType, Error, Result};

/// The most bytes of one request: MPI counts in 32 bits.
const MOST: usize = 1 << 30;

/// Room for the text of an error.
const TEXT_BYTES: usize = 1024;

// SAFETY: these are the functions of `calls.c`, with the types that they have there.
unsafe extern "C" {
    fn helio_processes_begin(rank: *mut c_int, size: *mut c_int, state: *mut c_int) -> c_int;
    fn helio_processes_end() -> c_int;
    fn helio_processes_send(
        bytes: *const c_void,
        count: c_int,
        to: c_int,
        tag: c_int,
        request: *mut *mut c_void,
    ) -> c_int;
    fn helio_processes_receive(
        bytes: *mut c_void,
        count: c_int,
        from: c_int,
        tag: c_int,
        request: *mut *mut c_void,
    ) -> c_int;
    fn helio_processes_reduce(
        bytes: *mut c_void,
        count: c_int,
        element: c_int,
        is_product: c_int,
        request: *mut *mut c_void,
    ) -> c_int;
    fn helio_processes_test(
        request: *mut c_void,
        is_complete: *mut c_int,
        source: *mut c_int,
    ) -> c_int;
    fn helio_processes_cancel(request: *mut c_void) -> c_int;
    fn helio_processes_error(code: c_int, text: *mut c_char, room: c_int);
    safe fn helio_processes_note_termination() -> c_int;
    safe fn helio_processes_is_terminated() -> c_int;
    fn helio_processes_bare_sum(from: *const f32, to: *mut f32, count: c_int) -> c_int;
    fn helio_processes_bare_exchange(
        from: *const c_void,
        to: *mut c_void,
        count: c_int,
        other: c_int,
    ) -> c_int;
}

/// MPI, initialised: its calls, which are made by whoever holds this, one at a time.
pub(crate) struct Mpi {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl Mpi {
    /// Initialises it. Errors: `FailedPrecondition` if it has been before in this process, or cannot be
    /// used from several threads; as MPI says.
    pub(crate) fn begin() -> Result<Self> {
        let (mut rank, mut size, mut state) = (0, 0, 0);
        // SAFETY: all three are there to be written to.
        check(unsafe { helio_processes_begin(&mut rank, &mut size, &mut state) })?;
        let refused = |detail| Err(Error::new(Code::FailedPrecondition, detail));
        match state {
            0 => Ok(Mpi { rank: rank as usize, size: size as usize }),
            1 => refused("MPI has been initialised before in this process"),
            _ => refused("this MPI cannot be used from several threads"),
        }
    }

    /// Ends it in order, which waits for all processes. Errors: as MPI says.
    pub(crate) fn end(self) -> Result<()> {
        // SAFETY: it has been initialised, and `self` is the only one there is.
        check(unsafe { helio_processes_end() })
    }

    /// Begins to send the first `len` bytes of a block, as one message or several. Errors: as MPI says.
    pub(crate) fn send(
        &mut self,
        to: usize,
        tag: i32,
        block: Arc<Block>,
        len: usize,
    ) -> Result<Transfer> {
        Transfer::new(block, len, |block, range, request| {
            let bytes = &block.as_slice()[range];
            let (start, len) = (bytes.as_ptr().cast::<c_void>(), bytes.len() as c_int);
            // SAFETY: the bytes live and do not change before the request is complete, because it has a
            // share of the block (see `Request`), and blocks that are shared cannot be changed.
            unsafe { helio_processes_send(start, len, to as c_int, tag, request) }
        })
    }

    /// Begins to receive a block, as [`Mpi::send`] sends it; from anybody if no sender is named, which
    /// must then be one message. Errors: as MPI says.
    pub(crate) fn receive(
        &mut self,
        from: Option<usize>,
        tag: i32,
        block: Block,
    ) -> Result<Transfer> {
        let from = from.map_or(-1, |rank| rank as c_int);
        let len = block.len();
        // Nobody else has a share of it, nor gets one before all is complete.
        Transfer::new(Arc::new(block), len, |block, range, request| {
            let start = block.as_ptr().as_ptr().wrapping_add(range.start).cast::<c_void>();
            // SAFETY: `range` is within the block, which lives until the request is complete (see
            // `Request`); until then nobody reads it, because `Transfer` gives it out only then.
            unsafe { helio_processes_receive(start, range.len() as c_int, from, tag, request) }
        })
    }

    /// Begins to reduce a block over all processes, which do the same; the result is in its place. Errors:
    /// `InvalidArgument` if it has more numbers than MPI can count; as MPI says.
    pub(crate) fn reduce(&mut self, reduction: Reduction, block: Block) -> Result<Transfer> {
        let Reduction { element, element_bytes, is_product } = reduction;
        let count = block.len() / element_bytes;
        let count = c_int::try_from(count)
            .map_err(|_| Error::invalid(format!("a reduction of {count} numbers by MPI")))?;
        let (mut raw, block) = (ptr::null_mut(), Arc::new(block));
        let start = block.as_ptr().as_ptr().cast::<c_void>();
        // SAFETY: `count` numbers are within the block, which lives until the request is complete (see
        // `Request`); nobody else has a share of it, nor gets one before, so that MPI alone reads and
        // writes it until then.
        let code =
            unsafe { helio_processes_reduce(start, count, element, is_product.into(), &mut raw) };
        check(code)?;
        let request = Request { raw, block: ManuallyDrop::new(block.clone()) };
        Ok(Transfer { block, requests: vec![request], source: 0 })
    }

    /// The sums over all processes, in MPI's own order. Errors: other sizes; as MPI says.
    pub(crate) fn bare_sum(&mut self, from: &[f32], to: &mut [f32]) -> Result<()> {
        let count = one_count(from.len(), to.len())?;
        // SAFETY: both have `count` numbers, and MPI is done with them when it returns.
        check(unsafe { helio_processes_bare_sum(from.as_ptr(), to.as_mut_ptr(), count) })
    }

    /// Exchanges bytes with another process, which does the same. Errors: other sizes; as MPI says.
    pub(crate) fn bare_exchange(&mut self, from: &[u8], to: &mut [u8], other: usize) -> Result<()> {
        let count = one_count(from.len(), to.len())?;
        let (from, to) = (from.as_ptr().cast::<c_void>(), to.as_mut_ptr().cast::<c_void>());
        // SAFETY: both have `count` bytes, and MPI is done with them when it returns.
        check(unsafe { helio_processes_bare_exchange(from, to, count, other as c_int) })
    }
}

/// A size that two lists have. Errors: they differ, or are too long for MPI.
fn one_count(from: usize, to: usize) -> Result<c_int> {
    let count = c_int::try_from(from).ok().filter(|_| from == to);
    count.ok_or_else(|| Error::invalid(format!("{from} numbers or bytes into room for {to}")))
}

/// Whether SIGTERM is noted from now on, instead of ending the process.
pub(crate) fn note_termination() -> bool {
    helio_processes_note_termination() != 0
}

/// Whether SIGTERM has come since.
pub(crate) fn is_terminated() -> bool {
    helio_processes_is_terminated() != 0
}

/// A reduction that MPI does.
#[derive(Clone, Copy)]
pub(crate) struct Reduction {
    /// As `calls.c` numbers the types.
    element: c_int,
    element_bytes: usize,
    is_product: bool,
}

impl Reduction {
    /// What MPI has that gives the same values but for the order: sums and products, where integers wrap.
    /// (Its maxima and minima of floats leave open what becomes of NaN.)
    pub(crate) fn of(fold: Fold) -> Option<Self> {
        let is_product = match fold.op {
            BinaryOp::Add => false,
            BinaryOp::Multiply => true,
            _ => return None,
        };
        let (element, element_bytes) = match fold.element {
            ElementType::F32 => (0, 4),
            ElementType::F64 => (1, 8),
            ElementType::S32 | ElementType::U32 => (2, 4),
            ElementType::S64 | ElementType::U64 => (3, 8),
            _ => return None,
        };
        Some(Reduction { element, element_bytes, is_product })
    }
}

/// A block on its way.
pub(crate) struct Transfer {
    block: Arc<Block>,
    /// Its parts that are under way, in order.
    requests: Vec<Request>,
    source: usize,
}

impl Transfer {
    /// Begins a request for each part of the first `len` bytes of a block.
    fn new(
        block: Arc<Block>,
        len: usize,
        begin: impl Fn(&Block, Range<usize>, &mut *mut c_void) -> c_int,
    ) -> Result<Self> {
        let len = len.min(block.len());
        let (mut requests, mut at) = (Vec::with_capacity(1), 0);
        loop {
            let range = at..len.min(at + MOST);
            at = range.end;
            let mut raw = ptr::null_mut();
            check(begin(&block, range, &mut raw))?;
            requests.push(Request { raw, block: ManuallyDrop::new(block.clone()) });
            if at >= len {
                return Ok(Transfer { block, requests, source: 0 });
            }
        }
    }

    /// Whether it is complete. Errors: as MPI says.
    pub(crate) fn is_complete(&mut self) -> Result<bool> {
        while let Some(request) = self.requests.first_mut() {
            match request.test()? {
                None => return Ok(false),
                Some(source) => self.source = source,
            }
            self.requests.remove(0);
        }
        Ok(true)
    }

    /// The block and who sent it, if it is complete.
    pub(crate) fn into_parts(self) -> Option<(Arc<Block>, usize)> {
        self.requests.is_empty().then_some((self.block, self.source))
    }

    /// Withdraws a receive that nothing has come for. Errors: as MPI says.
    pub(crate) fn cancel(&mut self) -> Result<()> {
        self.requests.iter_mut().try_for_each(Request::cancel)
    }
}

/// A request, and a share of its memory, which is never given back unless the request is complete.
struct Request {
    /// Null once it is complete.
    raw: *mut c_void,
    block: ManuallyDrop<Arc<Block>>,
}

// SAFETY: a request is a handle, which any thread may use: MPI is initialised for several threads that do
// not call it at the same time, and transfers are used by the one owner of `Mpi` only, mutably.
unsafe impl Send for Request {}

impl Request {
    /// Who sent it, if it is complete. Errors: as MPI says.
    fn test(&mut self) -> Result<Option<usize>> {
        let (mut is_complete, mut source) = (0, 0);
        if !self.raw.is_null() {
            // SAFETY: the request was begun and is not complete yet, for then it would be null; both
            // results are there to be written to.
            check(unsafe { helio_processes_test(self.raw, &mut is_complete, &mut source) })?;
        }
        if is_complete == 0 {
            return Ok(None);
        }
        self.raw = ptr::null_mut();
        Ok(Some(usize::try_from(source).unwrap_or_default()))
    }

    fn cancel(&mut self) -> Result<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        // SAFETY: it was begun, and is not complete yet.
        check(unsafe { helio_processes_cancel(self.raw) })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.raw.is_null() {
            // SAFETY: it is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.block) };
        }
    }
}

/// Errors: what a call of MPI has returned, unless it is success.
fn check(code: c_int) -> Result<()> {
    // The standard says that success is 0.
    if code == 0 {
        return Ok(());
    }
    let mut text = [0u8; TEXT_BYTES];
    // SAFETY: the text has as much room as is said.
    unsafe { helio_processes_error(code, text.as_mut_ptr().cast(), TEXT_BYTES as c_int) };
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
    Err(Error::new(Code::Unavailable, format!("MPI: {text}")))
}
