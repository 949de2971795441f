//! The dimensions of convolutions.

use helio_ir::Result;
use helio_ir::ops::ConvDims;

use crate::messages::ConvolutionDimensionNumbers;
use crate::words::{ints, size, sizes};

/// The dimensions that a message names.
pub(crate) fn read(proto: &ConvolutionDimensionNumbers) -> Result<ConvDims> {
    let one = |value: i64| size(value, "a dimension of a convolution");
    let many = |values: &[i64]| sizes(values, "a dimension of a convolution");
    Ok(ConvDims {
        input_batch: one(proto.input_batch_dimension)?,
        input_feature: one(proto.input_feature_dimension)?,
        input_spatial: many(&proto.input_spatial_dimensions)?,
        kernel_input_feature: one(proto.kernel_input_feature_dimension)?,
        kernel_output_feature: one(proto.kernel_output_feature_dimension)?,
        kernel_spatial: many(&proto.kernel_spatial_dimensions)?,
        output_batch: one(proto.output_batch_dimension)?,
        output_feature: one(proto.output_feature_dimension)?,
        output_spatial: many(&proto.output_spatial_dimensions)?,
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
