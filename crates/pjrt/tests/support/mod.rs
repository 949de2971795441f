//! A caller of the C ABI, as JAX is one.
#![allow(dead_code)] // Each test file uses a part.

use std::ffi::c_void;

use helio_pjrt::abi::*;
use helio_pjrt::api;
use helio_pjrt::buffer::PJRT_Buffer;
use helio_pjrt::client::{PJRT_Client, PJRT_Device};
use helio_pjrt::error::PJRT_Error;
use helio_pjrt::event::PJRT_Event;
use helio_pjrt::executable::{PJRT_Executable, PJRT_LoadedExecutable};
pub use helio_pjrt::raw::sized;
use helio_pjrt::raw::{In, Layout, Out};

/// A function of the table.
pub type Function<A> = unsafe extern "C" fn(*mut A) -> Out<PJRT_Error>;

/// An error's code and message.
pub type Failure = (u32, String);

/// What was given, as an argument of another call.
pub fn given<T>(out: Out<T>) -> In<T> {
    // SAFETY: tests pass what lives until they destroy it.
    unsafe { In::new(out.as_ptr()) }
}

/// A slice as an argument.
pub fn list<T>(values: &[T]) -> In<T> {
    // SAFETY: the slices of tests live longer than the calls.
    unsafe { In::new(values.as_ptr()) }
}

/// Calls a function with arguments; gives them with the results.
pub fn call<A: Layout>(function: Function<A>, fill: impl FnOnce(&mut A)) -> Result<A, Failure> {
    let mut args = sized::<A>();
    fill(&mut args);
    // SAFETY: the struct is whole, and tests fill it with what the header asks for.
    failure(unsafe { function(&mut args) })?;
    Ok(args)
}

/// What an error says; it is destroyed.
pub fn failure(error: Out<PJRT_Error>) -> Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    let mut code = sized::<PJRT_Error_GetCode_Args>();
    code.error = given(error);
    // SAFETY: the struct is whole, and the error lives.
    let none = unsafe { (api().PJRT_Error_GetCode)(&mut code) };
    assert!(none.is_null(), "an error has a code");
    let mut message = sized::<PJRT_Error_Message_Args>();
    message.error = given(error);
    // SAFETY: as for the code.
    unsafe { (api().PJRT_Error_Message)(&mut message) };
    let text = text(message.message, message.message_size);
    let mut destroy = sized::<PJRT_Error_Destroy_Args>();
    destroy.error = given(error);
    // SAFETY: as for the code; the error is not used any more.
    unsafe { (api().PJRT_Error_Destroy)(&mut destroy) };
    Err((code.code, text))
}

/// Text that was given.
pub fn text(start: Out<u8>, len: usize) -> String {
    let start = given(start);
    // SAFETY: what is given lives as long as its owner, which tests keep.
    unsafe { start.text(len, "a text") }.unwrap().to_owned()
}

/// A list that was given.
pub fn values<T: Copy>(start: Out<T>, len: usize) -> Vec<T> {
    let start = given(start);
    // SAFETY: what is given lives as long as its owner, which tests keep.
    unsafe { start.slice(len, "a list") }.unwrap().to_vec()
}

/// A client with some devices.
pub fn client(devices: i64) -> Out<PJRT_Client> {
    let name = "num_devices";
    let option = PJRT_NamedValue {
        struct_size: PJRT_NamedValue::SIZE,
        extension_start: std::ptr::null_mut(),
        name: name.as_ptr().cast_mut().cast(),
        name_size: name.len(),
        type_: PJRT_NamedValue_kInt64,
        value: PJRT_NamedValue_Value { int64_value: devices },
        value_size: 1,
    };
    let made = call(api().PJRT_Client_Create, |args| {
        (args.create_options, args.num_options) = (list(std::slice::from_ref(&option)), 1);
    });
    made.unwrap().client
}

/// The devices of a client.
pub fn devices(client: Out<PJRT_Client>) -> Vec<Out<PJRT_Device>> {
    let args = call(api().PJRT_Client_Devices, |args| args.client = given(client)).unwrap();
    values(args.devices, args.num_devices)
}

/// Compiles a program in text.
pub fn compile(
    client: Out<PJRT_Client>,
    code: &str,
    options: &[u8],
) -> Result<Out<PJRT_LoadedExecutable>, Failure> {
    compile_format(client, "mlir", code.as_bytes(), options)
}

/// Compiles a program of any format.
pub fn compile_format(
    client: Out<PJRT_Client>,
    format: &str,
    code: &[u8],
    options: &[u8],
) -> Result<Out<PJRT_LoadedExecutable>, Failure> {
    let program = PJRT_Program {
        struct_size: PJRT_Program::SIZE,
        extension_start: std::ptr::null_mut(),
        code: code.as_ptr().cast_mut().cast(),
        code_size: code.len(),
        format: format.as_ptr().cast_mut().cast(),
        format_size: format.len(),
    };
    let args = call(api().PJRT_Client_Compile, |args| {
        args.client = given(client);
        args.program = list(std::slice::from_ref(&program));
        (args.compile_options, args.compile_options_size) = (list(options), options.len());
    })?;
    Ok(args.executable)
}

/// The executable behind a loaded one.
pub fn executable(loaded: Out<PJRT_LoadedExecutable>) -> Out<PJRT_Executable> {
    let args = call(api().PJRT_LoadedExecutable_GetExecutable, |args| {
        args.loaded_executable = given(loaded);
    });
    args.unwrap().executable
}

/// A program after all passes, as `xla.HloModuleProtoWithConfig`: asked for its size first, then for
/// itself.
pub fn optimized(program: Out<PJRT_Executable>) -> Vec<u8> {
    let mut code = sized::<PJRT_Program>();
    let fetch = |code: &mut PJRT_Program| {
        call(api().PJRT_Executable_OptimizedProgram, |args| {
            (args.executable, args.program) = (given(program), code);
        })
        .map(drop)
    };
    fetch(&mut code).unwrap();
    let mut bytes = vec![0u8; code.code_size];
    code.code = bytes.as_mut_ptr().cast();
    fetch(&mut code).unwrap();
    bytes
}

/// An array on a device; the event completes when the host's memory is not used any more.
pub fn put<T>(
    client: Out<PJRT_Client>,
    device: Out<PJRT_Device>,
    (ty, dims, strides): (u32, &[i64], &[i64]),
    data: *const T,
) -> Result<(Out<PJRT_Buffer>, Out<PJRT_Event>), Failure> {
    let args = call(api().PJRT_Client_BufferFromHostBuffer, |args| {
        args.client = given(client);
        args.data = data.cast_mut().cast();
        args.type_ = ty;
        (args.dims, args.num_dims) = (list(dims), dims.len());
        (args.byte_strides, args.num_byte_strides) = (list(strides), strides.len());
        args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
        args.device = given(device);
    })?;
    Ok((args.buffer, args.done_with_host_buffer))
}

/// A vector of floats on a device.
pub fn floats(
    client: Out<PJRT_Client>,
    device: Out<PJRT_Device>,
    data: &[f32],
) -> Out<PJRT_Buffer> {
    let dims = [data.len() as i64];
    let (buffer, event) =
        put(client, device, (PJRT_Buffer_Type_F32, &dims, &[]), data.as_ptr()).unwrap();
    destroy_event(event);
    buffer
}

/// Executes a program with lists of arguments, one for each device; gives the results of each, and the
/// events of their ends.
#[allow(clippy::type_complexity)]
pub fn execute(
    loaded: Out<PJRT_LoadedExecutable>,
    arguments: &[Vec<Out<PJRT_Buffer>>],
    kept: &[i64],
) -> Result<(Vec<Vec<Out<PJRT_Buffer>>>, Vec<Out<PJRT_Event>>), Failure> {
    let count = call(api().PJRT_Executable_NumOutputs, |args| {
        args.executable = given(executable(loaded));
    });
    let count = count.unwrap().num_outputs;
    let mut results = vec![vec![Out::null(); count]; arguments.len()];
    let mut events = vec![Out::null(); arguments.len()];
    let arguments: Vec<Vec<In<PJRT_Buffer>>> =
        arguments.iter().map(|list| list.iter().map(|&each| given(each)).collect()).collect();
    let lists: Vec<In<In<PJRT_Buffer>>> = arguments.iter().map(|each| list(each)).collect();
    let places: Vec<*mut Out<PJRT_Buffer>> =
        results.iter_mut().map(|list| list.as_mut_ptr()).collect();
    let mut options = sized::<PJRT_ExecuteOptions>();
    options.non_donatable_input_indices = list(kept);
    options.num_non_donatable_input_indices = kept.len();
    call(api().PJRT_LoadedExecutable_Execute, |args| {
        args.executable = given(loaded);
        args.options = list(std::slice::from_ref(&options));
        args.argument_lists = list(&lists);
        (args.num_devices, args.num_args) = (lists.len(), arguments.first().map_or(0, Vec::len));
        args.output_lists = list(&places);
        args.device_complete_events = events.as_mut_ptr();
    })?;
    Ok((results, events))
}

/// Waits for an event and destroys it.
pub fn wait(event: Out<PJRT_Event>) -> Result<(), Failure> {
    let outcome = call(api().PJRT_Event_Await, |args| args.event = given(event));
    destroy_event(event);
    outcome.map(drop)
}

pub fn destroy_event(event: Out<PJRT_Event>) {
    call(api().PJRT_Event_Destroy, |args| args.event = given(event)).unwrap();
}

pub fn destroy(buffer: Out<PJRT_Buffer>) {
    call(api().PJRT_Buffer_Destroy, |args| args.buffer = given(buffer)).unwrap();
}

/// The elements of a buffer, by a copy.
pub fn read<T: Copy + Default>(buffer: Out<PJRT_Buffer>) -> Result<Vec<T>, Failure> {
    let size = call(api().PJRT_Buffer_ToHostBuffer, |args| args.src = given(buffer))?.dst_size;
    let mut data = vec![T::default(); size / size_of::<T>()];
    let args = call(api().PJRT_Buffer_ToHostBuffer, |args| {
        args.src = given(buffer);
        (args.dst, args.dst_size) = (data.as_mut_ptr().cast::<c_void>(), size);
    })?;
    wait(args.event)?;
    Ok(data)
}
