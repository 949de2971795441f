//! Every operation: its attributes, its constraints, the shape of its result, its attribute text.
//!
//! Element-wise operations without attributes are rows of the tables in [`UnaryOp`] and
//! [`BinaryOp`]; every other operation is a struct that implements [`OpDef`], named once more in
//! the list below, from which [`Op`] and its dispatch are made.

use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{CompId, Computation, Error, Module, Result, Shape};

/// Defines an enum of attribute words: `Variant = "text"`.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in HLO text.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one with this word. Errors: `InvalidArgument`, listing all words.
            pub fn from_word(word: &str) -> $crate::Result<Self> {
                match word {
                    $($text => Ok($name::$variant),)*
                    _ => Err($crate::Error::invalid(format!(
                        "`{word}` is none of {}",
                        [$($text),*].join(", ")
                    ))),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;

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
mod dimension_size;
mod dot;
mod dynamic_slice;
mod fft;
mod gather;
mod infeed;
mod pad;
mod reduce;
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
pub use custom_call::CustomCall;
pub use dimension_size::{GetDimensionSize, SetDimensionSize};
pub use dot::{Dot, RaggedDot};
pub use dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
pub use elementwise::{Accepts, BinaryOp, Cost, ResultRule, UnaryOp};
pub use fft::{Fft, FftKind};
pub use gather::{Gather, GatherDims};
pub use infeed::{Infeed, Outfeed};
pub use pad::{Pad, PadDim};
pub use reduce::{Reduce, ReduceWindow, SelectAndScatter};
pub use reshape::{Bitcast, Copy, DynamicReshape, Reshape};
pub use reverse::Reverse;
pub use rng::{Distribution, Rng, RngAlgorithm, RngBitGenerator, RngGetAndUpdateState};
pub use scatter::{Scatter, ScatterDims};
pub use select::{Clamp, Select};
pub use shared::{
    CollectiveAttrs, ConvDims, DotDims, GroupMode, Precision, ReplicaGroups, Window, WindowDim,
};
pub use slice::Slice;
pub use sort::{Sort, TopK};
pub use transpose::Transpose;
pub use tuple::{GetTupleElement, Tuple};

/// How many operands an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// So many.
    Exactly(usize),
    /// So many or more.
    AtLeast(usize),
}

impl Arity {
    fn includes(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

/// What shape inference sees.
pub struct InferCx<'a> {
    /// The shapes of the operands; as many as the operation's arity allows.
    pub operands: &'a [&'a Shape],
    /// The module, for the shapes of called computations.
    pub module: &'a Module,
}

impl<'a> InferCx<'a> {
    /// A called computation.
    pub fn callee(&self, id: CompId) -> &'a Computation {
        self.module.computation(id)
    }
}

/// An operation with attributes.
pub trait OpDef: Sized {
    /// HLO's name for it.
    const OPCODE: &'static str;

    /// How many operands it takes.
    const ARITY: Arity;

    /// The shape of the result, without layout. This one function serves parser, builder and
    /// verifier. The number of operands has been checked. Errors: the operation's rules (C1, C2 …).
    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape>;

    /// The operation that the attributes in text describe.
    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Err(Error::unimplemented(format!("read {}", attrs.opcode)))
    }

    /// Writes the attributes so that [`OpDef::read`] gives the same operation.
    fn write(&self, attrs: &mut AttrWriter<'_>) {
        let _ = attrs;
    }

    /// The computations it calls.
    fn callees(&self) -> Vec<CompId> {
        Vec::new()
    }

    /// The computations it calls, to renumber them.
    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        Vec::new()
    }
}

macro_rules! define_ops {
    ($($name:ident,)*) => {
        /// An operation with its attributes.
        #[derive(Clone, Debug)]
        pub enum Op {
            /// An element-wise operation of one operand.
            Unary(UnaryOp),
            /// An element-wise operation of two operands.
            Binary(BinaryOp),
            $(#[doc = concat!("See [`", stringify!($name), "`](struct@", stringify!($name), ").")] $name($name),)*
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Self {
                Op::$name(op)
            }
        })*

        impl Op {
            /// The names of all operations, element-wise ones first.
            pub fn opcodes() -> Vec<&'static str> {
                let unary = UnaryOp::ALL.iter().map(|op| op.name());
                let binary = BinaryOp::ALL.iter().map(|op| op.name());
                unary.chain(binary).chain([$($name::OPCODE,)*]).collect()
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
                let opcode = attrs.opcode;
                if let Some(op) = UnaryOp::from_name(opcode) {
                    return Some(Ok(Op::Unary(op)));
                }
                if let Some(op) = BinaryOp::from_name(opcode) {
                    return Some(Ok(Op::Binary(op)));
                }
                match opcode {
                    $(<$name as OpDef>::OPCODE => Some($name::read(attrs).map(Op::$name)),)*
                    _ => None,
                }
            }

            /// Writes the attributes.
            pub fn write(&self, attrs: &mut AttrWriter<'_>) {
                match self {
                    Op::Unary(_) | Op::Binary(_) => {}
                    $(Op::$name(op) => op.write(attrs),)*
                }
            }

            /// The computations it calls.
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
    Compare,
    Select,
    Clamp,
    Convert,
    BitcastConvert,
    StochasticConvert,
    ReducePrecision,
    Constant,
    Parameter,
    Iota,
    Broadcast,
    Reshape,
    DynamicReshape,
    Bitcast,
    Copy,
    Transpose,
    Reverse,
    Concatenate,
    Slice,
    DynamicSlice,
    DynamicUpdateSlice,
    Pad,
    Tuple,
    GetTupleElement,
    Call,
    Map,
    Fusion,
    While,
    Conditional,
    OptimizationBarrier,
    AfterAll,
    AddDependency,
    Domain,
    CustomCall,
    GetDimensionSize,
    SetDimensionSize,
    Infeed,
    Outfeed,
    Send,
    SendDone,
    Recv,
    RecvDone,
    Dot,
    RaggedDot,
    Convolution,
    BatchNormTraining,
    BatchNormInference,
    BatchNormGrad,
    Cholesky,
    TriangularSolve,
    Fft,
    Reduce,
    ReduceWindow,
    SelectAndScatter,
    Gather,
    Scatter,
    Sort,
    TopK,
    Rng,
    RngBitGenerator,
    RngGetAndUpdateState,
    AllReduce,
    AllGather,
    AllToAll,
    CollectivePermute,
    ReduceScatter,
    CollectiveBroadcast,
    RaggedAllToAll,
    ReplicaId,
    PartitionId,
    AllReduceStart,
    AllReduceDone,
    AllGatherStart,
    AllGatherDone,
    CollectivePermuteStart,
    CollectivePermuteDone,
    CopyStart,
    CopyDone,
    AsyncStart,
    AsyncUpdate,
    AsyncDone,
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
