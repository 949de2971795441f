//! Elements read and written: where they are, and in which lanes.

use std::iter::zip;

use helio_ir::ElementType;

use super::{Emit, Values, both};
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, IndexOp};
use crate::lower::Arg;
use crate::lower::affine::Affine;
use crate::lower::graph::{Guard, Source};
use crate::lower::nest::Spread;

impl Emit<'_, '_> {
    pub(super) fn load(
        &mut self,
        b: &mut Builder,
        ty: ElementType,
        source: Source,
        at: &Affine,
        guard: Guard,
        values: &Values,
    ) -> Elem {
        if self.known_guard(guard) == Some(false) {
            // Whatever it is, nobody asks.
            return elementwise::constant(b, ty, 0);
        }
        let buf = self.buf(source.into());
        let mut addr = self.addr(b, at, ty.size_bytes() as i64, buf, values);
        self.stay_near(b, at, guard, values, &mut addr, ty.size_bytes() as i64);
        let jumps = at.symbols.iter().any(|&(s, _)| self.varies(self.graph.symbols[s.index()]));
        let spread = self.spread(at);
        if let (Spread::Uneven(elements), false) = (&spread, jumps) {
            return self.load_uneven(b, ty, addr, at, elements, guard, values);
        }
        let is_one = !jumps && matches!(spread, Spread::Even { step: 0, .. });
        let moves = self.vector.is_some_and(|vector| at.factor(vector) != 0);
        if is_one && moves && self.point.mask.is_some() {
            // A woven vector within a row that need not be there.
            let elements = vec![0; self.lanes as usize];
            return self.load_uneven(b, ty, addr, at, &elements, guard, values);
        }
        let guard = self.guard(b, guard, values);
        // What a guard says of lanes beyond the end of the loop means nothing.
        let mask = match guard {
            None if is_one => None,
            guard => both(b, self.point.mask, guard),
        };
        if is_one {
            return elementwise::load(b, ty, addr, mask);
        }
        if !jumps {
            return elementwise::load(b, ty, addr, mask);
        }
        let lane = self.index_lane;
        let index = self.lanes_of(b, at, lane, values);
        let most = self.most(at).filter(|_| guard.is_none());
        elementwise::gather(b, ty, addr, index, (ty.size_bytes() as i64, most), mask)
    }

    /// How much an index exceeds, in any lane, what it is without the symbols that differ between lanes, if nothing else
    /// does.
    fn most(&self, at: &Affine) -> Option<u32> {
        let is_same = matches!(self.spread(at), Spread::Even { first: 0, step: 0 });
        let varying =
            at.symbols.iter().filter(|&&(s, _)| self.varies(self.graph.symbols[s.index()]));
        let sum = varying.into_iter().try_fold(0i64, |sum, &(s, factor)| {
            let bound = self.graph.symbol_bounds[s.index()];
            (factor >= 0).then(|| bound.checked_mul(factor)?.checked_add(sum)).flatten()
        });
        is_same.then_some(sum?).and_then(|sum| u32::try_from(sum).ok())
    }

    /// Reads an element for each lane, of which it is known how far from the first it is.
    #[expect(clippy::too_many_arguments, reason = "what is known of a load")]
    fn load_uneven(
        &mut self,
        b: &mut Builder,
        ty: ElementType,
        addr: Addr,
        at: &Affine,
        elements: &[i64],
        guard: Guard,
        values: &Values,
    ) -> Elem {
        let mut elements = elements.to_vec();
        let mut guard_mask = None;
        match self.fixed_lanes(guard) {
            Some(wanted) if !wanted.contains(&true) => {
                return elementwise::constant(b, ty, 0);
            }
            // Lanes that nobody asks for read what others do, if those are there.
            Some(wanted) if self.point.mask.is_none() => {
                let asked = zip(&elements, &wanted).find(|&(_, &wanted)| wanted);
                let some = asked.map_or(0, |(&element, _)| element);
                let free = zip(&mut elements, &wanted).filter(|&(_, &wanted)| !wanted);
                free.for_each(|(element, _)| *element = some);
            }
            _ => guard_mask = self.guard(b, guard, values),
        }
        // What the loop around the short one does not change is there in all lanes, unless a guard asks,
        // which means nothing of lanes beyond the end.
        let stays = self.vector.is_some_and(|vector| at.factor(vector) == 0);
        let is_whole = stays && guard_mask.is_none();
        let mask = both(b, self.point.mask.filter(|_| !is_whole), guard_mask);
        let index = b.numbers(self.index_lane, &elements);
        elementwise::gather(b, ty, addr, index, (ty.size_bytes() as i64, None), mask)
    }

    /// For each lane whether a guard holds, if that depends on nothing but the lane.
    fn fixed_lanes(&self, guard: Guard) -> Option<Vec<bool>> {
        let woven = self.woven?;
        let mut lanes = vec![true; self.lanes as usize];
        for cond in &self.graph.guards[guard.index()] {
            if self.known(cond).is_some() {
                continue;
            }
            let &[(dim, factor)] = &cond.at.dims[..] else { return None };
            if dim != woven.dim || !cond.at.symbols.is_empty() {
                return None;
            }
            for (lane, wanted) in lanes.iter_mut().enumerate() {
                let point = self.point.copy as i64 * self.lanes + lane as i64;
                let index = cond.at.constant + factor * (point % woven.size);
                *wanted &= (index < cond.below) == cond.holds;
            }
        }
        Some(lanes)
    }

    /// Moves an address whose guard holds in no lane to where it would. What is masked off is not
    /// read, but processors take hundreds of cycles to find out that a page is not there.
    fn stay_near(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        guard: Guard,
        values: &Values,
        addr: &mut Addr,
        bytes: i64,
    ) {
        let graph = self.graph;
        let conds = &graph.guards[guard.index()];
        for (i, cond) in conds.iter().enumerate() {
            let Some(&(dim, unit)) = cond.at.dims.first() else { continue };
            let (dims, _) = graph.affine_info(&cond.at);
            let varies = dims & self.lane_loops != 0;
            let seen = conds[..i].iter().any(|other| other.at == cond.at);
            let factor = at.factor(dim);
            if varies || seen || factor == 0 || factor % unit != 0 || self.known(cond).is_some() {
                continue;
            }
            let index = self.index(b, &cond.at, values);
            let mut near = index;
            for cond in conds.iter().filter(|other| other.at == cond.at) {
                let (op, limit) = match cond.holds {
                    true => (IndexOp::Min, cond.below - 1),
                    false => (IndexOp::Max, cond.below),
                };
                let limit = b.index(limit);
                near = b.index_op(op, near, limit);
            }
            let moved = b.index_op(IndexOp::Sub, near, index);
            addr.terms.push((moved, factor / unit * bytes));
        }
    }

    /// The address of an element; what symbols add that differ between lanes is left out, and so is how
    /// an index goes on if that is uneven.
    pub(super) fn addr(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        bytes: i64,
        buf: Buf,
        values: &Values,
    ) -> Addr {
        let mut terms = Vec::new();
        for (d, factor) in self.counted(at) {
            let var = self.vars[usize::from(d)].expect("the loop is open");
            terms.push((var, factor * bytes));
        }
        for &(s, factor) in &at.symbols {
            if !self.varies(self.graph.symbols[s.index()]) {
                terms.push((self.symbol(b, s, values), factor * bytes));
            }
        }
        let step = match self.spread(at) {
            Spread::Even { step, .. } => step,
            Spread::Uneven(_) => 1,
        };
        let offset = (at.constant + self.first(at)) * bytes;
        Addr { buf, offset, terms, lane_stride: step * bytes }
    }

    /// Where a value is to be written.
    pub fn place(&mut self, b: &mut Builder, to: Arg, at: &Affine, ty: ElementType) -> Addr {
        let buf = self.buf(to);
        self.affine_values(b, at);
        let values = std::mem::take(&mut self.values);
        let addr = self.addr(b, at, ty.size_bytes() as i64, buf, &values);
        self.values = values;
        addr
    }

    /// Reads a value where another was written.
    pub fn stored(&self, b: &mut Builder, place: Addr, ty: ElementType) -> Elem {
        let mask = self.point.mask.filter(|_| place.lane_stride != 0);
        elementwise::load(b, ty, place, mask)
    }

    /// Writes a value.
    pub fn store(&mut self, b: &mut Builder, place: Addr, ty: ElementType, elem: Elem) {
        let mask = self.point.mask.filter(|_| place.lane_stride != 0);
        elementwise::store(b, ty, elem, place, mask);
    }
}
