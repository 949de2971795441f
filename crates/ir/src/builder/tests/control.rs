use super::*;
use crate::BackendConfig;
use crate::ElementType::F32;

#[test]
fn calls() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[]"]);
            b.call(&add(), &[&x, &x]);
            let seven = {
                let b = XlaBuilder::new("seven");
                b.constant_r0(7f32);
                b.build().expect("a computation")
            };
            b.call(&seven, XlaOp::NONE);
        },
        "%2 = f32[] call(x, x), to_apply=add_f32
         ROOT %3 = f32[] call(), to_apply=seven",
    );
}

/// E4 "CompositeCall": the attributes of its example.
#[test]
fn composite_calls() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[]"]);
            let f = function("f", "f32[]", |x| drop(x.exp()));
            let attributes = "{n = 1 : i32, tensor = dense<1> : tensor<i32>}";
            b.composite_call(&f, &[&x], "foo.bar", Some(attributes), 1);
            b.composite_call(&f, &[&x], "baz", None, 0);
        },
        "%3 = f32[] call(x), to_apply=f, is_composite=true, frontend_attributes={composite.name=\"foo.bar\",composite.attributes={n = 1 : i32, tensor = dense<1> : tensor<i32>},composite.version=\"1\"}
         ROOT %4 = f32[] call(x), to_apply=f, is_composite=true, frontend_attributes={composite.name=\"baz\",composite.attributes={},composite.version=\"0\"}",
    );
}

#[test]
fn maps() {
    check(
        |b| {
            let [x, s] = parameters(b, ["f32[2,3]", "f32[]"]);
            b.map(&[&x, &x], &add(), &[0, 1]);
            b.map(&[&s, &x], &add(), &[0, 1]);
        },
        "%3 = f32[2,3] map(x, x), dimensions={0,1}, to_apply=add_f32
         %4 = f32[2,3] broadcast(y), dimensions={}
         ROOT %8 = f32[2,3] map(%4, x), dimensions={0,1}, to_apply=add_f32.1",
    );
}

#[test]
fn loops() {
    check(
        |b| {
            let [x] = parameters(b, ["s32[]"]);
            let condition = function("condition", "s32[]", |x| drop(x.lt(1000)));
            let body = function("body", "s32[]", |x| drop(x + 1));
            x.while_loop(&condition, &body);
        },
        "ROOT %5 = s32[] while(x), condition=condition, body=body",
    );
}

#[test]
fn conditionals() {
    check(
        |b| {
            let [p, x, y, i] = parameters(b, ["pred[]", "f32[]", "f32[2]", "s32[]"]);
            let on_true = function("on_true", "f32[]", |x| drop(x.exp()));
            let on_false = function("on_false", "f32[2]", |x| drop(x.reduce_all(0, &add())));
            p.conditional(&x, &on_true, &y, &on_false);
            i.conditional_indexed(&[&on_true, &on_false, &on_true], &[&x, &y, &x]);
        },
        "%7 = f32[] conditional(x, y, z), true_computation=on_true, false_computation=on_false
         ROOT %8 = f32[] conditional(u, y, z, y), branch_computations={on_true, on_false, on_true}",
    );
}

#[test]
fn tokens_and_barriers() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            let token = b.after_all(&[b.create_token(), b.create_token()]);
            x.add_dependency(&token)
                .optimization_barrier()
                .domain("{kind=\"sharding\", entry={}, exit={}}");
        },
        "%2 = token[] after-all()
         %3 = token[] after-all()
         %4 = token[] after-all(%2, %3)
         %5 = f32[2] add-dependency(x, %4)
         %6 = f32[2] opt-barrier(%5)
         ROOT %7 = f32[2] domain(%6), domain={kind=\"sharding\", entry={}, exit={}}",
    );
}

#[test]
fn asynchronous_operations() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            let f = function("f", "f32[2]", |x| drop(x.exp()));
            let thread = XlaBuilder::new("thread");
            thread.set_execution_thread(Some("parallel"));
            thread.parameter(0, shape("f32[2]"), "y").exp();
            let thread = thread.build().expect("a computation");
            b.async_start(&thread, &[&x]).async_update().async_done();
            x.copy_start().copy_done();
            b.fusion("kLoop", &f, &[&x]);
        },
        "%2 = ((f32[2]), f32[2], u32[]) async-start(x), async_execution_thread=\"parallel\", calls=thread
         %3 = ((f32[2]), f32[2], u32[]) async-update(%2)
         %4 = f32[2] async-done(%3)
         %5 = (f32[2], f32[2], u32[]) copy-start(x)
         %6 = f32[2] copy-done(%5)
         ROOT %9 = f32[2] fusion(x), kind=kLoop, calls=f",
    );
}

#[test]
fn custom_calls() {
    check(
        |b| {
            let [x, y] = parameters(b, ["f32[2]", "f32[2,3]"]);
            b.custom_call("myfunc", &[&x, &y], shape("f32[3,3]"));
            let options = CustomCallOptions {
                backend_config: Some(BackendConfig::of("a \"b\"")),
                has_side_effect: true,
                api_version: ApiVersion::StatusReturning,
                called_computations: vec![scalar(BinaryOp::Add, F32)],
                operand_shapes_with_layout: vec![shape("f32[2]{0}"), shape("f32[2,3]{0,1}")],
                output_operand_aliasing: vec![OutputOperandAlias {
                    output: vec![],
                    operand: 1,
                    operand_index: vec![],
                }],
                schedule: Some("SCHEDULE_LATEST".to_owned()),
                attributes: vec![],
            };
            b.custom_call_with("other", &[&x, &y], shape("f32[2,3]{0,1}"), &options);
        },
        "%3 = f32[3,3] custom-call(x, y), custom_call_target=\"myfunc\"
         ROOT %4 = f32[2,3]{0,1} custom-call(x, y), custom_call_target=\"other\", operand_layout_constraints={f32[2]{0}, f32[2,3]{0,1}}, custom_call_has_side_effect=true, output_to_operand_aliasing={{}: (1, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_STATUS_RETURNING, called_computations={add_f32}, backend_config=\"a \\\"b\\\"\"",
    );
}
