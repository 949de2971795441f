//! Executions of programs on the buffers of a device.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helio_eval::Context;
use helio_ir::{Array, ArrayShape, Code, Error, Literal, ProgramShape, Result, Shape};
use helio_runtime::program::Argument;
use helio_runtime::{Block, View};

use crate::buffer::{Buffer, Claim, Promise, Value};
use crate::client::Device;
use crate::{Executable, RunOptions};

/// How to execute.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// What surrounds the run.
    pub run: RunOptions,
    /// The device, by number.
    pub device: usize,
    /// Whether to return at once with buffers that are yet to be filled. What is asked of a device
    /// in this way is done in order. Otherwise the caller's thread does the work.
    pub asynchronous: bool,
    /// Arguments, by number, that are to be kept although the program may write them (its
    /// `input_output_alias` and `buffer_donor` say which). All other such arguments are given
    /// away: their buffers end.
    pub keep: Keep,
}

/// Which arguments an execution must leave alone.
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
    fn includes(&self, argument: usize) -> bool {
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
    params: Vec<Leaf>,
    /// How many parts the parameters have that are no tuples: arrays, and tokens.
    param_leaves: usize,
    results: Vec<Leaf>,
}

/// An array of a parameter or result.
#[derive(Clone, Debug)]
struct Leaf {
    shape: ArrayShape,
    /// Its number among all parts that are no tuples.
    number: usize,
}

impl Signature {
    pub(crate) fn of(program: &ProgramShape) -> Self {
        let params: Vec<&Shape> = program.params.iter().flat_map(Shape::leaves).collect();
        let arrays = |leaves: &[&Shape]| {
            let numbered = leaves.iter().enumerate();
            let leaf = |(number, shape): (usize, &&Shape)| {
                Some(Leaf { shape: shape.as_array()?.clone().without_layout(), number })
            };
            numbered.filter_map(leaf).collect()
        };
        Signature {
            params: arrays(&params),
            param_leaves: params.len(),
            results: arrays(&program.result.leaves()),
        }
    }
}

/// An execution's arguments, taken from their buffers.
enum Taken {
    Given(Option<Block>),
    Lent(View),
}

impl Executable {
    /// Executes it once on the arrays of its arguments, tuples taken apart; gives those of its
    /// result.
    ///
    /// Errors: `NotFound` if there is no such device; `InvalidArgument` if the arguments do not fit
    /// the parameters, are not on the device, or one is given away and used besides;
    /// `FailedPrecondition` if one has ended (all others stay as they are then); and, if
    /// the execution is not asynchronous, whatever goes wrong in it or has gone wrong in what was to
    /// fill the arguments. If it is asynchronous, the resulting buffers carry these errors.
    pub fn execute(&self, args: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        let device = self.client.device(options.device).ok_or_else(|| {
            let count = self.client.devices().len();
            let detail = format!("there is no device {}, only {count}", options.device);
            Error::new(Code::NotFound, detail)
        })?;
        self.check(args, &device)?;
        let claims = self.claims(args, &options.keep)?;
        if !options.asynchronous {
            let values = self.perform(claims, &options.run, options.device)?;
            let buffer = |(leaf, value): (&Leaf, Value)| {
                Buffer::new(leaf.shape.clone(), device.clone(), value)
            };
            return Ok(self.signature.results.iter().zip(values).map(buffer).collect());
        }
        let promised = self.signature.results.iter();
        let promised = promised.map(|leaf| Buffer::promised(leaf.shape.clone(), device.clone()));
        let (buffers, promises): (Vec<Buffer>, Vec<Promise>) = promised.unzip();
        let (program, run, number) = (self.clone(), options.run.clone(), options.device);
        device.enqueue(Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| program.perform(claims, &run, number)));
            let outcome =
                outcome.unwrap_or_else(|_| Err(Error::internal("helio failed in an execution")));
            match outcome {
                Ok(values) => {
                    let each = promises.into_iter().zip(values);
                    each.for_each(|(promise, value)| promise.keep(Ok(value)));
                }
                Err(e) => promises.into_iter().for_each(|promise| promise.keep(Err(e.clone()))),
            }
        }))?;
        Ok(buffers)
    }

    /// Errors: the arguments do not fit the parameters.
    fn check(&self, args: &[&Buffer], device: &Device) -> Result<()> {
        let (want, found) = (self.signature.params.len(), args.len());
        if want != found {
            return Err(Error::invalid(format!("the program takes {want} arrays, found {found}")));
        }
        for (i, (param, arg)) in self.signature.params.iter().zip(args).enumerate() {
            let (param, found) = (&param.shape, arg.shape());
            if !param.same(found) {
                return Err(Error::invalid(format!("array {i} must be {param}, found {found}")));
            }
            if arg.device() != device {
                let (found, required) = (arg.device(), device.id());
                let whose = match found.client().is(device.client()) {
                    true => "",
                    false => " of another client than the program's",
                };
                return Err(Error::invalid(format!(
                    "array {i} is on device {}{whose}; the execution is on device {required} of \
                     the program's client\n  help: Buffer::copy_to gives one that is there",
                    found.id()
                )));
            }
        }
        Ok(())
    }

    /// The right to each argument, or to none. Errors: as for [`Executable::execute`].
    fn claims(&self, args: &[&Buffer], keep: &Keep) -> Result<Vec<Claim>> {
        if let Keep::These(numbers) = keep
            && let Some(number) = numbers.iter().find(|&&number| number >= args.len())
        {
            let count = args.len();
            return Err(Error::invalid(format!("array {number} is to be kept; there are {count}")));
        }
        let donated: Vec<bool> =
            (0..args.len()).map(|i| self.may_write(i) && !keep.includes(i)).collect();
        let mut seen = HashMap::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            if let Some(before) = seen.insert(arg.address(), i)
                && (donated[before] || donated[i])
            {
                let (shape, written) = (arg.shape(), if donated[i] { i } else { before });
                return Err(Error::invalid(format!(
                    "arrays {before} and {i} are one buffer, of {shape}, which is given away as \
                     array {written}\n  help: keep that (ExecuteOptions::keep), or pass a copy"
                )));
            }
        }
        let mut claims: Vec<Claim> = Vec::with_capacity(args.len());
        for (i, (arg, donated)) in args.iter().zip(donated).enumerate() {
            match arg.claim(donated) {
                Ok(claim) => claims.push(claim),
                Err(error) => {
                    claims.into_iter().for_each(Claim::withdraw);
                    return Err(error.context(format_args!("array {i}")));
                }
            }
        }
        Ok(claims)
    }

    /// Whether the program may write an argument.
    fn may_write(&self, argument: usize) -> bool {
        let leaf = self.signature.params[argument].number;
        self.compiled.as_ref().is_ok_and(|c| c.program().parts().arguments[leaf].written)
    }

    /// The values of the results. Waits for those of the arguments.
    fn perform(
        &self,
        claims: Vec<Claim>,
        options: &RunOptions,
        device: usize,
    ) -> Result<Vec<Value>> {
        let _account = self.client.enter_account();
        let cx = options.context(&self.client, device);
        let values = claims.iter().map(Claim::value).collect::<Result<Vec<_>>>()?;
        drop(claims);
        let Ok(compiled) = &self.compiled else {
            return self.interpret(values, &cx);
        };
        let take = |(value, donated): (Value, bool)| match value.bytes {
            bytes if donated => match bytes.into_block() {
                Ok(block) => Taken::Given(Some(block)),
                Err(bytes) => Taken::Lent(bytes),
            },
            bytes => Taken::Lent(bytes),
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
        let threads = options.threads.unwrap_or(usize::MAX);
        let blocks = compiled.execute(arguments, &cx, threads, options.observer.as_deref())?;
        let mut blocks: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
        let value = |leaf: &Leaf| {
            let block = blocks.get_mut(leaf.number).and_then(Option::take);
            let block = block.ok_or_else(|| Error::internal("a result is missing"))?;
            Ok(Value { bytes: block.into(), sizes: None })
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
