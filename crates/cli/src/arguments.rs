//! The arguments that a program is called with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use helio::data::Tensor;
use helio::ir::{ArrayShape, DimKind};
use helio::{
    Array, DeviceAssignment, Interface, Literal, Module, ProgramFile, ProgramShape, Shape,
};

use crate::Source;
use crate::failure::Failure;
use crate::files;

/// Where arguments come from.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments: arrays in0, in1, … (tuples flattened), or arr_0, arr_1, … as numpy.savez names those
    /// without a name, or arrays under the names of the program's parameters, in an .npz, .npy or
    /// .safetensors file; - for standard input. Of several replicas or partitions, each gets its
    /// part of an array that has one dimension more in front, of as many parts as there are of them;
    /// any other array goes to all.
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    inputs: Option<PathBuf>,
    /// Make up arguments from this seed; of several replicas or partitions, each has its own.
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Make constants of the arguments for the parameters from the first number to the second before the
    /// program is compiled, as weights are that do not change between runs.
    #[arg(long, value_name = "FIRST-LAST", value_parser = range)]
    bind: Option<RangeInclusive<usize>>,
}

/// Numbers of parameters, as `3-7`, or one.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("required are two numbers of parameters, as 3-7, the first not above the second"
            .to_owned()),
    }
}

/// The arguments of each participant.
pub(crate) type OfEach = Vec<Vec<Literal>>;

/// One of several participants, by number.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) participant: usize,
    pub(crate) participants: usize,
}

impl Share {
    /// One for each participant.
    pub(crate) fn each(participants: usize) -> impl Iterator<Item = Share> {
        (0..participants).map(move |participant| Share { participant, participants })
    }

    /// One for each participant of this process.
    pub(crate) fn each_here(assignment: &DeviceAssignment) -> impl Iterator<Item = Share> {
        let participants = assignment.participants();
        assignment.here().map(move |participant| Share { participant, participants })
    }

    /// What this participant gets of an array in a file whose shape in the program has `rank`
    /// dimensions: its part if there is one for each of several participants, in front; else all.
    pub(crate) fn of(self, tensor: &Tensor, rank: usize) -> Cow<'_, Tensor> {
        let has_parts = self.participants > 1
            && tensor.dims.len() == rank + 1
            && tensor.dims[0] == self.participants;
        let part = if has_parts { tensor.row(self.participant) } else { None };
        part.map_or(Cow::Borrowed(tensor), Cow::Owned)
    }

    /// The array of this shape that this participant gets of one in a file. Errors: its shape is
    /// another.
    pub(crate) fn array(self, tensor: &Tensor, shape: &ArrayShape) -> helio::Result<Array> {
        let (own, participants) = (self.of(tensor, shape.rank()), self.participants);
        own.to_array(shape).map_err(|error| match participants {
            1 => error,
            _ => helio::Error::new(
                error.code(),
                format!(
                    "{}, or the same with {participants} parts in front, one for each participant",
                    error.detail()
                ),
            ),
        })
    }
}

impl Arguments {
    /// The program with those arguments as constants that `--bind` says, and, if it says any, the others.
    /// Errors: as for [`Arguments::literals`]; several participants; no such parameter.
    pub(crate) fn bound(
        &self,
        module: Module,
        given: &Given,
        assignment: &DeviceAssignment,
    ) -> Result<(Module, Option<OfEach>), Failure> {
        let Some(numbers) = self.bind.clone().filter(|_| !module.computations().is_empty()) else {
            return Ok((module, None));
        };
        let shape = module.entry().program_shape();
        let mut arguments = self.literals(given, &shape, assignment)?;
        let module = bind(module, &mut arguments, numbers)?;
        Ok((module, Some(arguments)))
    }

    /// The program in HLO: sizes that it leaves open are those of the arrays given, and arrays under
    /// the names of parameters become in0, in1 and so on in `given`. Errors: all that is wrong with the
    /// program; sizes stay open.
    pub(crate) fn module(
        &self,
        source: &Source,
        file: &ProgramFile,
    ) -> Result<(Module, Given), Failure> {
        let mut given = Given::default();
        let in_program = |errors: helio::Errors| Failure::in_program(source, &errors);
        let shapes = file.argument_shapes().map_err(|e| in_program(e.into()))?;
        if let Some(path) = &self.inputs {
            let mut tensors = files::read_arrays(path)?;
            let interface = file.interface().map_err(|e| in_program(e.into()))?;
            let numbered = number_by_name(&mut tensors, &interface, &shapes);
            numbered.map_err(|e| e.context(path.display()))?;
            given.arrays = Some(tensors);
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

    /// The arguments of each participant of this process: given, made up, or none if the program takes
    /// none.
    pub(crate) fn literals(
        &self,
        given: &Given,
        shape: &ProgramShape,
        assignment: &DeviceAssignment,
    ) -> Result<OfEach, Failure> {
        if let Some(seed) = self.random {
            let seeds = assignment.here().map(|participant| seed.wrapping_add(participant as u64));
            let made_up = seeds.map(|seed| helio::random_arguments(&shape.params, seed));
            return Ok(made_up.collect::<helio::Result<_>>()?);
        }
        match (&self.inputs, &given.arrays) {
            (Some(path), Some(tensors)) => {
                let literals = Share::each_here(assignment)
                    .map(|share| take_literals(tensors, "in", &shape.params, share));
                let literals = literals.collect::<helio::Result<_>>();
                Ok(literals.map_err(|e| e.context(path.display()))?)
            }
            _ if shape.params.is_empty() => Ok(vec![Vec::new(); assignment.here().len()]),
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

/// Gives arrays that have the name of a parameter, or NumPy's name of a position (`arr_0`), the
/// parameter's number instead, as `in0`. Errors: a parameter, all of them being arrays, has none.
fn number_by_name(
    tensors: &mut BTreeMap<String, Tensor>,
    interface: &Interface,
    shapes: &[Shape],
) -> helio::Result<()> {
    let has = names(tensors);
    // Tuples are taken apart, so that other arrays have other numbers than their parameters.
    let is_all_arrays = shapes.iter().all(|shape| shape.as_array().is_some());
    for (i, (info, shape)) in interface.parameters.iter().zip(shapes).enumerate() {
        let number = format!("in{i}");
        if tensors.contains_key(&number) {
            continue;
        }
        let named = info.name.as_ref().and_then(|name| tensors.remove(name));
        match named.or_else(|| tensors.remove(&format!("arr_{i}"))) {
            Some(tensor) => drop(tensors.insert(number, tensor)),
            None if is_all_arrays => {
                let all = match &info.name {
                    Some(name) => format!("in{i}, arr_{i} or {name}"),
                    None => format!("in{i} or arr_{i}"),
                };
                return Err(no_array(&all, &shape.without_layout(), &has));
            }
            None => {}
        }
    }
    Ok(())
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
    // There may be a part for each of several participants, in front.
    let parts = usize::from(tensor.dims.len() == array.rank() + 1);
    if tensor.dims.len() != array.rank() + parts {
        let found = &tensor.dims;
        return Err(helio::Error::invalid(format!("{name}: expected {array}, found {found:?}")));
    }
    let sizes =
        array.dims_and_kinds().zip(&tensor.dims[parts..]).map(
            |((size, kind), &given)| match kind {
                DimKind::Unbounded => (given, DimKind::Static),
                kind => (size, kind),
            },
        );
    ArrayShape::from_dims(array.element(), sizes.collect::<Vec<_>>()).map(Shape::Array)
}

/// Literals of these shapes from arrays `prefix0`, `prefix1`, …, tuples flattened.
fn take_literals(
    tensors: &BTreeMap<String, Tensor>,
    prefix: &str,
    shapes: &[Shape],
    share: Share,
) -> helio::Result<Vec<Literal>> {
    let mut next = 0;
    let literals: helio::Result<Vec<_>> =
        shapes.iter().map(|shape| take_literal(tensors, prefix, &mut next, shape, share)).collect();
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
    no_array(name, &shape.clone().without_layout(), &names(tensors))
}

fn no_array(name: &str, shape: &dyn std::fmt::Display, has: &str) -> helio::Error {
    helio::Error::invalid(format!("no array {name} ({shape}); the file has {has}"))
}

/// The names of some arrays.
fn names(tensors: &BTreeMap<String, Tensor>) -> String {
    let some: Vec<_> = tensors.keys().take(10).map(String::as_str).collect();
    match some.len() {
        0 => "no arrays".to_owned(),
        count => format!("{}{}", some.join(", "), if tensors.len() > count { ", …" } else { "" }),
    }
}

/// What a participant gets of arrays `prefix{next}` and following, as a literal of this shape, tuples
/// flattened.
pub(crate) fn take_literal(
    tensors: &BTreeMap<String, Tensor>,
    prefix: &str,
    next: &mut usize,
    shape: &Shape,
    share: Share,
) -> helio::Result<Literal> {
    match shape {
        Shape::Array(array) => {
            let name = format!("{prefix}{next}");
            *next += 1;
            let tensor = tensors.get(&name).ok_or_else(|| missing(tensors, &name, array))?;
            share.array(tensor, array).map(Literal::Array).map_err(|e| e.context(name))
        }
        Shape::Tuple(elements) => elements
            .iter()
            .map(|element| take_literal(tensors, prefix, next, element, share))
            .collect::<helio::Result<_>>()
            .map(Literal::Tuple),
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(helio::Error::unimplemented("an argument of opaque shape")),
    }
}

/// The program with these of its arguments as constants, which are taken out of what each participant gets.
/// Errors: several participants; no such parameter.
fn bind(
    module: Module,
    arguments: &mut [Vec<Literal>],
    numbers: RangeInclusive<usize>,
) -> Result<Module, Failure> {
    let [arguments] = arguments else {
        let detail = "--bind: several replicas or partitions have arguments of their own";
        return Err(Failure::bad_input(detail.to_owned()));
    };
    let given = numbers.clone().map_while(|number| Some((number, arguments.get(number)?.clone())));
    // (One more than there are is for `bind` to name.)
    let beyond = (*numbers.end() >= arguments.len()).then(|| (*numbers.end(), Literal::Token));
    let module = helio::bind(module, given.chain(beyond))?;
    let mut number = 0..;
    arguments.retain(|_| number.next().is_some_and(|number| !numbers.contains(&number)));
    Ok(module)
}
