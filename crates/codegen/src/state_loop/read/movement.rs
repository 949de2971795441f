//! Operations that move elements: of arrays in lanes what leaves each where it is, of tiny ones anything.

use std::iter::zip;

use helio_ir::ops::{Broadcast, Slice};
use helio_ir::types::strides;
use helio_ir::{ArrayShape, Op};

use super::memory::ArrayBox;
use super::tiny::{joined, moved};
use super::{Data, Form, InstrValues, Reader};
use crate::elementwise::Elem;
use crate::kernel::Builder;

impl Reader<'_> {
    pub(super) fn broadcast(
        &mut self,
        b: &mut Builder,
        site: InstrValues<'_>,
        shape: &ArrayShape,
        op: &Broadcast,
    ) -> Option<Vec<Elem>> {
        let (leaf, from) = site.operand(0)?;
        let elems = self.values(b, leaf, from)?;
        if self.form == Form::Elements {
            let strides = strides(from.dims());
            let of = |point: &[usize]| {
                zip(&op.dimensions, &strides).map(|(&d, stride)| point[d] * stride).sum()
            };
            return Some(moved(shape.dims(), &elems, of));
        }
        let is_ordered = op.dimensions.is_sorted();
        let is_same = from.element_count() == shape.element_count() && is_ordered;
        (from.element_count() == 1 || is_same).then_some(elems)
    }

    /// A slice: of an array in memory one without gaps, which is read there; of a tiny one any.
    pub(super) fn slice(
        &mut self,
        b: &mut Builder,
        site: InstrValues<'_>,
        shape: &ArrayShape,
        op: &Slice,
    ) -> Option<Vec<Elem>> {
        let (leaf, from) = site.operand(0)?;
        let strides = strides(from.dims());
        let first: usize = zip(&op.starts, &strides).map(|(start, stride)| start * stride).sum();
        match leaf.data {
            Data::Memory { buf, version } if op.strides.iter().all(|&by| by == 1) => {
                self.is_current(buf, version).then_some(())?;
                let first = b.index(first as i64);
                let (starts, sizes) = (&[(first, 1)][..], shape.dims());
                self.read(b, &ArrayBox { buf, shape: from, starts, sizes })
            }
            _ if self.form == Form::Elements => {
                let elems = self.values(b, leaf, from)?;
                let of = |point: &[usize]| {
                    let steps = zip(zip(point, &op.strides), &strides);
                    first + steps.map(|((i, by), stride)| i * by * stride).sum::<usize>()
                };
                Some(moved(shape.dims(), &elems, of))
            }
            _ => None,
        }
    }

    /// A tiny array reversed or transposed, or several joined.
    pub(super) fn rearranged(
        &mut self,
        b: &mut Builder,
        site: InstrValues<'_>,
        shape: &ArrayShape,
    ) -> Option<Vec<Elem>> {
        if let Op::Concatenate(op) = &site.instr.op {
            let mut parts = Vec::with_capacity(site.instr.operands.len());
            for i in 0..site.instr.operands.len() {
                let (leaf, from) = site.operand(i)?;
                parts.push((self.values(b, leaf, from)?, from.dims()));
            }
            return joined(shape.dims(), &parts, op.dimension);
        }
        let (leaf, from) = site.operand(0)?;
        let (elems, strides) = (self.values(b, leaf, from)?, strides(from.dims()));
        match &site.instr.op {
            Op::Reverse(op) => {
                let of = |point: &[usize]| {
                    let turned = |d: usize| match op.dimensions.contains(&d) {
                        true => from.dims()[d] - 1 - point[d],
                        false => point[d],
                    };
                    strides.iter().enumerate().map(|(d, stride)| turned(d) * stride).sum()
                };
                Some(moved(shape.dims(), &elems, of))
            }
            Op::Transpose(op) => {
                let of = |point: &[usize]| {
                    zip(&op.permutation, point).map(|(&d, i)| i * strides[d]).sum()
                };
                Some(moved(shape.dims(), &elems, of))
            }
            _ => None,
        }
    }
}
