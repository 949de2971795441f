//! Attributes of products, folds, indexing, random numbers and collectives: text that is read and
//! written again is the same. XLA prints these programs with the same attributes in the same order
//! (jaxlib 0.10.2; its names, its layouts and its short forms of asynchronous operations apart;
//! `algorithm` of a convolution is newer).

use helio_ir::{text, verify};

/// Parses, verifies and prints `source`, which must come out as it went in.
#[track_caller]
fn check(source: &str) {
    let source = source.trim_start();
    let module = text::parse(source).unwrap_or_else(|e| panic!("{e:?}"));
    let module = verify(module).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(text::print(&module), source);
}

#[test]
fn products_and_convolutions() {
    check(
        r#"
HloModule m

ENTRY e {
  a = bf16[4,2,3] parameter(0)
  b = bf16[4,3,5] parameter(1)
  l = f32[6,3] parameter(2)
  r = f32[2,3,5] parameter(3)
  g = s32[2] parameter(4)
  x = f32[2,8,9,6] parameter(5)
  y = f32[3,3,2,9] parameter(6)
  z = f32[6,7,7,4] parameter(7)
  d = f32[4,2,5] dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={high,default}
  f = f32[4,2,4,5] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={1}, algorithm=dot_bf16_bf16_f32
  o = bf16[4,2,3,4,3,5] dot(a, b), lhs_contracting_dims={}, rhs_contracting_dims={}
  w = f32[6,5] ragged-dot(l, r, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
  v = f32[2,3,5] ragged-dot(l, w, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}, operand_precision={highest,highest}
  p = f32[2,4,8,9] convolution(x, y), window={size=3x3 stride=2x1 pad=1_1x-1_2 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, feature_group_count=3, operand_precision={highest,high}
  q = f32[2,4,4,6] convolution(z, z), window={size=7x7 pad=2_1x2_1 lhs_dilate=2x2 rhs_dilate=2x2}, dim_labels=b01f_o01i->b01f, batch_group_count=3
  i = f32[6,6] convolution(l, l), dim_labels=bf_oi->bf, algorithm=dot_tf32_tf32_f32
  ROOT t = (f32[4,2,5], f32[4,2,4,5], bf16[4,2,3,4,3,5], f32[6,5], f32[2,3,5], /*index=5*/f32[2,4,8,9], f32[2,4,4,6], f32[6,6]) tuple(d, f, o, w, v, p, q, i)
}
"#,
    );
}

#[test]
fn factorisations_transforms_and_batch_norm() {
    check(
        r#"
HloModule m

ENTRY e {
  a = f32[3,3] parameter(0)
  b = f32[3,4] parameter(1)
  c = c64[2,9] parameter(2)
  s = f32[4] parameter(3)
  l = f32[3,3] cholesky(a), lower=true
  u = f32[3,3] cholesky(a)
  p = f32[3,4] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, transpose_a=ADJOINT
  q = f32[3,3] triangular-solve(a, a), transpose_a=NO_TRANSPOSE
  f = c64[2,9] fft(c), fft_type=IFFT, fft_length={2,9}
  g = f32[2,16] fft(c), fft_type=IRFFT, fft_length={16}
  h = (f32[3,4], f32[4], f32[4]) batch-norm-training(b, s, s), epsilon=0.001, feature_index=1
  i = f32[3,4] batch-norm-inference(b, s, s, s, s), epsilon=0.25, feature_index=1
  j = (f32[3,4], f32[4], f32[4]) batch-norm-grad(b, s, s, s, b), epsilon=0, feature_index=1
  ROOT t = (f32[3,3], f32[3,3], f32[3,4], f32[3,3], c64[2,9], /*index=5*/f32[2,16], f32[3,4]) tuple(l, u, p, q, f, g, i)
}
"#,
    );
}

#[test]
fn folds_windows_and_sorts() {
    check(
        r#"
HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

two {
  x = f32[] parameter(0)
  i = s32[] parameter(1)
  y = f32[] parameter(2)
  j = s32[] parameter(3)
  ROOT s = (f32[], s32[]) tuple(x, j)
}

ge {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=GE
}

lt {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(x, y), direction=LT
}

ENTRY e {
  a = f32[4,6] parameter(0)
  b = s32[4,6] parameter(1)
  s = f32[4,3] parameter(2)
  z = f32[] constant(0)
  n = s32[] constant(0)
  r = f32[6] reduce(a, z), dimensions={0}, to_apply=add
  w = (f32[], s32[]) reduce(a, b, z, n), dimensions={0,1}, to_apply=two
  v = f32[4,3] reduce-window(a, z), window={size=1x2 stride=1x2}, to_apply=add
  c = (f32[2,8], s32[2,8]) reduce-window(a, b, z, n), window={size=2x2 pad=0_-1x0_0 lhs_dilate=1x2 rhs_dilate=1x3}, to_apply=two
  e = f32[] reduce-window(z, z), to_apply=add
  f = f32[4,6] select-and-scatter(a, s, z), window={size=1x2 stride=1x2}, select=ge, scatter=add
  o = f32[4,6] sort(a), dimensions={1}, to_apply=ge
  p = (f32[4,6], s32[4,6]) sort(a, b), dimensions={0}, is_stable=true, to_apply=lt
  k = (f32[4,2], s32[4,2]) topk(a), k=2, largest=false
  ROOT t = (f32[6], f32[4,3], f32[], f32[4,6], f32[4,6]) tuple(r, v, e, f, o)
}
"#,
    );
}

#[test]
fn gather_and_scatter() {
    check(
        r#"
HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

two {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  z = f32[] parameter(2)
  w = f32[] parameter(3)
  ROOT s = (f32[], f32[]) tuple(z, w)
}

ENTRY e {
  a = f32[4,5] parameter(0)
  b = f32[3,4,5] parameter(1)
  i = s32[3,1] parameter(2)
  j = s64[3] parameter(3)
  u = f32[3,5] parameter(4)
  g = f32[3,5] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}
  h = f32[3,2] gather(b, i), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1,2}, indices_are_sorted=true
  k = f32[3] gather(a, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}
  s = f32[4,5] scatter(a, j, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, unique_indices=true, to_apply=add
  p = f32[3,4,5] scatter(b, i, u), update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=add
  v = (f32[4,5], f32[4,5]) scatter(a, a, i, u, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=two
  ROOT t = (f32[3,5], f32[3,2], f32[3], f32[4,5], f32[3,4,5]) tuple(g, h, k, s, p)
}
"#,
    );
}

#[test]
fn random_numbers() {
    check(
        r#"
HloModule m

ENTRY e {
  s = u64[2] parameter(0)
  w = u64[3] parameter(1)
  a = f32[] constant(0)
  b = f32[] constant(1)
  u = f32[2,3] rng(a, b), distribution=rng_uniform
  n = f32[2,3] rng(a, b), distribution=rng_normal
  t = (u64[2], u32[5]) rng-bit-generator(s), algorithm=rng_three_fry
  p = (u64[3], u8[5]) rng-bit-generator(w), algorithm=rng_philox
  d = (u64[2], f32[5]) rng-bit-generator(s), algorithm=rng_default
  g = u64[2] rng-get-and-update-state(), delta=4
  ROOT r = (f32[2,3], f32[2,3], u64[2]) tuple(u, n, g)
}
"#,
    );
}

#[test]
fn collectives_and_asynchronous_operations() {
    check(
        r#"
HloModule m

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

neg {
  x = f32[4] parameter(0)
  y = f32[6] parameter(1)
  ROOT s = f32[4] negate(x)
}, execution_thread="io"

ENTRY e {
  a = f32[4] parameter(0)
  b = f32[6] parameter(1)
  s = s32[2] parameter(2)
  c = f32[4] all-reduce(a), replica_groups={}, to_apply=add
  d = (f32[4], f32[6]) all-reduce(a, b), channel_id=1, replica_groups={{0,1},{2}}, constrain_layout=true, use_global_device_ids=true, to_apply=add
  f = f32[8] all-gather(a), replica_groups=[2,2]<=[4], dimensions={0}
  g = (f32[8], f32[12]) all-gather(a, b), channel_id=2, replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}, use_global_device_ids=true
  h = f32[2] reduce-scatter(a), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}, to_apply=add
  i = f32[4] all-to-all(a), channel_id=4, replica_groups={{0,1}}, dimensions={0}
  j = (f32[4], f32[4]) all-to-all(a, a), replica_groups={{0,1}}
  k = f32[4] collective-permute(a), channel_id=5, source_target_pairs={{0,1},{1,0}}
  l = f32[4] collective-broadcast(a), replica_groups={{0,1}}
  m = f32[6] ragged-all-to-all(a, b, s, s, s, s), replica_groups={{0,1}}
  n = u32[] replica-id()
  o = u32[] partition-id()
  p = f32[4] all-reduce-start(a), replica_groups={}, to_apply=add
  q = f32[4] all-reduce-done(p)
  r = (f32[4], f32[8]) all-gather-start(a), replica_groups={{0,1}}, dimensions={0}
  t = f32[8] all-gather-done(r)
  u = (f32[4], f32[4], u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,1}}
  v = f32[4] collective-permute-done(u)
  w = (f32[4], f32[4], u32[]) copy-start(a), cross_program_prefetch_index=0
  x = f32[4] copy-done(w)
  y = ((f32[4], f32[6]), f32[4], u32[]) async-start(a, b), async_execution_thread="io", calls=neg
  z = ((f32[4], f32[6]), f32[4], u32[]) async-update(y)
  aa = f32[4] async-done(z)
  bb = f32[8] all-gather(a), replica_groups=mesh['a'=2,'b'=2] {'a'}, dimensions={0}
  ROOT root = (f32[4], f32[8], f32[2], f32[4], u32[]) tuple(c, f, h, i, n)
}
"#,
    );
}
