//! Which convolutions the runtime's kernel computes, and how it is called.

use helio_ir::ops::{self, Precision};
use helio_ir::types::strides;
use helio_runtime::kernels::gemm::Dim;
use helio_runtime::kernels::gemm::conv::{Convolution, Spatial};

use super::{Bound, InstrShapes, product};

pub(super) fn convolution(site: &InstrShapes<'_>, op: &ops::Convolution) -> Option<Bound> {
    let [input, kernel] = site.operands[..] else { return None };
    let out = *site.results.first()?;
    if !product::rounds_nothing(op.algorithm.as_deref()) {
        return None;
    }
    let dims = &op.dims;
    let [lhs, rhs, to] = [input, kernel, out].map(|shape| strides(shape.dims()));
    // A group has its own features of the kernel and of the result, and of the input its own
    // features or its own part of the batch.
    let features = kernel.dims()[dims.kernel_input_feature];
    let batch = out.dims()[dims.output_batch];
    let (groups, lhs_step) = if op.batch_group_count > 1 {
        (op.batch_group_count, batch * lhs[dims.input_batch])
    } else {
        (op.feature_group_count, features * lhs[dims.input_feature])
    };
    let outputs = kernel.dims()[dims.kernel_output_feature].checked_div(groups)?;
    let group = Dim {
        size: groups,
        lhs: lhs_step,
        rhs: outputs * rhs[dims.kernel_output_feature],
        out: outputs * to[dims.output_feature],
    };
    let batch = Dim { size: batch, lhs: lhs[dims.input_batch], rhs: 0, out: to[dims.output_batch] };
    let features = Dim {
        size: features,
        lhs: lhs[dims.input_feature],
        rhs: rhs[dims.kernel_input_feature],
        out: 0,
    };
    let outputs = Dim {
        size: outputs,
        lhs: 0,
        rhs: rhs[dims.kernel_output_feature],
        out: to[dims.output_feature],
    };
    let spatial = op.window.dims.iter().enumerate().map(|(i, window)| {
        let [of, over, at] =
            [dims.input_spatial[i], dims.kernel_spatial[i], dims.output_spatial[i]];
        Spatial {
            input: input.dims()[of],
            kernel: kernel.dims()[over],
            output: out.dims()[at],
            lhs: lhs[of],
            rhs: rhs[over],
            out: to[at],
            stride: window.stride,
            pad_low: window.pad_low,
            lhs_dilation: window.base_dilation,
            rhs_dilation: window.window_dilation,
            reversed: window.reversal,
        }
    });
    let spatial: Vec<Spatial> = spatial.collect();
    let mut convolution = Convolution::new(group, batch, features, outputs, &spatial);
    let is_default = op.precision.iter().all(|&precision| precision == Precision::Default);
    if !is_default || op.algorithm.is_some() {
        convolution = convolution.without_winograd();
    }
    let types = product::types(input, kernel, out).filter(|types| types.convolve())?;
    let constant = site.constants.get(1).and_then(Option::as_ref);
    let packed = constant.and_then(|constant| {
        let bytes = convolution.packed_bytes(types)?;
        Some(site.client.packed(constant, convolution.right_layout(), bytes))
    });
    let row_bytes = convolution.row_len().map(|len| len * out.element().size_bytes());
    let row_bytes = row_bytes.filter(|_| convolution.finishes_rows());
    Some(Bound::by_rows(
        "convolution",
        row_bytes,
        packed,
        move |inputs, output, packed, finish, threads| {
            let (lhs, rhs) = (inputs[0], inputs[1]);
            let pack = |packed: &mut [u8]| {
                convolution.pack(rhs, packed, threads);
                !threads.is_stopped()
            };
            match packed.and_then(|constant| constant.of(rhs, pack)) {
                Some(packed) => {
                    convolution.compute_packed(lhs, (rhs, packed), output, finish, threads);
                }
                None => convolution.compute(types, lhs, rhs, output, finish, threads),
            }
        },
    ))
}
