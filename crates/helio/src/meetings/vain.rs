//! Who waits in vain.
//!
//! A participant that runs may still come wherever it is waited for; one that waits may once all that it
//! waits for may; one whose run has ended never does. Whoever cannot come by these rules waits, or will
//! wait, for ever: it is told so, and for whom it waits.

use helio_eval::services::{Participant, Sleeper};
use helio_ir::{Code, Error};

use super::{Awaited, Meetings, State, Waiting};

/// Participants that a message lists at most.
const LISTED: usize = 8;

impl Waiting {
    /// Whether what it waits for is there: it will wake up.
    fn is_over(&self) -> bool {
        match &self.awaited {
            Awaited::Meeting(point, visits) => {
                (0..point.group.len()).all(|member| point.board.visits(member) >= *visits)
            }
            Awaited::Value { ready, .. } => ready.is_ready(),
        }
    }

    /// Whether somebody outside of the run may end the wait.
    fn is_open(&self) -> bool {
        matches!(self.awaited, Awaited::Value { is_open: true, .. })
    }

    /// Whom it waits for; nobody, if it does not know them.
    fn missing(&self) -> Vec<Participant> {
        match &self.awaited {
            Awaited::Meeting(point, visits) => {
                let members = point.group.iter().enumerate();
                let late = members.filter(|&(i, _)| point.board.visits(i) < *visits);
                late.map(|(_, &who)| who).collect()
            }
            Awaited::Value { from, ready, .. } => {
                ready.missing().unwrap_or_else(|| from.iter().copied().collect())
            }
        }
    }

    /// What is known of the waits of those it waits for, if other processes run them.
    fn elsewhere(&self) -> Option<Vec<String>> {
        match &self.awaited {
            Awaited::Meeting(..) => None,
            Awaited::Value { ready, .. } => ready.elsewhere(),
        }
    }
}

impl Meetings {
    /// Why those who wait in vain do, if any do. To look takes a while where participants are many:
    /// unless somebody has ended or all wait, only who waits longest looks.
    pub(super) fn vain(&self, state: &State, me: Participant) -> Option<Error> {
        let participants = self.counts.0 * self.counts.1;
        let is_first = state.waiting.first().is_some_and(|first| first.who == me);
        let all_wait = state.waiting.len() + state.ended.len() >= participants;
        if state.failure.is_some() || !(is_first || all_wait || !state.ended.is_empty()) {
            return None;
        }
        let stuck = stuck(state, participants);
        let has_ended = |who: &Participant| state.ended.contains(who);
        let detail = if let Some(waiting) = stuck.iter().find(|w| w.missing().iter().any(has_ended))
        {
            let names = self.names(waiting.missing().into_iter().filter(has_ended));
            let (who, instruction) = (self.name(waiting.who), &waiting.instruction);
            format!("{who} waits in {instruction} for {names}, whose run has ended without it")
        } else if let [first, ..] = &stuck[..] {
            let each = stuck.iter().take(LISTED).map(|waiting| self.awaits(waiting, " in"));
            let each = each.collect::<Vec<_>>().join("; ");
            match stuck.len() {
                1 => self.in_vain(first),
                count if count + state.ended.len() == participants => {
                    format!("all participants wait for each other: {each}")
                }
                count => {
                    format!("{count} of {participants} participants wait for each other: {each}")
                }
            }
        } else {
            return None;
        };
        Some(Error::new(Code::FailedPrecondition, detail))
    }

    /// Those who wait, from one of them on: see [`Collectives::sleepers`]. Nobody of them moves while the
    /// state is locked, so all of it is true at one moment.
    ///
    /// [`Collectives::sleepers`]: helio_eval::services::Collectives::sleepers
    pub(super) fn sleepers_from(&self, who: Participant) -> Vec<Sleeper> {
        let state = self.lock();
        let sleeper = |waiting: &Waiting| Sleeper {
            who: waiting.who,
            instruction: waiting.instruction.clone(),
            from: waiting.missing().first().copied(),
        };
        waits_from(&state, who).into_iter().map(sleeper).collect()
    }

    /// That one participant alone waits in vain.
    fn in_vain(&self, waiting: &Waiting) -> String {
        let awaits = self.awaits(waiting, " waits in");
        match waiting.missing()[..] {
            [who] if who == waiting.who => format!("{awaits}, which waits itself"),
            _ => format!("{awaits}, which never comes"),
        }
    }

    /// `replica 0 waits in r for replica 1`, with another verb maybe.
    fn awaits(&self, waiting: &Waiting, verb: &str) -> String {
        let missing = waiting.missing();
        let names = match missing.is_empty() {
            true => "a value".to_owned(),
            false => self.names(missing.into_iter()),
        };
        format!("{}{verb} {} for {names}", self.name(waiting.who), waiting.instruction)
    }

    /// What a participant that sleeps waits for, and the waits of the first for whom it does, of the first
    /// for whom that one does, and so on, to one that waits for no other: that one is to blame.
    pub(super) fn what_awaits(&self, state: &State, me: Participant) -> String {
        let Some(own) = state.waiting.iter().find(|waiting| waiting.who == me) else {
            return self.name(me);
        };
        let mut text = self.awaits(own, " waits in");
        let first = own.missing().first().copied();
        let others = first.map_or_else(Vec::new, |first| waits_from(state, first));
        let others = others.iter().take_while(|waiting| waiting.who != me).take(LISTED);
        let others: Vec<&Waiting> = others.copied().collect();
        others.iter().for_each(|waiting| text += &format!("; {}", self.awaits(waiting, " in")));
        let last = others.last().copied().unwrap_or(own);
        let end = match (last.elsewhere(), last.missing().first()) {
            (Some(known), _) => known,
            (None, Some(&who)) => match state.waiting.iter().find(|waiting| waiting.who == who) {
                None => vec![format!("{} waits for no other", self.name(who))],
                Some(waiting) if waiting.is_open() => vec![self.awaits(waiting, " in")],
                Some(_) => Vec::new(),
            },
            (None, None) => Vec::new(),
        };
        end.iter().for_each(|wait| text += &format!("; {wait}"));
        text
    }

    fn names(&self, mut all: impl Iterator<Item = Participant>) -> String {
        let listed = all.by_ref().take(LISTED).map(|who| self.name(who));
        let mut text = listed.collect::<Vec<_>>().join(", ");
        let rest = all.count();
        if rest > 0 {
            text += &format!(" and {rest} more");
        }
        text
    }
}

/// `who`, the first for whom it waits, and so on, as far as they sleep until other participants come: each
/// once.
fn waits_from(state: &State, who: Participant) -> Vec<&Waiting> {
    let (mut found, mut next) = (Vec::<&Waiting>::new(), Some(who));
    while let Some(who) = next.filter(|&who| found.iter().all(|known| known.who != who)) {
        let is_stuck = |w: &&Waiting| w.who == who && !w.is_over() && !w.is_open();
        let waiting = state.waiting.iter().find(is_stuck);
        next = waiting.and_then(|waiting| waiting.missing().first().copied());
        found.extend(waiting);
    }
    found
}

/// Those who wait for somebody that cannot come.
fn stuck(state: &State, participants: usize) -> Vec<&Waiting> {
    let is_stuck = |waiting: &&Waiting| !waiting.is_over() && !waiting.is_open();
    let mut stuck: Vec<(&Waiting, Vec<Participant>)> =
        state.waiting.iter().filter(is_stuck).map(|waiting| (waiting, waiting.missing())).collect();
    loop {
        let before = stuck.len();
        let may_come = |who: &Participant| {
            !state.ended.contains(who) && !stuck.iter().any(|(waiting, _)| waiting.who == *who)
        };
        // Whom it does not know may be anybody.
        let anybody = state.ended.len() + before < participants;
        let freed: Vec<bool> = stuck
            .iter()
            .map(|(_, missing)| match &missing[..] {
                [] => anybody,
                missing => missing.iter().all(may_come),
            })
            .collect();
        let mut freed = freed.into_iter();
        stuck.retain(|_| !freed.next().unwrap_or(false));
        if stuck.len() == before {
            return stuck.into_iter().map(|(waiting, _)| waiting).collect();
        }
    }
}
