//! Each public operation of tensors and graphs.

use helio_graph::{
    Conv, ElementType, Gelu, Graph, Mask, Pool, Random, Replicas, Scan, Shape, Tensor, attention,
    concat, einsum, embedding, keep, stack,
};

/// What operations are applied to.
pub struct Operands {
    pub g: Graph,
    pub x: Tensor,
    pub y: Tensor,
    /// Of shape `[1, 2, n, n]` where `x` is `[n, n]`.
    pub images: Tensor,
    pub pred: Tensor,
    pub ints: Tensor,
    /// A scalar `pred`, and a scalar integer.
    pub yes: Tensor,
    pub number: Tensor,
    pub random: Random,
}

impl Operands {
    pub fn inputs(g: &Graph, n: impl Into<helio_graph::Dim>) -> Self {
        let n = n.into();
        let input = |name: &str, dtype, shape: Shape| g.input(name, dtype, shape);
        let matrix = || Shape::from([&n, &n]);
        Operands {
            g: g.clone(),
            x: input("x", ElementType::F32, matrix()),
            y: input("y", ElementType::F32, matrix()),
            images: input(
                "images",
                ElementType::F32,
                [1.into(), 2.into(), n.clone(), n.clone()].into(),
            ),
            pred: input("pred", ElementType::Pred, matrix()),
            ints: input("ints", ElementType::S32, matrix()),
            yes: input("yes", ElementType::Pred, ().into()),
            number: input("number", ElementType::S32, ().into()),
            random: g.random_from(g.input("state", ElementType::U64, [2])),
        }
    }

    /// Other tensors of the same types, made by `make`, which copies one.
    pub fn with(&self, make: impl Fn(&Tensor) -> Tensor) -> Self {
        let copy = |x: &Tensor| make(x);
        let state = copy(&self.random.state());
        Operands {
            g: self.g.clone(),
            x: copy(&self.x),
            y: copy(&self.y),
            images: copy(&self.images),
            pred: copy(&self.pred),
            ints: copy(&self.ints),
            yes: copy(&self.yes),
            number: copy(&self.number),
            random: state.graph().random_from(&state),
        }
    }
}

pub type Operation = (&'static str, fn(&Operands) -> Vec<Tensor>);

/// Each public operation, some of them several times.
pub const OPERATIONS: &[Operation] = &[
    ("exp", |o| vec![o.x.exp()]),
    ("expm1", |o| vec![o.x.expm1()]),
    ("log", |o| vec![o.x.log()]),
    ("log1p", |o| vec![o.x.log1p()]),
    ("erf", |o| vec![o.x.erf()]),
    ("erfc", |o| vec![o.x.erfc()]),
    ("sqrt", |o| vec![o.x.sqrt()]),
    ("rsqrt", |o| vec![o.x.rsqrt()]),
    ("cbrt", |o| vec![o.x.cbrt()]),
    ("sin", |o| vec![o.x.sin(), o.x.cos(), o.x.tan()]),
    ("asin acos atan cos tan", |o| vec![o.x.asin(), o.x.acos(), o.x.atan()]),
    ("sinh cosh tanh", |o| vec![o.x.sinh(), o.x.cosh(), o.x.tanh()]),
    ("asinh acosh atanh", |o| vec![o.x.asinh(), o.x.acosh(), o.x.atanh()]),
    ("floor ceil", |o| vec![o.x.floor(), o.x.ceil()]),
    ("round roundeven trunc", |o| vec![o.x.round(), o.x.roundeven(), o.x.trunc()]),
    ("sign", |o| vec![o.x.sign()]),
    ("abs negate", |o| vec![o.x.abs(), o.x.negate(), -&o.x]),
    ("real imag", |o| vec![o.x.cast(ElementType::C64).real(), o.x.cast(ElementType::C64).imag()]),
    ("count_leading_zeros", |o| vec![o.ints.count_leading_zeros()]),
    ("population_count", |o| vec![o.ints.population_count()]),
    ("is_nan is_inf is_finite", |o| vec![o.x.is_nan(), o.x.is_inf(), o.x.is_finite()]),
    ("logical_not bitwise_not", |o| vec![o.pred.logical_not(), o.ints.bitwise_not()]),
    ("not", |o| vec![!&o.pred]),
    ("add", |o| vec![o.x.add(&o.y), &o.x + &o.y, 1.0 + &o.x]),
    ("sub", |o| vec![o.x.sub(&o.y), &o.x - &o.y, 1.0 - &o.x]),
    ("mul", |o| vec![o.x.mul(&o.y), &o.x * &o.y, 2 * &o.ints]),
    ("div", |o| vec![o.x.div(&o.y), &o.x / &o.y]),
    ("floor_div modulo", |o| vec![o.x.floor_div(&o.y), o.x.modulo(&o.y), &o.x % &o.y]),
    ("maximum minimum", |o| vec![o.x.maximum(&o.y), o.x.minimum(&o.y)]),
    ("pow atan2", |o| vec![o.x.pow(&o.y), o.x.atan2(&o.y)]),
    ("equal not_equal", |o| vec![o.x.equal(&o.y), o.x.not_equal(&o.y)]),
    ("greater greater_equal", |o| vec![o.x.greater(&o.y), o.x.greater_equal(&o.y)]),
    ("less less_equal", |o| vec![o.x.less(&o.y), o.x.less_equal(&o.y)]),
    ("logical_and logical_or", |o| vec![o.pred.logical_and(&o.pred), o.pred.logical_or(&o.pred)]),
    ("logical_xor", |o| vec![o.pred.logical_xor(&o.pred)]),
    ("bitwise_and bitwise_or", |o| vec![o.ints.bitwise_and(&o.ints), o.ints.bitwise_or(&o.ints)]),
    ("bitwise_xor", |o| vec![o.ints.bitwise_xor(&o.ints), &o.ints ^ 1]),
    ("shift_left shift_right", |o| vec![o.ints.shift_left(&o.ints), o.ints.shift_right(1)]),
    ("cast", |o| vec![o.x.cast(ElementType::F32)]),
    ("cast", |o| vec![o.x.cast(ElementType::S8)]),
    ("where_", |o| vec![o.x.where_(&o.pred, &o.y)]),
    ("relu sigmoid silu", |o| vec![o.x.relu(), o.x.sigmoid(), o.x.silu()]),
    ("gelu gelu_with", |o| vec![o.x.gelu(), o.x.gelu_with(Gelu::Tanh)]),
    ("softplus leaky_relu elu", |o| vec![o.x.softplus(), o.x.leaky_relu(0.1), o.x.elu(1.0)]),
    ("square reciprocal clamp", |o| vec![o.x.square(), o.x.reciprocal(), o.x.clamp(0.0, &o.y)]),
    ("softmax logsoftmax", |o| vec![o.x.softmax(0), o.x.logsoftmax(-1)]),
    ("sum prod", |o| vec![o.x.sum(0), o.x.prod(keep(1))]),
    ("max min", |o| vec![o.x.max(..), o.x.min(0)]),
    ("all any", |o| vec![o.pred.all(0), o.pred.any(1)]),
    ("mean var std", |o| vec![o.x.mean(0), o.x.var(0, 1), o.x.std(1, 0)]),
    ("logsumexp norm", |o| vec![o.x.logsumexp(0), o.x.norm(..)]),
    ("count_nonzero", |o| vec![o.x.count_nonzero(0)]),
    ("median", |o| vec![o.x.median(0)]),
    ("sort sort_descending", |o| vec![o.x.sort(0), o.x.sort_descending(1)]),
    ("argsort argsort_descending", |o| vec![o.x.argsort(0), o.x.argsort_descending(1)]),
    ("argmax argmin", |o| vec![o.x.argmax(0), o.x.argmin(1)]),
    ("top_k", |o| o.x.top_k(2, 0).into()),
    ("cumsum cumprod", |o| vec![o.x.cumsum(0), o.x.cumprod(1)]),
    ("cummax cummin", |o| vec![o.x.cummax(0), o.x.cummin(1)]),
    ("cumsum_with cumprod_with cummax_with cummin_with", |o| {
        let scan = Scan { reverse: true, exclusive: true };
        vec![
            o.x.cumsum_with(0, scan),
            o.x.cumprod_with(0, scan),
            o.x.cummax_with(0, scan),
            o.x.cummin_with(0, scan),
        ]
    }),
    ("scatter_add", |o| vec![o.x.scatter_add(&o.number, o.y.slice(0, 0), 0)]),
    ("scatter_mul", |o| vec![o.x.scatter_mul(&o.number, 2.0, 0)]),
    ("scatter_max", |o| vec![o.x.scatter_max(&o.number, 2.0, 0)]),
    ("scatter_min", |o| vec![o.x.scatter_min(&o.number, 2.0, 0)]),
    ("scatter_update", |o| vec![o.x.scatter_update(&o.number, 2.0, 0)]),
    ("take take_or", |o| vec![o.x.take(&o.number, 0), o.x.take_or(&o.number, 0, 0.0)]),
    ("take_along_axis", |o| vec![o.x.take_along_axis(&o.ints, 0)]),
    ("gather_nd", |o| vec![o.x.gather_nd(o.number.broadcast_to([4, 2]))]),
    ("one_hot", |o| vec![o.ints.one_hot(3, ElementType::F32)]),
    ("dynamic_slice", |o| vec![o.x.dynamic_slice(&[&o.number, &o.number], [1, 1])]),
    ("dynamic_slice_in_dim", |o| vec![o.x.dynamic_slice_in_dim(&o.number, 1, 0)]),
    ("dynamic_update_slice", |o| vec![o.x.dynamic_update_slice(&o.y, &[&o.number, &o.number])]),
    ("dynamic_update_slice_in_dim", |o| vec![o.x.dynamic_update_slice_in_dim(&o.y, &o.number, 0)]),
    ("embedding", |o| vec![embedding(&o.x, &o.ints)]),
    ("concat stack", |o| vec![concat(&[&o.x, &o.y], 0)]),
    ("stack", |o| vec![stack(&[&o.x, &o.y], 0)]),
    ("pad pad_interior", |o| {
        vec![o.x.pad([(1, 1), (0, 0)], 0.0), o.x.pad_interior([(1, 1, 1), (0, 0, 0)], 0.0)]
    }),
    ("pad_edge pad_reflect", |o| {
        vec![o.x.pad_edge([(1, 1), (0, 0)]), o.x.pad_reflect([(1, 1), (0, 0)])]
    }),
    ("tile repeat roll", |o| vec![o.x.tile([2, 2]), o.x.repeat(2, 0), o.x.roll(1, 0)]),
    ("broadcast_to", |o| vec![o.number.broadcast_to([7])]),
    ("broadcast_to rebind", |o| {
        vec![o.x.shape().map_or(o.x.clone(), |shape| o.x.broadcast_to(shape))]
    }),
    ("rebind", |o| vec![o.x.shape().map_or(o.x.clone(), |shape| o.x.rebind(shape))]),
    ("reshape flatten", |o| vec![o.x.reshape([-1, 1]), o.x.flatten()]),
    ("transpose t", |o| vec![o.x.transpose(&[1, 0]), o.x.t()]),
    ("swap_axes move_axis flip", |o| vec![o.x.swap_axes(0, 1), o.x.move_axis(0, 1), o.x.flip(0)]),
    ("squeeze expand_dims", |o| vec![o.images.squeeze(0), o.x.expand_dims(0)]),
    ("slice slice_axes", |o| vec![o.x.slice(0, 1..), o.x.slice_axes((1.., 0))]),
    ("split", |o| o.images.split::<2>(1).into()),
    ("split_sizes array_split", |o| o.images.split_sizes([1, 1], 1).into()),
    ("array_split", |o| o.x.array_split(2, 0)),
    ("conv", |o| vec![o.images.conv(&o.images, &Conv::default())]),
    ("conv_transpose", |o| vec![o.images.conv_transpose(&o.images, &Conv::default())]),
    ("max_pool avg_pool", |o| vec![o.images.max_pool(&[2, 2], &Pool::default())]),
    ("avg_pool", |o| vec![o.images.avg_pool(&[2, 2], &Pool::default())]),
    ("layer_norm rms_norm", |o| vec![o.x.layer_norm(-1, 1e-5), o.x.rms_norm(-1, 1e-5)]),
    ("dropout", |o| vec![o.x.dropout(0.5, &o.random)]),
    ("cross_entropy", |o| vec![o.x.cross_entropy(o.ints.slice(0, 0))]),
    ("attention", |o| {
        let mask = Mask::Where(o.pred.clone());
        vec![attention(&o.x, &o.y, &o.x, &mask), attention(&o.x, &o.y, &o.y, &Mask::Causal)]
    }),
    ("matmul dot", |o| vec![o.x.matmul(&o.y), o.x.dot(&o.y)]),
    ("tensordot outer", |o| vec![o.x.tensordot(&o.y, &[1], &[0])]),
    ("outer", |o| vec![o.x.outer(&o.y)]),
    ("einsum", |o| vec![einsum("ij,jk->ik", &[&o.x, &o.y])]),
    ("tril triu", |o| vec![o.x.tril(0), o.x.triu(1)]),
    ("diagonal trace", |o| vec![o.x.diagonal(0), o.x.trace()]),
    ("random bits uniform", |o| vec![o.random.bits(ElementType::U32, [3])]),
    ("uniform normal", |o| vec![o.random.uniform(ElementType::F32, [3])]),
    ("normal", |o| vec![o.random.normal(ElementType::F32, [3])]),
    ("bernoulli", |o| vec![o.random.bernoulli(o.number.cast(ElementType::F32), [3])]),
    ("integers", |o| vec![o.random.integers(ElementType::S32, 0, 9, [3])]),
    ("random_from state", |o| vec![o.g.random_from(o.random.state()).bits(ElementType::U8, [2])]),
    ("replica_id", |o| vec![o.g.replica_id().cast(ElementType::F32) * &o.x]),
    ("replica_sum replica_mean", |o| {
        let alone = Replicas::all(1);
        vec![o.x.replica_sum(&alone), o.x.replica_mean(&alone)]
    }),
    ("replica_max replica_min", |o| {
        let alone = Replicas::groups([[0]]);
        vec![o.x.replica_max(&alone), o.x.replica_min(&Replicas::all(alone.count()))]
    }),
    ("replica_concat", |o| vec![o.x.replica_concat(0, &Replicas::all(1))]),
    ("replica_sum_part", |o| vec![o.x.replica_sum_part(0, &Replicas::all(1))]),
    ("replica_transpose", |o| vec![o.x.replica_transpose(0, 1, &Replicas::all(1))]),
    ("replica_permute", |o| vec![o.x.replica_permute([(0, 0)])]),
    ("replica_broadcast", |o| vec![o.x.replica_broadcast(&Replicas::all(1))]),
    ("full", |o| vec![o.g.full(ElementType::S32, [2], &o.number)]),
    ("while_loop", |o| vec![o.g.while_loop(o.x.clone(), |x| x.sum(..).greater(1.0), |x| x * 0.5)]),
    ("while_loop", |o| vec![o.g.while_loop(o.x.clone(), |_| o.yes.clone(), |_| o.y.clone())]),
    ("for_loop", |o| vec![o.g.for_loop(0, &o.number, o.x.clone(), |_, x| x + &o.y)]),
    ("for_loop", |o| {
        vec![o.g.for_loop(&o.number, 3, o.x.clone(), |i, x| x + i.cast(ElementType::S8))]
    }),
    ("cond", |o| vec![o.g.cond(&o.yes, || o.x.clone(), || o.y.exp())]),
    ("switch", |o| o.g.switch(&o.number, &[&|| vec![o.x.clone()], &|| vec![o.y.clone()]])),
];
