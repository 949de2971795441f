//! Elements as unsigned numbers whose order is that of the elements.

use super::super::bytes::Plain;

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
pub(in super::super) trait Bits: Plain {
    /// How many there are of them.
    const COUNT: u32 = 8 * size_of::<Self>() as u32;
    fn widen(self) -> u64;
    fn narrow(bits: u64) -> Self;
}

macro_rules! bits {
    ($($ty:ty),*) => { $(
        impl Bits for $ty {
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
pub(in super::super) struct Ranks {
    all: u64,
    sign: u64,
    /// Bits that stand for the same as zero.
    alias: u64,
    /// The largest magnitude that is a number.
    largest: u64,
    flip_negative: u64,
    flip_positive: u64,
}

impl Ranks {
    pub(in super::super) fn new<T: Bits>(order: KeyOrder, descending: bool) -> Self {
        let all = u64::MAX >> (64 - T::COUNT);
        let sign = 1 << (T::COUNT - 1);
        let (flip_negative, flip_positive) = match order {
            KeyOrder::Unsigned => (0, 0),
            KeyOrder::Signed => (sign, sign),
            KeyOrder::Total | KeyOrder::Numeric { .. } => (all, sign),
        };
        let (alias, largest) = match order {
            KeyOrder::Numeric { largest } => (sign, largest),
            _ => (0, u64::MAX),
        };
        let reversal = if descending { all } else { 0 };
        let flip_negative = flip_negative ^ reversal;
        Ranks { all, sign, alias, largest, flip_negative, flip_positive: flip_positive ^ reversal }
    }

    fn is_nan(&self, bits: u64) -> bool {
        bits & !self.sign > self.largest
    }

    /// Of two elements, the one that comes first has the lower rank.
    #[inline(always)]
    pub(in super::super) fn rank(&self, bits: u64) -> u64 {
        // All NaNs become the one with the largest bits; its rank is above infinity's.
        let bits = if bits & !self.sign > self.largest { self.all & !self.sign } else { bits };
        let bits = if bits == self.alias { 0 } else { bits };
        bits ^ if bits & self.sign != 0 { self.flip_negative } else { self.flip_positive }
    }

    /// The element of this rank; of those that compare equal, one.
    #[inline(always)]
    pub(in super::super) fn element(&self, rank: u64) -> u64 {
        let positive = rank ^ self.flip_positive;
        if positive & self.sign == 0 { positive } else { rank ^ self.flip_negative }
    }

    /// Whether the rank does not tell all about some element.
    #[inline(always)]
    fn loses<T: Bits>(&self, elements: &[T]) -> bool {
        let lost = |bits: u64| (bits & !self.sign > self.largest) | (bits == self.sign);
        self.alias != 0 && elements.iter().fold(false, |any, &v| any | lost(v.widen()))
    }

    /// Puts the very bits of zeros and NaNs among elements in order that were made of ranks; they
    /// are equal to each other, so stay in the order of `from`.
    pub(super) fn restore<T: Bits>(&self, from: &[T], to: &mut [T]) {
        if !super::super::isa::vectorised(
            #[inline(always)]
            || self.loses(from),
        ) {
            return;
        }
        let is_zero = |bits: u64| bits & !self.sign == 0;
        let is_nan = |bits: u64| self.is_nan(bits);
        for (is_one, rank) in [
            (&is_zero as &dyn Fn(u64) -> bool, self.rank(0)),
            (&is_nan, self.rank(self.all & !self.sign)),
        ] {
            let start = to.partition_point(|v| self.rank(v.widen()) < rank);
            let originals = from.iter().filter(|v| is_one(v.widen()));
            for (to, &original) in to[start..].iter_mut().zip(originals) {
                *to = original;
            }
        }
    }
}
