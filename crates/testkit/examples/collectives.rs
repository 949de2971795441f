//! Random collectives for several replicas, as a case file with the results on which all engines agree:
//! `cargo run -p helio-testkit --example collectives -- COUNT [SEED] > FILE`.
//!
//! `tests/cases/check_with_xla.py FILE` then compares them with XLA:CPU.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use helio::RunOptions;
use helio::ir::text::{parse_literal, print_literal};
use helio_testkit::engines::ENGINES;
use oorandom::Rand32;

fn main() -> ExitCode {
    let args: Vec<Option<u64>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let (count, seed) = match args[..] {
        [Some(count)] => (count, 0),
        [Some(count), Some(seed)] => (count, seed),
        _ => {
            eprintln!("usage: collectives COUNT [SEED]");
            return ExitCode::from(2);
        }
    };
    println!("// source: what helio gives, seeds from {seed}\n");
    for seed in seed..seed.saturating_add(count) {
        match program(seed).and_then(|program| program.case()) {
            Ok(case) => println!("{case}// -----"),
            Err(e) => {
                eprintln!("seed {seed}: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// A program and its inputs.
struct Program {
    replicas: usize,
    text: String,
    /// For each replica, the values of its parameters.
    inputs: Vec<Vec<String>>,
}

impl Program {
    /// The program as a case, with what the interpreter gives. Errors: it cannot be run.
    fn case(&self) -> Result<String, String> {
        let failed = |e| format!("{e:?}\n{}", self.text);
        let mut module = helio::parse(&self.text).map_err(failed)?;
        module.config.replica_count = Some(self.replicas);
        let module = helio::ir::verify(module).map_err(failed)?;
        let params = module.entry().program_shape().params;
        let literals = self.inputs.iter().map(|values| {
            let values = values.iter().zip(&params);
            values.map(|(text, shape)| parse_literal(text, shape)).collect()
        });
        let literals = literals.collect::<Result<Vec<Vec<_>>, _>>().map_err(|e| e.to_string())?;
        let args: Vec<_> = literals.iter().map(|values| &values[..]).collect();
        let mut results: Option<Vec<String>> = None;
        for engine in ENGINES {
            let failed = |e| format!("{}: {e}\n{}", engine.name, self.text);
            let program = engine.compile(&module).map_err(failed)?;
            let mut options = RunOptions::default();
            options.limits.deadline = Some(Instant::now() + Duration::from_secs(60));
            let found = engine.run_replicas(&program, &args, &options).map_err(failed)?;
            let found =
                found.iter().map(|result| print_literal(result).replace('\n', " ")).collect();
            match &results {
                Some(results) if *results != found => {
                    return Err(format!(
                        "{}: {found:?}, not {results:?}\n{}",
                        engine.name, self.text
                    ));
                }
                _ => results = Some(found),
            }
        }
        let mut case = format!("// replicas: {}\n", self.replicas);
        for (replica, (inputs, result)) in
            self.inputs.iter().zip(results.unwrap_or_default()).enumerate()
        {
            for input in inputs {
                writeln!(case, "// input[{replica}]: {input}").map_err(|e| e.to_string())?;
            }
            writeln!(case, "// expect[{replica}]: {result}").map_err(|e| e.to_string())?;
        }
        Ok(case + &self.text)
    }
}

/// Draws from what a collective may consist of.
struct Draw {
    random: Rand32,
    replicas: usize,
}

/// A way to group replicas: its text, and the size of all groups if they have one.
type Groups = (&'static str, usize);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.random.rand_range(0..end as u32) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Groups of one size that hold every replica.
    fn equal_groups(&mut self) -> Groups {
        match self.replicas {
            2 => self.one_of(&[
                ("{}", 2),
                ("{{0,1}}", 2),
                ("{{1,0}}", 2),
                ("{{1},{0}}", 1),
                ("[1,2]<=[2]", 2),
                ("[2,1]<=[2]", 1),
            ]),
            _ => self.one_of(&[
                ("{}", 4),
                ("{{0,1,2,3}}", 4),
                ("{{2,0,3,1}}", 4),
                ("{{0,1},{2,3}}", 2),
                ("{{3,0},{1,2}}", 2),
                ("{{0},{1},{3},{2}}", 1),
                ("[1,4]<=[4]", 4),
                ("[2,2]<=[4]", 2),
                ("[2,2]<=[2,2]T(1,0)", 2),
                ("[1,4]<=[2,2]T(1,0)", 4),
            ]),
        }
    }

    /// The attributes of an operation that knows the three modes of one partition.
    fn mode(&mut self, groups: &str) -> String {
        let modes = ["", ", channel_id=1", ", channel_id=1, use_global_device_ids=true"];
        let end = if groups == "{}" { 2 } else { 3 };
        let mode = self.one_of(&modes[..end]);
        format!("replica_groups={groups}{mode}")
    }

    fn element(&mut self) -> &'static str {
        self.one_of(&["f32", "s32", "u8", "f64", "s64", "bf16", "f16"])
    }

    /// A value of so many numbers along each dimension, small enough for every type and its sums.
    fn value(&mut self, dims: &[usize]) -> String {
        match dims {
            [] => self.below(8).to_string(),
            [size, rest @ ..] => {
                let parts: Vec<String> = (0..*size).map(|_| self.value(rest)).collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }

    /// Pairs of replicas, no source and no target twice.
    fn pairs(&mut self) -> String {
        let shuffled = |draw: &mut Self| {
            let mut ids: Vec<usize> = (0..draw.replicas).collect();
            (1..ids.len()).rev().for_each(|i| ids.swap(i, draw.below(i + 1)));
            ids
        };
        let (sources, targets) = (shuffled(self), shuffled(self));
        let count = self.below(self.replicas) + 1;
        let pairs = sources.iter().zip(&targets).take(count);
        let pairs: Vec<String> = pairs.map(|(s, t)| format!("{{{s},{t}}}")).collect();
        format!("{{{}}}", pairs.join(","))
    }
}

/// The operations, each with whether it has a form that begins and one that ends it.
const KINDS: &[&str] = &[
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "all-to-all-tuple",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "ids",
];

/// The program of a seed. Errors: none that is known; what is written is what should be accepted.
fn program(seed: u64) -> Result<Program, String> {
    let kind = KINDS[(seed % KINDS.len() as u64) as usize];
    let mut random = Rand32::new(seed);
    let replicas = if random.rand_range(0..2) == 0 { 2 } else { 4 };
    let mut draw = Draw { random, replicas };
    Ok(match kind {
        "all-reduce" => draw.all_reduce(),
        "all-gather" => draw.all_gather(),
        "reduce-scatter" => draw.reduce_scatter(),
        "all-to-all" => draw.all_to_all(),
        "all-to-all-tuple" => draw.all_to_all_tuple(),
        "collective-permute" => draw.permute(),
        "collective-broadcast" => draw.broadcast(),
        "ragged-all-to-all" => draw.ragged(),
        _ => draw.ids(),
    })
}

impl Draw {
    /// A program that applies `operation` with `attributes` to operands of these dimensions.
    fn of(
        &mut self,
        operation: &str,
        attributes: &str,
        operands: &[(&str, &[usize])],
        results: &[Vec<usize>],
        is_tuple: bool,
    ) -> Program {
        let shape = |element: &str, dims: &[usize]| {
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("{element}[{}]", dims.join(","))
        };
        let element = operands.first().map_or("f32", |(element, _)| element);
        let fold = if attributes.contains("to_apply") {
            let function = self.one_of(&["add", "maximum", "minimum"]);
            format!(
                "fold {{\n  x = {element}[] parameter(0)\n  y = {element}[] parameter(1)\n  \
                 ROOT r = {element}[] {function}(x, y)\n}}\n"
            )
        } else {
            String::new()
        };
        let mut text = format!("{fold}ENTRY main {{\n");
        for (i, (element, dims)) in operands.iter().enumerate() {
            text += &format!("  p{i} = {} parameter({i})\n", shape(element, dims));
        }
        let names: Vec<String> = (0..operands.len()).map(|i| format!("p{i}")).collect();
        let names = names.join(", ");
        let shapes: Vec<String> = results.iter().map(|dims| shape(element, dims)).collect();
        let result = match &shapes[..] {
            [one] if !is_tuple => one.clone(),
            _ => format!("({})", shapes.join(", ")),
        };
        let operand_shapes: Vec<String> =
            operands.iter().map(|(element, dims)| shape(element, dims)).collect();
        let begun = match (operation, &operand_shapes[..]) {
            ("all-reduce", _) => Some(result.clone()),
            ("all-gather", [one]) => Some(format!("({one}, {result})")),
            ("collective-permute", [one]) => Some(format!("({one}, {result}, u32[], u32[])")),
            _ => None,
        };
        match begun.filter(|_| self.below(3) == 0) {
            Some(begun) => {
                text += &format!("  s = {begun} {operation}-start({names}), {attributes}\n");
                text += &format!("  ROOT r = {result} {operation}-done(s)\n}}\n");
            }
            None => {
                text += &format!("  ROOT r = {result} {operation}({names}), {attributes}\n}}\n")
            }
        }
        let inputs = (0..self.replicas)
            .map(|_| operands.iter().map(|(_, dims)| self.value(dims)).collect())
            .collect();
        Program { replicas: self.replicas, text, inputs }
    }

    fn all_reduce(&mut self) -> Program {
        let groups = match self.below(4) {
            0 if self.replicas == 4 => "{{0,2,1},{3}}",
            _ => self.equal_groups().0,
        };
        let attributes = format!("{}, to_apply=fold", self.mode(groups));
        let element = self.element();
        const SHAPES: &[&[&[usize]]] = &[&[&[3]], &[&[]], &[&[2, 2], &[3]]];
        let operands = self.one_of(SHAPES);
        let results: Vec<_> = operands.iter().map(|dims| dims.to_vec()).collect();
        let operands: Vec<_> = operands.iter().map(|&dims| (element, dims)).collect();
        self.of("all-reduce", &attributes, &operands, &results, false)
    }

    fn all_gather(&mut self) -> Program {
        let (groups, size) = self.equal_groups();
        let dim = self.below(2);
        let attributes = format!("{}, dimensions={{{dim}}}", self.mode(groups));
        let element = self.element();
        let count = self.below(2) + 1;
        let mut result = vec![2, 3];
        result[dim] *= size;
        self.of(
            "all-gather",
            &attributes,
            &vec![(element, &[2, 3][..]); count],
            &vec![result; count],
            false,
        )
    }

    fn reduce_scatter(&mut self) -> Program {
        let (groups, size) = self.equal_groups();
        let dim = self.below(2);
        let attributes = format!("{}, dimensions={{{dim}}}, to_apply=fold", self.mode(groups));
        let element = self.element();
        let count = self.below(2) + 1;
        let mut result = vec![4, 4];
        result[dim] /= size;
        let operands = vec![(element, &[4, 4][..]); count];
        self.of("reduce-scatter", &attributes, &operands, &vec![result; count], false)
    }

    fn all_to_all(&mut self) -> Program {
        let groups = self.equal_groups().0;
        let dim = self.below(2);
        let attributes = format!("replica_groups={groups}, dimensions={{{dim}}}");
        let element = self.element();
        self.of("all-to-all", &attributes, &[(element, &[4, 4])], &[vec![4, 4]], false)
    }

    fn all_to_all_tuple(&mut self) -> Program {
        let (groups, size) = self.equal_groups();
        let attributes = format!("replica_groups={groups}");
        let element = self.element();
        let operands = vec![(element, &[2][..]); size];
        self.of("all-to-all", &attributes, &operands, &vec![vec![2]; size], true)
    }

    fn permute(&mut self) -> Program {
        let attributes = format!("source_target_pairs={}", self.pairs());
        let element = self.element();
        let count = self.below(2) + 1;
        let operands = vec![(element, &[3][..]); count];
        self.of("collective-permute", &attributes, &operands, &vec![vec![3]; count], false)
    }

    fn broadcast(&mut self) -> Program {
        let groups = match (self.below(2), self.replicas) {
            (0, 4) => self.one_of(&["{{2,0}}", "{{3,1},{0}}"]),
            (0, _) => "{{1}}",
            _ => self.equal_groups().0,
        };
        let attributes = format!("replica_groups={groups}");
        let element = self.element();
        self.of("collective-broadcast", &attributes, &[(element, &[3])], &[vec![3]], false)
    }

    /// Each sends row `i` to the `i`-th of its group, which puts it where the sender's rows belong.
    fn ragged(&mut self) -> Program {
        let (groups, size) = self.equal_groups();
        let attributes = format!("replica_groups={groups}");
        let element = self.element();
        let lists = &[size][..];
        let rows = &[4, 2][..];
        let operands = [(element, rows), (element, rows), ("s32", lists), ("s32", lists)];
        let operands = [&operands[..], &[("s32", lists), ("s32", lists)]].concat();
        let mut program =
            self.of("ragged-all-to-all", &attributes, &operands, &[rows.to_vec()], false);
        let list = |f: &dyn Fn(usize) -> usize| {
            let items: Vec<String> = (0..size).map(|i| f(i).to_string()).collect();
            format!("{{{}}}", items.join(", "))
        };
        // The place of a replica in its group is what `output_offsets` is; expanded by the parser.
        let lists = expand(groups, self.replicas);
        for (replica, inputs) in program.inputs.iter_mut().enumerate() {
            let group = lists.iter().find(|group| group.contains(&replica));
            let place = group.and_then(|group| group.iter().position(|&id| id == replica));
            inputs[2] = list(&|i| i);
            inputs[3] = list(&|_| 1);
            inputs[4] = list(&|_| place.unwrap_or(0));
            inputs[5] = list(&|_| 1);
        }
        program
    }

    fn ids(&mut self) -> Program {
        let text = "ENTRY main {\n  r = u32[] replica-id()\n  p = u32[] partition-id()\n  \
                    x = u32[] parameter(0)\n  s = u32[] add(r, x)\n  \
                    ROOT t = (u32[], u32[]) tuple(s, p)\n}\n";
        let inputs = (0..self.replicas).map(|_| vec![self.value(&[])]).collect();
        Program { replicas: self.replicas, text: text.to_owned(), inputs }
    }
}

/// The groups of a text.
fn expand(groups: &str, replicas: usize) -> Vec<Vec<usize>> {
    let mut scan = helio::ir::text::attrs::Scan::new(groups);
    let groups = helio::ir::ops::ReplicaGroups::read(&mut scan);
    let lists = groups.and_then(|groups| groups.lists()).unwrap_or_default();
    if lists.is_empty() { vec![(0..replicas).collect()] } else { lists }
}
