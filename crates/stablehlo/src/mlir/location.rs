//! Where an operation comes from in the program that was compiled to MLIR.

use super::Attribute;

/// A location of [`Module::locations`](super::Module::locations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocId(pub u32);

impl LocId {
    /// The unknown location, which every module has first.
    pub const UNKNOWN: LocId = LocId(0);
}

/// A location; those it refers to precede it in its module.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// `loc(unknown)`.
    Unknown,
    /// `loc("file.py":10:8)` or a range `loc("file.py":10:8 to 12:3)`.
    File {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column, as the producer counts.
        column: u32,
        /// Line and column of the end, if it is a range.
        end: Option<(u32, u32)>,
    },
    /// `loc("jit(f)/add"(child))`.
    Name {
        /// The name.
        name: String,
        /// What it names; unknown if nothing is stated.
        child: LocId,
    },
    /// `loc(callsite(callee at caller))`.
    CallSite {
        /// The place in the function that was called.
        callee: LocId,
        /// The place of the call.
        caller: LocId,
    },
    /// `loc(fused<metadata>[…])`.
    Fused {
        /// The locations that were merged.
        locations: Vec<LocId>,
        /// What a compiler wished to add.
        metadata: Option<Box<Attribute>>,
    },
}
