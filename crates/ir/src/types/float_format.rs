//! How the bits of floating-point types are laid out.

use super::ElementType;

/// The layout of a binary floating-point type: sign, exponent and mantissa, from the high bits down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Whether there is a sign bit.
    pub has_sign: bool,
    /// The bits of the exponent.
    pub exponent_bits: u32,
    /// The explicit bits of the mantissa.
    pub mantissa_bits: u32,
    /// What is subtracted from the exponent of normal numbers.
    pub bias: i32,
    /// Which values besides ordinary numbers there are.
    pub specials: FloatSpecials,
}

/// Which values a floating-point type has besides positive and negative numbers and +0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatSpecials {
    /// -0, infinities and NaN: the highest exponent means these.
    Ieee,
    /// -0, and NaN with all bits of exponent and mantissa set; no infinity.
    Nan,
    /// NaN in the place of -0; neither -0 nor infinity.
    NanForNegativeZero,
    /// -0 only.
    NegativeZero,
    /// NaN with all bits set; neither zero nor negative numbers.
    PowersOfTwo,
}

impl FloatFormat {
    /// The exponent of the smallest normal number.
    pub fn min_exponent(self) -> i32 {
        match self.specials {
            // No exponent is set aside for zero.
            FloatSpecials::PowersOfTwo => -self.bias,
            _ => 1 - self.bias,
        }
    }
}

impl ElementType {
    /// The layout of a real floating-point type.
    pub fn float_format(self) -> Option<FloatFormat> {
        use FloatSpecials::{Ieee, Nan, NanForNegativeZero, NegativeZero, PowersOfTwo};
        let (exponent_bits, mantissa_bits, bias, specials) = match self {
            ElementType::F4E2M1FN => (2, 1, 1, NegativeZero),
            ElementType::F8E3M4 => (3, 4, 3, Ieee),
            ElementType::F8E4M3 => (4, 3, 7, Ieee),
            ElementType::F8E4M3FN => (4, 3, 7, Nan),
            ElementType::F8E4M3B11FNUZ => (4, 3, 11, NanForNegativeZero),
            ElementType::F8E4M3FNUZ => (4, 3, 8, NanForNegativeZero),
            ElementType::F8E5M2 => (5, 2, 15, Ieee),
            ElementType::F8E5M2FNUZ => (5, 2, 16, NanForNegativeZero),
            ElementType::F8E8M0FNU => (8, 0, 127, PowersOfTwo),
            ElementType::F16 => (5, 10, 15, Ieee),
            ElementType::BF16 => (8, 7, 127, Ieee),
            ElementType::F32 => (8, 23, 127, Ieee),
            ElementType::F64 => (11, 52, 1023, Ieee),
            ElementType::Pred
            | ElementType::S2
            | ElementType::S4
            | ElementType::S8
            | ElementType::S16
            | ElementType::S32
            | ElementType::S64
            | ElementType::U2
            | ElementType::U4
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64
            | ElementType::C64
            | ElementType::C128 => return None,
        };
        let has_sign = specials != PowersOfTwo;
        Some(FloatFormat { has_sign, exponent_bits, mantissa_bits, bias, specials })
    }
}
