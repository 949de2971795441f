//! What of a program the compiler leaves to the interpreter, and why.

use std::fmt;

use helio_ir::ops::{Effect, Family};
use helio_ir::{InstrAt, Module, Op};

/// An instruction of a compiled program for which there is no native code.
///
/// Instructions are those of the module after the passes: a fusion stands for all that was fused, and
/// what was expanded goes by the name of its parts.
///
/// ```
/// let text = "ENTRY e {
///     low = f32[] constant(0)  high = f32[] constant(1)
///     ROOT y = f32[2] rng(low, high), distribution=rng_uniform
/// }";
/// let program = helio::compile(helio::parse(text)?, &helio::CompileOptions::default())?;
/// let interpreted = program.interpreted()[0].to_string();
/// assert_eq!(interpreted, "y (rng): it draws from the run's stream of random numbers");
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interpreted {
    /// The instruction's name.
    pub instruction: String,
    /// Its operation, as HLO text names it.
    pub operation: &'static str,
    /// Why it has no native code.
    pub reason: Reason,
}

impl Interpreted {
    pub(crate) fn new(module: &Module, (id, instr): InstrAt, reason: Reason) -> Self {
        let instr = module.computation(id).instr(instr);
        Interpreted { instruction: instr.name.to_string(), operation: instr.op.opcode(), reason }
    }
}

/// `sum.3 (custom-call): calls a function of the host`.
impl fmt::Display for Interpreted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.instruction, self.operation, self.reason)
    }
}

/// Why an instruction, or a whole program, has no native code. There are no other reasons: a
/// defect of the compiler is an error, and so is lack of memory.
///
/// ```
/// use helio::Reason;
/// assert_eq!(Reason::from_name("custom-call"), Some(Reason::CustomCall));
/// assert_eq!(Reason::CustomCall.to_string(), "it calls a function of the host");
/// assert!(!Reason::CustomCall.concerns_program());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// [`Backend::Interpreter`](crate::Backend::Interpreter) was asked for. Concerns the program.
    Requested,
    /// The instruction's result is opaque, or has sizes that are known only at run time and meet, in the
    /// program, an operation on them that is not compiled (`docs/passes.md` lists them). Concerns the
    /// program.
    RunTimeSizes,
    /// Loops and branches are nested deeper than the compiler follows. Concerns the program.
    Nesting,
    /// A constant whose value the text leaves out; such a program cannot be run at all. Concerns the
    /// program.
    ElidedConstant,
    /// What it runs, with all that this runs in turn, is more than is copied to its users:
    /// computations may use each other without end.
    Growth,
    /// Calls a function of the host.
    CustomCall,
    /// Exchanges values with other replicas, or asks which one it is.
    Replicas,
    /// Draws from the run's own stream of random numbers.
    Rng,
    /// No kernel and no recipe covers the operation with these element types and attributes.
    NoKernel,
    /// helio was built without its kernels: without the feature `fft`.
    NotBuilt,
    /// The fused computation cannot be lowered to kernels.
    NotLowered,
    /// Optimisation level 0 makes no kernels of single instructions.
    LevelZero,
    /// The back end has no code for its kernel, as where that would need too much stack; it runs on the
    /// portable tile machine.
    NoMachineCode,
    /// The processor has not the instructions that the back end generates code of; its kernel runs on
    /// the portable tile machine.
    NoInstructions,
    /// The system lets no generated code be run; its kernel runs on the portable tile machine.
    CodeRefused,
}

impl Reason {
    /// All reasons.
    pub const ALL: &[Reason] = &[
        Reason::Requested,
        Reason::RunTimeSizes,
        Reason::Nesting,
        Reason::ElidedConstant,
        Reason::Growth,
        Reason::CustomCall,
        Reason::Replicas,
        Reason::Rng,
        Reason::NoKernel,
        Reason::NotBuilt,
        Reason::NotLowered,
        Reason::LevelZero,
        Reason::NoMachineCode,
        Reason::NoInstructions,
        Reason::CodeRefused,
    ];

    /// A short name that does not change: `run-time-sizes`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Requested => "requested",
            Reason::RunTimeSizes => "run-time-sizes",
            Reason::Nesting => "nesting",
            Reason::ElidedConstant => "elided-constant",
            Reason::Growth => "growth",
            Reason::CustomCall => "custom-call",
            Reason::Replicas => "replicas",
            Reason::Rng => "rng",
            Reason::NoKernel => "no-kernel",
            Reason::NotBuilt => "not-built",
            Reason::NotLowered => "not-lowered",
            Reason::LevelZero => "level-zero",
            Reason::NoMachineCode => "no-machine-code",
            Reason::NoInstructions => "no-instructions",
            Reason::CodeRefused => "code-refused",
        }
    }

    /// The reason of this [name](Reason::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.name() == name)
    }

    /// Whether the whole program is interpreted for this reason, not the instruction alone.
    pub fn concerns_program(self) -> bool {
        matches!(
            self,
            Reason::Requested | Reason::RunTimeSizes | Reason::Nesting | Reason::ElidedConstant
        )
    }

    /// Whether it is about the machine: the same program is compiled on others.
    pub fn concerns_machine(self) -> bool {
        matches!(self, Reason::NoInstructions | Reason::CodeRefused)
    }

    /// Why the interpreter has to perform an instruction that neither generated code nor a tuned
    /// loop covers.
    pub(crate) fn of(op: &Op, level_zero: bool) -> Self {
        match (op.effect(), op.family()) {
            (Effect::Foreign, _) => Reason::CustomCall,
            (Effect::Draw, _) => Reason::Rng,
            (Effect::Exchange, _) | (Effect::None, Family::Collective) => Reason::Replicas,
            (Effect::None, _) => match op {
                Op::Fusion(_) => Reason::NotLowered,
                // These have steps of their own, or are gone, where there is room.
                Op::Call(_) | Op::While(_) | Op::Conditional(_) => Reason::Growth,
                Op::Fft(_) if !cfg!(feature = "fft") => Reason::NotBuilt,
                _ if level_zero => Reason::LevelZero,
                _ => Reason::NoKernel,
            },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Requested => "the interpreter was asked for",
            Reason::RunTimeSizes => "its sizes are not known before the run",
            Reason::Nesting => "computations are nested too deep",
            Reason::ElidedConstant => "the text leaves out its value",
            Reason::Growth => "copying what it runs to all its users takes too much",
            Reason::CustomCall => "it calls a function of the host",
            Reason::Replicas => "it is about other replicas",
            Reason::Rng => "it draws from the run's stream of random numbers",
            Reason::NoKernel => "no kernel covers these element types and attributes",
            Reason::NotBuilt => "helio was built without its kernels",
            Reason::NotLowered => "the fused computation cannot be lowered to kernels",
            Reason::LevelZero => "level 0 makes no kernels of single instructions",
            Reason::NoMachineCode => "the back end has no code for its kernel",
            Reason::NoInstructions => "the processor has no instructions that code is made of",
            Reason::CodeRefused => "the system lets no generated code be run",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn reasons_have_names_of_their_own() {
        for &reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.name()), Some(reason));
        }
        assert_eq!(Reason::from_name("none"), None);
    }
}
