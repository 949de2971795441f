//! Few rows or columns of numbers of 8 and 16 bits: they become words as they are loaded, from where they lie.

use super::Contraction;
use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::dots::SIDE_BY_SIDE;
use super::number::{Bf16, Element, F16, ProductType};
use super::operand::{Each, Operand};
use super::simd::{Avx512WideBf16, Avx512WideF16, Avx512WideI8, Avx512WideU8};
use super::tile::Tiled;
use super::types::{Call, MOST_SUMS};
use crate::kernels::bytes::{Plain, cast};

/// The most steps of bytes that meet as many rows as are few.
const MAX_BYTES: usize = 256;

impl Contraction {
    /// Of numbers of 8 or 16 bits that become words one by one, if there are few rows or columns and instructions for
    /// it; otherwise returns false. The larger operand is read once, in place: to pack it would take longer than to
    /// multiply it.
    pub(super) fn compute_few(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, lhs, rhs, .. } = call;
        if !self.are_few(types.lhs.size() == 1) || self.sums() > MOST_SUMS {
            return false;
        }
        match (types.lhs, types.rhs) {
            (ProductType::Bf16, ProductType::Bf16) if f32::makes(types.out) => {
                Avx512WideBf16::get(isa)
                    .map(|tiled| self.compute_wide::<Bf16, _>(tiled, [lhs, rhs], call, out))
            }
            (ProductType::F16, ProductType::F16) if f32::makes(types.out) => {
                Avx512WideF16::get(isa)
                    .map(|tiled| self.compute_wide::<F16, _>(tiled, [lhs, rhs], call, out))
            }
            (ProductType::S8, ProductType::S8) if i32::makes(types.out) => Avx512WideI8::get(isa)
                .map(|tiled| self.compute_wide::<i8, _>(tiled, [lhs, rhs], call, out)),
            (ProductType::U8, ProductType::U8) if i32::makes(types.out) => Avx512WideU8::get(isa)
                .map(|tiled| self.compute_wide::<u8, _>(tiled, [lhs, rhs], call, out)),
            _ => None,
        }
        .is_some()
    }

    /// Whether there are few rows or columns, of bytes or of wider numbers, and the other operand is read as it lies.
    fn are_few(&self, are_bytes: bool) -> bool {
        let are_few = |axis: &Axis| axis.len() <= SIDE_BY_SIDE;
        let are_neighbours = |axis: &Axis| axis.stride() == Some(1);
        let (few_rows, few_cols) = (are_few(&self.lhs_rows), are_few(&self.rhs_cols));
        let lhs_along = are_neighbours(&self.lhs_steps);
        if !are_bytes {
            return few_rows || few_cols && lhs_along;
        }
        // (What both operands' bytes are not neighbours along, each product of a batch would put in order.)
        let along = are_neighbours(&self.rhs_steps) && (lhs_along || self.batch[0].len() == 1);
        // With as many rows as are few and many steps, instructions that take four bytes at once catch up.
        let is_short = self.lhs_rows.len() < SIDE_BY_SIDE || self.lhs_steps.len() <= MAX_BYTES;
        let columns_along = lhs_along && (along || self.batch[0].len() == 1);
        few_rows && (are_neighbours(&self.rhs_cols) || along && is_short)
            || few_cols && columns_along
    }

    /// With a word for each number, which instructions make of it.
    fn compute_wide<W: Plain + Default + Element<W>, T: Arithmetic>(
        &self,
        tiled: &dyn Tiled<W, T>,
        operands: [&[u8]; 2],
        call: &Call<'_>,
        out: &mut [u8],
    ) {
        let [lhs, rhs] = operands.map(cast::<W>);
        let operands: [&dyn Operand<W>; 2] = [&Each::all(&lhs), &Each::all(&rhs)];
        self.compute_sums(tiled, operands, call, out);
    }
}
