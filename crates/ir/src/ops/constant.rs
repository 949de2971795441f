//! The operations without operands whose value is not random: `constant`, `parameter`, `iota`.

use super::Arity;
use super::check::ensure_dim;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ArrayShape, Error, InferCx, Literal, OpDef, Result, Shape, ensure};

/// A value known beforehand.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The value; zeros if it is elided.
    pub literal: Literal,
    /// Whether the text that the program comes from leaves the value out (`{...}`). Such a program
    /// can be checked and printed, but not run.
    pub elided: bool,
}

impl Constant {
    /// A constant of this value.
    pub fn new(literal: impl Into<Literal>) -> Self {
        Constant { literal: literal.into(), elided: false }
    }
}

/// Equal constants have the same shape and the same bits: NaN is equal to itself, 0 not to -0.
impl PartialEq for Constant {
    fn eq(&self, other: &Self) -> bool {
        self.elided == other.elided && self.literal.same_bits(&other.literal)
    }
}

impl OpDef for Constant {
    const OPCODE: &'static str = "constant";
    const ARITY: Arity = Arity::Exactly(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        self.literal.ensure_whole()?;
        Ok(self.literal.shape().without_layout())
    }

    /// The value is no attribute: the parser reads it between the parentheses.
    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Err(Error::internal(format!("the attributes of a {}", attrs.opcode)))
    }
}

/// An argument of the computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its number, from 0.
    pub number: usize,
    /// Its shape.
    pub shape: Shape,
}

impl OpDef for Parameter {
    const OPCODE: &'static str = "parameter";
    const ARITY: Arity = Arity::Exactly(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        Ok(self.shape.without_layout())
    }

    /// The number is no attribute: the parser reads it between the parentheses.
    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Err(Error::internal(format!("the attributes of a {}", attrs.opcode)))
    }
}

/// Counts up from zero along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iota {
    /// The shape of the result.
    pub shape: ArrayShape,
    /// The dimension that counts.
    pub dimension: usize,
}

impl OpDef for Iota {
    const OPCODE: &'static str = "iota";
    const ARITY: Arity = Arity::Exactly(0);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        let shape = &self.shape;
        ensure_dim("iota.C1", "iota_dimension", self.dimension, shape)?;
        ensure!(
            !shape.element().is_pred(),
            "iota.C2",
            "counts in integers, floats or complex numbers; the result is {shape}"
        );
        ensure!(
            !shape.is_unbounded(),
            "iota.C3",
            "no size is known for every dimension of {shape}"
        );
        Ok(Shape::Array(shape.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let dimension = attrs.needed("iota_dimension", AttrReader::size)?;
        Ok(Iota { shape: attrs.result_array()?, dimension })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("iota_dimension", self.dimension);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{array, infer};

    #[test]
    fn iota() {
        let iota = |shape, dimension| infer(Iota { shape: array(shape), dimension }, &[]);
        assert_eq!(iota("f32[2,<=3]", 1), "f32[2,<=3]");
        assert_eq!(iota("f32[2]", 1), "iota.C1");
        assert_eq!(iota("s32[]", 0), "iota.C1");
        assert_eq!(iota("pred[2]", 0), "iota.C2");
        assert_eq!(iota("s32[?]", 0), "iota.C3");
    }
}
