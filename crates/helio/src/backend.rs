//! The choice of what runs a program: the interpreter, or code of one of the code generator's back
//! ends.

use std::sync::Arc;

use helio_codegen::backend::{all, host};
use helio_codegen::tile::Portable;
use helio_ir::{Error, Result};

use crate::interpreted::Reason;

/// What turns a program into results.
///
/// ```
/// # fn main() -> helio::Result<()> {
/// let mut options = helio::CompileOptions::default();
/// options.backend = helio::Backend::named("portable")?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The reference interpreter.
    Interpreter,
    /// Compiled code for this machine's processor, by the fastest back end that it has; what that does
    /// not cover is interpreted.
    #[default]
    Cpu,
    /// Code compiled by this back end. Where it is not
    /// [available](helio_codegen::Backend::is_available), kernels run on the portable tile machine.
    Compiler(Arc<dyn helio_codegen::Backend>),
}

/// The back end of a compilation.
pub(crate) struct Chosen {
    pub(crate) backend: Arc<dyn helio_codegen::Backend>,
    /// Why it is the tile machine although another was asked for.
    pub(crate) fallback: Option<Reason>,
}

impl Backend {
    /// The names of all back ends: `interpreter`, `cpu`, and those of the code generator, `x86-64-v4`
    /// and its kin by the level of the architecture that their code needs, and `portable`.
    pub fn names() -> Vec<String> {
        let ours = ["cpu", "interpreter"].map(str::to_owned);
        ours.into_iter().chain(all().iter().map(|backend| backend.name().to_owned())).collect()
    }

    /// The back end of this [name](Backend::names). Errors: `InvalidArgument` if there is none.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "interpreter" => return Ok(Backend::Interpreter),
            "cpu" => return Ok(Backend::Cpu),
            _ => {}
        }
        let found = all().into_iter().find(|backend| backend.name() == name);
        found.map(Backend::Compiler).ok_or_else(|| {
            let names = Backend::names().join(", ");
            Error::invalid(format!("no back end is named {name}; there are {names}"))
        })
    }

    /// What compiles the kernels of programs here; `None` for the interpreter. Its
    /// [`Capabilities`](helio_ir::Capabilities) are what [passes](helio_passes::PassCx) ask.
    pub fn compiler(&self) -> Option<Arc<dyn helio_codegen::Backend>> {
        self.choose().map(|chosen| chosen.backend)
    }

    /// The back end, or the tile machine where it cannot run; `None` for the interpreter.
    pub(crate) fn choose(&self) -> Option<Chosen> {
        let portable =
            || Chosen { backend: Arc::new(Portable), fallback: Some(Reason::NoInstructions) };
        let of = |backend| Chosen { backend, fallback: None };
        match self {
            Backend::Interpreter => None,
            Backend::Cpu => Some(host().map_or_else(portable, of)),
            Backend::Compiler(backend) if backend.is_available() => Some(of(backend.clone())),
            Backend::Compiler(_) => Some(portable()),
        }
    }
}
