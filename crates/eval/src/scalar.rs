//! Single elements, and computations on them: what reduce, map, sort and scatter call.

use helio_ir::{Array, CompId, ElementType, Error, Literal, Native, Result};

use crate::Evaluator;

/// One element with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    element: ElementType,
    bits: u128,
}

impl Scalar {
    pub(crate) fn new<T: Native>(value: T) -> Self {
        Scalar { element: T::TYPE, bits: Native::to_bits(value) }
    }

    /// The element at a place in row-major order.
    pub(crate) fn of(array: &Array, index: usize) -> Self {
        Scalar { element: array.element(), bits: array.bits(index) }
    }

    pub(crate) fn element(self) -> ElementType {
        self.element
    }

    /// Errors: `Internal` if it has another type.
    pub(crate) fn get<T: Native>(self) -> Result<T> {
        if self.element == T::TYPE {
            Ok(T::from_bits(self.bits))
        } else {
            Err(Error::internal(format!("a scalar of {} taken for {}", self.element, T::TYPE)))
        }
    }

    pub(crate) fn to_literal(self) -> Literal {
        helio_ir::dispatch_type!(self.element, T => Literal::scalar(<T as Native>::from_bits(self.bits)))
    }
}

/// A computation from scalars to a scalar or a tuple of scalars, ready to be called many times.
pub(crate) struct ScalarFn<'a> {
    evaluator: &'a Evaluator<'a>,
    computation: CompId,
}

impl<'a> ScalarFn<'a> {
    pub(crate) fn new(evaluator: &'a Evaluator<'a>, computation: CompId) -> Self {
        ScalarFn { evaluator, computation }
    }

    /// Appends the results to `results`, after clearing it.
    pub(crate) fn call(&mut self, args: &[Scalar], results: &mut Vec<Scalar>) -> Result<()> {
        results.clear();
        let args = args.iter().map(|arg| arg.to_literal()).collect();
        let value = self.evaluator.call(self.computation, args)?;
        for leaf in value.leaves() {
            let array = leaf.as_array().ok_or_else(|| Error::internal("not a scalar"))?;
            results.push(Scalar::of(array, 0));
        }
        Ok(())
    }
}
