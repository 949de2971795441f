//! Sums of products, the core of `dot` and `convolution`.
//!
//! Operands are first laid out anew, converted to the type in which sums are formed: `f64` for real
//! floating-point results and `C128` for complex ones, wide enough that the one rounding at the end
//! decides the result; `i64` for integers, which agrees with any narrower type modulo its width;
//! `bool` for `pred`, where sum is or and product is and. Loops then run over plain slices.

mod algorithm;

use helio_ir::memory::Counted;
use helio_ir::types::{BF16, C128, F16};
use helio_ir::{Array, ArrayShape, ElementType, Native, Number, Result, dispatch, memory};

use crate::Evaluator;
use crate::walk::{Walk, steps};

pub(crate) use algorithm::Algorithm;

/// A type in which sums of products are formed.
pub(crate) trait Term: Copy + Send + Sync + 'static {
    /// The empty sum.
    const ZERO: Self;

    /// The number itself, or what it converts to if sums are of another kind; `sum` is the type of
    /// the result.
    fn of(number: Number, sum: ElementType) -> Self;

    /// `self + a * b`.
    fn add_product(self, a: Self, b: Self) -> Self;

    /// The sum, for conversion to the type of the result.
    fn number(self) -> Number;

    /// What is left of each number after taking away `index` parts of this format, in this format.
    /// Only floating-point numbers have more than one part.
    fn part(self, format: Format, index: usize) -> Self {
        let _ = format;
        if index == 0 { self } else { Self::ZERO }
    }

    /// `self + other`, where `self` counts for nothing if it is NaN.
    fn unless_nan(self, other: Self) -> Self {
        let _ = self;
        other
    }
}

/// The number as its conversion to `element` sees it.
fn converted(number: Number, element: ElementType) -> Number {
    helio_ir::dispatch_type!(element, T => T::from_number(number).to_number())
}

impl Term for bool {
    const ZERO: Self = false;
    fn of(number: Number, _: ElementType) -> Self {
        number.to_bool()
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self | (a & b)
    }
    fn number(self) -> Number {
        Number::Pred(self)
    }
}

impl Term for i64 {
    const ZERO: Self = 0;
    fn of(number: Number, sum: ElementType) -> Self {
        match number {
            // The low bits are all that matters: sums wrap.
            Number::Int(v) => v as i64,
            Number::Pred(v) => v.into(),
            // Floats saturate at the bounds of the result's type.
            other => match converted(other, sum) {
                Number::Int(v) => v as i64,
                _ => 0,
            },
        }
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self.wrapping_add(a.wrapping_mul(b))
    }
    fn number(self) -> Number {
        Number::Int(self.into())
    }
}

impl Term for f64 {
    const ZERO: Self = 0.0;
    fn of(number: Number, _: ElementType) -> Self {
        number.to_f64()
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
    fn number(self) -> Number {
        Number::Float(self)
    }
    fn part(self, format: Format, index: usize) -> Self {
        let mut rest = self;
        for _ in 0..index {
            rest -= format.round(rest);
        }
        format.round(rest)
    }
    fn unless_nan(self, other: Self) -> Self {
        if self.is_nan() { other } else { self + other }
    }
}

impl Term for C128 {
    const ZERO: Self = C128::new(0.0, 0.0);
    fn of(number: Number, _: ElementType) -> Self {
        match number {
            Number::Complex(v) => v,
            real => C128::new(real.to_f64(), 0.0),
        }
    }
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
    fn number(self) -> Number {
        Number::Complex(self)
    }
    fn part(self, format: Format, index: usize) -> Self {
        C128::new(self.re.part(format, index), self.im.part(format, index))
    }
    fn unless_nan(self, other: Self) -> Self {
        C128::new(self.re.unless_nan(other.re), self.im.unless_nan(other.im))
    }
}

/// Evaluates an expression with `$S` standing for the [`Term`] in which sums of this element type
/// are formed.
macro_rules! dispatch_term {
    ($element:expr, $S:ident => $body:expr) => {{
        let element: helio_ir::ElementType = $element;
        if element.is_pred() {
            type $S = bool;
            $body
        } else if element.is_integer() {
            type $S = i64;
            $body
        } else if element.is_float() {
            type $S = f64;
            $body
        } else {
            type $S = helio_ir::types::C128;
            $body
        }
    }};
}
pub(crate) use dispatch_term;

/// A floating-point format to which numbers are rounded on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F16,
    Bf16,
    /// The exponents of `f32` with 10 bits after the point.
    Tf32,
    F32,
    F64,
}

impl Format {
    pub(crate) fn round(self, v: f64) -> f64 {
        match self {
            Format::F16 => F16::from_number(Number::Float(v)).to_f64(),
            Format::Bf16 => BF16::from_number(Number::Float(v)).to_f64(),
            Format::Tf32 => round_to_tf32(v as f32).into(),
            Format::F32 => (v as f32).into(),
            Format::F64 => v,
        }
    }
}

fn round_to_tf32(v: f32) -> f32 {
    if !v.is_finite() {
        return v;
    }
    let bits = v.to_bits();
    let odd = bits >> 13 & 1;
    // Half a unit, less one if that would move a tie away from even; the carry may reach infinity.
    f32::from_bits((bits + 0xfff + odd) & !0x1fff)
}

/// Room for `count` terms, all zero. Errors: `ResourceExhausted`.
pub(crate) fn zeros<S: Term>(count: usize) -> Result<Counted<S>> {
    Ok(Counted::of(count, || vec![S::ZERO; count])?)
}

/// How an operand is laid out anew.
pub(crate) struct Packing<'a> {
    /// The dimensions from the slowest to the fastest; all of them.
    pub order: &'a [usize],
    /// For each dimension of the operand, how many places count; the others become zero.
    pub sizes: &'a [usize],
}

/// The elements as terms, laid out anew. Errors: `ResourceExhausted`.
pub(crate) fn pack<S: Term>(
    evaluator: &Evaluator<'_>,
    array: &Array,
    layout: &Packing<'_>,
    sum: ElementType,
) -> Result<Counted<S>> {
    let dims: Vec<_> = layout.order.iter().map(|&d| array.dims()[d]).collect();
    let (from, to) = (steps(array.dims()), steps(&dims));
    let axes = layout.order.iter().zip(to).map(|(&d, to)| (layout.sizes[d], [from[d], to]));
    let mut packed = zeros(array.data().len())?;
    dispatch!(array.data(), values => {
        Walk::new(evaluator, axes).points([0, 0], |[from, to]| {
            packed[to] = S::of(values[from].to_number(), sum);
            Ok(())
        })?;
    });
    Ok(packed)
}

/// The elements as terms, where they are. Errors: `ResourceExhausted`.
pub(crate) fn terms<S: Term>(array: &Array) -> Result<Counted<S>> {
    let element = array.element();
    Ok(dispatch!(array.data(), values => {
        let terms = values.iter().map(|value| S::of(value.to_number(), element));
        Counted::of(values.len(), || terms.collect())?
    }))
}

/// The sums converted to an array of this shape. They lie with its dimensions in the given order,
/// from the slowest to the fastest. Errors: `ResourceExhausted`.
pub(crate) fn finish<S: Term>(
    evaluator: &Evaluator<'_>,
    sums: &[S],
    order: &[usize],
    shape: &ArrayShape,
) -> Result<Array> {
    memory::ensure_available(shape.size_bytes())?;
    let ordered: Vec<_> = order.iter().map(|&d| shape.dims()[d]).collect();
    let mut by_dim = vec![0; shape.rank()];
    for (&d, step) in order.iter().zip(steps(&ordered)) {
        by_dim[d] = step;
    }
    let axes = shape.dims().iter().zip(by_dim).map(|(&size, step)| (size, [step]));
    let data = helio_ir::dispatch_type!(shape.element(), T => {
        let mut values = Vec::with_capacity(shape.element_count());
        Walk::new(evaluator, axes).points([0], |[from]| {
            values.push(T::from_number(sums[from].number()));
            Ok(())
        })?;
        T::wrap(values)
    });
    Array::from_data(shape.clone(), data)
}

/// The numbers converted to an array of this shape, in its own order.
pub(crate) fn finish_in_order<S: Term>(sums: &[S], shape: &ArrayShape) -> Result<Array> {
    memory::ensure_available(shape.size_bytes())?;
    let data = helio_ir::dispatch_type!(shape.element(), T => {
        T::wrap(sums.iter().map(|sum| T::from_number(sum.number())).collect())
    });
    Array::from_data(shape.clone(), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf32_rounds_to_nearest_even_at_ten_bits() {
        let unit = 2f64.powi(-10);
        for (v, expected) in [
            (1.0 + unit / 2.0, 1.0),
            (1.0 + 1.5 * unit, 1.0 + 2.0 * unit),
            (1.0 + 0.51 * unit, 1.0 + unit),
            (-1.0 - 1.5 * unit, -1.0 - 2.0 * unit),
            (f64::from(f32::MAX), f64::INFINITY),
            (0.0, 0.0),
        ] {
            assert_eq!(Format::Tf32.round(v), expected, "{v}");
        }
        assert!(Format::Tf32.round(f64::NAN).is_nan());
    }

    #[test]
    fn parts_add_up_to_an_f32() {
        let v = f64::from(std::f32::consts::PI);
        let parts: Vec<f64> = (0..3).map(|i| v.part(Format::Bf16, i)).collect();
        assert_eq!(parts.iter().sum::<f64>(), v);
        assert_eq!(parts[0], 3.140625);
    }
}
