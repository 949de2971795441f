//! Columns of the same rows, which are read and written as whole vectors.
//!
//! What is in `n` registers comes to be in `n` others by permutations of two registers each. In a tree over the registers,
//! a node has the elements of those below it that a run of the others wants, as long a run as fills a register: two columns
//! for the first half of memory and for the second, four for each quarter, and so on. So `n` columns take about `n log n`
//! permutations, where each on its own takes `n`.

use std::ops::Range;

use helio_ir::Result;

use super::Select;
use super::address::displacement;
use crate::kernel::{
    Block, Inst as K, Lane, LoadedColumns, Mem, Value, loaded_columns, stored_columns,
};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Inst, Reg, VectorInst};
use crate::x86::ops;

/// Elements so many apart are permuted from as many vectors, for each column alone; others are gathered.
const MAX_PERMUTED: usize = 8;
/// What a gather takes for each lane, in steps of a network (`docs/design/fusion.md`).
const GATHER_STEPS: f64 = 3.1;

/// What it takes to find out which elements of a vector are of rows that are on, in steps of a network: a permutation and a
/// comparison.
const STEPS_OF_A_MASK: f64 = 2.0;

/// Which rows, one for each lane, are accessed.
enum RowsOn {
    /// The first as the lowest bit.
    Known(u16),
    /// All bits of their lanes are set, and none of the others.
    Vector(Reg),
}

/// Which elements of a vector are accessed.
enum Accessed {
    None,
    Some(Reg),
    All,
}

/// Which register an element is in, by number, and its lane there.
type Place = (usize, usize);

/// A register on the way, and where the element in each of its lanes came from.
#[derive(Clone)]
struct Stage {
    reg: Reg,
    places: Vec<Place>,
}

/// What permutations are to make of registers.
struct Network<'n> {
    lane: Lane,
    sources: &'n [Reg],
    /// For each register that is wanted, the place of each lane's element.
    wanted: &'n [Vec<Place>],
    /// For each source, how many of its elements each register that is wanted needs.
    counts: Vec<Vec<usize>>,
}

impl<'n> Network<'n> {
    fn new(lane: Lane, sources: &'n [Reg], wanted: &'n [Vec<Place>]) -> Self {
        let mut counts = vec![vec![0; wanted.len()]; sources.len()];
        for (n, places) in wanted.iter().enumerate() {
            places.iter().for_each(|&(source, _)| counts[source][n] += 1);
        }
        Network { lane, sources, wanted, counts }
    }

    /// How many elements of some of the sources a run of what is wanted needs.
    fn count(&self, sources: &Range<usize>, run: &Range<usize>) -> usize {
        self.counts[sources.clone()].iter().flat_map(|counts| &counts[run.clone()]).sum()
    }

    /// These elements, in the order in which they are wanted.
    fn needed(&self, sources: &Range<usize>, run: &Range<usize>) -> Vec<Place> {
        let wanted = self.wanted[run.clone()].iter().flatten();
        wanted.filter(|(source, _)| sources.contains(source)).copied().collect()
    }

    /// Runs side by side joined as long as a register holds what they need of some of the sources.
    fn joined(
        &self,
        sources: &Range<usize>,
        runs: &[Range<usize>],
        lanes: usize,
    ) -> Vec<Range<usize>> {
        let mut joined: Vec<Range<usize>> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if self.count(sources, &(last.start..run.end)) <= lanes => {
                    last.end = run.end;
                }
                _ => joined.push(run.clone()),
            }
        }
        joined
    }
}

impl Select<'_> {
    /// A block's instructions.
    pub(super) fn block(&mut self, block: &Block) -> Result<()> {
        let mut loads = loaded_columns(&block.insts);
        loads.sort_by_key(|columns| std::cmp::Reverse(columns.first));
        let mut at = 0;
        while let Some(inst) = block.insts.get(at) {
            while let Some(columns) = loads.pop_if(|columns| columns.first == at) {
                self.load_columns(&columns);
            }
            let count = stored_columns(&block.insts[at..]);
            let stores = count.map(|count| &block.insts[at..at + count]);
            match stores.filter(|stores| self.store_columns(stores)) {
                Some(stores) => at += stores.len(),
                None => {
                    self.inst(inst)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Whether there are permutations of two vectors.
    fn permutes_pairs(&self, lane: Lane) -> bool {
        match self.isa {
            Isa::Avx512 => self.len(lane) > Len::X,
            Isa::Avx2 => self.len(lane) == Len::Y,
        }
    }

    /// Reads columns before the first of them is needed, unless others are as fast; see [`Select::read_ahead`].
    fn load_columns(&mut self, loaded: &LoadedColumns) {
        let &LoadedColumns { ref addr, mem, mask, ref columns, .. } = loaded;
        let (lane, lanes) = (mem.lane(), self.kernel.lanes);
        let mask = self.access_mask(mask);
        let Some(&(_, last)) = columns.last() else { return };
        let apart = (addr.lane_stride / mem.bytes() as i64) as usize;
        // From the first element that is wanted to the last.
        let elements = (lanes - 1) * apart + last + 1;
        let is_full = self.has_all(mask);
        // Small elements of two vectors are found in them at once.
        let are_small = mem.bytes() < 4 && self.isa == Isa::Avx512;
        let in_two = is_full && are_small && elements * mem.bytes() <= 2 * self.len(lane).bytes();
        // Of few columns of long rows, most of what is read would be in vain.
        let count = columns.len() as f64;
        let mask_steps = if self.known_lanes(mask).is_some() { 0.0 } else { STEPS_OF_A_MASK };
        let steps = apart as f64 * (1.0 + count.log2() + mask_steps);
        let are_few = apart > MAX_PERMUTED && steps > GATHER_STEPS * lanes as f64 * count;
        if !(is_full || self.isa == Isa::Avx512)
            || !self.permutes_pairs(lane)
            || in_two
            || are_few
            || displacement((elements * mem.bytes()) as i64).is_none()
        {
            return;
        }
        let at = self.address(addr);
        // The last vector ends where the elements do.
        let starts: Vec<usize> =
            (0..elements).step_by(lanes).map(|start| start.min(elements - lanes)).collect();
        let on = mask.filter(|_| !is_full).map(|mask| self.rows_on(mask, lane));
        let mut sources = Vec::with_capacity(starts.len());
        for &start in &starts {
            let at = at.plus((start * mem.bytes()) as i32);
            let row = |l: usize| Some((start + l) / apart).filter(|_| (start + l) % apart <= last);
            let mask = match &on {
                Some(on) => self.mask_of_rows(on, lane, row),
                None => Accessed::All,
            };
            sources.push(self.source(lane, mem, at, mask));
        }
        let place = |element: usize| {
            let source = element / lanes;
            (source, element - starts[source])
        };
        let wanted: Vec<Vec<Place>> = columns
            .iter()
            .map(|&(_, column)| (0..lanes).map(|l| place(l * apart + column)).collect())
            .collect();
        let made = self.network(&Network::new(lane, &sources, &wanted));
        for (&(value, _), reg) in columns.iter().zip(made) {
            self.read_ahead.insert(value, reg);
        }
    }

    /// Writes columns that are stored one after the other; whether it was done.
    fn store_columns(&mut self, stores: &[K]) -> bool {
        let Some(K::Store { mem, addr, mask, .. }) = stores.first() else { return false };
        let (lane, lanes, mem) = (mem.lane(), self.kernel.lanes, *mem);
        let mask = self.access_mask(*mask);
        let is_full = self.has_all(mask);
        let bytes = lanes * mem.bytes();
        if !(is_full || self.isa == Isa::Avx512)
            || !self.permutes_pairs(lane)
            || displacement((stores.len() * bytes) as i64).is_none()
        {
            return false;
        }
        let value = |store: &K| match store {
            K::Store { src, .. } => Some(*src),
            _ => None,
        };
        let values: Vec<Value> = stores.iter().filter_map(value).collect();
        let sources: Vec<Reg> = values.into_iter().map(|value| self.reg(value)).collect();
        let count = sources.len();
        let place = |element: usize| (element % count, element / count);
        let wanted: Vec<Vec<Place>> =
            (0..count).map(|n| (0..lanes).map(|l| place(n * lanes + l)).collect()).collect();
        let at = self.address(addr);
        let past = is_full && self.goes_past(addr, bytes);
        let on = mask.filter(|_| !is_full).map(|mask| self.rows_on(mask, lane));
        let made = self.network(&Network::new(lane, &sources, &wanted));
        for (n, reg) in made.into_iter().enumerate() {
            let mask = match &on {
                Some(on) => self.mask_of_rows(on, lane, |l| Some((n * lanes + l) / count)),
                None => Accessed::All,
            };
            let at = at.plus((n * bytes) as i32);
            match mask {
                Accessed::All => self.contiguous_store(reg, mem, at, None, past),
                Accessed::Some(mask) => self.contiguous_store(reg, mem, at, Some(mask), false),
                Accessed::None => {}
            }
        }
        true
    }

    /// Whether an access is of all lanes.
    fn has_all(&self, mask: Option<Reg>) -> bool {
        self.known_lanes(mask) == self.known_lanes(None)
    }

    /// What a mask says of rows, one for each lane.
    fn rows_on(&mut self, mask: Reg, lane: Lane) -> RowsOn {
        if let Some(on) = self.known_lanes(Some(mask)) {
            return RowsOn::Known(on);
        }
        let ones = self.bits(lane, u64::MAX);
        let (op, len, dst) =
            (ops::mov(lane.bytes() == 8), self.len(lane), self.vector(self.len(lane)));
        let (a, b, zero, imm) = (Reg::NONE, ones.into(), true, None);
        self.push(Inst::Vector(VectorInst { op, len, dst, a, b, mask, zero, imm }));
        RowsOn::Vector(dst)
    }

    /// The elements in a vector that are of rows which are on; `row` says of which row each is, if it is accessed at all.
    fn mask_of_rows(
        &mut self,
        on: &RowsOn,
        lane: Lane,
        row: impl Fn(usize) -> Option<usize>,
    ) -> Accessed {
        let lanes = self.kernel.lanes;
        match *on {
            RowsOn::Known(on) => {
                let is_on = |l: &usize| row(*l).is_some_and(|row| on >> row & 1 == 1);
                let elements = (0..lanes).filter(is_on).fold(0, |bits, l| bits | 1 << l);
                let mask = self.mask_of(elements);
                match elements {
                    0 => Accessed::None,
                    _ if self.has_all(Some(mask)) => Accessed::All,
                    _ => Accessed::Some(mask),
                }
            }
            RowsOn::Vector(on) => {
                let spread = self.permuted(lane, on.into(), |l| row(l).unwrap_or(0));
                let wanted = self.lanes_of(lane, |l| if row(l).is_some() { -1 } else { 0 });
                let mask = self.mask_reg();
                let test = ops::test(true, lane.bytes() == 8);
                self.op2(test, self.len(lane), mask, spread, wanted);
                Accessed::Some(mask)
            }
        }
    }

    /// Elements side by side; those that are not read are zero.
    fn source(&mut self, lane: Lane, mem: Mem, at: Address, accessed: Accessed) -> Reg {
        let mask = match accessed {
            Accessed::None => return self.bits(lane, 0),
            Accessed::Some(mask) => mask,
            Accessed::All => {
                let source = self.vector(self.len(lane));
                self.load_to(source, mem, at);
                return source;
            }
        };
        self.load_some(mem, at, mask)
    }

    /// The registers that are wanted.
    fn network(&mut self, network: &Network<'_>) -> Vec<Reg> {
        let runs: Vec<Range<usize>> = (0..network.wanted.len()).map(|n| n..n + 1).collect();
        let all = 0..network.sources.len();
        let made = self.stages(network, &all, &runs, true);
        made.into_iter().map(|stage| stage.reg).collect()
    }

    /// What a run of what is wanted needs of some of the sources, for each run; with `is_last`, each element in the lane
    /// where it is wanted.
    fn stages(
        &mut self,
        network: &Network<'_>,
        sources: &Range<usize>,
        runs: &[Range<usize>],
        is_last: bool,
    ) -> Vec<Stage> {
        let lanes = self.kernel.lanes;
        if sources.len() == 1 {
            let reg = network.sources[sources.start];
            let stage = Stage { reg, places: (0..lanes).map(|l| (sources.start, l)).collect() };
            return runs
                .iter()
                .map(|run| match is_last {
                    true => {
                        self.stage(network.lane, [Some(&stage), None], network.needed(sources, run))
                    }
                    false => stage.clone(),
                })
                .collect();
        }
        let middle = sources.start + sources.len().div_ceil(2);
        let [low, high] = [sources.start..middle, middle..sources.end].map(|half| {
            let joined = network.joined(&half, runs, lanes);
            let made = self.stages(network, &half, &joined, false);
            (half, joined, made)
        });
        let of_half = |(half, joined, made): &(Range<usize>, Vec<Range<usize>>, Vec<Stage>),
                       run: &Range<usize>| {
            let at =
                joined.iter().position(|joined| joined.start <= run.start && run.end <= joined.end);
            let is_needed = network.count(half, run) > 0;
            at.filter(|_| is_needed).map(|at| made[at].clone())
        };
        let mut made = Vec::with_capacity(runs.len());
        for run in runs {
            let halves = [of_half(&low, run), of_half(&high, run)];
            made.push(match &halves {
                [Some(one), None] | [None, Some(one)] if !is_last => one.clone(),
                [low, high] => {
                    let needed = network.needed(sources, run);
                    self.stage(network.lane, [low.as_ref(), high.as_ref()], needed)
                }
            });
        }
        made
    }

    /// Elements of one or two registers, in the order given.
    fn stage(&mut self, lane: Lane, parts: [Option<&Stage>; 2], places: Vec<Place>) -> Stage {
        let (lanes, len) = (self.kernel.lanes, self.len(lane));
        // The part that has the element of a lane, and where; none where no element is wanted.
        let from = |l: usize| {
            let place = places.get(l)?;
            let find = |part: usize| parts[part]?.places.iter().position(|there| there == place);
            (0..2).find_map(|part| Some((part, find(part)?)))
        };
        let reg = match parts {
            [Some(low), Some(high)] if self.isa == Isa::Avx512 => {
                let index = self.lanes_of(lane, |l| match from(l) {
                    Some((part, at)) => (part * lanes + at) as i64,
                    None => l as i64,
                });
                let dst = self.vector(len);
                let op = ops::permute_pair(lane.bytes() == 8);
                let (tied, a, b) = (low.reg, index, high.reg);
                self.push(Inst::Tied { op, len, dst, tied, a, b, imm: None });
                dst
            }
            [Some(low), Some(high)] => {
                let [low, high] = [(0, low), (1, high)].map(|(n, part)| {
                    let at = |l: usize| from(l).filter(|&(part, _)| part == n);
                    self.permuted(lane, part.reg.into(), |l| at(l).map_or(l, |(_, at)| at))
                });
                let is_high = |l: &usize| from(*l).is_some_and(|(part, _)| part == 1);
                let which = (0..lanes).filter(is_high).fold(0, |bits, l| bits | 1 << l);
                let dst = self.vector(len);
                self.op2_imm(ops::blend_fixed(lane.bytes() == 8), len, dst, low, high, which);
                dst
            }
            [Some(one), None] | [None, Some(one)] => {
                self.permuted(lane, one.reg.into(), |l| from(l).map_or(l, |(_, at)| at))
            }
            [None, None] => self.bits(lane, 0),
        };
        Stage { reg, places }
    }
}
