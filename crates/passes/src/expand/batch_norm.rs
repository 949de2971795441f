//! Batch normalisation as sums and elementwise arithmetic.

use helio_ir::ops::{
    BatchNormGrad, BatchNormInference, BatchNormTraining, Broadcast, Constant, Convert, Reduce,
    Tuple,
};
use helio_ir::{
    Array, ArrayShape, BinaryOp, CompId, ElementType, InstrId, Native, Number, Result, UnaryOp,
    dispatch_type,
};

use crate::draft::{Draft, addition};

/// Arrays cut along their feature dimension; all arithmetic is in one type.
struct Features<'d, 'm> {
    draft: &'d mut Draft<'m>,
    /// The operand's sizes in the type that is computed in: `f32` for narrower floats.
    shape: ArrayShape,
    feature: usize,
    /// The type of operands and results.
    element: ElementType,
    sum: Option<CompId>,
}

/// (output, mean, variance)
pub(super) fn training(
    draft: &mut Draft<'_>,
    op: &BatchNormTraining,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let Some(mut cx) = Features::new(draft, operands, op.feature_index)? else { return Ok(None) };
    let [x, scale, offset] = cx.operands(operands)?;
    let count = cx.scalar(cx.count())?;
    let count = cx.of_features(count)?;
    let sum = cx.sum(x)?;
    let mean = cx.binary(BinaryOp::Divide, sum, count)?;
    let centred = cx.minus(x, mean)?;
    let square = cx.binary(BinaryOp::Multiply, centred, centred)?;
    let squares = cx.sum(square)?;
    let variance = cx.binary(BinaryOp::Divide, squares, count)?;
    let output = cx.normalized(centred, variance, op.epsilon, scale, offset)?;
    cx.tuple([output, mean, variance]).map(Some)
}

/// The output.
pub(super) fn inference(
    draft: &mut Draft<'_>,
    op: &BatchNormInference,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let Some(mut cx) = Features::new(draft, operands, op.feature_index)? else { return Ok(None) };
    let [x, scale, offset, mean, variance] = cx.operands(operands)?;
    let centred = cx.minus(x, mean)?;
    let output = cx.normalized(centred, variance, op.epsilon, scale, offset)?;
    cx.result(output).map(Some)
}

/// (gradient of the operand, of the scale, of the offset)
pub(super) fn grad(
    draft: &mut Draft<'_>,
    op: &BatchNormGrad,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let Some(mut cx) = Features::new(draft, operands, op.feature_index)? else { return Ok(None) };
    let [x, scale, mean, variance, grad] = cx.operands(operands)?;
    let centred = cx.minus(x, mean)?;
    let grad_offset = cx.sum(grad)?;
    let product = cx.binary(BinaryOp::Multiply, grad, centred)?;
    let product = cx.sum(product)?;
    let square = cx.plus_epsilon(variance, op.epsilon)?;
    let inverse = cx.draft.add(UnaryOp::Rsqrt, &[square])?;
    let grad_scale = cx.binary(BinaryOp::Multiply, product, inverse)?;
    // scale / deviation / n * (n * grad - sum - centred * product / square)
    let count = cx.scalar(cx.count())?;
    let counts = cx.of_features(count)?;
    let factor = cx.binary(BinaryOp::Multiply, scale, inverse)?;
    let factor = cx.binary(BinaryOp::Divide, factor, counts)?;
    let slope = cx.binary(BinaryOp::Divide, product, square)?;
    let slope = cx.repeated(slope)?;
    let shift = cx.binary(BinaryOp::Multiply, centred, slope)?;
    let counts = cx.repeated_scalar(count)?;
    let grad = cx.binary(BinaryOp::Multiply, grad, counts)?;
    let grad = cx.minus(grad, grad_offset)?;
    let grad = cx.binary(BinaryOp::Subtract, grad, shift)?;
    let factor = cx.repeated(factor)?;
    let grad = cx.binary(BinaryOp::Multiply, grad, factor)?;
    cx.tuple([grad, grad_scale, grad_offset]).map(Some)
}

impl<'d, 'm> Features<'d, 'm> {
    /// `None` if sizes are known at run time only.
    fn new(draft: &'d mut Draft<'m>, operands: &[InstrId], feature: usize) -> Result<Option<Self>> {
        let is_static = |&id: &InstrId| draft.array(id).is_some_and(ArrayShape::is_static);
        let Some(operand) = operands.first().and_then(|&id| draft.array(id)) else {
            return Ok(None);
        };
        if !operands.iter().all(is_static) {
            return Ok(None);
        }
        let element = operand.element();
        let computed = if element.bits() < 32 { ElementType::F32 } else { element };
        let shape = ArrayShape::new(computed, operand.dims())?;
        Ok(Some(Features { draft, shape, feature, element, sum: None }))
    }

    /// The operands in the type that is computed in.
    fn operands<const N: usize>(&mut self, operands: &[InstrId]) -> Result<[InstrId; N]> {
        let mut converted = [InstrId(0); N];
        for (to, &operand) in converted.iter_mut().zip(operands) {
            *to = self.converted(operand, self.shape.element())?;
        }
        Ok(converted)
    }

    fn converted(&mut self, id: InstrId, element: ElementType) -> Result<InstrId> {
        match self.draft.array(id) {
            Some(array) if array.element() != element => self.draft.add(Convert { element }, &[id]),
            _ => Ok(id),
        }
    }

    fn result(&mut self, id: InstrId) -> Result<InstrId> {
        self.converted(id, self.element)
    }

    fn tuple(&mut self, ids: [InstrId; 3]) -> Result<InstrId> {
        let [a, b, c] = ids;
        let results = [self.result(a)?, self.result(b)?, self.result(c)?];
        self.draft.add(Tuple, &results)
    }

    fn binary(&mut self, op: BinaryOp, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.draft.add(op, &[a, b])
    }

    /// How many elements each feature has.
    fn count(&self) -> f64 {
        let others = self.shape.dims().iter().enumerate().filter(|&(d, _)| d != self.feature);
        others.map(|(_, &size)| size as f64).product()
    }

    fn scalar(&mut self, value: f64) -> Result<InstrId> {
        let value = dispatch_type!(self.shape.element(), T => {
            Array::scalar(T::from_number(Number::Float(value)))
        });
        self.draft.add(Constant::new(value), &[])
    }

    /// A scalar for each feature.
    fn of_features(&mut self, scalar: InstrId) -> Result<InstrId> {
        let dims = [self.shape.dims()[self.feature]];
        let shape = ArrayShape::new(self.shape.element(), dims)?;
        self.draft.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
    }

    /// A scalar for each element.
    fn repeated_scalar(&mut self, scalar: InstrId) -> Result<InstrId> {
        let shape = self.shape.clone();
        self.draft.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
    }

    /// A value of each feature for each of its elements.
    fn repeated(&mut self, of_features: InstrId) -> Result<InstrId> {
        let (shape, dimensions) = (self.shape.clone(), vec![self.feature]);
        self.draft.add(Broadcast { shape, dimensions }, &[of_features])
    }

    /// Elements less a value of their feature.
    fn minus(&mut self, x: InstrId, of_features: InstrId) -> Result<InstrId> {
        let repeated = self.repeated(of_features)?;
        self.binary(BinaryOp::Subtract, x, repeated)
    }

    fn plus_epsilon(&mut self, variance: InstrId, epsilon: f32) -> Result<InstrId> {
        let epsilon = self.scalar(f64::from(epsilon))?;
        let epsilon = self.of_features(epsilon)?;
        self.binary(BinaryOp::Add, variance, epsilon)
    }

    /// centred / deviation * scale + offset
    fn normalized(
        &mut self,
        centred: InstrId,
        variance: InstrId,
        epsilon: f32,
        scale: InstrId,
        offset: InstrId,
    ) -> Result<InstrId> {
        let square = self.plus_epsilon(variance, epsilon)?;
        let inverse = self.draft.add(UnaryOp::Rsqrt, &[square])?;
        let factor = self.binary(BinaryOp::Multiply, inverse, scale)?;
        let (factor, offset) = (self.repeated(factor)?, self.repeated(offset)?);
        let scaled = self.binary(BinaryOp::Multiply, centred, factor)?;
        self.binary(BinaryOp::Add, scaled, offset)
    }

    /// The sum of each feature.
    fn sum(&mut self, x: InstrId) -> Result<InstrId> {
        let to_apply = match self.sum {
            Some(sum) => sum,
            None => {
                let sum = addition(self.shape.element())?;
                *self.sum.insert(self.draft.module().push(sum)?)
            }
        };
        let zero = self.scalar(0.0)?;
        let dimensions = (0..self.shape.rank()).filter(|&d| d != self.feature).collect();
        self.draft.add(Reduce { dimensions, to_apply }, &[x, zero])
    }
}
