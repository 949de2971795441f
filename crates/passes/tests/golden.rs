//! What passes make of modules (`tests/passes`), and that it computes the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use helio_codegen::elementwise::Recipes;
use helio_eval::{Context, Limits, Subnormals, evaluate};
use helio_ir::text::{parse, print};
use helio_ir::{
    Array, ElementType, Error, Literal, Module, Native, Number, Shape, Verified, dispatch_type,
    verify,
};
use helio_passes::watch::Watch;
use helio_passes::{OptLevel, PARTS, PIPELINE, Pass, PassCx, find_pass};

const BETWEEN_CASES: &str = "// =====\n";
const BECOMES: &str = "// becomes:\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/passes")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// What has run, printed past the harness of tests, which keeps what passing tests print.
#[derive(Default)]
struct Tally {
    programs: usize,
    /// Results that were compared, for each module that passes have made.
    compared: usize,
    /// Modules of which nothing could be compared, by what the interpreter says of the original.
    not_run: BTreeMap<String, usize>,
}

impl Tally {
    /// Notes a module that passes have made: of how many results, or why of none.
    fn note(&mut self, compared: Result<usize, Error>) {
        match compared {
            Ok(count) => self.compared += count,
            Err(why) => *self.not_run.entry(why.code().to_string()).or_default() += 1,
        }
    }

    /// How many modules ran nothing.
    fn in_vain(&self) -> usize {
        self.not_run.values().sum()
    }

    fn report(&self, what: &str) {
        let Tally { programs, compared, not_run } = self;
        // Without a standard error there is nobody to tell.
        let _ = writeln!(
            std::io::stderr().lock(),
            "{what}: {programs} programs, {compared} results compared; not run, by error: {not_run:?}"
        );
    }
}

fn verified(text: &str, what: &str) -> Verified<Module> {
    let module = parse(text).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    verify(module).unwrap_or_else(|e| panic!("{what}: {e:?}"))
}

/// The module after passes, for a back end that has all recipes of the code generator.
fn run_passes<'p>(
    module: Verified<Module>,
    passes: impl IntoIterator<Item = &'p Pass>,
) -> Verified<Module> {
    let watch = Watch::new(&module, &Limits::default());
    // As the interpreter that the results are compared by.
    let cx = PassCx { subnormals: Subnormals::Keep, ..PassCx::new(&watch, &Recipes) };
    helio_passes::run_passes(module, passes, &cx).expect("the passes run")
}

/// The module after the passes of a level.
fn optimize(module: Verified<Module>, level: OptLevel) -> Verified<Module> {
    run_passes(module, PIPELINE.iter().filter(|pass| pass.level <= level))
}

#[test]
fn passes_make_what_is_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut ran = Tally::default();
    for dir in entries(&root()).iter().filter(|path| path.is_dir()) {
        let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
        let pass = find_pass(&name).unwrap_or_else(|| panic!("no pass is named {name}"));
        for path in entries(dir) {
            let text = fs::read_to_string(&path).expect("a text");
            let mut updated = Vec::new();
            for case in text.split(BETWEEN_CASES) {
                ran.programs += 1;
                let (before, after) = case.split_once(BECOMES).unwrap_or((case, ""));
                let what = format!("{}:\n{before}", path.display());
                let module = verified(before, &what);
                let passed = run_passes(module.clone(), [pass]);
                ran.note(same_results(&module, &passed, tolerance(before), &what));
                let found = print(&passed);
                let found = found.split_once("\n\n").map_or(&*found, |(_, rest)| rest);
                if update {
                    updated
                        .push(format!("{}{BECOMES}{found}", before.trim_end().to_owned() + "\n"));
                } else {
                    assert!(
                        found.trim() == after.trim(),
                        "{what}found:\n{found}\nexpected:\n{after}"
                    );
                }
            }
            if update {
                fs::write(&path, updated.join(BETWEEN_CASES)).expect("the file can be written");
            }
        }
    }
    ran.report("single passes");
    assert!(ran.compared > ran.programs, "only {} results", ran.compared);
    assert_eq!(ran.in_vain(), 0, "cases without a result to compare");
}

/// The same cases through all passes at each level.
#[test]
fn every_level_computes_the_same() {
    let mut ran = Tally::default();
    let dirs = entries(&root());
    for path in dirs.iter().filter(|path| path.is_dir()).flat_map(|dir| entries(dir)) {
        let text = fs::read_to_string(&path).expect("a text");
        for case in text.split(BETWEEN_CASES) {
            let before = case.split(BECOMES).next().expect("a first part");
            let module = verified(before, before);
            ran.programs += 1;
            for level in (0..4).filter_map(OptLevel::from_number) {
                let passed = optimize(module.clone(), level);
                let what = format!("{level:?}: {before}");
                ran.note(same_results(&module, &passed, tolerance(before), &what));
            }
        }
    }
    ran.report("cases of passes at every level");
    assert!(ran.compared > 4 * ran.programs, "only {} results", ran.compared);
    assert_eq!(ran.in_vain(), 0, "cases without a result to compare");
}

/// The programs of `tests/cases`, which have every operation, through all passes at each level.
#[test]
fn every_case_computes_the_same() {
    let mut pending = vec![root().join("../cases")];
    let mut ran = Tally::default();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            // Those of `linalg` call functions of the crate `helio`, which nobody knows here.
            pending.extend(entries(&path).into_iter().filter(|path| !path.ends_with("linalg")));
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "hlo") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        for program in text.split("\n// -----") {
            let Ok(module) = parse(program).and_then(verify) else { continue };
            ran.programs += 1;
            for level in (0..4).filter_map(OptLevel::from_number) {
                let passed = optimize(module.clone(), level);
                // Sums may be taken in another order, and of narrow floats.
                let tolerance = 0.02;
                let what = format!("{level:?}: {program}");
                ran.note(same_results(&module, &passed, tolerance, &what));
            }
        }
    }
    ran.report("case files at every level");
    // Programs that ask for a host, other replicas or functions have no results here.
    assert!(ran.programs > 900 && ran.compared > 10 * ran.programs, "only {}", ran.compared);
    assert!(ran.in_vain() < ran.programs / 5, "{:?}", ran.not_run);
}

fn tolerance(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("// tolerance: "));
    line.map_or(0.0, |line| line.parse().expect("a number"))
}

/// Compares results for several made-up arguments: how many there were. Errors: why the original has
/// no result at all.
fn same_results(
    a: &Verified<Module>,
    b: &Verified<Module>,
    tolerance: f64,
    what: &str,
) -> Result<usize, Error> {
    let (mut compared, mut without) = (0, None);
    for seed in 0..3 {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ seed);
        let params = a.entry().program_shape().params;
        let args: Vec<_> = params.iter().map(|shape| numbers.literal(shape)).collect();
        let run = |module, steps| {
            // Made-up arguments may make a loop endless.
            let limits = Limits { max_steps: Some(steps), ..Limits::default() };
            evaluate(module, &args, &Context { limits, ..Context::default() })
        };
        let expected = match run(a, 100_000) {
            Ok(expected) => expected,
            Err(why) => {
                without = Some(why);
                continue;
            }
        };
        let found = run(b, 1_000_000).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(is_close(&expected, &found, tolerance), "{what}:\n{expected:?}\n{found:?}");
        compared += 1;
    }
    match without {
        Some(why) if compared == 0 => Err(why),
        _ => Ok(compared),
    }
}

fn is_close(a: &Literal, b: &Literal, tolerance: f64) -> bool {
    match (a, b) {
        (Literal::Array(a), Literal::Array(b)) => {
            a.shape().same(b.shape())
                && (0..a.data().len()).all(|i| {
                    let close = |x: f64, y: f64| {
                        (x.is_nan() && y.is_nan())
                            || x.to_bits() == y.to_bits()
                            || (x - y).abs() <= tolerance * x.abs()
                    };
                    match (a.number(i), b.number(i)) {
                        (Number::Float(x), Number::Float(y)) => close(x, y),
                        (Number::Complex(x), Number::Complex(y)) => {
                            close(x.re, y.re) && close(x.im, y.im)
                        }
                        (x, y) => x == y,
                    }
                })
        }
        (Literal::Tuple(a), Literal::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_close(a, b, tolerance))
        }
        (Literal::Token, Literal::Token) => true,
        _ => false,
    }
}

/// Numbers made up by a shift register, special ones among them.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f64 {
        const SPECIAL: [f64; 8] =
            [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.0];
        match self.next() % 4 {
            0 => SPECIAL[(self.next() % 8) as usize],
            _ => (self.next() % 2001) as f64 / 100.0 - 10.0,
        }
    }

    fn number(&mut self, ty: ElementType) -> Number {
        if ty.is_pred() {
            return Number::Pred(self.next().is_multiple_of(2));
        }
        if ty.is_integer() {
            let bits = ty.bits() as u32;
            return Number::Int(match self.next() % 4 {
                0 => (1 << (bits - 1)) - 1,
                1 => 1 << (bits - 1),
                2 => i128::from(self.next()),
                _ => i128::from(self.next() % 16) - 4,
            });
        }
        let real = self.float();
        match ty.is_complex() {
            true => Number::Complex(helio_ir::types::C128::new(real, self.float())),
            false => Number::Float(real),
        }
    }

    fn literal(&mut self, shape: &Shape) -> Literal {
        match shape {
            Shape::Array(array) => {
                let count = array.element_count();
                let data = dispatch_type!(array.element(), T => {
                    T::wrap((0..count).map(|_| T::from_number(self.number(T::TYPE))).collect())
                });
                let array = array.clone().without_layout();
                Literal::Array(Array::from_data(array, data).expect("as many values"))
            }
            Shape::Tuple(elements) => {
                Literal::Tuple(elements.iter().map(|shape| self.literal(shape)).collect())
            }
            Shape::Token | Shape::Opaque => Literal::Token,
        }
    }
}

/// The tables of `docs/passes.md`.
#[test]
fn the_documentation_lists_all_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/passes.md");
    let text = fs::read_to_string(&path).expect("the documentation");
    let mut pipeline = String::new();
    for pass in PIPELINE {
        let row = format!("| `{}` | {} | {} |\n", pass.name, pass.level as u32, pass.summary);
        if !pipeline.contains(&row) {
            pipeline += &row;
        }
    }
    let parts = PARTS.iter().map(|pass| format!("| `{}` | {} |\n", pass.name, pass.summary));
    let parts: String = parts.collect();
    let mut lines = text.lines().peekable();
    let mut found = String::new();
    while let Some(line) = lines.next() {
        found += line;
        found.push('\n');
        let rows = match line {
            "| pass | level | what it does |" => &pipeline,
            "| pass | what it does |" => &parts,
            _ => continue,
        };
        found += lines.next().expect("the line below the head");
        found.push('\n');
        found += rows;
        while lines.next_if(|line| line.starts_with("| ") || line.starts_with("<!--")).is_some() {}
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &found).expect("the file can be written");
    } else {
        assert!(text == found, "run UPDATE=1 cargo test -p helio-passes; expected:\n{found}");
    }
}
