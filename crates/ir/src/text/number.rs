//! One element of a literal in HLO text, read and written with every bit: `-0`, `1.5e-3`,
//! `nan(0x1f)`.

use std::fmt::Write as _;

use super::lexer::Cursor;
use crate::types::{ElementType, Native, Number};
use crate::{Error, Result, dispatch_type};

/// Reads an element as XLA does.
pub(super) fn read<T: Native>(cursor: &mut Cursor<'_>) -> Result<T> {
    if T::TYPE.is_complex() {
        cursor.expect("(")?;
        let (re, im) = dispatch_type!(T::TYPE.real_part(), Part => {
            let re = float::<Part>(cursor)?;
            cursor.expect(",")?;
            (Native::to_bits(re), Native::to_bits(float::<Part>(cursor)?))
        });
        cursor.expect(")")?;
        return Ok(T::from_bits(re | im << T::TYPE.real_part().bits()));
    }
    if T::TYPE.is_float() { float(cursor) } else { integer(cursor) }
}

/// An integer, or `true` or `false` for `pred`.
fn integer<T: Native>(cursor: &mut Cursor<'_>) -> Result<T> {
    let mut at = *cursor;
    let word = cursor.literal_word();
    if T::TYPE.is_pred() && (word == "true" || word == "false") {
        return Ok(T::from_number(Number::Pred(word == "true")));
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(not_a(&mut at, word, "an integer"));
    }
    let out_of_range = || format!("{word} is out of range for {}", T::TYPE);
    let number: i128 = word.parse().map_err(|_| at.error(out_of_range()))?;
    let value = T::from_number(Number::Int(number));
    // As in XLA, a 64-bit element may be given as any 64-bit integer, signed or not, and any
    // integer is a `pred`. All else is exact.
    let wraps = T::TYPE.bits() == 64 && (i64::MIN.into()..=u64::MAX.into()).contains(&number);
    if wraps || T::TYPE.is_pred() || value.to_number() == Number::Int(number) {
        return Ok(value);
    }
    Err(at.error(out_of_range()))
}

/// A real number, `inf`, `-inf`, `nan`, `-nan` or a NaN with its payload, `nan(0x1f)`.
fn float<T: Native>(cursor: &mut Cursor<'_>) -> Result<T> {
    let mut at = *cursor;
    let word = cursor.literal_word();
    let magnitude = word.strip_prefix('-').unwrap_or(word);
    match magnitude {
        "inf" => {
            let sign = if word == magnitude { 1.0 } else { -1.0 };
            return Ok(T::from_number(Number::Float(f64::INFINITY * sign)));
        }
        "nan" => {
            let payload = if cursor.peek_token("(0x") { Some(payload(cursor)?) } else { None };
            return nan(word != magnitude, payload).map_err(|detail| at.error(detail));
        }
        _ => {}
    }
    if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(not_a(&mut at, word, "a number"));
    }
    let number: f64 = word.parse().map_err(|_| not_a(&mut at, word, "a number"))?;
    // XLA reads every real number as an f64 first; so do we, to get the same bits.
    let value = T::from_number(Number::Float(number));
    if !value.to_number().to_f64().is_finite() {
        return Err(at.error(format!("{word} is out of range for {}", T::TYPE)));
    }
    Ok(value)
}

fn not_a(at: &mut Cursor<'_>, word: &str, wanted: &str) -> Error {
    match word {
        "" => at.unexpected(wanted),
        _ => {
            let word: String = word.chars().take(60).collect();
            at.error(format!("expected {wanted}, found `{word}`"))
        }
    }
}

/// `(0x1f)`
fn payload(cursor: &mut Cursor<'_>) -> Result<u64> {
    cursor.expect("(")?;
    let mut at = *cursor;
    let word = cursor.literal_word();
    let digits = word.strip_prefix("0x").unwrap_or_default();
    let payload = u64::from_str_radix(digits, 16)
        .ok()
        .filter(|&payload| payload > 0 && !digits.starts_with('+'))
        .ok_or_else(|| at.error("the payload of a NaN is a positive hexadecimal number"))?;
    cursor.expect(")")?;
    Ok(payload)
}

/// How many low bits of a NaN of this type are its payload. Types without signalling NaNs have none.
fn payload_bits(element: ElementType) -> usize {
    match element {
        ElementType::F8E5M2 => 2,
        ElementType::F8E4M3 => 3,
        ElementType::F8E3M4 => 4,
        ElementType::BF16 => 7,
        ElementType::F16 => 10,
        ElementType::F32 => 23,
        ElementType::F64 => 52,
        _ => 0,
    }
}

/// A NaN; without a payload the usual quiet one.
fn nan<T: Native>(negative: bool, payload: Option<u64>) -> Result<T, String> {
    let sign = u128::from(negative) << (T::TYPE.bits() - 1);
    let bits = payload_bits(T::TYPE);
    if bits == 0 {
        if payload.is_some() {
            return Err(format!("{} does not support NaN payloads", T::TYPE));
        }
        // Only one of these types has a NaN of either sign; the others have one NaN, or none.
        let nan = T::from_number(Number::Float(f64::NAN));
        return Ok(match T::TYPE {
            ElementType::F8E4M3FN => T::from_bits(nan.to_bits() & 0x7f | sign),
            _ => nan,
        });
    }
    let payload = u128::from(payload.unwrap_or(1 << (bits - 1)));
    let max = (1u128 << bits) - 1;
    if payload > max {
        return Err(format!("the NaN payload is beyond {max:#x}, the largest of {}", T::TYPE));
    }
    let exponent = ((1u128 << (T::TYPE.bits() - 1 - bits)) - 1) << bits;
    Ok(T::from_bits(sign | exponent | payload))
}

/// Writes an element so that [`read`] and XLA get the same bits from it. `pred` is a word as a
/// scalar, a digit in an array.
pub(super) fn write<T: Native>(value: T, is_scalar: bool, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value.to_number() {
        Number::Pred(value) if is_scalar => write!(out, "{value}"),
        Number::Pred(value) => write!(out, "{}", u8::from(value)),
        Number::Int(value) => write!(out, "{value}"),
        Number::Float(_) => {
            write_float(value, out);
            Ok(())
        }
        Number::Complex(_) => {
            let (part, bits) = (T::TYPE.real_part(), Native::to_bits(value));
            dispatch_type!(part, Part => {
                out.push('(');
                write_float(<Part as Native>::from_bits(bits), out);
                out.push_str(", ");
                write_float(<Part as Native>::from_bits(bits >> part.bits()), out);
                out.push(')');
            });
            Ok(())
        }
    };
}

fn write_float<T: Native>(value: T, out: &mut String) {
    let (number, bits) = (value.to_number().to_f64(), Native::to_bits(value));
    if number.is_nan() {
        let negative = bits >> (T::TYPE.bits() - 1) & 1 == 1;
        out.push_str(if negative { "-nan" } else { "nan" });
        let width = payload_bits(T::TYPE);
        let payload = bits & ((1 << width) - 1);
        if width > 0 && payload != 1 << (width - 1) {
            let _ = write!(out, "(0x{payload:x})"); // cannot fail
        }
        return;
    }
    // XLA would read `-0` as an integer, which has no sign.
    if number == 0.0 {
        out.push_str(if number.is_sign_negative() { "-0.0" } else { "0" });
        return;
    }
    if number.is_infinite() {
        out.push_str(if number > 0.0 { "inf" } else { "-inf" });
        return;
    }
    if number.fract() == 0.0 && number.abs() < 1e6 {
        let _ = write!(out, "{number}"); // cannot fail
        return;
    }
    general(&shortest(value, number), significant_digits(T::TYPE), out);
}

/// The most significant digits of a number that is printed without an exponent, as XLA does it.
fn significant_digits(element: ElementType) -> i32 {
    match element {
        ElementType::F64 => 15,
        ElementType::F32 => 6,
        ElementType::F16 => 5,
        ElementType::BF16 => 4,
        _ => 3,
    }
}

/// The fewest digits that give the same bits, as `d.ddde-x`.
fn shortest<T: Native>(value: T, number: f64) -> String {
    let gives_value = |text: &String| {
        text.parse().is_ok_and(|number| {
            Native::to_bits(T::from_number(Number::Float(number))) == Native::to_bits(value)
        })
    };
    let first = match T::TYPE {
        // Rust's digits are the fewest that give the same f32 directly; by way of an f64 they may,
        // very rarely, not.
        ElementType::F32 => format!("{:e}", number as f32),
        ElementType::F64 => return format!("{number:e}"),
        _ => format!("{number:.0e}"),
    };
    if gives_value(&first) {
        return first;
    }
    let exact = || format!("{number:e}");
    (1..9).map(|digits| format!("{number:.digits$e}")).find(gives_value).unwrap_or_else(exact)
}

/// Writes `d.ddde-x` as C's `%g` does: without an exponent, unless that takes many zeros.
fn general(scientific: &str, precision: i32, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let count = digits.len() as i32; // at most 17
    let zeros = |n: i32| "0".repeat(n.max(0) as usize);
    out.push_str(sign);
    // Writing to a String cannot fail.
    let _ = if exponent < -4 || exponent >= precision.max(count) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{first}{point}{rest}e{sign}{:02}", exponent.abs())
    } else if exponent < 0 {
        write!(out, "0.{}{digits}", zeros(-exponent - 1))
    } else if exponent >= count - 1 {
        write!(out, "{digits}{}", zeros(exponent - count + 1))
    } else {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        write!(out, "{whole}.{fraction}")
    };
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lines;
    use super::*;
    use crate::types::{C64, F8E4M3FN, F8E5M2, I4, U2, U4};
    use half::{bf16, f16};

    fn parse<T: Native>(text: &str) -> Result<T> {
        let lines = Lines::new(text)?;
        let mut cursor = Cursor::new(&lines);
        let value = read(&mut cursor)?;
        cursor.expect_end()?;
        Ok(value)
    }

    #[track_caller]
    fn check<T: Native>(text: &str, bits: u128, printed: &str) {
        let value: T = parse(text).unwrap();
        assert_eq!(Native::to_bits(value), bits, "{text}");
        let mut out = String::new();
        write(value, true, &mut out);
        assert_eq!(out, printed);
    }

    /// Bits as XLA's parser gives them (`-0` aside), text as its printer writes it where that is
    /// the shortest.
    #[test]
    fn values() {
        check::<f32>("nan(0x400001)", 0x7fc0_0001, "nan(0x400001)");
        check::<f32>("-nan", 0xffc0_0000, "-nan");
        check::<f32>("-nan(0x1)", 0xff80_0001, "-nan(0x1)");
        check::<f64>("nan", 0x7ff8_0000_0000_0000, "nan");
        check::<f32>("-inf", 0xff80_0000, "-inf");
        check::<f32>("-0", 0x8000_0000, "-0.0");
        check::<f32>("1e-05", 0x3727_c5ac, "1e-05");
        check::<f32>("0.0001", 0x38d1_b717, "0.0001");
        check::<f32>("1e+09", 0x4e6e_6b28, "1e+09");
        check::<f32>("16777216", 0x4b80_0000, "16777216");
        check::<f32>("3.40282347e+38", 0x7f7f_ffff, "3.4028235e+38");
        check::<f32>("0.333333343", 0x3eaa_aaab, "0.33333334");
        check::<f32>("-.5", 0xbf00_0000, "-0.5");
        check::<f32>("5.", 0x40a0_0000, "5");
        check::<f32>("1e-45", 1, "1e-45");
        check::<f64>("1000000000", 0x41cd_cd65_0000_0000, "1000000000");
        check::<f64>("5e-324", 1, "5e-324");
        check::<f64>("0.1", 0x3fb9_9999_9999_999a, "0.1");
        check::<f16>("65504", 0x7bff, "65504");
        check::<f16>("nan(0x1)", 0x7c01, "nan(0x1)");
        check::<bf16>("0.1001", 0x3dcd, "0.1");
        check::<bf16>("16384", 0x4680, "16384");
        check::<F8E4M3FN>("448", 0x7e, "448");
        check::<F8E4M3FN>("-nan", 0xff, "-nan");
        check::<F8E5M2>("57344", 0x7b, "57344");
        check::<C64>("(1, -nan)", 0xffc0_0000 << 32 | 0x3f80_0000, "(1, -nan)");
        check::<I4>("-8", 8, "-8");
        check::<U2>("3", 3, "3");
        check::<u64>("-1", u64::MAX.into(), "18446744073709551615");
        check::<i64>("18446744073709551615", u64::MAX.into(), "-1");
        check::<bool>("2", 1, "true");
        check::<bool>("false", 0, "false");
    }

    #[test]
    fn every_sixteen_bit_value() {
        for bits in 0..=u16::MAX {
            for_each_bits::<f16>(bits.into());
            for_each_bits::<bf16>(bits.into());
            // Subnormal, small, near one, large.
            for high in [0, 0x0001, 0x3f7f, 0x7f7f] {
                for_each_bits::<f32>(high << 16 | u128::from(bits));
            }
        }
    }

    fn for_each_bits<T: Native>(bits: u128) {
        let mut text = String::new();
        write(T::from_bits(bits), true, &mut text);
        assert_eq!(Native::to_bits(parse::<T>(&text).unwrap()), bits, "{text}");
    }

    #[test]
    fn every_eight_bit_value() {
        for &element in ElementType::ALL.iter().filter(|ty| ty.bits() <= 8) {
            for bits in 0..1 << element.bits() {
                dispatch_type!(element, T => {
                    // `pred` keeps its lowest bit only.
                    let value = <T as Native>::from_bits(bits);
                    for_each_bits::<T>(Native::to_bits(value));
                });
            }
        }
    }

    #[test]
    fn errors() {
        fn check<T: Native>(text: &str, part: &str) {
            let e = parse::<T>(text).unwrap_err().to_string();
            assert!(e.contains(part), "{text}: {e}");
        }
        check::<f32>("1e39", "1e39 is out of range for f32");
        check::<f64>("1e999", "out of range");
        check::<f32>("infinity", "expected a number, found `infinity`");
        check::<f32>("+1", "expected a number, found `+1`");
        check::<f32>("1e", "expected a number");
        check::<f32>("true", "expected a number");
        check::<f32>("(1, 2)", "expected a number, found `(`");
        check::<f32>("nan(0x0)", "positive hexadecimal");
        check::<f32>("nan(0x800000)", "beyond 0x7fffff");
        check::<F8E4M3FN>("nan(0x1)", "does not support NaN payloads");
        check::<F8E4M3FN>("1000", "out of range");
        check::<i8>("128", "128 is out of range for s8");
        check::<u8>("-1", "out of range");
        check::<U4>("-1", "out of range");
        check::<U4>("16", "out of range");
        check::<u64>("18446744073709551616", "out of range");
        check::<i32>("1.0", "expected an integer, found `1.0`");
        check::<i32>("", "expected an integer, found the end");
        check::<C64>("1", "expected `(`");
        check::<C64>("(1)", "expected `,`");
        check::<bool>("maybe", "expected an integer");
    }
}
