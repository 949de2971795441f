//! Tensors of a graph, and lists of them.

use std::fmt;

use helio::{ElementType, Result};

use crate::graph::{Graph, TensorType, ValueId};
use crate::{Dim, Shape};

/// A symbolic tensor: the value that an operation will have when the program is called.
///
/// Its type and shape are known; the shape may have symbolic dimensions. Cloning is cheap.
/// Operations are methods, and operators where Rust has them; their operands may also be numbers,
/// see [`Operand`](crate::Operand).
///
/// After an error of its graph a tensor stands for nothing, and operations on it do nothing.
#[derive(Clone)]
pub struct Tensor {
    graph: Graph,
    /// `None` after an error.
    value: Option<(ValueId, TensorType)>,
}

impl Tensor {
    pub(crate) fn new(graph: Graph, value: ValueId, ty: TensorType) -> Self {
        Tensor { graph, value: Some((value, ty)) }
    }

    /// A tensor that stands for nothing.
    pub(crate) fn void(graph: &Graph) -> Self {
        Tensor { graph: graph.clone(), value: None }
    }

    pub(crate) fn value(&self) -> Option<(ValueId, &TensorType)> {
        self.value.as_ref().map(|(value, ty)| (*value, ty))
    }

    /// The graph that it belongs to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Type and shape. Errors: the graph's first error.
    pub(crate) fn ty(&self) -> Result<TensorType> {
        match &self.value {
            Some((_, ty)) => Ok(ty.clone()),
            None => Err(self.graph.first_error()),
        }
    }

    /// Type and shape of a tensor that is about to be used. Errors: `graph.C5`, the graph's first
    /// error.
    pub(crate) fn usable(&self) -> Result<TensorType> {
        self.graph.operand(self)?;
        self.ty()
    }

    /// The type of the elements. Errors: the graph's first error.
    pub fn dtype(&self) -> Result<ElementType> {
        Ok(self.ty()?.dtype)
    }

    /// The shape. Errors: the graph's first error.
    pub fn shape(&self) -> Result<Shape> {
        Ok(self.ty()?.shape)
    }

    /// A dimension; -1 is the last. Errors: `shape.C1`, the graph's first error.
    pub fn dim(&self, axis: isize) -> Result<Dim> {
        let shape = self.shape()?;
        Ok(shape[shape.axis(axis)?].clone())
    }

    /// Performs a public call on this tensor; see [`Graph::call`].
    #[track_caller]
    pub(crate) fn call(
        &self,
        name: &'static str,
        make: impl FnOnce(&TensorType) -> Result<Tensor>,
    ) -> Tensor {
        self.graph.call(name, || make(&self.usable()?))
    }

    /// The same for calls with several results, which are void after an error.
    #[track_caller]
    pub(crate) fn call_many<const N: usize>(
        &self,
        name: &'static str,
        make: impl FnOnce(&TensorType) -> Result<Vec<Tensor>>,
    ) -> [Tensor; N] {
        let made = self.graph.perform(name, || make(&self.usable()?));
        made.and_then(|made| made.try_into().ok())
            .unwrap_or_else(|| std::array::from_fn(|_| Tensor::void(&self.graph)))
    }
}

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

/// `f32[batch, 3]`
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some((_, ty)) => write!(f, "Tensor({ty})"),
            None => f.write_str("Tensor(void)"),
        }
    }
}

/// Tensors that are passed together: one tensor, or an array, a vector or a tuple of tensor lists.
pub trait TensorList: Sized {
    /// The tensors, in order.
    fn tensors(&self) -> Vec<Tensor>;

    /// A list of the same form whose tensors are what `next` gives, in order: as many as
    /// [`TensorList::tensors`] gives.
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self;
}

impl TensorList for Tensor {
    fn tensors(&self) -> Vec<Tensor> {
        vec![self.clone()]
    }

    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        next()
    }
}

impl<L: TensorList> TensorList for Vec<L> {
    fn tensors(&self) -> Vec<Tensor> {
        self.iter().flat_map(L::tensors).collect()
    }

    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        self.iter().map(|list| list.with_tensors(next)).collect()
    }
}

impl<L: TensorList, const N: usize> TensorList for [L; N] {
    fn tensors(&self) -> Vec<Tensor> {
        self.iter().flat_map(L::tensors).collect()
    }

    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        std::array::from_fn(|i| self[i].with_tensors(next))
    }
}

macro_rules! tuples {
    ($($($name:ident $number:tt),*;)*) => {$(
        impl<$($name: TensorList),*> TensorList for ($($name,)*) {
            fn tensors(&self) -> Vec<Tensor> {
                [$(self.$number.tensors()),*].concat()
            }

            fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
                ($(self.$number.with_tensors(next),)*)
            }
        }
    )*};
}
tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}
