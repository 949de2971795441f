//! Attributes that several operations have.

use std::fmt;

/// One dimension of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// The size of the window.
    pub size: usize,
    /// How far apart its positions are; at least 1.
    pub stride: usize,
    /// Elements added before the first of the base; negative to crop.
    pub pad_low: i64,
    /// Elements added after the last of the base; negative to crop.
    pub pad_high: i64,
    /// The distance of the base's neighbours; at least 1. (`lhs_dilate`)
    pub base_dilation: usize,
    /// The distance of the window's neighbours; at least 1. (`rhs_dilate`)
    pub window_dilation: usize,
    /// Whether the window is flipped.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        WindowDim {
            size: 1,
            stride: 1,
            pad_low: 0,
            pad_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }
}

/// A window that slides over an array, one entry a dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The dimensions, in the array's (or the spatial dimensions') order.
    pub dims: Vec<WindowDim>,
}

/// Which dimensions of a dot product contract and which are batch dimensions; lists pair up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotDims {
    /// Dimensions of lhs to sum over.
    pub lhs_contracting: Vec<usize>,
    /// Dimensions of rhs to sum over.
    pub rhs_contracting: Vec<usize>,
    /// Dimensions of lhs that go along with `rhs_batch`.
    pub lhs_batch: Vec<usize>,
    /// Dimensions of rhs that go along with `lhs_batch`.
    pub rhs_batch: Vec<usize>,
}

/// Which dimension of a convolution's input, kernel and output means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvDims {
    /// Batch dimension of the input.
    pub input_batch: usize,
    /// Feature dimension of the input.
    pub input_feature: usize,
    /// Spatial dimensions of the input, in the window's order.
    pub input_spatial: Vec<usize>,
    /// Input-feature dimension of the kernel.
    pub kernel_input_feature: usize,
    /// Output-feature dimension of the kernel.
    pub kernel_output_feature: usize,
    /// Spatial dimensions of the kernel, in the window's order.
    pub kernel_spatial: Vec<usize>,
    /// Batch dimension of the output.
    pub output_batch: usize,
    /// Feature dimension of the output.
    pub output_feature: usize,
    /// Spatial dimensions of the output, in the window's order.
    pub output_spatial: Vec<usize>,
}

crate::ops::words! {
    /// How precisely an operand of a product is to be taken.
    Precision {
        /// The back end's choice.
        Default = "default",
        /// More than that.
        High = "high",
        /// The most there is.
        Highest = "highest",
        /// Packed nibbles.
        PackedNibble = "packed_nibble",
    }
}

/// Which participants of a collective act together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; no group at all stands for one of all participants.
    List(Vec<Vec<usize>>),
    /// `[2,2]<=[2,2]T(1,0)`: iota of the product of `reshape`, under those dimensions, transposed,
    /// then cut into `groups` rows of `size`.
    Iota {
        /// The number of groups.
        groups: usize,
        /// The participants in each.
        size: usize,
        /// The dimensions under which participants are numbered.
        reshape: Vec<usize>,
        /// Their permutation; empty for none.
        transpose: Vec<usize>,
    },
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        ReplicaGroups::List(Vec::new())
    }
}

impl fmt::Display for ReplicaGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma =
            |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        match self {
            ReplicaGroups::List(groups) => {
                let groups: Vec<_> = groups.iter().map(|g| format!("{{{}}}", comma(g))).collect();
                write!(f, "{{{}}}", groups.join(","))
            }
            ReplicaGroups::Iota { groups, size, reshape, transpose } => {
                write!(f, "[{groups},{size}]<=[{}]", comma(reshape))?;
                if transpose.is_empty() { Ok(()) } else { write!(f, "T({})", comma(transpose)) }
            }
        }
    }
}

/// Who takes part in a collective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveAttrs {
    /// The groups that act together.
    pub replica_groups: ReplicaGroups,
    /// Set for communication across partitions (or modules).
    pub channel_id: Option<i64>,
    /// Whether the groups list flattened ids, `replica * num_partitions + partition`.
    pub use_global_device_ids: bool,
    /// Whether layouts must stay as they are; without effect on the value.
    pub constrain_layout: bool,
}
