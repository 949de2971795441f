//! Random numbers.

use helio_ir::ops::{
    BatchNormGrad, BatchNormInference, BatchNormTraining, Distribution, Rng, RngAlgorithm,
    RngBitGenerator,
};
use helio_ir::{ArrayShape, InstrId, Result};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::Type;

impl<'m> Body<'_, 'm> {
    pub(super) fn rng(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [a, b, sizes] = site.operands()?;
        let word = site.attrs.needed_word("rng_distribution")?;
        let word = format!("rng_{}", word.to_ascii_lowercase());
        let mut shape = site.result_array()?;
        if !shape.is_static() {
            let sizes = self.known_sizes(sizes, "the size of a dimension")?;
            shape = ArrayShape::new(shape.element(), sizes)?;
        }
        self.push(Rng { distribution: Distribution::from_word(&word)?, shape }, &[a, b])
    }

    /// Operations whose result in HLO is a tuple.
    pub(super) fn several_results(
        &mut self,
        name: &str,
        site: &Site<'_, 'm>,
    ) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        if name == "rng_bit_generator" {
            let word = attrs.needed_word("rng_algorithm")?.to_ascii_lowercase();
            let algorithm = RngAlgorithm::from_word(&format!("rng_{word}"))?;
            let Some(Type::Tensor(bits)) = site.result_types.get(1).map(|ty| ty.as_ref()) else {
                return Err(helio_ir::Error::invalid("two results are needed, both tensors"));
            };
            let op = RngBitGenerator { algorithm, shape: types::array(bits)? };
            let result = self.push(op, &site.operands)?;
            return self.unpack(result, 2);
        }
        let epsilon = attrs.float("epsilon")?.unwrap_or_default() as f32;
        let feature_index = attrs.size("feature_index")?;
        match name {
            "batch_norm_inference" => {
                let op = BatchNormInference { epsilon, feature_index };
                Ok(vec![self.push(op, &site.operands)?])
            }
            "batch_norm_training" => {
                let op = BatchNormTraining { epsilon, feature_index };
                let result = self.push(op, &site.operands)?;
                self.unpack(result, 3)
            }
            _ => {
                let result = self.push(BatchNormGrad { epsilon, feature_index }, &site.operands)?;
                self.unpack(result, 3)
            }
        }
    }
}
