//! Writes a loop over kernels as one kernel.

use super::inline::Inline;
use super::{Branch, KernelLoop, LoopStep, Repeat, Until};
use crate::kernel::{Addr, Buf, Builder, Cmp, Lane, MaskOp, Mem, Value};

/// Copies of more vectors than this are loops.
const MAX_WRITTEN_OUT: i64 = 8;

/// Where bytes begin.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) buf: Buf,
    pub(super) offset: i64,
}

impl Region {
    /// The address `offset` bytes further on, of lanes that are `lane_stride` bytes apart.
    fn at(self, offset: i64, lane_stride: i64) -> Addr {
        Addr { buf: self.buf, offset: self.offset + offset, terms: Vec::new(), lane_stride }
    }
}

/// Copies bytes between regions that are the same or do not overlap.
pub(super) fn copy(b: &mut Builder, from: Region, to: Region, bytes: usize) {
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
pub(super) struct Writer<'l> {
    pub(super) of: &'l KernelLoop<'l>,
    /// Where each buffer is.
    pub(super) regions: Vec<Region>,
}

impl Writer<'_> {
    pub(super) fn run(&self, b: &mut Builder) {
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
                        let go = self.is_set(b, *go);
                        let early = b.compare(Cmp::Lt, values[0], most);
                        b.mask_op(MaskOp::And, go, early)
                    },
                    |b, values| {
                        self.iteration(b);
                        vec![b.add(values[0], one)]
                    },
                );
            }
            Until::Suspended { cond, go, at, cycles, most } => {
                let at = self.regions[*at];
                let (left, cycles) = (b.int(Lane::I32, *most), b.int(Lane::I32, *cycles));
                let place = b.load(Mem::I32, at.at(0, 0), None);
                let ends = b.while_loop(
                    &[left, place],
                    |b, values| self.goes_on(b, *go, values[0]),
                    |b, values| {
                        let (left, place) = self.go_on(b, cond, values[0], values[1]);
                        vec![b.sub(left, cycles), place]
                    },
                );
                b.store(ends[1], Mem::I32, at.at(0, 0), None);
            }
        }
    }

    fn iteration(&self, b: &mut Builder) {
        self.parts(b, &self.of.body);
        self.end(b, &self.of.next);
    }

    /// Copies what is copied at the end of an iteration.
    fn end(&self, b: &mut Builder, next: &[(usize, usize)]) {
        let bytes = |n: usize| self.of.buffers[n].bytes;
        // What is also written is put aside first.
        let mut aside = Vec::new();
        for (i, &(from, _)) in next.iter().enumerate() {
            if next[..i].iter().any(|&(_, to)| to == from) {
                let offset = b.scratch(bytes(from));
                let place = Region { buf: Buf::Scratch, offset };
                copy(b, self.regions[from], place, bytes(from));
                aside.push((i, place));
            }
        }
        for (i, &(from, to)) in next.iter().enumerate() {
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
                LoopStep::Branch(branch) => self.branch(b, branch),
                LoopStep::Repeat(_) => unreachable!("loops stand in iterations that are suspended"),
            }
        }
    }

    /// Each list is a loop of one iteration or none.
    fn branch(&self, b: &mut Builder, branch: &Branch<'_>) {
        let mem = if branch.is_pred { Mem::U8 } else { Mem::I32 };
        let selector = b.load(mem, self.regions[branch.selector].at(0, 0), None);
        let (zero, one) = (b.int(Lane::I32, 0), b.int(Lane::I32, 1));
        let last = branch.branches.len() - 1;
        for (n, steps) in branch.branches.iter().enumerate() {
            b.while_loop(
                &[one],
                |b, values| {
                    let number = b.int(Lane::I32, n as i64);
                    let taken = if branch.is_pred {
                        let op = if n == 0 { Cmp::Ne } else { Cmp::Eq };
                        b.compare(op, selector, zero)
                    } else if n < last {
                        b.compare(Cmp::Eq, selector, number)
                    } else {
                        let before = b.int(Lane::I32, last as i64 - 1);
                        let below = b.compare(Cmp::Lt, selector, zero);
                        let above = b.compare(Cmp::Lt, before, selector);
                        b.mask_op(MaskOp::Or, below, above)
                    };
                    let first = b.compare(Cmp::Ne, values[0], zero);
                    b.mask_op(MaskOp::And, taken, first)
                },
                |b, _| {
                    self.parts(b, steps);
                    vec![zero]
                },
            );
        }
    }

    /// An iteration from `place` on, which is 0 at its beginning: what stands before, between and
    /// behind its loops, and these, are numbered. Gives the work that is left of the call, and the
    /// place that comes next.
    fn go_on(
        &self,
        b: &mut Builder,
        cond: &[LoopStep<'_>],
        mut left: Value,
        mut place: Value,
    ) -> (Value, Value) {
        let (mut number, mut rest) = (0, &self.of.body[..]);
        while let [first, others @ ..] = rest {
            if let LoopStep::Repeat(repeat) = first {
                (left, place) = self.repeat(b, repeat, number, left, place);
                rest = others;
            } else {
                let is_loop = |step: &LoopStep<'_>| matches!(step, LoopStep::Repeat(_));
                let straight = rest.iter().position(is_loop).unwrap_or(rest.len());
                let (now, others) = rest.split_at(straight);
                place = self.once(b, place, (number, number + 1), |b| self.parts(b, now));
                rest = others;
            }
            number += 1;
        }
        let place = self.once(b, place, (number, 0), |b| {
            self.end(b, &self.of.next);
            self.parts(b, cond);
        });
        (left, place)
    }

    /// Does something if it is what comes next, and gives what comes then.
    fn once(
        &self,
        b: &mut Builder,
        place: Value,
        (this, then): (i64, i64),
        body: impl FnOnce(&mut Builder),
    ) -> Value {
        let (this, then) = (b.int(Lane::I32, this), b.int(Lane::I32, then));
        let ends = b.while_loop(
            &[place],
            |b, values| b.compare(Cmp::Eq, values[0], this),
            |b, _| {
                body(b);
                vec![then]
            },
        );
        ends[0]
    }

    /// A loop in an iteration, if it is what comes next, until it ends or no work is left.
    fn repeat(
        &self,
        b: &mut Builder,
        repeat: &Repeat<'_>,
        number: i64,
        left: Value,
        place: Value,
    ) -> (Value, Value) {
        let (this, after) = (b.int(Lane::I32, number), b.int(Lane::I32, number + 1));
        let cycles = b.int(Lane::I32, repeat.cycles);
        let ends = b.while_loop(
            &[left, place],
            |b, values| {
                let is_next = b.compare(Cmp::Eq, values[1], this);
                let has_left = self.is_positive(b, values[0]);
                b.mask_op(MaskOp::And, is_next, has_left)
            },
            |b, values| {
                let ends = b.while_loop(
                    &values[..1],
                    |b, values| {
                        self.parts(b, &repeat.cond);
                        self.goes_on(b, repeat.go, values[0])
                    },
                    |b, values| {
                        self.parts(b, &repeat.body);
                        self.end(b, &repeat.next);
                        vec![b.sub(values[0], cycles)]
                    },
                );
                let go = self.is_set(b, repeat.go);
                vec![ends[0], b.select(go, this, after)]
            },
        );
        (ends[0], ends[1])
    }

    /// Whether a loop goes on: its condition holds, and work is left.
    fn goes_on(&self, b: &mut Builder, go: usize, left: Value) -> Value {
        let go = self.is_set(b, go);
        let has_left = self.is_positive(b, left);
        b.mask_op(MaskOp::And, go, has_left)
    }

    fn is_positive(&self, b: &mut Builder, left: Value) -> Value {
        let zero = b.int(Lane::I32, 0);
        b.compare(Cmp::Lt, zero, left)
    }

    /// Whether a byte is not zero.
    fn is_set(&self, b: &mut Builder, go: usize) -> Value {
        let go = b.load(Mem::U8, self.regions[go].at(0, 0), None);
        let zero = b.int(Lane::I32, 0);
        b.compare(Cmp::Ne, go, zero)
    }
}
