//! Calls of functions that do the same with each example of a batch: on tiles along the batch's dimensions,
//! which come first in all operands and results.

use std::borrow::Cow;

use helio_ir::{ArrayShape, Error, InstrId, Result};

use super::rules::{Answer, plain};
use super::{Kind, Local};
use crate::front_end;
use crate::lower::Lowering;
use crate::lower::attrs::Attrs;
use crate::lower::body::Body;
use crate::lower::operation::Site;
use crate::mlir::{Attribute, Operation, Type, ValueId};
use crate::tiling::Tiling;

/// How many dimensions the first operand of a function has for one example; `None` for functions that are not
/// known to take batches.
fn example_rank(target: &str, op: &Operation, rank: usize) -> Option<usize> {
    let lapack = target.strip_prefix("lapack_").and_then(|name| name.strip_suffix("_ffi"));
    match (lapack, target) {
        // The diagonals of a matrix; else a matrix.
        (Some(name), _) if name.ends_with("gtsv") => Some(1),
        (Some(_), _) | (_, "Qr" | "ProductOfElementaryHouseholderReflectors") => Some(2),
        (_, "mhlo.topk") => Some(1),
        (_, APPROX_TOP_K) => {
            let along = reduction_dim(op).and_then(|dim| usize::try_from(dim).ok());
            (along.is_some() && along == rank.checked_sub(1)).then_some(1)
        }
        _ => None,
    }
}

/// It calls a computation that compares two elements, whatever tiles they are in.
const APPROX_TOP_K: &str = "ApproxTopK";

/// Along which dimension a call looks for the greatest elements.
fn reduction_dim(op: &Operation) -> Option<i64> {
    let Some(Attribute::Dictionary(fields)) = op.attribute("mhlo.backend_config") else {
        return None;
    };
    Attrs::new(fields).integer("reduction_dim").ok()?
}

impl Local {
    /// How a call is done on some examples of a batch. Its space is the batch's dimensions.
    pub(in crate::lower) fn of_batches(op: &Operation, cx: &Lowering<'_>) -> Option<Self> {
        let (Some(Attribute::String(target)), "stablehlo.custom_call") =
            (op.attribute("call_target_name"), op.name.as_str())
        else {
            return None;
        };
        let shapes = |values: &[ValueId]| -> Option<Vec<ArrayShape>> {
            values.iter().map(|&value| plain(cx.source.type_of(value))).collect()
        };
        let (operands, results) = (shapes(&op.operands)?, shapes(&op.results)?);
        let first = operands.first()?;
        let of_example = example_rank(target, op, first.rank())?;
        let rank = first.rank().checked_sub(of_example).filter(|&rank| rank > 0)?;
        let batch = &first.dims()[..rank];
        let is_batch = |shape: &ArrayShape| shape.dims().starts_with(batch);
        let mut all = operands.iter().filter(|shape| shape.rank() > 0).chain(&results);
        let is_called = |name: &str| matches!(op.attribute(name), Some(Attribute::Array(list)) if !list.is_empty());
        let calls = is_called("called_computations") && target != APPROX_TOP_K;
        if !all.all(is_batch) || calls {
            return None;
        }
        let dims =
            |shape: &ArrayShape| (0..shape.rank()).map(|d| Some(d).filter(|&d| d < rank)).collect();
        let dims = operands.iter().map(dims).collect();
        let space = ArrayShape::new(first.element(), batch).ok()?;
        Local::new(Answer(Kind::Plain, dims, Vec::new(), None), &operands, &space)
    }
}

impl<'m> Body<'_, 'm> {
    /// The tiles of the results of a call, from tiles of its operands.
    pub(in crate::lower) fn batches_on_tiles(
        &mut self,
        op: &'m Operation,
        operands: Vec<InstrId>,
        results: &[Tiling],
    ) -> Result<Vec<InstrId>> {
        let (attrs, source) = (Attrs::new(&op.attributes), self.cx.source);
        let types = op.results.iter().map(|&value| source.type_of(value));
        let result_types = types.zip(results).map(|(ty, tiling)| tile_type(ty, tiling));
        let site = Site {
            op,
            attrs: &attrs,
            operands,
            operand_types: op.operands.iter().map(|&value| source.type_of(value)).collect(),
            result_types: result_types.collect::<Result<_>>()?,
        };
        self.comes_from(op.at.clone(), op.location);
        let around = self.has_attributes(front_end::attributes(&op.attributes));
        let ids = self.plain(&site).and_then(|ids| attrs.finish().map(|()| ids));
        self.has_attributes(around);
        let ids = ids.map_err(|e| e.in_instruction(&op.name).at(op.at.clone()))?;
        match ids.len() == results.len() {
            true => Ok(ids),
            false => Err(Error::invalid(format!("{} results, not {}", ids.len(), results.len()))),
        }
    }
}

/// The type of a tile of an array of this type.
fn tile_type<'m>(ty: &Type, tiling: &Tiling) -> Result<Cow<'m, Type>> {
    let Type::Tensor(tensor) = ty else {
        return Err(Error::internal("a tile of what is no array"));
    };
    let sizes: Vec<usize> = tensor.dims.iter().flatten().map(|&size| size as usize).collect();
    let dims = tiling.local_dims(&sizes)?.into_iter().map(|size| Some(size as u64)).collect();
    Ok(Cow::Owned(Type::Tensor(crate::mlir::TensorType { dims, ..tensor.clone() })))
}
