//! What case files cannot show: partitions, and programs that are too large to be looked at.

use super::warnings;
use crate::text::parse;
use crate::verify;

const ADD: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }";

/// The rules that a program breaks, errors or else warnings.
fn rules(text: &str) -> Vec<&'static str> {
    let found = match verify(parse(text).unwrap()) {
        Ok(module) => warnings(&module),
        Err(errors) => errors.into_vec(),
    };
    found.iter().filter_map(|e| e.rule_id()).collect()
}

/// A conditional on `predicate` whose one branch does `collective` on `x`.
fn chosen(config: &str, predicate: &str, collective: &str) -> Vec<&'static str> {
    rules(&format!(
        "HloModule m{config}
         {ADD}
         meet {{ x = f32[] parameter(0) ROOT r = f32[] {collective} }}
         pass {{ ROOT x = f32[] parameter(0) }}
         ENTRY e {{
           x = f32[] parameter(0)
           zero = u32[] constant(0)
           replica = u32[] replica-id()
           partition = u32[] partition-id()
           sum = f32[] all-reduce(x), replica_groups={{}}, to_apply=add
           p = pred[] {predicate}
           ROOT r = f32[] conditional(p, x, x), true_computation=meet, false_computation=pass
         }}"
    ))
}

#[test]
fn those_that_meet_have_the_same_predicate() {
    let all = ", replica_count=2, num_partitions=2";
    let (by_replica, by_partition) =
        ("compare(replica, zero), direction=EQ", "compare(partition, zero), direction=EQ");
    let across_replicas = "all-reduce(x), replica_groups={}, to_apply=add";
    let across_partitions = "collective-permute(x), channel_id=1, source_target_pairs={{0,1}}";
    let across_all = "all-reduce(x), channel_id=1, replica_groups={}, to_apply=add";
    let of_ids = "all-reduce(x), channel_id=1, replica_groups={{0,2},{1,3}}, \
                  use_global_device_ids=true, to_apply=add";
    let bad = ["collective.C1"];
    for config in [all, ""] {
        assert_eq!(chosen(config, by_replica, across_replicas), bad);
        assert_eq!(chosen(config, by_replica, across_partitions), [""; 0]);
        assert_eq!(chosen(config, by_partition, across_replicas), [""; 0]);
        assert_eq!(chosen(config, by_partition, across_partitions), bad);
        assert_eq!(chosen(config, by_replica, across_all), bad);
        assert_eq!(chosen(config, by_partition, across_all), bad);
    }
    assert_eq!(chosen(all, by_replica, of_ids), bad);
    assert_eq!(chosen(all, by_partition, of_ids), [""; 0]);
    // The sum over replicas is the same for those of one partition.
    let by_sum = "compare(sum, x), direction=EQ";
    assert_eq!(chosen(all, by_sum, across_replicas), bad);
    let by_sum = "compare(sum, sum), direction=LT";
    assert_eq!(chosen(all, by_sum, across_replicas), [""; 0]);
    assert_eq!(chosen(all, by_sum, across_partitions), bad);
    assert_eq!(chosen(all, "constant(true)", across_all), [""; 0]);
}

#[test]
fn loops_count_alike_although_their_data_differ() {
    let text = |bound: &str| {
        format!(
            "{ADD}
             c {{ s = (s32[], f32[], s32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0
               n = s32[] get-tuple-element(s), index=2
               ROOT p = pred[] compare(i, n), direction=LT }}
             b {{ s = (s32[], f32[], s32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0
               x = f32[] get-tuple-element(s), index=1
               n = s32[] get-tuple-element(s), index=2
               one = s32[] constant(1)
               next = s32[] add(i, one)
               sum = f32[] all-reduce(x), replica_groups={{}}, to_apply=add
               ROOT r = (s32[], f32[], s32[]) tuple(next, sum, n) }}
             ENTRY e {{
               x = f32[] parameter(0)
               y = s32[] parameter(1)
               zero = s32[] constant(0)
               ten = s32[] constant(10)
               s = (s32[], f32[], s32[]) tuple(zero, x, {bound})
               ROOT w = (s32[], f32[], s32[]) while(s), condition=c, body=b }}"
        )
    };
    assert_eq!(rules(&text("ten")), [""; 0]);
    assert_eq!(rules(&text("y")), ["collective.C1"]);
}

/// Loops may hand transfers from one iteration to the next, so nothing is said about them.
#[test]
fn transfers_in_loops_are_no_cycles() {
    let pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}";
    let state = "((f32[], u32[], token[]), f32[])";
    let text = format!(
        "HloModule m, is_scheduled=true
         c {{ s = {state} parameter(0) ROOT p = pred[] constant(false) }}
         b {{ s = {state} parameter(0)
           r0 = (f32[], u32[], token[]) get-tuple-element(s), index=0
           d = (f32[], token[]) recv-done(r0), channel_id=1
           x = f32[] get-tuple-element(d), index=0
           t = token[] get-tuple-element(d), index=1
           s1 = (f32[], u32[], token[]) send(x, t), channel_id=1, {pairs}
           sent = token[] send-done(s1), channel_id=1
           r1 = (f32[], u32[], token[]) recv(sent), channel_id=1, {pairs}
           ROOT r = {state} tuple(r1, x) }}
         ENTRY e {{ x = f32[] parameter(0) t = token[] after-all()
           s0 = (f32[], u32[], token[]) send(x, t), channel_id=1, {pairs}
           sent = token[] send-done(s0), channel_id=1
           r0 = (f32[], u32[], token[]) recv(sent), channel_id=1, {pairs}
           first = {state} tuple(r0, x)
           w = {state} while(first), condition=c, body=b
           r1 = (f32[], u32[], token[]) get-tuple-element(w), index=0
           ROOT d = (f32[], token[]) recv-done(r1), channel_id=1 }}"
    );
    assert_eq!(rules(&text), [""; 0]);
}

#[test]
fn large_programs_take_no_long() {
    let begin = std::time::Instant::now();
    // Each send depends on all before it.
    let mut text = "ENTRY e { x = f32[] parameter(0) t0 = token[] after-all()\n".to_owned();
    let mut tokens = "t0".to_owned();
    for i in 1..3000 {
        text += &format!(
            "a{i} = token[] after-all({tokens})\n\
             s{i} = (f32[], u32[], token[]) send(x, a{i}), channel_id={i}\n\
             t{i} = token[] send-done(s{i}), channel_id={i}\n"
        );
        tokens += &format!(", t{i}");
    }
    assert_eq!(rules(&(text + "}")).len(), 2999);
    // Loops in loops, each of which is looked at several times.
    let mut text = format!(
        "{ADD} c {{ s = f32[] parameter(0) ROOT p = pred[] compare(s, s), direction=LT }}
         b0 {{ s = f32[] parameter(0) ROOT r = f32[] all-reduce(s), replica_groups=[1,1048576]<=[1048576], to_apply=add }}\n"
    );
    for i in 1..200 {
        let inner = i - 1;
        text += &format!(
            "b{i} {{ s = f32[] parameter(0) w = f32[] while(s), condition=c, body=b{inner}
               v = f32[] while(w), condition=c, body=b{inner} ROOT r = f32[] add(w, v) }}\n"
        );
    }
    rules(
        &(text
            + "ENTRY e { x = f32[] parameter(0) ROOT r = f32[] while(x), condition=c, body=b199 }"),
    );
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
