//! Dimensions: sizes, names of sizes that are known when a program is called, and expressions of
//! them.
//!
//! An expression is kept as a polynomial with integer coefficients over names and floor-divisions,
//! so that equal expressions look equal: `n + m` and `m + n`, `n + n` and `2*n`, `(n + m)*k` and
//! `n*k + m*k`.

mod polynomial;

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

use helio::{Error, Result};

pub(crate) use polynomial::Monomial;
use polynomial::Polynomial;

/// A dimension of a tensor: a size (`3`), a name (`"batch"`), or an expression of both.
///
/// Expressions are made with `+`, `-`, `*` and `/`, which is floor-division as it is for Rust's
/// integers that are not negative. Two dimensions are equal if their canonical expressions are:
///
/// ```
/// use helio_graph::Dim;
/// let [n, m, k] = ["n", "m", "k"].map(Dim::from);
/// assert_eq!(&n + &m, &m + &n);
/// assert_eq!(&n + &n, 2 * &n);
/// assert_eq!((&n + &m) * &k, &n * &k + &m * &k);
/// assert_eq!((&n * 4 + 1) / 2, 2 * &n);
/// assert_eq!((&n * &m) / &m, n);
/// assert_ne!((&n / 2) * 2, n);
/// assert_ne!(n, 3.into());
/// ```
///
/// Names are letters, digits and `_`, and do not begin with a digit. A wrong name, a division by
/// zero or an overflow is kept in the dimension, and reported by whatever uses it.
///
/// Source: the elementwise module's "Broadcasting Rules" speak of equivalent dimensions; the
/// canonical form is MAX's, and equates more (`n + n` and `2*n`, `n/2/2` and `n/4`).
/// `x / x` is 1 and `(n*m) / m` is `n`, also where the divisor turns out to be 0.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// By far the most frequent, and in need of no allocation.
    Size(i64),
    Expression(Arc<Polynomial>),
    /// What went wrong when it was made.
    Invalid(Arc<str>),
}

impl Dim {
    /// The size, if it is known when the graph is made.
    ///
    /// ```
    /// use helio_graph::Dim;
    /// assert_eq!((Dim::from(3) * 2).size(), Some(6));
    /// assert_eq!((Dim::from("n") * 2).size(), None);
    /// ```
    pub fn size(&self) -> Option<usize> {
        match self.0 {
            Repr::Size(size) => usize::try_from(size).ok(),
            _ => None,
        }
    }

    /// The name, if it is nothing else.
    ///
    /// ```
    /// use helio_graph::Dim;
    /// assert_eq!((Dim::from("n") + 1 - 1).name(), Some("n"));
    /// assert_eq!((Dim::from("n") * 2).name(), None);
    /// ```
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Repr::Expression(polynomial) => polynomial.as_symbol().map(|name| &**name),
            _ => None,
        }
    }

    /// The number, if it is one; negative in the middle of expressions.
    pub(crate) fn number(&self) -> Option<i64> {
        match self.0 {
            Repr::Size(number) => Some(number),
            _ => None,
        }
    }

    /// Whether it is the size 1 of every broadcast: a name that is 1 when the program is called is
    /// not.
    pub(crate) fn is_one(&self) -> bool {
        self.0 == Repr::Size(1)
    }

    /// Errors: `dim.C1` if making it went wrong, or it is a size less than 0.
    pub(crate) fn ensure_valid(&self) -> Result<()> {
        match &self.0 {
            Repr::Invalid(why) => Err(Error::rule("dim.C1", &**why)),
            Repr::Size(size) if *size < 0 => Err(Error::rule(
                "dim.C1",
                format!("a dimension cannot be {size}; sizes are 0 and more"),
            )),
            _ => Ok(()),
        }
    }

    /// The names in it, each once.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        match &self.0 {
            Repr::Expression(polynomial) => {
                let mut names = Vec::new();
                polynomial.visit_symbols(&mut |name| names.push(name.clone()));
                names.sort();
                names.dedup();
                names
            }
            Repr::Size(_) | Repr::Invalid(_) => Vec::new(),
        }
    }

    /// Its terms: monomials and their coefficients. A constant term has the monomial 1.
    pub(crate) fn terms(&self) -> Vec<(Monomial, i64)> {
        match &self.0 {
            Repr::Size(size) => vec![(Monomial::ONE, *size)],
            Repr::Expression(polynomial) => {
                polynomial.terms().map(|(monomial, c)| (monomial.clone(), c)).collect()
            }
            Repr::Invalid(_) => Vec::new(),
        }
    }

    /// The value if names stand for these sizes. Errors: `dim.C2` if a name stands for nothing, a
    /// divisor is 0 or a number gets too large.
    pub(crate) fn value(&self, of: &dyn Fn(&str) -> Option<i64>) -> Result<i64> {
        match &self.0 {
            Repr::Size(size) => Ok(*size),
            Repr::Expression(polynomial) => polynomial
                .value(of)
                .map_err(|why| Error::rule("dim.C2", format!("dimension {self}: {why}"))),
            Repr::Invalid(why) => Err(Error::rule("dim.C1", &**why)),
        }
    }

    fn combine(
        &self,
        other: &Dim,
        on_sizes: impl FnOnce(i64, i64) -> Option<i64>,
        on_expressions: impl FnOnce(&Polynomial, &Polynomial) -> Result<Polynomial, String>,
    ) -> Dim {
        if let (Repr::Size(a), Repr::Size(b)) = (&self.0, &other.0)
            && let Some(size) = on_sizes(*a, *b)
        {
            return Dim(Repr::Size(size));
        }
        let combined = self.polynomial().and_then(|a| {
            let b = other.polynomial()?;
            on_expressions(&a, &b).map_err(Into::into)
        });
        match combined {
            Ok(polynomial) => Dim::from_polynomial(polynomial),
            Err(why) => Dim(Repr::Invalid(why)),
        }
    }

    fn polynomial(&self) -> Result<Arc<Polynomial>, Arc<str>> {
        match &self.0 {
            Repr::Size(size) => Ok(Arc::new(Polynomial::constant(*size))),
            Repr::Expression(polynomial) => Ok(polynomial.clone()),
            Repr::Invalid(why) => Err(why.clone()),
        }
    }

    fn from_polynomial(polynomial: Polynomial) -> Self {
        match polynomial.as_constant() {
            Some(size) => Dim(Repr::Size(size)),
            None => Dim(Repr::Expression(Arc::new(polynomial))),
        }
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        let mut chars = name.chars();
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let named =
            chars.next().is_some_and(is_first) && chars.all(|c| is_first(c) || c.is_ascii_digit());
        if named {
            return Dim(Repr::Expression(Arc::new(Polynomial::symbol(name.into()))));
        }
        Dim(Repr::Invalid(
            format!(
                "`{name}` cannot be the name of a dimension: letters, digits and `_` are allowed, \
                 not beginning with a digit; expressions are made from names, as in \
                 Dim::from(\"n\") * 2"
            )
            .into(),
        ))
    }
}

impl From<String> for Dim {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Dim {
            fn from(size: $integer) -> Self {
                match i64::try_from(size) {
                    Ok(size) => Dim(Repr::Size(size)),
                    Err(_) => Dim(Repr::Invalid(format!("a dimension cannot be {size}").into())),
                }
            }
        }

        impl From<&$integer> for Dim {
            fn from(size: &$integer) -> Self {
                (*size).into()
            }
        }
    )*};
}
from_integer!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

macro_rules! operator {
    ($($trait:ident $method:ident, $doc:literal, $sizes:expr, $polynomials:expr;)*) => {$(
        #[doc = $doc]
        impl<R: Into<Dim>> $trait<R> for &Dim {
            type Output = Dim;
            fn $method(self, rhs: R) -> Dim {
                self.combine(&rhs.into(), $sizes, $polynomials)
            }
        }

        #[doc = $doc]
        impl<R: Into<Dim>> $trait<R> for Dim {
            type Output = Dim;
            fn $method(self, rhs: R) -> Dim {
                self.combine(&rhs.into(), $sizes, $polynomials)
            }
        }

        #[doc = $doc]
        impl $trait<&Dim> for i64 {
            type Output = Dim;
            fn $method(self, rhs: &Dim) -> Dim {
                Dim::from(self).combine(rhs, $sizes, $polynomials)
            }
        }

        #[doc = $doc]
        impl $trait<Dim> for i64 {
            type Output = Dim;
            fn $method(self, rhs: Dim) -> Dim {
                Dim::from(self).combine(&rhs, $sizes, $polynomials)
            }
        }
    )*};
}
operator! {
    Add add, "The sum.", i64::checked_add, Polynomial::add;
    Sub sub, "The difference; a dimension that turns out negative is an error of the call.",
        i64::checked_sub, Polynomial::sub;
    Mul mul, "The product.", i64::checked_mul, Polynomial::mul;
    Div div, "The floor of the quotient.", polynomial::floor_div, Polynomial::floor_div;
}

impl Neg for &Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        self * -1
    }
}

impl Neg for Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        self * -1
    }
}

/// The canonical expression: `2*n + 1`, `(m + n)/2`.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Size(size) => write!(f, "{size}"),
            Repr::Expression(polynomial) => write!(f, "{polynomial}"),
            Repr::Invalid(why) => write!(f, "<{why}>"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> [Dim; 3] {
        ["n", "m", "k"].map(Dim::from)
    }

    #[test]
    fn expressions_print_in_canonical_form() {
        let [n, m, k] = named();
        for (dim, text) in [
            (&n + 1 + 1, "n + 2"),
            (&m + &n, "m + n"),
            (&n - &m, "n - m"),
            ((&n + 1) * 2, "2*n + 2"),
            ((&n + &m) * &k, "k*m + k*n"),
            (&n * &n, "n*n"),
            ((&m + &n) / 2, "(m + n)/2"),
            ((&n / 2) * 2, "2*(n/2)"),
            (&n - &n + 1, "1"),
            (-(-&n), "n"),
            (&n / &m, "n/m"),
            (&k / (&m * 2), "k/(2*m)"),
        ] {
            assert_eq!(dim.to_string(), text);
        }
    }

    #[test]
    fn floor_division_is_exact_where_it_can_be() {
        let [n, m, k] = named();
        assert_eq!(&n / 1, n);
        assert_eq!(&n / &n, 1.into());
        assert_eq!((&n * 4 + 3) / 2, &n * 2 + 1);
        assert_eq!((&n * 6) / 4, (&n * 3) / 2);
        assert_eq!((&n + 5) / 2, (&n + 1) / 2 + 2);
        assert_eq!((&n - 1) / 2, (&n + 1) / 2 - 1);
        assert_eq!((&n + &m) * &k / (&n + &m), k);
        assert_eq!(&n / 2 / 2, &n / 4);
        assert_eq!((&n / 2 + 1) / 2, (&n + 2) / 4);
        assert_eq!(Dim::from(-7) / 2, (-4).into());
        assert_ne!(&n / 2 * 2, n);
    }

    /// Whatever the canonical form makes of an expression, its value stays the same.
    #[test]
    fn canonical_forms_keep_the_value() {
        let floor = |a: i64, b: i64| a.div_euclid(b);
        type Case = (fn(&Dim, &Dim) -> Dim, fn(i64, i64, &dyn Fn(i64, i64) -> i64) -> i64);
        let cases: [Case; 6] = [
            (|n, m| (n * 3 + m * 2 - 7) / 4, |n, m, d| d(n * 3 + m * 2 - 7, 4)),
            (|n, m| (n / 3 + m) / 2, |n, m, d| d(d(n, 3) + m, 2)),
            (|n, m| (n / 3 + 5) / 2 * m, |n, m, d| d(d(n, 3) + 5, 2) * m),
            (|n, m| (n * n * m + n * 5) / n, |n, m, d| d(n * n * m + n * 5, n)),
            (|n, m| (n * m + 3) / (m + 1), |n, m, d| d(n * m + 3, m + 1)),
            (|n, m| (n - m) / 5 - (m - n) / 5, |n, m, d| d(n - m, 5) - d(m - n, 5)),
        ];
        let [n, m, _] = named();
        for (i, (dim, plain)) in cases.iter().enumerate() {
            let dim = dim(&n, &m);
            for a in 1..20 {
                for b in 1..20 {
                    let of = |name: &str| Some(if name == "n" { a } else { b });
                    assert_eq!(dim.value(&of).unwrap(), plain(a, b, &floor), "{i}: {dim} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_kept_and_told() {
        let n = Dim::from("n");
        let why = |dim: &Dim| dim.ensure_valid().unwrap_err().to_string();
        assert!(why(&Dim::from("2n")).contains("`2n` cannot be the name"));
        assert!(why(&Dim::from("")).contains("cannot be the name"));
        assert!(why(&(&n / 0 + 1)).contains("division of n by 0"));
        assert!(why(&Dim::from(-1)).contains("cannot be -1"));
        assert!(why(&Dim::from(usize::MAX)).contains("cannot be"));
        assert!(why(&(&n * i64::MAX * 2)).contains("too large"));
        let many = (0..40).map(|i| Dim::from(format!("x{i}"))).reduce(|a, b| a + b).unwrap();
        let many = &many * &many;
        assert!(why(&(&many * &many)).contains("terms"));
        let mut deep = n.clone();
        for i in 0..1000 {
            deep = deep / Dim::from(format!("m{i}"));
        }
        assert!(why(&deep).contains("nested"));
    }
}
