//! `check` operations: what a program says of its own values.

use std::collections::{HashMap, HashSet};

use helio_ir::{Error, InstrId, Literal, Location, Module as Hlo, Result, Shape};

use super::body::Body;
use super::operation::{Site, unknown};
use super::{Lowering, types};
use crate::mlir::{self, Attribute, Operation, Type, ValueId};

/// When two values are taken for the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckKind {
    /// Every element is equal; NaN is not.
    Equal,
    /// Elements are equal, both NaN, or their difference is at most this.
    AlmostEqual {
        /// The largest difference.
        tolerance: f64,
    },
    /// The distance in units in the last place is in a range; both NaN will do.
    Close {
        /// The smallest distance.
        min_ulps: u64,
        /// The largest distance.
        max_ulps: u64,
    },
}

/// A comparison that a program asks for.
#[derive(Clone, Debug)]
pub struct Check {
    /// When the values are taken for the same.
    pub kind: CheckKind,
    /// The operation: `check.expect_eq`.
    pub name: String,
    /// Where it stands.
    pub at: Option<Location>,
}

/// A comparison of two values of a computation.
pub(super) struct Pending {
    pub check: Check,
    pub found: InstrId,
    pub expected: InstrId,
}

/// A part of a program, between its parallel operations.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// Its module, which takes nothing, and gives a tuple: for each check the value found and the
    /// one expected, then the values asked for.
    pub module: Hlo,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Stage {
    /// Lowers operations of a function, given the values of others before it.
    pub(crate) fn new(
        source: &mlir::Module,
        operations: &[Operation],
        known: &HashMap<ValueId, Literal>,
        wanted: &[ValueId],
    ) -> Result<Stage> {
        let mut cx = Lowering::new(source)?;
        cx.checking = true;
        let name = cx.unique_name("main");
        let mut body = Body::new(&mut cx, &name);
        body.is_entry = true;
        let mut used: Vec<_> = known.iter().collect();
        used.sort_by_key(|(value, _)| **value);
        for (&value, literal) in used {
            let id = body.value_of(literal)?;
            body.bind(value, id);
        }
        let last = operations.last().filter(|op| op.name == "func.return");
        let operations = &operations[..operations.len() - usize::from(last.is_some())];
        body.operations(operations)?;
        let mut root = Vec::new();
        let mut checks = Vec::new();
        for pending in std::mem::take(&mut body.checks) {
            root.extend([pending.found, pending.expected]);
            checks.push(pending.check);
        }
        for &value in wanted {
            root.push(body.value(value)?);
        }
        let root = body.tuple(&root)?;
        body.finish(vec![root])?;
        Ok(Stage { module: cx.finish(), checks })
    }
}

/// The module of one function, as one of several processes.
pub(crate) fn process(
    source: &mlir::Module,
    name: &str,
    replicas: usize,
    partitions: usize,
) -> Result<Hlo> {
    let mut cx = Lowering::new(source)?;
    cx.output.config.replica_count = Some(replicas);
    cx.output.config.num_partitions = Some(partitions);
    let function = cx.functions.get(name).copied();
    let function =
        function.ok_or_else(|| Error::invalid(format!("there is no function `{name}`")))?;
    let (inputs, _) = super::signature(function)?;
    let shapes = inputs.iter().map(types::shape).collect::<Result<Vec<Shape>>>()?;
    let id = cx.function(function, &shapes)?;
    cx.output.set_entry(id);
    Ok(cx.finish())
}

impl<'m> Body<'_, 'm> {
    /// A value as instructions.
    fn value_of(&mut self, literal: &Literal) -> Result<InstrId> {
        match literal {
            Literal::Array(_) => self.literal(literal.clone()),
            Literal::Token => self.push(helio_ir::ops::AfterAll, &[]),
            Literal::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.value_of(element));
                let elements = elements.collect::<Result<Vec<_>>>()?;
                self.tuple(&elements)
            }
        }
    }

    pub(super) fn check(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let name = match site.op.name.as_str() {
            "stablehlo.custom_call" => attrs.string("call_target_name")?.unwrap_or_default(),
            name => name,
        };
        let is_call = site.op.name != name;
        match name {
            "interpreter.print" => return Ok(Vec::new()),
            "interpreter.probe" => {
                let [x] = site.operands()?;
                let key = attrs.string("probe_id")?.unwrap_or_default().to_owned();
                if self.record(&key, x)? {
                    return Ok(vec![x]);
                }
                self.ensure_entry()?;
                self.probes.entry(key).or_default().push(x);
                return Ok(vec![x]);
            }
            _ => {}
        }
        self.ensure_entry()?;
        let found = site.operands::<1>()?[0];
        let expected = match name {
            "check.expect_eq_const" | "check.expect_almost_eq_const" => {
                let Some(Attribute::Dense(dense)) = attrs.get("value") else {
                    return Err(Error::invalid("attribute `value` must be `dense<…>`"));
                };
                self.elements(types::elements(dense)?)?
            }
            "check.expect_serialized_eq" => {
                let key = attrs.string("probe_id")?.unwrap_or_default();
                let index = attrs.integer("iter")?.unwrap_or(0).max(0) as usize;
                let probe = self.probes.get(key).and_then(|values| values.get(index));
                *probe.ok_or_else(|| Error::invalid(format!("no probe `{key}` of {index}")))?
            }
            _ => site.operands::<2>()?[1],
        };
        let tolerance = attrs.float("tolerance")?.unwrap_or(if is_call { 1e-3 } else { 1e-4 });
        let ulps = |name: &str, default: u64| {
            Ok::<_, Error>(attrs.integer(name)?.map_or(default, |ulps| ulps.max(0) as u64))
        };
        let kind = match name {
            "check.expect_eq" | "check.expect_eq_const" | "check.expect_serialized_eq" => {
                CheckKind::Equal
            }
            "check.expect_almost_eq" | "check.expect_almost_eq_const" => {
                CheckKind::AlmostEqual { tolerance }
            }
            "check.expect_close" => CheckKind::Close {
                min_ulps: ulps("min_ulp_difference", 0)?,
                max_ulps: ulps("max_ulp_difference", if is_call { 3 } else { 1 })?,
            },
            "check.eq" if self.element(found)?.is_integer() => CheckKind::Equal,
            "check.eq" => CheckKind::AlmostEqual { tolerance: 1e-4 },
            _ => return Err(unknown()),
        };
        let check = Check { kind, name: name.to_owned(), at: self.at.clone() };
        self.checks.push(Pending { check, found, expected });
        match site.result_types.len() {
            0 => Ok(Vec::new()),
            _ => Ok(vec![self.are_equal(found, expected)?]),
        }
    }

    /// Whether all elements of two arrays are equal: what `check.eq` gives besides being a check.
    fn are_equal(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        let equal = self.compare(helio_ir::ops::Direction::Eq, x, y)?;
        let dimensions = (0..self.array(equal)?.rank()).collect();
        self.fold(helio_ir::BinaryOp::And, equal, dimensions, 1.0)
    }

    fn ensure_entry(&self) -> Result<()> {
        if self.cx.checking && self.is_entry {
            return Ok(());
        }
        Err(Error::unimplemented(match self.cx.checking {
            true => "a check in a region",
            false => "a check, in a program that is not run for its checks",
        }))
    }
}

/// The functions that have checks or sizes that are open, and those that call them.
pub(super) fn functions_to_inline<'m>(
    functions: &HashMap<&'m str, &'m Operation>,
) -> HashSet<&'m str> {
    let mut calls: HashMap<&str, Vec<&'m str>> = HashMap::new();
    let mut found = HashSet::new();
    let mut pending = Vec::new();
    for (&name, &function) in functions {
        let open = matches!(function.attribute("function_type"),
            Some(Attribute::Type(ty @ Type::Function { .. })) if types::is_dynamic(ty));
        let mut special = open;
        visit(function, &mut |op| {
            special |= is_check(op) || op.name == "interpreter.probe";
            if matches!(op.name.as_str(), "func.call" | "stablehlo.composite") {
                let callee = op.attribute("callee").or(op.attribute("decomposition"));
                if let Some(Attribute::Symbol(path)) = callee {
                    calls.entry(path[0].as_str()).or_default().push(name);
                }
            }
        });
        if special && found.insert(name) {
            pending.push(name);
        }
    }
    while let Some(name) = pending.pop() {
        for &caller in calls.get(name).into_iter().flatten() {
            if found.insert(caller) {
                pending.push(caller);
            }
        }
    }
    found
}

/// Whether a program says something of its own values, or runs others.
pub(crate) fn has_checks(source: &mlir::Module) -> bool {
    let mut found = false;
    let is_own = |op: &Operation| is_check(op) || op.name.starts_with("interpreter.");
    source.operations.iter().for_each(|op| visit(op, &mut |op| found |= is_own(op)));
    found
}

/// A `check` operation, in StableHLO's form or as the custom call that stands for one.
fn is_check(op: &Operation) -> bool {
    let target = match op.attribute("call_target_name") {
        Some(Attribute::String(target)) => target,
        _ => &op.name,
    };
    target.starts_with("check.")
}

/// Calls a function for an operation and for each in its regions.
pub(super) fn visit<'m>(op: &'m Operation, see: &mut impl FnMut(&'m Operation)) {
    let mut pending = vec![op];
    while let Some(op) = pending.pop() {
        see(op);
        for block in op.regions.iter().flat_map(|region| &region.blocks) {
            pending.extend(&block.operations);
        }
    }
}
