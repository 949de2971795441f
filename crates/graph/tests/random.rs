//! Random graphs: no call panics, errors have a rule, and a graph with symbolic dimensions computes
//! the same bits as the same graph built for the sizes of the call.

use helio::Code;
use helio_graph::{
    Array, Dim, ElementType, Error, Gelu, Graph, Result, Shape, Tensor, concat, keep, stack,
};
use oorandom::Rand32;

/// How the sizes of the inputs are given.
#[derive(Clone, Copy)]
enum Dims {
    Symbolic,
    Static([usize; 2]),
}

impl Dims {
    fn shape(self, pattern: &[usize]) -> Shape {
        let dim = |&d: &usize| match (self, d) {
            (Dims::Symbolic, 0) => Dim::from("n"),
            (Dims::Symbolic, 1) => Dim::from("m"),
            (Dims::Symbolic, 2) => Dim::from("n") * 2 + 1,
            (Dims::Static([n, _]), 0) => n.into(),
            (Dims::Static([_, m]), 1) => m.into(),
            (Dims::Static([n, _]), 2) => (2 * n + 1).into(),
            (_, size) => (size - 2).into(),
        };
        pattern.iter().map(dim).collect()
    }
}

/// The inputs: types, and dimensions as [`Dims::shape`] takes them.
const INPUTS: [(ElementType, &[usize]); 7] = [
    (ElementType::F32, &[0, 1]),
    (ElementType::F32, &[1, 5]),
    (ElementType::BF16, &[0]),
    (ElementType::S32, &[0, 3, 5]),
    (ElementType::Pred, &[1]),
    (ElementType::F64, &[2, 0]),
    (ElementType::F32, &[3, 4, 5, 1]),
];

/// One operation, on tensors by their numbers.
#[derive(Clone, Copy, Debug)]
struct Step {
    op: u32,
    operands: [usize; 2],
    /// What else an operation asks for.
    numbers: [i64; 3],
}

impl Step {
    fn random(rng: &mut Rand32, tensors: usize) -> Self {
        let operands = [0; 2].map(|_| rng.rand_range(0..tensors as u32) as usize);
        let numbers = [0; 3].map(|_| i64::from(rng.rand_range(0..9)) - 4);
        Step { op: rng.rand_range(0..OPERATIONS), operands, numbers }
    }

    fn apply(&self, tensors: &[Tensor]) -> Tensor {
        let [x, y] = self.operands.map(|number| &tensors[number]);
        let [a, b, c] = self.numbers;
        let axis = a as isize;
        match self.op {
            0 => x + y,
            1 => x - y,
            2 => x * y,
            3 => x / y,
            4 => x % y,
            5 => x.floor_div(y),
            6 => x.maximum(y),
            7 => x.less(y),
            8 => x.equal(y),
            9 => x & y,
            10 => x + a,
            11 => x * 0.5,
            12 => x.pow(2),
            13 => x.exp(),
            14 => x.abs().sqrt(),
            15 => x.gelu_with(Gelu::Tanh),
            16 => x.is_nan(),
            17 => x.cast(
                [ElementType::F32, ElementType::BF16, ElementType::S32, ElementType::F64]
                    [(b + 4) as usize % 4],
            ),
            18 => x.softmax(axis),
            19 => x.sum(axis),
            20 => x.mean(keep(axis)),
            21 => x.max([axis, b as isize]),
            22 => x.var(.., 0),
            23 => x.flatten(),
            24 => x.reshape([-1, b]),
            25 => x.t(),
            26 => x.swap_axes(axis, b as isize),
            27 => x.expand_dims(axis),
            28 => x.squeeze(axis),
            29 => x.flip(axis),
            30 => x.slice(axis, b..c),
            31 => x.slice(axis, b..),
            32 => x.slice(axis, ..c),
            33 => x.slice(axis, b),
            34 => concat(&[x, y], axis),
            35 => stack(&[x, y], axis),
            36 => match x.shape() {
                Ok(shape) => x.pad(vec![(b, c); shape.rank()], 1),
                Err(_) => x.clone(),
            },
            37 => x.take(Array::new([2], vec![b, c]).expect("an array"), axis),
            38 => x.matmul(y),
            39 => x.sort(axis),
            40 => x.argmax(axis),
            41 => x.cumsum(axis),
            42 => x.where_(y.greater(0), 0),
            43 => x.roll(b, axis),
            44 => x.tile(vec![Dim::from(b), Dim::from(2)]),
            45 => x.repeat(b, axis),
            46 => match y.shape() {
                Ok(shape) => x.broadcast_to(shape),
                Err(_) => x.clone(),
            },
            47 => x.tril(b),
            48 => x.layer_norm(axis, 1e-5),
            49 => x.one_hot(3, ElementType::F32),
            50 => x.graph().for_loop(0, 3, x.clone(), |i, x| x + i.cast(ElementType::S8)),
            51 => x.graph().cond(y.sum(..).greater(0), || x + 1, || x - 1),
            52 => match x.shape() {
                Ok(shape) => x.reshape(Shape::from([shape.element_count() / 2, Dim::from(2)])),
                Err(_) => x.clone(),
            },
            _ => x.where_(y.cast(ElementType::Pred), y),
        }
    }
}

const OPERATIONS: u32 = 54;

/// The graph with these steps: the inputs, and what each step gives.
fn build(dims: Dims, steps: &[Step]) -> (Graph, Vec<Tensor>) {
    let g = Graph::new("random");
    let inputs = INPUTS.iter().enumerate();
    let mut tensors: Vec<Tensor> = inputs
        .map(|(i, (dtype, dims_of))| g.input(&format!("x{i}"), *dtype, dims.shape(dims_of)))
        .collect();
    for step in steps {
        tensors.push(step.apply(&tensors));
    }
    (g, tensors)
}

fn arguments([n, m]: [usize; 2], rng: &mut Rand32) -> Vec<Array> {
    let array = |(dtype, pattern): &(ElementType, &[usize])| {
        let size = |&d: &usize| [n, m, 2 * n + 1].get(d).copied().unwrap_or_else(|| d - 2);
        let sizes: Vec<usize> = pattern.iter().map(size).collect();
        let values = (0..sizes.iter().product()).map(|_| rng.rand_float() * 8.0 - 4.0);
        let floats = Array::new(sizes, values.collect::<Vec<f32>>()).expect("an array");
        cast(&floats, *dtype)
    };
    INPUTS.iter().map(array).collect()
}

fn cast(array: &Array, to: ElementType) -> Array {
    use helio::ir::{ArrayShape, Native, dispatch_type};
    let numbers = (0..array.data().len()).map(|i| array.number(i));
    dispatch_type!(to, T => {
        let values: Vec<T> = numbers.map(<T as Native>::from_number).collect();
        Array::from_data(ArrayShape::new(to, array.dims()).expect("a shape"), T::wrap(values))
    })
    .expect("an array")
}

fn ensure_told(error: &Error, what: &dyn Fn() -> String) {
    assert_ne!(error.code(), Code::Internal, "{error}\n{}", what());
}

#[test]
fn symbolic_and_static_graphs_agree() -> Result<()> {
    let mut rng = Rand32::new(4);
    let (mut ran, mut applied) = (0, std::collections::BTreeSet::new());
    for _ in 0..60 {
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..25 {
            let step = Step::random(&mut rng, INPUTS.len() + steps.len());
            steps.push(step);
            let (g, _) = build(Dims::Symbolic, &steps);
            if let Some(error) = g.error() {
                ensure_told(&error, &|| format!("{g}{step:?}"));
                assert!(error.rule_id().is_some(), "{error}\n{g}{step:?}");
                steps.pop();
            }
        }
        let (g, tensors) = build(Dims::Symbolic, &steps);
        let outputs = tensors[INPUTS.len()..].to_vec();
        let program = g.compile(outputs)?;
        for sizes in [[2, 3], [1, 4], [0, 2], [3, 1]] {
            let arguments = arguments(sizes, &mut rng);
            let found = match program.run(&arguments) {
                Ok(found) => found,
                Err(error) => {
                    ensure_told(&error, &|| format!("{g}{sizes:?}"));
                    continue;
                }
            };
            let (plain, tensors) = build(Dims::Static(sizes), &steps);
            let program = plain.compile(tensors[INPUTS.len()..].to_vec());
            let program = program.unwrap_or_else(|e| panic!("{e}\n{g}{sizes:?}"));
            let expected = program.run(&arguments)?;
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let node = INPUTS.len() + i;
                assert!(found.same_bits(expected), "{node}: {found:?} {expected:?}\n{g}{sizes:?}");
            }
            ran += 1;
            applied.extend(steps.iter().map(|step| step.op));
        }
    }
    assert!(ran > 60, "only {ran} runs");
    let never: Vec<u32> = (0..OPERATIONS).filter(|op| !applied.contains(op)).collect();
    assert!(never.is_empty(), "never applied: {never:?}");
    Ok(())
}
