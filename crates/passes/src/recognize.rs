//! What small computations compute: comparators of sorts, reducers, conditions of loops.
//!
//! Recognition follows the structure of the computation and accepts only what it understands in
//! full; anything else is `None`, and then the computation is run as it is.

use helio_ir::ops::{BinaryOp, Compare, Direction, Order};
use helio_ir::{CompId, Computation, Instr, InstrId, Literal, Module, Number, Op};

use crate::effects;

/// What one operand of a sort contributes to its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Which operand of the sort.
    pub operand: usize,
    /// Whether the largest comes first.
    pub descending: bool,
    /// For floats: whether `-0` precedes `0` and `-NaN` everything (IEEE's total order), rather than
    /// zeros being equal and NaNs, equal among themselves, standing above infinity.
    pub total_order: bool,
}

/// Comparators have a few instructions for each key; recognition does not look at larger ones.
const MAX_INSTRS: usize = 256;

/// The keys by which a sort's comparator orders, most significant first.
///
/// `None` if it is not a lexicographic order of operands. A comparator of floats that is no order,
/// since it says of NaN that it is less than nothing, is taken to put NaNs last.
pub fn comparator(module: &Module, id: CompId) -> Option<Vec<SortKey>> {
    let computation = module.computation(id);
    if computation.instrs().len() > MAX_INSTRS {
        return None;
    }
    let reader = Reader { computation };
    reader.less(computation.root(), 0)
}

/// An argument of the comparator, and what was done to it without changing how it compares, but for
/// floats: whether NaNs were made one, and zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    param: usize,
    one_nan: bool,
    one_zero: bool,
}

struct Reader<'c> {
    computation: &'c Computation,
}

impl Reader<'_> {
    fn op(&self, id: InstrId) -> (&Op, &[InstrId]) {
        let instr = self.computation.instr(id);
        (&instr.op, &instr.operands)
    }

    /// The keys, if `id` says "the left comes before the right". Recursion ends because each level
    /// takes a key away, and the computation is small.
    fn less(&self, id: InstrId, depth: usize) -> Option<Vec<SortKey>> {
        if depth > MAX_INSTRS {
            return None;
        }
        let then = |first: SortKey, rest: Vec<SortKey>| {
            let mut keys = vec![first];
            keys.extend(rest);
            keys
        };
        match self.op(id) {
            (Op::Compare(_), _) => Some(vec![self.strict(id)?]),
            // equal ? rest : less
            (Op::Select(_), &[equal, rest, less]) => {
                let key = self.strict(less)?;
                (self.equal(equal)? == key.operand).then_some(())?;
                Some(then(key, self.less(rest, depth + 1)?))
            }
            // less || (equal && rest)
            (Op::Binary(BinaryOp::Or), &[a, b]) => {
                let ordered = [(a, b), (b, a)];
                ordered.into_iter().find_map(|(less, tie)| {
                    let key = self.strict(less)?;
                    let (Op::Binary(BinaryOp::And), &[c, d]) = self.op(tie) else { return None };
                    let rest = [(c, d), (d, c)].into_iter().find_map(|(equal, rest)| {
                        (self.equal(equal)? == key.operand).then_some(())?;
                        self.less(rest, depth + 1)
                    })?;
                    Some(then(key, rest))
                })
            }
            _ => None,
        }
    }

    /// A strict comparison of one operand's two elements.
    fn strict(&self, id: InstrId) -> Option<SortKey> {
        let (Op::Compare(Compare { direction, order, .. }), &[a, b]) = self.op(id) else {
            return None;
        };
        let [left, right] = [self.key(a, 0)?, self.key(b, 0)?];
        let same = left.param / 2 == right.param / 2
            && left.one_nan == right.one_nan
            && left.one_zero == right.one_zero;
        if !same || left.param == right.param {
            return None;
        }
        // Parameters come in pairs: left, right.
        let swapped = left.param % 2 == 1;
        let descending = match direction {
            Direction::Lt => swapped,
            Direction::Gt => !swapped,
            _ => return None,
        };
        let total_order = *order == Order::Total;
        let total_order = match (total_order, left.one_nan, left.one_zero) {
            (true, false, false) => true,
            (true, true, true) | (false, _, _) => false,
            (true, _, _) => return None,
        };
        Some(SortKey { operand: left.param / 2, descending, total_order })
    }

    /// The operand whose two elements `id` says are equal.
    fn equal(&self, id: InstrId) -> Option<usize> {
        match self.op(id) {
            (Op::Compare(Compare { direction: Direction::Eq, .. }), &[a, b]) => {
                let [a, b] = [self.key(a, 0)?, self.key(b, 0)?];
                (a.param / 2 == b.param / 2 && a.param != b.param).then_some(a.param / 2)
            }
            _ => None,
        }
    }

    /// The argument that a value is, as far as order is concerned.
    fn key(&self, id: InstrId, depth: usize) -> Option<Key> {
        if depth > 8 {
            return None;
        }
        match self.op(id) {
            (Op::Parameter(param), _) => {
                Some(Key { param: param.number, one_nan: false, one_zero: false })
            }
            (Op::Convert(_), &[a]) => {
                let shape = |id: InstrId| self.computation.instr(id).shape.as_array();
                let (from, to) = (shape(a)?.element(), shape(id)?.element());
                let widens =
                    from.is_float() && to.is_float() && from.bits() <= 16 && to.bits() >= 32;
                if widens { self.key(a, depth + 1) } else { None }
            }
            (Op::Select(_), &[which, constant, otherwise]) => {
                let key = self.key(otherwise, depth + 1)?;
                match self.test(which, depth + 1)? {
                    (param, Test::IsNan) if param == key.param => {
                        self.number(constant)?.is_nan().then_some(Key { one_nan: true, ..key })
                    }
                    (param, Test::IsZero) if param == key.param => {
                        (self.number(constant)? == 0.0).then_some(Key { one_zero: true, ..key })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn test(&self, id: InstrId, depth: usize) -> Option<(usize, Test)> {
        match self.op(id) {
            (Op::Compare(Compare { direction, order, .. }), &[a, b]) if *order != Order::Total => {
                let key = self.key(a, depth + 1)?;
                match direction {
                    Direction::Ne if self.key(b, depth + 1)?.param == key.param => {
                        Some((key.param, Test::IsNan))
                    }
                    Direction::Eq if self.number(b)? == 0.0 => Some((key.param, Test::IsZero)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn number(&self, id: InstrId) -> Option<f64> {
        match self.op(id) {
            (Op::Constant(constant), _) if !constant.elided => match &constant.literal {
                Literal::Array(array) if array.data().len() == 1 => match array.number(0) {
                    Number::Float(value) => Some(value),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// What a comparator asks of an element before it compares it.
enum Test {
    IsNan,
    IsZero,
}

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

/// How a loop counts, if its condition does nothing but compare a counter with a constant.
pub fn counted_loop(module: &Module, condition: CompId, body: CompId) -> Option<Counter> {
    if effects::computation_has_effect(module, condition) {
        return None;
    }
    let [condition, body] =
        [condition, body].map(|id| Through { module, computation: module.computation(id) });
    // The counter that an instruction is: the state itself, or an element of it.
    let counter = |of: &Through<'_>, at: At| match &of.instr(at).op {
        Op::Parameter(_) => Some(None),
        Op::GetTupleElement(op) => {
            let tuple = of.operand(at, 0)?;
            matches!(of.instr(tuple).op, Op::Parameter(_)).then_some(Some(op.index))
        }
        _ => None,
    };
    let constant = |of: &Through<'_>, at: At| match &of.instr(at).op {
        Op::Constant(constant) if !constant.elided => match &constant.literal {
            Literal::Array(array) if array.shape().is_scalar() => match array.number(0) {
                Number::Int(value) => Some(value),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };

    let root = condition.root();
    let Op::Compare(Compare { direction, .. }) = condition.instr(root).op else { return None };
    let (a, b) = (condition.operand(root, 0)?, condition.operand(root, 1)?);
    let (at, direction, limit) = match (constant(&condition, a), constant(&condition, b)) {
        (None, Some(limit)) => (a, direction, limit),
        (Some(limit), None) => (b, mirrored(direction), limit),
        _ => return None,
    };
    let index = counter(&condition, at)?;

    let next = match (index, &body.instr(body.root()).op) {
        (None, _) => body.root(),
        (Some(index), Op::Tuple(_)) => body.operand(body.root(), index)?,
        _ => return None,
    };
    let instr = body.instr(next);
    let is_counter = |at: At| counter(&body, at) == Some(index);
    let step = match instr.op {
        Op::Binary(BinaryOp::Add) => {
            let (a, b) = (body.operand(next, 0)?, body.operand(next, 1)?);
            match (constant(&body, a), constant(&body, b)) {
                (None, Some(step)) if is_counter(a) => step,
                (Some(step), None) if is_counter(b) => step,
                _ => return None,
            }
        }
        Op::Binary(BinaryOp::Subtract) if is_counter(body.operand(next, 0)?) => {
            constant(&body, body.operand(next, 1)?)?.checked_neg()?
        }
        _ => return None,
    };
    let element = instr.shape.as_array()?.element();
    let bits = u32::try_from(element.bits()).ok()?;
    let range = if element.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    (step != 0).then_some(Counter { index, step, direction, limit, range })
}

/// A computation seen through the fusions in it, as if what they run stood in their place.
struct Through<'m> {
    module: &'m Module,
    computation: &'m Computation,
}

/// An instruction of a computation, or of a fusion in it.
#[derive(Clone, Copy)]
struct At {
    fusion: Option<InstrId>,
    id: InstrId,
}

impl<'m> Through<'m> {
    fn of(&self, at: At) -> &'m Computation {
        match at.fusion.map(|fusion| &self.computation.instr(fusion).op) {
            Some(Op::Fusion(op)) => self.module.computation(op.calls),
            _ => self.computation,
        }
    }

    fn instr(&self, at: At) -> &'m Instr {
        self.of(at).instr(at.id)
    }

    fn root(&self) -> At {
        self.settle(At { fusion: None, id: self.computation.root() })
    }

    fn operand(&self, at: At, i: usize) -> Option<At> {
        let id = *self.instr(at).operands.get(i)?;
        Some(self.settle(At { id, ..at }))
    }

    /// The instruction behind a fusion, its results, and its parameters. It ends because operands
    /// precede what uses them.
    fn settle(&self, mut at: At) -> At {
        loop {
            let instr = self.instr(at);
            let first = instr.operands.first().copied();
            let fused = |id: InstrId| match &self.computation.instr(id).op {
                Op::Fusion(op) => Some(self.module.computation(op.calls)),
                _ => None,
            };
            at = match (&instr.op, at.fusion, first) {
                (Op::Fusion(_), None, _) => {
                    let Some(inner) = fused(at.id) else { return at };
                    At { fusion: Some(at.id), id: inner.root() }
                }
                (Op::GetTupleElement(op), None, Some(from)) => {
                    let Some(inner) = fused(from) else { return at };
                    let root = inner.instr(inner.root());
                    let element = root.operands.get(op.index);
                    match (&root.op, element) {
                        (Op::Tuple(_), Some(&id)) => At { fusion: Some(from), id },
                        _ => return at,
                    }
                }
                (Op::Parameter(param), Some(fusion), _) => {
                    let operands = &self.computation.instr(fusion).operands;
                    match operands.get(param.number) {
                        Some(&id) => At { fusion: None, id },
                        None => return at,
                    }
                }
                _ => return at,
            };
        }
    }
}

fn mirrored(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        same @ (Direction::Eq | Direction::Ne) => same,
    }
}

/// The operation that a reducer of two scalars is, if it is one operation of its two parameters.
pub fn reducer(module: &Module, id: CompId) -> Option<BinaryOp> {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let Op::Binary(op) = root.op else { return None };
    let param = |id: InstrId| match computation.instr(id).op {
        Op::Parameter(ref param) => Some(param.number),
        _ => None,
    };
    let mut params = [param(root.operands[0])?, param(root.operands[1])?];
    if op.is_commutative() {
        params.sort_unstable();
    }
    (params == [0, 1]).then_some(op)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(params: &str, body: &str) -> Option<Vec<SortKey>> {
        let text = format!("ENTRY c {{ {params} {body} }}");
        let module = helio_ir::text::parse(&text).expect("it parses");
        let module = helio_ir::verify(module).expect("it verifies");
        comparator(&module, module.entry_id())
    }

    const F32: &str = "a = f32[] parameter(0) b = f32[] parameter(1)";

    fn key(operand: usize, descending: bool, total_order: bool) -> SortKey {
        SortKey { operand, descending, total_order }
    }

    #[test]
    fn plain_comparisons() {
        let lt = "ROOT r = pred[] compare(a, b), direction=LT";
        assert_eq!(keys(F32, lt), Some(vec![key(0, false, false)]));
        let gt = "ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER";
        assert_eq!(keys(F32, gt), Some(vec![key(0, true, true)]));
        let swapped = "ROOT r = pred[] compare(b, a), direction=LT";
        assert_eq!(keys(F32, swapped), Some(vec![key(0, true, false)]));
        let le = "ROOT r = pred[] compare(a, b), direction=LE";
        assert_eq!(keys(F32, le), None);
        let odd = "c = f32[] negate(b) ROOT r = pred[] compare(a, c), direction=LT";
        assert_eq!(keys(F32, odd), None);
    }

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

    #[test]
    fn one_zero_and_one_nan() {
        let body = |nan: &str| {
            format!(
                "nan = f32[] constant({nan}) zero = f32[] constant(0)
                 an = pred[] compare(a, a), direction=NE
                 az = pred[] compare(a, zero), direction=EQ
                 a0 = f32[] select(az, zero, a) a1 = f32[] select(an, nan, a0)
                 bn = pred[] compare(b, b), direction=NE
                 bz = pred[] compare(b, zero), direction=EQ
                 b0 = f32[] select(bz, zero, b) b1 = f32[] select(bn, nan, b0)
                 ROOT r = pred[] compare(a1, b1), direction=LT, type=TOTALORDER"
            )
        };
        assert_eq!(keys(F32, &body("nan")), Some(vec![key(0, false, false)]));
        assert_eq!(keys(F32, &body("1")), None);
    }

    #[test]
    fn several_keys() {
        let params = "a = s32[] parameter(0) b = s32[] parameter(1)
                      c = u8[] parameter(2) d = u8[] parameter(3)";
        let select = "e = pred[] compare(a, b), direction=EQ l = pred[] compare(a, b), direction=GT
                      m = pred[] compare(c, d), direction=LT
                      ROOT r = pred[] select(e, m, l)";
        let expected = Some(vec![key(0, true, false), key(1, false, false)]);
        assert_eq!(keys(params, select), expected);
        let or = "e = pred[] compare(a, b), direction=EQ l = pred[] compare(a, b), direction=GT
                  m = pred[] compare(c, d), direction=LT t = pred[] and(e, m)
                  ROOT r = pred[] or(l, t)";
        assert_eq!(keys(params, or), expected);
        let wrong = "e = pred[] compare(c, d), direction=EQ l = pred[] compare(a, b), direction=GT
                     m = pred[] compare(c, d), direction=LT
                     ROOT r = pred[] select(e, m, l)";
        assert_eq!(keys(params, wrong), None);
    }
}
