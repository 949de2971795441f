//! Networks of convolutions whose arrays have their channels last inside.
//!
//! Frameworks that have channels first give positions to vectors: a window's patches are packed for each convolution,
//! and 7×7 or 13×13 positions leave lanes empty. With channels last, vectors are of outputs, tiles read the input where
//! it lies, and the kernel is packed once if it is a constant. So what depends on each other element by element or by
//! windows is put into that order together, if what that saves is more than what the transpositions at its edges take.

use helio_ir::ops::{
    Broadcast, Concatenate, Convolution, Pad, Reduce, ReduceWindow, Reshape, Slice, Transpose,
    Window, WindowDim,
};
use helio_ir::{ArrayShape, Computation, ElementType, Error, Instr, InstrId, Module, Op, Result};
use rustc_hash::FxHashSet;

use crate::draft::{Draft, is_elementwise};
use crate::pass::PassCx;
use crate::rebuild::rebuild;

/// Multiplications in a nanosecond: on another processor all that follows is longer or shorter.
const PER_NANOSECOND: f64 = 59.0;
/// How much longer convolutions take than their multiplications: with windows of several points and channels first, of
/// one point, and with channels last (docs/design/convolutions.md).
const OVERHEAD: [f64; 3] = [1.14, 1.08, 1.05];
/// Nanoseconds that it takes to pack an element of the patches of a window with channels first, whatever the outputs: with few of
/// these that is more than the share of multiplications in [`OVERHEAD`].
const PACKED: f64 = 0.08;
/// Nanoseconds that it takes to write an element of the result of an input with holes, with channels first: its neighbours
/// are those of another phase.
const APART: f64 = 0.5;
/// Nanoseconds that channels last take less for each multiplication of a depthwise convolution.
const DEPTHWISE: f64 = 0.008;
/// The same, for each multiplication of a convolution of larger groups.
const GROUPED: f64 = 0.002;
/// Nanoseconds that it takes to transpose an element.
const TRANSPOSED: f64 = 0.12;
/// Lanes of a vector.
const LANES: usize = 16;
/// Outputs up to which sums go along lines of the input with channels last, if what taps meet in a line fills two vectors.
const FEW_OUTPUTS: usize = 8;
/// The share of full vectors' speed that these sums have, of one output and of several.
const ALONG_LINES: [f64; 2] = [0.35, 0.6];

/// Puts channels last in what convolutions with constant kernels depend on, and in what depends on them.
pub(crate) fn put_channels_last(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let is_candidate = |computation: &Computation| {
        computation.ids().any(|id| saved_time(computation, id).is_some_and(|saved| saved > 0.0))
    };
    if !module.computations().iter().any(is_candidate) {
        return Ok(module);
    }
    rebuild(module, cx.watch, |new, computation| {
        new.count_steps(computation.instrs().len())?;
        let Some(Choice { turned, shuffles }) = choose(&computation) else {
            return Ok(computation);
        };
        let (draft, old) = Draft::replacing(new, computation);
        let (root, count) = (old.root, old.instrs.len());
        let mut turn = Turn {
            draft,
            turned,
            shuffles,
            sources: Vec::with_capacity(count),
            map: Vec::with_capacity(count),
            other: vec![None; count],
        };
        for instr in old.instrs {
            turn.take(instr)?;
        }
        let root = turn.first(root)?;
        turn.draft.finish(root)
    })
}

/// From dimensions with channels last to those with channels first: of each, which it is there.
fn to_first(rank: usize) -> Vec<usize> {
    [0].into_iter().chain(2..rank).chain([1]).collect()
}

/// The other way round.
fn to_last(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

/// The array that an instruction is, if it may have channels.
fn array_with_channels(instr: &Instr) -> Option<&ArrayShape> {
    instr.shape.as_array().filter(|array| array.rank() >= 3 && array.is_static())
}

/// Which operands of an instruction have channels where it has them, and lie as it does then. `None` if it takes
/// channels first alone.
fn followed(computation: &Computation, instr: &Instr) -> Option<usize> {
    let array = array_with_channels(instr)?;
    let rank_of = |&id: &InstrId| {
        array_with_channels(computation.instr(id)).map_or(0, |operand| operand.rank())
    };
    let followed = match &instr.op {
        Op::Convolution(op) => {
            let channels_first = |batch: usize, feature: usize, spatial: &[usize]| {
                (batch, feature) == (0, 1) && spatial.iter().copied().eq(2..array.rank())
            };
            let dims = &op.dims;
            (channels_first(dims.input_batch, dims.input_feature, &dims.input_spatial)
                && channels_first(dims.output_batch, dims.output_feature, &dims.output_spatial))
            .then_some(1)
        }
        Op::ReduceWindow(_) => (instr.operands.len() == 2).then_some(1),
        Op::Pad(_) | Op::Slice(_) => Some(1),
        Op::Concatenate(_) => Some(instr.operands.len()),
        op if is_elementwise(op) && !instr.operands.is_empty() => Some(instr.operands.len()),
        _ => None,
    }?;
    instr.operands[..followed].iter().all(|id| rank_of(id) == array.rank()).then_some(followed)
}

/// Channels that are taken for a matrix, which is transposed, as networks mix the channels of groups.
#[derive(Clone, Copy)]
struct Shuffle {
    /// What has the channels.
    of: InstrId,
    /// The rows of the matrix.
    rows: usize,
    /// The reshape and the transpose between that and the result.
    between: [InstrId; 2],
}

/// Whether an instruction is the last of those that mix channels: reshape(transpose(reshape(x))).
fn shuffle(computation: &Computation, instr: &Instr) -> Option<Shuffle> {
    let sizes = |id: InstrId| Some(computation.instr(id).shape.as_array()?.dims());
    let (Op::Reshape(_), &[transposed]) = (&instr.op, &instr.operands[..]) else { return None };
    let (Op::Transpose(transpose), &[split]) =
        (&computation.instr(transposed).op, &computation.instr(transposed).operands[..])
    else {
        return None;
    };
    let (Op::Reshape(_), &[of]) =
        (&computation.instr(split).op, &computation.instr(split).operands[..])
    else {
        return None;
    };
    let array = array_with_channels(instr)?;
    let (dims, rank) = (array.dims(), array.rank());
    let &[images, rows, columns, ref positions @ ..] = sizes(split)? else { return None };
    let is_swap = transpose.permutation.iter().copied().eq([0, 2, 1].into_iter().chain(3..=rank));
    let is_matrix =
        (images, positions) == (dims[0], &dims[2..]) && rows.checked_mul(columns) == Some(dims[1]);
    (is_swap && is_matrix && sizes(of)? == dims).then_some(Shuffle {
        of,
        rows,
        between: [split, transposed],
    })
}

/// Whether an instruction's value is known when it is compiled, and no more than moved.
fn is_constant(computation: &Computation, mut id: InstrId) -> bool {
    loop {
        let instr = computation.instr(id);
        match &instr.op {
            Op::Constant(_) => return true,
            Op::Reshape(_) | Op::Transpose(_) => id = instr.operands[0],
            _ => return false,
        }
    }
}

/// The nanoseconds that a convolution with channels first would take less with channels last. `None` if it is none.
fn saved_time(computation: &Computation, id: InstrId) -> Option<f64> {
    let instr = computation.instr(id);
    let Op::Convolution(op) = &instr.op else { return None };
    followed(computation, instr)?;
    let (array, kernel) = (instr.shape.as_array()?, computation.instr(instr.operands[1]));
    let kernel = kernel.shape.as_array()?;
    let outputs = kernel.dims()[op.dims.kernel_output_feature];
    // (Of empty arrays, products of sizes may be more than memory has.)
    let product = |sizes: &mut dyn Iterator<Item = usize>| sizes.fold(1, usize::saturating_mul);
    let taps = product(&mut op.dims.kernel_spatial.iter().map(|&d| kernel.dims()[d]));
    let features = kernel.dims()[op.dims.kernel_input_feature];
    // Of an input with holes, taps meet as much less.
    let holes = product(&mut op.window.dims.iter().map(|dim| dim.base_dilation.max(1)));
    let products = array.element_count() as f64 * features as f64 * taps as f64 / holes as f64;
    let is_f32 = array.element() == ElementType::F32;
    if op.feature_group_count > 1 {
        let is_depthwise = features == 1 && outputs == op.feature_group_count;
        return Some(match (is_depthwise, is_f32) {
            (true, _) => products * DEPTHWISE,
            (false, true) => products * GROUPED,
            (false, false) => 0.0,
        });
    }
    if op.batch_group_count > 1 || !is_f32 || !is_constant(computation, instr.operands[1]) {
        return Some(0.0);
    }
    let time = products / PER_NANOSECOND;
    let filled = |count: usize| count as f64 / (count.div_ceil(LANES) as f64 * LANES as f64);
    let positions = product(&mut array.dims()[2..].iter().copied());
    let [window, point, last] = OVERHEAD;
    let packed = last + PACKED * PER_NANOSECOND / outputs as f64;
    let first = if taps > 1 { window.max(packed) } else { point };
    let apart = if holes > 1 { array.element_count() as f64 * APART } else { 0.0 };
    let met = |(&d, dim): (&usize, &WindowDim)| kernel.dims()[d] / dim.base_dilation.max(1);
    let line = op.dims.kernel_spatial.iter().zip(&op.window.dims).next_back().map_or(1, met);
    let filled_last = match outputs {
        1..=FEW_OUTPUTS if features.saturating_mul(line) >= 2 * LANES => {
            ALONG_LINES[usize::from(outputs > 1)]
        }
        _ => filled(outputs),
    };
    Some(time * (first / filled(positions) - last / filled_last) + apart)
}

/// Which instructions are to have channels last.
struct Choice {
    turned: Vec<bool>,
    /// Those that mix channels.
    shuffles: Vec<Option<Shuffle>>,
}

/// Which instructions are to have channels last, if any.
fn choose(computation: &Computation) -> Option<Choice> {
    let count = computation.instrs().len();
    let mut sets = Sets::new(count);
    let mut follows = vec![0; count];
    let shuffles: Vec<Option<Shuffle>> =
        computation.instrs().iter().map(|instr| shuffle(computation, instr)).collect();
    // What is between the parts of one goes where these go.
    let mut is_between = vec![false; count];
    let operands = |id: InstrId| match &shuffles[id.index()] {
        Some(shuffle) => std::slice::from_ref(&shuffle.of),
        None => &computation.instr(id).operands[..],
    };
    for id in computation.ids() {
        let followed = match &shuffles[id.index()] {
            Some(shuffle) => {
                shuffle.between.iter().for_each(|id| is_between[id.index()] = true);
                Some(1)
            }
            None => followed(computation, computation.instr(id)),
        };
        let Some(followed) = followed else { continue };
        follows[id.index()] = followed;
        for operand in operands(id)[..followed].iter().filter(|id| follows[id.index()] > 0) {
            sets.join(id.index(), operand.index());
        }
    }
    let mut saved = vec![0.0; count];
    // What is transposed, for which set.
    let mut transposed: FxHashSet<(InstrId, usize)> = FxHashSet::default();
    for id in computation.ids().filter(|id| !is_between[id.index()]) {
        let instr = computation.instr(id);
        let followed = follows[id.index()];
        let set = sets.find(id.index());
        if followed > 0 {
            saved[set] += saved_time(computation, id).unwrap_or(0.0);
        }
        for (i, &operand) in operands(id).iter().enumerate() {
            let edge = match (i < followed, follows[operand.index()] > 0) {
                (true, false) if !lies_either_way(computation.instr(operand)) => set,
                (false, true) if !takes_either(computation, instr) => sets.find(operand.index()),
                _ => continue,
            };
            transposed.insert((operand, edge));
        }
    }
    let root = computation.root();
    if follows[root.index()] > 0 {
        transposed.insert((root, sets.find(root.index())));
    }
    for (id, set) in transposed {
        let Some(array) = array_with_channels(computation.instr(id)) else { continue };
        if moves_anything(array) {
            saved[set] -= array.element_count() as f64 * TRANSPOSED;
        }
    }
    let turned: Vec<bool> =
        (0..count).map(|i| follows[i] > 0 && saved[sets.find(i)] > 0.0).collect();
    turned.contains(&true).then_some(Choice { turned, shuffles })
}

/// Whether what does not follow can be had in either order at once: what is repeated, but for arrays of channels and
/// positions, and what is transposed anyway.
fn lies_either_way(instr: &Instr) -> bool {
    match &instr.op {
        Op::Broadcast(op) => {
            !op.dimensions.contains(&1) || op.dimensions.iter().all(|&dim| dim < 2)
        }
        Op::Transpose(_) => true,
        _ => false,
    }
}

/// Whether elements lie elsewhere in memory with channels last.
fn moves_anything(array: &ArrayShape) -> bool {
    array.dims()[1] != 1 && array.dims()[2..].iter().any(|&size| size != 1)
}

/// Whether what takes channels first can as well take them last.
fn takes_either(computation: &Computation, instr: &Instr) -> bool {
    match &instr.op {
        Op::Transpose(_) => true,
        Op::Reduce(op) => array_with_channels(computation.instr(instr.operands[0]))
            .is_some_and(|array| keeps_order(op, instr, array.rank())),
        _ => false,
    }
}

/// Whether what a fold leaves is in one order, wherever channels are.
fn keeps_order(op: &Reduce, instr: &Instr, rank: usize) -> bool {
    let stays = |d: &usize| !op.dimensions.contains(d);
    instr.operands.len() == 2 && to_first(rank).into_iter().filter(stays).is_sorted()
}

/// Disjoint sets.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Self {
        Sets((0..count).collect())
    }

    /// The set that has an element, by one of its elements.
    fn find(&mut self, mut element: usize) -> usize {
        while self.0[element] != element {
            self.0[element] = self.0[self.0[element]];
            element = self.0[element];
        }
        element
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        // The earlier one stands for both: chains are as short as what is walked in order makes them.
        self.0[a.max(b)] = a.min(b);
    }
}

/// A computation in which some instructions get channels last.
struct Turn<'m> {
    draft: Draft<'m>,
    /// Whether each of the old instructions gets channels last.
    turned: Vec<bool>,
    /// Those that mix channels.
    shuffles: Vec<Option<Shuffle>>,
    /// Of each that is known already, what it is made of, if that can be had in another order at once.
    sources: Vec<Option<(Op, InstrId)>>,
    /// What stands for each: with channels last if it is turned.
    map: Vec<InstrId>,
    /// The same in the other order, where somebody takes it.
    other: Vec<Option<InstrId>>,
}

impl Turn<'_> {
    /// What stands for an old instruction, with channels first.
    fn first(&mut self, id: InstrId) -> Result<InstrId> {
        let i = id.index();
        if !self.turned[i] {
            return Ok(self.map[i]);
        }
        if let Some(known) = self.other[i] {
            return Ok(known);
        }
        let permutation = to_last(self.rank(self.map[i]));
        let first = self.draft.add(Transpose { permutation }, &[self.map[i]])?;
        self.other[i] = Some(first);
        Ok(first)
    }

    /// What stands for an old instruction, with channels last.
    fn last(&mut self, id: InstrId) -> Result<InstrId> {
        let i = id.index();
        if self.turned[i] {
            return Ok(self.map[i]);
        }
        if let Some(known) = self.other[i] {
            return Ok(known);
        }
        let permutation = to_first(self.rank(self.map[i]));
        let last = match &self.sources[i] {
            Some((Op::Broadcast(op), source)) => {
                let places = to_last(permutation.len());
                let dimensions = op.dimensions.iter().map(|&d| places[d]).collect();
                let dims = permutation.iter().map(|&d| op.shape.dims()[d]).collect::<Vec<_>>();
                let shape = ArrayShape::new(op.shape.element(), dims)?;
                self.draft.add(Broadcast { shape, dimensions }, &[*source])?
            }
            Some((Op::Transpose(op), source)) => {
                let permutation = permutation.iter().map(|&d| op.permutation[d]).collect();
                self.transpose(*source, permutation)?
            }
            _ => self.transpose(self.map[i], permutation)?,
        };
        self.other[i] = Some(last);
        Ok(last)
    }

    fn transpose(&mut self, id: InstrId, permutation: Vec<usize>) -> Result<InstrId> {
        match permutation.is_sorted() {
            true => Ok(id),
            false => self.draft.add(Transpose { permutation }, &[id]),
        }
    }

    fn rank(&self, id: InstrId) -> usize {
        self.draft.array(id).map_or(0, ArrayShape::rank)
    }

    /// Adds what stands for the next of the old instructions.
    fn take(&mut self, mut instr: Instr) -> Result<()> {
        self.draft.stand_for(&instr);
        let old = InstrId(self.map.len() as u32);
        if self.turned[old.index()] {
            let new = match self.shuffles[old.index()] {
                Some(shuffle) => self.shuffled(shuffle)?,
                None => self.turn(&instr)?,
            };
            // It is about dimensions in their old order, and what it asks for was done before.
            if let Some(extra) = &mut instr.extra {
                extra.sharding = None;
            }
            self.draft.name(new, instr);
            self.map.push(new);
            self.sources.push(None);
            return Ok(());
        }
        let mut source = None;
        let new = match &instr.op {
            Op::Transpose(op) if self.turned[instr.operands[0].index()] => {
                let places = to_last(op.permutation.len());
                let permutation = op.permutation.iter().map(|&d| places[d]).collect();
                let operand = self.last(instr.operands[0])?;
                self.transpose(operand, permutation)?
            }
            Op::Reduce(op)
                if self.turned[instr.operands[0].index()]
                    && keeps_order(op, &instr, self.rank(self.map[instr.operands[0].index()])) =>
            {
                let operands = [self.last(instr.operands[0])?, self.first(instr.operands[1])?];
                let places = to_last(self.rank(operands[0]));
                let mut dimensions: Vec<usize> = op.dimensions.iter().map(|&d| places[d]).collect();
                dimensions.sort_unstable();
                let new =
                    self.draft.add(Reduce { dimensions, to_apply: op.to_apply }, &operands)?;
                self.draft.name(new, instr);
                new
            }
            _ => {
                let mut operands = Vec::with_capacity(instr.operands.len());
                for &operand in &instr.operands {
                    operands.push(self.first(operand)?);
                }
                if let (Op::Broadcast(_) | Op::Transpose(_), Some(&operand)) =
                    (&instr.op, operands.first())
                {
                    source = Some((instr.op.clone(), operand));
                }
                // (What it waits for may as well be in the other order.)
                crate::draft::renumber(&mut instr, &self.map);
                instr.operands.copy_from_slice(&operands);
                self.draft.push(instr)
            }
        };
        self.map.push(new);
        self.sources.push(source);
        Ok(())
    }

    /// Adds what mixes channels, with channels last.
    fn shuffled(&mut self, Shuffle { of, rows, .. }: Shuffle) -> Result<InstrId> {
        let x = self.last(of)?;
        let array = self.draft.array(x).cloned();
        let array = array.ok_or_else(|| Error::internal("channels of what is no array"))?;
        let last = array.rank() - 1;
        let mut split = array.dims().to_vec();
        let columns = split[last] / rows.max(1);
        split.splice(last.., [rows, columns]);
        let shape = ArrayShape::new(array.element(), split)?;
        let split = self.draft.add(Reshape { shape }, &[x])?;
        let permutation = (0..last).chain([last + 1, last]).collect();
        let swapped = self.draft.add(Transpose { permutation }, &[split])?;
        self.draft.add(Reshape { shape: array.without_layout() }, &[swapped])
    }

    /// Adds an instruction with channels last.
    fn turn(&mut self, instr: &Instr) -> Result<InstrId> {
        let rank = instr.shape.as_array().map_or(0, ArrayShape::rank);
        let order = to_first(rank);
        let places = to_last(rank);
        let window =
            |window: &Window| Window { dims: order.iter().map(|&d| window.dims[d]).collect() };
        let sizes = |sizes: &[usize]| order.iter().map(|&d| sizes[d]).collect::<Vec<_>>();
        let op: Op = match &instr.op {
            Op::Convolution(op) => {
                let mut op = Convolution::clone(op);
                (op.dims.input_feature, op.dims.output_feature) = (rank - 1, rank - 1);
                op.dims.input_spatial = (1..rank - 1).collect();
                op.dims.output_spatial = (1..rank - 1).collect();
                op.into()
            }
            Op::ReduceWindow(op) => {
                ReduceWindow { window: window(&op.window), to_apply: op.to_apply }.into()
            }
            Op::Pad(op) => Pad { dims: order.iter().map(|&d| op.dims[d]).collect() }.into(),
            Op::Slice(op) => Slice {
                starts: sizes(&op.starts),
                limits: sizes(&op.limits),
                strides: sizes(&op.strides),
            }
            .into(),
            Op::Concatenate(op) => Concatenate { dimension: places[op.dimension] }.into(),
            op => op.clone(),
        };
        let mut operands = Vec::with_capacity(instr.operands.len());
        for (i, &operand) in instr.operands.iter().enumerate() {
            // Initial values, fills and kernels lie as they do.
            let follows = match &instr.op {
                Op::Convolution(_) | Op::ReduceWindow(_) | Op::Pad(_) => i == 0,
                _ => true,
            };
            operands.push(if follows { self.last(operand)? } else { self.first(operand)? });
        }
        self.draft.add(op, &operands)
    }
}
