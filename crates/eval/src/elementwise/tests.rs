//! Against scalar definitions, tables of values, and every input of the small types.

use std::fmt::Debug;

use helio_ir::ops::{Compare, Direction, Order};
use helio_ir::types::{BF16, C64, C128, F8E4M3FNUZ, F8E5M2, F8E8M0FNU, F16, I2, I4, U2, U4};
use helio_ir::{BinaryOp, ElementType, UnaryOp};

use super::*;
use crate::Subnormals;
use crate::testing::{bounded, of, on_evaluator, resized, run, shape, values};

fn map<A: Native, R: Native>(op: UnaryOp, x: A) -> R {
    R::slice(&element::unary(op, A::TYPE, Subnormals::Keep, Map(&Array::scalar(x))).unwrap())
        .unwrap()[0]
}

fn zip<A: Native, R: Native>(op: BinaryOp, x: A, y: A) -> R {
    let (x, y) = (Array::scalar(x), Array::scalar(y));
    R::slice(&element::binary(op, A::TYPE, Subnormals::Keep, Zip(&x, &y)).unwrap()).unwrap()[0]
}

/// Checks a row of semantics §1: operation, operands, result.
fn check<A: Native>(op: BinaryOp, x: A, y: A, expected: A) {
    let found: A = zip(op, x, y);
    assert_eq!(found.to_bits(), expected.to_bits(), "{x:?} {} {y:?}: {found:?}", op.name());
}

/// Like [`check`], for every pair of bytes.
fn check_bytes<A: Native>(op: BinaryOp, expected: impl Fn(A, A) -> A) {
    for x in 0..256 {
        for y in 0..256 {
            let (x, y) = (A::from_bits(x), A::from_bits(y));
            check(op, x, y, expected(x, y));
        }
    }
}

#[test]
fn bytes_agree_with_rust() {
    check_bytes(BinaryOp::Add, i8::wrapping_add);
    check_bytes(BinaryOp::Add, u8::wrapping_add);
    check_bytes(BinaryOp::Subtract, i8::wrapping_sub);
    check_bytes(BinaryOp::Subtract, u8::wrapping_sub);
    check_bytes(BinaryOp::Multiply, i8::wrapping_mul);
    check_bytes(BinaryOp::Multiply, u8::wrapping_mul);
    check_bytes(BinaryOp::Mulhi, |x: i8, y| ((i16::from(x) * i16::from(y)) >> 8) as i8);
    check_bytes(BinaryOp::Mulhi, |x: u8, y| ((u16::from(x) * u16::from(y)) >> 8) as u8);
    check_bytes(BinaryOp::Divide, |x: i8, y| if y == 0 { -1 } else { x.wrapping_div(y) });
    check_bytes(BinaryOp::Divide, |x: u8, y| x.checked_div(y).unwrap_or(255));
    check_bytes(BinaryOp::Remainder, |x: i8, y| if y == 0 { x } else { x.wrapping_rem(y) });
    check_bytes(BinaryOp::Remainder, |x: u8, y| x.checked_rem(y).unwrap_or(x));
    check_bytes(BinaryOp::Maximum, i8::max);
    check_bytes(BinaryOp::Minimum, u8::min);
    check_bytes(BinaryOp::And, |x: i8, y| x & y);
    check_bytes(BinaryOp::Or, |x: u8, y| x | y);
    check_bytes(BinaryOp::Xor, |x: i8, y| x ^ y);
    check_bytes(BinaryOp::ShiftLeft, |x: i8, y| x.checked_shl(y as u8 as u32).unwrap_or(0));
    check_bytes(BinaryOp::ShiftLeft, |x: u8, y| x.checked_shl(y.into()).unwrap_or(0));
    check_bytes(BinaryOp::ShiftRightLogical, |x: i8, y| {
        (x as u8).checked_shr(y as u8 as u32).unwrap_or(0) as i8
    });
    check_bytes(BinaryOp::ShiftRightLogical, |x: u8, y| x.checked_shr(y.into()).unwrap_or(0));
    check_bytes(BinaryOp::ShiftRightArithmetic, |x: i8, y| x >> (y as u8).min(7));
    check_bytes(BinaryOp::ShiftRightArithmetic, |x: u8, y| (x as i8 >> y.min(7)) as u8);
    check_bytes(BinaryOp::Power, |x: u8, y| x.wrapping_pow(y.into()));
    check_bytes(BinaryOp::Power, |x: i8, y| match (x, u32::try_from(y)) {
        (x, Ok(y)) => x.wrapping_pow(y),
        (1, _) => 1,
        (-1, _) => {
            if y % 2 == 0 {
                1
            } else {
                -1
            }
        }
        _ => 0,
    });
}

#[test]
fn bytes_one_at_a_time() {
    for x in i8::MIN..=i8::MAX {
        assert_eq!(map::<i8, i8>(UnaryOp::Abs, x), x.wrapping_abs());
        assert_eq!(map::<i8, i8>(UnaryOp::Negate, x), x.wrapping_neg());
        assert_eq!(map::<i8, i8>(UnaryOp::Sign, x), x.signum());
        assert_eq!(map::<i8, i8>(UnaryOp::Not, x), !x);
        assert_eq!(map::<i8, i8>(UnaryOp::Popcnt, x), x.count_ones() as i8);
        assert_eq!(map::<i8, i8>(UnaryOp::Clz, x), x.leading_zeros() as i8);
        assert_eq!(map::<u8, u8>(UnaryOp::Clz, x as u8), x.leading_zeros() as u8);
        assert_eq!(map::<u8, u8>(UnaryOp::Negate, x as u8), (x as u8).wrapping_neg());
    }
}

#[test]
fn wide_integers() {
    let (min, max) = (i64::MIN, i64::MAX);
    check(BinaryOp::Add, max, 1, min);
    check(BinaryOp::Multiply, min, -1, min);
    check(BinaryOp::Divide, min, -1, min);
    check(BinaryOp::Remainder, min, -1, 0);
    check(BinaryOp::Divide, -7i32, 2, -3);
    check(BinaryOp::Remainder, -7i32, 2, -1);
    check(BinaryOp::Mulhi, min, min, 1 << 62);
    check(BinaryOp::Mulhi, min, max, -(1 << 62));
    check(BinaryOp::Mulhi, u64::MAX, u64::MAX, u64::MAX - 1);
    check(BinaryOp::Mulhi, i32::MIN, -1, 0);
    check(BinaryOp::Multiply, u64::MAX, u64::MAX, 1);
    check(BinaryOp::Divide, u64::MAX, 0, u64::MAX);
    check(BinaryOp::ShiftLeft, 1u64, 64, 0);
    check(BinaryOp::ShiftRightArithmetic, min, -1, -1);
    check(BinaryOp::ShiftRightLogical, -1i64, 63, 1);
    check(BinaryOp::Power, 3u64, 100, 3u64.wrapping_pow(100));
    check(BinaryOp::Power, -2i32, 31, i32::MIN);
    check(BinaryOp::Power, 0i32, 0, 1);
    check(BinaryOp::Power, 0i32, -1, 0);
    assert_eq!(map::<i64, i64>(UnaryOp::Abs, min), min);
    assert_eq!(map::<u64, u64>(UnaryOp::Clz, 0), 64);
    assert_eq!(map::<i16, i16>(UnaryOp::Clz, -1), 0);
}

#[test]
fn integers_narrower_than_a_byte_wrap_at_their_width() {
    check(BinaryOp::Add, I4::wrapping(7), I4::wrapping(1), I4::wrapping(-8));
    check(BinaryOp::Multiply, U4::wrapping(9), U4::wrapping(9), U4::wrapping(1));
    check(BinaryOp::Divide, U2::wrapping(1), U2::wrapping(0), U2::wrapping(3));
    check(BinaryOp::Divide, I2::wrapping(-2), I2::wrapping(-1), I2::wrapping(-2));
    check(BinaryOp::Mulhi, U4::wrapping(15), U4::wrapping(15), U4::wrapping(14));
    check(BinaryOp::Mulhi, I4::wrapping(-8), I4::wrapping(-8), I4::wrapping(4));
    check(BinaryOp::ShiftLeft, U4::wrapping(1), U4::wrapping(4), U4::wrapping(0));
    check(BinaryOp::ShiftRightArithmetic, I4::wrapping(-8), I4::wrapping(2), I4::wrapping(-2));
    check(BinaryOp::ShiftRightArithmetic, U4::wrapping(8), U4::wrapping(9), U4::wrapping(15));
    check(BinaryOp::ShiftRightLogical, I4::wrapping(-1), I4::wrapping(3), I4::wrapping(1));
    assert_eq!(map::<I4, I4>(UnaryOp::Clz, I4::wrapping(1)), I4::wrapping(3));
    assert_eq!(map::<I4, I4>(UnaryOp::Popcnt, I4::wrapping(-1)), I4::wrapping(4));
    assert_eq!(map::<U2, U2>(UnaryOp::Clz, U2::wrapping(0)), U2::wrapping(2));
    assert_eq!(map::<I2, I2>(UnaryOp::Abs, I2::wrapping(-2)), I2::wrapping(-2));
    assert_eq!(map::<U4, U4>(UnaryOp::Not, U4::wrapping(5)), U4::wrapping(10));
}

#[test]
fn pred_is_logical() {
    for (x, y) in [(false, false), (false, true), (true, false), (true, true)] {
        for op in [BinaryOp::Add, BinaryOp::Maximum, BinaryOp::Or] {
            check(op, x, y, x || y);
        }
        for op in [BinaryOp::Multiply, BinaryOp::Minimum, BinaryOp::And] {
            check(op, x, y, x && y);
        }
        check(BinaryOp::Xor, x, y, x != y);
    }
    assert!(map::<bool, bool>(UnaryOp::Not, false));
}

#[test]
fn maximum_and_minimum_of_zeros_and_nan() {
    check(BinaryOp::Maximum, -0.0f32, 0.0, 0.0);
    check(BinaryOp::Maximum, 0.0f32, -0.0, 0.0);
    check(BinaryOp::Minimum, -0.0f64, 0.0, -0.0);
    check(BinaryOp::Minimum, 0.0f64, -0.0, -0.0);
    for op in [BinaryOp::Maximum, BinaryOp::Minimum] {
        for (x, y) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::NAN, f32::INFINITY)] {
            assert!(zip::<f32, f32>(op, x, y).is_nan());
            let (x, y) = (BF16::from_f32(x), BF16::from_f32(y));
            assert!(zip::<BF16, BF16>(op, x, y).is_nan());
        }
    }
    let (a, b) = (C64::new(1.0, -1.0), C64::new(1.0, 2.0));
    check(BinaryOp::Maximum, a, b, b);
    check(BinaryOp::Minimum, a, b, a);
    assert!(zip::<C64, C64>(BinaryOp::Maximum, C64::new(f32::NAN, 0.0), b).re.is_nan());
}

#[test]
fn floats_at_special_values() {
    check(BinaryOp::Remainder, -7.5f32, 2.0, -1.5);
    check(BinaryOp::Remainder, 7.5f32, -2.0, 1.5);
    check(BinaryOp::Remainder, -4.0f64, 2.0, -0.0);
    check(BinaryOp::Remainder, 5.0f64, f64::INFINITY, 5.0);
    check(BinaryOp::Remainder, 1e300f64, 3e-300, 1e300 % 3e-300);
    assert!(zip::<f32, f32>(BinaryOp::Remainder, 1.0, 0.0).is_nan());
    check(BinaryOp::Power, f32::NAN, 0.0, 1.0);
    check(BinaryOp::Power, 1.0f32, f32::NAN, 1.0);
    check(BinaryOp::Power, -2.0f64, 3.0, -8.0);
    check(BinaryOp::Power, -0.0f64, -1.0, f64::NEG_INFINITY);
    assert!(zip::<f32, f32>(BinaryOp::Power, -2.0, 0.5).is_nan());
    check(BinaryOp::Atan2, 0.0f64, -0.0, std::f64::consts::PI);
    check(BinaryOp::Atan2, -0.0f64, 0.0, -0.0);
    check(BinaryOp::Divide, 1.0f32, -0.0, f32::NEG_INFINITY);
    assert_eq!(map::<f32, f32>(UnaryOp::Sign, -0.0).to_bits(), (-0f32).to_bits());
    assert!(map::<f32, f32>(UnaryOp::Sign, f32::NAN).is_nan());
    assert_eq!(map::<f64, f64>(UnaryOp::Sign, f64::NEG_INFINITY), -1.0);
    assert_eq!(map::<f32, f32>(UnaryOp::Rsqrt, -0.0), f32::NEG_INFINITY);
    assert_eq!(map::<f32, f32>(UnaryOp::RoundNearestAfz, -2.5), -3.0);
    assert_eq!(map::<f32, f32>(UnaryOp::RoundNearestEven, -2.5), -2.0);
    assert_eq!(map::<f32, f32>(UnaryOp::Ceil, -0.5).to_bits(), (-0f32).to_bits());
    assert_eq!(map::<f64, f64>(UnaryOp::Logistic, -800.0), 0.0);
    assert_eq!(map::<f64, f64>(UnaryOp::Imag, 3.0), 0.0);
    assert!(!map::<F16, bool>(UnaryOp::IsFinite, F16::INFINITY));
    for (op, outside) in [
        (UnaryOp::Acos, 1.5),
        (UnaryOp::Acosh, -1e10),
        (UnaryOp::Asin, -1.5),
        (UnaryOp::Atanh, 2.0),
        (UnaryOp::Log, -1.0),
        (UnaryOp::Log1p, -2.0),
        (UnaryOp::Rsqrt, -1.0),
        (UnaryOp::Sqrt, -1.0),
        (UnaryOp::Sin, f64::INFINITY),
    ] {
        assert!(map::<f64, f64>(op, outside).is_nan(), "{} {outside}", op.name());
    }
}

#[test]
fn subnormal_numbers_are_kept() {
    // XLA:CPU flushes them: semantics §2.
    let tiny = f32::from_bits(3);
    check(BinaryOp::Add, tiny, tiny, f32::from_bits(6));
    check(BinaryOp::Multiply, tiny, 0.5, f32::from_bits(2));
    assert_eq!(map::<f32, f32>(UnaryOp::Sign, tiny), 1.0);
    // ln(3 * 2^-149), from mpmath.
    assert_eq!(map::<f32, f32>(UnaryOp::Log, tiny), -102.180_32);
}

#[test]
fn sums_and_products_of_narrow_floats_are_rounded_once() {
    // 1 + 2^-11 + 2^-21 in f16: just above a tie.
    let (x, y) = (F16::from_f32(1.0), F16::from_f32(f32::powi(2.0, -11) * (1.0 + 2f32.powi(-10))));
    check(BinaryOp::Add, x, y, F16::from_f32(1.0 + 2f32.powi(-10)));
    check(BinaryOp::Divide, BF16::from_f32(1.0), BF16::from_f32(3.0), BF16::from_bits(0x3eab));
    check(
        BinaryOp::Multiply,
        F8E5M2::from_bits(0x7b),
        F8E5M2::from_bits(0x7b),
        F8E5M2::from_bits(0x7c),
    );
}

#[test]
fn abs_and_negate_change_the_sign_bit_alone() {
    let nan = f32::from_bits(0x7fc0_1234);
    assert_eq!(map::<f32, f32>(UnaryOp::Negate, nan).to_bits(), 0xffc0_1234);
    assert_eq!(map::<f32, f32>(UnaryOp::Abs, -nan).to_bits(), 0x7fc0_1234);
    for (op, code, expected) in [
        (UnaryOp::Negate, 0x00, 0x00),
        (UnaryOp::Negate, 0x80, 0x80),
        (UnaryOp::Negate, 0x01, 0x81),
        (UnaryOp::Abs, 0x80, 0x80),
        (UnaryOp::Abs, 0xff, 0x7f),
    ] {
        let found: F8E4M3FNUZ = map(op, F8E4M3FNUZ::from_bits(code));
        assert_eq!(found.to_bits(), expected, "{} {code:#x}", op.name());
    }
    assert_eq!(map::<_, F8E8M0FNU>(UnaryOp::Negate, F8E8M0FNU::from_bits(3)).to_bits(), 255);
    assert_eq!(map::<_, F8E8M0FNU>(UnaryOp::Abs, F8E8M0FNU::from_bits(3)).to_bits(), 3);
}

fn close(found: C128, expected: C128) {
    let error = (found - expected).norm();
    assert!(error <= 1e-14 * expected.norm(), "{found:?}, not {expected:?}");
}

#[test]
fn complex_arithmetic() {
    let c = |re, im| C128::new(re, im);
    let divide = |x, y| zip::<C128, C128>(BinaryOp::Divide, x, y);
    close(divide(c(1.0, 2.0), c(3.0, 4.0)), c(0.44, 0.08));
    close(divide(c(1e300, 1e300), c(1e300, 1e300)), c(1.0, 0.0));
    close(divide(c(1e-300, 0.0), c(0.0, 1e-300)), c(0.0, -1.0));
    assert_eq!(divide(c(1e308, 1e308), c(0.5, 0.5)), c(f64::INFINITY, 0.0));
    // Annex G.5.1: what is not zero over zero is infinite, what is finite over infinity zero.
    assert_eq!(divide(c(1.0, 1.0), c(0.0, 0.0)), c(f64::INFINITY, f64::INFINITY));
    assert_eq!(divide(c(1.0, 1.0), c(f64::INFINITY, 1.0)), c(0.0, 0.0));
    assert_eq!(divide(c(f64::INFINITY, 0.0), c(1.0, 1.0)).re, f64::INFINITY);
    let power = |x, y| zip::<C128, C128>(BinaryOp::Power, x, y);
    // From mpmath.
    close(power(c(1.0, 2.0), c(3.0, -1.0)), c(-27.436_381_991_606_05, 19.789_310_365_010_71));
    close(power(c(-8.0, 0.0), c(1.0 / 3.0, 0.0)), c(1.0, 3f64.sqrt()));
    assert_eq!(power(c(f64::NAN, 0.0), c(0.0, 0.0)), c(1.0, 0.0));
    assert_eq!(power(c(1.0, 0.0), c(f64::NAN, 0.0)), c(1.0, 0.0));
    assert_eq!(power(c(0.0, 0.0), c(2.0, 0.0)), c(0.0, 0.0));
    assert_eq!(power(c(f64::INFINITY, 0.0), c(-1.0, 0.0)), c(0.0, 0.0));
    close(zip(BinaryOp::Atan2, c(1.0, 0.0), c(-1.0, 0.0)), c(2.356_194_490_192_345, 0.0));
    assert_eq!(map::<C128, f64>(UnaryOp::Abs, c(3e300, 4e300)), 5e300);
    assert_eq!(map::<C64, f32>(UnaryOp::Imag, C64::new(1.0, 2.0)), 2.0);
    assert_eq!(map::<C128, C128>(UnaryOp::Sign, c(0.0, -0.0)), c(0.0, 0.0));
    close(map(UnaryOp::Sign, c(3e-310, 4e-310)), c(0.6, 0.8));
    close(map(UnaryOp::Sign, c(1.5e308, -1.5e308)), c(0.5f64.sqrt(), -(0.5f64.sqrt())));
    assert_eq!(zip::<f32, C64>(BinaryOp::Complex, 1.0, -2.0), C64::new(1.0, -2.0));
}

#[test]
fn every_accepted_type_has_a_function() {
    for &element in ElementType::ALL {
        let operand = Array::zeros(shape(element, &[1])).unwrap();
        for &op in UnaryOp::ALL.iter().filter(|op| op.accepts().includes(element)) {
            element::unary(op, element, Subnormals::Keep, Map(&operand)).unwrap();
        }
        for &op in BinaryOp::ALL.iter().filter(|op| op.accepts().includes(element)) {
            element::binary(op, element, Subnormals::Keep, Zip(&operand, &operand)).unwrap();
        }
    }
}

/// The results of EQ, NE, GE, GT, LE, LT as letters, where they hold.
fn compare_all<T: Native + Debug>(order: Order, x: T, y: T) -> String {
    let holds = |&direction: &Direction| {
        let (x, y) = (Array::scalar(x), Array::scalar(y));
        let op = Compare { direction, order };
        run(compare, op, &[&x, &y], &shape(ElementType::Pred, &[])).unwrap().bits(0) == 1
    };
    let words = Direction::ALL.iter().filter(|d| holds(d)).map(|d| d.word());
    words.collect::<Vec<_>>().join(" ")
}

const LESS: &str = "NE LE LT";
const EQUAL: &str = "EQ GE LE";
const GREATER: &str = "NE GE GT";

#[test]
fn default_comparison() {
    assert_eq!(compare_all(Order::Default, -1i8, 1), LESS);
    assert_eq!(compare_all(Order::Default, 255u8, 1), GREATER);
    assert_eq!(compare_all(Order::Default, I4::wrapping(-8), I4::wrapping(7)), LESS);
    assert_eq!(compare_all(Order::Default, false, true), LESS);
    assert_eq!(compare_all(Order::Default, -0.0f32, 0.0), EQUAL);
    assert_eq!(compare_all(Order::Default, f64::NAN, f64::NAN), "NE");
    assert_eq!(compare_all(Order::Default, BF16::NAN, BF16::ONE), "NE");
    assert_eq!(compare_all(Order::Default, C64::new(1.0, 2.0), C64::new(1.0, 3.0)), LESS);
    assert_eq!(compare_all(Order::Default, C64::new(1.0, 2.0), C64::new(1.0, 2.0)), EQUAL);
    assert_eq!(compare_all(Order::Default, C64::new(1.0, f32::NAN), C64::new(1.0, 2.0)), "NE");
}

fn check_ascending<T: Native>(ascending: &[T]) {
    for (i, &x) in ascending.iter().enumerate() {
        for (j, &y) in ascending.iter().enumerate() {
            let expected = if i < j {
                LESS
            } else if i == j {
                EQUAL
            } else {
                GREATER
            };
            assert_eq!(compare_all(Order::Total, x, y), expected, "{x:?} {y:?}");
        }
    }
}

#[test]
fn total_order() {
    let (inf, nan) = (f32::INFINITY, f32::NAN.copysign(1.0));
    check_ascending(&[-nan, -inf, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, inf, nan]);
    check_ascending(&[0xffff, 0xfc00, 0x8001, 0x8000, 0, 1, 0x7c00, 0x7e00].map(F16::from_bits));
    check_ascending(&[0x80, 0xff, 0x81, 0x00, 0x01, 0x7f].map(F8E4M3FNUZ::from_bits));
    check_ascending(&[0, 1, 127, 254, 255].map(F8E8M0FNU::from_bits));
    check_ascending(&[-3i32, 0, 5]);
}

#[test]
fn select_by_element_or_as_a_whole() {
    let (on_true, on_false) = (of(&[3], &[1i32, 2, 3]), of(&[3], &[-1i32, -2, -3]));
    let result = shape(ElementType::S32, &[3]);
    let pred = of(&[3], &[true, false, true]);
    let found = run(select, ops::Select, &[&pred, &on_true, &on_false], &result).unwrap();
    assert_eq!(values::<i32>(&found), [1, -2, 3]);
    let pred = Array::scalar(false);
    let found = run(select, ops::Select, &[&pred, &on_true, &on_false], &result).unwrap();
    assert_eq!(values::<i32>(&found), [-1, -2, -3]);
}

#[test]
fn clamp_by_scalars_and_by_elements() {
    let nan = f32::NAN;
    let x = of(&[4], &[-5.0f32, 0.5, 5.0, nan]);
    let result = shape(ElementType::F32, &[4]);
    let clamp = |lo: &Array, hi: &Array| {
        values::<f32>(&run(clamp, ops::Clamp, &[lo, &x, hi], &result).unwrap())
    };
    let found = clamp(&Array::scalar(-1f32), &Array::scalar(1f32));
    assert_eq!(found[..3], [-1.0, 0.5, 1.0]);
    assert!(found[3].is_nan());
    // The upper bound wins.
    assert_eq!(clamp(&Array::scalar(2f32), &Array::scalar(1f32))[..3], [1.0; 3]);
    assert!(clamp(&Array::scalar(nan), &Array::scalar(1f32)).iter().all(|x| x.is_nan()));
    assert!(clamp(&Array::scalar(0f32), &Array::scalar(nan)).iter().all(|x| x.is_nan()));
    let (lo, hi) = (of(&[4], &[-9f32, 1.0, 0.0, 0.0]), of(&[4], &[9f32, 2.0, 2.0, 0.0]));
    assert_eq!(clamp(&lo, &hi)[..3], [-5.0, 1.0, 2.0]);
}

#[test]
fn a_single_element_is_not_a_scalar_to_broadcast_over_nothing() {
    let x = of::<f32>(&[0], &[]);
    let (lo, hi) = (Array::scalar(0f32), Array::scalar(1f32));
    let found = run(clamp, ops::Clamp, &[&lo, &x, &hi], &shape(ElementType::F32, &[0])).unwrap();
    assert!(values::<f32>(&found).is_empty());
}

#[test]
fn results_have_the_sizes_of_their_operands() {
    let x = resized(&of(&[4], &[1i32, 2, 3, 4]), &[0], &[3]);
    let y = of(&[4], &[1i32; 4]);
    let add = |x: &Array, y: &Array| {
        on_evaluator(|evaluator| {
            let shape = bounded(ElementType::S32, &[4], &[0]);
            let args = [x.clone().into(), y.clone().into()];
            binary(BinaryOp::Add, evaluator, &args, &shape.into())
        })
    };
    for found in [add(&x, &y), add(&y, &x), add(&x, &x)] {
        assert_eq!(found.unwrap().as_array().unwrap().sizes(), [3]);
    }
    let other = resized(&y, &[0], &[2]);
    assert!(add(&x, &other).unwrap_err().detail().contains("3 in one operand and 2 in another"));
}
