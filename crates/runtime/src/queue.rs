//! Blocking queues between a program and its host.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A first-in, first-out queue that any number of threads may use.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    values: VecDeque<T>,
    closed: bool,
}

/// The error that a queue is closed and, for a receiver, empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is closed")
    }
}

impl std::error::Error for Closed {}

impl<T> Queue<T> {
    /// An open queue in which any number of values may wait.
    pub fn unbounded() -> Self {
        Self::with_capacity(usize::MAX)
    }

    /// An open queue in which at most `capacity` (at least 1) values wait.
    pub fn with_capacity(capacity: usize) -> Self {
        let state = Mutex::new(State { values: VecDeque::new(), closed: false });
        Queue { state, changed: Condvar::new(), capacity: capacity.max(1) }
    }

    /// A queue's values are whole whenever the lock is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a value, waiting for room. Errors: the queue is closed.
    pub fn push(&self, value: T) -> Result<(), Closed> {
        let mut state = self.lock();
        while state.values.len() >= self.capacity && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(Closed);
        }
        state.values.push_back(value);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes the oldest value, waiting for one. Errors: the queue is closed and empty.
    pub fn pop(&self) -> Result<T, Closed> {
        let mut state = self.lock();
        loop {
            if let Some(value) = state.values.pop_front() {
                self.changed.notify_all();
                return Ok(value);
            }
            if state.closed {
                return Err(Closed);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the oldest value if there is one.
    pub fn try_pop(&self) -> Option<T> {
        let value = self.lock().values.pop_front();
        if value.is_some() {
            self.changed.notify_all();
        }
        value
    }

    /// Whether a value can be taken, or none ever will: it is closed.
    pub fn is_ready(&self) -> bool {
        let state = self.lock();
        state.closed || !state.values.is_empty()
    }

    /// Waits until [`Queue::is_ready`], but not longer than this; whether it is.
    pub fn wait_ready(&self, at_most: Duration) -> bool {
        let unready = |state: &mut State<T>| !state.closed && state.values.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, unready);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Whether nothing more comes in. (What waits in it can still be taken.)
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Lets nothing more in and wakes all who wait; what waits in it can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn keeps_order_across_threads_and_bounds_what_waits() {
        let queue = Arc::new(Queue::with_capacity(2));
        let producer = thread::spawn({
            let queue = queue.clone();
            move || (0..100).try_for_each(|i| queue.push(i))
        });
        let received: Vec<i32> = (0..100).map(|_| queue.pop().unwrap()).collect();
        assert_eq!(received, (0..100).collect::<Vec<_>>());
        assert_eq!(producer.join().unwrap(), Ok(()));
    }

    #[test]
    fn closing_wakes_both_sides_and_keeps_what_waits() {
        let queue = Arc::new(Queue::with_capacity(1));
        queue.push(1).unwrap();
        let blocked = thread::spawn({
            let queue = queue.clone();
            move || queue.push(2)
        });
        queue.close();
        assert_eq!(blocked.join().unwrap(), Err(Closed));
        assert_eq!(queue.pop(), Ok(1));
        assert_eq!(queue.pop(), Err(Closed));
        assert_eq!(queue.try_pop(), None);
    }
}
