use super::*;
use crate::ElementType::{F32, S8, S32, U8};
use crate::UnaryOp;
use crate::ops::Order;

/// Every row of the table has a method, and the methods have the right rows.
#[test]
fn unary_operations() {
    type Method = fn(&XlaOp) -> XlaOp;
    let methods: [(Method, UnaryOp, &str); 36] = [
        (XlaOp::abs, UnaryOp::Abs, "f32"),
        (XlaOp::acos, UnaryOp::Acos, "f32"),
        (XlaOp::acosh, UnaryOp::Acosh, "f32"),
        (XlaOp::asin, UnaryOp::Asin, "f32"),
        (XlaOp::asinh, UnaryOp::Asinh, "f32"),
        (XlaOp::atan, UnaryOp::Atan, "f32"),
        (XlaOp::atanh, UnaryOp::Atanh, "f32"),
        (XlaOp::cbrt, UnaryOp::Cbrt, "f32"),
        (XlaOp::ceil, UnaryOp::Ceil, "f32"),
        (XlaOp::clz, UnaryOp::Clz, "s32"),
        (XlaOp::cos, UnaryOp::Cos, "f32"),
        (XlaOp::cosh, UnaryOp::Cosh, "f32"),
        (XlaOp::erf, UnaryOp::Erf, "f32"),
        (XlaOp::exp, UnaryOp::Exp, "c64"),
        (XlaOp::expm1, UnaryOp::Expm1, "f32"),
        (XlaOp::floor, UnaryOp::Floor, "f32"),
        (XlaOp::imag, UnaryOp::Imag, "c64"),
        (XlaOp::is_finite, UnaryOp::IsFinite, "f32"),
        (XlaOp::log, UnaryOp::Log, "f32"),
        (XlaOp::log1p, UnaryOp::Log1p, "f32"),
        (XlaOp::logistic, UnaryOp::Logistic, "f32"),
        (XlaOp::neg, UnaryOp::Negate, "f32"),
        (XlaOp::not, UnaryOp::Not, "pred"),
        (XlaOp::population_count, UnaryOp::Popcnt, "u8"),
        (XlaOp::real, UnaryOp::Real, "c64"),
        (XlaOp::round, UnaryOp::RoundNearestAfz, "f32"),
        (XlaOp::round_nearest_even, UnaryOp::RoundNearestEven, "f32"),
        (XlaOp::rsqrt, UnaryOp::Rsqrt, "f32"),
        (XlaOp::sign, UnaryOp::Sign, "f32"),
        (XlaOp::sin, UnaryOp::Sin, "f32"),
        (XlaOp::sinh, UnaryOp::Sinh, "f32"),
        (XlaOp::sqrt, UnaryOp::Sqrt, "f32"),
        (XlaOp::tan, UnaryOp::Tan, "f32"),
        (XlaOp::tanh, UnaryOp::Tanh, "f32"),
        (|x| -x, UnaryOp::Negate, "s8"),
        (|x| !x, UnaryOp::Not, "s8"),
    ];
    for op in UnaryOp::ALL {
        assert!(methods.iter().any(|(_, known, _)| known == op), "{} has a method", op.name());
    }
    for (method, op, element) in methods {
        let b = XlaBuilder::new("b");
        let result = method(&b.parameter(0, shape(&format!("{element}[2]")), "x"));
        let computation = b.build_with_root(result).unwrap_or_else(|e| panic!("{e}"));
        let entry = computation.module().entry();
        assert_eq!(entry.instr(entry.root()).op.opcode(), op.name());
    }
}

#[test]
fn binary_operations() {
    type Method = fn(&XlaOp, XlaOp) -> XlaOp;
    type Broadcast = fn(&XlaOp, XlaOp, &[usize]) -> XlaOp;
    let methods: [(Method, Broadcast, BinaryOp); 17] = [
        (XlaOp::add, XlaOp::add_broadcast, BinaryOp::Add),
        (XlaOp::and, XlaOp::and_broadcast, BinaryOp::And),
        (XlaOp::atan2, XlaOp::atan2_broadcast, BinaryOp::Atan2),
        (XlaOp::complex, XlaOp::complex_broadcast, BinaryOp::Complex),
        (XlaOp::div, XlaOp::div_broadcast, BinaryOp::Divide),
        (XlaOp::max, XlaOp::max_broadcast, BinaryOp::Maximum),
        (XlaOp::min, XlaOp::min_broadcast, BinaryOp::Minimum),
        (XlaOp::mul, XlaOp::mul_broadcast, BinaryOp::Multiply),
        (XlaOp::mulhi, XlaOp::mulhi_broadcast, BinaryOp::Mulhi),
        (XlaOp::or, XlaOp::or_broadcast, BinaryOp::Or),
        (XlaOp::pow, XlaOp::pow_broadcast, BinaryOp::Power),
        (XlaOp::rem, XlaOp::rem_broadcast, BinaryOp::Remainder),
        (XlaOp::shift_left, XlaOp::shift_left_broadcast, BinaryOp::ShiftLeft),
        (
            XlaOp::shift_right_arithmetic,
            XlaOp::shift_right_arithmetic_broadcast,
            BinaryOp::ShiftRightArithmetic,
        ),
        (
            XlaOp::shift_right_logical,
            XlaOp::shift_right_logical_broadcast,
            BinaryOp::ShiftRightLogical,
        ),
        (XlaOp::sub, XlaOp::sub_broadcast, BinaryOp::Subtract),
        (XlaOp::xor, XlaOp::xor_broadcast, BinaryOp::Xor),
    ];
    assert_eq!(methods.len(), BinaryOp::ALL.len());
    for (method, broadcast, op) in methods {
        let element = if op.accepts().includes(F32) { F32 } else { S32 };
        let b = XlaBuilder::new("b");
        let x = b.parameter(0, shape(&format!("{element}[2,3]")), "x");
        let y = b.parameter(1, shape(&format!("{element}[3]")), "y");
        method(&x, x.clone());
        broadcast(&x, y, &[1]);
        let computation = b.build().unwrap_or_else(|e| panic!("{e}"));
        let opcodes = computation.module().entry().instrs().iter().map(|i| i.op.opcode());
        let opcodes: Vec<_> = opcodes.skip(2).collect();
        assert_eq!(opcodes, [op.name(), "broadcast", op.name()]);
    }
}

#[test]
fn comparisons() {
    type Method = fn(&XlaOp, XlaOp) -> XlaOp;
    type Broadcast = fn(&XlaOp, XlaOp, &[usize]) -> XlaOp;
    let methods: [(Method, Broadcast, Method, &str); 6] = [
        (XlaOp::eq, XlaOp::eq_broadcast, XlaOp::eq_total_order, "EQ"),
        (XlaOp::ne, XlaOp::ne_broadcast, XlaOp::ne_total_order, "NE"),
        (XlaOp::ge, XlaOp::ge_broadcast, XlaOp::ge_total_order, "GE"),
        (XlaOp::gt, XlaOp::gt_broadcast, XlaOp::gt_total_order, "GT"),
        (XlaOp::le, XlaOp::le_broadcast, XlaOp::le_total_order, "LE"),
        (XlaOp::lt, XlaOp::lt_broadcast, XlaOp::lt_total_order, "LT"),
    ];
    for (method, broadcast, total, word) in methods {
        check(
            |b| {
                let [x, y] = parameters(b, ["f32[2,3]", "f32[3]"]);
                method(&x, x.clone());
                broadcast(&x, y, &[1]);
                total(&x, x.clone());
            },
            &format!(
                "%3 = pred[2,3] compare(x, x), direction={word}
                 %4 = f32[2,3] broadcast(y), dimensions={{1}}
                 %5 = pred[2,3] compare(x, %4), direction={word}
                 ROOT %6 = pred[2,3] compare(x, x), direction={word}, type=TOTALORDER"
            ),
        );
    }
}

/// Integers have one order; saying TOTALORDER of them would be another comparison to XLA.
#[test]
fn total_order_of_integers() {
    check(
        |b| {
            let [x] = parameters(b, ["s32[2]"]);
            x.compare_total_order(Direction::Lt, &x);
            x.compare(Direction::Ge, Order::Default, 3, &[]);
        },
        "%2 = pred[2] compare(x, x), direction=LT
         %3 = s32[] constant(3)
         %4 = s32[2] broadcast(%3), dimensions={}
         ROOT %5 = pred[2] compare(x, %4), direction=GE",
    );
}

#[test]
fn operators() {
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[]", "f32[]"]);
            let _ = -((&x + &y) * x.clone() - y.clone()) / &x % &y;
        },
        "%3 = f32[] add(x, y)
         %4 = f32[] multiply(%3, x)
         %5 = f32[] subtract(%4, y)
         %6 = f32[] negate(%5)
         %7 = f32[] divide(%6, x)
         ROOT %8 = f32[] remainder(%7, y)",
    );
    check(
        |b| {
            let [x, y] = parameters(b, ["u8[]", "s8[]"]);
            let _ = !(&x & 1 | &x ^ (2 | &x)) << 3 >> 1;
            let _ = &y >> &y;
        },
        "%3 = u8[] constant(1)
         %4 = u8[] and(x, %3)
         %5 = u8[] constant(2)
         %6 = u8[] or(%5, x)
         %7 = u8[] xor(x, %6)
         %8 = u8[] or(%4, %7)
         %9 = u8[] not(%8)
         %10 = u8[] constant(3)
         %11 = u8[] shift-left(%9, %10)
         %12 = u8[] constant(1)
         %13 = u8[] shift-right-logical(%11, %12)
         ROOT %14 = s8[] shift-right-arithmetic(y, y)",
    );
    check(
        |b| {
            let [x, y] = parameters(b, ["bf16[2]", "pred[]"]);
            let _ = 1 - 2.5 * &x / 2u8;
            let _ = true & y;
        },
        "%3 = bf16[] constant(2.5)
         %4 = bf16[2] broadcast(%3), dimensions={}
         %5 = bf16[2] multiply(%4, x)
         %6 = bf16[] constant(2)
         %7 = bf16[2] broadcast(%6), dimensions={}
         %8 = bf16[2] divide(%5, %7)
         %9 = bf16[] constant(1)
         %10 = bf16[2] broadcast(%9), dimensions={}
         %11 = bf16[2] subtract(%10, %8)
         %12 = pred[] constant(true)
         ROOT %13 = pred[] and(%12, y)",
    );
}

/// The table in XLA's documentation of broadcasting, to which E1–E4 refer.
#[test]
fn shapes_of_broadcasting() {
    let cases = [
        ("f32[]", "f32[2,3]", &[][..], "f32[2,3]"),
        ("f32[2,3]", "f32[]", &[], "f32[2,3]"),
        ("f32[3]", "f32[4,3]", &[1], "f32[4,3]"),
        ("f32[4]", "f32[4,3]", &[0], "f32[4,3]"),
        ("f32[2,3]", "f32[2,3,4]", &[0, 1], "f32[2,3,4]"),
        ("f32[2,1]", "f32[2,3,4]", &[0, 2], "f32[2,3,4]"),
        ("f32[2,3]", "f32[2,1,4]", &[0, 1], "f32[2,3,4]"),
        ("f32[2,3]", "f32[2,1]", &[], "f32[2,3]"),
        ("f32[1,3]", "f32[2,1]", &[0, 1], "f32[2,3]"),
        ("f32[0,3]", "f32[1,3]", &[], "f32[0,3]"),
        ("f32[<=2,3]", "f32[]", &[], "f32[<=2,3]"),
        ("f32[<=2,3]", "f32[1,3]", &[], "f32[<=2,3]"),
        ("f32[<=2]", "f32[2]", &[], "f32[<=2]"),
        ("f32[?]", "f32[?]", &[], "f32[?]"),
        ("f32[4]", "f32[4,4,4]", &[1], "f32[4,4,4]"),
    ];
    for (lhs, rhs, dimensions, expected) in cases {
        for (x, y) in [(lhs, rhs), (rhs, lhs)] {
            let b = XlaBuilder::new("b");
            let [x, y] = parameters(&b, [x, y]);
            let sum = x.add_broadcast(&y, dimensions);
            assert_eq!(sum.shape(), Ok(shape(expected)), "{lhs} {rhs} {dimensions:?}");
        }
    }
}

#[test]
fn broadcasting_is_reshape_and_broadcast() {
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[2,1]", "f32[2,3,4]"]);
            x.mul_broadcast(&y, &[0, 2]);
        },
        "%3 = f32[2] reshape(x)
         %4 = f32[2,3,4] broadcast(%3), dimensions={0}
         ROOT %5 = f32[2,3,4] multiply(%4, y)",
    );
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[1,3]", "f32[2,1]"]);
            x.sub(&y);
        },
        "%3 = f32[3] reshape(x)
         %4 = f32[2,3] broadcast(%3), dimensions={1}
         %5 = f32[2] reshape(y)
         %6 = f32[2,3] broadcast(%5), dimensions={0}
         ROOT %7 = f32[2,3] subtract(%4, %6)",
    );
    check(
        |b| {
            let [x] = parameters(b, ["f32[<=2,3]"]);
            x.max(0);
        },
        "%2 = f32[] constant(0)
         %3 = f32[2,3] broadcast(%2), dimensions={}
         ROOT %4 = f32[<=2,3] maximum(x, %3)",
    );
}

#[test]
fn select_and_clamp_repeat_scalars() {
    check(
        |b| {
            let [p, x, y] = parameters(b, ["pred[]", "s32[4]", "s32[]"]);
            p.select(&x, &y);
        },
        "%4 = pred[4] broadcast(x), dimensions={}
         %5 = s32[4] broadcast(z), dimensions={}
         ROOT %6 = s32[4] select(%4, y, %5)",
    );
    check(
        |b| {
            let [p, x] = parameters(b, ["pred[4]", "s32[]"]);
            p.select(&x, 7);
        },
        "%3 = s32[] constant(7)
         %4 = s32[4] broadcast(y), dimensions={}
         %5 = s32[4] broadcast(%3), dimensions={}
         ROOT %6 = s32[4] select(x, %4, %5)",
    );
    check(
        |b| {
            let [x, low] = parameters(b, ["s32[3]", "s32[3]"]);
            x.clamp(&low, 6);
        },
        "%3 = s32[] constant(6)
         %4 = s32[3] broadcast(%3), dimensions={}
         ROOT %5 = s32[3] clamp(y, x, %4)",
    );
}

#[test]
fn tuples_are_selected_leaf_by_leaf() {
    check(
        |b| {
            let [p, x, y] = parameters(b, ["pred[]", "(f32[2], (s32[]))", "(f32[2], (s32[]))"]);
            p.select(&x, &y);
        },
        "%4 = f32[2] get-tuple-element(y), index=0
         %5 = f32[2] get-tuple-element(z), index=0
         %6 = pred[2] broadcast(x), dimensions={}
         %7 = f32[2] select(%6, %4, %5)
         %8 = (s32[]) get-tuple-element(y), index=1
         %9 = (s32[]) get-tuple-element(z), index=1
         %10 = s32[] get-tuple-element(%8), index=0
         %11 = s32[] get-tuple-element(%9), index=0
         %12 = s32[] select(x, %10, %11)
         %13 = (s32[]) tuple(%12)
         ROOT %14 = (f32[2], (s32[])) tuple(%7, %13)",
    );
}

#[test]
fn conversions() {
    check(
        |b| {
            let [x, r] = parameters(b, ["f32[2]", "u32[2]"]);
            x.convert_element_type(S8);
            x.bitcast_convert_type(U8);
            x.stochastic_convert_type(&r, S8);
            x.reduce_precision(5, 10);
        },
        "%3 = s8[2] convert(x)
         %4 = u8[2,4] bitcast-convert(x)
         %5 = s8[2] stochastic-convert(x, y)
         ROOT %6 = f32[2] reduce-precision(x), exponent_bits=5, mantissa_bits=10",
    );
}

#[test]
fn conjugate() {
    check(
        |b| {
            let [x] = parameters(b, ["c64[2]"]);
            x.conj();
        },
        "%2 = f32[2] real(x)
         %3 = f32[2] imag(x)
         %4 = f32[2] negate(%3)
         ROOT %5 = c64[2] complex(%2, %4)",
    );
}
