//! Tensors of a graph, and lists of them.

use std::fmt;

use helio::ir::ArrayShape;
use helio::{Array, ElementType, Error, Result};

use crate::graph::{Graph, TensorType, ValueId};
use crate::{Axis, Dim, Shape};

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
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, 2);
    /// assert_eq!(x.graph().compile(x.exp())?.to_string(), "example(x: f32[2]) -> (f32[2])");
    /// # Ok::<(), Error>(())
    /// ```
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
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// assert_eq!((x.equal(0)).dtype()?, Pred);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dtype(&self) -> Result<ElementType> {
        Ok(self.ty()?.dtype)
    }

    /// The shape. Errors: the graph's first error.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, ("n", 2));
    /// assert_eq!(x.t().shape()?.to_string(), "[2, n]");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> Result<Shape> {
        Ok(self.ty()?.shape)
    }

    /// The shape in arrays. Errors: the graph's first error; `dim.C1` if a dimension has no size before
    /// the program is called.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.zeros(F32, (2, 3)).array_shape()?.to_string(), "f32[2,3]");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn array_shape(&self) -> Result<ArrayShape> {
        let ty = self.ty()?;
        let size = |dim: &Dim| {
            dim.size().ok_or_else(|| {
                Error::rule("dim.C1", format!("{dim} of {ty} has no size before a call"))
            })
        };
        ArrayShape::new(ty.dtype, ty.shape.iter().map(size).collect::<Result<Vec<_>>>()?)
    }

    /// The value of a tensor that depends on no input; the graph is compiled for it and run.
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let g = Graph::new("sum");
    /// let x = g.constant([1f32, 2.0, 3.5]);
    /// assert_eq!(x.sum(0).eval()?, Array::from(6.5f32));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Errors: those of [`Graph::compile`], and `graph.C8` if it depends on an input.
    #[track_caller]
    pub fn eval(&self) -> Result<Array> {
        let mut results = self.graph.compile_without_inputs(self)?.run(&[])?;
        results.pop().ok_or_else(|| Error::internal("a program without its result"))
    }

    /// A dimension; -1 is the last. Errors: `shape.C1`, the graph's first error.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, ("n", 2));
    /// assert_eq!(x.dim(0)?.name(), Some("n"));
    /// assert_eq!(x.dim(-1)?.size(), Some(2));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dim(&self, axis: impl Into<Axis>) -> Result<Dim> {
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

/// Tensors that are passed together: one tensor, or an array, a slice, a vector or a tuple of such
/// tensors, or a reference to them.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let (x, y) = (g.input("x", F32, 2), g.input("y", F32, 2));
/// let program = g.compile((&x + &y, [&x - &y, y]))?; // three results
/// let arguments = [[3f32, 4.0], [1.0, 1.0]].map(Array::from);
/// assert_eq!(program.run(&arguments)?.len(), 3);
/// # Ok::<(), Error>(())
/// ```
pub trait Tensors {
    /// The tensors, in order.
    fn tensors(&self) -> Vec<Tensor>;
}

/// Tensors that a loop or a branch takes and gives in the same form: one tensor, or an array, a vector
/// or a tuple of tensor lists.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let start = (g.constant(1), g.constant(0));
/// let (power, steps) = g.while_loop(start, |(p, _)| p.less(100), |(p, n)| (p * 2, n + 1));
/// assert_eq!((power.eval()?, steps.eval()?), (128.into(), 7.into()));
/// # Ok::<(), Error>(())
/// ```
pub trait TensorList: Tensors + Sized {
    /// A list of the same form whose tensors are what `next` gives, in order: as many as
    /// [`Tensors::tensors`] gives.
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self;
}

impl<T: Tensors + ?Sized> Tensors for &T {
    fn tensors(&self) -> Vec<Tensor> {
        (**self).tensors()
    }
}

impl<T: Tensors> Tensors for [T] {
    fn tensors(&self) -> Vec<Tensor> {
        self.iter().flat_map(T::tensors).collect()
    }
}

impl Tensors for Tensor {
    fn tensors(&self) -> Vec<Tensor> {
        vec![self.clone()]
    }
}

impl TensorList for Tensor {
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        next()
    }
}

impl<T: Tensors> Tensors for Vec<T> {
    fn tensors(&self) -> Vec<Tensor> {
        self.as_slice().tensors()
    }
}

impl<L: TensorList> TensorList for Vec<L> {
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        self.iter().map(|list| list.with_tensors(next)).collect()
    }
}

impl<T: Tensors, const N: usize> Tensors for [T; N] {
    fn tensors(&self) -> Vec<Tensor> {
        self.as_slice().tensors()
    }
}

impl<L: TensorList, const N: usize> TensorList for [L; N] {
    fn with_tensors(&self, next: &mut dyn FnMut() -> Tensor) -> Self {
        std::array::from_fn(|i| self[i].with_tensors(next))
    }
}

macro_rules! tuples {
    ($($($name:ident $number:tt),*;)*) => {$(
        impl<$($name: Tensors),*> Tensors for ($($name,)*) {
            fn tensors(&self) -> Vec<Tensor> {
                [$(self.$number.tensors()),*].concat()
            }
        }

        impl<$($name: TensorList),*> TensorList for ($($name,)*) {
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
