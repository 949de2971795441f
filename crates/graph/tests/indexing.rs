//! Elements at places that tensors say; what is expected is NumPy's, or JAX's where that is named.

mod reference;

use helio_graph::{Array, ElementType, Graph, Tensor, concat, embedding};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/indexing.json"))
}

#[test]
fn take_reads_along_an_axis() {
    let cases = cases();
    for dtype in ["s8", "s16", "s32", "s64", "u8", "u64"] {
        cases.check(&format!("take_{dtype}"), "n 4; m", |_, x| x[0].take(&x[1], 0));
    }
    cases.check("take_far", "n; 3", |_, x| x[0].take(&x[1], -1));
    cases.check("take_axis", "n m 3; 1 2", |_, x| x[0].take(&x[1], 1));
    cases.check("take_scalar", "n 3; ", |_, x| x[0].take(&x[1], 0));
    cases.check("take_scalar", "n 3; ", |_, x| x[0].take(-2, 0));
    cases.check("take_none", "n 3; m", |_, x| x[0].take(&x[1], 0));
    cases.check("take_or", "n 2; m", |_, x| x[0].take_or(&x[1], 0, 9.0));
    cases.check("embedding", "7 3; n 2", |_, x| embedding(&x[0], &x[1]));
    for dtype in ["pred", "s8", "u16", "f16", "bf16", "f64", "c64", "f8e4m3fn"] {
        cases.check(&format!("types_{dtype}"), "n 3; 2", |g, x| {
            let (x, places) = (&x[0], &x[1]);
            let zeros = g.zeros(ElementType::S32, (1, 3));
            let along = x.take_along_axis(concat(&[&zeros, &zeros], 0), 0);
            (x.take(places, 0), x.take(places, 0).take(2, 1).expand_dims(1), along)
        });
    }
}

#[test]
fn other_gathers() {
    let cases = cases();
    cases.check("take_along", "n 3 4; n 5 4", |_, x| x[0].take_along_axis(&x[1], 1));
    cases.check("take_along_broadcast", "n 3; 1 3", |_, x| x[0].take_along_axis(&x[1], -1));
    cases.check("gather_nd", "n 3 2; 3 2", |_, x| x[0].gather_nd(&x[1]));
    cases.check("gather_nd_all", "n 3; 2 1 2", |_, x| x[0].gather_nd(&x[1]));
    cases.check("one_hot", "n 1", |_, x| x[0].one_hot(3, ElementType::F32));
}

#[test]
fn scatters() {
    let cases = cases();
    cases.check("scatter_add", "n 2; 6; 6 2", |_, x| x[0].scatter_add(&x[1], &x[2], 0));
    cases.check("scatter_mul", "n 2; 6; 6 2", |_, x| x[0].scatter_mul(&x[1], &x[2], 0));
    cases.check("scatter_max", "n 2; 6; 6 2", |_, x| x[0].scatter_max(&x[1], &x[2], 0));
    cases.check("scatter_min", "n 2; 6; 6 2", |_, x| x[0].scatter_min(&x[1], &x[2], 0));
    cases.check("scatter_update", "n 2; 3; 3 2", |_, x| x[0].scatter_update(&x[1], &x[2], 0));
    cases.check("scatter_axis", "n 5; 4; n 4", |_, x| x[0].scatter_add(&x[1], &x[2], -1));
    cases.check("scatter_scalar", "n 5; ; ", |_, x| x[0].scatter_add(&x[1], &x[2], 1));
    cases.check("scatter_scalar", "n 5; ; ", |_, x| x[0].scatter_add(2, 10, 1));
    cases.check("scatter_bf16", "2; n; n", |_, x| x[0].scatter_add(&x[1], &x[2], 0));
    for dtype in ["s8", "u64", "f16", "f64", "c64"] {
        cases.check(&format!("scatter_types_{dtype}"), "n; 6; 6", |_, x| {
            let part = |i: usize| x[i].slice(0, 1..3);
            (x[0].scatter_add(&x[1], &x[2], 0), x[0].scatter_update(part(1), part(2), 0))
        });
    }
}

#[test]
fn boxes_at_run_time() {
    let cases = cases();
    cases.check("dynamic_slice", "n 5; ; ", |_, x| x[0].dynamic_slice(&x[1..], [2, 3]));
    cases.check("dynamic_slice_in_dim", "n 5; ", |_, x| x[0].dynamic_slice_in_dim(&x[1], 2, 1));
    cases.check("dynamic_update_slice", "n 5; 2 3; ; ", |_, x| {
        x[0].dynamic_update_slice(&x[1], &x[2..])
    });
    cases.check("dynamic_update_slice_in_dim", "n 5; n 3; ", |_, x| {
        x[0].dynamic_update_slice_in_dim(&x[1], &x[2], -1)
    });
}

#[test]
fn reading_from_nothing_is_an_error() {
    let g = Graph::new("nothing");
    let x = g.input("x", ElementType::F32, ("n",));
    let i = g.input("i", ElementType::S32, ("m",));
    let program = g.compile((x.take(&i, 0), x.take_along_axis(&i, 0))).unwrap();
    let call = |n: usize, m: usize| {
        program.run(&[
            Array::new([n], vec![0f32; n]).unwrap(),
            Array::new([m], vec![0i32; m]).unwrap(),
        ])
    };
    assert_eq!(call(0, 0).unwrap()[0].dims(), [0]);
    let error = call(0, 2).unwrap_err();
    assert_eq!(error.rule_id(), Some("index.C2"));
    assert!(error.to_string().contains("no elements in this call"), "{error}");
    assert!(error.to_string().contains("tests/indexing.rs"), "{error}");
}

fn wrong(rule: &str, words: &[&str], of: impl Fn(&Tensor, &Tensor) -> Tensor) {
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 4, 3));
    let i = g.input("i", ElementType::S32, ("n", 4));
    assert_error(&of(&x, &i), rule, words);
}

#[test]
fn errors_say_what_to_do() {
    wrong("index.C1", &["needs integers, found f32", ".cast(ElementType::S32)"], |x, _| {
        x.take(x, 0)
    });
    wrong("index.C1", &["found pred", "where_"], |x, _| x.take(x.equal(x), 0));
    wrong("promotion.C2", &["the float"], |x, _| x.take(0.5, 0));
    wrong("shape.C1", &["axis 3 of [n, 4, 3]"], |x, i| x.take(i, 3));
    wrong("index.C2", &["has no elements"], |x, i| x.slice(1, 4..).take(i, 1));
    wrong("index.C3", &["s32[n, 4] must have as many axes as f32[n, 4, 3]"], |x, i| {
        x.take_along_axis(i, 1)
    });
    wrong("broadcast.C1", &["n", "4"], |x, i| x.take_along_axis(i.t().expand_dims(-1), 1));
    wrong("index.C4", &["s32[n, 4] must have a size of at most 3"], |x, i| x.gather_nd(i));
    wrong("index.C4", &["s32[4, n]"], |x, i| x.gather_nd(i.t()));
    wrong("embedding.C1", &["must be a matrix, is f32[n, 4, 3]"], |x, i| embedding(x, i));
    wrong("index.C1", &["one_hot"], |x, _| x.one_hot(3, ElementType::F32));
    wrong("broadcast.C2", &["[5] does not broadcast to [n, 4, n, 4]"], |x, i| {
        x.scatter_add(i, x.graph().ones(ElementType::F32, [5]), -1)
    });
    wrong("elementwise.C1", &["scatter_max: needs"], |x, i| {
        x.cast(ElementType::C64).scatter_max(i, 1, 0)
    });
    wrong("promotion.C1", &["f32 and s32"], |x, i| x.scatter_add(i, i, 0));
    let zero = |x: &Tensor| x.graph().zeros(ElementType::S32, ());
    wrong("dynamic_slice.C1", &["1 starts for f32[n, 4, 3]"], |x, _| {
        x.dynamic_slice(&[zero(x)], (1, 1, 1))
    });
    wrong("dynamic_slice.C1", &["a box of [1] in [n, 4, 3]"], |x, _| {
        x.dynamic_slice(&[zero(x), zero(x), zero(x)], [1])
    });
    wrong("dynamic_slice.C2", &["must be scalars, found s32[n, 4]"], |x, i| {
        x.dynamic_slice(&[&zero(x), i, &zero(x)], (1, 1, 1))
    });
    wrong("dynamic_slice.C3", &["a box of [n, 5, 3] is too large"], |x, _| {
        x.dynamic_slice_in_dim(0, 5, 1)
    });
    wrong("index.C1", &["dynamic_slice: needs integers"], |x, _| {
        x.dynamic_slice(&[x, x, x], (1, 1, 1))
    });
}
