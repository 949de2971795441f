//! The function that an operation applies to each element, for every type of elements.
//!
//! There is one place where an operation is matched with its meaning, for two kinds of use: mapping
//! arrays ([`elementwise`](crate::elementwise), [`convert`](crate::convert)) and computations on
//! single elements ([`scalar`](crate::scalar)). Whoever needs a function says what to do with it by
//! a [`Use1`] or a [`Use2`].

use std::cmp::Ordering;

use helio_ir::ops::{BinaryOp, Compare, Direction, Order, ReducePrecision, UnaryOp};
use helio_ir::types::{C64, C128, FloatFormat, FloatSpecials};
use helio_ir::{ElementType, Error, Native, Number, Result};

use crate::class::{dispatch_complex, dispatch_float, dispatch_integer};
use crate::math::integer::IntType;
use crate::math::{complex, integer, real};
use crate::subnormals::{Flush, Subnormals};

/// What to do with a function of one element.
pub(crate) trait Use1 {
    type Output;
    fn with<A: Native, R: Native>(self, f: impl Fn(A) -> R + 'static) -> Result<Self::Output>;
}

/// What to do with a function of two elements.
pub(crate) trait Use2 {
    type Output;
    fn with<A: Native, R: Native>(self, f: impl Fn(A, A) -> R + 'static) -> Result<Self::Output>;
}

fn unsupported<T>(operation: &str, element: ElementType) -> Result<T> {
    Err(Error::internal(format!("{operation} of {element}")))
}

fn int<T: Native>(x: T) -> i128 {
    x.to_number().to_int(i128::MIN, i128::MAX)
}

fn from_int<T: Native>(x: i128) -> T {
    T::from_number(Number::Int(x))
}

fn float<T: Native>(x: T) -> f64 {
    x.to_number().to_f64()
}

fn from_float<T: Native>(x: f64) -> T {
    T::from_number(Number::Float(x))
}

fn cplx<T: Native>(x: T) -> C128 {
    x.to_number().to_complex()
}

fn from_cplx<T: Native>(x: C128) -> T {
    T::from_number(Number::Complex(x))
}

/// A function of a float.
enum Float1 {
    /// To a float of the same type.
    Value(fn(f64) -> f64),
    /// On the sign bit alone, so that it holds for NaN, too.
    Sign(fn(u128, FloatFormat) -> u128),
    /// To `pred`.
    Test(fn(f64) -> bool),
}

/// A function of a complex number.
enum Complex1 {
    /// To a complex number of the same type.
    Value(fn(C128) -> C128),
    /// To a real of the type of its parts.
    Part(fn(C128) -> f64),
}

/// Passes the function of `op` on elements of this type to `with`. Errors: `Internal` if there is
/// none (the verifier has seen to it).
pub(crate) fn unary<U: Use1>(
    op: UnaryOp,
    element: ElementType,
    subnormals: Subnormals,
    with: U,
) -> Result<U::Output> {
    let none = || unsupported(op.name(), element);
    if element.is_pred() {
        let Some(f) = pred_unary(op) else { return none() };
        return with.with(f);
    }
    if element.is_integer() {
        let Some(f) = integer_unary(op) else { return none() };
        let ty = IntType::of(element);
        return dispatch_integer!(element,
            T => with.with(move |x: T| from_int::<T>(f(int(x), ty))), else none());
    }
    if let Some(format) = element.float_format() {
        return match float_unary(op) {
            None => none(),
            Some(Float1::Value(f)) => {
                let flush = subnormals.of(element);
                map_float(element, move |x| flush.real(f(flush.real(x))), with)
            }
            Some(Float1::Sign(f)) => dispatch_float!(element, T => {
                with.with(move |x: T| <T as Native>::from_bits(f(Native::to_bits(x), format)))
            }, else none()),
            Some(Float1::Test(f)) => {
                dispatch_float!(element, T => with.with(move |x: T| f(float(x))), else none())
            }
        };
    }
    let flush = match op {
        UnaryOp::Negate | UnaryOp::Real | UnaryOp::Imag => Flush::NOTHING,
        _ => subnormals.of(element),
    };
    match complex_unary(op) {
        None => none(),
        Some(Complex1::Value(f)) => dispatch_complex!(element, T => {
            with.with(move |x: T| from_cplx::<T>(flush.complex(f(flush.complex(cplx(x))))))
        }, else none()),
        Some(Complex1::Part(f)) => {
            let f = move |z: C128| flush.real(f(flush.complex(z)));
            match element {
                ElementType::C64 => with.with(move |x: C64| from_float::<f32>(f(cplx(x)))),
                _ => with.with(f),
            }
        }
    }
}

/// Passes `f` as a function of floats of this type, its result rounded, to `with`.
fn map_float<U: Use1>(
    element: ElementType,
    f: impl Fn(f64) -> f64 + 'static,
    with: U,
) -> Result<U::Output> {
    dispatch_float!(element, T => with.with(move |x: T| from_float::<T>(f(float(x)))),
        else unsupported("a function of floats", element))
}

/// Passes the function of `op` on elements of this type to `with`. Errors: as for [`unary`].
pub(crate) fn reduce_precision<U: Use1>(
    op: ReducePrecision,
    element: ElementType,
    with: U,
) -> Result<U::Output> {
    let Some(format) = element.float_format() else {
        return unsupported("reduce-precision", element);
    };
    let ReducePrecision { exponent_bits, mantissa_bits } = op;
    map_float(
        element,
        move |x| real::reduce_precision(x, format, exponent_bits, mantissa_bits),
        with,
    )
}

fn pred_unary(op: UnaryOp) -> Option<fn(bool) -> bool> {
    match op {
        UnaryOp::Not => Some(|x| !x),
        UnaryOp::Abs
        | UnaryOp::Acos
        | UnaryOp::Acosh
        | UnaryOp::Asin
        | UnaryOp::Asinh
        | UnaryOp::Atan
        | UnaryOp::Atanh
        | UnaryOp::Cbrt
        | UnaryOp::Ceil
        | UnaryOp::Clz
        | UnaryOp::Cos
        | UnaryOp::Cosh
        | UnaryOp::Erf
        | UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Floor
        | UnaryOp::Imag
        | UnaryOp::IsFinite
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Logistic
        | UnaryOp::Negate
        | UnaryOp::Popcnt
        | UnaryOp::Real
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven
        | UnaryOp::Rsqrt
        | UnaryOp::Sign
        | UnaryOp::Sin
        | UnaryOp::Sinh
        | UnaryOp::Sqrt
        | UnaryOp::Tan
        | UnaryOp::Tanh => None,
    }
}

fn integer_unary(op: UnaryOp) -> Option<fn(i128, IntType) -> i128> {
    Some(match op {
        UnaryOp::Abs => integer::abs,
        UnaryOp::Clz => integer::clz,
        UnaryOp::Negate => integer::negate,
        UnaryOp::Not => integer::not,
        UnaryOp::Popcnt => integer::popcnt,
        UnaryOp::Sign => integer::sign,
        UnaryOp::Acos
        | UnaryOp::Acosh
        | UnaryOp::Asin
        | UnaryOp::Asinh
        | UnaryOp::Atan
        | UnaryOp::Atanh
        | UnaryOp::Cbrt
        | UnaryOp::Ceil
        | UnaryOp::Cos
        | UnaryOp::Cosh
        | UnaryOp::Erf
        | UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Floor
        | UnaryOp::Imag
        | UnaryOp::IsFinite
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Logistic
        | UnaryOp::Real
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven
        | UnaryOp::Rsqrt
        | UnaryOp::Sin
        | UnaryOp::Sinh
        | UnaryOp::Sqrt
        | UnaryOp::Tan
        | UnaryOp::Tanh => return None,
    })
}

fn float_unary(op: UnaryOp) -> Option<Float1> {
    Some(Float1::Value(match op {
        UnaryOp::Abs => return Some(Float1::Sign(clear_sign)),
        UnaryOp::Negate => return Some(Float1::Sign(flip_sign)),
        UnaryOp::Real => return Some(Float1::Sign(|bits, _| bits)),
        UnaryOp::IsFinite => return Some(Float1::Test(f64::is_finite)),
        UnaryOp::Acos => libm::acos,
        UnaryOp::Acosh => real::acosh,
        UnaryOp::Asin => libm::asin,
        UnaryOp::Asinh => libm::asinh,
        UnaryOp::Atan => libm::atan,
        UnaryOp::Atanh => libm::atanh,
        UnaryOp::Cbrt => libm::cbrt,
        UnaryOp::Ceil => f64::ceil,
        UnaryOp::Cos => libm::cos,
        UnaryOp::Cosh => libm::cosh,
        UnaryOp::Erf => libm::erf,
        UnaryOp::Exp => libm::exp,
        UnaryOp::Expm1 => libm::expm1,
        UnaryOp::Floor => f64::floor,
        UnaryOp::Imag => |_| 0.0,
        UnaryOp::Log => libm::log,
        UnaryOp::Log1p => libm::log1p,
        UnaryOp::Logistic => real::logistic,
        UnaryOp::RoundNearestAfz => f64::round,
        UnaryOp::RoundNearestEven => f64::round_ties_even,
        UnaryOp::Rsqrt => real::rsqrt,
        UnaryOp::Sign => real::sign,
        UnaryOp::Sin => libm::sin,
        UnaryOp::Sinh => libm::sinh,
        UnaryOp::Sqrt => f64::sqrt,
        UnaryOp::Tan => libm::tan,
        UnaryOp::Tanh => libm::tanh,
        UnaryOp::Clz | UnaryOp::Not | UnaryOp::Popcnt => return None,
    }))
}

fn complex_unary(op: UnaryOp) -> Option<Complex1> {
    Some(Complex1::Value(match op {
        UnaryOp::Abs => return Some(Complex1::Part(complex::abs)),
        UnaryOp::Imag => return Some(Complex1::Part(complex::imag)),
        UnaryOp::Real => return Some(Complex1::Part(complex::real)),
        UnaryOp::Acos => complex::acos,
        UnaryOp::Acosh => complex::acosh,
        UnaryOp::Asin => complex::asin,
        UnaryOp::Asinh => complex::asinh,
        UnaryOp::Atan => complex::atan,
        UnaryOp::Atanh => complex::atanh,
        UnaryOp::Cbrt => complex::cbrt,
        UnaryOp::Cos => complex::cos,
        UnaryOp::Cosh => complex::cosh,
        UnaryOp::Exp => complex::exp,
        UnaryOp::Expm1 => complex::expm1,
        UnaryOp::Log => complex::log,
        UnaryOp::Log1p => complex::log1p,
        UnaryOp::Logistic => complex::logistic,
        UnaryOp::Negate => complex::negate,
        UnaryOp::Rsqrt => complex::rsqrt,
        UnaryOp::Sign => complex::sign,
        UnaryOp::Sin => complex::sin,
        UnaryOp::Sinh => complex::sinh,
        UnaryOp::Sqrt => complex::sqrt,
        UnaryOp::Tan => complex::tan,
        UnaryOp::Tanh => complex::tanh,
        UnaryOp::Ceil
        | UnaryOp::Clz
        | UnaryOp::Erf
        | UnaryOp::Floor
        | UnaryOp::IsFinite
        | UnaryOp::Not
        | UnaryOp::Popcnt
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven => return None,
    }))
}

/// The sign bit of a format; 0 where flipping it would not change the sign of these bits.
fn sign_bit(bits: u128, format: FloatFormat) -> u128 {
    let sign = 1 << (format.exponent_bits + format.mantissa_bits);
    match format.specials {
        FloatSpecials::Ieee | FloatSpecials::Nan | FloatSpecials::NegativeZero => sign,
        // Zero has no sign, and NaN is what would be -0.
        FloatSpecials::NanForNegativeZero if bits & (sign - 1) == 0 => 0,
        FloatSpecials::NanForNegativeZero => sign,
        FloatSpecials::PowersOfTwo => 0,
    }
}

fn clear_sign(bits: u128, format: FloatFormat) -> u128 {
    bits & !sign_bit(bits, format)
}

/// Without a sign, every negative number is NaN.
fn flip_sign(bits: u128, format: FloatFormat) -> u128 {
    match format.specials {
        FloatSpecials::PowersOfTwo => (1 << format.exponent_bits) - 1,
        _ => bits ^ sign_bit(bits, format),
    }
}

/// Passes the function of `op` on elements of this type to `with`. Errors: as for [`unary`].
pub(crate) fn binary<U: Use2>(
    op: BinaryOp,
    element: ElementType,
    subnormals: Subnormals,
    with: U,
) -> Result<U::Output> {
    let none = || unsupported(op.name(), element);
    if op == BinaryOp::Complex {
        return match element {
            ElementType::F32 => with.with(C64::new),
            ElementType::F64 => with.with(C128::new),
            _ => none(),
        };
    }
    if element.is_pred() {
        let Some(f) = pred_binary(op) else { return none() };
        return with.with(f);
    }
    if element.is_integer() {
        let Some(f) = integer_binary(op) else { return none() };
        let ty = IntType::of(element);
        return dispatch_integer!(element,
            T => with.with(move |x: T, y: T| from_int::<T>(f(int(x), int(y), ty))), else none());
    }
    let flush = subnormals.of(element);
    if element.is_float() {
        let Some(f) = float_binary(op) else { return none() };
        let f = move |x, y| flush.real(f(flush.real(x), flush.real(y)));
        return dispatch_float!(element,
            T => with.with(move |x: T, y: T| from_float::<T>(f(float(x), float(y)))), else none());
    }
    let Some(f) = complex_binary(op) else { return none() };
    let f = move |x, y| flush.complex(f(flush.complex(x), flush.complex(y)));
    dispatch_complex!(element,
        T => with.with(move |x: T, y: T| from_cplx::<T>(f(cplx(x), cplx(y)))), else none())
}

fn pred_binary(op: BinaryOp) -> Option<fn(bool, bool) -> bool> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Or => |x, y| x | y,
        BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::And => |x, y| x & y,
        BinaryOp::Xor => |x, y| x ^ y,
        BinaryOp::Atan2
        | BinaryOp::Complex
        | BinaryOp::Divide
        | BinaryOp::Mulhi
        | BinaryOp::Power
        | BinaryOp::Remainder
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Subtract => return None,
    })
}

fn integer_binary(op: BinaryOp) -> Option<fn(i128, i128, IntType) -> i128> {
    Some(match op {
        BinaryOp::Add => integer::add,
        BinaryOp::And => integer::and,
        BinaryOp::Divide => integer::divide,
        BinaryOp::Maximum => integer::maximum,
        BinaryOp::Minimum => integer::minimum,
        BinaryOp::Mulhi => integer::mulhi,
        BinaryOp::Multiply => integer::multiply,
        BinaryOp::Or => integer::or,
        BinaryOp::Power => integer::power,
        BinaryOp::Remainder => integer::remainder,
        BinaryOp::ShiftLeft => integer::shift_left,
        BinaryOp::ShiftRightArithmetic => integer::shift_right_arithmetic,
        BinaryOp::ShiftRightLogical => integer::shift_right_logical,
        BinaryOp::Subtract => integer::subtract,
        BinaryOp::Xor => integer::xor,
        BinaryOp::Atan2 | BinaryOp::Complex => return None,
    })
}

fn float_binary(op: BinaryOp) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        BinaryOp::Add => real::add,
        BinaryOp::Atan2 => libm::atan2,
        BinaryOp::Divide => real::divide,
        BinaryOp::Maximum => real::maximum,
        BinaryOp::Minimum => real::minimum,
        BinaryOp::Multiply => real::multiply,
        BinaryOp::Power => real::power,
        BinaryOp::Remainder => real::remainder,
        BinaryOp::Subtract => real::subtract,
        BinaryOp::And
        | BinaryOp::Complex
        | BinaryOp::Mulhi
        | BinaryOp::Or
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Xor => return None,
    })
}

fn complex_binary(op: BinaryOp) -> Option<fn(C128, C128) -> C128> {
    Some(match op {
        BinaryOp::Add => complex::add,
        BinaryOp::Atan2 => complex::atan2,
        BinaryOp::Divide => complex::divide,
        BinaryOp::Maximum => complex::maximum,
        BinaryOp::Minimum => complex::minimum,
        BinaryOp::Multiply => complex::multiply,
        BinaryOp::Power => complex::power,
        BinaryOp::Subtract => complex::subtract,
        BinaryOp::And
        | BinaryOp::Complex
        | BinaryOp::Mulhi
        | BinaryOp::Or
        | BinaryOp::Remainder
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Xor => return None,
    })
}

/// Passes the function of `op` on elements of this type to `with`.
pub(crate) fn compare<U: Use2>(
    op: Compare,
    element: ElementType,
    subnormals: Subnormals,
    with: U,
) -> Result<U::Output> {
    let none = || unsupported("compare", element);
    let direction = op.direction;
    if element.is_pred() {
        return with.with(move |x: bool, y: bool| holds(direction, Some(x.cmp(&y))));
    }
    if element.is_integer() {
        return dispatch_integer!(element, T => with.with(move |x: T, y: T| {
            holds(direction, Some(int(x).cmp(&int(y))))
        }), else none());
    }
    let flush = subnormals.of(element);
    if let Some(format) = element.float_format() {
        return match op.order {
            Order::Default => dispatch_float!(element, T => with.with(move |x: T, y: T| {
                holds(direction, flush.real(float(x)).partial_cmp(&flush.real(float(y))))
            }), else none()),
            Order::Total => dispatch_float!(element, T => with.with(move |x: T, y: T| {
                holds(direction, Some(total_rank(Native::to_bits(x), format).cmp(&total_rank(Native::to_bits(y), format))))
            }), else none()),
        };
    }
    dispatch_complex!(element, T => with.with(move |x: T, y: T| {
        // By the real, then by the imaginary part.
        holds(direction, match op.order {
            Order::Default => {
                let (x, y) = (flush.complex(cplx(x)), flush.complex(cplx(y)));
                match x.re.partial_cmp(&y.re) {
                    Some(Ordering::Equal) => x.im.partial_cmp(&y.im),
                    other => other,
                }
            }
            Order::Total => Some(x.re.total_cmp(&y.re).then(x.im.total_cmp(&y.im))),
        })
    }), else none())
}

/// Whether a comparison holds; `None` is the outcome with a NaN.
fn holds(direction: Direction, outcome: Option<Ordering>) -> bool {
    match direction {
        Direction::Eq => outcome == Some(Ordering::Equal),
        Direction::Ne => outcome != Some(Ordering::Equal),
        Direction::Ge => outcome.is_some_and(Ordering::is_ge),
        Direction::Gt => outcome.is_some_and(Ordering::is_gt),
        Direction::Le => outcome.is_some_and(Ordering::is_le),
        Direction::Lt => outcome.is_some_and(Ordering::is_lt),
    }
}

/// A number that grows along the total order: sign and magnitude, where -0 is -1.
pub(crate) fn total_rank(bits: u128, format: FloatFormat) -> i128 {
    let bits = bits as i128;
    if !format.has_sign {
        return bits;
    }
    let sign = 1 << (format.exponent_bits + format.mantissa_bits);
    let magnitude = bits & (sign - 1);
    match (bits & sign != 0, format.specials) {
        (false, _) => magnitude,
        // What would be -0 is the NaN, and its sign bit is set: the least of all.
        (true, FloatSpecials::NanForNegativeZero) if magnitude == 0 => -1 - sign,
        (true, _) => -1 - magnitude,
    }
}
