//! Products against plain loops, on every instruction set of the machine.

use super::*;
use crate::Pool;

/// Small whole numbers, whose sums of products no rounding touches.
fn numbers(count: usize, seed: usize) -> Vec<i32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 17) as i32 - 8).collect()
}

/// All the indices of some dimensions, as offsets in lhs, rhs and out.
fn indices(dims: &[Dim]) -> Vec<[usize; 3]> {
    let mut all = vec![[0; 3]];
    for dim in dims {
        let step = |[l, r, o]: [usize; 3], i| [l + i * dim.lhs, r + i * dim.rhs, o + i * dim.out];
        all = all.into_iter().flat_map(|at| (0..dim.size).map(move |i| step(at, i))).collect();
    }
    all
}

/// The product by plain loops, in the memory where it belongs, of the operands' lengths.
fn expected(dims: [&[Dim]; 4], lhs: &[i32], rhs: &[i32], out: &mut [i32]) {
    let [batch, rows, cols, steps] = dims.map(indices);
    for b in &batch {
        for r in &rows {
            for c in &cols {
                let sum = steps.iter().map(|s| lhs[b[0] + r[0] + s[0]] * rhs[b[1] + c[1] + s[1]]);
                out[b[2] + r[2] + c[2]] = sum.sum();
            }
        }
    }
}

/// The length of memory that holds all offsets in an operand or the result.
fn len(dims: [&[Dim]; 4], operand: usize) -> usize {
    let last = |axis: Vec<[usize; 3]>| axis.iter().map(|at| at[operand]).max().unwrap_or(0);
    dims.map(indices).map(last).iter().sum::<usize>() + 1
}

/// Compares all ways to compute this product.
fn check(dims: [&[Dim]; 4]) {
    let (lhs, rhs) = (numbers(len(dims, 0), 1), numbers(len(dims, 1), 2));
    let mut want = vec![77; len(dims, 2)];
    expected(dims, &lhs, &rhs, &mut want);
    let pool = Pool::new(2);
    let product = Contraction::new(dims[0], dims[1], dims[2], dims[3]);
    let f32s = |values: &[i32]| values.iter().map(|&v| v as f32).collect::<Vec<_>>();
    let f64s = |values: &[i32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    for isa in Isa::all() {
        for threads in [Threads::single(), pool.threads(2)] {
            let mut out = vec![77.0; want.len()];
            product.float(isa, &f32s(&lhs), &f32s(&rhs), &mut out, None, threads);
            assert!(out == f32s(&want), "f32 on {isa:?}, {dims:?}");
            let mut out = vec![77.0; want.len()];
            product.float(isa, &f64s(&lhs), &f64s(&rhs), &mut out, None, threads);
            assert!(out == f64s(&want), "f64 on {isa:?}, {dims:?}");
        }
    }
}

fn dim(size: usize, [lhs, rhs, out]: [usize; 3]) -> Dim {
    Dim { size, lhs, rhs, out }
}

/// Dense operands, transposed or not.
fn check_sizes(batch: usize, rows: usize, steps: usize, cols: usize) {
    let batch = [dim(batch, [rows * steps, steps * cols, rows * cols])];
    for lhs_transposed in [false, true] {
        for rhs_transposed in [false, true] {
            let (row, lhs_step) = if lhs_transposed { (1, rows) } else { (steps, 1) };
            let (col, rhs_step) = if rhs_transposed { (steps, 1) } else { (1, cols) };
            let row = [dim(rows, [row, 0, cols])];
            let col = [dim(cols, [0, col, 1])];
            check([&batch, &row, &col, &[dim(steps, [lhs_step, rhs_step, 0])]]);
        }
    }
}

#[test]
fn sizes_around_tiles_and_blocks() {
    for rows in [1, 2, 5, 13, 14, 15, 29, 57] {
        for cols in [1, 3, 16, 17, 32, 33, 70] {
            for steps in [1, 2, 17, 40] {
                check_sizes(1, rows, steps, cols);
            }
        }
    }
    check_sizes(3, 4, 5, 6);
    check_sizes(1, 263, 331, 67);
    check_sizes(1, 3, 700, 523);
    check_sizes(1, 70, 20, 1031);
    check_sizes(1, 1, 50, 5000);
}

#[test]
fn nothing_to_sum_gives_zero_and_nothing_to_write_is_left_alone() {
    for (batch, rows, steps, cols) in [(1, 3, 0, 5), (0, 2, 2, 2), (1, 0, 2, 2), (2, 2, 2, 0)] {
        check_sizes(batch, rows, steps, cols);
    }
}

#[test]
fn dimensions_that_do_not_join() {
    // out[b0, b1, r0, r1, c] of lhs[b1, r1, s0, b0, r0, s1] and rhs[s1, b0, c, b1, s0].
    let (b0, b1, r0, r1, c, s0, s1) = (2, 3, 5, 4, 37, 6, 7);
    check([
        &[
            dim(b0, [r0 * s1, c * b1 * s0, b1 * r0 * r1 * c]),
            dim(b1, [r1 * s0 * b0 * r0 * s1, s0, r0 * r1 * c]),
        ],
        &[dim(r0, [s1, 0, r1 * c]), dim(r1, [s0 * b0 * r0 * s1, 0, c])],
        &[dim(c, [0, b1 * s0, 1])],
        &[dim(s0, [b0 * r0 * s1, 1, 0]), dim(s1, [1, b0 * c * b1 * s0, 0])],
    ]);
}

#[test]
fn the_result_may_have_gaps_and_any_order_of_rows() {
    check([
        &[dim(3, [35, 0, 5])],
        &[dim(7, [5, 0, 31])],
        &[dim(5, [0, 1, 1])],
        &[dim(5, [1, 5, 0])],
    ]);
}

#[test]
#[should_panic(expected = "the elements of the result are apart")]
fn rows_of_the_result_must_not_overlap() {
    Contraction::new(&[], &[dim(3, [1, 0, 4])], &[dim(5, [0, 1, 1])], &[]);
}

#[test]
#[should_panic(expected = "the operand lies in its memory")]
fn operands_must_be_long_enough() {
    let mut out = [0.0; 4];
    Contraction::dense(1, 2, 2, 2).f32(&[0.0; 3], &[0.0; 4], &mut out, None, Threads::single());
}

#[test]
fn complete_sums_are_finished_once() {
    let (batch, rows, steps, cols) = (2, 35, 400, 600);
    let (lhs, rhs) = (vec![1.0; batch * rows * steps], vec![2.0; batch * steps * cols]);
    let add_place = |at: At, sums: &mut [f32]| {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += (at.batch * 100_000 + at.row * 1000 + at.col + i) as f32;
        }
    };
    let pool = Pool::new(2);
    for threads in [Threads::single(), pool.threads(2)] {
        let mut out = vec![0.0; batch * rows * cols];
        let product = Contraction::dense(batch, rows, steps, cols);
        product.f32(&lhs, &rhs, &mut out, Some(&add_place), threads);
        for (i, sum) in out.into_iter().enumerate() {
            let (batch, row, col) = (i / cols / rows, i / cols % rows, i % cols);
            assert_eq!(sum, (800 + batch * 100_000 + row * 1000 + col) as f32);
        }
    }
}
