//! Exchange among replicas: programs that several devices run, each on its part of the data.

use helio::ir::ops::{CollectiveAttrs, ReplicaGroups};
use helio::ir::{BinaryOp, Error};
use helio::{ElementType, Result};

use crate::graph::TensorType;
use crate::ops::binary::ensure_type;
use crate::{Axis, Graph, Tensor};

/// Which of the replicas that run a program act together.
///
/// ```
/// use helio_graph::{ElementType, Graph, Replicas};
/// let g = Graph::new("step");
/// let x = g.input("gradient", ElementType::F32, [8]);
/// let mean = x.replica_mean(&Replicas::all(4)); // of what all four have
/// let pairs = x.replica_sum(&Replicas::groups([[0, 1], [2, 3]])); // of two each
/// assert_eq!(mean.shape()?, pairs.shape()?);
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicas {
    groups: Vec<Vec<usize>>,
}

impl Replicas {
    /// All replicas of a program that so many run.
    ///
    /// ```
    /// assert_eq!(helio_graph::Replicas::all(4).count(), 4);
    /// ```
    pub fn all(count: usize) -> Self {
        Replicas { groups: vec![(0..count).collect()] }
    }

    /// Groups of replicas, by number: each acts by itself, and each replica is in one.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let pairs = Replicas::groups([[0, 1], [2, 3]]);
    /// let sum = g.compile_with(g.replica_id().replica_sum(&pairs), &ProgramOptions::replicas(4)?)?;
    /// let results = sum.run_all(&[const { Vec::<Array>::new() }; 4], &Default::default())?;
    /// let sums = results.iter().map(|own| own[0].get([]).map(Number::to_f64));
    /// assert_eq!(sums.collect::<Vec<_>>(), [1.0, 1.0, 5.0, 5.0].map(Some));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn groups(groups: impl IntoIterator<Item = impl IntoIterator<Item = usize>>) -> Self {
        Replicas { groups: groups.into_iter().map(|group| group.into_iter().collect()).collect() }
    }

    /// How many replicas there are in all groups.
    ///
    /// ```
    /// assert_eq!(helio_graph::Replicas::groups([[0, 1], [2, 3]]).count(), 4);
    /// ```
    pub fn count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// How many replicas each group has. Errors: `replicas.C1` unless every replica from 0 on is in one
    /// group; `replicas.C2` unless the groups have one size.
    fn group_size(&self) -> Result<usize> {
        let mut numbers: Vec<usize> = self.groups.iter().flatten().copied().collect();
        numbers.sort_unstable();
        if numbers.is_empty() || numbers.iter().enumerate().any(|(i, &number)| i != number) {
            let detail = format!("groups {:?}: each replica from 0 on must be in one", self.groups);
            return Err(Error::rule("replicas.C1", detail));
        }
        let size = self.groups[0].len();
        if self.groups.iter().any(|group| group.len() != size) {
            let detail = format!("groups {:?}: all must have one size", self.groups);
            return Err(Error::rule("replicas.C2", detail));
        }
        Ok(size)
    }

    fn attrs(&self) -> CollectiveAttrs {
        let replica_groups = ReplicaGroups::List(self.groups.clone());
        CollectiveAttrs { replica_groups, ..CollectiveAttrs::default() }
    }
}

impl Graph {
    /// The number of the replica that runs the program, from 0: `u32[]`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let program = g.compile_with(g.replica_id(), &ProgramOptions::replicas(2)?)?;
    /// let results = program.run_all(&[Vec::<Array>::new(), vec![]], &Default::default())?;
    /// assert_eq!(results[1][0], 1u32.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_id(&self) -> Tensor {
        self.call("replica_id", || {
            let ty = TensorType::new(ElementType::U32, ());
            self.emit(&[], ty, |emit, _| Ok(emit.builder.replica_id()))
        })
    }
}

impl Tensor {
    /// The sum of what the replicas of a group have, for each of them, in the order of the group. Types
    /// narrower than `f32` are summed in `f32`. Errors: `elementwise.C1` for bools; `replicas.C1` and
    /// `replicas.C2`. Source: JAX's `lax.psum`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_sum(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [4f32, 6.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_sum(&self, replicas: &Replicas) -> Tensor {
        self.call("replica_sum", |ty| {
            ensure_type(ty.dtype, !ty.dtype.is_pred(), "numbers")?;
            self.wide(ty, |x, ty| x.replica_fold(ty, BinaryOp::Add, replicas))
        })
    }

    /// The mean of what the replicas of a group have. Errors: `elementwise.C1` unless floats or complex
    /// numbers; `replicas.C1` and `replicas.C2`. Source: JAX's `lax.pmean`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_mean(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [2f32, 3.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_mean(&self, replicas: &Replicas) -> Tensor {
        self.call("replica_mean", |ty| {
            let accepted = ty.dtype.is_float() || ty.dtype.is_complex();
            ensure_type(ty.dtype, accepted, "floats and complex numbers")?;
            let count = replicas.group_size()?;
            self.wide(ty, |x, ty| Ok(x.replica_fold(ty, BinaryOp::Add, replicas)? / count as f32))
        })
    }

    /// The largest of what the replicas of a group have, element by element; NaN if one is. Errors:
    /// `elementwise.C1` for complex numbers; `replicas.C1` and `replicas.C2`. Source: JAX's `lax.pmax`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_max(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [3f32, 4.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_max(&self, replicas: &Replicas) -> Tensor {
        self.call("replica_max", |ty| {
            ensure_type(ty.dtype, !ty.dtype.is_complex(), "real numbers and bools")?;
            self.replica_fold(ty, BinaryOp::Maximum, replicas)
        })
    }

    /// The smallest of what the replicas of a group have, element by element; NaN if one is. Errors: as
    /// for [`Tensor::replica_max`]. Source: JAX's `lax.pmin`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_min(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [1f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_min(&self, replicas: &Replicas) -> Tensor {
        self.call("replica_min", |ty| {
            ensure_type(ty.dtype, !ty.dtype.is_complex(), "real numbers and bools")?;
            self.replica_fold(ty, BinaryOp::Minimum, replicas)
        })
    }

    /// What the replicas of a group have, one after the other along an axis. Errors: `shape.C1`;
    /// `replicas.C1` and `replicas.C2`. Source: JAX's `lax.all_gather` with `tiled`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_concat(0, &Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [1f32, 2.0, 3.0, 4.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_concat(&self, axis: impl Into<Axis>, replicas: &Replicas) -> Tensor {
        self.call("replica_concat", |ty| {
            let (axis, count) = (ty.shape.axis(axis)?, replicas.group_size()?);
            let shape = ty.shape.with(axis, &ty.shape[axis] * count);
            let attrs = replicas.attrs();
            self.graph().emit(&[self], TensorType::new(ty.dtype, shape), move |_, x| {
                Ok(x[0].all_gather(axis, count, &attrs))
            })
        })
    }

    /// Of [`Tensor::replica_sum`], the part of this replica along an axis: its group's replicas get
    /// parts of one size in turn. Errors: as for it; `shape.C1`; in a call, if the axis has no
    /// such parts. Source: JAX's `lax.psum_scatter` with `tiled`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_sum_part(0, &Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [6f32].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_sum_part(&self, axis: impl Into<Axis>, replicas: &Replicas) -> Tensor {
        self.call("replica_sum_part", |ty| {
            ensure_type(ty.dtype, !ty.dtype.is_pred(), "numbers")?;
            let (axis, count) = (ty.shape.axis(axis)?, replicas.group_size()?);
            self.wide(ty, |x, ty| {
                let shape = ty.shape.with(axis, &ty.shape[axis] / count);
                let (attrs, dtype) = (replicas.attrs(), ty.dtype);
                x.graph().emit(&[x], TensorType::new(dtype, shape), move |emit, x| {
                    let add = emit.scalar(BinaryOp::Add, dtype)?;
                    Ok(x[0].reduce_scatter(&add, axis, count, &attrs))
                })
            })
        })
    }

    /// Cut along `split` into a part for each replica of the group; what the replicas have for this one,
    /// one after the other along `concat`. Errors: `shape.C1`; `replicas.C1` and `replicas.C2`; in a
    /// call, if the axis has no such parts. Source: JAX's `lax.all_to_all` with `tiled`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_transpose(0, 0, &Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [2f32, 4.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_transpose(
        &self,
        split: impl Into<Axis>,
        concat: impl Into<Axis>,
        replicas: &Replicas,
    ) -> Tensor {
        self.call("replica_transpose", |ty| {
            let (split, concat) = (ty.shape.axis(split)?, ty.shape.axis(concat)?);
            let count = replicas.group_size()?;
            let shape = ty.shape.with(split, &ty.shape[split] / count);
            let shape = shape.with(concat, &shape[concat] * count);
            let attrs = replicas.attrs();
            self.graph().emit(&[self], TensorType::new(ty.dtype, shape), move |_, x| {
                Ok(x[0].all_to_all(split, concat, count, &attrs))
            })
        })
    }

    /// What the replica has that sends to this one, by pairs of sources and targets; zeros if none
    /// does. Errors: if one sends or receives twice. Source:
    /// JAX's `lax.ppermute`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_permute([(0, 1), (1, 0)]), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [1f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_permute(&self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Tensor {
        self.call("replica_permute", |ty| {
            let pairs: Vec<(usize, usize)> = pairs.into_iter().collect();
            self.graph()
                .emit(&[self], ty.clone(), move |_, x| Ok(x[0].collective_permute(&pairs, None)))
        })
    }

    /// What the first replica of each group has. Errors: `replicas.C1` and `replicas.C2`. Source: XLA's
    /// `CollectiveBroadcast`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// let program = g.compile_with(x.replica_broadcast(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let arguments = [[1f32, 2.0], [3.0, 4.0]].map(|own| vec![Array::from(own)]);
    /// let results = program.run_all(&arguments, &Default::default())?;
    /// assert_eq!(results[1][0], [1f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn replica_broadcast(&self, replicas: &Replicas) -> Tensor {
        self.call("replica_broadcast", |ty| {
            replicas.group_size()?;
            let attrs = replicas.attrs();
            self.graph().emit(
                &[self],
                ty.clone(),
                move |_, x| Ok(x[0].collective_broadcast(&attrs)),
            )
        })
    }

    fn replica_fold(&self, ty: &TensorType, op: BinaryOp, replicas: &Replicas) -> Result<Tensor> {
        replicas.group_size()?;
        let (attrs, dtype) = (replicas.attrs(), ty.dtype);
        self.graph().emit(&[self], ty.clone(), move |emit, x| {
            Ok(x[0].all_reduce(&emit.scalar(op, dtype)?, &attrs))
        })
    }

    /// What `f` makes of the tensor in a type of at least 32 bits if it has floats, rounded once.
    fn wide(
        &self,
        ty: &TensorType,
        f: impl FnOnce(&Tensor, &TensorType) -> Result<Tensor>,
    ) -> Result<Tensor> {
        if !ty.dtype.is_float() || ty.dtype.bits() >= 32 {
            return f(self, ty);
        }
        let wide = self.cast(ElementType::F32);
        Ok(f(&wide, &TensorType::new(ElementType::F32, &ty.shape))?.cast(ty.dtype))
    }
}
