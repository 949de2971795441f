//! What surrounds a run: host queues, seeds, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use helio::{Code, CompileOptions, Executable, HostQueues, Literal, RunOptions, Shape};

fn compile(text: &str) -> Executable {
    let module = helio::parse(text).unwrap();
    helio::compile(module, &CompileOptions::default()).unwrap()
}

fn floats(value: &Literal) -> Vec<f32> {
    value.as_array().unwrap().as_slice::<f32>().unwrap().to_vec()
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
    let of_argument =
        "ENTRY e { x = f32[3,3] parameter(0) ROOT y = f32[3,3] transpose(x), dimensions={1,0} }";
    for backend in [helio::Backend::Cpu, helio::Backend::Interpreter] {
        let mut compile = CompileOptions::default();
        compile.backend = backend;
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
