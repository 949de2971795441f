//! Loops over kernels: where an iteration is a few kernels with little to do, the loop with all of
//! them becomes one kernel.
//!
//! What an iteration leaves for itself lies in scratch, and so do small arrays of the state; both
//! stay in the first-level cache. The kernels are written one after the other into the loop's body,
//! so that what does not change from iteration to iteration, constants and elements of arrays that
//! nobody writes, is made or read before the loop, once for all of them.

mod inline;
mod slots;
mod write;

use std::iter::zip;

use rustc_hash::FxHashMap;

use crate::Vouched;
use crate::kernel::{Block, Buf, Builder, Inst, Kernel, Ty};
use inline::Inline;
use slots::{Analysis, Place, Slots, Width};
use write::{Region, Writer, copy};

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
    /// In scratch while a call runs, copied from and to the caller's memory at its ends: the next call goes
    /// on in the middle of an iteration.
    Kept,
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
    /// One of several lists of steps.
    Branch(Branch<'k>),
    /// A loop in the iteration of a loop that is [`Until::Suspended`], or in another one or a branch there
    /// that has a buffer for what comes next.
    Repeat(Repeat<'k>),
}

/// Which of several lists of steps is run.
#[derive(Clone, Debug)]
pub struct Branch<'k> {
    /// The buffer whose first byte, or 32-bit integer, says which.
    pub selector: usize,
    /// Whether it is a byte: the first list is run unless it is zero, else the second. If not, it is the
    /// number of the list, and any that is none means the last.
    pub is_pred: bool,
    /// The lists.
    pub branches: Vec<Vec<LoopStep<'k>>>,
    /// If there are loops in them: the buffer of the 32-bit number of what comes next, outside of it 0.
    pub at: Option<usize>,
}

/// A loop whose number of iterations is not known.
#[derive(Clone, Debug)]
pub struct Repeat<'k> {
    /// What computes the byte before each iteration.
    pub cond: Vec<LoopStep<'k>>,
    /// The buffer that it is the first of.
    pub go: usize,
    /// An iteration.
    pub body: Vec<LoopStep<'k>>,
    /// What is copied at the end of an iteration, from and to; all at once.
    pub next: Vec<(usize, usize)>,
    /// The work of an iteration besides its loops, in processor cycles, estimated.
    pub cycles: i64,
    /// If there are loops in an iteration: the buffer of the 32-bit number of what comes next, outside of it 0.
    pub at: Option<usize>,
}

impl LoopStep<'_> {
    /// Whether it is a loop, or has some.
    fn has_loops(&self) -> bool {
        match self {
            LoopStep::Kernel(..) | LoopStep::Copy { .. } => false,
            LoopStep::Branch(branch) => branch.at.is_some(),
            LoopStep::Repeat(_) => true,
        }
    }

    /// Calls `visit` with each buffer that it names, and whether it writes it.
    fn each_buffer(&self, visit: &mut impl FnMut(usize, bool)) {
        match self {
            LoopStep::Kernel(kernel, buffers) => {
                zip(buffers, &kernel.params).for_each(|(&n, param)| visit(n, param.write));
            }
            LoopStep::Copy { from, to } => {
                [(*from, false), (*to, true)].into_iter().for_each(|(n, writes)| visit(n, writes))
            }
            LoopStep::Branch(branch) => {
                visit(branch.selector, false);
                branch.at.into_iter().for_each(|at| visit(at, true));
                branch.branches.iter().flatten().for_each(|step| step.each_buffer(visit));
            }
            LoopStep::Repeat(repeat) => {
                let steps = repeat.cond.iter().chain(&repeat.body);
                steps.for_each(|step| step.each_buffer(visit));
                let copies = repeat.next.iter().flat_map(|&(from, to)| [(from, false), (to, true)]);
                copies.chain([(repeat.go, false)]).for_each(|(n, writes)| visit(n, writes));
                repeat.at.into_iter().for_each(|at| visit(at, true));
            }
        }
    }

    /// The buffers that it names, and whether it writes them.
    fn buffers(&self) -> Vec<(usize, bool)> {
        let mut buffers = Vec::new();
        self.each_buffer(&mut |n, writes| buffers.push((n, writes)));
        buffers
    }

    /// Calls `visit` with each kernel.
    fn each_kernel<'s>(&'s self, visit: &mut impl FnMut(&'s Vouched<Kernel>)) {
        match self {
            LoopStep::Kernel(kernel, _) => visit(kernel),
            LoopStep::Copy { .. } => {}
            LoopStep::Branch(branch) => {
                branch.branches.iter().flatten().for_each(|step| step.each_kernel(visit));
            }
            LoopStep::Repeat(repeat) => {
                let steps = repeat.cond.iter().chain(&repeat.body);
                steps.for_each(|step| step.each_kernel(visit));
            }
        }
    }

    /// Gives buffers other numbers.
    fn rename(&mut self, names: &[usize]) {
        let one = |n: &mut usize| *n = names[*n];
        match self {
            LoopStep::Kernel(_, buffers) => buffers.iter_mut().for_each(one),
            LoopStep::Copy { from, to } => [from, to].into_iter().for_each(one),
            LoopStep::Branch(branch) => {
                one(&mut branch.selector);
                branch.at.iter_mut().for_each(one);
                branch.branches.iter_mut().flatten().for_each(|step| step.rename(names));
            }
            LoopStep::Repeat(repeat) => {
                one(&mut repeat.go);
                repeat.at.iter_mut().for_each(one);
                repeat.next.iter_mut().for_each(|(from, to)| [from, to].into_iter().for_each(one));
                let steps = repeat.cond.iter_mut().chain(&mut repeat.body);
                steps.for_each(|step| step.rename(names));
            }
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
    /// Likewise, with loops in its iterations: a call ends after so much work wherever it is, and the
    /// next one goes on there. So all buffers keep what they hold from call to call. The condition is
    /// computed at the end of an iteration, and before the first by the caller.
    Suspended {
        /// What computes the byte.
        cond: Vec<LoopStep<'k>>,
        /// The buffer that it is the first of. Nothing else writes it, as it is looked at in the middle of
        /// iterations, too.
        go: usize,
        /// The buffer of the 32-bit number of the step, of those that a call may end before, that comes
        /// next: at first 0.
        at: usize,
        /// The work of an iteration besides its loops, in processor cycles, estimated,
        cycles: i64,
        /// and that of a call.
        most: i64,
    },
}

impl<'k> Until<'k> {
    fn cond(&self) -> &[LoopStep<'k>] {
        match self {
            Until::Count(_) => &[],
            Until::Test { cond, .. } | Until::Suspended { cond, .. } => cond,
        }
    }

    /// The buffers that it names besides, and whether it writes them.
    fn buffers(&self) -> Vec<(usize, bool)> {
        match *self {
            Until::Count(_) => Vec::new(),
            Until::Test { go, .. } => vec![(go, false)],
            Until::Suspended { go, at, .. } => vec![(go, false), (at, true)],
        }
    }
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

/// Buffers in scratch begin at multiples of this.
const SCRATCH_ALIGN: usize = 64;
/// Buffers in scratch of as many bytes or fewer have their places to themselves: they may become values.
const NUMBER_BYTES: usize = 8;
/// The most bytes of scratch: with more, it would fill too much of the second-level cache.
const MAX_SCRATCH: usize = 128 << 10;
/// To copy more than this at the end of an iteration takes longer than to exchange addresses.
const MAX_COPIED: usize = 4 << 10;
/// More values than this take longer to compile than loops run.
const MAX_VALUES: usize = 1 << 16;

/// How a buffer is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// As a single number of this width.
    Number(Width),
    /// An element at a time.
    Element,
    /// Otherwise.
    Array,
}

/// Calls `note` with each parameter that is accessed, and how.
fn each_access(block: &Block, note: &mut impl FnMut(u32, Use)) {
    for inst in &block.insts {
        let (addr, mem) = match inst {
            Inst::Load { addr, mem, .. }
            | Inst::Store { addr, mem, .. }
            | Inst::IndexLoad { addr, mem, .. }
            | Inst::Gather { addr, mem, .. } => (addr, mem),
            Inst::Loop { body, .. } => {
                each_access(body, note);
                continue;
            }
            Inst::While { cond, body, .. } => {
                each_access(cond, note);
                each_access(body, note);
                continue;
            }
            _ => continue,
        };
        if let Buf::Param(param) = addr.buf {
            let is_one = addr.offset == 0 && addr.terms.is_empty();
            let this = match (slots::is_element(inst), Width::of(*mem)) {
                (false, _) => Use::Array,
                (true, Some(width)) if is_one => Use::Number(width),
                (true, _) => Use::Element,
            };
            note(param, this);
        }
    }
}

/// Whether an iteration of these steps, or what is copied at its end, writes a buffer.
fn writes(steps: &[LoopStep<'_>], next: &[(usize, usize)], buffer: usize) -> bool {
    let mut buffers = steps.iter().flat_map(LoopStep::buffers);
    buffers.any(|write| write == (buffer, true)) || next.iter().any(|&(_, to)| to == buffer)
}

impl KernelLoop<'_> {
    /// The kernel, and the buffers that are its parameters. `None` if its parts do not fit
    /// together, or are too much for one kernel.
    pub fn kernel(mut self) -> Option<(Vouched<Kernel>, Vec<usize>)> {
        if !self.fits_together() {
            return None;
        }
        self.compute_in_place();
        let cond = self.until.cond();
        let (mut values, mut same_lanes, mut most_scratch) = (0, true, 0);
        // Whether a vector has room for 64 bits a lane: there are as many lanes in all kernels.
        let mut has_long = false;
        let mut measure = |kernel: &Vouched<Kernel>| {
            let is_long = |ty: &Ty| matches!(ty, Ty::Vector(lane) if lane.bytes() == 8);
            has_long |= kernel.types.iter().any(is_long);
            values += kernel.types.len();
            same_lanes &= kernel.lanes == self.lanes;
            most_scratch = most_scratch.max(kernel.scratch_bytes);
        };
        cond.iter().chain(&self.body).for_each(|step| step.each_kernel(&mut measure));
        if !same_lanes || values > MAX_VALUES {
            return None;
        }
        // For each buffer, whether it is written; nothing if it has no use.
        let mut written: Vec<Option<bool>> = vec![None; self.buffers.len()];
        let parts = cond.iter().chain(&self.body).flat_map(LoopStep::buffers);
        let ends = self.next.iter().flat_map(|&(from, to)| [(from, false), (to, true)]);
        for (n, writes) in parts.chain(ends).chain(self.until.buffers()) {
            *written[n].get_or_insert(false) |= writes;
        }

        let uses = self.uses(has_long);
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
            // What nobody writes is read where it is: it may stay in registers. So is what is accessed an
            // element at a time, which is no faster in scratch.
            let is_near = !written || uses[n] == Some(Use::Element);
            regions.push(match given {
                Some(given) if role == Role::Param || is_near => given,
                Some(given) => {
                    let own = Region { buf: Buf::Scratch, offset: b.scratch(bytes) };
                    held.push((given, own, bytes));
                    own
                }
                None => Region { buf: Buf::Scratch, offset: 0 },
            });
        }
        let (places, bytes) = self.shared_places();
        let offset = b.scratch(bytes);
        for (n, place) in places {
            regions[n].offset = offset + place as i64;
        }
        let scratch = Region { buf: Buf::Scratch, offset: b.scratch(most_scratch) };
        held.iter().for_each(|&(given, own, bytes)| copy(&mut b, given, own, bytes, has_long));
        Writer { of: &self, regions: regions.clone(), scratch, has_long }.run(&mut b);
        held.into_iter().for_each(|(given, own, bytes)| copy(&mut b, own, given, bytes, has_long));
        let kernel = self.with_values(b.finish(), &uses, &regions);
        let copied: usize = self.next.iter().map(|&(from, _)| self.buffers[from].bytes).sum();
        (kernel.scratch_bytes <= MAX_SCRATCH && copied <= MAX_COPIED)
            .then_some((Vouched::new(kernel), params))
    }

    /// Whether each buffer that is named is there, and as large as those who name it take it to be.
    /// The kernel stays within its own buffers then, since those it is made of stay within theirs.
    fn fits_together(&self) -> bool {
        let until = match self.until {
            Until::Count(_) => true,
            Until::Test { go, .. } => self.has_room(go, 1),
            Until::Suspended { go, at, .. } => {
                self.has_room(go, 1)
                    && !writes(&self.body, &self.next, go)
                    && self.has_room(at, 4)
                    && self.buffers.iter().all(|buffer| buffer.role != Role::Local)
                    && self.body.iter().any(LoopStep::has_loops)
            }
        };
        let is_suspended = matches!(self.until, Until::Suspended { .. });
        let is_small = |buffer: &Buffer| buffer.role == Role::Param || buffer.bytes <= MAX_SCRATCH;
        until
            && self.until.cond().iter().all(|step| self.fits(step, false))
            && self.buffers.iter().all(is_small)
            && self.body.iter().all(|step| self.fits(step, is_suspended))
            && self.next.iter().all(|&pair| self.are_alike(pair))
    }

    /// Whether each buffer that a step names is there and large enough, and loops stand where they may.
    fn fits(&self, step: &LoopStep<'_>, may_loop: bool) -> bool {
        match step {
            LoopStep::Copy { from, to } => self.are_alike((*from, *to)),
            LoopStep::Kernel(kernel, buffers) => {
                kernel.params.len() == buffers.len()
                    && zip(&kernel.params, buffers).all(|(param, &n)| self.has_room(n, param.bytes))
            }
            LoopStep::Branch(Branch { selector, is_pred, branches, at }) => {
                let may_loop = may_loop && at.is_some();
                self.has_room(*selector, if *is_pred { 1 } else { 4 })
                    && at.is_none_or(|at| may_loop && self.has_room(at, 4))
                    && (branches.len() == 2 || !is_pred && !branches.is_empty())
                    && branches.iter().flatten().all(|step| self.fits(step, may_loop))
            }
            LoopStep::Repeat(Repeat { cond, go, body, next, at, .. }) => {
                may_loop
                    && self.has_room(*go, 1)
                    && at.is_none_or(|at| self.has_room(at, 4) && !writes(body, next, *go))
                    && cond.iter().all(|step| self.fits(step, false))
                    && body.iter().all(|step| self.fits(step, at.is_some()))
                    && next.iter().all(|&pair| self.are_alike(pair))
            }
        }
    }

    /// Whether a buffer is there and has this many bytes.
    fn has_room(&self, n: usize, bytes: usize) -> bool {
        self.buffers.get(n).is_some_and(|buffer| buffer.bytes >= bytes)
    }

    /// Whether two buffers are there and of one size.
    fn are_alike(&self, (from, to): (usize, usize)) -> bool {
        let pair = self.buffers.get(from).zip(self.buffers.get(to));
        pair.is_some_and(|(from, to)| from.bytes == to.bytes)
    }

    /// Lets the next state be made where the state is, if nothing reads that any more.
    fn compute_in_place(&mut self) {
        let lives = lives(self.buffers.len(), [&[], &self.body], None, &[]);
        let (mut sources, mut made) = (vec![0; self.buffers.len()], Vec::new());
        self.next.iter().for_each(|&(from, _)| sources[from] += 1);
        self.next.retain(|&(from, to)| {
            let is_free = matches!(self.buffers[from].role, Role::Local | Role::Kept)
                && sources[from] == 1
                && sources[to] == 0
                && match (lives[from], lives[to]) {
                    (_, None) => true,
                    (Some(new), Some(old)) => old.last < new.first,
                    (None, Some(_)) => false,
                };
            if is_free {
                made.push((from, to));
            }
            !is_free
        });
        let mut names: Vec<usize> = (0..self.buffers.len()).collect();
        made.into_iter().for_each(|(from, to)| names[from] = to);
        self.body.iter_mut().for_each(|part| part.rename(&names));
    }

    /// How each buffer is accessed by all who name it; nothing if none does.
    fn uses(&self, has_long: bool) -> Vec<Option<Use>> {
        let mut uses: Vec<Option<Use>> = vec![None; self.buffers.len()];
        let mut note = |n: usize, this: Use| {
            let fits = |width: Width| width.bytes() == self.buffers[n].bytes;
            let this = match this {
                Use::Number(width) if !fits(width) => Use::Element,
                this => this,
            };
            uses[n] = Some(match uses[n] {
                None => this,
                Some(other) if other == this => this,
                Some(Use::Array) => Use::Array,
                Some(_) if this == Use::Array => Use::Array,
                Some(_) => Use::Element,
            });
        };
        let steps = self.until.cond().iter().chain(&self.body);
        steps.for_each(|step| self.note_uses(step, has_long, &mut note));
        self.next.iter().for_each(|&pair| self.note_copy(pair, has_long, &mut note));
        match self.until {
            Until::Count(_) => {}
            Until::Test { go, .. } => note(go, Use::Number(Width::Byte)),
            Until::Suspended { go, at, .. } => {
                note(go, Use::Number(Width::Byte));
                note(at, Use::Number(Width::Word));
            }
        }
        uses
    }

    /// A copy is of the width that its buffers have.
    fn note_copy(
        &self,
        (from, to): (usize, usize),
        has_long: bool,
        note: &mut impl FnMut(usize, Use),
    ) {
        let this = match self.buffers[from].bytes {
            1 => Use::Number(Width::Byte),
            4 => Use::Number(Width::Word),
            8 if has_long => Use::Number(Width::Long),
            _ => Use::Array,
        };
        note(from, this);
        note(to, this);
    }

    fn note_uses(&self, step: &LoopStep<'_>, has_long: bool, note: &mut impl FnMut(usize, Use)) {
        match step {
            LoopStep::Kernel(kernel, buffers) => {
                each_access(&kernel.body, &mut |param, this| note(buffers[param as usize], this));
            }
            LoopStep::Copy { from, to } => self.note_copy((*from, *to), has_long, note),
            LoopStep::Branch(branch) => {
                let width = if branch.is_pred { Width::Byte } else { Width::Word };
                note(branch.selector, Use::Number(width));
                branch.at.into_iter().for_each(|at| note(at, Use::Number(Width::Word)));
                branch
                    .branches
                    .iter()
                    .flatten()
                    .for_each(|step| self.note_uses(step, has_long, note));
            }
            LoopStep::Repeat(repeat) => {
                note(repeat.go, Use::Number(Width::Byte));
                repeat.at.into_iter().for_each(|at| note(at, Use::Number(Width::Word)));
                let steps = repeat.cond.iter().chain(&repeat.body);
                steps.for_each(|step| self.note_uses(step, has_long, note));
                repeat.next.iter().for_each(|&pair| self.note_copy(pair, has_long, note));
            }
        }
    }

    /// The kernel with values in place of single numbers in scratch, where `regions` says they are.
    fn with_values(&self, kernel: Kernel, uses: &[Option<Use>], regions: &[Region]) -> Kernel {
        let width = |(this, region): (&Option<Use>, &Region)| match this {
            Some(Use::Number(width)) if region.buf == Buf::Scratch => Some((region.offset, *width)),
            _ => None,
        };
        let widths: FxHashMap<Place, Width> = zip(uses, regions).filter_map(width).collect();
        if widths.is_empty() {
            return kernel;
        }
        let mut b = Builder::new(self.lanes);
        b.take_interface(&kernel);
        let params =
            (0..kernel.params.len() as u32).map(|n| Region { buf: Buf::Param(n), offset: 0 });
        let scratch = Region { buf: Buf::Scratch, offset: 0 };
        let mut slots = Slots::new(Analysis::new(&kernel, widths));
        Inline::new(&kernel, params.collect(), scratch).with_slots(&mut slots).run(&mut b);
        if slots.has_failed() {
            return kernel;
        }
        let mut written = b.finish();
        slots.remove_stores(&mut written.body);
        written
    }

    /// Where buffers that nothing outside of an iteration sees lie in a piece of scratch, and its size.
    /// Those that are never needed at once may lie in the same place, but for single numbers.
    fn shared_places(&self) -> (Vec<(usize, usize)>, usize) {
        let go = self.until.buffers().first().map(|&(go, _)| go);
        let lives = lives(self.buffers.len(), [self.until.cond(), &self.body], go, &self.next);
        let is_number = |n: usize| self.buffers[n].bytes <= NUMBER_BYTES;
        let is_local = |&n: &usize| self.buffers[n].role == Role::Local && lives[n].is_some();
        let locals = (0..self.buffers.len()).filter(is_local);
        let (numbers, mut order): (Vec<usize>, Vec<usize>) = locals.partition(|&n| is_number(n));
        let life = |n: usize| lives[n].unwrap_or_default();
        order.sort_by_key(|&n| life(n).first);
        // What is in use: where it begins and ends, and the last part that needs it; by place.
        let mut used: Vec<(usize, usize, usize)> = Vec::new();
        let (mut places, mut all) = (Vec::with_capacity(order.len()), 0);
        for n in order {
            let Life { first, last, is_made } = life(n);
            // What is not made before it is read is not expected to be, but must not see others.
            let (first, last) = if is_made { (first, last) } else { (0, usize::MAX) };
            let size = self.buffers[n].bytes.next_multiple_of(SCRATCH_ALIGN);
            used.retain(|&(_, _, until)| until >= first);
            let mut place = if is_made { 0 } else { all };
            let mut rank = if is_made { 0 } else { used.len() };
            while let Some(&(begin, end, _)) = used.get(rank)
                && begin < place + size
            {
                place = place.max(end);
                rank += 1;
            }
            used.insert(rank, (place, place + size, last));
            all = all.max(place + size);
            places.push((n, place));
        }
        for n in numbers {
            places.push((n, all));
            all += NUMBER_BYTES;
        }
        (places, all)
    }
}

/// From which part of an iteration to which one a buffer is needed.
#[derive(Clone, Copy, Default)]
struct Life {
    first: usize,
    last: usize,
    /// Whether the first part writes it.
    is_made: bool,
}

/// The lives of so many buffers in an iteration: one list of steps, `go`, the other list, `next`.
fn lives(
    count: usize,
    [cond, body]: [&[LoopStep<'_>]; 2],
    go: Option<usize>,
    next: &[(usize, usize)],
) -> Vec<Option<Life>> {
    let mut lives = Lives { of: vec![None; count], at: 0 };
    lives.steps(cond);
    go.into_iter().for_each(|go| lives.note(go, false));
    lives.at += 1;
    lives.steps(body);
    next.iter().for_each(|&(from, to)| [from, to].into_iter().for_each(|n| lives.note(n, false)));
    lives.of
}

struct Lives {
    of: Vec<Option<Life>>,
    /// The number of the next part.
    at: usize,
}

impl Lives {
    fn note(&mut self, buffer: usize, writes: bool) {
        let new = Life { first: self.at, last: self.at, is_made: false };
        let life = self.of[buffer].get_or_insert(new);
        life.last = self.at;
        life.is_made |= writes && life.first == self.at;
    }

    /// Steps one after the other. The lists of a branch, of which one runs, count as if all did; a loop's
    /// steps are one part, since what stands first in it runs again after what stands last.
    fn steps(&mut self, steps: &[LoopStep<'_>]) {
        for step in steps {
            match step {
                LoopStep::Branch(Branch { selector, branches, at: None, .. }) => {
                    self.note(*selector, false);
                    self.at += 1;
                    branches.iter().for_each(|steps| self.steps(steps));
                }
                step => {
                    step.each_buffer(&mut |n, writes| self.note(n, writes));
                    self.at += 1;
                }
            }
        }
    }
}
