//! Products of matrices, factorisations, Fourier transforms, batch normalisation.

use super::{XlaOp, array, check};
use crate::ops::{
    BatchNormGrad, BatchNormInference, BatchNormTraining, Cholesky, Dot, DotDims, Fft, FftKind,
    Precision, RaggedDot, TransposeA, TriangularSolve,
};
use crate::types::ElementType;
use crate::{Native, Number, Result, dispatch_type};

/// Everything about a dot product but its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotOptions {
    /// Contracting and batch dimensions.
    pub dims: DotDims,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The type of the result, instead of the more precise one of the operands'.
    pub preferred_element_type: Option<ElementType>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

helio_limits::with_methods! { DotOptions {
    with_dims(dims: DotDims);
    with_precision(precision: impl Into<Vec<Precision>>);
    with_preferred_element_type(preferred_element_type: impl Into<Option<ElementType>>);
    with_algorithm(algorithm: impl Into<Option<String>>);
} }

impl From<DotDims> for DotOptions {
    fn from(dims: DotDims) -> Self {
        DotOptions { dims, ..DotOptions::default() }
    }
}

impl XlaOp {
    /// The product of vectors or matrices.
    ///
    /// Shapes: `T[n], T[n]` to `T[]`; `T[m,k], T[k]` to `T[m]`; `T[k], T[k,n]` to `T[n]`;
    /// `T[m,k], T[k,n]` to `T[m,n]`. Errors: `builder.C5` (other ranks: say what is meant with
    /// [`XlaOp::dot_general`]), the rules of `dot`. Source: E1–E4 "Dot".
    #[track_caller]
    pub fn dot(&self, rhs: impl AsRef<XlaOp>) -> XlaOp {
        let rhs = rhs.as_ref();
        let shapes =
            self.array_shape().and_then(|l| Ok((l, self.builder.shape(rhs).and_then(array)?)));
        let (lhs_shape, rhs_shape) = check!(self.builder, shapes);
        for shape in [&lhs_shape, &rhs_shape] {
            if !(1..=2).contains(&shape.rank()) {
                let detail =
                    format!("dot of {lhs_shape} and {rhs_shape}; both need 1 or 2 dimensions");
                return self.builder.report_error(crate::Error::rule("builder.C5", detail));
            }
        }
        let dims = DotDims {
            lhs_contracting: vec![lhs_shape.rank() - 1],
            rhs_contracting: vec![0],
            ..DotDims::default()
        };
        self.dot_general(rhs, dims)
    }

    /// Sums of products over contracting dimensions, for each point of the batch dimensions.
    ///
    /// Shapes: the result has the batch dimensions, then what else lhs has, then what else rhs has;
    /// its type is the more precise of both. Errors: the rules of `dot`. Source: E3–E4 "DotGeneral".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::XlaBuilder, ops::DotDims};
    /// let b = XlaBuilder::new("b");
    /// let lhs = b.parameter(0, Shape::array(F32, [7, 2, 3])?, "lhs");
    /// let rhs = b.parameter(1, Shape::array(F32, [7, 3, 5])?, "rhs");
    /// let product = lhs.dot_general(&rhs, DotDims {
    ///     lhs_contracting: vec![2],
    ///     rhs_contracting: vec![1],
    ///     lhs_batch: vec![0],
    ///     rhs_batch: vec![0],
    /// });
    /// assert_eq!(product.shape()?.to_string(), "f32[7,2,5]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn dot_general(&self, rhs: impl AsRef<XlaOp>, dims: DotDims) -> XlaOp {
        self.dot_general_with(rhs, dims.into())
    }

    /// [`XlaOp::dot_general`] with everything that can be said about a product. Errors: the rules
    /// of `dot`. Source: XLA's `DotGeneral`.
    #[track_caller]
    pub fn dot_general_with(&self, rhs: impl AsRef<XlaOp>, options: DotOptions) -> XlaOp {
        let rhs = rhs.as_ref();
        let element = self.product_type(rhs, options.preferred_element_type);
        let op = Dot {
            dims: options.dims,
            element: check!(self.builder, element),
            precision: options.precision,
            algorithm: options.algorithm,
        };
        self.builder.apply(op, &[self, rhs])
    }

    /// Products whose lhs falls into groups along a dimension, of sizes given at run time.
    ///
    /// `lhs_ragged` is that dimension of lhs, `rhs_group` the one of rhs that numbers the groups,
    /// if any. Errors: the rules of `ragged-dot`. Source: XLA's `RaggedDot`.
    #[track_caller]
    pub fn ragged_dot(
        &self,
        rhs: impl AsRef<XlaOp>,
        group_sizes: impl AsRef<XlaOp>,
        lhs_ragged: usize,
        rhs_group: Option<usize>,
        options: DotOptions,
    ) -> XlaOp {
        let rhs = rhs.as_ref();
        let element = self.product_type(rhs, options.preferred_element_type);
        let op = RaggedDot {
            dims: options.dims,
            lhs_ragged: vec![lhs_ragged],
            rhs_group: rhs_group.into_iter().collect(),
            element: check!(self.builder, element),
            precision: options.precision,
        };
        self.builder.apply(op, &[self, rhs, group_sizes.as_ref()])
    }

    /// The type of a product: what is preferred, or the more precise of both operands'.
    pub(super) fn product_type(
        &self,
        rhs: &XlaOp,
        preferred: Option<ElementType>,
    ) -> Result<ElementType> {
        let lhs = self.array_shape()?.element();
        let rhs = array(self.builder.shape(rhs)?)?.element();
        Ok(preferred.unwrap_or_else(|| more_precise(lhs, rhs)))
    }

    /// The triangular factor of each positive definite matrix: `l` with `a = l lᴴ`, or `u` with
    /// `a = uᴴ u` unless `lower`.
    ///
    /// Shapes: `T[…, n, n]` to the same. Only the triangle named is read; the other one of the
    /// result is 0. Errors: the rules of `cholesky`. Source: E4 "Cholesky".
    #[track_caller]
    pub fn cholesky(&self, lower: bool) -> XlaOp {
        self.builder.apply(Cholesky { lower }, &[self])
    }

    /// Solves `op(a) x = b`, or `x op(a) = b` unless `left_side`, for triangular `a`, which this is.
    ///
    /// Shapes: `a: T[…, m, m]`, `b: T[…, m, k]` (or `T[…, k, m]`), result as `b`. Errors: the rules
    /// of `triangular-solve`. Source: E4 "TriangularSolve".
    #[track_caller]
    pub fn triangular_solve(
        &self,
        b: impl AsRef<XlaOp>,
        left_side: bool,
        lower: bool,
        unit_diagonal: bool,
        transpose_a: TransposeA,
    ) -> XlaOp {
        let op = TriangularSolve { left_side, lower, unit_diagonal, transpose_a };
        self.builder.apply(op, &[self, b.as_ref()])
    }

    /// The Fourier transform over the last dimensions, of these lengths in the time domain.
    ///
    /// Shapes: complex to complex the operand's; `RFFT` takes reals and ends in `n / 2 + 1`;
    /// `IRFFT` gives reals and ends in `n`. Errors: the rules of `fft`. Source: E4 "Fft".
    #[track_caller]
    pub fn fft(&self, kind: FftKind, lengths: &[usize]) -> XlaOp {
        self.builder.apply(Fft { kind, lengths: lengths.to_vec() }, &[self])
    }

    /// Normalises over all dimensions but `feature_index`: `(output, mean, variance)`.
    ///
    /// Shapes: `T[D]`, `scale, offset: T[features]`, result `(T[D], T[features], T[features])`.
    /// Errors: the rules of `batch-norm-training`. Source: E3–E4 "BatchNormTraining".
    #[track_caller]
    pub fn batch_norm_training(
        &self,
        scale: impl AsRef<XlaOp>,
        offset: impl AsRef<XlaOp>,
        epsilon: f32,
        feature_index: usize,
    ) -> XlaOp {
        let op = BatchNormTraining { epsilon, feature_index };
        self.builder.apply(op, &[self, scale.as_ref(), offset.as_ref()])
    }

    /// Normalises with given mean and variance, each `T[features]`; the result is the operand's
    /// shape. Errors: the rules of `batch-norm-inference`. Source: E3–E4 "BatchNormInference".
    #[track_caller]
    pub fn batch_norm_inference(
        &self,
        scale: impl AsRef<XlaOp>,
        offset: impl AsRef<XlaOp>,
        mean: impl AsRef<XlaOp>,
        variance: impl AsRef<XlaOp>,
        epsilon: f32,
        feature_index: usize,
    ) -> XlaOp {
        let op = BatchNormInference { epsilon, feature_index };
        let operands = [self, scale.as_ref(), offset.as_ref(), mean.as_ref(), variance.as_ref()];
        self.builder.apply(op, &operands)
    }

    /// The gradients of [`XlaOp::batch_norm_training`]: `(operand, scale, offset)`.
    ///
    /// Shapes: `T[D]`, `scale, mean, variance: T[features]`, `grad_output: T[D]`. Errors: the rules
    /// of `batch-norm-grad`. Source: E3–E4 "BatchNormGrad".
    #[track_caller]
    pub fn batch_norm_grad(
        &self,
        scale: impl AsRef<XlaOp>,
        mean: impl AsRef<XlaOp>,
        variance: impl AsRef<XlaOp>,
        grad_output: impl AsRef<XlaOp>,
        epsilon: f32,
        feature_index: usize,
    ) -> XlaOp {
        let op = BatchNormGrad { epsilon, feature_index };
        let operands =
            [self, scale.as_ref(), mean.as_ref(), variance.as_ref(), grad_output.as_ref()];
        self.builder.apply(op, &operands)
    }
}

/// The more precise of two types: complex before real, then the greater range, the greater
/// precision, the greater width, signed before unsigned (as XLA infers).
fn more_precise(a: ElementType, b: ElementType) -> ElementType {
    let key = |element: ElementType| {
        let part = element.real_part();
        let (range, precision) = match part.is_float() {
            true => dispatch_type!(part, T => float_facts::<T>()),
            false => (-1, -1),
        };
        (element.is_complex(), range, precision, part.bits(), part.is_signed_integer())
    };
    if key(a) >= key(b) { a } else { b }
}

/// The exponent of the first power of two beyond the type, and its number of mantissa bits.
fn float_facts<T: Native>() -> (i32, i32) {
    let survives = |v: f64| T::from_number(Number::Float(v)).to_number().to_f64() == v;
    let range = (0..=1023).take_while(|&e| survives(2f64.powi(e))).count();
    let precision = (1..=52).take_while(|&e| survives(1.0 + 2f64.powi(-e))).count();
    (range as i32, precision as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected order: XLA's `primitive_util::HigherPrecisionType`.
    #[test]
    fn more_precise_types() {
        use ElementType::*;
        let ascending = [Pred, U8, S8, U32, S32, F8E4M3, F8E4M3FN, F16, BF16, F32, F64, C64, C128];
        for (i, &a) in ascending.iter().enumerate().skip(1) {
            for &b in &ascending[1..i] {
                assert_eq!((more_precise(a, b), more_precise(b, a)), (a, a), "{a} {b}");
            }
        }
        assert_eq!(float_facts::<f32>(), (128, 23));
        assert_eq!(float_facts::<f64>(), (1024, 52));
    }
}
