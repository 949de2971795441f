//! Mutants: programs changed in ways that mostly leave them well typed, run on every engine.
//!
//! A mutation works on the printed form of a program, where an instruction is a line. Shapes that
//! the operation determines are taken off the lines, so that a changed attribute changes what
//! follows from it rather than contradicting it. What does not verify is no mutant.
//!
//! Nothing is known of a mutant's values, so what its results may differ by is found out from the
//! program itself. Integers have to be equal. Floats have to be close to the interpreter's; where
//! they are not, the interpreter runs the program again with all floats as wide as they come and
//! with rounding errors made up (`rounding`), and an element may be as far off as these runs are,
//! times a factor. A program has several answers if a reduction's computation is not associative
//! and commutative, or a sort's comparator is no order, which is tried on some values
//! (`folds`). Everything else is a defect.

mod folds;
mod mutate;
mod rounding;

use std::time::{Duration, Instant};

use helio::ir::{Module, ModuleConfig, Op, Verified};
use helio::{Code, Literal, RunOptions, Shape};

pub use mutate::mutate;

use crate::engines::{ENGINES, Engine, THREADS};

/// What running a mutant showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The text is no program, or one too large to be run.
    Rejected,
    /// The interpreter ends with an error, or an engine at a limit.
    Fails,
    /// All engines agree.
    Agrees,
    /// Results differ, each element by no more than rounding explains in this program.
    Rounded,
    /// Results differ, and the program has several answers: one of its computations is no fold, or
    /// no order.
    Ambiguous,
}

/// Bytes of arguments and results, and of each value between them, beyond which a mutant is not run.
const MAX_BYTES: usize = 1 << 22;

/// Steps, and time, after which a run ends: some programs never end by themselves.
const MAX_STEPS: u64 = 20_000;
const MAX_TIME: Duration = Duration::from_secs(1);

/// A program in the form that mutations work on. Errors: it is no program.
pub fn normal_form(text: &str) -> Result<String, helio::Errors> {
    let mut module = helio::parse(text)?;
    // What the first line and the metadata say restates shapes, or means nothing to engines.
    module.config = ModuleConfig::default();
    for id in module.ids() {
        let computation = module.computation_mut(id);
        for instr in computation.ids() {
            let instr = computation.instr_mut(instr);
            instr.extra = None;
            instr.shape = instr.shape.without_layout();
        }
    }
    let module = helio::ir::verify(module)?;
    Ok(helio::print(&module))
}

/// Runs a mutant on every engine, and compares. Errors: an engine that differs, and how.
pub fn check(text: &str, seed: u64) -> Result<Outcome, String> {
    let Ok(module) = helio::parse(text).and_then(helio::ir::verify) else {
        return Ok(Outcome::Rejected);
    };
    let too_large = |shape: &Shape| shape.size_bytes() > MAX_BYTES;
    let mut instrs = module.computations().iter().flat_map(|c| c.instrs());
    if instrs.any(|instr| {
        too_large(&instr.shape) || matches!(instr.op, Op::RngBitGenerator(_) | Op::Rng(_))
    }) {
        return Ok(Outcome::Rejected);
    }
    let params = module.entry().program_shape().params;
    let Ok(args) = helio::random_arguments(&params, seed) else { return Ok(Outcome::Rejected) };
    let expected = run(&ENGINES[0], &module, &args);
    let mut samples = None;
    let mut outcome = Outcome::Agrees;
    for engine in ENGINES[1..].iter().chain([&THREADS]) {
        let found = run(engine, &module, &args);
        match (&expected, found) {
            (_, Err(e)) if e.code() == Code::Internal => {
                return Err(format!("{}: {e}", engine.name));
            }
            // What is never used need not be computed, and steps are counted otherwise.
            (Err(_), _) => outcome = Outcome::Fails,
            (Ok(_), Err(e)) if is_limit(e.code()) => outcome = Outcome::Fails,
            (Ok(_), Err(e)) => return Err(format!("{}: fails alone: {e}", engine.name)),
            (Ok(expected), Ok(found)) => {
                if rounding::compare(&found, expected, &[]).is_ok() {
                    continue;
                }
                let samples =
                    samples.get_or_insert_with(|| rounding::samples(&module, &args, seed));
                match rounding::compare(&found, expected, samples) {
                    Ok(()) => outcome = Outcome::Rounded,
                    Err(error) => match folds::ambiguity(&module, &args, expected) {
                        Some(_) => return Ok(Outcome::Ambiguous),
                        None => return Err(format!("{}: {error}", engine.name)),
                    },
                }
            }
        }
    }
    Ok(outcome)
}

/// Whether a run was ended at one of its limits.
fn is_limit(code: Code) -> bool {
    matches!(code, Code::ResourceExhausted | Code::DeadlineExceeded)
}

/// Runs a program within the limits of mutants.
fn run(
    engine: &Engine,
    module: &Verified<Module>,
    args: &[Literal],
) -> Result<Literal, helio::Error> {
    let mut options = RunOptions::default();
    options.limits.max_steps = Some(MAX_STEPS);
    options.limits.deadline = Some(Instant::now() + MAX_TIME);
    engine.run(module, args, &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Outcome {
        check(text, 1).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    fn reduction(reducer: &str) -> String {
        format!(
            "f {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] {reducer} }}
             ENTRY e {{ x = f32[4,1000] parameter(0) z = f32[] constant(0)
               t = f32[1000,4] transpose(x), dimensions={{1,0}} y = f32[1000,4] sine(t)
               ROOT r = f32[4] reduce(y, z), dimensions={{0}}, to_apply=f }}"
        )
    }

    /// A result that differs, for an engine that is not one of ours.
    fn off_by(text: &str, factor: f32) -> Result<(), String> {
        let module = helio::parse(text).and_then(helio::ir::verify).expect("a program");
        let args = helio::random_arguments(&module.entry().program_shape().params, 1);
        let args = args.expect("arguments");
        let expected = run(&ENGINES[0], &module, &args).expect("a result");
        let array = expected.as_array().expect("an array");
        let mut values = array.values::<f32>().expect("floats").to_vec();
        values[0] *= factor;
        let found = Literal::array(array.dims(), values).expect("an array");
        rounding::compare(&found, &expected, &rounding::samples(&module, &args, 1))
    }

    #[test]
    fn sums_agree() {
        assert!(matches!(outcome(&reduction("add(a, b)")), Outcome::Agrees | Outcome::Rounded));
    }

    /// A thousandth is a defect where rounding makes a millionth, and none where it makes as much.
    #[test]
    fn what_rounding_explains_depends_on_the_program() {
        let exact = "ENTRY e { x = f32[64] parameter(0) ROOT y = f32[64] exponential(x) }";
        assert!(off_by(exact, 1.0 + 1e-6).is_ok());
        assert!(off_by(exact, 1.0 + 1e-4).is_err());
        let wild = "ENTRY e { x = f32[64] parameter(0) k = f32[] constant(10000)
            b = f32[64] broadcast(k), dimensions={} y = f32[64] exponential(x)
            z = f32[64] multiply(y, b) ROOT s = f32[64] sine(z) }";
        assert!(off_by(wild, 1.0 + 1e-4).is_ok());
    }
}
