//! Other shapes, parts of tensors, larger ones; what is expected is NumPy's.

mod reference;

use helio_graph::{Array, Dim, ElementType, Graph, Slice, Tensor, concat, stack, step};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/movement.json"))
}

#[test]
fn other_shapes() {
    let cases = cases();
    let n = Dim::from("n");
    cases.check("reshape", "n 4 3", |_, x| x[0].reshape((-1, 6)));
    cases.check("reshape_scalar", "1 1", |_, x| x[0].reshape(()));
    cases.check("flatten", "n 3", |_, x| x[0].flatten());
    cases.check("transpose", "n 3 m", |_, x| x[0].transpose(&[2, 0, -2]));
    cases.check("t", "n 3 m", |_, x| x[0].t());
    cases.check("swap_axes", "n 3 m", |_, x| x[0].swap_axes(0, -1));
    cases.check("move_axis", "n 3 5 m", |_, x| (x[0].move_axis(0, 2), x[0].move_axis(-1, 1)));
    cases.check("squeeze", "", |_, x| (x[0].squeeze(..), x[0].squeeze(0), x[0].squeeze([0, -1])));
    cases.check("expand_dims", "n 3", |_, x| [0, 1, -1].map(|axis| x[0].expand_dims(axis)));
    cases.check("flip", "n 3", |_, x| (x[0].flip(0), x[0].flip([0, 1]), x[0].flip(..)));
    let g = Graph::new("same_count");
    let x = g.input("x", ElementType::F32, (&n * 6,));
    let shape = x.reshape(((&n * 2), 3)).reshape((3, "n", 2)).shape().unwrap();
    assert_eq!(shape.to_string(), "[3, n, 2]");
    assert_eq!(x.reshape((-1, "n")).shape().unwrap().to_string(), "[6, n]");
}

#[test]
fn every_type_moves() {
    let cases = cases();
    for name in ["pred", "s8", "u64", "f16", "bf16", "f64", "c64", "f8e4m3fn"] {
        cases.check(&format!("types_{name}"), "n 5", |_, x| {
            let x = &x[0];
            let slice = x.slice_axes((step(.., -1), (1, -1)));
            (slice, x.t(), concat(&[x, x], 0), x.tile((2, 1)), x.tril(0), x.roll(1, 1))
        });
    }
}

#[test]
fn static_ranges_are_clamped() {
    let cases = cases();
    let check = |name: &str, of: fn(&Tensor) -> Tensor| {
        cases.check(&format!("slice_{name}"), "7 n", |_, x| of(&x[0]));
    };
    check("front", |x| x.slice(0, ..3));
    check("back", |x| x.slice(0, -2..));
    check("inner", |x| x.slice(0, (1, -1)));
    check("beyond", |x| x.slice(0, 2..100));
    check("empty", |x| x.slice(0, (5, 2)));
    check("far", |x| x.slice(0, -100..2));
    check("every", |x| x.slice(0, step(.., 2)));
    check("every_from", |x| x.slice(0, step(1.., 3)));
    check("reverse", |x| x.slice(0, step(.., -1)));
    check("reverse_every", |x| x.slice(0, step(.., -2)));
    check("down", |x| x.slice(0, step((5, 1), -2)));
    check("down_far", |x| x.slice(0, step((100, -100), -3)));
    check("down_empty", |x| x.slice(0, step(1..5, -1)));
    check("up_to_last", |x| {
        let last = -1;
        x.slice(0, 2..=last)
    });
    check("inner", |x| {
        let last = -2;
        x.slice(0, 1..=last)
    });
    cases.check("slice_all", "", |g, x| {
        let bounds = [None, Some(-6), Some(-5), Some(-1), Some(0), Some(2), Some(5), Some(6)];
        let ranges = bounds.into_iter().flat_map(|start| bounds.map(|stop| (start, stop)));
        let slices = ranges.flat_map(|(start, stop)| {
            let range = match (start, stop) {
                (Some(start), Some(stop)) => Slice::from(start..stop),
                (Some(start), None) => Slice::from(start..),
                (None, Some(stop)) => Slice::from(..stop),
                (None, None) => Slice::from(..),
            };
            [1, 2, -1, -3].map(|by| x[0].slice(0, step(&range, by)))
        });
        let mut slices: Vec<Tensor> = slices.collect();
        let lengths = slices.iter().map(|x| g.dim(x.dim(0).unwrap()).cast(ElementType::S32));
        let lengths = stack(&lengths.collect::<Vec<_>>(), 0);
        slices.push(lengths);
        concat(&slices, 0)
    });
}

#[test]
fn symbolic_ranges_are_promises() {
    let cases = cases();
    let check = |name: &str, of: fn(&Tensor) -> Tensor| {
        cases.check(&format!("symbolic_{name}"), "n 2", |_, x| of(&x[0]));
    };
    check("inner", |x| x.slice(0, (1, -1)));
    check("every", |x| x.slice(0, step(.., 2)));
    check("every_from", |x| x.slice(0, step(1.., 3)));
    check("reverse", |x| x.slice(0, step(.., -1)));
    check("reverse_every", |x| x.slice(0, step(.., -2)));
    check("front", |x| x.slice(0, ..3));
    check("back", |x| x.slice(0, -2..));
    check("down", |x| x.slice(0, step((5, 1), -2)));
    cases.check("symbolic_bound", "n 2", |_, x| {
        let n = x[0].dim(0).unwrap();
        (x[0].slice(0, ..&n - 3), x[0].slice(0, &n / 2..), x[0].slice(0, &n / 2))
    });
    let g = Graph::new("front");
    let x = g.input("x", ElementType::F32, ("n",));
    let program = g.compile((x.slice(0, 1..4), x.slice(0, ..-2))).unwrap();
    let call = |size| program.run(&[Array::new([size], vec![0f32; size]).unwrap()]);
    assert!(call(4).is_ok());
    let error = call(3).unwrap_err();
    assert_eq!(error.rule_id(), Some("slice.C2"));
    assert!(error.to_string().contains("elements 1 to 3 of a dimension that is 3"), "{error}");
    assert!(error.to_string().contains("tests/movement.rs"), "{error}");
    assert_eq!(call(1).unwrap_err().rule_id(), Some("slice.C2"));
}

#[test]
fn indices_drop_axes() {
    cases().check("index", "n 3 2", |_, x| {
        let x = &x[0];
        let one = x.slice_axes((0, 0, 0));
        let parts = x.slice_axes((.., 1.., step(.., -1)));
        (x.slice(0, 0), x.slice(1, -1), x.slice_axes((-1, .., 1)), one, parts)
    });
}

#[test]
fn pieces() {
    let cases = cases();
    cases.check("split", "n 6", |_, x| x[0].split::<3>(1));
    cases.check("split_symbolic", "", |_, x| x[0].split::<2>(0));
    let g = Graph::new("halves");
    let x = g.input("x", ElementType::F32, (2 * Dim::from("n"),));
    let [low, high] = x.split(0);
    assert_eq!(low.shape().unwrap(), ("n",).into());
    let program = g.compile(low - high).unwrap();
    let results = program.run(&[Array::new([4], vec![5f32, 6.0, 1.0, 3.0]).unwrap()]).unwrap();
    assert_eq!(results[0].as_slice::<f32>(), Some(&[4.0, 3.0][..]));
    cases.check("split_sizes", "n 7", |_, x| x[0].split_sizes([1, 4, 0, 2], 1));
    cases.check("array_split", "n 2", |_, x| x[0].array_split(3, 0));
}

#[test]
fn larger_tensors() {
    let cases = cases();
    cases.check("concat", "n 3; n m; n 1", |_, x| concat(x, 1));
    cases.check("concat_types", "n; m; k", |_, x| concat(x, 0));
    cases.check("stack", "n 3; n 3", |_, x| [0, -1, 1].map(|axis| stack(x, axis)));
    cases.check("pad", "n 4", |_, x| x[0].pad([(0, 2), (1, 3)], 9.0));
    cases.check("crop", "n 4", |_, x| x[0].pad([(-1, 2), (1, -3)], 0));
    cases.check("pad_interior", "n 4", |_, x| x[0].pad_interior([(1, 0, 2), (0, -1, 1)], -1.0));
    cases.check("pad_edge", "n 4", |_, x| x[0].pad_edge([(2, 0), (1, 3)]));
    cases.check("pad_reflect", "n 5", |_, x| x[0].pad_reflect([(2, 0), (4, 1)]));
    cases.check("tile", "n 2", |_, x| {
        (x[0].tile((2, 3)), x[0].tile([2]), x[0].tile((2, 1, 1)), x[0].tile((0, 1)))
    });
    cases.check("repeat", "n 2", |_, x| (x[0].repeat(2, 0), x[0].repeat(3, 1), x[0].repeat(0, 0)));
    cases.check("roll", "n 5", |_, x| {
        (x[0].roll(2, 0), x[0].roll(-1, 1), x[0].roll(7, 1), x[0].roll(0, 0))
    });
    let g = Graph::new("to_a_length");
    let [n, m] = ["n", "m"].map(Dim::from);
    let (x, y) = (g.input("x", ElementType::S32, (&n,)), g.input("y", ElementType::S32, (&m,)));
    let program = g.compile(x.pad([(0, &m - &n)], 7) + y).unwrap();
    let array = |values: &[i32]| Array::new([values.len()], values.to_vec()).unwrap();
    let results = program.run(&[array(&[1, 2]), array(&[10, 20, 30])]).unwrap();
    assert_eq!(results[0].as_slice::<i32>(), Some(&[11, 22, 37][..]));
    let results = program.run(&[array(&[1, 2]), array(&[10])]).unwrap();
    assert_eq!(results[0].as_slice::<i32>(), Some(&[11][..]));
}

#[test]
fn places_in_matrices() {
    let cases = cases();
    cases.check("triangles", "n 5", |_, x| {
        let x = &x[0];
        (x.tril(0), x.triu(0), x.tril(1), x.triu(-2), x.tril(i64::MIN))
    });
    cases.check("diagonal", "", |_, x| [0, 1, -2, i64::MAX].map(|offset| x[0].diagonal(offset)));
    cases.check("diagonal_square", "2 n n", |_, x| {
        (x[0].diagonal(0), x[0].diagonal(1), x[0].diagonal(-2), x[0].trace())
    });
}

#[test]
fn tensors_from_nothing() {
    cases().check("creation", "n", |g, x| {
        let n = x[0].dim(0).unwrap();
        let numbers = vec![
            g.zeros(ElementType::S8, (&n, 2)),
            g.ones(ElementType::C64, (&n,)),
            g.full(ElementType::F16, (2, &n), 2.5),
            g.full(ElementType::Pred, (&n,), true),
        ];
        let ranges = vec![
            g.arange(ElementType::BF16, &n),
            g.arange_by(ElementType::S64, 2, &n + 5, 3),
            g.arange_by(ElementType::F32, &n + 1, -2, -2),
            g.linspace(ElementType::F32, -1.0, 2.5, &n),
            g.eye(ElementType::U8, &n),
            g.iota(ElementType::S32, (2, &n), 1),
        ];
        [numbers, ranges]
    });
}

fn wrong(rule: &str, words: &[&str], of: impl Fn(&Tensor) -> Tensor) {
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 4, 3));
    assert_error(&of(&x), rule, words);
}

#[test]
fn errors_say_what_to_do() {
    wrong("reshape.C1", &["[n, 4, 3] has 12*n elements, [5, 3] has 15", "rebind"], |x| {
        x.reshape([5, 3])
    });
    wrong("reshape.C1", &["has a multiple of 5"], |x| x.reshape((5, -1)));
    wrong("reshape.C1", &["[4, 3] has 12 elements", "-1"], |x| x.slice(0, 0).reshape([2, 5]));
    wrong("reshape.C2", &["2 dimensions of [-1, n, -1] are -1"], |x| x.reshape((-1, "n", -1)));
    wrong("reshape.C2", &["any size would do"], |x| x.slice(1, 4..).reshape((-1, 0)));
    wrong("dim.C1", &["cannot be -2"], |x| x.reshape((-2, 3)));
    wrong("transpose.C1", &["2 axes for [n, 4, 3]", "swap_axes"], |x| x.transpose(&[1, 0]));
    wrong("shape.C1", &["axis 1 is named twice"], |x| x.transpose(&[1, 1, 0]));
    wrong("squeeze.C1", &["dimension 4, which is not the size 1"], |x| x.squeeze(1));
    wrong("squeeze.C1", &["rebind it to 1 first"], |x| x.squeeze([0]));
    wrong("shape.C1", &["axis 4 of [n, 4, 3, 1]"], |x| x.expand_dims(4));
    wrong("slice.C1", &["axis 1 of [n, 4, 3]: a step of 0"], |x| x.slice(1, step(.., 0)));
    wrong("slice.C2", &["index -5 of a dimension that is 4"], |x| x.slice(1, -5));
    wrong("slice.C2", &["index 4 of"], |x| x.slice(1, 4));
    wrong("slice.C3", &["4 parts of [n, 4, 3]"], |x| x.slice_axes((.., .., .., 0)));
    wrong("split.C1", &["dimension n", "2 * Dim::from"], |x| x.split::<2>(0)[0].clone());
    wrong("split.C1", &["dimension 4", "array_split"], |x| x.split::<3>(1)[0].clone());
    wrong("dim.C1", &["division of n by 0"], |x| {
        let [] = x.split(0);
        x.clone()
    });
    wrong("split.C1", &["0 pieces"], |x| x.array_split(0, 0)[0].clone());
    wrong("split.C2", &["pieces of [1, 2] are 3 together, must be 4"], |x| {
        x.split_sizes([1, 2], 1)[0].clone()
    });
    wrong("concat.C2", &["[n, 4, 3] and [4, 3]", "stack"], |x| concat(&[x, &x.slice(0, 0)], 0));
    wrong("concat.C2", &["along axis 2", "rebind"], |x| concat(&[x, &x.slice(0, ..2)], -1));
    wrong("stack.C1", &["[n, 4, 3] and [n, 4, 2]"], |x| stack(&[x, &x.slice(2, 1..)], 0));
    wrong("promotion.C1", &["f32 and s32"], |x| concat(&[x, &x.cast(ElementType::S32)], 0));
    wrong("concat.C1", &["no tensors"], |_| concat(&[] as &[Tensor], 0));
    wrong("pad.C1", &["padding for 1 axes of [n, 4, 3]"], |x| x.pad([(1, 1)], 0));
    wrong("pad.C2", &["must be a scalar, is [4, 3]"], |x| x.pad([(1, 1); 3], x.slice(0, 0)));
    wrong("promotion.C2", &["the integer"], |x| {
        x.cast(ElementType::S8).pad([(0, 0), (1, 1), (0, 0)], 300)
    });
    wrong("pad.C4", &["-1 elements are to be added", "crop"], |x| x.pad_edge([(-1, 0); 3]));
    wrong("pad.C4", &["4 elements need 5 in the axis, which has 4"], |x| {
        x.pad_reflect([(0, 0), (4, 0), (0, 0)])
    });
    wrong("diagonal.C1", &["[4] has no matrices"], |x| x.slice_axes((0, .., 0)).tril(0));
    wrong("diagonal.C2", &["the lesser of 4 and n"], |x| x.slice(2, 0).t().diagonal(0));
    wrong("promotion.C2", &["the float"], |x| x.graph().full(ElementType::S32, [2], 0.5));
    wrong("promotion.C1", &["f32 and s32"], |x| x.graph().full(ElementType::S32, [2], x));
    wrong("arange.C1", &["a step of 0"], |x| x.graph().arange_by(ElementType::S32, 0, 5, 0));
    wrong("elementwise.C1", &["linspace: needs floats"], |x| {
        x.graph().linspace(ElementType::S32, 0.0, 1.0, 5)
    });
    wrong("elementwise.C1", &["iota"], |x| x.graph().iota(ElementType::Pred, [3], 0));
}

#[test]
fn without_tensors_the_error_reaches_the_program() {
    let g = Graph::new("g");
    let x = g.input("x", ElementType::F32, [2]);
    let error = g.compile(x + concat(&[] as &[Tensor], 0)).unwrap_err();
    assert_eq!(error.rule_id(), Some("concat.C1"));
    let error = g.compile(stack(&[] as &[Tensor], 0)).unwrap_err();
    assert_eq!(error.rule_id(), Some("concat.C1"), "{error}");
}
