//! LU factors of small matrices.

use helio_ir::ElementType;

use super::{Lanes, MAX_ORDER, Part, abs, each, less_product, mem};
use crate::Vouched;
use crate::kernel::{BinOp, Builder, Cmp, Kernel, Lane, MaskOp, Mem, Value};

/// LU factors with partial pivoting of a batch of matrices, as LAPACK's `getrf` gives them: the unit lower and the
/// upper factor in one matrix, with the rows exchanged.
///
/// Parameters of the kernel: the matrices; their factors; the pivots, s32 from 1, as many as the smaller of rows
/// and columns; and for each an s32, the number of the first pivot, from 1, that is zero, or 0.
#[derive(Clone, Copy, Debug)]
pub struct Lu {
    /// f32 or f64.
    pub element: ElementType,
    /// Matrices.
    pub count: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
}

impl Lu {
    /// The kernel for vectors of `lanes` lanes, and its work in processor cycles, estimated. `None` if matrices
    /// are too large or of another type.
    pub fn kernel(&self, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
        let mem = mem(self.element)?;
        let Lu { count, rows, columns, .. } = *self;
        let k = rows.min(columns);
        if k == 0 || rows.max(columns) > MAX_ORDER || count == 0 {
            return None;
        }
        let mut b = Builder::new(lanes);
        let matrix = Part::new(&mut b, mem, rows * columns, count, false);
        let factors = Part::new(&mut b, mem, rows * columns, count, true);
        let pivots = Part::new(&mut b, Mem::I32, k, count, true);
        let info = Part::new(&mut b, Mem::I32, 1, count, true);
        each(&mut b, count, |b, lanes| self.write(b, lanes, matrix, [factors, pivots, info]));
        let work = (2 * rows * columns * k + 20 * k) * count.div_ceil(lanes);
        Some((Vouched::new(b.finish()), work as u64))
    }

    fn write(&self, b: &mut Builder, lanes: Lanes, matrix: Part, results: [Part; 3]) {
        let [factors, pivots, info] = results;
        let zero = b.float(matrix.mem.lane(), 0.0);
        let none = b.int(Lane::I32, 0);
        let mut first_zero = none;
        let mut row = |i: usize| -> Vec<Value> {
            (0..self.columns).map(|j| matrix.load(b, lanes, i * self.columns + j)).collect()
        };
        let mut a: Vec<Vec<Value>> = (0..self.rows).map(&mut row).collect();
        for j in 0..self.rows.min(self.columns) {
            let (pivot, largest) = pivot(b, &a, j);
            let number = b.int(Lane::I32, 1);
            let number = b.add(pivot, number);
            pivots.store(b, lanes, j, number);
            let is_zero = b.compare(Cmp::Eq, largest, zero);
            let is_none = b.compare(Cmp::Eq, first_zero, none);
            let is_first = b.mask_op(MaskOp::And, is_zero, is_none);
            let this = b.int(Lane::I32, j as i64 + 1);
            first_zero = b.select(is_first, this, first_zero);
            exchange(b, &mut a, j, pivot);
            let (above, below) = a.split_at_mut(j + 1);
            let top = &above[j];
            for row in below {
                let quotient = b.bin(BinOp::Div, row[j], top[j]);
                row[j] = b.select(is_zero, row[j], quotient);
                let factor = row[j];
                for (x, &above) in row.iter_mut().zip(top).skip(j + 1) {
                    *x = less_product(b, *x, factor, above);
                }
            }
        }
        for (place, &value) in a.iter().flatten().enumerate() {
            factors.store(b, lanes, place, value);
        }
        info.store(b, lanes, 0, first_zero);
    }
}

/// The number of the first row from `j` on with the largest magnitude in column `j`, and this.
fn pivot(b: &mut Builder, a: &[Vec<Value>], j: usize) -> (Value, Value) {
    let mut at = b.int(Lane::I32, j as i64);
    let mut largest = abs(b, a[j][j]);
    for (i, row) in a.iter().enumerate().skip(j + 1) {
        let size = abs(b, row[j]);
        let is_larger = b.compare(Cmp::Gt, size, largest);
        let this = b.int(Lane::I32, i as i64);
        at = b.select(is_larger, this, at);
        largest = b.select(is_larger, size, largest);
    }
    (at, largest)
}

/// Exchanges row `j` for one of those below it, or none.
fn exchange(b: &mut Builder, a: &mut [Vec<Value>], j: usize, pivot: Value) {
    for i in j + 1..a.len() {
        let this = b.int(Lane::I32, i as i64);
        let is_pivot = b.compare(Cmp::Eq, pivot, this);
        for c in 0..a[j].len() {
            let (upper, lower) = (a[j][c], a[i][c]);
            a[j][c] = b.select(is_pivot, lower, upper);
            a[i][c] = b.select(is_pivot, upper, lower);
        }
    }
}
