//! Sorting several lanes at a time by the network.

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for, with_size, with_word};
use super::super::copy::transpose;
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::keys::Ranks;
use super::lane::{Key, MIN_COUNTED, permute};
use super::network;
use super::radix::Record;
use super::{Sort, SortKey};

/// Longer lanes are sorted alone, by counting digits.
const MAX_COUNT: usize = 4096;
/// The network takes as long for one lane as for as many as vectors have: there have to be a quarter of them, or, where lanes
/// are longer than this, a half, or, where they are longer than twice that, three quarters.
const SHORT: usize = 512;

/// The most bits of a digit. Where ranks differ in no others, and something goes along, digits are counted: that takes one pass,
/// and the network twice as long for records twice as wide.
const DIGIT_BITS: u32 = 8;

/// Neighbouring lanes that are sorted together.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Where the first element of the first lane is.
    pub(super) first: usize,
    /// How many lanes there are.
    pub(super) width: usize,
    /// From an element of a lane to the next. If that is one, lanes lie one behind the other, otherwise side by side.
    pub(super) step: usize,
}

impl Sort {
    /// How many lanes are sorted together; one if each is sorted alone. `is_needed` says of an operand whether its result is.
    pub(super) fn width(&self, is_needed: impl Fn(usize) -> bool) -> usize {
        let [key] = self.keys[..] else { return 1 };
        let is_bare = (0..self.element_sizes.len()).all(|i| i == key.operand || !is_needed(i));
        let width = with_word!(self.element_sizes[key.operand], T => match is_bare {
            true => network::width::<<T as Key>::Bare>(),
            false => network::width::<<T as Key>::Tagged>(),
        });
        width.filter(|_| (2..=MAX_COUNT).contains(&self.lanes.count)).unwrap_or(1)
    }

    /// The working memory of [`Sort::together`]: rows, and lanes one behind the other.
    pub(super) fn together_bytes(&self) -> usize {
        match self.lanes.count <= MAX_COUNT {
            true => 2 * scratch_for::<[u64; 8]>(self.lanes.count),
            false => 0,
        }
    }

    /// Sorts lanes of all operands together, at most `most`, which is their [`Sort::width`]. Gives false, and changes nothing, if
    /// they are few, if ranks do not tell all about their keys, or if digits are better counted.
    ///
    /// # Safety
    ///
    /// Nothing else accesses what these lanes are in `to`.
    pub(super) unsafe fn together(
        &self,
        (group, most): (Group, usize),
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        scratch: Scratch<'_>,
    ) -> bool {
        let quarters =
            1 + usize::from(self.lanes.count > SHORT) + usize::from(self.lanes.count > 2 * SHORT);
        let least = quarters * most / 4;
        if most == 1 || group.width < least {
            return false;
        }
        let key = self.keys[0];
        let is_bare = (0..to.len()).all(|i| i == key.operand || to[i].is_empty());
        with_word!(self.element_sizes[key.operand], T => {
            // SAFETY: the caller's promise, handed on.
            unsafe {
                match is_bare {
                    true => self.by_records::<T, <T as Key>::Bare>(key, group, from, to, scratch),
                    false => self.by_records::<T, <T as Key>::Tagged>(key, group, from, to, scratch),
                }
            }
        })
    }

    /// # Safety
    ///
    /// As for [`Sort::together`].
    unsafe fn by_records<T: Key, R: Record>(
        &self,
        key: SortKey,
        group: Group,
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        mut scratch: Scratch<'_>,
    ) -> bool {
        let Group { first, width, step } = group;
        let count = self.lanes.count;
        let ranks = Ranks::<T>::new(key.order, key.descending);
        let keys: &[T] = &cast(from[key.operand])[first..];
        let row = network::width::<R>().expect("there are vectors of the records");
        let rows = scratch.take::<R>(count * row);
        let goes_along = (0..to.len()).any(|i| i != key.operand && !to[i].is_empty());
        let is_counted = goes_along && count >= MIN_COUNTED;
        let needed = || to.iter().enumerate().filter(|(_, to)| !to.is_empty());
        if step > 1 {
            if (0..count).any(|i| ranks.loses(&keys[i * step..][..width])) {
                return false;
            }
            vectorised(
                #[inline(always)]
                || {
                    for (i, records) in rows.chunks_exact_mut(row).enumerate() {
                        rank(&ranks, &keys[i * step..][..width], records, |_| i);
                    }
                },
            );
            let of_row = |records: &[R]| varying(rows[0], &records[..width]);
            let all = || rows.chunks_exact(row).fold(0, |bits, records| bits | of_row(records));
            if is_counted && is_one_digit(all()) {
                return false;
            }
            network::sort(rows);
            for (operand, to) in needed() {
                let size = self.element_sizes[operand];
                // SAFETY: the caller's promise: an element of each lane of the group.
                let line = |i: usize| unsafe { to.part((first + i * step) * size, width * size) };
                if operand == key.operand {
                    vectorised(
                        #[inline(always)]
                        || {
                            for (i, records) in rows.chunks_exact(row).enumerate() {
                                restore(&ranks, records, cast_mut(line(i)));
                            }
                        },
                    );
                    continue;
                }
                with_size!(size, T => {
                    let from = &cast::<T>(from[operand])[first..];
                    for (i, records) in rows.chunks_exact(row).enumerate() {
                        for (j, (to, record)) in cast_mut::<T>(line(i)).iter_mut().zip(records).enumerate() {
                            *to = from[record.low() as usize * step + j];
                        }
                    }
                });
            }
            return true;
        }
        let keys = &keys[..count * width];
        if ranks.loses(keys) {
            return false;
        }
        let records = scratch.take::<R>(count * width);
        vectorised(
            #[inline(always)]
            || {
                for (keys, records) in keys.chunks_exact(count).zip(records.chunks_exact_mut(count))
                {
                    rank(&ranks, keys, records, |i| i);
                }
            },
        );
        if is_counted && is_one_digit(varying(records[0], records)) {
            return false;
        }
        transpose([width, count], (records, count), (rows, row));
        network::sort(rows);
        transpose([count, width], (rows, row), (records, count));
        for (operand, to) in needed() {
            let size = self.element_sizes[operand];
            let group = first * size..(first + count * width) * size;
            // SAFETY: the caller's promise: all lanes of the group.
            let to = unsafe { to.part(group.start, group.len()) };
            if operand == key.operand {
                vectorised(
                    #[inline(always)]
                    || restore(&ranks, records, cast_mut(to)),
                );
                continue;
            }
            let lanes = from[operand][group]
                .chunks_exact(count * size)
                .zip(to.chunks_exact_mut(count * size));
            for (records, (from, to)) in records.chunks_exact(count).zip(lanes) {
                permute(size, records.iter().map(|record| record.low()), from, to);
            }
        }
        true
    }
}

/// The records of keys, each with what `low` says of its place.
#[inline(always)]
fn rank<T: Key, R: Record>(
    ranks: &Ranks<T>,
    keys: &[T],
    records: &mut [R],
    low: impl Fn(usize) -> usize,
) {
    for (i, (record, key)) in records.iter_mut().zip(keys).enumerate() {
        *record = R::new(ranks.rank(*key).widen(), low(i) as u32);
    }
}

/// The keys of records.
#[inline(always)]
fn restore<T: Key, R: Record>(ranks: &Ranks<T>, records: &[R], keys: &mut [T]) {
    for (key, record) in keys.iter_mut().zip(records) {
        *key = ranks.element(T::narrow(record.rank()));
    }
}

/// The bits in which ranks of these records differ from that of `first`.
fn varying<R: Record>(first: R, records: &[R]) -> u64 {
    records.iter().fold(0, |bits, record| bits | (record.rank() ^ first.rank()))
}

/// Whether these bits are all in one digit.
fn is_one_digit(bits: u64) -> bool {
    u64::BITS - bits.leading_zeros()
        <= DIGIT_BITS + bits.trailing_zeros().min(u64::BITS - DIGIT_BITS)
}
