//! Programs for several partitions that say how arrays are cut up among them (Shardy's attributes).
//!
//! What is within `sdy.manual_computation` is for one partition already. Whatever is outside is computed
//! by every partition as a whole: it gathers what it has a tile of, and takes its tile of what it needs
//! one of. A value that goes from a manual computation to another, or is an argument or result, in the
//! same tiles is never gathered.

use std::collections::HashMap;

use helio_ir::{Error, InstrId, Module as Hlo, Result, Shape, Sharding};

use super::body::Body;
use super::control::{captures, only_block};
use super::operation::Site;
use super::{Lowering, entry, function_block, signature, types};
use crate::interface::{Interface, ParameterInfo};
use crate::mlir::{self, Attribute, Operation, Type, ValueId};
use crate::sharding::{self, Meshes};
use crate::tiling::Tiling;

/// A program for one of several partitions.
#[derive(Debug)]
pub struct Partitioned {
    /// The program, whose parameters and results are tiles.
    pub module: Hlo,
    /// How the arguments are cut up.
    pub arguments: Vec<Tiling>,
    /// How the results are cut up.
    pub results: Vec<Tiling>,
    /// How many operations every partition computes as a whole.
    pub replicated: usize,
}

/// What a lowering knows of partitions.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    count: usize,
    meshes: Meshes,
    /// The channel of the last collective that gathers tiles.
    pub(super) last_channel: i64,
}

/// Beyond the channels of programs.
const FIRST_CHANNEL: i64 = 1 << 40;

/// A tile of a value.
#[derive(Clone)]
struct Tile {
    id: InstrId,
    tiling: Tiling,
}

/// The module that computes a StableHLO module's entry on one of `partitions` partitions.
///
/// Errors: as for [`lower`](super::lower); shardings that cannot be read, or that cut a dimension into
/// tiles of different sizes.
pub fn lower_partitioned(module: &mlir::Module, partitions: usize) -> Result<Partitioned> {
    let entry = entry(module)?;
    let (inputs, outputs) = signature(entry)?;
    let mut cx = Lowering::new(module)?;
    cx.output.config.num_partitions = Some(partitions).filter(|&count| count > 1);
    let interface = Interface::of(module)?;
    let of = |sharding: Option<&Sharding>, ty: &Type| {
        sharding.map(|sharding| Tiling::of(sharding, rank(ty), partitions)).transpose()
    };
    let parameters = interface.parameters.iter().zip(inputs);
    let arguments = parameters.map(|(info, ty)| of(info.sharding.as_ref(), ty));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let wanted = interface.results.iter().zip(outputs);
    let wanted = wanted.map(|(info, ty)| of(info.sharding.as_ref(), ty));
    let wanted = wanted.collect::<Result<Vec<_>>>()?;
    let meshes = Meshes::of(module)?;
    cx.partitions = Partitions { count: partitions, meshes, last_channel: FIRST_CHANNEL };
    let block = function_block(entry)?;
    let mut body = Body::new(&mut cx, "main");
    let mut main = Main { tiles: HashMap::new(), replicated: 0 };
    let arguments: Vec<Tiling> = inputs
        .iter()
        .zip(arguments)
        .map(|(ty, tiling)| tiling.unwrap_or_else(|| Tiling::whole(rank(ty), partitions)))
        .collect();
    for (number, (&value, tiling)) in block.arguments.iter().zip(&arguments).enumerate() {
        let shape = local(&types::shape(&inputs[number])?, tiling)?;
        let id = body.parameter(number, shape, &format!("arg{number}"))?;
        // What the program says of shardings is done here.
        let info = ParameterInfo { sharding: None, ..interface.parameters[number].clone() };
        body.describe(number, id, &info, outputs.len() > 1);
        main.give(&mut body, value, Tile { id, tiling: tiling.clone() });
    }
    let given = main.block(&mut body, block)?;
    let (mut ids, mut results) = (Vec::new(), Vec::new());
    for (value, wanted) in given.into_iter().zip(wanted) {
        let (id, tiling) = match (main.tiles.get(&value).cloned(), wanted) {
            (Some(tile), None) => (tile.id, tile.tiling),
            (Some(tile), Some(wanted)) if tile.tiling == wanted => (tile.id, wanted),
            (_, wanted) => {
                let whole = main.whole(&mut body, value)?;
                let rank = body.shape(whole).as_array().map_or(0, |array| array.rank());
                let tiling = wanted.unwrap_or_else(|| Tiling::whole(rank, partitions));
                (body.tile(whole, &tiling)?, tiling)
            }
        };
        ids.push(id);
        results.push(tiling);
    }
    let replicated = main.replicated;
    let id = body.finish(ids)?;
    cx.output.set_entry(id);
    Ok(Partitioned { module: cx.finish(), arguments, results, replicated })
}

fn rank(ty: &Type) -> usize {
    ty.as_tensor().map_or(0, |tensor| tensor.dims.len())
}

/// The shape of a tile.
fn local(shape: &Shape, tiling: &Tiling) -> Result<Shape> {
    match shape {
        Shape::Array(array) => Shape::array(array.element(), tiling.local_dims(array.dims())?),
        other => Ok(other.clone()),
    }
}

/// The entry's body: which of its values are there in tiles.
struct Main {
    tiles: HashMap<ValueId, Tile>,
    replicated: usize,
}

impl Main {
    /// Notes a value of which there is a tile.
    fn give(&mut self, body: &mut Body<'_, '_>, value: ValueId, tile: Tile) {
        // In a function that is called again, it may have been gathered.
        body.unbind(value);
        if tile.tiling.is_whole() {
            body.bind(value, tile.id);
        }
        self.tiles.insert(value, tile);
    }

    /// The whole of a value, gathered if need be.
    fn whole(&mut self, body: &mut Body<'_, '_>, value: ValueId) -> Result<InstrId> {
        if let Ok(id) = body.value(value) {
            return Ok(id);
        }
        let Some(tile) = self.tiles.get(&value) else { return body.value(value) };
        let id = body.gather_tiles(tile.id, &tile.tiling)?;
        body.bind(value, id);
        Ok(id)
    }

    /// The operations of a block; the values that it returns.
    fn block<'m>(
        &mut self,
        body: &mut Body<'_, 'm>,
        block: &'m mlir::Block,
    ) -> Result<Vec<ValueId>> {
        let Some((last, rest)) = block.operations.split_last() else {
            return Err(Error::invalid("a block without operations"));
        };
        for op in rest {
            match op.name.as_str() {
                "sdy.manual_computation" => {
                    self.manual(body, op).map_err(|e| e.at(op.at.clone()))?
                }
                "func.call" if calls_manual(body, op) => self.call(body, op)?,
                // Where values lie is decided where they are cut up.
                "builtin.unrealized_conversion_cast"
                | "sdy.sharding_constraint"
                | "sdy.reshard"
                    if op.operands.len() == op.results.len() =>
                {
                    for (&from, &to) in op.operands.iter().zip(&op.results) {
                        self.rename(body, from, to)?;
                    }
                }
                _ => {
                    for &value in &op.operands {
                        self.whole(body, value)?;
                    }
                    for value in op.regions.iter().flat_map(captures) {
                        self.whole(body, value)?;
                    }
                    self.replicated += usize::from(op.name != "stablehlo.constant");
                    body.operation(op)?;
                }
            }
        }
        match last.name.as_str() {
            "func.return" => Ok(last.operands.clone()),
            name => {
                Err(Error::invalid(format!("a function ends with `return`, not with `{name}`")))
            }
        }
    }

    /// A function whose body has manual computations, here.
    fn call<'m>(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        let function = callee(body, op).ok_or_else(|| Error::internal("a function is missing"))?;
        let block = function_block(function)?;
        let name = super::symbol_name(function).unwrap_or_default();
        if body.cx.open.contains(&name) || body.cx.open.len() >= super::MAX_DEPTH {
            return Err(Error::unimplemented(format!("function `{name}` calls itself")));
        }
        body.cx.open.push(name);
        for (&value, &operand) in block.arguments.iter().zip(&op.operands) {
            self.rename(body, operand, value)?;
        }
        let results = self.block(body, block)?;
        body.cx.open.pop();
        for (&value, result) in op.results.iter().zip(results) {
            self.rename(body, result, value)?;
        }
        Ok(())
    }

    /// Gives a value another name.
    fn rename(&mut self, body: &mut Body<'_, '_>, from: ValueId, to: ValueId) -> Result<()> {
        body.unbind(to);
        match self.tiles.get(&from).cloned() {
            Some(tile) => {
                self.give(body, to, tile);
                Ok(())
            }
            None => {
                self.tiles.remove(&to);
                let id = body.value(from)?;
                body.bind(to, id);
                Ok(())
            }
        }
    }

    fn manual<'m>(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        body.comes_from(op.at.clone(), op.location);
        let manual = body.manual(op)?;
        let mut inputs = Vec::new();
        for (&value, tiling) in op.operands.iter().zip(&manual.inputs) {
            let id = match self.tiles.get(&value) {
                Some(tile) if tile.tiling == *tiling => tile.id,
                _ => {
                    let whole = self.whole(body, value)?;
                    body.tile(whole, tiling)?
                }
            };
            inputs.push(id);
        }
        for value in op.regions.iter().flat_map(captures) {
            self.whole(body, value)?;
        }
        let outputs = body.inside(op, &inputs)?;
        for ((&value, id), tiling) in op.results.iter().zip(outputs).zip(manual.outputs) {
            self.give(body, value, Tile { id, tiling });
        }
        Ok(())
    }
}

/// The function that an operation calls.
fn callee<'m>(body: &Body<'_, 'm>, op: &Operation) -> Option<&'m Operation> {
    match op.attribute("callee") {
        Some(Attribute::Symbol(path)) => body.cx.functions.get(path.join("::").as_str()).copied(),
        _ => None,
    }
}

/// Whether a function that is called has a manual computation in its own block.
fn calls_manual(body: &Body<'_, '_>, op: &Operation) -> bool {
    let blocks = callee(body, op).into_iter().flat_map(|function| &function.regions);
    let mut operations = blocks.flat_map(|region| &region.blocks).flat_map(|b| &b.operations);
    operations.any(|op| op.name == "sdy.manual_computation")
}

/// How the operands and results of a manual computation are cut up.
struct Manual {
    inputs: Vec<Tiling>,
    outputs: Vec<Tiling>,
}

impl<'m> Body<'_, 'm> {
    /// A manual computation on whole values.
    pub(super) fn manual_computation(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        for name in ["in_shardings", "out_shardings", "manual_axes"] {
            site.attrs.get(name);
        }
        let manual = self.manual(site.op)?;
        let mut inputs = Vec::new();
        for (&id, tiling) in site.operands.iter().zip(&manual.inputs) {
            inputs.push(self.tile(id, tiling)?);
        }
        let outputs = self.inside(site.op, &inputs)?;
        let gathered = outputs.iter().zip(&manual.outputs);
        gathered.map(|(&id, tiling)| self.gather_tiles(id, tiling)).collect()
    }

    fn manual(&self, op: &Operation) -> Result<Manual> {
        let source = self.cx.source;
        let text = |name: &str| match op.attribute(name) {
            Some(Attribute::Other(text)) => Ok(text.as_str()),
            _ => {
                Err(Error::invalid(format!("attribute `{name}` of a manual computation is needed")))
            }
        };
        let partitions = &self.cx.partitions;
        let of = |name: &str, values: &[ValueId]| {
            let shardings = sharding::list(text(name)?)?;
            if shardings.len() != values.len() {
                let (found, needed) = (shardings.len(), values.len());
                return Err(Error::invalid(format!("`{name}` has {found} shardings for {needed}")));
            }
            let tiling = |(text, &value): (&&str, &ValueId)| {
                let sharding = partitions.meshes.sharding(&format!("#sdy.sharding{text}"))?;
                Tiling::of(&sharding, rank(source.type_of(value)), partitions.count)
            };
            shardings.iter().zip(values).map(tiling).collect::<Result<Vec<_>>>()
        };
        Ok(Manual {
            inputs: of("in_shardings", &op.operands)?,
            outputs: of("out_shardings", &op.results)?,
        })
    }

    /// What a manual computation makes of tiles.
    fn inside(&mut self, op: &'m Operation, inputs: &[InstrId]) -> Result<Vec<InstrId>> {
        let region = op.regions.first();
        let region = region.ok_or_else(|| Error::invalid("a manual computation has a region"))?;
        let block = only_block(region)?;
        if block.arguments.len() != inputs.len() {
            let (found, needed) = (inputs.len(), block.arguments.len());
            return Err(Error::invalid(format!("{found} operands for a block of {needed}")));
        }
        for (&value, &id) in block.arguments.iter().zip(inputs) {
            if !types::agrees(self.shape(id), self.cx.source.type_of(value)) {
                let (found, ty) = (self.shape(id), self.cx.source.type_of(value));
                return Err(Error::invalid(format!("a tile {found} for an argument {ty}")));
            }
            self.bind(value, id);
        }
        self.deeper(|body| body.block(block))
    }
}
