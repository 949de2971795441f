//! How StableHLO's attributes of windows (sizes, strides, padding, dilations) become HLO's
//! `window`, and back.

use helio_ir::ops::{Window, WindowDim};
use helio_ir::{Error, Result};

use super::codec::{integers, matrix, put};
use super::{Reading, Writing};
use crate::mlir::Attribute;

/// The window of a reduction, with an entry for each dimension of the operand.
pub(crate) struct ArrayWindow;

impl ArrayWindow {
    pub(crate) fn read(&self, from: &Reading<'_, '_>) -> Result<Window> {
        let rank = from.operands.first().and_then(|shape| shape.as_array()).map_or(0, |a| a.rank());
        let sizes = from.attrs.sizes("window_dimensions")?;
        let rank = if sizes.is_empty() { rank } else { sizes.len() };
        let sizes = if sizes.is_empty() { vec![1; rank] } else { sizes };
        window(from, sizes, "base_dilations", "window_dilations", None)
    }

    pub(super) fn write(&self, window: &Window, to: &mut Writing<'_>) -> Result<()> {
        let list = |of: fn(&WindowDim) -> usize| -> Result<Attribute> {
            integers(&window.dims.iter().map(of).collect::<Vec<_>>())
        };
        if window.dims.iter().any(|dim| dim.reversal) {
            return Err(Error::unimplemented("a reduction over reversed windows"));
        }
        put(to, "window_dimensions", list(|dim| dim.size)?);
        put(to, "window_strides", list(|dim| dim.stride)?);
        if window.dims.iter().any(|dim| dim.base_dilation != 1 || dim.window_dilation != 1) {
            put(to, "base_dilations", list(|dim| dim.base_dilation)?);
            put(to, "window_dilations", list(|dim| dim.window_dilation)?);
        }
        put_padding(window, to);
        Ok(())
    }
}

fn put_padding(window: &Window, to: &mut Writing<'_>) {
    let padding = window.dims.iter().flat_map(|dim| [dim.pad_low, dim.pad_high]);
    put(to, "padding", matrix([window.dims.len(), 2], padding));
}

/// The window of a convolution: its sizes are those of the kernel's spatial dimensions.
pub(super) struct ConvWindow;

impl ConvWindow {
    pub(super) fn read(&self, from: &Reading<'_, '_>) -> Result<Window> {
        conv_window(from, None)
    }

    pub(super) fn write(&self, window: &Window, to: &mut Writing<'_>) -> Result<()> {
        let list = |of: fn(&WindowDim) -> usize| -> Result<Attribute> {
            integers(&window.dims.iter().map(of).collect::<Vec<_>>())
        };
        put(to, "window_strides", list(|dim| dim.stride)?);
        put_padding(window, to);
        put(to, "lhs_dilation", list(|dim| dim.base_dilation)?);
        put(to, "rhs_dilation", list(|dim| dim.window_dilation)?);
        if window.dims.iter().any(|dim| dim.reversal) {
            let reversal = window.dims.iter().map(|dim| dim.reversal).collect();
            put(to, "window_reversal", Attribute::Bools(reversal));
        }
        Ok(())
    }
}

/// The window of a convolution, whose padding an operand may give instead of an attribute.
pub(crate) fn conv_window(from: &Reading<'_, '_>, padding: Option<Vec<i64>>) -> Result<Window> {
    let dims = from.attrs.needed_fields("dimension_numbers")?;
    let spatial = dims.sizes("kernel_spatial_dimensions")?;
    let kernel = from.operands.get(1).and_then(|shape| shape.as_array());
    let size = |&d: &usize| {
        let dim = kernel.and_then(|kernel| kernel.dims().get(d));
        dim.copied().ok_or_else(|| Error::invalid(format!("the kernel has no dimension {d}")))
    };
    let sizes = spatial.iter().map(size).collect::<Result<Vec<_>>>()?;
    window(from, sizes, "lhs_dilation", "rhs_dilation", padding)
}

/// A window of these sizes; what is absent is 1, 0 or false for each dimension.
fn window(
    from: &Reading<'_, '_>,
    sizes: Vec<usize>,
    base: &str,
    dilation: &str,
    padding: Option<Vec<i64>>,
) -> Result<Window> {
    let (attrs, rank) = (from.attrs, sizes.len());
    let list = |name: &str| {
        let values = attrs.sizes(name)?;
        Ok::<_, Error>(if values.is_empty() { vec![1; rank] } else { values })
    };
    let lists = [list("window_strides")?, list(base)?, list(dilation)?];
    let reversal = attrs.flags("window_reversal")?.unwrap_or_else(|| vec![false; rank]);
    let stated = attrs.matrix("padding")?.map(|(_, values)| values);
    let padding = padding.or(stated).unwrap_or_else(|| vec![0; 2 * rank]);
    let fits = lists.iter().all(|list| list.len() == rank)
        && reversal.len() == rank
        && padding.len() == 2 * rank;
    if !fits {
        let detail = format!("a window must have one entry for each of {rank} dimensions");
        return Err(Error::invalid(detail));
    }
    let [strides, base, dilation] = lists;
    let dims = (0..rank).map(|d| WindowDim {
        size: sizes[d],
        stride: strides[d],
        pad_low: padding[2 * d],
        pad_high: padding[2 * d + 1],
        base_dilation: base[d],
        window_dilation: dilation[d],
        reversal: reversal[d],
    });
    Ok(Window { dims: dims.collect() })
}
