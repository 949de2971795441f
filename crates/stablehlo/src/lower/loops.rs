//! Loops and branches on tiles. What a loop carries is spread in the same way before and after each iteration,
//! and what branches give is in all of them. What decides is whole, so that all partitions do the same.

use helio_ir::ops::{Conditional, While};
use helio_ir::{Error, InstrId, Op, Result};

use super::attrs::Attrs;
use super::body::Body;
use super::control::only_block;
use super::forms::{Forms, Spread};
use super::propagation::{Carried, Propagation};
use super::scopes::ScopeKind;
use super::wishes::Wishes;
use super::{source, types};
use crate::front_end;
use crate::mlir::{self, Operation, ValueId};
use crate::tiling::Tiling;

/// A region to be lowered on tiles.
struct Plan<'p, 'm> {
    name: &'static str,
    kind: ScopeKind,
    region: &'m mlir::Region,
    /// The elements that its parameter has first.
    state: &'p [InstrId],
    /// How those are cut up that are the arguments of its block.
    arguments: &'p [Tiling],
    /// How its results are to be cut up.
    results: &'p [Tiling],
}

impl<'m> Forms<'m> {
    /// A loop: on tiles if anything that it carries or takes from around it is in some.
    pub(super) fn while_loop(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        let [condition, step] = &op.regions[..] else {
            return Err(Error::invalid("a loop has two regions"));
        };
        let Some(carried) = self.carried(body, op) else { return self.replicate(body, op) };
        let mut state = Vec::new();
        for (&value, tiling) in op.operands.iter().zip(&carried) {
            let place = self.place(value)?;
            state.push(self.form(body, place, tiling)?);
        }
        let count = state.len();
        let decision = [Tiling::whole(0, body.cx.partitions.count)];
        let (name, kind) = ("condition", ScopeKind::Loop);
        let arguments = &carried[..];
        let plan =
            Plan { name, kind, region: condition, state: &state, arguments, results: &decision };
        let goes_on = self.begin_region(body, &plan)?[0];
        let mut condition = self.leave(body)?;

        let (name, state) = ("body", &condition.state[..]);
        let plan = Plan { name, kind, region: step, state, arguments, results: &carried };
        let mut next = self.begin_region(body, &plan)?;
        // What is taken from around it is the same in all iterations.
        for index in count..self.element_count() {
            next.push(self.element(body, index)?);
        }
        let next = body.tuple(&next)?;
        let step = self.leave(body)?;

        let taken = &step.state[condition.state.len()..];
        condition.widen(taken.iter().map(|&id| body.shape(id)));
        let condition = body.end(condition.aside, goes_on)?;
        let init = body.tuple(&step.state)?;
        let step = body.end(step.aside, next)?;
        let last = self.push_as(body, op, While { condition, body: step }, &[init])?;
        for (index, (&value, tiling)) in op.results.iter().zip(carried).enumerate() {
            let id = body.element_of(last, index)?;
            self.give_tile(body, value, tiling, id)?;
        }
        Ok(())
    }

    /// Branches: on tiles if anything that they take from around them or give is in some.
    pub(super) fn branches(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        let Some(given) = self.given(body, op) else { return self.replicate(body, op) };
        let &[index] = &op.operands[..] else {
            return Err(Error::invalid("one operand is needed, which chooses a branch"));
        };
        let index = self.place(index)?;
        let whole = Tiling::whole(0, body.cx.partitions.count);
        let mut operands = vec![self.form(body, index, &whole)?];
        let mut branches = Vec::new();
        for region in &op.regions {
            let (name, kind, results) = ("branch", ScopeKind::Branch, &given[..]);
            let plan = Plan { name, kind, region, state: &[], arguments: &[], results };
            let ids = self.begin_region(body, &plan)?;
            let root = match ids[..] {
                [one] => one,
                _ => body.tuple(&ids)?,
            };
            let region = self.leave(body)?;
            operands.push(body.tuple(&region.state)?);
            branches.push(body.end(region.aside, root)?);
        }
        let chosen = self.push_as(body, op, Conditional { branches }, &operands)?;
        let ids = body.unpack(chosen, given.len())?;
        for ((&value, tiling), id) in op.results.iter().zip(given).zip(ids) {
            self.give_tile(body, value, tiling, id)?;
        }
        Ok(())
    }

    /// Begins a region, which is still to be left; the instructions of its results.
    fn begin_region(
        &mut self,
        body: &mut Body<'_, 'm>,
        plan: &Plan<'_, 'm>,
    ) -> Result<Vec<InstrId>> {
        let block = only_block(plan.region)?;
        if block.arguments.len() != plan.arguments.len() {
            let (found, needed) = (block.arguments.len(), plan.arguments.len());
            return Err(Error::invalid(format!("a block of {found} arguments; must be {needed}")));
        }
        let wanted: Vec<_> = plan.results.iter().cloned().map(Some).collect();
        let wishes = Wishes::of(body.cx, block, &wanted);
        let first = self.nodes.len();
        self.enter(body, plan.name, plan.kind, plan.state, wishes)?;
        for (index, (&value, tiling)) in block.arguments.iter().zip(plan.arguments).enumerate() {
            let id = self.element(body, index)?;
            self.give_tile(body, value, tiling.clone(), id)?;
        }
        let places = body.deeper(|body| self.block(body, block))?;
        if places.len() != plan.results.len() {
            let (found, needed) = (places.len(), plan.results.len());
            return Err(Error::invalid(format!("a region gives {found} values; must be {needed}")));
        }
        let results = places.into_iter().zip(plan.results);
        let ids = results.map(|(place, tiling)| self.form(body, place, tiling));
        let ids = ids.collect::<Result<_>>()?;
        self.make_the_rest(body, first)?;
        Ok(ids)
    }

    /// An instruction that stands for an operation.
    fn push_as(
        &mut self,
        body: &mut Body<'_, 'm>,
        op: &Operation,
        instruction: impl Into<Op>,
        operands: &[InstrId],
    ) -> Result<InstrId> {
        Attrs::new(&op.attributes).finish()?;
        body.comes_from(op.at.clone(), op.location);
        let around = body.has_attributes(front_end::attributes(&op.attributes));
        let id = body.push(instruction, operands);
        body.has_attributes(around);
        id
    }

    /// A value of which an instruction has this tile. Errors: it is none of a value of its type.
    fn give_tile(
        &mut self,
        body: &Body<'_, 'm>,
        value: ValueId,
        tiling: Tiling,
        id: InstrId,
    ) -> Result<()> {
        body.is_tile(value, &tiling, body.shape(id))?;
        self.give(body, value, tiling, id)
    }

    /// How what a loop carries is cut up; `None` if it is done as a whole.
    fn carried(&mut self, body: &Body<'_, 'm>, op: &'m Operation) -> Option<Vec<Tiling>> {
        let mut propagation = Propagation::new(body.cx, self);
        let carried = propagation.carried(op);
        let (visited, has_tiles) = (propagation.visited, propagation.has_tiles);
        self.visited_operations = visited;
        let Carried { spreads, exchanged } = carried?;
        for number in exchanged {
            self.note_exchange(body, op, &format!("carried value {number}"), op.results[number]);
        }
        self.tilings(body, op, spreads, has_tiles)
    }

    /// How what branches give is cut up; `None` if they are done as a whole.
    fn given(&mut self, body: &Body<'_, 'm>, op: &'m Operation) -> Option<Vec<Tiling>> {
        let mut propagation = Propagation::new(body.cx, self);
        let given = propagation.branches(op);
        let (visited, has_tiles) = (propagation.visited, propagation.has_tiles);
        self.visited_operations = visited;
        self.tilings(body, op, given?, has_tiles)
    }

    /// How results are cut up that are spread so. What can be made in any tiles is in those that all users
    /// want.
    fn tilings(
        &self,
        body: &Body<'_, 'm>,
        op: &Operation,
        spreads: Vec<Spread>,
        has_tiles: bool,
    ) -> Option<Vec<Tiling>> {
        let cx = &body.cx;
        let mut tilings = Vec::new();
        for (&value, spread) in op.results.iter().zip(spreads) {
            let shape = types::shape(cx.source.type_of(value)).ok()?;
            let dims = shape.as_array().map_or(&[][..], |array| array.dims());
            let fits = |wish: &&Tiling| wish.local_dims(dims).is_ok();
            let wish = self.wishes.of_value(value).filter(fits).cloned();
            let whole = Tiling::whole(dims.len(), cx.partitions.count);
            tilings.push(match spread {
                Spread::Tiles(tiling) => tiling,
                Spread::Any => wish.unwrap_or(whole),
                Spread::Whole => whole,
            });
        }
        (has_tiles || tilings.iter().any(|tiling| !tiling.is_whole())).then_some(tilings)
    }

    fn note_exchange(&mut self, body: &Body<'_, 'm>, op: &Operation, what: &str, value: ValueId) {
        let place = source::innermost(body.cx.source, op.location);
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        let ty = body.cx.source.type_of(value);
        let name = &op.name;
        self.exchanged.push(format!("{name}{place}: {what}, {ty}, is exchanged in each iteration"));
    }
}
