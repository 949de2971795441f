//! Manual computations: what is within one is for each partition's part of the operands already, as far as
//! these are cut up along the axes that it names. Along others, what is within is done on tiles, as outside.

use helio_ir::{Error, InstrId, Result, Shape};

use super::body::Body;
use super::control::{captures, only_block};
use super::forms::Forms;
use super::operation::Site;
use super::partition::{local, rank};
use super::{Lowering, types};
use crate::mlir::{Attribute, Operation, ValueId};
use crate::sharding;
use crate::tiling::Tiling;

/// How the operands and results of a manual computation are cut up along its axes.
pub(super) struct Manual {
    pub(super) inputs: Vec<Tiling>,
    pub(super) outputs: Vec<Tiling>,
    /// Which dimensions of each may be cut up further along other axes.
    open_inputs: Vec<Vec<bool>>,
    open_outputs: Vec<Vec<bool>>,
    /// For each partition, the number of those that are at the same place along the axes.
    groups: Vec<usize>,
}

impl Manual {
    /// Whether each partition is at a place of its own, so that nothing within can be cut up.
    fn is_full(&self) -> bool {
        let mut groups = self.groups.clone();
        groups.sort_unstable();
        groups.windows(2).all(|pair| pair[0] != pair[1])
    }
}

impl<'m> Forms<'m> {
    pub(super) fn manual(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        body.comes_from(op.at.clone(), op.location);
        let manual = body.cx.manual(op)?;
        for value in op.regions.iter().flat_map(captures) {
            self.whole(body, value)?;
        }
        if !manual.is_full() {
            return self.manual_in_part(body, op, &manual);
        }
        let mut inputs = Vec::new();
        for (&value, tiling) in op.operands.iter().zip(&manual.inputs) {
            let place = self.place(value)?;
            inputs.push(self.form(body, place, tiling)?);
        }
        let outputs = body.inside(op, &inputs)?;
        for ((&value, id), tiling) in op.results.iter().zip(outputs).zip(manual.outputs) {
            body.is_tile(value, &tiling, body.shape(id))?;
            self.give(body, value, tiling, id)?;
        }
        Ok(())
    }

    /// A computation within which values are cut up along axes that are not its own: operands as they are
    /// there outside.
    fn manual_in_part(
        &mut self,
        body: &mut Body<'_, 'm>,
        op: &'m Operation,
        manual: &Manual,
    ) -> Result<()> {
        let block = only_block(op.regions.first().ok_or_else(needs_region)?)?;
        if block.arguments.len() != op.operands.len() {
            return Err(wrong_block(op.operands.len(), block.arguments.len()));
        }
        let outside = std::mem::replace(&mut body.cx.partitions.groups, manual.groups.clone());
        let operands = op.operands.iter().zip(&block.arguments);
        for ((&value, &argument), (tiling, open)) in
            operands.zip(manual.inputs.iter().zip(&manual.open_inputs))
        {
            let place = self.place(value)?;
            let there = self.nodes[place].tiles();
            let inner = further(there, tiling, open, &manual.groups);
            let shape = local(&types::shape(body.cx.source.type_of(value))?, tiling)?;
            if !types::agrees(&shape, body.cx.source.type_of(argument)) {
                let ty = body.cx.source.type_of(argument);
                return Err(Error::invalid(format!("a tile {shape} for an argument {ty}")));
            }
            let needed = tiling.cut_further(&inner);
            let groups = std::mem::replace(&mut body.cx.partitions.groups, outside.clone());
            let id = self.form(body, place, &needed);
            body.cx.partitions.groups = groups;
            self.give(body, argument, inner, id?)?;
        }
        let results = body.deeper(|body| self.block(body, block))?;
        if results.len() != op.results.len() {
            let (found, named) = (results.len(), op.results.len());
            return Err(Error::invalid(format!("{found} results, but {named} are named")));
        }
        let mut outputs = Vec::new();
        let outer = manual.outputs.iter().zip(&manual.open_outputs);
        for ((place, &value), (tiling, open)) in results.into_iter().zip(&op.results).zip(outer) {
            body.is_tile(value, tiling, &self.nodes[place].shape)?;
            let mut inner = Tiling::whole(open.len(), manual.groups.len());
            if let Some(there) = self.nodes[place].tiles() {
                let is_open = |d: &usize| open[*d];
                for dim in (0..open.len()).filter(is_open) {
                    inner = inner.cut_as(dim, there, dim);
                }
            }
            let id = self.form(body, place, &inner)?;
            outputs.push((value, tiling.cut_further(&inner), id));
        }
        body.cx.partitions.groups = outside;
        for (value, tiling, id) in outputs {
            self.give(body, value, tiling, id)?;
        }
        Ok(())
    }
}

/// How the parts of an array that is there in tiles, if it is in some, are cut up further: along open
/// dimensions, as far as each group of partitions has all of a part.
fn further(there: Option<&Tiling>, part: &Tiling, open: &[bool], groups: &[usize]) -> Tiling {
    let mut inner = Tiling::whole(open.len(), groups.len());
    let Some(there) = there else { return inner };
    for dim in (0..open.len()).filter(|&dim| open[dim]) {
        let Some((tiles, places)) = there.within(part, dim) else { continue };
        let mut cut = inner.clone();
        cut.tiles[dim] = tiles;
        cut.tile_of.iter_mut().zip(places).for_each(|(tile, place)| tile[dim] = place);
        inner = if cut.is_complete(groups) { cut } else { inner };
    }
    inner
}

impl Lowering<'_> {
    /// What an operation says of its manual computation.
    pub(super) fn manual(&self, op: &Operation) -> Result<Manual> {
        let text = |name: &str| match op.attribute(name) {
            Some(Attribute::Other(text)) => Ok(text.as_str()),
            _ => {
                Err(Error::invalid(format!("attribute `{name}` of a manual computation is needed")))
            }
        };
        let (source, partitions) = (self.source, &self.partitions);
        let tiling = |sharding: &str, rank: usize| -> Result<(Tiling, Vec<bool>)> {
            let (sharding, open) = partitions.meshes.open_sharding(sharding)?;
            Ok((Tiling::of(&sharding, rank, partitions.count)?, open))
        };
        let of = |name: &str, values: &[ValueId]| -> Result<(Vec<Tiling>, Vec<Vec<bool>>)> {
            let shardings = sharding::list(text(name)?)?;
            if shardings.len() != values.len() {
                let (found, needed) = (shardings.len(), values.len());
                return Err(Error::invalid(format!("`{name}` has {found} shardings for {needed}")));
            }
            let each = shardings.iter().zip(values).map(|(text, &value)| {
                let rank = rank(source.type_of(value));
                let (tiling, mut open) = tiling(&format!("#sdy.sharding{text}"), rank)?;
                open.resize(rank, false);
                Ok((tiling, open))
            });
            Ok(each.collect::<Result<Vec<_>>>()?.into_iter().unzip())
        };
        let (inputs, open_inputs) = of("in_shardings", &op.operands)?;
        let (outputs, open_outputs) = of("out_shardings", &op.results)?;
        let any = ["in_shardings", "out_shardings"].map(|name| sharding::list(text(name)?));
        let any = any.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let axes = text("manual_axes")?;
        let along = any.first().and_then(|text| sharding::along_axes(text, axes));
        let places = match along {
            Some(sharding) => tiling(&sharding, 1)?.0.tile_of.concat(),
            // Without operands and results, each partition is by itself.
            None => (0..partitions.count).collect(),
        };
        // Inside of another one, its axes count, too.
        let groups = places.iter().zip(&partitions.groups);
        let groups = groups.map(|(place, around)| around * partitions.count + place).collect();
        Ok(Manual { inputs, outputs, open_inputs, open_outputs, groups })
    }
}

impl<'m> Body<'_, 'm> {
    /// A manual computation on whole values.
    pub(super) fn manual_computation(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        for name in ["in_shardings", "out_shardings", "manual_axes"] {
            site.attrs.get(name);
        }
        let manual = self.cx.manual(site.op)?;
        let mut inputs = Vec::new();
        for (&id, tiling) in site.operands.iter().zip(&manual.inputs) {
            inputs.push(self.tile(id, tiling)?);
        }
        let outputs = self.inside(site.op, &inputs)?;
        let gathered = outputs.iter().zip(&manual.outputs);
        gathered.map(|(&id, tiling)| self.gather_tiles(id, tiling)).collect()
    }

    /// What a manual computation makes of tiles.
    fn inside(&mut self, op: &'m Operation, inputs: &[InstrId]) -> Result<Vec<InstrId>> {
        let block = only_block(op.regions.first().ok_or_else(needs_region)?)?;
        if block.arguments.len() != inputs.len() {
            return Err(wrong_block(inputs.len(), block.arguments.len()));
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

    /// Errors: this is not the shape of a tile of a value.
    pub(super) fn is_tile(&self, value: ValueId, tiling: &Tiling, found: &Shape) -> Result<()> {
        let ty = self.cx.source.type_of(value);
        let needed = local(&types::shape(ty)?, tiling)?;
        match found.same(&needed) {
            true => Ok(()),
            false => Err(Error::invalid(format!("a tile {found} of a result {ty}, not {needed}"))),
        }
    }
}

fn needs_region() -> Error {
    Error::invalid("a manual computation has a region")
}

fn wrong_block(found: usize, needed: usize) -> Error {
    Error::invalid(format!("{found} operands for a block of {needed}"))
}
