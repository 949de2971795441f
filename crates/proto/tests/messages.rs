//! Messages that XLA wrote, all case files as messages and back, and messages changed at random.
//!
//! `HELIO_PROTOS=DIR` also reads every `NAME.pb` of a directory, compares it with `NAME.hlo`, and
//! writes it again as `NAME.back`, for XLA to read; `HELIO_MUTANTS=100000` changes that many messages.

use std::path::{Path, PathBuf};

use helio_ir::text::{parse, print};
use helio_ir::{Code, Module, Op, verify};
use helio_proto::messages::DeviceAssignmentProto;
use helio_proto::{read, write};
use oorandom::Rand64;
use prost::Message as _;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The module's text without layouts, which messages always state and texts need not, and with numbers
/// for the names of instructions, of which no two in a message are alike.
fn plain(mut module: Module) -> String {
    module.config = Default::default();
    let ids: Vec<_> = module.ids().collect();
    let mut number = 0;
    for id in ids {
        let computation = module.computation_mut(id);
        for id in computation.ids().collect::<Vec<_>>() {
            let instr = computation.instr_mut(id);
            instr.name = format!("i{number}").into();
            number += 1;
            instr.shape = instr.shape.without_layout();
            if let Op::Outfeed(op) = &mut instr.op {
                op.shape = op.shape.without_layout();
            }
        }
    }
    print(&module)
}

#[test]
fn what_xla_wrote_is_what_its_text_says() {
    let text = String::from_utf8(bytes(&data().join("mixed.hlo"))).expect("text");
    let wanted = parse(&text).expect("a module");
    for name in ["mixed.pb", "mixed.hlo_proto.pb"] {
        let module = read(&bytes(&data().join(name))).unwrap_or_else(|e| panic!("{name}: {e}"));
        // XLA puts instructions in another order.
        same(name, &sorted(&print(&module)), &sorted(&print(&wanted)));
        verify(module).expect("a program");
    }
}

#[test]
fn written_messages_are_read_back() {
    let module = read(&bytes(&data().join("mixed.pb"))).expect("a module");
    let again = read(&write(&module).expect("a message")).expect("a module");
    assert_eq!(print(&again), print(&module));
}

#[test]
fn how_many_run_is_read_back() {
    for (replicas, partitions) in
        [(None, None), (Some(4), None), (None, Some(2)), (Some(3), Some(2))]
    {
        let mut module = parse("ENTRY e { ROOT x = f32[] parameter(0) }").expect("a module");
        module.config.replica_count = replicas;
        module.config.num_partitions = partitions;
        let again = read(&write(&module).expect("a message")).expect("a module");
        let config = &again.config;
        assert_eq!((config.replica_count, config.num_partitions), (replicas, partitions));
    }
    let mut module = parse("ENTRY e { ROOT x = f32[] parameter(0) }").expect("a module");
    module.config.replica_count = Some(usize::MAX);
    assert_eq!(write(&module).expect_err("too many").code(), Code::Unimplemented);
    let message = helio_proto::write_message(
        &parse("ENTRY e { ROOT x = f32[] parameter(0) }").expect("a module"),
    );
    let mut message = message.expect("a message");
    message.device_assignment =
        Some(DeviceAssignmentProto { replica_count: -1, ..Default::default() });
    assert_eq!(read(&message.encode_to_vec()).expect_err("negative").code(), Code::InvalidArgument);
}

#[test]
fn schedules_shardings_and_layouts_are_read_back() {
    // Instructions in another order than that of their use, a group of shardings with where it comes from,
    // replication; a window without dimensions, and a constant whose elements lie in their own width.
    let text = r#"HloModule m, is_scheduled=true
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}
ENTRY e {
  b = f32[] parameter(1)
  a = f32[] parameter(0), sharding={replicated shard_as 1 metadata={op_name="n" source_line=3}}, parameter_replication={true}
  c = s4[2]{0:E(4)} constant({1, -2})
  w = f32[] reduce-window(a, b), to_apply=add
  ROOT r = (f32[], s4[2]{0:E(4)}) tuple(w, c), sharding={{replicated shard_like 2}, {maximal device=0}}
}
"#;
    let module = parse(text).expect("a module");
    let mut message = helio_proto::write_message(&module).expect("a message");
    let entry = &mut message.computations[1];
    assert!(entry.instructions[3].window.is_some());
    let literal = entry.instructions[2].literal.as_ref().and_then(|literal| literal.shape.as_ref());
    let layout = literal.and_then(|shape| shape.layout.as_ref()).expect("a layout");
    assert_eq!((layout.element_size_in_bits, &layout.minor_to_major[..]), (0, &[0][..]));
    // XLA lists operands before users, in its own order.
    entry.instructions.swap(0, 1);
    let again = read(&message.encode_to_vec()).expect("a module");
    for part in [
        "is_scheduled=true",
        r#"sharding={replicated shard_as 1 metadata={op_name="n" source_line=3}}"#,
        "parameter_replication={true}",
        "sharding={{replicated shard_like 2}, {maximal device=0}}",
    ] {
        assert!(print(&again).contains(part), "no {part} in\n{}", print(&again));
    }
    let names = |module: &Module| -> Vec<String> {
        module
            .entry()
            .instrs()
            .iter()
            .map(|instr| instr.name.split('.').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(names(&again), names(&module));
    let schedule =
        message.schedule.as_mut().and_then(|s| s.sequences.get_mut(&2)).expect("a schedule");
    schedule.instruction_ids.pop();
    let error = read(&message.encode_to_vec()).expect_err("an instruction is missing");
    assert!(error.detail().contains("a schedule of 4 that are not its 5 instructions"), "{error}");
}

#[test]
fn no_two_instructions_have_one_name() {
    let text = "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y)\n}\n\
                most {\n  x = f32[] parameter(0)\n  x.1 = f32[] parameter(1)\n  ROOT r = f32[] maximum(x, x.1)\n}\n\
                ENTRY main {\n  x = f32[4] parameter(0)\n  y = f32[] constant(0)\n  \
                s = f32[] reduce(x, y), dimensions={0}, to_apply=sum\n  \
                ROOT r = f32[] reduce(x, s), dimensions={0}, to_apply=most\n}\n";
    let module = parse(text).expect("a module");
    let again = read(&write(&module).expect("a message")).expect("a module");
    let instrs = again.computations().iter().flat_map(|computation| computation.instrs());
    let names: Vec<&str> = instrs.map(|instr| instr.name.as_str()).collect();
    assert_eq!(names, ["x", "y", "r", "x.1", "x.1.1", "r.1", "x.2", "y.1", "s", "r.2"]);
    verify(again).expect("a program");
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Errors with the first line that differs.
fn same(name: &str, found: &str, wanted: &str) {
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        assert_eq!(found, wanted, "{name}");
    }
    assert_eq!(found.lines().count(), wanted.lines().count(), "{name}");
}

/// All `.hlo` files below a directory.
fn cases(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            cases(&path, found);
        } else if path.extension().is_some_and(|e| e == "hlo") {
            found.push(path);
        }
    }
}

#[test]
fn programs_of_case_files_survive_the_way_through_messages() {
    let mut paths = Vec::new();
    cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases"), &mut paths);
    let (mut compared, mut refused) = (0, Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for program in text.split("// -----") {
            let Ok(module) = parse(program) else { continue };
            // What is no program need not survive.
            if verify(module.clone()).is_err() {
                continue;
            }
            let name = path.display();
            let message = match write(&module) {
                Ok(message) => message,
                Err(e) => {
                    assert_eq!(e.code(), Code::Unimplemented, "{name}: {e}");
                    refused.push(format!("{name}: {e}"));
                    continue;
                }
            };
            let again = read(&message).unwrap_or_else(|e| panic!("{name}: {e}\n{program}"));
            same(&name.to_string(), &plain(again), &plain(module));
            compared += 1;
        }
    }
    println!("{compared} programs compared; not written: {refused:#?}");
    assert!(compared > 500 && refused.len() < 40, "{compared} compared, {refused:#?}");
}

#[test]
fn given_messages_are_what_their_texts_say() {
    let Ok(dir) = std::env::var("HELIO_PROTOS") else { return };
    let (mut same, mut different) = (0, Vec::new());
    for entry in std::fs::read_dir(&dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "pb") {
            continue;
        }
        let text = std::fs::read_to_string(path.with_extension("hlo")).expect("text");
        let result = read(&bytes(&path)).and_then(|module| {
            std::fs::write(path.with_extension("back"), write(&module)?).expect("a file");
            let wanted = parse(&text)?;
            Ok((plain(module), plain(wanted)))
        });
        match result {
            Ok((found, wanted)) if found == wanted => same += 1,
            Ok((found, wanted)) => {
                let lines = found.lines().zip(wanted.lines());
                let line = lines.clone().find(|(a, b)| a != b);
                different.push(format!("{}: {line:?}", path.display()));
            }
            Err(e) => different.push(format!("{}: {e}", path.display())),
        }
    }
    println!("{same} messages are what their texts say; not so: {different:#?}");
    assert!(different.is_empty());
}

#[test]
fn mutants_are_errors() {
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(500);
    let file = bytes(&data().join("mixed.pb"));
    let mut random = Rand64::new(1);
    let mut below = |bound: usize| random.rand_range(0..bound.max(1) as u64) as usize;
    let mut still = 0;
    for _ in 0..count {
        let mut mutant = file.clone();
        if below(4) == 0 {
            mutant.truncate(below(file.len()));
        }
        for _ in 0..1 + below(3) {
            let at = below(mutant.len());
            if let Some(byte) = mutant.get_mut(at) {
                *byte = match below(3) {
                    0 => below(256) as u8,
                    1 => *byte ^ (1 << below(8)),
                    _ => byte.wrapping_add(1),
                };
            }
        }
        match read(&mutant) {
            Ok(module) => {
                still += 1;
                // What can be read can be verified, one way or the other.
                let _ = verify(module);
            }
            Err(e) => assert_ne!(e.code(), Code::Internal, "{e}"),
        }
    }
    println!("{count} mutants, of which {still} are still modules");
}
