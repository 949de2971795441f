//! Code that is used in the steps of a program before all of it is there.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{CallError, Jit, JitArg, JitFunction};
use crate::program::{RawKernel, Signature, WholeCode};
use crate::threads::Threads;

/// Functions that are put into one mapping together, once the last has been added.
#[derive(Default)]
pub struct JitBatch {
    code: Vec<Jit>,
    functions: Vec<Arc<LateFunction>>,
}

impl JitBatch {
    /// How many functions have been added.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Whether none has been added.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// Adds code; what comes back can be called after [`JitBatch::install`].
    pub fn add(&mut self, jit: Jit) -> Arc<LateFunction> {
        let signature = Arc::clone(&jit.signature);
        let late = Arc::new(LateFunction { signature, function: OnceLock::new() });
        self.functions.push(late.clone());
        self.code.push(jit);
        late
    }

    /// Drops all but the first `len` functions, which no step uses then.
    pub fn truncate(&mut self, len: usize) {
        self.code.truncate(len);
        self.functions.truncate(len);
    }

    /// Makes all functions callable. Errors: as for [`Jit::install`].
    pub fn install(self) -> io::Result<()> {
        if self.code.is_empty() {
            return Ok(());
        }
        for (late, function) in self.functions.iter().zip(Jit::install(self.code)?) {
            late.function.get_or_init(|| function);
        }
        Ok(())
    }
}

/// A function that is there once its batch is installed.
pub struct LateFunction {
    signature: Arc<Signature>,
    function: OnceLock<JitFunction>,
}

impl LateFunction {
    /// Calls the function for a piece of its range, on the caller's thread.
    ///
    /// # Panics
    /// If its batch is not installed.
    pub fn call(&self, args: &mut [JitArg<'_>], piece: Range<i64>) -> Result<(), CallError> {
        self.function().call_piece(args, piece, Threads::single())
    }

    fn function(&self) -> &JitFunction {
        self.function.get().expect("a batch is installed before its functions run")
    }
}

// SAFETY: the signature is that of the function, which is `JitBatch::install`'s of the same code, and
// never changes.
unsafe impl RawKernel for LateFunction {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    unsafe fn call(
        &self,
        at: &[*mut u8],
        piece: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        // SAFETY: the caller's promise; the function has the same parameters and range.
        unsafe { self.function().call_raw(at, piece, threads) }
    }

    fn whole_code(&self) -> Option<WholeCode> {
        self.function.get()?.whole_code()
    }
}
