//! Products of 8-bit integers.
//!
//! The instruction multiplies unsigned bytes of lhs by signed ones of rhs. Signed bytes `a` of lhs
//! become `a + 128` by flipping their highest bit, unsigned bytes `b` of rhs likewise `b - 128`:
//! with `a = a' + x` and `b = b' + y` the sum of `a * b` is the sum of `a' * b'` plus
//! `x * Σ b + y * Σ a - n * x * y`, which is added to each part of a row once it is complete. All is
//! exact modulo 2³².

use super::arithmetic::Arithmetic;
use super::axis::Axis;
use super::narrow::Joined;
use super::number::ProductType;
use super::types::Call;
use super::{At, Contraction, Epilogue};
use crate::kernels::bytes::cast_mut;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

const SIGN: u8 = 0x80;

impl Contraction {
    /// Computes the product if the machine has the instruction, operands are bytes and the result
    /// has 32 bits; otherwise returns false.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn compute_bytes(&self, call: &Call<'_>, out: &mut [u8]) -> bool {
        let &Call { isa, types, epilogue, threads, .. } = call;
        let byte = |number| matches!(number, ProductType::S8 | ProductType::U8);
        let word = matches!(types.out, ProductType::S32 | ProductType::U32);
        let (true, true, true, Some(simd)) =
            (byte(types.lhs), byte(types.rhs), word, super::simd::Avx512Vnni::get(isa))
        else {
            return false;
        };
        let signed = [types.lhs, types.rhs].map(|number| number == ProductType::S8);
        let lhs = Joined { data: call.lhs, flip: if signed[0] { SIGN } else { 0 } };
        let rhs = Joined { data: call.rhs, flip: if signed[1] { 0 } else { SIGN } };
        let (x, y) = (if signed[0] { -128 } else { 0 }, if signed[1] { 0 } else { 128 });
        let batches = self.batch[0].len();
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        let count = self.lhs_steps.len() as i32; // like all else modulo 2³²
        let constant = count.wrapping_mul(x * y).wrapping_neg();
        let mut with_sums = |row_sums: &mut [i32], col_sums: &mut [i32]| {
            for batch in (0..batches).filter(|_| y != 0) {
                let sums = &mut row_sums[batch * rows..][..rows];
                let start = self.batch[0].offset(batch);
                add_up(isa, call.lhs, signed[0], start, &self.lhs_rows, &self.lhs_steps, sums);
            }
            for batch in (0..batches).filter(|_| x != 0) {
                let sums = &mut col_sums[batch * cols..][..cols];
                let start = self.batch[1].offset(batch);
                add_up(isa, call.rhs, signed[1], start, &self.rhs_cols, &self.rhs_steps, sums);
            }
            let (row_sums, col_sums) = (&*row_sums, &*col_sums);
            let correct = |at: At, bytes: &mut [u8]| {
                let part: &mut [i32] = cast_mut(bytes);
                let row = row_sums.get(at.batch * rows + at.row).map_or(0, |s| s.wrapping_mul(y));
                let row = row.wrapping_add(constant);
                let cols = col_sums.get(at.batch * cols + at.col..).unwrap_or_default();
                isa.run(
                    #[inline(always)]
                    || {
                        if x == 0 {
                            part.iter_mut().for_each(|sum| *sum = sum.wrapping_add(row));
                        } else {
                            for (sum, col) in part.iter_mut().zip(cols) {
                                *sum = sum.wrapping_add(row).wrapping_add(col.wrapping_mul(x));
                            }
                        }
                    },
                );
            };
            let epilogue = match (x, y) {
                (0, 0) => epilogue,
                _ => Epilogue { part: Some(&correct), ..epilogue },
            };
            i32::with_places(types.out, out, &mut |out| {
                // SAFETY: the result is borrowed mutably.
                unsafe { self.run(simd, isa, [&lhs, &rhs], out, epilogue, threads) };
            });
        };
        let row_count = if y == 0 { 0 } else { batches * rows };
        let col_count = if x == 0 { 0 } else { batches * cols };
        scratch::with(row_count, |rows| scratch::with(col_count, |cols| with_sums(rows, cols)));
        true
    }

    /// There is no such instruction.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn compute_bytes(&self, _: &Call<'_>, _: &mut [u8]) -> bool {
        false
    }
}

/// The sum of all steps of each item.
fn add_up(
    isa: Isa,
    data: &[u8],
    signed: bool,
    start: usize,
    items: &Axis,
    steps: &Axis,
    sums: &mut [i32],
) {
    // Without elements there are no steps, or no items.
    let Some(data) = data.get(start..).filter(|data| !data.is_empty()) else {
        return sums.fill(0);
    };
    // (Which it is, is asked here: in the loops, the compiler would make no vectors of them.)
    isa.run(
        #[inline(always)]
        || match signed {
            true => add_up_as(data, |byte| byte.cast_signed().into(), items, steps, sums),
            false => add_up_as(data, i32::from, items, steps, sums),
        },
    );
}

/// The same, of bytes that stand for these values.
#[inline(always)]
fn add_up_as(
    data: &[u8],
    value: impl Fn(u8) -> i32 + Copy,
    items: &Axis,
    steps: &Axis,
    sums: &mut [i32],
) {
    sums.fill(0);
    if items.stride() == Some(1) {
        for step in 0..steps.len() {
            let row = &data[steps.offset(step)..][..sums.len()];
            for (sum, &byte) in sums.iter_mut().zip(row) {
                *sum = sum.wrapping_add(value(byte));
            }
        }
        return;
    }
    for (item, sum) in sums.iter_mut().enumerate() {
        let item = items.offset(item);
        let mut step = 0;
        while step < steps.len() {
            let (offset, count, stride) = steps.run(step, steps.len() - step);
            let bytes = &data[item + offset..];
            let add = |sum: i32, &byte: &u8| sum.wrapping_add(value(byte));
            *sum = if stride == 1 {
                bytes[..count].iter().fold(*sum, add)
            } else {
                bytes.iter().step_by(stride).take(count).fold(*sum, add)
            };
            step += count;
        }
    }
}
