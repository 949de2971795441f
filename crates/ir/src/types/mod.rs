//! Element types, shapes, layouts and literals.

mod display;
mod element;
mod float_format;
mod layout;
mod literal;
mod native;
mod plain;
mod shape;

pub use display::ArrayDisplay;
pub use element::ElementType;
pub use float_format::{FloatFormat, FloatSpecials};
pub use layout::Layout;
pub use literal::{Array, ArrayData, Literal, WeakArray};
pub use native::{F8E8M0FNU, I2, I4, Native, Number, U2, U4};
pub use plain::Plain;
pub use shape::{ArrayShape, DimKind, IndexIter, MAX_RANK, Shape, strides};

/// Calls `$macro!` with one row per element type: `Variant, rust type, "hlo name", bits, class`; what
/// follows the macro's name comes before the rows, in brackets.
///
/// The single list from which the enum of types, the storage of literals and every dispatch over
/// types are made.
#[macro_export]
macro_rules! for_each_element_type {
    ($macro:tt $(:: $name:ident)* $(, $($arguments:tt)*)?) => {
        $macro $(:: $name)*! {
            $([$($arguments)*])?
            Pred, bool, "pred", 8, Pred;
            S2, $crate::types::I2, "s2", 2, Signed;
            S4, $crate::types::I4, "s4", 4, Signed;
            S8, i8, "s8", 8, Signed;
            S16, i16, "s16", 16, Signed;
            S32, i32, "s32", 32, Signed;
            S64, i64, "s64", 64, Signed;
            U2, $crate::types::U2, "u2", 2, Unsigned;
            U4, $crate::types::U4, "u4", 4, Unsigned;
            U8, u8, "u8", 8, Unsigned;
            U16, u16, "u16", 16, Unsigned;
            U32, u32, "u32", 32, Unsigned;
            U64, u64, "u64", 64, Unsigned;
            F4E2M1FN, $crate::types::F4E2M1FN, "f4e2m1fn", 4, Float;
            F8E3M4, $crate::types::F8E3M4, "f8e3m4", 8, Float;
            F8E4M3, $crate::types::F8E4M3, "f8e4m3", 8, Float;
            F8E4M3FN, $crate::types::F8E4M3FN, "f8e4m3fn", 8, Float;
            F8E4M3B11FNUZ, $crate::types::F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, Float;
            F8E4M3FNUZ, $crate::types::F8E4M3FNUZ, "f8e4m3fnuz", 8, Float;
            F8E5M2, $crate::types::F8E5M2, "f8e5m2", 8, Float;
            F8E5M2FNUZ, $crate::types::F8E5M2FNUZ, "f8e5m2fnuz", 8, Float;
            F8E8M0FNU, $crate::types::F8E8M0FNU, "f8e8m0fnu", 8, Float;
            F16, $crate::types::F16, "f16", 16, Float;
            BF16, $crate::types::BF16, "bf16", 16, Float;
            F32, f32, "f32", 32, Float;
            F64, f64, "f64", 64, Float;
            C64, $crate::types::C64, "c64", 64, Complex;
            C128, $crate::types::C128, "c128", 128, Complex;
        }
    };
}

pub use half::{bf16 as BF16, f16 as F16};
pub use minifloat::{
    F4E2M1FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
};

/// A complex number of two [`f32`].
pub type C64 = num_complex::Complex<f32>;
/// A complex number of two [`f64`].
pub type C128 = num_complex::Complex<f64>;
