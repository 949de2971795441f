//! Slices that lie in their operand's memory one element after the other: they are read where they are.

use helio_ir::{ArrayShape, Computation, InstrId, Op};
use helio_runtime::kernels::copy::dense_steps;
use helio_runtime::program::{Part, PartIndex};

use super::{Action, Frame, Owner, Planner, Step, StorageId};

/// Bytes that are moved sooner than it takes to keep what they are a part of.
const MIN_BYTES: usize = 512;

/// Where in its operand a slice lies.
pub(super) struct Place {
    /// In bytes, if all indices are zero.
    offset: usize,
    /// The operands that are indices, each with the greatest that counts, and the bytes that a unit stands for.
    indices: Vec<(usize, usize, usize)>,
}

/// Where in its operand a slice lies, if it is [`MIN_BYTES`] or more that are neighbours.
pub(super) fn of(computation: &Computation, id: InstrId) -> Option<Place> {
    let instr = computation.instr(id);
    let array = |id: InstrId| computation.instr(id).shape.as_array().filter(|a| a.is_static());
    let from = array(*instr.operands.first()?)?;
    let to = array(id)?;
    if to.size_bytes() < MIN_BYTES || !are_neighbours(from, to) {
        return None;
    }
    let size = from.element().size_bytes();
    let steps = dense_steps(from.dims());
    let bytes = |d: usize| usize::try_from(steps[d]).ok()?.checked_mul(size);
    let mut place = Place { offset: 0, indices: Vec::new() };
    for d in 0..from.rank() {
        let most = from.dims()[d] - to.dims()[d];
        match &instr.op {
            Op::Slice(op) if op.strides[d] == 1 || to.dims()[d] == 1 => {
                place.offset = bytes(d)?.checked_mul(op.starts[d])?.checked_add(place.offset)?;
            }
            Op::DynamicSlice(_) if most == 0 => {}
            Op::DynamicSlice(_) => {
                let index = array(*instr.operands.get(1 + d)?)?;
                // (One vector of all indices is an old form.)
                if !index.is_scalar() || !index.element().is_integer() || index.element().bits() < 8
                {
                    return None;
                }
                place.indices.push((1 + d, most, bytes(d)?));
            }
            _ => return None,
        }
    }
    Some(place)
}

/// Whether what is left of an array if sizes become those of `to` are neighbours.
fn are_neighbours(from: &ArrayShape, to: &ArrayShape) -> bool {
    let sizes = || from.dims().iter().zip(to.dims());
    // The first dimension of which there is more than one; all behind it are whole.
    let first = to.dims().iter().position(|&size| size != 1).unwrap_or(to.rank());
    sizes().skip(first + 1).all(|(from, to)| from == to)
}

impl<'m> Planner<'m> {
    /// The storage of a slice that is a part of its operand's, and the step that finds it.
    pub(super) fn part(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        place: Place,
        steps: &mut Vec<Step>,
    ) -> Vec<StorageId> {
        let instr = frame.computation.instr(id);
        let operand = |number: usize| {
            let operand = instr.operands[number];
            (frame.values[operand.index()][0], &frame.computation.instr(operand).shape)
        };
        let of = self.find(operand(0).0);
        let bytes = instr.shape.as_array().map_or(0, ArrayShape::size_bytes);
        let part = self.storage(bytes, Owner::Nobody);
        self.storages[part.index()].part_of = Some(of);
        let mut touched = vec![of, part];
        let mut indices = Vec::with_capacity(place.indices.len());
        for (number, most, stride) in place.indices {
            let (index, shape) = operand(number);
            let element = shape.as_array().map(ArrayShape::element);
            touched.push(index);
            indices.push(PartIndex {
                index,
                bytes: element.map_or(0, |element| element.size_bytes()),
                is_signed: element.is_some_and(|element| element.is_signed_integer()),
                most,
                stride,
            });
        }
        let found = Part { of, part, offset: place.offset, indices };
        self.push(steps, Action::Part(Box::new(found)), &touched);
        vec![part]
    }
}
