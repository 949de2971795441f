//! `docs/operations.md`: every operation, and every name in the specification.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use helio_ir::Op;
use helio_ir::ops::{Arity, Family, OpInfo};

/// A name of the specification: its editions, builder methods, and the operations they lower to.
type Documented = (&'static str, &'static str, &'static str, &'static str);

/// Every operation of `op_table.md`, sections 1 to 4.
#[rustfmt::skip]
const DOCUMENTED: &[Documented] = &[
    ("Broadcast", "E1–E4", "broadcast", "broadcast"),
    ("BroadcastInDim", "E4", "broadcast_in_dim", "broadcast reshape"),
    ("Collapse", "E1–E4", "collapse", "reshape"),
    ("Reshape", "E1–E4", "reshape", "reshape"),
    ("Reshape with dimensions", "E1–E3", "reshape_with_dimensions", "transpose reshape"),
    ("Reshape, dynamic", "now", "dynamic_reshape reshape_to", "dynamic-reshape reshape"),
    ("Transpose", "E1–E4", "transpose", "transpose"),
    ("Rev", "E1–E4", "rev", "reverse"),
    ("Concatenate, ConcatInDim", "E1–E4", "concat_in_dim", "concatenate"),
    ("Slice", "E4", "slice slice_in_dim", "slice"),
    ("Slice with unit strides", "E1–E3", "slice_unit_stride", "slice"),
    ("DynamicSlice, scalar indices", "E4", "dynamic_slice", "dynamic-slice"),
    ("DynamicSlice, index vector", "E1–E3", "dynamic_slice_vector", "slice reshape dynamic-slice"),
    ("DynamicUpdateSlice, scalar indices", "E4", "dynamic_update_slice", "dynamic-update-slice"),
    ("DynamicUpdateSlice, index vector", "E1–E3", "dynamic_update_slice_vector", "slice reshape dynamic-update-slice"),
    ("Pad", "E1–E4", "pad pad_in_dim", "pad"),
    ("Iota", "E4", "iota iota_r1", "iota"),
    ("Tuple", "E1–E4", "tuple", "tuple"),
    ("GetTupleElement", "E1–E4", "get_tuple_element", "get-tuple-element"),
    ("Select, also of tuples", "E1–E4", "select", "select"),
    ("Clamp", "E3 E4", "clamp", "clamp"),
    ("Call", "E1–E4", "call", "call"),
    ("CompositeCall", "E4", "composite_call", "call"),
    ("Conditional, by pred", "E3 E4", "conditional", "conditional"),
    ("Conditional, by index", "E4", "conditional_indexed", "conditional"),
    ("While", "E1–E4", "while_loop", "while"),
    ("Map", "E3 E4", "map", "map"),
    ("Map with static operands", "E1 E2", "map_with_static_operands", "map"),
    ("CustomCall", "E1–E4", "custom_call custom_call_with", "custom-call"),
    ("OptimizationBarrier", "E4", "optimization_barrier", "opt-barrier"),
    ("AfterAll", "E4", "after_all create_token", "after-all"),
    ("GetDimensionSize", "E4", "get_dimension_size", "get-dimension-size"),
    ("SetDimensionSize", "E4", "set_dimension_size remove_dynamic_dimension", "set-dimension-size"),
    ("Infeed", "E1–E4", "infeed infeed_with_token", "infeed"),
    ("Send, SendDone", "E3 E4", "send send_with_token send_start send_done send_to_host", "send send-done"),
    ("Recv, RecvDone", "E3 E4", "recv recv_with_token recv_start recv_done recv_from_host", "recv recv-done"),
    ("ConvertElementType", "E1–E4", "convert_element_type", "convert"),
    ("BitcastConvertType", "E3 E4", "bitcast_convert_type", "bitcast-convert"),
    ("Add", "E1–E4", "add", "add"),
    ("Sub", "E1–E4", "sub", "subtract"),
    ("Mul", "E1–E4", "mul", "multiply"),
    ("Div", "E1–E4", "div", "divide"),
    ("Rem", "E1–E4", "rem", "remainder"),
    ("Max", "E1–E4", "max", "maximum"),
    ("Min", "E1–E4", "min", "minimum"),
    ("LogicalAnd, LogicalOr, LogicalNot", "E1–E3", "logical_and logical_or logical_not", "and or not"),
    ("And", "E4", "and", "and"),
    ("Or", "E4", "or", "or"),
    ("Xor", "E4", "xor", "xor"),
    ("Not", "E4", "not", "not"),
    ("Pow", "E4", "pow", "power"),
    ("Atan2", "E4", "atan2", "atan2"),
    ("ShiftLeft", "E4", "shift_left", "shift-left"),
    ("ShiftRightArithmetic", "E4", "shift_right_arithmetic", "shift-right-arithmetic"),
    ("ShiftRightLogical", "E4", "shift_right_logical", "shift-right-logical"),
    ("Complex", "E4", "complex", "complex"),
    ("Real", "E4", "real", "real"),
    ("Imag", "E4", "imag", "imag"),
    ("Eq Ne Ge Gt Le Lt", "E1–E4", "eq ne ge gt le lt", "compare"),
    ("EqTotalOrder NeTotalOrder GeTotalOrder GtTotalOrder LeTotalOrder LtTotalOrder", "E4", "eq_total_order ne_total_order ge_total_order gt_total_order le_total_order lt_total_order", "compare"),
    ("Abs", "E1–E4", "abs", "abs"),
    ("Ceil", "E1–E4", "ceil", "ceil"),
    ("Exp", "E1–E4", "exp", "exponential"),
    ("Floor", "E1–E4", "floor", "floor"),
    ("Log", "E1–E4", "log", "log"),
    ("Neg", "E1–E4", "neg", "negate"),
    ("Tanh", "E1–E4", "tanh", "tanh"),
    ("Sign", "E1–E4", "sign", "sign"),
    ("IsFinite", "E2–E4", "is_finite", "is-finite"),
    ("Cos", "E3 E4", "cos", "cosine"),
    ("Cbrt", "E4", "cbrt", "cbrt"),
    ("Clz", "E4", "clz", "count-leading-zeros"),
    ("Erf", "E4", "erf", "erf"),
    ("Expm1", "E4", "expm1", "exponential-minus-one"),
    ("Log1p", "E4", "log1p", "log-plus-one"),
    ("Logistic", "E4", "logistic", "logistic"),
    ("PopulationCount", "E4", "population_count", "popcnt"),
    ("Rsqrt", "E4", "rsqrt", "rsqrt"),
    ("Sin", "E4", "sin", "sine"),
    ("Sqrt", "E4", "sqrt", "sqrt"),
    ("Tan", "E4", "tan", "tan"),
    ("Round", "E4", "round", "round-nearest-afz"),
    ("RoundNearestEven", "E4", "round_nearest_even", "round-nearest-even"),
    ("ReducePrecision", "E3 E4", "reduce_precision", "reduce-precision"),
    ("Dot", "E1–E4", "dot", "dot"),
    ("DotGeneral", "E3 E4", "dot_general dot_general_with", "dot"),
    ("Conv", "E1–E4", "conv", "convolution"),
    ("ConvWithGeneralPadding", "E1–E4", "conv_with_general_padding conv_general conv_general_dilated", "convolution"),
    ("BatchNormTraining", "E3 E4", "batch_norm_training", "batch-norm-training"),
    ("BatchNormInference", "E3 E4", "batch_norm_inference", "batch-norm-inference"),
    ("BatchNormGrad", "E3 E4", "batch_norm_grad", "batch-norm-grad"),
    ("Cholesky", "E4", "cholesky", "cholesky"),
    ("TriangularSolve", "E4", "triangular_solve", "triangular-solve"),
    ("Fft", "E4", "fft", "fft"),
    ("Reduce", "E1–E4", "reduce reduce_all", "reduce"),
    ("ReduceWindow", "E1–E4", "reduce_window reduce_window_with_general_padding", "reduce-window"),
    ("SelectAndScatter", "E1–E4", "select_and_scatter select_and_scatter_with_general_padding", "select-and-scatter"),
    ("Gather", "E4", "gather", "gather"),
    ("Gather, old names", "E3", "gather_legacy", "gather"),
    ("Scatter", "E4", "scatter", "scatter"),
    ("Sort by comparator", "E4", "sort_by", "sort"),
    ("Sort", "E1–E3", "sort", "sort"),
    ("TopK", "E4", "top_k", "topk"),
    ("RngUniform", "E1–E4", "rng_uniform", "rng"),
    ("RngNormal", "E1–E4", "rng_normal", "rng"),
    ("RngBernoulli", "E1 E2", "rng_bernoulli", "rng compare convert"),
    ("RngBitGenerator", "E4", "rng_bit_generator", "rng-bit-generator"),
    ("CrossReplicaSum", "E1–E4", "cross_replica_sum", "all-reduce"),
    ("AllReduce", "E4", "all_reduce", "all-reduce"),
    ("AllGather", "E4", "all_gather", "all-gather"),
    ("AllToAll", "E4", "all_to_all all_to_all_tuple", "all-to-all"),
    ("CollectivePermute", "E4", "collective_permute", "collective-permute"),
    ("ReduceScatter", "E4", "reduce_scatter", "reduce-scatter"),
    ("ReplicaId", "E4", "replica_id", "replica-id"),
];

/// Writes the page, or with `check` compares it. Errors: it is out of date or cannot be written; a
/// documented operation lacks its builder method or opcode.
pub(crate) fn write(check: bool) -> Result<(), String> {
    let path = crate::root().join("docs/operations.md");
    let page = page()?;
    if check {
        let found = fs::read_to_string(&path).unwrap_or_default();
        return if found == page {
            Ok(())
        } else {
            Err("docs/operations.md is out of date: run `cargo xtask docs`".to_owned())
        };
    }
    fs::write(&path, page).map_err(|e| format!("{}: {e}", path.display()))
}

fn page() -> Result<String, String> {
    let mut page = String::from(
        "# Operations\n\n\
         Written by `cargo xtask docs` from the table in `crates/ir/src/ops`; do not edit.\n\n\
         Each operation has HLO text in both directions, shape inference with numbered constraints\n\
         (`docs/spec`), a builder method, and a meaning in the interpreter.\n",
    );
    let mut by_family: BTreeMap<Family, Vec<OpInfo>> = BTreeMap::new();
    let table = Op::table();
    for row in &table {
        by_family.entry(row.family).or_default().push(*row);
    }
    for (family, rows) in by_family {
        let _ = write!(page, "\n## {}\n\n", title(family));
        page.push_str("| HLO | operands | StableHLO, CHLO | |\n|---|---|---|---|\n");
        for row in rows {
            let operands = match row.arity {
                Arity::Exactly(n) => n.to_string(),
                Arity::AtLeast(n) => format!("{n}…"),
            };
            let _ = writeln!(
                page,
                "| `{}` | {operands} | {} | {} |",
                row.name,
                row.stablehlo_names.join(", "),
                row.summary.replace('|', "\\|")
            );
        }
    }
    page.push_str(
        "\n## By the specification's names\n\n\
         Editions: E1 the oldest English text, E2 the second, E3 Chinese, E4 Indonesian (newest).\n\n\
         | name | editions | builder | HLO |\n|---|---|---|---|\n",
    );
    let builder = builder_methods()?;
    for &(name, editions, methods, opcodes) in DOCUMENTED {
        for method in methods.split(' ') {
            if !defines(&builder, method) {
                return Err(format!("{name}: the builder has no method `{method}`"));
            }
        }
        for opcode in opcodes.split(' ') {
            if !table.iter().any(|row| row.name == opcode) {
                return Err(format!("{name}: there is no operation `{opcode}`"));
            }
        }
        let list = |words: &str| format!("`{}`", words.replace(' ', "` `"));
        let _ = writeln!(page, "| {name} | {editions} | {} | {} |", list(methods), list(opcodes));
    }
    Ok(page)
}

fn title(family: Family) -> &'static str {
    match family {
        Family::Elementwise => "Element-wise",
        Family::Movement => "Data movement and shapes",
        Family::Control => "Tuples and control",
        Family::Host => "Exchange with the host",
        Family::LinearAlgebra => "Linear algebra",
        Family::Reduction => "Reductions, windows, sorting, normalisation",
        Family::Indexing => "Gather and scatter",
        Family::Random => "Random numbers",
        Family::Collective => "Collectives",
        Family::Asynchronous => "Asynchronous forms",
    }
}

/// Whether the builder defines a method: as a function, or in a row of a table of methods, whose
/// first words are their names.
fn defines(builder: &str, method: &str) -> bool {
    let function =
        ["(", "<"].iter().any(|open| builder.contains(&format!("pub fn {method}{open}")));
    let in_row = |line: &str| {
        let names = line.split(',').next().unwrap_or_default();
        line.starts_with("    ") && names.split_whitespace().any(|name| name == method)
    };
    function || builder.lines().any(in_row)
}

/// The text of the builder's source files.
fn builder_methods() -> Result<String, String> {
    let dir = crate::root().join("crates/ir/src/builder");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut text = String::new();
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            continue; // tests
        }
        text += &fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(text)
}
