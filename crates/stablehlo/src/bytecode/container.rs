//! The file as a whole: header, sections, and the tables of strings, dialects, operation names,
//! attributes, types, properties and resources. What attributes and types mean, and the operations
//! themselves, is read later.

use helio_ir::{Error, Result};

use super::cursor::Cursor;

/// The first bytes of every file.
pub(super) const MAGIC: &[u8] = b"ML\xEFR";

/// Versions of the container (not of StableHLO), by what came with them.
pub(super) mod version {
    /// Dialects may state versions.
    pub(crate) const DIALECT_VERSIONS: u64 = 1;
    /// Regions of isolated operations are sections.
    pub(crate) const REGION_SECTIONS: u64 = 2;
    /// Values may state the order of their uses.
    pub(crate) const USE_ORDERS: u64 = 3;
    /// Arguments of blocks may lack a location; the number of operation names is stated.
    pub(crate) const OPTIONAL_LOCATIONS: u64 = 4;
    /// Operations have properties.
    pub(crate) const PROPERTIES: u64 = 5;
    /// The newest that is known.
    pub(crate) const CURRENT: u64 = 6;
}

/// Kinds of sections.
pub(super) mod section {
    pub(crate) const STRINGS: u8 = 0;
    pub(crate) const DIALECTS: u8 = 1;
    pub(crate) const ATTRIBUTES_AND_TYPES: u8 = 2;
    pub(crate) const OFFSETS: u8 = 3;
    pub(crate) const IR: u8 = 4;
    pub(crate) const RESOURCES: u8 = 5;
    pub(crate) const RESOURCE_OFFSETS: u8 = 6;
    pub(crate) const DIALECT_VERSION: u8 = 7;
    pub(crate) const PROPERTIES: u8 = 8;
    /// What each holds, for errors.
    pub(crate) const NAMES: [&str; 9] = [
        "strings",
        "dialects",
        "attributes and types",
        "sizes of attributes and types",
        "operations",
        "resources",
        "sizes of resources",
        "version of a dialect",
        "properties",
    ];
}

/// An attribute or a type that has not been read yet.
pub(super) struct Entry<'a> {
    /// The dialect that it belongs to.
    pub(super) dialect: &'a str,
    /// Whether it is in the dialect's binary form, and not in MLIR's text.
    pub(super) is_binary: bool,
    pub(super) data: Cursor<'a>,
}

/// The name of an operation.
pub(super) struct OpName<'a> {
    pub(super) dialect: &'a str,
    /// The name without the dialect.
    pub(super) name: &'a str,
    /// Whether the writer knew the operation, and wrote its properties in the operation's own form.
    pub(super) is_registered: bool,
}

/// Data that lies outside of the operations and is named there.
pub(super) struct Resource<'a> {
    pub(super) key: &'a str,
    /// The bytes, if it is a blob that is there.
    pub(super) blob: Option<&'a [u8]>,
}

/// The tables of a file.
pub(super) struct Container<'a> {
    /// The version of the container.
    pub(super) version: u64,
    /// Who wrote it: `StableHLO_v1.13.0`.
    pub(super) producer: &'a str,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) op_names: Vec<OpName<'a>>,
    pub(super) attributes: Vec<Entry<'a>>,
    pub(super) types: Vec<Entry<'a>>,
    /// What belongs to operations, one part for each different one.
    pub(super) properties: Vec<Cursor<'a>>,
    /// The resources of dialects, in the order in which attributes count them.
    pub(super) resources: Vec<Resource<'a>>,
    /// The operations.
    pub(super) ir: Cursor<'a>,
}

type Sections<'a> = [Option<Cursor<'a>>; section::NAMES.len()];

impl<'a> Container<'a> {
    /// Reads all tables.
    pub(super) fn read(file: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(file, "header");
        if !file.starts_with(MAGIC) {
            return Err(cursor.error("the file does not begin with MLIR's mark 4d 4c ef 52"));
        }
        cursor.bytes(MAGIC.len() as u64, "MLIR's mark")?;
        let version = cursor.int("the version")?;
        if version > version::CURRENT {
            let newest = version::CURRENT;
            let detail = format!("version {version} of MLIR bytecode; up to {newest} is known");
            return Err(cursor.unknown(detail));
        }
        let producer = cursor.zero_terminated("the producer's name")?;
        let mut sections = sections(cursor)?;
        let mut take = |kind: u8| {
            let section = sections[kind as usize].take();
            section.ok_or_else(|| missing(kind))
        };
        let strings = strings(take(section::STRINGS)?)?;
        let (dialects, op_names) = dialects(take(section::DIALECTS)?, &strings, version)?;
        let data = take(section::ATTRIBUTES_AND_TYPES)?;
        let (attributes, types) = entries(take(section::OFFSETS)?, data, &dialects)?;
        let ir = take(section::IR)?;
        let properties = match take(section::PROPERTIES) {
            Ok(data) => properties(data)?,
            Err(_) if version < version::PROPERTIES => Vec::new(),
            Err(e) => return Err(e),
        };
        let resources = match (take(section::RESOURCE_OFFSETS), take(section::RESOURCES)) {
            (Ok(sizes), Ok(data)) => resources(sizes, data, &strings, dialects.len())?,
            (Err(_), Err(_)) => Vec::new(),
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        Ok(Container {
            version,
            producer,
            strings,
            op_names,
            attributes,
            types,
            properties,
            resources,
            ir,
        })
    }
}

fn missing(kind: u8) -> Error {
    let name = section::NAMES[kind as usize];
    Error::invalid(format!("bytecode: there is no section {kind} ({name})"))
}

/// The sections of the file by their kinds.
fn sections(mut cursor: Cursor<'_>) -> Result<Sections<'_>> {
    let mut sections = Sections::default();
    while !cursor.is_empty() {
        let at = cursor;
        let section = cursor.section()?;
        let Some(place) = sections.get_mut(section.kind as usize) else {
            return Err(at.error(format!("a section of kind {}; 0 to 8 are known", section.kind)));
        };
        let name = section::NAMES[section.kind as usize];
        if place.replace(section.data.named(name)).is_some() {
            return Err(at.error(format!("a second section {} ({name})", section.kind)));
        }
    }
    Ok(sections)
}

/// The lengths stand before the texts, last first; each text ends with a zero byte.
fn strings(mut cursor: Cursor<'_>) -> Result<Vec<&[u8]>> {
    let mut lengths = cursor.list("the number of strings", |cursor| cursor.int("a length"))?;
    lengths.reverse();
    let mut strings = Vec::new();
    for length in lengths {
        let at = cursor;
        let [text @ .., 0] = cursor.bytes(length, "a string")? else {
            return Err(at.error("a string does not end with a zero byte"));
        };
        strings.push(text);
    }
    cursor.expect_end()?;
    Ok(strings)
}

/// The entry of a table that an index in the file names.
pub(super) fn entry<'t, T>(
    cursor: &Cursor<'_>,
    table: &'t [T],
    index: u64,
    what: &str,
) -> Result<&'t T> {
    let found = usize::try_from(index).ok().and_then(|index| table.get(index));
    found.ok_or_else(|| cursor.error(format!("{what} {index}, of which there are {}", table.len())))
}

/// The string with this index, as text.
pub(super) fn text<'a>(cursor: &Cursor<'_>, strings: &[&'a [u8]], index: u64) -> Result<&'a str> {
    let bytes = entry(cursor, strings, index, "string")?;
    std::str::from_utf8(bytes)
        .map_err(|_| cursor.error(format!("string {index} is not UTF-8, but names something")))
}

type Names<'a> = (Vec<&'a str>, Vec<OpName<'a>>);

/// The names of dialects, then the names of operations in groups of a dialect each.
fn dialects<'a>(mut cursor: Cursor<'a>, strings: &[&'a [u8]], version: u64) -> Result<Names<'a>> {
    let dialects = cursor.list("the number of dialects", |cursor| {
        let what = "the name of a dialect";
        if version < version::DIALECT_VERSIONS {
            let index = cursor.int(what)?;
            return text(cursor, strings, index);
        }
        let (index, has_version) = cursor.int_and_flag(what)?;
        if has_version {
            let at = *cursor;
            let kind = cursor.section()?.kind;
            if kind != section::DIALECT_VERSION {
                return Err(at.error(format!("section {kind}, must be a dialect's version (7)")));
            }
        }
        text(cursor, strings, index)
    })?;
    let mut op_names = Vec::new();
    if version >= version::OPTIONAL_LOCATIONS {
        cursor.count("the number of operation names")?;
    }
    while !cursor.is_empty() {
        let (dialect, count) = group(&mut cursor, &dialects)?;
        for _ in 0..count {
            let (index, is_registered) = match version < version::PROPERTIES {
                true => (cursor.int("the name of an operation")?, true),
                false => cursor.int_and_flag("the name of an operation")?,
            };
            let name = text(&cursor, strings, index)?;
            op_names.push(OpName { dialect, name, is_registered });
        }
    }
    Ok((dialects, op_names))
}

/// The head of a group: a dialect, and how many of its entries follow.
fn group<'a>(cursor: &mut Cursor<'_>, dialects: &[&'a str]) -> Result<(&'a str, usize)> {
    let index = cursor.int("a dialect's number")?;
    let dialect = entry(cursor, dialects, index, "dialect")?;
    Ok((dialect, cursor.count("the size of a group")?))
}

type Entries<'a> = (Vec<Entry<'a>>, Vec<Entry<'a>>);

/// Attributes, then types: sizes in groups of a dialect each, and the data that they cut up.
fn entries<'a>(
    mut sizes: Cursor<'a>,
    mut data: Cursor<'a>,
    dialects: &[&'a str],
) -> Result<Entries<'a>> {
    let attribute_count = sizes.count("the number of attributes")?;
    let type_count = sizes.count("the number of types")?;
    let mut table = |count: usize| {
        let mut entries = Vec::new();
        while entries.len() < count {
            let at = sizes;
            let (dialect, group) = group(&mut sizes, dialects)?;
            if group > count - entries.len() {
                return Err(at.error(format!("a group of {group}, beyond the total of {count}")));
            }
            for _ in 0..group {
                let (size, is_binary) = sizes.int_and_flag("the size of an entry")?;
                let data = data.part(size, "an attribute or type")?;
                entries.push(Entry { dialect, is_binary, data });
            }
        }
        Ok(entries)
    };
    let (attributes, types) = (table(attribute_count)?, table(type_count)?);
    sizes.expect_end()?;
    Ok((attributes, types))
}

/// A list of blobs.
fn properties(mut cursor: Cursor<'_>) -> Result<Vec<Cursor<'_>>> {
    if cursor.is_empty() {
        return Ok(Vec::new());
    }
    let list = cursor.list("the number of properties", |cursor| {
        let length = cursor.int("the length of properties")?;
        cursor.part(length, "properties")
    })?;
    cursor.expect_end()?;
    Ok(list)
}

/// What kinds of resources there are.
const BLOB: u8 = 0;

/// Groups of the tools that wrote the file, which mean nothing to others, then groups of dialects.
fn resources<'a>(
    mut sizes: Cursor<'a>,
    mut data: Cursor<'a>,
    strings: &[&'a [u8]],
    dialect_count: usize,
) -> Result<Vec<Resource<'a>>> {
    let mut read_group = |sizes: &mut Cursor<'a>| {
        sizes.list("the number of resources", |sizes| {
            let key = sizes.int("the key of a resource")?;
            let key = text(sizes, strings, key)?;
            let size = sizes.int("the size of a resource")?;
            let kind = sizes.byte("the kind of a resource")?;
            let mut data = data.part(size, "a resource")?;
            if kind != BLOB || data.is_empty() {
                return Ok(Resource { key, blob: None });
            }
            let alignment = data.int("the alignment of a blob")?;
            let length = data.int("the length of a blob")?;
            data.align(alignment)?;
            let blob = data.bytes(length, "a blob")?;
            data.expect_end()?;
            Ok(Resource { key, blob: Some(blob) })
        })
    };
    for _ in 0..sizes.count("the number of external groups")? {
        let key = sizes.int("the key of an external group")?;
        text(&sizes, strings, key)?;
        read_group(&mut sizes)?;
    }
    let mut resources = Vec::new();
    while !sizes.is_empty() {
        let dialect = sizes.int("a dialect's number")?;
        if dialect >= dialect_count as u64 {
            let detail = format!("dialect {dialect}, of which there are {dialect_count}");
            return Err(sizes.error(detail));
        }
        resources.extend(read_group(&mut sizes)?);
    }
    Ok(resources)
}
