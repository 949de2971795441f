//! Machine code as bytes: prefixes, addressing, jumps and the constants behind the code.
//!
//! VEX and EVEX forms of an instruction share map, prefix and opcode, so one [`Op`] serves every
//! vector length of both instruction sets.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ops::Op;

/// Bits of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Len {
    /// 128.
    X,
    /// 256.
    Y,
    /// 512.
    Z,
}

impl Len {
    /// Bytes of a vector.
    pub(super) fn bytes(self) -> usize {
        16 << self as usize
    }
}

/// `rsp`, which has a meaning of its own in an address.
pub(super) const RSP: u8 = 4;

/// A register or memory operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rm {
    /// A register of the class that the instruction takes.
    Reg(u8),
    /// `base + index << shift + disp`.
    Mem { base: u8, index: Option<u8>, shift: u8, disp: i32 },
    /// The constant at an offset of the pool; `splat` reads one element for all lanes.
    Pool { at: usize, splat: bool },
}

/// A place in the code that jumps lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub(super) u32);

/// Conditions of jumps and moves, as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Cond {
    /// The bit that `bt` found is clear.
    NotCarry = 3,
    /// Equal, or zero.
    Equal = 4,
    /// Greater, unsigned.
    Above = 7,
    /// Below zero.
    Sign = 8,
    /// Less, signed.
    Less = 12,
    /// Greater or equal, signed.
    GreaterEqual = 13,
    /// Greater, signed.
    Greater = 15,
}

/// The operands of a vector instruction, as encoded.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) len: Len,
    /// The register field, or the opcode's extension.
    pub(super) reg: u8,
    /// The second source; 0 where there is none.
    pub(super) vvvv: u8,
    pub(super) rm: Rm,
    /// A mask register; 0 for none.
    pub(super) mask: u8,
    /// Whether lanes that are off become zero.
    pub(super) zero: bool,
    pub(super) imm: Option<u8>,
}

/// Code that is being written.
pub(super) struct Asm {
    bytes: Vec<u8>,
    /// Constants: the code's length is not known while they are referred to.
    pool: Vec<u8>,
    /// Where constants are in it.
    known: FxHashMap<SmallVec<[u8; 8]>, usize>,
    /// Where a displacement to the pool stands, where it counts from, and what it refers to.
    pool_uses: Vec<(usize, usize, usize)>,
    /// Where labels are.
    labels: Vec<Option<usize>>,
    /// 32-bit displacements of jumps ahead.
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    pub(super) fn new(labels: usize, size_hint: usize) -> Self {
        Asm {
            bytes: Vec::with_capacity(size_hint),
            pool: Vec::new(),
            known: FxHashMap::default(),
            pool_uses: Vec::new(),
            labels: vec![None; labels],
            jumps: Vec::new(),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Places a constant; equal ones share a place.
    pub(super) fn constant(&mut self, bytes: &[u8]) -> usize {
        if let Some(&at) = self.known.get(bytes) {
            return at;
        }
        let at = self.pool.len().next_multiple_of(bytes.len());
        self.pool.resize(at, 0);
        self.pool.extend_from_slice(bytes);
        self.known.insert(bytes.into(), at);
        at
    }

    /// A vector instruction, in its EVEX form or in its VEX form.
    pub(super) fn vector(&mut self, evex: bool, op: Op, fields: Fields) {
        let Fields { len, reg, vvvv, rm, mask, zero, imm } = fields;
        let splat = matches!(rm, Rm::Pool { splat: true, .. });
        // The bits of register numbers above the third: of `reg`, the index, and the base or `rm`.
        let bit = |n: u8, i: u8| n >> i & 1;
        let (index, base, vector_index) = match rm {
            // A vector register's fifth bit takes the place of the index's fourth.
            Rm::Reg(n) => (bit(n, 4), bit(n, 3), 0),
            Rm::Mem { base, index, .. } => {
                let index = index.unwrap_or(0);
                (bit(index, 3), bit(base, 3), bit(index, 4))
            }
            Rm::Pool { .. } => (0, 0, 0),
        };
        let unit = if evex {
            let high = bit(vvvv, 4) | vector_index;
            self.put(&[
                0x62,
                (bit(reg, 3) << 7 | index << 6 | base << 5 | bit(reg, 4) << 4) ^ 0xf0 | op.map,
                u8::from(op.wide) << 7 | (!vvvv & 15) << 3 | 4 | op.prefix,
                u8::from(zero) << 7
                    | (len as u8) << 5
                    | u8::from(splat) << 4
                    | (high ^ 1) << 3
                    | mask,
                op.code,
            ]);
            if splat { op.element() as i32 } else { op.memory_bytes(len) as i32 }
        } else {
            let wide = op.wide && !op.vex_narrow;
            let low = (!vvvv & 15) << 3 | (len as u8 & 1) << 2 | op.prefix;
            if op.map == 1 && !wide && index == 0 && base == 0 {
                self.put(&[0xc5, (bit(reg, 3) ^ 1) << 7 | low, op.code]);
            } else {
                self.put(&[
                    0xc4,
                    (bit(reg, 3) << 7 | index << 6 | base << 5) ^ 0xe0 | op.map,
                    u8::from(wide) << 7 | low,
                    op.code,
                ]);
            }
            1
        };
        self.modrm(reg, rm, unit, usize::from(imm.is_some()));
        self.bytes.extend(imm);
    }

    /// An instruction on general registers: `opcode` with its leading bytes, 64 bits if `wide`.
    pub(super) fn general(&mut self, opcode: &[u8], wide: bool, reg: u8, rm: Rm, imm_bytes: usize) {
        let (index, base) = match rm {
            Rm::Reg(n) => (0, n >> 3),
            Rm::Mem { base, index, .. } => (index.unwrap_or(0) >> 3, base >> 3),
            Rm::Pool { .. } => (0, 0),
        };
        let rex = u8::from(wide) << 3 | (reg >> 3) << 2 | index << 1 | base;
        // A mandatory prefix goes before REX.
        let (prefix, opcode) = match opcode {
            [0x66, rest @ ..] => (Some(0x66), rest),
            _ => (None, opcode),
        };
        self.bytes.extend(prefix);
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.put(opcode);
        self.modrm(reg, rm, 1, imm_bytes);
    }

    /// Bytes as they are: an immediate, or an instruction without operands.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }

    /// The addressing bytes. EVEX counts one-byte displacements in units of the memory operand.
    fn modrm(&mut self, reg: u8, rm: Rm, unit: i32, imm_bytes: usize) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(n) => self.bytes.push(0xc0 | reg | n & 7),
            Rm::Pool { at, .. } => {
                self.bytes.push(reg | 5);
                let here = self.bytes.len();
                self.pool_uses.push((here, here + 4 + imm_bytes, at));
                self.put(&[0; 4]);
            }
            Rm::Mem { base, index, shift, disp } => {
                let short = (disp % unit == 0).then(|| i8::try_from(disp / unit).ok()).flatten();
                // rbp and r13 without displacement would mean something else.
                let mode = match (disp, short) {
                    (0, _) if base & 7 != 5 => 0,
                    (_, Some(_)) => 0x40,
                    _ => 0x80,
                };
                match index {
                    None if base & 7 != RSP => self.bytes.push(mode | reg | base & 7),
                    None => self.put(&[mode | reg | 4, 4 << 3 | base & 7]),
                    Some(index) => {
                        self.put(&[mode | reg | 4, shift << 6 | (index & 7) << 3 | base & 7]);
                    }
                }
                match (mode, short) {
                    (0, _) => {}
                    (0x40, Some(short)) => self.bytes.push(short as u8),
                    _ => self.put(&disp.to_le_bytes()),
                }
            }
        }
    }

    /// A new label.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    /// Says where a label is.
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.bytes.len());
    }

    /// Fills up to a multiple of `align` with instructions that do nothing.
    pub(super) fn align(&mut self, align: usize) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let mut gap = self.bytes.len().next_multiple_of(align) - self.bytes.len();
        while gap > 0 {
            let nop = NOPS[gap.min(NOPS.len()) - 1];
            self.put(nop);
            gap -= nop.len();
        }
    }

    /// Jumps, on a condition or always.
    pub(super) fn jump(&mut self, cond: Option<Cond>, label: Label) {
        if let Some(to) = self.labels[label.0 as usize] {
            let short = to as i64 - (self.bytes.len() as i64 + 2);
            if let Ok(short) = i8::try_from(short) {
                let code = cond.map_or(0xeb, |cond| 0x70 | cond as u8);
                return self.put(&[code, short as u8]);
            }
        }
        match cond {
            Some(cond) => self.put(&[0x0f, 0x80 | cond as u8]),
            None => self.put(&[0xe9]),
        }
        self.jumps.push((self.bytes.len(), label));
        self.put(&[0; 4]);
    }

    /// The code with its constants behind it.
    ///
    /// # Panics
    /// If a label was not placed, or the code is larger than 2 GiB.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let fits = "displacements fit 32 bits";
        for (at, label) in std::mem::take(&mut self.jumps) {
            let to = self.labels[label.0 as usize].expect("every label is placed");
            let by = i32::try_from(to as i64 - (at as i64 + 4)).expect(fits);
            self.bytes[at..at + 4].copy_from_slice(&by.to_le_bytes());
        }
        if !self.pool.is_empty() {
            let start = self.bytes.len().next_multiple_of(64);
            // What lies between is never executed; `int3` says so.
            self.bytes.resize(start, 0xcc);
            for (at, from, constant) in std::mem::take(&mut self.pool_uses) {
                let by = i32::try_from(start + constant - from).expect(fits);
                self.bytes[at..at + 4].copy_from_slice(&by.to_le_bytes());
            }
            self.bytes.append(&mut self.pool);
        }
        self.bytes
    }
}
