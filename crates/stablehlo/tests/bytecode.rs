//! Portable artifacts: all versions of one program are read alike, and no file makes the reader
//! panic, hang or take much memory.
//!
//! `HELIO_ARTIFACTS=DIR:DIR` also reads every `.mlirbc` and `.bc` of these directories;
//! `HELIO_MUTANTS=100000` changes that many files at random instead of a few.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helio_stablehlo::export::Exported;
use helio_stablehlo::{Interface, bytecode, lower};
use oorandom::Rand64;
use support::canonical;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/artifacts")
}

/// The artifacts of a directory, by name.
fn artifacts(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "mlirbc" || e == "bc") {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

fn read(name: &str, file: &[u8]) -> String {
    canonical(&bytecode::read(file).unwrap_or_else(|e| panic!("{name}: {e}")))
}

#[test]
fn every_version_of_a_program_is_read_alike() {
    let versions: Vec<_> = artifacts(&fixtures())
        .into_iter()
        .filter(|(name, _)| name.starts_with("mixed."))
        .map(|(name, file)| (read(&name, &file), name))
        .collect();
    assert_eq!(versions.len(), 7);
    let (first, _) = &versions[0];
    for (module, name) in &versions {
        assert_eq!(module, first, "{name}");
    }
}

#[test]
fn operations_and_attributes_have_their_current_names() {
    let file = std::fs::read(fixtures().join("mixed.0.9.0.mlirbc")).expect("a file");
    let text = read("mixed.0.9.0", &file);
    for part in [
        "func.func",
        "func.call [\"%",
        "Symbol([\"helper\"])",
        "stablehlo.dot_general",
        "(\"lhs_contracting_dimensions\", Integers([1]))",
        "(\"slice_sizes\", Integers([1, 3]))",
        "tensor<?xf32, #stablehlo.bounds<3>>",
        "(\"mhlo.sharding\", String(\"{replicated}\"))",
        "(\"use_global_device_ids\", Unit)",
        "(\"window_reversal\", Bools([true, false]))",
        "bytes: [1, 0, 1], is_splat: false",
        "func.return",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    for part in ["vhlo", "precision_config\", Array([])", "unique_indices\", Bool(false)"] {
        assert!(!text.contains(part), "{part} is in\n{text}");
    }
}

#[test]
fn shardings_are_text() {
    let file = std::fs::read(fixtures().join("shard_map.1.13.0.mlirbc")).expect("a file");
    let text = read("shard_map", &file);
    for part in [
        r##"("mesh", Other("#sdy.mesh<[\"x\"=2, \"y\"=2]>"))"##,
        r##"("in_shardings", Other("[<@mesh, [{\"x\"}, {\"y\"}]>]"))"##,
        r##"("manual_axes", Other("{\"x\", \"y\"}"))"##,
        r##"Other("#sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>")"##,
        "sdy.return",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn rules_of_shardings_are_text() {
    let file = std::fs::read(fixtures().join("rule.1.13.0.mlirbc")).expect("a file");
    let text = read("rule", &file);
    let rule = "#sdy.op_sharding_rule<([i, j], [j, kl])->([i, kl]) {i=8, j=4, k=2, l=2} \
                reduction={j} need_replication={l}, custom>";
    assert!(text.contains(&format!("Other({rule:?})")), "{rule} is not in\n{text}");
}

#[test]
fn errors_name_part_byte_and_what_is_wanted() {
    let file = std::fs::read(fixtures().join("newer.1.17.0.mlirbc")).expect("a file");
    let detail = |file: &[u8]| bytecode::read(file).expect_err("an error").to_string();
    let error = detail(&file[..40]);
    let wanted =
        "invalid argument: bytecode, header at byte 25: a section needs 18 bytes, 15 are left";
    assert!(error.starts_with(wanted), "{error}");
    let error = detail(b"HloModule m");
    assert!(error.contains("does not begin with MLIR's mark"), "{error}");
    // An operation that version 1.0 does not have.
    let mut old = file.clone();
    let at = old.windows(6).position(|bytes| bytes == b"1.17.0").expect("the version");
    old[at..at + 6].copy_from_slice(b"1.00.0");
    let error = detail(&old);
    assert!(error.contains("since 1.") && error.contains("the file is of 1.0.0"), "{error}");
    old[at..at + 6].copy_from_slice(b"2.17.0");
    let error = detail(&old);
    assert!(error.starts_with("unimplemented: a portable artifact of StableHLO 2.17.0"), "{error}");
}

#[test]
fn what_is_written_is_read_back_at_every_version() {
    let mut compared = 0;
    for (name, file) in artifacts(&fixtures()) {
        let module = bytecode::read(&file).expect("a module");
        for minor in [0, 4, 5, 9, 10, 12, 13, 17, 20] {
            let version = format!("1.{minor}.0").parse().expect("a version");
            let written = match bytecode::write(&module, version) {
                Ok(written) => written,
                // Operations that this version does not have, or of Shardy.
                Err(e) => {
                    assert_eq!(e.code(), helio_ir::Code::Unimplemented, "{name}: {e}");
                    assert!(!name.starts_with("mixed."), "{name} at {version}: {e}");
                    continue;
                }
            };
            assert_eq!(read(&name, &written), canonical(&module), "{name} at {version}");
            compared += 1;
        }
    }
    assert!(compared >= 7 * 9 + 4, "{compared}");
}

#[test]
fn given_artifacts_are_read() {
    let dirs = std::env::var("HELIO_ARTIFACTS").unwrap_or_default();
    let dirs: Vec<_> = dirs.split(':').filter(|dir| !dir.is_empty()).collect();
    for dir in dirs {
        let files = artifacts(Path::new(dir));
        for (name, file) in &files {
            match bytecode::read(file) {
                Ok(module) => match bytecode::write(&module, bytecode::Version::NEWEST) {
                    Ok(written) => {
                        assert_eq!(read(name, &written), canonical(&module), "{name}");
                        let back = std::env::var("HELIO_BACK").unwrap_or_default();
                        if !back.is_empty() {
                            let written = bytecode::write(&module, bytecode::Version::WRITTEN);
                            let path = Path::new(&back).join(name);
                            let _ = written.map(|bytes| std::fs::write(path, bytes));
                        }
                    }
                    Err(e) => println!("{name} is not written: {e}"),
                },
                Err(e) => assert!(name.starts_with("invalid"), "{name}: {e}"),
            }
        }
        println!("{}: {} artifacts read", dir, files.len());
    }
}

/// Random numbers, and mistakes.
struct Random(Rand64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.rand_range(0..bound.max(1) as u64) as usize
    }

    /// A file like this one, but not quite.
    fn mutant(&mut self, file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        if self.below(4) == 0 {
            file.truncate(self.below(file.len()));
        }
        for _ in 0..1 + self.below(4) {
            let at = self.below(file.len());
            let Some(byte) = file.get_mut(at) else { break };
            match self.below(5) {
                0 => *byte = self.below(256) as u8,
                1 => *byte ^= 1 << self.below(8),
                2 => *byte = byte.wrapping_add(2),
                3 => file.insert(at, self.below(256) as u8),
                _ => drop(file.remove(at)),
            }
        }
        file
    }
}

/// Reads as many mutants of files as `HELIO_MUTANTS` says, and does with those that still are
/// modules what a caller would.
fn outlive_mutants(files: &[(String, Vec<u8>)], read: impl Fn(&[u8]) -> helio_ir::Result<()>) {
    let count = std::env::var("HELIO_MUTANTS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(3000);
    let mut random = Random(Rand64::new(1));
    let (mut intact, mut longest) = (0, Duration::ZERO);
    for i in 0..count {
        let (name, file) = &files[i % files.len()];
        let mutant = random.mutant(file);
        let begin = Instant::now();
        match read(&mutant) {
            Ok(()) => intact += 1,
            Err(e) => assert_ne!(e.code(), helio_ir::Code::Internal, "{name}: {e}"),
        }
        longest = longest.max(begin.elapsed());
    }
    println!("{count} mutants, of which {intact} still are modules; the longest took {longest:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn mutants_are_errors_in_bounded_time() {
    outlive_mutants(&artifacts(&fixtures()), |file| {
        let module = bytecode::read(file)?;
        // What does not become HLO says why; that it is read is what is counted.
        let _ = Interface::of(&module);
        let _ = lower(&module);
        Ok(())
    });
}

#[test]
fn mutants_of_exports_are_errors_in_bounded_time() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jax_export");
    let file = |name: &str| (name.to_owned(), std::fs::read(dir.join(name)).expect("a file"));
    outlive_mutants(&["predict.jax", "step.jax"].map(file), |file| {
        let exported = Exported::read(file)?;
        let _ = exported.interface();
        let _ = exported.argument_shapes().and_then(|shapes| exported.lower_for(&shapes));
        Ok(())
    });
}
