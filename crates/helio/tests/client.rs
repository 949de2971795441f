//! Clients, devices, buffers and executions.

use std::fmt::Write as _;
use std::sync::Arc;

use helio::ir::ArrayShape;
use helio::{
    Array, Backend, Buffer, Client, ClientOptions, Code, CompileOptions, ElementType, Error,
    Executable, ExecuteOptions, Keep, Literal,
};

fn compile(client: &Client, text: &str) -> Executable {
    let module = helio::parse(text).expect("a program");
    client.compile(module, &CompileOptions::default()).expect("it compiles")
}

fn floats(client: &Client, values: &[f32]) -> Buffer {
    let array = Array::new([values.len()], values.to_vec()).expect("an array");
    client.buffer_from_array(&array, client.default_device()).expect("memory")
}

fn values(buffer: &Buffer) -> Vec<f32> {
    buffer.to_array().expect("a value").values::<f32>().expect("floats").to_vec()
}

fn code<T>(result: Result<T, Error>) -> Option<Code> {
    result.err().map(|e| e.code())
}

const DOUBLE: &str = "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }";

const STEP: &str = "HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
    ENTRY e {
      x = f32[2] parameter(0)
      d = f32[2] parameter(1)
      y = f32[2] add(x, d)
      ROOT t = (f32[2], f32[2]) tuple(y, d)
    }";

#[test]
fn tuples_are_taken_apart_and_buffers_stay() {
    let client = Client::default();
    let program = compile(
        &client,
        "ENTRY e {
           p = (f32[2], (f32[2])) parameter(0)
           a = f32[2] get-tuple-element(p), index=0
           q = (f32[2]) get-tuple-element(p), index=1
           b = f32[2] get-tuple-element(q), index=0
           s = f32[2] subtract(a, b)
           ROOT t = (f32[2], (f32[2], f32[2])) tuple(s, p)
         }"
        .replace("(f32[2], (f32[2], f32[2])) tuple(s, p)", "(f32[2], (f32[2])) tuple(s, q)")
        .as_str(),
    );
    let (a, b) = (floats(&client, &[3.0, 4.0]), floats(&client, &[1.0, 1.0]));
    for _ in 0..2 {
        let results = program.execute(&[&a, &b], &ExecuteOptions::default()).expect("it runs");
        assert_eq!(results.iter().map(values).collect::<Vec<_>>(), [[2.0, 3.0], [1.0, 1.0]]);
    }
    assert_eq!(
        code(program.execute(&[&a], &ExecuteOptions::default())),
        Some(Code::InvalidArgument)
    );
    let long = floats(&client, &[1.0; 3]);
    let wrong = program.execute(&[&a, &long], &ExecuteOptions::default());
    assert_eq!(code(wrong), Some(Code::InvalidArgument));
}

#[test]
fn donated_buffers_end_unless_they_are_kept() {
    let client = Client::default();
    let program = compile(&client, STEP);
    let (x, d) = (floats(&client, &[1.0, 2.0]), floats(&client, &[0.5, 0.5]));
    let mut keep = ExecuteOptions::default();
    keep.keep = Keep::All;
    let kept = program.execute(&[&x, &d], &keep).expect("it runs");
    assert_eq!((values(&kept[0]), values(&x)), (vec![1.5, 2.5], vec![1.0, 2.0]));
    let results = program.execute(&[&x, &d], &ExecuteOptions::default()).expect("it runs");
    assert_eq!((values(&results[0]), values(&d)), (vec![1.5, 2.5], vec![0.5, 0.5]));
    assert!(x.is_deleted() && !d.is_deleted());
    assert_eq!(code(x.to_array()), Some(Code::FailedPrecondition));
    let again = program.execute(&[&x, &d], &ExecuteOptions::default());
    assert_eq!(code(again), Some(Code::FailedPrecondition));
}

#[test]
fn a_donor_ends_if_a_result_has_its_size() {
    let client = Client::default();
    let program = compile(
        &client,
        "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) },
           buffer_donor={ (1, {}), (2, {}), (3, {}) }
         ENTRY e {
           a = f32[2] parameter(0)
           b = f32[2] parameter(1)
           c = f32[2] parameter(2)
           d = f32[3] parameter(3)
           x = f32[2] add(a, b)
           y = f32[2] multiply(b, c)
           ROOT t = (f32[2], f32[2]) tuple(x, y)
         }",
    );
    let buffers = [&[1.0, 2.0][..], &[3.0, 4.0], &[5.0, 6.0], &[7.0, 8.0, 9.0]];
    let buffers = buffers.map(|values| floats(&client, values));
    let results = program.execute(&buffers.each_ref(), &ExecuteOptions::default());
    let results = results.expect("it runs");
    assert_eq!(results.iter().map(values).collect::<Vec<_>>(), [[4.0, 6.0], [15.0, 24.0]]);
    // The first result has the first argument's memory, the second one the second's; no other takes any.
    assert_eq!(buffers.each_ref().map(|buffer| buffer.is_deleted()), [true, true, false, false]);
    assert_eq!(values(&buffers[2]), [5.0, 6.0]);
}

#[test]
fn what_must_be_given_away_cannot_be_kept() {
    let client = Client::default();
    let program = compile(&client, &STEP.replace("may-alias", "must-alias"));
    let (x, d) = (floats(&client, &[1.0, 2.0]), floats(&client, &[0.5, 0.5]));
    let mut keep = ExecuteOptions::default();
    for kept in [Keep::All, Keep::These(vec![0])] {
        keep.keep = kept;
        let refused = program.execute(&[&x, &d], &keep);
        assert_eq!(code(refused.clone()), Some(Code::InvalidArgument));
        assert_eq!(
            said(refused),
            "array 0, of f32[2], is to be kept; the module's input_output_alias says must-alias, so \
             it must be given away"
        );
    }
    assert!(!x.is_deleted());
    keep.keep = Keep::These(vec![1]);
    let results = program.execute(&[&x, &d], &keep).expect("it runs");
    assert_eq!((values(&results[0]), x.is_deleted()), (vec![1.5, 2.5], true));
}

#[test]
fn a_donated_buffer_that_is_still_seen_is_not_changed() {
    let client = Client::default();
    let program = compile(&client, STEP);
    let (x, d) = (floats(&client, &[1.0, 2.0]), floats(&client, &[0.5, 0.5]));
    let seen = x.view().expect("a view");
    program.execute(&[&x, &d], &ExecuteOptions::default()).expect("it runs");
    assert_eq!(seen.as_slice(), [1f32, 2.0].map(f32::to_ne_bytes).as_flattened());
}

fn said<T>(result: Result<T, Error>) -> String {
    let error = result.err().expect("an error");
    error.detail().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn buffers_must_be_on_the_device_of_the_execution() {
    let mut two = ClientOptions::default();
    two.devices = 2;
    let (client, other) = (Client::new(&two), Client::new(&two));
    let program = compile(&client, DOUBLE);
    for asynchronous in [false, true] {
        let mut options = ExecuteOptions::default();
        options.asynchronous = asynchronous;
        let x = floats(&client, &[1.0, 2.0]);
        let foreign = floats(&other, &[3.0, 4.0]);
        assert_eq!(
            said(program.execute(&[&foreign], &options)),
            "array 0 is on device 0 of another client than the program's; the execution is on \
             device 0 of the program's client"
        );
        options.device = Some(1);
        assert_eq!(
            said(program.execute(&[&x], &options)),
            "array 0 is on device 0; the execution is on device 1 of the program's client"
        );
        options.device = Some(2);
        assert_eq!(said(program.execute(&[&x], &options)), "there is no device 2, only 2");
        assert_eq!(code(program.execute(&[&x], &options)), Some(Code::NotFound));
        // Copies are where they are asked for, in memory of that client.
        options.device = Some(1);
        let live = client.memory_stats().live_bytes;
        let there = foreign.copy_to(&client.device(1).expect("two devices")).expect("a copy");
        assert_eq!(client.memory_stats().live_bytes, live + 8);
        let y = program.execute(&[&there], &options).expect("it runs").remove(0);
        assert_eq!(values(&y), [6.0, 8.0]);
        assert_eq!(*y.device(), client.device(1).expect("two devices"));
    }
    let array = Array::new([2], vec![1f32, 2.0]).expect("an array");
    let device = other.default_device();
    let wanted = "a buffer of this client on device 0 of another client";
    assert_eq!(said(client.buffer_from_array(&array, device.clone())), wanted);
    let shape = array.shape();
    assert_eq!(said(client.buffer_from_bytes(shape, &[0; 8], device.clone())), wanted);
    assert_eq!(said(client.buffer_from_host(shape, Arc::new([0; 8]), device.clone())), wanted);
    assert_eq!(said(client.promised_buffer(shape, device)), wanted);
}

#[test]
fn an_execution_that_is_refused_leaves_its_arguments_alone() {
    let client = Client::default();
    let program = compile(&client, STEP);
    let (x, d) = (floats(&client, &[1.0, 2.0]), floats(&client, &[0.5, 0.5]));
    let options = ExecuteOptions::default();
    let twice = "arrays 0 and 1 are one buffer, of f32[2], which is given away as array 0";
    assert_eq!(said(program.execute(&[&x, &x.clone()], &options)), twice);
    let gone = floats(&client, &[0.0; 2]);
    gone.delete();
    let wanted = "array 1: the buffer of f32[2] has been deleted";
    assert_eq!(said(program.execute(&[&x, &gone], &options)), wanted);
    let mut keep = ExecuteOptions::default();
    keep.keep = Keep::These(vec![2]);
    let wanted = "array 2 is to be kept; there are 2";
    assert_eq!(said(program.execute(&[&x, &d], &keep)), wanted);
    assert!(!x.is_deleted());
    keep.keep = Keep::These(vec![0]);
    let kept = program.execute(&[&x, &x], &keep).expect("it runs");
    assert_eq!(values(&kept[0]), [2.0, 4.0]);
    let results = program.execute(&[&x, &d], &options).expect("it runs");
    assert_eq!(values(&results[0]), [1.5, 2.5]);
    assert_eq!(
        said(program.execute(&[&x, &d], &options)),
        "array 0: the buffer of f32[2] has been given away to an execution, which may have written \
         it"
    );
    assert!(!d.is_deleted());
}

#[test]
fn what_the_host_panics_with_is_the_error_of_the_execution() {
    use std::sync::atomic::{AtomicBool, Ordering};
    #[repr(align(64))]
    struct Host([u8; 8], AtomicBool);
    impl AsRef<[u8]> for Host {
        fn as_ref(&self) -> &[u8] {
            assert!(!self.1.load(Ordering::Relaxed), "unplugged");
            &self.0
        }
    }
    let client = Client::default();
    let program = compile(&client, DOUBLE);
    let shape = ArrayShape::new(ElementType::F32, [2]).expect("a shape");
    let host = Arc::new(Host([0; 8], AtomicBool::new(false)));
    let device = client.default_device();
    let x = client.buffer_from_host(&shape, host.clone(), device).expect("a buffer");
    host.1.store(true, Ordering::Relaxed);
    let mut options = ExecuteOptions::default();
    let wanted = "the owner of an argument's memory panicked: unplugged";
    assert_eq!(said(program.execute(&[&x], &options)), wanted);
    options.asynchronous = true;
    let y = program.execute(&[&x], &options).expect("accepted").remove(0);
    assert_eq!(said(y.to_array()), wanted);
    host.1.store(false, Ordering::Relaxed);
    let y = program.execute(&[&x], &options).expect("accepted").remove(0);
    assert_eq!(values(&y), [0.0, 0.0]);
}

#[test]
fn asynchronous_executions_follow_each_other() {
    let mut options = ClientOptions::default();
    options.devices = 2;
    let client = Client::new(&options);
    let program = compile(&client, DOUBLE);
    let shape = ArrayShape::new(ElementType::F32, [2]).expect("a shape");
    let (x, promise) =
        client.promised_buffer(&shape, client.default_device()).expect("its own device");
    let mut options = ExecuteOptions::default();
    options.asynchronous = true;
    let y = program.execute(&[&x], &options).expect("accepted").remove(0);
    options.device = Some(1);
    let there = y.copy_to(&client.device(1).expect("two devices")).expect("accepted");
    let z = program.execute(&[&there], &options).expect("accepted").remove(0);
    let copy = z.copy_to(&client.default_device()).expect("accepted");
    assert!(!y.ready().is_ready() && !copy.ready().is_ready());
    // Who asked before the end gets the value in spite of it.
    y.delete();
    let (heard, hear) = std::sync::mpsc::channel();
    copy.ready().on_ready(move |outcome| heard.send(outcome.clone()).expect("heard"));
    let block = client.memory().copy_of([1f32, 2.0].map(f32::to_ne_bytes).as_flattened());
    promise.fill(Ok(block.expect("memory"))).expect("it fits");
    assert_eq!(hear.recv(), Ok(Ok(())));
    assert_eq!((values(&z), values(&copy)), (vec![4.0, 8.0], vec![4.0, 8.0]));
    assert_eq!((z.device().id(), copy.device().id()), (1, 0));
    assert_eq!(code(y.to_array()), Some(Code::FailedPrecondition));
}

#[test]
fn brief_executions_are_done_where_they_are_asked_for() {
    let client = Client::default();
    let here = std::thread::current().id();
    client.custom_calls().register("here", move |call| {
        let is_here = std::thread::current().id() == here;
        call.result_mut(0)?.as_mut_slice::<f32>()?.fill(f32::from(is_here));
        if call.operand(0)?.as_slice::<f32>()?[0] < 0.0 {
            return Err(Error::invalid("below zero"));
        }
        Ok(())
    });
    let program = compile(
        &client,
        "ENTRY e { x = f32[2] parameter(0)
           ROOT y = f32[2] custom-call(x), custom_call_target=\"here\" }",
    );
    let mut options = ExecuteOptions::default();
    (options.asynchronous, options.inline) = (true, true);
    let run = |x: &Buffer| program.execute_all(&[vec![x]], &options).expect("it begins").remove(0);
    let first = run(&floats(&client, &[1.0, 2.0]));
    assert!(first.done.is_ready());
    assert_eq!(values(&first.outputs[0]), [1.0, 1.0]);
    // What goes wrong is the execution's own, and reaches whoever uses its results.
    let failed = run(&floats(&client, &[-1.0, 2.0]));
    assert_eq!(code(failed.done.wait()), Some(Code::InvalidArgument));
    assert_eq!(code(run(&failed.outputs[0]).done.wait()), Some(Code::InvalidArgument));
    // What is yet to come is waited for elsewhere.
    let shape = ArrayShape::new(ElementType::F32, [2]).expect("a shape");
    let device = client.default_device();
    let (coming, promise) = client.promised_buffer(&shape, device).expect("a buffer");
    let later = run(&coming);
    assert!(!later.done.is_ready());
    let block = client.memory().copy_of(&[0; 8]).expect("memory");
    promise.fill(Ok(block)).expect("it fits");
    later.done.wait().expect("it runs");
    assert_eq!(values(&later.outputs[0]), [0.0, 0.0]);
}

#[test]
fn errors_travel_through_buffers() {
    let client = Client::default();
    let program = compile(&client, DOUBLE);
    let shape = ArrayShape::new(ElementType::F32, [2]).expect("a shape");
    let (x, promise) =
        client.promised_buffer(&shape, client.default_device()).expect("its own device");
    let mut options = ExecuteOptions::default();
    options.asynchronous = true;
    let y = program.execute(&[&x], &options).expect("accepted").remove(0);
    let z = program.execute(&[&y], &options).expect("accepted").remove(0);
    let copy = z.copy_to(&client.default_device()).expect("accepted");
    promise.fill(Err(Error::new(Code::Unavailable, "lost on the way"))).expect("nothing to fit");
    for buffer in [&x, &y, &z, &copy] {
        assert_eq!(
            buffer.ready().wait().map_err(|e| e.detail().to_owned()),
            Err("lost on the way".to_owned())
        );
        assert_eq!(code(buffer.to_array()), Some(Code::Unavailable));
    }
    options.asynchronous = false;
    assert_eq!(code(program.execute(&[&z], &options)), Some(Code::Unavailable));
    // A promise that is forgotten, and one that does not fit.
    let (x, promise) =
        client.promised_buffer(&shape, client.default_device()).expect("its own device");
    drop(promise);
    assert_eq!(code(x.ready().wait()), Some(Code::Unavailable));
    let (x, promise) =
        client.promised_buffer(&shape, client.default_device()).expect("its own device");
    assert!(promise.fill(Ok(client.memory().copy_of(b"short").expect("memory"))).is_err());
    assert_eq!(code(x.view()), Some(Code::InvalidArgument));
}

#[test]
fn memory_of_the_host_is_used_in_place_where_it_can_be() {
    #[repr(align(64))]
    struct Aligned([u8; 8]);
    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let client = Client::default();
    let program = compile(&client, DOUBLE);
    let shape = ArrayShape::new(ElementType::F32, [2]).expect("a shape");
    let host = Arc::new(Aligned([0, 0, 128, 63, 0, 0, 0, 64]));
    let device = client.default_device();
    let x = client.buffer_from_host(&shape, host.clone(), device.clone()).expect("a buffer");
    assert_eq!(x.view().expect("a view").as_slice().as_ptr(), host.0.as_ptr());
    let y = program.execute(&[&x], &ExecuteOptions::default()).expect("it runs");
    assert_eq!(values(&y[0]), [2.0, 4.0]);
    let wrong = client.buffer_from_host(&shape, Arc::new([0; 7]), device.clone());
    assert_eq!(code(wrong), Some(Code::InvalidArgument));
    // Every byte but 0 is true.
    let preds = ArrayShape::new(ElementType::Pred, [3]).expect("a shape");
    let x = client.buffer_from_host(&preds, Arc::new([0, 1, 7]), device).expect("a buffer");
    assert_eq!(x.view().expect("a view").as_slice(), [0, 1, 1]);
}

#[test]
fn sizes_known_only_at_run_time_stay_with_the_buffer() {
    let client = Client::default();
    for backend in [Backend::Cpu, Backend::Interpreter] {
        let mut options = CompileOptions::default();
        options.backend = backend;
        let text = "ENTRY e { x = s32[<=3] parameter(0) ROOT y = s32[<=3] negate(x) }";
        let program =
            client.compile(helio::parse(text).expect("a program"), &options).expect("it compiles");
        let shape = program.program_shape().params[0].as_array().expect("an array").clone();
        let data = helio::ir::ArrayData::S32(vec![1, 2, 3]);
        let array = Array::from_data(shape, data).and_then(|a| a.with_sizes(vec![2]));
        let x = client.buffer_from_array(&array.expect("an array"), client.default_device());
        let y = program.execute(&[&x.expect("memory")], &ExecuteOptions::default());
        let y = y.expect("it runs")[0].to_array().expect("an array");
        assert_eq!(
            (y.sizes(), &y.values::<i32>().expect("integers")[..2]),
            (&[2][..], &[-1, -2][..])
        );
    }
}

/// What is compiled takes and gives the sizes of bounded dimensions beside the arrays: among others, in
/// tuples, given away, and with an error where they do not fit.
#[test]
fn compiled_programs_take_sizes() {
    let text = "HloModule sizes, input_output_alias={ {1}: (1, {0}, may-alias) }
        add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
        ENTRY e {
          x = s32[<=3,2] parameter(0)
          p = (s32[<=3,2], s32[4]) parameter(1)
          y = s32[<=3,2] get-tuple-element(p), index=0
          z = s32[<=3,2] add(x, y)
          zero = s32[] constant(0)
          r = s32[2] reduce(z, zero), dimensions={0}, to_apply=add
          w = s32[4] get-tuple-element(p), index=1
          ROOT t = (s32[2], s32[<=3,2], s32[4]) tuple(r, z, w)
        }";
    let client = Client::default();
    let module = helio::parse(text).expect("a program");
    let program = client.compile(module, &CompileOptions::default()).expect("it compiles");
    assert!(program.interpreted().is_empty(), "{program}");
    let shape = helio::ir::text::parse_shape("s32[<=3,2]").expect("a shape");
    let shape = shape.as_array().expect("an array").clone();
    let array = |values: [i32; 6], size: usize| {
        let data = helio::ir::ArrayData::S32(values.to_vec());
        let array = Array::from_data(shape.clone(), data).expect("six elements");
        array.with_sizes(vec![size, 2]).expect("a size within the bound")
    };
    let (x, y) = ([1, 2, 3, 4, 1000, 1000], [10, 20, 30, 40, 1000, 1000]);
    let line = Array::from([7, 8, 9, 10]);
    let buffer = |array: &Array| client.buffer(array).expect("memory");
    let buffers = [buffer(&array(x, 2)), buffer(&array(y, 2)), buffer(&line)];
    let given = &buffers[1];
    let results = program.execute(&[&buffers[0], given, &buffers[2]], &ExecuteOptions::default());
    let results = results.expect("it runs");
    let results: Vec<Array> =
        results.iter().map(|result| result.to_array().expect("an array")).collect();
    assert!(given.is_deleted());
    assert_eq!(results[0], Array::from([44, 66]));
    assert_eq!(results[1].sizes(), [2, 2]);
    assert_eq!(results[1].values::<i32>().expect("integers")[..4], [11, 22, 33, 44]);
    assert_eq!(results[2], line);

    let literals = |size: usize| {
        let pair = Literal::Tuple(vec![array(y, size).into(), line.clone().into()]);
        [array(x, 2).into(), pair]
    };
    let result = program.run(&literals(2)).expect("it runs");
    assert_eq!(result.leaves()[1].as_array().expect("an array").sizes(), [2, 2]);
    let error = program.run(&literals(3)).expect_err("sizes differ");
    let message = error.to_string();
    assert!(
        message.contains("z: dimension 0 has size 2 in one operand and 3 in another"),
        "{message}"
    );
}

#[test]
fn many_threads_run_one_program() {
    let client = Client::default();
    let program = compile(&client, DOUBLE);
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (client, program) = (&client, &program);
            scope.spawn(move || {
                let mut options = ExecuteOptions::default();
                options.asynchronous = i % 2 == 0;
                let mut x = floats(client, &[i as f32, 1.0]);
                for _ in 0..20 {
                    x = program.execute(&[&x], &options).expect("it runs").remove(0);
                }
                assert_eq!(values(&x), [(i << 20) as f32, (1 << 20) as f32]);
            });
        }
    });
}

#[test]
fn a_run_beyond_the_memory_limit_fails_before_it_begins() {
    let mut options = ClientOptions::default();
    options.memory_limit = Some(1 << 20);
    let client = Client::new(&options);
    let program = compile(
        &client,
        "ENTRY e { z = f32[] constant(0) ROOT b = f32[1024,1024] broadcast(z), dimensions={} }",
    );
    let error = program.execute(&[], &ExecuteOptions::default()).expect_err("too much");
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.detail().contains("4194304 bytes"), "{error}");
    assert_eq!(program.run(&[]).map_err(|e| e.code()).err(), Some(Code::ResourceExhausted));
    assert!(client.memory_stats().peak_bytes <= 1 << 20);
}

#[test]
fn everything_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<(Client, Buffer, Executable, helio::Event, helio::Promise)>();
    let client = Client::default();
    assert_eq!(client.devices().len(), 1);
    assert_eq!(client.device(0), Some(client.default_device()));
    assert_eq!(client.device(1), None);
    assert_ne!(Client::default().default_device(), client.default_device());
    let program = compile(&client, DOUBLE);
    let x = Literal::array([2], vec![1f32, 2.0]).expect("an array");
    assert!(program.run(&[x]).is_ok());
    drop(client);
    assert_eq!(program.client().devices().len(), 1);
}

/// A constant that does not fit is an error, and no reason to interpret the program.
#[test]
fn compilation_needs_memory_for_constants() {
    let mut options = ClientOptions::default();
    options.memory_limit = Some(1 << 10);
    let client = Client::new(&options);
    let values = vec!["1"; 1000].join(", ");
    let text = format!(
        "ENTRY e {{ x = f32[1000] parameter(0) c = f32[1000] constant({{{values}, 2}})
         ROOT r = f32[1000] add(x, c) }}"
    );
    let text = text.replacen("1, ", "", 1);
    let module = helio::parse(&text).unwrap();
    let errors = client.compile(module, &CompileOptions::default()).unwrap_err();
    assert_eq!(errors[0].code(), Code::ResourceExhausted, "{errors:?}");
}

/// A program of fusions, each of which is by itself: more than one thread compiles them if there are several.
fn many_fusions() -> String {
    let mut text = String::new();
    for i in 0..60 {
        let shape = format!("f32[{}]", i + 3);
        let _ = writeln!(text, "x{i}_0 = {shape} parameter({i})");
        for j in 0..24 {
            let op = ["sine", "tanh", "negate", "exponential"][(i + j) % 4];
            let _ = writeln!(text, "y{i}_{j} = {shape} {op}(x{i}_{j})");
            let _ = writeln!(text, "x{i}_{} = {shape} multiply(y{i}_{j}, x{i}_0)", j + 1);
        }
    }
    let results = (0..60).map(|i| format!("x{i}_24")).collect::<Vec<_>>().join(", ");
    format!(
        "ENTRY e {{\n{text}ROOT r = ({}) tuple({results}) }}",
        (0..60).map(|i| format!("f32[{}]", i + 3)).collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn programs_are_the_same_whoever_compiles_them() {
    let text = many_fusions();
    let run = |threads: usize| {
        let mut options = ClientOptions::default();
        options.threads = Some(threads);
        let client = Client::new(&options);
        let program = compile(&client, &text);
        let arguments =
            helio::random_arguments(&program.program_shape().params, 7).expect("arguments");
        let results = program.run(&arguments).expect("it runs");
        let steps = program.steps().count();
        assert!(steps >= 60, "{steps} steps");
        (format!("{results:?}"), steps)
    };
    let expected = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == expected, "{threads} threads");
    }
}

#[test]
fn several_threads_compile_within_limits() {
    let mut options = ClientOptions::default();
    options.threads = Some(3);
    let client = Client::new(&options);
    let module = || helio::parse(&many_fusions()).expect("a program");
    let steps = |steps| {
        let mut options = CompileOptions::default();
        options.limits.max_steps = Some(steps);
        client.compile(module(), &options).map(|_| ()).map_err(|e| e.first().code())
    };
    // Whatever the limit, it is kept; with enough steps the program is there.
    let mut enough = 1;
    while let Err(code) = steps(enough) {
        assert_eq!(code, Code::ResourceExhausted);
        enough *= 2;
    }
    assert!(enough > 1000, "{enough}");
}
