//! Random numbers: `rng-bit-generator`, `rng`, `rng-get-and-update-state`.
//!
//! The bits of `rng-bit-generator` and its next state are XLA's to the bit. The sequence of `rng` is
//! implementation-defined: here one Philox stream for each run, whose key is the seed and whose
//! counter is [`Evaluator::draws`], so the same seed and program give the same numbers.

#[cfg(test)]
mod tests;

mod generators;

use helio_ir::ops::{Distribution, RngAlgorithm};
use helio_ir::{
    Array, ArrayShape, ElementType, Error, Literal, Native, Number, Result, Shape, dispatch_type,
    memory, ops,
};

use crate::Evaluator;
use crate::frame::{array, array_shape};
use crate::walk::{ELEMENTS_PER_STEP, Walk, steps};
use generators::{philox, philox_pair, threefry};

/// (next state, bits)
pub(crate) fn rng_bit_generator(
    op: &ops::RngBitGenerator,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let state = array(args, 0)?;
    let (mut next, bits) = (state.clone(), ensure_bits(&op.shape)?);
    let _words = memory::reserve(op.shape.element_count().saturating_mul(size_of::<u64>()))?;
    let words = match (op.algorithm, state.values::<u64>()?) {
        (RngAlgorithm::ThreeFry, &[key, counter]) => {
            let (words, counter) = threefry_words(evaluator, key, counter, op.shape.dims(), bits)?;
            set_words(&mut next, &[key, counter]);
            words
        }
        (RngAlgorithm::Philox | RngAlgorithm::Default, &[key, low, high]) => {
            let counter = u128::from(high) << 64 | u128::from(low);
            let (words, counter) =
                philox_words(evaluator, key, counter, op.shape.element_count(), bits)?;
            set_words(&mut next, &[key, counter as u64, (counter >> 64) as u64]);
            words
        }
        (RngAlgorithm::Philox | RngAlgorithm::Default, &[key, low]) => {
            // The key doubles as the counter's high half, which is not kept.
            let counter = u128::from(key) << 64 | u128::from(low);
            let (words, counter) =
                philox_words(evaluator, key, counter, op.shape.element_count(), bits)?;
            set_words(&mut next, &[key, counter as u64]);
            words
        }
        (algorithm, state) => {
            let found = state.len();
            return Err(Error::invalid(format!("{algorithm} with a state of {found} words")));
        }
    };
    let data = dispatch_type!(op.shape.element(), T => {
        T::wrap(words.into_iter().map(|word| <T as Native>::from_bits(word.into())).collect())
    });
    let bits = Array::from_data(op.shape.clone(), data)?;
    Ok(Literal::Tuple(vec![next.into(), bits.into()]))
}

/// The width of the elements to be filled. Errors: `Unimplemented` if one word is too few.
fn ensure_bits(shape: &ArrayShape) -> Result<usize> {
    let bits = shape.element().bits();
    if bits > 64 {
        return Err(Error::unimplemented(format!("random bits for {shape}")));
    }
    Ok(bits)
}

fn set_words(state: &mut Array, words: &[u64]) {
    if let Some(values) = <u64 as Native>::slice_mut(state.data_mut()) {
        values.copy_from_slice(words);
    }
}

/// One word for each element, and the next counter.
fn threefry_words(
    evaluator: &Evaluator<'_>,
    key: u64,
    counter: u64,
    dims: &[usize],
    bits: usize,
) -> Result<(Vec<u64>, u64)> {
    let count = dims.iter().product::<usize>();
    let mut next = counter;
    if bits > 32 {
        let mut words = Vec::with_capacity(count);
        for i in 0..count {
            if i.is_multiple_of(ELEMENTS_PER_STEP) {
                evaluator.count_steps(1)?;
            }
            let [low, high] = threefry(key, next);
            next = next.wrapping_add(1);
            words.push(u64::from(low) | u64::from(high) << 32);
        }
        return Ok((words, next));
    }
    // Each block fills two neighbours along one dimension: the first of even size, else the
    // (first) largest. Blocks are numbered through the array of half that size.
    let dims = if dims.is_empty() { &[1] } else { dims };
    let largest = dims.iter().max();
    let split = dims.iter().position(|size| size % 2 == 0);
    let split = split.or_else(|| dims.iter().position(|size| Some(size) == largest)).unwrap_or(0);
    let (outer, inner) = (&dims[..split], &dims[split + 1..]);
    let (size, stride) = (dims[split], inner.iter().product::<usize>());
    let half = size.div_ceil(2);
    let mut half_steps = steps(dims);
    half_steps[split] *= 2;
    let half_dims = [outer, &[half], inner].concat();
    let mut words = vec![0; count];
    let mut block = 0;
    Walk::new(evaluator, half_dims.into_iter().zip(half_steps.iter().map(|&step| [step]))).points(
        [0],
        |[first]| {
            let [x0, x1] = threefry(key, next);
            next = next.wrapping_add(1);
            words[first] = x0.into();
            // A dimension of odd size has no place for the last second half.
            if 2 * (block / stride % half) + 1 < size {
                words[first + stride] = x1.into();
            }
            block += 1;
            Ok(())
        },
    )?;
    Ok((words, next))
}

/// One word for each element, and the next counter.
fn philox_words(
    evaluator: &Evaluator<'_>,
    key: u64,
    counter: u128,
    count: usize,
    bits: usize,
) -> Result<(Vec<u64>, u128)> {
    let per_block = if bits > 32 { 2 } else { 4 };
    let mut words = Vec::with_capacity(count);
    let mut next = counter;
    while words.len() < count {
        if words.len().is_multiple_of(ELEMENTS_PER_STEP) {
            evaluator.count_steps(1)?;
        }
        let take = per_block.min(count - words.len());
        if bits > 32 {
            words.extend_from_slice(&philox_pair(key, next)[..take]);
        } else {
            words.extend_from_slice(&philox(key, next).map(u64::from)[..take]);
        }
        next = next.wrapping_add(1);
    }
    Ok((words, next))
}

/// Numbers from a distribution with two parameters.
pub(crate) fn rng(
    op: &ops::Rng,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (a, b) = (array(args, 0)?, array(args, 1)?);
    let shape = array_shape(shape)?;
    memory::ensure_available(shape.size_bytes())?;
    let draw = || {
        let counter = evaluator.draws.get();
        evaluator.draws.set(counter.wrapping_add(1));
        philox_pair(evaluator.cx.seed, counter.into())
    };
    let count = shape.element_count();
    let data = dispatch_type!(shape.element(), T => {
        let bounds = (a.values::<T>()?, b.values::<T>()?);
        let (&[a], &[b]) = bounds else { return Err(Error::internal("bounds are scalars")) };
        let mut values = Vec::with_capacity(count);
        for i in 0..count {
            if i.is_multiple_of(ELEMENTS_PER_STEP) {
                evaluator.count_steps(1)?;
            }
            values.push(match op.distribution {
                Distribution::Uniform => uniform(draw(), a, b),
                Distribution::Normal => normal(draw(), a, b),
            });
        }
        T::wrap(values)
    });
    Array::from_data(shape.clone(), data).map(Literal::Array)
}

/// A number in `[a, b)`; if there is none, `a`.
fn uniform<T: Native>(words: [u64; 2], a: T, b: T) -> T {
    match (a.to_number(), b.to_number()) {
        (Number::Int(low), Number::Int(high)) => match high - low {
            // 2^128 values fall on less than 2^64: no value is favoured noticeably.
            range if range > 0 => {
                let word = u128::from(words[1]) << 64 | u128::from(words[0]);
                T::from_number(Number::Int(low + (word % range as u128) as i128))
            }
            _ => a,
        },
        (Number::Float(low), Number::Float(high)) => {
            // As many bits as the type has, so that rounding does not reach `b`.
            let unit = unit_interval(words[0], precision(T::TYPE));
            let width = high - low;
            let value = if width.is_finite() {
                low + unit * width
            } else {
                low * (1.0 - unit) + high * unit
            };
            let value = T::from_number(Number::Float(value));
            // Rounding of the sum may still do so, in a narrow interval far from zero.
            if low < high && value == b { a } else { value }
        }
        // No interval of `pred` has two values: `[false, true)` is `false`.
        _ => a,
    }
}

/// A number of the normal distribution with this mean and standard deviation (Box and Muller).
fn normal<T: Native>(words: [u64; 2], mean: T, deviation: T) -> T {
    // From (0, 1], whose logarithm is finite.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit_interval(words[0], 53)));
    let angle = std::f64::consts::TAU * unit_interval(words[1], 53);
    let (mean, deviation) = (mean.to_number().to_f64(), deviation.to_number().to_f64());
    T::from_number(Number::Float(mean + deviation * radius * libm::cos(angle)))
}

/// The word's top bits as a number in `[0, 1)`; at most 53 bits.
fn unit_interval(word: u64, bits: u32) -> f64 {
    (word >> (64 - bits)) as f64 / (1u64 << bits) as f64
}

/// How many significant bits a number of this type has.
fn precision(element: ElementType) -> u32 {
    match element {
        ElementType::F8E8M0FNU => 1,
        ElementType::F4E2M1FN => 2,
        ElementType::F8E5M2 | ElementType::F8E5M2FNUZ => 3,
        ElementType::F8E3M4 => 5,
        ElementType::BF16 => 8,
        ElementType::F16 => 11,
        ElementType::F32 => 24,
        ElementType::F64 => 53,
        _ => 4,
    }
}

/// The counter and the seed of the stream that [`rng`] draws from; the counter then advances.
pub(crate) fn get_and_update_state(
    op: &ops::RngGetAndUpdateState,
    evaluator: &Evaluator<'_>,
    _: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let counter = evaluator.draws.get();
    evaluator.draws.set(counter.wrapping_add_signed(op.delta));
    let state = u64::wrap(vec![counter, evaluator.cx.seed]);
    Array::from_data(op.shape.clone(), state).map(Literal::Array)
}
