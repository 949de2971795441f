//! `dense<…> : tensor<…>` written as MLIR text.

use std::fmt::Write as _;

use super::attribute::float;
use crate::mlir::{Dense, FloatType, Signedness, Type};

/// More elements than this are written as bytes, where their type allows it.
const MAX_LISTED: usize = 64;

/// The elements in nested brackets, one for all if they are the same, or all as hexadecimal bytes.
pub(super) fn write_dense(text: &mut String, dense: &Dense) {
    let Type::Tensor(tensor) = &dense.ty else { return };
    let dims: Vec<usize> = tensor.dims.iter().map(|dim| dim.unwrap_or(0) as usize).collect();
    let count: usize = dims.iter().product();
    let size = bytes_of(&tensor.element);
    text.push_str("dense<");
    if count > 0 && (dense.is_splat || dims.is_empty()) {
        write_element(text, &tensor.element, &dense.bytes);
    } else if count > MAX_LISTED && is_whole_bytes(&tensor.element) {
        text.push_str("\"0x");
        for byte in dense.bytes.iter() {
            let _ = write!(text, "{byte:02X}");
        }
        text.push('"');
    } else if count > 0 {
        let mut elements = dense.bytes.chunks_exact(size.max(1));
        write_list(text, &tensor.element, &dims, &mut elements);
    }
    let _ = write!(text, "> : {}", dense.ty);
}

fn write_list<'b>(
    text: &mut String,
    element: &Type,
    dims: &[usize],
    elements: &mut impl Iterator<Item = &'b [u8]>,
) {
    let Some((&size, inner)) = dims.split_first() else {
        write_element(text, element, elements.next().unwrap_or_default());
        return;
    };
    text.push('[');
    for i in 0..size {
        text.push_str(if i > 0 { ", " } else { "" });
        write_list(text, element, inner, elements);
    }
    text.push(']');
}

/// How many bytes an element takes.
fn bytes_of(element: &Type) -> usize {
    match element {
        Type::Integer { width, .. } => (*width as usize).div_ceil(8),
        Type::Float(ty) => (ty.bits() as usize).div_ceil(8),
        Type::Complex(part) => 2 * bytes_of(part),
        Type::Quantized(quantized) => bytes_of(&quantized.storage),
        _ => 8,
    }
}

/// Whether the bytes of elements in memory are those that MLIR has in its text.
fn is_whole_bytes(element: &Type) -> bool {
    match element {
        Type::Integer { width, .. } => width.is_multiple_of(8),
        Type::Float(ty) => ty.bits().is_multiple_of(8),
        Type::Complex(part) => is_whole_bytes(part),
        _ => false,
    }
}

fn write_element(text: &mut String, element: &Type, bytes: &[u8]) {
    let mut word = [0; 16];
    let length = bytes.len().min(16);
    word[..length].copy_from_slice(&bytes[..length]);
    let word = u128::from_le_bytes(word);
    let _ = match element {
        Type::Integer { width: 1, .. } => write!(text, "{}", word & 1 == 1),
        Type::Integer { width, sign: Signedness::Unsigned } => {
            write!(text, "{}", word & ones(*width))
        }
        Type::Integer { width, .. } => {
            let shift = 128 - (*width).clamp(1, 128);
            write!(text, "{}", (word << shift) as i128 >> shift)
        }
        Type::Float(ty) => write!(text, "{}", number(*ty, word)),
        Type::Complex(part) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            text.push('(');
            write_element(text, part, re);
            text.push_str(", ");
            write_element(text, part, im);
            write!(text, ")")
        }
        Type::Quantized(quantized) => {
            write_element(text, &quantized.storage, bytes);
            Ok(())
        }
        _ => write!(text, "{}", word as i64),
    };
}

/// A float by its bits: as a number if that is exact and easy, else in hexadecimal.
fn number(ty: FloatType, word: u128) -> String {
    let value = match ty {
        FloatType::F32 => Some(f64::from(f32::from_bits(word as u32))),
        FloatType::F64 => Some(f64::from_bits(word as u64)),
        FloatType::BF16 => Some(f64::from(f32::from_bits((word as u32) << 16))),
        _ => None,
    };
    match value.filter(|value| value.is_finite()) {
        // Few digits: as many as tell floats of this type apart.
        Some(value) if ty == FloatType::F32 => {
            let text = format!("{:e}", value as f32);
            float(text.parse().unwrap_or(value), &Type::Float(FloatType::F64))
        }
        Some(value) => float(value, &Type::Float(FloatType::F64)),
        None => {
            let digits = (ty.bits() as usize).div_ceil(4);
            format!("0x{:0digits$X}", word & ones(ty.bits()))
        }
    }
}

/// The lowest bits.
fn ones(width: u32) -> u128 {
    u128::MAX.checked_shr(128 - width.min(128)).unwrap_or(0)
}
