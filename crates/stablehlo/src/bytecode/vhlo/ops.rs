//! VHLO's operations: which StableHLO operation each is, since when and until when it was written,
//! and the form of each of its attributes.

use super::version::Version;

/// An operation of VHLO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpRow {
    /// VHLO's name without dialect and version: `all_gather`.
    pub(crate) name: &'static str,
    /// The version in the name: 2 of `all_gather_v2`.
    pub(crate) revision: u8,
    /// The first version of StableHLO that has it.
    pub(crate) since: Version,
    /// The last version that has it; none if it still has.
    pub(crate) until: Option<Version>,
    /// Its attributes, alphabetically: properties lie in the file in this order.
    pub(crate) attributes: &'static [AttributeRow],
}

/// An attribute of an operation of VHLO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeRow {
    /// The name.
    pub(crate) name: &'static str,
    /// How StableHLO has it.
    pub(crate) form: Form,
    /// When StableHLO need not have it.
    pub(crate) default: Default,
}

/// How StableHLO has an attribute of VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Same,
    /// A tensor as a list of integers.
    Integers,
    /// A tensor as a list of truth values.
    Bools,
    /// A string as a symbol.
    Symbol,
    /// An array of strings as one of symbols.
    Symbols,
    /// True as an attribute without a value.
    Flag,
    /// A word as its number, an `i32`.
    Number,
    /// An integer, or a list of them, as a field of an attribute with fields.
    Field(Struct, &'static str),
    /// Nothing: StableHLO no longer has it.
    Dropped,
}

/// StableHLO's attributes whose fields are attributes of VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struct {
    Channel,
    Convolution,
    Dot,
    DotAlgorithm,
    Gather,
    Scatter,
}

impl Struct {
    /// The name of the attribute in StableHLO's operation, and what kind of attribute it is.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Struct::Channel => ("channel_handle", "channel_handle"),
            Struct::Convolution => ("dimension_numbers", "conv"),
            Struct::Dot => ("dot_dimension_numbers", "dot"),
            Struct::DotAlgorithm => ("algorithm", "dot_algorithm"),
            Struct::Gather => ("dimension_numbers", "gather"),
            Struct::Scatter => ("scatter_dimension_numbers", "scatter"),
        }
    }
}

/// The value of an attribute of VHLO that StableHLO's operation has when it lacks the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// StableHLO's operation has it always.
    None,
    /// `false`
    False,
    /// This integer, an `i64`.
    Integer(i64),
    /// This integer, an `i32`.
    Integer32(i64),
    /// `""`
    EmptyString,
    /// `[]`
    EmptyArray,
    /// `{}`
    EmptyDictionary,
    /// A tensor of no elements.
    EmptyTensor,
    /// A tensor of nothing but ones, one for each spatial dimension.
    Ones,
    /// A tensor of nothing but zeros, two for each spatial dimension.
    Padding,
    /// A tensor of nothing but `false`, one for each spatial dimension.
    NotReversed,
    /// The type `none`.
    NoType,
    /// `DEFAULT` for both operands.
    Precision,
    /// `DEFAULT` without tolerances.
    Accuracy,
    /// The comparison that the operands' type implies.
    ComparisonType,
    /// The first version of the interface of custom calls.
    ApiVersion,
}

impl OpRow {
    /// StableHLO's name for it, with the dialect, in an operation of this name.
    pub(crate) fn stablehlo_name(&self, parent: &str) -> String {
        match self.name {
            "func" | "call" => format!("func.{}", self.name),
            "return" if parent == "func.func" => "func.return".to_owned(),
            name => format!("stablehlo.{name}"),
        }
    }

    /// The operation with this name and revision: `all_gather_v2`.
    pub(crate) fn named(name: &str) -> Option<OpRow> {
        let (name, revision) = name.rsplit_once("_v")?;
        let revision = revision.parse().ok()?;
        OpRow::all().find(|row| row.name == name && row.revision == revision)
    }

    /// All operations.
    pub(crate) fn all() -> impl Iterator<Item = OpRow> {
        let plain = PLAIN.iter().map(|name| op(name, 1, FIRST, None, &[]));
        let before_accuracy = WITH_ACCURACY.iter().map(|&(name, since, changed)| {
            let until = Version::minor(1, changed - 1);
            op(name, 1, since, Some(until), &[])
        });
        let with_accuracy = WITH_ACCURACY
            .iter()
            .map(|&(name, _, changed)| op(name, 2, Version::minor(1, changed), None, ACCURACY));
        plain.chain(before_accuracy).chain(with_accuracy).chain(OPERATIONS.iter().copied())
    }
}

const FIRST: Version = Version::minor(0, 9);

const fn op(
    name: &'static str,
    revision: u8,
    since: Version,
    until: Option<Version>,
    attributes: &'static [AttributeRow],
) -> OpRow {
    OpRow { name, revision, since, until, attributes }
}

/// An operation that has been the same since the first version.
const fn always(name: &'static str, attributes: &'static [AttributeRow]) -> OpRow {
    op(name, 1, FIRST, None, attributes)
}

/// The first revision of an operation, until a minor version of version 1.
const fn before(name: &'static str, until: u32, attributes: &'static [AttributeRow]) -> OpRow {
    op(name, 1, FIRST, Some(Version::minor(1, until)), attributes)
}

/// The second revision of an operation, since a minor version of version 1.
const fn after(name: &'static str, since: u32, attributes: &'static [AttributeRow]) -> OpRow {
    op(name, 2, Version::minor(1, since), None, attributes)
}

const fn attribute(name: &'static str, form: Form, default: Default) -> AttributeRow {
    AttributeRow { name, form, default }
}

/// An attribute that StableHLO always has, as it is.
const fn same(name: &'static str) -> AttributeRow {
    attribute(name, Form::Same, Default::None)
}

/// An attribute that StableHLO has as it is, unless it is this.
const fn or(name: &'static str, default: Default) -> AttributeRow {
    attribute(name, Form::Same, default)
}

/// A list of integers that StableHLO always has.
const fn integers(name: &'static str) -> AttributeRow {
    attribute(name, Form::Integers, Default::None)
}

const fn flag(name: &'static str) -> AttributeRow {
    attribute(name, Form::Flag, Default::False)
}

/// A field of the same name in an attribute that StableHLO always has.
const fn field(of: Struct, name: &'static str) -> AttributeRow {
    attribute(name, Form::Field(of, name), Default::None)
}

/// A field of an algorithm, which may be missing.
const fn algorithm(name: &'static str) -> AttributeRow {
    attribute(name, Form::Field(Struct::DotAlgorithm, name), Default::NoType)
}

/// The channel of a collective operation.
const CHANNEL: AttributeRow =
    attribute("channel_id", Form::Field(Struct::Channel, "handle"), Default::Integer(0));
/// The channel of a transfer.
const TRANSFER_CHANNEL: AttributeRow =
    attribute("channel_id", Form::Field(Struct::Channel, "handle"), Default::None);
/// Between which sides a transfer is.
const CHANNEL_TYPE: AttributeRow =
    attribute("channel_type", Form::Field(Struct::Channel, "type"), Default::None);
const HOST_TRANSFER: AttributeRow = or("is_host_transfer", Default::False);
const GROUPS: AttributeRow = same("replica_groups");
const GLOBAL_IDS: AttributeRow = flag("use_global_device_ids");
const PRECISION: AttributeRow = or("precision_config", Default::Precision);
const PAIRS: AttributeRow = or("source_target_pairs", Default::EmptyTensor);
const SORTED: AttributeRow = or("indices_are_sorted", Default::False);
const UNIQUE: AttributeRow = or("unique_indices", Default::False);
const STRIDES: AttributeRow = attribute("window_strides", Form::Integers, Default::Ones);
const LHS_DILATION: AttributeRow = attribute("lhs_dilation", Form::Integers, Default::Ones);
const RHS_DILATION: AttributeRow = attribute("rhs_dilation", Form::Integers, Default::Ones);
const REVERSAL: AttributeRow = attribute("window_reversal", Form::Bools, Default::NotReversed);
const PADDING: AttributeRow = or("padding", Default::Padding);
const BATCH_NORM: &[AttributeRow] = &[same("epsilon"), same("feature_index")];
const ACCURACY: &[AttributeRow] = &[or("result_accuracy", Default::Accuracy)];

const ALL_GATHER: &[AttributeRow] = &[same("all_gather_dim"), CHANNEL, GROUPS, GLOBAL_IDS];
const ALL_REDUCE: &[AttributeRow] = &[CHANNEL, GROUPS, GLOBAL_IDS];
const ALL_TO_ALL: &[AttributeRow] =
    &[CHANNEL, same("concat_dimension"), GROUPS, same("split_count"), same("split_dimension")];
const COMPOSITE: &[AttributeRow] = &[
    or("composite_attributes", Default::EmptyDictionary),
    attribute("decomposition", Form::Symbol, Default::None),
    same("name"),
    or("version", Default::Integer32(0)),
];

/// The attributes of convolutions, in order. The second one's padding is an operand.
macro_rules! convolution {
    ($($padding:expr)?) => {
        &[
            same("batch_group_count"),
            same("feature_group_count"),
            field(Struct::Convolution, "input_batch_dimension"),
            field(Struct::Convolution, "input_feature_dimension"),
            field(Struct::Convolution, "input_spatial_dimensions"),
            field(Struct::Convolution, "kernel_input_feature_dimension"),
            field(Struct::Convolution, "kernel_output_feature_dimension"),
            field(Struct::Convolution, "kernel_spatial_dimensions"),
            LHS_DILATION,
            field(Struct::Convolution, "output_batch_dimension"),
            field(Struct::Convolution, "output_feature_dimension"),
            field(Struct::Convolution, "output_spatial_dimensions"),
            $($padding,)?
            PRECISION,
            RHS_DILATION,
            REVERSAL,
            STRIDES,
        ]
    };
}

/// Operations without attributes, the same since the first version.
const PLAIN: &[&str] = &[
    "abs",
    "add",
    "after_all",
    "and",
    "atan2",
    "bitcast_convert",
    "case",
    "ceil",
    "clamp",
    "complex",
    "convert",
    "count_leading_zeros",
    "create_token",
    "divide",
    "dynamic_pad",
    "dynamic_reshape",
    "dynamic_update_slice",
    "floor",
    "if",
    "imag",
    "is_finite",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "optimization_barrier",
    "or",
    "partition_id",
    "popcnt",
    "power",
    "real",
    "real_dynamic_slice",
    "remainder",
    "replica_id",
    "reshape",
    "return",
    "round_nearest_afz",
    "round_nearest_even",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "subtract",
    "tuple",
    "uniform_dequantize",
    "uniform_quantize",
    "while",
    "xor",
];

/// Operations of which the second revision states the accuracy of the result, with the version of
/// the first revision and the minor version (of version 1) of the second one.
const WITH_ACCURACY: &[(&str, Version, u32)] = &[
    ("cbrt", FIRST, 10),
    ("cosine", FIRST, 10),
    ("exponential", FIRST, 9),
    ("exponential_minus_one", FIRST, 10),
    ("log", FIRST, 10),
    ("log_plus_one", FIRST, 10),
    ("logistic", FIRST, 10),
    ("rsqrt", FIRST, 10),
    ("sine", FIRST, 10),
    ("sqrt", FIRST, 10),
    ("tan", Version::minor(1, 4), 10),
    ("tanh", FIRST, 10),
];

/// All other operations.
const OPERATIONS: &[OpRow] = &[
    before("all_gather", 4, ALL_GATHER),
    after("all_gather", 5, ALL_GATHER),
    before("all_reduce", 4, ALL_REDUCE),
    after("all_reduce", 5, ALL_REDUCE),
    before("all_to_all", 4, ALL_TO_ALL),
    after("all_to_all", 5, ALL_TO_ALL),
    op("async_done", 1, Version::minor(1, 15), None, &[]),
    op("async_start", 1, Version::minor(1, 15), None, &[]),
    always("batch_norm_grad", BATCH_NORM),
    always("batch_norm_inference", BATCH_NORM),
    always("batch_norm_training", BATCH_NORM),
    always("broadcast", &[integers("broadcast_sizes")]),
    always("broadcast_in_dim", &[integers("broadcast_dimensions")]),
    always("call", &[attribute("callee", Form::Symbol, Default::None)]),
    always("cholesky", &[or("lower", Default::False)]),
    op(
        "collective_broadcast",
        1,
        Version::minor(0, 16),
        Some(Version::minor(1, 19)),
        &[CHANNEL, GROUPS],
    ),
    after("collective_broadcast", 20, &[CHANNEL, flag("has_dynamic_root"), GROUPS]),
    always("collective_permute", &[CHANNEL, same("source_target_pairs")]),
    op(
        "collective_reduce",
        1,
        Version::minor(1, 19),
        None,
        &[CHANNEL, flag("has_dynamic_root"), GROUPS, GLOBAL_IDS],
    ),
    always("compare", &[or("compare_type", Default::ComparisonType), same("comparison_direction")]),
    op("composite", 1, Version::minor(0, 19), Some(Version::minor(1, 13)), COMPOSITE),
    after("composite", 14, COMPOSITE),
    always("concatenate", &[same("dimension")]),
    always("constant", &[same("value")]),
    always("convolution", convolution!(PADDING)),
    always("cross-replica-sum", &[GROUPS]),
    before(
        "custom_call",
        17,
        &[
            attribute("api_version", Form::Number, Default::ApiVersion),
            or("backend_config", Default::EmptyString),
            same("call_target_name"),
            attribute("called_computations", Form::Symbols, Default::EmptyArray),
            or("has_side_effect", Default::False),
            or("operand_layouts", Default::EmptyArray),
            or("output_operand_aliases", Default::EmptyArray),
            or("result_layouts", Default::EmptyArray),
        ],
    ),
    after(
        "custom_call",
        18,
        &[
            attribute("api_version", Form::Number, Default::ApiVersion),
            or("backend_config", Default::EmptyString),
            same("call_target_name"),
            attribute("called_computations", Form::Symbols, Default::EmptyArray),
            or("has_side_effect", Default::False),
            or("operand_layouts", Default::EmptyArray),
            or("output_operand_aliases", Default::EmptyArray),
            or("result_layouts", Default::EmptyArray),
            or("result_tilings", Default::EmptyArray),
        ],
    ),
    always("dot", &[PRECISION]),
    before(
        "dot_general",
        5,
        &[
            field(Struct::Dot, "lhs_batching_dimensions"),
            field(Struct::Dot, "lhs_contracting_dimensions"),
            PRECISION,
            field(Struct::Dot, "rhs_batching_dimensions"),
            field(Struct::Dot, "rhs_contracting_dimensions"),
        ],
    ),
    after(
        "dot_general",
        6,
        &[
            algorithm("accumulation_type"),
            algorithm("allow_imprecise_accumulation"),
            field(Struct::Dot, "lhs_batching_dimensions"),
            algorithm("lhs_component_count"),
            field(Struct::Dot, "lhs_contracting_dimensions"),
            algorithm("lhs_precision_type"),
            algorithm("num_primitive_operations"),
            PRECISION,
            field(Struct::Dot, "rhs_batching_dimensions"),
            algorithm("rhs_component_count"),
            field(Struct::Dot, "rhs_contracting_dimensions"),
            algorithm("rhs_precision_type"),
        ],
    ),
    always(
        "dynamic_broadcast_in_dim",
        &[
            integers("broadcast_dimensions"),
            attribute("known_expanding_dimensions", Form::Integers, Default::EmptyTensor),
            attribute("known_nonexpanding_dimensions", Form::Integers, Default::EmptyTensor),
        ],
    ),
    op(
        "dynamic_conv",
        1,
        FIRST,
        Some(Version::minor(0, 19)),
        convolution!(attribute("padding", Form::Dropped, Default::Padding)),
    ),
    op("dynamic_conv", 2, Version::minor(0, 20), None, convolution!()),
    before(
        "dynamic_gather",
        0,
        &[
            field(Struct::Gather, "collapsed_slice_dims"),
            field(Struct::Gather, "index_vector_dim"),
            SORTED,
            field(Struct::Gather, "offset_dims"),
            field(Struct::Gather, "start_index_map"),
        ],
    ),
    after(
        "dynamic_gather",
        1,
        &[
            field(Struct::Gather, "collapsed_slice_dims"),
            field(Struct::Gather, "index_vector_dim"),
            SORTED,
            field(Struct::Gather, "offset_dims"),
            field(Struct::Gather, "operand_batching_dims"),
            field(Struct::Gather, "start_index_map"),
            field(Struct::Gather, "start_indices_batching_dims"),
        ],
    ),
    always("dynamic_iota", &[same("iota_dimension")]),
    always("dynamic_slice", &[integers("slice_sizes")]),
    always("einsum", &[same("einsum_config")]),
    always("fft", &[integers("fft_length"), same("fft_type")]),
    always(
        "func",
        &[
            or("arg_attrs", Default::EmptyArray),
            same("function_type"),
            or("res_attrs", Default::EmptyArray),
            same("sym_name"),
            or("sym_visibility", Default::EmptyString),
        ],
    ),
    before(
        "gather",
        0,
        &[
            field(Struct::Gather, "collapsed_slice_dims"),
            field(Struct::Gather, "index_vector_dim"),
            SORTED,
            field(Struct::Gather, "offset_dims"),
            integers("slice_sizes"),
            field(Struct::Gather, "start_index_map"),
        ],
    ),
    after(
        "gather",
        1,
        &[
            field(Struct::Gather, "collapsed_slice_dims"),
            field(Struct::Gather, "index_vector_dim"),
            SORTED,
            field(Struct::Gather, "offset_dims"),
            field(Struct::Gather, "operand_batching_dims"),
            integers("slice_sizes"),
            field(Struct::Gather, "start_index_map"),
            field(Struct::Gather, "start_indices_batching_dims"),
        ],
    ),
    always("get_dimension_size", &[same("dimension")]),
    always("get_tuple_element", &[same("index")]),
    always(
        "infeed",
        &[or("infeed_config", Default::EmptyString), or("layout", Default::EmptyArray)],
    ),
    always("iota", &[same("iota_dimension")]),
    always("map", &[integers("dimensions")]),
    always("outfeed", &[or("outfeed_config", Default::EmptyString)]),
    always(
        "pad",
        &[
            integers("edge_padding_high"),
            integers("edge_padding_low"),
            integers("interior_padding"),
        ],
    ),
    before("recv", 11, &[TRANSFER_CHANNEL, CHANNEL_TYPE, HOST_TRANSFER]),
    after("recv", 12, &[TRANSFER_CHANNEL, CHANNEL_TYPE, HOST_TRANSFER, PAIRS]),
    always("reduce", &[integers("dimensions")]),
    always("reduce_precision", &[same("exponent_bits"), same("mantissa_bits")]),
    always("reduce_scatter", &[CHANNEL, GROUPS, same("scatter_dimension"), GLOBAL_IDS]),
    always(
        "reduce_window",
        &[
            attribute("base_dilations", Form::Integers, Default::Ones),
            PADDING,
            attribute("window_dilations", Form::Integers, Default::Ones),
            integers("window_dimensions"),
            STRIDES,
        ],
    ),
    always("reverse", &[integers("dimensions")]),
    always("rng", &[same("rng_distribution")]),
    always("rng_bit_generator", &[same("rng_algorithm")]),
    before(
        "scatter",
        0,
        &[
            field(Struct::Scatter, "index_vector_dim"),
            SORTED,
            field(Struct::Scatter, "inserted_window_dims"),
            field(Struct::Scatter, "scatter_dims_to_operand_dims"),
            UNIQUE,
            field(Struct::Scatter, "update_window_dims"),
        ],
    ),
    after(
        "scatter",
        1,
        &[
            field(Struct::Scatter, "index_vector_dim"),
            SORTED,
            field(Struct::Scatter, "input_batching_dims"),
            field(Struct::Scatter, "inserted_window_dims"),
            field(Struct::Scatter, "scatter_dims_to_operand_dims"),
            field(Struct::Scatter, "scatter_indices_batching_dims"),
            UNIQUE,
            field(Struct::Scatter, "update_window_dims"),
        ],
    ),
    always("select_and_scatter", &[PADDING, integers("window_dimensions"), STRIDES]),
    before("send", 11, &[TRANSFER_CHANNEL, CHANNEL_TYPE, HOST_TRANSFER]),
    after("send", 12, &[TRANSFER_CHANNEL, CHANNEL_TYPE, HOST_TRANSFER, PAIRS]),
    always("set_dimension_size", &[same("dimension")]),
    always("slice", &[integers("limit_indices"), integers("start_indices"), integers("strides")]),
    always("sort", &[or("dimension", Default::Integer(-1)), or("is_stable", Default::False)]),
    always("torch_index_select", &[same("batch_dims"), same("dim")]),
    always("transpose", &[integers("permutation")]),
    always(
        "triangular_solve",
        &[same("left_side"), same("lower"), same("transpose_a"), same("unit_diagonal")],
    ),
    always("unary_einsum", &[same("einsum_config")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_stand_alphabetically() {
        for row in OpRow::all() {
            assert!(row.attributes.is_sorted_by(|a, b| a.name < b.name), "{}", row.name);
        }
    }

    #[test]
    fn revisions_follow_each_other() {
        for row in OpRow::all() {
            let same = OpRow::all().filter(|other| other.name == row.name);
            let revisions: Vec<_> = same.map(|row| (row.revision, row.until.is_some())).collect();
            let wanted: &[_] =
                if revisions.len() == 1 { &[(1, false)] } else { &[(1, true), (2, false)] };
            assert_eq!(revisions, wanted, "{}", row.name);
        }
    }
}
