//! What crosses the C ABI: pointers, and calls of the table's functions.
#![allow(non_camel_case_types)]

use std::ffi::c_void;
use std::mem::{MaybeUninit, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use helio::{Error, Result};

use crate::error::PJRT_Error;

/// A struct that C passes by pointer.
///
/// # Safety
/// It begins with its size as a `usize`, and a value of zeros is valid.
pub unsafe trait Layout: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The bytes up to the end of its last field.
    const SIZE: usize;
    /// The least bytes that a caller must have: of a struct that has grown, those of its older form.
    const LEAST: usize;
}

/// A function of the API, as C calls it: it takes a pointer to its arguments, and gives null or an error.
pub type Function<A> = unsafe extern "C" fn(*mut A) -> Out<PJRT_Error>;

/// What makes an error of its code and message, for callbacks that fail.
pub type CallbackError = unsafe extern "C" fn(u32, *const u8, usize) -> Out<PJRT_Error>;

/// A function of the table, by its arguments.
pub trait Call: Layout {
    /// Reads the arguments and writes the results.
    fn call(&mut self) -> Result<()>;
}

/// The function of the table that takes `A`: `null`, or an error that is the caller's.
///
/// # Safety
/// `args` is null or points to a struct that says its own size, and whose pointers are what the header
/// of the PJRT C API says of them.
pub unsafe extern "C" fn entry<A: Call>(args: *mut A) -> Out<PJRT_Error> {
    // SAFETY: the contract of this function is that of `with`.
    let call = || unsafe { with(args, A::call) };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Out::null(),
        Ok(Err(error)) => PJRT_Error::give(&error),
        Err(panic) => PJRT_Error::give(&panicked(&*panic, A::NAME)),
    }
}

/// The error for a panic, which is a defect of helio's.
fn panicked(panic: &(dyn std::any::Any + Send), name: &str) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Error::internal(format!("helio panicked in the function of {name}: {text}"))
}

/// A struct of zeros that says its size.
pub fn sized<A: Layout>() -> A {
    let mut args = MaybeUninit::<A>::zeroed();
    // SAFETY: a struct of the API begins with its size, as `Layout` states.
    unsafe { args.as_mut_ptr().cast::<usize>().write(A::SIZE) };
    // SAFETY: zeros are valid, as `Layout` states.
    unsafe { args.assume_init() }
}

/// Calls `function` with C's struct, or with a copy of it that has zeros where an older caller's struct
/// ends.
///
/// # Safety
/// As for [`entry`].
pub(crate) unsafe fn with<A: Layout, T>(
    args: *mut A,
    function: impl FnOnce(&mut A) -> Result<T>,
) -> Result<T> {
    let name = A::NAME;
    if args.is_null() || !args.is_aligned() {
        return Err(Error::invalid(format!("a pointer to {name} is needed, found {args:?}")));
    }
    // SAFETY: the struct begins with its size, and the caller has it initialised.
    let size = unsafe { args.cast::<usize>().read() };
    if size >= A::SIZE {
        // SAFETY: the caller's struct is whole, and nobody else uses it during the call. Fields that the
        // caller has not written are integers and pointers, for which all bytes will do.
        return function(unsafe { &mut *args });
    }
    if size < A::LEAST {
        let least = A::LEAST;
        return Err(Error::invalid(format!("{name} has at least {least} bytes, found {size}")));
    }
    let mut whole = MaybeUninit::<A>::zeroed();
    let (theirs, ours) = (args.cast::<u8>(), whole.as_mut_ptr().cast::<u8>());
    // SAFETY: the caller's struct has `size` bytes, ours at least as many; they are apart.
    unsafe { ours.copy_from_nonoverlapping(theirs, size) };
    // SAFETY: zeros are a valid value, and so is what the caller has written over them.
    let whole = unsafe { whole.assume_init_mut() };
    let result = function(whole);
    // SAFETY: as for the copy above, the other way round.
    unsafe { theirs.copy_from_nonoverlapping(std::ptr::from_ref(whole).cast(), size) };
    result
}

/// A pointer that came from the caller: null, or to a `T` that lives until the call is over and that
/// nobody changes meanwhile. Safe code cannot make one.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> In<T> {
    /// The pointer as one that came from a caller.
    ///
    /// # Safety
    /// It is null, or what it points to lives as long as this and its copies are used.
    pub unsafe fn new(pointer: *const T) -> Self {
        In(pointer)
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// What it points to. Errors: `InvalidArgument` if it is null, calling it `what`.
    pub fn get(&self, what: &str) -> Result<&T> {
        self.optional().ok_or_else(|| Error::invalid(format!("{what} is needed, found null")))
    }

    /// What it points to, if it is not null.
    pub fn optional(&self) -> Option<&T> {
        // SAFETY: by what this type is, it is null or the value lives during the call, of which `self`
        // is a part, and nobody changes it.
        unsafe { self.0.as_ref() }
    }

    /// The `len` values from there on; none if it is null and there should be none. Errors:
    /// `InvalidArgument` if it is null, or there are more bytes than memory can have.
    ///
    /// # Safety
    /// There are so many unless it is null.
    pub unsafe fn slice(&self, len: usize, what: &str) -> Result<&[T]> {
        if len == 0 {
            return Ok(&[]);
        }
        if len > isize::MAX as usize / size_of::<T>().max(1) {
            return Err(Error::invalid(format!("{len} {what} are more than memory can have")));
        }
        self.get(what)?;
        // SAFETY: it is not null, the caller of this function promises the number, and the type that
        // they live and do not change.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }

    /// What it points to, to be dropped by whoever gets this.
    ///
    /// # Safety
    /// It is null or came from [`Out::give`], and the caller of C's function gives it up.
    pub unsafe fn take(self) -> Option<Box<T>> {
        let pointer = self.0.cast_mut();
        // SAFETY: the promise of the caller: it was a box, and nobody else has it any more.
        (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
    }
}

impl In<u8> {
    /// Bytes as text. Errors: as for [`In::slice`], and if they are not UTF-8.
    ///
    /// # Safety
    /// As for [`In::slice`].
    pub unsafe fn text(&self, len: usize, what: &str) -> Result<&str> {
        // SAFETY: the promise of the caller is the one that `slice` needs.
        let bytes = unsafe { self.slice(len, what)? };
        str::from_utf8(bytes).map_err(|_| Error::invalid(format!("{what} is not UTF-8")))
    }
}

/// A pointer that goes to the caller. Nothing can be read through it here.
#[repr(transparent)]
pub struct Out<T>(*const T);

impl<T> std::fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Out({:?})", self.0)
    }
}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

// SAFETY: it is a number until C uses it, and C's functions may be called from any thread.
unsafe impl<T> Send for Out<T> {}
// SAFETY: a shared reference to it gives a copy of that number.
unsafe impl<T> Sync for Out<T> {}

impl<T> Out<T> {
    /// No pointer.
    pub const fn null() -> Self {
        Out(std::ptr::null())
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// A value that its owner keeps for as long as the header promises.
    pub fn of(value: &T) -> Self {
        Out(value)
    }

    /// The first of several such values.
    pub fn list(values: &[T]) -> Self {
        Out(values.as_ptr())
    }

    /// A value that is the caller's from now on.
    pub fn give(value: T) -> Self {
        Out(Box::into_raw(Box::new(value)))
    }

    /// The address.
    pub fn as_ptr(self) -> *mut T {
        self.0.cast_mut()
    }
}

impl Out<u8> {
    /// Text that its owner keeps for as long as the header promises, and its length.
    pub fn text(text: &str) -> (Self, usize) {
        (Out(text.as_ptr()), text.len())
    }
}

/// An address of the caller's that goes to another thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(crate) *mut c_void);

impl Address {
    /// The address itself.
    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: it is a number; whoever reads or writes through it states why that may be done there.
unsafe impl Send for Address {}
// SAFETY: as a number, it may be looked at from any thread.
unsafe impl Sync for Address {}

/// Bytes that the caller frees with `free_bytes`.
#[derive(Debug)]
pub struct PJRT_Bytes {
    _bytes: Vec<u8>,
}

/// Frees what a function has given as [`PJRT_Bytes`].
///
/// # Safety
/// It is null or was given by a function of the table, and is not used any more.
pub(crate) unsafe extern "C" fn free_bytes(bytes: *mut PJRT_Bytes) {
    // SAFETY: the promise of the caller: it is a box of ours.
    drop(unsafe { In::new(bytes).take() });
}

/// Bytes for the caller: where they are, how many, what owns them, and what frees that.
pub(crate) type GivenBytes =
    (Out<u8>, usize, Out<PJRT_Bytes>, Option<unsafe extern "C" fn(*mut PJRT_Bytes)>);

/// Gives bytes to the caller.
pub(crate) fn give_bytes(bytes: Vec<u8>) -> GivenBytes {
    // The bytes stay where they are when their owner moves into its box.
    let (start, len) = (Out::list(&bytes), bytes.len());
    (start, len, Out::give(PJRT_Bytes { _bytes: bytes }), Some(free_bytes))
}
