//! What arithmetic does with subnormal numbers.

use helio_ir::types::C128;
use helio_ir::{Array, ArrayData, ElementType, Literal, Native, Number, Result};

/// What arithmetic does with subnormal numbers: those so close to zero that their mantissa is not full.
///
/// It is about `f32`, `f64`, `bf16` and complex numbers. `f16` and the floats of 8 and 4 bits keep their
/// subnormal numbers either way: processors compute with them in a wider type. So does all that moves
/// numbers or works on their sign bit alone (`select`, `negate`, `abs`, `bitcast-convert`, `real`), total
/// orders, and conversions that leave the exponent as wide as it is (`f32` and `bf16`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subnormals {
    /// Operands that are subnormal count as zeros of their sign, and results that would be subnormal
    /// become such zeros: as XLA and accelerators have it. Processors take up to a hundred times as long
    /// for an operation on a subnormal number as for another.
    #[default]
    Flush,
    /// They are numbers like any other, as IEEE 754 has it.
    Keep,
}

impl Subnormals {
    /// Both.
    pub const ALL: [Subnormals; 2] = [Subnormals::Flush, Subnormals::Keep];

    /// `flush` or `keep`.
    pub fn name(self) -> &'static str {
        match self {
            Subnormals::Flush => "flush",
            Subnormals::Keep => "keep",
        }
    }

    /// The one of this [name](Subnormals::name).
    pub fn named(name: &str) -> Option<Self> {
        Subnormals::ALL.into_iter().find(|subnormals| subnormals.name() == name)
    }

    /// Of arithmetic on numbers of a type.
    pub(crate) fn of(self, element: ElementType) -> Flush {
        let keeps = self == Subnormals::Keep;
        Flush(if keeps { 0.0 } else { least(element) })
    }

    /// The value as an operation on whole arrays sees it, or gives it.
    pub(crate) fn in_arrays(self, value: Literal) -> Result<Literal> {
        match value {
            Literal::Array(array) => self.of(array.element()).array(array).map(Literal::Array),
            Literal::Tuple(elements) => {
                let elements = elements.into_iter().map(|element| self.in_arrays(element));
                elements.collect::<Result<_>>().map(Literal::Tuple)
            }
            Literal::Token => Ok(Literal::Token),
        }
    }

    /// Of conversions from one type to another.
    pub(crate) fn of_conversion(self, from: ElementType, to: ElementType) -> Flush {
        let (from, to) = (from.real_part(), to.real_part());
        let is_moved = from == to || (has_range_of_f32(from) && has_range_of_f32(to));
        let keeps = self == Subnormals::Keep || is_moved;
        Flush(if keeps { 0.0 } else { least(from).max(least(to)) })
    }
}

/// The smallest number of a type that no operation takes for zero: a number that is rounded to the
/// smallest normal one counts as that, if it would be with an exponent of any width.
fn least(element: ElementType) -> f64 {
    match element {
        ElementType::F32 | ElementType::BF16 | ElementType::C64 => {
            f64::from(f32::MIN_POSITIVE) - 2f64.powi(-151)
        }
        ElementType::F64 | ElementType::C128 => f64::MIN_POSITIVE,
        _ => 0.0,
    }
}

/// Whether the numbers of a float type are numbers of `f32` with fewer bits of mantissa, so that to
/// convert them is to move them.
fn has_range_of_f32(element: ElementType) -> bool {
    matches!(element, ElementType::F32 | ElementType::BF16 | ElementType::F8E8M0FNU)
}

/// Takes numbers that are smaller than this for zero; none if it is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flush(f64);

impl Flush {
    /// Takes no number for zero.
    pub(crate) const NOTHING: Flush = Flush(0.0);

    /// The number, or the zero of its sign.
    pub(crate) fn real(self, x: f64) -> f64 {
        if x.abs() < self.0 { 0f64.copysign(x) } else { x }
    }

    /// [`Flush::real`] of both parts.
    pub(crate) fn complex(self, z: C128) -> C128 {
        C128::new(self.real(z.re), self.real(z.im))
    }

    /// [`Flush::real`] of a number, or of its parts.
    pub(crate) fn number(self, number: Number) -> Number {
        match number {
            Number::Float(x) => Number::Float(self.real(x)),
            Number::Complex(z) => Number::Complex(self.complex(z)),
            Number::Int(_) | Number::Pred(_) => number,
        }
    }

    /// [`Flush::number`] of each element.
    fn array(self, array: Array) -> Result<Array> {
        let data = match array.data() {
            ArrayData::BF16(values) => self.values(values),
            ArrayData::F32(values) => self.values(values),
            ArrayData::F64(values) => self.values(values),
            ArrayData::C64(values) => self.values(values),
            ArrayData::C128(values) => self.values(values),
            _ => None,
        };
        match data {
            Some(data) => {
                let sizes = array.sizes().to_vec();
                Array::from_data(array.shape().clone(), data)?.with_sizes(sizes)
            }
            None => Ok(array),
        }
    }

    /// [`Flush::number`] of each value; `None` if that is the value.
    #[expect(clippy::eq_op, reason = "of all numbers only NaN is unlike itself")]
    fn values<T: Native>(self, values: &[T]) -> Option<ArrayData> {
        let changed = |x: T| {
            let number = x.to_number();
            let flushed = self.number(number);
            // (NaN is unlike itself, and has bits that are no part of the number.)
            (flushed != number && x == x).then(|| T::from_number(flushed))
        };
        values.iter().find_map(|&x| changed(x))?;
        Some(T::wrap(values.iter().map(|&x| changed(x).unwrap_or(x)).collect()))
    }
}
