//! Writes a loop over kernels as one kernel.
//!
//! A call of a loop with loops in it ends after a bounded amount of work, wherever it is. The iteration of
//! each such loop, and each branch with loops in it, keeps a number, its place: which of its runs of steps
//! ([`numbered`]) comes next. The outermost loop's is 0 at the beginning of an iteration, that of others 0 while none
//! is under way.

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

/// Copies bytes between regions that are the same or do not overlap; 8 bytes are one element if there are lanes
/// of 64 bits (`has_long`), as then they may be a number.
pub(super) fn copy(b: &mut Builder, from: Region, to: Region, bytes: usize, has_long: bool) {
    let mem = match bytes {
        8 if has_long => Mem::I64,
        _ if bytes.is_multiple_of(4) => Mem::I32,
        _ => Mem::U8,
    };
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

/// How many numbers steps take: those with loops one each, and what stands before, between and behind them.
fn numbered(steps: &[LoopStep<'_>]) -> i64 {
    let runs = steps.chunk_by(|a, b| !a.has_loops() && !b.has_loops());
    runs.count() as i64
}

/// Writes the loop.
pub(super) struct Writer<'l> {
    pub(super) of: &'l KernelLoop<'l>,
    /// Where each buffer is.
    pub(super) regions: Vec<Region>,
    /// Where the scratch of each of its kernels is: what one leaves there no other sees.
    pub(super) scratch: Region,
    /// Whether vectors have room for 64 bits a lane.
    pub(super) has_long: bool,
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
                    |b, values| self.may_continue(b, *go, values[0]),
                    |b, values| {
                        let of = (&self.of.body[..], &self.of.next[..], &cond[..]);
                        let (left, place) = self.iteration_from(b, of, 0, values[0], values[1]);
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
                copy(b, self.regions[from], place, bytes(from), self.has_long);
                aside.push((i, place));
            }
        }
        for (i, &(from, to)) in next.iter().enumerate() {
            let other = aside.iter().find(|&&(n, _)| n == i);
            let from_region = other.map_or(self.regions[from], |&(_, place)| place);
            copy(b, from_region, self.regions[to], bytes(from), self.has_long);
        }
    }

    fn parts(&self, b: &mut Builder, parts: &[LoopStep<'_>]) {
        for part in parts {
            match part {
                LoopStep::Copy { from, to } => {
                    let bytes = self.of.buffers[*from].bytes;
                    copy(b, self.regions[*from], self.regions[*to], bytes, self.has_long);
                }
                LoopStep::Kernel(kernel, buffers) => {
                    let params = buffers.iter().map(|&n| self.regions[n]).collect();
                    Inline::new(kernel, params, self.scratch).run(b);
                }
                LoopStep::Branch(branch) => self.branch(b, branch),
                LoopStep::Repeat(_) => unreachable!("loops stand where a call may end"),
            }
        }
    }

    /// Each list is a loop of one iteration or none.
    fn branch(&self, b: &mut Builder, branch: &Branch<'_>) {
        let (zero, one) = (b.int(Lane::I32, 0), b.int(Lane::I32, 1));
        let taken: Vec<Value> =
            (0..branch.branches.len()).map(|n| self.is_taken(b, branch, n)).collect();
        for (steps, taken) in branch.branches.iter().zip(taken) {
            b.while_loop(
                &[one],
                |b, values| {
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

    /// Whether list `n` is the one to be run.
    fn is_taken(&self, b: &mut Builder, branch: &Branch<'_>, n: usize) -> Value {
        let mem = if branch.is_pred { Mem::U8 } else { Mem::I32 };
        let selector = b.load(mem, self.regions[branch.selector].at(0, 0), None);
        let (zero, last) = (b.int(Lane::I32, 0), branch.branches.len() - 1);
        if branch.is_pred {
            let op = if n == 0 { Cmp::Ne } else { Cmp::Eq };
            b.compare(op, selector, zero)
        } else if n < last {
            let number = b.int(Lane::I32, n as i64);
            b.compare(Cmp::Eq, selector, number)
        } else {
            let before = b.int(Lane::I32, last as i64 - 1);
            let below = b.compare(Cmp::Lt, selector, zero);
            let above = b.compare(Cmp::Lt, before, selector);
            b.mask_op(MaskOp::Or, below, above)
        }
    }

    /// An iteration from `place` on, which is `begin` at its beginning: its steps, what is copied at its end,
    /// and the condition after that. Gives the work that is left of the call, and the place that comes
    /// next.
    fn iteration_from(
        &self,
        b: &mut Builder,
        (steps, next, cond): (&[LoopStep<'_>], &[(usize, usize)], &[LoopStep<'_>]),
        begin: i64,
        left: Value,
        place: Value,
    ) -> (Value, Value) {
        let (left, place, end) = self.steps_from(b, steps, begin, left, place);
        let place = self.if_next(b, place, (end, begin), |b| {
            self.end(b, next);
            self.parts(b, cond);
        });
        (left, place)
    }

    /// Steps from `place` on: what stands before, between and behind those with loops, and these, are
    /// numbered from `number` on. Gives the work that is left of the call, the place that comes next, and
    /// the number behind all.
    fn steps_from(
        &self,
        b: &mut Builder,
        steps: &[LoopStep<'_>],
        mut number: i64,
        mut left: Value,
        mut place: Value,
    ) -> (Value, Value, i64) {
        let mut rest = steps;
        while let [first, others @ ..] = rest {
            if first.has_loops() {
                (left, place) = match first {
                    LoopStep::Repeat(repeat) => self.repeat(b, repeat, number, left, place),
                    LoopStep::Branch(branch) => self.branches(b, branch, number, left, place),
                    LoopStep::Kernel(..) | LoopStep::Copy { .. } => (left, place),
                };
                rest = others;
            } else {
                let straight = rest.iter().position(LoopStep::has_loops).unwrap_or(rest.len());
                let (now, others) = rest.split_at(straight);
                place = self.if_next(b, place, (number, number + 1), |b| self.parts(b, now));
                rest = others;
            }
            number += 1;
        }
        (left, place, number)
    }

    /// Does something if it is what comes next, and gives what comes then.
    fn if_next(
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

    /// Does something as long as it is what comes next and work is left: `body` gives the work that is left, and
    /// whether it has ended.
    fn while_next(
        &self,
        b: &mut Builder,
        number: i64,
        (left, place): (Value, Value),
        body: impl FnOnce(&mut Builder, Value) -> (Value, Value),
    ) -> (Value, Value) {
        let (this, after) = (b.int(Lane::I32, number), b.int(Lane::I32, number + 1));
        let ends = b.while_loop(
            &[left, place],
            |b, values| {
                let is_next = b.compare(Cmp::Eq, values[1], this);
                let has_left = self.is_positive(b, values[0]);
                b.mask_op(MaskOp::And, is_next, has_left)
            },
            |b, values| {
                let (left, has_ended) = body(b, values[0]);
                vec![left, b.select(has_ended, after, this)]
            },
        );
        (ends[0], ends[1])
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
        let cycles = b.int(Lane::I32, repeat.cycles);
        self.while_next(b, number, (left, place), |b, left| {
            let left = match repeat.at {
                None => self.short_iterations(b, repeat, left, cycles),
                Some(at) => self.long_iterations(b, repeat, (left, cycles), self.regions[at]),
            };
            let go = self.is_set(b, repeat.go);
            (left, b.mask_not(go))
        })
    }

    /// Iterations without loops, after each of which a call may end. Gives the work that is left.
    fn short_iterations(
        &self,
        b: &mut Builder,
        repeat: &Repeat<'_>,
        left: Value,
        cycles: Value,
    ) -> Value {
        let ends = b.while_loop(
            &[left],
            |b, values| {
                self.parts(b, &repeat.cond);
                self.may_continue(b, repeat.go, values[0])
            },
            |b, values| {
                self.parts(b, &repeat.body);
                self.end(b, &repeat.next);
                vec![b.sub(values[0], cycles)]
            },
        );
        ends[0]
    }

    /// Iterations with loops, within which a call may end too. Before the first, the condition is computed:
    /// number 0. Gives the work that is left.
    fn long_iterations(
        &self,
        b: &mut Builder,
        repeat: &Repeat<'_>,
        (left, cycles): (Value, Value),
        at: Region,
    ) -> Value {
        let place = b.load(Mem::I32, at.at(0, 0), None);
        let place = self.if_next(b, place, (0, 1), |b| self.parts(b, &repeat.cond));
        let ends = b.while_loop(
            &[left, place],
            |b, values| self.may_continue(b, repeat.go, values[0]),
            |b, values| {
                let of = (&repeat.body[..], &repeat.next[..], &repeat.cond[..]);
                let (left, place) = self.iteration_from(b, of, 1, values[0], values[1]);
                vec![b.sub(left, cycles), place]
            },
        );
        let (go, zero) = (self.is_set(b, repeat.go), b.int(Lane::I32, 0));
        let place = b.select(go, ends[1], zero);
        b.store(place, Mem::I32, at.at(0, 0), None);
        ends[0]
    }

    /// A branch with loops in its lists, if it is what comes next. The steps of all lists are numbered, from 1
    /// on; number 0 is the choice of the list.
    fn branches(
        &self,
        b: &mut Builder,
        branch: &Branch<'_>,
        number: i64,
        left: Value,
        place: Value,
    ) -> (Value, Value) {
        let Some(at) = branch.at.map(|at| self.regions[at]) else { return (left, place) };
        self.while_next(b, number, (left, place), |b, left| {
            let zero = b.int(Lane::I32, 0);
            let ended = b.int(Lane::I32, -1);
            let mut place = b.load(Mem::I32, at.at(0, 0), None);
            let is_new = b.compare(Cmp::Eq, place, zero);
            // (Steps of a list may write over what has chosen it.)
            let (mut begins, mut begin) = (Vec::with_capacity(branch.branches.len()), 1);
            for (n, steps) in branch.branches.iter().enumerate() {
                let taken = self.is_taken(b, branch, n);
                let taken = b.mask_op(MaskOp::And, is_new, taken);
                let first = b.int(Lane::I32, begin);
                place = b.select(taken, first, place);
                begins.push(begin);
                begin += numbered(steps) + 1;
            }
            let mut left = left;
            for (steps, begin) in branch.branches.iter().zip(begins) {
                let end;
                (left, place, end) = self.steps_from(b, steps, begin, left, place);
                let last = b.int(Lane::I32, end);
                let is_last = b.compare(Cmp::Eq, place, last);
                place = b.select(is_last, ended, place);
            }
            let has_ended = b.compare(Cmp::Eq, place, ended);
            let kept = b.select(has_ended, zero, place);
            b.store(kept, Mem::I32, at.at(0, 0), None);
            (left, has_ended)
        })
    }

    /// Whether a loop goes on: its condition holds, and work is left.
    fn may_continue(&self, b: &mut Builder, go: usize, left: Value) -> Value {
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
