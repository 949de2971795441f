//! Kernels made up at random: many values that live long, loops in loops, all kinds of access.

use helio_codegen::kernel::{
    Addr, BinOp, Buf, Builder, Cmp, Conv, FmaOp, Fold, IndexOp, Kernel, Lane, MaskOp, Mem, Ty,
    UnOp, Value,
};
use helio_codegen::x86::Isa;
use oorandom::Rand64;

use super::checked::stays_inside;
use super::tests::{compare, elements, isas};

const FORMATS: [Mem; 10] = [
    Mem::U8,
    Mem::I8,
    Mem::U16,
    Mem::I16,
    Mem::I32,
    Mem::I64,
    Mem::F16,
    Mem::BF16,
    Mem::F32,
    Mem::F64,
];

/// Elements of each input.
const ELEMENTS: usize = 3000;
/// Elements of each output: one for each store.
const STORES: usize = 40;

struct Maker {
    random: Rand64,
    b: Builder,
    wide: bool,
    /// Values in scope.
    values: Vec<Value>,
    /// Index values in scope that are not negative, each with the most that it can be.
    small: Vec<(Value, i64)>,
    inputs: Vec<(Mem, Buf)>,
    output: (Mem, Buf),
    stores: usize,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        self.random.rand_range(0..n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let n = self.below(from.len());
        from[n]
    }

    fn lane(&mut self) -> Lane {
        let all = [Lane::I32, Lane::F32, Lane::I64, Lane::F64];
        let n = if self.wide { 4 } else { 2 };
        self.pick(&all[..n])
    }

    /// A vector of a lane type: mostly one that is there, from anywhere in the list.
    fn vector(&mut self, lane: Lane) -> Value {
        let there: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.b.ty(v) == Ty::Vector(lane)).collect();
        if there.is_empty() || self.below(12) == 0 {
            let number = self.below(9) as f64 - 4.0;
            return self.b.float(lane, number * 1.25);
        }
        self.pick(&there)
    }

    fn mask(&mut self) -> Value {
        let there: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.b.ty(v) == Ty::Mask).collect();
        if there.is_empty() || self.below(6) == 0 {
            return match (self.below(3), self.small.last().copied()) {
                (0, _) => self.b.mask_const(true),
                (1, Some((var, most))) => {
                    let by = self.below(most as usize + 8) as i64;
                    let end = self.b.index(by);
                    self.b.mask_below(var, end)
                }
                _ => {
                    let lane = self.lane();
                    let (x, y) = (self.vector(lane), self.vector(lane));
                    self.b.compare(Cmp::Lt, x, y)
                }
            };
        }
        self.pick(&there)
    }

    /// An address that stays within `elements` elements of the buffer for all lanes.
    fn address(&mut self, mem: Mem, buf: Buf, elements: usize) -> Addr {
        let size = mem.bytes() as i64;
        let strides = [1, 1, 1, 0, 2, -1, -2, 3, -3, 4, 5, 7, 9].map(|elements| elements * size);
        let lane_stride = self.pick(&strides);
        let mut terms = Vec::new();
        let reach = lane_stride * (self.b.lanes() as i64 - 1);
        let (mut low, mut high) = (reach.min(0), reach.max(0));
        for _ in 0..self.below(4) {
            let n = self.below(self.small.len() + 1);
            if let Some(&(value, most)) = self.small.get(n) {
                let bytes = size * self.pick(&[1, 1, 2, 3, 4, 8, 20, -1]);
                terms.push((value, bytes));
                low += (bytes * most).min(0);
                high += (bytes * most).max(0);
            }
        }
        let room = elements as i64 * size - (high - low) - size;
        assert!(room >= 0, "the buffer is too small for the test");
        let spare = self.below(room as usize / size as usize + 1) as i64 * size;
        Addr { buf, offset: spare - low, terms, lane_stride }
    }

    fn step(&mut self) {
        let lane = self.lane();
        let (int, float) =
            if lane.bytes() == 8 { (Lane::I64, Lane::F64) } else { (Lane::I32, Lane::F32) };
        let value = match self.below(13) {
            0..=2 => {
                use BinOp::*;
                let ops: &[BinOp] = if lane.is_float() {
                    &[Add, Sub, Mul, Div, Min, Max, Minimum, Maximum]
                } else {
                    &[Add, Sub, Mul, Min, Max, MinU, MaxU, And, AndNot, Or, Xor, Shl, ShrL, ShrA]
                };
                let op = self.pick(ops);
                let (x, y) = (self.vector(lane), self.vector(lane));
                self.b.bin(op, x, y)
            }
            3 | 4 => {
                let [x, y, z] = [(); 3].map(|()| self.vector(float));
                let op = self.pick(&[FmaOp::Add, FmaOp::Sub, FmaOp::From]);
                self.b.fused(op, x, y, z)
            }
            5 => {
                use Cmp::*;
                let op = self.pick(&[Eq, Ne, Lt, Le, Gt, Ge]);
                let (x, y) = (self.vector(lane), self.vector(lane));
                self.b.compare(op, x, y)
            }
            6 => {
                let (mask, x, y) = (self.mask(), self.vector(lane), self.vector(lane));
                self.b.select(mask, x, y)
            }
            7 => {
                let op = self.pick(&[MaskOp::And, MaskOp::Or, MaskOp::Xor, MaskOp::AndNot]);
                let (x, y) = (self.mask(), self.mask());
                if self.below(3) == 0 { self.b.mask_any(x) } else { self.b.mask_op(op, x, y) }
            }
            8 => {
                let (x, y) = (self.vector(int), self.vector(float));
                match self.below(3) {
                    0 => self.b.convert(Conv::Value, float, x),
                    1 => self.b.convert(Conv::Trunc, int, y),
                    _ => self.b.convert(Conv::ValueU, float, x),
                }
            }
            9 => {
                let x = self.vector(lane);
                match self.below(3) {
                    0 if lane.is_float() => self.b.un(UnOp::Floor, x),
                    0 => self.b.un(UnOp::CountLeadingZeros, x),
                    1 => {
                        let op = if lane.is_float() { BinOp::Maximum } else { BinOp::Add };
                        self.b.reduce(Fold::Bin(op), x)
                    }
                    _ => {
                        let fill = self.vector(lane);
                        let by = 1 + self.below(self.b.lanes() - 1);
                        self.b.shift_up(x, fill, by)
                    }
                }
            }
            10 if self.below(2) == 0 => {
                let x = self.vector(Lane::I32);
                let bits = self.b.int(Lane::I32, 15);
                let x = self.b.bin(BinOp::And, x, bits);
                let eight = self.b.int(Lane::I32, 8);
                let index = self.b.sub(x, eight);
                let table = [(); 16].map(|()| (self.below(200) as f32 - 99.5).to_bits());
                let lane = self.pick(&[Lane::F32, Lane::I32]);
                self.b.lookup(lane, table, index)
            }
            10 => {
                let index = self.index();
                let lane = if self.wide { self.pick(&[Lane::I32, Lane::I64]) } else { Lane::I32 };
                self.b.splat(lane, index)
            }
            _ => {
                let (mem, buf) = self.pick(&self.inputs.clone());
                let mask = (self.below(3) == 0).then(|| self.mask());
                let addr = self.address(mem, buf, ELEMENTS);
                if self.below(4) == 0 {
                    let lane = if self.wide { Lane::I64 } else { Lane::I32 };
                    let index = if self.below(2) == 0 {
                        let most = self.pick(&[1, 4, 16]);
                        let numbers = (0..self.b.lanes()).map(|_| self.below(most) as i64);
                        let numbers: Vec<i64> = numbers.collect();
                        self.b.numbers(lane, &numbers)
                    } else {
                        let x = self.vector(lane);
                        let bits = self.b.int(lane, 15);
                        self.b.bin(BinOp::And, x, bits)
                    };
                    let scale = mem.bytes() as i64 * self.pick(&[1, 1, 3]);
                    // Away from the end, where the address itself leaves room.
                    let addr = Addr { offset: 0, terms: vec![], ..addr };
                    self.b.gather(mem, addr, index, scale, mask)
                } else {
                    self.b.load(mem, addr, mask)
                }
            }
        };
        self.values.push(value);
    }

    /// An index value, whatever it is.
    fn index(&mut self) -> Value {
        let small = self.small.clone();
        let number = self.below(20) as i64 - 5;
        let known = if small.is_empty() || self.below(4) == 0 {
            self.b.index(number)
        } else {
            self.pick(&small).0
        };
        let ops =
            [IndexOp::Add, IndexOp::Sub, IndexOp::Mul, IndexOp::And, IndexOp::Min, IndexOp::Max];
        let op = self.pick(&ops);
        let other = self.b.index(number);
        self.b.index_op(op, known, other)
    }

    fn store(&mut self) {
        if self.stores == STORES {
            return;
        }
        let (mem, buf) = self.output;
        let src = self.vector(mem.lane());
        let mask = (self.below(2) == 0).then(|| self.mask());
        // Each store has its own place, so that reordering shows as little as it should.
        let room = 400;
        let mut addr = self.address(mem, buf, room);
        addr.offset += (self.stores * room * mem.bytes()) as i64;
        self.stores += 1;
        self.b.store(src, mem, addr, mask);
    }

    fn block(&mut self, depth: usize, steps: usize) {
        let known = (self.values.len(), self.small.len());
        for _ in 0..steps {
            match self.below(24) {
                0 if depth < 3 => self.repeat(depth, steps),
                1 => self.store(),
                2 if !self.small.is_empty() => {
                    let (value, most) = self.pick(&self.small.clone());
                    let by = self.b.index(2);
                    let half = self.b.index_op(IndexOp::Div, value, by);
                    self.small.push((half, most / 2));
                }
                _ => self.step(),
            }
        }
        if depth > 0 {
            self.store();
        }
        self.small.truncate(known.1);
        if depth == 0 {
            self.values.truncate(known.0);
        }
    }

    fn repeat(&mut self, depth: usize, steps: usize) {
        let times = self.below(5) as i64;
        let step = 1 + self.below(3) as i64;
        let lo = self.b.index(0);
        let hi = self.b.index(times);
        let lanes: Vec<Lane> = (0..self.below(5)).map(|_| self.lane()).collect();
        let mut init: Vec<Value> = lanes.iter().map(|&lane| self.vector(lane)).collect();
        if self.below(3) == 0 {
            init.push(self.mask());
        }
        let known = (self.values.len(), self.small.len());
        // The builder lends itself to the body; until then a placeholder stands here.
        let mut b = std::mem::replace(&mut self.b, Builder::new(1));
        let results = b.for_loop(lo, hi, step, &init, |b, var, params| {
            std::mem::swap(&mut self.b, b);
            self.values.extend(params);
            self.small.push((var, (times - 1).max(0)));
            self.block(depth + 1, steps / 2 + 2);
            let next = params
                .iter()
                .map(|&param| match self.b.ty(param) {
                    Ty::Vector(lane) => self.vector(lane),
                    _ => self.mask(),
                })
                .collect();
            std::mem::swap(&mut self.b, b);
            next
        });
        self.b = b;
        self.values.truncate(known.0);
        self.small.truncate(known.1);
        self.values.extend(results);
    }
}

fn kernel(seed: u64, wide: bool, lanes: usize) -> (Kernel, Vec<Vec<u8>>, Mem) {
    let mut random = Rand64::new(seed.into());
    let formats: Vec<Mem> =
        FORMATS.into_iter().filter(|mem| wide || mem.lane().bytes() == 4).collect();
    let mut pick = || formats[random.rand_range(0..formats.len() as u64) as usize];
    let mut b = Builder::new(lanes);
    let mut buffers = Vec::new();
    let mut inputs = Vec::new();
    for n in 0..3 {
        let mem = pick();
        inputs.push((mem, b.param(ELEMENTS * mem.bytes(), true, false)));
        buffers.push(elements(mem, ELEMENTS, seed + n));
    }
    let mem = pick();
    let bytes = STORES * 400 * mem.bytes();
    let output = (mem, b.param(bytes, false, true));
    buffers.push(vec![0; bytes]);
    let (values, small) = (Vec::new(), Vec::new());
    let mut maker = Maker { random, b, wide, values, small, inputs, output, stores: 0 };
    if wide {
        let zero = maker.b.int(Lane::I64, 0);
        maker.values.push(zero);
    }
    let steps = 5 + maker.below(60);
    maker.block(0, steps);
    maker.store();
    (maker.b.finish(), buffers, mem)
}

#[test]
fn made_up_kernels() {
    for seed in 0..400 {
        for &isa in isas() {
            let wide = seed % 2 == 1;
            // Half of the lanes are enough, too, down to four.
            let lanes = if seed % 5 == 0 { isa.lanes(wide) / 2 } else { isa.lanes(wide) };
            let (kernel, buffers, mem) = kernel(seed, wide, lanes.max(4));
            compare(&kernel, isa, &buffers, mem);
            leave_buffers(kernel, isa, &buffers, seed);
        }
    }
}

/// Kernels that say of a buffer that it is smaller than it is end where they leave it.
fn leave_buffers(kernel: Kernel, isa: Isa, buffers: &[Vec<u8>], seed: u64) {
    for n in 0..kernel.params.len() {
        let mut kernel = kernel.clone();
        let param = &mut kernel.params[n];
        param.bytes = (param.bytes as u64 * (seed * 37 % 101) / 101) as usize;
        let is_written = param.write;
        let [machine, tile] = stays_inside(&kernel, isa, buffers);
        // What is read in vain is not read by machine code.
        let agree = machine == tile || machine && !is_written;
        assert!(agree, "{isa:?}, seed {seed}: {machine} instead of {tile}\n{kernel:#?}");
    }
}
