//! Windows that slide over arrays: what they look like in text and how many positions they have.

use std::fmt::{self, Display};

use crate::text::attrs::Scan;
use crate::types::DimKind;
use crate::{Error, Result, ensure};

/// One dimension of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// The size of the window.
    pub size: usize,
    /// How far apart its positions are; at least 1.
    pub stride: usize,
    /// Elements added before the first of the base; negative to crop.
    pub pad_low: i64,
    /// Elements added after the last of the base; negative to crop.
    pub pad_high: i64,
    /// The distance of the base's neighbours; at least 1. (`lhs_dilate`)
    pub base_dilation: usize,
    /// The distance of the window's neighbours; at least 1. (`rhs_dilate`)
    pub window_dilation: usize,
    /// Whether the window is flipped.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        WindowDim {
            size: 1,
            stride: 1,
            pad_low: 0,
            pad_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }
}

/// The extent of `n` elements that are `dilation` apart. `None` if it passes 2^127.
fn dilated(n: usize, dilation: usize) -> Option<i128> {
    match n {
        0 => Some(0),
        n => (n as i128 - 1).checked_mul(dilation as i128)?.checked_add(1),
    }
}

impl WindowDim {
    /// How many positions the window has on a base of this size: 0 if it does not fit once. `None`
    /// if the number, or a number on the way, is too large, or if the stride is 0.
    ///
    /// ```
    /// # use helio_ir::ops::WindowDim;
    /// let dim = WindowDim { size: 3, stride: 2, pad_low: 1, ..WindowDim::default() };
    /// assert_eq!(dim.output_size(6), Some(3)); // starts at -1, 1, 3
    /// ```
    pub fn output_size(&self, base: usize) -> Option<usize> {
        let padding = i128::from(self.pad_low) + i128::from(self.pad_high);
        let base = dilated(base, self.base_dilation)?.checked_add(padding)?;
        let window = dilated(self.size, self.window_dilation)?;
        if base <= 0 || window > base {
            return Some(0);
        }
        let steps = (base - window).checked_div(self.stride as i128)?;
        usize::try_from(steps + 1).ok()
    }

    /// Errors: `window.C1` to `window.C4`; `d` is the number of this dimension, for the message.
    fn check(&self, d: usize) -> Result<()> {
        ensure!(
            self.size > 0,
            "window.C1",
            "window dimension {d}: the size must be positive, is 0"
        );
        ensure!(
            self.stride > 0,
            "window.C2",
            "window dimension {d}: the stride must be positive, is 0"
        );
        ensure!(
            self.base_dilation > 0,
            "window.C3",
            "window dimension {d}: lhs_dilate must be positive, is 0"
        );
        ensure!(
            self.window_dilation > 0,
            "window.C4",
            "window dimension {d}: rhs_dilate must be positive, is 0"
        );
        Ok(())
    }
}

/// A window that slides over an array, one entry a dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The dimensions, in the array's (or the spatial dimensions') order.
    pub dims: Vec<WindowDim>,
}

impl Window {
    /// The dimensions of the result of sliding over a base with these dimensions. A bounded
    /// dimension gives a bounded one. Errors: `window.C1` to `window.C6`.
    pub fn output_dims(&self, base: &[(usize, DimKind)]) -> Result<Vec<(usize, DimKind)>> {
        ensure!(
            self.dims.len() == base.len(),
            "window.C5",
            "the window has {} dimensions, the array it slides over has {}",
            self.dims.len(),
            base.len()
        );
        let dims = self.dims.iter().zip(base).enumerate();
        dims.map(|(d, (window, &(size, kind)))| {
            window.check(d)?;
            if kind == DimKind::Unbounded {
                return Ok((size, kind));
            }
            let too_large = || {
                let detail = format!(
                    "window dimension {d}: sliding over {size} elements gives more positions than \
                     memory has addresses"
                );
                Error::rule("window.C6", detail)
            };
            Ok((window.output_size(size).ok_or_else(too_large)?, kind))
        })
        .collect()
    }

    /// Reads `{size=2x3 stride=1x2 pad=0_0x1_1 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}`;
    /// everything but `size` may be left out.
    pub fn read(scan: &mut Scan<'_>) -> Result<Window> {
        scan.expect("{")?;
        let mut window = Window::default();
        let mut fields: Vec<(&str, &str)> = Vec::new();
        while !scan.eat("}") {
            let name = scan.word()?;
            scan.expect("=")?;
            let value = scan.word()?;
            if fields.iter().any(|&(other, _)| other == name) {
                return Err(Error::invalid(format!("`{name}` is given twice")));
            }
            fields.push((name, value));
        }
        // The number of dimensions is that of `size`, wherever it stands.
        if let Some(&(_, sizes)) = fields.iter().find(|&&(name, _)| name == "size") {
            window.dims = vec![WindowDim::default(); sizes.split('x').count()];
        }
        for (name, value) in fields {
            window.set(name, value).map_err(|e| e.context(format_args!("{name}={value}")))?;
        }
        Ok(window)
    }

    /// Sets one field of all dimensions from its text.
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let count = value.split('x').count();
        if count != self.dims.len() {
            let expected = self.dims.len();
            return Err(Error::invalid(format!("{count} values for {expected} dimensions")));
        }
        for (dim, value) in self.dims.iter_mut().zip(value.split('x')) {
            let mut scan = Scan::new(value);
            match name {
                "size" => dim.size = scan.size()?,
                "stride" => dim.stride = scan.size()?,
                "lhs_dilate" => dim.base_dilation = scan.size()?,
                "rhs_dilate" => dim.window_dilation = scan.size()?,
                "rhs_reversal" => dim.reversal = scan.size()? != 0,
                "pad" => {
                    dim.pad_low = scan.int()?;
                    scan.expect("_")?;
                    dim.pad_high = scan.int()?;
                }
                _ => {
                    return Err(Error::invalid(
                        "a window has size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal",
                    ));
                }
            }
            scan.end()?;
        }
        Ok(())
    }
}

/// `{size=2x3 pad=0_0x1_1}`: fields at their defaults in all dimensions are left out.
impl Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = WindowDim::default();
        let field =
            |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn Fn(&WindowDim) -> String| {
                if name != "size" && self.dims.iter().all(|dim| value(dim) == value(&default)) {
                    return Ok(());
                }
                let values: Vec<_> = self.dims.iter().map(value).collect();
                let space = if name == "size" { "" } else { " " };
                write!(f, "{space}{name}={}", values.join("x"))
            };
        f.write_str("{")?;
        if !self.dims.is_empty() {
            field(f, "size", &|dim| dim.size.to_string())?;
            field(f, "stride", &|dim| dim.stride.to_string())?;
            field(f, "pad", &|dim| format!("{}_{}", dim.pad_low, dim.pad_high))?;
            field(f, "lhs_dilate", &|dim| dim.base_dilation.to_string())?;
            field(f, "rhs_dilate", &|dim| dim.window_dilation.to_string())?;
            field(f, "rhs_reversal", &|dim| u8::from(dim.reversal).to_string())?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Window> {
        let mut scan = Scan::new(text);
        let window = Window::read(&mut scan)?;
        scan.end()?;
        Ok(window)
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "{}",
            "{size=3}",
            "{size=2x3 stride=1x2 pad=0_0x1_1 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}",
            "{size=1x1 pad=-1_2x0_-3}",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let reordered = read("{ pad=1_1 /*c*/ size=3 stride=1 }").unwrap();
        assert_eq!(reordered.to_string(), "{size=3 pad=1_1}");
    }

    #[test]
    fn text_errors() {
        for text in [
            "size=2",
            "{size=2",
            "{size=2 size=2}",
            "{stride=2}",
            "{size=2x2 stride=1}",
            "{size=-1}",
            "{size=2 pad=1}",
            "{size=2 colour=1}",
            "{size=2x}",
            "{size=99999999999999999999}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn output_sizes() {
        let dim = |text: &str| read(text).unwrap().dims[0];
        // Values by hand from the formula in the StableHLO specification, "reduce_window".
        assert_eq!(dim("{size=3}").output_size(5), Some(3));
        assert_eq!(dim("{size=3 stride=2}").output_size(6), Some(2));
        assert_eq!(dim("{size=3}").output_size(2), Some(0));
        assert_eq!(dim("{size=1}").output_size(0), Some(0));
        assert_eq!(dim("{size=1 pad=1_1}").output_size(0), Some(2));
        assert_eq!(dim("{size=2 rhs_dilate=3}").output_size(5), Some(2));
        assert_eq!(dim("{size=2 lhs_dilate=2}").output_size(3), Some(4));
        assert_eq!(dim("{size=1 pad=-3_-3}").output_size(5), Some(0));
    }

    #[test]
    fn hostile_sizes() {
        let huge = WindowDim { size: 2, base_dilation: usize::MAX, ..WindowDim::default() };
        assert_eq!(huge.output_size(usize::MAX), None);
        let huge = WindowDim { size: usize::MAX, window_dilation: usize::MAX, ..huge };
        assert_eq!(huge.output_size(1), None);
        assert_eq!(WindowDim { stride: 0, ..WindowDim::default() }.output_size(1), None);
    }
}
