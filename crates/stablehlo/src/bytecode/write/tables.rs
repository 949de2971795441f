//! Strings, attributes, types and locations, each written once and named by its number.

use std::collections::HashMap;

use helio_ir::{Error, Result};

use super::super::builtin::code;
use super::super::container::section;
use super::encoder::Encoder;
use crate::mlir::{Attribute, Field, LocId, Location, Module, Signedness, Type};

/// A table of byte strings, each of which is in it once.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u64>,
}

impl Table {
    pub(super) fn number(&mut self, bytes: Vec<u8>) -> u64 {
        let next = self.entries.len() as u64;
        *self.numbers.entry(bytes).or_insert_with_key(|bytes| {
            self.entries.push(bytes.clone());
            next
        })
    }

    pub(super) fn entries(&self) -> &[Vec<u8>] {
        &self.entries
    }
}

/// Dialects by number.
pub(super) const DIALECTS: [&str; 2] = ["builtin", "vhlo"];
/// The number of `builtin`.
pub(super) const BUILTIN: u8 = 0;
/// The code of `builtin`'s integer types.
const INTEGER_TYPE: u64 = 0;

/// The number of `vhlo`.
pub(super) const VHLO: u8 = 1;

/// All tables of a file.
pub(super) struct Tables<'a> {
    pub(super) strings: Table,
    /// Each begins with its dialect's number, which is not written.
    pub(super) attributes: Table,
    /// Each begins with its dialect's number, which is not written.
    pub(super) types: Table,
    locations: HashMap<LocId, u64>,
    module: &'a Module,
}

impl<'a> Tables<'a> {
    pub(super) fn new(module: &'a Module) -> Self {
        Tables {
            strings: Table::default(),
            attributes: Table::default(),
            types: Table::default(),
            locations: HashMap::new(),
            module,
        }
    }

    pub(super) fn string(&mut self, text: &str) -> u64 {
        self.strings.number(text.as_bytes().to_vec())
    }

    /// The number of an attribute of `dialect` that `write` writes.
    pub(super) fn entry(
        &mut self,
        dialect: u8,
        write: impl FnOnce(&mut Self, &mut Encoder) -> Result<()>,
    ) -> Result<u64> {
        let mut encoder = Encoder { bytes: vec![dialect] };
        write(self, &mut encoder)?;
        Ok(self.attributes.number(encoder.bytes))
    }

    /// A string as `builtin` has it.
    pub(super) fn builtin_string(&mut self, text: &str) -> Result<u64> {
        let string = self.string(text);
        self.entry(BUILTIN, |_, encoder| {
            encoder.int(code::STRING);
            encoder.int(string);
            Ok(())
        })
    }

    /// An operation's attributes by name, with values of VHLO.
    pub(super) fn dictionary(&mut self, fields: &[Field]) -> Result<u64> {
        self.dictionary_of(fields, Self::discardable)
    }

    /// The attributes of the module's own operation, which are `builtin`'s, as it is.
    pub(super) fn builtin_dictionary(&mut self, fields: &[Field]) -> Result<u64> {
        self.dictionary_of(fields, Self::builtin)
    }

    fn dictionary_of(
        &mut self,
        fields: &[Field],
        mut number: impl FnMut(&mut Self, &Attribute) -> Result<u64>,
    ) -> Result<u64> {
        let mut numbers = Vec::new();
        for (name, value) in fields {
            numbers.push((self.builtin_string(name)?, number(self, value)?));
        }
        self.entry(BUILTIN, |_, encoder| {
            encoder.int(code::DICTIONARY);
            encoder.list(&numbers, |encoder, &(name, value)| {
                encoder.int(name);
                encoder.int(value);
            });
            Ok(())
        })
    }

    /// An attribute as `builtin` has it. Errors: `Unimplemented` for one that modules do not have.
    fn builtin(&mut self, value: &Attribute) -> Result<u64> {
        let mut encoder = Encoder { bytes: vec![BUILTIN] };
        match value {
            Attribute::Unit => encoder.int(code::UNIT),
            Attribute::String(text) => return self.builtin_string(text),
            Attribute::Bool(value) => {
                let ty = self.builtin_integer(1, Signedness::Signless);
                encoder.int(code::INTEGER);
                encoder.int(ty);
                encoder.byte((*value).into());
            }
            Attribute::Integer { value, ty: Type::Integer { width, sign } } => {
                let ty = self.builtin_integer(*width, *sign);
                encoder.int(code::INTEGER);
                encoder.int(ty);
                encoder.known_width(*value as u64, *width);
            }
            Attribute::Array(elements) => {
                let numbers = elements.iter().map(|element| self.builtin(element));
                let numbers = numbers.collect::<Result<Vec<_>>>()?;
                encoder.int(code::ARRAY);
                encoder.ints(&numbers);
            }
            Attribute::Dictionary(fields) => return self.builtin_dictionary(fields),
            value => {
                let detail = format!("attribute {value:?} of the module in a portable artifact");
                return Err(Error::unimplemented(detail));
            }
        }
        Ok(self.attributes.number(encoder.bytes))
    }

    fn builtin_integer(&mut self, width: u32, sign: Signedness) -> u64 {
        let sign = match sign {
            Signedness::Signless => 0,
            Signedness::Signed => 1,
            Signedness::Unsigned => 2,
        };
        let mut encoder = Encoder { bytes: vec![BUILTIN] };
        encoder.int(INTEGER_TYPE);
        encoder.int(u64::from(width) << 2 | sign);
        self.types.number(encoder.bytes)
    }

    /// An attribute that is not its operation's own.
    fn discardable(&mut self, value: &Attribute) -> Result<u64> {
        match value {
            Attribute::Unit => self.entry(BUILTIN, |_, encoder| {
                encoder.int(code::UNIT);
                Ok(())
            }),
            value => self.attribute(value),
        }
    }

    /// The number of a location.
    pub(super) fn location(&mut self, id: LocId) -> Result<u64> {
        if let Some(&number) = self.locations.get(&id) {
            return Ok(number);
        }
        let module = self.module;
        let location = module.locations.get(id.0 as usize).unwrap_or(&Location::Unknown);
        let mut encoder = Encoder { bytes: vec![BUILTIN] };
        self.write_location(id, location, &mut encoder)?;
        let number = self.attributes.number(encoder.bytes);
        self.locations.insert(id, number);
        Ok(number)
    }

    fn write_location(
        &mut self,
        id: LocId,
        location: &Location,
        encoder: &mut Encoder,
    ) -> Result<()> {
        // Those it refers to precede it, so that this comes to an end.
        let other = |tables: &mut Self, other: LocId| match other < id {
            true => tables.location(other),
            false => Err(Error::invalid("a location that does not precede its user")),
        };
        match location {
            Location::Unknown => encoder.int(code::UNKNOWN),
            Location::File { file, line, column, end } => {
                let file = self.builtin_string(file)?;
                let start = [u64::from(*line), u64::from(*column)];
                encoder.int(if end.is_some() { code::FILE_RANGE } else { code::FILE_LINE_COLUMN });
                encoder.int(file);
                match end {
                    Some((line, column)) => {
                        encoder.ints(&[start[0], start[1], (*line).into(), (*column).into()]);
                    }
                    None => start.into_iter().for_each(|number| encoder.int(number)),
                }
            }
            Location::Name { name, child } => {
                let name = self.builtin_string(name)?;
                let child = other(self, *child)?;
                encoder.int(code::NAME);
                encoder.int(name);
                encoder.int(child);
            }
            Location::CallSite { callee, caller } => {
                let (callee, caller) = (other(self, *callee)?, other(self, *caller)?);
                encoder.int(code::CALL_SITE);
                encoder.int(callee);
                encoder.int(caller);
            }
            Location::Fused { locations, .. } => {
                // What a compiler wished to add means nothing to others.
                let locations = locations.iter().map(|&id| other(self, id));
                let locations = locations.collect::<Result<Vec<_>>>()?;
                encoder.int(code::FUSED);
                encoder.ints(&locations);
            }
        }
        Ok(())
    }

    /// The sections of strings, and of attributes and types.
    pub(super) fn write(&self, file: &mut Encoder) {
        let mut strings = Encoder::default();
        let entries = self.strings.entries();
        strings.int(entries.len() as u64);
        entries.iter().rev().for_each(|text| strings.int(text.len() as u64 + 1));
        for text in entries {
            strings.bytes.extend_from_slice(text);
            strings.byte(0);
        }
        let (mut data, mut sizes) = (Encoder::default(), Encoder::default());
        sizes.int(self.attributes.entries().len() as u64);
        sizes.int(self.types.entries().len() as u64);
        for table in [&self.attributes, &self.types] {
            for group in table.entries().chunk_by(|a, b| a[0] == b[0]) {
                sizes.int(group[0][0].into());
                sizes.list(group, |sizes, entry| {
                    sizes.int_and_flag(entry.len() as u64 - 1, true);
                    data.bytes.extend_from_slice(&entry[1..]);
                });
            }
        }
        file.section(section::ATTRIBUTES_AND_TYPES, &data);
        file.section(section::OFFSETS, &sizes);
        file.section(section::STRINGS, &strings);
    }
}
