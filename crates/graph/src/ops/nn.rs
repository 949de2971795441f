//! Layers of neural networks that are more than a function of each element.
//!
//! Types narrower than `f32` are computed in `f32` and rounded once.

use helio::{ElementType, Error};

use crate::operand::resolve;
use crate::ops::nonlinear::{ensure_float, lowest};
use crate::{Axes, Operand, Random, Shape, Tensor, keep};

impl Tensor {
    /// The tensor with mean 0 and variance 1 along axes: `(x - mean) / sqrt(variance + epsilon)`.
    /// Scale and offset are a product and a sum away. Errors: `shape.C1`, `elementwise.C1`. Source:
    /// "Layer Normalization" (Ba, Kiros and Hinton), PyTorch's `layer_norm`.
    ///
    /// ```
    /// # use helio_graph::{ElementType, Graph};
    /// # let g = Graph::new("norm");
    /// # let x = g.input("x", ElementType::F32, ("n", 8));
    /// # let [scale, offset] = ["scale", "offset"].map(|name| g.input(name, ElementType::F32, [8]));
    /// let y = x.layer_norm(-1, 1e-5) * scale + offset;
    /// # assert!(g.compile(y).is_ok());
    /// ```
    #[track_caller]
    pub fn layer_norm(&self, axes: impl Into<Axes>, epsilon: f64) -> Tensor {
        self.call("layer_norm", |ty| {
            let axes = keep(axes);
            self.in_f32(ty, |x| {
                let centered = x - x.mean(axes.clone());
                let variance = centered.square().mean(axes);
                Ok(&centered * (variance + epsilon).rsqrt())
            })
        })
    }

    /// The tensor divided by the root of its mean square along axes. Errors: `shape.C1`,
    /// `elementwise.C1`. Source: "Root Mean Square Layer Normalization" (Zhang and Sennrich).
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.constant([3f32, 4.0]);
    /// assert_eq!(format!("{:.3}", x.rms_norm(-1, 0.0).eval()?), "[0.849 1.131]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rms_norm(&self, axes: impl Into<Axes>, epsilon: f64) -> Tensor {
        self.call("rms_norm", |ty| {
            self.in_f32(ty, |x| {
                let mean = x.square().mean(keep(axes));
                Ok(x * (mean + epsilon).rsqrt())
            })
        })
    }

    /// The tensor with some elements set to 0, each with probability `rate`, and the others divided
    /// by `1 - rate`. Errors: `dropout.C1` unless the rate is in [0, 1), `elementwise.C1`. Source:
    /// PyTorch's `dropout`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.ones(F32, 1000);
    /// let kept = x.dropout(0.5, &g.random(0)).count_nonzero(0).eval()?.item::<i64>()?;
    /// assert!((400..600).contains(&kept));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dropout(&self, rate: f64, random: &Random) -> Tensor {
        self.call("dropout", |ty| {
            ensure_float(ty)?;
            if !(0.0..1.0).contains(&rate) {
                let detail = format!("the rate must be at least 0 and less than 1, found {rate}");
                return Err(Error::rule("dropout.C1", detail));
            }
            self.graph().operand(&random.state())?;
            let kept = random.bernoulli(1.0 - rate, &ty.shape);
            Ok((self / (1.0 - rate)).where_(&kept, 0.0))
        })
    }

    /// The cross entropy of the distributions that logits along the last axis stand for, at labels:
    /// `-logsoftmax(x)[label]` for each. `labels` are integers, of the shape without the last axis;
    /// those out of range give NaN. Errors: `cross_entropy.C1`, `elementwise.C1`. Source: PyTorch's
    /// `cross_entropy`, without the mean.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let logits = g.constant([[0f32, 0.0]]);
    /// assert_eq!(format!("{:.3}", logits.cross_entropy(g.constant([1])).eval()?), "[0.693]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, labels: impl Operand) -> Tensor {
        self.call("cross_entropy", |ty| {
            ensure_float(ty)?;
            let labels = resolve(labels, self.graph(), ElementType::S64)?;
            let last = ty.shape.axis(-1)?;
            let (wanted, found) = (ty.shape.without(&[last]), labels.ty()?);
            if !found.dtype.is_integer() || found.shape != wanted {
                let detail =
                    format!("labels for {ty} must be integers of shape {wanted}, found {found}");
                return Err(Error::rule("cross_entropy.C1", detail));
            }
            let classes = &ty.shape[last];
            let labels = labels.cast(ElementType::S64);
            let numbers = self.graph().arange(ElementType::S64, classes);
            let is_label = numbers.equal(labels.expand_dims(-1));
            let valid = labels.greater_equal(0).logical_and(labels.less(classes));
            let picked = self.logsoftmax(-1).where_(is_label, 0.0).sum(-1);
            Ok((-picked).where_(valid, f64::NAN))
        })
    }
}

/// Which keys a query of [`attention`] sees.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::{Mask, attention};
/// let (ones, values) = (g.ones(F32, (2, 1)), g.constant([[1f32], [3.0]]));
/// let seen = attention(&ones, &ones, &values, &Mask::Causal);
/// assert_eq!(seen.eval()?, [[1f32], [2.0]].into());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Mask {
    /// All.
    #[default]
    None,
    /// Those whose number is not greater than its own.
    Causal,
    /// Those where a `pred` that broadcasts to `[…, queries, keys]` is true.
    Where(Tensor),
    /// All; a number that broadcasts to `[…, queries, keys]` is added to each product.
    Add(Tensor),
}

/// Scaled dot-product attention: `softmax(query · keyᵀ / sqrt(d) + mask) · value`.
///
/// Shapes: `query: [B…, queries, d]`, `key: [B…, keys, d]`, `value: [B…, keys, e]`, result
/// `[B…, queries, e]`; the leading dimensions broadcast. A query that sees no key gets the mean of
/// all values. Errors: those of [`Tensor::matmul`], [`Tensor::where_`] and [`Tensor::add`],
/// `elementwise.C1`. Source: "Attention Is All You Need" (Vaswani et al.), JAX's
/// `dot_product_attention` apart from the order of dimensions.
///
/// ```
/// # use helio_graph::prelude::*;
/// # let g = Graph::new("example");
/// use helio_graph::{Mask, attention};
/// let x = g.ones(F32, (1, 2, 3, 4));
/// assert_eq!(attention(&x, &x, x.clone(), &Mask::None).eval()?, x.eval()?);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn attention(
    query: impl AsRef<Tensor>,
    key: impl AsRef<Tensor>,
    value: impl AsRef<Tensor>,
    mask: &Mask,
) -> Tensor {
    let (query, key, value) = (query.as_ref(), key.as_ref(), value.as_ref());
    query.call("attention", |ty| {
        ensure_float(ty)?;
        let graph = query.graph();
        graph.ensure_operands([key, value])?;
        if let Mask::Where(mask) | Mask::Add(mask) = mask {
            graph.operand(mask)?;
        }
        let features = &ty.shape[ty.shape.axis(-1)?];
        let scale = graph.dim(features).cast(ElementType::F32).rsqrt();
        let products = query.matmul(key.swap_axes(-1, -2));
        let narrow = products.dtype()?.bits() < 32;
        let wide = if narrow { ElementType::F32 } else { products.dtype()? };
        let scores = products.cast(wide) * scale.cast(wide);
        let lowest = lowest(graph, wide)?;
        let scores = match mask {
            Mask::None => scores,
            Mask::Add(bias) => scores + bias.cast(wide),
            Mask::Where(seen) => scores.where_(seen, lowest),
            Mask::Causal => {
                let shape = scores.shape()?;
                let axes = shape.rank().saturating_sub(2);
                let last = Shape::from(&shape[axes..]);
                let [row, column] = [0, 1].map(|axis| graph.iota(ElementType::S64, &last, axis));
                scores.where_(column.less_equal(&row), lowest)
            }
        };
        let weights = scores.softmax(-1).cast(products.dtype()?);
        Ok(weights.matmul(value))
    })
}
