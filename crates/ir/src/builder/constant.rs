//! The builder's methods for parameters, constants and iota.

use super::{XlaBuilder, XlaOp, array, check};
use crate::ops::{Constant, Iota, Parameter};
use crate::types::{Array, C64, C128};
use crate::{ArrayShape, ElementType, Error, Literal, Native, Shape, dispatch_type, memory};

impl XlaBuilder {
    /// Parameter `number` of the computation, which gets `name` with a number; a layout is kept.
    ///
    /// Errors: `builder.C2`, reported by `build`. Source: XLA's `Parameter`.
    #[track_caller]
    pub fn parameter(&self, number: usize, shape: impl Into<Shape>, name: &str) -> XlaOp {
        let shape = shape.into();
        let op = Parameter { number, shape: shape.clone() };
        self.apply_named(op, &[], Some(name), Some(shape))
    }

    /// A value known beforehand. Source: XLA's `ConstantLiteral`.
    #[track_caller]
    pub fn constant_literal(&self, literal: impl Into<Literal>) -> XlaOp {
        self.apply(Constant::new(literal), &[])
    }

    /// A scalar. Source: XLA's `ConstantR0`.
    #[track_caller]
    pub fn constant_r0<T: Native>(&self, value: T) -> XlaOp {
        self.constant_literal(Literal::scalar(value))
    }

    /// A vector. Source: XLA's `ConstantR1`.
    #[track_caller]
    pub fn constant_r1<T: Native>(&self, values: &[T]) -> XlaOp {
        let literal = Literal::array([values.len()], values.to_vec());
        self.constant_literal(check!(self, literal))
    }

    /// A matrix of equally long rows. Errors: `literal.C1`. Source: XLA's `ConstantR2`.
    ///
    /// ```
    /// # use helio_ir::builder::XlaBuilder;
    /// let b = XlaBuilder::new("b");
    /// b.constant_r2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(b.build()?.program_shape().result.to_string(), "f64[2,3]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn constant_r2<T: Native>(&self, rows: &[impl AsRef<[T]>]) -> XlaOp {
        let columns = rows.first().map_or(0, |row| row.as_ref().len());
        let ragged = rows.iter().position(|row| row.as_ref().len() != columns);
        if let Some(row) = ragged {
            let detail = format!("row {row} does not have the {columns} elements of the first");
            return self.report_error(Error::rule("literal.C1", detail));
        }
        let values: Vec<T> = rows.iter().flat_map(|row| row.as_ref()).copied().collect();
        self.constant_literal(check!(self, Literal::array([rows.len(), columns], values)))
    }

    /// An array of any rank from its elements in row-major order. Errors: `shape.C1`, `shape.C2`,
    /// `literal.C1`. Source: XLA's `ConstantFromArray`.
    #[track_caller]
    pub fn constant_array<T: Native>(&self, dims: impl Into<Vec<usize>>, values: &[T]) -> XlaOp {
        self.constant_literal(check!(self, Literal::array(dims, values.to_vec())))
    }

    /// A vector of equal elements, as a constant. Errors: `ResourceExhausted`. Source: XLA's
    /// `ConstantR1(length, value)`.
    #[track_caller]
    pub fn constant_r1_filled<T: Native>(&self, length: usize, value: T) -> XlaOp {
        let shape = check!(self, ArrayShape::new(T::TYPE, [length]));
        check!(self, memory::ensure_available(shape.size_bytes()));
        self.constant_literal(check!(self, Literal::array([length], vec![value; length])))
    }

    /// The scalar 0 of a type; false. Errors: `Unimplemented` for a type without zero. Source:
    /// XLA's `Zero`.
    #[track_caller]
    pub fn zero(&self, element: ElementType) -> XlaOp {
        self.special(element, "zero", |s| s.zero)
    }

    /// The scalar 1 of a type; true. Source: XLA's `One`.
    #[track_caller]
    pub fn one(&self, element: ElementType) -> XlaOp {
        self.special(element, "one", |s| s.one)
    }

    /// The least value of a type: minus infinity for floats that have it; false. Errors:
    /// `Unimplemented` for complex types. Source: XLA's `MinValue`, E4 "ReduceWindow".
    #[track_caller]
    pub fn min_value(&self, element: ElementType) -> XlaOp {
        self.special(element, "least value", |s| s.min)
    }

    /// The greatest value of a type: infinity for floats that have it; true. Errors:
    /// `Unimplemented` for complex types. Source: XLA's `MaxValue`.
    #[track_caller]
    pub fn max_value(&self, element: ElementType) -> XlaOp {
        self.special(element, "greatest value", |s| s.max)
    }

    /// The least finite value of a type. Errors: as for [`XlaBuilder::min_value`]. Source: XLA's
    /// `MinFiniteValue`.
    #[track_caller]
    pub fn min_finite_value(&self, element: ElementType) -> XlaOp {
        self.special(element, "least finite value", |s| s.min_finite)
    }

    /// The greatest finite value of a type. Errors: as for [`XlaBuilder::max_value`]. Source: XLA's
    /// `MaxFiniteValue`.
    #[track_caller]
    pub fn max_finite_value(&self, element: ElementType) -> XlaOp {
        self.special(element, "greatest finite value", |s| s.max_finite)
    }

    #[track_caller]
    fn special(
        &self,
        element: ElementType,
        what: &str,
        pick: impl Fn(&Special) -> Option<u128>,
    ) -> XlaOp {
        let bits = pick(&Special::of(element))
            .ok_or_else(|| Error::unimplemented(format!("{element} has no {what}")));
        let bits = check!(self, bits);
        let array = dispatch_type!(element, T => Array::scalar(<T as Native>::from_bits(bits)));
        self.constant_literal(array)
    }

    /// Counts up from 0 along a dimension. Floats: the integers converted.
    ///
    /// Shapes: the result has `shape`. Errors: the rules of `iota`, `builder.C5`. Source: E4
    /// "Iota".
    #[track_caller]
    pub fn iota(&self, shape: impl Into<Shape>, dimension: usize) -> XlaOp {
        let shape = check!(self, array(shape)).without_layout();
        self.apply(Iota { shape, dimension }, &[])
    }

    /// The vector 0, 1, 2 …. Errors: the rules of `iota`. Source: XLA's `Iota(type, size)`.
    #[track_caller]
    pub fn iota_r1(&self, element: ElementType, size: usize) -> XlaOp {
        let shape = check!(self, Shape::array(element, [size]));
        self.iota(shape, 0)
    }
}

/// The bits of a type's special values.
struct Special {
    zero: Option<u128>,
    one: Option<u128>,
    min: Option<u128>,
    max: Option<u128>,
    min_finite: Option<u128>,
    max_finite: Option<u128>,
}

impl Special {
    fn of(element: ElementType) -> Self {
        let bits = element.bits();
        let all = |bits: usize| u128::MAX >> (128 - bits);
        let integer = |min, max| Special {
            zero: Some(0),
            one: Some(1),
            min: Some(min),
            max: Some(max),
            min_finite: Some(min),
            max_finite: Some(max),
        };
        match element {
            ElementType::Pred => integer(0, 1),
            _ if element.is_unsigned_integer() => integer(0, all(bits)),
            _ if element.is_signed_integer() => integer(1 << (bits - 1), all(bits - 1)),
            ElementType::C64 => Special::complex(C64::new(1.0, 0.0)),
            ElementType::C128 => Special::complex(C128::new(1.0, 0.0)),
            _ => dispatch_type!(element, T => Special::float::<T>()),
        }
    }

    fn complex<T: Native>(one: T) -> Self {
        let one = Some(one.to_bits());
        Special { zero: Some(0), one, min: None, max: None, min_finite: None, max_finite: None }
    }

    /// Found by asking the type: formats differ in whether there are infinities, zeros and signs.
    fn float<T: Native>() -> Self {
        let value = |v: f64| T::from_number(crate::Number::Float(v));
        let exact = |v: f64| {
            let converted = value(v);
            (converted.to_number().to_f64() == v).then(|| converted.to_bits())
        };
        // The greatest finite value has the greatest bits (without sign) that are a finite number.
        let bits = T::TYPE.bits();
        let signed = value(-1.0).to_number().to_f64() == -1.0;
        let magnitudes = if signed { bits - 1 } else { bits };
        let finite = |candidate: u128| {
            let number = T::from_bits(candidate).to_number().to_f64();
            number.is_finite().then_some(candidate)
        };
        // All finite magnitudes lie below the special ones, so halving finds the border.
        let (mut low, mut high) = (0u128, 1u128 << magnitudes);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match finite(middle) {
                Some(_) => low = middle,
                None => high = middle,
            }
        }
        let sign = if signed { 1u128 << (bits - 1) } else { 0 };
        let (max_finite, min_finite) = (low, if signed { low | sign } else { 0 });
        Special {
            zero: exact(0.0),
            one: exact(1.0),
            min: exact(f64::NEG_INFINITY).or(Some(min_finite)),
            max: exact(f64::INFINITY).or(Some(max_finite)),
            min_finite: Some(min_finite),
            max_finite: Some(max_finite),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn value(bits: Option<u128>, element: ElementType) -> f64 {
        let bits = bits.unwrap_or_else(|| panic!("{element} has the value"));
        dispatch_type!(element, T => <T as Native>::from_bits(bits).to_number().to_f64())
    }

    /// Expected values: ml_dtypes.finfo (numpy) of each type.
    #[test]
    fn special_values_of_floats() {
        use ElementType::*;
        let cases = [
            (F4E2M1FN, -6.0, 6.0, 6.0),
            (F8E3M4, f64::NEG_INFINITY, f64::INFINITY, 15.5),
            (F8E4M3, f64::NEG_INFINITY, f64::INFINITY, 240.0),
            (F8E4M3FN, -448.0, 448.0, 448.0),
            (F8E4M3B11FNUZ, -30.0, 30.0, 30.0),
            (F8E4M3FNUZ, -240.0, 240.0, 240.0),
            (F8E5M2, f64::NEG_INFINITY, f64::INFINITY, 57344.0),
            (F8E5M2FNUZ, -57344.0, 57344.0, 57344.0),
            (F16, f64::NEG_INFINITY, f64::INFINITY, 65504.0),
            (BF16, f64::NEG_INFINITY, f64::INFINITY, 3.389_531_389_251_535_5e38),
            (F32, f64::NEG_INFINITY, f64::INFINITY, f64::from(f32::MAX)),
            (F64, f64::NEG_INFINITY, f64::INFINITY, f64::MAX),
        ];
        for (element, min, max, max_finite) in cases {
            let special = Special::of(element);
            assert_eq!(value(special.min, element), min, "{element}");
            assert_eq!(value(special.max, element), max, "{element}");
            assert_eq!(value(special.max_finite, element), max_finite, "{element}");
            assert_eq!(value(special.min_finite, element), -max_finite, "{element}");
            assert_eq!(value(special.zero, element), 0.0, "{element}");
            assert_eq!(value(special.one, element), 1.0, "{element}");
        }
        let special = Special::of(F8E8M0FNU);
        assert_eq!(special.zero, None);
        assert_eq!(value(special.max, F8E8M0FNU), 2f64.powi(127));
        assert_eq!(value(special.min, F8E8M0FNU), 2f64.powi(-127));
    }

    #[test]
    fn special_values_of_integers() {
        use ElementType::*;
        let cases = [
            (Pred, 0.0, 1.0),
            (S2, -2.0, 1.0),
            (S4, -8.0, 7.0),
            (S64, -9223372036854775808.0, 9223372036854775807.0),
            (U4, 0.0, 15.0),
            (U32, 0.0, 4294967295.0),
        ];
        for (element, min, max) in cases {
            let special = Special::of(element);
            assert_eq!(value(special.min, element), min, "{element}");
            assert_eq!(value(special.max, element), max, "{element}");
        }
        assert_eq!(Special::of(C64).min, None);
        assert_eq!(value(Special::of(C128).one, C128), 1.0);
    }
}
