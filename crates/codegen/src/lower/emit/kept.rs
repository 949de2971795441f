//! Values that one pass leaves in scratch for the next.

use helio_ir::ElementType;
use rustc_hash::FxHashMap;

use super::{Emit, Values};
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, Lane, Mem};
use crate::lower::graph::NodeId;

/// A value kept in scratch from one pass to the next.
#[derive(Clone, Debug)]
pub(in crate::lower) struct Kept {
    /// Bytes from the start of the scratch.
    pub base: i64,
    /// Whether the present pass has computed it.
    pub left: bool,
    /// Whether a pass before has.
    pub ready: bool,
}

impl Emit<'_, '_> {
    fn kept_addr(&mut self, b: &mut Builder, base: i64, bytes: i64) -> Addr {
        let at = self.kept_at.clone();
        let none = Values::default();
        let addr = self.addr(b, &at, bytes, Buf::Scratch, &none);
        let lanes = b.lanes() as i64;
        match addr.lane_stride {
            // Each copy of a column has its own.
            0 => Addr {
                offset: base
                    + (addr.offset * self.reduced.len() as i64 + self.point.copy as i64 * bytes)
                        * lanes,
                terms: addr
                    .terms
                    .iter()
                    .map(|&(v, f)| (v, f * lanes * self.reduced.len() as i64))
                    .collect(),
                lane_stride: bytes,
                ..addr
            },
            _ => Addr { offset: base + addr.offset, ..addr },
        }
    }

    /// Leaves values of the current point in scratch for later passes.
    pub fn keep(&mut self, b: &mut Builder) {
        let mut pending: Vec<(NodeId, i64)> = self
            .kept
            .iter()
            .filter(|&(&id, kept)| !kept.ready && self.values.contains(id))
            .map(|(&id, kept)| (id, kept.base))
            .collect();
        pending.sort_unstable();
        for (id, base) in pending {
            let Elem::Vector(value) = self.values[id] else { continue };
            let mem = memory(b.lane(value));
            let addr = self.kept_addr(b, base, mem.bytes() as i64);
            b.store(value, mem, addr, self.point.mask);
            self.kept.get_mut(&id).expect("it is kept").left = true;
        }
    }

    /// Begins with the first pass; what was kept is stale.
    pub fn forget(&mut self) {
        self.reduced.iter_mut().for_each(FxHashMap::clear);
        self.kept.values_mut().for_each(|kept| (kept.left, kept.ready) = (false, false));
    }

    /// Goes on to the next pass.
    pub fn next_pass(&mut self) {
        self.kept.values_mut().for_each(|kept| kept.ready = kept.left);
    }

    pub(super) fn restore(&mut self, b: &mut Builder, id: NodeId, kept: &Kept) -> Elem {
        let mem = lane_memory(self.graph.info(id).ty);
        let addr = self.kept_addr(b, kept.base, mem.bytes() as i64);
        Elem::Vector(b.load(mem, addr, self.point.mask))
    }
}

/// How lanes lie in memory unchanged.
fn memory(lane: Lane) -> Mem {
    match lane {
        Lane::I32 => Mem::I32,
        Lane::I64 => Mem::I64,
        Lane::F32 => Mem::F32,
        Lane::F64 => Mem::F64,
    }
}

/// How the lanes of a type that has one vector lie in memory unchanged.
pub(in crate::lower) fn lane_memory(ty: ElementType) -> Mem {
    memory(elementwise::lane(ty).unwrap_or(Lane::I32))
}
