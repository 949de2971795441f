//! Waits for participants of other processes, while messages are looked for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helio::services::{Meter, Ready, Rendezvous, Wait};
use helio::{Code, Error, Participant, Result};

use crate::distributed::{Distributed, Plan, Seat};
use crate::farewell::Gone;
use crate::mutual::{Known, Remote};
use crate::processes::Shared;
use crate::run::Arrivals;

impl Distributed {
    /// Waits for what all give of whom this participant reads, and for those who read from it. Errors: as
    /// for [`Collectives::exchange`].
    pub(crate) fn wait_for_all(
        &self,
        seat: &Seat,
        plan: &Arc<Plan>,
        at: &Rendezvous<'_>,
        visit: u64,
        meter: &Meter,
    ) -> Result<()> {
        let has_come = |&position: &usize| seat.arrivals[position].load(Ordering::Acquire) > visit;
        if self.shared.spin(&|| plan.awaited.iter().all(has_come)) {
            return Ok(());
        }
        let (me, instruction) = (at.group[seat.position], at.instruction);
        let (arrivals, plan) = (seat.arrivals.clone(), plan.clone());
        let late = Late { group: at.group.to_vec(), arrivals, plan, visit };
        let what = Remote::Meeting(seat.point, visit);
        let known = Known::default();
        let _noted = self.shared.note_wait(self.run, me, what, meter.max_wait(), &known);
        let late = Arc::new(late);
        let ready = self.looked(late.clone(), &known);
        let wait = Wait { me, instruction, from: None, is_open: false, ready: &ready };
        let waited = self.here.collectives.wait(&wait, meter);
        waited.map_err(|error| self.explain(error, me, instruction, &late.missing()))?;
        known.check()
    }

    /// What participants of other processes are to do, while messages are looked for.
    fn looked(&self, deed: Arc<dyn Deed>, known: &Known) -> Arc<dyn Ready> {
        let (shared, known) = (self.shared.clone(), known.clone());
        Arc::new(LookedElsewhere { shared, deed, known })
    }

    /// Why a wait for participants has ended: that one of them is lost, if it is.
    fn explain(
        &self,
        error: Error,
        me: Participant,
        instruction: &str,
        missing: &[Participant],
    ) -> Error {
        if error.code() != Code::Aborted {
            return error;
        }
        let core = self.shared.lock();
        let lost = missing.iter().find_map(|&from| {
            let process = self.here.process_of(from);
            match &core.peers.get(process)?.gone {
                Some(Gone::Lost(why)) => Some((from, process, why.clone())),
                _ => None,
            }
        });
        drop(core);
        let Some((from, process, why)) = lost else { return error };
        let [me, from] = [me, from].map(|who| self.here.assignment.name(who));
        let detail = format!("{me} waits in {instruction} for {from}: process {process} {why}");
        Error::new(Code::Unavailable, detail)
    }

    /// Waits for something that is no exchange. Errors: as for `Collectives::wait`.
    pub(crate) fn wait_for(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        if self.shared.spin(&|| wait.ready.is_ready()) {
            return Ok(());
        }
        let theirs = wait.ready.clone();
        let from = wait.from.filter(|&from| !wait.is_open && !self.here.is_here(from));
        let Some(from) = from else {
            let ready = Looked::ready(&self.shared, move || theirs.is_ready());
            return self.here.collectives.wait(&Wait { ready: &ready, ..*wait }, meter);
        };
        let (known, what) = (Known::default(), Remote::Value(from));
        let _noted = self.shared.note_wait(self.run, wait.me, what, meter.max_wait(), &known);
        let value = Value { from, ready: theirs };
        let ready = self.looked(Arc::new(value), &known);
        let waited = self.here.collectives.wait(&Wait { ready: &ready, ..*wait }, meter);
        waited.map_err(|error| self.explain(error, wait.me, wait.instruction, &[from]))?;
        known.check()
    }
}

/// Something that participants of other processes are to do.
trait Deed: Send + Sync {
    /// Whether they have.
    fn is_done(&self) -> bool;
    /// Who has yet to do something for it.
    fn missing(&self) -> Vec<Participant>;
}

/// That those come to a rendezvous from whom a participant reads, and who read from it.
struct Late {
    group: Vec<Participant>,
    arrivals: Arc<Arrivals>,
    plan: Arc<Plan>,
    visit: u64,
}

impl Late {
    fn positions(&self) -> impl Iterator<Item = usize> {
        let is_late =
            |&position: &usize| self.arrivals[position].load(Ordering::Acquire) <= self.visit;
        self.plan.awaited.iter().copied().filter(is_late)
    }
}

impl Deed for Late {
    fn is_done(&self) -> bool {
        self.positions().next().is_none()
    }

    fn missing(&self) -> Vec<Participant> {
        self.positions().map(|position| self.group[position]).collect()
    }
}

/// That a participant sends a value.
struct Value {
    from: Participant,
    ready: Arc<dyn Ready>,
}

impl Deed for Value {
    fn is_done(&self) -> bool {
        self.ready.is_ready()
    }

    fn missing(&self) -> Vec<Participant> {
        vec![self.from]
    }
}

/// Something that is waited for while messages are looked for.
pub(crate) struct Looked<F> {
    shared: Arc<Shared>,
    is_there: F,
}

impl<F: Fn() -> bool + Send + Sync + 'static> Looked<F> {
    pub(crate) fn ready(shared: &Arc<Shared>, is_there: F) -> Arc<dyn Ready> {
        Arc::new(Looked { shared: shared.clone(), is_there })
    }
}

impl<F: Fn() -> bool + Send + Sync> Ready for Looked<F> {
    fn is_ready(&self) -> bool {
        (self.is_there)()
    }

    fn wait(&self, at_most: Duration) -> bool {
        self.shared.look_until(&self.is_there, at_most)
    }
}

/// The same of what participants of other processes are to do; or that they wait for each other.
struct LookedElsewhere {
    shared: Arc<Shared>,
    deed: Arc<dyn Deed>,
    known: Known,
}

impl Ready for LookedElsewhere {
    fn is_ready(&self) -> bool {
        self.deed.is_done() || self.known.is_circle()
    }

    fn wait(&self, at_most: Duration) -> bool {
        self.shared.look_until(&|| self.is_ready(), at_most)
    }

    fn missing(&self) -> Option<Vec<Participant>> {
        Some(self.deed.missing())
    }

    fn elsewhere(&self) -> Option<Vec<String>> {
        let first = self.deed.missing().first().copied();
        Some(first.map_or_else(Vec::new, |first| self.known.behind(first)))
    }
}
