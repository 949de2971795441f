//! Sorting one contiguous lane by its keys.

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for, with_size, with_word};
use super::super::isa::vectorised;
use super::keys::{Bits, Ranks};
use super::radix::{self, Rank32, Rank64, Record, Tagged32, Tagged64};
use super::{Sort, SortKey};

/// Below this many records, comparing them is faster than counting digits.
pub(super) const MIN_COUNTED: usize = 100;

/// A key's element, and the records that hold its rank.
pub(super) trait Key: Bits {
    type Bare: Record;
    type Tagged: Record;
}

macro_rules! key {
    ($($ty:ty: $bare:ty, $tagged:ty;)*) => { $(
        impl Key for $ty {
            type Bare = $bare;
            type Tagged = $tagged;
        }
    )* };
}

key! {
    u8: Rank32, Tagged32;
    u16: Rank32, Tagged32;
    u32: Rank32, Tagged32;
    u64: Rank64, Tagged64;
}

impl Sort {
    /// How much working memory [`Sort::lane`] needs: records twice, and an order twice.
    pub(super) fn lane_bytes(&self) -> usize {
        let count = self.lanes.count;
        let is_wide = self.keys.iter().any(|key| self.element_sizes[key.operand] == 8);
        let records = if is_wide { scratch_for::<u128>(count) } else { scratch_for::<u64>(count) };
        2 * records.saturating_add(scratch_for::<u32>(count))
    }

    /// Sorts one lane of all operands. Results may be empty where nobody needs them.
    pub(super) fn lane(&self, from: &[&[u8]], to: &mut [&mut [u8]], scratch: Scratch<'_>) {
        match self.keys[..] {
            [key] => with_word!(self.element_sizes[key.operand], T => {
                self.by_one_key::<T>(key, from, to, scratch);
            }),
            _ => self.by_keys(from, to, scratch),
        }
    }

    fn by_one_key<T: Key>(
        &self,
        key: SortKey,
        from: &[&[u8]],
        to: &mut [&mut [u8]],
        mut scratch: Scratch<'_>,
    ) {
        let ranks = Ranks::<T>::new(key.order, key.descending);
        let keys: &[T] = cast(from[key.operand]);
        let companion = |i: &usize| *i != key.operand && !to[*i].is_empty();
        let companions: Vec<usize> = (0..to.len()).filter(companion).collect();
        let key_to = key.operand;
        match companions[..] {
            [] => {
                let records = ranked::<T, T::Bare>(&ranks, keys, |_| 0, &mut scratch);
                write_keys(&ranks, records, keys, to[key_to]);
            }
            // A companion of 32 bits goes along, where order among equal ranks is kept.
            [other] if self.element_sizes[other] == 4 && keys.len() >= MIN_COUNTED => {
                let tags: &[u32] = cast(from[other]);
                let records = ranked::<T, T::Tagged>(&ranks, keys, |i| tags[i], &mut scratch);
                for (to, record) in cast_mut::<u32>(to[other]).iter_mut().zip(&*records) {
                    *to = record.low();
                }
                write_keys(&ranks, records, keys, to[key_to]);
            }
            _ => {
                let records = ranked::<T, T::Tagged>(&ranks, keys, |i| i as u32, &mut scratch);
                for other in companions {
                    let order = records.iter().map(|record| record.low());
                    permute(self.element_sizes[other], order, from[other], to[other]);
                }
                write_keys(&ranks, records, keys, to[key_to]);
            }
        }
    }

    /// The least significant key first; what it decides then stands among equals.
    fn by_keys(&self, from: &[&[u8]], to: &mut [&mut [u8]], mut scratch: Scratch<'_>) {
        let count = self.lanes.count;
        let mut order = scratch.take::<u32>(count);
        let mut spare = scratch.take::<u32>(count);
        for (place, i) in order.iter_mut().zip(0..) {
            *place = i;
        }
        for key in self.keys.iter().rev() {
            with_word!(self.element_sizes[key.operand], T => {
                let ranks = Ranks::<T>::new(key.order, key.descending);
                let keys: &[T] = cast(from[key.operand]);
                type R = <T as Key>::Tagged;
                let mut scratch = scratch.again();
                let (records, other) = (scratch.take::<R>(count), scratch.take::<R>(count));
                for (i, (record, &place)) in records.iter_mut().zip(&*order).enumerate() {
                    *record = R::new(ranks.rank(keys[place as usize]).widen(), i as u32);
                }
                for (place, record) in spare.iter_mut().zip(&*sorted(records, other)) {
                    *place = order[record.low() as usize];
                }
            });
            (order, spare) = (spare, order);
        }
        for (i, to) in to.iter_mut().enumerate().filter(|(_, to)| !to.is_empty()) {
            permute(self.element_sizes[i], order.iter().copied(), from[i], to);
        }
    }
}

/// The records of keys in order, each with what `low` says of its place.
fn ranked<'a, T: Key, R: Record>(
    ranks: &Ranks<T>,
    keys: &[T],
    low: impl Fn(usize) -> u32,
    scratch: &mut Scratch<'a>,
) -> &'a mut [R] {
    let records = scratch.take::<R>(keys.len());
    let spare = scratch.take::<R>(keys.len());
    vectorised(
        #[inline(always)]
        || {
            for (i, (record, key)) in records.iter_mut().zip(keys).enumerate() {
                *record = R::new(ranks.rank(*key).widen(), low(i));
            }
        },
    );
    sorted(records, spare)
}

/// Sorts by rank; among equals, records with ascending lower bits keep their order.
pub(super) fn sorted<'a, R: Record>(records: &'a mut [R], spare: &'a mut [R]) -> &'a mut [R] {
    if records.len() < MIN_COUNTED {
        records.sort_unstable();
        return records;
    }
    radix::sort(records, spare)
}

/// Writes the keys that have these ranks.
fn write_keys<T: Key, R: Record>(ranks: &Ranks<T>, records: &[R], keys: &[T], to: &mut [u8]) {
    let to: &mut [T] = cast_mut(to);
    if to.is_empty() {
        return;
    }
    vectorised(
        #[inline(always)]
        || {
            for (to, record) in to.iter_mut().zip(records) {
                *to = ranks.element(T::narrow(record.rank()));
            }
        },
    );
    ranks.restore(keys, to);
}

/// Writes the elements of a lane in an order of places.
pub(super) fn permute(size: usize, order: impl Iterator<Item = u32>, from: &[u8], to: &mut [u8]) {
    with_size!(size, T => {
        let from: &[T] = cast(from);
        for (to, place) in cast_mut::<T>(to).iter_mut().zip(order) {
            *to = from[place as usize];
        }
    });
}
