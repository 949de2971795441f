//! Operations that move elements, and constants.

use helio_ir::ops::{
    Concatenate, DynamicSlice, DynamicUpdateSlice, GetDimensionSize, Pad, PadDim, Reshape, Reverse,
    SetDimensionSize, Slice, Transpose,
};
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
            "iota" => self.iota(site.result_array()?, attrs.size("iota_dimension")?),
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
            "reshape" => {
                let [x] = site.operands()?;
                let shape = site.result_array()?;
                self.push(Reshape { shape }, &[x])
            }
            "transpose" => {
                let [x] = site.operands()?;
                let permutation = attrs.needed_sizes("permutation")?;
                self.push(Transpose { permutation }, &[x])
            }
            "reverse" => {
                let [x] = site.operands()?;
                self.push(Reverse { dimensions: attrs.needed_sizes("dimensions")? }, &[x])
            }
            "concatenate" => {
                self.push(Concatenate { dimension: attrs.size("dimension")? }, &site.operands)
            }
            "slice" => {
                let [x] = site.operands()?;
                let op = Slice {
                    starts: attrs.needed_sizes("start_indices")?,
                    limits: attrs.needed_sizes("limit_indices")?,
                    strides: attrs.needed_sizes("strides")?,
                };
                self.push(op, &[x])
            }
            "dynamic_slice" => {
                let sizes = attrs.needed_sizes("slice_sizes")?;
                self.push(DynamicSlice { sizes }, &site.operands)
            }
            "dynamic_update_slice" => self.push(DynamicUpdateSlice, &site.operands),
            "pad" => {
                let [x, fill] = site.operands()?;
                let list = |name| Ok::<_, Error>(attrs.integers(name)?.unwrap_or_default());
                let lists = [list("edge_padding_low")?, list("edge_padding_high")?];
                self.pad(x, fill, lists, list("interior_padding")?)
            }
            "get_dimension_size" => {
                let [x] = site.operands()?;
                let dimension = attrs.size("dimension")?;
                let shape = self.array(x)?;
                match shape.dims_and_kinds().nth(dimension) {
                    // Known: sizes are computed from it.
                    Some((size, DimKind::Static)) => self.scalar(size as i32),
                    _ => self.push(GetDimensionSize { dimension }, &[x]),
                }
            }
            _ => {
                let [x, size] = site.operands()?;
                let dimension = attrs.size("dimension")?;
                self.push(SetDimensionSize { dimension }, &[x, size])
            }
        }
    }

    pub(super) fn pad(
        &mut self,
        x: InstrId,
        fill: InstrId,
        [low, high]: [Vec<i64>; 2],
        interior: Vec<i64>,
    ) -> Result<InstrId> {
        if low.len() != high.len() || low.len() != interior.len() {
            return Err(Error::invalid("low, high and interior padding for different ranks"));
        }
        let dims = low.into_iter().zip(high).zip(interior).map(|((low, high), interior)| {
            let interior = usize::try_from(interior)
                .map_err(|_| Error::invalid(format!("interior padding of {interior}")))?;
            Ok(PadDim { low, high, interior })
        });
        self.push(Pad { dims: dims.collect::<Result<_>>()? }, &[x, fill])
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
