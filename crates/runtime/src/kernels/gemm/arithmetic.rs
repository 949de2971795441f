//! Which instructions compute with which types.

use super::Out;
use super::engine::Shared;
use super::number::{Bf16, Element, F16, Output, ProductType};
use super::pack::Elements;
use super::simd::{self, Loops, MulAdd};
use crate::kernels::bytes::{cast, cast_mut};
use crate::kernels::isa::Isa;

/// A type whose sums of products are of the same type, and the instructions for it.
pub(super) trait Arithmetic: MulAdd + Element<Self> + Output<Self> {
    /// The instructions of a set.
    fn instructions(isa: Isa) -> &'static dyn Loops<Self, Self>;

    /// Whether operands of this number type can be converted to the type.
    fn takes(number: ProductType) -> bool;
    /// Whether results of the type can be converted to this number type.
    fn makes(number: ProductType) -> bool;

    /// Calls `body` with these bytes as numbers of a kind that it takes.
    fn with_elements(number: ProductType, bytes: &[u8], body: &mut dyn FnMut(&dyn Elements<Self>));
    /// Calls `body` with these bytes as places for numbers of a kind that it makes.
    fn with_places(number: ProductType, bytes: &mut [u8], body: &mut dyn FnMut(Out<'_, Self>));
}

/// A floating-point type.
pub(super) trait Float: Arithmetic {
    /// Whether this is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

impl Float for f32 {
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }
}

impl Float for f64 {
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

macro_rules! arithmetic {
    ($($ty:ident: $avx512:ident, $avx2:ident, from [$($from:ident: $in:ty),*], to [$($to:ident: $out:ty),*];)*) => { $(
        impl Arithmetic for $ty {
            fn instructions(isa: Isa) -> &'static dyn Loops<Self, Self> {
                #[cfg(target_arch = "x86_64")]
                {
                    if let Some(simd) = simd::$avx512::get(isa) {
                        return simd;
                    }
                    if let Some(simd) = simd::$avx2::get(isa) {
                        return simd;
                    }
                }
                let _ = isa;
                &simd::Portable(std::marker::PhantomData)
            }

            fn takes(number: ProductType) -> bool {
                matches!(number, $(ProductType::$from)|*)
            }

            fn makes(number: ProductType) -> bool {
                matches!(number, $(ProductType::$to)|*)
            }

            fn with_elements(number: ProductType, bytes: &[u8], body: &mut dyn FnMut(&dyn Elements<Self>)) {
                match number {
                    $(ProductType::$from => body(&cast::<$in>(bytes)),)*
                    _ => unreachable!("checked by `takes`"),
                }
            }

            fn with_places(number: ProductType, bytes: &mut [u8], body: &mut dyn FnMut(Out<'_, Self>)) {
                match number {
                    $(ProductType::$to => {
                        let slice = cast_mut::<$out>(bytes);
                        body(Out { len: slice.len(), places: &Shared(slice.as_mut_ptr()) });
                    })*
                    _ => unreachable!("checked by `makes`"),
                }
            }
        }
    )* };
}
arithmetic! {
    f32: Avx512F32, Avx2F32,
        from [F32: f32, Bf16: Bf16, F16: F16],
        to [F32: f32, Bf16: Bf16, F16: F16];
    f64: Avx512F64, Avx2F64,
        from [F64: f64, F32: f32, Bf16: Bf16, F16: F16],
        to [F64: f64];
    i32: Avx512I32, Avx2I32,
        from [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32],
        to [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32];
    i64: Avx512I64, Avx2I64,
        from [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32, S64: i64, U64: u64],
        to [S64: i64, U64: u64];
}
