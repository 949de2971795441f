//! `cholesky` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

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
        let _ = cx;
        Err(Error::unimplemented("infer cholesky"))
    }
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
        let _ = cx;
        Err(Error::unimplemented("infer triangular-solve"))
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
