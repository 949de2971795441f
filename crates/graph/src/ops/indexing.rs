//! Elements at places that tensors of integers say: gathers, slices at run time.
//!
//! Negative indices count from the end, as in NumPy. What lies outside of an axis cannot be an error
//! of a compiled program: it is moved to the nearest element where elements are read, and left out
//! where they are written, as in JAX.

use helio::builder::XlaOp;
use helio::ir::ops::GatherDims;
use helio::{ElementType, Error, Result};

use crate::graph::TensorType;
use crate::{Axis, Dim, Operand, Shape, Tensor};

/// A row of `table` for each of `ids`: `table` with `ids` of shape `[…]` gives `[…, features]`.
///
/// Ids outside are moved to the nearest row. Errors: `embedding.C1` unless the table is a matrix;
/// and as for [`Tensor::take`]. Source: JAX's `Embed` (flax).
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let table = g.constant([[1, 2], [3, 4]]);
/// assert_eq!(embedding(table, g.constant([1, 0])).eval()?, [[3, 4], [1, 2]].into());
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn embedding(table: impl AsRef<Tensor>, ids: impl Operand) -> Tensor {
    let table = table.as_ref();
    table.call("embedding", |ty| {
        if ty.shape.rank() != 2 {
            let detail = format!("the table must be a matrix, is {ty}");
            return Err(Error::rule("embedding.C1", detail));
        }
        Ok(table.take(ids, 0))
    })
}

impl Tensor {
    /// Elements at `indices` along an axis, which is replaced by the shape of the indices.
    ///
    /// Shapes: `[a…, n, b…]`, indices `[i…]`, result `[a…, i…, b…]`. Indices outside are moved to the
    /// nearest element. Errors: `index.C1` unless the indices are integers, `index.C2` for an axis
    /// without elements, `shape.C1`. Source: NumPy's `take`, with mode "clip" but for negative
    /// indices, which count from the end.
    ///
    /// ```
    /// # use helio_graph::{Array, ElementType, Graph};
    /// # let g = Graph::new("last_and_first");
    /// let x = g.input("x", ElementType::F32, ("n",));
    /// let program = g.compile(x.take(Array::new([2], vec![-1i32, 0])?, 0))?;
    /// let result = program.run(&[Array::new([3], vec![5f32, 6.0, 7.0])?])?;
    /// assert_eq!(result[0].as_slice::<f32>(), Some(&[7.0, 5.0][..]));
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, indices: impl Operand, axis: impl Into<Axis>) -> Tensor {
        self.call("take", |ty| {
            let indices = self.indices(indices)?;
            let (axis, found) = (ty.shape.axis(axis)?, indices.ty()?);
            let dim = ty.shape[axis].clone();
            let rank = found.shape.rank();
            let shape = taken(&ty.shape, axis, &found.shape);
            ensure_elements(&dim, &shape)?;
            let offset_dims = (0..shape.rank()).filter(|d| !(axis..axis + rank).contains(d));
            let dims = GatherDims {
                offset_dims: offset_dims.collect(),
                collapsed_slice_dims: vec![axis],
                start_index_map: vec![axis],
                index_vector_dim: rank,
                ..GatherDims::default()
            };
            let (from, ty) = (ty.shape.clone(), TensorType::new(ty.dtype, &shape));
            self.graph().emit(&[self, &indices], ty, move |emit, x| {
                let mut sizes = emit.sizes(&from)?;
                let size = sizes[axis];
                if size == 0 {
                    return nothing(&x[0], &emit.sizes(&shape)?);
                }
                sizes[axis] = 1;
                let indices = from_start(&x[1], found.dtype, size);
                Ok(x[0].gather(&indices, dims.clone(), &sizes, false))
            })
        })
    }

    /// The same with `value` for indices outside. It is promoted with the tensor. Errors: as for
    /// [`Tensor::take`], and `promotion.C1`, `promotion.C2`. Source: JAX's `take` with mode "fill",
    /// but for negative indices, which count from the end.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([10, 20]);
    /// assert_eq!(x.take_or(g.constant([1, 5]), 0, -1).eval()?, [20, -1].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn take_or(
        &self,
        indices: impl Operand,
        axis: impl Into<Axis>,
        value: impl Operand,
    ) -> Tensor {
        self.call("take_or", |ty| {
            let indices = self.indices(indices)?;
            let axis = ty.shape.axis(axis)?;
            let (dim, found) = (ty.shape[axis].clone(), indices.ty()?);
            let inside = TensorType::new(ElementType::Pred, &found.shape);
            let inside = self.graph().emit(&[&indices], inside, move |emit, x| {
                let size = emit.size(&dim)?;
                let index = from_start(&x[0], found.dtype, size);
                Ok(index.ge(0).and(index.lt(size as i64)))
            })?;
            let mut aligned = inside.shape()?.dims().to_vec();
            aligned.extend(vec![Dim::from(1); ty.shape.rank() - axis - 1]);
            Ok(self.take(indices, axis).where_(inside.reshape(aligned), value))
        })
    }

    /// Elements at `indices` along an axis, for each place of the other axes its own.
    ///
    /// The indices have as many axes as the tensor, and all but `axis` are broadcast; the result has
    /// the shape of the indices. Indices outside are moved to the nearest element. Errors:
    /// `index.C3` for another number of axes, `broadcast.C1`; and as for [`Tensor::take`]. Source:
    /// NumPy's `take_along_axis`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([30, 10, 20]);
    /// assert_eq!(x.take_along_axis(x.argsort(0), 0).eval()?, [10, 20, 30].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_axis(&self, indices: impl Operand, axis: impl Into<Axis>) -> Tensor {
        self.call("take_along_axis", |ty| {
            let indices = self.indices(indices)?;
            let (axis, found) = (ty.shape.axis(axis)?, indices.ty()?);
            if found.shape.rank() != ty.shape.rank() {
                let detail = format!("the indices {found} must have as many axes as {ty}");
                return Err(Error::rule("index.C3", detail));
            }
            let dim = &ty.shape[axis];
            let common = ty.shape.with(axis, 1).broadcast(&found.shape.with(axis, 1))?;
            let from = common.with(axis, dim);
            let shape = common.with(axis, &found.shape[axis]);
            ensure_elements(dim, &shape)?;
            let (x, indices) = (self.broadcast_to(&from), indices.broadcast_to(&shape));
            let others: Vec<usize> = (0..shape.rank()).filter(|&d| d != axis).collect();
            let dims = GatherDims {
                collapsed_slice_dims: vec![axis],
                start_index_map: vec![axis],
                operand_batching_dims: others.clone(),
                start_indices_batching_dims: others,
                index_vector_dim: shape.rank(),
                ..GatherDims::default()
            };
            let ty = TensorType::new(ty.dtype, &shape);
            self.graph().emit(&[&x, &indices], ty, move |emit, x| {
                let size = emit.size(&from[axis])?;
                if size == 0 {
                    return nothing(&x[0], &emit.sizes(&shape)?);
                }
                let indices = from_start(&x[1], found.dtype, size);
                Ok(x[0].gather(&indices, dims.clone(), &vec![1; shape.rank()], false))
            })
        })
    }

    /// What index vectors point to: the last axis of `indices`, of size `k`, has an index for each of
    /// the first `k` axes.
    ///
    /// Shapes: `[d0, …, d(k-1), b…]`, indices `[i…, k]`, result `[i…, b…]`. Indices outside are moved
    /// to the nearest element. Errors: `index.C4` unless `k` is known and at most the number of axes,
    /// `index.C1`, `index.C2`. Source: TensorFlow's `gather_nd`, NumPy's `x[tuple(indices)]`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.gather_nd(g.constant([[0, 1], [1, 0]])).eval()?, [2, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gather_nd(&self, indices: impl Operand) -> Tensor {
        self.call("gather_nd", |ty| {
            let indices = self.indices(indices)?;
            let found = indices.ty()?;
            let count = found.shape.last().and_then(Dim::size);
            let Some(count) = count.filter(|&count| count <= ty.shape.rank()) else {
                let detail = format!(
                    "the last axis of the indices {found} must have a size of at most {}, the \
                     number of axes of {ty}",
                    ty.shape.rank()
                );
                return Err(Error::rule("index.C4", detail));
            };
            let rank = found.shape.rank() - 1;
            let shape: Shape =
                found.shape[..rank].iter().chain(&ty.shape[count..]).cloned().collect();
            ty.shape[..count].iter().try_for_each(|dim| ensure_elements(dim, &shape))?;
            let dims = GatherDims {
                offset_dims: (rank..shape.rank()).collect(),
                collapsed_slice_dims: (0..count).collect(),
                start_index_map: (0..count).collect(),
                index_vector_dim: rank,
                ..GatherDims::default()
            };
            let (from, ty) = (ty.shape.clone(), TensorType::new(ty.dtype, &shape));
            self.graph().emit(&[self, &indices], ty, move |emit, x| {
                let mut sizes = emit.sizes(&from)?;
                if sizes[..count].contains(&0) {
                    return nothing(&x[0], &emit.sizes(&shape)?);
                }
                let ends: Vec<i64> = sizes[..count].iter().map(|&size| size as i64).collect();
                let index = x[1].convert_element_type(ElementType::S64);
                let shape = index.array_shape()?;
                let ends = emit.builder.constant_r1(&ends);
                let ends = ends.broadcast_in_dim(shape.dims(), &[rank]);
                let index = index.lt(0).select(index.add(&ends), &index);
                sizes[..count].fill(1);
                Ok(x[0].gather(&index, dims.clone(), &sizes, false))
            })
        })
    }

    /// For each integer a row in which its place is 1 and all else 0, along a new last axis; rows of
    /// integers outside, also negative ones, are 0. Errors: `index.C1`, `dim.C1`. Source: JAX's
    /// `one_hot`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([2, 0]);
    /// assert_eq!(x.one_hot(3, S32).eval()?, [[0, 0, 1], [1, 0, 0]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn one_hot(&self, classes: impl Into<Dim>, dtype: ElementType) -> Tensor {
        self.call("one_hot", |ty| {
            ensure_index(ty.dtype)?;
            let classes = self.graph().arange(ElementType::S64, classes);
            let ids = self.cast(ElementType::S64).expand_dims(-1);
            Ok(ids.equal(classes).cast(dtype))
        })
    }

    /// A box of these sizes that begins at `starts`, an integer scalar for each axis. Negative starts
    /// count from the end; a box that is not inside is moved there.
    ///
    /// Errors: `dynamic_slice.C1` for another number of starts or sizes, `dynamic_slice.C2` unless
    /// starts are scalars, `dynamic_slice.C3` for a box that is too large; `index.C1`, `dim.C1`.
    /// Source: JAX's `lax.dynamic_slice`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([10, 20, 30]);
    /// assert_eq!(x.dynamic_slice(&[g.constant(1)], 2).eval()?, [20, 30].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_slice(&self, starts: &[impl AsRef<Tensor>], sizes: impl Into<Shape>) -> Tensor {
        self.call("dynamic_slice", |ty| {
            let sizes = sizes.into();
            ensure_box(&sizes, &ty.shape)?;
            let starts = self.starts(ty, starts)?;
            let mut operands = vec![self];
            operands.extend(&starts);
            let ty = TensorType::new(ty.dtype, &sizes);
            self.graph().emit(&operands, ty, move |emit, x| {
                Ok(x[0].dynamic_slice(&x[1..], &emit.sizes(&sizes)?))
            })
        })
    }

    /// `size` elements of one axis from `start` on, an integer scalar. Errors: as for
    /// [`Tensor::dynamic_slice`], and `shape.C1`. Source: JAX's `lax.dynamic_slice_in_dim`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([10, 20, 30]);
    /// assert_eq!(x.dynamic_slice_in_dim(1, 2, 0).eval()?, [20, 30].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_slice_in_dim(
        &self,
        start: impl Operand,
        size: impl Into<Dim>,
        axis: impl Into<Axis>,
    ) -> Tensor {
        self.call("dynamic_slice_in_dim", |ty| {
            let axis = ty.shape.axis(axis)?;
            let starts = self.starts_in_dim(ty, start, axis)?;
            Ok(self.dynamic_slice(&starts, ty.shape.with(axis, size)))
        })
    }

    /// The tensor with a box replaced by `update`, at `starts` as in [`Tensor::dynamic_slice`].
    /// Tensor and update are promoted. Errors: as there; `promotion.C1`. Source: JAX's
    /// `lax.dynamic_update_slice`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([10, 20, 30]);
    /// assert_eq!(x.dynamic_update_slice(g.constant([7]), &[g.constant(1)]).eval()?, [10, 7, 30].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_update_slice(
        &self,
        update: impl Operand,
        starts: &[impl AsRef<Tensor>],
    ) -> Tensor {
        self.call("dynamic_update_slice", |ty| {
            let (x, update, dtype) = self.meet_types(update)?;
            ensure_box(&update.shape()?, &ty.shape)?;
            let starts = self.starts(ty, starts)?;
            let mut operands = vec![&x, &update];
            operands.extend(&starts);
            let ty = TensorType::new(dtype, &ty.shape);
            let graph = self.graph();
            graph.emit(&operands, ty, |_, x| Ok(x[0].dynamic_update_slice(&x[1], &x[2..])))
        })
    }

    /// The tensor with elements of one axis replaced by `update` from `start` on, an integer scalar.
    /// Errors: as for [`Tensor::dynamic_update_slice`], and `shape.C1`. Source: JAX's
    /// `lax.dynamic_update_slice_in_dim`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([10, 20, 30]);
    /// assert_eq!(x.dynamic_update_slice_in_dim(g.constant([7]), 1, 0).eval()?, [10, 7, 30].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dynamic_update_slice_in_dim(
        &self,
        update: impl Operand,
        start: impl Operand,
        axis: impl Into<Axis>,
    ) -> Tensor {
        self.call("dynamic_update_slice_in_dim", |ty| {
            let starts = self.starts_in_dim(ty, start, ty.shape.axis(axis)?)?;
            Ok(self.dynamic_update_slice(update, &starts))
        })
    }

    fn starts_in_dim(
        &self,
        ty: &TensorType,
        start: impl Operand,
        axis: usize,
    ) -> Result<Vec<Tensor>> {
        let start = self.indices(start)?;
        let zero = self.graph().zeros(ElementType::S64, ());
        Ok((0..ty.shape.rank()).map(|d| if d == axis { &start } else { &zero }.clone()).collect())
    }

    /// Starts of boxes, counted from the start, in one type.
    fn starts(&self, ty: &TensorType, starts: &[impl AsRef<Tensor>]) -> Result<Vec<Tensor>> {
        if starts.len() != ty.shape.rank() {
            let found = starts.len();
            let detail = format!("{found} starts for {ty}; one for each axis is needed");
            return Err(Error::rule("dynamic_slice.C1", detail));
        }
        let start = |(dim, start): (&Dim, &Tensor)| {
            self.graph().operand(start)?;
            let found = start.ty()?;
            ensure_index(found.dtype)?;
            if found.shape.rank() != 0 {
                let detail = format!("starts must be scalars, found {found}");
                return Err(Error::rule("dynamic_slice.C2", detail));
            }
            let dim = dim.clone();
            let ty = TensorType::new(ElementType::S64, ());
            self.graph().emit(&[start], ty, move |emit, x| {
                Ok(from_start(&x[0], found.dtype, emit.size(&dim)?))
            })
        };
        ty.shape.iter().zip(starts.iter().map(AsRef::as_ref)).map(start).collect()
    }

    /// Integers for indexing; numbers become `s64`. Errors: `index.C1`, `promotion.C2`.
    pub(crate) fn indices(&self, indices: impl Operand) -> Result<Tensor> {
        let indices = crate::operand::resolve(indices, self.graph(), ElementType::S64)?;
        ensure_index(indices.dtype()?)?;
        Ok(indices)
    }
}

/// The shape with an axis replaced by several.
pub(crate) fn taken(shape: &Shape, axis: usize, indices: &Shape) -> Shape {
    shape[..axis].iter().chain(indices.iter()).chain(&shape[axis + 1..]).cloned().collect()
}

/// Indices into an axis of this size as `s64`, counted from its start.
pub(crate) fn from_start(indices: &XlaOp, dtype: ElementType, size: usize) -> XlaOp {
    if dtype == ElementType::U64 {
        // What does not fit is outside in any case, but must not become negative.
        let largest = indices.builder().constant_r0(i64::MAX as u64);
        return indices.min(largest).convert_element_type(ElementType::S64);
    }
    let indices = indices.convert_element_type(ElementType::S64);
    match dtype.is_signed_integer() {
        true => indices.lt(0).select(indices.add(size as i64), &indices),
        false => indices,
    }
}

/// What is read from an axis without elements. Errors: `index.C2` unless that is nothing.
fn nothing(x: &XlaOp, sizes: &[usize]) -> Result<XlaOp> {
    if !sizes.contains(&0) {
        let detail = "there is nothing to take from an axis that has no elements in this call";
        return Err(Error::rule("index.C2", detail));
    }
    Ok(x.builder().zero(x.array_shape()?.element()).broadcast(sizes))
}

/// Errors: `index.C2` for a dimension known to be 0, unless the result is known to be empty, too.
fn ensure_elements(dim: &Dim, result: &Shape) -> Result<()> {
    if dim.size() == Some(0) && !result.iter().any(|dim| dim.size() == Some(0)) {
        let detail = "there is nothing to take from an axis that has no elements";
        return Err(Error::rule("index.C2", detail));
    }
    Ok(())
}

/// Errors: `index.C1` unless it is an integer.
fn ensure_index(dtype: ElementType) -> Result<()> {
    if !dtype.is_integer() {
        let help = match dtype.is_pred() {
            true => "to choose elements by a condition, write where_",
            false => "convert them first, as in .cast(ElementType::S32)",
        };
        let detail = format!("needs integers, found {dtype}\n  help: {help}");
        return Err(Error::rule("index.C1", detail));
    }
    Ok(())
}

/// Errors: `dynamic_slice.C1`, `dynamic_slice.C3`, `dim.C1`.
fn ensure_box(sizes: &Shape, shape: &Shape) -> Result<()> {
    sizes.ensure_valid()?;
    if sizes.rank() != shape.rank() {
        let detail = format!("a box of {sizes} in {shape}; the ranks must be equal");
        return Err(Error::rule("dynamic_slice.C1", detail));
    }
    for (size, dim) in sizes.iter().zip(shape.iter()) {
        if let (Some(size), Some(dim)) = (size.size(), dim.size())
            && size > dim
        {
            let detail = format!("a box of {sizes} is too large for {shape}");
            return Err(Error::rule("dynamic_slice.C3", detail));
        }
    }
    Ok(())
}
