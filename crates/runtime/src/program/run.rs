//! The executor: runs the steps of a program on arguments.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use helio_limits::Meter;
use smallvec::SmallVec;

use super::direct::{Group, Groups, MAX_SLOTS, WholeCode};
use super::{
    Action, Failure, Finished, Home, HostCalls, LENT_ALIGN, Part, PartIndex, RunError, Selector,
    SlotId, Step, StepId, StepProgram, While,
};
use crate::Threads;
use crate::bounds::Bounds;
use crate::float_mode::FloatModeGuard;
use crate::jit::{Addresses, CallError, no_scratch};
use crate::memory::{Block, Memory, View};

/// An argument of a run.
pub enum Argument<'a> {
    /// Lent: only read, or copied first if the program writes it.
    Lent(&'a [u8]),
    /// Given away: the program may write it.
    Given(Block),
}

impl Argument<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Argument::Lent(bytes) => bytes,
            Argument::Given(block) => block.as_slice(),
        }
    }
}

/// What a run needs besides its arguments.
pub struct Run<'r> {
    /// Where memory comes from.
    pub memory: &'r Memory,
    /// The threads it may use.
    pub threads: Threads<'r>,
    /// Counts the work, and says when to stop early.
    pub meter: &'r Arc<Meter>,
    /// Who performs host calls.
    pub host: &'r mut dyn HostCalls,
    /// Who is told of each step.
    pub observer: Option<&'r mut dyn Observer>,
}

/// Is told of the steps of a run, as they are executed.
pub trait Observer {
    /// A step begins.
    fn before(&mut self, step: StepId);

    /// A step has ended, and left these bytes in the slots that it writes. A loop or a branch has no
    /// bytes of its own: its steps are told of one by one, between its own `before` and `after`. A
    /// step that fails has no `after`.
    fn after(&mut self, step: StepId, written: &[(SlotId, &[u8])]);
}

/// Where a slot is at the moment.
#[derive(Clone, Copy)]
struct SlotAddress {
    at: *mut u8,
    /// The number of the block that it is, if it is one.
    block: Option<u32>,
}

/// Bytes that a task of a copy moves.
const COPY_BYTES: usize = 1 << 20;

/// Parameters of a call of generated code whose addresses are listed without allocating.
const MAX_FEW: usize = 16;

type Slices<'a> = SmallVec<[&'a [u8]; 8]>;
type SlicesMut<'a> = SmallVec<[&'a mut [u8]; 4]>;

struct Executor<'p, 'r> {
    program: &'p StepProgram,
    /// Steps that are called as groups: none if each is to be seen.
    groups: Option<&'p Groups>,
    places: SmallVec<[SlotAddress; 32]>,
    run: Run<'r>,
    /// That of the program.
    mode: FloatModeGuard,
}

impl StepProgram {
    /// Runs it; gives a block for each result.
    ///
    /// Errors: arguments that do not fit, memory, limits, and whatever a step reports.
    pub fn run(&self, arguments: Vec<Argument<'_>>, run: Run<'_>) -> Result<Vec<Block>, RunError> {
        let parts = &self.parts;
        let mut arguments = self.fitting(arguments, run.memory)?;
        let constants = self.constants()?;
        let bounds = Bounds { meter: run.meter.clone(), memory: run.memory.clone() };
        let _bounds = Bounds::enter(Some(Arc::new(bounds)));
        let arena = allocate(run.memory, parts.arena_bytes)?;
        let mut blocks = SmallVec::<[Block; 8]>::new();
        for &bytes in &self.block_bytes {
            blocks.push(allocate(run.memory, bytes)?);
        }
        let fixed = |at: *mut u8| SlotAddress { at, block: None };
        let places = parts.slots.iter().map(|slot| match slot.home {
            Home::Argument(n) => match &mut arguments[n] {
                // Never written: `check` has seen to that, and lent ones that are written have
                // become given ones in `fitting`.
                Argument::Lent(bytes) => fixed(bytes.as_ptr().cast_mut()),
                Argument::Given(block) => fixed(block.as_ptr().as_ptr()),
            },
            Home::Constant(n) => fixed(constants[n].as_ptr().cast_mut()),
            Home::Arena(offset) => fixed(arena.as_ptr().as_ptr().wrapping_add(offset)),
            // (There are no more blocks than slots, whose numbers are `u32`.)
            Home::Block(n) => {
                SlotAddress { at: blocks[n].as_ptr().as_ptr(), block: Some(n as u32) }
            }
            // (Below.)
            Home::Part(_) => fixed(std::ptr::null_mut()),
        });
        let mut places: SmallVec<[SlotAddress; 32]> = places.collect();
        for (i, slot) in parts.slots.iter().enumerate() {
            if let Home::Part(of) = slot.home {
                places[i] = fixed(places[of.index()].at);
            }
        }
        let mode = parts.float_mode.enter();
        let groups = run.observer.is_none().then_some(&self.groups);
        let mut executor = Executor { program: self, groups, places, run, mode };
        executor.steps(&parts.steps)?;
        // Its last step may have been left undone.
        let stopped = executor.run.meter.stopped();
        stopped.map_err(|why| RunError::Stopped { at: None, why })?;
        Ok(self.results(&executor.places, &mut arguments, blocks))
    }

    /// The arguments, each of the size that the program wants; those that it may write, and those that
    /// lie where code cannot read them, as copies of its own.
    fn fitting<'a>(
        &self,
        mut arguments: Vec<Argument<'a>>,
        memory: &Memory,
    ) -> Result<Vec<Argument<'a>>, RunError> {
        let infos = &self.parts.arguments;
        if arguments.len() != infos.len() {
            let (want, found) = (infos.len(), arguments.len());
            return Err(RunError::Arguments(format!("{found} arguments for {want} parameters")));
        }
        for (i, (argument, info)) in arguments.iter_mut().zip(infos).enumerate() {
            let found = argument.bytes().len();
            if found != info.bytes {
                let want = info.bytes;
                return Err(RunError::Arguments(format!(
                    "argument {i} has {found} bytes, the parameter {want}"
                )));
            }
            let misaligned = argument.bytes().as_ptr().align_offset(LENT_ALIGN) != 0;
            if let (Argument::Lent(bytes), true) = (&*argument, info.written || misaligned) {
                *argument = Argument::Given(memory.copy_of(bytes).map_err(RunError::Memory)?);
            }
        }
        Ok(arguments)
    }

    /// The bytes of the constants. Errors: memory of the host that is no longer what it was.
    fn constants(&self) -> Result<SmallVec<[&[u8]; 8]>, RunError> {
        let views = &self.parts.constants;
        let constants: SmallVec<[&[u8]; 8]> = views.iter().map(View::as_slice).collect();
        for (i, (bytes, constant)) in constants.iter().zip(views).enumerate() {
            // The host's memory is where and as long as the host says each time.
            if bytes.len() != constant.len() || bytes.as_ptr().align_offset(LENT_ALIGN) != 0 {
                return Err(RunError::Arguments(format!("the memory of constant {i} has changed")));
            }
        }
        Ok(constants)
    }

    /// The blocks of the results. Rotations have moved blocks among slots (`places`); each is still in
    /// exactly one.
    fn results(
        &self,
        places: &[SlotAddress],
        arguments: &mut [Argument<'_>],
        blocks: SmallVec<[Block; 8]>,
    ) -> Vec<Block> {
        let mut blocks: SmallVec<[Option<Block>; 8]> = blocks.into_iter().map(Some).collect();
        let mut result = |&id: &SlotId| match self.parts.slots[id.index()].home {
            Home::Argument(n) => match std::mem::replace(&mut arguments[n], Argument::Lent(&[])) {
                Argument::Given(block) => Some(block),
                Argument::Lent(_) => None,
            },
            _ => places[id.index()].block.and_then(|block| blocks[block as usize].take()),
        };
        let given = "`check` has seen that each result is memory of its own";
        self.parts.results.iter().map(|id| result(id).expect(given)).collect()
    }
}

/// Ranges, of which neighbours have become one, in order.
fn joined(ranges: &mut [Range<usize>]) -> impl Iterator<Item = Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut rest = ranges.iter().filter(|range| !range.is_empty()).cloned().peekable();
    std::iter::from_fn(move || {
        let mut all = rest.next()?;
        while let Some(next) = rest.next_if(|next| next.start <= all.end) {
            all.end = all.end.max(next.end);
        }
        Some(all)
    })
}

fn allocate(memory: &Memory, bytes: usize) -> Result<Block, RunError> {
    memory.allocate(bytes).map_err(RunError::Memory)
}

impl Executor<'_, '_> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), RunError> {
        let mut rest = steps;
        while let [step, others @ ..] = rest {
            match self.groups.and_then(|groups| groups.of_first(step)) {
                Some(group) => {
                    self.count(step.id)?;
                    if self.run.meter.steps() == 0 {
                        self.calls(group);
                        rest = &rest[group.calls.len()..];
                    } else {
                        // Steps are limited, so each has to be counted.
                        self.perform(step)?;
                        rest = others;
                    }
                }
                None => {
                    self.step(step)?;
                    rest = others;
                }
            }
        }
        Ok(())
    }

    /// Calls the kernels of a group.
    fn calls(&self, group: &Group) {
        let mut at = [std::ptr::null_mut(); MAX_SLOTS];
        let mut slots = &group.slots[..];
        for call in &group.calls {
            let (own, others) = slots.split_at(call.slots as usize);
            slots = others;
            for (at, &slot) in at.iter_mut().zip(own) {
                *at = self.places[slot as usize].at;
            }
            let WholeCode { entry, range } = call.code;
            // SAFETY: the group is of steps of the program, which keep the code alive. `check` has
            // compared each slot's size with what the code declares to touch, written slots are
            // writable and overlap no other parameter except where a slot stands twice, and all
            // memory outlives this call. The code takes no scratch.
            unsafe { entry(at.as_ptr(), 0, range, no_scratch()) };
        }
    }

    /// Counts an instruction's work.
    #[inline]
    fn count(&mut self, at: StepId) -> Result<(), RunError> {
        self.run.meter.count(1).map_err(|why| RunError::Stopped { at: Some(at), why })
    }

    #[inline]
    fn step(&mut self, step: &Step) -> Result<(), RunError> {
        self.count(step.id)?;
        if let Some(observer) = &mut self.run.observer {
            self.mode.outside(|| observer.before(step.id));
        }
        self.perform(step)?;
        if self.run.observer.is_some() {
            self.show(step);
        }
        Ok(())
    }

    /// Tells the observer what a step has written.
    fn show(&mut self, step: &Step) {
        let slots = step.action.written();
        let bytes = |&id: &SlotId| {
            let (at, bytes) =
                (self.places[id.index()].at, self.program.parts.slots[id.index()].bytes);
            // SAFETY: the slot has `bytes` bytes, initialised when their block was made. The step
            // that wrote them has ended, the next has not begun, and the slice is dropped before it
            // does.
            (id, unsafe { std::slice::from_raw_parts(at.cast_const(), bytes) })
        };
        let written: SmallVec<[(SlotId, &[u8]); 4]> = slots.iter().map(bytes).collect();
        if let Some(observer) = &mut self.run.observer {
            self.mode.outside(|| observer.after(step.id, &written));
        }
    }

    fn perform(&mut self, step: &Step) -> Result<(), RunError> {
        let failed = |failure| RunError::Step { at: step.id, failure };
        match &step.action {
            Action::Raw { kernel, slots } => {
                // An array, filled one by one: collecting the addresses of a small kernel would take
                // as long as the kernel.
                let mut few = [std::ptr::null_mut(); MAX_FEW];
                let many: Vec<*mut u8>;
                let at = if slots.len() <= MAX_FEW {
                    for (at, id) in few.iter_mut().zip(slots) {
                        *at = self.places[id.index()].at;
                    }
                    &few[..slots.len()]
                } else {
                    many = slots.iter().map(|id| self.places[id.index()].at).collect();
                    &many
                };
                // SAFETY: `check` has compared each slot's size with what the code declares to
                // touch, written slots are writable and overlap no other parameter except where a
                // slot stands twice, and all memory outlives this call.
                unsafe { kernel.call_whole(at, self.run.threads) }
                    .map_err(|error| failed(error.into()))
            }
            Action::Finished(finished) => self.finished(finished).map_err(failed),
            Action::Kernel { kernel, inputs, outputs } => {
                let (mut read, mut written) = (Slices::new(), SlicesMut::new());
                // SAFETY: `check` has seen that the outputs overlap nothing (see `slices`).
                unsafe { self.slices(inputs, outputs, &mut read, &mut written) };
                kernel.run(&read, &mut written, self.run.threads).map_err(failed)
            }
            Action::Host { call, inputs, outputs } => {
                let (mut read, mut written) = (Slices::new(), SlicesMut::new());
                // SAFETY: `check` has seen that the outputs overlap nothing (see `slices`).
                unsafe { self.slices(inputs, outputs, &mut read, &mut written) };
                let host = &mut self.run.host;
                self.mode.outside(|| host.call(*call, &read, &mut written)).map_err(failed)
            }
            Action::Copy { from, to } => {
                let bytes = self.program.parts.slots[to.index()].bytes;
                let [from, to] = [from, to].map(|id| self.places[id.index()].at);
                // SAFETY: `check` has seen that the two do not overlap and are of one size. All bytes
                // are initialised, and these are the only slices of them, until the end of the step.
                let (from, to) = unsafe {
                    (
                        std::slice::from_raw_parts(from.cast_const(), bytes),
                        std::slice::from_raw_parts_mut(to, bytes),
                    )
                };
                if bytes <= COPY_BYTES {
                    to.copy_from_slice(from);
                    return Ok(());
                }
                self.run.threads.for_chunks(to, COPY_BYTES, &|i, to| {
                    to.copy_from_slice(&from[i * COPY_BYTES..][..to.len()]);
                });
                Ok(())
            }
            Action::Part(part) => {
                self.find(part);
                Ok(())
            }
            Action::While(each) => self.repeat(step.id, each),
            Action::Branch(branch) => {
                let last = branch.branches.len() - 1;
                let taken = match branch.selector {
                    Selector::Pred(slot) => usize::from(self.byte(slot) == 0),
                    Selector::Index(slot) => {
                        let index = i32::from_ne_bytes(self.bytes(slot));
                        usize::try_from(index).map_or(last, |index| index.min(last))
                    }
                };
                self.steps(&branch.branches[taken])
            }
        }
    }

    /// Runs a loop.
    fn repeat(&mut self, at: StepId, each: &While) -> Result<(), RunError> {
        let mut trips = 0u64;
        loop {
            match each.trips {
                Some(count) if trips >= count => return Ok(()),
                Some(_) => self.count(at)?,
                None => {
                    self.steps(&each.cond)?;
                    if self.byte(each.go) == 0 {
                        return Ok(());
                    }
                }
            }
            self.steps(&each.body)?;
            each.rotate.iter().for_each(|cycle| self.rotate(cycle));
            trips += 1;
        }
    }

    /// Runs a kernel, and code on its rows.
    fn finished(&self, step: &Finished) -> Result<(), Failure> {
        let Finished { kernel, inputs, output, code, slots } = step;
        let unit_bytes = code.signature().unit_bytes.expect("`check` has seen that it has them");
        let (place, bytes) =
            (self.places[output.index()].at, self.program.parts.slots[output.index()].bytes);
        let at: SmallVec<[*mut u8; 16]> =
            slots.iter().map(|&id| self.places[id.index()].at).collect();
        let (at, threads) = (Addresses(&at), self.run.threads);
        let grain = code.signature().grain as usize * unit_bytes;
        let start = place.addr();
        let failed: Mutex<Result<(), CallError>> = Mutex::new(Ok(()));
        // Of rows that are complete, those that are in one piece of the code with others.
        let edges = Mutex::new(SmallVec::<[Range<usize>; 32]>::new());
        // Runs the code on whole pieces of the output, the first of which begins at `from`.
        let run = |from: usize, pieces: &mut [u8]| {
            let to = from + pieces.len();
            let ours = pieces.as_ptr().addr() == start + from && to <= bytes;
            let whole = from.is_multiple_of(grain) && (to.is_multiple_of(grain) || to == bytes);
            assert!(ours && whole, "rows of the output are finished");
            // Where the output begins, by way of the slice: code touches it there alone.
            let begin = pieces.as_mut_ptr().wrapping_sub(from);
            let of = |(id, &at): (&SlotId, &*mut u8)| if id == output { begin } else { at };
            let at: SmallVec<[*mut u8; 16]> = slots.iter().zip(at.get()).map(of).collect();
            let range = (from / unit_bytes) as i64..(to / unit_bytes) as i64;
            // SAFETY: `check` has compared the slots with the parameters. Of the output, this range
            // touches the bytes of `pieces` alone, whole units as asserted above, and those are borrowed
            // mutably; the code writes nothing else, and all memory outlives this call.
            let called = unsafe { code.call(&at, range, threads) };
            if called.is_err() {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = called;
            }
        };
        let finish = |from: usize, rows: &mut [u8]| {
            let end = from + rows.len();
            if (from, end) == (0, bytes) {
                // Computed anew, perhaps.
                edges.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            let last = if end == bytes { end } else { end / grain * grain };
            let first = from.next_multiple_of(grain).min(end);
            let inner = first..last.max(first);
            if from < inner.start || inner.end < end {
                let mut edges = edges.lock().unwrap_or_else(PoisonError::into_inner);
                edges.extend([from..inner.start, inner.end..end]);
            }
            if !inner.is_empty() {
                run(inner.start, &mut rows[inner.start - from..inner.end - from]);
            }
        };
        let (mut read, mut written) = (Slices::new(), SlicesMut::new());
        // SAFETY: `check` has seen that the output overlaps nothing (see `slices`). What the code
        // reads besides overlaps it neither.
        unsafe { self.slices(inputs, &[*output], &mut read, &mut written) };
        kernel.run_finished(&read, written[0], &finish, threads)?;
        let mut edges = edges.into_inner().unwrap_or_else(PoisonError::into_inner);
        // (Rows that a run has left out because it is to stop leave pieces that are not whole.)
        let is_whole = |piece: &Range<usize>| {
            piece.start.is_multiple_of(grain)
                && (piece.end.is_multiple_of(grain) || piece.end == bytes)
        };
        for piece in joined(&mut edges).filter(is_whole) {
            run(piece.start, &mut written[0][piece]);
        }
        Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner)?)
    }

    fn rotate(&mut self, cycle: &[SlotId]) {
        for pair in cycle.windows(2) {
            self.places.swap(pair[0].index(), pair[1].index());
        }
        let parts = &self.program.moving_parts[..];
        if parts.is_empty() {
            return;
        }
        // Parts must not be left in memory that is another slot's now. (Those of what other loops exchange stay
        // where they were found.)
        for &slot in cycle {
            let first = parts.partition_point(|&(whole, _)| whole < slot);
            let at = self.places[slot.index()].at;
            for (_, part) in parts[first..].iter().take_while(|(whole, _)| *whole == slot) {
                self.places[part.index()].at = at;
            }
        }
    }

    /// Finds a part of a slot.
    fn find(&mut self, step: &Part) {
        let Part { of, part, offset, indices } = step;
        let further = indices.iter().map(|index| self.index(index) * index.stride);
        let offset = offset + further.sum::<usize>();
        // (`check` has seen that the part ends in the other slot, wherever the indices let it begin.)
        self.places[part.index()].at = self.places[of.index()].at.wrapping_add(offset);
    }

    /// An index of a part, within its bounds.
    fn index(&self, index: &PartIndex) -> usize {
        let &PartIndex { index: slot, bytes, is_signed, most, .. } = index;
        let unsigned = match bytes {
            1 => u64::from(self.byte(slot)),
            2 => u64::from(u16::from_ne_bytes(self.bytes(slot))),
            4 => u64::from(u32::from_ne_bytes(self.bytes(slot))),
            _ => u64::from_ne_bytes(self.bytes(slot)),
        };
        let is_negative = is_signed && unsigned >> (8 * bytes - 1) != 0;
        if is_negative {
            0
        } else {
            usize::try_from(unsigned).map_or(most, |index| index.min(most))
        }
    }

    fn byte(&self, slot: SlotId) -> u8 {
        let [byte] = self.bytes(slot);
        byte
    }

    fn bytes<const N: usize>(&self, slot: SlotId) -> [u8; N] {
        // SAFETY: `check` has seen that the slot has `N` bytes; no slice of it is held here.
        unsafe { self.places[slot.index()].at.cast::<[u8; N]>().read_unaligned() }
    }

    /// Adds the memory of slots to lists of slices. (The caller's lists: to hand on whole lists takes
    /// longer than what a small kernel does.)
    ///
    /// # Safety
    /// Outputs are writable, and overlap neither inputs nor each other. The slices are used in this
    /// step alone.
    unsafe fn slices<'s>(
        &self,
        inputs: &[SlotId],
        outputs: &[SlotId],
        read: &mut Slices<'s>,
        written: &mut SlicesMut<'s>,
    ) {
        let slots = &self.program.parts.slots;
        let of = |id: &SlotId| (self.places[id.index()].at, slots[id.index()].bytes);
        for (at, bytes) in inputs.iter().map(of) {
            // SAFETY: `bytes` is the slot's size; its bytes were initialised when their block was made,
            // and nothing writes them while the slice is used: it is dropped at the end of the step.
            read.push(unsafe { std::slice::from_raw_parts(at, bytes) });
        }
        for (at, bytes) in outputs.iter().map(of) {
            // SAFETY: `bytes` is the slot's size; its bytes were initialised when their block was made,
            // and by this function's contract nothing else refers to them.
            written.push(unsafe { std::slice::from_raw_parts_mut(at, bytes) });
        }
    }
}
