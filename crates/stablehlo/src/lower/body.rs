//! A computation being made, and the instructions that lowering puts into it.

use std::collections::HashMap;

use helio_ir::ops::{
    Broadcast, Compare, Concatenate, Constant, Convert, Direction, GetTupleElement, Iota, Order,
    Parameter, Reshape, Select, Slice, Transpose, Tuple,
};
use helio_ir::types::{Native, Number};
use helio_ir::{
    Array, ArrayShape, BinaryOp, CompId, Computation, DimKind, ElementType, Error, Extra, InferCx,
    Instr, InstrId, Literal, Location, Metadata, Op, Result, Shape, UnaryOp, dispatch_type,
};

use super::Lowering;
use super::types::Elements;
use crate::mlir::{self, LocId, ValueId};

/// A computation being made.
pub(super) struct Body<'a, 'm> {
    pub cx: &'a mut Lowering<'m>,
    pub comp: Computation,
    values: HashMap<ValueId, InstrId>,
    /// Where the operation being lowered stands.
    pub at: Option<Location>,
    metadata: Option<std::sync::Arc<Metadata>>,
    /// What the front end says of the operation being lowered.
    frontend_attributes: Vec<(String, String)>,
    /// Whether it is the entry of a program that is run for its checks.
    pub is_entry: bool,
    /// What `check` operations have found to compare.
    pub checks: Vec<super::checks::Pending>,
    /// The values of `interpreter.probe`, by name.
    pub probes: HashMap<String, Vec<InstrId>>,
    /// The records of the probes of the loop whose body it is, by name.
    pub loop_records: HashMap<String, super::probes::Record>,
}

/// A computation put aside while another one is made.
pub(super) struct Aside {
    pub comp: Computation,
    values: HashMap<ValueId, InstrId>,
}

impl<'a, 'm> Body<'a, 'm> {
    pub fn new(cx: &'a mut Lowering<'m>, name: &str) -> Self {
        Body {
            cx,
            comp: Computation::new(name),
            values: HashMap::new(),
            at: None,
            metadata: None,
            frontend_attributes: Vec::new(),
            is_entry: false,
            checks: Vec::new(),
            probes: HashMap::new(),
            loop_records: HashMap::new(),
        }
    }

    /// A computation inside of this one, which stays as it is meanwhile.
    pub fn inner(&mut self, name: &str) -> Body<'_, 'm> {
        let name = self.cx.unique_name(name);
        let mut body = Body::new(self.cx, &name);
        body.at = self.at.clone();
        body
    }

    /// Begins another computation; the one before, to come back to.
    pub fn begin(&mut self, name: &str) -> Aside {
        let comp = Computation::new(self.cx.unique_name(name));
        let mut aside = Aside { comp, values: HashMap::new() };
        self.swap(&mut aside);
        aside
    }

    /// Goes on with a computation that was put aside, and puts aside the one being made.
    pub fn swap(&mut self, aside: &mut Aside) {
        std::mem::swap(&mut self.comp, &mut aside.comp);
        std::mem::swap(&mut self.values, &mut aside.values);
    }

    /// Ends a computation that was put aside: its value is that of the root.
    pub fn end(&mut self, mut aside: Aside, root: InstrId) -> Result<CompId> {
        aside.comp.set_root(root);
        self.cx.output.push(aside.comp)
    }

    /// Ends the computation: its value is that of the one result, or a tuple.
    pub fn finish(mut self, results: Vec<InstrId>) -> Result<CompId> {
        let root = match results[..] {
            [root] => root,
            _ => self.tuple(&results)?,
        };
        self.comp.set_root(root);
        self.cx.output.push(self.comp)
    }

    /// Notes where what is lowered next comes from.
    pub fn comes_from(&mut self, at: Option<Location>, location: LocId) {
        self.at = at;
        self.metadata = self.cx.sources.metadata(self.cx.source, location);
    }

    /// Notes what the front end says of what is lowered next; what it said before.
    pub fn has_attributes(&mut self, attributes: Vec<(String, String)>) -> Vec<(String, String)> {
        std::mem::replace(&mut self.frontend_attributes, attributes)
    }

    pub fn bind(&mut self, value: ValueId, id: InstrId) {
        self.values.insert(value, id);
    }

    /// The instruction of a value. Errors: if the value is not one of this computation.
    pub fn value(&self, value: ValueId) -> Result<InstrId> {
        self.values.get(&value).copied().ok_or_else(|| {
            Error::unimplemented("a value that is used in a region which cannot take it")
        })
    }

    pub fn shape(&self, id: InstrId) -> &Shape {
        &self.comp.instr(id).shape
    }

    /// The shape of an array. Errors: if it is none.
    pub fn array(&self, id: InstrId) -> Result<ArrayShape> {
        match self.shape(id) {
            Shape::Array(array) => Ok(array.clone()),
            other => Err(Error::invalid(format!("an array is needed, found {other}"))),
        }
    }

    pub fn element(&self, id: InstrId) -> Result<ElementType> {
        Ok(self.array(id)?.element())
    }

    /// Appends an instruction; its shape is what the operation infers.
    pub fn push(&mut self, op: impl Into<Op>, operands: &[InstrId]) -> Result<InstrId> {
        let op = op.into();
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.shape(id)).collect();
        let shape = op.infer(&InferCx { operands: &shapes, module: &self.cx.output })?;
        let name = format!("{}.{}", op.opcode(), self.comp.instrs().len() + 1);
        self.push_named(name, op, operands, shape)
    }

    fn push_named(
        &mut self,
        name: String,
        op: Op,
        operands: &[InstrId],
        shape: Shape,
    ) -> Result<InstrId> {
        let mut instr = Instr::new(op, operands, shape);
        instr.name = name.into();
        let (metadata, frontend_attributes) =
            (self.metadata.clone(), self.frontend_attributes.clone());
        if metadata.is_some() || !frontend_attributes.is_empty() {
            let extra = Extra { metadata, frontend_attributes, ..Extra::default() };
            instr.extra = Some(Box::new(extra));
        }
        instr.at = self.at.clone();
        self.comp.push(instr)
    }

    pub fn parameter(&mut self, number: usize, shape: Shape, name: &str) -> Result<InstrId> {
        let op = Op::from(Parameter { number, shape: shape.clone() });
        let name = format!("{name}.{}", self.comp.instrs().len() + 1);
        self.push_named(name, op, &[], shape)
    }

    pub fn unary(&mut self, op: UnaryOp, x: InstrId) -> Result<InstrId> {
        self.push(op, &[x])
    }

    pub fn binary(&mut self, op: BinaryOp, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.push(op, &[x, y])
    }

    pub fn add(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Add, x, y)
    }

    pub fn sub(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Subtract, x, y)
    }

    pub fn mul(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Multiply, x, y)
    }

    pub fn div(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.binary(BinaryOp::Divide, x, y)
    }

    pub fn compare(&mut self, direction: Direction, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.push(Compare { direction, order: Order::Default }, &[x, y])
    }

    pub fn select(&mut self, pred: InstrId, yes: InstrId, no: InstrId) -> Result<InstrId> {
        self.push(Select, &[pred, yes, no])
    }

    pub fn convert(&mut self, x: InstrId, element: ElementType) -> Result<InstrId> {
        if self.element(x)? == element {
            return Ok(x);
        }
        self.push(Convert { element }, &[x])
    }

    pub fn literal(&mut self, literal: Literal) -> Result<InstrId> {
        self.push(Constant { literal, elided: false }, &[])
    }

    pub fn elements(&mut self, elements: Elements) -> Result<InstrId> {
        match elements {
            Elements::All(literal) => self.literal(literal),
            Elements::Splat(scalar, shape) => {
                let scalar = self.literal(scalar)?;
                self.push(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
            }
        }
    }

    pub fn scalar<T: Native>(&mut self, value: T) -> Result<InstrId> {
        self.literal(Literal::scalar(value))
    }

    /// A scalar of this type, rounded to it.
    pub fn number(&mut self, element: ElementType, value: f64) -> Result<InstrId> {
        let number = Number::Float(value);
        let array = dispatch_type!(element, T => {
            // Large integers are meant exactly, and saturate.
            Array::scalar(T::from_number(number))
        });
        self.literal(array.into())
    }

    /// This value in the shape of `like`, rounded to its type.
    pub fn like(&mut self, like: InstrId, value: f64) -> Result<InstrId> {
        let scalar = self.number(self.element(like)?, value)?;
        self.fill(scalar, like)
    }

    /// A scalar in all places of an array with the dimensions of `like`.
    pub fn fill(&mut self, scalar: InstrId, like: InstrId) -> Result<InstrId> {
        let shape = self.array(like)?.without_layout().with_element(self.element(scalar)?)?;
        if shape.is_scalar() {
            return Ok(scalar);
        }
        self.push(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
    }

    /// An array repeated along new dimensions, and along those of size 1 that are longer in `shape`.
    pub fn broadcast(
        &mut self,
        x: InstrId,
        shape: ArrayShape,
        dimensions: &[usize],
    ) -> Result<InstrId> {
        let from = self.array(x)?;
        let shape = shape.with_element(from.element())?.without_layout();
        if dimensions.len() != from.rank() || dimensions.iter().any(|&d| d >= shape.rank()) {
            let detail = format!("dimensions {dimensions:?} for {from} in {shape}");
            return Err(Error::rule("broadcast.C1", detail));
        }
        let stretched =
            |d: usize| from.dim(d) == (1, DimKind::Static) && shape.dim(dimensions[d]).0 != 1;
        let kept: Vec<usize> = (0..from.rank()).filter(|&d| !stretched(d)).collect();
        let mut x = x;
        if kept.len() < from.rank() {
            let sizes = kept.iter().map(|&d| from.dim(d));
            let shape = ArrayShape::from_dims(from.element(), sizes.collect::<Vec<_>>())?;
            x = self.push(Reshape { shape }, &[x])?;
        }
        let dimensions = kept.into_iter().map(|d| dimensions[d]).collect();
        self.push(Broadcast { shape, dimensions }, &[x])
    }

    pub fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let from = self.array(x)?;
        if from.dims() == dims && from.is_static() {
            return Ok(x);
        }
        let shape = ArrayShape::new(from.element(), dims)?;
        self.push(Reshape { shape }, &[x])
    }

    pub fn transpose(&mut self, x: InstrId, permutation: Vec<usize>) -> Result<InstrId> {
        self.push(Transpose { permutation }, &[x])
    }

    pub fn iota(&mut self, shape: ArrayShape, dimension: usize) -> Result<InstrId> {
        self.push(Iota { shape, dimension }, &[])
    }

    pub fn concatenate(&mut self, parts: &[InstrId], dimension: usize) -> Result<InstrId> {
        self.push(Concatenate { dimension }, parts)
    }

    /// The part of an array between two places of one dimension.
    pub fn slice_in(
        &mut self,
        x: InstrId,
        dimension: usize,
        start: usize,
        limit: usize,
    ) -> Result<InstrId> {
        let shape = self.array(x)?;
        let mut starts = vec![0; shape.rank()];
        let mut limits = shape.dims().to_vec();
        if dimension < shape.rank() {
            (starts[dimension], limits[dimension]) = (start, limit);
        }
        let strides = vec![1; shape.rank()];
        self.push(Slice { starts, limits, strides }, &[x])
    }

    pub fn tuple(&mut self, elements: &[InstrId]) -> Result<InstrId> {
        self.push(Tuple, elements)
    }

    pub fn element_of(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.push(GetTupleElement { index }, &[tuple])
    }

    /// The results of an operation: its value if there is one result, else the elements of a tuple.
    pub fn unpack(&mut self, id: InstrId, count: usize) -> Result<Vec<InstrId>> {
        if count == 1 {
            return Ok(vec![id]);
        }
        (0..count).map(|index| self.element_of(id, index)).collect()
    }

    /// The operations of a block; the operands of its last one.
    pub fn block(&mut self, block: &'m mlir::Block) -> Result<Vec<InstrId>> {
        let Some((last, rest)) = block.operations.split_last() else {
            return Err(Error::invalid("a block without operations").at(self.at.clone()));
        };
        self.operations(rest)?;
        if !matches!(last.name.as_str(), "func.return" | "stablehlo.return" | "sdy.return") {
            let detail = format!("a block ends with `return`, not with `{}`", last.name);
            return Err(Error::invalid(detail).at(last.at.clone()));
        }
        self.operands(last).map_err(|e| e.at(last.at.clone()))
    }

    pub fn operations(&mut self, operations: &'m [mlir::Operation]) -> Result<()> {
        operations.iter().try_for_each(|op| self.operation(op))
    }

    pub fn operands(&self, op: &mlir::Operation) -> Result<Vec<InstrId>> {
        op.operands.iter().map(|&value| self.value(value)).collect()
    }
}
