//! Operations that a partition does on its tiles alone: how tiles of the operands give tiles of the result.

use std::borrow::Cow;

use helio_ir::{ArrayShape, ElementType, Error, InstrId, Op, Result};

use super::Lowering;
use super::attrs::Attrs;
use super::body::Body;
use super::operation::Site;
use super::types::{self, Elements};
use crate::front_end;
use crate::mlir::{Attribute, Operation, Type};
use crate::tiling::Tiling;

/// How an operation is done on tiles. What is cut up is the space of what it computes: the dimensions of
/// its result, and then those along which it sums.
#[derive(Debug)]
pub(super) enum Local {
    /// Each element from those at its place; scalars are the same for all.
    Elementwise,
    /// A constant whose elements are the same.
    Splat,
    /// Places along this dimension.
    Iota(usize),
    /// The operand's dimension `d` is the result's dimension `dims[d]`, or has one element that is repeated.
    Broadcast(Vec<usize>),
    /// The result's dimension `d` is the operand's dimension `dims[d]`.
    Transpose(Vec<usize>),
    /// The dimensions of the operands that are reduced, and whether by a sum.
    Reduce(Vec<usize>, bool),
    Concatenate(usize),
    Dot(Dot),
}

/// Which dimensions of the operands of a product mean what: those of the result are `batch`, and then the
/// `free` ones of either operand; those that it sums along are `summed`.
#[derive(Debug)]
pub(super) struct Dot {
    batch: [Vec<usize>; 2],
    free: [Vec<usize>; 2],
    summed: [Vec<usize>; 2],
}

/// Element-wise operations with attributes or other element types; those without are in a table.
const ELEMENTWISE: &[&str] = &[
    "stablehlo.bitcast_convert",
    "stablehlo.clamp",
    "stablehlo.compare",
    "stablehlo.convert",
    "stablehlo.reduce_precision",
    "stablehlo.select",
];

impl Local {
    /// How an operation is done on tiles; `None` if it is done on whole arrays only.
    pub(super) fn of(op: &Operation, cx: &Lowering<'_>) -> Option<Self> {
        let types = |values: &[_]| -> Option<Vec<ArrayShape>> {
            values.iter().map(|&value| plain(cx.source.type_of(value))).collect()
        };
        let (operands, results) = (types(&op.operands)?, types(&op.results)?);
        let (result, attrs) = (results.first()?, Attrs::new(&op.attributes));
        let sizes = |name: &str| attrs.needed_sizes(name).ok();
        let local = match op.name.as_str() {
            "stablehlo.constant" => match op.attribute("value") {
                Some(Attribute::Dense(dense)) if dense.is_splat => Local::Splat,
                _ => return None,
            },
            "stablehlo.iota" => Local::Iota(attrs.size("iota_dimension").ok()?),
            "stablehlo.broadcast_in_dim" => Local::Broadcast(sizes("broadcast_dimensions")?),
            "stablehlo.transpose" => Local::Transpose(sizes("permutation")?),
            "stablehlo.reduce" => Local::Reduce(sizes("dimensions")?, is_sum(op, result.element())),
            "stablehlo.concatenate" => Local::Concatenate(attrs.size("dimension").ok()?),
            "stablehlo.dot_general" => Local::Dot(Dot::of(&attrs, &operands)?),
            _ if is_elementwise(op, cx, &operands) => Local::Elementwise,
            _ => return None,
        };
        local.is_sound(&operands, &results).then_some(local)
    }

    /// Whether the operands have as many dimensions as this says, so that what follows can rely on it.
    fn is_sound(&self, operands: &[ArrayShape], results: &[ArrayShape]) -> bool {
        let rank = results[0].rank();
        let fits = |dims: &[usize], rank: usize| dims.iter().all(|&dim| dim < rank);
        match (self, operands) {
            (Local::Elementwise, _) => {
                let dims = results[0].dims();
                let is_like = |shape: &ArrayShape| shape.rank() == 0 || shape.dims() == dims;
                // (An array of the bits of a scalar has elements that no scalar is.)
                let has_all = operands.iter().any(|shape| shape.dims() == dims);
                results.len() == 1 && has_all && operands.iter().all(is_like)
            }
            (Local::Splat, []) => true,
            (Local::Iota(dim), []) => *dim < rank,
            (Local::Broadcast(dims), [x]) => {
                dims.len() == x.rank()
                    && fits(dims, rank)
                    && dims
                        .iter()
                        .zip(x.dims())
                        .all(|(&dim, &size)| size == 1 || size == results[0].dims()[dim])
            }
            (Local::Transpose(dims), [x]) => {
                let mut sorted = dims.clone();
                sorted.sort_unstable();
                x.rank() == rank && sorted.iter().copied().eq(0..rank)
            }
            (Local::Reduce(dims, _), _) => {
                let (inputs, inits) = operands.split_at(operands.len() / 2);
                let first = inputs.first().map_or(&[][..], ArrayShape::dims);
                operands.len() == 2 * results.len()
                    && fits(dims, first.len())
                    && rank + dims.len() == first.len()
                    && inputs.iter().all(|shape| shape.dims() == first)
                    && inits.iter().all(ArrayShape::is_scalar)
            }
            (Local::Concatenate(dim), [_, ..]) => {
                *dim < rank && operands.iter().all(|shape| shape.rank() == rank)
            }
            (Local::Dot(dot), [lhs, rhs]) => {
                let known = dot.batch[0].len() + dot.free[0].len() + dot.free[1].len();
                let all = |side: usize| [&dot.batch[side][..], &dot.summed[side]].concat();
                let mut lists = [&dot.batch, &dot.summed].into_iter();
                let is_even = lists.all(|lists| lists[0].len() == lists[1].len());
                fits(&all(0), lhs.rank()) && fits(&all(1), rhs.rank()) && is_even && known == rank
            }
            _ => false,
        }
    }

    /// Whether it costs no more to do it again for other tiles than to cut them out.
    pub(super) fn is_cheap(&self) -> bool {
        matches!(self, Local::Elementwise | Local::Splat | Local::Iota(_) | Local::Broadcast(_))
    }

    /// How the operand of this number is cut up if the space is cut up so.
    pub(super) fn operand(&self, number: usize, shape: &ArrayShape, space: &Tiling) -> Tiling {
        let rank = shape.rank();
        let dims: Vec<Option<usize>> = match self {
            Local::Elementwise if rank == 0 => Vec::new(),
            Local::Broadcast(dims) => {
                let whole = |d: usize| shape.dims()[d] == 1;
                (0..rank).map(|d| Some(dims[d]).filter(|_| !whole(d))).collect()
            }
            Local::Transpose(dims) => {
                (0..rank).map(|d| dims.iter().position(|&dim| dim == d)).collect()
            }
            // A sum begins with its first value once, in whichever part of it.
            Local::Reduce(reduced, _) if number > 0 && rank == 0 => {
                return space.summed_from(space.tiles.len() - reduced.len()).scalar();
            }
            Local::Reduce(reduced, _) => {
                let kept = |d: usize| (0..d).filter(|d| !reduced.contains(d)).count();
                let place = |d: usize| match reduced.iter().position(|&dim| dim == d) {
                    Some(place) => rank - reduced.len() + place,
                    None => kept(d),
                };
                (0..rank).map(|d| Some(place(d))).collect()
            }
            Local::Concatenate(dim) => (0..rank).map(|d| Some(d).filter(|d| d != dim)).collect(),
            Local::Dot(dot) => dot.operand(number, rank),
            Local::Elementwise | Local::Splat | Local::Iota(_) => (0..rank).map(Some).collect(),
        };
        space.along(&dims)
    }

    /// How the space is cut up for operands in these tiles, of which some may be anything (`None`): the
    /// tiling that needs the fewest of them in other tiles. `None` if the result, of this rank, is best
    /// made as a whole.
    pub(super) fn space(&self, operands: &[Option<&Tiling>], rank: usize) -> Option<Tiling> {
        let first = || operands.iter().copied().flatten().find(|tiling| !tiling.tiles.is_empty());
        let from = |dims: &[usize], d: usize| dims.iter().position(|&dim| dim == d);
        let tiling = match self {
            Local::Splat | Local::Iota(_) => return None,
            Local::Elementwise => first()?.clone(),
            Local::Broadcast(dims) => {
                let dims: Vec<_> = (0..rank).map(|d| from(dims, d)).collect();
                first()?.along(&dims)
            }
            Local::Transpose(dims) => {
                first()?.along(&dims.iter().copied().map(Some).collect::<Vec<_>>())
            }
            Local::Reduce(reduced, is_sum) => {
                let operand = first()?;
                let kept = (0..operand.tiles.len()).filter(|d| !reduced.contains(d)).map(Some);
                let summed = reduced.iter().map(|&d| Some(d).filter(|_| *is_sum));
                operand.along(&kept.chain(summed).collect::<Vec<_>>())
            }
            Local::Concatenate(dim) => {
                let dims: Vec<_> = (0..rank).map(|d| Some(d).filter(|d| d != dim)).collect();
                first()?.along(&dims)
            }
            Local::Dot(dot) => dot.space(operands)?,
        };
        (!tiling.is_whole()).then_some(tiling)
    }
}

impl Dot {
    fn of(attrs: &Attrs<'_>, operands: &[ArrayShape]) -> Option<Self> {
        let [lhs, rhs] = operands else { return None };
        let dims = attrs.needed_fields("dot_dimension_numbers").ok()?;
        let sizes = |name: &str| dims.sizes(name).ok();
        let batch = [sizes("lhs_batching_dimensions")?, sizes("rhs_batching_dimensions")?];
        let summed = [sizes("lhs_contracting_dimensions")?, sizes("rhs_contracting_dimensions")?];
        let free = |side: usize, rank: usize| {
            let is_free = |d: &usize| !batch[side].contains(d) && !summed[side].contains(d);
            (0..rank).filter(is_free).collect()
        };
        let free = [free(0, lhs.rank()), free(1, rhs.rank())];
        Some(Dot { batch, free, summed })
    }

    /// Where the free dimensions of either operand and those that it sums along begin in the space, and
    /// where that ends.
    fn places(&self) -> [usize; 4] {
        let left = self.batch[0].len();
        let right = left + self.free[0].len();
        let summed = right + self.free[1].len();
        [left, right, summed, summed + self.summed[0].len()]
    }

    /// The dimension of the space that each dimension of an operand is.
    fn operand(&self, side: usize, rank: usize) -> Vec<Option<usize>> {
        let places = self.places();
        let lists = [(&self.batch, 0), (&self.free, places[side]), (&self.summed, places[2])];
        let of = |d: usize| {
            let mut all = lists.iter().map(|(list, begin)| (&list[side], begin));
            all.find_map(|(list, begin)| Some(begin + list.iter().position(|&dim| dim == d)?))
        };
        (0..rank).map(of).collect()
    }

    /// Both operands' tiles if there is a partition for each pair of them, else those of one operand.
    fn space(&self, operands: &[Option<&Tiling>]) -> Option<Tiling> {
        let [lhs, rhs] = *operands else { return None };
        let [_, right, summed, end] = self.places();
        let of = |side: usize, tiling: &Tiling| {
            let mut dims = vec![None; end];
            for (d, place) in self.operand(side, tiling.tiles.len()).into_iter().enumerate() {
                if let Some(place) = place {
                    dims[place] = Some(d);
                }
            }
            tiling.along(&dims)
        };
        let candidates = match (lhs.map(|tiling| of(0, tiling)), rhs.map(|tiling| of(1, tiling))) {
            (Some(lhs), Some(rhs)) => {
                let is_whole = lhs.tiles[summed..].iter().all(|&tiles| tiles == 1);
                let both = lhs.with(&rhs, right..if is_whole { end } else { summed });
                let nothing = Tiling::whole(end, both.tile_of.len());
                let alone = both.with(&nothing, summed..end);
                vec![both, alone, lhs, rhs]
            }
            (lhs, rhs) => lhs.into_iter().chain(rhs).collect(),
        };
        candidates.into_iter().find(|tiling| tiling.is_complete() && !tiling.is_whole())
    }
}

/// Whether what a reduction does with two values is to add them.
fn is_sum(op: &Operation, element: ElementType) -> bool {
    let blocks: Vec<_> = op.regions.iter().flat_map(|region| &region.blocks).collect();
    let [block] = blocks[..] else { return false };
    let [add, end] = &block.operations[..] else { return false };
    let adds = add.name == "stablehlo.add" && add.operands == block.arguments;
    adds && end.operands == add.results && op.results.len() == 1 && !element.is_pred()
}

/// The shape of an array whose elements are what they seem and whose sizes are known.
fn plain(ty: &Type) -> Option<ArrayShape> {
    let tensor = ty.as_tensor()?;
    let is_plain = types::quantized(ty).is_none() && !types::is_carried(ty);
    types::array(tensor).ok().filter(|shape| is_plain && shape.is_static())
}

fn is_elementwise(op: &Operation, cx: &Lowering<'_>, operands: &[ArrayShape]) -> bool {
    match op.name.as_str() {
        "stablehlo.composite" => {
            let Some(Attribute::String(name)) = op.attribute("name") else { return false };
            // Else its decomposition is called, which is for whole arrays.
            let is_native = |op: &Op| match (op, operands) {
                (Op::Unary(op), [x]) => {
                    op.accepts().includes(x.element()) && !x.element().is_complex()
                }
                _ => false,
            };
            name.starts_with("chlo.") && cx.elementwise.get(name.as_str()).is_some_and(is_native)
        }
        name => {
            op.regions.is_empty()
                && (cx.elementwise.contains_key(name) || ELEMENTWISE.contains(&name))
        }
    }
}

impl<'m> Body<'_, 'm> {
    /// The tiles of an operation's results, from tiles of its operands.
    pub(super) fn on_tiles(
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
        let ids = match local {
            Local::Splat => {
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
            Local::Iota(dim) => {
                attrs.get("iota_dimension");
                vec![self.iota_tile(shape.clone(), *dim, tiling)?]
            }
            Local::Broadcast(dims) => {
                attrs.get("broadcast_dimensions");
                let [operand] = site.operands()?;
                vec![self.broadcast(operand, shape.clone(), dims)?]
            }
            _ => self.plain(site)?,
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
