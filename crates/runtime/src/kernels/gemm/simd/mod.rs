//! The arithmetic of a product's innermost loop, for each instruction set and type of element.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{Avx2F32, Avx2F64, Avx2I32, Avx2I64, Avx2Pairs};
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::{
    Avx512Bf16, Avx512F32, Avx512F64, Avx512I32, Avx512I64, Avx512Vnni, Avx512WideBf16,
    Avx512WideF16, Avx512WideI8, Avx512WideU8,
};
pub(super) use portable::{MulAdd, Portable};

use std::marker::PhantomData;
use std::ops::Range;

use super::conv::{
    ChannelWindows, Channels, GroupWindows, Places, Planes, TAPS, TileInput, TileResults, Windows,
    of_taps,
};
use super::dots::Dots;
use super::sweep::Sweep;
use super::tile::Tiled;
use crate::kernels::bytes::Plain;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::isa::Isa;
use crate::kernels::window::{RowFolds, RowPart};

/// Vectors of accumulators and the operations of a product on them. A value proves that the machine
/// has the instructions.
pub(in crate::kernels) trait Simd: Copy + Send + Sync + 'static {
    /// An element of an operand; several numbers if one instruction multiplies several.
    type Word: Plain + Default;
    /// A sum.
    type Acc: MulAdd;
    /// `LANES` sums.
    type Vec: Copy;
    /// `LANES` words.
    type Words: Copy;
    /// Which lanes of a vector count.
    type Mask: Copy;

    /// Neighbouring sums that are one vector.
    const LANES: usize;

    /// Calls `body`, compiled for the instructions if it is inlined.
    fn vectorise<R>(self, body: impl FnOnce() -> R) -> R;

    /// Zeros.
    fn zero() -> Self::Vec;

    /// The first `lanes` lanes; at most `LANES`.
    fn mask(lanes: usize) -> Self::Mask;

    /// Loads `LANES` words.
    ///
    /// # Safety
    /// The processor has the instructions, and `LANES` words may be read.
    unsafe fn load(from: *const Self::Word) -> Self::Words;

    /// Loads the words of these lanes, zeros elsewhere.
    ///
    /// # Safety
    /// The processor has the instructions, and the words of these lanes may be read.
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

    /// The totals of all lanes of each vector.
    ///
    /// # Safety
    /// The features are there.
    #[inline(always)]
    unsafe fn totals(vectors: [Self::Vec; 4]) -> [Self::Acc; 4] {
        vectors.map(|sums| {
            let mut lanes = [Self::Acc::default(); 16];
            // SAFETY: no vector has more lanes; the caller's promise for the features.
            unsafe { Self::store_all(lanes.as_mut_ptr(), sums, false) };
            let mut count = Self::LANES;
            while count > 1 {
                count /= 2;
                for i in 0..count {
                    lanes[i] = lanes[i].add(lanes[i + count]);
                }
            }
            lanes[0]
        })
    }

    /// Writes these lanes, added to what is there if `add`.
    ///
    /// # Safety
    /// The processor has the instructions, and the sums of these lanes may be read and written.
    unsafe fn store(to: *mut Self::Acc, mask: Self::Mask, sums: Self::Vec, add: bool);

    /// Writes all lanes, added to what is there if `add`.
    ///
    /// # Safety
    /// As for [`Simd::store`].
    #[inline(always)]
    unsafe fn store_all(to: *mut Self::Acc, sums: Self::Vec, add: bool) {
        // SAFETY: the caller's promise.
        unsafe { Self::store(to, Self::mask(Self::LANES), sums, add) };
    }
}

/// Vectors that there are instructions for halves of.
pub(super) trait Halved: Simd {
    /// The halves.
    type Half: Simd<Word = Self::Word, Acc = Self::Acc>;

    /// One word in all lanes, of a vector and of the lower half of it.
    ///
    /// # Safety
    /// The features are there, and the word may be read.
    unsafe fn splat_both(from: *const Self::Word) -> (Self::Words, <Self::Half as Simd>::Words);
}

/// Vectors of numbers that are taken apart, added and subtracted.
pub(in crate::kernels) trait Sums:
    Simd<Word = f32, Acc = f32, Words = <Self as Simd>::Vec>
{
    /// The lanes of a range, which ends at `LANES` at most.
    fn mask_of(lanes: Range<usize>) -> Self::Mask;

    /// Every second word of two vectors, from the first on.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn even(low: Self::Words, high: Self::Words) -> Self::Words;

    /// Every second word of two vectors, from the second on.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn odd(low: Self::Words, high: Self::Words) -> Self::Words;

    /// [`Fold::Add`](crate::kernels::number::Fold::Add) of each two words.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn add(a: Self::Vec, b: Self::Vec) -> Self::Vec;

    /// `a - b` of each two words.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn sub(a: Self::Vec, b: Self::Vec) -> Self::Vec;
}

/// Vectors of which any lanes are chosen, and which are folded.
pub(in crate::kernels) trait Lanes: Sums {
    /// Which word each lane takes.
    type Choice: Copy;

    /// The choice of these words, a number below `LANES` for each lane.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn choice(words: &[i32; 16]) -> Self::Choice;

    /// For each lane the word of the lane that is chosen.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn pick(words: Self::Words, choice: Self::Choice) -> Self::Words;

    /// Loads the words of these lanes, and has those of `others` elsewhere.
    ///
    /// # Safety
    /// The processor has the instructions, and the words of these lanes may be read.
    unsafe fn load_or(from: *const Self::Word, mask: Self::Mask, others: Self::Vec) -> Self::Vec;

    /// [`Fold::Max`](crate::kernels::number::Fold::Max) of each two words.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn max(a: Self::Vec, b: Self::Vec) -> Self::Vec;

    /// [`Fold::Min`](crate::kernels::number::Fold::Min) of each two words.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn min(a: Self::Vec, b: Self::Vec) -> Self::Vec;

    /// The same as [`Lanes::max`] of words that are numbers.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn max_of_numbers(a: Self::Vec, b: Self::Vec) -> Self::Vec;

    /// The same as [`Lanes::min`] of words that are numbers.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn min_of_numbers(a: Self::Vec, b: Self::Vec) -> Self::Vec;

    /// These lanes, and those where either word is NaN.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn see_nan(seen: Self::Mask, a: Self::Vec, b: Self::Vec) -> Self::Mask;

    /// Whether there are any lanes.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn is_any(lanes: Self::Mask) -> bool;
}

/// Products that need no tiles.
pub(super) trait Loops<W, A>: Tiled<W, A> {
    /// Computes dots.
    ///
    /// # Safety
    /// As for [`Dots::run`], but for the features.
    unsafe fn dots(&self, dots: &Dots<'_, W, A>);

    /// Computes a sweep.
    ///
    /// # Safety
    /// As for [`Sweep::run`], but for the features.
    unsafe fn sweep(&self, sweep: &Sweep<'_, W, A>);

    /// Computes the channels of groups.
    ///
    /// # Safety
    /// As for [`Channels::run`], but for the features.
    unsafe fn channels(&self, channels: &Channels<'_, W, A>);

    /// Computes a strip of rows of some planes.
    ///
    /// # Safety
    /// As for [`Planes::run`], but for the features.
    unsafe fn planes(
        &self,
        of: &Planes<'_, W, A>,
        planes: Range<usize>,
        strip: Range<usize>,
        region: &mut [W],
    );
}

/// Convolutions whose windows have a few rows, and folds of such windows.
pub(in crate::kernels) trait WindowLoops<W, A>: Send + Sync {
    /// Computes rows of some planes.
    ///
    /// # Safety
    /// As for [`Windows::run`], but for the features.
    unsafe fn windows(&self, of: &Windows<'_, W, A>, planes: Range<usize>, rows: Range<usize>);

    /// Computes rows of some channels of an image.
    ///
    /// # Safety
    /// As for [`ChannelWindows::run`], but for the features.
    unsafe fn channel_windows(
        &self,
        of: &ChannelWindows<'_, W, A>,
        image: usize,
        rows: Range<usize>,
        channels: Range<usize>,
    );

    /// Computes rows of some outputs of an image, with a region for a part of the input.
    ///
    /// # Safety
    /// As for [`GroupWindows::run`], but for the features.
    unsafe fn group_windows(
        &self,
        of: &GroupWindows<'_, W, A>,
        image: usize,
        rows: Range<usize>,
        outputs: Range<usize>,
        region: &mut [W],
    );

    /// Folds the windows at some positions.
    ///
    /// # Safety
    /// As for [`RowFolds::run`], but for the features.
    unsafe fn fold_rows(&self, of: &RowFolds<'_>, part: RowPart);
}

/// What Winograd's convolutions compute besides products.
pub(super) trait SumLoops: Send + Sync {
    /// Writes the sums of a row of tiles of the input.
    ///
    /// # Safety
    /// As for [`TileInput::of_tiles`], but for the features.
    unsafe fn of_tiles(&self, input: &TileInput<'_>, row: usize, points: Disjoint<'_, f32>);

    /// Writes the sums of some features of the input.
    ///
    /// # Safety
    /// As for [`TileInput::of_features`], but for the features of the processor.
    unsafe fn of_features(
        &self,
        input: &TileInput<'_>,
        features: Range<usize>,
        points: Disjoint<'_, f32>,
    );

    /// Writes the sums of the taps of a feature.
    ///
    /// # Safety
    /// As for [`of_taps`], but for the features of the processor.
    unsafe fn of_taps(
        &self,
        taps: &[f32],
        taps_at: &[usize; TAPS],
        points: Disjoint<'_, f32>,
        place: (usize, usize),
    );

    /// Computes the results of a row of tiles. Returns whether all are finite.
    ///
    /// # Safety
    /// As for [`TileResults::run`], but for the features.
    unsafe fn results(&self, results: &TileResults<'_>, row: usize, to: Places) -> bool;
}

/// The loops for sums of `f32` by these instructions.
pub(super) fn sum_loops(isa: Isa) -> &'static dyn SumLoops {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = Avx512F32::get(isa) {
            return simd;
        }
        if let Some(simd) = Avx2F32::get(isa) {
            return simd;
        }
    }
    let _ = isa;
    &Portable(PhantomData::<f32>)
}

impl<S: Sums> SumLoops for S {
    unsafe fn of_tiles(&self, input: &TileInput<'_>, row: usize, points: Disjoint<'_, f32>) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { input.of_tiles::<S>(row, points) },
        );
    }

    unsafe fn of_features(
        &self,
        input: &TileInput<'_>,
        features: Range<usize>,
        points: Disjoint<'_, f32>,
    ) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { input.of_features::<S>(features, points) },
        );
    }

    unsafe fn of_taps(
        &self,
        taps: &[f32],
        taps_at: &[usize; TAPS],
        points: Disjoint<'_, f32>,
        place: (usize, usize),
    ) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of_taps::<S>(taps, taps_at, points, place) },
        );
    }

    unsafe fn results(&self, results: &TileResults<'_>, row: usize, to: Places) -> bool {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { results.run::<S>(row, to) },
        )
    }
}

impl<S: Simd + Tiled<S::Word, S::Acc>> Loops<S::Word, S::Acc> for S {
    unsafe fn dots(&self, dots: &Dots<'_, S::Word, S::Acc>) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { dots.run::<S>() },
        );
    }

    unsafe fn sweep(&self, sweep: &Sweep<'_, S::Word, S::Acc>) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { sweep.run::<S>() },
        );
    }

    unsafe fn channels(&self, channels: &Channels<'_, S::Word, S::Acc>) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { channels.run::<S>() },
        );
    }

    unsafe fn planes(
        &self,
        of: &Planes<'_, S::Word, S::Acc>,
        planes: Range<usize>,
        strip: Range<usize>,
        region: &mut [S::Word],
    ) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of.run::<S>(planes, strip, region) },
        );
    }
}

impl<S: Lanes> WindowLoops<f32, f32> for S {
    unsafe fn windows(&self, of: &Windows<'_, f32, f32>, planes: Range<usize>, rows: Range<usize>) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of.run::<S>(planes, rows) },
        );
    }

    unsafe fn channel_windows(
        &self,
        of: &ChannelWindows<'_, f32, f32>,
        image: usize,
        rows: Range<usize>,
        channels: Range<usize>,
    ) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of.run::<S>(image, rows, channels) },
        );
    }

    unsafe fn group_windows(
        &self,
        of: &GroupWindows<'_, f32, f32>,
        image: usize,
        rows: Range<usize>,
        outputs: Range<usize>,
        region: &mut [f32],
    ) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of.run::<S>(image, rows, outputs, region) },
        );
    }

    unsafe fn fold_rows(&self, of: &RowFolds<'_>, part: RowPart) {
        self.vectorise(
            #[inline(always)]
            // SAFETY: the caller's promise; `self` proves the features.
            || unsafe { of.run::<S>(part) },
        );
    }
}
