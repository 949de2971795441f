//! Attributes written as MLIR text.

use std::fmt::Write as _;

use super::dense::write_dense;
use crate::mlir::{Attribute, Field, LocId, Module, Type};

/// `{a = 1 : i64, b}`
pub(super) fn write_fields(text: &mut String, module: &Module, fields: &[Field]) {
    text.push('{');
    for (i, (name, value)) in fields.iter().enumerate() {
        text.push_str(if i > 0 { ", " } else { "" });
        text.push_str(&key(name));
        if *value != Attribute::Unit {
            text.push_str(" = ");
            write_attribute(text, module, value);
        }
    }
    text.push('}');
}

pub(super) fn write_attribute(text: &mut String, module: &Module, attribute: &Attribute) {
    let list = |text: &mut String, ty: &str, values: Vec<String>| {
        let colon = if values.is_empty() { "" } else { ": " };
        let _ = write!(text, "array<{ty}{colon}{}>", values.join(", "));
    };
    let _ = match attribute {
        Attribute::Unit => write!(text, "unit"),
        Attribute::Bool(value) => write!(text, "{value}"),
        Attribute::Integer { value, ty } => write!(text, "{value} : {ty}"),
        Attribute::Float { value, ty } => write!(text, "{} : {ty}", float(*value, ty)),
        Attribute::String(value) => write!(text, "{}", string(value)),
        Attribute::Array(values) => {
            text.push('[');
            for (i, value) in values.iter().enumerate() {
                text.push_str(if i > 0 { ", " } else { "" });
                write_attribute(text, module, value);
            }
            text.push(']');
            Ok(())
        }
        Attribute::Integers(values) => {
            list(text, "i64", values.iter().map(i64::to_string).collect());
            Ok(())
        }
        Attribute::Bools(values) => {
            list(text, "i1", values.iter().map(bool::to_string).collect());
            Ok(())
        }
        Attribute::Floats(values) => {
            let ty = Type::Float(crate::mlir::FloatType::F64);
            list(text, "f64", values.iter().map(|&value| float(value, &ty)).collect());
            Ok(())
        }
        Attribute::Dense(dense) => {
            write_dense(text, dense);
            Ok(())
        }
        Attribute::DenseResource { key, ty } => write!(text, "dense_resource<{key}> : {ty}"),
        Attribute::Dictionary(fields) => {
            write_fields(text, module, fields);
            Ok(())
        }
        Attribute::Type(ty) => write!(text, "{ty}"),
        Attribute::Symbol(path) => {
            let names: Vec<String> = path.iter().map(|name| format!("@{}", symbol(name))).collect();
            write!(text, "{}", names.join("::"))
        }
        Attribute::Word { dialect, name, word } => write!(text, "#{dialect}<{name} {word}>"),
        Attribute::Struct { dialect, name, fields } if name == "conv" => {
            write!(text, "#{dialect}.{name}<{}>", conv(fields))
        }
        Attribute::Struct { dialect, name, fields } => {
            let _ = write!(text, "#{dialect}.{name}<");
            for (i, (name, value)) in fields.iter().enumerate() {
                let _ = write!(text, "{}{name} = ", if i > 0 { ", " } else { "" });
                write_part(text, module, value);
            }
            write!(text, ">")
        }
        Attribute::Location(LocId::UNKNOWN) => write!(text, "loc(unknown)"),
        Attribute::Location(LocId(number)) => write!(text, "loc(#loc{number})"),
        Attribute::Other(other) => write!(text, "{other}"),
    };
}

/// A part of a structured attribute, whose type is understood.
fn write_part(text: &mut String, module: &Module, value: &Attribute) {
    let _ = match value {
        Attribute::Integer { value, .. } => write!(text, "{value}"),
        Attribute::Integers(values) => write!(text, "{values:?}"),
        Attribute::Word { word, .. } => write!(text, "{word}"),
        value => {
            write_attribute(text, module, value);
            Ok(())
        }
    };
}

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, the dimensions of a convolution. A dimension that
/// nothing is said of is written `?`.
fn conv(fields: &[Field]) -> String {
    let find = |name: String| fields.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
    let labels = |part: &str, roles: [(&str, &str); 2]| {
        let spatial = match find(format!("{part}_spatial_dimensions")) {
            Some(Attribute::Integers(list)) => &list[..],
            _ => &[],
        };
        let mut labels = vec!["?".to_owned(); spatial.len() + roles.len()];
        let mut put = |place: i64, label: String| {
            if let Some(slot) = usize::try_from(place).ok().and_then(|i| labels.get_mut(i)) {
                *slot = label;
            }
        };
        for (i, &place) in spatial.iter().enumerate() {
            put(place, i.to_string());
        }
        for (role, label) in roles {
            let place = match find(format!("{part}_{role}_dimension")) {
                Some(Attribute::Integer { value, .. }) => i64::try_from(*value).unwrap_or(-1),
                _ => 0,
            };
            put(place, label.to_owned());
        }
        format!("[{}]", labels.join(", "))
    };
    let input = labels("input", [("batch", "b"), ("feature", "f")]);
    let kernel = labels("kernel", [("input_feature", "i"), ("output_feature", "o")]);
    let output = labels("output", [("batch", "b"), ("feature", "f")]);
    format!("{input}x{kernel}->{output}")
}

/// A number of this type: in decimal, with as many digits as it takes to be exact, or by its bits if
/// it is not finite.
pub(super) fn float(value: f64, ty: &Type) -> String {
    if value.is_finite() {
        // `5e-1` is no number to MLIR, `5.0e-1` is.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let dot = if digits.contains('.') { "" } else { ".0" };
        return format!("{digits}{dot}e{exponent}");
    }
    match ty {
        Type::Float(crate::mlir::FloatType::F64) => format!("0x{:016X}", value.to_bits()),
        _ => format!("0x{:08X}", (value as f32).to_bits()),
    }
}

/// Text in quotes; what is not printable by its bytes.
pub(super) fn string(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\22"),
            '\\' => text.push_str("\\5C"),
            c if c.is_control() => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "\\{byte:02X}");
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// The name of a symbol without `@`, in quotes if it needs them.
pub(super) fn symbol(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { string(name) }
}

/// The name of an attribute, in quotes if it needs them.
fn key(name: &str) -> String {
    symbol(name)
}

fn is_bare(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
}
