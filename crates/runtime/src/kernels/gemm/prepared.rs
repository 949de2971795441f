//! Right operands that are packed once for any number of products: weights that do not change.
//!
//! What a product with many rows packs in each call, and asks memory for in rows that lie far apart, then
//! lies in the order in which tiles read it.

use smallvec::SmallVec;

use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::engine::Shared;
use super::number::{ProductType, Types};
use super::operand::{Each, Operand};
use super::panels::{pack_whole, whole_len};
use super::streamed::is_large;
use super::{Contraction, Epilogue, Finish, Out, RightOperand};
use crate::Threads;
use crate::kernels::bytes::{cast, cast_mut};
use crate::kernels::cache::is_third_level_far;
use crate::kernels::isa::Isa;

/// The fewest rows of a product whose right operand is packed: with fewer it is read where it lies, once.
const LEAST_ROWS: usize = 5;
/// The same, of one whose rows are as the product wants them, if the third-level cache is near. With fewer rows it is
/// read where it lies, about as fast, in half of the memory.
const LEAST_ROWS_IN_ORDER: usize = 64;
/// The most: with more, packing takes no more than a hundredth of the product.
const MOST_ROWS: usize = 1024;
/// The same, of one that has to be turned around: to pack an element takes as long as some 50 rows are multiplied with it.
const MOST_ROWS_TURNED: usize = 4096;
/// The fewest multiplications of a product whose right operand is packed to be turned around, or to come from a
/// third-level cache that is far in the order in which it is read: with fewer, other things take longer.
const LEAST_WORK: usize = 1 << 17;

/// How the right operand of products lies in memory: what is packed of it is the same if this is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RightLayout {
    pub(super) cols: Axis,
    pub(super) steps: Axis,
    pub(super) form: Form,
}

/// What a right operand is packed as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Panels of columns.
    Panels,
    /// All columns of a step, step by step.
    Rows,
    /// Panels of columns, of a window of these sizes that is turned around in some dimensions.
    Turned { window: SmallVec<[(usize, bool); 2]> },
    /// Panels of sums of taps, whose windows are turned around in some dimensions.
    Points { reversed: SmallVec<[bool; 2]> },
    /// What each phase of a convolution takes, and where its part of the kernel begins.
    Phases(Vec<(usize, RightLayout)>),
}

impl Contraction {
    /// How its right operand lies in memory.
    pub fn right_layout(&self) -> RightLayout {
        let (cols, steps) = (self.rhs_cols.clone(), self.rhs_steps.clone());
        RightLayout { cols, steps, form: Form::Panels }
    }

    /// The bytes that the right operand takes when it is packed ([`Contraction::pack`]), if products of
    /// these types are faster with one that is.
    pub fn packed_bytes(&self, types: Types) -> Option<usize> {
        let (rows, cols, steps) = (self.lhs_rows.len(), self.rhs_cols.len(), self.rhs_steps.len());
        let is_known = types == Types::same(ProductType::F32) && self.batch[0].len() == 1;
        let is_large = is_large::<f32>(cols, steps);
        let work = rows.saturating_mul(cols).saturating_mul(steps);
        let is_enough = is_large || work >= LEAST_WORK;
        let pays = match self.rhs_cols.stride() {
            Some(1) if is_third_level_far() => {
                (LEAST_ROWS..=MOST_ROWS).contains(&rows) && is_enough
            }
            Some(1) => (LEAST_ROWS_IN_ORDER..=MOST_ROWS).contains(&rows) && is_large,
            _ => (LEAST_ROWS..=MOST_ROWS_TURNED).contains(&rows) && is_enough,
        };
        (is_known && pays).then(|| self.packed_len(Isa::best()) * size_of::<f32>())
    }

    /// Packs the right operand of products of `f32`, all of it.
    ///
    /// # Panics
    /// If it is longer than its slice, bytes are not aligned for their type, or `packed` has not as many
    /// bytes as [`Contraction::packed_bytes`] says.
    pub fn pack(&self, rhs: &[u8], packed: &mut [u8], threads: Threads<'_>) {
        self.pack_on(Isa::best(), cast(rhs), cast_mut(packed), threads);
    }

    /// Computes the product of `f32` from a right operand that [`Contraction::pack`] has packed. Else as
    /// [`Contraction::compute`].
    ///
    /// # Panics
    /// As there, if `packed` has not as many bytes as [`Contraction::packed_bytes`] says, and if there is a
    /// batch of products.
    pub fn compute_packed(
        &self,
        lhs: &[u8],
        packed: &[u8],
        out: &mut [u8],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        let operands = [cast(lhs), cast(packed)];
        self.compute_packed_on(Isa::best(), operands, cast_mut(out), finish, threads);
    }

    /// The words that the right operand takes when it is packed.
    pub(super) fn packed_len(&self, isa: Isa) -> usize {
        whole_len(f32::instructions(isa).format(), self.rhs_cols.len(), self.rhs_steps.len())
    }

    pub(super) fn pack_on(&self, isa: Isa, rhs: &[f32], packed: &mut [f32], threads: Threads<'_>) {
        assert_eq!(packed.len(), self.packed_len(isa), "room for the panels");
        let (cols, steps) = (&self.rhs_cols, &self.rhs_steps);
        let format = f32::instructions(isa).format();
        Each::all(&rhs).with_source(isa, 0, cols, steps, &mut |source| {
            pack_whole(format, source, cols.len(), steps.len(), packed, threads);
        });
    }

    pub(super) fn compute_packed_on(
        &self,
        isa: Isa,
        [lhs, packed]: [&[f32]; 2],
        out: &mut [f32],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) {
        assert_eq!(packed.len(), self.packed_len(isa), "all panels");
        let out = Out { len: out.len(), places: &Shared(out.as_mut_ptr()) };
        let epilogue = Epilogue { part: None, rows: finish };
        let operands = (&Each::all(&lhs) as &dyn Operand<f32>, RightOperand::Panels(packed));
        // SAFETY: `out` is borrowed mutably.
        unsafe { self.run_with((f32::instructions(isa), isa), operands, out, epilogue, threads) };
    }
}
