//! Attributes of operations: their names and values in text, and the fields of the message.

use helio_ir::text::attrs::{Scan, braced, quote};
use helio_ir::text::parse_shape;
use helio_ir::{Error, Result};

use crate::fields::{configuration, unquoted};
use crate::messages::{
    CholeskyOptions, CollectiveDeviceListProto, DotDimensionNumbers, HloInstructionProto,
    IotaReplicaGroupListProto, OutputOperandAliasing, PaddingConfig, PaddingConfigDimension,
    PrecisionConfig, RaggedDotDimensionNumbers, ReplicaGroup, SliceDimensions, SourceTarget,
    TriangularSolveOptions, WindowDimension, WindowProto,
};
use crate::words::{
    API_VERSION, DISTRIBUTION, DOT_ALGORITHM, FFT, PADDING, PRECISION, RNG_ALGORITHM, SCHEDULE,
    TRANSPOSE, number, word,
};
use crate::{convolution, shape};

/// Attributes whose values are computations, in the order in which a message lists those.
pub(crate) const CALLS: &[&str] = &[
    "body",
    "condition",
    "select",
    "scatter",
    "true_computation",
    "false_computation",
    "branch_computations",
    "calls",
    "called_computations",
    "to_apply",
];

/// Operations whose text states `dimensions` even if there are none.
const WITH_DIMENSIONS: &[&str] = &["broadcast", "map", "reduce", "reverse", "transpose"];

type Pairs = Vec<(&'static str, String)>;

/// The attributes of an instruction as text. Some that the operation does not have may be among
/// them: a message does not tell a field that is 0 from one that is not there.
pub(crate) fn read(proto: &HloInstructionProto) -> Result<Pairs> {
    let mut pairs = Pairs::new();
    let dimensions = &proto.dimensions;
    if !dimensions.is_empty() || WITH_DIMENSIONS.contains(&proto.opcode.as_str()) {
        pairs.push(("dimensions", braced(dimensions)));
    }
    pairs.push(("iota_dimension", dimensions.first().copied().unwrap_or(0).to_string()));
    numbers(proto, &mut pairs);
    flags(proto, &mut pairs);
    words(proto, &mut pairs)?;
    indexing(proto, &mut pairs);
    products(proto, &mut pairs)?;
    windows(proto, &mut pairs)?;
    collectives(proto, &mut pairs);
    foreign(proto, &mut pairs)?;
    Ok(pairs)
}

fn numbers(proto: &HloInstructionProto, pairs: &mut Pairs) {
    let all = [
        ("index", proto.tuple_index),
        ("exponent_bits", proto.exponent_bits.into()),
        ("mantissa_bits", proto.mantissa_bits.into()),
        ("feature_index", proto.feature_index),
        ("delta", proto.delta),
        ("k", proto.k),
    ];
    pairs.extend(all.map(|(name, value)| (name, value.to_string())));
    pairs.push(("epsilon", proto.epsilon.to_string()));
    let channel = proto.channel_id.max(proto.all_reduce_id);
    if channel > 0 {
        pairs.push(("channel_id", channel.to_string()));
    }
    for (name, count) in [
        ("feature_group_count", proto.feature_group_count),
        ("batch_group_count", proto.batch_group_count),
    ] {
        if count > 0 {
            pairs.push((name, count.to_string()));
        }
    }
    if let Some(index) = proto.cross_program_prefetch_index {
        pairs.push(("cross_program_prefetch_index", index.to_string()));
    }
}

fn flags(proto: &HloInstructionProto, pairs: &mut Pairs) {
    let solve = proto.triangular_solve_options.clone().unwrap_or_default();
    let lower = proto.cholesky_options.as_ref().is_some_and(|options| options.lower);
    let all = [
        ("is_host_transfer", proto.is_host_transfer),
        ("is_stable", proto.is_stable),
        ("is_composite", proto.is_composite),
        ("indices_are_sorted", proto.indices_are_sorted),
        ("unique_indices", proto.unique_indices),
        ("use_global_device_ids", proto.use_global_device_ids),
        ("custom_call_has_side_effect", proto.custom_call_has_side_effect),
        ("largest", proto.largest),
        ("left_side", solve.left_side),
        ("lower", solve.lower || lower),
        ("unit_diagonal", solve.unit_diagonal),
    ];
    pairs.extend(all.map(|(name, value)| (name, value.to_string())));
}

fn words(proto: &HloInstructionProto, pairs: &mut Pairs) -> Result<()> {
    if let Some(solve) = &proto.triangular_solve_options {
        pairs.push(("transpose_a", word(TRANSPOSE, solve.transpose_a, "transpose_a")?.into()));
    }
    for (name, text) in [
        ("direction", &proto.comparison_direction),
        ("type", &proto.comparison_type),
        ("kind", &proto.fusion_kind),
    ] {
        if !text.is_empty() {
            pairs.push((name, text.clone()));
        }
    }
    let precision = proto.precision_config.clone().unwrap_or_default();
    match proto.opcode.as_str() {
        "rng" => {
            let text = word(DISTRIBUTION, proto.distribution, "a distribution")?;
            pairs.push(("distribution", text.to_owned()));
        }
        "rng-bit-generator" => {
            let text = word(RNG_ALGORITHM, proto.rng_algorithm, "a generator")?;
            pairs.push(("algorithm", text.to_owned()));
        }
        "fft" => pairs.push(("fft_type", word(FFT, proto.fft_type, "a transform")?.to_owned())),
        _ => {
            let text = word(DOT_ALGORITHM, precision.algorithm, "an algorithm of a product")?;
            pairs.push(("algorithm", text.to_owned()));
        }
    }
    // The default for all is not written.
    if precision.operand_precision.iter().any(|&precision| precision != 0) {
        let list = precision.operand_precision.iter().map(|&p| word(PRECISION, p, "a precision"));
        pairs.push(("operand_precision", braced(&list.collect::<Result<Vec<_>>>()?)));
    }
    Ok(())
}

fn indexing(proto: &HloInstructionProto, pairs: &mut Pairs) {
    let mut list = |name, values: &[i64]| pairs.push((name, braced(values)));
    list("dynamic_slice_sizes", &proto.dynamic_slice_sizes);
    list("fft_length", &proto.fft_length);
    if let Some(dims) = &proto.gather_dimension_numbers {
        list("offset_dims", &dims.offset_dims);
        list("collapsed_slice_dims", &dims.collapsed_slice_dims);
        list("start_index_map", &dims.start_index_map);
        list("operand_batching_dims", &dims.operand_batching_dims);
        list("start_indices_batching_dims", &dims.start_indices_batching_dims);
        list("slice_sizes", &proto.gather_slice_sizes);
        pairs.push(("index_vector_dim", dims.index_vector_dim.to_string()));
    } else if let Some(dims) = &proto.scatter_dimension_numbers {
        list("update_window_dims", &dims.update_window_dims);
        list("inserted_window_dims", &dims.inserted_window_dims);
        list("scatter_dims_to_operand_dims", &dims.scatter_dims_to_operand_dims);
        list("input_batching_dims", &dims.input_batching_dims);
        list("scatter_indices_batching_dims", &dims.scatter_indices_batching_dims);
        pairs.push(("index_vector_dim", dims.index_vector_dim.to_string()));
    }
    let range = |r: &SliceDimensions| format!("[{}:{}:{}]", r.start, r.limit, r.stride);
    pairs.push(("slice", braced(&proto.slice_dimensions.iter().map(range).collect::<Vec<_>>())));
}

fn products(proto: &HloInstructionProto, pairs: &mut Pairs) -> Result<()> {
    let ragged = proto.ragged_dot_dimension_numbers.as_deref();
    let dot = ragged
        .and_then(|ragged| ragged.dot_dimension_numbers.as_ref())
        .or(proto.dot_dimension_numbers.as_deref());
    if let Some(dims) = dot {
        pairs.push(("lhs_contracting_dims", braced(&dims.lhs_contracting_dimensions)));
        pairs.push(("rhs_contracting_dims", braced(&dims.rhs_contracting_dimensions)));
        pairs.push(("lhs_batch_dims", braced(&dims.lhs_batch_dimensions)));
        pairs.push(("rhs_batch_dims", braced(&dims.rhs_batch_dimensions)));
    }
    if let Some(ragged) = ragged {
        pairs.push(("lhs_ragged_dims", braced(&ragged.lhs_ragged_dimensions)));
        pairs.push(("rhs_group_dims", braced(&ragged.rhs_group_dimensions)));
    }
    if let Some(dims) = &proto.convolution_dimension_numbers {
        pairs.push(("dim_labels", convolution::read(dims)?.to_string()));
    }
    Ok(())
}

fn windows(proto: &HloInstructionProto, pairs: &mut Pairs) -> Result<()> {
    if let Some(padding) = &proto.padding_config {
        let dims = padding.dimensions.iter().map(|dim| {
            format!("{}_{}_{}", dim.edge_padding_low, dim.edge_padding_high, dim.interior_padding)
        });
        let text = dims.collect::<Vec<_>>().join("x");
        if !text.is_empty() {
            pairs.push(("padding", text));
        }
    }
    let Some(WindowProto { dimensions }) = &proto.window else { return Ok(()) };
    if dimensions.is_empty() {
        return Ok(());
    }
    let field = |name: &str, value: &dyn Fn(&WindowDimension) -> String| {
        format!("{name}={}", dimensions.iter().map(value).collect::<Vec<_>>().join("x"))
    };
    let fields = [
        field("size", &|dim| dim.size.to_string()),
        field("stride", &|dim| dim.stride.to_string()),
        field("pad", &|dim| format!("{}_{}", dim.padding_low, dim.padding_high)),
        field("lhs_dilate", &|dim| dim.base_dilation.to_string()),
        field("rhs_dilate", &|dim| dim.window_dilation.to_string()),
        field("rhs_reversal", &|dim| i32::from(dim.window_reversal).to_string()),
    ];
    pairs.push(("window", format!("{{{}}}", fields.join(" "))));
    Ok(())
}

fn collectives(proto: &HloInstructionProto, pairs: &mut Pairs) {
    let group = |group: &ReplicaGroup| braced(&group.replica_ids);
    let lists = |groups: &[ReplicaGroup]| braced(&groups.iter().map(group).collect::<Vec<_>>());
    let list = proto.collective_device_list.as_deref();
    let older = list.and_then(|list| list.iota_replica_group_list.as_ref());
    let text = match (proto.iota_collective_device_list.as_deref().or(older), list) {
        (Some(iota), _) => {
            let IotaReplicaGroupListProto { iota_reshape_dims, iota_transpose_perm, .. } = iota;
            let square = |list: String| list.replace('{', "[").replace('}', "]");
            let sizes = braced(&[iota.num_replica_groups, iota.num_devices_per_group]);
            let mut text = format!("{}<={}", square(sizes), square(braced(iota_reshape_dims)));
            if iota_transpose_perm.len() > 1 {
                let order = braced(iota_transpose_perm).replace('{', "(").replace('}', ")");
                text += &format!("T{order}");
            }
            text
        }
        (None, Some(list)) if !list.replica_groups.is_empty() => lists(&list.replica_groups),
        _ => lists(&proto.replica_groups),
    };
    pairs.push(("replica_groups", text));
    let pair = |pair: &SourceTarget| braced(&[pair.source, pair.target]);
    let list: Vec<_> = proto.source_target_pairs.iter().map(pair).collect();
    pairs.push(("source_target_pairs", braced(&list)));
    if proto.constrain_layout && proto.opcode != "custom-call" {
        pairs.push(("constrain_layout", "true".to_owned()));
    }
}

/// What custom calls, fusions and exchanges with the host have.
fn foreign(proto: &HloInstructionProto, pairs: &mut Pairs) -> Result<()> {
    pairs.push(("custom_call_target", quote(&proto.custom_call_target)));
    if proto.custom_call_api_version > 0 {
        let text = word(API_VERSION, proto.custom_call_api_version, "api_version")?;
        pairs.push(("api_version", text.to_owned()));
    }
    pairs.push(("schedule", word(SCHEDULE, proto.custom_call_schedule, "a schedule")?.to_owned()));
    pairs.push(("padding_type", word(PADDING, proto.padding_type, "padding_type")?.to_owned()));
    if proto.constrain_layout && proto.opcode == "custom-call" {
        let shapes = proto.operand_shapes_with_layout.iter().map(shape::read);
        let shapes: Vec<_> = shapes.collect::<Result<_>>()?;
        let shapes: Vec<_> = shapes.iter().map(ToString::to_string).collect();
        pairs.push(("operand_layout_constraints", format!("{{{}}}", shapes.join(", "))));
    }
    if !proto.output_operand_aliasing.is_empty() {
        let entry = |a: &OutputOperandAliasing| {
            let (output, operand) = (braced(&a.output_shape_index), braced(&a.operand_shape_index));
            format!("{output}: ({}, {operand})", a.operand_index)
        };
        let entries: Vec<_> = proto.output_operand_aliasing.iter().map(entry).collect();
        pairs.push(("output_to_operand_aliasing", format!("{{{}}}", entries.join(", "))));
    }
    if !proto.async_execution_thread.is_empty() {
        pairs.push(("async_execution_thread", quote(&proto.async_execution_thread)));
    }
    for (name, bytes) in
        [("infeed_config", &proto.infeed_config), ("outfeed_config", &proto.outfeed_config)]
    {
        if !bytes.is_empty() {
            pairs.push((name, configuration(bytes, name)?));
        }
    }
    if let Some(proto) = proto.outfeed_shape.as_deref() {
        pairs.push(("outfeed_shape", shape::read(proto)?.to_string()));
    }
    Ok(())
}

/// Reads a value that is nothing but a list of integers.
fn ints(value: &str) -> Result<Vec<i64>> {
    whole(value, |scan| scan.list('{', '}', Scan::int))
}

/// Reads a value with `read`, which must use all of it. Errors: `Unimplemented`, as for a number beyond
/// those of messages: the text itself is that of an operation.
fn whole<'a, T>(value: &'a str, read: impl FnOnce(&mut Scan<'a>) -> Result<T>) -> Result<T> {
    let mut scan = Scan::new(value);
    let parsed = read(&mut scan).and_then(|parsed| scan.end().map(|()| parsed));
    parsed.map_err(|e| Error::unimplemented(format!("{value} as a message: {}", e.detail())))
}

fn int(value: &str) -> Result<i64> {
    whole(value, Scan::int)
}

/// Sets the field that an attribute of the text is. Errors: `Unimplemented` for an attribute that
/// no message has.
pub(crate) fn write(proto: &mut HloInstructionProto, name: &str, value: &str) -> Result<()> {
    let is_true = value == "true";
    let small = |value: &str| int(value).map(|value| value as i32);
    match name {
        "dimensions" => proto.dimensions = ints(value)?,
        "iota_dimension" => proto.dimensions = vec![int(value)?],
        "index" => proto.tuple_index = int(value)?,
        "exponent_bits" => proto.exponent_bits = small(value)?,
        "mantissa_bits" => proto.mantissa_bits = small(value)?,
        "feature_index" => proto.feature_index = int(value)?,
        "delta" => proto.delta = int(value)?,
        "k" => proto.k = int(value)?,
        "epsilon" => {
            let epsilon = value.parse();
            proto.epsilon = epsilon.map_err(|_| Error::invalid(format!("epsilon={value}")))?;
        }
        "channel_id" => proto.channel_id = int(value)?,
        "feature_group_count" => proto.feature_group_count = int(value)?,
        "batch_group_count" => proto.batch_group_count = int(value)?,
        "cross_program_prefetch_index" => proto.cross_program_prefetch_index = Some(small(value)?),
        "is_host_transfer" => proto.is_host_transfer = is_true,
        "is_stable" => proto.is_stable = is_true,
        "is_composite" => proto.is_composite = is_true,
        "indices_are_sorted" => proto.indices_are_sorted = is_true,
        "unique_indices" => proto.unique_indices = is_true,
        "use_global_device_ids" => proto.use_global_device_ids = is_true,
        "custom_call_has_side_effect" => proto.custom_call_has_side_effect = is_true,
        "constrain_layout" => proto.constrain_layout = is_true,
        "largest" => proto.largest = is_true,
        "direction" => value.clone_into(&mut proto.comparison_direction),
        "type" => value.clone_into(&mut proto.comparison_type),
        "kind" => value.clone_into(&mut proto.fusion_kind),
        "distribution" => proto.distribution = number(DISTRIBUTION, value, name)?,
        "fft_type" => proto.fft_type = number(FFT, value, name)?,
        "fft_length" => proto.fft_length = ints(value)?,
        "dynamic_slice_sizes" => proto.dynamic_slice_sizes = ints(value)?,
        "slice_sizes" => proto.gather_slice_sizes = ints(value)?,
        "algorithm" if proto.opcode == "rng-bit-generator" => {
            proto.rng_algorithm = number(RNG_ALGORITHM, value, name)?;
        }
        "algorithm" => precision(proto).algorithm = number(DOT_ALGORITHM, value, name)?,
        "operand_precision" => {
            let words = whole(value, |scan| scan.list('{', '}', Scan::word))?;
            let numbers = words.iter().map(|word| number(PRECISION, word, name));
            precision(proto).operand_precision = numbers.collect::<Result<_>>()?;
        }
        _ => return write_structured(proto, name, value),
    }
    Ok(())
}

fn precision(proto: &mut HloInstructionProto) -> &mut PrecisionConfig {
    proto.precision_config.get_or_insert_default()
}

/// Sets a field of a message inside of the instruction's.
fn write_structured(proto: &mut HloInstructionProto, name: &str, value: &str) -> Result<()> {
    let is_true = value == "true";
    match name {
        "left_side" => solve(proto).left_side = is_true,
        "unit_diagonal" => solve(proto).unit_diagonal = is_true,
        "transpose_a" => solve(proto).transpose_a = number(TRANSPOSE, value, name)?,
        "lower" if proto.opcode == "cholesky" => {
            proto.cholesky_options = Some(CholeskyOptions { lower: is_true });
        }
        "lower" => solve(proto).lower = is_true,
        "lhs_contracting_dims" => dot(proto).lhs_contracting_dimensions = ints(value)?,
        "rhs_contracting_dims" => dot(proto).rhs_contracting_dimensions = ints(value)?,
        "lhs_batch_dims" => dot(proto).lhs_batch_dimensions = ints(value)?,
        "rhs_batch_dims" => dot(proto).rhs_batch_dimensions = ints(value)?,
        "lhs_ragged_dims" => ragged(proto).lhs_ragged_dimensions = ints(value)?,
        "rhs_group_dims" => ragged(proto).rhs_group_dimensions = ints(value)?,
        "dim_labels" => {
            proto.convolution_dimension_numbers = Some(Box::new(convolution::write(value)?));
        }
        "window" => proto.window = Some(whole(value, window)?),
        "padding" => proto.padding_config = Some(padding(value)?),
        "slice" => proto.slice_dimensions = whole(value, ranges)?,
        "source_target_pairs" => {
            let pair = |scan: &mut Scan<'_>| match scan.list('{', '}', Scan::int)?[..] {
                [source, target] => Ok(SourceTarget { source, target }),
                _ => Err(scan.unexpected("a source and a target")),
            };
            proto.source_target_pairs = whole(value, |scan| scan.list('{', '}', pair))?;
        }
        "replica_groups" => replica_groups(proto, value)?,
        _ if proto.opcode == "gather" || proto.opcode == "scatter" => {
            return write_indexing(proto, name, value);
        }
        _ => return write_foreign(proto, name, value),
    }
    Ok(())
}

fn solve(proto: &mut HloInstructionProto) -> &mut TriangularSolveOptions {
    proto.triangular_solve_options.get_or_insert_default()
}

fn ragged(proto: &mut HloInstructionProto) -> &mut RaggedDotDimensionNumbers {
    proto.ragged_dot_dimension_numbers.get_or_insert_default()
}

fn dot(proto: &mut HloInstructionProto) -> &mut DotDimensionNumbers {
    match proto.opcode.as_str() {
        "ragged-dot" => ragged(proto).dot_dimension_numbers.get_or_insert_default(),
        _ => proto.dot_dimension_numbers.get_or_insert_default(),
    }
}

fn window(scan: &mut Scan<'_>) -> Result<WindowProto> {
    let window = helio_ir::ops::Window::read(scan)?;
    let dimensions = window.dims.iter().map(|dim| WindowDimension {
        size: dim.size as i64,
        stride: dim.stride as i64,
        padding_low: dim.pad_low,
        padding_high: dim.pad_high,
        window_dilation: dim.window_dilation as i64,
        base_dilation: dim.base_dilation as i64,
        window_reversal: dim.reversal,
    });
    Ok(WindowProto { dimensions: dimensions.collect() })
}

/// `1_2x0_0_3`: low, high and perhaps interior padding of each dimension.
fn padding(value: &str) -> Result<PaddingConfig> {
    let dimension = |part: &str| {
        let numbers: Vec<_> = part.split('_').map(int).collect::<Result<_>>()?;
        let (low, high, interior) = match numbers[..] {
            [low, high] => (low, high, 0),
            [low, high, interior] => (low, high, interior),
            _ => return Err(Error::invalid(format!("padding={value}"))),
        };
        Ok(PaddingConfigDimension {
            edge_padding_low: low,
            edge_padding_high: high,
            interior_padding: interior,
        })
    };
    let dimensions = value.split('x').map(dimension).collect::<Result<_>>()?;
    Ok(PaddingConfig { dimensions })
}

/// `{[0:4], [1:9:2]}`
fn ranges(scan: &mut Scan<'_>) -> Result<Vec<SliceDimensions>> {
    scan.list('{', '}', |scan| {
        scan.expect("[")?;
        let start = scan.int()?;
        scan.expect(":")?;
        let limit = scan.int()?;
        let stride = if scan.eat(":") { scan.int()? } else { 1 };
        scan.expect("]")?;
        Ok(SliceDimensions { start, limit, stride })
    })
}

fn replica_groups(proto: &mut HloInstructionProto, value: &str) -> Result<()> {
    let group =
        |scan: &mut Scan<'_>| Ok(ReplicaGroup { replica_ids: scan.list('{', '}', Scan::int)? });
    let mut scan = Scan::new(value);
    let list = if scan.rest().starts_with('{') {
        let groups = whole(value, |scan| scan.list('{', '}', group))?;
        proto.replica_groups.clone_from(&groups);
        CollectiveDeviceListProto { replica_groups: groups, ..Default::default() }
    } else {
        let [groups, devices] = scan.list('[', ']', Scan::int)?[..] else {
            return Err(Error::unimplemented(format!("replica_groups={value} as a message")));
        };
        scan.expect("<=")?;
        let reshape = scan.list('[', ']', Scan::int)?;
        let transpose = match scan.eat("T") {
            true => scan.list('(', ')', |scan| Ok(scan.size()? as i32))?,
            false => (0..reshape.len() as i32).collect(),
        };
        let iota = IotaReplicaGroupListProto {
            num_replica_groups: groups,
            num_devices_per_group: devices,
            iota_reshape_dims: reshape,
            iota_transpose_perm: transpose,
        };
        proto.iota_collective_device_list = Some(Box::new(iota));
        return Ok(());
    };
    proto.collective_device_list = Some(Box::new(list));
    Ok(())
}

fn write_indexing(proto: &mut HloInstructionProto, name: &str, value: &str) -> Result<()> {
    let is_gather = proto.opcode == "gather";
    if name == "index_vector_dim" {
        let dim = int(value)?;
        match is_gather {
            true => proto.gather_dimension_numbers.get_or_insert_default().index_vector_dim = dim,
            false => proto.scatter_dimension_numbers.get_or_insert_default().index_vector_dim = dim,
        }
        return Ok(());
    }
    let field = if is_gather {
        let dims = proto.gather_dimension_numbers.get_or_insert_default();
        match name {
            "offset_dims" => &mut dims.offset_dims,
            "collapsed_slice_dims" => &mut dims.collapsed_slice_dims,
            "start_index_map" => &mut dims.start_index_map,
            "operand_batching_dims" => &mut dims.operand_batching_dims,
            "start_indices_batching_dims" => &mut dims.start_indices_batching_dims,
            _ => return Err(no_field(proto, name)),
        }
    } else {
        let dims = proto.scatter_dimension_numbers.get_or_insert_default();
        match name {
            "update_window_dims" => &mut dims.update_window_dims,
            "inserted_window_dims" => &mut dims.inserted_window_dims,
            "scatter_dims_to_operand_dims" => &mut dims.scatter_dims_to_operand_dims,
            "input_batching_dims" => &mut dims.input_batching_dims,
            "scatter_indices_batching_dims" => &mut dims.scatter_indices_batching_dims,
            _ => return Err(no_field(proto, name)),
        }
    };
    *field = ints(value)?;
    Ok(())
}

fn no_field(proto: &HloInstructionProto, name: &str) -> Error {
    Error::unimplemented(format!("attribute `{name}` of {} as a message", proto.opcode))
}

fn write_foreign(proto: &mut HloInstructionProto, name: &str, value: &str) -> Result<()> {
    match name {
        "custom_call_target" => proto.custom_call_target = unquoted(value)?,
        "api_version" => proto.custom_call_api_version = number(API_VERSION, value, name)?,
        "schedule" => proto.custom_call_schedule = number(SCHEDULE, value, name)?,
        "padding_type" => proto.padding_type = number(PADDING, value, name)?,
        "async_execution_thread" => proto.async_execution_thread = unquoted(value)?,
        "infeed_config" => proto.infeed_config = unquoted(value)?.into_bytes(),
        "outfeed_config" => proto.outfeed_config = unquoted(value)?.into_bytes(),
        "outfeed_shape" => proto.outfeed_shape = Some(Box::new(shape::write(&parse_shape(value)?))),
        "operand_layout_constraints" => {
            // A list of shapes reads as a tuple's.
            let shapes = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
            let shapes = shapes.ok_or_else(|| no_field(proto, name))?;
            let tuple = parse_shape(&format!("({shapes})"))?;
            let shapes = tuple.as_tuple().unwrap_or_default();
            proto.operand_shapes_with_layout = shapes.iter().map(shape::write).collect();
            proto.constrain_layout = true;
        }
        "output_to_operand_aliasing" => proto.output_operand_aliasing = whole(value, aliasing)?,
        _ => return Err(no_field(proto, name)),
    }
    Ok(())
}

/// `{{0}: (1, {}), {1}: (2, {0})}`
fn aliasing(scan: &mut Scan<'_>) -> Result<Vec<OutputOperandAliasing>> {
    scan.list('{', '}', |scan| {
        let output_shape_index = scan.list('{', '}', Scan::int)?;
        scan.expect(":")?;
        scan.expect("(")?;
        let operand_index = scan.int()?;
        scan.expect(",")?;
        let operand_shape_index = scan.list('{', '}', Scan::int)?;
        // Whether it must, which messages do not say.
        if scan.eat(",") {
            scan.word()?;
        }
        scan.expect(")")?;
        Ok(OutputOperandAliasing { output_shape_index, operand_index, operand_shape_index })
    })
}
