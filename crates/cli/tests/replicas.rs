//! The program `helio` with several replicas and partitions: arguments, results, feeds and errors.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use helio::Array;
use helio::data::{self, Tensor};

/// A directory of its own for each test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("helio-replicas-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn arrays(&self, name: &str, arrays: &[(&str, Array)]) -> String {
        let tensors = arrays.iter().map(|(name, a)| ((*name).to_owned(), Tensor::from_array(a)));
        data::write(self.path(name), &tensors.collect()).unwrap();
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn helio(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_helio")).args(args).output().unwrap()
}

/// What a run that ends with this status prints.
#[track_caller]
fn run(args: &[&str], status: i32) -> (String, String) {
    let output = helio(args);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(status), "stdout:\n{out}\nstderr:\n{err}");
    (out, err)
}

fn floats(dims: &[usize], values: &[f32]) -> Array {
    Array::new(dims.to_vec(), values.to_vec()).unwrap()
}

fn read(path: &str, name: &str) -> (Vec<usize>, Vec<u8>) {
    let tensor = data::read(path).unwrap().remove(name).expect("an array");
    (tensor.dims, tensor.bytes)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

const SUM: &str = "HloModule sum
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  s = f32[2] all-reduce(x), to_apply=add
  d = f32[2] subtract(x, y)
  ROOT t = (f32[2], f32[2]) tuple(s, d)
}
";

#[test]
fn each_replica_has_its_part_of_arguments_and_results() {
    let scratch = Scratch::new("parts");
    let module = scratch.text("sum.hlo", SUM);
    // in0 has a part for each replica, in1 is the same for all.
    let inputs = scratch.arrays(
        "in.npz",
        &[("in0", floats(&[2, 2], &[1.0, 2.0, 10.0, 20.0])), ("in1", floats(&[2], &[1.0, 1.0]))],
    );
    let saved = scratch.path("out.npz");
    let base = ["run", &module, "--replicas", "2", "--inputs", &inputs];
    run(&[&base[..], &["--out", &saved]].concat(), 0);
    assert_eq!(read(&saved, "out0"), (vec![2, 2], bytes(&[11.0, 22.0, 11.0, 22.0])));
    assert_eq!(read(&saved, "out1"), (vec![2, 2], bytes(&[0.0, 1.0, 9.0, 19.0])));

    let (out, _) = run(&base, 0);
    for line in ["replica 0 out0: f32[2]\n[11. 22.]", "replica 1 out1: f32[2]\n[ 9. 19.]"] {
        assert!(out.contains(line), "{out}");
    }
    // What is expected may be the same for all, too.
    run(&[&base[..], &["--expect", &saved]].concat(), 0);
    let wrong = scratch.arrays(
        "wrong.npz",
        &[("out0", floats(&[2], &[11.0, 22.0])), ("out1", floats(&[2], &[0.0, 1.0]))],
    );
    let (out, err) = run(&[&base[..], &["--expect", &wrong]].concat(), 1);
    assert!(out.contains("replica 1 out1: f32[2] 2 of 2 elements differ"), "{out}");
    assert!(err.contains("1 of 4 results differ"), "{err}");
    let (out, _) = run(&[&base[..], &["--expect", &wrong, "--json"]].concat(), 1);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["replicas"], &report["partitions"]), (&2.into(), &1.into()));
    assert_eq!(report["compared"][3]["participant"], "replica 1");
    assert_eq!(report["ok"], false);
}

#[test]
fn a_module_may_say_how_many_replicas_and_partitions_it_has() {
    let scratch = Scratch::new("counts");
    let ids = "ENTRY e { r = u32[] replica-id() p = u32[] partition-id()
        ROOT t = (u32[], u32[]) tuple(r, p) }";
    let module = scratch.text("ids.hlo", &format!("HloModule m, replica_count=2\n{ids}"));
    let (out, _) = run(&["run", &module, "--partitions", "2"], 0);
    assert!(
        out.ends_with(
            "replica 1, partition 1 out0: u32[]\n1\nreplica 1, partition 1 out1: u32[]\n1\n"
        ),
        "{out}"
    );
    let (_, err) = run(&["run", &module, "--replicas", "3"], 2);
    assert!(err.contains("devices are assigned to 3 replicas"), "{err}");
    run(&["run", &module, "--replicas", "0"], 2);
    run(&["run", &module, "--replicas", "2", "--partitions", "40000"], 2);
}

#[test]
fn made_up_arguments_differ_and_wrong_ones_are_refused() {
    let scratch = Scratch::new("arguments");
    let module = scratch.text("sum.hlo", SUM);
    let saved = scratch.path("out.npz");
    let base = ["run", &module, "--replicas", "2"];
    run(&[&base[..], &["--random", "1", "--out", &saved]].concat(), 0);
    let (_, differences) = read(&saved, "out1");
    assert_ne!(differences[..8], differences[8..]);
    let one = floats(&[2], &[1.0, 1.0]);
    let three = scratch.arrays("three.npz", &[("in0", floats(&[3, 2], &[0.0; 6])), ("in1", one)]);
    let (_, err) = run(&[&base[..], &["--inputs", &three]].concat(), 2);
    assert!(err.contains("expected f32[2], found f32[3, 2], or the same with 2 parts"), "{err}");
}

#[test]
fn check_and_bench_know_replicas() {
    let scratch = Scratch::new("check");
    let text = SUM.replace("to_apply=add", "replica_groups={{0,1},{2,3}}, to_apply=add");
    let module = scratch.text("groups.hlo", &text);
    run(&["check", &module, "--replicas", "4"], 0);
    let (_, err) = run(&["check", &module, "--replicas", "2"], 2);
    assert!(err.contains("groups.C3"), "{err}");
    let bench = ["bench", &module, "--replicas", "4", "--random", "1", "--runs", "2", "--json"];
    let (out, _) = run(&bench, 0);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["replicas"], 4);
}

/// The document's example: replicas sum as long as what they are fed says so.
const FED: &str = "HloModule fed
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
more { s = (pred[], f32[], token[]) parameter(0) ROOT p = pred[] get-tuple-element(s), index=0 }
step {
  s = (pred[], f32[], token[]) parameter(0)
  x = f32[] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  sum = f32[] all-reduce(x), to_apply=add
  fed = (pred[], token[]) infeed(t)
  go = pred[] get-tuple-element(fed), index=0
  after = token[] get-tuple-element(fed), index=1
  told = token[] outfeed(sum, after), outfeed_shape=f32[]
  ROOT next = (pred[], f32[], token[]) tuple(go, sum, told)
}
ENTRY e {
  one = f32[] constant(1)
  yes = pred[] constant(true)
  t = token[] after-all()
  s = (pred[], f32[], token[]) tuple(yes, one, t)
  w = (pred[], f32[], token[]) while(s), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=1
}
";

fn fed(scratch: &Scratch, name: &str, values: &[bool]) -> String {
    let named = values.iter().enumerate().map(|(i, &go)| {
        let array = Array::new([], vec![go]).unwrap();
        (format!("feed{i}"), Tensor::from_array(&array))
    });
    data::write(scratch.path(name), &named.collect()).unwrap();
    scratch.path(name)
}

#[test]
fn infeed_and_outfeed_are_files_of_each_replica() {
    let scratch = Scratch::new("feeds");
    let module = scratch.text("fed.hlo", FED);
    let [a, b] = ["a.npz", "b.npz"].map(|name| fed(&scratch, name, &[true, true, false]));
    let [to, also] = ["to.npz", "also.npz"].map(|name| scratch.path(name));
    for backend in ["cpu", "interpreter"] {
        let base = ["run", &module, "--replicas", "2", "--backend", backend];
        let feeds = ["--infeed", &a, "--infeed", &b, "--outfeed", &to, "--outfeed", &also];
        let (out, _) = run(&[&base[..], &feeds].concat(), 0);
        assert_eq!(out, "replica 0 out0: f32[]\n8.0\nreplica 1 out0: f32[]\n8.0\n");
        for path in [&to, &also] {
            let told = ["feed0", "feed1", "feed2"].map(|name| read(path, name).1);
            assert_eq!(told, [2.0, 4.0, 8.0].map(|sum| bytes(&[sum])));
        }
        // One file for both; without one for the outfeed, it is printed.
        let (out, _) = run(&[&base[..], &["--infeed", &a]].concat(), 0);
        assert!(out.starts_with("replica 0 outfeed: f32[]\n2.0\n"), "{out}");
        let (_, err) = run(&[&base[..], &["--infeed", &a, "--outfeed", &to]].concat(), 2);
        assert!(err.contains("1 file for 2 participants"), "{err}");
    }
}

/// "If one replica executes an AllReduce node more times than another, then the former replica will
/// wait forever": here it is told.
#[test]
fn a_replica_that_sums_more_often_is_told_for_whom_it_waits() {
    let scratch = Scratch::new("vain");
    let module = scratch.text("fed.hlo", FED);
    let a = fed(&scratch, "a.npz", &[true, false]);
    let b = fed(&scratch, "b.npz", &[true, true, true, false]);
    for backend in ["cpu", "interpreter"] {
        let base = ["run", &module, "--replicas", "2", "--backend", backend];
        let (_, err) = run(&[&base[..], &["--infeed", &a, "--infeed", &b]].concat(), 2);
        let wanted = "replica 1 waits in sum for replica 0, whose run has ended without it";
        assert!(err.contains(wanted) && err.contains("fed.hlo:8:"), "{err}");
        // A feed that is too short.
        let (_, err) =
            run(&[&base[..], &["--infeed", &a, "--infeed", &a, "--max-wait", "9"]].concat(), 0);
        assert!(!err.contains("error"), "{err}");
        let short = fed(&scratch, "short.npz", &[true]);
        let (_, err) = run(&[&base[..], &["--infeed", &short, "--infeed", &b]].concat(), 2);
        assert!(err.contains("replica 0: ") && err.contains("nothing will come"), "{err}");
    }
}

#[test]
fn a_partner_that_computes_for_ever_is_not_waited_for() {
    let scratch = Scratch::new("patience");
    let module = scratch.text(
        "late.hlo",
        "HloModule late
        add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
        yes { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
        same { s = s32[] parameter(0) o = s32[] constant(1) ROOT a = s32[] add(s, o) }
        for-ever { z = s32[] parameter(0) ROOT w = s32[] while(z), condition=yes, body=same }
        go { ROOT x = s32[] parameter(0) }
        ENTRY e { z = s32[] constant(0) r = u32[] replica-id() o = u32[] constant(1)
          p = pred[] compare(r, o), direction=EQ
          y = s32[] conditional(p, z, z), true_computation=for-ever, false_computation=go
          ROOT s = s32[] all-reduce(y), to_apply=add }",
    );
    for backend in ["cpu", "interpreter"] {
        let base = ["run", &module, "--replicas", "2", "--backend", backend];
        let (_, err) = run(&[&base[..], &["--max-wait", "0.2"]].concat(), 4);
        let wanted = "replica 0 waits in s for replica 1; replica 1 waits for no other, and \
                      nobody has moved for 200ms";
        assert!(err.contains(wanted) && err.contains("late.hlo:10:"), "{err}");
    }
}
