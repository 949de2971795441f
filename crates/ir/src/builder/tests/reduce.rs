use super::*;
use crate::ElementType::F32;

fn variadic() -> XlaComputation {
    let b = XlaBuilder::new("first");
    let [x, i, _, _] = parameters(&b, ["f32[]", "s32[]", "f32[]", "s32[]"]);
    b.build_with_root(b.tuple(&[x, i])).expect("a computation")
}

#[test]
fn reductions() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,2,3]"]);
            x.reduce(0, &add(), &[0, 2]);
            x.reduce_all(0.5, &add());
        },
        "%2 = f32[] constant(0)
         %3 = f32[2] reduce(x, %2), dimensions={0,2}, to_apply=add_f32
         %4 = f32[] constant(0.5)
         ROOT %8 = f32[] reduce(x, %4), dimensions={0,1,2}, to_apply=add_f32.1",
    );
}

#[test]
fn variadic_reductions() {
    check(
        |b| {
            let [x, i, a, n] = parameters(b, ["f32[4,2]", "s32[4,2]", "f32[]", "s32[]"]);
            b.reduce(&[&x, &i], &[&a, &n], &variadic(), &[1]);
        },
        "ROOT %9 = (f32[4], s32[4]) reduce(x, y, z, u), dimensions={1}, to_apply=first",
    );
}

#[test]
fn windows() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,6]"]);
            let max = scalar(BinaryOp::Maximum, F32);
            x.reduce_window(b.min_value(F32), &max, &[2, 3], &[2, 3], Padding::Valid);
            x.reduce_window(0, &max, &[3, 3], &[1, 2], Padding::Same);
            let spec = WindowSpec {
                dimensions: &[2, 2],
                padding: &[(1, 0), (0, 1)],
                base_dilations: &[2, 1],
                window_dilations: &[1, 2],
                ..WindowSpec::default()
            };
            x.reduce_window_with_general_padding(0, &max, &spec);
        },
        "%2 = f32[] constant(-inf)
         %3 = f32[2,2] reduce-window(x, %2), window={size=2x3 stride=2x3}, to_apply=maximum_f32
         %4 = f32[] constant(0)
         %5 = f32[4,3] reduce-window(x, %4), window={size=3x3 stride=1x2 pad=1_1x0_1}, to_apply=maximum_f32
         %6 = f32[] constant(0)
         ROOT %7 = f32[7,5] reduce-window(x, %6), window={size=2x2 pad=1_0x0_1 lhs_dilate=2x1 rhs_dilate=1x2}, to_apply=maximum_f32",
    );
}

#[test]
fn variadic_windows() {
    check(
        |b| {
            let [x, i, a, n] = parameters(b, ["f32[4]", "s32[4]", "f32[]", "s32[]"]);
            b.reduce_window(&[&x, &i], &[&a, &n], &variadic(), &[3], &[1], Padding::Same);
            let spec = WindowSpec { dimensions: &[2], ..WindowSpec::default() };
            b.reduce_window_with_general_padding(&[&x, &i], &[&a, &n], &variadic(), &spec);
        },
        "%9 = (f32[4], s32[4]) reduce-window(x, y, z, u), window={size=3 pad=1_1}, to_apply=first
         ROOT %15 = (f32[3], s32[3]) reduce-window(x, y, z, u), window={size=2}, to_apply=first.1",
    );
}

#[test]
fn select_and_scatter() {
    check(
        |b| {
            let [x, s] = parameters(b, ["f32[4,5]", "f32[2,2]"]);
            let ge = XlaComputation::scalar_compare(Direction::Ge, F32).expect("an order");
            x.select_and_scatter(&ge, &[2, 3], &[2, 2], Padding::Valid, &s, 0, &add());
            let spec = WindowSpec { dimensions: &[2, 3], strides: &[2, 2], ..WindowSpec::default() };
            x.select_and_scatter_with_general_padding(&ge, &spec, &s, 0, &add());
        },
        "%3 = f32[] constant(0)
         %6 = f32[4,5] select-and-scatter(x, y, %3), window={size=2x3 stride=2x2}, select=compare_GE_f32, scatter=add_f32
         %7 = f32[] constant(0)
         ROOT %11 = f32[4,5] select-and-scatter(x, y, %7), window={size=2x3 stride=2x2}, select=compare_GE_f32, scatter=add_f32.1",
    );
}

#[test]
fn sorts() {
    check(
        |b| {
            let [x, i] = parameters(b, ["f32[4,2]", "s32[4,2]"]);
            x.sort_by(&less(F32), Some(0), true);
            let by_first = {
                let b = XlaBuilder::new("by_first");
                let [l, r, _, _] = parameters(&b, ["f32[]", "f32[]", "s32[]", "s32[]"]);
                b.build_with_root(l.lt(&r)).expect("a comparator")
            };
            b.sort(&[&x, &i], &by_first, None, false);
            x.top_k(1, true);
        },
        "%3 = f32[4,2] sort(x), dimensions={0}, is_stable=true, to_apply=compare_LT_f32
         %6 = (f32[4,2], s32[4,2]) sort(x, y), dimensions={1}, to_apply=by_first
         ROOT %7 = (f32[4,1], s32[4,1]) topk(x), k=1, largest=true",
    );
}

#[test]
fn same_padding() {
    // E4 "ReduceWindow": size 3, stride 2 over 5 elements pads 1 on both sides.
    assert_eq!(Padding::Same.amounts(&[5], &[3], &[2]), Ok(vec![(1, 1)]));
    assert_eq!(Padding::Same.amounts(&[4], &[3], &[2]), Ok(vec![(0, 1)]));
    assert_eq!(Padding::Same.amounts(&[4], &[1], &[3]), Ok(vec![(0, 0)]));
    assert_eq!(Padding::Same.amounts(&[0], &[3], &[1]), Ok(vec![(1, 2)]));
    assert_eq!(Padding::Same.amounts(&[3, 3], &[2, 2], &[]), Ok(vec![(0, 1), (0, 1)]));
    assert_eq!(Padding::Valid.amounts(&[5], &[3], &[2]), Ok(vec![(0, 0)]));
    let error = |result: Result<_>| result.map(|_: Vec<_>| ()).unwrap_err().rule_id();
    assert_eq!(error(Padding::Same.amounts(&[5], &[3], &[0])), Some("builder.C4"));
    assert_eq!(error(Padding::Same.amounts(&[5], &[3, 3], &[])), Some("builder.C4"));
}

#[test]
fn window_lists_have_one_length() {
    let spec = WindowSpec { dimensions: &[2, 3], strides: &[1], ..WindowSpec::default() };
    assert_eq!(spec.window().unwrap_err().rule_id(), Some("builder.C4"));
}

#[test]
fn random_numbers() {
    use crate::ops::RngAlgorithm;
    check(
        |b| {
            let [x, state] = parameters(b, ["f32[]", "u64[2]"]);
            b.rng_uniform(&x, &x, shape("f32[2]{0}"));
            b.rng_normal(&x, &x, shape("f32[2]"));
            b.rng_bit_generator(RngAlgorithm::ThreeFry, &state, shape("u32[4]"));
            b.rng_get_and_update_state(1, shape("u64[2]"));
        },
        "%3 = f32[2] rng(x, x), distribution=rng_uniform
         %4 = f32[2] rng(x, x), distribution=rng_normal
         %5 = (u64[2], u32[4]) rng-bit-generator(y), algorithm=rng_three_fry
         ROOT %6 = u64[2] rng-get-and-update-state(), delta=1",
    );
}
