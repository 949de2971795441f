//! How an array lies in memory: kept and printed; values are always handled in logical order.

use std::fmt;

/// The order of dimensions in memory, and whatever else the text says of the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The dimensions from the fastest-varying to the slowest.
    pub minor_to_major: Vec<usize>,
    /// Tiles, memory space, element size and the like (`T(8,128)S(1)`), as written after the colon;
    /// kept, not interpreted.
    pub attributes: String,
}

impl Layout {
    /// Row-major: the last dimension varies fastest.
    pub fn descending(rank: usize) -> Self {
        Layout { minor_to_major: (0..rank).rev().collect(), attributes: String::new() }
    }
}

/// `{1,0:T(8,128)}`
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, dim) in self.minor_to_major.iter().enumerate() {
            write!(f, "{}{dim}", if i > 0 { "," } else { "" })?;
        }
        if !self.attributes.is_empty() {
            write!(f, ":{}", self.attributes)?;
        }
        f.write_str("}")
    }
}
