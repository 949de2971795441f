//! Against the definition, element by element.

use helio_ir::ops::{ConvDims, Window};
use helio_ir::types::C64;
use helio_ir::{DimKind, ElementType, Native};

use super::*;
use crate::testing::{on_evaluator, pattern};

/// One spatial dimension; the size is set later, from the kernel.
fn dim(
    stride: usize,
    pad_low: i64,
    pad_high: i64,
    base_dilation: usize,
    window_dilation: usize,
    reversal: bool,
) -> WindowDim {
    WindowDim { size: 1, stride, pad_low, pad_high, base_dilation, window_dilation, reversal }
}

/// `b0f_0io->b0f`
fn labels(text: &str) -> ConvDims {
    let (lhs, rest) = text.split_once('_').unwrap();
    let (rhs, out) = rest.split_once("->").unwrap();
    let spatial =
        |part: &str| (0..part.len() - 2).map(|d| part.find(&d.to_string()).unwrap()).collect();
    ConvDims {
        input_batch: lhs.find('b').unwrap(),
        input_feature: lhs.find('f').unwrap(),
        input_spatial: spatial(lhs),
        kernel_input_feature: rhs.find('i').unwrap(),
        kernel_output_feature: rhs.find('o').unwrap(),
        kernel_spatial: spatial(rhs),
        output_batch: out.find('b').unwrap(),
        output_feature: out.find('f').unwrap(),
        output_spatial: spatial(out),
    }
}

fn run(
    lhs: Array,
    rhs: Array,
    dims: &str,
    window: &[WindowDim],
    (feature_group_count, batch_group_count): (usize, usize),
    shape: ArrayShape,
) -> Array {
    let dims = labels(dims);
    let mut window = Window { dims: window.to_vec() };
    for (window, &d) in window.dims.iter_mut().zip(&dims.kernel_spatial) {
        window.size = rhs.dims()[d];
    }
    let op = ops::Convolution {
        window,
        dims,
        feature_group_count,
        batch_group_count,
        element: shape.element(),
        precision: Vec::new(),
        algorithm: None,
    };
    let args = [lhs.into(), rhs.into()];
    let value = on_evaluator(|ev| convolution(&op, ev, &args, &shape.into())).unwrap();
    value.as_array().unwrap().clone()
}

fn check(
    name: &str,
    (lhs, rhs): (&[usize], &[usize]),
    dims: &str,
    window: &[WindowDim],
    groups: (usize, usize),
    (result, expected): (&[usize], &[i32]),
) {
    let lhs = Array::new(lhs, pattern(lhs.iter().product(), 7, 3, 11)).unwrap();
    let rhs = Array::new(rhs, pattern(rhs.iter().product(), 5, 2, 7)).unwrap();
    let shape = ArrayShape::new(ElementType::S32, result).unwrap();
    let value = run(lhs, rhs, dims, window, groups, shape);
    assert_eq!(value.values::<i32>().unwrap(), expected, "{name}");
}

/// Expected values were computed with NumPy, padding, cropping, dilating and flipping whole
/// arrays before plain sums of products.
#[test]
fn every_option() {
    check(
        "plain 1-d",
        (&[1, 2, 5], &[2, 2, 3]),
        "bf0_oi0->bf0",
        &[dim(1, 0, 0, 1, 1, false)],
        (1, 1),
        (&[1, 2, 3], &[6, -23, 3, -16, 7, 8]),
    );
    check(
        "stride and padding",
        (&[2, 5, 1], &[3, 1, 2]),
        "b0f_0io->b0f",
        &[dim(2, 1, 2, 1, 1, false)],
        (1, 1),
        (&[2, 3, 2], &[-14, 15, 3, -24, 11, 9, 8, -12, 12, 9, -9, 3]),
    );
    check(
        "negative padding",
        (&[1, 7, 1], &[2, 1, 1]),
        "b0f_0io->b0f",
        &[dim(1, -1, -2, 1, 1, false)],
        (1, 1),
        (&[1, 3, 1], &[-8, 8, -9]),
    );
    check(
        "negative padding that meets a dilated base",
        (&[1, 4, 1], &[2, 1, 1]),
        "b0f_0io->b0f",
        &[dim(1, -2, 3, 3, 1, false)],
        (1, 1),
        (&[1, 10, 1], &[-15, -5, 0, -3, -1, 0, 9, 3, 0, 0]),
    );
    check(
        "base and window dilation",
        (&[1, 4, 1], &[3, 1, 1]),
        "b0f_0io->b0f",
        &[dim(1, 2, 1, 2, 2, false)],
        (1, 1),
        (&[1, 6, 1], &[16, 0, -11, 0, -14, 0]),
    );
    check(
        "reversal in one of two dimensions",
        (&[1, 1, 3, 4], &[1, 1, 2, 2]),
        "bf01_oi01->bf01",
        &[dim(1, 0, 0, 1, 1, true), dim(1, 1, 0, 1, 1, false)],
        (1, 1),
        (&[1, 1, 2, 4], &[-12, -8, 22, -3, 3, 24, -1, -4]),
    );
    check(
        "feature groups",
        (&[1, 3, 4], &[2, 2, 4]),
        "b0f_0io->b0f",
        &[dim(1, 0, 0, 1, 1, false)],
        (2, 1),
        (&[1, 2, 4], &[-20, 29, -4, 2, -16, -19, -3, -1]),
    );
    check(
        "depthwise with a multiplier",
        (&[1, 3, 2], &[2, 1, 4]),
        "b0f_0io->b0f",
        &[dim(1, 1, 0, 1, 1, false)],
        (2, 1),
        (&[1, 3, 4], &[4, -6, 5, -5, 0, 9, 7, 3, -9, 9, -6, 0]),
    );
    check(
        "batch groups",
        (&[4, 3, 2], &[2, 2, 4]),
        "b0f_0io->b0f",
        &[dim(1, 0, 0, 1, 1, false)],
        (1, 2),
        (&[2, 2, 4], &[-20, 20, 7, -7, -7, -4, 2, 8, -14, 14, 3, 5, -1, -10, -13, -13]),
    );
    check(
        "unusual labels",
        (&[3, 2, 2, 1], &[2, 3, 2, 1]),
        "0fb1_o0i1->1f0b",
        &[dim(1, 1, 0, 1, 1, false), dim(1, 0, 0, 1, 1, true)],
        (1, 1),
        (&[1, 2, 2, 2], &[-24, 19, 15, 8, 16, -27, -27, 18]),
    );
    check(
        "no spatial dimension",
        (&[2, 3], &[3, 2]),
        "bf_io->fb",
        &[],
        (1, 1),
        (&[2, 2], &[10, 11, 9, 9]),
    );
    check(
        "three dimensions",
        (&[1, 2, 2, 3, 1], &[2, 1, 2, 1, 2]),
        "b012f_012io->b012f",
        &[dim(1, 0, 1, 1, 1, false), dim(2, 0, 1, 1, 1, true), dim(1, -1, 0, 2, 2, false)],
        (1, 1),
        (&[1, 2, 2, 2, 2], &[0, 0, -10, -5, 0, 0, 0, 0, 0, 0, -5, -9, 0, 0, 0, 0]),
    );
    check(
        "window larger than the input",
        (&[1, 2, 1], &[3, 1, 1]),
        "b0f_0io->b0f",
        &[dim(1, 0, 0, 1, 1, false)],
        (1, 1),
        (&[1, 0, 1], &[]),
    );
}

#[test]
fn complex_elements() {
    let lhs = Array::new([1, 2, 1], vec![C64::new(1.0, 1.0), C64::new(0.0, 2.0)]).unwrap();
    let rhs = Array::new([2, 1, 1], vec![C64::new(0.0, 1.0), C64::new(3.0, 0.0)]).unwrap();
    let shape = ArrayShape::new(ElementType::C64, [1, 1, 1]).unwrap();
    let window = [dim(1, 0, 0, 1, 1, false)];
    let value = run(lhs, rhs, "b0f_0io->b0f", &window, (1, 1), shape);
    assert_eq!(value.values::<C64>().unwrap(), [C64::new(-1.0, 7.0)]);
}

#[test]
fn padding_is_skipped() {
    let lhs = Array::new([1, 1, 1], vec![2.0f32]).unwrap();
    let rhs = Array::new([2, 1, 1], vec![f32::INFINITY, 3.0]).unwrap();
    let shape = ArrayShape::new(ElementType::F32, [1, 1, 1]).unwrap();
    let window = [dim(1, 1, 0, 1, 1, false)];
    let value = run(lhs, rhs, "b0f_0io->b0f", &window, (1, 1), shape);
    assert_eq!(value.values::<f32>().unwrap(), [6.0]);
}

#[test]
fn bounded_input_ends_at_its_size() {
    let kinds = vec![DimKind::Static, DimKind::Bounded, DimKind::Static];
    let bounded =
        |size| ArrayShape::with_kinds(ElementType::F32, vec![1, size, 1], kinds.clone()).unwrap();
    let lhs = Array::from_data(bounded(4), f32::wrap(vec![1.0, 2.0, 3.0, f32::NAN])).unwrap();
    let lhs = lhs.with_sizes(vec![1, 3, 1]).unwrap();
    let rhs = Array::new([2, 1, 1], vec![10.0f32, 1.0]).unwrap();
    let window = [dim(1, 0, 1, 1, 1, false)];
    let value = run(lhs, rhs, "b0f_0io->b0f", &window, (1, 1), bounded(4));
    assert_eq!(value.sizes(), [1, 3, 1]);
    assert_eq!(value.values::<f32>().unwrap()[..3], [12.0, 23.0, 30.0]);
}
