//! Arrays in the formats of the crate `serde`.

use std::fmt;

use serde_core::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_core::ser::{Error as _, SerializeSeq, SerializeStruct, SerializeTuple, Serializer};
use serde_core::{Deserialize, Serialize};

use super::super::{ArrayShape, ElementType, MAX_RANK, Native, Number, Shape, strides};
use super::Array;
use crate::{Error, Result, text};

const FIELDS: &[&str] = &["shape", "values"];

/// Formats that people read have the shape and nested lists, as `helio run --json --full` prints them:
/// `{"shape":"f32[2,2]","values":[[1.0,2.0],[3.0,"inf"]]}`. Complex numbers are pairs; infinities and NaN
/// are `"inf"`, `"-inf"` and `"nan"`. Other formats have [`Array::to_bytes`] for values.
///
/// A dimension with a size at run time is one of that size.
impl Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = ArrayShape::new(self.element(), self.sizes()).map_err(S::Error::custom)?;
        let for_people = serializer.is_human_readable();
        let mut fields = serializer.serialize_struct("Array", FIELDS.len())?;
        fields.serialize_field(FIELDS[0], &shape.to_string())?;
        match for_people {
            true => {
                let strides = strides(self.dims());
                let nested = Nested { array: self, strides: &strides, axis: 0, at: 0 };
                fields.serialize_field(FIELDS[1], &nested)?;
            }
            false if self.sizes() == self.dims() => {
                fields.serialize_field(FIELDS[1], &Bytes(&self.to_bytes()))?;
            }
            false => {
                let whole = dispatch!(self.data(), values => packed(self, values));
                let whole = whole.map_err(S::Error::custom)?;
                fields.serialize_field(FIELDS[1], &Bytes(&whole.to_bytes()))?;
            }
        }
        fields.end()
    }
}

/// The elements that there are at run time, one after the other.
fn packed<T: Native>(array: &Array, _: &[T]) -> Result<Array> {
    Array::new(array.sizes(), array.to_vec::<T>()?)
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// The elements with the same `axis` leading indices, the first of which is `at`.
struct Nested<'a> {
    array: &'a Array,
    strides: &'a [usize],
    axis: usize,
    at: usize,
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sizes = self.array.sizes();
        if sizes.contains(&0) {
            // One list: there may be more empty ones than anybody can write.
            return serializer.serialize_seq(Some(0))?.end();
        }
        let Some(&size) = sizes.get(self.axis) else {
            let (number, element) = (self.array.number(self.at), self.array.element());
            return Scalar { number, element }.serialize(serializer);
        };
        let mut list = serializer.serialize_seq(Some(size))?;
        for index in 0..size {
            let at = self.at + index * self.strides[self.axis];
            list.serialize_element(&Nested { axis: self.axis + 1, at, ..*self })?;
        }
        list.end()
    }
}

struct Scalar {
    number: Number,
    element: ElementType,
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.number {
            Number::Pred(value) => serializer.serialize_bool(value),
            Number::Int(value) => match i64::try_from(value) {
                Ok(value) => serializer.serialize_i64(value),
                Err(_) => serializer.serialize_u64(value as u64),
            },
            Number::Float(value) if value.is_nan() => serializer.serialize_str("nan"),
            Number::Float(f64::INFINITY) => serializer.serialize_str("inf"),
            Number::Float(f64::NEG_INFINITY) => serializer.serialize_str("-inf"),
            // Few digits tell an `f32` from its neighbours.
            Number::Float(value) => match self.element.bits() <= 32 {
                true => serializer.serialize_f32(value as f32),
                false => serializer.serialize_f64(value),
            },
            Number::Complex(value) => {
                let mut pair = serializer.serialize_tuple(2)?;
                for part in [value.re, value.im] {
                    let (number, element) = (Number::Float(part), self.element.real_part());
                    pair.serialize_element(&Scalar { number, element })?;
                }
                pair.end()
            }
        }
    }
}

/// The inverse. How values are nested is not looked at: row-major order counts. Errors: what is no shape,
/// or not of static sizes; another number of values than it has; values that its type has not.
impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let for_people = deserializer.is_human_readable();
        deserializer.deserialize_struct("Array", FIELDS, Fields { for_people })
    }
}

struct Fields {
    for_people: bool,
}

impl<'de> Visitor<'de> for Fields {
    type Value = Array;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array with its shape and its values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Array, A::Error> {
        let missing = |number| de::Error::invalid_length(number, &self);
        let shape: String = fields.next_element()?.ok_or_else(|| missing(0))?;
        let values = fields.next_element_seed(self.values())?.ok_or_else(|| missing(1))?;
        values.into_array(&shape).map_err(de::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Array, A::Error> {
        let (mut shape, mut values) = (None::<String>, None);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "shape" => shape = Some(fields.next_value()?),
                "values" => values = Some(fields.next_value_seed(self.values())?),
                _ => {
                    fields.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let shape = shape.ok_or_else(|| de::Error::missing_field(FIELDS[0]))?;
        let values: Values = values.ok_or_else(|| de::Error::missing_field(FIELDS[1]))?;
        values.into_array(&shape).map_err(de::Error::custom)
    }
}

impl Fields {
    fn values(&self) -> ValuesSeed {
        ValuesSeed { for_people: self.for_people }
    }
}

/// The values of an array whose shape may not be known yet.
enum Values {
    Bytes(Vec<u8>),
    /// In row-major order; parts of complex numbers one by one.
    Numbers(Vec<Number>),
}

impl Values {
    /// Errors: as `Deserialize` says.
    fn into_array(self, shape: &str) -> Result<Array> {
        let Shape::Array(shape) = text::parse_shape(shape)? else {
            return Err(Error::invalid(format!("{shape} is not the shape of an array")));
        };
        if !shape.is_static() {
            return Err(Error::invalid(format!("{shape} has sizes that are not static")));
        }
        let shape = shape.without_layout();
        match self {
            Values::Bytes(bytes) => Array::from_bytes(shape, &bytes),
            Values::Numbers(numbers) => {
                let parts = if shape.element().is_complex() { 2 } else { 1 };
                if numbers.len() != shape.element_count().saturating_mul(parts) {
                    let found = numbers.len() / parts;
                    return Err(Error::invalid(format!("{found} values for {shape}")));
                }
                let element = shape.element();
                let data = dispatch_type!(element, T => {
                    let of = |parts: &[Number]| element_of::<T>(parts);
                    T::wrap(numbers.chunks_exact(parts).map(of).collect::<Result<_>>()?)
                });
                Array::from_data(shape, data)
            }
        }
    }
}

/// The element of these parts. Errors: the type has no such value.
fn element_of<T: Native>(parts: &[Number]) -> Result<T> {
    let (element, number) = (T::TYPE, parts[0]);
    let is_real = |number: &Number| matches!(number, Number::Int(_) | Number::Float(_));
    let value = match parts {
        [re, im] => Number::Complex(num_complex::Complex::new(re.to_f64(), im.to_f64())),
        _ => number,
    };
    let fits = match number {
        _ if element.is_float() || element.is_complex() => parts.iter().all(is_real),
        Number::Pred(_) => element.is_pred(),
        Number::Int(_) => element.is_integer() && T::from_number(value).to_number() == value,
        Number::Float(_) | Number::Complex(_) => false,
    };
    match fits {
        true => Ok(T::from_number(value)),
        false => Err(Error::invalid(format!("{element} has no value {number:?}"))),
    }
}

struct ValuesSeed {
    for_people: bool,
}

impl<'de> DeserializeSeed<'de> for ValuesSeed {
    type Value = Values;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Values, D::Error> {
        if !self.for_people {
            return deserializer.deserialize_byte_buf(BytesVisitor).map(Values::Bytes);
        }
        let mut numbers = Vec::new();
        // Pairs of complex numbers are one level more.
        Numbers { found: &mut numbers, levels: MAX_RANK + 1 }.deserialize(deserializer)?;
        Ok(Values::Numbers(numbers))
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an array's elements")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

/// Appends the numbers of nested lists.
struct Numbers<'a> {
    found: &'a mut Vec<Number>,
    /// How deep lists may be nested.
    levels: usize,
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"nan\", \"inf\", \"-inf\", or a list of them")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.found.push(Number::Pred(value));
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.found.push(Number::Int(value.into()));
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.found.push(Number::Int(value.into()));
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.found.push(Number::Float(value));
        Ok(())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.found.push(Number::Float(match value {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => return Err(E::invalid_value(de::Unexpected::Str(value), &self)),
        }));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| de::Error::custom("lists are nested too deep"))?;
        while list.next_element_seed(Numbers { found: &mut *self.found, levels })?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use crate::{Array, ArrayShape, DimKind, ElementType};

    fn read(json: &str) -> Result<Array, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn people_can_read_it() {
        let array = Array::from([[0.1f32, f32::INFINITY], [f32::NEG_INFINITY, f32::NAN]]);
        let json = serde_json::to_string(&array).unwrap();
        assert_eq!(json, r#"{"shape":"f32[2,2]","values":[[0.1,"inf"],["-inf","nan"]]}"#);
        assert_eq!(read(&json).unwrap().bits(3), f32::NAN.to_bits().into());
        let complex = serde_json::to_string(&Array::from(Complex::new(1.0, -2.5))).unwrap();
        assert_eq!(complex, r#"{"shape":"c128[]","values":[1.0,-2.5]}"#);
    }

    #[test]
    fn arrays_of_every_type_come_back() {
        for &element in ElementType::ALL {
            let shape = ArrayShape::new(element, [2, 2]).unwrap();
            // Parsers may be wrong in the last digit of an `f64`: numbers of few digits come back.
            let bytes: Vec<u8> = match element.real_part() {
                ElementType::F64 => {
                    let parts = [0.5f64, -1.25, 1e20, 3.0].into_iter().cycle();
                    parts.flat_map(f64::to_le_bytes).take(shape.size_bytes()).collect()
                }
                _ => (0..shape.size_bytes()).map(|i| (i % 2) as u8).collect(),
            };
            let array = Array::from_bytes(shape, &bytes).unwrap();
            let json = serde_json::to_string(&array).unwrap();
            assert!(read(&json).unwrap().same_bits(&array), "{json}");
        }
        for array in [Array::from([i64::MIN, i64::MAX]), Array::from([u64::MAX]), 7u8.into()] {
            assert_eq!(read(&serde_json::to_string(&array).unwrap()).unwrap(), array);
        }
    }

    #[test]
    fn fields_may_be_in_any_order_and_lists_flat() {
        let json = r#"{"values":[1,2.5,[3,4]],"name":"out0","shape":"f32[2,2]{1,0}"}"#;
        assert_eq!(read(json).unwrap(), Array::from([[1f32, 2.5], [3.0, 4.0]]));
        assert_eq!(read(r#"["s8[]", -1]"#).unwrap(), Array::from(-1i8));
        let none = Array::new([1 << 40, 0], Vec::<f32>::new()).unwrap();
        let json = serde_json::to_string(&none).unwrap();
        assert_eq!((json.len(), read(&json).unwrap()), (44, none));
    }

    #[test]
    fn what_is_no_array_is_an_error() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        for (shape, values, wanted) in [
            ("f32[2]", "[1]", "1 values for f32[2]"),
            ("c64[2]", "[[1,2],3]", "1 values for c64[2]"),
            ("s8[1]", "[128]", "s8 has no value"),
            ("u64[1]", "[-1]", "u64 has no value"),
            ("s32[1]", "[1.0]", "s32 has no value"),
            ("pred[1]", "[1]", "pred has no value"),
            ("f32[1]", "[true]", "f32 has no value"),
            ("f32[1]", "[\"one\"]", "expected a number"),
            ("f32[1]", &deep, "nested too deep"),
            ("f32[<=1]", "[1]", "not static"),
            ("(f32[1])", "[1]", "not the shape of an array"),
            ("f32[99999999999999999999]", "[1]", "does not fit 64 bits"),
        ] {
            let json = format!(r#"{{"shape":"{shape}","values":{values}}}"#);
            let error = read(&json).unwrap_err().to_string();
            assert!(error.contains(wanted), "{json}: {error}");
        }
        assert!(read(r#"{"shape":"f32[1]"}"#).unwrap_err().to_string().contains("values"));
    }

    #[test]
    fn sizes_at_run_time_become_sizes() {
        let kinds = vec![DimKind::Static, DimKind::Bounded];
        let shape = ArrayShape::with_kinds(ElementType::S8, vec![2, 3], kinds).unwrap();
        let array = Array::from_bytes(shape, &[1, 2, 3, 4, 5, 6]).unwrap();
        let array = array.with_sizes(vec![2, 2]).unwrap();
        let json = serde_json::to_string(&array).unwrap();
        assert_eq!(json, r#"{"shape":"s8[2,2]","values":[[1,2],[4,5]]}"#);
    }
}
