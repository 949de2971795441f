//! Loops with little to do in an iteration are one kernel, and compute what the interpreter does.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helio::ir::verify;
use helio::{CompileOptions, Literal, RunOptions, random_arguments};
use helio_testkit::engines::{ENGINES, not_compiled};
use helio_testkit::tolerance::Tolerance;
use oorandom::Rand32;

const ADD: &str = "add { a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] add(a, b) }
max { a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] maximum(a, b) }
set { a = T[] parameter(0) ROOT b = T[] parameter(1) }
";

/// A loop that counts from 0 to `trips`: the types of its state besides the counter, and a body that
/// makes `n0`, `n1`, … of `s0`, `s1`, … and the counter `i`. `T` stands for the type of elements.
fn counted(ty: &str, trips: u32, state: &[&str], body: &str) -> String {
    let types: String = state.iter().map(|shape| format!(", {shape}")).collect();
    let tuple = format!("(s32[]{types})");
    let mut text = ADD.to_owned();
    let _ =
        writeln!(text, "body {{ t = {tuple} parameter(0) i = s32[] get-tuple-element(t), index=0");
    for (n, shape) in state.iter().enumerate() {
        let _ = writeln!(text, "s{n} = {shape} get-tuple-element(t), index={}", n + 1);
    }
    let next: String = (0..state.len()).map(|n| format!(", n{n}")).collect();
    let _ = writeln!(
        text,
        "{body}\none = s32[] constant(1) j = s32[] add(i, one) ROOT r = {tuple} tuple(j{next}) }}
         cond {{ t = {tuple} parameter(0) i = s32[] get-tuple-element(t), index=0
         m = s32[] constant({trips}) ROOT r = pred[] compare(i, m), direction=LT }}
         ENTRY e {{ z = s32[] constant(0)"
    );
    for (n, shape) in state.iter().enumerate() {
        let _ = writeln!(text, "p{n} = {shape} parameter({n})");
    }
    let initial: String = (0..state.len()).map(|n| format!(", p{n}")).collect();
    let _ = writeln!(
        text,
        "init = {tuple} tuple(z{initial}) ROOT w = {tuple} while(init), condition=cond, body=body }}"
    );
    text.replace("T[", &format!("{ty}["))
}

/// Compares all engines with the interpreter; gives the number of steps of the plan for the best
/// code, if there is such code.
fn check(text: &str, tolerance: Tolerance) -> Option<usize> {
    let module = verify(helio::parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}")));
    let module = module.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let shape = module.entry().program_shape();
    let arguments = random_arguments(&shape.params, 5).expect("arguments");
    let options = RunOptions::default();
    let run = |n: usize| {
        let program = ENGINES[n].compile(&module)?;
        if ENGINES[n].compiles_all() {
            let without = not_compiled(&program).into_iter().map(|i| (i.operation, i.reason));
            let without: Vec<_> = without.collect();
            assert_eq!(without, [], "{}: {text}", ENGINES[n].name);
        }
        ENGINES[n].run_program(&program, &arguments, &options)
    };
    let expected = run(0).unwrap_or_else(|e| panic!("{text}: {e}"));
    for (n, engine) in ENGINES.iter().enumerate().skip(2) {
        let found = run(n).unwrap_or_else(|e| panic!("{}: {text}: {e}", engine.name));
        let same = tolerance.compare(&found, &expected);
        same.unwrap_or_else(|e| panic!("{}: {text}: {e}", engine.name));
    }
    let program = helio::compile(module.into_inner(), &CompileOptions::default().with_proofs(true));
    let program = program.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    has_code().then(|| program.plan().expect("a plan").parts().steps.len())
}

/// Whether there is machine code.
fn has_code() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A few floating-point operations, in any order.
const CLOSE: Tolerance = Tolerance::Distance { rtol: 1e-3, atol: 1e-3 };

/// The name, the elements, iterations, the state, the body, and how close.
type Case = (&'static str, &'static str, u32, &'static [&'static str], &'static str, Tolerance);

const CASES: &[Case] = &[
    (
        "a scan of numbers",
        "s32",
        500,
        &["T[500]", "T[500]", "T[]"],
        "x = T[1] dynamic-slice(s0, i), dynamic_slice_sizes={1} y = T[] reshape(x)
         k = T[] constant(3) m = T[] multiply(s2, k) n2 = T[] add(m, y) u = T[1] reshape(n2)
         n1 = T[500] dynamic-update-slice(s1, u, i) n0 = T[500] copy(s0)",
        Tolerance::Exact,
    ),
    (
        "a scan of rows",
        "f32",
        40,
        &["T[40,5]", "T[40,5]", "T[5]"],
        "z = s32[] constant(0) x = T[1,5] dynamic-slice(s0, i, z), dynamic_slice_sizes={1,5}
         y = T[5] reshape(x) m = T[5] multiply(s2, y) n2 = T[5] reverse(m), dimensions={0}
         u = T[1,5] reshape(n2) n1 = T[40,5] dynamic-update-slice(s1, u, i, z) n0 = T[40,5] copy(s0)",
        CLOSE,
    ),
    (
        "what is handed on",
        "s32",
        31,
        &["T[37]", "T[37]", "T[5,5]", "T[5,5]", "T[5,5]"],
        "n0 = T[37] copy(s1) a = T[37] add(s0, s1) n1 = T[37] reverse(a), dimensions={0}
         n2 = T[5,5] copy(s3) n3 = T[5,5] copy(s4) n4 = T[5,5] transpose(s2), dimensions={1,0}",
        Tolerance::Exact,
    ),
    (
        "slices and concatenations",
        "f32",
        25,
        &["T[3]"],
        "a = T[1] slice(s0), slice={[0:1]} b = T[1] slice(s0), slice={[1:2]}
         c = T[1] slice(s0), slice={[2:3]} d = T[1] multiply(a, b) f = T[1] tanh(d)
         g = T[1] subtract(c, a) h = T[] constant(0.1) k = T[3] broadcast(h), dimensions={}
         l = T[3] concatenate(f, g, b), dimensions={0} m = T[3] multiply(l, k) n0 = T[3] add(s0, m)",
        CLOSE,
    ),
    (
        "a recurrent network",
        "f32",
        12,
        &["T[1,16]", "T[16,16]", "T[12,1,16]"],
        "h = T[1,16] dot(s0, s1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         n0 = T[1,16] tanh(h) u = T[1,1,16] reshape(n0) z = s32[] constant(0)
         n2 = T[12,1,16] dynamic-update-slice(s2, u, i, z, z) n1 = T[16,16] copy(s1)",
        CLOSE,
    ),
    (
        "products in f64",
        "f64",
        9,
        &["T[6]", "T[6,6]", "T[2,3,6]"],
        "h = T[6] dot(s1, s0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         n0 = T[6] tanh(h) n1 = T[6,6] copy(s1)
         b = T[2,3,3] dot(s2, s2), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
         c = T[2,3,6] concatenate(b, b), dimensions={2} n2 = T[2,3,6] sine(c)",
        CLOSE,
    ),
    (
        "sums and the greatest",
        "s32",
        17,
        &["T[20,20]", "T[20]"],
        "z = T[] constant(0) l = T[] constant(-100000) b = T[20,20] broadcast(s1), dimensions={1}
         a = T[20,20] add(s0, b) m = T[20] reduce(a, l), dimensions={0}, to_apply=max
         s = T[20] reduce(a, z), dimensions={1}, to_apply=add
         n1 = T[20] subtract(m, s) n0 = T[20,20] transpose(a), dimensions={1,0}",
        Tolerance::Exact,
    ),
    (
        "cumulative sums of a few numbers",
        "s32",
        23,
        &["T[9]", "T[3,7]"],
        "z = T[] constant(0) l = T[] constant(-2147483648)
         a = T[9] reduce-window(s0, z), window={size=9 pad=8_0}, to_apply=add
         b = T[3,7] reduce-window(s1, l), window={size=1x7 pad=0_0x0_6}, to_apply=max
         c = T[9] reverse(a), dimensions={0} n0 = T[9] subtract(c, s0)
         d = T[3,7] reverse(b), dimensions={0,1} n1 = T[3,7] subtract(d, s1)",
        Tolerance::Exact,
    ),
    (
        "halves and bits",
        "bf16",
        20,
        &["T[19]", "pred[19]", "u8[19]"],
        "m = T[19] reverse(s0), dimensions={0} c = pred[19] compare(s0, m), direction=LT
         n1 = pred[19] xor(c, s1) n0 = T[19] select(s1, m, s0) k = u8[] constant(1)
         o = u8[19] broadcast(k), dimensions={} p = u8[19] add(s2, o) n2 = u8[19] reverse(p), dimensions={0}",
        Tolerance::Exact,
    ),
    (
        "complex numbers",
        "c64",
        10,
        &["T[7]", "T[7]"],
        "m = T[7] multiply(s0, s1) v = T[7] reverse(m), dimensions={0} n0 = T[7] subtract(v, s1)
         n1 = T[7] copy(s1)",
        CLOSE,
    ),
    (
        "elements that go through all iterations by themselves",
        "s32",
        20,
        &["T[3000]", "T[3000]", "T[]"],
        "k = T[] constant(3) b = T[3000] broadcast(s2), dimensions={} m = T[3000] multiply(s0, b)
         n0 = T[3000] add(m, s1) a = T[] multiply(s2, k) n2 = T[] add(a, i)
         o = T[3000] iota(), iota_dimension=0 n1 = T[3000] xor(s1, o)",
        Tolerance::Exact,
    ),
    (
        "complex elements",
        "c64",
        12,
        &["T[40,5]", "T[40,5]"],
        "h = T[] constant((0.02, 0.01)) b = T[40,5] broadcast(h), dimensions={}
         m = T[40,5] multiply(s0, s0) q = T[40,5] multiply(m, b) n0 = T[40,5] add(q, s1)
         n1 = T[40,5] copy(s1)",
        CLOSE,
    ),
    (
        "a search in a table",
        "s32",
        10,
        &["T[700]", "f32[333]", "f32[700]"],
        "g = f32[700] gather(s1, s0), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
          index_vector_dim=1, slice_sizes={1}
         c = pred[700] compare(g, s2), direction=LT k = T[] constant(41) b = T[700] broadcast(k), dimensions={}
         u = T[700] add(s0, b) d = T[700] subtract(s0, b) n0 = T[700] select(c, u, d)
         n1 = f32[333] copy(s1) n2 = f32[700] copy(s2)",
        Tolerance::Exact,
    ),
    (
        "rows in, rows out, columns by themselves",
        "f32",
        30,
        &["T[30,70]", "T[30,70]", "T[70]"],
        "z = s32[] constant(0) x = T[1,70] dynamic-slice(s0, i, z), dynamic_slice_sizes={1,70}
         y = T[70] reshape(x) m = T[70] multiply(s2, y) n2 = T[70] tanh(m) u = T[1,70] reshape(n2)
         n1 = T[30,70] dynamic-update-slice(s1, u, i, z) n0 = T[30,70] copy(s0)",
        CLOSE,
    ),
    (
        "a table that is made and read",
        "s32",
        60,
        &["T[64]", "T[]"],
        "k = s32[] constant(1) h = s32[] add(i, k) x = T[1] dynamic-slice(s0, i), dynamic_slice_sizes={1}
         y = T[1] dynamic-slice(s0, h), dynamic_slice_sizes={1} v = T[1] add(x, y) q = s32[] constant(2)
         g = s32[] add(i, q) n0 = T[64] dynamic-update-slice(s0, v, g) w = T[] reshape(v)
         n1 = T[] xor(s1, w)",
        Tolerance::Exact,
    ),
    (
        "matrices of a few elements",
        "f32",
        20,
        &["T[2]", "T[2,2]", "T[20,3]"],
        "k = T[] constant(0.2) z = s32[] constant(0) f = T[2] dot(s1, s0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         n0 = T[2] tanh(f) m = T[2,2] dot(s1, s1), lhs_contracting_dims={1}, rhs_contracting_dims={1}
         b = T[2,2] broadcast(k), dimensions={} n = T[2,2] multiply(m, b) v = T[2,2] transpose(n), dimensions={1,0}
         n1 = T[2,2] tanh(v) s = T[] reduce(n1, k), dimensions={0,1}, to_apply=add l = T[1] reshape(s)
         e = T[3] concatenate(l, n0), dimensions={0} d = T[3] reverse(e), dimensions={0} u = T[1,3] reshape(d)
         n2 = T[20,3] dynamic-update-slice(s2, u, i, z)",
        CLOSE,
    ),
    (
        "scatters of one window, inside and beyond",
        "f32",
        40,
        &["T[30,3]", "T[3]", "T[30]"],
        "k = s32[1] reshape(i) n0 = T[30,3] scatter(s0, k, s1), update_window_dims={0},
         inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=max
         h = T[] constant(0.5) b = T[3] broadcast(h), dimensions={} n1 = T[3] multiply(s1, b)
         five = s32[1] constant({5}) m = s32[1] subtract(five, k) v = T[1] slice(s1), slice={[1:2]} w = T[] reshape(v)
         n2 = T[30] scatter(s2, m, w), update_window_dims={}, inserted_window_dims={0},
         scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add",
        Tolerance::Exact,
    ),
    (
        "factors of a matrix, and a system with it",
        "f32",
        12,
        &["T[4,4]", "T[4,3]", "T[3,4]"],
        "d = T[4,4] dot(s0, s0), lhs_contracting_dims={1}, rhs_contracting_dims={1}
         rows = s32[4,4] iota(), iota_dimension=0 c = s32[4,4] iota(), iota_dimension=1
         is = pred[4,4] compare(rows, c), direction=EQ e = T[4,4] convert(is) a = T[4,4] add(d, e)
         n0 = T[4,4] cholesky(a), lower=true
         n1 = T[4,3] triangular-solve(n0, s1), left_side=true, lower=true, unit_diagonal=false,
         transpose_a=NO_TRANSPOSE
         u = T[4,4] cholesky(a), lower=false
         n2 = T[3,4] triangular-solve(u, s2), left_side=false, lower=false, unit_diagonal=true, transpose_a=TRANSPOSE",
        CLOSE,
    ),
    (
        "a batch of factors in 64 bits",
        "f64",
        9,
        &["T[19,3,3]", "T[19,1,3]", "T[19,3,9]"],
        "d = T[19,3,3] dot(s0, s0), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1},
         rhs_contracting_dims={1}
         rows = s32[19,3,3] iota(), iota_dimension=1 c = s32[19,3,3] iota(), iota_dimension=2
         is = pred[19,3,3] compare(rows, c), direction=EQ e = T[19,3,3] convert(is) a = T[19,3,3] add(d, e)
         n0 = T[19,3,3] cholesky(a), lower=false
         n1 = T[19,1,3] triangular-solve(n0, s1), left_side=false, lower=false, unit_diagonal=false,
         transpose_a=NO_TRANSPOSE
         n2 = T[19,3,9] triangular-solve(n0, s2), left_side=true, lower=false, unit_diagonal=false,
         transpose_a=TRANSPOSE",
        CLOSE,
    ),
    (
        "LU factors with their pivots, by LAPACK's name",
        "f32",
        12,
        &["T[2,3,4]", "s32[2,3]", "s32[2]", "T[3]"],
        "q = (T[2,3,4]{1,2,0}, s32[2,3]{1,0}, s32[2]{0}) custom-call(s0), custom_call_target=\"lapack_sgetrf_ffi\",
         operand_layout_constraints={T[2,3,4]{1,2,0}}, api_version=API_VERSION_TYPED_FFI, backend_config={}
         f = T[2,3,4]{1,2,0} get-tuple-element(q), index=0 v = T[2,3,4] reverse(f), dimensions={1}
         j2 = T[3] constant({1, 0.5, 0.25}) w = T[2,3,4] broadcast(j2), dimensions={1}
         n0 = T[2,3,4] add(v, w) n1 = s32[2,3]{1,0} get-tuple-element(q), index=1
         n2 = s32[2]{0} get-tuple-element(q), index=2 n3 = T[3] add(s3, j2)",
        CLOSE,
    ),
    (
        "sums of rows by number, some of which there are not",
        "f32",
        20,
        &["T[9,3]", "T[20,3]"],
        "k = s32[20] iota(), iota_dimension=0 b = s32[20] broadcast(i), dimensions={} c = s32[] constant(12)
         d = s32[20] broadcast(c), dimensions={} e = s32[20] add(k, b) at = s32[20] subtract(e, d)
         n0 = T[9,3] scatter(s0, at, s1), update_window_dims={1}, inserted_window_dims={0},
         scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
         n1 = T[20,3] reverse(s1), dimensions={0}",
        CLOSE,
    ),
    (
        "one element of each row is set",
        "s32",
        20,
        &["T[132,12]", "T[132]"],
        "k = s32[132] iota(), iota_dimension=0 b = s32[132] broadcast(i), dimensions={} e = s32[132] add(k, b)
         c = s32[] constant(14) d = s32[132] broadcast(c), dimensions={} at = s32[132] remainder(e, d)
         n0 = T[132,12] scatter(s0, at, s1), update_window_dims={}, inserted_window_dims={1},
         scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},
         index_vector_dim=1, to_apply=set n1 = T[132] reverse(s1), dimensions={0}",
        Tolerance::Exact,
    ),
    (
        "windows that lie partly outside, in lanes of 64 bits",
        "f64",
        20,
        &["T[2,9,40]", "T[18,2,3,19]"],
        "k = s64[18,2] iota(), iota_dimension=0 w = s64[] convert(i) b = s64[18,2] broadcast(w), dimensions={}
         c = s64[18,2] iota(), iota_dimension=1 e = s64[18,2] add(k, b) f = s64[18,2] multiply(e, c)
         h = s64[] constant(9) g = s64[18,2] broadcast(h), dimensions={} m = s64[18,2] subtract(e, g)
         at = s64[18,2] add(m, f)
         n0 = T[2,9,40] scatter(s0, at, s1), update_window_dims={1,2,3}, inserted_window_dims={},
         scatter_dims_to_operand_dims={1,2}, index_vector_dim=1, to_apply=max
         n1 = T[18,2,3,19] negate(s1)",
        Tolerance::Exact,
    ),
    (
        "columns are multiplied by one number",
        "u8",
        20,
        &["T[5,33]", "u32[17]"],
        "c = T[] constant(3) u = T[5,17] broadcast(c), dimensions={}
         n0 = T[5,33] scatter(s0, s1, u), update_window_dims={0}, inserted_window_dims={1},
         scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add
         m = u32[] constant(61) d = u32[17] broadcast(m), dimensions={} k = u32[17] iota(), iota_dimension=0
         e = u32[17] add(s1, k) n1 = u32[17] remainder(e, d)",
        Tolerance::Exact,
    ),
];

#[test]
fn loops_are_right_and_native() {
    for &(name, ty, trips, state, body, tolerance) in CASES {
        let text = counted(ty, trips, state, body);
        if let Some(steps) = check(&text, tolerance) {
            // The initial state is copied, and scalars may have a kernel of their own.
            assert!(steps <= state.len() + 3, "{name}: {steps} steps");
        }
    }
}

/// The length of a body does not matter, and what its steps leave takes no more room than what is needed at
/// once.
#[test]
fn loops_with_long_bodies_are_one_kernel() {
    let (mut body, steps) = (String::new(), 1500);
    let _ = writeln!(body, "x0 = T[9,3] copy(s0)");
    for n in 1..=steps {
        let before = n - 1;
        let _ = writeln!(
            body,
            "a{n} = T[9,1] slice(x{before}), slice={{[0:9], [1:2]}} b{n} = T[9,2] slice(x{before}),
             slice={{[0:9], [0:2]}} c{n} = T[9,3] concatenate(a{n}, b{n}), dimensions={{1}}
             d{n} = T[9,3] add(c{n}, s1) x{n} = T[9,3] reverse(d{n}), dimensions={{0}}"
        );
    }
    let _ = writeln!(body, "n0 = T[9,3] copy(x{steps}) n1 = T[9,3] reverse(s1), dimensions={{1}}");
    let text = counted("s32", 40, &["T[9,3]", "T[9,3]"], &body);
    if let Some(steps) = check(&text, Tolerance::Exact) {
        assert!(steps <= 5, "{steps} steps");
    }
}

/// A loop in a loop, of which the inner one is a kernel within that of the outer one.
#[test]
fn loops_nest() {
    let text = "
    inner { t = (s32[], s32[21]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[21] get-tuple-element(t), index=1 one = s32[] constant(1) j = s32[] add(i, one)
     r = s32[21] reverse(x), dimensions={0} b = s32[21] broadcast(i), dimensions={}
     y = s32[21] subtract(r, b) ROOT n = (s32[], s32[21]) tuple(j, y) }
    below { t = (s32[], s32[21]) parameter(0) i = s32[] get-tuple-element(t), index=0
     m = s32[] constant(13) ROOT r = pred[] compare(i, m), direction=LT }
    outer { t = (s32[], s32[21], s32[21]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[21] get-tuple-element(t), index=1 y = s32[21] get-tuple-element(t), index=2
     z = s32[] constant(0) s = (s32[], s32[21]) tuple(z, x)
     w = (s32[], s32[21]) while(s), condition=below, body=inner
     v = s32[21] get-tuple-element(w), index=1 a = s32[21] add(v, y) one = s32[] constant(1)
     j = s32[] add(i, one) ROOT n = (s32[], s32[21], s32[21]) tuple(j, a, v) }
    more { t = (s32[], s32[21], s32[21]) parameter(0) i = s32[] get-tuple-element(t), index=0
     m = s32[] constant(30) ROOT r = pred[] compare(i, m), direction=LT }
    ENTRY e { z = s32[] constant(0) x = s32[21] parameter(0) y = s32[21] parameter(1)
     s = (s32[], s32[21], s32[21]) tuple(z, x, y)
     ROOT w = (s32[], s32[21], s32[21]) while(s), condition=more, body=outer }";
    if let Some(steps) = check(text, Tolerance::Exact) {
        assert!(steps <= 4, "{steps} steps");
    }
}

/// A loop in a loop, whose number of iterations only its condition knows, and a branch in each.
const SEARCH: &str = "
    grow { x = s32[9] parameter(0) two = s32[] constant(2) b = s32[9] broadcast(two), dimensions={}
     ROOT y = s32[9] multiply(x, b) }
    turn { x = s32[9] parameter(0) ROOT y = s32[9] reverse(x), dimensions={0} }
    keep { x = s32[9] parameter(0) m = s32[9] iota(), iota_dimension=0 ROOT y = s32[9] add(x, m) }
    step { t = (s32[], s32[9], s32[]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[9] get-tuple-element(t), index=1 l = s32[] get-tuple-element(t), index=2
     two = s32[] constant(2) p = s32[] and(i, two) no = s32[] constant(0)
     c = pred[] compare(p, no), direction=EQ
     y = s32[9] conditional(c, x, x), true_computation=turn, false_computation=keep
     one = s32[] constant(1) j = s32[] add(i, one) ROOT n = (s32[], s32[9], s32[]) tuple(j, y, l) }
    below { t = (s32[], s32[9], s32[]) parameter(0) i = s32[] get-tuple-element(t), index=0
     l = s32[] get-tuple-element(t), index=2 ROOT r = pred[] compare(i, l), direction=LT }
    outer { t = (s32[], s32[9], s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[9] get-tuple-element(t), index=1 l = s32[] get-tuple-element(t), index=2
     o = s32[40] get-tuple-element(t), index=3
     three = s32[] constant(3) k = s32[] remainder(i, three)
     a = s32[9] conditional(k, x, x, x), branch_computations={grow, turn, keep}
     no = s32[] constant(0) s = (s32[], s32[9], s32[]) tuple(no, a, l)
     w = (s32[], s32[9], s32[]) while(s), condition=below, body=step
     v = s32[9] get-tuple-element(w), index=1 e = s32[1] slice(v), slice={[3:4]}
     p = s32[40] dynamic-update-slice(o, e, i)
     one = s32[] constant(1) j = s32[] add(i, one)
     seven = s32[] constant(7) q = s32[] multiply(j, seven) m = s32[] constant(LIMIT)
     n1 = s32[] remainder(q, m) ROOT n = (s32[], s32[9], s32[], s32[40]) tuple(j, v, n1, p) }
    more { t = (s32[], s32[9], s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     o = s32[40] get-tuple-element(t), index=3 f = s32[1] slice(o), slice={[39:40]}
     g = s32[] reshape(f) no = s32[] constant(1234567) a = pred[] compare(g, no), direction=NE
     m = s32[] constant(30) b = pred[] compare(i, m), direction=LT ROOT r = pred[] and(a, b) }
    ENTRY e { z = s32[] constant(0) x = s32[9] parameter(0) o = s32[40] parameter(1)
     l = s32[] constant(FIRST) s = (s32[], s32[9], s32[], s32[40]) tuple(z, x, l, o)
     ROOT w = (s32[], s32[9], s32[], s32[40]) while(s), condition=more, body=outer }";

fn search(first: i64, limit: i64) -> String {
    SEARCH.replace("FIRST", &first.to_string()).replace("LIMIT", &limit.to_string())
}

/// A call may end in the middle of an iteration: there the next one goes on.
#[test]
fn loops_in_loops_are_one_kernel() {
    // A few iterations of the inner loop each time, and so many that there are several calls.
    for limit in [11, 40_000] {
        let steps = check(&search(5, limit), Tolerance::Exact);
        // The condition, copies of the state, zeros for what is kept between calls.
        assert!(steps.is_none_or(|steps| steps <= 16), "{steps:?} steps");
        if steps.is_some() {
            let program = helio::parse(&search(5, limit)).expect("a module");
            let program = helio::compile(program, &CompileOptions::default()).expect("a program");
            let plan = program.plan().expect("a plan");
            assert_eq!(loops(&plan.parts().steps), [1], "one loop, of one kernel");
        }
    }
}

/// Loops of single numbers, which are values as long as the code runs: a byte that wraps, a flag that chooses a
/// branch, a loop in it whose number of iterations only its condition knows, results of both branches, an array of
/// which one element is written at a time.
const NUMBERS: &str = "
    odd { t = (s32[], s32[]) parameter(0) n = s32[] get-tuple-element(t), index=0
     c = s32[] get-tuple-element(t), index=1 one = s32[] constant(1) d = s32[] add(c, one)
     b = s32[] and(n, one) z = s32[] constant(0) o = pred[] compare(b, z), direction=NE
     h = s32[] shift-right-arithmetic(n, one) k = s32[] constant(3) m = s32[] multiply(n, k)
     l = s32[] add(m, one) x = s32[] select(o, l, h) ROOT r = (s32[], s32[]) tuple(x, d) }
    above { t = (s32[], s32[]) parameter(0) n = s32[] get-tuple-element(t), index=0
     c = s32[] get-tuple-element(t), index=1 one = s32[] constant(1) m = s32[] constant(LIMIT)
     a = pred[] compare(n, one), direction=GT b = pred[] compare(c, m), direction=LT
     ROOT r = pred[] and(a, b) }
    walk { t = (s32[], u8[]) parameter(0) i = s32[] get-tuple-element(t), index=0
     b = u8[] get-tuple-element(t), index=1 z = s32[] constant(0) s = (s32[], s32[]) tuple(i, z)
     w = (s32[], s32[]) while(s), condition=above, body=odd c = s32[] get-tuple-element(w), index=1
     d = u8[] convert(c) e = u8[] multiply(b, d) ROOT r = (s32[], u8[]) tuple(c, e) }
    stay { t = (s32[], u8[]) parameter(0) i = s32[] get-tuple-element(t), index=0
     b = u8[] get-tuple-element(t), index=1 k = u8[] constant(201) e = u8[] add(b, k)
     m = s32[] constant(-1) j = s32[] xor(i, m) ROOT r = (s32[], u8[]) tuple(j, e) }
    outer { t = (s32[], u8[], f32[], pred[], s32[], s32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0
     b = u8[] get-tuple-element(t), index=1 x = f32[] get-tuple-element(t), index=2
     p = pred[] get-tuple-element(t), index=3 k = s32[] get-tuple-element(t), index=4
     o = s32[64] get-tuple-element(t), index=5 a = (s32[], u8[]) tuple(i, b)
     w = (s32[], u8[]) conditional(p, a, a), true_computation=walk, false_computation=stay
     c = s32[] get-tuple-element(w), index=0 e = u8[] get-tuple-element(w), index=1
     q = s32[] add(k, c) v = s32[] constant(7) u = s32[] and(q, v) y = u8[] constant(130)
     f = pred[] compare(e, y), direction=LT g = pred[] compare(u, v), direction=NE h = pred[] or(f, g)
     n = f32[] negate(x) l = f32[] select(p, n, x) one = f32[] constant(1) d = f32[] add(l, one)
     m = s32[] constant(63) at = s32[] and(i, m) r = s32[1] reshape(q)
     s = s32[64] dynamic-update-slice(o, r, at) j1 = s32[] constant(1) j = s32[] add(i, j1)
     ROOT z = (s32[], u8[], f32[], pred[], s32[], s32[64]) tuple(j, e, d, h, q, s) }
    more { t = (s32[], u8[], f32[], pred[], s32[], s32[64]) parameter(0) i = s32[] get-tuple-element(t), index=0
     k = s32[] get-tuple-element(t), index=4 n = s32[] constant(-123456) a = pred[] compare(k, n), direction=NE
     m = s32[] constant(TIMES) b = pred[] compare(i, m), direction=LT ROOT r = pred[] and(a, b) }
    ENTRY e { z = s32[] constant(0) b = u8[] parameter(0) x = f32[] parameter(1) p = pred[] parameter(2)
     k = s32[] parameter(3) o = s32[64] parameter(4)
     s = (s32[], u8[], f32[], pred[], s32[], s32[64]) tuple(z, b, x, p, k, o)
     ROOT w = (s32[], u8[], f32[], pred[], s32[], s32[64]) while(s), condition=more, body=outer }";

#[test]
fn loops_of_numbers_agree() {
    // No iteration of the inner loop, some, and so many that there are several calls; an outer loop without any.
    for (limit, times) in [(0, 100), (20, 300), (1000, 300), (150, 30_000), (20, 0)] {
        let text =
            NUMBERS.replace("LIMIT", &limit.to_string()).replace("TIMES", &times.to_string());
        // Numbers of 32 bits, of 64, and some of each; the longest loop once, as the interpreter takes its time.
        let types = [("f32", "s32"), ("f64", "s32"), ("f32", "s64"), ("f64", "s64")];
        for (float, int) in types.into_iter().take(if times > 1000 { 1 } else { 4 }) {
            let text = text.replace("f32[", &format!("{float}["));
            let text = text.replace("s32[", &format!("{int}["));
            let steps = check(&text, Tolerance::Exact);
            // As for loops in loops: the condition, copies of the state, zeros for what is kept between calls.
            assert!(steps.is_none_or(|steps| steps <= 20), "{steps:?} steps");
        }
    }
}

/// Vectors and rows of `COUNT` numbers, which are stored and loaded in each iteration: whole, a row of several, and
/// single numbers. What is beside them in memory must stay.
const FEW: &str = "
     z = s32[] constant(0) three = s32[] constant(3) c = s32[] remainder(i, three)
     k = T[] constant(3) f = T[COUNT] broadcast(k), dimensions={} m = T[COUNT] multiply(s0, f)
     q = T[COUNT] reverse(m), dimensions={0} x = T[1,COUNT] dynamic-slice(s1, c, z), dynamic_slice_sizes={1,COUNT}
     y = T[COUNT] reshape(x) n0 = T[COUNT] subtract(q, y)
     first = T[1] slice(n0), slice={[0:1]} one0 = T[] reshape(first) n2 = T[] subtract(one0, s2)
     u = T[1,COUNT] reshape(n0) v = T[3,COUNT] dynamic-update-slice(s1, u, c, z)
     w = T[1,1] reshape(n2) d = s32[] constant(COUNT) e = s32[] remainder(i, d)
     n1 = T[3,COUNT] dynamic-update-slice(v, w, c, e)";

#[test]
fn states_of_few_numbers_agree() {
    for ty in ["f32", "s32", "f64", "s64"] {
        for count in 1..=20 {
            let state = [format!("T[{count}]"), format!("T[3,{count}]"), "T[]".to_owned()];
            let state = state.each_ref().map(String::as_str);
            // Few iterations, as floats would grow beyond what is exact.
            let body = FEW.replace("COUNT", &count.to_string());
            check(&counted(ty, 7, &state, &body), CLOSE);
        }
    }
}

/// Three loops within each other, the inner two of them in a branch, or not: what comes before and behind
/// them in each, and how often they run, differs from iteration to iteration.
const DEEP: &str = "
    some { t = (s32[9], s32[], s32[40]) parameter(0) x = s32[9] get-tuple-element(t), index=0
     l = s32[] get-tuple-element(t), index=1 o = s32[40] get-tuple-element(t), index=2
     z = s32[] constant(21) k = s32[] constant(5) f = s32[] remainder(l, k) y = s32[] add(z, f)
     s = (s32[], s32[9], s32[], s32[40]) tuple(y, x, l, o)
     w = (s32[], s32[9], s32[], s32[40]) while(s), condition=more, body=outer
     v = s32[9] get-tuple-element(w), index=1 m = s32[] get-tuple-element(w), index=2
     p = s32[40] get-tuple-element(w), index=3 q = s32[40] reverse(p), dimensions={0}
     ROOT n = (s32[9], s32[], s32[40]) tuple(v, m, q) }
    none { t = (s32[9], s32[], s32[40]) parameter(0) x = s32[9] get-tuple-element(t), index=0
     l = s32[] get-tuple-element(t), index=1 o = s32[40] get-tuple-element(t), index=2
     y = s32[9] reverse(x), dimensions={0} ROOT n = (s32[9], s32[], s32[40]) tuple(y, l, o) }
    top { t = (s32[], s32[9], s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[9] get-tuple-element(t), index=1 l = s32[] get-tuple-element(t), index=2
     o = s32[40] get-tuple-element(t), index=3 two = s32[] constant(2) c = s32[] and(i, two)
     s = (s32[9], s32[], s32[40]) tuple(x, l, o) CHOICE
     v = s32[9] get-tuple-element(w), index=0 m = s32[] get-tuple-element(w), index=1
     p = s32[40] get-tuple-element(w), index=2 e = s32[9] broadcast(i), dimensions={} u = s32[9] xor(v, e)
     one = s32[] constant(1) j = s32[] add(i, one) ROOT n = (s32[], s32[9], s32[], s32[40]) tuple(j, u, m, p) }
    limit { t = (s32[], s32[9], s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     l = s32[] get-tuple-element(t), index=2 k = s32[] constant(-1) a = pred[] compare(l, k), direction=NE
     m = s32[] constant(7) b = pred[] compare(i, m), direction=LT ROOT r = pred[] and(a, b) }
    ENTRY e { z = s32[] constant(0) x = s32[9] parameter(0) o = s32[40] parameter(1)
     l = s32[] constant(FIRST) s = (s32[], s32[9], s32[], s32[40]) tuple(z, x, l, o)
     ROOT w = (s32[], s32[9], s32[], s32[40]) while(s), condition=limit, body=top }";

#[test]
fn loops_in_loops_and_branches_of_loops_are_one_kernel() {
    let (inner, _) = SEARCH.split_once("ENTRY").expect("an entry");
    let choices = [
        "w = (s32[9], s32[], s32[40]) call(s), to_apply=some",
        "w = (s32[9], s32[], s32[40]) conditional(c, s, s, s), branch_computations={some, none, some}",
    ];
    for (choice, limit) in choices.into_iter().flat_map(|choice| [(choice, 11), (choice, 20_000)]) {
        let text = format!("{inner}{DEEP}").replace("CHOICE", choice);
        let text = text.replace("FIRST", "5").replace("LIMIT", &limit.to_string());
        if check(&text, Tolerance::Exact).is_some() {
            let program = helio::parse(&text).expect("a module");
            let program = helio::compile(program, &CompileOptions::default()).expect("a program");
            let plan = program.plan().expect("a plan");
            assert_eq!(loops(&plan.parts().steps), [1], "one loop, of one kernel");
        }
    }
}

/// How many steps the body of each loop has.
fn loops(steps: &[helio_runtime::program::Step]) -> Vec<usize> {
    use helio_runtime::program::Action;
    let body = |step: &helio_runtime::program::Step| match &step.action {
        Action::While(each) => Some(each.body.len()),
        _ => None,
    };
    steps.iter().filter_map(body).collect()
}

#[test]
fn an_inner_loop_without_end_can_be_stopped() {
    let module = helio::parse(&search(i32::MAX.into(), 11)).expect("a module");
    let program = helio::compile(module, &CompileOptions::default()).expect("a program");
    let shape = helio::parse(&search(1, 11)).expect("a module").entry().program_shape();
    let arguments = random_arguments(&shape.params, 5).expect("arguments");
    let mut options = RunOptions::default();
    options.limits.max_steps = Some(500);
    let error = program.run_with(&arguments, &options).expect_err("too many steps").to_string();
    assert!(error.contains("500 steps"), "{error}");
}

/// `x[j] = 3 x[n - 1 - j] + 1`, as long as the counter differs from its limit.
const STEPS: &str = "
    body { t = (s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     x = s32[40] get-tuple-element(t), index=1 one = s32[] constant(1) j = s32[] add(i, one)
     r = s32[40] reverse(x), dimensions={0} three = s32[] constant(3)
     b = s32[40] broadcast(three), dimensions={} o = s32[40] broadcast(one), dimensions={}
     m = s32[40] multiply(r, b) y = s32[40] add(m, o) ROOT n = (s32[], s32[40]) tuple(j, y) }
    cond { t = (s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=0
     m = s32[] constant(LIMIT) ROOT r = pred[] compare(i, m), direction=NE }";

/// A program of that loop, which begins at its first argument.
const LONG: &str = "
    ENTRY e { z = s32[] parameter(0) x = s32[40] parameter(1) s = (s32[], s32[40]) tuple(z, x)
     ROOT w = (s32[], s32[40]) while(s), condition=cond, body=body }";

/// What the body of [`STEPS`] makes of its array in this many iterations.
fn take_steps(x: &mut [i32], times: i32) {
    for _ in 0..times {
        x.reverse();
        x.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(1));
    }
}

fn long(limit: i64) -> helio::Executable {
    let module = helio::parse(&format!("{STEPS}{LONG}").replace("LIMIT", &limit.to_string()))
        .expect("a module");
    helio::compile(module, &CompileOptions::default()).expect("a program")
}

fn numbers() -> Vec<i32> {
    (0..40).collect()
}

#[test]
fn a_long_loop_takes_several_calls() {
    const TRIPS: i32 = 300_000;
    let arguments = [Literal::scalar(0i32), Literal::array([40], numbers()).expect("an array")];
    let result = long(TRIPS.into()).run(&arguments).expect("a result");
    let mut x = numbers();
    take_steps(&mut x, TRIPS);
    let expected = Literal::array([40], x).expect("an array");
    assert!(result.leaves()[1].same_bits(&expected));
}

/// As long as an element of its state says so: the loop of [`STEPS`], then `x = -x`; three times.
const FLAGGED: &str = "
    outer { t = (pred[], s32[], s32[40]) parameter(0) i = s32[] get-tuple-element(t), index=1
     x = s32[40] get-tuple-element(t), index=2 one = s32[] constant(1) j = s32[] add(i, one)
     three = s32[] constant(3) go = pred[] compare(j, three), direction=LT
     z = s32[] constant(0) s = (s32[], s32[40]) tuple(z, x)
     w = (s32[], s32[40]) while(s), condition=cond, body=body
     y = s32[40] get-tuple-element(w), index=1 n = s32[40] negate(y)
     ROOT u = (pred[], s32[], s32[40]) tuple(go, j, n) }
    flag { t = (pred[], s32[], s32[40]) parameter(0) ROOT r = pred[] get-tuple-element(t), index=0 }
    ENTRY e { x = s32[40] parameter(0) z = s32[] constant(0) go = pred[] constant(true)
     s = (pred[], s32[], s32[40]) tuple(go, z, x)
     ROOT w = (pred[], s32[], s32[40]) while(s), condition=flag, body=outer }";

#[test]
fn a_loop_stops_in_an_iteration_whose_next_flag_is_there() {
    const TRIPS: i32 = 300_000;
    let module = helio::parse(&format!("{STEPS}{FLAGGED}").replace("LIMIT", &TRIPS.to_string()))
        .expect("a module");
    let program = helio::compile(module, &CompileOptions::default()).expect("a program");
    let argument = Literal::array([40], numbers()).expect("an array");
    let result = program.run(&[argument]).expect("a result");
    let mut x = numbers();
    for _ in 0..3 {
        take_steps(&mut x, TRIPS);
        x.iter_mut().for_each(|x| *x = x.wrapping_neg());
    }
    let expected = Literal::array([40], x).expect("an array");
    assert!(result.leaves()[2].same_bits(&expected));
    if has_code() {
        assert_eq!(loops(&program.plan().expect("a plan").parts().steps), [1]);
    }
}

#[test]
fn a_loop_without_end_can_be_stopped() {
    let arguments = [Literal::scalar(0i32), Literal::array([40], numbers()).expect("an array")];
    let program = long(-1);
    let mut options = RunOptions::default();
    options.limits.max_steps = Some(500);
    let error = program.run_with(&arguments, &options).expect_err("too many steps").to_string();
    assert!(error.contains("500 steps"), "{error}");

    let cancel = Arc::new(AtomicBool::new(false));
    let mut options = RunOptions::default();
    options.limits.cancel = Some(Arc::clone(&cancel));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            cancel.store(true, Ordering::Relaxed);
        });
        let error = program.run_with(&arguments, &options).expect_err("cancelled").to_string();
        assert!(error.contains("cancelled"), "{error}");
    });
}

/// Bodies made of random operations on integers, with state of several shapes.
#[test]
fn random_loops_agree() {
    const SHAPES: [&str; 5] = ["T[]", "T[3]", "T[4,4]", "T[17]", "T[6,7]"];
    let mut rng = Rand32::new(3);
    for _ in 0..60 {
        let mut below = |n: u32| rng.rand_range(0..n) as usize;
        let kinds: Vec<usize> = (0..2 + below(4)).map(|_| below(5)).collect();
        let mut values: Vec<Vec<String>> = vec![Vec::new(); 5];
        kinds.iter().enumerate().for_each(|(n, &kind)| values[kind].push(format!("s{n}")));
        let mut body = "zero = s32[] constant(0)\n".to_owned();
        for v in 0..6 + below(10) {
            let kind = kinds[below(kinds.len() as u32)];
            let shape = SHAPES[kind];
            let mut pick = || values[kind][below(values[kind].len() as u32)].clone();
            let (a, b) = (pick(), pick());
            let rank = shape.matches(',').count() + usize::from(shape != "T[]");
            let text = match (below(7), kind) {
                (0, _) => format!("subtract({a}, {b})"),
                (1, _) => format!("multiply({a}, {b})"),
                (2, _) if rank > 0 => format!("reverse({a}), dimensions={{{}}}", rank - 1),
                (3, 2) => format!("transpose({a}), dimensions={{1,0}}"),
                (4, 2) => format!(
                    "dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{}}}",
                    below(2)
                ),
                (3 | 4, 3) => {
                    let _ = writeln!(
                        body,
                        "d{v} = T[5] dynamic-slice({a}, i), dynamic_slice_sizes={{5}}"
                    );
                    format!("dynamic-update-slice({b}, d{v}, zero)")
                }
                (3 | 4, 4) => {
                    let _ = writeln!(
                        body,
                        "d{v} = T[6] reduce({a}, zero), dimensions={{1}}, to_apply=add"
                    );
                    format!("broadcast(d{v}), dimensions={{0}}")
                }
                (5, 3) => {
                    let _ = writeln!(
                        body,
                        "c{v} = T[] constant(31) d{v} = T[17] broadcast(c{v}), dimensions={{}}
                         f{v} = T[17] and({a}, d{v})"
                    );
                    format!(
                        "scatter({b}, f{v}, {a}), update_window_dims={{}}, inserted_window_dims={{0}}, \
                         scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add"
                    )
                }
                (5, 1) => {
                    let _ = writeln!(
                        body,
                        "d{v} = T[2] slice({a}), slice={{[1:3]}} f{v} = T[1] slice({b}), slice={{[0:1]}}"
                    );
                    format!("concatenate(d{v}, f{v}), dimensions={{0}}")
                }
                _ => format!("maximum({a}, {b})"),
            };
            let _ = writeln!(body, "v{v} = {shape} {text}");
            values[kind].push(format!("v{v}"));
        }
        for (n, &kind) in kinds.iter().enumerate() {
            let of = &values[kind];
            let last = &of[of.len() - 1 - below(of.len().min(4) as u32)];
            let _ = writeln!(body, "n{n} = {} copy({last})", SHAPES[kind]);
        }
        let state: Vec<&str> = kinds.iter().map(|&kind| SHAPES[kind]).collect();
        check(&counted("s32", 10 + below(30) as u32, &state, &body), Tolerance::Exact);
    }
}
