//! Promotion against the recorded matrix, and numbers beside tensors.

mod common;

use common::dtype;
use helio_graph::{Dim, ElementType, Graph, Operand, Tensor, promote};
use serde_json::Value;

/// The recorded matrix names types that HLO does not have; nothing can be asked of them.
const NOT_IN_HLO: [&str; 2] = ["float6_e2m3fn", "float6_e3m2fn"];

#[test]
fn every_pair_of_the_matrix() {
    let matrix: Value = serde_json::from_str(include_str!("data/promotion.json")).expect("JSON");
    let mut pairs = 0;
    for (pair, expected) in matrix.as_object().expect("a matrix") {
        let (a, b) = pair.split_once(',').expect("two types");
        if [a, b].iter().any(|name| NOT_IN_HLO.contains(name)) {
            continue;
        }
        pairs += 1;
        let expected = expected.as_str().expect("a type");
        let expected = (expected != "ERROR").then(|| dtype(expected));
        assert_eq!(promote(dtype(a), dtype(b)).ok(), expected, "{a} and {b}");
    }
    assert_eq!(pairs, 19 * 19);
}

#[test]
fn promotion_is_symmetric_and_every_refusal_helps() {
    let types = [
        ElementType::Pred,
        ElementType::S2,
        ElementType::S4,
        ElementType::S8,
        ElementType::S16,
        ElementType::S32,
        ElementType::S64,
        ElementType::U2,
        ElementType::U4,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::F4E2M1FN,
        ElementType::F8E3M4,
        ElementType::F8E4M3,
        ElementType::F8E4M3FN,
        ElementType::F8E4M3B11FNUZ,
        ElementType::F8E4M3FNUZ,
        ElementType::F8E5M2,
        ElementType::F8E5M2FNUZ,
        ElementType::F8E8M0FNU,
        ElementType::F16,
        ElementType::BF16,
        ElementType::F32,
        ElementType::F64,
        ElementType::C64,
        ElementType::C128,
    ];
    for a in types {
        for b in types {
            match (promote(a, b), promote(b, a)) {
                (Ok(ab), Ok(ba)) => assert!(ab == ba && (ab == a || ab == b), "{a} {b}"),
                (Err(error), Err(_)) => {
                    assert_eq!(error.rule_id(), Some("promotion.C1"));
                    assert!(error.detail().contains("help: ") && error.detail().contains(".cast("));
                }
                _ => panic!("{a} and {b} meet in one order only"),
            }
        }
    }
}

/// The type of `x + operand` for `x` of a type, or nothing.
fn added(to: ElementType, operand: impl Operand) -> Option<ElementType> {
    let g = Graph::new("add");
    let x = g.input("x", to, ("n",));
    x.add(operand).dtype().ok()
}

/// What was recorded for Python's numbers holds for Rust's.
#[test]
fn numbers_take_the_type_of_the_tensor_where_they_fit() {
    use ElementType::{BF16, F16, F32, F64, Pred, S32, S64, U8};
    assert_eq!(added(F32, 1), Some(F32));
    assert_eq!(added(F32, 1.5), Some(F32));
    assert_eq!(added(F32, 16_777_216), Some(F32));
    assert_eq!(added(F32, -16_777_216), Some(F32));
    assert_eq!(added(F32, 16_777_217), None);
    assert_eq!(added(F32, 16_777_218), None, "a range, not a question of representability");
    assert_eq!(added(F32, 0.1), Some(F32));
    assert_eq!(added(F32, 1e300), Some(F32));
    assert_eq!(added(F32, f64::NAN), Some(F32));
    assert_eq!(added(F16, 2048), Some(F16));
    assert_eq!(added(F16, 2049), None);
    assert_eq!(added(F16, 1e5), Some(F16));
    assert_eq!(added(BF16, 256), Some(BF16));
    assert_eq!(added(BF16, 257), None);
    assert_eq!(added(F64, 1i64 << 53), Some(F64));
    assert_eq!(added(F64, (1i64 << 53) + 1), None);
    assert_eq!(added(S32, 1), Some(S32));
    assert_eq!(added(S32, 1.0), None);
    assert_eq!(added(S32, i32::MAX), Some(S32));
    assert_eq!(added(S32, 1i64 << 31), None);
    assert_eq!(added(S32, i32::MIN), Some(S32));
    assert_eq!(added(U8, 255), Some(U8));
    assert_eq!(added(U8, 256), None);
    assert_eq!(added(U8, -1), None);
    assert_eq!(added(U8, true), Some(U8));
    assert_eq!(added(S32, true), Some(S32));
    assert_eq!(added(Pred, 1.0), None);
    let g = Graph::new("logic");
    let x = g.input("x", Pred, ("n",));
    assert_eq!((&x & true).dtype().ok(), Some(Pred));
    assert_eq!(x.logical_or(1).dtype().ok(), Some(Pred));
    assert_eq!(x.logical_or(2).dtype().ok(), None);
    // A dimension is a strong s64.
    assert_eq!(added(S64, Dim::from("n")), Some(S64));
    assert_eq!(added(S32, Dim::from(3)), Some(S64));
    assert_eq!(added(F32, Dim::from(3)), None);
}

#[test]
fn numbers_on_the_left_and_divisions() {
    let unary = |dtype: ElementType, f: fn(Tensor) -> Tensor| {
        let g = Graph::new("g");
        f(g.input("x", dtype, ("n",))).dtype().ok()
    };
    assert_eq!(unary(ElementType::S32, |x| x / 2), Some(ElementType::F64));
    assert_eq!(unary(ElementType::S32, |x| x / 2.0), None);
    assert_eq!(unary(ElementType::S32, |x| x.floor_div(2)), Some(ElementType::S32));
    assert_eq!(unary(ElementType::S32, |x| 2 / x), Some(ElementType::F64));
    assert_eq!(unary(ElementType::F32, |x| 2 / x), Some(ElementType::F32));
    assert_eq!(unary(ElementType::F32, |x| 2.5 - x), Some(ElementType::F32));
    assert_eq!(unary(ElementType::S32, |x| x.pow(2)), Some(ElementType::S32));
    assert_eq!(unary(ElementType::S32, |x| x.pow(-1)), Some(ElementType::S32));
    assert_eq!(unary(ElementType::U8, |x| x.less(1)), Some(ElementType::Pred));
    assert_eq!(unary(ElementType::S32, |x| x.equal(1.5)), None);
    // i32 with u32 has no common type, but both divide as f64.
    let g = Graph::new("g");
    let (x, y) = (g.input("x", ElementType::S32, ("n",)), g.input("y", ElementType::U32, ("n",)));
    assert_eq!(x.div(&y).dtype().ok(), Some(ElementType::F64));
    assert_eq!(x.add(&y).dtype().ok(), None);
}
