//! Against the standard library's stable sort, with comparators that are orders; with others, that
//! what comes out is a permutation.

use super::super::super::bytes::{Aligned, bytes_of, bytes_of_mut, cast};
use super::*;
use crate::Pool;

fn shapes() -> impl Iterator<Item = Lanes> {
    [
        (1, 0, 1),
        (0, 3, 2),
        (3, 1, 1),
        (1, 2, 1),
        (4, 3, 1),
        (1, 8, 5),
        (5, 97, 1),
        (2, 131, 7),
        (700, 17, 1),
        (3, 1009, 33),
        (1, 70_001, 1),
        (2, 530_011, 1),
    ]
    .into_iter()
    .map(|(outer, count, inner)| Lanes { outer, count, inner })
    // Miri interprets: small ones are enough for it.
    .filter(|lanes| !cfg!(miri) || lanes.count * lanes.inner <= 40)
}

/// Made-up keys of few values, and the places of elements.
fn columns(lanes: Lanes) -> (Vec<u32>, Vec<u64>) {
    let count = lanes.outer * lanes.count * lanes.inner;
    let key = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as u32;
    ((0..count as u64).map(key).collect(), (0..count as u64).collect())
}

/// Sorts keys and places by keys, and gives both.
fn sorted(
    less: &(dyn Fn(u32, u32) -> bool + Sync),
    lanes: Lanes,
    threads: usize,
) -> (Vec<u32>, Vec<u64>) {
    let (keys, places) = columns(lanes);
    let (mut keys_to, mut places_to) = (vec![0; keys.len()], vec![0; keys.len()]);
    let sort = MergeSort::new(&[0], &[true, true], vec![4, 8], lanes).unwrap();
    let precedes = |count: usize, pairs: &Pairs<'_>, answers: &mut [u8]| {
        let [left, right] = pairs(0).map(cast::<u32>);
        for i in 0..count {
            answers[i] = less(right[i], left[i]).into();
        }
    };
    let from = [bytes_of(&keys), bytes_of(&places)];
    let mut to = [bytes_of_mut(&mut keys_to), bytes_of_mut(&mut places_to)];
    let mut scratch = Aligned::filled(0xaa, sort.scratch_bytes());
    let pool = Pool::new(threads);
    sort.run(&precedes, &from, &mut to, &mut scratch, pool.threads(threads));
    (keys_to, places_to)
}

#[test]
fn equal_elements_keep_their_order() {
    let less = |a: u32, b: u32| a % 1000 < b % 1000;
    for lanes in shapes() {
        let (keys, _) = columns(lanes);
        let (keys_to, places_to) = sorted(&less, lanes, 2);
        for outer in 0..lanes.outer {
            for inner in 0..lanes.inner {
                let place = |i: usize| (outer * lanes.count + i) * lanes.inner + inner;
                let mut order: Vec<usize> = (0..lanes.count).map(place).collect();
                order.sort_by_key(|&at| keys[at] % 1000);
                for (i, &from) in order.iter().enumerate() {
                    let found = (keys_to[place(i)], places_to[place(i)]);
                    assert_eq!(found, (keys[from], from as u64), "{lanes:?} {i}");
                }
            }
        }
    }
}

#[test]
fn any_comparator_leaves_a_permutation_for_any_number_of_threads() {
    let comparators: [&(dyn Fn(u32, u32) -> bool + Sync); 4] =
        [&|_, _| true, &|_, _| false, &|a, b| a <= b, &|a, b| {
            (a ^ b.rotate_left(7)).count_ones() % 3 == 0
        }];
    for less in comparators {
        for lanes in shapes().filter(|lanes| lanes.count < 100_000) {
            let one = sorted(less, lanes, 1);
            assert_eq!(one, sorted(less, lanes, 2));
            let (keys, places) = columns(lanes);
            for (key, &place) in one.0.iter().zip(&one.1) {
                assert_eq!(*key, keys[place as usize]);
            }
            let mut found = one.1;
            found.sort();
            assert!(found == places, "{lanes:?}");
        }
    }
}

#[test]
fn several_operands_of_all_sizes() {
    let lanes = Lanes { outer: 3, count: 300, inner: 2 };
    let n = 1800;
    let bytes: Vec<u8> = (0..n).map(|i: usize| (i * 7 % 13) as u8).collect();
    let halves: Vec<u16> = (0..n).map(|i| i as u16).collect();
    let wide: Vec<[u64; 2]> = (0..n as u64).map(|i| [i * 11 % 5, i]).collect();
    let sort = MergeSort::new(&[3, 0], &[true; 4], vec![1, 2, 2, 16], lanes).unwrap();
    // By the last, from the largest down, then by the first.
    let precedes = |count: usize, pairs: &Pairs<'_>, answers: &mut [u8]| {
        let ([lw, rw], [lb, rb]) = (pairs(0).map(cast::<[u64; 2]>), pairs(1));
        for i in 0..count {
            answers[i] = ((lw[i][0], rb[i]) < (rw[i][0], lb[i])).into();
        }
    };
    let from = [&bytes[..], bytes_of(&halves), bytes_of(&halves), bytes_of(&wide)];
    let mut to: Vec<Vec<u64>> = [n / 8, n / 4, n / 4, 2 * n].map(|words| vec![0; words]).into();
    let mut to_bytes: Vec<&mut [u8]> = to.iter_mut().map(|to| bytes_of_mut(to)).collect();
    let mut scratch = Aligned::filled(0, sort.scratch_bytes());
    sort.run(&precedes, &from, &mut to_bytes, &mut scratch, Threads::single());
    for (outer, inner) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let place = |i: usize| (outer * 300 + i) * 2 + inner;
        let mut order: Vec<usize> = (0..300).map(place).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(wide[at][0]), bytes[at]));
        for (i, &at) in order.iter().enumerate() {
            assert_eq!(bytes_of(&to[0])[place(i)], bytes[at]);
            assert_eq!(cast::<u16>(bytes_of(&to[1]))[place(i)], halves[at]);
            assert_eq!(cast::<u16>(bytes_of(&to[2]))[place(i)], halves[at]);
            assert_eq!(cast::<[u64; 2]>(bytes_of(&to[3]))[place(i)], wide[at]);
        }
    }
}
