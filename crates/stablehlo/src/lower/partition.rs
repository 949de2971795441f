//! Programs for several partitions that say how arrays are cut up among them (Shardy's attributes).
//!
//! What is within `sdy.manual_computation` is for one partition already, along the axes that it names
//! (`manual`). Outside of it, what needs nothing but the tiles of its operands is done on tiles (`Local`): the
//! result then is cut up as they are, unless the program says otherwise. Everything else is computed by every
//! partition as a whole: it gathers what it has a tile of, and takes its tile of what it needs one of. A value
//! that comes in the tiles in which it is needed is never gathered. Where operands are whole, tiles are made
//! that all users want (`wishes`). Loops and branches are done on tiles, too (`loops`). What depends on no tiles (constants, and what is element by element made
//! of them) is made in those that are needed; if nobody needs it, as a whole, for what may be wrong with it.

use std::collections::HashSet;

use helio_ir::ops::OptimizationBarrier;
use helio_ir::{ArrayShape, Error, Module as Hlo, Result, Shape, Sharding};

use super::body::Body;
use super::checks::visit;
use super::control::captures;
use super::forms::{Forms, Recipe, Spread};
use super::local::{Choice, Local};
use super::step::{Step, cutting};
use super::wishes::Wishes;
use super::{Lowering, entry, function_block, signature, types};
use crate::front_end;
use crate::interface::{Interface, ParameterInfo};
use crate::mlir::{self, Attribute, Operation, Type, ValueId};
use crate::sharding::Meshes;
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
    /// Of values that a loop gives in other tiles than it gets them, so that partitions exchange them in each
    /// iteration: a line for each, which names the loop.
    pub exchanged: Vec<String>,
}

/// What a lowering knows of partitions.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// How many there are.
    pub(super) count: usize,
    pub(super) meshes: Meshes,
    /// The functions that say how arrays are cut up, or call some that do.
    pub(super) cutting: HashSet<String>,
    /// The channel of the last collective that gathers tiles.
    pub(super) last_channel: i64,
    /// The number of each partition's group, in which an array is in tiles: all of them outside of manual
    /// computations, and those that are at the same place along its axes inside of one.
    pub(super) groups: Vec<usize>,
}

impl Partitions {
    /// Whether the program is not cut up.
    pub(super) fn is_whole(&self) -> bool {
        self.count == 0
    }
}

/// Beyond the channels of programs.
const FIRST_CHANNEL: i64 = 1 << 40;

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
    let groups = vec![0; partitions];
    let last_channel = FIRST_CHANNEL;
    let cutting = cutting(&cx.functions);
    cx.partitions = Partitions { count: partitions, meshes, cutting, last_channel, groups };
    let block = function_block(entry)?;
    let mut body = Body::new(&mut cx, "main");
    let mut main = Forms::default();
    let arguments: Vec<Tiling> = inputs
        .iter()
        .zip(arguments)
        .map(|(ty, tiling)| tiling.unwrap_or_else(|| Tiling::whole(rank(ty), partitions)))
        .collect();
    for (number, (&value, tiling)) in block.arguments.iter().zip(&arguments).enumerate() {
        let shape = local(&types::shape(&inputs[number])?, tiling)?;
        body.has_attributes(front_end::attributes_of_argument(entry, number));
        let id = body.parameter(number, shape, &format!("arg{number}"))?;
        body.has_attributes(Vec::new());
        // What the program says of shardings is done here.
        let info = ParameterInfo { sharding: None, ..interface.parameters[number].clone() };
        body.describe(number, id, &info, outputs.len() > 1);
        main.give(&body, value, tiling.clone(), id)?;
    }
    main.wishes = Wishes::of(body.cx, block, &wanted);
    let given = main.block(&mut body, block)?;
    let (mut ids, mut results) = (Vec::new(), Vec::new());
    for (place, wanted) in given.into_iter().zip(wanted) {
        let node = &main.nodes[place];
        let is_there = node.forms.first().filter(|_| node.spread != Spread::Any);
        let tiling = wanted.or_else(|| is_there.map(|form| form.0.clone()));
        let tiling = tiling.unwrap_or_else(|| Tiling::whole(node.rank(), partitions));
        ids.push(main.form(&mut body, place, &tiling)?);
        results.push(tiling);
    }
    main.make_the_rest(&mut body, 0)?;
    let Forms { replicated, exchanged, .. } = main;
    let id = body.finish(ids)?;
    cx.output.set_entry(id);
    Ok(Partitioned { module: cx.finish(), arguments, results, replicated, exchanged })
}

pub(super) fn rank(ty: &Type) -> usize {
    ty.as_tensor().map_or(0, |tensor| tensor.dims.len())
}

/// The shape of a tile.
pub(super) fn local(shape: &Shape, tiling: &Tiling) -> Result<Shape> {
    match shape {
        Shape::Array(array) => Shape::array(array.element(), tiling.local_dims(array.dims())?),
        other => Ok(other.clone()),
    }
}

impl<'m> Forms<'m> {
    /// The operations of a block; the places of the values that it returns.
    pub(super) fn block(
        &mut self,
        body: &mut Body<'_, 'm>,
        block: &'m mlir::Block,
    ) -> Result<Vec<usize>> {
        let Some((last, rest)) = block.operations.split_last() else {
            return Err(Error::invalid("a block without operations"));
        };
        for op in rest {
            let result = match Step::of(op, body.cx) {
                Step::Manual => self.manual(body, op),
                Step::Call(function) if self.is_inlined(body, op, function) => {
                    self.call(body, op, function)
                }
                Step::Barrier => self.barrier(body, op),
                Step::Constrain => op
                    .operands
                    .iter()
                    .zip(&op.results)
                    .try_for_each(|(&from, &to)| self.constrain(body, op, from, to)),
                Step::Loop => self.while_loop(body, op),
                Step::Branches => self.branches(body, op),
                Step::Local(local) => self.local(body, op, local),
                Step::Batches(local) => self.batches(body, op, &local),
                Step::Random => self.random_bits(body, op),
                Step::Call(_) | Step::Replicate => self.replicate(body, op),
            };
            result.map_err(|e| e.at(op.at.clone()))?;
        }
        match last.name.as_str() {
            "func.return" | "sdy.return" | "stablehlo.return" => {
                last.operands.iter().map(|&value| self.place(value)).collect()
            }
            name => Err(Error::invalid(format!("a block ends with `return`, not with `{name}`"))),
        }
    }

    /// An operation that each partition does as a whole.
    pub(super) fn replicate(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        for &value in &op.operands {
            self.whole(body, value)?;
        }
        for value in op.regions.iter().flat_map(captures) {
            self.whole(body, value)?;
        }
        self.replicated += usize::from(op.name != "stablehlo.constant");
        body.operation(op)?;
        for &value in &op.results {
            let id = body.value(value)?;
            let rank = body.shape(id).as_array().map_or(0, ArrayShape::rank);
            self.give(body, value, Tiling::whole(rank, body.cx.partitions.count), id)?;
        }
        Ok(())
    }

    /// An operation that each partition does on its tiles, if its operands are there in tiles; or later,
    /// when it is known which tiles are needed.
    fn local(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation, local: Local) -> Result<()> {
        let operands = op.operands.iter().map(|&value| self.place(value));
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let shape = types::shape(body.cx.source.type_of(op.results[0]))?;
        let rank = shape.as_array().map_or(0, ArrayShape::rank);
        let spreads: Vec<_> = operands.iter().map(|&place| &self.nodes[place].spread).collect();
        let space = match local.choice(&spreads, &body.cx.partitions.groups) {
            Choice::Tiles(space) => Some(space),
            Choice::Any => {
                self.give_recipe(op.results[0], shape, Recipe { op, local, operands });
                return Ok(());
            }
            Choice::Whole => self.wishes.of_result(op).and_then(|wish| local.space_for(wish)),
        };
        let Some(space) = space else { return self.replicate(body, op) };
        let tiling = space.summed_from(rank);
        let mut tiles = Vec::new();
        for (number, &operand) in operands.iter().enumerate() {
            let needed = local.operand(number, &space);
            tiles.push(self.form(body, operand, &needed)?);
        }
        for value in op.regions.iter().flat_map(captures) {
            self.whole(body, value)?;
        }
        let ids = body.on_tiles(op, &local, tiles, &tiling)?;
        for (&value, id) in op.results.iter().zip(ids) {
            let id = body.combine_tiles(id, &tiling, local.combine())?;
            self.give(body, value, space.of_rank(rank), id)?;
        }
        Ok(())
    }

    /// A call that each partition does for some examples of a batch.
    fn batches(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation, local: &Local) -> Result<()> {
        let operands = op.operands.iter().map(|&value| self.place(value));
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let spreads: Vec<_> = operands.iter().map(|&place| &self.nodes[place].spread).collect();
        let Choice::Tiles(space) = local.choice(&spreads, &body.cx.partitions.groups) else {
            return self.replicate(body, op);
        };
        let mut tiles = Vec::new();
        for (number, &operand) in operands.iter().enumerate() {
            tiles.push(self.form(body, operand, &local.operand(number, &space))?);
        }
        let ranks = op.results.iter().map(|&value| rank(body.cx.source.type_of(value)));
        let tilings: Vec<_> = ranks.map(|rank| space.of_rank(rank)).collect();
        let ids = body.batches_on_tiles(op, tiles, &tilings)?;
        for ((&value, tiling), id) in op.results.iter().zip(tilings).zip(ids) {
            body.is_tile(value, &tiling, body.shape(id))?;
            self.give(body, value, tiling, id)?;
        }
        Ok(())
    }

    /// Values after which others are made: in the forms in which they are there.
    fn barrier(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        body.comes_from(op.at.clone(), op.location);
        let (mut ids, mut tilings) = (Vec::new(), Vec::new());
        for &value in &op.operands {
            let place = self.place(value)?;
            let node = &self.nodes[place];
            let whole = Tiling::whole(node.rank(), body.cx.partitions.count);
            let tiling = node.tiles().cloned().unwrap_or(whole);
            ids.push(self.form(body, place, &tiling)?);
            tilings.push(tiling);
        }
        if let [_, _, ..] = ids[..] {
            let tuple = body.tuple(&ids)?;
            let barrier = body.push(OptimizationBarrier, &[tuple])?;
            ids = body.unpack(barrier, ids.len())?;
        } else if let [id] = &mut ids[..] {
            *id = body.push(OptimizationBarrier, &[*id])?;
        }
        for ((&value, tiling), id) in op.results.iter().zip(tilings).zip(ids) {
            self.give(body, value, tiling, id)?;
        }
        Ok(())
    }

    /// Whether a function's operations stand for its call: it says how arrays are cut up, its result is wanted
    /// in tiles, or it is given what is there in tiles or may be made in any.
    fn is_inlined(&mut self, body: &Body<'_, 'm>, op: &Operation, function: &'m Operation) -> bool {
        let is_whole = |value: &ValueId| {
            let node = self.places.get(value).map(|&place| &self.nodes[place]);
            node.is_none_or(|node| node.rank() == 0 || node.spread == Spread::Whole)
        };
        let name = super::symbol_name(function).unwrap_or_default();
        let is_cut = op.results.iter().any(|&value| self.wishes.of_value(value).is_some())
            || body.cx.partitions.cutting.contains(name);
        if op.operands.iter().all(is_whole) && !is_cut {
            return false;
        }
        let is_open = body.cx.open.contains(&name) || body.cx.open.len() >= super::MAX_DEPTH;
        if is_open || self.inlined_operations > super::MAX_INLINED_OPERATIONS {
            return false;
        }
        visit(function, &mut |_| self.inlined_operations += 1);
        self.inlined_operations <= super::MAX_INLINED_OPERATIONS
    }

    /// A function's operations, here.
    fn call(
        &mut self,
        body: &mut Body<'_, 'm>,
        op: &'m Operation,
        function: &'m Operation,
    ) -> Result<()> {
        let block = function_block(function)?;
        if block.arguments.len() != op.operands.len() {
            let (found, needed) = (op.operands.len(), block.arguments.len());
            return Err(Error::invalid(format!("{found} arguments for {needed}")));
        }
        for (&value, &operand) in block.arguments.iter().zip(&op.operands) {
            let place = self.place(operand)?;
            self.name(body, place, value)?;
        }
        let wanted = op.results.iter().map(|&value| self.wishes.of_value(value).cloned());
        let inside = Wishes::of(body.cx, block, &wanted.collect::<Vec<_>>());
        let outside = std::mem::replace(&mut self.wishes, inside);
        body.cx.open.push(super::symbol_name(function).unwrap_or_default());
        let results = self.block(body, block);
        body.cx.open.pop();
        self.wishes = outside;
        for (&value, place) in op.results.iter().zip(results?) {
            self.name(body, place, value)?;
        }
        Ok(())
    }

    /// A value that the program wants in certain tiles; it stays as it is if they are not the same on all
    /// devices.
    fn constrain(
        &mut self,
        body: &mut Body<'_, 'm>,
        op: &Operation,
        from: ValueId,
        to: ValueId,
    ) -> Result<()> {
        let place = self.place(from)?;
        self.name(body, place, to)?;
        let node = &self.nodes[place];
        let is_there = node.tiles();
        let Some(shape) = node.shape.as_array() else { return Ok(()) };
        let Some(tiling) = body.cx.constraint(op, shape, is_there) else { return Ok(()) };
        let id = self.form(body, place, &tiling)?;
        self.give(body, to, tiling, id)
    }
}

impl Lowering<'_> {
    /// The tiles in which an operation wants an array that may be there in some: dimensions that it leaves
    /// open stay as they are. `None` if it says none, or such as cannot be.
    pub(super) fn constraint(
        &self,
        op: &Operation,
        shape: &ArrayShape,
        is_there: Option<&Tiling>,
    ) -> Option<Tiling> {
        let Some(Attribute::Other(text)) = op.attribute("sharding") else { return None };
        let partitions = &self.partitions;
        let (sharding, is_open) = partitions.meshes.open_sharding(text).ok()?;
        let mut tiling = Tiling::of(&sharding, shape.rank(), partitions.count).ok()?;
        let is_possible = |tiling: &Tiling| {
            tiling.is_complete(&partitions.groups) && tiling.local_dims(shape.dims()).is_ok()
        };
        if tiling.summands > 1 || !is_possible(&tiling) {
            return None;
        }
        // (A value may be of another type than the one that it is named for.)
        let is_there = is_there.filter(|there| there.tiles.len() == shape.rank());
        let is_open = |d: &usize| is_open.get(*d) == Some(&true);
        for dim in
            (0..shape.rank()).filter(is_open).filter(|&d| tiling.tiles[d] == 1).collect::<Vec<_>>()
        {
            let cut = is_there.map(|there| tiling.cut_as(dim, there, dim));
            tiling = cut.filter(is_possible).unwrap_or(tiling);
        }
        Some(tiling)
    }
}
