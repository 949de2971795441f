//! Index expressions: sums of loop variables and numbers known at run time, with constant factors.

use std::iter::zip;

use smallvec::{Array, SmallVec, smallvec};

use super::Stop;

/// A loop variable, by its place in the list of them.
pub(super) type Dim = u8;

/// A number known at run time, by its place in the list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SymbolId(pub u32);

impl SymbolId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// `constant + Σ factor · dimension + Σ factor · symbol`. Terms are sorted and no factor is zero,
/// so that equal expressions have equal fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Affine {
    pub constant: i64,
    /// Loop variables and their factors.
    pub dims: SmallVec<[(Dim, i64); 2]>,
    /// Symbols and their factors.
    pub symbols: SmallVec<[(SymbolId, i64); 1]>,
}

/// What the parts of an expression range over: each is between 0 and its entry here, inclusive.
#[derive(Clone, Copy)]
pub(super) struct DimBounds<'a> {
    pub dims: &'a [i64],
    pub symbols: &'a [i64],
}

impl Affine {
    pub fn constant(constant: i64) -> Self {
        Affine { constant, ..Affine::default() }
    }

    pub fn dim(dim: Dim) -> Self {
        Affine { dims: smallvec![(dim, 1)], ..Affine::default() }
    }

    pub fn symbol(symbol: SymbolId) -> Self {
        Affine { symbols: smallvec![(symbol, 1)], ..Affine::default() }
    }

    /// `self + factor · other`
    #[must_use]
    pub fn plus(&self, other: &Affine, factor: i64) -> Affine {
        Affine {
            constant: self.constant + factor * other.constant,
            dims: merge(&self.dims, &other.dims, factor),
            symbols: merge(&self.symbols, &other.symbols, factor),
        }
    }

    /// `self + constant`
    #[must_use]
    pub fn offset(&self, constant: i64) -> Affine {
        Affine { constant: self.constant + constant, ..self.clone() }
    }

    /// `factor · self`
    #[must_use]
    pub fn times(&self, factor: i64) -> Affine {
        Affine::default().plus(self, factor)
    }

    /// The factor of a loop variable.
    pub fn factor(&self, dim: Dim) -> i64 {
        self.dims.iter().find(|term| term.0 == dim).map_or(0, |term| term.1)
    }

    /// The least and the greatest value.
    pub fn range(&self, bounds: DimBounds<'_>) -> (i64, i64) {
        let dims = self.dims.iter().map(|&(d, f)| f * bounds.dims[usize::from(d)]);
        let symbols = self.symbols.iter().map(|&(s, f)| f * bounds.symbols[s.index()]);
        dims.chain(symbols).fold((self.constant, self.constant), |(least, greatest), extent| {
            (least + extent.min(0), greatest + extent.max(0))
        })
    }

    /// An expression and a bound that it is below wherever this one is below `bound`, and only there: of `9 · a + b < 18`, `b`
    /// being less than 9, `a < 2`.
    #[must_use]
    pub fn without_remainder(self, bound: i64, bounds: DimBounds<'_>) -> (Affine, i64) {
        let Some(&(dim, factor)) = self.dims.iter().max_by_key(|term| term.1) else {
            return (self, bound);
        };
        let rest = self.plus(&Affine::dim(dim), -factor);
        let (least, greatest) = rest.range(bounds);
        if factor <= 0 || greatest - least >= factor {
            return (self, bound);
        }
        // Where the variable has the last value that may do, that is so for all of the rest, or for none.
        let (whole, left) =
            ((bound - least).div_euclid(factor), (bound - least).rem_euclid(factor));
        match left {
            0 => (Affine::dim(dim), whole),
            _ if left > greatest - least => (Affine::dim(dim), whole + 1),
            _ => (self, bound),
        }
    }

    /// Replaces `outer · size + inner` by `inner` alone: the two become one variable.
    pub fn collapse(&mut self, outer: Dim) {
        self.dims.retain(|term| term.0 != outer);
    }

    /// The index expression of a row-major array's element.
    pub fn linear(exprs: &[Affine], sizes: &[usize]) -> Affine {
        let strides = helio_ir::types::strides(sizes);
        zip(exprs, strides).fold(Affine::default(), |sum, (e, stride)| sum.plus(e, stride as i64))
    }
}

fn merge<K: Ord + Copy, A: Array<Item = (K, i64)>>(
    a: &[(K, i64)],
    b: &[(K, i64)],
    factor: i64,
) -> SmallVec<A> {
    let mut sum = SmallVec::<A>::from_slice(a);
    for &(key, f) in b {
        match sum.binary_search_by_key(&key, |term| term.0) {
            Ok(at) => sum[at].1 += f * factor,
            Err(at) => sum.insert(at, (key, f * factor)),
        }
    }
    sum.retain(|term| term.1 != 0);
    sum
}

/// The index of an element under the sizes `to`, of the element that `exprs` give under the sizes
/// `from`, both of as many elements.
///
/// Stops with [`Stop::Split`] where that is not affine, but would be if a variable were two.
pub(super) fn reshape(
    exprs: &[Affine],
    from: &[usize],
    to: &[usize],
    bounds: DimBounds<'_>,
) -> Result<Vec<Affine>, Stop> {
    if from == to {
        return Ok(exprs.to_vec());
    }
    // There is no element to be read.
    if from.contains(&0) {
        return Ok(vec![Affine::default(); to.len()]);
    }
    let mut result = Vec::with_capacity(to.len());
    for (index, sizes) in linear_parts(exprs, from, to)? {
        result.extend(split(index, sizes, bounds)?);
    }
    Ok(result)
}

/// The index that `exprs` give under the sizes `from` in parts, each a row-major index under some of
/// the sizes `to`: the fewest dimensions of either that have the same number of elements. All sizes are
/// positive.
pub(super) fn linear_parts<'t>(
    exprs: &[Affine],
    from: &[usize],
    to: &'t [usize],
) -> Result<Vec<(Affine, &'t [usize])>, Stop> {
    let mut parts = Vec::with_capacity(to.len());
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (from_start, to_start) = (i, j);
        let (mut from_count, mut to_count) = (1, 1);
        while from_count != to_count || (i, j) == (from_start, to_start) {
            if i < from.len() && (from_count <= to_count || j == to.len()) {
                from_count *= from[i];
                i += 1;
            } else if j < to.len() {
                to_count *= to[j];
                j += 1;
            } else {
                return Err(Stop::unsupported("a reshape to another number of elements"));
            }
        }
        let index = Affine::linear(&exprs[from_start..i], &from[from_start..i]);
        parts.push((index, &to[to_start..j]));
    }
    Ok(parts)
}

/// Takes a row-major index apart into one index for each of `sizes`.
pub(super) fn split(
    mut index: Affine,
    sizes: &[usize],
    bounds: DimBounds<'_>,
) -> Result<Vec<Affine>, Stop> {
    let mut result = vec![Affine::default(); sizes.len()];
    let leading = sizes.iter().take_while(|&&size| size == 1).count();
    for d in (leading + 1..sizes.len()).rev() {
        (index, result[d]) = divide(&index, sizes[d] as i64, bounds)?;
    }
    if leading < sizes.len() {
        result[leading] = index;
    }
    Ok(result)
}

/// `index / size` and `index mod size`.
pub(super) fn divide(
    index: &Affine,
    size: i64,
    bounds: DimBounds<'_>,
) -> Result<(Affine, Affine), Stop> {
    let (mut quotient, mut rest) = (
        Affine::constant(index.constant.div_euclid(size)),
        Affine::constant(index.constant.rem_euclid(size)),
    );
    for &(d, f) in &index.dims {
        let (to, f) = if f % size == 0 { (&mut quotient, f / size) } else { (&mut rest, f) };
        to.dims.push((d, f));
    }
    for &(s, f) in &index.symbols {
        let (to, f) = if f % size == 0 { (&mut quotient, f / size) } else { (&mut rest, f) };
        to.symbols.push((s, f));
    }
    let (least, greatest) = rest.range(bounds);
    if least >= 0 && greatest < size {
        return Ok((quotient, rest));
    }
    for &(dim, f) in &rest.dims {
        let count = bounds.dims[usize::from(dim)] + 1;
        if f > 0 && size % f == 0 && f * count > size && count % (size / f) == 0 {
            return Err(Stop::Split { dim, inner: size / f });
        }
    }
    Err(Stop::unsupported("a reshape that is not affine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: DimBounds<'static> = DimBounds { dims: &[], symbols: &[] };

    #[test]
    fn sums_are_canonical() {
        let sum = Affine::dim(1).plus(&Affine::dim(0), 3).plus(&Affine::dim(1), -1).offset(2);
        assert_eq!(sum, Affine { constant: 2, dims: smallvec![(0, 3)], symbols: smallvec![] });
        assert_eq!(sum.range(DimBounds { dims: &[4, 9], symbols: &[] }), (2, 14));
        assert_eq!(sum.times(-1).range(DimBounds { dims: &[4], symbols: &[] }), (-14, -2));
    }

    #[test]
    fn reshapes_merge_and_split() {
        let bounds = DimBounds { dims: &[3, 5], symbols: &[] };
        let pair = [Affine::dim(0), Affine::dim(1)];
        let merged = reshape(&pair, &[4, 6], &[24], bounds).unwrap();
        assert_eq!(merged, [Affine::dim(0).times(6).plus(&Affine::dim(1), 1)]);
        assert_eq!(reshape(&merged, &[24], &[4, 6], bounds).unwrap(), pair);
        let ones = reshape(&pair, &[4, 6], &[1, 4, 1, 6, 1], bounds).unwrap();
        let zero = Affine::default();
        assert_eq!(ones, [&zero, &pair[0], &zero, &pair[1], &zero].map(Affine::clone));
        assert_eq!(reshape(&ones, &[1, 4, 1, 6, 1], &[4, 6], bounds).unwrap(), pair);
        // Of 24 elements, rows of 3: the variable of 6 would have to be two.
        let stop = reshape(&pair, &[4, 6], &[8, 3], bounds);
        assert!(matches!(stop, Err(Stop::Split { dim: 1, inner: 3 })));
        assert!(matches!(reshape(&pair, &[4, 6], &[3, 8], bounds), Err(Stop::Unsupported(_))));
    }

    #[test]
    fn remainders_do_not_matter_for_some_bounds() {
        let sizes = [5, 3, 4];
        let bounds = sizes.map(|size| size - 1);
        let bounds = DimBounds { dims: &bounds, symbols: &[] };
        let mut simpler = 0;
        for factors in [[12, 4, 1], [9, 1, 0], [7, -2, 1], [3, 0, 0], [2, 1, 1], [-6, 2, 0]] {
            for constant in [-4, 0, 5] {
                let terms = (0..).zip(factors).map(|(dim, factor)| Affine::dim(dim).times(factor));
                let at = terms.fold(Affine::constant(constant), |sum, term| sum.plus(&term, 1));
                for bound in -20..70 {
                    let (other, below) = at.clone().without_remainder(bound, bounds);
                    simpler += usize::from(other.dims.len() < at.dims.len());
                    for point in 0..sizes.iter().product() {
                        let point = [point / 12, point / 4 % 3, point % 4];
                        let value = |e: &Affine| {
                            let terms = e.dims.iter().map(|&(d, f)| f * point[usize::from(d)]);
                            e.constant + terms.sum::<i64>()
                        };
                        assert_eq!(value(&at) < bound, value(&other) < below, "{at:?} < {bound}");
                    }
                }
            }
        }
        assert!(simpler > 100, "{simpler}");
    }

    #[test]
    fn reshapes_of_nothing_and_of_scalars() {
        assert_eq!(reshape(&[], &[], &[1, 1], NONE).unwrap(), vec![Affine::default(); 2]);
        assert_eq!(reshape(&[Affine::default()], &[1], &[], NONE).unwrap(), []);
        let empty = reshape(&[Affine::dim(0)], &[0], &[2, 0], NONE).unwrap();
        assert_eq!(empty, vec![Affine::default(); 2]);
    }
}
