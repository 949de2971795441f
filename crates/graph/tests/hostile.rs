//! Calls with wrong and extreme arguments: no call panics or hangs, no error is called a defect, and
//! each has a rule or names the limit that was reached.
//!
//! A second of them runs in ordinary tests; `HELIO_SECONDS=600 cargo test -p helio-graph --test
//! hostile` runs them for as long as one likes, from another seed each time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

use helio::{Client, ClientOptions, Code, Location, RunOptions};
use helio_graph::{
    Array, Channels, Conv, Dim, Edges, ElementType, Error, Gelu, Graph, Mask, Pool, ProgramOptions,
    Scan, Shape, Slice, Tensor, attention, concat, einsum, embedding, keep, stack, step,
};
use oorandom::Rand32;

/// How long a program may take, endless ones being stopped after 10,000 steps of up to 0.3 ms of machine code:
/// ten times as long as the slowest does, as other programs may keep the machine busy.
const LONGEST: Duration = Duration::from_secs(30);

struct Caller {
    rng: Rand32,
    g: Graph,
    tensors: Vec<Tensor>,
    /// Calls made in bodies may nest so deep.
    depth: usize,
}

impl Caller {
    fn below(&mut self, count: usize) -> usize {
        self.rng.rand_range(0..count as u32) as usize
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn number(&mut self) -> i64 {
        match self.below(6) {
            0 => self.pick(&[
                i64::MAX,
                i64::MIN,
                1 << 62,
                -(1 << 62),
                1 << 31,
                1 << 40,
                i64::MAX - 1,
            ]),
            _ => self.below(7) as i64 - 2,
        }
    }

    fn size(&mut self) -> usize {
        match self.below(12) {
            0 => self.pick(&[usize::MAX, 1 << 63, 1 << 40, 1 << 20, 65_537]),
            _ => self.below(5),
        }
    }

    fn axis(&mut self) -> isize {
        match self.below(10) {
            0 => self.pick(&[isize::MAX, isize::MIN, 8, -9]),
            _ => self.below(6) as isize - 3,
        }
    }

    fn float(&mut self) -> f64 {
        let wild =
            [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, 5e-324, -0.5];
        self.pick(&wild)
    }

    fn dtype(&mut self) -> ElementType {
        match self.below(3) {
            0 => self.pick(ElementType::ALL),
            _ => self.pick(&[
                ElementType::F32,
                ElementType::S32,
                ElementType::Pred,
                ElementType::S64,
                ElementType::BF16,
            ]),
        }
    }

    fn dim(&mut self) -> Dim {
        match self.below(16) {
            0..7 => self.below(4).into(),
            7..10 => self.pick(&["n", "m"]).into(),
            10 => self.number().into(),
            11 => {
                let (a, b) = (self.dim(), self.dim());
                match self.below(4) {
                    0 => a + b,
                    1 => a - b,
                    2 => a * b,
                    _ => a / b,
                }
            }
            12 => self.pick(&["", "1x", "n m", "ñ", "_"]).into(),
            13 => Dim::from("n") * self.number(),
            14 => -Dim::from("n") - self.number(),
            _ => Dim::from("n") / self.dim(),
        }
    }

    fn rank(&mut self) -> usize {
        match self.below(12) {
            0 => self.pick(&[8, 9, 40]),
            _ => self.below(5),
        }
    }

    fn shape(&mut self) -> Shape {
        (0..self.rank()).map(|_| self.dim()).collect()
    }

    fn axes(&mut self) -> Vec<isize> {
        (0..self.below(4)).map(|_| self.axis()).collect()
    }

    fn sizes(&mut self) -> Vec<usize> {
        (0..self.below(4)).map(|_| self.size()).collect()
    }

    fn tensor(&mut self) -> Tensor {
        let number = self.below(self.tensors.len());
        self.tensors[number].clone()
    }

    fn tensor_of(&mut self, dtype: ElementType) -> Tensor {
        let any = self.tensor();
        match self.below(8) {
            0 => any,
            _ => any.cast(dtype),
        }
    }

    fn tensors(&mut self) -> Vec<Tensor> {
        (0..self.below(4)).map(|_| self.tensor()).collect()
    }

    fn slice(&mut self) -> Slice {
        let (a, b) = (self.dim(), self.dim());
        match self.below(6) {
            0 => Slice::from(self.number()),
            1 => Slice::from(a..),
            2 => Slice::from(..b),
            3 => step(a..b, self.number()),
            4 => Slice::from(..),
            _ => Slice::from(a..b),
        }
    }

    fn pairs(&mut self) -> Vec<(Dim, Dim)> {
        let rank = match self.below(4) {
            0 => self.below(4),
            _ => self.tensors.last().and_then(|x| x.shape().ok()).map_or(1, |shape| shape.rank()),
        };
        (0..rank).map(|_| (self.dim(), self.dim())).collect()
    }

    fn edges(&mut self) -> Edges {
        match self.below(3) {
            0 => Edges::Valid,
            1 => Edges::Same,
            _ => Edges::Explicit(
                (0..self.below(4)).map(|_| (self.number(), self.number())).collect(),
            ),
        }
    }

    fn pool(&mut self) -> Pool {
        Pool {
            strides: self.sizes(),
            edges: self.edges(),
            dilation: self.sizes(),
            channels: self.pick(&[Channels::First, Channels::Last]),
            skip_edges: self.below(2) == 0,
        }
    }

    fn conv(&mut self) -> Conv {
        Conv {
            strides: self.sizes(),
            edges: self.edges(),
            dilation: self.sizes(),
            groups: self.size(),
            ..Conv::default()
        }
    }

    fn array(&mut self) -> Array {
        let (dtype, dims) = (self.dtype(), (0..self.below(4)).map(|_| self.below(4)));
        let shape = helio::ir::ArrayShape::new(dtype, dims.collect::<Vec<_>>()).expect("a shape");
        let bytes: Vec<u8> =
            (0..shape.size_bytes()).map(|_| self.rng.rand_range(0..2) as u8).collect();
        Array::from_bytes(shape, &bytes).expect("an array")
    }

    /// Calls in a body.
    fn inside(&mut self, made: Tensor) -> Tensor {
        if self.depth > 2 {
            return made;
        }
        self.depth += 1;
        let before = self.tensors.len();
        self.tensors.push(made);
        for _ in 0..self.below(3) {
            self.call();
        }
        let made = self.tensor();
        // What is left over leaks, now and then.
        if self.below(20) != 0 {
            self.tensors.truncate(before);
        }
        self.depth -= 1;
        made
    }

    fn call(&mut self) {
        let made = self.made();
        self.tensors.extend(made);
    }

    fn made(&mut self) -> Vec<Tensor> {
        let (x, y) = (self.tensor(), self.tensor());
        let (a, axis, dtype) = (self.number(), self.axis(), self.dtype());
        let g = self.g.clone();
        let one = match self.below(84) {
            0 => x + y,
            1 => x - a,
            2 => x * self.float(),
            3 => x / y,
            4 => x % a,
            5 => x.floor_div(a),
            6 => x.pow(y),
            7 => x.atan2(y),
            8 => x.shift_left(a),
            9 => x.shift_right(y),
            10 => x.maximum(self.dim()),
            11 => x.equal(self.array()),
            12 => x.less(y),
            13 => x.logical_and(y),
            14 => x.bitwise_xor(a),
            15 => x.cast(dtype),
            16 => x.where_(self.tensor_of(ElementType::Pred), self.float()),
            17 => x.exp(),
            18 => x.log1p(),
            19 => x.abs(),
            20 => x.sign(),
            21 => x.imag(),
            22 => x.population_count(),
            23 => x.gelu_with(Gelu::Quick),
            24 => x.clamp(a, self.float()),
            25 => x.softmax(axis),
            26 => x.sum(&*self.axes()),
            27 => x.prod(keep(axis)),
            28 => x.max(..),
            29 => x.any(&*self.axes()),
            30 => x.mean(&*self.axes()),
            31 => x.var(axis, self.number() as i32),
            32 => x.logsumexp(&*self.axes()),
            33 => x.median(axis),
            34 => x.sort(axis),
            35 => x.argsort_descending(axis),
            36 => x.argmin(axis),
            37 => return x.top_k(self.dim(), axis).into(),
            38 => x.cumsum_with(axis, Scan { reverse: true, exclusive: a > 0 }),
            39 => x.cummax(axis),
            40 => x.scatter_add(self.tensor_of(ElementType::S32), y, axis),
            41 => x.scatter_update(a, self.float(), axis),
            42 => x.take(self.tensor_of(ElementType::S64), axis),
            43 => x.take_or(self.array(), axis, a),
            44 => x.take_along_axis(self.tensor_of(ElementType::S8), axis),
            45 => x.gather_nd(self.tensor_of(ElementType::S32)),
            46 => x.one_hot(self.dim(), dtype),
            47 => {
                let starts: Vec<Tensor> =
                    self.tensors().iter().map(|x| x.cast(ElementType::S32)).collect();
                x.dynamic_slice(&starts, self.shape())
            }
            48 => x.dynamic_update_slice_in_dim(y, a, axis),
            49 => embedding(&x, y),
            50 => concat(&self.tensors(), axis),
            51 => stack(&self.tensors(), axis),
            52 => x.pad(self.pairs(), a),
            53 => {
                let amounts = self.pairs().into_iter().map(|(low, high)| (low, high, self.size()));
                let amounts: Vec<_> = amounts.collect();
                x.pad_interior(amounts, self.float())
            }
            54 => x.pad_edge(self.pairs()),
            55 => x.pad_reflect(self.pairs()),
            56 => x.tile(self.shape()),
            57 => x.repeat(self.dim(), axis),
            58 => x.roll(self.dim(), axis),
            59 => x.broadcast_to(self.shape()),
            60 => x.rebind(self.shape()),
            61 => x.reshape(self.shape()),
            62 => x.transpose(&self.axes()),
            63 => x.move_axis(axis, self.axis()),
            64 => x.squeeze(&*self.axes()),
            65 => x.expand_dims(axis),
            66 => x.slice(axis, self.slice()),
            67 => {
                let slices: Vec<Slice> = (0..self.below(4)).map(|_| self.slice()).collect();
                x.slice_axes(slices)
            }
            68 => return x.array_split(self.size(), axis),
            69 => return x.split::<3>(axis).into(),
            70 => x.conv(y, &self.conv()),
            71 => x.conv_transpose(y, &self.conv()),
            72 => x.max_pool(&self.sizes(), &self.pool()),
            73 => x.avg_pool(&self.sizes(), &self.pool()),
            74 => x.layer_norm(axis, self.float()),
            75 => x.cross_entropy(self.tensor_of(ElementType::S32)),
            76 => attention(&x, &y, self.tensor(), &Mask::Causal),
            77 => x.matmul(y),
            78 => x.tensordot(y, &self.axes(), &self.axes()),
            79 => {
                let formula = self.pick(&[
                    "ij,jk",
                    "...i,...i->...",
                    "ii->i",
                    "",
                    "->",
                    "i,,j",
                    "aA,Ab->b",
                    "..i",
                ]);
                einsum(formula, &self.tensors())
            }
            80 => x.diagonal(a),
            81 => x.tril(a),
            82 => x.outer(y),
            _ => return self.made_of_nothing(&g),
        };
        vec![one]
    }

    fn made_of_nothing(&mut self, g: &Graph) -> Vec<Tensor> {
        let (a, axis, dtype) = (self.number(), self.axis(), self.dtype());
        let one = match self.below(16) {
            0 => g.zeros(dtype, self.shape()),
            1 => g.full(dtype, self.shape(), self.float()),
            2 => g.ones(dtype, self.shape()),
            3 => g.iota(dtype, self.shape(), axis),
            4 => g.arange_by(dtype, self.dim(), self.dim(), a),
            5 => g.linspace(dtype, self.float(), self.float(), self.dim()),
            6 => g.eye(dtype, self.dim()),
            7 => g.dim(self.dim()),
            8 => g.constant(self.array()),
            9 => g.random(a as u64).normal(dtype, self.shape()),
            10 => g.random(1).integers(dtype, a, self.number(), self.shape()),
            11 => g
                .random_from(self.tensor_of(ElementType::U64))
                .bernoulli(self.float(), self.shape()),
            12 => {
                let (start, end, state) = (self.dim(), self.number(), self.tensor());
                g.for_loop(start, end, state, |i, x| {
                    self.tensors.push(i.clone());
                    self.inside(x)
                })
            }
            13 => {
                let (p, x, y) = (self.tensor_of(ElementType::Pred), self.tensor(), self.tensor());
                g.cond(&p, || x.clone(), || self.inside(y))
            }
            14 => {
                let (i, x, y) = (self.tensor(), self.tensors(), self.tensors());
                return g.switch(&i, &[&|| x.clone(), &|| y.clone()]);
            }
            _ => {
                let state = self.tensor();
                g.while_loop(state, |x| x.sum(..).less(a), |x| self.inside(x))
            }
        };
        vec![one]
    }
}

fn ensure_told(error: &Error, what: &dyn std::fmt::Display) {
    assert_ne!(error.code(), Code::Internal, "{error}\n{what}");
    let named = error.rule_id().is_some() || error.code() != Code::InvalidArgument;
    assert!(named, "no rule: {error}\n{what}");
}

/// Builds a program, and runs it if it is small.
fn attempt(seed: u64, client: &Client) -> [usize; 2] {
    let g = Graph::new("hostile");
    let mut caller = Caller { rng: Rand32::new(seed), g: g.clone(), tensors: Vec::new(), depth: 0 };
    caller.tensors.push(g.input("x", ElementType::F32, ("n", 3)));
    caller.tensors.push(g.input("i", ElementType::S32, ("m",)));
    caller.tensors.push(g.input("p", ElementType::Pred, ()));
    for _ in 0..1 + caller.below(8) {
        caller.call();
        if g.error().is_some() {
            break;
        }
    }
    let what = format!("seed {seed}\n{g}");
    if let Some(error) = g.error() {
        ensure_told(&error, &what);
        let here = matches!(error.location(), Some(Location::Rust { file, .. }) if file.ends_with("hostile.rs"));
        assert!(here, "{error}\n{what}");
        return [0, 0];
    }
    let mut options = ProgramOptions::default();
    options.client = client.clone();
    let outputs: Vec<Tensor> = caller.tensors.iter().rev().take(3).cloned().collect();
    let program = match g.compile_with(outputs, &options) {
        Ok(program) => program,
        Err(error) => {
            ensure_told(&error, &what);
            return [1, 0];
        }
    };
    let [n, m] = [caller.below(4), caller.below(4)];
    let x = Array::new([n, 3], vec![0.5f32; 3 * n]).expect("floats");
    let i = Array::new([m], (0..m as i32).collect()).expect("integers");
    let mut run = RunOptions::default();
    run.limits.max_steps = Some(10_000);
    run.threads = Some(1);
    match program.run_with(&[x, i, Array::scalar(true)], &run) {
        Ok(_) => [1, 1],
        Err(error) => {
            ensure_told(&error, &format_args!("n = {n}, m = {m}, {what}"));
            [1, 0]
        }
    }
}

#[test]
fn no_call_panics_or_ends_in_a_defect() {
    let seconds = std::env::var("HELIO_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let start = match (seconds, std::env::var("HELIO_SEED")) {
        (_, Ok(seed)) => seed.parse().expect("a seed"),
        (None, _) => 0,
        (Some(_), _) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.expect("a time").as_secs() << 24
        }
    };
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    helio::memory::set_limit_bytes(64 << 20);
    let mut of_little_memory = ClientOptions::default();
    of_little_memory.memory_limit = Some(64 << 20);
    let client = Client::new(&of_little_memory);
    let (mut tried, mut built, mut ran, mut failed) = (0, 0, 0, Vec::new());
    while Instant::now() < end && failed.len() < 20 {
        let seed = start + tried;
        tried += 1;
        let begin = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| attempt(seed, &client))) {
            Ok([one, two]) => (built, ran) = (built + one, ran + two),
            Err(_) => failed.push(seed),
        }
        let took = begin.elapsed();
        if took > LONGEST {
            eprintln!("seed {seed} took {took:?}");
            failed.push(seed);
        }
    }
    eprintln!("{tried} programs: {built} built, {ran} ran");
    assert!(failed.is_empty(), "seeds {failed:?}");
    assert!(built > 0 && ran > 0);
}
