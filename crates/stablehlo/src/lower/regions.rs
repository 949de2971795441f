//! Operations that apply a region to elements: folds, windows, scatter, sort, map.

use helio_ir::ops::{
    Map, Reduce, ReduceWindow, Scatter, ScatterDims, SelectAndScatter, Sort, Window, WindowDim,
};
use helio_ir::{CompId, Error, InstrId, Result};

use super::body::Body;
use super::control::captures;
use super::operation::Site;
use super::types;
use crate::mlir::Region;

impl<'m> Body<'_, 'm> {
    pub(super) fn with_regions(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let operands = &site.operands;
        let count = match name {
            "reduce" | "reduce_window" => operands.len() / 2,
            "scatter" => operands.len().saturating_sub(1) / 2,
            "sort" => operands.len(),
            _ => 1,
        };
        let to_apply = self.element_region(site, 0, name)?;
        let result = match name {
            "reduce" => {
                let dimensions = attrs.needed_sizes("dimensions")?;
                self.push(Reduce { dimensions, to_apply }, operands)?
            }
            "reduce_window" => {
                let window = window(site, attrs.needed_sizes("window_dimensions")?)?;
                self.push(ReduceWindow { window, to_apply }, operands)?
            }
            "sort" => {
                let rank = self.array(site.operands::<1>()?[0])?.rank() as i64;
                let dimension = attrs.integer("dimension")?.unwrap_or(-1);
                let dimension = if dimension < 0 { dimension + rank } else { dimension };
                let dimension = usize::try_from(dimension)
                    .map_err(|_| Error::invalid(format!("dimension {dimension}")))?;
                let is_stable = attrs.flag("is_stable")?;
                self.push(Sort { dimension, is_stable, to_apply }, operands)?
            }
            "map" => {
                let dimensions = attrs.needed_sizes("dimensions")?;
                self.push(Map { dimensions, to_apply }, operands)?
            }
            "scatter" => {
                let dims = attrs.needed_fields("scatter_dimension_numbers")?;
                let op = Scatter {
                    dims: ScatterDims {
                        update_window_dims: dims.sizes("update_window_dims")?,
                        inserted_window_dims: dims.sizes("inserted_window_dims")?,
                        scatter_dims_to_operand_dims: dims.sizes("scatter_dims_to_operand_dims")?,
                        input_batching_dims: dims.sizes("input_batching_dims")?,
                        scatter_indices_batching_dims: dims
                            .sizes("scatter_indices_batching_dims")?,
                        index_vector_dim: dims.size_or("index_vector_dim", 0)?,
                    },
                    indices_are_sorted: attrs.flag("indices_are_sorted")?,
                    unique_indices: attrs.flag("unique_indices")?,
                    to_apply,
                };
                dims.finish()?;
                self.push(op, operands)?
            }
            _ => {
                let window = window(site, attrs.sizes("window_dimensions")?)?;
                let scatter = self.element_region(site, 1, "scatter")?;
                self.push(SelectAndScatter { window, select: to_apply, scatter }, operands)?
            }
        };
        self.unpack(result, count)
    }

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

/// The window of a reduction over windows of these sizes.
fn window(site: &Site<'_, '_>, sizes: Vec<usize>) -> Result<Window> {
    let attrs = site.attrs;
    let rank = match sizes.len() {
        0 => site.operand_types.first().and_then(|ty| ty.as_tensor()).map_or(0, |t| t.dims.len()),
        rank => rank,
    };
    let list = |name: &str| {
        let values = attrs.sizes(name)?;
        Ok::<_, Error>(if values.is_empty() { vec![1; rank] } else { values })
    };
    let [strides, base, dilation] =
        [list("window_strides")?, list("base_dilations")?, list("window_dilations")?];
    let sizes = if sizes.is_empty() { vec![1; rank] } else { sizes };
    let padding = match attrs.matrix("padding")? {
        Some((_, values)) => values,
        None => vec![0; 2 * rank],
    };
    let lists = [&strides, &base, &dilation, &sizes];
    if lists.iter().any(|list| list.len() != rank) || padding.len() != 2 * rank {
        return Err(Error::invalid("a window's attributes must have one entry for each dimension"));
    }
    let dims = (0..rank).map(|d| WindowDim {
        size: sizes[d],
        stride: strides[d],
        pad_low: padding[2 * d],
        pad_high: padding[2 * d + 1],
        base_dilation: base[d],
        window_dilation: dilation[d],
        reversal: false,
    });
    Ok(Window { dims: dims.collect() })
}
