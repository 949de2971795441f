//! A program with a large constant, compiled for several sizes: the constant lies in memory once, and so does what
//! is computed of it; compilation does not look at all of it each time. (Linux tells how much memory a process has had.)
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use helio::ir::ArrayShape;
use helio_graph::{Array, ElementType, Graph, Tensor};

const SIDE: usize = 4096;
const WEIGHT_BYTES: usize = 4 * SIDE * SIDE;
const SIZES: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The most memory that the process has had resident, in bytes.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
    kilobytes << 10
}

/// Compiles the product of a batch with what is made of a weight for each size.
fn compile_all(weight: &Array, make: impl Fn(Tensor) -> Tensor) -> Vec<Duration> {
    let g = Graph::new("layer");
    let x = g.input("x", ElementType::F32, ("n", SIDE));
    let program = g.compile(x.matmul(make(g.constant(weight.clone())))).expect("a program");
    let mut programs = Vec::new();
    let times = SIZES.iter().map(|&n| {
        let shape = ArrayShape::new(ElementType::F32, [n, SIDE]).expect("a shape");
        let begin = Instant::now();
        programs.push(program.specialize(&[&shape]).expect("a program"));
        begin.elapsed()
    });
    times.collect()
}

#[test]
fn a_weight_lies_in_memory_once() {
    let values: Vec<f32> = (0..SIDE * SIDE).map(|i| (i % 251) as f32).collect();
    let weight = Array::new([SIDE, SIDE], values).expect("an array");
    let before = peak_bytes();
    // (What is computed is first in a buffer of the run.)
    for (name, make, most) in [
        ("as it is", (|w: Tensor| w) as fn(Tensor) -> Tensor, WEIGHT_BYTES),
        ("transposed", |w| w.t(), WEIGHT_BYTES),
        ("computed with", |w| w * 0.5, 3 * WEIGHT_BYTES),
    ] {
        let times = compile_all(&weight, make);
        let more = peak_bytes() - before;
        println!("{name}: {times:?}; at most {} MB more than the weight", more >> 20);
        assert!(more < most, "{name}: {more} bytes besides the weight");
        // To read all of it takes longer on any machine that this runs on.
        let least = times.iter().min().expect("some times");
        assert!(*least < Duration::from_millis(50), "{name}: {times:?}");
    }
}
