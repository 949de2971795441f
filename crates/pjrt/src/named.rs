//! Named values: options that the caller gives, attributes that it asks for.
#![allow(non_upper_case_globals)] // In patterns, C's names of constants.

use std::mem::size_of;

use helio::{Error, Result};

use crate::abi::{
    PJRT_NamedValue, PJRT_NamedValue_Value, PJRT_NamedValue_kFloat, PJRT_NamedValue_kInt64,
    PJRT_NamedValue_kInt64List, PJRT_NamedValue_kString,
};
use crate::raw::{In, Out};

/// A list of named values that its owner keeps.
#[derive(Default)]
pub(crate) struct NamedValues {
    values: Vec<PJRT_NamedValue>,
}

// SAFETY: the values are numbers and pointers to names and lists that live as long as the process.
unsafe impl Send for NamedValues {}
// SAFETY: as for `Send`; nobody changes them.
unsafe impl Sync for NamedValues {}

impl NamedValues {
    /// With a list of integers.
    pub(crate) fn integers(mut self, name: &'static str, values: &'static [i64]) -> Self {
        let value = PJRT_NamedValue_Value { int64_array_value: values.as_ptr().cast_mut().cast() };
        self.push(name, PJRT_NamedValue_kInt64List, value, values.len());
        self
    }

    /// With a number.
    pub(crate) fn float(mut self, name: &'static str, value: f32) -> Self {
        let value = PJRT_NamedValue_Value { float_value: value };
        self.push(name, PJRT_NamedValue_kFloat, value, 1);
        self
    }

    fn push(&mut self, name: &'static str, ty: u32, value: PJRT_NamedValue_Value, size: usize) {
        self.values.push(PJRT_NamedValue {
            struct_size: size_of::<PJRT_NamedValue>(),
            extension_start: std::ptr::null_mut(),
            name: name.as_ptr().cast_mut().cast(),
            name_size: name.len(),
            type_: ty,
            value,
            value_size: size,
        });
    }

    /// The list and its length, as long as this lives.
    pub(crate) fn lend(&self) -> (Out<PJRT_NamedValue>, usize) {
        (Out::list(&self.values), self.values.len())
    }
}

/// An option that the caller gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    Text(String),
    Other,
}

/// Options by name. Errors: null pointers, names that are not UTF-8.
///
/// # Safety
/// There are `count` options unless the pointer is null.
pub(crate) unsafe fn options(
    options: In<PJRT_NamedValue>,
    count: usize,
) -> Result<Vec<(String, Value)>> {
    // SAFETY: the promise of the caller.
    let options = unsafe { options.slice(count, "options")? };
    options.iter().map(option).collect()
}

fn option(option: &PJRT_NamedValue) -> Result<(String, Value)> {
    // SAFETY: the header says that the name has this size, and the options live during the call.
    let name = unsafe { In::<u8>::new(option.name.cast()) };
    // SAFETY: as for the name itself.
    let name = unsafe { name.text(option.name_size, "an option's name")? }.to_owned();
    let value = match option.type_ {
        // SAFETY: the type says which member of the union is there.
        PJRT_NamedValue_kInt64 => Value::Integer(unsafe { option.value.int64_value }),
        PJRT_NamedValue_kString => {
            // SAFETY: the type says that it is a string, and the header that it has this size.
            let text = unsafe { In::<u8>::new(option.value.string_value.cast()) };
            // SAFETY: as for the string itself.
            Value::Text(unsafe { text.text(option.value_size, "an option's text")? }.to_owned())
        }
        _ => Value::Other,
    };
    Ok((name, value))
}

/// The number in an option's value or a text. Errors: `InvalidArgument`, naming the option.
pub(crate) fn number(name: &str, value: &Value) -> Result<usize> {
    let number = match value {
        Value::Integer(value) => usize::try_from(*value).ok(),
        Value::Text(text) => text.trim().parse().ok(),
        Value::Other => None,
    };
    number.ok_or_else(|| Error::invalid(format!("{name} must be a number, found {value:?}")))
}
