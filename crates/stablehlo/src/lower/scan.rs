//! `chlo.scan`: a loop over the slices of arrays.

use std::borrow::Cow;

use helio_ir::ops::{Call, Direction, DynamicSlice, DynamicUpdateSlice, While};
use helio_ir::{CompId, DimKind, ElementType, Error, InstrId, Result, Shape};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::Type;

/// A scan: which slices it takes, and what its region is.
struct Scan {
    /// Along which slices lie.
    dimension: usize,
    /// The last slice, if that comes first.
    last: Option<i64>,
    /// How many arrays are made of slices, values carried, and arrays taken apart.
    outputs: usize,
    carries: usize,
    inputs: usize,
    to_apply: CompId,
}

impl<'m> Body<'_, 'm> {
    /// A loop over one dimension: the region takes a slice of each input and the carried values, and
    /// gives a slice of each output and the next carried values.
    pub(super) fn scan(&mut self, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let dimension = attrs.size("dimension")?;
        let is_reverse = attrs.flag("is_reverse")?;
        attrs.get("is_associative");
        let segments = attrs.sizes("operandSegmentSizes")?;
        let inputs = segments.first().copied().unwrap_or(1).min(site.operands.len());
        let (xs, carries) = site.operands.split_at(inputs);
        let outputs = site.result_types.len().checked_sub(carries.len());
        let outputs = outputs.ok_or_else(|| Error::invalid("fewer results than carried values"))?;
        let from = self.array(site.operands::<1>()?[0])?;
        let length = from.dims_and_kinds().nth(dimension).filter(|dim| dim.1 == DimKind::Static);
        let (length, _) = length.ok_or_else(|| {
            Error::unimplemented(format!("a scan over dimension {dimension} of {from}"))
        })?;
        let to_apply = self.element_region(site, 0, "scan")?;

        let init = self.scan_state(&site.result_types[..outputs], carries, xs)?;
        let shape = self.shape(init).clone();

        let mut condition = self.inner("scan_condition");
        let tuple = condition.parameter(0, shape.clone(), "state")?;
        let (index, end) = (condition.element_of(tuple, 0)?, condition.scalar(length as i64)?);
        let goes_on = condition.compare(Direction::Lt, index, end)?;
        let condition = condition.finish(vec![goes_on])?;

        let last = is_reverse.then_some(length as i64 - 1);
        let scan = Scan { dimension, last, outputs, carries: carries.len(), inputs, to_apply };
        let body = self.scan_body(&scan, shape)?;
        let result = self.push(While { condition, body }, &[init])?;
        (1..=site.result_types.len()).map(|i| self.element_of(result, i)).collect()
    }

    /// The state that a scan begins with: the index 0, outputs of zeros, the carried values, the inputs.
    fn scan_state(
        &mut self,
        outputs: &[Cow<'_, Type>],
        carries: &[InstrId],
        xs: &[InstrId],
    ) -> Result<InstrId> {
        let mut state = vec![self.scalar(0i64)?];
        for ty in outputs {
            let shape = match types::shape(ty)? {
                Shape::Array(array) => array,
                other => return Err(Error::invalid(format!("an array is needed, found {other}"))),
            };
            let zero = match shape.element() {
                ElementType::Pred => self.scalar(false)?,
                element => self.number(element, 0.0)?,
            };
            state.push(self.broadcast(zero, shape, &[])?);
        }
        state.extend(carries);
        state.extend(xs);
        self.tuple(&state)
    }

    /// An iteration of a scan on its state.
    fn scan_body(&mut self, scan: &Scan, state: Shape) -> Result<CompId> {
        let mut body = self.inner("scan_body");
        let tuple = body.parameter(0, state, "state")?;
        let count = 1 + scan.outputs + scan.carries + scan.inputs;
        let parts = (0..count).map(|i| body.element_of(tuple, i)).collect::<Result<Vec<_>>>()?;
        let (index, zero) = (parts[0], body.scalar(0i64)?);
        let at = match scan.last {
            Some(last) => {
                let last = body.scalar(last)?;
                body.sub(last, index)?
            }
            None => index,
        };
        let place =
            |rank: usize| (0..rank).map(move |d| if d == scan.dimension { at } else { zero });
        let (olds, rest) = parts[1..].split_at(scan.outputs);
        let (carried, arrays) = rest.split_at(scan.carries);
        let mut arguments = Vec::new();
        for &x in arrays {
            let shape = body.array(x)?;
            let mut sizes = shape.dims().to_vec();
            let size = sizes.get_mut(scan.dimension);
            *size.ok_or_else(|| Error::invalid("inputs of other ranks"))? = 1;
            let operands: Vec<InstrId> = [x].into_iter().chain(place(shape.rank())).collect();
            let slice = body.push(DynamicSlice { sizes: sizes.clone() }, &operands)?;
            sizes.remove(scan.dimension);
            arguments.push(body.reshape(slice, &sizes)?);
        }
        arguments.extend(carried);
        let call = Call { to_apply: scan.to_apply, is_composite: false };
        let call = body.push(call, &arguments)?;
        let results = body.unpack(call, scan.outputs + scan.carries)?;
        let one = body.scalar(1i64)?;
        let mut next = vec![body.add(index, one)?];
        for (&old, &slice) in olds.iter().zip(&results) {
            let shape = body.array(old)?;
            let mut dims = shape.dims().to_vec();
            let size = dims.get_mut(scan.dimension);
            *size.ok_or_else(|| Error::invalid("outputs of other ranks"))? = 1;
            let slice = body.reshape(slice, &dims)?;
            let operands: Vec<InstrId> =
                [old, slice].into_iter().chain(place(shape.rank())).collect();
            next.push(body.push(DynamicUpdateSlice, &operands)?);
        }
        next.extend(&results[scan.outputs..]);
        next.extend(arrays);
        let root = body.tuple(&next)?;
        body.finish(vec![root])
    }
}
