//! What follows a product is computed on its rows while they are in cache, and gives the same bits as
//! after the whole product.

use helio::{Backend, CompileOptions, Literal, RunOptions, random_arguments};

/// Of the product `d`: names of operands, their shapes, and what is done; `T` stands for the type of
/// all, `S` for the shape of the result.
const EPILOGUES: &[(&str, &str)] = &[
    (
        "bias and relu",
        "b = T[N] parameter(2) c = S broadcast(b), dimensions={K} a = S add(d, c)
         z = T[] constant(0) o = S broadcast(z), dimensions={} r = S maximum(a, o)",
    ),
    (
        "residual",
        "b = S parameter(2) a = S subtract(b, d) r = S tanh(a)",
    ),
    ("scaled", "h = T[] parameter(2) c = S broadcast(h), dimensions={} r = S multiply(d, c)"),
    (
        "softmax",
        "l = T[] constant(-inf) z = T[] constant(0) m = M reduce(d, l), dimensions={K}, to_apply=max
         n = S broadcast(m), dimensions={L} e = S subtract(d, n) f = S exponential(e)
         s = M reduce(f, z), dimensions={K}, to_apply=add t = S broadcast(s), dimensions={L}
         r = S divide(f, t)",
    ),
];

/// Batch, rows, steps, columns: one task and several, rows longer than a block, vectors.
const SIZES: &[[usize; 4]] = &[
    [1, 3, 5, 7],
    [1, 37, 20, 128],
    [1, 300, 65, 192],
    [1, 128, 1100, 64],
    [1, 45, 30, 2304],
    [1, 1, 40, 256],
    [3, 70, 33, 320],
];

/// A program, of which the second kind needs the product itself, too.
fn text(ty: &str, sizes: [usize; 4], epilogue: &str, is_kept: bool) -> String {
    let [batch, rows, steps, cols] = sizes;
    let lead = if batch > 1 { format!("{batch},{rows}") } else { rows.to_string() };
    let [b, k] = if batch > 1 {
        [format!("{batch},"), "lhs_batch_dims={0}, rhs_batch_dims={0},".to_owned()]
    } else {
        Default::default()
    };
    let rank = if batch > 1 { 2 } else { 1 };
    let epilogue = epilogue
        .replace("{K}", &format!("{{{rank}}}"))
        .replace("{L}", if batch > 1 { "{0,1}" } else { "{0}" })
        .replace("S ", &format!("{ty}[{lead},{cols}] "))
        .replace("M ", &format!("{ty}[{lead}] "))
        .replace("T[N]", &format!("{ty}[{cols}]"))
        .replace("T[]", &format!("{ty}[]"));
    let contract =
        format!("lhs_contracting_dims={{{rank}}}, rhs_contracting_dims={{{}}}", rank - 1);
    let shape = format!("{ty}[{lead},{cols}]");
    let root = match is_kept {
        true => format!("ROOT out = ({shape}, {shape}) tuple(r, d)"),
        false => format!("ROOT out = ({shape}) tuple(r)"),
    };
    let reducer = |name: &str, op: &str| {
        format!(
            "{name} {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) ROOT c = {ty}[] {op}(a, b) }}\n"
        )
    };
    format!(
        "{}{}ENTRY e {{ x = {ty}[{lead},{steps}] parameter(0) y = {ty}[{b}{steps},{cols}] parameter(1)
         d = {shape} dot(x, y), {k} {contract}\n{epilogue}\n{root} }}",
        reducer("max", "maximum"),
        reducer("add", "add"),
    )
}

fn run(text: &str, backend: &str, threads: usize) -> (usize, Literal) {
    let module = helio::parse(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let mut options = CompileOptions::default();
    options.backend = Backend::named(backend).unwrap();
    options.proofs = true;
    let program = helio::compile(module, &options).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let plan = program.plan().expect("a plan");
    plan.replay().unwrap_or_else(|e| panic!("{text}: {e}"));
    let arguments = random_arguments(&program.program_shape().params, 11).expect("arguments");
    let mut options = RunOptions::default();
    options.threads = Some(threads);
    let result = program.run_with(&arguments, &options).unwrap_or_else(|e| panic!("{text}: {e}"));
    (plan.parts().steps.len(), result)
}

#[test]
fn rows_are_finished_to_the_same_bits() {
    let mut joined = 0;
    for &sizes in SIZES {
        for ty in ["f32", "f64", "bf16"] {
            for &(name, epilogue) in EPILOGUES {
                let [alone, kept] = [false, true].map(|kept| text(ty, sizes, epilogue, kept));
                for backend in ["cpu", "x86-64-v3"] {
                    let (_, expected) = run(&kept, backend, 1);
                    let expected = expected.leaves()[0].as_array().expect("an array").to_bytes();
                    for threads in [1, 2, 5] {
                        let (steps, found) = run(&alone, backend, threads);
                        joined += usize::from(steps == 1);
                        let found = found.leaves()[0].as_array().expect("an array").to_bytes();
                        assert!(found == expected, "{name} of {ty}, {sizes:?}, {threads} threads");
                    }
                }
            }
        }
    }
    // Elsewhere there is no generated code that could be joined.
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        assert!(joined > 300, "{joined} plans of one step");
    }
    let _ = joined;
}
