//! An instruction that is a kernel by itself, in a loop that may become one.

use std::iter::zip;

use helio_codegen::lower::lower;
use helio_ir::builder::{XlaBuilder, XlaComputation, XlaOp};
use helio_ir::{ArrayShape, BinaryOp, Computation, InstrId, Op, ops, verify};

use super::is_movement;
use crate::plan::{Frame, Planned, Planner, Step, StorageId};

impl<'m> Planner<'m> {
    /// Appends the kernels of an instruction by itself, if it can be lowered to kernels.
    pub(in crate::plan) fn alone(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let target = self.target.lowering(self.vectors());
        let Some((computation, operands)) = computation_of(frame.computation, id) else {
            return Ok(None);
        };
        // (What the builder has built passes; it is asked since only such modules are lowered.)
        let Ok(module) = verify(computation.module().clone()) else { return Ok(None) };
        let Ok(lowered) = lower(&module, module.entry_id(), target) else { return Ok(None) };
        let all = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let chosen = (
            operands.iter().map(|&i| all[i]).collect(),
            operands.iter().map(|&i| origins[i]).collect(),
        );
        self.kernels(frame, id, (&lowered, None), chosen, steps).map(Some)
    }
}

/// An instruction as a computation of its own, whose parameters are those of its operands that are
/// not scalar constants. A product is written as what it means: products of elements, and their sums.
fn computation_of(computation: &Computation, id: InstrId) -> Option<(XlaComputation, Vec<usize>)> {
    let instr = computation.instr(id);
    if !is_movement(&instr.op) && !matches!(instr.op, Op::Dot(_) | Op::DynamicUpdateSlice(_)) {
        return None;
    }
    let b = XlaBuilder::new("alone");
    let mut kept = Vec::new();
    let mut operands = Vec::with_capacity(instr.operands.len());
    for (i, &operand) in instr.operands.iter().enumerate() {
        let operand = computation.instr(operand);
        operands.push(match (&operand.op, operand.shape.as_array()?) {
            (Op::Constant(op), shape) if shape.is_scalar() && !op.elided => {
                b.constant_literal(op.literal.clone())
            }
            (_, shape) => {
                kept.push(i);
                b.parameter(kept.len() - 1, shape.clone().without_layout(), "")
            }
        });
    }
    let root = match (&instr.op, &operands[..]) {
        (Op::Dot(op), [lhs, rhs]) => product(op, &b, [lhs, rhs])?,
        (op, _) => b.add_instruction(op.clone(), &operands),
    };
    Some((b.build_with_root(root).ok()?, kept))
}

/// A product of matrices as sums of products.
fn product(op: &ops::Dot, b: &XlaBuilder, sides: [&XlaOp; 2]) -> Option<XlaOp> {
    let [lhs, rhs] = sides.map(XlaOp::array_shape);
    let (lhs, rhs) = (lhs.ok()?, rhs.ok()?);
    let dims = &op.dims;
    let (lhs_free, rhs_free) = (dims.lhs_free(lhs.rank()), dims.rhs_free(rhs.rank()));
    // Where the dimensions of each side are among batch, free, free and folded ones.
    let (batch, first, second) = (dims.lhs_batch.len(), lhs_free.len(), rhs_free.len());
    let kept = batch + first + second;
    let place = |all: [(&[usize], usize); 3], rank: usize| -> Vec<usize> {
        let mut places = vec![0; rank];
        for (of, begin) in all {
            of.iter().enumerate().for_each(|(n, &d)| places[d] = begin + n);
        }
        places
    };
    let lhs_places = place(
        [(&dims.lhs_batch, 0), (&lhs_free, batch), (&dims.lhs_contracting, kept)],
        lhs.rank(),
    );
    let rhs_places = place(
        [(&dims.rhs_batch, 0), (&rhs_free, batch + first), (&dims.rhs_contracting, kept)],
        rhs.rank(),
    );
    let mut sizes = vec![0; kept + dims.lhs_contracting.len()];
    for (places, shape) in [(&lhs_places, &lhs), (&rhs_places, &rhs)] {
        zip(places, shape.dims()).for_each(|(&place, &size)| sizes[place] = size);
    }
    let folded: Vec<usize> = (kept..sizes.len()).collect();
    let shape = ArrayShape::new(lhs.element(), sizes).ok()?;
    let spread = |side: &XlaOp, dimensions: Vec<usize>| {
        b.add_instruction(ops::Broadcast { shape: shape.clone(), dimensions }, &[side])
    };
    let all = spread(sides[0], lhs_places).binary(BinaryOp::Multiply, spread(sides[1], rhs_places));
    let add = XlaComputation::scalar(BinaryOp::Add, shape.element()).ok()?;
    Some(all.reduce(b.zero(shape.element()), &add, &folded))
}
