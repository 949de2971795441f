//! `sort`, a stable merge sort by the program's comparator, and `topk`.

use std::iter::zip;

use helio_ir::{
    Array, ArrayData, CompId, Error, Literal, Number, Result, Shape, dispatch, memory, ops,
};

use crate::Evaluator;
use crate::dynamic::{least_sizes, with_bounded_sizes};
use crate::element::total_rank;
use crate::frame::{array, only};
use crate::index::without;
use crate::reduce::results_of;
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, outside, steps, values_mut};

/// The operands sorted together along a dimension, stably. Padding stays behind the elements.
pub(crate) fn sort(
    op: &ops::Sort,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operands: Vec<&Array> = (0..args.len()).map(|i| array(args, i)).collect::<Result<_>>()?;
    let first = *operands.first().ok_or_else(outside)?;
    let mut results = results_of(shape)?;
    let steps = steps(first.dims());
    let sizes = least_sizes(&operands);
    let count = lane_length(first, &sizes, op.dimension)?;
    let lane = Lane { count, step: steps[op.dimension] as usize };
    let _order = memory::reserve(count.saturating_mul(2 * size_of::<usize>()))?;
    let mut order: Vec<usize> = Vec::new();
    let mut spare = vec![0; count];
    let mut comparator = Comparator::new(evaluator, op.to_apply, &operands);

    let others = without(steps.len(), &[&[op.dimension]]);
    let axes = others.iter().map(|&d| (sizes[d], [steps[d]]));
    Walk::new(evaluator, axes).points([0], |[start]| {
        order.clear();
        order.extend((0..count).map(|i| start + i * lane.step));
        merge_sort(&mut order, &mut spare, |a, b| comparator.is_less(a, b))?;
        zip(&operands, &mut results).try_for_each(|(operand, result)| {
            lane.take(&order, operand.data(), start, result.data_mut())
        })
    })?;
    let results = results.into_iter();
    let results = results.map(|result| Ok(with_bounded_sizes(result, &sizes)?.into()));
    only(&results.collect::<Result<Vec<Literal>>>()?)
}

/// How many elements lie along a dimension; none if there is no lane, however long it would be.
fn lane_length(array: &Array, sizes: &[usize], dimension: usize) -> Result<usize> {
    let size = *sizes.get(dimension).ok_or_else(outside)?;
    Ok(if array.data().is_empty() { 0 } else { size })
}

/// A row of elements along one dimension.
struct Lane {
    count: usize,
    step: usize,
}

impl Lane {
    /// Writes the elements at the places in `order` one after the other into the lane of `to` that
    /// begins at `start`.
    fn take(
        &self,
        order: &[usize],
        from: &ArrayData,
        start: usize,
        to: &mut ArrayData,
    ) -> Result<()> {
        dispatch!(from, from => {
            let to = values_mut(to)?;
            for (i, &place) in order.iter().take(self.count).enumerate() {
                let target = to.get_mut(start + i * self.step).ok_or_else(outside)?;
                *target = *from.get(place).ok_or_else(outside)?;
            }
        });
        Ok(())
    }
}

/// Asks the program's computation which of two elements comes first.
struct Comparator<'a> {
    function: ScalarFn<'a>,
    operands: &'a [&'a Array],
    arguments: Vec<Scalar>,
    values: Vec<Scalar>,
}

impl<'a> Comparator<'a> {
    fn new(evaluator: &'a Evaluator<'a>, computation: CompId, operands: &'a [&'a Array]) -> Self {
        let function = ScalarFn::new(evaluator, computation);
        Comparator { function, operands, arguments: Vec::new(), values: Vec::new() }
    }

    fn is_less(&mut self, a: usize, b: usize) -> Result<bool> {
        self.arguments.clear();
        for operand in self.operands {
            self.arguments.extend([Scalar::of(operand, a), Scalar::of(operand, b)]);
        }
        self.function.call(&self.arguments, &mut self.values)?;
        self.values.first().ok_or_else(outside)?.get()
    }
}

/// Sorts stably, from the bottom up. Whatever the comparator says, it ends after `n log n`
/// comparisons with a permutation: the standard library's sorts may panic if it is inconsistent,
/// and cannot hand on its errors. `spare` is as long as `order`.
fn merge_sort(
    order: &mut Vec<usize>,
    spare: &mut Vec<usize>,
    mut is_less: impl FnMut(usize, usize) -> Result<bool>,
) -> Result<()> {
    let count = order.len();
    let mut width = 1;
    while width < count {
        spare.clear();
        for run in order.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let ([l, left_rest @ ..], [r, right_rest @ ..]) = (left, right) {
                if is_less(*r, *l)? {
                    spare.push(*r);
                    right = right_rest;
                } else {
                    spare.push(*l);
                    left = left_rest;
                }
            }
            spare.extend_from_slice(left);
            spare.extend_from_slice(right);
        }
        std::mem::swap(order, spare);
        width *= 2;
    }
    Ok(())
}

/// The `k` largest (or smallest) elements along the last dimension, in order, and their indices.
/// Order is the total one, so that a positive NaN is the largest; of equals, the first comes first.
pub(crate) fn top_k(
    op: &ops::TopK,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    let mut results = results_of(shape)?;
    let [values, indices] = &mut results[..] else { return Err(outside()) };
    let Some((&last, outer)) = operand.sizes().split_last() else { return Err(outside()) };
    let count = lane_length(operand, operand.sizes(), outer.len())?;
    let _keyed = memory::reserve(count.saturating_mul(size_of::<(i128, usize)>()))?;
    let lane = Lane { count: op.k.min(count), step: 1 };

    let axes = zip(outer, zip(steps(operand.dims()), steps(values.dims())));
    let axes = axes.map(|(&size, (from, to))| (size, [from, to]));
    let mut keyed: Vec<(i128, usize)> = Vec::with_capacity(count);
    let mut order = Vec::new();
    Walk::new(evaluator, axes).points([0, 0], |[from, to]| {
        evaluator.count_steps(count as u64 >> 16)?;
        keyed.clear();
        for i in from..from + count {
            let key = total_order_key(operand, i);
            keyed.push((if op.largest { !key } else { key }, i));
        }
        keyed.sort_unstable();
        order.clear();
        order.extend(keyed.iter().take(lane.count).map(|&(_, i)| i));
        lane.take(&order, operand.data(), to, values.data_mut())?;
        let indices = values_mut::<i32>(indices.data_mut())?;
        for (i, &place) in order.iter().enumerate() {
            *indices.get_mut(to + i).ok_or_else(outside)? = index_of(place - from)?;
        }
        Ok(())
    })?;
    let mut sizes = operand.sizes().to_vec();
    sizes.pop();
    sizes.push(op.k.min(last));
    let results = results.into_iter();
    let results = results.map(|result| Ok(with_bounded_sizes(result, &sizes)?.into()));
    Ok(Literal::Tuple(results.collect::<Result<_>>()?))
}

/// A number that grows with the element in the total order.
fn total_order_key(array: &Array, i: usize) -> i128 {
    match (array.number(i), array.element().float_format()) {
        (Number::Int(value), _) => value,
        (_, Some(format)) => total_rank(array.bits(i), format),
        _ => array.bits(i) as i128,
    }
}

fn index_of(place: usize) -> Result<i32> {
    i32::try_from(place).map_err(|_| Error::invalid(format!("index {place} does not fit s32")))
}

#[cfg(test)]
mod tests {
    use helio_ir::ElementType::S32;
    use helio_ir::Native;
    use helio_ir::ops::{Direction, Sort, TopK};

    use super::*;
    use crate::testing::{Bench, Random, bounded, of, resized, run_all, run_on, shape, values};

    #[test]
    fn sort_is_stable_along_any_dimension() {
        let mut bench = Bench::new();
        let less = bench.compare(Direction::Lt, &[S32, S32, S32, S32], [0, 1]);
        let mut random = Random(17);
        for _ in 0..200 {
            let dims = random.dims();
            if dims.is_empty() {
                continue;
            }
            let dimension = random.below(dims.len());
            let count = dims.iter().product();
            let keys: Vec<i32> = (0..count).map(|_| random.below(4) as i32).collect();
            let tags: Vec<i32> = (0..count as i32).collect();
            let args = [&of(&dims, &keys), &of(&dims, &tags)];
            let out: Shape = shape(S32, &dims).into();
            let out = Shape::Tuple(vec![out.clone(), out]);
            let op = Sort { dimension, is_stable: false, to_apply: less };
            let found = run_all(&bench.evaluator(), sort, op, &args, &out).unwrap();
            let (found_keys, found_tags) = (values::<i32>(&found[0]), values::<i32>(&found[1]));

            // The standard library's stable sort of each lane.
            let step = steps(&dims)[dimension] as usize;
            let mut starts = (0..count).filter(|i| (i / step).is_multiple_of(dims[dimension]));
            assert!(starts.all(|start| {
                let lane = (0..dims[dimension]).map(|i| start + i * step);
                let mut pairs: Vec<_> = lane.clone().map(|i| (keys[i], tags[i])).collect();
                pairs.sort_by_key(|&(key, _)| key);
                pairs.into_iter().eq(lane.map(|i| (found_keys[i], found_tags[i])))
            }));
        }
    }

    #[test]
    fn sort_survives_any_comparator() {
        for direction in [Direction::Ge, Direction::Ne, Direction::Eq] {
            let mut bench = Bench::new();
            let f = bench.compare(direction, &[S32, S32], [0, 1]);
            let mut random = Random(19);
            for count in 0..70 {
                let x: Vec<i32> = (0..count).map(|_| random.below(9) as i32).collect();
                let op = Sort { dimension: 0, is_stable: true, to_apply: f };
                let out = shape(S32, &[count]);
                let found = run_on(&bench.evaluator(), sort, op, &[&of(&[count], &x)], &out);
                let (mut found, mut x) = (values::<i32>(&found.unwrap()), x);
                found.sort();
                x.sort();
                assert_eq!(found, x);
            }
        }
    }

    #[test]
    fn lanes_that_are_not_there_take_no_room() {
        let mut bench = Bench::new();
        let f = bench.compare(Direction::Lt, &[S32, S32], [0, 1]);
        let none = of::<i32>(&[0, usize::MAX >> 4], &[]);
        let op = Sort { dimension: 1, is_stable: false, to_apply: f };
        run_on(&bench.evaluator(), sort, op, &[&none], none.shape()).unwrap();
        top::<i32>(&none, 5, true);
    }

    #[test]
    fn padding_stays_behind() {
        let mut bench = Bench::new();
        let less = bench.compare(Direction::Lt, &[S32, S32], [0, 1]);
        let x = resized(&of(&[4], &[3, 2, 1, 0]), &[0], &[3]);
        let op = Sort { dimension: 0, is_stable: true, to_apply: less };
        let out = bounded(S32, &[4], &[0]);
        let found = run_on(&bench.evaluator(), sort, op, &[&x], &out).unwrap();
        assert_eq!(found.sizes(), [3]);
        assert_eq!(values::<i32>(&found)[..3], [1, 2, 3]);
    }

    fn top<T: Native>(x: &Array, k: usize, largest: bool) -> (Vec<T>, Vec<i32>) {
        let mut dims = x.dims().to_vec();
        *dims.last_mut().unwrap() = k;
        let out = Shape::Tuple(vec![shape(x.element(), &dims).into(), shape(S32, &dims).into()]);
        let bench = Bench::new();
        let op = TopK { k, largest };
        let found = run_all(&bench.evaluator(), top_k, op, &[x], &out).unwrap();
        (values(&found[0]), values(&found[1]))
    }

    #[test]
    fn top_k_is_by_total_order() {
        // XLA:CPU, for both directions.
        let x = [1f32, f32::NAN, -0.0, 0.0, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let x = of(&[8], &x);
        assert_eq!(top::<f32>(&x, 8, true).1, [1, 7, 5, 0, 3, 2, 6, 4]);
        assert_eq!(top::<f32>(&x, 8, false).1, [4, 6, 2, 3, 0, 5, 1, 7]);
        let (found, indices) = top::<u8>(&of(&[2, 3], &[7u8, 200, 7, 1, 0, 1]), 2, true);
        assert_eq!(found, [200, 7, 1, 1]);
        assert_eq!(indices, [1, 0, 0, 2]);
        assert_eq!(top::<i32>(&of(&[3], &[-1, 1, -1]), 2, false), (vec![-1, -1], vec![0, 2]));
        assert_eq!(top::<bool>(&of(&[3], &[false, true, true]), 1, true), (vec![true], vec![1]));
        assert_eq!(top::<f32>(&of::<f32>(&[2, 0], &[]), 0, true), (vec![], vec![]));
    }
}
