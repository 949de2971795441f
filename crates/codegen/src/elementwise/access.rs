//! Recipes of memory: loads, gathers and stores of elements of any type, and constants.

use half::f16;
use helio_ir::ElementType;

use super::kind::{FloatKind, Kind};
use super::{Elem, small};
use crate::kernel::{Addr, BinOp, Builder, Cmp, Conv, Lane, Mem, Value};

/// The bytes of the lanes that hold elements of a type, 4 or 8; `None` for types that kernels cannot
/// hold.
pub fn lane_bytes(ty: ElementType) -> Option<usize> {
    lane(ty).map(Lane::bytes)
}

/// The lanes of the vectors that hold elements of a type.
pub(crate) fn lane(ty: ElementType) -> Option<Lane> {
    Kind::of(ty).map(Kind::lane)
}

fn kind(ty: ElementType) -> Kind {
    Kind::of(ty).unwrap_or_else(|| panic!("kernels do not hold {ty}"))
}

/// The address of the imaginary parts.
fn imaginary(addr: &Addr, part: Mem) -> Addr {
    Addr { offset: addr.offset + part.bytes() as i64, ..addr.clone() }
}

/// Reads elements, whose distance is `addr.lane_stride`.
///
/// # Panics
/// If kernels do not hold the type.
pub fn load(b: &mut Builder, ty: ElementType, addr: Addr, mask: Option<Value>) -> Elem {
    read(b, ty, &addr, |b, mem, addr| b.load(mem, addr, mask))
}

/// Reads each element at its own index, of which the scale and, perhaps, the greatest are given; see
/// [`crate::kernel::Inst::Gather`].
///
/// # Panics
/// If kernels do not hold the type.
pub fn gather(
    b: &mut Builder,
    ty: ElementType,
    addr: Addr,
    index: Value,
    places: (i64, Option<u32>),
    mask: Option<Value>,
) -> Elem {
    read(b, ty, &addr, |b, mem, addr| b.gather_up_to(mem, addr, index, places, mask))
}

fn read(
    b: &mut Builder,
    ty: ElementType,
    addr: &Addr,
    mut vector: impl FnMut(&mut Builder, Mem, Addr) -> Value,
) -> Elem {
    let kind = kind(ty);
    let first = vector(b, kind.mem(), addr.clone());
    match kind {
        Kind::Pred => {
            let zero = b.int(Lane::I32, 0);
            Elem::Mask(b.compare(Cmp::Ne, first, zero))
        }
        // The high bits of a byte that holds fewer may be anything.
        Kind::Int(int) if int.bits < 8 => Elem::Vector(int.wrap(b, first)),
        Kind::Float(FloatKind::Small(format)) => Elem::Vector(small::decode(b, format, first)),
        Kind::Int(_) | Kind::Float(_) | Kind::Power => Elem::Vector(first),
        Kind::Complex(_) => {
            Elem::Complex(first, vector(b, kind.mem(), imaginary(addr, kind.mem())))
        }
    }
}

/// Writes elements, whose distance is `addr.lane_stride`.
///
/// # Panics
/// If kernels do not hold the type, or if `elem` is not of it.
pub fn store(b: &mut Builder, ty: ElementType, elem: Elem, addr: Addr, mask: Option<Value>) {
    let kind = kind(ty);
    match (kind, elem) {
        (Kind::Pred, Elem::Mask(set)) => {
            let (one, zero) = (b.int(Lane::I32, 1), b.int(Lane::I32, 0));
            let byte = b.select(set, one, zero);
            b.store(byte, Mem::U8, addr, mask);
        }
        (Kind::Float(FloatKind::Small(format)), Elem::Vector(x)) => {
            let code = small::encode(b, format, x);
            b.store(code, Mem::U8, addr, mask);
        }
        (Kind::Float(FloatKind::BF16), Elem::Vector(x)) => {
            // It is rounded, so that its high half is all of it.
            let bits = b.convert(Conv::Bits, Lane::I32, x);
            let sixteen = b.int(Lane::I32, 16);
            let half = b.bin(BinOp::ShrL, bits, sixteen);
            b.store(half, Mem::U16, addr, mask);
        }
        (Kind::Int(_) | Kind::Float(_) | Kind::Power, Elem::Vector(x)) => {
            b.store(x, kind.mem(), addr, mask)
        }
        (Kind::Complex(_), Elem::Complex(re, im)) => {
            let second = imaginary(&addr, kind.mem());
            b.store(re, kind.mem(), addr, mask);
            b.store(im, kind.mem(), second, mask);
        }
        _ => panic!("{elem:?} stored as {ty}"),
    }
}

/// An element, given by its bits as [`helio_ir::Native::to_bits`] gives them, in every lane.
///
/// # Panics
/// If kernels do not hold the type.
pub fn constant(b: &mut Builder, ty: ElementType, bits: u128) -> Elem {
    let mut float = |float: FloatKind, bits: u128| match float {
        FloatKind::Small(format) => {
            let code = b.int(Lane::I32, i64::from(bits as u8));
            small::decode(b, format, code)
        }
        FloatKind::F16 => b.float(Lane::F32, f16::from_bits(bits as u16).into()),
        FloatKind::BF16 => b.bits(Lane::F32, u64::from(bits as u16) << 16),
        FloatKind::F32 => b.bits(Lane::F32, u64::from(bits as u32)),
        FloatKind::F64 => b.bits(Lane::F64, bits as u64),
    };
    match kind(ty) {
        Kind::Float(kind) => Elem::Vector(float(kind, bits)),
        Kind::Complex(kind) => {
            let width = 8 * kind.lane().bytes();
            Elem::Complex(float(kind, bits), float(kind, bits >> width))
        }
        Kind::Power => Elem::Vector(b.int(Lane::I32, i64::from(bits as u8))),
        Kind::Pred => Elem::Mask(b.mask_const(bits & 0xff != 0)),
        Kind::Int(int) => {
            let unused = 128 - int.bits;
            let value = if int.signed {
                ((bits << unused) as i128 >> unused) as i64
            } else {
                ((bits << unused) >> unused) as i64
            };
            Elem::Vector(b.int(int.lane(), value))
        }
    }
}
