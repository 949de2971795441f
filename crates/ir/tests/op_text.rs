//! The attributes of operations as text: what is read, and what is written for it.
//!
//! The texts written were given to XLA's parser, which accepts them and prints them alike.

use helio_ir::{text, verify};

/// Computations for the instructions to call, and values to take.
const BEFORE: &str = "
scalar { ROOT p = f32[] parameter(0) }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
pass { ROOT p = f32[4] parameter(0) }
pair { a = f32[4] parameter(0) b = s32[] parameter(1) ROOT r = (f32[4], s32[]) tuple(a, b) }
never { p = f32[4] parameter(0) ROOT r = pred[] constant(false) }
ENTRY e {
  x = f32[4] parameter(0)
  m = f32[2,3] parameter(1)
  i = s32[] parameter(2)
  p = pred[] parameter(3)
  n = (f32[4], s32[]) parameter(4)
  c = c64[4] parameter(5)
  d = f32[<=4] parameter(6)
  z = f32[] constant(0)
  t = token[] after-all()
  going = (f32[4], u32[], token[]) send(x, t), channel_id=7
  coming = (f32[4], u32[], token[]) recv(t), channel_id=8, is_host_transfer=true
";

/// An instruction and, if it is written otherwise, how.
const CASES: &[(&str, &str)] = &[
    ("f32[4] negate(x)", ""),
    ("f32[4] add(x, x)", ""),
    ("f32[4] real(c)", ""),
    ("pred[4] compare(x, x), direction=LT", ""),
    ("pred[4] compare(x, x), direction=GE, type=TOTALORDER", ""),
    ("pred[4] compare(x, x), direction=EQ, type=FLOAT", "pred[4] compare(x, x), direction=EQ"),
    ("pred[4] compare(c, c), type=FLOAT, direction=NE", "pred[4] compare(c, c), direction=NE"),
    ("pred[] compare(i, i), direction=LT, type=SIGNED", "pred[] compare(i, i), direction=LT"),
    ("pred[] compare(p, p), direction=LT, type=UNSIGNED", "pred[] compare(p, p), direction=LT"),
    ("f32[4] select(p, x, x)", ""),
    ("f32[4] clamp(z, x, x)", ""),
    ("bf16[4] convert(x)", ""),
    ("u8[4,4] bitcast-convert(x)", ""),
    ("f32[4] reduce-precision(x), exponent_bits=5, mantissa_bits=10", ""),
    ("s32[2,3] iota(), iota_dimension=1", ""),
    ("f32[2] broadcast(z), dimensions={}", ""),
    ("f32[2] broadcast(z)", "f32[2] broadcast(z), dimensions={}"),
    ("f32[3,5,2] broadcast(m), dimensions={2,0}", ""),
    ("f32[3,2] reshape(m)", ""),
    ("f32[<=4,1] reshape(d), inferred_dimension=0", "f32[<=4,1] reshape(d)"),
    ("f32[<=4] dynamic-reshape(x, i)", ""),
    ("f32[4] copy(x)", ""),
    ("f32[2,2] bitcast(x)", ""),
    ("f32[3,2] transpose(m), dimensions={1,0}", ""),
    ("f32[2,3] reverse(m), dimensions={1}", ""),
    ("f32[8] concatenate(x, x), dimensions={0}", ""),
    ("f32[1,2] slice(m), slice={[0:1], [1:3]}", ""),
    ("f32[1,2] slice(m), slice={[0:1], [0:3:2]}", "f32[1,2] slice(m), slice={[0:1:1], [0:3:2]}"),
    ("f32[] slice(z), slice={}", ""),
    ("f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}", ""),
    ("f32[4] dynamic-update-slice(x, x, i)", ""),
    ("f32[7] pad(x, z), padding=1_2", ""),
    ("f32[6] pad(x, z), padding=1_-2_1", ""),
    ("f32[3,7] pad(m, z), padding=0_1x1_1_1", "f32[3,7] pad(m, z), padding=0_1_0x1_1_1"),
    ("() tuple()", ""),
    ("(f32[4], (f32[4], s32[])) tuple(x, n)", ""),
    ("s32[] get-tuple-element(n), index=1", ""),
    ("f32[4] call(x), to_apply=pass", ""),
    (
        "f32[4] call(x), to_apply=pass, is_composite=true, \
         frontend_attributes={composite.name=\"a.b\"}",
        "",
    ),
    ("f32[4] map(x, x), dimensions={0}, to_apply=sum", ""),
    ("f32[2,3] map(m), to_apply=scalar", "f32[2,3] map(m), dimensions={0,1}, to_apply=scalar"),
    ("(f32[4], s32[]) fusion(x, i), kind=kLoop, calls=pair", ""),
    ("f32[4] fusion(x), kind=kCustom, output_to_operand_aliasing={{}: (0, {})}, calls=pass", ""),
    ("f32[4] while(x), condition=never, body=pass", ""),
    ("f32[4] conditional(p, x, x), true_computation=pass, false_computation=pass", ""),
    ("f32[4] conditional(i, x, x), branch_computations={pass, pass}", ""),
    ("f32[4] conditional(i, x), branch_computations={pass}", ""),
    ("(f32[4], s32[]) opt-barrier(n)", ""),
    ("token[] after-all(t, t)", ""),
    ("f32[4] add-dependency(x, t)", ""),
    (
        "f32[4] domain(x), domain={kind=\"sharding\", entry={replicated}, exit={maximal device=0}}",
        "",
    ),
    ("s32[] get-dimension-size(d), dimensions={0}", ""),
    ("f32[<=4] set-dimension-size(x, i), dimensions={0}", ""),
    ("(f32[4], token[]) infeed(t)", ""),
    ("((f32[4], s32[]), token[]) infeed(t), infeed_config=\"a\\\"b\"", ""),
    ("token[] outfeed(x, t), outfeed_shape=f32[4]", ""),
    ("token[] outfeed(x, t)", "token[] outfeed(x, t), outfeed_shape=f32[4]"),
    ("token[] outfeed(x, t), outfeed_shape=f32[4], outfeed_config=\"a\"", ""),
    ("token[] send-done(going), channel_id=7", ""),
    ("(f32[4], token[]) recv-done(coming), channel_id=8, is_host_transfer=true", ""),
    ("f32[4] custom-call(x, i), custom_call_target=\"f\\\"g\"", ""),
    (
        "f32[4] custom-call(x), custom_call_target=\"f\", called_computations={pass, pass}, \
         custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, \
         schedule=SCHEDULE_LATEST, output_to_operand_aliasing={{}: (0, {})}",
        "f32[4] custom-call(x), custom_call_target=\"f\", custom_call_has_side_effect=true, \
         output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_LATEST, \
         api_version=API_VERSION_TYPED_FFI, called_computations={pass, pass}",
    ),
    (
        "f32[4] custom-call(x), custom_call_target=\"f\", to_apply=pass, \
         api_version=API_VERSION_ORIGINAL, feature_group_count=1, schedule=SCHEDULE_NONE",
        "f32[4] custom-call(x), custom_call_target=\"f\", called_computations={pass}",
    ),
    (
        "f32[4]{0} custom-call(x, m), window={size=2 stride=2}, dim_labels=b0f_0io->b0f, \
         feature_group_count=2, batch_group_count=3, padding_type=PADDING_VALID, \
         custom_call_target=\"f\", operand_layout_constraints={f32[4]{0}, f32[2,3]{1,0}}",
        "",
    ),
];

#[test]
fn attributes_are_read_and_written() {
    let mut failures = Vec::new();
    for (read, written) in CASES {
        let written = if written.is_empty() { read } else { written };
        match print_of(read) {
            Ok(printed) if printed == *written => match print_of(&printed) {
                Ok(again) if again == printed => {}
                other => failures.push(format!("{printed}\n  again: {other:?}")),
            },
            Ok(printed) => failures.push(format!("{read}\n  gives {printed}")),
            Err(e) => failures.push(format!("{read}\n  {e}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The instruction as it is printed, names without sigils.
fn print_of(instruction: &str) -> Result<String, String> {
    let program = format!("{BEFORE}  ROOT result = {instruction}\n}}\n");
    let module = text::parse(&program).map_err(|e| format!("{e:?}"))?;
    let module = verify(module).map_err(|e| format!("{e:?}"))?;
    let printed = text::print(&module).replace('%', "");
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("ROOT result = "));
    line.map(str::to_owned).ok_or_else(|| format!("no result in {printed}"))
}

#[test]
fn bad_attributes_are_errors() {
    let cases = [
        ("f32[2,3] reverse(m)", "needs the attribute `dimensions`"),
        ("f32[4] reverse(x), dimensions={-1}", "expected a non-negative integer"),
        ("f32[8] concatenate(x, x), dimensions={0,1}", "expected `}`"),
        ("pred[4] compare(x, x), direction=LE, type=LOUD", "`LOUD` is none of"),
        ("pred[4] compare(x, x), direction=LOUD", "`LOUD` is none of"),
        ("f32[4] pad(x, z), padding=0", "expected `_`"),
        ("f32[4] pad(x, z), padding=0_0_-1", "expected a non-negative integer"),
        ("f32[4] slice(x), slice={[0]}", "expected `:`"),
        ("f32[4] call(x), to_apply=nothing", "no computation `nothing`"),
        ("f32[4] negate(x), dimensions={0}", "dimensions"),
        ("f32[4] infeed(t)", "must be a tuple"),
        ("() infeed(t)", "must be a tuple"),
        ("token[] iota(), iota_dimension=0", "must be an array"),
        ("token[] outfeed(x, t), outfeed_shape=f33[4]", "unknown element type"),
        (
            "f32[4] custom-call(x), custom_call_target=\"f\", api_version=API_VERSION_UNSPECIFIED",
            "is none of",
        ),
        (
            "f32[4] custom-call(x), custom_call_target=\"f\", to_apply=pass, called_computations={}",
            "not both",
        ),
        ("f32[4] custom-call(x)", "needs the attribute `custom_call_target`"),
    ];
    for (instruction, words) in cases {
        let error = print_of(instruction).expect_err(instruction);
        assert!(error.contains(words), "{instruction}: {error}");
    }
}
