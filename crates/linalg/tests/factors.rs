//! Factorisations give the matrix back, and solves its right-hand side.

mod common;

each_type!(
    cholesky,
    lu,
    qr,
    q_times,
    pivoted_qr,
    triangular_solves,
    tridiagonal_solves,
    updates,
    failures
);

mod check {
    use helio_linalg::{
        Alone, Lapack, Real, Reflectors, Side, Solve, Transpose, Triangle, Tridiagonal,
    };

    use super::common::{Matrix, ORDERS, SHAPES, random};

    pub fn cholesky<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS {
            let b = Matrix::<T>::random(&mut random, n, n + 5);
            let a = b.times(&b.adjoint());
            for triangle in [Triangle::Lower, Triangle::Upper] {
                let mut factor = a.triangle(triangle == Triangle::Lower);
                assert_eq!(T::potrf(&Alone, triangle, n, &mut factor.data), 0);
                let factor = factor.triangle(triangle == Triangle::Lower);
                match triangle {
                    Triangle::Lower => factor.times(&factor.adjoint()).check(&a, 4.0),
                    Triangle::Upper => factor.adjoint().times(&factor).check(&a, 4.0),
                }
            }
        }
    }

    pub fn lu<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            let k = m.min(n);
            for rank in [k, k / 2] {
                let a = if rank == k {
                    Matrix::<T>::random(&mut random, m, n)
                } else {
                    Matrix::of_rank(&mut random, m, n, rank)
                };
                let mut lu = a.clone();
                let mut pivots = vec![0; k];
                let info = T::getrf(&Alone, m, n, &mut lu.data, &mut pivots);
                assert!(info == 0 || rank < k);
                let mut l = lu.part(m, k).triangle(true);
                (0..k).for_each(|i| l.data[i + i * m] = T::one());
                let size = l.size();
                assert!(size <= 1.5, "{size}");
                let mut product = l.times(&lu.part(k, n).triangle(false));
                for (i, &pivot) in pivots.iter().enumerate().rev() {
                    for j in 0..n {
                        product.data.swap(i + j * m, pivot as usize - 1 + j * m);
                    }
                }
                product.check(&a, 8.0);
            }
        }
    }

    fn reflectors<T: Lapack>(a: &Matrix<T>) -> (Matrix<T>, Vec<T>) {
        let mut packed = a.clone();
        let mut tau = vec![T::zero(); a.rows.min(a.columns)];
        T::geqrf(&Alone, a.rows, a.columns, &mut packed.data, &mut tau);
        (packed, tau)
    }

    /// The product of reflectors, in as many columns.
    fn q_of<T: Lapack>(packed: &Matrix<T>, tau: &[T], columns: usize) -> Matrix<T> {
        let mut q = Matrix::from_fn(packed.rows, columns, |i, j| {
            if j < packed.columns { packed.at(i, j) } else { T::zero() }
        });
        T::orgqr(&Alone, q.rows, columns, &mut q.data, tau);
        q
    }

    pub fn qr<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            let k = m.min(n);
            for rank in [k, k / 2] {
                let a = Matrix::<T>::of_rank(&mut random, m, n, rank.max(1));
                let (packed, tau) = reflectors(&a);
                let thin = q_of(&packed, &tau, k);
                thin.check_orthonormal(8.0);
                thin.times(&packed.part(k, n).triangle(false)).check(&a, 8.0);
                let full = q_of(&packed, &tau, m);
                full.check_orthonormal(8.0);
                full.times(&packed.triangle(false)).check(&a, 8.0);
            }
        }
    }

    pub fn q_times<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            let (packed, tau) = reflectors(&Matrix::<T>::random(&mut random, m, n.min(m)));
            let q = q_of(&packed, &tau, m);
            let reflectors = Reflectors { packed: &packed.data, tau: &tau };
            for is_adjoint in [false, true] {
                let op = if is_adjoint { q.adjoint() } else { q.clone() };
                let c = Matrix::<T>::random(&mut random, m, 5);
                let mut product = c.clone();
                let data = &mut product.data;
                T::ormqr(&Alone, Side::Left, is_adjoint, m, 5, reflectors, data);
                product.check(&op.times(&c), 8.0);
                let c = Matrix::<T>::random(&mut random, 5, m);
                let mut product = c.clone();
                let data = &mut product.data;
                T::ormqr(&Alone, Side::Right, is_adjoint, 5, m, reflectors, data);
                product.check(&c.times(&op), 8.0);
            }
        }
    }

    pub fn pivoted_qr<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            for first in [usize::MAX, 1] {
                let a = Matrix::<T>::of_rank(&mut random, m, n, (m.min(n) / 2).max(1));
                let mut packed = a.clone();
                let mut pivots: Vec<i32> = (0..n).map(|j| i32::from(j == first)).collect();
                let k = m.min(n);
                let mut tau = vec![T::zero(); k];
                T::geqp3(&Alone, m, n, &mut packed.data, &mut pivots, &mut tau);
                let permuted = Matrix::from_fn(m, n, |i, j| a.at(i, pivots[j] as usize - 1));
                let r = packed.part(k, n).triangle(false);
                q_of(&packed, &tau, k).times(&r).check(&permuted, 8.0);
                if first < n {
                    assert_eq!(pivots[0], 2);
                } else {
                    let size = |i: usize| r.at(i, i).abs1();
                    let slack = T::Real::of(1e-4);
                    assert!((1..k).all(|i| size(i) <= size(i - 1) + slack));
                }
            }
        }
    }

    pub fn triangular_solves<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            for side in [Side::Left, Side::Right] {
                let order = if side == Side::Left { m } else { n };
                for triangle in [Triangle::Lower, Triangle::Upper] {
                    for is_unit in [false, true] {
                        let mut a = Matrix::<T>::random(&mut random, order, order);
                        // Well conditioned; what must not be read is not finite.
                        let small = T::Real::of(1.0 / order.max(1) as f64);
                        a.data.iter_mut().for_each(|x| *x = x.scale(small));
                        let mut given = a.clone();
                        for i in 0..order {
                            let unit = a.at(i, i) + T::one() + T::one();
                            a.data[i + i * order] = if is_unit { T::one() } else { unit };
                            given.data[i + i * order] =
                                if is_unit { T::real(T::Real::of(f64::NAN)) } else { unit };
                        }
                        let a = a.triangle(triangle == Triangle::Lower);
                        let is_read = |i: usize, j: usize| {
                            if triangle == Triangle::Lower { i >= j } else { i <= j }
                        };
                        let given = Matrix::from_fn(order, order, |i, j| {
                            if is_read(i, j) {
                                given.at(i, j)
                            } else {
                                T::real(T::Real::of(f64::NAN))
                            }
                        });
                        for transpose in [Transpose::None, Transpose::Transpose, Transpose::Adjoint]
                        {
                            let op = match transpose {
                                Transpose::None => a.clone(),
                                Transpose::Transpose => a.transpose(),
                                Transpose::Adjoint => a.adjoint(),
                            };
                            let b = Matrix::<T>::random(&mut random, m, n);
                            let mut x = b.clone();
                            let how = Solve { side, triangle, transpose, is_unit };
                            T::trsm(&Alone, how, m, n, &given.data, &mut x.data);
                            match side {
                                Side::Left => op.times(&x).check(&b, 8.0),
                                Side::Right => x.times(&op).check(&b, 8.0),
                            }
                        }
                    }
                }
            }
        }
    }

    pub fn tridiagonal_solves<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS {
            let parts = Matrix::<T>::random(&mut random, n, 3);
            let part = |j: usize| parts.data[j * n..(j + 1) * n].to_vec();
            let (lower, diagonal, upper) = (part(0), part(1), part(2));
            let a = Matrix::from_fn(n, n, |i, j| match () {
                () if i == j => diagonal[i],
                () if i == j + 1 => lower[i],
                () if i + 1 == j => upper[i],
                () => T::zero(),
            });
            let x = Matrix::<T>::random(&mut random, n, 4);
            let b = a.times(&x);
            let mut solved = b.clone();
            let (mut lower, mut diagonal, mut upper) = (lower, diagonal, upper);
            let of = Tridiagonal { lower: &mut lower, diagonal: &mut diagonal, upper: &mut upper };
            assert_eq!(T::gtsv(&Alone, n, 4, of, &mut solved.data), 0);
            // The residual is what elimination makes small.
            let residual = a.times(&solved);
            residual.check(&b, 16.0 * solved.size().max(1.0));
        }
    }

    pub fn updates<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS {
            let b = Matrix::<T>::random(&mut random, n, n + 5);
            let a = b.times(&b.adjoint());
            let mut u = a.clone();
            assert_eq!(T::potrf(&Alone, Triangle::Upper, n, &mut u.data), 0);
            let mut u = u.triangle(false);
            let w = Matrix::<T>::random(&mut random, n, 1);
            let mut used = w.data.clone();
            T::cholesky_update(&Alone, n, &mut u.data, &mut used);
            let row = w.transpose();
            u.adjoint().times(&u).check(&a.plus(&row.adjoint().times(&row)), 8.0);
        }
    }

    pub fn failures<T: Lapack>() {
        let one = T::one();
        let of = |rows: &[[f64; 2]; 2]| {
            let real = |x: f64| T::real(T::Real::of(x));
            [real(rows[0][0]), real(rows[1][0]), real(rows[0][1]), real(rows[1][1])]
        };
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let indefinite = &mut of(&[[1.0, 2.0], [2.0, 1.0]]);
            assert_eq!(T::potrf(&Alone, triangle, 2, indefinite), 2);
            let nan = &mut of(&[[f64::NAN, 2.0], [2.0, 1.0]]);
            assert_eq!(T::potrf(&Alone, triangle, 2, nan), 1);
        }
        let mut pivots = [0; 2];
        assert_eq!(T::getrf(&Alone, 2, 2, &mut of(&[[0.0, 0.0], [0.0, 0.0]]), &mut pivots), 1);
        assert_eq!(pivots, [1, 2]);
        assert_eq!(T::getrf(&Alone, 2, 2, &mut of(&[[1.0, 2.0], [1.0, 2.0]]), &mut pivots), 2);
        let singular = Tridiagonal {
            lower: &mut [one, one],
            diagonal: &mut [one, one],
            upper: &mut [one, one],
        };
        assert_eq!(T::gtsv(&Alone, 2, 1, singular, &mut [one, one]), 2);
    }
}
