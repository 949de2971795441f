//! Probes in loops: each iteration's value is kept in a record, a part of the loop's state, for the
//! checks that ask for it.

use helio_ir::ops::{Direction, DynamicUpdateSlice};
use helio_ir::{ArrayShape, Error, InstrId, Result};

use super::body::Body;
use super::control::only_block;
use super::types;
use crate::mlir::{Attribute, Operation, Region};

/// A probe of a loop's body.
pub(super) struct Probe {
    /// Its name.
    key: String,
    /// A value of each iteration, along the first dimension.
    record: ArrayShape,
}

/// The record of a probe in an iteration.
pub(super) struct Record {
    /// The values of the iterations so far.
    values: InstrId,
    /// How many iterations there have been.
    iteration: InstrId,
}

/// How many iterations are recorded.
const MAX_ITERATIONS: usize = 1024;

fn key_of(op: &Operation) -> &str {
    match op.attribute("probe_id") {
        Some(Attribute::String(key)) => key,
        _ => "",
    }
}

impl<'m> Body<'_, 'm> {
    /// The probes of a loop's body, of a program that is run for its checks.
    pub fn probes_of_loop(&self, body: &'m Region) -> Result<Vec<Probe>> {
        if !(self.cx.checking && self.is_entry) {
            return Ok(Vec::new());
        }
        let operations = only_block(body)?.operations.iter();
        let probes = operations.filter(|op| op.name == "interpreter.probe");
        let probe = |op: &Operation| {
            let key = key_of(op).to_owned();
            let operand = op.operands.first().map(|&value| self.cx.source.type_of(value));
            let shape = match operand.and_then(|ty| ty.as_tensor()) {
                Some(tensor) => types::array(tensor)?,
                None => return Err(Error::invalid("a probe needs a tensor")),
            };
            let mut dims = vec![self.iterations_asked_for(&key)];
            dims.extend(shape.dims());
            Ok(Probe { key, record: ArrayShape::new(shape.element(), dims)? })
        };
        probes.map(probe).collect()
    }

    /// One more than the last iteration that a check names.
    fn iterations_asked_for(&self, key: &str) -> usize {
        let mut last = 0;
        for function in &self.cx.source.operations {
            super::checks::visit(function, &mut |op| {
                if op.name == "check.expect_serialized_eq"
                    && key_of(op) == key
                    && let Some(Attribute::Integer { value, .. }) = op.attribute("iter")
                {
                    last = last.max(usize::try_from(*value).unwrap_or(0));
                }
            });
        }
        last.saturating_add(1).min(MAX_ITERATIONS)
    }

    /// The number of iterations and the records before the first iteration.
    pub fn empty_records(&mut self, probes: &[Probe]) -> Result<Vec<InstrId>> {
        let mut records = Vec::new();
        if !probes.is_empty() {
            records.push(self.scalar(0_i64)?);
        }
        for probe in probes {
            let element = probe.record.element();
            let zero =
                if element.is_pred() { self.scalar(false)? } else { self.number(element, 0.0)? };
            records.push(self.broadcast(zero, probe.record.clone(), &[])?);
        }
        Ok(records)
    }

    /// Finds the number of iterations and the records in a loop's state, from this element on.
    pub fn find_records(&mut self, state: InstrId, first: usize, probes: &[Probe]) -> Result<()> {
        if probes.is_empty() {
            return Ok(());
        }
        let iteration = self.element_of(state, first)?;
        for (i, probe) in probes.iter().enumerate() {
            let values = self.element_of(state, first + 1 + i)?;
            self.loop_records.insert(probe.key.clone(), Record { values, iteration });
        }
        Ok(())
    }

    /// Keeps the value of a probe in its record; `false` if this is no loop that has one.
    pub fn record(&mut self, key: &str, value: InstrId) -> Result<bool> {
        let Some(&Record { values, iteration }) = self.loop_records.get(key) else {
            return Ok(false);
        };
        let record = self.array(values)?;
        let mut row = record.dims().to_vec();
        row[0] = 1;
        let row = self.reshape(value, &row)?;
        let zero = self.scalar(0_i64)?;
        let mut operands = vec![values, row, iteration];
        operands.extend((1..record.rank()).map(|_| zero));
        let with_row = self.push(DynamicUpdateSlice, &operands)?;
        // Later iterations than are asked for would replace the last.
        let count = self.scalar(record.dims()[0] as i64)?;
        let is_asked_for = self.compare(Direction::Lt, iteration, count)?;
        let is_asked_for = self.fill(is_asked_for, values)?;
        let values = self.select(is_asked_for, with_row, values)?;
        self.loop_records.insert(key.to_owned(), Record { values, iteration });
        Ok(true)
    }

    /// The number of iterations and the records after this one.
    pub fn records(&mut self, probes: &[Probe]) -> Result<Vec<InstrId>> {
        let mut records = Vec::new();
        for probe in probes {
            if let Some(&Record { values, iteration }) = self.loop_records.get(&probe.key) {
                if records.is_empty() {
                    let one = self.scalar(1_i64)?;
                    records.push(self.add(iteration, one)?);
                }
                records.push(values);
            }
        }
        Ok(records)
    }

    /// Takes the values of the iterations from the state that a loop has ended with.
    pub fn take_records(&mut self, state: InstrId, first: usize, probes: &[Probe]) -> Result<()> {
        for (i, probe) in probes.iter().enumerate() {
            let values = self.element_of(state, first + 1 + i)?;
            let dims = probe.record.dims().to_vec();
            for iteration in 0..dims[0] {
                let row = self.slice_in(values, 0, iteration, iteration + 1)?;
                let value = self.reshape(row, &dims[1..])?;
                self.probes.entry(probe.key.clone()).or_default().push(value);
            }
        }
        Ok(())
    }
}
