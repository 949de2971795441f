//! Arithmetic on indices: what a program computes of counters alone are index expressions, too. Whether one is less
//! than another may be known from how far loops go, as where a program asks of its own counters whether they are
//! negative.

use helio_ir::ops::{Compare, Direction};
use helio_ir::{BinaryOp, ElementType, Op, UnaryOp};

use super::Stop;
use super::affine::Affine;
use super::graph::{Graph, Node, NodeId};

/// The greatest magnitude of what an index expression becomes: sums and differences of two stay far from the ends
/// of `i64`.
const MAX_INDEX: i128 = 1 << 48;
/// The greatest magnitude of a factor, so that products do, too.
const MAX_FACTOR: i64 = 1 << 12;

impl Graph<'_> {
    /// A value as an index expression, if it is one of an integer type that holds all its values.
    pub(super) fn index_of(&self, id: NodeId) -> Option<Affine> {
        let ty = self.info(id).ty;
        let at = match self.node(id) {
            Node::Index(at) => at.clone(),
            Node::Literal(bits) if ty.is_integer() => {
                // (Shifted so that the sign is at the top.)
                let unused = 128 - ty.bits() as u32;
                let number = match ty.is_signed_integer() {
                    true => (*bits << unused) as i128 >> unused,
                    false => i128::try_from(*bits).ok()?,
                };
                Affine::constant(i64::try_from(number).ok()?)
            }
            _ => return None,
        };
        self.holds_index(&at, ty).then_some(at)
    }

    /// Whether an integer type holds all values of an index expression, and there is room for what is made of it.
    fn holds_index(&self, at: &Affine, ty: ElementType) -> bool {
        if !ty.is_integer() || ty.is_pred() {
            return false;
        }
        let dims = at.dims.iter().map(|&(d, factor)| (factor, self.dim_bounds[usize::from(d)]));
        let symbols = at.symbols.iter().map(|&(s, factor)| (factor, self.symbol_bounds[s.index()]));
        let (mut least, mut greatest) = (i128::from(at.constant), i128::from(at.constant));
        for (factor, most) in dims.chain(symbols) {
            let (factor, most) = (i128::from(factor), i128::from(most));
            if factor.abs() > MAX_INDEX {
                return false;
            }
            least += (factor * most).min(0);
            greatest += (factor * most).max(0);
        }
        let bits = ty.bits() as u32;
        let (low, high) = match ty.is_signed_integer() {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        low.max(-MAX_INDEX) <= least && greatest <= high.min(MAX_INDEX)
    }

    /// What an operation gives, where its operands are index expressions and that is another one, or one of them,
    /// or known.
    pub(super) fn of_indices(
        &mut self,
        op: &Op,
        args: &[NodeId],
        ty: ElementType,
    ) -> Result<Option<NodeId>, Stop> {
        if let (Op::Select(_), &[pred, yes, no]) = (op, args) {
            let known = match self.node(pred) {
                Node::Literal(bits) => Some(if *bits == 0 { no } else { yes }),
                _ => None,
            };
            return Ok(known);
        }
        let index = |i: usize| args.get(i).and_then(|&id| self.index_of(id));
        let Some(a) = index(0) else { return Ok(None) };
        match (op, args) {
            (Op::Convert(_), [_]) => return self.index(a, ty),
            (Op::Unary(UnaryOp::Negate), [_]) => return self.index(a.times(-1), ty),
            (Op::Unary(UnaryOp::Abs), &[arg]) => {
                let (least, greatest) = a.range(self.bounds());
                let falls = greatest <= 0;
                return if falls {
                    self.index(a.times(-1), ty)
                } else {
                    Ok((least >= 0).then_some(arg))
                };
            }
            (Op::Clamp(_), &[min, x, max]) => {
                let (Some(b), Some(c)) = (index(1), index(2)) else { return Ok(None) };
                let exceeds = |x: &Affine, y: &Affine| x.plus(y, -1).range(self.bounds());
                // The upper bound holds even if the lower one exceeds it.
                let known = if exceeds(&a, &c).0 >= 0 || exceeds(&b, &c).0 >= 0 {
                    Some(max)
                } else if exceeds(&a, &c).1 <= 0 && exceeds(&b, &a).1 <= 0 {
                    Some(min)
                } else if exceeds(&b, &a).0 >= 0 && exceeds(&b, &c).1 <= 0 {
                    Some(x)
                } else {
                    None
                };
                return Ok(known);
            }
            _ => {}
        }
        let Some(b) = index(1).filter(|_| args.len() == 2) else { return Ok(None) };
        let (least, greatest) = a.plus(&b, -1).range(self.bounds());
        let factor = |x: &Affine| {
            let is_factor = *x == Affine::constant(x.constant) && x.constant.abs() <= MAX_FACTOR;
            is_factor.then_some(x.constant)
        };
        match op {
            Op::Binary(BinaryOp::Add) => self.index(a.plus(&b, 1), ty),
            Op::Binary(BinaryOp::Subtract) => self.index(a.plus(&b, -1), ty),
            Op::Binary(BinaryOp::Multiply) => match (factor(&a), factor(&b)) {
                (_, Some(factor)) => self.index(a.times(factor), ty),
                (Some(factor), _) => self.index(b.times(factor), ty),
                _ => Ok(None),
            },
            // A number below the divisor, neither negative, is what remains.
            Op::Binary(BinaryOp::Remainder) if greatest < 0 && a.range(self.bounds()).0 >= 0 => {
                Ok(Some(args[0]))
            }
            Op::Binary(BinaryOp::Divide) if greatest < 0 && a.range(self.bounds()).0 >= 0 => {
                self.index(Affine::default(), ty)
            }
            Op::Binary(BinaryOp::Maximum) if least >= 0 => Ok(Some(args[0])),
            Op::Binary(BinaryOp::Maximum) if greatest <= 0 => Ok(Some(args[1])),
            Op::Binary(BinaryOp::Minimum) if greatest <= 0 => Ok(Some(args[0])),
            Op::Binary(BinaryOp::Minimum) if least >= 0 => Ok(Some(args[1])),
            Op::Compare(Compare { direction, .. }) => {
                let (always, never) = match direction {
                    Direction::Lt => (greatest < 0, least >= 0),
                    Direction::Le => (greatest <= 0, least > 0),
                    Direction::Gt => (least > 0, greatest <= 0),
                    Direction::Ge => (least >= 0, greatest < 0),
                    Direction::Eq => ((least, greatest) == (0, 0), least > 0 || greatest < 0),
                    Direction::Ne => (least > 0 || greatest < 0, (least, greatest) == (0, 0)),
                };
                match always || never {
                    true => self.literal(always.into(), ty).map(Some),
                    false => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// An index expression as a value of a type that holds it.
    fn index(&mut self, at: Affine, ty: ElementType) -> Result<Option<NodeId>, Stop> {
        match self.holds_index(&at, ty) {
            true => self.push(Node::Index(at), ty).map(Some),
            false => Ok(None),
        }
    }
}
