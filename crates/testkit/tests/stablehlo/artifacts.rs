//! JAX's programs as portable artifacts and as text: both are the same program, which compiled code
//! and the interpreter find the same results of.

use std::collections::BTreeMap;
use std::path::Path;

use helio::ir::{Module, Verified};
use helio::stablehlo::bytecode;
use helio::{
    Backend, CompileOptions, CustomCallRegistry, Literal, ProgramFile, ProgramFormat, print,
    random_arguments,
};
use helio_testkit::tally::report;
use helio_testkit::tolerance::Tolerance;

use super::{name, programs};

fn read(path: &Path, format: ProgramFormat) -> Result<Verified<Module>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let file = ProgramFile::read(&bytes).map_err(|errors| errors[0].to_string())?;
    if file.format() != format {
        return Err(format!("taken for {}", file.format()));
    }
    let module = file.module().and_then(helio::ir::verify);
    module.map_err(|errors| errors[0].to_string())
}

/// The program without what is said of where it comes from, which artifacts here leave out.
fn bare(module: &Verified<Module>) -> String {
    let mut module = Module::clone(module);
    module.config.stack_frames = None;
    for id in module.ids() {
        for instr in module.computation(id).ids() {
            let extra = &mut module.computation_mut(id).instr_mut(instr).extra;
            if let Some(extra) = extra {
                extra.metadata = None;
            }
        }
    }
    print(&module)
}

fn run(module: &Verified<Module>, args: &[Literal], backend: Backend) -> Result<Literal, String> {
    let mut options = CompileOptions::default();
    options.backend = backend;
    let program = helio::compile(module.clone().into_inner(), &options);
    program.map_err(|errors| errors[0].to_string())?.run(args).map_err(|e| e.to_string())
}

/// How far engines may be apart: programs that sum and divide random numbers, in f32 or less.
const TOLERANCE: Tolerance = Tolerance::Distance { rtol: 1e-3, atol: 1e-3 };

#[test]
fn artifacts_are_their_texts_and_engines_agree() {
    let (mut count, mut agree, mut failures) = (0, 0, Vec::new());
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for path in programs("pjrt/programs", "mlirbc") {
        count += 1;
        let name = name(&path);
        let artifact = read(&path, ProgramFormat::StableHloBytecode);
        let text = read(&path.with_extension("mlir"), ProgramFormat::StableHloText);
        let (artifact, text) = match (artifact, text) {
            (Ok(artifact), Ok(text)) => (artifact, text),
            (Err(e), _) | (_, Err(e)) => {
                failures.push(format!("{name}: {e}"));
                continue;
            }
        };
        if bare(&artifact) != bare(&text) {
            failures.push(format!("{name}: the text is another program"));
        }
        let missing = helio::warnings(&artifact, &CustomCallRegistry::new());
        if let Some(error) = missing.first() {
            *calls.entry(error.detail().to_owned()).or_default() += 1;
            continue;
        }
        let shapes = artifact.entry().program_shape().params;
        let found = random_arguments(&shapes, 1).map_err(|e| e.to_string()).and_then(|args| {
            let expected = run(&artifact, &args, Backend::Interpreter)?;
            TOLERANCE.compare(&run(&artifact, &args, Backend::Cpu)?, &expected)
        });
        match found {
            Ok(()) => agree += 1,
            Err(e) => failures.push(format!("{name}: {e}")),
        }
    }
    report(format_args!(
        "{count} artifacts of JAX: engines agree on {agree}, need functions of the user: {calls:?}"
    ));
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Every artifact that StableHLO has released, of every version given, is read.
#[test]
fn released_artifacts_are_read() {
    let files = programs("stablehlo/vhlo", "bc");
    let mut failures = Vec::new();
    for path in &files {
        let bytes = std::fs::read(path).expect("a file");
        if let Err(e) = bytecode::read(&bytes)
            && !name(path).starts_with("invalid")
        {
            failures.push(format!("{}: {e}", path.display()));
        }
    }
    report(format_args!("{} released artifacts read", files.len() - failures.len()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
