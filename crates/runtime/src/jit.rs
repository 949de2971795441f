//! Generated code as functions.
//!
//! The code of a whole program is put into one mapping ([`Jit::install`]); each function keeps it
//! alive. A function works on a range of numbers, whose pieces may run on several threads: how it is
//! cut depends on sizes alone, and not at all on what it computes.

mod batch;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

pub use batch::{JitBatch, LateFunction};

use helio_codegen::Vouched;
use helio_codegen::kernel::Buf;
use helio_codegen::machine::{Access, MachineCode};
use smallvec::SmallVec;

use crate::bounds;
use crate::exec::Pages;
#[cfg(target_arch = "x86_64")]
use crate::program::Entry;
use crate::program::{RawParam, Signature, WholeCode};
use crate::threads::Threads;

/// What the address of a piece of code and of its scratch is a multiple of.
const ALIGN: usize = MachineCode::ALIGN;

/// The shortest task, in nanoseconds: handing a shorter one to another thread does not pay (docs/design/products.md,
/// "Tasks").
const TASK_NANOS: f64 = 10_000.0;

/// The most tasks of one call: more would not even out the threads' work any better.
const MAX_TASKS: i64 = 64;

/// Buffers of a kernel whose addresses are listed without allocating.
const FEW: usize = 8;
type FewAddresses = SmallVec<[*mut u8; FEW]>;

/// Nor does a task take much longer than this, if its work can be cut: a run that is to stop waits for
/// it.
const MAX_TASK_NANOS: f64 = 2_000_000.0;

/// Generated code that is to become a function.
///
/// It is trusted, as this crate cannot know what code does: that it touches nothing but what its
/// interface says, for every piece of the range, and leaves the processor as the calling convention
/// demands. So [`Jit::new`] takes what the code generator vouches for, which nobody else can make.
#[derive(Clone, Debug)]
pub struct Jit {
    signature: Arc<Signature>,
    code: MachineCode,
    /// About how many nanoseconds a number of the range takes.
    nanos: f64,
}

impl Jit {
    /// Code with a short name for listings. `nanos` is the time that one number of its range takes, in
    /// nanoseconds, by which the range is cut into tasks.
    pub fn new(name: impl Into<String>, code: Vouched<MachineCode>, nanos: f64) -> Self {
        // SAFETY: the code generator vouches for the code.
        unsafe { Jit::trusted(name, code.into_inner(), nanos) }
    }

    /// As [`Jit::new`], of code that nobody vouches for.
    ///
    /// # Safety
    /// Called as its interface says, the code touches nothing but what that says: of each buffer no
    /// more than its bytes, which it writes only if they are written; two pieces of the range that do
    /// not overlap do not write what the other touches, also where buffers that may be one are; and
    /// `unit_bytes` is true.
    pub unsafe fn trusted(name: impl Into<String>, code: MachineCode, nanos: f64) -> Self {
        let interface = code.interface();
        let param = |param: &helio_codegen::kernel::Param| RawParam {
            bytes: param.bytes,
            read: param.read,
            write: param.write,
            align: param.align(),
        };
        let signature = Signature {
            name: name.into(),
            params: interface.params.iter().map(param).collect(),
            shared: interface.shared.clone(),
            unit_bytes: interface.unit_bytes,
            range: interface.range,
            grain: interface.grain,
            scratch_bytes: interface.scratch_bytes,
        };
        Jit { signature: Arc::new(signature), code, nanos }
    }

    /// Makes functions of code, in one mapping. An error is the system's; its kind is `Unsupported`
    /// where code cannot run, or the processor lacks instructions that it may have.
    pub fn install(all: Vec<Jit>) -> io::Result<Vec<JitFunction>> {
        if let Some(jit) = all.iter().find(|jit| !jit.code.runs_here()) {
            let what = format!("this processor is no {}", jit.code.instructions());
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let sizes = all.iter().map(|jit| jit.code.bytes().len() + ALIGN);
        let mut bytes = Vec::with_capacity(sizes.sum());
        let mut starts = Vec::with_capacity(all.len());
        for jit in &all {
            bytes.resize(bytes.len().next_multiple_of(ALIGN), 0xcc);
            starts.push(bytes.len());
            bytes.extend_from_slice(jit.code.bytes());
        }
        let pages = Arc::new(Pages::new(&bytes)?);
        let function = |(jit, start): (Jit, usize)| {
            let Jit { signature, nanos, code } = jit;
            let task = task_len(signature.range, signature.grain.max(1), nanos);
            let checked = code.accesses().iter().map(in_words).collect();
            let pages = Arc::clone(&pages);
            let most = most_len(nanos);
            let is_short = signature.range as f64 * nanos <= TASK_NANOS;
            JitFunction { pages, start, signature, task, most, is_short, checked }
        };
        Ok(all.into_iter().zip(starts).map(function).collect())
    }
}

/// An access to memory, for an error that says that it lies outside.
fn in_words(access: &Access) -> String {
    let buffer = match access.buf {
        Buf::Param(n) => format!("buffer {n}"),
        Buf::Scratch => "scratch".to_owned(),
    };
    let verb = if access.write { "writes" } else { "reads" };
    let (bytes, size) = (access.bytes, access.buffer_bytes);
    format!("{verb} {bytes} bytes outside of {buffer}, which has {size},")
}

/// How much of the range a task gets.
fn task_len(range: i64, grain: i64, nanos: f64) -> i64 {
    let worth = (TASK_NANOS / nanos.max(1e-3)).ceil() as i64;
    let most = most_len(nanos);
    let even = times(range, MAX_TASKS).min(most);
    times(worth.max(even).clamp(1, range.max(1)), grain).saturating_mul(grain)
}

/// How much of the range may be done at once.
fn most_len(nanos: f64) -> i64 {
    (MAX_TASK_NANOS / nanos.max(1e-3)) as i64
}

/// How many steps of `step` it takes to reach `len`.
fn times(len: i64, step: i64) -> i64 {
    len / step + i64::from(len % step > 0)
}

/// A function of generated code.
#[derive(Clone)]
pub struct JitFunction {
    pages: Arc<Pages>,
    start: usize,
    signature: Arc<Signature>,
    /// How much of the range is a task; a multiple of the grain.
    task: i64,
    /// How much of it takes about [`MAX_TASK_NANOS`].
    most: i64,
    /// Whether all of the range is a short task.
    is_short: bool,
    /// What the code's accesses are, in words, if it checks them. It then gives two numbers, in `rax`
    /// and `rdx`: 0, or from 1 on which access would have left its buffer, and at which byte of it.
    checked: Arc<[String]>,
}

impl fmt::Debug for JitFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitFunction").field("signature", &self.signature).finish_non_exhaustive()
    }
}

/// A buffer that a caller passes.
pub enum JitArg<'a> {
    /// Read only.
    Read(&'a [u8]),
    /// Written, and maybe read.
    Write(&'a mut [u8]),
    /// The buffer of the argument with this number, which is updated in place: one that
    /// [`Signature::shared`] has.
    Same(usize),
}

/// Why a call of a function failed: buffers do not fit it, or code that checks its accesses found one
/// outside of its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError(String);

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CallError {}

/// What code that checks its accesses gives.
#[repr(C)]
struct Checked {
    /// 0, or the number of an access from 1 on.
    access: u64,
    /// At which byte of its buffer it would have been.
    at: i64,
}

impl JitFunction {
    /// Calls the function for its whole range.
    pub fn call(&self, args: &mut [JitArg<'_>], threads: Threads<'_>) -> Result<(), CallError> {
        self.call_piece(args, 0..self.signature.range, threads)
    }

    /// Calls the function for a piece of its range, which begins and ends at a multiple of the grain
    /// or the range's end.
    pub fn call_piece(
        &self,
        args: &mut [JitArg<'_>],
        piece: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        let Signature { range, grain, .. } = *self.signature;
        let is_cut = |at: i64| at == range || at % grain.max(1) == 0;
        let inside = 0 <= piece.start && piece.start <= piece.end && piece.end <= range;
        if !(inside && is_cut(piece.start) && is_cut(piece.end)) {
            return Err(self.error(format!("{piece:?} of {range} in steps of {grain}")));
        }
        let at = self.addresses(args)?;
        // SAFETY: `addresses` has compared the buffers with the parameters; they are borrowed, the
        // written ones mutably, until the call returns. The piece is one of the range.
        unsafe { self.call_raw(&at, piece, threads) }
    }

    fn error(&self, what: String) -> CallError {
        CallError(format!("{}: {what}", self.signature.name))
    }

    fn addresses(&self, args: &mut [JitArg<'_>]) -> Result<FewAddresses, CallError> {
        let error = |what: String| Err(self.error(what));
        if args.len() != self.signature.params.len() {
            return error(format!(
                "{} buffers for {} parameters",
                args.len(),
                self.signature.params.len()
            ));
        }
        let mut at = FewAddresses::new();
        for (n, param) in self.signature.params.iter().enumerate() {
            let named = if let JitArg::Same(other) = args[n] { other } else { n };
            if named != n && !self.signature.shared.contains(&(n, named)) {
                return error(format!("buffer {n} cannot be that of {named}"));
            }
            let (start, len, writable) = match args.get_mut(named) {
                Some(JitArg::Read(bytes)) => (bytes.as_ptr().cast_mut(), bytes.len(), false),
                Some(JitArg::Write(bytes)) => (bytes.as_mut_ptr(), bytes.len(), true),
                _ => return error(format!("buffer {n} is that of no other")),
            };
            if len < param.bytes {
                return error(format!("buffer {n} has {len} of {} bytes", param.bytes));
            }
            if param.write && !writable {
                return error(format!("buffer {n} may not be written"));
            }
            if !start.addr().is_multiple_of(param.align.max(1)) {
                return error(format!("buffer {n} is not aligned to {}", param.align));
            }
            at.push(start);
        }
        Ok(at)
    }

    /// As [`RawKernel::whole_code`](crate::program::RawKernel::whole_code) has it.
    #[cfg(target_arch = "x86_64")]
    fn whole_code(&self) -> Option<WholeCode> {
        let Signature { range, scratch_bytes, .. } = *self.signature;
        let is_plain = scratch_bytes == 0 && self.checked.is_empty();
        if !self.is_short || self.task < range || !is_plain {
            return None;
        }
        // SAFETY: the code at `start` has this type, as its maker says.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(self.pages.at(self.start)) };
        Some(WholeCode { entry, range })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn whole_code(&self) -> Option<WholeCode> {
        None
    }

    /// Calls the function for a piece of its range.
    ///
    /// # Safety
    /// As for [`RawKernel::call`](crate::program::RawKernel::call).
    unsafe fn call_raw(
        &self,
        at: &[*mut u8],
        range: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        debug_assert_eq!(at.len(), self.signature.params.len());
        let is_one = self.task >= range.end - range.start;
        if is_one && self.signature.scratch_bytes == 0 && self.checked.is_empty() {
            // Most calls of most programs; setting up what others need would take as long as small
            // ones do.
            // SAFETY: the caller's promise; code without scratch takes none.
            let outside = unsafe { self.enter(at, range.start, range.end, no_scratch()) };
            debug_assert!(outside.is_none(), "only code that checks its accesses finds any");
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.call_tasks(at, range, threads) }
    }

    /// Calls the function for a piece of its range, cut into tasks.
    ///
    /// # Safety
    /// As for [`RawKernel::call`](crate::program::RawKernel::call).
    unsafe fn call_tasks(
        &self,
        at: &[*mut u8],
        range: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        let at = Addresses(at);
        // The first piece with an access that is outside.
        let outside = Mutex::new(None::<(i64, Checked)>);
        let piece = |begin, end| {
            let checked = with_scratch(self.signature.scratch_bytes, |scratch| {
                // SAFETY: the caller has vouched for the addresses, and whoever made the code for that
                // it touches nothing else; the scratch is this call's own, aligned, and large enough.
                // Pieces of the range write different elements, so they may run at the same time.
                unsafe { self.enter(at.get(), begin, end, scratch) }
            });
            if let Some(checked) = checked.flatten() {
                let mut first = outside.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(at, _)| begin < *at) {
                    *first = Some((begin, checked));
                }
            }
        };
        let len = range.end - range.start;
        if self.task >= len {
            piece(range.start, range.end);
        } else {
            let tasks = times(len, self.task);
            // A thread that is alone gets as much at once as it may take before it looks whether to
            // stop.
            let joined = if threads.count() == 1 { (self.most / self.task).max(1) } else { 1 };
            if bounds::count(tasks as u64 - 1) {
                threads.for_each_uncounted(times(tasks, joined) as usize, &|n| {
                    let begin = range.start + n as i64 * joined * self.task;
                    piece(begin, range.end.min(begin + joined.saturating_mul(self.task)));
                });
            }
        }
        match outside.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, Checked { access, at })) => {
                let what = self.checked.get(access as usize - 1).map_or("?", String::as_str);
                Err(self.error(format!("{what} at byte {at}")))
            }
            None => Ok(()),
        }
    }

    /// Jumps to the code; gives what it has found outside of its buffer, if it checks that.
    ///
    /// # Safety
    /// `at` and `scratch` are what the code expects.
    #[cfg(target_arch = "x86_64")]
    unsafe fn enter(
        &self,
        at: &[*mut u8],
        begin: i64,
        end: i64,
        scratch: *mut u8,
    ) -> Option<Checked> {
        type CheckedEntry = unsafe extern "sysv64" fn(*const *mut u8, i64, i64, *mut u8) -> Checked;
        let code = self.pages.at(self.start);
        if self.checked.is_empty() {
            // SAFETY: the code at `start` has this type, as its maker says, and stays mapped while
            // `self` lives.
            let entry: Entry = unsafe { std::mem::transmute(code) };
            // SAFETY: the caller's promise.
            unsafe { entry(at.as_ptr(), begin, end, scratch) };
            return None;
        }
        // SAFETY: the code at `start` has this type if it has accesses that it checks, as its maker
        // says, and stays mapped while `self` lives.
        let entry: CheckedEntry = unsafe { std::mem::transmute(code) };
        // SAFETY: the caller's promise.
        let checked = unsafe { entry(at.as_ptr(), begin, end, scratch) };
        (checked.access != 0).then_some(checked)
    }

    /// # Safety
    /// None is needed where no code runs; it is as unsafe as elsewhere.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn enter(&self, _: &[*mut u8], _: i64, _: i64, _: *mut u8) -> Option<Checked> {
        // There are no pages here that a function could be made from.
        self.pages.at(self.start);
        None
    }
}

/// The addresses of buffers, which several threads use at once.
pub(crate) struct Addresses<'a>(pub &'a [*mut u8]);

impl<'a> Addresses<'a> {
    /// The addresses. (A method, so that closures capture the whole.)
    pub fn get(&self) -> &'a [*mut u8] {
        self.0
    }
}

// SAFETY: they are only addresses; the code that uses them writes different elements in each task.
unsafe impl Sync for Addresses<'_> {}

/// The address of no memory, aligned to [`ALIGN`].
pub(crate) fn no_scratch() -> *mut u8 {
    std::ptr::without_provenance_mut(ALIGN)
}

/// Calls `body` with `bytes` bytes of memory that nothing else uses, aligned to [`ALIGN`]. `None` if
/// the run has no memory left; it stops then.
fn with_scratch<R>(bytes: usize, body: impl FnOnce(*mut u8) -> R) -> Option<R> {
    if bytes == 0 {
        return Some(body(no_scratch()));
    }
    let mut result = None;
    bounds::with_scratch(bytes, |scratch| result = Some(body(scratch.as_mut_ptr())));
    result
}

#[cfg(test)]
mod checked;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
