//! Pooling: the greatest element, or the mean, of each position of a window.

use helio::builder::WindowSpec;
use helio::ir::BinaryOp;
use helio::unstable::ir::with_methods;
use helio::{Error, Result};

use crate::graph::TensorType;
use crate::ops::binary::ensure_real;
use crate::ops::nonlinear::ensure_float;
use crate::ops::reduce::Start;
use crate::ops::window::{
    Amounts, Channels, Edges, WindowAxis, dilated, ensure_lists, number, spatial_axes,
};
use crate::{Dim, Shape, Tensor};

/// How a pooling window moves; lists have a number for each spatial axis, or are empty.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::Pool;
/// let x = g.constant([[[1f32, 4.0, 2.0, 3.0]]]);
/// let overlapping = Pool::default().with_strides([1]);
/// assert_eq!(x.max_pool(&[2], &overlapping).eval()?, [[[4f32, 4.0, 3.0]]].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pool {
    /// How far apart positions of the window are; as far as it is large unless given.
    pub strides: Vec<usize>,
    /// What is added around the operand: nothing that could be a maximum, zeros for an average.
    pub edges: Edges,
    /// How far apart the elements of the window are; 1 unless given.
    pub dilation: Vec<usize>,
    /// Where the channels are.
    pub channels: Channels,
    /// Whether an average is of the elements inside of the operand only.
    pub skip_edges: bool,
}

with_methods! { Pool {
    with_strides(strides: impl Into<Vec<usize>>);
    with_edges(edges: Edges);
    with_dilation(dilation: impl Into<Vec<usize>>);
    with_channels(channels: Channels);
    with_skip_edges(skip_edges: bool);
} }

impl Tensor {
    /// The greatest element of each position of a window over the spatial axes, NaN if there is one.
    ///
    /// The window has a size for each spatial axis. Shapes: as for [`Tensor::conv`]. Errors: `pool.C1`
    /// for a window that does not go with the axes, `conv.C3`, `elementwise.C1`. Source: Flax'
    /// `max_pool`, with PyTorch's default for the strides.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// use helio_graph::Pool;
    /// let x = g.constant([[[1f32, 2.0, 3.0, 4.0]]]);
    /// assert_eq!(x.max_pool(&[2], &Pool::default()).eval()?, [[[2f32, 4.0]]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn max_pool(&self, window: &[usize], pool: &Pool) -> Tensor {
        self.call("max_pool", |ty| {
            ensure_real(ty.dtype)?;
            self.pooled(ty, window, pool, BinaryOp::Maximum, Start::Lowest)
        })
    }

    /// The mean of each position of a window over the spatial axes, of what was added around them,
    /// too, unless [`Pool::skip_edges`]. Types narrower than `f32` are summed in `f32`. Errors: as for
    /// [`Tensor::max_pool`]. Source: Flax' `avg_pool`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// use helio_graph::Pool;
    /// let x = g.constant([[[1f32, 2.0, 3.0, 4.0]]]);
    /// assert_eq!(x.avg_pool(&[2], &Pool::default()).eval()?, [[[1.5f32, 3.5]]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn avg_pool(&self, window: &[usize], pool: &Pool) -> Tensor {
        self.call("avg_pool", |ty| {
            ensure_float(ty)?;
            self.in_f32(ty, |x| {
                let ty = x.ty()?;
                let sum = x.pooled(&ty, window, pool, BinaryOp::Add, Start::Zero)?;
                if !pool.skip_edges {
                    let count = window.iter().map(|&size| size as f64).product::<f64>();
                    return Ok(sum / count);
                }
                // The counts depend on the place in space only.
                let ones = ty.shape.iter().enumerate().map(|(axis, dim)| {
                    let is_spatial = spatial_axes(pool.channels, ty.shape.rank()).contains(&axis);
                    if is_spatial { dim.clone() } else { Dim::from(1) }
                });
                let ones = x.graph().ones(ty.dtype, ones.collect::<Shape>());
                let count = ones.pooled(&ones.ty()?, window, pool, BinaryOp::Add, Start::Zero)?;
                Ok(sum / count)
            })
        })
    }

    fn pooled(
        &self,
        ty: &TensorType,
        window: &[usize],
        pool: &Pool,
        op: BinaryOp,
        start: Start,
    ) -> Result<Tensor> {
        let rank = ty.shape.rank();
        if rank < 3 || window.len() != rank - 2 {
            let detail = format!(
                "a window {window:?} for {}: it needs a size for each axis but those of the batch \
                 and the channels, at least one",
                ty.shape
            );
            return Err(Error::rule("pool.C1", detail));
        }
        ensure_lists(window.len(), &pool.strides, &pool.dilation, &pool.edges)?;
        let spatial = spatial_axes(pool.channels, rank);
        let mut windows = vec![WindowAxis::POINT; rank];
        for ((i, &size), axis) in window.iter().enumerate().zip(spatial) {
            let dilation = number(&pool.dilation, i);
            let stride = pool.strides.get(i).copied().unwrap_or(size);
            let amounts = Amounts::of(&pool.edges, i);
            let dilated = dilated(size, dilation)?;
            windows[axis] = WindowAxis { size, dilated, dilation, stride, amounts, spread: 1 };
        }
        let axes = windows.iter().zip(ty.shape.iter());
        let shape = axes.map(|(window, dim)| window.positions(dim)).collect::<Result<Shape>>()?;
        let (dtype, from) = (ty.dtype, ty.shape.clone());
        self.graph().emit(&[self], TensorType::new(dtype, shape), move |emit, x| {
            let axes = windows.iter().zip(from.iter());
            let padding = axes.map(|(window, dim)| window.padding(emit, dim));
            let each =
                |of: fn(&WindowAxis) -> usize| windows.iter().map(of).collect::<Vec<usize>>();
            let spec = WindowSpec {
                dimensions: &each(|window| window.size),
                strides: &each(|window| window.stride),
                padding: &padding.collect::<Result<Vec<_>>>()?,
                window_dilations: &each(|window| window.dilation),
                ..WindowSpec::default()
            };
            let computation = emit.scalar(op, dtype)?;
            let start = start.op(emit.builder, dtype);
            Ok(x[0].reduce_window_with_general_padding(&start, &computation, &spec))
        })
    }
}
