//! Functions of the user, which may panic: the run that calls them fails, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use helio_ir::{Error, Result};

/// What a function of the user gives; `who` names it. Errors: `InvalidArgument` with the message of
/// its panic.
pub fn guarded<T>(who: impl FnOnce() -> String, function: impl FnOnce() -> T) -> Result<T> {
    // What the function shares with others is the user's own affair: the engine holds nothing that
    // it could have left half changed.
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let said = message(&*panic).map_or_else(String::new, |message| format!(": {message}"));
        // What it panicked with may panic again when it is dropped.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        Error::invalid(format!("{} panicked{said}", who()))
    })
}

/// The text of a panic, if it has one.
fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic_any(Bomb);
            }
        }
    }

    fn said(function: fn() -> u8) -> Result<u8, String> {
        guarded(|| "f".to_owned(), function).map_err(|error| error.detail().to_owned())
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(said(|| 7), Ok(7));
        assert_eq!(said(|| panic!("as planned")), Err("f panicked: as planned".to_owned()));
        assert_eq!(said(|| panic!("{} planned", "as")), Err("f panicked: as planned".to_owned()));
        assert_eq!(said(|| panic_any(3)), Err("f panicked".to_owned()));
        assert_eq!(said(|| panic_any(Bomb)), Err("f panicked".to_owned()));
    }
}
