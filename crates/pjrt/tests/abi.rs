//! The plugin's table of functions, called as JAX calls it.

mod support;

use std::ffi::{c_char, c_void};
use std::sync::mpsc;

use helio_pjrt::abi::*;
use helio_pjrt::error::PJRT_Error;
use helio_pjrt::ffi::abi::{
    XLA_FFI_Buffer, XLA_FFI_CallFrame, XLA_FFI_Error_Create_Args, XLA_FFI_Scalar,
};
use helio_pjrt::ffi::api::FfiError;
use helio_pjrt::raw::{Layout, Out};
use helio_pjrt::{api, helio_register_callback, helio_register_ffi_handler};
use support::*;

const INVALID_ARGUMENT: u32 = PJRT_Error_Code_INVALID_ARGUMENT;

/// `x + 1` for three floats.
const ADD_ONE: &str = "module @add_one {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.constant dense<1.0> : tensor<3xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}";

/// The same for an argument that may be given away.
fn donating() -> String {
    ADD_ONE.replace("%arg0: tensor<3xf32>)", "%arg0: tensor<3xf32> {tf.aliasing_output = 0 : i32})")
}

#[test]
fn devices_and_memories_know_each_other() {
    let client = client(2);
    let devices = devices(client);
    assert_eq!(devices.len(), 2);
    for (number, &device) in devices.iter().enumerate() {
        let description =
            call(api().PJRT_Device_GetDescription, |args| args.device = given(device)).unwrap();
        let id = call(api().PJRT_DeviceDescription_Id, |args| {
            args.device_description = given(description.device_description);
        });
        assert_eq!(id.unwrap().id, number as i32);
        let found = call(api().PJRT_Client_LookupDevice, |args| {
            (args.client, args.id) = (given(client), number as i32);
        });
        assert_eq!(found.unwrap().device.as_ptr(), device.as_ptr());
        let memories =
            call(api().PJRT_Device_AddressableMemories, |args| args.device = given(device))
                .unwrap();
        let memories = values(memories.memories, memories.num_memories);
        let kinds: Vec<String> = memories
            .iter()
            .map(|&memory| {
                let args =
                    call(api().PJRT_Memory_Kind, |args| args.memory = given(memory)).unwrap();
                text(args.kind, args.kind_size)
            })
            .collect();
        assert_eq!(kinds, ["device", "pinned_host", "unpinned_host"]);
        let back = call(api().PJRT_Memory_AddressableByDevices, |args| {
            args.memory = given(memories[1]);
        });
        let back = back.unwrap();
        assert_eq!(values(back.devices, back.num_devices)[0].as_ptr(), device.as_ptr());
    }
    let missing = call(api().PJRT_Client_LookupDevice, |args| {
        (args.client, args.id) = (given(client), 2);
    });
    assert_eq!(missing.err().map(|e| e.0), Some(INVALID_ARGUMENT));
    call(api().PJRT_Client_Destroy, |args| args.client = given(client)).unwrap();
}

#[test]
fn a_program_is_compiled_and_executed() {
    let client = client(1);
    let program = compile(client, ADD_ONE, &[]).unwrap();
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    for _ in 0..3 {
        let (results, events) = execute(program, &[vec![x]], &[]).unwrap();
        wait(events[0]).unwrap();
        assert_eq!(read::<f32>(results[0][0]), Ok(vec![2.0, 3.0, 4.0]));
        let dims = call(api().PJRT_Buffer_Dimensions, |args| args.buffer = given(results[0][0]));
        let dims = dims.unwrap();
        assert_eq!(values(dims.dims, dims.num_dims), [3]);
        destroy(results[0][0]);
    }
    let wrong = floats(client, devices(client)[0], &[1.0, 2.0]);
    let (code, message) = execute(program, &[vec![wrong]], &[]).unwrap_err();
    assert_eq!((code, &*message), (INVALID_ARGUMENT, "array 0 must be f32[3], found f32[2]"));
}

#[test]
fn arguments_are_given_away_unless_they_are_to_be_kept() {
    let client = client(1);
    let program = compile(client, &donating(), &[]).unwrap();
    let is_deleted = |buffer| {
        call(api().PJRT_Buffer_IsDeleted, |args| args.buffer = given(buffer)).unwrap().is_deleted
    };
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    let (kept, _) = execute(program, &[vec![x]], &[0]).unwrap();
    assert_eq!((is_deleted(x), read::<f32>(kept[0][0])), (0, Ok(vec![2.0, 3.0, 4.0])));
    let (given_away, _) = execute(program, &[vec![x]], &[]).unwrap();
    assert_eq!((is_deleted(x), read::<f32>(given_away[0][0])), (1, Ok(vec![2.0, 3.0, 4.0])));
    let (code, _) = execute(program, &[vec![x]], &[]).unwrap_err();
    assert_eq!(code, PJRT_Error_Code_FAILED_PRECONDITION);
}

#[test]
fn the_hosts_memory_is_used_where_it_is_until_the_buffer_ends() {
    let client = client(1);
    let device = devices(client)[0];
    let data = vec![1.5f32; 4096];
    let shape = (PJRT_Buffer_Type_F32, &[4096][..], &[][..]);
    let (buffer, done) = put(client, device, shape, data.as_ptr()).unwrap();
    let is_ready =
        || call(api().PJRT_Event_IsReady, |args| args.event = given(done)).unwrap().is_ready;
    assert_eq!(is_ready(), 0);
    call(api().PJRT_Buffer_IncreaseExternalReferenceCount, |args| args.buffer = given(buffer))
        .unwrap();
    let address = call(api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer, |args| {
        args.buffer = given(buffer);
    });
    assert_eq!(address.unwrap().device_memory_ptr.cast_const().cast(), data.as_ptr());
    call(api().PJRT_Buffer_Delete, |args| args.buffer = given(buffer)).unwrap();
    assert_eq!(is_ready(), 0, "somebody reads it");
    call(api().PJRT_Buffer_DecreaseExternalReferenceCount, |args| args.buffer = given(buffer))
        .unwrap();
    assert_eq!(is_ready(), 1);
    wait(done).unwrap();
    destroy(buffer);
}

#[test]
fn arrays_with_any_strides_are_read() {
    let client = client(1);
    let device = devices(client)[0];
    let data = [1i32, 2, 3, 4, 5, 6];
    // The rows of a 2x3 array backwards, and its columns: by the address of the first element.
    let last_row = &data[3..];
    let shape = (PJRT_Buffer_Type_S32, &[2, 3][..], &[-12, 4][..]);
    let (backwards, _) = put(client, device, shape, last_row.as_ptr()).unwrap();
    assert_eq!(read::<i32>(backwards), Ok(vec![4, 5, 6, 1, 2, 3]));
    let shape = (PJRT_Buffer_Type_S32, &[3, 2][..], &[4, 12][..]);
    let (columns, _) = put(client, device, shape, data.as_ptr()).unwrap();
    assert_eq!(read::<i32>(columns), Ok(vec![1, 4, 2, 5, 3, 6]));
    let shape = (PJRT_Buffer_Type_S32, &[2, 2][..], &[i64::MIN, i64::MAX][..]);
    let error = put(client, device, shape, data.as_ptr()).unwrap_err();
    assert_eq!(error.0, INVALID_ARGUMENT);
    let (empty, _) =
        put(client, device, (PJRT_Buffer_Type_F64, &[0, 4], &[]), std::ptr::null::<f64>()).unwrap();
    assert_eq!(read::<f64>(empty), Ok(vec![]));
}

#[test]
fn errors_of_an_execution_reach_all_that_use_its_results() {
    let client = client(1);
    let failing = compile(
        client,
        "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
           %0 = stablehlo.custom_call @nobody_knows_it(%x) : (tensor<3xf32>) -> tensor<3xf32>
           return %0 : tensor<3xf32>
         }",
        &[],
    );
    let adding = compile(client, ADD_ONE, &[]).unwrap();
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    let (failed, events) = execute(failing.unwrap(), &[vec![x]], &[]).unwrap();
    let error = wait(events[0]).unwrap_err();
    assert!(error.1.contains("no custom call is registered as `nobody_knows_it`"), "{error:?}");
    assert_eq!(read::<f32>(failed[0][0]), Err(error.clone()));
    let (later, events) = execute(adding, &[vec![failed[0][0]]], &[]).unwrap();
    assert_eq!(wait(events[0]), Err(error.clone()));
    let (said, heard) = mpsc::channel::<bool>();
    let ready =
        call(api().PJRT_Buffer_ReadyEvent, |args| args.buffer = given(later[0][0])).unwrap();
    call(api().PJRT_Event_OnReady, |args| {
        args.event = given(ready.event);
        args.callback = Some(heard_error);
        args.user_arg = Box::into_raw(Box::new(said)).cast();
    })
    .unwrap();
    assert_eq!(heard.recv(), Ok(true));
    destroy_event(ready.event);
}

/// # Safety
/// `user` is a box with a sender.
unsafe extern "C" fn heard_error(error: Out<PJRT_Error>, user: *mut c_void) {
    // SAFETY: the test gives this function such a box.
    let said = unsafe { Box::from_raw(user.cast::<mpsc::Sender<bool>>()) };
    said.send(failure(error).is_err()).unwrap();
}

#[test]
fn executables_are_serialized_and_described() {
    let client = client(1);
    let loaded = compile(client, ADD_ONE, &[]).unwrap();
    let program = executable(loaded);
    let fingerprint = |program| {
        let args = call(api().PJRT_Executable_Fingerprint, |args| args.executable = given(program))
            .unwrap();
        text(args.executable_fingerprint, args.executable_fingerprint_size)
    };
    let bytes =
        call(api().PJRT_Executable_Serialize, |args| args.executable = given(program)).unwrap();
    let serialized = values(bytes.serialized_bytes, bytes.serialized_bytes_size);
    // SAFETY: the bytes are not used any more.
    unsafe {
        bytes.serialized_executable_deleter.expect("a deleter")(
            bytes.serialized_executable.as_ptr(),
        );
    }
    let deserialize = |bytes: &[u8]| {
        call(api().PJRT_Executable_DeserializeAndLoad, |args| {
            args.client = given(client);
            (args.serialized_executable, args.serialized_executable_size) =
                (list(bytes), bytes.len());
        })
    };
    let again = deserialize(&serialized).unwrap().loaded_executable;
    assert_eq!(fingerprint(executable(again)), fingerprint(program));
    assert!(deserialize(&serialized[1..]).is_err());
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    let (results, _) = execute(again, &[vec![x]], &[]).unwrap();
    assert_eq!(read::<f32>(results[0][0]), Ok(vec![2.0, 3.0, 4.0]));
    let name = call(api().PJRT_Executable_Name, |args| args.executable = given(program)).unwrap();
    assert_eq!(text(name.executable_name, name.executable_name_size), "add_one");
    let costs =
        call(api().PJRT_Executable_GetCostAnalysis, |args| args.executable = given(program))
            .unwrap();
    assert_eq!(costs.num_properties, 3);
    let hlo = compile_format(client, "hlo_with_config", &optimized(program), &[]).unwrap();
    let (results, _) = execute(hlo, &[vec![x]], &[]).unwrap();
    assert_eq!(read::<f32>(results[0][0]), Ok(vec![2.0, 3.0, 4.0]));
}

#[test]
fn whatever_is_wrong_with_the_arguments_is_an_error() {
    let client = client(1);
    // Null pointers to structs, structs of no size, structs of zeros.
    macro_rules! check {
        ($($function:ident: $args:ident,)*) => {
            $({
                // SAFETY: a null pointer is allowed.
                let null = failure(unsafe { (api().$function)(std::ptr::null_mut()) });
                assert_eq!(null.err().map(|e| e.0), Some(INVALID_ARGUMENT), stringify!($function));
                let short = call(api().$function, |args| args.struct_size = 3);
                assert_eq!(short.err().map(|e| e.0), Some(INVALID_ARGUMENT), stringify!($function));
                // What it does with nothing is its own affair, if only it comes back.
                let _ = call(api().$function, |_| {});
            })*
        };
    }
    helio_pjrt::for_each_function!(check);
    for (format, code) in
        [("mlir", &b"ML\xefR\x0d"[..]), ("mlir", b"\xff"), ("what", b"x"), ("hlo", b"x")]
    {
        assert!(compile_format(client, format, code, &[]).is_err(), "{format}");
    }
    let (code, message) = compile(client, ADD_ONE, b"\xff\xff").unwrap_err();
    assert_eq!(code, INVALID_ARGUMENT);
    assert!(message.contains("xla.CompileOptionsProto"), "{message}");
    // Two replicas on one device: field 3 { field 4: 2 }.
    let (code, message) = compile(client, ADD_ONE, &[0x1a, 2, 0x20, 2]).unwrap_err();
    assert_eq!((code, &*message), (3, "the program is for device 1; the client has 1"));
}

#[test]
fn structs_of_older_callers_are_enough() {
    let mut args = sized::<PJRT_Client_Create_Args>();
    args.struct_size = PJRT_Client_Create_Args::LEAST;
    // SAFETY: the struct is larger than it says.
    failure(unsafe { (api().PJRT_Client_Create)(&mut args) }).unwrap();
    assert!(!args.client.is_null());
}

#[test]
fn replicas_run_on_devices_of_their_own() {
    let client = client(2);
    let program = "module @sum attributes {mhlo.num_replicas = 2 : i32} {
      func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = \"stablehlo.all_reduce\"(%x) ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }
    }";
    let program = compile(client, program, &[0x1a, 2, 0x20, 2]).unwrap();
    let arguments: Vec<Vec<_>> = devices(client)
        .into_iter()
        .zip([[1.0, 2.0], [10.0, 20.0]])
        .map(|(device, x)| vec![floats(client, device, &x)])
        .collect();
    let (results, events) = execute(program, &arguments, &[]).unwrap();
    for event in events {
        wait(event).unwrap();
    }
    for list in results {
        assert_eq!(read::<f32>(list[0]), Ok(vec![11.0, 22.0]));
    }
}

/// # Safety
/// As for `HelioCallback`: an operand and a result of three floats.
unsafe extern "C" fn halve(
    key: u64,
    operands: *const *const c_void,
    results: *const *mut c_void,
    message: *mut c_char,
    capacity: usize,
) -> u32 {
    if key != 7 {
        let text = b"no such key\0";
        assert!(text.len() <= capacity);
        // SAFETY: the plugin has so many bytes written.
        unsafe { message.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        return PJRT_Error_Code_NOT_FOUND;
    }
    // SAFETY: the plugin gives the addresses of three floats each, as the program says.
    let (x, y) = unsafe { (*operands.cast::<*const [f32; 3]>(), *results.cast::<*mut [f32; 3]>()) };
    // SAFETY: as for the addresses.
    unsafe { *y = (*x).map(|x| x / 2.0) };
    0
}

#[test]
fn programs_call_functions_of_the_process() {
    let name = "test_halve";
    // SAFETY: the name has this size, and the function does what it should.
    assert_eq!(unsafe { helio_register_callback(name.as_ptr(), name.len(), Some(halve)) }, 0);
    // SAFETY: null is allowed.
    assert_ne!(unsafe { helio_register_callback(std::ptr::null(), 3, Some(halve)) }, 0);
    let client = client(1);
    let program = |key: u64| {
        let text = format!(
            "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
               %0 = stablehlo.custom_call @test_halve(%x) {{api_version = 4 : i32,
                 mhlo.backend_config = {{key = {key} : ui64}}}} : (tensor<3xf32>) -> tensor<3xf32>
               return %0 : tensor<3xf32>
             }}"
        );
        compile(client, &text, &[]).unwrap()
    };
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    let (results, _) = execute(program(7), &[vec![x]], &[]).unwrap();
    assert_eq!(read::<f32>(results[0][0]), Ok(vec![0.5, 1.0, 1.5]));
    let (results, events) = execute(program(8), &[vec![x]], &[]).unwrap();
    let (code, message) = read::<f32>(results[0][0]).unwrap_err();
    assert_eq!(code, PJRT_Error_Code_NOT_FOUND);
    assert!(message.ends_with("no such key"), "{message}");
    destroy_event(events[0]);
}

#[test]
fn arrays_are_cut_up_among_partitions() {
    let client = client(2);
    let program = "sdy.mesh @mesh = <[\"x\"=2]>
      func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>})
          -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}, tensor<4xf32>) {
        %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\"}]>]
            out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%b: tensor<2xf32>) {
          %1 = stablehlo.reverse %b, dims = [0] : tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        } : (tensor<4xf32>) -> tensor<4xf32>
        %2 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
        return %2, %0 : tensor<4xf32>, tensor<4xf32>
      }";
    let program = compile(client, program, &[0x1a, 2, 0x28, 2]).unwrap();
    let arguments: Vec<Vec<_>> = devices(client)
        .into_iter()
        .zip([[1.0, 2.0], [3.0, 4.0]])
        .map(|(device, x)| vec![floats(client, device, &x)])
        .collect();
    let (results, events) = execute(program, &arguments, &[]).unwrap();
    for event in events {
        wait(event).unwrap();
    }
    // The whole is reversed after its halves have been: 3, 4, 1, 2. A result of which nothing is said
    // stays as it is cut up.
    let lists: Vec<Vec<Vec<f32>>> =
        results.iter().map(|list| list.iter().map(|&each| read(each).unwrap()).collect()).collect();
    assert_eq!(lists[0], [[3.0, 4.0], [2.0, 1.0]]);
    assert_eq!(lists[1], [[1.0, 2.0], [4.0, 3.0]]);
}

/// # Safety
/// The frame is whole: an operand and a result of three floats, and an attribute that is a float.
unsafe extern "C" fn scale(frame: *mut XLA_FFI_CallFrame) -> *mut FfiError {
    // SAFETY: the plugin gives a whole frame.
    let frame = unsafe { &*frame };
    // SAFETY: the program has one attribute, an operand and a result, which are such arrays.
    let (factor, x, y) = unsafe {
        let scalar = &**frame.attrs.attrs.cast::<*const XLA_FFI_Scalar>();
        let x = &**frame.args.args.cast::<*const XLA_FFI_Buffer>();
        let y = &**frame.rets.args.cast::<*const XLA_FFI_Buffer>();
        assert_eq!((x.rank, *x.dims, y.rank, frame.stage), (1, 3, 1, 3));
        (*scalar.value.cast::<f32>(), *x.data.cast::<[f32; 3]>(), y.data.cast::<[f32; 3]>())
    };
    if factor < 0.0 {
        let mut args = XLA_FFI_Error_Create_Args {
            struct_size: size_of::<XLA_FFI_Error_Create_Args>(),
            extension_start: std::ptr::null_mut(),
            message: c"a negative factor".as_ptr(),
            errc: PJRT_Error_Code_OUT_OF_RANGE,
        };
        // SAFETY: the arguments are whole, and so is the table of functions.
        return unsafe { ((*frame.api).error_create)(&mut args) };
    }
    // SAFETY: as for the operand; the result is to be written.
    unsafe { *y = x.map(|x| factor * x) };
    std::ptr::null_mut()
}

#[test]
fn programs_call_handlers_of_xlas_interface() {
    let name = "test_scale";
    // SAFETY: the name has this size, and the handler does what it should.
    assert_eq!(unsafe { helio_register_ffi_handler(name.as_ptr(), name.len(), Some(scale)) }, 0);
    let client = client(1);
    let program = |factor: f32| {
        let text = format!(
            "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
               %0 = stablehlo.custom_call @test_scale(%x) {{api_version = 4 : i32,
                 mhlo.backend_config = {{factor = {factor:?} : f32}}}}
                 : (tensor<3xf32>) -> tensor<3xf32>
               return %0 : tensor<3xf32>
             }}"
        );
        compile(client, &text, &[]).unwrap()
    };
    let x = floats(client, devices(client)[0], &[1.0, 2.0, 3.0]);
    let (results, _) = execute(program(2.5), &[vec![x]], &[]).unwrap();
    assert_eq!(read::<f32>(results[0][0]), Ok(vec![2.5, 5.0, 7.5]));
    let (results, _) = execute(program(-1.0), &[vec![x]], &[]).unwrap();
    let (code, message) = read::<f32>(results[0][0]).unwrap_err();
    assert_eq!(code, PJRT_Error_Code_OUT_OF_RANGE);
    assert!(message.contains("a negative factor"), "{message}");
}
