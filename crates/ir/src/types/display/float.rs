//! Floats of an array: with a point, or with an exponent if they are far apart.

use super::super::{ElementType, Native, Number};
use crate::dispatch_type;

/// Digits behind the point beyond which no float of any type has more to say.
pub(super) const MAX_PRECISION: usize = 1100;

/// Numbers below this have exponents.
const SMALL: f64 = 1e-4;

/// Numbers that are further apart than this have exponents.
const MAX_RATIO: f64 = 1e3;

/// From here on numbers of a type have exponents: about where it no longer has all integers.
fn large(element: ElementType, is_alone: bool) -> f64 {
    match (element, is_alone) {
        (ElementType::F64, true) => 1e16,
        (ElementType::F64, false) => 1e8,
        (ElementType::F32, _) => 1e6,
        _ => 1e3,
    }
}

/// How the floats of an array are written: points below each other, all equally wide.
pub(super) struct FloatStyle {
    element: ElementType,
    /// The most digits behind the point.
    precision: usize,
    /// The digits of exponents, with their sign; `None` if there are none.
    exponent: Option<usize>,
    /// Characters before the point.
    left: usize,
    /// Characters behind the point.
    right: usize,
    /// Whether numbers that are not negative have a sign, too.
    has_plus: bool,
}

impl FloatStyle {
    pub(super) fn of(
        values: &[f64],
        element: ElementType,
        precision: usize,
        has_plus: bool,
    ) -> Self {
        let mut style =
            FloatStyle { element, precision, exponent: None, left: 0, right: 0, has_plus };
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if wants_exponents(&finite, large(element, false)) {
            style.measure_exponents(&finite);
        } else {
            for value in &finite {
                let (left, right) = style.with_point(*value);
                style.left = style.left.max(left.len());
                style.right = style.right.max(right.len());
            }
        }
        for &value in values.iter().filter(|value| !value.is_finite()) {
            // What is no number takes the place of all, and of the point.
            let length = style.special(value).len();
            style.left = style.left.max(length.saturating_sub(style.right + 1));
        }
        style
    }

    fn measure_exponents(&mut self, finite: &[f64]) {
        let (mut most, mut exponent) = (0, 0);
        for &value in finite {
            let (left, right, power) = self.with_exponent(value, self.precision);
            self.left = self.left.max(left.len());
            most = most.max(right.len());
            exponent = exponent.max(power.len());
        }
        self.precision = most;
        self.exponent = Some(exponent);
        // The point, the digits, `e` and the exponent.
        self.right = most + 1 + exponent;
    }

    /// As wide as all others.
    pub(super) fn write(&self, value: f64) -> String {
        let (left, right) = (self.left, self.right);
        if !value.is_finite() {
            return format!("{:>width$}", self.special(value), width = left + 1 + right);
        }
        if self.exponent.is_none() {
            let (integer, fraction) = self.with_point(value);
            return format!("{integer:>left$}.{fraction:<right$}");
        }
        let (integer, fraction, power) = self.with_exponent(value, self.precision);
        format!("{integer:>left$}.{fraction:0<digits$}e{power}", digits = self.precision)
    }

    fn special(&self, value: f64) -> &'static str {
        match (value.is_nan(), value < 0.0, self.has_plus) {
            (true, _, true) => "+nan",
            (true, _, false) => "nan",
            (false, true, _) => "-inf",
            (false, false, true) => "+inf",
            (false, false, false) => "inf",
        }
    }

    fn sign(&self, value: f64) -> &'static str {
        match (value.is_sign_negative(), self.has_plus) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        }
    }

    /// What stands before and behind the point.
    fn with_point(&self, value: f64) -> (String, String) {
        let text = positional(value.abs(), self.element, self.precision);
        let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
        (format!("{}{integer}", self.sign(value)), fraction.to_owned())
    }

    /// What stands before the point, behind it, and behind the `e`.
    fn with_exponent(&self, value: f64, precision: usize) -> (String, String, String) {
        let (integer, fraction, power) = scientific(value.abs(), self.element, precision);
        let power = format!("{}{:02}", if power < 0 { '-' } else { '+' }, power.abs());
        (format!("{}{integer}", self.sign(value)), fraction, power)
    }
}

fn wants_exponents(finite: &[f64], large: f64) -> bool {
    let magnitudes = finite.iter().map(|value| value.abs()).filter(|&magnitude| magnitude > 0.0);
    let (mut least, mut most) = (f64::INFINITY, 0.0);
    for magnitude in magnitudes {
        (least, most) = (f64::min(least, magnitude), f64::max(most, magnitude));
    }
    most > 0.0 && (most >= large || least < SMALL || most / least > MAX_RATIO)
}

/// A float by itself: `1.5`, `1.0`, `1e+16`.
pub(super) fn scalar(value: f64, element: ElementType, precision: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        return format!("{sign}inf");
    }
    // What stands alone is not cut, unless that was asked for.
    let precision = if precision == 8 { MAX_PRECISION } else { precision };
    if magnitude == 0.0 || (SMALL..large(element, true)).contains(&magnitude) {
        let text = positional(magnitude, element, precision);
        let zero = if text.ends_with('.') { "0" } else { "" };
        return format!("{sign}{text}{zero}");
    }
    let (integer, fraction, power) = scientific(magnitude, element, precision);
    let point = if fraction.is_empty() { "" } else { "." };
    let power_sign = if power < 0 { '-' } else { '+' };
    format!("{sign}{integer}{point}{fraction}e{power_sign}{:02}", power.abs())
}

/// With a point, and at most `precision` digits behind it, zeros at the end left out.
fn positional(magnitude: f64, element: ElementType, precision: usize) -> String {
    let (digits, power) = shortest(magnitude, element);
    // Digits that stand behind the point.
    let behind = (digits.len() as i64 - 1 - power).max(0);
    let text = match usize::try_from(behind) {
        Ok(behind) if behind <= precision => with_point(&digits, power),
        _ => format!("{magnitude:.precision$}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').to_owned(),
        false => text + ".",
    }
}

/// Digits with the point where the power of ten of the first one says.
fn with_point(digits: &str, power: i64) -> String {
    let integer_len = power + 1;
    match usize::try_from(integer_len) {
        Ok(0) | Err(_) => format!("0.{}{digits}", "0".repeat(integer_len.unsigned_abs() as usize)),
        Ok(len) if len >= digits.len() => format!("{digits}{}.", "0".repeat(len - digits.len())),
        Ok(len) => format!("{}.{}", &digits[..len], &digits[len..]),
    }
}

/// The digit before the point, at most `precision` behind it, zeros at the end left out, and the
/// power of ten.
fn scientific(magnitude: f64, element: ElementType, precision: usize) -> (String, String, i64) {
    let (mut digits, mut power) = shortest(magnitude, element);
    if digits.len() > precision + 1 {
        (digits, power) = split(&format!("{magnitude:.precision$e}"));
    }
    let (integer, fraction) = digits.split_at(1);
    (integer.to_owned(), fraction.trim_end_matches('0').to_owned(), power)
}

/// The fewest digits that tell the value from its neighbours in its type, and the power of ten of the
/// first one.
fn shortest(magnitude: f64, element: ElementType) -> (String, i64) {
    match element {
        ElementType::F64 => split(&format!("{magnitude:e}")),
        ElementType::F32 => split(&format!("{:e}", magnitude as f32)),
        narrow => {
            // A type of 16 bits or fewer has no value that needs more.
            const MOST: usize = 9;
            let texts = (0..MOST).map(|digits| format!("{magnitude:.digits$e}"));
            let found = texts.map(|text| (text.parse::<f64>(), text)).find(|(value, _)| {
                value.as_ref().is_ok_and(|&value| same_in(value, magnitude, narrow))
            });
            split(&found.map_or_else(|| format!("{magnitude:e}"), |(_, text)| text))
        }
    }
}

/// Whether two numbers become one when they are rounded to a type.
fn same_in(a: f64, b: f64, element: ElementType) -> bool {
    dispatch_type!(element, T => {
        let bits = |value| <T as Native>::from_number(Number::Float(value)).to_bits();
        bits(a) == bits(b)
    })
}

/// The digits of `1.25e-3`, without zeros at the end, and the power of ten.
fn split(text: &str) -> (String, i64) {
    let (digits, power) = text.split_once('e').unwrap_or((text, "0"));
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let kept = digits.trim_end_matches('0').len().max(1);
    (digits[..kept].to_owned(), power.parse().unwrap_or(0))
}
