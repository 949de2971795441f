//! The section of MLIR bytecode that holds operations, blocks and regions, read.

use helio_ir::{Error, Result};

use super::container::{section, version};
use super::cursor::Cursor;
use super::sdy;
use super::table::Tables;
use super::vhlo::{self, OpRow, Version};
use crate::mlir::{Attribute, Block, Field, LocId, Module, Operation, Region, ValueId};

/// How deep regions may be nested.
const MAX_DEPTH: usize = 128;

/// Which parts of an operation follow.
pub(super) mod mask {
    pub(crate) const ATTRIBUTES: u8 = 1;
    pub(crate) const RESULTS: u8 = 1 << 1;
    pub(crate) const OPERANDS: u8 = 1 << 2;
    pub(crate) const SUCCESSORS: u8 = 1 << 3;
    pub(crate) const REGIONS: u8 = 1 << 4;
    pub(crate) const USE_ORDERS: u8 = 1 << 5;
    pub(crate) const PROPERTIES: u8 = 1 << 6;
}

/// The operation that holds all others.
pub(super) const MODULE: &str = "builtin.module";

/// Attributes that the module's own operation has as properties.
const MODULE_PROPERTIES: &[&str] = &["sym_name", "sym_visibility"];

/// What is known of the operations with one name.
struct Name {
    /// With the dialect: `vhlo.add_v1`.
    full: String,
    /// VHLO's row of it.
    row: Option<OpRow>,
    is_registered: bool,
}

/// The values that operations may name: those of an isolated region and of the regions in it.
#[derive(Default)]
struct Scope {
    /// The values by number; `None` until they are defined.
    values: Vec<Option<ValueId>>,
    /// For each open region the number of the value that it defines next, and the first that is not
    /// its own.
    open: Vec<(usize, usize)>,
}

struct Reader<'a> {
    tables: Tables<'a>,
    names: Vec<Name>,
    scopes: Vec<Scope>,
    depth: usize,
    version: u64,
}

/// Reads the operations of a file, which was written for this version of StableHLO if it says so.
pub(super) fn read(tables: Tables<'_>, artifact: Option<Version>) -> Result<Module> {
    let names = tables.container.op_names.iter().map(|op| Name {
        full: format!("{}.{}", op.dialect, op.name),
        row: if op.dialect == "vhlo" { OpRow::named(op.name) } else { None },
        is_registered: op.is_registered,
    });
    let (version, mut cursor) = (tables.container.version, tables.container.ir);
    let names = names.collect::<Vec<_>>();
    for Name { full, row, .. } in &names {
        if let (Some(row), Some(artifact)) = (row, artifact)
            && !artifact.is_within(row.since, row.until)
        {
            let until = row.until.map_or(String::new(), |until| format!(" until {until}"));
            return Err(Error::invalid(format!(
                "bytecode: operation {full} is of StableHLO since {}{until}, but the file is of \
                 {artifact}",
                row.since
            )));
        }
    }
    let mut reader = Reader { names, tables, scopes: vec![Scope::default()], depth: 0, version };
    let at = cursor;
    // Nothing of the outermost block is named by others, so its values have no numbers.
    reader.scopes[0].open.push((0, 0));
    let block = reader.block(&mut cursor, "")?;
    cursor.expect_end()?;
    let [operation] = &mut { block.operations }[..] else {
        return Err(at.error("a file must hold one operation, `builtin.module`"));
    };
    if operation.name != MODULE {
        return Err(at.error(format!("the outermost operation is {}", operation.name)));
    }
    let mut module = reader.tables.module;
    for (name, value) in std::mem::take(&mut operation.attributes) {
        match (name.as_str(), value) {
            ("sym_name", Attribute::String(text)) => module.name = Some(text),
            (_, value) => module.attributes.push((name, value)),
        }
    }
    for region in std::mem::take(&mut operation.regions) {
        for block in region.blocks {
            module.operations.extend(block.operations);
        }
    }
    Ok(module)
}

impl<'a> Reader<'a> {
    fn block(&mut self, cursor: &mut Cursor<'a>, parent: &str) -> Result<Block> {
        let (count, has_arguments) = cursor.int_and_flag("the number of operations")?;
        let count = cursor.fits(count, "the number of operations")?;
        let mut block = Block::default();
        if has_arguments {
            block.arguments = self.arguments(cursor)?;
            if self.version >= version::USE_ORDERS
                && cursor.byte("whether uses have an order")? != 0
            {
                skip_use_orders(cursor, block.arguments.len())?;
            }
        }
        for _ in 0..count {
            let operation = self.operation(cursor, parent)?;
            block.operations.push(operation);
        }
        Ok(block)
    }

    fn arguments(&mut self, cursor: &mut Cursor<'a>) -> Result<Vec<ValueId>> {
        cursor.list("the number of arguments", |cursor| {
            let at = *cursor;
            let (ty, has_location) = match self.version >= version::OPTIONAL_LOCATIONS {
                true => cursor.int_and_flag("an argument's type")?,
                false => (cursor.int("an argument's type")?, true),
            };
            let location = match has_location {
                true => self.tables.location(cursor)?,
                false => LocId::UNKNOWN,
            };
            let value = self.define(&at, ty)?;
            self.tables.module.locate_argument(value, location);
            Ok(value)
        })
    }

    /// A new value whose type has this index.
    fn define(&mut self, at: &Cursor<'_>, ty: u64) -> Result<ValueId> {
        let ty = self.tables.type_at(at, ty)?;
        let id = self.tables.module.add_value(ty)?;
        if let Some(scope) = self.scopes.last_mut()
            && let Some((next, end)) = scope.open.last_mut()
            // Outside of all regions values have no numbers.
            && (self.depth > 0 || *end > 0)
        {
            if next == end {
                return Err(at.error("a region defines more values than it has announced"));
            }
            scope.values[*next] = Some(id);
            *next += 1;
        }
        Ok(id)
    }

    fn operand(&self, cursor: &mut Cursor<'_>) -> Result<ValueId> {
        let at = *cursor;
        let number = cursor.int("an operand's number")?;
        let values = self.scopes.last().map_or(&[][..], |scope| &scope.values);
        match super::container::entry(&at, values, number, "value")? {
            Some(id) => Ok(*id),
            None => Err(at.error(format!("value {number} is used before it is defined"))),
        }
    }

    fn operation(&mut self, cursor: &mut Cursor<'a>, parent: &str) -> Result<Operation> {
        let at = *cursor;
        let index = cursor.int("an operation's name")?;
        super::container::entry(&at, &self.names, index, "operation name")?;
        let index = index as usize;
        let parts = cursor.byte("the parts of an operation")?;
        if parts & !0x7F != 0 {
            return Err(at.error(format!("an operation with parts {parts:#010b}; 7 are known")));
        }
        let location = self.tables.location(cursor)?;
        let full = &self.names[index].full;
        let name = match self.names[index].row {
            Some(row) => row.stablehlo_name(parent),
            None if full.starts_with("vhlo.") => {
                return Err(at.unknown(format!("operation {full}")));
            }
            None => full.clone(),
        };
        let named = |e: Error| e.in_instruction(&name);
        let attributes = self.attributes(cursor, index, parts).map_err(named)?;
        let results = match parts & mask::RESULTS {
            0 => Vec::new(),
            _ => cursor.list("the number of results", |cursor| {
                let at = *cursor;
                let ty = cursor.int("a result's type")?;
                Ok((at, ty))
            })?,
        };
        let operands = match parts & mask::OPERANDS {
            0 => Vec::new(),
            _ => cursor
                .list("the number of operands", |cursor| self.operand(cursor))
                .map_err(named)?,
        };
        if parts & mask::SUCCESSORS != 0 {
            return Err(at.unknown(format!("{name}, which ends a block and names others")));
        }
        if self.version >= version::USE_ORDERS && parts & mask::USE_ORDERS != 0 {
            skip_use_orders(cursor, results.len())?;
        }
        let regions = match parts & mask::REGIONS {
            0 => None,
            _ => Some(cursor.int_and_flag("the number of regions")?),
        };
        // Values inside of the regions are numbered behind the results.
        let results: Result<_> = results.iter().map(|(at, ty)| self.define(at, *ty)).collect();
        let results = results?;
        let regions = match regions {
            Some((count, is_isolated)) => self.regions(cursor, count, is_isolated, &name)?,
            None => Vec::new(),
        };
        Ok(Operation { name, operands, results, attributes, regions, location, at: None })
    }

    /// Properties and attributes, as StableHLO has them.
    fn attributes(
        &mut self,
        cursor: &mut Cursor<'a>,
        index: usize,
        parts: u8,
    ) -> Result<Vec<Field>> {
        let at = *cursor;
        let mut fields = Vec::new();
        if parts & mask::ATTRIBUTES != 0 {
            fields = dictionary(&at, self.tables.attribute(cursor)?)?;
        }
        if parts & mask::PROPERTIES != 0 {
            let mut properties = self.properties(cursor, index)?;
            properties.append(&mut fields);
            fields = properties;
        }
        match &self.names[index].row {
            Some(row) => vhlo::to_stablehlo(row, fields).map_err(|e| at.placed(e)),
            None => Ok(fields),
        }
    }

    fn properties(&mut self, cursor: &mut Cursor<'a>, index: usize) -> Result<Vec<Field>> {
        let at = *cursor;
        let Name { full, row, is_registered } = &self.names[index];
        if !is_registered {
            return dictionary(&at, self.tables.attribute(cursor)?);
        }
        let number = cursor.int("the number of properties")?;
        let table = &self.tables.container.properties;
        let mut data = *super::container::entry(&at, table, number, "properties")?;
        let mut fields = Vec::new();
        match row {
            Some(row) => {
                for attribute in row.attributes {
                    let value = self.tables.attribute(&mut data)?;
                    fields.push((attribute.name.to_owned(), value));
                }
            }
            None if full == MODULE => {
                for &name in MODULE_PROPERTIES {
                    let value = self.tables.optional_attribute(&mut data)?;
                    fields.extend(value.map(|value| (name.to_owned(), value)));
                }
            }
            None => {
                let names = sdy::properties(full);
                let names =
                    names.ok_or_else(|| at.unknown(format!("the binary properties of {full}")))?;
                for &name in names {
                    let value = self.tables.attribute(&mut data)?;
                    fields.push((name.to_owned(), sdy::bare(value)));
                }
            }
        }
        data.expect_end()?;
        Ok(fields)
    }

    fn regions(
        &mut self,
        cursor: &mut Cursor<'a>,
        count: u64,
        is_isolated: bool,
        parent: &str,
    ) -> Result<Vec<Region>> {
        if self.depth >= MAX_DEPTH {
            let detail = format!("bytecode: regions nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail));
        }
        let mut data = *cursor;
        if is_isolated && self.version >= version::REGION_SECTIONS {
            let section = cursor.section()?;
            if section.kind != section::IR {
                let detail = format!("section {}, must be one of operations (4)", section.kind);
                return Err(data.error(detail));
            }
            data = section.data;
        }
        let count = data.fits(count, "the number of regions")?;
        if is_isolated {
            self.scopes.push(Scope::default());
        }
        self.depth += 1;
        let mut regions = Vec::new();
        for _ in 0..count {
            regions.push(self.region(&mut data, parent)?);
        }
        self.depth -= 1;
        if is_isolated {
            self.scopes.pop();
            if self.version >= version::REGION_SECTIONS {
                data.expect_end()?;
                return Ok(regions);
            }
        }
        *cursor = data;
        Ok(regions)
    }

    fn region(&mut self, cursor: &mut Cursor<'a>, parent: &str) -> Result<Region> {
        let blocks = cursor.count("the number of blocks")?;
        let mut region = Region::default();
        if blocks == 0 {
            return Ok(region);
        }
        let values = cursor.count("the number of values")?;
        let first = match self.scopes.last_mut() {
            Some(scope) => {
                let first = scope.values.len();
                scope.values.resize(first + values, None);
                scope.open.push((first, first + values));
                first
            }
            None => 0,
        };
        for _ in 0..blocks {
            region.blocks.push(self.block(cursor, parent)?);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.truncate(first);
            scope.open.pop();
        }
        Ok(region)
    }
}

/// The fields of an attribute that must be a dictionary.
fn dictionary(at: &Cursor<'_>, attribute: Attribute) -> Result<Vec<Field>> {
    match attribute {
        Attribute::Dictionary(fields) => Ok(fields),
        _ => Err(at.error("the attributes of an operation are no dictionary")),
    }
}

/// Passes over the order in which MLIR keeps the uses of some of `values` values.
fn skip_use_orders(cursor: &mut Cursor<'_>, values: usize) -> Result<()> {
    let count = if values > 1 { cursor.count("the number of ordered values")? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            cursor.int("the number of an ordered value")?;
        }
        let (uses, _) = cursor.int_and_flag("the number of uses")?;
        for _ in 0..cursor.fits(uses, "the number of uses")? {
            cursor.int("the place of a use")?;
        }
    }
    Ok(())
}
