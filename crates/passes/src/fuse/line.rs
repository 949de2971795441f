//! An order in which a computation's instructions and fusions can come one after the other, kept up
//! to date while fusions grow.
//!
//! A fusion is one unit: it gives nothing before it has everything. So an instruction may join it
//! with a value that is needed elsewhere only if no path leads from there back into the fusion. In
//! an order where operands come before users such a path runs between the places of the instruction
//! and of the fusion, and only what lies there is looked at; what then has to come after the fusion
//! is put there. (This is the incremental topological order of Pearce and Kelly, 2006, forwards
//! only.)

use helio_ir::InstrId;

use super::grow::{Group, Groups};

/// Uses looked at in search of a path; more are taken for one.
const MAX_SEARCH: usize = 512;

/// Times that all places are given out anew for one computation; after that nothing is moved.
const MAX_SPREADS: usize = 64;

/// What is moved goes to the far end of a gap, of which it takes this part: the next to go behind
/// the same fusion then finds the others.
const PART_OF_GAP: u64 = 32;

/// The order. An instruction stands for itself, or the root of a fusion for all that the fusion owns.
pub(super) struct UnitOrder {
    /// What to compare entries by.
    places: Vec<u64>,
    /// A ring; its last entry is no instruction, but where it begins and ends.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// How often places were given out anew.
    spreads: usize,
    /// For each instruction, the last search that came by.
    seen: Vec<u32>,
    searches: u32,
    /// For each instruction, the root of a fusion that a path leads into.
    leads: Vec<Option<InstrId>>,
}

/// A unit met in a search, and the number of the one that led there.
struct VisitedUnit {
    unit: InstrId,
    from: Option<usize>,
}

/// A path leads into the fusion, or there are too many to follow.
struct PathFound;

impl UnitOrder {
    /// `count` instructions in their order.
    pub fn of(count: usize) -> Self {
        let (gap, end) = (u64::MAX / (count as u64 + 2), count as u32);
        UnitOrder {
            places: (1..=count as u64).map(|i| i * gap).chain([0]).collect(),
            next: (1..=end).chain([0]).collect(),
            previous: [end].into_iter().chain(0..end).collect(),
            spreads: 0,
            seen: vec![0; count],
            searches: 0,
            leads: vec![None; count],
        }
    }

    /// Whether an instruction that belongs to no fusion stands before another: it depends on nothing that the other gives.
    pub fn is_before(&self, id: InstrId, other: InstrId) -> bool {
        self.places[id.index()] < self.places[other.index()]
    }

    /// Puts what depends on an instruction behind a group, which can make its value for others then,
    /// too. False, and nothing is moved, if some of it leads into the group.
    pub fn make_way(&mut self, groups: &Groups, group: &Group, from: InstrId) -> bool {
        let mut met: Vec<VisitedUnit> = Vec::new();
        let mut pending: Vec<usize> = Vec::new();
        let (mut looked, mut at) = (0, None);
        self.searches += 1;
        loop {
            let of = Uses { groups, group, from, looked: &mut looked };
            if self.follow(of, at, &mut met, &mut pending).is_err() {
                while let Some(n) = at {
                    self.leads[met[n].unit.index()] = Some(group.root);
                    at = met[n].from;
                }
                return false;
            }
            at = pending.pop();
            if at.is_none() {
                break;
            }
        }
        let mut moved: Vec<InstrId> = met.into_iter().map(|met| met.unit).collect();
        moved.sort_unstable_by_key(|unit| self.places[unit.index()]);
        self.put_behind(group.root, &moved)
    }

    /// Meets the units that use what a unit gives, as far as they come before the group.
    fn follow(
        &mut self,
        uses: Uses<'_>,
        at: Option<usize>,
        met: &mut Vec<VisitedUnit>,
        pending: &mut Vec<usize>,
    ) -> Result<(), PathFound> {
        let (root, begin) = (uses.group.root, met.len());
        let end = self.places[root.index()];
        let of = at.map_or(uses.from, |at| met[at].unit);
        uses.each(of, |unit| {
            let i = unit.index();
            if unit == root || self.leads[i] == Some(root) {
                return Err(PathFound);
            }
            if self.places[i] < end
                && std::mem::replace(&mut self.seen[i], self.searches) != self.searches
            {
                met.push(VisitedUnit { unit, from: at });
            }
            Ok(())
        })?;
        // The last ones first: a path into the group is short from there.
        pending.extend(begin..met.len());
        Ok(())
    }

    /// Puts units, in this order, right behind another, before which they stood. False, and nothing is
    /// done, if that would take too long.
    fn put_behind(&mut self, unit: InstrId, moved: &[InstrId]) -> bool {
        if moved.is_empty() {
            return true;
        }
        let after = self.next[unit.index()];
        let is_end = after as usize == self.seen.len();
        let end = if is_end { u64::MAX } else { self.places[after as usize] };
        let step = (end - self.places[unit.index()]) / PART_OF_GAP / (moved.len() as u64 + 1);
        if step == 0 && self.spreads == MAX_SPREADS {
            return false;
        }
        for id in moved {
            let (before, after) = (self.previous[id.index()], self.next[id.index()]);
            self.next[before as usize] = after;
            self.previous[after as usize] = before;
        }
        let mut before = unit.0;
        for id in moved {
            self.next[before as usize] = id.0;
            self.previous[id.index()] = before;
            before = id.0;
        }
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
        if step == 0 {
            self.spread();
        } else {
            let places = (1..).map(|i| end - i * step);
            moved.iter().rev().zip(places).for_each(|(id, at)| self.places[id.index()] = at);
        }
        true
    }

    /// Gives out all places anew.
    fn spread(&mut self) {
        self.spreads += 1;
        let count = self.seen.len();
        let gap = u64::MAX / (count as u64 + 2);
        let (mut at, mut place) = (self.next[count] as usize, 0);
        while at != count {
            place += gap;
            self.places[at] = place;
            at = self.next[at] as usize;
        }
    }
}

/// Who has to come after units, if `from` joins the group: who uses what they give, and what
/// [`Sequence`](super::order::Sequence) says.
struct Uses<'g> {
    groups: &'g Groups,
    group: &'g Group,
    from: InstrId,
    /// How many uses were looked at.
    looked: &'g mut usize,
}

impl Uses<'_> {
    /// Visits the units that have to come after one, an instruction or the root of a fusion.
    fn each(
        self,
        unit: InstrId,
        mut visit: impl FnMut(InstrId) -> Result<(), PathFound>,
    ) -> Result<(), PathFound> {
        let Uses { groups, group, from, looked } = self;
        let number = groups.groups.len();
        let mut of = |id: InstrId| {
            for &after in groups.sequence.after(id) {
                *looked += 1;
                visit(after)?;
            }
            for &user in &groups.users[id.index()] {
                let within = &groups.within[user.index()];
                *looked += 1 + within.len();
                if *looked > MAX_SEARCH {
                    return Err(PathFound);
                }
                for &other in within {
                    let is_inside = groups.has_member(other, id) || id == from && other == number;
                    let other = if other == number { group } else { &groups.groups[other] };
                    if !is_inside && other.root != unit {
                        visit(other.root)?;
                    }
                }
                if groups.owner[user.index()].is_none() {
                    visit(user)?;
                }
            }
            Ok(())
        };
        match groups.owner[unit.index()] {
            Some(owner) if unit != from => {
                groups.groups[owner].owned.iter().try_for_each(|&id| of(id))
            }
            _ => of(unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order, which places agree with.
    fn order(line: &UnitOrder) -> Vec<u32> {
        let count = line.seen.len();
        let mut order = Vec::new();
        let mut at = line.next[count];
        while at as usize != count {
            order.push(at);
            at = line.next[at as usize];
        }
        let places: Vec<u64> = order.iter().map(|&id| line.places[id as usize]).collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
        order
    }

    #[test]
    fn units_move_behind_others() {
        let ids = |ids: &[u32]| ids.iter().copied().map(InstrId).collect::<Vec<_>>();
        let mut line = UnitOrder::of(6);
        assert!(line.put_behind(InstrId(3), &ids(&[0, 2])));
        assert_eq!(order(&line), [1, 3, 0, 2, 4, 5]);
        assert!(line.put_behind(InstrId(5), &ids(&[1, 4])));
        assert_eq!(order(&line), [3, 0, 2, 5, 1, 4]);
    }

    #[test]
    fn room_is_made_again_and_again() {
        let mut line = UnitOrder::of(3);
        line.spreads = MAX_SPREADS - 1;
        let mut moves = 0;
        // The last one goes between the first and the other.
        while moves < 1 << 16 && line.put_behind(InstrId(0), &[InstrId(2 - moves % 2)]) {
            assert_eq!(order(&line), [0, 2 - moves % 2, 1 + moves % 2]);
            moves += 1;
        }
        assert!(moves > 1000, "{moves}");
        assert_eq!(line.spreads, MAX_SPREADS);
    }
}
