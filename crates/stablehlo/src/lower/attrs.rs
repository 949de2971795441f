//! Attributes of an operation, taken by name; what nobody takes is an error.

use std::cell::RefCell;

use helio_ir::{Error, Result};

use crate::mlir::{Attribute, Dense, Field, Type};

/// Attributes by name, and which of them have been asked for.
pub(crate) struct Attrs<'m> {
    fields: &'m [Field],
    used: RefCell<Vec<&'m str>>,
}

impl<'m> Attrs<'m> {
    pub fn new(fields: &'m [Field]) -> Self {
        Attrs { fields, used: RefCell::default() }
    }

    /// The attribute of this name, if it is there.
    pub fn get(&self, name: &str) -> Option<&'m Attribute> {
        let (name, attribute) = self.fields.iter().find(|(n, _)| n == name)?;
        self.used.borrow_mut().push(name);
        Some(attribute)
    }

    /// Errors: an attribute that is neither known nor one of another dialect (`mhlo.…`, `jax.…`).
    pub fn finish(&self) -> Result<()> {
        let used = self.used.borrow();
        let kept = ["operandSegmentSizes", "operand_segment_sizes", "result_accuracy"];
        let unknown = self
            .fields
            .iter()
            .map(|(name, _)| name.as_str())
            .find(|name| !used.contains(name) && !name.contains('.') && !kept.contains(name));
        match unknown {
            None => Ok(()),
            Some(name) => {
                Err(Error::unimplemented(format!("attribute `{name}` is not known here")))
            }
        }
    }

    fn needed<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::invalid(format!("attribute `{name}` is needed")))
    }

    pub fn integers(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.get(name).map(|attribute| integers(name, attribute)).transpose()
    }

    /// Numbers that are not negative; empty if there is no such attribute.
    pub fn sizes(&self, name: &str) -> Result<Vec<usize>> {
        to_sizes(name, self.integers(name)?.unwrap_or_default())
    }

    /// The same, for an attribute that must be there.
    pub fn needed_sizes(&self, name: &str) -> Result<Vec<usize>> {
        to_sizes(name, self.needed(name, self.integers(name)?)?)
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Integer { value, .. }) => int64(name, *value).map(Some),
            Some(_) => Err(wrong(name, "an integer")),
        }
    }

    /// A number that is not negative.
    pub fn size(&self, name: &str) -> Result<usize> {
        let value = self.needed(name, self.integer(name)?)?;
        usize::try_from(value).map_err(|_| wrong(name, "a number that is not negative"))
    }

    /// The same, if it is there.
    pub fn size_or(&self, name: &str, default: usize) -> Result<usize> {
        if self.get(name).is_some() { self.size(name) } else { Ok(default) }
    }

    /// `true`, or there without a value; absent is false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Attribute::Unit) => Ok(true),
            Some(Attribute::Bool(value)) => Ok(*value),
            Some(_) => Err(wrong(name, "`true` or `false`")),
        }
    }

    pub fn float(&self, name: &str) -> Result<Option<f64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Float { value, .. }) => Ok(Some(*value)),
            Some(Attribute::Integer { value, .. }) => Ok(Some(*value as f64)),
            Some(_) => Err(wrong(name, "a number")),
        }
    }

    pub fn string(&self, name: &str) -> Result<Option<&'m str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::String(value)) => Ok(Some(value)),
            Some(_) => Err(wrong(name, "a string")),
        }
    }

    /// A word of an enumeration.
    pub fn word(&self, name: &str) -> Result<Option<&'m str>> {
        self.get(name).map(|attribute| word(name, attribute)).transpose()
    }

    pub fn needed_word(&self, name: &str) -> Result<&'m str> {
        self.needed(name, self.word(name)?)
    }

    /// The words of a list; empty if there is none.
    pub fn words(&self, name: &str) -> Result<Vec<&'m str>> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Attribute::Array(list)) => list.iter().map(|each| word(name, each)).collect(),
            Some(_) => Err(wrong(name, "a list of words")),
        }
    }

    /// The name of a symbol.
    pub fn symbol(&self, name: &str) -> Result<&'m str> {
        match self.needed(name, self.get(name))? {
            Attribute::Symbol(path) if path.len() == 1 => Ok(&path[0]),
            _ => Err(wrong(name, "a symbol")),
        }
    }

    /// The fields of a structured attribute, if it is there.
    pub fn fields(&self, name: &str) -> Result<Option<Attrs<'m>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Struct { fields, .. }) => Ok(Some(Attrs::new(fields))),
            Some(_) => Err(wrong(name, "a structured attribute")),
        }
    }

    pub fn needed_fields(&self, name: &str) -> Result<Attrs<'m>> {
        self.needed(name, self.fields(name)?)
    }

    pub fn flags(&self, name: &str) -> Result<Option<Vec<bool>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Bools(values)) => Ok(Some(values.clone())),
            Some(Attribute::Dense(dense)) => {
                Ok(Some(elements(name, dense)?.into_iter().map(|v| v != 0).collect()))
            }
            Some(_) => Err(wrong(name, "a list of truth values")),
        }
    }

    /// The elements of a `dense<…>` of integers and the sizes of its tensor.
    pub fn matrix(&self, name: &str) -> Result<Option<(Vec<usize>, Vec<i64>)>> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Dense(dense)) => Ok(Some((dims_of(&dense.ty), elements(name, dense)?))),
            Some(_) => Err(wrong(name, "`dense<…>`")),
        }
    }
}

fn wrong(name: &str, needed: &str) -> Error {
    Error::invalid(format!("attribute `{name}` must be {needed}"))
}

/// The numbers of an attribute that is not one of an operation itself.
pub(super) fn size_list(name: &str, attribute: &Attribute) -> Result<Vec<usize>> {
    to_sizes(name, integers(name, attribute)?)
}

fn to_sizes(name: &str, values: Vec<i64>) -> Result<Vec<usize>> {
    let sizes = values.into_iter().map(usize::try_from).collect::<std::result::Result<_, _>>();
    sizes.map_err(|_| wrong(name, "numbers that are not negative"))
}

fn word<'m>(name: &str, attribute: &'m Attribute) -> Result<&'m str> {
    match attribute {
        Attribute::Word { word, .. } => Ok(word),
        _ => Err(wrong(name, "a word")),
    }
}

/// An integer in 64 bits. Those of the upper half of unsigned ones stand for negative numbers, which text
/// may have in hexadecimal. Errors: it has more bits.
fn int64(name: &str, value: i128) -> Result<i64> {
    i64::try_from(value)
        .or_else(|_| u64::try_from(value).map(|bits| bits as i64))
        .map_err(|_| wrong(name, "an integer of 64 bits"))
}

fn integers(name: &str, attribute: &Attribute) -> Result<Vec<i64>> {
    match attribute {
        Attribute::Integers(values) => Ok(values.clone()),
        Attribute::Dense(dense) => elements(name, dense),
        Attribute::Array(list) => list
            .iter()
            .map(|each| match each {
                Attribute::Integer { value, .. } => int64(name, *value),
                _ => Err(wrong(name, "a list of integers")),
            })
            .collect(),
        _ => Err(wrong(name, "a list of integers")),
    }
}

fn dims_of(ty: &Type) -> Vec<usize> {
    let dims = ty.as_tensor().into_iter().flat_map(|tensor| &tensor.dims);
    dims.map(|dim| dim.unwrap_or(0) as usize).collect()
}

/// The most elements that a tensor of one repeated integer is taken for: no attribute has as many, and
/// a few characters of text may ask for any number.
const MAX_SPLAT: usize = 1 << 20;

/// The elements of a tensor of integers.
fn elements(name: &str, dense: &Dense) -> Result<Vec<i64>> {
    let width = match dense.ty.as_tensor().map(|tensor| &*tensor.element) {
        Some(Type::Integer { width, .. }) => (*width as usize).div_ceil(8),
        Some(Type::Index) => 8,
        _ => return Err(wrong(name, "a tensor of integers")),
    };
    let values: Vec<i64> = dense
        .bytes
        .chunks_exact(width.max(1))
        .map(|chunk| {
            let is_negative = width > 1 && chunk.last().is_some_and(|byte| byte & 0x80 != 0);
            let mut word = if is_negative { [0xff; 8] } else { [0; 8] };
            word[..chunk.len().min(8)].copy_from_slice(&chunk[..chunk.len().min(8)]);
            i64::from_le_bytes(word)
        })
        .collect();
    let dims = dims_of(&dense.ty);
    let count = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim));
    let count = count.filter(|&count| dense.is_splat && count <= MAX_SPLAT);
    match (values.first(), count) {
        (Some(&value), Some(count)) => Ok(vec![value; count]),
        _ => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_64_bits() {
        let fields =
            |value| [("a".to_owned(), Attribute::Integer { value, ty: Type::signless(64) })];
        let integer = |value| Attrs::new(&fields(value)).integer("a");
        assert_eq!(integer(-1).unwrap(), Some(-1));
        assert_eq!(integer(0xffff_ffff_ffff_ffff).unwrap(), Some(-1));
        for value in [1 << 64, i128::from(i64::MIN) - 1] {
            let error = integer(value).unwrap_err();
            assert!(error.detail().contains("an integer of 64 bits"), "{error}");
            let list = [("a".to_owned(), Attribute::Array(fields(value).map(|f| f.1).to_vec()))];
            assert!(Attrs::new(&list).integers("a").is_err());
        }
    }
}
