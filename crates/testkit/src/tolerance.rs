//! How results compare with expected values.

use helio::ir::{Native, Number, dispatch};
use helio::{Array, Literal};

/// How far a float may lie from the one expected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Tolerance {
    /// Not at all: NaN equals any NaN, -0 differs from +0.
    #[default]
    Exact,
    /// By at most this many representable values of its type.
    Ulp(u64),
    /// By `atol + rtol * |expected|`.
    Distance {
        /// Relative part.
        rtol: f64,
        /// Absolute part.
        atol: f64,
    },
}

impl Tolerance {
    /// Compares literals of one shape. `Err` says where and how they differ first. Elements beyond
    /// the run-time size of a dynamic dimension are not compared.
    pub fn compare(self, found: &Literal, expected: &Literal) -> Result<(), String> {
        match (found, expected) {
            (Literal::Array(x), Literal::Array(y)) => self.compare_arrays(x, y),
            (Literal::Tuple(xs), Literal::Tuple(ys)) if xs.len() == ys.len() => {
                xs.iter().zip(ys).enumerate().try_for_each(|(i, (x, y))| {
                    self.compare(x, y).map_err(|e| format!("element {i}: {e}"))
                })
            }
            (Literal::Token, Literal::Token) => Ok(()),
            _ => Err(format!("found {}, expected {}", found.shape(), expected.shape())),
        }
    }

    fn compare_arrays(self, found: &Array, expected: &Array) -> Result<(), String> {
        if found.element() != expected.element() || found.sizes() != expected.sizes() {
            return Err(format!(
                "found {} of sizes {:?}, expected {} of sizes {:?}",
                found.shape(),
                found.sizes(),
                expected.shape(),
                expected.sizes()
            ));
        }
        let place = |array: &Array, point: &[usize]| -> usize {
            let strides = helio::unstable::ir::types::strides(array.dims());
            point.iter().zip(strides).map(|(&i, stride)| i * stride).sum()
        };
        let mut points = helio::unstable::ir::types::IndexIter::new(found.sizes());
        while let Some(point) = points.next_point() {
            let (i, j) = (place(found, point), place(expected, point));
            let (x, y) = (found.number(i), expected.number(j));
            let part_bits = found.element().real_part().bits();
            let close = match (x, y) {
                (Number::Float(a), Number::Float(b)) => {
                    self.close(a, b, found.bits(i), expected.bits(j), part_bits)
                }
                (Number::Complex(a), Number::Complex(b)) => {
                    let (fx, fy) = (found.bits(i), expected.bits(j));
                    let high = |bits: u128| bits >> part_bits;
                    self.close(a.re, b.re, low(fx, part_bits), low(fy, part_bits), part_bits)
                        && self.close(a.im, b.im, high(fx), high(fy), part_bits)
                }
                _ => x == y,
            };
            if !close {
                return Err(format!("at {point:?}: found {x:?}, expected {y:?} ({self:?})"));
            }
        }
        Ok(())
    }

    fn close(self, x: f64, y: f64, x_bits: u128, y_bits: u128, width: usize) -> bool {
        if x_bits == y_bits || (x.is_nan() && y.is_nan()) {
            return true;
        }
        match self {
            Tolerance::Exact => false,
            Tolerance::Ulp(ulps) => {
                let distance = ordinal(x_bits, width).abs_diff(ordinal(y_bits, width));
                x.is_nan() == y.is_nan() && distance <= ulps.into()
            }
            Tolerance::Distance { rtol, atol } => {
                x == y || (y.is_finite() && (x - y).abs() <= atol + rtol * y.abs())
            }
        }
    }
}

fn low(bits: u128, width: usize) -> u128 {
    bits & (u128::MAX >> (128 - width))
}

/// Numbers the representable values of a format in ascending order; both zeros are 0.
fn ordinal(bits: u128, width: usize) -> i128 {
    let sign = 1u128 << (width - 1);
    let magnitude = (bits & (sign - 1)) as i128;
    if bits & sign == 0 { magnitude } else { -magnitude }
}

/// The bits of all elements, for tests that want them all.
pub fn all_bits(array: &Array) -> Vec<u128> {
    dispatch!(array.data(), values => values.iter().map(|&v| Native::to_bits(v)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_tells_zeros_apart_and_takes_any_nan() {
        let exact = |x: f32, y: f32| {
            Tolerance::Exact.compare(&Literal::scalar(x), &Literal::scalar(y)).is_ok()
        };
        assert!(exact(f32::NAN, -f32::NAN));
        assert!(!exact(0.0, -0.0));
        assert!(!exact(f32::NAN, 1.0));
    }

    #[test]
    fn ulps_count_across_zero() {
        let within = |ulps, x: f32, y: f32| {
            Tolerance::Ulp(ulps).compare(&Literal::scalar(x), &Literal::scalar(y)).is_ok()
        };
        let tiny = f32::from_bits(1);
        assert!(within(2, tiny, -tiny));
        assert!(!within(1, tiny, -tiny));
        assert!(!within(u64::MAX, f32::NAN, f32::INFINITY));
    }
}
