//! Elementary functions against high-precision values; `tests/data/functions.py` says where from.

use std::collections::BTreeSet;

use helio_ir::types::{C64, C128};
use helio_ir::{Array, BinaryOp, ElementType, Native, UnaryOp, dispatch, dispatch_type};

use crate::Subnormals;
use crate::element;
use crate::elementwise::{Map, Zip};

/// What an operation does to one number.
fn apply<A: Native, R: Native>(op: UnaryOp, x: A) -> R {
    let data = element::unary(op, A::TYPE, Subnormals::Keep, Map(&Array::scalar(x))).unwrap();
    R::slice(&data).unwrap()[0]
}

/// What an operation does to two numbers.
fn apply2<A: Native, R: Native>(op: BinaryOp, x: A, y: A) -> R {
    let (x, y) = (Array::scalar(x), Array::scalar(y));
    let data = element::binary(op, A::TYPE, Subnormals::Keep, Zip(&x, &y)).unwrap();
    R::slice(&data).unwrap()[0]
}

/// How many numbers apart two are; infinities are next to the greatest numbers.
fn ulps(x: f64, y: f64) -> u64 {
    let rank = |x: f64| {
        let magnitude = (x.to_bits() & (u64::MAX >> 1)) as i64;
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    if x.is_nan() || y.is_nan() { u64::MAX } else { rank(x).abs_diff(rank(y)) }
}

/// An `f64` from the digits of its bits, the last of which may be left out if zero.
fn f64_of(digits: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(&format!("{digits:0<16}"), 16).unwrap())
}

/// The rows of the table that have `N` numbers after the name of an operation.
fn rows<const N: usize>() -> Vec<(&'static str, [f64; N])> {
    let table = include_str!("../../tests/data/functions.txt");
    let rows = table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, words) = line.split_once(' ').unwrap();
        let number = |word| match word {
            "nan" => f64::NAN,
            digits => f64_of(digits),
        };
        let numbers: Vec<f64> = words.split(' ').map(number).collect();
        Some((name, numbers.try_into().ok()?))
    });
    rows.collect()
}

fn is_single(x: f64) -> bool {
    f64::from(x as f32) == x
}

#[test]
fn real_functions() {
    for (name, [x, y]) in rows::<2>() {
        let op = UnaryOp::from_name(name).unwrap();
        let found: f64 = apply(op, x);
        assert!(ulps(found, y) <= 2, "{name} {x:e}: {found:e}, not {y:e}");
        if is_single(x) {
            let found: f32 = apply(op, x as f32);
            assert!(found == y as f32, "{name} {x:e}: {found:e}, not {y:e}");
        }
    }
}

#[test]
fn real_functions_of_two() {
    for (name, [x, y, z]) in rows::<3>() {
        let op = BinaryOp::from_name(name).unwrap();
        let found: f64 = apply2(op, x, y);
        assert!(ulps(found, z) <= 1, "{name} {x:e} {y:e}: {found:e}, not {z:e}");
        if is_single(x) && is_single(y) {
            let found: f32 = apply2(op, x as f32, y as f32);
            assert!(found == z as f32, "{name} {x:e} {y:e}: {found:e}, not {z:e}");
        }
    }
}

/// Whether it is from the table of special values.
fn is_special(row: &[f64]) -> bool {
    row.iter().any(|x| !x.is_finite()) || row[..2].contains(&0.0)
}

#[test]
fn complex_functions_at_special_values() {
    for (name, row) in rows::<4>().into_iter().filter(|(_, row)| is_special(row)) {
        let op = UnaryOp::from_name(name).unwrap();
        let [x, y, u, v] = row;
        let found: C128 = apply(op, C128::new(x, y));
        // With NaN among them, signs of zeros and infinities are not specified.
        let vague = row.iter().any(|x| x.is_nan());
        for (found, expected) in [(found.re, u), (found.im, v)] {
            let same = found.is_nan() && expected.is_nan()
                || vague && found.abs() == expected.abs()
                || found.is_sign_negative() == expected.is_sign_negative()
                    && ulps(found, expected) <= 2;
            assert!(same, "{name} {x:e} {y:e}: {found:e}, not {expected:e}");
        }
    }
}

#[test]
fn complex_functions() {
    for (name, [x, y, u, v]) in rows::<4>().into_iter().filter(|(_, row)| !is_special(row)) {
        let op = UnaryOp::from_name(name).unwrap();
        let (z, w) = (C128::new(x, y), C128::new(u, v));
        let found: C128 = apply(op, z);
        // Their real parts have zeros off the axes, where only the magnitude has digits left.
        let cancels = matches!(op, UnaryOp::Expm1 | UnaryOp::Logistic);
        let small = 4.0 * f64::EPSILON * w.norm();
        for (found, expected) in [(found.re, u), (found.im, v)] {
            let close = ulps(found, expected) <= 5 || cancels && (found - expected).abs() <= small;
            assert!(close, "{name} {z:e}: {found:e}, not {expected:e}");
        }
        if is_single(x) && is_single(y) {
            let found: C64 = apply(op, C64::new(x as f32, y as f32));
            let expected = C64::new(u as f32, v as f32);
            assert_eq!(found, expected, "{name} {z:e}");
        }
    }
}

#[test]
fn complex_functions_of_two() {
    for (name, [a, b, c, d, u, v]) in rows::<6>() {
        let op = BinaryOp::from_name(name).unwrap();
        let (y, x, w) = (C128::new(a, b), C128::new(c, d), C128::new(u, v));
        let found: C128 = apply2(op, y, x);
        for (found, expected) in [(found.re, u), (found.im, v)] {
            assert!(ulps(found, expected) <= 4, "{name} {y:e} {x:e}: {found:e}, not {expected:e}");
        }
        if [a, b, c, d].into_iter().all(is_single) {
            let single = |z: C128| C64::new(z.re as f32, z.im as f32);
            let found: C64 = apply2(op, single(y), single(x));
            assert_eq!(found, single(w), "{name} {y:e} {x:e}");
        }
    }
}

/// FNV-1a over two bytes of each number, low byte first.
fn hash(codes: impl Iterator<Item = u16>) -> u64 {
    codes.flat_map(u16::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `tests/data/narrow_unary.py` says where the hashes are from.
#[test]
fn every_value_of_narrow_floats() {
    let mut checked = BTreeSet::new();
    for line in include_str!("../../tests/data/narrow_unary.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        let [element, name, expected] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let element: ElementType = element.parse().unwrap();
        let codes = 0..1u128 << element.bits();
        let operand = dispatch_type!(element, T => {
            Array::new([codes.end as usize], codes.map(<T as Native>::from_bits).collect()).unwrap()
        });
        let data = element::unary(
            UnaryOp::from_name(name).unwrap(),
            element,
            Subnormals::Keep,
            Map(&operand),
        )
        .unwrap();
        let found = dispatch!(&data, values => hash(values.iter().map(|&value| {
            let nan = value.to_number().to_f64().is_nan();
            if nan { 0xffff } else { Native::to_bits(value) as u16 }
        })));
        assert_eq!(format!("{found:016x}"), expected, "{element} {name}");
        checked.insert((element, name));
    }
    for &op in UnaryOp::ALL {
        for &element in ElementType::ALL.iter().filter(|e| e.is_float() && e.bits() <= 16) {
            assert!(!op.accepts().includes(element) || checked.contains(&(element, op.name())));
        }
    }
}
