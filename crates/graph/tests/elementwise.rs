//! Every element-wise function on the recorded edge cases.
//!
//! Where recorded results are defects, or deliberately not followed, `departure` names the reason; a
//! reason that no case needs is an error, so the list stays short and true. There the result must be
//! that of a reference in `f64`.

mod common;

use std::collections::BTreeSet;
use std::f64::consts::{PI, SQRT_2};

use common::{array, call, cases, dtype, numbers};
use helio::ir::types::{BF16, F16};
use helio_graph::{Array, ElementType, Gelu, Graph, Tensor};
use serde_json::Value;

fn unary(op: &str, approximate: Option<&str>, x: &Tensor) -> Tensor {
    match op {
        "abs" => x.abs(),
        "acos" => x.acos(),
        "atanh" => x.atanh(),
        "ceil" => x.ceil(),
        "cos" => x.cos(),
        "erf" => x.erf(),
        "exp" => x.exp(),
        "floor" => x.floor(),
        "gelu" => x.gelu_with(match approximate {
            Some("tanh") => Gelu::Tanh,
            Some("quick") => Gelu::Quick,
            _ => Gelu::None,
        }),
        "is_inf" => x.is_inf(),
        "is_nan" => x.is_nan(),
        "log" => x.log(),
        "log1p" => x.log1p(),
        "logical_not" => x.logical_not(),
        "negate" => x.negate(),
        "relu" => x.relu(),
        // What was recorded breaks ties to even; the specification has both.
        "round" => x.roundeven(),
        "rsqrt" => x.rsqrt(),
        "sigmoid" => x.sigmoid(),
        "silu" => x.silu(),
        "sin" => x.sin(),
        "sqrt" => x.sqrt(),
        "tanh" => x.tanh(),
        "trunc" => x.trunc(),
        other => panic!("no function is called {other}"),
    }
}

fn binary(op: &str, x: &Tensor, y: &Tensor) -> Tensor {
    match op {
        "add" => x.add(y),
        "sub" => x.sub(y),
        "mul" => x.mul(y),
        "div" => x.div(y),
        "floor_div" => x.floor_div(y),
        "mod" => x.modulo(y),
        "max" => x.maximum(y),
        "min" => x.minimum(y),
        "pow" => x.pow(y),
        "equal" => x.equal(y),
        "not_equal" => x.not_equal(y),
        "greater" => x.greater(y),
        "greater_equal" => x.greater_equal(y),
        "logical_and" => x.logical_and(y),
        "logical_or" => x.logical_or(y),
        "logical_xor" => x.logical_xor(y),
        other => panic!("no function is called {other}"),
    }
}

/// Why a recorded result is not followed; `x` and `y` are the operands (`y` is 0 for functions of
/// one), `ours` and `recorded` the results.
fn departure(
    op: &str,
    of: ElementType,
    [x, y]: [f64; 2],
    ours: f64,
    recorded: f64,
) -> Option<&'static str> {
    let subnormal = |v: f64| {
        let least = match of {
            ElementType::F64 => f64::MIN_POSITIVE,
            ElementType::F32 | ElementType::BF16 => f64::from(f32::MIN_POSITIVE),
            _ => return false,
        };
        // Intermediate results are flushed, too.
        v != 0.0 && v.abs() < 2.0 * least
    };
    let nan_lost = ours.is_nan() && !recorded.is_nan();
    Some(match op {
        _ if [x, y, ours].into_iter().any(subnormal) => "subnormal numbers are flushed to zero",
        "acos" if nan_lost && x.abs() > 1.0 => "acos clamps its argument",
        "max" | "min" | "relu" | "sigmoid" | "tanh" | "exp" | "acos" | "pow" if nan_lost => {
            "NaN is lost"
        }
        "not_equal" if x.is_nan() || y.is_nan() => "not_equal is ordered",
        "exp" if x > 88.0 => "exp saturates",
        "silu" if x < -80.0 => "exp saturates",
        "tanh" if of == ElementType::F16 || x.abs() > 3.0 => "tanh of narrow floats is wrong",
        "gelu" | "silu" if x == f64::NEG_INFINITY => "gelu and silu of -inf are NaN",
        "gelu" if x < -2.0 => "gelu loses its digits for negative numbers",
        "gelu" if of == ElementType::F16 && x < 1e-7 => "gelu rounds the least f16 twice",
        "pow" if x == f64::NEG_INFINITY => "pow of negative infinity is NaN",
        "pow" if (y * x.abs().ln()).abs() > 4.0 => "pow is wrong for large logarithms",
        "mod" if y.is_infinite() || x.is_infinite() => "mod of infinities",
        "mod" if (x / y).abs() > 1e3 => "mod of large by small numbers is out of range",
        "floor_div" if y.is_infinite() || x.is_infinite() => "floor_div of infinities",
        "floor_div" if (x / y).abs() < 4e-8 => "floor_div rounds small quotients to zero first",
        _ => return None,
    })
}

const DEPARTURES: [&str; 15] = [
    "subnormal numbers are flushed to zero",
    "acos clamps its argument",
    "NaN is lost",
    "not_equal is ordered",
    "exp saturates",
    "tanh of narrow floats is wrong",
    "gelu and silu of -inf are NaN",
    "gelu loses its digits for negative numbers",
    "mod of infinities",
    "mod of large by small numbers is out of range",
    "floor_div of infinities",
    "gelu rounds the least f16 twice",
    "pow of negative infinity is NaN",
    "pow is wrong for large logarithms",
    "floor_div rounds small quotients to zero first",
];

/// What IEEE arithmetic and the standard library say.
fn reference(op: &str, approximate: Option<&str>, [x, y]: [f64; 2]) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    // Without the product of infinity and 0.
    let times = |x: f64, part: f64| if part == 0.0 { 0.0 } else { x * part };
    let floor_div = |x: f64, y: f64| {
        // The exact quotient may be an integer's neighbour.
        let remainder = x % y;
        let down = remainder != 0.0 && (remainder < 0.0) != (y < 0.0);
        (x - remainder) / y - f64::from(u8::from(down))
    };
    match op {
        "abs" => x.abs(),
        "acos" => x.acos(),
        "atanh" => x.atanh(),
        "ceil" => x.ceil(),
        "cos" => x.cos(),
        "erf" => libm::erf(x),
        "exp" => x.exp(),
        "floor" => x.floor(),
        "gelu" => match approximate {
            Some("tanh") => times(x, sigmoid(2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x))),
            Some("quick") => times(x, sigmoid(1.702 * x)),
            _ => times(x, 0.5 * libm::erfc(-x / SQRT_2)),
        },
        "log" => x.ln(),
        "log1p" => x.ln_1p(),
        "negate" => -x,
        "relu" => {
            if x.is_nan() {
                x
            } else {
                x.max(0.0)
            }
        }
        "round" => x.round_ties_even(),
        "rsqrt" => 1.0 / x.sqrt(),
        "sigmoid" => sigmoid(x),
        "silu" => times(x, sigmoid(x)),
        "sin" => x.sin(),
        "sqrt" => x.sqrt(),
        "tanh" => x.tanh(),
        "trunc" => x.trunc(),
        "add" => x + y,
        "sub" => x - y,
        "mul" => x * y,
        "div" => x / y,
        "floor_div" if y == 0.0 || x.is_infinite() => x / y,
        "floor_div" if y.is_infinite() => {
            if x != 0.0 && (x < 0.0) != (y < 0.0) {
                -1.0
            } else {
                0.0
            }
        }
        "floor_div" => floor_div(x, y),
        "mod" => match x % y {
            remainder if remainder != 0.0 && (remainder < 0.0) != (y < 0.0) => remainder + y,
            remainder => remainder,
        },
        "max" => {
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else {
                x.max(y)
            }
        }
        "min" => {
            if x.is_nan() || y.is_nan() {
                f64::NAN
            } else {
                x.min(y)
            }
        }
        "pow" => x.powf(y),
        "equal" => f64::from(u8::from(x == y)),
        "not_equal" => f64::from(u8::from(x != y)),
        "greater" => f64::from(u8::from(x > y)),
        "greater_equal" => f64::from(u8::from(x >= y)),
        other => panic!("{other} never departs"),
    }
}

/// The number rounded to a type, and the least number that is not flushed to zero.
fn rounded(to: ElementType, v: f64) -> (f64, f64) {
    match to {
        ElementType::F16 => (f64::from(F16::from_f64(v)), f64::powi(2.0, -24)),
        ElementType::BF16 => (f64::from(BF16::from_f64(v)), f64::from(f32::MIN_POSITIVE)),
        ElementType::F32 => (f64::from(v as f32), f64::from(f32::MIN_POSITIVE)),
        _ => (v, f64::MIN_POSITIVE),
    }
}

/// Whether two results of this type agree: the recorded ones are up to 5 units in the last place
/// off, more for small results of differences.
fn agree(of: ElementType, a: f64, b: f64) -> bool {
    let tolerance = match of {
        ElementType::F64 => 1e-10,
        ElementType::F32 => 1e-6,
        ElementType::F16 => 2e-3,
        ElementType::BF16 => 1.6e-2,
        _ => 0.0,
    };
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Compares with what was recorded, and collects the departures.
struct Comparison {
    seen: BTreeSet<&'static str>,
    wrong: Vec<String>,
    compared: usize,
}

impl Comparison {
    fn new() -> Self {
        Comparison { seen: BTreeSet::new(), wrong: Vec::new(), compared: 0 }
    }

    fn compare(
        &mut self,
        (op, approximate): (&str, Option<&str>),
        [of, to]: [ElementType; 2],
        operands: [f64; 2],
        ours: f64,
        recorded: f64,
    ) {
        self.compared += 1;
        if agree(to, ours, recorded) {
            return;
        }
        let (truth, least) = rounded(to, reference(op, approximate, operands));
        // `exp(-x^2)` in gelu has the error of `x^2`; the least numbers have few digits.
        let near = op == "gelu" && (ours - truth).abs() <= 4e-6 * truth.abs();
        let right = near
            || agree(to, ours, truth)
            || (ours - truth).abs() <= least * operands[0].abs().max(1.0);
        match departure(op, of, operands, ours, recorded) {
            Some(why) if right => drop(self.seen.insert(why)),
            _ => self.wrong.push(format!(
                "{op} of {of} {operands:?}: {ours:?}, recorded {recorded:?}, right {truth:?}"
            )),
        }
    }
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} of {case}"))
}

#[test]
fn recorded_edge_cases() {
    let cases = cases();
    let mut comparison = Comparison::new();
    for case in cases["unary"].as_array().expect("cases") {
        let (op, of, to) =
            (text(case, "op"), dtype(text(case, "dtype")), dtype(text(case, "out_dtype")));
        let approximate = case["attrs"]["approximate"].as_str();
        let x = array(of, &case["input"], None);
        let ours = call(&[&x], |x| unary(op, approximate, &x[0]));
        assert_eq!(ours.element(), to, "{op} of {of}");
        let recorded = array(to, &case["output"], None);
        for ((x, ours), recorded) in numbers(&x).zip(numbers(&ours)).zip(numbers(&recorded)) {
            comparison.compare((op, approximate), [of, to], [x, 0.0], ours, recorded);
        }
    }
    for case in cases["binary"].as_array().expect("cases") {
        let (op, of, to) =
            (text(case, "op"), dtype(text(case, "dtype")), dtype(text(case, "out_dtype")));
        let grid = !case["operands"].is_null();
        let (x, y) = match grid {
            // Each against each, by broadcasting.
            true => {
                let y = array(of, &case["operands"], None);
                (array(of, &case["operands"], Some(&[y.dims()[0], 1])), y)
            }
            false => (array(of, &case["lhs"], None), array(of, &case["rhs"], None)),
        };
        let ours = call(&[&x, &y], |x| binary(op, &x[0], &x[1]));
        assert_eq!(ours.element(), to, "{op} of {of}");
        let recorded = array(to, &case["output"], None);
        let (x, y): (Vec<_>, Vec<_>) = (numbers(&x).collect(), numbers(&y).collect());
        for (i, (ours, recorded)) in numbers(&ours).zip(numbers(&recorded)).enumerate() {
            let operands = if grid { [x[i / y.len()], y[i % y.len()]] } else { [x[i], y[i]] };
            comparison.compare((op, None), [of, to], operands, ours, recorded);
        }
    }
    let Comparison { seen, wrong, compared } = comparison;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    assert!(compared > 50_000, "only {compared} compared");
    let unused: Vec<_> = DEPARTURES.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(unused.is_empty(), "departures without a case: {unused:?}");
}

#[test]
fn recorded_broadcasts_and_mixed_types() {
    let cases = cases();
    for case in cases["broadcast"].as_array().expect("cases") {
        let sizes =
            |key: &str| -> Vec<usize> { serde_json::from_value(case[key].clone()).expect("sizes") };
        let of = dtype(text(case, "dtype"));
        let x = array(of, &case["lhs"], Some(&sizes("lhs_shape")));
        let y = array(of, &case["rhs"], Some(&sizes("rhs_shape")));
        let ours = call(&[x, y], |x| binary(text(case, "op"), &x[0], &x[1]));
        let recorded = array(of, &case["output"], Some(&sizes("out_shape")));
        assert!(ours.same_bits(&recorded), "{case}: {ours:?}");
    }
    for case in cases["mixed_dtype"].as_array().expect("cases") {
        let x = array(dtype(text(case, "lhs_dtype")), &case["lhs"], None);
        let y = array(dtype(text(case, "rhs_dtype")), &case["rhs"], None);
        let to = dtype(text(case, "out_dtype"));
        let ours = call(&[x, y], |x| binary(text(case, "op"), &x[0], &x[1]));
        let recorded = array(to, &case["output"], None);
        assert_eq!(ours.element(), to, "{case}");
        for (ours, recorded) in numbers(&ours).zip(numbers(&recorded)) {
            assert!(agree(to, ours, recorded), "{case}: {ours} {recorded}");
        }
    }
}

#[test]
fn recorded_softmax() {
    for case in cases()["softmax"].as_array().expect("cases") {
        let sizes: Vec<usize> = serde_json::from_value(case["shape"].clone()).expect("sizes");
        let axis = case["axis"].as_i64().expect("an axis") as isize;
        let x = array(ElementType::F32, &case["input"], Some(&sizes));
        let ours = call(&[&x], |x| match text(case, "op") {
            "softmax" => x[0].softmax(axis),
            _ => x[0].logsoftmax(axis),
        });
        let recorded = array(ElementType::F32, &case["output"], Some(&sizes));
        let along = if axis == 0 { sizes[1..].iter().product() } else { 1 };
        let length = if axis == 0 { sizes[0] } else { *sizes.last().expect("a size") };
        let x: Vec<f64> = numbers(&x).collect();
        for (i, (ours, recorded)) in numbers(&ours).zip(numbers(&recorded)).enumerate() {
            // The elements along the axis: recorded is NaN only where the element is.
            let first = i / (along * length) * along * length + i % along;
            let row = (0..length).map(|k| x[first + k * along]);
            if row.clone().any(|v| v.is_nan() || v == f64::INFINITY) {
                assert!(ours.is_nan(), "{case} at {i}: {ours}");
            } else {
                let near = (ours - recorded).abs() <= 2e-6 * recorded.abs().max(0.5);
                assert!(
                    near || agree(ElementType::F32, ours, recorded),
                    "{case} at {i}: {ours} {recorded}"
                );
            }
        }
    }
}

#[test]
fn recorded_hazards_are_defined() {
    for case in cases()["hazards"].as_array().expect("cases") {
        let of = dtype(text(case, "dtype"));
        let [x, y] = ["lhs", "rhs"]
            .map(|key| array(of, &serde_json::json!({ "values": [case[key]] }), None));
        let ours = call(&[&x, &y], |x| binary(text(case, "op"), &x[0], &x[1]));
        let ours = numbers(&ours).next().expect("a result");
        // What kills the recorded process gives what NumPy gives.
        let expected = match case["result"].as_f64() {
            Some(recorded) => recorded,
            None if numbers(&y).eq([0.0]) => 0.0,
            None if text(case, "op") == "mod" => 0.0,
            None => f64::from(i32::MIN),
        };
        assert_eq!(ours, expected, "{case}");
    }
}

#[test]
fn what_failed_to_compile_is_refused_with_a_remedy() {
    for case in cases()["compile_rejections"].as_array().expect("cases") {
        let (op, of) = (text(case, "op"), dtype(text(case, "dtype")));
        let g = Graph::new("refused");
        let x = g.input("x", of, ("n",));
        match op {
            "add" | "mul" | "div" | "mod" | "pow" => drop(binary(op, &x, &x)),
            "softmax" => drop(x.softmax(-1)),
            "logsoftmax" => drop(x.logsoftmax(-1)),
            _ => drop(unary(op, None, &x)),
        }
        let error = g.error().unwrap_or_else(|| panic!("{op} of {of} is accepted"));
        assert_eq!(error.rule_id(), Some("elementwise.C1"), "{error}");
        assert!(error.detail().contains("help: ") || of == ElementType::U8, "{error}");
    }
}

/// The recorded `round` breaks ties to even, as `roundeven` does; that of the specification breaks
/// them away from zero.
#[test]
fn round_breaks_ties_away_from_zero() {
    let x = [0.5f64, -0.5, 1.5, 2.5, -2.5, 3.4999, 0.49999999999999994, -0.0, 1e300];
    let x = Array::new([x.len()], x.to_vec()).unwrap();
    let away = call(&[&x], |x| x[0].round());
    let expected = [1.0f64, -1.0, 2.0, 3.0, -3.0, 3.0, 0.0, -0.0, 1e300];
    assert!(away.same_bits(&Array::new([expected.len()], expected.to_vec()).unwrap()), "{away:?}");
    let even = call(&[x], |x| x[0].roundeven());
    let expected = [0.0f64, -0.0, 2.0, 2.0, -2.0, 3.0, 0.0, -0.0, 1e300];
    assert!(even.same_bits(&Array::new([expected.len()], expected.to_vec()).unwrap()), "{even:?}");
}

/// `<` and `<=`, which the recorded implementation has wrong for NaN.
#[test]
fn less_is_false_for_nan() {
    let x = Array::new([4], vec![f32::NAN, 1.0, 2.0, f32::NEG_INFINITY]).unwrap();
    let less = call(&[&x], |x| x[0].less(2.0));
    assert_eq!(less.as_slice::<bool>(), Some(&[false, true, false, true][..]));
    let less_equal = call(&[x], |x| x[0].less_equal(2.0));
    assert_eq!(less_equal.as_slice::<bool>(), Some(&[false, true, true, true][..]));
}
