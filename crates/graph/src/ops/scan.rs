//! Folds of all elements up to each.

use helio::ElementType;
use helio::Result;
use helio::builder::WindowSpec;
use helio::ir::BinaryOp;
use helio::ir::ops::PadDim;
use helio::unstable::ir::with_methods;

use crate::graph::TensorType;
use crate::ops::binary::{ensure_real, ensure_type, is_narrow};
use crate::ops::reduce::Start;
use crate::{Axis, Tensor};

/// Which elements a cumulative fold is of, unless those up to each, and itself.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::Scan;
/// let x = g.constant([3, 1, 2]);
/// let before = x.cumsum_with(0, Scan::default().with_exclusive(true));
/// assert_eq!(before.eval()?, [0, 3, 4].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scan {
    /// From the end: those behind each, and itself. Source: JAX's `reverse`.
    pub reverse: bool,
    /// Not itself; the first has the fold of none.
    pub exclusive: bool,
}

with_methods! { Scan {
    with_reverse(reverse: bool);
    with_exclusive(exclusive: bool);
} }

macro_rules! scans {
    ($($(#[doc = $doc:literal])+ $name:ident $with:ident: $op:ident, $start:ident;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// Errors: `shape.C1`, `elementwise.C1`.
            #[track_caller]
            pub fn $name(&self, axis: impl Into<Axis>) -> Tensor {
                self.call(stringify!($name), |_| Ok(self.$with(axis, Scan::default())))
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] from the end, or without the ")]
            /// element itself. Errors: as there.
            ///
            /// ```
            /// # use helio_graph::{Scan, prelude::*};
            /// # let g = Graph::new("example");
            /// let x = g.constant([3, 1, 2]);
            /// let from_end = Scan::default().with_reverse(true);
            #[doc = concat!("let y = x.", stringify!($with), "(0, from_end);")]
            #[doc = concat!("assert_eq!(y.eval()?, x.flip(0).", stringify!($name), "(0).flip(0).eval()?);")]
            /// # Ok::<(), Error>(())
            /// ```
            #[track_caller]
            pub fn $with(&self, axis: impl Into<Axis>, scan: Scan) -> Tensor {
                self.call(stringify!($name), |ty| {
                    let order = matches!(BinaryOp::$op, BinaryOp::Maximum | BinaryOp::Minimum);
                    match order {
                        true => ensure_real(ty.dtype)?,
                        false => {
                            let accepted = !ty.dtype.is_pred();
                            ensure_type(ty.dtype, accepted, "numbers")?;
                        }
                    }
                    self.scan(ty, ty.shape.axis(axis)?, BinaryOp::$op, Start::$start, scan)
                })
            }
        )*}
    };
}
scans! {
    /// The sum of the elements along an axis up to each; integers wrap. Types narrower than `f32` are
    /// summed in `f32`. Source: NumPy's `cumsum`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.cumsum(0).eval()?, [3, 4, 6].into());
    /// # Ok::<(), Error>(())
    /// ```
    cumsum cumsum_with: Add, Zero;
    /// The product of the elements along an axis up to each; integers wrap. Types narrower than `f32`
    /// are multiplied in `f32`. Source: NumPy's `cumprod`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.cumprod(0).eval()?, [3, 3, 6].into());
    /// # Ok::<(), Error>(())
    /// ```
    cumprod cumprod_with: Multiply, One;
    /// The greatest of the elements along an axis up to each, NaN from the first one on. Source:
    /// NumPy's `maximum.accumulate`, JAX's `lax.cummax`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.cummax(0).eval()?, [3, 3, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    cummax cummax_with: Maximum, Lowest;
    /// The least of the elements along an axis up to each, NaN from the first one on. Source: NumPy's
    /// `minimum.accumulate`, JAX's `lax.cummin`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.cummin(0).eval()?, [3, 1, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    cummin cummin_with: Minimum, Highest;
}

impl Tensor {
    fn scan(
        &self,
        ty: &TensorType,
        axis: usize,
        op: BinaryOp,
        start: Start,
        scan: Scan,
    ) -> Result<Tensor> {
        let dtype = ty.dtype;
        let wide = if is_narrow(dtype) { ElementType::F32 } else { dtype };
        let shape = ty.shape.clone();
        self.graph().emit(&[self], ty.clone(), move |emit, x| {
            let size = emit.size(&shape[axis])?;
            if size == 0 {
                return Ok(x[0].clone());
            }
            let start = start.op(emit.builder, wide);
            let mut dimensions = vec![1; shape.rank()];
            let mut padding = vec![(0, 0); shape.rank()];
            dimensions[axis] = size;
            let beyond = size as i64 - 1;
            padding[axis] = if scan.reverse { (0, beyond) } else { (beyond, 0) };
            let window =
                WindowSpec { dimensions: &dimensions, padding: &padding, ..WindowSpec::default() };
            let computation = emit.scalar(op, wide)?;
            let mut folded = x[0].convert_element_type(wide).reduce_window_with_general_padding(
                &start,
                &computation,
                &window,
            );
            if scan.exclusive {
                let (low, high) = if scan.reverse { (-1, 1) } else { (1, -1) };
                let mut dims = vec![PadDim::default(); shape.rank()];
                dims[axis] = PadDim { low, high, interior: 0 };
                folded = folded.pad(&start, &dims);
            }
            Ok(folded.convert_element_type(dtype))
        })
    }
}
