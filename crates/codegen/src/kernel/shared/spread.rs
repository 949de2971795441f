//! Accesses in lanes, and which lanes of two of them may be the same bytes.

use super::form::Form;
use super::walk::{Access, Limit, Loop, Walk};

/// An address as `stride · x + rest`, where `x`, counted in lanes, is in the loop over lanes:
/// `x = scale · variable + offset + lane`.
#[derive(Clone)]
pub(super) struct Spread {
    /// Bytes from one lane to the next.
    pub(super) stride: i128,
    /// The number of the loop over lanes, if there is one, and its `scale`.
    pub(super) around: Option<(usize, i128)>,
    /// The address without `x`, in bytes.
    pub(super) rest: Form,
}

impl Spread {
    /// `None` if the lanes do not go on where the loop's variable does.
    pub(super) fn of(walk: &Walk<'_>, access: &Access, at: &Form) -> Option<Spread> {
        let stride = access.lane_stride;
        if stride == 0 {
            return None;
        }
        let at = walk.atoms.expand(at);
        let around = access.path.iter().rev().find_map(|&n| {
            let Loop { var, step, .. } = walk.loops[n];
            let factor = at.factor(var);
            let fits = step > 1 && factor % stride == 0 && factor / stride > 0;
            fits.then_some((n, factor / stride))
        });
        let mut rest = at;
        if let Some((n, scale)) = around {
            rest = rest.plus(&Form::atom(walk.loops[n].var), -scale * stride);
        }
        Some(Spread { stride, around, rest })
    }

    /// The least and the greatest `x` of lanes that are on, `offset` being what is in it besides;
    /// `None` if none ever is.
    pub(super) fn range(
        &self,
        walk: &Walk<'_>,
        access: &Access,
        offset: i128,
    ) -> Option<(i128, i128)> {
        let (mut least, mut greatest) = (offset, offset + access.lanes - 1);
        if let Some((n, scale)) = self.around {
            let (low, high) = walk.atoms.atom_range(walk.loops[n].var);
            (least, greatest) = (least + scale * low, greatest + scale * high);
        }
        for limit in &access.limits {
            if let Some(shift) = self.limited(walk, limit, offset) {
                let below = limit.ends.iter().map(|end| walk.atoms.range(end).1);
                greatest = below.fold(greatest, |most, end| most.min(end - 1 + shift));
            }
        }
        (least <= greatest).then_some((least, greatest))
    }

    /// The `d` for which a mask says that `x` is below the ends of its limit plus `d`; `None` if the
    /// limit's index is not `x` plus a constant.
    fn limited(&self, walk: &Walk<'_>, limit: &Limit, offset: i128) -> Option<i128> {
        let mut index = walk.atoms.expand(&limit.index);
        if let Some((n, scale)) = self.around {
            index = index.plus(&Form::atom(walk.loops[n].var), -scale);
        }
        Some(offset - index.number()?)
    }

    /// Whether `x` is below `scale` times what the loop's variable is below, for each such bound.
    pub(super) fn is_below_uppers(&self, walk: &Walk<'_>, access: &Access, offset: i128) -> bool {
        let Some((n, scale)) = self.around else { return false };
        let Loop { step, whole, ref uppers, .. } = walk.loops[n];
        let limited = |limit: &Limit| {
            let end = uppers.first().map(|upper| upper.times(scale));
            let fits = self.limited(walk, limit, offset).is_some_and(|shift| shift <= 0);
            fits && limit.ends.first() == end.as_ref()
        };
        (whole && offset + access.lanes <= scale * step) || access.limits.iter().any(limited)
    }
}

/// A load and a store whose lanes are of one distance.
pub(super) struct LanePair {
    pub(super) load: Spread,
    store: Spread,
    /// What is in the `x` of the load, and of the store, besides variable and lane.
    offsets: (i128, i128),
    /// The least and the greatest `x` of each.
    ranges: ((i128, i128), (i128, i128)),
}

impl LanePair {
    /// `None` if no lane of one of them is ever on.
    pub(super) fn new(
        walk: &Walk<'_>,
        (load, load_access): (Spread, &Access),
        (store, store_access): (Spread, &Access),
        offsets: (i128, i128),
    ) -> Option<LanePair> {
        let of_load = load.range(walk, load_access, offsets.0)?;
        let of_store = store.range(walk, store_access, offsets.1)?;
        Some(LanePair { load, store, offsets, ranges: (of_load, of_store) })
    }

    /// The least and the greatest difference of an `x` of the load and one of the store.
    pub(super) fn span(&self) -> (i128, i128) {
        let (of_load, of_store) = self.ranges;
        (of_load.0 - of_store.1, of_load.1 - of_store.0)
    }

    /// Whether no `x` of the load is one of the store.
    pub(super) fn is_beside(&self) -> bool {
        let (of_load, of_store) = self.ranges;
        of_load.1 < of_store.0 || of_store.1 < of_load.0
    }

    /// By how many lanes one is moved against the other.
    fn distance(&self) -> i128 {
        (self.offsets.0 - self.offsets.1).abs()
    }

    /// Whether loop `n` is the loop over lanes of both, and whatever the lane, both access it in the same
    /// iteration.
    pub(super) fn is_of_one_iteration(
        &self,
        walk: &Walk<'_>,
        (load, store): (&Access, &Access),
        n: usize,
    ) -> bool {
        let lanes = load.lanes.max(store.lanes);
        let near = |scale| self.distance() + lanes - 1 < scale * walk.loops[n].step;
        self.load.around == self.store.around
            && self.load.around.is_some_and(|(around, scale)| around == n && near(scale))
    }

    /// Whether both access a lane in the same piece of the range.
    pub(super) fn is_in_one_piece(
        &self,
        walk: &Walk<'_>,
        (load, store): (&Access, &Access),
    ) -> bool {
        let of = |spread: &Spread, access: &Access, offset| {
            let in_piece = spread.around.is_some_and(|(n, _)| walk.loops[n].in_piece);
            in_piece && spread.is_below_uppers(walk, access, offset)
        };
        of(&self.load, load, self.offsets.0) && of(&self.store, store, self.offsets.1)
    }

    /// Whether no lane is the same in one iteration of the loops that both are in: they are copies of a
    /// loop's body side by side, or in loops one of which goes on where the other ends.
    pub(super) fn is_apart(
        &self,
        walk: &Walk<'_>,
        (load, store): (&Access, &Access),
        common: &[usize],
    ) -> bool {
        let (a, b, (x, y)) = (&self.load, &self.store, self.offsets);
        let same_loop = a.around == b.around && a.around.is_none_or(|(n, _)| common.contains(&n));
        let copies = same_loop && self.distance() >= load.lanes.max(store.lanes);
        let after = |low: &Spread, high: (&Spread, &Access, i128)| {
            let (spread, access, offset) = high;
            let bounds = low.around.zip(spread.around).is_some_and(|((n, _), (m, _))| {
                walk.loops[n].lowers.iter().any(|lower| {
                    let uppers = walk.loops[m].uppers.iter();
                    let mut gaps = uppers.map(|u| lower.plus(u, -1).number());
                    gaps.any(|gap| gap.is_some_and(|gap| gap >= 0))
                })
            });
            bounds && spread.is_below_uppers(walk, access, offset)
        };
        copies || after(a, (b, store, y)) || after(b, (a, load, x))
    }
}
