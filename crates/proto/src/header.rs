//! What modules and instructions carry besides operations: source places, attributes of the front
//! end, aliases of inputs and outputs.

use std::sync::Arc;

use helio_ir::stack_frames::{FileLocation, StackFrame, StackFrames};
use helio_ir::text::attrs::quote_unless_braced;
use helio_ir::{AliasKind, Error, InputOutputAlias, Metadata, ModuleConfig, Result};

use crate::fields::unquoted;
use crate::messages::{
    AliasEntryProto, BufferDonorEntryProto, ComputationDevice, DeviceAssignmentProto,
    FileLocationProto, FrontendAttributes, HloBufferDonorProto, HloInputOutputAliasProto,
    HloModuleProto, OpMetadata, StackFrameIndexProto, StackFrameProto,
};
use crate::shape;
use crate::words::{ints, size, sizes};

const MAY_ALIAS: i32 = 1;
const MUST_ALIAS: i32 = 2;

/// Attributes of the first line that a message has.
pub(crate) fn read(proto: &HloModuleProto) -> Result<ModuleConfig> {
    let mut config = ModuleConfig::default();
    if let Some(program) = &proto.host_program_shape {
        config.entry_layout = Some(shape::read_program(program)?);
    }
    for entry in proto.input_output_alias.iter().flat_map(|proto| &proto.entries) {
        config.input_output_alias.push(InputOutputAlias {
            output: sizes(&entry.output_shape_index, "an index of an alias")?,
            parameter: size(entry.parameter_number, "the parameter of an alias")?,
            parameter_index: sizes(&entry.parameter_shape_index, "an index of an alias")?,
            kind: if entry.kind == MUST_ALIAS { AliasKind::Must } else { AliasKind::May },
        });
    }
    for entry in proto.buffer_donor.iter().flat_map(|proto| &proto.entries) {
        let parameter = size(entry.parameter_number, "the parameter of a donor")?;
        let path = sizes(&entry.parameter_shape_index, "an index of a donor")?;
        config.buffer_donors.push((parameter, path));
    }
    if let Some(assignment) = &proto.device_assignment {
        let count = |count: i32, what| match size(count.into(), what)? {
            0 | 1 => Ok::<_, Error>(None),
            several => Ok(Some(several)),
        };
        config.replica_count = count(assignment.replica_count, "the number of replicas")?;
        config.num_partitions = count(assignment.computation_count, "the number of partitions")?;
    }
    config.is_scheduled = proto.schedule.is_some();
    config.frontend_attributes = read_frontend(proto.frontend_attributes.as_ref());
    if let Some(index) = &proto.stack_frame_index {
        config.stack_frames = Some(Arc::new(read_frames(index)));
    }
    Ok(config)
}

/// Writes what [`read`] reads, but for the entry's shape.
pub(crate) fn write(config: &ModuleConfig, proto: &mut HloModuleProto) -> Result<()> {
    let alias = |alias: &InputOutputAlias| AliasEntryProto {
        output_shape_index: ints(&alias.output),
        parameter_number: alias.parameter as i64,
        parameter_shape_index: ints(&alias.parameter_index),
        kind: if alias.kind == AliasKind::Must { MUST_ALIAS } else { MAY_ALIAS },
    };
    let donor = |(parameter, path): &(usize, Vec<usize>)| BufferDonorEntryProto {
        parameter_number: *parameter as i64,
        parameter_shape_index: ints(path),
    };
    let entries: Vec<_> = config.input_output_alias.iter().map(alias).collect();
    if !entries.is_empty() {
        proto.input_output_alias = Some(HloInputOutputAliasProto { entries });
    }
    let entries: Vec<_> = config.buffer_donors.iter().map(donor).collect();
    if !entries.is_empty() {
        proto.buffer_donor = Some(HloBufferDonorProto { entries });
    }
    proto.device_assignment = write_assignment(config)?;
    proto.frontend_attributes = write_frontend(&config.frontend_attributes)?;
    proto.stack_frame_index = config.stack_frames.as_deref().map(write_frames);
    Ok(())
}

/// The most participants whose devices a message lists.
const MAX_PARTICIPANTS: usize = 1 << 16;

/// The only place of a message for how many replicas and partitions there are: on which devices they run.
/// As the module does not say that, they are the first ones, in the order of participants. `None` for one
/// participant.
fn write_assignment(config: &ModuleConfig) -> Result<Option<DeviceAssignmentProto>> {
    let replicas = config.replica_count.unwrap_or(1).max(1);
    let partitions = config.num_partitions.unwrap_or(1).max(1);
    let count = replicas.checked_mul(partitions).filter(|&count| count <= MAX_PARTICIPANTS);
    let Some(count) = count else {
        let detail = format!(
            "{replicas} replicas of {partitions} partitions as a message, which lists at most \
             {MAX_PARTICIPANTS} devices"
        );
        return Err(Error::unimplemented(detail));
    };
    if count == 1 {
        return Ok(None);
    }
    let devices = |partition: usize| ComputationDevice {
        replica_device_ids: (partition..count).step_by(partitions).map(|id| id as i64).collect(),
    };
    Ok(Some(DeviceAssignmentProto {
        replica_count: replicas as i32,
        computation_count: partitions as i32,
        computation_devices: (0..partitions).map(devices).collect(),
    }))
}

/// The attributes of the front end; values are braced, or in quotes.
pub(crate) fn read_frontend(proto: Option<&FrontendAttributes>) -> Vec<(String, String)> {
    let map = proto.into_iter().flat_map(|proto| &proto.map);
    map.map(|(name, value)| (name.clone(), quote_unless_braced(value))).collect()
}

/// The message for attributes of the front end; `None` if there are none.
pub(crate) fn write_frontend(
    attributes: &[(String, String)],
) -> Result<Option<FrontendAttributes>> {
    if attributes.is_empty() {
        return Ok(None);
    }
    let pairs = attributes.iter().map(|(name, value)| Ok((name.clone(), unquoted(value)?)));
    Ok(Some(FrontendAttributes { map: pairs.collect::<Result<_>>()? }))
}

/// Fields of metadata that are kept as text.
const OTHER: [&str; 3] = ["source_end_line", "source_column", "source_end_column"];

/// Where an instruction comes from.
pub(crate) fn read_metadata(proto: &OpMetadata) -> Metadata {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let numbers = [proto.source_end_line, proto.source_column, proto.source_end_column];
    let other = OTHER.iter().zip(numbers).filter(|&(_, number)| number != 0);
    Metadata {
        op_type: text(&proto.op_type),
        op_name: text(&proto.op_name),
        source_file: text(&proto.source_file),
        source_line: Some(i64::from(proto.source_line)).filter(|&line| line != 0),
        stack_frame: u32::try_from(proto.stack_frame_id).ok().filter(|&frame| frame != 0),
        other: other.map(|(name, number)| ((*name).to_owned(), number.to_string())).collect(),
    }
}

/// The message for where an instruction comes from. What helio keeps as text and has no field here
/// is left out: it says nothing of values.
pub(crate) fn write_metadata(metadata: &Metadata) -> Result<OpMetadata> {
    let Metadata { op_type, op_name, source_file, source_line, stack_frame, other } = metadata;
    let number = |name: &str| {
        let pair = other.iter().find(|pair| pair.0 == name);
        pair.and_then(|pair| pair.1.parse().ok()).unwrap_or(0)
    };
    let [source_end_line, source_column, source_end_column] = OTHER.map(number);
    let too_large = |_| Error::unimplemented("a source line beyond 2^31 as a message");
    Ok(OpMetadata {
        op_type: op_type.clone().unwrap_or_default(),
        op_name: op_name.clone().unwrap_or_default(),
        source_file: source_file.clone().unwrap_or_default(),
        source_line: source_line.unwrap_or(0).try_into().map_err(too_large)?,
        stack_frame_id: stack_frame.unwrap_or(0) as i32,
        source_end_line,
        source_column,
        source_end_column,
    })
}

/// Numbers that are negative in a message name nothing.
fn place(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn read_frames(proto: &StackFrameIndexProto) -> StackFrames {
    let location = |location: &FileLocationProto| FileLocation {
        file: place(location.file_name_id),
        function: place(location.function_name_id),
        line: place(location.line),
        end_line: place(location.end_line),
        column: place(location.column),
        end_column: place(location.end_column),
    };
    let frame = |frame: &StackFrameProto| StackFrame {
        location: place(frame.file_location_id),
        parent: Some(place(frame.parent_frame_id)).filter(|&parent| parent != 0),
    };
    StackFrames {
        files: proto.file_names.clone(),
        functions: proto.function_names.clone(),
        locations: proto.file_locations.iter().map(location).collect(),
        frames: proto.stack_frames.iter().map(frame).collect(),
    }
}

fn write_frames(frames: &StackFrames) -> StackFrameIndexProto {
    let location = |location: &FileLocation| FileLocationProto {
        file_name_id: location.file as i32,
        function_name_id: location.function as i32,
        line: location.line as i32,
        column: location.column as i32,
        end_line: location.end_line as i32,
        end_column: location.end_column as i32,
    };
    let frame = |frame: &StackFrame| StackFrameProto {
        file_location_id: frame.location as i32,
        parent_frame_id: frame.parent.unwrap_or(0) as i32,
    };
    StackFrameIndexProto {
        file_names: frames.files.clone(),
        function_names: frames.functions.clone(),
        file_locations: frames.locations.iter().map(location).collect(),
        stack_frames: frames.frames.iter().map(frame).collect(),
    }
}
