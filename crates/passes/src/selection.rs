//! Sorts of which only the first or the last elements are used.

use helio_ir::ops::{
    Broadcast, Compare, Constant, Convert, Direction, Gather, GatherDims, GetTupleElement, Reverse,
    Select, Slice, Sort, TopK,
};
use helio_ir::{
    Array, ArrayShape, BinaryOp, Computation, ElementType, Instr, InstrId, Module, Native, Number,
    Op, Result, dispatch_type,
};

use crate::draft::{Draft, Original};
use crate::pass::PassCx;
use crate::rebuild::{calls, rebuild};
use crate::recognize::{SortKey, comparator};

/// Whether it takes less time to select this many elements of a row than to sort it.
fn is_worth(count: usize, row: usize) -> bool {
    // Short rows are compared with each other, long ones are sorted by digits.
    let part = if row <= SHORT_ROW { 4 } else { 16 };
    count.saturating_mul(part) <= row
}

/// The most elements of a row that is short.
const SHORT_ROW: usize = 128;

/// Replaces sorts along the last dimension, of which all users take the same few elements from the one or the
/// other end, by selections of these.
pub(crate) fn select_extremes(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::Sort(_))) {
        return Ok(module);
    }
    rebuild(module, cx.watch, |new, computation| {
        let found = Found::of(new, &computation);
        if found.is_empty() {
            return Ok(computation);
        }
        new.count_steps(computation.instrs().len())?;
        let (mut draft, old) = Draft::replacing(new, computation);
        let map = write(&mut draft, &old, &found)?;
        draft.finish(map[old.root.index()])
    })
}

/// Which end of what is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// The window that slices take along the last dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    end: End,
    /// How many elements.
    count: usize,
}

impl Window {
    /// What this takes of an array, if that is all of it but for one end of its last dimension.
    fn of(slice: &Slice, array: &ArrayShape) -> Option<Self> {
        let last = array.rank().checked_sub(1)?;
        let size = array.dims()[last];
        let is_whole = |d: usize| (slice.starts[d], slice.limits[d]) == (0, array.dims()[d]);
        if !(0..last).all(is_whole) || slice.strides.iter().any(|&stride| stride != 1) {
            return None;
        }
        let (start, limit) = (slice.starts[last], slice.limits[last]);
        let end = match (start, limit == size) {
            (0, _) => End::First,
            (_, true) => End::Last,
            _ => return None,
        };
        Some(Window { end, count: limit - start })
    }
}

/// A sort that a selection stands for.
struct Selection {
    sort: InstrId,
    key: SortKey,
    /// What all slices take; `None` while there is none.
    window: Option<Window>,
    /// Whether each result is used.
    used: Vec<bool>,
    /// Whether all users are such slices.
    holds: bool,
}

/// What an instruction has to do with a sort.
#[derive(Clone, Copy)]
enum Role {
    /// It is the sort, or the tuple of its results.
    Sort(usize),
    /// It is a result.
    Result(usize, usize),
    /// It takes some elements of a result.
    Slice(usize, usize),
}

/// The sorts of a computation that selections stand for, and the role of each instruction.
struct Found {
    selections: Vec<Selection>,
    roles: Vec<Option<Role>>,
}

impl Found {
    fn of(module: &Module, computation: &Computation) -> Self {
        let instrs = computation.instrs();
        let mut found = Found { selections: Vec::new(), roles: vec![None; instrs.len()] };
        for (i, instr) in instrs.iter().enumerate() {
            let role = found.role(module, instrs, InstrId(i as u32), instr);
            found.roles[i] = role;
        }
        if let Some(Role::Sort(at) | Role::Result(at, _)) = found.roles[computation.root().index()]
        {
            found.selections[at].holds = false;
        }
        for selection in &mut found.selections {
            selection.holds &= selection.window.is_some();
        }
        found
    }

    fn is_empty(&self) -> bool {
        !self.selections.iter().any(|selection| selection.holds)
    }

    fn role(
        &mut self,
        module: &Module,
        instrs: &[Instr],
        id: InstrId,
        instr: &Instr,
    ) -> Option<Role> {
        if let Op::Sort(op) = &instr.op
            && let Some(key) = only_key(module, instrs, op, instr)
        {
            let used = vec![false; instr.operands.len()];
            self.selections.push(Selection { sort: id, key, window: None, used, holds: true });
        }
        let mut role = None;
        for &operand in &instr.operands {
            match (self.roles[operand.index()], &instr.op) {
                (Some(Role::Sort(at)), Op::GetTupleElement(op)) => {
                    role = Some(Role::Result(at, op.index));
                }
                (Some(Role::Result(at, number)), Op::Slice(op)) => {
                    let selection = &mut self.selections[at];
                    let array = instrs[operand.index()].shape.as_array();
                    let window = array.and_then(|array| {
                        Window::of(op, array).filter(|window| {
                            is_worth(window.count, array.dims()[array.rank() - 1])
                                && selection.window.is_none_or(|other| other == *window)
                        })
                    });
                    selection.holds &= window.is_some();
                    selection.window = window;
                    selection.used[number] = true;
                    role = Some(Role::Slice(at, number));
                }
                (Some(Role::Sort(at) | Role::Result(at, _)), _) => {
                    self.selections[at].holds = false
                }
                _ => {}
            }
        }
        match &instr.op {
            Op::Sort(_) if self.selections.last().is_some_and(|last| last.sort == id) => {
                let at = self.selections.len() - 1;
                // A sort of one array gives no tuple.
                Some(if instr.operands.len() == 1 { Role::Result(at, 0) } else { Role::Sort(at) })
            }
            _ => role,
        }
    }
}

/// The key of a sort along the last dimension by one operand, of a type that selections compare.
fn only_key(module: &Module, instrs: &[Instr], op: &Sort, instr: &Instr) -> Option<SortKey> {
    let keys = comparator(module, op.to_apply)?;
    let &[key] = &keys[..] else { return None };
    let array = instrs[instr.operands[key.operand].index()].shape.as_array()?;
    let element = array.element();
    let compares = element.is_integer() && element.bits() >= 8
        || matches!(element, ElementType::F16 | ElementType::BF16)
        || matches!(element, ElementType::F32 | ElementType::F64);
    let size = *array.dims().last()?;
    let is_last = op.dimension + 1 == array.rank();
    let fits = i32::try_from(size).is_ok() && array.is_static();
    (compares && is_last && fits).then_some(key)
}

/// Writes a computation with selections for sorts. Gives, for each old instruction, what stands for it.
fn write(draft: &mut Draft<'_>, old: &Original, found: &Found) -> Result<Vec<InstrId>> {
    let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
    let mut results: Vec<Vec<InstrId>> = vec![Vec::new(); found.selections.len()];
    for (instr, role) in old.instrs.iter().zip(&found.roles) {
        let at = match role {
            Some(Role::Sort(at) | Role::Result(at, _) | Role::Slice(at, _)) => *at,
            None => {
                map.push(draft.carry(instr.clone(), &map));
                continue;
            }
        };
        let selection = &found.selections[at];
        if !selection.holds {
            map.push(draft.carry(instr.clone(), &map));
            continue;
        }
        draft.stand_for(instr);
        if let Op::Sort(_) = instr.op {
            let operands: Vec<InstrId> = instr.operands.iter().map(|id| map[id.index()]).collect();
            results[at] = select(draft, selection, &operands)?;
        }
        map.push(match role {
            Some(Role::Slice(_, number)) => {
                let id = results[at][*number];
                draft.join(id, instr);
                draft.name(id, instr.clone());
                id
            }
            // Nobody uses it any more.
            _ => map[instr.operands[0].index()],
        });
    }
    Ok(map)
}

/// What slices take of each result of a sort; of one that is not used, anything.
fn select(
    draft: &mut Draft<'_>,
    selection: &Selection,
    operands: &[InstrId],
) -> Result<Vec<InstrId>> {
    let Selection { key, window: Some(Window { end, count }), .. } = *selection else {
        return Ok(operands.to_vec());
    };
    let by = operands[key.operand];
    let Some(shape) = draft.array(by).cloned() else { return Ok(operands.to_vec()) };
    let last = shape.rank() - 1;
    let reverse = Reverse { dimensions: vec![last] };
    let is_exact = key.total_order || shape.element().is_integer();
    let mut keys = if is_exact { by } else { comparable(draft, by, &shape)? };
    if end == End::Last {
        // Of equal elements, the last ones are at this end, the very last behind the others.
        keys = draft.add(reverse.clone(), &[keys])?;
    }
    let largest = key.descending == (end == End::First);
    let top = draft.add(TopK { k: count, largest }, &[keys])?;
    let mut values = draft.add(GetTupleElement { index: 0 }, &[top])?;
    let mut places = draft.add(GetTupleElement { index: 1 }, &[top])?;
    if end == End::Last {
        // Places count from the end, and the elements come from there.
        let most = Number::Int((shape.dims()[last] - 1) as i128);
        let dims = draft.array(places).map_or(Vec::new(), |places| places.dims().to_vec());
        let most = splat(draft, ElementType::S32, most, &dims)?;
        places = draft.add(BinaryOp::Subtract, &[most, places])?;
        [values, places] = [draft.add(reverse.clone(), &[values])?, draft.add(reverse, &[places])?];
    }
    let mut results = Vec::with_capacity(operands.len());
    for (number, &operand) in operands.iter().enumerate() {
        let element = draft.array(operand).map_or(ElementType::S32, ArrayShape::element);
        results.push(if !selection.used[number] {
            operand
        } else if number == key.operand && is_exact {
            values
        } else if !counts_along(draft, operand, last) {
            draft.add(elements_at(shape.rank()), &[operand, places])?
        } else if element == ElementType::S32 {
            places
        } else {
            draft.add(Convert { element }, &[places])?
        });
    }
    Ok(results)
}

/// Floats as a sort by their numbers compares them, for one that compares bits: with one zero and one NaN.
fn comparable(draft: &mut Draft<'_>, id: InstrId, shape: &ArrayShape) -> Result<InstrId> {
    let zero = splat(draft, shape.element(), Number::Float(0.0), shape.dims())?;
    let nan = splat(draft, shape.element(), Number::Float(f64::NAN), shape.dims())?;
    let is_zero = draft.add(Compare::new(Direction::Eq), &[id, zero])?;
    let one_zero = draft.add(Select, &[is_zero, zero, id])?;
    let is_nan = draft.add(Compare::new(Direction::Ne), &[id, id])?;
    draft.add(Select, &[is_nan, nan, one_zero])
}

/// A number in all elements of an array.
fn splat(
    draft: &mut Draft<'_>,
    element: ElementType,
    number: Number,
    dims: &[usize],
) -> Result<InstrId> {
    let scalar = dispatch_type!(element, T => Array::scalar(T::from_number(number)));
    let scalar = draft.add(Constant::new(scalar), &[])?;
    let shape = ArrayShape::new(element, dims)?;
    draft.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
}

/// Whether each element is its index along the last dimension.
fn counts_along(draft: &Draft<'_>, id: InstrId, last: usize) -> bool {
    match draft.op(id) {
        Op::Iota(op) => op.dimension == last,
        Op::Broadcast(op) => match draft.op(draft.operands(id)[0]) {
            Op::Iota(counted) => op.dimensions[counted.dimension] == last,
            _ => false,
        },
        _ => false,
    }
}

/// Takes elements at places along the last dimension, in each row.
fn elements_at(rank: usize) -> Gather {
    let rows: Vec<usize> = (0..rank - 1).collect();
    let dims = GatherDims {
        offset_dims: Vec::new(),
        collapsed_slice_dims: vec![rank - 1],
        start_index_map: vec![rank - 1],
        operand_batching_dims: rows.clone(),
        start_indices_batching_dims: rows,
        index_vector_dim: rank,
    };
    Gather { dims, slice_sizes: vec![1; rank], indices_are_sorted: false }
}
