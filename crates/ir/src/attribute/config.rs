//! The value of `backend_config`: what an instruction tells a back end, or a custom call its
//! function.

use std::fmt;

use super::{Dictionary, read};
use crate::text::attrs::{Scan, quote};

/// What an instruction tells the back end or the function that it calls: a string, read once.
#[derive(Clone, Debug)]
pub struct BackendConfig {
    /// The string, without quotes and escapes.
    text: String,
    value: ConfigValue,
}

/// What a configuration says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigValue {
    /// Something that only the function understands ([`BackendConfig::as_str`]).
    Opaque,
    /// JSON: `{"name": 1}`.
    Json(Dictionary),
    /// Attributes in MLIR's notation: `{name = 1 : i64}`.
    Typed(Dictionary),
    /// Something else in braces.
    Braced,
}

impl BackendConfig {
    /// The string that a back end or function gets: JSON, attributes in MLIR's notation, or anything that
    /// only the function understands.
    pub fn of(text: &str) -> Self {
        let value = dictionary(text).unwrap_or(ConfigValue::Opaque);
        BackendConfig { text: text.to_owned(), value }
    }

    /// Attributes, as custom calls of `API_VERSION_TYPED_FFI` have them.
    pub fn typed(attributes: Dictionary) -> Self {
        BackendConfig { text: attributes.to_string(), value: ConfigValue::Typed(attributes) }
    }

    /// What HLO text has behind `backend_config=`: a quoted string, or something in braces. Both are the
    /// same string, so quotes around a dictionary mean nothing.
    pub fn read(text: &str) -> Self {
        let braced = || BackendConfig {
            text: text.to_owned(),
            value: dictionary(text).unwrap_or(ConfigValue::Braced),
        };
        match text.starts_with('{') {
            true => braced(),
            false => Scan::new(text).string().map_or_else(|_| braced(), |inner| Self::of(&inner)),
        }
    }

    /// What it says.
    pub fn value(&self) -> &ConfigValue {
        &self.value
    }

    /// The attributes, if it has some, in either notation.
    pub fn attributes(&self) -> Option<&Dictionary> {
        match &self.value {
            ConfigValue::Json(attributes) | ConfigValue::Typed(attributes) => Some(attributes),
            ConfigValue::Opaque | ConfigValue::Braced => None,
        }
    }

    /// The string that a function gets which takes one, without quotes and escapes.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The attributes that stand in braces, if the text is of a known form.
fn dictionary(text: &str) -> Option<ConfigValue> {
    if !text.starts_with('{') {
        return None;
    }
    if let Some(json) = read::json(text) {
        return Some(ConfigValue::Json(json));
    }
    read::typed(text).map(ConfigValue::Typed)
}

impl PartialEq for BackendConfig {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for BackendConfig {}

/// As HLO text has it: dictionaries as they are, all else in quotes.
impl fmt::Display for BackendConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            ConfigValue::Opaque => f.write_str(&quote(&self.text)),
            _ => f.write_str(&self.text),
        }
    }
}
