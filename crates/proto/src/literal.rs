//! Literals. Messages hold elements in the order of the layout, helio row-major.

use std::borrow::Cow;

use helio_ir::types::strides;
use helio_ir::{Array, ArrayShape, ElementType, Error, Layout, Literal, Result, Shape};

use crate::messages::{LayoutProto, LiteralProto};
use crate::shape;

/// The value of a literal.
pub(crate) fn read(proto: &LiteralProto) -> Result<Literal> {
    let shape = proto.shape.as_ref().ok_or_else(|| Error::invalid("a literal without a shape"))?;
    // The nesting of the shape, which is limited, is that of the literal.
    match shape::read(shape)? {
        Shape::Array(array) => read_array(proto, array).map(Literal::from),
        Shape::Tuple(elements) if elements.len() == proto.tuple_literals.len() => {
            let parts = proto.tuple_literals.iter().map(read).collect::<Result<_>>()?;
            Ok(Literal::Tuple(parts))
        }
        shape => Err(Error::invalid(format!("a literal of shape {shape} without its value"))),
    }
}

fn read_array(proto: &LiteralProto, shape: ArrayShape) -> Result<Array> {
    let bytes = element_bytes(proto, shape.element());
    let wanted = shape.size_bytes();
    if bytes.len() != wanted {
        let found = bytes.len();
        return Err(Error::invalid(format!(
            "a literal of shape {shape} with {found} bytes of elements, must have {wanted}"
        )));
    }
    let order = layout_order(&shape);
    let plain = shape.without_layout();
    match order {
        None => Array::from_bytes(plain, &bytes),
        Some(order) => {
            let size = plain.element().size_bytes();
            let mut rows = vec![0; bytes.len()];
            for (from, to) in bytes.chunks(size).zip(order) {
                rows[to * size..][..size].copy_from_slice(from);
            }
            Array::from_bytes(plain, &rows)
        }
    }
}

/// For each element in the order of the layout its row-major place; `None` if these are the same.
fn layout_order(shape: &ArrayShape) -> Option<impl Iterator<Item = usize> + use<>> {
    let order = shape.layout()?.minor_to_major.clone();
    let rank = shape.rank();
    if order.iter().copied().eq((0..rank).rev()) || order.len() != rank {
        return None;
    }
    let (dims, steps) = (shape.dims().to_vec(), strides(shape.dims()));
    let mut point = vec![0; rank];
    let mut place = 0;
    Some((0..shape.element_count()).map(move |_| {
        let here = place;
        for &d in &order {
            point[d] += 1;
            place += steps[d];
            if point[d] < dims[d] {
                break;
            }
            place -= steps[d] * dims[d];
            point[d] = 0;
        }
        here
    }))
}

/// The elements' bytes, little-endian, in the order of the message.
fn element_bytes(proto: &LiteralProto, element: ElementType) -> Cow<'_, [u8]> {
    macro_rules! numbers {
        ($field:ident) => {
            Cow::Owned(proto.$field.iter().flat_map(|value| value.to_le_bytes()).collect())
        };
    }
    match element {
        ElementType::Pred => Cow::Owned(proto.preds.iter().map(|&bit| u8::from(bit)).collect()),
        ElementType::S32 => numbers!(s32s),
        ElementType::S64 => numbers!(s64s),
        ElementType::U32 => numbers!(u32s),
        ElementType::U64 => numbers!(u64s),
        ElementType::F32 => numbers!(f32s),
        ElementType::F64 => numbers!(f64s),
        ElementType::C64 => numbers!(c64s),
        ElementType::C128 => numbers!(c128s),
        _ => Cow::Borrowed(byte_field(proto, element)),
    }
}

/// Names the field of bytes that a type's elements are in.
macro_rules! byte_fields {
    ($($variant:ident: $field:ident,)*) => {
        fn byte_field(proto: &LiteralProto, element: ElementType) -> &[u8] {
            match element {
                $(ElementType::$variant => &proto.$field,)*
                _ => &[],
            }
        }

        fn byte_field_mut(proto: &mut LiteralProto, element: ElementType) -> Option<&mut Vec<u8>> {
            match element {
                $(ElementType::$variant => Some(&mut proto.$field),)*
                _ => None,
            }
        }
    };
}

byte_fields! {
    S2: s2s,
    S4: s4s,
    S8: s8s,
    S16: s16s,
    U2: u2s,
    U4: u4s,
    U8: u8s,
    U16: u16s,
    F16: f16s,
    BF16: bf16s,
    F4E2M1FN: f4e2m1fns,
    F8E3M4: f8e3m4s,
    F8E4M3: f8e4m3s,
    F8E4M3FN: f8e4m3fns,
    F8E4M3B11FNUZ: f8e4m3b11fnuzs,
    F8E4M3FNUZ: f8e4m3fnuzs,
    F8E5M2: f8e5m2s,
    F8E5M2FNUZ: f8e5m2fnuzs,
    F8E8M0FNU: f8e8m0fnus,
}

/// The message for a literal, in the layout of the shape that an instruction gives it.
pub(crate) fn write(literal: &Literal, stated: &Shape) -> LiteralProto {
    match (literal, stated) {
        (Literal::Tuple(parts), Shape::Tuple(shapes)) => LiteralProto {
            shape: Some(shape::write(stated)),
            tuple_literals: parts.iter().zip(shapes).map(|(part, s)| write(part, s)).collect(),
            ..LiteralProto::default()
        },
        (literal, stated) => match (literal.as_array(), stated.as_array()) {
            (Some(array), Some(stated)) => write_array(array, stated),
            _ => LiteralProto { shape: Some(shape::write(stated)), ..LiteralProto::default() },
        },
    }
}

fn write_array(array: &Array, stated: &ArrayShape) -> LiteralProto {
    let mut shape = shape::write_array(stated);
    if let Some(layout) = &mut shape.layout {
        // Literals lie in the order of dimensions that the shape states, and know no tiles and memories.
        let minor_to_major = std::mem::take(&mut layout.minor_to_major);
        **layout = LayoutProto { minor_to_major, ..shape::write_layout(&Layout::descending(0)) };
    }
    let mut proto = LiteralProto { shape: Some(shape), ..LiteralProto::default() };
    let element = array.element();
    let rows = array.to_bytes();
    let bytes = match layout_order(stated) {
        None => rows,
        Some(order) => {
            let size = element.size_bytes();
            Cow::Owned(order.flat_map(|place| rows[place * size..][..size].to_vec()).collect())
        }
    };
    macro_rules! numbers {
        ($field:ident: $ty:ty) => {{
            let chunks = bytes.as_chunks::<{ size_of::<$ty>() }>().0.iter();
            proto.$field = chunks.map(|&chunk| <$ty>::from_le_bytes(chunk)).collect();
        }};
    }
    match element {
        ElementType::Pred => proto.preds = bytes.iter().map(|&byte| byte != 0).collect(),
        ElementType::S32 => numbers!(s32s: i32),
        ElementType::S64 => numbers!(s64s: i64),
        ElementType::U32 => numbers!(u32s: u32),
        ElementType::U64 => numbers!(u64s: u64),
        ElementType::F32 => numbers!(f32s: f32),
        ElementType::F64 => numbers!(f64s: f64),
        ElementType::C64 => numbers!(c64s: f32),
        ElementType::C128 => numbers!(c128s: f64),
        element => {
            if let Some(field) = byte_field_mut(&mut proto, element) {
                *field = bytes.into_owned();
            }
        }
    }
    proto
}
