//! Convolutions of numbers of 8 and 16 bits, several of which are multiplied by one instruction.
//!
//! The features that are summed are joined, several to a word: what is left is a convolution of
//! words, whose number of features is that of words.
//!
//! The instruction for bytes takes unsigned ones of the input and signed ones of the kernel. Signed
//! bytes `a` of the input become `a + 128` by flipping their highest bit, and so do the zeros of its
//! padding; the sum of `a * b` is then that of `(a + 128) * b` less 128 times the sum of all `b`.

use super::few_positions::Kernel;
use super::phases::{Phase, PlacesFrom};
use super::words::Joined;
use super::{Convolution, Route};
use crate::Threads;
use crate::float_mode::FloatMode;
use crate::kernels::bytes::{cast, cast_mut};
use crate::kernels::gemm::amx::{self, WithTiles};
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::narrow::Narrow;
use crate::kernels::gemm::operand::Each;
use crate::kernels::gemm::pack::{Block, Elements};
use crate::kernels::gemm::simd::MulAdd;
use crate::kernels::gemm::tile::Tiled;
use crate::kernels::gemm::types::Call;
use crate::kernels::gemm::{At, Epilogue, Out};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Multiplications that an element of the input takes part in for joining to be worth it.
const MIN_WORK: usize = 64;
/// The highest bit of each byte.
const SIGNS: u32 = 0x8080_8080;

impl Convolution {
    /// Computes the convolution by instructions for several numbers at once, if the machine has them
    /// for these types and they are worth it; otherwise returns false.
    pub(in crate::kernels::gemm) fn compute_joined(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let taps: usize = self.spatial.iter().map(|dim| dim.kernel).product();
        if self.features.size < 2 || taps.saturating_mul(self.outputs.size) < MIN_WORK {
            return false;
        }
        let mut done = false;
        let tiles = OnTiles { conv: self, call, out: &mut *out, done: &mut done };
        (amx::with_tiles(call.types, tiles) && done) || self.compute_vectors(call, out)
    }

    /// With the instructions of AVX-512.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn compute_vectors(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        use crate::kernels::gemm::number::{Bf16, ProductType};
        use crate::kernels::gemm::simd::{Avx512Bf16, Avx512Vnni};
        let types = call.types;
        match (types.lhs, types.rhs) {
            (ProductType::Bf16, ProductType::Bf16)
                if f32::makes(types.out) && FloatMode::current() == FloatMode::FlushToZero =>
            {
                Avx512Bf16::if_faster(call.isa)
                    .is_some_and(|tiled| self.join::<_, Bf16>(tiled, call, None, out))
            }
            (ProductType::U8, ProductType::S8) if i32::makes(types.out) => {
                Avx512Vnni::get(call.isa)
                    .is_some_and(|tiled| self.join::<_, u8>(tiled, call, None, out))
            }
            // (Corrections are added to sums in their places: narrower results are not sums any more.)
            (ProductType::S8, ProductType::S8) if types.out == ProductType::S32 => {
                let correct = Some(corrections as Correct<i32>);
                Avx512Vnni::get(call.isa)
                    .is_some_and(|tiled| self.join::<_, u8>(tiled, call, correct, out))
            }
            _ => false,
        }
    }

    /// There are no such instructions.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn compute_vectors(&self, _: &Call<'_>, _: &mut [u8]) -> bool {
        false
    }

    /// Joins the operands, whose numbers are `N`, and computes the convolution of words; or returns
    /// false if that has no tiles. If there are corrections the input's signs are flipped.
    fn join<A: Arithmetic, N: Narrow>(
        &self,
        tiled: &dyn Tiled<u32, A>,
        call: &Call<'_>,
        correct: Option<Correct<A>>,
        out: &mut [u8],
    ) -> bool {
        let Some(joined) = Joined::of(self, N::PER_WORD) else { return false };
        let &Call { isa, threads, .. } = call;
        let flip = if correct.is_some() { SIGNS } else { 0 };
        let mut with_input = |input: &[u32]| {
            scratch::with(joined.kernel_len(), |kernel: &mut [u32]| {
                joined.join_kernel(isa, cast::<N>(call.rhs), kernel);
                let input = &Holed { words: input, hole: flip };
                A::with_places(call.types.out, out, &mut |out| {
                    assert!(self.out.last() < out.len, "the result lies in its memory");
                    // SAFETY: the result is borrowed mutably, and lies in its memory.
                    unsafe {
                        joined.conv.run_words(tiled, isa, (input, kernel), correct, out, threads);
                    }
                });
            });
        };
        let whole = joined.input_len();
        match joined.as_words(call.lhs, N::PER_WORD).filter(|_| flip == 0) {
            Some(words) => with_input(words),
            None => scratch::with(whole, |words: &mut [u32]| {
                joined.join_input(isa, cast::<N>(call.lhs), flip, words, threads);
                with_input(words);
            }),
        }
        true
    }

    /// Whether each part of the convolution is computed in tiles whose rows are positions.
    pub(super) fn has_tiles(&self) -> bool {
        match &self.route {
            Route::Product { swapped, .. } => !swapped,
            Route::Tasks | Route::Zeros => true,
            Route::Phases(phases) => phases.iter().all(|phase| phase.conv.has_tiles()),
            Route::Patches | Route::Planes | Route::Grouped | Route::Loops => false,
        }
    }

    /// Computes a convolution of words that has tiles.
    ///
    /// # Safety
    /// The result lies in `out`, which nothing else accesses.
    unsafe fn run_words<A: MulAdd>(
        &self,
        tiled: &dyn Tiled<u32, A>,
        isa: Isa,
        (lhs, rhs): (&dyn Elements<u32>, &[u32]),
        correct: Option<Correct<A>>,
        out: Out<'_, A>,
        threads: Threads<'_>,
    ) {
        if self.out.len() == 0 {
            return;
        }
        let corrections = correct.map(|correct| correct(self, isa, rhs));
        let corrections = corrections.as_deref();
        match &self.route {
            Route::Product { lhs: start, product, .. } => {
                let (lhs, rhs) = (Each { elements: lhs, start: *start }, Each::all(&rhs));
                let correct = |at: At, bytes: &mut [u8]| {
                    let from = at.batch * self.outputs.size + at.col;
                    add(cast_mut(bytes), &corrections.unwrap_or_default()[from..]);
                };
                let part = corrections.is_some().then_some(&correct as _);
                let epilogue = Epilogue { part, rows: None };
                // SAFETY: the caller's promise.
                unsafe { product.run(tiled, isa, [&lhs, &rhs], out, epilogue, threads) };
            }
            Route::Phases(phases) => {
                for Phase { conv, rhs: rhs_start, out: start } in phases {
                    let rhs = rhs.get(*rhs_start..).unwrap_or_default();
                    let places = PlacesFrom { places: out.places, start: *start };
                    let out = Out { len: out.len - start, places: &places };
                    // SAFETY: the places of a phase are some of those of the whole.
                    unsafe { conv.run_words(tiled, isa, (lhs, rhs), correct, out, threads) };
                }
            }
            // SAFETY: the caller's promise.
            Route::Zeros => unsafe { self.write_zeros(isa, out.places) },
            _ => {
                // SAFETY: the caller's promise; no element of the result is another.
                unsafe {
                    let of = (lhs, Kernel::Elements(&rhs), corrections);
                    self.run_tasks((tiled, isa), of, out.places, None, threads);
                };
            }
        }
    }
}

/// What must be added to the sums of each group's outputs, for a kernel of words.
type Correct<A> = fn(&Convolution, Isa, &[u32]) -> Vec<A>;

/// The corrections for signed bytes.
fn corrections(conv: &Convolution, isa: Isa, kernel: &[u32]) -> Vec<i32> {
    let taps = conv.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
    let steps = Axis::new(taps.chain([(conv.features.size, conv.features.rhs)]));
    let outputs = conv.outputs.size;
    let mut corrections = vec![0_i32; conv.group.size * outputs];
    for (group, sums) in corrections.chunks_exact_mut(outputs).enumerate() {
        for step in (0..steps.len()).map(|step| steps.offset(step)) {
            let row = &kernel[group * conv.group.rhs + step..][..outputs];
            isa.run(
                #[inline(always)]
                || {
                    for (sum, word) in sums.iter_mut().zip(row) {
                        let bytes = word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
                        *sum = sum.wrapping_sub(bytes.iter().sum::<i32>().wrapping_mul(128));
                    }
                },
            );
        }
    }
    corrections
}

/// Adds corrections to sums of neighbouring outputs.
#[inline(always)]
pub(super) fn add<A: MulAdd>(sums: &mut [A], corrections: &[A]) {
    for (sum, &correction) in sums.iter_mut().zip(corrections) {
        *sum = sum.add(correction);
    }
}

/// A convolution on tiles of the processor.
pub(super) struct OnTiles<'a, 'c> {
    pub conv: &'a Convolution,
    pub call: &'a Call<'c>,
    pub out: &'a mut [u8],
    /// Set if that is a way to compute it.
    pub done: &'a mut bool,
}

impl WithTiles for OnTiles<'_, '_> {
    fn run<A: Arithmetic, N: Narrow>(self, tiled: &dyn Tiled<u32, A>) {
        *self.done = self.conv.join::<A, N>(tiled, self.call, None, self.out);
    }
}

/// Words with something else than zero where there is padding.
struct Holed<'a> {
    words: &'a [u32],
    hole: u32,
}

impl Elements<u32> for Holed<'_> {
    fn count(&self) -> usize {
        self.words.len()
    }

    fn words(&self) -> Option<&[u32]> {
        Some(self.words)
    }

    fn word(&self, at: usize) -> u32 {
        self.words[at]
    }

    fn hole(&self) -> u32 {
        self.hole
    }

    fn copy(&self, isa: Isa, block: &Block<'_>, to: &mut [u32]) {
        self.words.copy(isa, block, to);
    }
}
