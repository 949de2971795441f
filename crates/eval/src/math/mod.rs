//! What operations do to single numbers.
//!
//! Every element is computed on one of four carriers, each wide enough for its whole class of
//! element types: `bool` for `pred`, [`i128`] for integers (results wrap when they are stored),
//! [`f64`] for floats, [`C128`](helio_ir::types::C128) for complex numbers. Results are rounded once
//! to the element type. For `f32` and everything narrower, sums, products, quotients and roots come
//! out as if rounded directly, because `f64` has more than twice their precision; transcendental
//! functions are then wrong by little more than half a unit in the last place.
//!
//! Exactly defined functions (`sqrt`, `floor`, remainder) are the standard library's; the others are
//! the `libm` crate's, so that results do not depend on the platform's C library.

pub(crate) mod complex;
pub(crate) mod exact;
pub(crate) mod integer;
pub(crate) mod real;

#[cfg(test)]
mod tests;
