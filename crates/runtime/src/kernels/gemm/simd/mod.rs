//! The arithmetic of a product's innermost loop, for each instruction set and type of element.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{Avx2F32, Avx2F64, Avx2I32, Avx2I64};
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::{Avx512Bf16, Avx512F32, Avx512F64, Avx512I32, Avx512I64, Avx512Vnni};
pub(super) use portable::{MulAdd, Portable};

use super::tile::Tile;
use crate::kernels::bytes::Plain;

/// Vectors of accumulators and the operations of a product on them. A value proves that the
/// machine has the instructions.
pub(super) trait Simd: Copy + Send + Sync + 'static {
    /// An element of a packed operand; several numbers if one instruction multiplies several.
    type Word: Plain + Default;
    /// A sum.
    type Acc: Plain + Default;
    /// `LANES` sums.
    type Vec: Copy;
    /// `LANES` words.
    type Words: Copy;
    /// Which lanes of a vector count.
    type Mask: Copy;

    /// Sums in a vector.
    const LANES: usize;
    /// The most rows of a tile.
    const ROWS: usize;
    /// The most vectors in a row of a tile.
    const VECS: usize;

    /// The function for tiles of `rows` (1 to `ROWS`) by `vecs` (1 to `VECS`) vectors.
    fn tile(self, rows: usize, vecs: usize, packed: bool) -> Tile<Self>;

    /// Zeros.
    fn zero() -> Self::Vec;

    /// The first `lanes` lanes; at most `LANES`.
    fn mask(lanes: usize) -> Self::Mask;

    /// Loads `LANES` words.
    ///
    /// # Safety
    /// The features are there, and so many words may be read.
    unsafe fn load(from: *const Self::Word) -> Self::Words;

    /// Loads the words of these lanes, zeros elsewhere.
    ///
    /// # Safety
    /// The features are there, and so many words may be read.
    unsafe fn load_masked(from: *const Self::Word, mask: Self::Mask) -> Self::Words;

    /// One word in all lanes.
    ///
    /// # Safety
    /// The features are there, and the word may be read.
    unsafe fn splat(from: *const Self::Word) -> Self::Words;

    /// `sum + a * b`.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn mul_add(a: Self::Words, b: Self::Words, sum: Self::Vec) -> Self::Vec;

    /// Writes these lanes, added to what is there if `add`.
    ///
    /// # Safety
    /// The features are there, and so many sums may be read and written.
    unsafe fn store(to: *mut Self::Acc, mask: Self::Mask, sums: Self::Vec, add: bool);
}
