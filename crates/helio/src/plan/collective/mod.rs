//! Collective operations on the bytes of slots: arrays of other participants are read where they lie,
//! and joined, dealt out or folded into the result, in the order of the group.

mod fold;
mod perform;
mod ragged;

use std::borrow::Cow;

use helio_eval::services::Fold;
use helio_ir::ops::{CollectiveAttrs, GroupMode};
use helio_ir::{ArrayShape, CompId, Error, Instr, InstrId, Module, Op};
use helio_passes::recognize::reducer;

pub(super) use self::perform::{Seat, Surroundings};
use self::ragged::Ragged;
use super::bind::ScalarFolds;
use super::{Planned, Planner};

/// A collective operation with all that a step needs to perform it.
#[derive(Debug)]
pub(super) struct Collective {
    at: (CompId, InstrId),
    attrs: CollectiveAttrs,
    mode: GroupMode,
    kind: Kind,
    arrays: Vec<Layout>,
    /// The size of each group, if the shapes depend on it.
    shards: Option<usize>,
    /// Whether the results are what begins an asynchronous operation: the operands, what becomes of
    /// them, and whatever else, which is zeros.
    begins: bool,
}

/// What becomes of what the participants give.
#[derive(Debug)]
enum Kind {
    /// Blocks of all are folded. With `is_scattered`, each participant folds its part; without, a means
    /// of transport may know the folds, of which there is one for each operand then.
    Fold { folds: ScalarFolds, is_scattered: bool, known: Vec<Fold> },
    /// Blocks of all stand side by side.
    Gather,
    /// Each gets its part of every block; they stand side by side.
    Split,
    /// Each gets the operand of its position from everybody.
    Deal,
    /// Who is a target gets the operands of its source, all others zeros.
    Permute(Vec<(usize, usize)>),
    /// All get the operands of the first; who is in no group gets zeros.
    Broadcast,
    /// Rows of the first operands go where lists say.
    Ragged(Ragged),
}

/// How an operand lies in memory, seen from the dimension along which the operation works.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Blocks: one for each index of the dimensions before.
    blocks: usize,
    /// The bytes of each.
    block_bytes: usize,
    /// The size of the dimension, which parts of blocks divide.
    size: usize,
}

impl Layout {
    /// Blocks of the dimensions from `dim` on.
    fn of(shape: &ArrayShape, dim: usize) -> Self {
        let blocks: usize = shape.dims()[..dim].iter().product();
        let block_bytes = shape.size_bytes().checked_div(blocks).unwrap_or(0);
        Layout { blocks, block_bytes, size: shape.dims().get(dim).copied().unwrap_or(1) }
    }
}

impl<'m> Planner<'m> {
    /// How to perform a collective on bytes; `None` if the instruction is none, or has to be
    /// interpreted.
    pub(super) fn collective(
        &mut self,
        (computation, id): (CompId, InstrId),
    ) -> Planned<Option<Collective>> {
        let module = self.module;
        let instrs = module.computation(computation);
        let instr: &Instr = instrs.instr(id);
        let operands = instr.operands.iter().map(|&o| instrs.instr(o).shape.as_array());
        let Some(operands) = operands.collect::<Option<Vec<&ArrayShape>>>() else {
            return Ok(None);
        };
        let by_channel = |attrs: &CollectiveAttrs| (attrs.clone(), attrs.mode_by_channel());
        let by_mode = |attrs: &CollectiveAttrs| Ok::<_, Error>((attrs.clone(), attrs.mode()?));
        // What begins an operation says which.
        let op = match &instr.op {
            Op::AllReduceStart(begun) => Cow::Owned(begun.op.clone().into()),
            Op::AllGatherStart(begun) => Cow::Owned(begun.op.clone().into()),
            Op::CollectivePermuteStart(begun) => Cow::Owned(begun.op.clone().into()),
            op => Cow::Borrowed(op),
        };
        let ((attrs, mode), kind, dim, shards) = match &*op {
            Op::AllReduce(op) => {
                let Some(folds) = self.folds(op.to_apply, &operands)? else { return Ok(None) };
                let known = known_folds(module, op.to_apply, &operands).unwrap_or_default();
                (by_mode(&op.attrs)?, Kind::Fold { folds, is_scattered: false, known }, 0, None)
            }
            Op::ReduceScatter(op) => {
                let Some(folds) = self.folds(op.to_apply, &operands)? else { return Ok(None) };
                let kind = Kind::Fold { folds, is_scattered: true, known: Vec::new() };
                (by_mode(&op.attrs)?, kind, op.dimension, op.group_size(&operands))
            }
            Op::AllGather(op) => {
                (by_mode(&op.attrs)?, Kind::Gather, op.dimension, op.group_size(&operands))
            }
            Op::AllToAll(op) => match op.dimension {
                Some(dim) => (by_channel(&op.attrs), Kind::Split, dim, None),
                None => (by_channel(&op.attrs), Kind::Deal, 0, Some(operands.len())),
            },
            Op::CollectivePermute(op) => {
                let attrs =
                    CollectiveAttrs { channel_id: op.channel_id, ..CollectiveAttrs::default() };
                (by_channel(&attrs), Kind::Permute(op.pairs.clone()), 0, None)
            }
            Op::CollectiveBroadcast(op) => (by_channel(&op.attrs), Kind::Broadcast, 0, None),
            Op::RaggedAllToAll(op) => {
                let Some(ragged) = Ragged::of(&operands) else { return Ok(None) };
                (by_channel(&op.attrs), Kind::Ragged(ragged), 0, None)
            }
            _ => return Ok(None),
        };
        let arrays = operands.into_iter().map(|shape| Layout::of(shape, dim)).collect();
        let begins = matches!(&instr.op, Op::AllGatherStart(_) | Op::CollectivePermuteStart(_));
        let at = (computation, id);
        Ok(Some(Collective { at, attrs, mode, kind, arrays, shards, begins }))
    }
}

/// The folds of operands, if the computation is one operation on their own elements.
fn known_folds(module: &Module, to_apply: CompId, operands: &[&ArrayShape]) -> Option<Vec<Fold>> {
    let fold = |shape: &&ArrayShape| {
        let element = shape.element();
        reducer(module, to_apply, element).map(|op| Fold { op, element })
    };
    operands.iter().map(fold).collect()
}
