//! Random arguments, with which a program is tried out.

use helio_ir::{
    Array, ArrayShape, Error, Literal, Native, Number, Result, Shape, dispatch_type, memory,
};
use oorandom::Rand64;

/// Random values for parameters of these shapes; the same seed gives the same values on every
/// machine. Floats (and parts of complex numbers) are normally distributed, as data usually is;
/// integers lie in 0..100, so that they serve as indices; `pred` is a coin toss.
///
/// Errors: `ResourceExhausted` if memory does not suffice; `Unimplemented` for opaque shapes.
///
/// ```
/// let shape = helio::Shape::array(helio::ElementType::F32, [2, 3])?;
/// let arguments = helio::random_arguments(std::slice::from_ref(&shape), 1)?;
/// assert_eq!(arguments[0].shape(), shape);
/// assert_eq!(helio::random_arguments(&[shape], 1)?, arguments);
/// # Ok::<(), helio::Error>(())
/// ```
pub fn random_arguments(shapes: &[Shape], seed: u64) -> Result<Vec<Literal>> {
    let mut rng = Rand64::new(seed.into());
    shapes.iter().map(|shape| random_literal(shape, &mut rng)).collect()
}

fn random_literal(shape: &Shape, rng: &mut Rand64) -> Result<Literal> {
    match shape {
        Shape::Array(array) => random_array(array, rng).map(Literal::Array),
        Shape::Tuple(elements) => elements
            .iter()
            .map(|element| random_literal(element, rng))
            .collect::<Result<_>>()
            .map(Literal::Tuple),
        Shape::Token => Ok(Literal::Token),
        Shape::Opaque => Err(Error::unimplemented("a random value of opaque shape")),
    }
}

fn random_array(shape: &ArrayShape, rng: &mut Rand64) -> Result<Array> {
    memory::ensure_available(shape.size_bytes())?;
    let element = shape.element();
    let mut number = || match element {
        e if e.is_pred() => Number::Pred(rng.rand_u64() & 1 == 1),
        e if e.is_integer() => Number::Int(rng.rand_range(0..small_limit(e.bits())).into()),
        e if e.is_complex() => {
            Number::Complex(helio_ir::types::C128::new(normal(rng), normal(rng)))
        }
        _ => Number::Float(normal(rng)),
    };
    let data = dispatch_type!(element, T => {
        T::wrap((0..shape.element_count()).map(|_| T::from_number(number())).collect())
    });
    Array::from_data(shape.clone(), data)
}

/// Up to 100, less for types that do not reach so far.
fn small_limit(bits: usize) -> u64 {
    if bits >= 8 { 100 } else { 1 << (bits - 1) }
}

/// Box–Muller; the logarithm's argument is never 0.
fn normal(rng: &mut Rand64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.rand_float()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.rand_float()).cos()
}
