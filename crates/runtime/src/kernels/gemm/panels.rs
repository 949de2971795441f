//! Right operands packed in panels, a block of steps after the other.

use std::ops::Range;

use super::cut::even_parts;
use super::pack::Source;
use super::tile::{BLOCK, Format};
use crate::Threads;
use crate::kernels::bytes::Plain;

/// Words that are packed by one task, if they are not a panel.
const TASK_WORDS: usize = 1 << 14;

/// How many words [`pack_whole`] needs.
pub(super) fn whole_len(format: Format, cols: usize, steps: usize) -> usize {
    cols.next_multiple_of(format.width()) * format.whole_steps(steps)
}

/// Blocks of about `most` steps, of which the last may go beyond those that there are; one empty block if
/// there are none. All but the last are whole blocks of the copies that turn columns into rows.
pub(super) fn step_chunks(
    format: Format,
    steps: usize,
    most: usize,
) -> impl Iterator<Item = Range<usize>> {
    let total = format.whole_steps(steps);
    let size = even_parts(total, most).1.next_multiple_of(BLOCK);
    let parts = total.div_ceil(size).max(1);
    (0..parts).map(move |part| (part * size).min(total)..total.min((part + 1) * size))
}

/// Packs a right operand for several products, for [`Rhs::Packed`](super::engine::Rhs::Packed): panel after
/// panel, each with all steps.
pub(super) fn pack_whole<W: Plain + Default>(
    format: Format,
    source: &dyn Source<W>,
    cols: usize,
    steps: usize,
    packed: &mut [W],
    threads: Threads<'_>,
) {
    let which = (0..cols, 0..format.whole_steps(steps));
    pack_rhs(format, source, steps, which, packed, threads);
}

/// Packs columns `cols` and steps `steps` of rhs, panel after panel. What lies beyond the `total`
/// steps that rhs has is packed as zeros.
pub(super) fn pack_rhs<W: Plain + Default>(
    format: Format,
    source: &dyn Source<W>,
    total: usize,
    (cols, steps): (Range<usize>, Range<usize>),
    packed: &mut [W],
    threads: Threads<'_>,
) {
    let width = format.width();
    let panel = width * steps.len();
    if panel == 0 {
        return;
    }
    let real = steps.start..steps.end.min(total);
    // A few panels at once, so that a task is not too short.
    let some = (TASK_WORDS / panel).max(1);
    let panels_per_task = match source.packs_rows() {
        true => some.max(cols.len().div_ceil(width).div_ceil(threads.count())),
        false => some,
    };
    threads.for_chunks(packed, panels_per_task * panel, &|task, packed| {
        let first = cols.start + task * panels_per_task * width;
        let items = first..cols.end.min(first + packed.len() / panel * width);
        source.pack_panels(items, real.clone(), (width, panel), packed);
        for panel in packed.chunks_exact_mut(panel) {
            panel[width * real.len()..].fill_with(W::default);
        }
    });
}
