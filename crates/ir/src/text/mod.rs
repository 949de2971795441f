//! HLO text, in and out.
//!
//! [`parse`] reads what XLA's own parser reads and [`print()`] writes what it accepts; parsing what was
//! printed gives the same module. [`parse_shape`], [`parse_literal`] and [`print_literal`] do the
//! same for the parts.
//!
//! Text may be hostile: nesting is limited to [`MAX_DEPTH`], time and memory are proportional to
//! the text (to the stated limits where text can name more than it spells out), and every failure
//! says where it stands.
//!
//! ```
//! let module = helio_ir::text::parse(
//!     "ENTRY double { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }",
//! )
//! .unwrap();
//! assert_eq!(module.entry().name, "double");
//! let printed = helio_ir::text::print(&module);
//! assert_eq!(helio_ir::text::print(&helio_ir::text::parse(&printed).unwrap()), printed);
//! ```

pub mod attrs;

mod async_sugar;
mod computation;
mod extra;
mod frames;
mod header;
mod instruction;
mod lexer;
mod literal;
mod names;
mod number;
mod parser;
mod printer;
mod scan;
mod shape;
#[cfg(test)]
mod tests;

pub use extra::{parse_metadata, print_metadata};
pub(crate) use lexer::is_name;
pub use literal::{MAX_ELIDED_BYTES, parse_literal, print_literal};
pub use parser::{MAX_ERRORS, MAX_INFERRED_LEAVES, parse, parse_and_verify};
pub use printer::{PrintOptions, print, print_with};
pub use shape::parse_shape;

/// The most brackets, tuples, computations or operations within each other in text.
pub const MAX_DEPTH: usize = 200;
