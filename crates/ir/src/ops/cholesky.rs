//! `cholesky` and `triangular-solve`: linear algebra on batches of square matrices.

use super::Arity;
use super::check::{ensure_same_element, merge_dim};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ArrayShape, InferCx, OpDef, Result, Shape, ensure};

/// The triangular factor of each positive definite matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cholesky {
    /// Whether the lower triangle is read and written; else the upper.
    pub lower: bool,
}

impl OpDef for Cholesky {
    const OPCODE: &'static str = "cholesky";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let a = cx.array("cholesky.C1", 0)?;
        ensure_matrices(["cholesky.C2", "cholesky.C3", "cholesky.C4"], a)?;
        Ok(Shape::Array(a.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Cholesky { lower: attrs.flag("lower")?.unwrap_or(false) })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.flag("lower", self.lower);
    }
}

/// Errors: `rules`, in this order: `a` does not hold floats or complex numbers, has less than two
/// dimensions, or the last two differ.
fn ensure_matrices(rules: [&'static str; 3], a: &ArrayShape) -> Result<()> {
    let [element_rule, rank_rule, square_rule] = rules;
    let (element, rank) = (a.element(), a.rank());
    ensure!(
        element.is_float() || element.is_complex(),
        element_rule,
        "operand 0 must hold floats or complex numbers, is {a}"
    );
    ensure!(rank >= 2, rank_rule, "operand 0 must have at least 2 dimensions, is {a}");
    ensure!(
        merge_dim(a.dim(rank - 2), a.dim(rank - 1)).is_some(),
        square_rule,
        "operand 0 must be square in dimensions {} and {}, is {a}",
        rank - 2,
        rank - 1
    );
    Ok(())
}

/// Solves `op(a) x = b` or `x op(a) = b` for triangular `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriangularSolve {
    /// Whether `op(a)` stands left of `x`.
    pub left_side: bool,
    /// Whether the lower triangle of `a` is read.
    pub lower: bool,
    /// Whether the diagonal is taken for ones.
    pub unit_diagonal: bool,
    /// What `op` is.
    pub transpose_a: TransposeA,
}

impl OpDef for TriangularSolve {
    const OPCODE: &'static str = "triangular-solve";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let (a, b) = (cx.array("triangular-solve.C1", 0)?, cx.array("triangular-solve.C1", 1)?);
        ensure_matrices(["triangular-solve.C2", "triangular-solve.C3", "triangular-solve.C4"], a)?;
        ensure_same_element("triangular-solve.C5", &[a, b])?;
        let rank = a.rank();
        ensure!(
            b.rank() == rank,
            "triangular-solve.C6",
            "operand 1 must have {rank} dimensions as operand 0, {a}; is {b}"
        );
        let shared = if self.left_side { rank - 2 } else { rank - 1 };
        ensure!(
            merge_dim(a.dim(rank - 1), b.dim(shared)).is_some(),
            "triangular-solve.C7",
            "left_side={}: dimension {shared} of operand 1 must have the size of the matrices in \
             {a}, is {b}",
            self.left_side
        );
        for d in 0..rank - 2 {
            ensure!(
                merge_dim(a.dim(d), b.dim(d)).is_some(),
                "triangular-solve.C8",
                "batch dimension {d} of operand 1 must have the size it has in {a}, is {b}"
            );
        }
        Ok(Shape::Array(b.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let transpose = |attrs: &mut AttrReader<'_>, name: &str| {
            attrs.parse(name, |scan| TransposeA::from_word(scan.word()?))
        };
        Ok(TriangularSolve {
            left_side: attrs.flag("left_side")?.unwrap_or(false),
            lower: attrs.flag("lower")?.unwrap_or(false),
            unit_diagonal: attrs.flag("unit_diagonal")?.unwrap_or(false),
            // XLA, too, knows no default: it takes a missing word for an invalid one.
            transpose_a: attrs.needed("transpose_a", transpose)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        attrs.flag("left_side", self.left_side);
        attrs.flag("lower", self.lower);
        attrs.flag("unit_diagonal", self.unit_diagonal);
        attrs.put("transpose_a", self.transpose_a);
    }
}

crate::ops::words! {
    /// What is done to `a` before solving.
    TransposeA {
        /// Nothing.
        NoTranspose = "NO_TRANSPOSE",
        /// Transposed.
        Transpose = "TRANSPOSE",
        /// Transposed and conjugated.
        Adjoint = "ADJOINT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::infer;

    #[test]
    fn results() {
        let cholesky = Cholesky { lower: true };
        assert_eq!(infer(cholesky, &["c64[<=5,3,3]"]), "c64[<=5,3,3]");
        assert_eq!(infer(cholesky, &["f32[0,0]"]), "f32[0,0]");
        assert_eq!(infer(cholesky, &["f32[3,?]"]), "f32[3,?]");
        let solve = |left_side| TriangularSolve {
            left_side,
            lower: true,
            unit_diagonal: false,
            transpose_a: TransposeA::NoTranspose,
        };
        assert_eq!(infer(solve(true), &["f32[2,3,3]", "f32[2,3,4]"]), "f32[2,3,4]");
        assert_eq!(infer(solve(false), &["f32[2,3,3]", "f32[2,4,3]"]), "f32[2,4,3]");
        assert_eq!(infer(solve(false), &["f32[3,3]", "f32[3,4]"]), "triangular-solve.C7");
        assert_eq!(infer(solve(true), &["f32[]", "f32[]"]), "triangular-solve.C3");
    }
}
