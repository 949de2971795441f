//! Helpers for unit tests.

use helio_ir::Module;

use crate::{Context, Evaluator};

/// Runs `f` on an evaluator of an empty module with one participant.
pub(crate) fn on_evaluator<R>(f: impl FnOnce(&Evaluator<'_>) -> R) -> R {
    f(&Evaluator::new(&Module::new("test"), &Context::default()))
}

/// Small integers without a visible order, `(a * i + b) % m - m / 2`: simple enough to be made
/// again by whatever computes the expected values.
pub(crate) fn pattern(count: usize, a: usize, b: usize, m: usize) -> Vec<i32> {
    (0..count).map(|i| ((a * i + b) % m) as i32 - (m / 2) as i32).collect()
}
