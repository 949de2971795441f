//! The key-value store by which the processes of a framework learn of each other.

use std::time::Duration;

use helio::{Code, Error, Result};

use crate::abi::{
    PJRT_Client_Create_Args, PJRT_KeyValueGetCallback_Args, PJRT_KeyValuePutCallback_Args,
};
use crate::error::PJRT_Error;
use crate::raw::{CallbackError, Function, In, Out, sized};

/// The caller's functions, which may be called while it makes a client.
pub(crate) struct Store {
    get: (Function<PJRT_KeyValueGetCallback_Args>, *mut std::ffi::c_void),
    put: (Function<PJRT_KeyValuePutCallback_Args>, *mut std::ffi::c_void),
}

/// An error of the caller's functions, as one of ours.
///
/// # Safety
/// The message has `size` bytes unless it is null.
unsafe extern "C" fn failed(code: u32, message: *const u8, size: usize) -> Out<PJRT_Error> {
    // SAFETY: the promise of the caller.
    let message = unsafe { In::new(message) };
    // SAFETY: as for the message itself.
    let text = unsafe { message.slice(size, "an error's message") }.unwrap_or_default();
    PJRT_Error::give(&Error::new(crate::error::code(code), String::from_utf8_lossy(text)))
}

/// Where the caller's functions find [`failed`].
static FAILED: CallbackError = failed;

impl Store {
    /// That of the caller's. Errors: `FailedPrecondition` if it has none.
    pub(crate) fn of(args: &PJRT_Client_Create_Args) -> Result<Self> {
        match (args.kv_get_callback, args.kv_put_callback) {
            (Some(get), Some(put)) => {
                Ok(Store { get: (get, args.kv_get_user_arg), put: (put, args.kv_put_user_arg) })
            }
            _ => Err(Error::new(
                Code::FailedPrecondition,
                "a client of several processes needs a key-value store by which they learn of each \
                 other\n  help: in JAX, jax.distributed.initialize comes before the first use of a device",
            )),
        }
    }

    /// Keeps a value for all processes. Errors: as the store says.
    pub(crate) fn put(&self, key: &str, value: &str) -> Result<()> {
        let mut args = sized::<PJRT_KeyValuePutCallback_Args>();
        (args.key, args.key_size) = Out::text(key);
        (args.value, args.value_size) = Out::text(value);
        (args.callback_error, args.user_arg) = (&FAILED, self.put.1);
        // SAFETY: the header says that a client's maker has the function called with such arguments.
        outcome(unsafe { (self.put.0)(&mut args) })
    }

    /// A value that some process has kept, or will within so long. Errors: as the store says.
    pub(crate) fn get(&self, key: &str, at_most: Duration) -> Result<String> {
        let mut args = sized::<PJRT_KeyValueGetCallback_Args>();
        (args.key, args.key_size) = Out::text(key);
        args.timeout_in_ms = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
        (args.callback_error, args.user_arg) = (&FAILED, self.get.1);
        // SAFETY: the header says that a client's maker has the function called with such arguments.
        outcome(unsafe { (self.get.0)(&mut args) })?;
        // SAFETY: the function has written where the value is, which lives until it is deleted below.
        let value = unsafe { In::<u8>::new(args.value) };
        // SAFETY: as for the value itself.
        let bytes = unsafe { value.slice(args.value_size, "bytes of a value")? };
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let (Some(delete), false) = (args.value_deleter_callback, value.is_null()) {
            // SAFETY: the function gives the value to whoever has called it, and this to delete it.
            unsafe { delete(args.value) };
        }
        Ok(text)
    }
}

/// What a callback of the caller's returns: null, or an error that it has had [`failed`] make.
fn outcome(error: Out<PJRT_Error>) -> Result<()> {
    // SAFETY: it comes from `failed`, which gives it to the callback, and that to us.
    let error = unsafe { In::new(error.as_ptr()).take() };
    error.map_or(Ok(()), |error| Err(error.into()))
}
