//! Reductions that the wire does itself, in an order of its own, where the user allows that.
//!
//! A wire's reduction is begun by all processes in the same order, and nothing says what happens if they
//! begin different ones, or some none. So the participants meet first, and say what they are about to fold,
//! and which reduction of their wire that would be. Where these numbers differ, it is folded in the ordinary
//! way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helio::services::{Fold, Meter, Reads, Rendezvous, Wait};
use helio::{Block, Error, Participant, Result};

use crate::distributed::{Distributed, Seat};
use crate::processes::{Core, Shared};
use crate::waits::Looked;

/// The bytes of an operand from which on meeting first costs little beside the reduction.
const LEAST_BYTES: usize = 256 << 10;

/// The most bytes of an operand: MPI counts in 31 bits.
const MOST_BYTES: usize = i32::MAX as usize;

/// The number of the next reduction where there can be none.
const NO_NUMBER: u64 = u64::MAX;

/// The reductions of a wire, one at a time.
#[derive(Default)]
pub(crate) struct Folds {
    /// How many have been begun: processes' reductions pair up by their order.
    begun: u64,
    /// Whether a participant is about to begin one, or waits for its result.
    is_claimed: bool,
    /// The last one, until its result is taken.
    last: Option<Folding>,
}

/// A reduction, and what has become of it.
struct Folding {
    is_done: Arc<AtomicBool>,
    result: Option<Result<Arc<Block>>>,
}

/// Leave to begin the reductions of one operation.
struct Claim<'a> {
    shared: &'a Shared,
    /// The number of the first of them; nothing if others of this process are under way.
    number: Option<u64>,
}

impl<'a> Claim<'a> {
    fn new(shared: &'a Shared) -> Self {
        let folds = &mut shared.lock().folds;
        let is_under_way = folds.last.as_ref().is_some_and(|last| last.result.is_none());
        let number = (!is_under_way && !folds.is_claimed).then_some(folds.begun);
        folds.is_claimed |= number.is_some();
        Claim { shared, number }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.number.is_some() {
            self.shared.lock().folds.is_claimed = false;
        }
    }
}

impl Distributed {
    /// Whether these operands are left to the wire. All participants decide alike: what differs from one
    /// process to another is found out when they meet.
    pub(crate) fn is_left_to_wire(
        &self,
        at: &Rendezvous<'_>,
        folds: &[Fold],
        mine: &[&[u8]],
    ) -> bool {
        let (count, processes) = (at.group.len(), self.shared.size);
        let is_large = |bytes: &&[u8]| (LEAST_BYTES..=MOST_BYTES).contains(&bytes.len());
        self.shared.options.own_reduction
            && count == processes
            && count == self.here.places.of.len()
            && processes == self.here.places.processes.len()
            && mine.iter().all(is_large)
            && folds.iter().all(|&fold| self.shared.lock().can_fold(fold))
    }

    /// Folds operands by the wire; whether it has. It has not where another run folds, or one that was
    /// stopped has begun reductions in some processes only: the next one would be paired with those.
    /// Errors: as for `Collectives::exchange`; `InvalidArgument` if participants are about to fold
    /// different things.
    pub(crate) fn fold_by_wire(
        &self,
        (at, seat, me): (&Rendezvous<'_>, &Seat, Participant),
        folds: &[Fold],
        mine: &[&[u8]],
        outputs: &mut [&mut [u8]],
        meter: &Meter,
    ) -> Result<bool> {
        // What could fail here does so before others rely on it.
        let copy = |bytes: &&[u8]| self.shared.memory.copy_of(bytes).map_err(Error::from);
        let blocks: Vec<Block> = mine.iter().map(copy).collect::<Result<_>>()?;
        let claim = Claim::new(&self.shared);
        if !self.agree((at, seat, me), &claim, folds, mine, meter)? {
            return Ok(false);
        }
        for ((fold, block), output) in folds.iter().zip(blocks).zip(outputs) {
            let is_done = self.shared.lock().begin_fold(*fold, block)?;
            let is_there = move || is_done.load(Ordering::SeqCst);
            if !self.shared.spin(&is_there) {
                let ready = Looked::ready(&self.shared, is_there);
                let (instruction, from) = (at.instruction, None);
                // All have come; what is left is up to the wire, also if the others' runs have ended.
                let wait = Wait { me, instruction, from, is_open: true, ready: &ready };
                self.here.collectives.wait(&wait, meter)?;
            }
            let result = self.shared.lock().folds.last.take().and_then(|folding| folding.result);
            let missing = || Error::internal("a reduction without a result");
            output.copy_from_slice(result.ok_or_else(missing)??.as_slice());
        }
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Meets the others before a reduction; whether it is the next one for all of them. All see the same
    /// numbers, and decide alike. Errors: as for [`Distributed::fold_by_wire`].
    fn agree(
        &self,
        (at, seat, me): (&Rendezvous<'_>, &Seat, Participant),
        claim: &Claim<'_>,
        folds: &[Fold],
        mine: &[&[u8]],
        meter: &Meter,
    ) -> Result<bool> {
        let sizes = mine.iter().map(|bytes| bytes.len());
        let said = folds.iter().zip(sizes).map(|(fold, bytes)| format!("{fold:?} {bytes}"));
        let said: String = said.collect::<Vec<_>>().join("; ");
        let number = claim.number.unwrap_or(NO_NUMBER).to_ne_bytes();
        let mut is_next = claim.number.is_some();
        let meeting = Rendezvous { reads: Reads::All, ..*at };
        self.meet(seat, &meeting, me, &[said.as_bytes(), &number], meter, &mut |given| {
            for position in 0..given.participants() {
                match given.of(position) {
                    [theirs, next] if *theirs == said.as_bytes() => is_next &= *next == number,
                    _ => {
                        return Err(Error::invalid(format!(
                            "participants are about to fold different arrays: this one {said}; or \
                             Options::own_reduction differs from process to process"
                        )));
                    }
                }
            }
            Ok(())
        })?;
        Ok(is_next)
    }
}

impl Core {
    /// Whether the wire knows how to do a reduction.
    pub(crate) fn can_fold(&self, fold: Fold) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.can_fold(fold))
    }

    /// Begins a reduction of the wire; what tells whether it is done. Errors: `FailedPrecondition` if one is
    /// under way, of a run that has been stopped; as the wire says.
    fn begin_fold(&mut self, fold: Fold, block: Block) -> Result<Arc<AtomicBool>> {
        let Some(wire) = &mut self.wire else { return Err(Error::internal("a wire is closed")) };
        wire.begin_fold(fold, block)?;
        self.folds.begun += 1;
        let is_done = Arc::new(AtomicBool::new(false));
        self.folds.last = Some(Folding { is_done: is_done.clone(), result: None });
        Ok(is_done)
    }

    /// Takes the result of a reduction, or why there is none, if it has ended.
    pub(crate) fn take_folded(&mut self) {
        if let (Some(folding), Some(wire)) = (&mut self.folds.last, &mut self.wire)
            && folding.result.is_none()
            && let Some(result) = wire.folded().transpose()
        {
            folding.result = Some(result);
            folding.is_done.store(true, Ordering::SeqCst);
        }
    }
}
