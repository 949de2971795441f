//! Attributes, types and locations by their index in the file, read when they are first asked for.

use helio_ir::{Error, Result};

use super::container::{Container, Entry, entry};
use super::cursor::Cursor;
use super::{builtin, sdy, vhlo};
use crate::mlir::{Attribute, LocId, Module, Type};

/// How deep attributes and types may refer to each other.
const MAX_DEPTH: usize = 64;

/// How deep locations may refer to each other: as deep as the stacks of calls of the programs that
/// they come from.
const MAX_LOCATION_DEPTH: usize = 512;

/// How many bytes of attributes and types may be made for each byte of the file. Those that are
/// named twice are there twice, so a small file could ask for any amount.
const GROWTH: usize = 1024;

/// What may be made for any file, however small.
const GROWTH_FREE: usize = 1 << 20;

/// An attribute or a type.
#[derive(Clone, Debug)]
enum Slot<T> {
    Unread,
    /// It is being read: whoever names it now is a part of it.
    Begun,
    /// It, and roughly how many bytes it takes.
    Read(T, usize),
}

/// The tables of a file, as far as they have been read.
pub(super) struct Tables<'a> {
    pub(super) container: Container<'a>,
    attributes: Vec<Slot<Attribute>>,
    types: Vec<Slot<Type>>,
    locations: Vec<Option<LocId>>,
    depth: usize,
    /// How many bytes of attributes and types may still be made.
    room: usize,
    /// The module that is read, for its locations and values.
    pub(super) module: Module,
}

impl<'a> Tables<'a> {
    /// The tables of `container`, from a file of this size.
    pub(super) fn new(container: Container<'a>, size_bytes: usize) -> Self {
        Tables {
            attributes: vec![Slot::Unread; container.attributes.len()],
            types: vec![Slot::Unread; container.types.len()],
            locations: vec![None; container.attributes.len()],
            depth: 0,
            room: size_bytes.saturating_mul(GROWTH).saturating_add(GROWTH_FREE),
            module: Module::default(),
            container,
        }
    }

    /// The attribute whose index is read next.
    pub(super) fn attribute(&mut self, cursor: &mut Cursor<'_>) -> Result<Attribute> {
        let at = *cursor;
        let index = cursor.int("an attribute's number")?;
        self.attribute_at(&at, index)
    }

    /// The attribute whose index is read next, unless a flag says that there is none.
    pub(super) fn optional_attribute(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<Attribute>> {
        let at = *cursor;
        match cursor.int_and_flag("an attribute's number")? {
            (_, false) => Ok(None),
            (index, true) => self.attribute_at(&at, index).map(Some),
        }
    }

    fn attribute_at(&mut self, at: &Cursor<'_>, index: u64) -> Result<Attribute> {
        let slot = entry(at, &self.attributes, index, "attribute")?;
        if let Slot::Read(attribute, size) = slot {
            self.room = charge(self.room, *size)?;
            return Ok(attribute.clone());
        }
        let index = index as usize;
        let begun = matches!(slot, Slot::Begun);
        self.enter(at, begun, MAX_DEPTH)?;
        self.attributes[index] = Slot::Begun;
        let attribute = self.read_attribute(index)?;
        self.depth -= 1;
        let size = attribute_size(&attribute);
        self.room = charge(self.room, size)?;
        self.attributes[index] = Slot::Read(attribute.clone(), size);
        Ok(attribute)
    }

    /// The type whose index is read next.
    pub(super) fn ty(&mut self, cursor: &mut Cursor<'_>) -> Result<Type> {
        let at = *cursor;
        let index = cursor.int("a type's number")?;
        self.type_at(&at, index)
    }

    /// A list of types.
    pub(super) fn types(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<Type>> {
        cursor.list("the number of types", |cursor| self.ty(cursor))
    }

    /// The type with this index.
    pub(super) fn type_at(&mut self, at: &Cursor<'_>, index: u64) -> Result<Type> {
        let slot = entry(at, &self.types, index, "type")?;
        if let Slot::Read(ty, size) = slot {
            self.room = charge(self.room, *size)?;
            return Ok(ty.clone());
        }
        let index = index as usize;
        let begun = matches!(slot, Slot::Begun);
        self.enter(at, begun, MAX_DEPTH)?;
        self.types[index] = Slot::Begun;
        let ty = self.read_type(index)?;
        self.depth -= 1;
        let size = type_size(&ty);
        self.room = charge(self.room, size)?;
        self.types[index] = Slot::Read(ty.clone(), size);
        Ok(ty)
    }

    /// The location whose index is read next.
    pub(super) fn location(&mut self, cursor: &mut Cursor<'_>) -> Result<LocId> {
        let at = *cursor;
        let index = cursor.int("a location's number")?;
        if let Some(id) = entry(&at, &self.locations, index, "attribute")? {
            return Ok(*id);
        }
        let index = index as usize;
        let begun = matches!(self.attributes[index], Slot::Begun);
        self.enter(&at, begun, MAX_LOCATION_DEPTH)?;
        let read = std::mem::replace(&mut self.attributes[index], Slot::Begun);
        let Entry { dialect, is_binary, data } = self.container.attributes[index];
        let id = match (dialect, is_binary) {
            ("builtin", true) => builtin::location(self, data)?,
            // An extension of a tool, as text: it says nothing to others.
            _ => LocId::UNKNOWN,
        };
        self.depth -= 1;
        self.attributes[index] = read;
        self.locations[index] = Some(id);
        Ok(id)
    }

    /// The string whose index is read next. Bytes that are not UTF-8 are replaced.
    pub(super) fn string(&mut self, cursor: &mut Cursor<'_>) -> Result<String> {
        let at = *cursor;
        let index = cursor.int("a string's number")?;
        let bytes = entry(&at, &self.container.strings, index, "string")?;
        self.room = charge(self.room, bytes.len())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn enter(&mut self, at: &Cursor<'_>, begun: bool, max_depth: usize) -> Result<()> {
        if begun {
            return Err(at.error("an attribute, type or location that is a part of itself"));
        }
        if self.depth >= max_depth {
            let detail = format!("bytecode: attributes nested more than {max_depth} deep");
            return Err(Error::exhausted(detail));
        }
        self.depth += 1;
        Ok(())
    }

    fn read_attribute(&mut self, index: usize) -> Result<Attribute> {
        let Entry { dialect, is_binary, mut data } = self.container.attributes[index];
        let attribute = match (dialect, is_binary) {
            (_, false) => Attribute::Other(data.zero_terminated("an attribute")?.to_owned()),
            ("builtin", true) => builtin::attribute(self, &mut data)?,
            ("vhlo", true) => vhlo::attribute(self, &mut data)?,
            ("sdy", true) => sdy::attribute(self, &mut data)?,
            _ => return Err(unknown_dialect(&data, dialect, "attribute")),
        };
        data.expect_end()?;
        Ok(attribute)
    }

    fn read_type(&mut self, index: usize) -> Result<Type> {
        let Entry { dialect, is_binary, mut data } = self.container.types[index];
        let ty = match (dialect, is_binary) {
            (_, false) => Type::Other(data.zero_terminated("a type")?.to_owned()),
            ("builtin", true) => builtin::ty(self, &mut data)?,
            ("vhlo", true) => vhlo::ty(self, &mut data)?,
            // Operations of Shardy's keep StableHLO's types in portable artifacts.
            ("stablehlo", true) => match data.int("the kind of a StableHLO type")? {
                0 => Type::Token,
                kind => return Err(data.unknown(format!("a StableHLO type of kind {kind}"))),
            },
            _ => return Err(unknown_dialect(&data, dialect, "type")),
        };
        data.expect_end()?;
        Ok(ty)
    }
}

fn unknown_dialect(data: &Cursor<'_>, dialect: &str, what: &str) -> Error {
    data.unknown(format!("the binary form of a dialect `{dialect}`, in which this {what} is"))
}

fn charge(room: usize, size: usize) -> Result<usize> {
    room.checked_sub(size).ok_or_else(|| {
        Error::exhausted(format!(
            "bytecode: attributes and types take more than {GROWTH} bytes for each byte of the file"
        ))
    })
}

/// Roughly how many bytes an attribute takes. Recurses as deep as it is, which is limited.
fn attribute_size(attribute: &Attribute) -> usize {
    let fields = |fields: &[(String, Attribute)]| -> usize {
        fields.iter().map(|(name, value)| name.len() + 24 + attribute_size(value)).sum()
    };
    size_of::<Attribute>()
        + match attribute {
            Attribute::Integer { ty, .. } | Attribute::Float { ty, .. } | Attribute::Type(ty) => {
                type_size(ty)
            }
            Attribute::String(text) | Attribute::Other(text) => text.len(),
            Attribute::Array(elements) => elements.iter().map(attribute_size).sum(),
            Attribute::Integers(list) => list.len() * 8,
            Attribute::Floats(list) => list.len() * 8,
            Attribute::Bools(list) => list.len(),
            // The bytes are shared.
            Attribute::Dense(dense) => type_size(&dense.ty),
            Attribute::DenseResource { key, ty } => key.len() + type_size(ty),
            Attribute::Dictionary(list) => fields(list),
            Attribute::Symbol(path) => path.iter().map(|name| name.len() + 24).sum(),
            Attribute::Word { dialect, name, word } => dialect.len() + name.len() + word.len(),
            Attribute::Struct { dialect, name, fields: list } => {
                dialect.len() + name.len() + fields(list)
            }
            Attribute::Unit | Attribute::Bool(_) | Attribute::Location(_) => 0,
        }
}

/// Roughly how many bytes a type takes.
fn type_size(ty: &Type) -> usize {
    size_of::<Type>()
        + match ty {
            Type::Tensor(tensor) => {
                16 * (tensor.dims.len() + tensor.bounds.len())
                    + type_size(&tensor.element)
                    + tensor.encoding.as_deref().map_or(0, attribute_size)
            }
            Type::Complex(part) | Type::UnrankedTensor(part) => type_size(part),
            Type::Tuple(elements) => elements.iter().map(type_size).sum(),
            Type::Function { inputs, results } => inputs.iter().chain(results).map(type_size).sum(),
            Type::Quantized(quantized) => {
                type_size(&quantized.storage)
                    + type_size(&quantized.expressed)
                    + 16 * quantized.scales.len()
            }
            Type::Other(text) => text.len(),
            Type::Integer { .. } | Type::Index | Type::Float(_) | Type::Token | Type::None => 0,
        }
}
