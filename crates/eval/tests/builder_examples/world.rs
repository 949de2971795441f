//! Examples with other replicas, the host, and custom calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use helio_eval::services::{
    Channel, CustomCalls, CustomFunction, Host, Incoming, Outgoing, Participant, Waiter,
};
use helio_ir::Result;
use helio_ir::builder::ChannelHandle;
use helio_ir::ops::{CollectiveAttrs, ReplicaGroups};
use helio_testkit::engines::ENGINES;

use super::*;

/// What each of several replicas gives for its own `f32` argument.
fn run_replicas(args: &[&[f32]], body: impl FnOnce(&XlaBuilder, &XlaOp) -> XlaOp) -> Vec<Literal> {
    let b = XlaBuilder::new("program");
    let x = b.parameter(0, shape(&format!("f32[{}]", args[0].len())), "x");
    let root = body(&b, &x);
    let mut module = b.build_with_root(root).unwrap_or_else(|e| panic!("{e}")).into_module();
    module.config.replica_count = Some(args.len());
    let module = &verify(module).unwrap_or_else(|e| panic!("{e:?}"));
    let vector = |arg: &&[f32]| [Literal::array([arg.len()], arg.to_vec()).expect("a vector")];
    let args: Vec<[Literal; 1]> = args.iter().map(vector).collect();
    let args: Vec<&[Literal]> = args.iter().map(|arg| &arg[..]).collect();
    let program = ENGINES[0].compile(module).unwrap_or_else(|e| panic!("{e}"));
    let results = ENGINES[0].run_replicas(&program, &args, &Default::default());
    results.unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn check_replicas(
    args: &[&[f32]],
    expected: &[&[f32]],
    body: impl FnOnce(&XlaBuilder, &XlaOp) -> XlaOp,
) {
    for (found, expected) in run_replicas(args, body).iter().zip(expected) {
        ensure_same(found, &Literal::array([expected.len()], expected.to_vec()).expect("a vector"));
    }
}

/// E1–E3 "CrossReplicaSum", and E4 "AllReduce", whose example has other values.
#[test]
fn sums_over_replicas() {
    check_replicas(&[&[1.0, 2.5], &[3.0, 5.1]], &[&[4.0, 7.6], &[4.0, 7.6]], |_, x| {
        x.cross_replica_sum(ReplicaGroups::default())
    });
    let add = scalar(BinaryOp::Add, ElementType::F32);
    check_replicas(&[&[1.0, 2.5], &[3.0, 5.25]], &[&[4.0, 7.75], &[4.0, 7.75]], |_, x| {
        x.all_reduce(&add, &CollectiveAttrs::default())
    });
    // Groups {0, 2}, {1, 3}.
    let groups = ReplicaGroups::List(vec![vec![0, 2], vec![1, 3]]);
    check_replicas(
        &[&[1.0], &[2.0], &[10.0], &[20.0]],
        &[&[11.0], &[22.0], &[11.0], &[22.0]],
        |_, x| x.cross_replica_sum(groups),
    );
}

/// E4 "AllGather".
#[test]
fn all_gather() {
    let joined: &[f32] = &[1.0, 2.5, 3.0, 5.25];
    check_replicas(&[&[1.0, 2.5], &[3.0, 5.25]], &[joined, joined], |_, x| {
        x.all_gather(0, 2, &CollectiveAttrs::default())
    });
}

/// E4 "ReduceScatter".
#[test]
fn reduce_scatter() {
    let add = scalar(BinaryOp::Add, ElementType::F32);
    check_replicas(&[&[1.0, 2.25], &[3.0, 5.25]], &[&[4.0], &[7.5]], |_, x| {
        x.reduce_scatter(&add, 0, 2, &CollectiveAttrs::default())
    });
}

/// E4 "AllToAll": block `i` goes to core `i`; what comes is joined along another dimension, in the
/// order of the cores.
#[test]
fn all_to_all() {
    // Each core has f32[1,4] and splits it into two of f32[1,2]; they are joined to f32[2,2].
    check_replicas(
        &[&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]],
        &[&[1.0, 2.0, 5.0, 6.0], &[3.0, 4.0, 7.0, 8.0]],
        |_, x| {
            let exchanged = x.reshape(&[1, 4]).all_to_all(1, 0, 2, &CollectiveAttrs::default());
            assert_eq!(exchanged.shape(), Ok(shape("f32[2,2]")));
            exchanged.reshape(&[4])
        },
    );
    // The other way: rows are split, columns joined.
    check_replicas(
        &[&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]],
        &[&[1.0, 2.0, 5.0, 6.0], &[3.0, 4.0, 7.0, 8.0]],
        |_, x| {
            let exchanged = x.reshape(&[2, 2]).all_to_all(0, 1, 2, &CollectiveAttrs::default());
            assert_eq!(exchanged.shape(), Ok(shape("f32[1,4]")));
            exchanged.reshape(&[4])
        },
    );
}

/// E4 "CollectivePermute": who is no target receives zeros.
#[test]
fn collective_permute() {
    check_replicas(&[&[1.0], &[2.0], &[3.0]], &[&[0.0], &[1.0], &[2.0]], |_, x| {
        x.collective_permute(&[(0, 1), (1, 2)], None)
    });
}

/// E4 "ReplicaId".
#[test]
fn replica_id() {
    let ids = run_replicas(&[&[0.0], &[0.0], &[0.0]], |b, _| b.replica_id());
    for (replica, id) in ids.iter().enumerate() {
        ensure_same(id, &Literal::scalar(replica as u32));
    }
}

/// A host with queues.
#[derive(Default)]
struct Queues {
    fed: Mutex<VecDeque<Literal>>,
    taken: Mutex<Vec<Literal>>,
    channels: Mutex<HashMap<Channel, Literal>>,
}

impl Host for Queues {
    fn infeed(&self, _: Participant, into: &mut Incoming<'_, '_>, _: &Waiter<'_>) -> Result<()> {
        into.put(self.fed.lock().expect("one thread").pop_front().expect("enough is fed")).map(drop)
    }
    fn outfeed(&self, _: Participant, value: Outgoing<'_>) -> Result<()> {
        self.taken.lock().expect("one thread").push(value.into_literal()?);
        Ok(())
    }
    fn send(&self, _: Participant, channel: Channel, value: Outgoing<'_>) -> Result<()> {
        self.channels.lock().expect("one thread").insert(channel, value.into_literal()?);
        Ok(())
    }
    fn recv(
        &self,
        _: Participant,
        channel: Channel,
        into: &mut Incoming<'_, '_>,
        _: &Waiter<'_>,
    ) -> Result<()> {
        let mut channels = self.channels.lock().expect("one thread");
        into.put(channels.remove(&channel).expect("it was sent")).map(drop)
    }
}

/// E1, E2 "Infeed": infeeds (and outfeeds) have a total order, that of the calls, also where no
/// value depends on another.
#[test]
fn infeeds_are_in_order() {
    let host: Arc<Queues> = Arc::default();
    let fed = [("s32[]", "1"), ("f32[2]", "{2, 3}"), ("s32[]", "4")];
    *host.fed.lock().expect("one thread") = fed.map(|(s, value)| literal(s, value)).into();
    let cx = Context { host: host.clone(), ..Context::default() };
    let result = run_in(&cx, |b| {
        let first = b.infeed(shape("s32[]"), None);
        let second = b.infeed(shape("f32[2]"), None);
        second.outfeed(shape("f32[2]"), None);
        let third = b.infeed(shape("s32[]"), None);
        first.outfeed(shape("s32[]"), None);
        first * 10 + third
    });
    ensure_same(&result, &Literal::scalar(14));
    let taken = host.taken.lock().expect("one thread");
    ensure_same(&taken[0], &literal("f32[2]", "{2, 3}"));
    ensure_same(&taken[1], &Literal::scalar(1));
}

/// E1–E4 "Infeed": infeeds in two loops, the second of which depends on the first.
#[test]
fn infeeds_in_loops() {
    let host: Arc<Queues> = Arc::default();
    *host.fed.lock().expect("one thread") = (1..=4).map(Literal::scalar::<i32>).collect();
    let cx = Context { host, ..Context::default() };
    let limit = |n: i32| {
        computation("limit", ["(s32[], s32[])"], move |_, [state]| state.get_tuple_element(0).lt(n))
    };
    let body = computation("body", ["(s32[], s32[])"], |b, [state]| {
        let value = b.infeed(shape("s32[]"), None);
        b.tuple(&[state.get_tuple_element(0) + 1, state.get_tuple_element(1) * 10 + value])
    });
    let result = run_in(&cx, |b| {
        let init = b.tuple(&[b.constant_r0(0), b.constant_r0(0)]);
        let result1 = init.while_loop(&limit(2), &body);
        result1.while_loop(&limit(4), &body).get_tuple_element(1)
    });
    ensure_same(&result, &Literal::scalar(1234));
}

/// E3, E4 "Send", "Recv": data sent into a channel is received from it.
#[test]
fn send_and_recv() {
    let host: Arc<Queues> = Arc::default();
    let cx = Context { host, ..Context::default() };
    let result = run_in(&cx, |b| {
        b.constant_r1(&[1f32, 2.0]).send(ChannelHandle::new(7));
        b.recv(shape("f32[2]"), ChannelHandle::new(7))
    });
    ensure_same(&result, &literal("f32[2]", "{1, 2}"));
}

/// `myfunc` of E1–E4 "CustomCall": `z[0][0] = x[1] + y[1][0]`.
struct MyFunc;

impl CustomCalls for MyFunc {
    fn find(&self, target: &str) -> Option<Arc<CustomFunction>> {
        assert_eq!(target, "myfunc");
        Some(Arc::new(|call| {
            let x = call.operand(0)?.as_slice::<f32>()?;
            let y = call.operand(1)?.as_slice::<f32>()?;
            assert_eq!((x, y), (&[1.0, 2.0][..], &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0][..]));
            let z = call.result_mut(0)?.as_mut_slice::<f32>()?;
            z.fill(0.0);
            z[0] = x[1] + y[3];
            Ok(())
        }))
    }
}

/// E1–E4 "CustomCall".
#[test]
fn custom_call() {
    let cx = Context { custom_calls: Arc::new(MyFunc), ..Context::default() };
    let result = run_in(&cx, |b| {
        let x = b.constant_r1(&[1f32, 2.0]);
        let y = b.constant_r2(&[[10f32, 20.0, 30.0], [40.0, 50.0, 60.0]]);
        b.custom_call("myfunc", &[x, y], shape("f32[3,3]"))
    });
    ensure_same(&result, &literal("f32[3,3]", "{{42, 0, 0}, {0, 0, 0}, {0, 0, 0}}"));
}
