//! StableHLO's own test programs and JAX's, where they are: `../shared` beside the repository. Both
//! engines run them: the interpreter, and compiled code.

mod artifacts;

use std::fs;
use std::path::{Path, PathBuf};

use helio::stablehlo::{run_checks, text};
use helio::{Backend, CheckEngine, CompileOptions, Subnormals};
use helio_testkit::tally::report;

/// The files of a folder of `../shared` with this extension, in order; none if it is not there.
fn programs(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

const FOLDERS: [&str; 6] = [
    "stablehlo/interpret",
    "stablehlo/interpret/chlo",
    "stablehlo/math",
    "stablehlo/testdata",
    "stablehlo/testdata/quantized",
    "pjrt/programs",
];

/// What runs programs that check themselves, whose expected results have subnormal numbers.
fn engine(backend: Backend) -> CheckEngine {
    let mut options = CompileOptions::default();
    options.backend = backend;
    options.subnormals = Subnormals::Keep;
    CheckEngine::new(options)
}

fn engines() -> [(&'static str, CheckEngine); 2] {
    [("interpreter", engine(Backend::Interpreter)), ("compiled", engine(Backend::Cpu))]
}

#[test]
fn every_program_parses() {
    let mut failures = Vec::new();
    for path in FOLDERS.iter().flat_map(|folder| programs(folder, "mlir")) {
        let text = fs::read_to_string(&path).unwrap();
        if let Err(error) = text::parse_all(&text) {
            failures.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Runs the programs of a folder; how many modules pass, and why others do not.
fn judge(folder: &str, engine: &CheckEngine) -> (usize, Vec<String>) {
    let (mut passed, mut failures) = (0, Vec::new());
    for path in programs(folder, "mlir") {
        let text = fs::read_to_string(&path).unwrap();
        let name = name(&path);
        if text.starts_with("// RUN-DISABLED") {
            continue;
        }
        for (line, result) in run_checks(&text, engine) {
            match result {
                Ok(()) => passed += 1,
                Err(error) => failures.push(format!("{name}:{line}: {error}")),
            }
        }
    }
    (passed, failures)
}

/// Modules whose checks are not met, on which engine (none: on neither), and why, beside those marked
/// `RUN-DISABLED`. One that meets them is to be taken off the list.
const KNOWN: &[(&str, Option<&str>, &str)] = &[
    (
        "api_input_arguments:1",
        None,
        "takes arguments, and has no checks: the command line's tests run it",
    ),
    // What is expected cancels, and was summed in one order with each term rounded; here sums are nearer to
    // the exact ones. Distances are from what is expected.
    (
        "conv_general_dilated_float32_2_3_9_float32_12_1_3:1",
        None,
        "the exact sums are up to 32 ulps away, with fused products as well",
    ),
    (
        "dot_general_int64_4_3_complex64_3_6:1",
        Some("interpreter"),
        "sums in f64: the exact sums are 4 ulps away",
    ),
    ("dot_general_int32_4_3_float32_3_6:1", Some("interpreter"), "sums in f64"),
    ("dot_general_int8_4_3_float32_3_6:1", Some("interpreter"), "sums in f64"),
    ("dot_general_uint16_4_3_float32_3_6:1", Some("interpreter"), "sums in f64"),
    (
        "cumsum_bfloat16_8_9:1",
        Some("compiled"),
        "sums in f32, rounded once, are exact; the sums of bf16 are 264 ulps away",
    ),
];

#[test]
fn programs_find_what_they_expect() {
    let (mut run, mut wrong) = (0, Vec::new());
    for (engine_name, engine) in engines() {
        let mut failures = Vec::new();
        for folder in &FOLDERS[..5] {
            let (passed, failed) = judge(folder, &engine);
            report(format_args!(
                "{folder}, {engine_name}: {passed} modules pass, {} do not",
                failed.len()
            ));
            run += passed + failed.len();
            failures.extend(failed);
        }
        let known = KNOWN.iter().filter(|known| known.1.is_none_or(|on| on == engine_name));
        for (module, _, why) in known {
            let before = failures.len();
            failures.retain(|failure: &String| !failure.starts_with(&format!("{module}: ")));
            if before == failures.len() {
                wrong.push(format!(
                    "{engine_name}: {module} is known to fail ({why}), and does not"
                ));
            }
        }
        wrong.extend(failures.into_iter().map(|failure| format!("{engine_name}: {failure}")));
    }
    if run == 0 {
        report(format_args!("no programs of StableHLO are there: nothing was run"));
        return;
    }
    assert!(wrong.is_empty(), "{} fail:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn our_own_programs_find_what_they_expect() {
    let text = include_str!("../../../stablehlo/tests/programs/forms.mlir");
    for (name, engine) in engines() {
        for (line, result) in run_checks(text, &engine) {
            assert!(result.is_ok(), "{name}: forms.mlir:{line}: {}", result.unwrap_err());
        }
    }
}

/// Functions of open sizes are inlined: each of these forty calls the one before it twice.
#[test]
fn a_chain_of_calls_is_not_inlined_without_end() {
    let ty = "tensor<?xf32>";
    let mut text = format!("func.func @f0(%x: {ty}) -> {ty} {{ return %x : {ty} }}\n");
    for i in 1..=40 {
        let call =
            |to: &str, from: &str| format!("%{to} = call @f{}(%{from}) : ({ty}) -> {ty}", i - 1);
        let (first, second) = (call("y", "x"), call("z", "y"));
        text += &format!(
            "func.func @f{i}(%x: {ty}) -> {ty} {{ {first}\n{second}\nreturn %z : {ty} }}\n"
        );
    }
    text += "func.func @main() { %0 = stablehlo.constant dense<1.0> : tensor<2xf32>\n\
             %1 = stablehlo.convert %0 : (tensor<2xf32>) -> tensor<?xf32>\n\
             %2 = call @f40(%1) : (tensor<?xf32>) -> tensor<?xf32>\n\
             check.expect_eq %2, %2 : tensor<?xf32>\nreturn }";
    let mut results = run_checks(&text, &engine(Backend::Interpreter));
    let error = results.remove(0).1.unwrap_err().to_string();
    assert!(error.contains("is inlined, which makes more than 262144 operations"), "{error}");
}

/// A program that finds something else says where and what.
#[test]
fn differences_are_told() {
    let check = |op: &str| {
        let text = format!(
            "func.func @f() {{\n%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n{op}\nreturn\n}}"
        );
        run_checks(&text, &engine(Backend::Cpu)).remove(0).1.unwrap_err().to_string()
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
