//! All operations, each participant in a thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

use helio_ir::ops::ReplicaGroups;
use helio_ir::types::BF16;
use helio_ir::{BinaryOp, Code, ElementType, InstrId, Native, Shape};

use super::*;
use crate::Context;
use crate::Meter;
use crate::services::{Collectives, Given, Sink};
use crate::testing::{Bench, counting, of, values};

/// A participant at the rendezvous of an operation and group.
type Visitor = (RendezvousId, Vec<Participant>, Participant);

/// Exchange of copies between threads of this process, for those who come as often as the others.
#[derive(Default)]
struct Table {
    given: Mutex<HashMap<Visitor, Vec<Bytes>>>,
    changed: Condvar,
}

/// The bytes of a participant's arrays.
type Bytes = Vec<Vec<u8>>;

impl Collectives for Table {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        _: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let key = |who| (at.operation, at.group.to_vec(), who);
        let mut given = self.given.lock().unwrap();
        let visits = given.entry(key(me)).or_default();
        visits.push(mine.iter().map(|bytes| bytes.to_vec()).collect());
        let visit = visits.len() - 1;
        self.changed.notify_all();
        let mut all: Vec<Bytes> = Vec::new();
        for &who in at.group {
            all.push(loop {
                match given.get(&key(who)).and_then(|visits| visits.get(visit)) {
                    Some(theirs) => break theirs.clone(),
                    None => given = self.changed.wait(given).unwrap(),
                }
            });
        }
        drop(given);
        let slices: Vec<&[u8]> = all.iter().flatten().map(Vec::as_slice).collect();
        let ends: Vec<usize> = (1..=all.len()).map(|count| count * mine.len()).collect();
        sink(Given::new(&slices, &ends))
    }

    fn leave(&self, _: Participant, _: Result<(), &Error>) {}
}

/// Runs `f` for each participant at the same time; its results in the order of flattened ids.
fn run<R: Send>(
    (replica_count, partition_count): (usize, usize),
    bench: &Bench,
    f: impl Fn(&Evaluator<'_>, usize) -> R + Sync,
) -> Vec<R> {
    let collectives: Arc<dyn Collectives> = Arc::new(Table::default());
    let participant = |id: usize| {
        let cx = Context {
            me: Participant { replica: id / partition_count, partition: id % partition_count },
            replica_count,
            partition_count,
            collectives: collectives.clone(),
            ..Context::default()
        };
        f(&bench.evaluator_in(&cx), id)
    };
    std::thread::scope(|scope| {
        let participant = &participant;
        let threads: Vec<_> = (0..replica_count * partition_count)
            .map(|id| scope.spawn(move || participant(id)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

const AT: InstrAt = (CompId(0), InstrId(0));

fn groups(lists: &[&[usize]]) -> CollectiveAttrs {
    let lists = lists.iter().map(|list| list.to_vec()).collect();
    CollectiveAttrs { replica_groups: ReplicaGroups::List(lists), ..Default::default() }
}

fn floats(found: Result<Literal>) -> Vec<f32> {
    values(found.unwrap().as_array().unwrap())
}

fn integers(found: Result<Literal>) -> Vec<i32> {
    values(found.unwrap().as_array().unwrap())
}

/// A bench with the sum of two scalars.
fn adder(element: ElementType) -> (Bench, CompId) {
    let mut bench = Bench::new();
    let add = bench.binary(BinaryOp::Add, element);
    (bench, add)
}

// The examples marked E4 are those of XLA's "Operation Semantics".

#[test]
fn all_reduce_in_two_groups() {
    let (bench, add) = adder(ElementType::F32);
    let op = ops::AllReduce { attrs: groups(&[&[0, 2], &[3, 1]]), to_apply: add };
    let given = [[1.0f32, 2.5], [10.0, 20.0], [3.0, 5.25], [0.5, 0.25]]; // the first group: E4
    let found = run((4, 1), &bench, |ev, id| {
        floats(all_reduce(&op, ev, &[of(&[2], &given[id]).into()], AT))
    });
    assert_eq!(found, [[4.0, 7.75], [10.5, 20.25], [4.0, 7.75], [10.5, 20.25]]);
}

#[test]
fn all_reduce_folds_in_the_order_of_the_group() {
    let mut bench = Bench::new();
    let subtract = bench.binary(BinaryOp::Subtract, ElementType::S32);
    let op = ops::AllReduce { attrs: groups(&[&[2, 0, 1]]), to_apply: subtract };
    let found = run((3, 1), &bench, |ev, id| {
        let args = [counting(&[1]).into(), of(&[], &[10 << id]).into()];
        let Ok(Literal::Tuple(found)) = all_reduce(&op, ev, &args, AT) else { panic!() };
        integers(Ok(found[1].clone()))
    });
    assert_eq!(found, vec![[40 - 10 - 20]; 3]);
}

/// 1 + 2^-8 is between two numbers of bf16; the sum is formed in f32, then converted.
#[test]
fn a_fold_may_be_in_another_float_type() {
    let (bench, add) = adder(ElementType::F32);
    let op = ops::AllReduce { attrs: groups(&[]), to_apply: add };
    let given = [1.0, 2f64.powi(-8), 2f64.powi(-8)].map(BF16::from_f64);
    let found = run((3, 1), &bench, |ev, id| {
        let found = all_reduce(&op, ev, &[of(&[1], &given[id..=id]).into()], AT).unwrap();
        values::<BF16>(found.as_array().unwrap())
    });
    assert_eq!(found, vec![[BF16::from_f64(1.0 + 2f64.powi(-7))]; 3]);
}

/// Two replicas of two partitions; the groups of StableHLO's specification, "collective ops".
#[test]
fn modes_of_groups() {
    let (bench, add) = adder(ElementType::S32);
    let sums = |attrs: CollectiveAttrs| {
        let op = ops::AllReduce { attrs, to_apply: add };
        run((2, 2), &bench, |ev, id| {
            integers(all_reduce(&op, ev, &[of(&[], &[1 << id]).into()], AT))[0]
        })
    };
    let channel = |attrs, global| CollectiveAttrs {
        channel_id: Some(1),
        use_global_device_ids: global,
        ..attrs
    };
    assert_eq!(sums(groups(&[])), [0b0101, 0b1010, 0b0101, 0b1010]);
    assert_eq!(sums(channel(groups(&[]), false)), [0b1111; 4]);
    let apart = channel(groups(&[&[0], &[1]]), false);
    assert_eq!(sums(apart), [0b0011, 0b0011, 0b1100, 0b1100]);
    let crossed = channel(groups(&[&[0, 3], &[1, 2]]), true);
    assert_eq!(sums(crossed), [0b1001, 0b0110, 0b0110, 0b1001]);
    // Without `use_global_device_ids`, a channel means partitions.
    let found = run((2, 2), &bench, |ev, id| {
        let op = ops::CollectiveBroadcast { attrs: channel(groups(&[&[1, 0]]), false) };
        integers(collective_broadcast(&op, ev, &[of(&[], &[id as i32]).into()], AT))[0]
    });
    assert_eq!(found, [1, 1, 3, 3]);
}

#[test]
fn all_gather_joins_in_the_order_of_the_group() {
    let op = ops::AllGather { attrs: groups(&[]), dimension: 0, shard_count: 2 };
    let given = [[1.0f32, 2.5], [3.0, 5.25]]; // E4
    let found = run((2, 1), &Bench::new(), |ev, id| {
        floats(all_gather(&op, ev, &[of(&[2], &given[id]).into()], AT))
    });
    assert_eq!(found, vec![[1.0, 2.5, 3.0, 5.25]; 2]);

    let attrs = groups(&[&[1, 0]]);
    let op = ops::AllGatherStart { op: ops::AllGather { attrs, dimension: 1, shard_count: 2 } };
    let found = run((2, 1), &Bench::new(), |ev, id| {
        let mine: Literal = of(&[2, 1], &[id as i32, 10 + id as i32]).into();
        let found = all_gather_start(&op, ev, &[mine.clone(), mine.clone()], AT).unwrap();
        let [operands, results] = found.as_tuple().unwrap() else { panic!() };
        assert!(operands.as_tuple().unwrap()[1].same_bits(&mine));
        integers(Ok(results.as_tuple().unwrap()[1].clone()))
    });
    assert_eq!(found, vec![[1, 0, 11, 10]; 2]);
}

#[test]
fn reduce_scatter_gives_each_its_part() {
    let (bench, add) = adder(ElementType::F32);
    let attrs = groups(&[]);
    let op = ops::ReduceScatter { attrs, dimension: 0, shard_count: 2, to_apply: add };
    let given = [[1.0f32, 2.25], [3.0, 5.25]]; // E4
    let found = run((2, 1), &bench, |ev, id| {
        floats(reduce_scatter(&op, ev, &[of(&[2], &given[id]).into()], AT))
    });
    assert_eq!(found, [[4.0], [7.5]]);
}

/// The values of StableHLO's specification, "all_to_all", joined where they are split.
#[test]
fn all_to_all_of_parts_and_of_operands() {
    let op = ops::AllToAll { attrs: groups(&[&[0, 1]]), dimension: Some(1) };
    let given = [[1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 11, 12, 13, 14, 15, 16]];
    let found = run((2, 1), &Bench::new(), |ev, id| {
        integers(all_to_all(&op, ev, &[of(&[2, 4], &given[id]).into()], AT))
    });
    assert_eq!(found, [[1, 2, 9, 10, 5, 6, 13, 14], [3, 4, 11, 12, 7, 8, 15, 16]]);

    let op = ops::AllToAll { attrs: groups(&[&[3, 2, 1, 0]]), dimension: None };
    let found = run((4, 1), &Bench::new(), |ev, id| {
        let args: Vec<_> = (0..4).map(|i| of(&[], &[10 * id as i32 + i]).into()).collect();
        let found = all_to_all(&op, ev, &args, AT).unwrap();
        found.leaves().iter().map(|leaf| integers(Ok((*leaf).clone()))[0]).collect::<Vec<_>>()
    });
    // The last participant is the first of the group, so it gets every first operand.
    assert_eq!(found[3], [30, 20, 10, 0]);
    assert_eq!(found[0], [33, 23, 13, 3]);
}

#[test]
fn collective_permute_leaves_zeros_where_nobody_sends() {
    // The example of StableHLO's specification, "collective_permute".
    let op = ops::CollectivePermute { pairs: vec![(0, 1), (1, 2)], channel_id: None };
    let found = run((3, 1), &Bench::new(), |ev, id| {
        let first = 4 * id as i32 + 1;
        let mine = of(&[2, 2], &[first, first + 1, first + 2, first + 3]);
        integers(collective_permute(&op, ev, &[mine.into()], AT))
    });
    assert_eq!(found, [[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]]);

    let op = ops::CollectivePermuteStart {
        op: ops::CollectivePermute { pairs: vec![(1, 0)], channel_id: Some(7) },
        contexts: vec![Shape::scalar(ElementType::U32)],
    };
    let found = run((2, 2), &Bench::new(), |ev, id| {
        let args = [of(&[], &[id as i32 + 1]).into()];
        let found = collective_permute_start(&op, ev, &args, AT).unwrap();
        found.leaves()[1].as_array().unwrap().number(0)
    });
    assert_eq!(found, [2, 0, 4, 0].map(|v: i32| v.to_number()));
}

/// The example of XLA's documentation of this operation.
#[test]
fn ragged_all_to_all_writes_rows() {
    let op = ops::RaggedAllToAll { attrs: groups(&[]) };
    let input = [[1, 2, 2], [3, 4, 0]];
    let lists = [[[0, 1], [1, 2], [0, 0], [1, 1]], [[0, 1], [1, 1], [1, 2], [2, 1]]];
    let args = |id: usize| -> Vec<Literal> {
        let first = [of(&[3], &input[id]).into(), of(&[4], &[0; 4]).into()];
        first.into_iter().chain(lists[id].map(|list: [i32; 2]| of(&[2], &list).into())).collect()
    };
    let found =
        run((2, 1), &Bench::new(), |ev, id| integers(ragged_all_to_all(&op, ev, &args(id), AT)));
    assert_eq!(found, [[1, 3, 0, 0], [2, 2, 4, 0]]);

    let codes = run((2, 1), &Bench::new(), |ev, id| {
        let mut args = args(id);
        args[3] = of(&[2], &[i32::MAX, -1]).into();
        ragged_all_to_all(&op, ev, &args, AT).unwrap_err().code()
    });
    assert_eq!(codes, [Code::InvalidArgument; 2]);
}

#[test]
fn meetings_repeat_and_differ_by_channel() {
    let (bench, add) = adder(ElementType::S32);
    let found = run((4, 1), &bench, |ev, id| {
        let mut sum = id as i32;
        for round in 0..50 {
            let mut attrs = groups(&[]);
            attrs.channel_id = (round % 3 > 0).then_some(round % 2);
            let op = ops::AllReduce { attrs, to_apply: add };
            sum = integers(all_reduce(&op, ev, &[of(&[], &[sum]).into()], AT))[0] % 1000;
        }
        sum
    });
    let expected = (0..50).fold(0, |sum, round| if round == 0 { 6 } else { sum * 4 % 1000 });
    assert_eq!(found, [expected; 4]);
}

#[test]
fn one_participant_needs_nobody() {
    let (bench, add) = adder(ElementType::S32);
    let ev = bench.evaluator();
    let args = [counting(&[3]).into()];
    let op = ops::AllReduce { attrs: groups(&[]), to_apply: add };
    assert_eq!(integers(all_reduce(&op, &ev, &args, AT)), [0, 1, 2]);
    let op = ops::AllToAll { attrs: groups(&[&[0]]), dimension: Some(0) };
    assert_eq!(integers(all_to_all(&op, &ev, &args, AT)), [0, 1, 2]);
    let op = ops::CollectivePermute { pairs: vec![], channel_id: None };
    assert_eq!(integers(collective_permute(&op, &ev, &args, AT)), [0, 0, 0]);
}

#[test]
fn groups_that_do_not_fit_are_errors() {
    let bench = Bench::new();
    let (ev, args) = (bench.evaluator(), [counting(&[4]).into()]);
    let op = ops::AllGather { attrs: groups(&[]), dimension: 0, shard_count: 2 };
    assert_eq!(all_gather(&op, &ev, &args, AT).unwrap_err().code(), Code::InvalidArgument);
    let op = ops::AllToAll { attrs: groups(&[&[1]]), dimension: Some(0) };
    assert_eq!(all_to_all(&op, &ev, &args, AT).unwrap_err().code(), Code::InvalidArgument);
    let op = ops::AllGather { attrs: groups(&[]), dimension: 1, shard_count: 1 };
    let empty = of::<f32>(&[1 << 50, 0], &[]);
    assert!(floats(all_gather(&op, &ev, &[empty.into()], AT)).is_empty());
    // Nobody is in two groups, but one may be in none.
    let op = ops::CollectiveBroadcast { attrs: groups(&[&[1]]) };
    assert_eq!(integers(collective_broadcast(&op, &ev, &args, AT)), [0; 4]);
}
