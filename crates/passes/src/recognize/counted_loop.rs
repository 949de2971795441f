//! Loops whose number of iterations follows from constants.

use helio_ir::ops::{BinaryOp, Compare, Direction};
use helio_ir::{CompId, Literal, Module, Number, Op};

use super::flat::{FlatComputation, FlatInstr};
use crate::effects;

/// A loop that counts: an integer of its state starts somewhere, changes by the same step in each
/// iteration, and is compared with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Which element of the state; `None` if the state is the counter.
    pub index: Option<usize>,
    step: i128,
    /// The loop goes on as long as `counter <direction> limit`.
    direction: Direction,
    limit: i128,
    /// The range of the counter's type.
    range: (i128, i128),
}

impl Counter {
    /// What the counter is compared with.
    pub fn limit(&self) -> i128 {
        self.limit
    }

    /// The loop goes on as long as the counter and [`Counter::limit`] compare so.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// How often the body runs if the counter starts here. `None` if the counter would leave the
    /// range of its type, or the loop not end.
    pub fn trips(&self, start: i128) -> Option<u64> {
        let Counter { step, limit, .. } = *self;
        // The first value that ends the loop, counted in the direction of the step.
        let (distance, step) =
            if step < 0 { (start - limit, -step) } else { (limit - start, step) };
        let upwards = self.step > 0;
        let trips = match self.direction {
            Direction::Lt if upwards => (distance + step - 1).div_euclid(step),
            Direction::Le if upwards => distance.div_euclid(step) + 1,
            Direction::Gt if !upwards => (distance + step - 1).div_euclid(step),
            Direction::Ge if !upwards => distance.div_euclid(step) + 1,
            Direction::Ne if distance >= 0 && distance % step == 0 => distance / step,
            // It ends at once, or not before it wraps around.
            _ if !holds(self.direction, start, limit) => 0,
            _ => return None,
        };
        let trips = trips.max(0);
        let end = start.checked_add(self.step.checked_mul(trips)?)?;
        if end < self.range.0 || end > self.range.1 {
            return None;
        }
        u64::try_from(trips).ok()
    }
}

fn holds(direction: Direction, a: i128, b: i128) -> bool {
    match direction {
        Direction::Eq => a == b,
        Direction::Ne => a != b,
        Direction::Lt => a < b,
        Direction::Le => a <= b,
        Direction::Gt => a > b,
        Direction::Ge => a >= b,
    }
}

/// How a loop counts, if its condition does nothing but compare a counter with a constant, and its
/// body adds a constant to the counter.
pub fn counted_loop(module: &Module, condition: CompId, body: CompId) -> Option<Counter> {
    if effects::computation_has_effect(module, condition) {
        return None;
    }
    let condition = FlatComputation::new(module, condition);
    let body = FlatComputation::new(module, body);
    let (index, direction, limit) = continuation(&condition)?;
    let next = match (index, &body.instr(body.root()).op) {
        (None, _) => body.root(),
        (Some(index), Op::Tuple(_)) => body.operand(body.root(), index)?,
        _ => return None,
    };
    let step = step(&body, next, index)?;
    let element = body.instr(next).shape.as_array()?.element();
    let bits = u32::try_from(element.bits()).ok()?;
    let range = if element.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    (step != 0).then_some(Counter { index, step, direction, limit, range })
}

/// Under which condition the loop goes on: which element of the state is compared, how, and with
/// which constant.
fn continuation(condition: &FlatComputation<'_>) -> Option<(Option<usize>, Direction, i128)> {
    let root = condition.root();
    let Op::Compare(Compare { direction, .. }) = condition.instr(root).op else { return None };
    let (a, b) = (condition.operand(root, 0)?, condition.operand(root, 1)?);
    let (counter, direction, limit) = match (constant(condition, a), constant(condition, b)) {
        (None, Some(limit)) => (a, direction, limit),
        (Some(limit), None) => (b, mirrored(direction), limit),
        _ => return None,
    };
    Some((state_element(condition, counter)?, direction, limit))
}

/// The constant that an instruction of the body adds to an element of the state.
fn step(body: &FlatComputation<'_>, next: FlatInstr, index: Option<usize>) -> Option<i128> {
    let is_counter = |at: FlatInstr| state_element(body, at) == Some(index);
    let (a, b) = (body.operand(next, 0)?, body.operand(next, 1)?);
    match body.instr(next).op {
        Op::Binary(BinaryOp::Add) => match (constant(body, a), constant(body, b)) {
            (None, Some(step)) if is_counter(a) => Some(step),
            (Some(step), None) if is_counter(b) => Some(step),
            _ => None,
        },
        Op::Binary(BinaryOp::Subtract) if is_counter(a) => constant(body, b)?.checked_neg(),
        _ => None,
    }
}

/// The element of the state that an instruction takes: `Some(None)` if the state is no tuple, and the
/// instruction is the state itself; `None` if it is neither.
fn state_element(of: &FlatComputation<'_>, at: FlatInstr) -> Option<Option<usize>> {
    match &of.instr(at).op {
        Op::Parameter(_) => Some(None),
        Op::GetTupleElement(op) => {
            let tuple = of.operand(at, 0)?;
            matches!(of.instr(tuple).op, Op::Parameter(_)).then_some(Some(op.index))
        }
        _ => None,
    }
}

/// The value of an instruction that is an integer constant without dimensions.
fn constant(of: &FlatComputation<'_>, at: FlatInstr) -> Option<i128> {
    match &of.instr(at).op {
        Op::Constant(constant) if !constant.elided => match &constant.literal {
            Literal::Array(array) if array.shape().is_scalar() => match array.number(0) {
                Number::Int(value) => Some(value),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The direction that holds for `b` and `a` if `direction` holds for `a` and `b`.
fn mirrored(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        same @ (Direction::Eq | Direction::Ne) => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_that_count_in_fusions() {
        let text = "
            c0 { i = s32[] parameter(0) n = s32[] constant(10)
              ROOT r = pred[] compare(i, n), direction=LT }
            b0 { i = s32[] parameter(0) x = f32[] parameter(1) one = s32[] constant(1)
              j = s32[] add(i, one) y = f32[] negate(x) ROOT r = (s32[], f32[]) tuple(j, y) }
            c { t = (f32[], s32[]) parameter(0) i = s32[] get-tuple-element(t), index=1
              ROOT r = pred[] fusion(i), kind=kLoop, calls=c0 }
            b { t = (f32[], s32[]) parameter(0) x = f32[] get-tuple-element(t), index=0
              i = s32[] get-tuple-element(t), index=1
              f = (s32[], f32[]) fusion(i, x), kind=kLoop, calls=b0
              j = s32[] get-tuple-element(f), index=0 y = f32[] get-tuple-element(f), index=1
              ROOT r = (f32[], s32[]) tuple(y, j) }
            ENTRY e { t = (f32[], s32[]) parameter(0)
              ROOT w = (f32[], s32[]) while(t), condition=c, body=b }";
        let module = helio_ir::text::parse(text).expect("it parses");
        let named = |name: &str| {
            let mut ids = module.ids();
            ids.find(|&id| module.computation(id).name == name).expect("it is there")
        };
        let counter = counted_loop(&module, named("c"), named("b")).expect("it counts");
        assert_eq!((counter.index, counter.trips(3)), (Some(1), Some(7)));
    }
}
