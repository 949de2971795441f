//! HLO in protocol buffers: `xla.HloModuleProto` and `xla.HloProto`, in and out.
//!
//! [`read`] and [`write()`] go through the operations' own attribute text ([`helio_ir::text::attrs`]):
//! a field of the message is an attribute of the text by another name, so what an operation's
//! attributes are and mean is said once, in `helio-ir`. Constants go from bytes to bytes.
//!
//! The messages are written down here ([`messages`]) and need no compiler of protocol buffers.
//!
//! ```
//! let module = helio_ir::text::parse("ENTRY e { ROOT x = f32[2] parameter(0) }").unwrap();
//! let bytes = helio_proto::write(&module).unwrap();
//! assert_eq!(helio_proto::read(&bytes).unwrap().entry().name, "e");
//! ```
#![forbid(unsafe_code)]

mod attributes;
mod convolution;
mod fields;
mod header;
mod literal;
pub mod messages;
mod read;
mod shape;
mod sharding;
mod words;
mod write;

pub use read::{read, read_message};
pub use write::{write, write_message};
