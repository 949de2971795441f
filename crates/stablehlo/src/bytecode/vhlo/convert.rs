//! VHLO's attributes of operations as StableHLO has them.

use helio_ir::{Error, Result};

use super::enums::Enumeration;
use super::ops::{AttributeRow, Default, Form, OpRow, Struct};
use crate::mlir::{Attribute, Dense, Field, Type};

/// The attributes of an operation as StableHLO has them. What is not VHLO's (a sharding) stays.
pub(crate) fn to_stablehlo(row: &OpRow, mut attributes: Vec<Field>) -> Result<Vec<Field>> {
    let mut converted = Vec::new();
    let mut structs: Vec<(Struct, Vec<Field>)> = Vec::new();
    for AttributeRow { name, form, default } in row.attributes {
        let Some(place) = attributes.iter().position(|field| field.0 == *name) else {
            if *default == Default::None {
                return Err(error(row, format!("has no attribute `{name}`")));
            }
            continue;
        };
        let (_, value) = attributes.remove(place);
        if *form == Form::Dropped || default.is(&value) {
            continue;
        }
        let wrong = || error(row, format!("attribute `{name}` is {value:?}, of another kind"));
        let value = match *form {
            Form::Same | Form::Dropped => value,
            Form::Field(of, field) => {
                let field = (field.to_owned(), field_value(&value).ok_or_else(wrong)?);
                match structs.iter_mut().find(|found| found.0 == of) {
                    Some((_, fields)) => fields.push(field),
                    None => structs.push((of, vec![field])),
                }
                continue;
            }
            form => converted_value(form, &value).ok_or_else(wrong)?,
        };
        converted.push(((*name).to_owned(), value));
    }
    for (of, mut fields) in structs {
        let (name, kind) = of.names();
        if of == Struct::Channel && fields.len() == 1 {
            fields.push(("type".to_owned(), Attribute::i64(0)));
        }
        let [dialect, kind] = ["stablehlo", kind].map(str::to_owned);
        converted.push((name.to_owned(), Attribute::Struct { dialect, name: kind, fields }));
    }
    converted.append(&mut attributes);
    Ok(converted)
}

fn error(row: &OpRow, detail: String) -> Error {
    Error::invalid(format!("vhlo.{}_v{} {detail}", row.name, row.revision))
}

/// An attribute in another form, if it can have it.
fn converted_value(form: Form, value: &Attribute) -> Option<Attribute> {
    let symbol = |value: &Attribute| match value {
        Attribute::String(name) => Some(Attribute::Symbol(vec![name.clone()])),
        _ => None,
    };
    match (form, value) {
        (Form::Integers, value) => integers(value).map(Attribute::Integers),
        (Form::Bools, Attribute::Dense(dense)) => {
            let bytes = elements(dense, 1)?;
            Some(Attribute::Bools(bytes.map(|byte| byte != [0]).collect()))
        }
        (Form::Symbol, value) => symbol(value),
        (Form::Symbols, Attribute::Array(names)) => {
            names.iter().map(symbol).collect::<Option<_>>().map(Attribute::Array)
        }
        (Form::Flag, Attribute::Bool(true)) => Some(Attribute::Unit),
        (Form::Number, Attribute::Word { name, word, .. }) => {
            let value = Enumeration::number(name, word)?.into();
            Some(Attribute::Integer { value, ty: Type::signless(32) })
        }
        _ => None,
    }
}

/// The value of a field: an integer, a type, a truth value, or a list of integers.
fn field_value(value: &Attribute) -> Option<Attribute> {
    match value {
        Attribute::Integer { value, .. } => Some(Attribute::i64(i64::try_from(*value).ok()?)),
        Attribute::Bool(_) | Attribute::Type(_) => Some(value.clone()),
        value => integers(value).map(Attribute::Integers),
    }
}

/// The most integers of a list that is written as one value for all of them: a small file could ask
/// for any number. Lists have an integer for each dimension, of which no tensor has as many.
const MAX_SPLAT: u64 = 1 << 16;

/// The elements of a tensor of rank 1, each of `size` bytes.
fn elements(dense: &Dense, size: usize) -> Option<impl Iterator<Item = &[u8]>> {
    let count = match &dense.ty.as_tensor()?.dims[..] {
        [Some(count)] => *count,
        _ => return None,
    };
    let is_splat = dense.is_splat;
    if is_splat && count > MAX_SPLAT {
        return None;
    }
    let repeat = if is_splat { count as usize } else { 1 };
    Some(std::iter::repeat_n(&dense.bytes, repeat).flat_map(move |bytes| bytes.chunks(size)))
}

/// A tensor of `i64` of rank 1 as a list.
fn integers(value: &Attribute) -> Option<Vec<i64>> {
    let Attribute::Dense(dense) = value else { return None };
    if *dense.ty.as_tensor()?.element != Type::signless(64) {
        return None;
    }
    let each = elements(dense, 8)?;
    each.map(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?))).collect()
}

impl Default {
    /// Whether the attribute is what StableHLO has without it.
    fn is(self, value: &Attribute) -> bool {
        let is_integer = |wanted: i64| matches!(value, Attribute::Integer { value, .. } if *value == i128::from(wanted));
        match (self, value) {
            (Default::False, value) => *value == Attribute::Bool(false),
            (Default::Integer(wanted) | Default::Integer32(wanted), _) => is_integer(wanted),
            (Default::EmptyString, Attribute::String(text)) => text.is_empty(),
            (Default::EmptyArray, Attribute::Array(elements)) => elements.is_empty(),
            // A custom call's configuration is one or the other.
            (Default::EmptyDictionary | Default::EmptyString, Attribute::Dictionary(fields)) => {
                fields.is_empty()
            }
            (Default::EmptyTensor, Attribute::Dense(dense)) => dense.bytes.is_empty(),
            (Default::Ones, Attribute::Dense(dense)) => all(dense, &1_i64.to_le_bytes()),
            (Default::Padding, Attribute::Dense(dense)) => all(dense, &0_i64.to_le_bytes()),
            (Default::NotReversed, Attribute::Dense(dense)) => all(dense, &[0]),
            (Default::NoType, value) => *value == Attribute::Type(Type::None),
            (Default::Precision, Attribute::Array(words)) => {
                words.iter().all(|word| is_word(word, "DEFAULT"))
            }
            (Default::Accuracy, Attribute::Struct { fields, .. }) => {
                fields.iter().all(|(_, value)| match value {
                    Attribute::Float { value, .. } => *value == 0.0,
                    Attribute::Integer { value, .. } => *value == 0,
                    value => is_word(value, "DEFAULT"),
                })
            }
            (Default::ComparisonType, value) => is_word(value, "NOTYPE"),
            (Default::ApiVersion, value) => is_word(value, "API_VERSION_ORIGINAL"),
            _ => false,
        }
    }
}

/// Whether all elements are these bytes, and there are some.
fn all(dense: &Dense, element: &[u8]) -> bool {
    !dense.bytes.is_empty() && dense.bytes.chunks(element.len()).all(|bytes| bytes == element)
}

fn is_word(value: &Attribute, wanted: &str) -> bool {
    matches!(value, Attribute::Word { word, .. } if word == wanted)
}
