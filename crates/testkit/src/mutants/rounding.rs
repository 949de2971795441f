//! What rounding explains in a program: how far each element of its results moves when the program
//! is run with other rounding errors.
//!
//! The samples are results of the interpreter: one of the program with all floats as wide as they
//! come, which shows what the narrow ones lose, and some with made-up errors of a few units in the
//! last place, different for each element, wherever engines may round differently.

use helio::ir::{
    ArrayShape, BinaryOp, Computation, Instr, InstrId, Module, Native, Number, Op, UnaryOp,
    Verified, dispatch_type,
};
use helio::unstable::ir::types::{C128, IndexIter, strides};
use helio::{Array, ElementType, Literal, Shape};
use oorandom::Rand32;

use super::run;
use crate::engines::ENGINES;

/// Runs with made-up errors.
const NOISY_RUNS: usize = 5;
/// How much farther from the interpreter's result than a sample an engine's may be.
const FACTOR: f64 = 16.0;
/// The most elements of an array of made-up errors, which is repeated along larger arrays.
const MAX_NOISE: usize = 1 << 16;

/// Results of the interpreter that differ by what rounding does in this program.
pub(super) fn samples(module: &Verified<Module>, args: &[Literal], seed: u64) -> Vec<Literal> {
    let mut rng = Rand32::new(seed);
    let noisy = (0..NOISY_RUNS).filter_map(|_| {
        let noisy = with_noise(module, &mut rng).ok()?;
        run(&ENGINES[0], &noisy, args).ok()
    });
    let mut samples: Vec<Literal> = noisy.collect();
    samples.extend(wide(module, args));
    samples
}

/// The result of a program whose floats are all of the widest type.
fn wide(module: &Verified<Module>, args: &[Literal]) -> Option<Literal> {
    let mut text = helio::print(module);
    for narrow in ["f32", "bf16", "f16"] {
        text = text.replace(&format!("{narrow}["), "f64[");
    }
    let text = text.replace("c64[", "c128[");
    let module = helio::parse(&text).and_then(helio::ir::verify).ok()?;
    let params = module.entry().program_shape().params;
    let args: Option<Vec<Literal>> =
        args.iter().zip(&params).map(|(a, p)| converted(a, p)).collect();
    run(&ENGINES[0], &module, &args?).ok()
}

fn converted(literal: &Literal, shape: &Shape) -> Option<Literal> {
    Some(match (literal, shape) {
        (Literal::Array(array), Shape::Array(shape)) => {
            let numbers = (0..array.data().len()).map(|i| array.number(i));
            let data = dispatch_type!(shape.element(), T => {
                T::wrap(numbers.map(T::from_number).collect())
            });
            Literal::Array(Array::from_data(shape.clone(), data).ok()?)
        }
        (Literal::Tuple(all), Shape::Tuple(shapes)) => {
            let all = all.iter().zip(shapes).map(|(a, shape)| converted(a, shape));
            Literal::Tuple(all.collect::<Option<_>>()?)
        }
        (other, _) => other.clone(),
    })
}

/// The program with errors made up: each result that engines may round differently, and each operand
/// that is summed up, is multiplied by factors close to one.
fn with_noise(module: &Module, rng: &mut Rand32) -> Result<Verified<Module>, helio::Errors> {
    // What is applied to single elements, or decides an order, is left alone.
    let mut applied = vec![false; module.computations().len()];
    for instr in module.computations().iter().flat_map(|c| c.instrs()) {
        if !matches!(instr.op, Op::Call(_) | Op::While(_) | Op::Conditional(_) | Op::Fusion(_)) {
            instr.op.callees().into_iter().for_each(|id| applied[id.index()] = true);
        }
    }
    let mut noisy = Module::new(&module.name);
    noisy.config = module.config.clone();
    for (id, computation) in module.ids().zip(module.computations()) {
        let computation = match applied[id.index()] {
            true => computation.clone(),
            false => Noise { rng, made: Computation::new(&computation.name) }.of(computation)?,
        };
        noisy.push(computation)?;
    }
    noisy.set_entry(module.entry_id());
    helio::ir::verify(noisy)
}

struct Noise<'r> {
    rng: &'r mut Rand32,
    made: Computation,
}

impl Noise<'_> {
    fn of(mut self, computation: &Computation) -> Result<Computation, helio::Errors> {
        self.made.attributes.clone_from(&computation.attributes);
        let mut ids: Vec<InstrId> = Vec::new();
        for instr in computation.instrs() {
            let mut operands: Vec<InstrId> =
                instr.operands.iter().map(|id| ids[id.index()]).collect();
            if adds_up(&instr.op) {
                for (to, &from) in operands.iter_mut().zip(&instr.operands) {
                    let count = computation.instr(from).shape.as_array().map(|s| s.element_count());
                    let ulps = (count.unwrap_or(1) as f64).sqrt().ceil();
                    *to = self.disturbed(*to, ulps as u32)?;
                }
            }
            let instr = Instr { operands: operands.into(), extra: None, ..instr.clone() };
            let rounds = is_rounded(&instr);
            let mut id = self.made.push(instr)?;
            if rounds {
                id = self.disturbed(id, 2)?;
            }
            ids.push(id);
        }
        self.made.set_root(ids[computation.root().index()]);
        Ok(self.made)
    }

    /// An array with errors of up to some units in the last place; anything else as it is.
    fn disturbed(&mut self, id: InstrId, ulps: u32) -> Result<InstrId, helio::Error> {
        let instr = self.made.instr(id);
        let Some(shape) = instr.shape.as_array().filter(|shape| shape.is_static()) else {
            return Ok(id);
        };
        let (shape, name) = (shape.clone().without_layout(), instr.name.clone());
        // The innermost dimensions that are not too much together.
        let mut first = shape.rank();
        let mut count = 1;
        while first > 0 && count * shape.dims()[first - 1] <= MAX_NOISE {
            first -= 1;
            count *= shape.dims()[first];
        }
        let inner = ArrayShape::new(shape.element(), &shape.dims()[first..])?;
        let Some(factors) = self.factors(&inner, ulps) else { return Ok(id) };
        let literal = Literal::Array(factors);
        let mut push = |suffix: &str, op: Op, operands: Vec<InstrId>, shape: &ArrayShape| {
            let number = self.made.instrs().len();
            let instr = Instr::new(op, operands, Shape::Array(shape.clone()));
            self.made.push(instr.named(format!("{name}.{suffix}.{number}")))
        };
        let op = helio::ir::ops::Constant { literal, elided: false };
        let mut noise = push("noise", op.into(), Vec::new(), &inner)?;
        if first > 0 {
            let dimensions = (first..shape.rank()).collect();
            let op = helio::ir::ops::Broadcast { shape: shape.clone(), dimensions };
            noise = push("spread", op.into(), vec![noise], &shape)?;
        }
        push("disturbed", Op::Binary(BinaryOp::Multiply), vec![id, noise], &shape)
    }

    /// Numbers that differ from one by up to some units in the last place; `None` if the type is
    /// none of floats, or of so few digits that a unit would be another number altogether.
    fn factors(&mut self, shape: &ArrayShape, ulps: u32) -> Option<Array> {
        let element = shape.element();
        let unit = unit(element.real_part()).filter(|&unit| unit < 0.01)?;
        // No error is as large as the number itself.
        let most = f64::from(ulps).min(0.02 / unit).max(1.0);
        let mut factor = || 1.0 + (2.0 * f64::from(self.rng.rand_float()) - 1.0) * most * unit;
        let is_complex = element.is_complex();
        let mut number = || match is_complex {
            true => Number::Complex(C128::new(factor(), 0.0)),
            false => Number::Float(factor()),
        };
        let data = dispatch_type!(element, T => {
            T::wrap((0..shape.element_count()).map(|_| T::from_number(number())).collect())
        });
        Array::from_data(shape.clone(), data).ok()
    }
}

/// The unit in the last place of one; `None` for what is no float.
fn unit(element: ElementType) -> Option<f64> {
    Some(match element {
        ElementType::F64 => f64::EPSILON,
        ElementType::F32 => f32::EPSILON.into(),
        ElementType::F16 => 1.0 / 1024.0,
        ElementType::BF16 => 1.0 / 128.0,
        e if e.is_float() => 0.25,
        _ => return None,
    })
}

/// Operations that add up many numbers, in an order of their own.
fn adds_up(op: &Op) -> bool {
    matches!(
        op,
        Op::Reduce(_)
            | Op::ReduceWindow(_)
            | Op::SelectAndScatter(_)
            | Op::Scatter(_)
            | Op::Dot(_)
            | Op::RaggedDot(_)
            | Op::Convolution(_)
            | Op::BatchNormTraining(_)
            | Op::BatchNormInference(_)
            | Op::BatchNormGrad(_)
            | Op::Cholesky(_)
            | Op::TriangularSolve(_)
            | Op::Fft(_)
            | Op::AllReduce(_)
            | Op::ReduceScatter(_)
    )
}

/// Whether engines may round an instruction's result differently.
fn is_rounded(instr: &Instr) -> bool {
    let Some(shape) = instr.shape.as_array() else { return false };
    // Between operations on narrow floats there may be wider ones.
    let is_narrow = unit(shape.element().real_part()).is_some_and(|unit| unit > 1e-6);
    match &instr.op {
        Op::Unary(op) => !matches!(
            op,
            UnaryOp::Abs
                | UnaryOp::Negate
                | UnaryOp::Sign
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::RoundNearestAfz
                | UnaryOp::RoundNearestEven
                | UnaryOp::Real
                | UnaryOp::Imag
        ),
        Op::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply) => {
            is_narrow || shape.element().is_complex()
        }
        Op::Binary(BinaryOp::Maximum | BinaryOp::Minimum) => false,
        Op::Binary(_) | Op::Map(_) => true,
        Op::Convert(_) => is_narrow,
        op => adds_up(op),
    }
}

/// Compares an engine's result with the interpreter's. Floats may differ by some units in the last
/// place and by a factor more than any of the samples does at that element; integers not at all,
/// unless a sample does. Errors: where and how they differ.
pub(super) fn compare(
    found: &Literal,
    expected: &Literal,
    samples: &[Literal],
) -> Result<(), String> {
    let samples: Vec<Vec<&Literal>> = samples.iter().map(Literal::leaves).collect();
    for (n, (found, expected)) in found.leaves().into_iter().zip(expected.leaves()).enumerate() {
        let (Some(found), Some(expected)) = (found.as_array(), expected.as_array()) else {
            continue;
        };
        let others: Vec<&Array> =
            samples.iter().filter_map(|leaves| leaves.get(n)?.as_array()).collect();
        arrays(found, expected, &others).map_err(|e| format!("result {n}: {e}"))?;
    }
    Ok(())
}

fn arrays(found: &Array, expected: &Array, samples: &[&Array]) -> Result<(), String> {
    if found.element() != expected.element() || found.sizes() != expected.sizes() {
        // What decides a size may be rounded, too.
        let same = samples.iter().all(|sample| sample.sizes() == expected.sizes());
        let (one, other) = (found.sizes(), expected.sizes());
        return if same { Err(format!("sizes {one:?}, expected {other:?}")) } else { Ok(()) };
    }
    let samples: Vec<&&Array> = samples.iter().filter(|s| s.sizes() == expected.sizes()).collect();
    let unit = unit(expected.element().real_part());
    let steps = strides(expected.dims());
    let mut points = IndexIter::new(expected.sizes());
    while let Some(point) = points.next_point() {
        let i: usize = point.iter().zip(&steps).map(|(&i, stride)| i * stride).sum();
        if found.bits(i) == expected.bits(i) {
            continue;
        }
        let Some(unit) = unit else {
            if samples.iter().any(|sample| sample.number(i) != expected.number(i)) {
                continue;
            }
            let (x, y) = (found.number(i), expected.number(i));
            return Err(format!("at {point:?}: found {x:?}, expected {y:?}"));
        };
        let (x, y) = (parts(found, i), parts(expected, i));
        for part in 0..2 {
            let others: Vec<f64> = samples.iter().map(|sample| parts(sample, i)[part]).collect();
            let (x, y) = (x[part], y[part]);
            if !is_close(x, y, unit, &others) {
                return Err(format!(
                    "at {point:?}: found {x:e}, expected {y:e}, samples {others:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The real and the imaginary part.
fn parts(array: &Array, i: usize) -> [f64; 2] {
    match array.number(i) {
        Number::Float(x) => [x, 0.0],
        Number::Complex(z) => [z.re, z.im],
        Number::Int(_) | Number::Pred(_) => [0.0, 0.0],
    }
}

fn is_close(x: f64, y: f64, unit: f64, samples: &[f64]) -> bool {
    if x == y || (x.is_nan() && y.is_nan()) {
        return true;
    }
    // What is finite in one run and not in another is not determined.
    let kind = |z: f64| (z.is_nan(), z == f64::INFINITY, z == f64::NEG_INFINITY);
    if samples.iter().any(|&sample| kind(sample) != kind(y)) {
        return true;
    }
    if !x.is_finite() || !y.is_finite() {
        return false;
    }
    let spread = samples.iter().map(|sample| (sample - y).abs()).fold(0.0, f64::max);
    // Some units, of narrow floats fewer.
    let ulps: f64 = if unit < 1e-6 { 32.0 } else { 4.0 };
    (x - y).abs() <= ulps.min(0.5 / unit) * unit * y.abs() + FACTOR * spread
}
