//! The values of a program for several partitions: in which forms, whole or in tiles, there are
//! instructions for each, and how others come from those.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use helio_ir::{ArrayShape, Error, InstrId, Result, Shape};

use super::body::Body;
use super::local::Local;
use super::scopes::Scope;
use super::types;
use super::wishes::Wishes;
use crate::mlir::{Operation, ValueId};
use crate::tiling::Tiling;

/// The values of an entry's body, and of the regions in it that are being lowered.
#[derive(Default)]
pub(super) struct Forms<'m> {
    /// The place of each value in `nodes`. A function that is called again gives its values anew.
    pub(super) places: HashMap<ValueId, usize>,
    pub(super) nodes: Vec<Node<'m>>,
    /// The regions being lowered, each within the one before.
    pub(super) scopes: Vec<Scope>,
    /// How many regions have been begun.
    pub(super) regions: usize,
    /// How many operations every partition has done as a whole.
    pub(super) replicated: usize,
    /// How many operations functions have had that were inlined, each time they were.
    pub(super) inlined_operations: usize,
    /// How many operations have been looked at for how what loops carry is spread.
    pub(super) visited_operations: usize,
    /// What is carried or given in other tiles than it comes in, and so exchanged: a line for each value.
    pub(super) exchanged: Vec<String>,
    /// In which tiles values of the innermost region are wanted.
    pub(super) wishes: Wishes,
    /// How often it was asked for tiles of a value that can be made in any.
    asked: usize,
}

/// How often values may be made anew in other tiles; those of further ones are cut out of the whole.
/// (A program of n operations may ask for each of them in n tilings.)
const MAX_ASKED: usize = 1 << 18;

/// How a value is spread over partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// It can be made in any tiles.
    Any,
    /// Each partition has all of it, or a summand of that.
    Whole,
    /// Each partition has its tile of several.
    Tiles(Tiling),
}

impl Spread {
    /// Of a value that came to be so.
    pub(super) fn of(tiling: Tiling) -> Self {
        match tiling.is_whole() || tiling.summands > 1 {
            true => Spread::Whole,
            false => Spread::Tiles(tiling),
        }
    }

    pub(super) fn tiles(&self) -> Option<&Tiling> {
        match self {
            Spread::Tiles(tiling) => Some(tiling),
            _ => None,
        }
    }
}

/// A value in the computation of a region, or of the entry.
pub(super) struct Node<'m> {
    pub(super) shape: Shape,
    pub(super) spread: Spread,
    /// The number of the region in whose computation it is; 0 for the entry.
    pub(super) region: usize,
    /// The instructions that have it whole or in tiles.
    pub(super) forms: Vec<(Tiling, InstrId)>,
    pub(super) origin: Origin<'m>,
}

/// Where the forms of a value come from.
pub(super) enum Origin<'m> {
    /// From the first one, in which it came to be.
    Form,
    /// Any tiles of it can be made.
    Recipe(Rc<Recipe<'m>>),
    /// From the value at this place, which is one of the region around.
    Around(usize),
}

/// How any tiles of a value are made, if nothing says yet which ones are needed.
pub(super) struct Recipe<'m> {
    pub(super) op: &'m Operation,
    pub(super) local: Local,
    /// Places of nodes before the value's own.
    pub(super) operands: Vec<usize>,
}

impl<'m> Node<'m> {
    pub(super) fn rank(&self) -> usize {
        self.shape.as_array().map_or(0, ArrayShape::rank)
    }

    /// Errors: the tiles are not those of an array of its rank.
    fn has_rank_of(&self, tiling: &Tiling) -> Result<()> {
        let (shape, rank) = (&self.shape, tiling.tiles.len());
        match rank == self.rank() {
            true => Ok(()),
            false => Err(Error::invalid(format!("a value {shape} in tiles of {rank} dimensions"))),
        }
    }

    pub(super) fn form(&self, tiling: &Tiling) -> Option<InstrId> {
        self.forms.iter().find(|form| form.0 == *tiling).map(|form| form.1)
    }

    /// The tiles in which it is there; none if it is there as a whole, in summands or not at all.
    pub(super) fn tiles(&self) -> Option<&Tiling> {
        self.spread.tiles()
    }

    fn recipe(&self) -> Option<&Rc<Recipe<'m>>> {
        match &self.origin {
            Origin::Recipe(recipe) => Some(recipe),
            _ => None,
        }
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
        let (region, spread) = (self.region(), Spread::of(tiling.clone()));
        let (forms, origin) = (vec![(tiling.clone(), id)], Origin::Form);
        let node = Node { shape, spread, region, forms, origin };
        node.has_rank_of(&tiling)?;
        self.add(value, node);
        Ok(())
    }

    /// A value of which any tiles can be made.
    pub(super) fn give_recipe(&mut self, value: ValueId, shape: Shape, recipe: Recipe<'m>) {
        let (region, spread) = (self.region(), Spread::Any);
        let origin = Origin::Recipe(Rc::new(recipe));
        self.add(value, Node { shape, spread, region, forms: Vec::new(), origin });
    }

    fn add(&mut self, value: ValueId, node: Node<'m>) {
        self.places.insert(value, self.nodes.len());
        self.nodes.push(node);
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
        self.nodes[place].has_rank_of(tiling)?;
        if self.nodes[place].recipe().is_none() || tiling.summands > 1 || self.is_cut(tiling) {
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
                if let Some(recipe) = self.nodes[user].recipe() {
                    for (number, &operand) in recipe.operands.iter().enumerate() {
                        let needed = recipe.local.operand(number, &space);
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

    /// Makes a form of a value whose operands are there in what it needs.
    fn make(&mut self, body: &mut Body<'_, 'm>, place: usize, tiling: &Tiling) -> Result<()> {
        let Some(recipe) = self.nodes[place].recipe().cloned() else {
            return self.cut(body, place, tiling).map(drop);
        };
        let mut operands = Vec::new();
        for (number, &operand) in recipe.operands.iter().enumerate() {
            let needed = recipe.local.operand(number, tiling);
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
        if let Origin::Around(around) = self.nodes[place].origin
            && let Some(id) = self.take(body, place, around, tiling)?
        {
            return Ok(id);
        }
        let node = &self.nodes[place];
        let from = match node.form(&whole) {
            Some(id) => (whole, id),
            None if node.recipe().is_some() => (whole.clone(), self.form(body, place, &whole)?),
            None => {
                let first = node.forms.first().cloned();
                let first = first.ok_or_else(|| Error::internal("a value without a form"))?;
                match first.0.is_kept_by(tiling) {
                    true => first,
                    // Others may need the whole, too.
                    false => {
                        let id = body.gather_tiles(first.1, &first.0)?;
                        self.nodes[place].forms.push((whole.clone(), id));
                        (whole, id)
                    }
                }
            }
        };
        if from.0 == *tiling {
            return Ok(from.1);
        }
        let id = body.other_tiles(from.1, &from.0, tiling)?;
        self.nodes[place].forms.push((tiling.clone(), id));
        Ok(id)
    }

    /// Makes what nobody needs of the innermost region, whose values begin at this place, so that what is
    /// wrong with it is said; passes drop it.
    pub(super) fn make_the_rest(&mut self, body: &mut Body<'_, 'm>, first: usize) -> Result<()> {
        let replicated = self.replicated;
        for place in first..self.nodes.len() {
            let node = &self.nodes[place];
            let is_here = node.region == self.region();
            if is_here && node.recipe().is_some() && node.forms.is_empty() {
                let whole = Tiling::whole(node.rank(), body.cx.partitions.count);
                self.form(body, place, &whole)?;
            }
        }
        self.replicated = replicated;
        Ok(())
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
