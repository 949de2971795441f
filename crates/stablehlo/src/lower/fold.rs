//! Values that are known while lowering: sizes that other operations need.

use helio_ir::ops::Effect;
use helio_ir::{Array, Computation, Error, InstrId, Literal, Module, Op, Result};

use super::body::Body;

/// How many instructions a value may depend on to be computed while lowering.
const MAX_FOLDED: usize = 4096;

/// How many bytes such a value may take.
const MAX_FOLDED_BYTES: usize = 1 << 20;

impl Body<'_, '_> {
    /// The value of an instruction if it depends on constants alone. Errors: those of computing it.
    pub(super) fn known(&self, id: InstrId) -> Result<Option<Literal>> {
        if let Op::Constant(op) = &self.comp.instr(id).op
            && !op.elided
        {
            return Ok(Some(op.literal.clone()));
        }
        let Some(needed) = self.dependencies(id) else { return Ok(None) };
        let mut copy = Computation::new("known");
        let mut places = vec![None; id.index() + 1];
        for from in needed {
            let mut instr = self.comp.instr(from).clone();
            for operand in &mut instr.operands {
                let place: Option<InstrId> = places[operand.index()];
                *operand = place.ok_or_else(|| Error::internal("an operand follows its user"))?;
            }
            places[from.index()] = Some(copy.push(instr)?);
        }
        let mut module = Module::new("known");
        module.push(copy)?;
        let module = helio_ir::verify(module)?;
        helio_eval::evaluate(&module, &[], &helio_eval::Context::default()).map(Some)
    }

    /// All instructions that one depends on, and itself, in order; `None` if its value is not known
    /// or too much work.
    fn dependencies(&self, id: InstrId) -> Option<Vec<InstrId>> {
        let mut needed = vec![false; id.index() + 1];
        needed[id.index()] = true;
        let mut list = Vec::new();
        for at in (0..=id.index()).rev().map(|i| InstrId(i as u32)) {
            if !needed[at.index()] {
                continue;
            }
            let instr = self.comp.instr(at);
            let is_pure = instr.op.effect() == Effect::None
                && instr.op.callees().is_empty()
                && !matches!(instr.op, Op::Parameter(_) | Op::ReplicaId(_) | Op::PartitionId(_));
            list.push(at);
            let is_large = instr.shape.size_bytes() > MAX_FOLDED_BYTES;
            if !is_pure || is_large || list.len() > MAX_FOLDED {
                return None;
            }
            for operand in &instr.operands {
                needed[operand.index()] = true;
            }
        }
        list.reverse();
        Some(list)
    }

    /// The integers of an operand that must be known while lowering.
    pub(super) fn known_integers(&self, id: InstrId, what: &str) -> Result<Vec<i64>> {
        let value = self.known(id)?;
        let array = value.as_ref().and_then(Literal::as_array);
        let array = array.filter(|array| array.element().is_integer()).ok_or_else(|| {
            Error::unimplemented(format!("{what} that is only known at run time"))
        })?;
        Ok(integers(array))
    }

    /// The same, of numbers that are not negative.
    pub(super) fn known_sizes(&self, id: InstrId, what: &str) -> Result<Vec<usize>> {
        let values = self.known_integers(id, what)?;
        let sizes = values.iter().map(|&v| usize::try_from(v)).collect();
        std::result::Result::map_err(sizes, |_| Error::invalid(format!("{what} of {values:?}")))
    }
}

fn integers(array: &Array) -> Vec<i64> {
    let count = array.shape().element_count();
    (0..count).map(|i| array.number(i).to_int(i64::MIN.into(), i64::MAX.into()) as i64).collect()
}
