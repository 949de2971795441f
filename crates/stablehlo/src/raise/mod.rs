//! HLO to StableHLO: the inverse of lowering.
//!
//! StableHLO has no use for tuples, since operations have several results: a value of HLO is a tree
//! whose leaves are values of StableHLO ([`Value`]), and arguments and results of functions and
//! regions are the leaves. A computation that is called becomes a private function; one that an
//! operation applies becomes its region. Where instructions come from becomes their location.
//! Layouts, which mean nothing in helio, are left out.

mod computation;
mod control;
mod custom_call;
mod exchange;
mod operation;
mod source;
mod types;

use std::collections::HashMap;

use helio_ir::{CompId, Computation, Error, Instr, Module as Hlo, Result, Shape};

use crate::front_end;
use crate::mlir::{Attribute, Block, Field, LocId, Module, Operation, Region, Type, ValueId};
use crate::names::Names;

/// The StableHLO program that computes what a module does. Its entry is the function `main`; nested
/// tuples among its arguments and results are taken apart, in order.
///
/// `chlo`: whether operations may be CHLO's, which text has and portable artifacts have not; without
/// it, they are custom calls by the names that XLA knows (`mhlo.erf`).
///
/// Errors: `Unimplemented` for what StableHLO does not have; `ResourceExhausted` for regions that are
/// nested too deep, or that together are too large because computations are applied many times.
pub fn raise(module: &Hlo, chlo: bool) -> Result<Module> {
    let mut names = Names::default();
    names.unique("main", '_');
    let mut raising = Raising {
        hlo: module,
        output: Module::default(),
        functions: HashMap::new(),
        names,
        sources: HashMap::new(),
        chlo,
        room: MAX_OPERATIONS,
    };
    raising.output.name = Some(module.name.clone());
    let config = &module.config;
    for (name, count) in [
        ("mhlo.num_partitions", config.num_partitions),
        ("mhlo.num_replicas", config.replica_count),
    ] {
        let value = i128::try_from(count.unwrap_or(1)).unwrap_or(i128::MAX);
        let attribute = Attribute::Integer { value, ty: Type::signless(32) };
        raising.output.attributes.push((name.to_owned(), attribute));
    }
    let attributes = front_end::attributes_field(&config.frontend_attributes)?;
    raising.output.attributes.extend(attributes);
    let entry = raising.function(module.entry_id(), "main", true)?;
    raising.output.operations.push(entry);
    // Functions that are called; raising one may name others.
    let mut done = 0;
    while let Some((id, name)) = raising.called(done) {
        let function = raising.function(id, &name, false)?;
        raising.output.operations.push(function);
        done += 1;
    }
    Ok(raising.output)
}

/// How many operations a program may have.
const MAX_OPERATIONS: usize = 1 << 22;

/// How deep regions may be nested.
const MAX_DEPTH: usize = 128;

/// A value of HLO: a tree, as tuples are, of values of StableHLO.
#[derive(Clone, Debug)]
enum Value {
    Leaf(ValueId),
    Tuple(Vec<Value>),
}

impl Value {
    fn leaves(&self) -> Vec<ValueId> {
        match self {
            Value::Leaf(value) => vec![*value],
            Value::Tuple(parts) => parts.iter().flat_map(Value::leaves).collect(),
        }
    }

    /// The only leaf. Errors: it is a tuple.
    fn leaf(&self) -> Result<ValueId> {
        match self {
            Value::Leaf(value) => Ok(*value),
            Value::Tuple(_) => Err(Error::invalid("an array is needed, found a tuple")),
        }
    }

    /// A value of this shape with these leaves.
    fn of(shape: &Shape, leaves: &mut impl Iterator<Item = ValueId>) -> Result<Self> {
        match shape {
            Shape::Tuple(parts) => parts
                .iter()
                .map(|part| Value::of(part, leaves))
                .collect::<Result<_>>()
                .map(Value::Tuple),
            _ => {
                let leaf = leaves.next().map(Value::Leaf);
                leaf.ok_or_else(|| Error::internal("fewer values than a shape has leaves"))
            }
        }
    }
}

/// A module on its way.
struct Raising<'h> {
    hlo: &'h Hlo,
    output: Module,
    /// The functions of computations that are called, by their order.
    functions: HashMap<CompId, (usize, String)>,
    names: Names,
    sources: HashMap<source::Key, LocId>,
    chlo: bool,
    /// How many operations there may still be.
    room: usize,
}

impl<'h> Raising<'h> {
    fn computation(&self, id: CompId) -> &'h Computation {
        self.hlo.computation(id)
    }

    /// The name of the function of a computation.
    fn function_of(&mut self, id: CompId) -> String {
        if let Some((_, name)) = self.functions.get(&id) {
            return name.clone();
        }
        let name = self.names.unique(&self.hlo.computation(id).name, '_');
        self.functions.insert(id, (self.functions.len(), name.clone()));
        name
    }

    /// The function that was called first, second and so on.
    fn called(&self, order: usize) -> Option<(CompId, String)> {
        let mut functions = self.functions.iter();
        let found = functions.find(|(_, (number, _))| *number == order);
        found.map(|(id, (_, name))| (*id, name.clone()))
    }

    /// A computation as a function.
    fn function(&mut self, id: CompId, name: &str, is_entry: bool) -> Result<Operation> {
        let computation = self.computation(id);
        let mut block = Block::default();
        let mut arguments = Vec::new();
        let mut argument_attributes = Vec::new();
        for (number, parameter) in computation.params() {
            let instr = computation.instr(parameter);
            let value = self.argument(&instr.shape, &mut block)?;
            let location = self.location(instr)?;
            for leaf in value.leaves() {
                self.output.locate_argument(leaf, location);
                let attributes = match is_entry {
                    true => self.parameter_attributes(instr, number)?,
                    false => Vec::new(),
                };
                argument_attributes.push(Attribute::Dictionary(attributes));
            }
            arguments.push(value);
        }
        let results = self.block_of(computation, arguments, &mut block, "func.return", 0)?;
        let types = |values: &[ValueId]| -> Vec<Type> {
            values.iter().map(|&value| self.output.type_of(value).clone()).collect()
        };
        let ty = Type::Function { inputs: types(&block.arguments), results: types(&results) };
        let visibility = if is_entry { "public" } else { "private" };
        let mut function = Operation::new("func.func");
        function.attributes = vec![
            ("sym_name".to_owned(), Attribute::String(name.to_owned())),
            ("function_type".to_owned(), Attribute::Type(ty)),
            ("sym_visibility".to_owned(), Attribute::String(visibility.to_owned())),
        ];
        if argument_attributes.iter().any(|each| *each != Attribute::Dictionary(Vec::new())) {
            function
                .attributes
                .push(("arg_attrs".to_owned(), Attribute::Array(argument_attributes)));
        }
        function.regions = vec![Region { blocks: vec![block] }];
        Ok(function)
    }

    /// What is said of a parameter of the entry, which is an array: donation and sharding.
    fn parameter_attributes(&self, instr: &Instr, number: usize) -> Result<Vec<Field>> {
        let config = &self.hlo.config;
        let mut attributes = Vec::new();
        if matches!(instr.shape, Shape::Tuple(_)) {
            return Ok(attributes);
        }
        let aliases = config.input_output_alias.iter();
        let alias = aliases.clone().find(|alias| alias.parameter == number);
        let outputs = match self.hlo.entry().result_shape() {
            Shape::Tuple(parts) => parts.iter().all(|part| !matches!(part, Shape::Tuple(_))),
            _ => true,
        };
        if let Some(alias) = alias.filter(|_| outputs) {
            let result = alias.output.first().copied().unwrap_or(0) as i128;
            let attribute = Attribute::Integer { value: result, ty: Type::signless(32) };
            attributes.push(("tf.aliasing_output".to_owned(), attribute));
        } else if config.buffer_donors.iter().any(|(parameter, _)| *parameter == number) {
            attributes.push(("jax.buffer_donor".to_owned(), Attribute::Bool(true)));
        }
        if let Some(extra) = &instr.extra {
            attributes.extend(front_end::fields(extra)?);
        }
        Ok(attributes)
    }

    /// New arguments of a block for a value of this shape.
    fn argument(&mut self, shape: &Shape, block: &mut Block) -> Result<Value> {
        match shape {
            Shape::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.argument(part, block));
                parts.collect::<Result<_>>().map(Value::Tuple)
            }
            _ => {
                let value = self.output.add_value(types::ty(shape)?)?;
                block.arguments.push(value);
                Ok(Value::Leaf(value))
            }
        }
    }
}
