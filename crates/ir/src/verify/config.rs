//! The attributes of a module's first line against its entry computation; channels.

use std::collections::{BTreeMap, HashSet};

use super::brief;
use crate::module::{InputOutputAlias, ModuleConfig, ProgramShape};
use crate::{Computation, Error, Module, Op, Result, Shape};

/// module.C4–module.C8.
pub(super) fn check(module: &Module) -> Vec<Error> {
    let entry = module.entry();
    let found = entry.program_shape();
    let ModuleConfig { entry_layout, input_output_alias, replica_count, num_partitions, .. } =
        &module.config;
    let mut results = Vec::new();
    if let Some(layout) = entry_layout {
        results.extend(layouts(layout, &found));
    }
    let mut aliased = Aliased::default();
    results.extend(input_output_alias.iter().map(|entry| alias(entry, &found, &mut aliased)));
    let donors = &module.config.buffer_donors;
    results.extend(donors.iter().map(|(parameter, path)| {
        let shape = parameter_leaf("module.C6", "buffer_donor", *parameter, path, &found)?;
        crate::ensure!(
            aliased.inputs.insert((*parameter, path)),
            "module.C6",
            "buffer_donor: parameter {parameter} at {path:?}, {shape}, is given away twice"
        );
        Ok(())
    }));
    for (name, count) in [("replica_count", replica_count), ("num_partitions", num_partitions)] {
        if *count == Some(0) {
            let detail = format!("{name}=0; there is at least one");
            results.push(Err(Error::rule("module.C7", detail)));
        }
    }
    // The first line has no place of its own: the entry stands for it.
    let mut errors: Vec<_> =
        results.into_iter().filter_map(Result::err).map(|e| e.at(entry.at.clone())).collect();
    errors.extend(channels(module));
    errors
}

/// module.C4: `entry_computation_layout` has the entry's shapes; only layouts may differ.
fn layouts(layout: &ProgramShape, found: &ProgramShape) -> Vec<Result<()>> {
    let compare = |what: String, stated: &Shape, found: &Shape| {
        crate::ensure!(
            stated.same(found),
            "module.C4",
            "entry_computation_layout: {what} is {}, but {} in the entry computation",
            brief(stated),
            brief(found)
        );
        Ok(())
    };
    let (stated, actual) = (layout.params.len(), found.params.len());
    let mut results = vec![compare("the result".to_owned(), &layout.result, &found.result)];
    if stated != actual {
        let detail = format!(
            "entry_computation_layout has {stated} parameters, the entry computation {actual}"
        );
        results.push(Err(Error::rule("module.C4", detail)));
    }
    for (i, (stated, found)) in layout.params.iter().zip(&found.params).enumerate() {
        results.push(compare(format!("parameter {i}"), stated, found));
    }
    results
}

/// What is spoken for already.
#[derive(Default)]
struct Aliased<'a> {
    outputs: HashSet<&'a [usize]>,
    inputs: HashSet<(usize, &'a Vec<usize>)>,
}

/// module.C5: an alias joins an output and an input of the same number of bytes, each once.
fn alias<'a>(
    entry: &'a InputOutputAlias,
    found: &ProgramShape,
    aliased: &mut Aliased<'a>,
) -> Result<()> {
    let InputOutputAlias { output, parameter, parameter_index, .. } = entry;
    let shape = at_path(&found.result, output).ok_or_else(|| {
        let result = brief(&found.result);
        let detail = format!("input_output_alias: the result, {result}, has nothing at {output:?}");
        Error::rule("module.C5", detail)
    })?;
    let input =
        parameter_leaf("module.C5", "input_output_alias", *parameter, parameter_index, found)?;
    crate::ensure!(
        shape.size_bytes() == input.size_bytes(),
        "module.C5",
        "input_output_alias: output {output:?} is {}, but its parameter {parameter} at \
         {parameter_index:?} is {}; they must take the same number of bytes",
        brief(shape),
        brief(input)
    );
    crate::ensure!(
        aliased.outputs.insert(output),
        "module.C5",
        "input_output_alias: output {output:?} has two parameters"
    );
    crate::ensure!(
        aliased.inputs.insert((*parameter, parameter_index)),
        "module.C5",
        "input_output_alias: parameter {parameter} at {parameter_index:?} has two outputs"
    );
    Ok(())
}

fn parameter_leaf<'a>(
    rule: &'static str,
    attribute: &str,
    parameter: usize,
    path: &[usize],
    found: &'a ProgramShape,
) -> Result<&'a Shape> {
    let shape = found.params.get(parameter).ok_or_else(|| {
        let count = found.params.len();
        Error::rule(rule, format!("{attribute}: parameter {parameter} of {count}"))
    })?;
    at_path(shape, path).ok_or_else(|| {
        let shape = brief(shape);
        let detail =
            format!("{attribute}: parameter {parameter}, {shape}, has nothing at {path:?}");
        Error::rule(rule, detail)
    })
}

fn at_path<'a>(shape: &'a Shape, path: &[usize]) -> Option<&'a Shape> {
    path.iter().try_fold(shape, |shape, &i| shape.as_tuple()?.get(i))
}

/// module.C8: a send and a receive on one channel between devices carry the same shape.
fn channels(module: &Module) -> Vec<Error> {
    let mut sent: BTreeMap<i64, &Shape> = BTreeMap::new();
    let mut received = Vec::new();
    for computation in module.computations() {
        for instr in computation.effects().iter().map(|&id| computation.instr(id)) {
            match &instr.op {
                Op::Send(op) if !op.is_host_transfer => {
                    let operand = instr.operands.first().and_then(|id| shape_of(computation, id.0));
                    if let (Some(channel), Some(shape)) = (op.channel_id, operand) {
                        sent.entry(channel).or_insert(shape);
                    }
                }
                Op::Recv(op) if !op.is_host_transfer => {
                    received.extend(op.channel_id.map(|channel| (channel, &op.shape, instr)));
                }
                _ => {}
            }
        }
    }
    let mut errors = Vec::new();
    for (channel, shape, instr) in received {
        if let Some(other) = sent.get(&channel).filter(|other| !other.same(shape)) {
            let (shape, other) = (brief(shape), brief(other));
            let detail = format!("receives {shape} on channel {channel}, to which {other} is sent");
            errors.push(module.place(Error::rule("module.C8", detail), instr));
        }
    }
    errors
}

/// The shape of an operand, which may be missing: order is checked elsewhere.
fn shape_of(computation: &Computation, id: u32) -> Option<&Shape> {
    computation.instrs().get(id as usize).map(|instr| &instr.shape)
}
