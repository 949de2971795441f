//! Sorting, the greatest and least elements and where they are.
//!
//! NaN is greater than every number here, -0 and 0 are equal, and equal elements keep their order,
//! all as in NumPy. Places are of type `s64`, as NumPy's are; JAX's are `s32`.

use helio::builder::{XlaBuilder, XlaComputation, XlaOp};
use helio::ir::ops::Direction;
use helio::ir::{ArrayShape, Native, Number, Shape as HloShape, dispatch_type};
use helio::{Array, ElementType, Error, Result};

use crate::graph::TensorType;
use crate::lower::Emit;
use crate::ops::binary::{ensure_real, ensure_type};
use crate::{Axis, Dim, Tensor};

/// Which element comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Least,
    Greatest,
}

macro_rules! sorts {
    ($($(#[doc = $doc:literal])+ $name:ident: $sort:ident, $first:ident;)*) => {
        impl Tensor {$(
            $(#[doc = $doc])+
            ///
            /// Errors: `shape.C1`, `elementwise.C1` for complex numbers.
            #[track_caller]
            pub fn $name(&self, axis: impl Into<Axis>) -> Tensor {
                self.call(stringify!($name), |ty| {
                    ensure_sortable(ty.dtype)?;
                    self.$sort(ty, ty.shape.axis(axis)?, First::$first)
                })
            }
        )*}
    };
}
sorts! {
    /// The elements along an axis in ascending order, NaN last. Source: NumPy's `sort`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.sort(0).eval()?, [1, 2, 3].into());
    /// # Ok::<(), Error>(())
    /// ```
    sort: sorted, Least;
    /// The elements along an axis in descending order, NaN first. Source: JAX's `sort` with
    /// `descending`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.sort_descending(0).eval()?, [3, 2, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    sort_descending: sorted, Greatest;
    /// The places of the elements along an axis in ascending order, NaN last, as `s64`. Source:
    /// NumPy's `argsort` with `stable`; see [`Tensor::take_along_axis`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.argsort(0).eval()?, [1i64, 2, 0].into());
    /// # Ok::<(), Error>(())
    /// ```
    argsort: places_sorted, Least;
    /// The places of the elements along an axis in descending order, NaN first, as `s64`; those of
    /// equal elements ascend. Source: JAX's `argsort` with `descending`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.argsort_descending(0).eval()?, [0i64, 2, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    argsort_descending: places_sorted, Greatest;
    /// The place of the greatest element along an axis, which is dropped, as `s64`: the first one, or
    /// the first NaN. An axis without elements is an error, `argmax.C1`. Source: NumPy's `argmax`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.argmax(0).eval()?, 0i64.into());
    /// # Ok::<(), Error>(())
    /// ```
    argmax: place_of_first, Greatest;
    /// The place of the least element along an axis, which is dropped, as `s64`: the first one, or
    /// the first NaN. An axis without elements is an error, `argmax.C1`. Source: NumPy's `argmin`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3, 1, 2]);
    /// assert_eq!(x.argmin(0).eval()?, 1i64.into());
    /// # Ok::<(), Error>(())
    /// ```
    argmin: place_of_first, Least;
}

impl Tensor {
    /// The `k` greatest elements along an axis in descending order, and their places, as `s64`.
    ///
    /// Floats are in IEEE's total order: NaN first, -0 after 0. Of equal elements the first comes
    /// first. Errors: `top_k.C1` for more elements than there are, `shape.C1`, `elementwise.C1` for
    /// complex numbers, `dim.C1`. Source: JAX's `lax.top_k`, which is for the last axis.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("best");
    /// let scores = g.input("scores", ElementType::F32, ("batch", 1000));
    /// let [values, places] = scores.top_k(5, -1);
    /// assert_eq!(places.shape()?.to_string(), "[batch, 5]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn top_k(&self, k: impl Into<Dim>, axis: impl Into<Axis>) -> [Tensor; 2] {
        self.call_many("top_k", |ty| {
            ensure_sortable(ty.dtype)?;
            let (k, axis) = (k.into(), ty.shape.axis(axis)?);
            k.ensure_valid()?;
            let dim = ty.shape[axis].clone();
            let ensure_enough = |k: usize, size: usize| match k <= size {
                true => Ok(k),
                false => {
                    let detail = format!("{k} elements of an axis that has {size}");
                    Err(Error::rule("top_k.C1", detail))
                }
            };
            if let (Some(k), Some(size)) = (k.size(), dim.size()) {
                ensure_enough(k, size)?;
            }
            let shape = ty.shape.with(axis, &k);
            let rank = shape.rank();
            let types = [ty.dtype, ElementType::S64].map(|t| TensorType::new(t, &shape));
            let dtype = ty.dtype;
            self.graph().emit_many(&[self], types.into(), move |emit, x| {
                let k = ensure_enough(emit.size(&k)?, emit.size(&dim)?)?;
                let mut to_last: Vec<usize> = (0..rank).filter(|&d| d != axis).collect();
                to_last.push(axis);
                let mut back: Vec<usize> = (0..rank - 1).collect();
                back.insert(axis, rank - 1);
                // Bools have the order of their bytes.
                let x = match dtype.is_pred() {
                    true => x[0].convert_element_type(ElementType::U8),
                    false => x[0].clone(),
                };
                let found = x.transpose(&to_last).top_k(k, true);
                let part = |i| found.get_tuple_element(i).transpose(&back);
                Ok(vec![
                    part(0).convert_element_type(dtype),
                    part(1).convert_element_type(ElementType::S64),
                ])
            })
        })
    }

    fn sorted(&self, ty: &TensorType, axis: usize, first: First) -> Result<Tensor> {
        let (dtype, wide) = (ty.dtype, sortable(ty.dtype));
        self.graph().emit(&[self], ty.clone(), move |emit, x| {
            let x = x[0].convert_element_type(wide);
            let sorted = x.sort_by(&comparator(emit, &[wide], first)?, Some(axis), true);
            Ok(sorted.convert_element_type(dtype))
        })
    }

    fn places_sorted(&self, ty: &TensorType, axis: usize, first: First) -> Result<Tensor> {
        let wide = sortable(ty.dtype);
        let ty = TensorType::new(ElementType::S64, &ty.shape);
        self.graph().emit(&[self], ty, move |emit, x| {
            let places = places(emit, &x[0], axis)?;
            let types = [wide, places.array_shape()?.element()];
            let operands = [x[0].convert_element_type(wide), places];
            let comparator = comparator(emit, &types, first)?;
            let sorted = emit.builder.sort(&operands, &comparator, Some(axis), true);
            Ok(sorted.get_tuple_element(1).convert_element_type(ElementType::S64))
        })
    }

    fn place_of_first(&self, ty: &TensorType, axis: usize, first: First) -> Result<Tensor> {
        let dim = ty.shape[axis].clone();
        let ensure_some = |size: usize| match size {
            0 => Err(Error::rule("argmax.C1", "an axis without elements has no greatest or least")),
            _ => Ok(()),
        };
        dim.size().map_or(Ok(()), ensure_some)?;
        let wide = sortable(ty.dtype);
        let ty = TensorType::new(ElementType::S64, ty.shape.without(&[axis]));
        self.graph().emit(&[self], ty, move |emit, x| {
            ensure_some(emit.size(&dim)?)?;
            let b = emit.builder;
            let places = places(emit, &x[0], axis)?;
            let index = places.array_shape()?.element();
            let operands = [x[0].convert_element_type(wide), places];
            let worst = match first {
                First::Greatest => b.min_value(wide),
                First::Least => b.max_value(wide),
            };
            let inits = [worst, b.zero(index)];
            let found = b.reduce(&operands, &inits, &better(emit, wide, index, first)?, &[axis]);
            Ok(found.get_tuple_element(1).convert_element_type(ElementType::S64))
        })
    }
}

/// Errors: `elementwise.C1` for complex numbers.
fn ensure_sortable(dtype: ElementType) -> Result<()> {
    if dtype.is_pred() {
        return Ok(());
    }
    match dtype.is_complex() {
        true => ensure_type(dtype, false, "numbers that have an order"),
        false => ensure_real(dtype),
    }
}

/// The type in which elements are compared: one whose elements are whole bytes, with NaN if floats.
fn sortable(dtype: ElementType) -> ElementType {
    if dtype.is_pred() {
        ElementType::U8
    } else if dtype.is_float() && dtype.bits() < 16 {
        ElementType::F32
    } else if dtype.is_integer() && dtype.bits() < 8 {
        if dtype.is_signed_integer() { ElementType::S8 } else { ElementType::U8 }
    } else {
        dtype
    }
}

/// The index along an axis, of the shape of `x`; in `s32` if that is enough, which is faster.
fn places(emit: &Emit<'_>, x: &XlaOp, axis: usize) -> Result<XlaOp> {
    let shape = x.array_shape()?;
    let small = i32::try_from(shape.dims()[axis]).is_ok();
    let element = if small { ElementType::S32 } else { ElementType::S64 };
    Ok(emit.builder.iota(ArrayShape::new(element, shape.dims())?, axis))
}

/// Parameters of a computation of scalars: two of each type.
fn parameters(builder: &XlaBuilder, types: &[ElementType]) -> Vec<[XlaOp; 2]> {
    let pair = |(i, &ty): (usize, &ElementType)| {
        [2 * i, 2 * i + 1].map(|number| builder.parameter(number, HloShape::scalar(ty), ""))
    };
    types.iter().enumerate().map(pair).collect()
}

/// Compares by the first of the types.
fn comparator(emit: &Emit<'_>, types: &[ElementType], first: First) -> Result<XlaComputation> {
    emit.computation("comparator", |builder| compared(builder, types, first))
}

fn compared(builder: &XlaBuilder, types: &[ElementType], first: First) -> XlaOp {
    let parameters = parameters(builder, types);
    let [x, y] = &parameters[0];
    let dtype = types[0];
    let direction = if first == First::Least { Direction::Lt } else { Direction::Gt };
    if !dtype.is_float() {
        return x.compare(direction, Default::default(), y, &[]);
    }
    // The total order has NaN of either sign at either end, and two zeros.
    let nan = dispatch_type!(dtype, T => {
        Array::scalar(<T as Native>::from_number(Number::Float(f64::NAN)))
    });
    let (nan, zero) = (builder.constant_literal(nan), builder.zero(dtype));
    let canonical = |x: &XlaOp| x.ne(x).select(&nan, x.eq(&zero).select(&zero, x));
    canonical(x).compare_total_order(direction, canonical(y))
}

/// Of two elements and their places the better, or first NaN, or first of equal ones.
fn better(
    emit: &Emit<'_>,
    dtype: ElementType,
    index: ElementType,
    first: First,
) -> Result<XlaComputation> {
    emit.computation("better", |builder| {
        let scalar = |number, ty| builder.parameter(number, HloShape::scalar(ty), "");
        let (x, i) = (scalar(0, dtype), scalar(1, index));
        let (y, j) = (scalar(2, dtype), scalar(3, index));
        let better = if first == First::Greatest { x.gt(&y) } else { x.lt(&y) };
        let left = better.or(x.ne(&x));
        let left_place = left.or(x.eq(&y).and(i.lt(&j)));
        builder.tuple(&[left.select(&x, &y), left_place.select(&i, &j)])
    })
}
