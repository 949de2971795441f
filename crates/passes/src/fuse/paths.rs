//! On how many paths a fusion's result depends on a value: how often it is computed for each point.
//!
//! A stencil reads a value at several paths. Where the value is computed within the fusion, it is
//! computed as often; and what it is made of, by another stencil, as often for each of these. So the
//! work grows with the power of the steps, and a value in memory is cheaper from some number on.

use std::hash::{Hash, Hasher};

use helio_ir::{ArrayShape, Computation, InstrId, Op};
use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};

use super::class::{FusionClass, array};

/// The most paths to a value of a fusion: with more, it is stored, and read instead.
/// `docs/design/fusion.md` has the measurements.
const MAX_PATHS: usize = 8;
/// The most paths to a value that is computed, rather than moved, if reading it costs little,
const MAX_PATHS_NEAR: usize = 4;
/// as it does from a cache: the bytes of the smallest value that is not read from one.
const FAR_BYTES: usize = 8 << 20;
/// How many paths to real values one to a computed complex value counts as: a product of complex numbers is four of real
/// ones, and two sums.
const COMPLEX_PATHS: usize = 4;

/// A path from the root of a fusion to a value, told apart by the instructions on it that move
/// elements: a hash of them. On different paths, different elements of the value are needed.
type AccessPath = u64;

/// The most paths that are told apart.
const MAX_KNOWN: usize = 3 * MAX_PATHS;

/// The access paths to a value of a fusion, in ascending order; more than [`MAX_KNOWN`] are not told
/// apart.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessPaths(SmallVec<[AccessPath; 2]>);

impl AccessPaths {
    /// The path to the root.
    pub fn of_root() -> Self {
        AccessPaths(smallvec![0])
    }

    /// The paths to an operand of members, given those to the members.
    pub fn at<'p>(
        computation: &Computation,
        classes: &[FusionClass],
        id: InstrId,
        users: &[InstrId],
        paths_to: impl Fn(InstrId) -> Option<&'p AccessPaths>,
    ) -> Self {
        let mut paths = AccessPaths::default();
        for &user in users {
            let Some(AccessPaths(of)) = paths_to(user) else { continue };
            let instr = computation.instr(user);
            match (classes[user.index()], &instr.op) {
                // What is folded is folded once, wherever the result is needed.
                (FusionClass::Reduce, _) => paths.insert(way(0, user, 0)),
                // A fold of a few elements, written out.
                (FusionClass::Costly, Op::Reduce(op)) => {
                    let from = array(computation, instr.operands[0]);
                    let size = |&d: &usize| from.map_or(1, |from| from.dims()[d]);
                    let elements = op.dimensions.iter().map(size).product();
                    for &path in of {
                        (0..elements).for_each(|n| paths.insert(way(path, user, n)));
                    }
                }
                (FusionClass::Cheap | FusionClass::Costly, _) => {
                    of.iter().for_each(|&path| paths.insert(path));
                }
                (
                    FusionClass::Free
                    | FusionClass::Movement
                    | FusionClass::Update
                    | FusionClass::Boundary,
                    _,
                ) => {
                    let operands = instr.operands.iter().enumerate();
                    for (number, _) in operands.filter(|(_, operand)| **operand == id) {
                        of.iter().for_each(|&path| paths.insert(way(path, user, number)));
                    }
                }
            }
        }
        paths
    }

    /// Adds a path; of more than are told apart, the least stay.
    fn insert(&mut self, path: AccessPath) {
        if let Err(place) = self.0.binary_search(&path) {
            self.0.insert(place, path);
            self.0.truncate(MAX_KNOWN + 1);
        }
    }

    /// Whether a value of this class should be stored rather than computed on all of these paths, at `points`
    /// points. Where it has several elements for each point, that many paths compute none of them twice.
    pub fn are_too_many(&self, class: FusionClass, shape: &ArrayShape, points: usize) -> bool {
        let most = match class {
            FusionClass::Movement => MAX_PATHS,
            _ if shape.size_bytes() >= FAR_BYTES => MAX_PATHS,
            _ => MAX_PATHS_NEAR,
        };
        let is_complex = shape.element().is_complex() && class != FusionClass::Movement;
        let most = if is_complex { most / COMPLEX_PATHS } else { most };
        let elements = shape.element_count() / points.max(1);
        self.0.len() > most.saturating_mul(elements.max(1)).min(MAX_KNOWN)
    }
}

/// The path to operand `number` of an instruction that lies on `path`.
fn way(path: AccessPath, user: InstrId, number: usize) -> AccessPath {
    let mut hasher = FxHasher::default();
    (path, user, number).hash(&mut hasher);
    hasher.finish()
}
