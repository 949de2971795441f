//! Operands whose features are joined, several to a word.

use super::{Convolution, Route, Spatial};
use crate::Threads;
use crate::kernels::bytes::{bytes_of, cast};
use crate::kernels::gemm::Dim;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::narrow::Narrow;
use crate::kernels::isa::Isa;

/// Words that are joined by one task.
const TASK_WORDS: usize = 1 << 14;

/// A convolution of words, and how its operands are made.
pub(super) struct Joined {
    pub(super) conv: Convolution,
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
    /// The convolution with `per_word` features joined in each word; `None` if no tile computes it.
    pub(super) fn of(conv: &Convolution, per_word: usize) -> Option<Self> {
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
        let may_have_tiles = match joined.route {
            Route::Product { swapped, .. } => swapped,
            Route::Patches => true,
            Route::Grouped => !joined.vectors_of_groups(),
            _ => false,
        };
        if may_have_tiles && joined.regions_are_small() {
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

    /// How many words the input becomes.
    pub(super) fn input_len(&self) -> usize {
        self.items.len() * self.words
    }

    /// How many words the kernel becomes.
    pub(super) fn kernel_len(&self) -> usize {
        self.rows.len() * self.outputs
    }

    /// The input as it lies in memory, if that is the words.
    pub(super) fn as_words<'a>(&self, input: &'a [u8], per_word: usize) -> Option<&'a [u32]> {
        let (features, stride) = self.features;
        let is_dense = stride == 1 && self.items.stride() == Some(features);
        let is_aligned = input.as_ptr().cast::<u32>().is_aligned();
        if !is_dense || !is_aligned || !features.is_multiple_of(per_word) {
            return None;
        }
        Some(cast(input.get(..4 * self.input_len())?))
    }

    /// Joins the features of all items of the input, and flips bits.
    pub(super) fn join_input<N: Narrow>(
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

    /// Joins the features of items that are `stride` numbers apart.
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
    pub(super) fn join_kernel<N: Narrow>(&self, isa: Isa, kernel: &[N], words: &mut [u32]) {
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
