//! Checks of a program of steps, made once when it is built, of all that the executor relies on
//! without looking again.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::memory::Block;

use super::{
    Action, Branch, Finished, Home, LENT_ALIGN, Part, ProgramParts, RawKernel, Selector, SlotId,
    Step, While,
};

/// The most loops and branches within each other: the executor recurses on them.
pub const MAX_DEPTH: usize = 200;

/// Checks a program; gives the bytes of each block, by its number. Errors: what is wrong.
pub fn check(parts: &ProgramParts) -> Result<Vec<usize>, String> {
    let mut blocks: Vec<Option<usize>> = Vec::new();
    for (i, slot) in parts.slots.iter().enumerate() {
        let fits = match slot.home {
            Home::Argument(n) => parts.arguments.get(n).is_some_and(|a| a.bytes == slot.bytes),
            Home::Constant(n) => parts.constants.get(n).is_some_and(|c| c.len() >= slot.bytes),
            Home::Arena(offset) => {
                offset % Block::ALIGN == 0
                    && offset.checked_add(slot.bytes).is_some_and(|end| end <= parts.arena_bytes)
            }
            Home::Block(n) => {
                if n >= parts.slots.len() {
                    return Err(format!("slot {i} has block {n}"));
                }
                if blocks.len() <= n {
                    blocks.resize(n + 1, None);
                }
                blocks[n].replace(slot.bytes).is_none()
            }
            // The other is no part itself, or is found before.
            Home::Part(of) => parts.slots.get(of.index()).is_some_and(|whole| {
                let is_found = !matches!(whole.home, Home::Part(_)) || of.index() < i;
                is_found && slot.bytes <= whole.bytes
            }),
        };
        if !fits {
            return Err(format!("slot {i} does not fit its home: {slot:?}"));
        }
    }
    let checker = Checker { parts };
    for &result in &parts.results {
        let slot = checker.slot(result)?;
        let is_lasting = match parts.slots[slot].home {
            Home::Block(_) => true,
            Home::Argument(n) => parts.arguments[n].written,
            Home::Arena(_) | Home::Constant(_) | Home::Part(_) => false,
        };
        if !is_lasting {
            return Err(format!("result {result:?} is not memory to give away"));
        }
    }
    let mut memories = BTreeSet::new();
    for &result in &parts.results {
        if !memories.insert(checker.place(result)?.0) {
            return Err(format!("{result:?} is another result, too"));
        }
    }
    checker.steps(&parts.steps, 0)?;
    Ok(blocks.into_iter().map(Option::unwrap_or_default).collect())
}

struct Checker<'p> {
    parts: &'p ProgramParts,
}

/// A piece of memory in which slots lie, and which overlaps no other: as in [`Home`], by number.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Piece {
    Argument(usize),
    Constant(usize),
    Arena,
    Block(usize),
}

impl Checker<'_> {
    /// The index of a slot. Errors: there is none with this id.
    fn slot(&self, id: SlotId) -> Result<usize, String> {
        let known = id.index() < self.parts.slots.len();
        if known { Ok(id.index()) } else { Err(format!("there is no {id:?}")) }
    }

    /// The memory of a slot: in which piece, and which bytes of it. Of a part it is known only in which slot it
    /// is.
    fn place(&self, id: SlotId) -> Result<(Piece, Range<usize>), String> {
        let slot = self.parts.slots[self.slot(id)?];
        Ok(match slot.home {
            Home::Argument(n) => (Piece::Argument(n), 0..slot.bytes),
            Home::Constant(n) => (Piece::Constant(n), 0..slot.bytes),
            Home::Arena(offset) => (Piece::Arena, offset..offset + slot.bytes),
            Home::Block(n) => (Piece::Block(n), 0..slot.bytes),
            Home::Part(of) => self.place(of)?,
        })
    }

    /// Whether two slots have bytes in common.
    fn overlap(&self, a: SlotId, b: SlotId) -> Result<bool, String> {
        let ((piece_a, a), (piece_b, b)) = (self.place(a)?, self.place(b)?);
        Ok(piece_a == piece_b && a.start < b.end && b.start < a.end)
    }

    /// Errors: the program must not write to a slot.
    fn writable(&self, id: SlotId) -> Result<(), String> {
        let ok = match self.parts.slots[self.slot(id)?].home {
            Home::Argument(n) => self.parts.arguments[n].written,
            Home::Constant(_) | Home::Part(_) => false,
            Home::Arena(_) | Home::Block(_) => true,
        };
        if ok { Ok(()) } else { Err(format!("{id:?} is written but must not be")) }
    }

    /// Errors: an output must not be written, or overlaps an input or another output.
    fn apart(&self, inputs: &[SlotId], outputs: &[SlotId]) -> Result<(), String> {
        inputs.iter().try_for_each(|&id| self.slot(id).map(drop))?;
        for (i, &output) in outputs.iter().enumerate() {
            self.writable(output)?;
            for &other in inputs.iter().chain(&outputs[..i]) {
                if self.overlap(output, other)? {
                    return Err(format!("{output:?} is written and overlaps {other:?}"));
                }
            }
        }
        Ok(())
    }

    /// Checks steps inside of `depth` loops and branches.
    fn steps(&self, steps: &[Step], depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("loops and branches nested more than {MAX_DEPTH} deep"));
        }
        steps.iter().try_for_each(|step| self.step(step, depth))
    }

    /// Errors: slots do not fit the parameters of code (number, bytes, alignment, writing), or one
    /// that it writes overlaps another and is not declared to.
    fn raw(&self, code: &dyn RawKernel, slots: &[SlotId]) -> Result<(), String> {
        let params = &code.signature().params;
        if params.len() != slots.len() {
            return Err(format!("{} slots for {} parameters", slots.len(), params.len()));
        }
        for (i, (&slot, param)) in slots.iter().zip(params).enumerate() {
            if self.parts.slots[self.slot(slot)?].bytes < param.bytes {
                return Err(format!("{slot:?} is smaller than parameter {i}"));
            }
            // What is written is a block, or lies in one at a multiple of 64; what is only read may
            // be a constant or lent, of which an argument is aligned by `StepProgram::run`.
            let aligned = match self.parts.slots[slot.index()].home {
                Home::Part(_) => 1,
                _ if param.write => Block::ALIGN,
                _ => LENT_ALIGN,
            };
            if !aligned.is_multiple_of(param.align) {
                return Err(format!("parameter {i} wants to be aligned to {}", param.align));
            }
            if !param.write {
                continue;
            }
            self.writable(slot)?;
            for (j, &other) in slots.iter().enumerate().filter(|&(j, _)| j != i) {
                let may = other == slot && code.signature().shared.contains(&(j, i));
                if !may && self.overlap(slot, other)? {
                    return Err(format!("{slot:?} is written and overlaps {other:?}"));
                }
            }
        }
        Ok(())
    }

    /// Errors: the code of a finished kernel changes more than the output, or not all of it in units.
    fn finished(&self, step: &Finished) -> Result<(), String> {
        let Finished { kernel, inputs, output, code, slots } = step;
        self.apart(inputs, &[*output])?;
        self.raw(&**code, slots)?;
        let params = &code.signature().params;
        let mut written = slots.iter().zip(params).filter(|(_, param)| param.write);
        match (written.next(), written.next()) {
            (Some((slot, _)), None) if slot == output => {}
            _ => return Err(format!("not {output:?} alone is written where it is finished")),
        }
        let Some(unit_bytes) = code.signature().unit_bytes else {
            return Err(format!("code that finishes {output:?} does not go from row to row"));
        };
        if kernel.row_bytes().is_none() {
            return Err(format!("the kernel does not compute {output:?} row by row"));
        }
        let bytes = self.parts.slots[output.index()].bytes;
        let of = |count: i64| usize::try_from(count).ok().and_then(|n| n.checked_mul(unit_bytes));
        let [units, grain] = [code.signature().range, code.signature().grain].map(of);
        if units == Some(bytes) && grain.is_some_and(|grain| grain > 0) {
            return Ok(());
        }
        Err(format!("{output:?} has {bytes} bytes, finished {unit_bytes} at a time"))
    }

    fn step(&self, step: &Step, depth: usize) -> Result<(), String> {
        match &step.action {
            Action::Raw { kernel, slots } => self.raw(&**kernel, slots),
            Action::Finished(step) => self.finished(step),
            Action::Kernel { inputs, outputs, .. } | Action::Host { inputs, outputs, .. } => {
                self.apart(inputs, outputs)
            }
            Action::Copy { from, to } => {
                self.apart(&[*from], &[*to])?;
                let [from, to] = [from, to].map(|id| self.parts.slots[id.index()].bytes);
                if from == to { Ok(()) } else { Err(format!("{from} bytes copied to {to}")) }
            }
            Action::Part(part) => self.part(part),
            Action::While(step) => {
                let While { cond, go, trips: _, body, rotate } = &**step;
                self.at_least(*go, 1)?;
                self.steps(cond, depth + 1)?;
                self.steps(body, depth + 1)?;
                rotate.iter().try_for_each(|cycle| self.cycle(cycle))
            }
            Action::Branch(step) => {
                let Branch { selector, branches } = &**step;
                match selector {
                    Selector::Pred(slot) => self.at_least(*slot, 1)?,
                    Selector::Index(slot) => self.at_least(*slot, 4)?,
                }
                let enough = match selector {
                    Selector::Pred(_) => branches.len() == 2,
                    Selector::Index(_) => !branches.is_empty(),
                };
                if !enough {
                    return Err(format!("{} branches", branches.len()));
                }
                branches.iter().try_for_each(|steps| self.steps(steps, depth + 1))
            }
        }
    }

    /// Errors: a part is a part of something else, reaches beyond it for some indices, or an index is none.
    fn part(&self, step: &Part) -> Result<(), String> {
        let Part { of, part, offset, indices } = step;
        let slot = self.parts.slots[self.slot(*part)?];
        if slot.home != Home::Part(*of) {
            return Err(format!("{part:?} is no part of {of:?}"));
        }
        let mut end = offset.checked_add(slot.bytes);
        for index in indices {
            if !matches!(index.bytes, 1 | 2 | 4 | 8) {
                return Err(format!("an index of {} bytes", index.bytes));
            }
            self.at_least(index.index, index.bytes)?;
            let most = index.most.checked_mul(index.stride);
            end = end.zip(most).and_then(|(end, most)| end.checked_add(most));
        }
        if end.is_some_and(|end| end <= self.parts.slots[of.index()].bytes) {
            return Ok(());
        }
        Err(format!("{part:?} reaches beyond {of:?}"))
    }

    /// Errors: a slot has fewer bytes.
    fn at_least(&self, id: SlotId, bytes: usize) -> Result<(), String> {
        let found = self.parts.slots[self.slot(id)?].bytes;
        if found >= bytes { Ok(()) } else { Err(format!("{id:?} has {found} bytes")) }
    }

    /// Errors: slots that a loop rotates are not blocks of one size, or one is named twice.
    fn cycle(&self, cycle: &[SlotId]) -> Result<(), String> {
        let mut size = None;
        let mut seen = BTreeSet::new();
        for &id in cycle {
            let slot = self.parts.slots[self.slot(id)?];
            let movable = matches!(slot.home, Home::Block(_));
            if !movable || *size.get_or_insert(slot.bytes) != slot.bytes || !seen.insert(id) {
                return Err(format!("{id:?} cannot take part in a rotation"));
            }
        }
        Ok(())
    }
}
