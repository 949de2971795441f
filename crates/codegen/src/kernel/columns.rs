//! Columns: loads and stores of one element of each of a few neighbours in turn, as of the channels of pixels and the
//! coordinates of points.
//!
//! Alone, a vector whose elements lie `n` apart is spread over `n` vectors of memory, each of which is read or written in
//! part. All `n` columns of the same rows together are those vectors, whole, in another order of their elements.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Addr, Buf, Inst, Mem, Value};

/// The most columns that are read or written together, as whole vectors: more take more registers than there are.
pub(crate) const MAX_COLUMNS: i64 = 32;

/// What accesses to columns of the same rows have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Rows<'k> {
    buf: Buf,
    terms: &'k [(Value, i64)],
    lane_stride: i64,
    mem: Mem,
    mask: Option<Value>,
}

impl<'k> Rows<'k> {
    /// The rows of an access whose elements are a few elements apart.
    fn of(mem: Mem, addr: &'k Addr, mask: Option<Value>) -> Option<Self> {
        let &Addr { buf, ref terms, lane_stride, .. } = addr;
        let size = mem.bytes() as i64;
        let few = (2 * size..=MAX_COLUMNS * size).contains(&lane_stride) && lane_stride % size == 0;
        few.then_some(Rows { buf, terms, lane_stride, mem, mask })
    }

    /// How many columns there are.
    fn columns(&self) -> usize {
        (self.lane_stride / self.mem.bytes() as i64) as usize
    }

    /// Whether columns that begin `distance` bytes apart share no element, where each has `lanes`.
    fn are_apart(&self, distance: i64, lanes: usize) -> bool {
        let size = self.mem.bytes() as i64;
        let within = distance.rem_euclid(self.lane_stride);
        (size..=self.lane_stride - size).contains(&within)
            || distance.abs() >= self.lane_stride.saturating_mul(lanes as i64)
    }
}

/// The accesses of some instructions by their rows: where each begins in a row, and its place among the instructions.
fn by_rows<'k>(
    insts: &'k [Inst],
    rows: impl Fn(&'k Inst) -> Option<(Rows<'k>, i64)>,
) -> Vec<(Rows<'k>, Vec<(i64, usize)>)> {
    let mut known: FxHashMap<Rows<'k>, usize> = FxHashMap::default();
    let mut all: Vec<(Rows<'k>, Vec<(i64, usize)>)> = Vec::new();
    for (at, inst) in insts.iter().enumerate() {
        let Some((rows, offset)) = rows(inst) else { continue };
        let n = *known.entry(rows).or_insert(all.len());
        if n == all.len() {
            all.push((rows, Vec::new()));
        }
        all[n].1.push((offset, at));
    }
    all.iter_mut().for_each(|(_, accesses)| accesses.sort_unstable());
    all
}

fn stored(inst: &Inst) -> Option<(Rows<'_>, i64)> {
    match inst {
        Inst::Store { mem, addr, mask, .. } => Some((Rows::of(*mem, addr, *mask)?, addr.offset)),
        _ => None,
    }
}

fn loaded(inst: &Inst) -> Option<(Rows<'_>, i64)> {
    match inst {
        Inst::Load { mem, addr, mask, .. } => Some((Rows::of(*mem, addr, *mask)?, addr.offset)),
        _ => None,
    }
}

/// The buffer that an instruction reads.
fn read(inst: &Inst) -> Option<Buf> {
    match inst {
        Inst::Load { addr, .. } | Inst::Gather { addr, .. } | Inst::IndexLoad { addr, .. } => {
            Some(addr.buf)
        }
        _ => None,
    }
}

/// Moves stores of all columns of the same rows, which together are whole vectors, behind the last of them, in order.
/// (Nothing reads what they write before, and elements of buffers that may be one are read before they are written, so
/// that a later store is none too late.)
pub(super) fn join_stores(insts: &mut Vec<Inst>, lanes: usize) {
    let mut joined: Vec<Vec<usize>> = Vec::new();
    for (rows, stores) in by_rows(insts, stored) {
        let (count, size) = (rows.columns(), rows.mem.bytes() as i64);
        let mut left = &stores[..];
        while left.len() >= count {
            let (run, behind) = left.split_at(count);
            let is_run = (0i64..).zip(run).all(|(n, &(at, _))| at - run[0].0 == n * size);
            let is_alone = behind.first().is_none_or(|next| next.0 != run[count - 1].0);
            if is_run && is_alone && may_wait(insts, &rows, run, lanes) {
                joined.push(run.iter().map(|&(_, at)| at).collect());
            }
            left = if is_run { behind } else { &left[1..] };
        }
    }
    if joined.is_empty() {
        return;
    }
    let moved: FxHashSet<usize> = joined.iter().flatten().copied().collect();
    let last = joined.iter().enumerate().map(|(n, run)| (run.iter().max().copied(), n));
    let last: FxHashMap<Option<usize>, usize> = last.collect();
    let mut old: Vec<Option<Inst>> = std::mem::take(insts).into_iter().map(Some).collect();
    for at in 0..old.len() {
        if !moved.contains(&at) {
            insts.extend(old[at].take());
        } else if let Some(&n) = last.get(&Some(at)) {
            insts.extend(joined[n].iter().filter_map(|&at| old[at].take()));
        }
    }
}

/// Whether all stores of a run can be where the last of them is.
fn may_wait(insts: &[Inst], rows: &Rows<'_>, run: &[(i64, usize)], lanes: usize) -> bool {
    let places = run.iter().map(|&(_, at)| at);
    let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { return false };
    let is_of_run = |at: usize| run.iter().any(|&(_, place)| place == at);
    (first..=last).filter(|&at| !is_of_run(at)).all(|at| match &insts[at] {
        Inst::Loop { .. } | Inst::While { .. } => false,
        inst @ Inst::Store { addr, .. } if addr.buf == rows.buf => {
            let other = stored(inst).filter(|(other, _)| other == rows);
            other.is_some_and(|(_, offset)| {
                run.iter().all(|&(at, _)| rows.are_apart(offset - at, lanes))
            })
        }
        inst => read(inst) != Some(rows.buf),
    })
}

/// How many of the first instructions store all columns of the same rows, in order, and so whole vectors.
pub(crate) fn stored_columns(insts: &[Inst]) -> Option<usize> {
    let (rows, first) = stored(insts.first()?)?;
    let (count, size) = (rows.columns(), rows.mem.bytes() as i64);
    let run = insts.get(..count)?;
    let is_next =
        |(n, inst)| stored(inst).is_some_and(|(r, at)| r == rows && at - first == n * size);
    (0i64..).zip(run).all(is_next).then_some(count)
}

/// Columns of the same rows that are read.
pub(crate) struct LoadedColumns {
    /// The first of the instructions.
    pub first: usize,
    /// The address of the column that lies first in memory.
    pub addr: Addr,
    pub mem: Mem,
    pub mask: Option<Value>,
    /// What is read, and how many columns behind the first each is.
    pub columns: Vec<(Value, usize)>,
}

/// Loads of at least two columns of the same rows that can be done where the first of them is.
pub(crate) fn loaded_columns(insts: &[Inst]) -> Vec<LoadedColumns> {
    let mut all = Vec::new();
    for (rows, loads) in by_rows(insts, loaded) {
        let mut left = &loads[..];
        while let Some(&(begin, _)) = left.first() {
            let within = left.partition_point(|&(at, _)| at - begin < rows.lane_stride);
            let (run, behind) = left.split_at(within);
            left = behind;
            let places = run.iter().map(|&(_, at)| at);
            let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { continue };
            let size = rows.mem.bytes() as i64;
            let is_whole = run.iter().all(|&(at, _)| (at - begin) % size == 0);
            if run.len() < 2 || !is_whole || !may_hurry(&insts[first..last], rows.buf) {
                continue;
            }
            let column = |&(at, n): &(i64, usize)| match &insts[n] {
                Inst::Load { dst, .. } => Some((*dst, ((at - begin) / size) as usize)),
                _ => None,
            };
            let Inst::Load { addr, .. } = &insts[first] else { continue };
            let addr = Addr { offset: begin, ..addr.clone() };
            let columns = run.iter().filter_map(column).collect();
            all.push(LoadedColumns { first, addr, mem: rows.mem, mask: rows.mask, columns });
        }
    }
    all
}

/// Whether a buffer can be read before these instructions as well as behind them.
fn may_hurry(insts: &[Inst], buf: Buf) -> bool {
    insts.iter().all(|inst| match inst {
        Inst::Loop { .. } | Inst::While { .. } => false,
        Inst::Store { addr, .. } => addr.buf != buf,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Kernel, Lane};
    use super::*;
    use crate::tile::{self, FunctionArg};

    const LANES: usize = 4;
    const COLUMNS: usize = 3;
    const SIZE: i64 = 4;

    /// The column of `buf` that begins `at` elements from the first.
    fn column(buf: Buf, at: i64) -> Addr {
        let lane_stride = COLUMNS as i64 * SIZE;
        Addr { buf, offset: at * SIZE, terms: Vec::new(), lane_stride }
    }

    /// Neighbours, from an element on.
    fn neighbours(buf: Buf, at: i64) -> Addr {
        Addr { lane_stride: SIZE, ..column(buf, at) }
    }

    /// A kernel of two buffers of rows, both read and written.
    fn kernel(body: impl FnOnce(&mut Builder, Buf, Buf)) -> Kernel {
        let mut b = Builder::new(LANES);
        let bytes = 2 * LANES * COLUMNS * SIZE as usize;
        let [x, y] = [0, 1].map(|_| b.param(bytes, true, true));
        body(&mut b, x, y);
        let kernel = b.finish();
        kernel.check().unwrap();
        kernel
    }

    /// What the second buffer has behind the kernel, of 1, 2, ... in the first and zeros in the second.
    fn result(kernel: &Kernel) -> Vec<i32> {
        let count = (2 * LANES * COLUMNS) as i32;
        let mut x: Vec<u8> = (1..=count).flat_map(i32::to_le_bytes).collect();
        let mut y = vec![0; x.len()];
        let mut args = [FunctionArg::Write(&mut x), FunctionArg::Write(&mut y)];
        tile::run(kernel, &mut args, 0, kernel.range).unwrap();
        y.chunks(4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// How many stores begin with all columns of the same rows.
    fn joined(kernel: &Kernel) -> usize {
        let insts = &kernel.body.insts;
        (0..insts.len()).filter(|&at| stored_columns(&insts[at..]).is_some()).count()
    }

    fn constant(b: &mut Builder, n: i64) -> Value {
        b.int(Lane::I32, n)
    }

    #[test]
    fn stores_of_all_columns_come_together() {
        let kernel = kernel(|b, x, y| {
            for at in [2, 0, 1] {
                let value = b.load(Mem::I32, column(x, at), None);
                let value = b.add(value, value);
                b.store(value, Mem::I32, column(y, at), None);
            }
            // Those of other rows, between them.
            for at in [13, 12, 14] {
                let value = constant(b, at);
                b.store(value, Mem::I32, column(y, at), None);
            }
        });
        assert_eq!(joined(&kernel), 2);
        let doubled = (1..=12).map(|n| 2 * n);
        let constants = [12, 13, 14].into_iter().cycle().take(12);
        assert_eq!(result(&kernel), doubled.chain(constants).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_read_in_between_was_written() {
        let kernel = kernel(|b, _, y| {
            let one = constant(b, 1);
            let mut value = one;
            for at in 0..3 {
                b.store(value, Mem::I32, column(y, at), None);
                let read = b.load(Mem::I32, column(y, at), None);
                value = b.add(read, one);
            }
        });
        assert_eq!(joined(&kernel), 0);
        assert_eq!(result(&kernel)[..12], [1, 2, 3].repeat(4));
    }

    #[test]
    fn what_is_written_in_between_stays() {
        let kernel = kernel(|b, _, y| {
            let [one, two] = [1, 2].map(|n| constant(b, n));
            b.store(one, Mem::I32, column(y, 0), None);
            b.store(two, Mem::I32, neighbours(y, 0), None);
            b.store(one, Mem::I32, column(y, 1), None);
            b.store(one, Mem::I32, column(y, 2), None);
        });
        assert_eq!(joined(&kernel), 0);
        assert_eq!(result(&kernel)[..12], [2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn the_last_of_two_stores_to_a_column_counts() {
        for order in [[0, 0, 1, 2], [0, 1, 0, 2], [2, 1, 0, 0], [1, 0, 2, 0]] {
            let kernel = kernel(|b, _, y| {
                for (n, at) in (1..).zip(order) {
                    let value = constant(b, n);
                    b.store(value, Mem::I32, column(y, at), None);
                }
            });
            let last = |column| 1 + order.iter().rposition(|&at| at == column).unwrap() as i32;
            assert_eq!(result(&kernel)[..12], [0, 1, 2].map(last).repeat(4), "{order:?}");
        }
    }

    #[test]
    fn stores_under_different_masks_stay_apart() {
        let kernel = kernel(|b, _, y| {
            let (zero, two) = (b.index(0), b.index(2));
            let mask = b.mask_below(zero, two);
            for at in 0..3 {
                let value = constant(b, at + 1);
                b.store(value, Mem::I32, column(y, at), (at == 1).then_some(mask));
            }
        });
        assert_eq!(joined(&kernel), 0);
        assert_eq!(result(&kernel)[..12], [1, 2, 3, 1, 2, 3, 1, 0, 3, 1, 0, 3]);
    }

    #[test]
    fn loads_of_several_columns_are_found() {
        let kernel = kernel(|b, x, y| {
            for at in [2, 0] {
                let value = b.load(Mem::I32, column(x, at), None);
                b.store(value, Mem::I32, neighbours(y, 4 * at), None);
            }
            // Alone.
            let value = b.load(Mem::I32, column(x, 12), None);
            b.store(value, Mem::I32, neighbours(y, 12), None);
            // Written in between.
            for at in [0, 1] {
                let value = b.load(Mem::I32, column(y, at), None);
                b.store(value, Mem::I32, neighbours(y, 16), None);
            }
        });
        let found = loaded_columns(&kernel.body.insts);
        let found: Vec<_> = found.iter().map(|columns| (columns.first, &columns.columns)).collect();
        let [(0, columns)] = found[..] else { panic!("{found:?}") };
        assert_eq!(columns.iter().map(|&(_, at)| at).collect::<Vec<_>>(), [0, 2]);
    }
}
