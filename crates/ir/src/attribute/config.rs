//! The value of `backend_config`: what an instruction tells a back end, or a custom call its
//! function.

use std::fmt;

use super::{Dictionary, read};
use crate::text::attrs::{Scan, quote};

/// What an instruction tells the back end or the function that it calls: read once, and printed as it
/// was written.
#[derive(Clone, Debug)]
pub struct BackendConfig {
    /// As HLO text has it: a quoted string with its quotes, or something in braces.
    text: String,
    value: ConfigValue,
}

/// What a configuration says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigValue {
    /// A string that only the function understands, without quotes and escapes.
    Opaque(String),
    /// JSON: `{"name": 1}`.
    Json(Dictionary),
    /// Attributes in MLIR's notation: `{name = 1 : i64}`.
    Typed(Dictionary),
    /// Something else in braces, kept as written.
    Other,
}

impl BackendConfig {
    /// A string that only the function understands.
    pub fn opaque(text: &str) -> Self {
        BackendConfig { text: quote(text), value: ConfigValue::Opaque(text.to_owned()) }
    }

    /// Attributes, as custom calls of `API_VERSION_TYPED_FFI` have them.
    pub fn typed(attributes: Dictionary) -> Self {
        BackendConfig { text: attributes.to_string(), value: ConfigValue::Typed(attributes) }
    }

    /// What HLO text has behind `backend_config=`: a quoted string, or something in braces.
    pub fn read(text: &str) -> Self {
        let value = if text.starts_with('{') {
            braced(text).unwrap_or(ConfigValue::Other)
        } else {
            // Front ends quote whole dictionaries, too.
            match Scan::new(text).string() {
                Ok(inner) => match braced(&inner) {
                    Some(ConfigValue::Typed(attributes)) if inner.starts_with('{') => {
                        ConfigValue::Typed(attributes)
                    }
                    _ => ConfigValue::Opaque(inner),
                },
                Err(_) => ConfigValue::Other,
            }
        };
        BackendConfig { text: text.to_owned(), value }
    }

    /// What it says.
    pub fn value(&self) -> &ConfigValue {
        &self.value
    }

    /// The attributes, if it has some, in either notation.
    pub fn attributes(&self) -> Option<&Dictionary> {
        match &self.value {
            ConfigValue::Json(attributes) | ConfigValue::Typed(attributes) => Some(attributes),
            ConfigValue::Opaque(_) | ConfigValue::Other => None,
        }
    }

    /// The bytes that a function gets which takes one string: an opaque string without quotes and
    /// escapes, all else as written.
    pub fn as_str(&self) -> &str {
        match &self.value {
            ConfigValue::Opaque(text) => text,
            ConfigValue::Json(_) | ConfigValue::Typed(_) | ConfigValue::Other => &self.text,
        }
    }
}

/// What stands in braces, if it is of a known form.
fn braced(text: &str) -> Option<ConfigValue> {
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

/// As it was written.
impl fmt::Display for BackendConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
