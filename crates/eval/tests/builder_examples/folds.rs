//! Examples that fold, sort, map and loop.

use helio_ir::builder::{Padding, WindowSpec};
use helio_ir::ops::Direction;

use super::*;

const F32: ElementType = ElementType::F32;

/// The values 1 to 6 in each of 4 layers (E1–E4 "Reduce").
fn layers(b: &XlaBuilder) -> XlaOp {
    b.constant_r2(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).broadcast(&[4])
}

/// E1–E4 "Reduce" (E4's text is right where E1 repeats a row).
#[test]
fn reduce() {
    let add = scalar(BinaryOp::Add, F32);
    check("f32[2,3]", "{{4, 8, 12}, {16, 20, 24}}", |b| layers(b).reduce(0, &add, &[0]));
    check("f32[4,2]", "{{6, 15}, {6, 15}, {6, 15}, {6, 15}}", |b| layers(b).reduce(0, &add, &[2]));
    check("f32[3]", "{20, 28, 36}", |b| layers(b).reduce(0, &add, &[0, 1]));
    check("f32[]", "84", |b| layers(b).reduce_all(0, &add));
}

/// E4 "Variadic Reduce": maximum and its index together.
#[test]
fn variadic_reduce() {
    let f =
        computation("f", ["f32[]", "s32[]", "f32[]", "s32[]"], |b, [max, arg, value, index]| {
            let take = value.ge(&max);
            b.tuple(&[take.select(&value, &max), take.select(&index, &arg)])
        });
    check("(f32[], s32[])", "(9, 3)", |b| {
        let values = b.constant_r1(&[3f32, -1.0, 8.0, 9.0, 2.0]);
        let indices = b.iota_r1(ElementType::S32, 5);
        b.reduce(&[values, indices], &[b.min_value(F32), b.constant_r0(-1)], &f, &[0])
    });
}

/// E1–E4 "ReduceWindow": the maximum of windows of 2x3, and the minimum under SAME and VALID.
#[test]
fn reduce_window() {
    let max = scalar(BinaryOp::Maximum, F32);
    check("f32[2,2]", "{{8, 11}, {20, 23}}", |b| {
        let input = b.iota_r1(F32, 24).reshape(&[4, 6]);
        input.reduce_window(b.min_value(F32), &max, &[2, 3], &[2, 3], Padding::Valid)
    });
    let min = scalar(BinaryOp::Minimum, F32);
    let minima = |b: &XlaBuilder, padding| {
        let input = b.constant_r1(&[10000f32, 1000.0, 100.0, 10.0, 1.0]);
        input.reduce_window(b.max_value(F32), &min, &[3], &[2], padding)
    };
    check("f32[2]", "{100, 1}", |b| minima(b, Padding::Valid));
    check("f32[3]", "{1000, 10, 1}", |b| minima(b, Padding::Same));
}

/// E4 "ReduceWindow" with dilations: holes in the base count as the initial value, those in the
/// window skip elements.
#[test]
fn dilated_reduce_window() {
    let add = scalar(BinaryOp::Add, F32);
    let input = |b: &XlaBuilder| b.constant_r1(&[1f32, 2.0, 3.0]);
    let base = WindowSpec { dimensions: &[2], base_dilations: &[2], ..WindowSpec::default() };
    check("f32[4]", "{1, 2, 2, 3}", |b| {
        input(b).reduce_window_with_general_padding(0, &add, &base)
    });
    let window = WindowSpec { dimensions: &[2], window_dilations: &[2], ..WindowSpec::default() };
    check("f32[1]", "{4}", |b| input(b).reduce_window_with_general_padding(0, &add, &window));
}

/// E1–E4 "SelectAndScatter": the element of value 9 is selected by both top windows, and 2 + 6 = 8
/// comes there (the figure).
#[test]
fn select_and_scatter() {
    let ge = XlaComputation::scalar_compare(Direction::Ge, F32).expect("f32 has an order");
    let add = scalar(BinaryOp::Add, F32);
    let expected = "{{0, 0, 0, 0, 0}, {0, 0, 8, 0, 0}, {0, 0, 3, 0, 0}, {0, 0, 0, 1, 0}}";
    check("f32[4,5]", expected, |b| {
        let operand = "{{7, 2, 5, 3, 8}, {3, 8, 9, 3, 4}, {1, 5, 7, 5, 6}, {0, 6, 2, 10, 2}}";
        let operand = constant(b, "f32[4,5]", operand);
        let source = b.constant_r2(&[[2f32, 6.0], [3.0, 1.0]]);
        operand.select_and_scatter(&ge, &[2, 3], &[2, 2], Padding::Valid, source, 0, &add)
    });
}

/// E4 "Sort": three operands sorted by the first.
#[test]
fn sort_several() {
    let shapes = ["s32[]", "s32[]", "s32[]", "s32[]", "f32[]", "f32[]"];
    let by_first = computation("by_first", shapes, |_, [l, r, ..]| l.lt(&r));
    check("(s32[2], s32[2], f32[2])", "({1, 3}, {50, 42}, {1.1, -3})", |b| {
        let operands =
            [b.constant_r1(&[3, 1]), b.constant_r1(&[42, 50]), b.constant_r1(&[-3f32, 1.1])];
        b.sort(&operands, &by_first, None, false)
    });
}

/// E1–E3 "Sort(operand)": ascending, the last dimension, floats by their total order.
#[test]
fn sort_without_comparator() {
    check("f32[2,4]", "{{-inf, -0, 0, nan}, {1, 2, 3, 4}}", |b| {
        constant(b, "f32[2,4]", "{{nan, 0, -0, -inf}, {3, 1, 4, 2}}").sort()
    });
    check("s32[3]", "{-2, 1, 3}", |b| b.constant_r1(&[3, -2, 1]).sort());
}

/// E4 "TopK": equal elements, the lower index first.
#[test]
fn top_k() {
    check("(f32[3], s32[3])", "({9, 7, 7}, {2, 0, 3})", |b| {
        b.constant_r1(&[7f32, 1.0, 9.0, 7.0]).top_k(3, true)
    });
    check("(f32[2], s32[2])", "({1, 7}, {1, 0})", |b| {
        b.constant_r1(&[7f32, 1.0, 9.0, 7.0]).top_k(2, false)
    });
}

/// E1–E3 "Map(op1, op2, op3, computation, par1)": `elem_out <- computation(elem1, elem2, elem3,
/// par1)`, where `par1` is a scalar.
#[test]
fn map_with_a_scalar_static_operand() {
    let shapes = ["f32[]", "f32[]", "f32[]", "f32[]"];
    let f = computation("f", shapes, |_, [x, y, z, par]| x * y + z * par);
    check("f32[2,2]", "{{103, 208}, {315, 424}}", |b| {
        let op1 = b.constant_r2(&[[1f32, 2.0], [3.0, 4.0]]);
        let op2 = b.constant_r2(&[[3f32, 4.0], [5.0, 6.0]]);
        let op3 = b.constant_r2(&[[1f32, 2.0], [3.0, 4.0]]);
        b.map_with_static_operands(&[op1, op2, op3], &f, &[b.constant_r0(100f32)])
    });
}

/// The same where `par1` is an array and `par2` a tuple ("M arrays of arbitrary type").
#[test]
fn map_with_other_static_operands() {
    let shapes = ["s32[]", "s32[3]", "(s32[], s32[2])"];
    let add = scalar(BinaryOp::Add, ElementType::S32);
    let f = computation("f", shapes, |_, [x, par1, par2]| {
        par1.dynamic_slice(&[&x], &[1]).reshape(&[])
            + par2.get_tuple_element(0)
            + par2.get_tuple_element(1).reduce_all(0, &add)
    });
    let program = |values: &'static [i32], b: &XlaBuilder| {
        let par1 = b.constant_r1(&[10, 20, 30]);
        let par2 = b.tuple(&[b.constant_r0(1), b.constant_r1(&[2, 3])]);
        let operand = b.constant_r1(values).reshape(&[values.len() / 2, 2]);
        b.map_with_static_operands(&[operand], &f, &[par1, par2])
    };
    check("s32[2,2]", "{{36, 16}, {26, 36}}", |b| program(&[2, 0, 1, 2], b));
    check("s32[0,2]", "{}", |b| program(&[], b));
}

/// E3, E4 "Map" with dimensions.
#[test]
fn map() {
    let f = computation("f", ["s32[]", "f32[]"], |_, [n, x]| n.convert_element_type(F32) * x);
    check("f32[2,2]", "{{0.5, 1}, {1.5, 2}}", |b| {
        let n = b.constant_r2(&[[1, 2], [3, 4]]);
        b.map(&[&n, &b.constant_r0(0.5f32)], &f, &[0, 1])
    });
}

/// E1–E4 "While": 1000 iterations that add a constant vector to an accumulator.
#[test]
fn while_loop() {
    let state = "(s32[], f32[10])";
    let condition =
        computation("condition", [state], |_, [state]| state.get_tuple_element(0).lt(1000));
    let body = computation("body", [state], |b, [state]| {
        let vector = state.get_tuple_element(1) + b.constant_r1(&[1f32; 10]);
        b.tuple(&[state.get_tuple_element(0) + 1, vector])
    });
    let sums = ["1000"; 10].join(", ");
    check(state, &format!("(1000, {{{sums}}})"), |b| {
        let init = b.tuple(&[b.constant_r0(0), b.constant_r0(0f32).broadcast(&[10])]);
        init.while_loop(&condition, &body)
    });
}

/// E3, E4 "Conditional(pred, …)" and E4 "Conditional(branch_index, …)": out of range, the last
/// branch runs.
#[test]
fn conditional() {
    let branches =
        [10, 20, 30].map(|n| computation(&format!("add_{n}"), ["s32[]"], |_, [x]| x + n));
    let operands = |b: &XlaBuilder| [1, 2, 3].map(|n| b.constant_r0(n));
    for (pred, expected) in [(true, "11"), (false, "22")] {
        check("s32[]", expected, |b| {
            let [x, y, _] = operands(b);
            b.constant_r0(pred).conditional(x, &branches[0], y, &branches[1])
        });
    }
    for (index, expected) in [(0, "11"), (1, "22"), (2, "33"), (3, "33"), (-1, "33")] {
        check("s32[]", expected, |b| {
            b.constant_r0(index).conditional_indexed(&branches, &operands(b))
        });
    }
}

/// E1–E4 "Call", E4 "CompositeCall": a composite means what its computation does.
#[test]
fn calls() {
    let f = computation("f", ["f32[2]"], |_, [x]| x * 2 + 1);
    check("f32[2]", "{3, 5}", |b| b.call(&f, &[b.constant_r1(&[1f32, 2.0])]));
    check("f32[2]", "{3, 5}", |b| {
        b.composite_call(&f, &[b.constant_r1(&[1f32, 2.0])], "foo.bar", Some("{n = 1 : i32}"), 1)
    });
    check("f32[]", "7", |b| {
        let seven = computation("seven", [], |b, []| b.constant_r0(7f32));
        b.call(&seven, XlaOp::NONE)
    });
}

/// E4 "Scatter": the inverse of a gather; the first argument is the current value.
#[test]
fn scatter() {
    let dims = helio_ir::ops::ScatterDims {
        update_window_dims: vec![1],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        index_vector_dim: 1,
        ..Default::default()
    };
    let f = computation("f", ["s32[]", "s32[]"], |_, [current, update]| current * 10 + update);
    check("s32[3,2]", "{{113, 224}, {1, 2}, {15, 26}}", |b| {
        let operand = b.constant_r2(&[[1, 2], [1, 2], [1, 2]]);
        let indices = b.constant_r2(&[[0], [2], [0], [3]]);
        let updates = b.constant_r2(&[[1, 2], [5, 6], [3, 4], [7, 8]]);
        operand.scatter(indices, updates, &f, dims, false, false)
    });
}
