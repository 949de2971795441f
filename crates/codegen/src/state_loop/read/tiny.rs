//! Arrays of a few elements, each of them a value.

use std::iter::zip;

use helio_ir::types::{IndexIter, strides};
use helio_ir::{ArrayShape, Computation, ElementType, Instr, InstrId, ops};

use super::{Data, Form, Leaf, Reader, array, pick};
use crate::elementwise::{self, Elem};
use crate::kernel::{Builder, Value};

impl Reader<'_> {
    /// A product of small matrices.
    pub(super) fn product(
        &mut self,
        b: &mut Builder,
        [(lhs, lhs_shape), (rhs, rhs_shape)]: [(&Leaf, &ArrayShape); 2],
        shape: &ArrayShape,
        op: &ops::Dot,
    ) -> Option<Vec<Elem>> {
        let ty = shape.element();
        let is_plain =
            matches!(ty, ElementType::F32 | ElementType::F64) && lhs.ty == ty && rhs.ty == ty;
        is_plain.then_some(())?;
        let dims = &op.dims;
        let (x, y) = (self.values(b, lhs, lhs_shape)?, self.values(b, rhs, rhs_shape)?);
        let (x_strides, y_strides) = (strides(lhs_shape.dims()), strides(rhs_shape.dims()));
        let folded: Vec<usize> =
            dims.lhs_contracting.iter().map(|&d| lhs_shape.dims()[d]).collect();
        let steps: usize = folded.iter().product();
        self.count(shape.element_count().saturating_mul(steps))?;
        let (lhs_free, rhs_free) =
            (dims.lhs_free(lhs_shape.rank()), dims.rhs_free(rhs_shape.rank()));
        let at = |strides: &[usize], of: &[usize], point: &[usize]| -> usize {
            zip(of, point).map(|(&d, i)| strides[d] * i).sum()
        };
        let mut result = Vec::with_capacity(shape.element_count());
        let mut points = IndexIter::new(shape.dims());
        while let Some(point) = points.next_point() {
            let (batch, free) = point.split_at(dims.lhs_batch.len());
            let (first, second) = free.split_at(lhs_free.len());
            let x_at = at(&x_strides, &dims.lhs_batch, batch) + at(&x_strides, &lhs_free, first);
            let y_at = at(&y_strides, &dims.rhs_batch, batch) + at(&y_strides, &rhs_free, second);
            let mut sum: Option<Value> = None;
            let mut inner = IndexIter::new(&folded);
            while let Some(step) = inner.next_point() {
                let x = x[x_at + at(&x_strides, &dims.lhs_contracting, step)].vector();
                let y = y[y_at + at(&y_strides, &dims.rhs_contracting, step)].vector();
                sum = Some(match sum {
                    Some(sum) => b.fma(x, y, sum),
                    None => b.mul(x, y),
                });
            }
            result.push(match sum {
                Some(sum) => Elem::Vector(sum),
                None => elementwise::constant(b, ty, 0),
            });
        }
        Some(result)
    }

    /// A fold of small arrays, one element after the other.
    pub(super) fn reduce(
        &mut self,
        b: &mut Builder,
        computation: &Computation,
        instr: &Instr,
        op: &ops::Reduce,
        values: &[Vec<Leaf>],
        depth: usize,
    ) -> Option<Vec<Leaf>> {
        matches!(self.form, Form::Elements).then_some(())?;
        let (arrays, inits) = instr.operands.split_at(instr.operands.len() / 2);
        // A reducer of floats may have other types than what it folds, to which that is converted.
        let element = |id: &InstrId| array(computation, *id).map(|shape| shape.element());
        let params = self.module.computation(op.to_apply).program_shape().params;
        let found = params.iter().map(|param| param.as_array().map(|shape| shape.element()));
        found.eq(inits.iter().chain(arrays).map(element)).then_some(())?;
        let shape = array(computation, *arrays.first()?)?;
        let kept: Vec<usize> = (0..shape.rank()).filter(|d| !op.dimensions.contains(d)).collect();
        let mut folded: Vec<Leaf> = Vec::new();
        let mut elements = Vec::new();
        for &id in arrays {
            let leaf = values[id.index()].first()?;
            elements.push((leaf.ty, self.values(b, leaf, array(computation, id)?)?));
        }
        for &id in inits {
            folded.push(values[id.index()].first()?.clone());
        }
        let kept_sizes: Vec<usize> = kept.iter().map(|&d| shape.dims()[d]).collect();
        let kept_strides = strides(&kept_sizes);
        let results: usize = kept_sizes.iter().product();
        let mut all = vec![folded; results];
        let mut points = IndexIter::new(shape.dims());
        let mut at = 0;
        while let Some(point) = points.next_point() {
            let to: usize = zip(&kept, &kept_strides).map(|(&d, stride)| point[d] * stride).sum();
            let element = |(ty, elems): &(ElementType, Vec<Elem>)| Leaf {
                ty: *ty,
                data: Data::Values(vec![pick(elems, at)]),
            };
            let args: Vec<Leaf> =
                all[to].iter().cloned().chain(elements.iter().map(element)).collect();
            all[to] = self.nested(b, op.to_apply, &args, depth + 1);
            at += 1;
            (!self.failed).then_some(())?;
        }
        let leaf = |n: usize| {
            let mut elems = Vec::with_capacity(results);
            for of in &all {
                let Data::Values(values) = &of.get(n)?.data else { return None };
                elems.push(*values.first()?);
            }
            Some(Leaf { ty: all.first()?.get(n)?.ty, data: Data::Values(elems) })
        };
        (0..arrays.len()).map(leaf).collect()
    }
}

/// An array of these sizes whose elements are those of another at the places that `of` says.
pub(super) fn moved(sizes: &[usize], elems: &[Elem], of: impl Fn(&[usize]) -> usize) -> Vec<Elem> {
    let mut points = IndexIter::new(sizes);
    let mut result = Vec::new();
    while let Some(point) = points.next_point() {
        result.push(elems[of(point)]);
    }
    result
}

/// Arrays side by side.
pub(super) fn joined(
    sizes: &[usize],
    parts: &[(Vec<Elem>, &[usize])],
    dimension: usize,
) -> Option<Vec<Elem>> {
    let mut points = IndexIter::new(sizes);
    let mut result = Vec::new();
    while let Some(point) = points.next_point() {
        let mut point = point.to_vec();
        let part = parts.iter().find(|(_, dims)| {
            let is_here = point[dimension] < dims[dimension];
            point[dimension] -= if is_here { 0 } else { dims[dimension] };
            is_here
        });
        let (elems, dims) = part?;
        let at: usize = zip(&point, strides(dims)).map(|(i, stride)| i * stride).sum();
        result.push(elems[at]);
    }
    Some(result)
}
