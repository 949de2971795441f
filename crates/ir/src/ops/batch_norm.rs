//! `batch-norm-training`, `batch-norm-inference` and `batch-norm-grad`: each feature normalised by
//! its mean and variance.

use super::Arity;
use super::check::{ensure_dim, ensure_same_element, merge_dim};
use super::reducer::same_sizes;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// Checks operand 0, the array, and those numbered `vectors`, which have an element for each
/// feature. Gives the array's shape. Errors: `batch-norm.C1` to `batch-norm.C6`.
fn check<'a>(
    cx: &InferCx<'a>,
    feature_index: usize,
    vectors: std::ops::RangeInclusive<usize>,
) -> Result<&'a ArrayShape> {
    let arrays = cx.arrays("batch-norm.C1")?;
    let operand = arrays[0];
    ensure!(
        operand.element().is_float(),
        "batch-norm.C2",
        "operand 0 must hold floats, is {operand}"
    );
    ensure_dim("batch-norm.C3", "feature_index", feature_index, operand)?;
    ensure_same_element("batch-norm.C4", &arrays)?;
    for i in vectors {
        let vector = arrays[i];
        ensure!(
            vector.rank() == 1,
            "batch-norm.C5",
            "operand {i} must have 1 dimension, is {vector}"
        );
        ensure!(
            merge_dim(vector.dim(0), operand.dim(feature_index)).is_some(),
            "batch-norm.C6",
            "operand {i} must have an element for each of the {} features, dimension \
             {feature_index} of {operand}; is {vector}",
            operand.dim(feature_index).0
        );
    }
    Ok(operand)
}

/// The operand's shape, and twice that of a vector with an element for each feature.
fn with_two_vectors(operand: &ArrayShape, feature_index: usize) -> Result<Shape> {
    let (size, kind) = operand.dim(feature_index);
    let vector = ArrayShape::with_kinds(operand.element(), vec![size], vec![kind])?;
    let operand = operand.clone().without_layout();
    Ok(Shape::Tuple(vec![operand.into(), vector.clone().into(), vector.into()]))
}

/// Reads `epsilon` and `feature_index`.
fn read(attrs: &mut AttrReader<'_>) -> Result<(f32, usize)> {
    let epsilon = attrs.needed("epsilon", AttrReader::float)?;
    Ok((epsilon as f32, attrs.needed("feature_index", AttrReader::size)?))
}

/// Writes what [`read`] reads.
fn write(attrs: &mut AttrWriter<'_>, epsilon: f32, feature_index: usize) {
    attrs.put("epsilon", epsilon);
    attrs.put("feature_index", feature_index);
}

/// Normalises each feature by its own mean and variance. Operands: array, scale, offset; result
/// (output, mean, variance).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormTraining {
    /// Added to the variance before its root is taken.
    pub epsilon: f32,
    /// The dimension of the features, the only one that is not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormTraining {
    const OPCODE: &'static str = "batch-norm-training";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = check(cx, self.feature_index, 1..=2)?;
        with_two_vectors(operand, self.feature_index)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (epsilon, feature_index) = read(attrs)?;
        Ok(Self { epsilon, feature_index })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write(attrs, self.epsilon, self.feature_index);
    }
}

/// Normalises each feature by the mean and variance given. Operands: array, scale, offset, mean,
/// variance; result: the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormInference {
    /// Added to the variance before its root is taken.
    pub epsilon: f32,
    /// The dimension of the features, the only one that is not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormInference {
    const OPCODE: &'static str = "batch-norm-inference";
    const ARITY: Arity = Arity::Exactly(5);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = check(cx, self.feature_index, 1..=4)?;
        Ok(Shape::Array(operand.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (epsilon, feature_index) = read(attrs)?;
        Ok(Self { epsilon, feature_index })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write(attrs, self.epsilon, self.feature_index);
    }
}

/// The gradients of [`BatchNormTraining`]. Operands: array, scale, mean, variance, gradient of the
/// output; result: the gradients of (array, scale, offset).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNormGrad {
    /// Added to the variance before its root is taken.
    pub epsilon: f32,
    /// The dimension of the features, the only one that is not normalised over.
    pub feature_index: usize,
}

impl OpDef for BatchNormGrad {
    const OPCODE: &'static str = "batch-norm-grad";
    const ARITY: Arity = Arity::Exactly(5);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = check(cx, self.feature_index, 1..=3)?;
        let gradient = cx.array("batch-norm.C1", 4)?;
        ensure!(
            same_sizes(gradient, operand),
            "batch-norm.C7",
            "operand 4, the output's gradient, must have the sizes of operand 0, {operand}; is \
             {gradient}"
        );
        with_two_vectors(operand, self.feature_index)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (epsilon, feature_index) = read(attrs)?;
        Ok(Self { epsilon, feature_index })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write(attrs, self.epsilon, self.feature_index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn results() {
        let (epsilon, feature_index) = (0.5, 1);
        let (x, v) = ("f32[2,<=3]", "f32[3]");
        let training = BatchNormTraining { epsilon, feature_index };
        assert_eq!(infer(training, &[x, v, v]), "(f32[2,<=3], f32[<=3], f32[<=3])");
        let inference = BatchNormInference { epsilon, feature_index };
        assert_eq!(infer(inference, &[x, v, v, v, v]), "f32[2,<=3]");
        assert_eq!(infer(inference, &[x, v, v, v, "f32[4]"]), "batch-norm.C6");
        let grad = BatchNormGrad { epsilon, feature_index };
        assert_eq!(infer(grad, &[x, v, v, v, "f32[2,3]"]), "(f32[2,<=3], f32[<=3], f32[<=3])");
        assert_eq!(infer(grad, &[x, v, v, v, "f32[3,2]"]), "batch-norm.C7");
        let outside = BatchNormTraining { epsilon, feature_index: usize::MAX };
        assert_eq!(infer(outside, &[x, v, v]), "batch-norm.C3");
    }
}
