//! The table of passes, and the pipelines made of them.

use helio_ir::{Error, Module, Result, Verified, verify};

use crate::{dce, inline, unroll};

/// A pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What it is called on the command line, a verb: `fold-constants`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The least level of optimisation that runs it.
    pub level: OptLevel,
    /// Makes the new module. Errors: memory or a limit of the representation; never the program.
    pub run: fn(Module) -> Result<Module>,
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

/// All passes, in the order in which [`optimize`] runs those of its level.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "inline",
        summary: "Puts called computations and fusions in the place of their callers.",
        level: OptLevel::None,
        run: inline::inline,
    },
    Pass {
        name: "unroll-loops",
        summary: "Replaces loops of a few iterations by copies of their bodies.",
        level: OptLevel::Default,
        run: unroll::unroll_loops,
    },
    Pass {
        name: "remove-dead-code",
        summary: "Drops instructions whose values nobody takes, and computations that nobody calls.",
        level: OptLevel::None,
        run: dce::remove_dead_code,
    },
];

/// Runs the passes of a level. Errors: memory or a limit of the representation; `Internal` if a
/// pass has made a module that does not verify.
pub fn optimize(module: Verified<Module>, level: OptLevel) -> Result<Verified<Module>> {
    run_passes(module, PASSES.iter().filter(|pass| pass.level <= level))
}

/// Runs passes in this order. Errors: as for [`optimize`].
pub fn run_passes<'a>(
    module: Verified<Module>,
    passes: impl IntoIterator<Item = &'a Pass>,
) -> Result<Verified<Module>> {
    let mut module = module.into_inner();
    let mut last = "none";
    for pass in passes {
        module = (pass.run)(module).map_err(|e| e.context(format_args!("pass {}", pass.name)))?;
        last = pass.name;
    }
    verify(module).map_err(|errors| {
        let first = errors.first().map(Error::to_string).unwrap_or_default();
        Error::internal(format!("the passes up to {last} have made a wrong module: {first}"))
    })
}
