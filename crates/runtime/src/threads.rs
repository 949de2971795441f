//! Threads that a call may use.

/// The threads that a call may use: a pool and a limit. Work is cut into tasks by size alone, never
/// by the number of threads, so that results do not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    count: usize,
}

impl Threads {
    /// Only the caller's thread.
    pub fn single() -> Self {
        Threads { count: 1 }
    }

    /// How many threads may work at once; at least one.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` once for each number below `tasks`, in any order, on any of the threads, and
    /// returns when all calls have returned.
    pub fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(body);
    }

    /// Calls `body` with the number and contents of each chunk of `data`; the last may be shorter.
    pub fn for_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        body: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        for (i, chunk) in data.chunks_mut(chunk.max(1)).enumerate() {
            body(i, chunk);
        }
    }
}
