//! Tensors from nothing: constants, ranges, and what distinguishes elements by their place.

use helio::ir::ops::Direction;
use helio::ir::{ArrayShape, Number};
use helio::{ElementType, Error, Result};

use crate::graph::TensorType;
use crate::operand::{constant, resolve};
use crate::ops::binary::ensure_type;
use crate::ops::nonlinear::ensure_float;
use crate::{Axis, Dim, Graph, Operand, Shape, Tensor, promote};

impl Graph {
    /// A value everywhere. Errors: `promotion.C1`, `promotion.C2` unless it takes the type;
    /// `broadcast.C2`, `dim.C1`. Source: NumPy's `full`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.full(F32, 2, 7).eval()?, [7f32, 7.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn full(&self, dtype: ElementType, shape: impl Into<Shape>, value: impl Operand) -> Tensor {
        self.call("full", || {
            let value = resolve(value, self, dtype)?;
            let found = value.dtype()?;
            if promote(found, dtype)? != dtype {
                let detail = format!("a value of {found} may not be one of {dtype}");
                return Err(Error::rule("promotion.C1", detail));
            }
            Ok(value.cast(dtype).broadcast_to(shape))
        })
    }

    /// Zeros, or false. Errors: `promotion.C2` for a type without zero, `dim.C1`. Source: NumPy's
    /// `zeros`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.zeros(F32, 2).eval()?, [0f32, 0.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn zeros(&self, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("zeros", || Ok(self.full(dtype, shape, 0)))
    }

    /// Ones, or true. Errors: `dim.C1`. Source: NumPy's `ones`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.ones(S8, (1, 2)).eval()?, [[1i8, 1]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ones(&self, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("ones", || Ok(constant(self, Number::Int(1), dtype)?.broadcast_to(shape)))
    }

    /// The index along an axis. Errors: `elementwise.C1` for bools, `shape.C1`, `dim.C1`. Source:
    /// JAX's `broadcasted_iota`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.iota(S32, (2, 2), 0).eval()?, [[0, 0], [1, 1]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn iota(
        &self,
        dtype: ElementType,
        shape: impl Into<Shape>,
        axis: impl Into<Axis>,
    ) -> Tensor {
        self.call("iota", || {
            ensure_type(dtype, !dtype.is_pred(), "numbers")?;
            let ty = TensorType::new(dtype, shape);
            let axis = ty.shape.axis(axis)?;
            self.emit(&[], ty.clone(), move |emit, _| Ok(emit.builder.iota(emit.shape(&ty)?, axis)))
        })
    }

    /// The integers from 0 up to but not including `stop`, converted. Errors: as for
    /// [`Graph::iota`]. Source: NumPy's `arange`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.arange(S32, 3).eval()?, [0, 1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn arange(&self, dtype: ElementType, stop: impl Into<Dim>) -> Tensor {
        self.call("arange", || Ok(self.iota(dtype, [stop.into()], 0)))
    }

    /// The integers from `start` up, or with a negative step down, to but not including `stop`,
    /// converted. Errors: `arange.C1` for step 0, `elementwise.C1`, `dim.C1`, or `dim.C2` in a call
    /// in which `stop` lies before `start`. Source: NumPy's `arange`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.arange_by(S32, 5, 0, -2).eval()?, [5, 3, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn arange_by(
        &self,
        dtype: ElementType,
        start: impl Into<Dim>,
        stop: impl Into<Dim>,
        step: i64,
    ) -> Tensor {
        self.call("arange_by", || {
            ensure_type(dtype, !dtype.is_pred(), "numbers")?;
            let (start, stop) = (start.into(), stop.into());
            if step == 0 || step == i64::MIN {
                let detail = format!("a step of {step}, which leads from {start} nowhere");
                return Err(Error::rule("arange.C1", detail));
            }
            let distance = if step > 0 { &stop - &start } else { &start - &stop };
            let count = match distance.number() {
                Some(distance) if distance <= 0 => 0.into(),
                _ => (distance + (step.abs() - 1)) / step.abs(),
            };
            self.emit(&[], TensorType::new(dtype, [count.clone()]), move |emit, _| {
                let steps = emit.builder.iota_r1(ElementType::S64, emit.size(&count)?);
                let numbers = steps.mul(step).add(emit.value(&start)?);
                Ok(numbers.convert_element_type(dtype))
            })
        })
    }

    /// `count` numbers at equal distances from `start` to `stop`, both included; computed in `f64`.
    /// Errors: `elementwise.C1` unless `dtype` is a float, `dim.C1`. Source: NumPy's `linspace`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.linspace(F32, 0.0, 1.0, 3).eval()?, [0f32, 0.5, 1.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(
        &self,
        dtype: ElementType,
        start: f64,
        stop: f64,
        count: impl Into<Dim>,
    ) -> Tensor {
        self.call("linspace", || {
            let count = count.into();
            let ty = TensorType::new(dtype, [count.clone()]);
            ensure_float(&ty)?;
            self.emit(&[], ty, move |emit, _| {
                let count = emit.size(&count)?;
                let places = emit.builder.iota_r1(ElementType::F64, count);
                let intervals = count.saturating_sub(1).max(1) as f64;
                let numbers = places.mul((stop - start) / intervals).add(start);
                // Rounding must not miss the end.
                let numbers = match count {
                    0 | 1 => numbers,
                    _ => places
                        .eq(intervals)
                        .select(emit.builder.constant_r0(stop).broadcast(&[count]), numbers),
                };
                Ok(numbers.convert_element_type(dtype))
            })
        })
    }

    /// The identity matrix. Errors: `dim.C1`. Source: NumPy's `eye`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.eye(S32, 2).eval()?, [[1, 0], [0, 1]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn eye(&self, dtype: ElementType, size: impl Into<Dim>) -> Tensor {
        self.call("eye", || {
            let size = size.into();
            let shape = Shape::from([&size, &size]);
            let (one, zero) = (constant(self, Number::Int(1), dtype)?, self.zeros(dtype, ()));
            Ok(one.where_(self.places(&shape, 0, Direction::Eq)?, zero))
        })
    }

    /// Where in the matrices of a shape `row + offset` compares with the column.
    fn places(&self, shape: &Shape, offset: i64, direction: Direction) -> Result<Tensor> {
        let offset = beyond_none(offset);
        let ty = TensorType::new(ElementType::Pred, &shape[shape.rank() - 2..]);
        self.emit(&[], ty.clone(), move |emit, _| {
            let numbers = TensorType::new(ElementType::S64, &ty.shape);
            let numbers: ArrayShape = emit.shape(&numbers)?;
            let [row, column] = [0, 1].map(|axis| emit.builder.iota(numbers.clone(), axis));
            let order = helio::ir::ops::Order::Default;
            Ok(row.add(offset).compare(direction, order, &column, &[]))
        })
    }
}

impl Tensor {
    /// The tensor's matrices, its last two axes, with zeros above diagonal `offset`: 0 is the main
    /// one, 1 the one above it. Errors: `diagonal.C1` for fewer than two axes. Source: NumPy's `tril`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.tril(0).eval()?, [[1, 0], [3, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tril(&self, offset: i64) -> Tensor {
        self.call("tril", |ty| self.where_places(ty, offset, Direction::Ge))
    }

    /// The tensor's matrices with zeros below diagonal `offset`. Errors: `diagonal.C1`. Source:
    /// NumPy's `triu`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.triu(0).eval()?, [[1, 2], [0, 4]].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn triu(&self, offset: i64) -> Tensor {
        self.call("triu", |ty| self.where_places(ty, offset, Direction::Le))
    }

    fn where_places(&self, ty: &TensorType, offset: i64, direction: Direction) -> Result<Tensor> {
        ensure_matrices(ty)?;
        let places = self.graph().places(&ty.shape, offset, direction)?;
        Ok(self.where_(places, self.graph().zeros(ty.dtype, ())))
    }

    /// Diagonal `offset` of the tensor's matrices, its last two axes, as the last axis: 0 is the main
    /// one, 1 the one above it.
    ///
    /// Errors: `diagonal.C1` for fewer than two axes; `diagonal.C2` if the length of the diagonal is
    /// not known: the matrices must be square, as expressions, or of known sizes. Source: NumPy's
    /// `diagonal` of the last two axes.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.diagonal(0).eval()?, [1, 4].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: i64) -> Tensor {
        self.call("diagonal", |ty| {
            let (rows, columns) = ensure_matrices(ty)?;
            let offset = beyond_none(offset);
            let (down, right) = (-offset.min(0), offset.max(0));
            let length = match (rows.number(), columns.number()) {
                (Some(rows), Some(columns)) => Dim::from((rows - down).min(columns - right).max(0)),
                _ if rows == columns => rows - down.max(right),
                _ => {
                    let detail = format!(
                        "the length of a diagonal of {} is the lesser of {rows} and {columns}, \
                         which is no expression of dimensions\n  help: slice the tensor so that \
                         its matrices are square",
                        ty.shape
                    );
                    return Err(Error::rule("diagonal.C2", detail));
                }
            };
            let rank = ty.shape.rank();
            let outer = &ty.shape[..rank - 2];
            let shape: Shape = outer.iter().chain([&length]).cloned().collect();
            let outer = Shape::from(outer);
            let columns = columns.clone();
            let size = &rows.clone() * &columns;
            let ty = TensorType::new(ty.dtype, &shape);
            self.graph().emit(&[self], ty, move |emit, x| {
                // In row-major order, neighbours on a diagonal are as far apart as a row is long, and
                // one more.
                let mut sizes = emit.sizes(&outer)?;
                sizes.push(emit.size(&size)?);
                let (count, columns) = (emit.size(&length)?, emit.size(&columns)?);
                let (start, limit) = match count {
                    0 => (0, 0),
                    _ => {
                        let start = down as usize * columns + right as usize;
                        (start, start + (count - 1) * (columns + 1) + 1)
                    }
                };
                let flat = x[0].reshape(&sizes);
                Ok(flat.slice_in_dim(start, limit, columns + 1, outer.rank()))
            })
        })
    }

    /// The sum of the diagonal of the tensor's matrices, its last two axes. Errors: as for
    /// [`Tensor::diagonal`], and `elementwise.C1` for bools. Source: NumPy's `trace`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([[1, 2], [3, 4]]);
    /// assert_eq!(x.trace().eval()?, 5.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        self.call("trace", |_| Ok(self.diagonal(0).sum(-1)))
    }
}

/// An offset beyond all matrices for one that is even further away.
fn beyond_none(offset: i64) -> i64 {
    offset.clamp(-(1 << 62), 1 << 62)
}

/// The dimensions of a tensor's matrices. Errors: `diagonal.C1`.
fn ensure_matrices(ty: &TensorType) -> Result<(&Dim, &Dim)> {
    match ty.shape.dims() {
        [.., rows, columns] => Ok((rows, columns)),
        _ => {
            let detail = format!("{} has no matrices: 2 axes or more are needed", ty.shape);
            Err(Error::rule("diagonal.C1", detail))
        }
    }
}
