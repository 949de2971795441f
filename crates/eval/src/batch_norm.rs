//! Batch normalisation: statistics of each feature over all other dimensions, in `f64`.

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::products::{finish_in_order, terms};
use crate::walk::{Walk, steps};

/// (output, mean, variance), the variance being the mean square deviation.
pub(crate) fn training(
    op: &ops::BatchNormTraining,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let features = Features::new(evaluator, array(args, 0)?, op.feature_index);
    let mut x = terms::<f64>(features.operand)?;
    let (scale, offset) = (terms::<f64>(array(args, 1)?)?, terms::<f64>(array(args, 2)?)?);
    let mut mean = vec![0.0; scale.len()];
    let mut variance = mean.clone();
    for f in 0..features.count {
        let (m, v) = features.mean_and_variance(f, &x)?;
        (mean[f], variance[f]) = (m, v);
        let deviation = (v + f64::from(op.epsilon)).sqrt();
        features.each(f, |i| x[i] = (x[i] - m) / deviation * scale[f] + offset[f])?;
    }
    features.tuple(shape, [&x, &mean, &variance])
}

/// The operand normalised with given mean and variance.
pub(crate) fn inference(
    op: &ops::BatchNormInference,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let features = Features::new(evaluator, array(args, 0)?, op.feature_index);
    let mut x = terms::<f64>(features.operand)?;
    let (scale, offset) = (terms::<f64>(array(args, 1)?)?, terms::<f64>(array(args, 2)?)?);
    let (mean, variance) = (terms::<f64>(array(args, 3)?)?, terms::<f64>(array(args, 4)?)?);
    for f in 0..features.count {
        let deviation = (variance[f] + f64::from(op.epsilon)).sqrt();
        features.each(f, |i| x[i] = (x[i] - mean[f]) / deviation * scale[f] + offset[f])?;
    }
    let result = finish_in_order(&x, array_shape(shape)?)?;
    with_bounded_sizes(result, features.operand.sizes()).map(Literal::Array)
}

/// (gradient of the operand, of the scale, of the offset), given mean and variance of the operand
/// and the gradient of the output.
pub(crate) fn grad(
    op: &ops::BatchNormGrad,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let features = Features::new(evaluator, array(args, 0)?, op.feature_index);
    let x = terms::<f64>(features.operand)?;
    let scale = terms::<f64>(array(args, 1)?)?;
    let (mean, variance) = (terms::<f64>(array(args, 2)?)?, terms::<f64>(array(args, 3)?)?);
    let mut grad = terms::<f64>(array(args, 4)?)?;
    let mut grad_scale = vec![0.0; scale.len()];
    let mut grad_offset = grad_scale.clone();
    for f in 0..features.count {
        let (mut sum, mut product, mut count) = (0.0, 0.0, 0.0);
        features.each(f, |i| {
            sum += grad[i];
            product += grad[i] * (x[i] - mean[f]);
            count += 1.0;
        })?;
        let square = variance[f] + f64::from(op.epsilon);
        let deviation = square.sqrt();
        (grad_scale[f], grad_offset[f]) = (product / deviation, sum);
        let factor = scale[f] / deviation / count;
        features.each(f, |i| {
            let shift = (x[i] - mean[f]) * product / square;
            grad[i] = factor * (count * grad[i] - sum - shift);
        })?;
    }
    features.tuple(shape, [&grad, &grad_scale, &grad_offset])
}

/// The operand, cut along its feature dimension.
struct Features<'a> {
    evaluator: &'a Evaluator<'a>,
    operand: &'a Array,
    /// How many features there are, at run time.
    count: usize,
    /// How far apart elements of neighbouring features are.
    step: usize,
    /// The other dimensions: sizes at run time, and how far apart their elements are.
    others: Vec<(usize, [isize; 1])>,
}

impl<'a> Features<'a> {
    fn new(evaluator: &'a Evaluator<'a>, operand: &'a Array, feature: usize) -> Self {
        let steps = steps(operand.dims());
        let sizes = operand.sizes();
        let others = (0..sizes.len()).filter(|&d| d != feature).map(|d| (sizes[d], [steps[d]]));
        Features {
            evaluator,
            operand,
            count: sizes[feature],
            step: steps[feature] as usize,
            others: others.collect(),
        }
    }

    /// Calls `visit` with the place of each element of this feature.
    fn each(&self, feature: usize, mut visit: impl FnMut(usize)) -> Result<()> {
        let mut walk = Walk::new(self.evaluator, self.others.iter().copied());
        walk.points([feature * self.step], |[i]| {
            visit(i);
            Ok(())
        })
    }

    /// Of nothing, NaN.
    fn mean_and_variance(&self, feature: usize, x: &[f64]) -> Result<(f64, f64)> {
        let (mut sum, mut count) = (0.0, 0.0);
        self.each(feature, |i| {
            sum += x[i];
            count += 1.0;
        })?;
        let mean = sum / count;
        let mut square = 0.0;
        self.each(feature, |i| square += (x[i] - mean) * (x[i] - mean))?;
        Ok((mean, square / count))
    }

    /// A tuple of an array like the operand and two of one element a feature.
    fn tuple(&self, shape: &Shape, parts: [&[f64]; 3]) -> Result<Literal> {
        let shapes = shape.as_tuple().ok_or_else(|| Error::internal("the result is a tuple"))?;
        let sizes = [self.operand.sizes(), &[self.count], &[self.count]];
        let arrays = shapes.iter().zip(parts).zip(sizes).map(|((shape, values), sizes)| {
            let array = finish_in_order(values, array_shape(shape)?)?;
            with_bounded_sizes(array, sizes).map(Literal::Array)
        });
        arrays.collect::<Result<_>>().map(Literal::Tuple)
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::ElementType;
    use helio_ir::types::BF16;

    use super::*;
    use crate::testing::{on_evaluator, pattern, resized};

    struct Case {
        dims: &'static [usize],
        feature: usize,
        trained: [&'static [f64]; 3],
        inferred: &'static [f64],
        grads: [&'static [f64]; 3],
    }

    const EPSILON: f32 = 0.125;

    fn numbers(dims: &[usize], a: usize, b: usize, m: usize, plus: f64) -> Literal {
        let values = pattern(dims.iter().product(), a, b, m);
        Literal::array(dims, values.iter().map(|&v| f64::from(v) + plus).collect()).unwrap()
    }

    fn assert_close(found: &Literal, expected: &[&[f64]]) {
        let leaves = found.leaves();
        assert_eq!(leaves.len(), expected.len());
        for (leaf, expected) in leaves.iter().zip(expected) {
            let found = leaf.as_array().unwrap().values::<f64>().unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(*expected) {
                let error = (found - expected).abs();
                assert!(error <= 1e-13 * (1.0 + expected.abs()), "{found} instead of {expected}");
            }
        }
    }

    /// Expected values are NumPy's; gradients are those that JAX finds for the same formula.
    #[test]
    fn every_operation_and_place_of_the_feature() {
        let cases = [
            Case {
                dims: &[2, 3, 2],
                feature: 1,
                trained: [
                    &[
                        -0.658207036487668,
                        -1.6152273343222,
                        -1.3129457822454,
                        3.10431526074847,
                        3.3129457822454,
                        -1.10431526074847,
                        -0.384772665677803,
                        -1.34179296351233,
                        0.895684739251535,
                        5.3129457822454,
                        1.10431526074847,
                        -3.3129457822454,
                    ],
                    &[0.5, -2.0, 1.0],
                    &[13.25, 5.0, 5.0],
                ],
                inferred: &[
                    -0.491999491999238,
                    -2.2700012700019,
                    -0.948839123097943,
                    4.94883912309794,
                    3.39683110243379,
                    -1.1322770341446,
                    0.016001016001524,
                    -1.76200076200114,
                    2.0,
                    7.89767824619589,
                    1.1322770341446,
                    -3.39683110243379,
                ],
                grads: [
                    &[
                        0.0709140541119044,
                        0.0364153250844914,
                        -0.282812444825826,
                        -1.01004444580652,
                        -0.565624889651652,
                        -2.02008889161305,
                        -0.0364153250844914,
                        -0.0709140541119044,
                        1.01004444580652,
                        0.282812444825826,
                        2.02008889161305,
                        0.565624889651652,
                    ],
                    &[5.74212178700717, -5.30071325159263, 10.6014265031853],
                    &[6.0, -6.0, 0.0],
                ],
            },
            Case {
                dims: &[4, 2],
                feature: 1,
                trained: [
                    &[
                        -0.713268827818336,
                        -1.0721197019464,
                        -1.20480798012976,
                        5.48173566220592,
                        -1.69634713244118,
                        3.0240399006488,
                        -0.38557605961072,
                        0.566344139091679,
                    ],
                    &[-0.25, 1.25],
                    &[9.1875, 9.1875],
                ],
                inferred: &[
                    -0.491999491999238,
                    -6.84651736929383,
                    -1.25400025400038,
                    4.94883912309794,
                    -2.01600101600152,
                    0.525580438451029,
                    0.016001016001524,
                    -3.89767824619589,
                ],
                grads: [
                    &[
                        -0.0692773301915431,
                        -0.173193325478857,
                        0.541022959591098,
                        -1.27833168805823,
                        -0.323294207560534,
                        2.51542687005007,
                        -0.148451421839021,
                        -1.06390185651298,
                    ],
                    &[2.94923491386855, 6.63577855620423],
                    &[0.0, 3.0],
                ],
            },
            Case {
                dims: &[2, 3],
                feature: 0,
                trained: [
                    &[
                        -0.423130255462239,
                        -1.63455671899154,
                        -0.942313025546224,
                        4.8843487226888,
                        -1.17278359495768,
                        2.28843487226888,
                    ],
                    &[1.33333333333333, 0.333333333333333],
                    &[8.22222222222222, 8.22222222222222],
                ],
                inferred: &[
                    -0.491999491999238,
                    -2.2700012700019,
                    -1.25400025400038,
                    4.94883912309794,
                    -5.37209780774486,
                    0.525580438451029,
                ],
                grads: [
                    &[
                        -0.276436749462355,
                        -0.215102345675395,
                        0.491539095137749,
                        -1.38218374731177,
                        -1.07551172837697,
                        2.45769547568875,
                    ],
                    &[4.15346216067188, 4.15346216067188],
                    &[0.0, 0.0],
                ],
            },
        ];
        for Case { dims, feature, trained, inferred, grads } in cases {
            let features = [dims[feature]];
            let array = Shape::array(ElementType::F64, dims).unwrap();
            let list = Shape::array(ElementType::F64, features).unwrap();
            let triple = Shape::Tuple(vec![array.clone(), list.clone(), list]);
            let x = numbers(dims, 7, 3, 11, 0.0);
            let scale = numbers(&features, 5, 2, 7, 0.5);
            let offset = numbers(&features, 3, 1, 5, 0.0);

            let op = ops::BatchNormTraining { epsilon: EPSILON, feature_index: feature };
            let args = [x.clone(), scale.clone(), offset.clone()];
            let found = on_evaluator(|ev| training(&op, ev, &args, &triple)).unwrap();
            assert_close(&found, &trained);

            let op = ops::BatchNormInference { epsilon: EPSILON, feature_index: feature };
            let (mean, variance) =
                (numbers(&features, 2, 1, 3, 0.0), numbers(&features, 2, 1, 3, 3.75));
            let args = [x.clone(), scale.clone(), offset, mean, variance];
            let found = on_evaluator(|ev| inference(&op, ev, &args, &array)).unwrap();
            assert_close(&found, &[inferred]);

            let op = ops::BatchNormGrad { epsilon: EPSILON, feature_index: feature };
            let mean = Literal::array(features, trained[1].to_vec()).unwrap();
            let variance = Literal::array(features, trained[2].to_vec()).unwrap();
            let args = [x, scale, mean, variance, numbers(dims, 3, 4, 9, 0.0)];
            let found = on_evaluator(|ev| grad(&op, ev, &args, &triple)).unwrap();
            assert_close(&found, &grads);
        }
    }

    /// Mean 2 and variance 1 without the padding; (3 - 2) / sqrt(1 + 0) in bf16.
    #[test]
    fn narrow_types_and_bounded_sizes() {
        let bf16 =
            |values: &[f64]| -> Vec<BF16> { values.iter().map(|&v| BF16::from_f64(v)).collect() };
        let x = Array::new([3, 1], bf16(&[1.0, 3.0, 100.0])).unwrap();
        let x = resized(&x, &[0], &[2, 1]);
        let one = Array::new([1], bf16(&[1.0])).unwrap();
        let zero = Array::new([1], bf16(&[0.0])).unwrap();
        let shapes = [&x, &one, &one].map(|array| Shape::Array(array.shape().clone()));
        let shape = Shape::Tuple(shapes.to_vec());
        let op = ops::BatchNormTraining { epsilon: 0.0, feature_index: 1 };
        let args = [x.into(), one.into(), zero.into()];
        let found = on_evaluator(|ev| training(&op, ev, &args, &shape)).unwrap();
        let [y, mean, variance] = found.leaves().try_into().unwrap();
        let y = y.as_array().unwrap();
        assert_eq!(y.sizes(), [2, 1]);
        assert_eq!(y.values::<BF16>().unwrap()[..2], bf16(&[-1.0, 1.0]));
        assert_eq!(mean.as_array().unwrap().values::<BF16>().unwrap(), bf16(&[2.0]));
        assert_eq!(variance.as_array().unwrap().values::<BF16>().unwrap(), bf16(&[1.0]));
    }
}
