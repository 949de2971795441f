//! Shardy's attributes (`sdy`), by their codes: how arrays are cut up among devices. They become
//! the text that MLIR has for them.

use helio_ir::Result;

use super::cursor::Cursor;
use super::table::Tables;
use crate::mlir::Attribute;

/// The properties of Shardy's operations, alphabetically, as far as JAX emits them.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("sdy.manual_computation", &["in_shardings", "manual_axes", "out_shardings"]),
    ("sdy.mesh", &["mesh", "sym_name"]),
    ("sdy.named_computation", &["in_shardings", "name", "out_shardings"]),
    ("sdy.reshard", &["sharding"]),
    ("sdy.sharding_constraint", &["sharding"]),
    ("sdy.sharding_group", &["group_id"]),
];

/// The properties of an operation of Shardy's in the order in which they are written.
pub(super) fn properties(operation: &str) -> Option<&'static [&'static str]> {
    PROPERTIES.iter().find(|row| row.0 == operation).map(|row| row.1)
}

/// A property as the text of an operation has it: without the name of the kind of attribute.
pub(super) fn bare(attribute: Attribute) -> Attribute {
    let Attribute::Other(text) = attribute else { return attribute };
    let inner = text.strip_prefix("#sdy.sharding_per_value<").and_then(|t| t.strip_suffix('>'));
    let inner = inner
        .or_else(|| text.strip_prefix("#sdy<manual_axes").and_then(|text| text.strip_suffix('>')));
    Attribute::Other(inner.unwrap_or(&text).to_owned())
}

/// An attribute, as text.
pub(super) fn attribute(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let at = *cursor;
    let text = match cursor.int("the kind of a Shardy attribute")? {
        0 => {
            let names = cursor.list("the number of axes", |c| match tables.attribute(c)? {
                Attribute::String(name) => Ok(quoted(&name)),
                _ => Err(c.error("the name of an axis is not a string")),
            })?;
            format!("#sdy<manual_axes{{{}}}>", names.join(", "))
        }
        1 => {
            let name = tables.string(cursor)?;
            format!("{}={}", quoted(&name), cursor.signed("the size of an axis")?)
        }
        2 => mesh(tables, cursor)?,
        3 => {
            let before = cursor.signed("the size before a part of an axis")?;
            format!("({before}){}", cursor.signed("the size of a part of an axis")?)
        }
        4 => {
            let name = tables.string(cursor)?;
            match tables.optional_attribute(cursor)? {
                Some(part) => format!("{}:{}", quoted(&name), text(cursor, part)?),
                None => quoted(&name),
            }
        }
        5 => dimension(tables, cursor)?,
        6 => sharding(tables, cursor, 0)?,
        15 => sharding(tables, cursor, 1)?,
        7 | 16 => {
            let shardings = list(tables, cursor)?;
            let bare = shardings.iter().map(|text| text.trim_start_matches("#sdy.sharding"));
            format!("#sdy.sharding_per_value<[{}]>", bare.collect::<Vec<_>>().join(", "))
        }
        8 => {
            let factors = cursor.signed_list("the number of a dimension's factors")?;
            factors.into_iter().map(factor).collect()
        }
        9 => format!("[{}]", list(tables, cursor)?.join(", ")),
        10 => sharding_rule(tables, cursor)?,
        11 => format!("{{{}}}", list(tables, cursor)?.join(", ")),
        12 => format!("[{}]", list(tables, cursor)?.join(", ")),
        13 => {
            let axes = list(tables, cursor)?.join(", ");
            let source = cursor.signed("the dimension that is joined")?;
            format!("{{{axes}}}: {source}->{}", cursor.signed("the dimension that is cut")?)
        }
        14 => format!("[{}]", list(tables, cursor)?.join(", ")),
        code => return Err(at.unknown(format!("Shardy attribute of kind {code}"))),
    };
    Ok(Attribute::Other(text))
}

/// `#sdy.mesh<["x"=2, "y"=4], device_ids=[…]>`
fn mesh(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<String> {
    let axes = list(tables, cursor)?.join(", ");
    let devices = cursor.signed_list("the number of devices")?;
    Ok(match devices.is_empty() {
        true => format!("#sdy.mesh<[{axes}]>"),
        false => {
            let devices: Vec<_> = devices.iter().map(i64::to_string).collect();
            format!("#sdy.mesh<[{axes}], device_ids=[{}]>", devices.join(", "))
        }
    })
}

/// `#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}, custom>`
fn sharding_rule(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<String> {
    let sizes = cursor.signed_list("the number of factors")?;
    let operands = list(tables, cursor)?.join(", ");
    let results = list(tables, cursor)?.join(", ");
    let each = sizes.iter().enumerate();
    let sizes: Vec<String> =
        each.map(|(number, size)| format!("{}={size}", factor(number as i64))).collect();
    let mut text =
        format!("#sdy.op_sharding_rule<({operands})->({results}) {{{}}}", sizes.join(", "));
    for kind in ["reduction", "need_replication", "permutation", "blocked_propagation"] {
        let factors = cursor.signed_list("the number of factors of a kind")?;
        if !factors.is_empty() {
            let factors: Vec<String> = factors.into_iter().map(factor).collect();
            text += &format!(" {kind}={{{}}}", factors.join(", "));
        }
    }
    if cursor.byte("whether a rule is custom")? != 0 {
        text += ", custom";
    }
    Ok(text + ">")
}

/// The name of a factor in text: `i` to `z`, then `z_1` and so on.
fn factor(number: i64) -> String {
    const LETTERS: i64 = 18;
    match u8::try_from(number) {
        Ok(n) if number < LETTERS => char::from(b'i' + n).to_string(),
        _ => format!("z_{}", number.saturating_sub(LETTERS - 1)),
    }
}

/// `{"x", "y", ?}p1`
fn dimension(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<String> {
    let mut axes = list(tables, cursor)?;
    if cursor.byte("whether a dimension is closed")? == 0 {
        axes.push("?".to_owned());
    }
    let priority = match cursor.int_and_flag("a priority")? {
        (priority, true) => format!("p{priority}"),
        (_, false) => String::new(),
    };
    Ok(format!("{{{}}}{priority}", axes.join(", ")))
}

/// `#sdy.sharding<@mesh, [{"x"}, {}], replicated={"y"}>`, with as many more lists of axes, over
/// which values have yet to be added up.
fn sharding(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>, unreduced: usize) -> Result<String> {
    let at = *cursor;
    let mesh = match tables.attribute(cursor)? {
        Attribute::Symbol(path) => format!("@{}", path.join("::@")),
        // A mesh that stands here itself.
        Attribute::Other(text) => text.trim_start_matches("#sdy.").to_owned(),
        _ => return Err(at.error("a sharding names no mesh")),
    };
    let dimensions = list(tables, cursor)?.join(", ");
    let mut text = format!("#sdy.sharding<{mesh}, [{dimensions}]");
    for name in ["replicated", "unreduced"].into_iter().take(1 + unreduced) {
        let axes = list(tables, cursor)?;
        if !axes.is_empty() {
            text += &format!(", {name}={{{}}}", axes.join(", "));
        }
    }
    Ok(text + ">")
}

/// A list of attributes of Shardy's, as text.
fn list(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    cursor.list("the length of a list", |cursor| {
        let attribute = tables.attribute(cursor)?;
        text(cursor, attribute)
    })
}

fn text(cursor: &Cursor<'_>, attribute: Attribute) -> Result<String> {
    match attribute {
        Attribute::Other(text) => Ok(text),
        _ => Err(cursor.error("a part of a Shardy attribute is not Shardy's")),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.escape_default())
}
