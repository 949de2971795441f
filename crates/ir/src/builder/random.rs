//! The builder's methods for random numbers.

use super::{XlaBuilder, XlaOp, array, check};
use crate::Shape;
use crate::ops::{Distribution, Rng, RngAlgorithm, RngBitGenerator, RngGetAndUpdateState};

impl XlaBuilder {
    /// Numbers uniform in `[low, high)`.
    ///
    /// Shapes: `low, high: T[]`, result `shape`, which is of `T`. Errors: the rules of `rng`.
    /// Source: E1–E4 "RngUniform" (E1: the interval is closed).
    #[track_caller]
    pub fn rng_uniform(
        &self,
        low: impl AsRef<XlaOp>,
        high: impl AsRef<XlaOp>,
        shape: impl Into<Shape>,
    ) -> XlaOp {
        let shape = check!(self, array(shape)).without_layout();
        let op = Rng { distribution: Distribution::Uniform, shape };
        self.apply(op, &[low.as_ref(), high.as_ref()])
    }

    /// Numbers of the normal distribution with mean `mu` and standard deviation `sigma`.
    ///
    /// Shapes: `mu, sigma: T[]`, result `shape`, which is of `T`. Errors: the rules of `rng`.
    /// Source: E1–E4 "RngNormal".
    #[track_caller]
    pub fn rng_normal(
        &self,
        mu: impl AsRef<XlaOp>,
        sigma: impl AsRef<XlaOp>,
        shape: impl Into<Shape>,
    ) -> XlaOp {
        let shape = check!(self, array(shape)).without_layout();
        let op = Rng { distribution: Distribution::Normal, shape };
        self.apply(op, &[mu.as_ref(), sigma.as_ref()])
    }

    /// Random bits, a function of the state alone, and the next state: `(state, bits)`.
    ///
    /// Shapes: `initial_state: u64[2]`, or `u64[3]` for Philox; bits of `shape`. Errors: the rules
    /// of `rng-bit-generator`. Source: E4 "RngBitGenerator", whose signature calls the state `key`.
    #[track_caller]
    pub fn rng_bit_generator(
        &self,
        algorithm: RngAlgorithm,
        initial_state: impl AsRef<XlaOp>,
        shape: impl Into<Shape>,
    ) -> XlaOp {
        let shape = check!(self, array(shape)).without_layout();
        self.apply(RngBitGenerator { algorithm, shape }, &[initial_state.as_ref()])
    }

    /// The hidden state of the module's generator, which then advances by `delta`. Errors: the rules
    /// of `rng-get-and-update-state`. Source: that opcode, which no edition documents.
    #[track_caller]
    pub fn rng_get_and_update_state(&self, delta: i64, shape: impl Into<Shape>) -> XlaOp {
        let shape = check!(self, array(shape)).without_layout();
        self.apply(RngGetAndUpdateState { delta, shape }, &[])
    }
}
