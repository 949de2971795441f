//! Random numbers: functions of a state that is passed on explicitly.

use std::cell::RefCell;
use std::f64::consts::TAU;

use helio::ir::Number;
use helio::ir::ops::RngAlgorithm;
use helio::{Array, ElementType, Error, Result};

use crate::graph::TensorType;
use crate::operand::{constant, resolve};
use crate::ops::binary::ensure_type;
use crate::ops::nonlinear::ensure_float;
use crate::{Graph, Operand, Shape, Tensor};

/// A source of random numbers: a state, `u64[2]`, that each call replaces by the next one.
///
/// The numbers are those of ThreeFry, a function of the state alone: a program with a fixed seed
/// computes the same numbers in each call, on every machine. For others in each call pass the state
/// as an input, and return [`Random::state`] as an output.
///
/// ```
/// use helio_graph::{Array, ElementType, Graph};
/// let g = Graph::new("noise");
/// let random = g.random_from(&g.input("state", ElementType::U64, [2]));
/// let noise = random.normal(ElementType::F32, (4, 3));
/// let program = g.compile((noise, random.state()))?;
/// let first = program.run(&[Array::new([2], vec![42u64, 0])?])?;
/// let second = program.run(&first[1..])?;
/// assert!(!first[0].same_bits(&second[0]));
/// # Ok::<(), helio_graph::Error>(())
/// ```
#[derive(Debug)]
pub struct Random {
    state: RefCell<Tensor>,
}

impl Graph {
    /// A source of random numbers that begins with this seed in each call of the program.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.random(7).bits(U8, 4).eval()?, g.random(7).bits(U8, 4).eval()?);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn random(&self, seed: u64) -> Random {
        let state = self.call("random", || Ok(self.constant(Array::new([2], vec![seed, 0])?)));
        Random { state: RefCell::new(state) }
    }

    /// A source of random numbers that begins with this state, `u64[2]`. Errors: `random.C1`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let random = g.random_from(g.constant([42u64, 0]));
    /// assert_eq!(random.uniform(F32, 3).eval()?.dims(), [3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn random_from(&self, state: impl Operand) -> Random {
        let state = self.call("random_from", || {
            let state = resolve(state, self, ElementType::U64)?;
            let ty = state.ty()?;
            if ty != TensorType::new(ElementType::U64, [2]) {
                let detail = format!("the state must be u64[2], found {ty}");
                return Err(Error::rule("random.C1", detail));
            }
            Ok(state)
        });
        Random { state: RefCell::new(state) }
    }
}

impl Random {
    /// The state from which the next numbers will come.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let random = g.random(7);
    /// let before = random.state();
    /// let drawn = random.uniform(F32, 2);
    /// let again = g.random_from(&before).uniform(F32, 2);
    /// assert_eq!(drawn.eval()?, again.eval()?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn state(&self) -> Tensor {
        self.state.borrow().clone()
    }

    /// Bits, all equally likely, as unsigned integers. Errors: `elementwise.C1` unless the type is
    /// one of `u8` to `u64`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// assert_eq!(g.random(1).bits(U32, 3).shape()?.to_string(), "[3]");
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bits(&self, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("bits", |random| {
            let accepted = dtype.is_unsigned_integer() && dtype.bits() >= 8;
            ensure_type(dtype, accepted, "the types u8, u16, u32 and u64")?;
            random.next(dtype, &shape.into())
        })
    }

    /// Floats, equally likely everywhere in [0, 1). Errors: `elementwise.C1`. Source: NumPy's
    /// `random`; for other limits scale them.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let mean = g.random(1).uniform(F32, 1000).mean(0).eval()?.item::<f32>()?;
    /// assert!((0.45..0.55).contains(&mean));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn uniform(&self, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("uniform", |random| {
            let shape = shape.into();
            ensure_float(&TensorType::new(dtype, &shape))?;
            Ok(random.unit(dtype, &shape)?.cast(dtype))
        })
    }

    /// Floats of the normal distribution with mean 0 and variance 1, by Box and Muller's method.
    /// Errors: `elementwise.C1`. Source: NumPy's `standard_normal`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let mean = g.random(1).normal(F32, 1000).mean(0).eval()?.item::<f32>()?;
    /// assert!(mean.abs() < 0.2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn normal(&self, dtype: ElementType, shape: impl Into<Shape>) -> Tensor {
        self.call("normal", |random| {
            let shape = shape.into();
            ensure_float(&TensorType::new(dtype, &shape))?;
            let wide = if dtype.bits() < 32 { ElementType::F32 } else { dtype };
            let [first, second] = [random.unit(wide, &shape)?, random.unit(wide, &shape)?];
            // 1 - u is never 0.
            let radius = (-2.0 * (1.0 - first).log()).sqrt();
            Ok((radius * (TAU * second).cos()).cast(dtype))
        })
    }

    /// Bools that are true with this probability, a number or a tensor. Errors: as for
    /// [`Tensor::less`]. Source: JAX's `bernoulli`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let ones = g.random(1).bernoulli(0.5, 1000).cast(S32).sum(0).eval()?.item::<i32>()?;
    /// assert!((400..600).contains(&ones));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli(&self, probability: impl Operand, shape: impl Into<Shape>) -> Tensor {
        self.call("bernoulli", |random| {
            let shape = shape.into();
            Ok(random.unit(ElementType::F32, &shape)?.less(probability).broadcast_to(&shape))
        })
    }

    /// Integers from `low` to before `high`. The likelihoods differ by less than `(high - low)` in
    /// 2^64. Errors: `random.C2` unless `low < high` and both fit the type. Source: NumPy's
    /// `integers`.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let die = g.random(1).integers(S32, 1, 7, 1000);
    /// assert_eq!(die.max(0).eval()?, 6.into());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn integers(
        &self,
        dtype: ElementType,
        low: i64,
        high: i64,
        shape: impl Into<Shape>,
    ) -> Tensor {
        self.call("integers", |random| {
            let shape = shape.into();
            ensure_type(dtype, dtype.is_integer(), "integers")?;
            let fits = |v: i64| {
                let (least, greatest) = crate::promotion::integer_limits(dtype);
                (least..=greatest).contains(&i128::from(v))
            };
            if low >= high || !fits(low) || !fits(high - 1) {
                let detail = format!("there is no {dtype} from {low} to before {high}");
                return Err(Error::rule("random.C2", detail));
            }
            let graph = random.graph();
            let span = constant(
                &graph,
                Number::Int(i128::from(high) - i128::from(low)),
                ElementType::U64,
            )?;
            let offset = random.next(ElementType::U64, &shape)?.modulo(&span);
            let low = constant(&graph, Number::Int(low.into()), ElementType::S64)?;
            Ok((offset.cast(ElementType::S64) + low).cast(dtype))
        })
    }

    fn graph(&self) -> Graph {
        self.state.borrow().graph().clone()
    }

    #[track_caller]
    fn call(&self, name: &'static str, make: impl FnOnce(&Self) -> Result<Tensor>) -> Tensor {
        let graph = self.graph();
        graph.call(name, || {
            // One that was used in a body goes on from there.
            let usable = graph.operand(&self.state());
            usable.map_err(|error| match error.rule_id() {
                Some("graph.C5") => error.context("the state of the generator"),
                _ => error,
            })?;
            make(self)
        })
    }

    /// Bits of an unsigned type; the state goes on.
    fn next(&self, dtype: ElementType, shape: &Shape) -> Result<Tensor> {
        let state = self.state();
        let ty = TensorType::new(dtype, shape);
        let types = vec![state.ty()?, ty.clone()];
        let made = state.graph().emit_many(&[&state], types, move |emit, x| {
            let algorithm = RngAlgorithm::ThreeFry;
            let made = emit.builder.rng_bit_generator(algorithm, &x[0], emit.shape(&ty)?);
            Ok(vec![made.get_tuple_element(0), made.get_tuple_element(1)])
        })?;
        let [state, bits] = <[Tensor; 2]>::try_from(made)
            .map_err(|_| Error::internal("a generator gives a state and bits"))?;
        *self.state.borrow_mut() = state;
        Ok(bits)
    }

    /// Floats in [0, 1): `f64` with 53 random bits, or `f32` with as many as `dtype` has, so that
    /// rounding to it does not give 1.
    fn unit(&self, dtype: ElementType, shape: &Shape) -> Result<Tensor> {
        let (bits, wide) = match dtype.bits() {
            64.. => (ElementType::U64, ElementType::F64),
            _ => (ElementType::U32, ElementType::F32),
        };
        let digits = 1 + dtype.float_format().map_or(0, |format| format.mantissa_bits);
        let kept = i64::from(digits);
        let integers = self.next(bits, shape)?.shift_right(bits.bits() as i64 - kept);
        Ok(integers.cast(wide) * f64::powi(2.0, -(digits as i32)))
    }
}
