//! The passes, and the pipeline made of them.

use std::fmt;
use std::time::{Duration, Instant};

use helio_eval::Subnormals;
use helio_ir::{Capabilities, Error, Module, Result, Verified, verify};

use crate::constants::{ConstantEvaluator, Interpreted, compute_constants};
use crate::rebuild::name_instrs;
use crate::watch::Watch;
use crate::{
    bounds, branches, canonicalize, channels, components, dce, expand, fuse, inline, loops,
    products, selection, simplify, transposes, turn_operands, unroll, windows,
};

/// A pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What it is called on the command line, a verb: `fold-constants`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The least level of optimisation that runs it.
    pub level: OptLevel,
    /// Makes the new module. Errors: memory or a limit, of the representation or of the compilation;
    /// never the program.
    pub run: fn(Module, &PassCx<'_>) -> Result<Module>,
}

/// What surrounds the passes of one compilation.
#[derive(Clone, Copy)]
pub struct PassCx<'a> {
    /// Ends the compilation at its limits.
    pub watch: &'a Watch,
    /// What the kernels of the back end can compute; no pass asks which back end it is.
    pub capabilities: &'a dyn Capabilities,
    /// What arithmetic does with subnormal numbers, when it is done now as in a run.
    pub subnormals: Subnormals,
    /// Computes what depends on large constants.
    pub constants: &'a dyn ConstantEvaluator,
    /// Is shown what each pass has made.
    pub observer: Option<&'a dyn PassObserver>,
}

/// Is shown what passes make, one after the other.
pub trait PassObserver: fmt::Debug + Send + Sync {
    /// A pass has made this module in this time.
    fn after(&self, pass: &Pass, module: &Module, took: Duration);
}

impl<'a> PassCx<'a> {
    /// Passes within the limits of `watch`, for a back end with these capabilities; subnormal numbers
    /// are flushed, and constants are computed by the interpreter.
    pub fn new(watch: &'a Watch, capabilities: &'a dyn Capabilities) -> Self {
        let (subnormals, constants) = (Subnormals::Flush, &Interpreted);
        PassCx { watch, capabilities, subnormals, constants, observer: None }
    }
}

impl fmt::Debug for PassCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassCx").field("watch", self.watch).finish_non_exhaustive()
    }
}

/// How much work the compiler puts into a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptLevel {
    /// Only what the rest of the compiler asks for: no calls, no layouts.
    None,
    /// What makes programs smaller at little cost.
    Less,
    /// What makes programs faster.
    #[default]
    Default,
    /// What may make programs larger for their speed.
    More,
}

impl OptLevel {
    /// The level with this number, 0 to 3.
    pub fn from_number(number: u32) -> Option<Self> {
        [OptLevel::None, OptLevel::Less, OptLevel::Default, OptLevel::More]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// What [`optimize`] runs of its level, in this order.
pub const PIPELINE: &[Pass] = &[
    CANONICALIZE,
    CARRY_SIZES,
    EXPAND,
    INLINE,
    SIMPLIFY,
    COMPUTE_CONSTANTS,
    SELECT_BRANCHES,
    SIMPLIFY_LOOPS,
    UNROLL_LOOPS,
    INLINE,
    SPLIT_COMPONENTS,
    PUT_CHANNELS_LAST,
    CANCEL_TRANSPOSES,
    SIMPLIFY,
    // Conditionals whose branch is known by now are calls.
    INLINE,
    MERGE_PRODUCTS,
    SELECT_EXTREMES,
    UNFOLD_WINDOWS,
    REMOVE_DEAD_CODE,
    FUSE,
    TURN_OPERANDS,
];

/// Parts of `simplify`, to be run by themselves.
pub const PARTS: &[Pass] =
    &[FORWARD_TUPLES, FOLD_CONSTANTS, SIMPLIFY_ALGEBRA, SIMPLIFY_MOVEMENT, MERGE_EQUAL];

const CANONICALIZE: Pass = Pass {
    name: "canonicalize",
    summary: "Takes layouts away, and operations that are about layouts and order only.",
    level: OptLevel::None,
    run: canonicalize::canonicalize,
};

const CARRY_SIZES: Pass = Pass {
    name: "carry-sizes",
    summary: "Makes bounded dimensions as large as their bounds, and sizes values beside the arrays.",
    level: OptLevel::None,
    run: bounds::carry_sizes,
};

const EXPAND: Pass = Pass {
    name: "expand",
    summary: "Replaces batch normalisation, products of 8-bit floats, reductions in other float types \
              than the operands', and `bitcast-convert` between elements of 2 or 4 bits and wider ones by \
              simpler operations.",
    level: OptLevel::None,
    run: expand::expand,
};

const INLINE: Pass = Pass {
    name: "inline",
    summary: "Puts called computations and fusions in the place of their callers.",
    level: OptLevel::None,
    run: inline::inline,
};

const SIMPLIFY: Pass = Pass {
    name: "simplify",
    summary: "Applies laws of arithmetic and movement, folds constants and merges what is equal, all in one walk.",
    level: OptLevel::Less,
    run: simplify::simplify,
};

const COMPUTE_CONSTANTS: Pass = Pass {
    name: "compute-constants",
    summary: "Computes what depends on large constants alone, as weights in another order.",
    level: OptLevel::Default,
    run: compute_constants,
};

const SELECT_BRANCHES: Pass = Pass {
    name: "select-branches",
    summary: "Computes both branches of a conditional where they are cheap, and selects.",
    level: OptLevel::Default,
    run: branches::select_branches,
};

const SIMPLIFY_LOOPS: Pass = Pass {
    name: "simplify-loops",
    summary: "Takes out of loops what they carry in vain, what is the same in each iteration, and comparisons \
              of counters with what they never reach; counts in 32 bits where nothing else has 64; transposes matrices \
              before them.",
    level: OptLevel::Default,
    run: loops::simplify_loops,
};

const UNROLL_LOOPS: Pass = Pass {
    name: "unroll-loops",
    summary: "Replaces loops of a few iterations by copies of their bodies.",
    level: OptLevel::Default,
    run: unroll::unroll_loops,
};

const SPLIT_COMPONENTS: Pass = Pass {
    name: "split-components",
    summary: "Carries arrays of loops as one array for each component, where dimensions of a few elements are \
              sliced and put together.",
    level: OptLevel::Default,
    run: components::split_components,
};

const PUT_CHANNELS_LAST: Pass = Pass {
    name: "put-channels-last",
    summary: "Puts the channels of networks of convolutions last, if that saves more than transpositions at the edges take.",
    level: OptLevel::Default,
    run: channels::put_channels_last,
};

const CANCEL_TRANSPOSES: Pass = Pass {
    name: "cancel-transposes",
    summary: "Gives what stands between transposes, and goes with the order of its operands, the other order, if fewer elements are transposed then.",
    level: OptLevel::Default,
    run: transposes::cancel_transposes,
};

const MERGE_PRODUCTS: Pass = Pass {
    name: "merge-products",
    summary: "Makes one of products of a few rows each with the same matrix.",
    level: OptLevel::Default,
    run: products::merge_products,
};

const SELECT_EXTREMES: Pass = Pass {
    name: "select-extremes",
    summary: "Replaces sorts of which only a few elements of one end are used by selections.",
    level: OptLevel::Default,
    run: selection::select_extremes,
};

const UNFOLD_WINDOWS: Pass = Pass {
    name: "unfold-windows",
    summary: "Replaces folds of windows of a few points by operations on slices.",
    level: OptLevel::Default,
    run: windows::unfold_windows,
};

const REMOVE_DEAD_CODE: Pass = Pass {
    name: "remove-dead-code",
    summary: "Drops instructions whose values nobody takes, and computations that nobody calls.",
    level: OptLevel::None,
    run: dce::remove_dead_code,
};

const FUSE: Pass = Pass {
    name: "fuse",
    summary: "Puts instructions that can be computed together, element by element, into fusions.",
    level: OptLevel::Less,
    run: fuse::fuse,
};

const TURN_OPERANDS: Pass = Pass {
    name: "turn-operands",
    summary: "Transposes operands that fusions read many times along the dimension that they fold.",
    level: OptLevel::Default,
    run: turn_operands::turn_operands,
};

const FORWARD_TUPLES: Pass = Pass {
    name: "forward-tuples",
    summary: "Takes elements out of tuples that are put together in the same computation.",
    level: OptLevel::Less,
    run: simplify::forward_tuples,
};

const FOLD_CONSTANTS: Pass = Pass {
    name: "fold-constants",
    summary: "Computes what depends on small constants alone.",
    level: OptLevel::Less,
    run: simplify::fold_constants,
};

const SIMPLIFY_ALGEBRA: Pass = Pass {
    name: "simplify-algebra",
    summary: "Applies the laws of arithmetic and logic.",
    level: OptLevel::Less,
    run: simplify::simplify_algebra,
};

const SIMPLIFY_MOVEMENT: Pass = Pass {
    name: "simplify-movement",
    summary: "Simplifies what moves elements: reshapes, transposes, broadcasts, slices.",
    level: OptLevel::Less,
    run: simplify::simplify_movement,
};

const MERGE_EQUAL: Pass = Pass {
    name: "merge-equal",
    summary: "Makes one of equal instructions.",
    level: OptLevel::Less,
    run: simplify::merge_equal,
};

/// The pass of this name.
pub fn find_pass(name: &str) -> Option<&'static Pass> {
    PIPELINE.iter().chain(PARTS).find(|pass| pass.name == name)
}

/// Runs the passes of a level. Errors: as for [`run_passes`].
pub fn optimize(
    module: Verified<Module>,
    level: OptLevel,
    cx: &PassCx<'_>,
) -> Result<Verified<Module>> {
    run_passes(module, PIPELINE.iter().filter(|pass| pass.level <= level), cx)
}

/// Runs passes in this order. What they make says of which instructions of `module` it was made
/// ([`Instr::origins`](helio_ir::Instr::origins)). Errors: memory or a limit, of the representation or of the compilation;
/// `Internal` if a pass has made a module that does not verify.
pub fn run_passes<'p>(
    module: Verified<Module>,
    passes: impl IntoIterator<Item = &'p Pass>,
    cx: &PassCx<'_>,
) -> Result<Verified<Module>> {
    let mut module = module.into_inner();
    module.record_origins();
    let mut last = "none";
    for pass in passes {
        let begun = cx.observer.map(|observer| (observer, Instant::now()));
        module =
            (pass.run)(module, cx).map_err(|e| e.context(format_args!("pass {}", pass.name)))?;
        if let Some((observer, begun)) = begun {
            let took = begun.elapsed();
            module = name_instrs(module);
            observer.after(pass, &module, took);
        }
        last = pass.name;
    }
    // Passes leave names as they come: what nobody reads needs none of its own.
    verify(name_instrs(module)).map_err(|errors| {
        let first = errors.first();
        Error::internal(format!("the passes up to {last} have made a wrong module: {first}"))
    })
}
