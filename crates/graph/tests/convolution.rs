//! Convolutions and pooling; what is expected is JAX's.

mod reference;

use helio_graph::{Array, Channels, Conv, Edges, ElementType, Graph, Pool, Tensor};
use reference::{Cases, assert_error};

fn cases() -> Cases {
    Cases::new(include_str!("data/convolution.json"))
}

fn same() -> Conv {
    Conv { edges: Edges::Same, ..Conv::default() }
}

fn strided(strides: &[usize], edges: Edges) -> Conv {
    Conv { strides: strides.to_vec(), edges, ..Conv::default() }
}

#[test]
fn convolutions() {
    let cases = cases();
    let check = |name: &str, shapes: &str, conv: Conv| {
        cases.check(name, shapes, |_, x| x[0].conv(&x[1], &conv));
    };
    let images = "n 2 h w; 3 2 3 2";
    check("valid", images, Conv::default());
    check("same", images, same());
    check("same_strides", images, strided(&[2, 3], Edges::Same));
    check("strides", images, strided(&[2, 3], Edges::Valid));
    check("explicit", images, strided(&[1, 2], Edges::Explicit(vec![(1, 2), (0, -1)])));
    let dilation = vec![2, 3];
    let edges = Edges::Explicit(vec![(1, 1), (2, 0)]);
    check("dilation", images, Conv { dilation: dilation.clone(), ..strided(&[2, 1], edges) });
    check("dilation_same", images, Conv { dilation, ..strided(&[2, 1], Edges::Same) });
    check("groups", "n 4 h w; 6 2 3 2", Conv { groups: 2, ..Conv::default() });
    check("depthwise", "n 4 h w; 8 1 3 2", Conv { groups: 4, ..same() });
    let channels = Channels::Last;
    check("last", "n h w 2; 3 2 2 5", Conv { channels, ..strided(&[2, 1], Edges::Same) });
    check("last_groups", "n h w 4; 3 2 2 6", Conv { channels, groups: 2, ..Conv::default() });
    check("one", "n 2 t; 3 2 3", strided(&[2], Edges::Explicit(vec![(1, 1)])));
    check("three", "n 2 d h w; 3 2 2 1 3", same());
    check("three_last", "n d h w 2; 2 1 3 2 3", Conv { channels, ..Conv::default() });
    for dtype in ["f64", "f16", "bf16", "f8e4m3fn", "s32", "s8"] {
        check(&format!("types_{dtype}"), images, same());
    }
}

#[test]
fn transposed_convolutions() {
    let cases = cases();
    let check = |name: &str, shapes: &str, conv: Conv| {
        cases.check(name, shapes, |_, x| x[0].conv_transpose(&x[1], &conv));
    };
    let images = "n 2 h w; 3 2 3 2";
    for (name, strides) in [("1", [1, 1]), ("2", [2, 3]), ("5", [5, 2])] {
        check(&format!("transpose_valid_{name}"), images, strided(&strides, Edges::Valid));
        check(&format!("transpose_same_{name}"), images, strided(&strides, Edges::Same));
    }
    let edges = Edges::Explicit(vec![(1, 2), (0, 1)]);
    check("transpose_explicit", images, strided(&[2, 1], edges));
    let dilated = Conv { dilation: vec![2, 2], ..strided(&[2, 1], Edges::Same) };
    check("transpose_dilation", images, dilated);
    let last = Conv { channels: Channels::Last, ..strided(&[2, 2], Edges::Same) };
    check("transpose_last", "n h w 2; 3 2 2 5", last);
}

#[test]
fn pooling() {
    let cases = cases();
    let check = |name: &str, shapes: &str, window: &[usize], pool: Pool| {
        cases.check(name, shapes, |_, x| x[0].max_pool(window, &pool));
    };
    let images = "n 2 h w";
    check("max_pool", images, &[2, 3], Pool::default());
    let strides = vec![1, 2];
    check(
        "max_pool_same",
        images,
        &[2, 3],
        Pool { strides, edges: Edges::Same, ..Pool::default() },
    );
    let edges = Edges::Explicit(vec![(1, 0), (2, 1)]);
    check("max_pool_explicit", images, &[2, 3], Pool { edges: edges.clone(), ..Pool::default() });
    let dilated = Pool { dilation: vec![2, 3], strides: vec![1, 1], ..Pool::default() };
    check("max_pool_dilation", images, &[2, 2], dilated);
    let channels = Channels::Last;
    check("max_pool_last", "n h w 2", &[2, 3], Pool { channels, ..Pool::default() });
    check("max_pool_one", "n 2 t", &[2], Pool::default());
    check("max_pool_s8", images, &[2, 3], Pool::default());
    check("max_pool_nan", images, &[2, 3], Pool::default());

    cases.check("avg_pool", images, |_, x| x[0].avg_pool(&[2, 3], &Pool::default()));
    let same = Pool { strides: vec![1, 1], edges: Edges::Same, ..Pool::default() };
    let explicit = Pool { edges, ..Pool::default() };
    for (name, pool) in [("avg_pool_same", &same), ("avg_pool_explicit", &explicit)] {
        cases.check(name, images, |_, x| {
            [false, true]
                .map(|skip_edges| x[0].avg_pool(&[2, 3], &Pool { skip_edges, ..pool.clone() }))
        });
    }
    let last = Pool { channels, skip_edges: true, ..same };
    cases.check("avg_pool_last", "n h w 2", |_, x| x[0].avg_pool(&[2, 3], &last));
    cases.check("avg_pool_bf16", images, |_, x| x[0].avg_pool(&[2, 2], &Pool::default()));
}

#[test]
fn sizes_are_expressions() {
    let g = Graph::new("sizes");
    let x = g.input("x", ElementType::F32, ("n", 1, "h"));
    let kernel = g.ones(ElementType::F32, (1, 1, 3));
    let shape = |tensor: Tensor| tensor.shape().unwrap().to_string();
    assert_eq!(shape(x.conv(&kernel, &Conv::default())), "[n, 1, h - 2]");
    assert_eq!(shape(x.conv(&kernel, &same())), "[n, 1, h]");
    assert_eq!(shape(x.conv(&kernel, &strided(&[2], Edges::Same))), "[n, 1, (h + 1)/2]");
    assert_eq!(shape(x.conv_transpose(&kernel, &strided(&[2], Edges::Same))), "[n, 1, 2*h]");
    assert_eq!(shape(x.conv_transpose(&kernel, &strided(&[2], Edges::Valid))), "[n, 1, 2*h + 1]");
    assert_eq!(shape(x.max_pool(&[2], &Pool::default())), "[n, 1, h/2]");
    let outputs = (
        x.conv(&kernel, &Conv::default()),
        x.conv_transpose(&kernel, &strided(&[2], Edges::Valid)),
    );
    let program = g.compile(outputs).unwrap();
    let call = |h: usize| program.run(&[Array::new([1, 1, h], vec![1f32; h]).unwrap()]);
    assert_eq!(call(3).unwrap()[0].as_slice::<f32>(), Some(&[3.0][..]));
    assert_eq!(call(2).unwrap()[0].dims(), [1, 1, 0]);
    let error = call(1).unwrap_err();
    assert_eq!(error.rule_id(), Some("dim.C2"));
    assert!(error.to_string().contains("is -1, where h is 1"), "{error}");
    let g = Graph::new("spread");
    let x = g.input("x", ElementType::F32, (1, 1, "h"));
    let kernel = g.ones(ElementType::F32, (1, 1, 3));
    let program = g.compile(x.conv_transpose(&kernel, &strided(&[2], Edges::Valid))).unwrap();
    let error = program.run(&[Array::new([1, 1, 0], Vec::<f32>::new()).unwrap()]).unwrap_err();
    assert_eq!(error.rule_id(), Some("conv.C4"));
}

fn wrong(rule: &str, words: &[&str], of: impl Fn(&Tensor, &Tensor) -> Tensor) {
    let g = Graph::new("wrong");
    let x = g.input("x", ElementType::F32, ("n", 3, "h", "w"));
    let kernel = g.input("kernel", ElementType::F32, (16, 3, 5, 5));
    assert_error(&of(&x, &kernel), rule, words);
}

#[test]
fn errors_say_what_to_do() {
    let conv = |conv: Conv| move |x: &Tensor, k: &Tensor| x.conv(k, &conv);
    wrong("conv.C1", &["[3, h, w] and a kernel [16, 3, 5, 5]"], |x, k| {
        x.slice(0, 0).conv(k, &Conv::default())
    });
    wrong("conv.C1", &["1 to 3 spatial axes"], |x, k| {
        x.slice_axes((.., .., 0, 0)).conv(k.slice_axes((.., .., 0, 0)), &Conv::default())
    });
    wrong(
        "conv.C2",
        &["has w channels (axis 3), the kernel [16, 3, 5, 5] is for 5 (axis 2)", "rebind"],
        conv(Conv { channels: Channels::Last, ..Conv::default() }),
    );
    wrong("conv.C2", &["has 3 channels (axis 1)", "is for 5", "Channels::Last"], |x, k| {
        x.conv(k.transpose(&[0, 2, 1, 3]), &Conv::default())
    });
    wrong("conv.C2", &["in each of 2 groups"], conv(Conv { groups: 2, ..Conv::default() }));
    wrong("conv.C2", &["the 16 output channels", "3 groups"], |x, k| {
        x.conv(k.slice(1, ..1), &Conv { groups: 3, ..Conv::default() })
    });
    wrong("conv.C3", &["0 groups"], conv(Conv { groups: 0, ..Conv::default() }));
    wrong("conv.C3", &["strides [2] for 2 spatial axes"], conv(strided(&[2], Edges::Valid)));
    wrong("conv.C3", &["strides [0, 1]"], conv(strided(&[0, 1], Edges::Valid)));
    wrong("conv.C3", &["edges [(1, 1)]"], conv(strided(&[], Edges::Explicit(vec![(1, 1)]))));
    wrong("conv.C3", &["dilation [1, 0]"], conv(Conv { dilation: vec![1, 0], ..same() }));
    wrong("conv.C3", &["a window of 0 elements"], |x, k| x.conv(k.slice(2, 5..), &Conv::default()));
    wrong("conv.C3", &["must have known sizes"], |x, _| x.conv(x, &Conv::default()));
    wrong("promotion.C1", &["f32 and s32"], |x, k| x.conv(k.cast(ElementType::S32), &same()));
    wrong("elementwise.C1", &["conv: needs numbers"], |x, k| {
        x.equal(x).conv(k.equal(k), &Conv::default())
    });
    wrong("pool.C1", &["a window [2] for [n, 3, h, w]"], |x, _| x.max_pool(&[2], &Pool::default()));
    wrong("pool.C1", &["[n, 3]"], |x, _| {
        x.slice_axes((.., .., 0, 0)).avg_pool(&[], &Pool::default())
    });
    wrong("conv.C3", &["a window of 0 elements"], |x, _| x.max_pool(&[0, 2], &Pool::default()));
    wrong("elementwise.C1", &["avg_pool: needs floats, found s32"], |x, _| {
        x.cast(ElementType::S32).avg_pool(&[2, 2], &Pool::default())
    });
}
