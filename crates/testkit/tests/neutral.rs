//! What changes nothing when it is folded: `BinaryOp::neutral`, and folds whose initial value is or
//! is not one, for every value of types of 8 bits and fewer and for special ones of the others.

use helio::ir::ops::BinaryOp;
use helio::ir::types::{ArrayShape, Native, Number};
use helio::ir::{Array, dispatch_type};
use helio::{ElementType, Literal, RunOptions, Subnormals};
use helio_testkit::engines::ENGINES;

const OPS: [BinaryOp; 7] = [
    BinaryOp::Add,
    BinaryOp::Multiply,
    BinaryOp::Maximum,
    BinaryOp::Minimum,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
];

/// Values of a type, as bits: all of narrow ones.
fn values(ty: ElementType) -> Vec<u128> {
    let bits = ty.bits();
    if ty.is_pred() {
        return vec![0, 1];
    }
    if bits <= 8 {
        return (0..1 << bits).collect();
    }
    let part = ty.real_part();
    let mut reals: Vec<u128> = if part.is_float() {
        let special =
            [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -1e-3];
        dispatch_type!(part, T => {
            special.map(|v| Native::to_bits(<T as Native>::from_number(Number::Float(v)))).to_vec()
        })
    } else {
        vec![0, 1, 2, 5]
    };
    let sign = 1 << (part.bits() - 1);
    // The least subnormal number or integer, the greatest bits, and what is next to the sign.
    reals.extend([1, sign, sign - 1, sign | 1, (sign << 1) - 1, (sign << 1) - 2]);
    if !ty.is_complex() {
        return reals;
    }
    let pairs = reals.iter().flat_map(|re| reals.iter().map(move |im| im << part.bits() | re));
    pairs.collect()
}

fn array(ty: ElementType, dims: &[usize], bits: &[u128]) -> Literal {
    let data = dispatch_type!(ty, T => {
        T::wrap(bits.iter().map(|&bits| <T as Native>::from_bits(bits)).collect())
    });
    Literal::Array(Array::from_data(ArrayShape::new(ty, dims).unwrap(), data).unwrap())
}

/// The elements of a result as bits, and whether each is NaN (in a part).
fn bits_of(literal: &Literal) -> Vec<(u128, bool)> {
    let array = literal.as_array().expect("an array");
    helio::ir::dispatch!(array.data(), values => {
        let is_nan = |number: Number| match number {
            Number::Float(v) => v.is_nan(),
            Number::Complex(v) => v.re.is_nan() || v.im.is_nan(),
            _ => false,
        };
        values.iter().map(|&v| (Native::to_bits(v), is_nan(v.to_number()))).collect()
    })
}

fn run(engine: usize, text: &str, args: &[Literal]) -> Option<Literal> {
    let module = helio::parse(text).and_then(helio::ir::verify).ok()?;
    let engine = &ENGINES[engine];
    // What is left out because it changes nothing flushes nothing either.
    let program = engine.compile_with(&module, Subnormals::Keep);
    let result = program.and_then(|it| engine.run_program(&it, args, &RunOptions::default()));
    Some(result.unwrap_or_else(|e| panic!("{}: {e}\n{text}", engine.name)))
}

#[test]
fn a_neutral_element_changes_no_value() {
    let mut checked = 0;
    for &ty in ElementType::ALL {
        let values = values(ty);
        let (name, count) = (ty.name(), values.len());
        for op in OPS {
            let text = format!(
                "ENTRY e {{\n  x = {name}[{count}] parameter(0)\n  n = {name}[] parameter(1)\n  \
                 b = {name}[{count}] broadcast(n), dimensions={{}}\n  \
                 l = {name}[{count}] {op}(b, x)\n  r = {name}[{count}] {op}(x, b)\n  \
                 ROOT t = ({name}[{count}], {name}[{count}]) tuple(l, r)\n}}",
                op = op.name()
            );
            let Some(neutral) = op.neutral(ty) else { continue };
            let args = [array(ty, &[count], &values), array(ty, &[], &[neutral])];
            let Some(found) = run(0, &text, &args) else {
                panic!("{op:?} of {name} is neutral with {neutral:x}, but is no operation");
            };
            let expected = bits_of(&args[0]);
            for found in found.as_tuple().expect("a tuple") {
                for (found, expected) in bits_of(found).iter().zip(&expected) {
                    let is_same = found.0 == expected.0 || found.1 && expected.1;
                    assert!(is_same, "{op:?} of {name}: {expected:x?} became {found:x?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 20_000, "{checked}");
}

/// Whether a neutral element is missed where one value has the property.
#[test]
fn there_is_a_neutral_element_wherever_one_value_is() {
    for &ty in ElementType::ALL.iter().filter(|ty| ty.bits() <= 8) {
        let (values, name) = (values(ty), ty.name());
        let count = values.len();
        for op in OPS {
            let text = format!(
                "ENTRY e {{\n  x = {name}[{count}] parameter(0)\n  \
                 a = {name}[{count},{count}] broadcast(x), dimensions={{0}}\n  \
                 b = {name}[{count},{count}] broadcast(x), dimensions={{1}}\n  \
                 ROOT r = {name}[{count},{count}] {}(a, b)\n}}",
                op.name()
            );
            let x = array(ty, &[count], &values);
            let Some(found) = run(0, &text, std::slice::from_ref(&x)) else { continue };
            let (found, expected) = (bits_of(&found), bits_of(&x));
            let is_neutral = |row: &[(u128, bool)]| {
                row.iter().zip(&expected).all(|(a, b)| a.0 == b.0 || a.1 && b.1)
            };
            let exists = found.chunks(count).any(is_neutral);
            assert_eq!(op.neutral(ty).is_some(), exists, "{op:?} of {name}");
        }
    }
}

/// Folds from every initial value, that are constants so that compilers know them.
fn folds(ty: ElementType, op: BinaryOp, inits: &[u128]) -> String {
    let name = ty.name();
    let mut text = format!(
        "HloModule folds\n\nf {{\n  a = {name}[] parameter(0)\n  b = {name}[] parameter(1)\n  \
         ROOT r = {name}[] {}(a, b)\n}}\n\nENTRY e {{\n  x = {name}[2,40] parameter(0)\n",
        op.name()
    );
    let (mut names, mut shapes) = (Vec::new(), Vec::new());
    for (i, &bits) in inits.iter().enumerate() {
        let value = helio::ir::text::print_literal(&array(ty, &[], &[bits]));
        text.push_str(&format!(
            "  i{i} = {name}[] constant({value})\n  \
             r{i} = {name}[2] reduce(x, i{i}), dimensions={{1}}, to_apply=f\n"
        ));
        names.push(format!("r{i}"));
        shapes.push(format!("{name}[2]"));
        if i % 16 == 0 {
            text.push_str(&format!(
                "  w{i} = {name}[2,39] reduce-window(x, i{i}), window={{size=1x2}}, to_apply=f\n  \
                 s{i} = {name}[2,40] reduce-window(x, i{i}), window={{size=1x40 pad=0_0x39_0}}, to_apply=f\n"
            ));
            names.extend([format!("w{i}"), format!("s{i}")]);
            shapes.extend([format!("{name}[2,39]"), format!("{name}[2,40]")]);
        }
    }
    text.push_str(&format!("  ROOT t = ({}) tuple({})\n}}\n", shapes.join(", "), names.join(", ")));
    text
}

#[test]
fn folds_keep_their_initial_value() {
    for &ty in ElementType::ALL {
        for op in OPS {
            let all = values(ty);
            // What is folded are copies of one value, and sums of more would be rounded: extremes of
            // all, others of what keeps the initial value as it is.
            let copies = match op {
                BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Xor => match op.neutral(ty) {
                    Some(neutral) => vec![neutral],
                    None => continue,
                },
                _ => vec![all[0], all[all.len() / 2]],
            };
            let inits: Vec<u128> = all.iter().copied().step_by(all.len().div_ceil(64)).collect();
            let inits = if all.len() <= 256 && op != BinaryOp::Multiply { &all } else { &inits };
            let text = folds(ty, op, inits);
            for copy in copies {
                let x = array(ty, &[2, 40], &[copy; 80]);
                let Some(expected) = run(0, &text, std::slice::from_ref(&x)) else { break };
                // At levels 2 and 3.
                for engine in [2, ENGINES.len() - 1] {
                    let found = run(engine, &text, std::slice::from_ref(&x)).expect("it runs");
                    let pairs = found.as_tuple().unwrap().iter().zip(expected.as_tuple().unwrap());
                    for (i, (found, expected)) in pairs.enumerate() {
                        for (found, expected) in bits_of(found).iter().zip(bits_of(expected)) {
                            let is_same = found.0 == expected.0 || found.1 && expected.1;
                            let (name, on) = (ty.name(), ENGINES[engine].name);
                            assert!(
                                is_same,
                                "{op:?} of {name} on {on}, result {i}: {found:x?}, not {expected:x?}"
                            );
                        }
                    }
                }
            }
        }
    }
}
