//! Quantized numbers: the integers that are stored, and arithmetic on what they stand for.

use std::borrow::Cow;

use helio_ir::ops::Clamp;
use helio_ir::{ArrayShape, Error, InstrId, Result, UnaryOp};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::{Quantized, Signedness, Type};

/// Operations that hand on what is stored, or whose regions have operations of their own.
const ON_STORAGE: &[&str] = &[
    "bitcast_convert",
    "case",
    "composite",
    "constant",
    "custom_call",
    "get_dimension_size",
    "get_tuple_element",
    "if",
    "map",
    "optimization_barrier",
    "reduce",
    "reduce_window",
    "scatter",
    "select_and_scatter",
    "sort",
    "tuple",
    "while",
];

/// Operations that move elements, which need not know what those stand for.
const MOVES: &[&str] = &[
    "all_gather",
    "all_to_all",
    "broadcast",
    "broadcast_in_dim",
    "collective_broadcast",
    "collective_permute",
    "concatenate",
    "dynamic_broadcast_in_dim",
    "dynamic_gather",
    "dynamic_pad",
    "dynamic_reshape",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "pad",
    "real_dynamic_slice",
    "reshape",
    "reverse",
    "select",
    "slice",
    "transpose",
];

/// Whether an operation is to be done on what quantized numbers stand for.
pub(super) fn concerns(site: &Site<'_, '_>) -> bool {
    let types = site.operand_types.iter().copied().chain(site.result_types.iter().map(Cow::as_ref));
    let mut found = types.filter_map(types::quantized);
    let Some(first) = found.next() else { return false };
    let Some(name) = site.op.name.strip_prefix("stablehlo.") else {
        return site.op.name.starts_with("chlo.");
    };
    let same = |other: &Quantized| {
        (&first.storage, &first.scales, &first.zero_points)
            == (&other.storage, &other.scales, &other.zero_points)
    };
    !(ON_STORAGE.contains(&name) || MOVES.contains(&name) && found.all(same))
}

impl<'m> Body<'_, 'm> {
    /// The results of an operation on quantized numbers.
    pub(super) fn quantized(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let operands = site.operands.iter().zip(&site.operand_types).map(|(&id, ty)| {
            match types::quantized(ty) {
                Some(quantized) => self.dequantize(id, quantized),
                None => Ok(id),
            }
        });
        let operands = operands.collect::<Result<Vec<_>>>()?;
        let plain = match site.op.name.as_str() {
            "stablehlo.uniform_quantize" | "stablehlo.uniform_dequantize" => {
                operands.get(..1).unwrap_or_default().to_vec()
            }
            _ => {
                let expressed = site.result_types.iter().map(|ty| match types::quantized(ty) {
                    None => ty.clone(),
                    Some(quantized) => {
                        let mut ty = ty.as_tensor().cloned();
                        if let Some(tensor) = &mut ty {
                            *tensor.element = quantized.expressed.clone();
                        }
                        Cow::Owned(ty.map_or(Type::None, Type::Tensor))
                    }
                });
                let result_types = expressed.collect();
                let operand_types = site.operand_types.clone();
                self.plain(&Site { operands, operand_types, result_types, ..*site })?
            }
        };
        let results = plain.into_iter().zip(&site.result_types);
        results
            .map(|(id, ty)| match types::quantized(ty) {
                Some(quantized) => self.quantize(id, quantized),
                None => Ok(id),
            })
            .collect()
    }

    /// `(stored - zero point) * scale`
    fn dequantize(&mut self, x: InstrId, quantized: &Quantized) -> Result<InstrId> {
        let x = self.convert(x, types::element(&quantized.expressed)?)?;
        let zeros: Vec<f64> = quantized.zero_points.iter().map(|&zero| zero as f64).collect();
        let zero = self.along_axis(x, quantized, &zeros)?;
        let scale = self.along_axis(x, quantized, &quantized.scales)?;
        let moved = self.sub(x, zero)?;
        self.mul(moved, scale)
    }

    /// `x / scale + zero point`, within the range of what is stored, to the nearest even integer.
    fn quantize(&mut self, x: InstrId, quantized: &Quantized) -> Result<InstrId> {
        let storage = types::element(&quantized.storage)?;
        let x = self.convert(x, types::element(&quantized.expressed)?)?;
        let zeros: Vec<f64> = quantized.zero_points.iter().map(|&zero| zero as f64).collect();
        let zero = self.along_axis(x, quantized, &zeros)?;
        let scale = self.along_axis(x, quantized, &quantized.scales)?;
        let scaled = self.div(x, scale)?;
        let moved = self.add(scaled, zero)?;
        let (low, high) = range(quantized)?;
        let (low, high) = (self.like(x, low)?, self.like(x, high)?);
        let clamped = self.push(Clamp, &[low, moved, high])?;
        let rounded = self.unary(UnaryOp::RoundNearestEven, clamped)?;
        self.convert(rounded, storage)
    }

    /// A number for each index of the axis of quantization, or one for all, in the shape of `like`.
    fn along_axis(
        &mut self,
        like: InstrId,
        quantized: &Quantized,
        values: &[f64],
    ) -> Result<InstrId> {
        let shape = self.array(like)?;
        let Some(axis) = quantized.axis else {
            let value = values.first().copied();
            let value = value.ok_or_else(|| Error::invalid("a quantized type without a scale"))?;
            return self.like(like, value);
        };
        let size = shape.dims().get(axis).copied();
        if size != Some(values.len()) {
            let detail = format!("{} scales along dimension {axis} of {shape}", values.len());
            return Err(Error::invalid(detail));
        }
        let element = shape.element();
        let mut parts = Vec::new();
        for &value in values {
            let scalar = self.number(element, value)?;
            parts.push(self.push(
                helio_ir::ops::Reshape { shape: ArrayShape::new(element, [1])? },
                &[scalar],
            )?);
        }
        let list = self.concatenate(&parts, 0)?;
        self.broadcast(list, shape, &[axis])
    }
}

/// The smallest and the largest stored value.
fn range(quantized: &Quantized) -> Result<(f64, f64)> {
    let Type::Integer { width: width @ 2..=32, sign } = quantized.storage else {
        let detail = format!("quantized numbers stored as {}", quantized.storage);
        return Err(Error::unimplemented(detail));
    };
    let (low, high) = match sign {
        Signedness::Unsigned => (0, (1i64 << width) - 1),
        _ => (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1),
    };
    Ok((quantized.storage_min.unwrap_or(low) as f64, quantized.storage_max.unwrap_or(high) as f64))
}
