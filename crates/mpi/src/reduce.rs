//! Reductions that the wire does itself, in an order of its own, where the user allows that.
//!
//! A wire's reduction is begun by all processes in the same order, and nothing says what happens if they
//! begin different ones, or some none. So the participants meet first, and say what they are about to fold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helio::services::{Fold, Meter, Reads, Rendezvous, Wait};
use helio::{Block, Error, Participant, Result};

use crate::distributed::{Distributed, Looked, Seat};
use crate::mutual::Verdict;
use crate::processes::Core;

/// The bytes of an operand from which on meeting first costs little beside the reduction.
const LEAST_BYTES: usize = 256 << 10;

/// The most bytes of an operand: MPI counts in 31 bits.
const MOST_BYTES: usize = i32::MAX as usize;

/// A reduction of the wire that is under way, and its result.
pub(crate) struct Folding {
    pub(crate) is_done: Arc<AtomicBool>,
    pub(crate) result: Option<Arc<Block>>,
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
            && count == self.here.count()
            && mine.iter().all(is_large)
            && folds.iter().all(|&fold| self.shared.lock().can_fold(fold))
    }

    /// Folds operands by the wire. Errors: as for `Collectives::exchange`; `InvalidArgument` if
    /// participants are about to fold different things.
    pub(crate) fn fold_by_wire(
        &self,
        (at, seat, me): (&Rendezvous<'_>, &Seat, Participant),
        folds: &[Fold],
        mine: &[&[u8]],
        outputs: &mut [&mut [u8]],
        meter: &Meter,
    ) -> Result<()> {
        // What could fail here does so before others rely on it.
        let copy = |bytes: &&[u8]| self.shared.memory.copy_of(bytes).map_err(Error::from);
        let blocks: Vec<Block> = mine.iter().map(copy).collect::<Result<_>>()?;
        let sizes = mine.iter().map(|bytes| bytes.len());
        let said = folds.iter().zip(sizes).map(|(fold, bytes)| format!("{fold:?} {bytes}"));
        let said: String = said.collect::<Vec<_>>().join("; ");
        let meeting = Rendezvous { reads: Reads::All, ..*at };
        self.meet(seat, &meeting, me, &[said.as_bytes()], meter, &mut |given| {
            let all = (0..given.participants()).map(|position| given.of(position));
            match all.clone().all(|theirs| theirs == [said.as_bytes()]) {
                true => Ok(()),
                false => Err(Error::invalid(format!(
                    "participants are about to fold different arrays: this one {said}; or \
                     Options::own_reduction differs from process to process"
                ))),
            }
        })?;
        for ((fold, block), output) in folds.iter().zip(blocks).zip(outputs) {
            let is_done = self.shared.lock().begin_fold(*fold, block)?;
            let is_there = move || is_done.load(Ordering::SeqCst);
            if !self.shared.spin(&is_there) {
                let ready = Looked::ready(&self.shared, is_there, &Verdict::default());
                let (instruction, from) = (at.instruction, None);
                // All have come; what is left is up to the wire, also if the others' runs have ended.
                let wait = Wait { me, instruction, from, is_open: true, ready: &ready };
                self.here.collectives.wait(&wait, meter)?;
            }
            let result = self.shared.lock().folding.take().and_then(|folding| folding.result);
            let missing = || Error::internal("a reduction without a result");
            output.copy_from_slice(result.ok_or_else(missing)?.as_slice());
        }
        self.shared.moves.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Core {
    /// Whether the wire knows how to do a reduction.
    pub(crate) fn can_fold(&self, fold: Fold) -> bool {
        self.wire.as_ref().is_some_and(|wire| wire.can_fold(fold))
    }

    /// Begins a reduction of the wire; what tells whether it is done. Errors: `FailedPrecondition` if one is
    /// under way, of a run that has been stopped; as the wire says.
    pub(crate) fn begin_fold(&mut self, fold: Fold, block: Block) -> Result<Arc<AtomicBool>> {
        let Some(wire) = &mut self.wire else { return Err(Error::internal("a wire is closed")) };
        wire.begin_fold(fold, block)?;
        let is_done = Arc::new(AtomicBool::new(false));
        self.folding = Some(Folding { is_done: is_done.clone(), result: None });
        Ok(is_done)
    }

    /// Takes the result of a reduction, if it is there. What goes wrong with it shows in that it is not.
    pub(crate) fn take_folded(&mut self) {
        if let (Some(folding), Some(wire)) = (&mut self.folding, &mut self.wire)
            && folding.result.is_none()
            && let Ok(Some(block)) = wire.folded()
        {
            folding.result = Some(block);
            folding.is_done.store(true, Ordering::SeqCst);
        }
    }
}
