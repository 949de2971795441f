//! From messages of `xla.HloModuleProto` to modules.

use std::collections::HashMap;
use std::sync::Arc;

use helio_ir::ops::{Constant, Parameter};
use helio_ir::text::attrs::{Attr, AttrReader, quote};
use helio_ir::{
    BackendConfig, CompId, Computation, Error, Extra, Instr, InstrId, Location, Module, Op, Result,
    Shape, Sharding,
};
use prost::Message;

use crate::messages::{
    HloComputationProto, HloInstructionProto, HloModuleProto, HloProto, InstructionSequence,
};
use crate::{attributes, fields, header, literal, shape, sharding, words};

/// Reads a serialized `xla.HloModuleProto`, or the `xla.HloProto` around one. Instructions are in the
/// order of the schedule if there is one, else in that of the message.
///
/// Errors: `InvalidArgument` if it is neither, or for a module that cannot be; `Unimplemented` for
/// operations and attributes that helio does not have. The module has yet to be verified.
pub fn read(bytes: &[u8]) -> Result<Module> {
    let module = HloModuleProto::decode(bytes);
    // The one's name is the other's module, and with some luck readable.
    let is_whole = |module: &HloModuleProto| {
        let entry = module.entry_computation_id;
        module.computations.iter().any(|c| c.id == entry && !c.instructions.is_empty())
    };
    if let Ok(module) = &module
        && is_whole(module)
    {
        return read_message(module);
    }
    if let Ok(HloProto { hlo_module: Some(module) }) = HloProto::decode(bytes)
        && is_whole(&module)
    {
        return read_message(&module);
    }
    let reason = match module {
        Ok(_) => "the computation that it says to begin with is not in it".to_owned(),
        Err(e) => e.to_string(),
    };
    Err(Error::invalid(format!("neither xla.HloModuleProto nor xla.HloProto: {reason}")))
}

/// The module that a message describes. Errors: as for [`read`].
pub fn read_message(proto: &HloModuleProto) -> Result<Module> {
    let mut module = Module::new(proto.name.clone());
    module.config = header::read(proto)?;
    let mut computations = HashMap::new();
    let mut entry = None;
    for computation in &proto.computations {
        let schedule = proto.schedule.as_ref().and_then(|s| s.sequences.get(&computation.id));
        let read = read_computation(computation, schedule, &computations);
        let read = read.map_err(|e| e.context(format_args!("computation {}", computation.name)))?;
        let id = module.push(read)?;
        if computations.insert(computation.id, id).is_some() {
            let detail = format!("a second computation of number {}", computation.id);
            return Err(Error::rule("module.C2", detail));
        }
        if computation.id == proto.entry_computation_id {
            entry = Some(id);
        }
    }
    let entry = entry.ok_or_else(|| {
        let wanted = proto.entry_computation_id;
        Error::invalid(format!("no computation has the entry's number {wanted}"))
    })?;
    module.set_entry(entry);
    Ok(module)
}

fn read_computation(
    proto: &HloComputationProto,
    schedule: Option<&InstructionSequence>,
    computations: &HashMap<i64, CompId>,
) -> Result<Computation> {
    let mut computation = Computation::new(proto.name.clone());
    if !matches!(proto.execution_thread.as_str(), "" | "main") {
        let thread = quote(&proto.execution_thread);
        computation.attributes.push(("execution_thread".to_owned(), thread));
    }
    let mut instrs = HashMap::new();
    for instr in scheduled(proto, schedule)? {
        let named = |e: Error| e.in_instruction(&instr.name);
        let read = read_instr(instr, &computation, &instrs, computations).map_err(named)?;
        let id = computation.push(read)?;
        if instrs.insert(instr.id, id).is_some() {
            let detail = format!("a second instruction of number {}", instr.id);
            return Err(named(Error::rule("computation.C2", detail)));
        }
    }
    let root = instrs.get(&proto.root_id).ok_or_else(|| {
        Error::invalid(format!("no instruction has the root's number {}", proto.root_id))
    })?;
    computation.set_root(*root);
    Ok(computation)
}

/// The instructions of a computation in the order in which they run. Errors: the schedule has not each of
/// them once.
fn scheduled<'p>(
    proto: &'p HloComputationProto,
    schedule: Option<&InstructionSequence>,
) -> Result<Vec<&'p HloInstructionProto>> {
    let Some(InstructionSequence { instruction_ids }) = schedule else {
        return Ok(proto.instructions.iter().collect());
    };
    let mut left: HashMap<i64, _> = proto.instructions.iter().map(|i| (i.id, i)).collect();
    let (listed, count) = (instruction_ids.len(), proto.instructions.len());
    let order: Option<Vec<_>> = instruction_ids.iter().map(|id| left.remove(id)).collect();
    order.filter(|order| order.len() == count).ok_or_else(|| {
        Error::invalid(format!("a schedule of {listed} that are not its {count} instructions"))
    })
}

fn read_instr(
    proto: &HloInstructionProto,
    computation: &Computation,
    instrs: &HashMap<i64, InstrId>,
    computations: &HashMap<i64, CompId>,
) -> Result<Instr> {
    let find = |id: &i64| {
        instrs.get(id).copied().ok_or_else(|| {
            let detail = format!("no instruction of number {id} stands before this one");
            Error::rule("computation.C3", detail)
        })
    };
    let operands: Vec<_> = proto.operand_ids.iter().map(find).collect::<Result<_>>()?;
    let result = proto.shape.as_ref().ok_or_else(|| Error::invalid("it has no shape"))?;
    let result = shape::read(result)?;
    let shapes: Vec<_> = operands.iter().map(|&id| &computation.instr(id).shape).collect();
    let op = read_op(proto, &shapes, &result, computations)?;
    let mut instr = Instr::new(op, operands, result).named(proto.name.clone());
    let extra = read_extra(proto, &find)?;
    instr.extra = (extra != Extra::default()).then(|| Box::new(extra));
    Ok(instr)
}

fn read_op(
    proto: &HloInstructionProto,
    operands: &[&Shape],
    result: &Shape,
    computations: &HashMap<i64, CompId>,
) -> Result<Op> {
    match proto.opcode.as_str() {
        "parameter" => {
            let number = words::size(proto.parameter_number, "a parameter's number")?;
            return Ok(Parameter { number, shape: result.without_layout() }.into());
        }
        "constant" => {
            let value = proto.literal.as_deref();
            let value = value.ok_or_else(|| Error::invalid("a constant without its value"))?;
            return Ok(Constant { literal: literal::read(value)?, elided: false }.into());
        }
        _ => {}
    }
    let mut pairs = attributes::read(proto)?;
    pairs.extend(calls(proto));
    let nowhere = Location::Text { line: 0, column: 0 };
    let find = |name: &str| computations.get(&name.parse().ok()?).copied();
    let mut reader = AttrReader {
        opcode: &proto.opcode,
        operands,
        result,
        attrs: pairs
            .iter()
            .map(|(name, value)| Attr { name, value, at: nowhere.clone(), taken: false })
            .collect(),
        find_computation: &find,
    };
    let op = Op::read(&mut reader);
    op.unwrap_or_else(|| Err(Error::unimplemented(format!("operation {}", proto.opcode))))
}

/// The computations that an instruction calls, as attributes; their names are their numbers.
fn calls(proto: &HloInstructionProto) -> Vec<(&'static str, String)> {
    let ids = &proto.called_computation_ids;
    let list = || helio_ir::text::attrs::braced(ids);
    let names: &[&str] = match proto.opcode.as_str() {
        "while" => &["body", "condition"],
        "select-and-scatter" => &["select", "scatter"],
        "fusion" | "async-start" | "async-update" | "async-done" => &["calls"],
        "conditional" => return vec![("branch_computations", list())],
        "custom-call" if ids.is_empty() => &[],
        "custom-call" => return vec![("called_computations", list())],
        _ => &["to_apply"],
    };
    names.iter().zip(ids).map(|(&name, id)| (name, id.to_string())).collect()
}

/// `parameter_replication={true,false}`
fn replication(proto: &HloInstructionProto) -> Vec<(String, String)> {
    let known = proto.parameter_replication.as_ref();
    let known = known.map(|replication| {
        let text = helio_ir::text::attrs::braced(&replication.replicated_at_leaf_buffers);
        ("parameter_replication".to_owned(), text)
    });
    known.into_iter().collect()
}

fn read_extra(
    proto: &HloInstructionProto,
    find: &dyn Fn(&i64) -> Result<InstrId>,
) -> Result<Extra> {
    let metadata = proto.metadata.as_deref().map(header::read_metadata);
    let sharding = proto.sharding.as_deref().map(sharding::read).transpose()?;
    let sharding = sharding.as_deref().map(Sharding::read).transpose()?;
    let config = &proto.backend_config;
    let config = match config.is_empty() {
        true => None,
        false => {
            let text = fields::configuration(config, "a back end's configuration")?;
            Some(BackendConfig::read(&text))
        }
    };
    Ok(Extra {
        metadata: metadata.filter(|m| *m != Default::default()).map(Arc::new),
        sharding,
        frontend_attributes: header::read_frontend(proto.frontend_attributes.as_ref()),
        backend_config: config,
        control_predecessors: proto
            .control_predecessor_ids
            .iter()
            .map(find)
            .collect::<Result<_>>()?,
        other: replication(proto),
    })
}
