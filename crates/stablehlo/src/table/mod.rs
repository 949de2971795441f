//! The table of operations: which attribute of StableHLO's is which field of HLO's operation.
//!
//! A row names an operation of [`helio_ir::ops`] and, for each of its fields, a codec
//! with the name of the attribute. The name of the operation itself is in HLO's own table
//! ([`helio_ir::Op::table`]). Both directions use the same row: [`read`] when StableHLO is lowered,
//! [`write`] when HLO is raised. Operations that have no row, because they are made of something else
//! on the other side, are in [`WITHOUT_ROW`].

mod codec;
mod collective;
mod structs;
mod window;

use std::collections::HashMap;
use std::sync::LazyLock;

use helio_ir::ops::*; // A row for each of them.
use helio_ir::{ArrayShape, CompId, Op, OpDef, Result, Shape};

use crate::lower::Attrs;
use crate::mlir::Field;
use codec::*;
pub(crate) use codec::{Algorithm, pad_dims, precision};
use collective::Channel;
pub(crate) use collective::{Collective, Pairs, channel_handle};
pub(crate) use structs::{ConvDimensions, DotDimensions, GatherDimensions, ScatterDimensions};
use window::ConvWindow;
pub(crate) use window::{ArrayWindow, conv_window};

/// What an operation is read from, besides its name.
pub(crate) struct Reading<'s, 'm> {
    pub attrs: &'s Attrs<'m>,
    /// The shapes of the operands.
    pub operands: &'s [&'s Shape],
    /// The shape of each result that is a tensor, as stated.
    pub results: &'s [Option<ArrayShape>],
    /// The computations of the regions.
    pub regions: &'s [CompId],
}

/// What an operation is written as.
pub(crate) struct Writing<'s> {
    /// The shapes of the operands.
    pub operands: &'s [&'s Shape],
    pub attributes: Vec<Field>,
    /// The computations that become regions.
    pub regions: Vec<CompId>,
}

macro_rules! rows {
    ($($op:ident { $($field:ident: $codec:ident $(($($argument:expr),*))?),* $(,)? };)*) => {
        /// The operation with this name in HLO; `None` if there is no row for it. Errors: an attribute
        /// is missing, or is of another kind.
        pub(crate) fn read(opcode: &str, from: &Reading<'_, '_>) -> Option<Result<Op>> {
            match opcode {
                $(<$op as OpDef>::OPCODE => {
                    let read = || Ok(Op::from($op {
                        $($field: $codec $(($($argument),*))?.read(from)?,)*
                    }));
                    Some(read())
                })*
                _ => None,
            }
        }

        /// Writes the attributes of an operation, and the computations that are its regions, in order;
        /// `None` if there is no row for it. Errors: what StableHLO cannot say.
        pub(crate) fn write(op: &Op, to: &mut Writing<'_>) -> Option<Result<()>> {
            match op {
                $(Op::$op(_op) => {
                    let fields: [Result<()>; _] =
                        [$($codec $(($($argument),*))?.write(&_op.$field, to)),*];
                    Some(fields.into_iter().collect())
                })*
                _ => None,
            }
        }

        /// HLO's names of the operations that have a row.
        #[cfg(test)]
        const ROWS: &[&str] = &[$(<$op as OpDef>::OPCODE),*];
    };
}

rows! {
    Compare {
        direction: Word("comparison_direction", "comparison_direction"),
        order: CompareOrder,
    };
    Select {};
    Clamp {};
    Convert { element: ResultElement };
    BitcastConvert { element: ResultElement };
    ReducePrecision { exponent_bits: Bits("exponent_bits"), mantissa_bits: Bits("mantissa_bits") };
    Iota { shape: ResultShape(0), dimension: Size("iota_dimension") };
    Broadcast { shape: ResultShape(0), dimensions: Sizes("broadcast_dimensions") };
    Reshape { shape: ResultShape(0) };
    Transpose { permutation: Sizes("permutation") };
    Reverse { dimensions: Sizes("dimensions") };
    Concatenate { dimension: Size("dimension") };
    Slice {
        starts: Sizes("start_indices"),
        limits: Sizes("limit_indices"),
        strides: Sizes("strides"),
    };
    DynamicSlice { sizes: Sizes("slice_sizes") };
    DynamicUpdateSlice {};
    Pad { dims: Padding };
    GetDimensionSize { dimension: Size("dimension") };
    SetDimensionSize { dimension: Size("dimension") };
    Map { dimensions: Sizes("dimensions"), to_apply: Region(0) };
    AfterAll {};
    Dot {
        dims: DotDimensions("dot_dimension_numbers"),
        element: ResultElement,
        precision: Precisions,
        algorithm: Algorithm,
    };
    Convolution {
        dims: ConvDimensions("dimension_numbers"),
        window: ConvWindow,
        feature_group_count: SizeOrOne("feature_group_count"),
        batch_group_count: SizeOrOne("batch_group_count"),
        element: ResultElement,
        precision: Precisions,
        algorithm: NoAlgorithm,
    };
    BatchNormTraining { epsilon: Real("epsilon"), feature_index: Size("feature_index") };
    BatchNormInference { epsilon: Real("epsilon"), feature_index: Size("feature_index") };
    BatchNormGrad { epsilon: Real("epsilon"), feature_index: Size("feature_index") };
    Cholesky { lower: Flag("lower") };
    TriangularSolve {
        left_side: Flag("left_side"),
        lower: Flag("lower"),
        unit_diagonal: Flag("unit_diagonal"),
        transpose_a: Word("transpose_a", "transpose"),
    };
    Fft { kind: Word("fft_type", "fft_type"), lengths: Sizes("fft_length") };
    Reduce { dimensions: Sizes("dimensions"), to_apply: Region(0) };
    ReduceWindow { window: ArrayWindow, to_apply: Region(0) };
    SelectAndScatter { window: ArrayWindow, select: Region(0), scatter: Region(1) };
    Gather {
        dims: GatherDimensions("dimension_numbers"),
        slice_sizes: Sizes("slice_sizes"),
        indices_are_sorted: OptionalFlag("indices_are_sorted"),
    };
    Scatter {
        dims: ScatterDimensions("scatter_dimension_numbers"),
        indices_are_sorted: OptionalFlag("indices_are_sorted"),
        unique_indices: OptionalFlag("unique_indices"),
        to_apply: Region(0),
    };
    Sort {
        dimension: SizeFromEnd("dimension"),
        is_stable: OptionalFlag("is_stable"),
        to_apply: Region(0),
    };
    RngBitGenerator { algorithm: RngWord("rng_algorithm"), shape: ResultShape(1) };
    ReplicaId {};
    PartitionId {};
    CollectivePermute { pairs: Pairs("source_target_pairs"), channel_id: Channel };
    CollectiveBroadcast { attrs: Collective };
    AllReduce { attrs: Collective, to_apply: Region(0) };
}

/// StableHLO's operations that have no row, and why.
#[cfg(test)]
const WITHOUT_ROW: &[(&str, &str)] = &[
    ("stablehlo.constant", "its value may be a splat, which HLO broadcasts"),
    ("stablehlo.dynamic_reshape", "sizes are one operand there, and one each in HLO"),
    ("stablehlo.tuple", "tuples are taken apart"),
    ("stablehlo.get_tuple_element", "tuples are taken apart"),
    ("func.call", "a function, not a region"),
    ("stablehlo.while", "the state is a tuple in HLO"),
    ("stablehlo.if", "branches capture values there, and take them in HLO"),
    ("stablehlo.case", "branches capture values there, and take them in HLO"),
    ("stablehlo.optimization_barrier", "several operands are a tuple in HLO"),
    ("stablehlo.custom_call", "layouts, calls and aliases are parts of other things in HLO"),
    ("stablehlo.infeed", "values stand apart there, and in a tuple in HLO"),
    ("stablehlo.outfeed", "values stand apart there, and in a tuple in HLO"),
    ("stablehlo.send", "two operations in HLO"),
    ("stablehlo.recv", "two operations in HLO"),
    ("chlo.ragged_dot", "CHLO, which artifacts do not have"),
    ("chlo.top_k", "CHLO, which artifacts do not have"),
    ("stablehlo.rng", "the shape is an operand there"),
    ("stablehlo.all_gather", "groups are flattened for the order of partitions"),
    ("stablehlo.all_to_all", "what is joined along another dimension is moved there"),
    ("stablehlo.reduce_scatter", "groups are flattened for the order of partitions"),
    ("stablehlo.async_start", "helio does not read them"),
    ("stablehlo.async_done", "helio does not read them"),
];

/// HLO's name of the operation that has this name in StableHLO.
pub(crate) fn opcode(name: &str) -> Option<&'static str> {
    static OPCODES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
        let rows = Op::table().into_iter();
        let names = |row: OpInfo| row.stablehlo_names.iter().map(move |&name| (name, row.name));
        rows.flat_map(names).collect()
    });
    OPCODES.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new operation with a name in StableHLO needs a row here, or a reason to have none.
    #[test]
    fn every_operation_has_a_row_or_a_reason() {
        for row in Op::table().iter().skip(UnaryOp::ALL.len() + BinaryOp::ALL.len()) {
            for name in row.stablehlo_names {
                let reasons = WITHOUT_ROW.iter().filter(|(without, _)| without == name).count();
                let rows = ROWS.iter().filter(|opcode| **opcode == row.name).count();
                assert_eq!(rows + reasons, 1, "{name}");
            }
        }
    }
}
