//! Operations on windows that slide over an array.

use std::iter::zip;

use helio_ir::ops::{Window, WindowDim};
use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::reduce::{fold_of, results_of, tuple_of};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, filled, outside, steps, store};

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
    tuple_of(results, &sizes, shape)
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

#[cfg(test)]
mod tests {
    use helio_ir::ElementType::{F32, S32};
    use helio_ir::ops::BinaryOp::{Add, Maximum, Subtract};
    use helio_ir::ops::Direction;

    use super::*;
    use crate::testing::{Bench, Random, bounded, counting, of, resized, run_on, shape, values};

    fn dim(size: usize, stride: usize, pad_low: i64, pad_high: i64) -> WindowDim {
        WindowDim { size, stride, pad_low, pad_high, ..WindowDim::default() }
    }

    #[test]
    fn covered_agrees_with_trying_every_point() {
        let mut random = Random(5);
        for _ in 0..20_000 {
            let dim = WindowDim {
                size: 1 + random.below(6),
                stride: 1 + random.below(4),
                pad_low: random.below(9) as i64 - 4,
                base_dilation: 1 + random.below(6),
                window_dilation: 1 + random.below(6),
                ..WindowDim::default()
            };
            let (position, size) = (random.below(6), random.below(7));
            let expected: Vec<usize> = (0..dim.size)
                .filter_map(|k| {
                    let at = (position * dim.stride + k * dim.window_dilation) as i64 - dim.pad_low;
                    let i = at / dim.base_dilation as i64;
                    let hit = at >= 0 && at % dim.base_dilation as i64 == 0 && i < size as i64;
                    hit.then_some(i as usize)
                })
                .collect();
            let (first, apart, count) = covered(&dim, position, size);
            let found: Vec<usize> = (0..count).map(|n| first + n * apart).collect();
            assert_eq!(found, expected, "{dim:?} at {position} of {size}");
        }
    }

    #[test]
    fn covered_survives_the_largest_numbers() {
        let huge = i64::MAX as usize;
        for (size, window_dilation, base_dilation) in [
            (huge, 1, huge),
            (huge, huge, huge),
            (huge, huge - 1, huge),
            (2, huge, 3),
            (huge, 3, 7),
        ] {
            let dim = WindowDim {
                size,
                window_dilation,
                base_dilation,
                pad_low: i64::MAX,
                stride: huge,
                ..WindowDim::default()
            };
            for position in [0, 1, huge] {
                let (first, apart, count) = covered(&dim, position, 5);
                assert!(first + count.saturating_sub(1) * apart < 5);
            }
        }
    }

    fn windowed(
        bench: &Bench,
        f: helio_ir::CompId,
        x: &Array,
        init: i32,
        dims: &[WindowDim],
    ) -> Array {
        let op = ops::ReduceWindow { window: Window { dims: dims.to_vec() }, to_apply: f };
        let out = zip(dims, x.dims()).map(|(dim, &n)| dim.output_size(n).unwrap());
        let out = shape(S32, &out.collect::<Vec<_>>());
        run_on(&bench.evaluator(), reduce_window, op, &[x, &Array::scalar(init)], &out).unwrap()
    }

    #[test]
    fn reduce_window_folds_each_position() {
        let mut bench = Bench::new();
        let (add, max) = (bench.binary(Add, S32), bench.binary(Maximum, S32));
        // E4 "ReduceWindow": 4x6, windows and strides 2x3
        let dims = [dim(2, 2, 0, 0), dim(3, 3, 0, 0)];
        let found = windowed(&bench, max, &counting(&[4, 6]), i32::MIN, &dims);
        assert_eq!(values::<i32>(&found), [8, 11, 20, 23]);
        // StableHLO "reduce_window"
        let x = of(&[3, 2], &[1, 2, 3, 4, 5, 6]);
        let rows = WindowDim { window_dilation: 3, base_dilation: 2, ..dim(2, 4, 2, 1) };
        let found = windowed(&bench, add, &x, 0, &[rows, dim(1, 1, 0, 0)]);
        assert_eq!(values::<i32>(&found), [0, 0, 3, 4]);
        // XLA:CPU: the initial value enters once, whatever the padding.
        let x = of(&[4], &[1, 2, 3, 4]);
        let found = windowed(&bench, add, &x, 100, &[dim(3, 1, 2, 2)]);
        assert_eq!(values::<i32>(&found), [101, 103, 106, 109, 107, 104]);
        let holes = WindowDim { base_dilation: 2, ..dim(3, 1, 0, 0) };
        let found = windowed(&bench, add, &x, 100, &[holes]);
        assert_eq!(values::<i32>(&found), [103, 102, 105, 103, 107]);
        // Negative padding crops.
        let found = windowed(&bench, add, &x, 0, &[dim(2, 1, -1, 0)]);
        assert_eq!(values::<i32>(&found), [5, 7]);
        let found = windowed(&bench, add, &Array::scalar(5), 1, &[]);
        assert_eq!(values::<i32>(&found), [6]);
        let found = windowed(&bench, add, &counting(&[0]), 1, &[dim(2, 1, 1, 1)]);
        assert_eq!(values::<i32>(&found), [1]);
        // A window far larger than the array.
        let wide = dim(1 << 40, 1, (1 << 40) - 1, 0);
        assert_eq!(values::<i32>(&windowed(&bench, add, &x, 0, &[wide])), [1, 3, 6, 10]);
    }

    #[test]
    fn reduce_window_leaves_padding_out() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, S32);
        let x = resized(&of(&[6], &[1, 2, 3, 4, 5, 6]), &[0], &[4]);
        let window = Window { dims: vec![dim(2, 2, 0, 0)] };
        let op = ops::ReduceWindow { window, to_apply: add };
        let args = [&x, &Array::scalar(0)];
        let out = bounded(S32, &[3], &[0]);
        let found = run_on(&bench.evaluator(), reduce_window, op, &args, &out).unwrap();
        assert_eq!(found.sizes(), [2]);
        assert_eq!(values::<i32>(&found)[..2], [3, 7]);
    }

    #[test]
    fn select_and_scatter_adds_where_selected() {
        let mut bench = Bench::new();
        let ge = bench.compare(Direction::Ge, &[F32, F32], [0, 1]);
        let (add, subtract) = (bench.binary(Add, F32), bench.binary(Subtract, F32));
        let run = |x: &Array, source: &Array, init: f32, scatter, dims: &[WindowDim]| {
            let window = Window { dims: dims.to_vec() };
            let op = ops::SelectAndScatter { window, select: ge, scatter };
            let args = [x, source, &Array::scalar(init)];
            let evaluator = bench.evaluator();
            values::<f32>(
                &run_on(&evaluator, select_and_scatter, op, &args, &shape(F32, x.dims())).unwrap(),
            )
        };
        // XLA:CPU: ties go to the first; the current value is the first argument.
        let x = of(&[6], &[1f32, 5.0, 3.0, 7.0, 7.0, 2.0]);
        let found = run(&x, &of(&[2], &[1f32, 2.0]), 100.0, subtract, &[dim(3, 3, 0, 0)]);
        assert_eq!(found, [100.0, 99.0, 100.0, 98.0, 100.0, 100.0]);
        // Overlapping windows as in the figure of E1 "SelectAndScatter": 9 is selected by two, so
        // 2 + 6 come to its place.
        let x = [
            [7f32, 2.0, 5.0, 3.0, 8.0],
            [3.0, 8.0, 9.0, 3.0, 4.0],
            [1.0, 5.0, 7.0, 5.0, 6.0],
            [0.0, 6.0, 2.0, 10.0, 2.0],
        ];
        let source = of(&[2, 2], &[2f32, 6.0, 3.0, 1.0]);
        let dims = [dim(2, 2, 0, 0), dim(3, 2, 0, 0)];
        let found = run(&of(&[4, 5], &x.concat()), &source, 0.0, add, &dims);
        let mut expected = [0f32; 20];
        [expected[7], expected[12], expected[18]] = [8.0, 3.0, 1.0];
        assert_eq!(found, expected);
        // Padding is never selected, though it would win.
        let x = of(&[2], &[-5f32, -6.0]);
        let found = run(&x, &of(&[2], &[1f32, 2.0]), 0.0, add, &[dim(2, 2, 1, 1)]);
        assert_eq!(found, [1.0, 2.0]);
    }
}
