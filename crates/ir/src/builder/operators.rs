//! Rust's operators on [`XlaOp`], between handles, references to them, and numbers (on the left
//! `f64`, `i64`, `bool`, on the right any).

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::{Operand, XlaOp};

macro_rules! binary {
    ($($trait:ident $method:ident $name:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        impl<R: Operand> $trait<R> for &XlaOp {
            type Output = XlaOp;
            #[track_caller]
            fn $method(self, rhs: R) -> XlaOp {
                self.$name(rhs)
            }
        }

        #[doc = $doc]
        impl<R: Operand> $trait<R> for XlaOp {
            type Output = XlaOp;
            #[track_caller]
            fn $method(self, rhs: R) -> XlaOp {
                XlaOp::$name(&self, rhs)
            }
        }
    )*};
}
binary! {
    Add add add, "[`XlaOp::add`]";
    Sub sub sub, "[`XlaOp::sub`]";
    Mul mul mul, "[`XlaOp::mul`]";
    Div div div, "[`XlaOp::div`]";
    Rem rem rem, "[`XlaOp::rem`]";
    BitAnd bitand and, "[`XlaOp::and`]";
    BitOr bitor or, "[`XlaOp::or`]";
    BitXor bitxor xor, "[`XlaOp::xor`]";
    Shl shl shift_left, "[`XlaOp::shift_left`]";
    Shr shr shift_right, "[`XlaOp::shift_right`]";
}

macro_rules! number_first {
    ($($number:ty: $($trait:ident $method:ident $name:ident),*;)*) => {$($(
        #[doc = concat!("See [`XlaOp::", stringify!($name), "`].")]
        impl $trait<&XlaOp> for $number {
            type Output = XlaOp;
            #[track_caller]
            fn $method(self, rhs: &XlaOp) -> XlaOp {
                self.into_op(rhs).$name(rhs)
            }
        }

        #[doc = concat!("See [`XlaOp::", stringify!($name), "`].")]
        impl $trait<XlaOp> for $number {
            type Output = XlaOp;
            #[track_caller]
            fn $method(self, rhs: XlaOp) -> XlaOp {
                self.into_op(&rhs).$name(&rhs)
            }
        }
    )*)*};
}
// One type of literals each: with more, `2.0 * x` would need a suffix to say which is meant.
number_first! {
    f64: Add add add, Sub sub sub, Mul mul mul, Div div div, Rem rem rem;
    i64: Add add add, Sub sub sub, Mul mul mul, Div div div, Rem rem rem,
        BitAnd bitand and, BitOr bitor or, BitXor bitxor xor;
    bool: BitAnd bitand and, BitOr bitor or, BitXor bitxor xor;
}

/// [`XlaOp::neg`]
impl Neg for &XlaOp {
    type Output = XlaOp;
    #[track_caller]
    fn neg(self) -> XlaOp {
        XlaOp::neg(self)
    }
}

/// [`XlaOp::neg`]
impl Neg for XlaOp {
    type Output = XlaOp;
    #[track_caller]
    fn neg(self) -> XlaOp {
        XlaOp::neg(&self)
    }
}

/// [`XlaOp::not`]
impl Not for &XlaOp {
    type Output = XlaOp;
    #[track_caller]
    fn not(self) -> XlaOp {
        XlaOp::not(self)
    }
}

/// [`XlaOp::not`]
impl Not for XlaOp {
    type Output = XlaOp;
    #[track_caller]
    fn not(self) -> XlaOp {
        XlaOp::not(&self)
    }
}
