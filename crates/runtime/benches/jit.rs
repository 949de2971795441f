//! Generated code: how long it takes to make a kernel, and to run it.
//!
//! `cargo bench -p helio-runtime --bench jit [FILTER | FILE.hlo]`: each case is the entry computation
//! of a module, lowered as one fusion. With a file, the machine code is written next to it.

use std::hint::black_box;
use std::time::Instant;

use helio_codegen::lower::{Arg, Lowered, Target, lower};
use helio_codegen::x86::{self, Isa};
use helio_ir::{Module, Verified, verify};
use helio_runtime::{Jit, JitArg, JitFunction, Threads};

const CASES: [(&str, &str); 6] = [
    (
        "scale and shift, 1M",
        "x = f32[1048576] parameter(0)
         a = f32[] constant(1.5)
         b = f32[1048576] broadcast(a), dimensions={}
         p = f32[1048576] multiply(x, b)
         ROOT r = f32[1048576] add(p, b)",
    ),
    (
        "exp, 1M",
        "x = f32[1048576] parameter(0)
         ROOT r = f32[1048576] exponential(x)",
    ),
    (
        "gelu by tanh, 1M",
        "x = f32[1048576] parameter(0)
         xx = f32[1048576] multiply(x, x)
         xxx = f32[1048576] multiply(xx, x)
         a = f32[] constant(0.044715)
         as = f32[1048576] broadcast(a), dimensions={}
         ax = f32[1048576] multiply(xxx, as)
         s = f32[1048576] add(x, ax)
         b = f32[] constant(0.797884583)
         bs = f32[1048576] broadcast(b), dimensions={}
         t = f32[1048576] multiply(s, bs)
         u = f32[1048576] tanh(t)
         c = f32[] constant(1)
         cs = f32[1048576] broadcast(c), dimensions={}
         v = f32[1048576] add(u, cs)
         h = f32[] constant(0.5)
         hs = f32[1048576] broadcast(h), dimensions={}
         w = f32[1048576] multiply(v, hs)
         ROOT r = f32[1048576] multiply(x, w)",
    ),
    (
        "sine, 1M",
        "x = f32[1048576] parameter(0)
         ROOT r = f32[1048576] sine(x)",
    ),
    (
        "bfloat16 products, 1M",
        "x = bf16[1048576] parameter(0)
         y = bf16[1048576] multiply(x, x)
         ROOT r = bf16[1048576] multiply(y, x)",
    ),
    (
        "double precision tanh, 1M",
        "x = f64[1048576] parameter(0)
         ROOT r = f64[1048576] tanh(x)",
    ),
];

/// The shortest of several runs, in microseconds.
fn shortest(mut run: impl FnMut()) -> f64 {
    run();
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || (begin.elapsed().as_secs_f64() < 0.3 && runs < 2000) {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
        runs += 1;
    }
    best * 1e6
}

fn function(stage: &helio_codegen::lower::Stage, isa: Isa) -> (JitFunction, Vec<u8>) {
    let kernel = &stage.kernel;
    let code = x86::compile_vouched(kernel, isa).expect("code for the kernel");
    let bytes = code.bytes().to_vec();
    let jit = Jit::new("kernel", code, stage.cost as f64);
    let function = Jit::install(vec![jit]).expect("executable memory").pop().expect("a function");
    (function, bytes)
}

/// Makes and runs the kernels of a module.
fn measure(name: &str, module: &Verified<Module>, isa: Isa, write_to: Option<&str>) {
    let target = Target::of(&isa, false);
    let lowered: Lowered = match lower(module, module.entry_id(), target) {
        Ok(lowered) => lowered,
        Err(why) => return println!("{name:28} {isa:?}: {}", why.reason),
    };
    let lowering = shortest(|| {
        let _ = black_box(lower(module, module.entry_id(), target));
    });
    for (n, stage) in lowered.stages.iter().enumerate() {
        let compiling = shortest(|| {
            let _ = black_box(x86::compile(&stage.kernel, isa));
        });
        let (function, code) = function(stage, isa);
        if let Some(path) = write_to {
            std::fs::write(format!("{path}.{n}.{isa:?}.bin"), &code).expect("a file");
        }
        // Between 1/2 and 2 as any float type, mostly.
        let mut buffers: Vec<Vec<u8>> = stage
            .args
            .iter()
            .zip(&stage.kernel.params)
            .map(|(arg, param)| match arg {
                Arg::Operand(_) => (0..param.bytes).map(|i| [1, 77, 0x1b, 0x3f][i % 4]).collect(),
                _ => vec![1; param.bytes],
            })
            .collect();
        let running = shortest(|| {
            let mut args: Vec<JitArg<'_>> = buffers
                .iter_mut()
                .zip(&stage.kernel.params)
                .map(|(bytes, p)| if p.write { JitArg::Write(bytes) } else { JitArg::Read(bytes) })
                .collect();
            function.call(&mut args, Threads::single()).expect("buffers that fit");
        });
        println!(
            "{name:28} {isa:?} stage {n}: lower {lowering:6.1} us, compile {compiling:6.1} us to {:5} \
             bytes, run {running:9.1} us",
            code.len()
        );
    }
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let filter = words.next().unwrap_or_default();
    let isas = Isa::all_here();
    if isas.is_empty() {
        return println!("no code for this processor");
    }
    let parse =
        |text: &str| verify(helio_ir::text::parse(text).expect("HLO text")).expect("valid HLO");
    for &isa in isas {
        if filter.ends_with(".hlo") {
            let text = std::fs::read_to_string(&filter).expect("a file");
            measure(&filter, &parse(&text), isa, Some(&filter));
            continue;
        }
        for (name, body) in CASES.iter().filter(|(name, _)| name.contains(&filter)) {
            let module = parse(&format!("HloModule m\n\nENTRY e {{\n{body}\n}}\n"));
            measure(name, &module, isa, None);
        }
    }
}
