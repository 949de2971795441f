//! Which instructions are equal: the same operation, attributes and operands.

use std::hash::{Hash, Hasher};

use helio_ir::ops::Phase;
use helio_ir::{Instr, InstrId, Op, Shape};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use crate::draft::Draft;

/// Instructions by what they compute.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    slots: FxHashMap<u64, InstrId>,
}

/// The most instructions with one hash that are compared; those beyond are taken for different ones,
/// so that time is linear in the number of instructions whatever the hash misses.
const MAX_PROBES: u64 = 8;

impl Numbering {
    /// For a computation of about so many instructions that differ.
    pub(super) fn for_so_many(count: usize) -> Self {
        Numbering { slots: FxHashMap::with_capacity_and_hasher(count, FxBuildHasher) }
    }

    /// An equal instruction, and else the slot for this one.
    pub(super) fn find(&self, draft: &Draft<'_>, instr: &Instr) -> (u64, Option<InstrId>) {
        let mut slot = hash(&instr.op, &instr.operands, &instr.shape);
        for _ in 0..MAX_PROBES {
            let Some(&id) = self.slots.get(&slot) else { break };
            let other = draft.instr(id);
            if other.operands == instr.operands
                && other.shape.same(&instr.shape)
                && other.op == instr.op
            {
                return (slot, Some(id));
            }
            slot = slot.wrapping_add(1);
        }
        (slot, None)
    }

    pub(super) fn insert(&mut self, slot: u64, id: InstrId) {
        self.slots.insert(slot, id);
    }
}

/// Whether two of these with the same operands always have the same value. (Effects are asked
/// elsewhere.)
pub(super) fn may_merge(op: &Op) -> bool {
    // Parameters differ by number and stay; what is begun is done once.
    !matches!(op, Op::Parameter(_)) && op.phase() == Phase::Once
}

/// A number that equal instructions share.
pub(crate) fn hash(op: &Op, operands: &[InstrId], shape: &Shape) -> u64 {
    let mut state = FxHasher::default();
    std::mem::discriminant(op).hash(&mut state);
    operands.hash(&mut state);
    if let Shape::Array(array) = shape {
        array.element().hash(&mut state);
        array.dims().hash(&mut state);
    }
    // The attributes of operations that often have the same operands.
    match op {
        Op::Unary(op) => op.hash(&mut state),
        Op::Binary(op) => op.hash(&mut state),
        Op::Compare(op) => op.direction.hash(&mut state),
        Op::Iota(op) => op.dimension.hash(&mut state),
        Op::GetTupleElement(op) => op.index.hash(&mut state),
        Op::Broadcast(op) => op.dimensions.hash(&mut state),
        Op::Transpose(op) => op.permutation.hash(&mut state),
        Op::Reverse(op) => op.dimensions.hash(&mut state),
        Op::Slice(op) => (&op.starts, &op.limits, &op.strides).hash(&mut state),
        Op::Reduce(op) => (&op.dimensions, op.to_apply).hash(&mut state),
        Op::Pad(op) => {
            op.dims.iter().for_each(|dim| (dim.low, dim.high, dim.interior).hash(&mut state));
        }
        Op::Dot(op) => (&op.dims.lhs_contracting, &op.dims.rhs_contracting).hash(&mut state),
        Op::Constant(op) => {
            if let Some(array) = op.literal.as_array() {
                // Constants that begin alike are rare.
                let count = array.data().len().min(64);
                (0..count).for_each(|i| array.bits(i).hash(&mut state));
            }
        }
        _ => {}
    }
    state.finish()
}
