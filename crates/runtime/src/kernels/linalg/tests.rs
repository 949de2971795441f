//! Factors and solutions put back into their equations.

use helio_linalg::{Alone, Lapack, Tridiagonal};

use super::super::bytes::{Aligned, bytes_of, bytes_of_mut};
use super::complex::Complex;
use super::*;
use crate::{Pool, Threads};

mod spectra;

/// Numbers in [-1, 1), the same each time.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Tridiagonal systems of one type, with pivots that need exchanges and some that do not, against LAPACK's order of
/// operations, as `L` has it; `singular` systems have a zero pivot.
fn tridiagonal<T: Field, L: Lapack + Copy>(
    ty: FieldType,
    tolerance: f64,
    of: impl Fn(f64, f64) -> T,
    to_other: impl Fn(T) -> L,
    from_other: impl Fn(L) -> T,
    wrong: impl Fn(T, T) -> f64,
) {
    let pool = Pool::new(2);
    for n in [1, 2, 3, 4, 17, 100] {
        for batch in [1, 3, 4, 16, 21, 40] {
            for (columns, singular) in [(1, false), (3, false), (1, true), (0, false)] {
                let values = |count: usize, seed| -> Vec<T> {
                    let parts = numbers(2 * count, seed);
                    parts.chunks_exact(2).map(|p| of(p[0], p[1])).collect()
                };
                let mut diagonals = [1, 2, 3].map(|seed| values(batch * n, seed));
                let b = values(batch * n * columns, 4);
                if singular {
                    // A row of zeros, in the first system and in one of the last group.
                    for s in [0, batch - 1] {
                        diagonals.iter_mut().for_each(|d| d[s * n + n / 2] = T::ZERO);
                    }
                }
                let plan = TridiagonalSolve::new(ty, batch, n, columns).unwrap();
                let run = |threads, are_wanted: bool| {
                    let mut to = [(); 3].map(|()| vec![T::ZERO; batch * n]);
                    let (mut x, mut info) = (vec![T::ZERO; b.len()], vec![7; batch]);
                    let operands = [&diagonals[0], &diagonals[1], &diagonals[2], &b];
                    let [lower, diagonal, upper] = to.each_mut().map(|to| match are_wanted {
                        true => bytes_of_mut(to),
                        false => &mut [][..],
                    });
                    let (x_to, info_to) = (bytes_of_mut(&mut x), bytes_of_mut(&mut info));
                    let results =
                        TridiagonalResults { lower, diagonal, upper, x: x_to, info: info_to };
                    plan.run(operands.map(|v| bytes_of(v)), results, threads);
                    (to, x, info)
                };
                let (to, x, info) = run(Threads::single(), true);
                let (same, same_x, same_info) = run(pool.threads(2), true);
                assert!(to == same && x == same_x && info == same_info);
                let (_, same_x, same_info) = run(Threads::single(), false);
                assert!(x == same_x && info == same_info);
                for s in 0..batch {
                    let part = |d: &Vec<T>| d[s * n..][..n].iter().map(|&v| to_other(v)).collect();
                    let mut parts: [Vec<L>; 3] = diagonals.each_ref().map(part);
                    let [lower, diagonal, upper] = parts.each_mut().map(|part| &mut part[..]);
                    // By columns.
                    let at = |i: usize, c: usize| (s * n + i) * columns + c;
                    let by_columns = (0..columns).flat_map(|c| (0..n).map(move |i| at(i, c)));
                    let mut expected: Vec<L> = by_columns.map(|i| to_other(b[i])).collect();
                    let of = Tridiagonal { lower, diagonal, upper };
                    let number = L::gtsv(&Alone, n, columns, of, &mut expected);
                    assert_eq!(info[s], number, "{n} {batch} {columns}");
                    let back = |v: &Vec<L>| v.iter().map(|&v| from_other(v)).collect::<Vec<T>>();
                    let (expected, parts) = (back(&expected), parts.each_ref().map(back));
                    // Condition numbers are not known: what matters is how large the solution is.
                    let size = |v: &[T]| v.iter().map(|&v| wrong(v, T::ZERO)).fold(1.0, f64::max);
                    let most = tolerance * size(&expected).powi(2);
                    for c in 0..columns {
                        for i in 0..n {
                            let difference = wrong(x[at(i, c)], expected[c * n + i]);
                            assert!(difference <= most, "{n} {batch} {columns}: {difference}");
                        }
                    }
                    for (to, part) in to.iter().zip(&parts) {
                        let most = tolerance * size(part);
                        for (&to, &part) in to[s * n..][..n].iter().zip(part) {
                            assert!(wrong(to, part) <= most, "{n} {batch} {columns} diagonals");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn tridiagonal_systems() {
    let f32_wrong = |a: f32, b: f32| f64::from((a - b).abs());
    tridiagonal(FieldType::F32, 1e-4, |v, _| v as f32, |v: f32| v, |v| v, f32_wrong);
    tridiagonal(FieldType::F64, 1e-12, |v, _| v, |v: f64| v, |v| v, |a, b| (a - b).abs());
    tridiagonal(
        FieldType::C128,
        1e-12,
        |re, im| Complex { re, im },
        |v| helio_linalg::Complex::new(v.re, v.im),
        |v| Complex { re: v.re, im: v.im },
        |a, b| (a.re - b.re).hypot(a.im - b.im),
    );
}

fn solved(batch: usize, n: usize, columns: usize, flags: TriangularFlags) {
    let mut a = numbers(batch * n * n, 1);
    for (i, v) in a.iter_mut().enumerate() {
        let (row, column) = (i / n % n, i % n);
        let is_read = if flags.lower { column <= row } else { column >= row };
        if row == column && !flags.unit_diagonal {
            *v += 3.0;
        } else if !is_read || row == column {
            *v = f64::NAN;
        } else {
            *v /= n as f64;
        }
    }
    let b = numbers(batch * n * columns, 2);
    let plan = TriangularSolve::new(FieldType::F64, batch, n, columns, flags).unwrap();
    let pool = Pool::new(2);
    let [x, same] = [Threads::single(), pool.threads(2)].map(|threads| {
        let mut x = vec![0.0; b.len()];
        let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
        plan.run(bytes_of(&a), bytes_of(&b), bytes_of_mut(&mut x), &mut scratch, threads);
        x
    });
    assert_eq!(x, same);
    let op = |batch: usize, i: usize, j: usize| {
        let (i, j) = if flags.transpose_a { (j, i) } else { (i, j) };
        match (i == j, if flags.lower { j <= i } else { j >= i }) {
            (true, _) if flags.unit_diagonal => 1.0,
            (_, true) => a[(batch * n + i) * n + j],
            _ => 0.0,
        }
    };
    for batch in 0..batch {
        for i in 0..n {
            for column in 0..columns {
                let at = |i: usize| match flags.left_side {
                    true => (batch * n + i) * columns + column,
                    false => (batch * columns + column) * n + i,
                };
                let term = |j: usize| match flags.left_side {
                    true => op(batch, i, j) * x[at(j)],
                    false => x[at(j)] * op(batch, j, i),
                };
                let sum: f64 = (0..n).map(term).sum();
                let difference = (sum - b[at(i)]).abs();
                assert!(difference < 1e-12, "{flags:?} {n} {columns}: {difference}");
            }
        }
    }
}

#[test]
fn solutions_solve() {
    for bits in 0..16 {
        let [left_side, lower, unit_diagonal, transpose_a] =
            [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let conjugate_a = false;
        let flags = TriangularFlags { left_side, lower, unit_diagonal, transpose_a, conjugate_a };
        for (batch, n, columns) in
            [(1, 1, 1), (2, 3, 2), (1, 37, 33), (2, 8, 64), (1, 70, 5), (3, 67, 1), (2, 22, 4)]
                .into_iter()
                .chain([(16, 2, 1), (17, 3, 2), (35, 5, 7), (40, 16, 32)])
        {
            if cfg!(miri) && n > 3 {
                continue; // Miri interprets: small ones are enough for it.
            }
            solved(batch, n, columns, flags);
        }
        solved(2, 0, 3, flags);
        solved(1, 3, 0, flags);
    }
}

#[test]
fn singular_systems_have_infinities() {
    let flags = TriangularFlags {
        left_side: true,
        lower: true,
        unit_diagonal: false,
        transpose_a: false,
        conjugate_a: false,
    };
    let plan = TriangularSolve::new(FieldType::F32, 1, 2, 1, flags).unwrap();
    let mut x = [0f32; 2];
    let mut scratch = Aligned::filled(0, plan.scratch_bytes());
    let a = [0f32, 0.0, 0.0, 1.0];
    let b = [1f32, 2.0];
    plan.run(bytes_of(&a), bytes_of(&b), bytes_of_mut(&mut x), &mut scratch, Threads::single());
    assert_eq!(x[0], f32::INFINITY);
    assert!(x[1].is_nan());
}

/// The factor of a positive definite matrix, and the matrix.
fn factored(batch: usize, n: usize, lower: bool, threads: Threads<'_>) -> (Vec<f64>, Vec<f64>) {
    let m = numbers(batch * n * n, 3);
    let mut a = vec![0.0; batch * n * n];
    for (i, v) in a.iter_mut().enumerate() {
        let (matrix, row, column) = (i / (n * n) * n, i / n % n, i % n);
        let is_read = if lower { column <= row } else { column >= row };
        let product = |k: usize| m[(matrix + row) * n + k] * m[(matrix + column) * n + k];
        let sum = (0..n).map(product).sum::<f64>() + if row == column { 1.0 } else { 0.0 };
        *v = if is_read { sum } else { f64::NAN };
    }
    let plan = Cholesky::new(FieldType::F64, batch, n, lower).unwrap();
    let mut found = vec![7.0; a.len()];
    let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
    plan.run(bytes_of(&a), bytes_of_mut(&mut found), &mut scratch, threads);
    (found, a)
}

#[test]
fn factors_squared_are_the_matrix() {
    let pool = Pool::new(2);
    for (batch, n) in [(1, 1), (3, 5), (2, 64), (1, 65), (1, 100), (1, 203), (1, 420), (2, 0)]
        .into_iter()
        .chain([(16, 1), (17, 3), (33, 7), (40, 16)])
    {
        if cfg!(miri) && n > 5 {
            continue; // Miri interprets: small ones are enough for it.
        }
        for lower in [true, false] {
            let (found, a) = factored(batch, n, lower, pool.threads(2));
            assert_eq!(found, factored(batch, n, lower, Threads::single()).0);
            let l = |matrix: usize, i: usize, j: usize| match lower {
                true => found[(matrix * n + i) * n + j],
                false => found[(matrix * n + j) * n + i],
            };
            for (i, v) in a.iter().enumerate() {
                let (matrix, row, column) = (i / (n * n), i / n % n, i % n);
                if v.is_nan() {
                    assert_eq!(found[i], 0.0);
                    continue;
                }
                let sum: f64 = (0..n).map(|k| l(matrix, row, k) * l(matrix, column, k)).sum();
                assert!((sum - v).abs() < 1e-10, "{n} {row} {column}: {sum} {v}");
            }
        }
    }
}

#[test]
fn matrices_that_are_not_positive_definite_become_nan() {
    let plan = Cholesky::new(FieldType::F32, 3, 2, true).unwrap();
    let a = [1f32, 0.0, 2.0, 1.0, 4.0, 0.0, 0.0, 9.0, 1.0, 0.0, f32::NAN, 1.0];
    let mut found = [0f32; 12];
    plan.run(bytes_of(&a), bytes_of_mut(&mut found), &mut [0; 64], Threads::single());
    assert!(found[..4].iter().chain(&found[8..]).all(|v| v.is_nan()));
    assert_eq!(found[4..8], [2.0, 0.0, 0.0, 3.0]);
}

type C = Complex<f64>;

fn complex_numbers(count: usize, seed: u64) -> Vec<C> {
    let parts = numbers(2 * count, seed);
    parts.as_chunks::<2>().0.iter().map(|&[re, im]| Complex { re, im }).collect()
}

fn sum(terms: impl Iterator<Item = C>) -> C {
    terms.fold(C::ZERO, |sum, term| Complex { re: sum.re + term.re, im: sum.im + term.im })
}

fn are_close(x: C, y: C) -> bool {
    let difference = x - y;
    difference.re.hypot(difference.im) < 1e-9
}

/// The factors of Hermitian matrices, whose squares are compared with them.
fn complex_factors(batch: usize, n: usize, lower: bool) -> Vec<C> {
    let m = complex_numbers(batch * n * n, 4);
    let matrix = |number: usize, i: usize, j: usize| {
        let one = Complex { re: f64::from(u8::from(i == j)), im: 0.0 };
        let m = &m[number * n * n..];
        sum((0..n).map(|k| m[i * n + k] * m[j * n + k].conj()).chain([one]))
    };
    let given = |number: usize, (i, j): (usize, usize)| match (i == j, (j < i) == lower) {
        // What a diagonal has of imaginary parts counts for nothing.
        (true, _) => Complex { re: matrix(number, i, i).re, im: 5.0 },
        (_, true) => matrix(number, i, j),
        (_, false) => C::NAN,
    };
    let places = || (0..n * n).map(|at| (at / n, at % n));
    let a: Vec<C> =
        (0..batch).flat_map(|number| places().map(move |at| given(number, at))).collect();
    let plan = Cholesky::new(FieldType::C128, batch, n, lower).unwrap();
    let mut found = vec![C::NAN; a.len()];
    let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
    let pool = Pool::new(2);
    plan.run(bytes_of(&a), bytes_of_mut(&mut found), &mut scratch, pool.threads(2));
    for (number, found) in found.chunks_exact(n * n).enumerate() {
        let factor = |i: usize, j: usize| match lower {
            true => found[i * n + j],
            false => found[j * n + i].conj(),
        };
        for (i, j) in places() {
            let square = sum((0..n).map(|k| factor(i, k) * factor(j, k).conj()));
            assert!(are_close(square, matrix(number, i, j)), "{n} {lower} {i} {j}: {square:?}");
            assert!(j <= i || factor(i, j) == C::ZERO);
        }
    }
    found
}

#[test]
fn complex_factors_and_solutions() {
    for (batch, n, columns, lower) in [
        (1, 1, 1, true),
        (1, 5, 3, true),
        (1, 5, 6, false),
        (1, 65, 2, true),
        (1, 130, 33, false),
        (17, 3, 2, true),
        (33, 9, 5, false),
    ] {
        if cfg!(miri) && n > 5 {
            continue; // Miri interprets: small ones are enough for it.
        }
        let a = complex_factors(batch, n, lower);
        let b = complex_numbers(batch * n * columns, 5);
        for bits in 0..8 {
            let [left_side, transpose_a, conjugate_a] = [1, 2, 4].map(|bit| bits & bit != 0);
            let flags = TriangularFlags {
                left_side,
                lower,
                unit_diagonal: false,
                transpose_a,
                conjugate_a,
            };
            let plan = TriangularSolve::new(FieldType::C128, batch, n, columns, flags).unwrap();
            let mut x = vec![C::NAN; b.len()];
            let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
            let threads = Threads::single();
            plan.run(bytes_of(&a), bytes_of(&b), bytes_of_mut(&mut x), &mut scratch, threads);
            let sides = x.chunks_exact(n * columns).zip(b.chunks_exact(n * columns));
            for (a, (x, b)) in a.chunks_exact(n * n).zip(sides) {
                let op = |i: usize, j: usize| {
                    let v = if transpose_a { a[j * n + i] } else { a[i * n + j] };
                    if conjugate_a { v.conj() } else { v }
                };
                for (i, column) in (0..n * columns).map(|at| (at / columns, at % columns)) {
                    let at =
                        |i: usize| if left_side { i * columns + column } else { column * n + i };
                    let term = |j: usize| match left_side {
                        true => op(i, j) * x[at(j)],
                        false => x[at(j)] * op(j, i),
                    };
                    let found = sum((0..n).map(term));
                    assert!(are_close(found, b[at(i)]), "{flags:?} {n} {i} {column}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn factors_with_info_leave_the_other_triangle() {
    let pool = Pool::new(2);
    // The order of the matrix, and of the leading minor of the second one that is not positive.
    for (n, failing) in [(1, 1), (3, 2), (64, 64), (65, 3), (100, 70), (203, 0)] {
        if cfg!(miri) && n > 3 {
            continue; // Miri interprets: small ones are enough for it.
        }
        for lower in [true, false] {
            let mut a = numbers(2 * n * n, 6);
            for (i, v) in a.iter_mut().enumerate() {
                let (row, column) = (i / n % n, i % n);
                if row == column {
                    *v += 2.0 * n as f64;
                    if i >= n * n && row + 1 == failing {
                        *v = if lower { f64::NAN } else { -1.0 };
                    }
                }
            }
            let plan = Cholesky::new(FieldType::F64, 2, n, lower).unwrap();
            let [found, same] = [pool.threads(2), Threads::single()].map(|threads| {
                let (mut to, mut info) = (vec![7.0; a.len()], [7, 7]);
                let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
                let results = (bytes_of_mut(&mut to), bytes_of_mut(&mut info));
                plan.run_with_info(bytes_of(&a), results, &mut scratch, threads);
                assert_eq!(info, [0, failing as i32], "{n} {lower}");
                to
            });
            let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&same));
            let mut plain = vec![7.0; n * n];
            let mut scratch = Aligned::filled(0xff, plan.scratch_bytes());
            let one = Cholesky::new(FieldType::F64, 1, n, lower).unwrap();
            one.run(bytes_of(&a[..n * n]), bytes_of_mut(&mut plain), &mut scratch, pool.threads(2));
            for (i, &v) in found.iter().enumerate() {
                let (row, column) = (i / n % n, i % n);
                let is_other = if lower { column > row } else { column < row };
                if is_other {
                    assert_eq!(v, a[i], "{n} {lower} {row} {column}");
                } else if i < n * n {
                    assert_eq!(v, plain[i]);
                }
            }
        }
    }
}

/// The factors of matrices, their pivots, and what `info` says of them.
fn lu<T: Field>(
    ty: FieldType,
    a: &[T],
    [batch, m, n]: [usize; 3],
    threads: Threads<'_>,
) -> (Vec<T>, Vec<i32>, Vec<i32>) {
    let mut lu = vec![T::NAN; a.len()];
    let (mut pivots, mut info) = (vec![-1; batch * m.min(n)], vec![-1; batch]);
    let results = (bytes_of_mut(&mut pivots), bytes_of_mut(&mut info));
    let plan = Lu::new(ty, batch, m, n).unwrap();
    plan.run(bytes_of(a), bytes_of_mut(&mut lu), results, threads);
    (lu, pivots, info)
}

/// Whether products of factors are the matrices with their rows exchanged.
fn multiply<T: Field>(ty: FieldType, a: &[T], sizes: [usize; 3], is_close: impl Fn(T, T) -> bool) {
    let pool = Pool::new(2);
    let (found, pivots, info) = lu(ty, a, sizes, pool.threads(2));
    let same = lu(ty, a, sizes, Threads::single());
    assert!(found == same.0 && pivots == same.1 && info == same.2);
    let [batch, m, n] = sizes;
    let count = m.min(n);
    assert_eq!(info, vec![0; batch]);
    for number in 0..batch {
        let mut rows: Vec<usize> = (0..m).collect();
        for (row, &pivot) in pivots[number * count..][..count].iter().enumerate() {
            assert!(row < pivot as usize && pivot as usize <= m);
            rows.swap(row, pivot as usize - 1);
        }
        let at = |i: usize, j: usize| found[(number * m + i) * n + j];
        for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
            let l = |p: usize| if p == i { T::ONE } else { at(i, p) };
            let sum = (0..count.min(i + 1).min(j + 1)).map(|p| l(p) * at(p, j));
            let sum = sum.fold(T::ZERO, |sum, v| sum + v);
            assert!(is_close(sum, a[(number * m + rows[i]) * n + j]), "{sizes:?} {i} {j}");
        }
    }
}

#[test]
fn products_of_factors_are_the_matrix() {
    for sizes in [
        [1, 1, 1],
        [3, 2, 2],
        [2, 7, 3],
        [2, 3, 7],
        [1, 31, 31],
        [2, 32, 33],
        [1, 63, 64],
        [3, 65, 65],
        [1, 20, 130],
        [1, 150, 40],
        [1, 331, 200],
        [1, 300, 340],
        [16, 1, 1],
        [17, 3, 3],
        [33, 7, 5],
        [20, 5, 9],
        [40, 16, 16],
    ] {
        let [batch, m, n] = sizes;
        if cfg!(miri) && m > 7 {
            continue; // Miri interprets: small ones are enough for it.
        }
        let a = numbers(batch * m * n, 7);
        multiply(FieldType::F64, &a, sizes, |x, y| (x - y).abs() < 1e-11);
        let single: Vec<f32> = a.iter().map(|&v| v as f32).collect();
        multiply(FieldType::F32, &single, sizes, |x, y| (x - y).abs() < 1e-3);
        let complex = complex_numbers(batch * m * n, 8);
        if m * n < 10_000 {
            multiply(FieldType::C128, &complex, sizes, are_close);
        }
    }
}

#[test]
fn pivots_are_the_first_of_the_largest_and_zeros_are_told() {
    let nan = f64::NAN;
    let of = |a: &[f64], m, n| lu(FieldType::F64, a, [1, m, n], Threads::single());
    // A column of zeros, whose row is not exchanged.
    let (found, pivots, info) = of(&[2., 1., 3., 4., 2., 5., -4., -2., 1.], 3, 3);
    assert_eq!((pivots, info), (vec![2, 2, 3], vec![2]));
    assert_eq!(found, [4., 2., 5., 0.5, 0., 0.5, -1., 0., 6.]);
    // NaN is larger than nothing, but in the first place nothing is larger than it.
    assert_eq!(of(&[1., 0., nan, 1., 3., 0.], 3, 2).1, [3, 2]);
    assert_eq!(of(&[nan, 0., 7., 1.], 2, 2).1, [1, 2]);
    assert_eq!(of(&[nan, 0., 7., 1.], 2, 2).2, [0]);
    // One whose inverse is infinite.
    let (found, ..) = of(&[1e-310, 1., 5e-311, 2.], 2, 2);
    assert!((found[2] - 0.5).abs() < 1e-10);
    let empty = Lu::new(FieldType::F32, 2, 0, 3).unwrap();
    let mut info = [7, 7];
    let results = (&mut [][..], bytes_of_mut(&mut info));
    empty.run(&[], &mut [], results, Threads::single());
    assert_eq!(info, [0, 0]);
}

/// Matrices 3×3 that are no ordinary ones: with a pivot that is zero, all zero, with NaN, with a pivot whose inverse is
/// infinite, indefinite, and near both ends of the range.
const SPECIALS: [[f64; 9]; 8] = [
    [2., 1., 3., 4., 2., 5., -4., -2., 1.],
    [0.; 9],
    [f64::NAN, 1., 2., 3., 4., 5., 6., 7., 9.],
    [1., 1., 2., f64::NAN, 4., 5., 6., 7., 9.],
    [1e-310, 1., 0., 5e-311, 2., 0., 0., 0., 1.],
    [4., 2., 2., 2., 4., 2., 2., 2., -1.],
    [3e300, 0., 1e300, 4e300, 1e300, 0., 0., 1., 2e300],
    [3e-300, 0., 1e-300, 4e-300, 1e-300, 0., 0., 1e-300, 2e-300],
];

/// Whether numbers are as good as the same, NaN among them.
fn is_same(x: f64, y: f64) -> bool {
    x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-12 * x.abs().max(y.abs()).max(1e-290)
}

/// Special matrices between others, in batches that are computed side by side.
#[test]
fn special_matrices_of_a_batch() {
    let mut matrices: Vec<[f64; 9]> = Vec::new();
    for (i, special) in SPECIALS.into_iter().enumerate() {
        let others = numbers(3 * 9, i as u64);
        matrices.extend(others.as_chunks().0);
        matrices.push(special);
    }
    let (batch, all) = (matrices.len(), matrices.as_flattened());
    let threads = Threads::single();
    let are_close = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(&x, &y)| is_same(x, y));

    let (found, pivots, info) = lu(FieldType::F64, all, [batch, 3, 3], threads);
    let (packed, tau, q) = qr(FieldType::F64, all, [batch, 3, 3]);
    let plans = [batch, 1].map(|batch| Cholesky::new(FieldType::F64, batch, 3, true).unwrap());
    let cholesky = |plan: &Cholesky, a: &[f64]| {
        let (mut to, mut info) = (vec![7.0; a.len()], vec![7; a.len() / 9]);
        let results = (bytes_of_mut(&mut to), bytes_of_mut(&mut info));
        plan.run_with_info(bytes_of(a), results, &mut [], threads);
        (to, info)
    };
    let (factors, infos) = cholesky(&plans[0], all);
    for (i, matrix) in matrices.iter().enumerate() {
        let part = i * 9..(i + 1) * 9;
        let alone = lu(FieldType::F64, matrix, [1, 3, 3], threads);
        assert_eq!((&pivots[i * 3..][..3], info[i]), (&alone.1[..], alone.2[0]), "{matrix:?}");
        assert!(are_close(&found[part.clone()], &alone.0), "{matrix:?}");

        let alone = qr(FieldType::F64, matrix, [1, 3, 3]);
        assert!(are_close(&packed[part.clone()], &alone.0), "{matrix:?}");
        assert!(are_close(&tau[i * 3..][..3], &alone.1), "{matrix:?}");
        assert!(are_close(&q[part.clone()], &alone.2), "{matrix:?}");

        let (factor, info) = cholesky(&plans[1], matrix);
        assert_eq!(infos[i], info[0], "{matrix:?}");
        // A factor ends where it fails.
        let columns = if info[0] == 0 { 3 } else { info[0] as usize - 1 };
        for (at, (&x, &y)) in factors[part].iter().zip(&factor).enumerate() {
            assert!(at % 3 >= columns || at % 3 > at / 3 || is_same(x, y), "{matrix:?}");
        }
    }
}

/// Complex ones, whose parts are special or not.
#[test]
fn special_complex_matrices_of_a_batch() {
    let parts = SPECIALS.iter().flat_map(|re| SPECIALS.iter().map(move |im| (re, im)));
    let all: Vec<C> =
        parts.flat_map(|(re, im)| re.iter().zip(im).map(|(&re, &im)| Complex { re, im })).collect();
    let batch = all.len() / 9;
    let threads = Threads::single();
    let (found, pivots, info) = lu(FieldType::C128, &all, [batch, 3, 3], threads);
    for (i, matrix) in all.chunks_exact(9).enumerate() {
        let alone = lu(FieldType::C128, matrix, [1, 3, 3], threads);
        assert_eq!((&pivots[i * 3..][..3], info[i]), (&alone.1[..], alone.2[0]), "{matrix:?}");
        for (x, y) in found[i * 9..][..9].iter().zip(&alone.0) {
            assert!(is_same(x.re, y.re) && is_same(x.im, y.im), "{matrix:?}: {x:?}, {y:?}");
        }
    }
}

/// The factors of matrices, and the first columns of the products of their reflectors, the same for any number
/// of threads.
fn qr<T: Field>(ty: FieldType, a: &[T], [batch, m, n]: [usize; 3]) -> (Vec<T>, Vec<T>, Vec<T>) {
    let pool = Pool::new(2);
    let count = m.min(n);
    let [found, same] = [pool.threads(2), Threads::single()].map(|threads| {
        let (mut packed, mut tau) = (vec![T::NAN; a.len()], vec![T::NAN; batch * count]);
        let plan = Qr::new(ty, batch, [m, n], count).unwrap();
        plan.factor(bytes_of(a), bytes_of_mut(&mut packed), bytes_of_mut(&mut tau), threads);
        // There are no more columns than rows.
        let square: Vec<T> = packed.chunks(n).flat_map(|row| &row[..count]).copied().collect();
        let mut q = vec![T::NAN; square.len()];
        let plan = Qr::new(ty, batch, [m, count], count).unwrap();
        plan.product(bytes_of(&square), bytes_of(&tau), bytes_of_mut(&mut q), threads);
        (packed, tau, q)
    });
    assert!(bytes_of(&found.0) == bytes_of(&same.0) && bytes_of(&found.2) == bytes_of(&same.2));
    found
}

#[test]
fn orthogonal_and_triangular_factors() {
    for sizes in [
        [1, 1, 1],
        [2, 3, 2],
        [3, 2, 3],
        [1, 31, 31],
        [2, 32, 33],
        [1, 63, 65],
        [1, 65, 63],
        [1, 130, 20],
        [1, 40, 150],
        [1, 230, 200],
        [16, 1, 1],
        [17, 3, 3],
        [33, 7, 5],
        [20, 5, 9],
        [40, 16, 16],
    ] {
        let [batch, m, n] = sizes;
        if cfg!(miri) && m > 3 {
            continue; // Miri interprets: small ones are enough for it.
        }
        let count = m.min(n);
        let a = numbers(batch * m * n, 9);
        let (packed, _, q) = qr(FieldType::F64, &a, sizes);
        let single: Vec<f32> = a.iter().map(|&v| v as f32).collect();
        let (rounded, _, q_rounded) = qr(FieldType::F32, &single, sizes);
        let are_close =
            |x: &[f64], y: &[f32]| x.iter().zip(y).all(|(x, &y)| (x - f64::from(y)).abs() < 1e-3);
        assert!(are_close(&packed, &rounded) && are_close(&q, &q_rounded), "{sizes:?}");
        for number in 0..batch {
            let q = |i: usize, j: usize| q[(number * m + i) * count + j];
            for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
                let r = |p: usize| packed[(number * m + p) * n + j];
                let sum: f64 = (0..count.min(j + 1)).map(|p| q(i, p) * r(p)).sum();
                let difference = (sum - a[(number * m + i) * n + j]).abs();
                assert!(difference < 1e-12, "{sizes:?} {i} {j}: {difference}");
            }
            for (i, j) in (0..count * count).map(|at| (at / count, at % count)) {
                let sum: f64 = (0..m).map(|p| q(p, i) * q(p, j)).sum();
                let one = if i == j { 1.0 } else { 0.0 };
                assert!((sum - one).abs() < 1e-12, "{sizes:?} {i} {j}: {sum}");
            }
        }
    }
}

#[test]
fn complex_factors_and_products_with_their_reflectors() {
    type C = Complex<f64>;
    let sizes: &[[usize; 2]] = if cfg!(miri) {
        &[[3, 2]]
    } else {
        &[[1, 1], [3, 2], [2, 3], [40, 33], [70, 70], [33, 40]]
    };
    for &[m, n] in sizes {
        let parts = numbers(2 * m * n, 8);
        let mut a: Vec<C> = parts.chunks(2).map(|z| Complex { re: z[0], im: z[1] }).collect();
        // A column that has an imaginary part only where nothing is below; one of tiny numbers.
        a[(m - 1) * n + n - 1] = Complex { re: 0.0, im: 1.0 };
        for row in a.chunks_mut(n).skip(1) {
            row[0] = Complex { re: row[0].re * 1e-310, im: row[0].im * 1e-310 };
        }
        a[0] = Complex { re: 1e-310, im: 1e-310 };
        let k = m.min(n);
        let (mut packed, mut tau) = (vec![C::ZERO; m * n], vec![C::ZERO; k]);
        let plan = Qr::new(FieldType::C128, 1, [m, n], k).unwrap();
        let to = (bytes_of_mut(&mut packed), bytes_of_mut(&mut tau));
        plan.factor(bytes_of(&a), to.0, to.1, Threads::single());
        assert!((0..k).all(|i| packed[i * n + i].im == 0.0), "a diagonal is real");
        let product = |c: &[C], size: [usize; 2], left_side: bool, adjoint: bool| {
            let flags = MultiplyFlags { left_side, adjoint };
            let plan = QrMultiply::new(FieldType::C128, 1, [m, n], k, size, flags).unwrap();
            let mut to = vec![C::NAN; c.len()];
            let (packed, tau) = (bytes_of(&packed), bytes_of(&tau));
            plan.run(packed, tau, bytes_of(c), bytes_of_mut(&mut to), Threads::single());
            to
        };
        let check = |found: &[C], wanted: &dyn Fn(usize) -> C| {
            for (at, &found) in found.iter().enumerate() {
                assert!((found - wanted(at)).size() < 1e-12, "{m}×{n}, {at}: {found:?}");
            }
        };
        let ones: Vec<C> =
            (0..m * m).map(|at| if at / m == at % m { C::ONE } else { C::ZERO }).collect();
        let q = product(&ones, [m, m], true, false);
        let sum = |count: usize, term: &dyn Fn(usize) -> C| {
            (0..count).fold(C::ZERO, |sum, k| sum + term(k))
        };
        check(&ones, &|at| sum(m, &|k| q[k * m + at / m].conj() * q[k * m + at % m]));
        check(&product(&ones, [m, m], false, false), &|at| q[at]);
        check(&product(&ones, [m, m], true, true), &|at| q[at % m * m + at / m].conj());
        check(&product(&ones, [m, m], false, true), &|at| q[at % m * m + at / m].conj());
        let r = |i: usize, j: usize| if i <= j && i < k { packed[i * n + j] } else { C::ZERO };
        check(&product(&a, [m, n], true, true), &|at| r(at / n, at % n));
        check(&a, &|at| sum(k, &|l| q[at / n * m + l] * r(l, at % n)));
        if m >= n {
            let mut first = vec![C::NAN; m * n];
            let plan = Qr::new(FieldType::C128, 1, [m, n], k).unwrap();
            let to = bytes_of_mut(&mut first);
            plan.product(bytes_of(&packed), bytes_of(&tau), to, Threads::single());
            check(&first, &|at| q[at / n * m + at % n]);
        }
    }
}

#[test]
fn products_with_reflectors_are_those_with_their_product() {
    let sizes: &[(usize, usize, usize)] = if cfg!(miri) {
        &[(3, 2, 2)]
    } else {
        &[(3, 2, 2), (40, 35, 33), (70, 70, 5), (33, 40, 33)]
    };
    let pool = Pool::new(2);
    for &(order, columns, others) in sizes {
        let reflectors = order.min(columns);
        let a = numbers(2 * order * columns, 5);
        let (mut packed, mut tau) = (vec![0.0; a.len()], vec![0.0; 2 * reflectors]);
        let plan = Qr::new(FieldType::F64, 2, [order, columns], reflectors).unwrap();
        let to = (bytes_of_mut(&mut packed), bytes_of_mut(&mut tau));
        plan.factor(bytes_of(&a), to.0, to.1, Threads::single());
        // The whole product, of an identity; then others by it.
        let product = |c: &[f64], c_size: [usize; 2], left_side: bool, transposed: bool| {
            let flags = MultiplyFlags { left_side, adjoint: transposed };
            let sizes = [order, columns];
            let plan =
                QrMultiply::new(FieldType::F64, 2, sizes, reflectors, c_size, flags).unwrap();
            let mut to = vec![7.0; c.len()];
            let (packed, tau) = (bytes_of(&packed), bytes_of(&tau));
            plan.run(packed, tau, bytes_of(c), bytes_of_mut(&mut to), pool.threads(2));
            to
        };
        let mut ones = vec![0.0; 2 * order * order];
        for matrix in ones.chunks_mut(order * order) {
            matrix.iter_mut().step_by(order + 1).for_each(|x| *x = 1.0);
        }
        let q = product(&ones, [order; 2], true, false);
        for (left_side, transposed) in [(false, false), (false, true), (true, false), (true, true)]
        {
            let [m, n] = if left_side { [order, others] } else { [others, order] };
            let c = numbers(2 * m * n, 6);
            let found = product(&c, [m, n], left_side, transposed);
            for (at, found) in found.iter().enumerate() {
                let (batch, i, j) = (at / (m * n), at / n % m, at % n);
                let q = |i: usize, j: usize| {
                    let (i, j) = if transposed { (j, i) } else { (i, j) };
                    q[(batch * order + i) * order + j]
                };
                let c = |i: usize, j: usize| c[(batch * m + i) * n + j];
                let term = |k: usize| if left_side { q(i, k) * c(k, j) } else { c(i, k) * q(k, j) };
                let far = (found - (0..order).map(term).sum::<f64>()).abs();
                assert!(far < 1e-12, "{order} {others} {left_side} {transposed}: {far}");
            }
        }
        // The product is the first factor.
        let r = product(&a, [order, columns], true, true);
        for (at, (r, packed)) in r.iter().zip(&packed).enumerate() {
            let (i, j) = (at / columns % order, at % columns);
            assert!((r - if j >= i { *packed } else { 0.0 }).abs() < 1e-12);
        }
    }
}

#[test]
fn reflectors_are_lapacks() {
    let of = |a: &[f64], m, n| {
        let (packed, tau, _) = qr(FieldType::F64, a, [1, m, n]);
        (packed, tau)
    };
    // The sign of the diagonal is the other one; columns that are zero below it are left.
    let (packed, tau) = of(&[3.0, 1.0, 4.0, 2.0], 2, 2);
    assert_eq!((packed[0], packed[2], tau[0], tau[1]), (-5.0, 0.5, 1.6, 0.0));
    assert_eq!(of(&[2.0, 0.0], 2, 1), (vec![2.0, 0.0], vec![0.0]));
    assert_eq!(of(&[0.0, 2.0], 2, 1), (vec![-2.0, 1.0], vec![1.0]));
    // Squares that would leave the range.
    for scale in [1e300, 1e-300, 1e-310] {
        let (packed, tau) = of(&[3.0 * scale, 4.0 * scale], 2, 1);
        assert!((packed[0] / scale + 5.0).abs() < 1e-9 && (packed[1] - 0.5).abs() < 1e-9);
        assert!((tau[0] - 1.6).abs() < 1e-9);
    }
    let (packed, tau) = of(&[1.0, 2.0, f64::NAN, 1.0], 2, 2);
    assert!(packed.iter().chain(&tau[..1]).all(|v| v.is_nan()));
    // The second half of the matrix is made of fewer reflectors than columns.
    let plan = Qr::new(FieldType::F64, 1, [3, 3], 1).unwrap();
    let (packed, mut q) = ([0.0, 9.0, 9.0, 1.0, 9.0, 9.0, 0.0, 9.0, 9.0], [7.0; 9]);
    let threads = Threads::single();
    plan.product(bytes_of(&packed), bytes_of(&[1.0]), bytes_of_mut(&mut q), threads);
    assert_eq!(q, [0.0, -1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert!(Qr::new(FieldType::F64, 1, [3, 2], 3).is_none());
}
