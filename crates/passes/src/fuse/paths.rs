//! At how many places a fusion computes a value for each of its points.
//!
//! A stencil reads a value at several places. Where the value is computed within the fusion, it is
//! computed as often; and what it is made of, by another stencil, as often for each of these. So the
//! work grows with the power of the steps, and a value in memory is cheaper from some number on.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use helio_ir::{Computation, InstrId, Op};

use super::class::Class;
use crate::mix::{IdMap, Mixer};

/// A value is computed at so many places at most.
const MOST: usize = 8;

/// A place: the instructions on the way to it that move elements.
type Place = u64;

/// The places of each member of a fusion.
#[derive(Clone, Debug)]
pub(super) struct Places(IdMap<InstrId, BTreeSet<Place>>);

impl Places {
    /// Those of a fusion that is its root alone.
    pub fn of(root: InstrId) -> Self {
        Places(IdMap::from_iter([(root, BTreeSet::from([0]))]))
    }

    /// The places of an operand of members; more than [`MOST`] are not told apart.
    pub fn at(
        &self,
        computation: &Computation,
        classes: &[Class],
        id: InstrId,
        users: &[InstrId],
    ) -> BTreeSet<Place> {
        let mut places = BTreeSet::new();
        for &user in users {
            let Some(of) = self.0.get(&user) else { continue };
            let instr = computation.instr(user);
            let operands = instr.operands.iter().enumerate().filter(|(_, operand)| **operand == id);
            match (classes[user.index()], &instr.op) {
                // What is folded is folded once, wherever the result is needed.
                (Class::Reduce, _) => places.extend([way(0, user, 0)]),
                // A fold of a few elements, written out.
                (Class::Costly, Op::Reduce(_)) => {
                    let all = of.iter().flat_map(|&place| (0..=MOST).map(move |n| (place, n)));
                    places.extend(all.map(|(place, n)| way(place, user, n)));
                }
                (Class::Cheap | Class::Costly, _) => places.extend(of),
                (Class::Free | Class::Movement | Class::Update | Class::Boundary, _) => {
                    for (number, _) in operands {
                        places.extend(of.iter().map(|&place| way(place, user, number)));
                    }
                }
            }
            while places.len() > MOST + 1 {
                places.pop_last();
            }
        }
        places
    }

    /// Whether so many are too many for a value that is computed.
    pub fn are_too_many(places: &BTreeSet<Place>) -> bool {
        places.len() > MOST
    }

    /// Notes those of a new member.
    pub fn insert(&mut self, id: InstrId, places: BTreeSet<Place>) {
        self.0.insert(id, places);
    }
}

/// The place that operand `number` of an instruction is read at, for that instruction at `place`.
fn way(place: Place, user: InstrId, number: usize) -> Place {
    let mut hasher = Mixer::default();
    (place, user, number).hash(&mut hasher);
    hasher.finish()
}
