//! `convolution`: those that are matrix products, and those whose taps mostly meet padding.

use std::ops::Range;

use helio_ir::ops::{BinaryOp, Convolution, Dot, DotDims, Pad, PadDim, Slice, WindowDim};
use helio_ir::{ArrayShape, ElementType, InstrId, Number, Op, Result};

use super::{Simplifier, fold};

/// The most points of a window that are looked at one by one.
const MAX_POINTS: usize = 1 << 12;
/// A convolution is a sum of its taps if these meet an element at no more than so large a part of positions, of a hundred.
const MOST_MET: u128 = 40;
/// The fewest multiplications, with padding, for which that pays,
const LEAST_PRODUCTS: u128 = 1 << 22;
/// and the most taps.
const MOST_TAPS: usize = 25;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let &[input, kernel] = operands else { return Ok(None) };
    if let Some(turned) = with_turned_window(cx, op, [input, kernel])? {
        return Ok(Some(turned));
    }
    if op.window.dims.iter().all(|dim| dim.size == 1) {
        return product_of_features(cx, op, [input, kernel]);
    }
    let (Some(base), Some(weights)) = (cx.draft.array(input), cx.draft.array(kernel)) else {
        return Ok(None);
    };
    let Some(dims) = Spatial::of(op, base, result) else { return Ok(None) };
    let arrays = Arrays { base: base.clone(), kernel: weights.clone(), result };
    if let Some(id) = without_idle_taps(cx, op, [input, kernel], &arrays, &dims)? {
        return Ok(Some(id));
    }
    sum_of_taps(cx, op, [input, kernel], &arrays, &dims)
}

/// convolution(x, reverse(k)) → convolution(x, k), whose window is turned around, if `k` is a constant: it is packed once then.
/// (One that is not has to be turned around in each run, and as an array it may be any kernel's operand.)
fn with_turned_window(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    [input, kernel]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let Op::Reverse(reverse) = cx.draft.op(kernel) else { return Ok(None) };
    let mut of = cx.draft.operands(kernel)[0];
    while let Op::Reshape(_) | Op::Transpose(_) = cx.draft.op(of) {
        of = cx.draft.operands(of)[0];
    }
    if !matches!(cx.draft.op(of), Op::Constant(_)) {
        return Ok(None);
    }
    let mut turned = op.clone();
    for dimension in &reverse.dimensions {
        let Some(d) = op.dims.kernel_spatial.iter().position(|other| other == dimension) else {
            return Ok(None);
        };
        let dim = &mut turned.window.dims[d];
        dim.reversal ^= dim.size > 1;
    }
    let kernel = cx.draft.operands(kernel)[0];
    cx.add(turned, &[input, kernel]).map(Some)
}

/// A convolution whose window is a single point is a dot of features, when the output has its
/// dimensions in the input's order with the features last.
fn product_of_features(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    [input, kernel]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let is_aligned = op.window.dims.iter().all(|dim| {
        dim.stride == 1 && dim.pad_low == 0 && dim.pad_high == 0 && dim.base_dilation == 1
    });
    if !is_aligned || op.feature_group_count != 1 || op.batch_group_count != 1 {
        return Ok(None);
    }
    let Some(shape) = cx.draft.array(kernel) else { return Ok(None) };
    let (inputs, outputs) = (op.dims.kernel_input_feature, op.dims.kernel_output_feature);
    let dims = [shape.dims()[inputs.min(outputs)], shape.dims()[inputs.max(outputs)]];
    // What the dot's result has at each place, in the output's numbers.
    let mut input_to_output = vec![None; op.dims.input_spatial.len() + 2];
    input_to_output[op.dims.input_batch] = Some(op.dims.output_batch);
    for (&from, &to) in op.dims.input_spatial.iter().zip(&op.dims.output_spatial) {
        input_to_output[from] = Some(to);
    }
    let order = input_to_output.into_iter().flatten().chain([op.dims.output_feature]);
    if !order.eq(0..op.dims.input_spatial.len() + 2) {
        return Ok(None);
    }
    let kernel = cx.reshape(kernel, &dims)?;
    let dot = Dot {
        dims: DotDims {
            lhs_contracting: vec![op.dims.input_feature],
            rhs_contracting: vec![usize::from(inputs > outputs)],
            ..DotDims::default()
        },
        element: op.element,
        precision: op.precision.clone(),
        algorithm: op.algorithm.clone(),
    };
    cx.add(dot, &[input, kernel]).map(Some)
}

/// The shapes of what a convolution has and makes.
struct Arrays<'a> {
    base: ArrayShape,
    kernel: ArrayShape,
    result: &'a ArrayShape,
}

/// A spatial dimension of a convolution: elements are neighbours, and the window is not turned around.
struct Spatial {
    window: WindowDim,
    /// The elements of the input,
    base: usize,
    /// and the positions of the result.
    output: usize,
    /// For each point of the window, the positions at which it lies over an element.
    positions: Vec<Range<usize>>,
}

impl Spatial {
    /// The spatial dimensions of a convolution of these arrays; `None` if one is not of this kind.
    fn of(op: &Convolution, base: &ArrayShape, result: &ArrayShape) -> Option<Vec<Spatial>> {
        let places = op.dims.input_spatial.iter().zip(&op.dims.output_spatial);
        let dims = op.window.dims.iter().zip(places).map(|(&window, (&from, &to))| {
            let (base, output) = (base.dims()[from], result.dims()[to]);
            let mut dim = Spatial { window, base, output, positions: Vec::new() };
            if !dim.is_plain() {
                return None;
            }
            dim.positions = (0..window.size).map(|point| dim.positions_of(point)).collect();
            Some(dim)
        });
        dims.collect()
    }

    fn is_plain(&self) -> bool {
        let has_holes = self.window.base_dilation > 1 && self.base > 1;
        let is_empty = self.base == 0 || self.output == 0;
        !has_holes && !self.window.reversal && !is_empty && self.window.size <= MAX_POINTS
    }

    /// The positions at which a point of the window lies over an element.
    fn positions_of(&self, point: usize) -> Range<usize> {
        let WindowDim { stride, pad_low, window_dilation, .. } = self.window;
        let stride = stride as i128;
        // Where it lies at the first position.
        let first = point as i128 * window_dilation as i128 - i128::from(pad_low);
        let until = |end: i128| {
            let position = (end - first + stride - 1).div_euclid(stride);
            position.clamp(0, self.output as i128) as usize
        };
        let start = until(0);
        start..until(self.base as i128).max(start)
    }
}

/// Taps before the first and behind the last that lies over an element at any position are left out.
fn without_idle_taps(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    [input, kernel]: [InstrId; 2],
    arrays: &Arrays<'_>,
    dims: &[Spatial],
) -> Result<Option<InstrId>> {
    let mut part = whole(&arrays.kernel);
    let mut fewer = op.clone();
    for (dim, (to, &d)) in
        dims.iter().zip(fewer.window.dims.iter_mut().zip(&op.dims.kernel_spatial))
    {
        let size = dim.window.size;
        let meets = |at: &Range<usize>| !at.is_empty();
        let (first, last) =
            (dim.positions.iter().position(meets), dim.positions.iter().rposition(meets));
        // (Of a convolution without products, zeros are made elsewhere.)
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        let dilation = dim.window.window_dilation as u64;
        let padding = |taps: usize| (taps as u64).saturating_mul(dilation) as i64;
        to.size = last + 1 - first;
        to.pad_low = to.pad_low.saturating_sub(padding(first));
        to.pad_high = to.pad_high.saturating_sub(padding(size - 1 - last));
        (part.starts[d], part.limits[d]) = (first, last + 1);
    }
    if fewer.window == op.window {
        return Ok(None);
    }
    let kernel = fold::part(cx, part, kernel)?;
    cx.add(fewer, &[input, kernel]).map(Some)
}

/// A convolution most of whose taps lie over padding, as of a window that is larger than what it lies over: the sum, for
/// each tap, of the product of the elements that it meets.
fn sum_of_taps(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    [input, kernel]: [InstrId; 2],
    Arrays { base, kernel: kernel_shape, result }: &Arrays<'_>,
    dims: &[Spatial],
) -> Result<Option<InstrId>> {
    if op.feature_group_count != 1 || op.batch_group_count != 1 {
        return Ok(None);
    }
    let taps: usize = dims.iter().fold(1, |n, dim| n.saturating_mul(dim.window.size));
    let (mut met, mut all) = (1_u128, 1_u128);
    for dim in dims {
        let points = dim.positions.iter().map(|at| at.len() as u128);
        met = met.saturating_mul(points.sum());
        all = all.saturating_mul(dim.window.size as u128 * dim.output as u128);
    }
    let features = kernel_shape.dims()[op.dims.kernel_input_feature] as u128;
    let outputs = kernel_shape.dims()[op.dims.kernel_output_feature] as u128;
    let products = all.saturating_mul(features).saturating_mul(outputs);
    // (Sums of narrower floats would be rounded for each tap.)
    let pays = matches!(result.element(), ElementType::F32 | ElementType::F64)
        && (2..=MOST_TAPS).contains(&taps)
        && dims.iter().all(|dim| dim.window.stride == 1)
        && met.saturating_mul(100) <= all.saturating_mul(MOST_MET)
        && products >= LEAST_PRODUCTS;
    if !pays {
        return Ok(None);
    }
    let zero = cx.scalar(result.element(), Number::Int(0))?;
    let mut sum = None;
    for tap in 0..taps {
        let mut rest = tap;
        let (mut from, mut weights) = (whole(base), whole(kernel_shape));
        let mut point = op.clone();
        let mut pad = vec![PadDim::default(); result.rank()];
        let mut is_met = true;
        for (d, dim) in dims.iter().enumerate().rev() {
            let k = rest % dim.window.size;
            rest /= dim.window.size;
            let at = &dim.positions[k];
            is_met &= !at.is_empty();
            // The element that it meets at the first of these positions.
            let offset = k as i128 * dim.window.window_dilation as i128;
            let offset = offset - i128::from(dim.window.pad_low);
            let first = (at.start as i128 + offset).max(0) as usize;
            let input_dim = op.dims.input_spatial[d];
            (from.starts[input_dim], from.limits[input_dim]) = (first, first + at.len());
            let kernel_dim = op.dims.kernel_spatial[d];
            (weights.starts[kernel_dim], weights.limits[kernel_dim]) = (k, k + 1);
            point.window.dims[d] = WindowDim::default();
            let to = &mut pad[op.dims.output_spatial[d]];
            (to.low, to.high) = (at.start as i64, (dim.output - at.end) as i64);
        }
        if !is_met {
            continue;
        }
        let from = cx.add(from, &[input])?;
        let weights = fold::part(cx, weights, kernel)?;
        let product = cx.add(point, &[from, weights])?;
        let product = cx.add(Pad { dims: pad }, &[product, zero])?;
        sum = Some(match sum {
            Some(sum) => cx.add(BinaryOp::Add, &[sum, product])?,
            None => product,
        });
    }
    Ok(sum)
}

/// A slice of all elements.
fn whole(shape: &ArrayShape) -> Slice {
    Slice::dense(vec![0; shape.rank()], shape.dims().to_vec())
}

#[cfg(test)]
mod tests {
    use crate::testing::after;

    #[test]
    fn constant_kernels_are_turned_around_by_windows() {
        // (More elements than are folded, which take long to write down in a case file.)
        let list = |of: &str, count: usize| format!("{{{}}}", vec![of; count].join(","));
        let numbers = list(&list(&list("{1,2,3,4,5,6,7,8,9}", 9), 8), 8);
        let module = |window: &str, kernel: &str| {
            format!(
                "ENTRY e {{
                   x = f32[1,8,20,21] parameter(0)
                   v = f32[8,8,9,9] parameter(1)
                   k = f32[8,8,9,9] constant({numbers})
                   t = f32[8,8,9,9] transpose(k), dimensions={{1,0,2,3}}
                   w = f32[8,8,9,9] reverse({kernel}), dimensions={{2,3}}
                   c = f32[1,8,12,13] convolution(x, w), window={{{window}}}, dim_labels=bf01_oi01->bf01
                   ROOT r = (f32[1,8,12,13], f32[8,8,9,9]) tuple(c, v)
                 }}"
            )
        };
        let turned = |window: &str, kernel: &str| {
            let text = after("simplify", &module(window, kernel));
            (!text.contains(" reverse("), text.contains("rhs_reversal=1x1"))
        };
        assert_eq!(turned("size=9x9", "k"), (true, true));
        assert_eq!(turned("size=9x9", "t"), (true, true));
        assert_eq!(turned("size=9x9 rhs_reversal=1x1", "k"), (true, false));
        // One that is no constant stays.
        assert_eq!(turned("size=9x9", "v"), (false, false));
    }
}
