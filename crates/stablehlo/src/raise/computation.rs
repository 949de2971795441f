//! Computations as blocks: one instruction after the other.

use std::collections::HashSet;

use helio_ir::{CompId, Computation, Error, Instr, InstrId, Op, Result, Shape};

use super::{MAX_DEPTH, Raising, Value, types};
use crate::front_end;
use crate::mlir::{Attribute, Block, Field, LocId, Operation, Region, Type, ValueId};

/// A computation whose instructions become operations of a block.
pub(super) struct Frame<'r, 'b, 'h> {
    pub raising: &'r mut Raising<'h>,
    pub block: &'b mut Block,
    pub computation: &'h Computation,
    /// The values of the instructions so far.
    values: Vec<Option<Value>>,
    arguments: Vec<Value>,
    location: LocId,
    depth: usize,
    /// The `recv`s that are made where they are done, once that has been asked.
    pub(super) received_later: Option<HashSet<InstrId>>,
}

impl<'h> Raising<'h> {
    /// Puts the instructions of a computation into a block, which ends with `end` of the leaves of the
    /// result; these.
    pub(super) fn block_of(
        &mut self,
        computation: &'h Computation,
        arguments: Vec<Value>,
        block: &mut Block,
        end: &str,
        depth: usize,
    ) -> Result<Vec<ValueId>> {
        if depth >= MAX_DEPTH {
            let detail = format!("regions nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail));
        }
        let values = vec![None; computation.instrs().len()];
        let location = LocId::UNKNOWN;
        let received_later = None;
        let mut frame = Frame {
            raising: self,
            block,
            computation,
            values,
            arguments,
            location,
            depth,
            received_later,
        };
        for id in computation.ids() {
            let instr = computation.instr(id);
            frame.location = frame.raising.location(instr)?;
            let first = frame.block.operations.len();
            let value = frame
                .instruction(id, instr)
                .and_then(|value| frame.say(first, instr).map(|()| value))
                .map_err(|e| e.in_instruction(&instr.name).at(instr.at.clone()))?;
            frame.values[id.index()] = Some(value);
        }
        let results = frame.value(computation.root())?.leaves();
        frame.location = LocId::UNKNOWN;
        frame.emit(end, results.clone(), Vec::new(), &[], Vec::new())?;
        Ok(results)
    }
}

impl<'h> Frame<'_, '_, 'h> {
    /// Notes what the front end says of an instruction at the last operation that it has become, counted
    /// from `first`. (Constants beside others stand for what back ends keep.)
    pub(super) fn say(&mut self, first: usize, instr: &Instr) -> Result<()> {
        let Some(extra) = &instr.extra else { return Ok(()) };
        let fields = front_end::fields(extra)?;
        let is_constant = matches!(instr.op, Op::Constant(_));
        let made = self.block.operations[first..].iter_mut();
        let mut made = made.filter(|made| is_constant || made.name != "stablehlo.constant");
        if let Some(operation) = made.next_back() {
            let is_kept = |(name, _): &Field| !fields.iter().any(|field| field.0 == *name);
            operation.attributes.retain(is_kept);
            operation.attributes.extend(fields);
        }
        Ok(())
    }

    /// The value of an instruction that has been raised.
    pub(super) fn value(&self, id: InstrId) -> Result<Value> {
        let value = self.values.get(id.index()).cloned().flatten();
        value.ok_or_else(|| Error::internal("an operand is used before it is computed"))
    }

    pub(super) fn operand(&self, instr: &Instr, index: usize) -> Result<Value> {
        let id = instr.operands.get(index).copied();
        self.value(id.ok_or_else(|| Error::internal("an operand is missing"))?)
    }

    /// The leaves of all operands.
    pub(super) fn leaves(&self, instr: &Instr) -> Result<Vec<ValueId>> {
        let mut leaves = Vec::new();
        for &id in &instr.operands {
            leaves.extend(self.value(id)?.leaves());
        }
        Ok(leaves)
    }

    /// The argument with this number.
    pub(super) fn argument(&self, number: usize) -> Result<Value> {
        let value = self.arguments.get(number).cloned();
        value.ok_or_else(|| Error::internal("a parameter without an argument"))
    }

    /// Appends an operation whose results are of these types; its results.
    pub(super) fn emit(
        &mut self,
        name: &str,
        operands: Vec<ValueId>,
        attributes: Vec<Field>,
        results: &[Type],
        regions: Vec<Region>,
    ) -> Result<Vec<ValueId>> {
        self.raising.room = self.raising.room.checked_sub(1).ok_or_else(|| {
            let most = super::MAX_OPERATIONS;
            Error::exhausted(format!("more than {most} operations in StableHLO"))
        })?;
        let mut operation = Operation::new(name);
        operation.operands = operands;
        operation.attributes = attributes;
        operation.regions = regions;
        operation.location = self.location;
        for ty in results {
            operation.results.push(self.raising.output.add_value(ty.clone())?);
        }
        let values = operation.results.clone();
        self.block.operations.push(operation);
        Ok(values)
    }

    /// Appends an operation whose results are the leaves of a value of this shape.
    pub(super) fn emit_shape(
        &mut self,
        name: &str,
        operands: Vec<ValueId>,
        attributes: Vec<Field>,
        shape: &Shape,
        regions: Vec<Region>,
    ) -> Result<Value> {
        let results = self.emit(name, operands, attributes, &leaf_types(shape)?, regions)?;
        Value::of(shape, &mut results.into_iter())
    }

    /// A region that applies a computation to arguments of its own.
    pub(super) fn region(&mut self, id: CompId) -> Result<Region> {
        let computation = self.raising.computation(id);
        let mut block = Block::default();
        let mut arguments = Vec::new();
        for &parameter in computation.params().values() {
            let shape = computation.instr(parameter).shape.clone();
            arguments.push(self.raising.argument(&shape, &mut block)?);
        }
        self.region_of(computation, arguments, block)
    }

    /// A region that applies a computation to values of what is around it.
    pub(super) fn region_on(&mut self, id: CompId, arguments: Vec<Value>) -> Result<Region> {
        let computation = self.raising.computation(id);
        self.region_of(computation, arguments, Block::default())
    }

    fn region_of(
        &mut self,
        computation: &'h Computation,
        arguments: Vec<Value>,
        mut block: Block,
    ) -> Result<Region> {
        let depth = self.depth + 1;
        let end = "stablehlo.return";
        self.raising.block_of(computation, arguments, &mut block, end, depth)?;
        Ok(Region { blocks: vec![block] })
    }

    /// A constant.
    pub(super) fn constant(&mut self, array: &helio_ir::Array) -> Result<ValueId> {
        let ty = types::tensor(array.shape());
        let value = vec![("value".to_owned(), types::dense(array))];
        let results = self.emit("stablehlo.constant", Vec::new(), value, &[ty], Vec::new())?;
        Ok(results[0])
    }

    /// An attribute that names the function of a computation.
    pub(super) fn symbol(&mut self, id: CompId) -> Attribute {
        Attribute::Symbol(vec![self.raising.function_of(id)])
    }
}

/// The types of the leaves of a value of this shape.
pub(super) fn leaf_types(shape: &Shape) -> Result<Vec<Type>> {
    match shape {
        Shape::Tuple(parts) => {
            let mut leaves = Vec::new();
            for part in parts {
                leaves.extend(leaf_types(part)?);
            }
            Ok(leaves)
        }
        _ => Ok(vec![types::ty(shape)?]),
    }
}
