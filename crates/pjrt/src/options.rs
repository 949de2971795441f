//! The options of a compilation: `xla.CompileOptionsProto`, as far as they mean something here.

use std::collections::BTreeMap;

use helio::{DeviceAssignment, Error, Result, Subnormals};
use prost::Message;

/// `xla.CompileOptionsProto`
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompileOptions {
    #[prost(message, optional, tag = "3")]
    build: Option<BuildOptions>,
    /// Whether the program may run on any device.
    #[prost(bool, tag = "4")]
    portable: bool,
    #[prost(btree_map = "string, message", tag = "7")]
    overrides: BTreeMap<String, Override>,
}

/// `xla.ExecutableBuildOptionsProto`
#[derive(Clone, PartialEq, Message)]
struct BuildOptions {
    #[prost(int64, tag = "1")]
    device_ordinal: i64,
    #[prost(int64, tag = "4")]
    replicas: i64,
    #[prost(int64, tag = "5")]
    partitions: i64,
    #[prost(bool, tag = "6")]
    spmd: bool,
    #[prost(message, optional, tag = "9")]
    assignment: Option<AssignmentProto>,
}

/// `xla.OptionOverrideProto`
#[derive(Clone, PartialEq, Message)]
struct Override {
    #[prost(oneof = "OverrideValue", tags = "1, 2, 3, 4")]
    value: Option<OverrideValue>,
}

/// The value of an `xla.OptionOverrideProto`.
#[derive(Clone, PartialEq, prost::Oneof)]
enum OverrideValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Float(f64),
}

/// `xla.DeviceAssignmentProto`
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssignmentProto {
    #[prost(int32, tag = "1")]
    replicas: i32,
    #[prost(int32, tag = "2")]
    computations: i32,
    /// For each computation (partition), a device for each replica.
    #[prost(message, repeated, tag = "3")]
    devices: Vec<ComputationDevices>,
}

#[derive(Clone, PartialEq, Message)]
struct ComputationDevices {
    #[prost(int64, repeated, tag = "1")]
    ids: Vec<i64>,
}

/// The option that says what arithmetic does with subnormal numbers: `flush` or `keep`.
const SUBNORMALS: &str = "helio_subnormals";

/// Options of XLA's compiler that frameworks pass and that change nothing here.
const IGNORED_PREFIXES: &[&str] = &["xla_"];

/// Those among them that users of XLA:CPU pass and that are either `true` or `false`.
const BOOLEANS: &[&str] = &[
    "xla_allow_excess_precision",
    "xla_cpu_enable_fast_math",
    "xla_cpu_enable_fast_min_max",
    "xla_cpu_fast_math_honor_division",
    "xla_cpu_fast_math_honor_functions",
    "xla_cpu_fast_math_honor_infs",
    "xla_cpu_fast_math_honor_nans",
    "xla_cpu_multi_thread_eigen",
    "xla_cpu_strict_dot_conv_math",
    "xla_dump_hlo_as_dot",
    "xla_dump_hlo_as_html",
    "xla_dump_hlo_as_proto",
    "xla_dump_hlo_as_text",
    "xla_dump_hlo_as_url",
    "xla_dump_hlo_snapshots",
    "xla_embed_ir_in_executable",
    "xla_llvm_disable_expensive_passes",
];

impl CompileOptions {
    /// Reads the options. Errors: bytes that are no such message; compiler options that are not known.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let options = Self::decode(bytes).map_err(|e| {
            Error::invalid(format!("the compile options are no xla.CompileOptionsProto: {e}"))
        })?;
        let others = options.overrides.iter().filter(|(name, _)| *name != SUBNORMALS);
        others.into_iter().try_for_each(|(name, value)| value.check(name))?;
        options.subnormals()?;
        Ok(options)
    }

    /// Whether the program may run on any device.
    pub(crate) fn is_portable(&self) -> bool {
        self.portable
    }

    /// What arithmetic does with subnormal numbers. Errors: neither `flush` nor `keep`.
    pub(crate) fn subnormals(&self) -> Result<Subnormals> {
        let Some(given) = self.overrides.get(SUBNORMALS) else { return Ok(Subnormals::default()) };
        let text = match &given.value {
            Some(OverrideValue::Text(text)) => text.as_str(),
            _ => "",
        };
        Subnormals::named(text).ok_or_else(|| {
            Error::invalid(format!(
                "While setting option {SUBNORMALS}, '{text}' is neither 'flush' nor 'keep'."
            ))
        })
    }

    /// Which devices run what. Errors: counts that are none, devices that do not fit them.
    pub(crate) fn assignment(&self) -> Result<DeviceAssignment> {
        let Some(build) = &self.build else { return DeviceAssignment::iota(1, 1) };
        let count = |count: i64| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let (replicas, partitions) = (count(build.replicas), count(build.partitions));
        if let Some(assignment) = &build.assignment {
            return assignment.read(replicas, partitions);
        }
        match usize::try_from(build.device_ordinal) {
            Ok(device) if (replicas, partitions) == (1, 1) => {
                DeviceAssignment::new(1, 1, vec![device])
            }
            _ => DeviceAssignment::iota(replicas, partitions),
        }
    }
}

impl Override {
    /// Errors: an option that is not known; text for a boolean one other than `true` and `false`.
    fn check(&self, name: &str) -> Result<()> {
        if !IGNORED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(Error::invalid(format!("No such compile option: '{name}'")));
        }
        match &self.value {
            Some(OverrideValue::Text(text))
                if BOOLEANS.contains(&name) && !matches!(text.as_str(), "true" | "false") =>
            {
                Err(Error::invalid(format!(
                    "While setting option {name}, '{text}' is not a valid bool value."
                )))
            }
            _ => Ok(()),
        }
    }
}

impl AssignmentProto {
    fn read(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
        let is_whole = self.devices.len() == partitions
            && self.devices.iter().all(|devices| devices.ids.len() == replicas);
        if !is_whole {
            let found: Vec<usize> = self.devices.iter().map(|devices| devices.ids.len()).collect();
            return Err(Error::invalid(format!(
                "devices for {replicas} replicas of {partitions} partitions are needed, found \
                 {found:?} for each partition"
            )));
        }
        let mut devices = Vec::with_capacity(replicas * partitions);
        for replica in 0..replicas {
            for partition in &self.devices {
                let id = partition.ids[replica];
                let id = usize::try_from(id);
                devices.push(id.map_err(|_| Error::invalid("a device with a negative id"))?);
            }
        }
        DeviceAssignment::new(replicas, partitions, devices)
    }

    /// The message for an assignment.
    pub(crate) fn of(assignment: &DeviceAssignment) -> Self {
        let (replicas, partitions) = (assignment.replicas(), assignment.partitions());
        let ids = |partition| {
            let devices = (0..replicas).filter_map(|replica| assignment.device(replica, partition));
            ComputationDevices { ids: devices.map(|id| id as i64).collect() }
        };
        AssignmentProto {
            replicas: replicas as i32,
            computations: partitions as i32,
            devices: (0..partitions).map(ids).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_back() {
        let assignment = DeviceAssignment::new(2, 3, vec![5, 1, 2, 3, 4, 0]).unwrap();
        let proto = AssignmentProto::of(&assignment);
        assert_eq!(proto.devices[0].ids, [5, 3]);
        assert_eq!(proto.read(2, 3), Ok(assignment));
        assert!(proto.read(3, 2).is_err());
    }

    #[test]
    fn options_without_counts_are_for_one_device() {
        let empty = CompileOptions::read(&[]).unwrap();
        assert_eq!(empty.assignment(), DeviceAssignment::iota(1, 1));
        let build =
            BuildOptions { device_ordinal: 2, replicas: 1, partitions: 1, ..Default::default() };
        let second = CompileOptions { build: Some(build), ..Default::default() };
        let second = CompileOptions::read(&second.encode_to_vec()).unwrap();
        assert_eq!(second.assignment().unwrap().devices(), [2]);
        assert!(CompileOptions::read(&[0xff]).is_err());
    }

    #[test]
    fn wrong_compiler_options_are_named() {
        let read = |name: &str, text: &str| {
            let value = Override { value: Some(OverrideValue::Text(text.to_owned())) };
            let overrides = [(name.to_owned(), value)].into();
            let options = CompileOptions { overrides, ..Default::default() };
            let read = CompileOptions::read(&options.encode_to_vec());
            read.map(drop).map_err(|error| error.detail().to_owned())
        };
        assert_eq!(
            read("invalid_key", "1"),
            Err("No such compile option: 'invalid_key'".to_owned())
        );
        assert_eq!(
            read("xla_embed_ir_in_executable", "maybe"),
            Err("While setting option xla_embed_ir_in_executable, 'maybe' is not a valid bool value."
                .to_owned())
        );
        assert_eq!(read("xla_embed_ir_in_executable", "true"), Ok(()));
        assert_eq!(read("xla_dump_to", "maybe"), Ok(()));
        assert_eq!(
            read("helio_subnormals", "lose"),
            Err("While setting option helio_subnormals, 'lose' is neither 'flush' nor 'keep'."
                .to_owned())
        );
        assert_eq!(read("helio_subnormals", "keep"), Ok(()));
    }
}
