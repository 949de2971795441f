//! Rust's operators on tensors, between tensors, references to them, and all other operands.
//!
//! On the left stand tensors, arrays, bools, `f64`, `i64`, 16-bit floats and complex numbers. Not `f32`
//! and `i32`: with two types of floats there, Rust could not infer what `(2.0 * x).exp()` is. Such a
//! number stands on the right, or is written `f64::from(a)`, whose value is the same.

use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign,
    Mul, MulAssign, Neg, Not, Rem, RemAssign, Sub, SubAssign,
};

use helio::Array;
use helio::ir::types::{BF16, C64, C128, F16};

use crate::operand::resolve;
use crate::{Operand, Tensor};

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $name:ident [$($left:ty)*],
        $doc:literal;)*) => {$(
        #[doc = $doc]
        impl<R: Operand> $trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                self.$name(rhs)
            }
        }

        #[doc = $doc]
        impl<R: Operand> $trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                Tensor::$name(&self, rhs)
            }
        }

        #[doc = $doc]
        impl<R: Operand> $assign<R> for Tensor {
            #[track_caller]
            fn $assign_method(&mut self, rhs: R) {
                *self = Tensor::$name(self, rhs);
            }
        }

        operators!(@left $trait $method $name $doc $($left)*);
    )*};
    (@left $trait:ident $method:ident $name:ident $doc:literal $($left:ty)*) => {$(
        #[doc = $doc]
        impl $trait<&Tensor> for $left {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: &Tensor) -> Tensor {
                other_first(stringify!($name), self, rhs, |lhs| lhs.$name(rhs))
            }
        }

        #[doc = $doc]
        impl $trait<Tensor> for $left {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: Tensor) -> Tensor {
                $trait::$method(self, &rhs)
            }
        }
    )*};
}
operators! {
    Add add AddAssign add_assign add [f64 i64 F16 BF16 C64 C128 Array &Array], "See [`Tensor::add`].";
    Sub sub SubAssign sub_assign sub [f64 i64 F16 BF16 C64 C128 Array &Array], "See [`Tensor::sub`].";
    Mul mul MulAssign mul_assign mul [f64 i64 F16 BF16 C64 C128 Array &Array], "See [`Tensor::mul`].";
    Div div DivAssign div_assign div [f64 i64 F16 BF16 C64 C128 Array &Array], "See [`Tensor::div`].";
    Rem rem RemAssign rem_assign modulo [f64 i64 F16 BF16 Array &Array],
        "See [`Tensor::modulo`]: the sign is the divisor's, unlike that of Rust's numbers.";
    BitAnd bitand BitAndAssign bitand_assign bitwise_and [bool i64 Array &Array],
        "See [`Tensor::bitwise_and`].";
    BitOr bitor BitOrAssign bitor_assign bitwise_or [bool i64 Array &Array],
        "See [`Tensor::bitwise_or`].";
    BitXor bitxor BitXorAssign bitxor_assign bitwise_xor [bool i64 Array &Array],
        "See [`Tensor::bitwise_xor`].";
}

/// An operation whose left operand is no tensor; of the right one's type, if it is a number.
#[track_caller]
fn other_first(
    name: &'static str,
    lhs: impl Operand,
    rhs: &Tensor,
    combine: impl FnOnce(&Tensor) -> Tensor,
) -> Tensor {
    rhs.call(name, |ty| Ok(combine(&resolve(lhs, rhs.graph(), ty.dtype)?)))
}

macro_rules! prefix_operators {
    ($($trait:ident $method:ident $name:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        impl $trait for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self) -> Tensor {
                self.$name()
            }
        }

        #[doc = $doc]
        impl $trait for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self) -> Tensor {
                self.$name()
            }
        }
    )*};
}
prefix_operators! {
    Neg neg negate, "See [`Tensor::negate`].";
    Not not bitwise_not, "See [`Tensor::bitwise_not`].";
}
