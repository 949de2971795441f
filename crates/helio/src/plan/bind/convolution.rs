//! Which convolutions the runtime's kernel computes, and how it is called.

use std::sync::Arc;

use helio_ir::ops::{self, Precision};
use helio_ir::types::strides;
use helio_runtime::Threads;
use helio_runtime::kernels::gemm::conv::{Convolution, Spatial};
use helio_runtime::kernels::gemm::{Dim, Types};
use helio_runtime::program::{Failure, Finish, OwnMemory, SliceKernel};

use super::{Bound, InstrShapes, product};
use crate::packed::PackedConstant;

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
    Some(Bound::of(Arc::new(Kernel { convolution, types, packed, row_bytes })))
}

/// The kernel.
struct Kernel {
    convolution: Convolution,
    types: Types,
    /// The weights packed, if they are a constant and that pays.
    packed: Option<Arc<PackedConstant>>,
    /// Bytes of all outputs at a position, if they are handed over when they are complete.
    row_bytes: Option<usize>,
}

impl Kernel {
    fn compute(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        finish: Option<Finish<'_>>,
        threads: Threads<'_>,
    ) {
        let (lhs, rhs) = (inputs[0], inputs[1]);
        let pack = |packed: &mut [u8]| {
            self.convolution.pack(rhs, packed, threads);
            !threads.is_stopped()
        };
        match self.packed.as_ref().and_then(|constant| constant.of(rhs, pack)) {
            Some(packed) => {
                self.convolution.compute_packed(lhs, (rhs, packed), output, finish, threads);
            }
            None => self.convolution.compute(self.types, lhs, rhs, output, finish, threads),
        }
    }
}

impl SliceKernel for Kernel {
    fn name(&self) -> &str {
        "convolution"
    }

    fn own_memory(&self) -> OwnMemory {
        let table_bytes = self.packed.as_ref().map_or(0, |constant| constant.bytes());
        OwnMemory { thread_bytes: 0, table_bytes }
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        self.compute(inputs, outputs[0], None, threads);
        Ok(())
    }

    fn row_bytes(&self) -> Option<usize> {
        self.row_bytes
    }

    fn run_finished(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        finish: Finish<'_>,
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        self.compute(inputs, output, Some(finish), threads);
        Ok(())
    }
}
