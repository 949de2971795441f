//! Eigenvalues and singular values, with their vectors, give the matrix back.

mod common;

each_type!(
    singular_values,
    hermitian,
    tridiagonal_form,
    hessenberg_form,
    schur,
    eigenvectors,
    defective,
    not_finite,
    extreme
);

mod check {
    use helio_linalg::{
        Alone, Complex, Eig, Lapack, Real, Scalar, Schur, Svd, SvdVectors, Triangle, Vectors,
    };

    use num_traits::Float;

    use super::common::{Matrix, ORDERS, SHAPES, random};

    struct Singular<T: Scalar> {
        s: Vec<T::Real>,
        u: Matrix<T>,
        vh: Matrix<T>,
        info: i32,
    }

    fn svd<T: Lapack>(a: &Matrix<T>, vectors: SvdVectors) -> Singular<T> {
        let (m, n) = (a.rows, a.columns);
        let k = m.min(n);
        let (u, v) = match vectors {
            SvdVectors::Omitted => (0, 0),
            SvdVectors::Thin => (k, k),
            SvdVectors::Full => (m, n),
        };
        let mut s = vec![T::Real::default(); k];
        let (mut u, mut vh) = (Matrix::zero(m, u), Matrix::zero(v, n));
        let out = Svd { s: &mut s, u: &mut u.data, vh: &mut vh.data };
        let info = T::gesdd(&Alone, vectors, m, n, &a.data, out);
        Singular { s, u, vh, info }
    }

    pub fn singular_values<T: Lapack>() {
        let mut random = random();
        for &(m, n) in SHAPES {
            let k = m.min(n);
            for rank in [k, k / 2, 1] {
                let a = if rank == k {
                    Matrix::<T>::random(&mut random, m, n)
                } else {
                    Matrix::of_rank(&mut random, m, n, rank)
                };
                for vectors in [SvdVectors::Thin, SvdVectors::Full] {
                    let Singular { s, u, vh, info } = svd(&a, vectors);
                    assert_eq!(info, 0);
                    u.check_orthonormal(16.0);
                    vh.adjoint().check_orthonormal(16.0);
                    assert!(s.is_sorted_by(|a, b| a >= b));
                    assert!(s.iter().all(|&s| s >= T::Real::default()));
                    let scaled = Matrix::from_fn(m, k, |i, j| u.at(i, j).scale(s[j]));
                    scaled.times(&vh.part(k, n)).check(&a, 16.0);
                    let alone = svd(&a, SvdVectors::Omitted).s;
                    let row = |s: &[T::Real]| Matrix::from_fn(1, k, |_, j| T::real(s[j]));
                    row(&alone).check(&row(&s), 8.0);
                }
            }
        }
    }

    fn hermitian_matrix<T: Lapack>(n: usize, rank: usize) -> Matrix<T> {
        let mut random = random();
        let a = Matrix::<T>::of_rank(&mut random, n, n, rank.max(1));
        let a = a.plus(&a.adjoint());
        // Rounding must not leave imaginary parts.
        Matrix::from_fn(n, n, |i, j| if i == j { T::real(a.at(i, i).re()) } else { a.at(i, j) })
    }

    pub fn hermitian<T: Lapack>() {
        for &n in ORDERS {
            for rank in [n, n / 3] {
                let a = hermitian_matrix::<T>(n, rank);
                for triangle in [Triangle::Lower, Triangle::Upper] {
                    let mut v = a.triangle(triangle == Triangle::Lower);
                    let mut values = vec![T::Real::default(); n];
                    let info =
                        T::heevd(&Alone, Vectors::Wanted, triangle, n, &mut v.data, &mut values);
                    assert_eq!(info, 0);
                    assert!(values.is_sorted());
                    v.check_orthonormal(16.0);
                    let scaled = Matrix::from_fn(n, n, |i, j| v.at(i, j).scale(values[j]));
                    scaled.times(&v.adjoint()).check(&a, 16.0);
                    let mut alone = vec![T::Real::default(); n];
                    let mut copy = a.clone();
                    T::heevd(&Alone, Vectors::Omitted, triangle, n, &mut copy.data, &mut alone);
                    let row = |s: &[T::Real]| Matrix::from_fn(1, n, |_, j| T::real(s[j]));
                    row(&alone).check(&row(&values), 8.0);
                }
            }
        }
    }

    /// `H₁ H₂ …` where reflector `i` has its 1 in row `row(i)` and goes on downwards or upwards.
    fn product<T: Lapack>(
        n: usize,
        tau: &[T],
        v: impl Fn(usize) -> Vec<T>,
        is_reversed: bool,
    ) -> Matrix<T> {
        let mut q = Matrix::identity(n);
        let mut numbers: Vec<usize> = (0..tau.len()).collect();
        if is_reversed {
            numbers.reverse();
        }
        for i in numbers {
            let v = v(i);
            let h = Matrix::from_fn(n, n, |r, c| {
                let unit = if r == c { T::one() } else { T::zero() };
                unit - tau[i] * v[r] * v[c].conj()
            });
            q = q.times(&h);
        }
        q
    }

    pub fn tridiagonal_form<T: Lapack>() {
        for &n in ORDERS.iter().filter(|&&n| n > 0) {
            let a = hermitian_matrix::<T>(n, n);
            for triangle in [Triangle::Lower, Triangle::Upper] {
                let is_lower = triangle == Triangle::Lower;
                let mut packed = a.triangle(is_lower);
                let (mut d, mut e) = (vec![T::Real::default(); n], vec![T::Real::default(); n - 1]);
                let mut tau = vec![T::zero(); n - 1];
                T::hetrd(&Alone, triangle, n, &mut packed.data, &mut d, &mut e, &mut tau);
                let t = Matrix::from_fn(n, n, |i, j| match () {
                    () if i == j => T::real(d[i]),
                    () if i.abs_diff(j) == 1 => T::real(e[i.min(j)]),
                    () => T::zero(),
                });
                let v = |i: usize| -> Vec<T> {
                    (0..n)
                        .map(|r| match is_lower {
                            true if r == i + 1 => T::one(),
                            true if r > i + 1 => packed.at(r, i),
                            false if r == i => T::one(),
                            false if r < i => packed.at(r, i + 1),
                            _ => T::zero(),
                        })
                        .collect()
                };
                let q = product(n, &tau, v, !is_lower);
                q.check_orthonormal(16.0);
                q.times(&t).times(&q.adjoint()).check(&a, 16.0);
            }
        }
    }

    pub fn hessenberg_form<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS.iter().filter(|&&n| n > 0) {
            let a = Matrix::<T>::random(&mut random, n, n);
            let mut packed = a.clone();
            let mut tau = vec![T::zero(); n - 1];
            T::gehrd(&Alone, n, 1, n, &mut packed.data, &mut tau);
            let h =
                Matrix::from_fn(n, n, |i, j| if i <= j + 1 { packed.at(i, j) } else { T::zero() });
            let v = |i: usize| -> Vec<T> {
                let element = |r: usize| if r > i + 1 { packed.at(r, i) } else { T::zero() };
                (0..n).map(|r| if r == i + 1 { T::one() } else { element(r) }).collect()
            };
            let q = product(n, &tau, v, false);
            q.times(&h).times(&q.adjoint()).check(&a, 16.0);
        }
    }

    pub fn schur<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS {
            for rank in [n, n / 2] {
                let a = Matrix::<T>::of_rank(&mut random, n, n, rank.max(1));
                let mut t = a.clone();
                let mut z = Matrix::<T>::zero(n, n);
                let mut values = vec![Complex::default(); n];
                let out = Schur { values: &mut values, vectors: Some(&mut z.data) };
                assert_eq!(T::gees(&Alone, n, &mut t.data, out), 0);
                z.check_orthonormal(16.0);
                z.times(&t).times(&z.adjoint()).check(&a, 16.0);
                for j in 0..n {
                    for i in j + 1..n {
                        let is_pair =
                            !T::IS_COMPLEX && i == j + 1 && values[j].im > T::Real::default();
                        assert!(is_pair || t.at(i, j) == T::zero(), "({i}, {j}) {:?}", t.at(i, j));
                        if is_pair {
                            assert_eq!(t.at(i, i), t.at(j, j));
                            assert_eq!(values[i], values[j].conj());
                        }
                    }
                    assert_eq!(values[j].re, t.at(j, j).re());
                }
            }
        }
    }

    struct Spectrum<R> {
        values: Vec<Complex<R>>,
        left: Vec<Complex<R>>,
        right: Vec<Complex<R>>,
        info: i32,
    }

    fn eig<T: Lapack>(a: &Matrix<T>) -> Spectrum<T::Real> {
        let n = a.rows;
        let mut values = vec![Complex::default(); n];
        let [mut left, mut right] = [(); 2].map(|()| vec![Complex::default(); n * n]);
        let out = Eig { values: &mut values, left: Some(&mut left), right: Some(&mut right) };
        let info = T::geev(&Alone, n, &a.data, out);
        Spectrum { values, left, right, info }
    }

    fn to_complex<T: Lapack>(a: &Matrix<T>) -> Matrix<Complex<f64>> {
        Matrix::from_fn(a.rows, a.columns, |i, j| {
            Complex::new(f(a.at(i, j).re()), f(a.at(i, j).im()))
        })
    }

    fn f<R: Real>(x: R) -> f64 {
        x.wide()
    }

    /// Checks `A v = λ v` and `uᴴ A = λ uᴴ` to some times the rounding error of the type.
    fn check_eigen<T: Lapack>(a: &Matrix<T>, factor: f64) {
        let n = a.rows;
        let Spectrum { values, left, right, info } = eig(a);
        assert_eq!(info, 0);
        let wide = |v: &Vec<Complex<T::Real>>| Matrix {
            rows: n,
            columns: n,
            data: v.iter().map(|x| Complex::new(f(x.re), f(x.im))).collect(),
        };
        let [left, right] = [wide(&left), wide(&right)];
        let of = to_complex(a);
        let bound = factor * f(T::Real::EPS_) * n as f64 * of.size();
        let scaled = |v: &Matrix<Complex<f64>>, is_left: bool| {
            Matrix::from_fn(n, n, |i, j| {
                let value = Complex::new(f(values[j].re), f(values[j].im));
                v.at(i, j) * if is_left { value.conj() } else { value }
            })
        };
        let far = |a: Matrix<Complex<f64>>, b: Matrix<Complex<f64>>| {
            a.data.iter().zip(&b.data).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
        };
        let error = far(of.times(&right), scaled(&right, false));
        assert!(error <= bound, "right: {error:e}, {bound:e}, order {n}");
        let error = far(of.adjoint().times(&left), scaled(&left, true));
        assert!(error <= bound, "left: {error:e}, {bound:e}, order {n}");
        for v in [left, right] {
            for column in v.data.chunks(n.max(1)) {
                let norm = column.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
                assert!((norm - 1.0).abs() < 1e-5, "{norm}");
            }
        }
    }

    trait Eps {
        const EPS_: Self;
    }
    impl<R: Real> Eps for R {
        const EPS_: R = R::EPS;
    }

    pub fn eigenvectors<T: Lapack>() {
        let mut random = random();
        for &n in ORDERS {
            check_eigen(&Matrix::<T>::random(&mut random, n, n), 32.0);
            check_eigen(&hermitian_matrix::<T>(n, n), 32.0);
            // Badly balanced.
            let a = Matrix::<T>::random(&mut random, n, n);
            let scale = |i: usize| T::Real::of(10f64.powi(i as i32 % 3));
            let a = Matrix::from_fn(n, n, |i, j| a.at(i, j).scale(scale(i) / scale(j)));
            check_eigen(&a, 64.0);
        }
    }

    pub fn defective<T: Lapack>() {
        for &n in ORDERS {
            // One block of Jordan's, a permutation, and matrices that are triangular already.
            let jordan =
                Matrix::<T>::from_fn(
                    n,
                    n,
                    |i, j| {
                        if i == j || i + 1 == j { T::one() } else { T::zero() }
                    },
                );
            let cycle =
                Matrix::<T>::from_fn(
                    n,
                    n,
                    |i, j| {
                        if i == (j + 1) % n { T::one() } else { T::zero() }
                    },
                );
            for a in [&jordan, &jordan.adjoint(), &cycle, &Matrix::zero(n, n), &Matrix::identity(n)]
            {
                check_eigen(a, 64.0);
            }
        }
    }

    pub fn not_finite<T: Lapack>() {
        for bad in [f64::NAN, f64::INFINITY] {
            let a = Matrix::<T>::from_fn(3, 3, |i, j| {
                T::real(T::Real::of(if (i, j) == (2, 1) { bad } else { 1.0 }))
            });
            let Singular { s, u, vh, info } = svd(&a, SvdVectors::Full);
            assert_eq!(info, -4);
            let is_nan = |x: &T| x.re().is_nan();
            assert!(s.iter().all(|s| s.is_nan()));
            assert!(u.data.iter().chain(&vh.data).all(is_nan));
            let mut values = vec![T::Real::default(); 3];
            let mut v = a.clone();
            T::heevd(&Alone, Vectors::Wanted, Triangle::Lower, 3, &mut v.data, &mut values);
            assert!(values.iter().all(|x| x.is_nan()) && v.data.iter().all(is_nan));
            let Spectrum { values, left, right, info } = eig(&a);
            assert_eq!(info, -4);
            assert!(values.iter().chain(&left).chain(&right).all(|x| x.re.is_nan()));
            let mut values = vec![Complex::default(); 3];
            let mut t = a.clone();
            let out = Schur { values: &mut values, vectors: None };
            assert_eq!(T::gees(&Alone, 3, &mut t.data, out), -4);
            // Factorisations end, whatever they give.
            let mut pivots = [0; 3];
            T::getrf(&Alone, 3, 3, &mut a.data.clone(), &mut pivots);
            assert!(pivots.iter().all(|p| (1..=3).contains(p)));
            T::geqrf(&Alone, 3, 3, &mut a.data.clone(), &mut [T::zero(); 3]);
        }
    }

    pub fn extreme<T: Lapack>() {
        let mut random = random();
        let a = Matrix::<T>::random(&mut random, 9, 7);
        let largest = T::Real::of(1e30f64);
        let huge = if largest * largest == largest * largest * largest {
            largest
        } else {
            T::Real::of(1e30f64).powi(9)
        };
        for scale in [huge, T::Real::of(1.0) / huge] {
            let a = Matrix::from_fn(9, 7, |i, j| a.at(i, j).scale(scale));
            let Singular { s, u, vh, info } = svd(&a, SvdVectors::Thin);
            assert_eq!(info, 0);
            let scaled = Matrix::from_fn(9, 7, |i, j| u.at(i, j).scale(s[j]));
            scaled.times(&vh).check(&a, 16.0);
            let h =
                Matrix::from_fn(5, 5, |i, j| if i >= j { a.at(i, j) } else { a.at(j, i).conj() });
            let h =
                Matrix::from_fn(
                    5,
                    5,
                    |i, j| if i == j { T::real(h.at(i, j).re()) } else { h.at(i, j) },
                );
            let mut v = h.clone();
            let mut values = vec![T::Real::default(); 5];
            T::heevd(&Alone, Vectors::Wanted, Triangle::Lower, 5, &mut v.data, &mut values);
            let scaled = Matrix::from_fn(5, 5, |i, j| v.at(i, j).scale(values[j]));
            scaled.times(&v.adjoint()).check(&h, 16.0);
            let (mut packed, mut tau) = (a.clone(), vec![T::zero(); 7]);
            T::geqrf(&Alone, 9, 7, &mut packed.data, &mut tau);
            let r = packed.part(7, 7).triangle(false);
            T::orgqr(&Alone, 9, 7, &mut packed.data, &tau);
            packed.times(&r).check(&a, 16.0);
        }
    }
}
