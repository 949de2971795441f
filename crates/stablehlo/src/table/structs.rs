//! Structured attributes: `#stablehlo.gather<offset_dims = […], …>`.

use helio_ir::Result;
use helio_ir::ops::{ConvDims, DotDims, GatherDims, ScatterDims};

use super::codec::integers;
use super::{Reading, Writing};
use crate::lower::Attrs;
use crate::mlir::{Attribute, Field};

/// A field of a structured attribute: absent lists are empty, absent numbers 0.
trait Part: Sized {
    fn read(fields: &Attrs<'_>, name: &str) -> Result<Self>;
    fn write(&self) -> Result<Attribute>;
    fn is_default(&self) -> bool;
}

impl Part for Vec<usize> {
    fn read(fields: &Attrs<'_>, name: &str) -> Result<Self> {
        fields.sizes(name)
    }

    fn write(&self) -> Result<Attribute> {
        integers(self)
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl Part for usize {
    fn read(fields: &Attrs<'_>, name: &str) -> Result<Self> {
        fields.size_or(name, 0)
    }

    fn write(&self) -> Result<Attribute> {
        Ok(Attribute::i64(*self as i64))
    }

    fn is_default(&self) -> bool {
        false
    }
}

macro_rules! structs {
    ($($(#[$doc:meta])* $codec:ident($kind:literal) of $name:ident {
        $($field:ident: $attribute:literal),* $(,)?
    })*) => {
        $($(#[$doc])*
        pub(crate) struct $codec(pub(crate) &'static str);

        impl $codec {
            /// The value of the attribute with this codec's name. Errors: it is missing.
            pub(crate) fn read(&self, from: &Reading<'_, '_>) -> Result<$name> {
                let fields = from.attrs.needed_fields(self.0)?;
                let found = Self::fields(&fields)?;
                fields.finish()?;
                Ok(found)
            }

            /// The value that these fields make up.
            pub(crate) fn fields(fields: &Attrs<'_>) -> Result<$name> {
                Ok($name { $($field: Part::read(fields, $attribute)?,)* })
            }

            pub(crate) fn write(&self, value: &$name, to: &mut Writing<'_>) -> Result<()> {
                let mut fields: Vec<Field> = Vec::new();
                $(if !value.$field.is_default() {
                    fields.push(($attribute.to_owned(), value.$field.write()?));
                })*
                let [dialect, name] = ["stablehlo", $kind].map(str::to_owned);
                let attribute = Attribute::Struct { dialect, name, fields };
                to.attributes.push((self.0.to_owned(), attribute));
                Ok(())
            }
        })*
    };
}

structs! {
    /// The dimensions of a product.
    DotDimensions("dot") of DotDims {
        lhs_batch: "lhs_batching_dimensions",
        rhs_batch: "rhs_batching_dimensions",
        lhs_contracting: "lhs_contracting_dimensions",
        rhs_contracting: "rhs_contracting_dimensions",
    }
    /// The dimensions of a convolution.
    ConvDimensions("conv") of ConvDims {
        input_batch: "input_batch_dimension",
        input_feature: "input_feature_dimension",
        input_spatial: "input_spatial_dimensions",
        kernel_input_feature: "kernel_input_feature_dimension",
        kernel_output_feature: "kernel_output_feature_dimension",
        kernel_spatial: "kernel_spatial_dimensions",
        output_batch: "output_batch_dimension",
        output_feature: "output_feature_dimension",
        output_spatial: "output_spatial_dimensions",
    }
    /// The dimensions of a gather.
    GatherDimensions("gather") of GatherDims {
        offset_dims: "offset_dims",
        collapsed_slice_dims: "collapsed_slice_dims",
        operand_batching_dims: "operand_batching_dims",
        start_indices_batching_dims: "start_indices_batching_dims",
        start_index_map: "start_index_map",
        index_vector_dim: "index_vector_dim",
    }
    /// The dimensions of a scatter.
    ScatterDimensions("scatter") of ScatterDims {
        update_window_dims: "update_window_dims",
        inserted_window_dims: "inserted_window_dims",
        input_batching_dims: "input_batching_dims",
        scatter_indices_batching_dims: "scatter_indices_batching_dims",
        scatter_dims_to_operand_dims: "scatter_dims_to_operand_dims",
        index_vector_dim: "index_vector_dim",
    }
}
