//! Random numbers: `rng`, `rng-bit-generator`, `rng-get-and-update-state`.

use super::Arity;
use super::check::ensure_array;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, ElementType, InferCx, OpDef, Result, Shape, ensure};

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
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let result = self.shape.element();
        for i in 0..2 {
            let element = cx.scalar("rng.C1", i)?;
            ensure!(
                element == result,
                "rng.C2",
                "operand {i} must have the element type of the result, {result}; is {element}[]"
            );
        }
        match self.distribution {
            Distribution::Uniform => ensure!(
                !result.is_complex(),
                "rng.C3",
                "distribution={}: the result must not hold complex numbers, is {}",
                self.distribution,
                self.shape
            ),
            Distribution::Normal => ensure!(
                result.is_float(),
                "rng.C4",
                "distribution={}: the result must hold floats, is {}",
                self.distribution,
                self.shape
            ),
        }
        Ok(Shape::Array(self.shape.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let distribution = |attrs: &mut AttrReader<'_>, name: &str| {
            attrs.parse(name, |scan| Distribution::from_word_of_any_case(scan.word()?))
        };
        Ok(Rng {
            distribution: attrs.needed("distribution", distribution)?,
            shape: attrs.result_array()?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("distribution", self.distribution);
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
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let state = cx.array("rng-bit-generator.C1", 0)?;
        ensure!(
            state.element() == ElementType::U64
                && state.rank() == 1
                && state.dim(0).1 == DimKind::Static,
            "rng-bit-generator.C1",
            "the operand must be the state, u64[2] or u64[3]; is {state}"
        );
        let words = state.dim(0).0;
        ensure!(
            words == 2 || (words == 3 && self.algorithm != RngAlgorithm::ThreeFry),
            "rng-bit-generator.C2",
            "algorithm={}: the state must have {}, is {state}",
            self.algorithm,
            if self.algorithm == RngAlgorithm::ThreeFry { "2 words" } else { "2 or 3 words" }
        );
        let element = self.shape.element();
        ensure!(
            element.is_integer() || element.is_float(),
            "rng-bit-generator.C3",
            "the bits must be those of integers or floats, are {}",
            self.shape
        );
        let (state, bits) = (state.clone().without_layout(), self.shape.clone().without_layout());
        Ok(Shape::Tuple(vec![Shape::Array(state), Shape::Array(bits)]))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let algorithm = |attrs: &mut AttrReader<'_>, name: &str| {
            attrs.parse(name, |scan| RngAlgorithm::from_word_of_any_case(scan.word()?))
        };
        let bits = match attrs.result {
            Shape::Tuple(elements) => elements.get(1),
            _ => None,
        };
        let bits = bits.ok_or_else(|| {
            let found = attrs.result;
            crate::Error::invalid(format!("the result must be a tuple (state, bits), is {found}"))
        })?;
        let bits = ensure_array("rng-bit-generator.C3", "element 1 of the result", bits)?;
        Ok(RngBitGenerator {
            algorithm: attrs.needed("algorithm", algorithm)?,
            shape: bits.clone().without_layout(),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("algorithm", self.algorithm);
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
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        let state = ArrayShape::new(ElementType::U64, [2])?;
        ensure!(
            self.shape.same(&state),
            "rng-get-and-update-state.C1",
            "the result must be {state}, is {}",
            self.shape
        );
        Ok(Shape::Array(state))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(RngGetAndUpdateState {
            delta: attrs.needed("delta", AttrReader::int)?,
            shape: attrs.result_array()?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("delta", self.delta);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{array, infer};

    #[test]
    fn results() {
        let rng = |distribution, shape| Rng { distribution, shape: array(shape) };
        let scalars = |element: &'static str| [element, element];
        let uniform = Distribution::Uniform;
        assert_eq!(infer(rng(uniform, "s8[2,3]"), &scalars("s8[]")), "s8[2,3]");
        assert_eq!(infer(rng(uniform, "pred[2]"), &scalars("pred[]")), "pred[2]");
        assert_eq!(infer(rng(uniform, "c64[2]"), &scalars("c64[]")), "rng.C3");
        assert_eq!(infer(rng(uniform, "f32[2]"), &["f32[]", "f16[]"]), "rng.C2");
        assert_eq!(infer(rng(Distribution::Normal, "bf16[<=2]"), &scalars("bf16[]")), "bf16[<=2]");
        assert_eq!(infer(rng(Distribution::Normal, "s8[2]"), &scalars("s8[]")), "rng.C4");
    }

    #[test]
    fn bits() {
        let bits = |algorithm, shape| RngBitGenerator { algorithm, shape: array(shape) };
        let (fry, philox) = (RngAlgorithm::ThreeFry, RngAlgorithm::Philox);
        assert_eq!(infer(bits(fry, "u32[5]"), &["u64[2]"]), "(u64[2], u32[5])");
        assert_eq!(infer(bits(philox, "f64[5]"), &["u64[3]"]), "(u64[3], f64[5])");
        assert_eq!(infer(bits(fry, "u32[5]"), &["u64[3]"]), "rng-bit-generator.C2");
        assert_eq!(infer(bits(philox, "u32[5]"), &["u64[<=3]"]), "rng-bit-generator.C1");
        assert_eq!(infer(bits(philox, "c64[5]"), &["u64[3]"]), "rng-bit-generator.C3");
    }
}
