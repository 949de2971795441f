//! What the program takes and shows besides programs in files and results in full.

mod support;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use helio::Array;
use support::{Scratch, expect_status, helio, path, stderr, stdout};

const DIFFERENCE: &str = "HloModule difference
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT z = f32[3] subtract(x, y)
}
";

const IOTA: &str = "ENTRY e { ROOT i = f32[2000] iota(), iota_dimension=0 }";

fn with_stdin(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_helio"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn floats(values: [f32; 3]) -> Array {
    Array::from(values)
}

#[test]
fn standard_input_is_a_file() {
    let output = with_stdin(&["run", "-"], b"ENTRY e { ROOT x = s32[] constant(7) }");
    expect_status(&output, 0);
    assert_eq!(stdout(&output), "out0: s32[]\n7\n");
    let output = with_stdin(&["check", "-"], b"ENTRY e { ROOT x = s32[] constnt(7) }");
    expect_status(&output, 2);
    assert!(stderr(&output).contains("standard input:1:"), "{}", stderr(&output));

    let scratch = Scratch::new("stdin");
    let module = scratch.text("m.hlo", DIFFERENCE);
    for file in ["in.npz", "in.safetensors"] {
        let ones = floats([1.0; 3]);
        let inputs = scratch.arrays(file, &[("in0", floats([1.0, 2.0, 3.0])), ("in1", ones)]);
        let output =
            with_stdin(&["run", path(&module), "--inputs", "-"], &fs::read(inputs).unwrap());
        expect_status(&output, 0);
        assert!(stdout(&output).ends_with("[0. 1. 2.]\n"), "{}", stdout(&output));
    }
}

#[test]
fn arguments_have_names_or_positions() {
    let scratch = Scratch::new("names");
    let module = scratch.text("m.hlo", DIFFERENCE);
    let (x, y) = (floats([3.0; 3]), floats([1.0, 2.0, 3.0]));
    for names in [["in0", "in1"], ["arr_0", "arr_1"], ["x", "y"], ["x", "in1"]] {
        let inputs = scratch.arrays("in.npz", &[(names[0], x.clone()), (names[1], y.clone())]);
        let output = helio(&["run", path(&module), "--inputs", path(&inputs)]);
        expect_status(&output, 0);
        assert!(stdout(&output).ends_with("[2. 1. 0.]\n"), "{names:?}: {}", stdout(&output));
    }
    let inputs = scratch.arrays("in.npz", &[("y", y), ("z", x)]);
    let output = helio(&["run", path(&module), "--inputs", path(&inputs)]);
    expect_status(&output, 2);
    let wanted = "in.npz: no array in0, arr_0 or x (f32[3]); the file has y, z";
    assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
}

#[test]
fn results_are_shown_as_asked() {
    let scratch = Scratch::new("shown");
    let module = scratch.text("iota.hlo", IOTA);
    let run = |more: &[&str]| {
        let output = helio(&[&["run", path(&module)], more].concat());
        expect_status(&output, 0);
        stdout(&output)
    };
    assert!(run(&[]).contains(" ... "));
    assert!(!run(&["--full"]).contains("..."));
    // As NumPy prints it.
    assert!(run(&["--precision", "1"]).contains("[0.e+00 1.e+00 2.e+00 ... 2.e+03 2.e+03 2.e+03]"));
    let values = |more: &[&str]| -> serde_json::Value {
        let report: serde_json::Value = serde_json::from_str(&run(more)).unwrap();
        report["outputs"][0]["values"].clone()
    };
    assert!(values(&["--json"]).is_null());
    assert_eq!(values(&["--json", "--full"])[1999], 1999.0);
    // With the digits that the type has.
    for (constant, values) in [
        ("c64[2] constant({(0.1, nan), (-inf, 0)})", "[[0.1,\"nan\"],[\"-inf\",0.0]]"),
        ("f32[3] constant({0.1, 1e-40, 3e38})", "[0.1,1e-40,3e+38]"),
        ("f64[] constant(0.1)", "0.1"),
    ] {
        let module = scratch.text("c.hlo", &format!("ENTRY e {{ ROOT x = {constant} }}"));
        let output = helio(&["run", path(&module), "--json"]);
        let wanted = format!("\"values\":{values}");
        assert!(stdout(&output).contains(&wanted), "{wanted}: {}", stdout(&output));
    }
    // Or with fewer.
    for (constant, values) in [
        ("c64[2] constant({(0.126, nan), (-inf, 3.14159)})", "[[0.13,\"nan\"],[\"-inf\",3.14]]"),
        ("f32[3] constant({0.1, 1e-40, 1234.567})", "[0.1,0.0,1234.57]"),
        ("s32[] constant(12345)", "12345"),
    ] {
        let module = scratch.text("c.hlo", &format!("ENTRY e {{ ROOT x = {constant} }}"));
        let output = helio(&["run", path(&module), "--json", "--precision", "2"]);
        let wanted = format!("\"values\":{values}");
        assert!(stdout(&output).contains(&wanted), "{wanted}: {}", stdout(&output));
    }
}

#[test]
fn arrays_are_drawn() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mandelbrot.hlo");
    let output = helio(&["run", example, "--show"]);
    expect_status(&output, 0);
    let text = stdout(&output);
    let middle = text.lines().nth(11).unwrap();
    assert!(middle.len() > 40 && middle.contains("@@@@@@"), "{text}");
    let scratch = Scratch::new("drawn");
    let png = scratch.path("set.png");
    expect_status(&helio(&["run", example, &format!("--show={}", path(&png))]), 0);
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    let jpg = scratch.path("set.jpg");
    let output = helio(&["run", example, &format!("--show={}", path(&jpg))]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("end with .png") && !jpg.exists(), "{}", stderr(&output));
    let module = scratch.text("iota.hlo", IOTA);
    let output = helio(&["run", path(&module), &format!("--show={}", path(&png))]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("two dimensions"), "{}", stderr(&output));
}

#[test]
fn check_verifies_what_could_be_read() {
    let scratch = Scratch::new("partly");
    let module = scratch.text(
        "m.hlo",
        "HloModule m
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[4] add(x, x)
  z = f32[3] frobnicate(x)
  ROOT w = f32[3] transpose(x), dimensions={1}
}
",
    );
    let output = helio(&["check", path(&module)]);
    expect_status(&output, 2);
    let text = stderr(&output);
    let places: Vec<_> = [":4:", ":5:", ":6:", "3 errors"].iter().map(|at| text.find(at)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    let excerpt = format!("--> {}:4:3\n  |\n4 |   y = f32[4] add(x, x)\n  |   ^\n", path(&module));
    assert!(text.contains(&excerpt), "{text}");
}

#[test]
fn infeed_says_what_a_file_has_instead() {
    let scratch = Scratch::new("feeds");
    let module = scratch.text(
        "feed.hlo",
        "ENTRY e { t = token[] after-all() fed = (f32[3], token[]) infeed(t)
           ROOT x = f32[3] get-tuple-element(fed), index=0 }",
    );
    let file = scratch.arrays("feed.npz", &[("in0", floats([1.0; 3]))]);
    let output = helio(&["run", path(&module), "--infeed", path(&file)]);
    expect_status(&output, 2);
    assert!(
        stderr(&output).contains("no array feed0 (f32[3]); the file has in0"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn shells_and_manuals_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = helio(&["completions", shell]);
        expect_status(&output, 0);
        // (In fish, options stand without their dashes.)
        assert!(stdout(&output).contains("memory-limit"), "{shell}");
    }
    let output = helio(&["man"]);
    expect_status(&output, 0);
    assert!(stdout(&output).contains("convert"));
    let scratch = Scratch::new("man");
    expect_status(&helio(&["man", path(&scratch.path(""))]), 0);
    assert!(fs::read_to_string(scratch.path("helio-run.1")).unwrap().contains("expect"));
}

#[test]
fn nothing_is_coloured_when_piped() {
    let output = helio(&["run", "nowhere.hlo"]);
    assert!(stderr(&output).starts_with("error: nowhere.hlo"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupt_is_status_130() {
    let scratch = Scratch::new("interrupt");
    let module = scratch.text(
        "endless.hlo",
        "yes { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
         same { ROOT s = s32[] parameter(0) }
         ENTRY e { z = s32[] constant(0) ROOT w = s32[] while(z), condition=yes, body=same }",
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_helio"))
        .args(["run", path(&module), "--time-limit", "60"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until the program has set up what Ctrl-C does, it ends by the signal itself.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
