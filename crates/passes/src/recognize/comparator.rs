//! The order by which the comparator of a sort compares.

use helio_ir::ops::{BinaryOp, Compare, Direction, Order};
use helio_ir::{CompId, Computation, InstrId, Literal, Module, Number, Op};

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
        let followed_by = |first: SortKey, rest: Vec<SortKey>| {
            let mut keys = vec![first];
            keys.extend(rest);
            keys
        };
        match self.op(id) {
            (Op::Compare(_), _) => Some(vec![self.strict(id)?]),
            // equal ? rest : less
            (Op::Select(_), &[equal, rest, less]) => {
                let key = self.strict(less)?;
                self.is_tie(equal, key).then_some(())?;
                Some(followed_by(key, self.less(rest, depth + 1)?))
            }
            // less || (equal && rest)
            (Op::Binary(BinaryOp::Or), &[a, b]) => {
                let ordered = [(a, b), (b, a)];
                ordered.into_iter().find_map(|(less, tie)| {
                    let key = self.strict(less)?;
                    let (Op::Binary(BinaryOp::And), &[c, d]) = self.op(tie) else { return None };
                    let rest = [(c, d), (d, c)].into_iter().find_map(|(equal, rest)| {
                        self.is_tie(equal, key).then_some(())?;
                        self.less(rest, depth + 1)
                    })?;
                    Some(followed_by(key, rest))
                })
            }
            _ => None,
        }
    }

    /// A comparison of one operand's two elements: its direction, which of them stands on the left (0
    /// or 1), the operand, and whether floats are in the total order.
    fn compared(&self, id: InstrId) -> Option<(Direction, usize, usize, bool)> {
        let (&Op::Compare(Compare { direction, order, .. }), &[a, b]) = self.op(id) else {
            return None;
        };
        let [left, right] = [self.key(a, 0)?, self.key(b, 0)?];
        // Parameters come in pairs: left, right.
        let same = left.param / 2 == right.param / 2
            && left.one_nan == right.one_nan
            && left.one_zero == right.one_zero;
        if !same || left.param == right.param {
            return None;
        }
        let total_order = match (order == Order::Total, left.one_nan, left.one_zero) {
            (true, false, false) => true,
            (true, true, true) | (false, _, _) => false,
            (true, _, _) => return None,
        };
        Some((direction, left.param % 2, left.param / 2, total_order))
    }

    /// A strict comparison of one operand's two elements.
    fn strict(&self, id: InstrId) -> Option<SortKey> {
        let (direction, left, operand, total_order) = self.compared(id)?;
        let descending = match direction {
            Direction::Lt => left == 1,
            Direction::Gt => left == 0,
            _ => return None,
        };
        Some(SortKey { operand, descending, total_order })
    }

    /// Whether `id` says of elements that they are equal, by the same order as a key.
    fn is_tie(&self, id: InstrId, key: SortKey) -> bool {
        self.compared(id).is_some_and(|(direction, _, operand, total_order)| {
            (direction, operand, total_order) == (Direction::Eq, key.operand, key.total_order)
        })
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
                        // (A NaN with a sign would stand below all numbers.)
                        let nan = self.number(constant)?;
                        let is_last = nan.is_nan() && nan.is_sign_positive();
                        is_last.then_some(Key { one_nan: true, ..key })
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
        assert_eq!(keys(F32, &body("-nan")), None);
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

    #[test]
    fn ties_are_of_the_order_of_their_key() {
        let params = format!("{F32} c = s32[] parameter(2) d = s32[] parameter(3)");
        let body = |equal: &str, less: &str| {
            format!(
                "e = pred[] compare(a, b), direction=EQ{equal}
                 l = pred[] compare(a, b), direction=LT{less}
                 m = pred[] compare(c, d), direction=LT
                 ROOT r = pred[] select(e, m, l)"
            )
        };
        let (number, total) = ("", ", type=TOTALORDER");
        for (order, total_order) in [(number, false), (total, true)] {
            let expected = Some(vec![key(0, false, total_order), key(1, false, false)]);
            assert_eq!(keys(&params, &body(order, order)), expected);
        }
        // -0 and 0 are a tie to the one comparison, and not to the other.
        assert_eq!(keys(&params, &body(number, total)), None);
        assert_eq!(keys(&params, &body(total, number)), None);
    }
}
