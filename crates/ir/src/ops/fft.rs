//! `fft`: Fourier transforms along the last dimensions.

use super::Arity;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// Discrete Fourier transform over the last dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fft {
    /// Forward or inverse, complex or real.
    pub kind: FftKind,
    /// The length of each transformed dimension in the time domain.
    pub lengths: Vec<usize>,
}

impl OpDef for Fft {
    const OPCODE: &'static str = "fft";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let operand = cx.array("fft.C1", 0)?;
        let count = self.lengths.len();
        ensure!(
            (1..=3).contains(&count),
            "fft.C2",
            "fft_length={:?}: must be 1, 2 or 3 lengths",
            self.lengths
        );
        ensure!(
            operand.rank() >= count,
            "fft.C3",
            "the operand must have a dimension for each of fft_length={:?}, is {operand}",
            self.lengths
        );
        let element = operand.element();
        let result = match self.kind {
            FftKind::Fft | FftKind::Ifft => element.is_complex().then_some(element),
            FftKind::Irfft => element.is_complex().then(|| element.real_part()),
            FftKind::Rfft => element.to_complex(),
        };
        let required = if self.kind == FftKind::Rfft { "f32 or f64" } else { "complex numbers" };
        let Some(result) = result else {
            return Err(crate::Error::rule(
                "fft.C4",
                format!("fft_type={}: the operand must hold {required}, is {operand}", self.kind),
            ));
        };
        let mut dims: Vec<_> = (0..operand.rank()).map(|d| operand.dim(d)).collect();
        let first = operand.rank() - count;
        for (i, &length) in self.lengths.iter().enumerate() {
            let (size, kind) = dims[first + i];
            let is_last = i + 1 == count;
            // A real signal of length n has n/2+1 independent frequencies; an empty one has none.
            let frequencies = if length == 0 { 0 } else { length / 2 + 1 };
            let fits = match self.kind {
                // XLA also takes the one frequency that rounding makes of length 0.
                FftKind::Irfft if is_last => size == frequencies || (length, size) == (0, 1),
                _ => size == length,
            };
            ensure!(
                fits || kind == DimKind::Unbounded,
                "fft.C5",
                "fft_type={}, fft_length={:?}: dimension {} of {operand} must have the size {}",
                self.kind,
                self.lengths,
                first + i,
                if self.kind == FftKind::Irfft && is_last { frequencies } else { length }
            );
            if is_last && matches!(self.kind, FftKind::Rfft | FftKind::Irfft) {
                // The length says what an unknown size is.
                let known = if kind == DimKind::Unbounded { DimKind::Static } else { kind };
                let size = if self.kind == FftKind::Rfft { frequencies } else { length };
                dims[first + i] = (size, known);
            }
        }
        let (sizes, kinds) = dims.into_iter().unzip();
        ArrayShape::with_kinds(result, sizes, kinds).map(Shape::Array)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let kind = |attrs: &mut AttrReader<'_>, name: &str| {
            attrs.parse(name, |scan| FftKind::from_word(scan.word()?))
        };
        Ok(Fft {
            kind: attrs.needed("fft_type", kind)?,
            lengths: attrs.needed("fft_length", AttrReader::sizes)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.put("fft_type", self.kind);
        attrs.list("fft_length", &self.lengths);
    }
}

crate::ops::words! {
    /// Which transform.
    FftKind {
        /// Complex to complex, forward.
        Fft = "FFT",
        /// Complex to complex, inverse, scaled by 1/N.
        Ifft = "IFFT",
        /// Real to complex, forward; the last dimension becomes n/2+1.
        Rfft = "RFFT",
        /// Complex to real, inverse, scaled by 1/N.
        Irfft = "IRFFT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    fn fft(kind: FftKind, lengths: &[usize]) -> Fft {
        Fft { kind, lengths: lengths.to_vec() }
    }

    #[test]
    fn results() {
        assert_eq!(infer(fft(FftKind::Fft, &[3]), &["c64[<=2,3]"]), "c64[<=2,3]");
        assert_eq!(infer(fft(FftKind::Rfft, &[2, 5]), &["f64[7,2,5]"]), "c128[7,2,3]");
        assert_eq!(infer(fft(FftKind::Irfft, &[2, 5]), &["c64[2,3]"]), "f32[2,5]");
        assert_eq!(infer(fft(FftKind::Irfft, &[4]), &["c64[3]"]), "f32[4]");
        assert_eq!(infer(fft(FftKind::Rfft, &[5]), &["f32[?]"]), "c64[3]");
        assert_eq!(infer(fft(FftKind::Rfft, &[0]), &["f32[0]"]), "c64[0]");
        assert_eq!(infer(fft(FftKind::Irfft, &[0]), &["c64[0]"]), "f32[0]");
        assert_eq!(infer(fft(FftKind::Irfft, &[0]), &["c64[1]"]), "f32[0]");
    }

    #[test]
    fn rules() {
        assert_eq!(infer(fft(FftKind::Fft, &[]), &["c64[3]"]), "fft.C2");
        assert_eq!(infer(fft(FftKind::Fft, &[3, 3]), &["c64[3]"]), "fft.C3");
        assert_eq!(infer(fft(FftKind::Rfft, &[3]), &["f16[3]"]), "fft.C4");
        assert_eq!(infer(fft(FftKind::Irfft, &[3]), &["f32[2]"]), "fft.C4");
        assert_eq!(infer(fft(FftKind::Ifft, &[4]), &["c64[3]"]), "fft.C5");
        assert_eq!(infer(fft(FftKind::Irfft, &[usize::MAX]), &["c64[?]"]), "shape.C2");
    }
}
