//! Which instructions compute with which types.

use super::Out;
use super::engine::Shared;
use crate::kernels::isa::Isa;
use super::number::{Bf16, Element, F16, Number, Output};
use super::pack::Elements;
use super::simd::{self, MulAdd, Simd};
use crate::kernels::bytes::{cast, cast_mut};

/// A type whose sums of products are of the same type, and the instructions for it.
pub(super) trait Arithmetic: MulAdd + Element<Self> + Output<Self> {
    /// With AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Simd<Word = Self, Acc = Self>;
    /// With AVX2.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Simd<Word = Self, Acc = Self>;

    /// The first of them that the machine has.
    #[cfg(target_arch = "x86_64")]
    fn avx512(isa: Isa) -> Option<Self::Avx512>;
    /// The second, likewise.
    #[cfg(target_arch = "x86_64")]
    fn avx2(isa: Isa) -> Option<Self::Avx2>;

    /// Whether numbers become this type.
    fn takes(number: Number) -> bool;
    /// Whether this type becomes such numbers.
    fn makes(number: Number) -> bool;

    /// Calls `body` with these bytes as numbers of a kind that it takes.
    fn with_elements(number: Number, bytes: &[u8], body: &mut dyn FnMut(&dyn Elements<Self>));
    /// Calls `body` with these bytes as places for numbers of a kind that it makes.
    fn with_places(number: Number, bytes: &mut [u8], body: &mut dyn FnMut(Out<'_, Self>));
}

/// A floating-point type.
pub(super) trait Float: Arithmetic {}
impl Float for f32 {}
impl Float for f64 {}

macro_rules! arithmetic {
    ($($ty:ident: $avx512:ty, $avx2:ty, from [$($from:ident: $in:ty),*], to [$($to:ident: $out:ty),*];)*) => { $(
        impl Arithmetic for $ty {
            #[cfg(target_arch = "x86_64")]
            type Avx512 = $avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = $avx2;

            #[cfg(target_arch = "x86_64")]
            fn avx512(isa: Isa) -> Option<Self::Avx512> {
                <$avx512>::new(isa)
            }
            #[cfg(target_arch = "x86_64")]
            fn avx2(isa: Isa) -> Option<Self::Avx2> {
                <$avx2>::new(isa)
            }

            fn takes(number: Number) -> bool {
                matches!(number, $(Number::$from)|*)
            }

            fn makes(number: Number) -> bool {
                matches!(number, $(Number::$to)|*)
            }

            fn with_elements(number: Number, bytes: &[u8], body: &mut dyn FnMut(&dyn Elements<Self>)) {
                match number {
                    $(Number::$from => body(&cast::<$in>(bytes)),)*
                    _ => unreachable!("checked by `takes`"),
                }
            }

            fn with_places(number: Number, bytes: &mut [u8], body: &mut dyn FnMut(Out<'_, Self>)) {
                match number {
                    $(Number::$to => {
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
    f32: simd::Avx512F32, simd::Avx2F32,
        from [F32: f32, Bf16: Bf16, F16: F16],
        to [F32: f32, Bf16: Bf16, F16: F16];
    f64: simd::Avx512F64, simd::Avx2F64,
        from [F64: f64, F32: f32, Bf16: Bf16, F16: F16],
        to [F64: f64];
    i32: simd::Avx512I32, simd::Avx2I32,
        from [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32],
        to [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32];
    i64: simd::Avx512I64, simd::Avx2I64,
        from [S8: i8, U8: u8, S16: i16, U16: u16, S32: i32, U32: u32, S64: i64, U64: u64],
        to [S64: i64, U64: u64];
}

/// Evaluates `$body` with `$simd` for the arithmetic of the [`Arithmetic`] `$T` that `$isa` has.
macro_rules! with_arithmetic {
    ($T:ty, $isa:expr, $simd:ident => $body:expr) => {
        'computed: {
            #[cfg(target_arch = "x86_64")]
            {
                use $crate::kernels::gemm::arithmetic::Arithmetic;
                if let Some($simd) = <$T as Arithmetic>::avx512($isa) {
                    break 'computed $body;
                }
                if let Some($simd) = <$T as Arithmetic>::avx2($isa) {
                    break 'computed $body;
                }
            }
            let $simd = $crate::kernels::gemm::simd::Portable::<$T>(std::marker::PhantomData);
            $body
        }
    };
}
pub(super) use with_arithmetic;
