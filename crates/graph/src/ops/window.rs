//! Windows along axes: where they stand, and how many positions they have.

use helio::{Error, Padding, Result};

use crate::Dim;
use crate::lower::Emit;

/// Where the channels of a tensor are; the batch is its first axis.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::{Channels, Conv};
/// let image = g.zeros(F32, ("n", 8, 8, 3));
/// let last = Conv::default().with_channels(Channels::Last);
/// let y = image.conv(g.ones(F32, (3, 3, 3, 16)), &last);
/// assert_eq!(y.shape()?, ("n", 6, 6, 16).into());
/// # Ok::<(), Error>(())
/// ```
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
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::{Conv, Edges};
/// let (x, kernel) = (g.ones(F32, (1, 1, 4)), g.ones(F32, (1, 1, 3)));
/// let same = Conv::default().with_edges(Edges::Same);
/// assert_eq!(x.conv(kernel, &same).eval()?, [[[2f32, 3.0, 3.0, 2.0]]].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edges {
    /// Nothing: windows lie inside.
    #[default]
    Valid,
    /// As much as makes the result as large as the operand, divided by the stride and rounded up; an
    /// odd element goes to the end.
    Same,
    /// The numbers of elements before and after each axis; negative ones crop.
    Explicit(Vec<(i64, i64)>),
}

/// A window along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowAxis {
    pub(crate) size: usize,
    /// The size with the distances between elements.
    pub(crate) dilated: usize,
    pub(crate) dilation: usize,
    pub(crate) stride: usize,
    pub(crate) amounts: Amounts,
    /// How far apart the operand's elements are.
    pub(crate) spread: usize,
}

/// How an axis is padded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amounts {
    Same,
    Known(i64, i64),
}

impl Amounts {
    pub(crate) fn known(amounts: &[(i64, i64)], axis: usize) -> Self {
        let &(low, high) = amounts.get(axis).unwrap_or(&(0, 0));
        Amounts::Known(low, high)
    }

    /// What is said of an axis.
    pub(crate) fn of(edges: &Edges, axis: usize) -> Self {
        match edges {
            Edges::Valid => Amounts::Known(0, 0),
            Edges::Same => Amounts::Same,
            Edges::Explicit(amounts) => Amounts::known(amounts, axis),
        }
    }
}

impl WindowAxis {
    pub(crate) const POINT: WindowAxis = WindowAxis {
        size: 1,
        dilated: 1,
        dilation: 1,
        stride: 1,
        amounts: Amounts::Known(0, 0),
        spread: 1,
    };

    /// The number of positions along an axis. Errors: `dim.C1`.
    pub(crate) fn positions(&self, dim: &Dim) -> Result<Dim> {
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
    pub(crate) fn padding(&self, emit: &Emit<'_>, dim: &Dim) -> Result<(i64, i64)> {
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
pub(crate) fn number(list: &[usize], axis: usize) -> usize {
    list.get(axis).copied().unwrap_or(1)
}

/// The size of a window with the distances between its elements. Errors: `conv.C3`.
pub(crate) fn dilated(size: usize, dilation: usize) -> Result<usize> {
    let dilated = size.checked_sub(1).and_then(|gaps| gaps.checked_mul(dilation)?.checked_add(1));
    dilated.filter(|&size| i64::try_from(size).is_ok()).ok_or_else(|| {
        let detail = format!("a window of {size} elements, {dilation} apart");
        Error::rule("conv.C3", detail)
    })
}

/// Errors: `conv.C3` unless lists are empty or have a number, not 0, for each axis.
pub(crate) fn ensure_lists(
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

/// The axes but those of the batch and the channels.
pub(crate) fn spatial_axes(channels: Channels, rank: usize) -> std::ops::Range<usize> {
    match channels {
        Channels::First => 2..rank,
        Channels::Last => 1..rank - 1,
    }
}
