//! Against the standard library's stable sort.

use super::super::super::bytes::{Aligned, bytes_of, bytes_of_mut};
use super::*;

fn check<T: Key>(rows: usize, row: &[T], order: KeyOrder, k: usize, largest: bool) {
    let row_size = row.len() / rows;
    let top = TopK::new((rows, row_size), k, size_of::<T>(), order, largest).unwrap();
    let ranks = Ranks::<T>::new(order, largest);
    let (mut values, mut indices) = (vec![T::ZERO; rows * k], vec![0; rows * k]);
    let mut scratch = Aligned::filled(1, top.scratch_bytes(1));
    let to = bytes_of_mut(&mut values);
    top.run(bytes_of(row), to, &mut indices, &mut scratch, Threads::single());
    for r in 0..rows {
        let row = &row[r * row_size..][..row_size];
        let mut expected: Vec<usize> = (0..row_size).collect();
        expected.sort_by_key(|&i| ranks.rank(row[i]));
        let found = indices[r * k..][..k].iter().map(|&i| i as usize);
        assert!(found.eq(expected[..k].iter().copied()), "{row_size} {k}");
        let values = values[r * k..][..k].iter();
        assert!(values.eq(expected[..k].iter().map(|&i| &row[i])));
    }
}

#[test]
fn as_a_stable_sort_has_it() {
    let shapes = [(1, 1), (3, 17), (2, 100), (2, 200), (2, 1000), (1, 5000), (1, 70_000)];
    let side_by_side = [(16, 1), (70, 8), (129, 33), (65, 128), (20, 256)];
    for (rows, row_size) in shapes.into_iter().chain(side_by_side) {
        for k in [0, 1, 2, 3, 8, 10, 63, 100, row_size / 2, row_size] {
            if k > row_size {
                continue;
            }
            // Falling, rising, and equal ranks.
            for step in [u32::MAX, 1, 0, 0x9e37_79b9] {
                let row = |i: usize| (i as u32).wrapping_mul(step);
                let words: Vec<u32> = (0..rows * row_size).map(row).collect();
                check(rows, &words, KeyOrder::Total, k, true);
                check(rows, &words, KeyOrder::Signed, k, false);
                let wide: Vec<u64> = words.iter().map(|&v| u64::from(v) << 20).collect();
                check(rows, &wide, KeyOrder::Unsigned, k, true);
                let narrow: Vec<u8> = words.iter().map(|&v| v as u8).collect();
                check(rows, &narrow, KeyOrder::Unsigned, k, true);
                let halves: Vec<u16> = words.iter().map(|&v| (v >> 13) as u16).collect();
                check(rows, &halves, KeyOrder::Numeric { least: 1, largest: 0x7c00 }, k, false);
            }
        }
    }
}
