//! Vectors of lanes, and what the operations do to each lane.

use std::cmp::Ordering;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use half::f16;

use crate::kernel::{BinOp, Cmp, FmaOp, UnOp};

/// Lanes that are handled together: what a loop over them compiles to has no bounds checks.
const CHUNK: usize = 16;

/// Vectors with lanes of one width. A vector of fewer lanes than a chunk has unused ones.
pub(super) struct Bank<T> {
    chunks: Vec<[T; CHUNK]>,
    /// Chunks of each vector.
    each: usize,
    /// Whether arithmetic takes subnormal numbers for zeros, and gives zeros for them.
    pub(super) flushes: bool,
}

impl<T: Copy + Default> Bank<T> {
    pub(super) fn new(vectors: usize, lanes: usize, flushes: bool) -> Self {
        let each = lanes.div_ceil(CHUNK);
        Bank { chunks: vec![[T::default(); CHUNK]; vectors * each], each, flushes }
    }

    pub(super) fn get(&self, vector: usize, lane: usize) -> T {
        self.chunks[vector * self.each + lane / CHUNK][lane % CHUNK]
    }

    pub(super) fn set(&mut self, vector: usize, lane: usize, value: T) {
        self.chunks[vector * self.each + lane / CHUNK][lane % CHUNK] = value;
    }

    pub(super) fn fill(&mut self, dst: usize, value: T) {
        self.chunks[dst * self.each..][..self.each].fill([value; CHUNK]);
    }

    pub(super) fn map1(&mut self, dst: usize, a: usize, f: impl Fn(T) -> T) {
        for i in 0..self.each {
            let a = self.chunks[a * self.each + i];
            self.chunks[dst * self.each + i] = a.map(&f);
        }
    }

    pub(super) fn map2(&mut self, dst: usize, [a, b]: [usize; 2], f: impl Fn(T, T) -> T) {
        for i in 0..self.each {
            let [a, b] = [a, b].map(|vector| self.chunks[vector * self.each + i]);
            self.chunks[dst * self.each + i] = std::array::from_fn(|l| f(a[l], b[l]));
        }
    }

    pub(super) fn map3(&mut self, dst: usize, from: [usize; 3], f: impl Fn(T, T, T) -> T) {
        for i in 0..self.each {
            let [a, b, c] = from.map(|vector| self.chunks[vector * self.each + i]);
            self.chunks[dst * self.each + i] = std::array::from_fn(|l| f(a[l], b[l], c[l]));
        }
    }

    /// A vector from one of another bank.
    pub(super) fn from1<A: Copy>(
        &mut self,
        dst: usize,
        bank: &Bank<A>,
        a: usize,
        f: impl Fn(A) -> T,
    ) {
        for i in 0..self.each {
            self.chunks[dst * self.each + i] = bank.chunks[a * self.each + i].map(&f);
        }
    }

    /// A vector from two of another bank.
    pub(super) fn from2<A: Copy>(
        &mut self,
        dst: usize,
        bank: &Bank<A>,
        [a, b]: [usize; 2],
        f: impl Fn(A, A) -> T,
    ) {
        for i in 0..self.each {
            let [a, b] = [a, b].map(|vector| bank.chunks[vector * self.each + i]);
            self.chunks[dst * self.each + i] = std::array::from_fn(|l| f(a[l], b[l]));
        }
    }

    /// Lanes of `t` or of `f`.
    pub(super) fn select(&mut self, dst: usize, masks: &Bank<bool>, mask: usize, from: [usize; 2]) {
        for i in 0..self.each {
            let mask = masks.chunks[mask * self.each + i];
            let [t, f] = from.map(|vector| self.chunks[vector * self.each + i]);
            self.chunks[dst * self.each + i] =
                std::array::from_fn(|l| if mask[l] { t[l] } else { f[l] });
        }
    }
}

/// A floating-point number of a lane.
pub(super) trait Float:
    Copy
    + Neg<Output = Self>
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    fn un(self, op: UnOp) -> Self;
    /// The exponent of a finite number that is not zero, and its mantissa, from 3/4 to 3/2.
    fn parts(self) -> (Self, Self);
    fn fma(self, b: Self, c: Self) -> Self;
    fn scale(self, by: Self) -> Self;
    /// With 14 bits of the mantissa.
    fn cut(self) -> Self;
    /// As [`BinOp::Within`] has it.
    fn within(self, bound: Self) -> Self;
}

/// The bits of a lane.
pub(super) trait Word:
    Copy
    + Default
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    type Float: Float;
    type Signed: Copy + Ord;
    fn float(self) -> Self::Float;
    fn of(float: Self::Float) -> Self;
    fn signed(self) -> Self::Signed;
    /// The bits of the zero of its sign, if they are those of a subnormal float; else the same.
    fn flushed(self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn mul_wide(self, other: Self) -> Self;
    fn shl(self, by: Self) -> Self;
    fn shr_l(self, by: Self) -> Self;
    fn shr_a(self, by: Self) -> Self;
    fn rot_l(self, by: Self) -> Self;
    fn pop_count(self) -> Self;
    fn leading_zeros(self) -> Self;
}

macro_rules! words {
    ($($word:ident, $signed:ident, $float:ident;)*) => {$(
        impl Float for $float {
            fn un(self, op: UnOp) -> Self {
                match op {
                    UnOp::Sqrt => self.sqrt(),
                    UnOp::RoundEven => self.round_ties_even(),
                    UnOp::Floor => self.floor(),
                    UnOp::Ceil => self.ceil(),
                    UnOp::Trunc => self.trunc(),
                    UnOp::RoundF16 => f16::from_f64(self.into()).to_f64() as $float,
                    UnOp::Exponent if self == 0.0 => -$float::INFINITY,
                    UnOp::Exponent if !self.is_finite() => self.abs(),
                    UnOp::Exponent => self.parts().0,
                    UnOp::Mantissa if self == 0.0 || self == $float::INFINITY => 1.0,
                    UnOp::Mantissa if self > 0.0 => self.parts().1,
                    UnOp::Mantissa => $float::NAN,
                    UnOp::Inverse => self.recip().cut(),
                    UnOp::InverseRoot => self.sqrt().recip().cut(),
                    UnOp::PopCount | UnOp::CountLeadingZeros => self,
                }
            }
            fn cut(self) -> Self {
                let less = $float::MANTISSA_DIGITS - 15;
                $float::from_bits(self.to_bits() >> less << less)
            }
            fn scale(self, by: Self) -> Self {
                // (Beyond, the result is zero or infinite.)
                let by = by.floor().clamp(-5000.0, 5000.0);
                // Two factors, none of which leaves the range.
                let half = (by / 2.0).floor();
                self * half.exp2() * (by - half).exp2()
            }
            fn within(self, bound: Self) -> Self {
                let is_beyond = self.is_nan() || self.abs() > bound.abs();
                if is_beyond { bound.copysign(self) } else { self }
            }
            fn parts(self) -> (Self, Self) {
                const EXPLICIT: u32 = $float::MANTISSA_DIGITS - 1;
                let bits = self.abs().to_bits();
                // Of subnormal numbers, the highest bit set is to be the implicit one.
                let up = EXPLICIT.saturating_sub(bits.ilog2());
                let normal = bits << up;
                let field = (normal >> EXPLICIT) as i32 - up as i32;
                let one = (1.0 as $float).to_bits();
                let fraction = normal & ((1 << EXPLICIT) - 1);
                let mantissa = $float::from_bits(one | fraction);
                let mantissa = if mantissa < 1.5 { mantissa } else { mantissa / 2.0 };
                ((field + $float::MIN_EXP - 2) as $float, mantissa)
            }
            fn fma(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
        }

        impl Word for $word {
            type Float = $float;
            type Signed = $signed;
            fn float(self) -> $float { $float::from_bits(self) }
            fn of(float: $float) -> Self { float.to_bits() }
            fn signed(self) -> $signed { self as $signed }
            fn flushed(self) -> Self {
                let (exponent, sign) = ($float::INFINITY.to_bits(), 1 << ($word::BITS - 1));
                if self & exponent == 0 { self & sign } else { self }
            }
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn mul_wide(self, other: Self) -> Self {
                (u64::from(self as u32) * u64::from(other as u32)) as $word
            }
            fn shl(self, by: Self) -> Self { if by < $word::BITS.into() { self << by } else { 0 } }
            fn shr_l(self, by: Self) -> Self { if by < $word::BITS.into() { self >> by } else { 0 } }
            fn shr_a(self, by: Self) -> Self {
                (self as $signed >> by.min(($word::BITS - 1).into())) as $word
            }
            fn rot_l(self, by: Self) -> Self { self.rotate_left((by % $word::BITS as $word) as u32) }
            fn pop_count(self) -> Self { self.count_ones().into() }
            fn leading_zeros(self) -> Self { self.leading_zeros().into() }
        }
    )*};
}

words! {
    u32, i32, f32;
    u64, i64, f64;
}

/// Of two floats the one that compares like this to the other, NaN if either is; `equal` for equal
/// ones, which differ only in the sign of zero.
fn extremum<W: Word>(x: W, y: W, wanted: Ordering, equal: W) -> W {
    match x.float().partial_cmp(&y.float()) {
        Some(Ordering::Equal) => equal,
        Some(order) if order == wanted => x,
        Some(_) => y,
        None => W::of(x.float() + y.float()),
    }
}

impl<W: Word> Bank<W> {
    /// A number as arithmetic takes it.
    pub(super) fn taken(&self, x: W) -> W {
        if self.flushes { x.flushed() } else { x }
    }

    /// Arithmetic on floats.
    fn float1(&mut self, dst: usize, a: usize, f: impl Fn(W) -> W) {
        match self.flushes {
            true => self.map1(dst, a, |x| f(x.flushed()).flushed()),
            false => self.map1(dst, a, f),
        }
    }

    fn float2(&mut self, dst: usize, from: [usize; 2], f: impl Fn(W, W) -> W) {
        match self.flushes {
            true => self.map2(dst, from, |x, y| f(x.flushed(), y.flushed()).flushed()),
            false => self.map2(dst, from, f),
        }
    }

    fn float3(&mut self, dst: usize, from: [usize; 3], f: impl Fn(W, W, W) -> W) {
        match self.flushes {
            true => {
                self.map3(dst, from, |x, y, z| f(x.flushed(), y.flushed(), z.flushed()).flushed())
            }
            false => self.map3(dst, from, f),
        }
    }

    pub(super) fn un(&mut self, op: UnOp, dst: usize, a: usize) {
        match op {
            UnOp::PopCount => self.map1(dst, a, W::pop_count),
            UnOp::CountLeadingZeros => self.map1(dst, a, W::leading_zeros),
            // One loop for each operation, so that each compiles to vectors.
            UnOp::Sqrt => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Sqrt))),
            UnOp::RoundEven => self.float1(dst, a, |x| W::of(x.float().un(UnOp::RoundEven))),
            UnOp::Floor => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Floor))),
            UnOp::Ceil => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Ceil))),
            UnOp::Trunc => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Trunc))),
            UnOp::RoundF16 => self.float1(dst, a, |x| W::of(x.float().un(UnOp::RoundF16))),
            UnOp::Exponent => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Exponent))),
            UnOp::Inverse => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Inverse))),
            UnOp::InverseRoot => self.float1(dst, a, |x| W::of(x.float().un(UnOp::InverseRoot))),
            UnOp::Mantissa => self.float1(dst, a, |x| W::of(x.float().un(UnOp::Mantissa))),
        }
    }

    pub(super) fn bin(&mut self, op: BinOp, float: bool, dst: usize, from: [usize; 2]) {
        // NaN is neither less nor greater, so these give `y` for it, as they should.
        match (op, float) {
            (BinOp::Add, true) => self.float2(dst, from, |x, y| W::of(x.float() + y.float())),
            (BinOp::Sub, true) => self.float2(dst, from, |x, y| W::of(x.float() - y.float())),
            (BinOp::Mul, true) => self.float2(dst, from, |x, y| W::of(x.float() * y.float())),
            (BinOp::Div, _) => self.float2(dst, from, |x, y| W::of(x.float() / y.float())),
            (BinOp::Within, _) => self.float2(dst, from, |x, y| W::of(x.float().within(y.float()))),
            (BinOp::Scale, _) => self.float2(dst, from, |x, y| W::of(x.float().scale(y.float()))),
            (BinOp::Min, true) => {
                self.float2(dst, from, |x, y| if x.float() < y.float() { x } else { y });
            }
            (BinOp::Max, true) => {
                self.float2(dst, from, |x, y| if x.float() > y.float() { x } else { y });
            }
            (BinOp::Add, false) => self.map2(dst, from, W::add),
            (BinOp::Sub, false) => self.map2(dst, from, W::sub),
            (BinOp::Mul, false) => self.map2(dst, from, W::mul),
            (BinOp::Min, false) => {
                self.map2(dst, from, |x, y| if x.signed() < y.signed() { x } else { y });
            }
            (BinOp::Max, false) => {
                self.map2(dst, from, |x, y| if x.signed() > y.signed() { x } else { y });
            }
            (BinOp::MinU, _) => self.map2(dst, from, |x, y| x.min(y)),
            (BinOp::MaxU, _) => self.map2(dst, from, |x, y| x.max(y)),
            (BinOp::Minimum, _) => {
                self.float2(dst, from, |x, y| extremum(x, y, Ordering::Less, x | y))
            }
            (BinOp::Maximum, _) => {
                self.float2(dst, from, |x, y| extremum(x, y, Ordering::Greater, x & y));
            }
            (BinOp::MulWide, _) => self.map2(dst, from, W::mul_wide),
            (BinOp::And, _) => self.map2(dst, from, |x, y| x & y),
            (BinOp::AndNot, _) => self.map2(dst, from, |x, y| !x & y),
            (BinOp::Or, _) => self.map2(dst, from, |x, y| x | y),
            (BinOp::Xor, _) => self.map2(dst, from, |x, y| x ^ y),
            (BinOp::Shl, _) => self.map2(dst, from, W::shl),
            (BinOp::ShrL, _) => self.map2(dst, from, W::shr_l),
            (BinOp::ShrA, _) => self.map2(dst, from, W::shr_a),
            (BinOp::RotL, _) => self.map2(dst, from, W::rot_l),
        }
    }

    pub(super) fn fma(&mut self, op: FmaOp, dst: usize, from: [usize; 3]) {
        let fma = |a: W::Float, b: W::Float, c: W::Float| W::of(a.fma(b, c));
        match op {
            FmaOp::Add => self.float3(dst, from, |a, b, c| fma(a.float(), b.float(), c.float())),
            FmaOp::Sub => self.float3(dst, from, |a, b, c| fma(a.float(), b.float(), -c.float())),
            FmaOp::From => self.float3(dst, from, |a, b, c| fma(-a.float(), b.float(), c.float())),
        }
    }
}

impl Bank<bool> {
    pub(super) fn compare<W: Word>(
        &mut self,
        op: Cmp,
        float: bool,
        dst: usize,
        bank: &Bank<W>,
        from: [usize; 2],
    ) {
        if float {
            let mut holds = |f: fn(W::Float, W::Float) -> bool| {
                self.from2(dst, bank, from, |x, y| f(bank.taken(x).float(), bank.taken(y).float()));
            };
            return match op {
                Cmp::Eq => holds(|x, y| x == y),
                Cmp::Ne => holds(|x, y| x != y),
                Cmp::Lt | Cmp::LtU => holds(|x, y| x < y),
                Cmp::Le | Cmp::LeU => holds(|x, y| x <= y),
                Cmp::Gt | Cmp::GtU => holds(|x, y| x > y),
                Cmp::Ge | Cmp::GeU => holds(|x, y| x >= y),
            };
        }
        match op {
            Cmp::Eq => self.from2(dst, bank, from, |x, y| x == y),
            Cmp::Ne => self.from2(dst, bank, from, |x, y| x != y),
            Cmp::Lt => self.from2(dst, bank, from, |x, y| x.signed() < y.signed()),
            Cmp::Le => self.from2(dst, bank, from, |x, y| x.signed() <= y.signed()),
            Cmp::Gt => self.from2(dst, bank, from, |x, y| x.signed() > y.signed()),
            Cmp::Ge => self.from2(dst, bank, from, |x, y| x.signed() >= y.signed()),
            Cmp::LtU => self.from2(dst, bank, from, |x, y| x < y),
            Cmp::LeU => self.from2(dst, bank, from, |x, y| x <= y),
            Cmp::GtU => self.from2(dst, bank, from, |x, y| x > y),
            Cmp::GeU => self.from2(dst, bank, from, |x, y| x >= y),
        }
    }
}
