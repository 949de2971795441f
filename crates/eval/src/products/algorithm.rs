//! The rounding that the attribute `algorithm` of a dot or a convolution prescribes.

use helio_ir::memory::Counted;
use helio_ir::{Error, Result};

use super::{Format, Term, zeros};

/// What a named algorithm prescribes: how operands are rounded, which partial products are summed,
/// and the format of the sums.
pub(crate) struct Algorithm {
    operand: Option<Format>,
    /// Pairs of parts of lhs and rhs to multiply, least significant first; (0, 0) is the last.
    parts: &'static [(usize, usize)],
    sum: Format,
}

const X1: &[(usize, usize)] = &[(0, 0)];
const X3: &[(usize, usize)] = &[(1, 0), (0, 1), (0, 0)];
const X6: &[(usize, usize)] = &[(2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)];
const X9: &[(usize, usize)] =
    &[(2, 2), (2, 1), (1, 2), (2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)];

impl Algorithm {
    /// Errors: `Unimplemented` for an unknown name.
    pub(crate) fn from_name(name: &str) -> Result<Self> {
        use Format::{Bf16, F16, F32, F64, Tf32};
        let (operand, parts, sum) = match name {
            "dot_any_f8_any_f8_f32" | "dot_any_f8_any_f8_f32_fast_accum" => (None, X1, F32),
            "dot_f16_f16_f16" => (Some(F16), X1, F16),
            "dot_f16_f16_f32" => (Some(F16), X1, F32),
            "dot_bf16_bf16_bf16" => (Some(Bf16), X1, Bf16),
            "dot_bf16_bf16_f32" => (Some(Bf16), X1, F32),
            "dot_bf16_bf16_f32_x3" => (Some(Bf16), X3, F32),
            "dot_bf16_bf16_f32_x6" => (Some(Bf16), X6, F32),
            "dot_bf16_bf16_f32_x9" => (Some(Bf16), X9, F32),
            "dot_tf32_tf32_f32" => (Some(Tf32), X1, F32),
            "dot_tf32_tf32_f32_x3" => (Some(Tf32), X3, F32),
            "dot_f32_f32_f32" => (Some(F32), X1, F32),
            "dot_f64_f64_f64" => (Some(F64), X1, F64),
            _ => return Err(Error::unimplemented(format!("dot algorithm `{name}`"))),
        };
        Ok(Algorithm { operand, parts, sum })
    }

    /// Adds the product to `sums`, which are zero; `add_products` adds one without any rounding.
    pub(crate) fn add_products<S: Term>(
        &self,
        lhs: &[S],
        rhs: &[S],
        sums: &mut [S],
        mut add_products: impl FnMut(&[S], &[S], &mut [S]) -> Result<()>,
    ) -> Result<()> {
        for &(lhs_part, rhs_part) in self.parts {
            let part = |values: &[S], index| -> Result<Counted<S>> {
                let part = || match self.operand {
                    Some(format) => values.iter().map(|v| v.part(format, index)).collect(),
                    None => values.to_vec(),
                };
                Ok(Counted::of(values.len(), part)?)
            };
            let (lhs, rhs) = (part(lhs, lhs_part)?, part(rhs, rhs_part)?);
            if (lhs_part, rhs_part) == (0, 0) {
                // An infinite operand leaves NaN in its lower parts; the leading product is right.
                let mut leading = zeros::<S>(sums.len())?;
                add_products(&lhs, &rhs, &mut leading)?;
                for (sum, leading) in sums.iter_mut().zip(leading.iter().copied()) {
                    *sum = sum.unless_nan(leading).part(self.sum, 0);
                }
            } else {
                add_products(&lhs, &rhs, sums)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_that_verifies_is_known() {
        for name in helio_ir::ops::shared::DOT_ALGORITHMS {
            assert!(Algorithm::from_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn unknown_algorithms_are_errors() {
        let error = Algorithm::from_name("dot_guess").err().unwrap();
        assert_eq!(error.code(), helio_ir::Code::Unimplemented);
    }
}
