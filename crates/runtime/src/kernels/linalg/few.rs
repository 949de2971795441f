//! Triangular systems with few right sides: the matrix is read where it lies, once for each of them, by
//! rows. Where rows are equations, unknowns come of products of rows with what is known; where they are
//! columns, each known number changes the rest.

use super::Field;

/// As many right sides, or fewer, are solved for one by one.
pub(super) const FEW: usize = 4;

/// Rows that are taken together.
const ROWS: usize = 4;
/// The sums of a row's products that run side by side.
const LANES: usize = 16;
/// Elements of a row that are multiplied together: four for each of these sums.
const GROUP: usize = 4 * LANES;

/// How equations lie in a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equations {
    /// Whether its columns are the equations.
    pub(super) transposed: bool,
    /// Whether the last unknown is known first.
    pub(super) is_reversed: bool,
    /// Whether the diagonal is taken for ones.
    pub(super) unit_diagonal: bool,
    /// Whether conjugates are taken.
    pub(super) conjugate: bool,
}

impl Equations {
    /// Solves the system of this square matrix for `x`, which is the right side at first.
    #[inline(always)]
    pub(super) fn solve<T: Field>(self, a: &[T], x: &mut [T]) {
        match self.conjugate {
            true => self.solve_of(a, x, T::conj),
            false => self.solve_of(a, x, |v| v),
        }
    }

    #[inline(always)]
    fn solve_of<T: Field>(self, a: &[T], x: &mut [T], of: impl Fn(T) -> T + Copy) {
        let n = x.len();
        for done in (0..n).step_by(ROWS) {
            let count = ROWS.min(n - done);
            let first = if self.is_reversed { n - done - count } else { done };
            let (before, rest) = x.split_at_mut(first);
            let (block, after) = rest.split_at_mut(count);
            // A row is clamped where there are fewer.
            let rows: [&[T]; ROWS] = std::array::from_fn(|r| {
                let row = first + r.min(count - 1);
                &a[row * n..][..n]
            });
            let (known, unknown) = match self.is_reversed {
                true => ((&*after, first + count), (before, 0)),
                false => ((&*before, 0), (after, first + count)),
            };
            if !self.transposed {
                let (known, start) = known;
                let sums = products(rows.map(|row| &row[start..][..known.len()]), known, of);
                for (v, sum) in block.iter_mut().zip(sums) {
                    *v = *v - sum;
                }
            }
            self.solve_block(rows.map(|row| &row[first..][..count]), block, of);
            if self.transposed {
                let (unknown, start) = unknown;
                let rows = rows.map(|row| &row[start..][..unknown.len()]);
                subtract(rows, block, unknown, of);
            }
        }
    }

    /// Solves for a block of unknowns, given the block of the matrix on the diagonal.
    #[inline(always)]
    fn solve_block<T: Field>(self, rows: [&[T]; ROWS], x: &mut [T], of: impl Fn(T) -> T) {
        let count = x.len();
        for step in 0..count {
            let i = if self.is_reversed { count - 1 - step } else { step };
            if !self.unit_diagonal {
                x[i] = x[i] / of(rows[i][i]);
            }
            let others = if self.is_reversed { 0..i } else { i + 1..count };
            for other in others {
                let factor = if self.transposed { rows[i][other] } else { rows[other][i] };
                x[other] = x[other] - of(factor) * x[i];
            }
        }
    }
}

/// The sums of the products of rows with a vector of the same length.
#[inline(always)]
fn products<T: Field>(rows: [&[T]; ROWS], x: &[T], of: impl Fn(T) -> T + Copy) -> [T; ROWS] {
    let mut sums = [T::ZERO; ROWS];
    let (groups, rest) = x.as_chunks();
    let first = x.len() - rest.len();
    if first > 0 {
        for (sum, row) in sums.iter_mut().zip(rows) {
            let mut lanes = [T::ZERO; LANES];
            for (row, x) in row.as_chunks().0.iter().zip(groups) {
                add_products(&mut lanes, row, x, of);
            }
            let mut half = LANES / 2;
            while half > 0 {
                for lane in 0..half {
                    lanes[lane] = lanes[lane] + lanes[lane + half];
                }
                half /= 2;
            }
            *sum = lanes[0];
        }
    }
    // What is left of each row is too short for vectors; the sums of several run side by side.
    let [r0, r1, r2, r3] = rows.map(|row| &row[first..][..rest.len()]);
    let [mut s0, mut s1, mut s2, mut s3] = sums;
    for (p, &x) in rest.iter().enumerate() {
        s0 = s0 + of(r0[p]) * x;
        s1 = s1 + of(r1[p]) * x;
        s2 = s2 + of(r2[p]) * x;
        s3 = s3 + of(r3[p]) * x;
    }
    [s0, s1, s2, s3]
}

#[inline(always)]
fn add_products<T: Field>(
    sums: &mut [T; LANES],
    row: &[T; GROUP],
    x: &[T; GROUP],
    of: impl Fn(T) -> T,
) {
    for (lane, sum) in sums.iter_mut().enumerate() {
        let [a, b, c, d] = [lane, lane + LANES, lane + 2 * LANES, lane + 3 * LANES];
        let low = of(row[a]) * x[a] + of(row[b]) * x[b];
        let high = of(row[c]) * x[c] + of(row[d]) * x[d];
        *sum = *sum + (low + high);
    }
}

/// Subtracts rows, each times the number known for it.
#[inline(always)]
fn subtract<T: Field>(rows: [&[T]; ROWS], known: &[T], x: &mut [T], of: impl Fn(T) -> T) {
    if let &[k0, k1, k2, k3] = known {
        let [r0, r1, r2, r3] = rows.map(|row| &row[..x.len()]);
        for (i, v) in x.iter_mut().enumerate() {
            let sum = *v - of(r0[i]) * k0 - of(r1[i]) * k1;
            *v = sum - of(r2[i]) * k2 - of(r3[i]) * k3;
        }
        return;
    }
    for (row, &known) in rows.iter().zip(known) {
        for (v, &factor) in x.iter_mut().zip(*row) {
            *v = *v - of(factor) * known;
        }
    }
}
