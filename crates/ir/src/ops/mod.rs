//! Every operation: its attributes, its constraints, the shape of its result, its attribute text.
//!
//! Element-wise operations without attributes are rows of the tables in [`UnaryOp`] and
//! [`BinaryOp`]; every other operation is a struct that implements [`OpDef`], named once more in
//! the list below, from which [`Op`] and its dispatch are made.

use std::sync::LazyLock;

use foldhash::HashMap;

#[macro_use]
mod macros;
pub(crate) use macros::words;

use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, Result, Shape};

pub mod elementwise;
pub mod shared;

mod async_op;
mod batch_norm;
mod broadcast;
mod call;
mod channel;
mod check;
mod cholesky;
mod collective;
mod compare;
mod concatenate;
mod constant;
mod control;
mod convert;
mod convolution;
mod custom_call;
mod def;
mod dimension_size;
mod dot;
mod dynamic_slice;
mod fft;
mod gather;
mod infeed;
mod neutral;
mod pad;
mod reduce;
mod reducer;
mod reshape;
mod reverse;
mod rng;
mod scatter;
mod select;
mod slice;
mod sort;
#[cfg(test)]
mod testing;
mod transpose;
mod tuple;

pub use async_op::{
    AllGatherDone, AllGatherStart, AllReduceDone, AllReduceStart, AsyncDone, AsyncStart,
    AsyncUpdate, CollectivePermuteDone, CollectivePermuteStart, CopyDone, CopyStart,
};
pub use batch_norm::{BatchNormGrad, BatchNormInference, BatchNormTraining};
pub use broadcast::Broadcast;
pub use call::{Call, Fusion, Map};
pub use channel::{Recv, RecvDone, Send, SendDone};
pub use cholesky::{Cholesky, TransposeA, TriangularSolve};
pub use collective::{
    AllGather, AllReduce, AllToAll, CollectiveBroadcast, CollectivePermute, PartitionId,
    RaggedAllToAll, ReduceScatter, ReplicaId,
};
pub use compare::{Compare, Direction, Order};
pub use concatenate::Concatenate;
pub use constant::{Constant, Iota, Parameter};
pub use control::{AddDependency, AfterAll, Conditional, Domain, OptimizationBarrier, While};
pub use convert::{BitcastConvert, Convert, ReducePrecision, StochasticConvert};
pub use convolution::Convolution;
pub use custom_call::{ApiVersion, CustomCall, OutputOperandAlias};
pub use def::{Arity, Effect, Family, InferCx, OpDef, OpInfo, Phase, Reads, Yield};
pub use dimension_size::{GetDimensionSize, SetDimensionSize};
pub use dot::{Dot, RaggedDot, RaggedMode};
pub use dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
pub use elementwise::{Accepts, BinaryOp, Cost, ResultRule, UnaryOp};
pub use fft::{Fft, FftKind};
pub use gather::{Gather, GatherDims, indices_dims};
pub use infeed::{Infeed, Outfeed};
pub use pad::{Pad, PadDim};
pub use reduce::{Reduce, ReduceWindow, SelectAndScatter};
pub use reshape::{Bitcast, Copy, DynamicReshape, Reshape};
pub use reverse::Reverse;
pub use rng::{Distribution, Rng, RngAlgorithm, RngBitGenerator, RngGetAndUpdateState};
pub use scatter::{Scatter, ScatterDims};
pub use select::{Clamp, Select};
pub use shared::{
    CollectiveAttrs, ConvDims, DotDims, GroupMode, Precision, ReplicaGroups, SEND_RECV_PAIRS,
    Window, WindowDim, transfer_pairs,
};
pub use slice::Slice;
pub use sort::{Sort, TopK};
pub use transpose::Transpose;
pub use tuple::{GetTupleElement, Tuple};

/// How an operation is read from its attributes.
enum Reader {
    /// It has none.
    Plain(Op),
    /// By its own function.
    Attributes(fn(&mut AttrReader<'_>) -> Result<Op>),
}

macro_rules! define_ops {
    ($($name:ident($attributes:ty): [$($stablehlo:literal),*], $family:ident, $effect:ident,
      $yield:ident, $reads:ident, $phase:ident, $summary:literal;)*) => {
        /// An operation with its attributes; those of more than three words are apart, so that
        /// instructions are small.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op {
            /// An element-wise operation of one operand.
            Unary(UnaryOp),
            /// An element-wise operation of two operands.
            Binary(BinaryOp),
            $(#[doc = $summary] $name($attributes),)*
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Self {
                Op::$name(op.into())
            }
        })*

        impl Op {
            /// A row for each operation, element-wise ones first.
            pub fn table() -> Vec<OpInfo> {
                let mut rows = elementwise::table();
                rows.extend([$(OpInfo {
                    name: $name::OPCODE,
                    stablehlo_names: &[$($stablehlo),*],
                    family: Family::$family,
                    effect: Effect::$effect,
                    gives: Yield::$yield,
                    reads: Reads::$reads,
                    phase: Phase::$phase,
                    arity: $name::ARITY,
                    needs_shape: $name::NEEDS_SHAPE,
                    summary: $summary,
                },)*]);
                rows
            }

            /// HLO's name for it.
            pub fn opcode(&self) -> &'static str {
                match self {
                    Op::Unary(op) => op.name(),
                    Op::Binary(op) => op.name(),
                    $(Op::$name(_) => $name::OPCODE,)*
                }
            }

            /// How many operands it takes.
            pub fn arity(&self) -> Arity {
                match self {
                    Op::Unary(_) => Arity::Exactly(1),
                    Op::Binary(_) => Arity::Exactly(2),
                    $(Op::$name(_) => $name::ARITY,)*
                }
            }

            /// What running it does besides computing its value, apart from what the computations do
            /// that it calls.
            #[inline]
            pub fn effect(&self) -> Effect {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Effect::None,
                    $(Op::$name(_) => Effect::$effect,)*
                }
            }

            /// What it belongs to.
            #[inline]
            pub fn family(&self) -> Family {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Family::Elementwise,
                    $(Op::$name(_) => Family::$family,)*
                }
            }

            /// Where the elements of its result come from.
            #[inline]
            pub fn gives(&self) -> Yield {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Yield::New,
                    $(Op::$name(_) => Yield::$yield,)*
                }
            }

            /// Which elements of its operands an element of its result needs.
            #[inline]
            pub fn reads(&self) -> Reads {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Reads::Aligned,
                    $(Op::$name(_) => Reads::$reads,)*
                }
            }

            /// Which part of an operation it is that is begun at one place and done at another.
            #[inline]
            pub fn phase(&self) -> Phase {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Phase::Once,
                    $(Op::$name(_) => Phase::$phase,)*
                }
            }

            fn infer_unchecked(&self, cx: &InferCx<'_>) -> Result<Shape> {
                match self {
                    Op::Unary(op) => op.infer(cx),
                    Op::Binary(op) => op.infer(cx),
                    $(Op::$name(op) => op.infer(cx),)*
                }
            }

            /// The operation that opcode and attributes in text describe; `None` if there is no
            /// such opcode. (`constant` and `parameter` say what they are between parentheses: the
            /// parser makes those.)
            pub fn read(attrs: &mut AttrReader<'_>) -> Option<Result<Op>> {
                static READERS: LazyLock<HashMap<&str, Reader>> = LazyLock::new(|| {
                    let unary = UnaryOp::ALL.iter().map(|op| (op.name(), Reader::Plain(Op::Unary(*op))));
                    let binary = BinaryOp::ALL.iter().map(|op| (op.name(), Reader::Plain(Op::Binary(*op))));
                    let others = [$(
                        (<$name as OpDef>::OPCODE, Reader::Attributes(|attrs| $name::read(attrs).map(Op::from))),
                    )*];
                    unary.chain(binary).chain(others).collect()
                });
                Some(match READERS.get(attrs.opcode)? {
                    Reader::Plain(op) => Ok(op.clone()),
                    Reader::Attributes(read) => read(attrs),
                })
            }

            /// Writes the attributes.
            pub fn write(&self, attrs: &mut AttrWriter<'_>) {
                match self {
                    Op::Unary(_) | Op::Binary(_) => {}
                    $(Op::$name(op) => op.write(attrs),)*
                }
            }

            /// The computations it calls.
            #[inline]
            pub fn callees(&self) -> Vec<CompId> {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Vec::new(),
                    $(Op::$name(op) => op.callees(),)*
                }
            }

            /// The computations it calls, to renumber them.
            pub fn callees_mut(&mut self) -> Vec<&mut CompId> {
                match self {
                    Op::Unary(_) | Op::Binary(_) => Vec::new(),
                    $(Op::$name(op) => op.callees_mut(),)*
                }
            }
        }
    };
}

define_ops! {
    Compare(Compare): ["stablehlo.compare"], Elementwise, None, New, Aligned, Once,
        "Element-wise comparison; the result is `pred`.";
    Select(Select): ["stablehlo.select"], Elementwise, None, New, Aligned, Once,
        "For each element, the second operand where the first is true, else the third.";
    Clamp(Clamp): ["stablehlo.clamp"], Elementwise, None, New, Aligned, Once,
        "`min(max(x, lo), hi)` for operands `lo, x, hi`; scalar bounds broadcast.";
    Convert(Convert): ["stablehlo.convert"], Elementwise, None, New, Aligned, Once,
        "Converts each element to another type, by value.";
    BitcastConvert(BitcastConvert): ["stablehlo.bitcast_convert"], Elementwise, None, Recast, Aligned, Once,
        "Reads the bits of the elements as another type.";
    StochasticConvert(StochasticConvert): [], Elementwise, None, New, Aligned, Once,
        "Converts to a narrower type, rounding up with the probability that random bits give.";
    ReducePrecision(ReducePrecision): ["stablehlo.reduce_precision"], Elementwise, None, New, Aligned, Once,
        "Rounds each element to a format of fewer bits, keeping its type.";
    Constant(Box<Constant>): ["stablehlo.constant"], Movement, None, Passed, Nothing, Once,
        "A value known beforehand.";
    Parameter(Box<Parameter>): [], Movement, None, Passed, Nothing, Once,
        "An argument of the computation.";
    Iota(Box<Iota>): ["stablehlo.iota"], Movement, None, New, Nothing, Once,
        "Counts up from zero along a dimension.";
    Broadcast(Box<Broadcast>): ["stablehlo.broadcast_in_dim"], Movement, None, Moved, Placed, Once,
        "Repeats the operand along new dimensions.";
    Reshape(Box<Reshape>): ["stablehlo.reshape"], Movement, None, Same, Placed, Once,
        "The same elements in row-major order under other dimensions.";
    DynamicReshape(Box<DynamicReshape>): ["stablehlo.dynamic_reshape"], Movement, None, New, Placed, Once,
        "Reshape to sizes given at run time, one scalar operand for each dimension.";
    Bitcast(Box<Bitcast>): [], Movement, None, Recast, Placed, Once,
        "The same bytes under another shape and layout; what XLA's layout passes leave behind.";
    Copy(Copy): [], Movement, None, Itself, Placed, Once,
        "The operand itself, possibly in another layout.";
    Transpose(Transpose): ["stablehlo.transpose"], Movement, None, Moved, Placed, Once,
        "Reorders dimensions.";
    Reverse(Reverse): ["stablehlo.reverse"], Movement, None, Moved, Placed, Once,
        "Reverses the order of elements along dimensions.";
    Concatenate(Concatenate): ["stablehlo.concatenate"], Movement, None, Moved, Placed, Once,
        "Joins arrays along a dimension.";
    Slice(Box<Slice>): ["stablehlo.slice"], Movement, None, Moved, Placed, Once,
        "The elements in a box at regular distances.";
    DynamicSlice(DynamicSlice): ["stablehlo.dynamic_slice"], Movement, None, New, Placed, Once,
        "A box of fixed sizes at a place given at run time, clamped to stay inside.";
    DynamicUpdateSlice(DynamicUpdateSlice): ["stablehlo.dynamic_update_slice"], Movement, None, New, Placed, Once,
        "The operand with a box of it replaced, at a place given at run time, clamped to stay inside.";
    Pad(Pad): ["stablehlo.pad"], Movement, None, Moved, Placed, Once,
        "Extends (or crops) each dimension at its edges and between elements.";
    Tuple(Tuple): ["stablehlo.tuple"], Control, None, Passed, Whole, Once,
        "A tuple of the operands.";
    GetTupleElement(GetTupleElement): ["stablehlo.get_tuple_element"], Control, None, Passed, Whole, Once,
        "An element of a tuple.";
    Call(Call): ["func.call"], Control, None, Passed, Whole, Once,
        "Runs a computation on the operands.";
    Map(Box<Map>): ["stablehlo.map"], Control, None, New, Aligned, Once,
        "Applies a scalar computation to each element.";
    Fusion(Box<Fusion>): [], Control, None, Passed, Whole, Once,
        "Runs a computation that a compiler has put together.";
    While(While): ["stablehlo.while"], Control, None, Passed, Whole, Once,
        "Runs the body as long as the condition holds.";
    Conditional(Conditional): ["stablehlo.if", "stablehlo.case"], Control, None, Passed, Whole, Once,
        "Runs one of several computations, chosen by a `pred` (true first) or an index.";
    OptimizationBarrier(OptimizationBarrier): ["stablehlo.optimization_barrier"], Control, None, Itself, Whole, Once,
        "The operands themselves, not to be moved across.";
    AfterAll(AfterAll): ["stablehlo.after_all"], Control, None, New, Whole, Once,
        "A token that comes after all operand tokens.";
    AddDependency(AddDependency): [], Control, None, Itself, Whole, Once,
        "The first operand, after the second.";
    Domain(Domain): [], Control, None, Itself, Whole, Once,
        "The operand itself, at the border of two domains.";
    CustomCall(Box<CustomCall>): ["stablehlo.custom_call"], Control, Foreign, New, Whole, Once,
        "Calls a function that the user has registered.";
    GetDimensionSize(GetDimensionSize): ["stablehlo.get_dimension_size"], Movement, None, New, Nothing, Once,
        "The size of a dimension at run time, as `s32`.";
    SetDimensionSize(SetDimensionSize): ["stablehlo.set_dimension_size"], Movement, None, Passed, Whole, Once,
        "The operand with a dimension's size at run time set to the second operand.";
    Infeed(Box<Infeed>): ["stablehlo.infeed"], Host, Exchange, New, Whole, Once,
        "Reads a value from the host; the operand is a token, the result (value, token).";
    Outfeed(Box<Outfeed>): ["stablehlo.outfeed"], Host, Exchange, New, Whole, Once,
        "Writes the first operand to the host, after the token; the result is a token.";
    Send(Send): ["stablehlo.send"], Host, Exchange, New, Whole, Begins,
        "Begins to send the first operand, after the token; the result is (value, u32, token).";
    SendDone(SendDone): [], Host, Exchange, New, Whole, Ends,
        "Waits until a send is over; the result is a token.";
    Recv(Box<Recv>): ["stablehlo.recv"], Host, Exchange, New, Whole, Begins,
        "Begins to receive, after the token; the result is (value, u32, token).";
    RecvDone(RecvDone): [], Host, Exchange, New, Whole, Ends,
        "Waits for what is received; the result is (value, token).";
    Dot(Box<Dot>): ["stablehlo.dot_general"], LinearAlgebra, None, New, Memory, Once,
        "Sum of products over contracting dimensions; result: batch, lhs free, rhs free dimensions.";
    RaggedDot(Box<RaggedDot>): ["chlo.ragged_dot"], LinearAlgebra, None, New, Memory, Once,
        "Dot whose lhs, contracting or batch dimension falls into groups of sizes given at run time.";
    Convolution(Box<Convolution>): ["stablehlo.convolution"], LinearAlgebra, None, New, Memory, Once,
        "Slides a kernel (rhs) over an input (lhs) and sums products.";
    BatchNormTraining(BatchNormTraining): ["stablehlo.batch_norm_training"], Reduction, None, New, Memory, Once,
        "Normalises over all dimensions but one; result (output, mean, variance).";
    BatchNormInference(BatchNormInference): ["stablehlo.batch_norm_inference"], Reduction, None, New, Memory, Once,
        "Normalises with given mean and variance.";
    BatchNormGrad(BatchNormGrad): ["stablehlo.batch_norm_grad"], Reduction, None, New, Memory, Once,
        "The gradients of batch-norm-training.";
    Cholesky(Cholesky): ["stablehlo.cholesky"], LinearAlgebra, None, New, Memory, Once,
        "The triangular factor of each positive definite matrix.";
    TriangularSolve(TriangularSolve): ["stablehlo.triangular_solve"], LinearAlgebra, None, New, Memory, Once,
        "Solves `op(a) x = b` or `x op(a) = b` for triangular `a`.";
    Fft(Box<Fft>): ["stablehlo.fft"], LinearAlgebra, None, New, Memory, Once,
        "Discrete Fourier transform over the last dimensions.";
    Reduce(Box<Reduce>): ["stablehlo.reduce"], Reduction, None, New, Folded, Once,
        "Folds dimensions away with a computation; operands: arrays, then initial values.";
    ReduceWindow(Box<ReduceWindow>): ["stablehlo.reduce_window"], Reduction, None, New, Memory, Once,
        "Folds each position of a window with a computation; operands: arrays, then initial values.";
    SelectAndScatter(Box<SelectAndScatter>): ["stablehlo.select_and_scatter"], Reduction, None, New, Memory, Once,
        "Picks an element in each window of the first operand and adds to it the second's element.";
    Gather(Box<Gather>): ["stablehlo.gather"], Indexing, None, New, Placed, Once,
        "Collects slices of the first operand at the places that the second lists.";
    Scatter(Box<Scatter>): ["stablehlo.scatter"], Indexing, None, New, Memory, Once,
        "Combines slices into arrays at the places listed; operands: arrays, indices, updates.";
    Sort(Sort): ["stablehlo.sort"], Reduction, None, New, Memory, Once,
        "Sorts arrays together along a dimension.";
    TopK(TopK): ["chlo.top_k"], Reduction, None, New, Memory, Once,
        "The largest (or smallest) elements of the last dimension and their indices.";
    Rng(Box<Rng>): ["stablehlo.rng"], Random, Draw, New, Whole, Once,
        "Random numbers from a distribution with two parameters.";
    RngBitGenerator(Box<RngBitGenerator>): ["stablehlo.rng_bit_generator"], Random, None, New, Whole, Once,
        "Random bits and the next state.";
    RngGetAndUpdateState(Box<RngGetAndUpdateState>): [], Random, Draw, New, Nothing, Once,
        "The module's hidden generator state, which then advances.";
    AllReduce(Box<AllReduce>): ["stablehlo.all_reduce"], Collective, Exchange, New, Whole, Once,
        "Folds the operands of all participants, for each of them.";
    AllGather(Box<AllGather>): ["stablehlo.all_gather"], Collective, Exchange, New, Whole, Once,
        "Joins the operands of all participants, for each of them.";
    AllToAll(Box<AllToAll>): ["stablehlo.all_to_all"], Collective, Exchange, New, Whole, Once,
        "Gives each participant a part of each other's operand.";
    CollectivePermute(Box<CollectivePermute>): ["stablehlo.collective_permute"], Collective, Exchange, New, Whole, Once,
        "Sends operands along pairs of participants; who receives nothing gets zeros.";
    ReduceScatter(Box<ReduceScatter>): ["stablehlo.reduce_scatter"], Collective, Exchange, New, Whole, Once,
        "Folds the operands of all participants and gives each its part.";
    CollectiveBroadcast(Box<CollectiveBroadcast>): ["stablehlo.collective_broadcast"], Collective, Exchange, New, Whole, Once,
        "Gives the first participant's operand to all.";
    RaggedAllToAll(Box<RaggedAllToAll>): [], Collective, Exchange, New, Whole, Once,
        "All-to-all of slices with sizes and places given at run time.";
    ReplicaId(ReplicaId): ["stablehlo.replica_id"], Collective, None, New, Nothing, Once,
        "The number of this replica, as `u32`.";
    PartitionId(PartitionId): ["stablehlo.partition_id"], Collective, None, New, Nothing, Once,
        "The number of this partition, as `u32`.";
    AllReduceStart(Box<AllReduceStart>): [], Asynchronous, Exchange, New, Whole, Begins,
        "Begins an all-reduce; the result stands for the operands until it is done.";
    AllReduceDone(AllReduceDone): [], Asynchronous, Exchange, Passed, Whole, Ends,
        "The result of an all-reduce that was begun.";
    AllGatherStart(Box<AllGatherStart>): [], Asynchronous, Exchange, New, Whole, Begins,
        "Begins an all-gather; the result is (operands, results).";
    AllGatherDone(AllGatherDone): [], Asynchronous, Exchange, Passed, Whole, Ends,
        "The result of an all-gather that was begun.";
    CollectivePermuteStart(Box<CollectivePermuteStart>): [], Asynchronous, Exchange, New, Whole, Begins,
        "Begins a collective-permute; the result is (operand, result) and maybe contexts.";
    CollectivePermuteDone(CollectivePermuteDone): [], Asynchronous, Exchange, Passed, Whole, Ends,
        "The result of a collective-permute that was begun.";
    CopyStart(CopyStart): [], Asynchronous, None, Passed, Whole, Begins,
        "Begins a copy; the result is (destination, source, context).";
    CopyDone(CopyDone): [], Asynchronous, None, Passed, Whole, Ends,
        "The result of a copy that was begun.";
    AsyncStart(Box<AsyncStart>): ["stablehlo.async_start"], Asynchronous, None, Passed, Whole, Begins,
        "Begins a computation; the result is ((operands), result, context).";
    AsyncUpdate(AsyncUpdate): [], Asynchronous, None, Passed, Whole, GoesOn,
        "Lets a computation that was begun go on.";
    AsyncDone(AsyncDone): ["stablehlo.async_done"], Asynchronous, None, Passed, Whole, Ends,
        "The result of a computation that was begun.";
}

impl Op {
    /// The shape of the result for these operands, without layout. Errors: `operands.C1` (their
    /// number), and the operation's own rules.
    pub fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let count = cx.operands.len();
        crate::ensure!(
            self.arity().includes(count),
            "operands.C1",
            "{} takes {}, found {count}",
            self.opcode(),
            match self.arity() {
                Arity::Exactly(1) => "1 operand".to_owned(),
                Arity::Exactly(n) => format!("{n} operands"),
                Arity::AtLeast(1) => "1 operand or more".to_owned(),
                Arity::AtLeast(n) => format!("{n} operands or more"),
            }
        );
        self.infer_unchecked(cx)
    }
}

impl From<UnaryOp> for Op {
    fn from(op: UnaryOp) -> Self {
        Op::Unary(op)
    }
}

impl From<BinaryOp> for Op {
    fn from(op: BinaryOp) -> Self {
        Op::Binary(op)
    }
}
