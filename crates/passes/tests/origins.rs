//! Every instruction that passes make says of which instructions of the given program it was made.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use helio_codegen::elementwise::Recipes;
use helio_eval::Limits;
use helio_ir::text::{parse, print};
use helio_ir::{Instr, Module, Op, verify};
use helio_passes::watch::Watch;
use helio_passes::{OptLevel, PIPELINE, Pass, PassCx, PassObserver, optimize};

/// What each pass of the pipeline has made of a program.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<(&'static str, Module)>>);

impl PassObserver for Log {
    fn after(&self, pass: &Pass, module: &Module, _: Duration) {
        self.0.lock().unwrap().push((pass.name, module.clone()));
    }
}

fn passes(text: &str, level: OptLevel) -> Vec<(&'static str, Module)> {
    let module = verify(parse(text).expect("the text parses")).expect("the text verifies");
    let (watch, log) = (Watch::new(&module, &Limits::default()), Log::default());
    let cx = PassCx { observer: Some(&log), ..PassCx::new(&watch, &Recipes) };
    optimize(module, level, &cx).expect("the passes run");
    log.0.into_inner().unwrap()
}

/// The names of the instructions that an instruction was made of.
fn made_of<'m>(module: &'m Module, instr: &Instr) -> Vec<&'m str> {
    module.origins_of(&instr.origins).map(|origin| origin.instruction.as_str()).collect()
}

fn assert_all_known(pass: &str, module: &Module) {
    for computation in module.computations() {
        for instr in computation.instrs() {
            assert!(
                !made_of(module, instr).is_empty(),
                "after {pass}, {} of {} comes from nowhere:\n{}",
                instr.name,
                computation.name,
                print(module)
            );
        }
    }
}

#[test]
fn every_instruction_of_the_golden_programs_has_an_origin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/passes");
    let mut checked = 0;
    for dir in fs::read_dir(root).unwrap() {
        let dir = dir.unwrap().path();
        let Ok(files) = fs::read_dir(&dir) else { continue };
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for case in text.split("// =====\n") {
                let before = case.split("// becomes:\n").next().unwrap_or_default();
                let Ok(module) = parse(before) else { continue };
                if verify(module).is_err() {
                    continue;
                }
                for level in [OptLevel::None, OptLevel::Less, OptLevel::Default, OptLevel::More] {
                    passes(before, level).iter().for_each(|(pass, m)| assert_all_known(pass, m));
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 200, "only {checked} programs were found");
}

/// What JAX 0.10.2 writes for a scaled softmax of a product in a loop, abridged.
const ATTENTION: &str = r#"
HloModule jit_step
FileNames
1 "model.py"
FunctionNames
1 "attention"
FileLocations
1 {file_name_id=1 function_name_id=1 line=31 end_line=31 column=8 end_column=20}
StackFrames
1 {file_location_id=1 parent_frame_id=1}

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
softmax.1 {
  x = f32[8,8] parameter(0)
  exp.1 = f32[8,8] exponential(x), metadata={op_name="jit(step)/attention/exp" stack_frame_id=1}
  zero.1 = f32[] constant(0)
  sum.1 = f32[8] reduce(exp.1, zero.1), dimensions={1}, to_apply=sum
  wide.1 = f32[8,8] broadcast(sum.1), dimensions={0}
  ROOT div.1 = f32[8,8] divide(exp.1, wide.1)
}
body {
  s = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next.1 = s32[] add(i, one)
  dot.7 = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/attention/dot_general" stack_frame_id=1}
  soft.1 = f32[8,8] call(dot.7), to_apply=softmax.1
  ROOT t = (s32[], f32[8,8]) tuple(next.1, soft.1)
}
condition {
  s = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[8,8] parameter(0)
  scale = f32[] constant(1)
  scales = f32[8,8] broadcast(scale), dimensions={}
  scaled.1 = f32[8,8] multiply(x, scales)
  zero = s32[] constant(0)
  s = (s32[], f32[8,8]) tuple(zero, scaled.1)
  w = (s32[], f32[8,8]) while(s), condition=condition, body=body
  ROOT y = f32[8,8] get-tuple-element(w), index=1
}"#;

#[test]
fn an_instruction_is_followed_through_every_pass() {
    let after = passes(ATTENTION, OptLevel::Default);
    assert_eq!(after.len(), PIPELINE.iter().filter(|p| p.level <= OptLevel::Default).count());
    for (pass, module) in &after {
        assert_all_known(pass, module);
        let dots: Vec<&Instr> = module
            .computations()
            .iter()
            .flat_map(|computation| computation.instrs())
            .filter(|instr| matches!(instr.op, Op::Dot(_)))
            .collect();
        assert!(!dots.is_empty(), "{pass} has lost the product");
        for dot in dots {
            assert_eq!(made_of(module, dot), ["dot.7"], "after {pass}");
            let origin = module.origins_of(&dot.origins).next().unwrap();
            assert_eq!(&*origin.computation, "body");
            let line = module.source_line(origin.metadata.as_ref().unwrap()).unwrap();
            assert_eq!(line.to_string(), "model.py:31, jit(step)/attention/dot_general");
        }
    }
    // Fusions know all that they do, whether they share a computation or not.
    let (_, last) = after.last().unwrap();
    let fusions = last.computations().iter().flat_map(|computation| computation.instrs());
    let fusions = fusions.filter(|instr| matches!(instr.op, Op::Fusion(_)));
    let fused: Vec<Vec<&str>> = fusions.map(|fusion| made_of(last, fusion)).collect();
    for name in ["exp.1", "sum.1", "div.1"] {
        assert!(fused.iter().any(|of| of.contains(&name)), "{name} in {fused:?}");
    }
    assert!(fused.iter().any(|of| of.len() > 1), "{fused:?}");
}

#[test]
fn what_merges_has_the_origins_of_both() {
    let after = passes(
        "ENTRY e {
           x = f32[4] parameter(0)
           a = f32[4] sine(x)
           b = f32[4] sine(x)
           one = f32[] constant(1)
           ones = f32[4] broadcast(one), dimensions={}
           c = f32[4] multiply(b, ones)
           ROOT t = (f32[4], f32[4]) tuple(a, c)
         }",
        OptLevel::Less,
    );
    let (_, simplified) = after.iter().rfind(|(pass, _)| *pass == "simplify").unwrap();
    let sines: Vec<&Instr> =
        simplified.entry().instrs().iter().filter(|instr| instr.op.opcode() == "sine").collect();
    assert_eq!(sines.len(), 1);
    assert_eq!(made_of(simplified, sines[0]), ["a", "b", "c"]);
}
