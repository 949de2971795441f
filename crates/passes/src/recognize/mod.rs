//! What small computations compute: comparators of sorts, reducers, conditions of loops.
//!
//! Recognition follows the structure of the computation and accepts only what it understands in
//! full; anything else is `None`, and then the computation is run as it is.

mod comparator;
mod counted_loop;
mod flat;
mod reducer;

pub use comparator::{SortKey, comparator};
pub use counted_loop::{Counter, counted_loop};
pub(crate) use reducer::{commutes, is_idempotent, may_repeat};
pub use reducer::{is_ordered, reducer};
