//! Arrays as text, compared with NumPy 2.4's `str`.

// Numbers are written as they were given to NumPy, whose texts are expected.
#![allow(clippy::approx_constant, clippy::excessive_precision)]

use half::f16;
use num_complex::Complex;

use super::super::{ArrayShape, BF16, DimKind, ElementType};
use super::Array;

fn half(value: f64) -> f16 {
    f16::from_f64(value)
}

fn iota(dims: &[usize]) -> Array {
    let count: usize = dims.iter().product();
    Array::new(dims, (0..count as i32).collect()).expect("an array")
}

#[test]
fn as_numpy_prints_them() {
    let nan = f64::NAN;
    for (array, expected) in [
        (Array::from([1.0f32, 2.0f32, 3.0f32]), "[1. 2. 3.]"),
        (
            Array::from([[1.0f32, 0.5f32], [-2.0f32, 0.3333333333333333f32]]),
            "[[ 1.          0.5       ]\n [-2.          0.33333334]]",
        ),
        (Array::from([0.1f32, 1e-05f32, 1.0f32]), "[1.e-01 1.e-05 1.e+00]"),
        (Array::from([10000000000.0f64, 1.0f64, 2.0f64]), "[1.e+10 1.e+00 2.e+00]"),
        (Array::from([100000000.0f64, 10000000.0f64]), "[1.e+08 1.e+07]"),
        (
            Array::from([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.5f32]),
            "[ nan  inf -inf  1.5]",
        ),
        (Array::from([f32::NAN, f32::NAN]), "[nan nan]"),
        (Array::from([1e-300f64, 1e+300f64]), "[1.e-300 1.e+300]"),
        (Array::from([0.0f64, -0.0f64]), "[ 0. -0.]"),
        (Array::from([123456.789f64, 0.001f64]), "[1.23456789e+05 1.00000000e-03]"),
        (Array::from([1000.5f32, 1.0f32]), "[1.0005e+03 1.0000e+00]"),
        (Array::from([1001.0f32, 1.0f32]), "[1.001e+03 1.000e+00]"),
        (Array::from([[1, -20], [300, 4]]), "[[  1 -20]\n [300   4]]"),
        (Array::from([[true, false], [false, true]]), "[[ True False]\n [False  True]]"),
        (
            Array::from([
                [[1.0f64, 2.0f64], [3.0f64, 4.0f64]],
                [[5.0f64, 6.0f64], [7.0f64, 8.25f64]],
            ]),
            "[[[1.   2.  ]\n  [3.   4.  ]]\n\n [[5.   6.  ]\n  [7.   8.25]]]",
        ),
        (Array::from([2.5e-07f32]), "[2.5e-07]"),
        (Array::from([16777216.0f32, 0.1f32]), "[1.6777216e+07 1.0000000e-01]"),
        (Array::from([3.14159265f32, 2.71828182f32]), "[3.1415927 2.7182817]"),
        (Array::from([3.14159265358979f64, 2.71828182845905f64]), "[3.14159265 2.71828183]"),
        (Array::from([1e-45f32, 1e+38f32]), "[1.e-45 1.e+38]"),
        (Array::from([0.00012345f64]), "[0.00012345]"),
        (Array::from([99999999.0f64]), "[99999999.]"),
        (Array::from([100000000.0f64]), "[1.e+08]"),
        (Array::from([half(1.5), half(2.25), half(65504.0)]), "[1.50e+00 2.25e+00 6.55e+04]"),
        (Array::from([half(0.1), half(3.14159)]), "[0.1  3.14]"),
        (Array::from([0.123456789012f64, 1.5f64]), "[0.12345679 1.5       ]"),
        (Array::from([0.012345679f32]), "[0.01234568]"),
        (Array::from([Complex::new(1f32, 2.0), Complex::new(-0.5, -3.0)]), "[ 1. +2.j -0.5-3.j]"),
        (
            Array::from([
                Complex::new(nan, 1.0),
                Complex::new(1.0, f64::INFINITY),
                Complex::new(0.0, 1e-9),
            ]),
            "[nan+1.e+00j  1.   +infj  0.+1.e-09j]",
        ),
        (
            Array::from((0..40).collect::<Vec<u8>>()),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29 \
             30 31 32 33 34 35 36 37 38 39]",
        ),
        (
            Array::from((0..20).map(|i| f64::from(i) * 1.1).collect::<Vec<_>>()),
            "[ 0.   1.1  2.2  3.3  4.4  5.5  6.6  7.7  8.8  9.9 11.  12.1 13.2 14.3\n 15.4 16.5 17.6 18.7 \
             19.8 20.9]",
        ),
        (Array::new([0, 3], Vec::<f32>::new()).expect("an array"), "[]"),
        (Array::from(1f32), "1.0"),
        (Array::from(0.1f32), "0.1"),
        (Array::from(1e16), "1e+16"),
        (Array::from(1e15), "1000000000000000.0"),
        (Array::from(1e-5f32), "1e-05"),
        (Array::from(1e-4f32), "1e-04"),
        (Array::from(16777217f32), "1.6777216e+07"),
        (Array::from(9999999f32), "9.999999e+06"),
        (Array::from(half(2048.0)), "2.048e+03"),
        (Array::from(nan), "nan"),
        (Array::from(f64::NEG_INFINITY), "-inf"),
        (Array::from(-0.0), "-0.0"),
        (Array::from(1.5e-7), "1.5e-07"),
        (Array::from(0.123456789012), "0.123456789012"),
        (Array::from(true), "True"),
        (Array::from(-3), "-3"),
    ] {
        assert_eq!(array.to_string(), expected);
    }
}

#[test]
fn large_arrays_are_shortened() {
    assert_eq!(iota(&[2000]).to_string(), "[   0    1    2 ... 1997 1998 1999]");
    let expected = "[[   0    1    2 ...   47   48   49]\n [  50   51   52 ...   97   98   99]\n \
                    [ 100  101  102 ...  147  148  149]\n ...\n [1850 1851 1852 ... 1897 1898 1899]\n \
                    [1900 1901 1902 ... 1947 1948 1949]\n [1950 1951 1952 ... 1997 1998 1999]]";
    assert_eq!(iota(&[40, 50]).to_string(), expected);
    let floats = (0..2000).map(|i| i as f32 / 8.0).collect();
    let floats = Array::new([2000], floats).expect("an array").to_string();
    assert_eq!(
        floats,
        "[0.00000e+00 1.25000e-01 2.50000e-01 ... 2.49625e+02 2.49750e+02\n 2.49875e+02]"
    );
    let planes = iota(&[3, 4, 200]).to_string();
    assert!(planes.starts_with("[[[   0    1    2 ...  197  198  199]\n  [ 200"), "{planes}");
    assert!(planes.contains("1599]]\n\n [[1600 "), "{planes}");
    assert!(!format!("{:#}", iota(&[2000])).contains("..."));
    assert!(iota(&[1000]).to_string().lines().count() > 50);
}

#[test]
fn precision_is_a_choice() {
    assert_eq!(format!("{:.3}", Array::from([3.14159265, 2.71828182])), "[3.142 2.718]");
    assert_eq!(format!("{:.3}", Array::from([1e-9, 1.23456789])), "[1.000e-09 1.235e+00]");
    assert_eq!(format!("{:.2}", Array::from(3.14159265)), "3.14");
    // Beyond what any number has.
    assert!(
        Array::from([0.1]).display().with_precision(usize::MAX).to_string().starts_with("[0.1]")
    );
}

#[test]
fn every_type_has_few_digits() {
    assert_eq!(Array::from([BF16::from_f32(0.1), BF16::from_f32(3.0)]).to_string(), "[0.1 3. ]");
    for &element in ElementType::ALL {
        let shape = ArrayShape::new(element, [3]).expect("a shape");
        let bytes = vec![1; shape.size_bytes()];
        let text = Array::from_bytes(shape, &bytes).expect("an array").to_string();
        assert!(text.len() < 120 && text.starts_with('['), "{element}: {text}");
    }
}

#[test]
fn dynamic_dimensions_show_their_sizes() {
    let shape = ArrayShape::with_kinds(
        ElementType::S32,
        vec![2, 3],
        vec![DimKind::Static, DimKind::Bounded],
    );
    let array = Array::from_bytes(shape.expect("a shape"), &[1; 24]).expect("an array");
    let array = array.with_sizes(vec![2, 1]).expect("a size");
    assert_eq!(array.to_string(), "[[16843009]\n [16843009]]");
    assert_eq!(array.to_vec::<i32>().expect("integers").len(), 2);
    assert_eq!(array.get([1, 1]), None);
}

#[test]
fn debug_is_one_line() {
    let array = Array::from([[1f32, 2.0], [3.0, 4.5]]);
    assert_eq!(format!("{array:?}"), "Array(f32[2,2] [[1. 2.] [3. 4.5]])");
    assert!(format!("{:?}", iota(&[64, 64])).len() < 200);
    assert_eq!(format!("{:?}", Array::from(1i8)), "Array(s8[] 1)");
    let short = format!("{:?}", iota(&[2; 12]));
    assert!(
        short.ends_with(
            "[[[[[[[[[[[[0 1] [2 3]] [[4 5] [6 7]]] [[[8 9] [10 11]] [[12 13] [14 15]]]] ...] \
                             ...] ...] ...] ...] ...] ...] ...])"
        ),
        "{short}"
    );
    let cubes = "Array(s32[3,3,3] [[[0 1 2] [3 4 5] [6 7 8]] ...])";
    assert_eq!(format!("{:?}", iota(&[3, 3, 3])), cubes);
    let planes = "Array(s32[9,9,9] [[[0 1 ... 7 8] [9 10 ... 16 17] ... [63 64 ... 70 71] \
                  [72 73 ... 79 80]] ...])";
    assert_eq!(format!("{:?}", iota(&[9, 9, 9])), planes);
}

#[test]
fn an_edge_may_be_longer_than_any_axis() {
    let array = iota(&[7]);
    for edge in [4, usize::MAX] {
        let shown = array.display().with_threshold(3).with_edge(edge).to_string();
        assert_eq!(shown, array.to_string());
    }
    let shown = array.display().with_threshold(3).with_edge(3).to_string();
    assert_eq!(shown, "[0 1 2 ... 4 5 6]");
}
