//! Rust's operators on tensors, between tensors, references to them, and all other operands; with a
//! number on the left, `f64` and `i64`: with more, Rust could not infer what `2.0 * x` is.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

use crate::operand::resolve;
use crate::{Operand, Tensor};

macro_rules! operators {
    ($($trait:ident $method:ident $name:ident [$($number:ty)*], $doc:literal;)*) => {$(
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

        operators!(@numbers $trait $method $name $doc $($number)*);
    )*};
    (@numbers $trait:ident $method:ident $name:ident $doc:literal $($number:ty)*) => {$(
        #[doc = $doc]
        impl $trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: &Tensor) -> Tensor {
                number_first(stringify!($name), self, rhs, |lhs| lhs.$name(rhs))
            }
        }

        #[doc = $doc]
        impl $trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: Tensor) -> Tensor {
                $trait::$method(self, &rhs)
            }
        }
    )*};
}
operators! {
    Add add add [f64 i64], "See [`Tensor::add`].";
    Sub sub sub [f64 i64], "See [`Tensor::sub`].";
    Mul mul mul [f64 i64], "See [`Tensor::mul`].";
    Div div div [f64 i64], "See [`Tensor::div`].";
    Rem rem modulo [f64 i64], "See [`Tensor::modulo`]: the sign is the divisor's, unlike that of Rust's numbers.";
    BitAnd bitand bitwise_and [], "See [`Tensor::bitwise_and`].";
    BitOr bitor bitwise_or [], "See [`Tensor::bitwise_or`].";
    BitXor bitxor bitwise_xor [], "See [`Tensor::bitwise_xor`].";
}

/// An operation whose left operand is a number, of the right one's type.
#[track_caller]
fn number_first(
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
