//! HLO's shapes for MLIR's types, and its literals for `dense<…>`.

use std::borrow::Cow;

use helio_ir::types::F8E4M3FN;
use helio_ir::{
    Array, ArrayShape, DimKind, ElementType, Error, Literal, Native as _, Number, Result, Shape,
};

use crate::mlir::{Dense, FloatType, Quantized, Signedness, TensorType, Type};
use crate::text::float_of_bits;

/// The shape of a value of this type; quantized numbers are what is stored. Errors: types that HLO
/// does not have.
pub(super) fn shape(ty: &Type) -> Result<Shape> {
    match ty {
        Type::Tensor(tensor) => array(tensor).map(Shape::Array),
        Type::Tuple(elements) => {
            elements.iter().map(shape).collect::<Result<_>>().map(Shape::Tuple)
        }
        Type::Token => Ok(Shape::Token),
        _ => Err(Error::unimplemented(format!("values of type {ty}"))),
    }
}

/// The shape of a tensor; `?` without a bound is an unbounded dimension.
pub(super) fn array(tensor: &TensorType) -> Result<ArrayShape> {
    let element = element(&tensor.element)?;
    let size = |dim: u64| {
        usize::try_from(dim).map_err(|_| Error::exhausted(format!("a dimension of size {dim}")))
    };
    let dims = tensor.dims.iter().enumerate().map(|(d, dim)| {
        let bound = tensor.bounds.get(d).copied().flatten();
        match (dim, bound) {
            (Some(dim), _) => Ok((size(*dim)?, DimKind::Static)),
            (None, Some(bound)) => Ok((size(bound)?, DimKind::Bounded)),
            (None, None) => Ok((0, DimKind::Unbounded)),
        }
    });
    ArrayShape::from_dims(element, dims.collect::<Result<Vec<_>>>()?)
}

/// The element type for a type of elements.
pub(super) fn element(ty: &Type) -> Result<ElementType> {
    let found = match ty {
        Type::Integer { width: 1, .. } => Some(ElementType::Pred),
        Type::Integer { width, sign: Signedness::Unsigned } => match width {
            2 => Some(ElementType::U2),
            4 => Some(ElementType::U4),
            8 => Some(ElementType::U8),
            16 => Some(ElementType::U16),
            32 => Some(ElementType::U32),
            64 => Some(ElementType::U64),
            _ => None,
        },
        Type::Integer { width, .. } => match width {
            2 => Some(ElementType::S2),
            4 => Some(ElementType::S4),
            8 => Some(ElementType::S8),
            16 => Some(ElementType::S16),
            32 => Some(ElementType::S32),
            64 => Some(ElementType::S64),
            _ => None,
        },
        Type::Index => Some(ElementType::S64),
        Type::Float(float) if is_six_bits(*float) => Some(SIX_BITS_IN),
        Type::Float(float) => float.element(),
        Type::Complex(part) => element(part)?.to_complex(),
        Type::Quantized(quantized) => Some(element(&quantized.storage)?),
        _ => None,
    };
    found.ok_or_else(|| Error::unimplemented(format!("elements of type {ty}")))
}

/// The type in whose values those of the 6-bit types are found: HLO has none of these.
const SIX_BITS_IN: ElementType = ElementType::F8E4M3FN;

fn is_six_bits(float: FloatType) -> bool {
    matches!(float, FloatType::F6E2M3FN | FloatType::F6E3M2FN)
}

/// Whether a value of this type is kept in another type that has all of its values, so that it may be
/// moved, but not be the result of arithmetic, which would round as the other type does.
pub(super) fn is_carried(ty: &Type) -> bool {
    match ty.as_tensor().map(|tensor| &*tensor.element) {
        Some(Type::Float(float)) => is_six_bits(*float),
        _ => false,
    }
}

/// The quantized type of a tensor's elements, if it is one.
pub(super) fn quantized(ty: &Type) -> Option<&Quantized> {
    match &*ty.as_tensor()?.element {
        Type::Quantized(quantized) => Some(quantized),
        _ => None,
    }
}

/// Whether some size in a type is only known at run time.
pub(super) fn is_dynamic(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) => tensor.dims.contains(&None),
        Type::UnrankedTensor(_) => true,
        Type::Tuple(elements) => elements.iter().any(is_dynamic),
        Type::Function { inputs, results } => inputs.iter().chain(results).any(is_dynamic),
        _ => false,
    }
}

/// Whether a value of this shape may be one of this type: sizes that the type leaves open may be any.
pub(super) fn agrees(found: &Shape, ty: &Type) -> bool {
    let Ok(declared) = shape(ty) else { return false };
    fn same(found: &Shape, declared: &Shape) -> bool {
        match (found, declared) {
            (Shape::Array(a), Shape::Array(b)) => {
                let dims = a.dims_and_kinds().zip(b.dims_and_kinds());
                a.element() == b.element()
                    && a.rank() == b.rank()
                    && dims.into_iter().all(|((size, kind), (other, declared))| match declared {
                        DimKind::Unbounded => true,
                        DimKind::Bounded => size <= other,
                        DimKind::Static => size == other && kind == DimKind::Static,
                    })
            }
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            (a, b) => a.same(b),
        }
    }
    same(found, &declared)
}

/// The elements of a `dense<…>`: a scalar and the shape that it fills, or all of them.
#[derive(Clone)]
pub(super) enum Elements {
    Splat(Literal, ArrayShape),
    All(Literal),
}

/// The value of a constant, whose type may be another than that of the attribute only in being
/// quantized.
pub(super) fn elements(dense: &Dense) -> Result<Elements> {
    let Type::Tensor(tensor) = &dense.ty else {
        return Err(Error::invalid(format!("a constant of type {}", dense.ty)));
    };
    let shape = array(tensor)?;
    let bytes = carried(&tensor.element, &dense.bytes);
    if !dense.is_splat {
        return Ok(Elements::All(Array::from_bytes(shape, &bytes)?.into()));
    }
    let scalar = Array::from_bytes(ArrayShape::scalar(shape.element()), &bytes)?;
    // Of a single element text says that it fills its shape, and bytecode that it is all there is.
    if shape.element_count() == 1 {
        return Ok(Elements::All(scalar.with_shape(shape)?.into()));
    }
    Ok(Elements::Splat(scalar.into(), shape))
}

/// The bytes of elements in the type that they are kept in.
fn carried<'b>(element: &Type, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    match element {
        Type::Float(float) if is_six_bits(*float) => {
            let value = |&byte: &u8| float_of_bits(byte.into(), *float).unwrap_or_default();
            let narrow = |value| F8E4M3FN::from_number(Number::Float(value)).to_bits();
            bytes.iter().map(value).map(narrow).collect()
        }
        _ => bytes.into(),
    }
}
