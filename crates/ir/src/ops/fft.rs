//! `fft`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

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
        let _ = cx;
        Err(Error::unimplemented("infer fft"))
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
