//! The files of `jax.export` (`exported.serialize()`): bytecode of a program, and how it is called.
//!
//! A file is a flatbuffer whose root table holds the program as a portable artifact, the trees of
//! Python containers that its arguments and results were taken from, the platforms that it was
//! lowered for, and which of the arguments the program still has. Derivatives that the file may hold
//! besides, and types, which the program states itself, are not looked at.

mod flatbuffer;

use helio_ir::types::Number;
use helio_ir::{Array, Error, Literal, Native as _, Result, Shape, dispatch_type};

use crate::bytecode;
use crate::interface::{Interface, user_name};
use crate::lower::{self, Argument};
use crate::mlir::{Module, Operation, Type};
use flatbuffer::{File, Table};

/// The fields of the root table, by number.
mod field {
    pub(super) const FUNCTION: usize = 1;
    pub(super) const IN_TREE: usize = 2;
    pub(super) const OUT_TREE: usize = 4;
    pub(super) const PLATFORMS: usize = 9;
    pub(super) const MODULE: usize = 13;
    pub(super) const CALLING_CONVENTION: usize = 14;
    pub(super) const KEPT: usize = 15;
}

/// The fields of a tree's node.
mod node {
    pub(super) const KIND: usize = 0;
    pub(super) const CHILDREN: usize = 1;
    pub(super) const NAMES: usize = 2;
}

/// The conventions by which the program of a file may be called: in all of these the first argument
/// is the number of the platform, if there are several, and sizes are taken from the arguments.
const CONVENTIONS: std::ops::RangeInclusive<u16> = 9..=10;

/// What JAX calls the function that `main` calls, if sizes or the platform are arguments of it.
const WRAPPED: &str = "_wrapped_jax_export_main";

/// How deep containers may be nested.
const MAX_DEPTH: usize = 64;

/// A program that `jax.export` has written.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The name of the Python function.
    pub function: String,
    /// The program.
    pub module: Module,
    /// The platforms for which it was lowered: `cpu`, `tpu`.
    pub platforms: Vec<String>,
    /// Where each argument of the program stands in those of the Python function, as JAX writes it:
    /// `args[0]['w']`, `kwargs['x']`; without those that the program does not use.
    pub arguments: Vec<String>,
    /// Where each result stands in what the Python function gives: `result['loss']`.
    pub results: Vec<String>,
}

/// Whether a file is one of `jax.export`, by its form.
pub fn is_export(file: &[u8]) -> bool {
    let file = File::new(file);
    let module = file.root().and_then(|root| root.bytes(field::MODULE));
    matches!(module, Ok(Some(module)) if bytecode::is_bytecode(module))
}

impl Exported {
    /// Reads a file. Errors: `InvalidArgument` for what JAX does not write, and those of its bytecode;
    /// `Unimplemented` for another calling convention.
    pub fn read(file: &[u8]) -> Result<Self> {
        let file = File::new(file);
        let root = file.root()?;
        let convention = root.u16(field::CALLING_CONVENTION)?;
        if !CONVENTIONS.contains(&convention) {
            let (first, last) = CONVENTIONS.into_inner();
            return Err(Error::unimplemented(format!(
                "a file of jax.export with calling convention {convention}; {first} to {last} are \
                 known"
            )));
        }
        let module = root.bytes(field::MODULE)?;
        let module = module.ok_or_else(|| flatbuffer::wrong("the root has no program"))?;
        let arguments = match root.table(field::IN_TREE)? {
            Some(tree) => argument_paths(&tree)?,
            None => Vec::new(),
        };
        let mut results = Vec::new();
        if let Some(tree) = root.table(field::OUT_TREE)? {
            leaves(&tree, "result", 0, &mut results)?;
        }
        let kept = root.u16s(field::KEPT)?;
        let kept = kept.into_iter().map(|i| {
            let path = arguments.get(usize::from(i)).cloned();
            path.ok_or_else(|| {
                let count = arguments.len();
                flatbuffer::wrong(&format!("argument {i} is kept, of {count}"))
            })
        });
        Ok(Exported {
            function: root.string(field::FUNCTION)?.unwrap_or_default(),
            module: bytecode::read(module)?,
            platforms: root.strings(field::PLATFORMS)?,
            arguments: kept.collect::<Result<_>>()?,
            results,
        })
    }

    /// The shapes of the arguments as far as the program states them, without the platform's number.
    pub fn argument_shapes(&self) -> Result<Vec<Shape>> {
        let mut shapes = lower::argument_shapes(&self.module)?;
        shapes.drain(..self.platform_arguments(shapes.len())?);
        Ok(shapes)
    }

    /// What is known of arguments and results besides their shapes. The name of an argument is that of
    /// the function's parameter and the path in it (`params['w']`), or else the path in all arguments;
    /// the name of a result is its path.
    pub fn interface(&self) -> Result<Interface> {
        let mut interface = Interface::of(&self.module)?;
        let first = self.platform_arguments(interface.parameters.len())?;
        interface.parameters.drain(..first);
        let inner = self.inner_names();
        for (i, info) in interface.parameters.iter_mut().enumerate() {
            let name = info.name.take().or_else(|| inner.get(i).cloned().flatten());
            info.name = name.or_else(|| self.arguments.get(i).cloned());
        }
        for (info, path) in interface.results.iter_mut().zip(&self.results) {
            info.name.get_or_insert_with(|| path.clone());
        }
        Ok(interface)
    }

    /// The program in HLO, for arguments of these shapes. Of several platforms it is the program for
    /// `cpu`, else that for the first. Errors: as for [`lower_for`](crate::lower_for).
    pub fn lower_for(&self, shapes: &[Shape]) -> Result<helio_ir::Module> {
        let (inputs, _) = lower::signature(lower::entry(&self.module)?)?;
        let mut arguments = Vec::new();
        if self.platform_arguments(inputs.len())? == 1 {
            let number = self.platforms.iter().position(|name| name == "cpu").unwrap_or(0);
            arguments.push(Argument::Value(platform_number(&inputs[0], number)?));
        }
        arguments.extend(shapes.iter().cloned().map(Argument::Shape));
        lower::lower_for(&self.module, &arguments)
    }

    /// The names of the arguments in the function that `main` only calls, once it has looked at sizes:
    /// there they come after those for platform and sizes.
    fn inner_names(&self) -> Vec<Option<String>> {
        let is_inner =
            |op: &&Operation| lower::symbol_name(op).is_some_and(|name| name.starts_with(WRAPPED));
        let inner = self.module.operations.iter().find(is_inner);
        let arguments = match inner.map(lower::function_block) {
            Some(Ok(block)) => &block.arguments[..],
            _ => &[],
        };
        let first = arguments.len().saturating_sub(self.arguments.len());
        let location = |value| self.module.argument_locations.get(value).copied();
        let name = |value| user_name(&self.module, location(value)?);
        arguments[first..].iter().map(name).collect()
    }

    /// How many of a program's arguments, of which there are `count`, say which platform it runs on.
    /// Errors: there are other arguments that the file does not tell of.
    fn platform_arguments(&self, count: usize) -> Result<usize> {
        let expected = usize::from(self.platforms.len() > 1);
        match count.checked_sub(self.arguments.len()) {
            Some(found) if found == expected => Ok(found),
            // Tokens come before the arrays.
            Some(_) => Err(Error::unimplemented("a file of jax.export with ordered effects")),
            None => Err(flatbuffer::wrong("the program has fewer arguments than the file says")),
        }
    }
}

/// The number of a platform, of the type of the program's argument.
fn platform_number(ty: &Type, number: usize) -> Result<Literal> {
    let element = lower::scalar_of(ty)?;
    let number = Number::Int(number as i128);
    Ok(dispatch_type!(element, T => Array::scalar(T::from_number(number))).into())
}

/// The paths of the leaves of the arguments, a pair of positional ones and those with names.
fn argument_paths(tree: &Table<'_>) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let children = tree.tables(node::CHILDREN)?;
    let [positional, named] = &children[..] else {
        return Err(flatbuffer::wrong("the arguments are not a pair of a tuple and a dictionary"));
    };
    leaves(positional, "args", 0, &mut paths)?;
    leaves(named, "kwargs", 0, &mut paths)?;
    Ok(paths)
}

/// Appends the path of each leaf. Errors: the tree is deeper or larger than a limit.
fn leaves(tree: &Table<'_>, path: &str, depth: usize, paths: &mut Vec<String>) -> Result<()> {
    tree.file.charge(path.len())?;
    if depth == MAX_DEPTH {
        let detail = format!("flatbuffer: containers nested more than {MAX_DEPTH} deep");
        return Err(Error::exhausted(detail));
    }
    let children = tree.tables(node::CHILDREN)?;
    match tree.u8(node::KIND)? {
        0 => paths.push(path.to_owned()),
        1 => {}
        2 | 3 | 5 => {
            for (i, child) in children.iter().enumerate() {
                leaves(child, &format!("{path}[{i}]"), depth + 1, paths)?;
            }
        }
        4 => {
            let names = tree.strings(node::NAMES)?;
            if names.len() != children.len() {
                return Err(flatbuffer::wrong("a dictionary has a name for each entry"));
            }
            for (name, child) in names.iter().zip(&children) {
                leaves(child, &format!("{path}['{name}']"), depth + 1, paths)?;
            }
        }
        kind => return Err(flatbuffer::wrong(&format!("a container of kind {kind}"))),
    }
    Ok(())
}
