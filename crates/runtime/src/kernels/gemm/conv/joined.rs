//! Convolutions of numbers of 8 and 16 bits, several of which are multiplied by one instruction.
//!
//! The features that are summed are joined, several to a word: what is left is a convolution of
//! words, with so many fewer features.
//!
//! The instruction for bytes takes unsigned ones of the input and signed ones of the kernel. Signed
//! bytes `a` of the input become `a + 128` by flipping their highest bit, and so do the zeros of its
//! padding; the sum of `a * b` is then that of `(a + 128) * b` less 128 times the sum of all `b`.

use super::phases::{Phase, PlacesFrom};
use super::{Convolution, Route, Spatial};
use crate::Threads;
use crate::kernels::bytes::{bytes_of, cast, cast_mut};
use crate::kernels::gemm::amx::{self, WithTiles};
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::narrow::Narrow;
use crate::kernels::gemm::operand::Each;
use crate::kernels::gemm::pack::{Block, Elements};
use crate::kernels::gemm::simd::MulAdd;
use crate::kernels::gemm::tile::Tiled;
use crate::kernels::gemm::types::Call;
use crate::kernels::gemm::{At, Dim, Out, Then};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Multiplications that an element of the input takes part in for joining to be worth it.
const LEAST_WORK: usize = 64;
/// Words that are joined by one task.
const TASK_WORDS: usize = 1 << 14;
/// The highest bit of each byte.
const SIGNS: u32 = 0x8080_8080;

impl Convolution {
    /// Computes the convolution by instructions for several numbers at once, if the machine has them
    /// for these types and they are worth it; otherwise returns false.
    pub(in crate::kernels::gemm) fn compute_joined(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let taps: usize = self.spatial.iter().map(|dim| dim.kernel).product();
        if self.features.size < 2 || taps.saturating_mul(self.outputs.size) < LEAST_WORK {
            return false;
        }
        let mut done = false;
        let tiles = OnTiles { conv: self, call, out: &mut *out, done: &mut done };
        (amx::with_tiles(call.types, tiles) && done) || self.compute_vectors(call, out)
    }

    /// With the instructions of AVX-512.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn compute_vectors(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        use crate::kernels::gemm::number::{Bf16, Number};
        use crate::kernels::gemm::simd::{Avx512Bf16, Avx512Vnni};
        let types = call.types;
        match (types.lhs, types.rhs) {
            (Number::Bf16, Number::Bf16) if f32::makes(types.out) => Avx512Bf16::get(call.isa)
                .is_some_and(|tiled| self.join::<_, Bf16>(tiled, call, None, out)),
            (Number::U8 | Number::S8, Number::S8) if i32::makes(types.out) => {
                let correct = (types.lhs == Number::S8).then_some(corrections as Correct<i32>);
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
            scratch::with(joined.rows.len() * joined.outputs, |kernel: &mut [u32]| {
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
        let whole = joined.items.len() * joined.words;
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
    fn has_tiles(&self) -> bool {
        match &self.route {
            Route::Product { swapped, .. } => !swapped,
            Route::Tasks | Route::Zeros => true,
            Route::Phases(phases) => phases.iter().all(|phase| phase.conv.has_tiles()),
            Route::Grouped | Route::Loops => false,
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
                let then = Then { part, rows: None };
                // SAFETY: the caller's promise.
                unsafe { product.run(tiled, isa, [&lhs, &rhs], out, then, threads) };
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
                    self.run_tasks((tiled, isa), lhs, &rhs, corrections, out.places, threads)
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

/// A convolution of words, and how its operands are made.
struct Joined {
    conv: Convolution,
    /// The input's items, as they are in memory: its indices but the features.
    items: Axis,
    /// How many features an item has, and how far they are apart.
    features: (usize, usize),
    /// How many words these are.
    words: usize,
    /// For each row of outputs in the kernel of words, where its first feature is in the kernel, and
    /// how many features it joins.
    rows: Vec<(usize, usize)>,
    /// From feature to feature and from output to output in the kernel.
    kernel: [usize; 2],
    outputs: usize,
}

impl Joined {
    /// The convolution with words of so many features; `None` if it has no tiles.
    fn of(conv: &Convolution, per_word: usize) -> Option<Self> {
        if conv.is_empty() {
            return None;
        }
        let (features, outputs) = (conv.features.size, conv.outputs.size);
        let words = features.div_ceil(per_word);
        // The input in the order in which it lies in memory, but with the features innermost.
        let outer = [(conv.group.size, conv.group.lhs), (conv.batch.size, conv.batch.lhs)];
        let spatial = conv.spatial.iter().map(|dim| (dim.input, dim.lhs));
        let dims: Vec<_> = outer.into_iter().chain(spatial).collect();
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(dims[d].1));
        let mut lhs = vec![0; dims.len()];
        let mut stride = words;
        for &d in order.iter().rev() {
            lhs[d] = stride;
            stride = stride.checked_mul(dims[d].0)?;
        }
        // The kernel: groups, taps, features, outputs.
        let taps: usize = conv.spatial.iter().map(|dim| dim.kernel).product();
        let mut rows = Vec::with_capacity(conv.group.size * taps * words);
        for group in 0..conv.group.size {
            for tap in 0..taps {
                let start = group * conv.group.rhs + conv.place_of_tap(tap);
                rows.extend((0..features).step_by(per_word).map(|feature| {
                    let count = per_word.min(features - feature);
                    (start + feature * conv.features.rhs, count)
                }));
            }
        }
        let mut stride = words * outputs;
        let mut spatial: Vec<Spatial> = Vec::with_capacity(conv.spatial.len());
        for (dim, &lhs) in conv.spatial.iter().zip(&lhs[outer.len()..]).rev() {
            spatial.push(Spatial { lhs, rhs: stride, reversed: false, ..*dim });
            stride *= dim.kernel;
        }
        spatial.reverse();
        let mut joined = Convolution::new(
            Dim { lhs: lhs[0], rhs: stride, ..conv.group },
            Dim { lhs: lhs[1], rhs: 0, ..conv.batch },
            Dim { size: words, lhs: 1, rhs: outputs, out: 0 },
            Dim { lhs: 0, rhs: 1, ..conv.outputs },
            &spatial,
        );
        if matches!(joined.route, Route::Product { swapped: true, .. })
            && joined.regions_are_small()
        {
            joined.route = Route::Tasks;
        }
        joined.has_tiles().then(|| Joined {
            conv: joined,
            items: Axis::new(order.iter().map(|&d| dims[d])),
            features: (features, conv.features.lhs),
            words,
            rows,
            kernel: [conv.features.rhs, conv.outputs.rhs],
            outputs,
        })
    }

    /// The input as it lies in memory, if that is the words.
    fn as_words<'a>(&self, input: &'a [u8], per_word: usize) -> Option<&'a [u32]> {
        let (features, stride) = self.features;
        let is_dense = stride == 1 && self.items.stride() == Some(features);
        let is_aligned = input.as_ptr().cast::<u32>().is_aligned();
        if !is_dense || !is_aligned || !features.is_multiple_of(per_word) {
            return None;
        }
        Some(cast(input.get(..4 * self.items.len() * self.words)?))
    }

    /// Joins the features of all items of the input, and flips bits.
    fn join_input<N: Narrow>(
        &self,
        isa: Isa,
        input: &[N],
        flip: u32,
        words: &mut [u32],
        threads: Threads<'_>,
    ) {
        let per_task = (TASK_WORDS / self.words).max(1);
        threads.for_chunks(words, per_task * self.words, &|task, words| {
            let mut item = task * per_task;
            let mut rest = words;
            while !rest.is_empty() {
                let (start, count, stride) = self.items.run(item, rest.len() / self.words);
                let (words, later) = rest.split_at_mut(count * self.words);
                isa.run(
                    #[inline(always)]
                    || self.join_items(&input[start..], stride, flip, words),
                );
                (item, rest) = (item + count, later);
            }
        });
    }

    /// Joins the features of items so far apart.
    #[inline(always)]
    fn join_items<N: Narrow>(&self, input: &[N], stride: usize, flip: u32, words: &mut [u32]) {
        let (features, feature_stride) = self.features;
        let copy = |words: &mut [u32], numbers: &[N]| {
            for (word, bytes) in words.iter_mut().zip(bytes_of(numbers).as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes) ^ flip;
            }
        };
        let whole = features / N::PER_WORD;
        if feature_stride == 1 && stride == features && whole == self.words {
            return copy(words, &input[..words.len() * N::PER_WORD]);
        }
        let bits = 8 * size_of::<N>();
        let first = if feature_stride == 1 { whole } else { 0 };
        for word in first..self.words {
            let from = word * N::PER_WORD;
            let column = &mut words[word..];
            column.iter_mut().step_by(self.words).for_each(|word| *word = flip);
            for feature in from..features.min(from + N::PER_WORD) {
                let shift = (feature - from) * bits;
                let numbers = input[feature * feature_stride..].iter().step_by(stride);
                let words = column.iter_mut().step_by(self.words).zip(numbers);
                words.for_each(|(word, number)| *word ^= number.bits() << shift);
            }
        }
        if first > 0 {
            for (i, words) in words.chunks_exact_mut(self.words).enumerate() {
                copy(&mut words[..whole], &input[i * stride..][..whole * N::PER_WORD]);
            }
        }
    }

    /// Joins the features of the kernel.
    fn join_kernel<N: Narrow>(&self, isa: Isa, kernel: &[N], words: &mut [u32]) {
        let ([feature, output], bits) = (self.kernel, 8 * size_of::<N>());
        let rows = words.chunks_exact_mut(self.outputs).zip(&self.rows);
        for (row, &(start, count)) in rows {
            row.fill(0);
            for i in 0..count {
                let from = &kernel[start + i * feature..];
                let join = |(word, number): (&mut u32, &N)| *word |= number.bits() << (i * bits);
                if output == 1 {
                    isa.run(
                        #[inline(always)]
                        || row.iter_mut().zip(from).for_each(join),
                    );
                } else {
                    row.iter_mut().zip(from.iter().step_by(output)).for_each(join);
                }
            }
        }
    }
}
