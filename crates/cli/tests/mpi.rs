//! `helio run --mpi` in processes that `mpirun` starts: what it writes is what threads write.
//!
//! They need MPI, and the features that say so: `cargo xtask mpi` runs them.
#![cfg(feature = "mpi")]

mod support;

use std::fs;
use std::process::{Command, Output};

use helio::Array;
use support::{Scratch, expect_status, helio, path, stderr, stdout};

/// `helio` with these arguments in so many processes.
fn mpirun(processes: usize, args: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", "300", "mpirun", "--allow-run-as-root", "--oversubscribe"]);
    command.args(["-n", &processes.to_string(), env!("CARGO_BIN_EXE_helio")]).args(args);
    command.output().unwrap()
}

fn floats(dims: &[usize], values: impl IntoIterator<Item = f32>) -> Array {
    Array::new(dims.to_vec(), values.into_iter().collect::<Vec<f32>>()).unwrap()
}

const PROGRAM: &str = "HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[70001] parameter(0)
  y = f32[2] parameter(1)
  s = f32[70001] all-reduce(x), to_apply=add
  g = f32[8] all-gather(y), dimensions={0}
  r = u32[] replica-id()
  ROOT t = (f32[70001], f32[8], u32[]) tuple(s, g, r)
}
";

#[test]
fn processes_write_what_threads_write() {
    let scratch = Scratch::new("mpi-same");
    let module = scratch.text("m.hlo", PROGRAM);
    let each = (0..4 * 70001).map(|i| (i % 97) as f32 * 0.1 + 1e3);
    let inputs = scratch.arrays(
        "in.npz",
        &[("in0", floats(&[4, 70001], each)), ("in1", floats(&[4, 2], (0..8).map(|i| i as f32)))],
    );
    let threads = scratch.path("threads.safetensors");
    let base = ["run", path(&module), "--inputs", path(&inputs)];
    let saved = scratch.path("mpi.safetensors");
    let out = |file| [&base[..], &["--replicas", "4", "--out", file]].concat();
    expect_status(&helio(&out(path(&threads))), 0);
    let threads = fs::read(&threads).unwrap();
    for processes in [1, 2, 4] {
        let args = [&out(path(&saved))[..], &["--mpi"]].concat();
        expect_status(&mpirun(processes, &args), 0);
        assert!(fs::read(&saved).unwrap() == threads, "{processes} processes");
    }
    // One replica for each process, unless the program or the user says otherwise; printed once.
    let output = mpirun(4, &[&base[..], &["--mpi", "--json"]].concat());
    expect_status(&output, 0);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!((&report["replicas"], &report["partitions"]), (&4.into(), &1.into()));
}

const FED: &str = "HloModule m
ENTRY e { t = token[] after-all() i = (f32[2], token[]) infeed(t)
  x = f32[2] get-tuple-element(i), index=0 u = token[] get-tuple-element(i), index=1
  o = token[] outfeed(x, u), outfeed_shape=f32[2]
  ROOT y = f32[2] collective-permute(x), source_target_pairs={{0,1},{1,0}} }";

#[test]
fn each_process_feeds_its_own_participants() {
    let scratch = Scratch::new("mpi-feeds");
    let module = scratch.text("m.hlo", FED);
    let feed = scratch.arrays("feed.npz", &[("feed0", floats(&[2, 2], [1.0, 2.0, 3.0, 4.0]))]);
    let [a, b] = ["a.npz", "b.npz"].map(|name| scratch.path(name));
    let args = ["run", path(&module), "--mpi", "--infeed", path(&feed)];
    let output = mpirun(2, &args);
    expect_status(&output, 0);
    for line in ["replica 1 outfeed: f32[2]\n[3. 4.]", "replica 0 out0: f32[2]\n[3. 4.]"] {
        assert!(stdout(&output).contains(line), "{}", stdout(&output));
    }
    let files = ["--outfeed", path(&a), "--outfeed", path(&b)];
    expect_status(&mpirun(2, &[&args[..], &files].concat()), 0);
    for (file, values) in [(a, [1f32, 2.0]), (b, [3.0, 4.0])] {
        let saved = helio::data::read(&file).unwrap().remove("feed0").expect("an array");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(saved.bytes, bytes);
    }
}

#[test]
fn what_goes_wrong_is_said_once() {
    let scratch = Scratch::new("mpi-wrong");
    let module = scratch.text("m.hlo", PROGRAM);
    let output = mpirun(4, &["run", path(&module), "--mpi"]);
    assert!(!output.status.success());
    let text = stderr(&output);
    assert_eq!(text.matches("the program takes arguments").count(), 1, "{text}");
    // A wait in vain: replica 1 comes once less.
    let uneven = PROGRAM.replace(
        "  r = u32[] replica-id()",
        "  r = u32[] replica-id()
  one = u32[] constant(1)
  p = pred[] compare(r, one), direction=NE
  z = f32[2] conditional(p, y, y), true_computation=more, false_computation=less",
    );
    let uneven = uneven.replace(
        "ENTRY",
        "more { v = f32[2] parameter(0) ROOT w = f32[2] all-reduce(v), to_apply=add }
less { v = f32[2] parameter(0) ROOT w = f32[2] copy(v) }
ENTRY",
    );
    let module = scratch.text("uneven.hlo", &uneven);
    let output = mpirun(4, &["run", path(&module), "--mpi", "--random", "1"]);
    assert!(!output.status.success());
    let text = stderr(&output);
    assert!(text.contains("waits in w for replica 1"), "{text}");
    assert!(text.contains("uneven.hlo:"), "{text}");
}
