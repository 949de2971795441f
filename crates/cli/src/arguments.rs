//! The arguments that a program is called with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use helio::data::Tensor;
use helio::ir::{ArrayShape, DimKind};
use helio::{Interface, Literal, Module, ProgramFile, ProgramShape, Shape};

use crate::Source;
use crate::failure::Failure;

/// Where arguments come from.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments: arrays in0, in1, … (tuples flattened), or arrays under the names of the program's
    /// parameters, in an .npz or .safetensors file.
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    inputs: Option<PathBuf>,
    /// Make up arguments from this seed.
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
}

impl Arguments {
    /// The program in HLO: sizes that it leaves open are those of the arrays given, and arrays under
    /// the names of parameters become in0, in1 and so on in `given`. Errors: all that is wrong with the
    /// program; sizes stay open.
    pub(crate) fn module(
        &self,
        source: &Source,
        file: &ProgramFile,
    ) -> Result<(Module, Given), Failure> {
        let mut given = Given::default();
        if let Some(path) = &self.inputs {
            given.arrays = Some(helio::data::read(path)?);
        }
        let in_program = |errors: Vec<helio::Error>| Failure::in_program(source, &errors);
        let shapes = file.argument_shapes().map_err(|e| in_program(vec![e]))?;
        if let Some(tensors) = &mut given.arrays {
            number_by_name(tensors, &file.interface().map_err(|e| in_program(vec![e]))?);
        }
        if !shapes.iter().any(is_open) {
            return Ok((file.module().map_err(in_program)?, given));
        }
        let Some(tensors) = &given.arrays else {
            let shapes: Vec<_> = shapes.iter().map(Shape::to_string).collect();
            return Err(Failure::bad_input(format!(
                "the program leaves sizes of its arguments open ({}): give --inputs FILE",
                shapes.join(", ")
            )));
        };
        let filled = shapes.iter().enumerate().map(|(i, shape)| filled(tensors, i, shape));
        let shapes = filled.collect::<helio::Result<Vec<_>>>()?;
        Ok((file.module_for(&shapes).map_err(in_program)?, given))
    }

    /// The arguments: given, made up, or none if the program takes none.
    pub(crate) fn literals(
        &self,
        given: &Given,
        shape: &ProgramShape,
    ) -> Result<Vec<Literal>, Failure> {
        if let Some(seed) = self.random {
            return Ok(helio::random_arguments(&shape.params, seed)?);
        }
        match (&self.inputs, &given.arrays) {
            (Some(path), Some(tensors)) => Ok(take_literals(tensors, "in", &shape.params)
                .map_err(|e| e.context(path.display()))?),
            _ if shape.params.is_empty() => Ok(Vec::new()),
            _ => {
                let params: Vec<_> = shape.params.iter().map(Shape::to_string).collect();
                Err(Failure::bad_input(format!(
                    "the program takes arguments ({}): give --inputs FILE or --random SEED",
                    params.join(", ")
                )))
            }
        }
    }
}

/// The arrays of a file of arguments.
#[derive(Default)]
pub(crate) struct Given {
    arrays: Option<BTreeMap<String, Tensor>>,
}

/// Gives arrays that have the name of a parameter the parameter's number instead, as `in0`.
fn number_by_name(tensors: &mut BTreeMap<String, Tensor>, interface: &Interface) {
    for (i, info) in interface.parameters.iter().enumerate() {
        let number = format!("in{i}");
        let array = info.name.as_ref().filter(|_| !tensors.contains_key(&number));
        if let Some(tensor) = array.and_then(|name| tensors.remove(name)) {
            tensors.insert(number, tensor);
        }
    }
}

fn is_open(shape: &Shape) -> bool {
    shape.as_array().is_some_and(|array| array.dims_and_kinds().any(is_unbounded))
}

fn is_unbounded((_, kind): (usize, DimKind)) -> bool {
    kind == DimKind::Unbounded
}

/// The shape of argument `i`, with the sizes of the array given where it leaves them open.
fn filled(tensors: &BTreeMap<String, Tensor>, i: usize, shape: &Shape) -> helio::Result<Shape> {
    let Shape::Array(array) = shape else { return Ok(shape.clone()) };
    let name = format!("in{i}");
    let tensor = tensors.get(&name).ok_or_else(|| missing(tensors, &name, array))?;
    if tensor.dims.len() != array.rank() {
        let found = &tensor.dims;
        return Err(helio::Error::invalid(format!("{name}: expected {array}, found {found:?}")));
    }
    let sizes = array.dims_and_kinds().zip(&tensor.dims).map(|((size, kind), &given)| match kind {
        DimKind::Unbounded => (given, DimKind::Static),
        kind => (size, kind),
    });
    ArrayShape::from_dims(array.element(), sizes.collect::<Vec<_>>()).map(Shape::Array)
}

/// Literals of these shapes from arrays `prefix0`, `prefix1`, …, tuples flattened.
fn take_literals(
    tensors: &BTreeMap<String, Tensor>,
    prefix: &str,
    shapes: &[Shape],
) -> helio::Result<Vec<Literal>> {
    let mut next = 0;
    let literals: helio::Result<Vec<_>> =
        shapes.iter().map(|shape| take_literal(tensors, prefix, &mut next, shape)).collect();
    let literals = literals?;
    if let Some((extra, _)) = superfluous(tensors, prefix, next) {
        return Err(helio::Error::invalid(format!(
            "{extra} is one array too many: the program takes {next}"
        )));
    }
    Ok(literals)
}

/// An array whose number is `count` or more.
pub(crate) fn superfluous<'t>(
    tensors: &'t BTreeMap<String, Tensor>,
    prefix: &str,
    count: usize,
) -> Option<(&'t str, &'t Tensor)> {
    let number = |name: &str| name.strip_prefix(prefix)?.parse::<usize>().ok();
    tensors
        .iter()
        .find(|(name, _)| number(name).is_some_and(|number| number >= count))
        .map(|(name, tensor)| (name.as_str(), tensor))
}

/// What a file has instead of the array that is asked for.
pub(crate) fn missing(
    tensors: &BTreeMap<String, Tensor>,
    name: &str,
    shape: &ArrayShape,
) -> helio::Error {
    let shape = shape.clone().without_layout();
    let has = match tensors.len() {
        0 => "no arrays".to_owned(),
        count => {
            let some: Vec<_> = tensors.keys().take(10).map(String::as_str).collect();
            format!("{}{}", some.join(", "), if count > some.len() { ", …" } else { "" })
        }
    };
    helio::Error::invalid(format!("no array {name} ({shape}); the file has {has}"))
}

/// A literal of this shape from arrays `prefix{next}` and following, tuples flattened.
pub(crate) fn take_literal(
    tensors: &BTreeMap<String, Tensor>,
    prefix: &str,
    next: &mut usize,
    shape: &Shape,
) -> helio::Result<Literal> {
    match shape {
        Shape::Array(array) => {
            let name = format!("{prefix}{next}");
            *next += 1;
            let tensor = tensors.get(&name).ok_or_else(|| missing(tensors, &name, array))?;
            tensor.to_array(array).map(Literal::Array).map_err(|e| e.context(name))
        }
        Shape::Tuple(elements) => elements
            .iter()
            .map(|element| take_literal(tensors, prefix, next, element))
            .collect::<helio::Result<_>>()
            .map(Literal::Tuple),
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(helio::Error::unimplemented("an argument of opaque shape")),
    }
}
