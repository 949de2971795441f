//! The attributes, types and locations of MLIR's own dialect, `builtin`, by their codes.

use helio_ir::Result;

use super::cursor::Cursor;
use super::dense::{dense, float, integer};
use super::table::Tables;
use crate::mlir::{Attribute, FloatType, LocId, Location, Signedness, TensorType, Type};

/// The codes of attributes.
pub(super) mod code {
    pub(crate) const ARRAY: u64 = 0;
    pub(crate) const DICTIONARY: u64 = 1;
    pub(crate) const STRING: u64 = 2;
    pub(crate) const TYPED_STRING: u64 = 3;
    pub(crate) const FLAT_SYMBOL: u64 = 4;
    pub(crate) const SYMBOL: u64 = 5;
    pub(crate) const TYPE: u64 = 6;
    pub(crate) const UNIT: u64 = 7;
    pub(crate) const INTEGER: u64 = 8;
    pub(crate) const FLOAT: u64 = 9;
    pub(crate) const CALL_SITE: u64 = 10;
    pub(crate) const FILE_LINE_COLUMN: u64 = 11;
    pub(crate) const FUSED: u64 = 12;
    pub(crate) const FUSED_WITH_METADATA: u64 = 13;
    pub(crate) const NAME: u64 = 14;
    pub(crate) const UNKNOWN: u64 = 15;
    pub(crate) const DENSE_RESOURCE: u64 = 16;
    pub(crate) const DENSE_ARRAY: u64 = 17;
    pub(crate) const DENSE_ELEMENTS: u64 = 18;
    pub(crate) const FILE_RANGE: u64 = 22;
}

/// An attribute.
pub(super) fn attribute(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let at = *cursor;
    Ok(match cursor.int("the kind of a builtin attribute")? {
        code::ARRAY => {
            let elements = cursor.list("the length of an array", |c| tables.attribute(c))?;
            Attribute::Array(elements)
        }
        code::DICTIONARY => {
            Attribute::Dictionary(cursor.list("the size of a dictionary", |c| {
                let name = text(tables, c, "the name of a field")?;
                Ok((name, tables.attribute(c)?))
            })?)
        }
        code::STRING => Attribute::String(tables.string(cursor)?),
        code::TYPED_STRING => {
            let text = tables.string(cursor)?;
            tables.ty(cursor)?;
            Attribute::String(text)
        }
        code::FLAT_SYMBOL => Attribute::Symbol(vec![text(tables, cursor, "a symbol")?]),
        code::SYMBOL => {
            let mut path = vec![text(tables, cursor, "a symbol")?];
            for nested in cursor.list("the length of a symbol", |c| tables.attribute(c))? {
                let Attribute::Symbol(nested) = nested else {
                    return Err(at.error("a part of a symbol is not a symbol"));
                };
                path.extend(nested);
            }
            Attribute::Symbol(path)
        }
        code::TYPE => Attribute::Type(tables.ty(cursor)?),
        code::UNIT => Attribute::Unit,
        code::INTEGER => {
            let ty = tables.ty(cursor)?;
            match integer(cursor, ty)? {
                Attribute::Integer { value, ty } if ty == Type::signless(1) => {
                    Attribute::Bool(value != 0)
                }
                attribute => attribute,
            }
        }
        code::FLOAT => {
            let ty = tables.ty(cursor)?;
            float(cursor, ty)?
        }
        code::DENSE_ARRAY => dense_array(tables, cursor)?,
        code::DENSE_ELEMENTS => {
            let ty = tables.ty(cursor)?;
            let bytes = cursor.blob("the bytes of elements")?;
            Attribute::Dense(dense(&at, ty, bytes)?)
        }
        code::DENSE_RESOURCE => dense_resource(tables, cursor)?,
        code::CALL_SITE..=code::UNKNOWN | code::FILE_RANGE => {
            let mut again = at;
            let id = location_here(tables, &mut again)?;
            *cursor = again;
            Attribute::Location(id)
        }
        code => return Err(at.unknown(format!("builtin attribute of kind {code}"))),
    })
}

/// An attribute that must be a string.
fn text(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let at = *cursor;
    match tables.attribute(cursor)? {
        Attribute::String(text) => Ok(text),
        _ => Err(at.error(format!("{what} is not a string"))),
    }
}

/// `array<i64: 1, 2>`: the type of the elements, their number, and the bytes of all.
fn dense_array(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let at = *cursor;
    let element = tables.ty(cursor)?;
    let count = cursor.int("the length of an array")?;
    let bytes = cursor.blob("the bytes of an array")?;
    let is_whole = |size: u64| count.checked_mul(size) == Some(bytes.len() as u64);
    Ok(match element {
        Type::Integer { width: 1, .. } if is_whole(1) => {
            Attribute::Bools(bytes.iter().map(|&byte| byte != 0).collect())
        }
        Type::Integer { width: 8, .. } if is_whole(1) => {
            Attribute::Integers(bytes.iter().map(|&byte| i64::from(byte as i8)).collect())
        }
        Type::Integer { width: 16, .. } if is_whole(2) => {
            let each = bytes.as_chunks().0.iter();
            Attribute::Integers(each.map(|&b| i16::from_le_bytes(b).into()).collect())
        }
        Type::Integer { width: 32, .. } if is_whole(4) => {
            let each = bytes.as_chunks().0.iter();
            Attribute::Integers(each.map(|&b| i32::from_le_bytes(b).into()).collect())
        }
        Type::Integer { width: 64, .. } if is_whole(8) => {
            let each = bytes.as_chunks().0.iter();
            Attribute::Integers(each.map(|&b| i64::from_le_bytes(b)).collect())
        }
        Type::Float(FloatType::F32) if is_whole(4) => {
            let each = bytes.as_chunks().0.iter();
            Attribute::Floats(each.map(|&b| f32::from_le_bytes(b).into()).collect())
        }
        Type::Float(FloatType::F64) if is_whole(8) => {
            let each = bytes.as_chunks().0.iter();
            Attribute::Floats(each.map(|&b| f64::from_le_bytes(b)).collect())
        }
        element => {
            let length = bytes.len();
            let detail = format!("an array of {count} {element} in {length} bytes, must fit");
            return Err(at.error(detail));
        }
    })
}

/// Elements whose bytes are a resource of the file, if it has them.
fn dense_resource(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let at = *cursor;
    let ty = tables.ty(cursor)?;
    let index = cursor.int("a resource's number")?;
    let resource = super::container::entry(&at, &tables.container.resources, index, "resource")?;
    Ok(match resource.blob {
        Some(bytes) => Attribute::Dense(dense(&at, ty, bytes)?),
        None => Attribute::DenseResource { key: resource.key.to_owned(), ty },
    })
}

/// A type.
pub(super) fn ty(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    let at = *cursor;
    Ok(match cursor.int("the kind of a builtin type")? {
        0 => {
            let bits = cursor.int("an integer type's width and sign")?;
            let sign = match bits & 3 {
                0 => Signedness::Signless,
                1 => Signedness::Signed,
                2 => Signedness::Unsigned,
                sign => return Err(at.error(format!("an integer type of sign {sign}"))),
            };
            let width = u32::try_from(bits >> 2).ok().filter(|&width| width < 1 << 24);
            let width = width.ok_or_else(|| at.error("an integer type of 2^24 bits or more"))?;
            Type::Integer { width, sign }
        }
        1 => Type::Index,
        2 => {
            let (inputs, results) = (tables.types(cursor)?, tables.types(cursor)?);
            Type::Function { inputs, results }
        }
        3 => Type::Float(FloatType::BF16),
        4 => Type::Float(FloatType::F16),
        5 => Type::Float(FloatType::F32),
        6 => Type::Float(FloatType::F64),
        7 => Type::Float(FloatType::F80),
        8 => Type::Float(FloatType::F128),
        9 => Type::Complex(Box::new(tables.ty(cursor)?)),
        12 => Type::None,
        code @ (13 | 14) => {
            let encoding = if code == 14 { Some(tables.attribute(cursor)?) } else { None };
            let dims = cursor.signed_list("the number of dimensions")?;
            let element = tables.ty(cursor)?;
            tensor(&at, &dims, element, encoding)?
        }
        15 => Type::Tuple(tables.types(cursor)?),
        18 => Type::UnrankedTensor(Box::new(tables.ty(cursor)?)),
        code => return Err(at.unknown(format!("builtin type of kind {code}"))),
    })
}

/// A tensor's type, with bounds if the encoding states some.
pub(super) fn tensor(
    at: &Cursor<'_>,
    dims: &[i64],
    element: Type,
    encoding: Option<Attribute>,
) -> Result<Type> {
    let dims = sizes(at, dims)?;
    let (bounds, encoding) = match encoding {
        None => (Vec::new(), None),
        Some(Attribute::Struct { name, fields, .. }) if name == "bounds" => {
            let bounds = match fields.first() {
                Some((_, Attribute::Integers(bounds))) => sizes(at, bounds)?,
                _ => Vec::new(),
            };
            (bounds, None)
        }
        Some(encoding) => (Vec::new(), Some(Box::new(encoding))),
    };
    Ok(Type::Tensor(TensorType { dims, element: Box::new(element), bounds, encoding }))
}

/// MLIR writes the lowest `i64` for a size that is not known.
fn sizes(at: &Cursor<'_>, dims: &[i64]) -> Result<Vec<Option<u64>>> {
    let size = |&dim: &i64| match dim {
        i64::MIN => Ok(None),
        0.. => Ok(Some(dim as u64)),
        _ => Err(at.error(format!("a dimension of size {dim}"))),
    };
    dims.iter().map(size).collect()
}

/// The location that an entry of the table of attributes holds; unknown if it is none.
pub(super) fn location(tables: &mut Tables<'_>, mut data: Cursor<'_>) -> Result<LocId> {
    let id = location_here(tables, &mut data)?;
    data.expect_end()?;
    Ok(id)
}

fn location_here(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<LocId> {
    let at = *cursor;
    let location = match cursor.int("the kind of a location")? {
        code::UNKNOWN => return Ok(LocId::UNKNOWN),
        code::CALL_SITE => {
            let (callee, caller) = (tables.location(cursor)?, tables.location(cursor)?);
            Location::CallSite { callee, caller }
        }
        code::FILE_LINE_COLUMN => {
            let file = text(tables, cursor, "the name of a file")?;
            let (line, column) = (number(cursor)?, number(cursor)?);
            Location::File { file, line, column, end: None }
        }
        code::FILE_RANGE => file_range(tables, cursor)?,
        code::FUSED => {
            let locations = cursor.list("the number of locations", |c| tables.location(c))?;
            Location::Fused { locations, metadata: None }
        }
        code::FUSED_WITH_METADATA => {
            let locations = cursor.list("the number of locations", |c| tables.location(c))?;
            let metadata = Some(Box::new(tables.attribute(cursor)?));
            Location::Fused { locations, metadata }
        }
        code::NAME => {
            let name = text(tables, cursor, "the name of a location")?;
            Location::Name { name, child: tables.location(cursor)? }
        }
        code => return Err(at.error(format!("a builtin attribute of kind {code} as a location"))),
    };
    tables.module.add_location(location)
}

/// A file, then up to four numbers: a line; line and column; line, column and the column of the end
/// in that line; line and column of both ends.
fn file_range(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Location> {
    let at = *cursor;
    let file = text(tables, cursor, "the name of a file")?;
    let numbers = cursor.list("the number of a range's numbers", number)?;
    let (line, column, end) = match numbers[..] {
        [] => (0, 0, None),
        [line] => (line, 0, None),
        [line, column] => (line, column, None),
        [line, column, end] => (line, column, Some((line, end))),
        [line, column, end_line, end_column] => (line, column, Some((end_line, end_column))),
        _ => return Err(at.error("a range of more than 4 numbers")),
    };
    Ok(Location::File { file, line, column, end })
}

fn number(cursor: &mut Cursor<'_>) -> Result<u32> {
    let at = *cursor;
    let number = cursor.int("a line or column")?;
    u32::try_from(number).map_err(|_| at.error(format!("line or column {number}")))
}
