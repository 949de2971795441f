//! The attributes that any instruction may carry.

use std::fmt::Write as _;

use foldhash::{HashSet, HashSetExt};

use super::attrs::{Scan, quote};
use super::frames;
use super::instruction::RawAttr;
use super::lexer::{Cursor, Lines};
use super::names::{Named, Names};
use super::parser::Failure;
use crate::{BackendConfig, Extra, InstrId, Location, Metadata, Result, Sharding};

/// Attributes of any instruction that are kept as written.
const KEPT: &[&str] = &["statistics", "origin", "original_value", "parameter_replication"];

/// Takes an attribute, if any instruction may carry it. Returns whether it was taken.
pub(super) fn take(
    extra: &mut Extra,
    attr: &RawAttr<'_>,
    names: &Names<'_, InstrId>,
) -> Result<bool, Failure> {
    let mut cursor = attr.value_cursor();
    match attr.name {
        "metadata" => extra.metadata = Some(metadata(&mut cursor)?.into()),
        "sharding" => {
            let at = cursor.location();
            let text = cursor.balanced()?;
            let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            let inner = inner.ok_or_else(|| attr.value_cursor().unexpected("`{`"))?;
            extra.sharding = Some(Sharding::read(inner).map_err(|e| e.at(Some(at)))?);
        }
        "frontend_attributes" => extra.frontend_attributes = pairs(&mut cursor)?,
        "backend_config" => {
            let text = match cursor.peek() {
                Some(b'{') => cursor.balanced()?,
                _ => cursor.quoted()?,
            };
            extra.backend_config = Some(BackendConfig::read(text));
        }
        "control-predecessors" => {
            cursor.expect("{")?;
            loop {
                let mut at = cursor;
                let name = cursor.name("the name of an instruction")?;
                match names.get(name) {
                    Some(Named::Good(id)) => extra.control_predecessors.push(id),
                    Some(Named::Bad) => return Err(Failure::REPORTED),
                    None => {
                        let detail = format!("no instruction `{name}` stands before this one");
                        return Err(at.broken("computation.C4", detail).into());
                    }
                }
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.expect("}")?;
        }
        name if KEPT.contains(&name) => {
            extra.other.push((name.to_owned(), cursor.value()?.to_owned()));
        }
        _ => return Ok(false),
    }
    cursor.expect_end()?;
    Ok(true)
}

/// `{name=value, name=value}`; the commas may be missing, as they are in metadata.
pub(super) fn pairs(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    let pairs = placed_pairs(cursor)?.into_iter();
    Ok(pairs.map(|(name, value, _)| (name.to_owned(), value.to_owned())).collect())
}

/// Names, values, and where the values stand.
pub(super) fn placed_pairs<'a>(
    cursor: &mut Cursor<'a>,
) -> Result<Vec<(&'a str, &'a str, Location)>> {
    let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
    cursor.expect("{")?;
    while !cursor.eat("}") {
        cursor.eat(",");
        let mut at = *cursor;
        let name = cursor.word("the name of an attribute")?;
        if !seen.insert(name) {
            return Err(at.error(format!("a second attribute `{name}`")));
        }
        cursor.expect("=")?;
        let at = cursor.location();
        pairs.push((name, cursor.value()?, at));
    }
    Ok(pairs)
}

/// `{op_type="x" source_line=7}`
pub(super) fn metadata(cursor: &mut Cursor<'_>) -> Result<Metadata> {
    let mut metadata = Metadata::default();
    for (name, value, at) in placed_pairs(cursor)? {
        let mut scan = Scan::new(value);
        let result = match name {
            "op_type" => scan.string().map(|text| metadata.op_type = Some(text)),
            "op_name" => scan.string().map(|text| metadata.op_name = Some(text)),
            "source_file" => scan.string().map(|text| metadata.source_file = Some(text)),
            "source_line" => scan.int().map(|line| metadata.source_line = Some(line)),
            "stack_frame_id" => {
                let id = frames::number(value).map_err(|e| e.context(name).at(Some(at)))?;
                metadata.stack_frame = Some(id);
                continue;
            }
            _ => {
                metadata.other.push((name.to_owned(), value.to_owned()));
                continue;
            }
        };
        result.and_then(|()| scan.end()).map_err(|e| e.context(name).at(Some(at)))?;
    }
    Ok(metadata)
}

/// Reads metadata as text has it: `{op_name="x"}`, or a list of them in braces, as shardings have. Errors:
/// `InvalidArgument` for anything else.
pub fn parse_metadata(text: &str) -> Result<Vec<Metadata>> {
    let lines = Lines::new(text)?;
    let mut cursor = Cursor::new(&lines);
    let mut inside = cursor;
    let is_list = inside.eat("{") && inside.peek() == Some(b'{');
    let mut all = Vec::new();
    if is_list {
        cursor.expect("{")?;
        while !cursor.eat("}") {
            all.push(metadata(&mut cursor)?);
            cursor.eat(",");
        }
    } else {
        all.push(metadata(&mut cursor)?);
    }
    cursor.expect_end()?;
    Ok(all)
}

/// Writes metadata as [`parse_metadata`] reads it.
pub fn print_metadata(metadata: &Metadata) -> String {
    format!("{{{}}}", metadata_text(metadata))
}

/// `, sharding={…}, metadata={…}`, in XLA's order.
pub(super) fn write(
    extra: &Extra,
    with_metadata: bool,
    instruction_name: &dyn Fn(InstrId) -> String,
    out: &mut String,
) {
    let mut put = |name: &str, value: &str| {
        let _ = write!(out, ", {name}={value}"); // writing to a String cannot fail
    };
    if let Some(sharding) = &extra.sharding {
        put("sharding", &sharding.to_string());
    }
    if !extra.frontend_attributes.is_empty() {
        put("frontend_attributes", &format!("{{{}}}", join(&extra.frontend_attributes, ",")));
    }
    if !extra.control_predecessors.is_empty() {
        let names: Vec<_> =
            extra.control_predecessors.iter().map(|&id| instruction_name(id)).collect();
        put("control-predecessors", &format!("{{{}}}", names.join(", ")));
    }
    if with_metadata && let Some(metadata) = &extra.metadata {
        put("metadata", &print_metadata(metadata));
    }
    if let Some(config) = &extra.backend_config {
        put("backend_config", &config.to_string());
    }
    for (name, value) in &extra.other {
        put(name, value);
    }
}

fn metadata_text(metadata: &Metadata) -> String {
    let Metadata { op_type, op_name, source_file, source_line, stack_frame, other } = metadata;
    let strings = [("op_type", op_type), ("op_name", op_name), ("source_file", source_file)];
    let strings = strings
        .iter()
        .filter_map(|(name, text)| text.as_ref().map(|text| ((*name).to_owned(), quote(text))));
    let line = source_line.map(|line| ("source_line".to_owned(), line.to_string()));
    let frame = stack_frame.map(|id| ("stack_frame_id".to_owned(), id.to_string()));
    join(&strings.chain(line).chain(other.iter().cloned()).chain(frame).collect::<Vec<_>>(), " ")
}

/// `name=value,name=value`
pub(super) fn join(pairs: &[(String, String)], separator: &str) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(separator)
}
