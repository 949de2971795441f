//! Passes: HLO in, HLO out that computes the same with less work or in a form that is easier to
//! compile.
//!
//! - [`pass`]: the table of all passes, and the pipeline for each level of optimisation.
//! - [`rebuild`](mod@rebuild) and [`draft`]: how a pass makes its new module and computations.
//! - [`recognize`]: what comparators and reducers compute.
//! - [`effects`]: what may not be dropped, merged or moved.
//! - [`growth`](mod@growth) and [`watch`](mod@watch): how much a program may grow, and what its
//!   compilation may take.
//!
//! Invariants: a pass takes a module that verifies and gives one that verifies, with the same
//! parameters and result (but for `carry-sizes`, of which see [`bounds`]); it takes time in proportion to the number of instructions; it changes
//! results only as far as its documentation says. No pass knows for which processor it works: what
//! kernels can compute it asks of [`PassCx::capabilities`]. Rules never look at a shape with sizes that are
//! known only at run time.
//!
//! ```
//! use helio_eval::Limits;
//! use helio_passes::watch::Watch;
//! use helio_passes::{OptLevel, PassCx, optimize};
//! let text = "
//! square { x = f32[2] parameter(0)  ROOT y = f32[2] multiply(x, x) }
//! ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] call(x), to_apply=square }";
//! let module = helio_ir::verify(helio_ir::text::parse(text)?)?;
//! let watch = Watch::new(&module, &Limits::default());
//! let cx = PassCx::new(&watch, &helio_codegen::elementwise::Recipes);
//! let module = optimize(module, OptLevel::default(), &cx).map_err(|e| vec![e])?;
//! assert_eq!(module.entry().instrs().len(), 2);
//! # Ok::<(), helio_ir::Errors>(())
//! ```
#![forbid(unsafe_code)]

pub mod bounds;
pub mod draft;
pub mod effects;
pub mod growth;
pub mod pass;
pub mod rebuild;
pub mod recognize;
pub mod watch;

mod branches;
mod canonicalize;
mod channels;
mod components;
mod constants;
mod dce;
mod expand;
mod fuse;
mod inline;
mod loops;
mod products;
mod selection;
mod sets;
mod simplify;
#[cfg(test)]
mod testing;
mod transposes;
mod turn_operands;
mod unroll;
mod windows;

pub use constants::{ConstantEvaluator, Interpreted};
pub use pass::{
    OptLevel, PARTS, PIPELINE, Pass, PassCx, PassObserver, find_pass, optimize, run_passes,
};
