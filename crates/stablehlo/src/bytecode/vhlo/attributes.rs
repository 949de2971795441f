//! VHLO's attributes in bytecode, read by their codes.

use helio_ir::Result;

use super::super::cursor::Cursor;
use super::super::dense::{dense, float, integer};
use super::super::table::Tables;
use super::enums::Enumeration;
use crate::mlir::{Attribute, Field};

/// The codes of attributes that are no words of enumerations.
pub(crate) mod code {
    pub(crate) const ARRAY: u64 = 1;
    pub(crate) const BOOLEAN: u64 = 2;
    pub(crate) const DICTIONARY: u64 = 6;
    pub(crate) const FLOAT: u64 = 8;
    pub(crate) const INTEGER: u64 = 9;
    pub(crate) const OUTPUT_OPERAND_ALIAS: u64 = 10;
    pub(crate) const STRING: u64 = 14;
    pub(crate) const TENSOR: u64 = 15;
    pub(crate) const TYPE: u64 = 17;
    pub(crate) const TYPE_EXTENSIONS: u64 = 18;
    pub(crate) const RESULT_ACCURACY: u64 = 20;
    pub(crate) const SUB_AXIS: u64 = 21;
    pub(crate) const AXIS_REFERENCE: u64 = 22;
    pub(crate) const REPLICA_GROUP_MESH_AXES: u64 = 23;
    pub(crate) const MESH_AXIS: u64 = 24;
    pub(crate) const MESH: u64 = 25;
}

/// An attribute.
pub(crate) fn attribute(tables: &mut Tables<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let at = *cursor;
    let code = cursor.int("the kind of a VHLO attribute")?;
    if let Some(enumeration) = Enumeration::with_code(code) {
        return enumeration.read(cursor);
    }
    Ok(match code {
        code::ARRAY => {
            let elements = cursor.list("the length of an array", |c| tables.attribute(c))?;
            Attribute::Array(elements)
        }
        code::BOOLEAN => Attribute::Bool(cursor.int("a truth value")? != 0),
        code::DICTIONARY => {
            Attribute::Dictionary(cursor.list("the size of a dictionary", |c| {
                let at = *c;
                let Attribute::String(name) = tables.attribute(c)? else {
                    return Err(at.error("the name of a field is not a string"));
                };
                Ok((name, tables.attribute(c)?))
            })?)
        }
        code::FLOAT => {
            let ty = tables.ty(cursor)?;
            float(cursor, ty)?
        }
        code::INTEGER => {
            let ty = tables.ty(cursor)?;
            integer(cursor, ty)?
        }
        code::STRING => Attribute::String(tables.string(cursor)?),
        code::TENSOR => {
            let ty = tables.ty(cursor)?;
            let bytes = cursor.blob("the bytes of elements")?;
            Attribute::Dense(dense(&at, ty, bytes)?)
        }
        code::TYPE => Attribute::Type(tables.ty(cursor)?),
        code => structured(tables, cursor, &at, code)?,
    })
}

/// An attribute with fields.
fn structured(
    tables: &mut Tables<'_>,
    cursor: &mut Cursor<'_>,
    at: &Cursor<'_>,
    code: u64,
) -> Result<Attribute> {
    let (name, fields) = match code {
        code::OUTPUT_OPERAND_ALIAS => {
            let output = cursor.signed_list("the length of a path")?;
            let operand = cursor.signed("an operand's number")?;
            let path = cursor.signed_list("the length of a path")?;
            let fields = vec![
                field("output_tuple_indices", Attribute::Integers(output)),
                field("operand_index", Attribute::i64(operand)),
                field("operand_tuple_indices", Attribute::Integers(path)),
            ];
            ("output_operand_alias", fields)
        }
        code::TYPE_EXTENSIONS => {
            let bounds = cursor.signed_list("the number of bounds")?;
            ("bounds", vec![field("bounds", Attribute::Integers(bounds))])
        }
        code::RESULT_ACCURACY => {
            let ty = crate::mlir::Type::Float(crate::mlir::FloatType::F64);
            let atol = Attribute::Float { value: cursor.f64("atol")?, ty: ty.clone() };
            let rtol = Attribute::Float { value: cursor.f64("rtol")?, ty };
            let ulps = Attribute::i64(cursor.signed("ulps")?);
            let mode = tables.attribute(cursor)?;
            let fields = [("atol", atol), ("rtol", rtol), ("ulps", ulps), ("mode", mode)];
            ("result_accuracy", fields.map(|(name, value)| field(name, value)).into())
        }
        code::SUB_AXIS => {
            let size =
                |c: &mut Cursor<'_>| Ok::<_, helio_ir::Error>(Attribute::i64(c.signed("a size")?));
            let fields = vec![field("pre_size", size(cursor)?), field("size", size(cursor)?)];
            ("sub_axis_info", fields)
        }
        code::AXIS_REFERENCE => {
            let mut fields = vec![field("name", tables.attribute(cursor)?)];
            if cursor.int("whether there is a part of an axis")? != 0 {
                fields.push(field("sub_axis_info", tables.attribute(cursor)?));
            }
            ("axis_ref", fields)
        }
        code::REPLICA_GROUP_MESH_AXES => {
            let (mesh, axes) = (tables.attribute(cursor)?, tables.attribute(cursor)?);
            let mesh = match mesh {
                Attribute::String(name) => Attribute::Symbol(vec![name]),
                mesh => mesh,
            };
            ("replica_group_mesh_axes", vec![field("mesh", mesh), field("axes", axes)])
        }
        code::MESH_AXIS => {
            let name = tables.attribute(cursor)?;
            let size = Attribute::i64(cursor.signed("the size of an axis")?);
            ("mesh_axis", vec![field("name", name), field("size", size)])
        }
        code::MESH => {
            let mut fields = vec![field("axes", tables.attribute(cursor)?)];
            let devices = tables.optional_attribute(cursor)?;
            fields.extend(devices.map(|devices| field("device_ids", devices)));
            ("mesh", fields)
        }
        code => return Err(at.unknown(format!("VHLO attribute of kind {code}"))),
    };
    let (dialect, name) = ("stablehlo".to_owned(), name.to_owned());
    Ok(Attribute::Struct { dialect, name, fields })
}

fn field(name: &str, value: Attribute) -> Field {
    (name.to_owned(), value)
}
