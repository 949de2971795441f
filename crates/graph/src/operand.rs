//! What can stand beside a tensor: another tensor, an array, a dimension, or a number.

use helio::ir::types::{BF16, C64, C128, F16};
use helio::ir::{Native, Number, dispatch_type};
use helio::{Array, ElementType, Error, Result};

use crate::graph::TensorType;
use crate::promotion::exact_integers;
use crate::{Dim, Graph, Tensor};

/// The second operand of an operation.
///
/// - A [`Tensor`] or an [`Array`] has a type of its own, which takes part in promotion.
/// - A [`Dim`] is a scalar of type `s64`, and takes part likewise.
/// - A Rust number is weak: it takes the type of the tensor beside it. An integer (or `bool`, as 0
///   or 1) must be in the range in which that type has all integers: that of an integer type, 0 and
///   1 for `pred`, up to 2^8 for `bf16`, 2^11 for `f16`, 2^24 for `f32`, 2^53 for `f64`. A float
///   needs a float or complex type, to which it is rounded; a complex number a complex type.
///   Errors: `promotion.C2`.
///
/// On the left of an operator stands a tensor, or a number as it is written: `2 * x`, `0.5 * x`. (Only `i64`
/// and `f64` can, as Rust would not know otherwise which type `0.5` has.) A variable stands on the right,
/// `x * rate`, or is converted, `f64::from(rate) * x`.
///
/// Source: what MAX does with Python's numbers.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let x = g.constant([1f32, 2.0]);
/// let y = x.add(1).mul(&x).maximum(Array::from([3f32, 5.0]));
/// assert_eq!(y.eval()?, [3f32, 6.0].into());
/// # Ok::<(), Error>(())
/// ```
pub trait Operand {
    /// What it is.
    #[doc(hidden)]
    fn into_kind(self) -> OperandKind;
}

/// What an [`Operand`] is.
#[doc(hidden)]
pub enum OperandKind {
    Tensor(Tensor),
    Array(Array),
    Dim(Dim),
    Number(Number),
}

impl Operand for Tensor {
    fn into_kind(self) -> OperandKind {
        OperandKind::Tensor(self)
    }
}

impl Operand for Array {
    fn into_kind(self) -> OperandKind {
        OperandKind::Array(self)
    }
}

impl Operand for Dim {
    fn into_kind(self) -> OperandKind {
        OperandKind::Dim(self)
    }
}

macro_rules! by_reference {
    ($($operand:ty),*) => {$(
        impl Operand for &$operand {
            fn into_kind(self) -> OperandKind {
                self.clone().into_kind()
            }
        }
    )*};
}
by_reference!(Tensor, Array, Dim);

macro_rules! numbers {
    ($($number:ty: $value:ident => $into:expr;)*) => {$(
        impl Operand for $number {
            fn into_kind(self) -> OperandKind {
                let $value = self;
                OperandKind::Number($into)
            }
        }
    )*};
}
numbers! {
    bool: v => Number::Int(v.into());
    i8: v => Number::Int(v.into());
    i16: v => Number::Int(v.into());
    i32: v => Number::Int(v.into());
    i64: v => Number::Int(v.into());
    isize: v => Number::Int(v as i128);
    u8: v => Number::Int(v.into());
    u16: v => Number::Int(v.into());
    u32: v => Number::Int(v.into());
    u64: v => Number::Int(v.into());
    usize: v => Number::Int(v as i128);
    F16: v => Number::Float(v.into());
    BF16: v => Number::Float(v.into());
    f32: v => Number::Float(v.into());
    f64: v => Number::Float(v);
    C64: v => Number::Complex(C128::new(v.re.into(), v.im.into()));
    C128: v => Number::Complex(v);
}

/// The tensor that an operand is beside one of type `dtype`. Errors: `graph.C4`, `graph.C5`,
/// `promotion.C2`, `dim.C1`.
pub(crate) fn resolve(operand: impl Operand, graph: &Graph, dtype: ElementType) -> Result<Tensor> {
    match operand.into_kind() {
        OperandKind::Tensor(tensor) => {
            graph.operand(&tensor)?;
            Ok(tensor)
        }
        OperandKind::Array(array) => Ok(graph.constant(array)),
        OperandKind::Dim(dim) => Ok(graph.dim(dim)),
        OperandKind::Number(number) => {
            ensure_fits(number, dtype)?;
            constant(graph, number, dtype)
        }
    }
}

/// A scalar of this type, rounded to it.
pub(crate) fn constant(graph: &Graph, number: Number, dtype: ElementType) -> Result<Tensor> {
    let array = scalar(number, dtype);
    let ty = TensorType::new(dtype, ());
    graph.emit(&[], ty, move |emit, _| Ok(emit.builder.constant_literal(array.clone())))
}

fn scalar(number: Number, dtype: ElementType) -> Array {
    dispatch_type!(dtype, T => Array::scalar(<T as Native>::from_number(number)))
}

fn ensure_fits(number: Number, dtype: ElementType) -> Result<()> {
    let refuse = |what: String, help: String| {
        let detail = format!("{what} does not take the tensor's type {dtype}\n  help: {help}");
        Err(Error::rule("promotion.C2", detail))
    };
    match number {
        Number::Pred(_) => Ok(()),
        Number::Int(value) => match exact_integers(dtype) {
            Some((low, high)) if (low..=high).contains(&value) => Ok(()),
            Some((low, high)) => refuse(
                format!("the integer {value}"),
                format!(
                    "{dtype} has all integers from {low} to {high}; convert the tensor to a wider \
                     type with .cast(…){}",
                    if dtype.is_float() { ", or write a float to have it rounded" } else { "" }
                ),
            ),
            None => refuse(format!("the integer {value}"), "it has no zero; write a float".into()),
        },
        Number::Float(value) if !dtype.is_float() && !dtype.is_complex() => refuse(
            format!("the float {value:?}"),
            "write an integer, or convert the tensor first, as in .cast(ElementType::F32)".into(),
        ),
        Number::Complex(_) if !dtype.is_complex() => refuse(
            "a complex number".into(),
            "convert the tensor first, as in .cast(ElementType::C64)".into(),
        ),
        Number::Float(_) | Number::Complex(_) => Ok(()),
    }
}
