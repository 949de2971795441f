//! One instruction: which operations of StableHLO it is.

use helio_ir::ops::{DynamicReshape, RaggedDot, Rng, TopK};
use helio_ir::{Array, ArrayShape, ElementType, Error, Instr, InstrId, Literal, Op, Result, Shape};

use super::computation::Frame;
use super::{Value, types};
use crate::mlir::{Attribute, Field, Type, ValueId};
use crate::table::{self, DotDimensions, Writing};

impl Frame<'_, '_, '_> {
    /// The value of an instruction, whose operations are appended.
    pub(super) fn instruction(&mut self, id: InstrId, instr: &Instr) -> Result<Value> {
        match &instr.op {
            Op::Parameter(op) => self.argument(op.number),
            Op::Constant(op) if op.elided => {
                Err(Error::unimplemented("a constant whose value the program leaves out"))
            }
            Op::Constant(op) => self.literal(&op.literal),
            Op::Tuple(_) => {
                let parts = instr.operands.iter().map(|&operand| self.value(operand));
                parts.collect::<Result<_>>().map(Value::Tuple)
            }
            Op::GetTupleElement(op) => part(self.operand(instr, 0)?, op.index),
            Op::Copy(_) | Op::Domain(_) | Op::AsyncUpdate(_) => self.operand(instr, 0),
            Op::Bitcast(op) => self.bitcast(instr, &op.shape),
            Op::Unary(op) => self.element_wise(op.stablehlo_names()[0], instr),
            Op::Binary(op) => self.element_wise(op.stablehlo_names()[0], instr),
            Op::Call(op) => self.call(op.to_apply, instr),
            Op::Fusion(op) => self.call(op.calls, instr),
            Op::While(op) => self.while_loop(op, instr),
            Op::Conditional(op) => self.conditional(op, instr),
            Op::OptimizationBarrier(_) => self.barrier(instr),
            Op::AddDependency(_) => {
                let shapes = instr.operands.iter().map(|&id| self.shape(id).clone()).collect();
                let name = "stablehlo.optimization_barrier";
                let leaves = self.leaves(instr)?;
                let all =
                    self.emit_shape(name, leaves, Vec::new(), &Shape::Tuple(shapes), vec![])?;
                part(all, 0)
            }
            Op::CustomCall(op) => self.custom_call(op, instr),
            Op::Infeed(_)
            | Op::Outfeed(_)
            | Op::Send(_)
            | Op::SendDone(_)
            | Op::Recv(_)
            | Op::RecvDone(_) => self.host(id, instr),
            Op::AllGather(_) | Op::AllToAll(_) | Op::ReduceScatter(_) => {
                self.collective(&instr.op, instr, &instr.shape)
            }
            Op::AllReduceStart(_)
            | Op::AllReduceDone(_)
            | Op::AllGatherStart(_)
            | Op::AllGatherDone(_)
            | Op::CollectivePermuteStart(_)
            | Op::CollectivePermuteDone(_)
            | Op::CopyStart(_)
            | Op::CopyDone(_)
            | Op::AsyncStart(_)
            | Op::AsyncDone(_) => self.asynchronous(instr),
            Op::Rng(op) => self.rng(op, instr),
            Op::DynamicReshape(op) => self.dynamic_reshape(op, instr),
            Op::TopK(op) => self.top_k(op, instr),
            Op::RaggedDot(op) => self.ragged_dot(op, instr),
            _ => {
                let operands = self.leaves(instr)?;
                self.row(&instr.op, operands, instr, &instr.shape)
            }
        }
    }

    /// The shape of an instruction.
    pub(super) fn shape(&self, id: InstrId) -> &Shape {
        &self.computation.instr(id).shape
    }

    /// An operation that has a row in the table; its results are the leaves of this shape.
    pub(super) fn row(
        &mut self,
        op: &Op,
        operands: Vec<ValueId>,
        instr: &Instr,
        shape: &Shape,
    ) -> Result<Value> {
        let opcode = op.opcode();
        let missing = || Error::unimplemented(format!("StableHLO has no {opcode}"));
        let rows = Op::table();
        let row = rows.iter().find(|row| row.name == opcode);
        let name = row.and_then(|row| row.stablehlo_names.first()).ok_or_else(missing)?;
        let computation = self.computation;
        let shapes = instr.operands.iter().map(|&id| &computation.instr(id).shape);
        let shapes: Vec<&Shape> = shapes.collect();
        let mut to = Writing { operands: &shapes, attributes: Vec::new(), regions: Vec::new() };
        table::write(op, &mut to).ok_or_else(missing)??;
        let Writing { attributes, regions, .. } = to;
        let regions = regions.into_iter().map(|region| self.region(region));
        let regions = regions.collect::<Result<Vec<_>>>()?;
        self.emit_shape(name, operands, attributes, shape, regions)
    }

    /// An operation without attributes, of StableHLO or of CHLO.
    fn element_wise(&mut self, name: &str, instr: &Instr) -> Result<Value> {
        let operands = self.leaves(instr)?;
        match name.strip_prefix("chlo.") {
            Some(op) if !self.raising.chlo => {
                self.known_call(op, operands, Vec::new(), &instr.shape)
            }
            _ => self.emit_shape(name, operands, Vec::new(), &instr.shape, Vec::new()),
        }
    }

    /// A custom call by the name under which XLA knows an operation that StableHLO does not have.
    fn known_call(
        &mut self,
        op: &str,
        operands: Vec<ValueId>,
        attributes: Vec<Field>,
        shape: &Shape,
    ) -> Result<Value> {
        let target = Attribute::String(format!("mhlo.{op}"));
        let attributes = vec![
            ("call_target_name".to_owned(), target),
            ("mhlo.attributes".to_owned(), Attribute::Dictionary(attributes)),
            ("mhlo.version".to_owned(), Attribute::i64(1)),
        ];
        self.emit_shape("stablehlo.custom_call", operands, attributes, shape, Vec::new())
    }

    pub(super) fn literal(&mut self, literal: &Literal) -> Result<Value> {
        match literal {
            Literal::Array(array) => self.constant(array).map(Value::Leaf),
            Literal::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.literal(part));
                parts.collect::<Result<_>>().map(Value::Tuple)
            }
            Literal::Token => {
                let name = "stablehlo.after_all";
                self.emit_shape(name, Vec::new(), Vec::new(), &Shape::Token, Vec::new())
            }
        }
    }

    /// The same bytes under other dimensions, in row-major order; other layouts are not followed.
    fn bitcast(&mut self, instr: &Instr, to: &ArrayShape) -> Result<Value> {
        let from = self.shape(instr.operands[0]).clone();
        let is_row_major = |shape: &ArrayShape| {
            let order = shape.layout().map(|layout| layout.minor_to_major.iter().rev().copied());
            order.is_none_or(|order| order.eq(0..shape.rank()))
        };
        let from = from.as_array().filter(|from| is_row_major(from) && is_row_major(to));
        let from = from.ok_or_else(|| Error::unimplemented("a bitcast between layouts"))?;
        let mut value = self.operand(instr, 0)?.leaf()?;
        if from.element() != to.element() {
            if from.element().bits() != to.element().bits() {
                return Err(Error::unimplemented("a bitcast between types of different widths"));
            }
            let ty = types::tensor(&from.clone().with_element(to.element())?);
            value = self.one("stablehlo.bitcast_convert", vec![value], ty)?;
        }
        self.one("stablehlo.reshape", vec![value], types::tensor(to)).map(Value::Leaf)
    }

    /// An operation without attributes that has one result.
    pub(super) fn one(&mut self, name: &str, operands: Vec<ValueId>, ty: Type) -> Result<ValueId> {
        Ok(self.emit(name, operands, Vec::new(), &[ty], Vec::new())?[0])
    }

    fn rng(&mut self, op: &Rng, instr: &Instr) -> Result<Value> {
        let mut operands = self.leaves(instr)?;
        let sizes: Vec<i64> = op.shape.dims().iter().map(|&size| size as i64).collect();
        operands.push(self.constant(&Array::new([sizes.len()], sizes)?)?);
        let word = op.distribution.word().trim_start_matches("rng_").to_ascii_uppercase();
        let kind = "rng_distribution";
        let attributes = vec![(kind.to_owned(), Attribute::word("stablehlo", kind, &word))];
        self.emit_shape("stablehlo.rng", operands, attributes, &instr.shape, Vec::new())
    }

    fn dynamic_reshape(&mut self, op: &DynamicReshape, instr: &Instr) -> Result<Value> {
        let mut leaves = self.leaves(instr)?.into_iter();
        let operand = leaves.next().ok_or_else(|| Error::internal("an operand is missing"))?;
        let one = types::tensor(&ArrayShape::new(ElementType::S32, [1])?);
        let sizes = leaves.map(|size| self.one("stablehlo.reshape", vec![size], one.clone()));
        let sizes = sizes.collect::<Result<Vec<_>>>()?;
        let ty = types::tensor(&ArrayShape::new(ElementType::S32, [op.shape.rank()])?);
        let along = vec![("dimension".to_owned(), Attribute::i64(0))];
        let sizes = self.emit("stablehlo.concatenate", sizes, along, &[ty], Vec::new())?[0];
        let name = "stablehlo.dynamic_reshape";
        self.emit_shape(name, vec![operand, sizes], Vec::new(), &instr.shape, Vec::new())
    }

    fn top_k(&mut self, op: &TopK, instr: &Instr) -> Result<Value> {
        let operands = self.leaves(instr)?;
        let mut attributes = vec![("k".to_owned(), Attribute::i64(op.k as i64))];
        if self.raising.chlo && op.largest {
            return self.emit_shape("chlo.top_k", operands, attributes, &instr.shape, Vec::new());
        }
        attributes.push(("largest".to_owned(), Attribute::Bool(op.largest)));
        self.known_call("topk", operands, attributes, &instr.shape)
    }

    fn ragged_dot(&mut self, op: &RaggedDot, instr: &Instr) -> Result<Value> {
        if !self.raising.chlo {
            return Err(Error::unimplemented("StableHLO has no ragged-dot outside of CHLO"));
        }
        let mut to = Writing { operands: &[], attributes: Vec::new(), regions: Vec::new() };
        DotDimensions("ragged_dot_dimension_numbers").write(&op.dims, &mut to)?;
        let Some((_, Attribute::Struct { dialect, name, fields })) = to.attributes.first_mut()
        else {
            return Err(Error::internal("dimensions are one attribute"));
        };
        *dialect = "chlo".to_owned();
        *name = "ragged_dot".to_owned();
        for (name, list) in
            [("lhs_ragged_dimensions", &op.lhs_ragged), ("rhs_group_dimensions", &op.rhs_group)]
        {
            let list = list.iter().map(|&d| d as i64).collect();
            fields.push((name.to_owned(), Attribute::Integers(list)));
        }
        let operands = self.leaves(instr)?;
        self.emit_shape("chlo.ragged_dot", operands, to.attributes, &instr.shape, Vec::new())
    }
}

/// An element of a tuple.
pub(super) fn part(value: Value, index: usize) -> Result<Value> {
    match value {
        Value::Tuple(mut parts) if index < parts.len() => Ok(parts.swap_remove(index)),
        _ => Err(Error::invalid(format!("a value without an element {index}"))),
    }
}
