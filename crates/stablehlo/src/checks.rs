//! Programs that judge themselves: StableHLO's `check` operations, run.

use std::collections::{HashMap, HashSet};

use helio_ir::types::Number;
use helio_ir::{Array, Error, Literal, Module as Hlo, Result};

use crate::lower::{self, Check, CheckKind, Stage};
use crate::mlir::{Attribute, Module, Operation, ValueId};
use crate::text;

/// One of several programs that run at once.
#[derive(Clone, Debug)]
pub struct Process {
    /// Which replica it is.
    pub replica: usize,
    /// Which partition it is.
    pub partition: usize,
    /// The module, whose configuration says how many replicas and partitions there are.
    pub module: Hlo,
    /// Its arguments.
    pub arguments: Vec<Literal>,
}

/// What runs modules.
pub trait Engine {
    /// The result of a module for these arguments.
    fn run(&self, module: &Hlo, arguments: Vec<Literal>) -> Result<Literal>;

    /// The result of each process; all run at once, and exchange values. Whatever any of them takes
    /// from an infeed is the next of `infeed`. Errors: `Unimplemented` unless an engine can do so.
    fn run_parallel(&self, processes: Vec<Process>, infeed: Vec<Literal>) -> Result<Vec<Literal>> {
        let _ = infeed;
        let count = processes.len();
        Err(Error::unimplemented(format!("{count} processes at once on this engine")))
    }
}

impl<F: Fn(&Hlo, Vec<Literal>) -> Result<Literal>> Engine for F {
    fn run(&self, module: &Hlo, arguments: Vec<Literal>) -> Result<Literal> {
        self(module, arguments)
    }
}

/// Why a program does not meet its own checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckFailure {
    /// A value is not what the program expects: the first difference, and where it is stated.
    Difference(Error),
    /// The program is wrong, or cannot be run.
    Program(Error),
}

impl CheckFailure {
    /// What has happened, and where.
    pub fn error(&self) -> &Error {
        match self {
            CheckFailure::Difference(error) | CheckFailure::Program(error) => error,
        }
    }
}

impl std::fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error().fmt(f)
    }
}

impl From<Error> for CheckFailure {
    fn from(error: Error) -> Self {
        CheckFailure::Program(error)
    }
}

/// Runs each module of a text (lines `// -----` separate them) and its checks: how each has fared,
/// by the line where it begins, from 1. A module without operations passes.
pub fn run_checks(source: &str, engine: &impl Engine) -> Vec<(u32, Result<(), CheckFailure>)> {
    let parts = text::split(source).into_iter();
    parts
        .map(|(line, part)| {
            let module = text::parse_part(part, line).map_err(CheckFailure::Program);
            (line + 1, module.and_then(|module| check_module(&module, engine)))
        })
        .collect()
}

/// Whether a program says something of its own values.
pub fn has_checks(module: &Module) -> bool {
    lower::has_checks(module)
}

/// Runs a module's entry, which takes nothing, and compares what its checks name. Errors: those of
/// the program, and the first difference.
pub fn check_module(module: &Module, engine: &impl Engine) -> Result<(), CheckFailure> {
    if module.operations.is_empty() {
        return Ok(());
    }
    let entry = lower::entry(module)?;
    let block = lower::function_block(entry)?;
    if !block.arguments.is_empty() {
        let detail = "a program that is run for its checks must take nothing";
        return Err(Error::invalid(detail).at(entry.at.clone()).into());
    }
    let mut known = HashMap::new();
    let mut rest = &block.operations[..];
    loop {
        let end = rest.iter().position(|op| op.name == "interpreter.run_parallel");
        let (stage, after) = rest.split_at(end.unwrap_or(rest.len()));
        let wanted = wanted(stage, after);
        let lowered = Stage::new(module, stage, &known, &wanted)?;
        let values = run_stage(&lowered, engine)?;
        known.extend(wanted.into_iter().zip(values));
        let Some((parallel, after)) = after.split_first() else { return Ok(()) };
        let results = run_parallel(module, parallel, &known, engine)
            .map_err(|e| e.in_instruction(&parallel.name).at(parallel.at.clone()))?;
        known.extend(parallel.results.iter().copied().zip(results));
        rest = after;
    }
}

/// The values of a stage that what comes after it uses.
fn wanted(stage: &[Operation], after: &[Operation]) -> Vec<ValueId> {
    let mut used: HashSet<ValueId> = HashSet::new();
    let mut pending: Vec<&Operation> = after.iter().collect();
    while let Some(op) = pending.pop() {
        used.extend(&op.operands);
        for block in op.regions.iter().flat_map(|region| &region.blocks) {
            pending.extend(&block.operations);
        }
    }
    stage.iter().flat_map(|op| &op.results).copied().filter(|v| used.contains(v)).collect()
}

/// Runs a stage and compares what its checks name; the values asked for.
fn run_stage(stage: &Stage, engine: &impl Engine) -> Result<Vec<Literal>, CheckFailure> {
    let Literal::Tuple(mut values) = engine.run(&stage.module, Vec::new())? else {
        return Err(Error::internal("a stage gives a tuple").into());
    };
    if values.len() < 2 * stage.checks.len() {
        return Err(Error::internal("a stage gives two values for each check").into());
    }
    let rest = values.split_off(2 * stage.checks.len());
    for (check, pair) in stage.checks.iter().zip(values.chunks_exact(2)) {
        compare(check, &pair[0], &pair[1]).map_err(CheckFailure::Difference)?;
    }
    Ok(rest)
}

fn run_parallel(
    module: &Module,
    op: &Operation,
    known: &HashMap<ValueId, Literal>,
    engine: &impl Engine,
) -> Result<Vec<Literal>> {
    let wrong = |name: &str| Error::invalid(format!("attribute `{name}` must be lists of symbols"));
    let symbol = |attribute: &Attribute| match attribute {
        Attribute::Symbol(path) => Some(path.join("::")),
        _ => None,
    };
    let row = |attribute: &Attribute| match attribute {
        Attribute::Array(list) => list.iter().map(symbol).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let programs = match op.attribute("programs") {
        Some(Attribute::Array(rows)) => rows.iter().map(row).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let programs = programs.ok_or_else(|| wrong("programs"))?;
    let partitions = programs.first().map_or(0, Vec::len);
    let mut arguments = op.operands.iter();
    let mut processes = Vec::new();
    for (replica, row) in programs.iter().enumerate() {
        for (partition, name) in row.iter().enumerate() {
            let module = lower::process(module, name, programs.len(), partitions)?;
            let count = module.entry().program_shape().params.len();
            let arguments = arguments.by_ref().take(count).map(|value| known.get(value).cloned());
            let arguments = arguments.collect::<Option<Vec<_>>>();
            let arguments = arguments.filter(|list| list.len() == count);
            let arguments =
                arguments.ok_or_else(|| Error::invalid("fewer operands than the programs take"))?;
            processes.push(Process { replica, partition, module, arguments });
        }
    }
    let queues = match op.attribute("infeed") {
        None => Vec::new(),
        Some(attribute) => row(attribute).ok_or_else(|| wrong("infeed"))?,
    };
    let queue = |name: &String| engine.run(&lower::process(module, name, 1, 1)?, Vec::new());
    let infeed = queues.iter().map(queue).collect::<Result<_>>()?;
    let results = engine.run_parallel(processes, infeed)?;
    let mut flat = Vec::new();
    for result in results {
        match result {
            Literal::Tuple(elements) => flat.extend(elements),
            other => flat.push(other),
        }
    }
    if flat.len() != op.results.len() {
        let (found, named) = (flat.len(), op.results.len());
        return Err(Error::invalid(format!("{found} results, but {named} are named")));
    }
    Ok(flat)
}

/// Errors: the first element in which the values differ, and by how much.
fn compare(check: &Check, found: &Literal, expected: &Literal) -> Result<()> {
    let fail = |detail: String| {
        let error = Error::invalid(detail).in_instruction(&check.name);
        Err(error.at(check.at.clone()))
    };
    let (Literal::Array(a), Literal::Array(b)) = (found, expected) else {
        return fail("only arrays can be compared".to_owned());
    };
    if !a.shape().same(b.shape()) {
        return fail(format!("found {}, expected {}", a.shape(), b.shape()));
    }
    for i in 0..a.shape().element_count() {
        if !agree(check.kind, a, b, i) {
            let place = index_of(i, a.dims());
            let (a, b) = (show(a.number(i)), show(b.number(i)));
            return fail(format!("element {place:?}: found {a}, expected {b} ({:?})", check.kind));
        }
    }
    Ok(())
}

fn index_of(mut i: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for d in (0..dims.len()).rev() {
        index[d] = i % dims[d].max(1);
        i /= dims[d].max(1);
    }
    index
}

fn show(number: Number) -> String {
    match number {
        Number::Pred(v) => v.to_string(),
        Number::Int(v) => v.to_string(),
        Number::Float(v) => format!("{v:e}"),
        Number::Complex(v) => format!("({:e}, {:e})", v.re, v.im),
    }
}

/// Whether element `i` of two arrays of one type is the same in this sense.
fn agree(kind: CheckKind, a: &Array, b: &Array, i: usize) -> bool {
    let (x, y) = (a.number(i), b.number(i));
    let parts = |number: Number| match number {
        Number::Complex(v) => vec![v.re, v.im],
        other => vec![other.to_f64()],
    };
    match kind {
        CheckKind::Equal => x == y,
        CheckKind::AlmostEqual { tolerance } => {
            let near = |(x, y): (f64, f64)| {
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance
            };
            parts(x).into_iter().zip(parts(y)).all(near)
        }
        CheckKind::Close { min_ulps, max_ulps } => {
            let bits = a.element().real_part().bits();
            let (p, q) = (ordered(a, i, bits), ordered(b, i, bits));
            let values = parts(x).into_iter().zip(parts(y));
            values.zip(p.into_iter().zip(q)).all(|((x, y), (p, q))| {
                if x.is_nan() || y.is_nan() {
                    return x.is_nan() && y.is_nan();
                }
                if x.is_infinite() || y.is_infinite() {
                    return x == y;
                }
                (u128::from(min_ulps)..=u128::from(max_ulps)).contains(&p.abs_diff(q))
            })
        }
    }
}

/// The parts of a number as integers in the same order; neighbours differ by one.
fn ordered(array: &Array, i: usize, bits: usize) -> Vec<i128> {
    let all = array.bits(i);
    let count = if array.element().is_complex() { 2 } else { 1 };
    (0..count)
        .map(|part| {
            let word = all >> (part * bits) & ((1u128 << bits) - 1);
            let magnitude = (word & !(1 << (bits - 1))) as i128;
            if word >> (bits - 1) & 1 == 1 { -magnitude } else { magnitude }
        })
        .collect()
}
