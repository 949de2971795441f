//! Products and convolutions: time, GFLOP/s, and the share of what the processor can do at most.
//!
//! `cargo bench -p helio-runtime --bench gemm [FILTER]`

use std::hint::black_box;
use std::time::Instant;

use helio_runtime::kernels::bytes::{bytes_of, bytes_of_mut};
use helio_runtime::kernels::gemm::conv::{Convolution, Spatial};
use helio_runtime::kernels::gemm::{Contraction, Dim, ProductType, Types};
use helio_runtime::{FloatMode, Threads};

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
    /// Independent sums: enough for two instructions a cycle of a latency of six, and no more than
    /// there are registers.
    const SUMS: usize = 12;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        #[target_feature(enable = "avx512f")]
        fn wide() -> f32 {
            let mut sums = [_mm512_set1_ps(0.0); SUMS];
            let (a, b) = black_box((_mm512_set1_ps(1.0001), _mm512_set1_ps(0.5)));
            for _ in 0..STEPS {
                sums.iter_mut().for_each(|sum| *sum = _mm512_fmadd_ps(*sum, a, b));
            }
            sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
        }
        #[target_feature(enable = "avx2,fma")]
        fn narrow() -> f32 {
            let mut sums = [_mm256_set1_ps(0.0); SUMS];
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
            return (STEPS * SUMS * 2 * 16) as f64 / time;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were just found.
            let time = shortest(|| {
                black_box(unsafe { narrow() });
            });
            return (STEPS * SUMS * 2 * 8) as f64 / time;
        }
    }
    f64::NAN
}

/// A convolution of square images.
#[derive(Clone, Copy)]
struct Image {
    groups: usize,
    batch: usize,
    /// The height and width of the input.
    size: usize,
    /// Input features of a group.
    features: usize,
    /// Output features of a group.
    outputs: usize,
    /// The height and width of the kernel.
    kernel: usize,
    stride: usize,
    /// Zeros at each edge.
    pad: usize,
    /// Whether channels come before the spatial dimensions (NCHW) instead of after them (NHWC).
    first: bool,
}

/// Runs the cases whose names contain the filter.
struct Bench {
    filter: String,
    peak: f64,
}

impl Bench {
    /// Times `run`, which does `work` multiplications, each with an addition.
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

    /// Times `batch` products of `rows` × `steps` and `steps` × `cols`.
    fn dense(&self, name: &str, batch: usize, rows: usize, steps: usize, cols: usize) {
        let product = Contraction::dense(batch, rows, steps, cols);
        self.product(name, &product, batch, rows, steps, cols);
    }

    /// Times a product whose lhs, rhs are transposed in memory as `which` says.
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

    /// Times a convolution.
    fn conv(&self, name: &str, image: Image) {
        let Image { groups, batch, size, features, outputs, kernel, stride, pad, first } = image;
        let output = (size + 2 * pad - kernel) / stride + 1;
        let (ins, outs) = (groups * features, groups * outputs);
        let strides = |size: usize, channels: usize| {
            if first { [size, 1, size * size] } else { [size * channels, channels, 1] }
        };
        let (lhs, out) = (strides(size, ins), strides(output, outs));
        let rhs = if first {
            [kernel, 1, kernel * kernel, features * kernel * kernel]
        } else {
            [kernel * features * outs, features * outs, outs, 1]
        };
        let dim = |size, lhs, rhs, out| Dim { size, lhs, rhs, out };
        let spatial = [0, 1].map(|d| Spatial {
            input: size,
            kernel,
            output,
            lhs: lhs[d],
            rhs: rhs[d],
            out: out[d],
            stride,
            pad_low: pad as i64,
            lhs_dilation: 1,
            rhs_dilation: 1,
            reversed: false,
        });
        let conv = Convolution::new(
            dim(groups, features * lhs[2], outputs * rhs[3], outputs * out[2]),
            dim(batch, size * size * ins, 0, output * output * outs),
            dim(features, lhs[2], rhs[2], 0),
            dim(outputs, 0, rhs[3], out[2]),
            &spatial,
        );
        let lhs = vec![1.0_f32; batch * size * size * ins];
        let rhs = vec![1.0_f32; kernel * kernel * features * outs];
        let mut sums = vec![0.0; batch * output * output * outs];
        let work = sums.len() * kernel * kernel * features;
        self.case(name, work, || conv.f32(&lhs, &rhs, &mut sums, Threads::single()));
    }

    /// Times a product of dense matrices of these types.
    fn bytes(&self, name: &str, types: Types, rows: usize, steps: usize, cols: usize) {
        let product = Contraction::dense(1, rows, steps, cols);
        let zeros =
            |count: usize, number: ProductType| vec![0_u64; (count * number.size()).div_ceil(8)];
        let (lhs, rhs) = (zeros(rows * steps, types.lhs), zeros(steps * cols, types.rhs));
        let mut out = zeros(rows * cols, types.out);
        self.case(name, rows * steps * cols, || {
            let (lhs, rhs, out) = (bytes_of(&lhs), bytes_of(&rhs), bytes_of_mut(&mut out));
            product.compute(types, lhs, rhs, out, None, Threads::single());
        });
    }

    /// Times a product of `f32` of these sizes: batch, rows, steps, columns.
    fn product(&self, name: &str, product: &Contraction, b: usize, r: usize, s: usize, c: usize) {
        let (lhs, rhs) = (vec![1.0_f32; b * r * s], vec![1.0_f32; b * s * c]);
        let mut out = vec![0.0; b * r * c];
        self.case(name, b * r * s * c, || {
            product.f32(&lhs, &rhs, &mut out, None, Threads::single())
        });
    }
}

fn main() {
    // As programs run, unless they ask for something else.
    let _mode = FloatMode::FlushToZero.enter();
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
    let image = Image {
        groups: 1,
        batch: 8,
        size: 56,
        features: 64,
        outputs: 64,
        kernel: 3,
        stride: 1,
        pad: 1,
        first: false,
    };
    for (first, order) in [(false, "nhwc"), (true, "nchw")] {
        let image = Image { first, ..image };
        let points = Image { outputs: 256, kernel: 1, pad: 0, ..image };
        let small = Image { size: 14, features: 256, outputs: 256, ..image };
        let tiny = Image { size: 7, features: 512, outputs: 512, ..image };
        let first =
            Image { batch: 4, size: 224, features: 3, kernel: 7, stride: 2, pad: 3, ..image };
        let depthwise = Image { groups: 128, features: 1, outputs: 1, ..image };
        let groups = Image { groups: 32, features: 4, outputs: 4, ..image };
        bench.conv(&format!("conv 3x3 {order}"), image);
        bench.conv(&format!("conv 3x3 stride 2 {order}"), Image { stride: 2, ..image });
        bench.conv(&format!("conv 3x3 14 {order}"), small);
        bench.conv(&format!("conv 3x3 7 {order}"), tiny);
        bench.conv(&format!("conv 1x1 {order}"), points);
        bench.conv(&format!("conv 1x1 stride 2 {order}"), Image { stride: 2, ..points });
        bench.conv(&format!("conv 7x7 {order}"), first);
        bench.conv(&format!("conv depthwise {order}"), depthwise);
        bench.conv(&format!("conv depthwise stride 2 {order}"), Image { stride: 2, ..depthwise });
        bench.conv(&format!("conv 32 groups {order}"), groups);
    }
    let types = |lhs, rhs, out| Types { lhs, rhs, out };
    bench.bytes(
        "bf16 1024",
        types(ProductType::Bf16, ProductType::Bf16, ProductType::Bf16),
        1024,
        1024,
        1024,
    );
    bench.bytes(
        "bf16 256",
        types(ProductType::Bf16, ProductType::Bf16, ProductType::Bf16),
        256,
        256,
        256,
    );
    bench.bytes(
        "f16 1024",
        types(ProductType::F16, ProductType::F16, ProductType::F16),
        1024,
        1024,
        1024,
    );
    bench.bytes(
        "s8 512x1024x512",
        types(ProductType::S8, ProductType::S8, ProductType::S32),
        512,
        1024,
        512,
    );
    bench.bytes(
        "s32 512",
        types(ProductType::S32, ProductType::S32, ProductType::S32),
        512,
        512,
        512,
    );
    bench.bytes(
        "f64 512",
        types(ProductType::F64, ProductType::F64, ProductType::F64),
        512,
        512,
        512,
    );
    bench.bytes(
        "c64 512",
        types(ProductType::C64, ProductType::C64, ProductType::C64),
        512,
        512,
        512,
    );
}
