//! Factors of small matrices, and triangular systems with them, as kernels: every element is a value of its
//! own, and nothing is a loop but what goes over many problems.
//!
//! Of a batch of problems, each is in a lane. Matrices are row-major.

mod cholesky;
mod lu;
mod solve;

pub use cholesky::{Cholesky, Leaves};
pub use lu::Lu;
pub use solve::TriangularSolve;

use helio_ir::ElementType;

use crate::kernel::{Addr, BinOp, Buf, Builder, Lane, Mem, Value};

/// The largest order of a matrix: a problem's elements are values, of which registers hold some, and code
/// grows with the third power.
pub const MAX_ORDER: usize = 8;

/// How the elements of matrices lie in memory; `None` for types that kernels do not factor.
fn mem(element: ElementType) -> Option<Mem> {
    match element {
        ElementType::F32 => Some(Mem::F32),
        ElementType::F64 => Some(Mem::F64),
        _ => None,
    }
}

/// Where the problems of a batch are, one in each lane from `first` on.
#[derive(Clone, Copy)]
struct Lanes {
    /// The number of the problem in the first lane; none if there is but one problem, which is in all lanes.
    first: Option<Value>,
    /// The lanes that have a problem.
    mask: Option<Value>,
}

/// An array of a batch: where it is, and the elements that each problem has of it.
#[derive(Clone, Copy)]
struct Part {
    buf: Buf,
    mem: Mem,
    len: usize,
}

impl Part {
    fn new(b: &mut Builder, mem: Mem, len: usize, count: usize, written: bool) -> Self {
        let buf = b.param(len * count * mem.bytes(), !written, written);
        Part { buf, mem, len }
    }

    fn addr(&self, lanes: Lanes, element: usize) -> Addr {
        let step = (self.len * self.mem.bytes()) as i64;
        Addr {
            buf: self.buf,
            offset: (element * self.mem.bytes()) as i64,
            terms: lanes.first.map(|first| (first, step)).into_iter().collect(),
            lane_stride: if lanes.first.is_some() { step } else { 0 },
        }
    }

    /// An element of each problem.
    fn load(&self, b: &mut Builder, lanes: Lanes, element: usize) -> Value {
        b.load(self.mem, self.addr(lanes, element), lanes.mask)
    }

    /// Writes an element of each problem.
    fn store(&self, b: &mut Builder, lanes: Lanes, element: usize, value: Value) {
        b.store(value, self.mem, self.addr(lanes, element), lanes.mask);
    }
}

/// Writes what is done for `count` problems at once, as often as it takes.
fn each(b: &mut Builder, count: usize, body: impl FnOnce(&mut Builder, Lanes)) {
    if count == 1 {
        return body(b, Lanes { first: None, mask: None });
    }
    let lanes = b.lanes();
    over(b, count, lanes, |b, first| {
        let (zero, end) = (b.index(0), b.index(count as i64));
        let first = first.unwrap_or(zero);
        let mask = Some(b.mask_below(first, end));
        body(b, Lanes { first: Some(first), mask });
    });
}

/// Writes a loop over `0, step, …` below `count`; if that is 0 alone, there is no loop and no variable.
fn over(
    b: &mut Builder,
    count: usize,
    step: usize,
    body: impl FnOnce(&mut Builder, Option<Value>),
) {
    if count <= step {
        return body(b, None);
    }
    let (zero, end) = (b.index(0), b.index(count as i64));
    b.for_loop(zero, end, step as i64, &[], |b, first, _| {
        body(b, Some(first));
        Vec::new()
    });
}

/// `|x|`
fn abs(b: &mut Builder, x: Value) -> Value {
    let lane = b.lane(x);
    let sign = b.bits(lane, 1 << (8 * lane.bytes() - 1));
    b.bin(BinOp::AndNot, sign, x)
}

/// `a - b * c`
fn less_product(b: &mut Builder, a: Value, by: Value, c: Value) -> Value {
    let product = b.mul(by, c);
    b.sub(a, product)
}

fn nan(b: &mut Builder, lane: Lane) -> Value {
    b.float(lane, f64::NAN)
}
