//! How processes part: in order, when each has heard from all others that they end, too; or at once.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::head::Head;
use crate::processes::{Core, NAP, Processes, Shared, WATCH};
use crate::wire::Message;

/// How long a process that ends waits for its last messages to leave it, once it waits for no other.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long a process that gives up waits for its last messages to leave it.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why nothing comes from a process any more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Gone {
    /// It has ended in order, and waits until all others do.
    Ended,
    /// It has said that it ends at once: it waits for nobody, and nobody can end in order any more.
    GaveUp,
    /// It is lost: why.
    Lost(String),
}

impl Gone {
    /// `has ended`
    pub(crate) fn verb(&self) -> &str {
        match self {
            Gone::Ended => "has ended",
            Gone::GaveUp => "has given up",
            Gone::Lost(why) => why,
        }
    }
}

impl Processes {
    /// Ends the connection: waits until all that was sent has arrived and, where the wire demands that
    /// ([`Wire::ends_together`](crate::wire::Wire::ends_together)), until all others end or are lost.
    pub fn close(self) {
        drop(self);
    }

    /// Ends the connection at once: other processes may be gone, and are not waited for. They are told
    /// so, and do not end MPI in order either.
    pub fn abandon(mut self) {
        self.end(false);
    }

    fn end(&mut self, in_order: bool) {
        let Some(watch) = self.watch.take() else { return };
        let shared = &self.shared;
        let bye = Message { head: Head::Bye { in_order }.write(), body: None };
        let mut core = shared.lock();
        core.say_goodbye(&bye);
        let ends_together = core.wire.as_ref().is_some_and(|wire| wire.ends_together());
        drop(core);
        match (in_order, ends_together) {
            (true, true) => shared.await_farewells(),
            (true, false) => shared.await_sent(FAREWELL),
            (false, _) => shared.await_sent(LAST_WORDS),
        }
        shared.is_ending.store(true, Ordering::SeqCst);
        // What watches ends by itself; if it has panicked, there is nothing left to do.
        let _ = watch.join();
        let mut core = shared.lock();
        let all_ended = core.others().all(|(_, peer)| peer.gone == Some(Gone::Ended));
        if let Some(wire) = core.wire.take() {
            let has_sent = wire.has_sent();
            wire.close(in_order && all_ended && has_sent);
        }
    }
}

impl Drop for Processes {
    /// As [`Processes::close`]; if the thread panics, as [`Processes::abandon`].
    fn drop(&mut self) {
        self.end(!thread::panicking());
    }
}

impl Shared {
    /// Waits until all others have said that they end, or are lost. Whoever is silent is lost sooner or
    /// later, so this ends unless one lives on.
    fn await_farewells(&self) {
        let begin = Instant::now();
        while !self.lock().others().all(|(_, peer)| peer.gone.is_some()) {
            self.look();
            thread::sleep(if begin.elapsed() < Duration::from_secs(1) { NAP } else { WATCH });
        }
        self.await_sent(FAREWELL);
    }

    /// Waits for so long at most until all that was posted has been sent.
    fn await_sent(&self, at_most: Duration) {
        let begin = Instant::now();
        let has_sent = || self.lock().wire.as_ref().is_none_or(|wire| wire.has_sent());
        while !has_sent() && begin.elapsed() < at_most {
            self.look();
            thread::sleep(NAP);
        }
    }
}

impl Core {
    /// Sends the last message to all other processes that can be reached: those, too, that have said
    /// theirs, since they wait for this one's.
    fn say_goodbye(&mut self, bye: &Message) {
        self.has_said_bye = true;
        let waits = |gone: &Option<Gone>| matches!(gone, None | Some(Gone::Ended));
        let to = self.others().filter(|(_, peer)| waits(&peer.gone)).map(|(rank, _)| rank);
        let to: Vec<usize> = to.collect();
        let Some(wire) = &mut self.wire else { return };
        for rank in to {
            // Whoever cannot hear it does not wait for it either.
            let _ = wire.post(rank, bye);
        }
    }
}
