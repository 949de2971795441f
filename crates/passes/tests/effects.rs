//! What has effects is done once, in the order of the program, at every level.

use helio_codegen::elementwise::Recipes;
use helio_eval::Limits;
use helio_ir::text::{parse, print};
use helio_ir::{Module, Verified, verify};
use helio_passes::effects::Effects;
use helio_passes::watch::Watch;
use helio_passes::{OptLevel, PassCx, optimize};

/// Instructions that have an effect, by what they are written with: the type of the result; the
/// opcode and its operand `{x}` of the type `f32[8]`, or none; attributes; and which element of the
/// result is an `f32[8]`, if any is. `{n}` is the number of the instruction.
const KINDS: &[(&str, &str, &str, Option<usize>)] = &[
    ("f32[8]", "custom-call({x})", "custom_call_target=\"f{n}\"", None),
    (
        "f32[8]",
        "custom-call({x})",
        "custom_call_target=\"f{n}\", custom_call_has_side_effect=true",
        None,
    ),
    ("token[]", "outfeed({x}, token)", "outfeed_shape=f32[8], outfeed_config=\"{n}\"", None),
    ("(f32[8], token[])", "infeed(token)", "infeed_config=\"{n}\"", Some(0)),
    (
        "(f32[8], u32[], token[])",
        "send({x}, token)",
        "channel_id=1{n}, is_host_transfer=true",
        None,
    ),
    ("(f32[8], u32[], token[])", "recv(token)", "channel_id=2{n}, is_host_transfer=true", None),
    ("f32[8]", "rng(zero, one)", "distribution=rng_uniform", None),
    ("u64[2]", "rng-get-and-update-state()", "delta={n}", None),
    ("f32[8]", "all-reduce({x})", "replica_groups={}, to_apply=sum", None),
    ("f32[8]", "all-gather({x})", "replica_groups={}, dimensions={0}", None),
    ("f32[8]", "all-to-all({x})", "replica_groups={}, dimensions={0}", None),
    ("f32[8]", "reduce-scatter({x})", "replica_groups={}, dimensions={0}, to_apply=sum", None),
    ("f32[8]", "collective-permute({x})", "source_target_pairs={{0,0}}", None),
    ("f32[8]", "collective-broadcast({x})", "replica_groups={}", None),
    ("f32[8]", "call({x})", "to_apply=twice", None),
    ("f32[8]", "while({x})", "condition=never, body=twice", None),
    (
        "f32[8]",
        "conditional(flag, {x}, {x})",
        "true_computation=twice, false_computation=same",
        None,
    ),
];

const HEAD: &str = "HloModule m
    sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
    twice { a = f32[8] parameter(0) b = f32[8] add(a, a)
      ROOT inner = f32[8] custom-call(b), custom_call_target=\"twice\" }
    same { ROOT a = f32[8] parameter(0) }
    never { a = f32[8] parameter(0)
      ROOT no = pred[] custom-call(a), custom_call_target=\"never\" }";

/// A program that runs these kinds one after the other. What they use and what they give is added up
/// such that fusions would like to move it.
fn program(kinds: &[usize]) -> String {
    let mut text = format!(
        "{HEAD} ENTRY e {{ x = f32[8] parameter(0) flag = pred[] parameter(1)
         token = token[] after-all() zero = f32[] constant(0) one = f32[] constant(1)
         exp = f32[8] exponential(x)\n"
    );
    let mut last = "exp".to_owned();
    for (n, &kind) in kinds.iter().enumerate() {
        let (ty, op, attributes, element) = KINDS[kind];
        let (from, n) = (format!("x{n}"), n.to_string());
        let op = op.replace("{x}", &from);
        let attributes = attributes.replace("{n}", &n);
        text += &format!("{from} = f32[8] log({}) ", ["x", "exp"][kind % 2]);
        text += &format!("effect{n} = {ty} {op}, {attributes}\n");
        let value = match element {
            None if ty == "f32[8]" => format!("effect{n}"),
            None => continue,
            Some(index) => {
                text += &format!("part{n} = f32[8] get-tuple-element(effect{n}), index={index} ");
                format!("part{n}")
            }
        };
        text += &format!("y{n} = f32[8] multiply({value}, {from})\n");
        text += &format!("z{n} = f32[8] add(y{n}, {last})\n");
        last = format!("z{n}");
    }
    text + &format!("ROOT result = f32[8] add({last}, exp) }}")
}

/// The instructions with effects of the entry.
fn effects(module: &Module) -> Vec<String> {
    let effects = Effects::of(module);
    let entry = module.entry().instrs().iter();
    entry
        .filter(|instr| effects.has_effect(&instr.op))
        .map(|instr| instr.name.to_string())
        .collect()
}

#[track_caller]
fn stay_in_order(kinds: &[usize]) {
    let text = program(kinds);
    let module: Verified<Module> = verify(parse(&text).expect(&text)).expect(&text);
    let watch = Watch::new(&module, &Limits::default());
    let cx = PassCx::new(&watch, &Recipes);
    let before = effects(&module);
    assert_eq!(before.len(), kinds.len(), "{text}");
    for level in [OptLevel::None, OptLevel::Less, OptLevel::Default, OptLevel::More] {
        let after = optimize(module.clone(), level, &cx).expect(&text);
        // Calls are put in place.
        let inlined: Vec<String> =
            effects(&after).into_iter().map(|name| base(&name).to_owned()).collect();
        let calls = |n: &usize| KINDS[*n].1.starts_with("call(");
        let expected = before.iter().zip(kinds);
        let expected: Vec<&str> =
            expected.map(|(name, n)| if calls(n) { "inner" } else { name.as_str() }).collect();
        assert_eq!(inlined, expected, "{level:?}: {text}\nbecomes {}", print(&after));
    }
}

/// A name without the number that tells copies apart.
fn base(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[test]
fn effects_of_one_kind() {
    for kind in 0..KINDS.len() {
        stay_in_order(&[kind; 4]);
    }
}

#[test]
fn effects_of_different_kinds() {
    for first in 0..KINDS.len() {
        for second in 0..KINDS.len() {
            stay_in_order(&[first, second, first]);
        }
    }
    let all: Vec<usize> = (0..KINDS.len()).collect();
    stay_in_order(&all);
    stay_in_order(&all.iter().rev().copied().collect::<Vec<_>>());
}
