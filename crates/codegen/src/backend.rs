//! Back ends: what makes kernels run on a kind of processor.
//!
//! Everything above asks a [`Backend`] and nothing else about the processor: passes its
//! [`Capabilities`], lowering its vectors, the planner what it gives for a kernel. The portable tile
//! machine ([`Portable`]) runs every kernel, so a back end may leave to it what
//! it has no code for. `docs/design/back-ends.md` says how to add one.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use helio_ir::{Capabilities, Result};

use crate::Vouched;
use crate::kernel::Kernel;
use crate::machine::MachineCode;
use crate::tile::Portable;
use crate::x86::Isa;

pub use crate::tile::FunctionArg;

/// A code generator for one kind of processor.
///
/// Its [`Capabilities`] are what programs are fused and lowered by. They may be fewer than there are
/// [recipes](crate::elementwise::Recipes) for, never more: what has no recipe is in no kernel. What
/// they leave out is computed by the tuned loops of the runtime, or interpreted.
///
/// The answers must stay the same for as long as the value lives.
pub trait Backend: Capabilities + fmt::Debug + Send + Sync {
    /// A short name, unlike those of other back ends: `x86-64-v4`.
    fn name(&self) -> &str;

    /// Whether this process can run its code. If not, programs are compiled for the tile machine.
    fn is_available(&self) -> bool {
        true
    }

    /// Bytes of the vectors in the kernels that it gets, a power of two in [`VECTOR_BYTES`]: a
    /// kernel has as many lanes as fit of 32 bits, or of 64 bits if it has a value of these.
    fn vector_bytes(&self) -> usize;

    /// Bytes of the vectors in the kernels that it gets for loops which compute a few numbers in each
    /// iteration: at most [`Backend::vector_bytes`].
    fn short_vector_bytes(&self) -> usize {
        self.vector_bytes()
    }

    /// Whether one buffer may be both an operand and a result of its code, for the pairs that
    /// [`Kernel::shared`] names. The plan then changes arrays in place where it can.
    fn shares_buffers(&self) -> bool;

    /// Whether the kernels of a short loop are to be put together into one kernel that runs all
    /// iterations: where a call costs as much as such an iteration.
    fn joins_loops(&self) -> bool;

    /// Code for a kernel.
    ///
    /// Errors: `Unimplemented` if there is none for this kernel, which then runs on the tile machine;
    /// any other ends the compilation of the program.
    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> Result<Code>;
}

/// The widths of vectors, in bytes, that kernels can be written for.
pub const VECTOR_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// What is asked of code besides computing its kernel.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CodeOptions {
    /// Whether code compares each access to memory with the size of its buffer, and ends with an error
    /// where one would leave it. Code that does so anyway need not ask.
    pub bounds_checks: bool,
    /// Whether arithmetic takes subnormal numbers for zeros of their sign, and gives such zeros for them.
    /// Whoever calls the code sees to the mode of the processor, where it has one for this: code
    /// of a back end need do nothing for it, unless its results depend on more than that mode.
    pub flushes_subnormals: bool,
}

/// What a back end makes of a kernel.
pub enum Code {
    /// Machine code of this process's processor, which the runtime maps into memory and calls.
    Machine(Vouched<MachineCode>),
    /// Anything else, behind a function in safe Rust.
    Function(Arc<dyn Function>),
}

/// A kernel that can be called without trust: whatever it does, it sees no memory but its arguments.
pub trait Function: Send + Sync {
    /// Runs a piece of the kernel's range. `args` are its buffers in order, none of them smaller than
    /// the kernel says; the piece begins at a multiple of the kernel's grain. Pieces are run one after
    /// the other.
    fn run(&self, args: &mut [FunctionArg<'_>], piece: Range<i64>) -> Result<()>;
}

/// All back ends of this crate, the fastest first. The last one is the tile machine.
pub fn all() -> [Arc<dyn Backend>; 3] {
    [Arc::new(Isa::Avx512), Arc::new(Isa::Avx2), Arc::new(Portable)]
}

/// The fastest back end that makes machine code for the processor of this process; `None` if there is
/// none.
pub fn host() -> Option<Arc<dyn Backend>> {
    Isa::detect().map(|isa| Arc::new(isa) as Arc<dyn Backend>)
}
