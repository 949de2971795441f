//! Bytes that one thread lends to others for as long as it waits for them.
//!
//! Participants of a collective operation read each other's arrays where they lie: nothing is copied
//! first, however large they are.

use std::fmt;
use std::slice;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Slices of bytes that belong to the thread in [`Loan::lend`], for other threads to read until that
/// call returns.
pub struct Loan {
    slices: Vec<(*const u8, usize)>,
    state: Mutex<State>,
    /// The last reader has finished.
    unread: Condvar,
}

#[derive(Default)]
struct State {
    readers: usize,
    /// Whether the lender has asked for its bytes back: nobody begins to read any more.
    is_over: bool,
}

// SAFETY: the pointers are those of `&[u8]`, which may be read from any thread; that they are read
// only while the slices are borrowed, `Loan::lend` and `Loan::read` see to.
unsafe impl Send for Loan {}
// SAFETY: a shared loan gives bytes to readers only, and all that changes is behind the lock.
unsafe impl Sync for Loan {}

/// Ends a loan when it is dropped, a panic of the lender included.
struct Lender<'a>(&'a Loan);

impl Loan {
    /// Lends slices while `during` runs, which may hand the loan to other threads. Returns once
    /// nobody reads them any more.
    pub fn lend<R>(slices: &[&[u8]], during: impl FnOnce(&Arc<Loan>) -> R) -> R {
        let slices = slices.iter().map(|slice| (slice.as_ptr(), slice.len())).collect();
        let (state, unread) = (Mutex::default(), Condvar::new());
        let loan = Arc::new(Loan { slices, state, unread });
        let _lender = Lender(&loan);
        during(&loan)
    }

    /// Calls `f` with the slices; `None` if the lender has asked for them back. The lender waits
    /// until `f` returns, so `f` should not wait for anything itself.
    pub fn read<R>(&self, f: impl FnOnce(&[&[u8]]) -> R) -> Option<R> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        state.readers += 1;
        drop(state);
        let _reader = Reader(self);
        // SAFETY: `lend` borrows the slices until `Lender` has been dropped, which waits until there
        // is no reader; this thread has become one before that, and is one until the end of this
        // function, longer than `slices` is used (`f` cannot keep it, whatever its lifetime).
        let slice =
            |&(start, len): &(*const u8, usize)| unsafe { slice::from_raw_parts(start, len) };
        let slices: Vec<&[u8]> = self.slices.iter().map(slice).collect();
        Some(f(&slices))
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lender<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over = true;
        while state.readers > 0 {
            state = self.0.unread.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A thread that reads; it stops when this is dropped, a panic included.
struct Reader<'a>(&'a Loan);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.readers -= 1;
        if state.readers == 0 && state.is_over {
            self.0.unread.notify_all();
        }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("slices", &self.slices.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn others_read_until_it_is_over() {
        let bytes = [vec![1u8, 2], vec![3]];
        let slices = [&bytes[0][..], &bytes[1][..]];
        let loan = Loan::lend(&slices, |loan| {
            let sum = |slices: &[&[u8]]| slices.iter().flat_map(|s| s.iter()).sum::<u8>();
            let sums: Vec<Option<u8>> = thread::scope(|scope| {
                let readers = [(); 4].map(|()| scope.spawn(|| loan.read(sum)));
                readers.map(|reader| reader.join().expect("no panic")).into()
            });
            assert_eq!(sums, [Some(6); 4]);
            loan.clone()
        });
        assert_eq!(loan.read(|_| ()), None);
    }

    #[test]
    fn the_lender_waits_for_who_reads() {
        let (begun, begin) = channel();
        let (read, done) = channel();
        thread::scope(|scope| {
            let bytes = [7u8; 100];
            Loan::lend(&[&bytes], |loan| {
                let loan = loan.clone();
                scope.spawn(move || {
                    loan.read(|slices| {
                        begun.send(()).expect("a lender");
                        thread::sleep(Duration::from_millis(20));
                        assert_eq!(slices, [&[7u8; 100]]);
                        read.send(()).expect("a test");
                    })
                });
                begin.recv().expect("a reader");
            });
            // The reader was done before the lender went on.
            assert_eq!(done.try_recv(), Ok(()));
        });
    }

    #[test]
    fn a_panic_ends_it() {
        let loan = Mutex::new(None);
        let outcome = std::panic::catch_unwind(|| {
            Loan::lend(&[&[1u8]], |lent| {
                *loan.lock().expect("whole") = Some(lent.clone());
                panic!("on purpose");
            })
        });
        assert!(outcome.is_err());
        let loan = loan.into_inner().unwrap_or_else(PoisonError::into_inner).expect("a loan");
        assert_eq!(loan.read(|_| ()), None);
    }
}
