//! On how many paths a fusion's result depends on a value: how often it is computed for each point.
//!
//! A stencil reads a value at several paths. Where the value is computed within the fusion, it is
//! computed as often; and what it is made of, by another stencil, as often for each of these. So the
//! work grows with the power of the steps, and a value in memory is cheaper from some number on.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use helio_ir::{Computation, InstrId, Op};
use rustc_hash::{FxHashMap, FxHasher};

use super::class::FusionClass;

/// The most paths to a value of a fusion: with more, it is stored, and read instead.
/// `docs/design/fusion.md` has the measurements.
const MAX_PATHS: usize = 8;
/// The most paths to a value that is computed, rather than moved, if reading it costs little,
const MAX_PATHS_NEAR: usize = 4;
/// as it does from a cache: the bytes of the smallest value that is not read from one.
const FAR_BYTES: usize = 8 << 20;

/// A path from the root of a fusion to a value, told apart by the instructions on it that move
/// elements: a hash of them. On different paths, different elements of the value are needed.
type AccessPath = u64;

/// The access paths to each member of a fusion.
#[derive(Clone, Debug)]
pub(super) struct AccessPaths(FxHashMap<InstrId, BTreeSet<AccessPath>>);

impl AccessPaths {
    /// The paths of a fusion whose only member is `root`.
    pub fn of(root: InstrId) -> Self {
        AccessPaths(FxHashMap::from_iter([(root, BTreeSet::from([0]))]))
    }

    /// The paths to an operand of members; more than [`MAX_PATHS`] are not told apart.
    pub fn at(
        &self,
        computation: &Computation,
        classes: &[FusionClass],
        id: InstrId,
        users: &[InstrId],
    ) -> BTreeSet<AccessPath> {
        let mut paths = BTreeSet::new();
        for &user in users {
            let Some(of) = self.0.get(&user) else { continue };
            let instr = computation.instr(user);
            let operands = instr.operands.iter().enumerate().filter(|(_, operand)| **operand == id);
            match (classes[user.index()], &instr.op) {
                // What is folded is folded once, wherever the result is needed.
                (FusionClass::Reduce, _) => paths.extend([way(0, user, 0)]),
                // A fold of a few elements, written out.
                (FusionClass::Costly, Op::Reduce(_)) => {
                    let all = of.iter().flat_map(|&path| (0..=MAX_PATHS).map(move |n| (path, n)));
                    paths.extend(all.map(|(path, n)| way(path, user, n)));
                }
                (FusionClass::Cheap | FusionClass::Costly, _) => paths.extend(of),
                (
                    FusionClass::Free
                    | FusionClass::Movement
                    | FusionClass::Update
                    | FusionClass::Boundary,
                    _,
                ) => {
                    for (number, _) in operands {
                        paths.extend(of.iter().map(|&path| way(path, user, number)));
                    }
                }
            }
            while paths.len() > MAX_PATHS + 1 {
                paths.pop_last();
            }
        }
        paths
    }

    /// Whether a value of this class and size should be stored rather than computed on all of these
    /// paths.
    pub fn are_too_many(paths: &BTreeSet<AccessPath>, class: FusionClass, bytes: usize) -> bool {
        let most = match class {
            FusionClass::Movement => MAX_PATHS,
            _ if bytes >= FAR_BYTES => MAX_PATHS,
            _ => MAX_PATHS_NEAR,
        };
        paths.len() > most
    }

    /// Notes the paths to a new member.
    pub fn insert(&mut self, id: InstrId, paths: BTreeSet<AccessPath>) {
        self.0.insert(id, paths);
    }
}

/// The path to operand `number` of an instruction that lies on `path`.
fn way(path: AccessPath, user: InstrId, number: usize) -> AccessPath {
    let mut hasher = FxHasher::default();
    (path, user, number).hash(&mut hasher);
    hasher.finish()
}
