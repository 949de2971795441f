//! A loop written down: what it carries from iteration to iteration, and where that is before and after.

use std::cell::RefCell;
use std::iter::zip;

use helio_ir::ArrayShape;

use super::read::{Data, Form, Leaf, Reader};
use super::{CarriedValues, Kind, StateLoopPlan};
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, Cmp, Lane, MaskOp, Value};

impl StateLoopPlan<'_> {
    /// Whether an array is carried, and by this part.
    fn carries(&self, n: usize, part: CarriedValues, copy: usize) -> bool {
        let is_scalar = self.state[n].element_count() == 1;
        // Scalars are the same in all copies.
        let is_here = match part {
            CarriedValues::All | CarriedValues::Arrays => copy == 0 || !is_scalar,
            CarriedValues::Scalars => is_scalar,
        };
        self.kinds[n] == Kind::Carried && is_here
    }

    /// Whether a part writes an array.
    fn writes(&self, n: usize, part: CarriedValues) -> bool {
        let is_scalar = self.state[n].element_count() == 1;
        match (self.kinds[n], part) {
            (Kind::Unchanged, _) => false,
            (Kind::Stacked, part) => part != CarriedValues::Scalars,
            (Kind::Carried, CarriedValues::All) => true,
            (Kind::Carried, CarriedValues::Arrays) => !is_scalar,
            (Kind::Carried, CarriedValues::Scalars) => is_scalar,
        }
    }

    pub(super) fn params(&self, b: &mut Builder, part: CarriedValues) -> Vec<Buf> {
        let param = |(n, shape): (usize, &&ArrayShape)| {
            b.param(shape.size_bytes(), true, self.writes(n, part))
        };
        self.state.iter().enumerate().map(param).collect()
    }

    /// Writes the loop, for arrays in these forms side by side; its condition is asked `most` times at
    /// most.
    pub(super) fn write(
        &self,
        b: &mut Builder,
        buffers: &[Buf],
        forms: &[Form],
        part: CarriedValues,
        most: i64,
    ) -> Option<()> {
        let writer = LoopWriter::new(self, b, buffers, forms, part);
        let mut reader = Reader::new((self.module, self.target), forms[0], writer.versions.clone());
        reader.stores = part != CarriedValues::Scalars;
        let reader = RefCell::new(reader);
        let one = b.int(Lane::I32, 1);
        let limit = b.int(Lane::I32, most);
        let mut init = vec![b.int(Lane::I32, 0)];
        writer.flatten(b, &writer.initial, &mut init);
        let results = b.while_loop(
            &init,
            |b, values| {
                let early = b.compare(Cmp::Lt, values[0], limit);
                writer.condition(b, &mut reader.borrow_mut(), values, early)
            },
            |b, values| {
                let mut next = vec![b.add(values[0], one)];
                writer.body(b, &mut reader.borrow_mut(), values, &mut next);
                next
            },
        );
        if reader.borrow().failed {
            return None;
        }
        writer.store(b, &results)
    }

    /// Where a value of an array is in memory, and which lanes of it.
    fn place(&self, buf: Buf, n: usize, form: Form, i: usize) -> (Addr, Option<Value>) {
        let bytes = self.state[n].element().size_bytes() as i64;
        let one = Addr { buf, offset: i as i64 * bytes, terms: Vec::new(), lane_stride: 0 };
        match form {
            Form::Lanes { at, mask, .. } if self.state[n].element_count() > 1 => {
                let terms = at.iter().map(|at| (at.var, bytes)).collect();
                let offset = at.map_or(0, |at| at.offset * bytes);
                (Addr { buf, offset, terms, lane_stride: bytes }, mask)
            }
            _ => (one, None),
        }
    }

    /// An array of the state before the loop.
    fn initial(
        &self,
        b: &mut Builder,
        buf: Buf,
        n: usize,
        form: Form,
        part: CarriedValues,
    ) -> Leaf {
        let ty = self.state[n].element();
        if self.kinds[n] != Kind::Carried {
            return Leaf { ty, data: Data::Memory { buf, version: 0 } };
        }
        let count = match form {
            Form::Lanes { .. } => 1,
            Form::Elements => self.state[n].element_count(),
        };
        let elem = |i: usize| {
            // What depends on arrays is left to the kernel of arrays.
            if part == CarriedValues::Scalars && self.state[n].element_count() > 1 {
                return elementwise::constant(b, ty, 0);
            }
            let (addr, mask) = self.place(buf, n, form, i);
            elementwise::load(b, ty, addr, mask)
        };
        Leaf { ty, data: Data::Values((0..count).map(elem).collect()) }
    }
}

/// A loop that is being written, for several forms of its arrays.
struct LoopWriter<'a> {
    plan: &'a StateLoopPlan<'a>,
    /// Where each array of the state is.
    buffers: &'a [Buf],
    forms: &'a [Form],
    /// Which arrays this loop writes.
    part: CarriedValues,
    /// The state before the loop, for each form.
    initial: Vec<Vec<Leaf>>,
    /// What is carried in registers: the form, and the array of the state.
    carried: Vec<(usize, usize)>,
    /// For each array that stays in memory, which of its versions that holds at first.
    versions: Vec<Option<usize>>,
}

impl<'a> LoopWriter<'a> {
    fn new(
        plan: &'a StateLoopPlan<'a>,
        b: &mut Builder,
        buffers: &'a [Buf],
        forms: &'a [Form],
        part: CarriedValues,
    ) -> Self {
        let count = plan.state.len();
        let mut initial: Vec<Vec<Leaf>> = Vec::with_capacity(forms.len());
        for &form in forms {
            let leaf = |n: usize| plan.initial(b, buffers[n], n, form, part);
            initial.push((0..count).map(leaf).collect());
        }
        let carried = (0..forms.len())
            .flat_map(|copy| (0..count).map(move |n| (copy, n)))
            .filter(|&(copy, n)| plan.carries(n, part, copy))
            .collect();
        let stacked = |kind: &Kind| (*kind == Kind::Stacked).then_some(0);
        let versions = plan.kinds.iter().map(stacked).collect();
        LoopWriter { plan, buffers, forms, part, initial, carried, versions }
    }

    /// Appends the values that are carried for a state.
    fn flatten(&self, b: &mut Builder, state: &[Vec<Leaf>], values: &mut Vec<Value>) {
        for &(copy, n) in &self.carried {
            flatten(b, &state[copy][n], values);
        }
    }

    /// The state for each form, of the count of iterations and the values that are carried.
    fn state(&self, b: &mut Builder, values: &[Value]) -> Vec<Vec<Leaf>> {
        let mut values = values[1..].iter();
        let mut state = self.initial.clone();
        for &(copy, n) in &self.carried {
            state[copy][n] = restore(b, &self.initial[copy][n], &mut values);
            if copy == 0 && self.plan.state[n].element_count() == 1 {
                let scalar = state[0][n].clone();
                state.iter_mut().for_each(|state| state[n] = scalar.clone());
            }
        }
        state
    }

    /// Whether another iteration follows: the loop's condition says so, and `early`, that there were
    /// not too many.
    fn condition(
        &self,
        b: &mut Builder,
        reader: &mut Reader<'_>,
        values: &[Value],
        early: Value,
    ) -> Value {
        let state = self.state(b, values);
        let result = reader.computation(b, self.plan.op.condition, &state[0]);
        match result.first().map(|leaf| &leaf.data) {
            Some(Data::Values(values)) => match values[..] {
                [Elem::Mask(go)] => b.mask_op(MaskOp::And, go, early),
                _ => early,
            },
            _ => {
                reader.failed = true;
                early
            }
        }
    }

    /// Appends what one iteration carries to the next one.
    fn body(
        &self,
        b: &mut Builder,
        reader: &mut Reader<'_>,
        values: &[Value],
        next: &mut Vec<Value>,
    ) {
        let state = self.state(b, values);
        let mut results = Vec::with_capacity(self.forms.len());
        let mut begins = Vec::with_capacity(self.forms.len());
        for (state, &form) in zip(&state, self.forms) {
            begins.push(b.position());
            reader.form = form;
            reader.versions.clone_from(&self.versions);
            results.push(self.iterate(b, reader, state).unwrap_or_else(|| {
                reader.failed = true;
                state.clone()
            }));
        }
        // (What lies in memory one form may read after another has written it.)
        if self.plan.kinds.iter().all(|kind| *kind == Kind::Carried) {
            b.weave(&begins);
        }
        self.flatten(b, &results, next);
        if next.len() != values.len() {
            reader.failed = true;
            next.clear();
            next.extend_from_slice(values);
        }
    }

    /// The state after one iteration, unless an array in memory is not what was written there last.
    fn iterate(
        &self,
        b: &mut Builder,
        reader: &mut Reader<'_>,
        state: &[Leaf],
    ) -> Option<Vec<Leaf>> {
        let plan = self.plan;
        let mut result = reader.computation(b, plan.op.body, state);
        for (n, leaf) in result.iter_mut().enumerate() {
            if plan.kinds[n] == Kind::Carried
                && let Some(elems) = reader.values(b, leaf, plan.state[n])
            {
                leaf.data = Data::Values(elems);
            }
        }
        let is_last = |(n, leaf): (usize, &Leaf)| match leaf.data {
            Data::Memory { buf, version } => {
                buf == self.buffers[n] && version == reader.versions[n].unwrap_or(0)
            }
            Data::Values(_) => plan.kinds[n] == Kind::Carried,
        };
        result.iter().enumerate().all(is_last).then_some(result)
    }

    /// Writes what was carried to where its arrays are.
    fn store(&self, b: &mut Builder, results: &[Value]) -> Option<()> {
        let plan = self.plan;
        let last = self.state(b, results);
        for &(copy, n) in self.carried.iter().filter(|&&(_, n)| plan.writes(n, self.part)) {
            let Data::Values(elems) = &last[copy][n].data else { return None };
            let ty = plan.state[n].element();
            for (i, &elem) in elems.iter().enumerate() {
                let (addr, mask) = plan.place(self.buffers[n], n, self.forms[copy], i);
                elementwise::store(b, ty, elem, addr, mask);
            }
        }
        Some(())
    }
}

/// The values that a loop carries for a leaf; masks are carried as vectors of 0 and 1.
fn flatten(b: &mut Builder, leaf: &Leaf, values: &mut Vec<Value>) {
    let Data::Values(elems) = &leaf.data else { return };
    for &elem in elems {
        match elem {
            Elem::Vector(x) => values.push(x),
            Elem::Complex(re, im) => values.extend([re, im]),
            Elem::Mask(set) => {
                let (one, zero) = (b.int(Lane::I32, 1), b.int(Lane::I32, 0));
                values.push(b.select(set, one, zero));
            }
        }
    }
}

/// The leaf that these values carry; `like` is another of the same kind.
fn restore<'v>(b: &mut Builder, like: &Leaf, values: &mut impl Iterator<Item = &'v Value>) -> Leaf {
    let Data::Values(elems) = &like.data else { return like.clone() };
    let mut next = || *values.next().expect("as many values as were flattened");
    let mut elem = |like: &Elem| match like {
        Elem::Vector(_) => Elem::Vector(next()),
        Elem::Complex(..) => {
            let re = next();
            Elem::Complex(re, next())
        }
        Elem::Mask(_) => {
            let zero = b.int(Lane::I32, 0);
            Elem::Mask(b.compare(Cmp::Ne, next(), zero))
        }
    };
    Leaf { ty: like.ty, data: Data::Values(elems.iter().map(&mut elem).collect()) }
}
