//! Older interface variants against the lowering that `op_table.md` states.

use super::*;
use crate::ElementType::S32;
use crate::ops::ReplicaGroups;

/// E1–E3 "Reshape(operand, dimensions, new_sizes)": transpose, then reshape.
#[test]
fn reshape_with_dimensions() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,2,3]"]);
            x.reshape_with_dimensions(&[1, 2, 0], &[8, 3]);
            x.reshape_with_dimensions(&[0, 1, 2], &[8, 3]);
        },
        "%2 = f32[2,3,4] transpose(x), dimensions={1,2,0}
         %3 = f32[8,3] reshape(%2)
         ROOT %4 = f32[8,3] reshape(x)",
    );
}

/// E1–E3 "DynamicSlice" with a vector: slices and reshapes of the vector.
#[test]
fn vectors_of_indices() {
    check(
        |b| {
            let [x, s, u] = parameters(b, ["f32[4,3]", "s32[2]", "f32[1,1]"]);
            x.dynamic_slice_vector(&s, &[2, 2]);
            x.dynamic_update_slice_vector(&u, &s);
        },
        "%4 = s32[1] slice(y), slice={[0:1]}
         %5 = s32[] reshape(%4)
         %6 = s32[1] slice(y), slice={[1:2]}
         %7 = s32[] reshape(%6)
         %8 = f32[2,2] dynamic-slice(x, %5, %7), dynamic_slice_sizes={2,2}
         %9 = s32[1] slice(y), slice={[0:1]}
         %10 = s32[] reshape(%9)
         %11 = s32[1] slice(y), slice={[1:2]}
         %12 = s32[] reshape(%11)
         ROOT %13 = f32[4,3] dynamic-update-slice(x, z, %10, %12)",
    );
}

/// E1–E3 "Slice": unit strides.
#[test]
fn slice_unit_stride() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[4,3]"]);
            x.slice_unit_stride(&[2, 1], &[4, 3]);
        },
        "ROOT %2 = f32[2,2] slice(x), slice={[2:4], [1:3]}",
    );
}

/// E1–E3 "Sort(operand)": a generated comparator, the last dimension; one comparator for all.
#[test]
fn sort_without_comparator() {
    let sort_twice = |b: &XlaBuilder| {
        let [x] = parameters(b, ["f32[2,3]"]);
        x.sort().sort();
    };
    check(
        sort_twice,
        "%2 = f32[2,3] sort(x), dimensions={1}, to_apply=compare_LT_f32
         ROOT %3 = f32[2,3] sort(%2), dimensions={1}, to_apply=compare_LT_f32",
    );
    let b = XlaBuilder::new("b");
    sort_twice(&b);
    let printed = text::print(b.build().expect("a program").module());
    assert_eq!(printed.matches("type=TOTALORDER").count(), 1, "{printed}");
}

/// E1–E3 "LogicalAnd", "LogicalOr", "LogicalNot".
#[test]
fn logical_operations() {
    check(
        |b| {
            let [x, y] = parameters(b, ["pred[2]", "pred[2]"]);
            x.logical_and(&y).logical_or(false).logical_not();
        },
        "%3 = pred[2] and(x, y)
         %4 = pred[] constant(false)
         %5 = pred[2] broadcast(%4), dimensions={}
         %6 = pred[2] or(%3, %5)
         ROOT %7 = pred[2] not(%6)",
    );
}

/// E3 "Gather" under its old names.
#[test]
fn gather() {
    check(
        |b| {
            let [x, i] = parameters(b, ["f32[16,11]", "s32[5,2]"]);
            let dims = LegacyGatherDims {
                output_window_dims: vec![1, 2],
                elided_window_dims: vec![],
                gather_dims_to_operand_dims: vec![0, 1],
                index_vector_dim: 1,
            };
            x.gather_legacy(&i, dims, &[8, 6]);
        },
        "ROOT %3 = f32[5,8,6] gather(x, y), offset_dims={1,2}, collapsed_slice_dims={}, \
         start_index_map={0,1}, index_vector_dim=1, slice_sizes={8,6}",
    );
}

/// E1–E4 "CrossReplicaSum": an all-reduce with add; `pred` takes or.
#[test]
fn cross_replica_sum() {
    check(
        |b| {
            let [x, p, t] = parameters(b, ["f32[2]", "pred[2]", "(s32[], s32[2])"]);
            x.cross_replica_sum(ReplicaGroups::default());
            p.cross_replica_sum(ReplicaGroups::List(vec![vec![0, 1]]));
            t.cross_replica_sum(ReplicaGroups::default());
        },
        "%4 = f32[2] all-reduce(x), replica_groups={}, to_apply=add_f32
         %7 = pred[2] all-reduce(y), replica_groups={{0,1}}, to_apply=or_pred
         %11 = s32[] get-tuple-element(z), index=0
         %12 = s32[2] get-tuple-element(z), index=1
         ROOT %13 = (s32[], s32[2]) all-reduce(%11, %12), replica_groups={}, to_apply=add_s32",
    );
}

/// E1–E2 "RngBernoulli": rng_uniform, compare LT, convert to U32.
#[test]
fn rng_bernoulli() {
    check(
        |b| {
            let [mean] = parameters(b, ["f32[]"]);
            b.rng_bernoulli(&mean, shape("u32[2,3]"));
        },
        "%2 = f32[] constant(0)
         %3 = f32[] constant(1)
         %4 = f32[2,3] rng(%2, %3), distribution=rng_uniform
         %5 = f32[2,3] broadcast(x), dimensions={}
         %6 = pred[2,3] compare(%4, %5), direction=LT
         ROOT %7 = u32[2,3] convert(%6)",
    );
}

fn add_three(third: &str) -> XlaComputation {
    let b = XlaBuilder::new("f");
    let [x, y, z] = parameters(&b, ["f32[]", "f32[]", third]);
    let z = match b.shape(&z).expect("a parameter") {
        Shape::Array(z_shape) if z_shape.is_scalar() => z,
        _ => z.reduce_all(0, &add()),
    };
    b.build_with_root(x + y + z).expect("a computation")
}

/// E1–E3 "Map" with static operands: scalars go along as arrays of equal elements.
#[test]
fn map_with_scalar_static_operands() {
    check(
        |b| {
            let [x, y, par] = parameters(b, ["f32[2,3]", "f32[2,3]", "f32[]"]);
            b.map_with_static_operands(&[x, y], &add_three("f32[]"), &[par]);
        },
        "%4 = f32[2,3] broadcast(z), dimensions={}
         ROOT %8 = f32[2,3] map(x, y, %4), dimensions={0,1}, to_apply=f",
    );
    check(
        |b| {
            let [x] = parameters(b, ["f32[4]"]);
            b.map_with_static_operands(
                &[&x, &x],
                &scalar(BinaryOp::Multiply, ElementType::F32),
                XlaOp::NONE,
            );
        },
        "ROOT %2 = f32[4] map(x, x), dimensions={0}, to_apply=multiply_f32",
    );
}

/// E1–E3 "Map" with static operands: any other makes a loop.
#[test]
fn map_with_static_operands_in_a_loop() {
    let b = XlaBuilder::new("b");
    let [x, y, par] = parameters(&b, ["f32[2,3]", "f32[2,3]", "f32[7]"]);
    let result = b.map_with_static_operands(&[x, y], &add_three("f32[7]"), &[par]);
    assert_eq!(result.shape(), Ok(shape("f32[2,3]")));
    let module = b.build().expect("a program").into_module();
    let opcodes: Vec<_> = module.entry().instrs().iter().map(|i| i.op.opcode()).collect();
    assert!(opcodes.contains(&"while"), "{opcodes:?}");
    verify(module).expect("a right program");
}

/// E1–E2 "Infeed" without a token, and outfeeds: one chain in the order of the calls.
#[test]
fn implicit_tokens_form_a_chain() {
    check(
        |b| {
            let x = b.infeed(shape("f32[2]"), None);
            let y = b.infeed(shape("f32[2]"), Some("config"));
            (x + y).outfeed(shape("f32[2]"), None);
            b.infeed(shape("f32[]"), None);
        },
        "%1 = token[] after-all()
         %2 = (f32[2], token[]) infeed(%1)
         %3 = token[] get-tuple-element(%2), index=1
         %4 = f32[2] get-tuple-element(%2), index=0
         %5 = (f32[2], token[]) infeed(%3), infeed_config=\"config\"
         %6 = token[] get-tuple-element(%5), index=1
         %7 = f32[2] get-tuple-element(%5), index=0
         %8 = f32[2] add(%4, %7)
         %9 = token[] outfeed(%8, %6), outfeed_shape=f32[2]
         %10 = () tuple()
         %11 = (f32[], token[]) infeed(%9)
         %12 = token[] get-tuple-element(%11), index=1
         ROOT %13 = f32[] get-tuple-element(%11), index=0",
    );
}

/// E3 "Send", "Recv": sync forms with tokens of their own.
#[test]
fn send_and_recv_without_tokens() {
    check(
        |b| {
            let [x] = parameters(b, ["f32[2]"]);
            x.send(ChannelHandle::new(1));
            b.recv(shape("f32[2]"), ChannelHandle::new(2));
        },
        "%2 = token[] after-all()
         %3 = (f32[2], u32[], token[]) send(x, %2), channel_id=1
         %4 = token[] send-done(%3), channel_id=1
         %5 = token[] after-all()
         %6 = (f32[2], u32[], token[]) recv(%5), channel_id=2
         %7 = (f32[2], token[]) recv-done(%6), channel_id=2
         ROOT %8 = f32[2] get-tuple-element(%7), index=0",
    );
}

#[test]
fn a_comparator_of_integers_says_nothing_of_total_orders() {
    let b = XlaBuilder::new("b");
    b.iota_r1(S32, 4).sort();
    let printed = text::print(b.build().expect("a program").module());
    assert!(!printed.contains("TOTALORDER"), "{printed}");
}
