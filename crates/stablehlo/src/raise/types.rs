//! MLIR's types for HLO's shapes, and `dense<…>` for arrays.

use helio_ir::{Array, ArrayShape, DimKind, ElementType, Error, Result, Shape};

use crate::mlir::{Attribute, Dense, FloatType, Signedness, TensorType, Type};

/// The type of a value that is no tuple. Errors: an opaque value.
pub(super) fn ty(shape: &Shape) -> Result<Type> {
    match shape {
        Shape::Array(array) => Ok(tensor(array)),
        Shape::Token => Ok(Type::Token),
        Shape::Tuple(_) => Err(Error::internal("a tuple has no type of its own")),
        Shape::Opaque => Err(Error::unimplemented("an opaque value in StableHLO")),
    }
}

/// The type of an array.
pub(super) fn tensor(array: &ArrayShape) -> Type {
    let dims = array.dims_and_kinds();
    let dims = dims.map(|(size, kind)| (kind == DimKind::Static).then_some(size as u64));
    let bounds = array.dims_and_kinds();
    let bounds = bounds.map(|(size, kind)| (kind == DimKind::Bounded).then_some(size as u64));
    let bounds: Vec<Option<u64>> = bounds.collect();
    Type::Tensor(TensorType {
        dims: dims.collect(),
        element: Box::new(element(array.element())),
        bounds: if bounds.iter().all(Option::is_none) { Vec::new() } else { bounds },
        encoding: None,
    })
}

/// The type of an element.
pub(super) fn element(element: ElementType) -> Type {
    if element.is_pred() {
        return Type::signless(1);
    }
    let width = element.bits() as u32;
    if element.is_complex() {
        return Type::Complex(Box::new(self::element(element.real_part())));
    }
    if element.is_unsigned_integer() {
        return Type::Integer { width, sign: Signedness::Unsigned };
    }
    let float = FloatType::ALL.iter().find(|row| row.0.element() == Some(element));
    match float {
        Some(row) => Type::Float(row.0),
        None => Type::signless(width),
    }
}

/// The elements of an array: of one element repeated, that one.
pub(super) fn dense(array: &Array) -> Attribute {
    let bytes = array.to_bytes();
    let size = array.element().size_bytes();
    let is_splat =
        bytes.len() > size && bytes.chunks_exact(size.max(1)).all(|chunk| *chunk == bytes[..size]);
    let bytes = if is_splat { bytes[..size].into() } else { bytes.into() };
    Attribute::Dense(Dense { ty: tensor(array.shape()), bytes, is_splat })
}
