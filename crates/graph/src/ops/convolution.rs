//! Convolutions: kernels that move over the spatial axes of images, signals, volumes.

use helio::builder::ConvOptions;
use helio::ir::ops::ConvDims;
use helio::unstable::ir::with_methods;
use helio::{ElementType, Error, Result};

use crate::graph::TensorType;
use crate::ops::binary::{ensure_type, factor_type, is_narrow};
use crate::ops::window::{Amounts, Channels, Edges, WindowAxis, dilated, ensure_lists, number};
use crate::{Operand, Shape, Tensor};

/// How a kernel moves; lists have a number for each spatial axis, or are empty.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::Conv;
/// let (x, kernel) = (g.ones(F32, (1, 1, 5)), g.ones(F32, (1, 1, 2)));
/// let apart = Conv::default().with_strides([3]);
/// assert_eq!(x.conv(kernel, &apart).eval()?, [[[2f32, 2.0]]].into());
/// # Ok::<(), Error>(())
/// ```
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

with_methods! { Conv {
    with_strides(strides: impl Into<Vec<usize>>);
    with_edges(edges: Edges);
    with_dilation(dilation: impl Into<Vec<usize>>);
    with_groups(groups: usize);
    with_channels(channels: Channels);
} }

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
    /// # use helio_graph::{Conv, ElementType, Edges, Graph};
    /// # let g = Graph::new("edges");
    /// let images = g.input("images", ElementType::F32, ("batch", 3, "h", "w"));
    /// let kernel = g.input("kernel", ElementType::F32, (16, 3, 5, 5));
    /// let same = Conv { edges: Edges::Same, strides: vec![2, 2], ..Conv::default() };
    /// let features = images.conv(&kernel, &same);
    /// assert_eq!(features.shape()?.to_string(), "[batch, 16, (h + 1)/2, (w + 1)/2]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn conv(&self, kernel: impl Operand, conv: &Conv) -> Tensor {
        self.call("conv", |_| {
            self.convolved(kernel, conv, |_, axis| {
                Ok((Amounts::of(&conv.edges, axis), number(&conv.strides, axis), 1))
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
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// use helio_graph::{Conv, Edges};
    /// let x = g.constant([[[1f32, 2.0]]]);
    /// let apart = Conv { strides: vec![2], edges: Edges::Same, ..Conv::default() };
    /// assert_eq!(x.conv_transpose(g.ones(F32, (1, 1, 2)), &apart).shape()?.to_string(), "[1, 1, 4]");
    /// # Ok::<(), Error>(())
    /// ```
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
        let [x, kernel] = [x, kernel].map(|x| x.cast(factor_type(dtype)));
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
