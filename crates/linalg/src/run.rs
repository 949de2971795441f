//! What a routine works with.

use std::sync::{Mutex, PoisonError};

/// What a routine works with: threads, and word whether to go on.
pub trait Run: Sync {
    /// Calls `body` once for each number below `tasks`, in any order, on any threads.
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync));
    /// Whether nobody wants the results any more.
    fn is_stopped(&self) -> bool;
}

/// The caller's thread, which nobody stops.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Run for Alone {
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(body);
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

/// How many elements a task should touch at least, so that handing it out is worth while.
const TASK_ELEMENTS: usize = 1 << 16;

/// Calls `body` with each column of a matrix and its number. `work` is how many elements are touched
/// for a column.
pub(crate) fn columns<T: Send>(
    run: &dyn Run,
    rows: usize,
    matrix: &mut [T],
    work: usize,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    if rows == 0 || matrix.is_empty() {
        return;
    }
    let group = (TASK_ELEMENTS / work.max(1)).max(1);
    if matrix.len() <= rows.saturating_mul(group) {
        let all = matrix.chunks_mut(rows).enumerate();
        return all.for_each(|(number, column)| body(number, column));
    }
    let groups: Vec<_> = matrix.chunks_mut(rows * group).map(Mutex::new).collect();
    run.for_each(groups.len(), &|task| {
        let mut columns = groups[task].lock().unwrap_or_else(PoisonError::into_inner);
        for (i, column) in columns.chunks_mut(rows).enumerate() {
            body(task * group + i, column);
        }
    });
}
