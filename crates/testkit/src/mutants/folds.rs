//! Whether a program has one answer: whether what its reductions fold with is associative and
//! commutative, and what its sorts compare with is an order.
//!
//! Computations are run on a few values and all ways in which these combine. That shows what is no
//! fold or no order; it proves none, but mutants are not made to deceive.

use std::collections::BTreeMap;

use helio::ir::{ArrayShape, CompId, Module, Native, Number, Op, Verified, dispatch_type};
use helio::{Array, Backend, CompileOptions, ElementType, Executable, Literal, RunOptions, Shape};

use super::rounding;

/// Why a program may have several answers; `None` if nothing speaks for it. `args` and `result` are
/// what it was run on and what came out: NaNs are taken into account only if there are some.
pub(super) fn ambiguity(
    module: &Verified<Module>,
    args: &[Literal],
    result: &Literal,
) -> Option<String> {
    let has_nan = args.iter().chain([result]).any(any_nan);
    let mut roles: BTreeMap<CompId, bool> = BTreeMap::new();
    for instr in module.computations().iter().flat_map(|c| c.instrs()) {
        match &instr.op {
            Op::Sort(op) => drop(roles.insert(op.to_apply, true)),
            Op::SelectAndScatter(op) => drop(roles.insert(op.scatter, false)),
            // A scatter has an order (docs/decisions.md), and so it has one answer.
            Op::Reduce(_) | Op::ReduceWindow(_) | Op::AllReduce(_) | Op::ReduceScatter(_) => {
                roles.extend(instr.op.callees().into_iter().map(|id| (id, false)));
            }
            _ => {}
        }
    }
    roles.into_iter().find_map(|(id, is_comparator)| {
        let applied = Applied::new(module, id)?;
        let name = &module.computation(id).name;
        let why = if is_comparator { applied.no_order(has_nan) } else { applied.no_fold() };
        why.map(|why| format!("{name}: {why}"))
    })
}

fn any_nan(literal: &Literal) -> bool {
    literal.leaves().into_iter().filter_map(Literal::as_array).any(|array| {
        (0..array.data().len()).any(|i| match array.number(i) {
            Number::Float(x) => x.is_nan(),
            Number::Complex(z) => z.re.is_nan() || z.im.is_nan(),
            _ => false,
        })
    })
}

/// The numbers that computations are tried on, of which there are few so that some are equal.
const NUMBERS: [f64; 6] = [0.0, 1.0, 2.0, -1.5, 3.0, -4.0];

fn scalar(element: ElementType, number: f64) -> Option<Literal> {
    let number = match element {
        e if e.is_pred() => Number::Pred(number > 1.0),
        e if e.is_integer() => Number::Int(number as i128),
        e if e.is_complex() => Number::Complex(helio::ir::types::C128::new(number, 1.0)),
        _ => Number::Float(number),
    };
    let shape = ArrayShape::scalar(element);
    let data = dispatch_type!(element, T => T::wrap(vec![T::from_number(number)]));
    Array::from_data(shape, data).ok().map(Literal::Array)
}

/// A computation that can be run by itself.
struct Applied {
    program: Executable,
    /// The types of its parameters.
    types: Vec<ElementType>,
}

impl Applied {
    fn new(module: &Verified<Module>, id: CompId) -> Option<Applied> {
        let params = module.computation(id).program_shape().params;
        let element = |shape: &Shape| Some(shape.as_array()?.element());
        let types = params.iter().map(element).collect::<Option<Vec<_>>>()?;
        let mut alone = module.clone().into_inner();
        alone.set_entry(id);
        let mut options = CompileOptions::default();
        options.backend = Backend::Interpreter;
        Some(Applied { program: helio::compile(alone, &options).ok()?, types })
    }

    fn run(&self, args: Vec<Literal>) -> Option<Vec<Literal>> {
        let result = self.program.run_with(&args, &RunOptions::default()).ok()?;
        Some(result.leaves().into_iter().cloned().collect())
    }

    /// Why it is not associative and commutative in what accumulators are.
    fn no_fold(&self) -> Option<String> {
        let types = &self.types[..self.types.len() / 2];
        // The accumulators of a pair walk through the numbers at different paces, so that all
        // combinations of two occur.
        let value = |n: usize| -> Option<Vec<Literal>> {
            let number = |(i, &ty)| scalar(ty, NUMBERS[(n / NUMBERS.len().pow(i as u32)) % 6]);
            types.iter().enumerate().map(number).collect()
        };
        let count = if types.len() == 1 { NUMBERS.len() } else { 3 * NUMBERS.len() };
        let values = (0..count).map(value).collect::<Option<Vec<_>>>()?;
        let fold = |a: &[Literal], b: &[Literal]| self.run([a, b].concat());
        for a in &values {
            for b in &values {
                let (ab, ba) = (fold(a, b)?, fold(b, a)?);
                if !are_close(&ab, &ba) {
                    return Some(format!("not commutative: {a:?}, {b:?}"));
                }
                for c in values.iter().step_by(if types.len() == 1 { 1 } else { 5 }) {
                    let (left, right) = (fold(&ab, c)?, fold(a, &fold(b, c)?)?);
                    if !are_close(&left, &right) {
                        return Some(format!("not associative: {a:?}, {b:?}, {c:?}"));
                    }
                }
            }
        }
        None
    }

    /// Why it is no strict weak order.
    fn no_order(&self, with_nan: bool) -> Option<String> {
        let keys: Vec<ElementType> = self.types.iter().copied().step_by(2).collect();
        let mut numbers = NUMBERS.to_vec();
        numbers.extend(with_nan.then_some(f64::NAN));
        let value = |n: usize| -> Option<Vec<Literal>> {
            let number =
                |(i, &ty)| scalar(ty, numbers[(n + i * n / numbers.len()) % numbers.len()]);
            keys.iter().enumerate().map(number).collect()
        };
        let count = if keys.len() == 1 { numbers.len() } else { 2 * numbers.len() };
        let values = (0..count).map(value).collect::<Option<Vec<_>>>()?;
        let mut less = vec![vec![false; count]; count];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                let pairs = a.iter().zip(b).flat_map(|(a, b)| [a.clone(), b.clone()]);
                let result = self.run(pairs.collect())?;
                less[i][j] = result.first()?.as_array()?.number(0) == Number::Pred(true);
            }
        }
        let alike = |i: usize, j: usize| !less[i][j] && !less[j][i];
        for i in 0..count {
            if less[i][i] {
                return Some(format!("{:?} is less than itself", values[i]));
            }
            for j in 0..count {
                for k in 0..count {
                    let chain = less[i][j] && less[j][k] && !less[i][k];
                    let ties = alike(i, j) && alike(j, k) && !alike(i, k);
                    if chain || ties {
                        let (a, b, c) = (&values[i], &values[j], &values[k]);
                        return Some(format!("not transitive: {a:?}, {b:?}, {c:?}"));
                    }
                }
            }
        }
        None
    }
}

/// Whether values are equal but for rounding; sums of a few numbers have an error of a few parts.
fn are_close(a: &[Literal], b: &[Literal]) -> bool {
    a.iter().zip(b).all(|(a, b)| rounding::compare(a, b, &[]).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(head: &str, entry: &str) -> Option<String> {
        let text = format!("{head} ENTRY e {{ {entry} }}");
        let module = helio::parse(&text).and_then(helio::ir::verify).expect("a program");
        ambiguity(&module, &[], &Literal::Token)
    }

    fn fold(body: &str) -> Option<String> {
        let head = format!("f {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = {body} }}");
        let reduce = "x = s32[9] parameter(0) z = s32[] constant(0)
            ROOT r = s32[] reduce(x, z), dimensions={0}, to_apply=f";
        found(&head, reduce)
    }

    fn order(direction: &str) -> Option<String> {
        let head = format!(
            "f {{ a = f32[] parameter(0) b = f32[] parameter(1)
             ROOT r = pred[] compare(a, b), direction={direction} }}"
        );
        found(&head, "x = f32[9] parameter(0) ROOT r = sort(x), dimensions={0}, to_apply=f")
    }

    #[test]
    fn folds_are_told_from_others() {
        for body in ["add(a, b)", "maximum(a, b)", "multiply(a, b)", "xor(a, b)"] {
            assert_eq!(fold(body), None);
        }
        for body in ["subtract(a, b)", "shift-left(a, b)", "negate(a)"] {
            assert!(fold(body).is_some(), "{body}");
        }
    }

    #[test]
    fn orders_are_told_from_others() {
        assert_eq!(order("LT"), None);
        assert_eq!(order("GT"), None);
        for direction in ["LE", "EQ", "NE"] {
            assert!(order(direction).is_some(), "{direction}");
        }
    }
}
