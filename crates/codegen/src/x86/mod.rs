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

use helio_ir::{Error, Result};

use crate::Vouched;
use crate::kernel::{Buf, Kernel, Param};

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

    /// Whether this processor has all of them.
    pub fn is_here(self) -> bool {
        match Isa::detect() {
            Some(Isa::Avx512) => true,
            Some(Isa::Avx2) => self == Isa::Avx2,
            None => false,
        }
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

/// The machine code of a kernel: a function
/// `extern "sysv64" fn(params: *const *mut u8, begin: i64, end: i64, scratch: *mut u8)` that begins
/// at the first byte. Its constants lie behind it, so that it may be moved as a whole, to any address
/// that is a multiple of [`Code::ALIGN`].
///
/// Code that checks its accesses ([`compile_checked`]) gives two numbers besides, in `rax` and `rdx`: 0
/// if all was well; else the number from 1 on, in [`Code::accesses`], of an access that would have
/// left its buffer, and how many bytes from the buffer's begin it would have been. The call has ended
/// there.
#[derive(Clone, Debug)]
pub struct Code {
    bytes: Vec<u8>,
    accesses: Vec<Access>,
    isa: Isa,
    interface: Interface,
}

/// What code is called with: that of its kernel, which has fields of the same names.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The buffers.
    pub params: Vec<Param>,
    /// Bytes of scratch, at an address divisible by 64.
    pub scratch_bytes: usize,
    /// The range is `0..range`.
    pub range: i64,
    /// Pieces of the range begin at multiples of this.
    pub grain: i64,
    /// Pairs of buffers that may be one.
    pub shared: Vec<(usize, usize)>,
    /// What a number of the range touches of the only buffer that is written, if that is known.
    pub unit_bytes: Option<usize>,
}

/// An access of machine code to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The buffer that it belongs to.
    pub buf: Buf,
    /// The buffer's size.
    pub buffer_bytes: usize,
    /// Bytes that are touched at once: a vector's, or those of one of its lanes.
    pub bytes: usize,
    /// Whether it writes.
    pub write: bool,
}

impl Code {
    /// What the address of the code is a multiple of.
    pub const ALIGN: usize = 64;

    /// The code and its constants.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The accesses that the code checks: all that there are, or none.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The instructions that it may have.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// What it is called with.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}

/// As [`compile`], of a kernel that is vouched for; so is its code then. This relies on the back end
/// alone, whose every instruction is held against the tile machine.
pub fn compile_vouched(kernel: &Vouched<Kernel>, isa: Isa) -> Result<Vouched<Code>> {
    compile(kernel, isa).map(Vouched::new)
}

/// As [`compile_vouched`], of code that checks its accesses ([`compile_checked`]).
pub fn compile_checked_vouched(kernel: &Vouched<Kernel>, isa: Isa) -> Result<Vouched<Code>> {
    compile_checked(kernel, isa).map(Vouched::new)
}

/// Machine code for a kernel with the lanes that `isa` has, or half of them.
///
/// An error means that the kernel is not well formed or, if it says so, that it needs what there is
/// no code for; the tile machine then runs it.
pub fn compile(kernel: &Kernel, isa: Isa) -> Result<Code> {
    code(kernel, isa, false)
}

/// The same, where each access to a buffer or to scratch is preceded by a comparison with its size:
/// for tests, as it takes several times as long. Accesses are checked as they are encoded, so that
/// it covers lowering, selection and the allocation of registers.
pub fn compile_checked(kernel: &Kernel, isa: Isa) -> Result<Code> {
    code(kernel, isa, true)
}

fn code(kernel: &Kernel, isa: Isa, checked: bool) -> Result<Code> {
    kernel.check().map_err(Error::internal)?;
    let mut program = select::select(kernel, isa)?;
    if checked {
        bounds::add(&mut program, kernel);
    }
    let places = alloc::allocate(&mut program, isa);
    let interface = Interface {
        params: kernel.params.clone(),
        scratch_bytes: kernel.scratch_bytes,
        range: kernel.range,
        grain: kernel.grain,
        shared: kernel.shared.clone(),
        unit_bytes: kernel.unit_bytes,
    };
    let (bytes, accesses) = emit::emit(&program, &places, isa)?;
    Ok(Code { bytes, accesses, isa, interface })
}

#[cfg(test)]
mod tests;
