//! Where loops are cut, so that the operands of concatenations and the inside of pads are read
//! without asking at each element where it is.

use helio_ir::ElementType;

use super::affine::{Affine, Dim, DimBounds};
use super::domain::Domain;
use super::graph::{Cond, Node};
use super::loops::Work;
use super::nest::Nest;

/// The values `first..end` of a loop variable.
pub(super) type Segment = (i64, i64);

/// The most copies of what is in the loops that cutting them makes.
const MAX_COPIES: usize = 16;
/// The most values of all copies together.
const MAX_VALUES: usize = 4096;
/// What it takes to find in which lanes a condition holds, and to choose between two values by it, in processor cycles.
const MASK_CYCLES: f64 = 8.0;

/// Bytes of a cache line.
const LINE_BYTES: i64 = 64;
/// The least vectors of a segment of which the first is cut off so that the others do not cross cache lines.
const MIN_ALIGNED: i64 = 8;

/// The segments of each loop of a kernel: cut at every place where a condition on the loop's
/// variable alone begins or ceases to hold, as long as that does not make for too much code. Other
/// conditions are left to masks.
pub(super) fn of(domain: &Domain<'_>, nest: &Nest, work: &Work, lanes: i64) -> Vec<Vec<Segment>> {
    let graph = &domain.graph;
    let sizes: Vec<i64> = graph.dim_bounds.iter().map(|&bound| bound + 1).collect();
    let mut cuts: Vec<Vec<i64>> = vec![Vec::new(); sizes.len()];
    for cond in graph.guards.iter().flatten() {
        if let Some((dim, at)) = cut(cond, graph.bounds())
            && 0 < at
            && at < sizes[usize::from(dim)]
        {
            cuts[usize::from(dim)].push(at);
        }
    }
    // Masks cost the most in the loop over lanes; those of outer loops are made less often.
    let mut order: Vec<Dim> = nest.vector.into_iter().collect();
    // What passes leave for each other would have to be known for each segment.
    if work.passes.len() <= 1 {
        order.extend(nest.inner.iter().rev());
    } else if nest.across {
        order.clear();
    }
    order.extend(nest.outer.iter().rev());
    let values = graph.nodes.len().max(1) * nest.unroll;
    let mut left = MAX_COPIES.min(MAX_VALUES / values).max(1);
    let mut segments: Vec<Vec<Segment>> = sizes.iter().map(|&size| vec![(0, size)]).collect();
    for dim in order.into_iter().map(usize::from) {
        let cuts = &mut cuts[dim];
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len() < left {
            let begins = std::iter::once(0).chain(cuts.iter().copied());
            let ends = cuts.iter().copied().chain([sizes[dim]]);
            let mut parts: Vec<Segment> = begins.zip(ends).collect();
            let is_vector = nest.vector.is_some_and(|vector| usize::from(vector) == dim);
            if is_vector && nest.woven.is_none() {
                // Each segment ends in a vector of its own, which may be computed for few lanes.
                let vectors = |size: i64| (size + lanes - 1) / lanes;
                let whole = vectors(sizes[dim]);
                let more = parts.iter().map(|&(lo, hi)| vectors(hi - lo)).sum::<i64>() - whole;
                if more as f64 * domain.cycles() > whole as f64 * cuts.len() as f64 * MASK_CYCLES {
                    continue;
                }
                let kept = !nest.across && nest.near.is_empty();
                if kept && parts.len() < left {
                    parts = aligned(domain, work, dim, lanes, parts);
                }
            }
            left /= parts.len();
            segments[dim] = parts;
        }
    }
    segments
}

/// Cuts the longest segment of the loop over lanes, unless it begins where vectors begin with cache lines, so that all of it
/// but a first vector, of fewer lanes, does.
fn aligned(
    domain: &Domain<'_>,
    work: &Work,
    dim: usize,
    lanes: i64,
    mut parts: Vec<Segment>,
) -> Vec<Segment> {
    let longest = parts.iter().enumerate().max_by_key(|(_, (lo, hi))| hi - lo);
    let Some((at, &(lo, hi))) = longest else { return parts };
    let first = (lo as u64).next_multiple_of(lanes as u64) as i64;
    if first == lo || hi - lo < MIN_ALIGNED * lanes {
        return parts;
    }
    // The lines' bounds that are crossed by each vector, if vectors begin at these values of the variable.
    let crossed = |begin: i64| {
        let crosses = |at: &Affine, ty: ElementType| {
            let fills_line = ty.size_bytes() as i64 * lanes == LINE_BYTES;
            let is_fixed = at.symbols.is_empty()
                && at.dims.iter().all(|&(d, by)| usize::from(d) == dim || by % lanes == 0);
            let is_run = at.factor(dim as Dim) == 1;
            fills_line && is_fixed && is_run && (at.constant + begin) % lanes != 0
        };
        let loads = domain.graph.ids().filter(|&id| match domain.graph.node(id) {
            Node::Load { at, .. } => crosses(at, domain.graph.info(id).ty),
            _ => false,
        });
        let stores = work.passes.iter().flat_map(|pass| &pass.stores).chain(&work.stores);
        loads.count() + stores.filter(|store| crosses(&store.at, store.ty)).count()
    };
    if crossed(first) < crossed(lo) {
        parts[at].0 = first;
        parts.insert(at, (lo, first));
    }
    parts
}

/// The first value of a loop variable for which a condition is another than before, if it depends on
/// that variable alone.
fn cut(cond: &Cond, bounds: DimBounds<'_>) -> Option<(Dim, i64)> {
    let (at, below) = cond.at.clone().without_remainder(cond.below, bounds);
    let &[(dim, factor)] = &at.dims[..] else { return None };
    let distance = below - at.constant;
    let value = match factor > 0 {
        true => -(-distance).div_euclid(factor),
        false => (-distance).div_euclid(-factor) + 1,
    };
    at.symbols.is_empty().then_some((dim, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_change_at_cuts() {
        for factor in [-3, -1, 1, 2] {
            for (constant, below) in [(0, 4), (7, 3), (-5, 1), (2, 2)] {
                let at = Affine::dim(0).times(factor).offset(constant);
                let bounds = DimBounds { dims: &[20], symbols: &[] };
                let (_, cut) = cut(&Cond { at, below, holds: true }, bounds).unwrap();
                let holds = |var: i64| factor * var + constant < below;
                for var in -20..20 {
                    assert_eq!(
                        holds(var),
                        (var < cut) == (factor > 0),
                        "{factor} {constant} {below}"
                    );
                }
            }
        }
    }
}
