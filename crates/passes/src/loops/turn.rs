//! Matrices that are turned once, before a loop.
//!
//! A matrix of which each iteration takes the products of all rows with a vector is read along its rows: the lanes of
//! a sum are added up for each of them, or a vector gets its lanes from places that lie apart. Of the transposed
//! matrix, the results of a vector's worth of rows lie side by side.

use helio_ir::ops::{Dot, GetTupleElement, Transpose};
use helio_ir::{ArrayShape, CompId, Computation, ElementType, InstrId, Op, Result};

use super::plan::State;
use crate::draft::Draft;

/// The fewest rows: fewer do not fill a vector.
const MIN_ROWS: usize = 12;
/// The fewest elements: fewer are not worth an element of the state.
const MIN_ELEMENTS: usize = super::plan::ENOUGH;
/// The most elements: what has more is no part of a loop's code, but a step with kernels for matrices as they
/// lie.
const MAX_ELEMENTS: usize = 1 << 15;

/// A product of a loop's body whose matrix had better be turned.
struct Turned {
    dot: InstrId,
    /// Which operand the matrix is.
    operand: usize,
}

/// Adds a body of a loop in which such matrices, where no iteration changes them, are transposed before they are
/// multiplied: what takes out of loops what is the same in each iteration then finds that. `None` if there
/// are none.
pub(super) fn with_turned_matrices(draft: &mut Draft<'_>, body: CompId) -> Result<Option<CompId>> {
    let turned = find(draft.module().computation(body));
    if turned.is_empty() {
        return Ok(None);
    }
    let old = draft.module().computation(body).clone();
    let mut new = Draft::new(draft.module(), old.name.clone());
    let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs().len());
    let mut turned = turned.into_iter().peekable();
    for (id, instr) in old.ids().zip(old.instrs()) {
        new.stand_for(instr);
        let mut instr = instr.clone();
        if let Some(Turned { operand, .. }) = turned.next_if(|turned| turned.dot == id) {
            let matrix = map[instr.operands[operand].index()];
            let matrix = new.add(Transpose { permutation: vec![1, 0] }, &[matrix])?;
            let mut operands: Vec<InstrId> =
                instr.operands.iter().map(|id| map[id.index()]).collect();
            operands[operand] = matrix;
            let Op::Dot(dot) = &mut instr.op else { unreachable!("found as a product") };
            *contracting(dot, operand) = vec![0];
            let product = new.add(instr.op, &operands)?;
            new.rename(product, instr.name);
            map.push(product);
        } else {
            map.push(new.carry(instr, &map));
        }
    }
    let new = new.finish(map[old.root().index()])?;
    draft.module().push(new).map(Some)
}

/// The contracting dimensions of an operand.
fn contracting(dot: &mut Dot, operand: usize) -> &mut Vec<usize> {
    match operand {
        0 => &mut dot.dims.lhs_contracting,
        _ => &mut dot.dims.rhs_contracting,
    }
}

fn find(body: &Computation) -> Vec<Turned> {
    let next = &body.instr(body.root()).operands;
    let Op::Tuple(_) = body.instr(body.root()).op else { return Vec::new() };
    let is_dot = |id: &InstrId| matches!(body.instr(*id).op, Op::Dot(_));
    let dots: Vec<InstrId> = body.ids().filter(is_dot).collect();
    if dots.is_empty() {
        return Vec::new();
    }
    let Some(state) = State::of(body) else { return Vec::new() };
    // An element of the state that comes out of an iteration as it goes in.
    let is_invariant = |id: InstrId| match body.instr(id).op {
        Op::GetTupleElement(GetTupleElement { index }) => {
            state.element[id.index()] == Some(index)
                && state.element[next[index].index()] == Some(index)
        }
        _ => false,
    };
    let turned = dots.into_iter().filter_map(|dot| {
        let instr = body.instr(dot);
        let Op::Dot(op) = &instr.op else { return None };
        let [lhs, rhs] = [0, 1].map(|i| body.instr(instr.operands[i]).shape.as_array());
        let (lhs, rhs) = (lhs?, rhs?);
        let dims = &op.dims;
        let sides = [(0, lhs, rhs, &dims.lhs_contracting), (1, rhs, lhs, &dims.rhs_contracting)];
        let is_better = |&(operand, matrix, other, along): &(usize, _, _, &Vec<usize>)| {
            dims.lhs_batch.is_empty()
                && along[..] == [1]
                && is_better_turned(matrix, other)
                && is_invariant(instr.operands[operand])
        };
        let (operand, ..) = sides.into_iter().find(is_better)?;
        Some(Turned { dot, operand })
    });
    turned.collect()
}

/// Whether products of a matrix's rows with a vector are better read from the transposed matrix.
fn is_better_turned(matrix: &ArrayShape, other: &ArrayShape) -> bool {
    let is_float =
        |shape: &ArrayShape| matches!(shape.element(), ElementType::F32 | ElementType::F64);
    let [rows, steps] = matrix.dims() else { return false };
    is_float(matrix)
        && is_float(other)
        && matrix.is_static()
        && other.is_static()
        && *rows >= MIN_ROWS
        && (MIN_ELEMENTS..=MAX_ELEMENTS).contains(&matrix.element_count())
        && other.element_count() == *steps
}
