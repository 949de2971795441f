//! Operations that move elements without changing them, tuples, dimension sizes.

use super::broadcasting::{ensure_below, ensure_bounds_known};
use super::window::ensure_length;
use super::{Operand, XlaBuilder, XlaOp, array, check, refs};
use crate::ops::{
    Bitcast, Broadcast, Concatenate, Copy, DynamicReshape, DynamicSlice, DynamicUpdateSlice,
    GetDimensionSize, GetTupleElement, Pad, PadDim, Reshape, Reverse, SetDimensionSize, Slice,
    Transpose, Tuple,
};
use crate::{ArrayShape, DimKind, Error, Shape};

impl XlaOp {
    /// Repeats the array along new dimensions in front.
    ///
    /// Shapes: `T[b0, …, bM]` to `T[sizes…, b0, …, bM]`. Errors: the rules of `broadcast`,
    /// `shape.C1`, `shape.C2`. Source: E1–E4 "Broadcast".
    #[track_caller]
    pub fn broadcast(&self, sizes: &[usize]) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        let new = sizes.len();
        let dims = sizes.iter().chain(operand.dims()).copied().collect();
        let mut kinds = vec![DimKind::Static; new];
        kinds.extend_from_slice(operand.kinds());
        let shape = check!(self.builder, ArrayShape::with_kinds(operand.element(), dims, kinds));
        let dimensions = (new..new + operand.rank()).collect();
        self.builder.apply(Broadcast { shape, dimensions }, &[self])
    }

    /// Repeats the array along new dimensions anywhere, and along its dimensions of size 1.
    ///
    /// Shapes: `T[D]` to `T[sizes]`; dimension `i` becomes `broadcast_dimensions[i]`, of the same
    /// size unless its own is 1. HLO's `broadcast` cannot repeat existing dimensions: a `reshape`
    /// drops them first. Errors: `builder.C3`, `builder.C4`. Source: E4 "BroadcastInDim".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::XlaBuilder};
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::array(F32, [2, 1])?, "x");
    /// let y = x.broadcast_in_dim(&[2, 5, 3], &[0, 2]);
    /// assert_eq!(y.shape()?.to_string(), "f32[2,5,3]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_in_dim(&self, sizes: &[usize], broadcast_dimensions: &[usize]) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_bounds_known(&operand));
        if let Some(pair) = broadcast_dimensions.windows(2).find(|pair| pair[0] >= pair[1]) {
            let detail = format!("broadcast dimensions: {} comes after {}", pair[1], pair[0]);
            return self.builder.report_error(Error::rule("builder.C4", detail));
        }
        self.stretch(sizes, broadcast_dimensions)
    }

    /// The same elements in row-major order under other sizes.
    ///
    /// Shapes: `T[D]` to `T[sizes]` with as many elements, bounded where a bounded dimension ends up.
    /// Errors: the rules of `reshape`; `InvalidArgument` if that can be more than one place. Source:
    /// E1–E4 "Reshape(operand, new_sizes)"; with an order of dimensions, see
    /// [`XlaOp::reshape_with_dimensions`].
    #[track_caller]
    pub fn reshape(&self, sizes: &[usize]) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        let op = check!(self.builder, Reshape::to_sizes(&operand, sizes));
        self.builder.apply(op, &[self])
    }

    /// [`XlaOp::reshape`] to a shape, which may have bounded dimensions. Source: XLA's
    /// `Reshape(shape, operand)`.
    #[track_caller]
    pub fn reshape_to(&self, shape: impl Into<Shape>) -> XlaOp {
        let shape = check!(self.builder, array(shape)).without_layout();
        self.builder.apply(Reshape { shape }, &[self])
    }

    /// Reshape to sizes given at run time, one scalar for each dimension, within the bounds of
    /// `shape`. Errors: the rules of `dynamic-reshape`. Source: XLA's `DynamicReshape`.
    #[track_caller]
    pub fn dynamic_reshape(&self, sizes: &[impl AsRef<XlaOp>], shape: impl Into<Shape>) -> XlaOp {
        let shape = check!(self.builder, array(shape)).without_layout();
        let mut operands = vec![self];
        operands.extend(refs(sizes));
        self.builder.apply(DynamicReshape { shape }, &operands)
    }

    /// Replaces consecutive dimensions by one, as large as their product; one dimension or none
    /// stays as it is.
    ///
    /// Shapes: `T[4,2,3]` with dimensions `[0,1]` to `T[8,3]`. Errors: `builder.C4` unless
    /// `dimensions` are consecutive and ascending. Source: E1–E4 "Collapse".
    #[track_caller]
    pub fn collapse(&self, dimensions: &[usize]) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_below("dimensions to collapse", dimensions, operand.rank()));
        let (Some(&first), Some(&last)) = (dimensions.first(), dimensions.last()) else {
            return self.clone();
        };
        if !dimensions.iter().copied().eq(first..=last) {
            let detail =
                format!("dimensions to collapse must be consecutive, found {dimensions:?}");
            return self.builder.report_error(Error::rule("builder.C4", detail));
        }
        if first == last {
            return self.clone();
        }
        let dims = operand.dims();
        // The product fits: the operand's shape has been checked.
        let collapsed = dims[first..=last].iter().product();
        let sizes = [&dims[..first], &[collapsed], &dims[last + 1..]].concat();
        self.reshape(&sizes)
    }

    /// Reorders dimensions: dimension `i` of the result is dimension `permutation[i]` of the
    /// operand.
    ///
    /// Errors: the rules of `transpose`. Source: E1–E4 "Transpose", whose signature lacks the
    /// permutation.
    #[track_caller]
    pub fn transpose(&self, permutation: &[usize]) -> XlaOp {
        self.builder.apply(Transpose { permutation: permutation.to_vec() }, &[self])
    }

    /// Reverses the order of elements along dimensions: index `i` becomes `N - 1 - i`.
    ///
    /// Shapes: the operand's. Errors: the rules of `reverse`. Source: E1–E4 "Rev".
    #[track_caller]
    pub fn rev(&self, dimensions: &[usize]) -> XlaOp {
        self.builder.apply(Reverse { dimensions: dimensions.to_vec() }, &[self])
    }

    /// The elements in a box at regular distances; no strides stand for ones.
    ///
    /// Shapes: `T[D]` to `T[S]` where `S = ceil((limit - start) / stride)`. Errors: the rules of
    /// `slice`. Source: E4 "Slice(operand, start_indices, limit_indices, strides)"; for E1–E3 see
    /// [`XlaOp::slice_unit_stride`].
    #[track_caller]
    pub fn slice(&self, starts: &[usize], limits: &[usize], strides: &[usize]) -> XlaOp {
        let ones = vec![1; starts.len()];
        let strides = if strides.is_empty() { &ones } else { strides };
        let op =
            Slice { starts: starts.to_vec(), limits: limits.to_vec(), strides: strides.to_vec() };
        self.builder.apply(op, &[self])
    }

    /// The elements of a range of one dimension. Errors: the rules of `slice`, `builder.C4`.
    /// Source: XLA's `SliceInDim`.
    #[track_caller]
    pub fn slice_in_dim(
        &self,
        start: usize,
        limit: usize,
        stride: usize,
        dimension: usize,
    ) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_below("slice", &[dimension], operand.rank()));
        let mut starts = vec![0; operand.rank()];
        let mut limits = operand.dims().to_vec();
        let mut strides = vec![1; operand.rank()];
        (starts[dimension], limits[dimension], strides[dimension]) = (start, limit, stride);
        self.slice(&starts, &limits, &strides)
    }

    /// A box of fixed sizes at a place given at run time, moved to lie inside if it does not.
    ///
    /// Shapes: `T[D]`, an integer scalar for each dimension, result `T[sizes]`. Errors: the rules
    /// of `dynamic-slice`. Source: E4 "DynamicSlice"; for a vector of indices (E1–E3) see
    /// [`XlaOp::dynamic_slice_vector`].
    #[track_caller]
    pub fn dynamic_slice(&self, starts: &[impl AsRef<XlaOp>], sizes: &[usize]) -> XlaOp {
        let mut operands = vec![self];
        operands.extend(refs(starts));
        self.builder.apply(DynamicSlice { sizes: sizes.to_vec() }, &operands)
    }

    /// The array with a box of it replaced by `update`, at a place given at run time, moved to lie
    /// inside if it does not.
    ///
    /// Shapes: `T[D], T[U]`, an integer scalar for each dimension, result `T[D]`. Errors: the rules
    /// of `dynamic-update-slice`. Source: E4 "DynamicUpdateSlice"; for a vector of indices (E1–E3)
    /// see [`XlaOp::dynamic_update_slice_vector`].
    #[track_caller]
    pub fn dynamic_update_slice(
        &self,
        update: impl AsRef<XlaOp>,
        starts: &[impl AsRef<XlaOp>],
    ) -> XlaOp {
        let mut operands = vec![self, update.as_ref()];
        operands.extend(refs(starts));
        self.builder.apply(DynamicUpdateSlice, &operands)
    }

    /// Extends each dimension between its elements and then at its edges, filling in `fill`;
    /// negative amounts at edges crop.
    ///
    /// Shapes: `T[d…], T[]`, result `T[r…]` where `r = low + d + max(d - 1, 0) * interior + high`.
    /// Errors: the rules of `pad`, `builder.C6`. Source: E1–E4 "Pad".
    ///
    /// ```
    /// # use helio_ir::{ElementType::S32, Shape, builder::XlaBuilder, ops::PadDim};
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::array(S32, [4])?, "x");
    /// let y = x.pad(9, &[PadDim { low: 1, high: -2, interior: 0 }]);
    /// assert_eq!(y.shape()?.to_string(), "s32[3]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, fill: impl Operand, dims: &[PadDim]) -> XlaOp {
        let fill = fill.into_op(self);
        self.builder.apply(Pad { dims: dims.to_vec() }, &[self, &fill])
    }

    /// [`XlaOp::pad`] of one dimension at its edges. Errors: the rules of `pad`, `builder.C4`.
    /// Source: XLA's `PadInDim`.
    #[track_caller]
    pub fn pad_in_dim(&self, fill: impl Operand, dimension: usize, low: i64, high: i64) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_below("pad", &[dimension], operand.rank()));
        let mut dims = vec![PadDim::default(); operand.rank()];
        dims[dimension] = PadDim { low, high, interior: 0 };
        self.pad(fill, &dims)
    }

    /// An element of a tuple. Errors: the rules of `get-tuple-element`. Source: E1–E4
    /// "GetTupleElement".
    #[track_caller]
    pub fn get_tuple_element(&self, index: usize) -> XlaOp {
        self.builder.apply(GetTupleElement { index }, &[self])
    }

    /// The value itself. Source: XLA's `Copy`.
    #[track_caller]
    pub fn copy(&self) -> XlaOp {
        self.builder.apply(Copy, &[self])
    }

    /// The same bytes under another shape; what XLA's layout passes leave behind. Errors: the rules
    /// of `bitcast`. Source: the opcode `bitcast`, which no edition documents.
    #[track_caller]
    pub fn bitcast(&self, shape: impl Into<Shape>) -> XlaOp {
        let shape = check!(self.builder, array(shape)).without_layout();
        self.builder.apply(Bitcast { shape }, &[self])
    }

    /// The size of a dimension at run time, `s32[]`. Errors: the rules of `get-dimension-size`.
    /// Source: E4 "GetDimensionSize".
    #[track_caller]
    pub fn get_dimension_size(&self, dimension: usize) -> XlaOp {
        self.builder.apply(GetDimensionSize { dimension }, &[self])
    }

    /// The array with a dimension's size at run time set to `size`, an `s32` scalar; elements stay,
    /// those beyond the size are ignored by reductions.
    ///
    /// Shapes: `T[D]` to the same with dimension `<=N`. Errors: the rules of `set-dimension-size`.
    /// Source: E4 "SetDimensionSize".
    #[track_caller]
    pub fn set_dimension_size(&self, size: impl AsRef<XlaOp>, dimension: usize) -> XlaOp {
        self.builder.apply(SetDimensionSize { dimension }, &[self, size.as_ref()])
    }

    /// The array with a dimension as large as its bound; what the new elements hold is unspecified.
    /// Other bounded dimensions keep their sizes at run time.
    ///
    /// Lowered to `bitcast`, as HLO has no operation that takes a bound away; then to
    /// `set-dimension-size` of each other bounded dimension. Errors: `builder.C4`. Source: XLA's
    /// `RemoveDynamicDimension`.
    #[track_caller]
    pub fn remove_dynamic_dimension(&self, dimension: usize) -> XlaOp {
        let operand = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_bounds_known(&operand));
        check!(self.builder, ensure_below("dimension", &[dimension], operand.rank()));
        if operand.kinds()[dimension] == DimKind::Static {
            return self.clone();
        }
        let whole = check!(self.builder, ArrayShape::new(operand.element(), operand.dims()));
        let mut result = self.bitcast(whole);
        for (d, kind) in operand.kinds().iter().enumerate() {
            if d != dimension && *kind == DimKind::Bounded {
                result = result.set_dimension_size(self.get_dimension_size(d), d);
            }
        }
        result
    }
}

impl XlaBuilder {
    /// Joins arrays along a dimension.
    ///
    /// Shapes: `T[…, a, …], T[…, b, …] …` to `T[…, a + b + …, …]`; one operand or more. Errors: the
    /// rules of `concatenate`. Source: E1–E4 "Concatenate", also called `Concat`.
    #[track_caller]
    pub fn concat_in_dim(&self, operands: &[impl AsRef<XlaOp>], dimension: usize) -> XlaOp {
        self.apply(Concatenate { dimension }, &refs(operands))
    }

    /// A tuple. Source: E1–E4 "Tuple".
    #[track_caller]
    pub fn tuple(&self, elements: &[impl AsRef<XlaOp>]) -> XlaOp {
        self.apply(Tuple, &refs(elements))
    }
}

impl XlaOp {
    /// A vector of indices as scalars, one for each dimension of an array of this rank.
    #[track_caller]
    pub(super) fn split_vector(&self, rank: usize) -> crate::Result<Vec<XlaOp>> {
        let vector = self.array_shape()?;
        crate::ensure!(
            vector.rank() == 1,
            "builder.C5",
            "indices must be a vector, found {vector}"
        );
        ensure_length("vector of indices", vector.dims()[0], rank)?;
        let mut scalars = Vec::with_capacity(rank);
        for d in 0..rank {
            scalars.push(self.slice(&[d], &[d + 1], &[]).reshape(&[]));
        }
        Ok(scalars)
    }
}
