//! Functions of the user, in Rust and in C, on both engines.

use std::collections::HashSet;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use helio::{
    Array, Backend, CFunction, CallStatus, Client, Code, CompileOptions, Error, Executable,
    ExecuteOptions, Literal, RunOptions, Tree, helio_custom_call_status_set_failure,
};
use helio_runtime::program::Action;

const BACKENDS: [Backend; 2] = [Backend::Cpu, Backend::Interpreter];

/// Compiles a program for each engine, each with a client of its own.
fn on_each_engine(text: &str) -> Vec<(Client, Executable)> {
    let on = |backend| {
        let mut options = CompileOptions::default();
        options.backend = backend;
        let client = Client::default();
        let module = helio::parse(text).unwrap_or_else(|e| panic!("{e:?}"));
        let program = client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"));
        (client, program)
    };
    BACKENDS.into_iter().map(on).collect()
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
        let z = std::slice::from_raw_parts_mut(out as *mut f32, 9);
        z.fill(*x.add(1) + *y.add(3));
    }
}

#[test]
fn a_custom_call_through_the_c_abi_or_from_rust() {
    for (client, program) in on_each_engine(MYFUNC) {
        let error = program.run(&[]).unwrap_err();
        assert!(error.detail().contains("myfunc"), "{error}");
        assert_eq!(error.instruction(), Some("z"));

        // SAFETY: `myfunc` reads an element of one operand, the fourth of another, and writes nine.
        let function = unsafe {
            CFunction::new(myfunc, |operands, result| {
                let bytes: Vec<_> = operands.iter().map(|operand| operand.array_bytes()).collect();
                bytes == [Some(8), Some(24)] && result.array_bytes() == Some(36)
            })
        };
        client.custom_calls().register_c("myfunc", function);
        assert_eq!(floats(&program.run(&[]).unwrap()), [42.0; 9]);
        let small = MYFUNC.replace("f32[2] constant({1, 2})", "f32[1] constant({1})");
        let small = client.compile(helio::parse(&small).unwrap(), &CompileOptions::default());
        let error = small.unwrap().run(&[]).unwrap_err();
        assert!(
            error.detail().contains("custom call `myfunc`: the function does not take"),
            "{error}"
        );

        client.custom_calls().register("myfunc", |call| {
            let (x, y) = (call.operand(0)?.as_slice::<f32>()?, call.operand(1)?.as_slice::<f32>()?);
            call.result_mut(0)?.as_mut_slice::<f32>()?.fill(x[1] + y[3] + 1.0);
            Ok(())
        });
        assert_eq!(floats(&program.run(&[]).unwrap()), [43.0; 9]);

        client.custom_calls().register("myfunc", |call| {
            call.result_mut(0)?.as_mut_slice::<i32>()?.fill(1);
            Ok(())
        });
        let error = program.run(&[]).unwrap_err();
        assert!(error.detail().contains("f32[3,3] has no elements of s32"), "{error}");
    }
}

/// Asserts that a call fails with these words, in `run`, in `execute`, and later.
fn fails(client: &Client, program: &Executable, code: Code, words: &str) {
    let ensure = |error: Error| {
        assert_eq!(error.code(), code, "{error}");
        assert!(error.detail().contains(words), "{error}");
        assert!(matches!(error.instruction(), Some("y" | "c")), "{error}");
    };
    let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
    ensure(program.run(std::slice::from_ref(&x)).unwrap_err());
    let buffer = client.buffer_from_array(x.as_array().unwrap(), client.default_device()).unwrap();
    let mut options = ExecuteOptions::default();
    ensure(program.execute(&[&buffer], &options).unwrap_err());
    options.asynchronous = true;
    for result in program.execute(&[&buffer], &options).unwrap() {
        ensure(result.to_array().unwrap_err());
    }
}

/// # Safety
/// The string has its length, the status is the call's.
unsafe extern "C" fn status(
    _: *mut c_void,
    _: *mut *const c_void,
    opaque: *const c_char,
    opaque_len: usize,
    status: *mut CallStatus,
) {
    // SAFETY: the caller's promise.
    unsafe { helio_custom_call_status_set_failure(status, opaque, opaque_len) }
}

#[test]
fn a_call_that_fails_or_panics_is_an_error_of_that_run_with_its_name() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1)
        c = f32[] custom-call(a), custom_call_target=\"fails\", backend_config=\"on purpose\"
        ROOT r = f32[] add(c, b) }
      ENTRY e { x = f32[2] parameter(0) z = f32[] constant(0)
        y = f32[2] custom-call(x), custom_call_target=\"fails\", backend_config=\"on purpose\"
        s = f32[] reduce(x, z), dimensions={0}, to_apply=add
        ROOT t = (f32[2], f32[]) tuple(y, s) }";
    let at_the_top =
        "y = f32[2] custom-call(x), custom_call_target=\"fails\", backend_config=\"on purpose\"";
    // At the top, and in a computation that is called.
    for text in [text.to_owned(), text.replace(at_the_top, "y = f32[2] negate(x)")] {
        for (client, program) in on_each_engine(&text) {
            client.custom_calls().register("fails", |_| panic!("on {}", "purpose"));
            let words = "custom call `fails` panicked: on purpose";
            fails(&client, &program, Code::InvalidArgument, words);
            client
                .custom_calls()
                .register("fails", |call| Err(Error::new(Code::Unavailable, call.info().opaque())));
            fails(&client, &program, Code::Unavailable, "custom call `fails`: on purpose");
            // SAFETY: `status` touches neither operands nor result.
            let function = unsafe { CFunction::with_status(status, |_, _| true) };
            client.custom_calls().register_c("fails", function);
            fails(&client, &program, Code::InvalidArgument, "custom call `fails`: on purpose");
            // Nothing is left behind: the next run is like any other.
            client.custom_calls().register("fails", |call| {
                let x = call.operand(0)?.as_slice::<f32>()?;
                call.result_mut(0)?.as_mut_slice::<f32>()?.copy_from_slice(x);
                Ok(())
            });
            let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
            assert!(program.run(&[x]).is_ok());
        }
    }
}

#[test]
fn a_call_writes_where_the_result_is() {
    let text = "ENTRY e { x = f32[1024] parameter(0)
      ROOT y = f32[1024] custom-call(x), custom_call_target=\"here\" }";
    let (client, program) = on_each_engine(text).remove(0);
    let seen = Arc::new(Mutex::new((0, 0)));
    let noted = seen.clone();
    client.custom_calls().register("here", move |call| {
        let x = call.operand(0)?.as_slice::<f32>()?;
        let y = call.result_mut(0)?.as_mut_slice::<f32>()?;
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.0);
        *noted.lock().unwrap() = (x.as_ptr().addr(), y.as_ptr().addr());
        Ok(())
    });
    let x = Array::new([1024], (0..1024).map(|i| i as f32).collect()).unwrap();
    let x = client.buffer_from_array(&x, client.default_device()).unwrap();
    let y = program.execute(&[&x], &ExecuteOptions::default()).unwrap().remove(0);
    let address = |buffer: &helio::Buffer| buffer.view().unwrap().as_slice().as_ptr().addr();
    assert_eq!(*seen.lock().unwrap(), (address(&x), address(&y)));
    assert_eq!(y.to_array().unwrap().as_slice::<f32>().unwrap()[..3], [1.0, 2.0, 3.0]);
}

#[test]
fn a_call_is_told_what_the_program_says() {
    let text = "ENTRY e { x = f32[2,3] parameter(0) n = s32[] constant(7)
      p = (f32[2,3], s32[]) tuple(x, n)
      y = (f32[2,3]{0,1}, (pred[2], u8[4])) custom-call(p, x), custom_call_target=\"told\",
        operand_layout_constraints={(f32[2,3]{1,0}, s32[]), f32[2,3]{0,1}},
        custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (1, {})},
        api_version=API_VERSION_TYPED_FFI,
        backend_config={a = 1 : i64, b = \"x\\22y\", c = array<i32: 1, 2>, d = {e = true}}
      z = f32[2,3] get-tuple-element(y), index=0
      q = (pred[2], u8[4]) get-tuple-element(y), index=1
      b = pred[2] get-tuple-element(q), index=0 c = u8[4] get-tuple-element(q), index=1
      ROOT r = (f32[2,3], pred[2], u8[4]) tuple(z, b, c) }";
    for (client, program) in on_each_engine(text) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        client.custom_calls().register("told", move |call| {
            counted.fetch_add(1, Ordering::Relaxed);
            let info = call.info();
            assert_eq!((info.target.as_str(), info.instruction.as_str()), ("told", "y"));
            assert_eq!(info.api_version, helio::ir::ops::ApiVersion::TypedFfi);
            assert!(info.has_side_effect);
            let attributes = info.attributes()?;
            assert_eq!((attributes.integer("a")?, attributes.string("b")?), (1, "x\"y"));
            assert!(attributes.dictionary("d")?.bool("e")?);
            assert_eq!(call.device(), 0);
            assert_eq!(call.participant().replica, 0);
            call.ensure_running()?;
            assert_eq!((call.operand_count(), call.result_count()), (3, 3));
            assert_eq!(call.operand(0)?.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
            assert_eq!(call.operand(1)?.as_slice::<i32>()?, [7]);
            // A result holds this operand, in the order of its layout.
            assert_eq!(call.result_of(2), Some(0));
            assert!(call.operand(2).unwrap_err().detail().contains("result 0"));
            let y = call.result_mut(0)?;
            assert_eq!(y.shape().to_string(), "f32[2,3]{0,1}");
            let y = y.as_mut_slice::<f32>()?;
            assert_eq!(y, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
            y[1] = 40.0;
            call.result_mut(1)?.bytes_mut().copy_from_slice(&[0, 7]);
            call.result_mut(2)?.as_mut_slice::<u8>()?.fill(9);
            assert!(call.operand(3).is_err() && call.result_mut(3).is_err());
            Ok(())
        });
        let x = Literal::array([2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let result = program.run(&[x]).unwrap();
        let parts = result.as_tuple().unwrap();
        assert_eq!(floats(&parts[0]), [1.0, 2.0, 3.0, 40.0, 5.0, 6.0]);
        assert_eq!(parts[1].as_array().unwrap().as_slice::<bool>(), Some(&[false, true][..]));
        assert_eq!(parts[2].as_array().unwrap().as_slice::<u8>(), Some(&[9; 4][..]));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}

/// y[0] = x[0] + 1.
///
/// # Safety
/// There is an operand of a number at least, and a result of one.
unsafe extern "C" fn add_one(out: *mut c_void, ins: *mut *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { *out.cast::<f32>() = *(*ins).cast::<f32>() + 1.0 }
}

#[test]
fn an_operand_that_nothing_else_needs_is_changed_in_place() {
    let copies = |program: &Executable| {
        let steps = program.plan().expect("a plan").parts().steps.iter();
        steps.filter(|step| matches!(step.action, Action::Copy { .. })).count()
    };
    let grow = |call: &mut helio::Call<'_>| {
        assert_eq!(call.result_of(0), Some(0));
        let (operands, results) = call.addresses();
        assert_eq!(operands[0], results[0].cast_const());
        if call.operand_count() == 2 {
            assert_eq!(call.operand(1)?.as_slice::<f32>()?.len(), 3);
        }
        call.result_mut(0)?.as_mut_slice::<f32>()?[0] += 1.0;
        Ok(())
    };
    for (operand, others, wanted, expected) in [
        // Made for the call alone; the caller's argument; passed once more.
        ("negate(x)", "", 0, [0.0, -2.0, -3.0]),
        ("copy(x)", "", 1, [2.0, 2.0, 3.0]),
        ("negate(x)", ", n", 1, [0.0, -2.0, -3.0]),
    ] {
        let text = format!(
            "ENTRY e {{ x = f32[3] parameter(0) n = f32[3] {operand}
               ROOT y = f32[3] custom-call(n{others}), custom_call_target=\"grow\",
                 output_to_operand_aliasing={{{{}}: (0, {{}})}} }}"
        );
        for (engine, (client, program)) in on_each_engine(&text).into_iter().enumerate() {
            if engine == 0 {
                assert_eq!(copies(&program), wanted, "{text}");
            }
            let x = Literal::array([3], vec![1f32, 2.0, 3.0]).unwrap();
            client.custom_calls().register("grow", grow);
            assert_eq!(floats(&program.run(std::slice::from_ref(&x)).unwrap()), expected);
            // SAFETY: the operand and the result have a number each. It is read before it is written.
            let c = unsafe { CFunction::new(add_one, |_, _| true) };
            // SAFETY: the function reads the operand before it writes the result.
            let shared = unsafe { c.clone().sharing() };
            for function in [c, shared] {
                client.custom_calls().register_c("grow", function);
                assert_eq!(floats(&program.run(std::slice::from_ref(&x)).unwrap()), expected);
            }
        }
    }
}

#[test]
fn what_programs_say_of_calls_is_checked() {
    let error = |attributes: &str| {
        let text = format!(
            "ENTRY e {{ x = f32[2,3] parameter(0)
               ROOT y = f32[2,3] custom-call(x), custom_call_target=\"f\", {attributes} }}"
        );
        helio::parse(&text).and_then(helio::ir::verify).unwrap_err().first().clone()
    };
    for (attributes, rule) in [
        ("operand_layout_constraints={}", "custom-call.C3"),
        ("operand_layout_constraints={f32[3,2]{1,0}}", "custom-call.C3"),
        ("output_to_operand_aliasing={{}: (1, {})}", "custom-call.C4"),
        ("output_to_operand_aliasing={{0}: (0, {})}", "custom-call.C4"),
    ] {
        let error = error(attributes);
        assert_eq!(error.rule_id(), Some(rule), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
}

#[test]
fn a_long_call_learns_that_the_run_is_cancelled() {
    let text = "ENTRY e { x = f32[2] parameter(0)
      ROOT y = f32[2] custom-call(x), custom_call_target=\"forever\" }";
    for (client, program) in on_each_engine(text) {
        let cancel = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = cancel.clone();
        client.custom_calls().register("forever", move |call| {
            flag.store(true, Ordering::Relaxed);
            loop {
                call.ensure_running()?;
            }
        });
        let mut options = RunOptions::default();
        options.limits.cancel = Some(cancel);
        let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
        let error = program.run_with(&[x], &options).unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{error}");
    }
}

#[test]
fn custom_calls_that_nobody_defines_are_warnings() {
    let text = "ENTRY e {
        x = f32[2] parameter(0)
        a = f32[2] custom-call(x), custom_call_target=\"mine\"
        b = f32[2] custom-call(a), custom_call_target=\"other\"
        c = f32[2] custom-call(b), custom_call_target=\"other\"
        ROOT d = f32[2] custom-call(c), custom_call_target=\"Sharding\"
      }";
    for (client, program) in on_each_engine(text) {
        let targets = || {
            let warnings = program.warnings();
            warnings.iter().filter_map(|e| e.instruction()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(targets(), ["a", "b"]);
        client.custom_calls().register("mine", |call| {
            call.result_mut(0)?.as_mut_slice::<f32>()?.fill(1.0);
            Ok(())
        });
        assert_eq!(targets(), ["b"]);
        // A warning is the error that a run ends with.
        let warning = program.warnings().remove(0);
        let x = Literal::array([2], vec![1f32, 2.0]).expect("an array");
        let error = program.run(&[x]).expect_err("there is no such function");
        assert!(error.detail().contains(warning.detail()), "{error}");
    }
}

#[test]
fn deep_calls_share_a_thread_and_others_take_none() {
    // Each level folds with the next; what is at the end has no native code.
    let mut text = "f0 { a = f32[] parameter(0) b = f32[] parameter(1)
        c = f32[] custom-call(a), custom_call_target=\"thread\" ROOT r = f32[] add(c, b) }\n"
        .to_owned();
    for i in 1..8 {
        text += &format!(
            "f{i} {{ a = f32[] parameter(0) b = f32[] parameter(1)
             x = f32[2] broadcast(a), dimensions={{}}
             ROOT r = f32[] reduce(x, b), dimensions={{0}}, to_apply=f{} }}\n",
            i - 1
        );
    }
    for (depth, is_here) in [(0, true), (7, false)] {
        let text = format!(
            "{text} ENTRY e {{ x = f32[3] parameter(0) z = f32[] constant(0)
             s = f32[] reduce(x, z), dimensions={{0}}, to_apply=f{depth}
             ROOT t = f32[] reduce(x, s), dimensions={{0}}, to_apply=f{depth} }}"
        );
        let mut results = Vec::new();
        for (client, program) in on_each_engine(&text) {
            let threads = Arc::new(Mutex::new(HashSet::new()));
            let noted = threads.clone();
            client.custom_calls().register("thread", move |call| {
                noted.lock().unwrap().insert(std::thread::current().id());
                let x = call.operand(0)?.as_slice::<f32>()?;
                call.result_mut(0)?.as_mut_slice::<f32>()?.copy_from_slice(x);
                Ok(())
            });
            let x = Literal::array([3], vec![1f32, 2.0, 3.0]).unwrap();
            results.push(floats(&program.run(&[x]).unwrap()));
            let threads = threads.lock().unwrap();
            assert_eq!(threads.len(), 1, "{threads:?}");
            if program.plan().is_some() {
                assert_eq!(threads.contains(&std::thread::current().id()), is_here);
            }
        }
        assert_eq!(results[0], results[1]);
    }
}

#[test]
fn layouts_of_trees_are_seen_by_c() {
    let text = "ENTRY e { x = f32[2] parameter(0) y = f32[] constant(3)
      p = (f32[2], f32[]) tuple(x, y)
      ROOT r = f32[2] custom-call(p), custom_call_target=\"tree\" }";
    for (client, program) in on_each_engine(text) {
        let seen = Arc::new(Mutex::new(None));
        let noted = seen.clone();
        // SAFETY: the function is never called.
        let function = unsafe {
            CFunction::new(myfunc, move |operands, result| {
                *noted.lock().unwrap() = Some((operands.to_vec(), result.clone()));
                false
            })
        };
        client.custom_calls().register_c("tree", function);
        let x = Literal::array([2], vec![1f32, 2.0]).unwrap();
        assert!(program.run(&[x]).is_err());
        let pair = Tree::Tuple(vec![Tree::Array(8), Tree::Array(4)]);
        assert_eq!(*seen.lock().unwrap(), Some((vec![pair], Tree::Array(8))));
    }
}
