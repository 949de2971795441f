//! Small sets of instructions.

use std::iter::Rev;
use std::slice::Iter;

use helio_ir::InstrId;

/// A set of instructions, in their order. A fusion grows towards its operands, so what comes is mostly
/// before what is there.
#[derive(Clone, Debug, Default)]
pub(super) struct IdSet {
    /// The last one first.
    descending: Vec<InstrId>,
}

impl IdSet {
    /// The place of an instruction, or where it would be.
    fn find(&self, id: InstrId) -> Result<usize, usize> {
        self.descending.binary_search_by(|other| id.cmp(other))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.descending.len()
    }

    /// Whether an instruction is one of them.
    pub fn contains(&self, id: InstrId) -> bool {
        self.find(id).is_ok()
    }

    /// Adds an instruction; whether it was not there.
    pub fn insert(&mut self, id: InstrId) -> bool {
        let place = self.find(id);
        if let Err(place) = place {
            self.descending.insert(place, id);
        }
        place.is_err()
    }

    /// Takes an instruction out.
    pub fn remove(&mut self, id: InstrId) {
        if let Ok(place) = self.find(id) {
            self.descending.remove(place);
        }
    }

    /// The one that `after` others come after.
    pub fn nth_last(&self, after: usize) -> Option<InstrId> {
        self.descending.get(after).copied()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> Rev<Iter<'_, InstrId>> {
        self.descending.iter().rev()
    }
}

impl FromIterator<InstrId> for IdSet {
    fn from_iter<I: IntoIterator<Item = InstrId>>(ids: I) -> Self {
        let mut descending: Vec<InstrId> = ids.into_iter().collect();
        descending.sort_unstable_by(|a, b| b.cmp(a));
        descending.dedup();
        IdSet { descending }
    }
}

impl<'a> IntoIterator for &'a IdSet {
    type Item = &'a InstrId;
    type IntoIter = Rev<Iter<'a, InstrId>>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order() {
        let mut set: IdSet = [4, 1, 4, 3].map(InstrId).into_iter().collect();
        assert!(set.insert(InstrId(2)) && !set.insert(InstrId(3)));
        set.remove(InstrId(3));
        assert_eq!(set.iter().map(|id| id.0).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(set.contains(InstrId(2)) && !set.contains(InstrId(3)));
        assert_eq!([0, 2, 3].map(|n| set.nth_last(n).map(|id| id.0)), [Some(4), Some(1), None]);
    }
}
