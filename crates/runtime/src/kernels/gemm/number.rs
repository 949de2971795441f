//! Types of numbers: how they become words of a product, and sums become them.

use crate::kernels::bytes::Plain;

/// A type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductType {
    /// `i8`.
    S8,
    /// `i16`.
    S16,
    /// `i32`.
    S32,
    /// `i64`.
    S64,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// Two `f32`: real and imaginary part.
    C64,
    /// Two `f64`: real and imaginary part.
    C128,
}

/// The types of the operands and the result of a product. Sums are formed in the type of the result
/// if that has 32 bits or more; `f16` and `bf16` are rounded from `f32`, and integers wrap, so that
/// theirs do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Of the left operand.
    pub lhs: ProductType,
    /// Of the right operand.
    pub rhs: ProductType,
    /// Of the result.
    pub out: ProductType,
}

/// An element of an operand that becomes a word by itself.
pub(super) trait Element<W>: Plain {
    /// The word.
    fn word(self) -> W;
    /// Whether element and word are the same type.
    const SAME: bool = false;
    /// Whether it is worth compiling copies for each instruction set.
    const TUNED: bool = false;
}

/// An element of a result, made of a sum.
pub(super) trait Output<A>: Plain {
    /// The element.
    fn from_sum(sum: A) -> Self;
    /// Whether sum and element are the same type.
    const SAME: bool = false;
}

/// The upper half of an `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub(in crate::kernels) struct Bf16(pub u16);

/// IEEE 754 binary16.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub(in crate::kernels) struct F16(pub u16);

// SAFETY: transparent wrappers of a primitive number.
unsafe impl Plain for Bf16 {}
// SAFETY: transparent wrappers of a primitive number.
unsafe impl Plain for F16 {}

impl Bf16 {
    #[inline(always)]
    pub(in crate::kernels) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Rounds to nearest, ties to even. (No branch, so that loops become vectors.)
    #[inline(always)]
    pub(in crate::kernels) fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        // A NaN stays one even if only low bits made it one.
        let quiet = bits >> 16 | 0x40;
        Bf16(if x.is_nan() { quiet } else { rounded } as u16)
    }
}

impl F16 {
    #[inline(always)]
    pub(in crate::kernels) fn to_f32(self) -> f32 {
        // With the exponent in place it is 112 too small; infinities and NaNs need all ones. The
        // mantissa of a subnormal number is put behind that of the smallest normal one, which is
        // then taken away. (No `f32` here is subnormal, which the processor might take for zero.)
        let magnitude = u32::from(self.0 & 0x7fff) << 13;
        let least = f32::from_bits(0x3880_0000);
        let subnormal = f32::from_bits(magnitude | least.to_bits()) - least;
        let normal = magnitude.wrapping_add(0x3800_0000);
        let special = magnitude | 0x7f80_0000;
        let bits = if magnitude < 0x0080_0000 { subnormal.to_bits() } else { normal };
        let bits = if magnitude >= 0x0f80_0000 { special } else { bits };
        f32::from_bits(bits | u32::from(self.0 & 0x8000) << 16)
    }

    /// Rounds to nearest, ties to even. (No branch, so that loops become vectors.)
    #[inline(always)]
    pub(in crate::kernels) fn from_f32(x: f32) -> Self {
        let (bits, sign) = (x.to_bits() & 0x7fff_ffff, x.to_bits() >> 16 & 0x8000);
        // Adding a half puts the last bit of a subnormal result at the end of the mantissa.
        let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let rounded = bits.wrapping_add(0xc800_0fff).wrapping_add(bits >> 13 & 1) >> 13;
        let magnitude = if bits < 0x3880_0000 {
            subnormal
        } else if bits >= 0x477f_f000 {
            0x7c00 // rounds to infinity
        } else {
            rounded
        };
        let quiet = 0x7e00 | bits >> 13 & 0x1ff;
        F16((sign | if x.is_nan() { quiet } else { magnitude }) as u16)
    }
}

/// Numbers that are words as they are.
macro_rules! words {
    (tuned $tuned:literal: $($ty:ty)*) => { $(
        impl Element<$ty> for $ty {
            #[inline(always)]
            fn word(self) -> $ty {
                self
            }
            const SAME: bool = true;
            const TUNED: bool = $tuned;
        }
    )* };
}
words!(tuned true: f32 f64 i32 i64 u32);
words!(tuned false: i8 u8 Bf16 F16);

/// Sums that are elements of results as they are.
macro_rules! sums {
    ($($ty:ty)*) => { $(
        impl Output<$ty> for $ty {
            #[inline(always)]
            fn from_sum(sum: $ty) -> $ty {
                sum
            }
            const SAME: bool = true;
        }
    )* };
}
sums!(f32 f64 i32 i64 u32);

macro_rules! elements {
    ($($from:ty => $to:ty: |$x:ident| $word:expr;)*) => { $(
        impl Element<$to> for $from {
            #[inline(always)]
            fn word(self) -> $to {
                let $x = self;
                $word
            }
        }
    )* };
}
elements! {
    Bf16 => f64: |x| x.to_f32().into();
    F16 => f64: |x| x.to_f32().into();
    f32 => f64: |x| x.into();
    i8 => i32: |x| x.into();
    u8 => i32: |x| x.into();
    i16 => i32: |x| x.into();
    u16 => i32: |x| x.into();
    u32 => i32: |x| x.cast_signed();
    i8 => i64: |x| x.into();
    u8 => i64: |x| x.into();
    i16 => i64: |x| x.into();
    u16 => i64: |x| x.into();
    i32 => i64: |x| x.into();
    u32 => i64: |x| x.into();
    u64 => i64: |x| x.cast_signed();
}

macro_rules! halves {
    ($($from:ty)*) => { $(
        impl Element<f32> for $from {
            #[inline(always)]
            fn word(self) -> f32 {
                self.to_f32()
            }
            const TUNED: bool = true;
        }
    )* };
}
halves!(Bf16 F16);

macro_rules! outputs {
    ($($from:ty => $to:ty: |$x:ident| $element:expr;)*) => { $(
        impl Output<$from> for $to {
            #[inline(always)]
            fn from_sum($x: $from) -> $to {
                $element
            }
        }
    )* };
}
outputs! {
    f32 => Bf16: |x| Bf16::from_f32(x);
    f32 => F16: |x| F16::from_f32(x);
    // Sums of integers wrap: the low bits are those of the sum in the narrower type.
    i32 => i8: |x| x as i8;
    i32 => u8: |x| x as u8;
    i32 => i16: |x| x as i16;
    i32 => u16: |x| x as u16;
    i32 => u32: |x| x.cast_unsigned();
    i64 => u64: |x| x.cast_unsigned();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of an `f16` by its definition.
    fn value(bits: u16) -> f64 {
        let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff) / 1024.0);
        let magnitude = match exponent {
            0 => mantissa * 2_f64.powi(-14),
            31 if mantissa == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + mantissa) * 2_f64.powi(exponent - 15),
        };
        if bits & 0x8000 == 0 { magnitude } else { -magnitude }
    }

    #[test]
    fn f16_converts_exactly_and_rounds_to_even() {
        for bits in 0..=u16::MAX {
            let (x, want) = (F16(bits).to_f32(), value(bits));
            assert!(f64::from(x) == want || x.is_nan() && want.is_nan(), "{bits:#x}");
            assert_eq!(x.is_sign_negative(), bits & 0x8000 != 0);
            if x.is_nan() {
                let back = F16::from_f32(x);
                assert!(value(back.0).is_nan() && back.0 & 0x8000 == bits & 0x8000);
                continue;
            }
            assert_eq!(F16::from_f32(x), F16(bits));
            if bits & 0x7fff < 0x7bff {
                // Halfway to the next, and just below and above.
                let next = F16(bits + 1).to_f32();
                let middle = (x + next) / 2.0;
                let even = if bits & 1 == 0 { bits } else { bits + 1 };
                assert_eq!(F16::from_f32(middle), F16(even), "{bits:#x}");
                let toward = |y: f32| f32::from_bits(middle.to_bits() + 1 - 2 * u32::from(y == x));
                assert_eq!(F16::from_f32(toward(x)), F16(bits), "{bits:#x}");
                assert_eq!(F16::from_f32(toward(next)), F16(bits + 1), "{bits:#x}");
            }
        }
        assert_eq!(F16::from_f32(65519.996), F16(0x7bff));
        assert_eq!(F16::from_f32(65520.0), F16(0x7c00));
        assert_eq!(F16::from_f32(-f32::INFINITY), F16(0xfc00));
        assert_eq!(F16::from_f32(1e-10), F16(0));
    }

    #[test]
    fn bf16_rounds_to_even() {
        let round = |bits: u32| Bf16::from_f32(f32::from_bits(bits)).0;
        assert_eq!(round(0x3f80_8000), 0x3f80);
        assert_eq!(round(0x3f80_8001), 0x3f81);
        assert_eq!(round(0x3f81_8000), 0x3f82);
        assert_eq!(round(0x7f7f_ffff), 0x7f80);
        assert_eq!(round(0xff80_0000), 0xff80);
        assert_eq!(round(0x7f80_0001), 0x7fc0);
        assert_eq!(round(0x0000_8001), 0x0001);
        assert_eq!(Bf16(0xc040).to_f32(), -3.0);
    }
}
