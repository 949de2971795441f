//! Bits of known generators, and what distributions must have.

use helio_ir::types::{BF16, F16};

use super::*;
use crate::Context;
use crate::testing::{on_evaluator, on_evaluator_in};

const KEY: u64 = 0x0123_4567_89ab_cdef;
const COUNTER: u64 = 0xffff_ffff_ffff_fffe;

fn check(
    algorithm: RngAlgorithm,
    state: &[u64],
    (element, dims): (ElementType, &[usize]),
    next: &[u64],
    bits: &[u64],
) {
    let shape = ArrayShape::new(element, dims).unwrap();
    let op = ops::RngBitGenerator { algorithm, shape };
    let state = Literal::array([state.len()], state.to_vec()).unwrap();
    let value = on_evaluator(|ev| rng_bit_generator(&op, ev, &[state], &Shape::Token)).unwrap();
    let [Literal::Array(state), Literal::Array(found)] = value.as_tuple().unwrap() else {
        panic!("a pair of arrays")
    };
    assert_eq!(state.values::<u64>().unwrap(), next);
    assert_eq!(found.dims(), dims);
    let found: Vec<u64> = (0..found.data().len()).map(|i| found.bits(i) as u64).collect();
    assert_eq!(found, bits, "{element}{dims:?}");
}

// All bits below are XLA:CPU's.

#[test]
fn threefry_bits() {
    let check = |element, dims: &[usize], next, bits: &[u64]| {
        check(RngAlgorithm::ThreeFry, &[KEY, COUNTER], (element, dims), &[KEY, next], bits);
    };
    use ElementType::{U8, U16, U32, U64};
    let words = [0xe19a60b4b0f4215b, 0xacf8c4dc0b3d7494, 0x6b35c4f4aaa4d889];
    check(U64, &[3], 1, &words);
    let words = [0xb0f4215b, 0x0b3d7494, 0xaaa4d889, 0xe19a60b4, 0xacf8c4dc, 0x6b35c4f4];
    check(U32, &[2, 3], 1, &words);
    check(U32, &[], u64::MAX, &[0xb0f4215b]);
    let words = [0xb0f4215b, 0xe19a60b4, 0x0b3d7494, 0xacf8c4dc, 0xaaa4d889];
    check(U32, &[5], 1, &words);
    let words = [
        0xb0f4215b, 0xe19a60b4, 0x0b3d7494, 0xacf8c4dc, 0xaaa4d889, 0x75a52907, 0xd3dd8613,
        0x35d0e5f1, 0x8ed17fe4, 0x7c2f19d8, 0xde79bbbd, 0x1713fd18, 0xb09d029e, 0x7d84f441,
        0x6ca3e732,
    ];
    check(U32, &[3, 5], 7, &words);
    let words = [
        0xb0f4215b, 0x0b3d7494, 0xe19a60b4, 0xacf8c4dc, 0xaaa4d889, 0x75a52907, 0x6b35c4f4,
        0xd3dd8613, 0x35d0e5f1, 0x7c2f19d8, 0x8ed17fe4, 0x0284dbe3, 0xde79bbbd, 0xb09d029e,
        0x1713fd18, 0x7d84f441, 0x6ca3e732, 0xc8124617, 0xa43b6b39, 0x2077496e, 0xb530f815,
        0x95fbb24b, 0xedce8403, 0xa2c8a180,
    ];
    check(U32, &[3, 4, 2], 10, &words);
    check(U8, &[2, 3], 1, &[0x5b, 0x94, 0x89, 0xb4, 0xdc, 0xf4]);
    check(U16, &[3], 0, &[0x215b, 0x60b4, 0x7494]);
    check(U32, &[0, 3], COUNTER, &[]);
}

#[test]
fn philox_bits() {
    use ElementType::{U8, U16, U32, U64};
    for algorithm in [RngAlgorithm::Philox, RngAlgorithm::Default] {
        let check = |element, dims: &[usize], next: [u64; 2], bits: &[u64]| {
            let next = [KEY, next[0], next[1]];
            check(algorithm, &[KEY, COUNTER, 7], (element, dims), &next, bits);
        };
        let words = [0x6c1e9305, 0xe0c1a0a5, 0x9f05d22f, 0x9c01c61d, 0xd8f2cea1];
        check(U32, &[5], [0, 8], &words);
        check(U32, &[], [u64::MAX, 7], &words[..1]);
        let words = [0xe0c1a0a56c1e9305, 0x9c01c61d9f05d22f, 0xeffe4af4d8f2cea1];
        check(U64, &[3], [0, 8], &words);
        check(U8, &[2, 3], [0, 8], &[0x05, 0xa5, 0x2f, 0x1d, 0xa1, 0xf4]);
        check(U16, &[3], [u64::MAX, 7], &[0x9305, 0xa0a5, 0xd22f]);
        check(U32, &[0, 3], [COUNTER, 7], &[]);
    }
    let words = [0x0a485194, 0x41c5f806, 0xd6822fee, 0x3885a3d4, 0x41eb59f3];
    check(RngAlgorithm::Philox, &[KEY, COUNTER], (U32, &[5]), &[KEY, 0], &words);
}

#[test]
fn states_of_a_wrong_size_are_errors() {
    let shape = ArrayShape::new(ElementType::U32, [1]).unwrap();
    let op = ops::RngBitGenerator { algorithm: RngAlgorithm::Philox, shape };
    let state = Literal::array([1], vec![1u64]).unwrap();
    let value = on_evaluator(|ev| rng_bit_generator(&op, ev, &[state], &Shape::Token));
    assert_eq!(value.unwrap_err().code(), helio_ir::Code::InvalidArgument);
}

fn draw<T: Native>(seed: u64, distribution: Distribution, a: T, b: T) -> Vec<T> {
    let shape = ArrayShape::new(T::TYPE, [1000]).unwrap();
    let op = ops::Rng { distribution, shape: shape.clone() };
    let cx = Context { seed, ..Context::default() };
    let args = [Literal::scalar(a), Literal::scalar(b)];
    on_evaluator_in(&cx, |ev| {
        let value = rng(&op, ev, &args, &shape.into()).unwrap();
        value.as_array().unwrap().values::<T>().unwrap().to_vec()
    })
}

#[test]
fn uniform_numbers_lie_in_the_interval() {
    let values = draw(1, Distribution::Uniform, -2.0f32, 3.0);
    assert!(values.iter().all(|v| (-2.0..3.0).contains(v)));
    let mean = values.iter().sum::<f32>() / 1000.0;
    assert!((mean - 0.5).abs() < 0.2, "{mean}");
    let (zero, one) = (BF16::from_f64(0.0), BF16::from_f64(1.0));
    assert!(draw(1, Distribution::Uniform, zero, one).iter().all(|v| (zero..one).contains(v)));
    let bound = F16::from_f64(1.001);
    let values = draw(1, Distribution::Uniform, F16::from_f64(1.0), bound);
    assert!(values.iter().all(|v| *v < bound));
    let values = draw(1, Distribution::Uniform, -3i8, 4);
    assert!((-3..4).all(|v| values.contains(&v)) && values.iter().all(|v| (-3..4).contains(v)));
    let values = draw(1, Distribution::Uniform, i64::MIN, i64::MAX);
    assert!(values.iter().any(|&v| v < 0) && values.iter().any(|&v| v > 0));
    let values = draw(1, Distribution::Uniform, f64::MIN, f64::MAX);
    assert!(values.iter().all(|v| v.is_finite()));
    assert_eq!(draw(1, Distribution::Uniform, 5u32, 5)[0], 5);
    assert!(!draw(1, Distribution::Uniform, false, true).contains(&true));
}

#[test]
fn normal_numbers_have_mean_and_deviation() {
    let values = draw(1, Distribution::Normal, 3.0f64, 2.0);
    let mean = values.iter().sum::<f64>() / 1000.0;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1000.0;
    // Five standard errors.
    assert!((mean - 3.0).abs() < 5.0 * 2.0 / 1000f64.sqrt(), "{mean}");
    assert!((variance - 4.0).abs() < 5.0 * 4.0 * (2f64 / 1000.0).sqrt(), "{variance}");
}

#[test]
fn the_seed_decides() {
    let numbers = |seed| draw(seed, Distribution::Uniform, 0u64, u64::MAX);
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test]
fn state_advances() {
    let shape = ArrayShape::new(ElementType::U64, [2]).unwrap();
    let op = ops::RngGetAndUpdateState { delta: 5, shape: shape.clone() };
    let cx = Context { seed: 9, ..Context::default() };
    on_evaluator_in(&cx, |ev| {
        for counter in [0, 5, 10] {
            let value = get_and_update_state(&op, ev, &[], &shape.clone().into()).unwrap();
            assert_eq!(value.as_array().unwrap().values::<u64>().unwrap(), [counter, 9]);
        }
    });
}
