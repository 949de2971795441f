//! What comparisons in the body of a counted loop give: always the same, where numbers that count are compared with
//! what they never reach.
//!
//! JAX writes `x[i]` with a selection for an `i` below zero, and what writes to `x[i]` asks whether it is inside of
//! `x`.

use std::iter::zip;

use helio_ir::ops::{Compare, Direction, GetTupleElement, While};
use helio_ir::{ArrayShape, BinaryOp, Computation, Instr, InstrId, Number, Op};

use crate::draft::{Draft, parameter_number};
use crate::recognize::counted_loop;
use crate::simplify::integer_range;

/// The least and the greatest value of a scalar.
type Range = (i128, i128);

/// For each instruction of a loop's body, what it gives in each iteration, if it is a comparison of scalars that
/// always gives the same. None of them if it is not known how often the loop runs.
pub(super) fn known_comparisons(
    draft: &mut Draft<'_>,
    op: While,
    inits: &[InstrId],
) -> Vec<Option<bool>> {
    let starts: Vec<Option<i128>> = inits.iter().map(|&id| integer(draft.instr(id))).collect();
    let module = draft.module();
    let body = module.computation(op.body);
    let mut known = vec![None; body.instrs().len()];
    let trips = counted_loop(module, op.condition, op.body)
        .and_then(|counter| counter.trips((*starts.get(counter.index?)?)?));
    let Some(trips) = trips.filter(|&trips| trips > 0) else { return known };
    let Op::Tuple(_) = body.instr(body.root()).op else { return known };
    let next = &body.instr(body.root()).operands;
    let state = zip(&starts, next).enumerate().map(|(index, (&start, &next))| {
        let (start, step) = (start?, step(body, next, index)?);
        let last = start.checked_add(step.checked_mul(i128::from(trips) - 1)?)?;
        let range = (start.min(last), start.max(last));
        holds(body.instr(next), range).then_some(range)
    });
    let state: Vec<Option<Range>> = state.collect();

    let mut ranges: Vec<Option<Range>> = Vec::with_capacity(known.len());
    for (i, instr) in body.instrs().iter().enumerate() {
        let of = |operand: usize| instr.operands.get(operand).and_then(|id| ranges[id.index()]);
        if let (Op::Compare(op), Some(a), Some(b)) = (&instr.op, of(0), of(1)) {
            known[i] = compared(op, a, b);
        }
        let chosen = match (&instr.op, instr.operands.first().and_then(|id| known[id.index()])) {
            (Op::Select(_), Some(chosen)) => of(if chosen { 1 } else { 2 }),
            _ => None,
        };
        let range = match &instr.op {
            Op::GetTupleElement(GetTupleElement { index })
                if parameter_number(&body.instr(instr.operands[0]).op).is_some() =>
            {
                state[*index]
            }
            _ => chosen.or_else(|| range(instr, of)),
        };
        ranges.push(range.filter(|&range| holds(instr, range)));
    }
    known
}

/// Whether an instruction is an integer without dimensions whose type has all numbers of a range.
fn holds(instr: &Instr, (low, high): Range) -> bool {
    let scalar = instr.shape.as_array().filter(|array| array.is_scalar());
    scalar.map(ArrayShape::element).filter(|ty| ty.is_integer()).is_some_and(|ty| {
        let (least, greatest) = integer_range(ty);
        least <= low && high <= greatest
    })
}

/// The value of an integer constant without dimensions.
fn integer(instr: &Instr) -> Option<i128> {
    match &instr.op {
        Op::Constant(op) if !op.elided => match op.literal.as_array()? {
            array if array.shape().is_scalar() => match array.number(0) {
                Number::Int(value) => Some(value),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The constant that an element of the next state is more than that of the state.
fn step(body: &Computation, next: InstrId, index: usize) -> Option<i128> {
    let instr = body.instr(next);
    let &[a, b] = &instr.operands[..] else { return None };
    let is_element = |id: InstrId| match body.instr(id).op {
        Op::GetTupleElement(op) => {
            op.index == index
                && parameter_number(&body.instr(body.instr(id).operands[0]).op).is_some()
        }
        _ => false,
    };
    match instr.op {
        Op::Binary(BinaryOp::Add) if is_element(a) => integer(body.instr(b)),
        Op::Binary(BinaryOp::Add) if is_element(b) => integer(body.instr(a)),
        Op::Binary(BinaryOp::Subtract) if is_element(a) => integer(body.instr(b))?.checked_neg(),
        _ => None,
    }
}

/// The range of a scalar, if it follows from those of its operands; beyond its type's range it wraps around.
fn range(instr: &Instr, of: impl Fn(usize) -> Option<Range>) -> Option<Range> {
    if let Some(value) = integer(instr) {
        return Some((value, value));
    }
    match &instr.op {
        Op::Binary(BinaryOp::Add) => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.checked_add(c)?, b.checked_add(d)?))
        }
        Op::Binary(BinaryOp::Subtract) => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.checked_sub(d)?, b.checked_sub(c)?))
        }
        Op::Binary(BinaryOp::Minimum) => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.min(c), b.min(d)))
        }
        Op::Binary(BinaryOp::Maximum) => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.max(c), b.max(d)))
        }
        Op::Select(_) => {
            let ((a, b), (c, d)) = (of(1)?, of(2)?);
            Some((a.min(c), b.max(d)))
        }
        Op::Convert(_) | Op::Reshape(_) => of(0),
        _ => None,
    }
}

/// What a comparison of any numbers of two ranges gives.
fn compared(op: &Compare, (a, b): Range, (c, d): Range) -> Option<bool> {
    let (always, never) = match op.direction {
        Direction::Lt => (b < c, a >= d),
        Direction::Le => (b <= c, a > d),
        Direction::Gt => (a > d, b <= c),
        Direction::Ge => (a >= d, b < c),
        Direction::Eq => (a == b && c == d && a == c, b < c || d < a),
        Direction::Ne => (b < c || d < a, a == b && c == d && a == c),
    };
    (always || never).then_some(always)
}
