//! StableHLO's attributes of operations as VHLO has them: all of them, in order.

use std::sync::Arc;

use helio_ir::{Error, Result};

use super::enums::Enumeration;
use super::ops::{AttributeRow, Default, Form, OpRow, Struct};
use crate::mlir::{Attribute, Dense, Field, FloatType, TensorType, Type};

/// The properties of an operation in VHLO's order, and what of its attributes is not VHLO's.
pub(crate) fn to_vhlo(row: &OpRow, attributes: &[Field]) -> Result<(Vec<Attribute>, Vec<Field>)> {
    let get = |name: &str| attributes.iter().find(|field| field.0 == name).map(|field| &field.1);
    let spatial = spatial_dimensions(&get);
    let mut used = Vec::new();
    let mut properties = Vec::new();
    for AttributeRow { name, form, default } in row.attributes {
        let owner = match form {
            Form::Field(of, _) => of.names().0,
            _ => name,
        };
        used.push(owner);
        let value = match form {
            Form::Field(of, field) => field_of(get(owner), *of, field),
            form => get(name).and_then(|value| original(*form, value)),
        };
        let value = value.or_else(|| default.value(spatial)).ok_or_else(|| {
            let (op, revision) = (row.name, row.revision);
            let detail = match get(owner) {
                Some(value) => format!("{owner} is {value:?}, which vhlo.{op}_v{revision} has not"),
                None => format!("vhlo.{op}_v{revision} needs the attribute `{owner}`"),
            };
            Error::invalid(detail)
        })?;
        properties.push(value);
    }
    let rest = attributes.iter().filter(|field| !used.contains(&field.0.as_str()));
    Ok((properties, rest.cloned().collect()))
}

/// How many spatial dimensions a convolution or a window has.
fn spatial_dimensions<'a>(get: &dyn Fn(&str) -> Option<&'a Attribute>) -> usize {
    let list = match get("dimension_numbers") {
        Some(Attribute::Struct { fields, .. }) => {
            fields.iter().find(|field| field.0 == "input_spatial_dimensions").map(|field| &field.1)
        }
        _ => get("window_dimensions"),
    };
    match list {
        Some(Attribute::Integers(list)) => list.len(),
        _ => 0,
    }
}

/// An attribute in VHLO's form.
fn original(form: Form, value: &Attribute) -> Option<Attribute> {
    let string = |value: &Attribute| match value {
        Attribute::Symbol(path) => Some(Attribute::String(path.join("::"))),
        _ => None,
    };
    match (form, value) {
        (Form::Same, value) => Some(value.clone()),
        (Form::Integers, Attribute::Integers(list)) => Some(integers(list)),
        (Form::Bools, Attribute::Bools(list)) => {
            Some(dense([list.len()], 1, list.iter().map(|&bit| u8::from(bit)).collect()))
        }
        (Form::Symbol, value) => string(value),
        (Form::Symbols, Attribute::Array(list)) => {
            list.iter().map(string).collect::<Option<_>>().map(Attribute::Array)
        }
        (Form::Number, Attribute::Integer { value, .. }) => {
            let word = Enumeration::word("api_version", u64::try_from(*value).ok()?)?;
            Some(Attribute::word("stablehlo", "api_version", word))
        }
        (Form::Flag, Attribute::Unit) => Some(Attribute::Bool(true)),
        (Form::Flag, Attribute::Bool(value)) => Some(Attribute::Bool(*value)),
        _ => None,
    }
}

/// A field of a structured attribute; one that is not there is 0 or empty.
fn field_of(owner: Option<&Attribute>, of: Struct, field: &str) -> Option<Attribute> {
    let Some(Attribute::Struct { fields, .. }) = owner else { return None };
    let value = fields.iter().find(|pair| pair.0 == field).map(|pair| &pair.1);
    let is_list = matches!(of, Struct::Dot) || field.ends_with("dims") || field.ends_with("_map");
    match value {
        Some(Attribute::Integers(list)) => Some(integers(list)),
        Some(value) => Some(value.clone()),
        None if is_list || field.ends_with("_dimensions") => Some(integers(&[])),
        None => Some(Attribute::i64(0)),
    }
}

/// A tensor of `i64` of rank 1.
fn integers(list: &[i64]) -> Attribute {
    let bytes = list.iter().flat_map(|value| value.to_le_bytes());
    dense([list.len()], 64, bytes.collect())
}

/// A tensor of integers of this width; elements that are all the same are written once.
fn dense<const N: usize>(dims: [usize; N], width: u32, bytes: Vec<u8>) -> Attribute {
    let size = width.div_ceil(8) as usize;
    let is_splat =
        bytes.len() > size && bytes.chunks(size).all(|element| element == &bytes[..size]);
    let bytes = if is_splat { &bytes[..size] } else { &bytes[..] };
    Attribute::Dense(Dense {
        ty: Type::Tensor(TensorType::new(dims.map(|dim| dim as u64), Type::signless(width))),
        bytes: Arc::from(bytes),
        is_splat,
    })
}

impl Default {
    /// The attribute that VHLO states, in an operation of `spatial` spatial dimensions.
    fn value(self, spatial: usize) -> Option<Attribute> {
        let word = |name: &str, word: &str| Attribute::word("stablehlo", name, word);
        Some(match self {
            Default::None => return None,
            Default::False => Attribute::Bool(false),
            Default::Integer(value) => Attribute::i64(value),
            Default::Integer32(value) => {
                Attribute::Integer { value: value.into(), ty: Type::signless(32) }
            }
            Default::EmptyString => Attribute::String(String::new()),
            Default::EmptyArray => Attribute::Array(Vec::new()),
            Default::EmptyDictionary => Attribute::Dictionary(Vec::new()),
            Default::EmptyTensor => integers(&[]),
            Default::Ones => integers(&vec![1; spatial]),
            Default::Padding => dense([spatial, 2], 64, vec![0; spatial * 16]),
            Default::NotReversed => dense([spatial], 1, vec![0; spatial]),
            Default::NoType => Attribute::Type(Type::None),
            Default::Precision => Attribute::Array(vec![word("precision", "DEFAULT"); 2]),
            Default::Accuracy => {
                let zero = || Attribute::Float { value: 0.0, ty: Type::Float(FloatType::F64) };
                let mode = word("result_accuracy_mode", "DEFAULT");
                let fields = [
                    ("atol", zero()),
                    ("rtol", zero()),
                    ("ulps", Attribute::i64(0)),
                    ("mode", mode),
                ];
                let fields = fields.map(|(name, value)| (name.to_owned(), value)).into();
                let [dialect, name] = ["stablehlo", "result_accuracy"].map(str::to_owned);
                Attribute::Struct { dialect, name, fields }
            }
            Default::ComparisonType => word("comparison_type", "NOTYPE"),
            Default::ApiVersion => word("api_version", "API_VERSION_ORIGINAL"),
        })
    }
}
