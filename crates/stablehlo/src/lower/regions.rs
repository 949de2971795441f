//! Regions that are applied to elements: of folds, windows, scatter, sort, map.

use helio_ir::{CompId, Error, Result};

use super::body::Body;
use super::control::captures;
use super::operation::Site;
use super::types;
use crate::mlir::Region;

impl<'m> Body<'_, 'm> {
    /// The computation of a region that takes nothing from around it but constants.
    pub(super) fn element_region(
        &mut self,
        site: &Site<'_, 'm>,
        index: usize,
        name: &str,
    ) -> Result<CompId> {
        let region: &'m Region = site
            .op
            .regions
            .get(index)
            .ok_or_else(|| Error::invalid(format!("{} regions are needed", index + 1)))?;
        let block = super::control::only_block(region)?;
        let constants = captures(region)
            .into_iter()
            .map(|value| {
                let id = self.value(value)?;
                match self.repeatable(id)? {
                    Some(constant) => Ok((value, constant)),
                    None => {
                        let detail =
                            "a region that takes a value from around it which is no constant";
                        Err(Error::unimplemented(detail))
                    }
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let source = self.cx.source;
        self.deeper(|body| {
            let mut inner = body.inner(name);
            for (number, &value) in block.arguments.iter().enumerate() {
                let shape = types::shape(source.type_of(value))?;
                let id = inner.parameter(number, shape, "arg")?;
                inner.bind(value, id);
            }
            for (value, constant) in constants {
                let id = inner.elements(constant)?;
                inner.bind(value, id);
            }
            let results = inner.block(block)?;
            inner.finish(results)
        })
    }
}
