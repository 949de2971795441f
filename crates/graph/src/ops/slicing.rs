//! Parts of tensors: ranges, single elements of axes, pieces.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use helio::{Error, Result};

use crate::graph::TensorType;
use crate::{Axis, Dim, Shape, Tensor};

/// A part of an axis: a range, such as `1..3`, `..-1` or `..`, or a pair of bounds, such as `(1, -1)`,
/// with [`step`] of every n-th element, or backwards; or an index, whose axis is dropped.
///
/// Bounds are numbers, negative ones from the end, or [`Dim`]s, which count from the start. A pair
/// means the same as a range, but its bounds may be of two types, and Clippy, which takes `1..-1`
/// for a mistake, accepts it.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::Slice;
/// let x = g.constant([1, 2, 3, 4, 5]);
/// assert_eq!(x.slice(0, (1, -1)).eval()?, [2, 3, 4].into());
/// let every_other: Slice = step(.., 2);
/// assert_eq!(x.slice(0, every_other).eval()?, [1, 3, 5].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice(AxisSlice);

#[derive(Clone, Debug, PartialEq, Eq)]
enum AxisSlice {
    Index(Dim),
    Range { start: Option<Dim>, stop: Option<Dim>, step: i64 },
}

/// Every `by`-th element of a range; a negative one goes from the start of the range downwards to
/// its end. Source: NumPy's `start:stop:step`.
///
/// ```
/// # use helio_graph::{ElementType, Graph, step};
/// # let g = Graph::new("parts");
/// let x = g.input("x", ElementType::F32, (7, "n"));
/// assert_eq!(x.slice(0, step(1.., 2)).shape()?.to_string(), "[3, n]");
/// assert_eq!(x.slice(0, step(.., -3)).shape()?.to_string(), "[3, n]");
/// assert_eq!(x.slice(1, step(.., 2)).shape()?.to_string(), "[7, (n + 1)/2]");
/// # Ok::<(), helio_graph::Error>(())
/// ```
pub fn step(range: impl Into<Slice>, by: i64) -> Slice {
    match range.into().0 {
        AxisSlice::Range { start, stop, .. } => Slice(AxisSlice::Range { start, stop, step: by }),
        index => Slice(index),
    }
}

impl Slice {
    const ALL: Slice = Slice(AxisSlice::Range { start: None, stop: None, step: 1 });

    fn range(start: Option<Dim>, stop: Option<Dim>) -> Self {
        Slice(AxisSlice::Range { start, stop, step: 1 })
    }
}

/// The bound behind an inclusive one; behind the last element is the end.
fn after(bound: Dim) -> Option<Dim> {
    (bound.number() != Some(-1)).then(|| bound + 1)
}

macro_rules! ranges {
    ($($range:ident: $value:ident => $start:expr, $stop:expr;)*) => {$(
        impl<D: Into<Dim>> From<$range<D>> for Slice {
            fn from($value: $range<D>) -> Self {
                Slice::range($start, $stop)
            }
        }
    )*};
}
ranges! {
    Range: range => Some(range.start.into()), Some(range.end.into());
    RangeFrom: range => Some(range.start.into()), None;
    RangeTo: range => None, Some(range.end.into());
    RangeToInclusive: range => None, after(range.end.into());
}

impl<D: Into<Dim>> From<RangeInclusive<D>> for Slice {
    fn from(range: RangeInclusive<D>) -> Self {
        let (start, end) = range.into_inner();
        Slice::range(Some(start.into()), after(end.into()))
    }
}

impl<A: Into<Dim>, B: Into<Dim>> From<(A, B)> for Slice {
    fn from((start, stop): (A, B)) -> Self {
        Slice::range(Some(start.into()), Some(stop.into()))
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Slice::ALL
    }
}

impl From<&Slice> for Slice {
    fn from(slice: &Slice) -> Self {
        slice.clone()
    }
}

macro_rules! indices {
    ($($index:ty),*) => {$(
        impl From<$index> for Slice {
            fn from(index: $index) -> Self {
                Slice(AxisSlice::Index(index.into()))
            }
        }
    )*};
}
indices!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, Dim, &Dim);

/// A part of each axis, from the first on: a tuple or array of what [`Slice`] can be made from.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let x = g.constant([[1, 2, 3], [4, 5, 6]]);
/// assert_eq!(x.slice_axes((.., 1..)).eval()?, [[2, 3], [5, 6]].into());
/// assert_eq!(x.slice_axes([1, -1]).eval()?, 6.into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices(Vec<Slice>);

impl From<Vec<Slice>> for Slices {
    fn from(slices: Vec<Slice>) -> Self {
        Slices(slices)
    }
}

impl<S: Into<Slice>, const N: usize> From<[S; N]> for Slices {
    fn from(slices: [S; N]) -> Self {
        Slices(slices.into_iter().map(Into::into).collect())
    }
}

macro_rules! from_tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Into<Slice>),*> From<($($name,)*)> for Slices {
            fn from(slices: ($($name,)*)) -> Self {
                #[expect(non_snake_case, reason = "types and values have the same names here")]
                let ($($name,)*) = slices;
                Slices(vec![$($name.into()),*])
            }
        }
    )*};
}
from_tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// A part of an axis whose dimension is known: elements `start`, `start + step` and so on.
#[derive(Clone, Debug)]
struct Elements {
    start: Dim,
    step: i64,
    count: Dim,
    /// Whether the axis is dropped.
    is_index: bool,
}

impl AxisSlice {
    /// Errors: `slice.C1`, `slice.C2`.
    fn of(&self, dim: &Dim) -> Result<Elements> {
        let from_start = |bound: &Dim| match bound.number() {
            Some(number) if number < 0 => dim + number,
            _ => bound.clone(),
        };
        let (start, stop, step) = match self {
            AxisSlice::Index(index) => {
                let start = from_start(index);
                if let (Some(start), Some(size)) = (start.number(), dim.number())
                    && !(0..size).contains(&start)
                {
                    let detail = format!("index {index} of a dimension that is {dim}");
                    return Err(Error::rule("slice.C2", detail));
                }
                return Ok(Elements { start, step: 1, count: 1.into(), is_index: true });
            }
            AxisSlice::Range { start, stop, step } => (start.as_ref(), stop.as_ref(), *step),
        };
        if !(1..=1 << 62).contains(&step.unsigned_abs()) {
            let detail = format!("a step of {step}; it must not be 0, nor beyond 2^62");
            return Err(Error::rule("slice.C1", detail));
        }
        let (first, end) =
            if step > 0 { (Dim::from(0), dim.clone()) } else { (dim - 1, (-1).into()) };
        // NumPy's clamping, which needs numbers.
        let clamped = |bound: Dim| match (bound.number(), dim.number()) {
            (Some(bound), Some(size)) if step > 0 => bound.clamp(0, size).into(),
            (Some(bound), Some(size)) => bound.clamp(-1, size - 1).into(),
            _ => bound,
        };
        let start = start.map_or(first, |start| clamped(from_start(start)));
        let stop = stop.map_or(end, |stop| clamped(from_start(stop)));
        let distance = if step > 0 { &stop - &start } else { &start - &stop };
        let count = match distance.number() {
            Some(distance) if distance <= 0 => 0.into(),
            _ => (distance + (step.abs() - 1)) / step.abs(),
        };
        Ok(Elements { start, step, count, is_index: false })
    }
}

impl Elements {
    /// The first element in memory, the one behind the last, and how far apart they are, in an axis
    /// of this size. Errors: `slice.C2`.
    fn bounds(&self, start: i64, count: usize, size: usize) -> Result<(usize, usize, usize)> {
        let stride = self.step.unsigned_abs() as usize;
        if count == 0 {
            return Ok((0, 0, stride.min(size.max(1))));
        }
        let last = i128::from(start) + (count as i128 - 1) * i128::from(self.step);
        let (low, high) = (last.min(start.into()), last.max(start.into()));
        match (usize::try_from(low), usize::try_from(high)) {
            (Ok(low), Ok(high)) if high < size => Ok((low, high + 1, stride)),
            _ => Err(Error::rule(
                "slice.C2",
                format!(
                    "elements {low} to {high} of a dimension that is {size} in this call\n  help: \
                     ranges are clamped only where the dimension is a size when the graph is made"
                ),
            )),
        }
    }
}

impl Tensor {
    /// A part of an axis: a range with NumPy's meaning, `1..3`, `..-1`, `(1, -1)` for `1:-1`, or
    /// [`step`]`(.., -1)`; or an index, as `0` or `-1`, whose axis is dropped.
    ///
    /// Ranges of dimensions that are sizes are clamped to these, as NumPy does. Where the dimension
    /// or a bound is symbolic, so is the result's: `..5` has 5 elements, and a call whose dimension
    /// has fewer fails with `slice.C2`, or `dim.C2` if the result's size would be negative.
    ///
    /// Errors: `slice.C1` for a wrong step, `slice.C2` for an index outside, `shape.C1`, `dim.C1`.
    /// Source: NumPy's basic indexing.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("parts");
    /// let x = g.input("x", ElementType::F32, ("n", 5));
    /// assert_eq!(x.slice(1, (1, -1)).shape()?.to_string(), "[n, 3]");
    /// assert_eq!(x.slice(1, -1).shape()?.to_string(), "[n]");
    /// assert_eq!(x.slice(0, 1..).shape()?.to_string(), "[n - 1, 5]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn slice(&self, axis: impl Into<Axis>, part: impl Into<Slice>) -> Tensor {
        self.call("slice", |ty| {
            let mut parts = vec![Slice::ALL; ty.shape.rank()];
            parts[ty.shape.axis(axis)?] = part.into();
            self.sliced(ty, &parts)
        })
    }

    /// A part of each axis from the first on, as a tuple: `x.slice_axes((0, .., 1..3))` is NumPy's
    /// `x[0, :, 1:3]`. Axes that are not mentioned are left whole. Errors: `slice.C3` if there are
    /// more parts than axes; and as for [`Tensor::slice`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.slice_axes((1, ..1)).eval()?, [3].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn slice_axes(&self, parts: impl Into<Slices>) -> Tensor {
        self.call("slice_axes", |ty| {
            let Slices(mut parts) = parts.into();
            if parts.len() > ty.shape.rank() {
                let (found, rank) = (parts.len(), ty.shape.rank());
                let detail = format!("{found} parts of {}, which has {rank} axes", ty.shape);
                return Err(Error::rule("slice.C3", detail));
            }
            parts.resize(ty.shape.rank(), Slice::ALL);
            self.sliced(ty, &parts)
        })
    }

    /// A part of each axis.
    fn sliced(&self, ty: &TensorType, parts: &[Slice]) -> Result<Tensor> {
        let axes = ty.shape.iter().zip(parts).enumerate();
        let parts = axes.map(|(axis, (dim, part))| {
            part.0.of(dim).map_err(|e| e.context(format_args!("axis {axis} of {}", ty.shape)))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let kept = parts.iter().filter(|part| !part.is_index);
        let shape: Shape = kept.map(|part| part.count.clone()).collect();
        let whole = |part: &Elements| part.step == 1 && part.start.number() == Some(0);
        if shape == ty.shape && parts.iter().all(whole) {
            return Ok(self.clone());
        }
        let from = ty.shape.clone();
        let ty = TensorType::new(ty.dtype, &shape);
        self.graph().emit(&[self], ty, move |emit, x| {
            let mut bounds = [(); 3].map(|()| Vec::with_capacity(parts.len()));
            for (part, dim) in parts.iter().zip(from.iter()) {
                let (start, count) = (emit.value(&part.start)?, emit.size(&part.count)?);
                let (low, high, stride) = part.bounds(start, count, emit.size(dim)?)?;
                for (list, bound) in bounds.iter_mut().zip([low, high, stride]) {
                    list.push(bound);
                }
            }
            let [low, high, strides] = bounds;
            let mut sliced = x[0].slice(&low, &high, &strides);
            let reversed = (0..parts.len()).filter(|&axis| parts[axis].step < 0);
            let reversed: Vec<usize> = reversed.collect();
            if !reversed.is_empty() {
                sliced = sliced.rev(&reversed);
            }
            if shape.rank() < parts.len() {
                sliced = sliced.reshape(&emit.sizes(&shape)?);
            }
            Ok(sliced)
        })
    }

    /// Equal pieces along an axis, as many as the pattern on the left has.
    ///
    /// Errors: `split.C1` unless they are of one size, as expressions, `shape.C1`. Source: NumPy's
    /// `split`; for any number of pieces see [`Tensor::array_split`].
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("qkv");
    /// let x = g.input("x", ElementType::F32, ("tokens", 96));
    /// let [q, k, v] = x.split(-1);
    /// assert_eq!(v.shape()?.to_string(), "[tokens, 32]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn split<const N: usize>(&self, axis: impl Into<Axis>) -> [Tensor; N] {
        self.call_many("split", |ty| {
            let axis = ty.shape.axis(axis)?;
            let dim = &ty.shape[axis];
            let parts = i64::try_from(N).unwrap_or(i64::MAX);
            let size = dim / parts;
            size.ensure_valid()?;
            if &size * parts != *dim {
                let help = match dim.size() {
                    Some(_) => "array_split makes pieces that differ by 1, split_sizes any".into(),
                    None => format!(
                        "if it divides whenever the program is called, say so by a rebind to a \
                         multiple, {N} * Dim::from(\"k\")"
                    ),
                };
                let detail = format!(
                    "dimension {dim} of {} is not known to fall into {N} equal pieces\n  help: \
                     {help}",
                    ty.shape
                );
                return Err(Error::rule("split.C1", detail));
            }
            self.pieces(ty, axis, &vec![size; N])
        })
    }

    /// Pieces of these sizes along an axis; together they are the whole.
    ///
    /// Errors: `split.C2` unless they are, as equal expressions, `shape.C1`, `dim.C1`. Source:
    /// PyTorch's `split`; NumPy's takes places instead of sizes.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let [head, tail] = g.constant([1, 2, 3]).split_sizes([1, 2], 0);
    /// assert_eq!((head.eval()?, tail.eval()?), ([1].into(), [2, 3].into()));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn split_sizes<const N: usize>(
        &self,
        sizes: [impl Into<Dim>; N],
        axis: impl Into<Axis>,
    ) -> [Tensor; N] {
        self.call_many("split_sizes", |ty| {
            let axis = ty.shape.axis(axis)?;
            let dim = &ty.shape[axis];
            let sizes = sizes.map(Into::into);
            sizes.iter().try_for_each(Dim::ensure_valid)?;
            let sum = sizes.iter().fold(Dim::from(0), |sum, size| sum + size);
            if sum != *dim {
                let detail = format!("pieces of {sizes:?} are {sum} together, must be {dim}");
                return Err(Error::rule("split.C2", detail));
            }
            self.pieces(ty, axis, &sizes)
        })
    }

    /// Pieces along an axis that differ by 1 at most, larger ones first.
    ///
    /// Errors: `split.C1` for no pieces, or more than 2^16, `shape.C1`; after an error there is one
    /// tensor, which stands for nothing. Source: NumPy's `array_split`, PyTorch's `tensor_split`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let parts = g.constant([1, 2, 3]).array_split(2, 0);
    /// assert_eq!(parts[0].eval()?, [1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(alias = "chunk")]
    #[track_caller]
    pub fn array_split(&self, parts: usize, axis: impl Into<Axis>) -> Vec<Tensor> {
        let made = self.graph().perform("array_split", || {
            let ty = self.usable()?;
            let axis = ty.shape.axis(axis)?;
            let dim = &ty.shape[axis];
            if !(1..=1 << 16).contains(&parts) {
                let detail = format!("{parts} pieces; there can be 1 to 65536");
                return Err(Error::rule("split.C1", detail));
            }
            let count = parts as i64;
            let sizes: Vec<Dim> = (1..=count).map(|i| (dim + (count - i)) / count).collect();
            self.pieces(&ty, axis, &sizes)
        });
        made.unwrap_or_else(|| vec![Tensor::void(self.graph())])
    }

    fn pieces(&self, ty: &TensorType, axis: usize, sizes: &[Dim]) -> Result<Vec<Tensor>> {
        let mut start = Dim::from(0);
        let piece = |size: &Dim| {
            let stop = &start + size;
            let mut parts = vec![Slice::ALL; ty.shape.rank()];
            parts[axis] = Slice::range(Some(start.clone()), Some(stop.clone()));
            start = stop;
            self.sliced(ty, &parts)
        };
        sizes.iter().map(piece).collect()
    }
}
