//! Short runs, sorted by a network of exchanges between neighbours: an odd-even transposition sort,
//! which is stable, since neighbours change places only if the right one is less.

use super::super::super::bytes::{Plain, cast_mut, with_size};
use super::super::super::disjoint::Disjoint;
use super::super::super::isa::vectorised;
use super::RUN;
use super::pairs::{PAIRS, PairComparator};
use crate::Threads;

/// Sorts the runs of all lanes in place.
pub(super) fn sort(
    asked: &PairComparator<'_>,
    lanes: usize,
    count: usize,
    columns: &mut [&mut [u8]],
    threads: Threads<'_>,
) {
    let per_lane = count.div_ceil(RUN);
    let columns = Disjoint::all(columns);
    // The first element of a run; that of none is the end.
    let start = |run: usize| run / per_lane * count + (run % per_lane * RUN).min(count);
    threads.for_ranges(lanes * per_lane, PAIRS, &|runs| {
        let first = start(runs.start);
        let mut starts = [0; PAIRS];
        let mut lens = [0; PAIRS];
        for (i, run) in runs.clone().enumerate() {
            starts[i] = start(run) - first;
            lens[i] = (start(run + 1) - start(run)) as u8;
        }
        let len = start(runs.end) - first;
        let parts = columns.iter().zip(asked.sizes).map(|(column, size)| {
            // SAFETY: runs lie one behind the other, and each is in one task.
            unsafe { column.part(first * size, len * size) }
        });
        let mut parts: Vec<&mut [u8]> = parts.collect();
        network(asked, &starts[..runs.len()], &lens[..runs.len()], &mut parts);
    });
}

/// Sorts runs, which begin at `starts` and have `lens` elements.
fn network(asked: &PairComparator<'_>, starts: &[usize], lens: &[u8], columns: &mut [&mut [u8]]) {
    let longest: usize = lens.iter().copied().max().unwrap_or(0).into();
    asked.with_rows(RUN, |mut rows| {
        for ((rows, column), &size) in rows.iter_mut().zip(&mut *columns).zip(asked.sizes) {
            with_size!(size, T => {
                transpose::<T, false>(starts, lens, cast_mut(rows), cast_mut(column));
            });
        }
        let mut answers = [0; PAIRS];
        for pass in 0..longest {
            for row in (pass % 2..longest.saturating_sub(1)).step_by(2) {
                let at = |column: usize| {
                    let bytes = PAIRS * asked.sizes[column];
                    [row, row + 1].map(|row| &rows[column][row * bytes..][..bytes])
                };
                (asked.precedes)(starts.len(), &at, &mut answers);
                for (answer, &len) in answers.iter_mut().zip(lens) {
                    *answer &= u8::from(row + 1 < len.into());
                }
                for (rows, &size) in rows.iter_mut().zip(asked.sizes) {
                    with_size!(size, T => {
                        exchange::<T>(&answers[..starts.len()], &mut cast_mut(rows)[row * PAIRS..]);
                    });
                }
            }
        }
        for ((rows, column), &size) in rows.iter_mut().zip(columns).zip(asked.sizes) {
            with_size!(size, T => {
                transpose::<T, true>(starts, lens, cast_mut(rows), cast_mut(column));
            });
        }
    });
}

/// Copies runs to rows, whose elements are one of each run, or back.
fn transpose<T: Plain, const BACK: bool>(
    starts: &[usize],
    lens: &[u8],
    rows: &mut [T],
    column: &mut [T],
) {
    for (i, (&start, &len)) in starts.iter().zip(lens).enumerate() {
        let run = &mut column[start..][..len.into()];
        for (element, row) in run.iter_mut().zip(rows.chunks_exact_mut(PAIRS)) {
            if BACK {
                *element = row[i];
            } else {
                row[i] = *element;
            }
        }
    }
}

/// Exchanges elements of the first row with those of the second where that is said.
fn exchange<T: Plain>(answers: &[u8], rows: &mut [T]) {
    vectorised(
        #[inline(always)]
        || {
            let (upper, lower) = rows.split_at_mut(PAIRS);
            for ((a, b), &answer) in upper.iter_mut().zip(lower).zip(answers) {
                let (x, y) = (*a, *b);
                (*a, *b) = if answer != 0 { (y, x) } else { (x, y) };
            }
        },
    );
}
