//! Comparing results with those expected.

use helio::ir::{Array, Number};

/// How far a float may lie from the one expected: `atol + rtol * |expected|`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    rtol: f64,
    atol: f64,
}

impl Tolerance {
    /// As the user says; else 1e-4 each, 3e-2 for floats of 16 bits or fewer. Integers and `pred`
    /// must be equal.
    pub(crate) fn of(array: &Array, rtol: Option<f64>, atol: Option<f64>) -> Self {
        let element = array.element();
        if !element.is_float() && !element.is_complex() {
            return Tolerance { rtol: 0.0, atol: 0.0 };
        }
        let default = if element.bits() <= 16 { 3e-2 } else { 1e-4 };
        Tolerance { rtol: rtol.unwrap_or(default), atol: atol.unwrap_or(default) }
    }

    fn allows(self, found: f64, expected: f64) -> bool {
        found == expected
            || (found.is_nan() && expected.is_nan())
            || (expected.is_finite()
                && (found - expected).abs() <= self.atol + self.rtol * expected.abs())
    }
}

/// What [`compare`] found.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) elements: usize,
    pub(crate) differing: usize,
    /// The first element that differs: its index, the value found, the value expected.
    pub(crate) first: Option<(Vec<usize>, String, String)>,
    /// The largest distance of finite values.
    pub(crate) max_distance: f64,
}

/// Compares arrays of one shape, element by element (beyond the run-time size of a dynamic
/// dimension nothing is compared).
pub(crate) fn compare(found: &Array, expected: &Array, tolerance: Tolerance) -> Comparison {
    let mut result = Comparison { elements: 0, differing: 0, first: None, max_distance: 0.0 };
    let strides = helio::unstable::ir::types::strides(found.dims());
    let mut points = helio::unstable::ir::types::IndexIter::new(found.sizes());
    while let Some(point) = points.next_point() {
        let at = point.iter().zip(&strides).map(|(&i, &stride)| i * stride).sum();
        let (x, y) = (found.number(at), expected.number(at));
        result.elements += 1;
        for (x, y) in parts(x).into_iter().zip(parts(y)) {
            let distance = (x - y).abs();
            if distance.is_finite() {
                result.max_distance = result.max_distance.max(distance);
            }
        }
        let equal = match (x, y) {
            (Number::Int(x), Number::Int(y)) => x == y,
            _ => parts(x).into_iter().zip(parts(y)).all(|(x, y)| tolerance.allows(x, y)),
        };
        if !equal {
            result.differing += 1;
            result.first.get_or_insert_with(|| {
                let text = |n| crate::show::number(n);
                (point.to_vec(), text(x), text(y))
            });
        }
    }
    result
}

fn parts(number: Number) -> Vec<f64> {
    match number {
        Number::Complex(value) => vec![value.re, value.im],
        real => vec![real.to_f64()],
    }
}
