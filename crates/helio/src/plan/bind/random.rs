//! Which random bit generators the runtime's kernels compute, and how they are called.

use helio_ir::ops::{RngAlgorithm, RngBitGenerator};
use helio_runtime::kernels::random::{Generator, RandomBits};

use super::{Bound, InstrShapes};

pub(super) fn rng_bit_generator(site: &InstrShapes<'_>, op: &RngBitGenerator) -> Option<Bound> {
    let state = *site.operands.first()?;
    let generator = match op.algorithm {
        RngAlgorithm::ThreeFry => Generator::ThreeFry,
        RngAlgorithm::Philox | RngAlgorithm::Default => Generator::Philox,
    };
    let element = op.shape.element();
    // All bits of an element must be random, and a state of other words is refused at the run.
    let fits = state.element().bits() == 64 && element.bits() == 8 * element.size_bytes();
    if !fits || element.is_pred() || element.is_complex() {
        return None;
    }
    let (words, size) = (state.element_count(), element.size_bytes());
    let bits = RandomBits::new(generator, words, op.shape.dims(), size)?;
    Some(Bound::new("rng-bit-generator", move |inputs, outputs, threads| {
        let [next, to] = outputs else { return };
        bits.run(inputs[0], next, to, threads);
    }))
}
