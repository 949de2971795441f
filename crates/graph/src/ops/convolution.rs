//! Convolutions and pooling: windows that move over the spatial axes of images, signals, volumes.

use helio::builder::{ConvOptions, WindowSpec, XlaComputation};
use helio::ir::BinaryOp;
use helio::ir::ops::ConvDims;
use helio::{ElementType, Error, Padding, Result};

use crate::graph::TensorType;
use crate::lower::Emit;
use crate::ops::binary::{ensure_real, ensure_type, is_narrow};
use crate::ops::nonlinear::ensure_float;
use crate::ops::reduce::Start;
use crate::{Dim, Operand, Shape, Tensor};

/// Where the channels of a tensor are; the batch is its first axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Channels {
    /// `[batch, channels, space…]`, kernels `[output channels, input channels, window…]`; JAX's and
    /// PyTorch's default.
    #[default]
    First,
    /// `[batch, space…, channels]`, kernels `[window…, input channels, output channels]`; Keras' and
    /// Flax' default.
    Last,
}

/// What is added around the spatial axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edges {
    /// Nothing: windows lie inside.
    #[default]
    Valid,
    /// As much as makes the result as large as the operand, divided by the stride and rounded up; an
    /// odd element goes to the end.
    Same,
    /// So many elements before and after each axis; negative ones crop.
    Explicit(Vec<(i64, i64)>),
}

/// How a kernel moves; lists have a number for each spatial axis, or are empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    /// How far apart positions of the window are; 1 unless given.
    pub strides: Vec<usize>,
    /// What is added around the operand: zeros.
    pub edges: Edges,
    /// How far apart the elements of the kernel are; 1 unless given.
    pub dilation: Vec<usize>,
    /// Into how many groups the channels fall, each with kernels of its own.
    pub groups: usize,
    /// Where the channels are.
    pub channels: Channels,
}

impl Default for Conv {
    fn default() -> Self {
        Conv {
            strides: Vec::new(),
            edges: Edges::Valid,
            dilation: Vec::new(),
            groups: 1,
            channels: Channels::First,
        }
    }
}

/// How a pooling window moves; lists have a number for each spatial axis, or are empty.
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

impl Tensor {
    /// Slides a kernel over the spatial axes, of which there are 1 to 3, and sums products over the
    /// window and the input channels. The kernel is not flipped.
    ///
    /// Shapes: `[batch, c, d…]`, kernel `[o, c / groups, w…]` of known window, result `[batch, o,
    /// r…]` where `r = (d + low + high - ((w - 1) * dilation + 1)) / stride + 1`; see [`Channels`] for
    /// channels last. Batch and space may be symbolic; a call in which a window is larger than the
    /// padded axis by more than a stride fails with `dim.C2`. The operands are promoted; floats
    /// narrower than `f32` are summed in `f32`. Errors: `conv.C1` for other ranks, `conv.C2` unless
    /// the channels fit, `conv.C3` for wrong lists or numbers in [`Conv`], `promotion.C1`,
    /// `elementwise.C1` for bools. Source: JAX's `lax.conv_general_dilated`.
    ///
    /// ```
    /// # use helio_graph::{Conv, DType, Edges, Graph};
    /// # let g = Graph::new("edges");
    /// let images = g.input("images", DType::F32, ("batch", 3, "h", "w"));
    /// let kernel = g.input("kernel", DType::F32, (16, 3, 5, 5));
    /// let same = Conv { edges: Edges::Same, strides: vec![2, 2], ..Conv::default() };
    /// let features = images.conv(&kernel, &same);
    /// assert_eq!(features.shape()?.to_string(), "[batch, 16, (h + 1)/2, (w + 1)/2]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn conv(&self, kernel: impl Operand, conv: &Conv) -> Tensor {
        self.call("conv", |_| {
            let kinds = |axis: usize| match &conv.edges {
                Edges::Valid => Amounts::Known(0, 0),
                Edges::Same => Amounts::Same,
                Edges::Explicit(amounts) => Amounts::known(amounts, axis),
            };
            self.convolved(kernel, conv, |_, axis| {
                Ok((kinds(axis), number(&conv.strides, axis), 1))
            })
        })
    }

    /// The transpose of a convolution: a kernel slides over the operand, whose elements are `stride`
    /// apart, with zeros between. The kernel is not flipped.
    ///
    /// Shapes: as for [`Tensor::conv`], with `r = d * stride` for [`Edges::Same`] and `(d - 1) *
    /// stride + w`, at least `d * stride`, for [`Edges::Valid`]; explicit amounts are added to the
    /// operand with its zeros, as in JAX (PyTorch's `padding = p` is `w - 1 - p` of these). An axis
    /// that is empty in a call is an error, `conv.C4`. Errors: as for [`Tensor::conv`]. Source: JAX's
    /// `lax.conv_transpose`.
    #[track_caller]
    pub fn conv_transpose(&self, kernel: impl Operand, conv: &Conv) -> Tensor {
        self.call("conv_transpose", |_| {
            self.convolved(kernel, conv, |window, axis| {
                let stride = number(&conv.strides, axis);
                let [window, step] = [window, stride].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
                let total = window.saturating_add(step) - 2;
                let amounts = match &conv.edges {
                    Edges::Explicit(amounts) => Amounts::known(amounts, axis),
                    Edges::Valid => {
                        let total = total.saturating_add((window - step).max(0));
                        Amounts::Known(window - 1, total - (window - 1))
                    }
                    Edges::Same => {
                        let low = if step > window - 1 { window - 1 } else { (total + 1) / 2 };
                        Amounts::Known(low, total - low)
                    }
                };
                Ok((amounts, 1, stride))
            })
        })
    }

    /// `place` says of a window's size, dilated, and an axis how it is padded, its stride, and how far
    /// apart the operand's elements are.
    fn convolved(
        &self,
        kernel: impl Operand,
        conv: &Conv,
        place: impl Fn(usize, usize) -> Result<(Amounts, usize, usize)>,
    ) -> Result<Tensor> {
        let (x, kernel, dtype) = self.meet_types(kernel)?;
        ensure_type(dtype, !dtype.is_pred(), "numbers")?;
        let (from, kernel_shape) = (x.shape()?, kernel.shape()?);
        let rank = from.rank();
        if !(3..=5).contains(&rank) || kernel_shape.rank() != rank {
            let detail = format!(
                "{from} and a kernel {kernel_shape}: both need an axis for the batch or output \
                 channels, one for channels, and the same 1 to 3 spatial axes"
            );
            return Err(Error::rule("conv.C1", detail));
        }
        let spatial = rank - 2;
        ensure_lists(spatial, &conv.strides, &conv.dilation, &conv.edges)?;
        let dims = dimensions(conv.channels, spatial);
        ensure_channels(&from, &kernel_shape, &dims, conv)?;
        let mut windows = Vec::with_capacity(spatial);
        for axis in 0..spatial {
            let dim = &kernel_shape[dims.kernel_spatial[axis]];
            let Some(size) = dim.size() else {
                let detail = format!("the window of kernel {kernel_shape} must have known sizes");
                return Err(Error::rule("conv.C3", detail));
            };
            let dilation = number(&conv.dilation, axis);
            let dilated = dilated(size, dilation)?;
            let (amounts, stride, spread) = place(dilated, axis)?;
            windows.push(WindowAxis { size, dilated, dilation, stride, amounts, spread });
        }
        let mut shape = from.with(dims.output_feature, &kernel_shape[dims.kernel_output_feature]);
        for (window, &axis) in windows.iter().zip(&dims.input_spatial) {
            shape = shape.with(axis, window.positions(&from[axis])?);
        }
        let groups = conv.groups;
        let wide = if is_narrow(dtype) { ElementType::F32 } else { dtype };
        self.graph().emit(&[&x, &kernel], TensorType::new(dtype, shape), move |emit, x| {
            let axes = windows.iter().zip(&dims.input_spatial);
            let padding = axes.map(|(window, &axis)| window.padding(emit, &from[axis]));
            let each = |of: fn(&WindowAxis) -> usize| windows.iter().map(of).collect();
            let options = ConvOptions {
                window_strides: each(|window| window.stride),
                padding: padding.collect::<Result<_>>()?,
                lhs_dilation: each(|window| window.spread),
                rhs_dilation: each(|window| window.dilation),
                dims: Some(dims.clone()),
                feature_group_count: groups,
                preferred_element_type: Some(wide),
                ..ConvOptions::default()
            };
            Ok(x[0].conv_general_dilated(&x[1], options).convert_element_type(dtype))
        })
    }

    /// The greatest element of each position of a window over the spatial axes, NaN if there is one.
    ///
    /// The window has a size for each spatial axis. Shapes: as for [`Tensor::conv`]. Errors: `pool.C1`
    /// for a window that does not go with the axes, `conv.C3`, `elementwise.C1`. Source: Flax'
    /// `max_pool`, with PyTorch's default for the strides.
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
            let amounts = match &pool.edges {
                Edges::Valid => Amounts::Known(0, 0),
                Edges::Same => Amounts::Same,
                Edges::Explicit(amounts) => Amounts::known(amounts, i),
            };
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
            let computation = XlaComputation::scalar(op, dtype)?;
            let start = start.op(emit.builder, dtype);
            Ok(x[0].reduce_window_with_general_padding(&start, &computation, &spec))
        })
    }
}

/// A window along one axis.
#[derive(Clone, Copy, Debug)]
struct WindowAxis {
    size: usize,
    /// The size with the distances between elements.
    dilated: usize,
    dilation: usize,
    stride: usize,
    amounts: Amounts,
    /// How far apart the operand's elements are.
    spread: usize,
}

/// How an axis is padded.
#[derive(Clone, Copy, Debug)]
enum Amounts {
    Same,
    Known(i64, i64),
}

impl Amounts {
    fn known(amounts: &[(i64, i64)], axis: usize) -> Self {
        let &(low, high) = amounts.get(axis).unwrap_or(&(0, 0));
        Amounts::Known(low, high)
    }
}

impl WindowAxis {
    const POINT: WindowAxis = WindowAxis {
        size: 1,
        dilated: 1,
        dilation: 1,
        stride: 1,
        amounts: Amounts::Known(0, 0),
        spread: 1,
    };

    /// The number of positions along an axis. Errors: `dim.C1`.
    fn positions(&self, dim: &Dim) -> Result<Dim> {
        let (stride, spread) = (Dim::from(self.stride), Dim::from(self.spread));
        let positions = match self.amounts {
            Amounts::Same => (dim + (&stride - 1)) / stride,
            Amounts::Known(low, high) => {
                let base = match dim.number() {
                    Some(0) => 0.into(),
                    _ => (dim - 1) * spread + 1,
                };
                let beyond = base + low + high - self.dilated;
                match beyond.number() {
                    Some(beyond) if beyond < 0 => 0.into(),
                    _ => beyond / stride + 1,
                }
            }
        };
        positions.ensure_valid()?;
        Ok(positions)
    }

    /// The amounts in a call. Errors: `conv.C4`.
    fn padding(&self, emit: &Emit<'_>, dim: &Dim) -> Result<(i64, i64)> {
        let size = emit.size(dim)?;
        if size == 0 && self.spread > 1 && dim.size().is_none() {
            let detail = format!("dimension {dim} is 0: there is nothing to spread");
            return Err(Error::rule("conv.C4", detail));
        }
        match self.amounts {
            Amounts::Known(low, high) => Ok((low, high)),
            Amounts::Same => {
                let amounts = Padding::Same.amounts(&[size], &[self.dilated], &[self.stride])?;
                amounts.first().copied().ok_or_else(|| Error::internal("no padding for an axis"))
            }
        }
    }
}

/// The number for an axis, 1 unless given.
fn number(list: &[usize], axis: usize) -> usize {
    list.get(axis).copied().unwrap_or(1)
}

/// The size of a window with the distances between its elements. Errors: `conv.C3`.
fn dilated(size: usize, dilation: usize) -> Result<usize> {
    let dilated = size.checked_sub(1).and_then(|gaps| gaps.checked_mul(dilation)?.checked_add(1));
    dilated.filter(|&size| i64::try_from(size).is_ok()).ok_or_else(|| {
        let detail = format!("a window of {size} elements, {dilation} apart");
        Error::rule("conv.C3", detail)
    })
}

/// Errors: `conv.C3` unless lists are empty or have a number, not 0, for each axis.
fn ensure_lists(
    spatial: usize,
    strides: &[usize],
    dilation: &[usize],
    edges: &Edges,
) -> Result<()> {
    let refuse = |detail| Err(Error::rule("conv.C3", detail));
    for (what, list) in [("strides", strides), ("dilation", dilation)] {
        if !list.is_empty() && list.len() != spatial {
            return refuse(format!("{what} {list:?} for {spatial} spatial axes"));
        }
        if list.iter().any(|&number| !(1..=1 << 40).contains(&number)) {
            return refuse(format!("{what} {list:?}; they are 1 and more, up to 2^40"));
        }
    }
    match edges {
        Edges::Explicit(amounts) if amounts.len() != spatial => {
            refuse(format!("edges {amounts:?} for {spatial} spatial axes"))
        }
        Edges::Explicit(amounts)
            if amounts
                .iter()
                .any(|&(low, high)| [low, high].iter().any(|n| n.unsigned_abs() > 1 << 40)) =>
        {
            refuse(format!("edges {amounts:?}; they are at most 2^40"))
        }
        _ => Ok(()),
    }
}

/// Errors: `conv.C2`, `conv.C3`.
fn ensure_channels(from: &Shape, kernel: &Shape, dims: &ConvDims, conv: &Conv) -> Result<()> {
    let groups = conv.groups;
    if !(1..=1 << 40).contains(&groups) {
        return Err(Error::rule("conv.C3", format!("{groups} groups; there are 1 or more")));
    }
    let found = &from[dims.input_feature];
    let (expected, made) =
        (&kernel[dims.kernel_input_feature], &kernel[dims.kernel_output_feature]);
    if expected * groups != *found {
        let help = match (found.size(), expected.size()) {
            (Some(_), Some(_)) => match conv.channels {
                Channels::First => "is it Channels::Last, or does the kernel need a transpose?",
                Channels::Last => "is it Channels::First, or does the kernel need a transpose?",
            },
            _ => "if they are equal whenever the program is called, say so by a rebind",
        };
        let group =
            if groups == 1 { String::new() } else { format!(" in each of {groups} groups") };
        return Err(Error::rule(
            "conv.C2",
            format!(
                "{from} has {found} channels (axis {}), the kernel {kernel} is for {expected} (axis \
                 {}){group}\n  help: {help}",
                dims.input_feature, dims.kernel_input_feature
            ),
        ));
    }
    if made / groups * groups != *made {
        let detail = format!(
            "the {made} output channels (axis {}) of the kernel {kernel} are not known to fall \
             into {groups} groups",
            dims.kernel_output_feature
        );
        return Err(Error::rule("conv.C2", detail));
    }
    Ok(())
}

/// The axes but those of the batch and the channels.
fn spatial_axes(channels: Channels, rank: usize) -> std::ops::Range<usize> {
    match channels {
        Channels::First => 2..rank,
        Channels::Last => 1..rank - 1,
    }
}

/// Which axis means what.
fn dimensions(channels: Channels, spatial: usize) -> ConvDims {
    match channels {
        Channels::First => ConvOptions::default_dims(spatial),
        Channels::Last => ConvDims {
            input_batch: 0,
            input_feature: spatial + 1,
            input_spatial: (1..=spatial).collect(),
            kernel_input_feature: spatial,
            kernel_output_feature: spatial + 1,
            kernel_spatial: (0..spatial).collect(),
            output_batch: 0,
            output_feature: spatial + 1,
            output_spatial: (1..=spatial).collect(),
        },
    }
}
