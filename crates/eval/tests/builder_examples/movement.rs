//! Examples that move elements.

use super::*;

const V: &str = "{ {{10, 11, 12}, {15, 16, 17}}, {{20, 21, 22}, {25, 26, 27}},
                   {{30, 31, 32}, {35, 36, 37}}, {{40, 41, 42}, {45, 46, 47}} }";

const IN_ORDER_8X3: &str = "{ {10, 11, 12}, {15, 16, 17}, {20, 21, 22}, {25, 26, 27},
                              {30, 31, 32}, {35, 36, 37}, {40, 41, 42}, {45, 46, 47} }";

const IN_ORDER_24: &str = "{10, 11, 12, 15, 16, 17, 20, 21, 22, 25, 26, 27,
                            30, 31, 32, 35, 36, 37, 40, 41, 42, 45, 46, 47}";

fn v(b: &XlaBuilder) -> XlaOp {
    constant(b, "f32[4,2,3]", V)
}

/// E1–E4 "Broadcast".
#[test]
fn broadcast() {
    check("f32[2,3]", "{{2, 2, 2}, {2, 2, 2}}", |b| b.constant_r0(2f32).broadcast(&[2, 3]));
    // output[i0, j0] = operand[j0]
    check("s32[2,3]", "{{1, 2, 3}, {1, 2, 3}}", |b| b.constant_r1(&[1, 2, 3]).broadcast(&[2]));
}

/// E4 "BroadcastInDim": dimensions of size 1 stretch, new ones may stand anywhere.
#[test]
fn broadcast_in_dim() {
    check("s32[2,2,3]", "{{{1, 1, 1}, {1, 1, 1}}, {{2, 2, 2}, {2, 2, 2}}}", |b| {
        b.constant_r2(&[[1], [2]]).broadcast_in_dim(&[2, 2, 3], &[0, 2])
    });
    check("s32[3,2]", "{{1, 1}, {2, 2}, {3, 3}}", |b| {
        b.constant_r1(&[1, 2, 3]).broadcast_in_dim(&[3, 2], &[0])
    });
}

/// E1–E4 "Collapse".
#[test]
fn collapse() {
    check("f32[24]", IN_ORDER_24, |b| v(b).collapse(&[0, 1, 2]));
    check("f32[8,3]", IN_ORDER_8X3, |b| v(b).collapse(&[0, 1]));
    let v12 = "{ {10, 11, 12, 15, 16, 17}, {20, 21, 22, 25, 26, 27},
                 {30, 31, 32, 35, 36, 37}, {40, 41, 42, 45, 46, 47} }";
    check("f32[4,6]", v12, |b| v(b).collapse(&[1, 2]));
    check("f32[4,2,3]", V, |b| v(b).collapse(&[]));
}

/// E1–E3 "Reshape(operand, dimensions, new_sizes)", in order and out of order.
#[test]
fn reshape_with_dimensions() {
    check("f32[24]", IN_ORDER_24, |b| v(b).reshape_with_dimensions(&[0, 1, 2], &[24]));
    check("f32[8,3]", IN_ORDER_8X3, |b| v(b).reshape_with_dimensions(&[0, 1, 2], &[8, 3]));
    let v021_24 = "{10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42,
                    15, 25, 35, 45, 16, 26, 36, 46, 17, 27, 37, 47}";
    check("f32[24]", v021_24, |b| v(b).reshape_with_dimensions(&[1, 2, 0], &[24]));
    let v021_83 = "{ {10, 20, 30}, {40, 11, 21}, {31, 41, 12}, {22, 32, 42},
                     {15, 25, 35}, {45, 16, 26}, {36, 46, 17}, {27, 37, 47} }";
    check("f32[8,3]", v021_83, |b| v(b).reshape_with_dimensions(&[1, 2, 0], &[8, 3]));
    let v021_262 = "{ {{10, 20}, {30, 40}, {11, 21}, {31, 41}, {12, 22}, {32, 42}},
                      {{15, 25}, {35, 45}, {16, 26}, {36, 46}, {17, 27}, {37, 47}} }";
    check("f32[2,6,2]", v021_262, |b| v(b).reshape_with_dimensions(&[1, 2, 0], &[2, 6, 2]));
    check("f32[]", "5", |b| b.constant_r2(&[[5f32]]).reshape_with_dimensions(&[0, 1], &[]));
    check("f32[1,1]", "{{5}}", |b| b.constant_r0(5f32).reshape_with_dimensions(&[], &[1, 1]));
}

/// E4 "Reshape(operand, dimensions)".
#[test]
fn reshape() {
    check("f32[24]", IN_ORDER_24, |b| v(b).reshape(&[24]));
    check("f32[8,3]", IN_ORDER_8X3, |b| v(b).reshape(&[8, 3]));
    check("f32[]", "5", |b| b.constant_r2(&[[5f32]]).reshape(&[]));
    check("f32[1,1]", "{{5}}", |b| b.constant_r0(5f32).reshape(&[1, 1]));
}

/// E1–E3 "Transpose": the same as a reshape with dimensions to the permuted sizes.
#[test]
fn transpose() {
    let transposed = run(|b| v(b).transpose(&[1, 2, 0]));
    ensure_same(&transposed, &run(|b| v(b).reshape_with_dimensions(&[1, 2, 0], &[2, 3, 4])));
}

/// E1–E4 "Concatenate".
#[test]
fn concatenate() {
    check("s32[6]", "{2, 3, 4, 5, 6, 7}", |b| {
        let parts = [[2, 3], [4, 5], [6, 7]].map(|part| b.constant_r1(&part));
        b.concat_in_dim(&parts, 0)
    });
    check("s32[4,2]", "{{1, 2}, {3, 4}, {5, 6}, {7, 8}}", |b| {
        let a = b.constant_r2(&[[1, 2], [3, 4], [5, 6]]);
        b.concat_in_dim(&[a, b.constant_r2(&[[7, 8]])], 0)
    });
}

fn a(b: &XlaBuilder) -> XlaOp {
    b.constant_r1(&[0f32, 1.0, 2.0, 3.0, 4.0])
}

fn b_4x3(b: &XlaBuilder) -> XlaOp {
    b.constant_r2(&[[0f32, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0]])
}

/// E1–E4 "Slice", without strides and with.
#[test]
fn slice() {
    check("f32[2]", "{2, 3}", |b| a(b).slice_unit_stride(&[2], &[4]));
    check("f32[2,2]", "{{7, 8}, {10, 11}}", |b| b_4x3(b).slice_unit_stride(&[2, 1], &[4, 3]));
    check("f32[2,2]", "{{7, 8}, {10, 11}}", |b| b_4x3(b).slice(&[2, 1], &[4, 3], &[1, 1]));
    check("f32[3]", "{0, 2, 4}", |b| a(b).slice(&[0], &[5], &[2]));
    check("f32[1]", "{3}", |b| a(b).slice_in_dim(3, 4, 1, 0));
}

/// E1–E3 "DynamicSlice" with a vector of indices, E4 with scalars.
#[test]
fn dynamic_slice() {
    check("f32[2]", "{2, 3}", |b| a(b).dynamic_slice_vector(b.constant_r1(&[2]), &[2]));
    check("f32[2]", "{2, 3}", |b| a(b).dynamic_slice(&[b.constant_r0(2)], &[2]));
    check("f32[2,2]", "{{7, 8}, {10, 11}}", |b| {
        b_4x3(b).dynamic_slice_vector(b.constant_r1(&[2, 1]), &[2, 2])
    });
    check("f32[2,2]", "{{7, 8}, {10, 11}}", |b| {
        b_4x3(b).dynamic_slice(&[b.constant_r0(2), b.constant_r0(1)], &[2, 2])
    });
    // Out of range, E4 clamps.
    check("f32[2]", "{3, 4}", |b| a(b).dynamic_slice_vector(b.constant_r1(&[4]), &[2]));
}

/// E1–E3 "DynamicUpdateSlice" with a vector of indices, E4 with scalars.
#[test]
fn dynamic_update_slice() {
    let update = |b: &XlaBuilder| b.constant_r1(&[5f32, 6.0]);
    check("f32[5]", "{0, 1, 5, 6, 4}", |b| {
        a(b).dynamic_update_slice_vector(update(b), b.constant_r1(&[2]))
    });
    check("f32[5]", "{0, 1, 5, 6, 4}", |b| {
        a(b).dynamic_update_slice(update(b), &[b.constant_r0(2)])
    });
    let expected = "{{0, 1, 2}, {3, 12, 13}, {6, 14, 15}, {9, 16, 17}}";
    check("f32[4,3]", expected, |b| {
        let update = b.constant_r2(&[[12f32, 13.0], [14.0, 15.0], [16.0, 17.0]]);
        b_4x3(b).dynamic_update_slice_vector(update, b.constant_r1(&[1, 1]))
    });
}

/// E4 "Iota".
#[test]
fn iota() {
    let rows = "{{0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1},
                 {2, 2, 2, 2, 2, 2, 2, 2}, {3, 3, 3, 3, 3, 3, 3, 3}}";
    check("s32[4,8]", rows, |b| b.iota(shape("s32[4,8]"), 0));
    let columns = "{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7},
                    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}";
    check("s32[4,8]", columns, |b| b.iota(shape("s32[4,8]"), 1));
}

/// E1–E4 "Tuple", "GetTupleElement".
#[test]
fn get_tuple_element() {
    check("s32[]", "5", |b| {
        let tuple = b.tuple(&[b.iota_r1(ElementType::F32, 10), b.constant_r0(5)]);
        tuple.get_tuple_element(1)
    });
}

/// E1–E4 "Select", also between tuples.
#[test]
fn select() {
    let v1 = |b: &XlaBuilder| b.constant_r1(&[1, 2, 3, 4]);
    let v2 = |b: &XlaBuilder| b.constant_r1(&[100, 200, 300, 400]);
    check("s32[4]", "{1, 200, 300, 4}", |b| {
        b.constant_r1(&[true, false, false, true]).select(v1(b), v2(b))
    });
    check("s32[4]", "{1, 2, 3, 4}", |b| b.constant_r0(true).select(v1(b), v2(b)));
    for (pred, expected) in [(true, "({1, 2, 3, 4}, (1))"), (false, "({100, 200, 300, 400}, (2))")]
    {
        check("(s32[4], (f32[]))", expected, |b| {
            let pair = |v: XlaOp, x: f32| b.tuple(&[v, b.tuple(&[b.constant_r0(x)])]);
            b.constant_r0(pred).select(pair(v1(b), 1.0), pair(v2(b), 2.0))
        });
    }
}

/// E3 "Gather" under its old names, E4 under the new: `[G, O0, O1]` is `[X + O0, Y + O1]`.
#[test]
fn gather() {
    use helio_ir::builder::LegacyGatherDims;
    use helio_ir::ops::GatherDims;
    let places = [[0, 0], [8, 5], [3, 2], [1, 4], [7, 0]];
    let operand = |b: &XlaBuilder| b.iota_r1(ElementType::S32, 16 * 11).reshape(&[16, 11]);
    let legacy = run(|b| {
        let dims = LegacyGatherDims {
            output_window_dims: vec![1, 2],
            elided_window_dims: vec![],
            gather_dims_to_operand_dims: vec![0, 1],
            index_vector_dim: 1,
        };
        operand(b).gather_legacy(b.constant_r2(&places), dims, &[8, 6])
    });
    let mut expected = Vec::new();
    for [x, y] in places {
        for o0 in 0..8 {
            expected.extend((0..6).map(|o1| (x + o0) * 11 + y + o1));
        }
    }
    ensure_same(&legacy, &Literal::array([5, 8, 6], expected).expect("as many values"));
    let today = run(|b| {
        let dims = GatherDims {
            offset_dims: vec![1, 2],
            start_index_map: vec![0, 1],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        operand(b).gather(b.constant_r2(&places), dims, &[8, 6], false)
    });
    ensure_same(&today, &legacy);
}

/// E3, E4 "Gather", the last example: `tf.gather_nd`, whole rows of an array.
#[test]
fn gather_rows() {
    let rows = [3, 0, 15, 3];
    let dims = helio_ir::ops::GatherDims {
        offset_dims: vec![1],
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: 1,
        ..Default::default()
    };
    let gathered = run(|b| {
        let operand = b.iota_r1(ElementType::S32, 16 * 11).reshape(&[16, 11]);
        operand.gather(b.constant_r1(&rows).reshape(&[4, 1]), dims, &[1, 11], false)
    });
    let expected = rows.iter().flat_map(|row| row * 11..row * 11 + 11).collect();
    ensure_same(&gathered, &Literal::array([4, 11], expected).expect("as many values"));
}

/// E4 "BitcastConvertType": the shapes of its examples, there and back.
#[test]
fn bitcast_convert() {
    let narrow = run(|b| b.iota_r1(ElementType::F32, 10).bitcast_convert_type(ElementType::F16));
    assert_eq!(narrow.shape(), shape("f16[10,2]"));
    check("f32[10]", "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}", |b| {
        let narrow = b.iota_r1(ElementType::F32, 10).bitcast_convert_type(ElementType::F16);
        narrow.bitcast_convert_type(ElementType::F32)
    });
    check("u8[4]", "{4, 3, 2, 1}", |b| {
        b.constant_r0(0x0102_0304u32).bitcast_convert_type(ElementType::U8)
    });
}

/// E4 "SetDimensionSize"; the bound can be taken away again.
#[test]
fn set_dimension_size() {
    let f32 = ElementType::F32;
    let padded = |b: &XlaBuilder, size: i32| {
        (b.iota_r1(f32, 10) + 1).set_dimension_size(b.constant_r0(size), 0)
    };
    let (sum, product) = (scalar(BinaryOp::Add, f32), scalar(BinaryOp::Multiply, f32));
    check("f32[]", "15", |b| padded(b, 5).reduce_all(0, &sum));
    check("f32[]", "120", |b| padded(b, 5).reduce_all(1, &product));
    check("f32[]", "21", |b| padded(b, 6).reduce_all(0, &sum));
    check("s32[]", "6", |b| padded(b, 6).get_dimension_size(0));
    check("s32[]", "10", |b| padded(b, 6).remove_dynamic_dimension(0).get_dimension_size(0));
    assert_eq!(run(|b| padded(b, 6).remove_dynamic_dimension(0)).shape(), shape("f32[10]"));
}
