//! Collective operations: values exchanged with the other participants of a group, then computed
//! with here, in the group's order, so that all participants get the same bits.

mod bytes;
mod parts;
#[cfg(test)]
mod tests;

use helio_ir::ops::{CollectiveAttrs, GroupMode};
use helio_ir::{Array, ArrayShape, CompId, Error, InstrAt, Literal, Result, memory, ops};

use self::parts::{copy_range, join, part, rows};

use crate::Evaluator;
use crate::control::zero;
use crate::frame::{array, only};
use crate::index::integer;
use crate::scalar::{Scalar, ScalarFn};
use crate::services::{Memo, Participant, Reads, Rendezvous, RendezvousId};
use crate::walk::{outside, store};

/// What the participants of a group gave, in the group's order.
struct Exchange {
    given: Vec<Vec<Literal>>,
    /// Which of them is this participant.
    me: usize,
}

impl Exchange {
    /// Meets the group of this participant; `None` if it is in no group.
    /// Errors: `Unavailable` if a participant is lost; `InvalidArgument` if one gave other shapes.
    fn new(
        attrs: &CollectiveAttrs,
        mode: GroupMode,
        evaluator: &Evaluator<'_>,
        args: &[Literal],
        at: InstrAt,
    ) -> Result<Option<Self>> {
        let cx = evaluator.cx;
        let me = (cx.me.replica, cx.me.partition);
        let group = attrs.group_of(mode, me, (cx.replica_count, cx.partition_count))?;
        let Some(group) = group else { return Ok(None) };
        let group: Vec<_> = group
            .into_iter()
            .map(|(replica, partition)| Participant { replica, partition })
            .collect();
        let me = group.iter().position(|&participant| participant == cx.me);
        let me = me.ok_or_else(|| Error::internal("a group without its participant"))?;
        let operation = match attrs.channel_id {
            Some(channel) => RendezvousId::Channel(channel),
            None => RendezvousId::Place(at.0.0, at.1.0),
        };
        let computation = evaluator.module.computations().get(at.0.index());
        let instr = computation.and_then(|computation| computation.instrs().get(at.1.index()));
        let instruction = instr.map_or("", |instr| &instr.name);
        let memo = Memo::default();
        let at =
            Rendezvous { operation, group: &group, instruction, memo: &memo, reads: Reads::All };
        let given = bytes::exchange(evaluator, &at, args)?;
        if me < given.len() {
            Ok(Some(Exchange { given, me }))
        } else {
            Err(Error::internal("an exchange without this participant's value"))
        }
    }

    /// As [`Exchange::new`]. Errors: also if this participant is in no group.
    fn required(
        attrs: &CollectiveAttrs,
        mode: GroupMode,
        evaluator: &Evaluator<'_>,
        args: &[Literal],
        at: InstrAt,
    ) -> Result<Self> {
        Self::new(attrs, mode, evaluator, args, at)?.ok_or_else(|| {
            let Participant { replica, partition } = evaluator.cx.me;
            let groups = &attrs.replica_groups;
            Error::invalid(format!(
                "replica {replica}, partition {partition} is in no group of {groups}"
            ))
        })
    }

    /// How many participants there are.
    fn size(&self) -> usize {
        self.given.len()
    }

    /// Operand `i` of every participant.
    fn operands(&self, i: usize) -> Result<Vec<&Array>> {
        self.given.iter().map(|values| array(values, i)).collect()
    }

    /// Errors: unless there are as many participants as the shapes of the program say, if they do.
    fn ensure_size(&self, expected: Option<usize>) -> Result<()> {
        let Some(expected) = expected.filter(|&expected| self.size() != expected) else {
            return Ok(());
        };
        let found = self.size();
        Err(Error::invalid(format!(
            "the shapes are made for groups of {expected} participants, this one has {found}"
        )))
    }
}

/// The shapes of operands.
fn shapes(args: &[Literal]) -> Result<Vec<&ArrayShape>> {
    (0..args.len()).map(|i| Ok(array(args, i)?.shape())).collect()
}

/// For each operand what `f` makes of it, as the operation's result.
fn for_each_operand(args: &[Literal], f: impl FnMut(usize) -> Result<Array>) -> Result<Literal> {
    only(
        &(0..args.len())
            .map(f)
            .map(|array| array.map(Literal::Array))
            .collect::<Result<Vec<_>>>()?,
    )
}

/// The computation folded over arrays of the same shape, element by element, from the first on.
fn fold(evaluator: &Evaluator<'_>, to_apply: CompId, arrays: &[&Array]) -> Result<Array> {
    let (first, rest) = arrays.split_first().ok_or_else(outside)?;
    let mut result = (*first).clone();
    if rest.is_empty() {
        return Ok(result);
    }
    memory::ensure_available(result.shape().size_bytes())?;
    let mut function = ScalarFn::new(evaluator, to_apply);
    let mut values = Vec::new();
    let data = result.data_mut();
    for at in 0..first.data().len() {
        let mut folded = Scalar::of(first, at);
        for array in rest {
            function.call(&[folded, Scalar::of(array, at)], &mut values)?;
            folded = *values.first().ok_or_else(outside)?;
        }
        store(data, at, folded.converted(first.element()))?;
    }
    Ok(result)
}

/// The operands of all participants folded.
pub(crate) fn all_reduce(
    op: &ops::AllReduce,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let exchange = Exchange::required(&op.attrs, op.attrs.mode()?, evaluator, args, at)?;
    for_each_operand(args, |i| fold(evaluator, op.to_apply, &exchange.operands(i)?))
}

/// The operands of all participants joined along a dimension.
pub(crate) fn all_gather(
    op: &ops::AllGather,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let exchange = Exchange::required(&op.attrs, op.attrs.mode()?, evaluator, args, at)?;
    exchange.ensure_size(op.group_size(&shapes(args)?))?;
    for_each_operand(args, |i| join(&exchange.operands(i)?, op.dimension))
}

/// This participant's parts of all operands, joined; or, without a dimension to split, the operands
/// that stand for it.
pub(crate) fn all_to_all(
    op: &ops::AllToAll,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let mode = op.attrs.mode_by_channel();
    let exchange = Exchange::required(&op.attrs, mode, evaluator, args, at)?;
    match op.dimension {
        Some(dim) => for_each_operand(args, |i| {
            let operands = exchange.operands(i)?;
            let parts = operands
                .iter()
                .map(|operand| part(operand, dim, exchange.me, exchange.size()))
                .collect::<Result<Vec<_>>>()?;
            join(&parts.iter().collect::<Vec<_>>(), dim)
        }),
        None => {
            exchange.ensure_size(Some(args.len()))?;
            let mine = exchange.given.iter().map(|values| values[exchange.me].clone());
            Ok(Literal::Tuple(mine.collect()))
        }
    }
}

/// The operands of the participant that sends to this one; zeros if there is none.
pub(crate) fn collective_permute(
    op: &ops::CollectivePermute,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let attrs = CollectiveAttrs { channel_id: op.channel_id, ..CollectiveAttrs::default() };
    let exchange = Exchange::required(&attrs, attrs.mode_by_channel(), evaluator, args, at)?;
    // The group is that of all, so its order is that of their numbers.
    match op.pairs.iter().find(|&&(_, target)| target == exchange.me) {
        Some(&(source, _)) => {
            let given = exchange.given.get(source).ok_or_else(|| {
                let count = exchange.size();
                Error::invalid(format!("source {source} of {count} participants"))
            })?;
            only(given)
        }
        None => zero(&only(args)?.shape()),
    }
}

/// This participant's part of the operands of all folded.
pub(crate) fn reduce_scatter(
    op: &ops::ReduceScatter,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let exchange = Exchange::required(&op.attrs, op.attrs.mode()?, evaluator, args, at)?;
    exchange.ensure_size(op.group_size(&shapes(args)?))?;
    for_each_operand(args, |i| {
        let parts = exchange
            .operands(i)?
            .into_iter()
            .map(|operand| part(operand, op.dimension, exchange.me, exchange.size()))
            .collect::<Result<Vec<_>>>()?;
        fold(evaluator, op.to_apply, &parts.iter().collect::<Vec<_>>())
    })
}

/// The operands of the group's first participant; zeros for who is in no group.
pub(crate) fn collective_broadcast(
    op: &ops::CollectiveBroadcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let mode = op.attrs.mode_by_channel();
    match Exchange::new(&op.attrs, mode, evaluator, args, at)? {
        Some(exchange) => only(exchange.given.first().ok_or_else(outside)?),
        None => zero(&only(args)?.shape()),
    }
}

/// The second operand, overwritten with rows of all first operands: those that lie from
/// `input_offsets` on, `send_sizes` many, go to `output_offsets` on; each participant's lists have
/// as many entries for each receiver.
pub(crate) fn ragged_all_to_all(
    op: &ops::RaggedAllToAll,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let mode = op.attrs.mode_by_channel();
    let exchange = Exchange::required(&op.attrs, mode, evaluator, args, at)?;
    let mut output = array(args, 1)?.clone();
    memory::ensure_available(output.shape().size_bytes())?;
    // Rows may be empty.
    let row: usize = output.dims().iter().skip(1).product();
    for values in &exchange.given {
        let (input, lists) = (array(values, 0)?, [2, 3, 4].map(|i| array(values, i)));
        let [input_offsets, send_sizes, output_offsets] = lists;
        let (input_offsets, send_sizes) = (input_offsets?, send_sizes?);
        let output_offsets = output_offsets?;
        let per_receiver = send_sizes.data().len() / exchange.size();
        for slot in exchange.me * per_receiver..(exchange.me + 1) * per_receiver {
            let size = integer(send_sizes, slot)?;
            let from = rows(input, integer(input_offsets, slot)?, size)?;
            let to = rows(&output, integer(output_offsets, slot)?, size)?;
            let (from, to) = (from.start * row..from.end * row, to.start * row..to.end * row);
            copy_range(input, from, &mut output, to)?;
        }
    }
    Ok(output.into())
}

/// (operands, what [`all_gather`] gives)
pub(crate) fn all_gather_start(
    op: &ops::AllGatherStart,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let result = all_gather(&op.op, evaluator, args, at)?;
    Ok(Literal::Tuple(vec![only(args)?, result]))
}

/// (operands, what [`collective_permute`] gives, contexts…)
pub(crate) fn collective_permute_start(
    op: &ops::CollectivePermuteStart,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let mut parts = vec![only(args)?, collective_permute(&op.op, evaluator, args, at)?];
    for context in &op.contexts {
        parts.push(zero(context)?);
    }
    Ok(Literal::Tuple(parts))
}
