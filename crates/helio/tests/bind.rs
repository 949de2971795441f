//! Parameters bound to constants, and what products pack of these.

use helio::{Array, Client, ClientOptions, CompileOptions, Literal, Module};

/// Rows of 1200 numbers times weights `[out, in]`, which tiles do not read as they lie.
const LINEAR: &str = "HloModule linear, input_output_alias={ {}: (2, {}, may-alias) }, \
    entry_computation_layout={(f32[16,1200]{1,0}, f32[1040,1200]{1,0}, f32[16,1040]{1,0})->f32[16,1040]{1,0}}
    ENTRY e {
      x = f32[16,1200] parameter(0)
      w = f32[1040,1200] parameter(1)
      before = f32[16,1040] parameter(2)
      xw = f32[16,1040] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      ROOT y = f32[16,1040] add(xw, before)
    }";
/// The bytes of the weights.
const WEIGHTS: usize = 1040 * 1200 * 4;

fn numbers(dims: [usize; 2], seed: usize) -> Literal {
    let count = dims.iter().product();
    let number = |i: usize| ((i * 7919 + seed * 31) % 17) as f32 - 8.0;
    Array::new(dims, (0..count).map(number).collect::<Vec<f32>>()).expect("an array").into()
}

fn linear() -> Module {
    helio::parse(LINEAR).expect("a program")
}

fn arguments() -> [Literal; 3] {
    [numbers([16, 1200], 1), numbers([1040, 1200], 2), numbers([16, 1040], 3)]
}

#[test]
fn what_is_left_is_numbered_anew() {
    let [x, w, before] = arguments();
    let bound = helio::bind(linear(), [(1, w), (0, x)]).expect("a program");
    let text = helio::print(&bound);
    assert!(text.contains("input_output_alias={ {}: (0, {}, may-alias) }"), "{text:.300}");
    assert!(text.contains("entry_computation_layout={(f32[16,1040]{1,0})->"), "{text:.300}");
    let options = CompileOptions::default();
    let want = helio::compile(linear(), &options).expect("compiled").run(&arguments());
    let got = helio::compile(bound, &options).expect("compiled").run(std::slice::from_ref(&before));
    assert_eq!(got.expect("a result"), want.expect("a result"));
    let bound = helio::bind(linear(), [(2, before)]).expect("a program");
    assert!(bound.config.input_output_alias.is_empty());
}

#[test]
fn values_must_be_those_of_parameters() {
    let [x, w, _] = arguments();
    for (values, wrong) in [
        (vec![(3, x.clone())], "a value for parameter 3; the program has 3 parameters"),
        (vec![(0, x.clone()), (0, x.clone())], "two values for parameter 0"),
        (vec![(0, w)], "a value of shape f32[1040,1200] for parameter 0, f32[16,1200]"),
    ] {
        let error = helio::bind(linear(), values).expect_err("an error").to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn constants_are_packed_once_for_all_programs() {
    let client = Client::new(&ClientOptions::default());
    let [x, w, before] = arguments();
    let compiled = || {
        let module = helio::bind(linear(), [(1, w.clone())]).expect("a program");
        client.compile(module, &CompileOptions::default()).expect("compiled")
    };
    let [first, second] = [compiled(), compiled()];
    let plan = first.memory_plan().expect("it is compiled");
    assert!((WEIGHTS..2 * WEIGHTS).contains(&plan.table_bytes), "{plan}");
    let want = helio::compile(linear(), &CompileOptions::default()).expect("compiled");
    let want = want.run(&arguments()).expect("a result");
    let before_runs = client.memory_stats().live_bytes;
    for program in [&first, &second, &first] {
        assert_eq!(program.run(&[x.clone(), before.clone()]).expect("a result"), want);
        let packed = client.memory_stats().live_bytes - before_runs;
        assert_eq!(packed, plan.table_bytes, "once for both");
    }
    drop((first, second));
    assert!(client.memory_stats().live_bytes <= before_runs, "nothing is kept for no program");
}

#[test]
fn where_memory_is_short_products_go_on_without() {
    let [x, w, before] = arguments();
    let mut options = ClientOptions::default();
    options.memory_limit = Some(WEIGHTS / 2 * 3);
    let client = Client::new(&options);
    let module = helio::bind(linear(), [(1, w)]).expect("a program");
    let program = client.compile(module, &CompileOptions::default()).expect("compiled");
    let live = client.memory_stats().live_bytes;
    let want = helio::compile(linear(), &CompileOptions::default()).expect("compiled");
    let want = want.run(&arguments()).expect("a result");
    assert_eq!(program.run(&[x, before]).expect("a result"), want);
    assert!(client.memory_stats().live_bytes < live + WEIGHTS, "{:?}", client.memory_stats());
}

#[test]
fn what_is_made_of_constants_is_computed_once() {
    // Gates of a recurrent network in another order, as PyTorch exports them.
    let text = "ENTRY e {
      x = f32[1,300] parameter(0)
      w = f32[1200,300] parameter(1)
      a = f32[300,300] slice(w), slice={[900:1200], [0:300]}
      b = f32[900,300] slice(w), slice={[0:900], [0:300]}
      ab = f32[1200,300] concatenate(a, b), dimensions={0}
      t = f32[300,1200] transpose(ab), dimensions={1,0}
      half = f32[] constant(0.5)
      halves = f32[300,1200] broadcast(half), dimensions={}
      h = f32[300,1200] multiply(t, halves)
      ROOT y = f32[1,1200] dot(x, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }";
    let (x, w) = (numbers([1, 300], 1), numbers([1200, 300], 2));
    let options = CompileOptions::default();
    let whole = helio::compile(helio::parse(text).expect("a program"), &options);
    let whole = whole.expect("compiled");
    let bound = helio::parse(text).expect("a program");
    let bound = helio::bind(bound, [(1, w.clone())]).expect("a program");
    let bound = helio::compile(bound, &options).expect("compiled");
    let want = whole.run(&[x.clone(), w.clone()]).expect("a result");
    assert_eq!(bound.run(std::slice::from_ref(&x)).expect("a result"), want);
    // Another program has the same constant in memory, as long as the first is there.
    let again = || helio::bind(helio::parse(text).expect("a program"), [(1, w.clone())]);
    let again = helio::compile(again().expect("a program"), &options).expect("compiled");
    assert_eq!(again.run(std::slice::from_ref(&x)).expect("a result"), want);
    assert!(whole.steps().count() > 1, "what is done to the weights");
    assert_eq!(bound.steps().count(), 1, "the product");
}
