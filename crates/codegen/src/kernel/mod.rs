//! The kernel IR: structured loops over vectors, in SSA form.
//!
//! A kernel reads and writes buffers (`params`) and a private `scratch`. Every vector has
//! [`Kernel::lanes`] lanes, whatever its lane type, so a value is always one register: a kernel
//! with 64-bit lanes has half the lanes of one with 32-bit lanes only. Elements narrower than a lane
//! are widened when loaded and narrowed when stored ([`Mem`]).
//!
//! A kernel is called with a range `begin..end` ([`Kernel::range`] is the whole of it), whose pieces
//! may run on different threads in any order; what is computed must not depend on how the range is
//! cut. Cuts fall on multiples of [`Kernel::grain`].
//!
//! [`Builder`] makes kernels: it shares equal values and places a value that does not depend on a
//! loop before that loop. [`Kernel::check`] checks types and scopes.

mod build;
mod check;
mod columns;
mod neighbours;
mod shared;
mod visit;
mod weave;

use crate::Vouched;

pub use build::Builder;
pub(crate) use columns::{LoadedColumns, MAX_COLUMNS, loaded_columns, stored_columns};
pub(crate) use neighbours::{Neighbours, neighbours};

/// A value of a kernel; the index of its type in [`Kernel::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

/// The type of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// 32 bits: any integer of up to 32 bits, sign- or zero-extended by whoever made it.
    I32,
    /// 64 bits.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Lane {
    /// Bytes of a lane.
    pub fn bytes(self) -> usize {
        if matches!(self, Lane::I32 | Lane::F32) { 4 } else { 8 }
    }

    /// Whether lanes are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Lane::F32 | Lane::F64)
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// A vector.
    Vector(Lane),
    /// One bit for each lane.
    Mask,
    /// A 64-bit signed scalar: loop variables and what addresses are made of.
    Index,
}

/// How elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mem {
    /// A byte, zero-extended to [`Lane::I32`]; also `pred`.
    U8,
    /// A byte, sign-extended to [`Lane::I32`].
    I8,
    /// Two bytes, zero-extended to [`Lane::I32`].
    U16,
    /// Two bytes, sign-extended to [`Lane::I32`].
    I16,
    /// [`Lane::I32`].
    I32,
    /// [`Lane::I64`].
    I64,
    /// Half precision, widened to [`Lane::F32`]; stores round to nearest, ties to even.
    F16,
    /// bfloat16, widened to [`Lane::F32`]; stores round to nearest, ties to even. NaN stays NaN.
    BF16,
    /// [`Lane::F32`].
    F32,
    /// [`Lane::F64`].
    F64,
}

impl Mem {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Mem::U8 | Mem::I8 => 1,
            Mem::U16 | Mem::I16 | Mem::F16 | Mem::BF16 => 2,
            Mem::I32 | Mem::F32 => 4,
            Mem::I64 | Mem::F64 => 8,
        }
    }

    /// The lane type a load gives and a store takes.
    pub fn lane(self) -> Lane {
        match self {
            Mem::U8 | Mem::I8 | Mem::U16 | Mem::I16 | Mem::I32 => Lane::I32,
            Mem::I64 => Lane::I64,
            Mem::F16 | Mem::BF16 | Mem::F32 => Lane::F32,
            Mem::F64 => Lane::F64,
        }
    }
}

/// A buffer that the caller passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its size in bytes: no access lies outside.
    pub bytes: usize,
    /// Whether the kernel reads it.
    pub read: bool,
    /// Whether the kernel writes it. Two buffers of which one is written do not overlap, except
    /// that the caller may pass one buffer twice where every element is read, in the same
    /// iteration, before it is written.
    pub write: bool,
    /// Whether whole vectors that are written had better go past the caches, as nobody reads them
    /// soon. The buffer's address is then a multiple of [`Param::STREAM_ALIGN`].
    pub stream: bool,
}

impl Param {
    /// What the address of a buffer is a multiple of that is written past the caches.
    pub const STREAM_ALIGN: usize = 64;

    /// What the buffer's address has to be a multiple of.
    pub fn align(&self) -> usize {
        if self.stream { Param::STREAM_ALIGN } else { 1 }
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buf {
    /// A buffer of the caller, by number.
    Param(u32),
    /// The kernel's own scratch: [`Kernel::scratch_bytes`] aligned to 64, undefined at entry,
    /// private to a call.
    Scratch,
}

/// The address of lane `l`: `offset + sum(value * bytes) + l * lane_stride`, in bytes from the start
/// of the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Addr {
    /// The buffer.
    pub buf: Buf,
    /// Constant part.
    pub offset: i64,
    /// Index values and the bytes that a unit of each moves.
    pub terms: Vec<(Value, i64)>,
    /// Bytes from a lane to the next; 0 reads one element into every lane (stores then write lane
    /// 0 only). Equal to the element's size for contiguous access; any other value is a gather or
    /// scatter, for which two and minus one times the element's size have short sequences.
    pub lane_stride: i64,
}

/// An operation of one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// Square root; float.
    Sqrt,
    /// To the nearest integer, ties to even; float.
    RoundEven,
    /// Down; float.
    Floor,
    /// Up; float.
    Ceil,
    /// Towards zero; float.
    Trunc,
    /// To the nearest half precision number, ties to even; `F32` only. NaN stays NaN.
    RoundF16,
    /// The exponent `floor(log₂ |x|)` of a number as a float; minus infinity of zeros, infinity of infinities, NaN
    /// of NaN. Only for vectors of 64 bytes.
    Exponent,
    /// `x` over a power of two, from 3/4 to 3/2; 1 of zeros and of infinity, NaN of negative numbers and NaN. Only
    /// for vectors of 64 bytes.
    Mantissa,
    /// An estimate of `1 / x`, off by at most 2^-14 of it; exact for powers of two, zeros and infinities. Its bits depend on
    /// the processor. Only for vectors of 64 bytes.
    Inverse,
    /// An estimate of `1 / √x`, off by at most 2^-14 of it; exact for powers of four, zeros and infinity, NaN of what is
    /// negative. Its bits depend on the processor. Only for vectors of 64 bytes.
    InverseRoot,
    /// Number of bits set; integer.
    PopCount,
    /// Number of leading zero bits; integer; of zero, the width.
    CountLeadingZeros,
}

/// What a fused product of `a` and `b` and a number `c` give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FmaOp {
    /// `a * b + c`
    Add,
    /// `a * b - c`
    Sub,
    /// `c - a * b`
    From,
}

/// An operation of two vectors of one type. Bitwise ones work on any lane type; float negation and
/// absolute value are `Xor` and `AndNot` with the sign bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers keep the low half.
    Mul,
    /// Quotient; float only.
    Div,
    /// `a * 2^b`, rounded once; float only. `|a|` is zero, between 1/4 and 4, or not finite; `b` is an
    /// integer of magnitude up to 250 in `F32` and 2040 in `F64`. (So two factors that are powers of
    /// two give it where there is no instruction for it.) In vectors of 64 bytes, the largest integer that is not above `b`
    /// stands for it, however large.
    Scale,
    /// Float: `a < b ? a : b`, so `b` if either is NaN. Integer: signed.
    Min,
    /// Float: `a > b ? a : b`, so `b` if either is NaN. Integer: signed.
    Max,
    /// `a`, or where its magnitude is more than that of `b` or it is a quiet NaN, `b` with the sign of `a`. Float; only for
    /// vectors of 64 bytes.
    Within,
    /// Unsigned integers.
    MinU,
    /// Unsigned integers.
    MaxU,
    /// Float: the smaller, NaN if either is; -0 is smaller than +0.
    Minimum,
    /// Float: the larger, NaN if either is; +0 is larger than -0.
    Maximum,
    /// `I64` only: the 64-bit product of the low 32 bits, unsigned.
    MulWide,
    /// Bitwise and.
    And,
    /// `!a & b`.
    AndNot,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left, by the lanes of the second operand taken unsigned; zero from the width on. Integer.
    Shl,
    /// Right, filling with zeros; zero from the width on. Integer.
    ShrL,
    /// Right, filling with the sign; all sign from the width on. Integer.
    ShrA,
    /// Left, by the lanes of the second operand modulo the width, what leaves a lane coming in again from the right.
    /// Integer.
    RotL,
}

/// A comparison. Float comparisons are false for NaN, but `Ne`, which is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less; integers signed.
    Lt,
    /// Less or equal; integers signed.
    Le,
    /// Greater; integers signed.
    Gt,
    /// Greater or equal; integers signed.
    Ge,
    /// Unsigned integers.
    LtU,
    /// Unsigned integers.
    LeU,
    /// Unsigned integers.
    GtU,
    /// Unsigned integers.
    GeU,
}

/// An operation of two masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskOp {
    /// Both.
    And,
    /// Either.
    Or,
    /// One but not the other.
    Xor,
    /// `!a & b`.
    AndNot,
}

/// A conversion between lane types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conv {
    /// The same bits under another type of the same width.
    Bits,
    /// By value, rounding to nearest even: I32→F32, I32→F64, I64→F32, I64→F64 (signed), F32→F64,
    /// F64→F32.
    Value,
    /// Float to signed integer, towards zero: F32→I32, F64→I32, F32→I64, F64→I64. NaN and values out
    /// of range give the integer's minimum.
    Trunc,
    /// Unsigned integer to float, rounding to nearest even: I32→F32, I32→F64, I64→F32, I64→F64.
    ValueU,
    /// I32→I64, sign-extended.
    Extend,
    /// I32→I64, zero-extended.
    ExtendU,
    /// I64→I32, the low half.
    Narrow,
}

/// An operation of two index values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexOp {
    /// Sum, wrapping.
    Add,
    /// Difference, wrapping.
    Sub,
    /// Product, wrapping.
    Mul,
    /// Bitwise and.
    And,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Quotient of non-negative numbers; a zero divisor gives zero.
    Div,
}

/// How lanes combine to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// A binary operation, associative up to rounding: `Add`, `Mul`, `Min`, `Max`, `MinU`, `MaxU`, `Minimum`, `Maximum`,
    /// `And`, `Or`, `Xor`. Lanes are combined by halves: lane `i` with lane `i + n/2`, and so on.
    Bin(BinOp),
}

/// A value that a loop carries from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Before the first iteration.
    pub init: Value,
    /// Its name in the body (and in the condition).
    pub param: Value,
    /// What the body gives to the next iteration.
    pub next: Value,
    /// After the last iteration; `init` if there was none.
    pub result: Value,
}

/// A list of instructions.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// In order of execution.
    pub insts: Vec<Inst>,
}

/// An instruction: `dst` is the value it defines, other fields are operands.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are explained by the variants")]
pub enum Inst {
    /// The start of the range of this call.
    Begin { dst: Value },
    /// The end of the range of this call.
    End { dst: Value },
    /// A constant index.
    IndexConst { dst: Value, value: i64 },
    /// An operation on indices.
    Index { dst: Value, op: IndexOp, a: Value, b: Value },
    /// An integer element read as an index (`mem` is an integer format; I32 is sign-extended).
    IndexLoad { dst: Value, mem: Mem, addr: Addr },
    /// Lane 0 of an integer vector as an index, sign-extended.
    Extract { dst: Value, src: Value },
    /// The same bits in every lane (the low four bytes for 32-bit lanes).
    Const { dst: Value, bits: u64 },
    /// An index in every lane, of an integer vector type; the low bits for I32.
    Splat { dst: Value, src: Value },
    /// A number in each lane, of an integer vector type.
    Numbers { dst: Value, numbers: Box<[i64]> },
    /// For each lane, number `8 + index`, modulo 16, of 16 (by their bits). `dst` and `index` have 32-bit lanes, those of
    /// `index` integers.
    Lookup { dst: Value, table: Box<[u32; 16]>, index: Value },
    /// An operation of one vector.
    Un { dst: Value, op: UnOp, a: Value },
    /// An operation of two vectors.
    Bin { dst: Value, op: BinOp, a: Value, b: Value },
    /// A product and a sum, rounded once; float.
    Fma { dst: Value, op: FmaOp, a: Value, b: Value, c: Value },
    /// A comparison of two vectors of one type; `dst` is a mask.
    Compare { dst: Value, op: Cmp, a: Value, b: Value },
    /// For each lane, `t` where the mask is set, else `f`.
    Select { dst: Value, mask: Value, t: Value, f: Value },
    /// An operation of two masks.
    Mask { dst: Value, op: MaskOp, a: Value, b: Value },
    /// A mask with every lane set if any lane of `a` is, else none: with `While`, a branch around
    /// what few vectors need.
    MaskAny { dst: Value, a: Value },
    /// A mask with every lane set, or none.
    MaskConst { dst: Value, set: bool },
    /// The lanes `l` for which `index + l < end`, all index values.
    MaskBelow { dst: Value, index: Value, end: Value },
    /// A conversion from the type of `a` to that of `dst`.
    Convert { dst: Value, op: Conv, a: Value },
    /// Reads a vector; lanes that are off are zero and are not read from memory.
    Load { dst: Value, mem: Mem, addr: Addr, mask: Option<Value> },
    /// Writes the lanes that are on.
    Store { src: Value, mem: Mem, addr: Addr, mask: Option<Value> },
    /// Reads lane `l` at `addr + index[l] * scale`, `addr.lane_stride` being ignored; `index` is an
    /// integer vector (signed), `scale` in bytes. Lanes that are off are zero. If `most` is known, indices
    /// of lanes that are on are between 0 and that, and what lies from the first such element to the end of the
    /// last may be read; otherwise nothing of lanes that are off is.
    Gather {
        dst: Value,
        mem: Mem,
        addr: Addr,
        index: Value,
        scale: i64,
        most: Option<u32>,
        mask: Option<Value>,
    },
    /// All lanes combined, in every lane.
    Reduce { dst: Value, op: Fold, a: Value },
    /// Lanes moved up by `by` (lane `l` of the result is lane `l - by` of `a`); the low lanes come
    /// from the top lanes of `fill`: lane `lanes - by + l`. `0 < by < lanes`.
    ShiftUp { dst: Value, a: Value, fill: Value, by: usize },
    /// Runs the body for `var = lo, lo + step, …` while `var < hi`; `step` is positive.
    Loop { var: Value, lo: Value, hi: Value, step: i64, carried: Vec<Carried>, body: Block },
    /// Runs `body` as long as lane 0 of the mask `go`, which `cond` computes from the carried values,
    /// is set.
    While { cond: Block, go: Value, carried: Vec<Carried>, body: Block },
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Lanes of every vector: a power of two.
    pub lanes: usize,
    /// The buffers.
    pub params: Vec<Param>,
    /// Bytes of scratch.
    pub scratch_bytes: usize,
    /// The range is `0..range`.
    pub range: i64,
    /// Pieces of the range begin at multiples of this.
    pub grain: i64,
    /// Pairs of buffers, the first read and the second written, that may be one: each element is read
    /// before it is written, by the same piece of the range. Both numbers are of [`Kernel::params`].
    pub shared: Vec<(usize, usize)>,
    /// The bytes of the only written buffer that one number of the range touches, if number `n` touches
    /// exactly those from `n * unit_bytes` to `(n + 1) * unit_bytes`.
    pub unit_bytes: Option<usize>,
    /// The type of each value.
    pub types: Vec<Ty>,
    /// What it does.
    pub body: Block,
}

impl Kernel {
    /// The type of a value.
    pub fn ty(&self, value: Value) -> Ty {
        self.types[value.0 as usize]
    }
}

impl Vouched<Kernel> {
    /// Whether whole vectors written to a buffer go past the caches ([`Param::stream`]).
    ///
    /// # Panics
    /// If there is no buffer of this number, or it is not written.
    pub fn set_stream(&mut self, param: usize, stream: bool) {
        let param = &mut self.get_mut().params[param];
        assert!(param.write || !stream, "what goes past the caches is written");
        param.stream = stream;
    }
}
