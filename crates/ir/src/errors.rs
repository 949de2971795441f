//! Errors found together.

use std::fmt;
use std::ops::Deref;

use crate::Error;

/// All that is wrong with a program: one [`Error`] or more, in the order in which they were found.
///
/// It is made from one error or from many, and is an error itself: `?` works on both in a function
/// that returns it, or a `Box<dyn std::error::Error>`. It is read as a slice.
///
/// ```
/// use helio_ir::{Array, Errors, text::parse, verify};
/// fn rank(program: &str) -> Result<usize, Errors> {
///     let module = verify(parse(program)?)?; // gives Errors
///     let x = Array::new([2], vec![1f32, 2.0])?; // gives one Error
///     Ok(x.dims().len() + module.computations().len())
/// }
/// assert_eq!(rank("ENTRY e { ROOT x = f32[2] parameter(0) }")?, 2);
/// let errors = rank("ENTRY e { x = f32[2] parametr(0) ROOT y = f32[3] abs(x) }").unwrap_err();
/// assert_eq!(errors.len(), 1);
/// assert!(errors.first().detail().contains("parametr"));
/// # Ok::<(), Errors>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// The first error.
    pub fn first(&self) -> &Error {
        &self.0[0]
    }

    /// The errors.
    pub fn into_vec(self) -> Vec<Error> {
        self.0
    }

    /// The same with another text, place or code each.
    #[must_use]
    pub fn map(self, change: impl FnMut(Error) -> Error) -> Self {
        Errors(self.0.into_iter().map(change).collect())
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Errors(vec![error])
    }
}

/// An empty list becomes an error of kind `Internal`: something failed and has not said why.
impl From<Vec<Error>> for Errors {
    fn from(errors: Vec<Error>) -> Self {
        match errors.is_empty() {
            true => Error::internal("something failed without an error").into(),
            false => Errors(errors),
        }
    }
}

impl From<Errors> for Vec<Error> {
    fn from(errors: Errors) -> Self {
        errors.0
    }
}

/// The first one; its text says how many more there are.
impl From<Errors> for Error {
    fn from(errors: Errors) -> Self {
        let more = errors.len() - 1;
        let first = errors.0.into_iter().next();
        let first = first.unwrap_or_else(|| Error::internal("an empty list of errors"));
        match more {
            0 => first,
            1 => first.followed_by("(and one more error)"),
            _ => first.followed_by(&format!("(and {more} more errors)")),
        }
    }
}

impl Deref for Errors {
    type Target = [Error];

    fn deref(&self) -> &[Error] {
        &self.0
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The errors, one after the other, each on a line of its own.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_become_one_that_counts_them() {
        let one = || Error::invalid("a");
        let of = |count: usize| Error::from(Errors::from(vec![one(); count]));
        assert_eq!(of(1), one());
        assert_eq!(of(2).detail(), "a (and one more error)");
        assert_eq!(of(3).detail(), "a (and 2 more errors)");
        assert_eq!(of(0).code(), crate::Code::Internal);
        assert_eq!(Errors::from(vec![one(), one()]).to_string().lines().count(), 2);
    }
}
