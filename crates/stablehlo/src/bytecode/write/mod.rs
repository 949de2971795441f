//! Modules written as portable artifacts: VHLO in MLIR bytecode.

mod encoder;
mod tables;
mod values;

use std::collections::HashMap;

use helio_ir::{Error, Result};

use super::PRODUCER;
use super::container::{MAGIC, section, version};
use super::ir::{MODULE, mask};
use super::vhlo::{OpRow, Version, to_vhlo};
use crate::mlir::{Attribute, Block, Module, Operation, Region, ValueId};
use encoder::Encoder;
use tables::{BUILTIN, DIALECTS, Table, Tables, VHLO};

/// The first version of StableHLO whose artifacts have the container that is written.
const OLDEST: Version = Version::minor(0, 15);

/// How deep regions may be nested.
const MAX_DEPTH: usize = 128;

/// Writes a module as a portable artifact for readers of StableHLO `version` and later.
///
/// Errors: `Unimplemented` for operations and attributes that this version of StableHLO does not
/// have, for those of other dialects, and for versions before 0.15; `InvalidArgument` for an
/// operation that lacks an attribute.
pub fn write(module: &Module, version: Version) -> Result<Vec<u8>> {
    if version < OLDEST || version > Version::NEWEST {
        let newest = Version::NEWEST;
        let detail = format!("a portable artifact of StableHLO {version}; {OLDEST} to {newest}");
        return Err(Error::unimplemented(detail));
    }
    let mut writer = Writer {
        module,
        version,
        tables: Tables::new(module),
        names: Table::default(),
        properties: Table::default(),
        numbers: HashMap::new(),
    };
    let ir = writer.module()?;
    Ok(writer.file(&ir))
}

struct Writer<'a> {
    module: &'a Module,
    version: Version,
    tables: Tables<'a>,
    /// The names of operations, each after its dialect's number.
    names: Table,
    properties: Table,
    /// The number of each value in its scope.
    numbers: HashMap<ValueId, u64>,
}

impl Writer<'_> {
    /// The header and all sections.
    fn file(mut self, ir: &Encoder) -> Vec<u8> {
        let mut dialects = Encoder::default();
        let names: Vec<u64> = DIALECTS.iter().map(|name| self.tables.string(name)).collect();
        dialects.list(&names, |dialects, &name| dialects.int_and_flag(name, false));
        let ops = self.names.entries();
        dialects.int(ops.len() as u64);
        for group in ops.chunk_by(|a, b| a[0] == b[0]) {
            dialects.int(group[0][0].into());
            dialects.list(group, |dialects, name| {
                let name = self.tables.strings.number(name[1..].to_vec());
                dialects.int_and_flag(name, true);
            });
        }
        let mut properties = Encoder::default();
        properties.list(self.properties.entries(), |properties, entry| properties.blob(entry));
        let mut file = Encoder { bytes: MAGIC.to_vec() };
        file.int(version::CURRENT);
        file.bytes.extend_from_slice(format!("{PRODUCER}{}\0", self.version).as_bytes());
        file.section(section::DIALECTS, &dialects);
        self.tables.write(&mut file);
        file.section(section::IR, ir);
        file.section(section::PROPERTIES, &properties);
        file.bytes
    }

    /// The outermost block, which holds the module's own operation.
    fn module(&mut self) -> Result<Encoder> {
        let module = self.module;
        let mut properties = Encoder::default();
        match &module.name {
            Some(name) => {
                let name = self.tables.builtin_string(name)?;
                properties.int_and_flag(name, true);
            }
            None => properties.int(0),
        }
        properties.int(0); // no visibility
        let mut ir = Encoder::default();
        ir.int_and_flag(1, false);
        let name = MODULE.trim_start_matches("builtin.");
        ir.int(self.names.number([&[BUILTIN], name.as_bytes()].concat()));
        let attributes = if module.attributes.is_empty() { 0 } else { mask::ATTRIBUTES };
        ir.byte(mask::REGIONS | mask::PROPERTIES | attributes);
        let nowhere = self.tables.location(crate::mlir::LocId::UNKNOWN)?;
        ir.int(nowhere);
        if attributes != 0 {
            let dictionary = self.tables.builtin_dictionary(&module.attributes)?;
            ir.int(dictionary);
        }
        ir.int(self.properties.number(properties.bytes));
        ir.int_and_flag(1, true);
        let mut region = Encoder::default();
        region.int(1);
        region.int(count_values(&module.operations));
        region.int_and_flag(module.operations.len() as u64, false);
        let mut next = 0;
        self.number_results(&module.operations, &mut next);
        for operation in &module.operations {
            self.operation(operation, MODULE, next, 0, &mut region)?;
        }
        ir.section(section::IR, &region);
        Ok(ir)
    }

    fn number_results(&mut self, operations: &[Operation], next: &mut u64) {
        for &value in operations.iter().flat_map(|operation| &operation.results) {
            self.numbers.insert(value, *next);
            *next += 1;
        }
    }

    /// An operation inside of one of this name; values of its regions are numbered from `next` on.
    fn operation(
        &mut self,
        operation: &Operation,
        parent: &str,
        next: u64,
        depth: usize,
        ir: &mut Encoder,
    ) -> Result<()> {
        let named = |e: Error| e.in_instruction(&operation.name).at(operation.at.clone());
        let row = self.row(operation, parent).map_err(named)?;
        let (properties, rest) = to_vhlo(&row, &operation.attributes).map_err(named)?;
        let name = format!("{}_v{}", row.name, row.revision);
        ir.int(self.names.number([&[VHLO], name.as_bytes()].concat()));
        let part = |is_there: bool, mask: u8| if is_there { mask } else { 0 };
        ir.byte(
            part(!rest.is_empty(), mask::ATTRIBUTES)
                | part(!properties.is_empty(), mask::PROPERTIES)
                | part(!operation.results.is_empty(), mask::RESULTS)
                | part(!operation.operands.is_empty(), mask::OPERANDS)
                | part(!operation.regions.is_empty(), mask::REGIONS),
        );
        ir.int(self.tables.location(operation.location)?);
        if !rest.is_empty() {
            ir.int(self.tables.dictionary(&rest).map_err(named)?);
        }
        if !properties.is_empty() {
            let properties = self.properties(&properties).map_err(named)?;
            ir.int(properties);
        }
        if !operation.results.is_empty() {
            let types = operation.results.iter().map(|&value| self.ty(value));
            let types = types.collect::<Result<Vec<_>>>().map_err(named)?;
            ir.ints(&types);
        }
        if !operation.operands.is_empty() {
            let number = |value: &ValueId| {
                let number = self.numbers.get(value).copied();
                number.ok_or_else(|| named(Error::invalid("an operand that is not defined before")))
            };
            let operands: Vec<_> = operation.operands.iter().map(number).collect::<Result<_>>()?;
            ir.ints(&operands);
        }
        if operation.regions.is_empty() {
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            let detail = format!("regions nested more than {MAX_DEPTH} deep");
            return Err(Error::exhausted(detail));
        }
        // A function sees nothing of what is around it; other operations may.
        let is_isolated = row.name == "func";
        ir.int_and_flag(operation.regions.len() as u64, is_isolated);
        let mut regions = Encoder::default();
        let next = if is_isolated { 0 } else { next };
        for region in &operation.regions {
            self.region(region, &operation.name, next, depth + 1, &mut regions)?;
        }
        match is_isolated {
            true => ir.section(section::IR, &regions),
            false => ir.bytes.append(&mut regions.bytes),
        }
        Ok(())
    }

    /// The row of an operation in the version that is written.
    fn row(&self, operation: &Operation, parent: &str) -> Result<OpRow> {
        let version = self.version;
        let mut rows = OpRow::all().filter(|row| row.stablehlo_name(parent) == operation.name);
        let row = rows.find(|row| version.is_within(row.since, row.until));
        row.ok_or_else(|| {
            let name = &operation.name;
            Error::unimplemented(format!("{name} in a portable artifact of StableHLO {version}"))
        })
    }

    fn properties(&mut self, properties: &[Attribute]) -> Result<u64> {
        let mut encoder = Encoder::default();
        for attribute in properties {
            encoder.int(self.tables.attribute(attribute)?);
        }
        Ok(self.properties.number(encoder.bytes))
    }

    fn ty(&mut self, value: ValueId) -> Result<u64> {
        let ty = self.module.values.get(value.index());
        let ty = ty.ok_or_else(|| Error::invalid("a value without a type"))?;
        self.tables.ty(ty)
    }

    fn region(
        &mut self,
        region: &Region,
        parent: &str,
        first: u64,
        depth: usize,
        ir: &mut Encoder,
    ) -> Result<()> {
        ir.int(region.blocks.len() as u64);
        if region.blocks.is_empty() {
            return Ok(());
        }
        let count = |block: &Block| block.arguments.len() as u64 + count_values(&block.operations);
        let values: u64 = region.blocks.iter().map(count).sum();
        ir.int(values);
        let mut next = first;
        for block in &region.blocks {
            for &value in &block.arguments {
                self.numbers.insert(value, next);
                next += 1;
            }
            self.number_results(&block.operations, &mut next);
        }
        for block in &region.blocks {
            ir.int_and_flag(block.operations.len() as u64, !block.arguments.is_empty());
            if !block.arguments.is_empty() {
                let types = block.arguments.iter().map(|&value| self.ty(value));
                let types = types.collect::<Result<Vec<_>>>()?;
                ir.list(&types, |ir, &ty| ir.int_and_flag(ty, false));
                ir.byte(0); // uses have the usual order
            }
            for operation in &block.operations {
                self.operation(operation, parent, first + values, depth, ir)?;
            }
        }
        Ok(())
    }
}

/// How many values operations define, not counting those inside of their regions.
fn count_values(operations: &[Operation]) -> u64 {
    operations.iter().map(|operation| operation.results.len() as u64).sum()
}
