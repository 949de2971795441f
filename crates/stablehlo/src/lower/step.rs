//! What partitions do for an operation, by its name.

use std::collections::{HashMap, HashSet};

use super::Lowering;
use super::checks::visit;
use super::local::Local;
use crate::mlir::{Attribute, Operation};

/// What partitions do for an operation.
pub(super) enum Step<'m> {
    /// Its region, for each partition's part.
    Manual,
    /// This function's operations, if it is given something in tiles.
    Call(&'m Operation),
    /// Nothing but wait, for values in the tiles in which they are.
    Barrier,
    /// Nothing, unless its results are to be in other tiles.
    Constrain,
    Loop,
    Branches,
    /// The same on tiles.
    Local(Local),
    /// The same on some examples of a batch.
    Batches(Local),
    /// Random bits, in the tiles in which they are wanted.
    Random,
    /// The same on whole arrays.
    Replicate,
}

impl<'m> Step<'m> {
    pub(super) fn of(op: &'m Operation, cx: &Lowering<'m>) -> Self {
        let is_even = op.operands.len() == op.results.len();
        match op.name.as_str() {
            "sdy.manual_computation" => Step::Manual,
            "stablehlo.optimization_barrier" if is_even => Step::Barrier,
            "builtin.unrealized_conversion_cast" | "sdy.sharding_constraint" | "sdy.reshard"
                if is_even =>
            {
                Step::Constrain
            }
            "stablehlo.while" if is_even => Step::Loop,
            "stablehlo.if" | "stablehlo.case" => Step::Branches,
            "stablehlo.rng_bit_generator" => Step::Random,
            "stablehlo.custom_call" => {
                Local::of_batches(op, cx).map_or(Step::Replicate, Step::Batches)
            }
            _ => match (Local::of(op, cx), callee(op, cx)) {
                (Some(local), _) => Step::Local(local),
                (None, Some(function)) => Step::Call(function),
                (None, None) => Step::Replicate,
            },
        }
    }
}

/// The function whose operations stand for an operation: the one that it calls, or the decomposition of a
/// composite that is no operation of HLO's.
fn callee<'m>(op: &Operation, cx: &Lowering<'m>) -> Option<&'m Operation> {
    let name = match (op.name.as_str(), op.attribute("name")) {
        ("func.call", _) => "callee",
        ("stablehlo.composite", Some(Attribute::String(name)))
            if op.regions.is_empty() && !cx.elementwise.contains_key(name.as_str()) =>
        {
            "decomposition"
        }
        _ => return None,
    };
    match op.attribute(name) {
        Some(Attribute::Symbol(path)) => cx.functions.get(path.join("::").as_str()).copied(),
        _ => None,
    }
}

/// The functions that say how arrays are cut up, by a manual computation or a constraint, and those that call
/// such functions.
pub(super) fn cutting(functions: &HashMap<&str, &Operation>) -> HashSet<String> {
    let mut callers: HashMap<String, Vec<&str>> = HashMap::new();
    let mut pending = Vec::new();
    for (&name, &function) in functions {
        visit(function, &mut |op| match op.name.as_str() {
            "sdy.manual_computation" | "sdy.sharding_constraint" | "sdy.reshard" => {
                pending.push(name);
            }
            "func.call" => {
                if let Some(Attribute::Symbol(path)) = op.attribute("callee") {
                    callers.entry(path.join("::")).or_default().push(name);
                }
            }
            _ => {}
        });
    }
    let mut found = HashSet::new();
    while let Some(name) = pending.pop() {
        if found.insert(name.to_owned()) {
            pending.extend(callers.get(name).into_iter().flatten());
        }
    }
    found
}
