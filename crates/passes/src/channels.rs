//! Networks of convolutions whose arrays have their channels last inside.
//!
//! Frameworks that have channels first give positions to vectors: a window's patches are packed for each convolution,
//! and 7×7 or 13×13 positions leave lanes empty. With channels last, vectors are of outputs, tiles read the input where
//! it lies, and the kernel is packed once if it is a constant. So what depends on each other element by element or by
//! windows is put into that order together, if what that saves is more than what the transpositions at its edges take.

use helio_ir::ops::{Broadcast, Convolution, Gather, Reduce, Reshape, Transpose, WindowDim};
use helio_ir::{ArrayShape, Computation, ElementType, Error, Instr, InstrId, Module, Op, Result};
use rustc_hash::FxHashSet;

use crate::draft::{Draft, is_elementwise};
use crate::pass::PassCx;
use crate::rebuild::rebuild;
use crate::sets::Sets;
use crate::transposes::in_order;

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
        let Some(Choice { turned, follows, shuffles }) = choose(&computation) else {
            return Ok(computation);
        };
        let (draft, old) = Draft::replacing(new, computation);
        let (root, count) = (old.root, old.instrs.len());
        let mut turn = Turn {
            draft,
            turned,
            follows,
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

/// From dimensions with channels last to those with channels first: of each, which it is there. Channels are several dimensions
/// where a reshape splits them.
fn to_first(rank: usize, channels: usize) -> Vec<usize> {
    [0].into_iter().chain(1 + channels..rank).chain(1..1 + channels).collect()
}

/// The other way round.
fn to_last(rank: usize, channels: usize) -> Vec<usize> {
    [0].into_iter().chain(rank - channels..rank).chain(1..rank - channels).collect()
}

/// The array that an instruction is, if it may have channels.
fn array_with_channels(instr: &Instr) -> Option<&ArrayShape> {
    instr.shape.as_array().filter(|array| array.rank() >= 3 && array.is_static())
}

/// How an instruction goes with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Follow {
    /// How many of its operands, from the first on, have channels where it has them.
    operands: usize,
    /// The dimensions that are channels in these operands, ...
    from: usize,
    /// ... and in the result: those after the first, which is of images, and before those of positions.
    to: usize,
}

/// The most dimensions of channels.
const MOST_CHANNELS: usize = 2;

/// Which operands of an instruction have channels where it has them, and lie as it does then, if those before it go with theirs
/// as `follows` says. `None` if it takes channels first alone.
fn followed(
    computation: &Computation,
    instr: &Instr,
    follows: &[Option<Follow>],
) -> Option<Follow> {
    let array = array_with_channels(instr)?;
    let rank_of = |&id: &InstrId| {
        array_with_channels(computation.instr(id)).map_or(0, |operand| operand.rank())
    };
    let channels = |id: &InstrId| follows.get(id.index()).copied().flatten().map(|of| of.to);
    let same = |operands: usize| {
        let known = instr.operands[..operands].iter().find_map(channels);
        let channels = known.unwrap_or(1);
        Some(Follow { operands, from: channels, to: channels })
    };
    let follow = match &instr.op {
        Op::Convolution(op) => {
            let channels_first = |batch: usize, feature: usize, spatial: &[usize]| {
                (batch, feature) == (0, 1) && spatial.iter().copied().eq(2..array.rank())
            };
            let dims = &op.dims;
            (channels_first(dims.input_batch, dims.input_feature, &dims.input_spatial)
                && channels_first(dims.output_batch, dims.output_feature, &dims.output_spatial))
            .then_some(Follow { operands: 1, from: 1, to: 1 })
        }
        Op::ReduceWindow(_) if instr.operands.len() == 2 => same(1),
        Op::Pad(_) | Op::Slice(_) => same(1),
        Op::Concatenate(_) => same(instr.operands.len()),
        op if is_elementwise(op) && !instr.operands.is_empty() => same(instr.operands.len()),
        Op::Gather(op) => same(1).filter(|follow| {
            let operand = array_with_channels(computation.instr(instr.operands[0]));
            operand.is_some_and(|operand| {
                along(op, operand, array).is_some_and(|dim| dim > follow.from)
            })
        }),
        Op::Reshape(_) => {
            let operand = array_with_channels(computation.instr(instr.operands[0]))?;
            let from = channels(&instr.operands[0]).unwrap_or(1);
            let to = (1..=MOST_CHANNELS).find(|&to| keeps_parts(operand, from, array, to))?;
            return Some(Follow { operands: 1, from, to });
        }
        _ => None,
    }?;
    let is_long = follow.to < array.rank();
    let same_ranks = instr.operands[..follow.operands].iter().all(|id| rank_of(id) == array.rank());
    (is_long && same_ranks).then_some(follow)
}

/// The dimension along which a gather takes places of an array, all of the other dimensions, and which is in its place in the
/// result, as images are enlarged.
fn along(op: &Gather, from: &ArrayShape, to: &ArrayShape) -> Option<usize> {
    let (dims, rank) = (&op.dims, from.rank());
    let &[dim] = &dims.start_index_map[..] else { return None };
    let is_other = |&d: &usize| d != dim;
    let all = |d: usize| op.slice_sizes[d] == from.dims()[d];
    (to.rank() == rank
        && dims.collapsed_slice_dims[..] == [dim]
        && dims.operand_batching_dims.is_empty()
        && dims.offset_dims.iter().copied().eq((0..rank).filter(is_other))
        && (0..rank).filter(is_other).all(all))
    .then_some(dim)
}

/// Whether a reshape leaves images what they are, and puts no channel to the positions nor the other way round.
fn keeps_parts(from: &ArrayShape, channels: usize, to: &ArrayShape, new: usize) -> bool {
    let parts = |array: &ArrayShape, channels: usize| {
        let (channels, positions) = array.dims()[1..].split_at_checked(channels)?;
        let product = |sizes: &[usize]| sizes.iter().copied().fold(1, usize::saturating_mul);
        (!positions.is_empty()).then(|| [array.dims()[0], product(channels), product(positions)])
    };
    parts(from, channels).is_some_and(|parts_from| parts(to, new) == Some(parts_from))
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
    followed(computation, instr, &[])?;
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
    /// How instructions go with their operands.
    follows: Vec<Option<Follow>>,
    /// Those that mix channels.
    shuffles: Vec<Option<Shuffle>>,
}

/// Which instructions are to have channels last, if any.
fn choose(computation: &Computation) -> Option<Choice> {
    let count = computation.instrs().len();
    let mut sets = Sets::new(count);
    let mut follows: Vec<Option<Follow>> = Vec::with_capacity(count);
    let shuffles: Vec<Option<Shuffle>> =
        computation.instrs().iter().map(|instr| shuffle(computation, instr)).collect();
    // What is between the parts of one goes where these go.
    let mut is_between = vec![false; count];
    let operands = |id: InstrId| match &shuffles[id.index()] {
        Some(shuffle) => std::slice::from_ref(&shuffle.of),
        None => &computation.instr(id).operands[..],
    };
    for shuffle in shuffles.iter().flatten() {
        shuffle.between.iter().for_each(|id| is_between[id.index()] = true);
    }
    for id in computation.ids() {
        let follow = match &shuffles[id.index()] {
            Some(_) => Some(Follow { operands: 1, from: 1, to: 1 }),
            None if is_between[id.index()] => None,
            None => followed(computation, computation.instr(id), &follows),
        };
        follows.push(follow);
        let Some(follow) = follow else { continue };
        for operand in &operands(id)[..follow.operands] {
            if follows[operand.index()].is_some_and(|of| of.to == follow.from) {
                sets.join(id.index(), operand.index());
            }
        }
    }
    let mut saved = vec![0.0; count];
    // What is transposed, for which set, and the dimensions that are channels there.
    let mut transposed: FxHashSet<(InstrId, usize, usize)> = FxHashSet::default();
    for id in computation.ids().filter(|id| !is_between[id.index()]) {
        let instr = computation.instr(id);
        let set = sets.find(id.index());
        if follows[id.index()].is_some() {
            saved[set] += saved_time(computation, id).unwrap_or(0.0);
        }
        for (i, &operand) in operands(id).iter().enumerate() {
            let wanted = follows[id.index()].filter(|follow| i < follow.operands);
            let given = follows[operand.index()];
            let goes_on = |(wanted, given): (Follow, Follow)| wanted.from == given.to;
            if wanted.zip(given).is_some_and(goes_on) {
                continue;
            }
            if let Some(Follow { from, .. }) = wanted
                && (given.is_some() || !lies_either_way(computation.instr(operand), from))
            {
                transposed.insert((operand, set, from));
            }
            if let Some(Follow { to, .. }) = given
                && (wanted.is_some() || !takes_either(computation, instr, to))
            {
                transposed.insert((operand, sets.find(operand.index()), to));
            }
        }
    }
    let root = computation.root();
    if let Some(Follow { to, .. }) = follows[root.index()] {
        transposed.insert((root, sets.find(root.index()), to));
    }
    for (id, set, channels) in transposed {
        let Some(array) = array_with_channels(computation.instr(id)) else { continue };
        if moves_anything(array, channels) {
            saved[set] -= array.element_count() as f64 * TRANSPOSED;
        }
    }
    let turned: Vec<bool> =
        (0..count).map(|i| follows[i].is_some() && saved[sets.find(i)] > 0.0).collect();
    turned.contains(&true).then_some(Choice { turned, follows, shuffles })
}

/// Whether what does not follow can be had in either order at once: what is repeated, but for arrays of channels and
/// positions, and what is transposed anyway.
fn lies_either_way(instr: &Instr, channels: usize) -> bool {
    match &instr.op {
        Op::Broadcast(op) => {
            let is_channel = |dim: &usize| (1..=channels).contains(dim);
            !op.dimensions.iter().any(is_channel) || op.dimensions.iter().all(|&d| d <= channels)
        }
        Op::Transpose(_) => true,
        _ => false,
    }
}

/// Whether elements lie elsewhere in memory with channels last.
fn moves_anything(array: &ArrayShape, channels: usize) -> bool {
    let (channels, positions) = array.dims()[1..].split_at(channels);
    [channels, positions].iter().all(|sizes| sizes.iter().any(|&size| size != 1))
}

/// Whether what takes channels first can as well take them last.
fn takes_either(computation: &Computation, instr: &Instr, channels: usize) -> bool {
    match &instr.op {
        Op::Transpose(_) => true,
        Op::Reduce(op) => array_with_channels(computation.instr(instr.operands[0]))
            .is_some_and(|array| keeps_order(op, instr, array.rank(), channels)),
        _ => false,
    }
}

/// Whether what a fold leaves is in one order, wherever channels are.
fn keeps_order(op: &Reduce, instr: &Instr, rank: usize, channels: usize) -> bool {
    let stays = |d: &usize| !op.dimensions.contains(d);
    instr.operands.len() == 2 && to_first(rank, channels).into_iter().filter(stays).is_sorted()
}

/// A computation in which some instructions get channels last.
struct Turn<'m> {
    draft: Draft<'m>,
    /// Whether each of the old instructions gets channels last.
    turned: Vec<bool>,
    /// How they go with their operands.
    follows: Vec<Option<Follow>>,
    /// Those that mix channels.
    shuffles: Vec<Option<Shuffle>>,
    /// Of each that is known already, what it is made of, if that can be had in another order at once.
    sources: Vec<Option<(Op, InstrId)>>,
    /// What stands for each: with channels last if it is turned.
    map: Vec<InstrId>,
    /// The same in the other order, where somebody takes it, and the dimensions of channels in that.
    other: Vec<Option<(InstrId, usize)>>,
}

impl Turn<'_> {
    /// The dimensions of channels of an old instruction that is turned.
    fn channels(&self, id: InstrId) -> Option<usize> {
        let follow = self.follows[id.index()].filter(|_| self.turned[id.index()]);
        follow.map(|follow| follow.to)
    }

    /// What stands for an old instruction, with channels first.
    fn first(&mut self, id: InstrId) -> Result<InstrId> {
        let i = id.index();
        let Some(channels) = self.channels(id) else { return Ok(self.map[i]) };
        if let Some((known, _)) = self.other[i] {
            return Ok(known);
        }
        let permutation = to_last(self.rank(self.map[i]), channels);
        let first = self.draft.add(Transpose { permutation }, &[self.map[i]])?;
        self.other[i] = Some((first, channels));
        Ok(first)
    }

    /// What stands for an old instruction, with channels last, which are so many dimensions.
    fn last(&mut self, id: InstrId, channels: usize) -> Result<InstrId> {
        let i = id.index();
        let permutation = to_first(self.rank(self.map[i]), channels);
        match self.channels(id) {
            Some(of) if of == channels => return Ok(self.map[i]),
            Some(_) => {
                let first = self.first(id)?;
                return self.transpose(first, permutation);
            }
            None => {}
        }
        if let Some((known, of)) = self.other[i]
            && of == channels
        {
            return Ok(known);
        }
        let last = match &self.sources[i] {
            Some((Op::Broadcast(op), source)) => {
                let places = to_last(permutation.len(), channels);
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
        self.other[i] = Some((last, channels));
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

    /// The rank of an old instruction.
    fn rank_of(&self, id: InstrId) -> usize {
        self.rank(self.map[id.index()])
    }

    /// Adds what stands for the next of the old instructions.
    fn take(&mut self, mut instr: Instr) -> Result<()> {
        self.draft.stand_for(&instr);
        let old = InstrId(self.map.len() as u32);
        if let Some(follow) = self.follows[old.index()].filter(|_| self.turned[old.index()]) {
            let new = match self.shuffles[old.index()] {
                Some(shuffle) => self.shuffled(shuffle)?,
                None => self.turn(&instr, follow)?,
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
        let channels = instr.operands.first().and_then(|&operand| self.channels(operand));
        let new = match (&instr.op, channels) {
            (Op::Transpose(op), Some(channels)) => {
                let places = to_last(op.permutation.len(), channels);
                let permutation = op.permutation.iter().map(|&d| places[d]).collect();
                self.transpose(self.map[instr.operands[0].index()], permutation)?
            }
            (Op::Reduce(op), Some(channels))
                if keeps_order(op, &instr, self.rank_of(instr.operands[0]), channels) =>
            {
                let operands =
                    [self.map[instr.operands[0].index()], self.first(instr.operands[1])?];
                let places = to_last(self.rank(operands[0]), channels);
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
        let x = self.last(of, 1)?;
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
    fn turn(&mut self, instr: &Instr, follow: Follow) -> Result<InstrId> {
        let Some(array) = instr.shape.as_array() else {
            return Err(Error::internal("channels of what is no array"));
        };
        let rank = array.rank();
        let order = to_first(rank, follow.to);
        let places = to_last(rank, follow.to);
        let sizes = |sizes: &[usize]| order.iter().map(|&d| sizes[d]).collect::<Vec<_>>();
        let op: Op = match &instr.op {
            Op::Convolution(op) => {
                let mut op = Convolution::clone(op);
                (op.dims.input_feature, op.dims.output_feature) = (rank - 1, rank - 1);
                op.dims.input_spatial = (1..rank - 1).collect();
                op.dims.output_spatial = (1..rank - 1).collect();
                op.into()
            }
            Op::Reshape(_) => {
                let shape = ArrayShape::new(array.element(), sizes(array.dims()))?;
                Reshape { shape }.into()
            }
            Op::Gather(op) => {
                let mut op = Gather::clone(op);
                let dims = &mut op.dims;
                let along = dims.start_index_map.iter().map(|&d| places[d]).collect::<Vec<_>>();
                dims.offset_dims = (0..rank).filter(|d| !along.contains(d)).collect();
                dims.collapsed_slice_dims.clone_from(&along);
                dims.start_index_map = along;
                op.slice_sizes = sizes(&op.slice_sizes);
                op.into()
            }
            op => in_order(op, &order)
                .ok_or_else(|| Error::internal("channels of what goes with no order"))?,
        };
        let mut operands = Vec::with_capacity(instr.operands.len());
        for (i, &operand) in instr.operands.iter().enumerate() {
            // Initial values, fills, kernels and indices lie as they do.
            operands.push(match i < follow.operands {
                true => self.last(operand, follow.from)?,
                false => self.first(operand)?,
            });
        }
        self.draft.add(op, &operands)
    }
}
