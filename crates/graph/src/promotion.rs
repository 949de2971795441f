//! Promotion: the element type in which two operands meet.
//!
//! Source: the elementwise module's "ElementType Promotion Rules". The candidate has the higher category
//! of the two (bool, unsigned, signed, float, and for HLO's sake complex) and the larger width; it
//! is accepted if it can represent every value of both, and is not another format of the same
//! width. A candidate that is neither operand's type always fails one of the two, so it is one of
//! them.

use helio::ir::types::{FloatFormat, FloatSpecials};
use helio::{ElementType, Error, Result};

/// The type that operands of two types are converted to before an operation.
///
/// Errors: `promotion.C1` if a value of one of them might not be representable, or they are
/// different formats of one width; the text says which conversion to write.
///
/// ```
/// use helio_graph::{ElementType, promote};
/// assert_eq!(promote(ElementType::U8, ElementType::F16)?, ElementType::F16);
/// assert_eq!(promote(ElementType::Pred, ElementType::S32)?, ElementType::S32);
/// assert!(promote(ElementType::S32, ElementType::F32).is_err());
/// assert!(promote(ElementType::F16, ElementType::BF16).is_err());
/// # Ok::<(), helio::Error>(())
/// ```
pub fn promote(a: ElementType, b: ElementType) -> Result<ElementType> {
    if a == b {
        return Ok(a);
    }
    let why = match candidate(a, b) {
        Some(candidate) => {
            let other = if candidate == a { b } else { a };
            if is_representable(other, candidate) {
                return Ok(candidate);
            }
            format!("not every value of {other} is one of {candidate}")
        }
        None if width(a) == width(b) => format!("they are two formats of {} bits", width(a)),
        None => {
            let (wide, narrow) = if width(a) > width(b) { (a, b) } else { (b, a) };
            format!("{narrow} is of the higher kind, {wide} of the larger width")
        }
    };
    let detail = format!("{a} and {b} have no common type: {why}\n  help: {}", remedy(a, b));
    Err(Error::rule("promotion.C1", detail))
}

/// The operand's type that has both the higher category and the larger width.
fn candidate(a: ElementType, b: ElementType) -> Option<ElementType> {
    let at_least = |a, b| category(a) >= category(b) && width(a) >= width(b);
    match (at_least(a, b), at_least(b, a)) {
        (true, false) => Some(a),
        (false, true) => Some(b),
        // The same category and width, but another format; or one is higher and the other wider.
        _ => None,
    }
}

/// The order in which the document has them.
fn category(element: ElementType) -> u8 {
    if element.is_pred() {
        0
    } else if element.is_unsigned_integer() {
        1
    } else if element.is_signed_integer() {
        2
    } else if element.is_float() {
        3
    } else {
        4
    }
}

/// The bits that a value needs: 1 for a bool, a part's for a complex number.
fn width(element: ElementType) -> usize {
    if element.is_pred() { 1 } else { element.real_part().bits() }
}

/// Whether every value of a type, infinities and NaN included, is one of another; -0 counts as 0.
fn is_representable(value: ElementType, of: ElementType) -> bool {
    if value == of {
        return true;
    }
    let (from, to) = (value.real_part(), of.real_part());
    if value.is_complex() && !of.is_complex() {
        return false;
    }
    match (from.float_format(), to.float_format()) {
        (None, None) => {
            let ((low, high), (lowest, highest)) = (integer_limits(from), integer_limits(to));
            lowest <= low && high <= highest
        }
        (None, Some(format)) => integer_range(format).is_some_and(|exact| {
            let (low, high) = integer_limits(from);
            -exact <= low && high <= exact
        }),
        (Some(_), None) => false,
        (Some(from), Some(to)) => has_zero(to) >= has_zero(from) && fits(from, to),
    }
}

fn has_zero(format: FloatFormat) -> bool {
    format.specials != FloatSpecials::PowersOfTwo
}

/// Whether every finite value but zero, and infinity and NaN if they exist, has its place.
fn fits(from: FloatFormat, to: FloatFormat) -> bool {
    let lowest = |f: FloatFormat| match f.specials {
        FloatSpecials::PowersOfTwo => f.min_exponent(),
        _ => f.min_exponent() - f.mantissa_bits as i32,
    };
    let infinite = |f: FloatFormat| f.specials == FloatSpecials::Ieee;
    let nan = |f: FloatFormat| f.specials != FloatSpecials::NegativeZero;
    from.mantissa_bits <= to.mantissa_bits
        && from.has_sign <= to.has_sign
        && lowest(to) <= lowest(from)
        && largest(from) <= largest(to)
        && infinite(from) <= infinite(to)
        && nan(from) <= nan(to)
}

/// The largest finite value.
fn largest(format: FloatFormat) -> f64 {
    let FloatFormat { exponent_bits, mantissa_bits, bias, specials, .. } = format;
    let highest = (1i32 << exponent_bits) - 1 - bias;
    let ulp = f64::powi(2.0, -(mantissa_bits as i32));
    match specials {
        // The highest exponent means infinity and NaN.
        FloatSpecials::Ieee => (2.0 - ulp) * f64::powi(2.0, highest - 1),
        // The very highest number means NaN.
        FloatSpecials::Nan => (2.0 - 2.0 * ulp) * f64::powi(2.0, highest),
        FloatSpecials::PowersOfTwo => f64::powi(2.0, highest - 1),
        FloatSpecials::NanForNegativeZero | FloatSpecials::NegativeZero => {
            (2.0 - ulp) * f64::powi(2.0, highest)
        }
    }
}

/// All integers from its negative to it are values of the format; `None` if 0 is not.
fn integer_range(format: FloatFormat) -> Option<i128> {
    let digits = i128::from(1u8) << (format.mantissa_bits + 1);
    has_zero(format).then(|| digits.min(largest(format) as i128))
}

/// The lowest and the highest value of an integer type; 0 and 1 for bools.
pub(crate) fn integer_limits(element: ElementType) -> (i128, i128) {
    let bits = width(element);
    if element.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// The integers that a Rust integer may stand for in an operation with a tensor of this type: the
/// full range of integers, 0 and 1 for bool, and for floats the range in which all integers are
/// exact. `None` if there is none.
pub(crate) fn exact_integers(element: ElementType) -> Option<(i128, i128)> {
    match element.real_part().float_format() {
        None => Some(integer_limits(element)),
        Some(format) => {
            let exact = integer_range(format)?;
            Some((if format.has_sign { -exact } else { 0 }, exact))
        }
    }
}

/// Which conversion lets the two meet.
fn remedy(a: ElementType, b: ElementType) -> String {
    use ElementType::{C64, C128, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    let all = [U8, S8, U16, S16, U32, S32, U64, S64, F16, F32, F64, C64, C128];
    let common = all.into_iter().find(|&t| {
        category(t) >= category(a).max(category(b))
            && is_representable(a, t)
            && is_representable(b, t)
    });
    let higher = if category(a) >= category(b) { a } else { b };
    let other = if higher == a { b } else { a };
    match common {
        Some(common) => format!(
            "convert both, losing nothing, with .cast(ElementType::{common:?}), or one of them, \
             as in .cast(ElementType::{higher:?})"
        ),
        None => format!(
            "no type holds all values of both; convert the {other} operand with \
             .cast(ElementType::{higher:?}) if rounding or wrapping is meant"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_matrix_follow_the_rule() {
        use ElementType::*;
        for (a, b, meet) in [
            (S2, S4, Some(S4)),
            (U2, S4, Some(S4)),
            (U4, S4, None),
            (U4, BF16, Some(BF16)),
            (S4, F8E4M3FN, Some(F8E4M3FN)),
            (S8, F4E2M1FN, None),
            (S2, F4E2M1FN, Some(F4E2M1FN)),
            (S4, F4E2M1FN, None),
            (F4E2M1FN, F8E3M4, Some(F8E3M4)),
            (F8E3M4, F8E4M3, None),
            (F8E4M3B11FNUZ, F16, Some(F16)),
            (F32, C64, Some(C64)),
            (F64, C64, None),
            (C64, C128, Some(C128)),
            (F64, C128, Some(C128)),
            (S16, C64, Some(C64)),
            (S32, C64, None),
            (Pred, F8E8M0FNU, None),
            (F8E8M0FNU, F32, Some(F32)),
        ] {
            assert_eq!(promote(a, b).ok(), meet, "{a} {b}");
            assert_eq!(promote(b, a).ok(), meet, "{b} {a}");
        }
    }

    #[test]
    fn exact_ranges() {
        assert_eq!(exact_integers(ElementType::F32), Some((-(1 << 24), 1 << 24)));
        assert_eq!(exact_integers(ElementType::F16), Some((-2048, 2048)));
        assert_eq!(exact_integers(ElementType::BF16), Some((-256, 256)));
        assert_eq!(exact_integers(ElementType::U8), Some((0, 255)));
        assert_eq!(exact_integers(ElementType::Pred), Some((0, 1)));
        assert_eq!(exact_integers(ElementType::F4E2M1FN), Some((-4, 4)));
        assert_eq!(exact_integers(ElementType::F8E8M0FNU), None);
    }
}
