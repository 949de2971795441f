//! What follows from how far a counted loop's numbers go. Comparisons in the body always give the same where numbers
//! that count are compared with what they never reach; counters of 64 bits have room in 32.
//!
//! JAX writes `x[i]` with a selection for an `i` below zero, and what writes to `x[i]` asks whether it is inside of
//! `x`.

use std::iter::zip;

use helio_ir::ops::{Compare, Direction, GetTupleElement, While};
use helio_ir::{ArrayShape, BinaryOp, Computation, ElementType, Instr, InstrId, Number, Op, Shape};

use crate::draft::{Draft, parameter_number};
use crate::recognize::counted_loop;
use crate::simplify::integer_range;

/// The least and the greatest value of a scalar.
type Range = (i128, i128);

/// For each instruction of a loop's body, what it gives in each iteration, if it is a comparison of scalars that
/// always gives the same. None of them if it is not known how often the loop runs.
pub(super) fn known_comparisons(
    draft: &Draft<'_>,
    op: While,
    inits: &[InstrId],
) -> Vec<Option<bool>> {
    let counts = counts(draft, op, inits);
    let body = draft.callees().computation(op.body);
    let mut known = vec![None; body.instrs().len()];
    let Some((trips, counts)) = counts.filter(|&(trips, _)| trips > 0) else { return known };
    let next = &body.instr(body.root()).operands;
    let state = zip(&counts, next).map(|(count, &next)| {
        let range = count.as_ref()?.range(trips - 1)?;
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

/// An element of a loop's state that starts at a constant and changes by another in each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub start: i128,
    /// What it changes by.
    pub step: i128,
}

impl Count {
    /// The range of what it is, up to after as many iterations.
    fn range(&self, iterations: u64) -> Option<Range> {
        let last = self.start.checked_add(self.step.checked_mul(i128::from(iterations))?)?;
        Some((self.start.min(last), self.start.max(last)))
    }
}

/// How often a loop runs, and which elements of its state count. `None` if the former is not known.
fn counts(draft: &Draft<'_>, op: While, inits: &[InstrId]) -> Option<(u64, Vec<Option<Count>>)> {
    let starts: Vec<Option<i128>> = inits.iter().map(|&id| integer(draft.instr(id))).collect();
    let module = draft.callees();
    let body = module.computation(op.body);
    let counter = counted_loop(module, op.condition, op.body)?;
    let trips = counter.trips((*starts.get(counter.index?)?)?)?;
    let Op::Tuple(_) = body.instr(body.root()).op else { return None };
    let next = &body.instr(body.root()).operands;
    let counts = zip(&starts, next).enumerate().map(|(index, (&start, &next))| {
        Some(Count { start: start?, step: step(body, next, index)? })
    });
    Some((trips, counts.collect()))
}

/// The elements of a loop's state that count in 64 bits and would have room in 32, up to after the last
/// iteration, if nothing else of the loop has elements of 64 bits but single numbers: in vectors of the
/// processor, such a counter would halve the number of lanes. None of them unless the counter that the
/// condition looks at is among them.
pub(super) fn narrowed(draft: &Draft<'_>, op: While, inits: &[InstrId]) -> Vec<Option<Count>> {
    let none = vec![None; inits.len()];
    let Some((trips, counts)) = counts(draft, op, inits) else { return none };
    let module = draft.callees();
    let body = module.computation(op.body);
    let is_wide = |shape: &Shape| {
        shape
            .leaves()
            .into_iter()
            .filter_map(Shape::as_array)
            .any(|array| array.element().size_bytes() >= 8 && !array.is_scalar())
    };
    if body.instrs().iter().any(|instr| is_wide(&instr.shape)) {
        return none;
    }
    let int = integer_range(ElementType::S32);
    let fits = |(low, high): Range| int.0 <= low && high <= int.1;
    let narrowed = zip(&counts, inits).map(|(count, &init)| {
        let element = draft.array(init)?.element();
        let is_long = matches!(element, ElementType::S64 | ElementType::U64);
        count.filter(|count| is_long && count.range(trips).is_some_and(fits))
    });
    let narrowed: Vec<Option<Count>> = narrowed.collect();
    let counter = counted_loop(module, op.condition, op.body);
    let leads = counter.is_some_and(|counter| {
        let limit = counter.limit();
        fits((limit, limit)) && counter.index.is_some_and(|index| narrowed[index].is_some())
    });
    if leads { narrowed } else { none }
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
