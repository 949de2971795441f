//! A collective as a step of a run: the exchange in the participant's group, and the results made
//! of what all give.

use helio_eval::services::{
    Context, Fold, Given, Memo, Participant, Reads, Rendezvous, RendezvousId, Sink, SinkWithRoom,
};
use helio_eval::{Meter, guarded};
use helio_ir::{Error, Module, Result};
use helio_runtime::Memory;
use smallvec::SmallVec;

use super::{Collective, Kind};
use crate::plan::bind::Room;

/// What surrounds a collective of a run.
#[derive(Clone, Copy)]
pub(in crate::plan) struct Surroundings<'a> {
    pub(in crate::plan) module: &'a Module,
    pub(in crate::plan) cx: &'a Context,
    pub(in crate::plan) meter: &'a Meter,
    pub(in crate::plan) memory: &'a Memory,
}

/// A participant's place at a collective, found when it first comes and kept for the run.
pub(in crate::plan) struct Seat {
    /// Those who meet; nobody if this participant is in no group.
    pub(super) group: Vec<Participant>,
    /// Which of them is this participant.
    pub(super) me: usize,
    /// Room for folds, if the operation folds.
    pub(super) room: Option<Room>,
    memo: Memo,
}

impl Collective {
    /// Performs it. `seat` is empty when this participant comes for the first time in the run. Errors:
    /// those of the exchange; participants or groups that do not fit the shapes.
    pub(in crate::plan) fn perform(
        &self,
        run: &Surroundings<'_>,
        seat: &mut Option<Seat>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let outcome = match seat {
            Some(seat) => self.exchange(run, seat, inputs, outputs),
            none => {
                self.seat(run).and_then(|new| self.exchange(run, none.insert(new), inputs, outputs))
            }
        };
        outcome.map_err(|e| {
            let instr = run.module.computation(self.at.0).instr(self.at.1);
            run.module.locate(e, instr)
        })
    }

    /// Where this participant takes part. Errors: the groups do not fit the shapes.
    fn seat(&self, run: &Surroundings<'_>) -> Result<Seat> {
        let cx = run.cx;
        let me = (cx.me.replica, cx.me.partition);
        let group = self.attrs.group_of(self.mode, me, (cx.replica_count, cx.partition_count))?;
        let memo = Memo::default();
        let Some(group) = group else {
            return Ok(Seat { group: Vec::new(), me: 0, room: None, memo });
        };
        let participant = |(replica, partition)| Participant { replica, partition };
        let group: Vec<Participant> = group.into_iter().map(participant).collect();
        let me = group.iter().position(|&who| who == cx.me);
        let me = me.ok_or_else(|| Error::internal("a group without its participant"))?;
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
        let room = match &self.kind {
            Kind::Fold { folds, .. } => Some(folds.room(run.memory)?),
            _ => None,
        };
        Ok(Seat { group, me, room, memo })
    }

    fn exchange(
        &self,
        run: &Surroundings<'_>,
        seat: &mut Seat,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        if seat.group.is_empty() {
            return self.in_no_group(run.cx.me, outputs);
        }
        let Seat { group, me, room, memo } = seat;
        let visit = Visit { run, collective: self, group, me: *me, memo };
        match (&self.kind, room) {
            (Kind::Fold { folds, is_scattered, known }, Some(room)) => {
                if !known.is_empty() && visit.fold_elsewhere(known, inputs, outputs)? {
                    return Ok(());
                }
                if !is_scattered && visit.is_cut(inputs) {
                    return visit.fold_in_pieces(folds, room, run.memory, inputs, outputs);
                }
                let parts = if *is_scattered { group.len() } else { 1 };
                visit.fold_whole(folds, room, parts, inputs, outputs)
            }
            _ => {
                let count = group.len();
                let mine = self.slices(inputs, count);
                let reads = |from, to, slice| self.reads(count, from, to, slice);
                let reads = Reads::These(&reads);
                visit.meet(&mine, reads, &mut |given| {
                    visit.check(given, reads, |_, slice| mine[slice].len(), mine.len())?;
                    self.take(given, *me, outputs)
                })
            }
        }
    }

    /// What a participant gives: its operands; those that are cut into parts that lie in one piece,
    /// part by part.
    pub(super) fn slices<'i>(&self, inputs: &[&'i [u8]], count: usize) -> SmallVec<[&'i [u8]; 8]> {
        match self.is_dealt() {
            false => SmallVec::from_slice(inputs),
            true => {
                let part =
                    |bytes: &'i [u8], i| &bytes[bytes.len() / count * i..][..bytes.len() / count];
                let parts = |bytes| (0..count).map(move |i| part(bytes, i));
                inputs.iter().flat_map(|&bytes| parts(bytes)).collect()
            }
        }
    }

    /// Whether each operand is one block, which is cut into a part for each participant.
    pub(super) fn is_dealt(&self) -> bool {
        let is_cut = matches!(self.kind, Kind::Split | Kind::Fold { is_scattered: true, .. });
        is_cut && self.arrays.iter().all(|array| array.blocks == 1)
    }

    /// Whether the participant at `to` reads this slice of the one at `from`.
    pub(super) fn reads(&self, count: usize, from: usize, to: usize, slice: usize) -> bool {
        match &self.kind {
            Kind::Deal => slice == to,
            Kind::Permute(pairs) => pairs.contains(&(from, to)),
            Kind::Broadcast => from == 0,
            Kind::Split | Kind::Fold { is_scattered: true, .. } if self.is_dealt() => {
                slice % count == to
            }
            _ => true,
        }
    }

    /// Makes the results of what all participants give, for the one at `me`.
    fn take(&self, given: Given<'_>, me: usize, outputs: &mut [&mut [u8]]) -> Result<()> {
        let count = given.participants();
        let (begun, outputs) = match self.begins {
            true => outputs.split_at_mut(self.arrays.len().min(outputs.len())),
            false => (&mut [] as &mut [&mut [u8]], outputs),
        };
        copy(given.of(me), begun);
        let (outputs, others) = outputs.split_at_mut(match self.kind {
            Kind::Deal => count,
            Kind::Ragged(_) => 1,
            _ => self.arrays.len(),
        });
        others.iter_mut().for_each(|other| other.fill(0));
        match &self.kind {
            Kind::Gather => self.join(given, outputs, |block, bytes| block * bytes, 1),
            Kind::Split if self.is_dealt() => {
                for (i, output) in outputs.iter_mut().enumerate() {
                    let bytes = output.len() / count;
                    for position in 0..count {
                        let theirs = given.of(position)[i * count + me];
                        output[position * bytes..][..bytes].copy_from_slice(theirs);
                    }
                }
            }
            Kind::Split => {
                self.join(given, outputs, |block, bytes| (block * count + me) * bytes, count);
            }
            Kind::Deal => {
                for (from, output) in outputs.iter_mut().enumerate() {
                    output.copy_from_slice(given.of(from)[me]);
                }
            }
            Kind::Permute(pairs) => match pairs.iter().find(|&&(_, target)| target == me) {
                Some(&(source, _)) if source >= count => {
                    let detail = format!("source {source} of {count} participants");
                    return Err(Error::invalid(detail));
                }
                Some(&(source, _)) => copy(given.of(source), outputs),
                None => outputs.iter_mut().for_each(|output| output.fill(0)),
            },
            Kind::Broadcast => copy(given.of(0), outputs),
            Kind::Ragged(ragged) => ragged.take(given, me, outputs[0])?,
            Kind::Fold { .. } => return Err(Error::internal("a fold is no copy")),
        }
        Ok(())
    }

    /// Writes, block by block, what stands at `from` in the operands of each participant: blocks
    /// cut into `parts` parts.
    fn join(
        &self,
        given: Given<'_>,
        outputs: &mut [&mut [u8]],
        from: impl Fn(usize, usize) -> usize,
        parts: usize,
    ) {
        let count = given.participants();
        for (i, (array, output)) in self.arrays.iter().zip(outputs).enumerate() {
            let bytes = array.block_bytes / parts;
            for position in 0..count {
                let theirs = given.of(position)[i];
                for block in 0..array.blocks {
                    output[(block * count + position) * bytes..][..bytes]
                        .copy_from_slice(&theirs[from(block, bytes)..][..bytes]);
                }
            }
        }
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

/// A collective at which a participant is.
pub(super) struct Visit<'a> {
    pub(super) run: &'a Surroundings<'a>,
    pub(super) collective: &'a Collective,
    pub(super) group: &'a [Participant],
    pub(super) me: usize,
    memo: &'a Memo,
}

impl Visit<'_> {
    /// Gives `mine` and takes what all give. Errors: those of the exchange and of `sink`.
    pub(super) fn meet(&self, mine: &[&[u8]], reads: Reads<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let Surroundings { cx, meter, .. } = *self.run;
        let at = self.rendezvous(reads);
        let exchange = || cx.collectives.exchange(&at, cx.me, mine, meter, sink);
        guarded(|| "the exchange among participants".to_owned(), exchange)?
    }

    /// The same, where all lend each other room to write to, if they can; whether they can. Errors: those
    /// of the exchange and of `sink`.
    pub(super) fn meet_with_room(
        &self,
        mine: &[&[u8]],
        room: &mut [&mut [u8]],
        sink: &mut SinkWithRoom<'_>,
    ) -> Result<bool> {
        let Surroundings { cx, meter, .. } = *self.run;
        let at = self.rendezvous(Reads::All);
        let exchange = || cx.collectives.exchange_with_room(&at, cx.me, mine, room, meter, sink);
        guarded(|| "the exchange among participants".to_owned(), exchange)?
    }

    /// Has the means of transport fold the operands in its own order, if it may; whether it has. Errors:
    /// those of the exchange.
    fn fold_elsewhere(
        &self,
        folds: &[Fold],
        mine: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<bool> {
        let Surroundings { cx, meter, .. } = *self.run;
        let at = self.rendezvous(Reads::All);
        let fold = || cx.collectives.fold(&at, cx.me, folds, mine, outputs, meter);
        guarded(|| "the reduction over participants".to_owned(), fold)?
    }

    fn rendezvous<'r>(&'r self, reads: Reads<'r>) -> Rendezvous<'r> {
        let (computation, id) = self.collective.at;
        let operation = match self.collective.attrs.channel_id {
            Some(channel) => RendezvousId::Channel(channel),
            None => RendezvousId::Place(computation.0, id.0),
        };
        let instruction = &self.run.module.computation(computation).instr(id).name;
        Rendezvous { operation, group: self.group, instruction, memo: self.memo, reads }
    }

    /// Errors: `InvalidArgument` unless each participant gave `slices` slices, and those that this one
    /// reads are of the sizes that `size(position, slice)` says.
    pub(super) fn check(
        &self,
        given: Given<'_>,
        reads: Reads<'_>,
        size: impl Fn(usize, usize) -> usize,
        slices: usize,
    ) -> Result<()> {
        let (count, found) = (self.group.len(), given.participants());
        if found != count {
            return Err(Error::internal(format!("an exchange of {count} among {found}")));
        }
        let read = |position, slice: &usize| reads.includes(position, self.me, *slice);
        let fits = |&position: &usize| {
            let theirs = given.of(position);
            let fits = |slice: usize| theirs[slice].len() == size(position, slice);
            theirs.len() == slices && (0..slices).filter(|s| read(position, s)).all(fits)
        };
        let Some(position) = (0..count).find(|position| !fits(position)) else { return Ok(()) };
        let theirs = given.of(position);
        let found = theirs.iter().enumerate().filter(|(slice, _)| read(position, slice));
        let found: Vec<usize> = found.map(|(_, bytes)| bytes.len()).collect();
        let wanted = (0..slices).filter(|slice| read(position, slice));
        let wanted: Vec<usize> = wanted.map(|slice| size(position, slice)).collect();
        let who = self.group[position];
        Err(Error::invalid(format!(
            "{who} gave arrays of {found:?} bytes, this participant of {wanted:?}"
        )))
    }
}

fn copy(from: &[&[u8]], to: &mut [&mut [u8]]) {
    from.iter().zip(to).for_each(|(from, to)| to.copy_from_slice(from));
}
