//! Collectives of every kind, on every element type, in every mode of groups, for 1 to 8 participants,
//! against a direct computation. `HELIO_COLLECTIVES=10` runs ten programs where one is drawn.

use std::time::{Duration, Instant};

use helio::RunOptions;
use helio::ir::text::{parse_literal, print_literal};
use helio_testkit::collectives::model::Counts;
use helio_testkit::collectives::{Kind, Program, elements, program};
use helio_testkit::engines::{ENGINES, Engine};

/// Those who run the programs: replicas, and partitions of each.
const COUNTS: [(usize, usize); 7] = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (1, 4), (2, 3)];

/// Runs a program on an engine. Errors: it cannot be run, or gives something else.
fn check(program: &Program, engine: &Engine) -> Result<(), String> {
    let mut module = helio::parse(&program.text).map_err(|e| format!("{e:?}"))?;
    module.config.replica_count = Some(program.counts.replicas);
    module.config.num_partitions = Some(program.counts.partitions);
    let module = helio::ir::verify(module).map_err(|e| format!("{e:?}"))?;
    let shape = module.entry().program_shape();
    let compiled = engine.compile(&module).map_err(|e| e.to_string())?;
    if engine.compiles_all() && !compiled.interpreted().is_empty() {
        return Err(format!("not compiled: {:?}", compiled.interpreted()));
    }
    let literals = program.inputs.iter().map(|values| {
        let values = values.iter().zip(&shape.params);
        values.map(|(text, shape)| parse_literal(text, shape)).collect()
    });
    let literals = literals.collect::<Result<Vec<Vec<_>>, _>>().map_err(|e| e.to_string())?;
    let args: Vec<_> = literals.iter().map(|values| &values[..]).collect();
    let mut options = RunOptions::default();
    options.limits.deadline = Some(Instant::now() + Duration::from_secs(60));
    let found = engine.run_replicas(&compiled, &args, &options).map_err(|e| e.to_string())?;
    for (who, (found, expected)) in found.iter().zip(&program.results).enumerate() {
        let expected = parse_literal(expected, &shape.result).map_err(|e| e.to_string())?;
        let [found, expected] = [found, &expected].map(print_literal);
        if found != expected {
            return Err(format!("participant {who}: {found}, not {expected}"));
        }
    }
    Ok(())
}

#[test]
fn collectives_give_what_a_direct_computation_gives() {
    let each: u64 = std::env::var("HELIO_COLLECTIVES").map_or(0, |n| n.parse().expect("a number"));
    let (mut run, mut failures) = (0, Vec::new());
    for (i, kind) in Kind::ALL.into_iter().enumerate() {
        for (j, element) in elements().into_iter().enumerate() {
            for (k, (replicas, partitions)) in COUNTS.into_iter().enumerate() {
                // Without more time, each kind and type is run on some of the counts.
                if each == 0 && (i + j + k) % 3 != 0 {
                    continue;
                }
                for seed in 0..each.max(1) {
                    let counts = Counts { replicas, partitions };
                    let program = program(kind, element, counts, seed + k as u64 * 1000);
                    let engines = [&ENGINES[0], &ENGINES[2 + run % (ENGINES.len() - 2)]];
                    for engine in engines {
                        run += 1;
                        if let Err(error) = check(&program, engine) {
                            let (inputs, text) = (&program.inputs, &program.text);
                            let name = engine.name;
                            failures
                                .push(format!("{counts:?}, {name}: {error}\n{inputs:?}\n{text}"));
                        }
                    }
                }
            }
        }
    }
    println!("{run} collectives on engines");
    assert!(
        failures.is_empty(),
        "{} of {run}:\n{}",
        failures.len(),
        failures[..failures.len().min(5)].join("\n")
    );
    assert!(run > 500);
}
