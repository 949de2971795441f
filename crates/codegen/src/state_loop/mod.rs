//! Loops whose state fits in registers.
//!
//! A `while` whose body is element-wise becomes a kernel that holds its state in registers from the
//! first iteration to the last: a scalar in all lanes of a vector, an array in the lanes of one. Of
//! arrays that are larger, each vector's worth goes through all iterations by itself, if nothing but
//! scalars says how many there are. Arrays of a few elements each may also be moved about and
//! multiplied with each other; their elements are values of their own then. Arrays that stay as they
//! are may be read at any place, and of others a part may be replaced in each iteration, as a scan
//! replaces rows of its results.

mod read;
mod stacked;

use std::cell::RefCell;
use std::iter::zip;

use helio_ir::ops::While;
use helio_ir::{ArrayShape, CompId, Module, Op, Shape};

use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, Cmp, IndexOp, Kernel, Lane, MaskOp, Value};
use crate::lower::Target;
use read::{At, Data, Form, Leaf, MAX_ELEMENTS, Reader};

/// A call ends after so many iterations even if the condition still holds, so that a loop without
/// end can be stopped from outside.
const MAX_TRIPS: i64 = 1 << 13;
/// The work of a call, in cycles or so, that is enough for that.
const CALL_CYCLES: i64 = 1 << 24;
/// Fewer iterations would not be worth to read and write all arrays.
const FEW_TRIPS: i64 = 64;
/// More instructions than this in a body would not stay in registers.
const MAX_INSTRS: usize = 400;
/// The state has at most so many arrays, ...
const MAX_STATE: usize = 24;
/// ... and so many values.
const MAX_CARRIED: usize = 32;
/// Fusions in the body are looked into this deep.
const MAX_DEPTH: usize = 8;
/// Vectors of arrays that go through iterations side by side fill so many registers.
const SIDE_BY_SIDE: usize = 12;

/// A loop as kernels, to be run one after the other.
#[derive(Clone, Debug)]
pub struct StateLoop {
    /// The kernels. Their parameters are the arrays of the state in order.
    pub kernels: Vec<Kernel>,
    /// They run the body as long as the condition holds, at most so many times.
    pub most: i64,
    /// The work of an iteration of a unit of their range, in cycles or so.
    pub cost: u64,
}

/// The kernels of a loop, if it is one of those. They change the arrays of the state in place; those
/// that the body passes on unchanged, as `unchanged` says, are only read.
pub fn state_loop(
    module: &Module,
    op: &While,
    unchanged: &[bool],
    target: Target,
) -> Option<StateLoop> {
    let state = state_of(module, op)?;
    if state.len() > MAX_STATE || state.len() != unchanged.len() {
        return None;
    }
    let mut size = Size { module, instrs: 0, widest: if target.wide { 8 } else { 4 } };
    [op.condition, op.body].into_iter().try_for_each(|id| size.computation(id, 0))?;
    let kinds = zip(&state, unchanged).enumerate().map(|(n, (shape, &unchanged))| {
        if unchanged {
            Kind::Unchanged
        } else if shape.element_count() > 1 && stacked::is_stacked(module, op.body, n) {
            Kind::Stacked
        } else {
            Kind::Carried
        }
    });
    let kinds: Vec<Kind> = kinds.collect();
    let lanes = target.vector_bytes / size.widest;
    let plan = Plan { module, op, state: &state, kinds: &kinds, lanes, instrs: size.instrs };
    plan.in_lanes().or_else(|| plan.by_elements())
}

/// What becomes of an array of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It stays as it is.
    Unchanged,
    /// Parts of it are replaced.
    Stacked,
    /// It is computed anew.
    Carried,
}

/// The arrays of the state.
fn state_of<'m>(module: &'m Module, op: &While) -> Option<Vec<&'m ArrayShape>> {
    let body = module.computation(op.body);
    let param = *body.params().get(&0)?;
    body.instr(param).shape.leaves().into_iter().map(Shape::as_array).collect()
}

/// What is computed at all.
struct Size<'m> {
    module: &'m Module,
    instrs: usize,
    /// Bytes of the widest lane.
    widest: usize,
}

impl Size<'_> {
    /// Adds a computation; `None` if that is too much, or if there is something in it that kernels
    /// do not hold.
    fn computation(&mut self, id: CompId, depth: usize) -> Option<()> {
        let computation = self.module.computation(id);
        self.instrs += computation.instrs().len();
        if depth > MAX_DEPTH || self.instrs > MAX_INSTRS {
            return None;
        }
        for instr in computation.instrs() {
            for leaf in instr.shape.leaves() {
                let shape = leaf.as_array().filter(|shape| shape.is_static())?;
                (shape.element_count() > 0).then_some(())?;
                self.widest = self.widest.max(elementwise::lane_bytes(shape.element())?);
            }
            if matches!(instr.op, Op::Fusion(_) | Op::Call(_) | Op::Reduce(_)) {
                let callees = instr.op.callees();
                callees.into_iter().try_for_each(|id| self.computation(id, depth + 1))?;
            }
        }
        Some(())
    }
}

/// A loop, and how wide vectors are.
struct Plan<'p> {
    module: &'p Module,
    op: &'p While,
    state: &'p [&'p ArrayShape],
    kinds: &'p [Kind],
    lanes: usize,
    instrs: usize,
}

/// Which of the carried values a kernel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    All,
    /// Those of arrays; scalars besides, without being written.
    Arrays,
    Scalars,
}

impl Plan<'_> {
    /// Arrays in lanes.
    fn in_lanes(&self) -> Option<StateLoop> {
        let carried = || zip(self.state, self.kinds).filter(|(_, kind)| **kind == Kind::Carried);
        let counts = || carried().map(|(shape, _)| shape.element_count()).filter(|&n| n > 1);
        let count = counts().next().unwrap_or(1);
        if counts().any(|other| other != count) {
            return None;
        }
        let mask = |b: &mut Builder| {
            let (zero, end) = (b.index(0), b.index(count as i64));
            (count > 1 && count < self.lanes).then(|| b.mask_below(zero, end))
        };
        if count <= self.lanes {
            let mut b = Builder::new(self.lanes);
            let buffers = self.params(&mut b, Part::All);
            let mask = mask(&mut b);
            let form = Form::Lanes { count, at: None, mask };
            self.write(&mut b, &buffers, &[form], Part::All, MAX_TRIPS)?;
            let cost = self.instrs as u64;
            return Some(StateLoop { kernels: vec![b.finish()], most: MAX_TRIPS, cost });
        }

        let vectors = count.div_ceil(self.lanes) as i64;
        let work = vectors.saturating_mul(self.instrs as i64).max(1);
        let most = (CALL_CYCLES / work).clamp(FEW_TRIPS, MAX_TRIPS);
        let arrays = zip(self.state, self.kinds)
            .filter(|(shape, kind)| **kind != Kind::Stacked && shape.element_count() == count)
            .map(|(shape, _)| 1 + usize::from(shape.element().is_complex()))
            .sum::<usize>();
        let copies = match self.instrs {
            ..=40 => SIDE_BY_SIDE / arrays.max(1),
            41..=80 => 2,
            _ => 1,
        };
        let copies = 1 << copies.clamp(1, 4).ilog2();

        let mut b = Builder::new(self.lanes);
        let buffers = self.params(&mut b, Part::Arrays);
        let lanes = self.lanes as i64;
        let step = lanes * copies;
        b.set_range(count as i64, step);
        let (begin, end) = (b.begin(), b.end());
        let length = b.index_op(IndexOp::Sub, end, begin);
        let whole = b.index(-step);
        let whole = b.index_op(IndexOp::And, length, whole);
        let whole = b.index_op(IndexOp::Add, begin, whole);
        let mut done = Some(());
        b.for_loop(begin, whole, step, &[], |b, var, _| {
            let at = |n: i64| Some(At { var, offset: n * lanes });
            let form = |n: i64| Form::Lanes { count, at: at(n), mask: None };
            let forms: Vec<Form> = (0..copies).map(form).collect();
            done = self.write(b, &buffers, &forms, Part::Arrays, most);
            Vec::new()
        });
        done?;
        if count as i64 % step != 0 {
            b.for_loop(whole, end, lanes, &[], |b, var, _| {
                let mask = Some(b.mask_below(var, end));
                let form = Form::Lanes { count, at: Some(At { var, offset: 0 }), mask };
                done = self.write(b, &buffers, &[form], Part::Arrays, most);
                Vec::new()
            });
            done?;
        }
        let mut kernels = vec![b.finish()];
        if carried().any(|(shape, _)| shape.element_count() == 1) {
            let mut b = Builder::new(self.lanes);
            let buffers = self.params(&mut b, Part::Scalars);
            let form = Form::Lanes { count, at: None, mask: None };
            self.write(&mut b, &buffers, &[form], Part::Scalars, most)?;
            kernels.push(b.finish());
        }
        let cost = (self.instrs as u64).div_ceil(self.lanes as u64);
        Some(StateLoop { kernels, most, cost })
    }

    /// Elements as values of their own.
    fn by_elements(&self) -> Option<StateLoop> {
        let carried = zip(self.state, self.kinds).filter(|(_, kind)| **kind == Kind::Carried);
        let counts: Vec<usize> = carried.map(|(shape, _)| shape.element_count()).collect();
        let fits = counts.iter().all(|&count| count <= MAX_ELEMENTS);
        if !fits || counts.iter().sum::<usize>() > MAX_CARRIED {
            return None;
        }
        let mut b = Builder::new(self.lanes);
        let buffers = self.params(&mut b, Part::All);
        self.write(&mut b, &buffers, &[Form::Elements], Part::All, MAX_TRIPS)?;
        let cost = 4 * self.instrs as u64;
        Some(StateLoop { kernels: vec![b.finish()], most: MAX_TRIPS, cost })
    }

    /// Whether an array is carried, and by this part.
    fn carries(&self, n: usize, part: Part, copy: usize) -> bool {
        let is_scalar = self.state[n].element_count() == 1;
        // Scalars are the same in all copies.
        let is_here = match part {
            Part::All | Part::Arrays => copy == 0 || !is_scalar,
            Part::Scalars => is_scalar,
        };
        self.kinds[n] == Kind::Carried && is_here
    }

    /// Whether a part writes an array.
    fn writes(&self, n: usize, part: Part) -> bool {
        let is_scalar = self.state[n].element_count() == 1;
        match (self.kinds[n], part) {
            (Kind::Unchanged, _) => false,
            (Kind::Stacked, part) => part != Part::Scalars,
            (Kind::Carried, Part::All) => true,
            (Kind::Carried, Part::Arrays) => !is_scalar,
            (Kind::Carried, Part::Scalars) => is_scalar,
        }
    }

    fn params(&self, b: &mut Builder, part: Part) -> Vec<Buf> {
        let param = |(n, shape): (usize, &&ArrayShape)| {
            b.param(shape.size_bytes(), true, self.writes(n, part))
        };
        self.state.iter().enumerate().map(param).collect()
    }

    /// Writes the loop, for arrays in these forms side by side.
    fn write(
        &self,
        b: &mut Builder,
        buffers: &[Buf],
        forms: &[Form],
        part: Part,
        most: i64,
    ) -> Option<()> {
        let stacked = |kind: &Kind| (*kind == Kind::Stacked).then_some(0);
        let versions: Vec<Option<usize>> = self.kinds.iter().map(stacked).collect();
        let mut reader = Reader::new(self.module, forms[0], versions.clone());
        reader.stores = part != Part::Scalars;
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
    fn initial(&self, b: &mut Builder, buf: Buf, n: usize, form: Form, part: Part) -> Leaf {
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
            if part == Part::Scalars && self.state[n].element_count() > 1 {
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
