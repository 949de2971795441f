//! A graph of 20 element-wise operations on a million floats: compiling it, and calling it on
//! buffers and on arrays. `versus_jax.py` runs it beside `jax.jit` of the same function.
//!
//! `cargo bench -p helio-graph --bench elementwise [-- --json]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use helio::{Buffer, ExecuteOptions};
use helio_graph::{Array, ElementType, Graph, Program, Result, Tensor};

const N: usize = 1 << 20;

/// How long each figure is measured.
const TIME: Duration = Duration::from_secs(1);

/// The operations, numbered as in `versus_jax.py`.
fn function(x: &Tensor, w: &Tensor, b: &Tensor) -> Tensor {
    let h = x * w + b; // 2
    let gate = h.tanh() * 0.5 + 0.5; // 5
    let softplus = (-h.abs()).exp().log1p() + h.maximum(0.0); // 11
    let k = gate * softplus - x; // 13
    let norm = (&k * &k + 1e-6).sqrt(); // 16
    ((k / norm).sigmoid() * w).minimum(6.0) // 20
}

fn build() -> Result<Program> {
    let g = Graph::new("twenty");
    let [x, w, b] = ["x", "w", "b"].map(|name| g.input(name, ElementType::F32, ("n",)));
    g.compile(function(&x, &w, &b))
}

fn input(seed: u32) -> Result<Array> {
    let value = |i: usize| {
        let bits = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed);
        (bits >> 8) as f32 / (1 << 22) as f32 - 2.0
    };
    Array::new([N], (0..N).map(value).collect())
}

/// The median time of a call.
fn median<T>(mut call: impl FnMut() -> Result<T>) -> Result<f64> {
    let (mut times, begin) = (Vec::new(), Instant::now());
    while begin.elapsed() < TIME || times.len() < 10 {
        let start = Instant::now();
        drop(black_box(call()?));
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn main() -> Result<()> {
    let arrays = [1, 2, 3].map(input).into_iter().collect::<Result<Vec<_>>>()?;
    let shapes: Vec<_> = arrays.iter().map(Array::shape).collect();
    // The client's threads and memory are made once in a process.
    build()?.run(&arrays)?;
    let compile = median(|| {
        let program = build()?;
        program.specialize(&shapes)
    })?;
    let program = build()?;
    let (client, options) = (program.client().clone(), ExecuteOptions::default());
    let buffers = arrays.iter().map(|a| client.buffer_from_array(a, client.default_device()));
    let buffers = buffers.collect::<Result<Vec<Buffer>>>()?;
    let buffers: Vec<&Buffer> = buffers.iter().collect();
    let on_buffers = median(|| program.execute(&buffers, &options))?;
    let on_arrays = median(|| program.run(&arrays))?;
    let result = program.run(&arrays)?;
    let sum: f64 = result[0].as_slice::<f32>().unwrap_or(&[]).iter().map(|&v| f64::from(v)).sum();
    if std::env::args().any(|arg| arg == "--json") {
        println!(
            "{{\"compile_ms\": {compile}, \"run_ms\": {on_buffers}, \"arrays_ms\": {on_arrays}, \
             \"sum\": {sum}}}"
        );
    } else {
        println!("build and compile {compile:8.3} ms");
        println!("call on buffers   {on_buffers:8.3} ms");
        println!("call on arrays    {on_arrays:8.3} ms");
    }
    Ok(())
}
