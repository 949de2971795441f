//! What handlers may call: errors. The rest of the interface answers that it is not there.

use std::ffi::{CStr, CString, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::OnceLock;

use helio::Code;

use super::abi::*;

/// An error that a handler gives.
#[derive(Debug)]
pub struct FfiError {
    pub(super) code: u32,
    pub(super) message: CString,
}

impl FfiError {
    fn give(code: u32, message: CString) -> *mut FfiError {
        Box::into_raw(Box::new(FfiError { code, message }))
    }
}

/// # Safety
/// The arguments are whole, and the message ends with a zero byte or is null.
unsafe extern "C" fn create(args: *mut XLA_FFI_Error_Create_Args) -> *mut FfiError {
    // SAFETY: the promise of the caller.
    let args = unsafe { &*args };
    if args.message.is_null() {
        return FfiError::give(args.errc, CString::default());
    }
    // SAFETY: the promise of the caller: it is not null, and ends.
    let message = unsafe { CStr::from_ptr(args.message) };
    FfiError::give(args.errc, message.to_owned())
}

/// # Safety
/// The arguments are whole, and the error is one of [`create`].
unsafe extern "C" fn get_message(args: *mut XLA_FFI_Error_GetMessage_Args) {
    // SAFETY: the promise of the caller.
    let args = unsafe { &mut *args };
    // SAFETY: the promise of the caller: the error lives, or is null.
    let error = unsafe { args.error.as_ref() };
    args.message = error.map_or(ptr::null(), |error| error.message.as_ptr());
}

/// # Safety
/// The arguments are whole; the error is one of [`create`], or null, and is not used any more.
unsafe extern "C" fn destroy(args: *mut XLA_FFI_Error_Destroy_Args) {
    // SAFETY: the promise of the caller.
    let error = unsafe { (*args).error };
    // SAFETY: the promise of the caller: errors are boxes.
    drop(unsafe { take(error) });
}

/// The error that a handler gave, if it is one.
///
/// # Safety
/// It is one of [`create`], or null, and is not used any more.
pub(super) unsafe fn take(error: *mut FfiError) -> Option<Box<FfiError>> {
    // SAFETY: the promise of the caller: errors are boxes.
    (!error.is_null()).then(|| unsafe { Box::from_raw(error) })
}

/// # Safety
/// None is needed: nothing is looked at.
unsafe extern "C" fn missing(_args: *mut c_void) -> *mut FfiError {
    let message = c"a function of XLA's FFI that helio does not have".to_owned();
    FfiError::give(Code::Unimplemented as u32, message)
}

struct Shared(XLA_FFI_Api);

// SAFETY: functions and null pointers; nobody changes it.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

/// The functions, which live as long as the process.
pub(super) fn api() -> &'static XLA_FFI_Api {
    static API: OnceLock<Shared> = OnceLock::new();
    let api = API.get_or_init(|| {
        Shared(XLA_FFI_Api {
            struct_size: size_of::<XLA_FFI_Api>(),
            extension_start: ptr::null_mut(),
            api_version: XLA_FFI_Api_Version {
                struct_size: size_of::<XLA_FFI_Api_Version>(),
                extension_start: ptr::null_mut(),
                major_version: 0,
                minor_version: 3,
            },
            internal_api: ptr::null(),
            error_create: create,
            error_get_message: get_message,
            error_destroy: destroy,
            missing: [missing; 15],
        })
    });
    &api.0
}
