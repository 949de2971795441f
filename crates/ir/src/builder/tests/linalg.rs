use super::*;
use crate::ElementType::{F32, S32};
use crate::ops::{ConvDims, DotDims, FftKind, Precision, TransposeA};

#[test]
fn dots() {
    check(
        |b| {
            let [v, m, n] = parameters(b, ["f32[3]", "f32[2,3]", "f32[3,5]"]);
            v.dot(&v);
            m.dot(&v);
            m.dot(&n);
            v.dot(&n);
        },
        "%4 = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
         %5 = f32[2] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         %6 = f32[2,5] dot(y, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         ROOT %7 = f32[5] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    );
}

#[test]
fn general_dots() {
    let batch = DotDims {
        lhs_contracting: vec![2],
        rhs_contracting: vec![1],
        lhs_batch: vec![0],
        rhs_batch: vec![0],
    };
    check(
        |b| {
            let [x, y, z] = parameters(b, ["f32[7,2,3]", "f32[7,3,5]", "bf16[7,3,5]"]);
            x.dot_general(&y, batch.clone());
            z.dot_general(&x, DotDims { lhs_contracting: vec![1], rhs_contracting: vec![2], ..batch.clone() });
            x.dot_general_with(
                &y,
                DotOptions {
                    dims: batch.clone(),
                    precision: vec![Precision::Highest, Precision::Default],
                    preferred_element_type: Some(ElementType::F64),
                    algorithm: None,
                },
            );
        },
        "%4 = f32[7,2,5] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
         %5 = f32[7,5,2] dot(z, x), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}
         ROOT %6 = f64[7,2,5] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={highest,default}",
    );
}

#[test]
fn ragged_dots() {
    check(
        |b| {
            let [x, y, sizes] = parameters(b, ["f32[11,5]", "f32[3,5,7]", "s32[3]"]);
            let dims = DotDims {
                lhs_contracting: vec![1],
                rhs_contracting: vec![1],
                ..DotDims::default()
            };
            x.ragged_dot(&y, &sizes, 0, Some(0), dims.into());
        },
        "ROOT %4 = f32[11,7] ragged-dot(x, y, z), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
    );
}

#[test]
fn factorisations() {
    check(
        |b| {
            let [a, x] = parameters(b, ["f32[4,3,3]", "f32[4,3,2]"]);
            a.cholesky(true);
            a.triangular_solve(&x, true, false, true, TransposeA::Adjoint);
        },
        "%3 = f32[4,3,3] cholesky(x), lower=true
         ROOT %4 = f32[4,3,2] triangular-solve(x, y), left_side=true, unit_diagonal=true, transpose_a=ADJOINT",
    );
}

#[test]
fn fourier_transforms() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2,8]"]);
            x.fft(FftKind::Rfft, &[8]).fft(FftKind::Irfft, &[8]);
        },
        "%2 = c64[2,5] fft(x), fft_type=RFFT, fft_length={8}
         ROOT %3 = f32[2,8] fft(%2), fft_type=IRFFT, fft_length={8}",
    );
}

#[test]
fn batch_norms() {
    check(
        |b| {
            let [x, s] = parameters(b, ["f32[2,3]", "f32[3]"]);
            x.batch_norm_training(&s, &s, 0.001, 1);
            x.batch_norm_inference(&s, &s, &s, &s, 0.001, 1);
            x.batch_norm_grad(&s, &s, &s, &x, 0.001, 1);
        },
        "%3 = (f32[2,3], f32[3], f32[3]) batch-norm-training(x, y, y), epsilon=0.001, feature_index=1
         %4 = f32[2,3] batch-norm-inference(x, y, y, y, y), epsilon=0.001, feature_index=1
         ROOT %5 = (f32[2,3], f32[3], f32[3]) batch-norm-grad(x, y, y, y, x), epsilon=0.001, feature_index=1",
    );
}

#[test]
fn convolutions() {
    check(
        |b| {
            let [x, k] = parameters(b, ["f32[1,3,8,8]", "f32[16,3,5,4]"]);
            x.conv(&k, &[1, 1], Padding::Same, 1, 1);
            x.conv(&k, &[2, 2], Padding::Valid, 1, 1);
            x.conv_with_general_padding(&k, &[1, 1], &[(-1, 2), (0, 0)], 1, 1);
        },
        "%3 = f32[1,16,8,8] convolution(x, y), window={size=5x4 pad=2_2x1_2}, dim_labels=bf01_oi01->bf01
         %4 = f32[1,16,2,3] convolution(x, y), window={size=5x4 stride=2x2}, dim_labels=bf01_oi01->bf01
         ROOT %5 = f32[1,16,5,5] convolution(x, y), window={size=5x4 pad=-1_2x0_0}, dim_labels=bf01_oi01->bf01",
    );
}

#[test]
fn convolutions_with_dimensions() {
    let dims = ConvDims {
        input_batch: 0,
        input_spatial: vec![1],
        input_feature: 2,
        kernel_spatial: vec![0],
        kernel_input_feature: 1,
        kernel_output_feature: 2,
        output_batch: 0,
        output_spatial: vec![1],
        output_feature: 2,
    };
    check(
        |b| {
            let [x, k] = parameters(b, ["f32[4,8,6]", "f32[3,3,4]"]);
            x.conv_with_general_dimensions(&k, &[2], Padding::Same, dims.clone(), 2, 1);
            x.conv_general(&k, &[1], &[(1, 1)], dims.clone(), 2, 1);
            x.conv_general_dilated(
                &k,
                ConvOptions {
                    padding: vec![(1, 2)],
                    lhs_dilation: vec![2],
                    rhs_dilation: vec![3],
                    window_reversal: vec![true],
                    dims: Some(dims.clone()),
                    feature_group_count: 2,
                    precision: vec![Precision::High, Precision::High],
                    preferred_element_type: Some(ElementType::F64),
                    ..ConvOptions::default()
                },
            );
        },
        "%3 = f32[4,4,4] convolution(x, y), window={size=3 stride=2 pad=0_1}, dim_labels=b0f_0io->b0f, feature_group_count=2
         %4 = f32[4,8,4] convolution(x, y), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=2
         ROOT %5 = f64[4,12,4] convolution(x, y), window={size=3 pad=1_2 lhs_dilate=2 rhs_dilate=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f, feature_group_count=2, operand_precision={high,high}",
    );
}

#[test]
fn products_have_the_more_precise_type() {
    let b = XlaBuilder::new("b");
    let [x, y] = parameters(&b, ["bf16[3]", "f32[3]"]);
    assert_eq!(x.dot(&y).array_shape().map(|s| s.element()), Ok(F32));
    let [x, y] = parameters(&XlaBuilder::new("b"), ["s8[3]", "s32[3]"]);
    assert_eq!(x.dot(&y).array_shape().map(|s| s.element()), Ok(S32));
}
