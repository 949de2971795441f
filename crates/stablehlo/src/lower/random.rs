//! `stablehlo.rng` lowered to `rng`.

use helio_ir::ops::{Distribution, Rng};
use helio_ir::{ArrayShape, InstrId, Result};

use super::body::Body;
use super::operation::Site;

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
}
