//! Collectives of every kind, on every element type, in every mode of groups, for 1 to 8 participants,
//! against a direct computation. `HELIO_COLLECTIVES=10` runs ten programs where one is drawn.

use std::time::{Duration, Instant};

use helio::ir::text::{parse_literal, print_literal};
use helio::{ElementType, Literal, RunOptions};
use helio_testkit::collectives::model::Counts;
use helio_testkit::collectives::{Kind, Program, elements, program};
use helio_testkit::engines::{ENGINES, Engine, not_compiled};

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

/// A program whose operands, of these types and sizes, are folded as another float type.
fn mixed(operands: &[(ElementType, usize)], folded: ElementType, kind: &str) -> String {
    let (mut shapes, mut names, mut params) = (Vec::new(), Vec::new(), String::new());
    let parts = if kind == "reduce-scatter" { 3 } else { 1 };
    for (n, (element, size)) in operands.iter().enumerate() {
        params += &format!("  x{n} = {element}[{size}] parameter({n})\n");
        shapes.push(format!("{element}[{}]", size / parts));
        names.push(format!("x{n}"));
    }
    let result = match &shapes[..] {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let dimensions = if parts > 1 { ", dimensions={0}" } else { "" };
    format!(
        "HloModule m, replica_count=3
        sum {{ x = {folded}[] parameter(0) y = {folded}[] parameter(1) ROOT s = {folded}[] add(x, y) }}
        ENTRY e {{
        {params}  ROOT r = {result} {kind}({}), replica_groups={{{{0,1,2}}}}{dimensions}, to_apply=sum
        }}",
        names.join(", ")
    )
}

/// Errors: a compiled engine interprets the program, or gives other bits than the interpreter.
fn check_mixed(operands: &[(ElementType, usize)], text: &str) -> Result<(), String> {
    let module = helio::parse(text).and_then(helio::ir::verify);
    let module = module.map_err(|e| format!("{e:?}"))?;
    let (shapes, numbers) = (module.entry().program_shape().params, [1, 2, 2, 4, 1, 8, 3]);
    let args = (0..3).map(|replica: usize| {
        let arrays = operands.iter().zip(&shapes).map(|((_, size), shape)| {
            let number = |i: usize| numbers[(i + replica) % numbers.len()].to_string();
            let values: Vec<String> = (0..*size).map(number).collect();
            parse_literal(&format!("{{{}}}", values.join(", ")), shape)
        });
        arrays.collect::<Result<Vec<_>, _>>()
    });
    let args = args.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let args: Vec<_> = args.iter().map(|values| &values[..]).collect();
    let run = |engine: &Engine| {
        let program = engine.compile(&module).map_err(|e| e.to_string())?;
        if engine.compiles_all() && !not_compiled(&program).is_empty() {
            return Err(format!("{}: interpreted: {:?}", engine.name, program.interpreted()));
        }
        engine.run_replicas(&program, &args, &RunOptions::default()).map_err(|e| e.to_string())
    };
    let expected = run(&ENGINES[0])?;
    for engine in &ENGINES[2..] {
        let found = run(engine)?;
        if !found.iter().zip(&expected).all(|(a, b)| a.same_bits(b)) {
            let shown =
                |all: &[Literal]| all.iter().map(print_literal).collect::<Vec<_>>().join("; ");
            return Err(format!("{}: {}, not {}", engine.name, shown(&found), shown(&expected)));
        }
    }
    Ok(())
}

/// Operands may be folded as another float type: every pair of types, several operands of different
/// types, and arrays that are folded in pieces.
#[test]
fn reducers_of_other_float_types_are_compiled() {
    let floats: Vec<ElementType> =
        ElementType::ALL.iter().copied().filter(|element| element.is_float()).collect();
    let mut programs = Vec::new();
    for &element in &floats {
        for &folded in floats.iter().filter(|&&folded| folded != element) {
            let operands = vec![(element, 9)];
            let kind = if programs.len() % 2 == 0 { "all-reduce" } else { "reduce-scatter" };
            programs.push((mixed(&operands, folded, kind), operands));
        }
    }
    let several = [(ElementType::F32, 5), (ElementType::BF16, 7), (ElementType::F64, 3)];
    programs.push((mixed(&several, ElementType::F32, "all-reduce"), several.to_vec()));
    let large = [(ElementType::BF16, 150_001), (ElementType::F32, 3), (ElementType::F64, 40_000)];
    programs.push((mixed(&large, ElementType::F32, "all-reduce"), large.to_vec()));
    let errors = programs.iter().filter_map(|(text, operands)| {
        check_mixed(operands, text).err().map(|e| format!("{:.2000}\n{text}", e))
    });
    let errors: Vec<String> = errors.collect();
    let count = programs.len();
    assert!(errors.is_empty(), "{} of {count}:\n{}", errors.len(), errors.join("\n"));
    assert!(count > 150, "only {count} programs");
}
