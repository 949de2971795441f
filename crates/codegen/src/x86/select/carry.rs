//! What loops carry.
//!
//! A carried value has one register: before the loop the initial value is moved there, at its end
//! the next one, and it is the result. Where the parameter is not needed any more once the next
//! value is made, that is made right there, and nothing is moved.

use rustc_hash::FxHashMap;

use super::Select;
use crate::kernel::{Block, Carried, Inst as K, Value};
use crate::x86::mir::{Inst, Reg};

impl Select<'_> {
    /// Opens the block of a loop; the registers of what it carries.
    ///
    /// `go` is what is read between the first of its blocks and the second.
    pub(super) fn enter(
        &mut self,
        carried: &[Carried],
        blocks: &[&Block],
        go: Option<Value>,
    ) -> Vec<Reg> {
        let mut regs = Vec::with_capacity(carried.len());
        for c in carried {
            // An inner loop may carry what the loop around it carries.
            let target = self.target[c.result.0 as usize];
            let reg =
                if target.is_some() { target } else { self.reg_of_type(self.kernel.ty(c.param)) };
            self.regs[reg.0 as usize].carried = true;
            regs.push(reg);
        }
        for (at, c) in made_in_place(carried, blocks, go).into_iter().zip(carried) {
            if let Some(n) = at {
                self.target[c.next.0 as usize] = regs[n];
            }
        }
        self.scopes.push(super::Scope::default());
        for (c, &reg) in carried.iter().zip(&regs) {
            self.bind(c.param, reg);
        }
        regs
    }

    /// Moves the initial values to where they are carried.
    pub(super) fn init(&mut self, regs: &[Reg], carried: &[Carried]) {
        let moves = carried.iter().zip(regs).map(|(c, &reg)| (reg, self.reg(c.init))).collect();
        self.moves(moves);
    }

    /// Moves what the body made to where it is carried.
    pub(super) fn next(&mut self, regs: &[Reg], carried: &[Carried]) {
        let moves = carried.iter().zip(regs).map(|(c, &reg)| (reg, self.reg(c.next))).collect();
        self.moves(moves);
    }

    /// Names what is carried after the loop.
    pub(super) fn results(&mut self, regs: &[Reg], carried: &[Carried]) {
        for (c, &reg) in carried.iter().zip(regs) {
            self.bind(c.result, reg);
        }
    }

    /// Moves that happen at once.
    fn moves(&mut self, mut moves: Vec<(Reg, Reg)>) {
        moves.retain(|(dst, src)| dst != src);
        while !moves.is_empty() {
            // One whose destination no other one reads.
            let free = (0..moves.len()).rev().find(|&i| {
                let dst = moves[i].0;
                moves.iter().all(|&(_, src)| src != dst)
            });
            if let Some(free) = free {
                let (dst, src) = moves.swap_remove(free);
                self.push(Inst::Mov { dst, src });
                continue;
            }
            // All that is left are cycles: one source is put aside.
            let src = moves[0].1;
            let about = self.regs[src.0 as usize];
            let aside = self.fresh(about);
            self.push(Inst::Mov { dst: aside, src });
            for (_, other) in &mut moves {
                if *other == src {
                    *other = aside;
                }
            }
        }
    }
}

/// For each carried value, its number again if its next value may be made in its register: if that is
/// made in these blocks, for it alone, and the parameter is not read afterwards.
fn made_in_place(carried: &[Carried], blocks: &[&Block], go: Option<Value>) -> Vec<Option<usize>> {
    if carried.is_empty() {
        return Vec::new();
    }
    let params: FxHashMap<Value, usize> =
        carried.iter().enumerate().map(|(n, c)| (c.param, n)).collect();
    let mut nexts: FxHashMap<Value, Option<usize>> = FxHashMap::default();
    for (n, c) in carried.iter().enumerate() {
        nexts.entry(c.next).and_modify(|known| *known = None).or_insert(Some(n));
    }
    // The number of the instruction that makes the next value, and of the last that reads the
    // parameter.
    let mut made = vec![None; carried.len()];
    let mut read = vec![None; carried.len()];
    for (at, inst) in blocks.iter().flat_map(|block| &block.insts).enumerate() {
        if at == blocks[0].insts.len()
            && let Some(&n) = go.and_then(|go| params.get(&go))
        {
            read[n] = Some(2 * at);
        }
        // An instruction reads before it writes. A loop does not, except for initial values; one
        // that carries on what is carried here does so in the same register.
        let mut passed = Vec::new();
        let (results, after): (Vec<(Value, Value)>, usize) = match inst {
            K::Loop { carried, .. } | K::While { carried, .. } => {
                (carried.iter().map(|c| (c.result, c.init)).collect(), 1)
            }
            _ => (Vec::new(), 0),
        };
        if let Some(n) = inst.defines().and_then(|value| nexts.get(&value)).copied().flatten() {
            made[n] = Some(2 * at + 1);
        }
        for (result, init) in results {
            if let Some(n) = nexts.get(&result).copied().flatten() {
                made[n] = Some(2 * at + 1);
                if init == carried[n].param {
                    passed.push(init);
                }
            }
        }
        inst.for_each_operand(&mut |value| {
            let Some(&n) = params.get(&value) else { return };
            // The one reading that passes it on to the inner loop.
            match passed.iter().position(|&init| init == value) {
                Some(i) => {
                    passed.swap_remove(i);
                }
                None => read[n] = Some(2 * at + 2 * after),
            }
        });
    }
    for c in carried {
        if let Some(&n) = params.get(&c.next) {
            read[n] = Some(usize::MAX);
        }
    }
    (0..carried.len()).map(|n| (made[n]? > read[n].unwrap_or(0)).then_some(n)).collect()
}
