//! `helio bench`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use helio::ir::AliasKind;
use helio::{
    Buffer, Client, Device, DeviceAssignment, Executable, ExecuteOptions, Keep, Literal, Module,
};
use serde_json::json;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::participants::Participants;
use crate::progress::Progress;
use crate::time::Time;
use crate::{Source, interpreted, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program, of any format.
    module: PathBuf,
    #[command(flatten)]
    arguments: Arguments,
    /// How many runs are timed, after one that is not.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    #[command(flatten)]
    participants: Participants,
    #[command(flatten)]
    engine: Engine,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Compilations are repeated for so long, for a median.
const COMPILE_TIME: Duration = Duration::from_millis(20);

/// The most compilations.
const MAX_COMPILATIONS: usize = 15;

/// Times compilation and runs. Runs follow each other on the same arguments; each ends when its
/// results are there and have been dropped again. Errors: anything wrong with program or arguments.
pub(crate) fn bench(args: Args) -> Result<(), Failure> {
    let source = Source::read(args.module.clone())?;
    let in_program = |errors: helio::Errors| Failure::in_program(&source, &errors);
    let (mut module, given) = args.arguments.module(&source, &source.program()?)?;
    // Each run needs the arguments again, so those are copied that a program would take over.
    for alias in &mut module.config.input_output_alias {
        alias.kind = AliasKind::May;
    }
    let assignment = args.participants.assign(&module)?;
    let client = args.engine.client(assignment.participants());
    let (module, bound) = args.arguments.bound(module, &given, &assignment)?;
    let (program, compilations) =
        compile(&args.engine, &client, module, &assignment).map_err(in_program)?;
    interpreted::note(&program);
    let arguments = match bound {
        Some(others) => others,
        None => args.arguments.literals(&given, program.program_shape(), &assignment)?,
    };
    let arguments = client.devices().zip(&arguments).map(|(device, own)| buffers(&device, own));
    let arguments = arguments.collect::<helio::Result<Vec<Vec<Buffer>>>>()?;
    let arguments: Vec<Vec<&Buffer>> = arguments.iter().map(|own| own.iter().collect()).collect();

    let mut options = ExecuteOptions::default();
    options.keep = Keep::All;
    let mut run = || {
        options.run.limits = args.engine.limits();
        let begin = Instant::now();
        program.execute_all(&arguments, &options).map(drop).map(|()| begin.elapsed())
    };
    let progress = Progress::start(format!("timing {}", program.module().name));
    helio::memory::reset_peak();
    let runs = run().and_then(|_| (0..args.runs).map(|_| run()).collect::<Result<Vec<_>, _>>());
    drop(progress);
    let runs = runs.map_err(|error| match error.location() {
        Some(_) => Failure::in_program(&source, &[error]),
        None => Failure::from(error),
    })?;

    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let compile_time = median(compilations);
    let least = runs.iter().min().copied().unwrap_or_default();
    let run_time = median(runs);
    let peak_bytes = helio::memory::peak_bytes();
    if args.json {
        return say(json!({
            "compile_ms": ms(compile_time),
            "run_ms": ms(run_time),
            "run_ms_min": ms(least),
            "peak_bytes": peak_bytes,
            "runs": args.runs,
            "threads": client.threads(),
            "replicas": assignment.replicas(),
            "partitions": assignment.partitions(),
            "interpreted": interpreted::list(&program),
        }));
    }
    say(format_args!("compile  {}", Time(compile_time)))?;
    let (median, least) = (Time(run_time), Time(least));
    say(format_args!("run      {median} median of {}, {least} least", args.runs))?;
    say(format_args!("memory   {peak_bytes} bytes at most, arguments included"))
}

/// Compiles as often as there is time for; the last executable and all times.
fn compile(
    engine: &Engine,
    client: &Client,
    module: Module,
    assignment: &DeviceAssignment,
) -> Result<(Executable, Vec<Duration>), helio::Errors> {
    let mut times = Vec::new();
    let beginning = Instant::now();
    loop {
        let module = module.clone();
        let begin = Instant::now();
        let program = engine.compile(client, module, assignment)?;
        times.push(begin.elapsed());
        if times.len() == MAX_COMPILATIONS || beginning.elapsed() > COMPILE_TIME {
            return Ok((program, times));
        }
    }
}

/// Buffers with the arrays of these literals.
fn buffers(device: &Device, literals: &[Literal]) -> helio::Result<Vec<Buffer>> {
    let arrays = literals.iter().flat_map(Literal::leaves).filter_map(Literal::as_array);
    arrays.map(|array| device.client().buffer_from_array(array, device.clone())).collect()
}

/// The middle one of at least one time; of an even number, the upper.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
