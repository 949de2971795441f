//! Programs in all formats, as a user of the program `helio` meets them.

mod support;

use std::fs;

use helio::Array;
use support::{Scratch, expect_status, helio, path, stderr, stdout};

const DOUBLE: &str = "module @jit_double {
  func.func public @main(%arg0: tensor<3xf32> loc(\"x\")) -> (tensor<3xf32> {jax.result_info = \"\"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
";

fn floats(values: &[f32]) -> Array {
    Array::new([values.len()], values.to_vec()).unwrap()
}

/// What is inside counts, whatever the name says.
#[test]
fn formats_are_known_by_content() {
    let scratch = Scratch::new("content");
    let inputs = scratch.arrays("in.npz", &[("in0", floats(&[1.0, -2.0, 3.0]))]);
    let expected = scratch.arrays("out.npz", &[("out0", floats(&[2.0, -4.0, 6.0]))]);
    let text = scratch.text("text", DOUBLE);
    let (hlo, proto) = (scratch.path("double.hlo"), scratch.path("double.pb"));
    expect_status(&helio(&["convert", path(&text), path(&hlo)]), 0);
    expect_status(&helio(&["convert", path(&text), path(&proto)]), 0);
    assert!(fs::read_to_string(&hlo).unwrap().starts_with("HloModule jit_double"));
    let renamed = scratch.path("proto.txt");
    fs::copy(&proto, &renamed).unwrap();
    let [again, bytecode] = ["again.mlir", "double.mlirbc"].map(|name| scratch.path(name));
    expect_status(&helio(&["convert", path(&hlo), path(&again)]), 0);
    expect_status(&helio(&["convert", path(&again), path(&bytecode)]), 0);
    for file in [&text, &hlo, &proto, &renamed, &again, &bytecode] {
        expect_status(&helio(&["check", path(file)]), 0);
        let run = ["run", path(file), "--inputs", path(&inputs), "--expect", path(&expected)];
        expect_status(&helio(&run), 0);
        expect_status(&helio(&["bench", path(file), "--random", "1", "--runs", "2"]), 0);
        let opt = helio(&["opt", path(file)]);
        expect_status(&opt, 0);
        assert!(stdout(&opt).contains("f32[3]"), "{}", stdout(&opt));
    }
}

#[test]
fn arguments_may_have_the_names_of_parameters() {
    let scratch = Scratch::new("named");
    let text = scratch.text("double.mlir", DOUBLE);
    let inputs = scratch.arrays("in.npz", &[("x", floats(&[1.0, 2.0, 3.0]))]);
    let output = helio(&["run", path(&text), "--inputs", path(&inputs)]);
    expect_status(&output, 0);
    assert!(stdout(&output).contains("[2. 4. 6.]"), "{}", stdout(&output));
}

/// Sizes that a program leaves open are those of its arguments.
#[test]
fn open_sizes_follow_the_arguments() {
    let scratch = Scratch::new("open");
    let text = scratch.text("open.mlir", &DOUBLE.replace("tensor<3x", "tensor<?x"));
    let inputs = scratch.arrays("in.npz", &[("in0", floats(&[1.0, 2.0]))]);
    let output = helio(&["run", path(&text), "--inputs", path(&inputs)]);
    expect_status(&output, 0);
    assert!(stdout(&output).contains("out0: f32[2]\n[2. 4.]"), "{}", stdout(&output));
    let output = helio(&["run", path(&text), "--random", "1"]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("--inputs FILE"), "{}", stderr(&output));
}

fn checked(expected: &str) -> String {
    format!(
        "func.func @main() {{
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<{expected}> : tensor<2xf32>
  return
}}
"
    )
}

#[test]
fn programs_with_checks_judge_themselves() {
    let scratch = Scratch::new("judge");
    let good = scratch.text("good.mlir", &checked("[2.0, 4.0]"));
    for backend in ["cpu", "interpreter"] {
        let output = helio(&["run", path(&good), "--backend", backend]);
        expect_status(&output, 0);
        assert_eq!(stdout(&output), "1 of 1 module meet their checks\n");
    }
    // The second of three modules differs, and says where in the file.
    let parts = ["[2.0, 4.0]", "[2.0, 5.0]", "[2.0, 4.0]"].map(checked);
    let text = parts.join("// -----\n");
    let mixed = scratch.text("mixed.mlir", &text);
    let output = helio(&["run", path(&mixed)]);
    expect_status(&output, 1);
    assert_eq!(stdout(&output), "2 of 3 modules meet their checks\n");
    let words = stderr(&output);
    for part in
        ["mixed.mlir:11:3", "element [1]: found 4e0, expected 5e0", "check.expect_eq_const %1"]
    {
        assert!(words.contains(part), "{part} is not in:\n{words}");
    }
    let output = helio(&["run", path(&mixed), "--json"]);
    expect_status(&output, 1);
    assert!(stdout(&output).contains("\"ok\":false"), "{}", stdout(&output));
    // A module that cannot be run is no difference.
    let wrong = text.replace("stablehlo.add", "stablehlo.at");
    let output = helio(&["run", path(&scratch.text("wrong.mlir", &wrong))]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("wrong.mlir:3:"), "{}", stderr(&output));
}

#[test]
fn errors_name_the_place() {
    let scratch = Scratch::new("places");
    let wrong = DOUBLE.replace("%arg0, %arg0", "%arg0, %arg1");
    let output = helio(&["check", path(&scratch.text("wrong.mlir", &wrong))]);
    expect_status(&output, 2);
    let words = stderr(&output);
    assert!(words.contains("wrong.mlir:3:31") && words.contains("%arg1"), "{words}");
    let bytes = [b"ML\xefR\x06StableHLO_v1.13.0\0".as_slice(), &[0; 20]].concat();
    fs::write(scratch.path("cut.mlirbc"), bytes).unwrap();
    let output = helio(&["check", path(&scratch.path("cut.mlirbc"))]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("bytecode, header at byte"), "{}", stderr(&output));
}
