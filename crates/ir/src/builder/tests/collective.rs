use super::*;
use crate::ops::{CollectiveAttrs, ReplicaGroups};

fn groups(lists: &[&[usize]]) -> CollectiveAttrs {
    let lists = lists.iter().map(|list| list.to_vec()).collect();
    CollectiveAttrs { replica_groups: ReplicaGroups::List(lists), ..CollectiveAttrs::default() }
}

#[test]
fn all_reduces() {
    check(
        |b| {
            let [x, t] = parameters(b, ["f32[2]", "(f32[2])"]);
            let add = add();
            x.all_reduce(&add, &groups(&[&[0, 2], &[1, 3]]));
            t.all_reduce(&add, &CollectiveAttrs { channel_id: Some(1), use_global_device_ids: true, ..groups(&[&[0, 1]]) });
            x.all_reduce_start(&add, &groups(&[])).all_reduce_done();
        },
        "%3 = f32[2] all-reduce(x), replica_groups={{0,2},{1,3}}, to_apply=add_f32
         %4 = f32[2] get-tuple-element(y), index=0
         %5 = f32[2] all-reduce(%4), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add_f32
         %6 = (f32[2]) tuple(%5)
         %7 = f32[2] all-reduce-start(x), replica_groups={}, to_apply=add_f32
         ROOT %8 = f32[2] all-reduce-done(%7)",
    );
}

#[test]
fn gathers_and_scatters() {
    check(
        |b| {
            let [x, t] = parameters(b, ["f32[4]", "(f32[4], s32[4,2])"]);
            x.all_gather(0, 2, &groups(&[&[0, 2], &[1, 3]]));
            t.all_gather(0, 3, &groups(&[]));
            x.all_gather_start(0, 2, &groups(&[])).all_gather_done();
            x.reduce_scatter(&add(), 0, 2, &groups(&[]));
        },
        "%3 = f32[8] all-gather(x), replica_groups={{0,2},{1,3}}, dimensions={0}
         %4 = f32[4] get-tuple-element(y), index=0
         %5 = s32[4,2] get-tuple-element(y), index=1
         %6 = (f32[12], s32[12,2]) all-gather(%4, %5), replica_groups={}, dimensions={0}
         %7 = (f32[4], f32[8]) all-gather-start(x), replica_groups={}, dimensions={0}
         %8 = f32[8] all-gather-done(%7)
         ROOT %9 = f32[2] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add_f32",
    );
}

/// E4 "AllToAll": the shapes of its example.
#[test]
fn all_to_alls() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,16]"]);
            x.all_to_all(1, 0, 4, &groups(&[]));
            x.all_to_all(0, 0, 2, &groups(&[&[1, 0]]));
            b.all_to_all_tuple(&[&x, &x], &groups(&[&[0, 1]]));
        },
        "%2 = f32[4,16] all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={1}
         %3 = f32[4,4,4] reshape(%2)
         %4 = f32[4,4,4] transpose(%3), dimensions={1,0,2}
         %5 = f32[16,4] reshape(%4)
         %6 = f32[4,16] all-to-all(x), replica_groups={{1,0}}, dimensions={0}
         ROOT %7 = (f32[4,16], f32[4,16]) all-to-all(x, x), replica_groups={{0,1}}",
    );
}

#[test]
fn permutes_and_broadcasts() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            x.collective_permute(&[(0, 1), (1, 0)], Some(1));
            x.collective_permute_start(&[(0, 1)], None).collective_permute_done();
            x.collective_broadcast(&groups(&[&[1, 0]]));
        },
        "%2 = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
         %3 = (f32[2], f32[2]) collective-permute-start(x), source_target_pairs={{0,1}}
         %4 = f32[2] collective-permute-done(%3)
         ROOT %5 = f32[2] collective-broadcast(x), replica_groups={{1,0}}",
    );
}

#[test]
fn ragged_all_to_all() {
    check(
        |b| {
            let [x, y, i] = parameters(b, ["f32[8]", "f32[9]", "s32[2]"]);
            b.ragged_all_to_all(&x, &y, &i, &i, &i, &i, &groups(&[&[0, 1]]));
        },
        "ROOT %4 = f32[9] ragged-all-to-all(x, y, z, z, z, z), replica_groups={{0,1}}",
    );
}

#[test]
fn ids() {
    check(
        |b| {
            b.replica_id();
            b.partition_id();
        },
        "%1 = u32[] replica-id()
         ROOT %2 = u32[] partition-id()",
    );
}
