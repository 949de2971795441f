//! The grammar, feature by feature, and what hostile text may not do.

use super::*;
use crate::{Code, Error, Module};

/// `text` prints as `printed`, which prints as itself. (XLA's parser accepts both.)
#[track_caller]
fn check(text: &str, printed: &str) {
    let found = print(&parse(text).unwrap());
    assert_eq!(found.trim_end(), dedent(printed));
    let again = parse(&found).unwrap();
    assert_eq!(print(&again), found);
    let options = PrintOptions { sigils: true, operand_shapes: true, metadata: true };
    let long = print_with(&again, options);
    assert_eq!(print(&parse(&long).unwrap()), found, "{long}");
}

/// The text without the indentation of its second line.
fn dedent(text: &str) -> String {
    let indent = text.lines().nth(1).map_or(0, |line| line.len() - line.trim_start().len());
    let lines = text.lines().map(|line| line.get(indent..).unwrap_or(line.trim_start()));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn errors(text: &str) -> Vec<Error> {
    parse(text).err().map(Vec::from).unwrap_or_default()
}

/// The only error stands at `place` and says `part`.
#[track_caller]
fn check_error(text: &str, place: &str, part: &str) {
    let found: Vec<_> = errors(text).iter().map(Error::to_string).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!("{place}: ")) && found[0].contains(part), "{found:?}");
}

#[test]
fn a_module_without_its_first_line() {
    check(
        "f { ROOT x = f32[] parameter(0) } /* the last is the entry */ e { x = f32[] parameter(0)
         ROOT y = f32[] call(x), to_apply=f }",
        "
        HloModule module_e

        f {
          ROOT x = f32[] parameter(0)
        }

        ENTRY e {
          x = f32[] parameter(0)
          ROOT y = f32[] call(x), to_apply=f
        }",
    );
}

#[test]
fn words_of_either_case_and_signatures_without_colons() {
    // As XLA's parser reads them.
    check(
        "ENTRY e (x f32[2,2], k: u64[2]) -> f32[2,2] { x = f32[2,2] parameter(0) k = u64[2] parameter(1)
         b = (u64[2], u32[2]) rng-bit-generator(k), algorithm=RNG_PHILOX
         l = f32[] constant(0)
         u = f32[2] rng(l, l), distribution=RNG_NORMAL
         c = f32[2] custom-call(u), custom_call_target=\"f\", api_version=api_version_typed_ffi
         ROOT d = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
           operand_precision={HIGH,Highest}, algorithm=DOT_F32_F32_F32 }",
        "
        HloModule module_e

        ENTRY e {
          x = f32[2,2] parameter(0)
          k = u64[2] parameter(1)
          b = (u64[2], u32[2]) rng-bit-generator(k), algorithm=rng_philox
          l = f32[] constant(0)
          u = f32[2] rng(l, l), distribution=rng_normal
          c = f32[2] custom-call(u), custom_call_target=\"f\", api_version=API_VERSION_TYPED_FFI
          ROOT d = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
           operand_precision={high,highest}, algorithm=dot_f32_f32_f32
        }",
    );
}

#[test]
fn the_first_line() {
    check(
        &dedent(
            r#"
        HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias), {1}:(1,{0}) },
        buffer_donor={(1, {1})}, entry_computation_layout={(f32[2]{0},(f32[], s32[]))->(f32[2]{0}, f32[])},
        replica_count=2, num_partitions=4, frontend_attributes={a="x, y",b={"c": [1, {}]}},
        allow_spmd_sharding_propagation_to_output={true, false}

        FileNames
        1 "a.py"

        FunctionNames
        1 "f"
        FileLocations
        1 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=3 end_column=4}
        StackFrames
        1 {file_location_id=1 parent_frame_id=1}

        %g { ROOT x = s32[] parameter(0) }
        ENTRY e {
          x = f32[2]{0} parameter(0)
          y = (f32[], s32[]) parameter(1)
          y.0 = f32[] get-tuple-element(y), index=0
          ROOT z = (f32[2]{0}, f32[]) tuple(x, y.0)
        }"#,
        ),
        r#"
        HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {0}, may-alias) }, buffer_donor={ (1, {1}) }, entry_computation_layout={(f32[2]{0}, (f32[], s32[]))->(f32[2]{0}, f32[])}, replica_count=2, num_partitions=4, frontend_attributes={a="x, y",b={"c": [1, {}]}}, allow_spmd_sharding_propagation_to_output={true, false}

        FileNames
        1 "a.py"

        FunctionNames
        1 "f"

        FileLocations
        1 {file_name_id=1 function_name_id=1 line=2 end_line=2 column=3 end_column=4}

        StackFrames
        1 {file_location_id=1 parent_frame_id=1}

        g {
          ROOT x = s32[] parameter(0)
        }

        ENTRY e {
          x = f32[2]{0} parameter(0)
          y = (f32[], s32[]) parameter(1)
          y.0 = f32[] get-tuple-element(y), index=0
          ROOT z = (f32[2]{0}, f32[]) tuple(x, y.0)
        }"#,
    );
}

#[test]
fn sigils_signatures_and_operand_shapes() {
    check(
        "HloModule m:
        ENTRY %e.1 (a: f32[2], %b-c: (s32[], /*index=1*/ token[])) -> f32[2] {
          %b-c = (s32[], token[]) parameter(1)
          %a = f32[2]{0} parameter(0)
          ROOT %y_1 = f32[2]{0} add(f32[2]{0} %a, f32[2] %a) // the end
          %z = f32[2]{0} negate(a)
        }, execution_thread=\"host\"",
        "
        HloModule m

        ENTRY e.1 {
          b-c = (s32[], token[]) parameter(1)
          a = f32[2]{0} parameter(0)
          ROOT y_1 = f32[2]{0} add(a, a)
          z = f32[2]{0} negate(a)
        }, execution_thread=\"host\"",
    );
}

#[test]
fn reserved_names_keep_their_sigil() {
    check(
        "HloModule %token ENTRY e { %f32 = f32[] parameter(0) %nan = f32[] add(%f32, %f32) ROOT p0 = f32[] negate(%nan) }",
        "
        HloModule %token

        ENTRY e {
          %f32 = f32[] parameter(0)
          %nan = f32[] add(%f32, %f32)
          ROOT p0 = f32[] negate(%nan)
        }",
    );
}

#[test]
fn computations_without_a_name() {
    check(
        "ENTRY e {
          x = f32[4] parameter(0)
          i = s32[] parameter(1)
          z = f32[] constant(0)
          r = f32[] reduce(x, z), dimensions={0}, to_apply={
            a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT c = f32[] add(a, b)
          }
          ROOT s = f32[] conditional(i, r, r), branch_computations={ { ROOT p = f32[] parameter(0) },
            {q = f32[] parameter(0) ROOT n = f32[] negate(q)}}
        }",
        "
        HloModule module_e

        r.to_apply {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b)
        }

        s.branch_computations {
          ROOT p = f32[] parameter(0)
        }

        s.branch_computations.1 {
          q = f32[] parameter(0)
          ROOT n = f32[] negate(q)
        }

        ENTRY e {
          x = f32[4] parameter(0)
          i = s32[] parameter(1)
          z = f32[] constant(0)
          r = f32[] reduce(x, z), dimensions={0}, to_apply=r.to_apply
          ROOT s = f32[] conditional(i, r, r), branch_computations={s.branch_computations, s.branch_computations.1}
        }",
    );
}

#[test]
fn names_in_the_text_have_precedence() {
    check(
        "f { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply={ ROOT p = f32[] parameter(0) } }
         y.to_apply { ROOT p = f32[] parameter(0) }
         ENTRY e { x = f32[] parameter(0) s = f32[] add(negate(x), negate(x))
         negate.anon = f32[] abs(s) ROOT t = f32[] call(negate.anon), to_apply=y.to_apply }",
        "
        HloModule module_e

        y.to_apply.1 {
          ROOT p = f32[] parameter(0)
        }

        f {
          x = f32[] parameter(0)
          ROOT y = f32[] call(x), to_apply=y.to_apply.1
        }

        y.to_apply {
          ROOT p = f32[] parameter(0)
        }

        ENTRY e {
          x = f32[] parameter(0)
          negate.anon.2 = f32[] negate(x)
          negate.anon.1 = f32[] negate(x)
          s = f32[] add(negate.anon.2, negate.anon.1)
          negate.anon = f32[] abs(s)
          ROOT t = f32[] call(negate.anon), to_apply=y.to_apply
        }",
    );
}

#[test]
fn operations_and_elements_as_operands_and_shapes_left_out() {
    check(
        "ENTRY e {
          t = (f32[2], (f32[2], s32[])) parameter(0)
          c = f32[2] constant({1, nan})
          m = maximum(t#0, f32[2] t#1#0)
          n = multiply(add(m, t#0), f32[2] broadcast(f32[] constant(3)))
          o = dot(m, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}
          ROOT r = tuple(n, o)
        }"
        .replace("f32[2] broadcast(f32[] constant(3))", "c")
        .as_str(),
        "
        HloModule module_e

        ENTRY e {
          t = (f32[2], (f32[2], s32[])) parameter(0)
          c = f32[2] constant({1, nan})
          t_0 = f32[2] get-tuple-element(t), index=0
          t_1 = (f32[2], s32[]) get-tuple-element(t), index=1
          t_1_0 = f32[2] get-tuple-element(t_1), index=0
          m = f32[2] maximum(t_0, t_1_0)
          add.anon = f32[2] add(m, t_0)
          n = f32[2] multiply(add.anon, c)
          o = f32[] dot(m, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}
          ROOT r = (f32[2], f32[]) tuple(n, o)
        }",
    );
}

#[test]
fn a_single_instruction() {
    let printed = "
        HloModule module

        ENTRY entry {
          x = f32[2] parameter(0)
          operand = f32[2] parameter(1)
          ROOT NAME = f32[2] add(x, operand)
        }";
    check("ROOT sum = f32[2] add(f32[2] x, f32[2])", &printed.replace("NAME", "sum"));
    check("sum = f32[2] add(f32[2] %x, f32[2])", &printed.replace("NAME", "sum"));
    check("f32[2] add(f32[2] x, f32[2])", &printed.replace("NAME", "root"));
}

#[test]
fn asynchronous_forms_of_any_operation() {
    check(
        "ENTRY e {
          a = f32[2,3] parameter(0)
          b = f32[3,4] parameter(1)
          s = ((f32[2,3], f32[3,4]), f32[2,4], u32[]) dot-start(a, b), lhs_contracting_dims={1},
            rhs_contracting_dims={0}, async_execution_thread=\"other\", metadata={op_name=\"dot\"}
          u = ((f32[2,3], f32[3,4]), f32[2,4], u32[]) dot-update(s)
          ROOT d = f32[2,4] dot-done(u), async_execution_thread=\"other\"
        }",
        "
        HloModule module_e

        async_wrapped {
          async_param.0 = f32[2,3] parameter(0)
          async_param.1 = f32[3,4] parameter(1)
          ROOT async_op = f32[2,4] dot(async_param.0, async_param.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name=\"dot\"}
        }, execution_thread=\"other\"

        ENTRY e {
          a = f32[2,3] parameter(0)
          b = f32[3,4] parameter(1)
          s = ((f32[2,3], f32[3,4]), f32[2,4], u32[]) async-start(a, b), async_execution_thread=\"other\", calls=async_wrapped, metadata={op_name=\"dot\"}
          u = ((f32[2,3], f32[3,4]), f32[2,4], u32[]) async-update(s)
          ROOT d = f32[2,4] async-done(u)
        }",
    );
    let with = |line: &str| {
        format!(
            "ENTRY e {{\n a = f32[] parameter(0)\n s = ((f32[]), f32[], u32[]) abs-start(a)\n {line}\n}}"
        )
    };
    check_error(&with("d = f32[] negate-done(s)"), "4:12", "the operand began abs, not negate");
    check_error(&with("d = f32[] abs-done(a)"), "4:12", "the operand must be an async-start");
    let other = with("d = f32[] abs-done(s), async_execution_thread=\"x\"");
    check_error(&other, "4:48", "differs from that of the async-start");
    check_error(&with("d = f32[] abs-start(a)"), "4:12", "((operands), result, …)");
    check_error(&with("d = f32[] copy-update(s)"), "4:12", "unknown operation `copy-update`");
}

#[test]
fn attributes_of_any_instruction() {
    check(
        r#"ENTRY e {
          x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2] metadata={op_name="s}"}}, parameter_replication={true}
          n = f32[4]{0} negate(x), metadata={op_type="neg", op_name="a\"\\b\n\303\251" source_line=7 source_file='f.py'
            source_end_line=8 profile_type={1} stack_frame_id=1}, backend_config={"k": [{"s": "}\""}]}
          ROOT y = f32[4]{0} exponential(n), control-predecessors={x, %n}, frontend_attributes={_a.b="c", d={"e": "f"}},
            statistics={visualizing_index=0, s=1.5}, origin={{"n" {0}}}, result_accuracy={mode=highest}, backend_config="raw"
        }"#,
        r#"
        HloModule module_e

        ENTRY e {
          x = f32[4]{0} parameter(0), sharding={devices=[2]<=[2] metadata={op_name="s}"}}, parameter_replication={true}
          n = f32[4]{0} negate(x), metadata={op_type="neg" op_name="a\"\\b\né" source_file="f.py" source_line=7 source_end_line=8 profile_type={1} stack_frame_id=1}, backend_config={"k": [{"s": "}\""}]}
          ROOT y = f32[4]{0} exponential(n), frontend_attributes={_a.b="c",d={"e": "f"}}, control-predecessors={x, n}, backend_config="raw", statistics={visualizing_index=0, s=1.5}, origin={{"n" {0}}}, result_accuracy={mode=highest}
        }"#,
    );
    let module =
        parse("ENTRY e { ROOT x = f32[] parameter(0), metadata={op_name=\"a\"} }").unwrap();
    let options = PrintOptions { metadata: false, ..PrintOptions::default() };
    assert!(!print_with(&module, options).contains("metadata"));
}

#[test]
fn values_with_spaces_and_comments() {
    check(
        "ENTRY e {
          x = f32[4] parameter(0)
          ROOT y = f32[8] all-gather(x), replica_groups=[2,2] <= [2,2] T(1,0) , dimensions = { 0 /*first*/ }, channel_id=1,
            use_global_device_ids=true
        }",
        "
        HloModule module_e

        ENTRY e {
          x = f32[4] parameter(0)
          ROOT y = f32[8] all-gather(x), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}, use_global_device_ids=true
        }",
    );
}

#[test]
fn a_literal_as_an_attribute() {
    check(
        "ENTRY e { ROOT r = f32[] custom-call(), custom_call_target=\"f\", literal=( f32[] 1, s32[2]{0} {1, 2} ) }",
        "
        HloModule module_e

        ENTRY e {
          ROOT r = f32[] custom-call(), custom_call_target=\"f\", literal=( f32[] 1, s32[2]{0} {1, 2} )
        }",
    );
}

#[test]
fn wrong_text() {
    check_error("", "1:1", "expected a computation, found the end of the text");
    check_error("HloModule m", "1:12", "expected a computation");
    check_error("HloModule", "1:10", "the name of the module");
    check_error("HloModule m, a=1, a=2", "1:19", "a second attribute `a`");
    check_error("HloModule m, replica_count=x", "1:28", "expected a non-negative integer");
    check_error("ENTRY e {}", "1:10", "module.C1");
    check_error("ENTRY e { x = f32[] parameter(0)", "1:33", "expected an instruction or `}`");
    check_error("/* é\n\n */ $", "3:5", "found `$`");
    check_error("ENTRY e { x = f32[] parameter(0) /* }", "1:34", "a comment without its end");
    check_error("ENTRY e { x = f32[] parameter(0) } }", "1:36", "the name of a computation");
    check_error(
        "ENTRY e { x = f32[] parameter(0) }\nENTRY f { x = f32[] parameter(0) }",
        "2:1",
        "a second ENTRY",
    );
    let with = |line: &str| format!("ENTRY e {{\n  x = f32[2] parameter(0)\n  {line}\n}}\n");
    check_error(&with("y = f32[2] nagate(x)"), "3:14", "y: unknown operation `nagate`");
    check_error(&with("y = convert(x)"), "3:7", "convert needs its shape");
    check_error(&with("y = f32[2] abs(z)"), "3:18", "y: no instruction `z` stands before");
    check_error(&with("y = f32[2] abs(f32[3] x)"), "3:18", "`x` is f32[3] here, but f32[2] above");
    check_error(&with("y = f32[2] abs(x), dims={0}"), "3:22", "abs has no attribute `dims`");
    check_error(&with("y = f32[2] abs(x), a=1, a=2"), "3:27", "a second attribute `a`");
    check_error(&with("y = f32[2] abs(x), a=\"1"), "3:24", "without its closing quote");
    check_error(&with("y = f32[2] abs(x), a={(})"), "3:26", "the bracket that closes");
    check_error(&with("y = f32[2] abs(x), a="), "4:1", "expected a value, found `}`");
    check_error(&with("y = f32[2] abs(x,)"), "3:20", "expected an operand");
    check_error(&with("y = f32[2] abs(abs(x), b=1)"), "3:26", "no instruction `b`");
    check_error(&with("y = abs(x#0)"), "3:11", "tuple");
    check_error(&with("ROOT y = f32[2] abs(x)\n ROOT z = f32[2] abs(y)"), "4:2", "a second ROOT");
    check_error(&with("y = f32[2] abs(x), metadata={op_name=3}"), "3:40", "op_name");
    check_error(&with("y = f32[2] abs(x), metadata={a=1 a=2}"), "3:36", "a second attribute");
    check_error(&with("y = f32[2] call(x), to_apply={\n z = f32[2] oops()\n }"), "4:13", "oops");
    check_error(
        "ENTRY e (x: f32[3]) -> f32[2] { ROOT x = f32[2] parameter(0) }",
        "1:9",
        "parameter 0",
    );
    check_error("ENTRY e () -> f32[2] { ROOT x = f32[2] parameter(0) }", "1:9", "0 parameters");
    check_error("ENTRY e (x: f32[2]) -> f32[3] { ROOT x = f32[2] parameter(0) }", "1:24", "ROOT x");
    check_error("ENTRY e { ROOT x = f32[2] parameter(0) }, a=1", "1:43", "no attribute `a`");
}

/// Each error is found, and none that only follows from another.
#[test]
fn all_errors_at_once() {
    let text = "HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] oops(a)
  c = f32[] add(a, b)
  ROOT d = f32[] add(a, c),
    what=1
}

g {
  ROOT x = f32[] parameter(zero)
}

ENTRY e {
  x = f32[] parameter(0)
  y = f32[] call(x), to_apply=f
  z = f32[] call(x), to_apply=h
  w = f32[3] constant({1, 2})
  ROOT v = f32[] negate(z)
}
";
    let places: Vec<_> = errors(text).iter().map(|e| e.location().unwrap().to_string()).collect();
    assert_eq!(places, ["4:13", "11:28", "17:31", "18:28"]);

    let many = format!("ENTRY e {{\n{}}}", "  x = f32[] oops()\n".repeat(1000));
    assert_eq!(errors(&many).len(), MAX_ERRORS);
}

#[track_caller]
fn check_limit(text: &str) {
    let errors = errors(text);
    assert_eq!(errors.first().map(Error::code), Some(Code::ResourceExhausted), "{errors:?}");
}

#[test]
fn nesting_is_limited() {
    let n = 100_000;
    check_limit(&format!("ENTRY e {{ x = {}", "(".repeat(n)));
    check_limit(&format!("ENTRY e {{ x = f32[] {}", "abs(".repeat(n)));
    check_limit(&format!("ENTRY e {{ {}", "x = f32[] call(), to_apply={".repeat(n)));
    check_limit(&format!("ENTRY e {{ x = f32[] iota(), iota_dimension={}", "{".repeat(n)));
    check_limit(&format!("HloModule m, a={}", "[".repeat(n)));
    check_limit(&format!("ENTRY e {{ x = f32[] abs(), backend_config={}", "{\"a\":".repeat(n)));
    // Just inside the limit.
    let deep = MAX_DEPTH - 3;
    let text = format!(
        "ENTRY e {{ x = f32[] parameter(0) ROOT y = {}x{} }}",
        "abs(".repeat(deep),
        ")".repeat(deep)
    );
    assert_eq!(parse(&text).unwrap().entry().instrs().len(), deep + 1);
}

#[test]
fn inferred_shapes_are_limited() {
    let mut text = "ENTRY e { t0 = f32[] parameter(0)\n".to_owned();
    for i in 0..64 {
        text += &format!("t{} = tuple(t{i}, t{i})\n", i + 1);
    }
    check_limit(&(text + "}"));
    let large = format!("({})", vec!["f32[]"; 100_000].join(","));
    let mut text = format!("ENTRY e {{ x = (f32[], {large}) parameter(0)\n");
    for i in 0..1000 {
        text += &format!("y{i} = get-tuple-element(x), index=1\n");
    }
    check_limit(&(text + "}"));
    let elided = "ENTRY e { x = f32[1073741824] constant({...}) }";
    check_limit(elided);
}

/// Would take minutes if anything were quadratic.
#[test]
fn large_texts_take_linear_time() {
    let n = 100_000;
    let mut lines = "ENTRY e { x0 = f32[] parameter(0) ".to_owned();
    for i in 1..n {
        lines += &format!("x{i} = f32[] add(x{}, x{}), metadata={{op_name=\"é\"}} ", i - 1, i / 2);
    }
    let module = parse(&(lines + "}")).unwrap();
    assert_eq!(module.entry().instrs().len(), n);
    assert!(crate::verify(module).is_ok());

    let mut calls = "f { p = f32[] parameter(0)\n".to_owned();
    for i in 0..n / 2 {
        calls += &format!("a{i} = f32[] abs(p)\n");
    }
    calls += "} ENTRY e { x = f32[] parameter(0)\n";
    for i in 0..n / 2 {
        calls += &format!("c{i} = call(x), to_apply=f\n");
    }
    assert!(crate::verify(parse(&(calls + "}")).unwrap()).is_ok());

    let attributes: String = (0..n).map(|i| format!(", a{i}=1")).collect();
    assert_eq!(errors(&format!("ENTRY e {{ x = f32[] parameter(0){attributes} }}")).len(), 1);
    let text = format!("HloModule m{attributes} ENTRY e {{ x = f32[] parameter(0) }}");
    assert_eq!(parse(&text).unwrap().config.other.len(), n);
    let comments = format!("ENTRY e {{ x = f32[] {} parameter(0) }}", "/* */ // \n".repeat(n));
    assert!(parse(&comments).is_ok());
}

/// No prefix and no mutation of a text that has a bit of everything makes the parser panic.
#[test]
fn broken_texts_give_errors() {
    let text = r#"HloModule m, entry_computation_layout={(f32[2]{0:T(8)S(1)})->f32[2]}, a={[x]}
f (p: f32[2]) -> f32[2] { ROOT p = f32[2]{0} parameter(0) }, execution_thread="é"
ENTRY e { /* é */
  x = f32[2]{0} parameter(0), sharding={replicated}, metadata={op_name="\x41" source_line=3}
  c = c64[2,1] constant({{(1, -nan(0x1f))}, {(inf, -2.5e-3)}})
  t = (s4[], pred[<=2]) constant((-8, {true, 0})) // s
  g = add(negate(x), f32[2] %x), backend_config={"a": "\""}
  s = ((f32[2]), f32[2], s32[]) call-start(x), to_apply={ ROOT q = f32[2] parameter(0) }
  ROOT d = f32[2] call-done(s), control-predecessors={t, g}, frontend_attributes={a="b"}
}"#;
    assert!(parse(text).is_ok());
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let _: Result<Module, _> = parse(&text[..end]);
    }
    let alphabet: Vec<char> = "{}()[]<=#%,:\"'\\/*-+.é\n 09azTROOT\u{0}".chars().collect();
    let mut seed = 1u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for _ in 0..5_000 {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..random(4) + 1 {
            let at = random(chars.len());
            match random(3) {
                0 => chars[at] = alphabet[random(alphabet.len())],
                1 => chars.insert(at, alphabet[random(alphabet.len())]),
                _ => drop(chars.drain(at..(at + random(20)).min(chars.len()))),
            }
        }
        if let Ok(module) = parse(&chars.iter().collect::<String>()) {
            let printed = print(&module);
            let again = parse(&printed).unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
            assert_eq!(print(&again), printed);
            let _ = crate::verify(module);
        }
    }
}

#[test]
fn stack_frames_are_read_and_found() {
    let text = r#"HloModule m

FileNames
1 "model.py"
2 "train.py"

FunctionNames
1 "attention"
2 "step"

FileLocations
1 {file_name_id=2 function_name_id=2 line=90 end_line=90 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=31 end_line=32 column=8 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

ENTRY e {
  x = f32[] parameter(0)
  a = f32[] negate(x), metadata={op_name="jit(step)/neg" stack_frame_id=2}
  b = f32[] negate(a), metadata={op_name="jit(step)/neg" stack_frame_id=7}
  ROOT c = f32[] negate(b), metadata={source_file="a.py" source_line=3 stack_frame_id=2}
}
"#;
    let module = parse(text).unwrap();
    assert_eq!(print(&module), text);
    let frames = module.config.stack_frames.as_ref().unwrap();
    let calls: Vec<_> = frames.calls(2).map(|call| (call.function, call.location.line)).collect();
    assert_eq!(calls, [("attention", 31), ("step", 90)]);
    let line = |i: usize| {
        let metadata = module.entry().instrs()[i].metadata()?;
        module.source_line(metadata).map(|line| line.to_string())
    };
    assert_eq!(line(0), None);
    assert_eq!(line(1).as_deref(), Some("model.py:31, jit(step)/neg"));
    assert_eq!(line(2).as_deref(), Some("jit(step)/neg"));
    assert_eq!(line(3).as_deref(), Some("a.py:3"));
    for (wrong, why) in [
        (text.replace("2 \"step\"", "3 \"step\""), "entry 3 of FunctionNames where 2 is due"),
        (text.replace("column=4", "columns=4"), "unknown attribute `columns`"),
        (text.replace("line=90 end", "line=4294967296 end"), "4294967296 is more than"),
        (text.replace("stack_frame_id=7", "stack_frame_id=-1"), "stack_frame_id"),
        (text.replace("StackFrames", "StackFrame"), "`StackFrames`"),
    ] {
        let errors = parse(&wrong).unwrap_err();
        assert!(errors[0].to_string().contains(why), "{}", errors[0]);
    }
}
