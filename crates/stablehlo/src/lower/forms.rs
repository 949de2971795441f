//! The values of a program for several partitions: in which forms, whole or in tiles, there are
//! instructions for each, and how others come from those.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use helio_ir::{ArrayShape, Error, InstrId, Result, Shape};

use super::body::Body;
use super::local::Local;
use super::types;
use crate::mlir::{Operation, ValueId};
use crate::tiling::Tiling;

/// The values of an entry's body.
#[derive(Default)]
pub(super) struct Forms<'m> {
    /// The place of each value in `nodes`. A function that is called again gives its values anew.
    pub(super) places: HashMap<ValueId, usize>,
    pub(super) nodes: Vec<Node<'m>>,
    /// How many operations every partition has done as a whole.
    pub(super) replicated: usize,
    /// How many operations functions have had that were inlined, each time they were.
    pub(super) inlined_operations: usize,
    /// How often it was asked for tiles of a value that can be made in any.
    asked: usize,
}

/// How often values may be made anew in other tiles; those of further ones are cut out of the whole.
/// (A program of n operations may ask for each of them in n tilings.)
const MAX_ASKED: usize = 1 << 18;

/// A value: the instructions that have it whole or in tiles, the first of which is how it came to be.
pub(super) struct Node<'m> {
    pub(super) shape: Shape,
    pub(super) forms: Vec<(Tiling, InstrId)>,
    pub(super) recipe: Option<Rc<Recipe<'m>>>,
}

/// How any tiles of a value are made, if nothing says yet which ones are needed.
pub(super) struct Recipe<'m> {
    pub(super) op: &'m Operation,
    pub(super) local: Local,
    /// Places of nodes before the value's own.
    pub(super) operands: Vec<usize>,
}

impl Node<'_> {
    pub(super) fn rank(&self) -> usize {
        self.shape.as_array().map_or(0, ArrayShape::rank)
    }

    pub(super) fn form(&self, tiling: &Tiling) -> Option<InstrId> {
        self.forms.iter().find(|form| form.0 == *tiling).map(|form| form.1)
    }

    /// The tiles in which it is there; none if it is there as a whole, in summands or not at all.
    pub(super) fn tiles(&self) -> Option<&Tiling> {
        let first = self.forms.first().map(|form| &form.0);
        first.filter(|tiling| self.recipe.is_none() && !tiling.is_whole() && tiling.summands == 1)
    }
}

impl<'m> Forms<'m> {
    /// A value that an instruction has, whole or in tiles.
    pub(super) fn give(
        &mut self,
        body: &Body<'_, 'm>,
        value: ValueId,
        tiling: Tiling,
        id: InstrId,
    ) -> Result<()> {
        let shape = types::shape(body.cx.source.type_of(value))?;
        self.places.insert(value, self.nodes.len());
        self.nodes.push(Node { shape, forms: vec![(tiling, id)], recipe: None });
        Ok(())
    }

    /// Gives a value that is there another name. Errors: it is of another type.
    pub(super) fn name(&mut self, body: &Body<'_, 'm>, place: usize, value: ValueId) -> Result<()> {
        let (found, ty) = (&self.nodes[place].shape, body.cx.source.type_of(value));
        if !types::agrees(found, ty) {
            return Err(Error::invalid(format!("a value {found} for one of type {ty}")));
        }
        self.places.insert(value, place);
        Ok(())
    }

    pub(super) fn place(&self, value: ValueId) -> Result<usize> {
        let place = self.places.get(&value).copied();
        place.ok_or_else(|| Error::unimplemented("a value that is used where it is not known"))
    }

    /// The instruction that has a value in this form.
    pub(super) fn form(
        &mut self,
        body: &mut Body<'_, 'm>,
        place: usize,
        tiling: &Tiling,
    ) -> Result<InstrId> {
        if let Some(id) = self.nodes[place].form(tiling) {
            return Ok(id);
        }
        if self.nodes[place].recipe.is_none() || tiling.summands > 1 || self.is_cut(tiling) {
            return self.cut(body, place, tiling);
        }
        // Which tiles are needed of what is not there: users first, and then the other way round.
        let mut pending = BTreeMap::from([(place, vec![tiling.clone()])]);
        let mut order = Vec::new();
        while let Some((user, tilings)) = pending.pop_last() {
            for space in tilings {
                if self.nodes[user].form(&space).is_some() {
                    continue;
                }
                self.asked += 1;
                if self.is_cut(tiling) {
                    return self.cut(body, place, tiling);
                }
                if let Some(recipe) = &self.nodes[user].recipe {
                    for (number, &operand) in recipe.operands.iter().enumerate() {
                        let needed = self.needed(&recipe.local, number, operand, &space);
                        let list: &mut Vec<_> = pending.entry(operand).or_default();
                        if !list.contains(&needed) {
                            list.push(needed);
                        }
                    }
                }
                order.push((user, space));
            }
        }
        for (user, space) in order.into_iter().rev() {
            self.make(body, user, &space)?;
        }
        let id = self.nodes[place].form(tiling);
        id.ok_or_else(|| Error::internal("tiles of a value have not been made"))
    }

    /// Whether it has been asked for so many tiles that these are cut out.
    fn is_cut(&self, tiling: &Tiling) -> bool {
        self.asked > MAX_ASKED && !tiling.is_whole()
    }

    /// The tiling in which an operand is needed.
    pub(super) fn needed(
        &self,
        local: &Local,
        number: usize,
        operand: usize,
        space: &Tiling,
    ) -> Tiling {
        match self.nodes[operand].shape.as_array() {
            Some(shape) => local.operand(number, shape, space),
            None => Tiling::whole(0, space.tile_of.len()),
        }
    }

    /// Makes a form of a value whose operands are there in what it needs.
    fn make(&mut self, body: &mut Body<'_, 'm>, place: usize, tiling: &Tiling) -> Result<()> {
        let Some(recipe) = self.nodes[place].recipe.clone() else {
            return self.cut(body, place, tiling).map(drop);
        };
        let mut operands = Vec::new();
        for (number, &operand) in recipe.operands.iter().enumerate() {
            let needed = self.needed(&recipe.local, number, operand, tiling);
            operands.push(match self.nodes[operand].form(&needed) {
                Some(id) => id,
                None => self.cut(body, operand, &needed)?,
            });
        }
        let ids = body.on_tiles(recipe.op, &recipe.local, operands, tiling)?;
        if tiling.is_whole() && self.nodes[place].rank() > 0 && !recipe.operands.is_empty() {
            self.replicated += 1;
        }
        self.nodes[place].forms.push((tiling.clone(), ids[0]));
        Ok(())
    }

    /// A form of a value that is there in another one.
    fn cut(&mut self, body: &mut Body<'_, 'm>, place: usize, tiling: &Tiling) -> Result<InstrId> {
        let whole = Tiling::whole(self.nodes[place].rank(), body.cx.partitions.count);
        let id = match self.nodes[place].form(&whole) {
            Some(id) => id,
            None if self.nodes[place].recipe.is_some() => self.form(body, place, &whole)?,
            None => {
                let first = self.nodes[place].forms.first().cloned();
                let (tiling, id) =
                    first.ok_or_else(|| Error::internal("a value without a form"))?;
                let id = body.gather_tiles(id, &tiling)?;
                self.nodes[place].forms.push((whole.clone(), id));
                id
            }
        };
        if *tiling == whole {
            return Ok(id);
        }
        let id = body.tile(id, tiling)?;
        self.nodes[place].forms.push((tiling.clone(), id));
        Ok(id)
    }

    /// The whole of a value, for what is done on whole arrays.
    pub(super) fn whole(&mut self, body: &mut Body<'_, 'm>, value: ValueId) -> Result<()> {
        let place = self.place(value)?;
        let whole = Tiling::whole(self.nodes[place].rank(), body.cx.partitions.count);
        let id = self.form(body, place, &whole)?;
        body.bind(value, id);
        Ok(())
    }
}
