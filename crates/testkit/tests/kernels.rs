//! Element-wise operations in kernels, run by the tile machine, against the interpreter: every
//! operation, on every type, at special and at random values.

use std::fmt::Write;

use helio_codegen::elementwise::{Elem, apply, lane_bytes, load, store, supports};
use helio_codegen::kernel::{Addr, Buf, Builder, Kernel, Lane, Ty};
use helio_codegen::tile::{self, FunctionArg};
use helio_ir::ops::{Accepts, Direction};
use helio_ir::text::parse;
use helio_ir::types::C128;
use helio_ir::{
    Array, ArrayShape, BinaryOp, ElementType, Literal, Module, Native, Number, Op, UnaryOp,
    dispatch_type, verify,
};
use helio_testkit::tolerance::Tolerance;

/// The types that kernels hold.
fn types() -> impl Iterator<Item = ElementType> {
    ElementType::ALL.iter().copied().filter(|&ty| lane_bytes(ty).is_some())
}

/// Bit patterns of a type: special values, then random ones, small and large.
fn samples(ty: ElementType, count: usize, seed: u64) -> Vec<u128> {
    let mut random = oorandom::Rand64::new(seed.into());
    let mut values: Vec<u128> = specials(ty);
    while values.len() < count {
        let bits = u128::from(random.rand_u64()) << 64 | u128::from(random.rand_u64());
        let uniform = 4.0 * random.rand_float() - 2.0;
        let scale = 2f64.powi(random.rand_range(0..12) as i32);
        let number = match random.rand_range(0..2) {
            0 if ty.is_complex() => {
                let other = 4.0 * random.rand_float() - 2.0;
                Some(Number::Complex(C128::new(uniform, other * scale)))
            }
            0 => Some(Number::Float(uniform * scale)),
            _ => None,
        };
        values.push(match number {
            Some(number) => {
                dispatch_type!(ty, T => Native::to_bits(<T as Native>::from_number(number)))
            }
            None => bits & (u128::MAX >> (128 - ty.bits())),
        });
    }
    values.truncate(count);
    values
}

fn specials(ty: ElementType) -> Vec<u128> {
    let mask = u128::MAX >> (128 - ty.bits());
    if ty.is_pred() {
        return vec![0, 1];
    }
    if ty.is_complex() {
        let parts: Vec<u128> = specials(ty.real_part()).into_iter().step_by(3).collect();
        let bits = ty.real_part().bits();
        return parts.iter().flat_map(|re| parts.iter().map(move |im| re | im << bits)).collect();
    }
    if ty.is_integer() {
        let sign = 1 << (ty.bits() - 1);
        let low = [0, 1, 2, 3, 5, 7].into_iter().flat_map(|x: u128| [x, x.wrapping_neg()]);
        return low.chain([sign, sign - 1, sign + 1]).map(|x| x & mask).collect();
    }
    let numbers = [
        0.0,
        1.0,
        0.5,
        0.75,
        1.5,
        2.0,
        2.5,
        3.0,
        3.5,
        10.0,
        127.5,
        128.0,
        255.5,
        1e3,
        32768.0,
        65504.0,
        65520.0,
        1e5,
        2147483648.0,
        4294967296.0,
        9.223372036854776e18,
        1.8446744073709552e19,
        1e30,
        1e300,
        1e-3,
        1e-7,
        6e-8,
        1e-30,
        1e-40,
        1e-45,
        1e-300,
        1e-310,
        f64::INFINITY,
        f64::NAN,
        0.49999997,
        std::f64::consts::PI,
        std::f64::consts::FRAC_PI_2,
        f64::MAX,
        f32::MAX.into(),
    ];
    let both = numbers.into_iter().flat_map(|x| [x, -x]);
    let bits =
        |x| dispatch_type!(ty, T => Native::to_bits(<T as Native>::from_number(Number::Float(x))));
    both.map(bits).collect()
}

fn array(ty: ElementType, bits: &[u128]) -> Array {
    let data = dispatch_type!(ty, T => T::wrap(bits.iter().map(|&x| <T as Native>::from_bits(x)).collect()));
    Array::from_data(ArrayShape::new(ty, [bits.len()]).unwrap(), data).unwrap()
}

/// A module of one operation on arrays of these types.
fn module(
    op: &str,
    operands: &[ElementType],
    result: ElementType,
    n: usize,
    attrs: &str,
) -> Module {
    let mut text = String::from("HloModule m\nENTRY e {\n");
    let names: Vec<String> = (0..operands.len()).map(|i| format!("x{i}")).collect();
    for (i, ty) in operands.iter().enumerate() {
        writeln!(text, "  x{i} = {ty}[{n}] parameter({i})").unwrap();
    }
    write!(text, "  ROOT r = {result}[{n}] {op}({}){attrs}\n}}\n", names.join(", ")).unwrap();
    parse(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

/// A kernel of one operation on `n` elements. The last operand may be a number that the kernel knows.
fn kernel(
    op: &Op,
    operands: &[ElementType],
    known: Option<i64>,
    result: ElementType,
    n: usize,
) -> Kernel {
    let wide = operands.iter().chain([&result]).any(|&ty| lane_bytes(ty) == Some(8));
    let mut b = Builder::new(if wide { 8 } else { 16 });
    let step = b.lanes() as i64;
    b.set_range(n as i64, step);
    let size = |ty: ElementType| ty.size_bytes() as i64;
    let at =
        |buf: Buf, i, size: i64| Addr { buf, offset: 0, terms: vec![(i, size)], lane_stride: size };
    let read = &operands[..operands.len() - usize::from(known.is_some())];
    let inputs: Vec<Buf> =
        read.iter().map(|ty| b.param(n * ty.size_bytes(), true, false)).collect();
    let output = b.param(n * result.size_bytes(), false, true);
    let (begin, end) = (b.begin(), b.end());
    b.for_loop(begin, end, step, &[], |b, i, _| {
        let mask = Some(b.mask_below(i, end));
        let mut args: Vec<_> = read
            .iter()
            .zip(&inputs)
            .map(|(&ty, &buf)| (ty, load(b, ty, at(buf, i, size(ty)), mask)))
            .collect();
        args.extend(known.map(|number| {
            let ty = operands[read.len()];
            let lane = if lane_bytes(ty) == Some(8) { Lane::I64 } else { Lane::I32 };
            (ty, Elem::Vector(b.int(lane, number)))
        }));
        let value = apply(b, op, &args, result);
        store(b, result, value, at(output, i, size(result)), mask);
        vec![]
    });
    let kernel = b.finish();
    if !wide {
        let narrow = |ty: &Ty| !matches!(ty, Ty::Vector(Lane::I64 | Lane::F64));
        assert!(kernel.types.iter().all(narrow), "{op:?} of {operands:?} takes wide lanes");
    }
    kernel
}

/// What a kernel makes of one operation on these operands, and what the interpreter does; nothing if
/// kernels do not support it.
fn results(
    op: &str,
    attrs: &str,
    operands: &[&Array],
    known: Option<i64>,
    result: ElementType,
) -> Option<(Array, Array)> {
    let n = operands[0].data().len();
    let types: Vec<ElementType> = operands.iter().map(|x| x.element()).collect();
    let module = module(op, &types, result, n, attrs);
    let entry = module.entry();
    let hlo = entry.instr(entry.root()).op.clone();
    if !supports(&hlo, &types, result) {
        return None;
    }
    let read = &operands[..operands.len() - usize::from(known.is_some())];
    let bytes: Vec<_> = read.iter().map(|x| x.to_bytes()).collect();
    let mut out = vec![0; n * result.size_bytes()];
    let mut args: Vec<FunctionArg<'_>> =
        bytes.iter().map(|bytes| FunctionArg::Read(bytes)).collect();
    args.push(FunctionArg::Write(&mut out));
    tile::run(&kernel(&hlo, &types, known, result, n), &mut args, 0, n as i64).unwrap();
    let found = Array::from_bytes(ArrayShape::new(result, [n]).unwrap(), &out).unwrap();
    let literals: Vec<Literal> = operands.iter().map(|&x| x.clone().into()).collect();
    let expected =
        helio_eval::evaluate(&verify(module).unwrap(), &literals, &Default::default()).unwrap();
    Some((found, expected.as_array().unwrap().clone()))
}

/// Compares one operation on these operands; false if kernels do not support it.
fn check(
    op: &str,
    attrs: &str,
    operands: &[&Array],
    result: ElementType,
    tolerance: Tolerance,
) -> bool {
    check_with(op, attrs, operands, None, result, tolerance)
}

/// As [`check`], of an operation whose last operand the kernel knows, if there is a number for it.
fn check_with(
    op: &str,
    attrs: &str,
    operands: &[&Array],
    known: Option<i64>,
    result: ElementType,
    tolerance: Tolerance,
) -> bool {
    let Some((found, expected)) = results(op, attrs, operands, known, result) else {
        return false;
    };
    let types: Vec<ElementType> = operands.iter().map(|x| x.element()).collect();
    for i in 0..found.data().len() {
        let one = |array: &Array| Literal::from(self::array(array.element(), &[array.bits(i)]));
        let outcome = match (found.number(i), expected.number(i)) {
            (Number::Complex(x), Number::Complex(y)) if tolerance != Tolerance::Exact => {
                compare_complex(x, y, result, 8.0)
            }
            _ => tolerance.compare(&one(&found), &one(&expected)),
        };
        if let Err(error) = outcome {
            let inputs: Vec<Number> = operands.iter().map(|x| x.number(i)).collect();
            panic!("{op}{attrs} of {types:?} to {result} at {inputs:?}: {error}");
        }
    }
    true
}

/// A complex number may be off by some units of its magnitude's last place; infinite and NaN parts
/// are those of the other one.
fn compare_complex(found: C128, expected: C128, ty: ElementType, units: f64) -> Result<(), String> {
    let (unit, least, most) = match ty {
        ElementType::C64 => (f64::from(f32::EPSILON), 1e-44, f64::from(f32::MAX)),
        _ => (f64::EPSILON, 1e-322, f64::MAX),
    };
    let size = expected.re.abs().max(expected.im.abs()).min(most);
    let close = |x: f64, y: f64| {
        let same = x == y || (x.is_nan() && y.is_nan());
        // What is rounded to infinity may have been just below.
        let at_limit = x.abs().min(y.abs()) > 0.999_99 * most;
        same || at_limit || (x - y).abs() <= units * unit * size + least
    };
    match close(found.re, expected.re) && close(found.im, expected.im) {
        true => Ok(()),
        false => Err(format!("found {found:?}, expected {expected:?}")),
    }
}

/// Samples of two operands: all pairs of special values, then random pairs.
fn pairs(x: ElementType, y: ElementType, count: usize) -> (Array, Array) {
    let (xs, ys) = (specials(x), specials(y));
    let mut pairs: Vec<(u128, u128)> =
        xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))).collect();
    if pairs.len() > count {
        let every = pairs.len() / count + 1;
        pairs = pairs.into_iter().step_by(every).collect();
    }
    pairs.extend(samples(x, count, 7).into_iter().zip(samples(y, count, 8)));
    let (xs, ys): (Vec<u128>, Vec<u128>) = pairs.into_iter().unzip();
    (array(x, &xs), array(y, &ys))
}

/// What is exact, and how far the rest may be off.
fn tolerance(exact: bool, ty: ElementType) -> Tolerance {
    match ty {
        _ if exact => Tolerance::Exact,
        ty if ty.bits() <= 16 => Tolerance::Ulp(1),
        _ => Tolerance::Ulp(2),
    }
}

#[test]
fn operations_of_one_operand() {
    use UnaryOp::{
        Abs, Ceil, Clz, Floor, Imag, IsFinite, Negate, Not, Popcnt, Real, RoundNearestAfz,
        RoundNearestEven, Sign, Sqrt,
    };
    let mut missing = String::new();
    for ty in types() {
        let count = if ty.bits() <= 16 { 1 << ty.bits() } else { 20_000 };
        let bits: Vec<u128> = if ty.bits() <= 16 && !ty.is_pred() {
            (0..count as u128).collect()
        } else {
            samples(ty, count, 1)
        };
        let x = array(ty, &bits);
        for &op in UnaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
            let result = op.result_rule().apply(ty).unwrap();
            let exact = matches!(op, Abs | Ceil | Clz | Floor | Imag | IsFinite | Negate | Not)
                || matches!(op, Popcnt | Real | RoundNearestAfz | RoundNearestEven | Sign | Sqrt);
            let exact = exact && !(ty.is_complex() && matches!(op, Abs | Sign | Sqrt));
            if !check(op.name(), "", &[&x], result, tolerance(exact, ty)) {
                write!(missing, " {}({ty})", op.name()).unwrap();
            }
        }
    }
    println!("not in kernels:{missing}");
}

#[test]
fn operations_of_two_operands() {
    let mut missing = String::new();
    for ty in types() {
        let (x, y) = pairs(ty, ty, 6000);
        for &op in BinaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
            let result = op.result_rule().apply(ty).unwrap();
            let rounded = matches!(op, BinaryOp::Atan2 | BinaryOp::Power) && !ty.is_integer()
                || op == BinaryOp::Divide && ty.is_complex();
            let exact = !rounded;
            let tolerance = match (op, ty) {
                // Products are rounded before they are added.
                (BinaryOp::Multiply, ElementType::C64) => continue,
                // Of most numbers, powers have an angle that rounding alone decides.
                (BinaryOp::Power, ElementType::C64 | ElementType::C128) => continue,
                // Products that underflow may decide on which side of a cut a number lies.
                (BinaryOp::Atan2, ElementType::C64 | ElementType::C128) => continue,
                _ => tolerance(exact, ty),
            };
            if !check(op.name(), "", &[&x, &y], result, tolerance) {
                write!(missing, " {}({ty})", op.name()).unwrap();
            }
        }
    }
    println!("not in kernels:{missing}");
}

/// Divisors that are known become shifts, or products with their reciprocals: all numbers of 8 bits by all, and
/// numbers around multiples of others, where quotients change.
#[test]
fn quotients_by_known_divisors() {
    for ty in types().filter(|ty| ty.is_integer() && !ty.is_pred()) {
        let mask = u128::MAX >> (128 - ty.bits());
        let number = |bits: u128| match array(ty, &[bits]).number(0) {
            Number::Int(number) => number,
            number => panic!("{number:?} of an integer type"),
        };
        let divisors: Vec<u128> = if ty.bits() <= 8 {
            (0..=mask).collect()
        } else {
            let powers = (0..ty.bits()).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
            let all = powers.chain([10, 100, 641, 1000, 1_000_000_007]).chain(samples(ty, 120, 5));
            all.flat_map(|x: u128| [x & mask, x.wrapping_neg() & mask]).collect()
        };
        for divisor in divisors {
            let dividends: Vec<u128> = if ty.bits() <= 8 {
                (0..=mask).collect()
            } else {
                let times = samples(ty, 60, 6).into_iter().flat_map(|x| {
                    let multiple = x.wrapping_mul(divisor);
                    let below = (mask >> 1) - (mask >> 1) % divisor.max(1);
                    [
                        x,
                        multiple,
                        multiple.wrapping_sub(1),
                        below,
                        below.wrapping_sub(1),
                        below + divisor,
                    ]
                });
                times.map(|x| x & mask).chain(specials(ty)).collect()
            };
            let known = number(divisor) as i64;
            let x = array(ty, &dividends);
            let y = array(ty, &vec![divisor; dividends.len()]);
            for op in [BinaryOp::Divide, BinaryOp::Remainder] {
                let exact = Tolerance::Exact;
                assert!(check_with(op.name(), "", &[&x, &y], Some(known), ty, exact), "{ty}");
            }
        }
    }
}

/// The result turns by as many units as the angle has, and its magnitude is as exact as `|x|` is.
#[test]
fn powers_of_complex_numbers() {
    for ty in [ElementType::C64, ElementType::C128] {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32) as f64 / 2f64.powi(31) - 1.0
        };
        let axis = [0.0, 1.0, -1.0, 2.0, -0.5, 3.0, 1e-30, -1e30, f64::INFINITY, f64::NEG_INFINITY];
        let mut pairs: Vec<(C128, C128)> = Vec::new();
        for x in axis.into_iter().chain([f64::NAN, -0.0]) {
            let real = |y: f64| (C128::new(x, 0.0), C128::new(y, 0.0));
            pairs.extend(axis.into_iter().chain([f64::NAN, -0.0, 0.5, 10.0]).map(real));
        }
        for _ in 0..20_000 {
            let size = 2f64.powf(20.0 * random());
            let x = C128::new(size * random(), size * random());
            let y = C128::new(4.0 * random(), 4.0 * random());
            let y = if random() > 0.5 { C128::new(y.re, 0.0) } else { y };
            pairs.push((x, y));
        }
        let of = |number: C128| {
            let number = Number::Complex(number);
            dispatch_type!(ty, T => Native::to_bits(<T as Native>::from_number(number)))
        };
        let (xs, ys): (Vec<u128>, Vec<u128>) = pairs.iter().map(|&(x, y)| (of(x), of(y))).unzip();
        let (xs, ys) = (array(ty, &xs), array(ty, &ys));
        let (found, expected) = results("power", "", &[&xs, &ys], None, ty).unwrap();
        for (i, (x, y)) in pairs.into_iter().enumerate() {
            let (Number::Complex(found), Number::Complex(expected)) =
                (found.number(i), expected.number(i))
            else {
                panic!("a power of complex numbers that is none");
            };
            let turn = (y.re * x.arg()).abs() + (y.im * x.norm().ln()).abs();
            // For `c128` the interpreter rounds the exponent.
            let rounded = if ty == ElementType::C128 { y.re * x.norm().ln() } else { 0.0 };
            let all = y.norm() + 2.0 * turn + 2.0 * rounded.abs();
            let units = 8.0 + if all.is_finite() { all } else { 0.0 };
            if let Err(error) = compare_complex(found, expected, ty, units) {
                panic!("{x} to the {y} in {ty}: {error}");
            }
        }
    }
}

#[test]
fn angles_of_complex_points() {
    for ty in [ElementType::C64, ElementType::C128] {
        let axis = [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 3.0, f64::INFINITY, f64::NAN];
        let numbers = || axis.iter().flat_map(|&re| axis.iter().map(move |&im| C128::new(re, im)));
        let mut pairs: Vec<(C128, C128)> =
            numbers().flat_map(|y| numbers().map(move |x| (y, x))).collect();
        let mut random = oorandom::Rand64::new(3);
        for _ in 0..20_000 {
            let mut part = || {
                let size = 2f64.powf(40.0 * random.rand_float() - 20.0);
                if random.rand_range(0..2) == 0 { size } else { -size }
            };
            let (y, x) = (C128::new(part(), part()), C128::new(part(), part()));
            // Next to a pole, some of them.
            let turned = C128::new(x.im, -x.re) + y * 1e-6;
            pairs.push(if random.rand_range(0..4) == 0 { (turned, x) } else { (y, x) });
        }
        let of = |number: C128| {
            let number = Number::Complex(number);
            dispatch_type!(ty, T => Native::to_bits(<T as Native>::from_number(number)))
        };
        let (ys, xs): (Vec<u128>, Vec<u128>) = pairs.iter().map(|&(y, x)| (of(y), of(x))).unzip();
        assert!(check("atan2", "", &[&array(ty, &ys), &array(ty, &xs)], ty, Tolerance::Ulp(2)));
    }
}

/// Each part by units of its own last place, over all exponents, next to the branch points and on the axes.
#[test]
fn inverse_functions_of_complex_numbers() {
    use UnaryOp::{Acos, Acosh, Asin, Asinh, Atan, Atanh};
    for ty in [ElementType::C64, ElementType::C128] {
        let mut random = oorandom::Rand64::new(9);
        let wide = ty == ElementType::C128;
        let mut numbers: Vec<u128> = specials(ty);
        while numbers.len() < 40_000 {
            let mut part = || {
                let sign = if random.rand_range(0..2) == 0 { 1.0 } else { -1.0 };
                let (low, high) = if wide { (-1074.0, 1023.9) } else { (-149.0, 127.9) };
                let bits = if wide { 55.0 } else { 26.0 };
                sign * match random.rand_range(0..5) {
                    0 => 2f64.powf(low + (high - low) * random.rand_float()),
                    1 => 2f64.powf(8.0 * random.rand_float() - 4.0),
                    2 => 1.0 + 2f64.powf(-bits * random.rand_float()),
                    3 => 1.0 - 2f64.powf(-bits * random.rand_float()),
                    _ => f64::from(random.rand_range(0..2) as u32),
                }
            };
            let number = Number::Complex(C128::new(part(), part()));
            numbers
                .push(dispatch_type!(ty, T => Native::to_bits(<T as Native>::from_number(number))));
        }
        let x = array(ty, &numbers);
        for op in [Acos, Acosh, Asin, Asinh, Atan, Atanh] {
            let (found, expected) = results(op.name(), "", &[&x], None, ty).unwrap();
            let parts = |array: &Array, i| match array.number(i) {
                Number::Complex(z) => [z.re, z.im],
                other => panic!("{other:?} of a complex type"),
            };
            for i in 0..numbers.len() {
                let (operand, found, expected) =
                    (parts(&x, i), parts(&found, i), parts(&expected, i));
                let vague = operand.iter().chain(&expected).any(|x| x.is_nan());
                for (found, expected) in found.into_iter().zip(expected) {
                    let same = found == expected || found.is_nan() && expected.is_nan();
                    let same =
                        same && (vague || found.is_sign_negative() == expected.is_sign_negative());
                    let next = if wide {
                        expected.abs().next_up()
                    } else {
                        (expected.abs() as f32).next_up().into()
                    };
                    let close = (found - expected).abs() <= 6.0 * (next - expected.abs());
                    assert!(
                        same || close && found != expected,
                        "{op:?} of {operand:?} in {ty}: {found:e}, not {expected:e}"
                    );
                }
            }
        }
    }
}

/// All numbers of `f8e8m0fnu` and all pairs of them, and what lies around those where another power is nearer.
#[test]
fn powers_of_two() {
    let ty = ElementType::F8E8M0FNU;
    let exact = Tolerance::Exact;
    let (xs, ys): (Vec<u128>, Vec<u128>) = (0..1 << 16).map(|i| (i & 255, i >> 8)).unzip();
    let (x, y) = (array(ty, &xs), array(ty, &ys));
    let one = array(ty, &(0..256).collect::<Vec<_>>());
    for &op in UnaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
        let result = op.result_rule().apply(ty).unwrap();
        assert!(check(op.name(), "", &[&one], result, exact), "{op:?}");
    }
    for &op in BinaryOp::ALL.iter().filter(|op| op.accepts().includes(ty)) {
        let result = op.result_rule().apply(ty).unwrap();
        assert!(check(op.name(), "", &[&x, &y], result, exact), "{op:?}");
    }
    for direction in Direction::ALL {
        for order in ["", ", type=TOTALORDER"] {
            let attrs = format!(", direction={}{order}", direction.word());
            assert!(check("compare", &attrs, &[&x, &y], ElementType::Pred, exact));
        }
    }
    let z = array(ty, &xs.iter().rev().map(|x| x * 97 % 256).collect::<Vec<_>>());
    assert!(check("clamp", "", &[&x, &z, &y], ty, exact));
    for from in types() {
        let mut bits = match from.bits() {
            ..=16 if !from.is_pred() => (0..1 << from.bits()).collect(),
            _ => samples(from, 1000, 3),
        };
        for exponent in -1074..1024 {
            let halves = [1.0, 1.5, 1.5f64.next_down(), 1.5 - f64::from(f32::EPSILON), 1.75];
            for number in halves.map(|half| half * 2f64.powi(exponent)) {
                let number = match from {
                    from if from.is_complex() => Number::Complex(C128::new(number, 1.0)),
                    from if from.is_integer() || from.is_pred() => {
                        Number::Int((number.min(1e37)) as i128)
                    }
                    _ => Number::Float(number),
                };
                bits.push(
                    dispatch_type!(from, T => Native::to_bits(<T as Native>::from_number(number))),
                );
            }
        }
        assert!(check("convert", "", &[&array(from, &bits)], ty, exact), "{from}");
    }
}

#[test]
fn comparisons() {
    for ty in types() {
        let (x, y) = pairs(ty, ty, 6000);
        for direction in Direction::ALL {
            let ordered = !matches!(direction, Direction::Eq | Direction::Ne);
            if ty.is_complex() && ordered {
                continue;
            }
            let attrs = format!(", direction={}", direction.word());
            let pred = ElementType::Pred;
            assert!(check("compare", &attrs, &[&x, &y], pred, Tolerance::Exact));
            if Accepts::Float.includes(ty) {
                let attrs = format!("{attrs}, type=TOTALORDER");
                assert!(check("compare", &attrs, &[&x, &y], pred, Tolerance::Exact));
            }
        }
    }
}

#[test]
fn conversions() {
    for from in types() {
        let bits = match from.bits() {
            8 if !from.is_pred() => (0..1 << 8).collect(),
            _ => samples(from, 20_000, 3),
        };
        let x = array(from, &bits);
        for to in types() {
            assert!(check("convert", "", &[&x], to, Tolerance::Exact), "{from} to {to}");
            let same = from.bits() == to.bits() && from.is_complex() == to.is_complex();
            let half = |ty| ty == ElementType::F16;
            if same {
                let supported = check("bitcast-convert", "", &[&x], to, Tolerance::Exact);
                assert!(supported || half(from), "bitcast {from} to {to}");
            }
        }
    }
}

#[test]
fn choices() {
    for ty in types() {
        let (x, y) = pairs(ty, ty, 2000);
        let n = x.data().len();
        let pred = array(
            ElementType::Pred,
            &samples(ElementType::Pred, n, 4).iter().map(|x| x & 1).collect::<Vec<_>>(),
        );
        assert!(check("select", "", &[&pred, &x, &y], ty, Tolerance::Exact));
        if Accepts::RealOrPred.includes(ty) && !ty.is_pred() {
            let z = array(ty, &samples(ty, n, 5));
            assert!(check("clamp", "", &[&x, &z, &y], ty, Tolerance::Exact));
        }
    }
}

#[test]
fn precision() {
    for ty in types().filter(|ty| ty.is_float()) {
        let bits =
            if ty.bits() <= 16 { (0..1 << ty.bits()).collect() } else { samples(ty, 20_000, 6) };
        let x = array(ty, &bits);
        for (exponent, mantissa) in
            [(5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (2, 1), (8, 0), (1, 2), (40, 99)]
        {
            let attrs = format!(", exponent_bits={exponent}, mantissa_bits={mantissa}");
            assert!(check("reduce-precision", &attrs, &[&x], ty, Tolerance::Exact), "{ty} {attrs}");
        }
    }
}
