//! Stable sorting of records by counting the values of their digits, the lowest digit first.

use super::super::bytes::Plain;
use crate::bounds;

/// What is sorted: a rank, and perhaps 32 bits that go with it, below the rank.
pub(super) trait Record: Plain + Ord {
    /// A record; one that has no place for `low` drops it.
    fn new(rank: u64, low: u32) -> Self;
    fn rank(self) -> u64;
    fn low(self) -> u32;
    /// The rank's lowest bits from this one on.
    fn digits(self, bit: u32) -> usize;
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident, $ty:ty, $low_bits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub(super) struct $name($ty);

        // SAFETY: an unsigned integer has no padding and no invalid bits.
        unsafe impl Plain for $name {}

        impl Record for $name {
            #[inline(always)]
            fn new(rank: u64, low: u32) -> Self {
                let low = if $low_bits == 0 { 0 } else { low };
                $name((rank as $ty) << $low_bits | low as $ty)
            }
            #[inline(always)]
            fn rank(self) -> u64 {
                (self.0 >> $low_bits) as u64
            }
            #[inline(always)]
            fn low(self) -> u32 {
                if $low_bits == 0 { 0 } else { self.0 as u32 }
            }
            #[inline(always)]
            fn digits(self, bit: u32) -> usize {
                (self.0 >> ($low_bits + bit)) as usize
            }
        }
    };
}

record!(
    /// A rank of up to 32 bits alone.
    Rank32, u32, 0
);
record!(
    /// A rank of up to 64 bits alone.
    Rank64, u64, 0
);
record!(
    /// A rank of up to 32 bits and what goes with it.
    Tagged32, u64, 32
);
record!(
    /// A rank of up to 64 bits and what goes with it.
    Tagged64, u128, 32
);

/// From this many records on, fewer passes of wider digits are faster.
const MANY: usize = 1 << 14;
/// From this many bytes of records on, more passes are again, each of which writes to fewer places.
const HUGE: usize = 1 << 23;
/// Digits whose values are counted at once.
const COUNTED: usize = 3;

/// Sorts by rank, stably; `spare` is as long. Returns where the records are in order,
/// or in some order if the run has stopped.
pub(super) fn sort<'a, R: Record>(records: &'a mut [R], spare: &'a mut [R]) -> &'a mut [R] {
    let Some(&first) = records.first() else { return records };
    // Digits are laid over the bits in which records differ.
    let varying = records.iter().fold(0, |bits, r| bits | (r.rank() ^ first.rank()));
    match records.len() < MANY || size_of_val(records) >= HUGE {
        true => sort_by::<R, 8, { 1 << 8 }>(records, spare, varying),
        false => sort_by::<R, 11, { 1 << 11 }>(records, spare, varying),
    }
}

/// Sorts by digits of `WIDTH` bits, which have so many values. There are fewer than 2³² records.
fn sort_by<'a, R: Record, const WIDTH: u32, const VALUES: usize>(
    mut records: &'a mut [R],
    mut spare: &'a mut [R],
    mut varying: u64,
) -> &'a mut [R] {
    // Between passes records are a permutation of what they were, so that as many of them have a value.
    while varying != 0 {
        let mut digits = [0; COUNTED];
        let mut count = 0;
        while varying != 0 && count < COUNTED {
            let bit = varying.trailing_zeros();
            (digits[count], count) = (bit, count + 1);
            varying = varying.unbounded_shr(bit + WIDTH).unbounded_shl(bit + WIDTH);
        }
        let mut places = [[0u32; VALUES]; COUNTED];
        match count {
            1 => count_values::<R, 1, VALUES>(records, &digits, &mut places),
            2 => count_values::<R, 2, VALUES>(records, &digits, &mut places),
            _ => count_values::<R, COUNTED, VALUES>(records, &digits, &mut places),
        }
        for (&bit, places) in digits[..count].iter().zip(&mut places) {
            if bounds::is_stopped() {
                return records;
            }
            let mut next = 0;
            for place in places.iter_mut() {
                (*place, next) = (next, next + *place);
            }
            for &record in &*records {
                let place = &mut places[record.digits(bit) % VALUES];
                spare[*place as usize] = record;
                *place += 1;
            }
            (records, spare) = (spare, records);
        }
    }
    records
}

/// Counts the records that have each value of the first `DIGITS` digits.
fn count_values<R: Record, const DIGITS: usize, const VALUES: usize>(
    records: &[R],
    digits: &[u32; COUNTED],
    counts: &mut [[u32; VALUES]; COUNTED],
) {
    for &record in records {
        for digit in 0..DIGITS {
            counts[digit][record.digits(digits[digit]) % VALUES] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_order_unless_their_ranks_differ() {
        for (count, spread) in [(0, 1), (1, 1), (2, 7), (1000, 13), (20_000, u64::MAX), (9, 0)] {
            let mut state = 1u64;
            let records: Vec<Tagged64> = (0..count)
                .map(|i| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(i);
                    Tagged64::new(state.rotate_left(20) & spread, i as u32)
                })
                .collect();
            let mut expected = records.clone();
            expected.sort_by_key(|r| r.rank());
            let (mut records, mut spare) = (records.clone(), records);
            let found = sort(&mut records, &mut spare);
            assert!(found.iter().map(|r| r.low()).eq(expected.iter().map(|r| r.low())));
            assert!(found.iter().map(|r| r.rank()).eq(expected.iter().map(|r| r.rank())));
        }
    }
}
