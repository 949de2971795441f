//! An instruction of a JAX program is followed from its text into steps, and read back from the plan,
//! from an observer and from errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helio::{
    CompileOptions, Executable, Literal, Observer, OptLevel, OutputView, RunOptions, StepInfo,
    compile, parse,
};

/// What JAX 0.10.2 writes for a normalised product, repeated in a loop; abridged.
const PROGRAM: &str = r#"
HloModule jit_step
FileNames
1 "model.py"
2 "train.py"
FunctionNames
1 "attention"
2 "step"
FileLocations
1 {file_name_id=2 function_name_id=2 line=90 end_line=90 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=31 end_line=31 column=8 end_column=20}
3 {file_name_id=1 function_name_id=1 line=32 end_line=32 column=8 end_column=20}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=2}

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
softmax.1 {
  x = f32[64,64] parameter(0)
  exp.1 = f32[64,64] exponential(x), metadata={op_name="attention/exp" stack_frame_id=3}
  zero.1 = f32[] constant(0)
  sum.1 = f32[64] reduce(exp.1, zero.1), dimensions={1}, to_apply=sum
  wide.1 = f32[64,64] broadcast(sum.1), dimensions={0}
  ROOT div.1 = f32[64,64] divide(exp.1, wide.1)
}
body {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next.1 = s32[] add(i, one)
  dot.7 = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="attention/dot_general" stack_frame_id=2}
  soft.1 = f32[64,64] call(dot.7), to_apply=softmax.1
  ROOT t = (s32[], f32[64,64]) tuple(next.1, soft.1)
}
condition {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(20)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[64,64]) tuple(zero, x)
  w = (s32[], f32[64,64]) while(s), condition=condition, body=body
  ROOT y = f32[64,64] get-tuple-element(w), index=1
}"#;

const LINE: &str = "model.py:31, attention/dot_general";

/// The instructions of the given program that have this name, each time that they are executed.
fn executed(log: &Log, line: &str) -> usize {
    log.after.lock().unwrap().iter().filter(|(_, text, _)| text.contains(line)).count()
}

fn compiled(text: &str, level: OptLevel) -> Executable {
    let mut options = CompileOptions::default();
    options.opt_level = level;
    compile(parse(text).expect("it parses"), &options).expect("it compiles")
}

fn input() -> Literal {
    Literal::array([64, 64], vec![0.01f32; 64 * 64]).unwrap()
}

fn names(step: &StepInfo<'_>) -> Vec<String> {
    step.origins().iter().map(|origin| origin.instruction.to_string()).collect()
}

#[test]
fn the_plan_knows() {
    for level in [OptLevel::None, OptLevel::Less, OptLevel::Default, OptLevel::More] {
        let program = compiled(PROGRAM, level);
        let steps: Vec<StepInfo<'_>> = program.steps().collect();
        let dots: Vec<_> = steps.iter().filter(|s| names(s).contains(&"dot.7".into())).collect();
        assert_eq!(dots.len(), 1, "{level:?}: {steps:?}");
        assert!(dots[0].source_lines().iter().any(|line| line.to_string() == LINE), "{level:?}");
        assert!(dots[0].output_shapes().iter().any(|shape| shape.dims() == [64, 64]));
        // The loop's own step is the loop's, and not what its steps are.
        let whiles: Vec<_> = steps.iter().filter(|s| s.operation() == "while").collect();
        assert!(whiles.iter().any(|s| names(s) == ["w"]), "{level:?}: {steps:?}");
    }
}

/// What an observer was told of a step that has ended: its number, its text, and the shapes and sizes
/// in bytes of its outputs.
type Told = (u32, String, Vec<(String, usize)>);

/// What an observer was told.
#[derive(Debug, Default)]
struct Log {
    before: Mutex<Vec<u32>>,
    after: Mutex<Vec<Told>>,
}

impl Observer for Log {
    fn before(&self, step: &StepInfo<'_>) {
        self.before.lock().unwrap().push(step.id());
    }

    fn after(&self, step: &StepInfo<'_>, outputs: &[OutputView<'_>], _: Duration) {
        let outputs = outputs.iter().map(|o| (o.shape().to_string(), o.bytes().len())).collect();
        self.after.lock().unwrap().push((step.id(), step.to_string(), outputs));
    }
}

#[test]
fn an_observer_is_told() {
    let program = compiled(PROGRAM, OptLevel::Default);
    let log = Arc::new(Log::default());
    let mut options = RunOptions::default();
    options.observer = Some(log.clone());
    let observed = program.run_with(&[input()], &options).unwrap();
    let bytes = |value: &Literal| value.as_array().unwrap().to_bytes().to_vec();
    assert_eq!(bytes(&observed), bytes(&program.run(&[input()]).unwrap()));
    assert_eq!(executed(&log, LINE), 20, "{log:?}");
    let after = log.after.lock().unwrap();
    assert_eq!(log.before.lock().unwrap().len(), after.len());
    let dot = |(_, text, _): &&(u32, String, Vec<_>)| text.contains(LINE);
    let dots: Vec<_> = after.iter().filter(dot).collect();
    let all = ("f32[64,64]".to_owned(), 64 * 64 * 4);
    assert!(dots.iter().all(|(_, _, outputs)| outputs.contains(&all)), "{after:?}");
}

#[test]
fn an_observer_is_told_of_interpreted_programs() {
    let mut options = CompileOptions::default();
    options.backend = helio::Backend::Interpreter;
    let program = compile(parse(PROGRAM).unwrap(), &options).unwrap();
    let log = Arc::new(Log::default());
    let mut options = RunOptions::default();
    options.observer = Some(log.clone());
    program.run_with(&[input()], &options).unwrap();
    assert_eq!(executed(&log, LINE), 20);
    let after = log.after.lock().unwrap();
    let dot = after.iter().find(|(_, text, _)| text.contains(LINE)).unwrap();
    assert_eq!(dot.2, [("f32[64,64]".to_owned(), 64 * 64 * 4)]);
    // An instruction has the same number each time.
    let dots = after.iter().filter(|(_, text, _)| text.contains(LINE));
    assert!(dots.map(|(id, ..)| id).all(|id| *id == dot.0));
}

#[test]
fn errors_say_which_line_of_the_model() {
    let program = compiled(PROGRAM, OptLevel::Default);
    let steps: Vec<String> = program.steps().map(|step| step.to_string()).collect();
    // Enough for a few iterations, so that it ends within the loop.
    let mut lines = Vec::new();
    for max_steps in 4..40 {
        let mut options = RunOptions::default();
        options.limits.max_steps = Some(max_steps);
        let error = program.run_with(&[input()], &options).unwrap_err();
        assert_eq!(error.code(), helio::Code::ResourceExhausted);
        assert!(error.instruction().is_some(), "{error}");
        lines.extend(error.source_line().map(ToString::to_string));
    }
    assert!(lines.iter().any(|line| line == LINE), "{lines:?}, of {steps:?}");

    let text = r#"ENTRY e {
      x = f32[2] parameter(0)
      call.3 = f32[2] custom-call(x), custom_call_target="nobody",
        metadata={op_name="model/call" source_file="model.py" source_line=7}
      ROOT y = f32[2] negate(call.3)
    }"#;
    let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
    for backend in [helio::Backend::Cpu, helio::Backend::Interpreter] {
        let mut options = CompileOptions::default();
        options.backend = backend;
        let program = compile(parse(text).unwrap(), &options).unwrap();
        let error = program.run(std::slice::from_ref(&x)).unwrap_err().to_string();
        assert!(error.contains("call.3 (model.py:7, model/call): "), "{error}");
    }
}

/// Programs beside the checkout, if they are there, and those of this repository.
fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for dir in ["examples", "../shared/corpus", "../shared/models"] {
        let Ok(entries) = fs::read_dir(root.join(dir)) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "hlo")));
    }
    files.sort();
    files
}

#[test]
fn no_step_comes_from_nowhere() {
    let (mut programs_seen, mut steps_seen) = (0, 0);
    for file in programs() {
        let text = fs::read_to_string(&file).unwrap();
        let Ok(module) = parse(&text) else { continue };
        let Ok(program) = compile(module, &CompileOptions::default()) else { continue };
        programs_seen += 1;
        for step in program.steps() {
            steps_seen += 1;
            assert!(!step.origins().is_empty(), "{}: {step}", file.display());
        }
    }
    assert!(programs_seen > 1 && steps_seen > 1, "{programs_seen} programs, {steps_seen} steps");
    println!("{steps_seen} steps of {programs_seen} programs");
}
