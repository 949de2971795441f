//! Systems with tridiagonal matrices.

use super::super::bytes::{bytes_of, bytes_of_mut, cast, cast_mut};
use super::super::copy::{Axis, Copy};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::real::{LANES, Lanes};
use super::side_by_side::{less_product, zipped};
use super::{Field, FieldType, with_field};
use crate::Threads;

/// Solves batches of tridiagonal systems as LAPACK's `gtsv` does, by elimination with exchanges of neighbouring
/// rows.
///
/// One system is a chain of operations that wait for each other, so several are solved side by side.
#[derive(Clone, Debug)]
pub struct TridiagonalSolve {
    ty: FieldType,
    batch: usize,
    n: usize,
    columns: usize,
    /// How a group's diagonals and right sides are laid out side by side, and back: of whole groups, and of the last
    /// one, if it has fewer systems.
    side_by_side: Option<[SideBySide; 2]>,
}

/// The copies of a group of this many systems.
#[derive(Clone, Debug)]
struct SideBySide {
    systems: usize,
    diagonals: [Copy; 2],
    right_sides: [Copy; 2],
}

impl SideBySide {
    fn new(systems: usize, n: usize, columns: usize, element_size: usize) -> Option<Self> {
        let copies = |size: usize| {
            let step = isize::try_from(size).ok()?;
            let axis = |size, from, to| Axis { size, from, to };
            let there = [axis(systems, step, 1), axis(size, 1, LANES as isize)];
            let back = there.map(|a| axis(a.size, a.to, a.from));
            Some([Copy::new(&there, element_size)?, Copy::new(&back, element_size)?])
        };
        let [diagonals, right_sides] = [copies(n)?, copies(n.checked_mul(columns)?)?];
        Some(SideBySide { systems, diagonals, right_sides })
    }
}

/// The results of [`TridiagonalSolve::run`]. Those that nobody needs may be empty, but for `x` and `info`.
#[derive(Debug)]
pub struct TridiagonalResults<'r> {
    /// As the operand but for what is two above the diagonal of the triangle: of row `i` at `i + 1`.
    pub lower: &'r mut [u8],
    /// The diagonal of the triangle.
    pub diagonal: &'r mut [u8],
    /// What is one above it.
    pub upper: &'r mut [u8],
    /// The solutions.
    pub x: &'r mut [u8],
    /// For each system, in `i32`, 0 or the number, from 1, of the first pivot that is zero. The system's other results
    /// are what was known by then.
    pub info: &'r mut [u8],
}

/// For fewer systems it is not worth while to lay them out side by side.
const MIN_BATCH: usize = 4;

impl TridiagonalSolve {
    /// A plan for `batch` matrices `n`×`n` and their right sides, `n`×`columns`. `None` if sizes overflow.
    pub fn new(ty: FieldType, batch: usize, n: usize, columns: usize) -> Option<Self> {
        let elements = n.checked_mul(columns.checked_add(3)?)?;
        isize::try_from(batch.max(LANES).checked_mul(elements)?.checked_mul(ty.size())?).ok()?;
        let is_real = matches!(ty, FieldType::F32 | FieldType::F64);
        let side_by_side = if is_real && batch >= MIN_BATCH && n > 1 && columns > 0 {
            let group = |systems| SideBySide::new(systems, n, columns, ty.size());
            Some([group(LANES)?, group(batch % LANES)?])
        } else {
            None
        };
        Some(TridiagonalSolve { ty, batch, n, columns, side_by_side })
    }

    /// Solves for `x`, of which the operands are the elements below the diagonal, those on it, and those above it,
    /// all by rows (the first of `lower` and the last of `upper` mean nothing), and the right sides.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn run(
        &self,
        [lower, diagonal, upper, b]: [&[u8]; 4],
        results: TridiagonalResults<'_>,
        threads: Threads<'_>,
    ) {
        let TridiagonalResults { lower: to_lower, diagonal: to_diagonal, upper: to_upper, x, info } =
            results;
        let info = cast_mut::<i32>(info);
        if self.batch * self.n == 0 {
            return info.fill(0);
        }
        with_field!(self.ty, T => {
            let diagonals = [lower, diagonal, upper].map(cast::<T>);
            let mut of = [to_lower, to_diagonal, to_upper].map(cast_mut::<T>);
            let [lower, diagonal, upper] = &mut of;
            let of = [&mut **lower, &mut **diagonal, &mut **upper].map(Disjoint::new);
            self.typed(diagonals, cast(b), of, (cast_mut(x), Disjoint::new(info)), threads);
        });
    }

    fn typed<T: Field>(
        &self,
        diagonals: [&[T]; 3],
        b: &[T],
        results: [Disjoint<'_, T>; 3],
        (x, info): (&mut [T], Disjoint<'_, i32>),
        threads: Threads<'_>,
    ) {
        let TridiagonalSolve { batch, n, columns, .. } = *self;
        let systems = if self.side_by_side.is_some() { LANES } else { 1 };
        let size = n * columns;
        let body = |first: usize, count: usize, x: &mut [T]| {
            x.copy_from_slice(&b[first * size..][..x.len()]);
            let from = diagonals.map(|diagonal| &diagonal[first * n..][..count * n]);
            let to = results.each_ref().map(|to| match to.is_empty() {
                true => &mut [][..],
                // SAFETY: each system's are at its number.
                false => unsafe { to.part(first * n, count * n) },
            });
            // SAFETY: each system's number is at its own place.
            let info = unsafe { info.part(first, count) };
            match &self.side_by_side {
                Some(groups) => {
                    let group = &groups[usize::from(count < LANES)];
                    solve_group(group, [n, columns], from, to, (x, info));
                }
                None => info[0] = solve_one([n, columns], from, to, x),
            }
        };
        if size == 0 {
            // There is no chunk of no right sides.
            for first in (0..batch).step_by(systems) {
                body(first, systems.min(batch - first), &mut []);
            }
            return;
        }
        threads.for_chunks(&mut x[..batch * size], systems * size, &|number, x| {
            body(number * systems, x.len() / size, x);
        });
    }
}

/// Solves a system, `x` being the right sides at first. Gives its `info`.
fn solve_one<T: Field>(
    [n, columns]: [usize; 2],
    from: [&[T]; 3],
    to: [&mut [T]; 3],
    x: &mut [T],
) -> i32 {
    let mut info = 0;
    scratch::with(3 * n, |work: &mut [T]| {
        for (work, from) in work.chunks_exact_mut(n).zip(from) {
            work.copy_from_slice(from);
        }
        let (lower, rest) = work.split_at_mut(n);
        let (diagonal, upper) = rest.split_at_mut(n);
        info = eliminate([&mut lower[1..], diagonal, upper], columns, x);
        if info == 0 {
            substitute([&lower[1..], diagonal, upper], columns, x);
        }
        for (to, work) in to.into_iter().zip(work.chunks_exact(n)) {
            if !to.is_empty() {
                to.copy_from_slice(work);
            }
        }
    });
    info
}

/// Makes a matrix upper triangular, in place: of the elements below the diagonal, which begin with the second row's,
/// there are those two above it then.
fn eliminate<T: Field>(of: [&mut [T]; 3], columns: usize, x: &mut [T]) -> i32 {
    let [lower, diagonal, upper] = of;
    let n = diagonal.len();
    let (lower, upper) = (&mut lower[..n - 1], &mut upper[..n]);
    // What is on the diagonal and above it, of the row that is eliminated with.
    let (mut on, mut above) = (diagonal[0], upper[0]);
    for i in 0..n - 1 {
        let (below, next) = (lower[i], diagonal[i + 1]);
        let beyond = if i + 2 < n { upper[i + 1] } else { T::ZERO };
        let is_kept = on.size() >= below.size();
        if is_kept && on == T::ZERO {
            return number(i);
        }
        let (far, factor);
        if is_kept {
            factor = below / on;
            (diagonal[i], upper[i], far) = (on, above, T::ZERO);
            (on, above) = (next - factor * above, beyond);
        } else {
            factor = on / below;
            (diagonal[i], upper[i], far) = (below, next, beyond);
            (on, above) = (above - factor * next, T::ZERO - factor * beyond);
        }
        // (Until then they are where they were, should a pivot be zero.)
        diagonal[i + 1] = on;
        if i + 2 < n {
            (lower[i], upper[i + 1]) = (far, above);
        }
        let (first, second) = x[i * columns..][..2 * columns].split_at_mut(columns);
        for (x, y) in first.iter_mut().zip(second) {
            (*x, *y) = if is_kept { (*x, *y - factor * *x) } else { (*y, *x - factor * *y) };
        }
    }
    if on == T::ZERO { number(n - 1) } else { 0 }
}

/// Solves for `x` with what [`eliminate`] leaves.
fn substitute<T: Field>(of: [&[T]; 3], columns: usize, x: &mut [T]) {
    let [far, diagonal, upper] = of;
    let n = diagonal.len();
    for i in (0..n).rev() {
        let pivot = diagonal[i];
        let above = if i + 1 < n { upper[i] } else { T::ZERO };
        let far = if i + 2 < n { far[i] } else { T::ZERO };
        // Its inverse does not wait for what is below.
        let inverse = (pivot.size() >= T::LEAST).then(|| T::ONE / pivot);
        let (x, below) = x[i * columns..].split_at_mut(columns);
        for (c, x) in x.iter_mut().enumerate() {
            let mut sum = *x;
            if i + 2 < n {
                sum = sum - far * below[columns + c];
            }
            if i + 1 < n {
                sum = sum - above * below[c];
            }
            *x = match inverse {
                Some(inverse) => sum * inverse,
                None => sum / pivot,
            };
        }
    }
}

fn number(i: usize) -> i32 {
    i32::try_from(i + 1).unwrap_or(i32::MAX)
}

/// Solves a group of systems side by side; each for itself if one of them has a pivot that is zero.
fn solve_group<T: Field>(
    group: &SideBySide,
    [n, columns]: [usize; 2],
    from: [&[T]; 3],
    to: [&mut [T]; 3],
    (x, info): (&mut [T], &mut [i32]),
) {
    let size = n * columns;
    let mut is_solved = false;
    let mut to = to;
    scratch::with((3 * n + size) * LANES, |work: &mut [T]| {
        if group.systems < LANES {
            // Lanes without a system have one that can be solved.
            identities(work, n);
        }
        let copy = |copy: &Copy, from: &[T], to: &mut [T]| {
            copy.run((bytes_of(from), 0), (bytes_of_mut(to), 0), Threads::single());
        };
        let (diagonals, right_sides) = work.split_at_mut(3 * n * LANES);
        for (from, to) in from.iter().zip(diagonals.chunks_exact_mut(n * LANES)) {
            copy(&group.diagonals[0], from, to);
        }
        copy(&group.right_sides[0], x, right_sides);
        let (diagonals, right_sides) = (diagonals.as_chunks_mut().0, right_sides.as_chunks_mut().0);
        vectorised(
            #[inline(always)]
            || is_solved = solve_lanes(diagonals, columns, right_sides),
        );
        if is_solved {
            copy(&group.right_sides[1], right_sides.as_flattened(), x);
            for (from, to) in diagonals.as_flattened().chunks_exact(n * LANES).zip(&mut to) {
                if !to.is_empty() {
                    copy(&group.diagonals[1], from, to);
                }
            }
        }
    });
    if is_solved {
        return info.fill(0);
    }
    for (s, (x, info)) in x.chunks_exact_mut(size).zip(info).enumerate() {
        let from = from.map(|from| &from[s * n..][..n]);
        let to = to.each_mut().map(|to| match to.is_empty() {
            true => &mut [][..],
            false => &mut to[s * n..][..n],
        });
        *info = solve_one([n, columns], from, to, x);
    }
}

/// The diagonals of identities in all lanes, and zeros after them.
fn identities<T: Field>(work: &mut [T], n: usize) {
    work.fill(T::ZERO);
    work[n * LANES..][..n * LANES].fill(T::ONE);
}

/// Solves systems in lanes: their three diagonals one after the other, and right sides. Gives whether it was done: not
/// if a pivot is zero.
#[inline(always)]
fn solve_lanes<T: Field>(of: &mut [Lanes<T>], columns: usize, x: &mut [Lanes<T>]) -> bool {
    let n = of.len() / 3;
    let (lower, rest) = of.split_at_mut(n);
    let (diagonal, upper) = rest.split_at_mut(n);
    let lower = &mut lower[1..];
    let zero = [T::ZERO; LANES];
    let (mut on, mut above) = (diagonal[0], upper[0]);
    for i in 0..n - 1 {
        let is_last = i + 2 == n;
        let (below, next) = (lower[i], diagonal[i + 1]);
        let beyond = if is_last { zero } else { upper[i + 1] };
        let was_on = on;
        let [mut pivot, mut factor, mut beside, mut far] = [zero; 4];
        for l in 0..LANES {
            let (a, b) = (on[l], below[l]);
            let is_kept = a.size() >= b.size();
            let (upper, lower) = (above[l], next[l]);
            pivot[l] = if is_kept { a } else { b };
            factor[l] = if is_kept { b } else { a } / pivot[l];
            beside[l] = if is_kept { upper } else { lower };
            on[l] = if is_kept { lower } else { upper } - factor[l] * beside[l];
            let beyond = beyond[l];
            far[l] = if is_kept { T::ZERO } else { beyond };
            let moved = T::ZERO - factor[l] * beyond;
            above[l] = if is_kept { beyond } else { moved };
        }
        if any(&pivot, |v| v == T::ZERO) {
            return false;
        }
        (diagonal[i], upper[i]) = (pivot, beside);
        if !is_last {
            lower[i] = far;
        }
        let (first, second) = x[i * columns..][..2 * columns].split_at_mut(columns);
        for (x, y) in first.iter_mut().zip(second) {
            let (first, second) = (*x, *y);
            for l in 0..LANES {
                let is_kept = was_on[l].size() >= below[l].size();
                let (a, b) = (first[l], second[l]);
                x[l] = if is_kept { a } else { b };
                y[l] = if is_kept { b } else { a } - factor[l] * x[l];
            }
        }
    }
    diagonal[n - 1] = on;
    if any(&on, |v| v == T::ZERO) {
        return false;
    }
    for i in (0..n).rev() {
        let pivot = diagonal[i];
        let above = if i + 1 < n { upper[i] } else { zero };
        let far = if i + 2 < n { lower[i] } else { zero };
        let are_small = any(&pivot, |pivot| pivot.size() < T::LEAST);
        let inverse = pivot.map(|pivot| T::ONE / pivot);
        let (x, below) = x[i * columns..].split_at_mut(columns);
        for (c, x) in x.iter_mut().enumerate() {
            let mut sum = *x;
            if i + 2 < n {
                sum = less_product(sum, far, below[columns + c]);
            }
            if i + 1 < n {
                sum = less_product(sum, above, below[c]);
            }
            *x = match are_small {
                true => zipped(sum, pivot, divided),
                false => zipped(sum, inverse, |sum, inverse| sum * inverse),
            };
        }
    }
    true
}

/// A quotient, by way of the inverse if that is finite.
#[inline(always)]
fn divided<T: Field>(v: T, pivot: T) -> T {
    if pivot.size() >= T::LEAST { v * (T::ONE / pivot) } else { v / pivot }
}

/// Whether a condition holds in some lane. (All are looked at, which takes no branches.)
#[inline(always)]
fn any<T: Field>(lanes: &Lanes<T>, condition: impl Fn(T) -> bool) -> bool {
    lanes.iter().fold(false, |found, &v| found | condition(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_without_a_system_do_not_stop_the_others() {
        for n in 2..10 {
            let mut work = vec![7.0f64; (3 * n + n) * LANES];
            identities(&mut work, n);
            let (diagonals, x) = work.split_at_mut(3 * n * LANES);
            assert!(solve_lanes(diagonals.as_chunks_mut().0, 1, x.as_chunks_mut().0), "{n}");
            assert!(x.iter().all(|&x| x == 0.0), "{n}");
        }
    }
}
