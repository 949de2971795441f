//! From modules to messages of `xla.HloModuleProto`.

use std::collections::{HashMap, HashSet};

use helio_ir::ops::ApiVersion;
use helio_ir::text::attrs::{AttrWriter, Scan};
use helio_ir::{
    CompId, Computation, Error, Extra, Instr, InstrId, Module, Op, ProgramShape, Result, Shape,
};
use prost::Message;

use crate::attributes::CALLS;
use crate::messages::{
    HloComputationProto, HloInstructionProto, HloModuleProto, HloScheduleProto,
    InstructionSequence, ParameterReplication,
};
use crate::{attributes, fields, header, literal, shape, sharding};

/// Writes a module as a serialized `xla.HloModuleProto`, which XLA reads. Errors: `Unimplemented`
/// for attributes that messages do not have (a `domain`), and for constants whose values the text
/// of the module left out.
pub fn write(module: &Module) -> Result<Vec<u8>> {
    write_message(module).map(|proto| proto.encode_to_vec())
}

/// The message for a module. Errors: as for [`write()`].
pub fn write_message(module: &Module) -> Result<HloModuleProto> {
    if module.computations().is_empty() {
        return Err(Error::rule("module.C1", "a module without computations"));
    }
    let mut proto = HloModuleProto {
        name: module.name.clone(),
        entry_computation_name: module.entry().name.clone(),
        entry_computation_id: computation_id(module.entry_id()),
        ..HloModuleProto::default()
    };
    header::write(&module.config, &mut proto)?;
    proto.schedule = module.config.is_scheduled.then(HloScheduleProto::default);
    let program = match &module.config.entry_layout {
        Some(program) => program.clone(),
        None => module.entry().program_shape(),
    };
    proto.host_program_shape = Some(shape::write_program(&program, param_names(module.entry())));
    // XLA numbers the instructions of a module through.
    let mut first = 0;
    let fused = fused(module);
    let mut names = Names::default();
    for id in module.ids() {
        let computation = module.computation(id);
        let mut written = write_computation(module, id, first)?;
        for instr in &mut written.instructions {
            names.make_unique(&mut instr.name);
        }
        written.is_fusion_computation = fused.contains(&id);
        if let Some(schedule) = proto.schedule.as_mut().filter(|_| !fused.contains(&id)) {
            let instruction_ids = written.instructions.iter().map(|instr| instr.id).collect();
            schedule.sequences.insert(written.id, InstructionSequence { instruction_ids });
        }
        proto.computations.push(written);
        first += computation.instrs().len() as i64;
    }
    Ok(proto)
}

/// The names that instructions have been given: in messages, no two instructions of a module have the
/// same one.
#[derive(Default)]
struct Names {
    /// For each name, how many more instructions would have had it.
    taken: HashMap<String, usize>,
}

impl Names {
    /// Gives a name that is taken a number.
    fn make_unique(&mut self, name: &mut String) {
        let Some(mut count) = self.taken.get(name).copied() else {
            self.taken.insert(name.clone(), 0);
            return;
        };
        let free = loop {
            count += 1;
            let candidate = format!("{name}.{count}");
            if !self.taken.contains_key(&candidate) {
                break candidate;
            }
        };
        self.taken.insert(std::mem::replace(name, free.clone()), count);
        self.taken.insert(free, 0);
    }
}

/// XLA takes 0 for no number.
fn computation_id(id: CompId) -> i64 {
    i64::from(id.0) + 1
}

/// The computations that fusions call.
fn fused(module: &Module) -> HashSet<CompId> {
    let instrs = module.computations().iter().flat_map(|computation| computation.instrs());
    let called = instrs.filter_map(|instr| match &instr.op {
        Op::Fusion(fusion) => Some(fusion.calls),
        _ => None,
    });
    called.collect()
}

fn param_names(computation: &Computation) -> Vec<String> {
    computation.params().values().map(|&id| computation.instr(id).name.to_string()).collect()
}

fn write_computation(module: &Module, id: CompId, first: i64) -> Result<HloComputationProto> {
    let computation = module.computation(id);
    let ids = |id: InstrId| first + i64::from(id.0);
    let program: ProgramShape = computation.program_shape();
    let thread = computation.attributes.iter().find(|pair| pair.0 == "execution_thread");
    let mut proto = HloComputationProto {
        name: computation.name.clone(),
        program_shape: Some(shape::write_program(&program, param_names(computation))),
        id: computation_id(id),
        root_id: ids(computation.root()),
        execution_thread: thread.map_or(Ok("main".to_owned()), |t| fields::unquoted(&t.1))?,
        ..HloComputationProto::default()
    };
    for id in computation.ids() {
        let instr = computation.instr(id);
        let written = write_instr(computation, instr, &ids);
        let mut written = written.map_err(|e| module.locate(e, instr))?;
        written.id = ids(id);
        proto.instructions.push(written);
    }
    Ok(proto)
}

fn write_instr(
    computation: &Computation,
    instr: &Instr,
    ids: &dyn Fn(InstrId) -> i64,
) -> Result<HloInstructionProto> {
    let mut proto = HloInstructionProto {
        name: instr.name.to_string(),
        opcode: instr.op.opcode().to_owned(),
        shape: Some(shape::write(&instr.shape)),
        operand_ids: instr.operands.iter().map(|&id| ids(id)).collect(),
        ..HloInstructionProto::default()
    };
    match &instr.op {
        Op::Parameter(op) => proto.parameter_number = op.number as i64,
        Op::Constant(op) if op.elided => {
            return Err(Error::unimplemented("a constant whose value is not known as a message"));
        }
        Op::Constant(op) => {
            proto.literal = Some(Box::new(literal::write(&op.literal, &instr.shape)));
        }
        op => write_op(&mut proto, op, computation, instr)?,
    }
    if let Some(extra) = instr.extra.as_deref() {
        write_extra(&mut proto, extra, ids)?;
    }
    Ok(proto)
}

/// The attributes, by way of their text.
fn write_op(
    proto: &mut HloInstructionProto,
    op: &Op,
    computation: &Computation,
    instr: &Instr,
) -> Result<()> {
    let shapes: Vec<&Shape> =
        instr.operands.iter().map(|&id| &computation.instr(id).shape).collect();
    let name = |id| computation_id(id).to_string();
    let mut writer = AttrWriter::new(&name, &instr.shape, &shapes);
    op.write(&mut writer);
    let text = writer.finish();
    let mut calls: Vec<(usize, &str)> = Vec::new();
    for (name, value) in fields::split(&text) {
        match CALLS.iter().position(|&call| call == name) {
            Some(place) => calls.push((place, value)),
            None => attributes::write(proto, name, value)?,
        }
    }
    calls.sort_by_key(|call| call.0);
    for (_, value) in calls {
        let list = value.trim_start_matches('{').trim_end_matches('}').split(',');
        let numbers = list.map(|number| number.trim().parse());
        let numbers: Option<Vec<i64>> = numbers.map(|number| number.ok()).collect();
        let numbers = numbers.ok_or_else(|| Error::internal(format!("{value} calls nothing")))?;
        proto.called_computation_ids.extend(numbers);
    }
    // What a message must say where text may be silent.
    if matches!(op, Op::Convolution(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_)) {
        proto.window.get_or_insert_default();
    }
    if matches!(op, Op::Convolution(_) | Op::CustomCall(_)) {
        proto.feature_group_count = proto.feature_group_count.max(1);
        proto.batch_group_count = proto.batch_group_count.max(1);
    }
    if let Op::CustomCall(call) = op
        && call.api_version == ApiVersion::Original
    {
        proto.custom_call_api_version = 1;
    }
    Ok(())
}

fn write_extra(
    proto: &mut HloInstructionProto,
    extra: &Extra,
    ids: &dyn Fn(InstrId) -> i64,
) -> Result<()> {
    let metadata = extra.metadata.as_deref().map(header::write_metadata).transpose()?;
    proto.metadata = metadata.map(Box::new);
    if let Some(sharding) = &extra.sharding {
        proto.sharding = Some(Box::new(sharding::write(sharding)?));
    }
    proto.frontend_attributes = header::write_frontend(&extra.frontend_attributes)?;
    if let Some(config) = &extra.backend_config {
        proto.backend_config = config.as_str().as_bytes().to_vec();
    }
    if let Some((_, value)) = extra.other.iter().find(|(name, _)| name == "parameter_replication") {
        let flag = |scan: &mut Scan<'_>| Ok(scan.word()? == "true");
        let replicated_at_leaf_buffers = Scan::new(value).list('{', '}', flag)?;
        proto.parameter_replication = Some(ParameterReplication { replicated_at_leaf_buffers });
    }
    proto.control_predecessor_ids = extra.control_predecessors.iter().map(|&id| ids(id)).collect();
    Ok(())
}
