//! Collective operations on the bytes of slots: arrays of other participants are read where they lie,
//! and joined, dealt out or folded into the result, in the order of the group.

use helio_eval::services::{Context, Participant, Rendezvous, RendezvousId, Sink};
use helio_eval::{Meter, guarded};
use helio_ir::ops::{AllReduceStart, CollectiveAttrs, GroupMode};
use helio_ir::{ArrayShape, CompId, Error, Instr, InstrId, Module, Op, Result};
use helio_runtime::Memory;

use super::bind::ScalarFold;
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
}

/// What becomes of what the participants give.
#[derive(Debug)]
enum Kind {
    /// Blocks of all are folded. With `is_scattered`, each participant folds its part.
    Fold { fold: ScalarFold, is_scattered: bool },
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
        let ((attrs, mode), kind, dim, shards) = match &instr.op {
            Op::AllReduce(op) | Op::AllReduceStart(AllReduceStart { op }) => {
                let Some(fold) = self.fold(op.to_apply, &operands)? else { return Ok(None) };
                (by_mode(&op.attrs)?, Kind::Fold { fold, is_scattered: false }, 0, None)
            }
            Op::ReduceScatter(op) => {
                let Some(fold) = self.fold(op.to_apply, &operands)? else { return Ok(None) };
                let kind = Kind::Fold { fold, is_scattered: true };
                (by_mode(&op.attrs)?, kind, op.dimension, Some(op.shard_count))
            }
            Op::AllGather(op) => {
                (by_mode(&op.attrs)?, Kind::Gather, op.dimension, Some(op.shard_count))
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
            _ => return Ok(None),
        };
        let arrays = operands.into_iter().map(|shape| Layout::of(shape, dim)).collect();
        Ok(Some(Collective { at: (computation, id), attrs, mode, kind, arrays, shards }))
    }
}

/// What surrounds a collective of a run.
pub(super) struct Surroundings<'a> {
    pub(super) module: &'a Module,
    pub(super) cx: &'a Context,
    pub(super) meter: &'a Meter,
    pub(super) memory: &'a Memory,
}

impl Collective {
    /// Performs it. Errors: those of the exchange; participants or groups that do not fit the shapes.
    pub(super) fn perform(
        &self,
        run: &Surroundings<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let instr = run.module.computation(self.at.0).instr(self.at.1);
        let outcome = self.exchange(run, &instr.name, inputs, outputs);
        outcome.map_err(|e| e.in_instruction(&instr.name).at(instr.at.clone()))
    }

    fn exchange(
        &self,
        run: &Surroundings<'_>,
        instruction: &str,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let cx = run.cx;
        let me = (cx.me.replica, cx.me.partition);
        let group = self.attrs.group_of(self.mode, me, (cx.replica_count, cx.partition_count))?;
        let Some(group) = group else { return self.in_no_group(cx.me, outputs) };
        let participant = |(replica, partition)| Participant { replica, partition };
        let group: Vec<Participant> = group.into_iter().map(participant).collect();
        let position = group.iter().position(|&who| who == cx.me);
        let position =
            position.ok_or_else(|| Error::internal("a group without its participant"))?;
        if let Some(shards) = self.shards.filter(|&shards| shards != group.len()) {
            let found = group.len();
            return Err(Error::invalid(format!(
                "the shapes are made for groups of {shards} participants, this one has {found}"
            )));
        }
        let is_cut = matches!(self.kind, Kind::Split | Kind::Fold { is_scattered: true, .. });
        if let Some(array) = self.arrays.iter().find(|a| is_cut && a.size % group.len() != 0) {
            let (size, count) = (array.size, group.len());
            return Err(Error::invalid(format!("a dimension of {size} in {count} equal parts")));
        }
        let operation = match self.attrs.channel_id {
            Some(channel) => RendezvousId::Channel(channel),
            None => RendezvousId::Place(self.at.0.0, self.at.1.0),
        };
        let at = Rendezvous { operation, group: &group, instruction };
        let mut take = self.taking(run, (position, group.len()), outputs)?;
        let mut sink = |from: usize, theirs: &[&[u8]]| {
            let fits = theirs.len() == inputs.len()
                && theirs.iter().zip(inputs).all(|(theirs, mine)| theirs.len() == mine.len());
            if fits { take(from, theirs) } else { Err(misfit(&at, from, theirs, inputs)) }
        };
        let exchange = || cx.collectives.exchange(&at, cx.me, inputs, run.meter, &mut sink);
        guarded(|| "the exchange among participants".to_owned(), exchange)?
    }

    /// What to do with what each participant gives, for the one at `me` in a group.
    fn taking<'t>(
        &'t self,
        run: &Surroundings<'_>,
        (me, count): (usize, usize),
        outputs: &'t mut [&mut [u8]],
    ) -> Result<Box<Sink<'t>>> {
        let arrays = &self.arrays;
        Ok(match &self.kind {
            Kind::Fold { fold, is_scattered } => {
                let mut room = fold.room(run.memory)?;
                Box::new(move |from, theirs| {
                    for ((array, theirs), output) in arrays.iter().zip(theirs).zip(&mut *outputs) {
                        let parts = if *is_scattered { count } else { 1 };
                        let part = array.block_bytes / parts;
                        let first = if *is_scattered { me * part } else { 0 };
                        for block in 0..array.blocks {
                            let theirs = &theirs[block * array.block_bytes + first..][..part];
                            let output = &mut output[block * part..][..part];
                            match from {
                                0 => output.copy_from_slice(theirs),
                                _ => fold.fold(output, theirs, &mut room)?,
                            }
                        }
                    }
                    Ok(())
                })
            }
            Kind::Gather => Box::new(move |from, theirs| {
                for ((array, theirs), output) in arrays.iter().zip(theirs).zip(&mut *outputs) {
                    let bytes = array.block_bytes;
                    for block in 0..array.blocks {
                        output[(block * count + from) * bytes..][..bytes]
                            .copy_from_slice(&theirs[block * bytes..][..bytes]);
                    }
                }
                Ok(())
            }),
            Kind::Split => Box::new(move |from, theirs| {
                for ((array, theirs), output) in arrays.iter().zip(theirs).zip(&mut *outputs) {
                    let bytes = array.block_bytes / count;
                    for block in 0..array.blocks {
                        output[(block * count + from) * bytes..][..bytes]
                            .copy_from_slice(&theirs[(block * count + me) * bytes..][..bytes]);
                    }
                }
                Ok(())
            }),
            Kind::Deal => Box::new(move |from, theirs| {
                outputs[from].copy_from_slice(theirs[me]);
                Ok(())
            }),
            Kind::Permute(pairs) => {
                let source = pairs.iter().find(|&&(_, target)| target == me);
                let source = source.map(|&(source, _)| source);
                if let Some(source) = source.filter(|&source| source >= count) {
                    let detail = format!("source {source} of {count} participants");
                    return Err(Error::invalid(detail));
                }
                if source.is_none() {
                    outputs.iter_mut().for_each(|output| output.fill(0));
                }
                Box::new(move |from, theirs| {
                    copy_if(source == Some(from), theirs, outputs);
                    Ok(())
                })
            }
            Kind::Broadcast => Box::new(move |from, theirs| {
                copy_if(from == 0, theirs, outputs);
                Ok(())
            }),
        })
    }

    /// What a participant in no group gets. Errors: the operation needs everybody.
    fn in_no_group(&self, me: Participant, outputs: &mut [&mut [u8]]) -> Result<()> {
        if matches!(self.kind, Kind::Broadcast) {
            outputs.iter_mut().for_each(|output| output.fill(0));
            return Ok(());
        }
        let groups = &self.attrs.replica_groups;
        Err(Error::invalid(format!("{me} is in no group of {groups}")))
    }
}

fn copy_if(is_source: bool, from: &[&[u8]], to: &mut [&mut [u8]]) {
    if is_source {
        from.iter().zip(to).for_each(|(from, to)| to.copy_from_slice(from));
    }
}

fn misfit(at: &Rendezvous<'_>, from: usize, theirs: &[&[u8]], mine: &[&[u8]]) -> Error {
    let bytes = |slices: &[&[u8]]| slices.iter().map(|slice| slice.len()).collect::<Vec<_>>();
    let (found, want) = (bytes(theirs), bytes(mine));
    let who = at.group[from];
    Error::invalid(format!("{who} gave arrays of {found:?} bytes, this participant of {want:?}"))
}
