//! Element-wise operations on arrays: `element` says what they do to each element.

#[cfg(test)]
mod tests;

use helio_ir::{Array, ArrayData, Error, Literal, Native, Result, Shape, dispatch, ops};

use crate::element::{self, Use1, Use2};
use crate::frame::{array, array_shape};
use crate::{Evaluator, dynamic};

/// Maps a function over an array.
pub(crate) struct Map<'a>(pub(crate) &'a Array);

impl Use1 for Map<'_> {
    type Output = ArrayData;
    fn with<A: Native, R: Native>(self, f: impl Fn(A) -> R) -> Result<ArrayData> {
        Ok(R::wrap(self.0.values::<A>()?.iter().map(|&x| f(x)).collect()))
    }
}

/// Maps a function over two arrays of one shape, or of which one is a scalar.
pub(crate) struct Zip<'a>(pub(crate) &'a Array, pub(crate) &'a Array);

impl Use2 for Zip<'_> {
    type Output = ArrayData;
    fn with<A: Native, R: Native>(self, f: impl Fn(A, A) -> R) -> Result<ArrayData> {
        let values = match (self.0.values::<A>()?, self.1.values::<A>()?) {
            (lhs, rhs) if lhs.len() == rhs.len() => {
                lhs.iter().zip(rhs).map(|(&x, &y)| f(x, y)).collect()
            }
            (&[x], rhs) => rhs.iter().map(|&y| f(x, y)).collect(),
            (lhs, &[y]) => lhs.iter().map(|&x| f(x, y)).collect(),
            (lhs, rhs) => {
                let (lhs, rhs) = (lhs.len(), rhs.len());
                return Err(Error::internal(format!("operands of {lhs} and {rhs} elements")));
            }
        };
        Ok(R::wrap(values))
    }
}

/// Any operation of [`ops::UnaryOp`].
pub(crate) fn unary(
    op: ops::UnaryOp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    let data = element::unary(op, operand.element(), evaluator.cx.subnormals, Map(operand))?;
    dynamic::like(array_shape(shape)?, data, &[operand])
}

/// Any operation of [`ops::BinaryOp`].
pub(crate) fn binary(
    op: ops::BinaryOp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lhs, rhs) = (array(args, 0)?, array(args, 1)?);
    let data = element::binary(op, lhs.element(), evaluator.cx.subnormals, Zip(lhs, rhs))?;
    dynamic::like(array_shape(shape)?, data, &[lhs, rhs])
}

/// IEEE or total order; complex numbers by real, then imaginary part.
pub(crate) fn compare(
    op: &ops::Compare,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lhs, rhs) = (array(args, 0)?, array(args, 1)?);
    let data = element::compare(*op, lhs.element(), evaluator.cx.subnormals, Zip(lhs, rhs))?;
    dynamic::like(array_shape(shape)?, data, &[lhs, rhs])
}

/// The second or the third operand, by the first, which may be a scalar.
pub(crate) fn select(
    _: &ops::Select,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    fn choose<T: Native>(pred: &[bool], on_true: &[T], on_false: &Array) -> Result<ArrayData> {
        let on_false = on_false.values::<T>()?;
        Ok(T::wrap(match pred {
            &[pred] => if pred { on_true } else { on_false }.to_vec(),
            pred => {
                let choices = on_true.iter().zip(on_false);
                pred.iter().zip(choices).map(|(&pred, (&t, &f))| if pred { t } else { f }).collect()
            }
        }))
    }
    let (pred, on_true, on_false) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let flags = pred.values::<bool>()?;
    let data = dispatch!(on_true.data(), values => choose(flags, values, on_false))?;
    dynamic::like(array_shape(shape)?, data, &[pred, on_true, on_false])
}

/// `min(max(x, lo), hi)`, so that NaN in any operand gives NaN and `hi` wins over `lo`.
pub(crate) fn clamp(
    _: &ops::Clamp,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lo, x, hi) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let (element, subnormals) = (x.element(), evaluator.cx.subnormals);
    let raised = element::binary(ops::BinaryOp::Maximum, element, subnormals, Zip(x, lo))?;
    let raised = Array::from_data(x.shape().clone(), raised)?;
    let data = element::binary(ops::BinaryOp::Minimum, element, subnormals, Zip(&raised, hi))?;
    dynamic::like(array_shape(shape)?, data, &[lo, x, hi])
}
