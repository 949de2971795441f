//! The structs of the PJRT C API 0.114 and its table of functions.
//!
//! Written by `cargo xtask abi`; do not edit. Names are those of the API.
#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![allow(unused_qualifications)]

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

use crate::handles::*;
use crate::raw::{CallbackError, Function, In, Layout, Out};

pub const PJRT_API_MAJOR: i32 = 0;
pub const PJRT_API_MINOR: i32 = 114;
pub const PJRT_Buffer_MemoryLayout_Type_Strides: u32 = 1;
pub const PJRT_Buffer_MemoryLayout_Type_Tiled: u32 = 0;
pub const PJRT_Buffer_Type_BF16: u32 = 13;
pub const PJRT_Buffer_Type_C128: u32 = 15;
pub const PJRT_Buffer_Type_C64: u32 = 14;
pub const PJRT_Buffer_Type_F16: u32 = 10;
pub const PJRT_Buffer_Type_F32: u32 = 11;
pub const PJRT_Buffer_Type_F4E2M1FN: u32 = 29;
pub const PJRT_Buffer_Type_F64: u32 = 12;
pub const PJRT_Buffer_Type_F6E2M3FN: u32 = 32;
pub const PJRT_Buffer_Type_F6E3M2FN: u32 = 33;
pub const PJRT_Buffer_Type_F8E3M4: u32 = 27;
pub const PJRT_Buffer_Type_F8E4M3: u32 = 26;
pub const PJRT_Buffer_Type_F8E4M3B11FNUZ: u32 = 18;
pub const PJRT_Buffer_Type_F8E4M3FN: u32 = 17;
pub const PJRT_Buffer_Type_F8E4M3FNUZ: u32 = 20;
pub const PJRT_Buffer_Type_F8E5M2: u32 = 16;
pub const PJRT_Buffer_Type_F8E5M2FNUZ: u32 = 19;
pub const PJRT_Buffer_Type_F8E8M0FNU: u32 = 28;
pub const PJRT_Buffer_Type_INVALID: u32 = 0;
pub const PJRT_Buffer_Type_PRED: u32 = 1;
pub const PJRT_Buffer_Type_S1: u32 = 30;
pub const PJRT_Buffer_Type_S16: u32 = 3;
pub const PJRT_Buffer_Type_S2: u32 = 24;
pub const PJRT_Buffer_Type_S32: u32 = 4;
pub const PJRT_Buffer_Type_S4: u32 = 21;
pub const PJRT_Buffer_Type_S64: u32 = 5;
pub const PJRT_Buffer_Type_S8: u32 = 2;
pub const PJRT_Buffer_Type_TOKEN: u32 = 23;
pub const PJRT_Buffer_Type_U1: u32 = 31;
pub const PJRT_Buffer_Type_U16: u32 = 7;
pub const PJRT_Buffer_Type_U2: u32 = 25;
pub const PJRT_Buffer_Type_U32: u32 = 8;
pub const PJRT_Buffer_Type_U4: u32 = 22;
pub const PJRT_Buffer_Type_U64: u32 = 9;
pub const PJRT_Buffer_Type_U8: u32 = 6;
pub const PJRT_COLLECTIVES_COLLECTIVE_OP_KIND_CROSS_MODULE: u32 = 0;
pub const PJRT_COLLECTIVES_COLLECTIVE_OP_KIND_CROSS_REPLICA: u32 = 1;
pub const PJRT_COLLECTIVES_REDUCTION_MAX: u32 = 3;
pub const PJRT_COLLECTIVES_REDUCTION_MIN: u32 = 2;
pub const PJRT_COLLECTIVES_REDUCTION_PRODUCT: u32 = 1;
pub const PJRT_COLLECTIVES_REDUCTION_SUM: u32 = 0;
pub const PJRT_Error_Code_ABORTED: u32 = 10;
pub const PJRT_Error_Code_ALREADY_EXISTS: u32 = 6;
pub const PJRT_Error_Code_CANCELLED: u32 = 1;
pub const PJRT_Error_Code_DATA_LOSS: u32 = 15;
pub const PJRT_Error_Code_DEADLINE_EXCEEDED: u32 = 4;
pub const PJRT_Error_Code_FAILED_PRECONDITION: u32 = 9;
pub const PJRT_Error_Code_INTERNAL: u32 = 13;
pub const PJRT_Error_Code_INVALID_ARGUMENT: u32 = 3;
pub const PJRT_Error_Code_NOT_FOUND: u32 = 5;
pub const PJRT_Error_Code_OK: u32 = 0;
pub const PJRT_Error_Code_OUT_OF_RANGE: u32 = 11;
pub const PJRT_Error_Code_PERMISSION_DENIED: u32 = 7;
pub const PJRT_Error_Code_RESOURCE_EXHAUSTED: u32 = 8;
pub const PJRT_Error_Code_UNAUTHENTICATED: u32 = 16;
pub const PJRT_Error_Code_UNAVAILABLE: u32 = 14;
pub const PJRT_Error_Code_UNIMPLEMENTED: u32 = 12;
pub const PJRT_Error_Code_UNKNOWN: u32 = 2;
pub const PJRT_Extension_Type_AbiVersion: u32 = 20;
pub const PJRT_Extension_Type_Callback: u32 = 14;
pub const PJRT_Extension_Type_Collectives: u32 = 21;
pub const PJRT_Extension_Type_CrossHostTransfers: u32 = 12;
pub const PJRT_Extension_Type_Custom_Partitioner: u32 = 2;
pub const PJRT_Extension_Type_Example: u32 = 10;
pub const PJRT_Extension_Type_ExecutableMetadata: u32 = 13;
pub const PJRT_Extension_Type_FFI: u32 = 5;
pub const PJRT_Extension_Type_Gpu_Custom_Call: u32 = 0;
pub const PJRT_Extension_Type_HostAllocator: u32 = 15;
pub const PJRT_Extension_Type_HostMemoryAllocator: u32 = 23;
pub const PJRT_Extension_Type_Layouts: u32 = 4;
pub const PJRT_Extension_Type_Megascale: u32 = 18;
pub const PJRT_Extension_Type_MemoryDescriptions: u32 = 6;
pub const PJRT_Extension_Type_MultiSlice: u32 = 22;
pub const PJRT_Extension_Type_PhaseCompile: u32 = 9;
pub const PJRT_Extension_Type_Profiler: u32 = 1;
pub const PJRT_Extension_Type_RawBuffer: u32 = 8;
pub const PJRT_Extension_Type_Shardings: u32 = 19;
pub const PJRT_Extension_Type_Stream: u32 = 3;
pub const PJRT_Extension_Type_TpuExecutable: u32 = 17;
pub const PJRT_Extension_Type_TpuTopology: u32 = 16;
pub const PJRT_Extension_Type_Triton: u32 = 7;
pub const PJRT_Extension_Type_Unknown: u32 = 11;
pub const PJRT_Extension_Type_XlaTransform: u32 = 24;
pub const PJRT_HostBufferSemantics_kImmutableOnlyDuringCall: u32 = 0;
pub const PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes: u32 = 1;
pub const PJRT_HostBufferSemantics_kImmutableZeroCopy: u32 = 2;
pub const PJRT_HostBufferSemantics_kMutableZeroCopy: u32 = 3;
pub const PJRT_NamedValue_kBool: u32 = 4;
pub const PJRT_NamedValue_kFloat: u32 = 3;
pub const PJRT_NamedValue_kInt64: u32 = 1;
pub const PJRT_NamedValue_kInt64List: u32 = 2;
pub const PJRT_NamedValue_kString: u32 = 0;
pub const PJRT_ProcessState_kConnected: u32 = 3;
pub const PJRT_ProcessState_kDisconnected: u32 = 2;
pub const PJRT_ProcessState_kError: u32 = 4;
pub const PJRT_ProcessState_kUninitialized: u32 = 1;
pub const PJRT_ProcessState_kUnspecified: u32 = 0;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Api_Version {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub major_version: i32,
    pub minor_version: i32,
}

const _: () = assert!(size_of::<PJRT_Api_Version>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Api_Version {
    const NAME: &'static str = "PJRT_Api_Version";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub transfer_metadata: *mut c_void,
    pub num_metadata: usize,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_count: usize,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_index: i32,
    pub buffer_size: usize,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub device_out: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_Device_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_Device_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_Device_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_index: i32,
    pub buffer_out: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_index: i32,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_index: i32,
    pub data: *mut c_void,
    pub offset: i64,
    pub transfer_size: i64,
    pub is_last_transfer: u8,
    pub done_with_h2d_transfer: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>() == 72);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_TransferData_Args";
    const SIZE: usize = 72;
    const LEAST: usize = 72;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub transfer_manager: *mut c_void,
    pub buffer_index: i32,
    pub data: *mut c_void,
    pub shape_dims: In<i64>,
    pub shape_num_dims: usize,
    pub shape_element_type: u32,
    pub shape_layout: *mut c_void,
    pub done_with_h2d_transfer: *mut c_void,
}

const _: () =
    assert!(size_of::<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args";
    const SIZE: usize = 80;
    const LEAST: usize = 80;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_AsyncTrackingEvent_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_AsyncTrackingEvent_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_AsyncTrackingEvent_Destroy_Args {
    const NAME: &'static str = "PJRT_AsyncTrackingEvent_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Bitcast_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub element_type: u32,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub device_layout: In<PJRT_Buffer_MemoryLayout>,
    pub out_buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_Bitcast_Args>() == 64);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Bitcast_Args {
    const NAME: &'static str = "PJRT_Buffer_Bitcast_Args";
    const SIZE: usize = 64;
    const LEAST: usize = 64;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_CopyRawToHostFuture_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub offset: i64,
    pub transfer_size: i64,
    pub event: Out<PJRT_Event>,
    pub callback_data: *mut c_void,
    pub future_ready_callback: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Buffer_CopyRawToHostFuture_Args>() == 64);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_CopyRawToHostFuture_Args {
    const NAME: &'static str = "PJRT_Buffer_CopyRawToHostFuture_Args";
    const SIZE: usize = 64;
    const LEAST: usize = 64;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
    pub struct_size: usize,
    pub callback_data: *mut c_void,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
    pub dst: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Buffer_CopyRawToHostFuture_Callback_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
    const NAME: &'static str = "PJRT_Buffer_CopyRawToHostFuture_Callback_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_CopyRawToHost_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub dst: *mut c_void,
    pub offset: i64,
    pub transfer_size: i64,
    pub event: Out<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Buffer_CopyRawToHost_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_CopyRawToHost_Args {
    const NAME: &'static str = "PJRT_Buffer_CopyRawToHost_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_CopyToDevice_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub dst_device: In<PJRT_Device>,
    pub dst_buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_CopyToDevice_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_CopyToDevice_Args {
    const NAME: &'static str = "PJRT_Buffer_CopyToDevice_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_CopyToMemory_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub dst_memory: In<PJRT_Memory>,
    pub dst_buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_CopyToMemory_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_CopyToMemory_Args {
    const NAME: &'static str = "PJRT_Buffer_CopyToMemory_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_DecreaseExternalReferenceCount_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_DecreaseExternalReferenceCount_Args {
    const NAME: &'static str = "PJRT_Buffer_DecreaseExternalReferenceCount_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Delete_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_Delete_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Delete_Args {
    const NAME: &'static str = "PJRT_Buffer_Delete_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Destroy_Args {
    const NAME: &'static str = "PJRT_Buffer_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Device_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub device: Out<PJRT_Device>,
}

const _: () = assert!(size_of::<PJRT_Buffer_Device_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Device_Args {
    const NAME: &'static str = "PJRT_Buffer_Device_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Dimensions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub dims: Out<i64>,
    pub num_dims: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_Dimensions_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Dimensions_Args {
    const NAME: &'static str = "PJRT_Buffer_Dimensions_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_DonateWithControlDependency_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub callback_data: *mut c_void,
    pub dependency_ready_callback: *mut c_void,
    pub out_buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_DonateWithControlDependency_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_DonateWithControlDependency_Args {
    const NAME: &'static str = "PJRT_Buffer_DonateWithControlDependency_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
    pub struct_size: usize,
    pub callback_data: *mut c_void,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_DonateWithControlDependency_Callback_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_DonateWithControlDependency_Callback_Args {
    const NAME: &'static str = "PJRT_Buffer_DonateWithControlDependency_Callback_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_DynamicDimensionIndices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub dynamic_dim_indices: Out<usize>,
    pub num_dynamic_dims: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_DynamicDimensionIndices_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_DynamicDimensionIndices_Args {
    const NAME: &'static str = "PJRT_Buffer_DynamicDimensionIndices_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_ElementType_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub type_: u32,
}

const _: () = assert!(size_of::<PJRT_Buffer_ElementType_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_ElementType_Args {
    const NAME: &'static str = "PJRT_Buffer_ElementType_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_GetMemoryLayout_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub layout: PJRT_Buffer_MemoryLayout,
}

const _: () = assert!(size_of::<PJRT_Buffer_GetMemoryLayout_Args>() == 104);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_GetMemoryLayout_Args {
    const NAME: &'static str = "PJRT_Buffer_GetMemoryLayout_Args";
    const SIZE: usize = 104;
    const LEAST: usize = 104;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Buffer_IncreaseExternalReferenceCount_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_IncreaseExternalReferenceCount_Args {
    const NAME: &'static str = "PJRT_Buffer_IncreaseExternalReferenceCount_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_IsDeleted_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub is_deleted: u8,
}

const _: () = assert!(size_of::<PJRT_Buffer_IsDeleted_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_IsDeleted_Args {
    const NAME: &'static str = "PJRT_Buffer_IsDeleted_Args";
    const SIZE: usize = 25;
    const LEAST: usize = 25;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_IsOnCpu_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub is_on_cpu: u8,
}

const _: () = assert!(size_of::<PJRT_Buffer_IsOnCpu_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_IsOnCpu_Args {
    const NAME: &'static str = "PJRT_Buffer_IsOnCpu_Args";
    const SIZE: usize = 25;
    const LEAST: usize = 25;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub value: PJRT_Buffer_MemoryLayout_Value,
    pub type_: u32,
}

const _: () = assert!(size_of::<PJRT_Buffer_MemoryLayout>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_MemoryLayout {
    const NAME: &'static str = "PJRT_Buffer_MemoryLayout";
    const SIZE: usize = 76;
    const LEAST: usize = 76;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout_Strides {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub byte_strides: In<i64>,
    pub num_byte_strides: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_MemoryLayout_Strides>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_MemoryLayout_Strides {
    const NAME: &'static str = "PJRT_Buffer_MemoryLayout_Strides";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout_Tiled {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub minor_to_major: In<i64>,
    pub minor_to_major_size: usize,
    pub tile_dims: *mut c_void,
    pub tile_dim_sizes: *mut c_void,
    pub num_tiles: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_MemoryLayout_Tiled>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_MemoryLayout_Tiled {
    const NAME: &'static str = "PJRT_Buffer_MemoryLayout_Tiled";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Memory_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub memory: Out<PJRT_Memory>,
}

const _: () = assert!(size_of::<PJRT_Buffer_Memory_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_Memory_Args {
    const NAME: &'static str = "PJRT_Buffer_Memory_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub on_device_size_in_bytes: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_OnDeviceSizeInBytes_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_OnDeviceSizeInBytes_Args {
    const NAME: &'static str = "PJRT_Buffer_OnDeviceSizeInBytes_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub device_memory_ptr: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
    const NAME: &'static str = "PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_ReadyEvent_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub event: Out<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Buffer_ReadyEvent_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_ReadyEvent_Args {
    const NAME: &'static str = "PJRT_Buffer_ReadyEvent_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_ToHostBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub src: In<PJRT_Buffer>,
    pub host_layout: In<PJRT_Buffer_MemoryLayout>,
    pub dst: *mut c_void,
    pub dst_size: usize,
    pub event: Out<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Buffer_ToHostBuffer_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_ToHostBuffer_Args {
    const NAME: &'static str = "PJRT_Buffer_ToHostBuffer_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_UnpaddedDimensions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub unpadded_dims: Out<i64>,
    pub num_dims: usize,
}

const _: () = assert!(size_of::<PJRT_Buffer_UnpaddedDimensions_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_UnpaddedDimensions_Args {
    const NAME: &'static str = "PJRT_Buffer_UnpaddedDimensions_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_UnsafePointer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub buffer_pointer: u64,
}

const _: () = assert!(size_of::<PJRT_Buffer_UnsafePointer_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Buffer_UnsafePointer_Args {
    const NAME: &'static str = "PJRT_Buffer_UnsafePointer_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Chunk {
    pub data: *mut c_void,
    pub size: usize,
    pub deleter: *mut c_void,
    pub deleter_arg: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Chunk>() == 32);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_AddressableDevices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub addressable_devices: Out<Out<PJRT_Device>>,
    pub num_addressable_devices: usize,
}

const _: () = assert!(size_of::<PJRT_Client_AddressableDevices_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_AddressableDevices_Args {
    const NAME: &'static str = "PJRT_Client_AddressableDevices_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_AddressableMemories_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub addressable_memories: Out<Out<PJRT_Memory>>,
    pub num_addressable_memories: usize,
}

const _: () = assert!(size_of::<PJRT_Client_AddressableMemories_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_AddressableMemories_Args {
    const NAME: &'static str = "PJRT_Client_AddressableMemories_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_BufferFromHostBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub data: *mut c_void,
    pub type_: u32,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub byte_strides: In<i64>,
    pub num_byte_strides: usize,
    pub host_buffer_semantics: u32,
    pub device: In<PJRT_Device>,
    pub memory: In<PJRT_Memory>,
    pub device_layout: In<PJRT_Buffer_MemoryLayout>,
    pub done_with_host_buffer: Out<PJRT_Event>,
    pub buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Client_BufferFromHostBuffer_Args>() == 120);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_BufferFromHostBuffer_Args {
    const NAME: &'static str = "PJRT_Client_BufferFromHostBuffer_Args";
    const SIZE: usize = 120;
    const LEAST: usize = 120;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Compile_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub program: In<PJRT_Program>,
    pub compile_options: In<u8>,
    pub compile_options_size: usize,
    pub executable: Out<PJRT_LoadedExecutable>,
}

const _: () = assert!(size_of::<PJRT_Client_Compile_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_Compile_Args {
    const NAME: &'static str = "PJRT_Client_Compile_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_CreateAliasBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub memory: In<PJRT_Memory>,
    pub shape_dims: In<i64>,
    pub shape_num_dims: usize,
    pub shape_element_type: u32,
    pub shape_layout: *mut c_void,
    pub alias_buffer: *mut c_void,
    pub fulfill_alias_buffer_cb: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Client_CreateAliasBuffer_Args>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_CreateAliasBuffer_Args {
    const NAME: &'static str = "PJRT_Client_CreateAliasBuffer_Args";
    const SIZE: usize = 80;
    const LEAST: usize = 80;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub shape_specs: *mut c_void,
    pub num_shape_specs: usize,
    pub device_layouts: *mut c_void,
    pub num_device_layouts: usize,
    pub memory: In<PJRT_Memory>,
    pub transfer_manager: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>() == 72);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
    const NAME: &'static str = "PJRT_Client_CreateBuffersForAsyncHostToDevice_Args";
    const SIZE: usize = 72;
    const LEAST: usize = 72;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_CreateErrorBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
    pub shape_dims: In<i64>,
    pub shape_num_dims: usize,
    pub shape_element_type: u32,
    pub shape_layout: *mut c_void,
    pub memory: In<PJRT_Memory>,
    pub buffer: Out<PJRT_Buffer>,
    pub payload: *mut c_void,
    pub num_payload: usize,
}

const _: () = assert!(size_of::<PJRT_Client_CreateErrorBuffer_Args>() == 112);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_CreateErrorBuffer_Args {
    const NAME: &'static str = "PJRT_Client_CreateErrorBuffer_Args";
    const SIZE: usize = 112;
    const LEAST: usize = offset_of!(PJRT_Client_CreateErrorBuffer_Args, payload);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_CreateUninitializedBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub shape_dims: In<i64>,
    pub shape_num_dims: usize,
    pub shape_element_type: u32,
    pub shape_layout: *mut c_void,
    pub device: In<PJRT_Device>,
    pub memory: In<PJRT_Memory>,
    pub buffer: Out<PJRT_Buffer>,
}

const _: () = assert!(size_of::<PJRT_Client_CreateUninitializedBuffer_Args>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_CreateUninitializedBuffer_Args {
    const NAME: &'static str = "PJRT_Client_CreateUninitializedBuffer_Args";
    const SIZE: usize = 80;
    const LEAST: usize = 80;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub device_buffer_ptr: *mut c_void,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub element_type: u32,
    pub layout: *mut c_void,
    pub device: In<PJRT_Device>,
    pub on_delete_callback: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub on_delete_callback_arg: *mut c_void,
    pub stream: i64,
    pub buffer: Out<PJRT_Buffer>,
    pub memory: In<PJRT_Memory>,
}

const _: () = assert!(size_of::<PJRT_Client_CreateViewOfDeviceBuffer_Args>() == 112);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_CreateViewOfDeviceBuffer_Args {
    const NAME: &'static str = "PJRT_Client_CreateViewOfDeviceBuffer_Args";
    const SIZE: usize = 112;
    const LEAST: usize = 112;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub create_options: In<PJRT_NamedValue>,
    pub num_options: usize,
    pub kv_get_callback: Option<Function<PJRT_KeyValueGetCallback_Args>>,
    pub kv_get_user_arg: *mut c_void,
    pub kv_put_callback: Option<Function<PJRT_KeyValuePutCallback_Args>>,
    pub kv_put_user_arg: *mut c_void,
    pub client: Out<PJRT_Client>,
    pub kv_try_get_callback: *mut c_void,
    pub kv_try_get_user_arg: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Client_Create_Args>() == 88);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_Create_Args {
    const NAME: &'static str = "PJRT_Client_Create_Args";
    const SIZE: usize = 88;
    const LEAST: usize = offset_of!(PJRT_Client_Create_Args, kv_try_get_callback);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_DefaultDeviceAssignment_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub num_replicas: i32,
    pub num_partitions: i32,
    pub default_assignment_size: usize,
    pub default_assignment: *mut i32,
}

const _: () = assert!(size_of::<PJRT_Client_DefaultDeviceAssignment_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_DefaultDeviceAssignment_Args {
    const NAME: &'static str = "PJRT_Client_DefaultDeviceAssignment_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
}

const _: () = assert!(size_of::<PJRT_Client_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_Destroy_Args {
    const NAME: &'static str = "PJRT_Client_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Devices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub devices: Out<Out<PJRT_Device>>,
    pub num_devices: usize,
}

const _: () = assert!(size_of::<PJRT_Client_Devices_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_Devices_Args {
    const NAME: &'static str = "PJRT_Client_Devices_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_DmaMap_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub data: *mut c_void,
    pub size: usize,
}

const _: () = assert!(size_of::<PJRT_Client_DmaMap_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_DmaMap_Args {
    const NAME: &'static str = "PJRT_Client_DmaMap_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_DmaUnmap_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub data: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Client_DmaUnmap_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_DmaUnmap_Args {
    const NAME: &'static str = "PJRT_Client_DmaUnmap_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_FulfillAliasBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub buffer: In<PJRT_Buffer>,
    pub status_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
    pub fulfill_alias_buffer_cb: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Client_FulfillAliasBuffer_Args>() == 64);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_FulfillAliasBuffer_Args {
    const NAME: &'static str = "PJRT_Client_FulfillAliasBuffer_Args";
    const SIZE: usize = 64;
    const LEAST: usize = 64;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Load_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub executable: In<PJRT_Executable>,
    pub compile_options: In<u8>,
    pub compile_options_size: usize,
    pub loaded_executable: Out<PJRT_LoadedExecutable>,
}

const _: () = assert!(size_of::<PJRT_Client_Load_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_Load_Args {
    const NAME: &'static str = "PJRT_Client_Load_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_LookupAddressableDevice_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub local_hardware_id: i32,
    pub addressable_device: Out<PJRT_Device>,
}

const _: () = assert!(size_of::<PJRT_Client_LookupAddressableDevice_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_LookupAddressableDevice_Args {
    const NAME: &'static str = "PJRT_Client_LookupAddressableDevice_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_LookupDevice_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub id: i32,
    pub device: Out<PJRT_Device>,
}

const _: () = assert!(size_of::<PJRT_Client_LookupDevice_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_LookupDevice_Args {
    const NAME: &'static str = "PJRT_Client_LookupDevice_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_PlatformName_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub platform_name: Out<u8>,
    pub platform_name_size: usize,
}

const _: () = assert!(size_of::<PJRT_Client_PlatformName_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_PlatformName_Args {
    const NAME: &'static str = "PJRT_Client_PlatformName_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_PlatformVersion_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub platform_version: Out<u8>,
    pub platform_version_size: usize,
}

const _: () = assert!(size_of::<PJRT_Client_PlatformVersion_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_PlatformVersion_Args {
    const NAME: &'static str = "PJRT_Client_PlatformVersion_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_ProcessIndex_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub process_index: i32,
}

const _: () = assert!(size_of::<PJRT_Client_ProcessIndex_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_ProcessIndex_Args {
    const NAME: &'static str = "PJRT_Client_ProcessIndex_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_TopologyDescription_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub topology: Out<PJRT_TopologyDescription>,
}

const _: () = assert!(size_of::<PJRT_Client_TopologyDescription_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_TopologyDescription_Args {
    const NAME: &'static str = "PJRT_Client_TopologyDescription_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_UpdateGlobalProcessInfo_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub process_infos: *mut c_void,
    pub num_process_infos: usize,
}

const _: () = assert!(size_of::<PJRT_Client_UpdateGlobalProcessInfo_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Client_UpdateGlobalProcessInfo_Args {
    const NAME: &'static str = "PJRT_Client_UpdateGlobalProcessInfo_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Compile_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub program: In<PJRT_Program>,
    pub compile_options: In<u8>,
    pub compile_options_size: usize,
    pub client: In<PJRT_Client>,
    pub executable: Out<PJRT_Executable>,
}

const _: () = assert!(size_of::<PJRT_Compile_Args>() == 64);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Compile_Args {
    const NAME: &'static str = "PJRT_Compile_Args";
    const SIZE: usize = 64;
    const LEAST: usize = 64;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_CopyToDeviceStream_AddChunk_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub stream: *mut c_void,
    pub chunk: *mut c_void,
    pub transfer_complete: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_CopyToDeviceStream_AddChunk_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_CopyToDeviceStream_AddChunk_Args {
    const NAME: &'static str = "PJRT_CopyToDeviceStream_AddChunk_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub stream: *mut c_void,
    pub current_bytes: i64,
}

const _: () = assert!(size_of::<PJRT_CopyToDeviceStream_CurrentBytes_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_CopyToDeviceStream_CurrentBytes_Args {
    const NAME: &'static str = "PJRT_CopyToDeviceStream_CurrentBytes_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_CopyToDeviceStream_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub stream: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_CopyToDeviceStream_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_CopyToDeviceStream_Destroy_Args {
    const NAME: &'static str = "PJRT_CopyToDeviceStream_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_CopyToDeviceStream_GranuleSize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub stream: *mut c_void,
    pub granule_size_in_bytes: i64,
}

const _: () = assert!(size_of::<PJRT_CopyToDeviceStream_GranuleSize_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_CopyToDeviceStream_GranuleSize_Args {
    const NAME: &'static str = "PJRT_CopyToDeviceStream_GranuleSize_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_CopyToDeviceStream_TotalBytes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub stream: *mut c_void,
    pub total_bytes: i64,
}

const _: () = assert!(size_of::<PJRT_CopyToDeviceStream_TotalBytes_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_CopyToDeviceStream_TotalBytes_Args {
    const NAME: &'static str = "PJRT_CopyToDeviceStream_TotalBytes_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_Attributes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub num_attributes: usize,
    pub attributes: Out<PJRT_NamedValue>,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_Attributes_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_Attributes_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_Attributes_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_DebugString_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub debug_string: Out<u8>,
    pub debug_string_size: usize,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_DebugString_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_DebugString_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_DebugString_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_Id_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub id: i32,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_Id_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_Id_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_Id_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_Kind_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub device_kind: Out<u8>,
    pub device_kind_size: usize,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_Kind_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_Kind_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_Kind_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_ProcessIndex_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub process_index: i32,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_ProcessIndex_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_ProcessIndex_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_ProcessIndex_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_ToString_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: In<PJRT_DeviceDescription>,
    pub to_string: Out<u8>,
    pub to_string_size: usize,
}

const _: () = assert!(size_of::<PJRT_DeviceDescription_ToString_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_DeviceDescription_ToString_Args {
    const NAME: &'static str = "PJRT_DeviceDescription_ToString_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_AddressableMemories_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub memories: Out<Out<PJRT_Memory>>,
    pub num_memories: usize,
}

const _: () = assert!(size_of::<PJRT_Device_AddressableMemories_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_AddressableMemories_Args {
    const NAME: &'static str = "PJRT_Device_AddressableMemories_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_ClearMemoryStats_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
}

const _: () = assert!(size_of::<PJRT_Device_ClearMemoryStats_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_ClearMemoryStats_Args {
    const NAME: &'static str = "PJRT_Device_ClearMemoryStats_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_CreateAsyncTrackingEvent_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub description: *mut c_void,
    pub description_size: usize,
    pub event: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Device_CreateAsyncTrackingEvent_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_CreateAsyncTrackingEvent_Args {
    const NAME: &'static str = "PJRT_Device_CreateAsyncTrackingEvent_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_DefaultMemory_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub memory: Out<PJRT_Memory>,
}

const _: () = assert!(size_of::<PJRT_Device_DefaultMemory_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_DefaultMemory_Args {
    const NAME: &'static str = "PJRT_Device_DefaultMemory_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_GetAttributes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub attributes: Out<PJRT_NamedValue>,
    pub num_attributes: usize,
    pub device_attributes: Out<PJRT_Device_Attributes>,
    pub attributes_deleter: Option<unsafe extern "C" fn(*mut PJRT_Device_Attributes)>,
}

const _: () = assert!(size_of::<PJRT_Device_GetAttributes_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_GetAttributes_Args {
    const NAME: &'static str = "PJRT_Device_GetAttributes_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_GetDescription_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub device_description: Out<PJRT_DeviceDescription>,
}

const _: () = assert!(size_of::<PJRT_Device_GetDescription_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_GetDescription_Args {
    const NAME: &'static str = "PJRT_Device_GetDescription_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_IsAddressable_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub is_addressable: u8,
}

const _: () = assert!(size_of::<PJRT_Device_IsAddressable_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_IsAddressable_Args {
    const NAME: &'static str = "PJRT_Device_IsAddressable_Args";
    const SIZE: usize = 25;
    const LEAST: usize = 25;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_LocalHardwareId_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub local_hardware_id: i32,
}

const _: () = assert!(size_of::<PJRT_Device_LocalHardwareId_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_LocalHardwareId_Args {
    const NAME: &'static str = "PJRT_Device_LocalHardwareId_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_MemoryStats_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub bytes_in_use: i64,
    pub peak_bytes_in_use: i64,
    pub peak_bytes_in_use_is_set: u8,
    pub num_allocs: i64,
    pub num_allocs_is_set: u8,
    pub largest_alloc_size: i64,
    pub largest_alloc_size_is_set: u8,
    pub bytes_limit: i64,
    pub bytes_limit_is_set: u8,
    pub bytes_reserved: i64,
    pub bytes_reserved_is_set: u8,
    pub peak_bytes_reserved: i64,
    pub peak_bytes_reserved_is_set: u8,
    pub bytes_reservable_limit: i64,
    pub bytes_reservable_limit_is_set: u8,
    pub largest_free_block_bytes: i64,
    pub largest_free_block_bytes_is_set: u8,
    pub pool_bytes: i64,
    pub pool_bytes_is_set: u8,
    pub peak_pool_bytes: i64,
    pub peak_pool_bytes_is_set: u8,
    pub peak_allocated_bytes: i64,
    pub peak_allocated_bytes_is_set: u8,
}

const _: () = assert!(size_of::<PJRT_Device_MemoryStats_Args>() == 208);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_MemoryStats_Args {
    const NAME: &'static str = "PJRT_Device_MemoryStats_Args";
    const SIZE: usize = 201;
    const LEAST: usize = offset_of!(PJRT_Device_MemoryStats_Args, pool_bytes);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_PoisonExecution_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: In<PJRT_Device>,
    pub launch_id: i32,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
    pub poisoned: u8,
    pub payload: *mut c_void,
    pub num_payload: usize,
}

const _: () = assert!(size_of::<PJRT_Device_PoisonExecution_Args>() == 72);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Device_PoisonExecution_Args {
    const NAME: &'static str = "PJRT_Device_PoisonExecution_Args";
    const SIZE: usize = 72;
    const LEAST: usize = offset_of!(PJRT_Device_PoisonExecution_Args, payload);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: In<PJRT_Error>,
}

const _: () = assert!(size_of::<PJRT_Error_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Error_Destroy_Args {
    const NAME: &'static str = "PJRT_Error_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_ForEachPayload_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: In<PJRT_Error>,
    pub visitor: *mut c_void,
    pub user_arg: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Error_ForEachPayload_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Error_ForEachPayload_Args {
    const NAME: &'static str = "PJRT_Error_ForEachPayload_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_GetCode_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: In<PJRT_Error>,
    pub code: u32,
}

const _: () = assert!(size_of::<PJRT_Error_GetCode_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Error_GetCode_Args {
    const NAME: &'static str = "PJRT_Error_GetCode_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_Message_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: In<PJRT_Error>,
    pub message: Out<u8>,
    pub message_size: usize,
}

const _: () = assert!(size_of::<PJRT_Error_Message_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Error_Message_Args {
    const NAME: &'static str = "PJRT_Error_Message_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Await_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Event_Await_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_Await_Args {
    const NAME: &'static str = "PJRT_Event_Await_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: Out<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Event_Create_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_Create_Args {
    const NAME: &'static str = "PJRT_Event_Create_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Event_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_Destroy_Args {
    const NAME: &'static str = "PJRT_Event_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Error_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
}

const _: () = assert!(size_of::<PJRT_Event_Error_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_Error_Args {
    const NAME: &'static str = "PJRT_Event_Error_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_IsReady_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
    pub is_ready: u8,
}

const _: () = assert!(size_of::<PJRT_Event_IsReady_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_IsReady_Args {
    const NAME: &'static str = "PJRT_Event_IsReady_Args";
    const SIZE: usize = 25;
    const LEAST: usize = 25;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_OnReady_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
    pub callback: Option<unsafe extern "C" fn(Out<PJRT_Error>, *mut c_void)>,
    pub user_arg: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Event_OnReady_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_OnReady_Args {
    const NAME: &'static str = "PJRT_Event_OnReady_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Set_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: In<PJRT_Event>,
    pub error_code: u32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
}

const _: () = assert!(size_of::<PJRT_Event_Set_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Event_Set_Args {
    const NAME: &'static str = "PJRT_Event_Set_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_DeserializeAndLoad_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub serialized_executable: In<u8>,
    pub serialized_executable_size: usize,
    pub loaded_executable: Out<PJRT_LoadedExecutable>,
    pub overridden_serialized_compile_options: In<u8>,
    pub overridden_serialized_compile_options_size: usize,
    pub load_options: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_Executable_DeserializeAndLoad_Args>() == 72);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_DeserializeAndLoad_Args {
    const NAME: &'static str = "PJRT_Executable_DeserializeAndLoad_Args";
    const SIZE: usize = 72;
    const LEAST: usize =
        offset_of!(PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
}

const _: () = assert!(size_of::<PJRT_Executable_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_Destroy_Args {
    const NAME: &'static str = "PJRT_Executable_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Fingerprint_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub executable_fingerprint: Out<u8>,
    pub executable_fingerprint_size: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_Fingerprint_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_Fingerprint_Args {
    const NAME: &'static str = "PJRT_Executable_Fingerprint_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_GetCompileOptions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub serialized_bytes: Out<u8>,
    pub serialized_bytes_size: usize,
    pub serialized_compile_options: Out<PJRT_Bytes>,
    pub serialized_compile_options_deleter: Option<unsafe extern "C" fn(*mut PJRT_Bytes)>,
}

const _: () = assert!(size_of::<PJRT_Executable_GetCompileOptions_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_GetCompileOptions_Args {
    const NAME: &'static str = "PJRT_Executable_GetCompileOptions_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_GetCompiledMemoryStats_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub generated_code_size_in_bytes: i64,
    pub argument_size_in_bytes: i64,
    pub output_size_in_bytes: i64,
    pub alias_size_in_bytes: i64,
    pub temp_size_in_bytes: i64,
    pub host_generated_code_size_in_bytes: i64,
    pub host_argument_size_in_bytes: i64,
    pub host_output_size_in_bytes: i64,
    pub host_alias_size_in_bytes: i64,
    pub host_temp_size_in_bytes: i64,
    pub peak_memory_in_bytes: i64,
    pub total_size_in_bytes: i64,
    pub total_allocation_bytes: i64,
    pub indefinite_allocations: i64,
    pub peak_unpadded_heap_bytes: i64,
}

const _: () = assert!(size_of::<PJRT_Executable_GetCompiledMemoryStats_Args>() == 144);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_GetCompiledMemoryStats_Args {
    const NAME: &'static str = "PJRT_Executable_GetCompiledMemoryStats_Args";
    const SIZE: usize = 144;
    const LEAST: usize =
        offset_of!(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_GetCostAnalysis_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_properties: usize,
    pub properties: Out<PJRT_NamedValue>,
}

const _: () = assert!(size_of::<PJRT_Executable_GetCostAnalysis_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_GetCostAnalysis_Args {
    const NAME: &'static str = "PJRT_Executable_GetCostAnalysis_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Name_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub executable_name: Out<u8>,
    pub executable_name_size: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_Name_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_Name_Args {
    const NAME: &'static str = "PJRT_Executable_Name_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_NumOutputs_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_outputs: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_NumOutputs_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_NumOutputs_Args {
    const NAME: &'static str = "PJRT_Executable_NumOutputs_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_NumPartitions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_partitions: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_NumPartitions_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_NumPartitions_Args {
    const NAME: &'static str = "PJRT_Executable_NumPartitions_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_NumReplicas_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_replicas: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_NumReplicas_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_NumReplicas_Args {
    const NAME: &'static str = "PJRT_Executable_NumReplicas_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OptimizedProgram_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub program: *mut PJRT_Program,
}

const _: () = assert!(size_of::<PJRT_Executable_OptimizedProgram_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_OptimizedProgram_Args {
    const NAME: &'static str = "PJRT_Executable_OptimizedProgram_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OutputDimensions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_outputs: usize,
    pub dims: Out<i64>,
    pub dim_sizes: Out<usize>,
}

const _: () = assert!(size_of::<PJRT_Executable_OutputDimensions_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_OutputDimensions_Args {
    const NAME: &'static str = "PJRT_Executable_OutputDimensions_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OutputElementTypes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub output_types: Out<u32>,
    pub num_output_types: usize,
}

const _: () = assert!(size_of::<PJRT_Executable_OutputElementTypes_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_OutputElementTypes_Args {
    const NAME: &'static str = "PJRT_Executable_OutputElementTypes_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OutputMemoryKinds_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_outputs: usize,
    pub memory_kinds: Out<Out<u8>>,
    pub memory_kind_sizes: Out<usize>,
}

const _: () = assert!(size_of::<PJRT_Executable_OutputMemoryKinds_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_OutputMemoryKinds_Args {
    const NAME: &'static str = "PJRT_Executable_OutputMemoryKinds_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_ParameterMemoryKinds_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_parameters: usize,
    pub memory_kinds: Out<Out<u8>>,
    pub memory_kind_sizes: Out<usize>,
}

const _: () = assert!(size_of::<PJRT_Executable_ParameterMemoryKinds_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_ParameterMemoryKinds_Args {
    const NAME: &'static str = "PJRT_Executable_ParameterMemoryKinds_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Serialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub serialized_bytes: Out<u8>,
    pub serialized_bytes_size: usize,
    pub serialized_executable: Out<PJRT_Bytes>,
    pub serialized_executable_deleter: Option<unsafe extern "C" fn(*mut PJRT_Bytes)>,
}

const _: () = assert!(size_of::<PJRT_Executable_Serialize_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_Serialize_Args {
    const NAME: &'static str = "PJRT_Executable_Serialize_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub size_in_bytes: i64,
}

const _: () = assert!(size_of::<PJRT_Executable_SizeOfGeneratedCodeInBytes_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
    const NAME: &'static str = "PJRT_Executable_SizeOfGeneratedCodeInBytes_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ExecuteContext_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub context: Out<PJRT_ExecuteContext>,
}

const _: () = assert!(size_of::<PJRT_ExecuteContext_Create_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_ExecuteContext_Create_Args {
    const NAME: &'static str = "PJRT_ExecuteContext_Create_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ExecuteContext_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub context: In<PJRT_ExecuteContext>,
}

const _: () = assert!(size_of::<PJRT_ExecuteContext_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_ExecuteContext_Destroy_Args {
    const NAME: &'static str = "PJRT_ExecuteContext_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ExecuteOptions {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub send_callbacks: *mut c_void,
    pub recv_callbacks: *mut c_void,
    pub num_send_ops: usize,
    pub num_recv_ops: usize,
    pub launch_id: i32,
    pub non_donatable_input_indices: In<i64>,
    pub num_non_donatable_input_indices: usize,
    pub context: *mut c_void,
    pub call_location: *mut c_void,
    pub num_tasks: usize,
    pub task_ids: *mut c_void,
    pub incarnation_ids: *mut c_void,
    pub multi_slice_config: *mut c_void,
    pub use_major_to_minor_data_layout_for_callbacks: u8,
    pub hlo_output_callbacks: *mut c_void,
    pub num_hlo_output_callbacks: usize,
}

const _: () = assert!(size_of::<PJRT_ExecuteOptions>() == 144);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_ExecuteOptions {
    const NAME: &'static str = "PJRT_ExecuteOptions";
    const SIZE: usize = 144;
    const LEAST: usize = offset_of!(PJRT_ExecuteOptions, context);
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Extension_Base {
    pub struct_size: usize,
    pub type_: u32,
    pub next: *mut PJRT_Extension_Base,
}

const _: () = assert!(size_of::<PJRT_Extension_Base>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Extension_Base {
    const NAME: &'static str = "PJRT_Extension_Base";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_HloOutputCallbackInfo {
    pub user_arg: *mut c_void,
    pub callback: *mut c_void,
    pub callback_id: i64,
    pub num_operands: usize,
}

const _: () = assert!(size_of::<PJRT_HloOutputCallbackInfo>() == 32);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValueGetCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: Out<u8>,
    pub key_size: usize,
    pub timeout_in_ms: i32,
    pub callback_error: *const CallbackError,
    pub user_arg: *mut c_void,
    pub value: *mut u8,
    pub value_size: usize,
    pub value_deleter_callback: Option<unsafe extern "C" fn(*mut u8)>,
}

const _: () = assert!(size_of::<PJRT_KeyValueGetCallback_Args>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_KeyValueGetCallback_Args {
    const NAME: &'static str = "PJRT_KeyValueGetCallback_Args";
    const SIZE: usize = 80;
    const LEAST: usize = 80;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValuePutCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: Out<u8>,
    pub key_size: usize,
    pub value: Out<u8>,
    pub value_size: usize,
    pub callback_error: *const CallbackError,
    pub user_arg: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_KeyValuePutCallback_Args>() == 64);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_KeyValuePutCallback_Args {
    const NAME: &'static str = "PJRT_KeyValuePutCallback_Args";
    const SIZE: usize = 64;
    const LEAST: usize = 64;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValueTryGetCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: Out<u8>,
    pub key_size: usize,
    pub callback_error: *const CallbackError,
    pub user_arg: *mut c_void,
    pub value: *mut u8,
    pub value_size: usize,
    pub value_deleter_callback: Option<unsafe extern "C" fn(*mut u8)>,
}

const _: () = assert!(size_of::<PJRT_KeyValueTryGetCallback_Args>() == 72);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_KeyValueTryGetCallback_Args {
    const NAME: &'static str = "PJRT_KeyValueTryGetCallback_Args";
    const SIZE: usize = 72;
    const LEAST: usize = 72;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_Extension {
    pub base: PJRT_Extension_Base,
    pub PJRT_Layouts_MemoryLayout_Destroy: Function<PJRT_Layouts_MemoryLayout_Destroy_Args>,
    pub PJRT_Layouts_MemoryLayout_Serialize: Function<PJRT_Layouts_MemoryLayout_Serialize_Args>,
    pub PJRT_Layouts_PJRT_Client_GetDefaultLayout:
        Function<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>,
    pub PJRT_Layouts_PJRT_Buffer_MemoryLayout: Function<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>,
    pub PJRT_Layouts_PJRT_Topology_GetDefaultLayout:
        Function<PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args>,
    pub PJRT_Layouts_PJRT_Executable_GetOutputLayouts:
        Function<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>,
    pub PJRT_Layouts_PJRT_Executable_GetParameterLayouts:
        Function<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>,
}

const _: () = assert!(size_of::<PJRT_Layouts_Extension>() == 80);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_MemoryLayout_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub layout: In<PJRT_Layouts_MemoryLayout>,
}

const _: () = assert!(size_of::<PJRT_Layouts_MemoryLayout_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_MemoryLayout_Destroy_Args {
    const NAME: &'static str = "PJRT_Layouts_MemoryLayout_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_MemoryLayout_Serialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub layout: In<PJRT_Layouts_MemoryLayout>,
    pub serialized_bytes: Out<u8>,
    pub serialized_bytes_size: usize,
    pub serialized_layout: Out<PJRT_Bytes>,
    pub serialized_layout_deleter: Option<unsafe extern "C" fn(*mut PJRT_Bytes)>,
}

const _: () = assert!(size_of::<PJRT_Layouts_MemoryLayout_Serialize_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_MemoryLayout_Serialize_Args {
    const NAME: &'static str = "PJRT_Layouts_MemoryLayout_Serialize_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: In<PJRT_Buffer>,
    pub layout: Out<PJRT_Layouts_MemoryLayout>,
}

const _: () = assert!(size_of::<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
    const NAME: &'static str = "PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: In<PJRT_Client>,
    pub type_: u32,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub layout: Out<PJRT_Layouts_MemoryLayout>,
}

const _: () = assert!(size_of::<PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
    const NAME: &'static str = "PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_outputs: usize,
    pub layouts: Out<Out<PJRT_Layouts_MemoryLayout>>,
}

const _: () = assert!(size_of::<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
    const NAME: &'static str = "PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_parameters: usize,
    pub layouts: Out<Out<PJRT_Layouts_MemoryLayout>>,
}

const _: () = assert!(size_of::<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
    const NAME: &'static str = "PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology_description: In<PJRT_TopologyDescription>,
    pub type_: u32,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub layout: Out<PJRT_Layouts_MemoryLayout>,
}

const _: () = assert!(size_of::<PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
    const NAME: &'static str = "PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadOptions {
    pub struct_size: usize,
    pub computation_origin: *mut c_void,
    pub computation_origin_size: usize,
    pub multi_slice_config: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_LoadOptions>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadOptions {
    const NAME: &'static str = "PJRT_LoadOptions";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub addressable_device_logical_ids: Out<PJRT_LogicalDeviceIds>,
    pub num_addressable_device_logical_ids: usize,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_AddressableDevices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub addressable_devices: Out<Out<PJRT_Device>>,
    pub num_addressable_devices: usize,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_AddressableDevices_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_AddressableDevices_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_AddressableDevices_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Delete_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_Delete_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_Delete_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_Delete_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_Destroy_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Execute_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub options: In<PJRT_ExecuteOptions>,
    pub argument_lists: In<In<In<PJRT_Buffer>>>,
    pub num_devices: usize,
    pub num_args: usize,
    pub output_lists: In<*mut Out<PJRT_Buffer>>,
    pub device_complete_events: *mut Out<PJRT_Event>,
    pub execute_device: In<PJRT_Device>,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_Execute_Args>() == 80);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_Execute_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_Execute_Args";
    const SIZE: usize = 80;
    const LEAST: usize = 80;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Fingerprint_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub executable_fingerprint: Out<u8>,
    pub executable_fingerprint_size: usize,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_Fingerprint_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_Fingerprint_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_Fingerprint_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub serialized_bytes: Out<u8>,
    pub serialized_bytes_size: usize,
    pub serialized_device_assignment: Out<PJRT_Bytes>,
    pub serialized_device_assignment_deleter: Option<unsafe extern "C" fn(*mut PJRT_Bytes)>,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_GetDeviceAssignment_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_GetDeviceAssignment_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_GetDeviceAssignment_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_GetExecutable_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub loaded_executable: In<PJRT_LoadedExecutable>,
    pub executable: Out<PJRT_Executable>,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_GetExecutable_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_GetExecutable_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_GetExecutable_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_IsDeleted_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_LoadedExecutable>,
    pub is_deleted: u8,
}

const _: () = assert!(size_of::<PJRT_LoadedExecutable_IsDeleted_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_LoadedExecutable_IsDeleted_Args {
    const NAME: &'static str = "PJRT_LoadedExecutable_IsDeleted_Args";
    const SIZE: usize = 25;
    const LEAST: usize = 25;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LogicalDeviceIds {
    pub replica: i32,
    pub partition: i32,
}

const _: () = assert!(size_of::<PJRT_LogicalDeviceIds>() == 8);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_AddressableByDevices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub devices: Out<Out<PJRT_Device>>,
    pub num_devices: usize,
}

const _: () = assert!(size_of::<PJRT_Memory_AddressableByDevices_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_AddressableByDevices_Args {
    const NAME: &'static str = "PJRT_Memory_AddressableByDevices_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_DebugString_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub debug_string: Out<u8>,
    pub debug_string_size: usize,
}

const _: () = assert!(size_of::<PJRT_Memory_DebugString_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_DebugString_Args {
    const NAME: &'static str = "PJRT_Memory_DebugString_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_Id_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub id: i32,
}

const _: () = assert!(size_of::<PJRT_Memory_Id_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_Id_Args {
    const NAME: &'static str = "PJRT_Memory_Id_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_Kind_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub kind: Out<u8>,
    pub kind_size: usize,
}

const _: () = assert!(size_of::<PJRT_Memory_Kind_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_Kind_Args {
    const NAME: &'static str = "PJRT_Memory_Kind_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_Kind_Id_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub kind_id: i32,
}

const _: () = assert!(size_of::<PJRT_Memory_Kind_Id_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_Kind_Id_Args {
    const NAME: &'static str = "PJRT_Memory_Kind_Id_Args";
    const SIZE: usize = 28;
    const LEAST: usize = 28;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Memory_ToString_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub memory: In<PJRT_Memory>,
    pub to_string: Out<u8>,
    pub to_string_size: usize,
}

const _: () = assert!(size_of::<PJRT_Memory_ToString_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Memory_ToString_Args {
    const NAME: &'static str = "PJRT_Memory_ToString_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_NamedValue {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub name: *mut c_void,
    pub name_size: usize,
    pub type_: u32,
    pub value: PJRT_NamedValue_Value,
    pub value_size: usize,
}

const _: () = assert!(size_of::<PJRT_NamedValue>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_NamedValue {
    const NAME: &'static str = "PJRT_NamedValue";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Plugin_Attributes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub attributes: Out<PJRT_NamedValue>,
    pub num_attributes: usize,
}

const _: () = assert!(size_of::<PJRT_Plugin_Attributes_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Plugin_Attributes_Args {
    const NAME: &'static str = "PJRT_Plugin_Attributes_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Plugin_Initialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
}

const _: () = assert!(size_of::<PJRT_Plugin_Initialize_Args>() == 16);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Plugin_Initialize_Args {
    const NAME: &'static str = "PJRT_Plugin_Initialize_Args";
    const SIZE: usize = 16;
    const LEAST: usize = 16;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ProcessInfo {
    pub struct_size: usize,
    pub task_id: i32,
    pub incarnation_id: u64,
    pub state: u32,
    pub error_code: i32,
    pub error_message: In<u8>,
    pub error_message_size: usize,
}

const _: () = assert!(size_of::<PJRT_ProcessInfo>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_ProcessInfo {
    const NAME: &'static str = "PJRT_ProcessInfo";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Program {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub code: *mut c_void,
    pub code_size: usize,
    pub format: *mut c_void,
    pub format_size: usize,
}

const _: () = assert!(size_of::<PJRT_Program>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Program {
    const NAME: &'static str = "PJRT_Program";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_RecvCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub recv_callback: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_RecvCallbackInfo>() == 24);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_SendCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub send_callback: *mut c_void,
}

const _: () = assert!(size_of::<PJRT_SendCallbackInfo>() == 24);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ShapeSpec {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub element_type: u32,
}

const _: () = assert!(size_of::<PJRT_ShapeSpec>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_ShapeSpec {
    const NAME: &'static str = "PJRT_ShapeSpec";
    const SIZE: usize = 36;
    const LEAST: usize = 36;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Shardings_Extension {
    pub base: PJRT_Extension_Base,
    pub PJRT_Shardings_PJRT_Executable_ParameterShardings:
        Function<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args>,
    pub PJRT_Shardings_PJRT_Executable_OutputShardings:
        Function<PJRT_Shardings_PJRT_Executable_OutputShardings_Args>,
}

const _: () = assert!(size_of::<PJRT_Shardings_Extension>() == 40);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_outputs: usize,
    pub shardings: Out<Out<u8>>,
    pub sharding_sizes: Out<usize>,
}

const _: () = assert!(size_of::<PJRT_Shardings_PJRT_Executable_OutputShardings_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
    const NAME: &'static str = "PJRT_Shardings_PJRT_Executable_OutputShardings_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: In<PJRT_Executable>,
    pub num_parameters: usize,
    pub shardings: Out<Out<u8>>,
    pub sharding_sizes: Out<usize>,
}

const _: () = assert!(size_of::<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args>() == 48);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
    const NAME: &'static str = "PJRT_Shardings_PJRT_Executable_ParameterShardings_Args";
    const SIZE: usize = 48;
    const LEAST: usize = 48;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Attributes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub attributes: Out<PJRT_NamedValue>,
    pub num_attributes: usize,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Attributes_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Attributes_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Attributes_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology_name: In<u8>,
    pub topology_name_size: usize,
    pub create_options: In<PJRT_NamedValue>,
    pub num_options: usize,
    pub topology: Out<PJRT_TopologyDescription>,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Create_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Create_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Create_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Deserialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub serialized_topology: *mut c_void,
    pub serialized_topology_size: usize,
    pub topology: Out<PJRT_TopologyDescription>,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Deserialize_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Deserialize_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Deserialize_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Destroy_Args>() == 24);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Destroy_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Destroy_Args";
    const SIZE: usize = 24;
    const LEAST: usize = 24;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Fingerprint_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub fingerprint: u64,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Fingerprint_Args>() == 32);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Fingerprint_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Fingerprint_Args";
    const SIZE: usize = 32;
    const LEAST: usize = 32;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub descriptions: Out<Out<PJRT_DeviceDescription>>,
    pub num_descriptions: usize,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_GetDeviceDescriptions_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_GetDeviceDescriptions_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_GetDeviceDescriptions_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub memory_space_kind_ids: *mut c_void,
    pub num_memory_space_kind_ids: usize,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_GetMemorySpaceKindIds_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_GetMemorySpaceKindIds_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub memory_space_kind_id: i32,
    pub dims: In<i64>,
    pub num_dims: usize,
    pub element_type: u32,
    pub layout: *mut c_void,
    pub serialized_shape: *mut c_void,
    pub serialized_shape_size: usize,
    pub serialized_shape_deleter: *mut c_void,
}

const _: () =
    assert!(size_of::<PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args>() == 88);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args";
    const SIZE: usize = 88;
    const LEAST: usize = 88;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_PlatformName_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub platform_name: Out<u8>,
    pub platform_name_size: usize,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_PlatformName_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_PlatformName_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_PlatformName_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_PlatformVersion_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub platform_version: Out<u8>,
    pub platform_version_size: usize,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_PlatformVersion_Args>() == 40);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_PlatformVersion_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_PlatformVersion_Args";
    const SIZE: usize = 40;
    const LEAST: usize = 40;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_TopologyDescription_Serialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub topology: In<PJRT_TopologyDescription>,
    pub serialized_bytes: Out<u8>,
    pub serialized_bytes_size: usize,
    pub serialized_topology: Out<PJRT_Bytes>,
    pub serialized_topology_deleter: Option<unsafe extern "C" fn(*mut PJRT_Bytes)>,
}

const _: () = assert!(size_of::<PJRT_TopologyDescription_Serialize_Args>() == 56);

// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins
// with its size.
unsafe impl Layout for PJRT_TopologyDescription_Serialize_Args {
    const NAME: &'static str = "PJRT_TopologyDescription_Serialize_Args";
    const SIZE: usize = 56;
    const LEAST: usize = 56;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_NamedValue_Value {
    pub string_value: *mut c_void,
    pub int64_value: i64,
    pub int64_array_value: *mut c_void,
    pub float_value: f32,
    pub bool_value: u8,
}

const _: () = assert!(size_of::<PJRT_NamedValue_Value>() == 8);

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_Buffer_MemoryLayout_Value {
    pub tiled: PJRT_Buffer_MemoryLayout_Tiled,
    pub strides: PJRT_Buffer_MemoryLayout_Strides,
}

const _: () = assert!(size_of::<PJRT_Buffer_MemoryLayout_Value>() == 56);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Api {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub pjrt_api_version: PJRT_Api_Version,
    pub PJRT_Error_Destroy: unsafe extern "C" fn(*mut PJRT_Error_Destroy_Args),
    pub PJRT_Error_Message: unsafe extern "C" fn(*mut PJRT_Error_Message_Args),
    pub PJRT_Error_GetCode: Function<PJRT_Error_GetCode_Args>,
    pub PJRT_Plugin_Initialize: Function<PJRT_Plugin_Initialize_Args>,
    pub PJRT_Plugin_Attributes: Function<PJRT_Plugin_Attributes_Args>,
    pub PJRT_Event_Destroy: Function<PJRT_Event_Destroy_Args>,
    pub PJRT_Event_IsReady: Function<PJRT_Event_IsReady_Args>,
    pub PJRT_Event_Error: Function<PJRT_Event_Error_Args>,
    pub PJRT_Event_Await: Function<PJRT_Event_Await_Args>,
    pub PJRT_Event_OnReady: Function<PJRT_Event_OnReady_Args>,
    pub PJRT_Client_Create: Function<PJRT_Client_Create_Args>,
    pub PJRT_Client_Destroy: Function<PJRT_Client_Destroy_Args>,
    pub PJRT_Client_PlatformName: Function<PJRT_Client_PlatformName_Args>,
    pub PJRT_Client_ProcessIndex: Function<PJRT_Client_ProcessIndex_Args>,
    pub PJRT_Client_PlatformVersion: Function<PJRT_Client_PlatformVersion_Args>,
    pub PJRT_Client_Devices: Function<PJRT_Client_Devices_Args>,
    pub PJRT_Client_AddressableDevices: Function<PJRT_Client_AddressableDevices_Args>,
    pub PJRT_Client_LookupDevice: Function<PJRT_Client_LookupDevice_Args>,
    pub PJRT_Client_LookupAddressableDevice: Function<PJRT_Client_LookupAddressableDevice_Args>,
    pub PJRT_Client_AddressableMemories: Function<PJRT_Client_AddressableMemories_Args>,
    pub PJRT_Client_Compile: Function<PJRT_Client_Compile_Args>,
    pub PJRT_Client_DefaultDeviceAssignment: Function<PJRT_Client_DefaultDeviceAssignment_Args>,
    pub PJRT_Client_BufferFromHostBuffer: Function<PJRT_Client_BufferFromHostBuffer_Args>,
    pub PJRT_DeviceDescription_Id: Function<PJRT_DeviceDescription_Id_Args>,
    pub PJRT_DeviceDescription_ProcessIndex: Function<PJRT_DeviceDescription_ProcessIndex_Args>,
    pub PJRT_DeviceDescription_Attributes: Function<PJRT_DeviceDescription_Attributes_Args>,
    pub PJRT_DeviceDescription_Kind: Function<PJRT_DeviceDescription_Kind_Args>,
    pub PJRT_DeviceDescription_DebugString: Function<PJRT_DeviceDescription_DebugString_Args>,
    pub PJRT_DeviceDescription_ToString: Function<PJRT_DeviceDescription_ToString_Args>,
    pub PJRT_Device_GetDescription: Function<PJRT_Device_GetDescription_Args>,
    pub PJRT_Device_IsAddressable: Function<PJRT_Device_IsAddressable_Args>,
    pub PJRT_Device_LocalHardwareId: Function<PJRT_Device_LocalHardwareId_Args>,
    pub PJRT_Device_AddressableMemories: Function<PJRT_Device_AddressableMemories_Args>,
    pub PJRT_Device_DefaultMemory: Function<PJRT_Device_DefaultMemory_Args>,
    pub PJRT_Device_MemoryStats: Function<PJRT_Device_MemoryStats_Args>,
    pub PJRT_Memory_Id: Function<PJRT_Memory_Id_Args>,
    pub PJRT_Memory_Kind: Function<PJRT_Memory_Kind_Args>,
    pub PJRT_Memory_DebugString: Function<PJRT_Memory_DebugString_Args>,
    pub PJRT_Memory_ToString: Function<PJRT_Memory_ToString_Args>,
    pub PJRT_Memory_AddressableByDevices: Function<PJRT_Memory_AddressableByDevices_Args>,
    pub PJRT_Executable_Destroy: Function<PJRT_Executable_Destroy_Args>,
    pub PJRT_Executable_Name: Function<PJRT_Executable_Name_Args>,
    pub PJRT_Executable_NumReplicas: Function<PJRT_Executable_NumReplicas_Args>,
    pub PJRT_Executable_NumPartitions: Function<PJRT_Executable_NumPartitions_Args>,
    pub PJRT_Executable_NumOutputs: Function<PJRT_Executable_NumOutputs_Args>,
    pub PJRT_Executable_SizeOfGeneratedCodeInBytes:
        Function<PJRT_Executable_SizeOfGeneratedCodeInBytes_Args>,
    pub PJRT_Executable_GetCostAnalysis: Function<PJRT_Executable_GetCostAnalysis_Args>,
    pub PJRT_Executable_OutputMemoryKinds: Function<PJRT_Executable_OutputMemoryKinds_Args>,
    pub PJRT_Executable_OptimizedProgram: Function<PJRT_Executable_OptimizedProgram_Args>,
    pub PJRT_Executable_Serialize: Function<PJRT_Executable_Serialize_Args>,
    pub PJRT_LoadedExecutable_Destroy: Function<PJRT_LoadedExecutable_Destroy_Args>,
    pub PJRT_LoadedExecutable_GetExecutable: Function<PJRT_LoadedExecutable_GetExecutable_Args>,
    pub PJRT_LoadedExecutable_AddressableDevices:
        Function<PJRT_LoadedExecutable_AddressableDevices_Args>,
    pub PJRT_LoadedExecutable_Delete: Function<PJRT_LoadedExecutable_Delete_Args>,
    pub PJRT_LoadedExecutable_IsDeleted: Function<PJRT_LoadedExecutable_IsDeleted_Args>,
    pub PJRT_LoadedExecutable_Execute: Function<PJRT_LoadedExecutable_Execute_Args>,
    pub PJRT_Executable_DeserializeAndLoad: Function<PJRT_Executable_DeserializeAndLoad_Args>,
    pub PJRT_LoadedExecutable_Fingerprint: Function<PJRT_LoadedExecutable_Fingerprint_Args>,
    pub PJRT_Buffer_Destroy: Function<PJRT_Buffer_Destroy_Args>,
    pub PJRT_Buffer_ElementType: Function<PJRT_Buffer_ElementType_Args>,
    pub PJRT_Buffer_Dimensions: Function<PJRT_Buffer_Dimensions_Args>,
    pub PJRT_Buffer_UnpaddedDimensions: Function<PJRT_Buffer_UnpaddedDimensions_Args>,
    pub PJRT_Buffer_DynamicDimensionIndices: Function<PJRT_Buffer_DynamicDimensionIndices_Args>,
    pub PJRT_Buffer_GetMemoryLayout: Function<PJRT_Buffer_GetMemoryLayout_Args>,
    pub PJRT_Buffer_OnDeviceSizeInBytes: Function<PJRT_Buffer_OnDeviceSizeInBytes_Args>,
    pub PJRT_Buffer_Device: Function<PJRT_Buffer_Device_Args>,
    pub PJRT_Buffer_Memory: Function<PJRT_Buffer_Memory_Args>,
    pub PJRT_Buffer_Delete: Function<PJRT_Buffer_Delete_Args>,
    pub PJRT_Buffer_IsDeleted: Function<PJRT_Buffer_IsDeleted_Args>,
    pub PJRT_Buffer_CopyToDevice: Function<PJRT_Buffer_CopyToDevice_Args>,
    pub PJRT_Buffer_ToHostBuffer: Function<PJRT_Buffer_ToHostBuffer_Args>,
    pub PJRT_Buffer_IsOnCpu: Function<PJRT_Buffer_IsOnCpu_Args>,
    pub PJRT_Buffer_ReadyEvent: Function<PJRT_Buffer_ReadyEvent_Args>,
    pub PJRT_Buffer_UnsafePointer: Function<PJRT_Buffer_UnsafePointer_Args>,
    pub PJRT_Buffer_IncreaseExternalReferenceCount:
        Function<PJRT_Buffer_IncreaseExternalReferenceCount_Args>,
    pub PJRT_Buffer_DecreaseExternalReferenceCount:
        Function<PJRT_Buffer_DecreaseExternalReferenceCount_Args>,
    pub PJRT_Buffer_OpaqueDeviceMemoryDataPointer:
        Function<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>,
    pub PJRT_CopyToDeviceStream_Destroy: Function<PJRT_CopyToDeviceStream_Destroy_Args>,
    pub PJRT_CopyToDeviceStream_AddChunk: Function<PJRT_CopyToDeviceStream_AddChunk_Args>,
    pub PJRT_CopyToDeviceStream_TotalBytes: Function<PJRT_CopyToDeviceStream_TotalBytes_Args>,
    pub PJRT_CopyToDeviceStream_GranuleSize: Function<PJRT_CopyToDeviceStream_GranuleSize_Args>,
    pub PJRT_CopyToDeviceStream_CurrentBytes: Function<PJRT_CopyToDeviceStream_CurrentBytes_Args>,
    pub PJRT_TopologyDescription_Create: Function<PJRT_TopologyDescription_Create_Args>,
    pub PJRT_TopologyDescription_Destroy: Function<PJRT_TopologyDescription_Destroy_Args>,
    pub PJRT_TopologyDescription_PlatformName: Function<PJRT_TopologyDescription_PlatformName_Args>,
    pub PJRT_TopologyDescription_PlatformVersion:
        Function<PJRT_TopologyDescription_PlatformVersion_Args>,
    pub PJRT_TopologyDescription_GetDeviceDescriptions:
        Function<PJRT_TopologyDescription_GetDeviceDescriptions_Args>,
    pub PJRT_TopologyDescription_Serialize: Function<PJRT_TopologyDescription_Serialize_Args>,
    pub PJRT_TopologyDescription_Attributes: Function<PJRT_TopologyDescription_Attributes_Args>,
    pub PJRT_Compile: Function<PJRT_Compile_Args>,
    pub PJRT_Executable_OutputElementTypes: Function<PJRT_Executable_OutputElementTypes_Args>,
    pub PJRT_Executable_OutputDimensions: Function<PJRT_Executable_OutputDimensions_Args>,
    pub PJRT_Buffer_CopyToMemory: Function<PJRT_Buffer_CopyToMemory_Args>,
    pub PJRT_Client_CreateViewOfDeviceBuffer: Function<PJRT_Client_CreateViewOfDeviceBuffer_Args>,
    pub PJRT_Executable_Fingerprint: Function<PJRT_Executable_Fingerprint_Args>,
    pub PJRT_Client_TopologyDescription: Function<PJRT_Client_TopologyDescription_Args>,
    pub PJRT_Executable_GetCompiledMemoryStats:
        Function<PJRT_Executable_GetCompiledMemoryStats_Args>,
    pub PJRT_Memory_Kind_Id: Function<PJRT_Memory_Kind_Id_Args>,
    pub PJRT_ExecuteContext_Create: Function<PJRT_ExecuteContext_Create_Args>,
    pub PJRT_ExecuteContext_Destroy: Function<PJRT_ExecuteContext_Destroy_Args>,
    pub PJRT_Buffer_CopyRawToHost: Function<PJRT_Buffer_CopyRawToHost_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_Destroy:
        Function<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_TransferData:
        Function<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>,
    pub PJRT_Client_CreateBuffersForAsyncHostToDevice:
        Function<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer:
        Function<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_Device:
        Function<PJRT_AsyncHostToDeviceTransferManager_Device_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_BufferCount:
        Function<PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_BufferSize:
        Function<PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_SetBufferError:
        Function<PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_AddMetadata:
        Function<PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args>,
    pub PJRT_Client_DmaMap: Function<PJRT_Client_DmaMap_Args>,
    pub PJRT_Client_DmaUnmap: Function<PJRT_Client_DmaUnmap_Args>,
    pub PJRT_Client_CreateUninitializedBuffer: Function<PJRT_Client_CreateUninitializedBuffer_Args>,
    pub PJRT_Client_UpdateGlobalProcessInfo: Function<PJRT_Client_UpdateGlobalProcessInfo_Args>,
    pub PJRT_TopologyDescription_Deserialize: Function<PJRT_TopologyDescription_Deserialize_Args>,
    pub PJRT_Client_CreateAliasBuffer: Function<PJRT_Client_CreateAliasBuffer_Args>,
    pub PJRT_Client_FulfillAliasBuffer: Function<PJRT_Client_FulfillAliasBuffer_Args>,
    pub PJRT_LoadedExecutable_GetDeviceAssignment:
        Function<PJRT_LoadedExecutable_GetDeviceAssignment_Args>,
    pub PJRT_Client_CreateErrorBuffer: Function<PJRT_Client_CreateErrorBuffer_Args>,
    pub PJRT_AsyncHostToDeviceTransferManager_TransferLiteral:
        Function<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>,
    pub PJRT_Buffer_CopyRawToHostFuture: Function<PJRT_Buffer_CopyRawToHostFuture_Args>,
    pub PJRT_Device_PoisonExecution: Function<PJRT_Device_PoisonExecution_Args>,
    pub PJRT_Device_CreateAsyncTrackingEvent: Function<PJRT_Device_CreateAsyncTrackingEvent_Args>,
    pub PJRT_AsyncTrackingEvent_Destroy: Function<PJRT_AsyncTrackingEvent_Destroy_Args>,
    pub PJRT_Executable_GetCompileOptions: Function<PJRT_Executable_GetCompileOptions_Args>,
    pub PJRT_Buffer_DonateWithControlDependency:
        Function<PJRT_Buffer_DonateWithControlDependency_Args>,
    pub PJRT_Event_Create: Function<PJRT_Event_Create_Args>,
    pub PJRT_Event_Set: Function<PJRT_Event_Set_Args>,
    pub PJRT_Device_GetAttributes: Function<PJRT_Device_GetAttributes_Args>,
    pub PJRT_Client_Load: Function<PJRT_Client_Load_Args>,
    pub PJRT_LoadedExecutable_AddressableDeviceLogicalIds:
        Function<PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args>,
    pub PJRT_Buffer_Bitcast: Function<PJRT_Buffer_Bitcast_Args>,
    pub PJRT_Error_ForEachPayload: Function<PJRT_Error_ForEachPayload_Args>,
    pub PJRT_TopologyDescription_Fingerprint: Function<PJRT_TopologyDescription_Fingerprint_Args>,
    pub PJRT_Executable_ParameterMemoryKinds: Function<PJRT_Executable_ParameterMemoryKinds_Args>,
    pub PJRT_Device_ClearMemoryStats: Function<PJRT_Device_ClearMemoryStats_Args>,
    pub PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace:
        Function<PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args>,
    pub PJRT_TopologyDescription_GetMemorySpaceKindIds:
        Function<PJRT_TopologyDescription_GetMemorySpaceKindIds_Args>,
}

const _: () = assert!(size_of::<PJRT_Api>() == 1144);

/// Calls the macro with each function of the table that can fail, and its arguments.
#[macro_export]
macro_rules! for_each_function {
    ($with:ident) => {
        $with! {
            PJRT_Error_GetCode: PJRT_Error_GetCode_Args,
            PJRT_Plugin_Initialize: PJRT_Plugin_Initialize_Args,
            PJRT_Plugin_Attributes: PJRT_Plugin_Attributes_Args,
            PJRT_Event_Destroy: PJRT_Event_Destroy_Args,
            PJRT_Event_IsReady: PJRT_Event_IsReady_Args,
            PJRT_Event_Error: PJRT_Event_Error_Args,
            PJRT_Event_Await: PJRT_Event_Await_Args,
            PJRT_Event_OnReady: PJRT_Event_OnReady_Args,
            PJRT_Client_Create: PJRT_Client_Create_Args,
            PJRT_Client_Destroy: PJRT_Client_Destroy_Args,
            PJRT_Client_PlatformName: PJRT_Client_PlatformName_Args,
            PJRT_Client_ProcessIndex: PJRT_Client_ProcessIndex_Args,
            PJRT_Client_PlatformVersion: PJRT_Client_PlatformVersion_Args,
            PJRT_Client_Devices: PJRT_Client_Devices_Args,
            PJRT_Client_AddressableDevices: PJRT_Client_AddressableDevices_Args,
            PJRT_Client_LookupDevice: PJRT_Client_LookupDevice_Args,
            PJRT_Client_LookupAddressableDevice: PJRT_Client_LookupAddressableDevice_Args,
            PJRT_Client_AddressableMemories: PJRT_Client_AddressableMemories_Args,
            PJRT_Client_Compile: PJRT_Client_Compile_Args,
            PJRT_Client_DefaultDeviceAssignment: PJRT_Client_DefaultDeviceAssignment_Args,
            PJRT_Client_BufferFromHostBuffer: PJRT_Client_BufferFromHostBuffer_Args,
            PJRT_DeviceDescription_Id: PJRT_DeviceDescription_Id_Args,
            PJRT_DeviceDescription_ProcessIndex: PJRT_DeviceDescription_ProcessIndex_Args,
            PJRT_DeviceDescription_Attributes: PJRT_DeviceDescription_Attributes_Args,
            PJRT_DeviceDescription_Kind: PJRT_DeviceDescription_Kind_Args,
            PJRT_DeviceDescription_DebugString: PJRT_DeviceDescription_DebugString_Args,
            PJRT_DeviceDescription_ToString: PJRT_DeviceDescription_ToString_Args,
            PJRT_Device_GetDescription: PJRT_Device_GetDescription_Args,
            PJRT_Device_IsAddressable: PJRT_Device_IsAddressable_Args,
            PJRT_Device_LocalHardwareId: PJRT_Device_LocalHardwareId_Args,
            PJRT_Device_AddressableMemories: PJRT_Device_AddressableMemories_Args,
            PJRT_Device_DefaultMemory: PJRT_Device_DefaultMemory_Args,
            PJRT_Device_MemoryStats: PJRT_Device_MemoryStats_Args,
            PJRT_Memory_Id: PJRT_Memory_Id_Args,
            PJRT_Memory_Kind: PJRT_Memory_Kind_Args,
            PJRT_Memory_DebugString: PJRT_Memory_DebugString_Args,
            PJRT_Memory_ToString: PJRT_Memory_ToString_Args,
            PJRT_Memory_AddressableByDevices: PJRT_Memory_AddressableByDevices_Args,
            PJRT_Executable_Destroy: PJRT_Executable_Destroy_Args,
            PJRT_Executable_Name: PJRT_Executable_Name_Args,
            PJRT_Executable_NumReplicas: PJRT_Executable_NumReplicas_Args,
            PJRT_Executable_NumPartitions: PJRT_Executable_NumPartitions_Args,
            PJRT_Executable_NumOutputs: PJRT_Executable_NumOutputs_Args,
            PJRT_Executable_SizeOfGeneratedCodeInBytes: PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
            PJRT_Executable_GetCostAnalysis: PJRT_Executable_GetCostAnalysis_Args,
            PJRT_Executable_OutputMemoryKinds: PJRT_Executable_OutputMemoryKinds_Args,
            PJRT_Executable_OptimizedProgram: PJRT_Executable_OptimizedProgram_Args,
            PJRT_Executable_Serialize: PJRT_Executable_Serialize_Args,
            PJRT_LoadedExecutable_Destroy: PJRT_LoadedExecutable_Destroy_Args,
            PJRT_LoadedExecutable_GetExecutable: PJRT_LoadedExecutable_GetExecutable_Args,
            PJRT_LoadedExecutable_AddressableDevices: PJRT_LoadedExecutable_AddressableDevices_Args,
            PJRT_LoadedExecutable_Delete: PJRT_LoadedExecutable_Delete_Args,
            PJRT_LoadedExecutable_IsDeleted: PJRT_LoadedExecutable_IsDeleted_Args,
            PJRT_LoadedExecutable_Execute: PJRT_LoadedExecutable_Execute_Args,
            PJRT_Executable_DeserializeAndLoad: PJRT_Executable_DeserializeAndLoad_Args,
            PJRT_LoadedExecutable_Fingerprint: PJRT_LoadedExecutable_Fingerprint_Args,
            PJRT_Buffer_Destroy: PJRT_Buffer_Destroy_Args,
            PJRT_Buffer_ElementType: PJRT_Buffer_ElementType_Args,
            PJRT_Buffer_Dimensions: PJRT_Buffer_Dimensions_Args,
            PJRT_Buffer_UnpaddedDimensions: PJRT_Buffer_UnpaddedDimensions_Args,
            PJRT_Buffer_DynamicDimensionIndices: PJRT_Buffer_DynamicDimensionIndices_Args,
            PJRT_Buffer_GetMemoryLayout: PJRT_Buffer_GetMemoryLayout_Args,
            PJRT_Buffer_OnDeviceSizeInBytes: PJRT_Buffer_OnDeviceSizeInBytes_Args,
            PJRT_Buffer_Device: PJRT_Buffer_Device_Args,
            PJRT_Buffer_Memory: PJRT_Buffer_Memory_Args,
            PJRT_Buffer_Delete: PJRT_Buffer_Delete_Args,
            PJRT_Buffer_IsDeleted: PJRT_Buffer_IsDeleted_Args,
            PJRT_Buffer_CopyToDevice: PJRT_Buffer_CopyToDevice_Args,
            PJRT_Buffer_ToHostBuffer: PJRT_Buffer_ToHostBuffer_Args,
            PJRT_Buffer_IsOnCpu: PJRT_Buffer_IsOnCpu_Args,
            PJRT_Buffer_ReadyEvent: PJRT_Buffer_ReadyEvent_Args,
            PJRT_Buffer_UnsafePointer: PJRT_Buffer_UnsafePointer_Args,
            PJRT_Buffer_IncreaseExternalReferenceCount: PJRT_Buffer_IncreaseExternalReferenceCount_Args,
            PJRT_Buffer_DecreaseExternalReferenceCount: PJRT_Buffer_DecreaseExternalReferenceCount_Args,
            PJRT_Buffer_OpaqueDeviceMemoryDataPointer: PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args,
            PJRT_CopyToDeviceStream_Destroy: PJRT_CopyToDeviceStream_Destroy_Args,
            PJRT_CopyToDeviceStream_AddChunk: PJRT_CopyToDeviceStream_AddChunk_Args,
            PJRT_CopyToDeviceStream_TotalBytes: PJRT_CopyToDeviceStream_TotalBytes_Args,
            PJRT_CopyToDeviceStream_GranuleSize: PJRT_CopyToDeviceStream_GranuleSize_Args,
            PJRT_CopyToDeviceStream_CurrentBytes: PJRT_CopyToDeviceStream_CurrentBytes_Args,
            PJRT_TopologyDescription_Create: PJRT_TopologyDescription_Create_Args,
            PJRT_TopologyDescription_Destroy: PJRT_TopologyDescription_Destroy_Args,
            PJRT_TopologyDescription_PlatformName: PJRT_TopologyDescription_PlatformName_Args,
            PJRT_TopologyDescription_PlatformVersion: PJRT_TopologyDescription_PlatformVersion_Args,
            PJRT_TopologyDescription_GetDeviceDescriptions: PJRT_TopologyDescription_GetDeviceDescriptions_Args,
            PJRT_TopologyDescription_Serialize: PJRT_TopologyDescription_Serialize_Args,
            PJRT_TopologyDescription_Attributes: PJRT_TopologyDescription_Attributes_Args,
            PJRT_Compile: PJRT_Compile_Args,
            PJRT_Executable_OutputElementTypes: PJRT_Executable_OutputElementTypes_Args,
            PJRT_Executable_OutputDimensions: PJRT_Executable_OutputDimensions_Args,
            PJRT_Buffer_CopyToMemory: PJRT_Buffer_CopyToMemory_Args,
            PJRT_Client_CreateViewOfDeviceBuffer: PJRT_Client_CreateViewOfDeviceBuffer_Args,
            PJRT_Executable_Fingerprint: PJRT_Executable_Fingerprint_Args,
            PJRT_Client_TopologyDescription: PJRT_Client_TopologyDescription_Args,
            PJRT_Executable_GetCompiledMemoryStats: PJRT_Executable_GetCompiledMemoryStats_Args,
            PJRT_Memory_Kind_Id: PJRT_Memory_Kind_Id_Args,
            PJRT_ExecuteContext_Create: PJRT_ExecuteContext_Create_Args,
            PJRT_ExecuteContext_Destroy: PJRT_ExecuteContext_Destroy_Args,
            PJRT_Buffer_CopyRawToHost: PJRT_Buffer_CopyRawToHost_Args,
            PJRT_AsyncHostToDeviceTransferManager_Destroy: PJRT_AsyncHostToDeviceTransferManager_Destroy_Args,
            PJRT_AsyncHostToDeviceTransferManager_TransferData: PJRT_AsyncHostToDeviceTransferManager_TransferData_Args,
            PJRT_Client_CreateBuffersForAsyncHostToDevice: PJRT_Client_CreateBuffersForAsyncHostToDevice_Args,
            PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args,
            PJRT_AsyncHostToDeviceTransferManager_Device: PJRT_AsyncHostToDeviceTransferManager_Device_Args,
            PJRT_AsyncHostToDeviceTransferManager_BufferCount: PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args,
            PJRT_AsyncHostToDeviceTransferManager_BufferSize: PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args,
            PJRT_AsyncHostToDeviceTransferManager_SetBufferError: PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args,
            PJRT_AsyncHostToDeviceTransferManager_AddMetadata: PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args,
            PJRT_Client_DmaMap: PJRT_Client_DmaMap_Args,
            PJRT_Client_DmaUnmap: PJRT_Client_DmaUnmap_Args,
            PJRT_Client_CreateUninitializedBuffer: PJRT_Client_CreateUninitializedBuffer_Args,
            PJRT_Client_UpdateGlobalProcessInfo: PJRT_Client_UpdateGlobalProcessInfo_Args,
            PJRT_TopologyDescription_Deserialize: PJRT_TopologyDescription_Deserialize_Args,
            PJRT_Client_CreateAliasBuffer: PJRT_Client_CreateAliasBuffer_Args,
            PJRT_Client_FulfillAliasBuffer: PJRT_Client_FulfillAliasBuffer_Args,
            PJRT_LoadedExecutable_GetDeviceAssignment: PJRT_LoadedExecutable_GetDeviceAssignment_Args,
            PJRT_Client_CreateErrorBuffer: PJRT_Client_CreateErrorBuffer_Args,
            PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args,
            PJRT_Buffer_CopyRawToHostFuture: PJRT_Buffer_CopyRawToHostFuture_Args,
            PJRT_Device_PoisonExecution: PJRT_Device_PoisonExecution_Args,
            PJRT_Device_CreateAsyncTrackingEvent: PJRT_Device_CreateAsyncTrackingEvent_Args,
            PJRT_AsyncTrackingEvent_Destroy: PJRT_AsyncTrackingEvent_Destroy_Args,
            PJRT_Executable_GetCompileOptions: PJRT_Executable_GetCompileOptions_Args,
            PJRT_Buffer_DonateWithControlDependency: PJRT_Buffer_DonateWithControlDependency_Args,
            PJRT_Event_Create: PJRT_Event_Create_Args,
            PJRT_Event_Set: PJRT_Event_Set_Args,
            PJRT_Device_GetAttributes: PJRT_Device_GetAttributes_Args,
            PJRT_Client_Load: PJRT_Client_Load_Args,
            PJRT_LoadedExecutable_AddressableDeviceLogicalIds: PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args,
            PJRT_Buffer_Bitcast: PJRT_Buffer_Bitcast_Args,
            PJRT_Error_ForEachPayload: PJRT_Error_ForEachPayload_Args,
            PJRT_TopologyDescription_Fingerprint: PJRT_TopologyDescription_Fingerprint_Args,
            PJRT_Executable_ParameterMemoryKinds: PJRT_Executable_ParameterMemoryKinds_Args,
            PJRT_Device_ClearMemoryStats: PJRT_Device_ClearMemoryStats_Args,
            PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace: PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args,
            PJRT_TopologyDescription_GetMemorySpaceKindIds: PJRT_TopologyDescription_GetMemorySpaceKindIds_Args,
        }
    };
}
