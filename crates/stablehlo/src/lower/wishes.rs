//! Propagation backwards: in which tiles a value is wanted by all that use it.
//!
//! A value whose operands are not in tiles is made in those, if it can be; one that is wanted in different
//! ones, or as a whole, is made as a whole once.

use std::collections::HashMap;

use super::Lowering;
use super::control::captures;
use super::step::Step;
use super::types;
use crate::mlir::{Block, Operation, ValueId};
use crate::tiling::Tiling;

/// In which tiles the values of a block are wanted.
#[derive(Default)]
pub(super) struct Wishes {
    /// For each value of whose users something is known: the tiles that all of them want, if they do.
    of: HashMap<ValueId, Option<Tiling>>,
}

impl Wishes {
    /// Of the values of a block whose results are wanted in these tiles. What a function is given is not
    /// looked at.
    pub(super) fn of<'m>(cx: &Lowering<'m>, block: &'m Block, results: &[Option<Tiling>]) -> Self {
        let mut wishes = Wishes::default();
        let Some((last, operations)) = block.operations.split_last() else { return wishes };
        for (&value, tiling) in last.operands.iter().zip(results) {
            wishes.wish(value, tiling.clone());
        }
        for op in operations.iter().rev() {
            wishes.go_on(cx, op);
        }
        wishes
    }

    /// The tiles in which all users want the results of an operation.
    pub(super) fn of_result(&self, op: &Operation) -> Option<&Tiling> {
        let wanted = self.of.get(op.results.first()?)?.as_ref()?;
        let is_alike =
            |value| self.of.get(value).is_none_or(|other| other.as_ref() == Some(wanted));
        op.results.iter().all(is_alike).then_some(wanted)
    }

    /// The tiles in which all users want a value.
    pub(super) fn of_value(&self, value: ValueId) -> Option<&Tiling> {
        self.of.get(&value)?.as_ref()
    }

    fn wish(&mut self, value: ValueId, tiling: Option<Tiling>) {
        let tiling = tiling.filter(|tiling| !tiling.is_whole());
        let known = self.of.entry(value).or_insert_with(|| tiling.clone());
        if *known != tiling {
            *known = None;
        }
    }

    /// What an operation wants of its operands.
    fn go_on<'m>(&mut self, cx: &Lowering<'m>, op: &'m Operation) {
        let local = match Step::of(op, cx) {
            Step::Call(_) => return,
            Step::Barrier => {
                for (&value, to) in op.operands.iter().zip(&op.results) {
                    let wanted = self.of_value(*to).cloned();
                    self.wish(value, wanted);
                }
                return;
            }
            Step::Constrain => {
                for (&from, to) in op.operands.iter().zip(&op.results) {
                    let shape = types::shape(cx.source.type_of(from)).ok();
                    let shape = shape.as_ref().and_then(|shape| shape.as_array());
                    let wanted = self.of_value(*to).cloned();
                    let said = shape.and_then(|shape| cx.constraint(op, shape, wanted.as_ref()));
                    self.wish(from, said.or(wanted));
                }
                return;
            }
            Step::Local(local) => Some(local),
            Step::Manual
            | Step::Loop
            | Step::Branches
            | Step::Batches(_)
            | Step::Random
            | Step::Replicate => None,
        };
        let is_used = op.results.iter().any(|value| self.of.contains_key(value));
        // Of a result that only calls use, nothing is known.
        if local.is_some() && !is_used {
            return;
        }
        let space = local.as_ref().zip(self.of_result(op));
        let space = space.and_then(|(local, wish)| local.space_for(wish));
        for (number, &value) in op.operands.iter().enumerate() {
            let tiling = local.as_ref().zip(space.as_ref());
            let tiling = tiling.map(|(local, space)| local.operand(number, space));
            self.wish(value, tiling);
        }
        for value in op.regions.iter().flat_map(captures) {
            self.wish(value, None);
        }
    }
}
