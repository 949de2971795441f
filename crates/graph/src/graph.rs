//! Graphs: the operations of a program, in the order of the calls that made them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use helio::builder::XlaOp;
use helio::{Array, ElementType, Error, Location, Result};

use crate::call::Call;
use crate::lower::Emit;
use crate::program::{Program, ProgramOptions};
use crate::{Dim, Shape, Tensor, Tensors};

/// A program under construction: inputs, and operations on them.
///
/// Operations are methods and operators of [`Tensor`], which belongs to a graph. No call panics or
/// returns an error: the first error of a graph is kept, with its place in the Rust program;
/// whatever follows does nothing, and [`Graph::compile`] reports it.
///
/// Cloning gives another handle of the same graph.
///
/// ```
/// use helio_graph::{Array, ElementType, Graph};
/// let g = Graph::new("distance");
/// let x = g.input("x", ElementType::F32, ("points", 2));
/// let y = g.input("y", ElementType::F32, ("points", 2));
/// let d = (&x - &y).square().sum(-1).sqrt();
/// let distance = g.compile(d)?;
///
/// let x = Array::new([2, 2], vec![0f32, 0.0, 1.0, 1.0])?;
/// let y = Array::new([2, 2], vec![3f32, 4.0, 1.0, 1.0])?;
/// let results = distance.run(&[x, y])?;
/// assert_eq!(results[0].as_slice::<f32>(), Some(&[5.0, 0.0][..]));
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[derive(Clone)]
pub struct Graph {
    pub(crate) state: Rc<RefCell<State>>,
}

/// What a graph has recorded. It is never borrowed while code of the user runs.
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Arc<Node>>,
    inputs: Vec<Input>,
    equations: Vec<Equation>,
    /// Inputs by number, and the values that may take over their memory.
    aliases: Vec<(usize, ValueId, Location)>,
    /// The scopes that are open, the program's first. A scope is the program, or the body of a loop
    /// or a branch.
    pub(crate) open: Vec<ScopeId>,
    /// How many scopes were ever opened.
    pub(crate) scopes: u32,
    /// The public call that is being made.
    pub(crate) call: Option<Call>,
    /// Where the user's program made the last public call.
    pub(crate) last_place: Option<Location>,
    pub(crate) error: Option<Error>,
}

/// A part of the program that runs on its own terms: the whole, a loop's body, a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopeId(pub(crate) u32);

impl ScopeId {
    pub(crate) const PROGRAM: ScopeId = ScopeId(0);
}

/// One of the values of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValueId {
    pub(crate) node: u32,
    pub(crate) output: u32,
}

/// Type and shape of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorType {
    pub(crate) dtype: ElementType,
    pub(crate) shape: Shape,
}

impl TensorType {
    pub(crate) fn new(dtype: ElementType, shape: impl Into<Shape>) -> Self {
        TensorType { dtype, shape: shape.into() }
    }
}

/// `f32[batch, 3]`
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// How an operation is written in HLO once all sizes are known.
pub(crate) type Lower = Box<dyn Fn(&Emit<'_>, &[XlaOp]) -> Result<Vec<XlaOp>> + Send + Sync>;

/// An operation.
pub(crate) struct Node {
    /// The public call that made it, as in `softmax`, and where.
    pub(crate) name: &'static str,
    pub(crate) at: Location,
    pub(crate) scope: ScopeId,
    pub(crate) operands: Vec<ValueId>,
    pub(crate) outputs: Vec<TensorType>,
    pub(crate) kind: Kind,
}

/// What makes a node's values.
pub(crate) enum Kind {
    /// An input of the program, by number.
    Input(usize),
    /// A parameter of a scope, by number.
    Parameter(usize),
    /// Instructions.
    Lower(Lower),
    /// A loop over its operands while `condition` gives true; both are scopes whose parameters are
    /// the state.
    While { condition: Body, body: Body },
    /// One of the branches, chosen by the first operand.
    Select { branches: Vec<Body> },
}

/// A scope and its results.
pub(crate) struct Body {
    pub(crate) scope: ScopeId,
    pub(crate) parameters: Vec<ValueId>,
    pub(crate) results: Vec<ValueId>,
}

/// An input of a program.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    pub(crate) at: Location,
}

/// What `rebind` asserts: two dimensions are one size whenever the program is called.
#[derive(Clone)]
pub(crate) struct Equation {
    pub(crate) found: Dim,
    pub(crate) required: Dim,
    pub(crate) axis: usize,
    pub(crate) at: Location,
}

/// Everything that programs are compiled from.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) equations: Vec<Equation>,
    pub(crate) outputs: Vec<ValueId>,
    pub(crate) aliases: Vec<Alias>,
}

/// An output that may take over the memory of an input.
pub(crate) struct Alias {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

impl Source {
    pub(crate) fn ty(&self, value: ValueId) -> &TensorType {
        &self.nodes[value.node as usize].outputs[value.output as usize]
    }

    /// The nodes of the program's inputs. (One without inputs may be a part of a graph that has some.)
    pub(crate) fn input_nodes(&self) -> impl Iterator<Item = u32> {
        let taken = |node: &Node| matches!(node.kind, Kind::Input(n) if n < self.inputs.len());
        (0..).zip(&self.nodes).filter(move |(_, node)| taken(node)).map(|(number, _)| number)
    }
}

impl Graph {
    /// A graph without operations.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let g = Graph::new("empty");
    /// assert!(g.compile([] as [Tensor; 0])?.run(&[])?.is_empty());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(name: &str) -> Self {
        let state = State {
            name: name.to_owned(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            equations: Vec::new(),
            aliases: Vec::new(),
            open: vec![ScopeId::PROGRAM],
            scopes: 1,
            call: None,
            last_place: None,
            error: None,
        };
        Graph { state: Rc::new(RefCell::new(state)) }
    }

    /// The next input of the program; inputs are passed in the order of these calls.
    ///
    /// Dimensions that are names or expressions get their sizes when the program is called: the
    /// same name must stand for the same size everywhere. Errors: `graph.C1` if there is an input of
    /// this name, `graph.C2` inside of a loop or branch, `dim.C1`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let (x, y) = (g.input("x", F32, ("n", 2)), g.input("y", F32, "n"));
    /// let scaled = g.compile(x * y.expand_dims(1))?;
    /// assert_eq!(scaled.to_string(), "example(x: f32[n, 2], y: f32[n]) -> (f32[n, 2])");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn input(&self, name: &str, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("input", || {
            let ty = TensorType::new(dtype, shape);
            ty.shape.ensure_valid()?;
            let number = {
                let mut state = self.state.borrow_mut();
                if state.open.len() > 1 {
                    let detail = format!("input {name:?} is made inside of a loop or branch");
                    return Err(Error::rule("graph.C2", detail));
                }
                if let Some(other) = state.inputs.iter().find(|input| input.name == name) {
                    let detail =
                        format!("there is an input {name:?} already, made at {}", other.at);
                    return Err(Error::rule("graph.C1", detail));
                }
                let at = state.place();
                state.inputs.push(Input { name: name.to_owned(), ty: ty.clone(), at });
                state.inputs.len() - 1
            };
            Ok(self.add(&[], vec![ty], Kind::Input(number))?.remove(0))
        })
    }

    /// A tensor that is part of the program, such as a network's weights.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.constant([[1, 2], [3, 4]]).eval()?, [[1, 2], [3, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn constant(&self, array: impl Into<Array>) -> Tensor {
        self.call("constant", || {
            let array: Array = array.into();
            let ty = TensorType::new(array.element(), array.dims());
            self.emit(&[], ty, move |emit, _| Ok(emit.builder.constant_literal(array.clone())))
        })
    }

    /// The value of a dimension, a scalar of type `s64`. Errors: `dim.C1`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// let twice = g.compile(g.dim(2 * x.dim(0)?))?;
    /// assert_eq!(twice.run(&[Array::from([0f32; 3])])?, [6i64.into()]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dim(&self, dim: impl Into<Dim>) -> Tensor {
        self.call("dim", || {
            let dim: Dim = dim.into();
            dim.ensure_valid()?;
            let ty = TensorType::new(ElementType::S64, ());
            self.emit(&[], ty, move |emit, _| Ok(emit.builder.constant_r0(emit.value(&dim)?)))
        })
    }

    /// Lets an output take over the memory of an input: state that calls hand on, such as a cache or
    /// what is trained. [`Program::execute`] gives such an argument's buffer away, and what is written
    /// of it is written where it lies; an array that is passed to [`Program::run`] is copied.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let g = Graph::new("append");
    /// let cache = g.input("cache", F32, (1024, 64));
    /// let (row, at) = (g.input("row", F32, (1, 64)), g.input("at", S32, ()));
    /// let next = cache.dynamic_update_slice_in_dim(&row, &at, 0);
    /// g.alias(&cache, &next);
    /// let append = g.compile(&next)?;
    ///
    /// let client = append.client();
    /// let mut cache = client.buffer(&Array::zeros(cache.array_shape()?)?)?;
    /// for at in 0..3 {
    ///     let row = client.buffer(&Array::new([1, 64], vec![at as f32; 64])?)?;
    ///     let at = client.buffer(&Array::from(at))?;
    ///     cache = append.execute(&[&cache, &row, &at], &Default::default())?.remove(0);
    /// }
    /// assert_eq!(cache.to_array()?.get([2, 63]), Some(Number::Float(2.0)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Errors: `graph.C7` unless the first is an input, and both have the same type and shape; of
    /// [`Graph::compile`], `graph.C7` unless the second is one of its outputs, and neither is in
    /// another alias.
    #[track_caller]
    pub fn alias(&self, input: &Tensor, output: &Tensor) {
        self.perform("alias", || {
            let (from, to) = (self.operand(input)?, self.operand(output)?);
            let (taken, given) = (input.ty()?, output.ty()?);
            if taken != given {
                let detail = format!("an output of {given} cannot take over an input of {taken}");
                return Err(Error::rule("graph.C7", detail));
            }
            let mut state = self.state.borrow_mut();
            let Kind::Input(number) = state.nodes[from.node as usize].kind else {
                let detail = "the memory of what is no input cannot be taken over";
                return Err(Error::rule("graph.C7", detail));
            };
            let at = state.place();
            state.aliases.push((number, to, at));
            Ok(())
        });
    }

    /// Checks the program that computes these tensors, one, an array, a tuple or a vector of them,
    /// and compiles it, unless it has symbolic dimensions: then it is compiled for each distinct
    /// size when that is first asked for.
    ///
    /// Errors: the first error of any call; `graph.C3` if nothing says what a name stands for;
    /// `ResourceExhausted`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", S32, 2);
    /// let both = g.compile((&x + 1, x.sum(0)))?;
    /// assert_eq!(both.run(&[Array::from([1, 2])])?, [[2, 3].into(), 3.into()]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn compile(&self, outputs: impl Tensors) -> Result<Program> {
        self.compile_with(outputs, &ProgramOptions::default())
    }

    /// The same with options. Errors: as for [`Graph::compile`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let client = Client::new(&helio_graph::ClientOptions::default().with_threads(1));
    /// let x = g.input("x", S32, 2);
    /// let program = g.compile_with(x + 1, &ProgramOptions::default().with_client(client))?;
    /// assert_eq!(program.run(&[Array::from([1, 2])])?, [[2, 3].into()]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn compile_with(&self, outputs: impl Tensors, options: &ProgramOptions) -> Result<Program> {
        let outputs = outputs.tensors();
        let at = self.caller().place;
        if let Some(error) = self.error() {
            return Err(error);
        }
        let values = outputs.iter().map(|output| self.output(output)).collect::<Result<Vec<_>>>();
        let values = values.map_err(|error| error.at(Some(at.clone())))?;
        let state = self.state.borrow();
        let source = Source {
            name: state.name.clone(),
            nodes: state.nodes.clone(),
            inputs: state.inputs.clone(),
            equations: state.equations.clone(),
            aliases: state.aliases(&values)?,
            outputs: values,
        };
        drop(state);
        Program::new(source, options).map_err(|error| error.at(Some(at)))
    }

    /// The program that computes a tensor that depends on no input, and so takes none. Errors: as for
    /// [`Graph::compile`]; `graph.C8`.
    #[track_caller]
    pub(crate) fn compile_without_inputs(&self, output: &Tensor) -> Result<Program> {
        let at = self.caller().place;
        self.error().map_or(Ok(()), Err)?;
        let outputs = vec![self.output(output).map_err(|error| error.at(Some(at.clone())))?];
        let state = self.state.borrow();
        if let Some(input) = state.input_of(&outputs) {
            let detail = format!(
                "what is evaluated depends on input {:?}, without which it has no value\n  \
                 help: compile and run it",
                input.name
            );
            return Err(Error::rule("graph.C8", detail).in_instruction("eval").at(Some(at)));
        }
        let (name, nodes) = (state.name.clone(), state.nodes.clone());
        drop(state);
        let (inputs, equations, aliases) = Default::default();
        let source = Source { name, nodes, inputs, equations, aliases, outputs };
        Program::new(source, &ProgramOptions::default()).map_err(|error| error.at(Some(at)))
    }

    /// The first error so far.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.zeros(F32, 2) + g.zeros(F32, 3);
    /// let error = g.error().expect("shapes that do not broadcast");
    /// assert_eq!((error.rule_id(), x.eval()), (Some("broadcast.C1"), Err(error)));
    /// ```
    pub fn error(&self) -> Option<Error> {
        self.state.borrow().error.clone()
    }

    /// Adds an operation with one value, which `lower` writes in HLO.
    pub(crate) fn emit(
        &self,
        operands: &[&Tensor],
        ty: TensorType,
        lower: impl Fn(&Emit<'_>, &[XlaOp]) -> Result<XlaOp> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let lower = move |emit: &Emit<'_>, operands: &[XlaOp]| Ok(vec![lower(emit, operands)?]);
        Ok(self.emit_many(operands, vec![ty], lower)?.remove(0))
    }

    /// Adds an operation with any number of values.
    pub(crate) fn emit_many(
        &self,
        operands: &[&Tensor],
        outputs: Vec<TensorType>,
        lower: impl Fn(&Emit<'_>, &[XlaOp]) -> Result<Vec<XlaOp>> + Send + Sync + 'static,
    ) -> Result<Vec<Tensor>> {
        self.add(operands, outputs, Kind::Lower(Box::new(lower)))
    }

    /// Adds a node. Errors: `graph.C4` if an operand is not of this graph, `graph.C5` if it belongs
    /// to the body of a loop or to a branch that is complete, `dim.C1`.
    pub(crate) fn add(
        &self,
        operands: &[&Tensor],
        outputs: Vec<TensorType>,
        kind: Kind,
    ) -> Result<Vec<Tensor>> {
        for ty in &outputs {
            ty.shape.ensure_valid()?;
        }
        let operands = operands.iter().map(|operand| self.operand(operand));
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let mut state = self.state.borrow_mut();
        let node = u32::try_from(state.nodes.len())
            .map_err(|_| Error::exhausted("a graph has too many operations"))?;
        let tensors = (0..)
            .zip(&outputs)
            .map(|(output, ty)| Tensor::new(self.clone(), ValueId { node, output }, ty.clone()));
        let tensors = tensors.collect();
        let (name, at, scope) = (state.call_name(), state.place(), state.scope());
        state.nodes.push(Arc::new(Node { name, at, scope, operands, outputs, kind }));
        Ok(tensors)
    }

    /// Asserts that two dimensions are one size whenever the program is called.
    pub(crate) fn assert_equal(&self, axis: usize, found: &Dim, required: &Dim) {
        let mut state = self.state.borrow_mut();
        let at = state.place();
        let (found, required) = (found.clone(), required.clone());
        state.equations.push(Equation { found, required, axis, at });
    }
}

/// The nodes on which values depend, those in bodies included, in order.
pub(crate) fn needed_nodes(nodes: &[Arc<Node>], values: &[ValueId]) -> BTreeSet<u32> {
    let mut needed = BTreeSet::new();
    let mut pending: Vec<u32> = values.iter().map(|value| value.node).collect();
    while let Some(number) = pending.pop() {
        if !needed.insert(number) {
            continue;
        }
        let node = &nodes[number as usize];
        let bodies = match &node.kind {
            Kind::While { condition, body } => vec![condition, body],
            Kind::Select { branches } => branches.iter().collect(),
            Kind::Input(_) | Kind::Parameter(_) | Kind::Lower(_) => Vec::new(),
        };
        let inside =
            bodies.into_iter().flat_map(|body| body.parameters.iter().chain(&body.results));
        pending.extend(node.operands.iter().chain(inside).map(|value| value.node));
    }
    needed
}

impl State {
    /// An input on which values depend, be it by sizes that only its argument tells.
    fn input_of(&self, values: &[ValueId]) -> Option<&Input> {
        let needed = needed_nodes(&self.nodes, values);
        needed.into_iter().find_map(|number| {
            let node = &self.nodes[number as usize];
            let mut sizes = node.outputs.iter().flat_map(|output| output.shape.iter());
            match node.kind {
                Kind::Input(n) => self.inputs.get(n),
                _ if sizes.any(|dim| dim.size().is_none()) => self.inputs.first(),
                _ => None,
            }
        })
    }

    /// The aliases of a program with these outputs. Errors: `graph.C7`.
    fn aliases(&self, outputs: &[ValueId]) -> Result<Vec<Alias>> {
        let mut aliases: Vec<Alias> = Vec::with_capacity(self.aliases.len());
        for (input, value, at) in &self.aliases {
            let input = *input;
            let name = &self.inputs[input].name;
            let refuse = |detail: String| {
                Err(Error::rule("graph.C7", detail).in_instruction("alias").at(Some(at.clone())))
            };
            let Some(output) = outputs.iter().position(|output| output == value) else {
                return refuse(format!(
                    "what takes over input {name:?} is no output of the program"
                ));
            };
            let is_taken = |alias: &Alias| alias.input == input || alias.output == output;
            if aliases.iter().any(is_taken) {
                return refuse(format!("input {name:?} or output {output} is in another alias"));
            }
            aliases.push(Alias { input, output });
        }
        Ok(aliases)
    }

    fn scope(&self) -> ScopeId {
        self.open.last().copied().unwrap_or(ScopeId::PROGRAM)
    }

    fn call_name(&self) -> &'static str {
        self.call.as_ref().map_or("", |call| call.name)
    }

    /// Where the call stands that is being made. (Nothing is added but in a call.)
    #[track_caller]
    fn place(&self) -> Location {
        self.call.as_ref().map_or_else(Location::caller, |call| call.at.place.clone())
    }
}

/// The operations with their operands and types, one a line.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever is written to may use the graph.
        let state = self.state.borrow();
        let (name, nodes, inputs) = (state.name.clone(), state.nodes.clone(), state.inputs.clone());
        drop(state);
        writeln!(f, "graph {name}:")?;
        for (number, node) in nodes.iter().enumerate() {
            let types: Vec<_> = node.outputs.iter().map(TensorType::to_string).collect();
            let operands = node.operands.iter().map(|value| match value.output {
                0 => format!("%{}", value.node),
                output => format!("%{}.{output}", value.node),
            });
            let operands = operands.collect::<Vec<_>>().join(", ");
            write!(f, "  %{number} = ")?;
            match node.kind {
                Kind::Input(input) => write!(f, "input {:?}", inputs[input].name)?,
                Kind::Parameter(parameter) => write!(f, "parameter {parameter}")?,
                _ => write!(f, "{}({operands})", node.name)?,
            }
            writeln!(f, ": {}", types.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.state.borrow().name.clone();
        write!(f, "Graph({name:?})")
    }
}
