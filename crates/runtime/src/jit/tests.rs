//! Machine code of kernels against the tile machine.

use helio_codegen::kernel::{
    Addr, BinOp, Buf, Builder, Cmp, Conv, FmaOp, IndexOp, Kernel, Lane, MaskOp, Mem, UnOp, Value,
};
use helio_codegen::tile;
use helio_codegen::x86::{self, Isa};

use super::*;

/// The instruction sets of this machine.
pub(super) fn isas() -> &'static [Isa] {
    Isa::all_here()
}

/// A kernel as a function.
fn function(kernel: &Kernel, isa: Isa) -> JitFunction {
    installed(kernel, x86::compile(kernel, isa))
}

/// The same, with accesses that are checked.
pub(super) fn checked_function(kernel: &Kernel, isa: Isa) -> JitFunction {
    installed(kernel, x86::compile_checked(kernel, isa))
}

fn installed(kernel: &Kernel, code: helio_ir::Result<MachineCode>) -> JitFunction {
    let code = code.unwrap_or_else(|e| panic!("{e}\n{kernel:#?}"));
    // SAFETY: the kernels of these tests stay within their buffers, which the tile machine checks when
    // it runs them, before the machine does; of others, the code checks its accesses.
    let jit = unsafe { Jit::trusted("kernel", code, 1.0) };
    Jit::install(vec![jit]).unwrap().pop().unwrap()
}

/// What goes past the caches arrives all the same, whole vectors and others, in one piece or several.
#[test]
fn stores_past_the_caches() {
    for &isa in isas() {
        for (lanes, mem) in [(16, Mem::F32), (8, Mem::F64), (16, Mem::BF16), (16, Mem::U8)] {
            let lanes = lanes.min(isa.lanes(mem.lane().bytes() == 8));
            for (len, shift) in [(1000, 0), (4096, 0), (1000, 3)] {
                let mut b = Builder::new(lanes);
                let size = mem.bytes() as i64;
                b.set_range(len, 4 * lanes as i64);
                let (x, y) = (b.param(8192 * 8, true, false), b.param(8192 * 8, false, true));
                let at = |buf, i, offset| Addr {
                    buf,
                    offset,
                    terms: vec![(i, size)],
                    lane_stride: size,
                };
                let (begin, end) = (b.begin(), b.end());
                b.for_loop(begin, end, lanes as i64, &[], |b, i, _| {
                    let mask = b.mask_below(i, end);
                    let value = b.load(mem, at(x, i, 0), Some(mask));
                    b.store(value, mem, at(y, i, 64), Some(mask));
                    // Behind what other pieces write.
                    let value = b.load(mem, at(x, i, 0), None);
                    b.store(value, mem, at(y, i, 32768 + shift * size), None);
                    vec![]
                });
                let mut kernel = b.finish();
                kernel.params[1].stream = true;
                let memory = crate::Memory::new();
                let from: Vec<u8> = (0..8192 * 8).map(|i| (i * 7 % 119) as u8).collect();
                let mut block = memory.copy_of(&from).unwrap();
                let found = block.as_mut_slice();
                let mut expected = from.clone();
                let mut args = [JitArg::Read(&from), JitArg::Write(found)];
                let function = function(&kernel, isa);
                function.call(&mut args, Threads::single()).unwrap();
                let mut args = [JitArg::Read(&from), JitArg::Write(&mut found[1..])];
                assert!(function.call(&mut args, Threads::single()).is_err(), "misaligned");
                let mut args =
                    [tile::FunctionArg::Read(&from), tile::FunctionArg::Write(&mut expected)];
                tile::run(&kernel, &mut args, 0, kernel.range).unwrap();
                assert!(found[..] == expected[..], "{isa:?} {mem:?} {len}");
            }
        }
    }
}

/// Elements a few apart, of every format, are read and written where they are and nowhere else.
#[test]
fn elements_a_few_apart() {
    use Mem::*;
    for &isa in isas() {
        for mem in [U8, I8, U16, I16, I32, I64, F16, BF16, F32, F64] {
            let size = mem.bytes() as i64;
            for wide in [mem.lane().bytes() == 8, true] {
                let lanes = isa.lanes(wide);
                for apart in (1..=9).chain(-9..=-1) {
                    let stride = apart * size;
                    let reach = stride * (lanes as i64 - 1);
                    let span = (reach.abs() + size) as usize;
                    let apart = Addr {
                        buf: Buf::Param(0),
                        offset: -reach.min(0),
                        terms: vec![],
                        lane_stride: stride,
                    };
                    let mut b = Builder::new(lanes);
                    let (x, y) = (b.param(span, true, false), b.param(span, false, true));
                    let read = b.load(mem, Addr { buf: x, ..apart.clone() }, None);
                    b.store(read, mem, Addr { buf: y, ..apart }, None);
                    let kernel = b.finish();
                    let count = span / size as usize;
                    let buffers = [7, 8].map(|seed| elements(mem, count, seed));
                    compare(&kernel, isa, &buffers, mem);
                }
            }
        }
    }
}

/// Columns of the same rows, read in one order and written in another, all of them or some, next to other rows.
#[test]
fn columns_of_the_same_rows() {
    use Mem::*;
    for &isa in isas() {
        for mem in [U8, I8, U16, I16, I32, I64, F16, BF16, F32, F64] {
            let size = mem.bytes() as i64;
            for wide in [mem.lane().bytes() == 8, true] {
                let lanes = isa.lanes(wide);
                for columns in (2..=10).chain([12, 15, 16, 17, 20, 31, 32, 33]) {
                    let rows = 3 * lanes as i64;
                    let bytes = (rows * columns * size) as usize;
                    let mut b = Builder::new(lanes);
                    let (x, y) = (b.param(bytes, true, false), b.param(bytes, false, true));
                    let some = b.param(bytes, false, true);
                    let (lo, hi) = (b.index(0), b.index(rows));
                    b.for_loop(lo, hi, lanes as i64, &[], |b, row, _| {
                        let at = |buf, column| Addr {
                            buf,
                            offset: column * size,
                            terms: vec![(row, columns * size)],
                            lane_stride: columns * size,
                        };
                        for n in 0..columns {
                            let column = n * 7 % columns;
                            let column = if columns % 7 == 0 { n } else { column };
                            let value = b.load(mem, at(x, column), None);
                            b.store(value, mem, at(y, columns - 1 - column), None);
                            if n % 3 == 1 {
                                b.store(value, mem, at(some, n), None);
                            }
                        }
                        vec![]
                    });
                    let kernel = b.finish();
                    let count = bytes / size as usize;
                    let buffers = [7, 8, 9].map(|seed| elements(mem, count, seed));
                    compare(&kernel, isa, &buffers, mem);
                }
            }
        }
    }
}

/// Likewise where some rows are not there: nothing of theirs is touched, and their lanes are zero.
#[test]
fn columns_of_some_rows() {
    use Mem::*;
    for &isa in isas() {
        for mem in [U8, I16, I32, I64, F16, BF16, F32, F64] {
            let size = mem.bytes() as i64;
            let lanes = isa.lanes(mem.lane().bytes() == 8) as i64;
            for columns in [2, 3, 4, 5, 7, 9, 16, 20, 33] {
                // Rows of which the last are fewer than lanes, the first of them aside or not: how many there are is
                // known where the loop is none.
                for (rows, first) in
                    [(1, 0), (lanes - 1, 0), (lanes - 1, 1), (2 * lanes + 1, 0), (3 * lanes - 2, 3)]
                {
                    let bytes = (rows * columns * size) as usize;
                    let flat = (rows + lanes) * columns * size;
                    let mut b = Builder::new(lanes as usize);
                    let short = bytes - size as usize;
                    let (x, z) = (b.param(bytes, true, false), b.param(short, true, false));
                    let (y, read) =
                        (b.param(bytes, false, true), b.param(flat as usize, false, true));
                    let (lo, hi, first) = (b.index(0), b.index(rows), b.index(first));
                    b.for_loop(lo, hi, lanes, &[], |b, row, _| {
                        let at = |buf, column| Addr {
                            buf,
                            offset: column * size,
                            terms: vec![(row, columns * size)],
                            lane_stride: columns * size,
                        };
                        let (below, before) = (b.mask_below(row, hi), b.mask_below(row, first));
                        let mask = Some(b.mask_op(MaskOp::AndNot, before, below));
                        for n in 0..columns {
                            let value = b.load(mem, at(x, n), mask);
                            b.store(value, mem, at(y, columns - 1 - n), mask);
                            // What is behind the last column that is read is not there either.
                            let other = b.load(mem, at(z, n.min(columns - 2)), mask);
                            let sum = b.add(value, other);
                            let mut side = at(read, 0);
                            (side.offset, side.lane_stride) = (n * lanes * size, size);
                            b.store(sum, mem, side, None);
                        }
                        vec![]
                    });
                    let kernel = b.finish();
                    let buffers = [(bytes, 6), (short, 7), (bytes, 8), (flat as usize, 9)];
                    let buffers =
                        buffers.map(|(bytes, seed)| elements(mem, bytes / mem.bytes(), seed));
                    compare(&kernel, isa, &buffers, mem);
                }
            }
        }
    }
}

/// Likewise of rows that are there or not as a whole: of those that are not, nothing is read.
#[test]
fn elements_a_few_apart_of_some_rows() {
    use Mem::*;
    for &isa in isas() {
        for mem in [U8, I16, I32, I64, BF16, F32, F64] {
            let size = mem.bytes() as i64;
            let lanes = isa.lanes(mem.lane().bytes() == 8) as i64;
            for (apart, on) in [(2, lanes), (3, lanes), (3, lanes - 1), (-2, lanes / 2), (17, 3)] {
                let reach = apart * (on - 1);
                let span = (reach.abs() + 1) * size;
                let rows = 5;
                let mut b = Builder::new(lanes as usize);
                // Rows 0 and 1, and in other places 3 and 4.
                let x = b.param(2 * span as usize, true, false);
                let all = b.param((6 * rows * lanes * size) as usize, false, true);
                let (lo, hi) = (b.index(0), b.index(rows));
                b.for_loop(lo, hi, 1, &[], |b, row, _| {
                    let zero = b.index(0);
                    let below = |b: &mut Builder, bound: i64| {
                        let (bound, lanes) = (b.index(bound), b.index(lanes));
                        let distance = b.index_op(IndexOp::Sub, row, bound);
                        let scaled = b.index_op(IndexOp::Mul, distance, lanes);
                        b.mask_below(scaled, zero)
                    };
                    let (first, middle) = (below(b, 2), below(b, 3));
                    let behind = b.mask_not(middle);
                    let end = b.index(on);
                    let some = b.mask_below(zero, end);
                    let places: Vec<i64> = (0..lanes).map(|l| l.min(on - 1) * apart).collect();
                    let places = b.numbers(Lane::I32, &places);
                    for (n, (rows_on, back)) in [(first, 0), (behind, 3)].into_iter().enumerate() {
                        let mask = Some(b.mask_op(MaskOp::And, some, rows_on));
                        let offset = -reach.min(0) * size - back * span;
                        let terms = vec![(row, span)];
                        let addr = |lane_stride| Addr {
                            buf: x,
                            offset,
                            terms: terms.clone(),
                            lane_stride,
                        };
                        let strided = b.load(mem, addr(apart * size), mask);
                        let by_places = b.gather(mem, addr(0), places, size, mask);
                        let gathered = b.gather(mem, addr(0), places, size, Some(rows_on));
                        for (m, value) in [strided, by_places, gathered].into_iter().enumerate() {
                            let at = Addr {
                                buf: all,
                                offset: (3 * n + m) as i64 * lanes * size,
                                terms: vec![(row, 6 * lanes * size)],
                                lane_stride: size,
                            };
                            b.store(value, mem, at, None);
                        }
                    }
                    vec![]
                });
                let kernel = b.finish();
                let counts = [(2 * span / size, 7), (6 * rows * lanes, 8)];
                let buffers = counts.map(|(count, seed)| elements(mem, count as usize, seed));
                compare(&kernel, isa, &buffers, mem);
            }
        }
    }
}

/// Likewise where only the first lanes have elements: the others are zero, and nothing of theirs is touched.
#[test]
fn elements_a_few_apart_of_some_lanes() {
    use Mem::*;
    for &isa in isas() {
        for mem in [U8, I16, I32, I64, BF16, F32, F64] {
            let size = mem.bytes() as i64;
            let lanes = isa.lanes(mem.lane().bytes() == 8);
            for apart in [2, 3, 4, 8, 9, 17, 40, -1, -3, -9] {
                for on in [1, 2, lanes / 2 + 1, lanes - 1] {
                    let stride = apart * size;
                    let reach = stride * (on as i64 - 1);
                    let span = (reach.abs() + size) as usize;
                    let first = -reach.min(0);
                    let addr =
                        |buf| Addr { buf, offset: first, terms: vec![], lane_stride: stride };
                    let mut b = Builder::new(lanes);
                    let (x, y) = (b.param(span, true, false), b.param(span, false, true));
                    let all = b.param(lanes * mem.bytes(), false, true);
                    let (zero, end) = (b.index(0), b.index(on as i64));
                    let mask = Some(b.mask_below(zero, end));
                    let read = b.load(mem, addr(x), mask);
                    b.store(read, mem, addr(y), mask);
                    // Elements at places that are known, once more.
                    let places: Vec<i64> = (0..lanes as i64).map(|l| l * apart).collect();
                    let places = b.numbers(Lane::I32, &places);
                    let of_lane_0 = Addr { lane_stride: 0, ..addr(x) };
                    let found = b.gather(mem, of_lane_0, places, size, mask);
                    let same = b.compare(Cmp::Eq, read, found);
                    let twice = b.select(same, read, found);
                    b.store(twice, mem, at(all, &[], size), None);
                    let kernel = b.finish();
                    let buffers = [(span, 7), (span, 8), (lanes * mem.bytes(), 9)];
                    let buffers =
                        buffers.map(|(bytes, seed)| elements(mem, bytes / mem.bytes(), seed));
                    compare(&kernel, isa, &buffers, mem);
                }
            }
        }
    }
}

/// Elements at places that are not known beforehand, up to the ends of buffers of a few vectors, which are
/// permuted, and of larger ones, with all lanes and with some.
#[test]
fn elements_are_gathered() {
    use Mem::*;
    let narrow = [(U8, false), (I8, true), (U16, false), (I16, false), (BF16, true), (F16, false)];
    let words = [(I32, false), (F32, true), (I64, true), (F64, true)];
    for &isa in isas() {
        for (mem, wide) in narrow.into_iter().chain(words) {
            for count in [1, 2, 3, 4, 5, 16, 17, 31, 32, 48, 64, 96, 100, 128, 129, 500] {
                gathered(isa, mem, count, (wide, Lane::I32));
                if wide {
                    gathered(isa, mem, count, (wide, Lane::I64));
                }
            }
        }
    }
}

/// Gathers from a table of `count` elements, in a kernel that may have 64-bit lanes, by indices of a type.
fn gathered(isa: Isa, mem: Mem, count: usize, (wide, index_lane): (bool, Lane)) {
    let (size, lanes) = (mem.bytes(), isa.lanes(wide));
    let (word, index_bytes) = (mem.lane().bytes(), index_lane.bytes());
    let of_lane = |lane| match lane {
        Lane::I32 => Mem::I32,
        Lane::I64 => Mem::I64,
        Lane::F32 => Mem::F32,
        Lane::F64 => Mem::F64,
    };
    let mut b = Builder::new(lanes);
    let table = b.param(count * size, true, false);
    let places = b.param(index_bytes * lanes, true, false);
    let y = b.param(word * lanes, false, true);
    let index = b.load(of_lane(index_lane), at(places, &[], index_bytes as i64), None);
    let most = b.int(index_lane, count as i64 - 1);
    let index = b.bin(BinOp::MinU, index, most);
    let zero = b.int(index_lane, 0);
    let some = b.compare(Cmp::Ne, index, zero);
    let scale = size as i64;
    // The same from further on, with places that are as much less.
    let moved = Addr { offset: scale * (count as i64 - 1), ..at(table, &[], 0) };
    let back = b.sub(index, most);
    let all = b.gather(mem, at(table, &[], 0), index, scale, None);
    let same = b.gather(mem, moved, back, scale, Some(some));
    let sum = b.add(all, same);
    let out = of_lane(mem.lane());
    b.store(sum, out, at(y, &[], word as i64), None);
    let kernel = b.finish();
    let number = |l: u64| (l * 37 % (count as u64 + 3)).to_le_bytes()[..index_bytes].to_vec();
    let numbers = (0..lanes as u64).flat_map(number).collect();
    let buffers = [elements(mem, count, 7), numbers, vec![0; word * lanes]];
    compare(&kernel, isa, &buffers, out);
}

/// Gathers within rows of a larger array, whose greatest index is known: rows of whole words and others, up to the
/// array's end.
#[test]
fn elements_of_rows_are_gathered() {
    use Mem::*;
    for &isa in isas() {
        for (mem, wide) in [(U8, false), (I16, true), (F16, false), (F32, false), (F64, true)] {
            for count in [1, 3, 10, 16, 21, 33, 100] {
                let (size, lanes) = (mem.bytes(), isa.lanes(wide));
                let lane = if wide { Lane::I64 } else { Lane::I32 };
                let (rows, word) = (5, mem.lane().bytes());
                let mut b = Builder::new(lanes);
                let table = b.param(rows * count * size, true, false);
                let places = b.param(lane.bytes() * lanes, true, false);
                let y = b.param(rows * word * lanes, false, true);
                let index_mem = if wide { I64 } else { I32 };
                let index = b.load(index_mem, at(places, &[], lane.bytes() as i64), None);
                let most = b.int(lane, count as i64 - 1);
                let index = b.bin(BinOp::MinU, index, most);
                let zero = b.int(lane, 0);
                let some = b.compare(Cmp::Ne, index, zero);
                let out = match mem.lane() {
                    Lane::F32 => F32,
                    Lane::F64 => F64,
                    Lane::I64 => I64,
                    Lane::I32 => I32,
                };
                let (first, end) = (b.index(0), b.index(rows as i64));
                b.for_loop(first, end, 1, &[], |b, row, _| {
                    let addr = at(table, &[(row, (count * size) as i64)], 0);
                    let places = (size as i64, Some(count as u32 - 1));
                    let all = b.gather_up_to(mem, addr.clone(), index, places, None);
                    let same = b.gather_up_to(mem, addr, index, places, Some(some));
                    let sum = b.add(all, same);
                    b.store(sum, out, at(y, &[(row, (word * lanes) as i64)], word as i64), None);
                    Vec::new()
                });
                let kernel = b.finish();
                let number = |l: u64| (l * 37 % (count as u64 + 3)).to_le_bytes();
                let numbers = (0..lanes as u64).flat_map(|l| number(l)[..lane.bytes()].to_vec());
                let buffers = [
                    elements(mem, rows * count, 7),
                    numbers.collect(),
                    vec![0; rows * word * lanes],
                ];
                compare(&kernel, isa, &buffers, out);
            }
        }
    }
}

/// Runs a kernel as machine code, with its accesses checked and without, and on the tile machine, and
/// compares all buffers, with bytes behind each that must not change. NaNs are equal.
pub(super) fn compare(kernel: &Kernel, isa: Isa, buffers: &[Vec<u8>], mem: Mem) {
    compare_function(kernel, isa, &function(kernel, isa), buffers, mem);
    compare_function(kernel, isa, &checked_function(kernel, isa), buffers, mem);
}

fn compare_function(
    kernel: &Kernel,
    isa: Isa,
    function: &JitFunction,
    buffers: &[Vec<u8>],
    mem: Mem,
) {
    const GUARD: usize = 64;
    let guarded = |bytes: &Vec<u8>| [bytes.as_slice(), &[0x5a; GUARD]].concat();
    let mut found: Vec<Vec<u8>> = buffers.iter().map(guarded).collect();
    let mut expected = found.clone();
    let writes = kernel.params.iter().map(|p| p.write);
    let mut args: Vec<tile::FunctionArg<'_>> =
        expected
            .iter_mut()
            .zip(writes.clone())
            .map(|(bytes, write)| {
                if write { tile::FunctionArg::Write(bytes) } else { tile::FunctionArg::Read(bytes) }
            })
            .collect();
    tile::run(kernel, &mut args, 0, kernel.range).unwrap();
    let mut args: Vec<JitArg<'_>> = found
        .iter_mut()
        .zip(writes)
        .map(|(bytes, write)| if write { JitArg::Write(bytes) } else { JitArg::Read(bytes) })
        .collect();
    function.call(&mut args, Threads::single()).unwrap();
    for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if !kernel.params[n].write {
            continue;
        }
        let size = mem.bytes();
        for (i, (x, y)) in found.chunks(size).zip(expected.chunks(size)).enumerate() {
            assert!(
                x == y || both_nan(mem, x, y),
                "{isa:?}: buffer {n}, element {i}: {x:02x?} instead of {y:02x?}\n{kernel:#?}"
            );
        }
    }
}

fn both_nan(mem: Mem, x: &[u8], y: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match (mem, bytes) {
        (Mem::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (Mem::F64, bytes) => bytes.try_into().is_ok_and(|b| f64::from_le_bytes(b).is_nan()),
        (Mem::F16, &[_, high]) => high & 0x7c == 0x7c,
        (Mem::BF16, &[_, high]) => high & 0x7f == 0x7f,
        _ => false,
    };
    is_nan(x) && is_nan(y)
}

/// Elements: special ones, small integers, and any bits.
pub(super) fn elements(mem: Mem, n: usize, seed: u64) -> Vec<u8> {
    let mut random = oorandom::Rand64::new(seed.into());
    let mut bytes = Vec::new();
    for i in 0..n {
        let bits = random.rand_u64();
        let small = (bits % 9) as i64 - 4;
        let value: u64 = match (mem, i % 4) {
            (_, 3) => bits,
            (Mem::F32, 0) => f32::to_bits(
                [0.0, -0.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE / 2.0, 2.5, -0.5, 3e9, -1.0]
                    [bits as usize % 9],
            )
            .into(),
            (Mem::F64, 0) => f64::to_bits(
                [
                    0.0,
                    -0.0,
                    f64::NAN,
                    f64::INFINITY,
                    f64::MIN_POSITIVE / 2.0,
                    2.5,
                    -0.5,
                    3e19,
                    -1.0,
                ][bits as usize % 9],
            ),
            (Mem::F32, _) => ((small as f32) * 1.25).to_bits().into(),
            (Mem::F64, _) => ((small as f64) * 1.25).to_bits(),
            (_, 0) => [0, u64::MAX, 1 << 63, 1 << 31, 1 << 15, 1 << 7, 31, 64, 0x7fff_ffff]
                [bits as usize % 9],
            (_, _) => small as u64,
        };
        bytes.extend_from_slice(&value.to_le_bytes()[..mem.bytes()]);
    }
    bytes
}

fn mem_of(lane: Lane) -> Mem {
    match lane {
        Lane::I32 => Mem::I32,
        Lane::I64 => Mem::I64,
        Lane::F32 => Mem::F32,
        Lane::F64 => Mem::F64,
    }
}

fn at(buf: Buf, terms: &[(Value, i64)], stride: i64) -> Addr {
    Addr { buf, offset: 0, terms: terms.to_vec(), lane_stride: stride }
}

/// `out[i] = f(inputs[i]…)` over `n` elements, with a masked tail after whole vectors.
fn mapped(
    lanes: usize,
    n: usize,
    inputs: &[Mem],
    out: Mem,
    f: impl Fn(&mut Builder, &[Value]) -> Value,
) -> Kernel {
    let mut b = Builder::new(lanes);
    b.set_range(n as i64, lanes as i64);
    let ins: Vec<Buf> = inputs.iter().map(|m| b.param(n * m.bytes(), true, false)).collect();
    let to = b.param(n * out.bytes(), false, true);
    let (lo, hi) = (b.begin(), b.end());
    let step = |b: &mut Builder, i: Value, mask: Option<Value>| {
        let values: Vec<Value> = inputs
            .iter()
            .zip(&ins)
            .map(|(&mem, &buf)| {
                let size = mem.bytes() as i64;
                b.load(mem, at(buf, &[(i, size)], size), mask)
            })
            .collect();
        let result = f(b, &values);
        let size = out.bytes() as i64;
        b.store(result, out, at(to, &[(i, size)], size), mask);
    };
    let whole = b.index(-(lanes as i64));
    let whole = b.index_op(IndexOp::And, hi, whole);
    let from = b.index_op(IndexOp::Max, lo, whole);
    b.for_loop(lo, whole, lanes as i64, &[], |b, i, _| {
        step(b, i, None);
        vec![]
    });
    b.for_loop(from, hi, lanes as i64, &[], |b, i, _| {
        let mask = b.mask_below(i, hi);
        step(b, i, Some(mask));
        vec![]
    });
    b.finish()
}

/// Compares `f` on several lengths, with narrow and with wide kernels.
fn check_map(inputs: &[Mem], out: Mem, f: impl Fn(&mut Builder, &[Value]) -> Value) {
    check_map_on(isas(), inputs, out, f);
}

fn check_map_on(
    isas: &[Isa],
    inputs: &[Mem],
    out: Mem,
    f: impl Fn(&mut Builder, &[Value]) -> Value,
) {
    for &isa in isas {
        let wide = inputs.iter().chain([&out]).any(|mem| mem.bytes() == 8);
        for wide in [wide, true] {
            let lanes = isa.lanes(wide);
            for n in [1, lanes - 1, lanes, 3 * lanes + 2, 200] {
                let kernel = mapped(lanes, n, inputs, out, |b, values| {
                    if wide {
                        // Any use of 64-bit lanes makes the kernel a wide one.
                        let zero = b.int(Lane::I64, 0);
                        let id = b.compare(Cmp::Eq, zero, zero);
                        let first = b.select(id, values[0], values[0]);
                        let values: Vec<Value> =
                            std::iter::once(first).chain(values[1..].iter().copied()).collect();
                        return f(b, &values);
                    }
                    f(b, values)
                });
                let mut buffers: Vec<Vec<u8>> = inputs
                    .iter()
                    .enumerate()
                    .map(|(i, &mem)| elements(mem, n, 7 + i as u64))
                    .collect();
                buffers.push(vec![0xee; n * out.bytes()]);
                compare(&kernel, isa, &buffers, out);
            }
        }
    }
}

const LANES: [Lane; 4] = [Lane::I32, Lane::I64, Lane::F32, Lane::F64];

#[test]
fn binary_operations() {
    use BinOp::*;
    for lane in LANES {
        let mem = mem_of(lane);
        let ops: &[BinOp] = if lane.is_float() {
            &[Add, Sub, Mul, Div, Min, Max, Minimum, Maximum, And, AndNot, Or, Xor]
        } else {
            &[Add, Sub, Mul, Min, Max, MinU, MaxU, And, AndNot, Or, Xor, Shl, ShrL, ShrA, RotL]
        };
        for &op in ops {
            check_map(&[mem, mem], mem, |b, v| b.bin(op, v[0], v[1]));
            for constant in [0, 1, 5, 33, 64, u64::MAX] {
                check_map(&[mem], mem, |b, v| {
                    let c = b.bits(lane, constant);
                    b.bin(op, v[0], c)
                });
            }
            check_map(&[mem], mem, |b, v| {
                let c = b.bits(lane, 3);
                b.bin(op, c, v[0])
            });
        }
    }
    check_map(&[Mem::I64, Mem::I64], Mem::I64, |b, v| b.bin(MulWide, v[0], v[1]));
}

#[test]
fn unary_operations_and_fused_products() {
    use UnOp::*;
    for lane in LANES {
        let mem = mem_of(lane);
        let ops: &[UnOp] = if lane.is_float() {
            &[Sqrt, RoundEven, Floor, Ceil, Trunc]
        } else {
            &[PopCount, CountLeadingZeros]
        };
        for &op in ops {
            check_map(&[mem], mem, |b, v| b.un(op, v[0]));
        }
        if lane.is_float() {
            for op in [FmaOp::Add, FmaOp::Sub, FmaOp::From] {
                check_map(&[mem, mem, mem], mem, |b, v| b.fused(op, v[0], v[1], v[2]));
            }
            check_map(&[mem], mem, |b, v| {
                let (x, y) = (b.float(lane, 1.5), b.float(lane, 0.25));
                let p = b.fma(x, v[0], y);
                let q = b.fma(p, p, x);
                let r = b.fma(x, y, q);
                b.fma(r, x, r)
            });
        }
    }
    check_map(&[Mem::F32], Mem::F32, |b, v| b.un(RoundF16, v[0]));
}

#[test]
fn comparisons_and_masks() {
    use Cmp::*;
    for lane in LANES {
        let mem = mem_of(lane);
        let ops: &[Cmp] = if lane.is_float() {
            &[Eq, Ne, Lt, Le, Gt, Ge]
        } else {
            &[Eq, Ne, Lt, Le, Gt, Ge, LtU, LeU, GtU, GeU]
        };
        for &op in ops {
            check_map(&[mem, mem], mem, |b, v| {
                let mask = b.compare(op, v[0], v[1]);
                b.select(mask, v[0], v[1])
            });
            check_map(&[mem], Mem::U8, |b, v| {
                let zero = b.bits(lane, 0);
                let mask = b.compare(op, v[0], zero);
                let (one, none) = (b.int(Lane::I32, 1), b.int(Lane::I32, 0));
                b.select(mask, one, none)
            });
        }
        for op in [MaskOp::And, MaskOp::Or, MaskOp::Xor, MaskOp::AndNot] {
            check_map(&[mem, mem], mem, |b, v| {
                let zero = b.bits(lane, 0);
                let x = b.compare(Lt, v[0], v[1]);
                let y = b.compare(Gt, v[0], zero);
                let not = b.mask_not(y);
                let both = b.mask_op(op, x, not);
                b.select(both, v[0], zero)
            });
        }
        check_map(&[mem], mem, |b, v| {
            let zero = b.bits(lane, 0);
            let x = b.compare(Ne, v[0], zero);
            let any = b.mask_any(x);
            let ones = b.bits(lane, 1);
            b.select(any, v[0], ones)
        });
    }
}

#[test]
fn conversions() {
    for from in LANES {
        for to in LANES {
            for op in [
                Conv::Bits,
                Conv::Value,
                Conv::Trunc,
                Conv::ValueU,
                Conv::Extend,
                Conv::ExtendU,
                Conv::Narrow,
            ] {
                let valid = match op {
                    Conv::Bits => from.bytes() == to.bytes() && from != to,
                    Conv::Value => to.is_float() && from != to,
                    Conv::ValueU => to.is_float() && !from.is_float(),
                    Conv::Trunc => from.is_float() && !to.is_float(),
                    Conv::Extend | Conv::ExtendU => from == Lane::I32 && to == Lane::I64,
                    Conv::Narrow => from == Lane::I64 && to == Lane::I32,
                };
                if valid {
                    check_map(&[mem_of(from)], mem_of(to), |b, v| b.convert(op, to, v[0]));
                }
            }
        }
    }
}

#[test]
fn formats() {
    use Mem::*;
    for mem in [U8, I8, U16, I16, I32, I64, F16, BF16, F32, F64] {
        check_map(&[mem], mem, |b, v| b.add(v[0], v[0]));
        check_map(&[mem], mem_of(mem.lane()), |_, v| v[0]);
        check_map(&[mem_of(mem.lane())], mem, |_, v| v[0]);
    }
}

#[test]
fn scaling_by_powers_of_two() {
    for (lane, mem) in [(Lane::F32, Mem::F32), (Lane::F64, Mem::F64)] {
        check_map(&[mem_of(lane)], mem, |b, v| {
            // Between 1 and 2, times integers of a magnitude that is allowed.
            let (one, two) = (b.float(lane, 1.0), b.float(lane, 1.75));
            let x = b.bin(BinOp::Min, v[0], two);
            let x = b.bin(BinOp::Max, one, x);
            let (low, high) = (b.float(lane, -250.0), b.float(lane, 250.0));
            let by = b.un(UnOp::RoundEven, v[0]);
            let by = b.bin(BinOp::Min, by, high);
            let by = b.bin(BinOp::Max, low, by);
            b.bin(BinOp::Scale, x, by)
        });
    }
}

/// With fractions, of which scaling takes the floor, and beyond what any number can be scaled by; and bounds of magnitudes.
#[test]
fn scaling_and_bounds_of_long_vectors() {
    let with_instructions: Vec<Isa> =
        isas().iter().copied().filter(|&isa| isa == Isa::Avx512).collect();
    for lane in [Lane::F32, Lane::F64] {
        let mem = mem_of(lane);
        for by in [0.0625, -0.0625, 3.9375, -7.5, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY] {
            check_map_on(&with_instructions, &[mem], mem, |b, v| {
                let (one, two, by) = (b.float(lane, 1.0), b.float(lane, 1.75), b.float(lane, by));
                let x = b.bin(BinOp::Min, v[0], two);
                let x = b.bin(BinOp::Max, one, x);
                b.bin(BinOp::Scale, x, by)
            });
        }
        check_map_on(&with_instructions, &[mem, mem], mem, |b, v| {
            // A sum is no signalling NaN.
            let x = b.add(v[0], v[0]);
            b.bin(BinOp::Within, x, v[1])
        });
        for bound in [0.0, 0.022, 1e30, f64::INFINITY] {
            check_map_on(&with_instructions, &[mem], mem, |b, v| {
                let (x, bound) = (b.add(v[0], v[0]), b.float(lane, bound));
                b.bin(BinOp::Within, x, bound)
            });
        }
    }
}

/// Within 2^-14 of what they estimate, and exact where they have to be.
#[test]
fn estimates() {
    if !isas().contains(&Isa::Avx512) {
        return;
    }
    type Function = fn(f64) -> f64;
    let ops: [(UnOp, Function); 2] =
        [(UnOp::Inverse, f64::recip), (UnOp::InverseRoot, |x| x.sqrt().recip())];
    for (op, exact) in ops {
        let near: Vec<f32> = (0..1984).map(|i| 0.25 * 1.0013_f32.powi(i)).collect();
        let powers = (-31..31).map(|i| 4_f32.powi(i));
        let powers: Vec<f32> = powers.chain([0.0, f32::INFINITY]).collect();
        for (numbers, tolerance) in [(near, 2f64.powi(-14)), (powers, 0.0)] {
            let n = numbers.len();
            let kernel = mapped(16, n, &[Mem::F32], Mem::F32, |b, v| b.un(op, v[0]));
            let from: Vec<u8> = numbers.iter().flat_map(|x| x.to_ne_bytes()).collect();
            let mut found = vec![0; from.len()];
            let mut args = [JitArg::Read(&from), JitArg::Write(&mut found)];
            function(&kernel, Isa::Avx512).call(&mut args, Threads::single()).unwrap();
            for (&x, bytes) in std::iter::zip(&numbers, found.chunks_exact(4)) {
                let found = f64::from(f32::from_ne_bytes(bytes.try_into().unwrap()));
                let expected = exact(f64::from(x));
                let error = if found == expected { 0.0 } else { (found / expected - 1.0).abs() };
                assert!(error <= tolerance, "{op:?} of {x}: {found}");
            }
        }
    }
}

/// Of any index, the four lowest bits.
#[test]
fn lookups_in_tables() {
    check_map(&[Mem::I32], Mem::I32, |b, v| {
        let table = std::array::from_fn(|i| 1000 * i as u32 + 7);
        b.lookup(Lane::I32, table, v[0])
    });
}

#[test]
fn parts_of_floats() {
    let with_instructions: Vec<Isa> =
        isas().iter().copied().filter(|&isa| isa == Isa::Avx512).collect();
    for lane in [Lane::F32, Lane::F64] {
        let mem = mem_of(lane);
        for op in [UnOp::Exponent, UnOp::Mantissa] {
            check_map_on(&with_instructions, &[mem], mem, |b, v| b.un(op, v[0]));
            // Below the normal numbers, at both ends of the mantissas, zeros, and what is not finite.
            let numbers = match lane {
                Lane::F32 => {
                    [1e-45, 1.1e-38, 1.5, 1.499_999_9, 0.75, 3e38, 0.0, -0.0, f64::INFINITY]
                }
                _ => [
                    5e-324,
                    2.2e-308,
                    1.5,
                    1.499_999_999_999_999_8,
                    0.75,
                    1e308,
                    0.0,
                    -0.0,
                    f64::INFINITY,
                ],
            };
            for number in numbers {
                check_map_on(&with_instructions, &[mem], mem, |b, v| {
                    let (number, zero) = (b.float(lane, number), b.float(lane, 0.0));
                    let sign = b.compare(Cmp::Lt, v[0], zero);
                    let minus = b.float(lane, -1.0);
                    let negative = b.mul(number, minus);
                    let number = b.select(sign, negative, number);
                    b.un(op, number)
                });
            }
        }
    }
}

/// Index arithmetic by a loop that runs until a condition fails, with scratch and scalars in memory.
#[test]
fn loops_with_conditions() {
    for &isa in isas() {
        let lanes = isa.lanes(false);
        let mut b = Builder::new(lanes);
        let numbers = b.param(40, true, false);
        let out = b.param(4 * lanes * 3, false, true);
        let scratch = b.scratch(8 * lanes);
        let (zero, one) = (b.int(Lane::I32, 0), b.int(Lane::I32, 1));
        let bound = b.int(Lane::I32, 23);
        let sums = b.while_loop(
            &[zero, one],
            |b, v| {
                let go = b.compare(Cmp::Lt, v[0], bound);
                let any = b.mask_any(go);
                let also = b.compare(Cmp::Ne, v[1], bound);
                b.mask_op(MaskOp::And, any, also)
            },
            |b, v| {
                let next = b.add(v[0], v[1]);
                vec![v[1], next]
            },
        );
        let from = b.extract(sums[0]);
        let seven = b.index(7);
        let slot = b.index_op(IndexOp::Div, from, seven);
        let read = b.index_load(Mem::I32, at(numbers, &[(slot, 4)], 4));
        let all = b.splat(Lane::I32, read);
        let place = |offset| Addr { buf: Buf::Scratch, offset, terms: vec![], lane_stride: 4 };
        b.store(sums[1], Mem::I32, place(scratch), None);
        b.store(all, Mem::I32, place(scratch + 4 * lanes as i64), None);
        let moved = b.load(Mem::I32, place(scratch + 4), None);
        for (n, value) in [(0, sums[0]), (1, all), (2, moved)] {
            let offset = 4 * lanes as i64 * n;
            let addr = Addr { buf: out, offset, terms: vec![], lane_stride: 4 };
            b.store(value, Mem::I32, addr, None);
        }
        let kernel = b.finish();
        compare(&kernel, isa, &[elements(Mem::I32, 10, 3), vec![0; 12 * lanes]], Mem::I32);
    }
}

#[test]
fn buffers_that_do_not_fit_are_errors() {
    for &isa in isas() {
        let mut kernel = mapped(isa.lanes(false), 8, &[Mem::I32], Mem::I32, |_, v| v[0]);
        kernel.shared = vec![(0, 1), (0, 0)];
        let function = function(&kernel, isa);
        let (data, mut out) = (vec![0; 32], vec![0; 32]);
        let call = |args: &mut [JitArg<'_>]| {
            function.call(args, Threads::single()).map_err(|e| e.to_string())
        };
        let error = |args: &mut [JitArg<'_>]| call(args).unwrap_err();
        assert!(error(&mut [JitArg::Read(&data)]).contains("1 buffers for 2 parameters"));
        assert!(error(&mut [JitArg::Read(&data), JitArg::Read(&data)]).contains("not be written"));
        assert!(
            error(&mut [JitArg::Read(&data[4..]), JitArg::Write(&mut out)]).contains("28 of 32")
        );
        assert!(error(&mut [JitArg::Same(0), JitArg::Write(&mut out)]).contains("of no other"));
        assert_eq!(call(&mut [JitArg::Same(1), JitArg::Write(&mut out)]), Ok(()));
        let apart = self::function(&Kernel { shared: vec![], ..kernel }, isa);
        let args = &mut [JitArg::Same(1), JitArg::Write(&mut out)];
        let error = apart.call(args, Threads::single()).unwrap_err().to_string();
        assert!(error.contains("buffer 0 cannot be that of 1"), "{error}");
    }
}

/// Where all instruction sets are, there is nothing to refuse.
#[test]
fn code_for_another_processor_is_refused() {
    for isa in [Isa::Avx512, Isa::Avx2] {
        let kernel = mapped(isa.lanes(false), 8, &[Mem::I32], Mem::I32, |_, v| v[0]);
        let code = x86::compile(&kernel, isa).unwrap();
        // SAFETY: it is not called.
        let jit = unsafe { Jit::trusted("kernel", code, 1.0) };
        assert_eq!(Jit::install(vec![jit]).is_ok(), isas().contains(&isa), "{isa:?}");
    }
}

#[test]
fn threads_share_the_range() {
    let pool = crate::Pool::new(3);
    for &isa in isas() {
        let lanes = isa.lanes(false);
        let n = 100 * lanes + 5;
        let kernel = mapped(lanes, n, &[Mem::I32], Mem::I32, |b, v| b.add(v[0], v[0]));
        let mut function = function(&kernel, isa);
        function.task = 2 * lanes as i64;
        let data = elements(Mem::I32, n, 1);
        let run = |threads| {
            let mut out = vec![0; data.len()];
            function.call(&mut [JitArg::Read(&data), JitArg::Write(&mut out)], threads).unwrap();
            out
        };
        assert_eq!(run(pool.threads(3)), run(Threads::single()));
    }
}

#[test]
fn tasks_are_worth_their_while() {
    // Small work is one task; large work is cut in multiples of the grain, into not too many.
    assert_eq!(task_len(100, 16, 1.0), 112);
    assert_eq!(task_len(1 << 19, 16, 1.0), (TASK_NANOS as usize).next_multiple_of(16) as i64);
    assert_eq!(task_len(1 << 20, 16, 1.0), (1 << 20) / MAX_TASKS);
    assert_eq!(task_len(1 << 30, 16, 1.0), most_len(1.0));
    assert_eq!(task_len(0, 1, 0.0), 1);
}
