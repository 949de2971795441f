//! Fourier transforms.

use helio_ir::{ElementType, ops};
use helio_runtime::kernels::fft::{Fft, FftKind};

use super::{Bound, Site};

pub(super) fn fft(site: &Site<'_>, op: &ops::Fft) -> Option<Bound> {
    let [operand] = site.operands[..] else { return None };
    let kind = match op.kind {
        ops::FftKind::Fft => FftKind::Forward,
        ops::FftKind::Ifft => FftKind::Inverse,
        ops::FftKind::Rfft => FftKind::RealForward,
        ops::FftKind::Irfft => FftKind::RealInverse,
    };
    let outer = operand.rank().checked_sub(op.lengths.len())?;
    if op.lengths.is_empty() {
        return None;
    }
    let batch = operand.dims()[..outer].iter().product();
    let fft = Fft::new(kind, batch, op.lengths.clone());
    Some(match operand.element().real_part() {
        ElementType::F32 => Bound::new("fft", move |inputs, outputs, threads| {
            fft.f32(inputs[0], outputs[0], threads);
        }),
        ElementType::F64 => Bound::new("fft", move |inputs, outputs, threads| {
            fft.f64(inputs[0], outputs[0], threads);
        }),
        _ => return None,
    })
}
