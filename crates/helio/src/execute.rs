//! What an execution takes and gives, and how one participant performs it.

use helio_eval::Context;
use helio_ir::{AliasKind, Array, ArrayShape, Error, Literal, Module, ProgramShape, Result, Shape};
use helio_passes::bounds::bounded_dims;
use helio_runtime::program::Argument;
use helio_runtime::{Block, FloatMode, View};

use crate::buffer::{Claim, Value};
use crate::{Executable, RunOptions, plan};

/// How to execute.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let double = helio::compile(module, &helio::CompileOptions::default())?;
/// let x = double.client().buffer(&[1f32, 2.0].into())?;
/// let options = helio::ExecuteOptions::default().with_asynchronous(true);
/// let y = double.execute(&[&x], &options)?.remove(0); // does not wait
/// let z = double.execute(&[&y], &options)?.remove(0);
/// assert_eq!(z.to_array()?, [4f32, 8.0].into()); // waits
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// What surrounds the run.
    pub run: RunOptions,
    /// The device, by id, of a program for one; `None` for the one that it is assigned to.
    pub device: Option<usize>,
    /// Whether to return at once with buffers that are yet to be filled. Otherwise the caller waits
    /// until the execution has ended. What is asked of a device is done in order either way.
    pub asynchronous: bool,
    /// Whether an asynchronous execution of one participant is done on the caller's own thread if its
    /// device has nothing to do and the arguments are there: for programs that take less time than
    /// handing them to another thread does.
    pub inline: bool,
    /// Arguments, by number, that are to be kept although the module lets them be given away (its
    /// `input_output_alias` and `buffer_donor` say which; a donor, if a result that is given no other
    /// argument has its size). All other such arguments are given away: their buffers end. What is kept and
    /// written is copied; an argument that the module says must be given away (`must-alias`) cannot be
    /// kept.
    pub keep: Keep,
}

helio_ir::with_methods! { ExecuteOptions {
    with_run(run: RunOptions);
    with_device(device: impl Into<Option<usize>>);
    with_asynchronous(asynchronous: bool);
    with_inline(inline: bool);
    with_keep(keep: Keep);
} }

/// Which arguments an execution must leave alone.
///
/// ```
/// use helio::{ExecuteOptions, Keep};
/// let text = "HloModule double, input_output_alias={ {}: (0, {}, may-alias) }
///     ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }";
/// let double = helio::compile(helio::parse(text)?, &helio::CompileOptions::default())?;
/// let x = double.client().buffer(&[1f32, 2.0].into())?;
/// double.execute(&[&x], &ExecuteOptions::default().with_keep(Keep::All))?;
/// assert!(!x.is_deleted());
/// double.execute(&[&x], &ExecuteOptions::default())?; // takes the memory of `x` over
/// assert!(x.is_deleted());
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None: the program may take over the memory of those that it may write.
    #[default]
    None,
    /// All of them.
    All,
    /// These, by number.
    These(Vec<usize>),
}

impl Keep {
    pub(crate) fn includes(&self, argument: usize) -> bool {
        match self {
            Keep::None => false,
            Keep::All => true,
            Keep::These(numbers) => numbers.contains(&argument),
        }
    }
}

/// The arrays that a program takes and gives.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) params: Vec<Leaf>,
    /// How many parts the parameters have, compiled, that are no tuples: arrays, sizes, and tokens.
    param_leaves: usize,
    /// Whether some parameter has bounded dimensions.
    has_bounds: bool,
    pub(crate) results: Vec<Leaf>,
}

/// An array of a parameter or result.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) shape: ArrayShape,
    /// Its number among all parts of the compiled program's parameters, or result, that are no tuples.
    number: usize,
    /// Whether the module lets the caller give it away, or wants that. Of parameters only.
    pub(crate) donation: Option<AliasKind>,
}

impl Signature {
    /// What a module takes and gives. Compiled, it has sizes of bounded dimensions beside the arrays.
    pub(crate) fn of(module: &Module, program: &ProgramShape) -> Self {
        let donated = plan::donated(&module.config, module.entry());
        let mut params: Vec<(&Shape, Option<AliasKind>)> = Vec::new();
        for (number, param) in program.params.iter().enumerate() {
            let leaves = param.leaves().into_iter().enumerate();
            let donation = |leaf| donated.get(&(number, leaf)).copied();
            params.extend(leaves.map(|(leaf, shape)| (shape, donation(leaf))));
        }
        let results: Vec<_> = program.result.leaves().into_iter().map(|s| (s, None)).collect();
        let (params, param_leaves) = arrays(&params);
        let has_bounds = params.iter().any(|leaf| !leaf.shape.is_static());
        Signature { params, param_leaves, has_bounds, results: arrays(&results).0 }
    }
}

/// The arrays among the leaves of shapes, and how many leaves the compiled program has for all of them.
fn arrays(leaves: &[(&Shape, Option<AliasKind>)]) -> (Vec<Leaf>, usize) {
    let (mut arrays, mut count) = (Vec::with_capacity(leaves.len()), 0);
    for &(shape, donation) in leaves {
        let number = count;
        count += 1;
        let Some(array) = shape.as_array() else { continue };
        // Sizes come right behind the array.
        count += bounded_dims(array).count();
        arrays.push(Leaf { shape: array.clone().without_layout(), number, donation });
    }
    (arrays, count)
}

/// The sizes of an array's bounded dimensions as a compiled program takes them, in order.
pub(crate) fn sizes_of<'a>(
    shape: &'a ArrayShape,
    sizes: &'a [usize],
) -> impl Iterator<Item = [u8; 4]> + 'a {
    bounded_dims(shape).map(|d| (sizes[d] as i32).to_ne_bytes())
}

/// The sizes of an array's dimensions, of which a run has given those of the bounded ones; `None` if the shape
/// says them all. Errors: `Internal` for what is no size within the bound.
pub(crate) fn sizes_from<'b>(
    shape: &ArrayShape,
    given: &mut impl Iterator<Item = &'b [u8]>,
) -> Result<Option<Vec<usize>>> {
    if shape.is_static() {
        return Ok(None);
    }
    let mut sizes = shape.dims().to_vec();
    for d in bounded_dims(shape) {
        let bytes = given.next().and_then(|bytes| bytes.try_into().ok());
        let size = bytes.and_then(|bytes| usize::try_from(i32::from_ne_bytes(bytes)).ok());
        let size = size.filter(|&size| size <= sizes[d]);
        sizes[d] =
            size.ok_or_else(|| Error::internal(format!("no size of dimension {d} of {shape}")))?;
    }
    Ok(Some(sizes))
}

/// An execution's arguments, taken from their buffers.
enum Taken {
    Given(Option<Block>),
    Lent(View),
}

impl Executable {
    /// The values of the results. Waits for those of the arguments.
    pub(crate) fn perform(
        &self,
        claims: Vec<Claim>,
        cx: &Context,
        options: &RunOptions,
    ) -> Result<Vec<Value>> {
        let _account = self.client.enter_account();
        let values = claims.iter().map(Claim::value).collect::<Result<Vec<_>>>()?;
        drop(claims);
        let Ok(compiled) = &self.compiled else {
            return self.interpret(values, &self.observed(cx.clone(), options));
        };
        let take = |(value, donated): (Value, bool)| match value.bytes {
            bytes if donated => match bytes.into_block() {
                Ok(block) => Taken::Given(Some(block)),
                Err(bytes) => Taken::Lent(bytes),
            },
            bytes => Taken::Lent(bytes),
        };
        let sizes: Vec<Option<Vec<usize>>> = match self.signature.has_bounds {
            true => values.iter().map(|(value, _)| value.sizes.clone()).collect(),
            false => Vec::new(),
        };
        let mut taken: Vec<Taken> = values.into_iter().map(take).collect();
        // Tokens have no bytes.
        let mut arguments: Vec<Argument<'_>> = Vec::new();
        arguments.resize_with(self.signature.param_leaves, || Argument::Lent(&[]));
        for (param, taken) in self.signature.params.iter().zip(&mut taken) {
            arguments[param.number] = match taken {
                Taken::Given(block) => block.take().map_or(Argument::Lent(&[]), Argument::Given),
                Taken::Lent(view) => Argument::Lent(bytes(view)?),
            };
        }
        for (param, sizes) in self.signature.params.iter().zip(&sizes) {
            let sizes = sizes.as_deref().unwrap_or_else(|| param.shape.dims());
            for (i, size) in sizes_of(&param.shape, sizes).enumerate() {
                let size = self.client.memory().copy_of(&size)?;
                arguments[param.number + 1 + i] = Argument::Given(size);
            }
        }
        let threads = options.threads.unwrap_or(usize::MAX);
        let blocks = compiled.execute(arguments, cx, threads, options.observer.as_deref())?;
        let mut blocks: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
        let value = |leaf: &Leaf| {
            let behind = blocks.iter().skip(leaf.number + 1).flatten();
            let sizes = sizes_from(&leaf.shape, &mut behind.map(Block::as_slice))?;
            let block = blocks.get_mut(leaf.number).and_then(Option::take);
            let block = block.ok_or_else(|| Error::internal("a result is missing"))?;
            Ok(Value { bytes: block.into(), sizes })
        };
        self.signature.results.iter().map(value).collect()
    }

    fn interpret(&self, values: Vec<(Value, bool)>, cx: &Context) -> Result<Vec<Value>> {
        let mut leaves = self.signature.params.iter().zip(&values).map(|(leaf, (value, _))| {
            let array = Array::from_bytes(leaf.shape.clone(), bytes(&value.bytes)?)?;
            match &value.sizes {
                Some(sizes) => array.with_sizes(sizes.clone()),
                None => Ok(array),
            }
        });
        let params = &self.program_shape.params;
        let args = params.iter().map(|shape| assemble(shape, &mut leaves));
        let args = args.collect::<Result<Vec<Literal>>>()?;
        let _mode = FloatMode::Ieee.enter();
        let result = helio_eval::evaluate(&self.module, &args, cx)?;
        let arrays = result.leaves().into_iter().filter_map(Literal::as_array);
        arrays.map(|array| self.client.value_of(array)).collect()
    }
}

/// The bytes of an argument, which may be for the host to say.
fn bytes(view: &View) -> Result<&[u8]> {
    helio_eval::guarded(|| "the owner of an argument's memory".to_owned(), || view.as_slice())
}

/// A value of this shape from its arrays.
fn assemble(shape: &Shape, leaves: &mut impl Iterator<Item = Result<Array>>) -> Result<Literal> {
    match shape {
        Shape::Array(_) => {
            let array = leaves.next().ok_or_else(|| Error::internal("an array is missing"))?;
            array.map(Literal::Array)
        }
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| assemble(element, leaves));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        Shape::Token | Shape::Opaque => Ok(Literal::Token),
    }
}
