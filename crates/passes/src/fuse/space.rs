//! The loops that a fusion runs over, and how its values lie in them.

use std::iter::zip;

use helio_ir::{Instr, Op};
use smallvec::{SmallVec, smallvec};

/// How many of a fusion's points a value differs between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// None: it is one number.
    Scalar,
    /// Each point of the loops that are not folded, in row-major order.
    Kept,
    /// Each point, in row-major order.
    Full,
    /// Each point, in some order.
    Permuted,
    /// Anything else: elements may be computed more than once.
    Partial,
}

/// For each dimension of a value, the loop behind it.
pub(super) type LoopDims = SmallVec<[Option<usize>; 4]>;

/// How a value lies in a fusion's loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    /// The loop behind each dimension; `None` if that is not known, or the size is 1.
    pub dims: Option<LoopDims>,
    /// Whether every point has an element of its own even if `dims` does not say which.
    pub bijective: bool,
    /// Whether every point reads an element, and not those of a part of the loops alone, as of what is put together from
    /// several arrays.
    pub everywhere: bool,
}

/// The loops of a fusion.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub sizes: Vec<usize>,
    /// Which are folded; unknown as long as nothing is.
    pub folded: Option<Vec<bool>>,
}

impl Role {
    pub fn partial() -> Self {
        Role { dims: None, bijective: false, everywhere: false }
    }

    /// A role of an array over all loops.
    pub fn identity(sizes: &[usize]) -> Self {
        let dims = sizes.iter().enumerate().map(|(d, &size)| (size != 1).then_some(d)).collect();
        Role { dims: Some(dims), bijective: true, everywhere: true }
    }

    /// What is known of a value that is used in both roles.
    pub fn join(self, other: Role) -> Role {
        let everywhere = self.everywhere && other.everywhere;
        if self == other { self } else { Role { everywhere, ..Role::partial() } }
    }
}

impl Space {
    /// How many of the points a value differs between.
    pub fn level(&self, role: &Role, sizes: &[usize]) -> Level {
        if sizes.iter().all(|&size| size == 1) {
            return Level::Scalar;
        }
        let Some(dims) = &role.dims else {
            return if role.bijective { Level::Permuted } else { Level::Partial };
        };
        let covers = |want: &dyn Fn(usize) -> bool| {
            let wanted = (0..self.sizes.len()).filter(|&d| self.sizes[d] != 1 && want(d));
            wanted.eq(dims.iter().copied().flatten())
        };
        if covers(&|_| true) {
            return Level::Full;
        }
        if let Some(folded) = &self.folded
            && covers(&|d| !folded[d])
        {
            return Level::Kept;
        }
        if role.bijective { Level::Permuted } else { Level::Partial }
    }

    /// Whether a value is the same all along the innermost loop, and can be computed before it.
    pub fn is_outer(&self, role: &Role) -> bool {
        let innermost = self.sizes.iter().rposition(|&size| size != 1);
        role.dims.as_ref().is_some_and(|dims| !dims.contains(&innermost))
    }

    /// Whether a value that is the same at many points is computed at each of them: it changes along the innermost
    /// loop, or along one that is folded, of which nothing is kept from one result to the next, or lies otherwise than the
    /// loops.
    pub fn is_repeated(&self, role: &Role) -> bool {
        let Some(dims) = &role.dims else { return role.everywhere && !role.bijective };
        let is_folded = |d: usize| self.folded.as_ref().is_some_and(|folded| folded[d]);
        !self.is_outer(role) || dims.iter().flatten().any(|&d| is_folded(d))
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.sizes.iter().fold(1, |points, &size| points.saturating_mul(size))
    }

    /// The role of an operand of an instruction that has a role itself. `sizes` are the operand's,
    /// `result` the instruction's.
    pub fn operand(
        &self,
        instr: &Instr,
        number: usize,
        role: &Role,
        sizes: &[usize],
        result: &[usize],
    ) -> Role {
        if sizes.is_empty() {
            return Role { dims: Some(LoopDims::new()), bijective: false, ..*role };
        }
        let partial = Role { everywhere: role.everywhere, ..Role::partial() };
        let unknown = Role { bijective: role.bijective, ..partial.clone() };
        match &instr.op {
            Op::Broadcast(op) => {
                let Some(dims) = &role.dims else { return partial };
                let dim = |(&d, &size): (&usize, &usize)| dims[d].filter(|_| size != 1);
                let dims = zip(&op.dimensions, sizes).map(dim).collect();
                let same = sizes.iter().product::<usize>() == result.iter().product::<usize>();
                Role { dims: Some(dims), bijective: role.bijective && same, ..*role }
            }
            Op::Reshape(_) => {
                let Some(dims) = &role.dims else { return unknown };
                let is_real = |size: &&usize| **size != 1;
                if !sizes.iter().filter(is_real).eq(result.iter().filter(is_real)) {
                    return unknown;
                }
                let mut loops = zip(dims, result).filter(|&(_, &size)| size != 1).map(|(&d, _)| d);
                let dim = |&size: &usize| if size == 1 { None } else { loops.next().flatten() };
                Role { dims: Some(sizes.iter().map(dim).collect()), ..*role }
            }
            Op::Transpose(op) => {
                let Some(dims) = &role.dims else { return unknown };
                let mut to: LoopDims = smallvec![None; dims.len()];
                zip(&op.permutation, dims).for_each(|(&d, &dim)| to[d] = dim);
                Role { dims: Some(to), ..*role }
            }
            Op::Reverse(_) => unknown,
            Op::Reduce(op) => self.folded_operand(&op.dimensions, role, sizes),
            Op::Slice(_) | Op::DynamicSlice(_) | Op::Gather(_) => partial,
            Op::Pad(_) | Op::Concatenate(_) => Role::partial(),
            Op::DynamicUpdateSlice(_) if number == 1 => Role::identity(&self.sizes),
            Op::DynamicUpdateSlice(_) => Role::partial(),
            _ => role.clone(),
        }
    }

    /// The role of what a reduction folds, whose result has `role`.
    fn folded_operand(&self, folded_dims: &[usize], role: &Role, sizes: &[usize]) -> Role {
        let partial = Role { everywhere: role.everywhere, ..Role::partial() };
        let (Some(kept), Some(folded)) = (&role.dims, &self.folded) else { return partial };
        let mut kept = kept.iter();
        let mut loops = (0..self.sizes.len()).filter(|&d| folded[d] && self.sizes[d] != 1);
        let dim = |(d, &size): (usize, &usize)| match (folded_dims.contains(&d), size) {
            (true, 1) => None,
            (true, _) => loops.next(),
            (false, _) => kept.next().copied().flatten(),
        };
        let dims: LoopDims = sizes.iter().enumerate().map(dim).collect();
        // A fold of a few elements, written out, is not over the folded loops.
        let elements: usize = folded_dims.iter().map(|&d| sizes[d]).product();
        if elements <= super::class::MAX_WRITTEN_OUT {
            return partial;
        }
        Role { dims: Some(dims), bijective: true, everywhere: role.everywhere }
    }

    /// Makes a reduction part of the fusion: its result has `role`, its operand `sizes`. False if
    /// it does not fit the loops. `Some` new loops if these get more, the old ones being numbered as
    /// the vector says.
    pub fn admit(
        &self,
        folded_dims: &[usize],
        role: &Role,
        sizes: &[usize],
        result: &[usize],
    ) -> Option<(Space, Option<Vec<usize>>)> {
        let folded_sizes = || {
            let all = sizes.iter().enumerate();
            let folded = all.filter(|(d, size)| folded_dims.contains(d) && **size != 1);
            folded.map(|(_, &size)| size)
        };
        let level = self.level(role, result);
        if let Some(folded) = &self.folded {
            let of = (0..self.sizes.len()).filter(|&d| folded[d]).map(|d| self.sizes[d]);
            let kept_is_one = (0..self.sizes.len()).all(|d| folded[d] || self.sizes[d] == 1);
            let fits = level == Level::Kept || level == Level::Scalar && kept_is_one;
            let same = fits && of.filter(|&size| size != 1).eq(folded_sizes());
            let operand = self.folded_operand(folded_dims, role, sizes);
            return (same && self.level(&operand, sizes) == Level::Full)
                .then(|| (self.clone(), None));
        }
        let dims = role.dims.as_ref()?;
        let used: Vec<usize> = dims.iter().copied().flatten().collect();
        let rest: Vec<usize> =
            (0..self.sizes.len()).filter(|d| !used.contains(d) && self.sizes[*d] != 1).collect();
        let ascending = used.windows(2).all(|pair| pair[0] < pair[1]);
        if rest.is_empty() {
            // The result has an element for each point: the loops to fold are new ones.
            if !ascending || level != Level::Full && level != Level::Scalar {
                return None;
            }
            let folded: Vec<bool> = (0..sizes.len()).map(|d| folded_dims.contains(&d)).collect();
            let mut places = (0..sizes.len()).filter(|&d| !folded[d] && sizes[d] != 1);
            let place =
                |&size: &usize| if size == 1 { 0 } else { places.next().unwrap_or_default() };
            let renumbered = self.sizes.iter().map(place).collect();
            let space = Space { sizes: sizes.to_vec(), folded: Some(folded) };
            return Some((space, Some(renumbered)));
        }
        if !ascending || !rest.iter().map(|&d| self.sizes[d]).eq(folded_sizes()) {
            return None;
        }
        let folded = (0..self.sizes.len()).map(|d| rest.contains(&d)).collect();
        let space = Space { sizes: self.sizes.clone(), folded: Some(folded) };
        // What is folded is read in the order of the loops.
        let operand = space.folded_operand(folded_dims, role, sizes);
        (space.level(&operand, sizes) == Level::Full).then_some((space, None))
    }
}
