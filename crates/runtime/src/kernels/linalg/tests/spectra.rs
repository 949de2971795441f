//! Eigenvalues and singular values: put back into their equations, and where they are known.

use super::super::*;
use super::numbers;
use crate::kernels::bytes::{Plain, bytes_of, bytes_of_mut};
use crate::{Pool, Threads};

/// A type of numbers under test.
trait Number: Plain + PartialEq + std::fmt::Debug {
    const TYPE: FieldType;
    const EPSILON: f64;
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ident $field:ident)*) => { $(
        impl Number for $ty {
            const TYPE: FieldType = FieldType::$field;
            const EPSILON: f64 = $ty::EPSILON as f64;
            fn of(value: f64) -> Self {
                value as $ty
            }
            fn wide(self) -> f64 {
                f64::from(self)
            }
        }
    )* };
}

numbers!(f32 F32 f64 F64);

/// Around the orders at which matrices are halved, and of panels.
const ORDERS: &[usize] = if cfg!(miri) {
    &[1, 3]
} else {
    &[1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 34, 47, 64, 65, 66, 67, 100, 131]
};

/// Matrices that need care: with values that are alike, zero, or of all sizes.
const KINDS: &[&str] = &[
    "random",
    "identity",
    "zeros",
    "ones",
    "chain",
    "zeros on the diagonal",
    "Wilkinson's",
    "Jordan's",
    "of rank 3",
    "falling",
    "rising",
    "rows rising",
    "diagonal",
    "Hilbert's",
    "tiny",
    "huge",
];

/// Element `(i, j)` of a matrix `m`×`n` of a kind.
fn element(kind: &str, random: &[f64], [m, n]: [usize; 2], i: usize, j: usize) -> f64 {
    let own = random[i * n + j];
    let middle = n as f64 / 2.0;
    let fall = |at: usize, of: usize| 10f64.powf(-30.0 * at as f64 / of as f64);
    let beside = |on: f64, beside: f64| match j.abs_diff(i) {
        0 => on,
        1 => beside,
        _ => 0.0,
    };
    match kind {
        "random" => own,
        "identity" => beside(1.0, 0.0),
        "zeros" => 0.0,
        "ones" => 1.0,
        "chain" => beside(2.0, -1.0),
        "zeros on the diagonal" => beside((i % 4) as f64, (i.min(j) % 3) as f64),
        "Wilkinson's" => beside((middle - i as f64).abs(), 1.0),
        "Jordan's" => f64::from(u8::from(j == i + 1)),
        "of rank 3" => {
            (0..3).map(|k| random[i * n + k.min(n - 1)] * random[k.min(m - 1) * n + j]).sum()
        }
        "falling" => own * fall(i + j, m + n),
        "rising" => own / fall(i + j, m + n),
        "rows rising" => own / fall(i, m),
        "diagonal" => beside(fall(i, n), 0.0),
        "Hilbert's" => 1.0 / (i + j + 1) as f64,
        "tiny" => own * 1e-36,
        "huge" => own * 1e35,
        _ => unreachable!("there is no kind {kind}"),
    }
}

fn matrix<T: Number>(kind: &str, [m, n]: [usize; 2]) -> Vec<T> {
    let random = numbers(m * n, 9);
    (0..m * n).map(|at| T::of(element(kind, &random, [m, n], at / n, at % n))).collect()
}

/// A matrix and the same transposed, by halves.
fn symmetric<T: Number>(kind: &str, n: usize) -> Vec<T> {
    let a = matrix::<T>(kind, [n, n]);
    let half = |i: usize, j: usize| 0.5 * a[i * n + j].wide();
    (0..n * n).map(|at| (at / n, at % n)).map(|(i, j)| T::of(half(i, j) + half(j, i))).collect()
}

/// The vectors as columns, the values, and `info`.
fn eigen<T: Number>(
    a: &[T],
    [batch, n]: [usize; 2],
    (is_lower, vectors): (bool, bool),
    threads: Threads<'_>,
) -> (Vec<T>, Vec<T>, Vec<i32>) {
    let plan = Eigh::new(T::TYPE, batch, n, is_lower, vectors).unwrap();
    let (mut v, mut values) = (vec![T::of(7.0); a.len()], vec![T::of(7.0); batch * n]);
    let mut info = vec![7; batch];
    let rest = (bytes_of_mut(&mut values), bytes_of_mut(&mut info));
    plan.run(bytes_of(a), bytes_of_mut(&mut v), rest, threads);
    (v, values, info)
}

/// Fails if the columns of a matrix of so many rows are not orthonormal up to some rounding errors.
fn check_orthonormal<T: Number>(v: &[T], columns: usize, bound: f64, what: &str) {
    if columns == 0 {
        return;
    }
    for i in 0..columns {
        for j in 0..=i {
            let product = |row: &[T]| row[i].wide() * row[j].wide();
            let sum: f64 = v.chunks(columns).map(product).sum();
            let far = (sum - f64::from(u8::from(i == j))).abs();
            assert!(far <= bound, "{what}: columns {i} and {j}: {far:e}, not {bound:e}");
        }
    }
}

/// Fails if vectors are not those of a symmetric matrix up to some rounding errors; gives how much these are, and
/// the largest value.
fn check_equation<T: Number>(what: &str, a: &[T], v: &[T], values: &[T]) -> (f64, f64) {
    let n = values.len();
    assert!(values.windows(2).all(|pair| pair[0].wide() <= pair[1].wide()), "{what}: order");
    let bound = T::EPSILON * (8.0 + 2.0 * n as f64);
    check_orthonormal(v, n, bound, what);
    let most = values.iter().fold(0f64, |most, value| most.max(value.wide().abs()));
    for (row, of_row) in a.chunks(n).zip(v.chunks(n)) {
        for j in 0..n {
            let sum: f64 = (0..n).map(|k| row[k].wide() * v[k * n + j].wide()).sum();
            let far = (sum - of_row[j].wide() * values[j].wide()).abs();
            assert!(far <= bound * most, "{what}: vector {j}: {far:e} of {most:e}");
        }
    }
    (bound, most)
}

fn check_eigen<T: Number>(kind: &str, n: usize) {
    let what = format!("{kind} {n} {}", std::any::type_name::<T>());
    let a = symmetric::<T>(kind, n);
    let (v, values, info) = eigen(&a, [1, n], (true, true), Threads::single());
    assert_eq!(info, [0], "{what}");
    let (bound, most) = check_equation(&what, &a, &v, &values);
    let (zeros, alone, _) = eigen(&a, [1, n], (true, false), Threads::single());
    assert!(zeros.iter().all(|&x| x == T::of(0.0)));
    for (value, alone) in values.iter().zip(&alone) {
        let far = (value.wide() - alone.wide()).abs();
        assert!(far <= bound * most, "{what}: {value:?} and alone {alone:?}");
    }
}

#[test]
fn eigenvectors_are_those_of_the_matrix() {
    for &n in ORDERS {
        for kind in KINDS {
            check_eigen::<f32>(kind, n);
            check_eigen::<f64>(kind, n);
        }
    }
}

/// Checks each matrix of a batch by itself.
#[test]
fn small_matrices_of_a_batch_have_their_own_eigenvectors() {
    fn check<T: Number>(n: usize) {
        let all: Vec<T> = KINDS.iter().flat_map(|kind| symmetric::<T>(kind, n)).collect();
        let batch = KINDS.len();
        let (v, values, info) = eigen(&all, [batch, n], (true, true), Threads::single());
        assert_eq!(info, vec![0; batch]);
        let (_, alone, _) = eigen(&all, [batch, n], (false, false), Threads::single());
        assert_eq!(values, alone);
        for (number, kind) in KINDS.iter().enumerate() {
            let of = |x: &[T], size: usize| x[number * size..][..size].to_vec();
            let [a, v] = [of(&all, n * n), of(&v, n * n)];
            check_equation(&format!("{kind} {n} in a batch"), &a, &v, &of(&values, n));
        }
        // Neighbours make no difference.
        let rest = eigen(&all[n * n..], [batch - 1, n], (true, true), Threads::single());
        assert!(rest.0 == v[n * n..] && rest.1 == values[n..]);
    }
    for n in if cfg!(miri) { 2..4 } else { 1..18 } {
        check::<f32>(n);
        check::<f64>(n);
    }
}

#[test]
fn one_triangle_is_looked_at_and_threads_make_no_difference() {
    let pool = Pool::new(2);
    for n in if cfg!(miri) { [3, 5] } else { [5, 150] } {
        let a: Vec<f64> = [symmetric("random", n), symmetric("chain", n)].concat();
        let (v, values, info) = eigen(&a, [2, n], (true, true), Threads::single());
        assert_eq!(info, [0, 0]);
        for is_lower in [false, true] {
            let mut a = a.clone();
            for (at, x) in a.iter_mut().enumerate() {
                let (i, j) = (at / n % n, at % n);
                if i != j && (i > j) != is_lower {
                    *x = f64::NAN;
                }
            }
            let found = eigen(&a, [2, n], (is_lower, true), pool.threads(2));
            assert!(found.0 == v && found.1 == values);
            let alone = eigen(&a[..n * n], [1, n], (is_lower, true), pool.threads(2));
            assert!(alone.0 == v[..n * n] && alone.1 == values[..n]);
        }
    }
}

#[test]
fn eigenvalues_of_a_chain_are_known() {
    for &n in ORDERS {
        for vectors in [false, true] {
            let a = symmetric::<f64>("chain", n);
            let (_, values, _) = eigen(&a, [1, n], (true, vectors), Threads::single());
            for (k, value) in values.iter().enumerate() {
                let angle = std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
                let far = (value - (2.0 - 2.0 * angle.cos())).abs();
                assert!(far <= 4.0 * f64::EPSILON * n as f64, "{n}, {k}: {far:e}");
            }
        }
    }
}

/// Singular values and vectors: `u`, `s`, `vᵀ` and `info`.
struct Singular<T> {
    u: Vec<T>,
    s: Vec<T>,
    vt: Vec<T>,
    info: Vec<i32>,
}

fn singular<T: Number>(
    a: &[T],
    batch: usize,
    [m, n]: [usize; 2],
    vectors: SvdVectors,
    threads: Threads<'_>,
) -> Singular<T> {
    let k = m.min(n);
    let [left, right] = match vectors {
        SvdVectors::Omitted => [0, 0],
        SvdVectors::Thin => [k, k],
        SvdVectors::Full => [m, n],
    };
    let plan = Svd::new(T::TYPE, batch, [m, n], vectors).unwrap();
    let some = |len: usize| vec![T::of(7.0); batch * len];
    let (mut u, mut s, mut vt) = (some(m * left), some(k), some(right * n));
    let mut info = vec![7; batch];
    let results = SvdResults {
        values: bytes_of_mut(&mut s),
        left: bytes_of_mut(&mut u),
        right: bytes_of_mut(&mut vt),
        info: bytes_of_mut(&mut info),
    };
    plan.run(bytes_of(a), results, threads);
    Singular { u, s, vt, info }
}

/// Fails if a decomposition is not that of a matrix up to some rounding errors; gives how much these are, and the
/// largest value.
fn check_decomposition<T: Number>(
    what: &str,
    a: &[T],
    [m, n]: [usize; 2],
    [u, s, vt]: [&[T]; 3],
) -> (f64, f64) {
    let k = m.min(n);
    let columns = u.len() / m;
    assert!(s.windows(2).all(|pair| pair[0].wide() >= pair[1].wide()), "{what}: order");
    assert!(s[k - 1].wide() >= 0.0, "{what}: sign");
    let bound = T::EPSILON * (8.0 + 2.0 * m.max(n) as f64);
    check_orthonormal(u, columns, bound, what);
    let v: Vec<T> = {
        let rows = vt.len() / n;
        (0..vt.len()).map(|at| vt[at % rows * n + at / rows]).collect()
    };
    check_orthonormal(&v, vt.len() / n, bound, what);
    let most = s[0].wide();
    // What is beside the diagonal may be so small beside it that it is left out.
    let bound = bound + 50.0 * T::EPSILON;
    for i in 0..m {
        for j in 0..n {
            let term = |l: usize| u[i * columns + l].wide() * s[l].wide() * vt[l * n + j].wide();
            let far = ((0..k).map(term).sum::<f64>() - a[i * n + j].wide()).abs();
            assert!(far <= bound * most, "{what}: ({i}, {j}): {far:e} of {most:e}");
        }
    }
    (bound, most)
}

fn check_singular<T: Number>(kind: &str, [m, n]: [usize; 2]) {
    let what = format!("{kind} {m}×{n} {}", std::any::type_name::<T>());
    let a = matrix::<T>(kind, [m, n]);
    let alone = singular(&a, 1, [m, n], SvdVectors::Omitted, Threads::single());
    assert_eq!(alone.info, [0], "{what}");
    for vectors in [SvdVectors::Thin, SvdVectors::Full] {
        let Singular { u, s, vt, info } = singular(&a, 1, [m, n], vectors, Threads::single());
        assert_eq!(info, [0], "{what}");
        let (bound, most) = check_decomposition(&what, &a, [m, n], [&u, &s, &vt]);
        for (value, alone) in s.iter().zip(&alone.s) {
            let far = (value.wide() - alone.wide()).abs();
            assert!(far <= bound * most, "{what}: {value:?} and alone {alone:?}");
        }
    }
}

#[test]
fn singular_vectors_make_the_matrix() {
    for &n in ORDERS {
        for kind in KINDS {
            check_singular::<f32>(kind, [n, n]);
            check_singular::<f64>(kind, [n, n]);
        }
    }
}

#[test]
fn singular_vectors_make_matrices_that_are_not_square() {
    let shapes: &[[usize; 2]] = match cfg!(miri) {
        true => &[[3, 2], [2, 3]],
        false => &[[1, 5], [3, 2], [8, 3], [40, 33], [70, 33], [130, 8], [66, 65]],
    };
    for &[m, n] in shapes {
        for kind in ["random", "zeros", "ones", "of rank 3", "falling", "rows rising"] {
            for shape in [[m, n], [n, m]] {
                check_singular::<f32>(kind, shape);
                check_singular::<f64>(kind, shape);
            }
        }
    }
}

#[test]
fn small_matrices_of_a_batch_have_their_own_singular_vectors() {
    fn check<T: Number>([m, n]: [usize; 2]) {
        let (batch, k) = (KINDS.len(), m.min(n));
        let all: Vec<T> = KINDS.iter().flat_map(|kind| matrix::<T>(kind, [m, n])).collect();
        let vectors = if m == n { SvdVectors::Full } else { SvdVectors::Thin };
        let of = |a: &[T], batch| singular(a, batch, [m, n], vectors, Threads::single());
        let Singular { u, s, vt, info } = of(&all, batch);
        assert_eq!(info, vec![0; batch]);
        for (number, kind) in KINDS.iter().enumerate() {
            let what = format!("{kind} {m}×{n} {} in a batch", std::any::type_name::<T>());
            let part = |x: &[T], size: usize| x[number * size..][..size].to_vec();
            let [a, u, s, vt] =
                [(&all, m * n), (&u, m * k), (&s, k), (&vt, k * n)].map(|(x, size)| part(x, size));
            check_decomposition(&what, &a, [m, n], [&u, &s, &vt]);
        }
        let rest = of(&all[m * n..], batch - 1);
        assert!(rest.u == u[m * k..] && rest.s == s[k..] && rest.vt == vt[k * n..]);
        let alone = singular(&all, batch, [m, n], SvdVectors::Omitted, Threads::single());
        for (number, (value, alone)) in s.iter().zip(&alone.s).enumerate() {
            let (kind, most) = (KINDS[number / k], s[number / k * k].wide());
            let far = (value.wide() - alone.wide()).abs();
            let bound = T::EPSILON * (58 + 2 * m.max(n)) as f64 * most;
            assert!(far <= bound, "{kind}: {value:?} and alone {alone:?}");
        }
    }
    for n in if cfg!(miri) { 2..4 } else { 1..18 } {
        for shape in [[n, n], [n, n + 5], [2 * n, n], [n, 1], [1, n]] {
            check::<f32>(shape);
            check::<f64>(shape);
        }
    }
}

#[test]
fn singular_values_of_a_bidiagonal_matrix_are_known() {
    for &n in ORDERS {
        let mut a = matrix::<f64>("identity", [n, n]);
        a.iter_mut().skip(1).step_by(n + 1).take(n - 1).for_each(|x| *x = -1.0);
        for vectors in [SvdVectors::Omitted, SvdVectors::Thin] {
            let s = singular(&a, 1, [n, n], vectors, Threads::single()).s;
            for (k, s) in s.iter().rev().enumerate() {
                let angle = std::f64::consts::PI * (2 * k + 1) as f64 / (4 * n + 2) as f64;
                let far = (s - 2.0 * angle.sin()).abs();
                assert!(far <= 4.0 * f64::EPSILON * n as f64, "{n}, {k}: {far:e}");
            }
        }
    }
}

#[test]
fn threads_and_batches_make_no_difference_to_singular_values() {
    let pool = Pool::new(2);
    let shapes =
        if cfg!(miri) { [[3, 3], [3, 2], [2, 3]] } else { [[150, 150], [200, 90], [5, 9]] };
    for [m, n] in shapes {
        let a: Vec<f32> = [matrix("random", [m, n]), matrix("ones", [m, n])].concat();
        let of = |a: &[f32], batch: usize, threads: Threads<'_>| {
            let Singular { u, s, vt, info } = singular(a, batch, [m, n], SvdVectors::Full, threads);
            assert!(info.iter().all(|&info| info == 0));
            (u, s, vt)
        };
        let all = of(&a, 2, Threads::single());
        let with_threads = of(&a, 2, pool.threads(2));
        assert!(all == with_threads);
        let (u, s, vt) = of(&a[..m * n], 1, pool.threads(2));
        assert!(u == all.0[..m * m] && s == all.1[..m.min(n)] && vt == all.2[..n * n]);
    }
}

#[test]
fn what_is_not_finite_has_no_values() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for n in [1, 3, 40] {
            let mut a = [symmetric::<f64>("chain", n), symmetric("chain", n)].concat();
            a[n * n - n] = bad;
            let (v, values, info) = eigen(&a, [2, n], (true, true), Threads::single());
            assert_eq!(info, [-4, 0]);
            assert!(v[..n * n].iter().chain(&values[..n]).all(|x| x.is_nan()));
            assert!(v[n * n..].iter().chain(&values[n..]).all(|x| x.is_finite()));
            let Singular { u, s, vt, info } =
                singular(&a, 2, [n, n], SvdVectors::Full, Threads::single());
            assert_eq!(info, [-4, 0]);
            let all = |is: fn(f64) -> bool, own: usize| {
                let matrix = own * n * n..(own + 1) * n * n;
                let values = s[own * n..(own + 1) * n].iter();
                values.chain(&u[matrix.clone()]).chain(&vt[matrix]).all(|&x| is(x))
            };
            assert!(all(f64::is_nan, 0) && all(f64::is_finite, 1));
        }
    }
}

#[test]
fn matrices_without_elements_have_no_values() {
    let none: [f32; 0] = [];
    assert_eq!(eigen(&none, [3, 0], (true, true), Threads::single()).2, [0; 3]);
    for shape in [[0, 0], [3, 0], [0, 3]] {
        let Singular { u, s, vt, info } =
            singular(&none, 1, shape, SvdVectors::Full, Threads::single());
        assert!(info == [0] && s.is_empty());
        for (basis, n) in [(u, shape[0]), (vt, shape[1])] {
            assert_eq!(basis, matrix::<f32>("identity", [n, n]));
        }
    }
    assert!(Eigh::new(FieldType::C64, 1, 3, true, true).is_none());
    assert!(Svd::new(FieldType::C128, 1, [3, 3], SvdVectors::Thin).is_none());
    assert!(Eigh::new(FieldType::F32, 1, usize::MAX / 2, true, true).is_none());
    assert!(Svd::new(FieldType::F32, 1, [usize::MAX / 2, 3], SvdVectors::Thin).is_none());
}
