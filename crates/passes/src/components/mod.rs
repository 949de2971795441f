//! Arrays of a loop that are carried as one array for each of a few components.
//!
//! The states of many trajectories, particles or samples are arrays of one row for each, of three coordinates, say. What
//! is computed of single coordinates is a slice of such an array, and is put together with others at the end: elements
//! that lie three apart, in each step of each iteration. Of three arrays of one coordinate each, all that is left of
//! this is which of them are read, and the loop is element-wise in whole vectors.

mod classes;
mod write;

use helio_ir::ops::{Concatenate, GetTupleElement, Reshape, Slice, Tuple, While};
use helio_ir::{ArrayShape, InstrId, Module, Name, Op, Result};
use smallvec::SmallVec;

use crate::draft::Draft;
use crate::growth::Growth;
use crate::pass::PassCx;
use crate::rebuild::{calls, drop_unused, rebuild};
use crate::simplify::forward_tuples;
use classes::Classes;

/// The arrays that stand for the components of a value, in row-major order of the dimensions that became
/// components; the value itself if none did.
type Parts = SmallVec<[InstrId; 4]>;

/// Carries arrays of loops as one array for each component, where dimensions of a few elements are sliced and put
/// together.
pub(crate) fn split_components(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::While(_))) {
        return Ok(module);
    }
    // Unrolled loops leave tuples between their iterations.
    let module = forward_tuples(module, cx)?;
    let mut growth = Growth::of_pass(cx.watch);
    let module = rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            draft.stand_for(&instr);
            let classes = match instr.op {
                Op::While(op) => Classes::of_loop(draft.callees(), op, &mut growth),
                _ => None,
            };
            map.push(match (&instr.op, classes) {
                (&Op::While(op), Some(classes)) => {
                    let init = map[instr.operands[0].index()];
                    split_loop(&mut draft, op, init, &classes, instr.name)?
                }
                _ => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })?;
    // The loops' old bodies are called no more.
    drop_unused(module, cx.watch)
}

/// Adds the loop that carries components, and what puts its results together.
fn split_loop(
    draft: &mut Draft<'_>,
    op: While,
    init: InstrId,
    classes: &Classes,
    name: Name,
) -> Result<InstrId> {
    let shapes = draft.shape(init).as_tuple().unwrap_or_default().to_vec();
    let (mut state, mut places) = (Vec::new(), Vec::with_capacity(shapes.len()));
    for (index, shape) in shapes.iter().enumerate() {
        let first = state.len();
        let element = draft.add(GetTupleElement { index }, &[init])?;
        match shape.as_array() {
            Some(array) => state.extend(classes.of_state(index, array).parts_of(draft, element)?),
            None => state.push(element),
        }
        places.push(first..state.len());
    }
    let state = draft.add(Tuple, &state)?;
    let shape = draft.shape(state).clone();
    let body = write::of_components(draft, op.body, &shape, &places, &|id, shape| {
        classes.of_body(id, shape)
    })?;
    let condition = write::of_components(draft, op.condition, &shape, &places, &|id, shape| {
        classes.of_condition(id, shape)
    })?;
    let looped = draft.add(While { condition, body }, &[state])?;

    let mut results = Vec::with_capacity(shapes.len());
    for ((index, shape), places) in shapes.iter().enumerate().zip(places) {
        let part = |index| draft.add(GetTupleElement { index }, &[looped]);
        let parts: Parts = places.map(part).collect::<Result<_>>()?;
        results.push(match shape.as_array() {
            Some(array) => classes.of_state(index, array).whole_of(draft, &parts)?,
            None => parts[0],
        });
    }
    draft.rename(looped, name);
    draft.add(Tuple, &results)
}

/// How an array is split.
#[derive(Clone, Debug)]
struct Split {
    shape: ArrayShape,
    /// For each dimension, whether its indices number components.
    is_component: SmallVec<[bool; 6]>,
}

impl Split {
    /// How many components there are.
    fn count(&self) -> usize {
        self.components().map(|d| self.shape.dims()[d]).product()
    }

    /// The dimensions that became components.
    fn components(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.shape.rank()).filter(|&d| self.is_component[d])
    }

    /// The dimensions that each component has.
    fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.shape.rank()).filter(|&d| !self.is_component[d])
    }

    /// Where in a component a dimension that it has is.
    fn place(&self, d: usize) -> usize {
        self.kept().take_while(|&kept| kept < d).count()
    }

    /// Of one number for each dimension, those for the dimensions that components have.
    fn kept_of<T: Copy>(&self, all: &[T]) -> Vec<T> {
        self.kept().map(|d| all[d]).collect()
    }

    /// The sizes of a component.
    fn sizes(&self) -> Vec<usize> {
        self.kept_of(self.shape.dims())
    }

    /// The shape of a component.
    fn part_shape(&self) -> Result<ArrayShape> {
        ArrayShape::of_sizes(self.shape.element(), &self.sizes())
    }

    /// The indices of each component in the whole, 0 in the dimensions that it has.
    fn points(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        (0..self.count()).map(|mut number| {
            let mut point = vec![0; self.shape.rank()];
            for d in self.components().rev() {
                let size = self.shape.dims()[d];
                point[d] = number % size;
                number /= size;
            }
            point
        })
    }

    /// Which component has these indices.
    fn number(&self, point: &[usize]) -> usize {
        self.components().fold(0, |number, d| number * self.shape.dims()[d] + point[d])
    }

    /// Takes an array apart.
    fn parts_of(&self, draft: &mut Draft<'_>, whole: InstrId) -> Result<Parts> {
        if self.components().next().is_none() {
            return Ok(Parts::from_slice(&[whole]));
        }
        let shape = self.part_shape()?;
        let part = |point: Vec<usize>| {
            let ends = point.iter().zip(self.shape.dims()).zip(&self.is_component);
            let ends = ends.map(|((&at, &size), &single)| if single { at + 1 } else { size });
            let slice = Slice::dense(point.clone(), ends.collect());
            let slice = draft.add(slice, &[whole])?;
            draft.add(Reshape { shape: shape.clone() }, &[slice])
        };
        self.points().map(part).collect()
    }

    /// Puts an array together.
    fn whole_of(&self, draft: &mut Draft<'_>, parts: &[InstrId]) -> Result<InstrId> {
        if self.components().next().is_none() {
            return Ok(parts[0]);
        }
        let sizes = self.shape.dims().iter().zip(&self.is_component);
        let sizes: Vec<usize> =
            sizes.map(|(&size, &single)| if single { 1 } else { size }).collect();
        let shape = ArrayShape::of_sizes(self.shape.element(), &sizes)?;
        let single = |&part: &InstrId| draft.add(Reshape { shape: shape.clone() }, &[part]);
        let mut pieces: Vec<InstrId> = parts.iter().map(single).collect::<Result<_>>()?;
        for dimension in self.components().rev() {
            let joined = pieces
                .chunks(self.shape.dims()[dimension])
                .map(|pieces| draft.add(Concatenate { dimension }, pieces));
            pieces = joined.collect::<Result<_>>()?;
        }
        Ok(pieces[0])
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::after;

    /// A loop over eight rows of three numbers, which are turned around twice in each iteration and kept.
    fn keeping(iterations: usize) -> String {
        let stack = format!("f32[{iterations},8,3]");
        let state = format!("(s32[], f32[8,3], {stack})");
        format!(
            "body {{ s = {state} parameter(0)
               i = s32[] get-tuple-element(s), index=0  x = f32[8,3] get-tuple-element(s), index=1
               all = {stack} get-tuple-element(s), index=2
               one = s32[] constant(1)  next = s32[] add(i, one)  zero = s32[] constant(0)
               a = f32[8,3] reverse(x), dimensions={{1}}  b = f32[8,1] slice(a), slice={{[0:8], [0:1]}}
               c = f32[8,2] slice(a), slice={{[0:8], [1:3]}}
               y = f32[8,3] concatenate(c, b), dimensions={{1}}
               part = f32[1,8,3] reshape(y)
               kept = {stack} dynamic-update-slice(all, part, i, zero, zero)
               ROOT t = {state} tuple(next, y, kept) }}
             condition {{ s = {state} parameter(0)  i = s32[] get-tuple-element(s), index=0
               n = s32[] constant({iterations})  ROOT go = pred[] compare(i, n), direction=LT }}
             ENTRY e {{ x = f32[8,3] parameter(0)  i = s32[] constant(0)
               zero = f32[] constant(0)  all = {stack} broadcast(zero), dimensions={{}}
               s = {state} tuple(i, x, all)
               l = {state} while(s), condition=condition, body=body
               ROOT r = {stack} get-tuple-element(l), index=2 }}"
        )
    }

    #[test]
    fn what_is_kept_is_split_unless_it_takes_much_memory() {
        let is_split =
            |iterations| !after("split-components", &keeping(iterations)).contains("reverse");
        assert!(is_split(1000));
        assert!(!is_split(1_000_000));
    }
}
