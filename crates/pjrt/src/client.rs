//! Clients, and their devices and memories.
#![allow(non_camel_case_types)]

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use helio::{Client, ClientOptions, Code, Device, DeviceAssignment, Error, MemoryKind, Result};

use crate::abi::*;
use crate::callback::functions;
use crate::named::{self, NamedValues, Value};
use crate::peers::{MAX_PROCESSES, Part, Peers};
use crate::raw::{Call, In, Out};
use crate::store::Store;
use crate::topology::PJRT_TopologyDescription;

/// The name of the platform, under which frameworks register the plugin.
pub const PLATFORM_NAME: &str = "helio";

/// How many devices a process of a client has at most.
pub(crate) const MAX_DEVICES: usize = 4096;

/// The version of helio.
pub(crate) fn platform_version() -> &'static str {
    concat!("helio ", env!("CARGO_PKG_VERSION"))
}

/// A client.
pub struct PJRT_Client {
    pub(crate) shared: Arc<Shared>,
}

/// What a client's handles share; it lives as long as any of them.
pub(crate) struct Shared {
    /// What computes on the devices of this process.
    pub(crate) client: Client,
    /// Where there are several processes, the others.
    peers: Option<Peers>,
    /// The devices of all processes, by id.
    pub(crate) devices: Box<[PJRT_Device]>,
    /// For each device of this process in turn, its memories.
    pub(crate) memories: Box<[PJRT_Memory]>,
    device_handles: Vec<Out<PJRT_Device>>,
    memory_handles: Vec<Out<PJRT_Memory>>,
    pub(crate) topology: PJRT_TopologyDescription,
}

/// What is known of a device.
pub struct PJRT_DeviceDescription {
    id: i32,
    /// The process that has it.
    process: i32,
    text: String,
}

/// A device.
pub struct PJRT_Device {
    /// What computes, unless it is in another process.
    device: Option<Device>,
    pub(crate) description: PJRT_DeviceDescription,
    memories: OnceLock<Vec<Out<PJRT_Memory>>>,
}

/// A memory of a device.
#[repr(C)]
pub struct PJRT_Memory {
    /// Null: it has no table of functions of its own.
    vtable: usize,
    /// Its number among the memories of this process.
    pub(crate) index: usize,
    /// Its number among those of all processes.
    id: i32,
    pub(crate) kind: MemoryKind,
    text: String,
    devices: OnceLock<[Out<PJRT_Device>; 1]>,
}

/// What [`PJRT_Device_GetAttributes_Args`] gives: devices have no attributes.
#[derive(Debug)]
pub struct PJRT_Device_Attributes;

impl Shared {
    fn new(options: &ClientOptions, peers: Option<Peers>) -> Arc<Self> {
        let client = Client::new(options);
        let first = peers.as_ref().map_or(0, Peers::first_device);
        let count = peers.as_ref().map_or(options.devices, Peers::device_count);
        let device = |id: usize| {
            let process = peers.as_ref().map_or(0, |peers| peers.process_of(id));
            let own = id.checked_sub(first).and_then(|index| client.device(index));
            PJRT_Device::new(id, process, own)
        };
        let devices: Box<[PJRT_Device]> = (0..count).map(device).collect();
        let kinds = MemoryKind::ALL.len();
        let memory = |index| PJRT_Memory::new(index, first);
        let memories: Box<[PJRT_Memory]> = (0..options.devices * kinds).map(memory).collect();
        for (device, memories) in devices[first..].iter().zip(memories.chunks(kinds)) {
            let handles = memories.iter().map(Out::of).collect();
            device.memories.get_or_init(|| handles);
            for memory in memories {
                memory.devices.get_or_init(|| [Out::of(device)]);
            }
        }
        let descriptions = devices.iter().map(|device| Out::of(&device.description)).collect();
        Arc::new(Shared {
            client,
            peers,
            device_handles: devices.iter().map(Out::of).collect(),
            memory_handles: memories.iter().map(Out::of).collect(),
            topology: PJRT_TopologyDescription { descriptions },
            devices,
            memories,
        })
    }

    /// The device with this id. Errors: `InvalidArgument` if there is none.
    pub(crate) fn device(&self, id: i32) -> Result<&PJRT_Device> {
        let device = usize::try_from(id).ok().and_then(|id| self.devices.get(id));
        device.ok_or_else(|| {
            let count = self.devices.len();
            Error::invalid(format!("there is no device {id}; the client has {count}"))
        })
    }

    /// The number of this process.
    fn process(&self) -> usize {
        self.peers.as_ref().map_or(0, Peers::rank)
    }

    /// The ids of the devices of this process.
    fn own(&self) -> Range<usize> {
        let first = self.peers.as_ref().map_or(0, Peers::first_device);
        first..first + self.client.devices().len()
    }

    /// The device of this process with this number among them, which is that of [`Self::client`].
    pub(crate) fn own_device(&self, number: usize) -> &PJRT_Device {
        &self.devices[self.own().start + number]
    }

    /// The part of an assignment, by ids of devices, that this process has. Errors: there are no such
    /// devices.
    pub(crate) fn part(&self, assignment: &DeviceAssignment) -> Result<Part> {
        let count = self.devices.len();
        if let Some(&missing) = assignment.devices().iter().find(|&&id| id >= count) {
            let detail = format!("the program is for device {missing}; the client has {count}");
            return Err(Error::invalid(detail));
        }
        match &self.peers {
            Some(peers) => peers.part(assignment),
            None => Ok(Part::whole(assignment.clone())),
        }
    }

    /// The device of a memory, by the memory's number.
    pub(crate) fn device_of(&self, memory: usize) -> &PJRT_Device {
        self.own_device(memory / MemoryKind::ALL.len())
    }

    /// What computes on the device of a memory, by the memory's number.
    pub(crate) fn computing(&self, memory: usize) -> Result<Device> {
        self.device_of(memory).own().cloned()
    }

    /// The number of the memory of this kind of a device of [`Self::client`].
    pub(crate) fn memory_of(&self, device: usize, kind: MemoryKind) -> usize {
        let position = MemoryKind::ALL.iter().position(|&each| each == kind);
        device * MemoryKind::ALL.len() + position.unwrap_or(0)
    }

    /// The memory that a caller names, or the first of the device that it names. Errors: it names
    /// neither.
    pub(crate) fn destination(
        &self,
        device: In<PJRT_Device>,
        memory: In<PJRT_Memory>,
    ) -> Result<usize> {
        match memory.optional() {
            Some(memory) => Ok(memory.index),
            None => {
                let device = device.get("a device or a memory")?;
                Ok(self.memory_of(device.own()?.id(), MemoryKind::default()))
            }
        }
    }
}

impl PJRT_Device {
    fn new(id: usize, process: usize, device: Option<Device>) -> Self {
        let (number, process) = (id as i32, process as i32);
        let text = format!("HelioDevice(id={id})");
        let description = PJRT_DeviceDescription { id: number, process, text };
        PJRT_Device { device, description, memories: OnceLock::new() }
    }

    /// Its id, which no other device of any process has.
    pub(crate) fn id(&self) -> usize {
        self.description.id as usize
    }

    /// What computes on it. Errors: `InvalidArgument` if it is in another process.
    pub(crate) fn own(&self) -> Result<&Device> {
        self.device.as_ref().ok_or_else(|| {
            let PJRT_DeviceDescription { id, process, .. } = self.description;
            let detail = format!("device {id} is in process {process}, and not to be used here");
            Error::invalid(detail)
        })
    }
}

impl PJRT_Memory {
    /// The one with a number among those of this process, whose first device has this id.
    fn new(index: usize, first_device: usize) -> Self {
        let kinds = MemoryKind::ALL;
        let (device, kind) = (first_device + index / kinds.len(), kinds[index % kinds.len()]);
        let text = format!("HelioMemory(device={device}, kind={})", kind.name());
        let id = (first_device * kinds.len() + index) as i32;
        PJRT_Memory { vtable: 0, index, id, kind, text, devices: OnceLock::new() }
    }
}

/// What the options say, and where they say nothing, the environment; and which process this is of how
/// many. Errors: options that are not known, or no numbers.
fn client_options(given: &[(String, Value)]) -> Result<(ClientOptions, (usize, usize))> {
    let mut options = ClientOptions::default();
    let (mut rank, mut size) = (0, 1);
    options.custom_calls = functions().clone();
    let mut all = Vec::new();
    for (variable, option) in
        [("HELIO_DEVICES", "num_devices"), ("HELIO_THREADS", "threads"), ("HELIO_MEMORY", "memory")]
    {
        if let Ok(text) = std::env::var(variable) {
            all.push((variable, option, Value::Text(text)));
        }
    }
    all.extend(given.iter().map(|(name, value)| (&**name, &**name, value.clone())));
    for (name, option, value) in all {
        let number = || named::number(name, &value);
        match option {
            "num_devices" => options.devices = number()?,
            "threads" => options.threads = Some(number()?.max(1)),
            "memory" => {
                let bytes = number()?;
                helio::memory::set_limit_bytes(bytes);
                options.memory_limit = Some(bytes);
            }
            // What JAX gives to every plugin when its distributed service is there.
            "num_nodes" => size = number()?,
            "node_id" => rank = number()?,
            _ => {
                let known = "num_devices, threads, memory, node_id, num_nodes";
                return Err(Error::invalid(format!(
                    "no option is named {name}; there are {known}"
                )));
            }
        }
    }
    if !(1..=MAX_DEVICES).contains(&options.devices) {
        let found = options.devices;
        return Err(Error::invalid(format!(
            "a client has 1 to {MAX_DEVICES} devices, found {found}"
        )));
    }
    if !(1..=MAX_PROCESSES).contains(&size) || rank >= size {
        return Err(Error::invalid(format!(
            "process {rank} of {size} (node_id, num_nodes): there are 1 to {MAX_PROCESSES}, from 0"
        )));
    }
    Ok((options, (rank, size)))
}

impl Call for PJRT_Plugin_Initialize_Args {
    fn call(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Call for PJRT_Plugin_Attributes_Args {
    fn call(&mut self) -> Result<()> {
        static ATTRIBUTES: OnceLock<NamedValues> = OnceLock::new();
        let attributes = ATTRIBUTES.get_or_init(|| {
            // The newest version without operations that hold regions of composites, and without
            // asynchronous types; frameworks write programs of this version.
            let named = NamedValues::default();
            let named = named.integers("stablehlo_current_version", &[1, 13, 0]);
            named.integers("stablehlo_minimum_version", &[0, 9, 0])
        });
        (self.attributes, self.num_attributes) = attributes.lend();
        Ok(())
    }
}

impl Call for PJRT_Client_Create_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: the header says that there are so many options.
        let options = unsafe { named::options(self.create_options, self.num_options)? };
        let (options, (rank, size)) = client_options(&options)?;
        let peers = match size {
            1 => None,
            _ => Some(Peers::join(&Store::of(self)?, rank, size, options.devices)?),
        };
        self.client = Out::give(PJRT_Client { shared: Shared::new(&options, peers) });
        Ok(())
    }
}

impl Call for PJRT_Client_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        // SAFETY: clients are given as boxes, and the caller gives this one up.
        drop(unsafe { self.client.take() });
        Ok(())
    }
}

impl Call for PJRT_Client_PlatformName_Args {
    fn call(&mut self) -> Result<()> {
        (self.platform_name, self.platform_name_size) = Out::text(PLATFORM_NAME);
        Ok(())
    }
}

impl Call for PJRT_Client_PlatformVersion_Args {
    fn call(&mut self) -> Result<()> {
        (self.platform_version, self.platform_version_size) = Out::text(platform_version());
        Ok(())
    }
}

impl Call for PJRT_Client_ProcessIndex_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        self.process_index = client.get("a client")?.shared.process() as i32;
        Ok(())
    }
}

impl Call for PJRT_Client_UpdateGlobalProcessInfo_Args {
    fn call(&mut self) -> Result<()> {
        // What is known of the others, they say themselves.
        let client = self.client;
        client.get("a client").map(drop)
    }
}

impl Call for PJRT_Client_Devices_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let handles = &client.get("a client")?.shared.device_handles;
        (self.devices, self.num_devices) = (Out::list(handles), handles.len());
        Ok(())
    }
}

impl Call for PJRT_Client_AddressableDevices_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let shared = &client.get("a client")?.shared;
        let handles = &shared.device_handles[shared.own()];
        (self.addressable_devices, self.num_addressable_devices) =
            (Out::list(handles), handles.len());
        Ok(())
    }
}

impl Call for PJRT_Client_AddressableMemories_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let handles = &client.get("a client")?.shared.memory_handles;
        (self.addressable_memories, self.num_addressable_memories) =
            (Out::list(handles), handles.len());
        Ok(())
    }
}

impl Call for PJRT_Client_LookupDevice_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        self.device = Out::of(client.get("a client")?.shared.device(self.id)?);
        Ok(())
    }
}

impl Call for PJRT_Client_LookupAddressableDevice_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let shared = &client.get("a client")?.shared;
        let (own, wanted) = (shared.own(), self.local_hardware_id);
        let number = usize::try_from(wanted).ok().filter(|&number| number < own.len());
        let number = number.ok_or_else(|| {
            let count = own.len();
            Error::invalid(format!("there is no device {wanted} here; this process has {count}"))
        })?;
        self.addressable_device = Out::of(shared.own_device(number));
        Ok(())
    }
}

impl Call for PJRT_Client_DefaultDeviceAssignment_Args {
    fn call(&mut self) -> Result<()> {
        let client = self.client;
        let devices = client.get("a client")?.shared.devices.len();
        let counts = (usize::try_from(self.num_replicas), usize::try_from(self.num_partitions));
        let count = match counts {
            (Ok(replicas), Ok(partitions)) => replicas.checked_mul(partitions),
            _ => None,
        };
        let (replicas, partitions) = (self.num_replicas, self.num_partitions);
        let count = count.filter(|&count| count <= devices).ok_or_else(|| {
            let detail =
                format!("{replicas} replicas of {partitions} partitions on {devices} devices");
            Error::invalid(detail)
        })?;
        if count > self.default_assignment_size || self.default_assignment.is_null() {
            return Err(Error::invalid(format!("a list for {count} devices is needed")));
        }
        for device in 0..count {
            // SAFETY: the list is not null, and the caller says that it has at least `count` places.
            unsafe { self.default_assignment.add(device).write(device as i32) };
        }
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_Id_Args {
    fn call(&mut self) -> Result<()> {
        let description = self.device_description;
        self.id = description.get("a device's description")?.id;
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_ProcessIndex_Args {
    fn call(&mut self) -> Result<()> {
        let description = self.device_description;
        self.process_index = description.get("a device's description")?.process;
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_Attributes_Args {
    fn call(&mut self) -> Result<()> {
        (self.attributes, self.num_attributes) = (Out::null(), 0);
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_Kind_Args {
    fn call(&mut self) -> Result<()> {
        (self.device_kind, self.device_kind_size) = Out::text("cpu");
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_DebugString_Args {
    fn call(&mut self) -> Result<()> {
        let description = self.device_description;
        let text = &description.get("a device's description")?.text;
        (self.debug_string, self.debug_string_size) = Out::text(text);
        Ok(())
    }
}

impl Call for PJRT_DeviceDescription_ToString_Args {
    fn call(&mut self) -> Result<()> {
        let description = self.device_description;
        let text = &description.get("a device's description")?.text;
        (self.to_string, self.to_string_size) = Out::text(text);
        Ok(())
    }
}

impl Call for PJRT_Device_GetDescription_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        self.device_description = Out::of(&device.get("a device")?.description);
        Ok(())
    }
}

impl Call for PJRT_Device_IsAddressable_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        self.is_addressable = device.get("a device")?.device.is_some().into();
        Ok(())
    }
}

impl Call for PJRT_Device_LocalHardwareId_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        let own = &device.get("a device")?.device;
        self.local_hardware_id = own.as_ref().map_or(-1, |device| device.id() as i32);
        Ok(())
    }
}

impl Call for PJRT_Device_AddressableMemories_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        let memories = device.get("a device")?.memories.get().map_or(&[][..], Vec::as_slice);
        (self.memories, self.num_memories) = (Out::list(memories), memories.len());
        Ok(())
    }
}

impl Call for PJRT_Device_DefaultMemory_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        let memories = device.get("a device")?.memories.get();
        let first = memories.and_then(|memories| memories.first()).copied();
        device.get("a device")?.own()?;
        self.memory = first.ok_or_else(|| Error::internal("a device without a memory"))?;
        Ok(())
    }
}

/// # Safety
/// It is null or was given by the function below, and is not used any more.
unsafe extern "C" fn free_attributes(attributes: *mut PJRT_Device_Attributes) {
    // SAFETY: the promise of the caller: it is a box of ours.
    drop(unsafe { In::new(attributes).take() });
}

impl Call for PJRT_Device_GetAttributes_Args {
    fn call(&mut self) -> Result<()> {
        (self.attributes, self.num_attributes) = (Out::null(), 0);
        self.device_attributes = Out::give(PJRT_Device_Attributes);
        self.attributes_deleter = Some(free_attributes);
        Ok(())
    }
}

impl Call for PJRT_Device_MemoryStats_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        // All devices of a client have one memory.
        let stats = device.get("a device")?.own()?.client().memory_stats();
        let number = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes_in_use = number(stats.live_bytes);
        (self.peak_bytes_in_use, self.peak_bytes_in_use_is_set) = (number(stats.peak_bytes), 1);
        (self.bytes_limit, self.bytes_limit_is_set) = (number(stats.limit_bytes), 1);
        (self.pool_bytes, self.pool_bytes_is_set) = (number(stats.cached_bytes), 1);
        for is_set in [
            &mut self.num_allocs_is_set,
            &mut self.largest_alloc_size_is_set,
            &mut self.bytes_reserved_is_set,
            &mut self.peak_bytes_reserved_is_set,
            &mut self.bytes_reservable_limit_is_set,
            &mut self.largest_free_block_bytes_is_set,
            &mut self.peak_pool_bytes_is_set,
            &mut self.peak_allocated_bytes_is_set,
        ] {
            *is_set = 0;
        }
        Ok(())
    }
}

impl Call for PJRT_Device_ClearMemoryStats_Args {
    fn call(&mut self) -> Result<()> {
        let device = self.device;
        device.get("a device")?.own()?.client().reset_peak();
        Ok(())
    }
}

impl Call for PJRT_Device_CreateAsyncTrackingEvent_Args {
    fn call(&mut self) -> Result<()> {
        // Nobody listens to such events: all are one, which lives as long as the process.
        static EVENT: u8 = 0;
        self.event = std::ptr::from_ref(&EVENT).cast_mut().cast();
        Ok(())
    }
}

impl Call for PJRT_AsyncTrackingEvent_Destroy_Args {
    fn call(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Call for PJRT_Device_PoisonExecution_Args {
    fn call(&mut self) -> Result<()> {
        // Executions are known by no number here.
        self.poisoned = 0;
        Ok(())
    }
}

impl Call for PJRT_Memory_Id_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        self.id = memory.get("a memory")?.id;
        Ok(())
    }
}

impl Call for PJRT_Memory_Kind_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        (self.kind, self.kind_size) = Out::text(memory.get("a memory")?.kind.name());
        Ok(())
    }
}

impl Call for PJRT_Memory_Kind_Id_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        self.kind_id = memory.get("a memory")?.kind as i32;
        Ok(())
    }
}

impl Call for PJRT_Memory_DebugString_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        (self.debug_string, self.debug_string_size) = Out::text(&memory.get("a memory")?.text);
        Ok(())
    }
}

impl Call for PJRT_Memory_ToString_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        (self.to_string, self.to_string_size) = Out::text(&memory.get("a memory")?.text);
        Ok(())
    }
}

impl Call for PJRT_Memory_AddressableByDevices_Args {
    fn call(&mut self) -> Result<()> {
        let memory = self.memory;
        let devices = memory.get("a memory")?.devices.get().map_or(&[][..], |list| &list[..]);
        (self.devices, self.num_devices) = (Out::list(devices), devices.len());
        Ok(())
    }
}

/// Errors: `NotFound` for a name that is no memory kind's.
pub(crate) fn memory_kind(name: &str) -> Result<MemoryKind> {
    MemoryKind::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = MemoryKind::ALL.iter().map(|kind| kind.name()).collect();
        let detail = format!("no memory kind is named {name}; there are {}", names.join(", "));
        Error::new(Code::NotFound, detail)
    })
}
