//! Random well-typed programs, with how closely engines must agree on their results.
//!
//! A program grows instruction by instruction, each on operands that are there. Of every value the
//! range is known, and how far two engines may be apart (`bound`); an instruction that would leave
//! the range or let errors hide mistakes is not taken. So integers, moved data and sums of small
//! whole numbers must come out in all bits, and everything else within a bound that follows from
//! what was computed.
//!
//! The same seed always gives the same program, of which a part can be had by itself: the value
//! that first differs makes the least program that fails.

mod block;
mod bound;
mod bounded;
mod control;
mod elementwise;
mod folds;
mod indexing;
mod movement;
mod neighbours;
mod windows;

use std::collections::BTreeMap;

use helio::ir::types::{ArrayShape, Native, Number};
use helio::ir::{Module, Verified, dispatch_type, types::C128};
use helio::{Array, ElementType, Executable, Literal, Reason, RunOptions};
use oorandom::Rand64;

use crate::engines::{ENGINES, Engine, THREADS};
use crate::tally::Tally;
use crate::tolerance::Tolerance;
use block::{Block, Value};
use bound::Bound;
pub use bounded::check_bounded;

/// A program, its arguments, and how closely its results must agree.
#[derive(Clone, Debug)]
pub struct RandomProgram {
    /// HLO text; the result is a tuple of arrays.
    pub text: String,
    /// The arguments.
    pub arguments: Vec<Literal>,
    /// For each array of the result.
    tolerances: Vec<Tolerance>,
}

impl RandomProgram {
    /// The module, and the interpreter's result for the arguments.
    fn oracle(&self) -> Result<(Verified<Module>, Literal), String> {
        let module = helio::parse(&self.text).and_then(helio::ir::verify);
        let module = module.map_err(|e| format!("the program is wrong: {e:?}"))?;
        let expected = ENGINES[0].run(&module, &self.arguments, &RunOptions::default());
        Ok((module, expected.map_err(|e| format!("the interpreter fails: {e}"))?))
    }

    /// Errors: the engine fails, or its results differ from the interpreter's.
    fn agrees(&self, engine: &Engine) -> Result<(), String> {
        let (module, expected) = self.oracle()?;
        self.agrees_with(engine, &module, &expected).map(|_| ())
    }

    /// The engine's program. Errors: it fails, its results differ, or the engine compiles and it is
    /// interpreted as a whole: no random program has a reason for that.
    fn agrees_with(
        &self,
        engine: &Engine,
        module: &Verified<Module>,
        expected: &Literal,
    ) -> Result<Executable, String> {
        let program = engine.compile(module).map_err(|e| e.to_string())?;
        ensure_compiled(&program)?;
        let found = engine.run_program(&program, &self.arguments, &RunOptions::default());
        self.compare(&found.map_err(|e| e.to_string())?, expected)?;
        Ok(program)
    }

    /// Compares results. `Err` says where and how they differ first.
    pub fn compare(&self, found: &Literal, expected: &Literal) -> Result<(), String> {
        let (Some(found), Some(expected)) = (found.as_tuple(), expected.as_tuple()) else {
            return Err("a result is no tuple".to_owned());
        };
        for (i, tolerance) in self.tolerances.iter().enumerate() {
            let (Some(found), Some(expected)) = (found.get(i), expected.get(i)) else {
                return Err(format!("result {i} is missing"));
            };
            tolerance.compare(found, expected).map_err(|e| format!("result {i}: {e}"))?;
        }
        Ok(())
    }
}

/// Errors: a compiled program is interpreted as a whole, or fusion has made a kernel that lowering does not
/// take. No random program has a reason for that.
fn ensure_compiled(program: &Executable) -> Result<(), String> {
    let is_wrong = |reason: Reason| reason.concerns_program() || reason == Reason::NotLowered;
    match program.interpreted().iter().find(|i| is_wrong(i.reason)) {
        Some(because) => Err(format!("not compiled: {because}")),
        None => Ok(()),
    }
}

/// Where random programs come from.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Generator,
}

impl Random {
    /// Grows a program of about `instructions` instructions.
    pub fn new(seed: u64, instructions: usize) -> Self {
        let mut generator = Generator::new(seed);
        (0..instructions).for_each(|_| generator.step());
        Random { generator }
    }

    /// Grows a program of about `instructions` instructions that read what their neighbours may
    /// overwrite, on arrays that are cut up among threads.
    pub fn neighbours(seed: u64, instructions: usize) -> Self {
        let mut generator = Generator::for_neighbours(seed);
        (0..instructions).for_each(|_| generator.neighbour());
        Random { generator }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.generator.block.values.len()
    }

    /// The program with all that nothing else uses as its result.
    pub fn program(&self) -> RandomProgram {
        self.program_of(&self.generator.block.unused())
    }

    /// The part of the program that one value, by number, is computed by.
    pub fn part(&self, value: usize) -> RandomProgram {
        self.program_of(&[&self.generator.block.values[value]])
    }

    /// A small part of the program on which an engine fails, and how: what one value needs, or else
    /// the whole program with as few results as will do. `None` if it does not fail.
    fn least(&self, engine: &Engine) -> Option<(RandomProgram, String)> {
        let failing = |part: RandomProgram| part.agrees(engine).err().map(|error| (part, error));
        let mut parts = (0..self.count()).map(|value| self.part(value));
        if let Some(least) = parts.find_map(failing) {
            return Some(least);
        }
        let mut results = self.generator.block.unused();
        let mut least = failing(self.program_of(&results))?;
        for at in (0..results.len()).rev() {
            let mut fewer = results.clone();
            fewer.remove(at);
            if let Some(found) = failing(self.program_of(&fewer)) {
                (results, least) = (fewer, found);
            }
        }
        Some(least)
    }

    fn program_of(&self, results: &[&Value]) -> RandomProgram {
        let names: Vec<String> = results.iter().map(|value| value.name()).collect();
        let shapes: Vec<String> = results.iter().map(|value| value.shape()).collect();
        let root = format!("r = ({}) tuple({})", shapes.join(", "), names.join(", "));
        let operands: Vec<usize> = results.iter().map(|value| value.line).collect();
        let (body, arguments) = self.generator.block.text(&root, &operands, true);
        let mut text =
            format!("HloModule random{}\n\n", self.generator.donations(results, &arguments));
        // Callees come before callers; take those that are named, from the last on.
        let mut callees: Vec<&str> = Vec::new();
        for (name, computation) in self.generator.computations.iter().rev() {
            let called = |text: &str| {
                text.contains(&format!("{name}}}"))
                    || text.contains(&format!("{name},"))
                    || text.contains(&format!("{name}\n"))
            };
            if called(&body) || callees.iter().any(|callee| called(callee)) {
                callees.push(computation);
            }
        }
        callees.iter().rev().for_each(|callee| text.push_str(callee));
        text.push_str(&format!("ENTRY entry {{\n{body}}}\n"));
        let tolerances = results.iter().map(|value| value.bound.tolerance(value.element));
        RandomProgram { text, arguments, tolerances: tolerances.collect() }
    }
}

/// Instructions of a program: enough for a few of them to be fused.
const INSTRUCTIONS: usize = 24;
/// Instructions of a program of neighbours.
const NEIGHBOURS: usize = 12;

/// Runs the program of this number on the interpreter and on every engine; counts the runs whose
/// results were compared. Errors: a report of the first engine that differs, with the least part of
/// the program on which it does.
pub fn check(seed: u64, tally: &mut Tally) -> Result<(), String> {
    agree(seed, &Random::new(seed, INSTRUCTIONS), &ENGINES[1..], tally)
}

/// The same for the program of neighbours of this number, compiled for different numbers of threads.
pub fn check_neighbours(seed: u64, tally: &mut Tally) -> Result<(), String> {
    agree(seed, &Random::neighbours(seed, NEIGHBOURS), &[THREADS], tally)
}

fn agree(seed: u64, random: &Random, engines: &[Engine], tally: &mut Tally) -> Result<(), String> {
    let whole = random.program();
    let (module, expected) =
        whole.oracle().map_err(|e| format!("seed {seed}: {e}\n{}", whole.text))?;
    for engine in engines {
        let first = match whole.agrees_with(engine, &module, &expected) {
            Ok(program) => {
                tally.ran(engine, &program);
                continue;
            }
            Err(first) => first,
        };
        let (part, error) = random.least(engine).unwrap_or_else(|| (whole.clone(), first));
        let mut report = format!("seed {seed}, {}: {error}\n{}\n", engine.name, part.text);
        for (i, argument) in part.arguments.iter().enumerate() {
            let value = helio::ir::text::print_literal(argument);
            let (shown, dots) = match value.char_indices().nth(MAX_SHOWN) {
                Some((end, _)) => (&value[..end], "…"),
                None => (&value[..], ""),
            };
            report.push_str(&format!("argument {i}: {shown}{dots}\n"));
        }
        return Err(report);
    }
    Ok(())
}

/// Characters of an argument that a report shows; the seed brings the rest back.
const MAX_SHOWN: usize = 400;

/// No value has more elements, mostly: programs are many rather than large.
const MAX_ELEMENTS: usize = 4096;

/// A dimension is one of a few sizes for each program, so that shapes go together.
const SIZES: &[usize] = &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100];

/// Element types, those that matter most several times.
const ELEMENTS: &[ElementType] = {
    use ElementType::*;
    &[
        F32, F32, F32, F32, F32, F32, F32, F32, S32, S32, S32, S32, Pred, F64, F64, F64, BF16,
        BF16, F16, F16, S8, U8, S16, U16, S64, S64, U32, U32, U64, C64, C128, S4, U4, F8E4M3FN,
        F8E5M2,
    ]
};

/// The state of growing a program.
#[derive(Clone, Debug)]
struct Generator {
    rng: Rand64,
    block: Block,
    /// Called computations by name, in the order in which they were made.
    computations: Vec<(String, String)>,
    /// What small computations were made already: name by what it is.
    known: BTreeMap<String, String>,
    sizes: Vec<usize>,
    /// No value has more elements.
    most: usize,
    /// Whether arguments may be given away for results.
    donates: bool,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut generator = Generator {
            rng: Rand64::new(seed.into()),
            block: Block::default(),
            computations: Vec::new(),
            known: BTreeMap::new(),
            sizes: Vec::new(),
            most: MAX_ELEMENTS,
            donates: false,
        };
        generator.sizes = (0..3).map(|_| *generator.pick(SIZES)).collect();
        if generator.chance(1, 10) {
            generator.sizes[0] = 0;
        }
        for _ in 0..2 {
            let element = generator.element();
            generator.parameter(element);
        }
        generator
    }

    /// Adds an instruction or a few; sometimes none, where nothing fits.
    fn step(&mut self) {
        match self.below(40) {
            0..=1 => {
                let element = self.element();
                self.parameter(element);
            }
            2..=16 => self.elementwise(),
            17..=27 => self.movement(),
            28..=33 => self.fold(),
            34..=36 => self.indexing(),
            _ => self.control(),
        }
    }

    /// A number below `count`, which is not 0.
    fn below(&mut self, count: usize) -> usize {
        self.rng.rand_range(0..count as u64) as usize
    }

    fn chance(&mut self, one: usize, of: usize) -> bool {
        self.below(of) < one
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn element(&mut self) -> ElementType {
        *self.pick(ELEMENTS)
    }

    /// Sizes that fit together with others of the program.
    fn dims(&mut self) -> Vec<usize> {
        let rank = *self.pick(&[0, 1, 1, 2, 2, 2, 3, 3, 4]);
        let sizes = self.sizes.clone();
        let mut dims: Vec<usize> = (0..rank).map(|_| *self.pick(&sizes)).collect();
        while dims.iter().product::<usize>() > self.most {
            dims.pop();
        }
        dims
    }

    /// Some value that fits, mostly a late one.
    fn choose(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let found: Vec<usize> =
            (0..self.block.values.len()).filter(|&i| fits(&self.block.values[i])).collect();
        let last = found.len().checked_sub(1)?;
        let back = self.below(found.len()).min(self.below(found.len()));
        Some(self.block.values[found[last - back]].clone())
    }

    fn parameter(&mut self, element: ElementType) -> Value {
        let dims = self.dims();
        self.parameter_of(element, &dims)
    }

    /// A parameter of the entry and its argument: whole numbers, normal numbers, or anything.
    fn parameter_of(&mut self, element: ElementType, dims: &[usize]) -> Value {
        let is_float = element.is_float() || element.is_complex();
        let narrow = is_float && bound::Precision::of(element).is_none();
        let (bound, kind) = match self.below(10) {
            _ if element.is_pred() => (Bound::any(element), Fill::Any),
            0..=3 => (
                Bound::exact(if element.is_unsigned_integer() { 0.0 } else { -2.0 }, 3.0, true),
                Fill::Whole,
            ),
            4..=8 if is_float && !narrow => (Bound::exact(-4.0, 4.0, false), Fill::Normal),
            9 if element.is_complex() => (Bound::exact(-4.0, 4.0, false), Fill::Normal),
            _ => (Bound::any(element), Fill::Any),
        };
        self.parameter_with(element, dims, bound, kind)
    }

    fn parameter_with(
        &mut self,
        element: ElementType,
        dims: &[usize],
        bound: Bound,
        fill: Fill,
    ) -> Value {
        let count = dims.iter().product();
        let numbers: Vec<Number> = (0..count).map(|_| self.number(element, bound, fill)).collect();
        let data = dispatch_type!(element, T => {
            T::wrap(numbers.iter().map(|&number| T::from_number(number)).collect())
        });
        let array = ArrayShape::new(element, dims).and_then(|shape| Array::from_data(shape, data));
        let array = array.expect("as many values as the shape has");
        self.block.parameter(element, dims, bound, Some(Literal::Array(array)))
    }

    /// An element of an argument.
    fn number(&mut self, element: ElementType, bound: Bound, fill: Fill) -> Number {
        let real = |generator: &mut Self| match fill {
            Fill::Whole => generator.between(bound.low as i64, bound.high as i64) as f64,
            Fill::Normal => generator.normal().clamp(bound.low, bound.high),
            Fill::Any if generator.chance(1, 3) => *generator.pick(SPECIAL),
            Fill::Any => generator.normal(),
        };
        match element {
            e if e.is_pred() => Number::Pred(self.chance(1, 2)),
            e if e.is_integer() => Number::Int(match fill {
                Fill::Any => self.rng.rand_u64().into(),
                _ => self.between(bound.low as i64, bound.high as i64).into(),
            }),
            e if e.is_complex() => Number::Complex(C128::new(real(self), real(self))),
            _ => Number::Float(real(self)),
        }
    }

    /// A whole number of `low..=high`.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as usize + 1) as i64
    }

    /// About normally distributed, in -6..6.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.rand_float()).sum::<f64>() - 6.0
    }

    /// A scalar constant.
    fn scalar(&mut self, element: ElementType, value: i64) -> Value {
        let text = match element {
            e if e.is_pred() => (value != 0).to_string(),
            e if e.is_complex() => format!("({value}, 0)"),
            _ => value.to_string(),
        };
        let bound = Bound::exact(value as f64, value as f64, true);
        self.block.push_constant(element, &text, bound)
    }

    /// The value in every element of an array of these sizes.
    fn fill(&mut self, scalar: &Value, dims: &[usize]) -> Value {
        let attributes = ", dimensions={}";
        self.block.push(scalar.element, dims, "broadcast", &[scalar], attributes, scalar.bound)
    }

    /// The name of a computation, made by `make` (which gets the name) the first time that `what`
    /// is asked for.
    fn computation(&mut self, what: String, make: impl FnOnce(&str) -> String) -> String {
        if let Some(name) = self.known.get(&what) {
            return name.clone();
        }
        let name = format!("c{}.f", self.computations.len());
        let text = make(&name);
        self.computations.push((name.clone(), text));
        self.known.insert(what, name.clone());
        name
    }
}

/// What an argument is filled with.
#[derive(Clone, Copy, Debug)]
enum Fill {
    /// Whole numbers within its bound.
    Whole,
    /// Normally distributed numbers within its bound.
    Normal,
    /// Anything, NaN and infinities included.
    Any,
}

/// Floats at which rules change.
const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-40,
    3.4e38,
    65504.0,
    2147483648.0,
    -2147483904.0,
    1e19,
];
