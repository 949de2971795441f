//! A compiled program: the module with its plan, and running it.

use std::sync::Arc;
use std::thread::Scope;

use helio_eval::{Context, Meter};
use helio_ir::{Error, Literal, Module, Result, Shape, Verified};
use helio_passes::watch::Watch as CompileWatch;
use helio_runtime::Block;
use helio_runtime::program::{self, Argument, Run, RunError, StepId, StepProgram};

use crate::CompileOptions;
use crate::backend::Chosen;
use crate::client::Client;
use crate::execute::{sizes_from, sizes_of};
use crate::interpreted::{Interpreted, Reason};
use crate::observe::{Observer, StepInfo, StepWatcher};
use crate::plan::{self, Caller, NoPlan, Plan, Target};

/// A module and its plan.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// What was planned: the module after all passes.
    module: Verified<Module>,
    plan: Plan,
    client: Client,
    result: Shape,
}

impl Compiled {
    /// Compiles a module that was optimised with these options, whose result had this shape before that; or says which of its instructions
    /// leaves it to the interpreter as a whole. Errors: memory, the limits of the compilation, or a
    /// defect.
    pub(crate) fn new(
        module: Verified<Module>,
        result: &Shape,
        options: &CompileOptions,
        chosen: &Chosen,
        client: Client,
        watch: &CompileWatch,
    ) -> Result<Result<Self, Interpreted>> {
        let Chosen { backend, fallback } = chosen;
        let target = Target::new(&**backend, *fallback, options)?;
        let mut plan = plan::plan(&module, &target, &client, watch);
        // Some systems let no new code be run.
        if matches!(plan, Err(NoPlan::NoCode)) {
            let target = target.portable(Reason::CodeRefused);
            plan = plan::plan(&module, &target, &client, watch);
        }
        let plan = match plan {
            Ok(plan) => plan,
            Err(NoPlan::Interpret(because)) => return Ok(Err(because)),
            Err(NoPlan::NoCode) => return Err(Error::internal("code where there is none")),
            Err(NoPlan::Failed(error)) => return Err(error),
        };
        Ok(Ok(Compiled { module, plan, client, result: result.clone() }))
    }

    /// What of it has no native code.
    pub(crate) fn interpreted(&self) -> &[Interpreted] {
        &self.plan.interpreted
    }

    /// The steps and their memory.
    pub(crate) fn program(&self) -> &StepProgram {
        &self.plan.program
    }

    /// What is known of its steps, by number.
    pub(crate) fn steps(&self) -> impl ExactSizeIterator<Item = StepInfo<'_>> {
        let (module, infos) = (&*self.module, &self.plan.steps);
        infos.ids().map(move |id| StepInfo::planned(id, module, infos))
    }

    /// Runs it on the bytes of its arguments, tuples taken apart; gives those of its result.
    pub(crate) fn execute(
        &self,
        arguments: Vec<Argument<'_>>,
        cx: &Context,
        threads: usize,
        observer: Option<&dyn Observer>,
    ) -> Result<Vec<Block>> {
        let meter = Arc::new(Meter::new(cx.limits.clone()));
        let (needed, memory) = (self.program().run_bytes(), self.client.memory());
        let free = memory.account().free_bytes();
        if needed > free {
            let detail = format!(
                "the run takes {needed} bytes of memory besides its arguments, {free} are free"
            );
            return Err(Error::limit("limit.memory", detail));
        }
        let this = (cx, &meter, observer);
        match self.plan.calls.are_deep() {
            true => std::thread::scope(|scope| {
                self.execute_within(arguments, threads, this, Some(scope))
            }),
            false => self.execute_within(arguments, threads, this, None),
        }
    }

    /// Runs it; in the scope, if there is one, runs the thread for what needs a deep stack.
    fn execute_within<'s>(
        &'s self,
        arguments: Vec<Argument<'_>>,
        threads: usize,
        (cx, meter, observer): (&'s Context, &'s Arc<Meter>, Option<&dyn Observer>),
        scope: Option<&'s Scope<'s, '_>>,
    ) -> Result<Vec<Block>> {
        let watcher = |observer| StepWatcher::new(observer, &self.module, &self.plan.steps);
        let mut watcher = observer.map(watcher);
        let memory = self.client.memory();
        let threads = self.client.pool().threads(threads);
        let with = (memory, threads);
        let mut host = Caller::new(&self.module, &self.plan.calls, cx, meter, with, scope);
        let run = Run {
            memory,
            threads,
            meter,
            host: &mut host,
            observer: watcher.as_mut().map(|watcher| watcher as &mut dyn program::Observer),
        };
        self.plan.program.run(arguments, run).map_err(|error| self.failed(error))
    }

    /// Runs it on literals that fit its parameters.
    pub(crate) fn run(
        &self,
        args: &[Literal],
        cx: &Context,
        threads: usize,
        observer: Option<&dyn Observer>,
    ) -> Result<Literal> {
        let mut arguments = Vec::new();
        for leaf in args.iter().flat_map(Literal::leaves).map(Literal::as_array) {
            arguments.push(self.client.argument(leaf)?);
            let Some(array) = leaf.filter(|array| !array.shape().is_static()) else { continue };
            for size in sizes_of(array.shape(), array.sizes()) {
                arguments.push(Argument::Given(self.client.memory().copy_of(&size)?));
            }
        }
        let results = self.execute(arguments, cx, threads, observer)?;
        result_of(&self.result, &mut results.iter().map(Block::as_slice))
    }

    /// What went wrong, in the words of this crate.
    fn failed(&self, error: RunError) -> Error {
        match error {
            RunError::Step { at, failure } => {
                let error = match failure.downcast::<Error>() {
                    Ok(error) => *error,
                    Err(other) => Error::internal(other.to_string()),
                };
                self.locate(error, at)
            }
            RunError::Arguments(detail) => Error::invalid(detail),
            RunError::Memory(error) => error.into(),
            RunError::Stopped { at: Some(at), why } => self.locate(why.into(), at),
            RunError::Stopped { at: None, why } => why.into(),
        }
    }

    /// An error with the instruction that a step performs.
    fn locate(&self, error: Error, step: StepId) -> Error {
        match self.plan.steps.of(step).next() {
            Some(planned) => {
                let (computation, id) = planned.at;
                self.module.locate(error, self.module.computation(computation).instr(id))
            }
            None => error,
        }
    }
}

/// A value of a shape from the bytes of its arrays, tuples taken apart, each with the sizes of its bounded
/// dimensions behind it.
fn result_of<'b>(shape: &Shape, leaves: &mut impl Iterator<Item = &'b [u8]>) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|shape| result_of(shape, leaves));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        Shape::Array(shape) if !shape.is_static() => {
            let array = Literal::from_leaves(&Shape::Array(shape.clone()), leaves)?;
            let sizes = sizes_from(shape, leaves)?;
            match (array, sizes) {
                (Literal::Array(array), Some(sizes)) => array.with_sizes(sizes).map(Literal::Array),
                (array, _) => Ok(array),
            }
        }
        leaf => Literal::from_leaves(leaf, leaves),
    }
}
