//! What may be overwritten, decided as it should be and as it once was, before the proof of kernels.

use helio_ir::{Module, Op, Verified};

use crate::elementwise::Recipes;

use super::{Bytes, Lowered, Lowering, Target, When};

/// A fusion of two results: `total`, a sum for each of 64 columns, changed by vectors of that size;
/// and `rows`, which need one of the vectors again in each of their many rows. The sum is cut up, as
/// it has few points, so there are three kernels: of partial sums, of their sum, and of rows.
const TOTAL_AND_ROWS: &str = "
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
fused {
  scale = f32[64] parameter(0)
  bias = f32[64] parameter(1)
  x = f32[8192,64] parameter(2)
  zero = f32[] constant(0)
  each = f32[8192,64] broadcast(scale), dimensions={1}
  rows = f32[8192,64] multiply(x, each)
  sums = f32[64] reduce(rows, zero), dimensions={0}, to_apply=sum
  total = f32[64] add(sums, bias)
  ROOT both = (f32[8192,64], f32[64]) tuple(rows, total)
}
ENTRY e {
  scale = f32[64] parameter(0)
  bias = f32[64] parameter(1)
  x = f32[8192,64] parameter(2)
  ROOT r = (f32[8192,64], f32[64]) fusion(scale, bias, x), kind=kLoop, calls=fused
}";

const SCALE: usize = 0;
const BIAS: usize = 1;
const X: usize = 2;
const ROWS: usize = 0;
const TOTAL: usize = 1;

fn lowered(text: &str, when: When) -> Lowered {
    let module = helio_ir::text::parse(text).and_then(helio_ir::verify).expect("a program");
    let fused = |module: &Verified<Module>| {
        module.entry().instrs().iter().find_map(|instr| match &instr.op {
            Op::Fusion(_) => instr.op.callees().first().copied(),
            _ => None,
        })
    };
    let fused = fused(&module).expect("a fusion");
    let target = Target { vector_bytes: 64, wide: false, capabilities: &Recipes };
    let mut lowering = Lowering::new(target, Bytes::of(&module, fused));
    lowering.when = when;
    lowering.all(&module, fused).expect("kernels");
    lowering.lowered
}

#[test]
fn what_is_decided_for_each_kernel_is_proved() {
    let lowered = lowered(TOTAL_AND_ROWS, When::ByKernel);
    assert_eq!(lowered.stages.len(), 3);
    assert_eq!(lowered.in_place, [(BIAS, TOTAL), (X, ROWS)]);
    assert_eq!(lowered.check_in_place(&lowered.in_place), Ok(()));
}

#[track_caller]
fn refused(lowered: &Lowered, pair: (usize, usize), why: &str) {
    let error = lowered.check_in_place(&[pair]).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn what_was_decided_before_the_cut_is_refused() {
    let before = lowered(TOTAL_AND_ROWS, When::BeforeTheCut);
    assert_eq!(before.stages.len(), 3);
    for vector in [SCALE, BIAS] {
        assert!(before.in_place.contains(&(vector, TOTAL)), "{:?}", before.in_place);
        refused(&before, (vector, TOTAL), "another piece of the range may have written it");
    }
    // Where rows are written, they are read.
    assert_eq!(before.check_in_place(&[(X, ROWS)]), Ok(()));
    // The total is written by an earlier kernel now, and the last one still reads the vector.
    let by_kernel = lowered(TOTAL_AND_ROWS, When::ByKernel);
    refused(&by_kernel, (SCALE, TOTAL), "kernel 2 reads operand 0");
}
