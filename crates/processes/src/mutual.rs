//! Participants of different processes that wait for each other.
//!
//! A participant that has waited for one of another process for a while asks whether that one waits, too.
//! The question goes from process to process along the chain of waits, from each participant to the first of
//! those for whom it waits: a process passes it on only if its participant waits itself and, looked at after
//! that, has not done what it is waited for. A wait ends only when whoever is waited for has moved. So if
//! the question comes back to who has asked, and that is in the same wait still, nobody in the chain has
//! moved since it was looked at, and nobody ever will.
//!
//! Of those who wait for ever, each waits for one who does, and sooner or later for no others; so the chain
//! of one in the circle leads round. A question that ends at somebody who waits for no other is answered:
//! should nobody move for too long, the one who has asked says where its wait leads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use helio::services::Sleeper;
use helio::{Code, Error, Participant, Result};

use crate::head::{Head, PointId, RunId};
use crate::processes::{Core, Shared};
use crate::run::Begun;
use crate::wire::Message;

/// How long a participant waits before it asks for the first time.
const FIRST: Duration = Duration::from_millis(50);

/// How long it waits at most before it asks again: each time it is twice as long as before.
const LAST: Duration = Duration::from_secs(5);

/// The most waits of a chain that is followed.
const LONGEST: usize = 32;

/// A wait for participants of other processes.
pub(crate) struct RemoteWait {
    /// By which it is told apart from other waits of this process.
    number: u64,
    what: Remote,
    asks_at: Instant,
    asks_again_after: Duration,
    asks_at_least_every: Duration,
    known: Known,
}

/// What participants of other processes are to do.
#[derive(Clone, Copy)]
pub(crate) enum Remote {
    /// To come to a rendezvous to which those who meet have come this number of times before.
    Meeting(PointId, u64),
    /// This one is to send a value.
    Value(Participant),
}

/// What is known of where a wait leads.
#[derive(Clone, Default)]
pub(crate) struct Known(Arc<Facts>);

#[derive(Default)]
struct Facts {
    /// Who waits for each other.
    circle: OnceLock<String>,
    /// The last answer.
    answer: Mutex<Option<Answer>>,
}

impl Known {
    /// Whether it is known that the wait leads back to itself.
    pub(crate) fn is_circle(&self) -> bool {
        self.0.circle.get().is_some()
    }

    /// Errors: `FailedPrecondition` if it is known that the wait leads back to itself.
    pub(crate) fn check(&self) -> Result<()> {
        let circle = self.0.circle.get();
        circle.map_or(Ok(()), |who| Err(Error::new(Code::FailedPrecondition, who.as_str())))
    }

    /// The waits that lead on from a participant for whom this wait is, as far as they are known.
    pub(crate) fn behind(&self, first: Participant) -> Vec<String> {
        let answer = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answer.as_ref().filter(|answer| answer.origin.about == first);
        answer.map_or_else(Vec::new, |answer| answer.chain.clone())
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

/// Who has asked, in which of the waits of its process, and for whom it waits there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) who: Participant,
    pub(crate) wait: u64,
    pub(crate) about: Participant,
}

/// Whether somebody who is waited for waits, too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) run: RunId,
    pub(crate) origin: Origin,
    /// The waits from there on, as text: `replica 0 in y for replica 1`.
    pub(crate) chain: Vec<String>,
    /// Who waits last in the chain.
    pub(crate) waiter: Participant,
    /// For whom.
    pub(crate) from: Participant,
    pub(crate) awaited: Awaited,
}

/// That a question has come to somebody who waits for no other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) run: RunId,
    /// Whose question it was.
    pub(crate) origin: Origin,
    /// The waits after that of the origin, as text, and who waits for no other.
    pub(crate) chain: Vec<String>,
}

/// A remote wait at some moment.
struct Seen {
    number: u64,
    awaited: Awaited,
}

/// A wait that is known to [`Shared::ask`] while this lives.
pub(crate) struct Noted<'a> {
    shared: &'a Shared,
    run: RunId,
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
    /// Notes that a participant of this process waits for others, for at most so long without anybody
    /// moving. `known` gets what is found out of where the wait leads.
    pub(crate) fn note_wait(
        &self,
        run: RunId,
        who: Participant,
        what: Remote,
        max_wait: Duration,
        known: &Known,
    ) -> Noted<'_> {
        let mut core = self.lock();
        core.next_wait += 1;
        let wait = RemoteWait {
            number: core.next_wait,
            what,
            asks_at: Instant::now() + FIRST,
            asks_again_after: FIRST * 2,
            // What is known when patience ends is of the time when nobody moved any more.
            asks_at_least_every: LAST.min(max_wait / 4).max(FIRST),
            known: known.clone(),
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
                wait.asks_again_after = wait.asks_at_least_every.min(wait.asks_again_after * 2);
                asking.push((begun.clone(), number, who, wait.number));
            }
        }
        for (begun, run, who, wait) in asking {
            let before = self.remote_waits(&begun, run);
            let waits = begun.collectives.sleepers(who);
            let [own @ Sleeper { from: Some(about), .. }, ..] = &waits[..] else { continue };
            let origin = Origin { who, wait, about: *about };
            // An earlier wait than this one asks nobody.
            if before.get(&who).is_some_and(|seen| seen.number == wait) {
                self.pass_on(
                    &begun,
                    (run, origin),
                    Vec::new(),
                    (who, std::slice::from_ref(own)),
                    &before,
                );
            }
        }
    }

    /// Passes a question on, answers it, or finds that it has come back. Called without locks held.
    pub(crate) fn answer(&self, begun: &Begun, question: Question) {
        let Question { run, origin, mut chain, waiter, from, awaited } = question;
        let before = self.remote_waits(begun, run);
        let waits = begun.collectives.sleepers(from);
        if begun.deeds.lock().is_done(from, waiter, awaited) {
            return;
        }
        let Some(at) = waits.iter().position(|sleeper| sleeper.who == origin.who) else {
            return self.pass_on(begun, (run, origin), chain, (from, &waits), &before);
        };
        chain.extend(waits[..at].iter().filter_map(|wait| begun.link(wait)));
        let all = chain.join("; ");
        let circle = format!("{} participants wait for each other: {all}", chain.len());
        let waited = before.get(&origin.who).is_some_and(|seen| seen.number == origin.wait);
        let core = self.lock();
        let wait = core.wait(run, origin.who, origin.wait).filter(|_| waited);
        // Whatever was found first serves as well.
        let _ = wait.map(|wait| wait.known.0.circle.set(circle));
    }

    /// Sends a question on that has led to `to`, of this process, from where `waits` go on: to the process
    /// of the one for whom the last of these waits. Or answers it, if that one is here and waits for no
    /// other. `before` are the remote waits at some moment before those.
    fn pass_on(
        &self,
        begun: &Begun,
        (run, origin): (RunId, Origin),
        mut chain: Vec<String>,
        (to, waits): (Participant, &[Sleeper]),
        before: &HashMap<Participant, Seen>,
    ) {
        let Some(end) = waits.last().map_or(Some(to), |last| last.from) else { return };
        chain.extend(waits.iter().filter_map(|wait| begun.link(wait)));
        let is_known = waits.iter().any(|sleeper| sleeper.who == end);
        let process = |who| begun.process_of(who);
        let mut core = self.lock();
        match waits.last() {
            _ if chain.len() > LONGEST || is_known => {}
            Some(last) if !begun.is_here(end) => {
                let seen = before.get(&last.who);
                let same = seen.filter(|seen| core.wait(run, last.who, seen.number).is_some());
                let Some(&Seen { awaited, .. }) = same else { return };
                let question =
                    Question { run, origin, chain, waiter: last.who, from: end, awaited };
                core.post(process(end), &Message { head: Head::Ask(question).write(), body: None });
            }
            _ => {
                chain.push(format!("{} waits for no other", begun.assignment.name(end)));
                let answer = Answer { run, origin, chain: chain.split_off(1) };
                match process(origin.who) {
                    here if here == self.rank => core.answered(answer),
                    there => {
                        let head = Head::Answer(answer).write();
                        core.post(there, &Message { head, body: None });
                    }
                }
            }
        }
    }

    /// The waits of this process's participants for those of others.
    fn remote_waits(&self, begun: &Begun, run: RunId) -> HashMap<Participant, Seen> {
        let core = self.lock();
        let deeds = begun.deeds.lock();
        let seen = |(&who, wait): (&Participant, &RemoteWait)| {
            let awaited = match wait.what {
                Remote::Meeting(point, visit) => Awaited::Visit(point, visit),
                Remote::Value(from) => Awaited::Value(deeds.delivered(from, who)),
            };
            (who, Seen { number: wait.number, awaited })
        };
        core.runs.get(&run).map(|run| run.waits.iter().map(seen).collect()).unwrap_or_default()
    }
}

impl Core {
    /// The wait of a participant, if it is the one of this number still.
    fn wait(&self, run: RunId, who: Participant, number: u64) -> Option<&RemoteWait> {
        self.runs.get(&run)?.waits.get(&who).filter(|wait| wait.number == number)
    }

    /// Notes the answer to a question of this process.
    pub(crate) fn answered(&self, answer: Answer) {
        if let Some(wait) = self.wait(answer.run, answer.origin.who, answer.origin.wait) {
            *wait.known.0.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        }
    }
}

impl Begun {
    /// A wait as text, if it is known for whom it is.
    fn link(&self, sleeper: &Sleeper) -> Option<String> {
        let [who, from] = [sleeper.who, sleeper.from?].map(|who| self.assignment.name(who));
        Some(format!("{who} in {} for {from}", sleeper.instruction))
    }
}
