//! The structs of XLA's foreign function interface, version 0.3. Names are those of the interface.
#![allow(missing_docs, non_camel_case_types, non_snake_case)]

use std::ffi::{c_char, c_void};

use super::api::FfiError;

/// XLA's numbers of element types.
pub const PRED: u32 = 1;
pub const TOKEN: u32 = 17;

pub const BUFFER: u32 = 1;
pub const ATTR_ARRAY: u32 = 1;
pub const ATTR_DICTIONARY: u32 = 2;
pub const ATTR_SCALAR: u32 = 3;
pub const ATTR_STRING: u32 = 4;
pub const STAGE_EXECUTE: u32 = 3;

/// A handler. It gives null, or an error that is its caller's.
pub type Handler = unsafe extern "C" fn(*mut XLA_FFI_CallFrame) -> *mut FfiError;

#[repr(C)]
pub struct XLA_FFI_Buffer {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub dtype: u32,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *mut i64,
}

#[repr(C)]
pub struct XLA_FFI_ByteSpan {
    pub ptr: *const u8,
    pub len: usize,
}

#[repr(C)]
pub struct XLA_FFI_Scalar {
    pub dtype: u32,
    pub value: *mut c_void,
}

#[repr(C)]
pub struct XLA_FFI_Array {
    pub dtype: u32,
    pub size: usize,
    pub data: *mut c_void,
}

/// Arguments or results: of each its kind, and where it is.
#[repr(C)]
pub struct XLA_FFI_Args {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub size: i64,
    pub types: *mut u32,
    pub args: *mut *mut c_void,
}

#[repr(C)]
pub struct XLA_FFI_Attrs {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub size: i64,
    pub types: *mut u32,
    pub names: *mut *mut XLA_FFI_ByteSpan,
    pub attrs: *mut *mut c_void,
}

#[repr(C)]
pub struct XLA_FFI_CallFrame {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub api: *const XLA_FFI_Api,
    pub ctx: *mut c_void,
    pub stage: u32,
    pub args: XLA_FFI_Args,
    pub rets: XLA_FFI_Args,
    pub attrs: XLA_FFI_Attrs,
    pub future: *mut c_void,
}

#[repr(C)]
pub struct XLA_FFI_Error_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub message: *const c_char,
    pub errc: u32,
}

#[repr(C)]
pub struct XLA_FFI_Error_GetMessage_Args {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub error: *mut FfiError,
    pub message: *const c_char,
}

#[repr(C)]
pub struct XLA_FFI_Error_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub error: *mut FfiError,
}

/// A function of which nothing is done here but to say that it is not there.
pub type Missing = unsafe extern "C" fn(*mut c_void) -> *mut FfiError;

#[repr(C)]
pub struct XLA_FFI_Api_Version {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub major_version: i32,
    pub minor_version: i32,
}

#[repr(C)]
pub struct XLA_FFI_Api {
    pub struct_size: usize,
    pub extension_start: *mut c_void,
    pub api_version: XLA_FFI_Api_Version,
    pub internal_api: *const c_void,
    pub error_create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut FfiError,
    pub error_get_message: unsafe extern "C" fn(*mut XLA_FFI_Error_GetMessage_Args),
    pub error_destroy: unsafe extern "C" fn(*mut XLA_FFI_Error_Destroy_Args),
    /// Handlers, streams, types, contexts, states, memory, threads, futures, runs: in the interface's
    /// order.
    pub missing: [Missing; 15],
}

const _: () = assert!(size_of::<XLA_FFI_Buffer>() == 48);
const _: () = assert!(size_of::<XLA_FFI_Args>() == 40);
const _: () = assert!(size_of::<XLA_FFI_Attrs>() == 48);
const _: () = assert!(size_of::<XLA_FFI_CallFrame>() == 176);
const _: () = assert!(size_of::<XLA_FFI_Api>() == 192);
