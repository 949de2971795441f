//! StableHLO to HLO: each operation becomes the one that means it, or arithmetic.
//!
//! Shapes come from [`helio_ir::Op::infer`] on the operands, and must then agree with the types in
//! the program; where types leave sizes open (`?`), those of the operands hold, so that a program
//! with symbolic sizes is refined by the shapes of its arguments.
//!
//! Regions become computations. What a region takes from around it becomes a part of the loop's
//! state or of the branch's argument; constants are repeated inside. A function of several results
//! gives a tuple. A function in which sizes are open, or that has checks, is inlined where it is
//! called.

mod attrs;
mod body;
mod checks;
mod chlo;
mod coefficients;
mod collective;
mod control;
mod custom_call;
mod dynamic;
mod elementwise;
mod fold;
mod forms;
mod host;
mod indexing;
mod linalg;
mod local;
mod loops;
mod manual;
mod movement;
mod operation;
mod partition;
mod probes;
mod propagation;
mod quantized;
mod random;
mod regions;
mod scan;
mod scopes;
mod source;
mod special;
mod step;
mod tiles;
mod types;
mod wishes;

use std::collections::{HashMap, HashSet};

use helio_ir::{
    AliasKind, ElementType, Error, InputOutputAlias, InstrId, Literal, Module as Hlo, Op, Result,
    Shape,
};

use crate::front_end;
use crate::interface::{Interface, ParameterInfo};
use crate::mlir::{self, Attribute, Operation, Type};
use crate::names::Names;
pub(crate) use attrs::Attrs;
use body::Body;

pub use checks::{Check, CheckKind};
pub(crate) use checks::{Stage, has_checks, process};
pub use partition::{Partitioned, lower_partitioned};

/// What a program is lowered for: of each argument its shape, or its value.
#[derive(Clone, Debug)]
pub enum Argument {
    /// An argument of a run, of this shape.
    Shape(Shape),
    /// A value known now, which is a constant of the module and no parameter.
    Value(Literal),
}

/// The module that computes a StableHLO module's entry: the function `main`, else the only one, or
/// the only one that is not private. Several results are a tuple. What the program says of donation
/// and shardings of its arguments is in the module's configuration and parameters.
///
/// Errors: what is wrong with the program and where; `Unimplemented` for operations and attributes
/// that helio does not know, and for sizes that are only known at run time.
pub fn lower(module: &mlir::Module) -> Result<Hlo> {
    let (inputs, _) = signature(entry(module)?)?;
    let shapes = inputs.iter().map(|ty| types::shape(ty).map(Argument::Shape));
    lower_for(module, &shapes.collect::<Result<Vec<_>>>()?)
}

/// The same for these arguments, whose shapes the sizes that the program leaves open follow.
/// Errors: as for [`lower`], and if the shapes are not ones that the entry takes.
pub fn lower_for(module: &mlir::Module, arguments: &[Argument]) -> Result<Hlo> {
    let entry = entry(module)?;
    let (inputs, _) = signature(entry)?;
    if inputs.len() != arguments.len() {
        let detail = format!("{} arguments for {} parameters", arguments.len(), inputs.len());
        return Err(Error::invalid(detail).at(entry.at.clone()));
    }
    for (i, (argument, ty)) in arguments.iter().zip(inputs).enumerate() {
        let shape = match argument {
            Argument::Shape(shape) => shape.clone(),
            Argument::Value(value) => value.shape(),
        };
        if !types::agrees(&shape, ty) {
            let detail = format!("argument {i} is {shape}, but the parameter is {ty}");
            return Err(Error::invalid(detail).at(entry.at.clone()));
        }
    }
    let (_, results) = signature(entry)?;
    if let Some(ty) = inputs.iter().chain(results).find(|ty| types::is_carried(ty)) {
        let detail = format!("an argument or result of type {ty}, which HLO does not have");
        return Err(Error::unimplemented(detail).at(entry.at.clone()));
    }
    let interface = Interface::of(module)?;
    let mut cx = Lowering::new(module)?;
    cx.program(entry, arguments, &interface)?;
    Ok(cx.finish())
}

/// The shapes of a program's arguments as far as it states them: sizes that it leaves open are
/// unbounded. Errors: types that HLO does not have.
pub fn argument_shapes(module: &mlir::Module) -> Result<Vec<Shape>> {
    let (inputs, _) = signature(entry(module)?)?;
    inputs.iter().map(types::shape).collect()
}

/// The element type of a scalar. Errors: the type is none of a scalar.
pub(crate) fn scalar_of(ty: &Type) -> Result<ElementType> {
    match types::shape(ty)? {
        Shape::Array(array) if array.is_scalar() => Ok(array.element()),
        _ => Err(Error::invalid(format!("a scalar is needed, found {ty}"))),
    }
}

/// The function where a program begins.
pub(crate) fn entry(module: &mlir::Module) -> Result<&Operation> {
    let functions: Vec<&Operation> =
        module.operations.iter().filter(|op| op.name == "func.func").collect();
    if let Some(main) = functions.iter().find(|op| symbol_name(op) == Some("main")) {
        return Ok(main);
    }
    let is_public = |op: &&&Operation| !matches!(op.attribute("sym_visibility"), Some(Attribute::String(v)) if v != "public");
    let mut public = functions.iter().filter(is_public);
    match (public.next(), public.next(), &functions[..]) {
        (Some(only), None, _) => Ok(only),
        (_, _, [only]) => Ok(only),
        _ => Err(Error::invalid("a program needs a function `main`, or one that is public")),
    }
}

pub(crate) fn symbol_name(op: &Operation) -> Option<&str> {
    match op.attribute("sym_name") {
        Some(Attribute::String(name)) => Some(name),
        _ => None,
    }
}

/// What a function takes and gives.
pub(crate) fn signature(function: &Operation) -> Result<(&[Type], &[Type])> {
    match function.attribute("function_type") {
        Some(Attribute::Type(Type::Function { inputs, results })) => Ok((inputs, results)),
        _ => Err(Error::invalid("a function needs a type").at(function.at.clone())),
    }
}

/// How deep regions and inlined calls may nest.
const MAX_DEPTH: usize = 128;

/// How many operations inlined functions may have together, each counted as often as it is inlined:
/// of a chain of functions, each of which calls the next one twice, there are 2^n.
const MAX_INLINED_OPERATIONS: usize = 1 << 18;

/// A module on its way.
struct Lowering<'m> {
    source: &'m mlir::Module,
    functions: HashMap<&'m str, &'m Operation>,
    output: Hlo,
    /// Functions that are lowered, by name and the shapes of their arguments.
    lowered: HashMap<(String, Vec<Shape>), helio_ir::CompId>,
    /// Functions that are being lowered or inlined: none of them may be called.
    open: Vec<&'m str>,
    /// Functions to inline where they are called.
    inlined: HashSet<&'m str>,
    /// How many operations inlined functions have had, each time they were inlined.
    inlined_operations: usize,
    names: Names,
    /// StableHLO's and CHLO's names of operations without attributes.
    elementwise: HashMap<&'static str, Op>,
    depth: usize,
    sources: source::Sources,
    /// Whether `check` operations are collected; else they are errors.
    checking: bool,
    /// How arrays are cut up, in a program for several partitions.
    partitions: partition::Partitions,
}

impl<'m> Lowering<'m> {
    fn new(source: &'m mlir::Module) -> Result<Self> {
        let mut functions = HashMap::new();
        for op in &source.operations {
            match op.name.as_str() {
                "func.func" => {
                    let name = symbol_name(op).unwrap_or_default();
                    if functions.insert(name, op).is_some() {
                        let detail = format!("function `{name}` is defined twice");
                        return Err(Error::invalid(detail).at(op.at.clone()));
                    }
                }
                "sdy.mesh" => {}
                name => {
                    let detail = format!("operation `{name}` outside of all functions");
                    return Err(Error::unimplemented(detail).at(op.at.clone()));
                }
            }
        }
        let mut output = Hlo::new(source.name.as_deref().map_or("module", |name| name));
        output.name = hlo_name(&output.name);
        let attrs = Attrs::new(&source.attributes);
        let count = |name: &str| Ok::<_, Error>(attrs.integer(name)?.map(|n| n.max(1) as usize));
        output.config.replica_count = count("mhlo.num_replicas")?.filter(|&n| n > 1);
        output.config.num_partitions = count("mhlo.num_partitions")?.filter(|&n| n > 1);
        output.config.frontend_attributes = front_end::attributes(&source.attributes);
        let inlined = checks::functions_to_inline(&functions);
        Ok(Lowering {
            source,
            functions,
            output,
            lowered: HashMap::new(),
            open: Vec::new(),
            inlined,
            inlined_operations: 0,
            names: Names::default(),
            elementwise: elementwise::table(),
            depth: 0,
            sources: source::Sources::default(),
            checking: false,
            partitions: partition::Partitions::default(),
        })
    }

    /// The module, with the tables of source places.
    fn finish(mut self) -> Hlo {
        if !self.sources.frames.frames.is_empty() {
            self.output.config.stack_frames = Some(self.sources.frames.into());
        }
        self.output
    }

    /// A name that no computation has yet.
    fn unique_name(&mut self, name: &str) -> String {
        self.names.unique(&hlo_name(name), '.')
    }

    /// The computation of a function for arguments of these shapes.
    fn function(&mut self, function: &'m Operation, shapes: &[Shape]) -> Result<helio_ir::CompId> {
        let name = symbol_name(function).unwrap_or_default();
        let key = (name.to_owned(), shapes.to_vec());
        if let Some(&id) = self.lowered.get(&key) {
            return Ok(id);
        }
        let result = self.opened(function, |cx| {
            let block = function_block(function)?;
            let name = cx.unique_name(name);
            let mut body = Body::new(cx, &name);
            for (number, (&value, shape)) in block.arguments.iter().zip(shapes).enumerate() {
                let id = body.parameter(number, shape.clone(), &format!("arg{number}"))?;
                body.bind(value, id);
            }
            let results = body.block(block)?;
            body.finish(results)
        })?;
        self.lowered.insert(key, result);
        Ok(result)
    }

    /// The entry: the function of this name for these arguments.
    fn program(
        &mut self,
        entry: &'m Operation,
        arguments: &[Argument],
        interface: &Interface,
    ) -> Result<()> {
        let (_, results) = signature(entry)?;
        let id = self.opened(entry, |cx| {
            let block = function_block(entry)?;
            let name = cx.unique_name(symbol_name(entry).unwrap_or_default());
            let mut body = Body::new(cx, &name);
            let mut number = 0;
            let infos = interface.parameters.iter();
            let arguments = block.arguments.iter().zip(arguments).zip(infos).enumerate();
            for (i, ((&value, argument), info)) in arguments {
                body.has_attributes(front_end::attributes_of_argument(entry, i));
                let location = body.cx.source.argument_locations.get(&value).copied();
                body.comes_from(None, location.unwrap_or(mlir::LocId::UNKNOWN));
                let id = match argument {
                    Argument::Value(literal) => body.literal(literal.clone())?,
                    Argument::Shape(shape) => {
                        let name = format!("arg{number}");
                        let id = body.parameter(number, shape.clone(), &name)?;
                        body.describe(number, id, info, results.len() > 1);
                        number += 1;
                        id
                    }
                };
                body.bind(value, id);
            }
            body.has_attributes(Vec::new());
            let results = body.block(block)?;
            body.finish(results)
        })?;
        self.output.set_entry(id);
        Ok(())
    }

    /// Runs what lowers a function's body. Errors: if the function calls itself.
    fn opened<T>(
        &mut self,
        function: &'m Operation,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let name = symbol_name(function).unwrap_or_default();
        if self.open.contains(&name) {
            let detail = format!("function `{name}` calls itself");
            return Err(Error::unimplemented(detail).at(function.at.clone()));
        }
        if self.open.len() >= MAX_DEPTH {
            let detail = format!("calls nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail).at(function.at.clone()));
        }
        self.open.push(name);
        let result = run(self);
        self.open.pop();
        result
    }
}

impl Body<'_, '_> {
    /// Notes what is said of a parameter: its sharding, and the results that may take its memory.
    fn describe(&mut self, number: usize, id: InstrId, info: &ParameterInfo, is_tuple: bool) {
        let config = &mut self.cx.output.config;
        if let Some(result) = info.aliased_result {
            config.input_output_alias.push(InputOutputAlias {
                output: if is_tuple { vec![result] } else { Vec::new() },
                parameter: number,
                parameter_index: Vec::new(),
                kind: AliasKind::May,
            });
        } else if info.is_donor {
            config.buffer_donors.push((number, Vec::new()));
        }
        if info.sharding.is_some() {
            let extra = self.comp.instr_mut(id).extra.get_or_insert_default();
            extra.sharding.clone_from(&info.sharding);
        }
    }
}

/// The body of a function. Errors: if it is only declared.
pub(crate) fn function_block(function: &Operation) -> Result<&mlir::Block> {
    function.regions.first().and_then(|region| region.blocks.first()).ok_or_else(|| {
        let name = symbol_name(function).unwrap_or_default();
        Error::invalid(format!("function `{name}` has no body")).at(function.at.clone())
    })
}

/// A name with all characters replaced that HLO's names cannot have.
fn hlo_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let clean: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    match clean.bytes().next() {
        Some(b) if b.is_ascii_alphabetic() || b == b'_' => clean,
        _ => format!("_{clean}"),
    }
}
