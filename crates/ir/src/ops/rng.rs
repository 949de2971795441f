//! `rng` and its kin.

use super::Arity;
use crate::{ArrayShape, Error, InferCx, OpDef, Result, Shape};

/// Random numbers from a distribution with two parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    /// Uniform `[a, b)` or normal (mean, deviation).
    pub distribution: Distribution,
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl OpDef for Rng {
    const OPCODE: &'static str = "rng";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer rng"))
    }
}

/// Random bits and the next state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RngBitGenerator {
    /// Which generator.
    pub algorithm: RngAlgorithm,
    /// The shape of the bits.
    pub shape: ArrayShape,
}

impl OpDef for RngBitGenerator {
    const OPCODE: &'static str = "rng-bit-generator";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer rng-bit-generator"))
    }
}

/// The module's hidden generator state, which then advances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RngGetAndUpdateState {
    /// By how much.
    pub delta: i64,
    /// The shape of the state, `u64[2]`.
    pub shape: ArrayShape,
}

impl OpDef for RngGetAndUpdateState {
    const OPCODE: &'static str = "rng-get-and-update-state";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer rng-get-and-update-state"))
    }
}

crate::ops::words! {
    /// What random numbers are drawn from.
    Distribution {
        /// Uniform in `[a, b)`.
        Uniform = "rng_uniform",
        /// Normal with mean `a` and standard deviation `b`.
        Normal = "rng_normal",
    }
}

crate::ops::words! {
    /// A generator of random bits.
    RngAlgorithm {
        /// The back end's choice: Philox.
        Default = "rng_default",
        /// Threefry-2x32, 20 rounds.
        ThreeFry = "rng_three_fry",
        /// Philox-4x32, 10 rounds.
        Philox = "rng_philox",
    }
}
