//! The table of functions.

use std::mem::size_of;
use std::sync::OnceLock;

use crate::abi::*;
use crate::error;
use crate::extensions;
use crate::raw::{Layout, entry};

macro_rules! table {
    ($($function:ident: $args:ident,)*) => {
        PJRT_Api {
            struct_size: size_of::<PJRT_Api>(),
            extension_start: extensions::first(),
            pjrt_api_version: PJRT_Api_Version {
                struct_size: PJRT_Api_Version::SIZE,
                extension_start: std::ptr::null_mut(),
                major_version: PJRT_API_MAJOR,
                minor_version: PJRT_API_MINOR,
            },
            // These two cannot fail.
            PJRT_Error_Destroy: error::destroy,
            PJRT_Error_Message: error::read_message,
            $($function: entry::<$args>,)*
        }
    };
}

struct Shared(PJRT_Api);

// SAFETY: functions, and pointers to extensions that live as long as the process; nobody changes it.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

/// The table, which lives as long as the process.
pub fn api() -> &'static PJRT_Api {
    static API: OnceLock<Shared> = OnceLock::new();
    &API.get_or_init(|| Shared(crate::for_each_function!(table))).0
}

/// The table, as plugins give it to whoever loads them.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn GetPjrtApi() -> *const PJRT_Api {
    api()
}
