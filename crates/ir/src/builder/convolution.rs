//! Convolutions, from the shortest form to the most general.

use super::window::WindowSpec;
use super::{Padding, XlaOp, array, check};
use crate::ops::{ConvDims, Convolution, Precision};
use crate::types::MAX_RANK;
use crate::{ArrayShape, ElementType, Error, Result};

/// Everything about a convolution but its operands; empty lists stand for the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// How far apart positions of the window are; 1 by default.
    pub window_strides: Vec<usize>,
    /// Zeros added before and after the input; negative to crop; 0 by default.
    pub padding: Vec<(i64, i64)>,
    /// How far apart elements of the input are; 1 by default.
    pub lhs_dilation: Vec<usize>,
    /// How far apart elements of the kernel are; 1 by default.
    pub rhs_dilation: Vec<usize>,
    /// Whether the kernel is flipped; not by default.
    pub window_reversal: Vec<bool>,
    /// Which dimension means what; [`ConvOptions::default_dims`] unless given.
    pub dims: Option<ConvDims>,
    /// Into how many groups the features fall.
    pub feature_group_count: usize,
    /// Into how many groups the batch falls.
    pub batch_group_count: usize,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The type of the result, instead of the more precise one of the operands'.
    pub preferred_element_type: Option<ElementType>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

helio_limits::with_methods! { ConvOptions {
    with_window_strides(window_strides: impl Into<Vec<usize>>);
    with_padding(padding: impl Into<Vec<(i64, i64)>>);
    with_lhs_dilation(lhs_dilation: impl Into<Vec<usize>>);
    with_rhs_dilation(rhs_dilation: impl Into<Vec<usize>>);
    with_window_reversal(window_reversal: impl Into<Vec<bool>>);
    with_dims(dims: impl Into<Option<ConvDims>>);
    with_feature_group_count(feature_group_count: usize);
    with_batch_group_count(batch_group_count: usize);
    with_precision(precision: impl Into<Vec<Precision>>);
    with_preferred_element_type(preferred_element_type: impl Into<Option<ElementType>>);
    with_algorithm(algorithm: impl Into<Option<String>>);
} }

impl Default for ConvOptions {
    fn default() -> Self {
        ConvOptions {
            window_strides: Vec::new(),
            padding: Vec::new(),
            lhs_dilation: Vec::new(),
            rhs_dilation: Vec::new(),
            window_reversal: Vec::new(),
            dims: None,
            feature_group_count: 1,
            batch_group_count: 1,
            precision: Vec::new(),
            preferred_element_type: None,
            algorithm: None,
        }
    }
}

impl ConvOptions {
    /// The dimensions that E1–E4 "ConvWithGeneralPadding" lists: batch, features, space for input
    /// and output; output features, input features, space for the kernel. Of more spatial dimensions
    /// than shapes can have, the first.
    pub fn default_dims(spatial: usize) -> ConvDims {
        let space: Vec<usize> = (2..).take(spatial.min(MAX_RANK)).collect();
        ConvDims {
            input_batch: 0,
            input_feature: 1,
            input_spatial: space.clone(),
            kernel_output_feature: 0,
            kernel_input_feature: 1,
            kernel_spatial: space.clone(),
            output_batch: 0,
            output_feature: 1,
            output_spatial: space,
        }
    }
}

impl XlaOp {
    /// Slides a kernel over an input; the edges are padded in a word.
    ///
    /// Shapes: `self: T[batch, z, space…]`, `kernel: T[output z, z, window…]`, result `T[batch,
    /// output z, positions…]`. `SAME` pads for as many positions as the input has (each `stride`-th
    /// of them). Errors: `builder.C4`, `builder.C5`, the rules of `convolution`. Source: E1–E4
    /// "Conv".
    ///
    /// ```
    /// # use helio_ir::{ElementType::F32, Shape, builder::{Padding, XlaBuilder}};
    /// let b = XlaBuilder::new("b");
    /// let input = b.parameter(0, Shape::array(F32, [1, 3, 8, 8])?, "input");
    /// let kernel = b.parameter(1, Shape::array(F32, [16, 3, 5, 5])?, "kernel");
    /// let output = input.conv(&kernel, &[1, 1], Padding::Same, 1, 1);
    /// assert_eq!(output.shape()?.to_string(), "f32[1,16,8,8]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn conv(
        &self,
        kernel: impl AsRef<XlaOp>,
        window_strides: &[usize],
        padding: Padding,
        feature_group_count: usize,
        batch_group_count: usize,
    ) -> XlaOp {
        let spatial = check!(self.builder, self.spatial_dimensions());
        let dims = ConvOptions::default_dims(spatial);
        self.conv_with_general_dimensions(
            kernel,
            window_strides,
            padding,
            dims,
            feature_group_count,
            batch_group_count,
        )
    }

    /// [`XlaOp::conv`] with `(low, high)` padding for each spatial dimension; negative to crop.
    /// Errors: as there. Source: E1–E4 "ConvWithGeneralPadding"; its dilations are in
    /// [`XlaOp::conv_general_dilated`].
    #[track_caller]
    pub fn conv_with_general_padding(
        &self,
        kernel: impl AsRef<XlaOp>,
        window_strides: &[usize],
        padding: &[(i64, i64)],
        feature_group_count: usize,
        batch_group_count: usize,
    ) -> XlaOp {
        let options = ConvOptions {
            window_strides: window_strides.to_vec(),
            padding: padding.to_vec(),
            feature_group_count,
            batch_group_count,
            ..ConvOptions::default()
        };
        self.conv_general_dilated(kernel, options)
    }

    /// [`XlaOp::conv`] with other meanings of the dimensions. Errors: as there. Source: XLA's
    /// `ConvWithGeneralDimensions`.
    #[track_caller]
    pub fn conv_with_general_dimensions(
        &self,
        kernel: impl AsRef<XlaOp>,
        window_strides: &[usize],
        padding: Padding,
        dims: ConvDims,
        feature_group_count: usize,
        batch_group_count: usize,
    ) -> XlaOp {
        let kernel = kernel.as_ref();
        let amounts = self.conv_padding(kernel, window_strides, padding, &dims);
        let amounts = check!(self.builder, amounts);
        self.conv_general(
            kernel,
            window_strides,
            &amounts,
            dims,
            feature_group_count,
            batch_group_count,
        )
    }

    /// [`XlaOp::conv_with_general_padding`] with other meanings of the dimensions. Errors: as
    /// there. Source: XLA's `ConvGeneral`.
    #[track_caller]
    pub fn conv_general(
        &self,
        kernel: impl AsRef<XlaOp>,
        window_strides: &[usize],
        padding: &[(i64, i64)],
        dims: ConvDims,
        feature_group_count: usize,
        batch_group_count: usize,
    ) -> XlaOp {
        let options = ConvOptions {
            window_strides: window_strides.to_vec(),
            padding: padding.to_vec(),
            dims: Some(dims),
            feature_group_count,
            batch_group_count,
            ..ConvOptions::default()
        };
        self.conv_general_dilated(kernel, options)
    }

    /// The most general convolution. Errors: `builder.C4` (lengths of lists, dimension numbers), the
    /// rules of `convolution`. Source: XLA's `ConvGeneralDilated`.
    #[track_caller]
    pub fn conv_general_dilated(&self, kernel: impl AsRef<XlaOp>, options: ConvOptions) -> XlaOp {
        let kernel = kernel.as_ref();
        let dims = match options.dims {
            Some(dims) => dims,
            None => ConvOptions::default_dims(check!(self.builder, self.spatial_dimensions())),
        };
        let kernel_shape = check!(self.builder, self.builder.shape(kernel).and_then(array));
        let dimensions = check!(self.builder, sizes(&kernel_shape, &dims.kernel_spatial));
        let window = WindowSpec {
            dimensions: &dimensions,
            strides: &options.window_strides,
            padding: &options.padding,
            base_dilations: &options.lhs_dilation,
            window_dilations: &options.rhs_dilation,
            reversal: &options.window_reversal,
        };
        let element = self.product_type(kernel, options.preferred_element_type);
        let op = Convolution {
            window: check!(self.builder, window.window()),
            dims,
            feature_group_count: options.feature_group_count,
            batch_group_count: options.batch_group_count,
            element: check!(self.builder, element),
            precision: options.precision,
            algorithm: options.algorithm,
        };
        self.builder.apply(op, &[self, kernel])
    }

    fn spatial_dimensions(&self) -> Result<usize> {
        let shape = self.array_shape()?;
        shape.rank().checked_sub(2).ok_or_else(|| {
            Error::rule("builder.C5", format!("{shape} lacks dimensions for batch and features"))
        })
    }

    fn conv_padding(
        &self,
        kernel: &XlaOp,
        strides: &[usize],
        padding: Padding,
        dims: &ConvDims,
    ) -> Result<Vec<(i64, i64)>> {
        let input = self.array_shape()?;
        let base = sizes(&input, &dims.input_spatial)?;
        let window = sizes(&array(self.builder.shape(kernel)?)?, &dims.kernel_spatial)?;
        padding.amounts(&base, &window, strides)
    }
}

/// The sizes of some dimensions. Errors: `builder.C4`.
fn sizes(shape: &ArrayShape, dimensions: &[usize]) -> Result<Vec<usize>> {
    let size = |&d: &usize| {
        shape.dims().get(d).copied().ok_or_else(|| {
            Error::rule("builder.C4", format!("there is no dimension {d} in {shape}"))
        })
    };
    dimensions.iter().map(size).collect()
}
