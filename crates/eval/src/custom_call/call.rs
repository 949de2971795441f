//! What a user's function sees while a custom call runs it: its operands' bytes, its results'
//! memory, what is known of the call.

use helio_ir::{ArrayShape, Error, Result};
use helio_limits::Meter;

use super::info::CallInfo;
use super::view::{ArrayView, ArrayViewMut};
use crate::services::{Participant, Workers};

/// A call of a user's function: what it is told, its operands, and where its results go.
///
/// Operands and results are numbered as arrays and tokens, tuples taken apart. What a result holds when
/// the call begins means nothing: a function writes all of it. Those of [`CallInfo::aliases`] hold
/// the value of an operand, which is read there and nowhere else.
pub struct Call<'c> {
    pub(super) info: &'c CallInfo,
    pub(super) participant: Participant,
    pub(super) device: usize,
    pub(super) work: Work<'c>,
    pub(super) operand_shapes: &'c [Option<&'c ArrayShape>],
    pub(super) result_shapes: &'c [Option<&'c ArrayShape>],
    pub(super) operands: &'c [&'c [u8]],
    pub(super) results: Vec<&'c mut [u8]>,
}

/// What a function may compute with: threads of the run, and word whether to go on.
#[derive(Clone, Copy)]
pub struct Work<'c> {
    pub(super) workers: &'c dyn Workers,
    pub(super) meter: &'c Meter,
}

impl<'c> Work<'c> {
    /// These threads, as long as the meter lets work go on.
    pub fn new(workers: &'c dyn Workers, meter: &'c Meter) -> Self {
        Work { workers, meter }
    }

    /// Calls `body` once for each number below `tasks`, in any order, on threads of the run, and returns
    /// when all calls have returned. Once the run is to stop, tasks not yet begun are left out: ask
    /// [`Call::ensure_running`] afterwards.
    pub fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.workers.for_each(tasks, body);
    }

    /// Whether nobody wants the results any more.
    pub fn is_stopped(&self) -> bool {
        self.meter.check().is_err()
    }
}

/// Where the bytes of a part of the operands are.
#[derive(Clone, Copy, Debug)]
pub enum OperandBytes<'c> {
    /// In memory of its own.
    Own(&'c [u8]),
    /// In the part of the result of this number, which holds them when the call begins.
    Result(usize),
}

impl<'c> Call<'c> {
    /// What is known of it before it runs: target, attributes, shapes.
    pub fn info(&self) -> &'c CallInfo {
        self.info
    }

    /// Which participant of the execution calls.
    pub fn participant(&self) -> Participant {
        self.participant
    }

    /// The number of the device on which the program runs.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Whether the run may go on: a function that takes long asks from time to time. Errors: why the
    /// run is to stop, to be handed on.
    pub fn ensure_running(&self) -> Result<()> {
        Ok(self.work.meter.check()?)
    }

    /// What it may compute with.
    pub fn work(&self) -> Work<'c> {
        self.work
    }

    /// How many parts the operands have.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// How many parts the result has.
    pub fn result_count(&self) -> usize {
        self.results.len()
    }

    /// The bytes of all parts of the operands, and of the result to be written; tokens have none.
    pub fn bytes(&mut self) -> (Vec<OperandBytes<'c>>, &mut [&'c mut [u8]]) {
        let of = |number| match self.result_of(number) {
            Some(result) => OperandBytes::Result(result),
            None => OperandBytes::Own(self.operands[number]),
        };
        ((0..self.operands.len()).map(of).collect(), &mut self.results)
    }

    /// Where all parts of the operands begin, and those of the result, for functions that are not
    /// written in Rust: an operand that a result holds ([`Call::result_of`]) begins where that does.
    pub fn addresses(&mut self) -> (Vec<*const u8>, Vec<*mut u8>) {
        let (operands, results) = self.bytes();
        let results: Vec<*mut u8> = results.iter_mut().map(|bytes| bytes.as_mut_ptr()).collect();
        let address = |operand| match operand {
            OperandBytes::Own(bytes) => bytes.as_ptr(),
            OperandBytes::Result(number) => results[number].cast_const(),
        };
        (operands.into_iter().map(address).collect(), results)
    }

    /// The part of the result that holds a part of the operands when the call begins: the two share
    /// memory, and the operand is read there.
    pub fn result_of(&self, operand: usize) -> Option<usize> {
        let alias = self.info.aliases.iter().find(|&&(_, shared)| shared == operand);
        alias.map(|&(result, _)| result)
    }

    /// A part of the operands. Errors: there is none of this number, it is a token, or a result holds
    /// it ([`Call::result_of`]).
    pub fn operand(&self, number: usize) -> Result<ArrayView<'c>> {
        let shape = array(self.operand_shapes, number, "operand")?;
        if let Some(result) = self.result_of(number) {
            return Err(Error::invalid(format!(
                "operand {number} shares its memory with result {result} \
                 (output_to_operand_aliasing), which holds it when the call begins"
            )));
        }
        Ok(ArrayView { shape, bytes: self.operands[number] })
    }

    /// A part of the result, to be written. Errors: there is none of this number, or it is a token.
    pub fn result_mut(&mut self, number: usize) -> Result<ArrayViewMut<'_>> {
        let shape = array(self.result_shapes, number, "result")?;
        Ok(ArrayViewMut { shape, bytes: &mut *self.results[number] })
    }

    /// All parts of the result, to be written at once; tokens are none.
    pub fn results_mut(&mut self) -> Vec<Option<ArrayViewMut<'_>>> {
        let parts = self.result_shapes.iter().zip(&mut self.results);
        parts.map(|(shape, bytes)| shape.map(|shape| ArrayViewMut { shape, bytes })).collect()
    }
}

fn array<'s>(
    shapes: &[Option<&'s ArrayShape>],
    number: usize,
    what: &str,
) -> Result<&'s ArrayShape> {
    match shapes.get(number) {
        Some(Some(shape)) => Ok(shape),
        Some(None) => {
            Err(Error::invalid(format!("{what} {number} is a token, which has no array")))
        }
        None => {
            let count = shapes.len();
            Err(Error::invalid(format!("there is no {what} {number}: the call has {count}")))
        }
    }
}
