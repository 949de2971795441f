//! The dimensions of convolutions, as a message and as HLO text has them.

use helio_ir::Result;
use helio_ir::ops::ConvDims;

use crate::messages::ConvolutionDimensionNumbers;
use crate::words::{ints, size, sizes};

/// The dimensions that a message names.
pub(crate) fn read(proto: &ConvolutionDimensionNumbers) -> Result<ConvDims> {
    let dim = |value: i64| size(value, "a dimension of a convolution");
    let dims = |values: &[i64]| sizes(values, "a dimension of a convolution");
    Ok(ConvDims {
        input_batch: dim(proto.input_batch_dimension)?,
        input_feature: dim(proto.input_feature_dimension)?,
        input_spatial: dims(&proto.input_spatial_dimensions)?,
        kernel_input_feature: dim(proto.kernel_input_feature_dimension)?,
        kernel_output_feature: dim(proto.kernel_output_feature_dimension)?,
        kernel_spatial: dims(&proto.kernel_spatial_dimensions)?,
        output_batch: dim(proto.output_batch_dimension)?,
        output_feature: dim(proto.output_feature_dimension)?,
        output_spatial: dims(&proto.output_spatial_dimensions)?,
    })
}

/// The message for labels such as `b01f_01io->b01f`.
pub(crate) fn write(labels: &str) -> Result<ConvolutionDimensionNumbers> {
    let dims = ConvDims::from_labels(labels)?;
    Ok(ConvolutionDimensionNumbers {
        kernel_input_feature_dimension: dims.kernel_input_feature as i64,
        kernel_output_feature_dimension: dims.kernel_output_feature as i64,
        kernel_spatial_dimensions: ints(&dims.kernel_spatial),
        input_batch_dimension: dims.input_batch as i64,
        input_feature_dimension: dims.input_feature as i64,
        output_batch_dimension: dims.output_batch as i64,
        output_feature_dimension: dims.output_feature as i64,
        input_spatial_dimensions: ints(&dims.input_spatial),
        output_spatial_dimensions: ints(&dims.output_spatial),
    })
}
