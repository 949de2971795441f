//! Walks over a box of points that lies in several arrays at once: the one loop under every
//! operation that moves or folds elements.

use helio_ir::types::strides;
use helio_ir::{Array, ArrayData, ArrayShape, Error, Native, Result, dispatch, memory};

use crate::Evaluator;
use crate::scalar::Scalar;

/// Elements that are walked over for each step that the run's meter counts.
pub(crate) const ELEMENTS_PER_STEP: usize = 1 << 16;

/// One dimension of a box: how many points, and how far apart they are in each array.
struct Axis<const N: usize> {
    count: usize,
    steps: [isize; N],
}

/// A box of points in row-major order, and where they lie in each of `N` arrays.
pub(crate) struct Walk<'a, const N: usize> {
    evaluator: &'a Evaluator<'a>,
    /// From the slowest to the fastest; none has a single point, no two could be one.
    axes: Vec<Axis<N>>,
    is_empty: bool,
    point: Vec<usize>,
    /// Elements walked over, but not yet counted as a step.
    uncounted: usize,
}

impl<'a, const N: usize> Walk<'a, N> {
    /// A box with these dimensions: for each its points and their distance in each array.
    pub(crate) fn new(
        evaluator: &'a Evaluator<'a>,
        axes: impl IntoIterator<Item = (usize, [isize; N])>,
    ) -> Self {
        let mut walk =
            Walk { evaluator, axes: Vec::new(), is_empty: false, point: Vec::new(), uncounted: 0 };
        walk.set(axes);
        walk
    }

    /// Takes another box, without allocating anew.
    pub(crate) fn set(&mut self, axes: impl IntoIterator<Item = (usize, [isize; N])>) {
        self.axes.clear();
        self.is_empty = false;
        for (count, steps) in axes {
            self.is_empty |= count == 0;
            if count == 1 || self.is_empty {
                continue;
            }
            // A step of the slower dimension that goes just beyond the faster makes one of both.
            let joins = |slow: &Axis<N>| {
                (0..N).all(|i| steps[i].checked_mul(count as isize) == Some(slow.steps[i]))
            };
            match self.axes.last_mut().filter(|slow| joins(slow)) {
                Some(slow) => *slow = Axis { count: slow.count.saturating_mul(count), steps },
                None => self.axes.push(Axis { count, steps }),
            }
        }
    }

    /// Calls `f` for each row, the points along the fastest dimension: where it begins in each
    /// array, its length, and the distances between its points. `start` is the first point.
    pub(crate) fn rows(
        &mut self,
        start: [usize; N],
        mut f: impl FnMut([usize; N], usize, [isize; N]) -> Result<()>,
    ) -> Result<()> {
        if self.is_empty {
            return Ok(());
        }
        let Some((row, outer)) = self.axes.split_last() else {
            return f(start, 1, [0; N]);
        };
        self.point.clear();
        self.point.resize(outer.len(), 0);
        let mut at = start;
        loop {
            self.uncounted = self.uncounted.saturating_add(row.count);
            if self.uncounted >= ELEMENTS_PER_STEP {
                self.evaluator.count_steps((self.uncounted / ELEMENTS_PER_STEP) as u64)?;
                self.uncounted %= ELEMENTS_PER_STEP;
            }
            f(at, row.count, row.steps)?;
            let mut d = outer.len();
            loop {
                if d == 0 {
                    return Ok(());
                }
                d -= 1;
                let axis = &outer[d];
                self.point[d] += 1;
                if self.point[d] < axis.count {
                    at = advance(at, axis.steps);
                    break;
                }
                self.point[d] = 0;
                // Back to the first point; the way there was made of valid places.
                let back = axis.steps.map(|step| step.wrapping_mul(1 - axis.count as isize));
                at = advance(at, back);
            }
        }
    }

    /// Calls `f` for each point with its place in each array.
    pub(crate) fn points(
        &mut self,
        start: [usize; N],
        mut f: impl FnMut([usize; N]) -> Result<()>,
    ) -> Result<()> {
        self.rows(start, |mut at, count, steps| {
            for _ in 0..count {
                f(at)?;
                at = advance(at, steps);
            }
            Ok(())
        })
    }
}

/// One step on in each array. Wraps beyond the last point, where nothing is read.
fn advance<const N: usize>(at: [usize; N], steps: [isize; N]) -> [usize; N] {
    std::array::from_fn(|i| at[i].wrapping_add_signed(steps[i]))
}

/// Copies the points of the box from the first array to the second.
pub(crate) fn copy(
    walk: &mut Walk<'_, 2>,
    start: [usize; 2],
    from: &ArrayData,
    to: &mut ArrayData,
) -> Result<()> {
    dispatch!(from, from => copy_values(walk, start, from, values_mut(to)?))
}

fn copy_values<T: Native>(
    walk: &mut Walk<'_, 2>,
    start: [usize; 2],
    from: &[T],
    to: &mut [T],
) -> Result<()> {
    walk.rows(start, |[mut source, mut target], count, steps| {
        if steps == [1, 1] {
            let source = from.get(source..).and_then(|rest| rest.get(..count));
            let target = to.get_mut(target..).and_then(|rest| rest.get_mut(..count));
            target.ok_or_else(outside)?.copy_from_slice(source.ok_or_else(outside)?);
            return Ok(());
        }
        for _ in 0..count {
            *to.get_mut(target).ok_or_else(outside)? = *from.get(source).ok_or_else(outside)?;
            [source, target] = advance([source, target], steps);
        }
        Ok(())
    })
}

/// The values, to change them. Errors: `Internal` if they have another type.
pub(crate) fn values_mut<T: Native>(data: &mut ArrayData) -> Result<&mut [T]> {
    let element = data.element();
    match T::slice_mut(data) {
        Some(values) => Ok(values),
        None => Err(Error::internal(format!("elements of {element} taken for {}", T::TYPE))),
    }
}

/// Sets one element, converted to the array's type: the computations of reduce, scatter and their
/// kin may work in another float type. Errors: `Internal` if there is no such element.
pub(crate) fn store(data: &mut ArrayData, index: usize, value: Scalar) -> Result<()> {
    let value = value.converted(data.element());
    dispatch!(data, values => {
        *values.get_mut(index).ok_or_else(outside)? = value.get()?;
        Ok(())
    })
}

/// An array with this value, converted to its type, everywhere. Errors: `ResourceExhausted`.
pub(crate) fn filled(shape: &ArrayShape, value: Scalar) -> Result<Array> {
    memory::ensure_available(shape.size_bytes())?;
    let (count, value) = (shape.element_count(), value.converted(shape.element()));
    let data = helio_ir::dispatch_type!(shape.element(), T => {
        T::wrap(vec![value.get::<T>()?; count])
    });
    Array::from_data(shape.clone(), data)
}

/// The distance of neighbours along each dimension, in row-major order. (A shape's constructor sees
/// to it that they fit.)
pub(crate) fn steps(dims: &[usize]) -> Vec<isize> {
    strides(dims).into_iter().map(|stride| stride as isize).collect()
}

/// An invariant of the walk or of the verifier does not hold.
pub(crate) fn outside() -> Error {
    Error::internal("an element outside its array")
}
