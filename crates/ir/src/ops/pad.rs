//! `pad`: an array with more elements, or fewer, at the edges of its dimensions and between its
//! elements.

use super::Arity;
use super::check::{ensure_one_per_dim, ensure_same_element};
use crate::text::attrs::{AttrReader, AttrWriter, Scan};
use crate::types::DimKind;
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// Extends (or crops) each dimension at its edges and between elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pad {
    /// The amounts, for each dimension.
    pub dims: Vec<PadDim>,
}

impl OpDef for Pad {
    const OPCODE: &'static str = "pad";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("pad.C1", 0)?;
        let fill = cx.array("pad.C1", 1)?;
        ensure!(fill.is_scalar(), "pad.C2", "the fill value must be a scalar, is {fill}");
        ensure_same_element("pad.C3", &[operand, fill])?;
        ensure_one_per_dim("pad.C5", "padding", self.dims.len(), operand)?;
        let mut dims = Vec::with_capacity(operand.rank());
        for (d, ((size, kind), pad)) in operand.dims_and_kinds().zip(&self.dims).enumerate() {
            let padded = if kind == DimKind::Unbounded { 0 } else { pad.padded(size) };
            ensure!(
                padded >= 0,
                "pad.C4",
                "dimension {d} of the result would be {padded}; operand {operand}, padding {pad}"
            );
            // A size too large for memory is an error of the resulting shape.
            dims.push((usize::try_from(padded).unwrap_or(usize::MAX), kind));
        }
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let dims = attrs.parse("padding", |scan| {
            let mut dims = Vec::new();
            while dims.is_empty() || scan.eat("x") {
                dims.push(PadDim::scan(scan)?);
            }
            Ok(dims)
        })?;
        // Of a scalar there is nothing to say.
        let scalar = attrs.operands.first().and_then(|shape| shape.as_array());
        match dims {
            None if scalar.is_some_and(ArrayShape::is_scalar) => Ok(Pad { dims: Vec::new() }),
            dims => attrs.require("padding", dims).map(|dims| Pad { dims }),
        }
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        // As XLA does, the interior is written for all dimensions or for none.
        let interior = self.dims.iter().any(|dim| dim.interior != 0);
        let dims: Vec<_> = self
            .dims
            .iter()
            .map(|dim| match interior {
                true => dim.to_string(),
                false => format!("{}_{}", dim.low, dim.high),
            })
            .collect();
        if !dims.is_empty() {
            attrs.put("padding", dims.join("x"));
        }
    }
}

/// How one dimension is extended: interior first, then the edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PadDim {
    /// Elements added before the first; negative to crop.
    pub low: i64,
    /// Elements added after the last; negative to crop.
    pub high: i64,
    /// Elements added between each two neighbours.
    pub interior: usize,
}

impl PadDim {
    /// Padding at the edges only.
    pub fn edges(low: i64, high: i64) -> Self {
        PadDim { low, high, interior: 0 }
    }

    /// The size that `size` elements have with padding; may be negative.
    pub fn padded(&self, size: usize) -> i128 {
        // Each factor is below 2^64; the product may pass 2^127, and is then too large all the same.
        let interior = (size.saturating_sub(1) as i128).saturating_mul(self.interior as i128);
        let edges = i128::from(self.low) + i128::from(self.high);
        interior.saturating_add(size as i128).saturating_add(edges)
    }

    /// `1_2_3` or `1_2`.
    fn scan(scan: &mut Scan<'_>) -> Result<Self> {
        let low = scan.int()?;
        scan.expect("_")?;
        let high = scan.int()?;
        let interior = if scan.eat("_") { scan.size()? } else { 0 };
        Ok(PadDim { low, high, interior })
    }
}

/// `low_high_interior`
impl std::fmt::Display for PadDim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}_{}", self.low, self.high, self.interior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn pad(dims: &[(i64, i64, usize)], operands: &[&str]) -> String {
        let dims = dims.iter().map(|&(low, high, interior)| PadDim { low, high, interior });
        infer(Pad { dims: dims.collect() }, operands)
    }

    #[test]
    fn sizes() {
        assert_eq!(pad(&[(1, 2, 1)], &["f32[3]", "f32[]"]), "f32[8]");
        assert_eq!(pad(&[(-1, -1, 0)], &["f32[3]", "f32[]"]), "f32[1]");
        assert_eq!(pad(&[(1, 1, 9)], &["f32[0]", "f32[]"]), "f32[2]");
        assert_eq!(pad(&[(1, 1, 0)], &["f32[<=3]", "f32[]"]), "f32[<=5]");
        assert_eq!(pad(&[(1, 1, 0)], &["f32[?]", "f32[]"]), "f32[?]");
        assert_eq!(pad(&[], &["f32[]", "f32[]"]), "f32[]");
    }

    #[test]
    fn extreme_amounts_are_errors() {
        let most = (i64::MAX, i64::MAX, usize::MAX);
        assert_eq!(pad(&[most], &["f32[3]", "f32[]"]), "shape.C2");
        let huge = format!("u8[{}]", isize::MAX);
        assert_eq!(pad(&[most], &[&huge, "u8[]"]), "shape.C2");
        assert_eq!(pad(&[(i64::MIN, i64::MIN, 0)], &[&huge, "u8[]"]), "pad.C4");
    }

    #[test]
    fn rules() {
        assert_eq!(pad(&[], &["token[]", "f32[]"]), "pad.C1");
        assert_eq!(pad(&[(0, 0, 0)], &["f32[3]", "f32[1]"]), "pad.C2");
        assert_eq!(pad(&[(0, 0, 0)], &["f32[3]", "s32[]"]), "pad.C3");
        assert_eq!(pad(&[(-5, 1, 0)], &["f32[3]", "f32[]"]), "pad.C4");
        assert_eq!(pad(&[(0, 0, 0); 2], &["f32[3]", "f32[]"]), "pad.C5");
    }
}
