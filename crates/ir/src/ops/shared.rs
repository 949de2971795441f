//! Attributes that several operations have.

mod conv_dims;
mod groups;
mod pairs;
mod window;

pub use conv_dims::ConvDims;
pub(crate) use groups::GroupRule;
pub use groups::{CollectiveAttrs, GroupMode, MAX_PARTICIPANTS, ReplicaGroups};
pub use pairs::{SEND_RECV_PAIRS, transfer_pairs};
pub(crate) use pairs::{ensure_once, read_pairs};
pub use window::{Window, WindowDim};

use crate::text::attrs::{AttrReader, AttrWriter, braced};
use crate::{Error, Result, ensure};

/// Which dimensions of a dot product contract and which are batch dimensions; lists pair up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotDims {
    /// Dimensions of lhs to sum over.
    pub lhs_contracting: Vec<usize>,
    /// Dimensions of rhs to sum over.
    pub rhs_contracting: Vec<usize>,
    /// Dimensions of lhs that go along with `rhs_batch`.
    pub lhs_batch: Vec<usize>,
    /// Dimensions of rhs that go along with `lhs_batch`.
    pub rhs_batch: Vec<usize>,
}

impl DotDims {
    /// The dimensions of lhs, of this rank, that neither contract nor are batch dimensions.
    pub fn lhs_free(&self, rank: usize) -> Vec<usize> {
        free(rank, &self.lhs_contracting, &self.lhs_batch)
    }

    /// The dimensions of rhs, of this rank, that neither contract nor are batch dimensions.
    pub fn rhs_free(&self, rank: usize) -> Vec<usize> {
        free(rank, &self.rhs_contracting, &self.rhs_batch)
    }

    /// Reads `lhs_contracting_dims` and its kin; a missing list is empty.
    pub fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(DotDims {
            lhs_contracting: attrs.sizes("lhs_contracting_dims")?.unwrap_or_default(),
            rhs_contracting: attrs.sizes("rhs_contracting_dims")?.unwrap_or_default(),
            lhs_batch: attrs.sizes("lhs_batch_dims")?.unwrap_or_default(),
            rhs_batch: attrs.sizes("rhs_batch_dims")?.unwrap_or_default(),
        })
    }

    /// Writes what [`Self::read`] reads.
    pub fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.list_unless_empty("lhs_batch_dims", &self.lhs_batch);
        attrs.list("lhs_contracting_dims", &self.lhs_contracting);
        attrs.list_unless_empty("rhs_batch_dims", &self.rhs_batch);
        attrs.list("rhs_contracting_dims", &self.rhs_contracting);
    }
}

/// The numbers below `rank` that are in neither list.
fn free(rank: usize, contracting: &[usize], batch: &[usize]) -> Vec<usize> {
    (0..rank).filter(|d| !contracting.contains(d) && !batch.contains(d)).collect()
}

crate::ops::words! {
    /// How precisely an operand of a product is to be taken.
    Precision {
        /// The back end's choice.
        Default = "default",
        /// More than that.
        High = "high",
        /// The most there is.
        Highest = "highest",
        /// Packed nibbles.
        PackedNibble = "packed_nibble",
    }
}

impl Precision {
    /// Reads `operand_precision={high,default}`; all default is the same as none.
    pub fn read_list(attrs: &mut AttrReader<'_>) -> Result<Vec<Precision>> {
        let words = attrs.words("operand_precision")?.unwrap_or_default();
        let list: Vec<_> = words
            .into_iter()
            .map(Precision::from_word_of_any_case)
            .collect::<Result<_>>()
            .map_err(|e| e.context("attribute operand_precision"))?;
        let is_default = list.iter().all(|&precision| precision == Precision::Default);
        Ok(if is_default { Vec::new() } else { list })
    }

    /// Writes what [`Self::read_list`] reads.
    pub fn write_list(list: &[Precision], attrs: &mut AttrWriter<'_>) {
        if list.iter().any(|&precision| precision != Precision::Default) {
            attrs.put("operand_precision", braced(list));
        }
    }

    /// Errors: `precision.C1` unless there is one for each of the two factors, or none.
    pub(crate) fn check_list(list: &[Precision]) -> Result<()> {
        ensure!(
            matches!(list.len(), 0 | 2),
            "precision.C1",
            "operand_precision={} must have an entry for each of the 2 factors",
            braced(list)
        );
        Ok(())
    }
}

/// The algorithms that `algorithm=` can prescribe for a product.
pub const DOT_ALGORITHMS: &[&str] = &[
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
];

/// Reads `algorithm=dot_bf16_bf16_f32`, in letters of either case; `unset` is the same as none.
pub(crate) fn read_algorithm(attrs: &mut AttrReader<'_>) -> Result<Option<String>> {
    let word = attrs.word("algorithm")?.map(str::to_ascii_lowercase);
    Ok(word.filter(|word| word != "unset"))
}

/// Writes what [`read_algorithm`] reads.
pub(crate) fn write_algorithm(algorithm: &Option<String>, attrs: &mut AttrWriter<'_>) {
    if let Some(algorithm) = algorithm {
        attrs.put("algorithm", algorithm);
    }
}

/// Errors: `precision.C2` unless the algorithm is a known one, or none is given.
pub(crate) fn check_algorithm(algorithm: &Option<String>) -> Result<()> {
    match algorithm {
        Some(name) if !DOT_ALGORITHMS.contains(&name.as_str()) => Err(Error::rule(
            "precision.C2",
            format!("algorithm={name} is none of {}", DOT_ALGORITHMS.join(", ")),
        )),
        _ => Ok(()),
    }
}
