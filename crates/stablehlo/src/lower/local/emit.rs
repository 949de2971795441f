//! The instructions of an operation on tiles.

use std::borrow::Cow;

use helio_ir::{ArrayShape, ElementType, Error, InstrId, Op, Result};

use super::{Kind, Local};
use crate::front_end;
use crate::lower::attrs::Attrs;
use crate::lower::body::Body;
use crate::lower::operation::Site;
use crate::lower::types::{self, Elements};
use crate::mlir::{Attribute, Operation, Type};
use crate::table;
use crate::tiling::Tiling;

impl<'m> Body<'_, 'm> {
    /// The tiles of an operation's results, from tiles of its operands.
    pub(in crate::lower) fn on_tiles(
        &mut self,
        op: &'m Operation,
        local: &Local,
        operands: Vec<InstrId>,
        tiling: &Tiling,
    ) -> Result<Vec<InstrId>> {
        let attrs = Attrs::new(&op.attributes);
        let source = self.cx.source;
        let types = |values: &[_]| values.iter().map(|&value| source.type_of(value)).collect();
        let result_types: Vec<&Type> = types(&op.results);
        let site = Site {
            op,
            attrs: &attrs,
            operands,
            operand_types: types(&op.operands),
            result_types: result_types.iter().map(|&ty| Cow::Borrowed(ty)).collect(),
        };
        self.comes_from(op.at.clone(), op.location);
        let around = self.has_attributes(front_end::attributes(&op.attributes));
        let results = self.tiles_of(&site, local, tiling);
        self.has_attributes(around);
        results.map_err(|e| e.in_instruction(&op.name).at(op.at.clone()))
    }

    fn tiles_of(
        &mut self,
        site: &Site<'_, 'm>,
        local: &Local,
        tiling: &Tiling,
    ) -> Result<Vec<InstrId>> {
        let (op, attrs) = (site.op, site.attrs);
        let whole = site.result_array()?;
        let shape = ArrayShape::new(whole.element(), tiling.local_dims(whole.dims())?)?;
        let ids = match local.kind {
            Kind::Splat => {
                let Some(Attribute::Dense(dense)) = attrs.get("value") else {
                    return Err(Error::internal("a constant without a value"));
                };
                let elements = match types::elements(dense)? {
                    Elements::Splat(scalar, _) => Elements::Splat(scalar, shape.clone()),
                    // Of one element, which is in one tile.
                    all => all,
                };
                vec![self.elements(elements)?]
            }
            Kind::Iota(dim) => {
                attrs.get("iota_dimension");
                vec![self.iota_tile(shape.clone(), dim, tiling)?]
            }
            Kind::Broadcast => {
                let dims = attrs.needed_sizes("broadcast_dimensions")?;
                let [operand] = site.operands()?;
                vec![self.broadcast(operand, shape.clone(), &dims)?]
            }
            Kind::Reshape => {
                let [operand] = site.operands()?;
                vec![self.reshape(operand, shape.dims())?]
            }
            Kind::Reverse => {
                let dims = attrs.needed_sizes("dimensions")?;
                let [operand] = site.operands()?;
                vec![self.turned_tiles(operand, tiling, &dims)?]
            }
            Kind::Slice | Kind::DynamicSlice | Kind::Gather => vec![self.slices(site, local)?],
            Kind::Elementwise | Kind::Plain | Kind::Reduce | Kind::Scatter => self.plain(site)?,
        };
        attrs.finish()?;
        for (&id, ty) in ids.iter().zip(&site.result_types) {
            let (found, element) = (self.array(id)?, types::shape(ty)?);
            let element = element.as_array().map(ArrayShape::element);
            if found.dims() != shape.dims() || Some(found.element()) != element {
                let detail = format!("a result of type {ty}, whose tile is {found}, not {shape}");
                return Err(Error::invalid(detail));
            }
        }
        if ids.len() != op.results.len() {
            let (found, named) = (ids.len(), op.results.len());
            return Err(Error::invalid(format!("{found} results, but {named} are named")));
        }
        Ok(ids)
    }

    /// An operation on slices, of which those that have all of a dimension have all of the tile's.
    fn slices(&mut self, site: &Site<'_, 'm>, local: &Local) -> Result<InstrId> {
        let here = self.array(site.operands::<1>()?[0])?;
        let opcode = site.op.name.trim_start_matches("stablehlo.").replace('_', "-");
        let mut op = self
            .reading(site, &[], |from| table::read(&opcode, from))
            .ok_or_else(|| Error::internal("an operation without a row in the table"))??;
        let sizes = match &mut op {
            Op::Slice(slice) => &mut slice.limits,
            Op::DynamicSlice(slice) => &mut slice.sizes,
            Op::Gather(gather) => &mut gather.slice_sizes,
            _ => return Err(Error::internal("an operation that takes no slices")),
        };
        let dims = local.operands.first().map_or(&[][..], Vec::as_slice);
        for ((size, &of), dim) in sizes.iter_mut().zip(here.dims()).zip(dims) {
            // Those that go along with the indices' have one element.
            if dim.is_some() && *size > of {
                *size = of;
            }
        }
        self.push(op, &site.operands)
    }

    /// The tile of an array of places along a dimension.
    fn iota_tile(&mut self, shape: ArrayShape, dim: usize, tiling: &Tiling) -> Result<InstrId> {
        if tiling.tiles[dim] == 1 {
            return self.iota(shape, dim);
        }
        // Other types round places, which are sums here.
        let numbers = shape.with_element(ElementType::S64)?;
        let size = shape.dims()[dim] as i64;
        let starts = tiling.tile_of.iter().map(|tile| tile[dim] as i64 * size).collect();
        let start = self.of_partition(starts)?;
        let here = self.iota(numbers, dim)?;
        let start = self.fill(start, here)?;
        let places = self.add(here, start)?;
        self.convert(places, shape.element())
    }
}
