//! Machine code of kernels, whatever the processor.

use crate::kernel::{Buf, Kernel, Param};
use crate::x86::Isa;

/// The machine code of a kernel: a function
/// `extern "sysv64" fn(params: *const *mut u8, begin: i64, end: i64, scratch: *mut u8)` that begins
/// at the first byte. Its constants lie behind it, so that it may be moved as a whole, to any address
/// that is a multiple of [`MachineCode::ALIGN`].
///
/// Code that checks its accesses gives two numbers besides, in `rax` and `rdx`: 0 if all was well; else
/// the number from 1 on, in [`MachineCode::accesses`], of an access that would have left its buffer, and
/// how many bytes from the buffer's begin it would have been. The call has ended there.
#[derive(Clone, Debug)]
pub struct MachineCode {
    pub(crate) bytes: Vec<u8>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) isa: Isa,
    pub(crate) interface: Interface,
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

impl Interface {
    /// What code of this kernel is called with.
    pub(crate) fn of(kernel: &Kernel) -> Self {
        Interface {
            params: kernel.params.clone(),
            scratch_bytes: kernel.scratch_bytes,
            range: kernel.range,
            grain: kernel.grain,
            shared: kernel.shared.clone(),
            unit_bytes: kernel.unit_bytes,
        }
    }
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

impl MachineCode {
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

    /// Whether the processor of this process has all instructions that the code may have.
    pub fn runs_here(&self) -> bool {
        self.isa.is_here()
    }

    /// The name of the instructions that the code may have, as back ends are named.
    pub fn instructions(&self) -> &'static str {
        self.isa.name()
    }

    /// What it is called with.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}
