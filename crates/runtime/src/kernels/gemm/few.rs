//! Few rows or columns of numbers of 16 bits: they become `f32` as they are loaded, from where they lie.

use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::dots::SIDE_BY_SIDE;
use super::engine::Shared;
use super::number::{Bf16, Element, F16, ProductType};
use super::operand::{Each, Operand};
use super::simd::{Avx512WideBf16, Avx512WideF16};
use super::tile::Tiled;
use super::types::Call;
use super::{Contraction, Epilogue, Out};
use crate::kernels::bytes::{Plain, cast};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// The most sums that have a place of their own until they are converted, all at once.
const MOST_SUMS: usize = 1 << 22;

impl Contraction {
    /// Of numbers of 16 bits that become `f32` one by one, if there are few rows or columns and instructions for
    /// it; otherwise returns false. The larger operand is read once, in place: to pack it would take longer than to
    /// multiply it.
    pub(super) fn compute_few(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, lhs, rhs, .. } = call;
        let along_steps = self.lhs_steps.stride() == Some(1);
        let are_few = |axis: &Axis| axis.len() <= SIDE_BY_SIDE;
        let are_few = are_few(&self.lhs_rows) || are_few(&self.rhs_cols) && along_steps;
        let sums = [self.batch[0].len(), self.lhs_rows.len(), self.rhs_cols.len()];
        let sums = sums.into_iter().fold(1, usize::saturating_mul);
        if !are_few || !f32::makes(types.out) || sums > MOST_SUMS {
            return false;
        }
        match (types.lhs, types.rhs) {
            (ProductType::Bf16, ProductType::Bf16) => Avx512WideBf16::get(isa)
                .map(|tiled| self.compute_wide::<Bf16>(tiled, [lhs, rhs].map(cast), call, out)),
            (ProductType::F16, ProductType::F16) => Avx512WideF16::get(isa)
                .map(|tiled| self.compute_wide::<F16>(tiled, [lhs, rhs].map(cast), call, out)),
            _ => None,
        }
        .is_some()
    }

    /// With a word for each number, which instructions make an `f32` of.
    fn compute_wide<W: Plain + Default + Element<W>>(
        &self,
        tiled: &dyn Tiled<W, f32>,
        [lhs, rhs]: [&[W]; 2],
        call: &Call<'_>,
        out: &mut [u8],
    ) {
        let &Call { isa, types, epilogue, threads, .. } = call;
        let operands: [&dyn Operand<W>; 2] = [&Each::all(&lhs), &Each::all(&rhs)];
        f32::with_places(types.out, out, &mut |out| {
            if out.places.sums().is_some() {
                // SAFETY: the result is borrowed mutably.
                unsafe { self.run(tiled, isa, operands, out, epilogue, threads) };
                return;
            }
            // Sums have a place first, so that what reads operands in place can write them.
            let (batches, rows, cols) =
                (self.batch[0].len(), self.lhs_rows.len(), self.rhs_cols.len());
            let dense = Contraction {
                batch: [
                    self.batch[0].clone(),
                    self.batch[1].clone(),
                    Axis::new([(batches, rows * cols)]),
                ],
                out_rows: Axis::new([(rows, cols)]),
                ..self.clone()
            };
            scratch::with(batches * rows * cols, |sums: &mut [f32]| {
                let places = &Shared(sums.as_mut_ptr());
                let (all, none) = (Out { len: sums.len(), places }, Epilogue::default());
                // SAFETY: `sums` is borrowed mutably.
                unsafe { dense.run(tiled, isa, operands, all, none, threads) };
                // SAFETY: the result is borrowed mutably.
                unsafe { self.convert(isa, sums, out, epilogue) };
            });
        });
    }

    /// Writes dense sums to their places, and calls the epilogue.
    ///
    /// # Safety
    /// Nothing else accesses the places of `out`.
    unsafe fn convert(&self, isa: Isa, sums: &[f32], out: Out<'_, f32>, epilogue: Epilogue<'_>) {
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        if sums.is_empty() {
            return;
        }
        let last = self.batch[2].last() + self.out_rows.last() + cols - 1;
        assert!(last < out.len, "the result lies in its memory");
        for (batch, sums) in sums.chunks_exact(rows * cols).enumerate() {
            let start = self.batch[2].offset(batch);
            for (row, sums) in sums.chunks_exact(cols).enumerate() {
                // SAFETY: the caller's promise; the row lies in memory, as just checked.
                unsafe { out.places.write(isa, start + self.out_rows.offset(row), 1, sums) };
            }
            if let Some(finish) = epilogue.rows {
                assert!(self.row_len().is_some(), "the rows are neighbours");
                // SAFETY: the rows lie in memory, as checked, are neighbours, and complete.
                let bytes = unsafe { out.places.bytes(start, rows * cols) };
                finish(bytes.len() / (rows * cols) * start, bytes);
            }
        }
    }
}
