//! Propagation backwards: in which tiles a value is wanted by all that use it.
//!
//! A value whose operands are not in tiles is made in those, if it can be; one that is wanted in different
//! ones, or as a whole, is made as a whole once.

use std::collections::HashMap;

use super::Lowering;
use super::control::captures;
use super::local::Local;
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
    pub(super) fn of(cx: &Lowering<'_>, block: &Block, results: &[Option<Tiling>]) -> Self {
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

    fn wish(&mut self, value: ValueId, tiling: Option<Tiling>) {
        let tiling = tiling.filter(|tiling| !tiling.is_whole());
        let known = self.of.entry(value).or_insert_with(|| tiling.clone());
        if *known != tiling {
            *known = None;
        }
    }

    /// What an operation wants of its operands.
    fn go_on(&mut self, cx: &Lowering<'_>, op: &Operation) {
        match op.name.as_str() {
            "func.call" => {}
            "stablehlo.optimization_barrier" => {
                for (&value, to) in op.operands.iter().zip(&op.results) {
                    let wanted = self.of.get(to).cloned().flatten();
                    self.wish(value, wanted);
                }
            }
            "builtin.unrealized_conversion_cast" | "sdy.sharding_constraint" | "sdy.reshard"
                if op.operands.len() == op.results.len() =>
            {
                for (&from, to) in op.operands.iter().zip(&op.results) {
                    let shape = types::shape(cx.source.type_of(from)).ok();
                    let shape = shape.as_ref().and_then(|shape| shape.as_array());
                    let wanted = self.of.get(to).cloned().flatten();
                    let said = shape.and_then(|shape| cx.constraint(op, shape, wanted.as_ref()));
                    self.wish(from, said.or(wanted));
                }
            }
            _ => {
                let is_used = op.results.iter().any(|value| self.of.contains_key(value));
                let local = Local::of(op, cx);
                let wanted = self.of_result(op);
                let space =
                    local.as_ref().zip(wanted).and_then(|(local, wish)| local.space_for(wish));
                // Of a result that only calls use, nothing is known.
                if local.is_some() && !is_used {
                    return;
                }
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
    }
}
