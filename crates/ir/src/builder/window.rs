//! Windows from lists, and the padding words `SAME` and `VALID`.

use crate::ops::{Window, WindowDim};
use crate::{ArrayShape, Error, Result};

/// How the edges of a base area are padded, in a word. Source: E1–E4 "Conv", "ReduceWindow".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// The result is as large as the base if the stride is 1; `ceil(base / stride)` in general.
    Same,
    /// No padding: only windows that lie inside count.
    Valid,
}

impl Padding {
    /// The amounts `(low, high)` for each dimension; an odd element of `SAME` goes high
    /// (`semantics.md` §6). An empty list of strides stands for ones. Errors: `builder.C4`.
    ///
    /// ```
    /// # use helio_ir::builder::Padding;
    /// assert_eq!(Padding::Same.amounts(&[5, 5], &[3, 2], &[2, 1])?, [(1, 1), (0, 1)]);
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    pub fn amounts(
        self,
        base: &[usize],
        window: &[usize],
        strides: &[usize],
    ) -> Result<Vec<(i64, i64)>> {
        ensure_length("window dimensions", window.len(), base.len())?;
        if !strides.is_empty() {
            ensure_length("window strides", strides.len(), base.len())?;
        }
        let dim = |d: usize| {
            let (base, window) = (base[d], window[d]);
            let stride = strides.get(d).copied().unwrap_or(1);
            crate::ensure!(stride > 0, "builder.C4", "the stride of dimension {d} is 0");
            let size = base.div_ceil(stride);
            // Every position but the last takes a stride, the last a whole window.
            let needed = size.saturating_sub(1).saturating_mul(stride).saturating_add(window);
            let total = needed.saturating_sub(base);
            let low = total / 2;
            Ok((signed(low)?, signed(total - low)?))
        };
        match self {
            Padding::Valid => Ok(vec![(0, 0); base.len()]),
            Padding::Same => (0..base.len()).map(dim).collect(),
        }
    }
}

fn signed(amount: usize) -> Result<i64> {
    i64::try_from(amount).map_err(|_| Error::rule("builder.C4", format!("padding of {amount}")))
}

/// A window as lists with an entry for each dimension; empty lists stand for the defaults.
///
/// ```
/// # use helio_ir::builder::WindowSpec;
/// let spec = WindowSpec { dimensions: &[2, 3], strides: &[2, 3], ..WindowSpec::default() };
/// assert_eq!(spec.window()?.dims[1].stride, 3);
/// # Ok::<(), helio_ir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowSpec<'a> {
    /// The sizes.
    pub dimensions: &'a [usize],
    /// How far apart positions are; 1 by default.
    pub strides: &'a [usize],
    /// Elements added before the first and after the last of the base; 0 by default.
    pub padding: &'a [(i64, i64)],
    /// How far apart elements of the base are; 1 by default.
    pub base_dilations: &'a [usize],
    /// How far apart elements of the window are; 1 by default.
    pub window_dilations: &'a [usize],
    /// Whether the window is flipped; not by default.
    pub reversal: &'a [bool],
}

impl WindowSpec<'_> {
    /// The same as a list of dimensions. Errors: `builder.C4` (the lengths of lists).
    pub fn window(&self) -> Result<Window> {
        let rank = self.dimensions.len();
        let lists = [
            ("window strides", self.strides.len()),
            ("padding", self.padding.len()),
            ("base dilations", self.base_dilations.len()),
            ("window dilations", self.window_dilations.len()),
            ("window reversal", self.reversal.len()),
        ];
        for (what, length) in lists.into_iter().filter(|&(_, length)| length > 0) {
            ensure_length(what, length, rank)?;
        }
        let default = WindowDim::default();
        let dim = |(d, &size): (usize, &usize)| {
            let &(pad_low, pad_high) = self.padding.get(d).unwrap_or(&(0, 0));
            WindowDim {
                size,
                stride: self.strides.get(d).copied().unwrap_or(default.stride),
                pad_low,
                pad_high,
                base_dilation: self.base_dilations.get(d).copied().unwrap_or(1),
                window_dilation: self.window_dilations.get(d).copied().unwrap_or(1),
                reversal: self.reversal.get(d).copied().unwrap_or(false),
            }
        };
        Ok(Window { dims: self.dimensions.iter().enumerate().map(dim).collect() })
    }
}

/// A window over all dimensions of an array, padded in a word. `SAME` is defined for static sizes:
/// how much a dimension of unknown size needs is unknown. Errors: `builder.C4`, `builder.C5`.
pub(super) fn padded_window(
    base: &ArrayShape,
    dimensions: &[usize],
    strides: &[usize],
    padding: Padding,
) -> Result<Window> {
    crate::ensure!(
        padding == Padding::Valid || base.is_static(),
        "builder.C5",
        "SAME padding of {base}, whose size is not static"
    );
    let padding = padding.amounts(base.dims(), dimensions, strides)?;
    WindowSpec { dimensions, strides, padding: &padding, ..WindowSpec::default() }.window()
}

/// Errors: `builder.C4` unless `length`, that of the list that `what` names, is `needed`.
pub(super) fn ensure_length(what: &str, length: usize, needed: usize) -> Result<()> {
    crate::ensure!(
        length == needed,
        "builder.C4",
        "{what}: {needed} entries needed, found {length}"
    );
    Ok(())
}
