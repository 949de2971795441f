//! Checks that the rules of many operations share; each takes the identifier of the rule it checks
//! for, and its message says what was found and what is required.

use std::fmt::Display;

use smallvec::SmallVec;

use crate::types::DimKind;
use crate::{ArrayShape, Computation, ElementType, Error, InferCx, Result, Shape, ensure};

impl<'a> InferCx<'a> {
    /// The shape of operand `i`. Errors: `Internal`, since the arity has been checked.
    pub fn operand(&self, i: usize) -> Result<&'a Shape> {
        let operand = self.operands.get(i).copied();
        operand.ok_or_else(|| Error::internal(format!("operand {i} is missing")))
    }

    /// The error for operands of another number than the arity says, which has been checked.
    pub(crate) fn wrong_arity(&self) -> Error {
        Error::internal(format!("an operation has {} operands", self.operands.len()))
    }

    /// The shape of operand `i`, which must be an array.
    pub fn array(&self, rule: &'static str, i: usize) -> Result<&'a ArrayShape> {
        ensure_array(rule, format_args!("operand {i}"), self.operand(i)?)
    }

    /// The shapes of all operands, which must be arrays.
    pub fn arrays(&self, rule: &'static str) -> Result<Vec<&'a ArrayShape>> {
        (0..self.operands.len()).map(|i| self.array(rule, i)).collect()
    }

    /// The element type of operand `i`, which must be a scalar.
    pub fn scalar(&self, rule: &'static str, i: usize) -> Result<ElementType> {
        let shape = self.operand(i)?;
        let scalar = shape.as_array().filter(|array| array.is_scalar());
        let scalar = scalar.map(ArrayShape::element);
        scalar.ok_or_else(|| Error::rule(rule, format!("operand {i} must be a scalar, is {shape}")))
    }

    /// Errors: operand `i` is not a token.
    pub fn ensure_token(&self, rule: &'static str, i: usize) -> Result<()> {
        let shape = self.operand(i)?;
        ensure!(*shape == Shape::Token, rule, "operand {i} must be a token, is {shape}");
        Ok(())
    }
}

/// The array that `shape`, called `what` in the message, must be.
pub(crate) fn ensure_array<'a>(
    rule: &'static str,
    what: impl Display,
    shape: &'a Shape,
) -> Result<&'a ArrayShape> {
    let array = shape.as_array();
    array.ok_or_else(|| Error::rule(rule, format!("{what} must be an array, is {shape}")))
}

/// Errors: `dim`, from the attribute `what`, is not a dimension of `shape`.
pub(crate) fn ensure_dim(
    rule: &'static str,
    what: &str,
    dim: usize,
    shape: &ArrayShape,
) -> Result<()> {
    let rank = shape.rank();
    ensure!(dim < rank, rule, "{what}: no dimension {dim} in {shape}, which has rank {rank}");
    Ok(())
}

/// Errors: one of `dims`, from the attribute `what`, is not a dimension of `shape`.
pub(crate) fn ensure_dims(
    rule: &'static str,
    what: &str,
    dims: &[usize],
    shape: &ArrayShape,
) -> Result<()> {
    dims.iter().try_for_each(|&dim| ensure_dim(rule, what, dim, shape))
}

/// Errors: a dimension occurs twice in `dims`, the value of the attribute `what`.
pub(crate) fn ensure_unique(rule: &'static str, what: &str, dims: &[usize]) -> Result<()> {
    let mut sorted = SmallVec::<[usize; 8]>::from_slice(dims);
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    ensure!(
        twice.is_none(),
        rule,
        "{what}: dimension {} occurs more than once",
        twice.map_or(0, |pair| pair[0])
    );
    Ok(())
}

/// Errors: `dims`, the value of the attribute `what`, are not strictly ascending.
pub(crate) fn ensure_ascending(rule: &'static str, what: &str, dims: &[usize]) -> Result<()> {
    let ok = dims.is_sorted_by(|a, b| a < b);
    ensure!(ok, rule, "{what}: dimensions must ascend, are {dims:?}");
    Ok(())
}

/// Errors: `dims`, the value of the attribute `what`, do not list every dimension of `shape` once.
pub(crate) fn ensure_permutation(
    rule: &'static str,
    what: &str,
    dims: &[usize],
    shape: &ArrayShape,
) -> Result<()> {
    let mut sorted = SmallVec::<[usize; 8]>::from_slice(dims);
    sorted.sort_unstable();
    ensure!(
        sorted.iter().copied().eq(0..shape.rank()),
        rule,
        "{what}: must list each of the {} dimensions of {shape} once, are {dims:?}",
        shape.rank()
    );
    Ok(())
}

/// Errors: `found` values for `what`, but `shape` has another number of dimensions.
pub(crate) fn ensure_one_per_dim(
    rule: &'static str,
    what: &str,
    found: usize,
    shape: &ArrayShape,
) -> Result<()> {
    let rank = shape.rank();
    ensure!(found == rank, rule, "{what}: {found} given for the {rank} dimensions of {shape}");
    Ok(())
}

/// Errors: the arrays have different element types.
pub(crate) fn ensure_same_element(rule: &'static str, arrays: &[&ArrayShape]) -> Result<()> {
    let Some((first, rest)) = arrays.split_first() else { return Ok(()) };
    for array in rest {
        ensure!(
            array.element() == first.element(),
            rule,
            "the operands must have the same element type, found {first} and {array}"
        );
    }
    Ok(())
}

/// The one dimension that two equal dimensions are: the more is known of either (`?` is whatever
/// the other is), except that a bound stays a bound next to a static size. `None` if they differ.
pub(crate) fn merge_dim(a: (usize, DimKind), b: (usize, DimKind)) -> Option<(usize, DimKind)> {
    match (a, b) {
        ((_, DimKind::Unbounded), other) | (other, (_, DimKind::Unbounded)) => Some(other),
        ((a, _), (b, _)) if a != b => None,
        ((size, DimKind::Static), (_, DimKind::Static)) => Some((size, DimKind::Static)),
        ((size, _), _) => Some((size, DimKind::Bounded)),
    }
}

/// The dimensions that all arrays have, as [`merge_dim`] puts them together, with the element type
/// of the first. Errors: they have different dimensions.
pub(crate) fn merge_arrays(rule: &'static str, arrays: &[&ArrayShape]) -> Result<ArrayShape> {
    let Some((first, rest)) = arrays.split_first() else {
        return Err(Error::internal("no arrays to merge"));
    };
    // Most arrays are static, and have dimensions that need no putting together.
    if first.is_static() && rest.iter().all(|array| array.same_dims(first)) {
        return Ok((*first).clone().without_layout());
    }
    let mut dims: Vec<_> = first.dims_and_kinds().collect();
    for array in rest {
        ensure!(array.rank() == dims.len(), rule, "{}", must_agree(first, array));
        for (d, dim) in dims.iter_mut().enumerate() {
            *dim = merge_dim(*dim, array.dim(d))
                .ok_or_else(|| Error::rule(rule, must_agree(first, array)))?;
        }
    }
    ArrayShape::from_dims(first.element(), dims)
}

fn must_agree(first: &ArrayShape, other: &ArrayShape) -> String {
    format!("the operands must have the same dimensions, found {first} and {other}")
}

/// Errors: the computation called as `what` does not take exactly these parameters.
pub(crate) fn ensure_params<'s>(
    rule: &'static str,
    what: &str,
    callee: &Computation,
    expected: impl ExactSizeIterator<Item = &'s Shape>,
) -> Result<()> {
    let name = &callee.name;
    let params = callee.params();
    let (found, count) = (params.len(), expected.len());
    ensure!(found == count, rule, "{what} {name} must take {count} parameters, takes {found}");
    for (i, expected) in expected.enumerate() {
        let found = params.get(&i).map(|&id| &callee.instr(id).shape);
        let found = found
            .ok_or_else(|| Error::rule(rule, format!("{what} {name} has no parameter {i}")))?;
        ensure!(
            found.same(expected),
            rule,
            "{what} {name}: parameter {i} must be {}, is {found}",
            expected.without_layout()
        );
    }
    Ok(())
}

/// Errors: the computation called as `what` does not give this result.
pub(crate) fn ensure_result(
    rule: &'static str,
    what: &str,
    callee: &Computation,
    expected: &Shape,
) -> Result<()> {
    let found = callee.result_shape();
    ensure!(
        found.same(expected),
        rule,
        "{what} {} must give {}, gives {found}",
        callee.name,
        expected.without_layout()
    );
    Ok(())
}

/// The most tuples within each other: whoever walks through a shape may recurse.
pub(crate) const MAX_TUPLE_DEPTH: usize = 64;

/// The most tuples and leaves of a shape: tuples of tuples grow fast.
pub(crate) const MAX_TUPLE_PARTS: usize = 1 << 18;

/// The tuple of these shapes, without layouts. Errors: `ResourceExhausted` if it is too deep or too
/// large for any use.
pub(crate) fn tuple_of(elements: &[&Shape]) -> Result<Shape> {
    let mut depth = 0;
    let mut parts = elements.len();
    for element in elements {
        let size = extent(element);
        depth = depth.max(size.0);
        parts = parts.saturating_add(size.1);
    }
    if depth >= MAX_TUPLE_DEPTH {
        return Err(Error::exhausted(format!("tuples nested more than {MAX_TUPLE_DEPTH} deep")));
    }
    if parts > MAX_TUPLE_PARTS {
        return Err(Error::exhausted(format!("a tuple of more than {MAX_TUPLE_PARTS} parts")));
    }
    Ok(Shape::Tuple(elements.iter().map(|element| element.without_layout()).collect()))
}

/// How deep tuples in `shape` are nested and how many parts it has besides itself.
fn extent(shape: &Shape) -> (usize, usize) {
    let elements = shape.as_tuple().unwrap_or_default();
    let inner = elements.iter().map(extent);
    let (depth, parts) = inner.fold((0, elements.len()), |(depth, parts), (d, p)| {
        (depth.max(d), parts.saturating_add(p))
    });
    (depth + usize::from(shape.as_tuple().is_some()), parts)
}

/// The one shape that two equal shapes are, arrays put together by [`merge_dim`]. `None` if they
/// differ.
pub(crate) fn merge_shapes(a: &Shape, b: &Shape) -> Option<Shape> {
    match (a, b) {
        (Shape::Array(a), Shape::Array(b)) => {
            let same = a.element() == b.element();
            same.then(|| merge_arrays("", &[a, b]).ok()).flatten().map(Shape::Array)
        }
        (Shape::Tuple(a), Shape::Tuple(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .map(|(a, b)| merge_shapes(a, b))
            .collect::<Option<_>>()
            .map(Shape::Tuple),
        (a, b) => (a == b).then(|| a.clone()),
    }
}
