//! Elements as unsigned numbers whose order is that of the elements.

use std::ops::{BitAnd, BitXor, Not};

use super::super::bytes::Plain;
use super::super::isa::vectorised;

/// How elements of a type compare, by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Unsigned integers, `pred` among them.
    Unsigned,
    /// Two's complement.
    Signed,
    /// Floats in IEEE's total order: -NaN, -inf … -0, 0 … inf, NaN.
    Total,
    /// Floats as numbers: the zeros are equal, and all NaNs are equal and above everything else.
    Numeric {
        /// The bits of the least magnitude that does not count as zero: 1, or, where subnormal numbers do,
        /// those of the least normal number.
        least: u64,
        /// The bits of the largest magnitude that is not NaN: infinity, if the type has it.
        largest: u64,
    },
}

/// What one operand contributes to the order of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Which operand.
    pub operand: usize,
    /// How its elements compare.
    pub order: KeyOrder,
    /// Whether what is largest comes first.
    pub descending: bool,
}

/// An unsigned integer of an element's size.
pub(super) trait Bits:
    Plain + Ord + BitAnd<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    const ZERO: Self;
    const ALL: Self;
    /// The highest bit.
    const SIGN: Self;
    fn widen(self) -> u64;
    /// The lowest bits.
    fn narrow(bits: u64) -> Self;
}

macro_rules! bits {
    ($($ty:ty),*) => { $(
        impl Bits for $ty {
            const ZERO: Self = 0;
            const ALL: Self = <$ty>::MAX;
            const SIGN: Self = 1 << (<$ty>::BITS - 1);
            #[inline(always)]
            fn widen(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn narrow(bits: u64) -> Self {
                bits as $ty
            }
        }
    )* };
}

bits!(u8, u16, u32, u64);

/// Elements to ranks and back. One formula without branches serves all orders, so that loops of it
/// are vector code.
#[derive(Clone, Copy)]
pub(super) struct Ranks<T> {
    /// The least magnitude that does not stand for the same as zero.
    least: T,
    /// The largest magnitude that is a number.
    largest: T,
    /// The bits that are flipped in all numbers, and those that are flipped besides in negative ones.
    flipped: T,
    otherwise: T,
}

impl<T: Bits> Ranks<T> {
    pub(super) fn new(order: KeyOrder, descending: bool) -> Self {
        let (flip_negative, flip_positive) = match order {
            KeyOrder::Unsigned => (T::ZERO, T::ZERO),
            KeyOrder::Signed => (T::SIGN, T::SIGN),
            KeyOrder::Total | KeyOrder::Numeric { .. } => (T::ALL, T::SIGN),
        };
        let (least, largest) = match order {
            KeyOrder::Numeric { least, largest } => (T::narrow(least), T::narrow(largest)),
            _ => (T::ZERO, T::ALL),
        };
        let reversal = if descending { T::ALL } else { T::ZERO };
        let flipped = flip_positive ^ reversal;
        Ranks { least, largest, flipped, otherwise: flip_negative ^ flip_positive }
    }

    #[inline(always)]
    fn is_nan(&self, bits: T) -> bool {
        bits & !T::SIGN > self.largest
    }

    #[inline(always)]
    fn is_zero(&self, bits: T) -> bool {
        bits & !T::SIGN < self.least
    }

    /// Of two elements, the one that comes first has the lower rank.
    #[inline(always)]
    pub(super) fn rank(&self, bits: T) -> T {
        // All NaNs become the one with the largest bits; its rank is above infinity's.
        let bits = if self.is_nan(bits) { !T::SIGN } else { bits };
        let bits = if self.is_zero(bits) { T::ZERO } else { bits };
        bits ^ self.flipped ^ self.of_negative(bits)
    }

    /// The element of this rank; of those that compare equal, one.
    #[inline(always)]
    pub(super) fn element(&self, rank: T) -> T {
        let bits = rank ^ self.flipped;
        bits ^ self.of_negative(bits)
    }

    /// What is flipped besides if the number is negative. (A mask rather than a choice of fields, which
    /// the compiler makes one of addresses, and loads lanes one by one.)
    #[inline(always)]
    fn of_negative(&self, bits: T) -> T {
        let mask = if bits & T::SIGN == T::ZERO { T::ZERO } else { T::ALL };
        self.otherwise & mask
    }

    /// Whether the rank does not tell all about some element.
    pub(super) fn loses(&self, elements: &[T]) -> bool {
        let lost = |bits: T| self.is_nan(bits) | (self.is_zero(bits) & (bits != T::ZERO));
        self.least != T::ZERO
            && vectorised(
                #[inline(always)]
                || elements.iter().fold(false, |any, &v| any | lost(v)),
            )
    }

    /// Puts the very bits of zeros and NaNs among elements in order that were made of ranks; they
    /// are equal to each other, so stay in the order of `from`.
    pub(super) fn restore(&self, from: &[T], to: &mut [T]) {
        if !self.loses(from) {
            return;
        }
        let is_zero = |bits: T| self.is_zero(bits);
        let is_nan = |bits: T| self.is_nan(bits);
        for (is_one, rank) in
            [(&is_zero as &dyn Fn(T) -> bool, self.rank(T::ZERO)), (&is_nan, self.rank(!T::SIGN))]
        {
            let start = to.partition_point(|&v| self.rank(v) < rank);
            let originals = from.iter().filter(|&&v| is_one(v));
            for (to, &original) in to[start..].iter_mut().zip(originals) {
                *to = original;
            }
        }
    }
}
