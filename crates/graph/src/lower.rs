//! From a graph and the sizes of its dimensions to an HLO module.

use std::collections::{BTreeMap, BTreeSet};

use helio::builder::{XlaBuilder, XlaComputation, XlaOp};
use helio::ir::{AliasKind, ArrayShape, BinaryOp, Metadata};
use helio::{ElementType, Error, Location, Module, Result, Shape as HloShape};

use crate::graph::{Body, Kind, Node, ScopeId, Source, TensorType, ValueId};
use crate::sizes::Sizes;
use crate::{Dim, Shape};

/// What writing an operation in HLO needs to know.
pub(crate) struct Emit<'a> {
    /// The computation that instructions are appended to.
    pub(crate) builder: &'a XlaBuilder,
    sizes: &'a Sizes,
    /// Where the operation stands.
    at: &'a Location,
}

impl Emit<'_> {
    /// The value of a dimension, which may be negative in the middle of expressions.
    pub(crate) fn value(&self, dim: &Dim) -> Result<i64> {
        self.sizes.value(dim)
    }

    /// The size of a dimension. Errors: `dim.C2` if it is negative.
    pub(crate) fn size(&self, dim: &Dim) -> Result<usize> {
        self.sizes.size(dim)
    }

    /// The sizes of a shape. Errors: `dim.C2`.
    pub(crate) fn sizes(&self, shape: &Shape) -> Result<Vec<usize>> {
        shape.iter().map(|dim| self.size(dim)).collect()
    }

    /// The shape in HLO. Errors: `dim.C2`, too large a shape.
    pub(crate) fn shape(&self, ty: &TensorType) -> Result<ArrayShape> {
        ArrayShape::new(ty.dtype, self.sizes(&ty.shape)?)
    }

    /// A computation that the operation calls; `write` gives its root.
    pub(crate) fn computation(
        &self,
        name: &str,
        write: impl FnOnce(&XlaBuilder) -> XlaOp,
    ) -> Result<XlaComputation> {
        let builder = XlaBuilder::new(name);
        builder.with_place(self.at.clone(), || builder.build_with_root(write(&builder)))
    }

    /// The computation of two scalars that reductions fold with.
    pub(crate) fn scalar(&self, op: BinaryOp, element: ElementType) -> Result<XlaComputation> {
        self.computation(&format!("{}_{element}", op.name()), |builder| {
            let parameter = |number| builder.parameter(number, HloShape::scalar(element), "");
            parameter(0).binary(op, parameter(1))
        })
    }
}

/// The module for these sizes.
pub(crate) fn lower(source: &Source, sizes: &Sizes) -> Result<Module> {
    let lowering = Lowering::new(source, sizes);
    let builder = XlaBuilder::new(&source.name);
    let mut values = BTreeMap::new();
    // The program takes all of its inputs, needed or not.
    for node in source.input_nodes() {
        lowering.write(&builder, node, &mut values)?;
    }
    lowering.fill(&builder, ScopeId::PROGRAM, &source.outputs, &mut values)?;
    let outputs = look_up(&source.outputs, &values)?;
    let root = match &*outputs {
        [output] => output.clone(),
        _ => builder.tuple(&outputs),
    };
    for alias in &source.aliases {
        let output = if outputs.len() == 1 { &[][..] } else { &[alias.output] };
        builder.set_up_alias(output, alias.input, &[], AliasKind::May);
    }
    Ok(builder.build_with_root(root)?.into_module())
}

type Values = BTreeMap<ValueId, XlaOp>;

struct Lowering<'a> {
    source: &'a Source,
    sizes: &'a Sizes,
    /// For nodes with bodies: the values from outside that these use, in order.
    free: BTreeMap<u32, Vec<ValueId>>,
}

impl<'a> Lowering<'a> {
    fn new(source: &'a Source, sizes: &'a Sizes) -> Self {
        let mut lowering = Lowering { source, sizes, free: BTreeMap::new() };
        // Bodies are complete before the node that has them is made, so inner ones come first.
        for (number, node) in (0..).zip(&source.nodes) {
            let bodies: Vec<&Body> = match &node.kind {
                Kind::While { condition, body } => vec![condition, body],
                Kind::Select { branches } => branches.iter().collect(),
                Kind::Input(_) | Kind::Parameter(_) | Kind::Lower(_) => continue,
            };
            let free: BTreeSet<_> =
                bodies.into_iter().flat_map(|body| lowering.free_values_of_body(body)).collect();
            lowering.free.insert(number, free.into_iter().collect());
        }
        lowering
    }

    fn node(&self, number: u32) -> &'a Node {
        &self.source.nodes[number as usize]
    }

    fn free_values(&self, number: u32) -> &[ValueId] {
        self.free.get(&number).map_or(&[], |free| free)
    }

    fn free_values_of_body(&self, body: &Body) -> Vec<ValueId> {
        let needed = self.needed(body.scope, &body.results);
        let inside = needed.iter().flat_map(|&number| {
            self.node(number).operands.iter().chain(self.free_values(number)).copied()
        });
        let used = inside.chain(body.results.iter().copied());
        used.filter(|value| self.node(value.node).scope != body.scope).collect()
    }

    /// The nodes of a scope on which its results depend, in order.
    fn needed(&self, scope: ScopeId, results: &[ValueId]) -> BTreeSet<u32> {
        let mut needed = BTreeSet::new();
        let mut pending: Vec<u32> = results.iter().map(|value| value.node).collect();
        while let Some(number) = pending.pop() {
            let node = self.node(number);
            if node.scope == scope && needed.insert(number) {
                let used = node.operands.iter().chain(self.free_values(number));
                pending.extend(used.map(|value| value.node));
            }
        }
        needed
    }

    /// Writes the nodes of a scope that its results need. `values` has the inputs or parameters,
    /// and what comes from outside.
    fn fill(
        &self,
        builder: &XlaBuilder,
        scope: ScopeId,
        results: &[ValueId],
        values: &mut Values,
    ) -> Result<()> {
        for number in self.needed(scope, results) {
            if !values.contains_key(&ValueId { node: number, output: 0 }) {
                self.write(builder, number, values)?;
            }
        }
        Ok(())
    }

    /// Writes one node.
    fn write(&self, builder: &XlaBuilder, number: u32, values: &mut Values) -> Result<()> {
        let node = self.node(number);
        let ops = builder.with_place(node.at.clone(), || {
            builder.with_op_metadata(metadata(node), || self.ops(builder, number, values))
        });
        let ops = ops.and_then(|ops| self.checked(builder, node, ops));
        let ops = ops.map_err(|e| e.in_instruction(node.name).at(Some(node.at.clone())))?;
        let outputs = (0..).map(|output| ValueId { node: number, output });
        values.extend(outputs.zip(ops));
        Ok(())
    }

    fn ops(&self, builder: &XlaBuilder, number: u32, values: &Values) -> Result<Vec<XlaOp>> {
        let node = self.node(number);
        let emit = Emit { builder, sizes: self.sizes, at: &node.at };
        let operands = look_up(&node.operands, values)?;
        let free = self.free_values(number);
        match &node.kind {
            Kind::Input(input) => {
                let shape = emit.shape(&node.outputs[0])?;
                Ok(vec![builder.parameter(*input, shape, &self.source.inputs[*input].name)])
            }
            Kind::Lower(lower) => lower(&emit, &operands),
            Kind::While { condition, body } => {
                let outside = look_up(free, values)?;
                self.loop_ops(&emit, [condition, body], free, operands, outside)
            }
            Kind::Select { branches } => {
                let outside = look_up(free, values)?;
                let results = node.outputs.len();
                self.choice_ops(&emit, branches, free, &operands, outside, results)
            }
            Kind::Parameter(_) => Err(Error::internal("a parameter without a value")),
        }
    }

    /// Errors: `Internal` unless what was written has the types that the graph promised.
    fn checked(&self, builder: &XlaBuilder, node: &Node, ops: Vec<XlaOp>) -> Result<Vec<XlaOp>> {
        let emit = Emit { builder, sizes: self.sizes, at: &node.at };
        for (op, ty) in ops.iter().zip(&node.outputs) {
            let (found, promised) = (op.array_shape()?, emit.shape(ty)?);
            if !found.same(&promised) {
                let detail = format!("{found} was made where the graph has {ty}, {promised}");
                return Err(Error::internal(detail));
            }
        }
        Ok(ops)
    }

    /// A loop. What its bodies use from outside becomes part of its state.
    fn loop_ops(
        &self,
        emit: &Emit<'_>,
        [condition, body]: [&Body; 2],
        free: &[ValueId],
        mut state: Vec<XlaOp>,
        outside: Vec<XlaOp>,
    ) -> Result<Vec<XlaOp>> {
        let count = state.len();
        state.extend(outside);
        let init = emit.builder.tuple(&state);
        let shape = init.shape()?;
        let condition =
            self.body(emit.at, "condition", condition, free, &shape, |_, results, _| {
                results
                    .first()
                    .cloned()
                    .ok_or_else(|| Error::internal("a condition without a result"))
            })?;
        let body =
            self.body(emit.at, "body", body, free, &shape, |builder, results, outside| {
                Ok(builder.tuple(&[results, outside].concat()))
            })?;
        let last = init.while_loop(&condition, &body);
        Ok((0..count).map(|i| last.get_tuple_element(i)).collect())
    }

    /// A choice. What its branches use from outside is passed to each of them.
    fn choice_ops(
        &self,
        emit: &Emit<'_>,
        branches: &[Body],
        free: &[ValueId],
        operands: &[XlaOp],
        outside: Vec<XlaOp>,
        results: usize,
    ) -> Result<Vec<XlaOp>> {
        let (index, state) = operands.split_first().ok_or_else(|| Error::internal("no index"))?;
        let argument = emit.builder.tuple(&[state, &outside].concat());
        let shape = argument.shape()?;
        let branches = branches.iter().map(|branch| {
            self.body(emit.at, "branch", branch, free, &shape, |builder, results, _| {
                Ok(builder.tuple(results))
            })
        });
        let branches = branches.collect::<Result<Vec<_>>>()?;
        let arguments = vec![argument; branches.len()];
        let chosen = index.conditional_indexed(&branches, &arguments);
        Ok((0..results).map(|i| chosen.get_tuple_element(i)).collect())
    }

    /// A scope as a computation of one tuple: its parameters, then the values from outside.
    fn body(
        &self,
        at: &Location,
        name: &str,
        body: &Body,
        free: &[ValueId],
        shape: &HloShape,
        root: impl FnOnce(&XlaBuilder, &[XlaOp], &[XlaOp]) -> Result<XlaOp>,
    ) -> Result<XlaComputation> {
        let builder = XlaBuilder::new(name);
        builder.with_place(at.clone(), || {
            let state = builder.parameter(0, shape.clone(), "state");
            let all = body.parameters.iter().chain(free).copied();
            let mut values: Values =
                all.enumerate().map(|(i, value)| (value, state.get_tuple_element(i))).collect();
            let outside = look_up(free, &values)?;
            self.fill(&builder, body.scope, &body.results, &mut values)?;
            let root = root(&builder, &look_up(&body.results, &values)?, &outside)?;
            builder.build_with_root(root)
        })
    }
}

fn look_up(wanted: &[ValueId], values: &Values) -> Result<Vec<XlaOp>> {
    let found = wanted.iter().map(|value| values.get(value).cloned());
    let found: Option<Vec<_>> = found.collect();
    found.ok_or_else(|| Error::internal("a value is used before it is made"))
}

/// Where an operation comes from, for whoever reads the HLO.
fn metadata(node: &Node) -> Metadata {
    let (file, line) = match node.at {
        Location::Rust { file, line, .. } => (Some(file.to_owned()), Some(i64::from(line))),
        Location::Text { .. } => (None, None),
    };
    // A parameter has the name of its input already.
    let is_named = !node.name.is_empty() && !matches!(node.kind, Kind::Input(_));
    let name = is_named.then(|| node.name.to_owned());
    Metadata { op_name: name, source_file: file, source_line: line, ..Metadata::default() }
}
