//! Frames: what a handler is called with. Each keeps all that its pointers point to.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;

use helio::ir::{ArrayShape, Attribute, Dictionary};
use helio::{ElementType, Error, Result, Shape};

use super::abi::*;

/// XLA's number of an element type. (PJRT has its own for some.)
pub(super) fn number(element: ElementType) -> u32 {
    match element {
        ElementType::Pred => PRED,
        ElementType::S2 => 26,
        ElementType::S4 => 21,
        ElementType::S8 => 2,
        ElementType::S16 => 3,
        ElementType::S32 => 4,
        ElementType::S64 => 5,
        ElementType::U2 => 27,
        ElementType::U4 => 22,
        ElementType::U8 => 6,
        ElementType::U16 => 7,
        ElementType::U32 => 8,
        ElementType::U64 => 9,
        ElementType::F16 => 10,
        ElementType::F32 => 11,
        ElementType::F64 => 12,
        ElementType::BF16 => 16,
        ElementType::C64 => 15,
        ElementType::C128 => 18,
        ElementType::F8E5M2 => 19,
        ElementType::F8E3M4 => 29,
        ElementType::F8E4M3 => 28,
        ElementType::F8E4M3FN => 20,
        ElementType::F8E4M3B11FNUZ => 23,
        ElementType::F8E5M2FNUZ => 24,
        ElementType::F8E4M3FNUZ => 25,
        ElementType::F4E2M1FN => 32,
        ElementType::F8E8M0FNU => 33,
    }
}

/// Operands or results.
pub(super) struct Buffers {
    types: Vec<u32>,
    /// To each of `_buffers`, which never grows.
    pointers: Vec<*mut c_void>,
    _buffers: Vec<XLA_FFI_Buffer>,
    _dims: Vec<Vec<i64>>,
}

impl Buffers {
    /// Of parts with these shapes, at these addresses.
    pub(super) fn new(parts: impl Iterator<Item = (Shape, *mut c_void)>) -> Self {
        let (mut all_dims, mut buffers) = (Vec::new(), Vec::new());
        for (shape, data) in parts {
            let array = shape.as_array();
            let mut dims: Vec<i64> = array
                .map_or(Vec::new(), |array| array.dims().iter().map(|&dim| dim as i64).collect());
            buffers.push(XLA_FFI_Buffer {
                struct_size: size_of::<XLA_FFI_Buffer>(),
                extension_start: ptr::null_mut(),
                dtype: array.map_or(TOKEN, |array: &ArrayShape| number(array.element())),
                data,
                rank: dims.len() as i64,
                dims: dims.as_mut_ptr(),
            });
            all_dims.push(dims);
        }
        Buffers {
            types: vec![BUFFER; buffers.len()],
            pointers: buffers.iter_mut().map(|buffer| ptr::from_mut(buffer).cast()).collect(),
            _buffers: buffers,
            _dims: all_dims,
        }
    }

    pub(super) fn args(&mut self) -> XLA_FFI_Args {
        XLA_FFI_Args {
            struct_size: size_of::<XLA_FFI_Args>(),
            extension_start: ptr::null_mut(),
            size: self.types.len() as i64,
            types: self.types.as_mut_ptr(),
            args: self.pointers.as_mut_ptr(),
        }
    }
}

/// The value of an attribute, kept where C reads it.
enum Kept {
    Scalar(Box<XLA_FFI_Scalar>, #[allow(dead_code)] Vec<u8>),
    Array(Box<XLA_FFI_Array>, #[allow(dead_code)] Vec<u8>),
    Text(Box<XLA_FFI_ByteSpan>, #[allow(dead_code)] String),
    Dictionary(Box<XLA_FFI_Attrs>, #[allow(dead_code)] Box<Attributes>),
}

impl Kept {
    fn new(value: &Attribute) -> Result<Self> {
        Ok(match value {
            Attribute::Bool(value) => Self::scalar(PRED, vec![(*value).into()]),
            Attribute::Integer(value, ty) => Self::scalar(number(*ty), integer(*value, *ty)),
            Attribute::Float(value, ty) => Self::scalar(number(*ty), float(*value, *ty)?),
            Attribute::String(text) => {
                let text = text.clone();
                let span = Box::new(XLA_FFI_ByteSpan { ptr: text.as_ptr(), len: text.len() });
                Kept::Text(span, text)
            }
            Attribute::Numbers(ty, values) => Self::array(*ty, values)?,
            Attribute::Dictionary(dictionary) => {
                let mut inner = Box::new(Attributes::new(dictionary)?);
                Kept::Dictionary(Box::new(inner.attrs()), inner)
            }
            _ => return Err(Error::unimplemented("an attribute of a kind that XLA's FFI lacks")),
        })
    }

    fn scalar(dtype: u32, mut bytes: Vec<u8>) -> Self {
        Kept::Scalar(Box::new(XLA_FFI_Scalar { dtype, value: bytes.as_mut_ptr().cast() }), bytes)
    }

    fn array(ty: ElementType, values: &[Attribute]) -> Result<Self> {
        let mut bytes = Vec::new();
        for value in values {
            match value {
                Attribute::Bool(value) => bytes.push((*value).into()),
                Attribute::Integer(value, _) => bytes.extend(integer(*value, ty)),
                Attribute::Float(value, _) => bytes.extend(float(*value, ty)?),
                _ => return Err(Error::unimplemented("an array attribute of other than numbers")),
            }
        }
        let array = XLA_FFI_Array {
            dtype: number(ty),
            size: values.len(),
            data: bytes.as_mut_ptr().cast(),
        };
        Ok(Kept::Array(Box::new(array), bytes))
    }

    /// Its kind, and where it is.
    fn pointer(&mut self) -> (u32, *mut c_void) {
        match self {
            Kept::Scalar(value, _) => (ATTR_SCALAR, ptr::from_mut(&mut **value).cast()),
            Kept::Array(value, _) => (ATTR_ARRAY, ptr::from_mut(&mut **value).cast()),
            Kept::Text(value, _) => (ATTR_STRING, ptr::from_mut(&mut **value).cast()),
            Kept::Dictionary(value, _) => (ATTR_DICTIONARY, ptr::from_mut(&mut **value).cast()),
        }
    }
}

/// The bytes of an integer of this type.
fn integer(value: i128, ty: ElementType) -> Vec<u8> {
    value.to_le_bytes()[..ty.size_bytes()].to_vec()
}

fn float(value: f64, ty: ElementType) -> Result<Vec<u8>> {
    match ty {
        ElementType::F32 => Ok((value as f32).to_le_bytes().to_vec()),
        ElementType::F64 => Ok(value.to_le_bytes().to_vec()),
        _ => Err(Error::unimplemented(format!("an attribute of type {}", ty.name()))),
    }
}

/// Attributes in the order of their names, as handlers look for them.
pub(super) struct Attributes {
    types: Vec<u32>,
    /// To each of `_spans`, which never grows.
    names: Vec<*mut XLA_FFI_ByteSpan>,
    pointers: Vec<*mut c_void>,
    _spans: Vec<XLA_FFI_ByteSpan>,
    _texts: Vec<String>,
    _values: Vec<Kept>,
}

impl Attributes {
    pub(super) fn new(dictionary: &Dictionary) -> Result<Self> {
        let mut entries: Vec<(&str, &Attribute)> = dictionary.iter().collect();
        entries.sort_by_key(|entry| entry.0);
        let texts: Vec<String> = entries.iter().map(|(name, _)| (*name).to_owned()).collect();
        let span = |text: &String| XLA_FFI_ByteSpan { ptr: text.as_ptr(), len: text.len() };
        let mut spans: Vec<XLA_FFI_ByteSpan> = texts.iter().map(span).collect();
        let values = entries.iter().map(|(_, value)| Kept::new(value));
        let mut values = values.collect::<Result<Vec<Kept>>>()?;
        let (types, pointers) = values.iter_mut().map(Kept::pointer).unzip();
        Ok(Attributes {
            types,
            names: spans.iter_mut().map(ptr::from_mut).collect(),
            pointers,
            _spans: spans,
            _texts: texts,
            _values: values,
        })
    }

    pub(super) fn attrs(&mut self) -> XLA_FFI_Attrs {
        XLA_FFI_Attrs {
            struct_size: size_of::<XLA_FFI_Attrs>(),
            extension_start: ptr::null_mut(),
            size: self.types.len() as i64,
            types: self.types.as_mut_ptr(),
            names: self.names.as_mut_ptr(),
            attrs: self.pointers.as_mut_ptr(),
        }
    }
}
