//! Running a case file's programs on every engine, and comparing what they give with what the case
//! says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helio::ir::text::parse_literal;
use helio::ir::{Module, Verified};
use helio::{
    Backend, CompileOptions, Error, Executable, HostQueues, Literal, ProgramShape, Reason,
    RunOptions,
};

use super::{Case, Expect, NoRun};
use crate::engines::{ENGINES, Engine, not_compiled};

/// What a case that holds has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The program is rejected, as it should be.
    Rejected,
    /// The program verifies, and nothing was to be compared.
    NoRun(NoRun),
    /// The program verifies, with the warnings that it should have.
    Warned,
    /// Every engine gives the expected results.
    Results {
        /// How many replicas there were.
        replicas: usize,
    },
}

impl Case {
    /// Checks the program and runs it on every engine; calls `ran` for each engine whose results
    /// were compared, with the program that gave them. Errors: what went wrong, with the case's name.
    pub fn check(&self, ran: &mut dyn FnMut(&Engine, &Executable)) -> Result<Shown, String> {
        self.check_unnamed(ran).map_err(|e| format!("{} ({}): {e}", self.name, self.source))
    }

    /// Compiles the program for a back end and compares its results with those that are expected; what
    /// has no native code there is not asked. `None` if the case has no results of one replica, else the
    /// program. Errors: what went wrong, with the case's name.
    pub fn check_on(&self, backend: &Backend) -> Result<Option<Executable>, String> {
        let Ready::Compare(module, worlds) = self.ready()? else { return Ok(None) };
        if self.replicas != 1 {
            return Ok(None);
        }
        let named = |e: String| format!("{} ({}): {e}", self.name, self.source);
        let mut options = CompileOptions::default();
        options.backend = backend.clone();
        options.subnormals = self.subnormals;
        let program = helio::compile(module.into_inner(), &options);
        let program = program.map_err(|errors| named(format!("{errors:?}")))?;
        let run = |args: &[&[Literal]], options: &RunOptions| program.run_all(args, options);
        self.run(&program, &run, &worlds).map_err(named)?;
        Ok(Some(program))
    }

    fn check_unnamed(&self, ran: &mut dyn FnMut(&Engine, &Executable)) -> Result<Shown, String> {
        let (module, worlds) = match self.ready()? {
            Ready::Shown(shown) => return Ok(shown),
            Ready::Compare(module, worlds) => (module, worlds),
        };
        for engine in ENGINES {
            let program = engine.compile_with(&module, self.subnormals);
            let program = program.map_err(|e| format!("{}: {e}", engine.name))?;
            let run = |args: &[&[Literal]], options: &RunOptions| {
                engine.run_replicas(&program, args, options)
            };
            self.check_compiled(engine, &program)
                .and_then(|()| self.run(&program, &run, &worlds))
                .map_err(|e| format!("{}: {e}", engine.name))?;
            ran(engine, &program);
        }
        Ok(Shown::Results { replicas: self.replicas })
    }

    /// The program. Errors: it is rejected.
    pub(super) fn verified(&self) -> Result<Verified<Module>, String> {
        let module = helio::parse(&self.text).and_then(helio::ir::verify);
        module.map_err(|errors| format!("rejected: {errors:?}"))
    }

    /// What can be said without running the program.
    pub(super) fn ready(&self) -> Result<Ready, String> {
        let verified = helio::parse(&self.text).and_then(helio::ir::verify);
        let module = match (&self.expect, verified) {
            (Expect::Error { rule, words }, Err(errors)) => {
                expect_error(rule, words.as_deref(), &errors)?;
                return Ok(Ready::Shown(Shown::Rejected));
            }
            (Expect::Error { rule, .. }, Ok(_)) => {
                return Err(format!("accepted, but breaks {rule}"));
            }
            (_, Err(errors)) => return Err(format!("rejected: {errors:?}")),
            (_, Ok(module)) => module,
        };
        self.check_printing(&module)?;
        self.check_warnings(&helio::ir::communication::warnings(&module))?;
        let values = match &self.expect {
            Expect::Error { .. } => return Err("accepted".to_owned()),
            Expect::NoRun(why) => return Ok(Ready::Shown(Shown::NoRun(*why))),
            Expect::Warnings => return Ok(Ready::Shown(Shown::Warned)),
            Expect::Value(values) => values,
        };
        let module = self.with_replicas(module)?;
        let shape = module.entry().program_shape();
        let worlds = (0..self.replicas).map(|replica| {
            let [expected] = values.of(replica) else {
                return Err(format!("{} results expected", values.of(replica).len()));
            };
            let args = self.args(replica, &shape)?;
            Ok(World { args, expected: literal(expected, &shape.result)? })
        });
        let worlds = worlds.collect::<Result<Vec<World>, String>>()?;
        Ok(Ready::Compare(Box::new(module), worlds))
    }

    /// Errors: the printed text is another when it is printed again.
    fn check_printing(&self, module: &Module) -> Result<(), String> {
        let printed = helio::print(module);
        if self.round_trip {
            let again = helio::parse(&printed).map_err(|e| format!("reparsing: {e:?}"))?;
            let reprinted = helio::print(&again);
            if printed != reprinted {
                return Err(format!("printing is no fixpoint:\n{printed}\n{reprinted}"));
            }
        }
        Ok(())
    }

    /// Errors: the warnings are others than the case says.
    fn check_warnings(&self, found: &[Error]) -> Result<(), String> {
        let says = |(rule, words): &(String, Option<String>), e: &Error| {
            let has_words = words.as_ref().is_none_or(|words| e.detail().contains(words));
            e.rule_id() == Some(rule) && e.location().is_some() && has_words
        };
        let said = &self.warnings;
        if found.len() == said.len() && said.iter().zip(found).all(|(said, e)| says(said, e)) {
            return Ok(());
        }
        Err(format!("the warnings are {found:?}, where the case says {said:?}"))
    }

    /// The module for as many replicas as the case says. Errors: it does not verify for them.
    fn with_replicas(&self, module: Verified<Module>) -> Result<Verified<Module>, String> {
        let mut module = module.into_inner();
        if self.replicas > 1 {
            module.config.replica_count = Some(self.replicas);
        }
        helio::ir::verify(module).map_err(|e| format!("{} replicas: {e:?}", self.replicas))
    }

    fn args(&self, replica: usize, shape: &ProgramShape) -> Result<Vec<Literal>, String> {
        let inputs = self.inputs.of(replica);
        if inputs.len() != shape.params.len() {
            return Err(format!("{} inputs for {shape}", inputs.len()));
        }
        inputs.iter().zip(&shape.params).map(|(text, shape)| literal(text, shape)).collect()
    }

    /// Errors: what has no native code is not what the case says; what is due to the machine is not
    /// asked. At level 0, which compiles little, it is asked only whether there are other reasons.
    fn check_compiled(&self, engine: &Engine, program: &Executable) -> Result<(), String> {
        if !engine.is_compiled() {
            return Ok(());
        }
        let interpreted = not_compiled(program).into_iter();
        let mut found: Vec<_> = interpreted.map(|i| (i.operation.to_owned(), i.reason)).collect();
        found.sort();
        found.dedup();
        let mut said = self.interpreted.clone();
        if !engine.compiles_all() {
            let is_of_level = |reason| matches!(reason, Reason::LevelZero | Reason::NoKernel);
            found.retain(|&(_, reason)| !is_of_level(reason));
            said.retain(|&(_, reason)| !is_of_level(reason));
        }
        if found != said {
            let lines = |all: &[(String, Reason)]| -> String {
                let line = |(operation, reason): &(String, Reason)| {
                    format!("// interpreted: {operation} {}\n", reason.name())
                };
                all.iter().map(line).collect()
            };
            let (found, said) = (lines(&found), lines(&said));
            return Err(format!("without native code are\n{found}where the case says\n{said}"));
        }
        Ok(())
    }

    pub(super) fn run(
        &self,
        program: &Executable,
        run: &RunAll<'_>,
        worlds: &[World],
    ) -> Result<(), String> {
        let queues = Arc::new(HostQueues::new());
        let shapes = helio::infeed_shapes(program.module());
        for replica in 0..self.replicas {
            // Infeeds in loops read again and again: go round their shapes.
            let items = self.infeed.of(replica).iter();
            for (item, shape) in items.zip(shapes.iter().cycle()) {
                queues.infeed(replica).push(literal(item, shape)?).map_err(|e| e.to_string())?;
            }
        }
        queues.close_inputs();
        let args: Vec<&[Literal]> = worlds.iter().map(|world| &world.args[..]).collect();
        let mut options = RunOptions::default();
        options.host = Some(queues.clone());
        if self.replicas > 1 {
            options.limits.deadline = Some(Instant::now() + REPLICAS_TIME);
        }
        let found = run(&args, &options).map_err(|e| e.to_string())?;
        for (replica, (found, world)) in found.iter().zip(worlds).enumerate() {
            let compared = self
                .tolerance
                .compare(found, &world.expected)
                .and_then(|()| self.compare_queues(replica, &queues));
            compared.map_err(|e| match self.replicas {
                1 => e,
                _ => format!("replica {replica}: {e}"),
            })?;
        }
        Ok(())
    }

    /// Errors: the host has not received what it should have, or something that was fed was not read.
    fn compare_queues(&self, replica: usize, queues: &HostQueues) -> Result<(), String> {
        for item in self.outfeed.of(replica) {
            let found = queues.outfeed(replica).try_pop().ok_or("the host received too little")?;
            self.tolerance.compare(&found, &literal(item, &found.shape())?)?;
        }
        if queues.outfeed(replica).try_pop().is_some() {
            return Err("the host received too much".to_owned());
        }
        if queues.infeed(replica).try_pop().is_some() {
            return Err("not all that was fed was read".to_owned());
        }
        Ok(())
    }
}

/// Runs a program on the arguments of each replica.
pub(super) type RunAll<'r> = dyn Fn(&[&[Literal]], &RunOptions) -> Result<Vec<Literal>, Error> + 'r;

/// What is to be done with a case.
pub(super) enum Ready {
    /// Nothing any more.
    Shown(Shown),
    /// To run the module in these worlds, one for each replica.
    Compare(Box<Verified<Module>>, Vec<World>),
}

/// How long replicas may take together: far longer than any of them computes.
const REPLICAS_TIME: Duration = Duration::from_secs(60);

/// What a replica is given, and what it should give.
pub(super) struct World {
    args: Vec<Literal>,
    expected: Literal,
}

fn literal(text: &str, shape: &helio::Shape) -> Result<Literal, String> {
    parse_literal(text, shape).map_err(|e| format!("`{text}` as {shape}: {e}"))
}

fn expect_error(rule: &str, words: Option<&str>, errors: &[Error]) -> Result<(), String> {
    let ids: Vec<_> = errors.iter().map(|e| e.rule_id().unwrap_or_default()).collect();
    if ids.iter().any(|id| *id != rule) || ids.is_empty() {
        return Err(format!("expected {rule} and nothing else, found {errors:?}"));
    }
    if errors.iter().any(|e| e.location().is_none()) {
        return Err(format!("an error does not say where it stands: {errors:?}"));
    }
    match words {
        Some(words) if !errors.iter().any(|e| e.detail().contains(words)) => {
            Err(format!("no message contains \"{words}\": {errors:?}"))
        }
        _ => Ok(()),
    }
}
