//! Errors as the caller sees them.
#![allow(non_camel_case_types)]

use std::ffi::c_void;

use helio::{Code, Error, Result};

use crate::abi::{
    PJRT_Error_Destroy_Args, PJRT_Error_ForEachPayload_Args, PJRT_Error_GetCode_Args,
    PJRT_Error_Message_Args,
};
use crate::raw::{Call, In, Out, with};

/// An error that is the caller's.
#[repr(C)]
#[derive(Debug)]
pub struct PJRT_Error {
    /// Null: it has no table of functions of its own.
    vtable: usize,
    code: Code,
    message: String,
}

impl PJRT_Error {
    /// Gives an error to the caller.
    pub fn give(error: &Error) -> Out<PJRT_Error> {
        Out::give(PJRT_Error { vtable: 0, code: error.code(), message: message(error) })
    }

    /// Gives what came of something to the caller: null if it went well.
    pub fn outcome(outcome: &Result<()>) -> Out<PJRT_Error> {
        match outcome {
            Ok(()) => Out::null(),
            Err(error) => Self::give(error),
        }
    }
}

impl From<Box<PJRT_Error>> for Error {
    fn from(error: Box<PJRT_Error>) -> Self {
        Error::new(error.code, error.message)
    }
}

/// An error without its code, which has a field of its own.
fn message(error: &Error) -> String {
    let mut text = String::new();
    if let Some(at) = error.location() {
        text += &format!("{at}: ");
    }
    match (error.instruction(), error.source_line()) {
        (Some(name), Some(line)) => text += &format!("{name} ({line}): "),
        (Some(name), None) => text += &format!("{name}: "),
        (None, Some(line)) => text += &format!("{line}: "),
        (None, None) => {}
    }
    text += error.detail();
    if let Some(rule) = error.rule_id() {
        text += &format!(" [{rule}]");
    }
    text
}

/// The one error for all that is wrong with a program: the first one's code, all messages.
pub(crate) fn joined(errors: &[Error]) -> Error {
    let Some(first) = errors.first() else { return Error::internal("an error without a cause") };
    let messages: Vec<String> = errors.iter().map(message).collect();
    Error::new(first.code(), messages.join("\n"))
}

/// The code with this number; what is none is an unknown error.
pub(crate) fn code(number: u32) -> Code {
    Code::from_number(number.into()).unwrap_or(Code::Unknown)
}

/// # Safety
/// As for [`crate::raw::entry`]; the error is the caller's, who gives it up.
pub(crate) unsafe extern "C" fn destroy(args: *mut PJRT_Error_Destroy_Args) {
    let take = |args: &mut PJRT_Error_Destroy_Args| {
        // SAFETY: errors are given as boxes, and the caller gives this one up.
        drop(unsafe { args.error.take() });
        Ok(())
    };
    // SAFETY: the contract of this function. What is wrong with the arguments cannot be told.
    let _: Result<()> = unsafe { with(args, take) };
}

/// # Safety
/// As for [`crate::raw::entry`].
pub(crate) unsafe extern "C" fn read_message(args: *mut PJRT_Error_Message_Args) {
    let read = |args: &mut PJRT_Error_Message_Args| {
        let error = args.error;
        (args.message, args.message_size) = Out::text(&error.get("an error")?.message);
        Ok(())
    };
    // SAFETY: the contract of this function. What is wrong with the arguments cannot be told.
    let _: Result<()> = unsafe { with(args, read) };
}

impl Call for PJRT_Error_GetCode_Args {
    fn call(&mut self) -> Result<()> {
        let error = self.error;
        self.code = error.get("an error")?.code as u32;
        Ok(())
    }
}

impl Call for PJRT_Error_ForEachPayload_Args {
    fn call(&mut self) -> Result<()> {
        // Errors have a code and a text, and nothing else to visit.
        let error: In<PJRT_Error> = self.error;
        let _: *mut c_void = self.user_arg;
        error.get("an error").map(drop)
    }
}
