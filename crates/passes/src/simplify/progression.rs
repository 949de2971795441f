//! Arrays of integers that count: what each element is follows from its place.

use helio_ir::ops::{Compare, Direction};
use helio_ir::{Array, BinaryOp, InstrId, Number, Op};

use super::Simplifier;
use super::bits::range;

/// The most instructions, each an operand of the one before, that are looked at.
const MAX_REASONS: usize = 12;

/// The most elements of a constant that are looked at.
const MAX_LISTED: usize = 256;

/// Numbers that each differ from the one before by as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    /// The first of them.
    pub start: i128,
    /// The difference.
    pub step: i128,
    /// How many there are, at least one.
    pub count: usize,
}

impl Progression {
    /// The last number.
    pub fn last(&self) -> i128 {
        self.start + self.step * (self.count as i128 - 1)
    }

    /// Whether all numbers are in this range.
    pub fn lies_in(&self, low: i128, high: i128) -> bool {
        [self.start, self.last()].into_iter().all(|end| (low..=high).contains(&end))
    }
}

/// The elements of an array of integers that has more than one along one dimension at most, in order, if they are known
/// to be a progression.
pub(super) fn progression(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<Progression> {
    let array = cx.draft.array(id)?;
    let is_line = array.dims().iter().filter(|&&size| size != 1).count() <= 1;
    (is_line && array.is_static() && array.element_count() > 0).then_some(())?;
    within(cx, id, MAX_REASONS)
}

fn within(cx: &Simplifier<'_, '_>, id: InstrId, reasons: usize) -> Option<Progression> {
    let array = cx.draft.array(id)?;
    let count = array.element_count();
    if !array.element().is_integer() || reasons == 0 {
        return None;
    }
    if let Some(Number::Int(start)) = cx.splat(id) {
        return Some(Progression { start, step: 0, count });
    }
    let of = |id: InstrId| within(cx, id, reasons - 1);
    let operands = cx.draft.operands(id);
    let found = match (cx.draft.op(id), operands) {
        (Op::Iota(op), _) => {
            let step = i128::from(array.dims()[op.dimension] > 1);
            Progression { start: 0, step, count }
        }
        (Op::Constant(_), _) => counting(cx.constant(id)?)?,
        // (No other dimension has more than one element.)
        (Op::Reshape(_) | Op::Convert(_), &[x]) => of(x)?,
        (Op::Broadcast(_), &[x]) if count == cx.draft.array(x)?.element_count() => of(x)?,
        (Op::Binary(op), &[a, b]) => combined(*op, of(a)?, of(b)?)?,
        (Op::Clamp(_), &[low, x, high]) => {
            let [low, x, high] = [of(low)?, of(x)?, of(high)?];
            (low.step == 0 && high.step == 0 && x.lies_in(low.start, high.start)).then_some(x)?
        }
        (Op::Select(_), &[condition, on_true, on_false]) => {
            let taken = if decided(cx, condition, reasons - 1)? { on_true } else { on_false };
            of(taken)?
        }
        _ => return None,
    };
    // Integers wrap around beyond their type's range.
    let (low, high) = range(array.element());
    found.lies_in(low, high).then_some(found)
}

/// The elements of a constant, if there are two or more, but not many.
fn counting(array: &Array) -> Option<Progression> {
    let count = array.shape().element_count();
    if !(2..=MAX_LISTED).contains(&count) {
        return None;
    }
    let number = |i: usize| match array.number(i) {
        Number::Int(number) => Some(number),
        _ => None,
    };
    let (start, step) = (number(0)?, number(1)? - number(0)?);
    let counts = (1..count).all(|i| number(i) == Some(start + step * i as i128));
    counts.then_some(Progression { start, step, count })
}

fn combined(op: BinaryOp, a: Progression, b: Progression) -> Option<Progression> {
    let count = a.count.max(b.count);
    // A step above 2^64 does not fit the type of the result anyway.
    let is_moderate = |v: i128| i64::try_from(v).is_ok();
    if ![a.start, a.step, b.start, b.step].into_iter().all(is_moderate) {
        return None;
    }
    let (start, step) = match op {
        BinaryOp::Add => (a.start + b.start, a.step + b.step),
        BinaryOp::Subtract => (a.start - b.start, a.step - b.step),
        BinaryOp::Multiply if b.step == 0 => (a.start * b.start, a.step * b.start),
        BinaryOp::Multiply if a.step == 0 => (a.start * b.start, a.start * b.step),
        _ => return None,
    };
    let is_small = is_moderate(start) && is_moderate(step);
    is_small.then_some(Progression { start, step, count })
}

/// What a comparison of a progression with a number gives, if that is the same for all elements.
fn decided(cx: &Simplifier<'_, '_>, id: InstrId, reasons: usize) -> Option<bool> {
    let (&Op::Compare(Compare { direction, .. }), &[a, b]) =
        (cx.draft.op(id), cx.draft.operands(id))
    else {
        return None;
    };
    let (a, b) = (within(cx, a, reasons)?, within(cx, b, reasons)?);
    let differences = [a.start - b.start, a.last() - b.last()];
    let all = |holds: fn(i128) -> bool| differences.into_iter().all(holds);
    let (holds, fails) = match direction {
        Direction::Lt => (all(|d| d < 0), all(|d| d >= 0)),
        Direction::Ge => (all(|d| d >= 0), all(|d| d < 0)),
        Direction::Gt => (all(|d| d > 0), all(|d| d <= 0)),
        Direction::Le => (all(|d| d <= 0), all(|d| d > 0)),
        Direction::Eq | Direction::Ne => return None,
    };
    (holds || fails).then_some(holds)
}
