//! Constants, and operations that move elements and have no row in the table.

use helio_ir::ops::GetDimensionSize;
use helio_ir::{ArrayShape, DimKind, Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::Attribute;

impl<'m> Body<'_, 'm> {
    pub(super) fn movement(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let attrs = site.attrs;
        match name {
            "constant" => self.constant(site),
            "broadcast" => {
                let [x] = site.operands()?;
                let mut dims: Vec<_> = attrs
                    .needed_sizes("broadcast_sizes")?
                    .into_iter()
                    .map(|size| (size, DimKind::Static))
                    .collect();
                let (new, from) = (dims.len(), self.array(x)?);
                dims.extend(from.dims_and_kinds());
                let dimensions: Vec<usize> = (new..dims.len()).collect();
                self.broadcast(x, ArrayShape::from_dims(from.element(), dims)?, &dimensions)
            }
            "broadcast_in_dim" => {
                let [x] = site.operands()?;
                let dimensions = attrs.needed_sizes("broadcast_dimensions")?;
                self.broadcast(x, site.result_array()?, &dimensions)
            }
            _ => {
                let [x] = site.operands()?;
                let dimension = attrs.size("dimension")?;
                let shape = self.array(x)?;
                match shape.dims_and_kinds().nth(dimension) {
                    // Known: sizes are computed from it.
                    Some((size, DimKind::Static)) => self.scalar(size as i32),
                    _ => self.push(GetDimensionSize { dimension }, &[x]),
                }
            }
        }
    }

    fn constant(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        match site.attrs.get("value") {
            Some(Attribute::Dense(dense)) => self.elements(types::elements(dense)?),
            Some(Attribute::DenseResource { key, .. }) => {
                let detail = format!("the bytes of resource `{key}` are not in the program");
                Err(Error::invalid(detail))
            }
            _ => Err(Error::invalid("attribute `value` must be `dense<…>`")),
        }
    }
}
