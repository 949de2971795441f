//! Code that is used in the steps of a program before all of it is there.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Jit, JitFunction};
use crate::program::{RawKernel, RawParam};
use crate::threads::Threads;

/// Functions that are put into one mapping together, once the last has been added.
#[derive(Default)]
pub struct JitBatch {
    code: Vec<Jit>,
    functions: Vec<Arc<Late>>,
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
    pub fn add(&mut self, jit: Jit) -> Arc<dyn RawKernel> {
        let (name, params) = (jit.name.clone(), jit.params.clone());
        let (range, grain) = (jit.range, jit.grain.max(1));
        let late = Arc::new(Late { name, params, range, grain, function: OnceLock::new() });
        self.functions.push(late.clone());
        self.code.push(jit);
        late
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
struct Late {
    name: String,
    params: Vec<RawParam>,
    range: i64,
    grain: i64,
    function: OnceLock<JitFunction>,
}

impl RawKernel for Late {
    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> &[RawParam] {
        &self.params
    }

    fn range(&self) -> i64 {
        self.range
    }

    fn grain(&self) -> i64 {
        self.grain
    }

    unsafe fn call(&self, at: &[*mut u8], piece: Range<i64>, threads: Threads<'_>) {
        let function = self.function.get().expect("a batch is installed before its functions run");
        // SAFETY: the caller's; the function has the same parameters and range.
        unsafe { function.call_raw(at, piece, threads) };
    }
}
