//! Extensions of the API: lists of functions besides the table, each with its number.

pub(crate) mod layouts;
mod shardings;

use crate::abi::PJRT_Extension_Base;

pub(crate) use shardings::Sharded;

/// The first extension of the list.
pub(crate) fn first() -> *mut PJRT_Extension_Base {
    // Nobody writes to what is lent as a constant, though C's type says that it may.
    std::ptr::from_ref(layouts::extension()).cast_mut().cast()
}
