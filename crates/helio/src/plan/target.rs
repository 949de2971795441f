//! What programs are compiled for: a back end, or the tile machine where its code cannot be used.

use std::sync::Arc;

use helio_codegen::backend::VECTOR_BYTES;
use helio_codegen::kernel::Kernel;
use helio_codegen::tile::{Portable, Tile};
use helio_codegen::{Backend, Code, CodeOptions, Vouched, lower};
use helio_ir::{Code as ErrorCode, Error};
use helio_runtime::FloatMode;

use crate::interpreted::Reason;
use crate::{CompileOptions, OptLevel, Subnormals};

/// A back end, and what is known of the compilation besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'b> {
    pub(crate) backend: &'b dyn Backend,
    /// Why the back end is the tile machine although another was asked for.
    pub(crate) fallback: Option<Reason>,
    /// Whether the module has not been optimised, so that nothing is in fusions.
    pub(crate) is_level_zero: bool,
    /// Whether code checks that its accesses stay inside of its buffers.
    pub(crate) bounds_checks: bool,
    /// Whether what is changed in place has to be proved right.
    pub(crate) proofs: bool,
    /// What arithmetic does with subnormal numbers.
    pub(crate) subnormals: Subnormals,
}

/// Which vectors kernels are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Vectors {
    /// Their length.
    pub(super) bytes: usize,
    /// Whether they have as many lanes as fit of 64 bits, even if no element is so wide.
    pub(super) wide: bool,
}

impl Vectors {
    pub(super) fn lanes(self) -> usize {
        self.bytes / if self.wide { 8 } else { 4 }
    }
}

/// The code of a kernel.
pub(super) struct KernelCode {
    pub(super) code: Code,
    /// Why it is the tile machine's although another back end was asked for.
    pub(super) fallback: Option<Reason>,
}

impl<'b> Target<'b> {
    /// Errors: `InvalidArgument` if kernels cannot be written for the vectors of the back end.
    pub(crate) fn new(
        backend: &'b dyn Backend,
        fallback: Option<Reason>,
        options: &CompileOptions,
    ) -> Result<Self, Error> {
        let (bytes, short) = (backend.vector_bytes(), backend.short_vector_bytes());
        for (bytes, most) in [(bytes, *VECTOR_BYTES.end()), (short, bytes)] {
            let least = *VECTOR_BYTES.start();
            if !((least..=most).contains(&bytes) && bytes.is_power_of_two()) {
                return Err(Error::invalid(format!(
                    "back end {} has vectors of {bytes} bytes; required is a power of two from {least} to {most}",
                    backend.name(),
                )));
            }
        }
        Ok(Target {
            backend,
            fallback,
            is_level_zero: options.opt_level == OptLevel::None,
            bounds_checks: options.bounds_checks,
            proofs: options.proofs,
            subnormals: options.subnormals,
        })
    }

    /// The same, where no code of the back end can be run.
    pub(crate) fn portable(self, reason: Reason) -> Target<'static> {
        Target { backend: &Portable, fallback: Some(reason), ..self }
    }

    /// The mode of the processor in which code computes.
    pub(super) fn float_mode(&self) -> FloatMode {
        match self.subnormals {
            Subnormals::Flush => FloatMode::FlushToZero,
            Subnormals::Keep => FloatMode::Ieee,
        }
    }

    /// The vectors of kernels that are by themselves.
    pub(super) fn vectors(&self) -> Vectors {
        Vectors { bytes: self.backend.vector_bytes(), wide: false }
    }

    /// What kernels with these vectors are lowered for.
    pub(super) fn lowering(&self, vectors: Vectors) -> lower::Target<'b> {
        lower::Target {
            vector_bytes: vectors.bytes,
            ..lower::Target::of(self.backend, vectors.wide)
        }
    }

    /// The code of a kernel: the back end's, or the tile machine's if it has none. Errors: the kernel
    /// is not well formed, or the back end's own.
    pub(super) fn code(&self, kernel: &Vouched<Kernel>) -> Result<KernelCode, Error> {
        let mut options = CodeOptions::default();
        options.bounds_checks = self.bounds_checks;
        options.flushes_subnormals = self.subnormals == Subnormals::Flush;
        match self.backend.compile(kernel, &options) {
            Ok(code) => Ok(KernelCode { code, fallback: self.fallback }),
            Err(error) if error.code() == ErrorCode::Unimplemented => {
                let code = Code::Function(Arc::new(Tile::new(kernel, &options)?));
                Ok(KernelCode { code, fallback: Some(Reason::NoMachineCode) })
            }
            Err(error) => Err(error.context(format_args!("back end {}", self.backend.name()))),
        }
    }
}
