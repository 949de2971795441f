//! `convert` and its kin.

use super::Arity;
use crate::{ElementType, Error, InferCx, OpDef, Result, Shape};

/// Converts each element to another type, by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for Convert {
    const OPCODE: &'static str = "convert";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer convert"))
    }
}

/// Reads the bits of the elements as another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitcastConvert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for BitcastConvert {
    const OPCODE: &'static str = "bitcast-convert";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer bitcast-convert"))
    }
}

/// Converts to a narrower type, rounding up with the probability that random bits give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StochasticConvert {
    /// The type of the result.
    pub element: ElementType,
}

impl OpDef for StochasticConvert {
    const OPCODE: &'static str = "stochastic-convert";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer stochastic-convert"))
    }
}

/// Rounds each element to a format of fewer bits, keeping its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducePrecision {
    /// Exponent bits of the narrower format, at least 1.
    pub exponent_bits: u32,
    /// Explicit mantissa bits of the narrower format.
    pub mantissa_bits: u32,
}

impl OpDef for ReducePrecision {
    const OPCODE: &'static str = "reduce-precision";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reduce-precision"))
    }
}
