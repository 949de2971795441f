//! A call of a user's function.

use helio_ir::{ArrayShape, Error, Result};
use helio_limits::Meter;

use super::info::CallInfo;
use super::view::{ArrayView, ArrayViewMut};
use crate::services::Participant;

/// A call of a user's function: what it is told, its operands, and where its results go.
///
/// Operands and results are numbered as arrays and tokens, tuples taken apart. What a result holds when
/// the call begins means nothing: a function writes all of it. Those of [`CallInfo::aliases`] hold
/// the value of an operand, which is read there and nowhere else.
pub struct Call<'c> {
    pub(super) info: &'c CallInfo,
    pub(super) participant: Participant,
    pub(super) device: usize,
    pub(super) meter: &'c Meter,
    pub(super) operand_shapes: &'c [Option<&'c ArrayShape>],
    pub(super) result_shapes: &'c [Option<&'c ArrayShape>],
    pub(super) operands: &'c [&'c [u8]],
    pub(super) results: Vec<&'c mut [u8]>,
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
        Ok(self.meter.check()?)
    }

    /// How many parts the operands have.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// How many parts the result has.
    pub fn result_count(&self) -> usize {
        self.results.len()
    }

    /// The bytes of all parts of the operands, and of the result to be written; none of tokens, and of
    /// operands that a result holds ([`Call::result_of`]).
    pub fn bytes(&mut self) -> (&'c [&'c [u8]], &mut [&'c mut [u8]]) {
        (self.operands, &mut self.results)
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
