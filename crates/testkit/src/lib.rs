//! What helio's tests share; never part of what users get.
//!
//! - [`cases`]: the case files under `tests/cases`, run on every engine.
//! - [`collectives`]: collective operations on every element type, with directly computed results.
//! - [`engines`]: the list of engines.
//! - [`faults`]: replicas that are dropped, delayed or killed, and a program to try it on.
//! - [`mutants`]: programs changed a little, run on every engine.
//! - [`random`]: random well-typed programs.
//! - [`tally`]: what tests have run, counted and printed.
//! - [`tolerance`]: how results compare.
//! - [`hostile`]: bodies of the fuzz targets, and mutations that feed them in ordinary tests.
#![forbid(unsafe_code)]

pub mod cases;
pub mod collectives;
pub mod engines;
pub mod faults;
pub mod hostile;
pub mod mutants;
pub mod random;
pub mod tally;
pub mod tolerance;

/// The README's Rust code runs as a test of documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
