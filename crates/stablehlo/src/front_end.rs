//! What front ends say of operations and parameters besides what they compute:
//! `mhlo.frontend_attributes` and `mhlo.sharding`, as XLA's own conversions have them.

use helio_ir::ops::SEND_RECV_PAIRS;
use helio_ir::text::attrs::{Scan, quote_unless_braced};
use helio_ir::{Extra, Result, Sharding};

use crate::mlir::{Attribute, Field, Operation};

const ATTRIBUTES: &str = "mhlo.frontend_attributes";
const SHARDING: &str = "mhlo.sharding";

/// The free attributes among these, as HLO has them. Those that are no strings, or whose names HLO cannot
/// have, are none.
pub(crate) fn attributes(fields: &[Field]) -> Vec<(String, String)> {
    let found = fields.iter().find(|(name, _)| name == ATTRIBUTES);
    let Some((_, Attribute::Dictionary(entries))) = found else { return Vec::new() };
    let entry = |(name, value): &Field| match value {
        Attribute::String(text) if is_name(name) => Some((name.clone(), quote_unless_braced(text))),
        _ => None,
    };
    entries.iter().filter_map(entry).collect()
}

/// Those of an argument of a function.
pub(crate) fn attributes_of_argument(function: &Operation, number: usize) -> Vec<(String, String)> {
    let Some(Attribute::Array(arguments)) = function.attribute("arg_attrs") else {
        return Vec::new();
    };
    match arguments.get(number) {
        Some(Attribute::Dictionary(fields)) => attributes(fields),
        _ => Vec::new(),
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(is_part)
}

/// The sharding among these. Errors: `sharding.C1`.
pub(crate) fn sharding(fields: &[Field]) -> Result<Option<Sharding>> {
    let found = fields.iter().find(|(name, _)| name == SHARDING);
    let Some((_, Attribute::String(text))) = found else { return Ok(None) };
    read_sharding(text).map(Some)
}

/// A sharding in HLO's words, with or without braces around it. Errors: `sharding.C1`.
pub(crate) fn read_sharding(text: &str) -> Result<Sharding> {
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    Sharding::read(inner.unwrap_or(text))
}

/// What an instruction carries, as attributes. Errors: a value with a quote that is not closed.
pub(crate) fn fields(extra: &Extra) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    fields.extend(attributes_field(&extra.frontend_attributes)?);
    fields.extend(extra.sharding.as_ref().map(sharding_field));
    Ok(fields)
}

/// Free attributes, if there are any; who sends to whom is an attribute of its own. Errors: as for
/// [`fields`].
pub(crate) fn attributes_field(attributes: &[(String, String)]) -> Result<Option<Field>> {
    let others = attributes.iter().filter(|(name, _)| name != SEND_RECV_PAIRS);
    let entry =
        |(name, value): &(String, String)| Ok((name.clone(), Attribute::String(unquoted(value)?)));
    let entries = others.map(entry).collect::<Result<Vec<_>>>()?;
    let is_empty = entries.is_empty();
    Ok((!is_empty).then(|| (ATTRIBUTES.to_owned(), Attribute::Dictionary(entries))))
}

/// What a value of HLO text says, without quotes if it has some. Errors: a quote that is not closed.
pub(crate) fn unquoted(value: &str) -> Result<String> {
    match value.starts_with(['"', '\'']) {
        true => Scan::new(value).string(),
        false => Ok(value.to_owned()),
    }
}

/// A sharding as an attribute.
pub(crate) fn sharding_field(sharding: &Sharding) -> Field {
    (SHARDING.to_owned(), Attribute::String(sharding.to_string()))
}
