//! Attributes with names: what custom calls and configurations of back ends are told besides their
//! operands.

mod config;
mod read;
#[cfg(test)]
mod tests;

use std::fmt;

pub use config::{BackendConfig, ConfigValue};

use crate::{ElementType, Error, Result};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// `true`.
    Bool(bool),
    /// `1 : i64`; JSON's integers are of type `S64`.
    Integer(i128, ElementType),
    /// `1.5 : f32`; JSON's other numbers are of type `F64`.
    Float(f64, ElementType),
    /// `"text"`, without quotes and escapes.
    String(String),
    /// `[1 : i64, "a"]`.
    List(Vec<Attribute>),
    /// Numbers of one type: `array<i64: 1, 2>` and `dense<[1, 2]> : tensor<2xi64>`.
    Numbers(ElementType, Vec<Attribute>),
    /// `{a = 1 : i64}`.
    Dictionary(Dictionary),
    /// Any other value, as written.
    Other(String),
}

impl Attribute {
    /// What it is, for messages.
    fn kind(&self) -> &'static str {
        match self {
            Attribute::Bool(_) => "a bool",
            Attribute::Integer(..) => "an integer",
            Attribute::Float(..) => "a float",
            Attribute::String(_) => "a string",
            Attribute::List(_) => "a list",
            Attribute::Numbers(..) => "a list of numbers",
            Attribute::Dictionary(_) => "a dictionary",
            Attribute::Other(_) => "of another kind",
        }
    }
}

/// Attributes by name, in the order written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dictionary {
    entries: Vec<(String, Attribute)>,
}

impl Dictionary {
    /// Names and values. Errors: a name that stands twice.
    pub fn new(entries: Vec<(String, Attribute)>) -> Result<Self> {
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("a second attribute `{}`", pair[0])));
        }
        Ok(Dictionary { entries })
    }

    /// Names and values, in the order written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Attribute)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a name, if it is there.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.iter().find(|&(other, _)| other == name).map(|(_, value)| value)
    }

    /// A bool. Errors: there is none of this name.
    pub fn bool(&self, name: &str) -> Result<bool> {
        self.typed(name, "a bool", |value| match value {
            Attribute::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// An integer of any type. Errors: there is none of this name, or it does not fit.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.typed(name, "an integer of 64 bits", |value| match value {
            Attribute::Integer(value, _) => i64::try_from(*value).ok(),
            _ => None,
        })
    }

    /// A float of any type. Errors: there is none of this name.
    pub fn float(&self, name: &str) -> Result<f64> {
        self.typed(name, "a float", |value| match value {
            Attribute::Float(value, _) => Some(*value),
            _ => None,
        })
    }

    /// A string. Errors: there is none of this name.
    pub fn string(&self, name: &str) -> Result<&str> {
        self.typed(name, "a string", |value| match value {
            Attribute::String(value) => Some(value.as_str()),
            _ => None,
        })
    }

    /// A dictionary. Errors: there is none of this name.
    pub fn dictionary(&self, name: &str) -> Result<&Dictionary> {
        self.typed(name, "a dictionary", |value| match value {
            Attribute::Dictionary(value) => Some(value),
            _ => None,
        })
    }

    fn typed<'d, T>(
        &'d self,
        name: &str,
        wanted: &str,
        of: impl FnOnce(&'d Attribute) -> Option<T>,
    ) -> Result<T> {
        let value = self.get(name).ok_or_else(|| {
            let names: Vec<String> = self.iter().map(|(name, _)| format!("`{name}`")).collect();
            let there = if names.is_empty() { "no other".to_owned() } else { names.join(", ") };
            Error::invalid(format!("there is no attribute `{name}`, but {there}"))
        })?;
        of(value).ok_or_else(|| {
            let found = value.kind();
            Error::invalid(format!("attribute `{name}` must be {wanted}, is {found}: {value}"))
        })
    }
}

/// MLIR's name of an element type; HLO's where MLIR has none.
fn mlir_name(ty: ElementType) -> String {
    if ty.is_pred() {
        return "i1".to_owned();
    }
    let name = ty.name();
    match name.strip_prefix('s') {
        Some(bits) => format!("i{bits}"),
        None if ty.is_unsigned_integer() => format!("u{}", name.replace('u', "i")),
        None => name.to_owned(),
    }
}

/// As MLIR writes it.
impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Bool(value) => write!(f, "{value}"),
            Attribute::Integer(value, ty) => write!(f, "{value} : {}", mlir_name(*ty)),
            Attribute::Float(value, ty) => write!(f, "{} : {}", Float(*value, *ty), mlir_name(*ty)),
            Attribute::String(text) => write!(f, "{}", Quoted(text)),
            Attribute::List(values) => {
                f.write_str("[")?;
                separated(f, values)?;
                f.write_str("]")
            }
            Attribute::Numbers(ty, values) => {
                write!(f, "array<{}", mlir_name(*ty))?;
                for (i, value) in values.iter().enumerate() {
                    f.write_str(if i == 0 { ": " } else { ", " })?;
                    match value {
                        Attribute::Integer(value, _) => write!(f, "{value}")?,
                        Attribute::Float(value, ty) => write!(f, "{}", Float(*value, *ty))?,
                        value => write!(f, "{value}")?,
                    }
                }
                f.write_str(">")
            }
            Attribute::Dictionary(dictionary) => write!(f, "{dictionary}"),
            Attribute::Other(text) => f.write_str(text),
        }
    }
}

/// As MLIR writes it.
impl fmt::Display for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            if read::is_bare(name) {
                write!(f, "{name} = {value}")?;
            } else {
                write!(f, "{} = {value}", Quoted(name))?;
            }
        }
        f.write_str("}")
    }
}

fn separated(f: &mut fmt::Formatter<'_>, values: &[Attribute]) -> fmt::Result {
    for (i, value) in values.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        write!(f, "{value}")?;
    }
    Ok(())
}

/// A float as MLIR writes it: decimal digits with a point, or the bits where there are none.
struct Float(f64, ElementType);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Float(value, ty) = self;
        if !value.is_finite() {
            return match ty {
                ElementType::F32 => write!(f, "0x{:08X}", (value as f32).to_bits()),
                ElementType::F16 => write!(f, "0x{:04X}", half::f16::from_f64(value).to_bits()),
                ElementType::BF16 => write!(f, "0x{:04X}", half::bf16::from_f64(value).to_bits()),
                _ => write!(f, "0x{:016X}", value.to_bits()),
            };
        }
        let text = format!("{value:?}");
        match text.split_once('e') {
            Some((digits, exponent)) if !digits.contains('.') => {
                write!(f, "{digits}.0e{exponent}")
            }
            _ => f.write_str(&text),
        }
    }
}

/// A string as MLIR writes it.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\22")?,
                c if c.is_ascii_control() => write!(f, "\\{:02X}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}
