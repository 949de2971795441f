//! The first line of a module, and the tables that may follow it.

use std::fmt::Write as _;
use std::sync::Arc;

use super::extra::{join, pairs};
use super::frames;
use super::lexer::Cursor;
use super::printer::name_text;
use super::shape::shape;
use crate::module::{AliasKind, InputOutputAlias, ModuleConfig, ProgramShape};
use crate::{Module, Result};

/// `name, attribute=value, …` after the word `HloModule`, and the tables.
pub(super) fn read(cursor: &mut Cursor<'_>, module: &mut Module) -> Result<()> {
    cursor.name("the name of the module")?.clone_into(&mut module.name);
    // A colon may follow, as it may any name in XLA's grammar.
    cursor.eat(":");
    let mut seen = std::collections::HashSet::new();
    while cursor.eat(",") {
        let mut at = *cursor;
        let name = cursor.word("the name of an attribute")?;
        if !seen.insert(name) {
            return Err(at.error(format!("a second attribute `{name}`")));
        }
        cursor.expect("=")?;
        attribute(cursor, name, &mut module.config)?;
    }
    module.config.stack_frames = frames::read(cursor)?.map(Arc::new);
    Ok(())
}

fn attribute(cursor: &mut Cursor<'_>, name: &str, config: &mut ModuleConfig) -> Result<()> {
    match name {
        "entry_computation_layout" => {
            cursor.expect("{")?;
            let params = list(cursor, "(", ")", shape)?;
            cursor.expect("->")?;
            config.entry_layout = Some(ProgramShape { params, result: shape(cursor)? });
            cursor.expect("}")?;
        }
        "input_output_alias" => config.input_output_alias = list(cursor, "{", "}", alias)?,
        "buffer_donor" => config.buffer_donors = list(cursor, "{", "}", donor)?,
        "replica_count" => config.replica_count = Some(cursor.size()?),
        "num_partitions" => config.num_partitions = Some(cursor.size()?),
        "is_scheduled" => {
            config.is_scheduled = cursor.eat_word("true");
            if !config.is_scheduled && !cursor.eat_word("false") {
                return Err(cursor.unexpected("true or false"));
            }
        }
        "frontend_attributes" => config.frontend_attributes = pairs(cursor)?,
        _ => config.other.push((name.to_owned(), cursor.value()?.to_owned())),
    }
    Ok(())
}

fn list<T>(
    cursor: &mut Cursor<'_>,
    open: &str,
    close: &str,
    mut item: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    cursor.expect(open)?;
    let mut items = Vec::new();
    if !cursor.eat(close) {
        loop {
            items.push(item(cursor)?);
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect(close)?;
    }
    Ok(items)
}

fn index(cursor: &mut Cursor<'_>) -> Result<Vec<usize>> {
    list(cursor, "{", "}", |cursor| cursor.size())
}

/// `{0}: (1, {2}, must-alias)`
fn alias(cursor: &mut Cursor<'_>) -> Result<InputOutputAlias> {
    let output = index(cursor)?;
    cursor.expect(":")?;
    cursor.expect("(")?;
    let parameter = cursor.size()?;
    cursor.expect(",")?;
    let parameter_index = index(cursor)?;
    let kind = if !cursor.eat(",") || cursor.eat_word("may-alias") {
        AliasKind::May
    } else if cursor.eat_word("must-alias") {
        AliasKind::Must
    } else {
        return Err(cursor.unexpected("may-alias or must-alias"));
    };
    cursor.expect(")")?;
    Ok(InputOutputAlias { output, parameter, parameter_index, kind })
}

/// `(1, {2})`
fn donor(cursor: &mut Cursor<'_>) -> Result<(usize, Vec<usize>)> {
    cursor.expect("(")?;
    let parameter = cursor.size()?;
    cursor.expect(",")?;
    let path = index(cursor)?;
    cursor.expect(")")?;
    Ok((parameter, path))
}

/// The first line and the tables.
pub(super) fn write(module: &Module, out: &mut String) {
    let ModuleConfig {
        entry_layout,
        input_output_alias,
        buffer_donors,
        replica_count,
        num_partitions,
        is_scheduled,
        frontend_attributes,
        other,
        stack_frames,
    } = &module.config;
    let _ = write!(out, "HloModule {}", name_text(&module.name, false)); // cannot fail
    let mut put = |name: &str, value: &str| {
        let _ = write!(out, ", {name}={value}"); // writing to a String cannot fail
    };
    if *is_scheduled {
        put("is_scheduled", "true");
    }
    if !input_output_alias.is_empty() {
        let entries: Vec<_> = input_output_alias.iter().map(alias_text).collect();
        put("input_output_alias", &format!("{{ {} }}", entries.join(", ")));
    }
    if !buffer_donors.is_empty() {
        let donor = |(parameter, path): &(usize, Vec<usize>)| {
            format!("({parameter}, {})", super::attrs::braced(path))
        };
        let entries: Vec<_> = buffer_donors.iter().map(donor).collect();
        put("buffer_donor", &format!("{{ {} }}", entries.join(", ")));
    }
    if let Some(layout) = entry_layout {
        put("entry_computation_layout", &format!("{{{layout}}}"));
    }
    if let Some(count) = replica_count {
        put("replica_count", &count.to_string());
    }
    if let Some(count) = num_partitions {
        put("num_partitions", &count.to_string());
    }
    if !frontend_attributes.is_empty() {
        put("frontend_attributes", &format!("{{{}}}", join(frontend_attributes, ",")));
    }
    for (name, value) in other {
        put(name, value);
    }
    out.push('\n');
    if let Some(tables) = stack_frames {
        frames::write(tables, out);
    }
}

fn alias_text(alias: &InputOutputAlias) -> String {
    let InputOutputAlias { output, parameter, parameter_index, kind } = alias;
    let kind = match kind {
        AliasKind::May => "may-alias",
        AliasKind::Must => "must-alias",
    };
    let (output, path) = (super::attrs::braced(output), super::attrs::braced(parameter_index));
    format!("{output}: ({parameter}, {path}, {kind})")
}
