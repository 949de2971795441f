//! Few rows or columns of numbers of 16 bits: they become `f32` as they are loaded, from where they lie.

use super::Contraction;
use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::dots::SIDE_BY_SIDE;
use super::number::{Bf16, Element, F16, ProductType};
use super::operand::{Each, Operand};
use super::simd::{Avx512WideBf16, Avx512WideF16};
use super::tile::Tiled;
use super::types::{Call, MOST_SUMS};
use crate::kernels::bytes::{Plain, cast};

impl Contraction {
    /// Of numbers of 16 bits that become `f32` one by one, if there are few rows or columns and instructions for
    /// it; otherwise returns false. The larger operand is read once, in place: to pack it would take longer than to
    /// multiply it.
    pub(super) fn compute_few(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, lhs, rhs, .. } = call;
        let along_steps = self.lhs_steps.stride() == Some(1);
        let are_few = |axis: &Axis| axis.len() <= SIDE_BY_SIDE;
        let are_few = are_few(&self.lhs_rows) || are_few(&self.rhs_cols) && along_steps;
        if !are_few || !f32::makes(types.out) || self.sums() > MOST_SUMS {
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
        let operands: [&dyn Operand<W>; 2] = [&Each::all(&lhs), &Each::all(&rhs)];
        self.compute_sums(tiled, operands, call, out);
    }
}
