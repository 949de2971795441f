//! What front ends say of programs survives the way through StableHLO, as text and as bytecode.

use helio_ir::text::{parse, print};
use helio_stablehlo::{bytecode, lower, raise, text};

/// HLO made of the StableHLO, read from its text and from its bytecode, that HLO text becomes.
fn ways_back(hlo: &str) -> [String; 2] {
    let module = parse(hlo).unwrap();
    let raised = text::print(&raise(&module, true).unwrap());
    let from_text = lower(&text::parse(&raised).unwrap()).unwrap();
    let written =
        bytecode::write(&raise(&module, false).unwrap(), bytecode::Version::WRITTEN).unwrap();
    let from_bytes = lower(&bytecode::read(&written).unwrap()).unwrap();
    [print(&from_text), print(&from_bytes)]
}

#[track_caller]
fn keeps(hlo: &str, parts: &[&str]) {
    for found in ways_back(hlo) {
        for part in parts {
            assert!(found.contains(part), "no {part} in\n{found}");
        }
    }
}

#[test]
fn attributes_and_shardings_are_kept() {
    let attributes = r#"frontend_attributes={a="b\"c",d={"e": 1}}"#;
    let hlo = format!(
        "HloModule m, frontend_attributes={{n=\"o\"}}\n
         ENTRY e {{
           x = f32[4] parameter(0), sharding={{devices=[2]<=[2]}}, frontend_attributes={{p=\"q\"}}
           y = f32[4] negate(x), sharding={{devices=[2]<=[2] shard_as 7}}, {attributes}
           c = f32[4] constant({{1, 2, 3, 4}}), frontend_attributes={{k=\"1\"}}
           ROOT z = (f32[4], s32[4]) sort(y, s32[4] iota()), dimensions={{0}}, to_apply={{
             a = f32[] parameter(0) b = f32[] parameter(1)
             i = s32[] parameter(2) j = s32[] parameter(3)
             ROOT r = pred[] compare(a, b), direction=LT }},
             sharding={{{{devices=[2]<=[2]}}, {{replicated}}}}
         }}"
    );
    let hlo = hlo.replace("s32[4] iota()", "i").replace(
        "c = f32[4]",
        "i = s32[4] iota(), iota_dimension=0
           c = f32[4]",
    );
    keeps(
        &hlo,
        &[
            r#", frontend_attributes={n="o"}"#,
            r#"parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={p="q"}"#,
            &format!("sharding={{devices=[2]<=[2] shard_as 7}}, {attributes}"),
            r#"frontend_attributes={k="1"}"#,
            "sharding={{devices=[2]<=[2]}, {replicated}}",
        ],
    );
}

#[test]
fn tuples_of_one_array_lie_as_it_does() {
    let hlo = "ENTRY e {
           x = f32[4] parameter(0)
           t = (f32[4]) tuple(x)
           w = (f32[4]) while(t), condition={
             s = (f32[4]) parameter(0) ROOT c = pred[] constant(false) }, body={
             ROOT s = (f32[4]) parameter(0) }, sharding={{devices=[2]<=[2]}}
           ROOT r = f32[4] get-tuple-element(w), index=0
         }";
    for found in ways_back(hlo) {
        let line = found.lines().find(|line| line.contains(" while(")).unwrap();
        assert!(line.contains("sharding={{devices=[2]<=[2]}}"), "{found}");
    }
    let of = |sharding: &str| {
        let program = format!(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
               %0 = stablehlo.negate %x {{mhlo.sharding = \"{sharding}\"}} : tensor<4xf32>
               return %0 : tensor<4xf32>
             }}"
        );
        print(&lower(&text::parse(&program).unwrap()).unwrap())
    };
    for sharding in ["{devices=[2]<=[2]}", "{{devices=[2]<=[2]}}"] {
        let found = of(sharding);
        assert!(
            found.contains("negate") && found.contains(", sharding={devices=[2]<=[2]}"),
            "{found}"
        );
    }
}

#[test]
fn configurations_are_what_they_were() {
    let call = |attributes: &str| {
        format!(
            "ENTRY e {{ x = f32[4] parameter(0)
             ROOT y = f32[4] custom-call(x), custom_call_target=\"f\"{attributes} }}"
        )
    };
    for config in [r#"{"top_k":3,"is_fallback":true}"#, r#""a \"b\"""#, "{a = 1 : i64}"] {
        let attributes = format!(", backend_config={config}");
        keeps(&call(&attributes), &[&attributes]);
    }
    // What typed calls are told is a dictionary, or StableHLO's verifier refuses them.
    let typed = ", api_version=API_VERSION_TYPED_FFI";
    keeps(&call(&format!("{typed}, backend_config={{\"a\":1}}")), &["{a = 1 : i64}"]);
    let module = parse(&call(typed)).unwrap();
    let raised = text::print(&raise(&module, true).unwrap());
    assert!(raised.contains("backend_config = {}"), "{raised}");
    keeps(&call(typed), &[&format!("{typed}\n")]);
    let hlo = r#"ENTRY e { t = token[] after-all()
        i = (f32[], token[]) infeed(t), infeed_config="a\"b\\"
        v = f32[] get-tuple-element(i), index=0
        u = token[] get-tuple-element(i), index=1
        o = token[] outfeed(v, u), outfeed_config="c\n\"", outfeed_shape=f32[]
        ROOT r = f32[] negate(v) }"#;
    keeps(hlo, &[r#"infeed_config="a\"b\\""#, r#"outfeed_config="c\n\"""#]);
}

#[test]
fn what_is_received_later_is_made_there() {
    let hlo = r#"HloModule m, replica_count=2
        ENTRY e { x = f32[] parameter(0) t = token[] after-all()
        r = (f32[], u32[], token[]) recv(t), channel_id=1,
          frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
        s = (f32[], u32[], token[]) send(x, t), channel_id=1,
          frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}
        d = (f32[], token[]) recv-done(r), channel_id=1
        e = token[] send-done(s), channel_id=1
        ROOT v = f32[] get-tuple-element(d), index=0 }"#;
    for found in ways_back(hlo) {
        let [send, recv] = [" send(", " recv("].map(|op| found.find(op).unwrap());
        assert!(send < recv, "{found}");
        assert_eq!(found.matches(" recv(").count(), 1);
        helio_ir::verify(parse(&found).unwrap()).unwrap();
    }
}

#[test]
fn any_algorithm_of_f8_is_kept() {
    for name in ["dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum"] {
        let hlo = format!(
            "ENTRY e {{ x = f8e4m3fn[2,2] parameter(0)
             ROOT y = f32[2,2] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
             algorithm={name} }}"
        );
        keeps(&hlo, &[&format!("algorithm={name}")]);
    }
}
