//! The portable tile machine: runs kernels in safe Rust.
//!
//! It says what every instruction means, checks the encoder, and serves processors that have none.
//! A kernel is prepared once ([`Tile::new`]): loops become jumps, and every value gets a slot of its
//! own, so that running it is a walk over a flat list. Each step handles a whole vector; with many
//! lanes the cost of the walk vanishes. Every access is checked against its buffer.

mod lanes;
mod memory;
mod prepare;
mod state;

use std::ops::Range;
use std::sync::Arc;

use helio_ir::{Capabilities, ElementType, Error, Op, Result};

use crate::kernel::{IndexOp, Kernel};
use crate::{Backend, Code, CodeOptions, Function, Vouched, elementwise};
pub use memory::FunctionArg;
use memory::TileMemory;
use prepare::Step;
use state::State;

/// A kernel that is ready to run.
pub struct Tile {
    kernel: Kernel,
    steps: Vec<Step>,
    /// Whether arithmetic takes subnormal numbers for zeros, and gives zeros for them.
    flushes_subnormals: bool,
}

impl Tile {
    /// Prepares a kernel. The error says why it is not well formed.
    ///
    /// Of the options it looks at [`CodeOptions::flushes_subnormals`] alone: it checks accesses anyway.
    pub fn new(kernel: &Kernel, options: &CodeOptions) -> Result<Tile> {
        kernel.check().map_err(Error::internal)?;
        let (steps, types) = prepare::flatten(kernel);
        let kernel = Kernel { types, body: Default::default(), ..kernel.clone() };
        Ok(Tile { kernel, steps, flushes_subnormals: options.flushes_subnormals })
    }

    /// Runs a piece of the range over the caller's buffers.
    ///
    /// An error means that the kernel or the call is wrong: a buffer is too small or may not be
    /// written, or an access lies outside of it. What was written by then stays written.
    pub fn run(&self, args: &mut [FunctionArg<'_>], begin: i64, end: i64) -> Result<()> {
        let mut memory = TileMemory::new(&self.kernel, args)?;
        let mut state = State::new(&self.kernel, self.flushes_subnormals);
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match step {
                Step::Inst(inst) => state.run(inst, &mut memory, begin..end)?,
                Step::Move(from, to) => state.copy(*from, *to),
                Step::Enter { var, lo, hi, exit } => {
                    state.copy(*lo, *var);
                    if state.index(*var) >= state.index(*hi) {
                        at = *exit;
                    }
                }
                Step::Next { var, hi, step, back } => {
                    // A variable that leaves the range of i64 is past any bound.
                    if let Some(next) = state.index(*var).checked_add(*step)
                        && next < state.index(*hi)
                    {
                        state.set_index(*var, next);
                        at = *back;
                    }
                }
                Step::Unless { go, exit } => {
                    if !state.first(*go) {
                        at = *exit;
                    }
                }
                Step::Jump(to) => at = *to,
            }
        }
        Ok(())
    }
}

impl Function for Tile {
    fn run(&self, args: &mut [FunctionArg<'_>], piece: Range<i64>) -> Result<()> {
        Tile::run(self, args, piece.start, piece.end)
    }
}

/// The tile machine as a back end: it runs every kernel, on every processor, and checks each access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Portable;

impl Capabilities for Portable {
    fn holds(&self, ty: ElementType) -> bool {
        elementwise::holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        elementwise::supports(op, operands, result)
    }
}

impl Backend for Portable {
    fn name(&self) -> &str {
        "portable"
    }

    /// Any would do; wide ones cost the least.
    fn vector_bytes(&self) -> usize {
        64
    }

    fn shares_buffers(&self) -> bool {
        false
    }

    fn joins_loops(&self) -> bool {
        false
    }

    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> Result<Code> {
        Ok(Code::Function(Arc::new(Tile::new(kernel, options)?)))
    }
}

/// Prepares a kernel and runs it once, with default options; see [`Tile`].
pub fn run(kernel: &Kernel, args: &mut [FunctionArg<'_>], begin: i64, end: i64) -> Result<()> {
    Tile::new(kernel, &CodeOptions::default())?.run(args, begin, end)
}

impl IndexOp {
    /// The operation on numbers.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            IndexOp::Add => a.wrapping_add(b),
            IndexOp::Sub => a.wrapping_sub(b),
            IndexOp::Mul => a.wrapping_mul(b),
            IndexOp::And => a & b,
            IndexOp::Min => a.min(b),
            IndexOp::Max => a.max(b),
            IndexOp::Div => a.checked_div(b).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
