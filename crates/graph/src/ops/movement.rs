//! Other shapes for the same elements: broadcasts, rebinds, reshapes, transposes.

use helio::{Error, Result};

use crate::graph::TensorType;
use crate::{Axes, Axis, Dim, Shape, Tensor};

impl Tensor {
    /// Repeats the tensor to a shape: dimensions are added in front, and those of size 1 stretch.
    /// Errors: `broadcast.C2`. Source: NumPy's `broadcast_to`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.broadcast_to((2, 2)).eval()?, [[1, 2], [1, 2]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Tensor {
        self.call("broadcast_to", |ty| {
            let shape = shape.into();
            if ty.shape == shape {
                return Ok(self.clone());
            }
            let fits = ty.shape.broadcast(&shape).is_ok_and(|found| found == shape);
            if !fits {
                let detail = format!("{} does not broadcast to {shape}", ty.shape);
                return Err(Error::rule("broadcast.C2", detail));
            }
            let first = shape.rank() - ty.shape.rank();
            let axes: Vec<usize> = (first..shape.rank()).collect();
            let ty = TensorType::new(ty.dtype, shape);
            self.graph().emit(&[self], ty.clone(), move |emit, x| {
                Ok(x[0].broadcast_in_dim(&emit.sizes(&ty.shape)?, &axes))
            })
        })
    }

    /// The same tensor under a shape that is asserted to be equal to its own whenever the program is
    /// called; a call for which it is not fails with `call.C3`. A name that no input has may be
    /// given to a dimension so. Errors: `rebind.C1` if the ranks differ, or sizes that are known
    /// already; `dim.C1`. Source: MAX's `rebind`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, ("n", "m"));
    /// assert_eq!(x.rebind(("n", 4)).shape()?.to_string(), "[n, 4]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rebind(&self, shape: impl Into<Shape>) -> Tensor {
        self.call("rebind", |ty| {
            let shape = shape.into();
            shape.ensure_valid()?;
            let refuse = |why| Err(Error::rule("rebind.C1", why));
            if shape.rank() != ty.shape.rank() {
                return refuse(format!("{} cannot be {shape}: the ranks differ", ty.shape));
            }
            let pairs = ty.shape.iter().zip(shape.iter()).enumerate();
            let pairs: Vec<_> = pairs.filter(|(_, (found, required))| found != required).collect();
            for (_, (found, required)) in &pairs {
                if let (Some(found), Some(required)) = (found.size(), required.size()) {
                    return refuse(format!(
                        "{} cannot be {shape}: {found} is not {required}",
                        ty.shape
                    ));
                }
            }
            for (axis, (found, required)) in pairs {
                self.graph().assert_equal(axis, found, required);
            }
            let ty = TensorType::new(ty.dtype, &shape);
            self.graph().emit(&[self], ty, |_, x| Ok(x[0].clone()))
        })
    }

    /// The same elements in row-major order under another shape. One dimension may be -1: it becomes
    /// what the others leave.
    ///
    /// Errors: `reshape.C1` unless both have as many elements, as equal expressions; `reshape.C2` if
    /// more than one dimension is -1, or the others have no elements; `dim.C1`. Source: NumPy's
    /// `reshape`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("flat");
    /// let x = g.input("x", ElementType::F32, ("batch", 4, 8));
    /// assert_eq!(x.reshape(("batch", -1)).shape()?.to_string(), "[batch, 32]");
    /// assert_eq!(x.reshape([-1, 2]).shape()?.to_string(), "[16*batch, 2]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        self.call("reshape", |ty| {
            let shape = complete(&ty.shape, shape.into())?;
            if ty.shape == shape {
                return Ok(self.clone());
            }
            let ty = TensorType::new(ty.dtype, &shape);
            self.graph().emit(&[self], ty, move |emit, x| Ok(x[0].reshape(&emit.sizes(&shape)?)))
        })
    }

    /// All elements along one axis. Source: NumPy's `ravel`, and `flatten`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.flatten().eval()?, [1, 2, 3, 4].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.call("flatten", |ty| Ok(self.reshape([ty.shape.element_count()])))
    }

    /// The axes in another order: axis `i` of the result is axis `permutation[i]`, -1 the last.
    ///
    /// Errors: `transpose.C1` unless each axis is named once, `shape.C1`. Source: NumPy's
    /// `transpose`; for all axes reversed see [`Tensor::t`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.transpose(&[1, 0]).eval()?, [[1, 3], [2, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self, permutation: &[impl Into<Axis> + Copy]) -> Tensor {
        self.call("transpose", |ty| {
            let permutation = ty.shape.axes(permutation)?;
            if permutation.len() != ty.shape.rank() {
                return Err(Error::rule(
                    "transpose.C1",
                    format!(
                        "a permutation of {} axes for {}, which has {}\n  help: name each axis \
                         once; swap_axes and move_axis leave the others where they are",
                        permutation.len(),
                        ty.shape,
                        ty.shape.rank()
                    ),
                ));
            }
            self.permuted(ty, permutation)
        })
    }

    /// The axes in reverse order: a matrix transposed. Source: NumPy's `T`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.t().eval()?, [[1, 3], [2, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Tensor {
        self.call("t", |ty| self.permuted(ty, (0..ty.shape.rank()).rev().collect()))
    }

    /// Two axes in each other's place. Errors: `shape.C1`. Source: NumPy's `swapaxes`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.swap_axes(0, 1).eval()?, [[1, 3], [2, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn swap_axes(&self, a: impl Into<Axis>, b: impl Into<Axis>) -> Tensor {
        self.call("swap_axes", |ty| {
            let mut permutation: Vec<usize> = (0..ty.shape.rank()).collect();
            permutation.swap(ty.shape.axis(a)?, ty.shape.axis(b)?);
            self.permuted(ty, permutation)
        })
    }

    /// An axis in another place; the others keep their order. Errors: `shape.C1`. Source: NumPy's
    /// `moveaxis`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.zeros(F32, (2, 3, 4));
    /// assert_eq!(x.move_axis(0, -1).shape()?.to_string(), "[3, 4, 2]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn move_axis(&self, from: impl Into<Axis>, to: impl Into<Axis>) -> Tensor {
        self.call("move_axis", |ty| {
            let mut permutation: Vec<usize> = (0..ty.shape.rank()).collect();
            let (from, to) = (ty.shape.axis(from)?, ty.shape.axis(to)?);
            let axis = permutation.remove(from);
            permutation.insert(to, axis);
            self.permuted(ty, permutation)
        })
    }

    /// The axes in another order, each of them once.
    pub(crate) fn permuted(&self, ty: &TensorType, permutation: Vec<usize>) -> Result<Tensor> {
        if permutation.is_sorted() {
            return Ok(self.clone());
        }
        let shape: Shape = permutation.iter().map(|&axis| ty.shape[axis].clone()).collect();
        let ty = TensorType::new(ty.dtype, shape);
        self.graph().emit(&[self], ty, move |_, x| Ok(x[0].transpose(&permutation)))
    }

    /// The tensor without axes of size 1: those that are named, or all of them with `..`. A name that
    /// is 1 when the program is called stays.
    ///
    /// Errors: `squeeze.C1` if the size of an axis that is named is not 1, `shape.C1`. Source:
    /// NumPy's `squeeze`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2]]);
    /// assert_eq!(x.squeeze(0).eval()?, [1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("squeeze", |ty| {
            let axes = axes.into();
            let (mut dropped, _) = axes.of(&ty.shape)?;
            if axes.is_all() {
                dropped.retain(|&axis| ty.shape[axis].is_one());
            }
            if let Some(axis) = dropped.iter().find(|&&axis| !ty.shape[axis].is_one()) {
                let dim = &ty.shape[*axis];
                let help = match dim.size() {
                    Some(_) => "to take one element of it, write x.slice(axis, index)",
                    None => "if it is 1 whenever the program is called, rebind it to 1 first",
                };
                let detail = format!(
                    "axis {axis} of {} has dimension {dim}, which is not the size 1\n  help: {help}",
                    ty.shape
                );
                return Err(Error::rule("squeeze.C1", detail));
            }
            Ok(self.reshape(ty.shape.without(&dropped)))
        })
    }

    /// The tensor with an axis of size 1 in this place of the result, -1 for the last. Errors:
    /// `shape.C1`. Source: NumPy's `expand_dims`, PyTorch's `unsqueeze`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.expand_dims(0).eval()?, [[1, 2]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(alias = "unsqueeze")]
    #[track_caller]
    pub fn expand_dims(&self, axis: impl Into<Axis>) -> Tensor {
        self.call("expand_dims", |ty| Ok(self.reshape(ty.shape.expanded(axis)?)))
    }

    /// The elements in reverse order along axes. Errors: `shape.C1`. Source: NumPy's `flip`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.flip(0).eval()?, [2, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, axes: impl Into<Axes>) -> Tensor {
        self.call("flip", |ty| {
            let (axes, _) = axes.into().of(&ty.shape)?;
            self.graph().emit(&[self], ty.clone(), move |_, x| Ok(x[0].rev(&axes)))
        })
    }
}

impl Shape {
    /// The shape with an axis of size 1 in this place of the result. Errors: `shape.C1`.
    pub(crate) fn expanded(&self, axis: impl Into<Axis>) -> Result<Shape> {
        let one = Dim::from(1);
        let longer: Shape = self.iter().chain([&one]).cloned().collect();
        let axis = longer.axis(axis)?;
        let mut dims = self.dims().to_vec();
        dims.insert(axis, one);
        Ok(dims.into())
    }
}

/// The shape with -1 replaced by what the other dimensions leave of as many elements. Errors:
/// `reshape.C1`, `reshape.C2`, `dim.C1`.
fn complete(from: &Shape, to: Shape) -> Result<Shape> {
    let inferred = |dim: &Dim| dim.number() == Some(-1);
    let count = from.element_count();
    count.ensure_valid()?;
    let known: Shape = to.iter().filter(|dim| !inferred(dim)).cloned().collect();
    known.ensure_valid()?;
    let others = known.element_count();
    others.ensure_valid()?;
    let differ = |found: String| {
        let help = match (count.size(), others.size()) {
            (Some(_), Some(_)) => "a dimension may be -1, which becomes what the others leave",
            _ => {
                "if they are equal whenever the program is called, say so first by a rebind to \
                 dimensions that show it, as in x.rebind((4 * Dim::from(\"k\"),))"
            }
        };
        let detail = format!("{from} has {count} elements, {to} has {found}\n  help: {help}");
        Err(Error::rule("reshape.C1", detail))
    };
    match to.iter().filter(|dim| inferred(dim)).count() {
        0 if others == count => Ok(to),
        0 => differ(others.to_string()),
        1 if others.number() == Some(0) => Err(Error::rule(
            "reshape.C2",
            format!("{from} to {to}: without elements, any size would do for -1"),
        )),
        1 => {
            let left = &count / &others;
            if &left * &others != count {
                return differ(format!("a multiple of {others}"));
            }
            Ok(to
                .iter()
                .map(|dim| if inferred(dim) { left.clone() } else { dim.clone() })
                .collect())
        }
        found => Err(Error::rule(
            "reshape.C2",
            format!("{found} dimensions of {to} are -1; one of them can be inferred"),
        )),
    }
}
