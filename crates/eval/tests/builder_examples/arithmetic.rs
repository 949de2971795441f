//! Examples that compute element by element, or multiply matrices.

use helio_ir::builder::{ConvOptions, Padding};
use helio_ir::ops::DotDims;

use super::*;

/// XLA "Broadcasting", to which E1–E4 "Element-wise binary arithmetic operations" refer: a scalar,
/// a vector along either dimension, and dimensions of size 1.
#[test]
fn broadcasting() {
    let matrix = |b: &XlaBuilder| b.constant_r2(&[[1, 2, 3], [4, 5, 6]]);
    check("s32[2,3]", "{{8, 9, 10}, {11, 12, 13}}", |b| matrix(b) + 7);
    check("s32[2,3]", "{{6, 5, 4}, {3, 2, 1}}", |b| 7 - matrix(b));
    check("s32[2,3]", "{{8, 10, 12}, {11, 13, 15}}", |b| {
        matrix(b).add_broadcast(b.constant_r1(&[7, 8, 9]), &[1])
    });
    check("s32[2,3]", "{{8, 9, 10}, {12, 13, 14}}", |b| {
        b.constant_r1(&[7, 8]).add_broadcast(matrix(b), &[0])
    });
    check("s32[2,3]", "{{8, 10, 12}, {11, 13, 15}}", |b| matrix(b) + b.constant_r2(&[[7, 8, 9]]));
    check("s32[3,2]", "{{11, 21}, {12, 22}, {13, 23}}", |b| {
        b.constant_r2(&[[1], [2], [3]]) + b.constant_r2(&[[10, 20]])
    });
    check("pred[2,3]", "{{1, 0, 1}, {0, 0, 0}}", |b| {
        matrix(b).eq_broadcast(b.constant_r1(&[1, 9, 3]), &[1])
    });
    // The vector's only dimension goes along the depth: each element in a row of its own.
    check("s32[2,2,2]", "{{{1, 1}, {2, 2}}, {{1, 1}, {2, 2}}}", |b| {
        let zeros = b.constant_r0(0).broadcast(&[2, 2, 2]);
        zeros.add_broadcast(b.constant_r1(&[1, 2]), &[1])
    });
}

/// E1–E4: the sign of `Rem` is that of the dividend; operators mean the same as methods.
#[test]
fn operators() {
    check("s32[4]", "{1, -1, 1, -1}", |b| {
        b.constant_r1(&[7, -7, 7, -7]) % b.constant_r1(&[3, 3, -3, -3])
    });
    check("s32[2]", "{-2, 1}", |b| b.constant_r1(&[-7, 7]) >> 2);
    check("u8[2]", "{3, 12}", |b| {
        b.constant_r1(&[0xf0u8, 0xc3]) >> 4 & 0x0f ^ b.constant_r1(&[12u8, 0])
    });
    check("pred[2]", "{0, 1}", |b| !(b.constant_r1(&[true, false]) | false));
}

/// E1–E3 "LogicalAnd", "LogicalOr", "LogicalNot".
#[test]
fn logical_operations() {
    let x = |b: &XlaBuilder| b.constant_r1(&[false, false, true, true]);
    let y = |b: &XlaBuilder| b.constant_r1(&[false, true, false, true]);
    check("pred[4]", "{0, 0, 0, 1}", |b| x(b).logical_and(y(b)));
    check("pred[4]", "{0, 1, 1, 1}", |b| x(b).logical_or(y(b)));
    check("pred[4]", "{1, 1, 0, 0}", |b| x(b).logical_not());
}

/// E3, E4 "Clamp" with scalar bounds.
#[test]
fn clamp() {
    check("s32[3]", "{0, 5, 6}", |b| b.constant_r1(&[-1, 5, 9]).clamp(0, 6));
    check("s32[3]", "{0, 6, 7}", |b| {
        b.constant_r1(&[-1, 5, 9]).clamp(b.constant_r1(&[0, 6, 6]), 7)
    });
}

/// E1–E4 "ConvertElementType".
#[test]
fn convert_element_type() {
    check("f32[3]", "{0, 1, 2}", |b| {
        b.constant_r1(&[0, 1, 2]).convert_element_type(ElementType::F32)
    });
}

/// E4 "EqTotalOrder" and kin: -NaN < -Inf < -Finite < -0 < +0 < +Finite < +Inf < +NaN.
#[test]
fn total_order() {
    let ascending = [-f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN];
    check("pred[7]", "{1, 1, 1, 1, 1, 1, 1}", |b| {
        b.constant_r1(&ascending[..7]).lt_total_order(b.constant_r1(&ascending[1..]))
    });
    check("pred[8]", "{1, 1, 1, 1, 1, 1, 1, 1}", |b| {
        b.constant_r1(&ascending).eq_total_order(b.constant_r1(&ascending))
    });
    check("pred[8]", "{0, 1, 1, 1, 1, 1, 1, 0}", |b| {
        b.constant_r1(&ascending).eq(b.constant_r1(&ascending))
    });
}

/// E1–E4 "Dot": the rows of its table.
#[test]
fn dot() {
    let m = |b: &XlaBuilder| b.constant_r2(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let v = |b: &XlaBuilder| b.constant_r1(&[1f32, 2.0, 3.0]);
    check("f32[]", "14", |b| v(b).dot(v(b)));
    check("f32[2]", "{14, 32}", |b| m(b).dot(v(b)));
    check("f32[2,2]", "{{14, 32}, {32, 77}}", |b| m(b).dot(m(b).transpose(&[1, 0])));
}

/// E3, E4 "DotGeneral": contracting and batch dimensions.
#[test]
fn dot_general() {
    check("f32[2,2]", "{{6, 12}, {15, 30}}", |b| {
        let lhs = b.constant_r2(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let rhs = b.constant_r2(&[[1f32, 1.0, 1.0], [2.0, 2.0, 2.0]]);
        let dims =
            DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
        lhs.dot_general(rhs, dims)
    });
    let values = "{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}";
    check("f32[2,2,2]", values, |b| {
        let rhs = constant(b, "f32[2,2,2]", "{{{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}}");
        let dims = DotDims {
            lhs_contracting: vec![2],
            rhs_contracting: vec![1],
            lhs_batch: vec![0],
            rhs_batch: vec![0],
        };
        constant(b, "f32[2,2,2]", values).dot_general(rhs, dims)
    });
}

/// The pseudo-code of E1–E4 "ConvWithGeneralPadding" for 2 spatial dimensions.
fn convolution_by_the_book(
    (input, kernel): ([usize; 4], [usize; 4]),
    stride: [usize; 2],
    pad_low: [usize; 2],
    output: [usize; 2],
) -> Vec<f32> {
    let ([batch, _, height, width], [features, depth, ky_size, kx_size]) = (input, kernel);
    let at =
        |[_, b, c, d]: [usize; 4], [i, j, k, l]: [usize; 4]| (((i * b + j) * c + k) * d + l) as f32;
    let mut values = Vec::new();
    for (b, oz) in (0..batch).flat_map(|b| (0..features).map(move |oz| (b, oz))) {
        for (oy, ox) in (0..output[0]).flat_map(|oy| (0..output[1]).map(move |ox| (oy, ox))) {
            let mut value = 0.0;
            for (iz, ky) in (0..depth).flat_map(|iz| (0..ky_size).map(move |ky| (iz, ky))) {
                for kx in 0..kx_size {
                    let iy = (oy * stride[0] + ky).wrapping_sub(pad_low[0]);
                    let ix = (ox * stride[1] + kx).wrapping_sub(pad_low[1]);
                    if iy < height && ix < width {
                        value += at(input, [b, iz, iy, ix]) * at(kernel, [oz, iz, ky, kx]);
                    }
                }
            }
            values.push(value);
        }
    }
    values
}

/// E1–E4 "Conv", "ConvWithGeneralPadding" against their own pseudo-code.
#[test]
fn convolution() {
    let sizes = ([2, 2, 5, 4], [3, 2, 3, 2]);
    let operands = |b: &XlaBuilder| {
        let iota =
            |sizes: [usize; 4]| b.iota_r1(ElementType::F32, sizes.iter().product()).reshape(&sizes);
        (iota(sizes.0), iota(sizes.1))
    };
    let expect = |stride, pad_low, output: [usize; 2]| {
        let values = convolution_by_the_book(sizes, stride, pad_low, output);
        Literal::array([2, 3, output[0], output[1]], values).expect("as many values")
    };
    // VALID: only windows inside. SAME: as many positions as elements; the odd one goes high.
    let valid = run(|b| operands(b).0.conv(operands(b).1, &[1, 1], Padding::Valid, 1, 1));
    ensure_same(&valid, &expect([1, 1], [0, 0], [3, 3]));
    let same = run(|b| operands(b).0.conv(operands(b).1, &[1, 1], Padding::Same, 1, 1));
    ensure_same(&same, &expect([1, 1], [1, 0], [5, 4]));
    let strided = run(|b| operands(b).0.conv(operands(b).1, &[2, 2], Padding::Same, 1, 1));
    ensure_same(&strided, &expect([2, 2], [1, 0], [3, 2]));
    let padded = run(|b| {
        let padding = [(2, 1), (1, 2)];
        operands(b).0.conv_with_general_padding(operands(b).1, &[2, 1], &padding, 1, 1)
    });
    ensure_same(&padded, &expect([2, 1], [2, 1], [3, 6]));
}

/// E1–E4 "ConvWithGeneralPadding": dilation puts zeros between elements of input or kernel.
#[test]
fn dilated_convolution() {
    let conv = |options: ConvOptions| {
        move |b: &XlaBuilder| {
            let x = b.constant_r1(&[1f32, 2.0, 3.0]).reshape(&[1, 1, 3]);
            let kernel = b.constant_r1(&[1f32, 10.0]).reshape(&[1, 1, 2]);
            x.conv_general_dilated(kernel, options)
        }
    };
    let lhs = ConvOptions { lhs_dilation: vec![2], ..ConvOptions::default() };
    check("f32[1,1,4]", "{{{1, 20, 2, 30}}}", conv(lhs));
    let rhs = ConvOptions { rhs_dilation: vec![2], ..ConvOptions::default() };
    check("f32[1,1,1]", "{{{31}}}", conv(rhs));
    let flipped = ConvOptions { window_reversal: vec![true], ..ConvOptions::default() };
    check("f32[1,1,2]", "{{{12, 23}}}", conv(flipped));
}

/// E1, E2 "RngBernoulli": the mean is the probability of 1.
#[test]
fn rng_bernoulli() {
    let draw = |mean: f32| run(|b| b.rng_bernoulli(b.constant_r0(mean), shape("u32[1000]")));
    let ones = |literal: Literal| -> u32 {
        let array = literal.as_array().and_then(|array| array.as_slice::<u32>());
        array.expect("u32").iter().inspect(|&&v| assert!(v < 2)).sum()
    };
    assert_eq!(ones(draw(0.0)), 0);
    assert_eq!(ones(draw(1.0)), 1000);
    // Ten standard deviations around the mean of 300.
    assert!((155..=445).contains(&ones(draw(0.3))));
}
