//! `convolution`.
//!
//! Operands are laid out as input [batch, spatial…, feature] and kernel [spatial…, input feature,
//! output feature]; see [`products`](crate::products) for the types in which sums are formed.
//! Positions outside the input and between its dilated elements are skipped, so that an infinite
//! kernel element does not make them NaN.

#[cfg(test)]
mod tests;

use helio_ir::memory::Reservation;
use helio_ir::ops::WindowDim;
use helio_ir::types::strides;
use helio_ir::{Array, ArrayShape, Literal, Result, Shape, memory, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::products::{Algorithm, Packing, Term, dispatch_term, finish, pack, zeros};

/// Slides a kernel (rhs) over an input (lhs) and sums products.
pub(crate) fn convolution(
    op: &ops::Convolution,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lhs, rhs, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let result = dispatch_term!(shape.element(), S => {
        convolution_as::<S>(op, evaluator, (lhs, rhs), shape)
    })?;
    with_bounded_sizes(result, &result_sizes(op, lhs, rhs, shape)).map(Literal::Array)
}

fn convolution_as<S: Term>(
    op: &ops::Convolution,
    evaluator: &Evaluator<'_>,
    (lhs, rhs): (&Array, &Array),
    shape: &ArrayShape,
) -> Result<Array> {
    let dims = &op.dims;
    let order = [&[dims.input_batch], &dims.input_spatial[..], &[dims.input_feature]].concat();
    let mut sizes = lhs.dims().to_vec();
    // Features beyond the size at run time count as zero; taps see to the spatial dimensions.
    sizes[dims.input_feature] = lhs.sizes()[dims.input_feature];
    let input =
        pack::<S>(evaluator, lhs, &Packing { order: &order, sizes: &sizes }, shape.element())?;
    let order =
        [&dims.kernel_spatial[..], &[dims.kernel_input_feature, dims.kernel_output_feature]]
            .concat();
    let kernel =
        pack::<S>(evaluator, rhs, &Packing { order: &order, sizes: rhs.sizes() }, shape.element())?;

    let size_of =
        |dims: &[usize], list: &[usize]| -> Vec<usize> { list.iter().map(|&d| dims[d]).collect() };
    let input_spatial = size_of(lhs.dims(), &dims.input_spatial);
    let output_spatial = size_of(shape.dims(), &dims.output_spatial);
    let features = shape.dims()[dims.output_feature];
    let batches = shape.dims()[dims.output_batch];
    let sum_order = [&dims.output_spatial[..], &[dims.output_batch, dims.output_feature]].concat();

    let blocks = Blocks {
        batches,
        features,
        positions: input_spatial.iter().product(),
        input_features: lhs.dims()[dims.input_feature],
        kernel_features: rhs.dims()[dims.kernel_input_feature],
        feature_groups: op.feature_group_count,
        batch_groups: op.batch_group_count,
    };
    let mut sums = zeros::<S>(shape.element_count())?;
    if sums.is_empty() {
        return finish(evaluator, &sums, &sum_order, shape);
    }
    let add = |input: &[S], kernel: &[S], sums: &mut [S]| {
        let mut taps = Taps::new(
            &op.window.dims,
            size_of(lhs.sizes(), &dims.input_spatial),
            strides(&input_spatial),
            size_of(rhs.dims(), &dims.kernel_spatial),
        )?;
        let mut position = vec![0; output_spatial.len()];
        let mut changed = 0;
        for sums in sums.chunks_exact_mut(batches * features) {
            evaluator.count_steps(1)?;
            taps.move_to(&position, changed);
            for (batch, sums) in sums.chunks_exact_mut(features).enumerate() {
                blocks.add_products(sums, batch, taps.all(), input, kernel);
            }
            changed = advance(&mut position, &output_spatial);
        }
        Ok(())
    };
    match op.algorithm.as_deref().map(Algorithm::from_name).transpose()? {
        None => add(&input, &kernel, &mut sums)?,
        Some(algorithm) => algorithm.add_products(&input, &kernel, &mut sums, add)?,
    }
    finish(evaluator, &sums, &sum_order, shape)
}

/// Moves to the next point in row-major order; returns the first dimension that changed.
fn advance(point: &mut [usize], dims: &[usize]) -> usize {
    for d in (0..dims.len()).rev() {
        point[d] += 1;
        if point[d] < dims[d] {
            return d;
        }
        point[d] = 0;
    }
    0
}

/// The sizes of the blocks into which input and kernel fall.
struct Blocks {
    batches: usize,
    features: usize,
    positions: usize,
    input_features: usize,
    kernel_features: usize,
    feature_groups: usize,
    batch_groups: usize,
}

impl Blocks {
    /// Adds to the output features at one position of one batch.
    fn add_products<S: Term>(
        &self,
        sums: &mut [S],
        batch: usize,
        taps: &[Tap],
        input: &[S],
        kernel: &[S],
    ) {
        // At most one of the two group counts is above 1, so a block has one number.
        let blocks = (self.feature_groups * self.batch_groups).max(1);
        let features = self.features / blocks;
        if features == 0 {
            return;
        }
        for tap in taps {
            let kernel = &kernel[tap.kernel * self.kernel_features * self.features..];
            for (block, sums) in sums.chunks_exact_mut(features).enumerate() {
                let batch = (block / self.feature_groups) * self.batches + batch;
                let first = (block % self.feature_groups) * self.kernel_features;
                let place = (batch * self.positions + tap.input) * self.input_features + first;
                let input = &input[place..][..self.kernel_features];
                for (i, &a) in input.iter().enumerate() {
                    let row = &kernel[i * self.features + block * features..][..features];
                    for (sum, &b) in sums.iter_mut().zip(row) {
                        *sum = sum.add_product(a, b);
                    }
                }
            }
        }
    }
}

/// A spatial position of the kernel and the one of the input that it meets.
#[derive(Clone, Copy)]
struct Tap {
    kernel: usize,
    input: usize,
}

/// The taps at one output position.
struct Taps<'a> {
    window: &'a [WindowDim],
    /// Sizes at run time.
    input_sizes: Vec<usize>,
    input_strides: Vec<usize>,
    kernel_sizes: Vec<usize>,
    kernel_strides: Vec<usize>,
    /// The taps of the first dimensions, for each number of them.
    partial: Vec<Vec<Tap>>,
    /// The memory of `partial`.
    _counted: Reservation,
}

impl<'a> Taps<'a> {
    fn new(
        window: &'a [WindowDim],
        input_sizes: Vec<usize>,
        input_strides: Vec<usize>,
        kernel_sizes: Vec<usize>,
    ) -> Result<Self> {
        let kernel_strides = strides(&kernel_sizes);
        // No list is longer than the last, if all positions of the kernel meet the input.
        let taps = kernel_sizes.iter().product::<usize>().saturating_mul(kernel_sizes.len());
        let _counted = memory::reserve(taps.saturating_mul(size_of::<Tap>()))?;
        let mut partial = vec![Vec::new(); kernel_sizes.len() + 1];
        partial[0].push(Tap { kernel: 0, input: 0 });
        Ok(Taps {
            window,
            input_sizes,
            input_strides,
            kernel_sizes,
            kernel_strides,
            partial,
            _counted,
        })
    }

    /// Finds the taps for this output position, of which the dimensions before `changed` are as in
    /// the last call.
    fn move_to(&mut self, position: &[usize], changed: usize) {
        for d in changed..position.len() {
            let (before, from_here) = self.partial.split_at_mut(d + 1);
            let (outer, taps) = (&before[d], &mut from_here[0]);
            taps.clear();
            for k in 0..self.kernel_sizes[d] {
                let Some(i) = meets(&self.window[d], position[d], k, self.input_sizes[d]) else {
                    continue;
                };
                let k = if self.window[d].reversal { self.kernel_sizes[d] - 1 - k } else { k };
                taps.extend(outer.iter().map(|tap| Tap {
                    kernel: tap.kernel + k * self.kernel_strides[d],
                    input: tap.input + i * self.input_strides[d],
                }));
            }
        }
    }

    fn all(&self) -> &[Tap] {
        self.partial.last().map_or(&[], Vec::as_slice)
    }
}

/// The input element that the window's element `k` meets at this output position, if any.
fn meets(window: &WindowDim, position: usize, k: usize, input_size: usize) -> Option<usize> {
    let place = position as i128 * window.stride as i128 - i128::from(window.pad_low)
        + k as i128 * window.window_dilation as i128;
    let dilation = window.base_dilation.max(1) as i128;
    if place < 0 || place % dilation != 0 {
        return None;
    }
    usize::try_from(place / dilation).ok().filter(|&i| i < input_size)
}

/// The sizes of the result at run time.
fn result_sizes(op: &ops::Convolution, lhs: &Array, rhs: &Array, shape: &ArrayShape) -> Vec<usize> {
    let dims = &op.dims;
    let mut sizes = shape.dims().to_vec();
    sizes[dims.output_batch] = lhs.sizes()[dims.input_batch] / op.batch_group_count.max(1);
    sizes[dims.output_feature] = rhs.sizes()[dims.kernel_output_feature];
    for (d, window) in op.window.dims.iter().enumerate() {
        let dilated = |size: usize, dilation: usize| match size as i128 {
            0 => 0,
            size => (size - 1) * dilation as i128 + 1,
        };
        let base = dilated(lhs.sizes()[dims.input_spatial[d]], window.base_dilation);
        let padded = base + i128::from(window.pad_low) + i128::from(window.pad_high);
        let kernel = dilated(rhs.sizes()[dims.kernel_spatial[d]], window.window_dilation);
        let room = padded - kernel;
        let size =
            if room < 0 || padded <= 0 { 0 } else { room / window.stride.max(1) as i128 + 1 };
        sizes[dims.output_spatial[d]] = usize::try_from(size).unwrap_or(usize::MAX);
    }
    sizes
}
