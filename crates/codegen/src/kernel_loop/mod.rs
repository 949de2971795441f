//! Loops over kernels: where an iteration is a few kernels with little to do, the loop with all of
//! them becomes one kernel.
//!
//! What an iteration leaves for itself lies in scratch, and so do small arrays of the state; both
//! stay in the first-level cache. The kernels are written one after the other into the loop's body,
//! so that what does not change from iteration to iteration, constants and elements of arrays that
//! nobody writes, is made or read before the loop, once for all of them.

mod inline;

use std::iter::zip;

use crate::Vouched;
use crate::kernel::{Addr, Buf, Builder, Cmp, Kernel, Lane, MaskOp, Mem};
use inline::Inline;

/// A piece of memory of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its size.
    pub bytes: usize,
    /// Where it is.
    pub role: Role,
}

/// Where a buffer of a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The caller's.
    Param,
    /// The caller's, and in scratch while the loop runs.
    Held,
    /// In scratch, and nothing outside of an iteration sees it.
    Local,
}

/// One of the steps that an iteration runs in order.
#[derive(Clone, Debug)]
pub enum LoopStep<'k> {
    /// A kernel, run over its whole range, and the buffers that are its parameters.
    Kernel(&'k Vouched<Kernel>, Vec<usize>),
    /// A buffer is copied to another of the same size.
    Copy {
        /// What is read.
        from: usize,
        /// What is written.
        to: usize,
    },
}

impl LoopStep<'_> {
    /// The buffers that it names, and whether it writes them.
    fn buffers(&self) -> Vec<(usize, bool)> {
        match self {
            LoopStep::Kernel(kernel, buffers) => {
                let writes = kernel.params.iter().map(|param| param.write);
                buffers.iter().copied().zip(writes).collect()
            }
            LoopStep::Copy { from, to } => vec![(*from, false), (*to, true)],
        }
    }

    fn names(&self, buffer: usize) -> bool {
        self.buffers().iter().any(|&(n, _)| n == buffer)
    }

    fn replace(&mut self, old: usize, new: usize) {
        let one = |n: &mut usize| {
            if *n == old {
                *n = new;
            }
        };
        match self {
            LoopStep::Kernel(_, buffers) => buffers.iter_mut().for_each(one),
            LoopStep::Copy { from, to } => [from, to].into_iter().for_each(one),
        }
    }
}

/// How long a loop runs.
#[derive(Clone, Debug)]
pub enum Until<'k> {
    /// This many iterations.
    Count(i64),
    /// As long as a byte is not zero, but at most `most` iterations.
    Test {
        /// What computes the byte before each iteration.
        cond: Vec<LoopStep<'k>>,
        /// The buffer that it is the first of.
        go: usize,
        /// The most iterations of a call: between calls, a loop without end can be stopped.
        most: i64,
    },
}

/// A loop.
#[derive(Clone, Debug)]
pub struct KernelLoop<'k> {
    /// Lanes of all of its kernels.
    pub lanes: usize,
    /// The memory that its parts name. Different buffers do not overlap.
    pub buffers: Vec<Buffer>,
    /// How long it runs.
    pub until: Until<'k>,
    /// An iteration.
    pub body: Vec<LoopStep<'k>>,
    /// What is copied at the end of an iteration, from and to; all at once.
    pub next: Vec<(usize, usize)>,
}

/// Copies of more vectors than this are loops.
const MAX_WRITTEN_OUT: i64 = 8;
/// The most bytes of scratch: with more, the loop's arguments would not fit the first-level cache
/// besides.
const MAX_SCRATCH: usize = 24 << 10;
/// To copy more than this at the end of an iteration takes longer than to exchange addresses.
const MAX_COPIED: usize = 4 << 10;
/// More values than this take longer to compile than loops run.
const MAX_VALUES: usize = 20_000;

impl KernelLoop<'_> {
    /// The kernel, and the buffers that are its parameters. `None` if its parts do not fit
    /// together, or are too much for one kernel.
    pub fn kernel(mut self) -> Option<(Vouched<Kernel>, Vec<usize>)> {
        if !self.fits_together() {
            return None;
        }
        self.compute_in_place();
        let cond = match &self.until {
            Until::Count(_) => &[][..],
            Until::Test { cond, .. } => cond,
        };
        let mut values = 0;
        for part in cond.iter().chain(&self.body) {
            let LoopStep::Kernel(kernel, _) = part else { continue };
            values += kernel.types.len();
            if kernel.lanes != self.lanes || values > MAX_VALUES {
                return None;
            }
        }
        // For each buffer, whether it is written; nothing if it has no use.
        let mut written: Vec<Option<bool>> = vec![None; self.buffers.len()];
        let parts = cond.iter().chain(&self.body).flat_map(LoopStep::buffers);
        let ends = self.next.iter().flat_map(|&(from, to)| [(from, false), (to, true)]);
        let go = match self.until {
            Until::Count(_) => None,
            Until::Test { go, .. } => Some((go, false)),
        };
        for (n, writes) in parts.chain(ends).chain(go) {
            *written[n].get_or_insert(false) |= writes;
        }

        let mut b = Builder::new(self.lanes);
        let (mut params, mut held) = (Vec::new(), Vec::new());
        let mut regions = Vec::with_capacity(self.buffers.len());
        for (n, (&Buffer { bytes, role }, &written)) in zip(&self.buffers, &written).enumerate() {
            let Some(written) = written else {
                regions.push(Region { buf: Buf::Scratch, offset: 0 });
                continue;
            };
            let given = (role != Role::Local).then(|| {
                params.push(n);
                Region { buf: b.param(bytes, true, written), offset: 0 }
            });
            // What nobody writes is read where it is: it may stay in registers.
            regions.push(match given {
                Some(given) if role == Role::Param || !written => given,
                given => {
                    let own = Region { buf: Buf::Scratch, offset: b.scratch(bytes) };
                    held.extend(given.map(|given| (given, own, bytes)));
                    own
                }
            });
        }
        held.iter().for_each(|&(given, own, bytes)| copy(&mut b, given, own, bytes));
        Writer { of: &self, regions }.run(&mut b);
        held.into_iter().for_each(|(given, own, bytes)| copy(&mut b, own, given, bytes));
        let kernel = b.finish();
        let copied: usize = self.next.iter().map(|&(from, _)| self.buffers[from].bytes).sum();
        (kernel.scratch_bytes <= MAX_SCRATCH && copied <= MAX_COPIED)
            .then_some((Vouched::new(kernel), params))
    }

    /// Whether each buffer that is named is there, and as large as those who name it take it to be.
    /// The kernel stays within its own buffers then, since those it is made of stay within theirs.
    fn fits_together(&self) -> bool {
        let bytes = |n: usize| self.buffers.get(n).map(|buffer| buffer.bytes);
        let same = |(from, to)| bytes(from).is_some() && bytes(from) == bytes(to);
        let part = |part: &LoopStep<'_>| match part {
            LoopStep::Copy { from, to } => same((*from, *to)),
            LoopStep::Kernel(kernel, buffers) => {
                kernel.params.len() == buffers.len()
                    && zip(&kernel.params, buffers)
                        .all(|(param, &n)| bytes(n).is_some_and(|bytes| bytes >= param.bytes))
            }
        };
        let until = match &self.until {
            Until::Count(_) => true,
            Until::Test { cond, go, .. } => {
                bytes(*go).is_some_and(|bytes| bytes > 0) && cond.iter().all(part)
            }
        };
        let is_small = |buffer: &Buffer| buffer.role == Role::Param || buffer.bytes <= MAX_SCRATCH;
        until
            && self.buffers.iter().all(is_small)
            && self.body.iter().all(part)
            && self.next.iter().copied().all(same)
    }

    /// Lets the next state be made where the state is, if nothing reads that any more.
    fn compute_in_place(&mut self) {
        let mut next = std::mem::take(&mut self.next);
        let all = next.clone();
        next.retain(|&(from, to)| {
            let sources = |n: usize| all.iter().filter(|&&(source, _)| source == n).count();
            let made = self.body.iter().position(|part| part.names(from));
            let read = self.body.iter().rposition(|part| part.names(to));
            let is_free = self.buffers[from].role == Role::Local
                && sources(from) == 1
                && sources(to) == 0
                && read.is_none_or(|read| made.is_some_and(|made| read < made));
            if is_free {
                self.body.iter_mut().for_each(|part| part.replace(from, to));
            }
            !is_free
        });
        self.next = next;
    }
}

/// Where bytes begin.
#[derive(Clone, Copy)]
struct Region {
    buf: Buf,
    offset: i64,
}

impl Region {
    /// The address `offset` bytes further on, of lanes that are `lane_stride` bytes apart.
    fn at(self, offset: i64, lane_stride: i64) -> Addr {
        Addr { buf: self.buf, offset: self.offset + offset, terms: Vec::new(), lane_stride }
    }
}

/// Copies bytes between regions that are the same or do not overlap.
fn copy(b: &mut Builder, from: Region, to: Region, bytes: usize) {
    let mem = if bytes.is_multiple_of(4) { Mem::I32 } else { Mem::U8 };
    let (size, lanes) = (mem.bytes() as i64, b.lanes() as i64);
    let elements = bytes as i64 / size;
    if elements == 1 {
        let one = b.load(mem, from.at(0, 0), None);
        return b.store(one, mem, to.at(0, 0), None);
    }
    let whole = elements / lanes;
    if whole > MAX_WRITTEN_OUT {
        let (lo, hi) = (b.index(0), b.index(whole));
        b.for_loop(lo, hi, 1, &[], |b, var, _| {
            let moved = |addr: Addr| Addr { terms: vec![(var, lanes * size)], ..addr };
            let some = b.load(mem, moved(from.at(0, size)), None);
            b.store(some, mem, moved(to.at(0, size)), None);
            Vec::new()
        });
    } else {
        for n in 0..whole {
            let some = b.load(mem, from.at(n * lanes * size, size), None);
            b.store(some, mem, to.at(n * lanes * size, size), None);
        }
    }
    let left = elements - whole * lanes;
    if left > 0 {
        let (zero, end) = (b.index(0), b.index(left));
        let mask = Some(b.mask_below(zero, end));
        let some = b.load(mem, from.at(whole * lanes * size, size), mask);
        b.store(some, mem, to.at(whole * lanes * size, size), mask);
    }
}

/// Writes the loop.
struct Writer<'l> {
    of: &'l KernelLoop<'l>,
    /// Where each buffer is.
    regions: Vec<Region>,
}

impl Writer<'_> {
    fn run(&self, b: &mut Builder) {
        match &self.of.until {
            Until::Count(count) => {
                let (lo, hi) = (b.index(0), b.index(*count));
                b.for_loop(lo, hi, 1, &[], |b, _, _| {
                    self.iteration(b);
                    Vec::new()
                });
            }
            Until::Test { cond, go, most } => {
                let (one, most) = (b.int(Lane::I32, 1), b.int(Lane::I32, *most));
                let none = b.int(Lane::I32, 0);
                b.while_loop(
                    &[none],
                    |b, values| {
                        self.parts(b, cond);
                        let go = b.load(Mem::U8, self.regions[*go].at(0, 0), None);
                        let zero = b.int(Lane::I32, 0);
                        let go = b.compare(Cmp::Ne, go, zero);
                        let early = b.compare(Cmp::Lt, values[0], most);
                        b.mask_op(MaskOp::And, go, early)
                    },
                    |b, values| {
                        self.iteration(b);
                        vec![b.add(values[0], one)]
                    },
                );
            }
        }
    }

    fn iteration(&self, b: &mut Builder) {
        self.parts(b, &self.of.body);
        let bytes = |n: usize| self.of.buffers[n].bytes;
        // What is also written is put aside first.
        let mut next = self.of.next.clone();
        let mut aside = Vec::new();
        for (i, &(from, _)) in self.of.next.iter().enumerate() {
            if self.of.next[..i].iter().any(|&(_, to)| to == from) {
                let offset = b.scratch(bytes(from));
                let place = Region { buf: Buf::Scratch, offset };
                copy(b, self.regions[from], place, bytes(from));
                aside.push((i, place));
            }
        }
        for (i, (from, to)) in next.drain(..).enumerate() {
            let other = aside.iter().find(|&&(n, _)| n == i);
            let from_region = other.map_or(self.regions[from], |&(_, place)| place);
            copy(b, from_region, self.regions[to], bytes(from));
        }
    }

    fn parts(&self, b: &mut Builder, parts: &[LoopStep<'_>]) {
        for part in parts {
            match part {
                LoopStep::Copy { from, to } => {
                    copy(b, self.regions[*from], self.regions[*to], self.of.buffers[*from].bytes);
                }
                LoopStep::Kernel(kernel, buffers) => {
                    let params = buffers.iter().map(|&n| self.regions[n]).collect();
                    let offset = b.scratch(kernel.scratch_bytes);
                    let scratch = Region { buf: Buf::Scratch, offset };
                    Inline::new(kernel, params, scratch).run(b);
                }
            }
        }
    }
}
