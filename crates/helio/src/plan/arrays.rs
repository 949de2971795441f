//! Tuples taken apart: which arrays instructions give, pass on, and use last.

use std::collections::{HashMap, HashSet};

use helio_ir::ops::Yield;
use helio_ir::{AliasKind, ArrayShape, Computation, InstrId, Layout, ModuleConfig, Op, Shape};
use helio_passes::effects::Effects;

use super::part;

/// Arguments, by parameter and leaf, that the caller may give away, or must. A donor is given away for a result
/// of its size for which no other argument is, as XLA does it: what no result can take stays the caller's.
pub(crate) fn donated(
    config: &ModuleConfig,
    entry: &Computation,
) -> HashMap<(usize, usize), AliasKind> {
    let params = entry.params();
    let aliases = config.input_output_alias.iter();
    let aliased = aliases.map(|alias| (alias.parameter, &alias.parameter_index, alias.kind));
    let leaf = |(parameter, index, kind): (usize, &Vec<usize>, AliasKind)| {
        let shape = &entry.instr(*params.get(&parameter)?).shape;
        Some(((parameter, leaf_at(shape, index)?), kind))
    };
    let mut donated: HashMap<_, _> = aliased.filter_map(leaf).collect();
    let mut free = free_results(config, entry);
    for (parameter, index) in &config.buffer_donors {
        let Some((place, kind)) = leaf((*parameter, index, AliasKind::May)) else { continue };
        let size = params.get(parameter).and_then(|&id| leaf_size(&entry.instr(id).shape, place.1));
        let taken = size.and_then(|size| free.get_mut(&size)).filter(|count| **count > 0);
        if let Some(count) = taken {
            *count -= 1;
            donated.insert(place, kind);
        }
    }
    donated
}

/// How many results of each size are given no argument's memory.
fn free_results(config: &ModuleConfig, entry: &Computation) -> HashMap<usize, usize> {
    let result = &entry.instr(entry.root()).shape;
    let aliases = config.input_output_alias.iter();
    let taken: HashSet<_> = aliases.filter_map(|alias| leaf_at(result, &alias.output)).collect();
    let leaves = result.leaves().into_iter().enumerate();
    let mut free = HashMap::new();
    for (_, leaf) in leaves.filter(|(number, _)| !taken.contains(number)) {
        if let Some(array) = leaf.as_array() {
            *free.entry(array.size_bytes()).or_default() += 1;
        }
    }
    free
}

/// How many bytes an array among the leaves of a shape has.
fn leaf_size(shape: &Shape, leaf: usize) -> Option<usize> {
    shape.leaves().get(leaf)?.as_array().map(ArrayShape::size_bytes)
}

/// How many leaves a shape has.
fn leaf_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(leaf_count).sum(),
        _ => 1,
    }
}

/// The number of the leaf at a path through nested tuples.
pub(super) fn leaf_at(shape: &Shape, path: &[usize]) -> Option<usize> {
    let mut before = 0;
    let mut at = shape;
    for &index in path {
        let elements = at.as_tuple()?;
        let earlier = elements.get(..index)?;
        before += earlier.iter().map(leaf_count).sum::<usize>();
        at = elements.get(index)?;
    }
    Some(before)
}

/// Which element of its operand, a tuple, an operation gives. Collectives are done when they begin, so
/// what ends them gives the result that stands beside the operand.
pub(super) fn element_given(op: &Op) -> Option<usize> {
    match op {
        Op::GetTupleElement(op) => Some(op.index),
        Op::AllGatherDone(_) | Op::CollectivePermuteDone(_) => Some(1),
        _ => None,
    }
}

/// Whether the result is the first operand's bytes.
pub(super) fn forwards(op: &Op, computation: &Computation, id: InstrId) -> bool {
    match op.gives() {
        // The beginning gives the result itself.
        _ if matches!(op, Op::AllReduceDone(_)) => true,
        Yield::Same | Yield::Itself => true,
        Yield::Recast => {
            let instr = computation.instr(id);
            let from = &computation.instr(instr.operands[0]).shape;
            are_whole_bytes(from)
                && are_whole_bytes(&instr.shape)
                && recasts(op, from, &instr.shape)
        }
        Yield::New | Yield::Moved | Yield::Passed => false,
    }
}

/// Whether an operation that recasts bits leaves bytes where they are.
fn recasts(op: &Op, from: &Shape, to: &Shape) -> bool {
    match op {
        // Elements of several parts have the lowest first, as memory has.
        Op::BitcastConvert(_) => cfg!(target_endian = "little"),
        // Layouts mean something to `bitcast` alone; where all are the default, it is a reshape.
        _ => {
            let bits = |shape: &Shape| shape.as_array().map(|array| array.element().bits());
            is_row_major(from) && is_row_major(to) && bits(from) == bits(to)
        }
    }
}

/// Whether the elements of an array are nothing but their bytes, whatever those are.
fn are_whole_bytes(shape: &Shape) -> bool {
    let element = shape.as_array().map(|array| array.element());
    element.is_some_and(|element| element.bits() % 8 == 0 && !element.is_pred())
}

fn is_row_major(shape: &Shape) -> bool {
    let Some(array) = shape.as_array() else { return false };
    let descending = Layout::descending(array.rank());
    array.layout().is_none_or(|layout| layout.minor_to_major == descending.minor_to_major)
}

/// How many arrays of an instruction's result, the first ones, are those of its first operand, beside others
/// that it makes: a `send` gives the value that is on its way.
pub(super) fn passed_along(computation: &Computation, id: InstrId) -> usize {
    let instr = computation.instr(id);
    match (&instr.op, instr.operands.first()) {
        (Op::Send(_), Some(&value)) => computation.instr(value).shape.leaves().len(),
        _ => 0,
    }
}

/// The operands of an instruction as its steps read them: updates of a scatter that are all one
/// number are read as that number, and need not be written.
pub(super) fn read_operands(computation: &Computation, id: InstrId) -> Vec<InstrId> {
    let mut operands = computation.instr(id).operands.clone();
    if let Some((_, number)) = splat_updates(computation, id) {
        operands[UPDATES] = number;
    }
    operands.to_vec()
}

/// Which operand of a scatter into one array is its updates.
const UPDATES: usize = 2;

/// The broadcast that makes the updates of a scatter from one number, and that number.
pub(super) fn splat_updates(computation: &Computation, id: InstrId) -> Option<(InstrId, InstrId)> {
    let instr = computation.instr(id);
    if !matches!(instr.op, Op::Scatter(_)) || instr.operands.len() != UPDATES + 1 {
        return None;
    }
    let mut updates = instr.operands[UPDATES];
    while let Op::Reshape(_) = computation.instr(updates).op {
        updates = computation.instr(updates).operands[0];
    }
    let broadcast = computation.instr(updates);
    let is_broadcast = matches!(broadcast.op, Op::Broadcast(_));
    let number = *broadcast.operands.first().filter(|_| is_broadcast)?;
    let shape = computation.instr(number).shape.as_array()?;
    // Complex numbers are combined by their parts.
    (shape.is_scalar() && !shape.element().is_complex()).then_some((updates, number))
}

/// Where the arrays of each element of a tuple begin; nothing for other shapes.
fn element_starts(shape: &Shape) -> Vec<usize> {
    let mut next = 0;
    let elements = shape.as_tuple().unwrap_or_default().iter();
    elements
        .map(|element| {
            let start = next;
            next += element.leaves().len();
            start
        })
        .collect()
}

/// An array: the instruction that makes it, and which of its arrays it is.
pub(super) type ArrayId = (InstrId, usize);

/// What becomes of the arrays of a computation.
pub(super) struct Leaves {
    /// For each instruction, where its arrays come from.
    origins: Vec<Vec<ArrayId>>,
    /// For each array, the last instruction that uses it; the number of instructions if the result
    /// contains it.
    last_use: Vec<Vec<Option<usize>>>,
    /// For each instruction that gives a tuple, where the arrays of each element begin.
    starts: Vec<Vec<usize>>,
    /// Whether parts of arrays are no arrays of their own.
    has_parts: bool,
}

impl Leaves {
    /// With `has_parts`, what is [a part of an array](part::of) is where that array is.
    pub(super) fn of(computation: &Computation, effects: &Effects, has_parts: bool) -> Self {
        let count = computation.instrs().len();
        let mut origins: Vec<Vec<ArrayId>> = Vec::with_capacity(count);
        let mut last_use: Vec<Vec<Option<usize>>> = Vec::with_capacity(count);
        let mut starts: Vec<Vec<usize>> = Vec::with_capacity(count);
        let mut parts = Vec::new();
        for id in computation.ids() {
            let instr = computation.instr(id);
            starts.push(element_starts(&instr.shape));
            let leaves = instr.shape.leaves().len();
            last_use.push(vec![None; leaves]);
            let of = |operand: InstrId| origins[operand.index()].iter().copied();
            origins.push(match (&instr.op, element_given(&instr.op)) {
                (Op::Tuple(_), _) => instr.operands.iter().flat_map(|&o| of(o)).collect(),
                (_, Some(element)) => {
                    let tuple = instr.operands[0];
                    let before = starts[tuple.index()][element];
                    of(tuple).skip(before).take(leaves).collect()
                }
                (Op::Slice(_) | Op::DynamicSlice(_), _)
                    if has_parts && part::of(computation, id).is_some() =>
                {
                    parts.push(id);
                    of(instr.operands[0]).collect()
                }
                (op, None) if forwards(op, computation, id) => {
                    instr.operands.iter().flat_map(|&o| of(o)).take(leaves).collect()
                }
                _ => {
                    let passed = passed_along(computation, id);
                    let others = (passed..leaves).map(|leaf| (id, leaf));
                    let value = instr.operands.iter().flat_map(|&o| of(o)).take(passed);
                    value.chain(others).collect()
                }
            });
        }
        let mut leaves = Leaves { origins, last_use, starts, has_parts };
        leaves.use_at(computation.root(), count);
        for id in computation.ids().rev() {
            let instr = computation.instr(id);
            if parts.last() == Some(&id) {
                parts.pop();
                instr.operands.iter().for_each(|&operand| leaves.use_at(operand, id.index()));
            }
            if leaves.makes_some(id) && (leaves.is_used(id) || effects.has_effect(&instr.op)) {
                let operands = read_operands(computation, id);
                operands.into_iter().for_each(|operand| leaves.use_at(operand, id.index()));
            }
        }
        leaves
    }

    /// Whether parts of arrays are no arrays of their own.
    pub(super) fn has_parts(&self) -> bool {
        self.has_parts
    }

    /// Where the arrays of an element of a tuple begin among those of the tuple.
    pub(super) fn start(&self, tuple: InstrId, element: usize) -> usize {
        self.starts[tuple.index()][element]
    }

    /// Notes that all arrays of `id` are used at a place. Called from the last place to the first.
    fn use_at(&mut self, id: InstrId, at: usize) {
        for &(instr, leaf) in &self.origins[id.index()] {
            self.last_use[instr.index()][leaf].get_or_insert(at);
        }
    }

    /// Whether the instruction makes all arrays that it gives, rather than passing on others'.
    fn is_own(&self, id: InstrId) -> bool {
        self.origins[id.index()].iter().all(|&(instr, _)| instr == id)
    }

    /// Whether the instruction makes arrays, or has none.
    fn makes_some(&self, id: InstrId) -> bool {
        let origins = &self.origins[id.index()];
        origins.is_empty() || origins.iter().any(|&(instr, _)| instr == id)
    }

    /// Whether anything uses an array of this instruction, or it merely passes on.
    pub(super) fn is_used(&self, id: InstrId) -> bool {
        !self.is_own(id) || self.last_use[id.index()].iter().any(Option::is_some)
    }

    /// Whether anything uses an array.
    pub(super) fn is_leaf_used(&self, (instr, leaf): ArrayId) -> bool {
        self.last_use[instr.index()][leaf].is_some()
    }

    /// Where the arrays of an instruction come from.
    pub(super) fn origins(&self, id: InstrId) -> &[ArrayId] {
        &self.origins[id.index()]
    }

    /// Where the arrays of an instruction's operands come from, one after the other.
    pub(super) fn operand_origins(&self, computation: &Computation, id: InstrId) -> Vec<ArrayId> {
        let operands = read_operands(computation, id);
        operands.iter().flat_map(|o| self.origins[o.index()].iter().copied()).collect()
    }

    /// Whether nothing uses an array after instruction `at`.
    pub(super) fn dies_at(&self, (instr, leaf): ArrayId, at: InstrId) -> bool {
        self.last_use[instr.index()][leaf].is_none_or(|last| last <= at.index())
    }
}
