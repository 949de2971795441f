//! Products of few rows each with the same matrix, as the steps of an unrolled recurrent network have them
//! for their inputs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use helio_ir::ops::{Concatenate, Dot, DotDims, Reshape, Slice};
use helio_ir::{ArrayShape, Computation, Error, Instr, InstrId, Module, Op, Result};
use rustc_hash::FxHashMap;

use crate::draft::{Draft, Original};
use crate::pass::PassCx;
use crate::rebuild::rebuild;

/// A product with more rows than this takes longer to compute than its matrix takes to be read.
const MAX_ROWS: usize = 16;

/// Rows with which a product is as fast as it gets.
const ENOUGH_ROWS: usize = 256;

/// Elements from which on a matrix takes long enough to be read.
const MIN_ELEMENTS: usize = 1 << 13;

/// Kinds of products with one matrix that are looked at, so that it takes time in proportion to the
/// computation.
const MAX_KINDS: usize = 8;

/// Matrices whose products are looked at, those with the most: for each the computation is gone through once.
const MAX_GROUPS: usize = 16;

/// Makes one of products of few rows each with the same matrix, if none needs what another computes: the
/// matrix is read once.
///
/// Where several matrices have products, which depend on each other, it is decided by a walk in the order
/// in which things can be computed, in which products wait for others with their matrix as long as
/// there is something else to do. What is merged is computed at once in that order, so nothing ever comes to
/// depend on itself.
pub(crate) fn merge_products(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let has_products = |computation: &Computation| {
        let is_dot = |instr: &&Instr| matches!(instr.op, Op::Dot(_));
        computation.instrs().iter().filter(is_dot).nth(1).is_some()
    };
    if !module.computations().iter().any(has_products) {
        return Ok(module);
    }
    rebuild(module, cx.watch, |new, computation| {
        if !has_products(&computation) || new.computation_has_effect(&computation) {
            return Ok(computation);
        }
        new.count_steps(computation.instrs().len())?;
        let candidates = Candidates::of(computation.instrs());
        if candidates.groups.is_empty() {
            return Ok(computation);
        }
        let units = Walk::new(computation.instrs(), candidates).units();
        if units.merged.is_empty() {
            return Ok(computation);
        }
        let (mut draft, old) = Draft::replacing(new, computation);
        let map = units.write(&mut draft, &old)?;
        draft.finish(map[old.root.index()])
    })
}

/// Which operand of products with the same matrix is the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side {
    Lhs,
    Rhs,
}

/// Products that may be one: of one kind, with the same matrix, and with few rows of the same shape each.
#[derive(Debug, Default)]
struct Group {
    /// Those that could be computed now, ...
    waiting: Vec<InstrId>,
    /// ... and the highest level of these.
    level: usize,
    /// For each level, how many are not computed yet. A product's level is one more than the highest of those
    /// of the group that it needs.
    left: Vec<usize>,
    /// The most that are worth joining.
    most: usize,
}

impl Group {
    /// Whether to wait longer would bring no other product to join those that wait.
    fn is_ripe(&self) -> bool {
        self.waiting.len() == self.left[..=self.level].iter().sum::<usize>()
    }
}

/// The products of a computation that may be merged.
#[derive(Debug, Default)]
struct Candidates {
    groups: Vec<Group>,
    /// The group of each instruction, and its level in it.
    group_of: Vec<Option<(usize, usize)>>,
}

impl Candidates {
    fn of(instrs: &[Instr]) -> Self {
        let mut found: FxHashMap<(InstrId, Side), Vec<Vec<InstrId>>> = FxHashMap::default();
        for (i, instr) in instrs.iter().enumerate() {
            let Some((matrix, side, _)) = few_rows(instrs, instr) else { continue };
            let lists = found.entry((matrix, side)).or_default();
            let is_alike = |list: &Vec<InstrId>| {
                let first = &instrs[list[0].index()];
                let shape = |of: &Instr| &instrs[of.operands[side.rows()].index()].shape;
                first.op == instr.op && shape(first) == shape(instr)
            };
            let id = InstrId(i as u32);
            match lists.iter().position(is_alike) {
                Some(place) => lists[place].push(id),
                None if lists.len() < MAX_KINDS => lists.push(vec![id]),
                None => {}
            }
        }
        let mut lists: Vec<Vec<InstrId>> =
            found.into_values().flatten().filter(|list| list.len() > 1).collect();
        // Not in the order of a hash table, which nobody could foresee.
        lists.sort_unstable_by_key(|list| (Reverse(list.len()), list[0]));
        lists.truncate(MAX_GROUPS);
        let mut candidates = Candidates {
            groups: Vec::with_capacity(lists.len()),
            group_of: vec![None; instrs.len()],
        };
        for list in lists {
            let rows = few_rows(instrs, &instrs[list[0].index()]).map_or(1, |(_, _, rows)| rows);
            let mut left = Vec::new();
            for (id, level) in list.iter().zip(levels(instrs, &list)) {
                candidates.group_of[id.index()] = Some((candidates.groups.len(), level));
                left.resize(left.len().max(level + 1), 0);
                left[level] += 1;
            }
            let most = ENOUGH_ROWS / rows;
            candidates.groups.push(Group { left, most, ..Group::default() });
        }
        candidates
    }
}

/// The level of each of some products, which are in the order of the computation, among them.
fn levels(instrs: &[Instr], members: &[InstrId]) -> Vec<usize> {
    let mut below = vec![0; instrs.len()];
    let mut levels = Vec::with_capacity(members.len());
    let first = members.first().map_or(instrs.len(), |id| id.index());
    for (i, instr) in instrs.iter().enumerate().skip(first) {
        let level = needs(instr).map(|id| below[id.index()]).max().unwrap_or(0);
        let is_member = members.get(levels.len()).is_some_and(|id| id.index() == i);
        if is_member {
            levels.push(level);
        }
        below[i] = level + usize::from(is_member);
    }
    levels
}

impl Side {
    /// The number of the operand that is the matrix.
    fn matrix(self) -> usize {
        match self {
            Side::Lhs => 0,
            Side::Rhs => 1,
        }
    }

    /// The number of the operand that has the rows.
    fn rows(self) -> usize {
        1 - self.matrix()
    }
}

/// The matrix of a product of few rows, which operand it is, and how many rows the other one has.
fn few_rows(instrs: &[Instr], instr: &Instr) -> Option<(InstrId, Side, usize)> {
    let (Op::Dot(op), &[lhs, rhs]) = (&instr.op, &instr.operands[..]) else { return None };
    let array = |id: InstrId| instrs[id.index()].shape.as_array().filter(|array| array.is_static());
    let (x, y) = (array(lhs)?, array(rhs)?);
    if !op.dims.lhs_batch.is_empty() {
        return None;
    }
    let free = |of: &ArrayShape, dims: Vec<usize>| dims.iter().map(|&d| of.dims()[d]).product();
    let rows: usize = free(x, op.dims.lhs_free(x.rank()));
    let columns: usize = free(y, op.dims.rhs_free(y.rank()));
    let (matrix, side, few, many) = match rows <= columns {
        true => (rhs, Side::Rhs, rows, columns),
        false => (lhs, Side::Lhs, columns, rows),
    };
    let is_large = array(matrix)?.element_count() >= MIN_ELEMENTS;
    ((1..=MAX_ROWS).contains(&few) && few < many && is_large).then_some((matrix, side, few))
}

/// A walk over a computation in an order in which it can be computed.
struct Walk<'a> {
    instrs: &'a [Instr],
    candidates: Candidates,
    /// For each instruction, how many of what it needs are not computed yet.
    missing: Vec<u32>,
    /// The instructions that need each one.
    users: Users,
    /// What can be computed now and waits for nothing, the first of the computation first.
    ready: BinaryHeap<Reverse<InstrId>>,
    /// The groups of which a product waits, the one to be computed next first.
    waiting: BTreeSet<Turn>,
    units: Units,
}

/// When a group is computed, if there is nothing else to do: one that is ripe, then the one of which the fewest
/// wait, whose number this is.
type Turn = (bool, usize, usize);

impl<'a> Walk<'a> {
    fn new(instrs: &'a [Instr], candidates: Candidates) -> Self {
        let missing: Vec<u32> = instrs.iter().map(|instr| needs(instr).count() as u32).collect();
        let ids = (0..instrs.len() as u32).map(InstrId);
        let ready = ids.filter(|id| missing[id.index()] == 0).map(Reverse).collect();
        let units = Units { merged: Vec::new(), unit_of: vec![None; instrs.len()] };
        let users = Users::of(instrs);
        Walk { instrs, candidates, missing, users, ready, waiting: BTreeSet::new(), units }
    }

    fn units(mut self) -> Units {
        loop {
            while let Some(Reverse(id)) = self.ready.pop() {
                match self.candidates.group_of[id.index()] {
                    Some((group, level)) => self.wait(id, group, level),
                    None => self.done(id),
                }
            }
            let Some((_, _, group)) = self.waiting.pop_first() else { return self.units };
            self.compute(group);
        }
    }

    fn turn(&self, number: usize) -> Turn {
        let group = &self.candidates.groups[number];
        (!group.is_ripe(), group.waiting.len(), number)
    }

    fn wait(&mut self, id: InstrId, number: usize, level: usize) {
        self.waiting.remove(&self.turn(number));
        let group = &mut self.candidates.groups[number];
        group.level = if group.waiting.is_empty() { level } else { group.level.max(level) };
        group.waiting.push(id);
        self.waiting.insert(self.turn(number));
    }

    fn done(&mut self, id: InstrId) {
        for &user in self.users.of_instr(id) {
            self.missing[user.index()] -= 1;
            if self.missing[user.index()] == 0 {
                self.ready.push(Reverse(user));
            }
        }
    }

    /// Computes what waits of a group, joined.
    fn compute(&mut self, group: usize) {
        let group = &mut self.candidates.groups[group];
        let mut members = std::mem::take(&mut group.waiting);
        members.sort_unstable();
        for joined in members.chunks(group.most).filter(|joined| joined.len() > 1) {
            let Some((_, side, _)) = few_rows(self.instrs, &self.instrs[joined[0].index()]) else {
                continue;
            };
            for id in joined {
                self.units.unit_of[id.index()] = Some(self.units.merged.len());
            }
            self.units.merged.push((side, joined.to_vec()));
        }
        for id in members {
            if let Some((group, level)) = self.candidates.group_of[id.index()] {
                self.candidates.groups[group].left[level] -= 1;
            }
            self.done(id);
        }
    }
}

/// What an instruction waits for.
fn needs(instr: &Instr) -> impl Iterator<Item = InstrId> + '_ {
    let before = instr.extra.iter().flat_map(|extra| &extra.control_predecessors);
    instr.operands.iter().chain(before).copied()
}

/// The users of each instruction, one list after the other.
struct Users {
    begins: Vec<u32>,
    users: Vec<InstrId>,
}

impl Users {
    fn of(instrs: &[Instr]) -> Self {
        let mut begins = vec![0_u32; instrs.len() + 1];
        for id in instrs.iter().flat_map(needs) {
            begins[id.index() + 1] += 1;
        }
        for i in 0..instrs.len() {
            begins[i + 1] += begins[i];
        }
        let mut next = begins.clone();
        let mut users = vec![InstrId(0); begins[instrs.len()] as usize];
        for (i, instr) in instrs.iter().enumerate() {
            for id in needs(instr) {
                users[next[id.index()] as usize] = InstrId(i as u32);
                next[id.index()] += 1;
            }
        }
        Users { begins, users }
    }

    fn of_instr(&self, id: InstrId) -> &[InstrId] {
        let (begin, end) = (self.begins[id.index()], self.begins[id.index() + 1]);
        &self.users[begin as usize..end as usize]
    }
}

/// Which products become one.
struct Units {
    /// Products that become one, and which operand their matrix is.
    merged: Vec<(Side, Vec<InstrId>)>,
    /// For each instruction, which of these it belongs to.
    unit_of: Vec<Option<usize>>,
}

impl Units {
    /// Writes a computation in its order, but for what merged products need, which comes before them. Gives,
    /// for each old instruction, what stands for it.
    fn write(&self, draft: &mut Draft<'_>, old: &Original) -> Result<Vec<InstrId>> {
        const NOT_YET: InstrId = InstrId(u32::MAX);
        let mut map = vec![NOT_YET; old.instrs.len()];
        let mut stack: Vec<(InstrId, bool)> = Vec::new();
        for first in (0..old.instrs.len() as u32).map(InstrId) {
            stack.push((first, false));
            while let Some((id, needs_are_there)) = stack.pop() {
                if map[id.index()] != NOT_YET {
                    continue;
                }
                let unit = self.unit_of[id.index()].map(|unit| &self.merged[unit]);
                let members = unit.map_or(std::slice::from_ref(&id), |(_, members)| members);
                if !needs_are_there {
                    stack.push((id, true));
                    let needed = members.iter().flat_map(|id| needs(&old.instrs[id.index()]));
                    let missing = needed.filter(|id| map[id.index()] == NOT_YET);
                    let before = stack.len();
                    stack.extend(missing.map(|id| (id, false)));
                    stack[before..].reverse();
                    continue;
                }
                let instr = &old.instrs[id.index()];
                draft.stand_for(instr);
                match unit {
                    None => map[id.index()] = draft.carry(instr.clone(), &map),
                    Some((side, members)) => merge(draft, old, *side, members, &mut map)?,
                }
            }
        }
        Ok(map)
    }
}

/// Writes one product for several, and what takes their results out of its.
fn merge(
    draft: &mut Draft<'_>,
    old: &Original,
    side: Side,
    members: &[InstrId],
    map: &mut [InstrId],
) -> Result<()> {
    let first = &old.instrs[members[0].index()];
    let Op::Dot(op) = &first.op else {
        return Err(Error::internal("what is to be merged is no product"));
    };
    let operand =
        |id: &InstrId, number: usize| map[old.instrs[id.index()].operands[number].index()];
    let matrix = operand(&members[0], side.matrix());
    let pieces = members.iter().map(|id| operand(id, side.rows())).collect();
    let Joined { op, side, pieces, along } = Joined::new(draft, op, side, pieces)?;

    let rows = draft.add(Concatenate { dimension: along }, &pieces)?;
    let operands = match side {
        Side::Lhs => [matrix, rows],
        Side::Rhs => [rows, matrix],
    };
    // The first free dimension of the rows comes after those of the lhs.
    let before = match side {
        Side::Lhs => rank(draft, matrix)? - op.dims.lhs_contracting.len(),
        Side::Rhs => 0,
    };
    let product = draft.add(op, &operands)?;
    let sizes = array(draft, product)?.dims().to_vec();
    let size = sizes[before] / members.len();
    for (i, id) in members.iter().enumerate() {
        let instr = &old.instrs[id.index()];
        draft.stand_for(instr);
        draft.join(product, instr);
        let (mut starts, mut limits) = (vec![0; sizes.len()], sizes.clone());
        (starts[before], limits[before]) = (i * size, (i + 1) * size);
        let part = Slice { starts, limits, strides: vec![1; sizes.len()] };
        let mut part = draft.add(part, &[product])?;
        if let Some(shape) = instr.shape.as_array().filter(|_| *draft.shape(part) != instr.shape) {
            part = draft.add(Reshape { shape: shape.clone() }, &[part])?;
        }
        draft.name(part, instr.clone());
        map[id.index()] = part;
    }
    Ok(())
}

/// How operands are joined.
struct Joined {
    op: Dot,
    /// Which operand the matrix is.
    side: Side,
    /// The others, each with a dimension along which they are joined.
    pieces: Vec<InstrId>,
    along: usize,
}

impl Joined {
    fn new(draft: &mut Draft<'_>, op: &Dot, side: Side, mut pieces: Vec<InstrId>) -> Result<Self> {
        let piece = array(draft, pieces[0])?.clone();
        let (free, contracting) = match side {
            Side::Lhs => (op.dims.rhs_free(piece.rank()), &op.dims.rhs_contracting),
            Side::Rhs => (op.dims.lhs_free(piece.rank()), &op.dims.lhs_contracting),
        };
        if let Some(&along) = free.first() {
            return Ok(Joined { op: op.clone(), side, pieces, along });
        }
        // A vector becomes a row of the left operand.
        let mut op = op.clone();
        let lhs_contracting = contracting.iter().map(|d| d + 1).collect();
        let rhs_contracting = match side {
            Side::Lhs => std::mem::take(&mut op.dims.lhs_contracting),
            Side::Rhs => std::mem::take(&mut op.dims.rhs_contracting),
        };
        op.dims = DotDims { lhs_contracting, rhs_contracting, ..DotDims::default() };
        if side == Side::Lhs {
            op.precision.reverse();
        }
        let sizes: Vec<usize> = [1].iter().chain(piece.dims()).copied().collect();
        let shape = ArrayShape::new(piece.element(), sizes)?;
        for piece in &mut pieces {
            *piece = draft.add(Reshape { shape: shape.clone() }, &[*piece])?;
        }
        Ok(Joined { op, side: Side::Rhs, pieces, along: 0 })
    }
}

fn array<'d>(draft: &'d Draft<'_>, id: InstrId) -> Result<&'d ArrayShape> {
    draft.array(id).ok_or_else(|| Error::internal("an operand of a product is no array"))
}

fn rank(draft: &Draft<'_>, id: InstrId) -> Result<usize> {
    Ok(array(draft, id)?.rank())
}

#[cfg(test)]
mod tests {
    use crate::testing::{after, check};

    #[test]
    fn rows_with_one_matrix() {
        check(
            "merge-products",
            "ENTRY e { w = f32[128,64] parameter(0)  x = f32[2,128] parameter(1)  y = f32[2,128] parameter(2)
               a = f32[2,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
               b = f32[2,64] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
               ROOT t = (f32[2,64], f32[2,64]) tuple(a, b) }",
            "ENTRY e { w = f32[128,64] parameter(0)  x = f32[2,128] parameter(1)  y = f32[2,128] parameter(2)
               concatenate = f32[4,128] concatenate(x, y), dimensions={0}
               dot = f32[4,64] dot(concatenate, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
               a = f32[2,64] slice(dot), slice={[0:2], [0:64]}
               b = f32[2,64] slice(dot), slice={[2:4], [0:64]}
               ROOT t = (f32[2,64], f32[2,64]) tuple(a, b) }",
        );
    }

    #[test]
    fn columns_and_vectors() {
        check(
            "merge-products",
            "ENTRY e { w = f32[64,128] parameter(0)  x = f32[3,128] parameter(1)  y = f32[3,128] parameter(2)
               a = f32[64,3] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
               b = f32[64,3] dot(w, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
               ROOT t = (f32[64,3], f32[64,3]) tuple(a, b) }",
            "ENTRY e { w = f32[64,128] parameter(0)  x = f32[3,128] parameter(1)  y = f32[3,128] parameter(2)
               concatenate = f32[6,128] concatenate(x, y), dimensions={0}
               dot = f32[64,6] dot(w, concatenate), lhs_contracting_dims={1}, rhs_contracting_dims={1}
               a = f32[64,3] slice(dot), slice={[0:64], [0:3]}
               b = f32[64,3] slice(dot), slice={[0:64], [3:6]}
               ROOT t = (f32[64,3], f32[64,3]) tuple(a, b) }",
        );
        check(
            "merge-products",
            "ENTRY e { w = f32[64,128] parameter(0)  x = f32[128] parameter(1)  y = f32[128] parameter(2)
               a = f32[64] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0},
                 operand_precision={default,highest}
               b = f32[64] dot(w, y), lhs_contracting_dims={1}, rhs_contracting_dims={0},
                 operand_precision={default,highest}
               ROOT t = (f32[64], f32[64]) tuple(a, b) }",
            "ENTRY e { w = f32[64,128] parameter(0)  x = f32[128] parameter(1)  y = f32[128] parameter(2)
               reshape = f32[1,128] reshape(x)  reshape.1 = f32[1,128] reshape(y)
               concatenate = f32[2,128] concatenate(reshape, reshape.1), dimensions={0}
               dot = f32[2,64] dot(concatenate, w), lhs_contracting_dims={1}, rhs_contracting_dims={1},
                 operand_precision={highest,default}
               slice = f32[1,64] slice(dot), slice={[0:1], [0:64]}  a = f32[64] reshape(slice)
               slice.1 = f32[1,64] slice(dot), slice={[1:2], [0:64]}  b = f32[64] reshape(slice.1)
               ROOT t = (f32[64], f32[64]) tuple(a, b) }",
        );
    }

    /// Layers of a recurrent network of so many steps, unrolled.
    fn recurrent(layers: usize, steps: usize) -> String {
        use std::fmt::Write;
        let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        let mut text = "ENTRY e {".to_owned();
        for t in 0..steps {
            write!(text, " h0.{t} = f32[1,128] parameter({t})").unwrap();
        }
        let mut result = String::new();
        for l in 1..=layers {
            let (w, u) = (steps + 2 * l, steps + 2 * l + 1);
            write!(text, " w{l} = f32[128,128] parameter({w}) u{l} = f32[128,128] parameter({u})")
                .unwrap();
        }
        // Padding, so that parameters count from zero.
        write!(text, " p = f32[] parameter({steps}) q = f32[] parameter({})", steps + 1).unwrap();
        for t in 0..steps {
            for l in 1..=layers {
                let below = l - 1;
                write!(text, " x{l}.{t} = f32[1,128] dot(h{below}.{t}, w{l}), {dims}").unwrap();
                match t.checked_sub(1) {
                    None => write!(text, " h{l}.{t} = f32[1,128] tanh(x{l}.{t})").unwrap(),
                    Some(before) => {
                        write!(text, " s{l}.{t} = f32[1,128] dot(h{l}.{before}, u{l}), {dims}")
                            .unwrap();
                        write!(text, " a{l}.{t} = f32[1,128] add(x{l}.{t}, s{l}.{t})").unwrap();
                        write!(text, " h{l}.{t} = f32[1,128] tanh(a{l}.{t})").unwrap();
                    }
                }
                result = format!("h{l}.{t}");
            }
        }
        write!(text, " ROOT r = f32[1,128] negate({result}) }}").unwrap();
        text
    }

    #[test]
    fn layers_of_a_recurrent_network() {
        for (layers, steps) in [(1, 5), (2, 5), (3, 7), (1, 300)] {
            let found = after("merge-products", &recurrent(layers, steps));
            // Of each layer the products with the states, one less than steps, and one for all inputs; of
            // more rows than are worth it, two.
            let inputs = if steps > super::ENOUGH_ROWS { 2 } else { 1 };
            let products = found.matches(" dot(").count();
            assert_eq!(products, layers * (steps - 1 + inputs), "{layers} layers of {steps} steps");
        }
    }

    #[test]
    fn what_stays() {
        let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        for (x, y, w) in [
            // Of many rows, with a small matrix, of different shapes.
            (
                "x = f32[17,128] parameter(1)",
                "y = f32[17,128] parameter(2)",
                "w = f32[128,64] parameter(0)",
            ),
            (
                "x = f32[1,8] parameter(1)",
                "y = f32[1,8] parameter(2)",
                "w = f32[8,64] parameter(0)",
            ),
            (
                "x = f32[1,128] parameter(1)",
                "y = f32[2,128] parameter(2)",
                "w = f32[128,64] parameter(0)",
            ),
        ] {
            let rows = |text: &str| text.split(['[', ',']).nth(1).unwrap().to_owned();
            let (m, n) = (rows(x), rows(y));
            let text = format!(
                "ENTRY e {{ {w} {x} {y} a = f32[{m},64] dot(x, w), {dims} b = f32[{n},64] dot(y, w), {dims}
                   ROOT t = (f32[{m},64], f32[{n},64]) tuple(a, b) }}"
            );
            assert_eq!(after("merge-products", &text).matches(" dot(").count(), 2, "{text}");
        }
        // One needs the other, by way of a third.
        let chain = format!(
            "ENTRY e {{ w = f32[128,128] parameter(0) x = f32[1,128] parameter(1)
               a = f32[1,128] dot(x, w), {dims} b = f32[1,128] tanh(a) c = f32[1,128] dot(b, w), {dims}
               ROOT d = f32[1,128] dot(c, w), {dims} }}"
        );
        assert_eq!(after("merge-products", &chain).matches(" dot(").count(), 3);
        // Merging both pairs would make each need the other.
        let crossed = format!(
            "ENTRY e {{ v = f32[128,128] parameter(0) w = f32[128,128] parameter(1) x = f32[1,128] parameter(2)
               a = f32[1,128] dot(x, v), {dims} b = f32[1,128] dot(a, w), {dims}
               y = f32[1,128] negate(x) c = f32[1,128] dot(y, w), {dims} d = f32[1,128] dot(c, v), {dims}
               ROOT t = (f32[1,128], f32[1,128]) tuple(b, d) }}"
        );
        assert!(after("merge-products", &crossed).matches(" dot(").count() >= 3);
    }
}
