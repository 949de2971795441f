//! Programs in files of any format: HLO as text and in protocol buffers, StableHLO as text and as
//! MLIR bytecode, and what `jax.export` writes.

use std::fmt;

use helio_ir::{Error, Errors, Module, Result, Shape, Sharding};
use helio_stablehlo::export::{self, Exported};
use helio_stablehlo::{self as stablehlo, bytecode, mlir, text};
pub use helio_stablehlo::{Interface, ParameterInfo, ResultInfo};

/// The formats in which a file may hold a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProgramFormat {
    /// HLO text.
    HloText,
    /// `xla.HloModuleProto` or `xla.HloProto`.
    HloProto,
    /// StableHLO as MLIR text.
    StableHloText,
    /// StableHLO as MLIR bytecode: a portable artifact.
    StableHloBytecode,
    /// What `jax.export.Exported.serialize` gives.
    JaxExport,
}

impl fmt::Display for ProgramFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProgramFormat::HloText => "HLO text",
            ProgramFormat::HloProto => "HLO in protocol buffers",
            ProgramFormat::StableHloText => "StableHLO text",
            ProgramFormat::StableHloBytecode => "StableHLO bytecode",
            ProgramFormat::JaxExport => "a file of jax.export",
        })
    }
}

/// Some editors begin UTF-8 with a mark that means nothing.
const BYTE_ORDER_MARK: char = '\u{feff}';

impl ProgramFormat {
    /// The format of a file, by what it holds. Whatever is text but does not begin as MLIR does is
    /// HLO text.
    ///
    /// ```
    /// use helio::ProgramFormat;
    /// let of = |file: &str| ProgramFormat::of(file.as_bytes());
    /// assert_eq!(of("// a comment\nHloModule m"), ProgramFormat::HloText);
    /// assert_eq!(of("#loc = loc(unknown)\nmodule {}"), ProgramFormat::StableHloText);
    /// ```
    pub fn of(file: &[u8]) -> Self {
        if bytecode::is_bytecode(file) {
            return ProgramFormat::StableHloBytecode;
        }
        let is_control = |&byte: &u8| byte < b' ' && !b"\t\n\r\x0c".contains(&byte);
        match std::str::from_utf8(file) {
            Ok(text) if !file.iter().any(is_control) => match text::is_mlir(without_mark(text)) {
                true => ProgramFormat::StableHloText,
                false => ProgramFormat::HloText,
            },
            _ if export::is_export(file) => ProgramFormat::JaxExport,
            // Text with some wrong byte is more likely than a message that looks like text.
            _ if looks_like_text(file) => ProgramFormat::HloText,
            _ => ProgramFormat::HloProto,
        }
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Whether the beginning of a file has no byte that text does not have.
fn looks_like_text(file: &[u8]) -> bool {
    let start = &file[..file.len().min(64)];
    start.iter().all(|&byte| byte >= b' ' || b"\t\n\r".contains(&byte))
}

/// A program as a file holds it: read, and not yet lowered to HLO.
///
/// ```
/// # fn main() -> Result<(), helio::Errors> {
/// let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
///     %y = stablehlo.add %x, %x : tensor<2xf32>
///     return %y : tensor<2xf32>
/// }";
/// let file = helio::ProgramFile::read(text.as_bytes())?;
/// let program = helio::compile(file.module()?, &helio::CompileOptions::default())?;
/// let x = helio::Literal::array([2], vec![1f32, 2.0])?;
/// let y = program.run(&[x])?;
/// assert_eq!(y.as_array().and_then(|y| y.as_slice::<f32>()), Some(&[2f32, 4.0][..]));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ProgramFile {
    format: ProgramFormat,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Hlo(Box<Module>),
    /// The modules of a text (lines `// -----` separate them); bytecode has one.
    StableHlo(Vec<Part>),
    Exported(Box<Exported>),
}

/// A module of a text.
#[derive(Clone, Debug)]
struct Part {
    /// The line where it begins, from 1.
    line: u32,
    module: mlir::Module,
}

impl ProgramFile {
    /// Reads a file, whose format is known by what it holds. No input makes it panic, and memory and
    /// time grow in proportion to the file.
    ///
    /// Errors: all that is wrong with HLO text; else the first thing, with its place in the file.
    pub fn read(file: &[u8]) -> Result<Self, Errors> {
        let format = ProgramFormat::of(file);
        let content = match format {
            ProgramFormat::HloText => {
                Content::Hlo(Box::new(helio_ir::text::parse(as_text(file)?)?))
            }
            ProgramFormat::HloProto => {
                // Also what a file is taken for that is of no format.
                let module = helio_proto::read(file);
                let what = "not text, nor MLIR bytecode";
                Content::Hlo(Box::new(module.map_err(|e| e.context(what))?))
            }
            ProgramFormat::StableHloText => {
                let text = as_text(file)?;
                Content::StableHlo(parts(text)?)
            }
            ProgramFormat::StableHloBytecode => {
                let module = bytecode::read(file)?;
                Content::StableHlo(vec![Part { line: 1, module }])
            }
            ProgramFormat::JaxExport => Content::Exported(Box::new(Exported::read(file)?)),
        };
        Ok(ProgramFile { format, content })
    }

    /// The format of the file.
    pub fn format(&self) -> ProgramFormat {
        self.format
    }

    /// The program in HLO. Of several results its result is a tuple.
    ///
    /// Errors: what StableHLO's programs have and helio does not know; sizes that the program leaves
    /// open ([`ProgramFile::module_for`] is told them); several modules in one text.
    pub fn module(&self) -> Result<Module, Errors> {
        let lowered = match &self.content {
            Content::Hlo(module) => return Ok((**module).clone()),
            Content::StableHlo(parts) => only(parts).and_then(stablehlo::lower),
            Content::Exported(exported) => {
                exported.argument_shapes().and_then(|shapes| exported.lower_for(&shapes))
            }
        };
        Ok(lowered?)
    }

    /// The program in HLO, for arguments of these shapes, by which sizes that it leaves open are known.
    ///
    /// Errors: as for [`ProgramFile::module`], and if the shapes are not ones that the program takes.
    pub fn module_for(&self, arguments: &[Shape]) -> Result<Module, Errors> {
        let lowered = match &self.content {
            Content::Hlo(module) => ensure_takes(module, arguments).map(|()| (**module).clone()),
            Content::StableHlo(parts) => {
                let shapes = arguments.iter().cloned().map(stablehlo::Argument::Shape);
                let shapes = shapes.collect::<Vec<_>>();
                only(parts).and_then(|module| stablehlo::lower_for(module, &shapes))
            }
            Content::Exported(exported) => exported.lower_for(arguments),
        };
        Ok(lowered?)
    }

    /// The shapes of the arguments as far as the program states them: sizes that it leaves open are
    /// unbounded dimensions. Errors: there are several modules, or types that HLO does not have.
    pub fn argument_shapes(&self) -> Result<Vec<Shape>> {
        match &self.content {
            Content::Hlo(module) => Ok(module.entry().program_shape().params),
            Content::StableHlo(parts) => stablehlo::argument_shapes(only(parts)?),
            Content::Exported(exported) => exported.argument_shapes(),
        }
    }

    /// What is known of arguments and results besides their shapes: names, donation, kinds of memory,
    /// shardings. Errors: there are several modules, or an attribute is of an unknown form.
    pub fn interface(&self) -> Result<Interface> {
        match &self.content {
            Content::Hlo(module) => Ok(interface_of(module)),
            Content::StableHlo(parts) => Interface::of(only(parts)?),
            Content::Exported(exported) => exported.interface(),
        }
    }

    /// Whether the program says something of its own values, or there are several modules, so that it
    /// is to be run by [`ProgramFile::run_checks`].
    pub fn has_checks(&self) -> bool {
        match &self.content {
            Content::StableHlo(parts) => {
                parts.len() > 1 || parts.iter().any(|part| stablehlo::has_checks(&part.module))
            }
            Content::Hlo(_) | Content::Exported(_) => false,
        }
    }

    /// Runs each module, which takes no arguments, and compares what its `check` operations name: how
    /// each has fared, by the line where it begins, from 1. HLO has no checks, and gives nothing.
    pub fn run_checks(&self, engine: &impl stablehlo::Engine) -> Vec<Judged> {
        let Content::StableHlo(parts) = &self.content else { return Vec::new() };
        let judge = |part: &Part| (part.line, stablehlo::check_module(&part.module, engine));
        parts.iter().map(judge).collect()
    }
}

/// A program in a format, as a file holds it.
///
/// In StableHLO tuples are taken apart, those of arguments and results, too; layouts are left out.
/// Bytecode is for readers of StableHLO 1.13 and later; text has CHLO's operations, which bytecode has
/// as custom calls by the names that XLA knows.
///
/// Errors: `Unimplemented` for what the format cannot say, and for formats that are only read.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let text = helio::write_program(&module, helio::ProgramFormat::StableHloText)?;
/// assert!(String::from_utf8_lossy(&text).contains("stablehlo.add"));
/// # Ok::<(), helio::Errors>(())
/// ```
pub fn write_program(module: &Module, format: ProgramFormat) -> Result<Vec<u8>> {
    match format {
        ProgramFormat::HloText => Ok(helio_ir::text::print(module).into_bytes()),
        ProgramFormat::HloProto => helio_proto::write(module),
        ProgramFormat::StableHloText => {
            let module = stablehlo::raise(module, true)?;
            Ok(text::print(&module).into_bytes())
        }
        ProgramFormat::StableHloBytecode => {
            bytecode::write(&stablehlo::raise(module, false)?, bytecode::Version::WRITTEN)
        }
        ProgramFormat::JaxExport => Err(Error::unimplemented(format!("{format} is only read"))),
    }
}

/// The line where a module begins, and how it has fared.
///
/// ```
/// let engine = helio::CheckEngine::new(helio::CompileOptions::default());
/// let file = helio::ProgramFile::read(b"func.func @main() { return }")?;
/// let judged: Vec<helio::Judged> = file.run_checks(&engine);
/// for (line, outcome) in judged {
///     println!("line {line}: {}", if outcome.is_ok() { "well" } else { "badly" });
/// }
/// # Ok::<(), helio::Errors>(())
/// ```
pub type Judged = (u32, Result<(), stablehlo::CheckFailure>);

/// The text of a file. Errors: the byte that is none of UTF-8.
fn as_text(file: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(file)
        .map_err(|e| Error::invalid(format!("not text (byte {} is not UTF-8)", e.valid_up_to())))?;
    Ok(without_mark(text))
}

/// The modules of a text; parts without operations are none, unless there is nothing else.
fn parts(text: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for (line, part) in text::split(text) {
        parts.push(Part { line: line + 1, module: text::parse_part(part, line)? });
    }
    if parts.iter().any(|part| !part.module.operations.is_empty()) {
        parts.retain(|part| !part.module.operations.is_empty());
    }
    Ok(parts)
}

fn only(parts: &[Part]) -> Result<&mlir::Module> {
    match parts {
        [part] => Ok(&part.module),
        _ => Err(Error::invalid(format!("one module is needed, found {}", parts.len()))),
    }
}

fn ensure_takes(module: &Module, arguments: &[Shape]) -> Result<()> {
    let params = module.entry().program_shape().params;
    let same = params.iter().zip(arguments).all(|(param, argument)| param.same(argument));
    if params.len() == arguments.len() && same {
        return Ok(());
    }
    let [found, needed] = [arguments.to_vec(), params].map(Shape::Tuple);
    Err(Error::invalid(format!("arguments {found} for parameters {needed}")))
}

/// What HLO says of parameters besides their shapes.
fn interface_of(module: &Module) -> Interface {
    let entry = module.entry();
    let sharding = |id| -> Option<Sharding> { entry.instr(id).extra.as_ref()?.sharding.clone() };
    let name = |id| {
        let instr = entry.instr(id);
        let given = instr.metadata().and_then(|metadata| metadata.op_name.clone());
        Some(given.unwrap_or_else(|| instr.name.to_string()))
    };
    let mut parameters: Vec<ParameterInfo> = entry
        .params()
        .into_values()
        .map(|id| ParameterInfo { name: name(id), sharding: sharding(id), ..Default::default() })
        .collect();
    for alias in &module.config.input_output_alias {
        let whole = alias.parameter_index.is_empty() && alias.output.len() <= 1;
        if let Some(info) = parameters.get_mut(alias.parameter).filter(|_| whole) {
            info.aliased_result = Some(alias.output.first().copied().unwrap_or(0));
        }
    }
    for (parameter, path) in &module.config.buffer_donors {
        if let Some(info) = parameters.get_mut(*parameter).filter(|_| path.is_empty()) {
            info.is_donor = true;
        }
    }
    let count = entry.result_shape().as_tuple().map_or(1, <[Shape]>::len);
    Interface { parameters, results: vec![ResultInfo::default(); count] }
}
