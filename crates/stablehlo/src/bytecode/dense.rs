//! Numbers and elements of tensors as they lie in the file.

use std::sync::Arc;

use helio_ir::{Array, ArrayShape, Result};

use super::cursor::Cursor;
use crate::mlir::{Attribute, Dense, FloatType, Signedness, Type};

/// The bits of a number of this type; `None` if it is none.
pub(super) fn bits(ty: &Type) -> Option<u32> {
    match ty {
        Type::Integer { width, .. } => Some(*width),
        Type::Index => Some(64),
        Type::Float(ty) => Some(ty.bits()),
        Type::Complex(part) => bits(part)?.checked_mul(2),
        Type::Quantized(quantized) => bits(&quantized.storage),
        _ => None,
    }
}

/// How many bytes an element of this type takes: each real number takes whole bytes.
pub(super) fn element_bytes(ty: &Type) -> Option<u64> {
    match ty {
        Type::Complex(part) => element_bytes(part)?.checked_mul(2),
        ty => Some(u64::from(bits(ty)?).div_ceil(8)),
    }
}

/// The value of an integer, of which the type is known.
pub(super) fn integer(cursor: &mut Cursor<'_>, ty: Type) -> Result<Attribute> {
    let (width, is_unsigned) = match ty {
        Type::Integer { width, sign } => (width, sign == Signedness::Unsigned || width == 1),
        Type::Index => (64, false),
        ty => return Err(cursor.error(format!("an integer of type {ty}"))),
    };
    let bits = cursor.known_width(width as usize, "the value of an integer")?;
    let spare = 64_u32.saturating_sub(width).min(63);
    let value = match is_unsigned {
        true => i128::from(bits << spare >> spare),
        false => i128::from((bits << spare) as i64 >> spare),
    };
    Ok(Attribute::Integer { value, ty })
}

/// The value of a floating-point number, of which the type is known.
pub(super) fn float(cursor: &mut Cursor<'_>, ty: Type) -> Result<Attribute> {
    let at = *cursor;
    let Type::Float(format) = ty else {
        return Err(at.error(format!("a floating-point number of type {ty}")));
    };
    let bits = cursor.known_width(format.bits() as usize, "the value of a number")?;
    let value = float_value(format, bits)
        .ok_or_else(|| at.unknown(format!("a number of type {}", format.name())))?;
    Ok(Attribute::Float { value, ty })
}

/// The number with these bits, if HLO has the format.
fn float_value(format: FloatType, bits: u64) -> Option<f64> {
    let shape = ArrayShape::scalar(format.element()?);
    let bytes = bits.to_le_bytes();
    let array = Array::from_bytes(shape.clone(), &bytes[..shape.size_bytes()]).ok()?;
    Some(array.number(0).to_f64())
}

/// The elements of a tensor: all of them, or one that stands for all.
pub(super) fn dense(at: &Cursor<'_>, ty: Type, bytes: &[u8]) -> Result<Dense> {
    let Some((count, element)) = count_and_bytes(&ty) else {
        return Err(at.unknown(format!("elements of a tensor of type {ty}")));
    };
    let length = bytes.len() as u64;
    if matches!(&ty, Type::Tensor(tensor) if *tensor.element == Type::signless(1))
        && let Some((bytes, is_splat)) = truth_values(count, bytes)
    {
        return Ok(Dense { ty, bytes, is_splat });
    }
    let is_whole = count.checked_mul(element) == Some(length);
    if !is_whole && length != element {
        let detail = format!(
            "{length} bytes for the elements of {ty}; {element} for each or for all are required"
        );
        return Err(at.error(detail));
    }
    Ok(Dense { ty, bytes: Arc::from(bytes), is_splat: !is_whole })
}

/// How many elements a tensor of static size has, and how many bytes each of them takes.
fn count_and_bytes(ty: &Type) -> Option<(u64, u64)> {
    let tensor = ty.as_tensor()?;
    let sizes = tensor.dims.iter().map(|dim| dim.unwrap_or(0));
    let is_static = tensor.dims.iter().all(Option::is_some);
    let count = sizes.clone().try_fold(1, u64::checked_mul);
    // A size of 0 after sizes whose product is too large makes no elements.
    let count = if sizes.clone().any(|size| size == 0) { Some(0) } else { count };
    count.filter(|_| is_static).zip(element_bytes(&tensor.element))
}

/// The bytes of truth values, one each: in the file eight of them are packed into a byte, the first
/// the lowest, and one byte 0xFF stands for nothing but true. Some old files have a byte for each.
fn truth_values(count: u64, bytes: &[u8]) -> Option<(Arc<[u8]>, bool)> {
    let length = bytes.len() as u64;
    if bytes == [0xFF] {
        return Some((Arc::from([1]), count != 1));
    }
    if length == count.div_ceil(8) && length != count {
        let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1;
        return Some(((0..count as usize).map(bit).collect(), false));
    }
    // A byte for each, or one byte 0 for nothing but false.
    let is_whole = length == count;
    (is_whole || length == 1)
        .then(|| (bytes.iter().map(|&byte| u8::from(byte != 0)).collect(), !is_whole))
}
