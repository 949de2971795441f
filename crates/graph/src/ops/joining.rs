//! Larger tensors from smaller ones: joined, padded, repeated, rolled.

use helio::ir::ops::PadDim;
use helio::{Error, Result, XlaOp};

use crate::graph::TensorType;
use crate::lower::Emit;
use crate::ops::binary::meet_all;
use crate::{Axis, Dim, Graph, Operand, Shape, Tensor};

/// Tensors one after the other along an axis that they have.
///
/// They are promoted. Errors: `concat.C1` without tensors, `concat.C2` unless all other dimensions
/// are equal, as expressions; `promotion.C1`, `shape.C1`. Source: NumPy's `concatenate`.
///
/// ```
/// # use helio_graph::{ElementType, Graph, concat};
/// # let g = Graph::new("both");
/// let x = g.input("x", ElementType::F32, ("n", 2));
/// let y = g.input("y", ElementType::F32, ("m", 2));
/// assert_eq!(concat(&[x, y], 0).shape()?.to_string(), "[m + n, 2]");
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[track_caller]
pub fn concat(tensors: &[impl AsRef<Tensor>], axis: impl Into<Axis>) -> Tensor {
    join("concat", tensors, |first, tensors| {
        let axis = first.shape.axis(axis)?;
        let (tensors, dtype) = meet_all(tensors)?;
        let mut sum = Dim::from(0);
        for tensor in &tensors {
            let found = tensor.shape()?;
            let same = found.rank() == first.shape.rank()
                && (0..found.rank()).all(|i| i == axis || found[i] == first.shape[i]);
            if !same {
                return Err(Error::rule(
                    "concat.C2",
                    format!(
                        "{} and {found} cannot be joined along axis {axis}: all other dimensions \
                         must be equal\n  help: if they are whenever the program is called, say \
                         so by a rebind; to join along a new axis, write stack",
                        first.shape
                    ),
                ));
            }
            sum = sum + &found[axis];
        }
        let ty = TensorType::new(dtype, first.shape.with(axis, sum));
        let operands: Vec<&Tensor> = tensors.iter().collect();
        let graph = operands[0].graph();
        graph.emit(&operands, ty, move |emit, x| Ok(emit.builder.concat_in_dim(x, axis)))
    })
}

/// Tensors of one shape along a new axis, in this place of the result, -1 for the last. They are
/// promoted. Errors: `stack.C1` unless the shapes are equal, as expressions; and as for [`concat()`].
/// Source: NumPy's `stack`.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// let x = g.constant([1, 2]);
/// assert_eq!(stack(&[&x, &x], 0).eval()?, [[1, 2], [1, 2]].into());
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn stack(tensors: &[impl AsRef<Tensor>], axis: impl Into<Axis>) -> Tensor {
    join("stack", tensors, |first, tensors| {
        for tensor in tensors {
            let found = tensor.shape()?;
            if found != first.shape {
                let detail = format!(
                    "{} and {found} cannot be stacked: the shapes must be equal\n  help: if they \
                     are whenever the program is called, say so by a rebind",
                    first.shape
                );
                return Err(Error::rule("stack.C1", detail));
            }
        }
        let axis = axis.into();
        let tensors: Vec<Tensor> = tensors.iter().map(|x| x.expand_dims(axis)).collect();
        Ok(concat(&tensors, axis))
    })
}

/// A call on any number of tensors. Without a tensor there is no graph either, so that the error
/// gets one of its own; the first graph in which the result is used reports it.
#[track_caller]
pub(crate) fn join(
    name: &'static str,
    tensors: &[impl AsRef<Tensor>],
    make: impl FnOnce(&TensorType, &[&Tensor]) -> Result<Tensor>,
) -> Tensor {
    let tensors: Vec<&Tensor> = tensors.iter().map(AsRef::as_ref).collect();
    match tensors.first() {
        Some(first) => first.call(name, |ty| {
            first.graph().ensure_operands(tensors.iter().copied())?;
            make(ty, &tensors)
        }),
        None => Graph::new(name)
            .call(name, || Err(Error::rule("concat.C1", "no tensors; 1 or more are needed"))),
    }
}

impl Tensor {
    /// The tensor with elements `value` added before and after each axis; negative numbers crop.
    ///
    /// There is a pair of numbers of elements for each axis. The value is promoted with the tensor.
    /// Errors: `pad.C1` for
    /// another number of pairs, `pad.C2` unless the value is a scalar; `dim.C1`, or `dim.C2` in a
    /// call, if a dimension gets negative; `promotion.C1`, `promotion.C2`. Source: NumPy's `pad`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("padded");
    /// let x = g.input("x", ElementType::F32, ("n", 5));
    /// assert_eq!(x.pad([(0, 2), (1, -1)], 0.0).shape()?.to_string(), "[n + 2, 5]");
    /// # Ok::<(), helio_graph::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(
        &self,
        amounts: impl IntoIterator<Item = (impl Into<Dim>, impl Into<Dim>)>,
        value: impl Operand,
    ) -> Tensor {
        self.call("pad", |ty| {
            let amounts = amounts.into_iter().map(|(low, high)| Amount::new(low, high, 0));
            self.padded(ty, amounts.collect(), value)
        })
    }

    /// The same with a third number for each axis, of elements `value` between each two. Errors: as
    /// for [`Tensor::pad`]; `pad.C3` in a call in which an axis has no elements between which they
    /// could be. Source: JAX's `lax.pad`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.pad_interior([(1, 0, 1)], 0).eval()?, [0, 1, 0, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pad_interior(
        &self,
        amounts: impl IntoIterator<Item = (impl Into<Dim>, impl Into<Dim>, usize)>,
        value: impl Operand,
    ) -> Tensor {
        self.call("pad_interior", |ty| {
            let amounts = amounts.into_iter().map(|(low, high, n)| Amount::new(low, high, n));
            self.padded(ty, amounts.collect(), value)
        })
    }

    fn padded(&self, ty: &TensorType, amounts: Vec<Amount>, value: impl Operand) -> Result<Tensor> {
        ensure_all_axes(&amounts, &ty.shape)?;
        let (x, value, dtype) = self.meet_types(value)?;
        let found = value.shape()?;
        if found.rank() != 0 {
            let detail = format!("the value must be a scalar, is {found}");
            return Err(Error::rule("pad.C2", detail));
        }
        let dims = ty.shape.iter().zip(&amounts).map(|(dim, amount)| {
            let between = match dim.number() {
                Some(0) => 0.into(),
                _ => (dim - 1) * amount.interior,
            };
            &amount.low + dim + between + &amount.high
        });
        let shape: Shape = dims.collect();
        let from = ty.shape.clone();
        self.graph().emit(&[&x, &value], TensorType::new(dtype, shape), move |emit, x| {
            let dims = amounts.iter().zip(from.iter()).map(|(amount, dim)| {
                if amount.interior != 0 && dim.size().is_none() && emit.size(dim)? == 0 {
                    let detail = format!("dimension {dim} is 0: there is nothing to pad between");
                    return Err(Error::rule("pad.C3", detail));
                }
                let (low, high) = (emit.value(&amount.low)?, emit.value(&amount.high)?);
                Ok(PadDim { low, high, interior: amount.interior })
            });
            Ok(x[0].pad(&x[1], &dims.collect::<Result<Vec<_>>>()?))
        })
    }

    /// The tensor with its outermost elements repeated so often before and after each axis.
    ///
    /// Errors: `pad.C1`; `pad.C4` for a negative number, or, when the program is called, for an axis
    /// without elements. Source: NumPy's `pad` with mode "edge".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.pad_edge([(2, 1)]).eval()?, [1, 1, 1, 2, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pad_edge(
        &self,
        amounts: impl IntoIterator<Item = (impl Into<Dim>, impl Into<Dim>)>,
    ) -> Tensor {
        self.call("pad_edge", |ty| {
            let amounts = amounts.into_iter().map(|(low, high)| Amount::new(low, high, 0));
            self.extended(ty, amounts.collect(), 1, |x, axis, at, count| {
                let edge = if at == 0 { 0 } else { at - 1 };
                let shape = x.array_shape()?;
                let mut sizes = shape.dims().to_vec();
                sizes[axis] = count;
                let axes: Vec<usize> = (0..sizes.len()).collect();
                Ok(x.slice_in_dim(edge, edge + 1, 1, axis).broadcast_in_dim(&sizes, &axes))
            })
        })
    }

    /// The tensor with its elements mirrored so far before and after each axis; the outermost are not
    /// repeated.
    ///
    /// Errors: `pad.C1`; `pad.C4` for a negative number, or, when the program is called, one that is
    /// not less than the axis has elements (NumPy mirrors the mirrored ones then). Source: NumPy's
    /// `pad` with mode "reflect".
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.pad_reflect([(1, 2)]).eval()?, [2, 1, 2, 3, 2, 1].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn pad_reflect(
        &self,
        amounts: impl IntoIterator<Item = (impl Into<Dim>, impl Into<Dim>)>,
    ) -> Tensor {
        self.call("pad_reflect", |ty| {
            let amounts = amounts.into_iter().map(|(low, high)| Amount::new(low, high, 0));
            self.extended(ty, amounts.collect(), usize::MAX, |x, axis, at, count| {
                let start = if at == 0 { 1 } else { at - 1 - count };
                Ok(x.slice_in_dim(start, start + count, 1, axis).rev(&[axis]))
            })
        })
    }

    /// The tensor with what `edge` makes of it before and after each axis. `edge` gets the axis, the
    /// place, 0 or the axis' size, and the number of elements, which is not 0; it needs
    /// as many elements, but not the one at the place, or `needed` if that is less.
    fn extended(
        &self,
        ty: &TensorType,
        amounts: Vec<Amount>,
        needed: usize,
        edge: fn(&XlaOp, usize, usize, usize) -> Result<XlaOp>,
    ) -> Result<Tensor> {
        ensure_all_axes(&amounts, &ty.shape)?;
        for (amount, dim) in amounts.iter().zip(ty.shape.iter()) {
            for amount in [&amount.low, &amount.high] {
                if let Some(number) = amount.number() {
                    let known = dim.size().unwrap_or(usize::MAX);
                    ensure_elements(number, known, needed)?;
                }
            }
        }
        let dims = ty.shape.iter().zip(&amounts);
        let shape: Shape = dims.map(|(dim, amount)| &amount.low + dim + &amount.high).collect();
        self.graph().emit(&[self], TensorType::new(ty.dtype, shape), move |emit, x| {
            let mut padded = x[0].clone();
            for (axis, amount) in amounts.iter().enumerate() {
                let size = padded.array_shape()?.dims()[axis];
                let mut joined = Vec::with_capacity(3);
                for (at, amount) in [(0, &amount.low), (size, &amount.high)] {
                    let count = ensure_elements(emit.value(amount)?, size, needed)?;
                    if at > 0 || joined.is_empty() && size == 0 {
                        joined.push(padded.clone());
                    }
                    if count > 0 {
                        joined.push(edge(&padded, axis, at, count)?);
                    }
                }
                padded = emit.builder.concat_in_dim(&joined, axis);
            }
            Ok(padded)
        })
    }

    /// Copies of the tensor side by side: `repetitions` says how many along each axis; the shorter of
    /// shape and repetitions gets 1s in front. Errors: `dim.C1`. Source: NumPy's `tile`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.tile(2).eval()?, [1, 2, 1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, repetitions: impl Into<Shape>) -> Tensor {
        self.call("tile", |ty| {
            let repetitions = repetitions.into();
            repetitions.ensure_valid()?;
            let rank = ty.shape.rank().max(repetitions.rank());
            let filled = |shape: &Shape| -> Vec<Dim> {
                let ones = std::iter::repeat_n(Dim::from(1), rank - shape.rank());
                ones.chain(shape.iter().cloned()).collect()
            };
            let (repetitions, from) = (filled(&repetitions), filled(&ty.shape));
            let pairs = || repetitions.iter().zip(&from);
            let spread: Shape = pairs().flat_map(|(times, dim)| [times, dim]).cloned().collect();
            let shape: Shape = pairs().map(|(times, dim)| times * dim).collect();
            let axes = (rank - ty.shape.rank()..rank).map(|axis| 2 * axis + 1).collect();
            self.spread(ty, spread, axes, shape)
        })
    }

    /// Each element `times` times along an axis, one copy after the other. Errors: `shape.C1`,
    /// `dim.C1`. Source: NumPy's `repeat`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2]);
    /// assert_eq!(x.repeat(2, 0).eval()?, [1, 1, 2, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn repeat(&self, times: impl Into<Dim>, axis: impl Into<Axis>) -> Tensor {
        self.call("repeat", |ty| {
            let (times, axis) = (times.into(), ty.shape.axis(axis)?);
            times.ensure_valid()?;
            let mut spread = ty.shape.dims().to_vec();
            spread.insert(axis + 1, times.clone());
            let axes = (0..spread.len()).filter(|&i| i != axis + 1).collect();
            let shape = ty.shape.with(axis, &ty.shape[axis] * times);
            self.spread(ty, spread.into(), axes, shape)
        })
    }

    /// Broadcast with dimensions in these places, then reshaped.
    fn spread(
        &self,
        ty: &TensorType,
        spread: Shape,
        axes: Vec<usize>,
        shape: Shape,
    ) -> Result<Tensor> {
        let ty = TensorType::new(ty.dtype, &shape);
        self.graph().emit(&[self], ty, move |emit, x| {
            let spread = x[0].broadcast_in_dim(&emit.sizes(&spread)?, &axes);
            Ok(spread.reshape(&emit.sizes(&shape)?))
        })
    }

    /// The elements moved up by `shift` along an axis, those beyond the end to the start; down by a
    /// negative one. Errors: `shape.C1`. Source: NumPy's `roll`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([1, 2, 3]);
    /// assert_eq!(x.roll(1, 0).eval()?, [3, 1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn roll(&self, shift: impl Into<Dim>, axis: impl Into<Axis>) -> Tensor {
        self.call("roll", |ty| {
            let (shift, axis) = (shift.into(), ty.shape.axis(axis)?);
            let dim = ty.shape[axis].clone();
            self.graph().emit(&[self], ty.clone(), move |emit, x| {
                let size = emit.size(&dim)?;
                let shift = emit.value(&shift)?.checked_rem_euclid(size as i64).unwrap_or(0);
                rolled(emit, &x[0], size, shift as usize, axis)
            })
        })
    }
}

fn rolled(emit: &Emit<'_>, x: &XlaOp, size: usize, shift: usize, axis: usize) -> Result<XlaOp> {
    if shift == 0 {
        return Ok(x.clone());
    }
    let start = x.slice_in_dim(size - shift, size, 1, axis);
    let end = x.slice_in_dim(0, size - shift, 1, axis);
    Ok(emit.builder.concat_in_dim(&[start, end], axis))
}

/// How an axis is padded.
struct Amount {
    low: Dim,
    high: Dim,
    interior: usize,
}

impl Amount {
    fn new(low: impl Into<Dim>, high: impl Into<Dim>, interior: usize) -> Self {
        Amount { low: low.into(), high: high.into(), interior }
    }
}

/// Errors: `pad.C1`.
fn ensure_all_axes(amounts: &[Amount], shape: &Shape) -> Result<()> {
    if amounts.len() != shape.rank() {
        let (found, rank) = (amounts.len(), shape.rank());
        let detail = format!("padding for {found} axes of {shape}, which has {rank}");
        return Err(Error::rule("pad.C1", detail));
    }
    Ok(())
}

/// The number of elements to add. Errors: `pad.C4` if the axis has too few to take them from.
fn ensure_elements(amount: i64, size: usize, needed: usize) -> Result<usize> {
    let Ok(count) = usize::try_from(amount) else {
        let detail = format!("{amount} elements are to be added\n  help: pad and slice crop");
        return Err(Error::rule("pad.C4", detail));
    };
    let needed = if needed == 1 { count.min(1) } else { count.saturating_add(count.min(1)) };
    if needed > size {
        let detail = format!("{count} elements need {needed} in the axis, which has {size}");
        return Err(Error::rule("pad.C4", detail));
    }
    Ok(count)
}
