//! How fusions grow: from its last instruction on, which operands join a fusion, and how.

use std::collections::BTreeSet;

use helio_ir::ops::{Cost, Gather, Transpose, Yield};
use helio_ir::{ArrayShape, Computation, Instr, InstrId, Op, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::class::{Apart, Classifier, FusionClass, MAX_COLUMNS, array};
use super::ids::IdSet;
use super::line::UnitOrder;
use super::order::Sequence;
use super::paths::AccessPaths;
use super::space::{Level, Role, Space};
use super::{computes, copies};
use crate::pass::PassCx;
use crate::rebuild::NewModule;

/// Instructions that become one fusion.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its last instruction.
    pub root: InstrId,
    /// All, including those that are computed elsewhere, too.
    pub members: IdSet,
    /// Those whose values are needed outside, the root last.
    pub outputs: Vec<InstrId>,
    /// Whether anything is folded.
    pub folds: bool,
    /// Those that belong to no other group.
    pub owned: IdSet,
    space: Space,
    operands: IdSet,
    /// How many of the operands are single elements that are spread, which are not read from arrays.
    spread: usize,
    /// With how many members it takes in none that computes, if that was found by growing it before.
    most: Option<usize>,
    /// What is known of members and operands while it grows.
    notes: Notes,
    copies: usize,
}

/// What is known of the members and operands of a fusion that grows.
type Notes = FxHashMap<InstrId, Note>;

/// What is known of a member or operand.
#[derive(Clone, Debug, Default)]
struct Note {
    /// The members that use it.
    users: SmallVec<[InstrId; 4]>,
    /// How a member lies in the loops.
    role: Option<Role>,
    /// The paths to a member.
    paths: AccessPaths,
    /// At how many places, which are not known beforehand, elements of a member are read, if it is more
    /// than one of those that follow.
    gathered: Option<usize>,
}

/// Parts of one array from which on they look like those of an unrolled loop's steps, ...
const MANY_PARTS: usize = 8;
/// ... and the bytes of a part that is worth a name of its own.
const PART_BYTES: usize = 1 << 10;

/// Slices of whole rows, of equal size, of arrays that have many of them and are in memory: the steps of an
/// unrolled loop take them. In a fusion each would be read at an offset of its own, and no two steps' code were
/// the same; a slice by itself is found where it lies.
fn parts_of_steps(computation: &Computation, classes: &[FusionClass]) -> Vec<InstrId> {
    let mut parts: FxHashMap<InstrId, Vec<InstrId>> = FxHashMap::default();
    for id in computation.ids() {
        let instr = computation.instr(id);
        let Op::Slice(op) = &instr.op else { continue };
        let of = instr.operands[0];
        let (Some(from), Some(to)) = (array(computation, of), array(computation, id)) else {
            continue;
        };
        let is_whole = |d: usize| to.dims()[d] == from.dims()[d];
        let is_part = classes[of.index()] == FusionClass::Boundary
            && to.size_bytes() >= PART_BYTES
            && op.strides.iter().all(|&stride| stride == 1)
            && (1..to.rank()).all(is_whole);
        if is_part {
            parts.entry(of).or_default().push(id);
        }
    }
    parts.into_values().filter(|parts| parts.len() >= MANY_PARTS).flatten().collect()
}

/// The cheap operations behind each value: its own, and those of what it is made of, if that is cheap, too, has no
/// more elements, and is not folded.
fn work(computation: &Computation, classes: &[FusionClass]) -> Vec<u32> {
    let mut work: Vec<u32> = Vec::with_capacity(classes.len());
    let elements = |id| array(computation, id).map_or(0, |array| array.element_count());
    for id in computation.ids() {
        let here = elements(id);
        let operands = computation.instr(id).operands.iter();
        let behind = operands
            .filter(|operand| elements(**operand) <= here)
            .fold(0u32, |sum, operand| sum.saturating_add(work[operand.index()]));
        work.push(match classes[id.index()] {
            FusionClass::Cheap => behind.saturating_add(1),
            FusionClass::Free | FusionClass::Movement => match &computation.instr(id).op {
                // What is gathered from is read where it lies.
                Op::Gather(_) => {
                    let indices = computation.instr(id).operands[1];
                    work[indices.index()].saturating_add(GATHER_COST as u32)
                }
                Op::Transpose(op) if reorders(op, computation, id) => {
                    behind.saturating_add(MIN_KEPT_WORK as u32)
                }
                _ if classes[id.index()] == FusionClass::Free => behind,
                _ => 0,
            },
            _ => 0,
        });
    }
    work
}

/// Whether each value is cheap, but made of one as large that is not and that nothing else takes, through what is cheap.
fn finishes_costly(
    computation: &Computation,
    classes: &[FusionClass],
    users: &[SmallVec<[InstrId; 4]>],
) -> Vec<bool> {
    let mut finishes: Vec<bool> = Vec::with_capacity(classes.len());
    let elements = |id| array(computation, id).map(|array| array.element_count());
    for id in computation.ids() {
        let is_costly = |operand: &InstrId| {
            let class = classes[operand.index()];
            (class == FusionClass::Costly || finishes[operand.index()])
                && users[operand.index()].len() == 1
                && elements(*operand) == elements(id)
        };
        let is_cheap = matches!(classes[id.index()], FusionClass::Cheap | FusionClass::Free);
        finishes.push(is_cheap && computation.instr(id).operands.iter().any(is_costly));
    }
    finishes
}

/// Whether a transpose has elements come in another order: neighbours then are not neighbours in the operand, and where a
/// vector's elements are has to be found out for each.
fn reorders(op: &Transpose, computation: &Computation, id: InstrId) -> bool {
    let is_long = |&&d: &&usize| {
        let operand = array(computation, computation.instr(id).operands[0]);
        operand.is_some_and(|array| array.dims()[d] != 1)
    };
    !op.permutation.iter().filter(is_long).is_sorted()
}

/// Whether each value is made of counters and constants alone, by what is cheap.
fn counted(computation: &Computation, classes: &[FusionClass]) -> Vec<bool> {
    let mut counted: Vec<bool> = Vec::with_capacity(classes.len());
    for id in computation.ids() {
        let instr = computation.instr(id);
        let is_cheap = matches!(classes[id.index()], FusionClass::Cheap | FusionClass::Free);
        let is_made = !matches!(instr.op, Op::Parameter(_));
        let of_counted = instr.operands.iter().all(|operand| counted[operand.index()]);
        counted.push(is_cheap && is_made && of_counted);
    }
    counted
}

/// Whether a value of `elements` elements, with so many operations behind each of them, is better kept in memory
/// than computed again at `points` points.
fn is_better_kept(work: usize, elements: usize, points: usize) -> bool {
    work >= MIN_KEPT_WORK
        && points / KEPT_POINTS >= elements
        && points.saturating_mul(work - 1) >= MIN_KEPT_OPERATIONS
}

/// Whether each value is single elements, or counters, that are spread or moved at most: a fusion that takes it reads no
/// array for it.
fn spread(computation: &Computation, classes: &[FusionClass]) -> Vec<bool> {
    let mut spread: Vec<bool> = Vec::with_capacity(classes.len());
    let is_single = |id| array(computation, id).is_some_and(|array| array.element_count() == 1);
    for id in computation.ids() {
        let instr = computation.instr(id);
        let is_moved = classes[id.index()] == FusionClass::Free;
        let is_made = !matches!(instr.op, Op::Parameter(_));
        let of_spread = |operand: &InstrId| spread[operand.index()] || is_single(*operand);
        let of_spread = instr.operands.iter().all(of_spread);
        spread.push(is_moved && is_made && of_spread);
    }
    spread
}

/// The fusions of a computation.
pub(super) struct Groups {
    pub groups: Vec<Group>,
    /// The group that makes each instruction's value.
    pub owner: Vec<Option<usize>>,
    /// The groups that compute it, the owner among them, in ascending order.
    pub within: Vec<SmallVec<[usize; 1]>>,
    pub users: Vec<SmallVec<[InstrId; 4]>>,
    /// What has to stay in order without using each other's values; none of it is in a fusion.
    pub sequence: Sequence,
    classes: Vec<FusionClass>,
    /// The cheap operations behind each value, with those behind its operands that are cheap, too.
    work: Vec<u32>,
    /// Whether values are the last that is computed of a costly one ([`finishes_costly`]).
    finishes_costly: Vec<bool>,
    /// Whether values are made of counters and constants alone, in a fusion.
    counted: Vec<bool>,
    /// Whether values are no arrays in a fusion that takes them ([`spread`]).
    spread: Vec<bool>,
    /// Whether something that is part of no fusion takes the value.
    is_made: Vec<bool>,
    /// The result.
    needed: Vec<bool>,
    /// What stays an instruction by itself.
    pub single: Vec<bool>,
    notes: Notes,
}

/// The most instructions of a fusion, constants and those that spread elements included: more values than there are registers cost as much as storing the
/// result of a part and reading it again. (`docs/design/fusion.md` has the measurements.)
const MAX_MEMBERS: usize = 200;
/// The most where those that only move or spread elements, or make constants, join a fusion that is full.
const MOST_WITH_MOVED: usize = 2 * MAX_MEMBERS;
/// A fusion that would be larger is cut where the fewest arrays are between it and others, but not to fewer members than this.
const LEAST_CUT: usize = 140;
/// The members that an element that is spread makes, such as a constant: itself, and what spreads it.
const SPREAD_MEMBERS: usize = 2;
/// The most arrays that a fusion reads and writes.
const MAX_ARRAYS: usize = 24;
/// Cheap operations that take longer than to read their result.
const MIN_KEPT_WORK: usize = 4;
/// How many times as many points as elements there are where these are kept.
const KEPT_POINTS: usize = 8;
/// Operations on single elements that take longer than to begin another kernel.
const MIN_KEPT_OPERATIONS: usize = 1 << 16;
/// What it takes to gather an element, in elements that are read or written one after the other.
const GATHER_COST: usize = 10;
/// To gather fewer elements takes no longer than to begin another kernel.
const MIN_GATHERED: usize = 256;
/// The most reductions of a fusion that become results of it because they read the same arrays.
const MAX_SIBLINGS: usize = 6;
/// The most uses that are looked at in search of one.
const MAX_USES: usize = 512;
/// The bytes of an array that it is worth reading once for several reductions.
const MIN_SHARED_BYTES: usize = 1 << 16;
/// The most members of a fusion that other fusions compute, too.
const MAX_COPIES: usize = 24;
/// Rows of up to so many bytes are in a few registers, from which columns are permuted.
const SHORT_TABLE: usize = 512;

/// Whether a gather takes columns, each from all rows of its operand, of rows that are short enough to permute.
fn permutes_rows(op: &Gather, from: &ArrayShape) -> bool {
    let row = from.dims().last().copied().unwrap_or(1);
    op.dims.start_index_map[..] == [from.rank() - 1]
        && op.slice_sizes.last() == Some(&1)
        && op.dims.operand_batching_dims.is_empty()
        && from.element_count() > row
        && row.saturating_mul(from.element().size_bytes()) <= SHORT_TABLE
}

impl Groups {
    /// Forms the fusions of a computation that calls those of `module`. Errors: the limits of the
    /// compilation.
    pub fn of(module: &NewModule, computation: &Computation, cx: &PassCx<'_>) -> Result<Groups> {
        let count = computation.instrs().len();
        let mut users: Vec<SmallVec<[InstrId; 4]>> = vec![SmallVec::new(); count];
        for id in computation.ids() {
            for &operand in &computation.instr(id).operands {
                if users[operand.index()].last() != Some(&id) {
                    users[operand.index()].push(id);
                }
            }
        }
        let mut needed = vec![false; count];
        needed[computation.root().index()] = true;
        let sequence = Sequence::of(computation, module);
        let classes = Classifier { module, capabilities: cx.capabilities };
        let class = |id| match sequence.contains(id) {
            true => FusionClass::Boundary,
            false => classes.class(computation, computation.instr(id)),
        };
        let mut classes: Vec<FusionClass> = computation.ids().map(class).collect();
        for id in parts_of_steps(computation, &classes) {
            classes[id.index()] = FusionClass::Boundary;
        }
        let work = work(computation, &classes);
        let finishes_costly = finishes_costly(computation, &classes, &users);
        let counted = counted(computation, &classes);
        let spread = spread(computation, &classes);
        let mut is_made = needed.clone();
        for id in computation.ids().filter(|id| classes[id.index()] == FusionClass::Boundary) {
            let operands = &computation.instr(id).operands;
            operands.iter().for_each(|operand| is_made[operand.index()] = true);
        }
        let (owner, within) = (vec![None; count], vec![SmallVec::new(); count]);
        let single = vec![false; count];
        let mut groups = Groups {
            groups: Vec::new(),
            owner,
            within,
            users,
            sequence,
            classes,
            work,
            finishes_costly,
            counted,
            spread,
            is_made,
            needed,
            single,
            notes: Notes::default(),
        };
        let mut line = UnitOrder::of(count);
        for id in computation.ids().rev() {
            if !groups.is_wanted(id) {
                continue;
            }
            if groups.begins(computation, id) {
                groups.grow(computation, id, &mut line);
                cx.watch
                    .count_steps(groups.groups.last().map_or(1, |group| group.members.len()))?;
            }
            groups.single[id.index()] = groups.owner[id.index()].is_none();
        }
        groups.finish(computation);
        Ok(groups)
    }

    /// Whether a value is needed that no fusion makes so far.
    fn is_wanted(&self, id: InstrId) -> bool {
        self.owner[id.index()].is_none() && self.is_read(id)
    }

    /// Whether anything takes a value that does not compute it for itself.
    fn is_read(&self, id: InstrId) -> bool {
        let users = &self.users[id.index()];
        let reads = |user: &InstrId| {
            let within = &self.within[user.index()];
            self.single[user.index()] || within.iter().any(|&of| !self.has_member(of, id))
        };
        // What nobody uses may have an effect.
        self.needed[id.index()] || users.is_empty() || users.iter().any(reads)
    }

    /// Whether a group other than this one takes a value that it does not compute.
    fn is_read_besides(&self, number: usize, id: InstrId) -> bool {
        let reads = |user: &InstrId| {
            let within = &self.within[user.index()];
            within.iter().any(|&of| of != number && !self.has_member(of, id))
        };
        self.users[id.index()].iter().any(reads)
    }

    /// Whether a group, by its number, computes a value.
    pub fn has_member(&self, group: usize, id: InstrId) -> bool {
        // Mostly the last one is asked for: groups were added in their order.
        let within = &self.within[id.index()];
        within.last() == Some(&group) || within.binary_search(&group).is_ok()
    }

    /// Whether an instruction may be the last one of a fusion.
    fn begins(&self, computation: &Computation, id: InstrId) -> bool {
        match self.classes[id.index()] {
            FusionClass::Boundary => false,
            // Renaming elements costs nothing, moving them has a kernel of its own; but what is
            // moved may be worth computing right there.
            FusionClass::Free | FusionClass::Movement if is_kernel(computation, id) => true,
            FusionClass::Free => match computation.instr(id).op {
                Op::Constant(_) | Op::Reshape(_) => false,
                Op::Iota(_) => true,
                _ => self.operand_joins(computation, id),
            },
            FusionClass::Movement => match &computation.instr(id).op {
                // Rows are copied faster than elements one by one, which may turn out to be neighbours if
                // their places are counted.
                Op::Gather(op) if op.slice_sizes.iter().any(|&size| size > 1) => {
                    let indices = computation.instr(id).operands[1];
                    op.slice_sizes.last() == Some(&1) && self.counted[indices.index()]
                }
                _ => self.operand_joins(computation, id),
            },
            FusionClass::Update => true,
            FusionClass::Cheap | FusionClass::Costly | FusionClass::Reduce => true,
        }
    }

    /// Whether an operand has no other user, and computes or moves something; what is copied to be
    /// copied again counts as well.
    fn operand_joins(&self, computation: &Computation, id: InstrId) -> bool {
        let mut operands = computation.instr(id).operands.to_vec();
        while let Some(id) = operands.pop() {
            if self.users[id.index()].len() != 1 || self.needed[id.index()] {
                continue;
            }
            match self.classes[id.index()] {
                FusionClass::Cheap | FusionClass::Costly | FusionClass::Movement => return true,
                FusionClass::Free if copies(&computation.instr(id).op) => return true,
                FusionClass::Free => operands.extend(&computation.instr(id).operands),
                FusionClass::Boundary | FusionClass::Reduce | FusionClass::Update => {}
            }
        }
        false
    }

    /// Grows a group from its root.
    fn grow(&mut self, computation: &Computation, root: InstrId, line: &mut UnitOrder) {
        let class = self.classes[root.index()];
        let mut most = None;
        loop {
            let notes = std::mem::take(&mut self.notes);
            let Some(mut group) = Group::new(computation, root, class, notes) else { return };
            group.spread = group.operands.iter().filter(|id| self.spread[id.index()]).count();
            group.most = most;
            let cut = self.take_in(computation, &mut group, line);
            // The next one grows in the same memory.
            self.notes = std::mem::take(&mut group.notes);
            self.notes.clear();
            group.operands = IdSet::default();
            match (most, cut) {
                (None, Some(cut)) => {
                    self.give_up(&group);
                    most = Some(cut);
                }
                _ => return self.groups.push(group),
            }
        }
    }

    /// Takes operands into a new group as long as some join it. If it grows until it is full, and fewer arrays were between it
    /// and other fusions before: with how many members they are the fewest, not counting those that are there anyway.
    fn take_in(
        &mut self,
        computation: &Computation,
        group: &mut Group,
        line: &mut UnitOrder,
    ) -> Option<usize> {
        let number = self.groups.len();
        self.owner[group.root.index()] = Some(number);
        self.within[group.root.index()].push(number);
        let mut looked_at = 0;
        let (mut best, mut last, mut was_full) = (None, 1, false);
        loop {
            // What joins is before all that was looked at and stays, and so are its operands.
            let Some(id) = group.operands.nth_last(looked_at) else {
                match self.sibling(computation, group, line) {
                    Some((sibling, role)) => {
                        self.take_sibling(computation, group, sibling, role);
                        looked_at = 0;
                        continue;
                    }
                    None => break,
                }
            };
            let Some(join) = self.join(computation, group, number, id, line) else {
                looked_at += 1;
                continue;
            };
            group.operands.remove(id);
            group.spread -= usize::from(self.spread[id.index()]);
            group.members.insert(id);
            self.within[id.index()].push(number);
            if join.own {
                group.owned.insert(id);
                self.owner[id.index()] = Some(number);
            } else if self.classes[id.index()] != FusionClass::Free {
                group.copies += 1;
            }
            let role = match join.space {
                Some((space, renumbered)) => {
                    group.enter(space, renumbered);
                    group.role_of(computation, id)
                }
                None => join.role,
            };
            let (role, paths) = (Some(role), join.paths);
            let gathered = group.places_gathered(computation, id);
            let note = group.notes.entry(id).or_default();
            *note = Note { role, paths, gathered, users: std::mem::take(&mut note.users) };
            self.take_operands(computation, group, id);
            if self.classes[id.index()] == FusionClass::Free {
                continue;
            }
            let (members, reserved) = (group.members.len(), group.reserved());
            last = members;
            was_full |= reserved >= MAX_MEMBERS;
            if (LEAST_CUT..=MAX_MEMBERS).contains(&reserved) {
                let arrays = group.operands.iter().filter(|id| self.is_array_between(**id)).count();
                if best.is_none_or(|(least, _)| arrays <= least) {
                    best = Some((arrays, members));
                }
            }
        }
        let cut = best.filter(|_| was_full).map(|(_, members)| members);
        cut.filter(|&members| members < last)
    }

    /// A reduction over the loops of a group that reads one of the arrays that the group reads at each point: it can join as
    /// another result, so that the array comes from memory once. Its role is that of the group's reduction that it is
    /// like.
    fn sibling(
        &self,
        computation: &Computation,
        group: &Group,
        line: &mut UnitOrder,
    ) -> Option<(InstrId, Role)> {
        group.space.folded.as_ref()?;
        let reductions: Vec<InstrId> = group
            .members
            .iter()
            .copied()
            .filter(|id| self.classes[id.index()] == FusionClass::Reduce)
            .collect();
        let has_room = reductions.len() < MAX_SIBLINGS
            && self.classes[group.root.index()] != FusionClass::Update
            && group.reserved() < MAX_MEMBERS
            && group.operands.len() + reductions.len() < MAX_ARRAYS
            && group.most.is_none();
        if !has_room {
            return None;
        }
        let mut read: SmallVec<[InstrId; 8]> = SmallVec::new();
        for &id in &group.operands {
            let Some(shape) = array(computation, id) else { continue };
            let is_long = shape.size_bytes() >= MIN_SHARED_BYTES;
            if is_long
                && group.space.level(&group.role_of(computation, id), shape.dims()) == Level::Full
            {
                read.push(id);
            }
        }
        let mut left = MAX_USES;
        while let Some(id) = read.pop() {
            for &user in &self.users[id.index()] {
                left = left.checked_sub(1)?;
                // What a member uses did not fit where it does.
                let is_free = self.owner[user.index()].is_none()
                    && self.within[user.index()].is_empty()
                    && user < group.root
                    && group.users(user).is_empty();
                if !is_free {
                    continue;
                }
                match self.classes[user.index()] {
                    FusionClass::Reduce => {
                        let like = |&of: &InstrId| is_alike(computation, of, user);
                        let Some(like) = reductions.iter().copied().find(like) else { continue };
                        let role = group.notes.get(&like).and_then(|note| note.role.clone());
                        if let Some(role) = role
                            && self.is_wanted(user)
                            && !self.comes_back(computation, user, group.root)
                            && line.is_before(user, group.root)
                            && line.make_way(self, group, user)
                        {
                            return Some((user, role));
                        }
                    }
                    // What it reduces is computed from the array, at each point.
                    FusionClass::Cheap | FusionClass::Costly => {
                        let points = array(computation, user).map(|shape| shape.element_count());
                        if points == Some(group.space.points()) {
                            read.push(user);
                        }
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Whether what a reduction gives is used, before an instruction, together with more elements than it has: it
    /// may be best computed there.
    fn comes_back(&self, computation: &Computation, reduction: InstrId, root: InstrId) -> bool {
        let elements = |id| array(computation, id).map_or(usize::MAX, ArrayShape::element_count);
        let few = elements(reduction);
        let mut left = MAX_USES;
        let mut pending = vec![reduction];
        while let Some(id) = pending.pop() {
            for &user in &self.users[id.index()] {
                left -= 1;
                if left == 0 {
                    return true;
                }
                if user > root || self.owner[user.index()].is_some() {
                    continue;
                }
                if elements(user) > few {
                    return true;
                }
                pending.push(user);
            }
        }
        false
    }

    /// Makes a reduction that is no operand another result of the group that is grown.
    fn take_sibling(
        &mut self,
        computation: &Computation,
        group: &mut Group,
        id: InstrId,
        role: Role,
    ) {
        let number = self.groups.len();
        group.members.insert(id);
        group.owned.insert(id);
        self.within[id.index()].push(number);
        self.owner[id.index()] = Some(number);
        let note = Note { role: Some(role), paths: AccessPaths::of_root(), ..Note::default() };
        group.notes.insert(id, note);
        self.take_operands(computation, group, id);
    }

    /// Makes operands of a group of what a new member uses.
    fn take_operands(&self, computation: &Computation, group: &mut Group, id: InstrId) {
        group.add_uses(computation, id);
        for &operand in &computation.instr(id).operands {
            if !group.members.contains(operand) {
                let is_new = group.operands.insert(operand);
                group.spread += usize::from(is_new && self.spread[operand.index()]);
            }
        }
    }

    /// Whether an operand of a group becomes an array if it does not join it.
    fn is_array_between(&self, id: InstrId) -> bool {
        !self.spread[id.index()]
            && !matches!(self.classes[id.index()], FusionClass::Boundary | FusionClass::Update)
            && self.owner[id.index()].is_none()
    }

    /// Takes a group that was grown last apart again.
    fn give_up(&mut self, group: &Group) {
        let number = self.groups.len();
        for id in &group.members {
            self.within[id.index()].retain(|of| *of != number);
            if self.owner[id.index()] == Some(number) {
                self.owner[id.index()] = None;
            }
        }
    }

    /// Whether and how an operand of a group joins it.
    fn join(
        &self,
        computation: &Computation,
        group: &Group,
        number: usize,
        id: InstrId,
        line: &mut UnitOrder,
    ) -> Option<Join> {
        let candidate = self.candidate(computation, group, number, id)?;
        let space = candidate.space_with(computation, group)?;
        let Candidate { instr, class, arrays, role, level, paths, .. } = candidate;
        if self.is_used_inside_only(number, id) {
            return Some(Join { own: true, space, role, paths });
        }
        let is_cheap =
            class == FusionClass::Cheap || matches!(instr.op, Op::Pad(_) | Op::DynamicSlice(_));
        let can_copy = class == FusionClass::Free || is_cheap && group.copies < MAX_COPIES;
        let is_made_anyway = self.is_made[id.index()] || self.is_read_besides(number, id);
        let can_be_output = class != FusionClass::Free
            && arrays < MAX_ARRAYS
            && matches!(level, Level::Full | Level::Kept)
            && (is_made_anyway || !can_copy)
            && line.make_way(self, group, id);
        if can_be_output {
            return Some(Join { own: true, space, role, paths });
        }
        // What is in memory anyway is read from there.
        (class == FusionClass::Free || can_copy && !is_made_anyway).then_some(Join {
            own: false,
            space,
            role,
            paths,
        })
    }

    /// An operand of a group as a candidate for it; `None` if it is in another group, or would take the
    /// group beyond a limit.
    fn candidate<'c>(
        &self,
        computation: &'c Computation,
        group: &Group,
        number: usize,
        id: InstrId,
    ) -> Option<Candidate<'c>> {
        let instr = computation.instr(id);
        let class = self.classes[id.index()];
        if matches!(class, FusionClass::Boundary | FusionClass::Update)
            || self.owner[id.index()].is_some()
        {
            return None;
        }
        // Tuples of reductions are fusions' results only.
        let shape = instr.shape.as_array()?;
        if group.only_updates(computation, id)
            || group.reads_elsewhere(computation, id)
            || group.gathers_much(computation, id, class)
        {
            return None;
        }
        // What is only moved makes no work, but an array if it stays outside.
        let is_full = match (class, group.most) {
            (FusionClass::Free, _) => group.members.len() >= MOST_WITH_MOVED,
            (_, None) => group.reserved() >= MAX_MEMBERS,
            (_, Some(most)) => group.members.len() >= most,
        };
        if is_full {
            return None;
        }
        let new = |operand: &&InstrId| {
            !self.spread[operand.index()]
                && !self.has_member(number, **operand)
                && !group.operands.contains(**operand)
        };
        let new_operands = instr.operands.iter().filter(new).count();
        let operands = group.operands.len() - group.spread;
        let arrays = operands + group.outputs.len() + new_operands;
        let paths = group.paths_to(computation, &self.classes, id);
        let points = group.space.points();
        let is_stored = shape.element_count() > 1 && paths.are_too_many(class, shape, points);
        if class != FusionClass::Free && (arrays > MAX_ARRAYS || is_stored) {
            return None;
        }
        let role = group.role_of(computation, id);
        let level = group.space.level(&role, shape.dims());
        // Of the part that is changed, each element is read where it is changed alone.
        if group.updates_what_is_read(computation, id)
            && !matches!(level, Level::Full | Level::Scalar)
        {
            return None;
        }
        // What a part of the points reads, the costly value behind it being computed before: there both are.
        if level == Level::Partial && !role.everywhere && self.finishes_costly[id.index()] {
            return None;
        }
        let work = self.work[id.index()] as usize;
        let is_repeated = level == Level::Partial && group.space.is_repeated(&role);
        let mut left = MAX_LOOKED_AT;
        if is_repeated
            && is_better_kept(work, shape.element_count(), points)
            && !(self.counted[id.index()] && group.are_places(computation, id, &mut left))
        {
            return None;
        }
        Some(Candidate { id, instr, dims: shape.dims(), class, arrays, role, level, paths })
    }

    /// Whether all that use a value are in the group, and in no other group that lacks the value.
    fn is_used_inside_only(&self, number: usize, id: InstrId) -> bool {
        let served = |of: &usize| *of == number || self.has_member(*of, id);
        let inside = |user: &InstrId| {
            self.owner[user.index()] == Some(number) && self.within[user.index()].iter().all(served)
        };
        !self.needed[id.index()] && self.users[id.index()].iter().all(inside)
    }

    /// Takes groups apart that compute nothing, and sees what each gives.
    fn finish(&mut self, computation: &Computation) {
        for number in 0..self.groups.len() {
            let members = &self.groups[number].members;
            let of =
                |id: &&InstrId| computes(self.classes[id.index()], &computation.instr(**id).op);
            let moves = |id: &&InstrId| self.classes[id.index()] == FusionClass::Movement;
            let op = |id: &InstrId| &computation.instr(*id).op;
            let is_kernel = || members.iter().any(|&id| is_kernel(computation, id));
            // Rows that are gathered are best copied by themselves.
            let gathers = || members.iter().any(|id| matches!(op(id), Op::Gather(_)));
            let copied = || members.iter().filter(|id| moves(id) || copies(op(id))).count();
            if members.iter().any(|id| of(&id))
                || members.iter().filter(moves).count() > 1
                || is_kernel()
                || !gathers() && copied() > 1
            {
                continue;
            }
            let group = &mut self.groups[number];
            for &id in &std::mem::take(&mut group.members) {
                self.within[id.index()].retain(|of| *of != number);
                if self.owner[id.index()] == Some(number) {
                    self.owner[id.index()] = None;
                }
            }
        }
        for id in computation.ids().rev() {
            let is_parameter = matches!(computation.instr(id).op, Op::Parameter(_));
            self.single[id.index()] = is_parameter || self.is_wanted(id);
        }
        for number in 0..self.groups.len() {
            let group = &self.groups[number];
            let owned = group.owned.iter().filter(|id| self.has_member(number, **id));
            self.groups[number].outputs = owned.copied().filter(|&id| self.is_read(id)).collect();
        }
    }
}

/// A transpose of fewer elements is no kernel, which takes longer to compile.
const MIN_IN_COLUMNS: usize = 1 << 10;
/// Pieces of rows with more elements of one or two bytes are copied as fast as they are put together lane by lane,
const SHORT_PIECE: usize = 8;
/// and those of as many as some number has, that or a power of two of them;
const LEAST_NUMBER: usize = 4;
/// of larger elements, those of as many bytes, where some are powers of two,
const WIDE_PIECE_BYTES: usize = 32;
/// and of four bytes, those of as many elements in rows of three pieces or more.
const WORDS_OF_A_PIECE: usize = 4;
/// Rows with fewer elements are reversed lane by lane,
const SHORT_ROW: usize = 16;
/// if they have fewer bytes: longer ones are copied as fast.
const MAX_REVERSED_BYTES: usize = 32;

/// Whether a movement by itself is best done by a kernel: one that fills margins and copies the rest in
/// one go, takes the elements of short rows from several arrays, exchanges short rows, or permutes them.
fn is_kernel(computation: &Computation, id: InstrId) -> bool {
    let instr = computation.instr(id);
    match (&instr.op, array(computation, id)) {
        (Op::Pad(_), _) => true,
        (Op::Gather(op), _) => array(computation, instr.operands[0])
            .is_some_and(|from| from.rank() > 0 && permutes_rows(op, from)),
        (Op::Concatenate(op), Some(shape)) => {
            let row: usize = shape.dims()[op.dimension..].iter().product();
            row <= MAX_COLUMNS && !has_wide_pieces(computation, id, row)
        }
        (Op::Transpose(op), Some(shape)) => array(computation, instr.operands[0])
            .filter(|from| from.element_count() >= MIN_IN_COLUMNS)
            .map(|from| Apart::of(from, shape, &op.permutation))
            .is_some_and(|apart| apart.suits_kernel(shape.element().size_bytes())),
        (Op::Reverse(op), Some(shape)) => {
            let behind = op.dimensions.iter().max().map_or(0, |&last| last + 1);
            let row: usize = shape.dims()[behind..].iter().product();
            let bytes = row.saturating_mul(shape.element().size_bytes());
            // Those that are as long as some number are copied as that.
            row < SHORT_ROW && bytes < MAX_REVERSED_BYTES && !bytes.is_power_of_two()
        }
        _ => false,
    }
}

/// Whether the pieces of rows that a concatenation puts together are copied as fast as elements are put together lane by
/// lane: long ones of small elements, and those as long as some number, of which one instruction copies several elements.
fn has_wide_pieces(computation: &Computation, id: InstrId, row: usize) -> bool {
    let instr = computation.instr(id);
    let Some(shape) = array(computation, id) else { return false };
    let (rows, size) = (shape.element_count() / row.max(1), shape.element().size_bytes());
    let arrays = instr.operands.iter().filter_map(|&operand| array(computation, operand));
    let mut pieces = arrays.map(|array| array.element_count() / rows.max(1));
    let count = instr.operands.len();
    match size {
        1 | 2 => {
            let is_number = |piece: usize| piece >= LEAST_NUMBER && piece.is_power_of_two();
            row > SHORT_PIECE * count || pieces.all(is_number)
        }
        4 if count > 2 && pieces.clone().all(|piece| piece == WORDS_OF_A_PIECE) => true,
        _ => row * size >= WIDE_PIECE_BYTES * count && pieces.any(|p| p.is_power_of_two()),
    }
}

/// Whether two reductions fold the same dimensions of arrays of the same sizes.
fn is_alike(computation: &Computation, a: InstrId, b: InstrId) -> bool {
    let [x, y] = [a, b].map(|id| computation.instr(id));
    let (Op::Reduce(of), Op::Reduce(other)) = (&x.op, &y.op) else { return false };
    let [from, to] = [x, y].map(|instr| array(computation, instr.operands[0]));
    x.shape.as_array().is_some()
        && y.shape.as_array().is_some()
        && of.dimensions == other.dimensions
        && from.zip(to).is_some_and(|(from, to)| from.dims() == to.dims())
}

/// The array whose elements an instruction only gives other sizes.
fn renamed(computation: &Computation, mut id: InstrId) -> InstrId {
    while let Op::Reshape(_) = computation.instr(id).op {
        id = computation.instr(id).operands[0];
    }
    id
}

/// How an instruction joins a group.
struct Join {
    /// As its own, rather than as a copy.
    own: bool,
    space: Option<NewSpace>,
    /// How it lies in the loops of before.
    role: Role,
    paths: AccessPaths,
}

/// The loops of a group with a new member, if they are others, and the old ones' numbers among them;
/// see [`Space::admit`].
type NewSpace = (Space, Option<Vec<usize>>);

/// An operand that may join a group.
struct Candidate<'c> {
    id: InstrId,
    instr: &'c Instr,
    /// The sizes of its dimensions.
    dims: &'c [usize],
    class: FusionClass,
    /// The arrays that the group reads and writes with it.
    arrays: usize,
    /// How it lies in the group's loops, ...
    role: Role,
    /// ... and at how many of their points it differs.
    level: Level,
    paths: AccessPaths,
}

impl Candidate<'_> {
    /// The loops of the group with it: `Some(None)` if they stay as they are, `None` if it does not fit
    /// them.
    fn space_with(&self, computation: &Computation, group: &Group) -> Option<Option<NewSpace>> {
        let is_partial = self.level == Level::Partial;
        match (self.class, &self.instr.op) {
            // Where a part is changed is known before the loops begin.
            (FusionClass::Reduce, Op::Reduce(_)) if group.says_where(computation, self.id) => None,
            (FusionClass::Reduce, Op::Reduce(op)) => {
                let from = array(computation, self.instr.operands[0])?;
                let new = group.space.admit(&op.dimensions, &self.role, from.dims(), self.dims)?;
                let is_new = new.1.is_some() || group.space.folded != new.0.folded;
                Some(is_new.then_some(new))
            }
            (FusionClass::Reduce, _) => None,
            (FusionClass::Costly, _) if is_partial && !group.space.is_outer(&self.role) => None,
            (FusionClass::Costly, _) if is_partial && self.is_awaited(computation, group) => None,
            // What is moved without a computation in between is read where it lies.
            (FusionClass::Movement, _) if is_partial && !group.moves_only(computation, self.id) => {
                None
            }
            _ => Some(None),
        }
    }
}

/// The fewest elements of a transcendental function for a kernel of its own before the loops that read it, and the most
/// points of these loops for each element: with more, its latency does not show.
const MANY_AWAITED: usize = 64;
const MAX_AWAITING: usize = 1 << 13;
/// The most instructions that are looked at to find out whether a value is made of larger arrays.
const MAX_LOOKED_AT: usize = 32;

impl Candidate<'_> {
    /// Whether this is a transcendental function of each row of a grid, say, which its loop would wait for. In a kernel
    /// before, lanes are rows. Not of what is folded, for which there would be a kernel before that.
    fn is_awaited(&self, computation: &Computation, group: &Group) -> bool {
        let count: usize = self.dims.iter().product();
        let mut left = MAX_LOOKED_AT;
        count >= MANY_AWAITED
            && group.space.points() / count <= MAX_AWAITING
            && is_transcendental(&self.instr.op)
            && is_made_of_small(computation, self.instr, count, &mut left)
    }
}

fn is_transcendental(op: &Op) -> bool {
    match op {
        Op::Unary(op) => op.cost() == Cost::Transcendental,
        Op::Binary(op) => op.cost() == Cost::Transcendental,
        _ => false,
    }
}

/// Whether an instruction depends, through what is computed, on arrays of at most `most` elements alone. (Elements of
/// tuples are not: a loop's body is better one kernel.)
fn is_made_of_small(
    computation: &Computation,
    instr: &Instr,
    most: usize,
    left: &mut usize,
) -> bool {
    instr.operands.iter().all(|&id| {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let is_small = array(computation, id).is_some_and(|shape| shape.element_count() <= most);
        let operand = computation.instr(id);
        is_small && is_made_of_small(computation, operand, most, left)
    })
}

impl Group {
    fn new(
        computation: &Computation,
        root: InstrId,
        class: FusionClass,
        mut notes: Notes,
    ) -> Option<Group> {
        let instr = computation.instr(root);
        let dims =
            |i: usize| array(computation, instr.operands[i]).map(|shape| shape.dims().to_vec());
        let (space, role) = match (&instr.op, class) {
            (Op::Reduce(op), FusionClass::Reduce) => {
                let sizes = dims(0)?;
                let folded: Vec<bool> =
                    (0..sizes.len()).map(|d| op.dimensions.contains(&d)).collect();
                let kept = (0..sizes.len()).filter(|&d| !folded[d]);
                let kept = kept.map(|d| (sizes[d] != 1).then_some(d)).collect();
                let role = Role { dims: Some(kept), bijective: false, everywhere: true };
                (Space { sizes, folded: Some(folded) }, role)
            }
            (Op::DynamicUpdateSlice(_), _) => {
                (Space { sizes: dims(1)?, folded: None }, Role::partial())
            }
            _ => {
                let sizes = instr.shape.as_array()?.dims().to_vec();
                let role = Role::identity(&sizes);
                (Space { sizes, folded: None }, role)
            }
        };
        let note = Note { role: Some(role), paths: AccessPaths::of_root(), ..Note::default() };
        notes.insert(root, note);
        let mut group = Group {
            root,
            members: IdSet::from_iter([root]),
            outputs: vec![root],
            folds: class == FusionClass::Reduce,
            owned: IdSet::from_iter([root]),
            space,
            operands: instr.operands.iter().copied().collect(),
            notes,
            copies: 0,
            spread: 0,
            most: None,
        };
        group.add_uses(computation, root);
        Some(group)
    }

    /// At how many places that are not known beforehand members read elements of a value.
    fn places_gathered(&self, computation: &Computation, id: InstrId) -> Option<usize> {
        let places = |&user: &InstrId| {
            let instr = computation.instr(user);
            let gathers = matches!(instr.op, Op::Gather(_)) && instr.operands[0] == id;
            let here = gathers.then(|| array(computation, user).map(|array| array.element_count()));
            self.notes.get(&user).and_then(|note| note.gathered).max(here.flatten())
        };
        self.users(id).iter().filter_map(places).max()
    }

    /// Whether it would take longer to compute a value wherever it is gathered than to store it and gather
    /// that: of each operand the elements would be gathered.
    fn gathers_much(&self, computation: &Computation, id: InstrId, class: FusionClass) -> bool {
        let Some(shape) = array(computation, id) else { return false };
        let Some(places) = self.places_gathered(computation, id) else { return false };
        let is_read = |operand: &&InstrId| {
            let instr = computation.instr(**operand);
            match instr.op {
                Op::Constant(_) | Op::Iota(_) => false,
                Op::Broadcast(_) => array(computation, instr.operands[0])
                    .is_some_and(|array| array.element_count() > 1),
                _ => true,
            }
        };
        let operands = &computation.instr(id).operands;
        let reads = operands.iter().filter(is_read).collect::<BTreeSet<_>>().len();
        let more = places.saturating_mul(reads.saturating_sub(1));
        let passed = shape.element_count().saturating_mul(reads + 1);
        matches!(class, FusionClass::Cheap | FusionClass::Costly)
            && more >= MIN_GATHERED
            && more.saturating_mul(GATHER_COST) > passed
    }

    /// Whether members gather by a value, or by what they make of it: if that is counted, they read what lies side by
    /// side, or in steps.
    fn are_places(&self, computation: &Computation, id: InstrId, left: &mut usize) -> bool {
        self.users(id).iter().any(|&user| {
            let instr = computation.instr(user);
            *left = left.saturating_sub(1);
            match &instr.op {
                Op::Gather(_) => instr.operands[0] != id,
                Op::DynamicSlice(_) => false,
                _ => *left > 0 && self.are_places(computation, user, left),
            }
        })
    }

    /// The members that use a value.
    fn users(&self, id: InstrId) -> &[InstrId] {
        self.notes.get(&id).map_or(&[], |note| &note.users)
    }

    /// The paths to an operand, or to a member of which that is not noted yet.
    fn paths_to(
        &self,
        computation: &Computation,
        classes: &[FusionClass],
        id: InstrId,
    ) -> AccessPaths {
        let paths = |user: InstrId| self.notes.get(&user).map(|note| &note.paths);
        AccessPaths::at(computation, classes, id, self.users(id), paths)
    }

    /// The members, and those for which there has to be room: what is spread comes when all between it and its users has been
    /// looked at.
    fn reserved(&self) -> usize {
        self.members.len() + SPREAD_MEMBERS * self.spread
    }

    /// Notes what a new member uses.
    fn add_uses(&mut self, computation: &Computation, id: InstrId) {
        for &operand in &computation.instr(id).operands {
            let users = &mut self.notes.entry(operand).or_default().users;
            if users.last() != Some(&id) {
                users.push(id);
            }
        }
    }

    /// The role of an operand, as all its users here see it.
    fn role_of(&self, computation: &Computation, id: InstrId) -> Role {
        let Some(shape) = array(computation, id) else { return Role::partial() };
        let mut role: Option<Role> = None;
        for &user in self.users(id) {
            let Some(of) = self.notes.get(&user).and_then(|note| note.role.as_ref()) else {
                continue;
            };
            let instr = computation.instr(user);
            let result = array(computation, user).map_or(&[][..], |shape| shape.dims());
            for (number, _) in instr.operands.iter().enumerate().filter(|&(_, &o)| o == id) {
                let here = self.space.operand(instr, number, of, shape.dims(), result);
                role = Some(match role {
                    None => here,
                    Some(role) => role.join(here),
                });
            }
        }
        role.unwrap_or_else(Role::partial)
    }

    /// Whether an operand is what the root changes a part of.
    fn only_updates(&self, computation: &Computation, id: InstrId) -> bool {
        let root = computation.instr(self.root);
        matches!(root.op, Op::DynamicUpdateSlice(_)) && root.operands[0] == id
    }

    /// Whether an instruction reads what the root changes a part of, and not that very part: the
    /// change is made in place, so that nothing else can be read by then.
    fn reads_elsewhere(&self, computation: &Computation, id: InstrId) -> bool {
        if !self.updates_what_is_read(computation, id) {
            return false;
        }
        let (root, instr) = (computation.instr(self.root), computation.instr(id));
        let is_part = matches!(instr.op, Op::DynamicSlice(_))
            && instr.operands[0] == root.operands[0]
            && instr.operands[1..] == root.operands[2..]
            && array(computation, id)
                .zip(array(computation, root.operands[1]))
                .is_some_and(|(part, update)| part.dims() == update.dims());
        !is_part
    }

    /// Whether the root changes a part of what an instruction reads, by whatever name.
    fn updates_what_is_read(&self, computation: &Computation, id: InstrId) -> bool {
        let root = computation.instr(self.root);
        if !matches!(root.op, Op::DynamicUpdateSlice(_)) {
            return false;
        }
        let changed = renamed(computation, root.operands[0]);
        let operands = &computation.instr(id).operands;
        operands.iter().any(|&operand| renamed(computation, operand) == changed)
    }

    /// Whether the place at which the root changes an array depends on an instruction.
    fn says_where(&self, computation: &Computation, id: InstrId) -> bool {
        let root = computation.instr(self.root);
        let Op::DynamicUpdateSlice(_) = root.op else { return false };
        let mut pending: Vec<InstrId> = root.operands[2..].to_vec();
        let mut seen: FxHashSet<InstrId> = pending.iter().copied().collect();
        while let Some(at) = pending.pop() {
            if at == id {
                return true;
            }
            if self.members.contains(at) {
                let operands = computation.instr(at).operands.iter().copied();
                pending.extend(operands.filter(|&operand| seen.insert(operand)));
            }
        }
        false
    }

    /// Whether what uses an operand here only moves its elements.
    fn moves_only(&self, computation: &Computation, id: InstrId) -> bool {
        let mut users = self.users(id).iter().map(|&user| &computation.instr(user).op);
        users.all(|op| match op.gives() {
            Yield::Moved | Yield::Same | Yield::Itself => true,
            Yield::New | Yield::Recast | Yield::Passed => false,
        })
    }

    /// Goes over to other loops.
    fn enter(&mut self, space: Space, renumbered: Option<Vec<usize>>) {
        self.folds = true;
        if let Some(renumbered) = renumbered {
            for role in self.notes.values_mut().filter_map(|note| note.role.as_mut()) {
                role.bijective = false;
                for dim in role.dims.iter_mut().flatten().flatten() {
                    *dim = renumbered[*dim];
                }
            }
        }
        self.space = space;
    }
}
