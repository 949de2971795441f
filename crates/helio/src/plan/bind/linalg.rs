//! Factors of matrices, and triangular systems.

use helio_ir::{ElementType, ops};
use helio_runtime::kernels::linalg::{Cholesky, FieldType, TriangularFlags, TriangularSolve};

use super::{Bound, InstrShapes};

pub(super) fn field_type(element: ElementType) -> Option<FieldType> {
    match element {
        ElementType::F32 => Some(FieldType::F32),
        ElementType::F64 => Some(FieldType::F64),
        ElementType::C64 => Some(FieldType::C64),
        ElementType::C128 => Some(FieldType::C128),
        _ => None,
    }
}

pub(super) fn cholesky(site: &InstrShapes<'_>, op: &ops::Cholesky) -> Option<Bound> {
    let [a] = site.operands[..] else { return None };
    let (&n, outer) = a.dims().split_last()?;
    let batch = outer.split_last()?.1.iter().product();
    let plan = Cholesky::new(field_type(a.element())?, batch, n, op.lower)?;
    let scratch = plan.scratch_bytes();
    let bound = Bound::new("cholesky", move |inputs, outputs, threads| {
        let [to, rest @ ..] = outputs else { return };
        let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
        plan.run(inputs[0], to, scratch, threads);
    });
    Some(bound.with_scratch(scratch))
}

pub(super) fn triangular_solve(site: &InstrShapes<'_>, op: &ops::TriangularSolve) -> Option<Bound> {
    let [a, b] = site.operands[..] else { return None };
    let flags = TriangularFlags {
        left_side: op.left_side,
        lower: op.lower,
        unit_diagonal: op.unit_diagonal,
        transpose_a: op.transpose_a != ops::TransposeA::NoTranspose,
        conjugate_a: op.transpose_a == ops::TransposeA::Adjoint && a.element().is_complex(),
    };
    let [outer @ .., rows, cols] = b.dims() else { return None };
    let batch = outer.iter().product();
    let ty = field_type(a.element())?;
    let (n, columns) = if op.left_side { (*rows, *cols) } else { (*cols, *rows) };
    let plan = TriangularSolve::new(ty, batch, n, columns, flags)?;
    let scratch = plan.scratch_bytes();
    let bound = Bound::new("triangular-solve", move |inputs, outputs, threads| {
        let [to, rest @ ..] = outputs else { return };
        let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
        plan.run(inputs[0], inputs[1], to, scratch, threads);
    });
    Some(bound.with_scratch(scratch))
}
