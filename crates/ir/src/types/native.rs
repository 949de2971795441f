//! Rust types for element types, and exact conversions between them.

use std::fmt::Debug;

use minifloat::Minifloat;

use super::*;

/// A number of any element type, without loss: the common ground of conversions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `pred`.
    Pred(bool),
    /// Any integer.
    Int(i128),
    /// Any real floating-point number; every format is a subset of `f64`.
    Float(f64),
    /// A complex number.
    Complex(C128),
}

impl Number {
    /// As an integer: truncated toward zero and saturated to `min..=max`, NaN to 0. Integers are
    /// left as they are: they keep their low bits, which is for the caller to do.
    pub fn to_int(self, min: i128, max: i128) -> i128 {
        match self {
            Number::Pred(v) => v.into(),
            Number::Int(v) => v,
            // `as` saturates and maps NaN to 0.
            Number::Float(v) => (v as i128).clamp(min, max),
            Number::Complex(v) => (v.re as i128).clamp(min, max),
        }
    }

    /// As an `f64` such that rounding it on to any narrower format rounds the number itself once.
    fn to_f64_for_narrowing(self) -> f64 {
        match self {
            Number::Int(v) => int_to_f64_odd(v),
            other => other.to_f64(),
        }
    }

    /// The nearest `f64`; the real part of a complex number.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Pred(v) => v.into(),
            Number::Int(v) => v as f64,
            Number::Float(v) => v,
            Number::Complex(v) => v.re,
        }
    }

    /// As a complex number; reals have no imaginary part.
    pub fn to_complex(self) -> C128 {
        match self {
            Number::Complex(v) => v,
            real => C128::new(real.to_f64(), 0.0),
        }
    }

    /// `pred`: whether it is not zero; NaN is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Number::Pred(v) => v,
            Number::Int(v) => v != 0,
            Number::Float(v) => v != 0.0,
            Number::Complex(v) => v.re != 0.0 || v.im != 0.0,
        }
    }
}

/// `v` with 53 significant bits, rounded to odd: rounding it again to at most 51 bits gives what
/// rounding `v` would (Boldo and Melquiond, "When double rounding is odd").
fn int_to_f64_odd(v: i128) -> f64 {
    let magnitude = v.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess;
    let sticky = (kept << excess != magnitude) as u128;
    let rounded = ((kept | sticky) as f64) * 2f64.powi(excess as i32);
    if v < 0 { -rounded } else { rounded }
}

/// `v` as an `f32`, rounded to odd; NaN stays NaN. Narrowing the result on to 16 bits or fewer
/// rounds only once.
fn f64_to_f32_odd(v: f64) -> f32 {
    let nearest = v as f32;
    if v.is_nan() || f64::from(nearest) == v || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // Inexact, and rounded to an even mantissa: the odd neighbour is on the other side of `v`.
    let up = f64::from(nearest) < v;
    if up == (nearest > 0.0 || (nearest == 0.0 && v > 0.0)) {
        f32::from_bits(nearest.to_bits() + 1)
    } else {
        f32::from_bits(nearest.to_bits() - 1)
    }
}

/// A Rust type that holds one element of [`Native::TYPE`].
pub trait Native: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// The element type.
    const TYPE: ElementType;
    /// Wraps values as the storage of a literal.
    fn wrap(values: Vec<Self>) -> ArrayData;
    /// The values, if the storage holds this type.
    fn slice(data: &ArrayData) -> Option<&[Self]>;
    /// The values, if the storage holds this type.
    fn slice_mut(data: &mut ArrayData) -> Option<&mut Vec<Self>>;
    /// The value without loss.
    fn to_number(self) -> Number;
    /// HLO's `convert` (`semantics.md` §3): floats to integers truncate and saturate, NaN to 0;
    /// integers to integers keep the low bits; all else rounds to nearest even.
    fn from_number(number: Number) -> Self;
    /// The bits of the value, in the low [`ElementType::bits`] of the result.
    fn to_bits(self) -> u128;
    /// The value with these low bits; higher bits are ignored.
    fn from_bits(bits: u128) -> Self;
}

macro_rules! storage {
    ($variant:ident) => {
        const TYPE: ElementType = ElementType::$variant;
        fn wrap(values: Vec<Self>) -> ArrayData {
            ArrayData::$variant(values)
        }
        fn slice(data: &ArrayData) -> Option<&[Self]> {
            match data {
                ArrayData::$variant(values) => Some(values),
                _ => None,
            }
        }
        fn slice_mut(data: &mut ArrayData) -> Option<&mut Vec<Self>> {
            match data {
                ArrayData::$variant(values) => Some(values),
                _ => None,
            }
        }
    };
}

impl Native for bool {
    storage!(Pred);
    fn to_number(self) -> Number {
        Number::Pred(self)
    }
    fn from_number(number: Number) -> Self {
        number.to_bool()
    }
    fn to_bits(self) -> u128 {
        self.into()
    }
    fn from_bits(bits: u128) -> Self {
        bits & 0xff != 0
    }
}

macro_rules! integers {
    ($($variant:ident $ty:ty;)*) => {$(
        impl Native for $ty {
            storage!($variant);
            fn to_number(self) -> Number {
                Number::Int(self.into())
            }
            fn from_number(number: Number) -> Self {
                number.to_int(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty
            }
            fn to_bits(self) -> u128 {
                // The cast through the same width keeps the sign out of the high bits.
                (self as i128 as u128) & (u128::MAX >> (128 - <$ty>::BITS))
            }
            fn from_bits(bits: u128) -> Self {
                bits as $ty
            }
        }
    )*};
}
integers! { S8 i8; S16 i16; S32 i32; S64 i64; U8 u8; U16 u16; U32 u32; U64 u64; }

macro_rules! narrow_integers {
    ($($variant:ident $name:ident $repr:ty, $bits:literal, $min:literal, $max:literal;)*) => {$(
        #[doc = concat!("An integer of ", $bits, " bits, from ", $min, " to ", $max, ".")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($repr);

        impl $name {
            /// The value that the low bits of `value` stand for.
            pub const fn wrapping(value: i128) -> Self {
                const SHIFT: u32 = <$repr>::BITS - $bits;
                $name(((value as $repr) << SHIFT) >> SHIFT)
            }

            /// The value.
            pub const fn get(self) -> $repr {
                self.0
            }
        }

        impl Native for $name {
            storage!($variant);
            fn to_number(self) -> Number {
                Number::Int(self.0.into())
            }
            fn from_number(number: Number) -> Self {
                $name::wrapping(number.to_int($min, $max))
            }
            fn to_bits(self) -> u128 {
                (self.0 as u128) & ((1 << $bits) - 1)
            }
            fn from_bits(bits: u128) -> Self {
                $name::wrapping(bits as i128)
            }
        }
    )*};
}
narrow_integers! { S2 I2 i8, 2, -2, 1; S4 I4 i8, 4, -8, 7; U2 U2 u8, 2, 0, 3; U4 U4 u8, 4, 0, 15; }

/// `v` in a format without infinity but with NaN, which it becomes on overflow.
///
/// (`minifloat` gives the greatest number instead.)
fn finite_or_nan<T: Minifloat>(v: f64) -> T {
    // Scaled down by four, nothing overflows and the place of the last bit stays the mantissa's.
    let overflows = T::from_f64(v / 4.0).to_f64().abs() > T::MAX.to_f64() / 4.0;
    match T::NAN {
        Some(nan) if overflows => nan,
        _ => T::from_f64(v),
    }
}

/// The nearest number; the greatest on overflow. There is no NaN: it becomes -0, as on XLA:CPU.
fn f4_from_f64(v: f64) -> F4E2M1FN {
    F4E2M1FN::from_f64(if v.is_nan() { -0.0 } else { v })
}

macro_rules! floats {
    ($($variant:ident $ty:ty, $bits:ty, $from:expr, $to:expr;)*) => {$(
        impl Native for $ty {
            storage!($variant);
            fn to_number(self) -> Number {
                Number::Float($to(self))
            }
            fn from_number(number: Number) -> Self {
                $from(number.to_f64_for_narrowing())
            }
            fn to_bits(self) -> u128 {
                <$ty>::to_bits(self).into()
            }
            fn from_bits(bits: u128) -> Self {
                <$ty>::from_bits(bits as $bits)
            }
        }
    )*};
}
floats! {
    F4E2M1FN F4E2M1FN, u8, f4_from_f64, F4E2M1FN::to_f64;
    F8E3M4 F8E3M4, u8, F8E3M4::from_f64, F8E3M4::to_f64;
    F8E4M3 F8E4M3, u8, F8E4M3::from_f64, F8E4M3::to_f64;
    F8E4M3FN F8E4M3FN, u8, finite_or_nan, F8E4M3FN::to_f64;
    F8E4M3B11FNUZ F8E4M3B11FNUZ, u8, finite_or_nan, F8E4M3B11FNUZ::to_f64;
    F8E4M3FNUZ F8E4M3FNUZ, u8, finite_or_nan, F8E4M3FNUZ::to_f64;
    F8E5M2 F8E5M2, u8, F8E5M2::from_f64, F8E5M2::to_f64;
    F8E5M2FNUZ F8E5M2FNUZ, u8, finite_or_nan, F8E5M2FNUZ::to_f64;
    F8E8M0FNU F8E8M0FNU, u8, F8E8M0FNU::from_f64, F8E8M0FNU::to_f64;
    F16 F16, u16, |v| F16::from_f32(f64_to_f32_odd(v)), F16::to_f64;
    BF16 BF16, u16, |v| BF16::from_f32(f64_to_f32_odd(v)), BF16::to_f64;
    F32 f32, u32, |v| v as f32, f64::from;
}

impl Native for f64 {
    storage!(F64);
    fn to_number(self) -> Number {
        Number::Float(self)
    }
    fn from_number(number: Number) -> Self {
        number.to_f64()
    }
    fn to_bits(self) -> u128 {
        f64::to_bits(self).into()
    }
    fn from_bits(bits: u128) -> Self {
        f64::from_bits(bits as u64)
    }
}

macro_rules! complexes {
    ($($variant:ident $ty:ty, $part:ty;)*) => {$(
        impl Native for $ty {
            storage!($variant);
            fn to_number(self) -> Number {
                Number::Complex(C128::new(self.re.into(), self.im.into()))
            }
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Complex(v) => Self::new(v.re as $part, v.im as $part),
                    real => Self::new(<$part>::from_number(real), 0.0),
                }
            }
            fn to_bits(self) -> u128 {
                Native::to_bits(self.re) | Native::to_bits(self.im) << <$part as Native>::TYPE.bits()
            }
            fn from_bits(bits: u128) -> Self {
                Self::new(
                    <$part as Native>::from_bits(bits),
                    <$part as Native>::from_bits(bits >> <$part as Native>::TYPE.bits()),
                )
            }
        }
    )*};
}
complexes! { C64 C64, f32; C128 C128, f64; }

/// A power of two, `2^(bits - 127)`; all bits set is NaN. No zero, no sign.
///
/// Conversion rounds to the nearest power, ties upwards; zero, negative and too large values become
/// NaN (as in `ml_dtypes`, which XLA uses).
#[derive(Clone, Copy, Debug, Default)]
pub struct F8E8M0FNU(u8);

impl F8E8M0FNU {
    /// The value with these bits.
    pub const fn from_bits(bits: u8) -> Self {
        F8E8M0FNU(bits)
    }

    /// The bits of the value.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest value; see the type for the special cases.
    pub fn from_f64(v: f64) -> Self {
        let bits = if v.is_nan() || v <= 0.0 {
            255
        } else {
            // Adding half a unit to the fraction carries into the exponent when it is at least 1.5.
            let exponent = ((v.to_bits() + (1 << 51)) >> 52) as i64 - 1023 + 127;
            exponent.clamp(0, 255) as u8
        };
        F8E8M0FNU(bits)
    }

    /// The value, exactly.
    pub fn to_f64(self) -> f64 {
        if self.0 == 255 { f64::NAN } else { 2f64.powi(i32::from(self.0) - 127) }
    }
}

impl PartialEq for F8E8M0FNU {
    fn eq(&self, other: &Self) -> bool {
        self.to_f64() == other.to_f64()
    }
}
