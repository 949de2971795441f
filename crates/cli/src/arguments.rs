//! The arguments that a program is called with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use helio::data::Tensor;
use helio::ir::ArrayShape;
use helio::{Literal, ProgramShape, Shape};

use crate::failure::Failure;

/// Where arguments come from.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments: arrays in0, in1, … (tuples flattened) in an .npz or .safetensors file.
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    inputs: Option<PathBuf>,
    /// Make up arguments from this seed.
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
}

impl Arguments {
    /// The arguments: from a file, made up, or none if the program takes none.
    pub(crate) fn literals(&self, shape: &ProgramShape) -> Result<Vec<Literal>, Failure> {
        if let Some(seed) = self.random {
            return Ok(helio::random_arguments(&shape.params, seed)?);
        }
        match &self.inputs {
            Some(path) => Ok(take_literals(&helio::data::read(path)?, "in", &shape.params)
                .map_err(|e| e.context(path.display()))?),
            None if shape.params.is_empty() => Ok(Vec::new()),
            None => {
                let params: Vec<_> = shape.params.iter().map(Shape::to_string).collect();
                Err(Failure::bad_input(format!(
                    "the program takes arguments ({}): give --inputs FILE or --random SEED",
                    params.join(", ")
                )))
            }
        }
    }
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
