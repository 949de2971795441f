//! StableHLO's own test programs, where they are: `../shared/stablehlo` beside the repository.

mod engine;

use std::fs;
use std::path::{Path, PathBuf};

use engine::Interpreter;
use helio_stablehlo::run_checks;

/// The `.mlir` files of a folder beside the repository, in order; none if it is not there.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "mlir"))
        .collect();
    found.sort();
    found
}

const FOLDERS: [&str; 6] = [
    "stablehlo/interpret",
    "stablehlo/interpret/chlo",
    "stablehlo/math",
    "stablehlo/testdata",
    "stablehlo/testdata/quantized",
    "pjrt/programs",
];

#[test]
fn every_program_parses() {
    let mut failures = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| programs(folder)) {
        let text = fs::read_to_string(&path).unwrap();
        if let Err(error) = helio_stablehlo::text::parse_all(&text) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Runs the programs of a folder; how many modules pass, and why others do not.
fn judge(folder: &str) -> (usize, Vec<String>) {
    let (mut passed, mut failures) = (0, Vec::new());
    for path in programs(folder) {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if text.starts_with("// RUN-DISABLED") {
            continue;
        }
        for (line, result) in run_checks(&text, &Interpreter) {
            match result {
                Ok(()) => passed += 1,
                Err(error) => failures.push(format!("{name}:{line}: {error}")),
            }
        }
    }
    (passed, failures)
}

/// Modules whose checks the interpreter does not meet, and why, beside those marked `RUN-DISABLED`. One
/// that meets them is to be taken off the list.
const KNOWN: &[(&str, &str)] = &[
    ("api_input_arguments:1", "takes arguments, and has no checks"),
    // What is expected was summed in f32, in one order, and cancels; here sums are formed in f64.
    ("conv_general_dilated_float32_2_3_9_float32_12_1_3:1", "sums in f64"),
    ("dot_general_int32_4_3_float32_3_6:1", "sums in f64"),
    ("dot_general_int64_4_3_complex64_3_6:1", "sums in f64"),
    ("dot_general_int8_4_3_float32_3_6:1", "sums in f64"),
    ("dot_general_uint16_4_3_float32_3_6:1", "sums in f64"),
];

#[test]
fn programs_find_what_they_expect() {
    let (mut run, mut all) = (0, Vec::new());
    for folder in &FOLDERS[..5] {
        let (passed, failures) = judge(folder);
        println!("{folder}: {passed} modules pass, {} do not", failures.len());
        run += passed + failures.len();
        all.extend(failures);
    }
    if run == 0 {
        println!("nothing was run: {} is not there", FOLDERS[0]);
        return;
    }
    let is_of = |failure: &String, name: &str| failure.starts_with(&format!("{name}: "));
    let met = KNOWN.iter().filter(|(name, _)| !all.iter().any(|failure| is_of(failure, name)));
    let met: Vec<&str> = met.map(|(name, _)| *name).collect();
    assert!(met.is_empty(), "known to fail, and do not: {}", met.join(", "));
    all.retain(|failure| !KNOWN.iter().any(|(name, _)| is_of(failure, name)));
    assert!(all.is_empty(), "{} fail:\n{}", all.len(), all.join("\n"));
}

#[test]
fn our_own_programs_find_what_they_expect() {
    for (line, result) in run_checks(include_str!("../programs/forms.mlir"), &Interpreter) {
        assert!(result.is_ok(), "forms.mlir:{line}: {}", result.unwrap_err());
    }
}

/// A program that finds something else says where and what.
#[test]
fn differences_are_told() {
    let check = |op: &str| {
        let text = format!(
            "func.func @f() {{\n%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n{op}\nreturn\n}}"
        );
        run_checks(&text, &Interpreter).remove(0).1.unwrap_err().to_string()
    };
    assert_eq!(
        check("check.expect_eq_const %0, dense<[1.0, 3.0]> : tensor<2xf32>"),
        "3:1: invalid argument: check.expect_eq_const: element [1]: found 2e0, expected 3e0 (Equal)"
    );
    assert_eq!(
        check("stablehlo.foo %0 : tensor<2xf32>"),
        "3:1: unimplemented: stablehlo.foo: an operation that helio does not know"
    );
    assert_eq!(
        check("%1 = stablehlo.tanh %0 {colour = 1 : i32} : tensor<2xf32>"),
        "3:1: unimplemented: stablehlo.tanh: attribute `colour` is not known here"
    );
    assert_eq!(
        check("%1 = stablehlo.reshape %0 : (tensor<2xf32>) -> tensor<3xf32>"),
        "3:1: invalid argument[reshape.C4]: stablehlo.reshape: operand and result must have as many \
         elements, found f32[2] of 2 and f32[3] of 3"
    );
}

/// JAX's own programs have arguments and no checks: they become modules that verify.
#[test]
fn programs_of_jax_lower() {
    let mut failures = Vec::new();
    for path in programs("pjrt/programs") {
        let text = fs::read_to_string(&path).unwrap();
        let lowered = helio_stablehlo::text::parse(&text)
            .and_then(|module| helio_stablehlo::lower(&module))
            .and_then(|module| engine::verified(&module));
        if let Err(error) = lowered {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
