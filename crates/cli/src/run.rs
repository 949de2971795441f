//! `helio run`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use helio::data::{Format, Tensor};
use helio::{Array, HostQueues, Literal, RunOptions};

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
    module: PathBuf,
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
    feeds: Feeds,
    #[command(flatten)]
    participants: Participants,
    #[command(flatten)]
    engine: Engine,
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
    let source = Source::read(args.module.clone())?;
    let in_program = |errors: helio::Errors| Failure::in_program(&source, &errors);
    let begin = Instant::now();
    let file = source.program()?;
    if file.has_checks() {
        return judge(&source, &file, &args.engine, args.json);
    }
    let (module, given) = args.arguments.module(&source, &file)?;
    let assignment = args.participants.assign(&module)?;
    let client = args.engine.client(assignment.participants());
    let program = args.engine.compile(&client, module, &assignment).map_err(in_program)?;
    let compile_time = begin.elapsed();
    interpreted::note(&program);
    if args.memory {
        return match program.memory_plan() {
            Some(plan) => say(plan),
            None => say("interpreted: what it takes is known only as it runs"),
        };
    }

    let arguments =
        args.arguments.literals(&given, program.program_shape(), assignment.participants())?;
    // What the run would be in vain for, before it.
    args.out.as_deref().map(Format::of).transpose()?;
    let expected = args.expect.as_deref().map(files::read_arrays).transpose()?;
    let mut options = RunOptions::default();
    options.seed = args.rng_seed;
    let queues = Arc::new(HostQueues::new());
    args.feeds.fill(&queues, program.module(), &assignment)?;
    options.host = Some(queues.clone());

    options.limits = args.engine.limits();
    let begin = Instant::now();
    let progress = Progress::start(format!("running {}", program.module().name));
    let lists: Vec<&[Literal]> = arguments.iter().map(Vec::as_slice).collect();
    let results = program.run_all(&lists, &options);
    drop(progress);
    let run_time = begin.elapsed();
    let results = results.map_err(|error| match error.location() {
        Some(_) => Failure::in_program(&source, &[error]),
        None => Failure::from(error),
    })?;

    let outputs: Vec<Vec<Array>> = results.iter().map(arrays).collect();
    if let Some(path) = &args.out {
        helio::data::write(path, &stacked(&outputs)?)?;
    }
    let tolerance = (args.rtol, args.atol);
    let compared = match (&args.expect, &expected) {
        (Some(path), Some(expected)) => {
            Some(compare_all(&outputs, expected, path, tolerance, &assignment)?)
        }
        _ => None,
    };
    args.show.draw(outputs.iter().flatten())?;
    let report = Report {
        show: args.show,
        outfed: args.feeds.empty(&queues, &assignment)?,
        prints_outfed: !args.feeds.are_saved(),
        prints_outputs: args.out.is_none(),
        outputs,
        compared,
        interpreted: interpreted::list(&program),
        compile_time,
        run_time,
        assignment,
    };
    if args.json {
        report.print_json()?;
    } else {
        report.print_text()?;
    }
    report.verdict()
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
