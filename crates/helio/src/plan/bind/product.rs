//! Products of matrices.

use helio_ir::{ArrayShape, ElementType, ops, types::strides};
use helio_runtime::kernels::bytes::{cast, cast_mut};
use helio_runtime::kernels::gemm::{Contraction, Dim};

use super::{Bound, Site};

/// The dimensions of a product, for either order of the operands.
struct Dims {
    batch: Vec<Dim>,
    rows: Vec<Dim>,
    cols: Vec<Dim>,
    steps: Vec<Dim>,
}

impl Dims {
    fn of(op: &ops::Dot, lhs: &ArrayShape, rhs: &ArrayShape, out: &ArrayShape) -> Self {
        let dims = &op.dims;
        let [left, right, result] = [lhs, rhs, out].map(|shape| strides(shape.dims()));
        let batches = dims.lhs_batch.iter().zip(&dims.rhs_batch).enumerate();
        let batch = batches.map(|(o, (&l, &r))| Dim {
            size: lhs.dims()[l],
            lhs: left[l],
            rhs: right[r],
            out: result[o],
        });
        let batch: Vec<Dim> = batch.collect();
        let pairs = dims.lhs_contracting.iter().zip(&dims.rhs_contracting);
        let steps = pairs
            .map(|(&l, &r)| Dim { size: lhs.dims()[l], lhs: left[l], rhs: right[r], out: 0 })
            .collect();
        // The result's dimensions: batch, those of the left operand, those of the right.
        let mut next = batch.len();
        let mut place = || {
            next += 1;
            result[next - 1]
        };
        let rows = dims.lhs_free(lhs.rank()).into_iter();
        let rows =
            rows.map(|d| Dim { size: lhs.dims()[d], lhs: left[d], rhs: 0, out: place() }).collect();
        let cols = dims.rhs_free(rhs.rank()).into_iter();
        let cols = cols
            .map(|d| Dim { size: rhs.dims()[d], lhs: 0, rhs: right[d], out: place() })
            .collect();
        Dims { batch, rows, cols, steps }
    }

    /// The same product with the operands exchanged.
    fn exchanged(self) -> Self {
        let flip = |dims: Vec<Dim>| -> Vec<Dim> {
            dims.into_iter().map(|d| Dim { lhs: d.rhs, rhs: d.lhs, ..d }).collect()
        };
        Dims {
            batch: flip(self.batch),
            rows: flip(self.cols),
            cols: flip(self.rows),
            steps: flip(self.steps),
        }
    }
}

/// Whether an algorithm takes the operands as they are. Those that round them first are the
/// interpreter's.
pub(super) fn rounds_nothing(algorithm: Option<&str>) -> bool {
    matches!(algorithm, None | Some("dot_f32_f32_f32" | "dot_f64_f64_f64"))
}

pub(super) fn dot(site: &Site<'_>, op: &ops::Dot) -> Option<Bound> {
    let [lhs, rhs] = site.operands[..] else { return None };
    let out = *site.results.first()?;
    if !rounds_nothing(op.algorithm.as_deref()) {
        return None;
    }
    let mut dims = Dims::of(op, lhs, rhs, out);
    // A matrix times a vector: its rows are the neighbours in the result.
    let exchange = dims.cols.iter().all(|d| d.size == 1) && dims.rows.iter().any(|d| d.size > 1);
    if exchange {
        dims = dims.exchanged();
    }
    let (left, right) = if exchange { (1, 0) } else { (0, 1) };
    let product = Contraction::new(&dims.batch, &dims.rows, &dims.cols, &dims.steps);
    let types = [lhs.element(), rhs.element(), out.element()];
    macro_rules! same {
        ($method:ident) => {
            Bound::new("dot", move |inputs, outputs, threads| {
                let out = cast_mut(outputs[0]);
                product.$method(cast(inputs[left]), cast(inputs[right]), out, None, threads);
            })
        };
    }
    Some(match types {
        [ElementType::F32, ElementType::F32, ElementType::F32] => same!(f32),
        [ElementType::F64, ElementType::F64, ElementType::F64] => same!(f64),
        _ => return None,
    })
}
