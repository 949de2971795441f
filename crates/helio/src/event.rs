//! Events: what completes once, with or without an error, such as a transfer or an execution.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use helio_ir::{Code, Error, Result};

/// Something that completes once, well or with an error; cloning gives another handle to it.
///
/// ```
/// let (event, completer) = helio::Event::new();
/// event.on_ready(|outcome| assert!(outcome.is_ok()));
/// std::thread::spawn(|| completer.complete(Ok(())));
/// event.wait()?;
/// assert!(event.is_ready());
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone)]
pub struct Event {
    /// `None` for one that has completed well from the beginning.
    shared: Option<Arc<Shared>>,
}

struct Shared {
    outcome: OnceLock<Result<()>>,
    callbacks: Mutex<Vec<Callback>>,
    completed: Condvar,
}

type Callback = Box<dyn FnOnce(&Result<()>) + Send>;

/// Completes an event. Dropping it without a word completes the event with an error, so that nobody
/// waits for ever.
///
/// ```
/// let (event, completer) = helio::Event::new();
/// drop(completer);
/// assert!(event.wait().is_err());
/// ```
#[derive(Debug)]
pub struct Completer {
    event: Event,
}

impl Event {
    /// An event that has completed well.
    pub fn completed() -> Self {
        Event { shared: None }
    }

    /// An event, and what completes it.
    pub fn new() -> (Event, Completer) {
        let shared = Shared {
            outcome: OnceLock::new(),
            callbacks: Mutex::new(Vec::new()),
            completed: Condvar::new(),
        };
        let event = Event { shared: Some(Arc::new(shared)) };
        (event.clone(), Completer { event })
    }

    /// Whether it has completed.
    pub fn is_ready(&self) -> bool {
        self.outcome().is_some()
    }

    /// What came of it, if it has completed.
    pub fn outcome(&self) -> Option<&Result<()>> {
        match &self.shared {
            None => Some(&Ok(())),
            Some(shared) => shared.outcome.get(),
        }
    }

    /// Waits until it has completed. Errors: what it completed with.
    pub fn wait(&self) -> Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut callbacks = shared.lock();
        loop {
            if let Some(outcome) = shared.outcome.get() {
                return outcome.clone();
            }
            callbacks = shared.completed.wait(callbacks).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Calls `callback` with the outcome: at once if there is one, else on the thread that
    /// completes the event, where a panic ends that callback alone.
    pub fn on_ready(&self, callback: impl FnOnce(&Result<()>) + Send + 'static) {
        let Some(shared) = &self.shared else { return callback(&Ok(())) };
        let mut callbacks = shared.lock();
        match shared.outcome.get() {
            None => callbacks.push(Box::new(callback)),
            Some(outcome) => {
                drop(callbacks);
                callback(outcome);
            }
        }
    }
}

impl Shared {
    /// The list is whole whenever the lock is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, Vec<Callback>> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, outcome: Result<()>) {
        let mut callbacks = self.lock();
        if self.outcome.set(outcome).is_err() {
            return;
        }
        let waiting = std::mem::take(&mut *callbacks);
        self.completed.notify_all();
        // Callbacks may ask about this very event.
        drop(callbacks);
        if let Some(outcome) = self.outcome.get() {
            for callback in waiting {
                // Whoever completes the event is not to blame for who listens, nor are the others
                // who do.
                let _ = helio_eval::guarded(|| "a callback".to_owned(), || callback(outcome));
            }
        }
    }
}

impl Completer {
    /// Completes the event.
    pub fn complete(self, outcome: Result<()>) {
        if let Some(shared) = &self.event.shared {
            shared.complete(outcome);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(shared) = self.event.shared.take() {
            // Nothing happens if it has completed.
            if shared.outcome.get().is_none() {
                let gone = "what was to complete this has gone without a word";
                shared.complete(Err(Error::new(Code::Unavailable, gone)));
            }
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.outcome()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn those_who_wait_and_those_who_asked_hear_of_it_once() {
        let (event, completer) = Event::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let listen = || {
            let calls = calls.clone();
            event.on_ready(move |outcome| {
                assert_eq!(*outcome, Ok(()));
                calls.fetch_add(1, Ordering::SeqCst);
            });
        };
        listen();
        assert!(!event.is_ready());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| event.wait());
            completer.complete(Ok(()));
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        listen();
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!(Event::completed().wait(), Ok(()));
    }

    #[test]
    fn a_callback_that_panics_keeps_nobody_else_from_hearing() {
        let (event, completer) = Event::new();
        let (told, heard) = std::sync::mpsc::channel();
        event.on_ready(|_| panic!("on purpose"));
        event.on_ready(move |outcome| told.send(outcome.clone()).expect("a listener"));
        completer.complete(Ok(()));
        assert_eq!(heard.recv(), Ok(Ok(())));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn an_event_whose_completer_is_lost_fails() {
        let (event, completer) = Event::new();
        drop(completer);
        assert_eq!(event.wait().map_err(|e| e.code()), Err(Code::Unavailable));
    }
}
