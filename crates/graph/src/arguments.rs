//! What programs are called with.

use std::borrow::Borrow;

use helio::Array;

/// The arguments of a call, one array for each input: an array, a slice or a vector of arrays, or of
/// references to arrays, by value or by reference. `&[]` are no arguments. An array that is made on the
/// spot is written `Array::from(…)`, since what `….into()` alone gives could be either.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let x = g.input("x", F32, 2);
/// let double = g.compile(2.0 * x)?;
/// let x = Array::from([1f32, 2.0]);
/// assert_eq!(double.run(&[&x])?, double.run(vec![x])?);
/// # Ok::<(), Error>(())
/// ```
pub trait Arguments {
    /// The arrays, in order.
    #[doc(hidden)]
    fn into_arrays(self) -> Vec<Array>;
}

fn cloned(arrays: &[impl Borrow<Array>]) -> Vec<Array> {
    arrays.iter().map(|array| array.borrow().clone()).collect()
}

impl<A: Borrow<Array>> Arguments for &[A] {
    fn into_arrays(self) -> Vec<Array> {
        cloned(self)
    }
}

impl<A: Borrow<Array>> Arguments for &Vec<A> {
    fn into_arrays(self) -> Vec<Array> {
        cloned(self)
    }
}

impl<A: Borrow<Array>> Arguments for Vec<A> {
    fn into_arrays(self) -> Vec<Array> {
        cloned(&self)
    }
}

// Each length by itself: with one implementation for all, nothing would say of what `[]` is a list.
macro_rules! of_length {
    ($($length:literal)*) => {$(
        impl<A: Borrow<Array>> Arguments for [A; $length] {
            fn into_arrays(self) -> Vec<Array> {
                cloned(&self)
            }
        }

        impl<A: Borrow<Array>> Arguments for &[A; $length] {
            fn into_arrays(self) -> Vec<Array> {
                cloned(self)
            }
        }
    )*};
}
of_length! { 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 }

impl Arguments for [Array; 0] {
    fn into_arrays(self) -> Vec<Array> {
        Vec::new()
    }
}

impl Arguments for &[Array; 0] {
    fn into_arrays(self) -> Vec<Array> {
        Vec::new()
    }
}
