//! Factors of small matrices and triangular systems as generated code, in a loop that may become one kernel.

use helio_codegen::Vouched;
use helio_codegen::kernel::Kernel;
use helio_codegen::linalg::{Cholesky, Leaves, MAX_ORDER, TriangularSolve};
use helio_ir::{Computation, ElementType, Instr, InstrId, Op, ops};

use super::{InstrShapes, lapack};
use crate::plan::{Frame, Planned, Planner, Step, StorageId};

/// Whether an instruction is one of those that [`Planner::factored`] makes generated code of, with a matrix that is
/// small enough.
pub(in crate::plan) fn is_factored(computation: &Computation, instr: &Instr) -> bool {
    let is_known = match &instr.op {
        Op::Cholesky(_) | Op::TriangularSolve(_) => true,
        Op::CustomCall(op) => lapack::is_generated(&op.target),
        _ => false,
    };
    let matrix = instr.operands.first().and_then(|&id| computation.instr(id).shape.as_array());
    is_known && matrix.is_some_and(|a| a.dims().last().is_some_and(|&n| n <= MAX_ORDER))
}

/// Generated code for an instruction, for vectors of so many lanes, and its work in processor cycles.
fn generated(site: &InstrShapes<'_>, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
    match &site.instr.op {
        Op::Cholesky(op) => {
            let [a] = site.operands[..] else { return None };
            let [outer @ .., n, _] = a.dims() else { return None };
            let cholesky = Cholesky {
                element: a.element(),
                count: outer.iter().product(),
                n: *n,
                lower: op.lower,
                leaves: Leaves::Zeros,
            };
            cholesky.kernel(lanes)
        }
        Op::TriangularSolve(op) => {
            let [a, b] = site.operands[..] else { return None };
            let [outer @ .., rows, columns] = b.dims() else { return None };
            let (order, free) = if op.left_side { (*rows, *columns) } else { (*columns, *rows) };
            let solve = TriangularSolve {
                element: a.element(),
                count: outer.iter().product(),
                order,
                free,
                left_side: op.left_side,
                lower: op.lower,
                transpose: op.transpose_a != ops::TransposeA::NoTranspose,
                unit_diagonal: op.unit_diagonal,
            };
            solve.kernel(lanes)
        }
        Op::CustomCall(op) => lapack::generated(site, op, lanes),
        _ => None,
    }
}

impl<'m> Planner<'m> {
    /// Appends the kernel of an instruction that factors small matrices, or solves with them, if it is one.
    pub(in crate::plan) fn factored(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        if !is_factored(frame.computation, frame.computation.instr(id)) {
            return Ok(None);
        }
        let Some(site) = self.site(frame, id) else { return Ok(None) };
        let is_wide = |element: ElementType| element.bits() > 32;
        let all = site.operands.iter().chain(&site.results);
        let mut vectors = self.vectors();
        vectors.wide |= all.into_iter().any(|a| is_wide(a.element()));
        let Some((kernel, cost)) = generated(&site, vectors.lanes()) else { return Ok(None) };
        let sizes: Vec<usize> = site.results.iter().map(|shape| shape.size_bytes()).collect();
        self.position += 1;
        let results = sizes.into_iter().map(|bytes| self.storage(bytes, frame.owner));
        let results: Vec<StorageId> = results.collect();
        let mut slots = frame.operands(id);
        slots.extend(&results);
        let action = self.kernel_step(&kernel, cost, slots.clone())?;
        self.push(steps, action, &slots);
        Ok(Some(results))
    }
}
