//! Interface variants of older editions, made of what there is today.

use super::{Operand, XlaBuilder, XlaComputation, XlaOp, array, check, refs};
use crate::ops::{CollectiveAttrs, Direction, GatherDims, ReplicaGroups};
use crate::{ArrayShape, BinaryOp, ElementType, Error, Result, Shape};

/// The dimension numbers of a gather under their names in E3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyGatherDims {
    /// Today's `offset_dims`.
    pub output_window_dims: Vec<usize>,
    /// Today's `collapsed_slice_dims`.
    pub elided_window_dims: Vec<usize>,
    /// Today's `start_index_map`.
    pub gather_dims_to_operand_dims: Vec<usize>,
    /// The dimension of the indices that holds index vectors.
    pub index_vector_dim: usize,
}

impl From<LegacyGatherDims> for GatherDims {
    fn from(dims: LegacyGatherDims) -> Self {
        GatherDims {
            offset_dims: dims.output_window_dims,
            collapsed_slice_dims: dims.elided_window_dims,
            start_index_map: dims.gather_dims_to_operand_dims,
            index_vector_dim: dims.index_vector_dim,
            ..GatherDims::default()
        }
    }
}

impl XlaOp {
    /// Collapses the array with its dimensions in the order of `dimensions`, the first varying
    /// slowest, and reads it under other sizes: a transpose, then a reshape.
    ///
    /// Errors: the rules of `transpose` and `reshape`. Source: E1–E3 "Reshape(operand, dimensions,
    /// new_sizes)".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::XlaBuilder};
    /// let b = XlaBuilder::new("b");
    /// let v = b.parameter(0, Shape::array(F32, [4, 2, 3])?, "v");
    /// let v021_262 = v.reshape_with_dimensions(&[1, 2, 0], &[2, 6, 2]);
    /// assert_eq!(v021_262.shape()?.to_string(), "f32[2,6,2]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape_with_dimensions(&self, dimensions: &[usize], new_sizes: &[usize]) -> XlaOp {
        let in_order = dimensions.iter().copied().eq(0..dimensions.len());
        let rank = check!(self.builder, self.array_shape()).rank();
        match in_order && dimensions.len() == rank {
            true => self.reshape(new_sizes),
            false => self.transpose(dimensions).reshape(new_sizes),
        }
    }

    /// A box with unit strides; limits must be above starts.
    ///
    /// Errors: the rules of `slice`, `builder.C4`. Source: E1–E3 "Slice(operand, start_indices,
    /// limit_indices)".
    #[track_caller]
    pub fn slice_unit_stride(&self, starts: &[usize], limits: &[usize]) -> XlaOp {
        let empty = starts.iter().zip(limits).position(|(start, limit)| limit <= start);
        if let Some(d) = empty {
            let detail =
                format!("dimension {d}: limit {} is not above start {}", limits[d], starts[d]);
            return self.builder.report_error(Error::rule("builder.C4", detail));
        }
        self.slice(starts, limits, &[])
    }

    /// [`XlaOp::dynamic_slice`] at the place that a vector of indices gives, cut into scalars.
    ///
    /// Shapes: `T[D], I[rank]`, result `T[sizes]`. Out of range, the place is moved to lie inside,
    /// as in E4; older editions took indices modulo sizes or left it open. Errors: `builder.C4`,
    /// `builder.C5`, the rules of `dynamic-slice`. Source: E1–E3 "DynamicSlice".
    #[track_caller]
    pub fn dynamic_slice_vector(&self, starts: impl AsRef<XlaOp>, sizes: &[usize]) -> XlaOp {
        let rank = check!(self.builder, self.array_shape()).rank();
        let starts = check!(self.builder, starts.as_ref().split_vector(rank));
        self.dynamic_slice(&starts, sizes)
    }

    /// [`XlaOp::dynamic_update_slice`] at the place that a vector of indices gives, cut into
    /// scalars. Shapes: `T[D], T[U], I[rank]`, result `T[D]`. Out of range and errors: as for
    /// [`XlaOp::dynamic_slice_vector`]. Source: E1–E3 "DynamicUpdateSlice".
    #[track_caller]
    pub fn dynamic_update_slice_vector(
        &self,
        update: impl AsRef<XlaOp>,
        starts: impl AsRef<XlaOp>,
    ) -> XlaOp {
        let rank = check!(self.builder, self.array_shape()).rank();
        let starts = check!(self.builder, starts.as_ref().split_vector(rank));
        self.dynamic_update_slice(update, &starts)
    }

    /// Sorts along the last dimension, ascending, floats by their total order. Errors: the rules of
    /// `sort` and `compare`, `builder.C5` (a scalar). Source: E1–E3 "Sort(operand)".
    #[track_caller]
    pub fn sort(&self) -> XlaOp {
        let element = check!(self.builder, self.array_shape()).element();
        let less = check!(self.builder, self.builder.scalar_compare(Direction::Lt, element));
        self.sort_by(&less, None, false)
    }

    /// [`XlaOp::and`] of `pred`s only. Errors: `builder.C5`. Source: E1–E3 "LogicalAnd".
    #[track_caller]
    pub fn logical_and(&self, rhs: impl Operand) -> XlaOp {
        check!(self.builder, self.ensure_pred());
        let rhs = rhs.into_op(self);
        check!(self.builder, rhs.ensure_pred());
        self.and(rhs)
    }

    /// [`XlaOp::or`] of `pred`s only. Errors: `builder.C5`. Source: E1–E3 "LogicalOr".
    #[track_caller]
    pub fn logical_or(&self, rhs: impl Operand) -> XlaOp {
        check!(self.builder, self.ensure_pred());
        let rhs = rhs.into_op(self);
        check!(self.builder, rhs.ensure_pred());
        self.or(rhs)
    }

    /// [`XlaOp::not`] of a `pred` only. Errors: `builder.C5`. Source: E1–E3 "LogicalNot".
    #[track_caller]
    pub fn logical_not(&self) -> XlaOp {
        check!(self.builder, self.ensure_pred());
        self.not()
    }

    fn ensure_pred(&self) -> Result<()> {
        let shape = self.array_shape()?;
        crate::ensure!(shape.element().is_pred(), "builder.C5", "pred is needed, found {shape}");
        Ok(())
    }

    /// [`XlaOp::gather`] under the names of E3: `window_bounds` are today's `slice_sizes`.
    ///
    /// Errors: the rules of `gather`. Source: E3 "gather(operand, gather_indices,
    /// output_window_dims, elided_window_dims, window_bounds, gather_dims_to_operand_dims)".
    #[track_caller]
    pub fn gather_legacy(
        &self,
        gather_indices: impl AsRef<XlaOp>,
        dims: LegacyGatherDims,
        window_bounds: &[usize],
    ) -> XlaOp {
        self.gather(gather_indices, dims.into(), window_bounds, false)
    }

    /// The sum over all replicas of each group; no groups stand for one of all. `pred` takes "or".
    ///
    /// Shapes: the operand's, an array or a tuple of arrays of one type. Errors: the rules of
    /// `all-reduce`. Source: E1–E4 "CrossReplicaSum", in E4 defined as AllReduce with add.
    #[track_caller]
    pub fn cross_replica_sum(&self, replica_groups: ReplicaGroups) -> XlaOp {
        let shape = check!(self.builder, self.shape());
        let element = match shape.leaves().first().copied() {
            Some(Shape::Array(array)) => Ok(array.element()),
            _ => Err(Error::rule("builder.C5", format!("arrays are needed, found {shape}"))),
        };
        let element = check!(self.builder, element);
        let op = if element.is_pred() { BinaryOp::Or } else { BinaryOp::Add };
        let sum = check!(self.builder, self.builder.scalar_binary(op, element));
        self.all_reduce(&sum, &CollectiveAttrs { replica_groups, ..CollectiveAttrs::default() })
    }
}

impl XlaBuilder {
    /// Ones with probability `mean`, else zeros: a uniform number less than the mean, as `u32`.
    ///
    /// Shapes: `mean: f32[]`, result `shape`, which is of `u32`. Errors: `builder.C5`. Source:
    /// E1–E2 "RngBernoulli".
    #[track_caller]
    pub fn rng_bernoulli(&self, mean: impl AsRef<XlaOp>, shape: impl Into<Shape>) -> XlaOp {
        let (mean, shape) = (mean.as_ref(), check!(self, array(shape)));
        let mean_shape = check!(self, self.shape(mean).and_then(array));
        if !mean_shape.same(&ArrayShape::scalar(ElementType::F32))
            || shape.element() != ElementType::U32
        {
            let detail = format!(
                "a mean of f32[] and a shape of u32 are needed, found {mean_shape} and {shape}"
            );
            return self.report_error(Error::rule("builder.C5", detail));
        }
        let draws = check!(self, shape.with_element(ElementType::F32));
        let (zero, one) = (self.constant_r0(0f32), self.constant_r0(1f32));
        self.rng_uniform(zero, one, draws).lt(mean).convert_element_type(ElementType::U32)
    }

    /// Applies a computation to each element of `operands` and, as further arguments, to the whole
    /// of each of `static_operands`.
    ///
    /// Shapes: `N` arrays `T_i[D]` and `M` values of any shape; the computation takes `T_i[]` and
    /// those, and gives `S[]`; the result is `S[D]`. HLO's `map` takes elements only: scalars among
    /// the static operands become arrays of equal elements; with any other, this is a loop over all
    /// elements. Errors: the rules of `map`, `call` and `while`. Source: E1–E3 "Map(operands,
    /// computation, static_operands)".
    #[track_caller]
    pub fn map_with_static_operands(
        &self,
        operands: &[impl AsRef<XlaOp>],
        computation: &XlaComputation,
        static_operands: &[impl AsRef<XlaOp>],
    ) -> XlaOp {
        let (operands, statics) = (refs(operands), refs(static_operands));
        let shapes: Result<Vec<Shape>> = statics.iter().map(|op| self.shape(*op)).collect();
        let shapes = check!(self, shapes);
        let scalars = shapes.iter().all(|s| s.as_array().is_some_and(ArrayShape::is_scalar));
        let Some(&first) = operands.first() else {
            let detail = "map needs 1 operand or more";
            return self.report_error(Error::rule("operands.C1", detail));
        };
        let target = check!(self, first.array_shape());
        if !scalars {
            return self.map_by_loop(&operands, computation, &statics);
        }
        let mut all: Vec<XlaOp> = operands.into_iter().cloned().collect();
        for operand in statics {
            all.push(operand.scalar_to(&target));
        }
        let dimensions: Vec<usize> = (0..target.rank()).collect();
        self.map(&all, computation, &dimensions)
    }

    /// A loop over all elements in row-major order. Its state: the next element's number, the
    /// results so far, the flattened operands, the static operands.
    #[track_caller]
    fn map_by_loop(
        &self,
        operands: &[&XlaOp],
        computation: &XlaComputation,
        statics: &[&XlaOp],
    ) -> XlaOp {
        let target = check!(self, operands[0].array_shape());
        if !target.is_static() {
            let detail = format!("a map of {target} with static operands that are not scalars");
            return self.report_error(Error::unimplemented(detail));
        }
        let count = target.element_count();
        let result = check!(self, array(computation.program_shape().result));
        if !result.is_scalar() {
            let detail = format!("map needs a computation to a scalar, found {result}");
            return self.report_error(Error::rule("builder.C5", detail));
        }
        // Of no elements, the loop runs for none; but what it would do must be right all the same.
        let length = count.max(1);
        let mut state = vec![self.constant_r0(0i64)];
        state.push(self.zero_of_any(result.element()).broadcast(&[length]));
        for operand in operands {
            let shape = check!(self, operand.array_shape());
            if shape.dims() != target.dims() {
                let detail = format!("map of {target} and {shape}, which differ in dimensions");
                return self.report_error(Error::rule("builder.C3", detail));
            }
            let fill = self.zero_of_any(shape.element());
            let missing = (length - count) as i64;
            state.push(operand.reshape(&[count]).pad_in_dim(fill, 0, 0, missing));
        }
        state.extend(statics.iter().map(|&op| op.clone()));
        let init = self.tuple(&state);
        let shape = check!(self, init.shape());
        let body = check!(self, map_body(shape.clone(), computation, operands.len()));
        let condition = check!(self, map_condition(shape, count));
        let last = init.while_loop(&condition, &body);
        last.get_tuple_element(1).slice(&[0], &[count], &[]).reshape(target.dims())
    }

    /// All bits zero: a value of any type, also of one without zero.
    #[track_caller]
    fn zero_of_any(&self, element: ElementType) -> XlaOp {
        let zeros = crate::Array::zeros(ArrayShape::scalar(element));
        self.constant_literal(check!(self, zeros))
    }
}

#[track_caller]
fn map_condition(state: Shape, count: usize) -> Result<XlaComputation> {
    let b = XlaBuilder::new("map_condition");
    let number = b.parameter(0, state, "state").get_tuple_element(0);
    let count = i64::try_from(count).map_err(|_| Error::exhausted("more than 2^63 elements"))?;
    b.build_with_root(number.lt(b.constant_r0(count)))
}

#[track_caller]
fn map_body(state: Shape, computation: &XlaComputation, operands: usize) -> Result<XlaComputation> {
    let b = XlaBuilder::new("map_body");
    let elements = state.as_tuple().map_or(0, <[Shape]>::len);
    let state = b.parameter(0, state, "state");
    let mut parts = Vec::with_capacity(elements);
    for index in 0..elements {
        parts.push(state.get_tuple_element(index));
    }
    let number = parts[0].clone();
    let mut args = Vec::with_capacity(elements);
    for (i, part) in parts.iter().enumerate().skip(2) {
        let is_operand = i < 2 + operands;
        args.push(match is_operand {
            true => part.dynamic_slice(&[&number], &[1]).reshape(&[]),
            false => part.clone(),
        });
    }
    let element = b.call(computation, &args).reshape(&[1]);
    parts[1] = parts[1].dynamic_update_slice(element, &[&number]);
    parts[0] = number + 1;
    b.build_with_root(b.tuple(&parts))
}
