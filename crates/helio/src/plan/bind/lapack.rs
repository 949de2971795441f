//! LAPACK's functions by the names that JAX gives them: kernels on the arrays where they lie, where a call of
//! the host's function ([`crate::linalg`]) copies its operands and results from order to order.
//!
//! Cholesky's, LU and QR factors of any size, products with reflectors, triangular and tridiagonal systems and, of real
//! numbers, eigenvalues of symmetric matrices and singular values are the runtime's kernels, which take row-major matrices. QR
//! factors of small matrices are routines that take them by columns, for which they are transposed into working memory.
//! The order in which the program has the function see its operands makes no difference to what they are.

use helio_codegen::kernel::Kernel;
use helio_codegen::{Vouched, linalg as codegen};
use helio_ir::types::Plain;
use helio_ir::{ArrayShape, BackendConfig, Dictionary, ElementType, ops};
use helio_linalg::{Alone, Complex, Reflectors, Side, Transpose};
use helio_runtime::kernels::linalg::{
    Cholesky, Eigh, Lu, MultiplyFlags, Qr, QrMultiply, Svd, SvdResults, SvdVectors,
    TriangularFlags, TriangularSolve, TridiagonalResults, TridiagonalSolve,
};
use helio_runtime::program::Failure;

use super::linalg::field_type;
use super::{Bound, InstrShapes};
use crate::linalg::{
    Element, TASK_OPERATIONS, is_by_rows_or_columns, letter_of, operations, transpose,
};

/// Matrices of up to so many elements are too small for QR factors in panels, unless they are side by side: what
/// panels are padded with would be most of the work.
const fn panel_elements<T: Element>() -> usize {
    if T::IS_COMPLEX { 1024 } else { 256 }
}

/// The kernel of a call; `None` if it is none of these functions, is one that has a kernel on one thread only
/// and takes more than that should do at once, or has other operands, results or attributes than the function
/// takes, which that reports.
pub(super) fn custom_call(site: &InstrShapes<'_>, op: &ops::CustomCall) -> Option<Bound> {
    let (call, letter, name) = call(site, op)?;
    match letter {
        "s" => call.bind::<f32>(name),
        "d" => call.bind::<f64>(name),
        "c" => call.bind::<Complex<f32>>(name),
        "z" => call.bind::<Complex<f64>>(name),
        _ => None,
    }
}

/// Whether [`generated`] may have code for calls of a function.
pub(super) fn is_generated(target: &str) -> bool {
    let name = target.strip_prefix("lapack_").and_then(|name| name.strip_suffix("_ffi"));
    name.is_some_and(|name| {
        ["spotrf", "dpotrf", "sgetrf", "dgetrf", "strsm", "dtrsm"].contains(&name)
    })
}

/// Generated code for the call, if matrices are small enough, for vectors of so many lanes, and its work in
/// processor cycles; `None` as above, and for other functions.
pub(super) fn generated(
    site: &InstrShapes<'_>,
    op: &ops::CustomCall,
    lanes: usize,
) -> Option<(Vouched<Kernel>, u64)> {
    let (call, letter, name) = call(site, op)?;
    match letter {
        "s" => call.generated::<f32>(name, lanes),
        "d" => call.generated::<f64>(name, lanes),
        _ => None,
    }
}

/// A call of one of LAPACK's functions, the letter of its type, and its name without that.
fn call<'s>(
    site: &'s InstrShapes<'s>,
    op: &'s ops::CustomCall,
) -> Option<(Site<'s>, &'s str, &'s str)> {
    let name = op.target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let (letter, name) = name.split_at_checked(1)?;
    if site.client.custom_calls().is_replaced(&op.target) || op.has_side_effect {
        return None;
    }
    let seen = op.operand_layouts.iter().flatten().chain([&op.shape]);
    let mut seen = seen.flat_map(|shape| shape.leaves());
    let is_seen = seen.all(|shape| shape.as_array().is_some_and(is_by_rows_or_columns));
    is_seen.then_some((Site { site }, letter, name))
}

/// A call of `potrf`: a batch of matrices `n`×`n`, of which one triangle is factored.
struct Potrf {
    count: usize,
    n: usize,
    is_lower: bool,
    /// Whether one thread should do it all at once.
    is_small: bool,
}

/// A call of `getrf`: a batch of matrices `m`×`n`.
struct Getrf {
    count: usize,
    m: usize,
    n: usize,
    /// As of [`Potrf`].
    is_small: bool,
}

/// A call of `trsm`: a batch of systems of this order, with as many right-hand sides as `free` says.
struct Trsm {
    count: usize,
    /// As of [`Potrf`].
    is_small: bool,
    order: usize,
    free: usize,
    is_left: bool,
    is_lower: bool,
    transpose: Transpose,
    is_unit: bool,
}

/// The arrays and attributes of a call.
struct Site<'s> {
    site: &'s InstrShapes<'s>,
}

impl Site<'_> {
    fn bind<T: Element>(&self, name: &str) -> Option<Bound> {
        match name {
            "potrf" => self.potrf::<T>(),
            "getrf" => self.getrf::<T>(),
            "geqrf" => self.geqrf::<T>(),
            "orgqr" if !T::IS_COMPLEX => self.orgqr::<T>(),
            "ungqr" if T::IS_COMPLEX => self.orgqr::<T>(),
            "ormqr" if !T::IS_COMPLEX => self.ormqr::<T>(),
            "unmqr" if T::IS_COMPLEX => self.ormqr::<T>(),
            "trsm" => self.trsm::<T>(),
            "gtsv" => self.gtsv::<T>(),
            "syevd" => self.syevd::<T>(),
            "gesdd" | "gesvd" => self.gesdd::<T>(),
            _ => None,
        }
    }

    /// An attribute that is one of some letters, as the number of its ASCII character.
    fn letter(&self, name: &str, allowed: &str) -> Option<char> {
        letter_of(self.attributes()?, name, allowed).ok()
    }

    fn attributes(&self) -> Option<&Dictionary> {
        let extra = self.site.instr.extra.as_ref()?;
        extra.backend_config.as_ref().and_then(BackendConfig::attributes)
    }

    /// The dimensions of operand `of` behind those of the batch, and how many problems there are, of
    /// `operations` each, if a thread should do them all at once.
    fn batch<const RANK: usize>(&self, of: usize) -> Option<(Batch<'_>, [usize; RANK])> {
        let shape = self.site.operands.get(of)?;
        let (dims, last) = shape.dims().split_at(shape.rank().checked_sub(RANK)?);
        let last: [usize; RANK] = last.try_into().ok()?;
        let some = !last.contains(&0) && !dims.contains(&0);
        some.then_some((Batch { dims, count: operations(dims) }, last))
    }

    /// Whether the call has these operands and results, of a type and with the dimensions behind those of
    /// the batch.
    fn has(&self, batch: &Batch<'_>, operands: &[Part], results: &[Part]) -> bool {
        let all = |parts: &[Part], shapes: &[&ArrayShape]| {
            parts.len() == shapes.len() && parts.iter().zip(shapes).all(|(p, s)| p.is(batch, s))
        };
        all(operands, &self.site.operands) && all(results, &self.site.results)
    }

    fn generated<T: Element>(&self, name: &str, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
        let element = T::TYPE;
        match name {
            "potrf" => {
                let Potrf { count, n, is_lower: lower, .. } =
                    self.potrf_of::<T>().filter(|call| call.is_small)?;
                let leaves = codegen::Leaves::Info;
                codegen::Cholesky { element, count, n, lower, leaves }.kernel(lanes)
            }
            "getrf" => {
                let Getrf { count, m: rows, n: columns, .. } =
                    self.getrf_of::<T>().filter(|call| call.is_small)?;
                codegen::Lu { element, count, rows, columns }.kernel(lanes)
            }
            "trsm" => {
                let call = self.trsm_of::<T>().filter(|call| call.is_small)?;
                let solve = codegen::TriangularSolve {
                    element,
                    count: call.count,
                    order: call.order,
                    free: call.free,
                    left_side: call.is_left,
                    lower: call.is_lower,
                    transpose: call.transpose != Transpose::None,
                    unit_diagonal: call.is_unit,
                };
                solve.kernel(lanes)
            }
            _ => None,
        }
    }

    fn potrf_of<T: Element>(&self) -> Option<Potrf> {
        let (batch, [n, columns]) = self.batch(0)?;
        let matrix = Part::matrix::<T>(n, n);
        let fits = n == columns && self.has(&batch, &[matrix], &[matrix, Part::number::<i32>()]);
        let is_lower = self.letter("uplo", "LU")? == 'L';
        let is_small = batch.is_small(operations(&[n, n, n]) / 3);
        fits.then_some(Potrf { count: batch.count, n, is_lower, is_small })
    }

    fn potrf<T: Element>(&self) -> Option<Bound> {
        let Potrf { count, n, is_lower, .. } = self.potrf_of::<T>()?;
        let plan = Cholesky::new(field_type(T::TYPE)?, count, n, is_lower)?;
        let scratch = plan.scratch_bytes();
        let bound = Bound::new("potrf", move |inputs, outputs, threads| {
            let [factor, info, rest @ ..] = outputs else { return };
            let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
            plan.run_with_info(inputs[0], (factor, info), scratch, threads);
        });
        Some(bound.with_scratch(scratch))
    }

    fn trsm_of<T: Element>(&self) -> Option<Trsm> {
        let (batch, [m, n]) = self.batch(1)?;
        let is_left = self.letter("side", "LR")? == 'L';
        let order = if is_left { m } else { n };
        let (a, b) = (Part::matrix::<T>(order, order), Part::matrix::<T>(m, n));
        if !self.has(&batch, &[a, b], &[b]) {
            return None;
        }
        Some(Trsm {
            count: batch.count,
            is_small: batch.is_small(operations(&[m, n, order])),
            order,
            free: if is_left { n } else { m },
            is_left,
            is_lower: self.letter("uplo", "LU")? == 'L',
            transpose: match self.letter("trans_x", "NTC")? {
                'N' => Transpose::None,
                'C' if T::IS_COMPLEX => Transpose::Adjoint,
                _ => Transpose::Transpose,
            },
            is_unit: self.letter("diag", "NU")? == 'U',
        })
    }

    fn trsm<T: Element>(&self) -> Option<Bound> {
        let Trsm { count, order, free, is_left, is_lower, transpose, is_unit, .. } =
            self.trsm_of::<T>()?;
        let flags = TriangularFlags {
            left_side: is_left,
            lower: is_lower,
            unit_diagonal: is_unit,
            transpose_a: transpose != Transpose::None,
            conjugate_a: transpose == Transpose::Adjoint,
        };
        let plan = TriangularSolve::new(field_type(T::TYPE)?, count, order, free, flags)?;
        let scratch = plan.scratch_bytes();
        let bound = Bound::new("trsm", move |inputs, outputs, threads| {
            let [x, rest @ ..] = outputs else { return };
            let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
            plan.run(inputs[0], inputs[1], x, scratch, threads);
        });
        Some(bound.with_scratch(scratch))
    }

    fn gtsv<T: Element>(&self) -> Option<Bound> {
        let (batch, [n, columns]) = self.batch(3)?;
        let (diagonal, b) = (Part::vector::<T>(n), Part::matrix::<T>(n, columns));
        let operands = [diagonal, diagonal, diagonal, b];
        let results = [diagonal, diagonal, diagonal, b, Part::number::<i32>()];
        if !self.has(&batch, &operands, &results) {
            return None;
        }
        let plan = TridiagonalSolve::new(field_type(T::TYPE)?, batch.count, n, columns)?;
        Some(Bound::new("gtsv", move |inputs, outputs, threads| {
            let [lower, diagonal, upper, x, info] = outputs else { return };
            let &[below, on, above, b] = inputs else { return };
            let results = TridiagonalResults { lower, diagonal, upper, x, info };
            plan.run([below, on, above, b], results, threads);
        }))
    }

    fn getrf_of<T: Element>(&self) -> Option<Getrf> {
        let (batch, [m, n]) = self.batch(0)?;
        let k = m.min(n);
        let matrix = Part::matrix::<T>(m, n);
        let results = [matrix, Part::vector::<i32>(k), Part::number::<i32>()];
        let is_small = batch.is_small(operations(&[m, n, k]));
        self.has(&batch, &[matrix], &results).then_some(Getrf {
            count: batch.count,
            m,
            n,
            is_small,
        })
    }

    fn getrf<T: Element>(&self) -> Option<Bound> {
        let Getrf { count, m, n, .. } = self.getrf_of::<T>()?;
        let plan = Lu::new(field_type(T::TYPE)?, count, m, n)?;
        Some(Bound::new("getrf", move |inputs, outputs, threads| {
            let [lu, pivots, info] = outputs else { return };
            plan.run(inputs[0], lu, (pivots, info), threads);
        }))
    }

    fn geqrf<T: Element>(&self) -> Option<Bound> {
        let (batch, [m, n]) = self.batch(0)?;
        let k = m.min(n);
        let matrix = Part::matrix::<T>(m, n);
        let results = [matrix, Part::vector::<T>(k)];
        if !self.has(&batch, &[matrix], &results) {
            return None;
        }
        let plan = Qr::new(field_type(T::TYPE)?, batch.count, [m, n], k);
        if let Some(plan) =
            plan.filter(|plan| plan.is_side_by_side() || m * n > panel_elements::<T>())
        {
            return Some(Bound::new("geqrf", move |inputs, outputs, threads| {
                let [packed, tau] = outputs else { return };
                plan.factor(inputs[0], packed, tau, threads);
            }));
        }
        if !batch.is_small(operations(&[2, m, n, k])) {
            return None;
        }
        let bound = Bound::fallible("geqrf", move |inputs, outputs, _| {
            let [packed, tau, work] = outputs else { return Ok(()) };
            let (from, packed) = (elements::<T>(inputs[0])?, elements_mut::<T>(packed)?);
            let (tau, work) = (elements_mut::<T>(tau)?, elements_mut::<T>(work)?);
            let problems = from.chunks_exact(m * n).zip(packed.chunks_exact_mut(m * n));
            for ((from, packed), tau) in problems.zip(tau.chunks_exact_mut(k)) {
                transpose(n, m, from, work);
                T::geqrf(&Alone, m, n, work, tau);
                transpose(m, n, work, packed);
            }
            Ok(())
        });
        Some(bound.with_scratch(m * n * size_of::<T>()))
    }

    fn orgqr<T: Element>(&self) -> Option<Bound> {
        let (batch, [m, n]) = self.batch(0)?;
        let (_, [k]) = self.batch(1)?;
        let matrix = Part::matrix::<T>(m, n);
        let operands = [matrix, Part::vector::<T>(k)];
        if m < n || k > n || !self.has(&batch, &operands, &[matrix]) {
            return None;
        }
        let plan = Qr::new(field_type(T::TYPE)?, batch.count, [m, n], k);
        if let Some(plan) =
            plan.filter(|plan| plan.is_side_by_side() || m * n > panel_elements::<T>())
        {
            return Some(Bound::new("orgqr", move |inputs, outputs, threads| {
                plan.product(inputs[0], inputs[1], outputs[0], threads);
            }));
        }
        if !batch.is_small(operations(&[4, m, n, k])) {
            return None;
        }
        let bound = Bound::fallible("orgqr", move |inputs, outputs, _| {
            let [q, work] = outputs else { return Ok(()) };
            let (packed, tau) = (elements::<T>(inputs[0])?, elements::<T>(inputs[1])?);
            let (q, work) = (elements_mut::<T>(q)?, elements_mut::<T>(work)?);
            let problems = packed.chunks_exact(m * n).zip(q.chunks_exact_mut(m * n));
            for ((packed, q), tau) in problems.zip(tau.chunks_exact(k)) {
                transpose(n, m, packed, work);
                T::orgqr(&Alone, m, n, work, tau);
                transpose(m, n, work, q);
            }
            Ok(())
        });
        Some(bound.with_scratch(m * n * size_of::<T>()))
    }

    fn syevd<T: Element>(&self) -> Option<Bound> {
        let (batch, [n, columns]) = self.batch(0)?;
        let matrix = Part::matrix::<T>(n, n);
        let results = [matrix, Part::vector::<T>(n), Part::number::<i32>()];
        if n != columns || !self.has(&batch, &[matrix], &results) {
            return None;
        }
        let is_lower = self.letter("uplo", "LU")? == 'L';
        let vectors = self.letter("mode", "VN")? == 'V';
        let plan = Eigh::new(field_type(T::TYPE)?, batch.count, n, is_lower, vectors)?;
        Some(Bound::new("syevd", move |inputs, outputs, threads| {
            let [vectors, values, info] = outputs else { return };
            plan.run(inputs[0], vectors, (values, info), threads);
        }))
    }

    fn gesdd<T: Element>(&self) -> Option<Bound> {
        let (batch, [m, n]) = self.batch(0)?;
        let k = m.min(n);
        let (matrix, values) = (Part::matrix::<T>(m, n), Part::vector::<T>(k));
        let has = |left: [usize; 2], right: [usize; 2]| {
            let [left, right] =
                [left, right].map(|[rows, columns]| Part::matrix::<T>(rows, columns));
            let results = [matrix, values, left, right, Part::number::<i32>()];
            self.has(&batch, &[matrix], &results)
        };
        let (thin, full) = (has([m, k], [k, n]), has([m, m], [n, n]));
        let (vectors, fits) = match self.letter("mode", "ASN")? {
            'A' => (SvdVectors::Full, full),
            'S' => (SvdVectors::Thin, thin),
            _ => (SvdVectors::Omitted, thin || full),
        };
        let plan = Svd::new(field_type(T::TYPE)?, batch.count, [m, n], vectors)?;
        fits.then(|| {
            Bound::new("gesdd", move |inputs, outputs, threads| {
                let [left_over, values, left, right, info] = outputs else { return };
                // What LAPACK leaves of the matrix means nothing.
                left_over.copy_from_slice(inputs[0]);
                if vectors == SvdVectors::Omitted {
                    left.fill(0);
                    right.fill(0);
                }
                plan.run(inputs[0], SvdResults { values, left, right, info }, threads);
            })
        })
    }

    fn ormqr<T: Element>(&self) -> Option<Bound> {
        let (batch, [m, n]) = self.batch(2)?;
        let (_, [rows, columns]) = self.batch(0)?;
        let (_, [k]) = self.batch(1)?;
        let attributes = self.attributes()?;
        let is_left = attributes.bool("left").ok()?;
        let is_adjoint = attributes.bool("transpose").ok()?;
        let (side, order) = if is_left { (Side::Left, m) } else { (Side::Right, n) };
        let (packed, c) = (Part::matrix::<T>(rows, columns), Part::matrix::<T>(m, n));
        let operands = [packed, Part::vector::<T>(k), c];
        if rows != order || k > rows.min(columns) || !self.has(&batch, &operands, &[c]) {
            return None;
        }
        let flags = MultiplyFlags { left_side: is_left, adjoint: is_adjoint };
        let (ty, sizes) = (field_type(T::TYPE)?, [rows, columns]);
        let plan = QrMultiply::new(ty, batch.count, sizes, k, [m, n], flags);
        if let Some(plan) = plan.filter(|_| m * n > panel_elements::<T>()) {
            return Some(Bound::new("ormqr", move |inputs, outputs, threads| {
                plan.run(inputs[0], inputs[1], inputs[2], outputs[0], threads);
            }));
        }
        if !batch.is_small(operations(&[4, m, n, k])) {
            return None;
        }
        let bound = Bound::fallible("ormqr", move |inputs, outputs, _| {
            let [product, work] = outputs else { return Ok(()) };
            let (packed, tau) = (elements::<T>(inputs[0])?, elements::<T>(inputs[1])?);
            let (c, product) = (elements::<T>(inputs[2])?, elements_mut::<T>(product)?);
            let (a, work) = elements_mut::<T>(work)?.split_at_mut(rows * columns);
            let problems = packed.chunks_exact(rows * columns).zip(tau.chunks_exact(k));
            let problems = problems.zip(c.chunks_exact(m * n).zip(product.chunks_exact_mut(m * n)));
            for ((packed, tau), (c, product)) in problems {
                transpose(columns, rows, packed, a);
                transpose(n, m, c, work);
                T::ormqr(&Alone, side, is_adjoint, m, n, Reflectors { packed: a, tau }, work);
                transpose(m, n, work, product);
            }
            Ok(())
        });
        Some(bound.with_scratch((rows * columns + m * n) * size_of::<T>()))
    }
}

/// The dimensions that all arrays of a call begin with: a batch of problems.
struct Batch<'s> {
    dims: &'s [usize],
    count: usize,
}

impl Batch<'_> {
    /// Whether one thread should do it all at once, if a problem takes this many operations.
    fn is_small(&self, operations: usize) -> bool {
        operations.max(1).saturating_mul(self.count) <= TASK_OPERATIONS
    }
}

/// The elements of an array of a call, and its dimensions behind those of the batch.
#[derive(Clone, Copy)]
struct Part {
    element: ElementType,
    dims: [usize; 2],
    rank: usize,
}

impl Part {
    fn matrix<T: Plain>(rows: usize, columns: usize) -> Self {
        Part { element: T::TYPE, dims: [rows, columns], rank: 2 }
    }

    fn vector<T: Plain>(len: usize) -> Self {
        Part { element: T::TYPE, dims: [len, 1], rank: 1 }
    }

    fn number<T: Plain>() -> Self {
        Part { element: T::TYPE, dims: [1, 1], rank: 0 }
    }

    fn is(&self, batch: &Batch<'_>, shape: &ArrayShape) -> bool {
        let dims = batch.dims.iter().chain(&self.dims[..self.rank]);
        shape.element() == self.element && shape.is_static() && shape.dims().iter().eq(dims)
    }
}

/// The elements of an operand. Errors: its memory is not aligned for them.
fn elements<T: Plain>(bytes: &[u8]) -> Result<&[T], Failure> {
    T::from_bytes(bytes).ok_or_else(|| misaligned(bytes.len()))
}

/// The elements of a result. Errors: as for [`elements`].
fn elements_mut<T: Plain>(bytes: &mut [u8]) -> Result<&mut [T], Failure> {
    let len = bytes.len();
    T::from_bytes_mut(bytes).ok_or_else(|| misaligned(len))
}

fn misaligned(bytes: usize) -> Failure {
    format!("{bytes} bytes are not aligned for their elements").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_problems_without_operations_are_not_small_whatever_they_hold() {
        let of = |count| Batch { dims: &[], count };
        assert!(of(1).is_small(0));
        assert!(!of(TASK_OPERATIONS + 1).is_small(0));
    }
}
