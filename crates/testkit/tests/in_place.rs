//! Fusions of several results that once wrote one of them over an operand that other elements read,
//! against the interpreter, on one thread and on several.

use helio::ir::verify;
use helio::{Literal, RunOptions, random_arguments};
use helio_testkit::engines::{ENGINES, THREADS};

/// Each with what its results may differ by, relative to the largest: sums have an order of their own.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "a sum over rows, changed by vectors that the rows read: one kernel after the other",
        "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { zero = f32[] constant(0) v = f32[64] parameter(0) w = f32[8,32,32,64] parameter(1)
         m = f32[8,32,32,64] parameter(2) p = f32[64] parameter(3) q = f32[64] parameter(4)
         e = f32[64] sort(v), dimensions={0}, to_apply=lt
         eb = f32[8,32,32,64] broadcast(e), dimensions={3} em = f32[8,32,32,64] multiply(eb, m)
         y = f32[8,32,32,64] add(w, em)
         r = f32[64] reduce(y, zero), dimensions={0,1,2}, to_apply=sum
         rp = f32[64] multiply(r, p) o = f32[64] add(rp, q)
         z = f32[8,32,32,64] sort(y), dimensions={3}, to_apply=lt
         ROOT rr = (f32[8,32,32,64], f32[64]) tuple(z, o) }",
    ),
    (
        "what an inner loop reads is changed after it",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         more { t = (s32[], f32[3000]) parameter(0) k = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 m = s32[] constant(50)
         a = pred[] compare(k, m), direction=LT v = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={1}
         r = f32[] reshape(v) h = f32[] constant(0.7) b = pred[] compare(r, h), direction=LT
         ROOT c = pred[] and(a, b) }
         next { t = (s32[], f32[3000]) parameter(0) k = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 one = s32[] constant(1) n = s32[] add(k, one)
         ROOT r = (s32[], f32[3000]) tuple(n, x) }
         go { t = (s32[], f32[3000], f32[3000]) parameter(0) i = s32[] get-tuple-element(t), index=0
         m = s32[] constant(5) ROOT c = pred[] compare(i, m), direction=LT }
         change { t = (s32[], f32[3000], f32[3000]) parameter(0) i = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 y = f32[3000] get-tuple-element(t), index=2
         one = s32[] constant(1) zero = s32[] constant(0) s = (s32[], f32[3000]) tuple(zero, x)
         w = (s32[], f32[3000]) while(s), condition=more, body=next k = s32[] get-tuple-element(w), index=0
         z = f32[3000] get-tuple-element(w), index=1 v = f32[1] constant({0.9})
         u = f32[3000] dynamic-update-slice(x, v, k) o = f32[3000] sort(y), dimensions={0}, to_apply=lt
         j = s32[] add(i, one) ROOT r = (s32[], f32[3000], f32[3000]) tuple(j, u, o) }
         ENTRY e { x = f32[3000] parameter(0) y = f32[3000] sort(x), dimensions={0}, to_apply=lt
         zero = s32[] constant(0) t = (s32[], f32[3000], f32[3000]) tuple(zero, x, y)
         ROOT w = (s32[], f32[3000], f32[3000]) while(t), condition=go, body=change }",
    ),
    (
        "what an inner loop reads and gives is changed after it, and read as it was",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         more { t = (s32[], f32[3000]) parameter(0) k = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 m = s32[] constant(50)
         a = pred[] compare(k, m), direction=LT v = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={1}
         r = f32[] reshape(v) h = f32[] constant(0.7) b = pred[] compare(r, h), direction=LT
         ROOT c = pred[] and(a, b) }
         next { t = (s32[], f32[3000]) parameter(0) k = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 one = s32[] constant(1) n = s32[] add(k, one)
         ROOT r = (s32[], f32[3000]) tuple(n, x) }
         go { t = (s32[], f32[3000], f32[3000]) parameter(0) i = s32[] get-tuple-element(t), index=0
         m = s32[] constant(5) ROOT c = pred[] compare(i, m), direction=LT }
         change { t = (s32[], f32[3000], f32[3000]) parameter(0) i = s32[] get-tuple-element(t), index=0
         x = f32[3000] get-tuple-element(t), index=1 y = f32[3000] get-tuple-element(t), index=2
         one = s32[] constant(1) zero = s32[] constant(0) s = (s32[], f32[3000]) tuple(zero, x)
         w = (s32[], f32[3000]) while(s), condition=more, body=next k = s32[] get-tuple-element(w), index=0
         z = f32[3000] get-tuple-element(w), index=1 v = f32[1] constant({0.9})
         u = f32[3000] dynamic-update-slice(x, v, k) o = f32[3000] subtract(z, y)
         j = s32[] add(i, one) ROOT r = (s32[], f32[3000], f32[3000]) tuple(j, u, o) }
         ENTRY e { x = f32[3000] parameter(0) y = f32[3000] sort(x), dimensions={0}, to_apply=lt
         zero = s32[] constant(0) t = (s32[], f32[3000], f32[3000]) tuple(zero, y, y)
         ROOT w = (s32[], f32[3000], f32[3000]) while(t), condition=go, body=change }",
    ),
    (
        "a result that each row would have added to again",
        "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { zero = f32[] constant(0) w = f32[8,14,14,64] parameter(0)
         v = f32[64] parameter(1) u = f32[64] parameter(2) t = f32[64] parameter(3)
         a = f32[64] sort(v), dimensions={0}, to_apply=lt b = f32[64] sort(u), dimensions={0}, to_apply=lt
         d = f32[64] multiply(a, t) e = f32[64] add(d, b)
         eb = f32[8,14,14,64] broadcast(e), dimensions={3} y = f32[8,14,14,64] add(w, eb)
         r = f32[64] reduce(y, zero), dimensions={0,1,2}, to_apply=sum
         o = f32[64] add(r, a) z = f32[8,14,14,64] sort(y), dimensions={3}, to_apply=lt
         ROOT rr = (f32[8,14,14,64], f32[64]) tuple(z, o) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [4,8] and [1,8]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[4,8] parameter(0) a = f32[1,8] parameter(1) zero = f32[] constant(0)
         s = f32[4,8] sort(b), dimensions={1}, to_apply=lt
         p = f32[4,8] pad(a, zero), padding=2_1x0_0 ROOT r = f32[4,8] add(s, p) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [4,4] and [1,4]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[4,4] parameter(0) a = f32[1,4] parameter(1) zero = f32[] constant(0)
         s = f32[4,4] sort(b), dimensions={1}, to_apply=lt
         p = f32[4,4] pad(a, zero), padding=2_1x0_0 ROOT r = f32[4,4] add(s, p) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [2000,5,8] and [2000,1,8]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[2000,5,8] parameter(0) a = f32[2000,1,8] parameter(1) zero = f32[] constant(0)
         s = f32[2000,5,8] sort(b), dimensions={1}, to_apply=lt
         p = f32[2000,5,8] pad(a, zero), padding=0_0x4_0x0_0 ROOT r = f32[2000,5,8] add(s, p) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [50,40,33] and [40,30,33]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[50,40,33] parameter(0) a = f32[40,30,33] parameter(1) zero = f32[] constant(0)
         s = f32[50,40,33] sort(b), dimensions={1}, to_apply=lt
         p = f32[50,40,33] pad(a, zero), padding=5_5x5_5x0_0 ROOT r = f32[50,40,33] add(s, p) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [64,64] and [62,62]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[64,64] parameter(0) a = f32[62,62] parameter(1) zero = f32[] constant(0)
         s = f32[64,64] sort(b), dimensions={1}, to_apply=lt
         p = f32[64,64] pad(a, zero), padding=1_1x1_1 ROOT r = f32[64,64] add(s, p) }",
    ),
    (
        "rows of an operand that is overwritten, some of them with an addend: [2000,5,40] and [2000,3,37]",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { b = f32[2000,5,40] parameter(0) a = f32[2000,3,37] parameter(1) zero = f32[] constant(0)
         s = f32[2000,5,40] sort(b), dimensions={1}, to_apply=lt
         p = f32[2000,5,40] pad(a, zero), padding=0_0x1_1x1_2 ROOT r = f32[2000,5,40] add(s, p) }",
    ),
    (
        "complex numbers of two parts of 4 bytes over numbers of 8 bytes, from a padded array",
        "ENTRY e { x = f64[5,5] parameter(0) zero = f64[] constant(0)
         p = f64[4,11] pad(x, zero), padding=0_-1_0x-1_-1_2 z = f64[4,11] broadcast(zero), dimensions={}
         c = c128[4,11] complex(p, z) ROOT r = c64[4,11] convert(c) }",
    ),
    (
        "complex numbers of two parts of 4 bytes over numbers of 8 bytes, from a gather",
        "ENTRY e { x = f64[16,3] parameter(0) i = s32[16,9] parameter(1)
         g = f64[16,9] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, operand_batching_dims={0},
             start_indices_batching_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,1}
         c = c64[16,9] convert(g) a = f64[16,9] asinh(g) ROOT r = (c64[16,9], f64[16,9]) tuple(c, a) }",
    ),
    (
        "rows of an array that is changed after they were taken, and before they are read",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         ENTRY e { x = f32[8,256] parameter(0) c = f32[256] parameter(1)
         s = f32[8,256] sort(x), dimensions={0}, to_apply=lt
         p = f32[1,256] slice(s), slice={[3:4], [0:256]} q = f32[2,256] slice(s), slice={[5:7], [0:256]}
         cb = f32[8,256] broadcast(c), dimensions={1} y = f32[8,256] add(s, cb)
         z = f32[8,256] sort(y), dimensions={1}, to_apply=lt
         v = f32[1,256] sort(p), dimensions={1}, to_apply=lt
         ROOT r = (f32[8,256], f32[1,256], f32[2,256], f32[1,256]) tuple(z, v, q, p) }",
    ),
    (
        "rows that a loop chooses, of arrays that it changes and exchanges",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         body { t = (s32[], f32[8,256], f32[8,256], f32[1,256]) parameter(0)
           i = s32[] get-tuple-element(t), index=0 x = f32[8,256] get-tuple-element(t), index=1
           y = f32[8,256] get-tuple-element(t), index=2 k = f32[1,256] get-tuple-element(t), index=3
           one = s32[] constant(1) j = s32[] add(i, one) two = s32[] constant(2) m = s32[] multiply(i, two)
           zero = s32[] constant(0)
           p = f32[1,256] dynamic-slice(x, m, zero), dynamic_slice_sizes={1,256}
           q = f32[1,256] slice(y), slice={[7:8], [0:256]}
           s = f32[8,256] sort(x), dimensions={0}, to_apply=lt
           ps = f32[1,256] sort(p), dimensions={1}, to_apply=lt qs = f32[1,256] sort(q), dimensions={1}, to_apply=lt
           u = f32[1,256] add(ps, qs) w = f32[1,256] add(u, k)
           wr = f32[256] reshape(w) wb = f32[8,256] broadcast(wr), dimensions={1} n = f32[8,256] add(s, wb)
           ROOT r = (s32[], f32[8,256], f32[8,256], f32[1,256]) tuple(j, y, n, p) }
         cond { t = (s32[], f32[8,256], f32[8,256], f32[1,256]) parameter(0)
           i = s32[] get-tuple-element(t), index=0 n = s32[] constant(6)
           ROOT c = pred[] compare(i, n), direction=LT }
         ENTRY e { i = s32[] constant(-1) x = f32[8,256] parameter(0) y = f32[8,256] parameter(1)
         k = f32[1,256] slice(y), slice={[2:3], [0:256]}
         t = (s32[], f32[8,256], f32[8,256], f32[1,256]) tuple(i, x, y, k)
         ROOT r = (s32[], f32[8,256], f32[8,256], f32[1,256]) while(t), condition=cond, body=body }",
    ),
    (
        "parts of parts, chosen by numbers of other types, that branches return",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
         yes { x = f32[4,4,64] parameter(0) ROOT p = f32[1,4,64] slice(x), slice={[3:4], [0:4], [0:64]} }
         no { x = f32[4,4,64] parameter(0) p = f32[2,4,64] slice(x), slice={[1:3], [0:4], [0:64]}
           ROOT q = f32[1,4,64] slice(p), slice={[1:2], [0:4], [0:64]} }
         ENTRY e { x = f32[6,4,4,64] parameter(0) i = u8[] parameter(1) j = s64[] parameter(2) zero = s64[] constant(0)
         iz = u8[] constant(0)
         p = f32[1,4,4,64] dynamic-slice(x, i, iz, iz, iz), dynamic_slice_sizes={1,4,4,64}
         f = f32[4,4,64] reshape(p)
         q = f32[2,4,64] dynamic-slice(f, j, zero, zero), dynamic_slice_sizes={2,4,64}
         s = f32[2,4,64] sort(q), dimensions={2}, to_apply=lt
         c = pred[] compare(j, zero), direction=LT
         b = f32[1,4,64] conditional(c, f, f), true_computation=yes, false_computation=no
         ROOT r = (f32[2,4,64], f32[1,4,64], f32[2,4,64]) tuple(s, b, q) }",
    ),
];

fn arrays(result: &Literal) -> Vec<Vec<f32>> {
    let leaves = result.leaves().into_iter().filter_map(Literal::as_array);
    let floats = leaves.map(|array| {
        array
            .to_bytes()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect()
    });
    floats.collect()
}

#[test]
fn operands_that_are_still_read_are_not_overwritten() {
    for (name, text) in PROGRAMS {
        let module =
            helio::parse(text).and_then(verify).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let arguments =
            random_arguments(&module.entry().program_shape().params, 7).expect("arguments");
        let run = |engine: &helio_testkit::engines::Engine| {
            let result = engine.run(&module, &arguments, &RunOptions::default());
            arrays(&result.unwrap_or_else(|e| panic!("{name}, {}: {e}", engine.name)))
        };
        let expected = run(&ENGINES[0]);
        for (found, expected) in run(&THREADS).iter().zip(&expected) {
            let most = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
            let apart = found.iter().zip(expected).map(|(x, y)| (x - y).abs());
            let apart = apart.fold(0f32, f32::max);
            assert!(apart <= 1e-5 * most, "{name}: {apart} of {most}");
        }
    }
}
