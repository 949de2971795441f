//! Registers: a linear scan over the lives of values.
//!
//! A life is one interval of instructions, from the first write to the last use; what a loop reads
//! and was written before it lives to the loop's end. Where there are more lives than registers,
//! those go to the stack whose uses, weighted by the depth of their loops, are fewest for their
//! length. A constant is not stored: its uses read it from behind the code.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::zip;

use super::Isa;
use super::mir::{Inst, Reg, RegClass, RegInfo, Role, VirtualCode};

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// Nowhere: nothing uses it.
    None,
    /// In a machine register of its class.
    Machine(u8),
    /// In memory, at this offset in bytes from the stack pointer.
    Stack(i32),
    /// Nowhere but behind the code.
    Constant,
}

/// The allocations of all virtual registers.
pub(super) struct Allocations {
    pub(super) of: Vec<Allocation>,
    /// General registers that were given out, as bits.
    pub(super) general_used: u32,
    /// Bytes of the stack frame; a multiple of its alignment, or 0.
    pub(super) frame_bytes: usize,
}

/// Registers that instructions are encoded with when their operands lie on the stack. The general
/// ones are never given out, as division needs them anyway; the others only if nothing is spilled.
pub(super) const SCRATCH_GENERAL: [u8; 2] = [0, 2];
pub(super) const SCRATCH_MASKS: [u8; 2] = [7, 6];

/// The vector scratch registers.
pub(super) fn scratch_vectors(isa: Isa) -> [u8; 2] {
    match isa {
        Isa::Avx512 => [30, 31],
        Isa::Avx2 => [14, 15],
    }
}

/// General registers in the order in which they are given out: those first that the caller does
/// not expect back.
const GENERAL: [u8; 13] = [7, 6, 1, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15];

/// What checks of accesses have to themselves, of those that belong to the caller: where the list of
/// buffers is, where scratch begins, the lanes that are touched, how far from its buffer's begin an
/// address is.
pub(super) const CHECKS: [u8; 4] = [12, 13, 14, 15];

/// The general registers that belong to the caller.
pub(super) const CALLEE_SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];

const UNSEEN: u32 = u32::MAX;

/// The most machine registers of a class.
const REGISTERS: usize = 32;

/// The life of a value. An instruction reads at twice its number and writes one later.
#[derive(Clone, Copy)]
struct Life {
    start: u32,
    end: u32,
    weight: f32,
    hint: Reg,
}

/// Removes what nothing needs, and allocates every virtual register.
pub(super) fn allocate(code: &mut VirtualCode, isa: Isa) -> Allocations {
    remove_dead(code);
    let (mut lives, order) = lives(code);
    for (life, about) in lives.iter_mut().zip(&code.regs) {
        life.weight *= keep(about) / (life.end.saturating_sub(life.start) + 1) as f32;
    }
    let mut allocations = vec![Allocation::None; code.regs.len()];
    let checks = CHECKS.iter().filter(|_| code.bounds.is_some());
    let checks: u32 = checks.fold(0, |set, &r| set | 1 << r);
    let mut general_used = checks;
    let mut of_classes: [Vec<Reg>; 3] = Default::default();
    for &reg in &order {
        of_classes[code.regs[reg.0 as usize].class as usize].push(reg);
    }
    for class in [RegClass::Vector, RegClass::Mask, RegClass::General] {
        let of_class = &of_classes[class as usize];
        let all: u32 = match (class, isa) {
            (RegClass::Vector, Isa::Avx512) => u32::MAX,
            (RegClass::Vector, Isa::Avx2) => 0xffff,
            (RegClass::Mask, _) => 0xfe,
            (RegClass::General, _) => GENERAL.iter().fold(0, |set, &r| set | 1 << r) & !checks,
        };
        let scratch: u32 = match class {
            RegClass::Vector => scratch_vectors(isa).iter().fold(0, |set, &r| set | 1 << r),
            RegClass::Mask => SCRATCH_MASKS.iter().fold(0, |set, &r| set | 1 << r),
            RegClass::General => 0,
        };
        if scan(of_class, &lives, class, all, &mut allocations) && scratch != 0 {
            scan(of_class, &lives, class, all & !scratch, &mut allocations);
        }
        if class == RegClass::General {
            for reg in of_class {
                if let Allocation::Machine(n) = allocations[reg.0 as usize] {
                    general_used |= 1 << n;
                }
            }
        }
    }
    let frame_bytes = place_on_stack(code, &order, &lives, &mut allocations);
    Allocations { of: allocations, general_used, frame_bytes }
}

/// How much more it costs to have a value elsewhere than in a register.
fn keep(about: &RegInfo) -> f32 {
    match about.fixed {
        Some(_) => 0.25,
        None if about.carried => 4.0,
        None => 1.0,
    }
}

/// Drops instructions whose results are not used.
fn remove_dead(code: &mut VirtualCode) {
    let mut uses = vec![0u32; code.regs.len()];
    for inst in &code.insts {
        inst.registers(|reg, role| uses[reg.0 as usize] += u32::from(role != Role::Def));
    }
    let mut dead = false;
    for inst in code.insts.iter_mut().rev() {
        if !inst.is_pure() {
            continue;
        }
        let mut needed = false;
        inst.registers(|reg, role| needed |= role == Role::Def && uses[reg.0 as usize] > 0);
        if !needed {
            inst.registers(|reg, role| uses[reg.0 as usize] -= u32::from(role != Role::Def));
            // Labels that nothing jumps to cost nothing; this marks the instruction for removal.
            *inst = Inst::Fixed { dst: Reg::NONE };
            dead = true;
        }
    }
    if dead {
        code.insts.retain(|inst| !matches!(inst, Inst::Fixed { dst } if !dst.is_some()));
    }
}

/// A loop that is being scanned.
struct Open {
    begin: u32,
    /// What was written before it and is read in it.
    outer: Vec<Reg>,
}

/// The life of every value, and the values in the order of their first writes.
fn lives(code: &VirtualCode) -> (Vec<Life>, Vec<Reg>) {
    let unseen = Life { start: UNSEEN, end: 0, weight: 0.0, hint: Reg::NONE };
    let mut lives = vec![unseen; code.regs.len()];
    let mut order = Vec::with_capacity(code.regs.len());
    let mut open: Vec<Open> = Vec::new();
    let mut weight = 1.0;
    for (at, inst) in (0u32..).step_by(2).zip(&code.insts) {
        match inst {
            Inst::LoopBegin { .. } => {
                open.push(Open { begin: at, outer: Vec::new() });
                weight *= 8.0;
            }
            Inst::LoopEnd => {
                weight /= 8.0;
                if let Some(closed) = open.pop() {
                    for reg in closed.outer {
                        let life = &mut lives[reg.0 as usize];
                        life.end = life.end.max(at);
                    }
                }
            }
            _ => {}
        }
        inst.registers(|reg, role| {
            let life = &mut lives[reg.0 as usize];
            life.weight += weight;
            if life.start == UNSEEN {
                life.start = at + 1;
                order.push(reg);
            }
            life.end = life.end.max(at + u32::from(role != Role::Use));
            // The outermost loop that the value comes into.
            if let Some(entered) = open.iter_mut().find(|l| l.begin > life.start) {
                entered.outer.push(reg);
            }
        });
        if let Some((dst, src)) = inst.hint()
            && dst.is_some()
        {
            let life = &mut lives[dst.0 as usize];
            if life.hint == Reg::NONE {
                life.hint = src;
            }
        }
    }
    (lives, order)
}

/// Gives the values of a class registers from the set `free`; whether there were too few.
fn scan(
    order: &[Reg],
    lives: &[Life],
    class: RegClass,
    all: u32,
    allocations: &mut [Allocation],
) -> bool {
    let mut free = all;
    // For each machine register that was given out, what has it, and when that ends.
    let mut holders = [Reg::NONE; REGISTERS];
    let mut ends = [UNSEEN; REGISTERS];
    let mut spilled = false;
    let life = |reg: Reg| lives[reg.0 as usize];
    for &reg in order {
        let Life { start, end, weight, hint } = life(reg);
        // (Without branches, and so in a few vector instructions.)
        let ended = zip(&ends, 0..).fold(0, |set, (&end, n)| set | u32::from(end < start) << n);
        free |= ended & all;
        if free != 0 {
            let hinted = match hint.is_some().then(|| allocations[hint.0 as usize]) {
                Some(Allocation::Machine(n)) if free >> n & 1 != 0 => Some(n),
                _ => None,
            };
            let first = || match class {
                RegClass::General => GENERAL.into_iter().find(|&n| free >> n & 1 != 0),
                _ => Some(free.trailing_zeros() as u8),
            };
            if let Some(n) = hinted.or_else(first) {
                allocations[reg.0 as usize] = Allocation::Machine(n);
                free &= !(1 << n);
                (holders[usize::from(n)], ends[usize::from(n)]) = (reg, end);
            }
            continue;
        }
        spilled = true;
        let held = (0..REGISTERS).filter(|&n| all >> n & 1 != 0);
        let lightest =
            held.min_by(|&a, &b| life(holders[a]).weight.total_cmp(&life(holders[b]).weight));
        match lightest {
            Some(n) if life(holders[n]).weight < weight => {
                allocations[reg.0 as usize] = Allocation::Machine(n as u8);
                allocations[holders[n].0 as usize] = Allocation::Stack(0);
                (holders[n], ends[n]) = (reg, end);
            }
            _ => allocations[reg.0 as usize] = Allocation::Stack(0),
        }
    }
    spilled
}

/// Gives what is spilled its place in the frame, shared by lives that do not meet; the frame's size.
fn place_on_stack(
    code: &VirtualCode,
    order: &[Reg],
    lives: &[Life],
    allocations: &mut [Allocation],
) -> usize {
    let mut bytes = code.stack_bytes.next_multiple_of(64);
    // For each size of 8 << n bytes: when the last lives of slots end, and the slots.
    let mut slots: [BinaryHeap<Reverse<(u32, i32)>>; 4] = Default::default();
    for &reg in order {
        let (place, about) = (&mut allocations[reg.0 as usize], &code.regs[reg.0 as usize]);
        if *place != Allocation::Stack(0) {
            continue;
        }
        if about.fixed.is_some() {
            *place = Allocation::Constant;
            continue;
        }
        let size = match about.class {
            RegClass::Vector => about.len.bytes(),
            RegClass::Mask | RegClass::General => 8,
        };
        let life = lives[reg.0 as usize];
        let known = &mut slots[size.trailing_zeros() as usize - 3];
        // What ends first may have ended: its slot is free then.
        let is_free = known.peek().is_some_and(|Reverse((end, _))| *end < life.start);
        let slot = if is_free { known.pop() } else { None };
        let at = match slot {
            Some(Reverse((_, at))) => at,
            None => {
                let at = bytes.next_multiple_of(size);
                bytes = at + size;
                at as i32
            }
        };
        known.push(Reverse((life.end, at)));
        *place = Allocation::Stack(at);
    }
    bytes.next_multiple_of(64)
}
