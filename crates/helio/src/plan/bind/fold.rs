//! Arrays folded element by element with generated code.

use std::fmt;

use helio_ir::{ArrayShape, CompId, Error, Module, Result, Verified};
use helio_runtime::{Block, Memory};

use super::super::code::ScalarCode;
use super::super::{Planned, Planner};
use super::Codes;

/// Elements that the code folds at once: what it reads and writes stays in the nearest cache.
const ELEMENTS: usize = 1024;

/// The code of a computation of two scalars, for arrays of its element type.
pub(in crate::plan) struct ScalarFold {
    code: ScalarCode,
    element_bytes: usize,
}

/// Aligned room for what is folded at once: two operands, and two results in turn.
pub(in crate::plan) struct Room {
    operands: [Block; 2],
    results: [Block; 2],
    /// What is exchanged piece by piece, once that has been done.
    pieces: Option<[Block; 2]>,
}

impl Room {
    /// Two blocks for pieces of `bytes` bytes, those of the last time if there are any. Errors:
    /// `ResourceExhausted`.
    pub(in crate::plan) fn take_pieces(
        &mut self,
        memory: &Memory,
        bytes: usize,
    ) -> Result<[Block; 2]> {
        match self.pieces.take().filter(|[block, _]| block.as_slice().len() >= bytes) {
            Some(pieces) => Ok(pieces),
            None => Ok([memory.allocate(bytes)?, memory.allocate(bytes)?]),
        }
    }

    /// Keeps them for the next time.
    pub(in crate::plan) fn keep_pieces(&mut self, pieces: [Block; 2]) {
        self.pieces = Some(pieces);
    }
}

impl Planner<'_> {
    /// Code that folds arrays with a computation; `None` if they are of several element types or others
    /// than its parameters, or it cannot be lowered.
    pub(in crate::plan) fn fold(
        &mut self,
        to_apply: CompId,
        arrays: &[&ArrayShape],
    ) -> Planned<Option<ScalarFold>> {
        let module: &Verified<Module> = self.module;
        let params = module.computation(to_apply).program_shape().params;
        let Some(element) = params.first().and_then(|p| p.as_array()).map(ArrayShape::element)
        else {
            return Ok(None);
        };
        if arrays.iter().any(|array| array.element() != element) {
            return Ok(None);
        }
        let element_bytes = params[0].size_bytes();
        let (target, batch) = (self.target, &mut self.machine_code);
        let mut codes = Codes { target, batch, error: None, fallback: None };
        let code = codes.scalar(module, to_apply, ELEMENTS);
        let Codes { error, fallback, .. } = codes;
        if let Some(error) = error {
            return Err(error.into());
        }
        if let Some(reason) = fallback {
            self.note(reason);
        }
        Ok(code.map(|code| ScalarFold { code, element_bytes }))
    }
}

impl ScalarFold {
    /// Room for [`ScalarFold::fold`]. Errors: `ResourceExhausted`.
    pub(in crate::plan) fn room(&self, memory: &Memory) -> Result<Room> {
        let block = || memory.allocate(self.piece_bytes());
        Ok(Room { operands: [block()?, block()?], results: [block()?, block()?], pieces: None })
    }

    /// The bytes of what is folded at once.
    pub(in crate::plan) fn piece_bytes(&self) -> usize {
        ELEMENTS * self.element_bytes
    }

    /// Folds `count` arrays, all of the size of `to`, from the first on, into `to`.
    pub(in crate::plan) fn fold<'a>(
        &self,
        count: usize,
        arrays: impl Fn(usize) -> &'a [u8],
        to: &mut [u8],
        room: &mut Room,
    ) -> Result<()> {
        if count < 2 {
            to.copy_from_slice(arrays(0));
            return Ok(());
        }
        let mut begin = 0;
        for to in to.chunks_mut(self.piece_bytes()) {
            let size = to.len();
            let pieces = |i: usize| &arrays(i)[begin..][..size];
            let is_direct = size == self.piece_bytes()
                && is_aligned(to)
                && (0..count).all(|i| is_aligned(pieces(i)));
            match is_direct {
                true => self.fold_direct(count, pieces, to, room)?,
                false => self.fold_copied(count, pieces, to, room)?,
            }
            begin += size;
        }
        Ok(())
    }

    /// Folds whole, aligned pieces where they lie.
    fn fold_direct<'a>(
        &self,
        count: usize,
        pieces: impl Fn(usize) -> &'a [u8],
        to: &mut [u8],
        room: &mut Room,
    ) -> Result<()> {
        let [before, after] = &mut room.results;
        for i in 1..count {
            let folded = if i == 1 { pieces(0) } else { before.as_slice() };
            if i + 1 == count {
                return self.call(ELEMENTS, [folded, pieces(i)], to);
            }
            self.call(ELEMENTS, [folded, pieces(i)], after.as_mut_slice())?;
            std::mem::swap(before, after);
        }
        Ok(())
    }

    /// Folds pieces that are short, or not aligned, in aligned room.
    fn fold_copied<'a>(
        &self,
        count: usize,
        pieces: impl Fn(usize) -> &'a [u8],
        to: &mut [u8],
        room: &mut Room,
    ) -> Result<()> {
        let Room { operands: [folded, given], results: [after, _], .. } = room;
        folded.as_mut_slice()[..to.len()].copy_from_slice(pieces(0));
        for i in 1..count {
            given.as_mut_slice()[..to.len()].copy_from_slice(pieces(i));
            let elements = to.len() / self.element_bytes;
            self.call(elements, [folded.as_slice(), given.as_slice()], after.as_mut_slice())?;
            std::mem::swap(folded, after);
        }
        to.copy_from_slice(&folded.as_slice()[..to.len()]);
        Ok(())
    }

    fn call(&self, elements: usize, operands: [&[u8]; 2], to: &mut [u8]) -> Result<()> {
        self.code
            .call(elements, |param| operands[param], &mut [to])
            .map_err(|failure| Error::internal(failure.to_string()))
    }
}

/// Whether generated code can read and write there.
fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(Block::ALIGN) == 0
}

impl fmt::Debug for ScalarFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalarFold").field("element_bytes", &self.element_bytes).finish()
    }
}
