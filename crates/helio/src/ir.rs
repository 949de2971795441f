//! Programs as data: modules, computations and instructions, operations with their attributes, types and
//! values, HLO text.
//!
//! ```
//! use helio::ir::{Op, text};
//! let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }")?;
//! let entry = module.entry();
//! let root = entry.instr(entry.root());
//! assert!(matches!(root.op, Op::Unary(helio::ir::UnaryOp::Negate)));
//! assert_eq!(root.shape, text::parse_shape("f32[2]")?);
//! # Ok::<(), helio::Errors>(())
//! ```

#[doc(inline)]
pub use helio_ir::{
    AliasKind, Array, ArrayData, ArrayShape, Attribute, BackendConfig, BinaryOp, Code, CompId,
    Computation, ConfigValue, Dictionary, DimKind, ElementType, Error, Errors, Extra,
    InputOutputAlias, Instr, InstrAt, InstrId, Layout, Literal, Location, Metadata, Module,
    ModuleConfig, Name, Native, Number, Op, Operands, Origin, OriginId, OriginSet, ProgramShape,
    Result, Shape, Sharding, SourceLine, UnaryOp, Verified, verify,
};
#[doc(inline)]
pub use helio_ir::{dispatch, dispatch_type};

/// What participants of a run would wait for in vain.
pub mod communication {
    #[doc(inline)]
    pub use helio_ir::communication::warnings;
}

/// The attributes of operations: a struct for each of [`Op`]'s variants, and what these are made of; and
/// what is known of every operation.
pub mod ops {
    #[doc(inline)]
    pub use helio_ir::ops::{
        Accepts, AddDependency, AfterAll, AllGather, AllGatherDone, AllGatherStart, AllReduce,
        AllReduceDone, AllReduceStart, AllToAll, ApiVersion, Arity, AsyncDone, AsyncStart,
        AsyncUpdate, BatchNormGrad, BatchNormInference, BatchNormTraining, BinaryOp, Bitcast,
        BitcastConvert, Broadcast, Call, Cholesky, Clamp, CollectiveAttrs, CollectiveBroadcast,
        CollectivePermute, CollectivePermuteDone, CollectivePermuteStart, Compare, Concatenate,
        Conditional, Constant, ConvDims, Convert, Convolution, Copy, CopyDone, CopyStart, Cost,
        CustomCall, Direction, Distribution, Domain, Dot, DotDims, DynamicReshape, DynamicSlice,
        DynamicUpdateSlice, Effect, Family, Fft, FftKind, Fusion, Gather, GatherDims,
        GetDimensionSize, GetTupleElement, GroupMode, Infeed, InferCx, Iota, Map, OpDef, OpInfo,
        OptimizationBarrier, Order, Outfeed, OutputOperandAlias, Pad, PadDim, Parameter,
        PartitionId, Phase, Precision, RaggedAllToAll, RaggedDot, RaggedMode, Reads, Recv,
        RecvDone, Reduce, ReducePrecision, ReduceScatter, ReduceWindow, ReplicaGroups, ReplicaId,
        Reshape, ResultRule, Reverse, Rng, RngAlgorithm, RngBitGenerator, RngGetAndUpdateState,
        Scatter, ScatterDims, Select, SelectAndScatter, Send, SendDone, SetDimensionSize, Slice,
        Sort, StochasticConvert, TopK, Transpose, TransposeA, TriangularSolve, Tuple, UnaryOp,
        While, Window, WindowDim, Yield,
    };
}

/// How values are spread over devices.
pub mod sharding {
    #[doc(inline)]
    pub use helio_ir::sharding::{
        Devices, Placement, ShardGroup, Sharding, SubgroupKind, Subgroups, Tiles,
    };
}

/// Where in the framework's program instructions come from: calls, and the lines that make them.
pub mod stack_frames {
    #[doc(inline)]
    pub use helio_ir::stack_frames::{FileLocation, Frame, StackFrame, StackFrames};
}

/// HLO text, in and out.
pub mod text {
    /// The attributes of an instruction in text: what reads and writes those of an operation.
    pub mod attrs {
        #[doc(inline)]
        pub use helio_ir::text::attrs::{Attr, AttrReader, AttrWriter, Scan};
    }

    #[doc(inline)]
    pub use helio_ir::text::{
        PrintOptions, parse, parse_and_verify, parse_literal, parse_shape, print, print_literal,
        print_with,
    };
}

/// Element types and the Rust types that hold their elements, shapes, arrays.
pub mod types {
    #[doc(inline)]
    pub use helio_ir::types::{
        Array, ArrayData, ArrayDisplay, ArrayShape, BF16, C64, C128, DimKind, ElementType,
        F4E2M1FN, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ,
        F8E8M0FNU, F16, FloatFormat, FloatSpecials, I2, I4, Layout, Literal, MAX_RANK, Native,
        Number, Plain, Shape, U2, U4,
    };
}
