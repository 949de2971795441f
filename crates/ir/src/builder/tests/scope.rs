use super::*;
use crate::{AliasKind, BinaryOp, Metadata};

fn named(name: &str) -> Metadata {
    Metadata { op_name: Some(name.to_owned()), ..Metadata::default() }
}

#[test]
fn metadata() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[]"]);
            b.set_op_metadata(named("a"));
            x.exp();
            b.set_one_shot_op_metadata(named("b"));
            x.exp();
            b.with_op_metadata(named("c"), || x.exp());
            x.exp();
            b.clear_op_metadata();
            x.exp();
            x.exp().set_metadata(named("d"));
        },
        "%2 = f32[] exponential(x), metadata={op_name=\"a\"}
         %3 = f32[] exponential(x), metadata={op_name=\"b\"}
         %4 = f32[] exponential(x), metadata={op_name=\"c\"}
         %5 = f32[] exponential(x), metadata={op_name=\"a\"}
         %6 = f32[] exponential(x)
         ROOT %7 = f32[] exponential(x), metadata={op_name=\"d\"}",
    );
}

#[test]
fn shardings() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            b.set_sharding("replicated");
            x.exp();
            b.with_sharding("devices=[2]0,1", || x.exp()).set_sharding(Some("maximal device=0"));
            x.exp().set_sharding(None);
            b.clear_sharding();
            x.exp();
        },
        "%2 = f32[2] exponential(x), sharding={replicated}
         %3 = f32[2] exponential(x), sharding={maximal device=0}
         %4 = f32[2] exponential(x)
         ROOT %5 = f32[2] exponential(x)",
    );
}

#[test]
fn frontend_attributes() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[]"]);
            b.set_frontend_attributes(&[("a", "1 \"2\""), ("b", "{c=3}")]);
            let y = x.exp();
            y.set_frontend_attribute("a", "4");
            b.with_frontend_attributes(&[("d", "5")], || x.exp());
            x.exp();
            b.clear_frontend_attributes();
            x.exp();
        },
        "%2 = f32[] exponential(x), frontend_attributes={b={c=3},a=\"4\"}
         %3 = f32[] exponential(x), frontend_attributes={d=\"5\"}
         %4 = f32[] exponential(x), frontend_attributes={a=\"1 \\\"2\\\"\",b={c=3}}
         ROOT %5 = f32[] exponential(x)",
    );
}

#[test]
fn control_predecessors_and_configurations() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[]"]);
            let first = x.exp();
            let second = x.log();
            second.add_control_predecessor(&first);
            second.set_backend_config("fast");
        },
        "%2 = f32[] exponential(x)
         ROOT %3 = f32[] log(x), control-predecessors={%2}, backend_config=\"fast\"",
    );
    let b = XlaBuilder::new("b");
    let x = b.constant_r0(1f32);
    x.add_control_predecessor(x.exp());
    assert!(b.build().is_err());
}

#[test]
fn errors_name_the_line_of_the_framework_s_program() {
    let b = XlaBuilder::new("b");
    let [x, y] = parameters(&b, ["f32[2]", "f32[3]"]);
    let line = |line| Metadata {
        source_file: Some("model.py".to_owned()),
        source_line: Some(line),
        ..Metadata::default()
    };
    b.set_op_metadata(line(31));
    x.binary(BinaryOp::Add, y);
    let error = b.build().expect_err("shapes that do not fit");
    assert_eq!(error.source_line().map(ToString::to_string).as_deref(), Some("model.py:31"));
}

#[test]
fn aliases_and_donors() {
    let b = XlaBuilder::new("b");
    let [x, y] = parameters(&b, ["f32[2]", "(f32[2], f32[])"]);
    b.tuple(&[&x, &y]);
    b.set_up_alias(&[0], 0, &[], AliasKind::May);
    b.add_buffer_donor(1, &[0]);
    let printed = text::print(b.build().expect("a program").module());
    assert!(printed.contains("input_output_alias={ {0}: (0, {}, may-alias) }"), "{printed}");
    assert!(printed.contains("buffer_donor={ (1, {0}) }"), "{printed}");
}
