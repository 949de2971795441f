//! Cholesky's factor of small matrices.

use std::iter::zip;

use helio_ir::ElementType;

use super::{Lanes, MAX_ORDER, Part, each, less_product, mem, nan};
use crate::Vouched;
use crate::kernel::{BinOp, Builder, Cmp, Kernel, Lane, MaskOp, Mem, UnOp, Value};

/// What a kernel leaves besides the factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Zeros in the other triangle, and NaN everywhere if the matrix is not positive definite.
    Zeros,
    /// The matrix in the other triangle, as LAPACK does, and as another result the number of the first
    /// pivot, from 1, that is not positive, or 0; what is computed from such a pivot on has no meaning.
    Info,
}

/// Factors of a batch of symmetric positive definite matrices: `l` with `l * transpose(l)` being the matrix, or
/// `u` with `transpose(u) * u` being it.
///
/// Parameters of the kernel: the matrices, their factors, and with [`Leaves::Info`] an s32 for each.
#[derive(Clone, Copy, Debug)]
pub struct Cholesky {
    /// f32 or f64.
    pub element: ElementType,
    /// Matrices.
    pub count: usize,
    /// Rows of each, and columns.
    pub n: usize,
    /// Whether the lower triangle is read, and written; else it is the upper one.
    pub lower: bool,
    /// What is left besides.
    pub leaves: Leaves,
}

impl Cholesky {
    /// The kernel for vectors of `lanes` lanes, and its work in processor cycles, estimated. `None` if matrices
    /// are too large or of another type.
    pub fn kernel(&self, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
        let mem = mem(self.element)?;
        let (n, count) = (self.n, self.count);
        if n == 0 || n > MAX_ORDER || count == 0 {
            return None;
        }
        let mut b = Builder::new(lanes);
        let matrix = Part::new(&mut b, mem, n * n, count, false);
        let factor = Part::new(&mut b, mem, n * n, count, true);
        let info =
            (self.leaves == Leaves::Info).then(|| Part::new(&mut b, Mem::I32, 1, count, true));
        each(&mut b, count, |b, lanes| self.write(b, lanes, matrix, (factor, info)));
        let work = (n * n * n / 6 + 20 * n + 2 * n * n) * count.div_ceil(lanes);
        Some((Vouched::new(b.finish()), work as u64))
    }

    /// The place of an element of the triangle, given that of the lower one.
    fn place(&self, i: usize, j: usize) -> usize {
        if self.lower { i * self.n + j } else { j * self.n + i }
    }

    fn write(
        &self,
        b: &mut Builder,
        lanes: Lanes,
        matrix: Part,
        (factor, info): (Part, Option<Part>),
    ) {
        let (n, lane) = (self.n, matrix.mem.lane());
        let (zero, one) = (b.float(lane, 0.0), b.float(lane, 1.0));
        let mut first_bad = b.int(Lane::I32, 0);
        let mut is_good = b.mask_const(true);
        // The rows of the factor's lower triangle.
        let mut rows: Vec<Vec<Value>> = vec![Vec::with_capacity(n); n];
        for j in 0..n {
            let mut pivot = matrix.load(b, lanes, self.place(j, j));
            for &x in &rows[j] {
                pivot = less_product(b, pivot, x, x);
            }
            let is_positive = b.compare(Cmp::Gt, pivot, zero);
            let is_first = b.mask_op(MaskOp::AndNot, is_positive, is_good);
            let number = b.int(Lane::I32, j as i64 + 1);
            first_bad = b.select(is_first, number, first_bad);
            is_good = b.mask_op(MaskOp::And, is_good, is_positive);
            let root = b.un(UnOp::Sqrt, pivot);
            let inverse = b.bin(BinOp::Div, one, root);
            rows[j].push(root);
            for i in j + 1..n {
                let mut x = matrix.load(b, lanes, self.place(i, j));
                for (&by, &other) in zip(&rows[i], &rows[j]) {
                    x = less_product(b, x, by, other);
                }
                let x = b.mul(x, inverse);
                rows[i].push(x);
            }
        }
        for (i, row) in rows.iter().enumerate() {
            for (j, &x) in row.iter().enumerate() {
                self.store(b, lanes, (matrix, factor), ((i, j), Some(x)), is_good);
                if i != j {
                    self.store(b, lanes, (matrix, factor), ((j, i), None), is_good);
                }
            }
        }
        if let Some(info) = info {
            info.store(b, lanes, 0, first_bad);
        }
    }

    /// Writes an element of the triangle, or of the other one.
    fn store(
        &self,
        b: &mut Builder,
        lanes: Lanes,
        (matrix, factor): (Part, Part),
        ((i, j), value): ((usize, usize), Option<Value>),
        is_good: Value,
    ) {
        let place = self.place(i, j);
        let lane = matrix.mem.lane();
        let value = match (value, self.leaves) {
            (Some(value), _) => value,
            (None, Leaves::Zeros) => b.float(lane, 0.0),
            (None, Leaves::Info) => matrix.load(b, lanes, place),
        };
        let value = match self.leaves {
            Leaves::Info => value,
            Leaves::Zeros => {
                let nan = nan(b, lane);
                b.select(is_good, value, nan)
            }
        };
        factor.store(b, lanes, place, value);
    }
}
