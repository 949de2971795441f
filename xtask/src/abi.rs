//! `crates/pjrt/src/abi.rs`: the structs of the PJRT C API and its table of functions.
//!
//! The layout comes from a description in JSON: of each struct its fields in order with their types and
//! its size, and the constants with their values. What a pointer points to is said here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// What pointers point to, by field or by struct and field; the first row that fits. What is not
/// listed is `*mut c_void`, which nobody reads.
///
/// `In` came from the caller, `Out` goes to it.
const POINTERS: &[(&str, &str)] = &[
    ("extension_start", "*mut PJRT_Extension_Base"),
    ("next", "*mut PJRT_Extension_Base"),
    // Handles that are results.
    ("PJRT_Client_Create_Args.client", "Out<PJRT_Client>"),
    ("PJRT_Client_TopologyDescription_Args.topology", "Out<PJRT_TopologyDescription>"),
    ("PJRT_TopologyDescription_Create_Args.topology", "Out<PJRT_TopologyDescription>"),
    ("PJRT_TopologyDescription_Deserialize_Args.topology", "Out<PJRT_TopologyDescription>"),
    ("PJRT_Client_LookupDevice_Args.device", "Out<PJRT_Device>"),
    ("PJRT_Buffer_Device_Args.device", "Out<PJRT_Device>"),
    ("PJRT_Buffer_Memory_Args.memory", "Out<PJRT_Memory>"),
    ("PJRT_Device_DefaultMemory_Args.memory", "Out<PJRT_Memory>"),
    ("PJRT_Client_BufferFromHostBuffer_Args.buffer", "Out<PJRT_Buffer>"),
    ("PJRT_Client_CreateErrorBuffer_Args.buffer", "Out<PJRT_Buffer>"),
    ("PJRT_Client_CreateUninitializedBuffer_Args.buffer", "Out<PJRT_Buffer>"),
    ("PJRT_Client_CreateViewOfDeviceBuffer_Args.buffer", "Out<PJRT_Buffer>"),
    ("PJRT_Client_Compile_Args.executable", "Out<PJRT_LoadedExecutable>"),
    ("PJRT_Compile_Args.executable", "Out<PJRT_Executable>"),
    ("PJRT_LoadedExecutable_GetExecutable_Args.executable", "Out<PJRT_Executable>"),
    ("PJRT_LoadedExecutable_GetExecutable_Args.loaded_executable", "In<PJRT_LoadedExecutable>"),
    ("loaded_executable", "Out<PJRT_LoadedExecutable>"),
    ("PJRT_Device_GetDescription_Args.device_description", "Out<PJRT_DeviceDescription>"),
    ("PJRT_Event_Error_Args.event", "In<PJRT_Event>"),
    ("PJRT_Event_Destroy_Args.event", "In<PJRT_Event>"),
    ("PJRT_Event_IsReady_Args.event", "In<PJRT_Event>"),
    ("PJRT_Event_Await_Args.event", "In<PJRT_Event>"),
    ("PJRT_Event_OnReady_Args.event", "In<PJRT_Event>"),
    ("PJRT_Event_Set_Args.event", "In<PJRT_Event>"),
    ("PJRT_AsyncTrackingEvent_Destroy_Args.event", "*mut c_void"),
    ("PJRT_Device_CreateAsyncTrackingEvent_Args.event", "*mut c_void"),
    ("PJRT_Buffer_CopyRawToHostFuture_Args.event", "Out<PJRT_Event>"),
    ("event", "Out<PJRT_Event>"),
    ("done_with_host_buffer", "Out<PJRT_Event>"),
    ("dst_buffer", "Out<PJRT_Buffer>"),
    ("out_buffer", "Out<PJRT_Buffer>"),
    ("addressable_device", "Out<PJRT_Device>"),
    ("PJRT_ExecuteContext_Create_Args.context", "Out<PJRT_ExecuteContext>"),
    ("PJRT_ExecuteContext_Destroy_Args.context", "In<PJRT_ExecuteContext>"),
    ("PJRT_Layouts_MemoryLayout_Destroy_Args.layout", "In<PJRT_Layouts_MemoryLayout>"),
    ("PJRT_Layouts_MemoryLayout_Serialize_Args.layout", "In<PJRT_Layouts_MemoryLayout>"),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args.layout", "Out<PJRT_Layouts_MemoryLayout>"),
    ("PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args.layout", "Out<PJRT_Layouts_MemoryLayout>"),
    ("PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args.layout", "Out<PJRT_Layouts_MemoryLayout>"),
    ("layouts", "Out<Out<PJRT_Layouts_MemoryLayout>>"),
    // Lists that are results.
    ("devices", "Out<Out<PJRT_Device>>"),
    ("addressable_devices", "Out<Out<PJRT_Device>>"),
    ("addressable_memories", "Out<Out<PJRT_Memory>>"),
    ("memories", "Out<Out<PJRT_Memory>>"),
    ("descriptions", "Out<Out<PJRT_DeviceDescription>>"),
    ("PJRT_Device_GetAttributes_Args.device_attributes", "Out<PJRT_Device_Attributes>"),
    (
        "PJRT_Device_GetAttributes_Args.attributes_deleter",
        "Option<unsafe extern \"C\" fn(*mut PJRT_Device_Attributes)>",
    ),
    ("attributes", "Out<PJRT_NamedValue>"),
    ("properties", "Out<PJRT_NamedValue>"),
    ("output_types", "Out<u32>"),
    ("dim_sizes", "Out<usize>"),
    ("PJRT_Executable_OutputDimensions_Args.dims", "Out<i64>"),
    ("PJRT_Buffer_Dimensions_Args.dims", "Out<i64>"),
    ("unpadded_dims", "Out<i64>"),
    ("dynamic_dim_indices", "Out<usize>"),
    ("memory_kinds", "Out<Out<u8>>"),
    ("memory_kind_sizes", "Out<usize>"),
    ("shardings", "Out<Out<u8>>"),
    ("sharding_sizes", "Out<usize>"),
    ("addressable_device_logical_ids", "Out<PJRT_LogicalDeviceIds>"),
    ("PJRT_Error_Message_Args.message", "Out<u8>"),
    ("platform_name", "Out<u8>"),
    ("platform_version", "Out<u8>"),
    ("device_kind", "Out<u8>"),
    ("debug_string", "Out<u8>"),
    ("to_string", "Out<u8>"),
    ("kind", "Out<u8>"),
    ("executable_name", "Out<u8>"),
    ("executable_fingerprint", "Out<u8>"),
    ("serialized_bytes", "Out<u8>"),
    ("serialized_compile_options", "Out<PJRT_Bytes>"),
    ("serialized_compile_options_deleter", "Option<unsafe extern \"C\" fn(*mut PJRT_Bytes)>"),
    ("PJRT_Executable_Serialize_Args.serialized_executable", "Out<PJRT_Bytes>"),
    ("serialized_executable_deleter", "Option<unsafe extern \"C\" fn(*mut PJRT_Bytes)>"),
    ("serialized_device_assignment", "Out<PJRT_Bytes>"),
    ("serialized_device_assignment_deleter", "Option<unsafe extern \"C\" fn(*mut PJRT_Bytes)>"),
    ("PJRT_TopologyDescription_Serialize_Args.serialized_topology", "Out<PJRT_Bytes>"),
    ("serialized_topology_deleter", "Option<unsafe extern \"C\" fn(*mut PJRT_Bytes)>"),
    ("serialized_layout", "Out<PJRT_Bytes>"),
    ("serialized_layout_deleter", "Option<unsafe extern \"C\" fn(*mut PJRT_Bytes)>"),
    ("device_memory_ptr", "*mut c_void"),
    // Handles that are given.
    ("error", "In<PJRT_Error>"),
    ("client", "In<PJRT_Client>"),
    ("topology", "In<PJRT_TopologyDescription>"),
    ("topology_description", "In<PJRT_TopologyDescription>"),
    ("device", "In<PJRT_Device>"),
    ("execute_device", "In<PJRT_Device>"),
    ("dst_device", "In<PJRT_Device>"),
    ("device_description", "In<PJRT_DeviceDescription>"),
    ("memory", "In<PJRT_Memory>"),
    ("dst_memory", "In<PJRT_Memory>"),
    ("buffer", "In<PJRT_Buffer>"),
    ("src", "In<PJRT_Buffer>"),
    ("PJRT_LoadedExecutable_.executable", "In<PJRT_LoadedExecutable>"),
    ("executable", "In<PJRT_Executable>"),
    // Lists and bytes that are given.
    ("create_options", "In<PJRT_NamedValue>"),
    ("dims", "In<i64>"),
    ("shape_dims", "In<i64>"),
    ("byte_strides", "In<i64>"),
    ("minor_to_major", "In<i64>"),
    ("non_donatable_input_indices", "In<i64>"),
    ("device_layout", "In<PJRT_Buffer_MemoryLayout>"),
    ("host_layout", "In<PJRT_Buffer_MemoryLayout>"),
    ("compile_options", "In<u8>"),
    ("overridden_serialized_compile_options", "In<u8>"),
    ("serialized_executable", "In<u8>"),
    ("topology_name", "In<u8>"),
    ("error_message", "In<u8>"),
    ("target_name", "In<u8>"),
    ("PJRT_Client_Compile_Args.program", "In<PJRT_Program>"),
    ("PJRT_Compile_Args.program", "In<PJRT_Program>"),
    ("PJRT_Executable_OptimizedProgram_Args.program", "*mut PJRT_Program"),
    ("options", "In<PJRT_ExecuteOptions>"),
    ("argument_lists", "In<In<In<PJRT_Buffer>>>"),
    ("output_lists", "In<*mut Out<PJRT_Buffer>>"),
    ("device_complete_events", "*mut Out<PJRT_Event>"),
    ("default_assignment", "*mut i32"),
    ("PJRT_Layouts_Extension.", FUNCTION),
    ("PJRT_Shardings_Extension.", FUNCTION),
    ("kv_get_callback", "Option<Function<PJRT_KeyValueGetCallback_Args>>"),
    ("kv_put_callback", "Option<Function<PJRT_KeyValuePutCallback_Args>>"),
    ("callback_error", "*const CallbackError"),
    ("value_deleter_callback", "Option<unsafe extern \"C\" fn(*mut u8)>"),
    ("PJRT_KeyValue.key", "Out<u8>"),
    ("PJRT_KeyValuePut.value", "Out<u8>"),
    ("PJRT_KeyValueGet.value", "*mut u8"),
    ("PJRT_KeyValueTryGet.value", "*mut u8"),
    ("on_delete_callback", "Option<unsafe extern \"C\" fn(*mut c_void, *mut c_void)>"),
    (
        "PJRT_Event_OnReady_Args.callback",
        "Option<unsafe extern \"C\" fn(Out<PJRT_Error>, *mut c_void)>",
    ),
];

/// Fields of 64 bits that are numbers; all others are sizes.
const NUMBERS: &[&str] = &["fingerprint", "buffer_pointer", "incarnation_id"];

/// A function of an extension, which takes the struct of its name with `_Args`.
const FUNCTION: &str = "fn";

/// Structs that have grown: how many of their bytes a caller must at least have. They are passed on
/// with zeros for the rest. All others must be whole.
const GROWN: &[(&str, &str, &str)] = &[
    // Struct, the first field that older callers lack, and why zero does for it.
    ("PJRT_Client_Create_Args", "kv_try_get_callback", "no such callback"),
    ("PJRT_ExecuteOptions", "context", "no context"),
    ("PJRT_Device_MemoryStats_Args", "pool_bytes", "what is not written is not read"),
    ("PJRT_Executable_GetCompiledMemoryStats_Args", "peak_memory_in_bytes", "not read"),
    ("PJRT_Executable_DeserializeAndLoad_Args", "overridden_serialized_compile_options", "none"),
    ("PJRT_Client_CreateErrorBuffer_Args", "payload", "no payload"),
    ("PJRT_Device_PoisonExecution_Args", "payload", "no payload"),
];

/// Structs that functions are called with or refer to; of the others, no function here is.
fn is_wanted(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "PJRT_Tpu",
        "PJRT_Megascale",
        "PJRT_Triton",
        "PJRT_Gpu",
        "PJRT_Collectives",
        "PJRT_MultiSlice",
        "PJRT_PhaseCompile",
        "PJRT_RawBuffer",
        "PJRT_Xla",
        "PJRT_Clear",
        "PJRT_Register",
        "PJRT_DeviceEvent",
        "PJRT_AbiVersion",
        "PJRT_RuntimeAbi",
        "PJRT_ExecutableAbi",
        "PJRT_Callback",
        "PJRT_Custom",
        "PJRT_Profiler",
        "PJRT_Stream",
        "PJRT_Wait",
        "PJRT_Get_",
        "PJRT_CrossHost",
        "PJRT_HostAlloc",
        "PJRT_HostMem",
        "PJRT_ExecutableMetadata",
        "PJRT_Transfer",
        "PJRT_Error_FunctionTable",
        "PJRT_Memory_FunctionTable",
        "PJRT_MemoryDescription",
        "PJRT_DeviceDescription_MemoryDesc",
        "PJRT_FFI",
        "PJRT_Client_RuntimeAbi",
        "PJRT_Executable_GetAbi",
        "PJRT_LoadedExecutable_GetAbi",
        "PJRT_Example",
    ];
    // What is defined by hand.
    const HANDLES: &[&str] = &["PJRT_Error", "PJRT_Memory"];
    let has_prefix = OTHERS.iter().any(|prefix| name.starts_with(prefix));
    !has_prefix
        && !HANDLES.contains(&name)
        && (name.starts_with("PJRT_") || UNIONS.iter().any(|u| u.0 == name))
}

/// Unions, which C leaves without a name: what the description calls them, and we.
const UNIONS: &[(&str, &str)] =
    &[("_Anon1", "PJRT_NamedValue_Value"), ("_Anon2", "PJRT_Buffer_MemoryLayout_Value")];

/// Reads the description and writes the module. Errors: the file, or what is missing in it.
pub(crate) fn write(description: &Path) -> Result<(), String> {
    let text =
        fs::read_to_string(description).map_err(|e| format!("{}: {e}", description.display()))?;
    let description: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let text = module(&description)?;
    let path = crate::root().join("crates/pjrt/src/abi.rs");
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// A struct of the description.
struct Struct<'a> {
    name: &'a str,
    is_union: bool,
    size: u64,
    fields: Vec<(&'a str, &'a str)>,
}

fn module(description: &Value) -> Result<String, String> {
    let missing = |what: &str| format!("the description has no {what}");
    let structs = description["structs"].as_object().ok_or_else(|| missing("structs"))?;
    let version = description["version"].as_str().ok_or_else(|| missing("version"))?;
    let constants = constants(&description["constants"]).ok_or_else(|| missing("constants"))?;
    let mut read = Vec::new();
    for (name, value) in structs {
        if is_wanted(name) {
            read.push(structure(name, value).ok_or_else(|| missing(name))?);
        }
    }
    let mut out = format!(
        "//! The structs of the PJRT C API {version} and its table of functions.\n//!\n\
         //! Written by `cargo xtask abi`; do not edit. Names are those of the API.\n\
         #![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]\n#![allow(unused_qualifications)]\n\n\
         use std::ffi::c_void;\nuse std::mem::{{offset_of, size_of}};\n\n\
         use crate::handles::*;\nuse crate::raw::{{CallbackError, Function, In, Layout, Out}};\n\n"
    );
    for (name, value) in &constants {
        // What is named as a function is its place in the table.
        let is_function = structs.contains_key(&format!("{name}_Args"));
        if !name.ends_with("_STRUCT_SIZE") && !is_function && is_wanted(name) {
            let ty = if name.starts_with("PJRT_API_") { "i32" } else { "u32" };
            let _ = writeln!(out, "pub const {name}: {ty} = {value};");
        }
    }
    for each in &read {
        if each.name != "PJRT_Api" {
            out += &definition(each, &constants)?;
        }
    }
    let api = read.iter().find(|s| s.name == "PJRT_Api").ok_or_else(|| missing("PJRT_Api"))?;
    out += &table(api);
    Ok(out)
}

fn constants(value: &Value) -> Option<BTreeMap<&str, &str>> {
    value.as_array()?.iter().map(|row| Some((row[0].as_str()?, row[2].as_str()?))).collect()
}

fn structure<'a>(name: &'a str, value: &'a Value) -> Option<Struct<'a>> {
    let field = |field: &'a Value| Some((field[0].as_str()?, field[1].as_str()?));
    Some(Struct {
        name,
        is_union: value["kind"] == "union",
        size: value["size"].as_u64()?,
        fields: value["fields"].as_array()?.iter().map(field).collect::<Option<_>>()?,
    })
}

/// The Rust name of a type or field.
fn renamed(name: &str) -> String {
    let union = UNIONS.iter().find(|union| union.0 == name);
    match union {
        Some(union) => union.1.to_owned(),
        None if name.starts_with("_anon") => "value".to_owned(),
        None => name.to_owned(),
    }
}

fn field_type(owner: &str, field: &str, ty: &str) -> String {
    match ty {
        "ptr" => {
            let fits = |row: &&(&str, &str)| match row.0.split_once('.') {
                Some((of, "")) => owner == of,
                Some((of, name)) => name == field && owner.starts_with(of),
                None => row.0 == field,
            };
            match POINTERS.iter().find(fits).map_or("*mut c_void", |row| row.1) {
                FUNCTION => format!("Function<{field}_Args>"),
                ty => ty.to_owned(),
            }
        }
        // A value that C did not write may be anything.
        "bool" => "u8".to_owned(),
        "u64" if !NUMBERS.contains(&field) => "usize".to_owned(),
        other => renamed(other),
    }
}

fn definition(each: &Struct<'_>, constants: &BTreeMap<&str, &str>) -> Result<String, String> {
    let name = renamed(each.name);
    let keyword = if each.is_union { "union" } else { "struct" };
    let mut out = format!("\n#[repr(C)]\n#[derive(Clone, Copy)]\npub {keyword} {name} {{\n");
    for (field, ty) in &each.fields {
        let _ = writeln!(out, "    pub {}: {},", renamed(field), field_type(each.name, field, ty));
    }
    let size = each.size;
    let _ = writeln!(out, "}}\n\nconst _: () = assert!(size_of::<{name}>() == {size});");
    if each.fields.first().is_some_and(|field| field.0 == "struct_size") {
        let stated = constants.get(format!("{name}_STRUCT_SIZE").as_str());
        let whole = stated.ok_or_else(|| format!("the description has no size of {name}"))?;
        let least = match GROWN.iter().find(|row| row.0 == each.name) {
            Some(row) => format!("offset_of!({name}, {})", row.1),
            None => (*whole).to_owned(),
        };
        let _ = writeln!(
            out,
            "\n// SAFETY: it is C's struct, of integers and pointers that may all be zero, and begins\n\
             // with its size.\nunsafe impl Layout for {name} {{\n    \
             const NAME: &'static str = \"{name}\";\n    const SIZE: usize = {whole};\n    \
             const LEAST: usize = {least};\n}}"
        );
    }
    Ok(out)
}

/// The table, and a macro that goes through its functions in order.
fn table(api: &Struct<'_>) -> String {
    let (mut slots, mut rows) = (String::new(), String::new());
    for (name, ty) in &api.fields {
        if *ty != "ptr" || *name == "extension_start" {
            let _ = writeln!(slots, "    pub {name}: {},", field_type(api.name, name, ty));
            continue;
        }
        // These two cannot fail, and are no functions like the others.
        let is_infallible = matches!(*name, "PJRT_Error_Destroy" | "PJRT_Error_Message");
        let ty = match is_infallible {
            true => format!("unsafe extern \"C\" fn(*mut {name}_Args)"),
            false => format!("Function<{name}_Args>"),
        };
        let _ = writeln!(slots, "    pub {name}: {ty},");
        if !is_infallible {
            let _ = writeln!(rows, "            {name}: {name}_Args,");
        }
    }
    format!(
        "\n#[repr(C)]\n#[derive(Clone, Copy)]\npub struct PJRT_Api {{\n{slots}}}\n\n\
         const _: () = assert!(size_of::<PJRT_Api>() == {});\n\n\
         /// Calls the macro with each function of the table that can fail, and its arguments.\n\
         #[macro_export]\nmacro_rules! for_each_function {{\n    ($with:ident) => {{\n        $with! {{\n{rows}        }}\n    \
         }};\n}}\n",
        api.size
    )
}
