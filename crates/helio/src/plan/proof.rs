//! Proofs that steps change operands in place only where nobody reads what is overwritten: for each
//! kernel that gets one storage twice, from its own loads and stores
//! (`docs/design/in-place.md`). They are made where [`CompileOptions::proofs`] asks for them.
//!
//! [`CompileOptions::proofs`]: crate::CompileOptions::proofs

use std::sync::Arc;

use helio_codegen::kernel::Kernel;
use helio_codegen::lower::Lowered;
use helio_ir::Error;
use helio_runtime::program::{Finished, RawKernel, Signature};

use super::{Action, Step, StorageId};

/// The kernels of a plan, as they were before they became machine code; nothing if no proofs are asked for.
pub(super) struct Proofs(Option<Vec<(Arc<dyn RawKernel>, Kernel)>>);

impl Proofs {
    pub(super) fn new(are_wanted: bool) -> Self {
        Proofs(are_wanted.then(Vec::new))
    }

    /// Proves that the kernels of a fusion may write these results over these operands. Errors:
    /// `Internal` if there is no proof.
    pub(super) fn check_lowered(
        &self,
        lowered: &Lowered,
        shared: &[(usize, usize)],
    ) -> Result<(), Error> {
        let proof = self.0.as_ref().map_or(Ok(()), |_| lowered.check_in_place(shared));
        proof.map_err(|why| {
            Error::internal(format!("a fusion may overwrite what it still reads: {why}"))
        })
    }

    /// Keeps a kernel for its proof, if there are to be any.
    pub(super) fn keep(&mut self, code: &Arc<dyn RawKernel>, kernel: &Kernel) {
        if let Some(kernels) = &mut self.0 {
            kernels.push((Arc::clone(code), kernel.clone()));
        }
    }

    /// Proves it for all of these steps. `find` gives what a storage was merged with. Errors: `Internal`
    /// if there is no proof.
    pub(super) fn check(
        &self,
        steps: &[Step],
        find: &dyn Fn(StorageId) -> StorageId,
    ) -> Result<(), Error> {
        let proof = self.0.as_ref().map_or(Ok(()), |_| self.steps(steps, find));
        proof.map_err(|why| {
            Error::internal(format!("a step may overwrite what is still read: {why}"))
        })
    }

    fn steps(&self, steps: &[Step], find: &dyn Fn(StorageId) -> StorageId) -> Result<(), String> {
        steps.iter().try_for_each(|step| match &step.action {
            Action::Raw { kernel, slots } => self.raw(&**kernel, slots, find),
            Action::Finished(step) => self.finished(step, find),
            Action::While(step) => {
                self.steps(&step.cond, find)?;
                self.steps(&step.body, find)
            }
            Action::Branch(step) => step.branches.iter().try_for_each(|s| self.steps(s, find)),
            // Slices of outputs are exclusive, and the program's own check sees to that.
            Action::Kernel { .. } | Action::Host { .. } | Action::Copy { .. } | Action::Part(_) => {
                Ok(())
            }
        })
    }

    fn kernel(&self, code: &dyn RawKernel) -> Result<&Kernel, String> {
        let is_this = |kept: &&(Arc<dyn RawKernel>, Kernel)| std::ptr::addr_eq(&*kept.0, code);
        let kept = self.0.iter().flatten().find(is_this);
        Ok(&kept.ok_or_else(|| format!("no {} was made", code.signature().name))?.1)
    }

    /// A kernel of which some parameters are one storage: none written but one, and nothing is read
    /// from that storage after it was written.
    fn raw(
        &self,
        code: &dyn RawKernel,
        slots: &[StorageId],
        find: &dyn Fn(StorageId) -> StorageId,
    ) -> Result<(), String> {
        let Signature { name, params, .. } = code.signature();
        for (written, &to) in slots.iter().enumerate().filter(|&(n, _)| params[n].write) {
            let others = slots.iter().enumerate().filter(|&(n, _)| n != written);
            for (other, _) in others.filter(|&(_, &from)| find(from) == find(to)) {
                let proof = self.kernel(code)?.check_shared(other as u32, written as u32);
                proof.map_err(|why| format!("{name}: {why}"))?;
            }
        }
        Ok(())
    }

    /// A kernel that changes another's output as soon as rows of it are there.
    fn finished(
        &self,
        step: &Finished<StorageId>,
        find: &dyn Fn(StorageId) -> StorageId,
    ) -> Result<(), String> {
        let Finished { kernel: _, inputs, output, code, slots } = step;
        self.raw(&**code, slots, find)?;
        let name = &code.signature().name;
        let Some(unit_bytes) = code.signature().unit_bytes else {
            return Err(format!("{name} does not go from row to row"));
        };
        if inputs.iter().any(|&input| find(input) == find(*output)) {
            return Err(format!("{name} finishes what is read"));
        }
        for (n, _) in slots.iter().enumerate().filter(|&(_, &slot)| find(slot) == find(*output)) {
            let proof = self.kernel(&**code)?.check_units(n as u32, unit_bytes);
            proof.map_err(|why| format!("{name}, in units of {unit_bytes} bytes: {why}"))?;
        }
        Ok(())
    }
}
