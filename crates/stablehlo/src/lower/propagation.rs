//! Propagation forwards: how what a region gives is spread, if its arguments are spread in some way. From
//! that follows how the values that a loop carries are: a fixed point.

use std::collections::HashMap;

use super::control::only_block;
use super::forms::{Forms, Spread};
use super::local::Choice;
use super::partition::rank;
use super::step::Step;
use super::{Lowering, MAX_DEPTH, function_block, symbol_name, types};
use crate::mlir::{Block, Operation, ValueId};

/// How often a loop's body is looked at for what it carries, which may change from one to the next.
const MAX_ROUNDS: usize = 8;

/// How many operations are looked at in a program. (Of n loops within each other, the innermost one is
/// looked at `MAX_ROUNDS`^n times.)
const MAX_VISITED: usize = 1 << 19;

/// How the values of a region are spread that is yet to be lowered.
pub(super) struct Propagation<'p, 'm> {
    cx: &'p Lowering<'m>,
    forms: &'p Forms<'m>,
    of: HashMap<ValueId, Spread>,
    /// Functions whose operations are being looked at.
    open: Vec<&'m str>,
    /// How many operations have been looked at.
    pub(super) visited: usize,
    /// Whether any value is in tiles.
    pub(super) has_tiles: bool,
}

/// How what a loop carries is spread; `Any` if it begins with what can be made in any tiles, and no iteration
/// gives it in some.
pub(super) struct Carried {
    pub(super) spreads: Vec<Spread>,
    /// The numbers of values that an iteration gives in other tiles than it gets them.
    pub(super) exchanged: Vec<usize>,
}

impl<'p, 'm> Propagation<'p, 'm> {
    /// From the values that are there.
    pub(super) fn new(cx: &'p Lowering<'m>, forms: &'p Forms<'m>) -> Self {
        let (open, visited) = (cx.open.clone(), forms.visited_operations);
        Propagation { cx, forms, of: HashMap::new(), open, visited, has_tiles: false }
    }

    /// What a loop carries: a value that begins in tiles stays in these; one that does not is in those that
    /// an iteration gives it in, if it gives it in the same again. `None` for loops that are too large.
    pub(super) fn carried(&mut self, op: &'m Operation) -> Option<Carried> {
        let block = only_block(op.regions.get(1)?).ok()?;
        let init = self.operands(op);
        let mut spreads = init.clone();
        let mut given = self.given(block, &spreads, spreads.len())?;
        for _ in 1..MAX_ROUNDS {
            let next = spreads.iter().zip(&given).map(|(now, given)| now.joined_by(given));
            let next: Vec<Spread> = next.collect();
            if next == spreads {
                break;
            }
            spreads = next;
            given = self.given(block, &spreads, spreads.len())?;
        }
        let mut exchanged = Vec::new();
        for (number, given) in given.iter().enumerate() {
            let is_other = |now: &Spread| matches!(now, Spread::Tiles(_)) && now != given;
            if matches!(given, Spread::Tiles(_)) && is_other(&spreads[number]) {
                exchanged.push(number);
                if !matches!(init[number], Spread::Tiles(_)) {
                    spreads[number] = Spread::Whole;
                }
            } else if init[number] == Spread::Any && spreads[number] == Spread::Whole {
                spreads[number] = Spread::Any;
            }
        }
        Some(Carried { spreads, exchanged })
    }

    /// What branches give: in the tiles of the first one that gives it in some.
    pub(super) fn branches(&mut self, op: &'m Operation) -> Option<Vec<Spread>> {
        let mut spreads = vec![Spread::Any; op.results.len()];
        for region in &op.regions {
            let given = self.given(only_block(region).ok()?, &[], spreads.len())?;
            let pairs = spreads.iter().zip(&given);
            spreads = pairs.map(|(first, other)| first.joined_by(other)).collect();
        }
        Some(spreads)
    }

    /// What a block gives for arguments that are spread so; `None` if these are not its arguments, or it
    /// does not give so many values.
    fn given(
        &mut self,
        block: &'m Block,
        arguments: &[Spread],
        count: usize,
    ) -> Option<Vec<Spread>> {
        let (last, operations) = block.operations.split_last()?;
        if block.arguments.len() != arguments.len() || last.operands.len() != count {
            return None;
        }
        for (&value, spread) in block.arguments.iter().zip(arguments) {
            self.note(value, spread.clone());
        }
        operations.iter().try_for_each(|op| self.operation(op))?;
        Some(self.operands(last))
    }

    fn operation(&mut self, op: &'m Operation) -> Option<()> {
        self.visited += 1;
        if self.visited > MAX_VISITED {
            return None;
        }
        let operands = self.operands(op);
        let spreads = match Step::of(op, self.cx) {
            Step::Manual => {
                let manual = self.cx.manual(op).ok()?;
                manual.outputs.into_iter().map(Spread::of).collect()
            }
            Step::Call(function) => self.call(op, function, operands)?,
            Step::Barrier => operands,
            Step::Constrain => {
                let pairs = op.operands.iter().zip(operands);
                pairs.map(|(&value, spread)| self.constrained(op, value, spread)).collect()
            }
            Step::Loop => made(self.carried(op)?.spreads),
            Step::Branches => made(self.branches(op)?),
            Step::Local(local) => {
                let operands: Vec<&Spread> = operands.iter().collect();
                let rank = self.rank(*op.results.first()?);
                let spread = match local.choice(&operands, &self.cx.partitions.groups) {
                    Choice::Any => Spread::Any,
                    Choice::Whole => Spread::Whole,
                    Choice::Tiles(space) => Spread::of(space.of_rank(rank)),
                };
                vec![spread; op.results.len()]
            }
            Step::Batches(local) => {
                let operands: Vec<&Spread> = operands.iter().collect();
                let choice = local.choice(&operands, &self.cx.partitions.groups);
                let spread = |&value: &ValueId| match &choice {
                    Choice::Tiles(space) => Spread::of(space.of_rank(self.rank(value))),
                    _ => Spread::Whole,
                };
                op.results.iter().map(spread).collect()
            }
            Step::Random | Step::Replicate => vec![Spread::Whole; op.results.len()],
        };
        for (&value, spread) in op.results.iter().zip(spreads) {
            self.note(value, spread);
        }
        Some(())
    }

    /// Notes how a value is spread; that it is whole, if it is said to be in tiles of another rank.
    fn note(&mut self, value: ValueId, spread: Spread) {
        let fits = spread.tiles().is_none_or(|tiling| tiling.tiles.len() == self.rank(value));
        let spread = if fits { spread } else { Spread::Whole };
        self.has_tiles |= spread.tiles().is_some();
        self.of.insert(value, spread);
    }

    fn operands(&mut self, op: &Operation) -> Vec<Spread> {
        op.operands.iter().map(|&value| self.spread(value)).collect()
    }

    fn spread(&mut self, value: ValueId) -> Spread {
        let around = || Some(&self.forms.nodes[*self.forms.places.get(&value)?].spread);
        let spread = self.of.get(&value).or_else(around).cloned().unwrap_or(Spread::Whole);
        self.has_tiles |= spread.tiles().is_some();
        spread
    }

    fn rank(&self, value: ValueId) -> usize {
        rank(self.cx.source.type_of(value))
    }

    fn constrained(&self, op: &Operation, value: ValueId, spread: Spread) -> Spread {
        let shape = types::shape(self.cx.source.type_of(value)).ok();
        let shape = shape.as_ref().and_then(|shape| shape.as_array());
        let tiling = shape.and_then(|shape| self.cx.constraint(op, shape, spread.tiles()));
        tiling.map_or(spread, Spread::of)
    }

    /// What a function gives, whose operations stand for its call if it is given something in tiles.
    fn call(
        &mut self,
        op: &Operation,
        function: &'m Operation,
        arguments: Vec<Spread>,
    ) -> Option<Vec<Spread>> {
        let name = symbol_name(function).unwrap_or_default();
        let block = function_block(function).ok()?;
        let is_open = self.open.contains(&name) || self.open.len() >= MAX_DEPTH;
        let mut pairs = op.operands.iter().zip(&arguments);
        let is_inlined = pairs.any(|(&v, spread)| self.rank(v) > 0 && *spread != Spread::Whole);
        if is_open || !(is_inlined || self.cx.partitions.cutting.contains(name)) {
            return Some(vec![Spread::Whole; op.results.len()]);
        }
        self.open.push(name);
        let results = self.given(block, &arguments, op.results.len());
        self.open.pop();
        results
    }
}

/// Of values that can be made in any tiles, that they are made as a whole.
fn made(spreads: Vec<Spread>) -> Vec<Spread> {
    let made = |spread| if spread == Spread::Any { Spread::Whole } else { spread };
    spreads.into_iter().map(made).collect()
}

impl Spread {
    /// How a value is spread that comes so, or in another way.
    fn joined_by(&self, other: &Spread) -> Spread {
        match (self, other) {
            (Spread::Tiles(_), _) | (Spread::Whole, Spread::Whole | Spread::Any) => self.clone(),
            (_, other) => other.clone(),
        }
    }
}
