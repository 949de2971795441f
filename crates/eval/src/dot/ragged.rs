//! `ragged-dot`: dot products over groups of rows, columns or batches.

use helio_ir::memory::Counted;
use helio_ir::{Array, Error, Literal, Native, Number, Result, Shape, dispatch, ops};

use super::{DotPlan, add_row_products, add_scaled};
use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::products::{Term, dispatch_term, finish_in_order, zeros};

/// Dot over groups whose sizes are given at run time. What is beyond the last group is zero.
pub(crate) fn ragged_dot(
    op: &ops::RaggedDot,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lhs, rhs, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let group_sizes = array(args, 2)?;
    if shape.element_count() == 0 {
        return Array::zeros(shape.clone()).map(Literal::Array); // however many empty rows
    }
    let ragged = *op.lhs_ragged.first().ok_or_else(|| Error::internal("no ragged dimension"))?;
    let plan = DotPlan::new(&op.dims, lhs, rhs, &op.rhs_group);
    let (mode, groups) = if let Some(place) = position(&op.dims.lhs_batch, ragged) {
        (Mode::Batch, Groups::new(lhs, &op.dims.lhs_batch, place, group_sizes)?)
    } else if let Some(place) = position(&op.dims.lhs_contracting, ragged) {
        let dims = [&op.dims.lhs_batch[..], &op.dims.lhs_contracting].concat();
        (Mode::Contracting, Groups::new(lhs, &dims, op.dims.lhs_batch.len() + place, group_sizes)?)
    } else {
        let place = position(&plan.lhs_free, ragged)
            .ok_or_else(|| Error::internal("the ragged dimension is not one of lhs"))?;
        let dims = [&op.dims.lhs_batch[..], &plan.lhs_free].concat();
        (Mode::Free, Groups::new(lhs, &dims, op.dims.lhs_batch.len() + place, group_sizes)?)
    };
    let result = dispatch_term!(shape.element(), S => {
        let lhs = plan.pack_lhs::<S>(evaluator, lhs, shape)?;
        let rhs = plan.pack_rhs::<S>(evaluator, rhs, shape)?;
        let mut sums = zeros::<S>(shape.element_count())?;
        add_ragged_products(&plan, mode, &groups, evaluator, (&lhs, &rhs), &mut sums)?;
        finish_in_order(&sums, shape)
    })?;
    let mut sizes = plan.result_sizes(lhs, rhs);
    if mode == Mode::Contracting {
        sizes.insert(0, group_sizes.sizes().last().copied().unwrap_or(0));
    }
    with_bounded_sizes(result, &sizes).map(Literal::Array)
}

fn position(dims: &[usize], dim: usize) -> Option<usize> {
    dims.iter().position(|&d| d == dim)
}

/// What kind of dimension falls into groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A free dimension of lhs: each row is multiplied by its group's matrix.
    Free,
    /// A contracting dimension: each group has a result of its own.
    Contracting,
    /// A batch dimension: groups only say how many batches count.
    Batch,
}

fn add_ragged_products<S: Term>(
    plan: &DotPlan,
    mode: Mode,
    groups: &Groups,
    evaluator: &Evaluator<'_>,
    (lhs, rhs): (&[S], &[S]),
    sums: &mut [S],
) -> Result<()> {
    for batch in 0..plan.batches {
        for row in 0..plan.rows {
            evaluator.count_steps(1)?;
            let lhs = plan.lhs_row(lhs, batch, row);
            let group = match mode {
                Mode::Free => groups.of(batch * plan.rows + row).filter(|&g| g < plan.groups),
                Mode::Batch => groups.of(batch).map(|_| 0),
                Mode::Contracting => {
                    if plan.columns == 0 {
                        continue;
                    }
                    let matrix = plan.rhs_matrix(rhs, 0, batch).chunks_exact(plan.columns);
                    for (k, (&a, values)) in lhs.iter().zip(matrix).enumerate() {
                        if let Some(group) = groups.of(batch * plan.contracted + k) {
                            add_scaled(plan.sum_row(sums, (group, batch, row)), a, values);
                        }
                    }
                    continue;
                }
            };
            if let Some(group) = group {
                let matrix = plan.rhs_matrix(rhs, group, batch);
                add_row_products(plan.sum_row(sums, (0, batch, row)), lhs, matrix);
            }
        }
    }
    Ok(())
}

/// Which group each place along the ragged dimension belongs to.
struct Groups {
    /// For each point of the dimensions before the ragged one, and it: its group, if any.
    group: Counted<Option<usize>>,
    /// How many points the dimensions after the ragged one have.
    inner: usize,
}

impl Groups {
    /// `dims` are the dimensions of lhs that number places; the one at `ragged` in this list falls
    /// into groups. The sizes are one list for all, or one list for each point of the dimensions
    /// before it.
    fn new(lhs: &Array, dims: &[usize], ragged: usize, group_sizes: &Array) -> Result<Self> {
        let product = |dims: &[usize]| dims.iter().map(|&d| lhs.dims()[d]).product::<usize>();
        let (outer, length) = (product(&dims[..ragged]), lhs.dims()[dims[ragged]]);
        let count = group_sizes.dims().last().copied().unwrap_or(0);
        let sizes: Vec<i128> = dispatch!(group_sizes.data(), values => {
            values.iter().map(|&v| match v.to_number() {
                Number::Int(size) => size,
                _ => 0,
            }).collect()
        });
        let mut group = Counted::of(outer * length, || vec![None; outer * length])?;
        for (point, group) in group.chunks_exact_mut(length.max(1)).enumerate() {
            let first = if group_sizes.dims().len() == 1 { 0 } else { point * count };
            let sizes = sizes.get(first..first + count);
            let sizes = sizes.ok_or_else(|| Error::internal("too few group sizes"))?;
            let (mut end, mut place) = (0i128, 0);
            for (g, size) in sizes.iter().enumerate() {
                end += size;
                while place < length && (place as i128) < end {
                    group[place] = Some(g);
                    place += 1;
                }
            }
        }
        Ok(Groups { group, inner: product(&dims[ragged + 1..]).max(1) })
    }

    /// The group of the point with this number in row-major order.
    fn of(&self, point: usize) -> Option<usize> {
        self.group[point / self.inner]
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::ElementType;
    use helio_ir::ops::DotDims;

    use super::*;
    use crate::testing::{on_evaluator, pattern};

    struct Case {
        dims: DotDims,
        ragged: usize,
        group: &'static [usize],
        lhs: &'static [usize],
        rhs: &'static [usize],
        sizes: (&'static [usize], &'static [i32]),
        result: (&'static [usize], &'static [i32]),
    }

    fn dims(lhs: [&[usize]; 2], rhs: [&[usize]; 2]) -> DotDims {
        DotDims {
            lhs_contracting: lhs[0].to_vec(),
            rhs_contracting: rhs[0].to_vec(),
            lhs_batch: lhs[1].to_vec(),
            rhs_batch: rhs[1].to_vec(),
        }
    }

    fn check(case: Case) {
        let operand = |dims: &[usize], (a, b, m): (usize, usize, usize)| -> Literal {
            let values = pattern(dims.iter().product(), a, b, m);
            Literal::array(dims, values).unwrap()
        };
        let op = ops::RaggedDot {
            dims: case.dims,
            lhs_ragged: vec![case.ragged],
            rhs_group: case.group.to_vec(),
            element: ElementType::S32,
            precision: Vec::new(),
        };
        let args = [
            operand(case.lhs, (7, 3, 11)),
            operand(case.rhs, (5, 2, 7)),
            Literal::array(case.sizes.0, case.sizes.1.to_vec()).unwrap(),
        ];
        let shape = Shape::array(ElementType::S32, case.result.0).unwrap();
        let value = on_evaluator(|ev| ragged_dot(&op, ev, &args, &shape)).unwrap();
        assert_eq!(value.as_array().unwrap().values::<i32>().unwrap(), case.result.1);
    }

    // Expected values are those of `jax.lax.ragged_dot_general`.

    #[test]
    fn rows_beyond_the_groups_are_zero() {
        check(Case {
            dims: dims([&[1], &[]], [&[1], &[]]),
            ragged: 0,
            group: &[0],
            lhs: &[5, 2],
            rhs: &[2, 2, 3],
            sizes: (&[2], &[2, 1]),
            result: (&[5, 3], &[2, -4, 11, -1, 3, -7, 4, -4, -12, 0, 0, 0, 0, 0, 0]),
        });
    }

    #[test]
    fn groups_of_each_batch() {
        check(Case {
            dims: dims([&[2], &[0]], [&[2], &[0]]),
            ragged: 1,
            group: &[1],
            lhs: &[2, 4, 2],
            rhs: &[2, 3, 2, 2],
            sizes: (&[2, 3], &[1, 0, 2, 0, 3, 1]),
            result: (&[2, 4, 2], &[12, 6, -3, 8, -12, 8, 0, 0, 8, -15, 8, -6, 8, 3, -15, 11]),
        });
    }

    #[test]
    fn groups_of_each_outer_row() {
        check(Case {
            dims: dims([&[2], &[]], [&[1], &[]]),
            ragged: 1,
            group: &[0],
            lhs: &[2, 4, 2],
            rhs: &[3, 2, 2],
            sizes: (&[2, 3], &[1, 0, 2, 0, 3, 1]),
            result: (&[2, 4, 2], &[12, 6, -3, 8, -12, 8, 0, 0, -3, 2, -6, 8, -9, 14, 9, -14]),
        });
    }

    #[test]
    fn contracting_groups_have_results_of_their_own() {
        check(Case {
            dims: dims([&[1], &[]], [&[0], &[]]),
            ragged: 1,
            group: &[],
            lhs: &[2, 5],
            rhs: &[5, 2],
            sizes: (&[3], &[2, 0, 1]),
            result: (&[3, 2, 2], &[12, 6, -8, 0, 0, 0, 0, 0, -2, 3, -6, 9]),
        });
        check(Case {
            dims: dims([&[2], &[0]], [&[1], &[0]]),
            ragged: 2,
            group: &[],
            lhs: &[2, 2, 4],
            rhs: &[2, 4, 2],
            sizes: (&[2, 2], &[1, 2, 3, 1]),
            result: (&[2, 2, 2, 2], &[2, 6, -4, -12, 9, 10, -24, 5, 8, 3, 8, -12, 2, 6, -4, -12]),
        });
    }

    /// Batches beyond the groups are zero (XLA's evaluator; JAX leaves them).
    #[test]
    fn batch_groups_count_batches() {
        check(Case {
            dims: dims([&[1], &[0]], [&[1], &[0]]),
            ragged: 0,
            group: &[],
            lhs: &[3, 2],
            rhs: &[3, 2],
            sizes: (&[2], &[1, 1]),
            // lhs -2 5, 1 -3, 4 0; rhs -1 -3, 2 0, -2 3
            result: (&[3], &[-13, 2, 0]),
        });
    }
}
