//! HLO to StableHLO and back: what is written verifies, in text and in bytecode, and whatever
//! constants a program computes with come out the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use helio_eval::{Context, evaluate};
use helio_ir::{Code, Literal, Module, Verified, verify};
use helio_stablehlo::{bytecode, lower, mlir, raise, text};

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.extension().is_some_and(|e| e == "hlo") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The programs of the case files that verify, with the names of their files.
fn programs() -> Vec<(String, Verified<Module>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut programs = Vec::new();
    for path in files_below(&dir) {
        let text = std::fs::read_to_string(&path).expect("a file");
        let name = path.strip_prefix(&dir).expect("below").display().to_string();
        for part in text.split("// -----") {
            let module = helio_ir::text::parse(part).and_then(verify);
            programs.extend(module.ok().map(|module| (name.clone(), module)));
        }
    }
    programs
}

/// Writes a program in a form and reads it again. The outer error is a defect.
type Through = fn(&mlir::Module) -> Result<mlir::Module, String>;

fn as_text(module: &mlir::Module) -> Result<mlir::Module, String> {
    let written = text::print(module);
    text::parse(&written).map_err(|e| format!("{e} in\n{written}"))
}

fn as_bytecode(module: &mlir::Module) -> Result<mlir::Module, String> {
    let written = bytecode::write(module, bytecode::Version::WRITTEN);
    bytecode::read(&written.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn leaves(value: Literal) -> Vec<Literal> {
    match value {
        Literal::Tuple(parts) => parts.into_iter().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

/// Errors: the program that comes back is wrong, or finds something else.
fn check(module: &Verified<Module>, raised: &mlir::Module, through: Through) -> Result<(), String> {
    let back = through(raised)?;
    let lowered = lower(&back).map_err(|e| format!("{e} in\n{}", text::print(raised)))?;
    let lowered = verify(lowered).map_err(|errors| format!("{errors:?}"))?;
    if !module.entry().params().is_empty() {
        return Ok(());
    }
    // What fails to run (without a host, without others) fails in both.
    let Ok(expected) = evaluate(module, &[], &Context::default()) else { return Ok(()) };
    let found = evaluate(&lowered, &[], &Context::default()).map_err(|e| e.to_string())?;
    let (expected, found) = (leaves(expected), leaves(found));
    let same =
        expected.len() == found.len() && expected.iter().zip(&found).all(|(x, y)| x.same_bits(y));
    if same { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}

#[test]
fn programs_come_back() {
    for (form, chlo, through) in
        [("text", true, as_text as Through), ("bytecode", false, as_bytecode as Through)]
    {
        let (mut count, mut failures) = (0, Vec::new());
        let mut missing: BTreeMap<String, usize> = BTreeMap::new();
        for (name, module) in programs() {
            match raise(&module, chlo) {
                Err(e) if e.code() == Code::Unimplemented => {
                    *missing.entry(e.detail().to_owned()).or_default() += 1;
                }
                Err(e) => failures.push(format!("{name}: {e}")),
                Ok(raised) => match check(&module, &raised, through) {
                    Ok(()) => count += 1,
                    Err(e) => failures.push(format!("{name}: {e}")),
                },
            }
        }
        println!("{form}: {count} programs come back; not written: {missing:#?}");
        let list: String = failures.iter().take(40).map(|f| format!("{f}\n")).collect();
        assert!(failures.is_empty(), "{form}: {} fail:\n{list}", failures.len());
        assert!(count > 800, "{form}: only {count} programs");
    }
}
