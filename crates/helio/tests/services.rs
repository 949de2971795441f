//! What surrounds a run: custom calls, host queues, seeds, limits.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use helio::{
    CFunction, Code, CompileOptions, CustomCallRegistry, Error, Executable, HostQueues, Literal,
    RunOptions, Shape,
};

fn compile(text: &str) -> Executable {
    let module = helio::parse(text).unwrap();
    helio::compile(module, &CompileOptions::default()).unwrap()
}

fn floats(value: &Literal) -> Vec<f32> {
    value.as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// The documents' own example (E4 "CustomCall"): z is 3x3, z[0][0] = x[1] + y[1][0].
const MYFUNC: &str = "ENTRY e {
  x = f32[2] constant({1, 2})
  y = f32[2,3] constant({ {10, 20, 30}, {40, 50, 60} })
  ROOT z = f32[3,3] custom-call(x, y), custom_call_target=\"myfunc\"
}";

/// # Safety
/// `ins` has arrays of 2 and of 6 numbers; `out` is one of 9.
unsafe extern "C" fn myfunc(out: *mut c_void, ins: *mut *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        let x = *ins as *const f32;
        let y = *ins.add(1) as *const f32;
        *(out as *mut f32) = *x.add(1) + *y.add(3);
    }
}

#[test]
fn a_custom_call_through_the_c_abi_or_from_rust() {
    let program = compile(MYFUNC);
    let registry = Arc::new(CustomCallRegistry::new());
    let mut options = RunOptions::default();
    options.custom_calls = registry.clone();

    let error = program.run_with(&[], &options).unwrap_err();
    assert!(error.detail().contains("myfunc"), "{error}");
    assert_eq!(error.instruction(), Some("z"));

    // SAFETY: `myfunc` reads an element of one operand, the fourth of another, and writes one.
    let function = unsafe {
        CFunction::new(myfunc, |operands, result| {
            let bytes: Vec<_> = operands.iter().map(|operand| operand.array_bytes()).collect();
            bytes == [Some(8), Some(24)] && result.array_bytes() == Some(36)
        })
    };
    registry.register_c("myfunc", function);
    let small = MYFUNC.replace("f32[2] constant({1, 2})", "f32[1] constant({1})");
    let error = compile(&small).run_with(&[], &options).unwrap_err();
    assert!(error.detail().contains("myfunc: the function does not take"), "{error}");
    let expected = [42.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(floats(&program.run_with(&[], &options).unwrap()), expected);

    registry.register("myfunc", |args, _| {
        let value = |i: usize, at| args[i].as_array().map(|a| a.number(at).to_f64() as f32);
        let sum = value(0, 1).zip(value(1, 3)).map(|(x, y)| x + y);
        let sum = sum.ok_or_else(|| Error::invalid("two arrays"))?;
        Literal::array([3, 3], vec![sum; 9])
    });
    assert_eq!(floats(&program.run_with(&[], &options).unwrap()), [42.0; 9]);

    registry.register("myfunc", |_, _| Ok(Literal::scalar(1f32)));
    let error = program.run_with(&[], &options).unwrap_err();
    assert!(error.detail().contains("f32[3,3]"), "{error}");
}

#[test]
fn a_custom_call_that_panics_is_an_error_of_that_run() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1)
        c = f32[] custom-call(a), custom_call_target=\"fails\"
        ROOT r = f32[] add(c, b) }
      ENTRY e { x = f32[2] parameter(0) z = f32[] constant(0)
        y = f32[2] custom-call(x), custom_call_target=\"fails\"
        s = f32[] reduce(x, z), dimensions={0}, to_apply=add
        ROOT t = (f32[2], f32[]) tuple(y, s) }";
    let backends = [helio::Backend::Cpu, helio::Backend::Interpreter];
    // At the top, and in a computation that is called.
    let texts = [
        text.to_owned(),
        text.replace("custom-call(x), custom_call_target=\"fails\"", "negate(x)"),
    ];
    for (backend, text) in backends.iter().flat_map(|b| texts.iter().map(move |text| (b, text))) {
        let client = helio::Client::default();
        let mut compile = CompileOptions::default();
        compile.backend = *backend;
        let program = client.compile(helio::parse(text).unwrap(), &compile).unwrap();
        let registry = Arc::new(CustomCallRegistry::new());
        registry.register("fails", |_, _| panic!("on {}", "purpose"));
        let mut options = helio::ExecuteOptions::default();
        options.run.custom_calls = registry.clone();
        let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
        let ensure = |error: Error| {
            assert_eq!(error.code(), Code::InvalidArgument, "{error}");
            assert!(error.detail().contains("custom call `fails` panicked: on purpose"), "{error}");
            assert!(matches!(error.instruction(), Some("y" | "c")), "{error}");
        };
        ensure(program.run_with(std::slice::from_ref(&x), &options.run).unwrap_err());
        let buffer = client.buffer_from_array(x.as_array().unwrap(), client.default_device());
        let buffer = buffer.unwrap();
        ensure(program.execute(&[&buffer], &options).unwrap_err());
        options.asynchronous = true;
        for result in program.execute(&[&buffer], &options).unwrap() {
            ensure(result.to_array().unwrap_err());
        }
        // Nothing is left behind: the next run is like any other.
        registry.register("fails", |args, _| Ok(args[0].clone()));
        for result in program.execute(&[&buffer], &options).unwrap() {
            assert!(result.to_array().is_ok());
        }
        assert!(program.run_with(&[x], &options.run).is_ok());
    }
}

#[test]
fn elements_that_are_left_away_are_missed_at_once() {
    let broken = || {
        let mut literal = Literal::array([3, 3], vec![0f32; 9]).unwrap();
        if let Literal::Array(array) = &mut literal {
            *array.data_mut() = helio::ir::ArrayData::F32(vec![1.0]);
        }
        literal
    };
    let registry = Arc::new(CustomCallRegistry::new());
    registry.register("myfunc", move |_, _| Ok(broken()));
    let mut options = RunOptions::default();
    options.custom_calls = registry;
    let of_argument =
        "ENTRY e { x = f32[3,3] parameter(0) ROOT y = f32[3,3] transpose(x), dimensions={1,0} }";
    for backend in [helio::Backend::Cpu, helio::Backend::Interpreter] {
        let mut compile = CompileOptions::default();
        compile.backend = backend;
        let program = helio::compile(helio::parse(MYFUNC).unwrap(), &compile).unwrap();
        let error = program.run_with(&[], &options).unwrap_err();
        assert_eq!(
            (error.rule_id(), error.instruction()),
            (Some("literal.C1"), Some("z")),
            "{error}"
        );
        let program = helio::compile(helio::parse(of_argument).unwrap(), &compile).unwrap();
        assert_eq!(program.run(&[broken()]).unwrap_err().rule_id(), Some("literal.C1"));
    }
    let client = helio::Client::default();
    let array = broken();
    let buffer = client.buffer_from_array(array.as_array().unwrap(), client.default_device());
    assert_eq!(buffer.unwrap_err().rule_id(), Some("literal.C1"));
    let b = helio::XlaBuilder::new("b");
    b.constant_literal(broken());
    assert_eq!(b.build().unwrap_err().rule_id(), Some("literal.C1"));
}

#[test]
fn infeed_and_outfeed_while_the_program_runs() {
    let program = compile(
        "less { s = (s32[], token[]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           n = s32[] constant(3)
           ROOT go = pred[] compare(i, n), direction=LT }
         step { s = (s32[], token[]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           t = token[] get-tuple-element(s), index=1
           in = ((f32[2], pred[]), token[]) infeed(t)
           v = (f32[2], pred[]) get-tuple-element(in), index=0
           x = f32[2] get-tuple-element(v), index=0
           y = f32[2] add(x, x)
           t2 = token[] get-tuple-element(in), index=1
           t3 = token[] outfeed(y, t2), outfeed_shape=f32[2]
           one = s32[] constant(1)
           j = s32[] add(i, one)
           ROOT r = (s32[], token[]) tuple(j, t3) }
         ENTRY e { zero = s32[] constant(0)
           t = token[] after-all()
           init = (s32[], token[]) tuple(zero, t)
           w = (s32[], token[]) while(init), condition=less, body=step
           ROOT i = s32[] get-tuple-element(w), index=0 }",
    );
    let queues = Arc::new(HostQueues::new());
    let mut options = RunOptions::default();
    options.host = Some(queues.clone());
    let running = thread::spawn(move || program.run_with(&[], &options));
    for i in 0..3 {
        let x = Literal::array([2], vec![i as f32, 1.0]).unwrap();
        queues.infeed(0).push(Literal::Tuple(vec![x, Literal::scalar(true)])).unwrap();
        assert_eq!(floats(&queues.outfeed(0).pop().unwrap()), [2.0 * i as f32, 2.0]);
    }
    let result = running.join().unwrap().unwrap();
    assert_eq!(result.as_array().unwrap().as_slice(), Some(&[3i32][..]));
}

#[test]
fn a_closed_or_wrongly_fed_queue_is_an_error() {
    let program =
        compile("ENTRY e { t = token[] after-all() ROOT in = (f32[2], token[]) infeed(t) }");
    let queues = Arc::new(HostQueues::new());
    let mut options = RunOptions::default();
    options.host = Some(queues.clone());
    queues.infeed(0).push(Literal::scalar(1f32)).unwrap();
    let error = program.run_with(&[], &options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");

    let waiting = thread::spawn({
        let (program, options) = (program.clone(), options.clone());
        move || program.run_with(&[], &options)
    });
    thread::sleep(Duration::from_millis(20));
    queues.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.run(&[]).unwrap_err().code(), Code::Unavailable);
}

const CHANNELS: &str = "ENTRY e {
  t = token[] after-all()
  x = f32[2] parameter(0)
  r = (f32[2], u32[], token[]) recv(t), channel_id=7HOST
  s = (f32[2], u32[], token[]) send(x, t), channel_id=7HOST
  sd = token[] send-done(s), channel_id=7HOST
  rd = (f32[2], token[]) recv-done(r), channel_id=7HOST
  ROOT y = f32[2] get-tuple-element(rd), index=0
}";

#[test]
fn a_program_receives_what_it_sends_itself() {
    let program = compile(&CHANNELS.replace("HOST", ""));
    let mut options = RunOptions::default();
    options.host = Some(Arc::new(HostQueues::new()));
    let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
    assert_eq!(floats(&program.run_with(&[x], &options).unwrap()), [1.0, 2.0]);
}

#[test]
fn host_channels_have_two_directions() {
    let program = compile(&CHANNELS.replace("HOST", ", is_host_transfer=true"));
    let queues = Arc::new(HostQueues::new());
    let mut options = RunOptions::default();
    options.host = Some(queues.clone());
    let value = |v: f32| Literal::array([2], vec![v; 2]).unwrap();
    queues.to_program(0, 7).push(value(5.0)).unwrap();
    assert_eq!(floats(&program.run_with(&[value(1.0)], &options).unwrap()), [5.0; 2]);
    assert_eq!(floats(&queues.from_program(0, 7).try_pop().unwrap()), [1.0; 2]);
}

#[test]
fn random_numbers_follow_the_seed() {
    let program = compile(
        "ENTRY e { a = f32[] constant(0) b = f32[] constant(1)
           ROOT r = f32[100] rng(a, b), distribution=rng_uniform }",
    );
    let run = |seed| {
        let mut options = RunOptions::default();
        options.seed = seed;
        floats(&program.run_with(&[], &options).unwrap())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_run_can_be_cancelled() {
    let program = compile(
        "yes { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
         same { ROOT s = s32[] parameter(0) }
         ENTRY e { z = s32[] constant(0) ROOT w = s32[] while(z), condition=yes, body=same }",
    );
    let cancel = Arc::new(AtomicBool::new(false));
    let mut options = RunOptions::default();
    options.limits.cancel = Some(cancel.clone());
    let running = thread::spawn(move || program.run_with(&[], &options));
    thread::sleep(Duration::from_millis(20));
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(running.join().unwrap().unwrap_err().code(), Code::Cancelled);
}

#[test]
fn a_program_runs_from_many_threads_at_once() {
    let program = compile("ENTRY e { x = f32[] parameter(0) ROOT y = f32[] multiply(x, x) }");
    thread::scope(|scope| {
        for i in 0..8 {
            let program = &program;
            scope.spawn(move || {
                let y = program.run(&[Literal::scalar(i as f32)]).unwrap();
                assert_eq!(floats(&y), [(i * i) as f32]);
            });
        }
    });
}

#[test]
fn arguments_must_fit() {
    let program = compile("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }");
    for args in [vec![], vec![Literal::scalar(1f32)], vec![Literal::Token]] {
        let error = program.run(&args).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    assert_eq!(
        program.program_shape().params,
        [Shape::array(helio::ElementType::F32, [2]).unwrap()]
    );
}

#[test]
fn a_constant_without_its_value_is_checked_and_printed_but_not_run() {
    let program = compile("ENTRY e { ROOT c = f32[20] constant({...}) }");
    assert!(helio::print(program.module()).contains("constant({...})"));
    let error = program.run(&[]).unwrap_err();
    assert!(error.detail().contains("left out"), "{error}");
}

#[test]
fn custom_calls_that_nobody_defines_are_warnings() {
    let program = compile(
        "ENTRY e {
           x = f32[2] parameter(0)
           a = f32[2] custom-call(x), custom_call_target=\"mine\"
           b = f32[2] custom-call(a), custom_call_target=\"other\"
           c = f32[2] custom-call(b), custom_call_target=\"other\"
           ROOT d = f32[2] custom-call(c), custom_call_target=\"Sharding\"
         }",
    );
    let registry = Arc::new(CustomCallRegistry::new());
    let targets = |registry: &CustomCallRegistry| {
        let warnings = program.warnings(registry);
        warnings.iter().filter_map(|e| e.instruction()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(targets(&registry), ["a", "b"]);
    registry.register("mine", |args, _| Ok(args[0].clone()));
    assert_eq!(targets(&registry), ["b"]);
    // A warning is the error that a run ends with.
    let warning = program.warnings(&registry).remove(0);
    let mut options = RunOptions::default();
    options.custom_calls = registry;
    let x = Literal::array([2], vec![1f32, 2.0]).expect("an array");
    let error = program.run_with(&[x], &options).expect_err("there is no such function");
    assert!(error.detail().contains(warning.detail()), "{error}");
}
