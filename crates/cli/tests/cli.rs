//! The program `helio` as a user meets it: output and exit status.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use helio::data;
use helio::ir::types::BF16;
use helio::{Array, Literal};
use support::{Scratch, expect_status, helio, path, stderr, stdout};

const DOUBLE: &str = "HloModule double
ENTRY main {
  x = f32[3] parameter(0)
  ROOT y = f32[3] add(x, x)
}
";

const ENDLESS: &str = "HloModule endless
yes { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
same { ROOT s = s32[] parameter(0) }
ENTRY e { z = s32[] constant(0) ROOT w = s32[] while(z), condition=yes, body=same }
";

fn floats(values: [f32; 3]) -> Array {
    Array::new([3], values.to_vec()).unwrap()
}

#[test]
fn runs_an_example_and_prints_its_result() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mandelbrot.hlo");
    let output = helio(&["run", example]);
    expect_status(&output, 0);
    let text = stdout(&output);
    assert!(text.starts_with("out0: s32[21,49]"), "{text}");
    assert!(stderr(&output).is_empty(), "nothing but results when piped");
}

#[test]
fn saves_and_compares_results() {
    let scratch = Scratch::new("compare");
    let module = scratch.text("double.hlo", DOUBLE);
    let inputs = scratch.arrays("in.npz", &[("in0", floats([1.0, 2.0, 3.0]))]);
    let saved = scratch.path("out.safetensors");
    let run = ["run", path(&module), "--inputs", path(&inputs)];
    expect_status(&helio(&[&run[..], &["--out", path(&saved)]].concat()), 0);
    expect_status(&helio(&[&run[..], &["--expect", path(&saved)]].concat()), 0);

    let near = scratch.arrays("near.npz", &[("out0", floats([2.0, 4.0001, 6.0]))]);
    expect_status(&helio(&[&run[..], &["--expect", path(&near)]].concat()), 0);
    let strict = ["--expect", path(&near), "--rtol", "0", "--atol", "0"];
    let output = helio(&[&run[..], &strict].concat());
    expect_status(&output, 1);
    assert!(stdout(&output).contains("1 of 3 elements differ"), "{}", stdout(&output));

    let longer = scratch
        .arrays("more.npz", &[("out0", floats([2.0, 4.0, 6.0])), ("out1", floats([0.0; 3]))]);
    expect_status(&helio(&[&run[..], &["--expect", path(&longer)]].concat()), 1);
    let lacking = scratch.arrays("less.npz", &[("other", floats([2.0, 4.0, 6.0]))]);
    expect_status(&helio(&[&run[..], &["--expect", path(&lacking)]].concat()), 2);
}

#[test]
fn bound_arguments_are_constants() {
    let scratch = Scratch::new("bind");
    let difference = "HloModule d
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT z = f32[3] subtract(x, y)
}
";
    let module = scratch.text("difference.hlo", difference);
    let given = [("in0", floats([1.0, 2.0, 3.0])), ("in1", floats([0.5, 4.0, 3.0]))];
    let inputs = scratch.arrays("in.npz", &given);
    let expected = scratch.arrays("out.npz", &[("out0", floats([0.5, -2.0, 0.0]))]);
    for bound in ["0", "1", "0-1"] {
        let files = ["--inputs", path(&inputs), "--expect", path(&expected)];
        let run = [&["run", path(&module), "--bind", bound][..], &files].concat();
        expect_status(&helio(&run), 0);
    }
    for wrong in ["2", "1-2", "1-0", "x"] {
        let output = helio(&["run", path(&module), "--inputs", path(&inputs), "--bind", wrong]);
        expect_status(&output, 2);
        assert!(!stderr(&output).is_empty());
    }
}

#[test]
fn nan_and_infinity_compare_as_themselves() {
    let scratch = Scratch::new("nan");
    let module = scratch.text("double.hlo", DOUBLE);
    let special = floats([f32::NAN, f32::INFINITY, -0.0]);
    let inputs = scratch.arrays("in.npz", &[("in0", special.clone()), ("out0", special)]);
    let run = ["run", path(&module), "--inputs", path(&inputs), "--expect", path(&inputs)];
    expect_status(&helio(&run), 0);
    let wrong = scratch.arrays("wrong.npz", &[("out0", floats([0.0, f32::NEG_INFINITY, 0.0]))]);
    let run = ["run", path(&module), "--inputs", path(&inputs), "--expect", path(&wrong)];
    let output = helio(&run);
    expect_status(&output, 1);
    assert!(stdout(&output).contains("2 of 3 elements differ"), "{}", stdout(&output));
}

#[test]
fn json_is_one_object() {
    let scratch = Scratch::new("json");
    let module = scratch.text("double.hlo", DOUBLE);
    let output = helio(&["run", path(&module), "--random", "3", "--json"]);
    expect_status(&output, 0);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["outputs"][0]["shape"], "f32[3]");
    assert!(value["run_ms"].as_f64().unwrap() >= 0.0);
}

#[test]
fn types_that_numpy_lacks_travel_as_bits() {
    let scratch = Scratch::new("bf16");
    let module = scratch.text(
        "double.hlo",
        "HloModule m\nENTRY e {\n  x = bf16[2] parameter(0)\n  ROOT y = bf16[2] add(x, x)\n}\n",
    );
    let value =
        |x: f32, y: f32| Array::new([2], vec![BF16::from_f32(x), BF16::from_f32(y)]).unwrap();
    let inputs = scratch.arrays("in.npz", &[("in0", value(1.5, -2.0)), ("out0", value(3.0, -4.0))]);
    // As numpy.savez writes it through a view: an unsigned type of the same width.
    let bits: Vec<u16> = [1.5, -2.0].map(|x| BF16::from_f32(x).to_bits()).to_vec();
    let unsigned = scratch.arrays("bits.npz", &[("in0", Array::new([2], bits).unwrap())]);
    for file in [&inputs, &unsigned] {
        let run = ["run", path(&module), "--inputs", path(file), "--expect", path(&inputs)];
        expect_status(&helio(&run), 0);
    }
}

#[test]
fn bad_input_is_status_2_with_a_reason() {
    let scratch = Scratch::new("bad");
    let module = scratch.text("double.hlo", DOUBLE);
    let inputs = scratch.arrays("in.npz", &[("in0", floats([1.0, 2.0, 3.0]))]);
    let whole = fs::read(&inputs).unwrap();
    for cut in [0, 1, 10, 30, whole.len() / 2, whole.len() - 1] {
        fs::write(scratch.path("cut.npz"), &whole[..cut]).unwrap();
        let cut = scratch.path("cut.npz");
        let output = helio(&["run", path(&module), "--inputs", path(&cut)]);
        expect_status(&output, 2);
        assert!(stderr(&output).contains("cut.npz"), "{}", stderr(&output));
    }
    let wrong_shape = scratch.arrays("wrong.npz", &[("in0", Array::scalar(1f32))]);
    let wrong_type =
        scratch.arrays("type.npz", &[("in0", Array::new([3], vec![1i32; 3]).unwrap())]);
    let too_many =
        scratch.arrays("many.npz", &[("in0", floats([0.0; 3])), ("in7", floats([0.0; 3]))]);
    let other_names = scratch.arrays("names.npz", &[("z", floats([0.0; 3]))]);
    for (arguments, words) in [
        (vec!["run", path(&module)], "--inputs FILE or --random SEED"),
        (vec!["run", "nowhere.hlo"], "nowhere.hlo"),
        (vec!["run", path(&module), "--inputs", "nowhere.npz"], "nowhere.npz"),
        (vec!["run", path(&module), "--inputs", path(&module)], ".npz"),
        (vec!["run", path(&module), "--inputs", path(&wrong_shape)], "expected f32[3]"),
        (vec!["run", path(&module), "--inputs", path(&wrong_type)], "found s32[3]"),
        (vec!["run", path(&module), "--inputs", path(&too_many)], "in7 is one array too many"),
        (
            vec!["run", path(&module), "--inputs", path(&other_names)],
            "no array in0, arr_0 or x (f32[3]); the file has z",
        ),
        (vec!["run", path(&module), "--random", "1", "--rtol", "0"], "--expect"),
        (vec!["run", path(&module), "--random", "x"], "--random"),
        (vec!["run", path(&module), "--random", "1", "--rtol", "-1"], "not negative"),
        (vec!["run", path(&module), "--backend", "magic"], "interpreter"),
        (vec!["run", path(&inputs)], "not text"),
        (vec!["dance"], "dance"),
    ] {
        let output = helio(&arguments);
        expect_status(&output, 2);
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn check_reports_every_error_where_it_stands() {
    let scratch = Scratch::new("check");
    let good = scratch.text("good.hlo", DOUBLE);
    let bad = scratch.text(
        "bad.hlo",
        "HloModule bad\nENTRY main {\n  x = f32[3] parameter(0)\n  y = f32[4] add(x, x)\n  \
         ROOT z = f32[3] transpose(x), dimensions={1}\n}\n",
    );
    let output = helio(&["check", path(&good), path(&bad)]);
    expect_status(&output, 2);
    assert_eq!(stdout(&output), format!("{}: ok\n", path(&good)));
    let text = stderr(&output);
    for words in ["bad.hlo:4:", "bad.hlo:5:", "y = f32[4] add(x, x)", "transpose.C", "2 errors"] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
}

/// The column counts in the file, not in the part of the line that is shown; what is shown has the
/// place in it, and a mark where it leaves something out.
#[test]
fn a_place_in_a_long_line_is_named_and_shown() {
    let scratch = Scratch::new("long");
    for (spaces, start) in [(60, "2 |   "), (500, "2 | … ")] {
        let padding = " ".repeat(spaces);
        let line = format!("  ROOT y = f32[3] {padding}nagate(x) {padding}");
        let text = format!("ENTRY main {{ x = f32[3] parameter(0)\n{line}\n}}\n");
        let output = helio(&["check", path(&scratch.text("long.hlo", &text))]);
        expect_status(&output, 2);
        let text = stderr(&output);
        let place = format!("long.hlo:2:{}\n", 19 + spaces);
        for words in ["unknown operation `nagate`", &place, start, "nagate(x)", "^^^^^^\n"] {
            assert!(text.contains(words), "{words:?} is not in:\n{text}");
        }
    }
    // A message that quotes something long is cut, too.
    let name = "x".repeat(100_000);
    let text = format!("ENTRY main {{ ROOT {name} = f32[] constant(y) }}");
    let output = helio(&["check", path(&scratch.text("name.hlo", &text))]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("expected a number, found `y`"));
    assert!(stderr(&output).len() < 5000);
}

#[test]
fn a_byte_order_mark_and_other_ends_of_lines_do_not_matter() {
    let scratch = Scratch::new("mark");
    let text = format!("\u{feff}{}", DOUBLE.replace('\n', "\r\n"));
    let module = scratch.text("mark.hlo", &text);
    expect_status(&helio(&["check", path(&module)]), 0);
}

/// What a run would be in vain for is refused before it: this one has no end.
#[test]
fn files_of_results_are_checked_before_the_run() {
    let scratch = Scratch::new("early");
    let module = scratch.text("endless.hlo", ENDLESS);
    for option in [["--out", "results.docx"], ["--expect", "nowhere.npz"]] {
        let output = helio(&[&["run", path(&module)], &option[..]].concat());
        expect_status(&output, 2);
        assert!(stderr(&output).contains(option[1]), "{}", stderr(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_no_trap() {
    let scratch = Scratch::new("device");
    let module = scratch.text("double.hlo", DOUBLE);
    for extension in ["npz", "npy", "safetensors"] {
        let device = scratch.path(&format!("zero.{extension}"));
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        expect_status(&helio(&["run", path(&module), "--inputs", path(&device)]), 2);
    }
    // A disk that is full loses results: not to be passed over in silence.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let run = [env!("CARGO_BIN_EXE_helio"), "run", path(&module), "--random", "1"];
    let output = Command::new(run[0]).args(&run[1..]).stdout(full).output().unwrap();
    expect_status(&output, 2);
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
}

#[test]
fn convert_rewrites_programs_and_arrays() {
    let scratch = Scratch::new("convert");
    let module = scratch.text("double.hlo", DOUBLE);
    let (once, twice) = (scratch.path("once.hlo"), scratch.path("twice.txt"));
    expect_status(&helio(&["convert", path(&module), path(&once)]), 0);
    expect_status(&helio(&["convert", path(&once), path(&twice)]), 0);
    assert_eq!(fs::read(&once).unwrap(), fs::read(&twice).unwrap());

    let array = Array::new([2, 2], vec![1i16, -2, 3, -4]).unwrap();
    let npz = scratch.arrays("a.npz", &[("a", array.clone())]);
    let safetensors = scratch.path("a.safetensors");
    let npy = scratch.path("a.npy");
    expect_status(&helio(&["convert", path(&npz), path(&safetensors)]), 0);
    expect_status(&helio(&["convert", path(&safetensors), path(&npy)]), 0);
    let tensors = data::read(&npy).unwrap();
    let back = tensors["in0"].to_array(array.shape()).unwrap();
    assert!(Literal::Array(back).same_bits(&Literal::Array(array)));

    expect_status(&helio(&["convert", path(&npz), path(&once)]), 2);
    expect_status(&helio(&["convert", path(&module), "out.docx"]), 2);
}

#[test]
fn an_endless_program_stops_at_its_step_limit() {
    let scratch = Scratch::new("endless");
    let module = scratch.text("endless.hlo", ENDLESS);
    let output = helio(&["run", path(&module), "--max-steps", "1000"]);
    expect_status(&output, 4);
    assert!(stderr(&output).contains("1000 steps"), "{}", stderr(&output));
}

#[test]
fn infeed_reads_a_file_and_outfeed_is_printed() {
    let scratch = Scratch::new("feed");
    let module = scratch.text(
        "feed.hlo",
        "HloModule feed
         ENTRY e {
           t = token[] after-all()
           fed = (f32[3], token[]) infeed(t)
           x = f32[3] get-tuple-element(fed), index=0
           t2 = token[] get-tuple-element(fed), index=1
           out = token[] outfeed(x, t2), outfeed_shape=f32[3]
           ROOT y = f32[3] negate(x)
         }",
    );
    let file = scratch.arrays("feed.npz", &[("feed0", floats([1.0, 2.0, 3.0]))]);
    let output = helio(&["run", path(&module), "--infeed", path(&file)]);
    expect_status(&output, 0);
    assert_eq!(stdout(&output), "outfeed: f32[3]\n[1. 2. 3.]\nout0: f32[3]\n[-1. -2. -3.]\n");
    let output = helio(&["run", path(&module)]);
    expect_status(&output, 2);
    assert!(stderr(&output).contains("infeed"), "{}", stderr(&output));
}

#[test]
fn bench_prints_one_object_of_times() {
    let scratch = Scratch::new("bench");
    let text = "HloModule m\nENTRY e { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }";
    let module = scratch.text("m.hlo", text);
    let inputs = scratch.arrays("in.npz", &[("in0", floats([1.0, 2.0, 3.0]))]);
    let bench = ["bench", path(&module), "--inputs", path(&inputs), "--threads", "1"];
    let output = helio(&[&bench[..], &["--runs", "3", "--json"]].concat());
    expect_status(&output, 0);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    for key in ["compile_ms", "run_ms", "run_ms_min"] {
        assert!(report[key].as_f64().is_some_and(|ms| ms > 0.0), "{report}");
    }
    assert!(report["peak_bytes"].as_u64().is_some_and(|bytes| bytes >= 24), "{report}");
    expect_status(&helio(&[&bench[..], &["--runs", "0"]].concat()), 2);
    expect_status(&helio(&[&bench[..], &["--memory-limit", "12"]].concat()), 4);
}

#[test]
fn memory_is_known_before_the_run() {
    let scratch = Scratch::new("memory");
    let text = "ENTRY e { x = f32[256] parameter(0) c = f32[256] parameter(1)
                s = f32[256] sort(x), dimensions={0}, to_apply={ a = f32[] parameter(0)
                b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
                ROOT y = f32[256] add(s, c) }";
    let module = scratch.text("m.hlo", text);
    let output = helio(&["run", path(&module), "--memory"]);
    expect_status(&output, 0);
    assert!(stdout(&output).starts_with("peak "), "{}", stdout(&output));
    assert!(stdout(&output).contains("arguments          2048 bytes in 2"), "{}", stdout(&output));
    let output = helio(&["run", path(&module), "--memory", "--backend", "interpreter"]);
    assert!(stdout(&output).contains("interpreted"), "{}", stdout(&output));
}

const CALLS: &str = "HloModule calls
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] custom-call(x), custom_call_target=\"not_ours\"
  z = f32[3] custom-call(y), custom_call_target=\"not_ours\"
  w = f32[3] custom-call(z), custom_call_target=\"lapack_spotrf_ffi\"
  ROOT s = f32[3] custom-call(w), custom_call_target=\"Sharding\"
}
";

#[test]
fn check_warns_of_custom_calls_that_nobody_defines() {
    let scratch = Scratch::new("custom-calls");
    let module = scratch.text("calls.hlo", CALLS);
    let output = helio(&["check", path(&module)]);
    expect_status(&output, 0);
    assert!(stdout(&output).ends_with("calls.hlo: ok, with a warning\n"), "{}", stdout(&output));
    let text = stderr(&output);
    assert!(text.starts_with("warning: "), "{text}");
    assert!(text.contains("no custom call is registered as `not_ours`"), "{text}");
    assert!(text.contains("calls.hlo:4:"), "{text}");
    assert!(!text.contains("Sharding`"), "{text}");
}

#[test]
fn what_is_interpreted_is_said() {
    let scratch = Scratch::new("interpreted");
    let drawn = scratch.text(
        "drawn.hlo",
        "HloModule drawn
ENTRY main {
  a = f32[] constant(0)
  b = f32[] constant(1)
  r = f32[4] rng(a, b), distribution=rng_uniform
  ROOT y = f32[4] add(r, r)
}
",
    );
    let said = "note: one instruction has no native code: r (rng)";
    for way in [&["run"][..], &["bench", "--runs", "1"], &["opt"]] {
        let output = helio(&[way, &[path(&drawn)]].concat());
        expect_status(&output, 0);
        assert!(stderr(&output).starts_with(said), "{}", stderr(&output));
        let output = helio(&[way, &[path(&drawn), "--json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        let object = &report["interpreted"][0];
        assert_eq!(object["instruction"], "r");
        assert_eq!(object["operation"], "rng");
        assert_eq!(object["reason"], "rng");
        assert_eq!(object["whole"], false);
    }
    // Whoever asks for the interpreter needs not be told.
    let output = helio(&["run", path(&drawn), "--backend", "interpreter"]);
    assert_eq!(stderr(&output), "");

    let sized = scratch.text(
        "sized.hlo",
        "HloModule sized
ENTRY main {
  x = f32[4] constant({1, 2, 3, 4})
  c = c64[4] convert(x)
  n = s32[] constant(2)
  y = c64[<=4] set-dimension-size(c, n), dimensions={0}
  ROOT z = c64[<=4] fft(y), fft_type=FFT, fft_length={4}
}
",
    );
    let output = helio(&["run", path(&sized)]);
    let said = "note: the whole program is interpreted because of y (set-dimension-size)";
    assert!(stderr(&output).starts_with(said), "{}", stderr(&output));
}

/// A device that is always full stands for a disk that is.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_write_is_one_error() {
    let scratch = Scratch::new("full");
    let module = scratch.text(
        "large.hlo",
        "HloModule large
ENTRY main { ROOT i = f32[100000] iota(), iota_dimension=0 }
",
    );
    for extension in ["npz", "npy", "safetensors"] {
        let out = scratch.path(&format!("out.{extension}"));
        std::os::unix::fs::symlink("/dev/full", &out).unwrap();
        let output = helio(&["run", path(&module), "--out", path(&out)]);
        expect_status(&output, 2);
        let text = stderr(&output);
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
        assert!(text.contains("No space left"), "{text}");
    }
}

/// What was saved is what is compared and read again.
#[test]
fn saved_arrays_are_as_long_as_they_are() {
    let scratch = Scratch::new("sizes");
    let module = scratch.text(
        "sized.hlo",
        "HloModule sized
ENTRY main {
  x = f32[4] constant({1, 2, 3, 4})
  n = s32[] parameter(0)
  ROOT y = f32[<=4] set-dimension-size(x, n), dimensions={0}
}
",
    );
    let size = |n: i32| {
        let array = Array::new([], vec![n]).unwrap();
        scratch.arrays(&format!("{n}.npz"), &[("in0", array)])
    };
    let (three, two) = (size(3), size(2));
    let saved = scratch.path("out.npz");
    let run = |inputs: &Path, more: &[&str]| {
        helio(&[&["run", path(&module), "--inputs", path(inputs)], more].concat())
    };
    expect_status(&run(&three, &["--out", path(&saved)]), 0);
    assert_eq!(data::read(&saved).unwrap()["out0"].dims, [3]);
    expect_status(&run(&three, &["--expect", path(&saved)]), 0);
    expect_status(&run(&two, &["--expect", path(&saved)]), 1);
}
