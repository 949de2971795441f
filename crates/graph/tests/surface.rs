//! What users write first: arguments, axes, shapes, operators, state, arrays.

use helio::ir::types::{BF16, C64 as Complex, F16 as Half};
use helio_graph::prelude::*;
use helio_graph::{Axes, Axis, Tensors};

fn rule<T>(result: Result<T>) -> Option<&'static str> {
    result.err().and_then(|error| error.rule_id())
}

/// The program `x + 1` of any number of elements.
fn increment() -> Program {
    let g = Graph::new("increment");
    let x = g.input("x", F32, "n");
    g.compile(x + 1).expect("a program")
}

#[test]
#[allow(clippy::cloned_ref_to_slice_refs, clippy::needless_borrows_for_generic_args)] // The forms are what is tested.
fn arguments_of_every_form() {
    let (program, x) = (increment(), Array::from([1f32, 2.0]));
    let wanted = [Array::from([2f32, 3.0])];
    let (list, lent): (Vec<Array>, Vec<&Array>) = (vec![x.clone()], vec![&x]);
    for found in [
        program.run(&[x.clone()]),
        program.run(&[&x]),
        program.run([x.clone()]),
        program.run([&x]),
        program.run(&list),
        program.run(&lent),
        program.run(&list[..]),
        program.run(list.clone()),
        program.run_named([("x", &x)]),
        program.run_named(std::collections::BTreeMap::from([("x".to_owned(), x.clone())])),
    ] {
        assert_eq!(found.expect("a result"), wanted);
    }
    let g = Graph::new("none");
    let one = g.constant(1f32);
    // Nothing but the call says what there is none of.
    assert_eq!(g.compile(&one).unwrap().run(&[]).unwrap(), [Array::from(1f32)]);
    assert_eq!(g.compile((&one, [&one])).unwrap().run([]).unwrap().len(), 2);
    assert_eq!((&one, vec![&one], [&one; 2].as_slice()).tensors().len(), 4);
}

#[test]
fn names_of_inputs_are_checked() {
    let g = Graph::new("difference");
    let (a, b) = (g.input("a", S32, ()), g.input("b", S32, ()));
    let program = g.compile(a - b).expect("a program");
    let [one, two] = [1, 2].map(Array::from);
    let found = program.run_named([("b", &one), ("a", &two)]).expect("a result");
    assert_eq!(found, [Array::from(1)]);
    assert_eq!(rule(program.run_named([("a", &one)])), Some("call.C4"));
    assert_eq!(rule(program.run_named([("a", &one), ("a", &one), ("b", &two)])), Some("call.C4"));
    let error = program.run_named([("c", &one)]).expect_err("an error");
    assert!(error.detail().contains("the inputs are a, b"), "{error}");
}

#[test]
fn axes_are_numbers_of_any_type() {
    let g = Graph::new("axes");
    let x = g.constant([[1f32, 2.0], [3.0, 4.0]]);
    let (index, signed, list) = (1usize, -1isize, vec![0i64, 1]);
    let sums = [x.sum(1), x.sum(index), x.sum(signed), x.sum(1u32), x.sum([1usize]), x.sum(-1)];
    for sum in sums {
        assert_eq!(sum.eval().unwrap(), Array::from([3f32, 7.0]));
    }
    assert_eq!(x.sum(list).eval().unwrap(), x.sum(..).eval().unwrap());
    assert_eq!(x.max(0).eval().unwrap(), Array::from([3f32, 4.0]));
    assert_eq!(x.min(keep(1)).eval().unwrap(), Array::from([[1f32], [3.0]]));
    assert_eq!(x.maximum(2.5).minimum(3).eval().unwrap(), Array::from([[2.5f32, 2.5], [3.0, 3.0]]));
    assert_eq!(Axes::from(1usize), Axes::from(1i32));
    let (first, last) = (0u8, 1u64);
    let columns = [
        x.sort(last).slice(last, 0),
        x.t().transpose(&[last, 0]).take(0, last),
        x.swap_axes(first, last).move_axis(-1i8, 0i16).take(0, index),
        concat(&[&x, &x], index).split::<4>(Axis::from(last))[0].squeeze([last]),
        x.cumsum(index).slice(last, 0),
    ];
    for column in columns {
        assert_eq!(column.eval().unwrap(), Array::from([1f32, 3.0]));
    }
    let products = x.tensordot(x.slice(0, 0), &[index], &[0]);
    assert_eq!(products.eval().unwrap(), Array::from([5f32, 11.0]));
    assert_eq!(x.dim(1u32).unwrap(), x.dim(-1).unwrap());
    let wrong: [fn(&Tensor) -> Tensor; 4] = [
        |x| x.sum(usize::MAX),
        |x| x.softmax(u64::MAX),
        |x| x.transpose(&[0, -2]),
        |x| x.move_axis(i64::MIN, 0),
    ];
    for wrong in wrong {
        assert_eq!(rule(wrong(&Graph::new("wrong").ones(F32, (2, 2))).eval()), Some("shape.C1"));
    }
}

#[test]
fn one_size_is_a_shape() {
    let g = Graph::new("shapes");
    assert_eq!(g.zeros(F32, 2).eval().unwrap(), Array::from([0f32, 0.0]));
    let n = 3usize;
    assert_eq!(g.ones(S8, n).eval().unwrap(), Array::from([1i8, 1, 1]));
    assert_eq!(g.input("x", F32, "n").shape().unwrap().to_string(), "[n]");
}

#[test]
fn operators_take_numbers_on_either_side() {
    let g = Graph::new("operators");
    let x = g.constant([1f32, -2.0]);
    let single = 3f32;
    for (found, wanted) in [
        ((2.0 * &x).abs(), [2f32, 4.0]),
        ((1 - &x).abs(), [0.0, 3.0]),
        (&x * single, [3.0, -6.0]),
        (&x + 1u8 - Half::from_f32(1.0) + 0i16, [1.0, -2.0]),
        (BF16::from_f32(2.0) * &x, [2.0, -4.0]),
        (&Array::from([1f32, 1.0]) - &x, [0.0, 3.0]),
    ] {
        assert_eq!(found.eval().unwrap(), Array::from(wanted));
    }
    let z = Complex::new(0.0, 1.0) * x.cast(C64);
    assert_eq!(z.imag().eval().unwrap(), Array::from([1f32, -2.0]));
    let mut sum = x.clone();
    sum += 1.0;
    sum *= &x;
    sum -= x;
    sum /= 2u16;
    assert_eq!(sum.eval().unwrap(), Array::from([0.5f32, 2.0]));
    let mut bits = g.constant([5, 6]);
    bits &= 4;
    bits |= 1;
    bits ^= 1;
    bits %= 3;
    assert_eq!(bits.eval().unwrap(), Array::from([1, 1]));
    assert_eq!((true & g.constant([true, false])).eval().unwrap(), Array::from([true, false]));
}

#[test]
fn what_depends_on_an_input_has_no_value() {
    let g = Graph::new("open");
    let x = g.input("x", F32, "n");
    let n = x.dim(0).expect("a dimension");
    let inside = g.cond(g.constant(true), || x.sum(0), || g.zeros(F32, ()));
    for open in [&x + 1, inside, g.zeros(S32, &n).sum(0)] {
        let error = open.eval().expect_err("an error");
        assert_eq!(error.rule_id(), Some("graph.C8"), "{error}");
        let at = error.location().map(|at| at.to_string()).unwrap_or_default();
        assert!(at.contains("surface.rs"), "{error}");
    }
    assert_eq!((g.constant(1) + &n).eval().expect_err("an error").rule_id(), Some("dim.C2"));
    // Beside inputs that a value has no use for.
    assert_eq!(g.zeros(F32, 2).eval().expect("a value"), [0f32, 0.0].into());
    let next = g.cond(g.constant(false), || &x + 1, || &x + 2);
    g.alias(&x, &next);
    assert_eq!(g.constant(2).mul(3).eval().expect("a value"), 6.into());
}

/// A cache of 64 MB, of which each call writes a row.
fn cache() -> Result<Program> {
    let g = Graph::new("append");
    let cache = g.input("cache", F32, (16384, 1024));
    let (row, at) = (g.input("row", F32, (1, 1024)), g.input("at", S32, ()));
    let next = cache.dynamic_update_slice_in_dim(row, at, 0);
    g.alias(&cache, &next);
    g.compile((next.sum(1).slice(0, 0), &next))
}

#[test]
fn state_is_changed_where_it_lies() {
    let program = cache().expect("a program");
    let client = program.client();
    let zeros = Array::zeros(helio_graph::ArrayShape::new(F32, [16384, 1024]).unwrap()).unwrap();
    let mut cache = client.buffer(&zeros).unwrap();
    let address = |buffer: &Buffer| buffer.view().expect("a view").as_slice().as_ptr().addr();
    let begin = address(&cache);
    for at in 0..4 {
        let row =
            client.buffer(&Array::new([1, 1024], vec![at as f32 + 1.0; 1024]).unwrap()).unwrap();
        let at = client.buffer(&Array::from(at)).unwrap();
        let before = cache.clone();
        let mut results = program.execute(&[&cache, &row, &at], &Default::default()).unwrap();
        cache = results.pop().expect("two results");
        assert_eq!(address(&cache), begin);
        assert!(before.is_deleted());
    }
    let last = cache.to_array().unwrap();
    let column = |row| last.get([row, 1023]).map(Number::to_f64);
    assert_eq!([0, 3, 4].map(column), [Some(1.0), Some(4.0), Some(0.0)]);
    // What is not given away stays as it is.
    let row = client.buffer(&Array::new([1, 1024], vec![9f32; 1024]).unwrap()).unwrap();
    let at = client.buffer(&Array::from(0)).unwrap();
    let keep = ExecuteOptions::default().with_keep(helio_graph::Keep::All);
    let kept = program.execute(&[&cache, &row, &at], &keep).unwrap().pop().expect("two results");
    assert_ne!(address(&kept), begin);
    assert_eq!(cache.to_array().unwrap().get([0, 0]), Some(Number::Float(1.0)));
}

#[test]
fn aliases_are_checked() {
    let of = |make: fn(&Graph, &Tensor) -> Tensor| {
        let g = Graph::new("alias");
        let x = g.input("x", F32, 2);
        let y = make(&g, &x);
        rule(g.compile(y))
    };
    let other_type = of(|g, x| {
        let y = x.cast(F64);
        g.alias(x, &y);
        y
    });
    let no_input = of(|g, x| {
        let y = x + 1;
        g.alias(&y, x);
        y
    });
    let no_output = of(|g, x| {
        g.alias(x, &(x + 1));
        x + 2
    });
    let twice = of(|g, x| {
        let y = x + 1;
        g.alias(x, &y);
        g.alias(x, &y);
        y
    });
    assert_eq!([other_type, no_input, no_output, twice], [Some("graph.C7"); 4]);
}

#[test]
fn programs_say_what_they_take_and_give() {
    let program = increment();
    assert_eq!(program.to_string(), "increment(x: f32[n]) -> (f32[n])");
    let g = Graph::new("sorted");
    let x = g.input("x", F32, 3);
    let program = g.compile(x + 1).unwrap();
    let executable = program.specialize(&[Array::from([0f32; 3]).shape()]).unwrap();
    assert_eq!(executable.to_string(), "sorted(x: f32[3]) -> f32[3]");
}
