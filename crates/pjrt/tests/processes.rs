//! Clients of several processes, which are threads here, with a key-value store between them.

mod support;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use helio_pjrt::abi::*;
use helio_pjrt::api;
use helio_pjrt::client::PJRT_Client;
use helio_pjrt::error::PJRT_Error;
use helio_pjrt::raw::{Layout, Out};
use support::*;

/// The sum of two floats of each of two devices, which the options name.
const SUM: &str = "module @sum attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = \"stablehlo.all_reduce\"(%arg0) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}";

/// Options for two replicas on these devices: field 3 { 4: 2, 5: 1, 9: { 1: 2, 2: 1, 3: { 1: device ... } } }.
fn on_devices(devices: [u8; 2]) -> Vec<u8> {
    let ids = [8, devices[0], 8, devices[1]];
    [&[0x1a, 16, 0x20, 2, 0x28, 1, 0x4a, 10, 8, 2, 16, 1, 0x1a, 4][..], &ids].concat()
}

/// What processes keep for each other.
#[derive(Default)]
struct Store {
    values: Mutex<HashMap<String, Vec<u8>>>,
    has_changed: Condvar,
}

/// The last part of a key: which client it is for differs among threads of one process.
fn last(key: Out<u8>, size: usize) -> String {
    text(key, size).rsplit('/').next().unwrap().to_owned()
}

/// Keeps a value.
///
/// # Safety
/// The plugin calls it with the user's argument of a client's maker, the address of a [`Store`].
unsafe extern "C" fn put_value(args: *mut PJRT_KeyValuePutCallback_Args) -> Out<PJRT_Error> {
    // SAFETY: the plugin calls it with arguments that live during the call.
    let args = unsafe { &*args };
    // SAFETY: tests give the address of their store, which lives longer.
    let store = unsafe { &*args.user_arg.cast::<Store>() };
    let value = text(args.value, args.value_size).into_bytes();
    store.values.lock().unwrap().insert(last(args.key, args.key_size), value);
    store.has_changed.notify_all();
    Out::null()
}

/// Gives a value, when it is there.
///
/// # Safety
/// As for [`put_value`].
unsafe extern "C" fn get_value(args: *mut PJRT_KeyValueGetCallback_Args) -> Out<PJRT_Error> {
    // SAFETY: the plugin calls it with arguments that live during the call.
    let args = unsafe { &mut *args };
    // SAFETY: tests give the address of their store, which lives longer.
    let store = unsafe { &*args.user_arg.cast::<Store>() };
    let key = last(args.key, args.key_size);
    // No test waits for as long as users may.
    let wait = Duration::from_millis(args.timeout_in_ms as u64).min(Duration::from_secs(2));
    let values = store.values.lock().unwrap();
    let lacks = |values: &mut HashMap<String, Vec<u8>>| !values.contains_key(&key);
    let (values, _) = store.has_changed.wait_timeout_while(values, wait, lacks).unwrap();
    let Some(value) = values.get(&key) else {
        let message = format!("nobody has kept {key}");
        // SAFETY: the plugin gives a function that makes errors.
        return unsafe { (*args.callback_error)(5, message.as_ptr(), message.len()) };
    };
    let value = Box::leak(value.clone().into_boxed_slice());
    (args.value, args.value_size) = (value.as_mut_ptr(), value.len());
    args.value_deleter_callback = Some(delete);
    Out::null()
}

/// Values leak in tests: what matters is that the plugin calls this with the value's address.
///
/// # Safety
/// It may be called with any address.
unsafe extern "C" fn delete(value: *mut u8) {
    assert!(!value.is_null());
}

/// A client of one of several processes.
fn join(
    store: Option<&Store>,
    rank: i64,
    size: i64,
    devices: i64,
) -> Result<Out<PJRT_Client>, Failure> {
    let numbers = [("node_id", rank), ("num_nodes", size), ("num_devices", devices)];
    let options = numbers.map(|(name, number)| PJRT_NamedValue {
        struct_size: PJRT_NamedValue::SIZE,
        extension_start: std::ptr::null_mut(),
        name: name.as_ptr().cast_mut().cast(),
        name_size: name.len(),
        type_: PJRT_NamedValue_kInt64,
        value: PJRT_NamedValue_Value { int64_value: number },
        value_size: 1,
    });
    let made = call(api().PJRT_Client_Create, |args| {
        (args.create_options, args.num_options) = (list(&options), options.len());
        if let Some(store) = store {
            let store = std::ptr::from_ref(store).cast_mut().cast::<c_void>();
            args.kv_get_callback = Some(get_value);
            args.kv_put_callback = Some(put_value);
            (args.kv_get_user_arg, args.kv_put_user_arg) = (store, store);
        }
    });
    made.map(|args| args.client)
}

fn end(client: Out<PJRT_Client>) {
    call(api().PJRT_Client_Destroy, |args| args.client = given(client)).unwrap();
}

#[test]
fn programs_run_on_devices_of_several_processes() {
    let store = Store::default();
    let process = |rank: i64| {
        let client = join(Some(&store), rank, 2, 2).unwrap();
        let index = call(api().PJRT_Client_ProcessIndex, |args| args.client = given(client));
        assert_eq!(i64::from(index.unwrap().process_index), rank);
        let all = devices(client);
        assert_eq!(all.len(), 4);
        let own = call(api().PJRT_Client_AddressableDevices, |args| args.client = given(client));
        let own = own.unwrap();
        let own = values(own.addressable_devices, own.num_addressable_devices);
        let first = 2 * rank as usize;
        let addresses = |list: &[Out<_>]| list.iter().map(|each| each.as_ptr()).collect::<Vec<_>>();
        assert_eq!(addresses(&own), addresses(&all[first..first + 2]));
        for (id, &device) in all.iter().enumerate() {
            let is_own = (first..first + 2).contains(&id);
            let found = call(api().PJRT_Device_IsAddressable, |args| args.device = given(device));
            assert_eq!(found.unwrap().is_addressable == 1, is_own);
            let local = call(api().PJRT_Device_LocalHardwareId, |args| args.device = given(device));
            let expected = if is_own { (id - first) as i32 } else { -1 };
            assert_eq!(local.unwrap().local_hardware_id, expected);
            let args = call(api().PJRT_Device_GetDescription, |args| args.device = given(device));
            let description = args.unwrap().device_description;
            let process = call(api().PJRT_DeviceDescription_ProcessIndex, |args| {
                args.device_description = given(description);
            });
            assert_eq!(process.unwrap().process_index as usize, id / 2);
            let memory = call(api().PJRT_Device_DefaultMemory, |args| args.device = given(device));
            assert_eq!(memory.is_ok(), is_own);
            if !is_own {
                let x = [1f32];
                let error = put(client, device, (PJRT_Buffer_Type_F32, &[1], &[]), x.as_ptr());
                let (code, message) = error.unwrap_err();
                assert_eq!(code, PJRT_Error_Code_INVALID_ARGUMENT);
                let process = 1 - rank;
                assert_eq!(
                    message,
                    format!("device {id} is in process {process}, and not to be used here")
                );
            }
        }
        // Of each process one device, in either order; then two of one process, where the other has none.
        for (run, pair) in [[0, 2], [3, 1], [2, 1], [2, 3], [0, 1]].into_iter().enumerate() {
            let program = compile(client, SUM, &on_devices(pair)).unwrap();
            let here =
                pair.map(usize::from).into_iter().filter(|id| (first..first + 2).contains(id));
            let here: Vec<usize> = here.collect();
            let args = call(api().PJRT_LoadedExecutable_AddressableDevices, |args| {
                args.executable = given(program);
            });
            let args = args.unwrap();
            let found = values(args.addressable_devices, args.num_addressable_devices);
            let expected: Vec<_> = here.iter().map(|&id| all[id]).collect();
            assert_eq!(addresses(&found), addresses(&expected));
            let arguments = here
                .iter()
                .map(|&id| vec![floats(client, all[id], &[id as f32, (run * 10) as f32])]);
            let arguments: Vec<Vec<_>> = arguments.collect();
            let (results, ends) = execute(program, &arguments, &[]).unwrap();
            ends.into_iter().for_each(|end| wait(end).unwrap());
            for (result, argument) in results.iter().zip(&arguments) {
                let sum = f32::from(pair[0] + pair[1]);
                assert_eq!(read::<f32>(result[0]).unwrap(), [sum, (run * 20) as f32]);
                destroy(result[0]);
                destroy(argument[0]);
            }
            call(api().PJRT_LoadedExecutable_Destroy, |args| args.executable = given(program))
                .unwrap();
        }
        end(client);
    };
    thread::scope(|scope| (0..2).for_each(|rank| drop(scope.spawn(move || process(rank)))));
}

#[test]
fn clients_of_several_processes_need_what_connects_them() {
    let (code, message) = join(None, 0, 2, 1).unwrap_err();
    assert_eq!(code, PJRT_Error_Code_FAILED_PRECONDITION);
    assert!(message.contains("needs a key-value store"), "{message}");
    for (rank, size) in [(2, 2), (0, 0), (0, 1 << 20), (5, 1)] {
        let (code, message) = join(Some(&Store::default()), rank, size, 1).unwrap_err();
        assert_eq!(code, PJRT_Error_Code_INVALID_ARGUMENT);
        assert!(message.contains("(node_id, num_nodes)"), "{message}");
    }
    // Nobody else comes.
    let begin = Instant::now();
    let (code, message) = join(Some(&Store::default()), 1, 2, 1).unwrap_err();
    assert_eq!((code, &*message), (5, "process 0: nobody has kept 0"));
    assert!(begin.elapsed() < Duration::from_secs(60));
    // What stands there is none of ours.
    for value in ["", "1", "x y", "1 helio", "99999999999 helio"] {
        let store = Store::default();
        store.values.lock().unwrap().insert("0".to_owned(), value.as_bytes().to_vec());
        let (code, message) = join(Some(&store), 1, 2, 1).unwrap_err();
        assert_eq!(code, PJRT_Error_Code_INVALID_ARGUMENT);
        assert!(message.contains("process 0"), "{message}");
    }
    let client = join(None, 0, 1, 2).unwrap();
    assert_eq!(devices(client).len(), 2);
    end(client);
}
