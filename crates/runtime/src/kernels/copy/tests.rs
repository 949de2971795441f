//! Copies against a loop over indices.

use super::super::bytes::{bytes_of, bytes_of_mut};
use super::*;
use crate::Pool;

/// Copies between arrays of `from_len` and `to_len` elements, and compares the result with a copy
/// of one element after the other.
fn check(
    axes: &[Axis],
    size: usize,
    (from_len, from_first): (usize, usize),
    (to_len, to_first): (usize, usize),
) {
    let words = |bytes: usize| bytes.div_ceil(8);
    let from: Vec<u64> = (0..words(from_len * size) as u64)
        .map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let from = bytes_of(&from);
    let mut expected = vec![7u8; to_len * size];
    let mut index = vec![0; axes.len()];
    'all: loop {
        if axes.iter().any(|axis| axis.size == 0) {
            break;
        }
        let place = |first: usize, step: fn(&Axis) -> isize| {
            let steps = axes.iter().zip(&index).map(|(axis, &i)| step(axis) * i as isize);
            (first as isize + steps.sum::<isize>()) as usize * size
        };
        let (at, target) = (place(from_first, |a| a.from), place(to_first, |a| a.to));
        expected[target..][..size].copy_from_slice(&from[at..][..size]);
        for d in (0..=axes.len()).rev() {
            if d == 0 {
                break 'all;
            }
            index[d - 1] += 1;
            if index[d - 1] < axes[d - 1].size {
                break;
            }
            index[d - 1] = 0;
        }
    }
    let copy = Copy::new(axes, size).unwrap();
    let pool = Pool::new(3);
    for threads in [Threads::single(), pool.threads(3)] {
        let mut to = vec![0x0707_0707_0707_0707u64; words(to_len * size)];
        let to = &mut bytes_of_mut(&mut to)[..to_len * size];
        copy.run((&from[..from_len * size], from_first * size), (to, to_first * size), threads);
        assert!(to == expected, "{axes:?} of {size} bytes: {copy:?}");
    }
}

#[test]
fn transposes_of_any_rank() {
    let shapes: [(&[usize], &[usize]); 23] = [
        (&[], &[]),
        (&[5], &[0]),
        (&[37, 41], &[1, 0]),
        (&[64, 128], &[1, 0]),
        (&[3, 130], &[1, 0]),
        (&[8, 130], &[1, 0]),
        (&[300, 8], &[1, 0]),
        (&[5, 20, 8], &[0, 2, 1]),
        (&[130, 3], &[1, 0]),
        (&[3, 17, 19], &[0, 2, 1]),
        (&[18, 33, 2], &[1, 0, 2]),
        (&[4, 5, 6, 7], &[3, 1, 0, 2]),
        (&[2, 0, 3], &[2, 1, 0]),
        // Planes whose lines or columns are several dimensions.
        (&[4, 5, 6, 7, 3, 8, 5], &[6, 2, 4, 0, 5, 1, 3]),
        (&[8, 6, 10, 12, 4, 9], &[3, 0, 4, 1, 5, 2]),
        (&[3, 9, 2, 70], &[3, 2, 1, 0]),
        // Those of which one is long.
        (&[16, 211, 7], &[2, 1, 0]),
        (&[1031, 19, 3], &[2, 1, 0]),
        (&[3, 1031, 9, 2], &[3, 2, 0, 1]),
        (&[5, 409, 3, 1033], &[3, 2, 1, 0]),
        // Dimensions that are innermost on both sides.
        (&[2; 13], &[1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10, 12]),
        (&[2; 13], &[0, 1, 2, 9, 4, 5, 6, 7, 8, 3, 10, 11, 12]),
        (&[4, 3, 2, 2, 16, 17], &[0, 1, 4, 2, 5, 3]),
    ];
    for (sizes, permutation) in shapes {
        for size in [1, 2, 4, 8, 16] {
            let len = sizes.iter().product();
            let from = dense_steps(sizes);
            let result: Vec<usize> = permutation.iter().map(|&d| sizes[d]).collect();
            let to = dense_steps(&result);
            let axes: Vec<Axis> = permutation
                .iter()
                .zip(to)
                .map(|(&d, to)| Axis { size: sizes[d], from: from[d], to })
                .collect();
            check(&axes, size, (len, 0), (len, 0));
            let plan = Copy::transpose(sizes, permutation, size).unwrap();
            assert_eq!(format!("{plan:?}"), format!("{:?}", Copy::new(&axes, size).unwrap()));
        }
    }
}

#[test]
fn slices_reversals_broadcasts_and_holes() {
    let axis = |size, from, to| Axis { size, from, to };
    for size in [1, 2, 4, 8, 16] {
        // f[9, 40] sliced to [1:8:3, 5:33:2], then both dimensions reversed.
        check(&[axis(3, 120, 14), axis(14, 2, 1)], size, (360, 45), (42, 0));
        check(&[axis(9, -40, 40), axis(40, -1, 1)], size, (360, 359), (360, 0));
        check(&[axis(9, 40, 40), axis(40, -1, 1)], size, (360, 39), (360, 0));
        // Reversed and transposed.
        check(&[axis(40, 1, 9), axis(9, -40, 1)], size, (360, 320), (360, 0));
        check(&[axis(40, -1, 9), axis(9, 40, 1)], size, (360, 39), (360, 0));
        // Broadcast along either dimension.
        check(&[axis(30, 0, 20), axis(20, 1, 1)], size, (20, 0), (600, 0));
        check(&[axis(30, 1, 20), axis(20, 0, 1)], size, (30, 0), (600, 0));
        // Into the middle of a larger array, with holes between elements.
        check(&[axis(6, 10, 100), axis(10, 1, 3)], size, (60, 0), (700, 107));
        // Rows of odd lengths, and elements that are not aligned to themselves.
        check(&[axis(7, 11, 5), axis(5, 1, 1)], size, (90, 3), (40, 1));
        check(&[axis(7, 2, 14), axis(7, 14, 2), axis(2, 1, 1)], size, (99, 1), (99, 1));
    }
}

#[test]
fn lines_of_all_kinds() {
    let axis = |size, from, to| Axis { size, from, to };
    for size in [1, 2, 4, 8, 16] {
        for n in [1, 7, 16, 65, 300] {
            let line = n as isize;
            for k in 2..10_isize {
                let (short, len) = (k as usize, n * k as usize);
                // Every k-th element, from either end; elements repeated, and taken in turn.
                check(&[axis(n, k, 1)], size, (len, 0), (n, 0));
                check(&[axis(n, -k, 1)], size, (len, len - 1), (n, 0));
                check(&[axis(n, 1, k), axis(short, 0, 1)], size, (n, 0), (len, 0));
                check(&[axis(n, 2, k), axis(short, 0, 1)], size, (2 * n, 0), (len, 0));
                check(&[axis(n, 1, k), axis(short, line, 1)], size, (len, 0), (len, 0));
                check(&[axis(n, 1, k), axis(short, -line, 1)], size, (len, len - n), (len, 0));
                check(&[axis(short, 1, line), axis(n, k, 1)], size, (len, 0), (len, 0));
                let batch = [axis(3, k * line, k * line), axis(short, 1, line), axis(n, k, 1)];
                check(&batch, size, (3 * len, 0), (3 * len, 0));
            }
            // Rows of any length, with gaps.
            for row in (2..20).chain([31, 32, 33, 63, 64, 65, 127, 130]) {
                let (from, to) = (row as isize + 3, row as isize + 1);
                let axes = [axis(n, from, to), axis(row, 1, 1)];
                check(&axes, size, (n * (row + 3), 0), (n * (row + 1), 0));
                let axes = [axis(n, 0, to - 1), axis(row, 1, 1)];
                check(&axes, size, (row, 0), (n * row, 0));
            }
        }
        // More than one piece.
        check(&[axis(20_000, 1, 3), axis(3, 20_000, 1)], size, (60_000, 0), (60_000, 0));
        check(&[axis(3, 1, 20_000), axis(20_000, 3, 1)], size, (60_000, 0), (60_000, 0));
        let batch = [axis(2, 8_000, 8_000), axis(8, 1, 1_000), axis(1_000, 8, 1)];
        check(&batch, size, (16_000, 0), (16_000, 0));
        check(&[axis(20_000, -1, 1)], size, (20_000, 19_999), (20_000, 0));
        check(&[axis(20_000, 5, 5), axis(5, 1, 1)], size, (100_000, 0), (100_000, 0));
    }
}

#[test]
fn large_arrays_go_past_the_cache() {
    let axis = |size, from, to| Axis { size, from, to };
    let len = 1 << 23;
    check(&[axis(len, 1, 1)], 4, (len + 8, 3), (len + 8, 5));
    check(&[axis(1 << 11, 1, 1 << 12), axis(1 << 12, 1 << 11, 1)], 4, (len, 0), (len, 0));
}

#[test]
fn overlapping_targets_are_refused() {
    let axis = |size, from, to| Axis { size, from, to };
    assert!(Copy::new(&[axis(4, 1, 0)], 4).is_none());
    assert!(Copy::new(&[axis(4, 3, 2), axis(3, 1, 1)], 4).is_none());
    assert!(Copy::new(&[axis(4, 1, 1)], 3).is_none());
    assert!(Copy::new(&[axis(usize::MAX, isize::MAX, 1)], 8).is_none());
}

#[test]
#[should_panic(expected = "reads outside")]
fn boxes_outside_of_arrays_are_refused() {
    let copy = Copy::new(&[Axis { size: 4, from: -1, to: 1 }], 1).unwrap();
    copy.run((&[0; 4], 2), (&mut [0; 4], 0), Threads::single());
}

#[test]
fn rows_of_pieces() {
    let pool = Pool::new(3);
    let pieces: [&[usize]; 9] = [
        &[1, 2],
        &[4, 4, 4, 4],
        &[16, 8, 0, 1],
        &[3, 17, 32, 33],
        &[64, 511],
        &[520, 5],
        &[0, 7],
        &[100],
        &[3000, 1000, 96],
    ];
    for pieces in pieces {
        // More than one block, and more than one task.
        for rows in [1, 2, 7, 1000, 5003] {
            let source = |(i, &piece): (usize, &usize)| -> Vec<u8> {
                (0..rows * piece).map(|at| (at * 7 + at / 256 + i * 31) as u8).collect()
            };
            let sources: Vec<Vec<u8>> = pieces.iter().enumerate().map(source).collect();
            let row = |row: usize| {
                let piece = move |(source, &piece): (&'_ Vec<u8>, &usize)| {
                    source[row * piece..][..piece].to_vec()
                };
                sources.iter().zip(pieces).flat_map(piece).collect::<Vec<u8>>()
            };
            let expected: Vec<u8> = (0..rows).flat_map(row).collect();
            let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            for threads in [Threads::single(), pool.threads(3)] {
                let mut target = vec![7; expected.len()];
                Rows::new(pieces).unwrap().run(&sources, &mut target, threads);
                assert!(target == expected, "{rows} rows of {pieces:?}");
            }
        }
    }
    Rows::new(&[0, 0]).unwrap().run(&[&[], &[]], &mut [], Threads::single());
    assert!(Rows::new(&[usize::MAX, 1]).is_none());
}

#[test]
#[should_panic(expected = "a piece for each row")]
fn rows_of_short_sources_are_refused() {
    Rows::new(&[2, 2]).unwrap().run(&[&[0; 4], &[0; 2]], &mut [0; 8], Threads::single());
}
