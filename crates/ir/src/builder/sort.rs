//! The builder's methods for sorting.

use super::{XlaBuilder, XlaComputation, XlaOp, check, refs};
use crate::ops::{Direction, Sort, TopK};
use crate::{BinaryOp, ElementType, Error, Result};

impl XlaOp {
    /// Sorts an array along a dimension, by default the last, by a comparator. See
    /// [`XlaBuilder::sort`]; without a comparator, see [`XlaOp::sort`].
    #[track_caller]
    pub fn sort_by(
        &self,
        comparator: &XlaComputation,
        dimension: Option<usize>,
        is_stable: bool,
    ) -> XlaOp {
        self.builder.sort(&[self], comparator, dimension, is_stable)
    }

    /// The `k` largest (or smallest) elements of the last dimension in order, and their indices;
    /// of equal elements, the one of lower index first.
    ///
    /// Shapes: `T[…, n]` to `(T[…, k], s32[…, k])`. Errors: the rules of `topk`. Source: E4 "TopK".
    #[track_caller]
    pub fn top_k(&self, k: usize, largest: bool) -> XlaOp {
        self.builder.apply(TopK { k, largest }, &[self])
    }
}

impl XlaBuilder {
    /// Sorts arrays together along a dimension, by default the last.
    ///
    /// Shapes: arrays `T_i[D]`; the comparator takes `T_0[], T_0[], T_1[], T_1[], …`, the left
    /// element first, and says whether the left comes first. The result is an array, or a tuple of
    /// several. Errors: the rules of `sort`, `builder.C5` (a scalar). Source: E4 "Sort".
    #[track_caller]
    pub fn sort(
        &self,
        operands: &[impl AsRef<XlaOp>],
        comparator: &XlaComputation,
        dimension: Option<usize>,
        is_stable: bool,
    ) -> XlaOp {
        let operands = refs(operands);
        let dimension = check!(self, dimension.map_or_else(|| last_dimension(&operands), Ok));
        let to_apply = check!(self, self.import(comparator));
        self.apply(Sort { dimension, is_stable, to_apply }, &operands)
    }

    /// [`XlaComputation::scalar`], the same one each time.
    #[track_caller]
    pub(super) fn scalar_binary(
        &self,
        op: BinaryOp,
        element: ElementType,
    ) -> Result<XlaComputation> {
        let key = (op.name(), element);
        if let Some(known) = self.state.borrow().scalars.get(&key) {
            return Ok(known.clone());
        }
        let made = XlaComputation::scalar(op, element)?;
        self.state.borrow_mut().scalars.insert(key, made.clone());
        Ok(made)
    }

    /// [`XlaComputation::scalar_compare`], the same one each time.
    #[track_caller]
    pub(super) fn scalar_compare(
        &self,
        direction: Direction,
        element: ElementType,
    ) -> Result<XlaComputation> {
        let key = (direction.word(), element);
        if let Some(known) = self.state.borrow().scalars.get(&key) {
            return Ok(known.clone());
        }
        let made = XlaComputation::scalar_compare(direction, element)?;
        self.state.borrow_mut().scalars.insert(key, made.clone());
        Ok(made)
    }
}

fn last_dimension(operands: &[&XlaOp]) -> Result<usize> {
    let shape = match operands.first() {
        Some(operand) => operand.array_shape()?,
        None => return Err(Error::rule("operands.C1", "sort takes 1 operand or more, found 0")),
    };
    shape
        .rank()
        .checked_sub(1)
        .ok_or_else(|| Error::rule("builder.C5", format!("{shape} has no dimension to sort along")))
}
