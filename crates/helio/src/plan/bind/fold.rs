//! Arrays folded element by element with generated code.

use std::fmt;
use std::sync::Arc;

use helio_ir::ops::{Convert, Parameter};
use helio_ir::{
    ArrayShape, CompId, Computation, ElementType, Error, Instr, Module, Result, Shape, Verified,
};
use helio_runtime::{Block, FloatMode, Memory};

use super::super::code::ScalarCode;
use super::super::{Planned, Planner};
use super::Codes;

/// Elements that the code folds at once: what it reads and writes stays in the nearest cache.
const ELEMENTS: usize = 1024;

/// A computation of two scalars as code for several operands, each of its own element type.
#[derive(Debug)]
pub(in crate::plan) struct ScalarFolds {
    /// One for each element type.
    folds: Vec<ScalarFold>,
    /// For each operand, which of them is its.
    of: Vec<usize>,
}

impl ScalarFolds {
    /// What folds operand `i`.
    pub(in crate::plan) fn of(&self, i: usize) -> &ScalarFold {
        &self.folds[self.of[i]]
    }

    /// Room for all of them. Errors: `ResourceExhausted`.
    pub(in crate::plan) fn room(&self, memory: &Memory) -> Result<Room> {
        let bytes = self.folds.iter().map(|fold| fold.room_bytes()).max().unwrap_or(0);
        let block = || memory.allocate(bytes);
        Ok(Room { operands: [block()?, block()?], results: [block()?, block()?], pieces: None })
    }
}

/// The code of a computation of two scalars, for arrays of its element type or of another float type.
pub(in crate::plan) struct ScalarFold {
    code: Arc<ScalarCode>,
    element_bytes: usize,
    accumulator_bytes: usize,
    /// For arrays of another type than the computation's.
    conversion: Option<Conversion>,
    /// Calls of the host, which exchanges are, have the caller's mode.
    float_mode: FloatMode,
}

/// What makes accumulators of elements, and elements of accumulators.
struct Conversion {
    to_accumulators: ScalarCode,
    to_elements: ScalarCode,
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
    /// Code that folds arrays with a computation, element by element; `None` if it cannot be lowered.
    pub(in crate::plan) fn folds(
        &mut self,
        to_apply: CompId,
        arrays: &[&ArrayShape],
    ) -> Planned<Option<ScalarFolds>> {
        let module: &Verified<Module> = self.module;
        let params = module.computation(to_apply).program_shape().params;
        let Some(accumulator) = params.first().and_then(|p| p.as_array()).map(ArrayShape::element)
        else {
            return Ok(None);
        };
        let (target, batch) = (self.target, &mut self.machine_code);
        let mut codes = Codes { target, batch, error: None, fallback: None };
        let folds = folds(module, to_apply, accumulator, arrays, &mut codes);
        let Codes { error, fallback, .. } = codes;
        if let Some(error) = error {
            return Err(error.into());
        }
        let folds = folds?;
        if let (Some(_), Some(reason)) = (&folds, fallback) {
            self.note(reason);
        }
        Ok(folds)
    }
}

fn folds(
    module: &Verified<Module>,
    to_apply: CompId,
    accumulator: ElementType,
    arrays: &[&ArrayShape],
    codes: &mut Codes<'_>,
) -> Result<Option<ScalarFolds>> {
    let Some(code) = codes.scalar(module, to_apply, ELEMENTS).map(Arc::new) else {
        return Ok(None);
    };
    let mut types: Vec<ElementType> = Vec::new();
    let mut result = ScalarFolds { folds: Vec::new(), of: Vec::new() };
    for element in arrays.iter().map(|array| array.element()) {
        if let Some(known) = types.iter().position(|&ty| ty == element) {
            result.of.push(known);
            continue;
        }
        let mut converted = |from, to| -> Result<Option<ScalarCode>> {
            let module = conversion(from, to)?;
            Ok(codes.scalar(&module, module.entry_id(), ELEMENTS))
        };
        let conversion = if element == accumulator {
            None
        } else {
            let both = (converted(element, accumulator)?, converted(accumulator, element)?);
            let (Some(to_accumulators), Some(to_elements)) = both else { return Ok(None) };
            Some(Conversion { to_accumulators, to_elements })
        };
        result.of.push(types.len());
        types.push(element);
        result.folds.push(ScalarFold {
            code: code.clone(),
            element_bytes: element.size_bytes(),
            accumulator_bytes: accumulator.size_bytes(),
            conversion,
            float_mode: codes.target.float_mode(),
        });
    }
    Ok(Some(result))
}

/// A program that converts a scalar.
fn conversion(from: ElementType, to: ElementType) -> Result<Verified<Module>> {
    let mut computation = Computation::new("convert");
    let shape = Shape::scalar(from);
    let param = Parameter { number: 0, shape: shape.clone() };
    let x = computation.push(Instr::new(param, [], shape).named("x"))?;
    let convert = Instr::new(Convert { element: to }, [x], Shape::scalar(to)).named("converted");
    let root = computation.push(convert)?;
    computation.set_root(root);
    let mut module = Module::new("convert");
    let entry = module.push(computation)?;
    module.set_entry(entry);
    Ok(helio_ir::verify(module)?)
}

impl ScalarFold {
    /// The bytes of what is folded at once.
    pub(in crate::plan) fn piece_bytes(&self) -> usize {
        ELEMENTS * self.element_bytes
    }

    /// The bytes of a block of [`Room`].
    fn room_bytes(&self) -> usize {
        ELEMENTS * self.element_bytes.max(self.accumulator_bytes)
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
        let _mode = self.float_mode.enter();
        let mut begin = 0;
        for to in to.chunks_mut(self.piece_bytes()) {
            let size = to.len();
            let pieces = |i: usize| &arrays(i)[begin..][..size];
            if let Some(conversion) = &self.conversion {
                self.fold_converted(conversion, count, pieces, to, room)?;
                begin += size;
                continue;
            }
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

    /// Folds pieces whose elements are of another type than what is accumulated.
    fn fold_converted<'a>(
        &self,
        conversion: &Conversion,
        count: usize,
        pieces: impl Fn(usize) -> &'a [u8],
        to: &mut [u8],
        room: &mut Room,
    ) -> Result<()> {
        let Conversion { to_accumulators, to_elements } = conversion;
        let Room { operands: [folded, given], results: [after, elements], .. } = room;
        let n = to.len() / self.element_bytes;
        for i in 0..count {
            elements.as_mut_slice()[..to.len()].copy_from_slice(pieces(i));
            let converted = if i == 0 { &mut *folded } else { &mut *given };
            run(to_accumulators, n, &[elements.as_slice()], converted.as_mut_slice())?;
            if i > 0 {
                self.call(n, [folded.as_slice(), given.as_slice()], after.as_mut_slice())?;
                std::mem::swap(folded, after);
            }
        }
        run(to_elements, n, &[folded.as_slice()], elements.as_mut_slice())?;
        to.copy_from_slice(&elements.as_slice()[..to.len()]);
        Ok(())
    }

    fn call(&self, elements: usize, operands: [&[u8]; 2], to: &mut [u8]) -> Result<()> {
        run(&self.code, elements, &operands, to)
    }
}

fn run(code: &ScalarCode, elements: usize, operands: &[&[u8]], to: &mut [u8]) -> Result<()> {
    let outcome = code.call(elements, |param| operands[param], &mut [to]);
    outcome.map_err(|failure| Error::internal(failure.to_string()))
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
