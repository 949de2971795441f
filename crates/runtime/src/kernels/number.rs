//! Arithmetic on elements whose type is known at run time only.

use std::marker::PhantomData;
use std::ops::BitXor;

use super::gemm::{Bf16, F16};
use half::{bf16, f16};

use super::bytes::Plain;

/// Types that kernels compute with. `pred` is [`NumberType::U8`], where its values are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Their names say it.
pub enum NumberType {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl NumberType {
    /// The size of an element in bytes.
    pub fn size(self) -> usize {
        with_number!(self, T => size_of::<T>())
    }
}

/// How two numbers become one; associative up to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum; integers wrap.
    Add,
    /// The product; integers wrap.
    Mul,
    /// IEEE 754-2019 `maximum`: NaN if either is, and 0 above -0.
    Max,
    /// IEEE 754-2019 `minimum`: NaN if either is, and -0 below 0.
    Min,
}

/// Evaluates an expression with `$T` standing for the [`Number`] of this type.
macro_rules! with_number {
    ($ty:expr, $T:ident => $body:expr) => {
        with_number!(@arms $ty, $T, $body,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@arms $ty:expr, $T:ident, $body:expr, $($variant:ident $name:ty),*) => {
        match $ty {
            $($crate::kernels::number::NumberType::$variant => {
                type $T = $name;
                $body
            })*
        }
    };
}
use with_number;

/// Evaluates an expression with `$F` standing for the [`FoldOp`] of this fold.
macro_rules! with_fold {
    ($fold:expr, $F:ident => $body:expr) => {
        with_fold!(@arms $fold, $F, $body, Add, Mul, Max, Min)
    };
    (@arms $fold:expr, $F:ident, $body:expr, $($name:ident),*) => {
        match $fold {
            $($crate::kernels::number::Fold::$name => {
                type $F = $crate::kernels::number::$name;
                $body
            })*
        }
    };
}
pub(super) use with_fold;

/// A number.
pub(super) trait Number: Plain + PartialOrd {
    /// The type in which several are combined before one is rounded.
    type Wide: Number;

    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;

    /// Whether a comparison of this with another number says which of them is their maximum and which their minimum, as it
    /// is neither NaN nor zero; `false` also where that is not worth asking.
    #[inline(always)]
    fn decides(self) -> bool {
        false
    }
}

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Number for $ty {
            type Wide = Self;
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }
        }
    )* };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($ty:ty)*) => { $(
        impl Number for $ty {
            type Wide = Self;
            #[inline(always)]
            fn widen(self) -> Self {
                self
            }
            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                // Equal numbers differ in the sign of zero at most. If `other` is NaN, it is taken.
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let larger = if self > other { self } else { other };
                let number = if self == other { equal } else { larger };
                if self.is_nan() { self } else { number }
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let smaller = if self < other { self } else { other };
                let number = if self == other { equal } else { smaller };
                if self.is_nan() { self } else { number }
            }
            #[inline(always)]
            fn decides(self) -> bool {
                self.abs() > 0.0
            }
        }
    )* };
}

floats!(f32 f64);

macro_rules! short_floats {
    ($($ty:ty as $short:ident)*) => { $(
        // SAFETY: 16 bits, all patterns of which are floats.
        unsafe impl Plain for $ty {}

        impl Number for $ty {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $short(self.to_bits()).to_f32()
            }
            #[inline(always)]
            fn narrow(wide: f32) -> Self {
                <$ty>::from_bits($short::from_f32(wide).0)
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self::narrow(self.widen() + other.widen())
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self::narrow(self.widen() * other.widen())
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self::narrow(Number::max(self.widen(), other.widen()))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self::narrow(Number::min(self.widen(), other.widen()))
            }
        }
    )* };
}

// By conversions without branches, so that loops become vectors.
short_floats!(f16 as F16 bf16 as Bf16);

/// A [`Fold`] as a type, so that loops are compiled for each.
pub(super) trait FoldOp: Copy + Send + Sync {
    fn apply<T: Number>(a: T, b: T) -> T;

    /// Whether [`Self::apply_decided`] may be called with `b` and any other number; `false` where it is no faster.
    #[inline(always)]
    fn is_decided<T: Number>(_b: T) -> bool {
        false
    }

    /// The same as [`Self::apply`], where `b` is such that [`Self::is_decided`].
    #[inline(always)]
    fn apply_decided<T: Number>(a: T, b: T) -> T {
        Self::apply(a, b)
    }
}

macro_rules! folds {
    ($($name:ident $method:ident $(by $beats:tt)?;)*) => { $(
        #[doc = concat!("[`Fold::", stringify!($name), "`].")]
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl FoldOp for $name {
            #[inline(always)]
            fn apply<T: Number>(a: T, b: T) -> T {
                a.$method(b)
            }
            $(
                #[inline(always)]
                fn is_decided<T: Number>(b: T) -> bool {
                    b.decides()
                }
                #[inline(always)]
                fn apply_decided<T: Number>(a: T, b: T) -> T {
                    if b $beats a { b } else { a }
                }
            )?
        }
    )* };
}

folds! {
    Add add;
    Mul mul;
    Max max by >;
    Min min by <;
}

/// A [`Fold`] of elements of some type as loops see it. Integers are unsigned here, since their sums
/// and products have the same bits, and their extremes differ in bits that are flipped: so loops are
/// compiled for few types.
pub(super) trait Folding: Copy + Send + Sync {
    /// What is in memory.
    type Element: Plain;
    /// What is folded.
    type Wide: Number;
    /// How.
    type Op: FoldOp;

    /// The number that an element is.
    fn widen(self, element: Self::Element) -> Self::Wide;

    /// The element that a number becomes.
    fn narrow(self, wide: Self::Wide) -> Self::Element;

    /// The fold of two elements.
    #[inline(always)]
    fn fold(self, a: Self::Element, b: Self::Element) -> Self::Element {
        self.narrow(<Self::Op as FoldOp>::apply(self.widen(a), self.widen(b)))
    }

    /// Whether [`Self::fold_decided`] may be called with `b` and any other element; `false` where it is no faster.
    #[inline(always)]
    fn is_decided(self, b: Self::Element) -> bool {
        // (What is not as wide in memory takes its time elsewhere.)
        size_of::<Self::Element>() == size_of::<Self::Wide>() && Self::Op::is_decided(self.widen(b))
    }

    /// The same as [`Self::fold`], where `b` is such that [`Self::is_decided`].
    #[inline(always)]
    fn fold_decided(self, a: Self::Element, b: Self::Element) -> Self::Element {
        self.narrow(<Self::Op as FoldOp>::apply_decided(self.widen(a), self.widen(b)))
    }
}

/// Numbers as they are.
#[derive(Clone, Copy)]
pub(super) struct Numbers<T, F>(pub(super) PhantomData<(T, F)>);

impl<T: Number, F: FoldOp> Folding for Numbers<T, F> {
    type Element = T;
    type Wide = T::Wide;
    type Op = F;

    #[inline(always)]
    fn widen(self, element: T) -> T::Wide {
        element.widen()
    }

    #[inline(always)]
    fn narrow(self, wide: T::Wide) -> T {
        T::narrow(wide)
    }
}

/// The largest or the smallest of integers: the largest of the unsigned ones that they become if these
/// bits are flipped.
#[derive(Clone, Copy)]
pub(super) struct Extreme<T> {
    pub(super) flip: T,
}

impl<T: Number<Wide = T> + BitXor<Output = T>> Folding for Extreme<T> {
    type Element = T;
    type Wide = T;
    type Op = Max;

    #[inline(always)]
    fn widen(self, element: T) -> T {
        element ^ self.flip
    }

    #[inline(always)]
    fn narrow(self, wide: T) -> T {
        wide ^ self.flip
    }
}

/// The bits of [`Extreme::flip`], from the lowest on: the sign's, and all for the smallest.
pub(super) fn flipped_bits(ty: NumberType, fold: Fold) -> u64 {
    use NumberType::{I8, I16, I32, I64};
    let sign = if matches!(ty, I8 | I16 | I32 | I64) { 1 << (8 * ty.size() - 1) } else { 0 };
    if fold == Fold::Min { !sign } else { sign }
}

/// Evaluates an expression with `$folding` standing for the [`Folding`] of this type and this fold.
macro_rules! with_folding {
    ($ty:expr, $fold:expr, $folding:ident => $body:expr) => {
        with_folding!(@arms $ty, $fold, $folding, $body,
            [I8 U8 u8, I16 U16 u16, I32 U32 u32, I64 U64 u64],
            [F16 half::f16, BF16 half::bf16, F32 f32, F64 f64])
    };
    (@arms $ty:expr, $fold:expr, $folding:ident, $body:expr,
     [$($signed:ident $unsigned:ident $integer:ty),*], [$($variant:ident $float:ty),*]) => {
        match $ty {
            $(ty @ (NumberType::$signed | NumberType::$unsigned) => match $fold {
                Fold::Add => with_folding!(@numbers $integer, Add, $folding, $body),
                Fold::Mul => with_folding!(@numbers $integer, Mul, $folding, $body),
                fold => {
                    let flip = $crate::kernels::number::flipped_bits(ty, fold) as $integer;
                    let $folding = $crate::kernels::number::Extreme { flip };
                    $body
                }
            },)*
            $(NumberType::$variant => {
                with_fold!($fold, F => with_folding!(@numbers $float, F, $folding, $body))
            })*
        }
    };
    (@numbers $number:ty, $fold:ident, $folding:ident, $body:expr) => {{
        use $crate::kernels::number::*;
        let $folding = Numbers::<$number, $fold>(std::marker::PhantomData);
        $body
    }};
}
pub(super) use with_folding;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximum_and_minimum_of_zeros_and_nan() {
        let bits = |v: f32| v.to_bits();
        for (a, b) in [(0.0f32, -0.0f32), (-0.0, 0.0)] {
            assert_eq!(bits(Number::max(a, b)), bits(0.0));
            assert_eq!(bits(Number::min(a, b)), bits(-0.0));
        }
        let nan = f32::from_bits(0xffc0_1234);
        for (a, b) in [(nan, 1.0), (1.0, nan), (nan, f32::NAN)] {
            assert_eq!(bits(Number::max(a, b)), bits(nan));
            assert_eq!(bits(Number::min(a, b)), bits(nan));
        }
        let numbers =
            [0.0, -0.0, 1.5, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 1e-40];
        for (a, b) in numbers.iter().flat_map(|&a| numbers.map(|b| (a, b))) {
            assert_eq!(Max::is_decided(b), b != 0.0 && !b.is_nan());
            if Max::is_decided(b) {
                assert_eq!(bits(Max::apply_decided(a, b)), bits(Max::apply(a, b)), "{a} {b}");
                assert_eq!(bits(Min::apply_decided(a, b)), bits(Min::apply(a, b)), "{a} {b}");
            }
        }
        assert_eq!(Number::max(2.0f64, 3.0), 3.0);
        assert_eq!(Number::min(-2.0f64, 3.0), -2.0);
        assert_eq!(Number::max(bf16::from_f32(2.0), bf16::from_f32(3.0)), bf16::from_f32(3.0));
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(Number::add(200u8, 100), 44);
        assert_eq!(Number::mul(i32::MAX, 2), -2);
    }
}
