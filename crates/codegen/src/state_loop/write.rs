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

    /// Writes the loop, for arrays in these forms side by side.
    pub(super) fn write(
        &self,
        b: &mut Builder,
        buffers: &[Buf],
        forms: &[Form],
        part: CarriedValues,
        most: i64,
    ) -> Option<()> {
        let stacked = |kind: &Kind| (*kind == Kind::Stacked).then_some(0);
        let versions: Vec<Option<usize>> = self.kinds.iter().map(stacked).collect();
        let mut reader = Reader::new((self.module, self.target), forms[0], versions.clone());
        reader.stores = part != CarriedValues::Scalars;
        let mut initial: Vec<Vec<Leaf>> = Vec::with_capacity(forms.len());
        for &form in forms {
            let leaf = |n: usize| self.initial(b, buffers[n], n, form, part);
            initial.push((0..self.state.len()).map(leaf).collect());
        }
        let carried: Vec<(usize, usize)> = (0..forms.len())
            .flat_map(|copy| (0..self.state.len()).map(move |n| (copy, n)))
            .filter(|&(copy, n)| self.carries(n, part, copy))
            .collect();
        let one = b.int(Lane::I32, 1);
        let limit = b.int(Lane::I32, most);
        let mut init = vec![b.int(Lane::I32, 0)];
        for &(copy, n) in &carried {
            flatten(b, &initial[copy][n], &mut init);
        }
        // The values of the state inside of the loop.
        let unpack = |b: &mut Builder, values: &[Value]| -> Vec<Vec<Leaf>> {
            let mut values = values[1..].iter();
            let mut state = initial.clone();
            for &(copy, n) in &carried {
                state[copy][n] = restore(b, &initial[copy][n], &mut values);
                if copy == 0 && self.state[n].element_count() == 1 {
                    let scalar = state[0][n].clone();
                    state.iter_mut().for_each(|state| state[n] = scalar.clone());
                }
            }
            state
        };
        let reader = RefCell::new(reader);
        let results = b.while_loop(
            &init,
            |b, values| {
                let state = unpack(b, values);
                let mut reader = reader.borrow_mut();
                let result = reader.computation(b, self.op.condition, &state[0]);
                let early = b.compare(Cmp::Lt, values[0], limit);
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
            },
            |b, values| {
                let state = unpack(b, values);
                let mut reader = reader.borrow_mut();
                let mut results = Vec::with_capacity(forms.len());
                for (state, &form) in zip(&state, forms) {
                    reader.form = form;
                    reader.versions.clone_from(&versions);
                    let mut result = reader.computation(b, self.op.body, state);
                    for (n, leaf) in result.iter_mut().enumerate() {
                        if self.kinds[n] == Kind::Carried
                            && let Some(elems) = reader.values(b, leaf, self.state[n])
                        {
                            leaf.data = Data::Values(elems);
                        }
                    }
                    // What was replaced last is what there is in the end.
                    let is_last = |(n, leaf): (usize, &Leaf)| match leaf.data {
                        Data::Memory { buf, version } => {
                            buf == buffers[n] && version == reader.versions[n].unwrap_or(0)
                        }
                        Data::Values(_) => self.kinds[n] == Kind::Carried,
                    };
                    let all_last = result.iter().enumerate().all(is_last);
                    reader.failed |= !all_last;
                    results.push(if all_last { result } else { state.clone() });
                }
                let mut next = vec![b.add(values[0], one)];
                for &(copy, n) in &carried {
                    flatten(b, &results[copy][n], &mut next);
                }
                if next.len() != values.len() {
                    reader.failed = true;
                    next = values.to_vec();
                }
                next
            },
        );
        if reader.borrow().failed {
            return None;
        }
        let last = unpack(b, &results);
        for &(copy, n) in carried.iter().filter(|&&(_, n)| self.writes(n, part)) {
            let Data::Values(elems) = &last[copy][n].data else { return None };
            let ty = self.state[n].element();
            for (i, &elem) in elems.iter().enumerate() {
                let (addr, mask) = self.place(buffers[n], n, forms[copy], i);
                elementwise::store(b, ty, elem, addr, mask);
            }
        }
        Some(())
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
