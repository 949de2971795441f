//! `helio run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helio::data::{Format, Tensor};
use helio::{Array, HostQueues, Literal, RunOptions};
use serde_json::{Value, json};

use crate::arguments::{Arguments, missing, superfluous, take_literal};
use crate::compare::{Tolerance, compare};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::judge::judge;
use crate::progress::Progress;
use crate::{Source, interpreted, say, show};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program, of any format; one that has checks is judged by them.
    module: PathBuf,
    #[command(flatten)]
    arguments: Arguments,
    /// Save the results as arrays out0, out1, … (tuples flattened).
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare the results with arrays out0, out1, … of this file.
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
    /// Values for infeed, in order: arrays feed0, feed1, … (tuples flattened).
    #[arg(long, value_name = "FILE")]
    infeed: Option<PathBuf>,
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
    let in_program = |errors: Vec<_>| Failure::in_program(&source, &errors);
    let begin = Instant::now();
    let file = source.program()?;
    if file.has_checks() {
        return judge(&source, &file, &args.engine, args.json);
    }
    let (module, given) = args.arguments.module(&source, &file)?;
    let client = args.engine.client();
    let program = args.engine.compile(&client, module).map_err(in_program)?;
    let compile_time = begin.elapsed();
    interpreted::note(&program);
    if args.memory {
        return match program.memory_plan() {
            Some(plan) => say(plan),
            None => say("interpreted: what it takes is known only as it runs"),
        };
    }

    let arguments = args.arguments.literals(&given, program.program_shape())?;
    // What the run would be in vain for, before it.
    args.out.as_deref().map(Format::of).transpose()?;
    let expected = args.expect.as_deref().map(helio::data::read).transpose()?;
    let mut options = RunOptions::default();
    options.seed = args.rng_seed;
    let queues = Arc::new(HostQueues::new());
    if let Some(path) = &args.infeed {
        feed(&queues, path, &program)?;
    }
    // Nobody feeds the queues while the program runs: what they lack is an error, not a wait.
    queues.close_inputs();
    options.host = Some(queues.clone());

    options.limits = args.engine.limits();
    let begin = Instant::now();
    let progress = Progress::start(format!("running {}", program.module().name));
    let result = program.run_with(&arguments, &options);
    drop(progress);
    let run_time = begin.elapsed();
    let result = result.map_err(|error| match error.location() {
        Some(_) => Failure::in_program(&source, &[error]),
        None => Failure::from(error),
    })?;

    let outputs = arrays(&result);
    if let Some(path) = &args.out {
        let named = outputs.iter().enumerate();
        let tensors = named.map(|(i, array)| (format!("out{i}"), Tensor::from_array(array)));
        helio::data::write(path, &tensors.collect())?;
    }
    let compared = match (&args.expect, &expected) {
        (Some(path), Some(expected)) => Some(compare_all(&outputs, expected, path, &args)?),
        _ => None,
    };
    let outfed = std::iter::from_fn(|| queues.outfeed(0).try_pop()).collect::<Vec<_>>();
    let interpreted = interpreted::list(&program);
    let report =
        Report { args: &args, outputs, outfed, compared, interpreted, compile_time, run_time };
    if args.json {
        report.print_json()?;
    } else {
        report.print_text()?;
    }
    report.verdict()
}

/// Fills the infeed with one value after the other, of the shapes that the program's infeeds have
/// in the order of its text.
fn feed(queues: &HostQueues, path: &Path, program: &helio::Executable) -> Result<(), Failure> {
    let tensors = helio::data::read(path)?;
    let shapes = helio::infeed_shapes(program.module());
    let (mut next, mut turn) = (0, 0);
    // Infeeds in loops read again and again: go round the shapes until the file is used up.
    while !shapes.is_empty() && tensors.contains_key(&format!("feed{next}")) {
        let shape = &shapes[turn % shapes.len()];
        let value = take_literal(&tensors, "feed", &mut next, shape)
            .map_err(|e| e.context(path.display()))?;
        queues.infeed(0).push(value).map_err(|e| Failure::internal(e.to_string()))?;
        turn += 1;
    }
    Ok(())
}

fn arrays(value: &Literal) -> Vec<Array> {
    value.leaves().into_iter().filter_map(|leaf| leaf.as_array().cloned()).collect()
}

/// What comparing one result has found.
struct Compared {
    line: String,
    ok: bool,
    json: Value,
}

fn compare_all(
    outputs: &[Array],
    expected: &BTreeMap<String, Tensor>,
    path: &Path,
    args: &Args,
) -> Result<Vec<Compared>, Failure> {
    let name = |i| format!("out{i}");
    if let Some((name, extra)) = superfluous(expected, "out", outputs.len()) {
        return Err(Failure::differs(format!(
            "{}: {name} {:?} has no counterpart: the program has {} results",
            path.display(),
            extra.dims,
            outputs.len()
        )));
    }
    let compare_one = |(i, output): (usize, &Array)| {
        let name = name(i);
        let tensor = expected
            .get(&name)
            .ok_or_else(|| missing(expected, &name, output.shape()).context(path.display()))?;
        let expected = match tensor.to_array(output.shape()) {
            Ok(expected) => expected,
            Err(e) => {
                let line = format!("{name}: {}", e.detail());
                let json = json!({ "name": name, "ok": false, "error": e.detail() });
                return Ok(Compared { line, ok: false, json });
            }
        };
        // Other programs save arrays of dynamic sizes at their bounds.
        let is_bound = expected.sizes() == expected.dims();
        if expected.sizes() != output.sizes() && !is_bound {
            let (found, wanted) = (output.sizes(), expected.sizes());
            let error = format!("found sizes {found:?}, expected {wanted:?}");
            let line = format!("{name}: {error}");
            let json = json!({ "name": name, "ok": false, "error": error });
            return Ok(Compared { line, ok: false, json });
        }
        let tolerance = Tolerance::of(output, args.rtol, args.atol);
        let found = compare(output, &expected, tolerance);
        let ok = found.differing == 0;
        let mut line = format!(
            "{name}: {} {} of {} elements differ, largest distance {}",
            output.shape(),
            found.differing,
            found.elements,
            show::number(helio::ir::Number::Float(found.max_distance)),
        );
        if let Some((at, x, y)) = &found.first {
            line.push_str(&format!("; first at {at:?}: found {x}, expected {y}"));
        }
        let json = json!({
            "name": name,
            "ok": ok,
            "elements": found.elements,
            "differing": found.differing,
            "max_distance": found.max_distance,
        });
        Ok(Compared { line, ok, json })
    };
    outputs.iter().enumerate().map(compare_one).collect()
}

struct Report<'a> {
    args: &'a Args,
    outputs: Vec<Array>,
    outfed: Vec<Literal>,
    compared: Option<Vec<Compared>>,
    /// What has no native code.
    interpreted: Value,
    compile_time: Duration,
    run_time: Duration,
}

impl Report<'_> {
    fn print_text(&self) -> Result<(), Failure> {
        for value in &self.outfed {
            for array in arrays(value) {
                let shape = array.shape();
                say(format_args!("outfeed: {shape}\n{}", show::array(&array)))?;
            }
        }
        match &self.compared {
            Some(compared) => compared.iter().try_for_each(|c| say(&c.line))?,
            None if self.args.out.is_some() => {}
            None => {
                for (i, output) in self.outputs.iter().enumerate() {
                    let shape = output.shape().clone().without_layout();
                    say(format_args!("out{i}: {shape}\n{}", show::array(output)))?;
                }
            }
        }
        Ok(())
    }

    fn print_json(&self) -> Result<(), Failure> {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let outputs: Vec<Value> = self
            .outputs
            .iter()
            .enumerate()
            .map(|(i, output)| json!({ "name": format!("out{i}"), "shape": output.shape().clone().without_layout().to_string() }))
            .collect();
        let mut report = json!({
            "outputs": outputs,
            "compile_ms": ms(self.compile_time),
            "run_ms": ms(self.run_time),
            "interpreted": self.interpreted,
        });
        if let Some(compared) = &self.compared {
            report["ok"] = compared.iter().all(|c| c.ok).into();
            report["compared"] = compared.iter().map(|c| c.json.clone()).collect();
        }
        say(report)
    }

    fn verdict(&self) -> Result<(), Failure> {
        let differing = self.compared.iter().flatten().filter(|compared| !compared.ok).count();
        if differing == 0 {
            return Ok(());
        }
        Err(Failure::differs(format!("{differing} of {} results differ", self.outputs.len())))
    }
}
