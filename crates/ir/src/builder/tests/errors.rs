use super::*;
use crate::ElementType::{F32, S32};
use crate::ops::{CollectiveAttrs, ConvDims, DotDims, PadDim};

#[test]
fn the_first_error_is_kept() {
    check_error("transpose.C2", |b| {
        let [x] = parameters(b, ["f32[2,3]"]);
        let wrong = x.transpose(&[0, 0]);
        let line = Place::Line(line!() - 1);
        assert!(wrong.shape().is_err());
        assert_eq!(format!("{wrong:?}"), "XlaOp(void)");
        // What follows does nothing, whether with the void handle or without.
        wrong.exp().add(&x);
        x.reshape(&[7]);
        line
    });
}

/// Each of these must break its rule, and the error name the line it stands on, which begins with
/// the name of the test.
macro_rules! wrong {
    ($($name:ident $rule:literal, $shapes:expr, |$b:ident, $args:pat_param| $call:expr;)*) => {$(
        #[test]
        fn $name() {
            check_error($rule, |$b| {
                let $args = parameters($b, $shapes);
                $call;
                Place::Row(stringify!($name))
            });
        }
    )*};
}

wrong! {
    broadcasting_sizes "builder.C3", ["f32[2]", "f32[3]"], |b, [x, y]| { let _ = x + y; };
    broadcasting_ranks "builder.C4", ["f32[2,3]", "f32[3]"], |b, [x, y]| x.add(&y);
    broadcasting_order "builder.C4", ["f32[2,3,4]", "f32[2,3]"], |b, [x, y]| x.add_broadcast(&y, &[1, 0]);
    broadcasting_range "builder.C4", ["f32[2,3,4]", "f32[2]"], |b, [x, y]| x.add_broadcast(&y, &[3]);
    broadcasting_identity "builder.C4", ["f32[2,2]", "f32[2,2]"], |b, [x, y]| x.add_broadcast(&y, &[1, 0]);
    broadcasting_tuples "builder.C5", ["()", "f32[]"], |b, [x, y]| x.add(&y);
    operand_type "binary.C3", ["f32[]", "s32[]"], |b, [x, y]| { let _ = x * y; };
    number_type "builder.C6", ["u8[2]"], |b, [x]| { let _ = x + 256; };
    number_first "builder.C6", ["s32[2]"], |b, [x]| { let _ = 0.5 * x; };
    number_of_tuple "builder.C5", ["(f32[])"], |b, [x]| x.max(1);
    unary "unary.C2", ["s32[]"], |b, [x]| x.floor();
    select_dims "builder.C3", ["pred[2]", "f32[3]"], |b, [p, x]| p.select(&x, 0);
    select_tuples "builder.C5", ["pred[2]", "(f32[2])"], |b, [p, x]| p.select(&x, &x);
    select_tuple_shapes "builder.C5", ["pred[]", "(f32[2])", "(f32[3])"], |b, [p, x, y]| p.select(&x, &y);
    clamp_dims "builder.C3", ["f32[2]", "f32[3]"], |b, [x, y]| x.clamp(&y, 1);
    broadcast_in_dim_sizes "builder.C3", ["f32[2]"], |b, [x]| x.broadcast_in_dim(&[3], &[0]);
    broadcast_in_dim_list "builder.C4", ["f32[2]"], |b, [x]| x.broadcast_in_dim(&[2], &[]);
    broadcast_in_dim_range "builder.C4", ["f32[2]"], |b, [x]| x.broadcast_in_dim(&[2], &[1]);
    broadcast_in_dim_order "builder.C4", ["f32[2,2]"], |b, [x]| x.broadcast_in_dim(&[2, 2], &[1, 0]);
    broadcast_size "shape.C2", ["f32[2]"], |b, [x]| x.broadcast(&[usize::MAX]);
    collapse_order "builder.C4", ["f32[4,2,3]"], |b, [x]| x.collapse(&[1, 0]);
    collapse_gap "builder.C4", ["f32[4,2,3]"], |b, [x]| x.collapse(&[0, 2]);
    collapse_range "builder.C4", ["f32[4,2,3]"], |b, [x]| x.collapse(&[3]);
    reshape_count "reshape.C4", ["f32[4]"], |b, [x]| x.reshape(&[3]);
    legacy_reshape "transpose.C2", ["f32[4,2]"], |b, [x]| x.reshape_with_dimensions(&[0], &[8]);
    slice_in_dim "builder.C4", ["f32[4]"], |b, [x]| x.slice_in_dim(0, 1, 1, 1);
    legacy_slice "builder.C4", ["f32[4]"], |b, [x]| x.slice_unit_stride(&[2], &[2]);
    pad_in_dim "builder.C4", ["f32[4]"], |b, [x]| x.pad_in_dim(0, 1, 0, 0);
    pad "pad.C4", ["f32[4]"], |b, [x]| x.pad(0, &[PadDim { low: -5, high: 0, interior: 0 }]);
    vector_rank "builder.C5", ["f32[4]", "s32[]"], |b, [x, i]| x.dynamic_slice_vector(&i, &[2]);
    vector_length "builder.C4", ["f32[4]", "s32[2]"], |b, [x, i]| x.dynamic_slice_vector(&i, &[2]);
    logical_type "builder.C5", ["s32[4]"], |b, [x]| x.logical_and(&x);
    sort_scalar "builder.C5", ["f32[]"], |b, [x]| x.sort();
    sort_complex "compare.C4", ["c64[4]"], |b, [x]| x.sort();
    sort_nothing "operands.C1", ["f32[4]"], |b, [_x]| b.sort(XlaOp::NONE, &less(F32), None, false);
    bernoulli_type "builder.C5", ["f64[]"], |b, [x]| b.rng_bernoulli(&x, shape("u32[2]"));
    bernoulli_shape "builder.C5", ["f32[]"], |b, [x]| b.rng_bernoulli(&x, shape("s32[2]"));
    tuple_shape "builder.C5", ["f32[]"], |b, [_x]| b.iota(shape("()"), 0);
    dot_rank "builder.C5", ["f32[2,2,2]", "f32[2]"], |b, [x, y]| x.dot(&y);
    dot_dims "dot.C2", ["f32[2]", "f32[2]"], |b, [x, y]| x.dot_general(&y, DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() });
    conv_rank "builder.C5", ["f32[2]", "f32[2]"], |b, [x, y]| x.conv(&y, &[], Padding::Same, 1, 1);
    conv_dims "builder.C4", ["f32[1,1,2]", "f32[1,1,2]"], |b, [x, y]| x.conv_general(&y, &[], &[], ConvDims { kernel_spatial: vec![9], ..ConvDims::default() }, 1, 1);
    conv_lists "builder.C4", ["f32[1,1,2]", "f32[1,1,2]"], |b, [x, y]| x.conv_with_general_padding(&y, &[1, 1], &[(0, 0)], 1, 1);
    window_stride "builder.C4", ["f32[4]"], |b, [x]| x.reduce_window(0, &add(), &[2], &[0], Padding::Same);
    window_dynamic "builder.C5", ["f32[<=4]"], |b, [x]| x.reduce_window(0, &add(), &[2], &[1], Padding::Same);
    windows_of_nothing "operands.C1", ["f32[4]"], |b, [_x]| b.reduce_window(XlaOp::NONE, XlaOp::NONE, &add(), &[], &[], Padding::Same);
    all_to_all_split "builder.C4", ["f32[4,6]"], |b, [x]| x.all_to_all(1, 0, 4, &CollectiveAttrs::default());
    all_to_all_zero "builder.C4", ["f32[4,6]"], |b, [x]| x.all_to_all(1, 0, 0, &CollectiveAttrs::default());
    all_to_all_range "builder.C4", ["f32[4,6]"], |b, [x]| x.all_to_all(2, 0, 2, &CollectiveAttrs::default());
    map_static_loop "builder.C5", ["f32[4]", "f32[2]"], |b, [x, y]| b.map_with_static_operands(&[x], &function("f", "f32[4]", |x| drop(x.exp())), &[y]);
    map_nothing "operands.C1", ["f32[4]"], |b, [_x]| b.map_with_static_operands(XlaOp::NONE, &add(), XlaOp::NONE);
    remove_dynamic "builder.C4", ["f32[4]"], |b, [x]| x.remove_dynamic_dimension(1);
    ragged_rows "literal.C1", ["f32[4]"], |b, [_x]| b.constant_r2(&[vec![1f32], vec![]]);
    array_length "literal.C1", ["f32[4]"], |b, [_x]| b.constant_array([3], &[1f32]);
    sharding_text "builder.C8", ["f32[4]"], |b, [_x]| b.set_sharding("replicated}");
    attribute_name "builder.C8", ["f32[4]"], |b, [x]| x.set_frontend_attribute("a=b", "c");
    custom_call_attribute "builder.C8", ["f32[4]"], |b, [x]| b.custom_call_with("f", &[x], shape("f32[]"), &CustomCallOptions { schedule: Some("}".to_owned()), ..CustomCallOptions::default() });
}

#[test]
fn handles_of_another_builder() {
    let other = XlaBuilder::new("other");
    let foreign = other.constant_r0(1f32);
    check_error("builder.C1", |b| {
        let [x] = parameters(b, ["f32[]"]);
        x.add(&foreign);
        Place::Line(line!() - 1)
    });
    // The root, too.
    let b = XlaBuilder::new("b");
    b.constant_r0(1f32);
    let error = b.build_with_root(&foreign).expect_err("a foreign root");
    assert_eq!(error.rule_id(), Some("builder.C1"));
    // Neither builder is to blame for a look at a foreign shape.
    assert!(b.shape(&foreign).is_err());
    assert!(b.build().is_ok() && other.build().is_ok());
}

#[test]
fn parameter_numbers() {
    check_error("builder.C2", |b| {
        b.parameter(0, Shape::scalar(F32), "x");
        b.parameter(0, Shape::scalar(F32), "y");
        Place::Line(line!() - 1)
    });
    check_error("builder.C2", |b| {
        b.parameter(0, Shape::scalar(F32), "x");
        b.parameter(2, Shape::scalar(F32), "z");
        Place::Line(line!() - 1)
    });
    let b = XlaBuilder::new("b");
    b.parameter(1, Shape::scalar(F32), "y");
    b.parameter(0, Shape::scalar(S32), "x");
    let params = b.build().expect("the order of calls does not matter").program_shape().params;
    assert_eq!(params, [Shape::scalar(S32), Shape::scalar(F32)]);
}

#[test]
fn nothing_to_build() {
    let error = XlaBuilder::new("b").build().expect_err("no root");
    assert_eq!(error.rule_id(), Some("builder.C7"));
    assert!(error.location().is_some());
}

#[test]
fn unknown_sizes_are_not_guessed() {
    let b = XlaBuilder::new("b");
    let [x] = parameters(&b, ["f32[?]"]);
    let _ = x + 1;
    assert_eq!(b.build().expect_err("an unknown size").code(), crate::Code::Unimplemented);
}

#[test]
fn errors_of_ones_own() {
    check_error("mine", |b| {
        b.report_error(Error::rule("mine", "an argument is wrong"));
        Place::Line(line!() - 1)
    });
}

#[test]
fn an_error_in_the_instruction_names_it() {
    let b = XlaBuilder::new("b");
    let [x] = parameters(&b, ["f32[2,3]"]);
    x.transpose(&[0]);
    let error = b.build().expect_err("a wrong permutation");
    assert_eq!(error.instruction(), Some("transpose.2"));
}

/// A handful of absurd arguments: errors, not panics.
#[test]
fn no_argument_panics() {
    let calls: &[fn(&XlaBuilder, &XlaOp) -> XlaOp] = &[
        |_, x| x.broadcast(&[usize::MAX, usize::MAX]),
        |_, x| x.broadcast(&[1; 100]),
        |_, x| x.broadcast_in_dim(&[usize::MAX], &[usize::MAX]),
        |_, x| x.reshape(&[usize::MAX, 2]),
        |_, x| x.collapse(&[0, usize::MAX]),
        |_, x| x.transpose(&[usize::MAX, 0]),
        |_, x| x.slice(&[usize::MAX], &[0, 1], &[0]),
        |_, x| x.slice(&[0, 0], &[usize::MAX, 1], &[1, 0]),
        |_, x| x.pad(0, &[PadDim { low: i64::MIN, high: i64::MAX, interior: usize::MAX }; 2]),
        |_, x| x.all_gather(usize::MAX, usize::MAX, &CollectiveAttrs::default()),
        |_, x| x.all_to_all(0, 1, usize::MAX, &CollectiveAttrs::default()),
        |_, x| x.top_k(usize::MAX, false),
        |_, x| x.get_tuple_element(usize::MAX),
        |_, x| x.fft(crate::ops::FftKind::Fft, &[usize::MAX; 5]),
        |_, x| x.conv(x, &[usize::MAX; 3], Padding::Same, 0, 0),
        |_, x| x.reduce(0, &add(), &[usize::MAX, 0, 0]),
        |_, x| x.gather(x, crate::ops::GatherDims::default(), &[usize::MAX], true),
        |b, _| b.constant_r1_filled(usize::MAX, 1u8),
        |b, _| b.constant_r1_filled(1 << 60, 1u8),
        |b, _| b.parameter(usize::MAX, Shape::Opaque, "\u{0}"),
        |b, _| b.iota(shape("f32[2]"), usize::MAX),
        |b, x| b.concat_in_dim(&[x], usize::MAX),
        |b, _| b.concat_in_dim(XlaOp::NONE, 0),
        |b, x| b.map(&[x], &add(), &[usize::MAX]),
        |b, x| b.call(&add(), &[x]),
        |b, x| b.fusion("}", &add(), &[x]),
        |_, x| x.while_loop(&add(), &add()),
        |_, x| x.conditional_indexed(&[] as &[XlaComputation], XlaOp::NONE),
    ];
    for (i, call) in calls.iter().enumerate() {
        let b = XlaBuilder::new("b");
        let [x] = parameters(&b, ["f32[2,3]"]);
        call(&b, &x);
        assert!(b.build().is_err(), "call {i}");
    }
}
