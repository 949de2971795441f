//! `slice`: a box of an array, at a constant place and with constant strides.

use super::Arity;
use super::check::ensure_one_per_dim;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// The elements in a box at regular distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index, for each dimension.
    pub starts: Vec<usize>,
    /// The end, exclusive, for each dimension.
    pub limits: Vec<usize>,
    /// The distance, at least 1, for each dimension.
    pub strides: Vec<usize>,
}

impl Slice {
    /// All elements from `starts` up to `limits`.
    pub fn dense(starts: Vec<usize>, limits: Vec<usize>) -> Self {
        let strides = vec![1; starts.len()];
        Slice { starts, limits, strides }
    }
}

impl OpDef for Slice {
    const OPCODE: &'static str = "slice";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("slice.C1", 0)?;
        ensure_one_per_dim("slice.C2", "starts", self.starts.len(), operand)?;
        ensure_one_per_dim("slice.C2", "limits", self.limits.len(), operand)?;
        ensure_one_per_dim("slice.C2", "strides", self.strides.len(), operand)?;
        let mut dims = Vec::with_capacity(operand.rank());
        for (d, (size, kind)) in operand.dims_and_kinds().enumerate() {
            let (start, limit, stride) = (self.starts[d], self.limits[d], self.strides[d]);
            ensure!(
                stride >= 1,
                "slice.C3",
                "dimension {d}: the stride is {stride}, must be at least 1"
            );
            ensure!(
                start <= limit,
                "slice.C4",
                "dimension {d}: the limit {limit} is below the start {start}"
            );
            ensure!(
                kind == DimKind::Unbounded || limit <= size,
                "slice.C5",
                "dimension {d}: the limit {limit} is beyond the end of the operand {operand}"
            );
            let size = (limit - start).div_ceil(stride);
            // A single element is meant to be there, whatever the size at run time.
            let is_bounded = kind == DimKind::Bounded && size != 1;
            dims.push((size, if is_bounded { DimKind::Bounded } else { DimKind::Static }));
        }
        ArrayShape::from_dims(operand.element(), dims).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let ranges = attrs.parse("slice", |scan| {
            scan.list('{', '}', |scan| {
                scan.expect("[")?;
                let start = scan.size()?;
                scan.expect(":")?;
                let limit = scan.size()?;
                let stride = if scan.eat(":") { scan.size()? } else { 1 };
                scan.expect("]")?;
                Ok((start, limit, stride))
            })
        })?;
        let ranges = attrs.require("slice", ranges)?;
        Ok(Slice {
            starts: ranges.iter().map(|range| range.0).collect(),
            limits: ranges.iter().map(|range| range.1).collect(),
            strides: ranges.iter().map(|range| range.2).collect(),
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let dense = self.strides.iter().all(|&stride| stride == 1);
        let ranges = self.starts.iter().zip(&self.limits).zip(&self.strides);
        let ranges: Vec<_> = ranges
            .map(|((start, limit), stride)| match dense {
                true => format!("[{start}:{limit}]"),
                false => format!("[{start}:{limit}:{stride}]"),
            })
            .collect();
        attrs.put("slice", format_args!("{{{}}}", ranges.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn slice(starts: &[usize], limits: &[usize], strides: &[usize], operand: &str) -> String {
        let [starts, limits, strides] = [starts, limits, strides].map(<[usize]>::to_vec);
        infer(Slice { starts, limits, strides }, &[operand])
    }

    #[test]
    fn sizes() {
        assert_eq!(slice(&[2], &[4], &[1], "f32[5]"), "f32[2]");
        assert_eq!(slice(&[0], &[5], &[2], "f32[5]"), "f32[3]");
        assert_eq!(slice(&[5], &[5], &[9], "f32[5]"), "f32[0]");
        assert_eq!(slice(&[0], &[5], &[usize::MAX], "f32[5]"), "f32[1]");
        assert_eq!(slice(&[], &[], &[], "f32[]"), "f32[]");
    }

    #[test]
    fn kinds() {
        assert_eq!(slice(&[0], &[5], &[1], "f32[<=5]"), "f32[<=5]");
        assert_eq!(slice(&[1], &[4], &[1], "f32[<=5]"), "f32[<=3]");
        assert_eq!(slice(&[0], &[1], &[1], "f32[<=5]"), "f32[1]");
        assert_eq!(slice(&[0], &[7], &[1], "f32[?]"), "f32[7]");
    }

    #[test]
    fn rules() {
        assert_eq!(slice(&[], &[], &[], "()"), "slice.C1");
        assert_eq!(slice(&[0], &[1], &[1, 1], "f32[5]"), "slice.C2");
        assert_eq!(slice(&[0], &[1], &[0], "f32[5]"), "slice.C3");
        assert_eq!(slice(&[3], &[2], &[1], "f32[5]"), "slice.C4");
        assert_eq!(slice(&[3], &[6], &[1], "f32[5]"), "slice.C5");
    }
}
