//! Which Fourier transforms the runtime's kernels compute, and how they are called.

use helio_ir::{ElementType, ops};
use helio_runtime::kernels::fft::{Fft, FftKind};
use helio_runtime::program::OwnMemory;

use super::{Bound, InstrShapes};

pub(super) fn fft(site: &InstrShapes<'_>, op: &ops::Fft) -> Option<Bound> {
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
    let part = operand.element().real_part();
    let scratch_bytes = fft.scratch_bytes(part.size_bytes());
    let is_single = match part {
        ElementType::F32 => true,
        ElementType::F64 => false,
        _ => return None,
    };
    let own_memory = OwnMemory {
        thread_bytes: fft.thread_bytes(part.size_bytes()),
        table_bytes: fft.table_bytes(part.size_bytes()),
    };
    let bound = Bound::with_own_memory("fft", own_memory, move |inputs, outputs, threads| {
        let [to, rest @ ..] = outputs else { return };
        let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
        match is_single {
            true => fft.f32(inputs[0], to, scratch, threads),
            false => fft.f64(inputs[0], to, scratch, threads),
        }
    });
    Some(bound.with_scratch(scratch_bytes))
}
