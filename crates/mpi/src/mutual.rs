//! Participants of different processes that wait for each other.
//!
//! A participant that has waited for one of another process for a while asks whether that one waits, too.
//! The question goes from process to process along the chain of waits: a process passes it on only if its
//! participant waits itself and, looked at after that, has not done what it is waited for. A wait ends only
//! when whoever is waited for has moved. So if the question comes back to who has asked, and that is in the
//! same wait still, nobody in the chain has moved since it was looked at, and nobody ever will.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use helio::services::Sleeper;
use helio::{Code, DeviceAssignment, Error, Participant, Result};

use crate::head::{Head, PointId};
use crate::processes::{Shared, process_of};
use crate::run::Begun;
use crate::wire::Message;

/// How long a participant waits before it asks for the first time.
const FIRST: Duration = Duration::from_millis(50);

/// How long it waits at most before it asks again: each time it is twice as long as before.
const LAST: Duration = Duration::from_secs(5);

/// The most waits of a chain that is followed.
const LONGEST: usize = 32;

/// A wait for a participant of another process.
pub(crate) struct RemoteWait {
    /// By which it is told apart from other waits of this process.
    number: u64,
    from: Participant,
    /// The rendezvous, and how often those who meet have come before; nothing if it waits for a value.
    meeting: Option<(PointId, u64)>,
    asks_at: Instant,
    asks_again_after: Duration,
    verdict: Verdict,
}

/// Who waits for each other, once that is known.
#[derive(Clone, Default)]
pub(crate) struct Verdict(Arc<OnceLock<String>>);

impl Verdict {
    pub(crate) fn is_there(&self) -> bool {
        self.0.get().is_some()
    }

    /// Errors: `FailedPrecondition` if it is there.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.get().map_or(Ok(()), |who| Err(Error::new(Code::FailedPrecondition, who.as_str())))
    }
}

/// What a participant waits for another to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Awaited {
    /// To come to a rendezvous to which it has come this number of times before.
    Visit(PointId, u64),
    /// To send it another value, after this number of them.
    Value(u64),
}

/// Whether somebody who is waited for waits, too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) run: u64,
    /// Who has asked first, and the number of its wait.
    pub(crate) origin: (Participant, u64),
    /// The waits from there on, as text: `replica 0 in y for replica 1`.
    pub(crate) chain: Vec<String>,
    /// Who waits last in the chain.
    pub(crate) waiter: Participant,
    /// For whom.
    pub(crate) from: Participant,
    pub(crate) awaited: Awaited,
}

/// A remote wait at some moment.
struct Seen {
    number: u64,
    from: Participant,
    awaited: Awaited,
}

/// A wait that is known to [`Shared::ask`] while this lives.
pub(crate) struct Noted<'a> {
    shared: &'a Shared,
    run: u64,
    who: Participant,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.shared.lock().runs.get_mut(&self.run) {
            run.waits.remove(&self.who);
        }
    }
}

impl Shared {
    /// Notes that a participant of this process waits for one of another: at a rendezvous to which it has
    /// come this number of times before, or for a value. Should they wait for each other, the verdict
    /// says so.
    pub(crate) fn note_wait(
        &self,
        run: u64,
        (who, from): (Participant, Participant),
        meeting: Option<(PointId, u64)>,
        verdict: &Verdict,
    ) -> Noted<'_> {
        let mut core = self.lock();
        core.next_wait += 1;
        let wait = RemoteWait {
            number: core.next_wait,
            from,
            meeting,
            asks_at: Instant::now() + FIRST,
            asks_again_after: FIRST * 2,
            verdict: verdict.clone(),
        };
        if let Some(run) = core.runs.get_mut(&run) {
            run.waits.insert(who, wait);
        }
        Noted { shared: self, run, who }
    }

    /// Asks for those who have waited for a while. Called without locks held.
    pub(crate) fn ask(&self) {
        let (now, mut asking) = (Instant::now(), Vec::new());
        for (&number, run) in &mut self.lock().runs {
            let Some(begun) = &run.begun else { continue };
            for (&who, wait) in run.waits.iter_mut().filter(|(_, wait)| wait.asks_at <= now) {
                wait.asks_at = now + wait.asks_again_after;
                wait.asks_again_after = LAST.min(wait.asks_again_after * 2);
                asking.push((begun.clone(), number, (who, wait.number)));
            }
        }
        for (begun, run, origin) in asking {
            self.follow(&begun, run, origin, Vec::new(), origin.0, || true);
        }
    }

    /// Passes a question on, or finds that it has come back. Called without locks held.
    pub(crate) fn answer(&self, begun: &Begun, question: Question) {
        let Question { run, origin, chain, waiter, from, awaited } = question;
        let still_waits = || !begun.deeds.lock().is_done(from, waiter, awaited);
        self.follow(begun, run, origin, chain, from, still_waits);
    }

    /// Follows a chain that has led to `to`, of this process. `still_waits` is asked once it is known for
    /// whom that waits itself.
    fn follow(
        &self,
        begun: &Begun,
        run: u64,
        origin: (Participant, u64),
        chain: Vec<String>,
        to: Participant,
        still_waits: impl FnOnce() -> bool,
    ) {
        let before = self.remote_waits(begun, run);
        let waiters = begun.collectives.sleepers(to);
        if waiters.is_empty() || !still_waits() {
            return;
        }
        let routes = Routes::new(&waiters, to, &begun.assignment);
        let mut core = self.lock();
        let Some(waits) = core.runs.get(&run).map(|run| &run.waits) else { return };
        let is_same = |who: Participant, seen: &Seen| {
            waits.get(&who).is_some_and(|wait| wait.number == seen.number)
        };
        let same = |who: Participant| before.get(&who).filter(|seen| is_same(who, seen));
        let is_back = |waiter: &Sleeper| {
            waiter.who == origin.0 && same(origin.0).is_some_and(|seen| seen.number == origin.1)
        };
        if !chain.is_empty() && waiters.iter().any(is_back) {
            let all = [chain, routes.to(origin.0)].concat();
            let text =
                format!("{} participants wait for each other: {}", all.len(), all.join("; "));
            // Whatever was found first serves as well.
            let _ = waits.get(&origin.0).map(|wait| wait.verdict.0.set(text));
            return;
        }
        let exits = waiters.iter().filter_map(|waiter| {
            let seen = same(waiter.who)?;
            let last = routes.link(waiter, seen.from);
            let chain = [&chain[..], &routes.to(waiter.who), &[last]].concat();
            let (waiter, from, awaited) = (waiter.who, seen.from, seen.awaited);
            Some(Question { run, origin, chain, waiter, from, awaited })
        });
        let questions: Vec<_> = exits.filter(|asked| asked.chain.len() <= LONGEST).collect();
        for question in questions {
            let process = process_of(begun.number(question.from), self.size, begun.count());
            core.post(process, &Message { head: Head::Ask(question).write(), body: None });
        }
    }

    /// The waits of this process's participants for those of others.
    fn remote_waits(&self, begun: &Begun, run: u64) -> HashMap<Participant, Seen> {
        let core = self.lock();
        let deeds = begun.deeds.lock();
        let seen = |(&who, wait): (&Participant, &RemoteWait)| {
            let awaited = match wait.meeting {
                Some((point, visit)) => Awaited::Visit(point, visit),
                None => Awaited::Value(deeds.delivered(wait.from, who)),
            };
            (who, Seen { number: wait.number, from: wait.from, awaited })
        };
        core.runs.get(&run).map(|run| run.waits.iter().map(seen).collect()).unwrap_or_default()
    }
}

/// How those who wait in this process are reached from the first of them.
struct Routes<'a> {
    first: Participant,
    assignment: &'a DeviceAssignment,
    /// Who waits for a participant, and is nearer to the first.
    before: HashMap<Participant, &'a Sleeper>,
}

impl<'a> Routes<'a> {
    fn new(waiters: &'a [Sleeper], first: Participant, assignment: &'a DeviceAssignment) -> Self {
        let (mut before, mut next) = (HashMap::new(), vec![first]);
        while let Some(who) = next.pop() {
            let Some(waiter) = waiters.iter().find(|waiter| waiter.who == who) else { continue };
            for &missing in &waiter.missing {
                if missing != first && !before.contains_key(&missing) {
                    before.insert(missing, waiter);
                    next.push(missing);
                }
            }
        }
        Routes { first, assignment, before }
    }

    /// The waits from the first participant to another.
    fn to(&self, mut who: Participant) -> Vec<String> {
        let mut links = Vec::new();
        while let (true, Some(waiter)) = (who != self.first, self.before.get(&who)) {
            links.push(self.link(waiter, who));
            who = waiter.who;
        }
        links.reverse();
        links
    }

    fn link(&self, waiter: &Sleeper, from: Participant) -> String {
        let [who, from] = [waiter.who, from].map(|who| self.assignment.name(who));
        format!("{who} in {} for {from}", waiter.instruction)
    }
}
