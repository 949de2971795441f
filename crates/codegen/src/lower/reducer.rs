//! What a reducer's body computes, which decides in what order elements may be folded.

use std::iter::zip;

use helio_ir::ops::{Direction, Order};
use helio_ir::{BinaryOp, CompId, ElementType, InstrId, Op, UnaryOp};

use super::Stop;
use super::graph::{Graph, Node, NodeId};

/// A computation that folds an element into accumulators.
#[derive(Clone, Debug)]
pub(super) struct Reducer<'m> {
    pub kind: Kind<'m>,
    /// The new accumulators, from arguments: accumulators, then elements.
    pub body: Vec<NodeId>,
}

/// What kind of a fold it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'m> {
    /// An operation for each accumulator, associative and commutative but for rounding.
    Simple(Vec<Simple<'m>>),
    /// Of accumulators and elements one is kept, the first of the best ones. If there are ties
    /// between elements that differ, accumulator `position` says which comes first.
    Selection { position: Option<usize> },
    /// Anything else: one after the other.
    Ordered,
}

impl Kind<'_> {
    /// Whether of equally good elements that differ, the first has to be kept.
    pub fn keeps_first(&self) -> bool {
        matches!(self, Kind::Selection { position: Some(_) })
    }
}

/// An operation that folds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple<'m> {
    pub op: BinaryOp,
    /// The operation in the reducer's body.
    pub instr: &'m Op,
    /// The type to accumulate in: narrow floats would lose every small element.
    pub ty: ElementType,
    /// What accumulators begin with, as bits of that type: see [`BinaryOp::neutral`].
    pub neutral: u128,
}

impl PartialEq for Simple<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.op == other.op && self.ty == other.ty
    }
}

impl<'m> Reducer<'m> {
    /// Looks at a reducer with accumulators of these types, for folding `inputs`.
    pub fn new(
        graph: &mut Graph<'m>,
        to_apply: CompId,
        types: &[ElementType],
        inputs: &[NodeId],
    ) -> Result<Self, Stop> {
        let elements = inputs.iter().map(|&id| graph.info(id).ty);
        let expected: Vec<ElementType> = types.iter().copied().chain(elements).collect();
        ensure_params(graph, to_apply, &expected)?;
        if let Some(simple) = simple(graph, to_apply, types.len()) {
            return Ok(Reducer { kind: Kind::Simple(simple), body: Vec::new() });
        }
        let args = expected.iter().enumerate();
        let args = args.map(|(i, &ty)| graph.push(Node::Argument(i), ty));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let body = graph.inline(to_apply, args.clone())?;
        let kind = match Preference::of(graph, &body, &args, types) {
            Some(Preference::Total) => Kind::Selection { position: None },
            Some(Preference::FirstOfBest) => {
                match inputs.iter().position(|&id| counts(graph, id)) {
                    Some(position) => Kind::Selection { position: Some(position) },
                    None => Kind::Ordered,
                }
            }
            None => Kind::Ordered,
        };
        Ok(Reducer { kind, body })
    }

    /// Whether elements have to be folded one after the other.
    pub fn is_ordered(&self) -> bool {
        self.kind == Kind::Ordered
    }
}

/// Stops unless a computation takes scalars of these types: floats of others are converted.
pub(super) fn ensure_params(
    graph: &Graph<'_>,
    computation: CompId,
    types: &[ElementType],
) -> Result<(), Stop> {
    let params = graph.module.computation(computation).program_shape().params;
    let params = params.iter().map(|shape| shape.as_array().map(|array| array.element()));
    match params.eq(types.iter().copied().map(Some)) {
        true => Ok(()),
        false => Err(Stop::unsupported("a reducer that converts what it is given")),
    }
}

/// Whether a value grows from each folded element to the next.
fn counts(graph: &Graph<'_>, id: NodeId) -> bool {
    let Node::Index(at) = graph.node(id) else { return false };
    let folded = graph.folded();
    let linear = super::affine::Affine::linear(&folded.exprs, &folded.sizes);
    let factor = match (at.dims.first(), linear.dims.first()) {
        (Some(&(_, a)), Some(&(_, b))) if b != 0 && a % b == 0 => a / b,
        _ => return false,
    };
    // Nor may it wrap on the way.
    let ty = graph.info(id).ty;
    let bits = ty.bits() as u32 - u32::from(ty.is_signed_integer());
    let (least, most) = at.range(graph.bounds());
    let fits = least >= 0 && (bits >= 63 || most >> bits == 0);
    factor > 0 && linear.times(factor).dims == at.dims && ty.is_integer() && fits
}

/// The folds of a body that folds each accumulator with its element by one operation.
fn simple<'m>(graph: &Graph<'m>, to_apply: CompId, count: usize) -> Option<Vec<Simple<'m>>> {
    let body = graph.module.computation(to_apply);
    let element = |id: InstrId| body.instr(id).shape.as_array().map(|shape| shape.element());
    let format = |id: InstrId| element(id).and_then(ElementType::float_format);
    let holds = |id: InstrId, result: InstrId| {
        format(id).zip(format(result)).is_some_and(|(of, wanted)| {
            of.exponent_bits >= wanted.exponent_bits && of.mantissa_bits >= wanted.mantissa_bits
        })
    };
    // Conversions between floats before and after only say where to round, as long as they go to types
    // that hold the result's values.
    let unconverted = |mut id: InstrId, result: InstrId| loop {
        let instr = body.instr(id);
        match (&instr.op, &instr.operands[..]) {
            (Op::Convert(_), &[x]) if holds(id, result) && format(x).is_some() => id = x,
            _ => return id,
        }
    };
    let param = |id: InstrId, result: InstrId| match &body.instr(unconverted(id, result)).op {
        Op::Parameter(param) => Some(param.number),
        _ => None,
    };
    let roots: Vec<InstrId> = match &body.instr(body.root()).op {
        Op::Tuple(_) => body.instr(body.root()).operands.to_vec(),
        _ => vec![body.root()],
    };
    let of = |(i, root): (usize, &InstrId)| {
        let at = unconverted(*root, *root);
        let instr = body.instr(at);
        let Op::Binary(op) = instr.op else { return None };
        if at != *root && !holds(at, *root) {
            return None;
        }
        let (lhs, rhs) = (param(instr.operands[0], *root)?, param(instr.operands[1], *root)?);
        let pair = (lhs, rhs) == (i, i + count) || (rhs, lhs) == (i, i + count);
        let element = element(*root)?;
        // What is rounded to powers of two is rounded at each step.
        if element == ElementType::F8E8M0FNU {
            return None;
        }
        let wide = element.is_float() && element.size_bytes() < 4;
        let ty = if wide { ElementType::F32 } else { element };
        let neutral = op.neutral(ty)?;
        let pair = pair && graph.target.supports(&instr.op, &[ty, ty], ty);
        pair.then_some(Simple { op, instr: &instr.op, ty, neutral })
    };
    if roots.len() != count {
        return None;
    }
    roots.iter().enumerate().map(of).collect()
}

/// How a body that keeps one of two prefers.
#[derive(Clone, Copy, PartialEq)]
enum Preference {
    /// No two different elements are equally good.
    Total,
    /// Of equally good elements, the first.
    FirstOfBest,
}

/// A number that bodies are tried with; only its order matters.
type Sample = i8;
const NAN: Sample = Sample::MIN;

impl Preference {
    /// Decides it by trying the body on all arrangements of up to three elements: what only
    /// compares and selects can tell elements apart by their order alone.
    fn of(
        graph: &Graph<'_>,
        body: &[NodeId],
        args: &[NodeId],
        types: &[ElementType],
    ) -> Option<Preference> {
        if types.len() > 2 {
            return None;
        }
        let values = |ty: ElementType| match ty {
            ElementType::Pred => vec![0, 1],
            ty if ty.is_float() => vec![0, 1, 2, NAN],
            _ => vec![0, 1, 2],
        };
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new()];
        for &ty in types {
            let extended = |s: &Vec<Sample>| {
                let s = s.clone();
                values(ty).into_iter().map(move |v| s.iter().copied().chain([v]).collect())
            };
            samples = samples.iter().flat_map(extended).collect();
        }
        let n = samples.len();
        // Whether the second replaces the first.
        let mut beats = vec![false; n * n];
        let mut run = Run::new(graph, body, args)?;
        for (i, a) in samples.iter().enumerate() {
            for (j, b) in samples.iter().enumerate() {
                let kept = run.on(a, b)?;
                if kept != *a && kept != *b {
                    return None;
                }
                beats[i * n + j] = kept != *a;
            }
        }
        let beats = |a: usize, b: usize| beats[a * n + b];
        let tie = |a: usize, b: usize| !beats(a, b) && !beats(b, a);
        let pairs = || (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let is_order = pairs().all(|(a, b)| {
            !(beats(a, b) && beats(b, a))
                && (0..n).all(|c| {
                    (!(beats(a, b) && beats(b, c)) || beats(a, c))
                        && (!(tie(a, b) && tie(b, c)) || tie(a, c))
                })
        });
        let total = pairs().all(|(a, b)| a == b || !tie(a, b));
        is_order.then_some(if total { Preference::Total } else { Preference::FirstOfBest })
    }
}

/// A body of comparisons and selections, run on samples.
struct Run<'g> {
    steps: Vec<(NodeId, &'g Op, &'g [NodeId], bool)>,
    args: &'g [NodeId],
    body: &'g [NodeId],
    values: Vec<Sample>,
}

impl<'g> Run<'g> {
    fn new(graph: &'g Graph<'_>, body: &'g [NodeId], args: &'g [NodeId]) -> Option<Self> {
        let mut used = vec![false; graph.nodes.len()];
        body.iter().for_each(|&id| used[id.index()] = true);
        let mut steps = Vec::new();
        for id in graph.ids().rev() {
            if !used[id.index()] {
                continue;
            }
            match graph.node(id) {
                Node::Argument(_) => {}
                Node::Apply { op, args: operands } if decides(op, graph.info(operands[0]).ty) => {
                    let float = graph.info(operands[0]).ty.is_float();
                    steps.push((id, *op, &operands[..], float));
                }
                _ => return None,
            }
            graph.args(id, &mut |arg| used[arg.index()] = true);
        }
        steps.reverse();
        Some(Run { steps, args, body, values: vec![0; graph.nodes.len()] })
    }

    fn on(&mut self, a: &[Sample], b: &[Sample]) -> Option<Vec<Sample>> {
        for (&arg, &value) in zip(self.args, a.iter().chain(b)) {
            self.values[arg.index()] = value;
        }
        for &(id, op, args, float) in &self.steps {
            let of = |i: usize| self.values[args[i].index()];
            self.values[id.index()] = match op {
                Op::Compare(compare) => {
                    let (a, b) = (of(0), of(1));
                    let nan = float && (a == NAN || b == NAN);
                    Sample::from(match compare.direction {
                        Direction::Eq => !nan && a == b,
                        Direction::Ne => nan || a != b,
                        Direction::Lt => !nan && a < b,
                        Direction::Le => !nan && a <= b,
                        Direction::Gt => !nan && a > b,
                        Direction::Ge => !nan && a >= b,
                    })
                }
                Op::Select(_) => of(if of(0) != 0 { 1 } else { 2 }),
                Op::Binary(BinaryOp::And) => of(0) & of(1),
                Op::Binary(BinaryOp::Or) => of(0) | of(1),
                Op::Binary(BinaryOp::Xor) => of(0) ^ of(1),
                Op::Binary(BinaryOp::Maximum | BinaryOp::Minimum)
                    if float && (of(0) == NAN || of(1) == NAN) =>
                {
                    NAN
                }
                Op::Binary(BinaryOp::Maximum) => of(0).max(of(1)),
                Op::Binary(BinaryOp::Minimum) => of(0).min(of(1)),
                Op::Unary(UnaryOp::Not) => of(0) ^ 1,
                _ => return None,
            };
        }
        Some(self.body.iter().map(|&id| self.values[id.index()]).collect())
    }
}

/// Whether an operation on elements of this type only compares, combines truth values or selects.
fn decides(op: &Op, ty: ElementType) -> bool {
    match op {
        Op::Compare(compare) => compare.order != Order::Total && !ty.is_complex(),
        Op::Select(_) => true,
        Op::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor) => ty.is_pred(),
        Op::Binary(BinaryOp::Maximum | BinaryOp::Minimum) => !ty.is_complex(),
        Op::Unary(UnaryOp::Not) => ty.is_pred(),
        _ => false,
    }
}
