//! Shapes with dimensions that may be symbolic, and how two of them broadcast.

use std::fmt;
use std::ops::Deref;

use helio::{Error, Result};

use crate::{Axis, Dim};

/// The dimensions of a tensor, outermost first; a scalar has none.
///
/// Wherever a shape is asked for, tuples and lists of sizes, names and [`Dim`]s will do, or one of them:
///
/// ```
/// use helio_graph::{Dim, Shape};
/// let n = Dim::from("n");
/// let shape = Shape::from(("batch", 2 * &n, 3));
/// assert_eq!(shape.to_string(), "[batch, 2*n, 3]");
/// assert_eq!(Shape::from([2, 3]).rank(), 2);
/// assert_eq!(Shape::from("batch").to_string(), "[batch]");
/// assert_eq!(Shape::from(()).rank(), 0);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<Dim>);

impl Shape {
    /// The number of dimensions.
    ///
    /// ```
    /// assert_eq!(helio_graph::Shape::from(("n", 2)).rank(), 2);
    /// ```
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dimensions.
    ///
    /// ```
    /// use helio_graph::{Dim, Shape};
    /// assert_eq!(Shape::from(("n", 2)).dims(), [Dim::from("n"), 2.into()]);
    /// ```
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(helio_graph::Shape::from(("n", 2)).element_count().to_string(), "2*n");
    /// ```
    pub fn element_count(&self) -> Dim {
        self.0.iter().fold(Dim::from(1), |product, dim| product * dim)
    }

    /// The number of an axis, where -1 is the last. Errors: `shape.C1` if there is none such.
    pub(crate) fn axis(&self, axis: impl Into<Axis>) -> Result<usize> {
        let (axis, rank) = (axis.into(), self.rank());
        axis.of(rank).ok_or_else(|| {
            let detail = match rank {
                0 => format!("axis {axis} of a scalar, which has none"),
                _ => format!(
                    "axis {axis} of {self}, which has axes 0 to {}, or -{rank} to -1 from the end",
                    rank - 1
                ),
            };
            Error::rule("shape.C1", detail)
        })
    }

    /// Several axes, each once. Errors: `shape.C1`.
    pub(crate) fn axes(&self, axes: &[impl Into<Axis> + Copy]) -> Result<Vec<usize>> {
        let mut found = Vec::with_capacity(axes.len());
        for &axis in axes {
            let axis = self.axis(axis)?;
            if found.contains(&axis) {
                return Err(Error::rule("shape.C1", format!("axis {axis} is named twice")));
            }
            found.push(axis);
        }
        Ok(found)
    }

    /// The same with one dimension replaced.
    pub(crate) fn with(&self, axis: usize, dim: impl Into<Dim>) -> Shape {
        let mut dims = self.0.clone();
        dims[axis] = dim.into();
        Shape(dims)
    }

    /// The same without some dimensions.
    pub(crate) fn without(&self, axes: &[usize]) -> Shape {
        let kept = self.0.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        Shape(kept.map(|(_, dim)| dim.clone()).collect())
    }

    /// Errors: `dim.C1` if a dimension is none.
    pub(crate) fn ensure_valid(&self) -> Result<()> {
        self.0.iter().try_for_each(Dim::ensure_valid)
    }

    /// The shape to which both broadcast: the one of lower rank gets dimensions 1 in front; a 1
    /// stretches to the other's dimension; all others must be equal. Errors: `broadcast.C1`.
    ///
    /// Source: the elementwise module's "Broadcasting Rules".
    pub(crate) fn broadcast(&self, other: &Shape) -> Result<Shape> {
        let rank = self.rank().max(other.rank());
        let one = Dim::from(1);
        let aligned = |shape: &'_ Shape, i: usize| {
            let missing = rank - shape.rank();
            if i < missing { one.clone() } else { shape.0[i - missing].clone() }
        };
        let dims = (0..rank).map(|i| {
            let (a, b) = (aligned(self, i), aligned(other, i));
            if a.is_one() || a == b {
                Ok(b)
            } else if b.is_one() {
                Ok(a)
            } else {
                Err(self.mismatch(other, i as isize - rank as isize, &a, &b))
            }
        });
        dims.collect::<Result<_>>().map(Shape)
    }

    /// What is wrong with an axis, counted from the end.
    fn mismatch(&self, other: &Shape, axis: isize, a: &Dim, b: &Dim) -> Error {
        let help = match (a.size(), b.size()) {
            (Some(_), Some(_)) => {
                "only a dimension that is 1 stretches; reshape or slice one operand".to_owned()
            }
            _ => {
                let known = if a.size().is_some() { self } else { other };
                format!(
                    "if they are equal whenever the program is called, say so, as in \
                     x.rebind({}); a name that happens to be 1 does not stretch",
                    known.as_argument()
                )
            }
        };
        let (left, right) = (axis + self.rank() as isize, axis + other.rank() as isize);
        Error::rule(
            "broadcast.C1",
            format!(
                "{self} and {other} do not broadcast: dimension {a} (axis {left} of the left \
                 operand) and dimension {b} (axis {right} of the right operand) are not known to \
                 be equal, and neither is the size 1\n  help: {help}"
            ),
        )
    }

    /// As one writes it in Rust: `("batch", 3)`.
    fn as_argument(&self) -> String {
        let dims = self.0.iter().map(|dim| match dim.name() {
            Some(name) => format!("{name:?}"),
            None => dim.to_string(),
        });
        let comma = if self.rank() == 1 { "," } else { "" };
        format!("({}{comma})", dims.collect::<Vec<_>>().join(", "))
    }
}

impl Deref for Shape {
    type Target = [Dim];

    fn deref(&self) -> &[Dim] {
        &self.0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Self {
        Shape(dims.into_iter().collect())
    }
}

impl<D: Into<Dim>> From<Vec<D>> for Shape {
    fn from(dims: Vec<D>) -> Self {
        dims.into_iter().map(Into::into).collect()
    }
}

impl<D: Into<Dim>, const N: usize> From<[D; N]> for Shape {
    fn from(dims: [D; N]) -> Self {
        dims.into_iter().map(Into::into).collect()
    }
}

impl<'a, D> From<&'a [D]> for Shape
where
    &'a D: Into<Dim>,
{
    fn from(dims: &'a [D]) -> Self {
        dims.iter().map(Into::into).collect()
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Shape::default()
    }
}

/// One dimension.
macro_rules! from_dims {
    ($($dim:ty)*) => {$(
        impl From<$dim> for Shape {
            fn from(dim: $dim) -> Self {
                Shape(vec![dim.into()])
            }
        }
    )*};
}
from_dims! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize &str String Dim &Dim }

macro_rules! from_tuples {
    ($($first:ident $($rest:ident)*;)*) => {$(
        impl<$first: Into<Dim>, $($rest: Into<Dim>),*> From<($first, $($rest,)*)> for Shape {
            fn from(dims: ($first, $($rest,)*)) -> Self {
                #[expect(non_snake_case, reason = "types and values have the same names here")]
                let ($first, $($rest,)*) = dims;
                Shape(vec![$first.into(), $($rest.into()),*])
            }
        }
    )*};
}
from_tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast(a: impl Into<Shape>, b: impl Into<Shape>) -> Result<String> {
        a.into().broadcast(&b.into()).map(|shape| shape.to_string())
    }

    #[test]
    fn ones_stretch_and_all_else_is_equal() {
        assert_eq!(broadcast(("n", 1, 3), ("m", 1)).unwrap(), "[n, m, 3]");
        assert_eq!(broadcast((), ("n",)).unwrap(), "[n]");
        assert_eq!(broadcast([1], [0]).unwrap(), "[0]");
        assert!(broadcast([0], [3]).is_err());
        assert!(broadcast(("n",), [3]).is_err());
        assert_eq!(broadcast((1, 2, 3, 4, 5, 6, 7, 8), [8]).unwrap(), "[1, 2, 3, 4, 5, 6, 7, 8]");
    }

    #[test]
    fn axes_count_from_both_ends() {
        let shape = Shape::from(("n", 2, 3));
        assert_eq!(shape.axis(-1).unwrap(), 2);
        assert_eq!(shape.axis(0).unwrap(), 0);
        assert!(shape.axis(3).is_err() && shape.axis(-4).is_err());
        assert!(shape.axes(&[0, -3]).is_err());
        assert_eq!(shape.axis(isize::MIN).unwrap_err().rule_id(), Some("shape.C1"));
    }
}
