//! Sorts by comparators that are generated code, against the interpreter's: of lengths around those of
//! runs and pieces, of several operands, along any dimension.

use helio::ir::{Module, Verified, text, verify};
use helio::{Literal, RunOptions, random_arguments};
use helio_testkit::engines::{ENGINES, Engine, not_compiled};

/// Comparators of the operands `types`: their names, and what is put between the parameters `a0`,
/// `b0`, `a1`, … and the end.
const COMPARATORS: &[(&str, &[&str], &str)] = &[
    (
        "by magnitude",
        &["f32"],
        "c = f32[] abs(a0) d = f32[] abs(b0) ROOT r = pred[] compare(c, d), direction=LT",
    ),
    (
        "by low bits, from the largest down, of wide numbers that go with others",
        &["f64", "u64", "s8"],
        "m = u64[] constant(31) c = u64[] and(a1, m) d = u64[] and(b1, m)
         ROOT r = pred[] compare(c, d), direction=GT",
    ),
    (
        "by sums of two operands",
        &["s32", "bf16", "s16", "pred"],
        "s = s32[] convert(a2) t = s32[] convert(b2) c = s32[] add(a0, s) d = s32[] add(b0, t)
         ROOT r = pred[] compare(c, d), direction=LT",
    ),
    (
        "complex numbers by parts",
        &["c64", "c128"],
        "c = f64[] imag(a1) d = f64[] imag(b1) e = f32[] real(a0) f = f32[] real(b0)
         lt = pred[] compare(c, d), direction=LT eq = pred[] compare(c, d), direction=EQ
         then = pred[] compare(e, f), direction=GT both = pred[] and(eq, then)
         ROOT r = pred[] or(lt, both)",
    ),
    ("nothing is less", &["f32", "f16"], "ROOT r = pred[] constant(false)"),
];

fn module(types: &[&str], body: &str, dims: &[usize], dimension: usize) -> Verified<Module> {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    let dims = dims.join(",");
    let mut less = String::new();
    let mut params = String::new();
    for (i, ty) in types.iter().enumerate() {
        let (left, right) = (2 * i, 2 * i + 1);
        less += &format!("a{i} = {ty}[] parameter({left}) b{i} = {ty}[] parameter({right}) ");
        params += &format!("x{i} = {ty}[{dims}] parameter({i}) ");
    }
    let arrays: Vec<String> = types.iter().map(|ty| format!("{ty}[{dims}]")).collect();
    let names: Vec<String> = (0..types.len()).map(|i| format!("x{i}")).collect();
    let result =
        if types.len() == 1 { arrays[0].clone() } else { format!("({})", arrays.join(", ")) };
    let module = format!(
        "HloModule m\nless {{ {less} {body} }}\nENTRY e {{ {params} ROOT s = {result} sort({}),
         dimensions={{{dimension}}}, is_stable=true, to_apply=less }}",
        names.join(", ")
    );
    verify(text::parse(&module).unwrap_or_else(|e| panic!("{module}: {e:?}"))).unwrap()
}

/// The bytes of all arrays.
fn bits(literal: &Literal) -> Vec<Vec<u8>> {
    let array = |leaf: &Literal| leaf.as_array().expect("an array").to_bytes().into_owned();
    literal.leaves().into_iter().map(array).collect()
}

#[test]
fn as_the_interpreter_sorts() {
    let shapes: &[(&[usize], usize)] = &[
        (&[0], 0),
        (&[1], 0),
        (&[2], 0),
        (&[3, 5], 1),
        (&[9, 10], 1),
        (&[10, 9], 0),
        (&[3, 131, 7], 1),
        (&[4099], 0),
    ];
    let [interpreter, ..] = ENGINES else { panic!("no engines") };
    let names = ["compiled", "compiled, for the tile machine"];
    let compiled = |engine: &&Engine| names.contains(&engine.name);
    assert_eq!(ENGINES.iter().filter(compiled).count(), names.len());
    for (name, types, body) in COMPARATORS {
        for (seed, &(dims, dimension)) in shapes.iter().enumerate() {
            let module = module(types, body, dims, dimension);
            let params = module.entry().program_shape().params;
            let args: Vec<Literal> = random_arguments(&params, seed as u64).unwrap();
            let options = RunOptions::default();
            let expected = interpreter.run(&module, &args, &options).unwrap();
            for engine in ENGINES.iter().filter(compiled) {
                let program = engine.compile(&module).unwrap();
                let without = not_compiled(&program);
                assert!(without.is_empty(), "{name}, {dims:?}, {}: {without:?}", engine.name);
                let found = engine.run_program(&program, &args, &options).unwrap();
                assert_eq!(bits(&found), bits(&expected), "{name}, {dims:?}, {}", engine.name);
            }
        }
    }
}
