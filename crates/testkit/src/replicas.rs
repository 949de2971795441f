//! Replicas of a program on the threads of one process, interpreted.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use helio::ir::{Module, Verified};
use helio::{Code, Error, Literal, Result};
use helio_eval::services::{Collectives, Host, Participant, Rendezvous};
use helio_eval::{Context, evaluate};

/// How long a replica waits for others in tests: far longer than any of them computes.
pub const MEETING_TIME: Duration = Duration::from_secs(60);

/// Where replicas on threads meet: the values that each has given, visit by visit.
#[derive(Debug)]
pub struct Meetings {
    state: Mutex<State>,
    changed: Condvar,
    /// How long one waits for others.
    time: Duration,
}

#[derive(Debug, Default)]
struct State {
    given: HashMap<(Rendezvous, Participant), Vec<Literal>>,
    /// Whether a replica has failed, so that others wait in vain.
    is_lost: bool,
}

impl Meetings {
    /// A place where replicas wait for others for so long.
    pub fn new(time: Duration) -> Self {
        Meetings { state: Mutex::default(), changed: Condvar::new(), time }
    }

    /// Ends all waiting: a replica has failed.
    fn lose(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_lost = true;
        self.changed.notify_all();
    }
}

impl Collectives for Meetings {
    fn exchange(&self, at: &Rendezvous, me: Participant, value: Literal) -> Result<Vec<Literal>> {
        let begin = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = state.given.entry((at.clone(), me)).or_default();
        mine.push(value);
        let visit = mine.len() - 1;
        self.changed.notify_all();
        loop {
            let of =
                |peer: &Participant| state.given.get(&(at.clone(), *peer))?.get(visit).cloned();
            if let Some(values) = at.group.iter().map(of).collect() {
                return Ok(values);
            }
            let left = self.time.saturating_sub(begin.elapsed());
            if state.is_lost || left.is_zero() {
                return Err(Error::new(Code::Unavailable, "another replica does not come"));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Interprets a module once for each list of arguments, as that many replicas at once, which wait
/// for each other for so long. What each of them gives, or why it fails.
pub fn run(
    module: &Verified<Module>,
    args: &[&[Literal]],
    host: Arc<dyn Host>,
    time: Duration,
) -> Vec<Result<Literal, String>> {
    let (count, meetings) = (args.len(), Arc::new(Meetings::new(time)));
    std::thread::scope(|scope| {
        let start = |(replica, args): (usize, &&[Literal])| {
            let cx = Context {
                me: Participant { replica, partition: 0 },
                replica_count: count,
                collectives: meetings.clone(),
                host: host.clone(),
                ..Context::default()
            };
            let (args, meetings) = (args.to_vec(), meetings.clone());
            scope.spawn(move || {
                let result = evaluate(module, &args, &cx);
                if result.is_err() {
                    meetings.lose();
                }
                result
            })
        };
        let threads: Vec<_> = args.iter().enumerate().map(start).collect();
        let end = |thread: std::thread::ScopedJoinHandle<'_, Result<Literal>>| match thread.join() {
            Ok(result) => result.map_err(|e| e.to_string()),
            Err(_) => Err("the interpreter panics".to_owned()),
        };
        threads.into_iter().map(end).collect()
    })
}
