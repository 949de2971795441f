//! `call`, `while`, `conditional` and `opt-barrier` raised to StableHLO.

use helio_ir::ops::{Conditional, While};
use helio_ir::{CompId, Instr, Result};

use super::Value;
use super::computation::Frame;

impl Frame<'_, '_, '_> {
    /// A call of the function of a computation.
    pub(super) fn call(&mut self, to_apply: CompId, instr: &Instr) -> Result<Value> {
        let operands = self.leaves(instr)?;
        let callee = vec![("callee".to_owned(), self.symbol(to_apply))];
        self.emit_shape("func.call", operands, callee, &instr.shape, Vec::new())
    }

    /// The leaves of the state are the values that the loop carries.
    pub(super) fn while_loop(&mut self, op: &While, instr: &Instr) -> Result<Value> {
        let operands = self.leaves(instr)?;
        let regions = vec![self.region(op.condition)?, self.region(op.body)?];
        self.emit_shape("stablehlo.while", operands, Vec::new(), &instr.shape, regions)
    }

    /// Branches take nothing, and use their operands where they stand.
    pub(super) fn conditional(&mut self, op: &Conditional, instr: &Instr) -> Result<Value> {
        let index = self.operand(instr, 0)?.leaf()?;
        let is_pred =
            self.shape(instr.operands[0]).as_array().is_some_and(|a| a.element().is_pred());
        let mut regions = Vec::new();
        for (i, &branch) in op.branches.iter().enumerate() {
            let argument = self.operand(instr, i + 1)?;
            regions.push(self.region_on(branch, vec![argument])?);
        }
        let name = if is_pred { "stablehlo.if" } else { "stablehlo.case" };
        self.emit_shape(name, vec![index], Vec::new(), &instr.shape, regions)
    }

    /// A barrier of the leaves of the operand.
    pub(super) fn barrier(&mut self, instr: &Instr) -> Result<Value> {
        let operands = self.leaves(instr)?;
        let name = "stablehlo.optimization_barrier";
        self.emit_shape(name, operands, Vec::new(), &instr.shape, Vec::new())
    }
}
