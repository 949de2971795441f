//! Products and convolutions: time, GFLOP/s, and the share of what the processor can do at most.
//!
//! `cargo bench -p helio-runtime --bench gemm [FILTER]`

use std::hint::black_box;
use std::time::Instant;

use helio_runtime::Threads;
use helio_runtime::kernels::gemm::{Contraction, Dim};

/// The shortest of several runs, in seconds.
fn shortest(mut run: impl FnMut()) -> f64 {
    run();
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || (begin.elapsed().as_secs_f64() < 0.4 && runs < 1000) {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

/// FLOP/s of independent multiplications and additions that never leave registers.
fn peak() -> f64 {
    const STEPS: usize = 100_000;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        #[target_feature(enable = "avx512f")]
        fn wide() -> f32 {
            let mut sums = [_mm512_set1_ps(0.0); 12];
            let (a, b) = black_box((_mm512_set1_ps(1.0001), _mm512_set1_ps(0.5)));
            for _ in 0..STEPS {
                sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(*sum, a, b));
            }
            sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
        }
        #[target_feature(enable = "avx2,fma")]
        fn narrow() -> f32 {
            let mut sums = [_mm256_set1_ps(0.0); 12];
            let (a, b) = black_box((_mm256_set1_ps(1.0001), _mm256_set1_ps(0.5)));
            for _ in 0..STEPS {
                sums.iter_mut().for_each(|sum| *sum = _mm256_fmadd_ps(*sum, a, b));
            }
            sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum()
        }
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was just found.
            let time = shortest(|| {
                black_box(unsafe { wide() });
            });
            return (STEPS * 12 * 32) as f64 / time;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were just found.
            let time = shortest(|| {
                black_box(unsafe { narrow() });
            });
            return (STEPS * 12 * 16) as f64 / time;
        }
    }
    f64::NAN
}

/// Runs the cases whose names contain the filter.
struct Bench {
    filter: String,
    peak: f64,
}

impl Bench {
    fn case(&self, name: &str, work: usize, run: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let time = shortest(run);
        let rate = 2.0 * work as f64 / time;
        println!(
            "{name:<36} {:>9.4} ms {:>7.1} GFLOP/s {:>5.2} of peak",
            time * 1e3,
            rate / 1e9,
            rate / self.peak
        );
    }

    fn dense(&self, name: &str, batch: usize, rows: usize, steps: usize, cols: usize) {
        let product = Contraction::dense(batch, rows, steps, cols);
        self.product(name, &product, batch, rows, steps, cols);
    }

    fn transposed(&self, name: &str, rows: usize, steps: usize, cols: usize, which: [bool; 2]) {
        let [lhs, rhs] = which;
        let (row, lhs_step) = if lhs { (1, rows) } else { (steps, 1) };
        let (col, rhs_step) = if rhs { (steps, 1) } else { (1, cols) };
        let product = Contraction::new(
            &[],
            &[Dim { size: rows, lhs: row, rhs: 0, out: cols }],
            &[Dim { size: cols, lhs: 0, rhs: col, out: 1 }],
            &[Dim { size: steps, lhs: lhs_step, rhs: rhs_step, out: 0 }],
        );
        self.product(name, &product, 1, rows, steps, cols);
    }

    fn product(&self, name: &str, product: &Contraction, b: usize, r: usize, s: usize, c: usize) {
        let (lhs, rhs) = (vec![1.0_f32; b * r * s], vec![1.0_f32; b * s * c]);
        let mut out = vec![0.0; b * r * c];
        self.case(name, b * r * s * c, || {
            product.f32(&lhs, &rhs, &mut out, None, Threads::single())
        });
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let bench = Bench { filter, peak: peak() };
    println!("peak {:.1} GFLOP/s", bench.peak / 1e9);
    for size in [16, 32, 64, 128, 256, 512, 1000, 1024, 2048] {
        bench.dense(&format!("matmul {size}"), 1, size, size, size);
    }
    bench.dense("matmul 512x784x128", 1, 128, 784, 512);
    bench.dense("lstm 32x128x512", 1, 32, 128, 512);
    bench.dense("skinny 4x1024x1024", 1, 4, 1024, 1024);
    bench.dense("skinny 14x1024x1024", 1, 14, 1024, 1024);
    bench.dense("skinny 64x1024x1024", 1, 64, 1024, 1024);
    bench.dense("narrow 128x512x10", 1, 128, 512, 10);
    bench.dense("narrow 1024x1024x4", 1, 1024, 1024, 4);
    bench.dense("vector-matrix 4096", 1, 1, 4096, 4096);
    bench.dense("matrix-vector 4096", 1, 4096, 4096, 1);
    bench.dense("batch 64x128x64x128", 64, 128, 64, 128);
    bench.dense("batch 16x512x512x64", 16, 512, 512, 64);
    bench.dense("batch 1000x8x8x8", 1000, 8, 8, 8);
    bench.transposed("nt 512x1024x2048", 512, 1024, 2048, [false, true]);
    bench.transposed("nt 512x64x512", 512, 64, 512, [false, true]);
    bench.transposed("tn 512x128x784", 512, 128, 784, [true, false]);
    bench.transposed("tn 256x512x1024", 256, 512, 1024, [true, false]);
    bench.transposed("nt vector 4096", 1, 4096, 4096, [false, true]);
    bench.transposed("tt 512", 512, 512, 512, [true, true]);
}
