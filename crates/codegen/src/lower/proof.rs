//! Whether results may be written over operands, seen from kernels alone: independent of what decided
//! it (docs/design/in-place.md).

use super::{Arg, Lowered};

impl Lowered {
    /// Proves that the kernels compute the same if operands and leaves of the result have one buffer
    /// each, as these pairs say: no kernel reads what it, or one before it, has overwritten. Errors:
    /// the kernel for which that is not certain.
    pub fn check_in_place(&self, pairs: &[(usize, usize)]) -> Result<(), String> {
        for &(operand, leaf) in pairs {
            let mut is_overwritten = false;
            for (n, stage) in self.stages.iter().enumerate() {
                let place = |arg: Arg| stage.args.iter().position(|&a| a == arg);
                let read = place(Arg::Operand(operand));
                let written = place(Arg::Result(leaf));
                if is_overwritten && read.is_some() {
                    return Err(format!(
                        "kernel {n} reads operand {operand}, over which result {leaf} was written"
                    ));
                }
                if let (Some(read), Some(written)) = (read, written) {
                    let proof = stage.kernel.check_shared(read as u32, written as u32);
                    proof.map_err(|why| format!("kernel {n}: {why}"))?;
                }
                is_overwritten |= written.is_some();
            }
        }
        Ok(())
    }
}
