//! The pass that computes what depends on large constants alone, as the weights of a model in another order.

use helio_eval::{Context, Subnormals, evaluate};
use helio_ir::ops::{Constant, Parameter, Tuple};
use helio_ir::{
    Computation, Instr, InstrId, Literal, Module, Op, Operands, Result, Shape, Verified, verify,
};

use crate::draft::unnamed;
use crate::pass::PassCx;
use crate::rebuild::name_instrs;
use crate::simplify::fold::{MAX_ELEMENTS, may_fold};

/// Runs programs while another is compiled.
pub trait ConstantEvaluator {
    /// What a program gives for arguments. Errors: what the run reports; what was to be computed is left for the run of
    /// the program then.
    fn evaluate(
        &self,
        module: Verified<Module>,
        args: &[Literal],
        subnormals: Subnormals,
    ) -> Result<Literal>;
}

/// Evaluates by the interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Interpreted;

impl ConstantEvaluator for Interpreted {
    fn evaluate(
        &self,
        module: Verified<Module>,
        args: &[Literal],
        subnormals: Subnormals,
    ) -> Result<Literal> {
        evaluate(&module, args, &Context { subnormals, ..Context::default() })
    }
}

/// The most bytes that are computed for each byte of large constants: a bound on memory, where a constant is used in several
/// ways. (Not measured: of weights, most are used in one.)
const MAX_GROWTH: usize = 2;

/// What an instruction's value depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// More than constants, or it may not be computed now.
    No,
    /// Small constants, or nothing, or what is repeated: it is made wherever it is needed.
    Small,
    /// A large constant, which it is, or has the elements of in the same order.
    Large,
    /// Large constants, by some work.
    Computed,
}

/// Makes constants of what depends on large constants alone and takes no more memory than they do. (What depends on
/// small ones is folded by the pass `simplify`, or made anew.)
pub(crate) fn compute_constants(mut module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let entry = module.entry_id();
    let computation = module.entry();
    cx.watch.count_steps(computation.instrs().len())?;
    let known = known(computation);
    let wanted = wanted(computation, &known);
    if wanted.is_empty() {
        return Ok(module);
    }
    let (part, args) = part(computation, &known, &wanted)?;
    let part = verify(name_instrs(part)).map_err(|errors| errors.first().clone())?;
    let Ok(Literal::Tuple(values)) = cx.constants.evaluate(part, &args, cx.subnormals) else {
        return Ok(module);
    };
    for (id, value) in wanted.into_iter().zip(values) {
        let instr = module.computation_mut(entry).instr_mut(id);
        if !value.shape().same(&instr.shape) {
            continue;
        }
        instr.shape = value.shape().without_layout();
        (instr.op, instr.operands) = (Constant::new(value).into(), Operands::default());
    }
    Ok(module)
}

/// The bytes of a value that is an array of known size.
fn bytes(shape: &Shape) -> Option<usize> {
    let array = shape.as_array().filter(|array| array.is_static())?;
    array.element_count().checked_mul(array.element().size_bytes())
}

/// What each value depends on.
fn known(computation: &Computation) -> Vec<Known> {
    let mut known: Vec<Known> = Vec::with_capacity(computation.instrs().len());
    // The bytes of the largest constant that a value depends on.
    let mut sources: Vec<usize> = Vec::with_capacity(computation.instrs().len());
    for instr in computation.instrs() {
        let of = |id: &InstrId| known[id.index()];
        let size = |id: &InstrId| bytes(&computation.instr(*id).shape);
        let source = instr.operands.iter().map(|id| sources[id.index()]).max().unwrap_or(0);
        let is_large = |id: &&InstrId| matches!(of(id), Known::Large | Known::Computed);
        let this = match (&instr.op, bytes(&instr.shape)) {
            (_, None) => Known::No,
            (Op::Constant(op), Some(_)) if op.elided => Known::No,
            (Op::Constant(op), Some(_)) => {
                let count = op.literal.as_array().map_or(0, |array| array.data().len());
                if count > MAX_ELEMENTS { Known::Large } else { Known::Small }
            }
            (Op::Iota(_), _) => Known::Small,
            (Op::Broadcast(_), _) if of(&instr.operands[0]) != Known::No => Known::Small,
            (op, Some(bytes))
                if may_fold(op) && !instr.operands.iter().any(|id| of(id) == Known::No) =>
            {
                let operands = instr.operands.iter().filter(is_large).filter_map(size).sum();
                match bytes {
                    _ if operands == 0 => Known::Small,
                    bytes if bytes > source.max(operands) => Known::No,
                    _ if matches!(op, Op::Reshape(_)) => of(&instr.operands[0]),
                    _ => Known::Computed,
                }
            }
            _ => Known::No,
        };
        let is_source = this == Known::Large && instr.operands.is_empty();
        sources.push(if is_source { bytes(&instr.shape).unwrap_or(0) } else { source });
        known.push(this);
    }
    known
}

/// Those that are to be computed: what others use, as long as there is not too much of it.
fn wanted(computation: &Computation, known: &[Known]) -> Vec<InstrId> {
    let mut is_used = vec![false; known.len()];
    is_used[computation.root().index()] = true;
    for (instr, known) in computation.instrs().iter().zip(known) {
        if !matches!(known, Known::Computed | Known::Large) {
            instr.operands.iter().for_each(|id| is_used[id.index()] = true);
        }
    }
    let size = |id: InstrId| bytes(&computation.instr(id).shape).unwrap_or(0);
    let of = |kind: Known| computation.ids().filter(move |id| known[id.index()] == kind);
    let is_constant = |id: &InstrId| matches!(computation.instr(*id).op, Op::Constant(_));
    let large: usize = of(Known::Large).filter(is_constant).map(size).sum();
    let mut left = large.saturating_mul(MAX_GROWTH);
    let mut fits = |id: &InstrId| {
        let fits = size(*id) <= left;
        left -= if fits { size(*id) } else { 0 };
        fits
    };
    of(Known::Computed).filter(|id| is_used[id.index()]).filter(&mut fits).collect()
}

/// The program that computes these, and its arguments: the large constants.
fn part(
    computation: &Computation,
    known: &[Known],
    wanted: &[InstrId],
) -> Result<(Module, Vec<Literal>)> {
    let mut is_needed = vec![false; known.len()];
    wanted.iter().for_each(|id| is_needed[id.index()] = true);
    for id in computation.ids().rev() {
        if is_needed[id.index()] {
            computation.instr(id).operands.iter().for_each(|id| is_needed[id.index()] = true);
        }
    }
    let mut part = Computation::new("constants");
    let mut places: Vec<Option<InstrId>> = vec![None; known.len()];
    let mut args = Vec::new();
    for id in computation.ids().filter(|id| is_needed[id.index()]) {
        let instr = computation.instr(id);
        let new = match &instr.op {
            Op::Constant(op) if known[id.index()] == Known::Large => {
                args.push(op.literal.clone());
                let number = args.len() - 1;
                unnamed(
                    Parameter { number, shape: instr.shape.clone() }.into(),
                    &[],
                    instr.shape.clone(),
                )
            }
            op => {
                let operands: Vec<InstrId> =
                    instr.operands.iter().filter_map(|id| places[id.index()]).collect();
                Instr::new(op.clone(), &operands[..], instr.shape.clone())
            }
        };
        places[id.index()] = Some(part.push(new)?);
    }
    let results: Vec<InstrId> = wanted.iter().filter_map(|id| places[id.index()]).collect();
    let shapes = wanted.iter().map(|&id| computation.instr(id).shape.clone()).collect();
    let root = part.push(unnamed(Tuple.into(), &results, Shape::Tuple(shapes)))?;
    part.set_root(root);
    let mut module = Module::new("constants");
    let entry = module.push(part)?;
    module.set_entry(entry);
    Ok((module, args))
}

#[cfg(test)]
mod tests {
    use helio_ir::Array;
    use helio_ir::text::parse;

    use super::*;
    use crate::testing::after;

    /// Rows of a large constant, in text.
    fn weights() -> String {
        let row = |i: usize| (0..70).map(|j| ((i * 61 + j) % 89).to_string()).collect::<Vec<_>>();
        let rows: Vec<String> = (0..60).map(|i| format!("{{{}}}", row(i).join(", "))).collect();
        format!("s8[60,70] constant({{ {} }})", rows.join(", "))
    }

    /// What a program is after the pass and the removal of dead code: how many constants it has, and operations that
    /// are neither those nor parameters.
    fn left(text: &str) -> (usize, Vec<&'static str>) {
        let after = after("compute-constants,remove-dead-code", text);
        let [before, after] = [text, &after].map(|text| verify(parse(text).unwrap()).unwrap());
        let zeros = |shape: &Shape| Array::zeros(shape.as_array().unwrap().clone()).unwrap().into();
        let args: Vec<Literal> = before.entry().program_shape().params.iter().map(zeros).collect();
        let run = |module| evaluate(module, &args, &Context::default()).unwrap();
        assert_eq!(run(&before), run(&after));
        let ops = || after.entry().instrs().iter().map(|instr| instr.op.opcode());
        let others = ops().filter(|&name| !["constant", "parameter"].contains(&name)).collect();
        (ops().filter(|&name| name == "constant").count(), others)
    }

    #[test]
    fn weights_in_another_order() {
        let weights = weights();
        let (constants, ops) = left(&format!(
            "ENTRY e {{
               x = s8[70,80] parameter(0)
               w = {weights}
               v = s8[4200] reshape(w)
               a = s8[40,70] slice(w), slice={{[20:60], [0:70]}}
               b = s8[20,70] slice(w), slice={{[0:20], [0:70]}}
               c = s8[60,70] concatenate(a, b), dimensions={{0}}
               t = s8[70,60] transpose(c), dimensions={{1,0}}
               row = s8[60] slice(v), slice={{[4000:4060]}}
               rows = s8[70,60] broadcast(row), dimensions={{1}}
               d = s8[70,60] multiply(t, rows)
               zero = s8[] constant(0)
               p = s8[70,80] pad(d, zero), padding=0_0x0_20
               ROOT y = s8[70,80] add(x, p)
             }}"
        ));
        // What makes more of it remains.
        assert_eq!((constants, &ops[..]), (2, &["pad", "add"][..]));
    }

    #[test]
    fn what_is_free_or_grows_is_left() {
        let weights = weights();
        let (_, ops) = left(&format!(
            "ENTRY e {{
               x = s8[4200] parameter(0)
               w = {weights}
               r = s8[4200] reshape(w)
               b = s8[3,60,70] broadcast(w), dimensions={{1,2}}
               i = s8[60,70] iota(), iota_dimension=1
               n = s8[60,70] negate(i)
               y = s8[4200] add(x, r)
               ROOT t = (s8[4200], s8[3,60,70], s8[60,70]) tuple(y, b, n)
             }}"
        ));
        assert_eq!(ops, ["reshape", "broadcast", "iota", "negate", "add", "tuple"]);
        // No more than twice as much as there is.
        let (constants, ops) = left(&format!(
            "ENTRY e {{
               w = {weights}
               a = s8[60,70] negate(w)
               b = s8[60,70] abs(w)
               c = s8[60,70] sign(w)
               ROOT t = (s8[60,70], s8[60,70], s8[60,70]) tuple(a, b, c)
             }}"
        ));
        assert_eq!((constants, &ops[..]), (3, &["sign", "tuple"][..]));
    }
}
