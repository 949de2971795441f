//! What can be seen without running code; the tests of the runtime run it.

use std::time::{Duration, Instant};

use super::*;
use crate::kernel::{Addr, Buf, Builder, Lane, Mem, Value};

fn at(buf: Buf, terms: &[(Value, i64)]) -> Addr {
    Addr { buf, offset: 0, terms: terms.to_vec(), lane_stride: 4 }
}

/// `y = f(x)` for whole vectors.
fn mapped(f: impl Fn(&mut Builder, Value) -> Value) -> Kernel {
    let mut b = Builder::new(16);
    b.set_range(1024, 16);
    let (x, y) = (b.param(4096, true, false), b.param(4096, false, true));
    let (lo, hi) = (b.begin(), b.end());
    b.for_loop(lo, hi, 16, &[], |b, i, _| {
        let value = b.load(Mem::F32, at(x, &[(i, 4)]), None);
        let value = f(b, value);
        b.store(value, Mem::F32, at(y, &[(i, 4)]), None);
        vec![]
    });
    b.finish()
}

fn shortest(kernel: &Kernel) -> Duration {
    let time = || {
        let begin = Instant::now();
        compile(kernel, Isa::Avx512).unwrap();
        begin.elapsed()
    };
    (0..5).map(|_| time()).min().unwrap()
}

/// A chain of `steps` operations, each with constants of its own, of which none stays in use.
fn chain(steps: usize) -> Kernel {
    mapped(|b, x| {
        (0..steps).fold(x, |sum, n| {
            let factor = b.float(Lane::F32, 1.0 + n as f64);
            b.fma(sum, factor, x)
        })
    })
}

/// A kernel with `values` values that are all needed at its end.
fn fan(values: usize) -> Kernel {
    mapped(|b, x| {
        let all: Vec<Value> = (0..values)
            .map(|n| {
                let factor = b.float(Lane::F32, 1.0 + n as f64);
                b.mul(x, factor)
            })
            .collect();
        all.into_iter().rev().reduce(|sum, value| b.add(sum, value)).unwrap()
    })
}

#[test]
fn time_grows_with_length() {
    let (short, long) = (chain(1000), chain(10_000));
    // Ten times the work, with room for noise and for caches that are not large enough.
    assert!(shortest(&long) < 40 * shortest(&short));
}

#[test]
fn values_beyond_the_registers_go_to_the_stack() {
    let few = compile(&fan(20), Isa::Avx512).unwrap();
    let many = compile(&fan(200), Isa::Avx512).unwrap();
    // vmovups zmmword ptr [rsp + …], zmm…
    let spills = |code: &MachineCode| {
        let stores = |bytes: &[u8]| {
            bytes[0] == 0x62
                && bytes[2] == 0x7c
                && bytes[4] == 0x11
                && bytes[5] & 7 == 4
                && bytes[6] == 0x24
        };
        code.bytes().windows(7).filter(|bytes| stores(bytes)).count()
    };
    assert_eq!(spills(&few), 0);
    assert!(spills(&many) > 150);
}

#[test]
fn what_cannot_be_compiled_is_an_error() {
    let too_many = compile(&fan(3000), Isa::Avx512).unwrap_err().to_string();
    assert!(too_many.contains("bytes of stack"), "{too_many}");
    let lanes = compile(&mapped(|_, x| x), Isa::Avx2).unwrap_err().to_string();
    assert!(lanes.contains("16 lanes where there are 8"), "{lanes}");
    let mut wrong = mapped(|_, x| x);
    wrong.types.clear();
    assert!(compile(&wrong, Isa::Avx512).is_err());
}

#[test]
fn elements_far_apart_are_not_out_of_reach() {
    // Addresses at the largest displacement, and elements that lie as far away again.
    let far = 1 << 27;
    let kernel = |wide: bool| {
        let mut b = Builder::new(8);
        let (x, y) = (b.param(1 << 33, true, false), b.param(64, false, true));
        let addr = |lane_stride: i64| Addr {
            buf: x,
            offset: (1 << 30) - 4,
            terms: Vec::new(),
            lane_stride,
        };
        let strided = b.load(Mem::F32, addr(4 * far), None);
        let lane = if wide { Lane::I64 } else { Lane::I32 };
        let places: Vec<i64> = (0..8).map(|l| far * (l / 2)).collect();
        let places = b.numbers(lane, &places);
        let gathered = b.gather(Mem::F32, addr(0), places, 4, None);
        let sum = b.add(strided, gathered);
        b.store(sum, Mem::F32, at(y, &[]), None);
        b.finish()
    };
    for isa in [Isa::Avx512, Isa::Avx2] {
        assert!(compile(&kernel(false), isa).is_ok());
    }
    assert!(compile(&kernel(true), Isa::Avx512).is_ok());
}

#[test]
fn a_kernel_compiles_to_the_same_bytes_each_time() {
    let kernel = fan(60);
    let code = || compile(&kernel, Isa::Avx512).unwrap().bytes().to_vec();
    assert_eq!(code(), code());
}
