//! Sweeps of the `F32` recipes against `f64` functions, which have 29 bits more, and of trigonometric
//! `F64` recipes against functions of `libm`, which are within a unit of the last place.

use super::*;
use crate::CodeOptions;
use crate::kernel::{Addr, Kernel, Mem};
use crate::tile::{FunctionArg, Tile};
use complex::ComplexParts;

const LANES: i64 = 64;

/// Recipes with tables, and those without them.
const VECTOR_BYTES: [usize; 2] = [64, 32];

/// A kernel for `f` over `n` numbers, a multiple of [`LANES`], of the type `mem`, for processors with vectors
/// of `vector_bytes` bytes.
fn mapped(
    vector_bytes: usize,
    mem: Mem,
    inputs: usize,
    n: usize,
    f: impl Fn(&mut Builder, &[Value]) -> Value,
) -> Kernel {
    let mut b = Builder::of(LANES as usize, vector_bytes);
    let bufs: Vec<_> = (0..inputs).map(|_| b.param(mem.bytes() * n, true, false)).collect();
    let out = b.param(mem.bytes() * n, false, true);
    let stride = mem.bytes() as i64;
    let at = |buf, i| Addr { buf, offset: 0, terms: vec![(i, stride)], lane_stride: stride };
    let (begin, end) = (b.begin(), b.end());
    b.for_loop(begin, end, LANES, &[], |b, i, _| {
        let args: Vec<Value> = bufs.iter().map(|&buf| b.load(mem, at(buf, i), None)).collect();
        let value = f(b, &args);
        b.store(value, mem, at(out, i), None);
        vec![]
    });
    b.finish()
}

/// What a kernel gives for arrays of `n` numbers as bytes, an array as long as each of them.
fn run_bytes(kernel: &Kernel, inputs: &[Vec<u8>], n: usize) -> Vec<u8> {
    let mut out = vec![0; inputs[0].len()];
    let mut args: Vec<FunctionArg<'_>> = inputs.iter().map(|x| FunctionArg::Read(x)).collect();
    args.push(FunctionArg::Write(&mut out));
    Tile::new(kernel, &CodeOptions::default()).unwrap().run(&mut args, 0, n as i64).unwrap();
    out
}

fn run(kernel: &Kernel, inputs: &[&[f32]]) -> Vec<f32> {
    let n = inputs[0].len();
    let inputs: Vec<Vec<u8>> =
        inputs.iter().map(|x| x.iter().flat_map(|x| x.to_ne_bytes()).collect()).collect();
    let out = run_bytes(kernel, &inputs, n);
    out.chunks_exact(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect()
}

fn run_wide(kernel: &Kernel, input: &[f64]) -> Vec<f64> {
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let out = run_bytes(kernel, &[bytes], input.len());
    out.chunks_exact(8).map(|x| f64::from_ne_bytes(x.try_into().unwrap())).collect()
}

/// How many units of the last place `found` is off; infinite if it is of another kind.
fn error(found: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if found.is_nan() || rounded.is_nan() {
        return if found.is_nan() && rounded.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == rounded {
        let same_sign = found.is_sign_negative() == rounded.is_sign_negative();
        return if same_sign { 0.0 } else { f64::INFINITY };
    }
    if rounded.is_infinite() || found.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = ((rounded.abs().to_bits() >> 23) as i32).max(1) - 150;
    (f64::from(found) - expected).abs() / 2f64.powi(exponent)
}

/// The greatest error over every `step`-th bit pattern.
fn sweep(
    vector_bytes: usize,
    op: UnaryOp,
    step: usize,
    expected: impl Fn(f64) -> f64,
) -> (f64, f32) {
    const BATCH: usize = 1 << 14;
    let kernel = mapped(vector_bytes, Mem::F32, 1, BATCH, |b, x| unary(b, op, x[0]));
    let mut worst = (0.0, 0.0);
    let mut patterns = (0..=u32::MAX).step_by(step).peekable();
    while patterns.peek().is_some() {
        let mut x: Vec<f32> = patterns.by_ref().take(BATCH).map(f32::from_bits).collect();
        x.resize(BATCH, 1.0);
        for (&x, found) in x.iter().zip(run(&kernel, &[&x])) {
            let error = error(found, expected(x.into()));
            if error > worst.0 {
                worst = (error, x);
            }
        }
    }
    worst
}

/// What a unary recipe computes, in higher precision.
fn reference(op: UnaryOp) -> Option<fn(f64) -> f64> {
    Some(match op {
        UnaryOp::Acos => f64::acos,
        UnaryOp::Acosh => f64::acosh,
        UnaryOp::Asin => f64::asin,
        UnaryOp::Asinh => |x| libm::asinh(x),
        UnaryOp::Atan => f64::atan,
        UnaryOp::Atanh => |x| libm::atanh(x),
        UnaryOp::Cbrt => f64::cbrt,
        UnaryOp::Cos => f64::cos,
        UnaryOp::Cosh => f64::cosh,
        UnaryOp::Erf => libm::erf,
        UnaryOp::Exp => f64::exp,
        UnaryOp::Expm1 => f64::exp_m1,
        UnaryOp::Log => f64::ln,
        UnaryOp::Log1p => f64::ln_1p,
        UnaryOp::Logistic => {
            |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
        }
        UnaryOp::Sin => f64::sin,
        UnaryOp::Sinh => f64::sinh,
        UnaryOp::Tan => f64::tan,
        UnaryOp::Tanh => f64::tanh,
        _ => return None,
    })
}

/// How many units of the last place a recipe may be off.
fn bound(op: UnaryOp) -> f64 {
    match op {
        UnaryOp::Cos | UnaryOp::Sin => 0.8,
        UnaryOp::Tan => 1.2,
        _ => 2.0,
    }
}

fn check_unary(step: usize) {
    let mut report = String::new();
    let mut failed = false;
    for &op in UnaryOp::ALL.iter().filter(|&&op| has_unary(op)) {
        for bytes in VECTOR_BYTES {
            let expected = reference(op).expect("a reference for each recipe");
            let (error, at) = sweep(bytes, op, step, expected);
            failed |= error > bound(op);
            let (name, bits) = (op.name(), at.to_bits());
            report += &format!("{name}, {bytes} bytes: {error:.3} at {at:e} = {bits:#x}\n");
        }
    }
    println!("{report}");
    assert!(!failed, "more units off than allowed:\n{report}");
}

#[test]
fn functions_of_one_number() {
    check_unary(40_009);
}

/// Where the logistic function is small, errors of the exponential are twice as many units of its own.
#[test]
fn logistic_of_many_numbers() {
    const N: usize = 1 << 18;
    let numbers: Vec<f32> = (0..N).map(|n| n as f32 * (-24.0 / N as f32)).collect();
    for bytes in VECTOR_BYTES {
        let kernel = mapped(bytes, Mem::F32, 1, N, |b, x| unary(b, UnaryOp::Logistic, x[0]));
        for (&x, found) in numbers.iter().zip(run(&kernel, &[&numbers])) {
            let error = error(found, f64::from(x).exp() / (1.0 + f64::from(x).exp()));
            assert!(error <= 2.0, "{bytes} bytes, of {x:e}: {found:e}, {error} units off");
        }
    }
}

#[test]
fn inverse_roots() {
    let mut numbers: Vec<f32> = (0..(1 << 16)).map(|i| f32::from_bits(i * 65_521)).collect();
    numbers[..4].copy_from_slice(&[0.0, f32::INFINITY, f32::NAN, 1.0]);
    for bytes in VECTOR_BYTES {
        let kernel = mapped(bytes, Mem::F32, 1, numbers.len(), |b, x| rsqrt(b, x[0]));
        for (&x, found) in numbers.iter().zip(run(&kernel, &[&numbers])) {
            let error = error(found, f64::from(x).sqrt().recip());
            assert!(error <= 1.5, "{bytes} bytes, of {x:e}: {found:e}, {error} units off");
        }
    }
}

/// Of all numbers; takes minutes.
#[test]
#[ignore = "takes minutes"]
fn functions_of_every_number() {
    check_unary(1);
}

#[test]
fn functions_of_two_numbers() {
    const N: usize = 1 << 16;
    let specials = [
        0.0,
        1.0,
        0.5,
        2.0,
        3.0,
        4.0,
        1e-45,
        1e-38,
        1e-3,
        0.99999994,
        1.0000001,
        1.5,
        33.0,
        1e10,
        3e38,
        16_777_217.0,
        f32::INFINITY,
        f32::NAN,
    ];
    let specials: Vec<f32> = specials.into_iter().flat_map(|x| [x, -x]).collect();
    let mut state = 1u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let mut pairs: Vec<(f32, f32)> =
        specials.iter().flat_map(|&x| specials.iter().map(move |&y| (x, y))).collect();
    while pairs.len() < N {
        let (x, y) = (f32::from_bits(random()), f32::from_bits(random()));
        // Powers near one, of moderate exponents.
        let near = f32::from_bits(0x3f80_0000 + (random() >> 8) - (random() >> 8));
        let moderate = (random() >> 8) as f32 / 65536.0 - 128.0;
        pairs.push(
            [(x, y), (near, moderate), (x.abs(), moderate), (near, y)][random() as usize % 4],
        );
    }
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    for (op, expected) in
        [(BinaryOp::Power, f64::powf as fn(f64, f64) -> f64), (BinaryOp::Atan2, f64::atan2)]
    {
        for bytes in VECTOR_BYTES {
            let kernel = mapped(bytes, Mem::F32, 2, N, |b, args| binary(b, op, args[0], args[1]));
            let found = run(&kernel, &[&x, &y]);
            let mut worst = (0.0, (0.0, 0.0));
            for (&(x, y), found) in pairs.iter().zip(found) {
                let error = error(found, expected(x.into(), y.into()));
                if error > worst.0 {
                    worst = (error, (x, y));
                }
            }
            println!("{}: {:.3} at {:?}", op.name(), worst.0, worst.1);
            assert!(worst.0 <= 2.0, "{}: {} units at {:?}", op.name(), worst.0, worst.1);
        }
    }
}

/// Angles up to 2^39, the largest there is, and those nearest to multiples of π/2, where the reduction
/// cancels.
#[test]
fn functions_of_wide_angles() {
    const N: usize = 1 << 14;
    let mut angles: Vec<f64> = vec![0.0, f64::MAX, f64::INFINITY, f64::NAN];
    for turns in (1..2000i64).chain((11..60).map(|bits| 1 << bits)) {
        let near = turns as f64 * std::f64::consts::FRAC_PI_2;
        angles.extend([near.next_down(), near, near.next_up()]);
    }
    // A hair's breadth from a multiple of π/2: none of this type is nearer.
    angles.push(6_381_956_970_095_103.0 * 2f64.powi(797));
    let mut state = 1u64;
    while angles.len() < N {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let fraction = (state >> 11) as f64 * 2f64.powi(-53);
        let size = 2f64.powi((state % 64) as i32 - 24);
        angles.push(if state & 128 == 0 { fraction * size } else { -fraction * size });
    }
    // The C library's cosine is 8 units off at the angle nearest to a multiple of π/2.
    for (op, expected) in [
        (UnaryOp::Sin, libm::sin as fn(f64) -> f64),
        (UnaryOp::Cos, libm::cos),
        (UnaryOp::Tan, libm::tan),
    ] {
        let kernel = mapped(64, Mem::F64, 1, N, |b, x| unary(b, op, x[0]));
        for (&x, found) in angles.iter().zip(run_wide(&kernel, &angles)) {
            let expected = expected(x);
            if expected.is_nan() {
                assert!(found.is_nan(), "{op:?} of {x:e}: {found}");
                continue;
            }
            let unit = expected.abs().next_up() - expected.abs();
            let error = (found - expected).abs() / unit;
            assert!(error <= 1.0, "{op:?} of {x:e}: {found:e}, {error} units off {expected:e}");
        }
    }
}

/// Powers of two that are two factors give the bits that those by an instruction give.
#[test]
fn scaling_by_factors() {
    const N: usize = 1 << 14;
    let spread = |n: usize| (n as f64 - N as f64 / 2.0) * 0.1;
    let mut numbers: Vec<f64> = (0..N).map(spread).collect();
    numbers[..8].copy_from_slice(&[
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        1e-300,
        -745.0,
    ]);
    use UnaryOp::{Erf, Exp, Expm1, Logistic, Tanh};
    for op in [Erf, Exp, Expm1, Logistic, Tanh] {
        let [by_instruction, by_factors] = VECTOR_BYTES.map(|bytes| {
            let kernel = mapped(bytes, Mem::F64, 1, N, |b, x| unary(b, op, x[0]));
            run_wide(&kernel, &numbers)
        });
        for ((x, y), z) in numbers.iter().zip(by_instruction).zip(by_factors) {
            let same = y.to_bits() == z.to_bits() || y.is_nan() && z.is_nan();
            assert!(same, "{op:?} of {x:e}: {y:e} and {z:e}");
        }
    }
}

/// Without tables, too, these functions grow with their operand, up to 1 and no further.
#[test]
fn functions_that_level_off() {
    const N: usize = 1 << 16;
    for (op, bytes) in
        [UnaryOp::Tanh, UnaryOp::Erf].map(|op| VECTOR_BYTES.map(|b| (op, b))).concat()
    {
        let kernel = mapped(bytes, Mem::F32, 1, N, |b, x| unary(b, op, x[0]));
        let numbers: Vec<f32> = (0..N).map(|n| n as f32 * (10.0 / N as f32)).collect();
        let found = run(&kernel, &[&numbers]);
        let mirrored: Vec<f32> = numbers.iter().map(|x| -x).collect();
        let mirrored = run(&kernel, &[&mirrored]);
        assert_eq!(found[N - 1], 1.0);
        for n in 1..N {
            assert!(found[n] <= 1.0);
            assert!(found[n] >= found[n - 1].next_down().next_down(), "{op:?} of {}", numbers[n]);
            assert_eq!(found[n], -mirrored[n], "{op:?} of {}", numbers[n]);
        }
    }
}

#[test]
fn odd_functions_keep_the_sign_of_zero() {
    use UnaryOp::{Atan, Erf, Sin, Sinh, Tan, Tanh};
    for op in [Sin, Tan, Tanh, Sinh, Atan, Erf] {
        for bytes in VECTOR_BYTES {
            let kernel = mapped(bytes, Mem::F32, 1, LANES as usize, |b, x| unary(b, op, x[0]));
            for zero in [0.0f32, -0.0] {
                let found = run(&kernel, &[&[zero; LANES as usize]]);
                assert_eq!(found[0].to_bits(), zero.to_bits(), "{op:?}, {bytes} bytes");
            }
        }
    }
}

/// Inverse functions of complex numbers, which come as parts.
type Complex = fn(&mut Builder, &[Value]) -> ComplexParts;
const INVERSES: [(&str, Complex); 7] = [
    ("acos", |b, z| complex::acos(b, (z[0], z[1]))),
    ("acosh", |b, z| complex::acosh(b, (z[0], z[1]))),
    ("asin", |b, z| complex::asin(b, (z[0], z[1]))),
    ("asinh", |b, z| complex::asinh(b, (z[0], z[1]))),
    ("atan", |b, z| complex::atan(b, (z[0], z[1]))),
    ("atanh", |b, z| complex::atanh(b, (z[0], z[1]))),
    ("atan2", |b, z| complex::atan2(b, (z[0], z[1]), (z[2], z[3]))),
];

/// Both parts of a function for each row of operands' parts, in lanes of 32 or of 64 bits.
fn map_complex(wide: bool, f: Complex, rows: &[&[f64]]) -> Vec<[f64; 2]> {
    let n = rows.len().next_multiple_of(LANES as usize);
    let inputs: Vec<Vec<u8>> = (0..rows[0].len())
        .map(|part| {
            let padded = rows.iter().map(|row| row[part]).chain(std::iter::repeat(0.5)).take(n);
            match wide {
                true => padded.flat_map(f64::to_ne_bytes).collect(),
                false => padded.flat_map(|x| (x as f32).to_ne_bytes()).collect(),
            }
        })
        .collect();
    let mem = if wide { Mem::F64 } else { Mem::F32 };
    let [re, im] = [true, false].map(|real| -> Vec<f64> {
        let kernel = mapped(64, mem, inputs.len(), n, |b, z| {
            let (re, im) = f(b, z);
            if real { re } else { im }
        });
        let bytes = run_bytes(&kernel, &inputs, n);
        match wide {
            true => {
                bytes.chunks_exact(8).map(|x| f64::from_ne_bytes(x.try_into().unwrap())).collect()
            }
            false => {
                let number = |x: &[u8]| f32::from_ne_bytes(x.try_into().unwrap()).into();
                bytes.chunks_exact(4).map(number).collect()
            }
        }
    });
    re.into_iter().zip(im).take(rows.len()).map(|(re, im)| [re, im]).collect()
}

/// The rows of `functions.txt` in `crates/eval/tests/data`, which says where they are from, for a function
/// of complex numbers: parts of operands, then those of the result.
fn complex_rows(name: &str) -> Vec<Vec<f64>> {
    let table = include_str!("../../../eval/tests/data/functions.txt");
    let number = |word| match word {
        "nan" => f64::NAN,
        digits => f64::from_bits(u64::from_str_radix(&format!("{digits:0<16}"), 16).unwrap()),
    };
    let rows = table.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    // (Those of functions of real numbers have fewer numbers.)
    rows.map(|words| words.split(' ').map(number).collect())
        .filter(|row: &Vec<f64>| row.len() > 3)
        .collect()
}

/// Each part is a few units of its own last place off; what is special is exact.
#[test]
fn inverse_functions_of_complex_numbers() {
    for (name, f) in INVERSES {
        for wide in [true, false] {
            let mut rows = complex_rows(name);
            let single = |x: &f64| x.is_nan() || f64::from(*x as f32) == *x;
            rows.retain(|row| wide || row[..row.len() - 2].iter().all(single));
            assert!(rows.len() > 40, "{name}: {} rows", rows.len());
            let operands: Vec<&[f64]> = rows.iter().map(|row| &row[..row.len() - 2]).collect();
            let mut worst = 0f64;
            for (row, found) in rows.iter().zip(map_complex(wide, f, &operands)) {
                let (operands, expected) = row.split_at(row.len() - 2);
                // With NaN among them, signs of zeros and infinities are not specified.
                let vague = row.iter().any(|x| x.is_nan());
                for (&expected, found) in expected.iter().zip(found) {
                    let plain = |x: f64| if vague { x.abs() } else { x };
                    let (found, expected) = (plain(found), plain(expected));
                    let error = match wide {
                        true => wide_error(found, expected),
                        false => error(found as f32, expected),
                    };
                    worst = worst.max(error);
                    let bits = if wide { 64 } else { 32 };
                    assert!(
                        error <= 4.0,
                        "{name} of {operands:?}, {bits} bits: {found:e}, {error} units off {expected:e}"
                    );
                }
            }
            println!("{name}: {worst:.2} units");
        }
    }
}

/// [`error`] of an `f64`.
fn wide_error(found: f64, expected: f64) -> f64 {
    if found.is_nan() || expected.is_nan() {
        return if found.is_nan() && expected.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == expected && found.is_sign_negative() == expected.is_sign_negative() {
        return 0.0;
    }
    (found - expected).abs() / (expected.abs().next_up() - expected.abs())
}
