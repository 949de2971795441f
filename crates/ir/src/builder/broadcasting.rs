//! Broadcasting, which the builder has and HLO has not: scalars, dimensions of size 1, operands of
//! different rank. All of it becomes `reshape` (to drop dimensions of size 1) and `broadcast`.

use super::window::ensure_length;
use super::{XlaOp, check};
use crate::ops::{Broadcast, Reshape};
use crate::{ArrayShape, DimKind, Error, Result};

impl XlaOp {
    /// The operation `apply` of both operands in one shape (E4 "Element-wise binary arithmetic
    /// operations"): the operand of lower rank is a scalar, or its dimension `i` is dimension
    /// `broadcast_dimensions[i]` of the other; then dimensions of size 1 stretch.
    #[track_caller]
    pub(super) fn broadcast_with(
        &self,
        rhs: &XlaOp,
        broadcast_dimensions: &[usize],
    ) -> Result<(XlaOp, XlaOp)> {
        let (lhs_shape, rhs_shape) = (self.array_shape()?, rhs.array_shape()?);
        let plan = BroadcastPlan::new(&lhs_shape, &rhs_shape, broadcast_dimensions)?;
        Ok((self.stretch(&plan.sizes, &plan.lhs_map), rhs.stretch(&plan.sizes, &plan.rhs_map)))
    }

    /// Broadcasts to these sizes; dimension `i` becomes dimension `map[i]`, and stretches if its
    /// size is 1. Dimensions that no other maps to, or that stretch, are static.
    ///
    /// Errors: `builder.C3` (sizes), `builder.C4` (the map).
    #[track_caller]
    pub(super) fn stretch(&self, sizes: &[usize], map: &[usize]) -> XlaOp {
        let shape = check!(self.builder, self.array_shape());
        check!(self.builder, ensure_length("broadcast dimensions", map.len(), shape.rank()));
        check!(self.builder, ensure_below("broadcast dimensions", map, sizes.len()));
        let mut dims: Vec<_> = sizes.iter().map(|&size| (size, DimKind::Static)).collect();
        let (mut kept, mut kept_map) = (Vec::new(), Vec::new());
        for (d, &to) in map.iter().enumerate() {
            let (size, kind) = shape.dim(d);
            if size == sizes[to] {
                dims[to] = (size, kind);
                kept.push((size, kind));
                kept_map.push(to);
            } else if (size, kind) != (1, DimKind::Static) {
                let detail = format!("dimension {d} of {shape} cannot become {}", sizes[to]);
                return self.builder.report_error(Error::rule("builder.C3", detail));
            }
        }
        if kept_map.iter().copied().eq(0..sizes.len()) {
            return self.clone();
        }
        let mut compact = self.clone();
        if kept.len() < shape.rank() {
            let shape = check!(self.builder, with_dims(&shape, kept));
            compact = self.builder.apply(Reshape { shape }, &[self]);
        }
        let shape = check!(self.builder, with_dims(&shape, dims));
        self.builder.apply(Broadcast { shape, dimensions: kept_map }, &[&compact])
    }

    /// A scalar in the dimensions of `target`; anything else as it is.
    #[track_caller]
    pub(super) fn scalar_to(&self, target: &ArrayShape) -> XlaOp {
        if !check!(self.builder, self.array_shape()).is_scalar() {
            return self.clone();
        }
        check!(self.builder, ensure_bounds_known(target));
        self.stretch(target.dims(), &[])
    }
}

/// How two operands come to have the same dimensions.
struct BroadcastPlan {
    sizes: Vec<usize>,
    lhs_map: Vec<usize>,
    rhs_map: Vec<usize>,
}

impl BroadcastPlan {
    fn new(lhs: &ArrayShape, rhs: &ArrayShape, broadcast_dimensions: &[usize]) -> Result<Self> {
        let lhs_is_small = lhs.rank() < rhs.rank();
        let (small, large) = if lhs_is_small { (lhs, rhs) } else { (rhs, lhs) };
        let identity: Vec<usize> = (0..large.rank()).collect();
        let map = if small.rank() < large.rank() {
            check_map(small, large, broadcast_dimensions)?;
            broadcast_dimensions.to_vec()
        } else {
            crate::ensure!(
                broadcast_dimensions.is_empty() || broadcast_dimensions == identity,
                "builder.C4",
                "broadcast dimensions {broadcast_dimensions:?} for {lhs} and {rhs} of one rank"
            );
            identity.clone()
        };
        if small.rank() < large.rank() || !small.same_dims(large) {
            ensure_bounds_known(small)?;
            ensure_bounds_known(large)?;
        }
        let mut sizes = large.dims().to_vec();
        for (&to, &size) in map.iter().zip(small.dims()) {
            match (size, sizes[to]) {
                (a, b) if a == b => {}
                (1, _) => {}
                (_, 1) => sizes[to] = size,
                (a, b) => {
                    let detail = format!("{lhs} and {rhs} differ in dimension {to}: {a} and {b}");
                    return Err(Error::rule("builder.C3", detail));
                }
            }
        }
        let (lhs_map, rhs_map) = if lhs_is_small { (map, identity) } else { (identity, map) };
        Ok(BroadcastPlan { sizes, lhs_map, rhs_map })
    }
}

fn check_map(small: &ArrayShape, large: &ArrayShape, map: &[usize]) -> Result<()> {
    // XLA refuses to guess here, too: which dimensions are meant must be said.
    crate::ensure!(
        map.len() == small.rank(),
        "builder.C4",
        "{small} and {large} differ in rank: {} broadcast dimensions needed, found {map:?}",
        small.rank()
    );
    crate::ensure!(
        map.windows(2).all(|pair| pair[0] < pair[1]),
        "builder.C4",
        "broadcast dimensions {map:?} do not ascend"
    );
    ensure_below("broadcast dimensions", map, large.rank())
}

/// Errors: `Unimplemented` for dimensions of which not even a bound is known.
pub(super) fn ensure_bounds_known(shape: &ArrayShape) -> Result<()> {
    if shape.is_unbounded() {
        let detail = format!("{shape} has sizes that are not known; it needs refinement first");
        return Err(Error::unimplemented(detail));
    }
    Ok(())
}

/// Errors: `builder.C4` unless all dimension numbers are less than the rank.
pub(super) fn ensure_below(what: &str, dimensions: &[usize], rank: usize) -> Result<()> {
    match dimensions.iter().find(|&&d| d >= rank) {
        Some(d) => {
            let detail = format!("{what}: there is no dimension {d} among {rank}");
            Err(Error::rule("builder.C4", detail))
        }
        None => Ok(()),
    }
}

fn with_dims(shape: &ArrayShape, dims: Vec<(usize, DimKind)>) -> Result<ArrayShape> {
    let (sizes, kinds) = dims.into_iter().unzip();
    ArrayShape::with_kinds(shape.element(), sizes, kinds)
}
