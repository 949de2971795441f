//! The x86-64 back end: kernels as machine code.
//!
//! Three steps: `select` writes machine instructions for the kernel's, `alloc` gives their
//! values registers, `emit` writes the bytes. The encoder is our own because VEX and EVEX forms of
//! an instruction differ in nothing but their prefix, so that one table row serves three vector
//! lengths and two instruction sets. Everything it writes is run against the tile machine in the
//! tests of the runtime, which may call it.

mod alloc;
mod asm;
mod bounds;
mod emit;
mod mir;
mod ops;
mod select;

use helio_ir::{Capabilities, ElementType, Error, Op, Result};

use crate::kernel::{Inst, Kernel, Ty};
use crate::machine::{Interface, MachineCode};
use crate::{Backend, Code, CodeOptions, Vouched, elementwise};

/// The instructions that code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 with F, CD, DQ, BW and VL, and BMI2.
    Avx512,
    /// AVX2 with FMA, F16C and BMI2.
    Avx2,
}

impl Isa {
    /// The best that this processor has, if any.
    pub fn detect() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi2");
            let avx512 = has!("avx512f")
                && has!("avx512cd")
                && has!("avx512dq")
                && has!("avx512bw")
                && has!("avx512vl");
            match (avx2, avx512) {
                (true, true) => Some(Isa::Avx512),
                (true, false) => Some(Isa::Avx2),
                (false, _) => None,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// The name of the level of the x86-64 architecture that has all of them.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "x86-64-v4",
            Isa::Avx2 => "x86-64-v3",
        }
    }

    /// All that this processor has, the best first.
    pub fn all_here() -> &'static [Isa] {
        match Isa::detect() {
            Some(Isa::Avx512) => &[Isa::Avx512, Isa::Avx2],
            Some(Isa::Avx2) => &[Isa::Avx2],
            None => &[],
        }
    }

    /// Whether this processor has all of them.
    pub fn is_here(self) -> bool {
        Isa::all_here().contains(&self)
    }

    /// Whether this processor has an instruction that counts the bits of lanes, which came after the others.
    fn counts_bits(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            self == Isa::Avx512 && std::arch::is_x86_feature_detected!("avx512vpopcntdq")
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Lanes of a kernel; `wide` if any of its vectors has 64-bit lanes.
    pub fn lanes(self, wide: bool) -> usize {
        match (self, wide) {
            (Isa::Avx512, false) => 16,
            (Isa::Avx512, true) | (Isa::Avx2, false) => 8,
            (Isa::Avx2, true) => 4,
        }
    }
}

impl Isa {
    /// A kernel with loops that compute few numbers at a time, and the set of instructions it had better be
    /// compiled for: masks of AVX-512 take four to five cycles from a comparison to a choice, AVX2's vectors in
    /// their place two, and the next iteration waits for that.
    fn for_few(self, kernel: &Kernel) -> Option<(Kernel, Isa)> {
        let has_loop = |inst: &Inst| matches!(inst, Inst::Loop { .. } | Inst::While { .. });
        let has_loop = kernel.body.insts.iter().any(has_loop);
        if self != Isa::Avx512 || !has_loop || kernel.body.has_tables() {
            return None;
        }
        let is_wide = |ty: &Ty| matches!(ty, Ty::Vector(lane) if lane.bytes() == 8);
        let lanes = Isa::Avx2.lanes(kernel.types.iter().any(is_wide));
        // One that was made for vectors as short as AVX2's, or whose lanes are all the same.
        (kernel.lanes == lanes || kernel.body.is_of_numbers())
            .then(|| (Kernel { lanes, ..kernel.clone() }, Isa::Avx2))
    }
}

impl Capabilities for Isa {
    fn holds(&self, ty: ElementType) -> bool {
        elementwise::holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        elementwise::supports(op, operands, result)
    }
}

impl Backend for Isa {
    fn name(&self) -> &str {
        Isa::name(*self)
    }

    fn is_available(&self) -> bool {
        self.is_here()
    }

    fn vector_bytes(&self) -> usize {
        4 * self.lanes(false)
    }

    fn short_vector_bytes(&self) -> usize {
        4 * Isa::Avx2.lanes(false)
    }

    fn shares_buffers(&self) -> bool {
        true
    }

    fn joins_loops(&self) -> bool {
        true
    }

    fn compile(&self, kernel: &Vouched<Kernel>, options: &CodeOptions) -> Result<Code> {
        // What is vouched for has the same accesses with as many lanes, or with fewer if only the first is stored.
        let short = self.for_few(kernel).map(|(kernel, isa)| (Vouched::new(kernel), isa));
        let (kernel, isa) = match &short {
            Some((kernel, isa)) => (kernel, *isa),
            None => (kernel, *self),
        };
        let code = match options.bounds_checks {
            true => compile_checked_vouched(kernel, isa),
            false => compile_vouched(kernel, isa),
        };
        code.map(Code::Machine)
    }
}

/// As [`compile`], of a kernel that is vouched for; so is its code then. This relies on the back end
/// alone, whose every instruction is held against the tile machine.
pub fn compile_vouched(kernel: &Vouched<Kernel>, isa: Isa) -> Result<Vouched<MachineCode>> {
    compile(kernel, isa).map(Vouched::new)
}

/// As [`compile_vouched`], of code that checks its accesses ([`compile_checked`]).
pub fn compile_checked_vouched(kernel: &Vouched<Kernel>, isa: Isa) -> Result<Vouched<MachineCode>> {
    compile_checked(kernel, isa).map(Vouched::new)
}

/// Machine code for a kernel with the lanes that `isa` has, or half of them.
///
/// An error means that the kernel is not well formed or, if it says so, that it needs what there is
/// no code for; the tile machine then runs it.
pub fn compile(kernel: &Kernel, isa: Isa) -> Result<MachineCode> {
    code(kernel, isa, false)
}

/// The same, where each access to a buffer or to scratch is preceded by a comparison with its size:
/// for tests, as it takes several times as long. Accesses are checked as they are encoded, so that
/// it covers lowering, selection and the allocation of registers.
pub fn compile_checked(kernel: &Kernel, isa: Isa) -> Result<MachineCode> {
    code(kernel, isa, true)
}

fn code(kernel: &Kernel, isa: Isa, checked: bool) -> Result<MachineCode> {
    kernel.check().map_err(Error::internal)?;
    let mut virtual_code = select::select(kernel, isa, checked)?;
    if checked {
        bounds::add(&mut virtual_code, kernel);
    }
    let allocations = alloc::allocate(&mut virtual_code, isa);
    let (bytes, accesses) = emit::emit(&virtual_code, &allocations, isa)?;
    Ok(MachineCode { bytes, accesses, isa, interface: Interface::of(kernel) })
}

#[cfg(test)]
mod tests;
