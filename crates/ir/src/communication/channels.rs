//! Channels: who sends into them, and who receives from them.

use std::collections::BTreeMap;

use super::{Found, found, places};
use crate::ops::transfer_pairs;
use crate::{Instr, InstrAt, Module, Op};

/// Which of its four instructions uses a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Send,
    SendDone,
    Recv,
    RecvDone,
}

/// An instruction that uses a channel between devices.
#[derive(Debug)]
pub(super) struct Use<'m> {
    pub(super) place: InstrAt,
    pub(super) instr: &'m Instr,
    pub(super) kind: Kind,
    /// Sources and targets, if the program states them.
    pub(super) pairs: Option<Vec<(usize, usize)>>,
}

/// The channels between devices, by number, each with what uses it in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Channels<'m> {
    pub(super) uses: BTreeMap<i64, Vec<Use<'m>>>,
    /// For each channel of a collective, the first instruction that has it.
    collectives: BTreeMap<i64, (InstrAt, &'m Instr)>,
    /// Collectives of different kinds on one channel, as found.
    mixed: Vec<Found>,
}

/// What a transfer, or the end of one, says of itself: its kind, its channel, whether its peer is
/// the host.
fn transfer(op: &Op) -> Option<(Kind, Option<i64>, bool)> {
    Some(match op {
        Op::Send(op) => (Kind::Send, op.channel_id, op.is_host_transfer),
        Op::SendDone(op) => (Kind::SendDone, op.channel_id, op.is_host_transfer),
        Op::Recv(op) => (Kind::Recv, op.channel_id, op.is_host_transfer),
        Op::RecvDone(op) => (Kind::RecvDone, op.channel_id, op.is_host_transfer),
        _ => return None,
    })
}

/// The channel of a collective.
fn collective_channel(op: &Op) -> Option<i64> {
    match op {
        Op::AllReduce(op) => op.attrs.channel_id,
        Op::AllGather(op) => op.attrs.channel_id,
        Op::AllToAll(op) => op.attrs.channel_id,
        Op::ReduceScatter(op) => op.attrs.channel_id,
        Op::CollectiveBroadcast(op) => op.attrs.channel_id,
        Op::RaggedAllToAll(op) => op.attrs.channel_id,
        Op::CollectivePermute(op) => op.channel_id,
        Op::AllReduceStart(op) => op.op.attrs.channel_id,
        Op::AllGatherStart(op) => op.op.attrs.channel_id,
        Op::CollectivePermuteStart(op) => op.op.channel_id,
        _ => None,
    }
}

impl<'m> Channels<'m> {
    /// The channels of a module. Errors: `channel.C1`, `channel.C2`.
    pub(super) fn of(module: &'m Module) -> Result<Self, Vec<Found>> {
        let (mut channels, mut errors) = (Channels::default(), Vec::new());
        for (place, instr) in places(module) {
            if let Some(id) = collective_channel(&instr.op) {
                channels.add_collective(id, place, instr);
            }
            let Some((kind, own, is_host)) = transfer(&instr.op) else { continue };
            let begun = instr.operands.first().map(|&id| module.computation(place.0).instr(id));
            let begun = begun.filter(|_| matches!(kind, Kind::SendDone | Kind::RecvDone));
            let of_begun = begun.and_then(|begun| transfer(&begun.op));
            if let (Some(begun), Some((_, channel, host))) = (begun, of_begun)
                && (is_host != host || own.is_some_and(|own| channel != Some(own)))
            {
                let text = |channel: Option<i64>, host: bool| {
                    let channel =
                        channel.map_or("no channel".to_owned(), |id| format!("channel {id}"));
                    format!("{channel} {}", if host { "to the host" } else { "between devices" })
                };
                let detail = format!(
                    "must be of the transfer that `{}` begins, {}; is of {}",
                    begun.name,
                    text(channel, host),
                    text(own, is_host)
                );
                errors.push(found(place, instr, "channel.C2", detail));
                continue;
            }
            let pairs = match (transfer_pairs(instr), begun) {
                (Ok(None), Some(begun)) => transfer_pairs(begun),
                (pairs, _) => pairs,
            };
            let pairs = pairs.and_then(|pairs| ensure_below(module, pairs));
            match pairs {
                Err(e) => errors.push((place, e.in_instruction(&instr.name).at(instr.at.clone()))),
                Ok(pairs) => {
                    let id = own.or(of_begun.and_then(|(_, channel, _)| channel));
                    if let (Some(id), false) = (id, is_host) {
                        let of_channel = channels.uses.entry(id).or_default();
                        of_channel.push(Use { place, instr, kind, pairs });
                    }
                }
            }
        }
        if errors.is_empty() { Ok(channels) } else { Err(errors) }
    }

    fn add_collective(&mut self, id: i64, place: InstrAt, instr: &'m Instr) {
        let name = |instr: &Instr| instr.op.opcode().trim_end_matches("-start");
        let first = self.collectives.entry(id).or_insert((place, instr)).1;
        if name(first) != name(instr) {
            let detail = format!(
                "channel {id} is that of `{}`, {}, too; each kind of operation needs channels of its \
                 own",
                first.name,
                name(first)
            );
            self.mixed.push(found(place, instr, "channel.C7", detail));
        }
    }

    /// `channel.C5`.
    pub(super) fn errors(&self) -> Vec<Found> {
        let mut errors = Vec::new();
        for (id, uses) in &self.uses {
            let (sends, recvs) = (of_kind(uses, Kind::Send), of_kind(uses, Kind::Recv));
            for recv in &recvs {
                if sends.is_empty() && recv.pairs.as_ref().is_some_and(|pairs| !pairs.is_empty()) {
                    let detail = format!(
                        "receives from channel {id}, of which the program states sources and \
                         targets, but nothing sends into it"
                    );
                    errors.push(found(recv.place, recv.instr, "channel.C5", detail));
                }
            }
        }
        errors
    }

    /// `channel.C6` and `channel.C7`.
    pub(super) fn warnings(&self) -> Vec<Found> {
        let mut warnings = self.mixed.clone();
        for (id, uses) in &self.uses {
            let (sends, recvs) = (of_kind(uses, Kind::Send), of_kind(uses, Kind::Recv));
            let alone = |of: &Use<'_>, what: &str| {
                let detail = format!("{what} channel {id}: another program has to");
                found(of.place, of.instr, "channel.C6", detail)
            };
            match (sends.first(), recvs.first()) {
                (Some(send), None) => {
                    warnings.push(alone(send, "nothing in this program receives from"));
                }
                // With pairs, that is an error.
                (None, Some(recv)) if recv.pairs.is_none() => {
                    warnings.push(alone(recv, "nothing in this program sends into"));
                }
                _ => {}
            }
            if let Some(&(_, collective)) = self.collectives.get(id) {
                let detail = format!(
                    "channel {id} is that of `{}`, {}, too; each kind of operation needs channels of \
                     its own",
                    collective.name,
                    collective.op.opcode()
                );
                warnings.push(found(uses[0].place, uses[0].instr, "channel.C7", detail));
            }
            let ends = sends.iter().chain(&recvs);
            let mut ends = ends.filter(|of| of.pairs.is_some());
            let first = ends.next();
            if let Some(first) = first
                && let Some(other) = ends.find(|other| other.pairs != first.pairs)
            {
                let detail = format!(
                    "channel {id} has other sources and targets here than in `{}`; what one sends \
                     the other may never receive",
                    first.instr.name
                );
                warnings.push(found(other.place, other.instr, "channel.C7", detail));
            }
        }
        warnings
    }
}

/// `channel.C1`: the numbers are those of participants, if the module says how many there are.
fn ensure_below(
    module: &Module,
    pairs: Option<Vec<(usize, usize)>>,
) -> crate::Result<Option<Vec<(usize, usize)>>> {
    let (replicas, partitions) = (module.config.replica_count, module.config.num_partitions);
    let count = replicas.unwrap_or(1).saturating_mul(partitions.unwrap_or(1));
    // A count of 1 is what modules say that were made for any number.
    let outside = pairs.iter().flatten().flat_map(|&(s, t)| [s, t]).find(|&id| id >= count);
    match outside {
        Some(id) if count > 1 => Err(crate::Error::rule(
            "channel.C1",
            format!("participant {id} among sources and targets, but the module has {count}"),
        )),
        _ => Ok(pairs),
    }
}

fn of_kind<'a, 'm>(uses: &'a [Use<'m>], kind: Kind) -> Vec<&'a Use<'m>> {
    uses.iter().filter(|of| of.kind == kind).collect()
}
