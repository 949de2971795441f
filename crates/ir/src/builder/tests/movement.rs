use super::*;
use crate::ElementType::{F32, F64, S32};
use crate::ops::PadDim;

#[test]
fn broadcasts() {
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[]", "f32[3,<=4]"]);
            x.broadcast(&[2, 3]);
            y.broadcast(&[2]);
            y.broadcast(&[]);
        },
        "%3 = f32[2,3] broadcast(x), dimensions={}
         %4 = f32[2,3,<=4] broadcast(y), dimensions={1,2}
         ROOT %5 = f32[3,<=4] broadcast(y), dimensions={0,1}",
    );
}

#[test]
fn broadcast_in_dim_stretches() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[1,3]"]);
            x.broadcast_in_dim(&[2, 4, 3], &[0, 2]);
            x.broadcast_in_dim(&[1, 4, 3], &[0, 2]);
            x.broadcast_in_dim(&[1, 3], &[0, 1]);
        },
        // The last one changes nothing, so it makes no instruction.
        "%2 = f32[3] reshape(x)
         %3 = f32[2,4,3] broadcast(%2), dimensions={2}
         ROOT %4 = f32[1,4,3] broadcast(x), dimensions={0,2}",
    );
}

#[test]
fn reshapes() {
    check(
        |b| {
            let [x, n] = parameters(b, ["f32[4,2,3]", "s32[]"]);
            x.reshape(&[24]);
            x.reshape_to(shape("f32[8,3]{0,1}"));
            x.collapse(&[0, 1]);
            x.collapse(&[1, 2]);
            x.collapse(&[0, 1, 2]);
            x.dynamic_reshape(&[&n, &n], shape("f32[<=8,<=3]"));
        },
        "%3 = f32[24] reshape(x)
         %4 = f32[8,3] reshape(x)
         %5 = f32[8,3] reshape(x)
         %6 = f32[4,6] reshape(x)
         %7 = f32[24] reshape(x)
         ROOT %8 = f32[<=8,<=3] dynamic-reshape(x, y, y)",
    );
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,2,3]"]);
            x.collapse(&[]).collapse(&[1]).copy();
        },
        "ROOT %2 = f32[4,2,3] copy(x)",
    );
}

#[test]
fn permutations() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,2,3]"]);
            x.transpose(&[1, 2, 0]).rev(&[0, 2]);
        },
        "%2 = f32[2,3,4] transpose(x), dimensions={1,2,0}
         ROOT %3 = f32[2,3,4] reverse(%2), dimensions={0,2}",
    );
}

#[test]
fn slices() {
    check(
        |b| {
            let [x, i, u] = parameters(b, ["f32[4,3]", "s32[]", "f32[2,2]"]);
            x.slice(&[0, 1], &[4, 3], &[2, 1]);
            x.slice(&[2, 1], &[4, 1], &[]);
            x.slice_in_dim(1, 3, 2, 0);
            x.dynamic_slice(&[&i, &i], &[2, 2]);
            x.dynamic_update_slice(&u, &[&i, &i]);
        },
        "%4 = f32[2,2] slice(x), slice={[0:4:2], [1:3:1]}
         %5 = f32[2,0] slice(x), slice={[2:4], [1:1]}
         %6 = f32[1,3] slice(x), slice={[1:3:2], [0:3:1]}
         %7 = f32[2,2] dynamic-slice(x, y, y), dynamic_slice_sizes={2,2}
         ROOT %8 = f32[4,3] dynamic-update-slice(x, z, y, y)",
    );
}

#[test]
fn padding() {
    check(
        |b| {
            let [x, fill] = parameters(b, ["f32[4,3]", "f32[]"]);
            let dims = [PadDim { low: 1, high: -1, interior: 2 }, PadDim::default()];
            x.pad(&fill, &dims);
            x.pad_in_dim(0, 1, 2, 3);
        },
        "%3 = f32[10,3] pad(x, y), padding=1_-1_2x0_0_0
         %4 = f32[] constant(0)
         ROOT %5 = f32[4,8] pad(x, %4), padding=0_0x2_3",
    );
}

#[test]
fn concatenation_and_tuples() {
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[3,2]", "f32[1,2]"]);
            let joined = b.concat_in_dim(&[&x, &y], 0);
            let tuple = b.tuple(&[joined, x, y]);
            b.tuple(&[tuple.get_tuple_element(0), b.tuple(XlaOp::NONE)]);
        },
        "%3 = f32[4,2] concatenate(x, y), dimensions={0}
         %4 = (f32[4,2], f32[3,2], f32[1,2]) tuple(%3, x, y)
         %5 = f32[4,2] get-tuple-element(%4), index=0
         %6 = () tuple()
         ROOT %7 = (f32[4,2], ()) tuple(%5, %6)",
    );
}

#[test]
fn bitcasts() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,3]"]);
            x.bitcast(shape("f32[12]"));
        },
        "ROOT %2 = f32[12] bitcast(x)",
    );
}

#[test]
fn dimension_sizes() {
    check(
        |b| {
            let [x, n] = parameters(b, ["f32[4,3]", "s32[]"]);
            let bounded = x.set_dimension_size(&n, 0).set_dimension_size(&n, 1);
            bounded.remove_dynamic_dimension(0);
            x.remove_dynamic_dimension(0);
        },
        "%3 = f32[<=4,3] set-dimension-size(x, y), dimensions={0}
         %4 = f32[<=4,<=3] set-dimension-size(%3, y), dimensions={1}
         %5 = f32[4,3] bitcast(%4)
         %6 = s32[] get-dimension-size(%4), dimensions={1}
         ROOT %7 = f32[4,<=3] set-dimension-size(%5, %6), dimensions={1}",
    );
}

#[test]
fn constants() {
    check(
        |b| {
            b.constant_r0(1i8);
            b.constant_r1(&[1f32, 2.0]);
            b.constant_r1::<f32>(&[]);
            b.constant_r1_filled(3, true);
            b.constant_r2(&[[1u8, 2], [3, 4]]);
            b.constant_r2::<u8>(&[vec![]]);
            b.constant_array([1, 1, 2], &[1.5f64, 2.0]);
            b.constant_literal(crate::Literal::scalar(2i32));
            b.iota(shape("s32[4,8]"), 1);
            b.iota_r1(F32, 5);
        },
        "%1 = s8[] constant(1)
         %2 = f32[2] constant({1, 2})
         %3 = f32[0] constant({})
         %4 = pred[3] constant({1, 1, 1})
         %5 = u8[2,2] constant({ { 1, 2 }, { 3, 4 } })
         %6 = u8[1,0] constant({...})
         %7 = f64[1,1,2] constant({ { { 1.5, 2 } } })
         %8 = s32[] constant(2)
         %9 = s32[4,8] iota(), iota_dimension=1
         ROOT %10 = f32[5] iota(), iota_dimension=0",
    );
    check(
        |b| {
            b.zero(S32);
            b.one(F64);
            b.min_value(F32);
            b.max_value(S32);
            b.min_finite_value(F32);
            b.max_finite_value(F32);
        },
        "%1 = s32[] constant(0)
         %2 = f64[] constant(1)
         %3 = f32[] constant(-inf)
         %4 = s32[] constant(2147483647)
         %5 = f32[] constant(-3.4028235e+38)
         ROOT %6 = f32[] constant(3.4028235e+38)",
    );
}
