//! Programs that stand for far more than their text says: compilation is bounded whatever they are.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helio::{Code, CompileOptions, Limits, Literal, OptLevel, RunOptions};

/// The ways in which one computation can use another.
const WAYS: [&str; 14] = [
    "call",
    "conditional",
    "while",
    "map",
    "reduce",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
    "fusion",
    "async-start",
    "custom-call",
    "all-reduce",
    "call-of-nothing",
];

/// Computations each of which uses the one before it twice, in these ways by turns.
fn doubling(ways: &[&str], depth: usize) -> String {
    let mut text = "ge { a = f32[] parameter(0) b = f32[] parameter(1)
        ROOT r = pred[] compare(a, b), direction=GE }
      c { t = (f32[], f32[]) parameter(0) a = f32[] get-tuple-element(t), index=0
        n = f32[] constant(2) ROOT r = pred[] compare(a, n), direction=LT }\n"
        .to_owned();
    let first = if ways == ["call-of-nothing"] { "copy(a)" } else { "add(a, b)" };
    let params = "a = f32[] parameter(0) b = f32[] parameter(1)";
    let _ = writeln!(text, "g0 {{ {params} ROOT r = f32[] {first} }}");
    for k in 1..=depth {
        let g = format!("g{}", k - 1);
        let (mut before, mut body) = (String::new(), String::new());
        let way = ways[k % ways.len()];
        let state = "t = (f32[], f32[]) parameter(0) a = f32[] get-tuple-element(t), index=0
            b = f32[] get-tuple-element(t), index=1";
        match way {
            "conditional" => {
                before = format!("h{k} {{ {state} ROOT r = f32[] call(a, b), to_apply={g} }}");
            }
            "while" => {
                before = format!(
                    "h{k} {{ {state} x = f32[] call(a, b), to_apply={g} one = f32[] constant(1)
                     y = f32[] add(x, one) ROOT r = (f32[], f32[]) tuple(y, b) }}"
                );
            }
            "sort" => {
                before = format!(
                    "h{k} {{ {params} x = f32[] call(a, b), to_apply={g}
                     ROOT r = pred[] compare(x, b), direction=LT }}"
                );
            }
            _ => {}
        }
        for (n, from) in ["a", "x0"].into_iter().enumerate() {
            let array = format!("v{n} = f32[2] broadcast({from}), dimensions={{}}");
            let scalar = |op: &str| format!("x{n} = f32[] {op}\n");
            let one = |op: &str| format!("{array} w{n} = f32[1] {op} x{n} = f32[] reshape(w{n})\n");
            let two = |op: &str| {
                format!(
                    "{array} w{n} = f32[2] {op} s{n} = f32[1] slice(w{n}), slice={{[0:1]}}
                     x{n} = f32[] reshape(s{n})\n"
                )
            };
            body += &match way {
                "call" | "call-of-nothing" => scalar(&format!("call({from}, b), to_apply={g}")),
                "conditional" => format!(
                    "t{n} = (f32[], f32[]) tuple({from}, b)
                     p{n} = pred[] compare({from}, b), direction=LT
                     x{n} = f32[] conditional(p{n}, t{n}, t{n}), true_computation=h{k},
                       false_computation=h{k}\n"
                ),
                "while" => format!(
                    "t{n} = (f32[], f32[]) tuple({from}, b)
                     w{n} = (f32[], f32[]) while(t{n}), condition=c, body=h{k}
                     x{n} = f32[] get-tuple-element(w{n}), index=0\n"
                ),
                "map" => scalar(&format!("map({from}, b), dimensions={{}}, to_apply={g}")),
                "reduce" => {
                    array
                        + "\n"
                        + &scalar(&format!("reduce(v{n}, b), dimensions={{0}}, to_apply={g}"))
                }
                "reduce-window" => {
                    one(&format!("reduce-window(v{n}, b), window={{size=2}}, to_apply={g}"))
                }
                "scatter" => two(&format!(
                    "scatter(v{n}, i{n}, u{n}), update_window_dims={{}}, inserted_window_dims={{0}},
                     scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={g}"
                ))
                .replacen(
                    &format!("w{n} ="),
                    &format!("i{n} = s32[1,1] constant({{{{0}}}}) u{n} = f32[1] reshape(b) w{n} ="),
                    1,
                ),
                "select-and-scatter" => two(&format!(
                    "select-and-scatter(v{n}, u{n}, b), window={{size=2}}, select=ge, scatter={g}"
                ))
                .replacen(
                    &format!("w{n} ="),
                    &format!("u{n} = f32[1] reshape(b) w{n} ="),
                    1,
                ),
                "sort" => two(&format!("sort(v{n}), dimensions={{0}}, to_apply=h{k}")),
                "fusion" => scalar(&format!("fusion({from}, b), kind=kLoop, calls={g}")),
                "async-start" => format!(
                    "y{n} = ((f32[], f32[]), f32[], s32[]) async-start({from}, b), calls={g}
                     x{n} = f32[] async-done(y{n}), calls={g}\n"
                ),
                "custom-call" => scalar(&format!(
                    "custom-call({from}, b), custom_call_target=\"f\", called_computations={{{g}}}"
                )),
                "all-reduce" => {
                    scalar(&format!("all-reduce({from}), replica_groups={{}}, to_apply={g}"))
                }
                other => panic!("no way {other}"),
            };
        }
        let _ = writeln!(text, "{before}\ng{k} {{ {params} {body} ROOT r = f32[] copy(x1) }}");
    }
    let _ = writeln!(text, "ENTRY e {{ {params} ROOT r = f32[] call(a, b), to_apply=g{depth} }}");
    text
}

/// Time for what takes milliseconds to seconds, on a machine that does other things as well.
const ENOUGH: Duration = Duration::from_secs(100);

/// Sets a flag after a while.
fn timer() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let late = Arc::clone(&flag);
    std::thread::spawn(move || {
        std::thread::sleep(ENOUGH);
        late.store(true, Ordering::Relaxed);
    });
    flag
}

/// Checks, optimises, compiles and runs a program of two scalars, each within bounds.
fn bounded(text: &str, what: &str) {
    let begin = Instant::now();
    let cancel = timer();
    let module = helio::parse(text).unwrap_or_else(|e| panic!("{what}: {e:?}\n{text}"));
    let verified = helio::ir::verify(module.clone()).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let limits = Limits { cancel: Some(Arc::clone(&cancel)), ..Limits::default() };
    let mut options = CompileOptions::default();
    for level in (0..4).filter_map(OptLevel::from_number) {
        let watch = helio::passes::watch::Watch::new(&verified, &limits);
        let backend = options.backend.compiler().expect("a compiler");
        let cx = helio::passes::PassCx::new(&watch, &*backend);
        let optimized = helio::passes::optimize(verified.clone(), level, &cx);
        let optimized = optimized.unwrap_or_else(|e| panic!("{what} at {level:?}: {e}"));
        let count: usize = optimized.computations().iter().map(|c| c.instrs().len()).sum();
        let given: usize = verified.computations().iter().map(|c| c.instrs().len()).sum();
        assert!(count < 8 * given + (1 << 17), "{what} at {level:?}: {given} became {count}");
    }
    options.limits = limits;
    let program = helio::compile(module, &options).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let mut options = RunOptions::default();
    options.limits.max_steps = Some(100_000);
    options.limits.cancel = Some(Arc::clone(&cancel));
    let result = program.run_with(&[Literal::scalar(1f32), Literal::scalar(2f32)], &options);
    if let Err(error) = result {
        let is_expected = error.code() == Code::ResourceExhausted || what.contains("custom-call");
        assert!(is_expected, "{what}: {error}");
    }
    assert!(!cancel.load(Ordering::Relaxed), "{what} took {:?}", begin.elapsed());
}

#[test]
fn computations_that_use_each_other_twice() {
    for way in WAYS {
        for depth in [24, 60] {
            bounded(&doubling(&[way], depth), &format!("{way} {depth}"));
        }
    }
}

#[test]
fn computations_that_use_each_other_twice_in_many_ways() {
    for depth in [24, 40, 60] {
        bounded(&doubling(&WAYS[..13], depth), &format!("custom-call and others {depth}"));
        bounded(&doubling(&["while", "fusion", "map"], depth), &format!("loops {depth}"));
        bounded(&doubling(&["conditional", "call"], depth), &format!("branches {depth}"));
    }
}

#[test]
fn one_computation_called_often() {
    let mut text = "f { a = f32[] parameter(0)\n x0 = f32[] negate(a)\n".to_owned();
    let (long, often) = (1000, 1000);
    for i in 1..long {
        let _ = writeln!(text, "x{i} = f32[] sine(x{})", i - 1);
    }
    text += "}\nENTRY e { a = f32[] parameter(0) b = f32[] parameter(1)\n x0 = f32[] add(a, b)\n";
    for i in 1..often {
        let _ = writeln!(text, "x{i} = f32[] call(x{}), to_apply=f", i - 1);
    }
    bounded(&(text + "}"), "1,000 calls of 1,000 instructions");
}

#[test]
fn computations_nested_deep() {
    for depth in [63, 64, 65, 500, 3000] {
        for (way, callee) in [("call(a, b), to_apply=", "g"), ("map(a, b), to_apply=", "g")] {
            let params = "a = f32[] parameter(0) b = f32[] parameter(1)";
            let mut text = format!("g0 {{ {params} ROOT r = f32[] add(a, b) }}\n");
            for k in 1..depth {
                let _ = writeln!(text, "g{k} {{ {params} ROOT r = f32[] {way}{callee}{} }}", k - 1);
            }
            let _ =
                writeln!(text, "ENTRY e {{ {params} ROOT r = f32[] {way}{callee}{} }}", depth - 1);
            bounded(&text, &format!("{way} {depth}"));
        }
    }
}

#[test]
fn limits_of_a_compilation() {
    let text = doubling(&["call"], 40);
    let module = helio::parse(&text).expect("it parses");
    let mut options = CompileOptions::default();
    options.limits.max_steps = Some(1000);
    let errors = helio::compile(module.clone(), &options).expect_err("it takes more");
    assert_eq!(errors[0].code(), Code::ResourceExhausted);
    assert_eq!(errors[0].rule_id(), Some("limit.steps"));
    assert_eq!(errors[0].detail(), "pass inline: compilation takes more than 1000 steps");
    options.limits.max_steps = None;
    options.limits.cancel = Some(Arc::new(AtomicBool::new(true)));
    let errors = helio::compile(module, &options).expect_err("it is cancelled");
    assert_eq!(errors[0].code(), Code::Cancelled);
}
