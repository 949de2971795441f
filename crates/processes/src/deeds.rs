//! What the participants of a run have done for others so far, as one process knows it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helio::Participant;

use crate::head::PointId;
use crate::mutual::Awaited;

/// Counts that only grow.
#[derive(Default)]
pub(crate) struct Deeds(Mutex<Counts>);

#[derive(Default)]
pub(crate) struct Counts {
    /// How often each participant of this process has come to each rendezvous.
    visits: HashMap<(PointId, Participant), Arc<AtomicU64>>,
    /// Values sent from a participant of this process to one of another.
    sent: HashMap<(Participant, Participant), u64>,
    /// Values that have come from a participant of another process for one of this.
    delivered: HashMap<(Participant, Participant), u64>,
}

impl Deeds {
    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// How often a participant has come to a rendezvous.
    pub(crate) fn visits(&mut self, point: PointId, who: Participant) -> Arc<AtomicU64> {
        self.visits.entry((point, who)).or_default().clone()
    }

    pub(crate) fn note_sent(&mut self, from: Participant, to: Participant) {
        *self.sent.entry((from, to)).or_default() += 1;
    }

    pub(crate) fn note_delivered(&mut self, from: Participant, to: Participant) {
        *self.delivered.entry((from, to)).or_default() += 1;
    }

    /// How many values have come from one participant for another.
    pub(crate) fn delivered(&self, from: Participant, to: Participant) -> u64 {
        self.delivered.get(&(from, to)).copied().unwrap_or(0)
    }

    /// Whether `who` has done what `waiter` waits for.
    pub(crate) fn is_done(&self, who: Participant, waiter: Participant, what: Awaited) -> bool {
        match what {
            Awaited::Visit(point, before) => {
                let visits = self.visits.get(&(point, who));
                visits.is_some_and(|visits| visits.load(Ordering::SeqCst) > before)
            }
            Awaited::Value(before) => {
                self.sent.get(&(who, waiter)).is_some_and(|&sent| sent > before)
            }
        }
    }
}
