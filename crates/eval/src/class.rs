//! Code for each element type of a class: `dispatch_type!` restricted to integers, floats or complex
//! numbers, with something else to do for the rest.

macro_rules! dispatch_among {
    ($element:expr, $T:ident => $body:expr, else $other:expr; $($variant:ident $native:ty,)*) => {
        match $element {
            $(helio_ir::ElementType::$variant => {
                type $T = $native;
                $body
            })*
            _ => $other,
        }
    };
}

/// `$body` with `$T` standing for the Rust type of an integer type; `$other` for all others.
macro_rules! dispatch_integer {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        crate::class::dispatch_among! { $element, $T => $body, else $other;
            S2 helio_ir::types::I2, S4 helio_ir::types::I4, S8 i8, S16 i16, S32 i32, S64 i64,
            U2 helio_ir::types::U2, U4 helio_ir::types::U4, U8 u8, U16 u16, U32 u32, U64 u64,
        }
    };
}

/// `$body` with `$T` standing for the Rust type of a float type; `$other` for all others.
macro_rules! dispatch_float {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        crate::class::dispatch_among! { $element, $T => $body, else $other;
            F4E2M1FN helio_ir::types::F4E2M1FN, F8E3M4 helio_ir::types::F8E3M4,
            F8E4M3 helio_ir::types::F8E4M3, F8E4M3FN helio_ir::types::F8E4M3FN,
            F8E4M3B11FNUZ helio_ir::types::F8E4M3B11FNUZ,
            F8E4M3FNUZ helio_ir::types::F8E4M3FNUZ, F8E5M2 helio_ir::types::F8E5M2,
            F8E5M2FNUZ helio_ir::types::F8E5M2FNUZ, F8E8M0FNU helio_ir::types::F8E8M0FNU,
            F16 helio_ir::types::F16, BF16 helio_ir::types::BF16, F32 f32, F64 f64,
        }
    };
}

/// `$body` with `$T` standing for the Rust type of a complex type; `$other` for all others.
macro_rules! dispatch_complex {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {
        crate::class::dispatch_among! { $element, $T => $body, else $other;
            C64 helio_ir::types::C64, C128 helio_ir::types::C128,
        }
    };
}

pub(crate) use {dispatch_among, dispatch_complex, dispatch_float, dispatch_integer};
