//! Exchange among participants some of whom run in other processes.
//!
//! What participants of one process give each other stays where it lies, as in a run of threads. What
//! those of other processes read is copied once, and sent once to each process, for all who read it
//! there. Each participant then has the slices of all in the group's order, as threads have, and so
//! computes the same bits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use helio::services::{
    Channel, Collectives, Fold, Given, Memo, Meter, Reads, Rendezvous, Sink, SinkWithRoom, Sleeper,
    Wait,
};
use helio::{Code, Error, Literal, Participant, Result};
use smallvec::SmallVec;

use crate::head::{Give, Head, PointId, RunId};
use crate::processes::Shared;
use crate::run::{Arrivals, Begun, Slices, layout};
use crate::value;
use crate::wire::Message;

/// The most bytes of slices that travel in the head of a message.
const INLINE_BYTES: usize = 2048;

/// Where slices begin in the body of a message: at multiples of this.
const ALIGN: usize = helio::Block::ALIGN;

/// The collectives of a run, of which this process has a part.
pub(crate) struct Distributed {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: RunId,
    pub(crate) here: Begun,
}

/// What a participant knows of a rendezvous.
pub(crate) struct Seat {
    pub(crate) point: PointId,
    /// Its position in the group.
    pub(crate) position: usize,
    /// For each position, whether it is here.
    is_here: Vec<bool>,
    /// The participants of the group that are here, in its order.
    here: Vec<Participant>,
    visits: Arc<AtomicU64>,
    pub(crate) arrivals: Arc<Arrivals>,
    /// For those who are here among themselves.
    memo: Memo,
    /// Who gets what, for each kind of meeting that the operation consists of.
    plans: Mutex<Vec<(PlanKey, Arc<Plan>)>>,
}

/// Whether all read all, and how many slices each gives.
type PlanKey = (bool, usize);

/// What a participant sends to whom, and for whom it waits.
pub(crate) struct Plan {
    sends: Vec<Sending>,
    /// The positions elsewhere of those from whom it reads, or who read from it.
    pub(crate) awaited: Vec<usize>,
}

/// Slices that go to processes.
struct Sending {
    slices: Vec<usize>,
    /// Each process, and how many participants there take them.
    to: Vec<(usize, u32)>,
}

impl Distributed {
    /// Those of a run that begins here.
    pub(crate) fn new(shared: Arc<Shared>, here: Begun) -> Self {
        let run = shared.begin(here.clone());
        Distributed { shared, run, here }
    }

    /// Errors: the participant is not of the group.
    fn seat(&self, at: &Rendezvous<'_>, me: Participant) -> Result<Seat> {
        let position = at.group.iter().position(|&who| who == me);
        let position =
            position.ok_or_else(|| Error::internal("a group without its participant"))?;
        let point = PointId::new(at.operation, at.group);
        let visits = self.here.deeds.lock().visits(point, me);
        let mut core = self.shared.lock();
        let run = core.runs.get_mut(&self.run);
        let run = run.ok_or_else(|| Error::internal("a run that is over"))?;
        let arrivals = run.arrivals(point, at.group.len());
        drop(core);
        let is_here: Vec<bool> = at.group.iter().map(|&who| self.here.is_here(who)).collect();
        let here = at.group.iter().copied().filter(|&who| self.here.is_here(who)).collect();
        let (memo, plans) = (Memo::default(), Mutex::default());
        Ok(Seat { point, position, is_here, here, visits, arrivals, memo, plans })
    }

    /// The same, kept from one time to the next.
    fn kept_seat<'r>(&self, at: &Rendezvous<'r>, me: Participant) -> Result<&'r Seat> {
        if at.memo.get::<Seat>().is_none() {
            at.memo.keep(self.seat(at, me)?);
        }
        at.memo.get().ok_or_else(|| Error::internal("another's memo"))
    }

    fn plan(&self, seat: &Seat, at: &Rendezvous<'_>, slices: usize) -> Arc<Plan> {
        let key = (matches!(at.reads, Reads::All), slices);
        let mut plans = seat.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = plans.iter().find(|(other, _)| *other == key) {
            return plan.clone();
        }
        let plan = Arc::new(self.new_plan(seat, at, slices));
        plans.push((key, plan.clone()));
        plan
    }

    fn new_plan(&self, seat: &Seat, at: &Rendezvous<'_>, slices: usize) -> Plan {
        let me = seat.position;
        let reads = |from, to| (0..slices).any(|slice| at.reads.includes(from, to, slice));
        let elsewhere = (0..at.group.len()).filter(|&position| !seat.is_here[position]);
        let met = elsewhere.filter(|&other| slices == 0 || reads(me, other) || reads(other, me));
        let awaited: Vec<usize> = met.collect();
        let mut each: Vec<(usize, u32, Vec<usize>)> = Vec::new();
        for &other in &awaited {
            let process = self.here.process_of(at.group[other]);
            let wanted = (0..slices).filter(|&slice| at.reads.includes(me, other, slice));
            match each.iter_mut().find(|(known, ..)| *known == process) {
                Some((_, takers, all)) => {
                    *takers += 1;
                    all.extend(wanted);
                }
                None => each.push((process, 1, wanted.collect())),
            }
        }
        let mut sends: Vec<Sending> = Vec::new();
        for (process, takers, mut slices) in each {
            slices.sort_unstable();
            slices.dedup();
            match sends.iter_mut().find(|sending| sending.slices == slices) {
                Some(sending) => sending.to.push((process, takers)),
                None => sends.push(Sending { slices, to: vec![(process, takers)] }),
            }
        }
        Plan { sends, awaited }
    }

    /// Sends what others read of `mine`. Errors: `ResourceExhausted`.
    fn give(&self, seat: &Seat, plan: &Plan, visit: u64, mine: &[&[u8]]) -> Result<()> {
        for sending in &plan.sends {
            let sizes: Vec<usize> = sending.slices.iter().map(|&slice| mine[slice].len()).collect();
            let is_inline = sizes.iter().sum::<usize>() <= INLINE_BYTES;
            let body = match is_inline {
                true => None,
                false => {
                    let (ranges, bytes) = layout(&sizes, ALIGN);
                    let mut block = self.shared.memory.allocate(bytes)?;
                    for (range, &slice) in ranges.into_iter().zip(&sending.slices) {
                        block.as_mut_slice()[range].copy_from_slice(mine[slice]);
                    }
                    Some(Arc::new(block))
                }
            };
            let sent = sending.slices.iter().zip(&sizes);
            let mut give = Give {
                run: self.run,
                point: seat.point,
                group: seat.is_here.len() as u32,
                from: seat.position as u32,
                visit,
                takers: 0,
                slices: mine.len() as u32,
                sent: sent.map(|(&slice, &bytes)| (slice as u32, bytes as u64)).collect(),
            };
            for &(process, takers) in &sending.to {
                give.takers = takers;
                let mut head = Head::Give(give.clone()).write();
                if is_inline {
                    sending.slices.iter().for_each(|&slice| head.extend(mine[slice]));
                }
                self.shared.lock().post(process, &Message { head, body: body.clone() });
            }
        }
        Ok(())
    }

    /// What those at the awaited positions gave at a visit.
    fn take(&self, seat: &Seat, plan: &Plan, visit: u64) -> Result<Vec<(usize, Arc<Slices>)>> {
        let mut core = self.shared.lock();
        let run = core.runs.get_mut(&self.run);
        let run = run.ok_or_else(|| Error::internal("a run that is over"))?;
        let slices = plan.awaited.iter().map(|&from| {
            let slices = run.take(seat.point, from, visit);
            slices.map(|slices| (from, slices)).ok_or_else(|| {
                let detail =
                    format!("what participant {from} of a group gave has been taken before");
                Error::internal(detail)
            })
        });
        slices.collect()
    }

    /// Errors: as for [`Collectives::exchange`].
    pub(crate) fn meet(
        &self,
        seat: &Seat,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        meter.check()?;
        let plan = self.plan(seat, at, mine.len());
        let visit = seat.visits.fetch_add(1, Ordering::SeqCst);
        self.give(seat, &plan, visit, mine)?;
        self.wait_for_all(seat, &plan, at, visit, meter)?;
        let others = self.take(seat, &plan, visit)?;
        let within = Rendezvous { group: &seat.here, memo: &seat.memo, ..*at };
        self.here.collectives.exchange(&within, me, mine, meter, &mut |given| {
            let mut slices = SmallVec::<[&[u8]; 16]>::new();
            let mut ends = SmallVec::<[usize; 8]>::new();
            let (mut next_here, mut others) = (0, others.iter().peekable());
            for (position, &is_here) in seat.is_here.iter().enumerate() {
                if is_here {
                    slices.extend_from_slice(given.of(next_here));
                    next_here += 1;
                } else if let Some((_, theirs)) = others.next_if(|(other, _)| *other == position) {
                    theirs.list(&mut slices);
                } else {
                    slices.extend(mine.iter().map(|_| &[][..]));
                }
                ends.push(slices.len());
            }
            sink(Given::new(&slices, &ends))
        })?;
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Collectives for Distributed {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let seat = self.kept_seat(at, me)?;
        if seat.here.len() < at.group.len() {
            return self.meet(seat, at, me, mine, meter, sink);
        }
        let within = Rendezvous { memo: &seat.memo, ..*at };
        self.here.collectives.exchange(&within, me, mine, meter, sink)?;
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn exchange_with_room(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        room: &mut [&mut [u8]],
        meter: &Meter,
        sink: &mut SinkWithRoom<'_>,
    ) -> Result<bool> {
        let seat = self.kept_seat(at, me)?;
        if seat.here.len() < at.group.len() {
            return Ok(false);
        }
        let within = Rendezvous { memo: &seat.memo, ..*at };
        let done =
            self.here.collectives.exchange_with_room(&within, me, mine, room, meter, sink)?;
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        Ok(done)
    }

    fn fold(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        folds: &[Fold],
        mine: &[&[u8]],
        outputs: &mut [&mut [u8]],
        meter: &Meter,
    ) -> Result<bool> {
        if !self.is_left_to_wire(at, folds, mine) {
            return Ok(false);
        }
        let seat = self.kept_seat(at, me)?;
        self.fold_by_wire((at, seat, me), folds, mine, outputs, meter)
    }

    fn wait(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        self.wait_for(wait, meter)
    }

    fn is_elsewhere(&self, channel: Channel) -> bool {
        let assignment = &self.here.assignment;
        let target = channel.pair.filter(|_| !channel.is_host_transfer).map(|(_, target)| target);
        target
            .is_some_and(|target| target < assignment.participants() && !assignment.is_here(target))
    }

    fn send(&self, channel: Channel, value: Literal) -> Result<()> {
        let Some((source, target)) = channel.pair else {
            return Err(Error::internal("a channel that leads nowhere"));
        };
        let (shape, sizes, block) = value::write(&value, &self.shared.memory)?;
        let head = Head::Send { run: self.run, channel, shape, sizes }.write();
        let body = Some(Arc::new(block)).filter(|block| !block.is_empty());
        let [source, target] = [source, target].map(|i| self.here.assignment.participant(i));
        self.shared.lock().post(self.here.process_of(target), &Message { head, body });
        self.here.deeds.lock().note_sent(source, target);
        Ok(())
    }

    fn moved(&self, me: Participant) {
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        self.here.collectives.moved(me);
    }

    fn leave(&self, me: Participant, outcome: Result<(), &Error>) {
        self.here.collectives.leave(me, outcome);
        let error = outcome.err().map(|error| {
            let instruction = error.instruction().map(|name| format!("{name}: "));
            let text = format!("{}{}", instruction.unwrap_or_default(), error.detail());
            match error.code() {
                // Why, the one says who has failed.
                Code::Aborted => (Code::Aborted, error.detail().to_owned()),
                code => (code, text),
            }
        });
        let leave = Head::Leave { run: self.run, who: me, error };
        let mut core = self.shared.lock();
        core.post_to_others(
            &self.here.places.processes,
            &Message { head: leave.write(), body: None },
        );
        if let Some(run) = core.runs.get_mut(&self.run) {
            run.leave(me);
            if run.is_over() {
                core.runs.remove(&self.run);
            }
        }
    }

    fn sleepers(&self, who: Participant) -> Vec<Sleeper> {
        self.here.collectives.sleepers(who)
    }

    fn failure(&self) -> Option<Error> {
        self.here.collectives.failure()
    }
}

impl Begun {
    /// The process that runs a participant.
    pub(crate) fn process_of(&self, who: Participant) -> usize {
        self.places.of[self.number(who)]
    }

    /// The first participant of a process, if it runs any; else the first of all.
    pub(crate) fn first_of(&self, process: usize) -> Participant {
        let first = self.places.of.iter().position(|&of| of == process);
        self.assignment.participant(first.unwrap_or(0))
    }
}
