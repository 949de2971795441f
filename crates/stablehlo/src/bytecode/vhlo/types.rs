//! VHLO's types in bytecode, read by their codes.

use helio_ir::Result;

use super::super::builtin::tensor;
use super::super::cursor::Cursor;
use super::super::table::Tables;
use crate::mlir::{FloatType, Quantized, Signedness, Type};

/// Whose bits are 1 in the flags of quantized types whose integers are signed.
const SIGNED_STORAGE: u64 = 1;

/// The codes of types that have no parts.
pub(crate) const PLAIN: &[(u64, Type)] = &[
    (0, integer(1, Signedness::Signless)),
    (2, Type::Float(FloatType::BF16)),
    (3, Type::Float(FloatType::F16)),
    (4, Type::Float(FloatType::F32)),
    (5, Type::Float(FloatType::F64)),
    (6, Type::Float(FloatType::F8E4M3FN)),
    (7, Type::Float(FloatType::F8E5M2)),
    (9, Type::Index),
    (10, integer(4, Signedness::Signless)),
    (11, integer(8, Signedness::Signless)),
    (12, integer(16, Signedness::Signless)),
    (13, integer(32, Signedness::Signless)),
    (14, integer(64, Signedness::Signless)),
    (15, integer(4, Signedness::Unsigned)),
    (16, integer(8, Signedness::Unsigned)),
    (17, integer(16, Signedness::Unsigned)),
    (18, integer(32, Signedness::Unsigned)),
    (19, integer(64, Signedness::Unsigned)),
    (22, Type::Token),
    (27, Type::Float(FloatType::F8E4M3FNUZ)),
    (28, Type::Float(FloatType::F8E5M2FNUZ)),
    (29, Type::Float(FloatType::F8E4M3B11FNUZ)),
    (31, integer(2, Signedness::Signless)),
    (32, integer(2, Signedness::Unsigned)),
    (33, Type::None),
    (34, Type::Float(FloatType::TF32)),
    (35, Type::Float(FloatType::F8E4M3)),
    (36, Type::Float(FloatType::F8E3M4)),
    (37, Type::Float(FloatType::F4E2M1FN)),
    (38, Type::Float(FloatType::F6E2M3FN)),
    (39, Type::Float(FloatType::F6E3M2FN)),
    (40, Type::Float(FloatType::F8E8M0FNU)),
];

/// The codes of types that have parts, and of the one whose name is another dialect's.
pub(crate) mod code {
    pub(crate) const COMPLEX: u64 = 1;
    pub(crate) const FUNCTION: u64 = 8;
    pub(crate) const TENSOR: u64 = 20;
    pub(crate) const TENSOR_WITH_ENCODING: u64 = 21;
    pub(crate) const TUPLE: u64 = 23;
    pub(crate) const QUANTIZED: u64 = 24;
    pub(crate) const UNRANKED_TENSOR: u64 = 25;
    pub(crate) const WITNESS: u64 = 26;
    pub(crate) const QUANTIZED_PER_AXIS: u64 = 30;
    pub(crate) const BUFFER: u64 = 41;
    pub(crate) const FUTURE: u64 = 42;
}

/// VHLO's signed integers are MLIR's signless ones.
const fn integer(width: u32, sign: Signedness) -> Type {
    Type::Integer { width, sign }
}

/// A type.
pub(crate) fn ty(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    let at = *cursor;
    let code = cursor.int("the kind of a VHLO type")?;
    if let Some((_, ty)) = PLAIN.iter().find(|row| row.0 == code) {
        return Ok(ty.clone());
    }
    Ok(match code {
        code::COMPLEX => Type::Complex(Box::new(tables.ty(cursor)?)),
        code::FUNCTION => {
            let (inputs, results) = (tables.types(cursor)?, tables.types(cursor)?);
            Type::Function { inputs, results }
        }
        code::TENSOR | code::TENSOR_WITH_ENCODING => {
            let has_encoding = code == code::TENSOR_WITH_ENCODING;
            let encoding = if has_encoding { Some(tables.attribute(cursor)?) } else { None };
            let dims = cursor.signed_list("the number of dimensions")?;
            let element = tables.ty(cursor)?;
            tensor(&at, &dims, element, encoding)?
        }
        code::TUPLE => Type::Tuple(tables.types(cursor)?),
        code::UNRANKED_TENSOR => Type::UnrankedTensor(Box::new(tables.ty(cursor)?)),
        code::WITNESS => Type::Other("!shape.witness".to_owned()),
        code::QUANTIZED | code::QUANTIZED_PER_AXIS => {
            quantized(tables, cursor, code == code::QUANTIZED_PER_AXIS)?
        }
        code::BUFFER => buffer(tables, cursor)?,
        code::FUTURE => {
            let types = tables.types(cursor)?;
            let types: Vec<_> = types.iter().map(Type::to_string).collect();
            Type::Other(format!("!stablehlo.future<{}>", types.join(", ")))
        }
        code => return Err(at.unknown(format!("VHLO type of kind {code}"))),
    })
}

/// `memref<2xf32>`, kept as text: nothing but its size means anything here.
fn buffer(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    let at = *cursor;
    let dims = cursor.signed_list("the number of dimensions")?;
    let element = tables.ty(cursor)?;
    let tensor = tensor(&at, &dims, element, None)?.to_string();
    Ok(Type::Other(format!("memref{}", tensor.trim_start_matches("tensor"))))
}

fn quantized(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>, per_axis: bool) -> Result<Type> {
    let at = *cursor;
    let flags = cursor.int("the flags of a quantized type")?;
    let storage = tables.ty(cursor)?;
    let expressed = tables.ty(cursor)?;
    let axis = if per_axis { Some(cursor.int("a dimension")? as usize) } else { None };
    let (scales, zero_points, min, max);
    if per_axis {
        (min, max) = (cursor.signed("the lowest value")?, cursor.signed("the highest value")?);
        scales = cursor.list("the number of scales", |cursor| cursor.f64("a scale"))?;
        zero_points = cursor.signed_list("the number of zero points")?;
    } else {
        scales = vec![cursor.f64("a scale")?];
        zero_points = vec![cursor.signed("a zero point")?];
        (min, max) = (cursor.signed("the lowest value")?, cursor.signed("the highest value")?);
    }
    let Type::Integer { width: width @ 1..=32, .. } = storage else {
        return Err(at.error(format!("quantized numbers are stored as {storage}, no integer")));
    };
    if scales.len() != zero_points.len() {
        let (scales, zero_points) = (scales.len(), zero_points.len());
        return Err(at.error(format!("{scales} scales with {zero_points} zero points")));
    }
    let is_signed = flags & SIGNED_STORAGE != 0;
    let sign = if is_signed { Signedness::Signless } else { Signedness::Unsigned };
    let least = if is_signed { -(1 << (width - 1)) } else { 0 };
    let greatest = least + (1_i64 << width) - 1;
    let is_whole = (min, max) == (least, greatest);
    let stated = |value| if is_whole { None } else { Some(value) };
    Ok(Type::Quantized(Box::new(Quantized {
        storage: Type::Integer { width, sign },
        expressed,
        storage_min: stated(min),
        storage_max: stated(max),
        axis,
        scales,
        zero_points,
    })))
}
