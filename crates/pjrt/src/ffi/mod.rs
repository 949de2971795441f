//! Handlers of XLA's foreign function interface as custom calls: those of C++ libraries that JAX's
//! users register with `jax.ffi`, and those for LAPACK that JAX brings along.

pub mod abi;
pub mod api;
mod frame;

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use helio::ir::Dictionary;
use helio::{Call, Code, Error, Result};

use crate::callback::functions;
use crate::error;
use crate::raw::In;
use abi::{Handler, STAGE_EXECUTE, XLA_FFI_CallFrame};
use frame::{Attributes, Buffers};

/// Registers a handler for custom calls of a target; gives 0, or the number of an error's code if the
/// name is null or not UTF-8, or there is no handler.
///
/// # Safety
/// The name has `size` bytes. The handler is one of XLA's FFI, may be called from any thread and several
/// at once, and is there as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn helio_register_ffi_handler(
    target: *const u8,
    size: usize,
    handler: Option<Handler>,
) -> u32 {
    // SAFETY: the promise of the caller.
    let target = unsafe { In::new(target) };
    // SAFETY: as for the name itself.
    match (unsafe { target.text(size, "a target") }, handler) {
        (Ok(target), Some(handler)) if !target.is_empty() => {
            functions().register(target, move |call| handle(handler, call));
            0
        }
        _ => Code::InvalidArgument as u32,
    }
}

/// Calls a handler. It sees arrays where helio has them.
fn handle(handler: Handler, call: &mut Call<'_>) -> Result<()> {
    let info = call.info();
    let none = Dictionary::default();
    let dictionary = match info.config {
        Some(_) => info.attributes()?,
        None => &none,
    };
    let mut attributes = Attributes::new(dictionary)?;
    let leaves = |shape: &helio::Shape| -> Vec<helio::Shape> {
        shape.leaves().into_iter().cloned().collect()
    };
    let (operands, results) = call.addresses();
    let operand_shapes = info.operands.iter().flat_map(leaves);
    let addresses = operands.into_iter().map(|at| at.cast_mut().cast::<c_void>());
    let mut operands = Buffers::new(operand_shapes.zip(addresses));
    let addresses = results.into_iter().map(|at| at.cast::<c_void>());
    let mut results = Buffers::new(leaves(&info.result).into_iter().zip(addresses));
    let mut frame = XLA_FFI_CallFrame {
        // Handlers insist on the size up to the last field that they must know.
        struct_size: offset_of!(XLA_FFI_CallFrame, future),
        extension_start: ptr::null_mut(),
        api: api::api(),
        ctx: ptr::null_mut(),
        stage: STAGE_EXECUTE,
        args: operands.args(),
        rets: results.args(),
        attrs: attributes.attrs(),
        future: ptr::null_mut(),
    };
    // SAFETY: whoever registered the handler promises what it is; what the frame points to lives until
    // the call is over, and the results are this call's to be written.
    let outcome = unsafe { handler(&mut frame) };
    // SAFETY: a handler makes its errors by the function that the frame gives it.
    match unsafe { api::take(outcome) } {
        None if frame.future.is_null() => Ok(()),
        None => Err(Error::unimplemented("a handler that goes on after its call")),
        Some(error) => Err(Error::new(error::code(error.code), error.message.to_string_lossy())),
    }
}
