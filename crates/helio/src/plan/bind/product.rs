//! Which `dot`s the runtime's kernel computes, and how it is called.

use helio_ir::{ArrayShape, ElementType, ops, types::strides};
use helio_runtime::kernels::gemm::{Contraction, Dim, ProductType, Types};

use super::{Bound, InstrShapes};

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

pub(super) fn dot(site: &InstrShapes<'_>, op: &ops::Dot) -> Option<Bound> {
    let [lhs, rhs] = site.operands[..] else { return None };
    let out = *site.results.first()?;
    if !rounds_nothing(op.algorithm.as_deref()) {
        return None;
    }
    let mut dims = Dims::of(op, lhs, rhs, out);
    // A matrix times a vector: its rows are the neighbours in the result. A complex matrix is read
    // where it lies only as the left operand.
    let exchange = !lhs.element().is_complex()
        && dims.cols.iter().all(|d| d.size == 1)
        && dims.rows.iter().any(|d| d.size > 1);
    if exchange {
        dims = dims.exchanged();
    }
    let (left, right) = if exchange { (1, 0) } else { (0, 1) };
    let product = Contraction::new(&dims.batch, &dims.rows, &dims.cols, &dims.steps);
    let [lhs, rhs] = if exchange { [rhs, lhs] } else { [lhs, rhs] };
    let types = types(lhs, rhs, out).filter(|types| types.multiply())?;
    let steps: usize = dims.steps.iter().map(|dim| dim.size).product();
    let row_bytes = product.row_len().map(|len| len * out.element().size_bytes());
    let row_bytes = row_bytes
        .filter(|_| steps <= FEW_STEPS || steps <= MAX_FINISHED_STEPS && product.is_right_near());
    let constant = site.constants.get(right).and_then(Option::as_ref);
    let packed = constant.and_then(|constant| {
        let bytes = product.packed_bytes(types)?;
        Some(site.client.packed(constant, product.right_layout(), bytes))
    });
    Some(Bound::by_rows(
        "dot",
        row_bytes,
        packed,
        move |inputs, output, packed, finish, threads| {
            let (lhs, rhs) = (inputs[left], inputs[right]);
            let pack = |packed: &mut [u8]| {
                product.pack(rhs, packed, threads);
                !threads.is_stopped()
            };
            match packed.and_then(|constant| constant.of(rhs, pack)) {
                Some(packed) => product.compute_packed(lhs, packed, output, finish, threads),
                None => product.compute(types, lhs, rhs, output, finish, threads),
            }
        },
    ))
}

/// The most steps of a product whose rows are finished while they are in cache, and, if its right operand is
/// [not near](Contraction::is_right_near) and so better taken panel by panel for all rows. Next to longer sums
/// the time of reading a result again does not show, while whole rows are less even blocks.
const MAX_FINISHED_STEPS: usize = 1024;
const FEW_STEPS: usize = 256;

/// The types of a product's operands and result, if kernels know them all.
pub(super) fn types(lhs: &ArrayShape, rhs: &ArrayShape, out: &ArrayShape) -> Option<Types> {
    let number = |shape: &ArrayShape| {
        Some(match shape.element() {
            ElementType::S8 => ProductType::S8,
            ElementType::S16 => ProductType::S16,
            ElementType::S32 => ProductType::S32,
            ElementType::S64 => ProductType::S64,
            ElementType::U8 => ProductType::U8,
            ElementType::U16 => ProductType::U16,
            ElementType::U32 => ProductType::U32,
            ElementType::U64 => ProductType::U64,
            ElementType::F16 => ProductType::F16,
            ElementType::BF16 => ProductType::Bf16,
            ElementType::F32 => ProductType::F32,
            ElementType::F64 => ProductType::F64,
            ElementType::C64 => ProductType::C64,
            ElementType::C128 => ProductType::C128,
            _ => return None,
        })
    };
    Some(Types { lhs: number(lhs)?, rhs: number(rhs)?, out: number(out)? })
}
