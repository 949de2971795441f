//! Reductions along axes.

use helio::builder::{XlaBuilder, XlaOp};
use helio::ir::BinaryOp;
use helio::{ElementType, Result};

use crate::graph::TensorType;
use crate::ops::binary::ensure_type;
use crate::{Axis, Dim, Shape, Tensor};

/// The axes of a reduction: an [`Axis`]; an array, slice or vector of them; or `..` for all. They are
/// dropped from the shape; [`keep`] leaves them with size 1.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let x = g.constant([[1, 2], [3, 4]]);
/// assert_eq!(x.sum(0).eval()?, [4, 6].into());
/// assert_eq!(x.sum([0, 1]).eval()?, x.sum(..).eval()?);
/// assert_eq!(x.sum(keep(-1)).eval()?, [[3], [7]].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// `None` for all.
    axes: Option<Vec<Axis>>,
    keep: bool,
}

/// The axes, left in the result with size 1, so that it broadcasts against the operand.
///
/// ```
/// # use helio_graph::{ElementType, Graph, keep};
/// # let g = Graph::new("center");
/// let x = g.input("x", ElementType::F32, ("n", 3));
/// let centered = &x - x.mean(keep(-1));
/// # assert!(g.compile(centered).is_ok());
/// ```
pub fn keep(axes: impl Into<Axes>) -> Axes {
    Axes { keep: true, ..axes.into() }
}

macro_rules! from_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Axes {
            fn from(axis: $number) -> Self {
                [axis].into()
            }
        }
    )*};
}
from_numbers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize Axis }

impl<A: Into<Axis> + Copy> From<&[A]> for Axes {
    fn from(axes: &[A]) -> Self {
        Axes { axes: Some(axes.iter().map(|&axis| axis.into()).collect()), keep: false }
    }
}

impl<A: Into<Axis> + Copy> From<Vec<A>> for Axes {
    fn from(axes: Vec<A>) -> Self {
        axes.as_slice().into()
    }
}

impl<A: Into<Axis> + Copy, const N: usize> From<[A; N]> for Axes {
    fn from(axes: [A; N]) -> Self {
        axes.as_slice().into()
    }
}

impl<A: Into<Axis> + Copy, const N: usize> From<&[A; N]> for Axes {
    fn from(axes: &[A; N]) -> Self {
        axes.as_slice().into()
    }
}

impl From<std::ops::RangeFull> for Axes {
    fn from(_: std::ops::RangeFull) -> Self {
        Axes { axes: None, keep: false }
    }
}

impl Axes {
    /// Whether all axes are meant.
    pub(crate) fn is_all(&self) -> bool {
        self.axes.is_none()
    }

    /// The axes of a shape, in order, and what is left of it. Errors: `shape.C1`.
    pub(crate) fn of(&self, shape: &Shape) -> Result<(Vec<usize>, Shape)> {
        let mut axes = match &self.axes {
            Some(axes) => shape.axes(axes)?,
            None => (0..shape.rank()).collect(),
        };
        axes.sort_unstable();
        let left = match self.keep {
            true => axes.iter().fold(shape.clone(), |shape, &axis| shape.with(axis, 1)),
            false => shape.without(&axes),
        };
        Ok((axes, left))
    }
}

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $name:ident: $op:ident, $start:ident, $accepted:expr, $wanted:literal;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// Errors: `shape.C1`, `elementwise.C1`.
            #[track_caller]
            pub fn $name(&self, axes: impl Into<Axes>) -> Tensor {
                self.call(stringify!($name), |ty| {
                    let accepted: fn(ElementType) -> bool = $accepted;
                    ensure_type(ty.dtype, accepted(ty.dtype), $wanted)?;
                    self.reduce(&axes.into(), ty, BinaryOp::$op, Start::$start)
                })
            }
        )*}
    };
}
reductions! {
    /// The sum along axes; integers wrap. Types narrower than `f32` are summed in `f32`. Source:
    /// NumPy's `sum`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.sum(1).eval()?, [3, 7].into());
    /// # Ok::<(), Error>(())
    /// ```
    sum: Add, Zero, |t| !t.is_pred(), "numbers";
    /// The product along axes; integers wrap. Source: NumPy's `prod`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.prod(1).eval()?, [2, 12].into());
    /// # Ok::<(), Error>(())
    /// ```
    prod: Multiply, One, |t| !t.is_pred(), "numbers";
    /// The greatest element along axes, NaN if there is one; of none, the lowest value of the type.
    /// For the greater of two tensors see [`Tensor::maximum`]. Source: NumPy's `max`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.max(0).eval()?, [3, 4].into());
    /// # Ok::<(), Error>(())
    /// ```
    max: Maximum, Lowest, |t| t.is_integer() || t.is_float(), "numbers that have an order";
    /// The least element along axes, NaN if there is one; of none, the highest value of the type.
    /// For the lesser of two tensors see [`Tensor::minimum`]. Source: NumPy's `min`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.min(0).eval()?, [1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    min: Minimum, Highest, |t| t.is_integer() || t.is_float(), "numbers that have an order";
    /// Whether all are true along axes; of none, true. Source: NumPy's `all`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.all(..).eval()?, false.into());
    /// # Ok::<(), Error>(())
    /// ```
    all: And, True, ElementType::is_pred, "bool (pred)";
    /// Whether any is true along axes; of none, false. Source: NumPy's `any`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([true, false]);
    /// assert_eq!(x.any(..).eval()?, true.into());
    /// # Ok::<(), Error>(())
    /// ```
    any: Or, False, ElementType::is_pred, "bool (pred)";
}

/// What a reduction starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    Zero,
    One,
    Lowest,
    Highest,
    True,
    False,
}

impl Start {
    /// The scalar of this type.
    pub(crate) fn op(self, builder: &XlaBuilder, dtype: ElementType) -> XlaOp {
        match self {
            Start::Zero => builder.zero(dtype),
            Start::One => builder.one(dtype),
            Start::Lowest => builder.min_value(dtype),
            Start::Highest => builder.max_value(dtype),
            Start::True => builder.constant_r0(true),
            Start::False => builder.constant_r0(false),
        }
    }
}

impl Tensor {
    /// The mean along axes; NaN of none. Integers are converted to `f64` first. Errors: `shape.C1`,
    /// `elementwise.C1`. Source: NumPy's `mean`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.mean(0).eval()?, [2f32, 3.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mean(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("mean", |ty| {
            let axes = axes.into();
            let (numbers, _) = axes.of(&ty.shape)?;
            let wide = if ty.dtype.is_integer() { ElementType::F64 } else { ty.dtype };
            let count = numbers.iter().fold(Dim::from(1), |count, &axis| count * &ty.shape[axis]);
            let narrow = wide.is_float() && wide.bits() < 32;
            let x = self.cast(if narrow { ElementType::F32 } else { wide });
            let sum = x.sum(axes);
            let count = self.graph().dim(count).cast(sum.dtype()?);
            Ok((sum / count).cast(wide))
        })
    }

    /// The variance along axes: the mean squared distance to the mean, with `count - correction` as
    /// the divisor. Errors: as for [`Tensor::mean`]. Source: NumPy's `var`, with its `ddof`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.var(0, 1).eval()?, [2f32, 2.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn var(&self, axes: impl Into<Axes>, correction: i32) -> Tensor {
        self.call("var", |ty| {
            let axes = axes.into();
            let (numbers, _) = axes.of(&ty.shape)?;
            let count = numbers.iter().fold(Dim::from(1), |count, &axis| count * &ty.shape[axis]);
            let x = match ty.dtype.is_integer() {
                true => self.cast(ElementType::F64),
                false => self.clone(),
            };
            let distance = &x - x.mean(keep(axes.clone()));
            let squares = match distance.dtype()?.is_complex() {
                true => distance.abs().square(),
                false => distance.square(),
            };
            let sum = squares.sum(axes);
            let divisor = self.graph().dim(count - correction).cast(sum.dtype()?);
            Ok(sum / divisor)
        })
    }

    fn reduce(&self, axes: &Axes, ty: &TensorType, op: BinaryOp, start: Start) -> Result<Tensor> {
        let (axes, shape) = axes.of(&ty.shape)?;
        let dtype = ty.dtype;
        // Sums of many narrow floats would stop growing.
        let wide = match dtype.is_float() && dtype.bits() < 32 {
            true => ElementType::F32,
            false => dtype,
        };
        let ty = TensorType::new(dtype, shape);
        self.graph().emit(&[self], ty.clone(), move |emit, x| {
            let x = x[0].convert_element_type(wide);
            let reduced = x.reduce(start.op(emit.builder, wide), &emit.scalar(op, wide)?, &axes);
            Ok(reduced.convert_element_type(dtype).reshape(&emit.sizes(&ty.shape)?))
        })
    }
}
