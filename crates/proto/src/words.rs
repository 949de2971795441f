//! The numbers of words, and numbers that must fit.

use helio_ir::{Error, Result};

/// XLA's numbers of an enumeration's words.
pub(crate) type Words = &'static [(i32, &'static str)];

pub(crate) const PRECISION: Words = &[(0, "default"), (1, "high"), (2, "highest")];
pub(crate) const DOT_ALGORITHM: Words = &[
    (0, "unset"),
    (1, "dot_any_f8_any_f8_f32"),
    (2, "dot_any_f8_any_f8_f32_fast_accum"),
    (3, "dot_f16_f16_f16"),
    (4, "dot_f16_f16_f32"),
    (5, "dot_bf16_bf16_bf16"),
    (6, "dot_bf16_bf16_f32"),
    (7, "dot_bf16_bf16_f32_x3"),
    (8, "dot_bf16_bf16_f32_x6"),
    (9, "dot_tf32_tf32_f32"),
    (10, "dot_tf32_tf32_f32_x3"),
    (11, "dot_f32_f32_f32"),
    (12, "dot_f64_f64_f64"),
    (13, "dot_bf16_bf16_f32_x9"),
];
pub(crate) const DISTRIBUTION: Words = &[(1, "rng_uniform"), (2, "rng_normal")];
pub(crate) const RNG_ALGORITHM: Words =
    &[(0, "rng_default"), (1, "rng_three_fry"), (2, "rng_philox")];
pub(crate) const FFT: Words = &[(0, "FFT"), (1, "IFFT"), (2, "RFFT"), (3, "IRFFT")];
pub(crate) const TRANSPOSE: Words = &[(1, "NO_TRANSPOSE"), (2, "TRANSPOSE"), (3, "ADJOINT")];
pub(crate) const PADDING: Words =
    &[(0, "PADDING_INVALID"), (1, "PADDING_VALID"), (2, "PADDING_SAME")];
pub(crate) const SCHEDULE: Words =
    &[(0, "SCHEDULE_NONE"), (1, "SCHEDULE_LATEST"), (2, "SCHEDULE_EARLIEST")];
pub(crate) const API_VERSION: Words = &[
    (1, "API_VERSION_ORIGINAL"),
    (2, "API_VERSION_STATUS_RETURNING"),
    (3, "API_VERSION_STATUS_RETURNING_UNIFIED"),
    (4, "API_VERSION_TYPED_FFI"),
];
pub(crate) const ELEMENT: Words = &[
    (1, "pred"),
    (2, "s8"),
    (3, "s16"),
    (4, "s32"),
    (5, "s64"),
    (6, "u8"),
    (7, "u16"),
    (8, "u32"),
    (9, "u64"),
    (10, "f16"),
    (11, "f32"),
    (12, "f64"),
    (15, "c64"),
    (16, "bf16"),
    (18, "c128"),
    (19, "f8e5m2"),
    (20, "f8e4m3fn"),
    (21, "s4"),
    (22, "u4"),
    (23, "f8e4m3b11fnuz"),
    (24, "f8e5m2fnuz"),
    (25, "f8e4m3fnuz"),
    (26, "s2"),
    (27, "u2"),
    (28, "f8e4m3"),
    (29, "f8e3m4"),
    (30, "s1"),
    (31, "u1"),
    (32, "f4e2m1fn"),
    (33, "f8e8m0fnu"),
];
/// How devices of the last dimensions of a sharding share their data.
pub(crate) const SUBGROUP: Words = &[(0, "replicated"), (4, "manual"), (6, "unreduced")];

/// The word with this number; `what` they are, for the error.
pub(crate) fn word(words: Words, number: i32, what: &str) -> Result<&'static str> {
    let found = words.iter().find(|row| row.0 == number).map(|row| row.1);
    found.ok_or_else(|| Error::unimplemented(format!("{what} {number}")))
}

/// The number of this word.
pub(crate) fn number(words: Words, word: &str, what: &str) -> Result<i32> {
    let found = words.iter().find(|row| row.1 == word).map(|row| row.0);
    found.ok_or_else(|| Error::unimplemented(format!("{what} `{word}`")))
}

/// A number that must not be negative.
pub(crate) fn size(value: i64, what: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::invalid(format!("{what} is {value}")))
}

/// Numbers that must not be negative.
pub(crate) fn sizes(values: &[i64], what: &str) -> Result<Vec<usize>> {
    values.iter().map(|&value| size(value, what)).collect()
}

/// Numbers as XLA has them.
pub(crate) fn ints(values: &[usize]) -> Vec<i64> {
    values.iter().map(|&value| value as i64).collect()
}
