//! Products of matrices and their kin.
//!
//! All are contractions: axes have labels; what a label that the result lacks stands for is summed
//! over. Floats narrower than `f32` are summed in `f32` and rounded once.

use helio::builder::DotOptions;
use helio::ir::ops::DotDims;
use helio::{ElementType, Error, Result};

use crate::graph::TensorType;
use crate::ops::binary::{ensure_type, factor_type, is_narrow};
use crate::{Axis, Dim, Operand, Shape, Tensor};

impl Tensor {
    /// The product of matrices, the last two axes of each operand; the others are broadcast. A
    /// vector on the left is a row, one on the right a column, and that axis is dropped.
    ///
    /// Shapes: `[a…, m, k]` and `[b…, k, n]` to `[…, m, n]`. The operands are promoted; integers wrap
    /// in the common type. Errors: `matmul.C1` unless the contracted dimensions are equal, as
    /// expressions; `matmul.C2` for scalars; `broadcast.C1`, `promotion.C1`, `elementwise.C1` for
    /// bools. Source: NumPy's `matmul`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("product");
    /// let x = g.input("x", ElementType::F32, ("batch", 28));
    /// let w = g.input("w", ElementType::F32, (28, 10));
    /// assert_eq!(x.matmul(&w).shape()?.to_string(), "[batch, 10]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, rhs: impl Operand) -> Tensor {
        self.call("matmul", |_| {
            let (lhs, rhs, _) = self.factors(rhs)?;
            let (left, right) = (lhs.shape()?, rhs.shape()?);
            if left.rank() == 0 || right.rank() == 0 {
                let detail = format!(
                    "{left} and {right}: both operands need 1 axis or more\n  help: to scale by a \
                     number, write x * y"
                );
                return Err(Error::rule("matmul.C2", detail));
            }
            ensure_contracted(&left, left.rank() - 1, &right, right.rank().saturating_sub(2))?;
            let batch = |shape: &Shape| Shape::from(&shape[..shape.rank().saturating_sub(2)]);
            let (left_batch, right_batch) = (batch(&left), batch(&right));
            let batch = left_batch.broadcast(&right_batch).map_err(|error| {
                error.context(format_args!("the axes before the matrices of {left} and {right}"))
            })?;
            // Batch axes are numbered from the last; the matrices' follow.
            let [row, column, summed] = [0, 1, 2].map(|i| batch.rank() + i);
            let labels = |own: usize| (0..own).rev();
            let mut left_labels: Vec<usize> = labels(left_batch.rank()).collect();
            let mut right_labels: Vec<usize> = labels(right_batch.rank()).collect();
            let mut result: Vec<usize> = labels(batch.rank()).collect();
            if left.rank() > 1 {
                left_labels.push(row);
                result.push(row);
            }
            left_labels.push(summed);
            right_labels.push(summed);
            if right.rank() > 1 {
                right_labels.push(column);
                result.push(column);
            }
            let operands = vec![Labeled::new(lhs, left_labels), Labeled::new(rhs, right_labels)];
            contract(operands, &result)
        })
    }

    /// The sum of products over the last axis of the left operand and the last but one, or only, axis
    /// of the right one, for all combinations of the other axes; with a scalar, the product.
    ///
    /// Shapes: `[a…, k]` and `[b…, k, n]` to `[a…, b…, n]`. Errors: as for [`Tensor::matmul`].
    /// Source: NumPy's `dot`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 4]);
    /// assert_eq!(x.dot(&x).eval()?, 25.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, rhs: impl Operand) -> Tensor {
        self.call("dot", |_| {
            let (lhs, rhs, _) = self.factors(rhs)?;
            let (left, right) = (lhs.shape()?, rhs.shape()?);
            if left.rank() == 0 || right.rank() == 0 {
                return Ok(lhs * rhs);
            }
            let (i, j) = (left.rank() - 1, right.rank().saturating_sub(2));
            ensure_contracted(&left, i, &right, j)?;
            contract_axes(lhs, &[i], rhs, &[j])
        })
    }

    /// The sum of products over pairs of axes, for all combinations of the other axes: `lhs_axes[i]`
    /// goes with `rhs_axes[i]`.
    ///
    /// The result has the left operand's other axes, then the right one's. Errors: `tensordot.C1` for
    /// lists of different lengths, `shape.C1`; and as for [`Tensor::matmul`]. Source: NumPy's
    /// `tensordot`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.tensordot(&x, &[0, 1], &[0, 1]).eval()?, 30.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tensordot(
        &self,
        rhs: impl Operand,
        lhs_axes: &[impl Into<Axis> + Copy],
        rhs_axes: &[impl Into<Axis> + Copy],
    ) -> Tensor {
        self.call("tensordot", |_| {
            let (lhs, rhs, _) = self.factors(rhs)?;
            let (left, right) = (lhs.shape()?, rhs.shape()?);
            if lhs_axes.len() != rhs_axes.len() {
                let detail = format!(
                    "{} axes of the left operand and {} of the right one cannot be paired",
                    lhs_axes.len(),
                    rhs_axes.len()
                );
                return Err(Error::rule("tensordot.C1", detail));
            }
            let (lhs_axes, rhs_axes) = (left.axes(lhs_axes)?, right.axes(rhs_axes)?);
            for (&i, &j) in lhs_axes.iter().zip(&rhs_axes) {
                ensure_contracted(&left, i, &right, j)?;
            }
            contract_axes(lhs, &lhs_axes, rhs, &rhs_axes)
        })
    }

    /// The products of all pairs of elements: `result[i, j] = lhs[i] * rhs[j]`, where operands of
    /// more axes are flattened. Errors: `promotion.C1`, `elementwise.C1` for bools. Source: NumPy's
    /// `outer`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 4]);
    /// assert_eq!(x.outer(&x).eval()?, [[9, 12], [12, 16]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, rhs: impl Operand) -> Tensor {
        self.call("outer", |_| {
            let (lhs, rhs, _) = self.factors(rhs)?;
            Ok(lhs.flatten().expand_dims(1) * rhs.flatten())
        })
    }

    fn factors(&self, rhs: impl Operand) -> Result<(Tensor, Tensor, ElementType)> {
        let (lhs, rhs, dtype) = self.meet_types(rhs)?;
        ensure_type(dtype, !dtype.is_pred(), "numbers")?;
        Ok((lhs, rhs, dtype))
    }
}

/// Errors: `matmul.C1` unless two dimensions are equal.
fn ensure_contracted(left: &Shape, i: usize, right: &Shape, j: usize) -> Result<()> {
    let (a, b) = (&left[i], &right[j]);
    if a == b {
        return Ok(());
    }
    let help = match (a.size(), b.size()) {
        (Some(_), Some(_)) if i > 0 && right.last() == Some(a) && j + 1 < right.rank() => {
            "the right operand may have to be transposed, as in y.swap_axes(-2, -1)"
        }
        (Some(_), Some(_)) => "transpose, reshape or slice one operand",
        _ => "if they are equal whenever the program is called, say so by a rebind",
    };
    Err(Error::rule(
        "matmul.C1",
        format!(
            "{left} and {right}: the sum runs over dimension {a} (axis {i} of the left operand) and \
             dimension {b} (axis {j} of the right operand), which must be equal\n  help: {help}"
        ),
    ))
}

fn contract_axes(
    lhs: Tensor,
    lhs_axes: &[usize],
    rhs: Tensor,
    rhs_axes: &[usize],
) -> Result<Tensor> {
    let (left, right) = (lhs.shape()?.rank(), rhs.shape()?.rank());
    let left_labels: Vec<usize> = (0..left).collect();
    let label = |axis: usize| match rhs_axes.iter().position(|&j| j == axis) {
        Some(pair) => lhs_axes[pair],
        None => left + axis,
    };
    let right_labels: Vec<usize> = (0..right).map(label).collect();
    let lhs_others = left_labels.iter().filter(|label| !lhs_axes.contains(label));
    let rhs_others = right_labels.iter().filter(|&&label| label >= left);
    let result: Vec<usize> = lhs_others.chain(rhs_others).copied().collect();
    contract(vec![Labeled::new(lhs, left_labels), Labeled::new(rhs, right_labels)], &result)
}

/// A tensor with a label for each axis, all of them different.
pub(crate) struct Labeled {
    tensor: Tensor,
    labels: Vec<usize>,
}

impl Labeled {
    pub(crate) fn new(tensor: Tensor, labels: Vec<usize>) -> Self {
        Labeled { tensor, labels }
    }

    fn axis(&self, label: usize) -> Option<usize> {
        self.labels.iter().position(|&own| own == label)
    }

    /// Without the axes of some labels, which `drop` takes away.
    fn without(
        self,
        dropped: impl Fn(usize) -> bool,
        drop: impl FnOnce(&Tensor, &[usize]) -> Tensor,
    ) -> Self {
        let (gone, labels): (Vec<_>, Vec<_>) =
            (0..).zip(self.labels).partition(|&(_, label)| dropped(label));
        let labels = labels.into_iter().map(|(_, label)| label).collect();
        if gone.is_empty() {
            return Labeled { tensor: self.tensor, labels };
        }
        let gone: Vec<usize> = gone.into_iter().map(|(axis, _)| axis).collect();
        Labeled { tensor: drop(&self.tensor, &gone), labels }
    }
}

/// The product of tensors of one type, of which labels that `result` lacks are summed over. Equal
/// labels stand for equal dimensions, but for 1s, which stretch.
pub(crate) fn contract(operands: Vec<Labeled>, result: &[usize]) -> Result<Tensor> {
    let dtype = operands[0].tensor.dtype()?;
    // Two operands are widened by the product itself, which may have instructions for that.
    let wide = match is_narrow(dtype) && operands.len() > 2 {
        true => ElementType::F32,
        false => dtype,
    };
    let mut left: Vec<Labeled> = Vec::with_capacity(operands.len());
    for operand in &operands {
        let shape = operand.tensor.shape()?;
        let stretches = |label| {
            let is_one = operand.axis(label).is_some_and(|axis| shape[axis].is_one());
            is_one && operands.iter().any(|other| other.is_wider(label))
        };
        let labels = operand.labels.clone();
        let operand = Labeled::new(operand.tensor.cast(wide), labels);
        left.push(operand.without(stretches, |x, axes| x.squeeze(axes)));
    }
    let mut left = left.into_iter();
    let mut product = left.next().ok_or_else(|| Error::internal("a product of nothing"))?;
    while let Some(factor) = left.next() {
        let is_needed = |label: &usize| {
            result.contains(label) || left.as_slice().iter().any(|x| x.axis(*label).is_some())
        };
        let last = left.as_slice().is_empty();
        let labels: Vec<usize> = match last {
            true => result
                .iter()
                .copied()
                .filter(|&l| product.axis(l).is_some() || factor.axis(l).is_some())
                .collect(),
            false => {
                let new = factor.labels.iter().filter(|&&label| product.axis(label).is_none());
                product.labels.iter().chain(new).copied().filter(|label| is_needed(label)).collect()
            }
        };
        product = multiply(product, factor, labels)?;
    }
    let product = summed(product, |label| result.contains(&label))?;
    let order = result.iter().filter_map(|&label| product.axis(label)).collect();
    let ty = product.tensor.ty()?;
    Ok(product.tensor.permuted(&ty, order)?.cast(dtype))
}

impl Labeled {
    /// Whether it has an axis of this label that is not 1.
    fn is_wider(&self, label: usize) -> bool {
        let shape = self.tensor.shape();
        shape.is_ok_and(|shape| self.axis(label).is_some_and(|axis| !shape[axis].is_one()))
    }
}

/// Summed over all labels that are not kept.
fn summed(operand: Labeled, is_kept: impl Fn(usize) -> bool) -> Result<Labeled> {
    Ok(operand.without(|label| !is_kept(label), |x, axes| x.sum(axes)))
}

/// The product of two, with these labels in this order.
fn multiply(lhs: Labeled, rhs: Labeled, result: Vec<usize>) -> Result<Labeled> {
    let dtype = lhs.tensor.dtype()?;
    let widened = if is_narrow(dtype) { ElementType::F32 } else { dtype };
    // What only one operand has is summed before, in the wide type throughout.
    let alone = |a: &Labeled, b: &Labeled| {
        a.labels.iter().any(|&label| b.axis(label).is_none() && !result.contains(&label))
    };
    let is_summed = alone(&lhs, &rhs) || alone(&rhs, &lhs);
    let wide = if is_summed { widened } else { factor_type(dtype) };
    let widen = |x: Labeled| Labeled::new(x.tensor.cast(wide), x.labels);
    let (left_labels, right_labels) = (lhs.labels.clone(), rhs.labels.clone());
    let lhs = summed(widen(lhs), |label| right_labels.contains(&label) || result.contains(&label))?;
    let rhs = summed(widen(rhs), |label| left_labels.contains(&label) || result.contains(&label))?;

    let shared = |label: &usize| lhs.axis(*label).is_some() && rhs.axis(*label).is_some();
    let contracted: Vec<usize> =
        lhs.labels.iter().copied().filter(|l| shared(l) && !result.contains(l)).collect();
    if contracted.is_empty() {
        let product = aligned(&lhs, &result)? * aligned(&rhs, &result)?;
        return Ok(Labeled::new(product.cast(dtype), result));
    }
    let batch: Vec<usize> = result.iter().copied().filter(shared).collect();
    let (left_shape, right_shape) = (lhs.tensor.shape()?, rhs.tensor.shape()?);
    let free = |x: &Labeled| -> Vec<usize> {
        x.labels.iter().copied().filter(|label| !shared(label)).collect()
    };
    let made: Vec<usize> = [batch.clone(), free(&lhs), free(&rhs)].concat();
    let dim = |label: usize| -> Option<Dim> {
        let of = |x: &Labeled, shape: &Shape| x.axis(label).map(|axis| shape[axis].clone());
        of(&lhs, &left_shape).or_else(|| of(&rhs, &right_shape))
    };
    let shape: Shape = made.iter().filter_map(|&label| dim(label)).collect();
    let axes = |x: &Labeled, labels: &[usize]| -> Vec<usize> {
        labels.iter().filter_map(|&label| x.axis(label)).collect()
    };
    let dims = DotDims {
        lhs_contracting: axes(&lhs, &contracted),
        rhs_contracting: axes(&rhs, &contracted),
        lhs_batch: axes(&lhs, &batch),
        rhs_batch: axes(&rhs, &batch),
    };
    let ty = TensorType::new(dtype, shape);
    let graph = lhs.tensor.graph();
    let product = graph.emit(&[&lhs.tensor, &rhs.tensor], ty.clone(), move |_, x| {
        let options =
            DotOptions { preferred_element_type: Some(widened), ..DotOptions::from(dims.clone()) };
        Ok(x[0].dot_general_with(&x[1], options).convert_element_type(dtype))
    })?;
    let order = result.iter().filter_map(|label| made.iter().position(|l| l == label)).collect();
    Ok(Labeled::new(product.permuted(&ty, order)?, result))
}

/// The tensor with axes for all of these labels, of size 1 where it has none.
fn aligned(x: &Labeled, labels: &[usize]) -> Result<Tensor> {
    let ty = x.tensor.ty()?;
    let order: Vec<usize> = labels.iter().filter_map(|&label| x.axis(label)).collect();
    let shape: Shape = labels
        .iter()
        .map(|&label| x.axis(label).map_or(Dim::from(1), |axis| ty.shape[axis].clone()))
        .collect();
    Ok(x.tensor.permuted(&ty, order)?.reshape(shape))
}
