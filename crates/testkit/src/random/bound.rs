//! What is known of a value before it is computed: its range, and how far two engines that both
//! compute rightly may be apart.

use helio::ElementType;

use crate::tolerance::Tolerance;

/// How alike the results of two engines must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// All bits (any NaN is any other).
    Bits,
    /// The numbers; zeros may differ in sign.
    Numbers,
    /// As far apart as the errors allow.
    Near,
}

/// What is known of the elements of a value; of complex ones, of their parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// No element is less or greater, apart from NaN and infinities of special values.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) likeness: Likeness,
    /// How far a near element may be off.
    pub(super) error: f64,
    /// How far it may be off in relation to itself; infinite if that is not known.
    pub(super) relative: f64,
    /// Whether all elements are whole numbers.
    pub(super) whole: bool,
    /// Whether elements may be NaN, infinite or extreme: such are only moved and compared.
    pub(super) special: bool,
}

/// Ulps by which a transcendental function may be off: two engines of two each.
const FUNCTION_ULPS: f64 = 4.0;

impl Bound {
    /// Of values that engines agree on in all bits.
    pub(super) fn exact(low: f64, high: f64, whole: bool) -> Self {
        Bound {
            low,
            high,
            likeness: Likeness::Bits,
            error: 0.0,
            relative: 0.0,
            whole,
            special: false,
        }
    }

    /// Of any values of a type; integers and `pred` may have all values, floats are special.
    pub(super) fn any(element: ElementType) -> Self {
        let bits = element.bits() as i32;
        match element {
            e if e.is_pred() => Self::exact(0.0, 1.0, true),
            e if e.is_unsigned_integer() => Self::exact(0.0, 2f64.powi(bits), true),
            e if e.is_integer() => Self::exact(-2f64.powi(bits - 1), 2f64.powi(bits - 1), true),
            _ => Bound { special: true, ..Self::exact(f64::NEG_INFINITY, f64::INFINITY, false) },
        }
    }

    /// The greatest magnitude.
    pub(super) fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Whether engines agree on the numbers, so that what jumps may be asked of them.
    pub(super) fn is_exact(&self) -> bool {
        self.likeness < Likeness::Near
    }

    /// Whether they are ordinary numbers, to be computed with.
    pub(super) fn is_plain(&self) -> bool {
        !self.special
    }

    /// Of values that come from either.
    pub(super) fn or(self, other: Bound) -> Bound {
        Bound {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            likeness: self.likeness.max(other.likeness),
            error: self.error.max(other.error),
            relative: self.relative.max(other.relative),
            whole: self.whole && other.whole,
            special: self.special || other.special,
        }
    }

    /// Of sums and products that must come out as these numbers if they are whole and small
    /// enough, and else may be off by what the operands are off and by `roundings`.
    pub(super) fn arithmetic(
        element: ElementType,
        [low, high]: [f64; 2],
        operands: &[Bound],
        error: f64,
        relative: f64,
        roundings: f64,
    ) -> Option<Bound> {
        let precision = Precision::of(element)?;
        let exact = operands.iter().all(|b| b.is_exact() && b.whole);
        let magnitude = low.abs().max(high.abs());
        if exact && magnitude <= precision.whole {
            return Some(Bound { likeness: Likeness::Numbers, ..Bound::exact(low, high, true) });
        }
        let error = error + roundings * precision.ulp * magnitude;
        Self::near(precision, [low, high], error, relative + roundings * precision.ulp)
    }

    /// Of a function's values: `error` and `relative` are what the operands' errors make of them.
    pub(super) fn function(
        element: ElementType,
        [low, high]: [f64; 2],
        error: f64,
        relative: f64,
    ) -> Option<Bound> {
        let precision = Precision::of(element)?;
        let ulps = FUNCTION_ULPS * precision.ulp;
        Self::near(
            precision,
            [low, high],
            error + ulps * low.abs().max(high.abs()),
            relative + ulps,
        )
    }

    /// `None` if the errors would hide mistakes, or values leave the range of the type.
    fn near(
        precision: Precision,
        [low, high]: [f64; 2],
        error: f64,
        relative: f64,
    ) -> Option<Bound> {
        let magnitude = low.abs().max(high.abs());
        let (error, likeness) = (error + precision.tiny, Likeness::Near);
        let telling = error <= 0.05 * magnitude.max(0.1) && magnitude <= precision.most;
        telling.then_some(Bound {
            low: low - error,
            high: high + error,
            likeness,
            error,
            relative,
            whole: false,
            special: false,
        })
    }

    /// How results are compared.
    pub(super) fn tolerance(&self, element: ElementType) -> Tolerance {
        match self.likeness {
            Likeness::Bits => Tolerance::Exact,
            Likeness::Numbers => Tolerance::Distance { rtol: 0.0, atol: 0.0 },
            Likeness::Near if self.relative.is_finite() => {
                let tiny = Precision::of(element).map_or(0.0, |precision| precision.tiny);
                Tolerance::Distance { rtol: self.relative, atol: tiny }
            }
            Likeness::Near => Tolerance::Distance { rtol: 0.0, atol: self.error },
        }
    }
}

/// What computing in a type costs in precision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// The distance of 1 from the next number.
    pub(super) ulp: f64,
    /// Whole numbers up to this are exact.
    pub(super) whole: f64,
    /// The least normal number.
    pub(super) tiny: f64,
    /// Magnitudes beyond this are avoided.
    pub(super) most: f64,
}

impl Precision {
    /// `None` for types that are not computed in: integers, and floats of 8 bits and fewer.
    pub(super) fn of(element: ElementType) -> Option<Self> {
        let element = element.real_part();
        let format = element.float_format().filter(|_| element.bits() >= 16)?;
        let mantissa = format.mantissa_bits as i32;
        Some(Precision {
            ulp: 2f64.powi(-mantissa),
            whole: 2f64.powi(mantissa),
            tiny: 2f64.powi(format.min_exponent()),
            most: if element.bits() == 16 { 1e3 } else { 1e5 },
        })
    }
}
