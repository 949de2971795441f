//! Types and attributes written as VHLO's in bytecode.

use helio_ir::{Array, ArrayShape, Error, Result};

use super::super::dense::bits;
use super::super::vhlo::{ENUMERATIONS, PLAIN_TYPES, attribute_code, type_code};
use super::encoder::Encoder;
use super::tables::{Tables, VHLO};
use crate::mlir::{Attribute, Dense, Field, FloatType, Quantized, Signedness, TensorType, Type};

/// How deep attributes and types may be nested.
const MAX_DEPTH: usize = 64;

fn no_form(what: impl std::fmt::Display) -> Error {
    Error::unimplemented(format!("{what} in a portable artifact"))
}

impl Tables<'_> {
    /// The number of a type.
    pub(super) fn ty(&mut self, ty: &Type) -> Result<u64> {
        self.type_at(ty, 0)
    }

    fn type_at(&mut self, ty: &Type, depth: usize) -> Result<u64> {
        if depth > MAX_DEPTH {
            return Err(Error::exhausted(format!("types nested more than {MAX_DEPTH} deep")));
        }
        let mut encoder = Encoder { bytes: vec![VHLO] };
        match (PLAIN_TYPES.iter().find(|row| row.1 == *ty), ty) {
            (Some((code, _)), _) => encoder.int(*code),
            (None, Type::Complex(part)) => {
                let part = self.type_at(part, depth + 1)?;
                encoder.ints_after(type_code::COMPLEX, &[part]);
            }
            (None, Type::Function { inputs, results }) => {
                let inputs = self.types_at(inputs, depth)?;
                let results = self.types_at(results, depth)?;
                encoder.int(type_code::FUNCTION);
                encoder.ints(&inputs);
                encoder.ints(&results);
            }
            (None, Type::Tuple(elements)) => {
                let elements = self.types_at(elements, depth)?;
                encoder.int(type_code::TUPLE);
                encoder.ints(&elements);
            }
            (None, Type::UnrankedTensor(element)) => {
                let element = self.type_at(element, depth + 1)?;
                encoder.ints_after(type_code::UNRANKED_TENSOR, &[element]);
            }
            (None, Type::Tensor(tensor)) => self.tensor(tensor, depth, &mut encoder)?,
            (None, Type::Quantized(quantized)) => self.quantized(quantized, depth, &mut encoder)?,
            (None, Type::Other(text)) if text == "!shape.witness" => {
                encoder.int(type_code::WITNESS);
            }
            (None, ty) => return Err(no_form(format_args!("type {ty}"))),
        }
        Ok(self.types.number(encoder.bytes))
    }

    fn types_at(&mut self, types: &[Type], depth: usize) -> Result<Vec<u64>> {
        types.iter().map(|ty| self.type_at(ty, depth + 1)).collect()
    }

    fn tensor(&mut self, tensor: &TensorType, depth: usize, encoder: &mut Encoder) -> Result<()> {
        if tensor.encoding.is_some() {
            return Err(no_form("a tensor with an encoding other than bounds"));
        }
        let size = |size: &Option<u64>| size.map_or(i64::MIN, |size| size as i64);
        let dims: Vec<_> = tensor.dims.iter().map(size).collect();
        let bounds: Vec<_> = tensor.bounds.iter().map(size).collect();
        let element = self.type_at(&tensor.element, depth + 1)?;
        if bounds.is_empty() {
            encoder.int(type_code::TENSOR);
        } else {
            let encoding = self.entry(VHLO, |_, encoder| {
                encoder.int(attribute_code::TYPE_EXTENSIONS);
                encoder.signed_list(&bounds);
                Ok(())
            })?;
            encoder.ints_after(type_code::TENSOR_WITH_ENCODING, &[encoding]);
        }
        encoder.signed_list(&dims);
        encoder.int(element);
        Ok(())
    }

    fn quantized(
        &mut self,
        quantized: &Quantized,
        depth: usize,
        encoder: &mut Encoder,
    ) -> Result<()> {
        let Quantized { storage, expressed, axis, scales, zero_points, .. } = quantized;
        let Type::Integer { width: width @ 1..=32, sign } = *storage else {
            return Err(no_form(format_args!("a quantized type stored as {storage}")));
        };
        let is_signed = sign != Signedness::Unsigned;
        let least = if is_signed { -(1_i64 << (width - 1)) } else { 0 };
        let min = quantized.storage_min.unwrap_or(least);
        let max = quantized.storage_max.unwrap_or(least + (1 << width) - 1);
        // VHLO says in the flags whether the integers are signed.
        let storage = self.type_at(&Type::signless(width), depth + 1)?;
        let expressed = self.type_at(expressed, depth + 1)?;
        let per_axis = axis.is_some();
        let code = if per_axis { type_code::QUANTIZED_PER_AXIS } else { type_code::QUANTIZED };
        encoder.ints_after(code, &[u64::from(is_signed), storage, expressed]);
        let scale = |encoder: &mut Encoder, scale: &f64| encoder.signed(scale.to_bits() as i64);
        match (axis, &scales[..], &zero_points[..]) {
            (Some(axis), scales, zero_points) => {
                encoder.int(*axis as u64);
                encoder.signed(min);
                encoder.signed(max);
                encoder.list(scales, scale);
                encoder.signed_list(zero_points);
            }
            (None, [one], [zero_point]) => {
                scale(encoder, one);
                encoder.signed(*zero_point);
                encoder.signed(min);
                encoder.signed(max);
            }
            _ => return Err(no_form("a quantized type of several scales without an axis")),
        }
        Ok(())
    }

    /// The number of an attribute.
    pub(super) fn attribute(&mut self, attribute: &Attribute) -> Result<u64> {
        self.attribute_at(attribute, 0)
    }

    fn attribute_at(&mut self, attribute: &Attribute, depth: usize) -> Result<u64> {
        if depth > MAX_DEPTH {
            return Err(Error::exhausted(format!("attributes nested more than {MAX_DEPTH} deep")));
        }
        let mut encoder = Encoder { bytes: vec![VHLO] };
        match attribute {
            Attribute::Bool(value) => {
                encoder.ints_after(attribute_code::BOOLEAN, &[u64::from(*value)]);
            }
            Attribute::Integer { value, ty } => {
                let number = self.type_at(ty, depth + 1)?;
                encoder.ints_after(attribute_code::INTEGER, &[number]);
                let width = bits(ty).ok_or_else(|| no_form(format_args!("an integer {ty}")))?;
                encoder.known_width(*value as u64, width);
            }
            Attribute::Float { value, ty } => {
                let number = self.type_at(ty, depth + 1)?;
                encoder.ints_after(attribute_code::FLOAT, &[number]);
                let Type::Float(format) = ty else {
                    return Err(no_form(format_args!("a number of type {ty}")));
                };
                let bits = float_bits(*format, *value);
                let bits = bits.ok_or_else(|| no_form(format_args!("a number of type {ty}")))?;
                encoder.known_width(bits, format.bits());
            }
            Attribute::String(text) => {
                let text = self.string(text);
                encoder.ints_after(attribute_code::STRING, &[text]);
            }
            Attribute::Array(elements) => {
                let numbers = elements.iter().map(|element| self.attribute_at(element, depth + 1));
                let numbers = numbers.collect::<Result<Vec<_>>>()?;
                encoder.int(attribute_code::ARRAY);
                encoder.ints(&numbers);
            }
            Attribute::Dictionary(fields) => self.fields(fields, depth, &mut encoder)?,
            Attribute::Type(ty) => {
                let number = self.type_at(ty, depth + 1)?;
                encoder.ints_after(attribute_code::TYPE, &[number]);
            }
            Attribute::Dense(dense) => {
                let number = self.type_at(&dense.ty, depth + 1)?;
                encoder.ints_after(attribute_code::TENSOR, &[number]);
                encoder.blob(&packed(dense));
            }
            Attribute::Word { name, word, .. } => {
                let row = ENUMERATIONS.iter().find(|row| row.name == name);
                let number = row.and_then(|row| row.words.iter().find(|pair| pair.1 == word));
                let (Some(row), Some((number, _))) = (row, number) else {
                    return Err(no_form(format_args!("{name} {word}")));
                };
                encoder.ints_after(row.code, &[*number]);
            }
            Attribute::Struct { name, fields, .. } => {
                self.structured(name, fields, depth, &mut encoder)?;
            }
            attribute => return Err(no_form(format_args!("attribute {attribute:?}"))),
        }
        Ok(self.attributes.number(encoder.bytes))
    }

    fn fields(&mut self, fields: &[Field], depth: usize, encoder: &mut Encoder) -> Result<()> {
        let mut numbers = Vec::new();
        for (name, value) in fields {
            let name = self.attribute_at(&Attribute::String(name.clone()), depth + 1)?;
            numbers.push((name, self.attribute_at(value, depth + 1)?));
        }
        encoder.int(attribute_code::DICTIONARY);
        encoder.list(&numbers, |encoder, &(name, value)| {
            encoder.int(name);
            encoder.int(value);
        });
        Ok(())
    }

    fn structured(
        &mut self,
        name: &str,
        fields: &[Field],
        depth: usize,
        encoder: &mut Encoder,
    ) -> Result<()> {
        let get = |name: &str| fields.iter().find(|field| field.0 == name).map(|field| &field.1);
        let int = |name: &str| match get(name) {
            Some(Attribute::Integer { value, .. }) => i64::try_from(*value)
                .map_err(|_| no_form(format_args!("{name} = {value}, of more than 64 bits"))),
            _ => Ok(0),
        };
        let list = |name: &str| match get(name) {
            Some(Attribute::Integers(list)) => &list[..],
            _ => &[],
        };
        let float = |name: &str| match get(name) {
            Some(Attribute::Float { value, .. }) => value.to_bits() as i64,
            _ => 0,
        };
        match name {
            "output_operand_alias" => {
                encoder.int(attribute_code::OUTPUT_OPERAND_ALIAS);
                encoder.signed_list(list("output_tuple_indices"));
                encoder.signed(int("operand_index")?);
                encoder.signed_list(list("operand_tuple_indices"));
            }
            "result_accuracy" => {
                let default = Attribute::word("stablehlo", "result_accuracy_mode", "DEFAULT");
                let mode = self.attribute_at(get("mode").unwrap_or(&default), depth + 1)?;
                encoder.int(attribute_code::RESULT_ACCURACY);
                encoder.signed(float("atol"));
                encoder.signed(float("rtol"));
                encoder.signed(int("ulps")?);
                encoder.int(mode);
            }
            name => return Err(no_form(format_args!("attribute stablehlo.{name}"))),
        }
        Ok(())
    }
}

impl Encoder {
    /// A code and numbers.
    fn ints_after(&mut self, code: u64, numbers: &[u64]) {
        self.int(code);
        numbers.iter().for_each(|&number| self.int(number));
    }
}

/// The bits of a number in this format, if HLO has it.
fn float_bits(format: FloatType, value: f64) -> Option<u64> {
    let element = format.element()?;
    let array = helio_ir::dispatch_type!(element, T => {
        Array::new(Vec::new(), vec![<T as helio_ir::Native>::from_number(helio_ir::Number::Float(value))])
    });
    let array: Array = array.ok()?;
    debug_assert_eq!(array.shape(), &ArrayShape::scalar(element));
    u64::try_from(array.bits(0)).ok()
}

/// The bytes of elements; truth values are packed eight to a byte, the first the lowest.
fn packed(dense: &Dense) -> Vec<u8> {
    let is_truth = matches!(&dense.ty, Type::Tensor(t) if *t.element == Type::signless(1));
    if !is_truth {
        return dense.bytes.to_vec();
    }
    if dense.is_splat {
        return vec![if dense.bytes.first() == Some(&0) { 0 } else { 0xFF }];
    }
    let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit != 0));
    dense.bytes.chunks(8).map(byte).collect()
}
