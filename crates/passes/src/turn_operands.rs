//! Operands of fusions that are transposed before they are read many times.
//!
//! A distance of each point of one set to each of another is a fold along coordinates, which lie side by side. Lanes
//! over coordinates have to be added up for each pair, and there are few of them; lanes over points read each
//! coordinate from places that lie apart. Of the transposed set, a coordinate of all points lies side by side.

use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;

use helio_ir::ops::{Fusion, Parameter, Transpose};
use helio_ir::{ArrayShape, CompId, Computation, Instr, InstrId, Module, Op, Result, Shape};
use rustc_hash::FxHashMap;

use crate::draft::{Draft, parameter_number};
use crate::pass::PassCx;
use crate::rebuild::{NewModule, drop_unused, rebuild};

/// How many elements may be folded: of more, hardly any time goes to adding up lanes, and rows apart are read less well.
const FOLDED: RangeInclusive<usize> = 3..=128;
/// The fewest results side by side: fewer do not fill a vector.
const MIN_SIDE_BY_SIDE: usize = 16;
/// How often each element is read at the least, for the copy to pay.
const MIN_READS: usize = 8;

/// Transposes operands that fusions read many times along the dimension that they fold.
pub(crate) fn turn_operands(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !module.ids().any(|id| find(module.computation(id)).is_some()) {
        return Ok(module);
    }
    // For each fused computation: what takes its place, and which operands are turned.
    let mut turned: FxHashMap<CompId, Option<(CompId, Vec<bool>)>> = FxHashMap::default();
    let module = rebuild(module, cx.watch, |new, computation| {
        let mut changes = false;
        for instr in computation.instrs() {
            let Op::Fusion(fusion) = &instr.op else { continue };
            let other = match turned.entry(fusion.calls) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(with_turned_operands(new, fusion.calls)?),
            };
            changes |= other.is_some();
        }
        if !changes {
            return Ok(computation);
        }
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for mut instr in old.instrs {
            draft.stand_for(&instr);
            let other = match &instr.op {
                Op::Fusion(fusion) => turned[&fusion.calls].clone(),
                _ => None,
            };
            let Some((calls, which)) = other else {
                map.push(draft.carry(instr, &map));
                continue;
            };
            for (operand, turned) in instr.operands.iter_mut().zip(which) {
                *operand = map[operand.index()];
                if turned {
                    let rank = draft.array(*operand).map_or(0, |array| array.rank());
                    *operand = draft.add(swap_last(rank), &[*operand])?;
                }
            }
            if let Op::Fusion(fusion) = &mut instr.op {
                **fusion = Fusion { calls, ..(**fusion).clone() };
            }
            map.push(draft.push(instr));
        }
        draft.finish(map[old.root.index()])
    })?;
    // What took operands as they lie is called no more.
    drop_unused(module, cx.watch)
}

/// A transposition of the last two dimensions.
fn swap_last(rank: usize) -> Transpose {
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(rank - 2, rank - 1);
    Transpose { permutation }
}

/// Adds a fused computation that takes some of the operands transposed, and says which; `None` if it is none that
/// does better so.
fn with_turned_operands(new: &mut NewModule, id: CompId) -> Result<Option<(CompId, Vec<bool>)>> {
    let Some(which) = find(new.computation(id)) else { return Ok(None) };
    let old = new.computation(id).clone();
    let mut draft = Draft::new(new, old.name.clone());
    let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs().len());
    for instr in old.instrs() {
        draft.stand_for(instr);
        map.push(match &instr.op {
            Op::Parameter(parameter) if which[parameter.number] => {
                let Some(shape) = instr.shape.as_array() else { unreachable!("found as an array") };
                let permutation = swap_last(shape.rank());
                let mut dims = shape.dims().to_vec();
                dims.swap(shape.rank() - 2, shape.rank() - 1);
                let turned = Shape::Array(ArrayShape::new(shape.element(), dims)?);
                let number = parameter.number;
                let operand = draft.add(Parameter { number, shape: turned }, &[])?;
                draft.rename(operand, instr.name.clone());
                draft.add(permutation, &[operand])?
            }
            _ => draft.carry(instr.clone(), &map),
        });
    }
    let computation = draft.finish(map[old.root().index()])?;
    Ok(Some((new.push(computation)?, which)))
}

/// Which operands of a fused computation are better read transposed: those that lie along the dimension that it folds
/// and the one before it, and are repeated along others, where nothing else lies along both.
fn find(fused: &Computation) -> Option<Vec<bool>> {
    let folds = || fused.instrs().iter().filter(|instr| matches!(instr.op, Op::Reduce(_)));
    let array = |id: InstrId| fused.instr(id).shape.as_array();
    // What is folded of the results, as the least of each row, is so along their dimensions.
    let domain = folds().filter_map(|fold| array(fold.operands[0])).max_by_key(|of| of.rank())?;
    let (domain, last) = (domain.dims(), domain.rank().checked_sub(1)?);
    for fold in folds() {
        let Op::Reduce(reduce) = &fold.op else { continue };
        let dims = array(fold.operands[0])?.dims();
        if dims.len() > last && (dims != domain || reduce.dimensions[..] != [last]) {
            return None;
        }
    }
    let [others @ .., side_by_side, folded] = domain else { return None };
    let points: usize = others.iter().product();
    if !FOLDED.contains(folded) || *side_by_side < MIN_SIDE_BY_SIDE || points < MIN_READS {
        return None;
    }
    let last_two = [domain.len() - 2, domain.len() - 1];
    let is_parameter = |instr: &&Instr| parameter_number(&instr.op).is_some();
    let mut which = vec![false; fused.instrs().iter().filter(is_parameter).count()];
    for instr in fused.instrs() {
        for &operand in &instr.operands {
            let Some(number) = parameter_number(&fused.instr(operand).op) else { continue };
            let shape = fused.instr(operand).shape.as_array()?;
            let is_domain = |of: &Instr| of.shape.as_array().is_some_and(|of| of.dims() == domain);
            match &instr.op {
                Op::Broadcast(broadcast) if broadcast.shape.dims() == domain => {
                    let lies_along_both = broadcast.dimensions.ends_with(&last_two);
                    let reads = broadcast.shape.element_count() / shape.element_count().max(1);
                    if lies_along_both && (reads < MIN_READS || !shape.is_static()) {
                        return None;
                    }
                    which[number] |= lies_along_both;
                }
                // What is read at each point lies along all dimensions, or in some other way.
                _ if is_domain(instr) || shape.dims() == domain => return None,
                // Single numbers, and what is about results alone, or made of some before it is repeated.
                _ => {}
            }
        }
    }
    which.contains(&true).then_some(which)
}
