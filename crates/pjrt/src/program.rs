//! Programs as callers give them: a format's name and bytes.

use std::sync::atomic::{AtomicBool, Ordering};

use helio::{Error, MemoryKind, Module, Result};
use helio_proto::messages::{HloModuleProto, ProgramShapeProto};
use helio_stablehlo::tiling::Tiling;
use helio_stablehlo::{Interface, Partitioned, bytecode, text};

use crate::client::memory_kind;

/// A program read, and what is said of its arguments and results besides.
pub(crate) struct Program {
    pub(crate) module: Module,
    /// How arguments and results are cut up among partitions, if the program says so.
    pub(crate) tilings: Option<Tilings>,
    /// The memory of each argument and result, where one is named.
    pub(crate) memories: Memories,
}

/// The memories that a program names for its arguments and results, by number.
#[derive(Default)]
pub(crate) struct Memories {
    pub(crate) arguments: Vec<Option<MemoryKind>>,
    pub(crate) results: Vec<Option<MemoryKind>>,
}

/// How the arguments and results of a program are cut up among its partitions.
pub(crate) struct Tilings {
    pub(crate) arguments: Vec<Tiling>,
    pub(crate) results: Vec<Tiling>,
}

/// Reads a program for so many partitions. Errors: formats other than `mlir`, `hlo` and `hlo_with_config`; what is wrong with
/// the program.
pub(crate) fn read(format: &str, code: &[u8], partitions: usize) -> Result<Program> {
    match format {
        "mlir" => stablehlo(code, partitions),
        "hlo" => hlo(helio_proto::read(code)?),
        "hlo_with_config" => {
            let module: WithConfig = prost::Message::decode(code)
                .map_err(|e| Error::invalid(format!("no xla.HloModuleProtoWithConfig: {e}")))?;
            let module = module.module.unwrap_or_default();
            hlo(helio_proto::read_message(&module)?)
        }
        _ => Err(Error::unimplemented(format!(
            "programs of format `{format}`; there are mlir, hlo and hlo_with_config"
        ))),
    }
}

/// `xla.HloModuleProtoWithConfig`
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WithConfig {
    #[prost(message, optional, tag = "1")]
    module: Option<HloModuleProto>,
    #[prost(message, optional, tag = "2")]
    config: Option<ConfigProto>,
}

/// `xla.HloModuleConfigProto`, as far as readers of a module need it.
#[derive(Clone, PartialEq, prost::Message)]
struct ConfigProto {
    #[prost(message, optional, tag = "1")]
    entry_computation_layout: Option<ProgramShapeProto>,
    #[prost(int64, tag = "4")]
    replica_count: i64,
    #[prost(int64, tag = "5")]
    num_partitions: i64,
}

impl WithConfig {
    /// Of a module. Errors: what HLO has no message for.
    pub(crate) fn of(module: &Module) -> Result<Self> {
        let proto = helio_proto::write_message(module)?;
        let count = |count: Option<usize>| count.unwrap_or(1) as i64;
        let config = ConfigProto {
            entry_computation_layout: proto.host_program_shape.clone(),
            replica_count: count(module.config.replica_count),
            num_partitions: count(module.config.num_partitions),
        };
        Ok(WithConfig { module: Some(proto), config: Some(config) })
    }
}

fn hlo(module: Module) -> Result<Program> {
    Ok(Program { module, tilings: None, memories: Memories::default() })
}

fn stablehlo(code: &[u8], partitions: usize) -> Result<Program> {
    let source = if bytecode::is_bytecode(code) {
        bytecode::read(code)?
    } else {
        let text = str::from_utf8(code)
            .map_err(|_| Error::invalid("the program is neither MLIR bytecode nor text"))?;
        text::parse(text)?
    };
    let (module, tilings) = match partitions {
        1 => (helio_stablehlo::lower(&source)?, None),
        _ => {
            let Partitioned { module, arguments, results, replicated, exchanged } =
                helio_stablehlo::lower_partitioned(&source, partitions)?;
            if replicated > 0 {
                say_replicated(&module.name, replicated, partitions);
            }
            say_exchanged(&module.name, &exchanged);
            (module, Some(Tilings { arguments, results }))
        }
    };
    let interface = Interface::of(&source)?;
    let kind = |name: &Option<String>| name.as_deref().map(memory_kind).transpose();
    let arguments = interface.parameters.iter().map(|info| kind(&info.memory_kind));
    let results = interface.results.iter().map(|info| kind(&info.memory_kind));
    let memories = Memories {
        arguments: arguments.collect::<Result<_>>()?,
        results: results.collect::<Result<_>>()?,
    };
    Ok(Program { module, tilings, memories })
}

/// Says what loops give in other tiles than they get it, with `HELIO_LOG=1`.
fn say_exchanged(name: &str, exchanged: &[String]) {
    if logs() {
        exchanged.iter().for_each(|line| eprintln!("helio: {name}: {line}"));
    }
}

fn logs() -> bool {
    std::env::var_os("HELIO_LOG").is_some_and(|value| value == "1")
}

/// Says that partitions do the same work: of the first program in the process, and of all with
/// `HELIO_LOG=1`.
fn say_replicated(name: &str, operations: usize, partitions: usize) {
    static IS_FIRST: AtomicBool = AtomicBool::new(true);
    let is_first = IS_FIRST.swap(false, Ordering::Relaxed);
    if is_first || logs() {
        eprintln!(
            "helio: {name}: {operations} operations outside of manual computations are computed as a \
             whole by each of {partitions} devices"
        );
    }
}
