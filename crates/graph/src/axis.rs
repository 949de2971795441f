//! Axes, by their numbers.

use std::fmt;

/// A dimension of a tensor by its number: 0 is the first, -1 the last.
///
/// Wherever an axis is asked for, any of Rust's integers will do. Operations on several axes take
/// [`Axes`](crate::Axes), or a slice of numbers where their order counts:
///
/// ```
/// use helio_graph::prelude::*;
/// let g = Graph::new("axes");
/// let (x, last) = (g.zeros(F32, (2, 3)), 1usize);
/// assert_eq!(x.softmax(-1).shape()?, x.softmax(last).shape()?);
/// assert_eq!(x.transpose(&[1u8, 0]).shape()?.to_string(), "[3, 2]");
/// assert_eq!(x.sum([0, -1]).eval()?, Array::from(0f32));
/// # Ok::<(), Error>(())
/// ```
///
/// A number that is none of the tensor's axes is an error, `shape.C1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis(i64);

impl Axis {
    /// The axis among this many, counted from the first; `None` if there is none such.
    pub(crate) fn of(self, rank: usize) -> Option<usize> {
        let found = match usize::try_from(self.0) {
            Ok(found) => found,
            Err(_) => rank.checked_sub(usize::try_from(self.0.unsigned_abs()).ok()?)?,
        };
        (found < rank).then_some(found)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<&Axis> for Axis {
    fn from(axis: &Axis) -> Self {
        *axis
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Axis {
            fn from(axis: $integer) -> Self {
                // What no axis can be called stays one that there is not.
                Axis(i64::try_from(axis).unwrap_or(i64::MAX))
            }
        }
    )*};
}
from_integers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn axes_are_counted_from_either_end() {
        let of = |axis: Axis| axis.of(3);
        assert_eq!([0, 2, -1, -3].map(Axis::from).map(of), [Some(0), Some(2), Some(2), Some(0)]);
        assert_eq!([3, -4, i64::MIN, i64::MAX].map(Axis::from).map(of), [None; 4]);
        assert_eq!(of(u64::MAX.into()), None);
        assert_eq!(Axis::from(-1).of(0), None);
    }
}
