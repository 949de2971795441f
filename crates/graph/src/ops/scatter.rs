//! Tensors with elements changed at places that tensors of integers say.

use helio::builder::XlaComputation;
use helio::ir::ops::ScatterDims;
use helio::ir::{BinaryOp, Shape as HloShape};
use helio::{ElementType, Result};

use crate::graph::TensorType;
use crate::lower::Emit;
use crate::ops::binary::{ensure_real, ensure_type, is_narrow};
use crate::ops::indexing::{from_start, taken};
use crate::{Axis, Operand, Tensor};

macro_rules! scatters {
    ($($(#[doc = $doc:literal])+ $name:ident: $how:expr;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// `x.take(indices, axis)` reads what this writes; the updates are broadcast to that
            /// shape, and promoted with the tensor. Negative indices count from the end; indices
            /// outside are left out. Errors: `index.C1`, `shape.C1`, `broadcast.C2`,
            /// `elementwise.C1`, `promotion.C1`, `promotion.C2`.
            #[track_caller]
            pub fn $name(
                &self,
                indices: impl Operand,
                updates: impl Operand,
                axis: impl Into<Axis>,
            ) -> Tensor {
                self.call(stringify!($name), |_| {
                    self.scatter(indices, updates, axis, $how)
                })
            }
        )*}
    };
}
scatters! {
    /// The tensor with updates added to the elements at `indices` along an axis. Types narrower than
    /// `f32` are added in `f32`. Source: JAX's `at[…].add`, NumPy's `add.at`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.scatter_add(g.constant([1]), g.constant([10]), 0).eval()?, [1, 12, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    scatter_add: Some(BinaryOp::Add);
    /// The tensor with the elements at `indices` along an axis multiplied by updates. Source: JAX's
    /// `at[…].mul`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.scatter_mul(g.constant([1]), g.constant([10]), 0).eval()?, [1, 20, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    scatter_mul: Some(BinaryOp::Multiply);
    /// The tensor with the greater of the elements at `indices` along an axis and the updates, NaN
    /// if one is. Source: JAX's `at[…].max`, NumPy's `maximum.at`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.scatter_max(g.constant([1]), g.constant([10]), 0).eval()?, [1, 10, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    scatter_max: Some(BinaryOp::Maximum);
    /// The tensor with the lesser of the elements at `indices` along an axis and the updates, NaN if
    /// one is. Source: JAX's `at[…].min`, NumPy's `minimum.at`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.scatter_min(g.constant([1]), g.constant([10]), 0).eval()?, [1, 2, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    scatter_min: Some(BinaryOp::Minimum);
    /// The tensor with the elements at `indices` along an axis replaced by updates; of several for
    /// one element, one. Source: JAX's `at[…].set`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.scatter_update(g.constant([1]), g.constant([10]), 0).eval()?, [1, 10, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    scatter_update: None;
}

impl Tensor {
    fn scatter(
        &self,
        indices: impl Operand,
        updates: impl Operand,
        axis: impl Into<Axis>,
        how: Option<BinaryOp>,
    ) -> Result<Tensor> {
        let indices = self.indices(indices)?;
        let (x, updates, dtype) = self.meet_types(updates)?;
        let arithmetic = matches!(how, Some(BinaryOp::Add | BinaryOp::Multiply));
        match how {
            Some(_) if arithmetic => ensure_type(dtype, !dtype.is_pred(), "numbers")?,
            Some(_) => ensure_real(dtype)?,
            None => {}
        }
        let (shape, found) = (self.shape()?, indices.ty()?);
        let axis = shape.axis(axis)?;
        let dim = shape[axis].clone();
        let rank = found.shape.rank();
        let updates = updates.broadcast_to(taken(&shape, axis, &found.shape));
        let windows = (0..shape.rank() - 1 + rank).filter(|d| !(axis..axis + rank).contains(d));
        let dims = ScatterDims {
            update_window_dims: windows.collect(),
            inserted_window_dims: vec![axis],
            scatter_dims_to_operand_dims: vec![axis],
            index_vector_dim: rank,
            ..ScatterDims::default()
        };
        // Many narrow floats would stop growing.
        let wide = if arithmetic && is_narrow(dtype) { ElementType::F32 } else { dtype };
        let ty = TensorType::new(dtype, shape);
        self.graph().emit(&[&x, &indices, &updates], ty, move |emit, x| {
            let size = emit.size(&dim)?;
            let indices = from_start(&x[1], found.dtype, size);
            let [x, updates] = [&x[0], &x[2]].map(|x| x.convert_element_type(wide));
            let computation = match how {
                Some(op) => emit.scalar(op, wide)?,
                None => second(emit, wide)?,
            };
            let result = x.scatter(&indices, &updates, &computation, dims.clone(), false, false);
            Ok(result.convert_element_type(dtype))
        })
    }
}

/// The second of two scalars.
fn second(emit: &Emit<'_>, element: ElementType) -> Result<XlaComputation> {
    emit.computation("second", |builder| {
        let [_, y] = [0, 1].map(|number| builder.parameter(number, HloShape::scalar(element), ""));
        y
    })
}
