//! `convolution`: those that are matrix products.

use helio_ir::ops::{Convolution, Dot, DotDims};
use helio_ir::{InstrId, Result};

use super::Simplifier;

/// A convolution whose window is a single point is a dot of features, when the output has its
/// dimensions in the input's order with the features last.
pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Convolution,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[input, kernel] = operands else { return Ok(None) };
    let is_point = op.window.dims.iter().all(|dim| {
        dim.size == 1
            && dim.stride == 1
            && dim.pad_low == 0
            && dim.pad_high == 0
            && dim.base_dilation == 1
    });
    if !is_point || op.feature_group_count != 1 || op.batch_group_count != 1 {
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
