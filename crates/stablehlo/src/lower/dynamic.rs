//! Operations whose result has a size that an operand gives: it must be known while lowering, or be
//! stated by the type of the result.

use helio_ir::ops::{Convolution, DynamicSlice, Gather, Pad, Reshape};
use helio_ir::{ArrayShape, Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;
use crate::table::{self, ConvDimensions, GatherDimensions};

impl<'m> Body<'_, 'm> {
    pub(super) fn dynamic(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let attrs = site.attrs;
        match name {
            "dynamic_iota" => {
                let [sizes] = site.operands()?;
                let shape = self.result_of_sizes(site, sizes)?;
                self.iota(shape, attrs.size("iota_dimension")?)
            }
            "dynamic_broadcast_in_dim" => {
                let [x, sizes] = site.operands()?;
                let shape = self.result_of_sizes(site, sizes)?;
                attrs.get("known_expanding_dimensions");
                attrs.get("known_nonexpanding_dimensions");
                let dimensions = attrs.needed_sizes("broadcast_dimensions")?;
                self.broadcast(x, shape, &dimensions)
            }
            "dynamic_reshape" => {
                let [x, sizes] = site.operands()?;
                let shape = self.result_of_sizes(site, sizes)?;
                self.push(Reshape { shape }, &[x])
            }
            "dynamic_pad" => {
                let [x, fill, low, high] = site.operands()?;
                let [_, _, _, _, interior] = site.operands()?;
                let what = "an amount of padding";
                let [low, high] =
                    [self.known_integers(low, what)?, self.known_integers(high, what)?];
                let dims = table::pad_dims(low, high, self.known_integers(interior, what)?)?;
                self.push(Pad { dims }, &[x, fill])
            }
            "dynamic_gather" => {
                let [x, indices, sizes] = site.operands()?;
                let slice_sizes = self.known_sizes(sizes, "the size of a slice")?;
                let dims = GatherDimensions("dimension_numbers");
                let dims = self.reading(site, &[], |from| dims.read(from))?;
                let indices_are_sorted = attrs.flag("indices_are_sorted")?;
                self.push(Gather { dims, slice_sizes, indices_are_sorted }, &[x, indices])
            }
            "dynamic_conv" => {
                let [x, kernel, padding] = site.operands()?;
                let padding = self.known_integers(padding, "an amount of padding")?;
                self.convolution(site, x, kernel, padding)
            }
            _ => self.real_dynamic_slice(site),
        }
    }

    /// The shape of the result, whose sizes an operand gives if its type leaves them open.
    fn result_of_sizes(&self, site: &Site<'_, 'm>, sizes: InstrId) -> Result<ArrayShape> {
        let shape = site.result_array()?;
        if shape.is_static() {
            return Ok(shape);
        }
        let sizes = self.known_sizes(sizes, "the size of a dimension")?;
        ArrayShape::new(shape.element(), sizes)
    }

    /// A convolution whose padding an operand gives.
    fn convolution(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        kernel: InstrId,
        padding: Vec<i64>,
    ) -> Result<InstrId> {
        let attrs = site.attrs;
        let dims = ConvDimensions("dimension_numbers");
        let (dims, window) = self.reading(site, &[], |from| {
            Ok::<_, Error>((dims.read(from)?, table::conv_window(from, Some(padding))?))
        })?;
        let op = Convolution {
            window,
            dims,
            feature_group_count: attrs.size_or("feature_group_count", 1)?,
            batch_group_count: attrs.size_or("batch_group_count", 1)?,
            element: site.result_element()?,
            precision: table::precision(attrs)?,
            algorithm: None,
        };
        self.push(op, &[x, kernel])
    }

    fn real_dynamic_slice(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [x, starts, limits, strides] = site.operands()?;
        let what = "the stride of a slice";
        let strides = self.known_sizes(strides, what)?;
        let known = [starts, limits].map(|id| self.known_sizes(id, "the place of a slice"));
        if let [Ok(starts), Ok(limits)] = known {
            return self.push(helio_ir::ops::Slice { starts, limits, strides }, &[x]);
        }
        let shape = site.result_array()?;
        if !shape.is_static() || strides.iter().any(|&stride| stride != 1) {
            return Err(Error::unimplemented(
                "the place of a slice that is only known at run time",
            ));
        }
        let mut operands = vec![x];
        for d in 0..shape.rank() {
            let start = self.slice_in(starts, 0, d, d + 1)?;
            operands.push(self.reshape(start, &[])?);
        }
        self.push(DynamicSlice { sizes: shape.dims().to_vec() }, &operands)
    }
}
