//! Sorts against the standard library's, with the orders written as comparators.

use std::cmp::Ordering;

use super::super::bytes::{Aligned, bytes_of, bytes_of_mut};
use super::*;
use crate::Pool;

const F32: KeyOrder = KeyOrder::Numeric { least: 1, largest: 0x7f80_0000 };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 ^ self.0 >> 29
    }
}

/// Sorts `columns` (as `u64`s, of these sizes) and checks that each lane is in the order that a
/// stable sort by `compare` gives.
fn check(
    keys: Vec<SortKey>,
    sizes: &[usize],
    lanes: Lanes,
    columns: &[Vec<u64>],
    compare: &dyn Fn(usize, usize) -> Ordering,
) {
    let from: Vec<Vec<u64>> = columns
        .iter()
        .zip(sizes)
        .map(|(column, &size)| {
            let mut words = vec![0u64; (column.len() * size).div_ceil(8)];
            let bytes = &mut bytes_of_mut(&mut words)[..column.len() * size];
            for (bytes, v) in bytes.chunks_exact_mut(size).zip(column) {
                for (i, byte) in bytes.iter_mut().enumerate() {
                    *byte = v.rotate_right(8 * i as u32) as u8;
                }
            }
            words
        })
        .collect();
    let mut to: Vec<Vec<u64>> = from.iter().map(|v| vec![0; v.len()]).collect();
    let sort = Sort::new(keys, sizes.to_vec(), lanes).unwrap();
    let pool = Pool::new(2);
    let threads = pool.threads(2);
    let mut scratch = Aligned::filled(0xaa, sort.scratch_bytes(2));
    let from: Vec<&[u8]> = from.iter().map(|v| bytes_of(v)).collect();
    let mut to: Vec<&mut [u8]> = to.iter_mut().map(|v| bytes_of_mut(v)).collect();
    sort.run(&from, &mut to, &mut scratch, threads);
    for outer in 0..lanes.outer {
        for inner in 0..lanes.inner {
            let place = |i: usize| (outer * lanes.count + i) * lanes.inner + inner;
            let mut order: Vec<usize> = (0..lanes.count).map(place).collect();
            order.sort_by(|&a, &b| compare(a, b));
            for (i, &source) in order.iter().enumerate() {
                for ((to, from), &size) in to.iter().zip(&from).zip(sizes) {
                    let at = place(i) * size;
                    assert_eq!(to[at..][..size], from[source * size..][..size], "{lanes:?} {i}");
                }
            }
        }
    }
}

fn shapes() -> impl Iterator<Item = Lanes> {
    [
        (1, 0, 1),
        (0, 3, 2),
        (3, 1, 1),
        (1, 40, 1),
        (5, 97, 1),
        (2, 131, 7),
        (1, 50, 40),
        (21, 1, 1),
        (9, 2, 1),
        (37, 100, 1),
        (3, 65, 29),
        (1, 700, 21),
        (1, 20_011, 1),
    ]
    .into_iter()
    .map(|(outer, count, inner)| Lanes { outer, count, inner })
    // Miri interprets: small ones are enough for it.
    .filter(|lanes| !cfg!(miri) || len(*lanes) <= 40)
}

fn len(lanes: Lanes) -> usize {
    lanes.outer * lanes.count * lanes.inner
}

/// Floats with many zeros and NaNs of all kinds.
fn float(random: &mut Random) -> f32 {
    match random.next() % 8 {
        0 => 0.0,
        1 => -0.0,
        2 => f32::from_bits(0x7fc0_0000 | random.next() as u32 & 0x8000_000f),
        3 => f32::INFINITY.copysign(random.next() as i64 as f32),
        _ => random.next() as i64 as f32,
    }
}

fn numeric(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[test]
fn floats_as_numbers_alone_and_with_others() {
    let mut random = Random(1);
    for lanes in shapes() {
        let keys: Vec<f32> = (0..len(lanes)).map(|_| float(&mut random)).collect();
        let column: Vec<u64> = keys.iter().map(|v| v.to_bits().into()).collect();
        let tags: Vec<u64> = (0..len(lanes) as u64).map(|i| i * 0x1_0001).collect();
        for sizes in [&[4][..], &[4, 4], &[4, 2], &[4, 16, 8]] {
            let columns = [&[column.clone()][..], &vec![tags.clone(); sizes.len() - 1]].concat();
            for descending in [false, true] {
                let key = SortKey { operand: 0, order: F32, descending };
                check(vec![key], sizes, lanes, &columns, &|a, b| {
                    let ascending = numeric(keys[a], keys[b]);
                    if descending { ascending.reverse() } else { ascending }
                });
            }
        }
    }
}

/// Without zeros below zero, numbers that count as zero, and NaNs, ranks tell all about keys.
#[test]
fn floats_that_ranks_tell_all_about() {
    let mut random = Random(5);
    for lanes in shapes() {
        let keys: Vec<f32> = (0..len(lanes))
            .map(|_| match random.next() % 4 {
                0 => f32::INFINITY.copysign(random.next() as i64 as f32),
                1 => (random.next() % 5) as f32,
                _ => random.next() as i64 as f32,
            })
            .collect();
        let column: Vec<u64> = keys.iter().map(|v| v.to_bits().into()).collect();
        let tags: Vec<u64> = (0..len(lanes) as u64).map(|i| i * 0x1_0001).collect();
        for sizes in [&[4][..], &[4, 4], &[4, 1, 16]] {
            let columns = [&[column.clone()][..], &vec![tags.clone(); sizes.len() - 1]].concat();
            let key = SortKey { operand: 0, order: F32, descending: true };
            check(vec![key], sizes, lanes, &columns, &|a, b| numeric(keys[b], keys[a]));
        }
    }
}

#[test]
fn floats_in_total_order() {
    let mut random = Random(2);
    for lanes in shapes() {
        let keys: Vec<f32> = (0..len(lanes)).map(|_| float(&mut random)).collect();
        let column: Vec<u64> = keys.iter().map(|v| v.to_bits().into()).collect();
        let key = SortKey { operand: 0, order: KeyOrder::Total, descending: false };
        check(vec![key], &[4], lanes, &[column], &|a, b| keys[a].total_cmp(&keys[b]));
    }
}

#[test]
fn integers_of_all_sizes() {
    let mut random = Random(3);
    for lanes in shapes() {
        for bytes in [1, 2, 4, 8] {
            let column: Vec<u64> = (0..len(lanes))
                .map(|_| (random.next() >> (random.next() % 60)) & u64::MAX >> (64 - 8 * bytes))
                .collect();
            let tags: Vec<u64> = (0..len(lanes) as u64).collect();
            let shift = 64 - 8 * bytes as u32;
            for sizes in [&[bytes][..], &[bytes, 4], &[bytes, 8]] {
                let columns =
                    [&[column.clone()][..], &vec![tags.clone(); sizes.len() - 1]].concat();
                let key = |order| vec![SortKey { operand: 0, order, descending: true }];
                check(key(KeyOrder::Unsigned), sizes, lanes, &columns, &|a, b| {
                    column[b].cmp(&column[a])
                });
                check(key(KeyOrder::Signed), sizes, lanes, &columns, &|a, b| {
                    ((column[b] << shift) as i64).cmp(&((column[a] << shift) as i64))
                });
            }
        }
    }
}

#[test]
fn several_keys() {
    let mut random = Random(4);
    for lanes in shapes() {
        let columns: Vec<Vec<u64>> =
            (0..3).map(|_| (0..len(lanes)).map(|_| random.next() >> 5 & 7).collect()).collect();
        let key = |operand, descending| SortKey { operand, order: KeyOrder::Unsigned, descending };
        let keys = vec![key(2, false), key(0, true)];
        check(keys, &[8, 4, 1], lanes, &columns, &|a, b| {
            let by = |column: usize| columns[column][a].cmp(&columns[column][b]);
            by(2).then(by(0).reverse())
        });
    }
}

#[test]
fn what_nobody_needs_is_not_written() {
    let lanes = Lanes { outer: 1, count: 3, inner: 2 };
    let key = SortKey { operand: 0, order: KeyOrder::Unsigned, descending: false };
    let sort = Sort::new(vec![key], vec![1, 1], lanes).unwrap();
    let mut order = [0u8; 6];
    let mut scratch = Aligned::filled(0, sort.scratch_bytes(1));
    let from: [&[u8]; 2] = [&[3, 1, 2, 2, 1, 3], &[0, 1, 2, 3, 4, 5]];
    sort.run(&from, &mut [&mut [], &mut order], &mut scratch, Threads::single());
    assert_eq!(order, [4, 1, 2, 3, 0, 5]);
}

#[test]
fn sorts_that_have_no_ranks_are_refused() {
    let lanes = Lanes { outer: 1, count: 3, inner: 1 };
    let key = |operand| SortKey { operand, order: KeyOrder::Unsigned, descending: false };
    assert!(Sort::new(vec![], vec![4], lanes).is_none());
    assert!(Sort::new(vec![key(0)], vec![16], lanes).is_none());
    assert!(Sort::new(vec![key(1)], vec![4], lanes).is_none());
}
