//! Operations on windows that slide over an array.

use std::iter::zip;

use helio_ir::ops::{Window, WindowDim};
use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::frame::{array, array_shape};
use crate::reduce::{fold_of, results_of, tuple_of};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, filled, outside, steps, store, with_bounded_sizes};

/// The computation folded over the elements in each window, in row-major order. Padding and the
/// holes of a dilated base take no part (`semantics.md` §7: how often the initial value enters is
/// free; XLA lets it enter once), nor does the window's reversal.
pub(crate) fn reduce_window(
    op: &ops::ReduceWindow,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operands, mut fold) = fold_of(evaluator, op.to_apply, args)?;
    let first = operands.first().ok_or_else(outside)?;
    let mut results = results_of(shape)?;
    let dims = results.first().ok_or_else(outside)?.dims().to_vec();
    let sizes: Vec<usize> = zip(first.sizes(), &op.window.dims)
        .map(|(&size, dim)| dim.output_size(size).unwrap_or(usize::MAX))
        .zip(&dims)
        .map(|(size, &dim)| size.min(dim))
        .collect();
    let mut windows = Windows::new(evaluator, &op.window, first)?;
    each_point(evaluator, &sizes, &dims, |point, to| {
        fold.begin();
        windows.at(point, |[at]| fold.step(&operands, at))?;
        fold.end(&mut results, to)
    })?;
    tuple_of(results, &sizes)
}

/// For each element of the source: the operand's element in its window that the one computation
/// selects is the place where the other adds it to the result. Padding is never selected.
pub(crate) fn select_and_scatter(
    op: &ops::SelectAndScatter,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, source, init) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    if init.data().is_empty() {
        return Err(Error::internal("the initial value is not a scalar"));
    }
    let mut result = filled(array_shape(shape)?, Scalar::of(init, 0))?;
    let mut select = ScalarFn::new(evaluator, op.select);
    let mut scatter = ScalarFn::new(evaluator, op.scatter);
    let mut values = Vec::new();
    let mut windows = Windows::new(evaluator, &op.window, operand)?;
    each_point(evaluator, source.sizes(), source.dims(), |point, from| {
        let mut selected: Option<usize> = None;
        windows.at(point, |[at]| {
            let keeps = match selected {
                None => false,
                Some(selected) => {
                    let pair = [Scalar::of(operand, selected), Scalar::of(operand, at)];
                    select.call(&pair, &mut values)?;
                    values.first().ok_or_else(outside)?.get()?
                }
            };
            if !keeps {
                selected = Some(at);
            }
            Ok(())
        })?;
        let Some(selected) = selected else { return Ok(()) };
        scatter.call(&[Scalar::of(&result, selected), Scalar::of(source, from)], &mut values)?;
        store(result.data_mut(), selected, *values.first().ok_or_else(outside)?)
    })?;
    Ok(with_bounded_sizes(result, operand.sizes())?.into())
}

/// Calls `f` for each point of a box of these sizes with its place in an array of these dims.
fn each_point(
    evaluator: &Evaluator<'_>,
    sizes: &[usize],
    dims: &[usize],
    mut f: impl FnMut(&[usize], usize) -> Result<()>,
) -> Result<()> {
    let steps = steps(dims);
    let mut points = helio_ir::types::IndexIter::new(sizes);
    let mut uncounted = 0u32;
    while let Some(point) = points.next_point() {
        // Windows that hold no element call nothing that would count.
        uncounted += 1;
        if uncounted == 1 << 16 {
            evaluator.count_steps(1)?;
            uncounted = 0;
        }
        f(point, zip(point, &steps).map(|(&index, &step)| index * step as usize).sum())?;
    }
    Ok(())
}

/// The places of a base array's elements that lie in a window, for any position of it.
struct Windows<'a> {
    window: &'a Window,
    sizes: Vec<usize>,
    steps: Vec<isize>,
    axes: Vec<(usize, [isize; 1])>,
    walk: Walk<'a, 1>,
}

impl<'a> Windows<'a> {
    fn new(evaluator: &'a Evaluator<'a>, window: &'a Window, base: &Array) -> Result<Self> {
        if window.dims.len() != base.dims().len() {
            return Err(Error::internal("the window has another rank than its base"));
        }
        let (sizes, steps) = (base.sizes().to_vec(), steps(base.dims()));
        Ok(Windows { window, sizes, steps, axes: Vec::new(), walk: Walk::new(evaluator, []) })
    }

    /// Calls `f` for each, in row-major order, with the window at this position.
    fn at(&mut self, position: &[usize], f: impl FnMut([usize; 1]) -> Result<()>) -> Result<()> {
        self.axes.clear();
        let mut start = 0;
        for (d, dim) in self.window.dims.iter().enumerate() {
            let (first, apart, count) = covered(dim, position[d], self.sizes[d]);
            start += first * self.steps[d] as usize;
            self.axes.push((count, [apart as isize * self.steps[d]]));
        }
        self.walk.set(self.axes.iter().copied());
        self.walk.points([start], f)
    }
}

/// Which elements of a base of this size the window covers at a position: the first, their
/// distance, their number.
///
/// Point `k` of the window lies over `position * stride + k * window_dilation - pad_low` of the
/// dilated base, where element `i` is at `i * base_dilation`: a linear congruence in `k`, whose
/// solutions are evenly spaced.
fn covered(dim: &WindowDim, position: usize, size: usize) -> (usize, usize, usize) {
    let nothing = (0, 0, 0);
    let (base, window) = (dim.base_dilation as i128, dim.window_dilation as i128);
    let origin = position as i128 * dim.stride as i128 - i128::from(dim.pad_low);
    let (divisor, inverse) = gcd_and_inverse(window, base);
    if origin % divisor != 0 {
        return nothing;
    }
    // Points at which the window meets elements are `period` apart, the elements `apart`.
    let (period, apart) = (base / divisor, window / divisor);
    let target = (-origin / divisor).rem_euclid(period);
    let some_k = (target as u128 * inverse as u128 % period as u128) as i128;
    // The least such k at which the window has reached the base, and the last inside both.
    let least = (-origin).max(0);
    let reached = (least + window - 1) / window;
    let k = reached + (some_k - reached).rem_euclid(period);
    let last = (dim.size as i128 - 1).min(((size as i128 - 1) * base - origin).div_euclid(window));
    if size == 0 || k > last {
        return nothing;
    }
    let first = (origin + k * window) / base;
    let count = (last - k) / period + 1;
    // A single element has no neighbour; the distance could be larger than any array.
    (first as usize, if count == 1 { 0 } else { apart as usize }, count as usize)
}

/// The greatest common divisor of `a` and `m`, and the inverse of `a / gcd` modulo `m / gcd`; both
/// at least 1.
fn gcd_and_inverse(a: i128, m: i128) -> (i128, i128) {
    let (mut r, mut next_r) = (a, m);
    let (mut x, mut next_x) = (1, 0);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (x, next_x) = (next_x, x - quotient * next_x);
    }
    (r, x.rem_euclid(m / r))
}
