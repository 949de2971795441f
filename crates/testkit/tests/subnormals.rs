//! Operations where numbers are subnormal or results are, and at the ends of the range, on each back end
//! against the interpreter, flushed and kept.

use helio::ir::ops::{BinaryOp, UnaryOp};
use helio::ir::types::{ArrayShape, Native, Number};
use helio::ir::{Array, dispatch_type};
use helio::{ElementType, Literal, RunOptions, Subnormals};
use helio_testkit::engines::ENGINES;
use helio_testkit::tally;

const TYPES: [ElementType; 4] =
    [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64];

/// The engines that are compared with the first.
const COMPARED: [&str; 4] = [
    "compiled",
    "compiled, for x86-64-v3",
    "compiled, for the tile machine",
    "compiled at level 0",
];

/// A number for each exponent of a type, with mantissas of few and of many bits, and what has none.
fn values(ty: ElementType) -> Vec<u128> {
    let format = ty.float_format().expect("a float");
    let (mantissa, sign) = (format.mantissa_bits, 1u128 << (ty.bits() - 1));
    let exponents = (0..1u128 << format.exponent_bits).step_by(if mantissa > 23 { 7 } else { 1 });
    let mantissas = [0, 1 << (mantissa - 1), (1 << mantissa) - 1];
    let magnitudes = exponents.flat_map(|e| mantissas.map(|m| e << mantissa | m));
    // The ends of the range.
    let infinity = ((1u128 << format.exponent_bits) - 1) << mantissa;
    let ends = [1, 2, (1 << mantissa) + 1, infinity - 1, infinity - 2];
    magnitudes.chain(ends).flat_map(|bits| [bits, bits | sign]).collect()
}

fn array(ty: ElementType, bits: &[u128]) -> Literal {
    let data = dispatch_type!(ty, T => {
        T::wrap(bits.iter().map(|&bits| <T as Native>::from_bits(bits)).collect())
    });
    Literal::Array(Array::from_data(ArrayShape::new(ty, [bits.len()]).unwrap(), data).unwrap())
}

/// Numbers of a result; with `least`, what is smaller is zero.
fn numbers(value: &Literal, least: f64) -> Vec<f64> {
    let array = value.as_array().expect("an array");
    let number = |i: usize| match array.number(i) {
        Number::Float(x) if x.abs() < least => 0.0,
        Number::Float(x) => x,
        Number::Int(x) => x as f64,
        other => f64::from(u8::from(other == Number::Pred(true))),
    };
    (0..array.data().len()).map(number).collect()
}

/// Runs a program on every engine; how many numbers were compared.
fn compare(text: &str, args: &[Literal], ty: ElementType) -> usize {
    let module = helio::parse(text).and_then(helio::ir::verify).expect("a program");
    let mut compared = 0;
    for subnormals in Subnormals::ALL {
        let run = |name: &str| {
            let engine = ENGINES.iter().find(|engine| engine.name == name).expect("an engine");
            let program = engine.compile_with(&module, subnormals).expect(name);
            engine.run_program(&program, args, &RunOptions::default()).expect(name)
        };
        // A result that is next to the least normal number may be flushed by one and not by another.
        let (epsilon, least) = match ty {
            ElementType::F16 => (2e-3, 0.0),
            ElementType::BF16 => (1.6e-2, f64::from(f32::MIN_POSITIVE)),
            ElementType::F32 => (2e-6, f64::from(f32::MIN_POSITIVE)),
            _ => (1e-14, f64::MIN_POSITIVE),
        };
        let flushes = subnormals == Subnormals::Flush;
        let least = if flushes { least * (1.0 + epsilon) } else { 0.0 };
        let expected = numbers(&run("interpreter"), least);
        for name in COMPARED {
            let found = numbers(&run(name), least);
            for (i, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
                let step = match ty {
                    ElementType::F16 => f64::powi(2.0, -24),
                    ElementType::BF16 => f64::powi(2.0, -133),
                    ElementType::F32 => f64::powi(2.0, -149),
                    _ => f64::from_bits(1),
                };
                let bound = epsilon * expected.abs() + 2.0 * step;
                let is_close = found == expected || (found - expected).abs() <= bound;
                if !(is_close || found.is_nan() && expected.is_nan()) {
                    let at = |arg: &Literal| arg.as_array().expect("an array").number(i);
                    let operands: Vec<Number> = args.iter().map(at).collect();
                    panic!(
                        "{name}, {subnormals:?}, at {operands:?}: {found:e}, not {expected:e}\n{text}"
                    );
                }
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn functions_of_one_number() {
    let mut compared = 0;
    for ty in TYPES {
        let (bits, name) = (values(ty), ty.name());
        let n = bits.len();
        for op in UnaryOp::ALL.iter().map(|op| op.name()) {
            let text =
                format!("ENTRY e {{ x = {name}[{n}] parameter(0)  ROOT r = {name}[{n}] {op}(x) }}");
            let is_of_floats =
                helio::parse(&text).is_ok_and(|module| helio::ir::verify(module).is_ok());
            if is_of_floats {
                compared += compare(&text, &[array(ty, &bits)], ty);
            }
        }
    }
    tally::report(format_args!("{compared} numbers compared"));
    assert!(compared > 100_000);
}

#[test]
fn functions_of_two_numbers() {
    let mut compared = 0;
    for ty in TYPES {
        let some: Vec<u128> = values(ty).into_iter().step_by(17).collect();
        let pairs = || some.iter().flat_map(|&x| some.iter().map(move |&y| (x, y)));
        let (xs, ys): (Vec<u128>, Vec<u128>) = pairs().unzip();
        let (n, name) = (xs.len(), ty.name());
        let args = [array(ty, &xs), array(ty, &ys)];
        let ops = [
            BinaryOp::Add,
            BinaryOp::Subtract,
            BinaryOp::Multiply,
            BinaryOp::Divide,
            BinaryOp::Maximum,
            BinaryOp::Minimum,
            BinaryOp::Remainder,
            BinaryOp::Power,
            BinaryOp::Atan2,
        ];
        let params = format!("x = {name}[{n}] parameter(0)  y = {name}[{n}] parameter(1)");
        for op in ops.map(BinaryOp::name) {
            let text = format!("ENTRY e {{ {params}  ROOT r = {name}[{n}] {op}(x, y) }}");
            compared += compare(&text, &args, ty);
        }
        for direction in ["EQ", "NE", "LT", "GE"] {
            let text = format!(
                "ENTRY e {{ {params}  ROOT r = pred[{n}] compare(x, y), direction={direction} }}"
            );
            compared += compare(&text, &args, ty);
        }
    }
    tally::report(format_args!("{compared} numbers compared"));
    assert!(compared > 100_000);
}

#[test]
fn inverse_functions_of_complex_numbers() {
    let mut compared = 0;
    for (ty, complex) in [(ElementType::F32, "c64"), (ElementType::F64, "c128")] {
        let some: Vec<u128> = values(ty).into_iter().step_by(17).collect();
        let pairs = || some.iter().flat_map(|&x| some.iter().map(move |&y| (x, y)));
        let (xs, ys): (Vec<u128>, Vec<u128>) = pairs().unzip();
        let (n, name) = (xs.len(), ty.name());
        let args = [array(ty, &xs), array(ty, &ys)];
        for call in ["acos(z)", "acosh(z)", "asin(z)", "asinh(z)", "atan(z)", "atanh(z)"] {
            for part in ["real", "imag"] {
                let text = format!(
                    "ENTRY e {{
                       x = {name}[{n}] parameter(0)  y = {name}[{n}] parameter(1)
                       z = {complex}[{n}] complex(x, y)
                       f = {complex}[{n}] {call}
                       ROOT r = {name}[{n}] {part}(f)
                     }}"
                );
                compared += compare(&text, &args, ty);
            }
        }
    }
    tally::report(format_args!("{compared} numbers compared"));
    assert!(compared > 100_000);
}

#[test]
fn conversions() {
    let mut compared = 0;
    for from in TYPES {
        let bits = values(from);
        let n = bits.len();
        for to in TYPES.into_iter().chain([ElementType::Pred]).filter(|&to| to != from) {
            let text = format!(
                "ENTRY e {{ x = {from}[{n}] parameter(0)  ROOT r = {to}[{n}] convert(x) }}"
            );
            compared += compare(&text, &[array(from, &bits)], to);
        }
    }
    tally::report(format_args!("{compared} numbers compared"));
    assert!(compared > 10_000);
}

/// All pairs of numbers of `f8e8m0fnu`, the least of which is subnormal in `f32` and `bf16`, and what they become
/// in other types and other numbers become in this.
#[test]
fn powers_of_two() {
    let ty = ElementType::F8E8M0FNU;
    let (xs, ys): (Vec<u128>, Vec<u128>) = (0..1 << 16).map(|i| (i & 255, i >> 8)).unzip();
    let pairs = [array(ty, &xs), array(ty, &ys)];
    let params = "x = f8e8m0fnu[65536] parameter(0)  y = f8e8m0fnu[65536] parameter(1)";
    let mut programs: Vec<(String, Vec<Literal>)> = Vec::new();
    for op in BinaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
        let text = format!("{params}  ROOT r = f8e8m0fnu[65536] {}(x, y)", op.name());
        programs.push((text, pairs.to_vec()));
    }
    let compared = "pred[65536] compare(x, y), direction=LE";
    programs.push((format!("{params}  ROOT r = {compared}"), pairs.to_vec()));
    for op in UnaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
        let result = op.result_rule().apply(ty).expect("a type of results");
        let text =
            format!("x = f8e8m0fnu[65536] parameter(0)  ROOT r = {result}[65536] {}(x)", op.name());
        programs.push((text, pairs[..1].to_vec()));
    }
    for other in TYPES.into_iter().chain([ElementType::S32, ElementType::U64, ElementType::Pred]) {
        let text = format!("x = f8e8m0fnu[65536] parameter(0)  ROOT r = {other}[65536] convert(x)");
        programs.push((text, pairs[..1].to_vec()));
        if other.is_float() {
            let bits = values(other);
            let n = bits.len();
            let text = format!("x = {other}[{n}] parameter(0)  ROOT r = f8e8m0fnu[{n}] convert(x)");
            programs.push((text, vec![array(other, &bits)]));
        }
    }
    for (text, args) in &programs {
        let module = helio::parse(&format!("ENTRY e {{ {text} }}")).and_then(helio::ir::verify);
        let module = module.expect("a program");
        for subnormals in Subnormals::ALL {
            let run = |name: &str| {
                let engine = ENGINES.iter().find(|engine| engine.name == name).expect("an engine");
                let program = engine.compile_with(&module, subnormals).expect(name);
                let result = engine.run_program(&program, args, &RunOptions::default());
                numbers(&result.expect(name), 0.0)
            };
            let expected = run("interpreter");
            for name in COMPARED {
                let found = run(name);
                let differs = |i: &usize| {
                    let (x, y) = (found[*i], expected[*i]);
                    x != y && !(x.is_nan() && y.is_nan())
                };
                if let Some(i) = (0..found.len()).find(differs) {
                    let at: Vec<Number> = args
                        .iter()
                        .map(|arg| arg.as_array().expect("an array").number(i))
                        .collect();
                    let (found, expected) = (found[i], expected[i]);
                    panic!("{name}, {subnormals:?}: {text} at {at:?}: {found:e}, not {expected:e}");
                }
            }
        }
    }
}
