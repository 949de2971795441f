//! Executables: programs compiled, and what callers ask of them.
#![allow(non_camel_case_types)]

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use helio::ir::ArrayShape;
use helio::{CompileOptions, DeviceAssignment, Error, Executable, MemoryKind, Result, RunOptions};
use prost::Message;

use crate::abi::*;
use crate::callback::Held;
use crate::client::{PJRT_Device, Shared};
use crate::cost::Cost;
use crate::extensions::Sharded;
use crate::named::NamedValues;
use crate::options::{self, AssignmentProto};
use crate::peers::Part;
use crate::program::{self, WithConfig};
use crate::raw::{Call, In, Out, give_bytes};
use crate::{element, error};

/// A program compiled.
pub struct PJRT_Executable {
    pub(crate) compiled: Arc<Compiled>,
}

/// A program compiled that can be executed.
pub struct PJRT_LoadedExecutable {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) is_deleted: AtomicBool,
}

/// A program compiled, with all that can be asked of it.
pub(crate) struct Compiled {
    pub(crate) shared: Arc<Shared>,
    pub(crate) executable: Executable,
    /// The devices that run it, by id, in all processes.
    pub(crate) assignment: DeviceAssignment,
    /// What surrounds its runs, if some of these devices are in other processes.
    pub(crate) run: Option<RunOptions>,
    /// The program and its options as they were given, by which it is made again.
    source: Source,
    /// Whether it may run on any device.
    pub(crate) is_portable: bool,
    /// Whether it takes less time than handing it to another thread does.
    pub(crate) is_brief: bool,
    pub(crate) outputs: Vec<Output>,
    /// The numbers of the arguments that are tokens: callers pass a buffer, of which nothing is read.
    pub(crate) token_arguments: Vec<usize>,
    lists: Lists,
    /// Those of this process.
    pub(crate) devices: Vec<Out<PJRT_Device>>,
    logical_ids: Vec<PJRT_LogicalDeviceIds>,
    fingerprint: String,
    costs: NamedValues,
    pub(crate) sharded: Sharded,
    /// The functions of the process that it calls.
    pub(crate) held: Option<Arc<Held>>,
    optimized: OnceLock<Result<Vec<u8>>>,
}

/// What is known of a result.
pub(crate) struct Output {
    /// Whether it is a token, which is no array.
    pub(crate) is_token: bool,
    pub(crate) dims: Arc<[i64]>,
    pub(crate) kind: MemoryKind,
}

/// Lists about arguments and results in the form in which callers read them.
struct Lists {
    output_types: Vec<u32>,
    output_dims: Vec<i64>,
    output_ranks: Vec<usize>,
    output_kinds: (Vec<Out<u8>>, Vec<usize>),
    argument_kinds: (Vec<Out<u8>>, Vec<usize>),
}

/// A program as it was given. In serialized executables it is this message.
#[derive(Clone, PartialEq, Message)]
struct Source {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(bytes = "vec", tag = "3")]
    code: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    options: Vec<u8>,
}

/// The same number for the same lists of bytes, in every process.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    // With keys that never change.
    let mut hasher = std::hash::DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// The arrays among the parts of these shapes.
fn arrays<'s>(shapes: impl Iterator<Item = &'s helio::Shape>) -> Vec<&'s ArrayShape> {
    shapes.flat_map(helio::Shape::leaves).filter_map(helio::Shape::as_array).collect()
}

/// The rank of each part of these shapes, tuples taken apart; 0 of a token.
fn ranks(shapes: &[helio::Shape]) -> Vec<usize> {
    let leaves = shapes.iter().flat_map(helio::Shape::leaves);
    leaves.map(|shape| shape.as_array().map_or(0, |array| array.dims().len())).collect()
}

impl Compiled {
    fn new(shared: &Arc<Shared>, source: Source) -> Result<Arc<Self>> {
        let given = options::CompileOptions::read(&source.options)?;
        let mut options = CompileOptions::default();
        let assignment = given.assignment()?;
        let Part { assignment: part, run, is_here } = shared.part(&assignment)?;
        options.assignment = Some(part.clone());
        options.subnormals = given.subnormals()?;
        let program = program::read(&source.format, &source.code, assignment.partitions())?;
        let (memories, tilings) = (program.memories, program.tilings);
        let executable = shared.client.compile(program.module, &options);
        let executable = executable.map_err(|errors| error::joined(&errors))?;
        let shape = executable.program_shape();
        let parameters = arrays(shape.params.iter());
        let results = arrays(std::iter::once(&shape.result));
        let result_leaves = shape.result.leaves();
        let is_token = |shape: &&helio::Shape| shape.as_array().is_none();
        let arguments = shape.params.iter().flat_map(helio::Shape::leaves).enumerate();
        let token_arguments = arguments.filter(|(_, shape)| is_token(shape)).map(|(i, _)| i);
        let token_arguments: Vec<usize> = token_arguments.collect();
        if let Some(dynamic) = results.iter().find(|shape| !shape.is_static()) {
            let detail = format!("a result of {dynamic}, whose size is known only at run time");
            return Err(Error::unimplemented(detail));
        }
        let kind = |kinds: &[Option<MemoryKind>], i: usize| {
            kinds.get(i).copied().flatten().unwrap_or_default()
        };
        let output = |(i, shape): (usize, &&helio::Shape)| Output {
            is_token: is_token(shape),
            dims: shape.as_array().map_or(Vec::new(), element::dims).into(),
            kind: kind(&memories.results, i),
        };
        let outputs: Vec<Output> = result_leaves.iter().enumerate().map(output).collect();
        let argument_kinds =
            (0..parameters.len() + token_arguments.len()).map(|i| kind(&memories.arguments, i));
        let element_type = |shape: &&helio::Shape| match shape.as_array() {
            Some(array) => element::number(array.element()),
            None => PJRT_Buffer_Type_TOKEN,
        };
        let lists = Lists {
            output_types: result_leaves.iter().map(element_type).collect(),
            output_dims: outputs.iter().flat_map(|output| output.dims.iter().copied()).collect(),
            output_ranks: outputs.iter().map(|output| output.dims.len()).collect(),
            output_kinds: names(outputs.iter().map(|output| output.kind)),
            argument_kinds: names(argument_kinds),
        };
        let participants = assignment.participants();
        let result_ranks = ranks(std::slice::from_ref(&shape.result));
        let cost = Cost::of(executable.module());
        let count_here = if is_here { part.devices().len() } else { 0 };
        let devices = part.devices().iter().take(count_here);
        let devices = devices.map(|&number| Out::of(shared.own_device(number)));
        let logical_ids = part.here().take(count_here).map(|participant| PJRT_LogicalDeviceIds {
            replica: (participant / assignment.partitions()) as i32,
            partition: (participant % assignment.partitions()) as i32,
        });
        let fingerprint = hash(&[source.format.as_bytes(), &source.code, &source.options]);
        Ok(Arc::new(Compiled {
            shared: shared.clone(),
            is_portable: given.is_portable() && assignment.participants() == 1,
            is_brief: cost.is_brief(),
            lists,
            devices: devices.collect(),
            logical_ids: logical_ids.collect(),
            fingerprint: format!("helio-{}-{fingerprint:016x}", env!("CARGO_PKG_VERSION")),
            costs: cost.named(),
            sharded: Sharded::of(&ranks(&shape.params), &result_ranks, &tilings, participants),
            held: Held::of(executable.module()),
            optimized: OnceLock::new(),
            outputs,
            token_arguments,
            assignment,
            run,
            executable,
            source,
        }))
    }

    /// The device of a participant: the one that it was executed on, if the caller has said one.
    pub(crate) fn device<'a>(
        &'a self,
        participant: usize,
        said: Option<&'a PJRT_Device>,
    ) -> &'a PJRT_Device {
        let assigned = self.executable.assignment().devices()[participant];
        said.unwrap_or_else(|| self.shared.own_device(assigned))
    }

    /// The program as `xla.HloModuleProtoWithConfig`.
    fn optimized(&self) -> Result<&[u8]> {
        let made = self
            .optimized
            .get_or_init(|| Ok(WithConfig::of(self.executable.module())?.encode_to_vec()));
        made.as_deref().map_err(Clone::clone)
    }
}

/// The names of memory kinds, which live as long as the process.
fn names(kinds: impl Iterator<Item = MemoryKind>) -> (Vec<Out<u8>>, Vec<usize>) {
    kinds.map(|kind| Out::text(kind.name())).unzip()
}

/// Compiles a program for a client.
///
/// # Safety
/// The options have `size` bytes unless they are null.
unsafe fn compile(
    shared: &Arc<Shared>,
    program: In<PJRT_Program>,
    (options, size): (In<u8>, usize),
) -> Result<Arc<Compiled>> {
    let program = program.get("a program")?;
    // SAFETY: the header says that the name has this size, and the program lives during the call.
    let format = unsafe { In::<u8>::new(program.format.cast()) };
    // SAFETY: as for the name itself.
    let format = unsafe { format.text(program.format_size, "a program's format")? };
    // SAFETY: the header says that the code has this size, and the program lives during the call.
    let code = unsafe { In::<u8>::new(program.code.cast()) };
    // SAFETY: as for the code itself.
    let code = unsafe { code.slice(program.code_size, "bytes of a program")? };
    // SAFETY: the promise of the caller.
    let options = unsafe { options.slice(size, "bytes of compile options")? };
    let source = Source {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        format: format.to_owned(),
        code: code.to_vec(),
        options: options.to_vec(),
    };
    Compiled::new(shared, source)
}

/// Gives an executable to the caller.
fn load(compiled: Arc<Compiled>) -> Out<PJRT_LoadedExecutable> {
    Out::give(PJRT_LoadedExecutable { compiled, is_deleted: AtomicBool::new(false) })
}

impl Call for PJRT_Client_Compile_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let shared = &client.get("a client")?.shared;
        let options = (self.compile_options, self.compile_options_size);
        // SAFETY: the header says that the options have this size.
        self.executable = load(unsafe { compile(shared, self.program, options)? });
        Ok(())
    }
}

impl Call for PJRT_Compile_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let shared = &client.get("a client, for which the program is compiled,")?.shared;
        let options = (self.compile_options, self.compile_options_size);
        // SAFETY: the header says that the options have this size.
        let compiled = unsafe { compile(shared, self.program, options)? };
        self.executable = Out::give(PJRT_Executable { compiled });
        Ok(())
    }
}

impl Call for PJRT_Client_Load_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        self.loaded_executable = load(executable.get("an executable")?.compiled.clone());
        Ok(())
    }
}

impl Call for PJRT_Executable_Serialize_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let bytes = executable.get("an executable")?.compiled.source.encode_to_vec();
        (
            self.serialized_bytes,
            self.serialized_bytes_size,
            self.serialized_executable,
            self.serialized_executable_deleter,
        ) = give_bytes(bytes);
        Ok(())
    }
}

impl Call for PJRT_Executable_DeserializeAndLoad_Args {
    fn call(&mut self) -> Result<()> {
        let (client, bytes) = (self.client, self.serialized_executable);
        let options = self.overridden_serialized_compile_options;
        let shared = &client.get("a client")?.shared;
        // SAFETY: the header says that there are so many bytes.
        let bytes =
            unsafe { bytes.slice(self.serialized_executable_size, "bytes of an executable")? };
        let source = Source::decode(bytes)
            .map_err(|e| Error::invalid(format!("no serialized executable of helio: {e}")))?;
        let (found, ours) = (&source.version, env!("CARGO_PKG_VERSION"));
        if found != ours {
            return Err(Error::invalid(format!("an executable of helio {found}; this is {ours}")));
        }
        let size = self.overridden_serialized_compile_options_size;
        // SAFETY: the header says that the options have this size.
        let options = unsafe { options.slice(size, "bytes of compile options")? };
        let source = match options {
            [] => source,
            options => Source { options: options.to_vec(), ..source },
        };
        self.loaded_executable = load(Compiled::new(shared, source)?);
        Ok(())
    }
}

impl Call for PJRT_Executable_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: executables are given as boxes, and the caller gives this one up.
        drop(unsafe { self.executable.take() });
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: executables are given as boxes, and the caller gives this one up.
        drop(unsafe { self.executable.take() });
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_GetExecutable_Args {
    fn call(&mut self) -> Result<()> {
        let loaded = self.loaded_executable;
        let compiled = loaded.get("an executable")?.compiled.clone();
        self.executable = Out::give(PJRT_Executable { compiled });
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_Delete_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        executable.get("an executable")?.is_deleted.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_IsDeleted_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let is_deleted = executable.get("an executable")?.is_deleted.load(Ordering::Relaxed);
        self.is_deleted = is_deleted.into();
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_AddressableDevices_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let devices = &executable.get("an executable")?.compiled.devices;
        (self.addressable_devices, self.num_addressable_devices) =
            (Out::list(devices), devices.len());
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let ids = &executable.get("an executable")?.compiled.logical_ids;
        self.addressable_device_logical_ids = Out::list(ids);
        self.num_addressable_device_logical_ids = ids.len();
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_GetDeviceAssignment_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let compiled = &executable.get("an executable")?.compiled;
        let proto = AssignmentProto::of(&compiled.assignment);
        (
            self.serialized_bytes,
            self.serialized_bytes_size,
            self.serialized_device_assignment,
            self.serialized_device_assignment_deleter,
        ) = give_bytes(proto.encode_to_vec());
        Ok(())
    }
}

impl Call for PJRT_LoadedExecutable_Fingerprint_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let text = &executable.get("an executable")?.compiled.fingerprint;
        (self.executable_fingerprint, self.executable_fingerprint_size) = Out::text(text);
        Ok(())
    }
}

impl Call for PJRT_Executable_Fingerprint_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let text = &executable.get("an executable")?.compiled.fingerprint;
        (self.executable_fingerprint, self.executable_fingerprint_size) = Out::text(text);
        Ok(())
    }
}

impl Call for PJRT_Executable_Name_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let name = &executable.get("an executable")?.compiled.executable.module().name;
        (self.executable_name, self.executable_name_size) = Out::text(name);
        Ok(())
    }
}

impl Call for PJRT_Executable_NumReplicas_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let compiled = &executable.get("an executable")?.compiled;
        self.num_replicas = compiled.executable.assignment().replicas();
        Ok(())
    }
}

impl Call for PJRT_Executable_NumPartitions_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let compiled = &executable.get("an executable")?.compiled;
        self.num_partitions = compiled.executable.assignment().partitions();
        Ok(())
    }
}

impl Call for PJRT_Executable_NumOutputs_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        self.num_outputs = executable.get("an executable")?.compiled.outputs.len();
        Ok(())
    }
}

impl Call for PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
    fn call(&mut self) -> Result<()> {
        // What its kernels take is not told apart from the program's other tables.
        self.size_in_bytes = 0;
        Ok(())
    }
}

impl Call for PJRT_Executable_OutputElementTypes_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let types = &executable.get("an executable")?.compiled.lists.output_types;
        (self.output_types, self.num_output_types) = (Out::list(types), types.len());
        Ok(())
    }
}

impl Call for PJRT_Executable_OutputDimensions_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let lists = &executable.get("an executable")?.compiled.lists;
        self.num_outputs = lists.output_ranks.len();
        (self.dims, self.dim_sizes) =
            (Out::list(&lists.output_dims), Out::list(&lists.output_ranks));
        Ok(())
    }
}

impl Call for PJRT_Executable_OutputMemoryKinds_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let (names, sizes) = &executable.get("an executable")?.compiled.lists.output_kinds;
        self.num_outputs = names.len();
        (self.memory_kinds, self.memory_kind_sizes) = (Out::list(names), Out::list(sizes));
        Ok(())
    }
}

impl Call for PJRT_Executable_ParameterMemoryKinds_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let (names, sizes) = &executable.get("an executable")?.compiled.lists.argument_kinds;
        self.num_parameters = names.len();
        (self.memory_kinds, self.memory_kind_sizes) = (Out::list(names), Out::list(sizes));
        Ok(())
    }
}

impl Call for PJRT_Executable_GetCostAnalysis_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        (self.properties, self.num_properties) =
            executable.get("an executable")?.compiled.costs.lend();
        Ok(())
    }
}

impl Call for PJRT_Executable_GetCompileOptions_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let options = executable.get("an executable")?.compiled.source.options.clone();
        (
            self.serialized_bytes,
            self.serialized_bytes_size,
            self.serialized_compile_options,
            self.serialized_compile_options_deleter,
        ) = give_bytes(options);
        Ok(())
    }
}

impl Call for PJRT_Executable_GetCompiledMemoryStats_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let compiled = &executable.get("an executable")?.compiled;
        let shape = compiled.executable.program_shape();
        let bytes = |arrays: Vec<&ArrayShape>| arrays.iter().map(|array| array.size_bytes()).sum();
        let arguments: usize = bytes(arrays(shape.params.iter()));
        let results: usize = bytes(arrays(std::iter::once(&shape.result)));
        let plan = compiled.executable.memory_plan();
        // Blocks are those of results and of what loops carry.
        let run = plan.as_ref().map_or(0, |plan| plan.run_bytes());
        let peak = plan.as_ref().map_or(arguments + results, |plan| plan.peak_bytes());
        let number = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.generated_code_size_in_bytes = 0;
        self.argument_size_in_bytes = number(arguments);
        self.output_size_in_bytes = number(results);
        self.alias_size_in_bytes = 0;
        self.temp_size_in_bytes = number(run.saturating_sub(results));
        self.host_generated_code_size_in_bytes = 0;
        self.host_argument_size_in_bytes = 0;
        self.host_output_size_in_bytes = 0;
        self.host_alias_size_in_bytes = 0;
        self.host_temp_size_in_bytes = 0;
        self.peak_memory_in_bytes = number(peak);
        self.total_size_in_bytes = number(peak);
        self.total_allocation_bytes = number(run);
        self.indefinite_allocations = 0;
        self.peak_unpadded_heap_bytes = number(peak);
        Ok(())
    }
}

impl Call for PJRT_Executable_OptimizedProgram_Args {
    fn call(&mut self) -> Result<()> {
        let executable = self.executable;
        let code = executable.get("an executable")?.compiled.optimized()?;
        if self.program.is_null() {
            return Err(Error::invalid("a program to be filled is needed, found null"));
        }
        let write = |program: &mut PJRT_Program| {
            let (format, size) = Out::text("hlo_with_config");
            (program.format, program.format_size) = (format.as_ptr().cast(), size);
            // Callers ask for the size first.
            if program.code.is_null() {
                program.code_size = code.len();
                return Ok(());
            }
            if program.code_size < code.len() {
                let found = program.code_size;
                let detail = format!("{found} bytes for a program of {}", code.len());
                return Err(Error::invalid(detail));
            }
            // SAFETY: the caller has so many bytes written, and they are not the program's own.
            unsafe {
                program.code.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
            }
            Ok(())
        };
        // SAFETY: the header says that the caller has such a struct, to be written.
        unsafe { crate::raw::with(self.program, write) }
    }
}
