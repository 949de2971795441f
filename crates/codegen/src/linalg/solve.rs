//! Triangular systems with small matrices.

use helio_ir::ElementType;

use super::{MAX_ORDER, less_product, mem, over};
use crate::Vouched;
use crate::kernel::{Addr, BinOp, Buf, Builder, Kernel, Mem, Value};

/// Solutions of a batch of triangular systems: `x` with `t * x = b`, or `x * t = b`, `t` being the matrix or the
/// transposed one.
///
/// Parameters of the kernel: the matrices; the right-hand sides; the solutions, of which each has the sizes of its
/// right-hand side.
#[derive(Clone, Copy, Debug)]
pub struct TriangularSolve {
    /// f32 or f64.
    pub element: ElementType,
    /// Systems.
    pub count: usize,
    /// Rows of a matrix, and columns.
    pub order: usize,
    /// The size of a right-hand side in the dimension that is not `order`.
    pub free: usize,
    /// Whether the matrix stands on the left of the solution.
    pub left_side: bool,
    /// Which triangle of the matrix is read.
    pub lower: bool,
    /// Whether it is transposed.
    pub transpose: bool,
    /// Whether the diagonal is taken for ones and not read.
    pub unit_diagonal: bool,
}

/// From here on, the columns of a right-hand side are in lanes; of fewer, those of many systems are.
const MANY_COLUMNS: usize = 8;

/// Index variables and the elements that a unit of each moves; what lanes are apart.
struct Position {
    terms: Vec<(Value, usize)>,
    lane_stride: usize,
}

impl Position {
    fn addr(&self, (buf, mem): (Buf, Mem), element: usize) -> Addr {
        let bytes = |elements: usize| (elements * mem.bytes()) as i64;
        Addr {
            buf,
            offset: bytes(element),
            terms: self.terms.iter().map(|&(value, step)| (value, bytes(step))).collect(),
            lane_stride: bytes(self.lane_stride),
        }
    }
}

impl TriangularSolve {
    /// The kernel for vectors of `lanes` lanes, and its work in processor cycles, estimated. `None` if matrices
    /// are too large or of another type.
    pub fn kernel(&self, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
        let mem = mem(self.element)?;
        let TriangularSolve { count, order, free, .. } = *self;
        if order == 0 || order > MAX_ORDER || count == 0 || free == 0 {
            return None;
        }
        let mut b = Builder::new(lanes);
        let mut param = |elements: usize, written: bool| {
            (b.param(elements * count * mem.bytes(), !written, written), mem)
        };
        let matrix = param(order * order, false);
        let given = param(order * free, false);
        let solution = param(order * free, true);
        // What is in lanes, and what a loop goes over.
        let columns_in_lanes = count == 1 || free >= MANY_COLUMNS;
        let (inner, outer) = if columns_in_lanes { (free, count) } else { (count, free) };
        let free_step = if self.left_side { 1 } else { order };
        let (matrix_step, system_step) = (order * order, order * free);
        over(&mut b, outer, 1, |b, each| {
            over(b, inner, lanes, |b, first| {
                let (system, column) = if columns_in_lanes { (each, first) } else { (first, each) };
                let term = |value: Option<Value>, step| value.map(|value| (value, step));
                let of_matrix = Position {
                    terms: term(system, matrix_step).into_iter().collect(),
                    lane_stride: if columns_in_lanes { 0 } else { matrix_step },
                };
                let terms = [term(system, system_step), term(column, free_step)];
                let of_sides = Position {
                    terms: terms.into_iter().flatten().collect(),
                    lane_stride: match (inner, columns_in_lanes) {
                        (1, _) => 0,
                        (_, true) => free_step,
                        (_, false) => system_step,
                    },
                };
                let mask = (inner > 1).then(|| {
                    let (zero, end) = (b.index(0), b.index(inner as i64));
                    b.mask_below(first.unwrap_or(zero), end)
                });
                self.write(b, (&of_matrix, &of_sides), [matrix, given, solution], mask);
            });
        });
        let work = (order * order / 2 + 15 * order) * outer * inner.div_ceil(lanes);
        Some((Vouched::new(b.finish()), work as u64))
    }

    fn write(
        &self,
        b: &mut Builder,
        (of_matrix, of_sides): (&Position, &Position),
        [matrix, given, solution]: [(Buf, Mem); 3],
        mask: Option<Value>,
    ) {
        let n = self.order;
        // On the right, what is transposed is solved: a system with the transposed matrix on the left.
        let transpose = self.transpose == self.left_side;
        let side_step = if self.left_side { self.free } else { 1 };
        let coefficient = |b: &mut Builder, i: usize, j: usize| {
            let place = if transpose { j * n + i } else { i * n + j };
            // Of lanes that are off there is no matrix to read.
            let mask = mask.filter(|_| of_matrix.lane_stride > 0);
            b.load(matrix.1, of_matrix.addr(matrix, place), mask)
        };
        let is_forward = self.lower != transpose;
        let order = |i: usize| if is_forward { i } else { n - 1 - i };
        let mut known: Vec<(usize, Value)> = Vec::with_capacity(n);
        for i in (0..n).map(order) {
            let mut x = b.load(given.1, of_sides.addr(given, i * side_step), mask);
            for &(j, other) in &known {
                let by = coefficient(b, i, j);
                x = less_product(b, x, by, other);
            }
            if !self.unit_diagonal {
                let by = coefficient(b, i, i);
                x = b.bin(BinOp::Div, x, by);
            }
            known.push((i, x));
            b.store(x, solution.1, of_sides.addr(solution, i * side_step), mask);
        }
    }
}
