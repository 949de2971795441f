//! Parts of a computation that stand between transposes, in the order of what they are made of.
//!
//! What is written for the rows of a matrix is done for its columns by transposing it before and after: a derivative along
//! the other axis, a function that `vmap` applies along an inner dimension. Between the two, slices and padding cut other
//! dimensions than those of the array in memory, and every element is read from rows that lie apart, twice. So instructions
//! that go with the order of their operands, which are connected to each other, take the other order together, if more elements are
//! transposed at their edges now than would be then.

use helio_ir::ops::{Concatenate, Pad, ReduceWindow, Reverse, Slice, Transpose, Window};
use helio_ir::{ArrayShape, Computation, Error, Instr, InstrId, Module, Op, Result};
use rustc_hash::FxHashMap;

use crate::draft::{Draft, is_elementwise, renumber};
use crate::pass::PassCx;
use crate::rebuild::rebuild;
use crate::sets::Sets;

/// Lanes of a vector: shorter rows are not what slices, padding and windows should be left with.
const LANES: usize = 16;

/// Takes away transposes around what goes as well with the order of its operands.
pub(crate) fn cancel_transposes(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let has_transposes = |computation: &Computation| {
        computation.instrs().iter().any(|instr| matches!(instr.op, Op::Transpose(_)))
    };
    if !module.computations().iter().any(has_transposes) {
        return Ok(module);
    }
    rebuild(module, cx.watch, |new, computation| {
        new.count_steps(computation.instrs().len())?;
        let orders = choose(&computation);
        if orders.iter().all(Option::is_none) {
            return Ok(computation);
        }
        let (draft, old) = Draft::replacing(new, computation);
        let (root, count) = (old.root, old.instrs.len());
        let mut turn = Turn {
            draft,
            orders,
            map: Vec::with_capacity(count),
            transposed: FxHashMap::default(),
        };
        for instr in old.instrs {
            turn.take(instr)?;
        }
        let root = turn.plain(root)?;
        turn.draft.finish(root)
    })
}

/// For each dimension of an array in a new order, which it is of the old one.
type Order = Vec<usize>;

/// For each dimension of what is transposed, which it is of the result: the order in which that is as it was.
pub(crate) fn inverse(permutation: &[usize]) -> Order {
    let mut inverse = vec![0; permutation.len()];
    for (to, &from) in permutation.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}

/// The array that an instruction is, if it may be transposed.
fn array_of(instr: &Instr) -> Option<&ArrayShape> {
    instr.shape.as_array().filter(|array| array.rank() >= 2 && array.is_static())
}

/// How many operands, from the first on, an operation takes in the order of its result; zero if its order is its own.
fn operands_in_order(instr: &Instr) -> usize {
    match &instr.op {
        Op::Pad(_) | Op::Slice(_) | Op::Reverse(_) => 1,
        Op::ReduceWindow(_) if instr.operands.len() == 2 => 1,
        Op::Concatenate(_) => instr.operands.len(),
        op if is_elementwise(op) => instr.operands.len(),
        _ => 0,
    }
}

/// An operation on operands whose dimensions are in another order, if it goes with any.
pub(crate) fn in_order(op: &Op, order: &[usize]) -> Option<Op> {
    let sizes = |sizes: &[usize]| order.iter().map(|&d| sizes[d]).collect::<Vec<_>>();
    Some(match op {
        Op::Pad(op) => Pad { dims: order.iter().map(|&d| op.dims[d]).collect() }.into(),
        Op::Slice(op) => Slice {
            starts: sizes(&op.starts),
            limits: sizes(&op.limits),
            strides: sizes(&op.strides),
        }
        .into(),
        Op::Reverse(op) => {
            let places = inverse(order);
            Reverse { dimensions: op.dimensions.iter().map(|&d| places[d]).collect() }.into()
        }
        Op::ReduceWindow(op) => {
            let dims = order.iter().map(|&d| op.window.dims[d]).collect();
            ReduceWindow { window: Window { dims }, to_apply: op.to_apply }.into()
        }
        Op::Concatenate(op) => Concatenate { dimension: inverse(order)[op.dimension] }.into(),
        op if is_elementwise(op) => op.clone(),
        _ => return None,
    })
}

/// How many operands of an instruction, from the first on, lie as its result does, and are arrays of its rank.
fn followed(computation: &Computation, instr: &Instr) -> usize {
    let Some(array) = array_of(instr) else { return 0 };
    let count = operands_in_order(instr);
    let has_rank = |&id: &InstrId| {
        array_of(computation.instr(id)).is_some_and(|operand| operand.rank() == array.rank())
    };
    if instr.operands[..count].iter().all(has_rank) { count } else { 0 }
}

/// What is known of a set of instructions that are connected.
#[derive(Default)]
struct Edges {
    /// The elements of all that is taken from outside and cannot be had in any order, and of all that is given as it lies.
    fixed: usize,
    /// The elements that need not be transposed in these orders.
    saved: Vec<(Order, usize)>,
    /// The least innermost size, in each order, of what is cut, padded or folded: for each dimension.
    least: Vec<usize>,
}

impl Edges {
    fn save(&mut self, order: Order, elements: usize) {
        match self.saved.iter_mut().find(|(known, _)| *known == order) {
            Some((_, saved)) => *saved += elements,
            None => self.saved.push((order, elements)),
        }
    }

    /// The order in which the set is better, if there is one.
    fn best(&self) -> Option<&Order> {
        let (order, saved) = self.saved.iter().max_by_key(|(_, saved)| *saved)?;
        // (What is elementwise has no rows.)
        let keeps_rows = self.least.last().is_none_or(|&now| {
            let then = order.last().map_or(now, |&d| self.least[d]);
            then >= LANES || then >= now
        });
        // Elementwise operations read what is transposed as they go. They stay if anything had to be transposed instead.
        let pays = match self.least.is_empty() {
            true => self.fixed == 0,
            false => *saved > self.fixed,
        };
        (pays && keeps_rows).then_some(order)
    }
}

/// The order that each instruction is to have instead of its own.
fn choose(computation: &Computation) -> Vec<Option<Order>> {
    let instrs = computation.instrs();
    let follows: Vec<usize> = instrs.iter().map(|instr| followed(computation, instr)).collect();
    let mut sets = Sets::new(instrs.len());
    for (i, instr) in instrs.iter().enumerate() {
        for operand in &instr.operands[..follows[i]] {
            if follows[operand.index()] > 0 {
                sets.join(i, operand.index());
            }
        }
    }
    let mut takers: Vec<Vec<usize>> = vec![Vec::new(); instrs.len()];
    for (i, instr) in instrs.iter().enumerate() {
        for operand in &instr.operands {
            takers[operand.index()].push(i);
        }
    }
    // Those that take what is transposed do so in the same order.
    let goes_with =
        |taker: usize, id: &InstrId| instrs[taker].operands[..follows[taker]].contains(id);
    for id in computation.ids().filter(|&id| matches!(computation.instr(id).op, Op::Transpose(_))) {
        let mut takers = takers[id.index()].iter().filter(|&&taker| goes_with(taker, &id));
        if let Some(&first) = takers.next() {
            takers.for_each(|&taker| sets.join(first, taker));
        }
    }
    let mut edges: FxHashMap<usize, Edges> = FxHashMap::default();
    for id in computation.ids() {
        let (i, instr) = (id.index(), computation.instr(id));
        let Some(array) = array_of(instr) else { continue };
        let elements = array.element_count();
        if follows[i] == 0 {
            // A value that sets take from outside.
            let mut takes: Vec<usize> = takers[i]
                .iter()
                .filter(|&&taker| goes_with(taker, &id))
                .map(|&taker| sets.find(taker))
                .collect();
            takes.sort_unstable();
            takes.dedup();
            let is_theirs =
                takers[i].iter().all(|&taker| follows[taker] > 0) && id != computation.root();
            for set in takes {
                let edges = edges.entry(set).or_default();
                match &instr.op {
                    Op::Transpose(op) if is_theirs => {
                        edges.save(inverse(&op.permutation), elements)
                    }
                    Op::Transpose(_) | Op::Broadcast(_) | Op::Iota(_) => {}
                    _ => edges.fixed = edges.fixed.saturating_add(elements),
                }
            }
            continue;
        }
        let set = sets.find(i);
        let edges = edges.entry(set).or_default();
        if !is_elementwise(&instr.op) {
            edges.least.resize(array.rank(), usize::MAX);
            edges
                .least
                .iter_mut()
                .zip(array.dims())
                .for_each(|(least, &size)| *least = size.min(*least));
        }
        let mut is_given = id == computation.root();
        for &taker in &takers[i] {
            let instr = &instrs[taker];
            match &instr.op {
                _ if goes_with(taker, &id) => {}
                Op::Transpose(op) => edges.save(op.permutation.clone(), elements),
                _ => is_given = true,
            }
        }
        if is_given {
            edges.fixed = edges.fixed.saturating_add(elements);
        }
    }
    let orders: FxHashMap<usize, Order> =
        edges.iter().filter_map(|(&set, edges)| Some((set, edges.best()?.clone()))).collect();
    (0..instrs.len())
        .map(|i| if follows[i] > 0 { orders.get(&sets.find(i)).cloned() } else { None })
        .collect()
}

/// A computation in which some instructions take another order.
struct Turn<'m> {
    draft: Draft<'m>,
    /// The new order of each of the old instructions, if it gets one.
    orders: Vec<Option<Order>>,
    /// What stands for each, in its new order if it has one.
    map: Vec<InstrId>,
    /// What has been transposed.
    transposed: FxHashMap<(InstrId, Order), InstrId>,
}

impl Turn<'_> {
    fn transpose(&mut self, id: InstrId, permutation: Order) -> Result<InstrId> {
        if let Some(&known) = self.transposed.get(&(id, permutation.clone())) {
            return Ok(known);
        }
        let new = self.draft.add(Transpose { permutation: permutation.clone() }, &[id])?;
        self.transposed.insert((id, permutation), new);
        Ok(new)
    }

    /// What stands for an old instruction, in its old order.
    fn plain(&mut self, id: InstrId) -> Result<InstrId> {
        let new = self.map[id.index()];
        match &self.orders[id.index()] {
            Some(order) => self.transpose(new, inverse(order)),
            None => Ok(new),
        }
    }

    /// What stands for an old instruction, in a new order. (Those that have one, and are taken in one, are of one set.)
    fn turned(&mut self, id: InstrId, order: &Order) -> Result<InstrId> {
        let new = self.map[id.index()];
        match self.orders[id.index()] {
            Some(_) => Ok(new),
            None => self.transpose(new, order.clone()),
        }
    }

    /// Adds what stands for the next of the old instructions.
    fn take(&mut self, mut instr: Instr) -> Result<()> {
        self.draft.stand_for(&instr);
        let new = match self.orders[self.map.len()].clone() {
            Some(order) => {
                let new = self.turn(&instr, &order)?;
                // It is about dimensions in their old order, and what it asks for was done before.
                if let Some(extra) = &mut instr.extra {
                    extra.sharding = None;
                }
                self.draft.name(new, instr);
                new
            }
            None => {
                let mut operands = Vec::with_capacity(instr.operands.len());
                for &operand in &instr.operands {
                    operands.push(self.plain(operand)?);
                }
                // (What it waits for may as well be in the other order.)
                renumber(&mut instr, &self.map);
                instr.operands.copy_from_slice(&operands);
                self.draft.push(instr)
            }
        };
        self.map.push(new);
        Ok(())
    }

    /// Adds an instruction in another order.
    fn turn(&mut self, instr: &Instr, order: &Order) -> Result<InstrId> {
        let op = in_order(&instr.op, order)
            .ok_or_else(|| Error::internal("the order of what has one of its own"))?;
        let follows = operands_in_order(instr);
        let mut operands = Vec::with_capacity(instr.operands.len());
        for (i, &operand) in instr.operands.iter().enumerate() {
            // Initial values and fills are scalars.
            operands.push(match i < follows {
                true => self.turned(operand, order)?,
                false => self.plain(operand)?,
            });
        }
        self.draft.add(op, &operands)
    }
}
