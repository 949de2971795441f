//! `helio run`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helio::data::{Format, Tensor};
use helio::{
    Array, DeviceAssignment, Executable, HostQueues, Literal, Module, ProgramFile, RunOptions,
};

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::feeds::Feeds;
use crate::judge::judge;
use crate::participants::Participants;
use crate::progress::Progress;
use crate::report::{Report, arrays, compare_all};
use crate::show::Show;
use crate::{Source, files, interpreted, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program, of any format, - for standard input; one that has checks is judged by them.
    pub(crate) module: PathBuf,
    #[command(flatten)]
    arguments: Arguments,
    /// Save the results as arrays out0, out1, … (tuples flattened). Those of several replicas or
    /// partitions stand one after the other in a dimension in front.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare the results with arrays out0, out1, … of this file, which may have the parts of all
    /// replicas and partitions, or what is expected of each of them.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Relative tolerance of --expect for floats [default: 1e-4; 3e-2 for 16 bits and fewer].
    #[arg(long, value_name = "R", requires = "expect", value_parser = tolerance, allow_hyphen_values = true)]
    rtol: Option<f64>,
    /// Absolute tolerance of --expect for floats [default: as for --rtol].
    #[arg(long, value_name = "A", requires = "expect", value_parser = tolerance, allow_hyphen_values = true)]
    atol: Option<f64>,
    /// Seed of the operation `rng`.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    rng_seed: u64,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pub(crate) feeds: Feeds,
    #[command(flatten)]
    pub(crate) participants: Participants,
    #[command(flatten)]
    pub(crate) engine: Engine,
    /// Run in the processes that mpirun has started, each with its part of the replicas and partitions
    /// [default number of replicas: as the program says, else one for each process]. The first process
    /// writes and prints the results of all.
    #[cfg(feature = "mpi")]
    #[arg(long, conflicts_with = "memory")]
    pub(crate) mpi: bool,
    /// Let MPI do large all-reduces (sums and products over all processes, one replica in each) in an
    /// order of its own: rounding may then differ from that of threads, and from run to run.
    #[cfg(feature = "mpi")]
    #[arg(long, requires = "mpi")]
    pub(crate) mpi_reduce: bool,
    /// Print what memory the program takes, instead of running it.
    #[arg(long, conflicts_with_all = ["out", "expect", "json"])]
    memory: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("must be a number that is not negative".to_owned()),
    }
}

/// Errors: anything wrong with program, arguments or files; results that differ from --expect.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    #[cfg(feature = "mpi")]
    if args.mpi {
        return crate::processes::run(args);
    }
    let source = Source::read(args.module.clone())?;
    let file = source.program()?;
    if file.has_checks() {
        return judge(&source, &file, &args.engine, args.json);
    }
    let assign = |module: &Module| args.participants.assign(module);
    let prepared = args.prepare(&source, &file, &assign)?;
    interpreted::note(&prepared.program);
    if args.memory {
        return match prepared.program.memory_plan() {
            Some(plan) => say(plan),
            None => say("interpreted: what it takes is known only as it runs"),
        };
    }
    let mut options = prepared.options.clone();
    options.limits = args.engine.limits();
    let begin = Instant::now();
    let results = prepared.run(&options).map_err(|error| in_run(&source, error))?;
    let run_time = begin.elapsed();
    let outfed = args.feeds.empty(&prepared.queues, prepared.program.assignment())?;
    args.report(&prepared, &results, outfed, run_time)
}

/// The failure of a run.
pub(crate) fn in_run(source: &Source, error: helio::Error) -> Failure {
    match error.location() {
        Some(_) => Failure::in_program(source, &[error]),
        None => Failure::from(error),
    }
}

/// A program ready to run, and what it runs with.
pub(crate) struct Prepared {
    pub(crate) program: Executable,
    pub(crate) queues: Arc<HostQueues>,
    pub(crate) options: RunOptions,
    /// The arguments of each participant of this process.
    arguments: Vec<Vec<Literal>>,
    expected: Option<BTreeMap<String, Tensor>>,
    compile_time: Duration,
}

impl Prepared {
    /// What each participant of this process gives. Errors: what goes wrong in the run.
    pub(crate) fn run(&self, options: &RunOptions) -> helio::Result<Vec<Literal>> {
        let _progress = Progress::start(format!("running {}", self.program.module().name));
        let lists: Vec<&[Literal]> = self.arguments.iter().map(Vec::as_slice).collect();
        self.program.run_all(&lists, options)
    }
}

impl Args {
    /// Compiles the program and reads what it runs with. `assign` says who runs where. Errors: anything
    /// wrong with program, arguments or files.
    pub(crate) fn prepare(
        &self,
        source: &Source,
        file: &ProgramFile,
        assign: &dyn Fn(&Module) -> helio::Result<DeviceAssignment>,
    ) -> Result<Prepared, Failure> {
        let in_program = |errors: helio::Errors| Failure::in_program(source, &errors);
        let begin = Instant::now();
        let (module, given) = self.arguments.module(source, file)?;
        let assignment = assign(&module)?;
        let client = self.engine.client(assignment.here().len());
        let (module, bound) = self.arguments.bound(module, &given, &assignment)?;
        let program = self.engine.compile(&client, module, &assignment).map_err(in_program)?;
        let compile_time = begin.elapsed();
        let (queues, mut options) = (Arc::new(HostQueues::new()), RunOptions::default());
        options.seed = self.rng_seed;
        options.host = Some(queues.clone());
        let (arguments, expected) = (Vec::new(), None);
        let mut prepared = Prepared { program, queues, options, arguments, expected, compile_time };
        if self.memory {
            return Ok(prepared);
        }
        let shape = prepared.program.program_shape();
        prepared.arguments = match bound {
            Some(others) => others,
            None => self.arguments.literals(&given, shape, &assignment)?,
        };
        // What the run would be in vain for, before it.
        self.out.as_deref().map(Format::of).transpose()?;
        prepared.expected = self.expect.as_deref().map(files::read_arrays).transpose()?;
        self.feeds.fill(&prepared.queues, prepared.program.module(), &assignment)?;
        Ok(prepared)
    }

    /// Saves, compares and prints what all participants have given, and what they have written to their
    /// outfeeds. Errors: a file cannot be written; results that differ from --expect.
    pub(crate) fn report(
        &self,
        prepared: &Prepared,
        results: &[Literal],
        outfed: Vec<Vec<Literal>>,
        run_time: Duration,
    ) -> Result<(), Failure> {
        let assignment = prepared.program.assignment().clone();
        let outputs: Vec<Vec<Array>> = results.iter().map(arrays).collect();
        if let Some(path) = &self.out {
            helio::data::write(path, &stacked(&outputs)?)?;
        }
        let tolerance = (self.rtol, self.atol);
        let compared = match (&self.expect, &prepared.expected) {
            (Some(path), Some(expected)) => {
                Some(compare_all(&outputs, expected, path, tolerance, &assignment)?)
            }
            _ => None,
        };
        self.show.draw(outputs.iter().flatten())?;
        let report = Report {
            show: self.show.clone(),
            outfed,
            prints_outfed: !self.feeds.are_saved(),
            prints_outputs: self.out.is_none(),
            outputs,
            compared,
            interpreted: interpreted::list(&prepared.program),
            compile_time: prepared.compile_time,
            run_time,
            assignment,
        };
        if self.json {
            report.print_json()?;
        } else {
            report.print_text()?;
        }
        report.verdict()
    }
}

/// The results of all participants as a file has them: one array for each, of several participants
/// with their parts one after the other in a dimension in front. Errors: sizes that are known only at
/// run time differ among participants.
fn stacked(outputs: &[Vec<Array>]) -> helio::Result<BTreeMap<String, Tensor>> {
    let count = outputs.first().map_or(0, Vec::len);
    let named = (0..count).map(|i| {
        let mut parts: Vec<Tensor> =
            outputs.iter().map(|own| Tensor::from_array(&own[i])).collect();
        let name = format!("out{i}");
        let tensor = match parts.len() {
            1 => parts.remove(0),
            _ => Tensor::stack(&parts).map_err(|e| e.context(&name))?,
        };
        Ok((name, tensor))
    });
    named.collect()
}
