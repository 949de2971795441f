//! Weaves runs of instructions that do not need each other.
//!
//! A processor starts instructions whose operands are known before older ones that wait, but looks ahead only as far as
//! its schedulers hold those that wait: 64 to 128 floating-point ones on an AMD Zen 4. The logarithm of a vector is a
//! chain of which each instruction waits four cycles for the one before; of the next vector's chain, written after it, too
//! little is in sight to fill them. Written in turns, the chains fill them for each other.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Inst, Value};

/// Runs with fewer instructions than this are near enough to each other as they are.
const MIN_RUN: usize = 6;

/// As many runs come from a long loop: with AVX-512, which reads a constant from memory as part of an instruction, what
/// weaving gains there is more than what constants without a register cost.
const MANY_RUNS: usize = 4;

/// Registers that values are held in.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    /// For vectors.
    vectors: usize,
    /// For vectors of runs side by side that are no constants: some more than there are cost less than what weaving
    /// gains, as the processor stores and loads while it computes.
    side_by_side: usize,
    /// For masks of runs side by side, of which general registers and the stack hold some; `None` if vectors stand for
    /// them.
    masks: Option<usize>,
}

/// How many registers values need at the same time.
#[derive(Clone, Copy)]
struct Taken {
    vectors: usize,
    masks: usize,
    constants: usize,
}

impl Registers {
    /// Of a processor with vectors of this many bytes.
    pub(super) fn of(vector_bytes: usize) -> Self {
        match vector_bytes {
            64.. => Registers { vectors: 32, side_by_side: 36, masks: Some(10) },
            _ => Registers { vectors: 16, side_by_side: 18, masks: None },
        }
    }

    /// What a mask is held in.
    pub(super) fn class_of_masks(self) -> Class {
        if self.masks.is_some() { Class::Mask } else { Class::Vector }
    }

    fn hold(self, taken: Taken) -> bool {
        taken.vectors <= self.side_by_side && self.masks.is_none_or(|masks| taken.masks <= masks)
    }

    fn hold_all(self, taken: Taken) -> bool {
        taken.vectors + taken.constants <= self.vectors
    }
}

/// Registers that are interchangeable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Vector,
    Mask,
}

/// What a value takes of the registers that runs share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// None: it is an index, or what is made of it is made otherwise.
    None,
    /// One all the time, or none: it can be read from memory wherever it is used.
    Constant,
    /// One up to its last use, wherever it is defined.
    Iteration(Class),
    /// One all the time, if it is defined before the runs.
    Loop(Class),
}

impl Need {
    /// The index of the class of which it takes a register.
    fn class(self) -> Option<usize> {
        match self {
            Need::Iteration(class) | Need::Loop(class) => Some(class as usize),
            Need::None | Need::Constant => None,
        }
    }
}

/// The order of some runs' instructions: those of each in the order in which they stand, and each after
/// those that it needs.
struct Order<'i> {
    insts: &'i [Inst],
    /// The least value that the runs define.
    first: u32,
    /// Which instruction defines each value from the first on.
    definition: Vec<Option<usize>>,
}

impl<'i> Order<'i> {
    /// `None` if there is a loop among the instructions.
    fn new(insts: &'i [Inst]) -> Option<Self> {
        if insts.iter().any(|inst| matches!(inst, Inst::Loop { .. } | Inst::While { .. })) {
            return None;
        }
        let defined = || insts.iter().filter_map(Inst::defines).map(|value| value.0);
        let (first, last) = (defined().min()?, defined().max()?);
        let mut definition = vec![None; (last - first + 1) as usize];
        for (at, inst) in insts.iter().enumerate() {
            if let Some(value) = inst.defines() {
                definition[(value.0 - first) as usize] = Some(at);
            }
        }
        Some(Order { insts, first, definition })
    }

    /// Which of the instructions defines a value.
    fn defines(&self, value: Value) -> Option<usize> {
        let index = value.0.checked_sub(self.first)?;
        self.definition.get(index as usize).copied().flatten()
    }

    /// The runs from `begins` on, the last of which ends at `end`, woven: the next instruction comes from
    /// the run of which the least part is written.
    fn woven(&self, begins: &[usize], end: usize) -> Vec<usize> {
        let ends: Vec<usize> = begins[1..].iter().copied().chain([end]).collect();
        // Nothing is written before what the runs before have read.
        let reads = |run: usize| {
            let read = |at: &usize| self.insts[*at].reads_memory();
            (begins[run]..ends[run]).rev().find(read).map_or(begins[run], |last| last + 1)
        };
        let reads: Vec<usize> = (0..begins.len()).map(reads).collect();
        let mut next = begins.to_vec();
        let mut written = vec![false; end - begins[0]];
        let mut order = Vec::with_capacity(end - begins[0]);
        while order.len() < written.len() {
            let part =
                |run: usize| (next[run] - begins[run]) as f32 / (ends[run] - begins[run]) as f32;
            let is_ready = |run: usize| {
                let inst = &self.insts[next[run]];
                let mut ready = !matches!(inst, Inst::Store { .. })
                    || (0..run).all(|before| next[before] >= reads[before]);
                inst.for_each_operand(&mut |value| {
                    let needed = self.defines(value).and_then(|at| at.checked_sub(begins[0]));
                    ready &= needed.is_none_or(|at| at >= written.len() || written[at]);
                });
                ready
            };
            let unfinished =
                (0..begins.len()).filter(|&run| next[run] < ends[run] && is_ready(run));
            // The first run that is not finished needs those before it only: one is ready.
            let run =
                unfinished.min_by(|&a, &b| part(a).total_cmp(&part(b))).expect("a run is ready");
            written[next[run] - begins[0]] = true;
            order.push(next[run]);
            next[run] += 1;
        }
        order
    }

    /// The registers that are taken at the most at any time.
    fn most_taken(&self, order: &[usize], need: &impl Fn(Value) -> Need) -> Taken {
        const NOT_HERE: usize = usize::MAX;
        let mut place = vec![NOT_HERE; self.insts.len()];
        order.iter().enumerate().for_each(|(i, &at)| place[at] = i);
        // The last use of what each instruction defines; what none uses is for what comes after them.
        let mut last = vec![None; self.insts.len()];
        let mut from_outside: FxHashMap<Value, Option<usize>> = FxHashMap::default();
        let mut constants: FxHashSet<Value> = FxHashSet::default();
        for (i, &at) in order.iter().enumerate() {
            let immediate = self.insts[at].shift_count();
            self.insts[at].for_each_operand(
                &mut |value| match (self.defines(value), need(value)) {
                    (Some(of), _) if place[of] != NOT_HERE => last[of] = Some(i),
                    (_, Need::None) => {}
                    (_, Need::Constant) if immediate == Some(value) => {}
                    (_, Need::Constant) => _ = constants.insert(value),
                    (_, Need::Iteration(_)) => _ = from_outside.insert(value, Some(i)),
                    (_, Need::Loop(_)) => _ = from_outside.insert(value, None),
                },
            );
        }
        let mut live = [0_usize; 2];
        let mut ends = vec![[0_usize; 2]; order.len()];
        for (&value, &last) in &from_outside {
            let Some(class) = need(value).class() else { continue };
            live[class] += 1;
            if let Some(last) = last {
                ends[last][class] += 1;
            }
        }
        let mut most = live;
        for (i, &at) in order.iter().enumerate() {
            for class in 0..2 {
                live[class] -= ends[i][class];
            }
            if let Some(class) = self.insts[at].defines().and_then(|value| need(value).class()) {
                live[class] += 1;
                if let Some(last) = last[at] {
                    ends[last][class] += 1;
                }
            }
            for class in 0..2 {
                most[class] = most[class].max(live[class]);
            }
        }
        Taken { vectors: most[0], masks: most[1], constants: constants.len() }
    }
}

/// Weaves the runs of instructions that begin at `begins` and end where the next one begins, the last at the
/// end of `insts`; a run may need what those before it define, and reads no memory that they write. As many
/// runs at a time as there are `registers` for; none where two take too many, or would take registers from
/// constants that now have them, unless there are [`MANY_RUNS`].
pub(super) fn weave(
    insts: &mut Vec<Inst>,
    begins: &[usize],
    need: impl Fn(Value) -> Need,
    registers: Registers,
) {
    let Some(&first) = begins.first() else { return };
    let ends = begins[1..].iter().copied().chain([insts.len()]);
    if begins.len() < 2 || begins.iter().zip(ends).any(|(&begin, end)| end - begin < MIN_RUN) {
        return;
    }
    let Some(order) = Order::new(&insts[first..]) else { return };
    let begins: Vec<usize> = begins.iter().map(|begin| begin - first).collect();
    let as_it_is: Vec<usize> = (0..order.insts.len()).collect();
    let constants_come_first = begins.len() < MANY_RUNS || registers.masks.is_none();
    let constants_have_registers =
        constants_come_first && registers.hold_all(order.most_taken(&as_it_is, &need));
    let fits = |group: &Vec<usize>| {
        let taken = order.most_taken(group, &need);
        let constants_keep_theirs = !constants_have_registers || registers.hold_all(taken);
        registers.hold(taken) && constants_keep_theirs
    };
    let mut together = begins.len();
    let woven = loop {
        let groups = begins.chunks(together).zip(1..);
        let woven: Vec<Vec<usize>> = groups
            .map(|(group, next)| {
                let end = begins.get(next * together).copied().unwrap_or(order.insts.len());
                order.woven(group, end)
            })
            .collect();
        if woven.iter().all(fits) {
            break woven.concat();
        }
        together /= 2;
        if together < 2 {
            return;
        }
    };
    let mut tail: Vec<Option<Inst>> = insts.drain(first..).map(Some).collect();
    insts.extend(woven.into_iter().filter_map(|at| tail[at].take()));
}

#[cfg(test)]
mod tests {
    use super::super::{Addr, Builder, Kernel, Mem};
    use super::*;

    /// A kernel that applies a chain of `steps` operations to each of `points` vectors of its first buffer, in a
    /// loop, and adds `outside` values from before the loop to each.
    fn chains(points: usize, steps: usize, outside: usize) -> Kernel {
        let mut b = Builder::new(16);
        let (from, to) = (b.param(1 << 16, true, false), b.param(1 << 16, false, true));
        let at = |value: Option<Value>, offset: usize, stride: i64| Addr {
            buf: from,
            offset: offset as i64,
            terms: value.map(|value| (value, 4)).into_iter().collect(),
            lane_stride: stride,
        };
        let before: Vec<Value> =
            (0..outside).map(|i| b.load(Mem::F32, at(None, 4 * i, 0), None)).collect();
        let (lo, hi) = (b.index(0), b.index(1 << 14));
        b.for_loop(lo, hi, 16 * points as i64, &[], |b, var, _| {
            let mut begins = Vec::new();
            for point in 0..points {
                begins.push(b.position());
                let mut x = b.load(Mem::F32, at(Some(var), 64 * point, 4), None);
                for _ in 0..steps {
                    x = b.mul(x, x);
                }
                for &value in &before {
                    x = b.add(x, value);
                }
                b.store(x, Mem::F32, Addr { buf: to, ..at(Some(var), 64 * point, 4) }, None);
            }
            b.weave(&begins);
            Vec::new()
        });
        b.finish()
    }

    /// Which point each multiplication of the loop is of.
    fn turns(kernel: &Kernel) -> Vec<usize> {
        let Some(Inst::Loop { body, .. }) = kernel.body.insts.last() else { panic!("a loop") };
        let mut points: FxHashMap<Value, usize> = FxHashMap::default();
        let mut turns = Vec::new();
        for inst in &body.insts {
            match inst {
                Inst::Load { dst, addr, .. } => _ = points.insert(*dst, addr.offset as usize / 64),
                Inst::Bin { dst, a, b, .. } => {
                    let point = points[a];
                    points.insert(*dst, point);
                    if a == b {
                        turns.push(point);
                    }
                }
                _ => {}
            }
        }
        turns
    }

    #[test]
    fn chains_take_turns() {
        let kernel = chains(4, 6, 0);
        kernel.check().unwrap();
        let expected: Vec<usize> = (0..6).flat_map(|_| 0..4).collect();
        assert_eq!(turns(&kernel), expected);
    }

    #[test]
    fn short_ones_stay() {
        let kernel = chains(2, 2, 0);
        kernel.check().unwrap();
        assert_eq!(turns(&kernel), [0, 0, 1, 1]);
    }

    #[test]
    fn values_from_before_the_loop_take_registers() {
        // 36 are the most for what is woven.
        let kernel = chains(2, 6, 35);
        kernel.check().unwrap();
        assert_eq!(turns(&kernel), [[0; 6], [1; 6]].concat());
        let kernel = chains(2, 6, 34);
        kernel.check().unwrap();
        assert_eq!(turns(&kernel), [0, 1].repeat(6));
    }

    #[test]
    fn as_many_as_fit_are_woven() {
        // Four chains take four registers, two take two.
        let kernel = chains(4, 6, 33);
        kernel.check().unwrap();
        assert_eq!(turns(&kernel), [[0, 1].repeat(6), [2, 3].repeat(6)].concat());
    }
}
